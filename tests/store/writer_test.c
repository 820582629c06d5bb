/* The writer as an actor: batches, answers after the commit, refusals, kills, and the same in a simulation. */
#include "acutest.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/histogram.h"
#include "runtime/scheduler.h"
#include "runtime/sim.h"
#include "runtime/telemetry.h"
#include "store/counter.h"
#include "store/job_lease.h"
#include "store/job_queue.h"
#include "store/job_submit.h"
#include "store/ledger.h"
#include "store/view.h"
#include "store/writer.h"
#include "store/outbox.h"
#include "tests/support/stage.h"
#include "tests/support/sanitized.h"

enum { SUBMITTERS = 16, EACH = 20 };

static char dir[64];
static struct store *store;
static uint64_t commits;
static _Atomic uint32_t right, wrong, over;

static void store_make(struct env *env)
{
    char text[512] = "";
    parcel_install();
    snprintf(dir, sizeof(dir), "/dev/shm/coppice-writer-%d", (int)getpid());
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    TEST_CHECK(system(command) == 0);
    enum error e = store_open(&(struct store_options){.environment = {.dir = dir, .step = 1 << 20},
                                                      .schema = &parcel_store_schema,
                                                      .env = env},
                              &store, text, sizeof(text));
    TEST_CHECK_(e == OK, "%s: %s", error_name(e), text);
    store_install(store);
    right = wrong = over = 0;
}

static void store_end(void)
{
    char command[128];
    commits = store->commits;
    store_close(store);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    TEST_CHECK(system(command) == 0);
}

static enum error send_parcel(const struct uuid *id, size_t *ret_size)
{
    char body[1024], answer[64];
    memset(body, 7, sizeof(body));
    struct parcel_send send = {.id = *id, .body = span_of(body, sizeof(body))};
    return store_submit(&parcel_send_class, &send, answer, sizeof(answer), ret_size,
                        actor_deadline_ms(60000));
}

static enum actor_step submitter_handle(void *state, struct message *m)
{
    struct uuid_source source;
    (void)state;
    (void)m;
    uuid_source_init(&source, store->env);
    for (int i = 0; i < EACH; i++) {
        struct uuid id = uuid_v7(&source);
        size_t size = 0;
        bool sent = send_parcel(&id, &size) == OK && size == 17;
        struct view *view = view_open(store);
        struct parcel parcel;
        struct key key = key_of_uuid(&id);
        sent &= view && txn_read(&view->txn, TABLE_PARCELS, key_span(&key), &parcel) == OK &&
                parcel.body.size == 1024;
        if (view)
            view_close(view);
        sent &= send_parcel(&id, NULL) == ERR_EXISTS;
        if (sent)
            right++;
        else
            wrong++;
    }
    over++;
    return ACTOR_STOP;
}

static const struct actor_class submitter_class = {
    .name = "submitter", .handle = submitter_handle, .stack_size = 256 * 1024};

static enum actor_step root_handle(void *state, struct message *m)
{
    (void)state;
    (void)m;
    struct start_result writer;
    enum error e = actor_start(
        &(struct spawn_options){
            .class = &writer_class, .name = WRITER_NAME, .link = true, .scheduler = SPAWN_DEDICATED(0)},
        &writer, DEADLINE_NONE);
    if (e)
        wrong++;
    uint64_t refs[SUBMITTERS];
    for (uint32_t i = 0; i < SUBMITTERS; i++) {
        actor_pid pid;
        e = actor_spawn(&(struct spawn_options){.class = &submitter_class,
                                                .scheduler = SPAWN_ON(i % runtime_schedulers())},
                        &pid);
        if (e)
            wrong++;
        refs[i] = actor_monitor(pid, 0);
        actor_cast(pid, 1, NULL, 0);
    }
    for (uint32_t i = 0; i < SUBMITTERS; i++) {
        struct message *down = actor_receive(NULL, NULL, DEADLINE_NONE);
        if (!down || down->type != MESSAGE_DOWN || !refs[i])
            wrong++;
    }
    return ACTOR_STOP;
}

static enum actor_step root_init(void *state, const void *args, size_t args_size)
{
    (void)state;
    (void)args;
    (void)args_size;
    actor_cast(actor_self(), 1, NULL, 0);
    return ACTOR_CONTINUE;
}

static const struct actor_class root_class = {.name = "root", .init = root_init, .handle = root_handle};

static void run_real(uint32_t schedulers)
{
    char text[256] = "";
    struct runtime *rt = runtime_create(&(struct runtime_options){.schedulers = schedulers, .dedicated = 1},
                                        text, sizeof(text));
    TEST_ASSERT_(rt != NULL, "%s", text);
    TEST_CHECK(runtime_spawn(rt, &(struct spawn_options){.class = &root_class}, NULL) == OK);
    TEST_CHECK(runtime_run(rt) == 0);
    runtime_destroy(rt);
}

static void test_submitters_share_commits(void)
{
    for (uint32_t schedulers = 1; schedulers <= 2; schedulers++) {
        store_make(NULL);
        run_real(schedulers);
        TEST_CHECK_(right == SUBMITTERS * EACH && wrong == 0 && over == SUBMITTERS, "%u right, %u wrong",
                    right, wrong);
        TEST_CHECK(store->commands >= 2 * SUBMITTERS * EACH - SUBMITTERS);
        store_end();
        TEST_CHECK(commits < SUBMITTERS * EACH);
    }
}

static void test_in_a_simulation(void)
{
    uint64_t hashes[2];
    for (int pass = 0; pass < 2; pass++) {
        struct sim *sim =
            sim_create(&(struct sim_options){.seed = 7, .schedulers = 2, .runtime = {.dedicated = 1}});
        store_make(sim_runtime(sim)->env);
        TEST_CHECK(runtime_spawn(sim_runtime(sim), &(struct spawn_options){.class = &root_class}, NULL) ==
                   OK);
        sim_run(sim, 10000000);
        TEST_CHECK_(right == SUBMITTERS * EACH && wrong == 0, "%u right, %u wrong", right, wrong);
        hashes[pass] = sim_trace_hash(sim);
        sim_destroy(sim);
        store_end();
    }
    TEST_CHECK(hashes[0] == hashes[1]);
}

