/* Volley: requests at a given rate, whatever the answers are, over a few dozen connections of one thread.
 *
 * An open loop: who asks for the next one doesn't wait for the last one's answer, as real clients don't. When all connections wait, it
 * falls behind and catches up, so what it has sent is what counts, and volley_fired says that. Each answer is handed to whoever
 * wanted it; one that doesn't come within VOLLEY_PATIENCE_US, or isn't an answer, is handed over with status 0.
 */
#ifndef COPPICE_CHAOS_VOLLEY_H
#define COPPICE_CHAOS_VOLLEY_H

#include <stdbool.h>
#include <stdint.h>

#define VOLLEY_CONNECTIONS 64u
#define VOLLEY_ANSWER_MAX  4096u
#define VOLLEY_PATIENCE_US UINT64_C(60000000) /* a machine may stand still for half of it */

struct volley_answer {
    uint64_t number; /* of its request */
    int status;      /* 0: there was none */
    uint64_t took_us;
    const char *head, *body; /* ended by 0 */
};

struct volley {
    uint16_t port;
    uint64_t rate; /* a second */
    uint64_t duration_us;
    /* The bytes of request `number`, which stay until the next call. */
    const char *(*request)(void *context, uint64_t number);
    void (*answer)(void *context, const struct volley_answer *answer);
    void (*second)(void *context); /* called once a second */
    void *context;
};

uint64_t volley_now_us(void);
/* How many were sent; returns when all are answered or have been waited for. UINT64_MAX: there is no memory. */
uint64_t volley_fire(const struct volley *volley);

#endif
