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

/* How long a request may take, from when it had come: http.request.timeout of its listener. What has not been begun by then
 * is not done (store/writer.h). */
#define COMMIT_REQUEST_NS (10 * NS_PER_S) /* where there is no listener */
uint64_t commit_deadline(const struct request *q);
/* How many, and how many of them the store couldn't do, since the process began. Any thread. */
struct commit_figures {
    uint64_t commits, failed;
    uint64_t reads, reads_failed; /* as their handlers have said: commit_note_read */
};
struct commit_figures commit_figures(void);

/* By a handler that has read the store: what came of it. ERR_NOT_FOUND and such are no failures. */
void commit_note_read(enum error e);

/* Waits, as store_submit does, but no longer than store.op_timeout: then ERR_UNAVAILABLE, and what hasn't been begun by then is
 * not done. */
enum error commit_submit(const struct request *q, const struct command_class *class, const void *command,
                         void *ret_bytes, size_t room, size_t *ret_size, uint64_t deadline);

#endif
