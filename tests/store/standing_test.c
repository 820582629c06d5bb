/* Claims that stand in the writer: taken up by the very batch that has a job for them, newest first, and each but once. */
#include "acutest.h"

#include <errno.h>

#include "store/job_lease.h"
#include "store/job_queue.h"
#include "store/job_submit.h"
#include "store/standing.h"
#include "tests/support/stage.h"

#define SECOND_US UINT64_C(1000000)
#define LEASE_US  (30 * SECOND_US)

static const struct uuid client = {{0xc1, [15] = 1}};
static actor_pid writer;

static void run(void (*body)(void))
{
    for (uint64_t seed = 1; seed <= 5; seed++)
        TEST_CHECK(stage_run(&(struct stage){.seed = seed}, body) == 0);
}

/* ---- jobs ---- */

static struct job_submit job(uint64_t number)
{
    return (struct job_submit){.id = stage_id(number),
                               .client = client,
                               .type = JOB_EXECUTE,
                               .kind = WORK_KIND_SUCCESS_FAST,
                               .runtime_max_ms = 120000,
                               .payload_max = 1 << 20,
                               .queue_max = 100000};
}

static void submit(uint64_t number)
{
    struct job_submit c = job(number);
    EXPECT(store_submit(&job_submit_class, &c, NULL, 0, NULL, DEADLINE_NONE) == OK);
}

static uint64_t ask(uint64_t number)
{
    uint64_t ref = 0;
    struct job_submit c = job(number);
    EXPECT(store_ask(&job_submit_class, &c, &ref) == OK);
    return ref;
}

static void hear(uint64_t ref)
{
    EXPECT(store_hear(ref, NULL, 0, NULL, DEADLINE_NONE) == OK);
}

static struct job found(uint64_t number)
{
    struct job row = {.state = JOB_STATE_COUNT};
    struct uuid id = stage_id(number);
    struct view *view = view_open(stage_store);
    EXPECT(view != NULL && job_read(&view->txn, &id, &row) == OK);
    view_close(view);
    row.worker = row.stage = span_of("", 0);
    return row;
}

static uint64_t commits(void)
{
    return atomic_load(&stage_store->commits);
}

/* ---- claims ---- */

static enum error stand_as(const char *name, uint64_t number, bool again, uint32_t running_max)
{
    actor_pid where = 0;
    struct job_claim c = {.lane = LANE_SERVER,
                          .most = 1,
                          .running = 1,
                          .owner = stage_store->start,
                          .running_max = running_max,
                          .steady_us = store_steady_us(stage_store),
                          .lease_us = LEASE_US,
                          .worker = span_text(name)};
    enum error e = store_stand(&job_claim_class, &c, number, again, &where);
    EXPECT(e || where == writer);
    return e;
}

static void stand(uint64_t number)
{
    EXPECT(stand_as("worker:0", number, false, 0) == OK);
}

static bool is_given(const struct message *m, void *arg)
{
    (void)arg;
    return m->type == STORE_GIVEN;
}

static struct given {
    struct store_given head;
    struct job_claimed claimed;
    bool job;
} given(void)
{
    struct given g = {.head = {.error = UINT32_MAX}};
    struct message *m = actor_receive(is_given, NULL, actor_deadline_ms(1000));
    EXPECT(m != NULL);
    if (!m)
        return g;
    memcpy(&g.head, m->payload, sizeof(g.head));
    g.job = m->size == sizeof(g.head) + sizeof(g.claimed);
    if (g.job)
        memcpy(&g.claimed, m->payload + sizeof(g.head), sizeof(g.claimed));
    message_free(m);
    return g;
}

static bool gives(uint64_t stand_number, uint64_t job_number)
{
    struct given g = given();
    struct uuid id = stage_id(job_number);
    return g.head.number == stand_number && g.head.error == OK && g.job && uuid_equal(&g.claimed.id, &id);
}

