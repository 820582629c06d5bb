/* Witness: one client of a server that is killed: what it has tried, what it was told, and whether that is still so.
 *
 * It submits jobs, each with a key of its own, wrong ones among them, others' keys with another body, and cancels. Of each number it knows
 *
 *     answered   202: the job is there under its id, and its key gives that id again, told as a repeat
 *     refused    whatever was wrong, and 503 of a server that drains: nothing is there, so its key is as good as new
 *     unknown    no answer: the same key gives a job, the one that is there (committed) or a new one (not committed)
 *     canceled   200: CANCELED for ever; without an answer either, and the same cancel again tells
 *     final      once seen, a final state never changes, and the report is there (JOB-293)
 *
 * An answer that is missing while nobody has killed the server, and any other status, is a violation, too. At rest the list of
 * all jobs has those that are known, each once, and no other one.
 *
 * Not for threads.
 */
#ifndef COPPICE_CHAOS_WITNESS_H
#define COPPICE_CHAOS_WITNESS_H

#include <stdatomic.h>

#include "chaos/dice.h"
#include "chaos/sheaf.h"

#define WITNESS_JOBS_MAX 8192u
#define WITNESS_ID_SIZE  37u

/* Of all witnesses, in memory that they share. */
struct witness_totals {
    _Atomic uint64_t answered, refused, canceled;
    _Atomic uint64_t committed, uncommitted; /* unknown ones, once they are known */
    _Atomic uint64_t looks, listed, violations;
};

enum witness_known { WITNESS_UNTRIED, WITNESS_REFUSED, WITNESS_UNKNOWN, WITNESS_ANSWERED };
/* What a number is, for ever: of eight one waits for a day that doesn't come. KEPT ones are the first of a large store. */
enum witness_kind { WITNESS_RUN, WITNESS_DEFERRED, WITNESS_KEPT };

struct witness_job {
    char id[WITNESS_ID_SIZE], state[12];
    uint8_t known, kind;
    bool cancel_tried, canceled, final, reported;
};

struct witness {
    struct sheaf sheaf;
    struct dice dice;
    struct witness_totals *totals;
    struct witness_job *jobs; /* by the number of the key */
    uint32_t count, touched;  /* touched: the lowest number that the last server was asked about */
    char client[64];
    bool draining, quiet; /* draining: told to end; quiet: violations are counted here and nowhere else */
    uint64_t violations;
    char first[512]; /* of them */
    char place[512]; /* for whoever reads of it */
};

/* False: no memory; witness_fini is to be called either way. */
bool witness_init(struct witness *w, struct witness_totals *totals, uint64_t seed);
void witness_fini(struct witness *w);
/* Another store: nothing is known. */
void witness_forget(struct witness *w, const char *place);
/* The server at this port, with the same store as before. */
void witness_meet(struct witness *w, uint16_t port);
__attribute__((format(printf, 2, 3))) void witness_complain(struct witness *w, const char *format, ...);

/* These three are false when an answer is missing: the server has ended, or is about to. */
/* A client and a key, unless it has them. */
bool witness_enrol(struct witness *w);
/* All that the last server was asked about, and a few older ones. */
bool witness_judge(struct witness *w);
/* So many new requests, all at once. */
bool witness_load(struct witness *w, uint32_t count);
/* Jobs of `size` bytes for which nobody comes; all are answered. */
bool witness_fill(struct witness *w, uint32_t count, uint32_t size);

/* With a server that nobody kills: everything that was ever tried becomes known, comes to its end and is compared, the list too. */
void witness_rest(struct witness *w);

#endif
