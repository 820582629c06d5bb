#include "config/people.h"

#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 12, CELL_SIZE = 4 * PEOPLE_WIDE_MAX + 4 };

static size_t cell_max = PEOPLE_CELL_MAX;

static size_t characters(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

/* At most cell_max characters. */
static void shorten(char *text)
{
    size_t count = 0, keep = 0;
    for (size_t i = 0; text[i]; i++) {
        if (((unsigned char)text[i] & 0xc0) == 0x80)
            continue;
        if (count == cell_max - 3)
            keep = i;
        if (count++ == cell_max) {
            memcpy(text + keep, "...", 4);
            return;
        }
    }
}

void people_text(const struct json_text *json, const struct json_node *node, char *text, size_t size)
{
    struct span raw = json_raw_of(json, node);
    if (node->kind == JSON_NULL)
        raw = span_of("-", 1);
    else if (node->kind == JSON_STRING) /* escapes stay: they are there because of what they stand for */
        raw = span_of((const char *)raw.bytes + 1, raw.size - 2);
    if (node->kind == JSON_STRING && raw.size == 0)
        raw = span_of("-", 1);
    size_t length = raw.size < size - 1 ? raw.size : size - 1;
    memcpy(text, raw.bytes, length);
    text[length] = 0;
}

static void name_text(const struct json_text *json, const struct json_node *name, char *text, size_t size)
{
    people_text(json, name, text, size);
    for (char *c = text; *c; c++)
        if (*c == '_')
            *c = ' ';
}

static bool plain(const struct json_node *node)
{
    return node->kind != JSON_ARRAY && node->kind != JSON_OBJECT;
}

/* A list of plain values, which a cell can hold with commas between. */
static bool plain_list(const struct json_text *json, const struct json_node *node)
{
    if (node->kind != JSON_ARRAY)
        return false;
    for (const struct json_node *e = json_first(json, node); e; e = json_after(json, node, e))
        if (!plain(e))
            return false;
    return true;
}

bool people_cell(const struct json_text *json, const struct json_node *node)
{
    return plain(node) || plain_list(json, node);
}

static void list_text(const struct json_text *json, const struct json_node *list, char *text, size_t size)
{
    size_t used = 0;
    for (const struct json_node *e = json_first(json, list); e && used + 3 < size;
         e = json_after(json, list, e)) {
        used += (size_t)snprintf(text + used, size - used, "%s", used ? ", " : "");
        people_text(json, e, text + used, size - used);
        used += strlen(text + used);
    }
}

static void spaces(struct json_sink *sink, size_t count)
{
    while (count-- > 0)
        json_sink_text(sink, " ");
}

static void padded(struct json_sink *sink, const char *text, size_t width)
{
    size_t length = characters(text);
    json_sink_text(sink, text);
    spaces(sink, length < width ? width - length : 0);
}

/* ---- tables ---- */

struct column {
    char name[64];
    size_t width;
    bool nested; /* a list or an object in some row: left out */
};

struct table {
    const struct json_text *json;
    const struct json_node *rows;
    struct column columns[PEOPLE_COLUMNS_MAX];
    size_t count;
};

static void add_columns(struct table *t, const struct json_node *row)
{
    for (const struct json_node *n = json_first(t->json, row); n; n = json_after(t->json, row, n)) {
        char name[64];
        size_t i = 0;
        people_text(t->json, n, name, sizeof(name));
        while (i < t->count && strcmp(t->columns[i].name, name) != 0)
            i++;
        if (i == PEOPLE_COLUMNS_MAX)
            continue;
        if (i == t->count) {
            memcpy(t->columns[i].name, name, sizeof(name));
            t->columns[i].width = characters(name);
            t->count++;
        }
        t->columns[i].nested |= !people_cell(t->json, json_value_of(n));
    }
}

static void drop_nested(struct table *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->count; i++)
        if (!t->columns[i].nested)
            t->columns[kept++] = t->columns[i];
    t->count = kept;
}

static void cell(const struct table *t, const struct json_node *row, size_t column, char text[CELL_SIZE])
{
    const struct json_node *value = json_member(t->json, row, t->columns[column].name);
    memcpy(text, "-", 2);
    if (value && plain(value))
        people_text(t->json, value, text, CELL_SIZE);
    else if (value && value->kind == JSON_ARRAY && value->count > 0)
        list_text(t->json, value, text, CELL_SIZE);
    shorten(text);
}