static bool gives_nothing(void)
{
    stage_settle();
    return actor_receive_now(is_given, NULL) == NULL;
}

static uint32_t standing(void)
{
    stage_settle();
    return atomic_load(&stage_store->standing);
}

/* ---- the batch ---- */

static void same_commit_body(void)
{
    writer = stage_writer();
    stand(7);
    EXPECT(gives_nothing() && standing() == 1);
    uint64_t before = commits();
    submit(1);
    EXPECT(commits() == before + 1 && found(1).state == JOB_RUNNING);
    EXPECT(gives(7, 1) && gives_nothing() && standing() == 0);
    submit(2); /* it was for one job */
    EXPECT(found(2).state == JOB_QUEUED && gives_nothing());
    stand(8);
    EXPECT(gives(8, 2));
}

static void test_same_commit(void)
{
    run(same_commit_body);
}

/* Where the claim is in the batch before the job. */
static void claim_first_body(void)
{
    writer = stage_writer();
    submit(9);
    stand(1);
    EXPECT(gives(1, 9));
    uint64_t before = commits();
    actor_suspend(writer);
    stage_settle();
    stand(2);
    uint64_t ref = ask(1);
    stage_settle();
    actor_resume(writer);
    hear(ref);
    EXPECT(gives(2, 1) && commits() == before + 1);
}

static void test_claim_first(void)
{
    run(claim_first_body);
}

static void order_body(void)
{
    enum { ALL = 6 };
    writer = stage_writer();
    for (uint64_t i = 1; i <= ALL; i++) {
        stand(i);
        stage_settle();
    }
    EXPECT(standing() == ALL);
    for (uint64_t i = 1; i <= ALL; i++) {
        submit(i);
        EXPECT(gives(ALL + 1 - i, i)); /* who came last is warm */
    }
    EXPECT(standing() == 0);
}

static void test_order(void)
{
    run(order_body);
}

/* A batch that is full has no room for them, or not for all: the next one has. */
static size_t jobs_count;

static void full_body(void)
{
    enum { STANDS = 3 };
    static uint64_t refs[BATCH_MAX];
    writer = stage_writer();
    for (uint64_t i = 1; i <= STANDS; i++) {
        stand(i);
        stage_settle();
    }
    uint64_t before = commits();
    actor_suspend(writer);
    for (uint64_t i = 0; i < jobs_count; i++)
        refs[i] = ask(1 + i);
    stage_settle();
    actor_resume(writer);
    for (uint64_t i = 0; i < jobs_count; i++)
        hear(refs[i]);
    for (uint64_t i = 1; i <= STANDS; i++)
        EXPECT(gives(STANDS + 1 - i, i)); /* the oldest jobs */
    EXPECT(gives_nothing() && commits() <= before + 3);
}

static void test_full(void)
{
    for (jobs_count = BATCH_MAX - 1; jobs_count <= BATCH_MAX; jobs_count++)
        TEST_CHECK(stage_run(&(struct stage){.seed = 1}, full_body) == 0);
}

/* A job after which so few bytes are allocated that no other command may be written. */
static struct job_submit large_job(uint64_t number)
{
    enum { LEFT = STANDING_BYTES_MAX / 2, GROWTH = 3 };
    static char payload[36 << 10];
    static uint8_t bytes[64 << 10];
    struct job_submit c = job(number);
    size_t room = environment_ahead(&stage_store->environment) / GROWTH;
    c.payload = span_of(payload, 1000);
    size_t around = record_encode(job_submit_class.record, &c, bytes, sizeof(bytes)) - c.payload.size;
    EXPECT(room > around + LEFT + 1000 && room - around - LEFT <= sizeof(payload));
    c.payload.size = (uint32_t)(room - around - LEFT);
    return c;
}

