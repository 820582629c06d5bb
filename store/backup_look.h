/* A look at the data of a backup: its bytes, and the store that they hold.
 *
 * Nobody else has it, so LMDB's lock file isn't needed, and isn't written. What believes the file runs in a child
 * (store/guest.h): look_work is what it does.
 */
#ifndef COPPICE_STORE_BACKUP_LOOK_H
#define COPPICE_STORE_BACKUP_LOOK_H

#include "store/backup.h"
#include "store/directory.h"
#include "store/environment.h"
#include "store/saying.h"

#define LOOK_DATA_FILE "data.mdb"
#define LOOK_PARTIAL   ".partial" /* behind the name of a backup that is being made */

enum { LOOK_DIR_MODE = 0700, LOOK_FILE_MODE = 0600 };

struct look {
    char dir[DIRECTORY_PATH_MAX + sizeof(LOOK_PARTIAL)]; /* in */
    const struct schema *schema;
    bool references_too;       /* row by row; else only what each page and value says of itself */
    struct meta_format format; /* out */
    uint64_t rows;
};
void look_init(struct look *look, const char *dir, const struct schema *schema, bool references_too);
/* Of a struct look, in a child, whose end releases everything. */
#define LOOK_WHAT "the check of the copy"
enum error look_work(void *shared, char *ret_text, size_t text_size);

/* flags: MDB_RDONLY, or 0 to write; what was written is synced by the caller. LMDB's codes. */
int look_map(const char *dir, unsigned flags, MDB_env **ret_env, MDB_txn **ret_txn);
enum error look_format(struct saying *s, const char *dir, MDB_txn *txn, struct meta_format *ret_format);

/* SHA-256 of the whole file; to: where it is written as well, or -1. False: errno says why. */
bool look_digest(int fd, int to, char ret_hex[BACKUP_SHA256_SIZE]);
/* All of it. False: errno says why. */
bool look_write(int fd, const char *bytes, size_t size);

#endif
