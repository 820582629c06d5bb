#include "config/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/assert.h"

static int too_many(const struct file_entry *e, const char *what, uint32_t most, char *text, size_t text_size)
{
    snprintf(text, text_size, "%s:%u: %s for more than %u of them", e->path, e->line, what, most);
    return EXIT_CONFIG;
}

static int add_override(struct settings *s, const struct file_entry *e, struct span name, char *text,
                        size_t text_size)
{
    struct uuid client;
    uint32_t at = 0;
    ASSERT(uuid_parse(name.bytes, name.size, &client));
    while (at < s->overrides_count && memcmp(s->overrides[at].key, &client, sizeof(client)) != 0)
        at++;
    if (at == SETTINGS_OVERRIDES_MAX)
        return too_many(e, "limits of clients", SETTINGS_OVERRIDES_MAX, text, text_size);
    s->overrides[at] = (struct limiter_override){
        .limit = LIMIT_CLIENT, .quota = (uint32_t)strtoul(e->value, NULL, 10), .key_size = sizeof(client)};
    memcpy(s->overrides[at].key, &client, sizeof(client));
    s->overrides_count += at == s->overrides_count;
    return 0;
}

static int add_template(struct settings *s, const struct file_entry *e, const struct span names[], char *text,
                        size_t text_size)
{
    uint32_t at = 0, tier = (uint32_t)(*(const char *)names[1].bytes - 'A');
    while (at < s->templates_count && !span_equal(span_text(s->templates[at].id), names[0]))
        at++;
    if (at == SETTINGS_TEMPLATES_MAX)
        return too_many(e, "templates of agents", SETTINGS_TEMPLATES_MAX, text, text_size);
    if (at == s->templates_count) {
        s->templates[at] = (struct agent_template){.id = {0}};
        memcpy(s->templates[at].id, names[0].bytes, names[0].size);
        s->templates_count++;
    }
    s->templates[at].seconds[tier] = (uint32_t)strtoul(e->value, NULL, 10);
    return 0;
}

/* What there is one of per name. The later one of two for the same name counts. */
static int collect_named(struct settings *s, char *text, size_t text_size)
{
    int status = 0;
    s->overrides_count = s->templates_count = 0;
    for (uint32_t i = 0; i < s->file.count && status == 0; i++) {
        const struct file_entry *e = &s->file.entries[i];
        struct option_named named;
        if (!option_named(e->key, &named))
            continue;
        status = named.family == FAMILY_CLIENT_LIMIT ? add_override(s, e, named.names[0], text, text_size)
                                                     : add_template(s, e, named.names, text, text_size);
    }
    return status;
}

static bool is_default(const struct options *o, enum option_position position)
{
    return o->sources[position].kind == SOURCE_DEFAULT;
}

/* Without what is wrong in the file: is it still known which server, or which store, is meant? 0, or the refusal. */
static int still_meant(const struct settings *s, char *text, size_t text_size)
{
    const struct options *o = &s->options;
    bool server = is_default(o, OPTION_url) && is_default(o, OPTION_operator_listen);
    if (FOR_DATA >> o->command & 1 && is_default(o, OPTION_store_dir))
        snprintf(text, text_size, "which store is meant can't be known, --store-dir says it: %s", s->damage);
    else if ((FOR_CHANGE | FOR(CHAOS_RUN)) >> o->command & 1 && server)
        snprintf(text, text_size,
                 "which server is meant can't be known, --operator-listen or --url says it: %s", s->damage);
    else
        return 0;
    return EXIT_CONFIG;
}

/* For commands that need little of the file. */
static int load_forgiving(struct settings *s, int argc, char *const argv[], char *const environment[],
                          char *text, size_t text_size)
{
    if (s->path[0] && !file_read(&s->file, s->path, text, text_size))
        snprintf(s->damage, sizeof(s->damage), "%s", text);
    int status = options_parse_forgiving(&s->file, &s->options, argc, argv, environment, text, text_size,
                                         s->damage, sizeof(s->damage));
    return status || !s->damage[0] ? status : still_meant(s, text, text_size);
}