/* ---- what isn't a command ---- */

static enum error ask_raw(actor_pid writer, uint32_t type, const void *bytes, size_t size)
{
    struct writer_reply head = {.error = UINT32_MAX};
    struct message *reply = NULL;
    enum error e = actor_call(writer, message_of(type, bytes, size), &reply, actor_deadline_ms(60000));
    if (e)
        return e;
    EXPECT(reply->type == WRITER_REPLY && reply->size >= sizeof(head));
    memcpy(&head, reply->payload, sizeof(head));
    EXPECT(head.error == OK || reply->size == sizeof(head));
    EXPECT(head.unused == 0);
    return (enum error)head.error;
}

static size_t encode_send(char *bytes, size_t room, uint64_t number, uint32_t body_size)
{
    static const char body[PARCEL_BODY_MAX];
    struct parcel_send send = {.id = stage_id(number), .body = span_of(body, body_size)};
    struct writer_command head = {.at_us = 1, .code = parcel_send_class.code};
    memcpy(bytes, &head, sizeof(head));
    size_t size = record_encode(parcel_send_class.record, &send, bytes + sizeof(head), room - sizeof(head));
    EXPECT(size > 0);
    return sizeof(head) + size;
}

static void bad_messages_body(void)
{
    actor_pid writer = stage_writer();
    struct writer_command head = {.at_us = 1, .code = 4242};
    char bytes[2000];
    size_t size = encode_send(bytes, sizeof(bytes), 1, 1000);
    EXPECT(ask_raw(writer, WRITER_COMMAND, NULL, 0) == ERR_INVALID);
    EXPECT(ask_raw(writer, WRITER_COMMAND, &head, sizeof(head) - 1) == ERR_INVALID);
    EXPECT(ask_raw(writer, WRITER_COMMAND, &head, sizeof(head)) == ERR_INVALID); /* nobody's code */
    for (size_t cut = sizeof(head); cut < size; cut += 7)
        EXPECT(ask_raw(writer, WRITER_COMMAND, bytes, cut) == ERR_INVALID);
    EXPECT(actor_cast(writer, WRITER_COMMAND, bytes, size) == OK); /* nobody could be told: it isn't done */
    EXPECT(actor_cast(writer, 77, NULL, 0) == OK);
    EXPECT(ask_raw(writer, 78, NULL, 0) == ERR_UNANSWERED);
    EXPECT(stage_find(1) == ERR_NOT_FOUND && stage_store->commits == 0);
    EXPECT(ask_raw(writer, WRITER_COMMAND, bytes, sizeof(head)) == ERR_INVALID);
    EXPECT(actor_alive(writer) && stage_send(1, 1000) == OK && stage_find(1) == OK);
    EXPECT(actor_whereis(WRITER_NAME) == writer);
}

static void test_bad_messages(void)
{
    for (uint64_t seed = 1; seed <= 5; seed++)
        TEST_CHECK(stage_run(&(struct stage){.seed = seed}, bad_messages_body) == 0);
}

/* ---- too late ---- */

/* A command whose sender has given up by now isn't begun; in its last millisecond it is. */
static enum error send_until(actor_pid writer, uint64_t id, uint32_t until_ms)
{
    struct writer_command head;
    char bytes[2000];
    size_t size = encode_send(bytes, sizeof(bytes), id, 1000);
    memcpy(&head, bytes, sizeof(head));
    head.until_ms = until_ms;
    memcpy(bytes, &head, sizeof(head));
    return ask_raw(writer, WRITER_COMMAND, bytes, size);
}

static void too_late_body(void)
{
    actor_pid writer = stage_writer();
    actor_sleep(actor_deadline_ms(10));
    uint32_t now_ms = (uint32_t)(actor_now() / NS_PER_MS);
    EXPECT(send_until(writer, 1, now_ms - 1) == ERR_TIMEOUT && stage_find(1) == ERR_NOT_FOUND);
    EXPECT(send_until(writer, 2, now_ms + INT32_MAX + UINT32_C(2)) == ERR_TIMEOUT); /* long ago */
    EXPECT(stage_find(2) == ERR_NOT_FOUND && stage_store->commits == 0);
    EXPECT(send_until(writer, 3, (uint32_t)(actor_now() / NS_PER_MS)) == OK && stage_find(3) == OK);
    EXPECT(send_until(writer, 4, 0) == OK && stage_find(4) == OK); /* who waits for ever */
}

static void test_D1_what_comes_too_late_is_not_begun(void)
{
    for (uint64_t seed = 1; seed <= 5; seed++)
        TEST_CHECK(stage_run(&(struct stage){.seed = seed}, too_late_body) == 0);
}

/* What a claim takes when whoever asked was told that it is too late, nobody would work on. */
static enum error claim_until(actor_pid writer, const struct uuid *client, uint32_t until_ms)
{
    const struct job_claim c = {.lane = LANE_OUTSIDE,
                                .client = *client,
                                .most = 1,
                                .running = 1,
                                .steady_us = store_steady_us(stage_store),
                                .lease_us = UINT64_C(30000000),
                                .worker = span_text("w")};
    const struct writer_command head = {
        .at_us = store_time_us(), .code = job_claim_class.code, .until_ms = until_ms};
    char bytes[512];
    memcpy(bytes, &head, sizeof(head));
    size_t size =
        record_encode(job_claim_class.record, &c, bytes + sizeof(head), sizeof(bytes) - sizeof(head));
    EXPECT(size > 0);
    return ask_raw(writer, WRITER_COMMAND, bytes, sizeof(head) + size);
}

static uint8_t state_of(const struct uuid *id)
{
    struct job job = {.state = JOB_STATE_COUNT};
    struct view *view = view_open(stage_store);
    EXPECT(view && job_read(&view->txn, id, &job) == OK);
    view_close(view);
    return job.state;
}

