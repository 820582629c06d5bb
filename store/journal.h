/* The journal: every batch as it was committed, in a file, to be replayed elsewhere.
 *
 *     "coppice journal 1\n", identity:16, secret:16, and as u64 the commit it begins after, the map, its most, the
 *     step and the reserve of the store's environment; u64 checksum of all that
 *     then per batch: 'B', u32 count, u64 size of the commands, u64 checksum of these 13 bytes
 *         per command: u64 at_us, u16 code, u8 1 done or 0 refused, u32 size, the encoded command
 *         u64 checksum of the commands
 *
 * Numbers are little-endian. Each checksum is seeded with the one before it, so nothing can be taken out, doubled or
 * put in from another journal. The size stands in front, with a checksum of its own, because only so an end in the
 * middle of a batch (ignored: nobody was told that it was recorded) differs from damage (ERR_DAMAGED).
 *
 * Off unless store_options.record names a file. A batch is written before it is answered, without a sync: the
 * journal is for repeating, the store for keeping. It holds the store's secret: mode 0600. What a file of this name
 * holds is kept: the next run of a server writes FILE.2, then FILE.3, up to JOURNAL_FILES.
 *
 * Commands that were refused for lack of room (ERR_NO_SPACE, ERR_LIMIT) are left out, because that depends on the disk.
 * All others end in a replay as they did when they were recorded, or the replay ends with ERR_CONFLICT. A command of an
 * earlier version of its class is read as such (store/batch.c); a field that it hasn't got says so with 0.
 *
 * Replaying a journal that begins at the making of a store gives the same bytes in data.mdb, when no reader kept
 * pages from being used again while it was recorded; the same rows in any case. Unused bytes of a page may differ: where
 * a transaction needs two of its own new pages no more, LMDB leaves the address of one in the other. After a write that
 * failed nothing more is written: a journal has no gaps.
 */
#ifndef COPPICE_STORE_JOURNAL_H
#define COPPICE_STORE_JOURNAL_H

#include "store/batch.h"

#define JOURNAL_FILES 1000u

struct journal;

/* The store is open. ERR_EXISTS: all names are taken. */
enum error journal_create(const char *file, const struct store *store, struct journal **ret_journal);
void journal_close(struct journal *journal); /* accepts NULL */
/* OK, ERR_NO_SPACE, ERR_IO; after an error, always that one. */
enum error journal_write(struct journal *journal, const struct batch_item *items, size_t count);
/* What the system said of the write that failed, an errno; 0 when none has. */
int journal_code(const struct journal *journal);

struct replay_report {
    uint64_t batches, commands, refused, commit;
    bool cut_off; /* the file ends within a batch, which was left out */
};
/* Makes a store in dir (which must be empty or missing) and applies every batch of the file to it. ERR_INVALID: it
 * isn't a journal, or it begins after the making of its store. After ERR_DAMAGED, ERR_CONFLICT and errors of the store,
 * dir holds what was applied until then. */
enum error journal_replay(const char *file, const char *dir, const struct schema *schema,
                          struct replay_report *ret_report, char *ret_text, size_t text_size);

#endif