static void write_heading(struct json_sink *sink, const struct table *t, size_t indent)
{
    spaces(sink, indent);
    for (size_t i = 0; i < t->count; i++) {
        char name[64];
        memcpy(name, t->columns[i].name, sizeof(name));
        for (char *c = name; *c; c++)
            *c = *c == '_' ? ' ' : *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
        padded(sink, name, i + 1 < t->count ? t->columns[i].width + 2 : 0);
    }
    json_sink_text(sink, "\n");
}

static void write_table(struct json_sink *sink, struct table *t, size_t indent)
{
    char text[CELL_SIZE];
    const struct json_node *row = json_first(t->json, t->rows);
    for (; row; row = json_after(t->json, t->rows, row))
        add_columns(t, row);
    drop_nested(t);
    for (row = json_first(t->json, t->rows); row; row = json_after(t->json, t->rows, row))
        for (size_t i = 0; i < t->count; i++) {
            cell(t, row, i, text);
            size_t width = characters(text);
            t->columns[i].width = width > t->columns[i].width ? width : t->columns[i].width;
        }
    write_heading(sink, t, indent);
    for (row = json_first(t->json, t->rows); row; row = json_after(t->json, t->rows, row)) {
        spaces(sink, indent);
        for (size_t i = 0; i < t->count; i++) {
            cell(t, row, i, text);
            padded(sink, text, i + 1 < t->count ? t->columns[i].width + 2 : 0);
        }
        json_sink_text(sink, "\n");
    }
}

/* ---- everything else ---- */

static bool is_table(const struct json_text *json, const struct json_node *list)
{
    const struct json_node *e = json_first(json, list);
    if (!e)
        return false;
    for (; e; e = json_after(json, list, e))
        if (e->kind != JSON_OBJECT)
            return false;
    return true;
}

static void write_list(struct json_sink *sink, const struct json_text *json, const struct json_node *list)
{
    char text[CELL_SIZE];
    bool first = true;
    for (const struct json_node *e = json_first(json, list); e; e = json_after(json, list, e)) {
        people_text(json, e, text, sizeof(text));
        json_sink_text(sink, first ? "" : ", ");
        json_sink_text(sink, text);
        first = false;
    }
    json_sink_text(sink, first ? "-\n" : "\n");
}

static void write_object(struct json_sink *sink, const struct json_text *json, const struct json_node *object,
                         size_t depth);

static void write_member(struct json_sink *sink, const struct json_text *json, const struct json_node *name,
                         size_t width, size_t depth)
{
    const struct json_node *value = json_value_of(name);
    char text[1024];
    name_text(json, name, text, 64);
    spaces(sink, 2 * depth);
    if (value->kind == JSON_OBJECT && value->count > 0 && depth < DEPTH_MAX) {
        json_sink_text(sink, text);
        json_sink_text(sink, "\n");
        write_object(sink, json, value, depth + 1);
        return;
    }
    if (value->kind == JSON_ARRAY && is_table(json, value)) {
        struct table t = {.json = json, .rows = value};
        json_sink_text(sink, text);
        json_sink_text(sink, "\n");
        write_table(sink, &t, 2 * depth + 2);
        return;
    }
    padded(sink, text, width + 2);
    if (value->kind == JSON_ARRAY) {
        write_list(sink, json, value);
        return;
    }
    people_text(json, value, text, sizeof(text));
    json_sink_text(sink, value->kind == JSON_OBJECT ? "-" : text);
    json_sink_text(sink, "\n");
}

static void write_object(struct json_sink *sink, const struct json_text *json, const struct json_node *object,
                         size_t depth)
{
    size_t width = 0;
    for (const struct json_node *n = json_first(json, object); n; n = json_after(json, object, n)) {
        char text[64];
        name_text(json, n, text, sizeof(text));
        size_t length = characters(text);
        if (plain(json_value_of(n)) && length > width)
            width = length;
    }
    for (const struct json_node *n = json_first(json, object); n; n = json_after(json, object, n))
        write_member(sink, json, n, width, depth);
}

void people_write(struct json_sink *sink, const struct json_text *json, const struct json_node *node)
{
    char text[1024];
    if (node->kind == JSON_OBJECT) {
        write_object(sink, json, node, 0);
    } else if (node->kind == JSON_ARRAY && is_table(json, node)) {
        struct table t = {.json = json, .rows = node};
        write_table(sink, &t, 0);
    } else if (node->kind == JSON_ARRAY) {
        write_list(sink, json, node);
    } else {
        people_text(json, node, text, sizeof(text));
        json_sink_text(sink, text);
        json_sink_text(sink, "\n");
    }
}

void people_write_wide(struct json_sink *sink, const struct json_text *json, const struct json_node *node)
{
    cell_max = PEOPLE_WIDE_MAX;
    people_write(sink, json, node);
    cell_max = PEOPLE_CELL_MAX;
}
