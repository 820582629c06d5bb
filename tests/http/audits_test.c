/* Audit entries of what operators do: committed, or a line of the log says which one is missing and why. */
#include "acutest.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "http/audits.h"
#include "runtime/sim.h"
#include "store/audit.h"
#include "store/view.h"
#include "store/writer.h"

static char dir[64];
static struct store *store;
static char log_text[1 << 16];
static size_t log_used;

static void take_log(const char *line, size_t size)
{
    TEST_ASSERT(log_used + size + 2 < sizeof(log_text));
    memcpy(log_text + log_used, line, size);
    log_text[log_used + size] = '\n';
    log_text[log_used += size + 1] = 0;
}

/* ---- a body that runs as the root of a simulation, over the store of this process ---- */

static void (*body_now)(void);
static bool finished;

static enum actor_step body_init(void *state, const void *args, size_t args_size)
{
    (void)state;
    (void)args;
    (void)args_size;
    return ACTOR_PROCEED;
}

static enum actor_step body_proceed(void *state)
{
    (void)state;
    body_now();
    finished = true;
    return ACTOR_STOP;
}

static enum actor_step body_handle(void *state, struct message *m)
{
    (void)state;
    (void)m;
    return ACTOR_CONTINUE;
}

static const struct actor_class body_class = {.name = "body",
                                              .init = body_init,
                                              .proceed = body_proceed,
                                              .handle = body_handle,
                                              .trap_exits = true,
                                              .stack_size = 1 << 20};

static void run(void (*body)(void))
{
    struct sim *sim = sim_create(&(struct sim_options){.seed = 1, .schedulers = 2, .runtime.log = take_log});
    body_now = body;
    finished = false;
    log_used = 0;
    log_text[0] = 0;
    TEST_ASSERT(runtime_spawn(sim_runtime(sim), &(struct spawn_options){.class = &body_class}, NULL) == OK);
    sim_run(sim, 100000000);
    TEST_CHECK(finished);
    sim_destroy(sim);
}

static void store_make(void)
{
    char text[256] = "";
    snprintf(dir, sizeof(dir), "%s/coppice-audits-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    TEST_ASSERT(mkdtemp(dir) != NULL);
    enum error e =
        store_open(&(struct store_options){.environment = {.dir = dir, .map = 16 << 20, .step = 1 << 20}},
                   &store, text, sizeof(text));
    TEST_ASSERT_(e == OK, "%s: %s", error_name(e), text);
    store_install(store);
}

static void store_end(void)
{
    static const char *const files[] = {"data.mdb", "lock.mdb", "coppice.lock"};
    char path[128];
    store_install(NULL);
    store_close(store);
    store = NULL;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
        unlink(path);
    }
    TEST_CHECK_(rmdir(dir) == 0, "%s is left", dir);
}

#define LOGGED(needle) TEST_CHECK_(strstr(log_text, (needle)) != NULL, "'%s' in '%s'", (needle), log_text)

static bool note(const char *target, const char *outcome)
{
    static struct request q; /* by nobody in particular: an operator */
    return audits_note(&q, &(struct audits_entry){.verb = "actor.kill",
                                                  .target = target,
                                                  .reason = span_text("a \xe2\x82\xac drill"),
                                                  .outcome = outcome,
                                                  .details = span_text("{\"died\":1}")});
}

/* ---- written ---- */

static void written_body(void)
{
    struct start_result writer;
    struct audit audit = {.who.size = 0};
    struct key from = {.size = 0};
    TEST_ASSERT(actor_start(&(struct spawn_options){.class = &writer_class, .name = WRITER_NAME}, &writer,
                            DEADLINE_NONE) == OK);
    TEST_CHECK(note("bus", "200"));
    struct view *view = view_open(store);
    TEST_ASSERT(view != NULL);
    struct scan scan = txn_scan(&view->txn, TABLE_AUDITS, key_span(&from), 0, SCAN_UP);
    TEST_CHECK(scan_next(&scan) && scan_read(&scan, &audit) == OK);
    TEST_CHECK(span_equal(audit.verb, span_text("actor.kill")) &&
               span_equal(audit.target, span_text("bus")) && span_equal(audit.outcome, span_text("200")));
    TEST_CHECK(span_equal(audit.who, span_text("operator")) &&
               span_equal(audit.reason, span_text("a \xe2\x82\xac drill")) &&
               span_equal(audit.details, span_text("{\"died\":1}")));
    TEST_CHECK(!scan_next(&scan) && scan_end(&scan) == OK);
    view_close(view);
    actor_kill(writer.pid);
}

static void test_written(void)
{
    store_make();
    run(written_body);
    TEST_CHECK_(strstr(log_text, "audit entry") == NULL, "%s", log_text);
    store_end();
}

/* The verb may have ended the writer, or the store's whole domain: the entry waits for the next one. */
static enum actor_step late_proceed(void *state)
{
    struct start_result writer;
    (void)state;
    (void)actor_sleep(actor_deadline_ms(700));
    TEST_ASSERT(actor_start(&(struct spawn_options){.class = &writer_class, .name = WRITER_NAME}, &writer,
                            DEADLINE_NONE) == OK);
    return ACTOR_STOP;
}

static const struct actor_class late_class = {
    .name = "late", .init = body_init, .proceed = late_proceed, .handle = body_handle, .stack_size = 1 << 20};

