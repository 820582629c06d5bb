#include "http/paging.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/url.h"
#include "runtime/hash.h"
#include "store/store.h"

static bool refuse(struct response *r, const char *name, const char *what)
{
    bool jobs = r->surface == SURFACE_JOBS;
    response_error_field(
        r, jobs ? ERROR_RFA_REQUEST_MALFORMED : catalogue_code(r->surface, ERROR_KIND_INVALID), name, what);
    return false;
}

/* NULL: absent, or *ret_bad. */
static const char *value_of(const struct request *q, const char *name, char *room, size_t size, bool *ret_bad)
{
    *ret_bad = false;
    return q->query.size ? request_query(q, name, room, size, ret_bad) : NULL;
}

bool paging_take_limit(const struct request *q, struct response *r, uint32_t usual, uint32_t most,
                       uint32_t *ret_limit)
{
    char room[12], what[64], *end = room;
    bool bad;
    const char *text = value_of(q, "limit", room, sizeof(room), &bad);
    unsigned long long value = usual;
    if (text)
        value = strtoull(text, &end, 10);
    *ret_limit = (uint32_t)value;
    if (!bad && (!text || (text[0] >= '0' && text[0] <= '9' && *end == 0 && value >= 1 && value <= most)))
        return true;
    snprintf(what, sizeof(what), "must be a whole number from 1 to %u", most);
    return refuse(r, "limit", what);
}

bool paging_take_word(const struct request *q, struct response *r, const char *name,
                      const char *(*word_of)(uint8_t number), uint8_t count, uint8_t *ret_number)
{
    char room[32], what[256] = "must be one of";
    size_t length = strlen(what);
    bool bad;
    const char *text = value_of(q, name, room, sizeof(room), &bad);
    *ret_number = 0;
    if (!text && !bad)
        return true;
    for (uint8_t i = 0; i < count; i++) {
        const char *word = word_of(i);
        if (!word)
            continue;
        if (!bad && strcmp(word, text) == 0) {
            *ret_number = (uint8_t)(i + 1);
            return true;
        }
        int n = snprintf(what + length, sizeof(what) - length, " %s", word);
        length += n > 0 && length + (size_t)n < sizeof(what) ? (size_t)n : 0;
    }
    return refuse(r, name, what);
}

bool paging_take_id(const struct request *q, struct response *r, const char *name, struct uuid *ret_id,
                    bool *ret_there)
{
    char room[UUID_TEXT_SIZE + 1];
    bool bad;
    const char *text = value_of(q, name, room, sizeof(room), &bad);
    *ret_there = text != NULL;
    if (!bad && (!text || uuid_parse(text, strlen(text), ret_id)))
        return true;
    return refuse(r, name, "must be a UUID");
}

bool paging_take_cursor(const struct request *q, struct response *r, const char *name, uint16_t list,
                        uint64_t filter, uint8_t size, struct key *ret_key)
{
    char room[TOKEN_TEXT_MAX];
    bool bad;
    const char *text = value_of(q, name, room, sizeof(room), &bad);
    ret_key->size = 0;
    if (!bad && !text)
        return true;
    if (!bad && token_open(store_here(), list, filter, text, strlen(text), ret_key) == OK &&
        ret_key->size == size)
        return true;
    return refuse(r, name, "is not where an earlier answer of this list said that it goes on");
}

uint64_t paging_filter(const void *bytes, size_t size)
{
    struct hash_key key;
    memcpy(&key, store_here()->secret, sizeof(key));
    return hash_sip24(&key, bytes, size);
}

/* ---- where it goes on ---- */

/* What may stand between < and > as it is (RFC 3986); the rest of a query is escaped. */
static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("-._~!$'()*+,;:@/?%=&", c));
}

static void add_text(struct json_sink *sink, const char *bytes, size_t size)
{
    char escaped[4];
    for (size_t i = 0; i < size; i++) {
        if (is_plain(bytes[i])) {
            json_sink_bytes(sink, &bytes[i], 1);
            continue;
        }
        snprintf(escaped, sizeof(escaped), "%%%02X", (unsigned)(unsigned char)bytes[i]);
        json_sink_bytes(sink, escaped, 3);
    }
}

/* The query without this parameter. */
static void add_query(struct json_sink *sink, struct span query, const char *name)
{
    struct span sent, value;
    while (query.size && url_query_next(&query, &sent, &value)) {
        if (request_query_is(sent, name))
            continue;
        add_text(sink, sent.bytes, sent.size);
        json_sink_text(sink, "=");
        add_text(sink, value.bytes, value.size);
        json_sink_text(sink, "&");
    }
}

void paging_link(const struct request *q, struct response *r, const char *name, struct span place)
{
    char text[PAGING_LINK_MAX];
    struct json_sink sink;
    json_sink_init(&sink, text, sizeof(text), NULL, NULL);
    add_query(&sink, q->query, name);
    json_sink_text(&sink, name);
    json_sink_text(&sink, "=");
    add_text(&sink, place.bytes, place.size);
    bool fits = sink.status == JSON_OK && sink.length + 32 < sizeof(r->headers) - r->headers_length;
    if (fits)
        response_header(r, "Link", "<?%.*s>; rel=\"next\"", (int)sink.length, text);
}

void paging_go_on(const struct request *q, struct response *r, const char *name, uint16_t list,
                  uint64_t filter, const struct key *key, struct paging_next *ret)
{
    ret->size = key->size ? (uint32_t)token_seal(store_here(), list, filter, key_span(key), ret->text) : 0;
    if (ret->size)
        paging_link(q, r, name, span_of(ret->text, ret->size));
}

void paging_write_next(struct json *json, const char *name, const struct paging_next *next)
{
    json_key(json, name);
    if (next->size)
        json_string_n(json, next->text, next->size);
    else
        json_null(json);
}
