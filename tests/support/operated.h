/* A server with the operator's routes, a store, and a tree to try things on, in a process of its own
 * (tests/support/testserver.h); and one client that asks it.
 *
 *     front.connections            the root of what /stats/tree shows here; the connections are in it, and
 *       top                        one_for_one, 20 in 60 s; started by operated_grow
 *         runtime  bus  one  two   "one" and "two" are idle; "two" is needed
 *         all: a1 a2 a3            one_for_all, 3 in 10 s
 *         rest: r1 r2 r3           rest_for_one, 3 in 10 s
 *         tight: t1                one_for_one, 0 in 10 s: any end is an escalation
 *         dyn                      dynamic; d1 and d2 in it
 *         late                     when it starts it ends the connection called "leaves" (normal) or "fails" (error 7)
 */
#ifndef COPPICE_TESTS_SUPPORT_OPERATED_H
#define COPPICE_TESTS_SUPPORT_OPERATED_H

#include "tests/support/testserver.h"

#define OPERATED_BODY_MAX (4u << 20)

struct operated_options {
    const char *front;    /* its name; NULL: "operator" */
    uint32_t streams_max; /* 0: the front's */
    bool no_store, no_containment;
    bool workers_missed; /* workers.outside is off, and there are none */
};

/* What was answered last. */
extern int operated_status;
extern char operated_head[16384];
extern char operated_body[OPERATED_BODY_MAX]; /* chunks put together */

void operated_start(const struct operated_options *options); /* NULL: all defaults */
void operated_stop(void);                                    /* its exit status must be 0 */
void operated_grow(void);                                    /* starts "top" */

/* One request on a connection of its own; header: more lines, each with its \r\n, or "". The status. */
int operated_ask(const char *method, const char *path, const char *header, const char *body);
int operated_get(const char *path);
int operated_try(
    const char *path); /* 0: it ended without an answer, which is otherwise the end of the test */
int operated_post(const char *path, const char *body);
bool operated_has(const char *needle); /* in the body; when not, the body is shown */
/* The text of the first member of this name, up to the next quote, comma or brace; "" when there is none. */
const char *operated_member(const char *name);

/* A slow client: the answer has begun when this returns, and waits for somebody to take it, in sockets that hold little of it. */
int operated_begin(const char *path);
int operated_end(int fd); /* takes all of it, as operated_ask does */

/* A connection that stays: the request is sent, what comes is read until it holds the text (false: it ended first). */
int operated_open(const char *path, const char *header);
/* A connection that stays, known by this name; those before it have ended. */
int operated_visit(const char *name);
bool operated_await(int fd, const char *text);
extern char operated_seen[65536]; /* what operated_await has read of this connection, chunk sizes and all */

#endif
