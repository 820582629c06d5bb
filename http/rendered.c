#include "http/rendered.h"

#include "runtime/actor.h"

struct rendered *rendered_new(void)
{
    STATIC_ASSERT(sizeof(struct rendered) <= RENDERED_ROOM - 128, "it fits into one block");
    struct rendered *r = actor_alloc(sizeof(*r));
    rendered_clear(r);
    return r;
}

void rendered_clear(struct rendered *r)
{
    r->count = 0;
    json_sink_init(&r->sink, r->room, sizeof(r->room), NULL, NULL);
}

static uint32_t end_of(const struct rendered *r)
{
    return r->count ? r->ends[r->count - 1] : 0;
}

struct json *rendered_begin(struct rendered *r)
{
    json_init(&r->json, &r->sink);
    return &r->json;
}

bool rendered_end(struct rendered *r)
{
    if (json_end(&r->json) == JSON_OK && r->count < RENDERED_MAX) {
        r->ends[r->count++] = (uint32_t)r->sink.length;
        return true;
    }
    r->sink.length = end_of(r);
    r->sink.status = JSON_OK;
    return false;
}

void rendered_write(const struct rendered *r, struct json *json)
{
    for (uint32_t i = 0, begin = 0; i < r->count; begin = r->ends[i++])
        json_raw(json, r->room + begin, r->ends[i] - begin);
}
