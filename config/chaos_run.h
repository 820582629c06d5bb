/* One scenario against a running server: the fault is the script's, everything else is measured here, from outside.
 *
 *     look at the tree; start the load; run the script; wait until all is well; look again; ask after every job; judge
 *
 * What the script says (lines on its descriptor 3): dies NAME, dies-below NAME, check yes|no WHAT, note WHAT, unable WHY, over, slow MS
 * (the server's syncs take that much longer from now on), fast.
 *
 * Well is: ready, nobody missing, and CHAOS_STREAK requests of each loader in a row served. That has to come within
 * CHAOS_RECOVER_S of the fault's end; a script ends within CHAOS_SCRIPT_S, or is ended.
 *
 * A machine that stood still for longer than CHAOS_STILL_S meanwhile, as a process that only sleeps has noticed, makes requests and
 * leases run out of time; that is noted, and then neither refused nor unanswered requests nor lost runners count.
 *
 * A control does, beside the script, what its check has to notice. Blocks; one thread and children that end with it.
 */
#ifndef COPPICE_CONFIG_CHAOS_RUN_H
#define COPPICE_CONFIG_CHAOS_RUN_H

#include "config/chaos_report.h"
#include "config/client.h"

enum {
    CHAOS_STREAK = 4,
    CHAOS_RECOVER_S = 60,
    CHAOS_SCRIPT_S = 240,
    CHAOS_CONTROL_S = 4, /* instead of CHAOS_RECOVER_S, where it is meant not to come */
    CHAOS_STILL_S = 2,   /* of the machine, from which on time-outs aren't the server's */
    CHAOS_DESCRIPTORS = 24,
    CHAOS_MEMORY_MIB = 96,
};

struct chaos_order {
    const struct options *options;
    struct client operators, clients; /* clients: with an API key */
    const char *client_url;
    char client_id[64], key_id[64]; /* whose load it is */
    uint64_t seed, rate;
    bool full;
    enum chaos_check control; /* CHECK_COUNT: none */
};

/* Everything that was found is in *ret; of what couldn't even begin, false and why. */
bool chaos_run(const struct chaos_order *order, const struct chaos_script *script, struct chaos_report *ret,
               char *ret_why, size_t why_size);

#endif
