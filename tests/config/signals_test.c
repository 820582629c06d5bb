#define _GNU_SOURCE /* pipe2 */
#include "acutest.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/log.h"
#include "config/reload.h"
#include "config/signals.h"
#include "http/front.h"
#include "runtime/env.h"
#include "store/store.h"
#include "store/writer.h"

/* ---- a process of one actor, and one that plays the world outside ---- */

static char folder[] = "/tmp/signals_test.XXXXXX", path[64], text[1024];
static struct settings settings;
static struct front client = {.name = "client"}, operators = {.name = "operator"};
static int log_ends[2], saved;

static void put(const char *json)
{
    FILE *f = fopen(path, "w");
    TEST_ASSERT(f != NULL);
    fputs(json, f);
    fclose(f);
}

static char argument[96];
static char *argv[] = {"coppice", "serve", argument, NULL}, *environment[] = {NULL};

static void set_up(const char *json)
{
    TEST_ASSERT(mkdtemp(folder) != NULL);
    snprintf(path, sizeof(path), "%s/coppice.json", folder);
    snprintf(argument, sizeof(argument), "--config=%s", path);
    put(json);
    TEST_ASSERT_(settings_load(&settings, 3, argv, environment, text, sizeof(text)) == 0, "%s", text);
    reload_install(&settings, 3, argv, environment);
    front_install(&client);
    front_install(&operators);
    TEST_ASSERT(pipe2(log_ends, O_NONBLOCK) == 0);
    saved = dup(STDERR_FILENO);
    dup2(log_ends[1], STDERR_FILENO);
    log_open(settings.options.log_level);
}

static char lines[65536];

static void tear_down(void)
{
    ssize_t n = read(log_ends[0], lines, sizeof(lines) - 1);
    lines[n > 0 ? n : 0] = 0;
    dup2(saved, STDERR_FILENO);
    unlink(path);
    rmdir(folder);
}

static void (*script)(void); /* what the world does */

static enum actor_step world_proceed(void *state)
{
    (void)state;
    script();
    return ACTOR_STOP;
}

static enum actor_step world_init(void *state, const void *args, size_t args_size)
{
    (void)state;
    (void)args;
    (void)args_size;
    return ACTOR_PROCEED;
}

static enum actor_step world_handle(void *state, struct message *m)
{
    (void)state;
    (void)m;
    return ACTOR_CONTINUE;
}

static const struct actor_class world_class = {.name = "world",
                                               .state_size = 1,
                                               .init = world_init,
                                               .proceed = world_proceed,
                                               .handle = world_handle,
                                               .stack_size = 1 << 20,
                                               .runaway_ns = DEADLINE_NONE};

static enum actor_step mute_init(void *state, const void *args, size_t args_size)
{
    (void)state;
    (void)args;
    (void)args_size;
    return ACTOR_CONTINUE;
}

/* Takes what comes, and says nothing. */
static enum actor_step mute_handle(void *state, struct message *m)
{
    (void)state;
    (void)actor_defer(m);
    return ACTOR_CONTINUE;
}

static const struct actor_class mute_class = {
    .name = "mute", .state_size = 1, .init = mute_init, .handle = mute_handle};

static struct runtime *one(void)
{
    struct runtime *rt =
        runtime_create(&(struct runtime_options){.schedulers = 1, .no_preemption = true, .log = log_line},
                       text, sizeof(text));
    TEST_ASSERT_(rt != NULL, "%s", text);
    return rt;
}

static int serve_next(void (*what)(void))
{
    struct runtime *rt = one();
    signals_serve(rt);
    script = what;
    TEST_ASSERT(runtime_spawn(rt, &(struct spawn_options){.class = &signals_class, .name = SIGNALS_NAME},
                              NULL) == OK);
    TEST_ASSERT(runtime_spawn(rt, &(struct spawn_options){.class = &world_class}, NULL) == OK);
    int status = runtime_run(rt);
    signals_close();
    runtime_destroy(rt);
    return status;
}

