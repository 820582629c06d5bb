#include "acutest.h"
#include "tests/runtime/node.h"

#include "runtime/blob.h"
#include "runtime/scheduler.h"

static void gone(actor_pid pid)
{
    actor_kill(pid);
    ended(pid);
}

/* ---- newcomers that do in init what their arguments say ---- */

enum manner { WELL, REFUSES, FAILS, IGNORES, STOPS, JUNK, SLOWLY, FOREVER, PROCEEDS, STARTS_ANOTHER };
struct manners {
    uint64_t manner, ms;
    actor_pid pid;
};
static unsigned begun, born, proceeded, terminated, lives_released;

static void count_release(void *arg)
{
    (*(unsigned *)arg)++;
}

/* Of one whose start fails: nothing has gone to another scheduler since its init, so its starter doesn't know yet. */
static size_t outbox_in_init;
static void release_untold(void *arg)
{
    (void)arg;
    TEST_CHECK(scheduler_current->outbox_count == outbox_in_init);
}

static enum actor_step init(void *state, const void *args, size_t args_size)
{
    struct manners m;
    begun++;
    TEST_CHECK(args_size == sizeof m);
    memcpy(&m, args, sizeof m);
    memset(state, 0x5a, 200);
    TEST_CHECK(actor_own(count_release, &lives_released) != 0);
    actor_start_info(m.manner + 1000);
    outbox_in_init = scheduler_current->outbox_count;
    if (m.manner >= REFUSES && m.manner <= JUNK)
        TEST_CHECK(actor_own(release_untold, NULL) != 0);
    switch ((enum manner)m.manner) {
    case REFUSES:
        actor_refuse(reason_with_detail(reason_error(66), "refused", 7));
    case FAILS:
        actor_exit(reason_with_detail(reason_error(67), "failed", 6));
    case IGNORES:
        return ACTOR_IGNORE;
    case STOPS:
        return ACTOR_STOP;
    case JUNK:
        return (enum actor_step)77;
    case SLOWLY:
        actor_sleep(actor_deadline_ms(m.ms));
        break;
    case FOREVER:
        actor_sleep(DEADLINE_NONE);
        break;
    case PROCEEDS:
        born++;
        return ACTOR_PROCEED;
    case STARTS_ANOTHER:
    case WELL:
        break;
    }
    born++;
    return ACTOR_CONTINUE;
}

static enum actor_step proceed(void *state)
{
    (void)state;
    proceeded++;
    return ACTOR_CONTINUE;
}

static void terminate(void *state, const struct reason *why)
{
    (void)state;
    (void)why;
    terminated++;
}

static const struct actor_class newcomer_class = {.name = "newcomer",
                                                  .state_size = 200,
                                                  .init = init,
                                                  .handle = doll_handle,
                                                  .proceed = proceed,
                                                  .terminate = terminate};

static enum error start(enum manner manner, uint64_t ms, bool tied, const char *name, struct start_result *r,
                        uint64_t deadline)
{
    struct manners m = {.manner = manner, .ms = ms};
    return actor_start(&(struct spawn_options){.class = &newcomer_class,
                                               .args = &m,
                                               .args_size = sizeof m,
                                               .name = name,
                                               .link = tied,
                                               .monitor = tied,
                                               .tag = 4711,
                                               .scheduler = anywhere()},
                       r, deadline);
}

/* ---- a start that fails leaves nothing behind, one that succeeds everything at its place ---- */

