/* The environment: clock, chance, scheduling choice and polling, the only way to the world outside.
 *
 * Two of them exist: env_real (this machine) and the simulated one (runtime/sim.h: virtual clock, seeded generator,
 * seeded choice; descriptors by the pollers of another one, or none). Everything in the product asks the environment; a check in `make lint` refuses
 * direct calls elsewhere, so that one seed replays a whole node.
 */
#ifndef COPPICE_RUNTIME_ENV_H
#define COPPICE_RUNTIME_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEADLINE_NONE UINT64_MAX /* wait without limit */
#define NS_PER_US     1000ull
#define NS_PER_MS     1000000ull
#define NS_PER_S      1000000000ull

enum { WATCH_READ = 1, WATCH_WRITE = 2, WATCH_HANGUP = 4 };

struct env_event {
    uint64_t token;  /* what the descriptor was armed with */
    uint32_t events; /* WATCH_... */
};

struct poller; /* one per scheduler: waits for descriptors, for a time, and for a wake from another thread */

struct env {
    const char *name;
    bool simulated;
    uint64_t (*now)(struct env *);  /* monotonic ns; never goes back */
    uint64_t (*wall)(struct env *); /* ns since 1970 */
    /* As now, and with it what was skipped on purpose (config/clock.h): by how much wall time should have moved on. */
    uint64_t (*elapsed)(struct env *);
    void (*random)(struct env *, void *bytes, size_t size);
    uint32_t (*pick)(struct env *, uint32_t count); /* 0..count-1: which of these may go next; real: 0 */

    struct poller *(*poller_open)(struct env *); /* NULL + errno */
    void (*poller_close)(struct poller *);
    /* One-shot when `once`; edge-triggered otherwise. 0 or -1 + errno (EEXIST: it is armed already). events 0 disarms
     * and forgets. */
    int (*poller_arm)(struct poller *, int fd, uint32_t events, bool once, uint64_t token);
    /* Blocks at most until `deadline` (0: not at all). Returns how many events were stored. */
    size_t (*poller_wait)(struct poller *, struct env_event *events, size_t count, uint64_t deadline);
    void (*poller_wake)(struct poller *); /* any thread; async-signal-safe */
};

struct env *env_real(void); /* process-wide, static */

/* Sleep of a plain thread (monitor, guardian) until the deadline; not for schedulers. */
void env_thread_sleep(uint64_t deadline);

/* ns of a processor that the calling thread has had: a process that is stopped, or waits for its turn, has none. For
 * measuring what computes; a system call. Async-signal-safe. */
uint64_t env_thread_computed(void);

/* A timer of the calling thread: sends it this signal at the deadline, more punctually than another thread could be
 * woken for it. Set by its own thread only; deadline 0 disarms. */
struct env_alarm {
    void *timer;
    bool open;
};
bool env_alarm_open(struct env_alarm *alarm, int signal);
void env_alarm_set(struct env_alarm *alarm, uint64_t deadline);
void env_alarm_close(struct env_alarm *alarm);

/* One write to standard error, unless it would have to wait for whoever reads it: then false, and it is lost.
 * Async-signal-safe. For at most PIPE_BUF bytes. */
bool env_error_write(const char *bytes, size_t size);

#endif