static void late_claim_body(void)
{
    actor_pid writer = stage_writer();
    const struct job_submit c = {.id = stage_id(1),
                                 .client = stage_id(2),
                                 .kind = WORK_KIND_USER,
                                 .kind_name = span_text("x.a"),
                                 .payload = span_text("{}"),
                                 .runtime_max_ms = 1000,
                                 .payload_max = 1000,
                                 .queue_max = 10};
    EXPECT(store_submit(&job_submit_class, &c, NULL, 0, NULL, actor_deadline_ms(60000)) == OK);
    actor_sleep(actor_deadline_ms(10));
    uint32_t now_ms = (uint32_t)(actor_now() / NS_PER_MS);
    EXPECT(claim_until(writer, &c.client, now_ms - 1) == ERR_TIMEOUT && state_of(&c.id) == JOB_QUEUED);
    EXPECT(claim_until(writer, &c.client, now_ms + 1000) == OK && state_of(&c.id) == JOB_RUNNING);
}

static void test_D1_a_claim_that_comes_too_late_takes_nothing_JOB_337_JOB_338(void)
{
    for (uint64_t seed = 1; seed <= 5; seed++)
        TEST_CHECK(stage_run(&(struct stage){.seed = seed}, late_claim_body) == 0);
}

/* ---- what is counted ---- */

static uint64_t commits_told(void)
{
    return telemetry_counter_sum(runtime_telemetry(runtime_self()), TELEMETRY_STORE_COMMIT);
}

static uint64_t commits_timed(void)
{
    static struct histogram timed;
    histogram_clear(&timed);
    EXPECT(telemetry_histogram_merge(runtime_telemetry(runtime_self()), TELEMETRY_STORE_COMMIT, &timed));
    return histogram_count(&timed);
}

/* A server that has nothing to do looks for work again and again: that is no commit, and nothing that was refused. */
static void idle_body(void)
{
    actor_pid writer = stage_writer();
    const struct uuid nobody = stage_id(2);
    EXPECT(stage_send(1, 10) == OK && commits_told() == 1 && commits_timed() == 1);
    for (uint32_t i = 0; i < 5; i++)
        EXPECT(claim_until(writer, &nobody, 0) == ERR_NOT_FOUND);
    EXPECT(commits_told() == 1 && commits_timed() == 1 && stage_store->commits == 1);
    EXPECT(stage_store->found_nothing == 5 && stage_store->refused == 0);
    EXPECT(stage_send(1, 10) == ERR_EXISTS && commits_told() == 1 && stage_store->refused == 1);
    EXPECT(stage_send(2, 10) == OK && commits_told() == 2 && commits_timed() == 2);
    EXPECT(stage_store->commands == 8 && stage_store->found_nothing == 5 && stage_store->refused == 1);
}

static void test_idle(void)
{
    for (uint64_t seed = 1; seed <= 5; seed++)
        TEST_CHECK(stage_run(&(struct stage){.seed = seed}, idle_body) == 0);
}

/* Nothing is sent that the writer would have to refuse, and nobody waits for a writer that isn't there. */
static void submitting_body(void)
{
    char body[8] = {0};
    struct parcel_send send = {.id = stage_id(1),
                               .scope = span_of("\xff", 1), /* no text */
                               .body = span_of(body, sizeof(body))};
    uint8_t answer[4] = {9, 9, 9, 9};
    size_t size = 0;
    EXPECT(stage_send(1, 10) == ERR_UNAVAILABLE);
    stage_writer();
    EXPECT(store_submit(&parcel_send_class, &send, NULL, 0, NULL, DEADLINE_NONE) == ERR_INVALID);
    send.scope = span_of(NULL, 0);
    send.body.size = PARCEL_BODY_MAX + 1;
    EXPECT(store_submit(&parcel_send_class, &send, NULL, 0, NULL, DEADLINE_NONE) == ERR_INVALID);
    send.body.size = sizeof(body);
    EXPECT(store_submit(&parcel_send_class, &send, answer, sizeof(answer), &size, DEADLINE_NONE) == OK);
    EXPECT(size == 17 && answer[0] == 9); /* too large for the room: not copied, and said */
    EXPECT(store_submit(&parcel_send_class, &send, NULL, 0, &size, DEADLINE_NONE) == ERR_EXISTS && size == 0);
}

static void test_submitting(void)
{
    TEST_CHECK(stage_run(&(struct stage){.seed = 1}, submitting_body) == 0);
}

/* What can't stand is refused where it is asked for. */
static void standing_body(void)
{
    static const uint8_t works[JOB_CLAIM_KINDS_MAX * 16];
    struct job_claim claim = {
        .lane = LANE_SERVER, .most = 1, .owner = 1, .lease_us = 1, .worker = span_text("w")};
    struct parcel_send send = {.id = stage_id(1)};
    actor_pid writer = 0;
    EXPECT(store_stand(&job_claim_class, &claim, 1, false, &writer) == ERR_UNAVAILABLE);
    stage_writer();
    EXPECT(store_stand(&parcel_send_class, &send, 1, false, &writer) == ERR_INVALID); /* it has no topic */
    claim.works = span_of(works, sizeof(works)); /* more than one that stands may hold */
    EXPECT(store_stand(&job_claim_class, &claim, 1, false, &writer) == ERR_INVALID);
    claim.works = span_of(NULL, 0);
    claim.worker = span_of("\xff", 1); /* no text */
    EXPECT(store_stand(&job_claim_class, &claim, 1, false, &writer) == ERR_INVALID);
    claim.worker = span_text("w");
    EXPECT(store_stand(&job_claim_class, &claim, 1, false, &writer) == OK && writer != 0);
}

static void test_standing_refused(void)
{
    TEST_CHECK(stage_run(&(struct stage){.seed = 1}, standing_body) == 0);
}

/* ---- answers in order ---- */