static void starts(void)
{
    const struct {
        enum manner manner;
        enum error error;
        enum reason_kind kind;
        int code;
    } fates[] = {
        {REFUSES, ERR_INIT, REASON_ERROR, 66},    {FAILS, ERR_INIT, REASON_ERROR, 67},
        {IGNORES, ERR_IGNORED, REASON_NORMAL, 0}, {STOPS, ERR_INIT, REASON_NORMAL, 0},
        {JUNK, ERR_INIT, REASON_BAD_RETURN, 0},
    };
    struct start_result r;
    begun = born = proceeded = terminated = lives_released = 0;
    for (size_t i = 0; i < sizeof fates / sizeof *fates; i++) {
        TEST_CHECK(start(fates[i].manner, 0, i % 2, NULL, &r, DEADLINE_NONE) == fates[i].error);
        TEST_CHECK(r.why.kind == fates[i].kind && r.why.code == fates[i].code && r.pid == 0 && r.ref == 0);
        TEST_CHECK((r.why.detail != NULL) == (i < 2));
        reason_drop(&r.why);
    }
    settle();
    TEST_CHECK(begun == 5 && born == 0 && terminated == 0 && lives_released == 5);
    TEST_CHECK(!mail()); /* no EXIT, no DOWN */
    TEST_CHECK(start(PROCEEDS, 0, true, "its name", &r, DEADLINE_NONE) == OK);
    TEST_CHECK(r.info == 1000 + PROCEEDS && actor_whereis("its name") == r.pid && actor_alive(r.pid) &&
               r.ref);
    settle();
    TEST_CHECK(proceeded == 1);
    struct start_result second;
    begun = 0;
    TEST_CHECK(start(WELL, 0, true, "its name", &second, DEADLINE_NONE) == ERR_ALREADY_REGISTERED);
    TEST_CHECK(second.pid == r.pid && begun == 0); /* taken: init doesn't even run */
    TEST_CHECK(start(WELL, 0, true, "", &second, DEADLINE_NONE) == ERR_INVALID);
    reason_drop(&second.why);
    settle();
    TEST_CHECK(!mail());
    actor_kill(r.pid);
    struct message_exit *x = expect(MESSAGE_EXIT);
    TEST_CHECK(x->pid == r.pid && x->tag == 4711 && x->reason.kind == REASON_KILLED);
    struct message_down *d = expect(MESSAGE_DOWN);
    TEST_CHECK(d->pid == r.pid && d->tag == 4711 && d->ref == r.ref && d->reason.kind == REASON_KILLED);
    TEST_CHECK(actor_whereis("its name") == 0 && !actor_alive(r.pid));
    TEST_CHECK(!mail());
}

static void test_starts(void)
{
    node_sim(starts);
}

static void timeouts(void)
{
    struct start_result r;
    begun = born = lives_released = 0;
    for (unsigned i = 0; i < 10; i++) {
        /* Init takes as long as the starter waits, or longer, or the starter doesn't wait at all. */
        uint64_t wait = draw(3) * 5;
        enum error e = start(draw(2) ? SLOWLY : FOREVER, 5, draw(2), draw(2) ? "slow" : NULL, &r,
                             actor_deadline_ms(wait));
        TEST_CHECK(e == ERR_TIMEOUT || e == OK);
        if (e == OK) {
            TEST_CHECK(actor_alive(r.pid));
            actor_unlink(r.pid);
            actor_demonitor(r.ref);
            gone(r.pid);
        }
        settle();
        TEST_CHECK(!mail() && actor_whereis("slow") == 0);
        actor_sleep(actor_deadline_ms(10));
        TEST_CHECK_(begun == lives_released && !mail(), "%u begun, %u released", begun, lives_released);
    }
}

static void test_timeouts(void)
{
    node_sim(timeouts);
}

/* ---- the starter dies while it starts ---- */

static void starter(void *arg)
{
    struct manners *m = arg;
    struct start_result r;
    actor_pid pid;
    bool linked = m->pid & 1, monitored = m->pid & 2, waits = m->pid & 4;
    struct spawn_options o = {.class = &newcomer_class,
                              .args = m,
                              .args_size = sizeof *m,
                              .link = linked,
                              .monitor = monitored,
                              .name = m->pid & 8 ? "newcomer" : NULL,
                              .scheduler = anywhere()};
    if (waits) {
        actor_start(&o, &r, m->ms ? actor_deadline_ms(m->ms) : DEADLINE_NONE);
        reason_drop(&r.why);
    } else
        actor_spawn(&o, &pid);
    actor_sleep(DEADLINE_NONE);
}

static void kill_all_newcomers(void)
{
    actor_pid pids[8];
    for (uint32_t i = 0; i < runtime_schedulers(); i++) {
        uint32_t cursor = 0;
        do {
            size_t n = runtime_actors(i, &cursor, pids, 8);
            for (size_t k = 0; k < n; k++)
                if (pids[k] != actor_self())
                    actor_kill(pids[k]);
        } while (cursor);
    }
    settle();
}

