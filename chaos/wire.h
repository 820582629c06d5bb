/* Wire: one connection of a strand, and the HTTP/1.1 messages on it, as a client sees them or as a receiver does.
 *
 * Messages are read by llhttp, one at a time; what came behind one stays for the next. Everything waits in its strand until
 * the deadline at most, and answers false when the other side has gone, was too slow, or spoke no HTTP.
 */
#ifndef COPPICE_CHAOS_WIRE_H
#define COPPICE_CHAOS_WIRE_H

#include <netinet/in.h>

#include "chaos/strand.h"
#include "store/span.h"

#define WIRE_BUFFER 16384u
#define WIRE_MAX    (8u << 20) /* bytes of a head, and of a body */

struct wire {
    struct watch watch;
    uint32_t from, to; /* in the buffer: read, not yet parsed */
    char buffer[WIRE_BUFFER];
};

struct letter {
    int status;      /* of an answer */
    char method[16]; /* of a request */
    char *path;      /* of a request: its target; allocated */
    char *head;      /* "name: value\n" ..., names in lower case; allocated, ends in 0 */
    char *body;      /* allocated, ends in 0; never NULL */
    size_t head_size, body_size;
    uint32_t interim; /* 1xx answers that came before this one */
    bool keep_alive;
};

/* From `source` (any address when it is 0) to `to`. */
bool wire_connect(struct wire *wire, struct in_addr source, const struct sockaddr_in *to, uint64_t until);
void wire_take(struct wire *wire, int fd); /* of an accepted connection; not blocking */
void wire_close(struct wire *wire);

bool wire_send(struct wire *wire, struct span bytes, uint64_t until);
/* True: *ret_letter is whole and the caller's, for letter_free. `answers`: what comes are answers, else requests. */
bool wire_receive(struct wire *wire, bool answers, struct letter *ret_letter, uint64_t until);
/* Nothing more is expected: has the other side closed, or said something? */
bool wire_stale(struct wire *wire);

void letter_free(struct letter *letter); /* accepts one that is all zeros */
/* The value of this field, in `room`, cut off there; false: there is none. Names in lower case. */
bool letter_field(const struct letter *letter, const char *name, char *room, size_t size);

#endif
