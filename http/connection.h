/* Connections: one actor per connection, from accept to close. A request that crashes its handler closes that
 * connection and nothing else.
 *
 * The actor accepts in its init (nobody waiting: it says ignore and leaves no trace), parses with llhttp,
 * hands each whole request to the handler it was given and goes on, pipelined or kept alive, until the client
 * or a limit ends it. Between requests it holds no stack. Bodies are counted and dropped: no route here takes
 * one.
 *
 * Limits: CONNECTION_TARGET_MAX bytes of request target (414), CONNECTION_HEAD_MAX bytes of target, header
 * names and values in all (431), CONNECTION_BODY_MAX bytes of body (413), idle_ns between bytes of nothing
 * and for a request to arrive whole (408), the same again for the client to take the answer. Whatever llhttp
 * doesn't take is 400. After a refusal the connection is closed.
 */
#ifndef COPPICE_HTTP_CONNECTION_H
#define COPPICE_HTTP_CONNECTION_H

#include <llhttp.h>

#include "http/response.h"
#include "runtime/actor.h"

#define CONNECTION_TARGET_MAX 2048u
#define CONNECTION_HEAD_MAX   16384u
#define CONNECTION_BODY_MAX   65536u

/* Borrowed for the call of the handler. */
struct request {
    llhttp_method_t method;
    char *path;        /* as sent, up to the '?'; may be changed by the handler */
    const char *query; /* behind the '?', or "" */
    bool cross_site;   /* a browser sends it on behalf of a page from elsewhere */
};
/* Begins the response, and need not end it. May block. */
typedef void request_handler(const void *context, const struct request *request, struct response *response);

struct connection_args {
    int listening;      /* stays open for the process's life */
    bool loopback_only; /* the Host header must name this machine, so that no page reaches us by its own
                           domain */
    uint64_t idle_ns;
    request_handler *handler;
    const void *context; /* borrowed, for the process's life */
};
extern const struct actor_class connection_class;

#endif
