#define _GNU_SOURCE /* memrchr */
#include "http/route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/url.h"
#include "runtime/assert.h"

enum {
    METHOD_BITS = 7,
    NODES_MAX = 1024,
    NONE = 0 /* node 0 is the root, end 0 is nobody's: as a link each is none */
};

/* What a path takes, once all its segments have matched: per verb one of these. */
struct end {
    const char *verb; /* "" when there is none */
    uint32_t verb_length;
    uint32_t allowed; /* methods */
    uint8_t surface;  /* of the first of its routes */
    const struct route *routes[METHOD_BITS];
    const struct contract_operation *operations[METHOD_BITS], *twins[METHOD_BITS];
    uint16_t next;
};

/* One segment. Literal children are a list; the child that takes any segment stands apart. */
struct node {
    const char *literal; /* borrowed from the tables */
    uint32_t length;
    uint16_t sibling, child, any, end;
    uint8_t surface; /* of the first route that came this way */
};

struct routes {
    size_t nodes_count, ends_count, count;
    enum surface surface; /* of what nobody owns */
    const struct route *list[ROUTES_MAX];
    struct node nodes[NODES_MAX];
    struct end ends[ROUTES_MAX + 1];
};

static unsigned bit_of(enum method method)
{
    return (unsigned)__builtin_ctz((unsigned)method);
}

/* ---- compiling ---- */

/* The next segment of a template behind its '/'; false at its end. */
static bool next_segment(const char **at, struct span *ret_segment)
{
    if (**at != '/')
        return false;
    const char *begin = *at + 1;
    size_t length = strcspn(begin, "/");
    *ret_segment = span_of(begin, length);
    *at = begin + length;
    return true;
}

static bool is_param(struct span segment)
{
    const char *text = segment.bytes;
    return segment.size > 2 && text[0] == '{' && text[segment.size - 1] == '}';
}

/* Cuts ":verb" off the last segment. */
static struct span cut_verb(struct span *segment)
{
    const char *text = segment->bytes, *colon = memrchr(text, ':', segment->size);
    if (!colon)
        return span_of("", 0);
    struct span verb = span_of(colon + 1, (size_t)(text + segment->size - colon - 1));
    segment->size = (uint32_t)(colon - text);
    return verb;
}

static uint16_t child_of(struct routes *r, uint16_t parent, struct span segment, enum surface surface)
{
    bool any = is_param(segment);
    uint16_t found = any ? r->nodes[parent].any : r->nodes[parent].child;
    while (found && !any &&
           !(r->nodes[found].length == segment.size &&
             memcmp(r->nodes[found].literal, segment.bytes, segment.size) == 0))
        found = r->nodes[found].sibling;
    if (found || r->nodes_count == NODES_MAX)
        return found;
    found = (uint16_t)r->nodes_count++;
    r->nodes[found] =
        (struct node){.literal = segment.bytes, .length = segment.size, .surface = (uint8_t)surface};
    if (any) {
        r->nodes[parent].any = found;
    } else {
        r->nodes[found].sibling = r->nodes[parent].child;
        r->nodes[parent].child = found;
    }
    return found;
}

static struct end *end_of(struct routes *r, uint16_t node, struct span verb)
{
    for (uint16_t e = r->nodes[node].end; e; e = r->ends[e].next)
        if (r->ends[e].verb_length == verb.size && memcmp(r->ends[e].verb, verb.bytes, verb.size) == 0)
            return &r->ends[e];
    uint16_t e = (uint16_t)r->ends_count++;
    r->ends[e] = (struct end){.verb = verb.bytes, .verb_length = verb.size, .next = r->nodes[node].end};
    r->nodes[node].end = e;
    return &r->ends[e];
}

/* False: the sentence says why. */
static bool add(struct routes *r, const struct route *route, char *text, size_t text_size)
{
    const char *at = route->path;
    struct span segment, verb = span_of("", 0);
    uint16_t node = 0;
    unsigned segments = 0, params = 0;
    while (next_segment(&at, &segment)) {
        if (*at == 0)
            verb = cut_verb(&segment);
        params += is_param(segment);
        node = child_of(r, node, segment, route->surface);
        if (++segments > ROUTE_SEGMENTS_MAX || params > REQUEST_PARAMS_MAX || (segment.size == 0 && *at) ||
            (node == NONE && segment.size)) {
            snprintf(text, text_size, "the route %s has an empty segment, or too many", route->path);
            return false;
        }
    }
    if (segments == 0 || *at || r->count == ROUTES_MAX) {
        snprintf(text, text_size, "the route %s must begin with '/', and there can be %u of them",
                 route->path, ROUTES_MAX);
        return false;
    }
    struct end *end = end_of(r, node, verb);
    unsigned bit = bit_of(route->method);
    if (bit >= METHOD_BITS || end->routes[bit]) {
        snprintf(text, text_size, "there are two routes %s %s", method_name(route->method), route->path);
        return false;
    }
    if (!end->allowed)
        end->surface = (uint8_t)route->surface;
    end->routes[bit] = route;
    end->allowed |= route->method | (route->method == METHOD_GET ? METHOD_HEAD : 0u);
    r->list[r->count++] = route;
    return true;
}