static void few_bytes_body(void)
{
    writer = stage_writer();
    for (uint64_t i = 1; i <= 5; i++) {
        stand(i);
        EXPECT(gives_nothing() && standing() == 1);
        uint64_t before = commits();
        struct job_submit c = large_job(i);
        EXPECT(store_submit(&job_submit_class, &c, NULL, 0, NULL, DEADLINE_NONE) == OK);
        EXPECT(gives(i, i) && gives_nothing());
        EXPECT(commits() == before + 2); /* one for each */
    }
}

static void test_few_bytes(void)
{
    TEST_CHECK(stage_run(&(struct stage){.seed = 1, .step = 64 << 10, .reserve = 4096}, few_bytes_body) == 0);
}

/* ---- time ---- */

static void time_body(void)
{
    writer = stage_writer();
    stand(1);
    actor_sleep(actor_deadline_ms(3600 * 1000));
    submit(1);
    struct given g = given();
    struct job row = found(1);
    uint64_t now_us = store_steady_us(stage_store);
    EXPECT(g.job && g.claimed.lease_us == row.lease_us);
    EXPECT(row.lease_us <= now_us + LEASE_US && row.lease_us > now_us + LEASE_US - SECOND_US);
    EXPECT(g.claimed.claimed_us >= row.queued_us && row.started_us >= row.queued_us);
}

static void test_time(void)
{
    run(time_body);
}

/* ---- who stands ---- */

static void stand_and_end(void *arg)
{
    stand(*(const uint64_t *)arg);
    stage_settle();
}

static void dead_body(void)
{
    uint64_t number = 5;
    writer = stage_writer();
    stand(1);
    (void)stage_ended(stage_doll(SPAWN_ON(1), stand_and_end, &number));
    EXPECT(standing() == 2);
    submit(1);
    EXPECT(gives(1, 1) && standing() == 0);
    (void)stage_ended(stage_doll(SPAWN_ON(1), stand_and_end, &number));
    submit(2);
    EXPECT(found(2).state == JOB_QUEUED && standing() == 0);
    stand(2);
    EXPECT(gives(2, 2));
}

static void test_dead(void)
{
    run(dead_body);
}

/* Another version of one that stands takes its place; of one that was given already that is said, and nothing done. */
static void again_body(void)
{
    writer = stage_writer();
    stand(1);
    stage_settle();
    EXPECT(stand_as("worker:5", 1, true, 0) == OK);
    EXPECT(gives_nothing() && standing() == 1);
    submit(1);
    EXPECT(gives(1, 1));
    EXPECT(stand_as("worker:5", 1, true, 0) == OK);
    struct given twice = given();
    EXPECT(twice.head.number == 1 && twice.head.error == ERR_NOT_FOUND && !twice.job);
    EXPECT(gives_nothing() && standing() == 0);
    submit(2);
    EXPECT(found(2).state == JOB_QUEUED);
    struct view *view = view_open(stage_store);
    struct uuid id = stage_id(1);
    struct job row;
    EXPECT(job_read(&view->txn, &id, &row) == OK && span_equal(row.worker, span_text("worker:5")));
    view_close(view);
}

static void test_again(void)
{
    run(again_body);
}

/* Which of several: of the one who says it, that of this number. */
static void stand_twice(void *arg)
{
    (void)arg;
    stand(1);
    stand(2);
    EXPECT(stage_noted() == 4);
    EXPECT(gives(2, 2) && gives(1, 3));
}

static void again_of_several_body(void)
{
    writer = stage_writer();
    stand(1);
    stand(2);
    stage_settle();
    actor_pid other = stage_doll(SPAWN_ON(1), stand_twice, NULL);
    EXPECT(standing() == 4);
    EXPECT(stand_as("worker:0", 1, true, 0) == OK); /* so it came last */
    EXPECT(gives_nothing() && standing() == 4);
    for (uint64_t i = 1; i <= 4; i++)
        submit(i);
    EXPECT(gives(1, 1) && gives(2, 4) && gives_nothing() && standing() == 0);
    stage_note(other, 4);
    (void)stage_ended(other);
}

