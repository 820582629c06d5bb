#include "acutest.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "config/log.h"
#include "config/notify.h"
#include "runtime/runtime.h"
#include "runtime/sim.h"

/* We are the service manager: an abstract socket that waits for what comes. */
static int manager;

static void manage(const char *watchdog_us, bool ours)
{
    struct sockaddr_un here = {.sun_family = AF_UNIX};
    char name[64], pid[16];
    int length = snprintf(name, sizeof(name), "@coppice-notify-%d", getpid());
    memcpy(here.sun_path, name, (size_t)length);
    here.sun_path[0] = 0;
    manager = socket(AF_UNIX, SOCK_DGRAM, 0);
    TEST_ASSERT(bind(manager, (struct sockaddr *)&here,
                     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)length)) == 0);
    snprintf(pid, sizeof(pid), "%d", ours ? getpid() : 1);
    setenv("NOTIFY_SOCKET", name, 1);
    setenv("WATCHDOG_PID", pid, 1);
    if (watchdog_us)
        setenv("WATCHDOG_USEC", watchdog_us, 1);
}

/* The next message, waiting for it. */
static const char *heard(void)
{
    static char text[512];
    ssize_t n = recv(manager, text, sizeof(text) - 1, 0);
    TEST_ASSERT(n >= 0);
    text[n] = 0;
    return text;
}

static void test_who_is_told(void)
{
    unsetenv("NOTIFY_SOCKET");
    TEST_CHECK(!notify_open());
    notify_send("READY=1"); /* nobody, and no harm */
    setenv("NOTIFY_SOCKET", "relative", 1);
    TEST_CHECK(!notify_open());
    manage("3000000", true);
    TEST_CHECK(notify_open() && notify_watchdog_ns() == 3 * NS_PER_S);
    TEST_CHECK(!getenv("NOTIFY_SOCKET") && !getenv("WATCHDOG_USEC") && !getenv("WATCHDOG_PID"));
    notify_send("STATUS=%s %d", "so far", 7);
    TEST_CHECK(strcmp(heard(), "STATUS=so far 7") == 0);
    notify_reloading();
    unsigned long long us = 0;
    TEST_CHECK(sscanf(heard(), "RELOADING=1\nMONOTONIC_USEC=%llu\n", &us) == 1);
    struct env *env = env_real();
    TEST_CHECK(us > 0 && us <= env->now(env) / NS_PER_US);
    notify_close();
    TEST_CHECK(notify_watchdog_ns() == 0);
}

static void test_a_path_is_as_good_as_an_abstract_name(void)
{
    struct sockaddr_un here = {.sun_family = AF_UNIX};
    char folder[] = "/tmp/notify_test.XXXXXX";
    TEST_ASSERT(mkdtemp(folder) != NULL);
    snprintf(here.sun_path, sizeof(here.sun_path), "%s/s", folder);
    manager = socket(AF_UNIX, SOCK_DGRAM, 0);
    TEST_ASSERT(bind(manager, (struct sockaddr *)&here, sizeof(here)) == 0);
    setenv("NOTIFY_SOCKET", here.sun_path, 1);
    TEST_CHECK(notify_open());
    notify_send("READY=1");
    TEST_CHECK(strcmp(heard(), "READY=1") == 0);
    notify_close();
    unlink(here.sun_path);
    rmdir(folder);
}

static void test_another_process_s_watchdog(void)
{
    manage("3000000", false);
    TEST_CHECK(notify_open() && notify_watchdog_ns() == 0);
    notify_close();
}

/* ---- a store that takes its time, on the virtual clock ---- */

static bool silent(void)
{
    char text[512];
    return recv(manager, text, sizeof(text), MSG_DONTWAIT) < 0;
}

static struct sim *wait_from(uint64_t at)
{
    struct sim *sim = sim_create(&(struct sim_options){.seed = 1, .start_ns = at});
    TEST_ASSERT(sim != NULL);
    TEST_ASSERT(
        runtime_spawn(sim_runtime(sim), &(struct spawn_options){.class = &notify_waiter_class}, NULL) == OK);
    (void)sim_settle(sim, 1000);
    return sim;
}

