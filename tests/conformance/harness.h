/* Conformance: every row of OTP's behaviour as a plain function that runs inside an actor, under many seeds.
 *
 * A row is straight-line code in the root actor of a simulated node: it traps exits, blocks, and asks. It
 * runs once per seed; the seed decides how many schedulers there are (1 to 3), where each actor lives, and
 * who goes next. What its helper actors do is written into `world`, which lives outside the simulation and
 * survives every crash in it. Nothing runs beside the simulation, so rows and helpers read and write `world`
 * as they like.
 *
 * Time is the virtual clock: it moves only when nobody can run, so settle() is a barrier behind everything
 * that is going on. The first failed EXPECT ends the run and is reported with what replays it:
 *
 *   CONFORMANCE_SEED=17 build/gcc/tests/conformance/restart_test RT-01
 *
 * From the environment: CONFORMANCE_SEEDS, how many seeds a row runs under (25); CONFORMANCE_SEED, just this
 * one.
 */
#ifndef COPPICE_TESTS_CONFORMANCE_HARNESS_H
#define COPPICE_TESTS_CONFORMANCE_HARNESS_H

#include <stdio.h>
#include <string.h>
#include "runtime/sim.h"
#include "runtime/supervisor.h"
#include "runtime/telemetry.h"
#include "tests/support/sanitized.h"

/* ---- rows ---- */

enum {
    ROW_ONCE = 1,    /* costly: the full size once, then smaller under the other seeds: see world.full */
    ROW_OUTSIDE = 2, /* the function runs outside, and drives world.sim itself: see world_drive */
    ROW_ALONE = 8,   /* always on one scheduler */
    ROW_REAL =
        4 /* inside a runtime with threads, signals and the real clock: one run. Not the workers below */
};

void row_run(const char *id, void (*run)(void), unsigned flags);

/* A file lists its rows as #define ROWS(X) X("RT-01", rt_01, 0) ..., defines static void rt_01(void) and so
 * on, and ends with ROWS_TEST_LIST. */
#define ROW_TEST(id, name, flags) \
    static void test_##name(void) \
    {                             \
        row_run(id, name, flags); \
    }
#define ROW_ENTRY(id, name, flags) {id, test_##name},
#define ROWS_TEST_LIST \
    ROWS(ROW_TEST)     \
    TEST_LIST          \
    = {ROWS(ROW_ENTRY){NULL, NULL}}

/* ---- the world of one run ---- */

enum { A, B, C, D, E, F, G, H, MEMBERS = 64 }; /* numbers of workers; A's id is "a" */

/* How init fails. */
enum failure { FAIL_REFUSE, FAIL_EXIT, FAIL_CRASH, FAIL_JUNK, FAIL_IGNORE, FAIL_STOP };
#define FAIL_CODE 66 /* of the error with which FAIL_REFUSE and FAIL_EXIT end */

/* The worker with one number, over all its lives. */
struct member {
    actor_pid pid;          /* of the life that began last */
    uint32_t begun;         /* inits that began */
    uint32_t ready;         /* inits that ended well */
    uint32_t gone;          /* lives whose resources were released */
    uint32_t terminated;    /* times that terminate was called */
    struct reason why;      /* with which terminate was called last; without the detail */
    uint32_t exits;         /* EXIT messages that came to it, not from its parent */
    actor_pid exit_of;      /* of the last one ... */
    struct reason exit_why; /* ... without the detail */
    uint32_t fail;          /* this many inits from now on fail, UINT32_MAX: all ... */
    enum failure failure;   /* ... in this way */
};

enum event_kind { BEGAN, READY, ASKED, GONE, ROWS_OWN /* and up: events of the row's own */ };

struct event {
    enum event_kind kind;
    uint32_t number;
    actor_pid pid;
    uint64_t at;
    bool normal; /* GONE: it was ordered to end with a reason that isn't abnormal, and did */
};

struct life {
    actor_pid pid;
    bool normal;
};

#define WORLD_EVENTS 4096
#define WORLD_KEPT   65536
#define WORLD_LOG    131072
#define SCRIPT_MAX   65536 /* choices of one simulation */

struct world {
    const char *id;
    uint64_t seed;
    uint32_t schedulers;
    enum sim_order order;
    bool full; /* costly rows: this run is the one at full size */
    void (*run)(void);
    struct sim *sim;
    actor_pid root;
    bool done; /* the row came to its end */
    char failure[1024];
    struct member members[MEMBERS];
    uint64_t numbers[16]; /* the row's own */
    size_t events_count, lives_count, kept, log_size;
    struct event events[WORLD_EVENTS]; /* further ones are not written down */
    struct life lives[WORLD_EVENTS];   /* in the order of their inits */
    _Alignas(16) unsigned char memory[WORLD_KEPT];
    uint8_t choices[SCRIPT_MAX]; /* SIM_SCRIPT */
    char log[WORLD_LOG];         /* the runtime's lines */
};
extern struct world *world;