int settings_load(struct settings *ret, int argc, char *const argv[], char *const environment[], char *text,
                  size_t text_size)
{
    struct options *o = &ret->options;
    int status = options_peek(o, argc, argv, environment, text, text_size);
    if (status)
        return status;
    ret->path[0] = 0;
    ret->damage[0] = 0;
    ret->file.count = ret->file.files_count = 0;
    bool reads = option_table[OPTION_config].commands >> o->command & 1;
    bool server = FOR_SERVER >> o->command & 1;
    if (reads && *o->config) {
        if (strlen(o->config) >= sizeof(ret->path)) {
            snprintf(text, text_size, "--config has more than %zu bytes", sizeof(ret->path) - 1);
            return EXIT_CONFIG;
        }
        memcpy(ret->path, o->config, strlen(o->config) + 1);
    } else if (!reads || !file_default_path(environment, geteuid() == 0, ret->path, sizeof(ret->path)) ||
               (!server && access(ret->path, R_OK) != 0 && errno == EACCES)) {
        ret->path[0] = 0;
    }
    if (!server)
        return load_forgiving(ret, argc, argv, environment, text, text_size);
    if (ret->path[0] && !file_read(&ret->file, ret->path, text, text_size))
        return EXIT_CONFIG;
    status = options_parse_with(&ret->file, o, argc, argv, environment, text, text_size);
    return status ? status : collect_named(ret, text, text_size);
}

void settings_limiter(const struct settings *settings, struct limiter_options *ret)
{
    *ret = (struct limiter_options){.style = limiter_style(settings->options.limits_headers),
                                    .overrides = settings->overrides,
                                    .overrides_count = settings->overrides_count};
    ret->quota[LIMIT_CLIENT] = (uint32_t)settings->options.limits_requests_per_minute;
    ret->quota[LIMIT_SUBJECT] = (uint32_t)settings->options.limits_subject;
    ret->quota[LIMIT_REGISTER] = (uint32_t)settings->options.limits_anonymous_requests_per_minute;
    ret->quota[LIMIT_ADDRESS] = (uint32_t)settings->options.limits_address;
}

/* ---- for readers ---- */

static bool shown(const struct option *o, const struct options *options, enum source_kind source)
{
    return option_is_setting(o) && (o->commands & FOR(SERVE)) &&
           (source == SOURCE_COUNT || options->sources[o - option_table].kind == source);
}

static void place_of(const struct option *o, const struct source *source, char *text, size_t size)
{
    char name[OPTION_NAME_SIZE] = "";
    if (source->kind == SOURCE_FILE) {
        snprintf(text, size, "%s:%u", source->file, source->line);
        return;
    }
    if (source->kind == SOURCE_ENVIRONMENT)
        option_variable(o, name);
    else if (source->kind == SOURCE_FLAG)
        option_flag(o, name);
    snprintf(text, size, "%s", name);
}

static void write_value(struct json *json, const struct option *o, const struct options *options)
{
    char value[OPTION_VALUE_SIZE];
    option_show(o, options, value);
    json_key(json, "value");
    if (o->kind == KIND_COUNT || o->kind == KIND_DECIMAL || o->kind == KIND_FLAG)
        json_raw(json, value, strlen(value));
    else
        json_string(json, value);
}

/* Of a key that there is one of per name, and that counts: the last of its name. */
static const struct option_family_row *family_of(const struct file *file, uint32_t position,
                                                 enum source_kind source)
{
    const struct file_entry *e = &file->entries[position];
    struct option_named named;
    if ((source != SOURCE_COUNT && source != SOURCE_FILE) || !option_named(e->key, &named))
        return NULL;
    for (uint32_t i = position + 1; i < file->count; i++)
        if (strcmp(file->entries[i].key, e->key) == 0)
            return NULL;
    return &option_families[named.family];
}