enum { IN_ORDER = 1300 };
STATIC_ASSERT(IN_ORDER > BATCH_MAX, "more than one batch");

/* All at once, every third one refused: the answers come in the order of the commands, across batches. */
static void ask_in_order(void *arg)
{
    uint64_t *refs = actor_alloc(IN_ORDER * sizeof(*refs)), base = (uint64_t)(uintptr_t)arg;
    for (uint32_t i = 0; i < IN_ORDER; i++) {
        static const char body[100];
        struct parcel_send send = {.id = stage_id(base + i - (i % 3 == 2)), .body = span_of(body, i % 100)};
        EXPECT(store_ask(&parcel_send_class, &send, &refs[i]) == OK);
    }
    for (uint32_t i = 0; i < IN_ORDER; i++) {
        struct message *reply = NULL;
        struct writer_reply head = {.error = UINT32_MAX};
        size_t index = IN_ORDER;
        EXPECT(actor_request_wait(refs + i, IN_ORDER - i, &index, &reply, DEADLINE_NONE) == OK);
        EXPECT(index == 0 && reply);
        if (!reply)
            return;
        memcpy(&head, reply->payload, sizeof(head));
        EXPECT(head.error == (uint32_t)(i % 3 == 2 ? ERR_EXISTS : OK));
        message_free(reply);
    }
}

static void in_order_body(void)
{
    actor_pid askers[3];
    stage_writer();
    for (uint32_t i = 0; i < 3; i++)
        askers[i] = stage_doll(SPAWN_ON(i % 2), ask_in_order, (void *)(uintptr_t)(1 + i * 10000));
    for (uint32_t i = 0; i < 3; i++)
        (void)stage_ended(askers[i]);
    EXPECT(stage_store->commits > 1 && stage_store->commands == 3 * IN_ORDER);
}

static void test_S1_answers_come_in_the_order_of_the_commands(void)
{
    for (uint64_t seed = 1; seed <= 5; seed++)
        TEST_CHECK(stage_run(&(struct stage){.seed = seed}, in_order_body) == 0);
    TEST_CHECK(stage_run(&(struct stage){.real = true}, in_order_body) == 0);
}

/* ---- pressure ---- */

#define TOUCH_FIELDS(X) X(number, U64, 0, 1)
RECORD_STRUCT(touch, TOUCH_FIELDS);
#define touch_FIELD(name, TYPE, limit, since) RECORD_FIELD(touch, name, TYPE, limit, since)
RECORD_CLASS(touch, TOUCH_FIELDS, 1);

enum { PART_FIRST = 1000 }; /* numbers from here on are parts of one topic */

static enum error apply_touch(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct touch *c = command;
    (void)at_us;
    counter_add(txn, 9100, span_of(NULL, 0), 1);
    if (c->number >= PART_FIRST)
        txn_wake_part(txn, STORE_TOPIC(TOPIC_EVENTS, 7), c->number, c->number + 1);
    else
        txn_wake(txn, STORE_TOPIC(TOPIC_EVENTS, c->number));
    answer_add(answer, &c->number, sizeof(c->number));
    return OK;
}

static const struct command_class touch_low = {.name = "touch.low",
                                               .record = &touch_record,
                                               .apply = apply_touch,
                                               .code = 9101,
                                               .priority = COMMAND_LOW},
                                  touch_normal = {.name = "touch.normal",
                                                  .record = &touch_record,
                                                  .apply = apply_touch,
                                                  .code = 9102},
                                  touch_high = {.name = "touch.high",
                                                .record = &touch_record,
                                                .apply = apply_touch,
                                                .code = 9103,
                                                .priority = COMMAND_HIGH};
static const struct command_class *const touch_commands[] = {&parcel_send_class, &touch_low, &touch_normal,
                                                             &touch_high};
static struct schema touch_schema;

static void touch_install(void)
{
    touch_schema = parcel_store_schema;
    touch_schema.commands = touch_commands;
    touch_schema.commands_count = 4;
}

static uint64_t request_touch(actor_pid writer, const struct command_class *class, uint64_t number)
{
    char bytes[64];
    struct writer_command head = {.at_us = 1, .code = class->code};
    struct touch touch = {.number = number};
    memcpy(bytes, &head, sizeof(head));
    size_t size = record_encode(class->record, &touch, bytes + sizeof(head), sizeof(bytes) - sizeof(head));
    uint64_t ref = 0;
    enum error e = actor_request(writer, message_of(WRITER_COMMAND, bytes, sizeof(head) + size), &ref);
    return e ? 0 : ref;
}

static enum error answer_of(uint64_t ref)
{
    struct message *reply = NULL;
    struct writer_reply head;
    size_t index;
    enum error e = actor_request_wait(&ref, 1, &index, &reply, DEADLINE_NONE);
    if (e == OK)
        memcpy(&head, reply->payload, sizeof(head));
    enum error said = e ? e : (enum error)head.error;
    if (reply)
        message_free(reply);
    return said;
}

static _Atomic actor_pid the_writer;
static const struct {
    uint32_t depth; /* of the mailbox when the batch begins */
    enum error low, normal, high;
} levels[] = {
    {10, OK, OK, OK},
    {STORE_QUEUE_MAX * 75 / 100, OK, OK, OK},
    {STORE_QUEUE_MAX * 87 / 100, ERR_SHED, OK, OK},
    {STORE_QUEUE_MAX * 97 / 100, ERR_SHED, ERR_SHED, OK},
};

/* The mailbox is filled while the writer is suspended, by one call of each priority and junk behind them; the junk
 * stays until those have been taken. */
