/* Fallow: pages that commits have freed, left alone for a while.
 *
 * LMDB takes a commit's pages from those that earlier commits freed: two dozen single pages all over the file, each a
 * write of its own, and a sync that has to wait for all of them. So the writer keeps a transaction of its own open for
 * reading. What was freed since it began isn't used while it is open; a commit takes all of its pages from the end of the
 * file, one behind the other, and flushes them in a few long writes. From time to time the transaction begins anew: then
 * LMDB uses up what lay fallow, which by now are whole stretches of pages, before the file grows again
 * (docs/decisions/0025-fallow.md).
 *
 *     phase        pages come from                                  it ends when
 *     growing      the end of the file; the freed ones lie fallow   there are as many as the limit allows
 *     stretches    those that lay fallow until now                  none are left: the file grows
 *     none         any that is free, as LMDB has it                 none are left: the file grows
 *
 * Growing follows stretches when less than half of the limit has become free meanwhile: else what is written takes the place
 * of something older, and the file must not grow by it. The limit is FALLOW_BYTES, or a quarter of what the file holds if
 * that is less; so that is what it costs. Pages that lie fallow are used before the map grows, and on a full disk none do.
 * It is for commits of many commands, FALLOW_MANY of them: one of a single command has few pages, and a file that grows under
 * it costs more than their places do.
 *
 * What it does depends on the sequence of batches and on the file alone, so that a journal that is replayed gives the same
 * bytes. Views of actors (store/view.h) have nothing to do with it.
 *
 * Belongs to the writer's thread. No function blocks; whoever is killed in the middle of one leaves the store unusable, so
 * callers guard them (actor_guard_begin).
 */
#ifndef COPPICE_STORE_FALLOW_H
#define COPPICE_STORE_FALLOW_H

#include <lmdb.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/environment.h"

#define FALLOW_BYTES (UINT64_C(64) << 20)
#define FALLOW_STEP \
    (UINT64_C(1) << 20) /* with a smaller one a commit might need more than is allocated ahead: then never */

#define FALLOW_MANY   16u
#define FALLOW_PAGES  (UINT64_C(24) << 10) /* that a command rewrites, at most: its rows' leaves */
#define FALLOW_LATELY 8u                   /* commits: each later one counts for an eighth less */

enum fallow_phase { FALLOW_NONE, FALLOW_GROWING, FALLOW_STRETCHES };

/* All zeros: nothing lies fallow. */
struct fallow {
    MDB_txn *reader; /* kept from one time to the next, also while it isn't open */
    bool open;
    bool resting; /* the map was full: none until it is larger */
    enum fallow_phase phase;
    uint32_t usual; /* commands of a commit, lately; times FALLOW_LATELY */
    uint64_t until; /* a phase ends when the file holds more */
};

/* Before a transaction of the writer's. A reader that can't begin is no error: then pages are used at once, as LMDB does. */
void fallow_tend(struct fallow *fallow, struct environment *environment);
/* A commit was done, with so many commands. */
void fallow_note(struct fallow *fallow, struct environment *environment, size_t commands);
/* Bytes by which the next commit may make the file grow beyond what its commands bring, because it uses none of the freed pages;
 * they must be allocated ahead. */
uint64_t fallow_growth(const struct fallow *fallow);
/* The map is full. True: pages lay fallow, and can be used now; none will until fallow_go_on. */
bool fallow_yield(struct fallow *fallow, struct environment *environment);
/* Before the map changes: no transaction may be open then. */
void fallow_end(struct fallow *fallow, struct environment *environment);
/* The map has grown, or a disk that was full has room again. */
void fallow_go_on(struct fallow *fallow);
/* Before the environment is closed. */
void fallow_close(struct fallow *fallow, struct environment *environment);

#endif
