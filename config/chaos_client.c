#include "config/chaos_client.h"

#include <string.h>

int chaos_client_ask(const struct client *c, const struct client_request *q, struct chaos_answer *a)
{
    struct json_sink sink;
    struct json_error error;
    a->why[0] = 0;
    a->json = (struct json_text){.nodes = a->nodes, .nodes_max = CHAOS_ANSWER_NODES};
    json_sink_init(&sink, a->body, sizeof(a->body), NULL, NULL);
    int status = client_call(c, q, &sink, a->why, sizeof(a->why));
    if (status / 100 != 2 || sink.status != JSON_OK ||
        !json_text_read(&a->json, span_of(a->body, sink.length), NULL, &error))
        a->json.count = 0;
    return status;
}

bool chaos_answer_text(const struct chaos_answer *a, const char *name, char *room, size_t size)
{
    return a->json.count &&
           chaos_json_text(&a->json, chaos_json_at(&a->json, json_root(&a->json), name, NULL), room, size);
}

const struct json_node *chaos_json_at(const struct json_text *json, const struct json_node *from,
                                      const char *first, const char *second)
{
    const struct json_node *at = from;
    if (at && at->kind == JSON_OBJECT)
        at = json_member(json, at, first);
    else
        return NULL;
    if (!second || !at)
        return at;
    return at->kind == JSON_OBJECT ? json_member(json, at, second) : NULL;
}

bool chaos_json_text(const struct json_text *json, const struct json_node *string, char *room, size_t size)
{
    struct span text;
    if (!string || string->kind != JSON_STRING || !json_string_of(json, string, room, size, &text) ||
        text.size >= size)
        return false;
    memmove(room, text.bytes, text.size);
    room[text.size] = 0;
    return true;
}

uint64_t chaos_json_uint(const struct json_text *json, const struct json_node *number)
{
    uint64_t value = 0;
    return number && number->kind == JSON_NUMBER && json_uint64_of(json, number, &value) ? value : 0;
}