static void level_body(uint32_t depth, const enum error *expected)
{
    static const struct command_class *const classes[] = {&touch_low, &touch_normal, &touch_high};
    uint64_t refs[3];
    actor_pid writer = the_writer;
    actor_suspend(writer);
    for (int i = 0; i < 3; i++)
        refs[i] = request_touch(writer, classes[i], 1);
    for (uint32_t i = 3; i < depth; i++)
        EXPECT(actor_cast(writer, 79, NULL, 0) == OK);
    stage_settle();
    actor_resume(writer);
    for (int i = 0; i < 3; i++)
        EXPECT(answer_of(refs[i]) == expected[i]);
    stage_settle();
    struct actor_info info;
    EXPECT(actor_inspect(writer, &info, DEADLINE_NONE) == OK && info.mailbox_depth == 0);
}

static void pressure_body(void)
{
    the_writer = stage_writer();
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
        level_body(levels[i].depth, (enum error[]){levels[i].low, levels[i].normal, levels[i].high});
    actor_suspend(the_writer);
    for (uint32_t i = 0; i < STORE_QUEUE_MAX; i++)
        EXPECT(actor_cast(the_writer, 79, NULL, 0) == OK);
    stage_settle();
    EXPECT(stage_send(1, 10) == ERR_FULL); /* nothing was written, and the answer is there at once */
    actor_resume(the_writer);
    stage_settle();
    EXPECT(stage_find(1) == ERR_NOT_FOUND && stage_send(1, 10) == OK);
}

static void test_pressure(void)
{
    touch_install();
    TEST_CHECK(
        stage_run(&(struct stage){.seed = 1, .schema = &touch_schema, .unsound = true}, pressure_body) == 0);
}

/* ---- several senders ---- */

static _Atomic uint32_t sent;

static void shared_doll(void *arg)
{
    for (uint64_t i = 0; i < 10; i++)
        sent += stage_send((uint64_t)(uintptr_t)arg + i, 10) == OK;
}

/* ---- wakes ---- */

static actor_pid root;

static void watch(void *arg)
{
    char group[STORE_GROUP_SIZE];
    struct message *m;
    uint32_t topic;
    store_group(STORE_TOPIC(TOPIC_EVENTS, (uintptr_t)arg), group);
    EXPECT(actor_join(group) == OK);
    stage_note(root, 1);
    m = actor_receive(NULL, NULL, DEADLINE_NONE);
    memcpy(&topic, m->payload, sizeof(topic));
    EXPECT(m->type == STORE_WAKE && m->size == sizeof(topic));
    EXPECT(topic == STORE_TOPIC(TOPIC_EVENTS, (uintptr_t)arg));
    /* What woke it can be seen. */
    struct view *view = view_open(stage_store);
    int64_t value = 0;
    EXPECT(view && counter_read(&view->txn, 9100, span_of(NULL, 0), &value) == OK && value > 0);
    if (view)
        view_close(view);
    stage_note(root, 2);
}

enum { WATCHERS = 70 };

static void wakes_body(void)
{
    actor_pid pids[WATCHERS], other;
    actor_pid writer = stage_writer();
    root = actor_self();
    for (uint32_t i = 0; i < WATCHERS; i++)
        pids[i] = stage_doll(SPAWN_ON(i % 2), watch, (void *)5);
    other = stage_doll(SPAWN_ON(1), watch, (void *)6);
    for (uint32_t i = 0; i <= WATCHERS; i++)
        EXPECT(stage_noted() == 1);
    EXPECT(answer_of(request_touch(writer, &touch_normal, 4)) == OK); /* nobody's */
    EXPECT(stage_send(1, 10) == OK && stage_send(1, 10) == ERR_EXISTS);
    stage_settle();
    for (uint32_t i = 0; i < WATCHERS; i++)
        EXPECT(actor_alive(pids[i]));
    EXPECT(answer_of(request_touch(writer, &touch_normal, 5)) == OK);
    for (uint32_t i = 0; i < WATCHERS; i++) {
        EXPECT(stage_noted() == 2);
        (void)stage_ended(pids[i]);
    }
    EXPECT(actor_alive(other));
    actor_kill(other);
    (void)stage_ended(other);
}

/* Of those who watch a part so many are woken as there are things for them, and those who have watched for longest; however many watch. */
static void watch_part(void *arg)
{
    char group[STORE_GROUP_SIZE];
    store_part_group(STORE_TOPIC(TOPIC_EVENTS, 7), PART_FIRST, group);
    EXPECT(actor_join(group) == OK);
    stage_note(root, 1);
    struct message *m = actor_receive(NULL, NULL, DEADLINE_NONE);
    EXPECT(m->type == STORE_WAKE && m->size == sizeof(struct store_part));
    stage_note(root, (uintptr_t)arg);
}

static void wakes_of_a_part_body(void)
{
    actor_pid pids[WATCHERS];
    actor_pid writer = stage_writer();
    uint32_t alive = 0;
    root = actor_self();
    for (uintptr_t i = 0; i < WATCHERS; i++) {
        pids[i] = stage_doll(SPAWN_ON(i % 2), watch_part, (void *)(100 + i));
        EXPECT(stage_noted() == 1);
    }
    for (uint64_t n = 0; n < 3; n++) {
        EXPECT(answer_of(request_touch(writer, &touch_normal, PART_FIRST)) == OK);
        EXPECT(stage_noted() == 100 + n);
    }
    stage_settle();
    for (uint32_t i = 0; i < WATCHERS; i++)
        alive += actor_alive(pids[i]);
    EXPECT(alive == WATCHERS - 3);
    for (uint32_t i = 3; i < WATCHERS; i++)
        stage_kill(pids[i]);
}

static void test_wakes_of_a_part(void)
{
    touch_install();
    for (uint64_t seed = 1; seed <= 5; seed++)
        TEST_CHECK(stage_run(&(struct stage){.seed = seed, .schema = &touch_schema, .unsound = true},
                             wakes_of_a_part_body) == 0);
}

/* ---- what there is no more of: the calls come by here (Makefile) ---- */

static _Atomic uint32_t lost_type; /* no message of this type can be made, once */
static _Atomic size_t lost_size;   /* nor a block of this size */