static void test_a_start_that_takes_long_asks_for_more_time(void)
{
    const uint64_t start = NS_PER_S, seconds = NOTIFY_WAIT_NS / NS_PER_S;
    char text[128];
    manage(NULL, true);
    TEST_ASSERT(notify_open());
    struct sim *sim = wait_from(start);
    TEST_CHECK(strcmp(heard(), "EXTEND_TIMEOUT_USEC=20000000\nSTATUS=opening the store, for 0 s") == 0);
    TEST_CHECK(silent());
    (void)sim_run_until(sim, start + NOTIFY_WAIT_NS - 1, 1000);
    TEST_CHECK(silent());
    (void)sim_run_until(sim, start + NOTIFY_WAIT_NS, 1000);
    TEST_CHECK(strcmp(heard(), "EXTEND_TIMEOUT_USEC=20000000\nSTATUS=opening the store, for 5 s") == 0);
    /* for an hour, and then no more */
    for (uint64_t s = 2 * seconds; s <= NOTIFY_WAIT_MAX_NS / NS_PER_S; s += seconds) {
        (void)sim_run_until(sim, start + s * NS_PER_S, 1000);
        snprintf(text, sizeof(text), "EXTEND_TIMEOUT_USEC=20000000\nSTATUS=opening the store, for %llu s",
                 (unsigned long long)s);
        TEST_CHECK_(strcmp(heard(), text) == 0, "after %llu s", (unsigned long long)s);
    }
    (void)sim_run_until(sim, start + 2 * NOTIFY_WAIT_MAX_NS, 1000);
    TEST_CHECK(silent());
    sim_destroy(sim);
    notify_close();
}

/* The second life of a process whose manager has seen the first one ready. */
static void test_the_watchdog_is_fed_while_the_store_opens(void)
{
    const uint64_t start = NS_PER_S;
    manage("3000000", true);
    TEST_ASSERT(notify_open());
    struct sim *sim = wait_from(start);
    TEST_CHECK(
        strcmp(heard(), "EXTEND_TIMEOUT_USEC=20000000\nSTATUS=opening the store, for 0 s\nWATCHDOG=1") == 0);
    (void)sim_run_until(sim, start + 1500 * NS_PER_MS - 1, 1000);
    TEST_CHECK(silent());
    (void)sim_run_until(sim, start + 1500 * NS_PER_MS, 1000);
    TEST_CHECK(
        strcmp(heard(), "EXTEND_TIMEOUT_USEC=20000000\nSTATUS=opening the store, for 1 s\nWATCHDOG=1") == 0);
    sim_destroy(sim);
    notify_close();
}

/* ---- the actor ---- */

static _Atomic bool stand_still, stands;

/* Holds its scheduler until it is told otherwise. */
static enum actor_step block_handle(void *state, struct message *m)
{
    (void)state;
    (void)m;
    actor_guard_begin(); /* not to be switched out */
    while (atomic_load(&stand_still))
        atomic_store(&stands, true);
    atomic_store(&stands, false);
    actor_guard_end();
    return ACTOR_CONTINUE;
}

static const struct actor_class block_class = {
    .name = "block", .state_size = 1, .handle = block_handle, .runaway_ns = DEADLINE_NONE};

/* The root: the notifier, and on the second scheduler somebody who may stand still. */
struct stage {
    actor_pid block;
};
static _Atomic actor_pid block;

static enum actor_step stage_init(void *state, const void *args, size_t args_size)
{
    actor_pid pid; /* not acutest's checks here: another thread has them in hand */
    (void)state;
    (void)args;
    (void)args_size;
    ASSERT(actor_spawn(&(struct spawn_options){.class = &notify_class, .link = true}, NULL) == OK);
    ASSERT(actor_spawn(&(struct spawn_options){.class = &block_class, .link = true, .scheduler = SPAWN_ON(1)},
                       &pid) == OK);
    atomic_store(&block, pid);
    return ACTOR_CONTINUE;
}

/* As its supervisor would: a second life. */
static enum actor_step stage_handle(void *state, struct message *m)
{
    (void)state;
    (void)m;
    ASSERT(actor_spawn(&(struct spawn_options){.class = &notify_class, .link = true}, NULL) == OK);
    return ACTOR_CONTINUE;
}

static const struct actor_class stage_class = {
    .name = "stage", .state_size = sizeof(struct stage), .init = stage_init, .handle = stage_handle};

static void *watch(void *arg)
{
    return (void *)(intptr_t)runtime_run(arg);
}

static _Atomic int readies;

static void on_ready(const void *context)
{
    ASSERT(context == &readies); /* acutest is in the hands of the thread that runs the test */
    atomic_fetch_add(&readies, 1);
}

