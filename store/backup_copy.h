/* A copy: one state of a store, compact, in a file of its own, numbered as the commit that it is.
 *
 * In a child process: it believes a file that may be damaged (store/guest.h).
 */
#ifndef COPPICE_STORE_BACKUP_COPY_H
#define COPPICE_STORE_BACKUP_COPY_H

#include "store/backup_look.h"

struct copy {
    char dir[DIRECTORY_PATH_MAX + 1];                        /* of what */
    char partial[DIRECTORY_PATH_MAX + sizeof(LOOK_PARTIAL)]; /* into what */
    const struct schema *schema;
};
/* Of a struct copy: LOOK_DATA_FILE in copy->partial, which has none, is written and synced. Takes as long as it takes. */
enum error copy_work(void *shared, char *ret_text, size_t text_size);

/* Where a meta page of LMDB's has the number of its commit, and the first one the size of pages. */
enum { COPY_META_PAGE_SIZE_AT = 40, COPY_META_COMMIT_AT = 144 };

#endif