struct message *__real_message_new(uint32_t type, size_t size);
struct message *__wrap_message_new(uint32_t type, size_t size);
struct message *__wrap_message_new(uint32_t type, size_t size)
{
    if (lost_type != type)
        return __real_message_new(type, size);
    lost_type = 0;
    return NULL;
}

void *__real_actor_try_alloc(size_t size);
void *__wrap_actor_try_alloc(size_t size);
void *__wrap_actor_try_alloc(size_t size)
{
    if (lost_size != size)
        return __real_actor_try_alloc(size);
    lost_size = 0;
    return NULL;
}

/* While it waits for more comes a command for which too little is allocated: it waits no longer. */
static enum { NOT_YET, COMES, HAS_COME, COMMITS } large_one;

bool __real_actor_listen(uint64_t deadline);
bool __wrap_actor_listen(uint64_t deadline);
bool __wrap_actor_listen(uint64_t deadline)
{
    static const char large[60000];
    if (large_one == HAS_COME) {
        EXPECT(deadline == 0); /* behind the commit */
        large_one = COMMITS;
    }
    if (large_one != COMES || deadline == 0)
        return __real_actor_listen(deadline);
    large_one = HAS_COME;
    EXPECT(actor_cast(actor_self(), WRITER_COMMAND, large, sizeof(large)) == OK);
    return true;
}

static void too_large_body(void)
{
    enum { CALLERS = 4 };
    actor_pid writer = stage_writer(), dolls[CALLERS];
    large_one = COMES;
    sent = 0;
    actor_suspend(writer);
    for (uint32_t i = 0; i < CALLERS; i++)
        dolls[i] = stage_doll(SPAWN_ON(i % 2), shared_doll, (void *)(uintptr_t)(100 * (i + 1)));
    stage_settle();
    actor_resume(writer);
    for (uint32_t i = 0; i < CALLERS; i++)
        (void)stage_ended(dolls[i]);
    EXPECT(sent == CALLERS * 10 && large_one == COMMITS);
}

static void test_too_large(void)
{
    for (uint64_t seed = 1; seed <= 5; seed++)
        TEST_CHECK(
            stage_run(&(struct stage){.seed = seed, .step = 64 << 10, .reserve = 4096}, too_large_body) == 0);
}

/* An answer that can't be made: nobody knows, and it is done. */
static void no_answer_body(void)
{
    stage_writer();
    lost_type = WRITER_REPLY;
    EXPECT(stage_send(1, 10) == ERR_UNANSWERED && lost_type == 0);
    EXPECT(stage_find(1) == OK);
    EXPECT(stage_send(1, 10) == ERR_EXISTS && stage_send(2, 10) == OK);
}

static void test_no_answer(void)
{
    for (uint64_t seed = 1; seed <= 5; seed++)
        TEST_CHECK(stage_run(&(struct stage){.seed = seed}, no_answer_body) == 0);
}

/* Without memory for the list of all, those who have watched for longest are woken, as many as there is room for on the stack. */
static void wakes_without_memory_body(void)
{
    enum { FEW = 64 };
    actor_pid pids[WATCHERS];
    actor_pid writer = stage_writer();
    uint32_t alive = 0;
    root = actor_self();
    for (uint32_t i = 0; i < WATCHERS; i++) {
        pids[i] = stage_doll(SPAWN_ON(i % 2), watch, (void *)5);
        EXPECT(stage_noted() == 1);
    }
    lost_size = STORE_WATCHERS_MAX * sizeof(actor_pid);
    EXPECT(answer_of(request_touch(writer, &touch_normal, 5)) == OK);
    for (uint32_t i = 0; i < FEW; i++)
        EXPECT(stage_noted() == 2);
    stage_settle();
    for (uint32_t i = 0; i < WATCHERS; i++)
        alive += actor_alive(pids[i]);
    EXPECT(lost_size == 0 && alive == WATCHERS - FEW);
    EXPECT(answer_of(request_touch(writer, &touch_normal, 5)) == OK); /* the others by the next one */
    for (uint32_t i = 0; i < WATCHERS - FEW; i++)
        EXPECT(stage_noted() == 2);
    for (uint32_t i = 0; i < WATCHERS; i++)
        (void)stage_ended(pids[i]);
}

static void test_wakes_without_memory(void)
{
    touch_install();
    TEST_CHECK(stage_run(&(struct stage){.seed = 1, .schema = &touch_schema, .unsound = true},
                         wakes_without_memory_body) == 0);
}

static void test_wakes(void)
{
    touch_install();
    for (uint64_t seed = 1; seed <= 5; seed++)
        TEST_CHECK(stage_run(&(struct stage){.seed = seed, .schema = &touch_schema, .unsound = true},
                             wakes_body) == 0);
}

/* What a writer had still to say when it was killed is said by the next one. */
static void wakes_left_body(void)
{
    root = actor_self();
    actor_pid watcher = stage_doll(SPAWN_ON(0), watch, (void *)5);
    struct touch touch = {.number = 5};
    EXPECT(stage_noted() == 1);
    EXPECT(batch_one(stage_store, &touch_normal, 1, &touch, NULL) == OK); /* committed, and nobody woken */
    stage_settle();
    EXPECT(actor_alive(watcher));
    stage_writer();
    EXPECT(stage_noted() == 2);
    (void)stage_ended(watcher);
}

static void test_wakes_left(void)
{
    touch_install();
    TEST_CHECK(stage_run(&(struct stage){.seed = 1, .schema = &touch_schema, .unsound = true},
                         wakes_left_body) == 0);
}

/* ---- killed under load ---- */

enum { LOADERS = 6, LOAD_EACH = 60, KILLS = 12 };
static _Atomic uint32_t said_ok, unknown, not_done, lost;

static void load_doll(void *arg)
{
    uint64_t base = (uintptr_t)arg * 1000;
    for (uint64_t i = 0; i < LOAD_EACH; i++) {
        enum error e = stage_send(base + i, 200);
        switch (e) {
        case OK:
            said_ok++;
            lost += stage_find(base + i) != OK;
            break;
        case ERR_DOWN:
            unknown++;
            break;
        case ERR_UNAVAILABLE:
        case ERR_NOPROC:
            not_done++;
            EXPECT(stage_find(base + i) == ERR_NOT_FOUND);
            actor_sleep(actor_deadline_ms(1));
            break;
        default:
            EXPECT(e == OK);
        }
    }
}

