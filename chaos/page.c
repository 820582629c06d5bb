#include "chaos/page.h"

#include <stdio.h>

#include "runtime/hash.h"

static struct json_node nodes[PAGES][JSON_TEXT_NODES_MAX];
static struct page pages[PAGES];

const struct page *page_read(int which, struct span text)
{
    struct page *page = &pages[which];
    struct json_error error;
    page->json = (struct json_text){.nodes = nodes[which], .nodes_max = JSON_TEXT_NODES_MAX, .seed = 7};
    return json_text_read(&page->json, text, NULL, &error) ? page : NULL;
}

const struct json_node *page_member(const struct page *page, const struct json_node *object, const char *name)
{
    return page_is(object, JSON_OBJECT) ? json_member(&page->json, object, name) : NULL;
}

uint32_t page_members(const struct json_node *object)
{
    return page_is(object, JSON_OBJECT) ? object->count : 0;
}

bool page_text(const struct page *page, const struct json_node *object, const char *name, char *room,
               size_t size)
{
    const struct json_node *node = page_member(page, object, name);
    char escaped[512];
    struct span text;
    room[0] = 0;
    if (!page_is(node, JSON_STRING) || !json_string_of(&page->json, node, escaped, sizeof(escaped), &text) ||
        text.size >= size)
        return false;
    memcpy(room, text.bytes, text.size);
    room[text.size] = 0;
    return true;
}

bool page_number(const struct page *page, const struct json_node *object, const char *name, uint64_t *ret)
{
    const struct json_node *node = page_member(page, object, name);
    return page_is(node, JSON_NUMBER) && json_uint64_of(&page->json, node, ret);
}

bool page_flag(const struct page *page, const struct json_node *object, const char *name)
{
    return page_is(page_member(page, object, name), JSON_TRUE);
}

bool page_uuid(const struct page *page, const struct json_node *object, const char *name, struct uuid *ret)
{
    char text[UUID_TEXT_SIZE], again[UUID_TEXT_SIZE];
    if (!page_text(page, object, name, text, sizeof(text)) || !uuid_parse(text, strlen(text), ret))
        return false;
    uuid_format(ret, again); /* in lower case, as the contract wants them */
    return strcmp(text, again) == 0;
}

bool page_time(const struct page *page, const struct json_node *object, const char *name, uint64_t *ret_ms)
{
    char text[40];
    return page_text(page, object, name, text, sizeof(text)) && time_parse(text, ret_ms);
}

/* ---- times ---- */

/* Days since 1970, by counting years from March. */
static uint64_t days_of(unsigned year, unsigned month, unsigned day)
{
    unsigned y = month <= 2 ? year - 1 : year, of_era = y % 400, shifted = (month + 9) % 12;
    unsigned of_year = (153 * shifted + 2) / 5 + day - 1;
    return (uint64_t)(y / 400) * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

bool time_parse(const char *text, uint64_t *ret_ms)
{
    unsigned year, month, day, hour, minute, second, ms = 0;
    int end = 0;
    if (sscanf(text, "%4u-%2u-%2uT%2u:%2u:%2u%n", &year, &month, &day, &hour, &minute, &second, &end) != 6 ||
        end != 19)
        return false;
    const char *rest = text + end;
    if (*rest == '.') {
        unsigned scale = 100;
        for (rest++; *rest >= '0' && *rest <= '9'; rest++, scale /= 10)
            ms += (unsigned)(*rest - '0') * scale;
    }
    if (strcmp(rest, "Z") != 0 || year < 1970 || month < 1 || month > 12 || day < 1 || day > 31 ||
        hour > 23 || minute > 59 || second > 59)
        return false;
    *ret_ms = ((days_of(year, month, day) * 24 + hour) * 60 + minute) * 60000 + second * 1000 + ms;
    return true;
}

/* ---- prints ---- */

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t both[2] = {a, b};
    return hash_sip24(&(struct hash_key){1, 2}, both, sizeof(both));
}

static uint64_t raw_print(const struct page *page, const struct json_node *node)
{
    struct span raw = json_raw_of(&page->json, node);
    return hash_sip24(&(struct hash_key){1, 2}, raw.bytes, raw.size);
}

static bool among(const struct page *page, const struct json_node *name, const char *const *names)
{
    struct span raw = json_raw_of(&page->json, name); /* in its quotes */
    for (; names && *names; names++)
        if (raw.size == strlen(*names) + 2 && memcmp((const char *)raw.bytes + 1, *names, raw.size - 2) == 0)
            return true;
    return false;
}

/* Recursive: as deep as the text. */
uint64_t page_print(const struct page *page, const struct json_node *node, const char *const *except)
{
    const struct json_text *json = &page->json;
    if (!node)
        return 0;
    uint64_t print = node->kind;
    if (node->kind == JSON_OBJECT) {
        for (const struct json_node *n = json_first(json, node); n; n = json_after(json, node, n))
            if (!among(page, n, except))
                print += mix(raw_print(page, n), page_print(page, json_value_of(n), NULL));
        return mix(print, JSON_OBJECT);
    }
    if (node->kind == JSON_ARRAY) {
        for (const struct json_node *n = json_first(json, node); n; n = json_after(json, node, n))
            print = mix(print, page_print(page, n, NULL));
        return print;
    }
    return raw_print(page, node);
}
