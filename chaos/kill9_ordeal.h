/* An ordeal: one store, from its making until it has been killed some tens of times, and all that is known of it.
 *
 * Three processes are about it in each cycle. The parent has `ordeal`; the process that is killed and the one that looks
 * afterwards are forks of it and begin with what it knew. What they do and find out comes back through `ordeal_shared`,
 * which is the same memory in all of them.
 */
#ifndef COPPICE_CHAOS_KILL9_ORDEAL_H
#define COPPICE_CHAOS_KILL9_ORDEAL_H

#include "chaos/kill9_model.h"
#include "store/store.h"

#define ATTEMPTS_MAX 600u /* of a lane, in one cycle */

/* What a campaign does wrong on purpose before it begins, and must notice: else nothing it says counts. */
enum control {
    CONTROL_NONE,
    CONTROL_EARLY,      /* answers before the commit */
    CONTROL_HALF,       /* commits a batch in two halves */
    CONTROL_TWIN_EARLY, /* the same two of an ordeal with a twin */
    CONTROL_TWIN_HALF,
    CONTROL_COUNT
};

struct ordeal {
    enum control control;
    uint64_t number, seed;
    char dir[400], twin_dir[408];
    bool actors,
        twin; /* actors: who submits; twin: every command, and what must be there is a store (kill9_twin.h) */
    bool on_disk, committed; /* committed: a store must be there */
    uint32_t lanes_busy;     /* lanes that submit */
    struct store_options options;
    uint64_t clock_us;
    uint64_t fence[OUTBOX_PARTITIONS];
    uint32_t cycle, cycles;
    struct lane_model lane[OWNERS];
};
extern struct ordeal ordeal;

/* Of an ordeal with a twin: the batches of this cycle. */
#define ORDEAL_BATCHES_MAX 2000u
struct ordeal_batches {
    _Atomic uint32_t begun, answered;
    uint64_t sums[ORDEAL_BATCHES_MAX]; /* of their answers */
};

struct ordeal_shared {
    uint32_t count[LANES]; /* attempts of this cycle */
    struct attempt attempts[LANES][ATTEMPTS_MAX];
    struct ordeal_batches batches;
    struct ordeal left; /* what is known after somebody has looked */
    char complaint[512];
};
extern struct ordeal_shared *ordeal_shared; /* of one parent */

#define ORDEAL_COMMANDS_MAX 128u
struct ordeal_totals {
    _Atomic uint64_t cycles, failed, in_memory, on_disk, opening, load, closing, stores, checked_rows;
    _Atomic uint64_t acknowledged, lost, refused, present;
    _Atomic uint64_t unknown, committed, uncommitted, same;
    _Atomic uint64_t batches_cut, made_again, twins;
    _Atomic uint64_t commands[ORDEAL_COMMANDS_MAX]; /* of the registry: how many twins' stores accepted */
};
extern struct ordeal_totals *ordeal_totals; /* of all parents */

/* Once for each process that is a parent. Ends the process when there is no memory. */
void *ordeal_memory(size_t size);
void ordeal_install(void);

/* Where the stores of a campaign lie. */
struct ordeal_place {
    const char *disk, *memory;
    uint32_t parent;
};
/* What is different from one to the next: sizes at which a map must grow often and files must be allocated anew, how
 * many lanes, who makes the batches, and where. Nothing is left of another store in its directory. */
void ordeal_begin(const struct ordeal_place *place, enum control control, struct dice *dice);
void ordeal_cycle(struct dice *dice);
/* Its store goes, and its twin. */
void ordeal_end(void);

/* The attempt of a lane that has no answer, or NULL: of a lane that waits for each answer there is at most one. */
struct attempt *ordeal_open(uint32_t lane);
/* False, always: what is wrong, for whoever tells of it. */
__attribute__((format(printf, 1, 2))) bool ordeal_complain(const char *format, ...);

/* From the process that is killed to its parent: where it is. */
enum ordeal_moment { ORDEAL_OPENS = 'o', ORDEAL_ANSWERED = 'a', ORDEAL_CLOSES = 'c' };
void ordeal_tell_to(int fd);
void ordeal_tell(enum ordeal_moment moment);

#endif
