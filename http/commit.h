/* Commits of requests: store_submit with a span, so that a trace goes from the request to the disk.
 *
 * Handlers that change the store for a request use this instead of store_submit. The answers are the same; the wait is
 * recorded as the span "store.commit" below the request's, with the command's name, when the trace is sampled and
 * somebody exports.
 */
#ifndef COPPICE_HTTP_COMMIT_H
#define COPPICE_HTTP_COMMIT_H

#include "http/request.h"
#include "store/store.h"

/* Waits, as store_submit does. */
enum error commit_submit(const struct request *q, const struct command_class *class, const void *command,
                         void *ret_bytes, size_t room, size_t *ret_size, uint64_t deadline);

#endif
