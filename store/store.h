/* The store: what the process has of one data directory, and how actors use it.
 *
 * Opened at boot, closed after the runtime has gone. Two actors serve it (store/writer.h, store/keeper.h); the
 * store itself outlives them, so that a killed writer starts again where it was.
 *
 * To change something: fill in a command, store_submit. The answer comes after the commit that holds it.
 *
 *     error                          what happened
 *     OK                             done, and on the disk
 *     a command's own refusal        nothing was written (ERR_NOT_FOUND, ERR_CONFLICT, ERR_KEY_REUSED, ...)
 *     ERR_FULL, ERR_SHED             nothing was written; the queue is full: again later
 *     ERR_NO_SPACE                   nothing was written; the disk or the map is full
 *     ERR_UNAVAILABLE, ERR_NOPROC    nothing was written; no writer just now
 *     ERR_MEMORY                     nothing was written
 *     ERR_DAMAGED, ERR_NEWER         nothing was written; what had to be read or counted can't be believed
 *     ERR_TIMEOUT, ERR_DOWN, ERR_IO, unknown: it may be done or will be; the same command with the same
 *     ERR_UNANSWERED                 idempotency key tells
 *
 * To read: a view (store/view.h).
 */
#ifndef COPPICE_STORE_STORE_H
#define COPPICE_STORE_STORE_H

#include "runtime/actor.h"
#include "store/calendar.h"
#include "store/environment.h"
#include "store/fallow.h"
#include "store/txn.h"

struct journal;
struct ledger_index;
struct views;

#define BATCH_MAX 1024u /* commands of one commit */
#define BATCH_ANSWER_BYTES \
    (BATCH_MAX * ANSWER_SIZE_MAX) /* 4 MiB of addresses, touched as far as they are used */
#define STORE_QUEUE_MAX 16384u    /* commands waiting; at most 1 GiB by COMMAND_SIZE_MAX */

struct store_options {
    struct environment_options environment;
    const struct schema *schema; /* NULL: store_schema */
    struct env *env;             /* clock and chance for what isn't a command; NULL: env_real() */
    const char *record;          /* a file for the journal of all batches, or NULL */
    uint32_t ledger_max;         /* idempotency keys alive at one time; 0: 4,194,304 (16 bytes each, twice) */
    uint32_t audits_max;         /* entries of the audit log; 0: AUDITS_MAX */
    uint64_t view_age_ns;        /* whoever keeps a view open for longer is ended; 0: 5 s */
};

/* What the store is doing; readiness follows it. */
#define STORE_STATES(X)                                                                                     \
    X(STORE_OPEN, "open")                                                                                   \
    X(STORE_TIGHT, "tight")   /* disk or map full: only clean-up is taken */                                \
    X(STORE_LOST, "lost")     /* its file has gone from the directory: nothing is taken (store/keeper.h) */ \
    X(STORE_FAILED, "failed") /* a commit failed: nothing is acknowledged any more, the process ends */

enum store_state {
#define X(id, name) id,
    STORE_STATES(X)
#undef X
};

struct store {
    struct environment environment;
    const struct schema *schema;
    struct env *env;
    struct views *views;
    struct ledger_index *ledger; /* NULL until store_load */
    uint32_t ledger_max;
    uint32_t audits_max;
    bool starved;            /* the writer's: the disk had no room for a page of the last commit */
    struct journal *journal; /* NULL: not recorded */
    struct txn txn;          /* the writer's */
    struct fallow fallow;    /* and this */
    uint8_t *answers;        /* BATCH_ANSWER_BYTES */
    _Atomic uint32_t state;  /* enum store_state */
    _Atomic uint32_t told;   /* the state that was last told of */
    _Atomic uint64_t commits, commands, refused, grown, commit_ns;
    _Atomic uint64_t found_nothing; /* commands that came for something that wasn't there: not refused */
    _Atomic uint32_t standing;      /* commands that stand in the writer */
    struct calendar calendar;       /* the keeper's */
    _Atomic uint64_t retained_us;   /* its time at the keeper's last look; 0: there was none yet */
    uint64_t view_age_ns;
    uint64_t opened_us, opened_elapsed_us; /* steady time (store/steady.h) and elapsed time of the opening */
    uint64_t start;                        /* names this opening: whose leases are whose; never 0 */
    uint64_t
        first_fence; /* of a claim in this opening (store/job_lease.h): less is of an earlier one; 0: not known */
    struct uuid identity;
    uint8_t secret[16];
    char failure[256]; /* why, when failed */
};

/* As environment_open; then migrates. */
enum error store_open(const struct store_options *options, struct store **ret_store, char *ret_text,
                      size_t text_size);
void store_close(struct store *store); /* accepts NULL */
/* The writer's part of opening: reads the ledger's keys, once; reading needs none of it. A million take 0.4 s. */
enum error store_load(struct store *store);