/* Those that a reload applies, or those that it doesn't. */
static void write_families_json(struct json *json, const struct file *file, bool reloadable,
                                enum source_kind source)
{
    char place[640];
    for (uint32_t i = 0; i < file->count; i++) {
        const struct file_entry *e = &file->entries[i];
        const struct option_family_row *row = family_of(file, i, source);
        if (!row || ((row->marks & MARK_RELOAD) != 0) != reloadable)
            continue;
        snprintf(place, sizeof(place), "%s:%u", e->path, e->line);
        json_object_begin(json);
        JSON_MEMBER(json, "key", string, e->key);
        json_key(json, "value");
        json_raw(json, e->value, strlen(e->value));
        JSON_MEMBER(json, "source", string, source_name(SOURCE_FILE));
        JSON_MEMBER(json, "at", string, place);
        JSON_MEMBER(json, "reloadable", bool, row->marks &MARK_RELOAD);
        json_object_end(json);
    }
}

void settings_write_json(struct json *json, const struct options *options, const struct file *file,
                         const struct file *started, enum source_kind source)
{
    char place[640];
    json_object_begin(json);
    json_key(json, "settings");
    json_array_begin(json);
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *o = &option_table[i];
        if (!shown(o, options, source))
            continue;
        place_of(o, &options->sources[i], place, sizeof(place));
        json_object_begin(json);
        JSON_MEMBER(json, "key", string, o->key);
        write_value(json, o, options);
        JSON_MEMBER(json, "source", string, source_name(options->sources[i].kind));
        JSON_MEMBER(json, "at", string, place[0] ? place : NULL);
        JSON_MEMBER(json, "reloadable", bool, o->marks &MARK_RELOAD);
        json_object_end(json);
    }
    write_families_json(json, file, true, source);
    write_families_json(json, started, false, source);
    json_array_end(json);
    json_object_end(json);
}

void settings_write_text(struct json_sink *sink, const struct options *options, const struct file *file,
                         enum source_kind source)
{
    char line[1024], value[OPTION_VALUE_SIZE], place[640];
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *o = &option_table[i];
        if (!shown(o, options, source))
            continue;
        option_show(o, options, value);
        place_of(o, &options->sources[i], place, sizeof(place));
        snprintf(line, sizeof(line), "%-34s %-22s %s%s%s\n", o->key, *value ? value : "-",
                 source_name(options->sources[i].kind), *place ? " " : "", place);
        json_sink_text(sink, line);
    }
    for (uint32_t i = 0; i < file->count; i++) {
        const struct file_entry *e = &file->entries[i];
        if (!family_of(file, i, source))
            continue;
        snprintf(line, sizeof(line), "%-34s %-22s %s %s:%u\n", e->key, e->value, source_name(SOURCE_FILE),
                 e->path, e->line);
        json_sink_text(sink, line);
    }
}

/* ---- the schema: a key may be written with dots, in nested objects, or both ---- */

static void write_words(struct json *json, const char *words)
{
    json_key(json, "enum");
    json_array_begin(json);
    while (*words) {
        size_t length = strcspn(words, "|");
        json_string_n(json, words, length);
        words += length + (words[length] == '|');
    }
    json_array_end(json);
}

static void write_levels(struct json *json)
{
    json_key(json, "enum");
    json_array_begin(json);
    for (int i = 0; i < LOG_LEVEL_COUNT; i++)
        json_string(json, log_level_name((enum log_level)i));
    json_array_end(json);
}

static void write_default(struct json *json, const struct option *o)
{
    json_key(json, "default");
    if (o->kind == KIND_COUNT || o->kind == KIND_DECIMAL || o->kind == KIND_FLAG)
        json_raw(json, o->preset, strlen(o->preset));
    else
        json_string(json, o->preset);
}

static void write_type(struct json *json, const struct option *o)
{
    char right[160];
    option_right(o, right, sizeof(right));
    JSON_MEMBER(json, "type", string,
                o->kind == KIND_COUNT     ? "integer"
                : o->kind == KIND_DECIMAL ? "number"
                : o->kind == KIND_FLAG    ? "boolean"
                                          : "string");
    if (o->kind == KIND_COUNT) {
        JSON_MEMBER(json, "minimum", uint, o->min);
        JSON_MEMBER(json, "maximum", uint, o->max);
    } else if (o->kind == KIND_DECIMAL) {
        json_key(json, "minimum");
        json_decimal(json, (int64_t)o->min, 6);
        json_key(json, "maximum");
        json_decimal(json, (int64_t)o->max, 6);
    } else if (o->kind == KIND_CHOICE) {
        write_words(json, o->unit);
    } else if (o->kind == KIND_LEVEL) {
        write_levels(json);
    } else if (o->kind == KIND_DURATION) {
        JSON_MEMBER(json, "pattern", string, "^([0-9]+(ns|us|ms|s|m|h|d))+$");
    } else if (o->kind == KIND_SIZE) {
        JSON_MEMBER(json, "pattern", string, "^([0-9]+(B|KiB|MiB|GiB|TiB))+$");
    }
    JSON_MEMBER(json, "description", string, o->prose);
    JSON_MEMBER(json, "$comment", string, right);
    write_default(json, o);
}