static int run(void (*what)(void))
{
    TEST_ASSERT(signals_open());
    return serve_next(what);
}

#define UNTIL(condition) \
    while (!(condition)) \
    actor_sleep(actor_now() + NS_PER_MS)

/* ---- stopping ---- */

static void nothing(void)
{
    UNTIL(false);
}

static void test_a_stop_before_the_tree_is_up(void)
{
    set_up("{}");
    struct runtime *rt = runtime_create(&(struct runtime_options){.schedulers = 1}, text, sizeof(text));
    TEST_ASSERT(rt != NULL && signals_open());
    signals_serve(rt);
    raise(SIGTERM);
    script = nothing;
    TEST_ASSERT(runtime_spawn(rt, &(struct spawn_options){.class = &signals_class}, NULL) == OK);
    TEST_ASSERT(runtime_spawn(rt, &(struct spawn_options){.class = &world_class}, NULL) == OK);
    TEST_CHECK(runtime_run(rt) == 0);
    signals_close();
    runtime_destroy(rt);
    tear_down();
}

static void terminate_and_wait(void)
{
    raise(SIGTERM);
    UNTIL(false);
}

static void test_a_stop_drains_first(void)
{
    set_up("{}");
    TEST_CHECK(run(terminate_and_wait) == 0);
    TEST_CHECK(atomic_load(&client.draining) && atomic_load(&operators.draining));
    tear_down();
    TEST_CHECK_(strstr(lines, "\"logger\":\"signals\",\"msg\":\"stopping\"") != NULL, "%s", lines);
}

static bool delayed;

static void terminate_twice(void)
{
    raise(SIGINT);
    UNTIL(atomic_load(&client.draining));
    for (int i = 0; i < 3; i++) /* it doesn't stop yet: the delay is an hour */
        actor_sleep(actor_now() + NS_PER_MS);
    delayed = true;
    raise(SIGTERM);
    UNTIL(false);
}

static void test_the_second_one_is_at_once(void)
{
    set_up("{\"http\": {\"shutdown_delay\": \"1h\"}}");
    (void)run(terminate_twice);
    TEST_CHECK(delayed);
    tear_down();
    TEST_CHECK_(strstr(lines, "\"delay_ms\":3600000") != NULL, "%s", lines);
}

static void test_the_delay_ends(void)
{
    set_up("{\"http\": {\"shutdown_delay\": \"1ms\"}}");
    TEST_CHECK(run(terminate_and_wait) == 0);
    tear_down();
}

/* A drain that has begun goes on when the actor is started again. */
static void kill_while_draining(void)
{
    raise(SIGTERM);
    UNTIL(atomic_load(&client.draining));
    actor_pid first = actor_whereis(SIGNALS_NAME);
    actor_kill(first);
    UNTIL(!actor_alive(first));
    UNTIL(false);
}

static enum actor_step root_proceed(void *state)
{
    (void)state;
    actor_trap_exits(true);
    TEST_ASSERT(
        actor_spawn(&(struct spawn_options){.class = &signals_class, .name = SIGNALS_NAME, .link = true},
                    NULL) == OK);
    return ACTOR_CONTINUE;
}

/* As a supervisor would: a new one for each that didn't end by itself; ends when it is told to. */
static enum actor_step root_handle(void *state, struct message *m)
{
    const struct message_exit *e = (const void *)m->payload;
    if (m->type != MESSAGE_EXIT)
        return ACTOR_CONTINUE;
    return reason_abnormal(&e->reason) ? root_proceed(state) : ACTOR_STOP;
}

static const struct actor_class root_class = {.name = "root",
                                              .state_size = 1,
                                              .init = world_init,
                                              .proceed = root_proceed,
                                              .handle = root_handle,
                                              .trap_exits = true};

