/* Saga: one seed from its first start of the server to its last look at what is left.
 *
 * The server lives several times: each life is a process of its own (chaos/life.h), ended by a power cut, a kill or by itself, and the
 * next one begins with what the disk has. What those outside know and what the seed has drawn outlives them; so it lies here,
 * in memory that all processes of one seed share. Only one of them runs at a time.
 *
 *     SETUP    clients come and get their keys; nothing fails
 *     SAFETY   they do what clients do, and faults happen
 *     HEAL     nothing fails any more: all that was begun comes to its end, within a limit of virtual time
 *     CHECK    the power is cut once more, and everything that is left is looked at
 *
 * All chance is the seed's. Each part of the harness has dice of its own, so that one that is switched off leaves the others' as they
 * were.
 */
#ifndef COPPICE_CHAOS_SAGA_H
#define COPPICE_CHAOS_SAGA_H

#include "chaos/dice.h"
#include "chaos/patron.h"
#include "chaos/receiver.h"
#include "chaos/sometimes.h"
#include "chaos/world.h"

/* X(ID, "name", how many steps of the server from one to the next at most, prose). Each is switched on under a part of the seeds. */
#define FAULTS(X)                                                                          \
    X(KILLS, "kills", 1200, "an actor is killed, supervisors too")                         \
    X(CUTS, "cuts", 12000, "the power goes")                                               \
    X(DEATHS, "deaths", 15000, "the process is killed")                                    \
    X(MIDWAY, "midway", 12000, "the process ends between two calls of the disk")           \
    X(SYNCS, "syncs", 15000, "a sync of data fails, and half of it never arrives")         \
    X(THROUGHS, "throughs", 15000, "a write through fails, and has arrived or not")        \
    X(FULL, "full", 8000, "a sync finds the disk full")                                    \
    X(CLOCKS, "clocks", 3000, "the wall clock leaps, forward or back")                     \
    X(STALLS, "stalls", 1200, "nobody runs for a while: a slow disk, a process stopped")   \
    X(HANGUPS, "hangups", 0, "clients go in the middle of a request or before its answer") \
    X(TRICKLES, "trickles", 0, "requests come in pieces")                                  \
    X(HALVES, "halves", 0, "the server's writes take a part, or would have to wait")       \
    X(ACCEPTS, "accepts", 0, "connections can't be accepted")                              \
    X(RECEIVERS, "receivers", 0, "webhooks' receivers fail, hang, or answer nobody")       \
    X(FLOODS, "floods", 6000, "an actor gets more messages than its mailbox holds")        \
    X(ALLOCS, "allocs", 8000, "the runtime has no memory for a message or a state")        \
    X(ROOM, "room", 6000, "the store's file has no room to grow")
enum fault_kind {
#define X(id, name, steps, prose) FAULT_##id,
    FAULTS(X)
#undef X
        FAULT_COUNT
};
const char *fault_name(enum fault_kind kind);
/* Those that have a step of their own; the others are drawn each time. */
enum {
    FAULTS_PLANNED = 0
#define X(id, name, steps, prose) | (steps > 0 ? 1 << FAULT_##id : 0)
    FAULTS(X)
#undef X
};

/* X(ID, "name", faults that may be on, prose) */
#define FAULTS_ALL ((1u << FAULT_COUNT) - 1)
#define SCENARIOS(X)                                                                                         \
    X(MIXED, "mixed", FAULTS_ALL, "everything")                                                              \
    X(CALM, "calm", 1u << FAULT_TRICKLES, "nothing fails: then nothing may be refused or lost")              \
    X(CRASHES, "crashes",                                                                                    \
      1u << FAULT_CUTS | 1u << FAULT_DEATHS | 1u << FAULT_MIDWAY | 1u << FAULT_SYNCS |                       \
          1u << FAULT_THROUGHS | 1u << FAULT_FULL | 1u << FAULT_ROOM,                                        \
      "the disk and the process")                                                                            \
    X(ACTORS, "actors",                                                                                      \
      1u << FAULT_KILLS | 1u << FAULT_STALLS | 1u << FAULT_CLOCKS | 1u << FAULT_FLOODS | 1u << FAULT_ALLOCS, \
      "actors and clocks")                                                                                   \
    X(NET, "net",                                                                                            \
      1u << FAULT_HANGUPS | 1u << FAULT_TRICKLES | 1u << FAULT_HALVES | 1u << FAULT_ACCEPTS |                \
          1u << FAULT_RECEIVERS | 1u << FAULT_STALLS,                                                        \
      "clients, connections and receivers")                                                                  \
    X(SOAK, "soak",                                                                                          \
      1u << FAULT_KILLS | 1u << FAULT_CLOCKS | 1u << FAULT_STALLS | 1u << FAULT_HANGUPS |                    \
          1u << FAULT_TRICKLES | 1u << FAULT_HALVES | 1u << FAULT_ACCEPTS | 1u << FAULT_RECEIVERS,           \
      "one life of many days (--days), of which a part is lived and the rest slept through")