/* By its other name it is a whole number. */
static void write_other(struct json *json, const struct option_other *other)
{
    uint64_t unit = other->unit, least = other->option->min;
    char right[160];
    option_other_right(other, right, sizeof(right));
    json_object_begin(json);
    JSON_MEMBER(json, "type", string, "integer");
    JSON_MEMBER(json, "minimum", uint, least / unit + (least % unit != 0));
    JSON_MEMBER(json, "maximum", uint, other->option->max / unit);
    JSON_MEMBER(json, "description", string, other->option->prose);
    JSON_MEMBER(json, "$comment", string, right);
    json_object_end(json);
}

/* Where a setting may be several, a list of texts is as good as the texts with commas between them. */
static void write_setting(struct json *json, const struct option *o)
{
    json_object_begin(json);
    if (!(o->marks & MARK_LIST)) {
        write_type(json, o);
        json_object_end(json);
        return;
    }
    json_key(json, "oneOf");
    json_array_begin(json);
    json_object_begin(json);
    write_type(json, o);
    json_object_end(json);
    json_object_begin(json);
    JSON_MEMBER(json, "type", string, "array");
    json_key(json, "items");
    json_object_begin(json);
    JSON_MEMBER(json, "type", string, "string");
    json_object_end(json);
    json_object_end(json);
    json_array_end(json);
    json_object_end(json);
}

/* Names of settings: their own, then the others. */
#define NAMES_COUNT ((size_t)OPTION_COUNT + OTHER_COUNT)

static const char *name_at(size_t position)
{
    return position < OPTION_COUNT ? option_table[position].key : option_others[position - OPTION_COUNT].key;
}

static void write_at(struct json *json, size_t position)
{
    if (position < OPTION_COUNT)
        write_setting(json, &option_table[position]);
    else
        write_other(json, &option_others[position - OPTION_COUNT]);
}

static bool below(size_t position, const char *prefix, size_t length)
{
    return (position >= OPTION_COUNT || option_is_setting(&option_table[position])) &&
           strncmp(name_at(position), prefix, length) == 0;
}

/* Does an earlier row have the same first part behind the prefix? */
static bool part_seen(size_t position, const char *prefix, size_t length, size_t part)
{
    const char *key = name_at(position);
    for (size_t i = 0; i < position; i++)
        if (below(i, prefix, length) && strncmp(name_at(i), key, length + part) == 0 &&
            name_at(i)[length + part] == '.')
            return true;
    return false;
}

/* NAMES_COUNT: there is none. */
static size_t exact(const char *key, size_t length)
{
    for (size_t i = 0; i < NAMES_COUNT; i++)
        if (below(i, "", 0) && strlen(name_at(i)) == length && memcmp(name_at(i), key, length) == 0)
            return i;
    return NAMES_COUNT;
}

/* ---- in the schema: keys of which there is one per name ---- */

static bool is_name_part(const char *part)
{
    return *part >= 'A' && *part <= 'Z';
}

