#define _GNU_SOURCE /* memmem */
#include "tests/support/exchange.h"

#include <stdio.h>
#include <string.h>

#include "runtime/assert.h"
#include "store/store.h"
#include "store/view.h"

const struct route *exchange_route(const struct route *routes, size_t count, enum method method,
                                   const char *path)
{
    size_t i = 0;
    while (i < count && (routes[i].method != method || strcmp(routes[i].path, path) != 0))
        i++;
    ASSERT(i < count);
    return &routes[i];
}

static void read_json(struct json_text *json, struct json_node *nodes, struct span text)
{
    struct json_error error;
    *json = (struct json_text){.nodes = nodes, .nodes_max = 256, .seed = 1};
    ASSERT(json_text_read(json, text, NULL, &error));
}

void exchange_begin(struct exchange *x, const struct route *route, const char *param, const char *body)
{
    static const char address[] = {10, 0, 0, 1};
    memset(&x->q, 0, sizeof(x->q));
    memset(&x->r, 0, sizeof(x->r));
    x->q.method = route->method;
    x->q.route = route;
    x->q.address = span_of(address, sizeof(address));
    x->q.params[0] = span_text(param ? param : "");
    x->r.request = &x->q;
    x->r.surface = route->surface;
    if (body) {
        x->q.body = span_text(body);
        read_json(&x->sent, x->sent_nodes, x->q.body);
        x->q.json = &x->sent;
    }
}

/* Whoever answers closes what he has opened: a view would stay until the connection ends, and there are not many. */
void exchange_serve(struct exchange *x)
{
    const struct route *route = x->q.route;
    const struct store *store = store_here();
    uint32_t views = store ? views_count(store) : 0;
    if (!route->precheck || !x->q.json || route->precheck(&x->q, &x->r) == ERROR_NONE)
        route->serve(&x->q, &x->r);
    ASSERT(x->r.status != 0 && !x->r.head_sent);
    ASSERT(!store || views_count(store) <= views);
    read_json(&x->answer, x->answer_nodes, span_of(x->r.body, x->r.sink.length));
}

const char *exchange_member(const struct exchange *x, const char *names)
{
    static char text[512];
    const struct json_node *node = json_root(&x->answer);
    char name[64];
    while (node && *names) {
        size_t length = strcspn(names, ".");
        ASSERT(length < sizeof(name));
        memcpy(name, names, length);
        name[length] = 0;
        names += length + (names[length] == '.');
        node = node->kind == JSON_OBJECT ? json_member(&x->answer, node, name) : NULL;
    }
    if (!node)
        return "";
    struct span raw = json_raw_of(&x->answer, node);
    if (node->kind == JSON_STRING)
        raw = span_of((const char *)raw.bytes + 1, raw.size - 2);
    snprintf(text, sizeof(text), "%.*s", (int)raw.size, (const char *)raw.bytes);
    return text;
}

bool exchange_has_header(const struct exchange *x, const char *line)
{
    char wanted[256];
    int length = snprintf(wanted, sizeof(wanted), "%s\r\n", line);
    return memmem(x->r.headers, x->r.headers_length, wanted, (size_t)length) != NULL;
}
