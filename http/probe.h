/* Probes: what orchestrators and load balancers ask, on every listener, without credentials (spec/control.md group 38),
 * also while the store is still being opened (config/porch.h).
 *
 *     /healthz, /livez   is the process able to answer at all; asks nothing else. 503 only once the root has used up its
 *                        restart budget
 *     /readyz            may requests be sent here. 503 while starting or draining, or when a check is down
 *     /startupz          has the start come to its end. 503 until then, 200 ever after
 *
 * A check is ok, degraded (still 200) or down (503). The three that the contract names are what stands for those
 * dependencies here (AMB-75): `database` the store, `redis` what authentication and limits keep in it (revoked and seen
 * tokens, rate windows: they need the writer), `event_bus` the bus and the outbox. `?verbose` adds our own, on the
 * operator's listener only: names of parts are nobody else's business (CTL-538). But that nobody works is said everywhere, by
 * its code from the jobs' contract, as one more check that is down (JOB-313, JOB-356, AMB-J-39).
 *
 * A writer that is there and doesn't take a command within PROBE_WRITER_MS, because its disk hangs or somebody has
 * suspended it, is a database that is down: every change would end as 503.
 *
 * Each answers within PROBE_WRITER_MS and PROBE_ANSWER_MS, whatever hangs (CTL-536).
 */
#ifndef COPPICE_HTTP_PROBE_H
#define COPPICE_HTTP_PROBE_H

#include "http/front.h"

#define PROBE_ANSWER_MS 1000
#define PROBE_WRITER_MS 2000 /* a slow disk's sync may take longer than any actor's answer */

#define PROBE_LEVELS(X)     \
    X(OK, "ok")             \
    X(DEGRADED, "degraded") \
    X(DOWN, "down")

enum probe_level {
#define X(id, name) PROBE_##id,
    PROBE_LEVELS(X)
#undef X
};

/* X(id, "name", contract): contract: one of the three that are always shown. */
#define PROBE_CHECKS(X)                                                                                     \
    X(DATABASE, "database",                                                                                 \
      true) /* the store: tight, a full ledger: degraded; failed, absent, not taking commands: down */      \
    X(REDIS, "redis", true)         /* without the writer degraded: it is being started again */            \
    X(EVENT_BUS, "event_bus", true) /* no bus: down; a partition of the outbox that is fullish: degraded */ \
    X(ACTORS, "actors", false)      /* a declared one doesn't live: down */                                 \
    X(ADAPTERS, "adapters", false)  /* the runtime's adapters answer, or down */                            \
    X(START, "start", false)        /* down until the start has come to its end */                          \
    X(WORKERS, "workers", false)    /* none of the server's own lives, and workers.outside is off: down */  \
    X(DRAIN, "drain", false)        /* down while the server ends */

enum probe_check {
#define X(id, name, contract) PROBE_CHECK_##id,
    PROBE_CHECKS(X)
#undef X
        PROBE_CHECK_COUNT
};

struct probe_state {
    enum probe_level checks[PROBE_CHECK_COUNT];
    bool ready; /* nothing is down */
};

const char *probe_level_name(enum probe_level level);
/* From an actor; may wait, up to PROBE_WRITER_MS and PROBE_ANSWER_MS. */
void probe_look(const struct front *front, struct probe_state *ret_state);
bool probe_alive(void); /* the root's restart budget isn't used up */
/* Whether all that was declared lived at once at some time, with an open store; from then on true. */
bool probe_started(const struct front *front);

extern const struct route probe_routes[];
extern const size_t probe_routes_count;

#endif