static void starter_dies(void)
{
    for (unsigned i = 0; i < 16; i++) {
        actor_pid d = doll(anywhere());
        struct manners m = {.manner = draw(2)   ? WELL
                                      : draw(2) ? REFUSES
                                                : FOREVER,
                            .pid = i,
                            .ms = draw(2) * 5};
        begun = born = lives_released = 0;
        tell(d, starter, &m);
        for (uint32_t n = draw(6); n; n--)
            actor_yield(); /* somewhere on the way */
        gone(d);
        settle();
        if (i & 1) /* a linked newcomer goes with its starter */
            TEST_CHECK_(begun == lives_released, "%u begun, %u released, case %u seed %llu", begun,
                        lives_released, i, (unsigned long long)node_seed);
        for (uint32_t k = 0; k < runtime_schedulers(); k++) { /* nobody watches or links any more */
            struct scheduler *s = runtime_self()->schedulers[k];
            for (uint32_t n = 1; n < s->slots_used; n++)
                if (s->actors[n].class == &newcomer_class && actor_pid_of(&s->actors[n]))
                    TEST_CHECK_(!s->actors[n].links && !s->actors[n].watchers, "case %u seed %llu", i,
                                (unsigned long long)node_seed);
        }
        kill_all_newcomers();
        TEST_CHECK(begun == lives_released && actor_whereis("newcomer") == 0);
    }
}

static void test_starter_dies(void)
{
    node_sim(starter_dies);
}

/* ---- the newcomer is killed at some moment of its start ---- */

static void kill_by_name(void *arg)
{
    (void)arg;
    for (uint32_t n = draw(4); n; n--)
        actor_yield();
    actor_pid pid = actor_whereis("victim");
    if (pid)
        actor_exit_signal(pid, reason_error(55));
}

static void killed_in_init(void)
{
    actor_pid killer = doll(anywhere());
    for (unsigned i = 0; i < 10; i++) {
        struct start_result r;
        tell(killer, kill_by_name, NULL);
        if (draw(2))
            actor_yield();
        enum error e = start(draw(2) ? SLOWLY : WELL, 1, true, "victim", &r, DEADLINE_NONE);
        TEST_CHECK(e == OK || (e == ERR_INIT && r.why.kind == REASON_ERROR && r.why.code == 55));
        settle();
        if (e == OK && actor_alive(r.pid)) {
            actor_kill(r.pid);
            settle();
        }
        unsigned got = 0;
        for (struct message *m; (m = actor_receive(NULL, NULL, 0)); got++)
            TEST_CHECK(m->type == MESSAGE_EXIT || m->type == MESSAGE_DOWN);
        TEST_CHECK_(got == (e == OK ? 2 : 0), "%u", got);
        TEST_CHECK(actor_whereis("victim") == 0);
    }
    gone(killer);
}

static void test_killed_in_init(void)
{
    node_sim(killed_in_init);
}

/* A starter killed when the answer with its reason's detail is there already. */
static void start_refused(void *arg)
{
    struct start_result r;
    (void)arg;
    if (start(REFUSES, 0, true, NULL, &r, DEADLINE_NONE) == ERR_INIT)
        reason_drop(&r.why);
}

static void answered_too_late(void)
{
    for (int i = 0; i < 30; i++) {
        actor_pid d = doll(anywhere());
        tell(d, start_refused, NULL);
        for (uint32_t n = draw(8); n; n--)
            actor_yield();
        actor_suspend(d); /* the answer finds it suspended, ... */
        settle();
        gone(d); /* ... and it never sees it; the books say whether its detail is gone */
    }
}

static void test_answered_too_late(void)
{
    node_sim(answered_too_late);
}

/* ---- options ---- */

static void options(void)
{
    struct actor_class big = newcomer_class, wide = newcomer_class, mute = newcomer_class,
                       nameless = newcomer_class;
    static char args[ACTOR_ARGS_MAX + 1], name[200];
    struct start_result r;
    actor_pid pid = 0;
    big.state_size = ACTOR_STATE_MAX + 1;
    wide.stack_size = (1 << 20) + 1;
    mute.handle = NULL;
    nameless.name = NULL;
    memset(name, 'n', sizeof name - 1);
    const struct {
        struct spawn_options o;
        enum error error;
    } bad[] = {
        {{.class = NULL}, ERR_INVALID_START},
        {{.class = &big}, ERR_INVALID_START},
        {{.class = &wide}, ERR_INVALID_START},
        {{.class = &mute}, ERR_INVALID_START},
        {{.class = &nameless}, ERR_INVALID_START},
        {{.class = &doll_class, .args = args, .args_size = sizeof args}, ERR_BADARG},
        {{.class = &doll_class, .args = NULL, .args_size = 1}, ERR_BADARG},
        {{.class = &doll_class, .scheduler = -1000}, ERR_INVALID},
        {{.class = &doll_class, .scheduler = SPAWN_ON((int)runtime_schedulers())}, ERR_INVALID},
        {{.class = &doll_class, .name = name}, ERR_INVALID},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        TEST_CHECK_(actor_spawn(&bad[i].o, &pid) == bad[i].error, "%zu", i);
        TEST_CHECK_(actor_start(&bad[i].o, &r, DEADLINE_NONE) == bad[i].error, "%zu", i);
        TEST_CHECK(pid == 0 && r.pid == 0);
    }
    name[96] = 0;
    struct spawn_options most = {.class = &doll_class,
                                 .args = args,
                                 .args_size = ACTOR_ARGS_MAX,
                                 .name = name,
                                 .scheduler = anywhere()};
    TEST_CHECK(actor_spawn(&most, &pid) == OK);
    settle();
    TEST_CHECK(actor_whereis(name) == pid);
    gone(pid);
}

