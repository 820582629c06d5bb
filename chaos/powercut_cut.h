/* A cut: what the processes of the power cut campaign share, and what each of them works with.
 *
 * One recorder writes a log of a seed; checkers look at the states that it may have left, and may die of them. All of them are
 * forks of one worker, and what they count and find is in memory that they share with the campaign.
 */
#ifndef COPPICE_CHAOS_POWERCUT_CUT_H
#define COPPICE_CHAOS_POWERCUT_CUT_H

#include <limits.h>
#include <stdatomic.h>

#include "chaos/dice.h"
#include "chaos/platter.h"
#include "runtime/env.h"
#include "store/store.h"

enum { CUT_WORKERS_MAX = 16, CUT_REPORTS_MAX = 24, CUT_ALLOWED_MAX = 64, CUT_ROWS_MAX = 200000 };

/* Left in the log of the disk by the recorder. */
enum mark {
    MARK_ATTEMPT = 1, /* of a write: what it shows once it is there */
    MARK_DATA,        /* the number of data.mdb */
    MARK_OPENING,
    MARK_OPENED, /* and what it shows */
    MARK_ANSWERED,
};

/* "A", "B", "C" */
const char *cut_control_name(enum platter_kind kind);

struct report {
    uint64_t seed, state;
    uint32_t kind;
    char text[200];
};

struct cut_shared {
    _Atomic uint64_t next_seed, states, trees, images, seeds, batches, failed_syncs, kills, grown, deaths,
        full;
    _Atomic uint64_t violations, caught[PLATTER_KINDS], control_states[PLATTER_KINDS];
    _Atomic uint32_t reports_count;
    struct report reports[CUT_REPORTS_MAX];
    struct worker {
        _Atomic uint64_t at, found; /* the state being looked at; violations of this part */
        _Atomic uint32_t recorded;
    } workers[CUT_WORKERS_MAX];
};
extern struct cut_shared *cut_shared;

struct cut_options {
    uint64_t states, first_seed, only_state;
    uint32_t workers;
    enum platter_kind only_kind;
    bool only;
    char dir[PATH_MAX - 64];
};
extern struct cut_options cut_options;

/* Of this process. */
struct cut_here {
    struct worker *worker;
    uint64_t seed;
    enum platter_kind kind;
    char dir[PATH_MAX - 32];
    uint64_t now, wall;
    struct dice chance;
};
extern struct cut_here cut_here;
extern struct env cut_env; /* its time and chance are the seed's */

/* Of the state that the worker is at. Of a control it is what was wanted. */
__attribute__((format(printf, 1, 2))) void cut_violation(const char *format, ...);
void cut_path(char path[PATH_MAX], const char *name);
void cut_remove(const char *path);
/* What `coppice check` would find in its rows is a violation. */
void cut_check_rows(struct store *store, const char *where);

#endif
