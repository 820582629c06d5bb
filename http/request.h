/* Requests: what a client sent, as views into the connection's buffer.
 *
 * Made by the parser (http/parser.h), completed by the front (http/front.h), borrowed by the handler for its call: no
 * span in here is good afterwards. Nothing is copied except a path that held escapes.
 */
#ifndef COPPICE_HTTP_REQUEST_H
#define COPPICE_HTTP_REQUEST_H

#include "http/identity.h"
#include "http/trace.h"
#include "store/span.h"

struct front;
struct json_node;
struct json_text;
struct route;

#define METHODS(X)      \
    X(GET, 1u << 0)     \
    X(HEAD, 1u << 1)    \
    X(POST, 1u << 2)    \
    X(PUT, 1u << 3)     \
    X(DELETE, 1u << 4)  \
    X(PATCH, 1u << 5)   \
    X(OPTIONS, 1u << 6) \
    X(CONNECT, 1u << 7) \
    X(TRACE, 1u << 8)   \
    X(UNKNOWN, 1u << 9) /* a token, but none that any route takes */

enum method {
#define X(name, bit) METHOD_##name = (bit),
    METHODS(X)
#undef X
};
const char *method_name(enum method method);

/* Fields that the front or a handler asks for have a place of their own; once: a second one is 400.
 * X(ID, "name in lower case", once) */
#define HEADERS(X)                              \
    X(HOST, "host", true)                       \
    X(CONTENT_TYPE, "content-type", true)       \
    X(AUTHORIZATION, "authorization", true)     \
    X(ACCEPT, "accept", false)                  \
    X(ORIGIN, "origin", true)                   \
    X(FETCH_SITE, "sec-fetch-site", true)       \
    X(TRACEPARENT, "traceparent", true)         \
    X(TRACESTATE, "tracestate", false)          \
    X(REQUEST_ID, "x-request-id", true)         \
    X(IDEMPOTENCY_KEY, "idempotency-key", true) \
    X(IF_NONE_MATCH, "if-none-match", false)    \
    X(LAST_EVENT_ID, "last-event-id", true)     \
    X(PREFER, "prefer", false)                  \
    X(ACCESS_CONTROL_REQUEST_METHOD, "access-control-request-method", true)

enum header {
#define X(id, name, once) HEADER_##id,
    HEADERS(X)
#undef X
        HEADER_COUNT
};

#define REQUEST_FIELDS_MAX 100u
#define REQUEST_PARAMS_MAX 4u

struct field {
    struct span name, value; /* as sent; the value without the white space around it */
};

struct request {
    /* by the parser */
    enum method method;
    uint8_t minor;   /* HTTP/1.minor: 0 or 1 */
    bool keep_alive; /* the client wants it */
    bool expects_continue;
    bool has_length; /* a body was announced, of whatever size */
    uint16_t fields_count;
    struct span target;              /* as sent */
    struct span known[HEADER_COUNT]; /* of the first field of that name; bytes NULL: absent */
    struct span body;
    struct field fields[REQUEST_FIELDS_MAX];

    /* by the front, before the handler runs */
    struct span
        address; /* 4 or 8 bytes of the client's address, by which it is counted; none for a unix socket */
    const struct front *front;
    const struct route *route;  /* NULL: none fits */
    const struct route *listed; /* what the table has: route, or that which route is the token_twin of */
    struct span path;           /* decoded once; the object that was routed and authorised */
    struct span query;          /* behind the '?', as sent */
    struct span params[REQUEST_PARAMS_MAX]; /* by position in the route's path; decoded */
    const struct json_text *json; /* the body, when the route takes JSON: sound, and valid by its schema */
    const void *prepared;         /* what the route's precheck has made of it; or NULL */
    struct identity identity;
    struct trace trace; /* request id and trace context, always there */
    uint64_t began_ns;
    bool cross_site; /* a browser sends it on behalf of a page from elsewhere */
};

/* The value of a query parameter, decoded into `room` (NULL when absent, or too long, or not decodable: *ret_bad). */
const char *request_query(const struct request *q, const char *name, char *room, size_t size, bool *ret_bad);
/* Whether a parameter's name, as it was sent, is this one. */
bool request_query_is(struct span sent, const char *name);
/* The member of the body's object; NULL: there is none. */
const struct json_node *request_member(const struct request *q, const char *name);
/* Its text, in the actor's arena if it held escapes; without bytes when there is none, or no text. */
struct span request_text(const struct request *q, const char *name);
/* The first field of this name (any case), or one without bytes. */
struct span request_field(const struct request *q, const char *name);

#endif