static void late_body(void)
{
    struct start_result late;
    TEST_ASSERT(actor_start(&(struct spawn_options){.class = &late_class}, &late, DEADLINE_NONE) == OK);
    TEST_CHECK(actor_whereis(WRITER_NAME) == 0);
    TEST_CHECK(note("writer", "200") && actor_whereis(WRITER_NAME) != 0);
    struct view *view = view_open(store);
    TEST_ASSERT(view != NULL);
    TEST_CHECK(txn_rows(&view->txn, TABLE_AUDITS) == 1);
    view_close(view);
    actor_kill(actor_whereis(WRITER_NAME));
}

static void test_late(void)
{
    store_make();
    run(late_body);
    TEST_CHECK_(strstr(log_text, "audit entry") == NULL, "%s", log_text);
    store_end();
}

/* ---- not written ---- */

static void unwritten_body(void)
{
    TEST_CHECK(!note("a \"bus\"", "200"));
}

static void test_no_store(void)
{
    run(unwritten_body);
    LOGGED("{\"level\":\"error\",\"msg\":\"an audit entry was not written\",\"error\":\"unavailable\","
           "\"who\":\"operator\",\"verb\":\"actor.kill\",\"target\":\"a \\\"bus\\\"\",\"reason\":\"a "
           "\xe2\x82\xac "
           "drill\",\"outcome\":\"200\"}\n");
}

static void test_no_writer(void)
{
    store_make();
    run(unwritten_body);
    LOGGED("\"msg\":\"an audit entry was not written\",\"error\":\"");
    TEST_CHECK_(strchr(log_text, '\n') == log_text + log_used - 1, "one line: %s", log_text);
    store_end();
}

/* The longest target there can be, each byte of which takes six in the line. */
static void long_body(void)
{
    char target[400];
    memset(target, 1, sizeof(target) - 1);
    target[sizeof(target) - 1] = 0;
    TEST_CHECK(!note(target, "200"));
}

static void test_long(void)
{
    run(long_body);
    LOGGED("\\u0001\",\"reason\":\"a ");
}

/* ---- left with the store ---- */

enum { PATIENCE_MS = 1000, LATER_MS = 3600000 };

static bool is_there(void)
{
    struct audit audit = {.who.size = 0};
    struct key from = {.size = 0};
    struct view *view = view_open(store);
    TEST_ASSERT(view != NULL);
    struct scan scan = txn_scan(&view->txn, TABLE_AUDITS, key_span(&from), 0, SCAN_UP);
    bool found = scan_next(&scan) && scan_read(&scan, &audit) == OK &&
                 span_equal(audit.verb, span_text("config.reload")) &&
                 span_equal(audit.request_id, span_text("r1"));
    TEST_CHECK(scan_end(&scan) == OK);
    view_close(view);
    return found;
}

static void left_body(void)
{
    const struct audits_by by = {.who = span_text("operator"), .request_id = span_text("r1")};
    const struct audits_entry entry = {.verb = "config.reload", .target = "settings", .outcome = "reloaded"};
    struct start_result writer;
    TEST_ASSERT(actor_start(&(struct spawn_options){.class = &writer_class, .name = WRITER_NAME}, &writer,
                            DEADLINE_NONE) == OK);
    actor_suspend(writer.pid);
    uint64_t began = actor_now();
    TEST_CHECK(!audits_hand_by(&by, &entry, actor_deadline_ms(PATIENCE_MS)));
    TEST_CHECK(actor_now() - began >= PATIENCE_MS * NS_PER_MS);
    TEST_CHECK(actor_sleep(actor_deadline_ms(LATER_MS)) == OK);
    TEST_CHECK(!is_there());
    actor_resume(writer.pid);
    TEST_CHECK(actor_sleep(actor_deadline_ms(LATER_MS)) == OK);
    TEST_CHECK(is_there());
    actor_kill(writer.pid);
}

static void test_left(void)
{
    store_make();
    run(left_body);
    LOGGED("{\"level\":\"warn\",\"msg\":\"an audit entry was not waited for: the store has it\","
           "\"error\":\"timeout\",\"who\":\"operator\",\"verb\":\"config.reload\",");
    store_end();
}

/* What is too long is cut between two characters: an entry holds UTF-8. */
static void cut_body(void)
{
    struct start_result writer;
    struct audit audit = {.who.size = 0};
    struct key from = {.size = 0};
    char target[300] = "x";
    while (strlen(target) + 3 < sizeof(target))
        strcat(target, "\xe2\x82\xac");
    TEST_ASSERT(actor_start(&(struct spawn_options){.class = &writer_class, .name = WRITER_NAME}, &writer,
                            DEADLINE_NONE) == OK);
    TEST_CHECK(note(target, "200"));
    struct view *view = view_open(store);
    TEST_ASSERT(view != NULL);
    struct scan scan = txn_scan(&view->txn, TABLE_AUDITS, key_span(&from), 0, SCAN_UP);
    TEST_CHECK(scan_next(&scan) && scan_read(&scan, &audit) == OK);
    TEST_CHECK(audit.target.size == 256 || audit.target.size == 253 + 1);
    TEST_CHECK(((const unsigned char *)audit.target.bytes)[audit.target.size - 1] == 0xac);
    TEST_CHECK(scan_end(&scan) == OK);
    view_close(view);
    actor_kill(writer.pid);
}

static void test_cut(void)
{
    store_make();
    run(cut_body);
    store_end();
}

TEST_LIST
= {
    {"an entry is committed, and nothing is said", test_written},
    {"an entry waits for the next writer", test_late},
    {"without a store the log has the entry", test_no_store},
    {"without a writer, too", test_no_writer},
    {"whatever its target is", test_long},
    {"an entry that is no longer waited for is written when the store goes on", test_left},
    {"a long target is cut between two characters", test_cut},
    {NULL, NULL},
};
