#define _GNU_SOURCE
#include "acutest.h"
#include "tests/runtime/node.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>
#include "runtime/scheduler.h"

/* ---- options ---- */

static void test_options(void)
{
    const struct {
        struct runtime_options o;
        const char *field, *value;
    } bad[] = {
        {{.schedulers = 65}, "schedulers", "65"},
        {{.schedulers = UINT32_MAX}, "schedulers", "4294967295"},
        {{.actors_max = PID_SLOTS_MAX}, "actors_max", "16777215"},
        {{.names_max = UINT32_MAX}, "names_max", "4294967295"},
        {{.slice_ns = 99999}, "slice_ns", "99999"},
        {{.slice_ns = NS_PER_S + 1}, "slice_ns", "1000000001"},
        {{.runaway_ns = 1}, "runaway_ns", "1"},
        {{.slice_ns = NS_PER_S, .runaway_ns = NS_PER_S - 1}, "runaway_ns", "999999999"},
        {{.message_bytes_max = 1}, "message_bytes_max", "1"},
        {{.message_bytes_max = (16 << 20) - 1}, "message_bytes_max", "16777215"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char error[200] = "";
        TEST_CHECK(runtime_create(&bad[i].o, error, sizeof error) == NULL);
        TEST_CHECK_(strstr(error, bad[i].field) && strstr(error, bad[i].value) && strstr(error, "must be"),
                    "%s", error);
        TEST_CHECK(runtime_create(&bad[i].o, NULL, 0) == NULL); /* nobody wants to know */
        char small[8] = "1234567";
        TEST_CHECK(runtime_create(&bad[i].o, small, 4) == NULL && small[3] == 0 && small[4] == '5');
    }
    runtime_destroy(NULL);
}

static size_t descriptors(void)
{
    size_t n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* Memory or descriptors that can't be had: a sentence, and everything given back. */
static void starved(void)
{
    const struct {
        __rlimit_resource_t what;
        rlim_t limit;
    } limits[] = {{RLIMIT_AS, 1ull << 30}, {RLIMIT_AS, 3ull << 30}, {RLIMIT_NOFILE, 6}, {RLIMIT_NOFILE, 5}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct rlimit before;
        char error[200] = "";
        size_t fds = descriptors();
        getrlimit(limits[i].what, &before);
        setrlimit(limits[i].what, &(struct rlimit){limits[i].limit, before.rlim_max});
        struct runtime *rt = runtime_create(&(struct runtime_options){.schedulers = 4}, error, sizeof error);
        setrlimit(limits[i].what, &before);
        if (rt || !strstr(error, "can't be had") || descriptors() != fds) {
            fprintf(stderr, "limit %zu: %s\n", i, error);
            _exit(1);
        }
    }
    struct runtime *rt =
        runtime_create(&(struct runtime_options){.schedulers = 2, .actors_max = 100}, NULL, 0);
    if (!rt)
        _exit(2);
    runtime_destroy(rt);
}

static void test_starved(void)
{
    if (SANITIZED) {
        TEST_MSG("the sanitizers reserve more address space than the limit allows");
        return;
    }
    struct outcome o = node_child(starved, NULL);
    TEST_CHECK_(o.exited == 0, "exited %d, signal %d: %s", o.exited, o.signal, o.text);
}

/* ---- roots, and what they leave as exit status ---- */

static char ending;
static enum actor_step end(void)
{
    switch (ending) {
    case 'n':
        return ACTOR_STOP;
    case 'N':
        actor_exit(reason_of(REASON_NORMAL));
    case 's':
        actor_exit(reason_of(REASON_SHUTDOWN));
    case 'd':
        actor_exit(reason_with_detail(reason_of(REASON_SHUTDOWN), "enough", 6));
    case 'c':
        actor_exit((struct reason){.kind = REASON_SHUTDOWN, .code = 5});
    case 'e':
        actor_fail(12, "no \"more\"");
    case 'k':
        actor_kill(actor_self());
        break;
    case 'a':
        ASSERT(ending == 'z');
        break;
    case 'b':
        return (enum actor_step)99;
    case 'p':
        actor_exit(reason_of(REASON_NOPROC));
    case 'q':
        actor_alloc(1 << 30);
        break;
    case 'i':
        return ACTOR_IGNORE;
    case 'r':
        actor_refuse(reason_error(3));
    }
    return ACTOR_CONTINUE;
}

static enum actor_step root_init(void *state, const void *args, size_t args_size)
{
    (void)state;
    (void)args;
    return args_size ? end() : ACTOR_PROCEED;
}
static enum actor_step root_proceed(void *state)
{
    (void)state;
    return end();
}
static const struct actor_class root_class = {
    .name = "root", .init = root_init, .proceed = root_proceed, .handle = doll_handle};

static void test_endings(void)
{
    const struct {
        char ending;
        bool in_init;
        int status;
        const char *words;
    } ends[] = {
        {'n', false, 0, NULL},
        {'N', false, 0, NULL},
        {'s', false, 0, NULL},
        {'d', false, 0, NULL},
        {'c', false, 0, NULL},
        {'e', false, 70, "\"reason\":\"error(12): no \\\"more\\\"\""},
        {'k', false, 70, "\"reason\":\"killed\""},
        {'a', false, 70, "assertion failed"},
        {'b', false, 70, "bad_return_value"},
        {'p', false, 70, "\"reason\":\"noproc\""},
        {'q', false, 70, "\"reason\":\"quota\""},
        {'i', true, 0, NULL},
        {'n', true, 0, NULL},
        {'r', true, 70, "error(3)"},
        {'b', true, 70, "bad_return_value"},
    };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        for (uint32_t schedulers = 1; schedulers <= 2; schedulers++) {
            size_t said = node_logged("\"exit_status\":70"),
                   words = ends[i].words ? node_logged(ends[i].words) : 0;
            struct runtime_options o = {.schedulers = schedulers, .actors_max = 100, .log = node_log};
            struct runtime *rt = runtime_create(&o, NULL, 0);
            struct spawn_options root = {.class = &root_class,
                                         .args = "i",
                                         .args_size = ends[i].in_init,
                                         .scheduler = SPAWN_ON(schedulers - 1)};
            ending = ends[i].ending;
            TEST_CHECK(runtime_spawn(rt, &root, NULL) == OK);
            int status = runtime_run(rt);
            TEST_CHECK_(status == ends[i].status, "%c: %d", ending, status);
            TEST_CHECK(node_logged("\"exit_status\":70") - said == (status ? 1 : 0));
            TEST_CHECK_(!status || node_logged(ends[i].words) > words, "%c", ending);
            runtime_destroy(rt);
        }
}

/* ---- stopping ---- */

static struct runtime *rt;
static _Atomic int steps;
static enum actor_step stoppable_init(void *state, const void *args, size_t args_size)
{
    (void)state;
    (void)args;
    (void)args_size;
    steps++;
    return ACTOR_CONTINUE;
}
static void stoppable_terminate(void *state, const struct reason *why)
{
    (void)state;
    EXPECT(why->kind == REASON_SHUTDOWN);
    steps += 10;
}
static void stubborn_terminate(void *state, const struct reason *why)
{
    stoppable_terminate(state, why);
    actor_sleep(DEADLINE_NONE);
}
static const struct actor_class stoppable = {.name = "stoppable",
                                             .init = stoppable_init,
                                             .handle = doll_handle,
                                             .terminate = stoppable_terminate,
                                             .trap_exits = true},
                                stubborn = {.name = "stubborn",
                                            .init = stoppable_init,
                                            .handle = doll_handle,
                                            .terminate = stubborn_terminate,
                                            .trap_exits = true},
                                plain = {.name = "plain", .init = stoppable_init, .handle = doll_handle};

static void *stop_later(void *arg)
{
    int times = *(int *)arg;
    while (steps < 1)
        sched_yield();
    runtime_stop(rt);
    if (times == 2) {
        while (steps < 11) /* it terminates, and doesn't come to an end */
            sched_yield();
        runtime_stop(rt);
    }
    return NULL;
}

static int stop(const struct actor_class *class, int times, uint32_t schedulers)
{
    pthread_t thread;
    rt = runtime_create(&(struct runtime_options){.schedulers = schedulers, .actors_max = 100}, NULL, 0);
    steps = 0;
    TEST_CHECK(runtime_spawn(rt,
                             &(struct spawn_options){.class = class, .scheduler = SPAWN_ON(schedulers - 1)},
                             NULL) == OK);
    TEST_CHECK(pthread_create(&thread, NULL, stop_later, &times) == 0);
    int status = runtime_run(rt);
    pthread_join(thread, NULL);
    runtime_destroy(rt);
    return status;
}

static void on_signal(int signal)
{
    (void)signal;
    runtime_stop(rt);
}
static enum actor_step signalling_proceed(void *state)
{
    (void)state;
    kill(getpid(), SIGTERM);
    return ACTOR_CONTINUE;
}

static void test_stop(void)
{
    for (uint32_t schedulers = 1; schedulers <= 2; schedulers++) {
        for (int i = 0; i < 20; i++) {
            TEST_CHECK(stop(&stoppable, 1, schedulers) == 0 && steps == 11);
            TEST_CHECK(stop(&plain, 1, schedulers) == 0 && steps == 1);
            TEST_CHECK(stop(&stubborn, 2, schedulers) == 0 && steps == 11);
        }
        rt = runtime_create(&(struct runtime_options){.schedulers = schedulers, .actors_max = 100}, NULL, 0);
        TEST_CHECK(runtime_spawn(rt, &(struct spawn_options){.class = &stoppable}, NULL) == OK);
        steps = 0;
        runtime_stop(rt); /* before it runs: the root begins, and ends as asked */
        TEST_CHECK(runtime_run(rt) == 0);
        runtime_destroy(rt);
        rt = runtime_create(&(struct runtime_options){.schedulers = schedulers, .actors_max = 100}, NULL, 0);
        runtime_stop(rt); /* there is no root at all */
        TEST_CHECK(runtime_run(rt) == 0);
        runtime_destroy(rt);
        rt = runtime_create(&(struct runtime_options){.schedulers = schedulers, .actors_max = 100}, NULL, 0);
        struct actor_class class = stoppable;
        class.proceed = signalling_proceed;
        class.init = root_init;
        TEST_CHECK(runtime_spawn(rt, &(struct spawn_options){.class = &class}, NULL) == OK);
        signal(SIGTERM, on_signal); /* as the program does: from a handler */
        steps = 0;
        TEST_CHECK(runtime_run(rt) == 0 && steps == 10);
        signal(SIGTERM, SIG_DFL);
        runtime_destroy(rt);
    }
}

/* Stopped for good while everybody is busy everywhere. */
static void *stop_twice(void *arg)
{
    (void)arg;
    while (steps < 4)
        sched_yield();
    runtime_stop(rt);
    runtime_stop(rt);
    return NULL;
}
static void noise(void *arg)
{
    steps++;
    actor_pid peer = (actor_pid)(uintptr_t)arg;
    for (;;) {
        actor_call(peer, message_new(ASK, 100), NULL, actor_deadline_ms(1));
        actor_kill(doll(SPAWN_ON((uint32_t)actor_random() % 2)));
    }
}
static enum actor_step busy(void *state)
{
    (void)state;
    for (uint32_t i = 0; i < 4; i++)
        tell(doll(SPAWN_ON(i % 2)), noise, (void *)(uintptr_t)doll(SPAWN_ON(1 - i % 2)));
    actor_sleep(DEADLINE_NONE);
    return ACTOR_CONTINUE;
}
static const struct actor_class busy_class = {
    .name = "busy", .init = root_init, .proceed = busy, .handle = doll_handle};

static void test_stop_while_busy(void)
{
    ending = 0;
    for (int i = 0; i < 10; i++) {
        pthread_t thread;
        steps = 0;
        rt = runtime_create(&(struct runtime_options){.schedulers = 2, .actors_max = 10000}, NULL, 0);
        TEST_CHECK(runtime_spawn(rt, &(struct spawn_options){.class = &busy_class}, NULL) == OK);
        TEST_CHECK(pthread_create(&thread, NULL, stop_twice, NULL) == 0);
        TEST_CHECK(runtime_run(rt) == 0);
        pthread_join(thread, NULL);
        struct runtime_stats stats;
        runtime_stats(rt, &stats);
        TEST_CHECK(stats.actors == 0 && stats.records == 0 && stats.stacks_in_use == 0);
        runtime_destroy(rt);
    }
}

/* Stopped in the moment in which the root's scheduler looks at its inbox and its descriptors before it sleeps: the wake may be taken in
 * by that look. One that is slept over leaves the test waiting for ever. */
static int pipe_ends[2];
static enum actor_step glancing(void *state)
{
    (void)state;
    actor_pid d = doll(SPAWN_ON(1));
    EXPECT(actor_watch(pipe_ends[0], EPOLLIN) != 0);
    for (uint64_t i = 0; i < 5; i++) /* somebody writes to us: it will look for a while */
        EXPECT(actor_call(d, message_of(ASK, &i, sizeof i), NULL, DEADLINE_NONE) == OK);
    steps++;
    return ACTOR_CONTINUE;
}
static void *stop_soon(void *arg)
{
    struct timespec t;
    while (steps < 1)
        sched_yield();
    clock_gettime(CLOCK_MONOTONIC, &t);
    uint64_t until = (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec + *(uint64_t *)arg;
    do
        clock_gettime(CLOCK_MONOTONIC, &t);
    while ((uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec < until);
    runtime_stop(rt);
    return NULL;
}

static void test_stop_while_looking(void)
{
    static const struct actor_class class = {
        .name = "glancing", .init = root_init, .proceed = glancing, .handle = doll_handle};
    TEST_ASSERT(pipe(pipe_ends) == 0);
    for (uint64_t i = 0; i < (SANITIZED ? 40 : 400); i++) {
        pthread_t thread;
        uint64_t after = i % 100 * NS_PER_US;
        steps = 0;
        rt = runtime_create(&(struct runtime_options){.schedulers = 2, .actors_max = 100}, NULL, 0);
        TEST_CHECK(runtime_spawn(rt, &(struct spawn_options){.class = &class, .scheduler = SPAWN_ON(0)},
                                 NULL) == OK);
        TEST_CHECK(pthread_create(&thread, NULL, stop_soon, &after) == 0);
        TEST_CHECK(runtime_run(rt) == 0);
        pthread_join(thread, NULL);
        runtime_destroy(rt);
    }
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

/* ---- spawning from outside ---- */

static void test_spawn(void)
{
    char name[200];
    memset(name, 'x', sizeof name);
    name[199] = 0;
    rt =
        runtime_create(&(struct runtime_options){.schedulers = 2, .actors_max = 3, .log = node_log}, NULL, 0);
    actor_pid root = 0, other = 0;
    TEST_CHECK(runtime_spawn(rt, &(struct spawn_options){.class = NULL}, NULL) == ERR_INVALID_START);
    TEST_CHECK(runtime_spawn(rt, &(struct spawn_options){.class = &plain, .link = true}, NULL) ==
               ERR_INVALID);
    TEST_CHECK(runtime_spawn(rt, &(struct spawn_options){.class = &plain, .monitor = true}, NULL) ==
               ERR_INVALID);
    TEST_CHECK(runtime_spawn(rt, &(struct spawn_options){.class = &plain, .scheduler = SPAWN_ON(2)}, NULL) ==
               ERR_INVALID);
    TEST_CHECK(runtime_spawn(rt, &(struct spawn_options){.class = &plain, .scheduler = -1}, NULL) ==
               ERR_INVALID);
    TEST_CHECK(runtime_spawn(rt, &(struct spawn_options){.class = &plain, .name = name}, NULL) != OK);
    ending = 'n';
    TEST_CHECK(runtime_spawn(rt, &(struct spawn_options){.class = &stoppable, .name = "root"}, &root) == OK);
    TEST_CHECK(runtime_spawn(rt, &(struct spawn_options){.class = &root_class, .scheduler = SPAWN_ON(1)},
                             &other) == OK);
    TEST_CHECK(root && other && root != other);
    TEST_CHECK(runtime_spawn(rt, &(struct spawn_options){.class = &plain}, NULL) == OK);
    TEST_CHECK(runtime_spawn(rt, &(struct spawn_options){.class = &plain, .name = "root"}, NULL) ==
               OK); /* ends in init */
    TEST_CHECK(runtime_spawn(rt, &(struct spawn_options){.class = &plain}, NULL) == ERR_LIMIT);
    runtime_stop(rt);
    TEST_CHECK(runtime_run(rt) == 0); /* only the first one is the root */
    struct runtime_stats stats;
    runtime_stats(rt, &stats);
    TEST_CHECK_(stats.spawned == 4 && stats.ended == 4 && stats.actors == 0 && stats.records == 0,
                "%llu %llu", (unsigned long long)stats.spawned, (unsigned long long)stats.ended);
    TEST_CHECK(stats.schedulers == 2 && stats.stacks_in_use == 0 && stats.timers == 0);
    struct runtime_class classes[8];
    size_t n = runtime_classes(rt, classes, 8);
    uint64_t spawned = 0;
    for (size_t i = 0; i < n; i++)
        spawned += classes[i].spawned;
    TEST_CHECK_(n == 3 && spawned == 4, "%zu classes", n);
    TEST_CHECK(runtime_classes(rt, classes, 1) == 1);
    runtime_destroy(rt);
}

/* ---- dedicated schedulers ---- */

static void dedicated_options(void)
{
    char error[200] = "";
    TEST_CHECK(runtime_create(&(struct runtime_options){.schedulers = 1, .dedicated = 64}, error,
                              sizeof error) == NULL);
    TEST_CHECK_(strstr(error, "dedicated") && strstr(error, "64"), "%s", error);
    TEST_CHECK(runtime_create(&(struct runtime_options){.dedicated = UINT32_MAX}, NULL, 0) == NULL);
}

static _Atomic int elsewhere;
static void where(void *arg)
{
    if (actor_scheduler_of(actor_self()) != (int)(uintptr_t)arg)
        elsewhere++;
}

/* Nobody gets there who wasn't meant to; those who were do. */
static void dedicated_body(void)
{
    uint32_t others = runtime_schedulers();
    EXPECT(others == 2 && runtime_dedicated(0) == 2 && runtime_dedicated(1) == 3);
    elsewhere = 0;
    for (uint32_t n = 0; n < 2; n++) {
        actor_pid pid = doll(SPAWN_DEDICATED(n));
        EXPECT(actor_scheduler_of(pid) == (int)(2 + n));
        tell(pid, where, (void *)(uintptr_t)(2 + n));
        EXPECT(actor_call(pid, message_new(ASK, 8), NULL, DEADLINE_NONE) == OK);
        actor_kill(pid);
        EXPECT(actor_scheduler_of(doll(SPAWN_ON(n))) == (int)n);
    }
    for (int i = 0; i < 100; i++) {
        int at = actor_scheduler_of(doll(SPAWN_HERE));
        EXPECT(at >= 0 && at < (int)others);
    }
    EXPECT(elsewhere == 0);
    actor_pid none = 0;
    EXPECT(actor_spawn(&(struct spawn_options){.class = &doll_class, .scheduler = SPAWN_DEDICATED(2)},
                       &none) == ERR_INVALID);
    EXPECT(none == 0);
}

/* Without any, what asks for one goes to the last of the others. */
static void undedicated_body(void)
{
    EXPECT(runtime_schedulers() == 2 && runtime_dedicated(0) == 1);
    EXPECT(actor_scheduler_of(doll(SPAWN_DEDICATED(0))) == 1);
}

static void dedicated_in_sim(void)
{
    EXPECT(runtime_schedulers() == 2 && runtime_dedicated(0) == 2);
    EXPECT(actor_scheduler_of(doll(SPAWN_DEDICATED(0))) == 2);
    EXPECT(actor_call(doll(SPAWN_DEDICATED(0)), message_new(ASK, 8), NULL, DEADLINE_NONE) == OK);
}

static void test_dedicated(void)
{
    dedicated_options();
    TEST_CHECK(node_real_with(&(struct runtime_options){.schedulers = 2, .dedicated = 2, .actors_max = 1000},
                              dedicated_body) == 0);
    TEST_CHECK(node_real_with(&(struct runtime_options){.schedulers = 2, .actors_max = 1000},
                              undedicated_body) == 0);
    for (uint64_t seed = 1; seed <= 10; seed++)
        node_sim_with(dedicated_in_sim,
                      &(struct sim_options){.seed = seed, .schedulers = 2, .runtime = {.dedicated = 1}});
}

/* ---- abandoned ---- */

static _Atomic int asked_to_end;
static void wail(void *state, const struct reason *why)
{
    (void)state;
    (void)why;
    asked_to_end++;
}
static const struct actor_class wailing = {
    .name = "wailing", .handle = doll_handle, .terminate = wail, .trap_exits = true};

static void give_up(void *arg)
{
    runtime_abandon((int)(uintptr_t)arg, "the disk said \"no\"");
    runtime_abandon(75, "a second one"); /* the first one counts */
}

static uint32_t abandon_on;
static void abandon_body(void)
{
    spawn(&wailing, SPAWN_HERE);
    spawn(&wailing, SPAWN_ON(runtime_schedulers() - 1));
    tell(abandon_on == 9 ? doll(SPAWN_DEDICATED(0)) : doll(SPAWN_ON(abandon_on)), give_up, (void *)74);
    actor_sleep(DEADLINE_NONE);
}

static void test_abandon(void)
{
    static const uint32_t places[] = {0, 1, 9};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        for (int times = 0; times < 5; times++) {
            size_t said = node_logged("\"exit_status\":74"), second = node_logged("a second one");
            asked_to_end = 0;
            abandon_on = places[i];
            int status = node_real_with(
                &(struct runtime_options){.schedulers = 2, .dedicated = 1, .actors_max = 1000}, abandon_body);
            TEST_CHECK_(status == 74, "%d", status);
            TEST_CHECK(node_logged("\"exit_status\":74") == said + 1);
            TEST_CHECK(node_logged("\"msg\":\"abandoned\"") > 0 &&
                       node_logged("the disk said \\\"no\\\"") > 0);
            TEST_CHECK(node_logged("a second one") == second && asked_to_end == 0);
        }
}

/* One after the other, nothing is left. */
static void nothing(void)
{
    actor_call(doll(SPAWN_ON(runtime_schedulers() - 1)), message_new(ASK, 0), NULL, DEADLINE_NONE);
}
static void test_again_and_again(void)
{
    TEST_CHECK(node_real(2, nothing) == 0);
    size_t fds = descriptors();
    for (int i = 0; i < 50; i++)
        TEST_CHECK(node_real(1 + (uint32_t)i % 3, nothing) == 0);
    TEST_CHECK(descriptors() == fds);
    for (int i = 0; i < 5; i++) { /* made and never run */
        struct runtime *idle =
            runtime_create(&(struct runtime_options){.schedulers = 3, .actors_max = 10}, NULL, 0);
        TEST_CHECK(runtime_spawn(idle, &(struct spawn_options){.class = &plain, .args = "x", .args_size = 1},
                                 NULL) == OK);
        runtime_destroy(idle);
    }
    TEST_CHECK(descriptors() == fds);
}

TEST_LIST
= {
    {"bad options are refused with field, value and what is right", test_options},
    {"what can't be had is said", test_starved},
    {"the root's end is the exit status", test_endings},
    {"stopped once, twice, before, by a signal", test_stop},
    {"stopped for good while everybody is busy", test_stop_while_busy},
    {"stopped while it looks for what may come before it sleeps", test_stop_while_looking},
    {"spawning from outside", test_spawn},
    {"dedicated schedulers take whom they are meant for", test_dedicated},
    {"abandoned: one line, a status, and nobody is asked to end", test_abandon},
    {"again and again", test_again_and_again},
    {NULL, NULL},
};
