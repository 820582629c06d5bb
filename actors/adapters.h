/* Adapters: what the process needs from outside before it may serve, set up once by the actor "runtime".
 *
 * Each adapter has a name and an init, which either makes the thing ready or says in one sentence why it
 * can't. The actor runs them in order before it handles anything, so whoever gets an answer from it knows
 * that all are ready. One that fails is not retried here: the event failure.adapter_init names it, the actor
 * ends, and its supervisor decides; a root that starts it in vain four times within ten seconds ends the
 * process.
 */
#ifndef COPPICE_ACTORS_ADAPTERS_H
#define COPPICE_ACTORS_ADAPTERS_H

#include "runtime/actor.h"

#define ADAPTERS_MAX     16u
#define ADAPTER_NAME_MAX 32u
#define ADAPTER_TEXT_MAX 160u
#define ADAPTERS_NAME    "runtime"

struct adapters_args;

struct adapter {
    const char *name;
    const char *prose; /* what it makes sure of */
    /* In the actor; may block. False: *text says why. True: *text may say what was found. */
    bool (*init)(const struct adapters_args *args, char text[ADAPTER_TEXT_MAX]);
};

/* Borrowed for the process's life; arrays and all. */
struct adapters_args {
    const struct adapter *adapters[ADAPTERS_MAX]; /* NULL ends the list */
    uint64_t descriptors;                         /* for the adapter "descriptors": how many are needed */
};
extern const struct actor_class adapters_class;

/* Those that come with the product, ending with one without a name: clock, descriptors. */
extern const struct adapter adapters_known[];

struct adapter_state {
    char name[ADAPTER_NAME_MAX];
    char text[ADAPTER_TEXT_MAX];
};
/* All that are ready, which is all there are. Errors as actor_call: no answer means not ready. */
enum error adapters_list(struct adapter_state *states, size_t count, size_t *ret_stored, uint64_t deadline);

#endif