struct routes *routes_create(const struct route *const *tables, const size_t *counts, size_t tables_count,
                             char *ret_text, size_t text_size)
{
    struct routes *r = calloc(1, sizeof(*r));
    if (!r) {
        snprintf(ret_text, text_size, "no memory for the routes");
        return NULL;
    }
    r->nodes_count = 1;
    r->ends_count = 1;
    r->surface = tables[0][0].surface;
    r->nodes[0].surface = (uint8_t)r->surface;
    for (size_t t = 0; t < tables_count; t++)
        for (size_t i = 0; i < counts[t]; i++)
            if (!add(r, &tables[t][i], ret_text, text_size)) {
                free(r);
                return NULL;
            }
    return r;
}

void routes_destroy(struct routes *routes)
{
    free(routes);
}

/* ---- matching ---- */

struct walk {
    const struct routes *routes;
    enum method method;
    struct span segments[ROUTE_SEGMENTS_MAX];
    unsigned count;
    struct span verb; /* of the last segment, which stands in `bare` without it */
    struct span bare;
    struct route_match *match;
    struct span params[REQUEST_PARAMS_MAX];
};

static bool has_colon(struct span s)
{
    return memchr(s.bytes, ':', s.size) != NULL;
}

/* All segments have matched. Keeps what fits the method; else what would have. */
static bool end_matches(struct walk *w, const struct node *node, struct span verb, bool colons)
{
    for (uint16_t e = node->end; e; e = w->routes->ends[e].next) {
        const struct end *end = &w->routes->ends[e];
        if (end->verb_length != verb.size || memcmp(end->verb, verb.bytes, verb.size) != 0)
            continue;
        enum method wanted =
            w->method == METHOD_HEAD && !end->routes[bit_of(METHOD_HEAD)] ? METHOD_GET : w->method;
        unsigned bit = bit_of(wanted);
        const struct route *route = bit < METHOD_BITS ? end->routes[bit] : NULL;
        if (colons && !(route && route->colons))
            continue;
        w->match->allowed |= end->allowed;
        w->match->surface = (enum surface)end->surface;
        if (!route)
            continue;
        w->match->route = route;
        w->match->surface = route->surface;
        w->match->operation = end->operations[bit];
        w->match->twin_operation = end->twins[bit];
        memcpy(w->match->params, w->params, sizeof(w->params));
        return true;
    }
    return false;
}

static bool last_matches(struct walk *w, const struct node *node, struct span segment, unsigned params,
                         bool with_verb);

static bool literal_is(const struct node *n, struct span segment)
{
    return n->length == segment.size && memcmp(n->literal, segment.bytes, segment.size) == 0;
}

/* Recursion is as deep as a path has segments: ROUTE_SEGMENTS_MAX. */
static bool walk_from(struct walk *w, const struct node *node, unsigned depth, unsigned params)
{
    const struct routes *r = w->routes;
    if (depth + 1 == w->count)
        return (w->verb.bytes && last_matches(w, node, w->bare, params, true)) ||
               last_matches(w, node, w->segments[depth], params, false);
    struct span segment = w->segments[depth];
    for (uint16_t c = node->child; c; c = r->nodes[c].sibling)
        if (literal_is(&r->nodes[c], segment)) {
            w->match->surface = (enum surface)r->nodes[c].surface;
            if (walk_from(w, &r->nodes[c], depth + 1, params))
                return true;
        }
    if (!node->any || segment.size == 0 || has_colon(segment) || params == REQUEST_PARAMS_MAX)
        return false;
    w->params[params] = segment;
    return walk_from(w, &r->nodes[node->any], depth + 1, params + 1);
}

static bool last_matches(struct walk *w, const struct node *node, struct span segment, unsigned params,
                         bool with_verb)
{
    const struct routes *r = w->routes;
    struct span verb = with_verb ? w->verb : span_of("", 0);
    bool empty =
        with_verb && verb.size == 0; /* a colon with nothing behind it: no path is written in two ways */
    for (uint16_t c = node->child; c; c = r->nodes[c].sibling)
        if (literal_is(&r->nodes[c], segment)) {
            w->match->surface = (enum surface)r->nodes[c].surface;
            if (!empty && end_matches(w, &r->nodes[c], verb, false))
                return true;
        }
    if (!node->any || segment.size == 0 || params == REQUEST_PARAMS_MAX || empty)
        return false;
    w->params[params] = segment;
    return end_matches(w, &r->nodes[node->any], verb, has_colon(segment));
}

