/* Verifying a backup: whether it is what its manifest says, byte by byte and row by row.
 *
 * For whoever verifies one and for whoever brings one back; the public functions are in store/backup.h.
 */
#ifndef COPPICE_STORE_BACKUP_VERIFY_H
#define COPPICE_STORE_BACKUP_VERIFY_H

#include "store/backup_manifest.h"
#include "store/directory.h"

/* The directory of a backup; path: without links. ERR_MISSING. */
enum error verify_open(struct saying *s, const char *dir, char path[DIRECTORY_PATH_MAX + 1], int *ret_fd);
enum error verify_whole(struct saying *s, const char *dir, int dir_fd, const struct schema *schema,
                        struct manifest *ret_manifest);

#endif
