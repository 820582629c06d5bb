/* Backups: a whole store copied while it works, and brought back.
 *
 *     DIR/data.mdb       one consistent state, compact, synced; it counts on from the commit that it is
 *     DIR/manifest.json  format, identity, commit, size, rows, SHA-256 of data.mdb, when and by which version
 *
 * Written as DIR.partial, past the page cache where the file system can; read back: each page and the checksum of each
 * value; and renamed when all that held: so a directory that has its name is a whole and faithful copy, and a failure
 * leaves none. Whether the rows fit together (references, counters) is what backup_verify looks at, as `coppice check`
 * does. What an interrupted one left as DIR.partial is removed by the next.
 *
 * Made by processes of its own beside the server: one reads one state to its end, and pages that are overwritten
 * meanwhile aren't used again, so the store's file may grow by as much as is written during the copy. After each
 * moment in which the server committed they rest for longer than that (guest_pace); beside an idle one they don't.
 * LMDB copies no store that has lost pages (`coppice check` counts them); then it is a server that has to be stopped and
 * files that have to be copied.
 *
 * A backup holds the store's secret: mode 0700. A verified one was not written to, not even LMDB's lock file.
 *
 * Whatever believes a file that may be damaged runs in a child process (store/guest.h). Blocks for as long as it takes.
 */
#ifndef COPPICE_STORE_BACKUP_H
#define COPPICE_STORE_BACKUP_H

#include "store/environment.h"

#define BACKUP_SHA256_SIZE 65u /* in hexadecimal, with its end */

struct backup_report {
    uint64_t bytes, commit, rows;
    char sha256[BACKUP_SHA256_SIZE];
};

/* to must not exist. ERR_EXISTS; ERR_IN_USE: another backup to the same place is under way; ERR_DAMAGED: also for one value
 * that isn't what was written; else as environment_open. */
enum error backup_make(const char *dir, const char *to, const struct schema *schema, uint64_t wall_ns,
                       struct backup_report *ret_report, char *ret_text, size_t text_size);
/* Manifest, checksum, image, and all that must be true of rows. ERR_MISSING: no backup; ERR_DAMAGED; ERR_NEWER. */
enum error backup_verify(const char *dir, const struct schema *schema, struct backup_report *ret_report,
                         char *ret_text, size_t text_size);
/* into must be empty or missing (ERR_EXISTS), or a restore was cut off there: what that left is removed, but for a data.mdb that isn't
 * the backup's byte for byte (ERR_EXISTS): a server of before the lock file said this may have written to it. Verifies first. The
 * restored store has the identity of the one backed up, and goes on from its commit. A failure leaves into as it was.
 *
 * Cut off by a kill or a power cut, it leaves a directory whose lock file says "coppice restore": with a complete data.mdb
 * in it, which is the restored store, or without one, and then opening refuses it (store/environment.h) until the restore is
 * done again. Only before that line is on the disk is it as if nothing had begun. */
enum error backup_restore(const char *dir, const char *into, const struct schema *schema,
                          struct backup_report *ret_report, char *ret_text, size_t text_size);

#endif
