/* A talk with a server over a socket: bytes are sent as they stand, and the answers taken apart strictly. One thread. */
#ifndef COPPICE_TESTS_SUPPORT_TALK_H
#define COPPICE_TESTS_SUPPORT_TALK_H

#include <stdbool.h>
#include <stddef.h>

#include "tests/support/testserver.h"

#define TALK_MAX      (24u << 20)
#define TALK_STUCK_MS TESTSERVER_STUCK_MS

struct heard {
    int status;       /* 0: none came */
    const char *head; /* all its lines, with their ends */
    const char *body; /* chunks put together */
    size_t body_size;
    bool chunked, close;
};

struct talk {
    int fd;
    void *tls;       /* a session, or NULL */
    bool bodyless;   /* what is asked next is HEAD: its answer has no body */
    size_t size, at; /* what came, and what of it was taken */
    char *bytes;
};

void talk_begin(struct talk *talk, const struct testserver *server);
void talk_begin_tls(struct talk *talk, const struct testserver *server); /* whoever the server says it is */
/* The second part of that. */
void talk_shake_hands(struct talk *talk);
void talk_end(struct talk *talk);
/* False: the other side takes no more. */
bool talk_say(struct talk *talk, const char *bytes, size_t size);
bool talk_say_text(struct talk *talk, const char *text);
/* The next answer; status 0: the connection ended before one was whole. Good until the next call. */
struct heard talk_hear(struct talk *talk);
/* The same for who is too slow for it: time goes by until there is one. */
struct heard talk_outwait(struct talk *talk, struct testserver *server);
/* Nothing but the end of the connection comes; over TLS, a proper one. */
bool talk_ended(struct talk *talk);

/* One request on a connection of its own, and its answer, which is good until the next one. */
struct heard talk_once(const struct testserver *server, const char *request);

/* How often the head has this line (name, any case), and the first one's value. */
size_t heard_count(const struct heard *a, const char *name);
const char *heard_field(const struct heard *a,
                        const char *name); /* "" when it isn't there; good until the next call */
bool heard_has(const struct heard *a, const char *text); /* in the body */

#endif
