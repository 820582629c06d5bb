/* Board: what a poisoned server (chaos/poisoned.c) and the campaign that has started it write to each other.
 *
 * One page of shared memory, a file that BOARD_VARIABLE of the server's environment names. The server counts on it, and the campaign
 * reads it when the server has ended, however it did.
 */
#ifndef COPPICE_CHAOS_BOARD_H
#define COPPICE_CHAOS_BOARD_H

#include <stdatomic.h>
#include <stdint.h>

#define BOARD_VARIABLE "POISON_BOARD"

/* Ways to crash. X(ID, "name")
 * Contained: the actor alone ends. */
#define POISONS_CONTAINED(X) \
    X(SIGSEGV, "sigsegv")    \
    X(SIGBUS, "sigbus")      \
    X(SIGFPE, "sigfpe")      \
    X(SIGILL, "sigill")      \
    X(ABORT, "abort")        \
    X(STACK, "stack")
/* Forbidden: nobody knows what else is broken, and the process ends. */
#define POISONS_FORBIDDEN(X)                                                                           \
    X(GUARD, "guard") /* a fault where a library holds its locks */                                    \
    X(GUARD_ABORT, "guard-abort")                                                                      \
    X(GUARD_STACK, "guard-stack")                                                                      \
    X(RUNTIME, "runtime")           /* a fault in the runtime's own code */                            \
    X(LIBRARY, "library")           /* in a library that the runtime has called */                     \
    X(HEAP, "heap")                 /* the allocator finds its own records written over, and aborts */ \
    X(HEAP_FAULT, "heap-fault")     /* a fault in the allocator */                                     \
    X(TWICE, "twice")               /* a fault while what an actor owned is released */                \
    X(STRAY_WORKER, "stray-worker") /* a store into the runtime's memory; nothing else happens */      \
    X(STRAY_END, "stray-end")                                                                          \
    X(STRAY_SCHEDULER, "stray-scheduler")                                                              \
    X(OUTSIDE, "outside") /* a signal that somebody sends */
/* What ends nobody by itself. */
#define POISONS_OTHER(X)                                                         \
    X(LOOP, "loop") /* ended when it has computed for as long as an actor may */ \
    X(LEAK, "leak") /* a control: a descriptor and memory that nobody gives back */

enum poison {
#define X(id, name) POISON_##id,
    POISONS_CONTAINED(X) POISONS_FORBIDDEN(X) POISONS_OTHER(X)
#undef X
        POISON_COUNT
};
enum { POISON_CONTAINED_COUNT = POISON_GUARD, POISON_FORBIDDEN_END = POISON_LOOP };

#define POISON_NAME(id, name) [POISON_##id] = name,
#define POISON_NAMES                                                                             \
    {                                                                                            \
        POISONS_CONTAINED(POISON_NAME) POISONS_FORBIDDEN(POISON_NAME) POISONS_OTHER(POISON_NAME) \
    }

#define BOARD_TIMES (1u << 18)

struct board {
    _Atomic uint64_t crashes[POISON_COUNT]; /* counted before they happen */
    /* of crashes of supervised actors: ns from the fault to the next answer of the one in its place */
    _Atomic uint64_t times_count;
    uint32_t times[BOARD_TIMES];
    _Atomic uint64_t wrong; /* answers of such actors that were not what they must be */
    /* by metronomes, one on each scheduler: how late a turn began, in ns; the most since somebody wrote 0 */
    _Atomic uint64_t late[2], turns;
    /* calls of the store that change files: counted, and at the one of this number (from 1) the process ends: before the call, or behind it.
     * BOARD_ENDS: it does */
    _Atomic uint64_t calls, end_at, end_behind;
};
#define BOARD_ENDS UINT64_MAX

#endif