/* What stands below a part of the key; `rest` is what follows it, or empty. As deep as such a key has parts: four. */
static void write_named(struct json *json, const struct option_family_row *row, const char *rest)
{
    char name[OPTION_NAME_SIZE];
    size_t part = strcspn(rest, ".");
    json_object_begin(json);
    JSON_MEMBER(json, "type", string, *rest ? "object" : "integer");
    if (!*rest) {
        JSON_MEMBER(json, "minimum", uint, row->min);
        JSON_MEMBER(json, "maximum", uint, row->max);
        JSON_MEMBER(json, "description", string, row->prose);
        json_object_end(json);
        return;
    }
    snprintf(name, sizeof(name), "%.*s", (int)part, rest);
    rest += part + (rest[part] == '.');
    if (is_name_part(name)) {
        json_key(json, "additionalProperties");
        write_named(json, row, rest);
    } else {
        JSON_MEMBER(json, "additionalProperties", bool, false);
        json_key(json, "properties");
        json_object_begin(json);
        json_key(json, name);
        write_named(json, row, rest);
        json_object_end(json);
    }
    json_object_end(json);
}

/* Those below the prefix that no setting's object holds. */
static void write_families(struct json *json, const char *prefix, size_t length)
{
    for (size_t i = 0; i < FAMILY_COUNT; i++) {
        const struct option_family_row *row = &option_families[i];
        char name[OPTION_NAME_SIZE];
        bool held = false;
        if (strncmp(row->key, prefix, length) != 0)
            continue;
        size_t part = strcspn(row->key + length, ".");
        for (size_t k = 0; k < NAMES_COUNT; k++)
            held |= below(k, row->key, length + part + 1);
        if (held)
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)part, row->key + length);
        json_key(json, name);
        write_named(json, row, row->key + length + part + 1);
    }
}

/* The same with dots. */
static void write_patterns(struct json *json)
{
    json_key(json, "patternProperties");
    json_object_begin(json);
    for (size_t i = 0; i < FAMILY_COUNT; i++) {
        const struct option_family_row *row = &option_families[i];
        char pattern[2 * OPTION_NAME_SIZE + 64] = "^";
        size_t used = 1;
        for (const char *at = row->key; *at;) {
            size_t part = strcspn(at, ".");
            used += (size_t)snprintf(pattern + used, sizeof(pattern) - used, "%.*s%s",
                                     is_name_part(at) ? 5 : (int)part, is_name_part(at) ? "[^.]+" : at,
                                     at[part] ? "\\." : "$");
            at += part + (at[part] == '.');
        }
        json_key(json, pattern);
        write_named(json, row, "");
    }
    json_object_end(json);
}

/* As deep as a key has dots: three. */
static void write_object(struct json *json, const char *prefix, size_t length)
{
    json_object_begin(json);
    if (length == 0) {
        JSON_MEMBER(json, "$schema", string, "https://json-schema.org/draft/2020-12/schema");
        JSON_MEMBER(json, "title", string, "Settings of coppice");
    }
    JSON_MEMBER(json, "type", string, "object");
    JSON_MEMBER(json, "additionalProperties", bool, false);
    if (length == 0)
        write_patterns(json);
    json_key(json, "properties");
    json_object_begin(json);
    for (size_t i = 0; i < NAMES_COUNT; i++) {
        const char *key = name_at(i);
        if (!below(i, prefix, length))
            continue;
        const char *rest = key + length;
        size_t part = strcspn(rest, ".");
        char name[OPTION_NAME_SIZE];
        snprintf(name, sizeof(name), "%.*s", (int)part, rest);
        size_t same = exact(key, length + part);
        if (rest[part] && !part_seen(i, prefix, length, part)) {
            json_key(json, name);
            if (same < NAMES_COUNT) { /* "guardian": true, and "guardian": {"intensity": ...} */
                json_object_begin(json);
                json_key(json, "anyOf");
                json_array_begin(json);
                write_at(json, same);
            }
            write_object(json, key, length + part + 1);
            if (same < NAMES_COUNT) {
                json_array_end(json);
                json_object_end(json);
            }
        }
        bool shadowed = false; /* the setting stands beside its object already */
        for (size_t k = 0; k < NAMES_COUNT && !rest[part]; k++)
            shadowed |= below(k, key, strlen(key)) && name_at(k)[strlen(key)] == '.';
        if (!shadowed) {
            json_key(json, rest);
            write_at(json, i);
        }
    }
    write_families(json, prefix, length);
    json_object_end(json);
    json_object_end(json);
}

void settings_write_schema(struct json *json)
{
    write_object(json, "", 0);
}
