#include "actors/adapters.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "runtime/telemetry.h"

enum { ADAPTERS_LIST = 1, ADAPTERS_LISTED };

struct adapters {
    struct adapters_args args;
    size_t ready;
    struct adapter_state states[ADAPTERS_MAX];
};
STATIC_ASSERT(sizeof(struct adapter_state) * ADAPTERS_MAX <= MESSAGE_PAYLOAD_MAX,
              "the list fits into a message");

/* ---- the known ones ---- */

/* Tokens, leases and event times are worthless on a machine that believes to be in 1970. */
#define CLOCK_EARLIEST_S 1704067200ull /* 2024-01-01 */

static bool clock_init(const struct adapters_args *args, char text[ADAPTER_TEXT_MAX])
{
    (void)args;
    uint64_t wall_s = actor_wall_now() / NS_PER_S;
    bool set = wall_s >= CLOCK_EARLIEST_S;
    snprintf(text, ADAPTER_TEXT_MAX,
             set ? "set" : "the wall clock says %llu s since 1970; it must be %llu or later",
             (unsigned long long)wall_s, CLOCK_EARLIEST_S);
    return set;
}

static bool descriptors_init(const struct adapters_args *args, char text[ADAPTER_TEXT_MAX])
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        snprintf(text, ADAPTER_TEXT_MAX, "the limit of descriptors can't be read: %s", strerror(errno));
        return false;
    }
    if (limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit); /* what holds is read again below */
        (void)getrlimit(RLIMIT_NOFILE, &limit);
    }
    bool enough = limit.rlim_cur >= args->descriptors;
    snprintf(text, ADAPTER_TEXT_MAX,
             enough ? "%llu, of which %llu are needed" : "the limit is %llu; it must be at least %llu",
             (unsigned long long)limit.rlim_cur, (unsigned long long)args->descriptors);
    return enough;
}

const struct adapter adapters_known[] = {
    {"clock", "the wall clock is set", clock_init},
    {"descriptors", "enough file descriptors may be open", descriptors_init},
    {NULL, NULL, NULL},
};

/* ---- the actor ---- */

static enum actor_step adapters_init(void *state, const void *args, size_t args_size)
{
    struct adapters *a = state;
    if (args_size != sizeof(a->args))
        actor_refuse(reason_of(REASON_ERROR));
    memcpy(&a->args, args, sizeof(a->args));
    return ACTOR_PROCEED; /* a failure from here on is a crash of the child, not of its supervisor's start */
}

static enum actor_step adapters_proceed(void *state)
{
    struct adapters *a = state;
    for (size_t i = 0; i < ADAPTERS_MAX && a->args.adapters[i]; i++) {
        const struct adapter *adapter = a->args.adapters[i];
        struct adapter_state *s = &a->states[i];
        char why[ADAPTER_NAME_MAX + ADAPTER_TEXT_MAX + 16];
        snprintf(s->name, sizeof(s->name), "%s", adapter->name);
        if (!adapter->init(&a->args, s->text)) {
            TELEMETRY(FAILURE_ADAPTER_INIT, 1, DIM(COMPONENT, ADAPTERS_NAME), DIM(FAILURE_CLASS, "fatal"),
                      DIM(ADAPTER, s->name), DIM(REASON, s->text));
            snprintf(why, sizeof(why), "adapter %s: %s", s->name, s->text);
            actor_fail((int)i + 1, why);
        }
        a->ready = i + 1;
    }
    return ACTOR_CONTINUE;
}

static enum actor_step adapters_handle(void *state, struct message *m)
{
    struct adapters *a = state;
    if (m->type == ADAPTERS_LIST)
        actor_reply_bytes(m, ADAPTERS_LISTED, a->states, a->ready * sizeof(*a->states));
    else
        TELEMETRY(MESSAGE_UNKNOWN, 1, DIM(CLASS, adapters_class.name));
    return ACTOR_CONTINUE;
}

const struct actor_class adapters_class = {
    .name = "runtime",
    .state_size = sizeof(struct adapters),
    .init = adapters_init,
    .proceed = adapters_proceed,
    .handle = adapters_handle,
};

enum error adapters_list(struct adapter_state *states, size_t count, size_t *ret_stored, uint64_t deadline)
{
    struct message *reply, *m = message_new(ADAPTERS_LIST, 0);
    enum error e = m ? actor_call_name(ADAPTERS_NAME, m, &reply, deadline) : ERR_MEMORY;
    if (e != OK)
        return e;
    size_t ready = reply->size / sizeof(*states);
    *ret_stored = ready < count ? ready : count;
    memcpy(states, reply->payload, *ret_stored * sizeof(*states));
    message_free(reply);
    return OK;
}