static void test_readiness_is_told_once_to_us_and_each_time_to_the_manager(void)
{
    char text[256];
    pthread_t thread;
    actor_pid root;
    manage(NULL, true);
    TEST_ASSERT(notify_open());
    notify_on_ready(on_ready, &readies);
    struct runtime *rt = runtime_create(&(struct runtime_options){.schedulers = 2}, text, sizeof(text));
    TEST_ASSERT_(rt != NULL, "%s", text);
    TEST_ASSERT(runtime_spawn(rt, &(struct spawn_options){.class = &stage_class}, &root) == OK);
    TEST_CHECK(atomic_load(&readies) == 0); /* not before it lives */
    TEST_ASSERT(pthread_create(&thread, NULL, watch, rt) == 0);
    TEST_CHECK(strcmp(heard(), "READY=1\nSTATUS=serving") == 0);
    TEST_CHECK(atomic_load(&readies) == 1); /* and before the manager hears of it */
    TEST_ASSERT(runtime_post(rt, root, 1, NULL, 0) == OK);
    TEST_CHECK(strcmp(heard(), "READY=1\nSTATUS=serving") == 0);
    TEST_CHECK(atomic_load(&readies) == 1);
    runtime_stop(rt);
    TEST_ASSERT(pthread_join(thread, NULL) == 0);
    runtime_destroy(rt);
    notify_close();
}

static void test_the_watchdog_is_fed_while_every_scheduler_works(void)
{
    char text[256];
    int log[2];
    pthread_t thread;
    void *status;
    TEST_ASSERT(pipe(log) == 0);
    manage("40000", true); /* fed every 20 ms */
    TEST_ASSERT(notify_open());
    int saved = dup(STDERR_FILENO);
    dup2(log[1], STDERR_FILENO);
    log_open(LOG_ERROR);
    struct runtime *rt =
        runtime_create(&(struct runtime_options){.schedulers = 2, .no_preemption = true}, text, sizeof(text));
    TEST_ASSERT_(rt != NULL, "%s", text);
    TEST_ASSERT(runtime_spawn(rt, &(struct spawn_options){.class = &stage_class}, NULL) == OK);
    TEST_ASSERT(pthread_create(&thread, NULL, watch, rt) == 0);
    TEST_CHECK(strcmp(heard(), "READY=1\nSTATUS=serving") == 0);
    for (int i = 0; i < 5; i++)
        TEST_CHECK_(strcmp(heard(), "WATCHDOG=1") == 0, "%d", i);
    /* Now one of them stands still: the log says so, and at some time nothing comes any more. */
    atomic_store(&stand_still, true);
    TEST_ASSERT(runtime_post(rt, atomic_load(&block), 1, NULL, 0) == OK);
    char line[1024] = "";
    FILE *lines = fdopen(log[0], "r");
    do /* a machine that is busy may have let the other one wait before, and have other things to say */
        TEST_ASSERT(fgets(line, sizeof(line), lines) != NULL);
    while (!strstr(line, "a scheduler stands still") || !strstr(line, "\"scheduler\":1"));
    while (!atomic_load(&stands))
        sched_yield();
    while (recv(manager, text, sizeof(text), MSG_DONTWAIT) > 0) /* what was sent before it was seen */
        ;
    /* and goes on: it is fed again */
    atomic_store(&stand_still, false);
    TEST_CHECK(strcmp(heard(), "WATCHDOG=1") == 0);
    runtime_stop(rt);
    TEST_ASSERT(pthread_join(thread, &status) == 0);
    TEST_CHECK((intptr_t)status == 0);
    dup2(saved, STDERR_FILENO);
    runtime_destroy(rt);
    notify_close();
}

TEST_LIST
= {
    {"who is told", test_who_is_told},
    {"a path is as good as an abstract name", test_a_path_is_as_good_as_an_abstract_name},
    {"another process's watchdog", test_another_process_s_watchdog},
    {"a start that takes long asks for more time", test_a_start_that_takes_long_asks_for_more_time},
    {"the watchdog is fed while the store opens", test_the_watchdog_is_fed_while_the_store_opens},
    {"readiness is told once to us and each time to the manager",
     test_readiness_is_told_once_to_us_and_each_time_to_the_manager},
    {"the watchdog is fed while every scheduler works", test_the_watchdog_is_fed_while_every_scheduler_works},
    {NULL, NULL},
};