static void killed_body(void)
{
    actor_pid loaders[LOADERS];
    said_ok = unknown = not_done = lost = 0;
    actor_pid writer = stage_writer();
    for (uint32_t i = 0; i < LOADERS; i++)
        loaders[i] = stage_doll(SPAWN_ON(i % 2), load_doll, (void *)(uintptr_t)(i + 1));
    for (uint32_t i = 0; i < KILLS; i++) {
        uint64_t commands = stage_store->commands;
        for (int tries = 0; tries < 100 && stage_store->commands < commands + 10; tries++)
            actor_sleep(actor_now() + 100000);
        stage_kill(writer);
        writer = stage_writer();
    }
    for (uint32_t i = 0; i < LOADERS; i++)
        (void)stage_ended(loaders[i]);
    EXPECT(lost == 0 && said_ok > 0 && said_ok + unknown + not_done == LOADERS * LOAD_EACH);
    EXPECT(stage_send(1, 10) == OK);
}

static void test_killed_under_load(void)
{
    for (uint64_t seed = 1; seed <= 20; seed++)
        TEST_CHECK(stage_run(&(struct stage){.seed = seed}, killed_body) == 0);
    for (int i = 0; i < 3; i++)
        TEST_CHECK(stage_run(&(struct stage){.real = true}, killed_body) == 0);
}

/* ---- a store that has failed ---- */

static _Atomic enum error failed_answer;

static void submit_doll(void *arg)
{
    (void)arg;
    failed_answer = stage_send(2, 10);
}

static void failed_body(void)
{
    stage_writer();
    EXPECT(stage_send(1, 10) == OK);
    snprintf(stage_store->failure, sizeof(stage_store->failure), "the test says so");
    atomic_store(&stage_store->state, STORE_FAILED);
    failed_answer = ERR_UNANSWERED;
    (void)stage_ended(stage_doll(SPAWN_ON(1), submit_doll, NULL));
    actor_sleep(DEADLINE_NONE); /* it ends under us */
}

static void test_failed(void)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        TEST_CHECK(stage_run(&(struct stage){.seed = seed}, failed_body) == 74);
        TEST_CHECK(failed_answer != OK); /* it heard that nothing was done, or nothing at all */
        TEST_CHECK(stage_logged("\"exit_status\":74") == 1 && stage_logged("the test says so") == 1);
    }
    TEST_CHECK(stage_run(&(struct stage){.real = true}, failed_body) == 74 && failed_answer != OK);
}

/* L5: a commit that fails under a writer: what it writes to can't be written any more. */
static _Atomic uint32_t heard;

static void unheard_doll(void *arg)
{
    enum error e = stage_send((uint64_t)(uintptr_t)arg, 10);
    heard += e != ERR_NOPROC && e != ERR_DOWN &&
             e != ERR_UNAVAILABLE; /* who comes later may hear that there is no writer */
}

static void failing_commit_body(void)
{
    int data_fd = stage_store->environment.data_fd;
    char path[300];
    stage_writer();
    EXPECT(stage_send(1, 10) == OK);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", data_fd);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    EXPECT(fd >= 0 && dup2(fd, data_fd) == data_fd && close(fd) == 0);
    heard = 0;
    for (uint32_t i = 0; i < 5; i++)
        stage_doll(SPAWN_ON(i % 2), unheard_doll, (void *)(uintptr_t)(i + 2));
    actor_sleep(DEADLINE_NONE); /* it ends under us */
}

static void after_failed_commit_body(void)
{
    EXPECT(stage_find(1) == OK);
    for (uint64_t i = 2; i < 7; i++)
        EXPECT(stage_find(i) == ERR_NOT_FOUND);
    stage_writer();
    EXPECT(stage_send(2, 10) == OK);
}

static void fail_a_commit(struct stage stage)
{
    char path[] = "/dev/shm/coppice-writer-XXXXXX", command[64];
    TEST_ASSERT(mkdtemp(path) != NULL);
    stage.dir = path;
    TEST_CHECK(stage_run(&stage, failing_commit_body) == 74);
    TEST_CHECK_(heard == 0, "%u of 5 were answered", heard);
    TEST_CHECK(stage_logged("\"exit_status\":74") == 1 && stage_logged("a commit failed: ") == 1);
    TEST_CHECK(stage_logged("may or may not be on the disk") == 1);
    TEST_CHECK(stage_run(&stage, after_failed_commit_body) == 0);
    snprintf(command, sizeof(command), "rm -rf %s", path);
    TEST_CHECK(system(command) == 0);
}

static void test_S3_L5_a_commit_that_fails_ends_the_process_and_nobody_is_answered(void)
{
    for (uint64_t seed = 1; seed <= 5; seed++)
        fail_a_commit((struct stage){.seed = seed});
    fail_a_commit((struct stage){.real = true});
}

/* A writer doesn't start over a store that has failed. */
static void failed_before_body(void)
{
    struct start_result result;
    atomic_store(&stage_store->state, STORE_FAILED);
    EXPECT(actor_start(&(struct spawn_options){.class = &writer_class, .name = WRITER_NAME}, &result,
                       DEADLINE_NONE) == ERR_INIT);
    EXPECT(result.why.kind == REASON_ERROR && result.why.code == ERR_UNAVAILABLE);
}

/* Nor where there is none. */
static void no_store_body(void)
{
    struct start_result result;
    store_install(NULL);
    EXPECT(actor_start(&(struct spawn_options){.class = &writer_class, .name = WRITER_NAME}, &result,
                       DEADLINE_NONE) == ERR_INIT);
    EXPECT(result.why.kind == REASON_ERROR && result.why.code == ERR_UNAVAILABLE);
    store_install(stage_store);
    stage_writer();
    EXPECT(stage_send(1, 10) == OK);
}

