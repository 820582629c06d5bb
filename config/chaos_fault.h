/* Faults that come from outside of a server and need a process of ours: a disk that syncs slowly, and receivers of webhooks that
 * misbehave. Each is a child that ends with us, or when it is told to. Blocks only as said. */
#ifndef COPPICE_CONFIG_CHAOS_FAULT_H
#define COPPICE_CONFIG_CHAOS_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The threads of this process take `ns` longer for each fsync and fdatasync, from now until chaos_fault_stop: the child traces the
 * process (ptrace), so it must be ours, or we root. Returns when it is so. 0: it can't be, and why. */
pid_t chaos_fault_slow(pid_t process, uint64_t ns, char *ret_why, size_t why_size);

/* X(NAME, "name", what it does with who connects) */
#define CHAOS_RECEIVERS(X)                                                       \
    X(GOOD, "good")         /* 200; a line of its file for each */               \
    X(HANG, "hang")         /* nothing at all */                                 \
    X(DRIP, "drip")         /* one byte of an answer a second, without end */    \
    X(ENDLESS, "endless")   /* 200 and a body without end, as fast as it goes */ \
    X(GARBAGE, "garbage")   /* bytes that are no HTTP */                         \
    X(REDIRECT, "redirect") /* 302, to the good one */                           \
    X(SLAM, "slam")         /* closes at once */

enum chaos_receiver {
#define X(id, name) RECEIVER_##id,
    CHAOS_RECEIVERS(X)
#undef X
        RECEIVER_COUNT
};
const char *chaos_receiver_name(enum chaos_receiver which);
/* Listens on loopback, at a port of the kernel's choosing. `file` is appended to by the good one. 0: it can't be, and why. */
pid_t chaos_receiver_start(enum chaos_receiver which, const char *file, uint16_t redirect_to,
                           uint16_t *ret_port, char *ret_why, size_t why_size);

void chaos_fault_stop(pid_t child); /* accepts 0 */

#endif