static void run_below_root(void (*what)(void))
{
    struct runtime *rt = one();
    TEST_ASSERT(signals_open());
    signals_serve(rt);
    script = what;
    TEST_ASSERT(runtime_spawn(rt, &(struct spawn_options){.class = &root_class}, NULL) == OK);
    TEST_ASSERT(runtime_spawn(rt, &(struct spawn_options){.class = &world_class}, NULL) == OK);
    (void)runtime_run(rt); /* it returns */
    signals_close();
    runtime_destroy(rt);
}

static void test_a_drain_goes_on_after_the_actor_was_killed(void)
{
    set_up("{\"http\": {\"shutdown_delay\": \"100ms\"}}");
    run_below_root(kill_while_draining);
    tear_down();
}

/* A stop that stands in the pipe behind what the actor ends by. */
static void end_it(void *context, const struct settings *next)
{
    (void)context;
    (void)next;
    actor_fail(1, "in the middle of a reload");
}

static void reload_and_terminate(void)
{
    struct message *answer;
    reload_on_apply(end_it, NULL);
    UNTIL(actor_whereis(SIGNALS_NAME));
    actor_pid first = actor_whereis(SIGNALS_NAME);
    put("{\"http.idle\": \"7s\"}");
    raise(SIGHUP);
    raise(SIGTERM); /* nobody has been given a turn since */
    UNTIL(!actor_alive(first) && actor_whereis(SIGNALS_NAME));
    reload_on_apply(NULL, NULL);
    TEST_CHECK(actor_call_name(SIGNALS_NAME, message_new(SIGNALS_RELOAD, 0), &answer, DEADLINE_NONE) == OK);
    TEST_CHECK(atomic_load(&client.draining));
    runtime_stop(runtime_self());
    UNTIL(false);
}

static void test_a_stop_is_heard_by_the_successor(void)
{
    set_up("{\"http.shutdown_delay\": \"1h\"}");
    run_below_root(reload_and_terminate);
    tear_down();
}

/* ---- between two runtimes ---- */

static void leave(void)
{
    runtime_stop(runtime_self());
    UNTIL(false);
}

/* As the porch: a runtime without the actor. Returns when that has ended. */
static void serve_first(void)
{
    struct runtime *rt = one();
    TEST_ASSERT(signals_open());
    signals_serve(rt);
    raise(SIGHUP);
    script = leave;
    TEST_ASSERT(runtime_spawn(rt, &(struct spawn_options){.class = &world_class}, NULL) == OK);
    TEST_CHECK(runtime_run(rt) == 0);
    signals_serve(NULL);
    TEST_CHECK(!signals_stopped());
    runtime_destroy(rt);
}

static void test_a_stop_between_two_is_for_the_next(void)
{
    set_up("{}");
    serve_first();
    raise(SIGTERM);
    TEST_CHECK(signals_stopped());
    TEST_CHECK(serve_next(nothing) == 0);
    tear_down();
}

static void test_a_reload_waits_for_the_actor(void)
{
    set_up("{}");
    put("{\"http.idle\": \"7s\"}");
    serve_first();
    raise(SIGHUP);
    TEST_CHECK(serve_next(terminate_and_wait) == 0);
    TEST_CHECK(reload_settings()->options.http_idle == 7 * S);
    tear_down();
}

/* ---- reloading ---- */

static const struct settings *applied;

static void apply(void *context, const struct settings *next)
{
    TEST_CHECK(context == &client);
    applied = next;
}

