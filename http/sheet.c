#include "http/sheet.h"

#include <string.h>

#include "http/paging.h"
#include "http/parameter.h"
#include "store/store.h"
#include "store/token.h"

void sheet_init(struct sheet *s, uint64_t limit)
{
    *s = (struct sheet){.limit = limit, .bytes = actor_alloc(SHEET_BYTES)};
}

bool sheet_take(const struct request *q, struct response *r, const struct sheet_list *list, struct sheet *s)
{
    char after[TOKEN_TEXT_MAX];
    uint64_t limit;
    if (!parameter_text(q, r, "after", after, sizeof(after)) ||
        !parameter_number(q, r, "limit", SHEET_USUAL, SHEET_MAX, &limit))
        return false;
    if (!store_here()) {
        response_error(r, ERROR_OPS_503_UNAVAILABLE, "there is no store");
        return false;
    }
    struct key from = {.size = 0};
    if (after[0] && token_open(store_here(), list->number, 0, after, strlen(after), &from) != OK) {
        response_error_field(r, ERROR_OPS_400_INVALID, "after",
                             "is no token of this list; it must be the next of an earlier answer");
        return false;
    }
    sheet_init(s, limit);
    s->from = from;
    return true;
}

bool sheet_passed(const struct sheet *s, struct span key)
{
    return span_equal(key, key_span(&s->from));
}

struct json *sheet_row(struct sheet *s)
{
    size_t comma = s->count > 0;
    s->more = s->more || s->count == s->limit || s->size + comma >= SHEET_BYTES;
    if (s->more)
        return NULL;
    json_sink_init(&s->sink, s->bytes + s->size + comma, SHEET_BYTES - s->size - comma, NULL, NULL);
    json_init(&s->json, &s->sink);
    return &s->json;
}

void sheet_keep(struct sheet *s, struct span key)
{
    size_t comma = s->count > 0;
    if (s->more)
        return;
    s->more = json_end(&s->json) != JSON_OK;
    if (s->more)
        return;
    if (comma)
        s->bytes[s->size] = ',';
    s->size += comma + s->sink.length;
    s->count++;
    s->last.size = 0;
    key_add(&s->last, key.bytes, key.size);
}

void sheet_write(const struct sheet *s, const char *name, struct json *json)
{
    json_key(json, name);
    json_array_begin(json);
    if (s->size)
        json_raw(json, s->bytes, s->size);
    json_array_end(json);
}

void sheet_answer(const struct request *q, struct response *r, const struct sheet_list *list,
                  const struct sheet *s)
{
    const struct key end = {.size = 0};
    struct paging_next next;
    struct json json;
    paging_go_on(q, r, "after", list->number, 0, s->more ? &s->last : &end, &next);
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    sheet_write(s, list->name, &json);
    paging_write_next(&json, "next", &next);
    json_object_end(&json);
}

void sheet_serve(const struct request *q, struct response *r, const struct sheet_list *list,
                 enum error (*read)(struct sheet *s), void (*refuse)(struct response *r, enum error e))
{
    struct sheet sheet;
    if (!sheet_take(q, r, list, &sheet))
        return;
    enum error e = read(&sheet);
    if (e)
        refuse(r, e);
    else
        sheet_answer(q, r, list, &sheet);
}