static void test_again_of_several(void)
{
    run(again_of_several_body);
}

/* Nor is that said of one that came with the same batch: who heard that it isn't there would stand twice, and have two jobs. */
static void again_at_once_body(void)
{
    writer = stage_writer();
    actor_suspend(writer);
    stand(1);
    EXPECT(stand_as("worker:0", 1, true, 0) == OK);
    stage_settle();
    actor_resume(writer);
    EXPECT(gives_nothing() && standing() == 1);
    submit(1);
    EXPECT(gives(1, 1) && gives_nothing() && standing() == 0);
    submit(2);
    actor_suspend(writer);
    stand(2); /* it is given something in the batch in which it is said again */
    EXPECT(stand_as("worker:0", 2, true, 0) == OK);
    stage_settle();
    actor_resume(writer);
    EXPECT(gives(2, 2) && gives_nothing() && standing() == 0);
}

static void test_again_at_once(void)
{
    run(again_at_once_body);
}

/* Where a limit held the job back, whoever says again that he stands gets it. */
static void limit_body(void)
{
    writer = stage_writer();
    submit(1);
    EXPECT(stand_as("worker:0", 1, false, 1) == OK && gives(1, 1));
    EXPECT(stand_as("worker:0", 2, false, 1) == OK);
    submit(2);
    EXPECT(gives_nothing() && found(2).state == JOB_QUEUED);
    EXPECT(stand_as("worker:0", 2, true, 2) == OK && gives(2, 2));
}

static void test_limit(void)
{
    run(limit_body);
}

static bool is_wake(const struct message *m, void *arg)
{
    (void)arg;
    return m->type == STORE_WAKE;
}

/* A new writer has none, and says so to whoever is in the topic's group. */
static void new_writer_body(void)
{
    char group[STORE_GROUP_SIZE];
    store_group(JOB_TOPIC_QUEUE, group);
    EXPECT(actor_join(group) == OK);
    writer = stage_writer();
    EXPECT(actor_receive(is_wake, NULL, actor_deadline_ms(1000)) != NULL);
    stand(1);
    stage_settle();
    stage_kill(writer);
    writer = stage_writer();
    EXPECT(actor_receive(is_wake, NULL, actor_deadline_ms(1000)) != NULL);
    submit(1);
    EXPECT(gives_nothing() && found(1).state == JOB_QUEUED);
    stand(2);
    EXPECT(gives(2, 1));
}

static void test_new_writer(void)
{
    run(new_writer_body);
}

/* ---- what can't be said, or begun: the calls come by here (Makefile) ---- */

static uint32_t lost_type; /* no message of this type can be made, once */
static bool no_batch;      /* no transaction that writes begins, once */

struct message *__real_message_new(uint32_t type, size_t size);
struct message *__wrap_message_new(uint32_t type, size_t size);
struct message *__wrap_message_new(uint32_t type, size_t size)
{
    if (lost_type != type)
        return __real_message_new(type, size);
    lost_type = 0;
    return NULL;
}

int __real_mdb_txn_begin(MDB_env *env, MDB_txn *parent, unsigned flags, MDB_txn **ret_txn);
int __wrap_mdb_txn_begin(MDB_env *env, MDB_txn *parent, unsigned flags, MDB_txn **ret_txn);
int __wrap_mdb_txn_begin(MDB_env *env, MDB_txn *parent, unsigned flags, MDB_txn **ret_txn)
{
    if (!no_batch || flags & MDB_RDONLY)
        return __real_mdb_txn_begin(env, parent, flags, ret_txn);
    no_batch = false;
    return ENOMEM;
}

