/* Sheaf: requests that are sent together, pipelined on a few connections, and their answers.
 *
 * Request i goes out on connection i modulo how many there are, all bytes of one connection at once. Then the answers are read, one
 * connection after the other, and each request is told of exactly once: with its answer, as one without, or as one that never left.
 * Answers that had come before the server ended count: they lie in the socket.
 *
 * For a server that may end at any moment: no failure of a connection is an error. One that fails, or that the server wants
 * closed, is made anew for the next sheaf. Limits are asserted; requests are ours.
 */
#ifndef COPPICE_CHAOS_SHEAF_H
#define COPPICE_CHAOS_SHEAF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHEAF_LINES   4u
#define SHEAF_MAX     64u        /* requests */
#define SHEAF_OUT_MAX (1u << 20) /* bytes of one connection's requests */
#define SHEAF_IN_MAX  (1u << 17) /* of one answer */

/* Beside the statuses of HTTP. */
enum { SHEAF_LOST = 0 /* nobody knows */, SHEAF_UNSENT = -1 /* no byte of it has left */ };

struct sheaf_ask {
    uint32_t what, number; /* the asker's */
    uint32_t line;
    size_t from;             /* where it begins among the bytes of its connection */
    int status;              /* when it is told of */
    const char *head, *body; /* ended by 0; "" without an answer */
};

struct sheaf_line {
    int fd;    /* -1: there is none */
    bool last; /* nothing more comes from it */
    size_t out_size, sent, in_used, in_at;
    char *out, *in;
};

struct sheaf {
    uint16_t port;
    char key[128]; /* Authorization: Bearer; empty: nobody's */
    uint32_t lines_count, count;
    struct sheaf_line lines[SHEAF_LINES];
    struct sheaf_ask asks[SHEAF_MAX];
};

/* False: no memory; sheaf_fini is to be called either way. */
bool sheaf_init(struct sheaf *s);
void sheaf_fini(struct sheaf *s);
/* Another server, or the same one started again; what was open is closed. */
void sheaf_meet(struct sheaf *s, uint16_t port, uint32_t lines_count);
bool sheaf_full(const struct sheaf *s);
/* `body` may be NULL. */
void sheaf_add(struct sheaf *s, uint32_t what, uint32_t number, const char *method, const char *path,
               const char *body);
/* Sends them all, hands each to `tell`, and is empty. How many had no answer. An answer that doesn't come within the patience of
 * mortal.h is one that doesn't come. */
uint32_t sheaf_ask_all(struct sheaf *s, void (*tell)(void *context, const struct sheaf_ask *ask),
                       void *context);

/* The text of "name" in a body; false: there is none, and *value is "". */
bool sheaf_field(const char *body, const char *name, char *value, size_t size);

#endif
