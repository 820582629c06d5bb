/* A batch: commands that share one commit.
 *
 * batch_run begins a transaction, applies the commands one after the other, commits and returns. What it returns
 * is about all of them, what each of them answered stands in its item:
 *
 *     OK              committed: every item has its own answer, success or refusal
 *     ERR_NO_SPACE    not committed, nothing written: disk or map is full
 *     ERR_MEMORY      not committed, nothing written
 *     ERR_DAMAGED     not committed, nothing written: a counter's row or a page can't be believed (ERR_NEWER likewise)
 *     ERR_IO          the commit failed: what is on the disk is unknown, the store is STORE_FAILED and its
 *                     process must end; nobody may be told anything about these commands
 *     ERR_UNAVAILABLE not tried: the store had failed before
 *
 * A full map (MDB_MAP_FULL) aborts, grows the map and applies the same batch again: applying depends on the
 * commands alone. A batch that only refuses writes nothing and commits nothing.
 *
 * Called by the writer, on its thread, and by programs that have a store for themselves. It blocks for the two
 * flushes of a commit.
 */
#ifndef COPPICE_STORE_BATCH_H
#define COPPICE_STORE_BATCH_H

#include "store/store.h"

struct batch_item {
    const struct command_class *class;
    uint64_t at_us;
    struct span bytes; /* the encoded command; borrowed */
    struct answer answer;
    bool stands; /* it can wait in the writer: where there is no room for it, nobody is refused anything */
};

/* count <= BATCH_MAX. */
enum error batch_run(struct store *store, struct batch_item *items, size_t count);

/* The same in two parts, for the writer. batch_gather commits items[0..*count) and what comes while it applies them:
 * `more` is asked inside the transaction, puts further commands behind items[count] with at most `room` encoded bytes in
 * all, and returns how many items there are now; as many as before, or BATCH_MAX, and the batch is complete. It may look
 * for messages (actor_listen), nothing else: no store, no waiting. *count is then how many were applied. After an error
 * that aborted the batch all of them stand in items. It isn't asked while the store is tight.
 *
 * batch_rest is what can wait until the submitters have their answers: room for the next batch. */
typedef size_t batch_more(void *arg, size_t count, uint64_t room);
enum error batch_gather(struct store *store, struct batch_item *items, size_t *count, batch_more *more,
                        void *arg);
void batch_rest(struct store *store);

/* One command by itself, for programs without a writer. answer may be NULL. */
enum error batch_one(struct store *store, const struct command_class *class, uint64_t at_us,
                     const void *command, struct answer *answer);

#endif
