/* The scenarios of chaos: each is a script of chaos/scripts, which the assembler takes in as it is, so that the program has
 * them wherever it is installed. A script is the only home of its fault; what is measured meanwhile is the same for all of them
 * (config/chaos_run.h). Its head is read from here:
 *
 *     # does: one line, what is done to the server
 *     # holds: one line, what must hold
 *     # load: served | refused | unanswered      the worst that may happen to a request of the load
 *     # process: same | another
 *     # runners: die                             jobs may fail with who ran them; else each has to succeed
 *     # receivers: yes                           it needs receivers of webhooks
 */
#ifndef COPPICE_CONFIG_CHAOS_SCRIPTS_H
#define COPPICE_CONFIG_CHAOS_SCRIPTS_H

#include <stdbool.h>
#include <stddef.h>

/* X(ID, "file name without .sh"), in the order in which `all` runs them */
#define CHAOS_SCENARIOS(X)                  \
    X(KILL_ACTORS, "kill-actors")           \
    X(KILL_WRITER, "kill-writer")           \
    X(RANDOM_KILLS, "random-kills")         \
    X(STORM, "storm")                       \
    X(POISON, "poison")                     \
    X(CRASHES, "crashes")                   \
    X(ENDLESS_LOOP, "endless-loop")         \
    X(STACK_OVERFLOW, "stack-overflow")     \
    X(MEMORY, "memory")                     \
    X(MAILBOX_FLOOD, "mailbox-flood")       \
    X(SLOW_DISK, "slow-disk")               \
    X(HUNG_DISK, "hung-disk")               \
    X(FULL_DISK, "full-disk")               \
    X(DESCRIPTORS, "descriptors")           \
    X(STOP_AND_GO, "stop-and-go")           \
    X(WEBHOOKS, "webhooks")                 \
    X(CLOCK_JUMP, "clock-jump")             \
    X(KILL_SUPERVISORS, "kill-supervisors") \
    X(CRASH_LOOP, "crash-loop")             \
    X(KILL_PROCESS, "kill-process")

enum chaos_scenario {
#define X(id, name) SCENARIO_##id,
    CHAOS_SCENARIOS(X)
#undef X
        SCENARIO_COUNT
};

enum chaos_tolerance { TOLERATES_NOTHING, TOLERATES_REFUSED, TOLERATES_UNANSWERED };

struct chaos_script {
    const char *name, *text, *end;
    char does[256], holds[512];
    enum chaos_tolerance tolerates;
    bool another_process, receivers, runners_die;
};
/* False: the head of the script isn't as said above. */
bool chaos_script_read(enum chaos_scenario which, struct chaos_script *ret);
/* SCENARIO_COUNT: there is none of this name. */
enum chaos_scenario chaos_scenario_named(const char *name);
const char *chaos_scenario_name(enum chaos_scenario which);
/* What all of them source. */
const char *chaos_script_common(size_t *ret_size);

#endif
