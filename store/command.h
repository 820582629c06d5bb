/* Commands: a change as a plain struct, with everything it needs.
 *
 * A command brings its own time and its own new ids. Applying it reads the transaction, decides, and then
 * either refuses with an error and has written nothing, or writes everything that follows (records, events,
 * outbox, ledger, due entries, counters) and succeeds. It reads no clock, no random source and nothing global:
 * the same commands in the same order give the same bytes. It never waits, never allocates and is called with
 * the transaction open, on the writer's thread.
 *
 * One row of a schema's table declares a command: a name for people, a code that is stored in journals, the
 * fields (a record, so codec and JSON come with it) and the function.
 */
#ifndef COPPICE_STORE_COMMAND_H
#define COPPICE_STORE_COMMAND_H

#include "store/record.h"

struct txn;

#define COMMAND_SIZE_MAX   60000u /* encoded; it travels in one message */
#define COMMAND_STRUCT_MAX 1024u
#define ANSWER_SIZE_MAX    4096u

/* What a command answers beyond success: bytes for the submitter, which the ledger may keep. */
struct answer {
    enum error error;
    uint32_t size;
    uint8_t *bytes; /* room for ANSWER_SIZE_MAX; borrowed from the batch */
};

enum command_priority {
    COMMAND_NORMAL = 0, /* refused under pressure level shed */
    COMMAND_LOW,        /* refused from pressure level degraded on */
    COMMAND_HIGH,       /* taken as long as there is room */
};

struct command_class {
    const char *name; /* "audit.append" */
    const struct record_class *record;
    enum error (*apply)(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer);
    /* Optional: called a little before apply, so that what apply will look for in memory is near by then (ledger_expect).
     * Changes nothing, and apply may not rely on it. */
    void (*announce)(const struct txn *txn, const void *command);
    /* Optional: it may stand in the writer (store_stand). When it is taken up again, what it says of the time is set to now. */
    void (*renew)(void *command, uint64_t steady_us);
    uint32_t topic; /* and for things of this topic it stands (txn_wake_one) */
    uint16_t code;
    uint8_t priority; /* enum command_priority */
    bool cleanup;     /* frees space: may use the reserve when ordinary commands get ERR_NO_SPACE */
};

/* For apply functions: append to the answer. More than ANSWER_SIZE_MAX is a bug. */
void answer_add(struct answer *answer, const void *bytes, size_t size);

#endif