/* Whoever isn't told asks again, and hears that his claim stands no more: it has a job, which he doesn't know. */
static void untold_body(void)
{
    writer = stage_writer();
    stand(1);
    stage_settle();
    lost_type = STORE_GIVEN;
    submit(1);
    EXPECT(gives_nothing() && lost_type == 0 && standing() == 0);
    EXPECT(found(1).state == JOB_RUNNING);
    EXPECT(stand_as("worker:0", 1, true, 0) == OK);
    EXPECT(given().head.error == ERR_NOT_FOUND);
    stand(2);
    submit(2);
    EXPECT(gives(2, 2));
}

static void test_untold(void)
{
    run(untold_body);
}

/* A batch that can't begin is each one's error: nothing stands behind it. */
static void no_batch_body(void)
{
    writer = stage_writer();
    stand(1);
    EXPECT(gives_nothing() && standing() == 1);
    no_batch = true;
    stand(2);
    struct given g = given();
    EXPECT(g.head.number == 2 && g.head.error == ERR_MEMORY && !g.job && !no_batch);
    EXPECT(gives_nothing() && standing() == 1);
    submit(1);
    EXPECT(gives(1, 1));
}

static void test_no_batch(void)
{
    run(no_batch_body);
}

/* ---- room ---- */

static void stand_many(void *arg)
{
    uint64_t first = *(const uint64_t *)arg;
    for (uint64_t i = 0; i < STANDING_MAX / 2; i++) {
        stand(first + i);
        if (i % 512 == 0)
            stage_settle();
    }
    stage_settle();
}

static void room_body(void)
{
    uint64_t first = 1, second = 1 + STANDING_MAX / 2;
    writer = stage_writer();
    stand_many(&first);
    (void)stage_ended(stage_doll(SPAWN_ON(1), stand_many, &second));
    EXPECT(standing() == STANDING_MAX);
    stand(STANDING_MAX + 1); /* those of the dead make room */
    EXPECT(gives_nothing() && standing() == STANDING_MAX / 2 + 1);
    stand_many(&second);
    struct given g = given(); /* one too many */
    EXPECT(g.head.error == ERR_FULL && g.head.number == STANDING_MAX && gives_nothing());
    EXPECT(standing() == STANDING_MAX);
}

static void test_room(void)
{
    TEST_CHECK(stage_run(&(struct stage){.seed = 1}, room_body) == 0);
}

/* ---- what isn't one ---- */

static void cast(const struct writer_stand *head, size_t size, const void *bytes, size_t more)
{
    struct message *m = message_new(WRITER_STAND, size + more);
    memcpy(m->payload, head, size);
    memcpy(m->payload + size, bytes, more);
    EXPECT(actor_send(writer, m) == OK);
}

static void bad_body(void)
{
    static const uint8_t bytes[STANDING_BYTES_MAX + 1];
    struct writer_stand head = {.at_us = 1, .number = 3, .code = job_claim_class.code};
    struct job_submit c = job(1);
    actor_pid where;
    writer = stage_writer();
    EXPECT(store_stand(&job_submit_class, &c, 1, false, &where) == ERR_INVALID);
    cast(&head, sizeof(head) - 1, bytes, 0);
    EXPECT(gives_nothing());
    cast(&head, sizeof(head), bytes, sizeof(bytes));
    EXPECT(given().head.error == ERR_INVALID);
    cast(&head, sizeof(head), bytes, 9); /* no claim */
    EXPECT(given().head.error == ERR_INVALID);
    head.code = job_submit_class.code;
    cast(&head, sizeof(head), bytes, 9);
    EXPECT(given().head.error == ERR_INVALID);
    head.code = 4242;
    cast(&head, sizeof(head), bytes, 9);
    EXPECT(given().head.error == ERR_INVALID);
    EXPECT(actor_call(writer, message_of(WRITER_STAND, &head, sizeof(head)), NULL, DEADLINE_NONE) ==
           ERR_UNANSWERED);
    EXPECT(standing() == 0 && actor_alive(writer));
    stand(4);
    submit(1);
    EXPECT(gives(4, 1));
    stage_kill(writer);
    writer = 0;
    EXPECT(stand_as("worker:0", 5, false, 0) == ERR_UNAVAILABLE);
}

