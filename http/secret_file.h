/* Secret files: a few bytes that belong to this server's user and to nobody else.
 *
 * Made with mode 0600 under another name, synced, and renamed, so that one is there whole or not at all. Refused when it
 * is read: a link, something that isn't a file, one that others may read or that belongs to somebody else, except what the
 * service manager has put into $CREDENTIALS_DIRECTORY. Boot only: all of it blocks. Sentences name the path.
 */
#ifndef COPPICE_HTTP_SECRET_FILE_H
#define COPPICE_HTTP_SECRET_FILE_H

#include <stddef.h>

#include "runtime/error.h"

/* OK and *ret_size, at most `room`. ERR_MISSING: no such file; ERR_FOREIGN: not as described, or longer than room;
 * ERR_SYSTEM. */
enum error secret_file_read(const char *path, void *bytes, size_t room, size_t *ret_size, char *ret_text,
                            size_t text_size);
/* ERR_SYSTEM, ERR_INVALID (a path that is too long). Replaces what is there. */
enum error secret_file_write(const char *path, const void *bytes, size_t size, char *ret_text,
                             size_t text_size);

#endif