static void test_failed_before(void)
{
    TEST_CHECK(stage_run(&(struct stage){.seed = 1}, failed_before_body) == 0);
    TEST_CHECK(stage_run(&(struct stage){.seed = 1}, no_store_body) == 0);
}

/* A writer on a scheduler that it shares doesn't wait for more commands: those who would send them couldn't run. */
static void shared_body(void)
{
    struct start_result result;
    actor_pid dolls[5];
    sent = 0;
    EXPECT(actor_start(
               &(struct spawn_options){.class = &writer_class, .name = WRITER_NAME, .scheduler = SPAWN_ON(0)},
               &result, DEADLINE_NONE) == OK);
    for (uint32_t i = 0; i < 5; i++)
        dolls[i] = stage_doll(SPAWN_ON(0), shared_doll, (void *)(uintptr_t)(100 * (i + 1)));
    for (uint32_t i = 0; i < 5; i++)
        (void)stage_ended(dolls[i]);
    EXPECT(sent == 50);
}

static void test_shared(void)
{
    for (uint64_t seed = 1; seed <= 5; seed++)
        TEST_CHECK(stage_run(&(struct stage){.seed = seed}, shared_body) == 0);
    TEST_CHECK(stage_run(&(struct stage){.real = true}, shared_body) == 0);
}

/* ---- a ledger that can't be read ---- */

/* A row of this version, as another program might have written it; damaged: with another byte in it. */
static void put_ledger_row(uint8_t version, bool damaged)
{
    static uint8_t bytes[VALUE_SIZE_MAX];
    struct record_class class = ledger_record;
    struct ledger row = {.at_us = 1, .expires_us = 2, .scope = span_text("s"), .key = span_text("k")};
    const struct environment *e = &stage_store->environment;
    struct key key = {.size = 0};
    MDB_txn *txn = NULL;
    key_add_u8(&key, 0);
    key_add_u64(&key, 1);
    class.version = version;
    size_t size = value_write(e->seeds[TABLE_LEDGER], key_span(&key), &class, &row, bytes, sizeof(bytes));
    bytes[size - 1] ^= damaged;
    MDB_val mdb_key = {key.size, key.bytes}, mdb_value = {size, bytes};
    EXPECT(size > 0 && mdb_txn_begin(e->mdb, NULL, 0, &txn) == 0);
    EXPECT(mdb_put(txn, e->tables[TABLE_LEDGER], &mdb_key, &mdb_value, 0) == 0 && mdb_txn_commit(txn) == 0);
}

static void load_and_wait(void)
{
    stage_writer();
    actor_sleep(DEADLINE_NONE); /* it ends under us */
}

static void damaged_ledger_body(void)
{
    put_ledger_row(ledger_record.version, true);
    load_and_wait();
}

static void newer_ledger_body(void)
{
    put_ledger_row(255, false);
    load_and_wait();
}

static void no_memory_body(void)
{
    struct rlimit limit = {.rlim_max = RLIM_INFINITY};
    actor_pid first = stage_writer();
    EXPECT(stage_send(1, 10) == OK);
    stage_kill(first); /* its memory is the next one's; the index's is given back */
    ledger_index_destroy(stage_store->ledger);
    stage_store->ledger = NULL;
    EXPECT(setrlimit(RLIMIT_AS, &limit) == 0);
    load_and_wait();
}

static void test_load(void)
{
    struct stage stage = {.seed = 1, .schedulers = 1, .unsound = true};
    TEST_CHECK(stage_run(&stage, damaged_ledger_body) == 65);
    TEST_CHECK(stage_logged("the ledger can't be read: damaged") == 1);
    TEST_CHECK(stage_run(&stage, newer_ledger_body) == 78);
    TEST_CHECK(stage_logged("\"exit_status\":78") == 1);
    if (SANITIZED)
        return; /* they need memory of their own */
    int status = stage_run(&stage, no_memory_body);
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    TEST_CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    TEST_CHECK_(status == 71, "status %d", status);
}

TEST_LIST
= {
    {"many submitters share commits, and each is answered", test_submitters_share_commits},
    {"in a simulation, the same under the same seed", test_in_a_simulation},
    {"what isn't a command is refused or dropped", test_bad_messages},
    {"D1 what comes too late isn't begun", test_D1_what_comes_too_late_is_not_begun},
    {"D1 a claim that comes too late takes nothing (JOB-337, JOB-338)",
     test_D1_a_claim_that_comes_too_late_takes_nothing_JOB_337_JOB_338},
    {"what committed nothing is no commit, and who found nothing wasn't refused", test_idle},
    {"submitting: refused here, unavailable, answers too large", test_submitting},
    {"standing: what can't stand is refused", test_standing_refused},
    {"S1_answers_come_in_the_order_of_the_commands", test_S1_answers_come_in_the_order_of_the_commands},
    {"pressure: low, then normal commands are refused, then all", test_pressure},
    {"wakes reach those who watch the topic, after the commit", test_wakes},
    {"wakes of a part reach as many as there are things for", test_wakes_of_a_part},
    {"an answer that can't be made", test_no_answer},
    {"a command that is too large for a batch that waits for more", test_too_large},
    {"wakes without memory reach those who have watched for longest", test_wakes_without_memory},
    {"wakes that a killed writer left are the next one's", test_wakes_left},
    {"killed under load: what was answered is there", test_killed_under_load},
    {"a store that has failed ends the process with 74", test_failed},
    {"S3_L5_a_commit_that_fails_ends_the_process_and_nobody_is_answered",
     test_S3_L5_a_commit_that_fails_ends_the_process_and_nobody_is_answered},
    {"and no writer starts over it", test_failed_before},
    {"a writer on a scheduler that it shares", test_shared},
    {"a ledger that can't be read ends it with 65, 78 or 71", test_load},
    {NULL, NULL},
};