static void reload_by_signal(void)
{
    reload_on_apply(apply, &client);
    put("{\"log.level\": \"warn\", \"http.idle\": \"7s\", \"store.map\": \"2GiB\"}");
    raise(SIGHUP);
    UNTIL(log_level_here() == LOG_WARN);
    TEST_CHECK(applied && applied->options.http_idle == 7 * S && reload_settings() == applied);
    /* What is wrong changes nothing. */
    put("{\"log.level\": \"debug\", \"http.idle\": \"8s\", \"slice\": \"9m\"}");
    applied = NULL;
    raise(SIGHUP);
    struct message *answer;
    TEST_CHECK(actor_call_name(SIGNALS_NAME, message_new(SIGNALS_RELOAD, 0), &answer, DEADLINE_NONE) == OK);
    const struct reload_report *report = message_body(answer, sizeof(*report));
    TEST_CHECK(report && !report->done && strstr(report->why, ":1: slice is '9m'"));
    TEST_CHECK(log_level_here() == LOG_WARN && !applied);
    TEST_CHECK(reload_settings()->options.http_idle == 7 * S);
    /* The level that an operator has set stays until the file has another one. */
    log_set_level(LOG_ERROR);
    put("{\"log.level\": \"warn\", \"http.idle\": \"9s\", \"store.map\": \"2GiB\"}");
    TEST_CHECK(actor_call_name(SIGNALS_NAME, message_new(SIGNALS_RELOAD, 0), &answer, DEADLINE_NONE) == OK);
    report = message_body(answer, sizeof(*report));
    TEST_CHECK(report && report->done && report->applied == 1 &&
               strcmp(report->applied_keys, "http.idle") == 0);
    TEST_CHECK(report->restart == 1 && strcmp(report->restart_keys, "store.map") == 0);
    TEST_CHECK(log_level_here() == LOG_ERROR);
    raise(SIGTERM);
    UNTIL(false);
}

static void test_a_reload_is_all_or_nothing(void)
{
    set_up("{\"log.level\": \"info\"}");
    TEST_CHECK(run(reload_by_signal) == 0);
    tear_down();
    TEST_CHECK_(strstr(lines, "some need a restart\",\"actor\":\"") &&
                    strstr(lines, "\"applied\":\"http.idle, log.level\""),
                "%s", lines);
    TEST_CHECK_(strstr(lines, "the settings can't be used; everything stays as it was") != NULL, "%s", lines);
}

/* Whoever has asked for a stop waits for the reload that is being done, and for none that stands behind it. */
static int reloads, drained_at;

static void count_reload(void *context, const struct settings *next)
{
    (void)context;
    (void)next;
    if (++reloads == 1)
        raise(SIGTERM);
    if (!drained_at && atomic_load(&client.draining))
        drained_at = reloads;
}

static void terminate_among_reloads(void)
{
    reload_on_apply(count_reload, NULL);
    UNTIL(actor_whereis(SIGNALS_NAME));
    for (int i = 0; i < 3; i++) /* they stand in the mailbox together: nobody has been given a turn */
        TEST_CHECK(actor_send_name(SIGNALS_NAME, message_new(SIGNALS_RELOAD, 0)) == OK);
    UNTIL(reloads == 3);
    reload_on_apply(NULL, NULL);
    runtime_stop(runtime_self());
    UNTIL(false);
}

static void test_a_stop_does_not_wait_behind_reloads(void)
{
    set_up("{\"http.shutdown_delay\": \"1h\"}");
    TEST_CHECK(run(terminate_among_reloads) == 0);
    TEST_CHECK_(drained_at == 2, "before reload %d", drained_at);
    tear_down();
}

/* A store that hangs: somebody by the writer's name, who never answers. */
static struct store hanging;

static const char *reload_for(uint64_t audit_until)
{
    struct message *answer = NULL, *ask = message_new(SIGNALS_RELOAD, sizeof(struct signals_reload));
    struct signals_reload *asked = message_body(ask, sizeof(*asked));
    *asked = (struct signals_reload){.audit_until = audit_until};
    enum error e = actor_call_name(SIGNALS_NAME, ask, &answer, actor_deadline_ms(600000));
    const struct reload_report *report = e ? NULL : message_body(answer, sizeof(*report));
    return !report ? error_name(e) : report->done ? "done" : report->why;
}