static void test_bad(void)
{
    run(bad_body);
}

/* ---- without room ---- */

enum { FILLING = 1000, LOST = 100 }; /* parcels: the first of them, and how many are lost then */

static uint64_t refused(void)
{
    return atomic_load(&stage_store->refused);
}

static void fill(void)
{
    uint64_t number = FILLING;
    for (; number < FILLING + LOST; number++) {
        struct parcel_move lose = {.id = stage_id(number), .event = PARCEL_LOSE};
        EXPECT(stage_send(number, 2000) == OK);
        EXPECT(store_submit(&parcel_move_class, &lose, NULL, 0, NULL, DEADLINE_NONE) == OK);
    }
    for (uint32_t size = 2000; size; size = size > 1 ? 1 : 0) /* until there isn't room for a claim either */
        while (stage_send(number, size) == OK)
            number++;
    EXPECT(store_state(stage_store) == STORE_TIGHT);
}

static void drop(uint64_t number)
{
    struct parcel_drop c = {.id = stage_id(number)};
    EXPECT(store_submit(&parcel_drop_class, &c, NULL, 0, NULL, DEADLINE_NONE) == OK);
}

/* Whoever stands is refused nothing by a store that is tight, and doesn't come again and again. He has his job when he says that he
 * stands where something was cleaned up, and without a word when the file may be larger. */
static void tight_body(void)
{
    writer = stage_writer();
    submit(1);
    submit(2);
    fill();
    uint64_t before = refused();
    for (uint64_t number = 1; number <= 3; number++)
        stand(number);
    EXPECT(stand_as("worker:0", 3, true, 0) == OK && standing() == 3);
    EXPECT(gives_nothing() && refused() == before);
    for (uint64_t number = FILLING + 1; number < FILLING + LOST; number++)
        drop(number);
    EXPECT(stand_as("worker:0", 1, true, 0) == OK && gives(1, 1));
    EXPECT(gives_nothing() && refused() == before && store_state(stage_store) == STORE_TIGHT);
    stage_store->environment.options.map_max *= 2;
    drop(FILLING);
    EXPECT(gives(3, 2) && gives_nothing() && standing() == 1 && refused() == before);
}

static void test_a_store_without_room_refuses_nobody_who_stands(void)
{
    for (uint64_t seed = 1; seed <= 5; seed++)
        TEST_CHECK(
            stage_run(&(struct stage){.seed = seed, .map = 1 << 20, .map_max = 4 << 20, .reserve = 512 << 10},
                      tight_body) == 0);
}

TEST_LIST
= {
    {"JOB-278: a job and the claim that stood for one are one commit", test_same_commit},
    {"JOB-278: also when the claim came first in the batch", test_claim_first},
    {"JOB-278: the oldest job goes to the claim that came last, and each but once", test_order},
    {"JOB-278: those for whom a batch has no room are taken up by the next", test_full},
    {"JOB-278: and those for whom too few bytes are left", test_few_bytes},
    {"JOB-282: a lease counts from the claim, however long that has stood", test_time},
    {"J2: the claim of a worker that has died gets no job", test_dead},
    {"a claim that is said again is one claim", test_again},
    {"a claim that is said again is that one of several", test_again_of_several},
    {"a claim that is said again in the same batch is one claim", test_again_at_once},
    {"JOB-279: where a limit held it back, the next look finds it", test_limit},
    {"a new writer wakes whoever stood with the old one", test_new_writer},
    {"there is room for so many, and the dead make room", test_room},
    {"who isn't told what he was given asks again", test_untold},
    {"a batch that can't begin is the standing command's error", test_no_batch},
    {"what isn't a standing command", test_bad},
    {"a store without room refuses nobody who stands", test_a_store_without_room_refuses_nobody_who_stands},
    {NULL, NULL},
};