enum scenario {
#define X(id, name, faults, prose) SCENARIO_##id,
    SCENARIOS(X)
#undef X
        SCENARIO_COUNT
};
const char *scenario_name(enum scenario scenario);

/* X(ID, "name", prose): defects of the harness's own making, behind the server's back. A campaign has to find each. */
#define CONTROLS(X)                                                                                   \
    X(NONE, "", "")                                                                                   \
    X(NO_SYNC, "no-sync", "syncs of data do nothing, and the power goes")                             \
    X(ROLLBACK, "rollback", "a life begins with what an earlier one left: acknowledged work is lost") \
    X(TWICE, "twice", "a client's submit that had no answer is sent again with another key")          \
    X(STALE, "stale", "an old answer is taken for the newest")                                        \
    X(STUCK, "stuck", "nobody runs jobs, and nobody notices")                                         \
    X(CHANCE, "chance", "something outside the seed has a say")
enum control {
#define X(id, name, prose) CONTROL_##id,
    CONTROLS(X)
#undef X
        CONTROL_COUNT
};

enum phase { PHASE_SETUP, PHASE_SAFETY, PHASE_HEAL, PHASE_CHECK, PHASE_DONE };

/* How a life ended, and with it the process. */
enum ending {
    ENDING_NONE = 0,
    ENDING_CUT = 3, /* power */
    ENDING_KILLED,  /* its files are as they were in the cache */
    ENDING_DONE,    /* the whole seed is */
    ENDING_VIOLATED,
};

#define SAGA_ORDERS_MAX  96u
#define SAGA_PATRONS_MAX 4u

struct saga_options {
    uint64_t seed;
    enum scenario scenario;
    uint32_t faults; /* those that may be */
    enum control control;
    uint32_t steps_max; /* of the safety phase; 0: as drawn. For shrinking */
    uint32_t days;      /* so many safety phases, a virtual day from one to the next; 0: one */
    bool loud;
    const char *dir; /* an empty folder, this seed's */
};

/* What is drawn for all lives of a seed. */
struct knobs {
    uint32_t schedulers, workers, patrons, orders, safety_steps;
    enum sim_order order;
    struct world_store store;
    uint32_t lease_ms, heartbeat_ms, poll_ms, backoff_ms, backoff_max_ms, retry_max, speed, request_ms;
    uint32_t queue_max, client_max, webhook_retries, webhook_timeout_ms;
    bool retry_auto, active_queues;
    uint32_t strikes[FAULT_COUNT]; /* of 1,000, or steps between two */
};

struct saga {
    struct saga_options options;
    struct knobs knobs;
    uint32_t faults; /* those of this seed; none in SETUP and HEAL: saga_strikes */
    enum phase phase;
    struct dice dice, knob_dice, crash_dice;
    uint32_t life;                 /* the number of this one, from 1 */
    uint64_t began, ended;         /* this life, and the one before, in virtual time */
    uint64_t now, steps, safety;   /* virtual time, steps of all lives, and of the safety phase */
    uint64_t heal_began, deadline; /* and its limit */
    int64_t wall_ns, wall_most_ns; /* by how much the wall clock is off, and was at most */
    uint32_t leaps;                /* how often it has leapt */
    uint32_t strikes;              /* faults that had a step of their own */
    bool answered;                 /* somebody was, in this life */
    uint64_t next[FAULT_COUNT];    /* step of the next one */
    uint64_t hash;
    uint32_t day, numbers; /* numbers: of the first order that is remembered */
    struct weight {        /* what the server takes, at the end of a day */
        uint64_t file, memory, descriptors, timers, records, actors;
    } weight_then, weight_now;
    uint32_t orders_count;
    struct order orders[SAGA_ORDERS_MAX];
    uint32_t patrons_count;
    struct patron patrons[SAGA_PATRONS_MAX];
    struct receiver receiver;
    uint32_t seen[SOMETIMES_COUNT];
    struct figures {
        uint64_t commits, answers, switches, lives, checks;
    } figures;
    char violation[400], where[64];
    char last_log[24][320];
};

extern struct saga *saga; /* of this process; memory that is shared with those of its lives */

/* Draws everything from the options. */
void saga_begin(struct saga *s, const struct saga_options *options);
/* Whether a fault of this kind may happen now. */
bool saga_on(enum fault_kind kind);
/* And whether it does, of those that are drawn each time. */
bool saga_strikes(enum fault_kind kind, struct dice *dice);
/* The first one counts. */
__attribute__((format(printf, 1, 2))) void saga_violate(const char *format, ...);
static inline bool saga_violated(void)
{
    return saga->violation[0] != 0;
}
/* Into the hash of the run. */
void saga_mix(const void *bytes, size_t size);
/* From a life that ends by itself: how much of a fault explains it. False: nothing does. */
bool saga_explains(int status);

#define SOMETIMES(id) ((void)saga->seen[SOMETIMES_##id]++)

#endif
