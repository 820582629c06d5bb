/* The opening: the store is opened by a thread of its own, while boot does what needs no store.
 *
 * For the thread that boots, and for one opening at a time.
 */
#ifndef COPPICE_CONFIG_OPENING_H
#define COPPICE_CONFIG_OPENING_H

#include <stdbool.h>

#include "config/options.h"
#include "store/store.h"

/* Begins; without memory for a thread it has ended before it returns. Options are borrowed until opening_end. */
void opening_begin(const struct options *o);
/* True: it has ended, well or not. False: it goes on, and so many ns have passed. */
bool opening_wait(uint64_t ns);
/* `call` is called once, by the opening's thread, when that has ended; at once when it has already. After opening_then(NULL,
 * NULL) it isn't any more. */
void opening_then(void (*call)(void *arg), void *arg);
/* For a process that ends instead: waits for a moment, and then leaves an opening that goes on alone. What it leaves on the
 * disk is what a crash would leave. */
void opening_leave(void);
/* Waits for the end. NULL: it was logged why not, and *ret_status is the exit status. */
struct store *opening_end(int *ret_status);

#endif
