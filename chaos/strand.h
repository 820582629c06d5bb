/* Strands: conversations with somebody outside, each as straight-line code, many of them on one thread.
 *
 * A strand is a coroutine over epoll: it runs until it sleeps, waits for others or for a socket. Nothing runs meanwhile
 * but other strands, one at a time, so what strands share needs no locks; whatever was looked at before a wait may have
 * changed after it. One set of strands per process. For harnesses: it allocates, and gives up loudly.
 */
#ifndef COPPICE_CHAOS_STRAND_H
#define COPPICE_CHAOS_STRAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STRANDS_MAX 24000u /* alive at a time: below what guards by mprotect allow */

struct strand;

/* Before anything else, once. */
void strands_open(void);
/* From the thread's own stack; returns when no strand is left. */
void strands_run(void);
uint32_t strands_alive(void);

/* Runs `run(arg)` soon; from a strand or from outside. False: there are STRANDS_MAX. */
bool strand_start(void (*run)(void *arg), void *arg);
/* Monotonic ns, as it is now. */
uint64_t strand_now(void);

/* ---- from strands ---- */

void strand_sleep_until(uint64_t at);
static inline void strand_sleep(uint64_t ns)
{
    strand_sleep_until(strand_now() + ns);
}

/* Who waits for something that another strand brings about, in the order of their coming. All zeros is nobody. */
struct waiting {
    struct strand *first, *last;
};
/* False: it was not woken by then. */
bool strand_wait(struct waiting *waiting, uint64_t until);
void strand_wake_one(struct waiting *waiting);
void strand_wake_all(struct waiting *waiting);

/* A socket in the epoll set, edge-triggered: read or write first, and wait when that would block. One strand waits at a
 * time. Must stay where it is until it is dropped, which must come before the descriptor is closed. */
struct watch {
    int fd;
    bool ready; /* something was said about it since the last wait */
    struct strand *strand;
};
void watch_add(struct watch *watch, int fd);
void watch_drop(struct watch *watch);
/* False: nothing until then. */
bool watch_wait(struct watch *watch, uint64_t until);

#endif