static void reload_while_the_store_hangs(void)
{
    hanging.env = env_real();
    UNTIL(actor_whereis(SIGNALS_NAME));
    TEST_ASSERT(actor_start(&(struct spawn_options){.class = &mute_class, .name = WRITER_NAME},
                            &(struct start_result){.pid = 0}, DEADLINE_NONE) == OK);
    store_install(&hanging);
    const char *what = reload_for(1); /* whose asker has gone */
    TEST_CHECK_(strcmp(what, "done") == 0, "%s", what);
    raise(SIGTERM);
    UNTIL(atomic_load(&client.draining));
    what = reload_for(actor_deadline_ms(3600000)); /* who waits longer than this test */
    TEST_CHECK_(strcmp(what, "done") == 0, "%s", what);
    store_install(NULL);
    runtime_stop(runtime_self());
    UNTIL(false);
}

static void test_a_store_that_hangs(void)
{
    set_up("{\"http.shutdown_delay\": \"1h\"}");
    TEST_CHECK(run(reload_while_the_store_hangs) == 0);
    tear_down();
    const char *first = strstr(lines, "an audit entry was not waited for: the store has it");
    TEST_CHECK_(first && strstr(first + 1, "an audit entry was not waited for"), "%s", lines);
    TEST_CHECK_(!strstr(lines, "an audit entry was not written"), "%s", lines);
}

static void reload_certificates(void)
{
    struct message *answer;
    const struct reload_report *report;
    put("{\"tls.certificate\": \"/nowhere/c.pem\", \"tls.key\": \"/nowhere/k.pem\", \"http.idle\": \"8s\"}");
    TEST_CHECK(actor_call_name(SIGNALS_NAME, message_new(SIGNALS_RELOAD, 0), &answer, DEADLINE_NONE) == OK);
    report = message_body(answer, sizeof(*report));
    /* TLS is there or not from the start on: these two wait for the next one, and aren't looked at. */
    TEST_CHECK(report && report->done && strstr(report->restart_keys, "tls.certificate, tls.key"));
    raise(SIGTERM);
    UNTIL(false);
}

static void test_tls_is_switched_on_by_a_start_alone(void)
{
    set_up("{}");
    TEST_CHECK(run(reload_certificates) == 0);
    tear_down();
}

/* ---- SIGUSR1 ---- */

static void dump(void)
{
    raise(SIGUSR1);
    raise(SIGTERM); /* in the order that they came in */
    UNTIL(false);
}

static void test_figures_become_lines(void)
{
    set_up("{}");
    TEST_CHECK(run(dump) == 0);
    tear_down();
    TEST_CHECK_(strstr(lines, "\"logger\":\"stats\"") && strstr(lines, "\"schedulers\":1,\"actors\":2,"),
                "%s", lines);
    TEST_CHECK(strstr(lines, "\"logger\":\"stats\"") < strstr(lines, "\"msg\":\"stopping\""));
}

TEST_LIST
= {
    {"a stop before the tree is up", test_a_stop_before_the_tree_is_up},
    {"a stop drains first", test_a_stop_drains_first},
    {"the second one is at once", test_the_second_one_is_at_once},
    {"the delay ends", test_the_delay_ends},
    {"a drain goes on after the actor was killed", test_a_drain_goes_on_after_the_actor_was_killed},
    {"a stop behind a reload that ends the actor is heard by its successor",
     test_a_stop_is_heard_by_the_successor},
    {"a stop between two runtimes is for the next one", test_a_stop_between_two_is_for_the_next},
    {"a reload that comes before the actor waits for it", test_a_reload_waits_for_the_actor},
    {"a reload is all or nothing", test_a_reload_is_all_or_nothing},
    {"a stop doesn't wait behind reloads that were asked for", test_a_stop_does_not_wait_behind_reloads},
    {"a store that hangs has the entry, and nobody waits for it who has gone or is stopped",
     test_a_store_that_hangs},
    {"TLS is switched on by a start alone", test_tls_is_switched_on_by_a_start_alone},
    {"figures become lines", test_figures_become_lines},
    {NULL, NULL},
};