static void test_options(void)
{
    node_sim(options);
}

/* ---- state: every size, cleared, given back ---- */

static bool dirty;
static size_t state_size;
static enum actor_step state_init(void *state, const void *args, size_t args_size)
{
    (void)args;
    (void)args_size;
    for (size_t i = 0; i < state_size; i++)
        dirty |= ((unsigned char *)state)[i] != 0;
    memset(state, 0xff, state_size);
    return ACTOR_STOP;
}

static void states(void)
{
    const size_t sizes[] = {0,     1,     ACTOR_STATE_INLINE, ACTOR_STATE_INLINE + 1, 64, 65, 128, 129, 4096,
                            32768, 32769, ACTOR_STATE_MAX};
    dirty = false;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct actor_class class = {
            .name = "state", .state_size = sizes[i], .init = state_init, .handle = doll_handle};
        state_size = sizes[i];
        for (int round = 0; round < 3; round++) {
            struct start_result r;
            TEST_CHECK(actor_start(&(struct spawn_options){.class = &class}, &r, DEADLINE_NONE) == ERR_INIT);
            settle();
        }
        class.init = NULL; /* the class is on this stack: nobody may look at it any more */
    }
    TEST_CHECK(!dirty);
}

static void test_states(void)
{
    node_sim(states);
}

/* ---- slots ---- */

static void slots(void)
{
    actor_pid pids[50], pid = 0;
    size_t n = 0;
    enum error e = OK;
    while (n < 50 && !(e = actor_spawn(&(struct spawn_options){.class = &doll_class}, &pids[n])))
        n++;
    TEST_CHECK_(e == ERR_LIMIT && n == 19, "%s after %zu", error_name(e), n); /* and the root */
    struct start_result r;
    TEST_CHECK(actor_start(&(struct spawn_options){.class = &doll_class, .link = true}, &r, DEADLINE_NONE) ==
               ERR_LIMIT);
    TEST_CHECK(
        actor_start(&(struct spawn_options){.class = &doll_class, .link = true, .scheduler = SPAWN_ON(1)}, &r,
                    DEADLINE_NONE) == OK); /* the other scheduler has room */
    actor_unlink(r.pid);
    gone(r.pid);
    for (int i = 0; i < 100; i++) { /* a slot is used again, the pid is not */
        actor_pid old = pids[0];
        actor_kill(old);
        settle();
        TEST_CHECK(actor_spawn(&(struct spawn_options){.class = &doll_class}, &pids[0]) == OK);
        TEST_CHECK(pids[0] != old && pid_slot(pids[0]) == pid_slot(old) && !actor_alive(old) &&
                   actor_alive(pids[0]));
        note(old, 1);
        actor_kill(old); /* hits nobody */
        settle();
        TEST_CHECK(actor_alive(pids[0]));
    }
    for (size_t i = 0; i < n; i++)
        gone(pids[i]);
    for (size_t i = 0; i < 50; i++) /* full elsewhere, too */
        e = actor_spawn(
            &(struct spawn_options){
                .class = &doll_class, .scheduler = SPAWN_ON(1), .link = true, .monitor = true},
            &pid);
    TEST_CHECK(e == ERR_LIMIT);
    TEST_CHECK(!mail());
}

static void test_slots(void)
{
    node_sim_with(slots, &(struct sim_options){.seed = 3, .schedulers = 2, .runtime.actors_max = 20});
}

/* ---- names for others ---- */

