/* Failing: the n-th call fails, and every call gets its turn.
 *
 * A test that is linked with the copies of libhouse.a and liblmdb.a whose calls of the heap, the system and LMDB are
 * renamed (Makefile: FAILING_...) has each of these go through here. Armed, the n-th of one kind fails once and does
 * nothing; unarmed, all pass. Calls of the test itself and of the runtime aren't renamed.
 *
 *     for (uint64_t n = 1;; n++) {
 *         failing_begin(FAILING_HEAP, n);
 *         e = store_open(...);
 *         if (!failing_end())
 *             break;          it made fewer than n calls
 *         ... e is an error, and nothing is half done ...
 *     }
 *
 * For one thread, and the children that it waits for: their calls are counted with its own.
 */
#ifndef COPPICE_TESTS_SUPPORT_FAILING_H
#define COPPICE_TESTS_SUPPORT_FAILING_H

#include <stdbool.h>
#include <stdint.h>

/* X(ID, "name") */
#define FAILING_KINDS(X)                                                               \
    X(FAILING_HEAP, "no memory")                                                       \
    X(FAILING_SYSTEM, "a system call: EIO")                                            \
    X(FAILING_SPACE, "a system call: ENOSPC, EMFILE") /* those that can say so */      \
    X(FAILING_LMDB, "LMDB: EIO, damage, ENOMEM")      /* what each is likely to say */ \
    X(FAILING_LMDB_FULL, "LMDB: MDB_MAP_FULL, ENOSPC")

enum failing_kind {
#define X(id, name) id,
    FAILING_KINDS(X)
#undef X
        FAILING_KIND_COUNT
};

void failing_begin(enum failing_kind kind, uint64_t n);
/* Instead of failing, the n-th call isn't made, and the process ends there with this status, as if it had been killed. */
#define FAILING_ENDED 99
void failing_begin_ending(enum failing_kind kind, uint64_t n);
/* Whether the n-th call came and failed. */
bool failing_end(void);
/* The next call of this function fails with this code, whatever is armed; those of the system alone, not LMDB's and the heap's. */
void failing_next(const char *name, int code);
/* In the instant before the next call of it, this runs: somebody else is quicker. */
void failing_before(const char *name, void (*run)(void));
/* The function that failed last. */
const char *failing_name(void);
/* Allocations of the renamed code that weren't freed. */
int64_t failing_live(void);

#endif