void routes_match(const struct routes *routes, enum method method, struct span path, struct route_match *ret)
{
    struct walk w = {.routes = routes, .method = method, .match = ret};
    const char *at = path.bytes, *end = at + path.size;
    memset(ret, 0, sizeof(*ret));
    ret->surface = routes->surface;
    while (at < end && *at == '/' && w.count < ROUTE_SEGMENTS_MAX) {
        const char *slash = memchr(at + 1, '/', (size_t)(end - at - 1));
        const char *stop = slash ? slash : end;
        w.segments[w.count++] = span_of(at + 1, (size_t)(stop - at - 1));
        at = stop;
    }
    if (at != end || w.count == 0)
        return;
    struct span last = w.segments[w.count - 1];
    const char *colon = memrchr(last.bytes, ':', last.size);
    if (colon) {
        const char *begin = last.bytes;
        w.bare = span_of(begin, (size_t)(colon - begin));
        w.verb = span_of(colon + 1, (size_t)(begin + last.size - colon - 1));
    }
    walk_from(&w, &routes->nodes[0], 0, 0);
}

/* ---- targets that can't be routed ---- */

enum { LOOSE_MAX = 64 /* longer than any literal */ };

/* Behind "http://host" of an absolute URL, up to the query. */
static struct span loose_path(struct span target)
{
    if (target.size == 0)
        return target;
    const char *at = target.bytes, *query = memchr(at, '?', target.size);
    const char *end = query ? query : at + target.size;
    const char *host = at < end && *at != '/' ? memmem(at, (size_t)(end - at), "://", 3) : NULL;
    if (host)
        at = memchr(host + 3, '/', (size_t)(end - host - 3));
    return at ? span_of(at, (size_t)(end - at)) : span_of(NULL, 0);
}

/* The segment behind the '/' at the front of `path`, decoded where it can be, as far as `room` goes; false: there is none. */
static bool take_loosely(struct span *path, char room[LOOSE_MAX], struct span *ret_segment)
{
    const char *at = path->bytes;
    size_t length = 0;
    if (path->size == 0 || *at != '/')
        return false;
    const char *end = at + path->size;
    for (at++; at < end && *at != '/' && length < LOOSE_MAX; length++) {
        size_t one = 0;
        size_t size =
            *at == '%' && end - at > 2 && url_unescape(span_of(at, 3), room + length, 1, &one) ? 3 : 1;
        if (size == 1)
            room[length] = *at;
        at += size;
    }
    const char *slash = at < end ? memchr(at, '/', (size_t)(end - at)) : NULL;
    *path = slash ? span_of(slash, (size_t)(end - slash)) : span_of(NULL, 0);
    *ret_segment = span_of(room, length);
    return true;
}

static uint16_t literal_below(const struct routes *r, uint16_t node, struct span segment)
{
    uint16_t c = r->nodes[node].child;
    while (c && !literal_is(&r->nodes[c], segment))
        c = r->nodes[c].sibling;
    return c;
}

enum surface routes_owner(const struct routes *r, struct span target)
{
    char room[LOOSE_MAX];
    struct span path = loose_path(target), segment;
    enum surface owner = r->surface;
    uint16_t node = 0;
    while (take_loosely(&path, room, &segment)) {
        struct span verb = cut_verb(&segment);
        uint16_t literal = literal_below(r, node, segment);
        if (literal)
            owner = (enum surface)r->nodes[literal].surface;
        node = literal ? literal : r->nodes[node].any;
        if (node == NONE)
            return owner;
        for (uint16_t e = path.size ? NONE : r->nodes[node].end; e; e = r->ends[e].next)
            if (r->ends[e].verb_length == verb.size && memcmp(r->ends[e].verb, verb.bytes, verb.size) == 0)
                owner = (enum surface)r->ends[e].surface;
    }
    return owner;
}

/* ---- for boot and commands ---- */

enum surface routes_surface(const struct routes *routes)
{
    return routes->surface;
}

size_t routes_count(const struct routes *routes)
{
    return routes->count;
}

const struct route *routes_at(const struct routes *routes, size_t position)
{
    return position < routes->count ? routes->list[position] : NULL;
}

void routes_bind(struct routes *routes, const struct route *route, const struct contract_operation *operation)
{
    unsigned bit = bit_of(route->method);
    for (size_t i = 1; i < routes->ends_count; i++)
        if (routes->ends[i].routes[bit] == route)
            routes->ends[i].operations[bit] = operation;
        else if (routes->ends[i].routes[bit] && routes->ends[i].routes[bit]->token_twin == route)
            routes->ends[i].twins[bit] = operation;
}
