/* Directories: what backup, restore and replay need of them. All of it blocks. */
#ifndef COPPICE_STORE_DIRECTORY_H
#define COPPICE_STORE_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/error.h"

#define DIRECTORY_PATH_MAX 4000u /* of a path that is given; what is appended to it fits in 4,096 bytes */

/* The path without slashes at its end. ERR_INVALID and a sentence when nothing is left or it is too long. */
enum error directory_path(const char *path, char ret_path[DIRECTORY_PATH_MAX + 1], char *ret_text,
                          size_t text_size);
/* Missing or empty: OK. ERR_EXISTS with the first name that is in the way; ERR_NOT_WRITABLE, ERR_SYSTEM. */
enum error directory_vacant(const char *path, bool *ret_missing, char *ret_text, size_t text_size);
/* The same for one in which these names, up to NULL, may be. */
enum error directory_vacant_but(const char *path, const char *const *names, bool *ret_missing, char *ret_text,
                                size_t text_size);
/* Syncs the directory in which the path's last name stands. False with errno. */
bool directory_sync_parent(const char *path);

/* What errno says, as an error, and a sentence: "'PATH' can't be WHAT: ...". */
enum error directory_refuse(int code, const char *path, const char *what, char *ret_text, size_t text_size);

#endif
