#include "http/request.h"

#include <strings.h>

#include "http/json_text.h"
#include "http/url.h"
#include "runtime/actor.h"

#define NAME_MAX_SENT 128u /* a parameter's name that is longer is none of ours */

const char *method_name(enum method method)
{
    switch (method) {
#define X(name, bit)    \
    case METHOD_##name: \
        return #name;
        METHODS(X)
#undef X
    }
    return "";
}

bool request_query_is(struct span sent, const char *name)
{
    char room[NAME_MAX_SENT];
    size_t size;
    return url_decode(sent, room, sizeof(room), &size) && size == strlen(name) &&
           memcmp(room, name, size) == 0;
}

const char *request_query(const struct request *q, const char *name, char *room, size_t size, bool *ret_bad)
{
    struct span rest = q->query, sent, value, found = {NULL, 0};
    size_t length;
    *ret_bad = false;
    while (url_query_next(&rest, &sent, &value)) {
        if (!request_query_is(sent, name))
            continue;
        if (found.bytes) { /* which of the two was meant? */
            *ret_bad = true;
            return NULL;
        }
        found = value;
    }
    if (!found.bytes)
        return NULL;
    if (!url_decode(found, room, size - 1, &length)) {
        *ret_bad = true;
        return NULL;
    }
    room[length] = 0;
    return room;
}

struct span request_field(const struct request *q, const char *name)
{
    size_t length = strlen(name);
    for (uint32_t i = 0; i < q->fields_count; i++) {
        const struct field *field = &q->fields[i];
        if (field->name.size == length && strncasecmp(field->name.bytes, name, length) == 0)
            return field->value;
    }
    return span_of(NULL, 0);
}

const struct json_node *request_member(const struct request *q, const char *name)
{
    const struct json_node *root = q->json ? json_root(q->json) : NULL;
    return root && root->kind == JSON_OBJECT ? json_member(q->json, root, name) : NULL;
}

struct span request_text(const struct request *q, const char *name)
{
    const struct json_node *node = request_member(q, name);
    struct span text = {NULL, 0};
    if (!node || node->kind != JSON_STRING)
        return text;
    char *room = node->flags & JSON_ESCAPED ? actor_alloc(node->length) : NULL;
    return json_string_of(q->json, node, room, node->length, &text) ? text : span_of(NULL, 0);
}
