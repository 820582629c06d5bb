#include "tests/bench/family.h"
#include <stdio.h>
#include <string.h>

struct up {
    uint32_t index;
};

struct member_args {
    actor_pid watcher;
    void (*told)(uint32_t type);
    uint32_t index;
};

struct member {
    uint64_t asked;
    void (*told)(uint32_t type);
};

actor_pid family_pid[FAMILY_MAX];

static struct child_spec specs[FAMILY_MAX];
static struct member_args args_of[FAMILY_MAX];
static char ids[FAMILY_MAX][12];

static enum actor_step member_init(void *state, const void *args, size_t size)
{
    struct member_args a;
    struct member *m = state;
    ASSERT(size == sizeof a);
    memcpy(&a, args, sizeof a);
    m->told = a.told;
    actor_cast(a.watcher, FAMILY_UP, &(struct up){a.index}, sizeof(struct up));
    return ACTOR_CONTINUE;
}

static enum actor_step member_handle(void *state, struct message *m)
{
    struct member *me = state;
    if (m->type == FAMILY_ASK) {
        memcpy(m->payload, &(uint64_t){++me->asked}, sizeof(uint64_t));
        actor_reply(m, m);
    } else if (me->told) {
        me->told(m->type);
    }
    return ACTOR_CONTINUE;
}

static const struct actor_class member_class = {.name = "member",
                                                .state_size = sizeof(struct member),
                                                .init = member_init,
                                                .handle = member_handle,
                                                .arena_quota = 64 * 1024};

/* As many restarts as there may be: the budget is not what is measured here. */
actor_pid family_start(uint32_t count, actor_pid watcher, int scheduler, void (*told)(uint32_t type))
{
    ASSERT(count <= FAMILY_MAX);
    for (uint32_t i = 0; i < count; i++) {
        snprintf(ids[i], sizeof ids[i], "c%u", i);
        args_of[i] = (struct member_args){.watcher = watcher, .told = told, .index = i};
        specs[i] = (struct child_spec){
            .id = ids[i], .class = &member_class, .args = &args_of[i], .args_size = sizeof args_of[i]};
    }
    struct supervisor_spec spec = {.name = "family",
                                   .strategy = ONE_FOR_ONE,
                                   .intensity = SUPERVISOR_INTENSITY_MAX,
                                   .period_ms = 1,
                                   .children = specs,
                                   .children_count = count};
    struct start_result result;
    enum error e = supervisor_start(&spec, scheduler, &result, DEADLINE_NONE);
    if (e) {
        char why[REASON_TEXT_MAX];
        reason_format(&result.why, why, sizeof why);
        bench_fail("supervisor: %s: %s", error_name(e), why);
    }
    return result.pid;
}

void family_stop(actor_pid sup)
{
    enum error e = supervisor_stop(sup, reason_of(REASON_SHUTDOWN), DEADLINE_NONE);
    if (e)
        bench_fail("supervisor_stop: %s", error_name(e));
}

static bool is_up(const struct message *m, void *arg)
{
    (void)arg;
    return m->type == FAMILY_UP;
}

uint32_t family_up(void)
{
    struct message *m = actor_receive(is_up, NULL, bench_now() + 5 * NS_PER_S);
    if (!m)
        bench_fail("a child did not come up within 5 s");
    uint32_t index = ((struct up *)(void *)m->payload)->index;
    family_pid[index] = m->from;
    message_free(m);
    return index;
}

uint64_t family_ask(uint32_t index)
{
    struct message *reply;
    uint64_t asked = 0;
    if (actor_call(family_pid[index], message_of(FAMILY_ASK, &asked, sizeof asked), &reply,
                   actor_deadline_ms(ACTOR_CALL_DEFAULT_MS)))
        return 0;
    memcpy(&asked, reply->payload, sizeof asked);
    message_free(reply);
    return asked;
}

uint64_t family_revive(uint32_t index, void (*end)(actor_pid pid))
{
    uint64_t started = bench_now();
    end(family_pid[index]);
    uint32_t up = family_up();
    uint64_t asked = family_ask(up);
    uint64_t took = bench_now() - started;
    if (asked != 1 || up != index)
        bench_fail("child %u was ended, child %u came up and answered %llu", index, up,
                   (unsigned long long)asked);
    return took;
}