/* A copy that lives as long as the run: for specs, which are borrowed by whom they describe. */
void *keep(const void *bytes, size_t size);
uint32_t draw(uint32_t count); /* 0..count-1, the row's own chance */
int anywhere(void);            /* a scheduler for spawn_options and child_spec */
/* How often telemetry was told of this event. */
#define TOLD(event) world_told(TELEMETRY_##event)
uint64_t world_told(enum telemetry_event event);
/* Lines of the log that hold this text. */
size_t logged(const char *text);
void log_clear(void);

/* ROW_OUTSIDE: make the simulation; run it until the root has ended. */
void world_simulate(const struct spawn_options *root);
int world_drive(void);

/* ---- expectations ---- */

/* Records the first failure and ends the run: from inside an actor it doesn't return. */
void world_fail(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
void world_expect_equal(const char *file, int line, const char *what, long long got, long long wanted);
void world_expect_reason(const char *file, int line, const char *what, const struct reason *got,
                         const struct reason *wanted);

#define EXPECT(c)                                     \
    do {                                              \
        if (!(c))                                     \
            world_fail(__FILE__, __LINE__, "%s", #c); \
    } while (0)
#define EXPECT_EQ(got, wanted) \
    world_expect_equal(__FILE__, __LINE__, #got, (long long)(got), (long long)(wanted))
#define EXPECT_ERROR(call, wanted)                                                                   \
    do {                                                                                             \
        enum error error_of_call = (call);                                                           \
        if (error_of_call != (wanted))                                                               \
            world_fail(__FILE__, __LINE__, "%s: %s instead of %s", #call, error_name(error_of_call), \
                       error_name(wanted));                                                          \
    } while (0)
#define EXPECT_OK(call) EXPECT_ERROR(call, OK)
/* Kind, signal, code and detail are compared, addresses are not. */
#define EXPECT_REASON(got, wanted)                                                  \
    do {                                                                            \
        struct reason reason_got = (got), reason_wanted = (wanted);                 \
        world_expect_reason(__FILE__, __LINE__, #got, &reason_got, &reason_wanted); \
    } while (0)

/* Longer than anything in here takes: who waits so long has waited in vain. */
#define PATIENCE actor_deadline_ms(world->sim ? 100ull * 3600 * 1000 : 30 * 1000)

/* ---- time ---- */

void settle(void); /* 1 us later, when nobody can run any more */
void pass_ms(uint64_t ms);
uint64_t now_ms(void);

/* ---- reasons ---- */

#define NORMAL   reason_of(REASON_NORMAL)
#define SHUTDOWN reason_of(REASON_SHUTDOWN)
#define KILLED   reason_of(REASON_KILLED)
#define NOPROC   reason_of(REASON_NOPROC)
static inline struct reason shutdown_with(int code)
{
    return (struct reason){.kind = REASON_SHUTDOWN, .code = code};
}
struct reason abnormal(void); /* some abnormal reason: error, crash, overrun, quota, bad return */

/* ---- workers ---- */

/* What a worker is told with its arguments. */
struct plan {
    uint32_t number;
    uint32_t init_ms;    /* init takes this long */
    uint32_t end_ms;     /* terminate takes this long */
    uint64_t info;       /* what init publishes; 0: nothing */
    bool deaf;           /* never comes back to its mailbox */
    bool last_words;     /* a plain process: waits for the exit signal itself, and ends with `words` */
    struct reason words; /* no detail */
    struct reason dying; /* kind not 0: terminate ends with this reason */
    uint32_t crash_ms;   /* not 0: crashes by itself after this */
};

/* Does what it is ordered to. worker_class doesn't trap exits, trapper_class does. */
extern const struct actor_class worker_class, trapper_class;

const char *id_of(uint32_t number); /* "a", "b", ... */

#define PLAN(...) keep(&(struct plan){__VA_ARGS__}, sizeof(struct plan))
/* A child spec: the worker with this number; what follows are further fields of the spec. */
#define CHILD(number_, class_, plan_, ...)                 \
    ((struct child_spec){.id = id_of(number_),             \
                         .class = (class_),                \
                         .args = (plan_),                  \
                         .args_size = sizeof(struct plan), \
                         .scheduler = anywhere(),          \
                         __VA_ARGS__})
#define WORKER(number_, ...)  CHILD(number_, &worker_class, PLAN(.number = (number_)), __VA_ARGS__)
#define TRAPPER(number_, ...) CHILD(number_, &trapper_class, PLAN(.number = (number_)), __VA_ARGS__)

/* Orders to a worker: casts. */
void order_exit(actor_pid worker, struct reason why); /* end with this reason; the detail isn't passed on */
void order_hang(actor_pid worker);                    /* never come back */
void order_add(actor_pid worker, uint64_t number);    /* to its state */
uint64_t ask_sum(actor_pid worker);                   /* a call: its state */
void order_pid(actor_pid worker, uint32_t type, actor_pid pid);
void order_signal(actor_pid worker, actor_pid to, struct reason why);
/* Outside any supervisor, not linked. */
actor_pid spawn_worker(uint32_t number, const struct actor_class *class);
/* An end by chance: told to, or hit from outside; always abnormal. */
void hit(actor_pid worker);

#define ORDER_EXIT   1u
#define ORDER_HANG   2u
#define ORDER_ADD    3u
#define ORDER_SUM    4u
#define ORDER_JUNK   5u /* the handler returns what no handler may */
#define ORDER_LINK   6u /* actor_pid */
#define ORDER_UNLINK 7u /* actor_pid */
#define ORDER_SIGNAL 8u /* struct signal: send it */
struct signal {
    actor_pid to;
    struct reason why;
};
#define ORDER_FREE 100u /* from here on the rows' own */

/* ---- supervisors ---- */

/* Linked to the row; its children as a list. */
#define START(strategy_, intensity_, period_s_, ...)    \
    start_supervisor(&(struct supervisor_spec){         \
        .strategy = (strategy_),                        \
        .intensity = (intensity_),                      \
        .period_ms = 1000 * (int64_t)(period_s_),       \
        .children = (struct child_spec[]){__VA_ARGS__}, \
        .children_count = sizeof((struct child_spec[]){__VA_ARGS__}) / sizeof(struct child_spec)})
/* One for one, with budget for whatever happens. */
#define ROOMY(...) START(ONE_FOR_ONE, 1000, 3600, __VA_ARGS__)
actor_pid start_supervisor(const struct supervisor_spec *spec); /* copies the spec for the run */
/* Without children; with room for any number of restarts. */
actor_pid start_empty(enum strategy strategy);
actor_pid start_dynamic(const struct supervisor_spec *flags, const struct child_spec *child);
const struct supervisor_spec *keep_spec(const struct supervisor_spec *spec);
/* A supervisor as a child of another: permanent, unlimited shutdown, unless the further fields say otherwise.
 */
#define SUBTREE(id_, spec_, ...) \
    subtree((spec_), &(struct child_spec){.id = (id_), .type = CHILD_SUPERVISOR, __VA_ARGS__})
struct child_spec subtree(const struct supervisor_spec *spec, const struct child_spec *more);

struct child_info info_of(actor_pid sup, const char *id);
actor_pid pid_of(actor_pid sup, const char *id); /* 0: not running */
size_t children_of(actor_pid sup, struct child_info *infos, size_t count);
/* "specs,active,supervisors,workers" */
const char *counts_of(actor_pid sup);
#define EXPECT_COUNTS(sup, wanted)                                                               \
    do {                                                                                         \
        const char *counts_got = counts_of(sup);                                                 \
        if (strcmp(counts_got, (wanted)))                                                        \
            world_fail(__FILE__, __LINE__, "counts are %s instead of %s", counts_got, (wanted)); \
    } while (0)
/* start_child that must succeed: the pid. */
actor_pid add_child(actor_pid sup, const struct child_spec *spec);

/* ---- what comes to the row's own mailbox ---- */

/* Wait for the DOWN with this ref, the EXIT of this pid: the reason (its detail lives as long as the run). */
struct reason wait_down(uint64_t ref);
struct reason wait_exit(actor_pid pid);
/* Whether anything at all lies in the mailbox when everything has come to rest; it is thrown away. */
bool mail(void);
/* Monitor, and wait until the monitor is in place: whoever ends it from now on, its reason is told. */
uint64_t watch(actor_pid pid);
/* Ask for this end and wait for it: the reason with which it really ended. */
struct reason end_of(actor_pid pid, struct reason why);

/* ---- what happened ---- */

/* Where this stands in the list of events, at or after `from`; WORLD_EVENTS when it doesn't. */
size_t event_find(size_t from, enum event_kind kind, uint32_t number);
size_t event_count(enum event_kind kind, uint32_t number);
/* The numbers of all events of this kind in their order, as letters: "abc". Valid until the next call. */
const char *event_order(enum event_kind kind);
#define EXPECT_ORDER(kind, wanted)                                                                         \
    do {                                                                                                   \
        const char *order_got = event_order(kind);                                                         \
        if (strcmp(order_got, (wanted)))                                                                   \
            world_fail(__FILE__, __LINE__, "order of " #kind " is %s instead of %s", order_got, (wanted)); \
    } while (0)
void events_clear(void);
void event_add(enum event_kind kind, uint32_t number, actor_pid pid);

/* ---- every schedule ---- */

/* A part of a run whose choices are written down, so that the next time another choice is taken, until all have been.
 * The part begins and ends when nobody but the row can run, and is the same each time but for the choices. Many of them
 * fit into one simulation. All zero is the first schedule. */
#define SCRIPT_PART_MAX 4096 /* choices of one part */

struct script {
    uint8_t choices[SCRIPT_PART_MAX];
    size_t count, begun;
    bool done; /* all schedules have been */
};

void script_begin(struct script *script);
void script_end(struct script *script);
bool script_room(void); /* for one more part in this simulation */
/* From rows that run outside: a simulation of one scheduler that goes by scripts. */
void script_drive(void (*run)(void));

#endif