static void registering(void)
{
    actor_pid one = doll(anywhere()), other = doll(anywhere()), holder = 0;
    TEST_CHECK(actor_register("x", one, NULL) == OK);
    TEST_CHECK(actor_register("x", other, &holder) == ERR_ALREADY_REGISTERED && holder == one);
    TEST_CHECK(actor_register("", one, NULL) == ERR_INVALID);
    TEST_CHECK(actor_unregister("x") == ERR_INVALID && actor_unregister("y") == OK);
    for (int i = 0; i < 10; i++) { /* with its holder's death at the same time */
        actor_pid d = doll(anywhere());
        if (draw(2))
            actor_kill(d);
        enum error e = actor_register("y", d, NULL);
        TEST_CHECK(e == OK || e == ERR_NOPROC);
        actor_kill(d);
        settle();
        TEST_CHECK(actor_whereis("y") == 0);
    }
    gone(one);
    TEST_CHECK(actor_register("x", other, &holder) == OK && actor_whereis("x") == other);
    gone(other);
}

static void test_registering(void)
{
    node_sim(registering);
}

/* ---- kill storms: everybody spawns, links, watches, calls and kills anybody ---- */

static actor_pid crowd[16];
static unsigned storm_left;
static void storm(void *arg)
{
    (void)arg;
    actor_pid other = crowd[draw(16)];
    if (!storm_left)
        return;
    storm_left--;
    switch (draw(9)) {
    case 0:
        actor_link(other);
        break;
    case 1:
        actor_unlink(other);
        break;
    case 2: {
        uint64_t ref = actor_monitor(other, 0);
        if (draw(2))
            actor_demonitor(ref);
        break;
    }
    case 3:
        actor_call(other, message_new(ASK, draw(200)), NULL, actor_deadline_ms(draw(3)));
        break;
    case 4: {
        actor_pid fresh;
        if (actor_spawn(&(struct spawn_options){.class = draw(2) ? &doll_class : &trapper_class,
                                                .link = draw(2),
                                                .monitor = draw(2),
                                                .scheduler = anywhere()},
                        &fresh) == OK)
            crowd[draw(16)] = fresh;
        break;
    }
    case 5:
        actor_kill(other);
        break;
    case 6:
        actor_timer(actor_deadline_ms(draw(3)), NOTE, 1);
        actor_sleep(actor_deadline_ms(draw(2)));
        break;
    case 7:
        if (draw(2))
            actor_stop(other, reason_with_detail(reason_of(REASON_SHUTDOWN), "stop", 4), NULL,
                       actor_deadline_ms(draw(3)));
        else
            actor_fail(1, "storm");
        break;
    case 8: {
        struct start_result r;
        struct manners m = {.manner = draw(STARTS_ANOTHER), .ms = draw(3)};
        enum error e = actor_start(&(struct spawn_options){.class = &newcomer_class,
                                                           .args = &m,
                                                           .args_size = sizeof m,
                                                           .link = draw(2),
                                                           .monitor = draw(2),
                                                           .name = draw(2) ? "newcomer" : NULL,
                                                           .scheduler = anywhere()},
                                   &r, actor_deadline_ms(draw(4)));
        if (e == OK)
            crowd[draw(16)] = r.pid;
        reason_drop(&r.why);
        break;
    }
    }
    struct order o = {storm, NULL};
    for (int i = 0; i < 2; i++)
        actor_cast(crowd[draw(16)], RUN, &o, sizeof o);
}

static void storms(void)
{
    storm_left = 3000;
    begun = lives_released = 0;
    for (int i = 0; i < 16; i++)
        crowd[i] = doll(anywhere());
    while (storm_left) {
        for (int i = 0; i < 16; i++) {
            struct order o = {storm, NULL};
            if (!actor_alive(crowd[i]))
                crowd[i] = doll(anywhere());
            actor_cast(crowd[i], RUN, &o, sizeof o);
        }
        actor_sleep(actor_deadline_ms(1));
    }
    actor_sleep(actor_deadline_ms(100));
    for (int i = 0; i < 10; i++) { /* some are in actor_start of others */
        kill_all_newcomers();
        settle();
    }
    TEST_CHECK_(begun == lives_released, "%u begun, %u released", begun, lives_released);
    mail();
}

static void test_storms(void)
{
    node_sim(storms);
}

TEST_LIST
= {
    {"starts: every outcome, nothing left of those that fail", test_starts},
    {"starts: timeouts, init as long as the wait", test_timeouts},
    {"starts: the starter dies on the way", test_starter_dies},
    {"starts: the newcomer is killed on the way", test_killed_in_init},
    {"starts: an answer that nobody lives to see", test_answered_too_late},
    {"options are refused", test_options},
    {"states of every size, cleared and given back", test_states},
    {"slots used up and used again", test_slots},
    {"names for others", test_registering},
    {"storms leave nothing behind", test_storms},
    {NULL, NULL},
};
