/* Caller: a client of the server with its key, and the way all its requests go and their answers are looked at.
 *
 * caller_call sends a request, checks what is true of every answer, and notes how long it took. Unless the call says that
 * it wants the answer as it is, 429 and 503 are waited for as their Retry-After says, up to the brief's patience; with
 * --restarts, so is a server that has gone away, and the request is sent again.
 */
#ifndef COPPICE_CHAOS_CALLER_H
#define COPPICE_CHAOS_CALLER_H

#include "chaos/channel.h"
#include "chaos/tally.h"

struct caller {
    uint32_t number;
    char id[40], key_id[40];
    char bearer[200]; /* "Bearer ..."; "": it has no key */
    struct channel channel;
    bool limited; /* it asks more often than it may */
    struct waiting queue;
};

struct call {
    enum time operation;
    const char *method, *path;
    const char *authorization; /* NULL: the caller's own key; "": none; else the field's value */
    const char *headers;       /* more of them, each with its CR LF; NULL: none */
    const char *media;         /* NULL: application/json, when there is a body */
    const char *request_id;    /* NULL: one of ours in every other call, else the server's */
    struct span body;          /* bytes NULL: none */
    bool as_it_is;
};

/* Somebody without credentials, from an address of its own (on loopback). */
void caller_init(struct caller *caller);
/* Creates the client and its first key; false: that was not to be had. */
bool caller_enter(struct caller *caller);
void caller_leave(struct caller *caller); /* closes its connections */

/* The status, and the answer, which is the caller's to free; 0: there was none. */
int caller_call(struct caller *caller, const struct call *call, struct letter *ret_answer);
/* The same for who needs the status alone. */
int caller_status(struct caller *caller, const struct call *call);

static inline struct span answer_body(const struct letter *answer)
{
    return span_of(answer->body, answer->body_size);
}

/* Keeps what a request needs to be told apart: unique in this run, and between runs with different seeds. */
void caller_unique(char *room, size_t size, const char *what);

#endif