enum store_state store_state(const struct store *store);
const char *store_state_name(enum store_state state);
void store_tell_state(struct store *store); /* once of each change, by the event store.state */
/* Up to which time things may be taken for over for good (store/calendar.h); 0 until the keeper has looked. Any thread. */
uint64_t store_retained_us(const struct store *store);

/* The store of this process, for actors: set by boot before the runtime runs, and by tests. */
void store_install(struct store *store);
struct store *store_here(void);

/* From an actor: waits for the commit. `command` is the class's struct. *ret_size bytes of answer are copied to
 * ret_bytes (room; may be NULL when nobody wants them). */
enum error store_submit(const struct command_class *class, const void *command, void *ret_bytes, size_t room,
                        size_t *ret_size, uint64_t deadline);
/* The same in two steps, for who has other things to do meanwhile. store_hear: as store_submit; ERR_TIMEOUT leaves it
 * open, to be heard later or dropped (actor_request_drop). */
enum error store_ask(const struct command_class *class, const void *command, uint64_t *ret_ref);
enum error store_hear(uint64_t ref, void *ret_bytes, size_t room, size_t *ret_size, uint64_t deadline);
/* A command that waits in the writer: refused with ERR_NOT_FOUND it stands there, and is applied again in the very batch that has
 * something for it (txn_wake_one), so one commit has both; and so does one for which a tight store has no room, until it has. What becomes of it at last is a message, STORE_GIVEN; `number` is
 * the submitter's name for it, which he doesn't use twice. With `again` it is another version of one that stands: that is applied now,
 * and if none stands by this name it was given already: then STORE_GIVEN says ERR_NOT_FOUND, behind what was given if that has arrived,
 * and alone if it met a full mailbox. A class with a topic; at most one of an actor.
 *
 * It is gone when its actor ends, or the writer: who has one joins its topic's group, and a new writer wakes all of that.
 * *ret_writer: where it stands. ERR_UNAVAILABLE, ERR_FULL, ERR_INVALID, ERR_MEMORY: it doesn't. */
enum error store_stand(const struct command_class *class, const void *command, uint64_t number, bool again,
                       actor_pid *ret_writer);
#define STORE_GIVEN 0x00efff02u
struct store_given { /* and the answer behind it */
    uint64_t number;
    uint32_t error; /* never ERR_NOT_FOUND; others as of store_submit */
    uint32_t unused;
};
uint64_t store_time_us(void); /* the wall clock as commands want it */
/* Steady time: the wall clock when the store was opened, or where steady time had come to if that is later (store/steady.h), and what
 * has elapsed since. A wall clock that leaps changes nothing in it, so durable deadlines that are a duration from now go by it. */
uint64_t store_steady_us(const struct store *store);
/* What is due by steady time, as the wall clock shows it when it comes, which is what people read; 0 stays 0. */
uint64_t store_wall_of(const struct store *store, uint64_t steady_us);

/* Actors that want to know of a topic join its group: a cast of STORE_WAKE (payload: u32 topic) follows each
 * commit that touched it. A topic is a domain's number and a shard or partition. A writer that is killed after its commit
 * leaves the casts to its successor. */
#define STORE_WAKE                0x00efff01u
#define STORE_TOPIC(kind, number) ((uint32_t)(kind) << 8 | ((uint32_t)(number)&0xff))
#define STORE_TOPICS(X)                                                   \
    X(TOPIC_OUTBOX, 0)     /* number: the partition */                    \
    X(TOPIC_DUE, 1)        /* number: the queue */                        \
    X(TOPIC_EVENTS, 2)     /* number: the last byte of the stream's id */ \
    X(TOPIC_JOBS, 3)       /* store/job.h */                              \
    X(TOPIC_DELIVERIES, 4) /* number: the partition */
enum store_topic {
#define X(id, number) id = number,
    STORE_TOPICS(X)
#undef X
};
#define STORE_WATCHERS_MAX 8000u /* of one topic; more aren't woken */
#define STORE_GROUP_SIZE   40
void store_group(uint32_t topic, char name[STORE_GROUP_SIZE]); /* the group's name */
/* Who waits for a part of a topic joins this group, and the topic's own, too: what concerns all of it is told there. A wake-up for one
 * part goes to one of them; its payload is a struct store_part. Who has no use for it passes it on (store_pass_on). */
struct store_part {
    uint32_t topic, unused;
    uint64_t part, other; /* whom it is for: who waits for the one, or else for the other */
};
void store_part_group(uint32_t topic, uint64_t part, char name[STORE_GROUP_SIZE]);
/* To the next one, if there is any. From an actor that has left its groups; of another payload nothing is passed on. */
void store_pass_on(struct message *wake);

#endif
