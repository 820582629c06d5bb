/* Pauses: what is paused isn't claimed, costs those behind it nothing, and comes back to its place. */
#include "acutest.h"

#include "store/client.h"
#include "store/counter.h"
#include "store/job_change.h"
#include "store/job_fire.h"
#include "store/job_lease.h"
#include "store/job_pause.h"
#include "store/job_submit.h"
#include "tests/store/fresh.h"

#define AT_US     UINT64_C(1700000000000000)
#define SECOND_US UINT64_C(1000000)

static const struct uuid nobody = {{0}};

static struct uuid join(struct fresh *fresh)
{
    struct client_create c = {.id = fresh_uuid(), .from = span_text("192.0.2.1")};
    TEST_ASSERT(batch_one(fresh->store, &client_create_class, AT_US, &c, NULL) == OK);
    return c.id;
}

static struct uuid submit(struct fresh *fresh, const struct uuid *client, uint8_t kind)
{
    struct job_submit c = {.id = fresh_uuid(),
                           .client = *client,
                           .type = JOB_EXECUTE,
                           .kind = kind,
                           .kind_name = span_text(kind == WORK_KIND_USER ? "x.mine" : ""),
                           .runtime_max_ms = 120000,
                           .payload_max = 262144,
                           .queue_max = 100000};
    TEST_ASSERT(batch_one(fresh->store, &job_submit_class, AT_US, &c, NULL) == OK);
    return c.id;
}

/* Of the server's kinds, or (a client) of those outside. OK and *ret_id; ERR_UNANSWERED: some were set aside. */
static enum error claim_at(struct fresh *fresh, uint64_t at_us, const struct uuid *outside,
                           struct uuid *ret_id)
{
    struct answer answer;
    struct job_claimed claimed;
    struct job_claim c = {.lane = outside ? LANE_OUTSIDE : LANE_SERVER,
                          .client = outside ? *outside : nobody,
                          .most = 1,
                          .owner = outside ? 0 : 1,
                          .steady_us = at_us,
                          .lease_us = 30 * SECOND_US,
                          .worker = span_text("worker:0")};
    enum error e = batch_one(fresh->store, &job_claim_class, at_us, &c, &answer);
    if (e)
        return e;
    if (answer.size == 0)
        return ERR_UNANSWERED;
    TEST_ASSERT(answer.size == sizeof(claimed));
    memcpy(&claimed, answer.bytes, sizeof(claimed));
    *ret_id = claimed.id;
    return OK;
}

static enum error claim(struct fresh *fresh, struct uuid *ret_id)
{
    return claim_at(fresh, AT_US, NULL, ret_id);
}

static bool claims(struct fresh *fresh, const struct uuid *id)
{
    struct uuid got = {{0}};
    return claim(fresh, &got) == OK && uuid_equal(&got, id);
}

static enum error pause_until(struct fresh *fresh, uint8_t scope, const struct uuid *name, uint64_t until_us)
{
    struct job_pause c = {.scope = scope,
                          .name = *name,
                          .until_us = until_us,
                          .label = span_text("what"),
                          .who = span_text("operator"),
                          .reason = span_text("why")};
    return batch_one(fresh->store, &job_pause_class, AT_US, &c, NULL);
}

static enum error resume(struct fresh *fresh, uint8_t scope, const struct uuid *name, int64_t *ret_aside)
{
    struct answer answer;
    struct job_resume c = {.scope = scope, .name = *name};
    enum error e = batch_one(fresh->store, &job_resume_class, AT_US, &c, &answer);
    if (!e && ret_aside)
        memcpy(ret_aside, answer.bytes, sizeof(*ret_aside));
    return e;
}

static struct job_unparked unparked(struct fresh *fresh, uint64_t wall_us, uint16_t most)
{
    struct answer answer;
    struct job_unpark c = {.wall_us = wall_us, .most = most};
    struct job_unparked unparked;
    TEST_ASSERT(batch_one(fresh->store, &job_unpark_class, wall_us, &c, &answer) == OK);
    TEST_ASSERT(answer.size == sizeof(unparked));
    memcpy(&unparked, answer.bytes, sizeof(unparked));
    return unparked;
}

static uint32_t unpark(struct fresh *fresh, uint64_t wall_us, uint16_t most)
{
    struct job_unparked got = unparked(fresh, wall_us, most);
    TEST_CHECK(got.damaged == 0);
    return got.came;
}

static enum error run_anyway(struct fresh *fresh, const struct uuid *id)
{
    struct job_run c = {.id = *id};
    return batch_one(fresh->store, &job_run_class, AT_US, &c, NULL);
}

static struct job job_of(struct fresh *fresh, const struct uuid *id)
{
    struct job job = {.state = JOB_STATE_COUNT};
    struct view *view = view_open_outside(fresh->store, 0);
    TEST_CHECK(job_read(&view->txn, id, &job) == OK);
    view_close(view);
    return job;
}

static uint64_t pauses(struct fresh *fresh)
{
    struct view *view = view_open_outside(fresh->store, 0);
    uint64_t rows = txn_rows(&view->txn, TABLE_PAUSES);
    view_close(view);
    return rows;
}

static struct uuid work_of(struct fresh *fresh, uint8_t kind)
{
    return job_work_id(fresh->store, kind, span_text(""));
}

/* Who pauses again what is paused changes its end, and not since when it is. */
static void test_pause_says_since_when(void)
{
    struct fresh fresh;
    struct answer answer;
    struct job_pause c = {.scope = PAUSE_ALL, .label = span_text("all"), .who = span_text("operator")};
    fresh_open(&fresh);
    for (uint64_t i = 0; i < 2; i++) {
        uint64_t since_us = 0;
        TEST_CHECK(batch_one(fresh.store, &job_pause_class, AT_US + i, &c, &answer) == OK);
        TEST_ASSERT(answer.size == sizeof(since_us));
        memcpy(&since_us, answer.bytes, sizeof(since_us));
        TEST_CHECK(since_us == AT_US);
    }
    TEST_CHECK(resume(&fresh, PAUSE_ALL, &nobody, NULL) == OK);
    fresh_close(&fresh);
}

static void test_pause_of_everything_touches_no_row(void)
{
    struct fresh fresh;
    struct uuid got;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), first = submit(&fresh, &client, WORK_KIND_SUCCESS_FAST);
    TEST_CHECK(pause_until(&fresh, PAUSE_ALL, &nobody, 0) == OK);
    TEST_CHECK(claim(&fresh, &got) == ERR_NOT_FOUND);
    TEST_CHECK(job_of(&fresh, &first).lane == LANE_SERVER);
    fresh_reopen(&fresh);
    TEST_CHECK(claim(&fresh, &got) == ERR_NOT_FOUND);
    TEST_CHECK(resume(&fresh, PAUSE_ALL, &nobody, NULL) == OK && pauses(&fresh) == 0);
    TEST_CHECK(claims(&fresh, &first));
    fresh_close(&fresh);
}

static bool is_woken(const struct txn *txn, uint32_t topic)
{
    return txn->wakes[topic / 64] >> topic % 64 & 1;
}

static enum error resume_everything(struct txn *txn, uint64_t at_us, void *context)
{
    const struct job_resume c = {.scope = PAUSE_ALL, .name = nobody};
    uint8_t bytes[64];
    struct answer answer = {.bytes = bytes};
    (void)context;
    TEST_CHECK(job_resume_class.apply(txn, at_us, &c, &answer) == OK);
    TEST_CHECK(is_woken(txn, JOB_TOPIC_QUEUE));
    for (uint8_t i = 0; i < JOB_TOPIC_CLIENTS; i++) {
        const struct uuid client = {.bytes = {[15] = i}};
        TEST_CHECK_(is_woken(txn, job_topic_client(&client)), "clients like %u sleep on", i);
    }
    return OK;
}

/* Whoever found nothing because of it looks again at once: the server's workers, and those outside of every client. */
static void test_the_end_of_a_pause_of_everything_wakes_everybody(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    TEST_CHECK(pause_until(&fresh, PAUSE_ALL, &nobody, 0) == OK);
    TEST_CHECK(fresh_do(&fresh, AT_US, resume_everything, NULL) == OK);
    fresh_close(&fresh);
}

static void test_pause_of_a_kind_lets_others_by_and_gives_the_place_back(void)
{
    struct fresh fresh;
    struct uuid got, slow[3];
    int64_t aside = -1;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), work = work_of(&fresh, WORK_KIND_SUCCESS_SLOW);
    for (int i = 0; i < 3; i++)
        slow[i] = submit(&fresh, &client, WORK_KIND_SUCCESS_SLOW);
    struct uuid fast = submit(&fresh, &client, WORK_KIND_SUCCESS_FAST);
    TEST_CHECK(pause_until(&fresh, PAUSE_WORK, &work, 0) == OK);
    TEST_CHECK(claims(&fresh, &fast));
    for (int i = 0; i < 3; i++)
        TEST_CHECK(job_of(&fresh, &slow[i]).lane == LANE_PAUSED_WORK);
    struct uuid later = submit(&fresh, &client, WORK_KIND_SUCCESS_FAST);
    TEST_CHECK(resume(&fresh, PAUSE_WORK, &work, &aside) == OK && aside == 0 && pauses(&fresh) == 0);
    for (int i = 0; i < 3; i++)
        TEST_CHECK(claims(&fresh, &slow[i])); /* before the one that came while they were away */
    TEST_CHECK(claims(&fresh, &later));
    TEST_CHECK(claim(&fresh, &got) == ERR_NOT_FOUND);
    TEST_CHECK(resume(&fresh, PAUSE_WORK, &work, NULL) == ERR_NOT_FOUND);
    fresh_close(&fresh);
}

static void test_pause_leaves_what_runs_alone_and_a_lost_one_waits(void)
{
    struct fresh fresh;
    struct uuid got;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), job = submit(&fresh, &client, WORK_KIND_SUCCESS_FAST);
    TEST_CHECK(claims(&fresh, &job));
    TEST_CHECK(pause_until(&fresh, PAUSE_CLIENT, &client, 0) == OK);
    TEST_CHECK(job_of(&fresh, &job).state == JOB_ASSIGNED);
    struct job_fire fire = {.shard = job_shard(DUE_JOB_LEASE, &job),
                            .wall_us = AT_US + 31 * SECOND_US,
                            .steady_us = AT_US + 31 * SECOND_US,
                            .start = 1,
                            .queue_max = 10,
                            .retry_max = 3,
                            .kept_us = SECOND_US,
                            .most = 10};
    TEST_CHECK(batch_one(fresh.store, &job_fire_class, fire.wall_us, &fire, NULL) == OK);
    TEST_CHECK(job_of(&fresh, &job).state == JOB_QUEUED);
    TEST_CHECK(claim(&fresh, &got) == ERR_UNANSWERED);
    TEST_CHECK(claim(&fresh, &got) == ERR_NOT_FOUND);
    TEST_CHECK(job_of(&fresh, &job).lane == LANE_PAUSED_CLIENT);
    fresh_close(&fresh);
}

static void test_pause_of_a_client_holds_its_kinds_outside_too(void)
{
    struct fresh fresh;
    struct uuid got;
    fresh_open(&fresh);
    struct uuid one = join(&fresh), other = join(&fresh);
    struct uuid his = submit(&fresh, &one, WORK_KIND_USER), hers = submit(&fresh, &other, WORK_KIND_USER);
    TEST_CHECK(pause_until(&fresh, PAUSE_CLIENT, &one, 0) == OK);
    TEST_CHECK(claim_at(&fresh, AT_US, &one, &got) == ERR_UNANSWERED);
    TEST_CHECK(claim_at(&fresh, AT_US, &one, &got) == ERR_NOT_FOUND);
    TEST_CHECK(claim_at(&fresh, AT_US, &other, &got) == OK && uuid_equal(&got, &hers));
    TEST_CHECK(resume(&fresh, PAUSE_CLIENT, &one, NULL) == OK);
    TEST_CHECK(claim_at(&fresh, AT_US, &one, &got) == OK && uuid_equal(&got, &his));
    fresh_close(&fresh);
}

static void test_pause_sets_a_bounded_number_aside_and_brings_as_many_back(void)
{
    enum { JOBS = 600 };
    struct fresh fresh;
    struct uuid got, first, last;
    int64_t aside = 0;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), work = work_of(&fresh, WORK_KIND_SUCCESS_SLOW);
    for (int i = 0; i < JOBS; i++) {
        last = submit(&fresh, &client, WORK_KIND_SUCCESS_SLOW);
        first = i == 0 ? last : first;
    }
    TEST_CHECK(pause_until(&fresh, PAUSE_WORK, &work, 0) == OK);
    TEST_CHECK(claim(&fresh, &got) == ERR_UNANSWERED);
    TEST_CHECK(job_of(&fresh, &first).lane == LANE_PAUSED_WORK && job_of(&fresh, &last).lane == LANE_SERVER);
    TEST_CHECK(claim(&fresh, &got) == ERR_UNANSWERED);
    TEST_CHECK(claim(&fresh, &got) == ERR_UNANSWERED);
    TEST_CHECK(claim(&fresh, &got) == ERR_NOT_FOUND && job_of(&fresh, &last).lane == LANE_PAUSED_WORK);
    TEST_CHECK(resume(&fresh, PAUSE_WORK, &work, &aside) == OK && aside == JOBS - JOB_UNPARK_MAX);
    TEST_CHECK(resume(&fresh, PAUSE_WORK, &work, NULL) == ERR_NOT_FOUND && pauses(&fresh) == 1);
    TEST_CHECK(claims(&fresh, &first)); /* while the others are on their way */
    fresh_reopen(&fresh);
    TEST_CHECK(unpark(&fresh, AT_US, 100) == 100 &&
               unpark(&fresh, AT_US, 1000) == JOBS - JOB_UNPARK_MAX - 100);
    TEST_CHECK(pauses(&fresh) == 0 && unpark(&fresh, AT_US, 1000) == 0);
    TEST_CHECK(job_of(&fresh, &last).lane == LANE_SERVER);
    fresh_close(&fresh);
}

/* ---- what is damaged ---- */

struct row {
    uint32_t table;
    struct key key;
};

/* Its last byte; the same again, and it is whole. */
static enum error flip_in(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    uint8_t bytes[4096];
    const struct row *row = context;
    MDB_dbi dbi = txn->store->environment.tables[row->table];
    MDB_val k = {row->key.size, (void *)(uintptr_t)row->key.bytes}, v;
    TEST_ASSERT(mdb_get(txn->mdb, dbi, &k, &v) == 0 && v.mv_size <= sizeof(bytes));
    memcpy(bytes, v.mv_data, v.mv_size);
    bytes[v.mv_size - 1] ^= 1;
    v.mv_data = bytes;
    TEST_ASSERT(mdb_put(txn->mdb, dbi, &k, &v, 0) == 0);
    txn->writes++;
    return OK;
}

static void flip(struct fresh *fresh, uint32_t table, struct key key)
{
    struct row row = {table, key};
    TEST_CHECK(fresh_do(fresh, AT_US, flip_in, &row) == OK);
}

#define HOUR_US JOB_SET_BY_US

static void test_damaged_jobs_that_were_set_aside_are_passed_by(void)
{
    struct fresh fresh;
    struct uuid got, jobs[6];
    int64_t aside = 0;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), work = work_of(&fresh, WORK_KIND_SUCCESS_FAST);
    for (int i = 0; i < 6; i++)
        jobs[i] = submit(&fresh, &client, WORK_KIND_SUCCESS_FAST);
    TEST_CHECK(pause_until(&fresh, PAUSE_WORK, &work, 0) == OK);
    TEST_CHECK(claim(&fresh, &got) == ERR_UNANSWERED);
    struct job third = job_of(&fresh, &jobs[3]);
    TEST_CHECK(third.lane == LANE_PAUSED_WORK);
    flip(&fresh, TABLE_JOBS, key_of_uuid(&jobs[0]));
    flip(&fresh, TABLE_JOB_QUEUE, job_queue_key(&third));
    TEST_CHECK(resume(&fresh, PAUSE_WORK, &work, &aside) == OK && aside == 2);
    for (int i = 1; i < 6; i++)
        TEST_CHECK(i == 3 || claims(&fresh, &jobs[i]));
    TEST_CHECK(claim(&fresh, &got) == ERR_NOT_FOUND && pauses(&fresh) == 1);
    struct job_unparked way = unparked(&fresh, AT_US, 100); /* not before an hour has passed */
    TEST_CHECK(way.came == 0 && way.damaged == 0);
    way = unparked(&fresh, AT_US + HOUR_US, 100);
    TEST_CHECK(way.came == 0 && way.damaged == 2);
    way = unparked(&fresh, AT_US + HOUR_US, 100);
    TEST_CHECK(way.came == 0 && way.damaged == 0);
    flip(&fresh, TABLE_JOBS, key_of_uuid(&jobs[0]));
    flip(&fresh, TABLE_JOB_QUEUE, job_queue_key(&third));
    way = unparked(&fresh, AT_US + 2 * HOUR_US, 100);
    TEST_CHECK(way.came == 2 && way.damaged == 0 && pauses(&fresh) == 0);
    TEST_CHECK(claims(&fresh, &jobs[0]) && claims(&fresh, &jobs[3]));
    fresh_close(&fresh);
}

/* Two end at once; of the first only what is damaged is left. */
static void test_damaged_jobs_of_one_pause_hold_up_no_other(void)
{
    struct fresh fresh;
    struct uuid got;
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    const uint8_t kinds[] = {WORK_KIND_SUCCESS_FAST, WORK_KIND_SUCCESS_NORMAL};
    struct uuid jobs[2], works[2];
    for (int i = 0; i < 2; i++) {
        works[i] = work_of(&fresh, kinds[i]);
        jobs[i] = submit(&fresh, &client, kinds[i]);
        TEST_CHECK(pause_until(&fresh, PAUSE_WORK, &works[i], AT_US + SECOND_US) == OK);
    }
    TEST_CHECK(claim(&fresh, &got) == ERR_UNANSWERED);
    flip(&fresh, TABLE_JOBS, key_of_uuid(&jobs[0]));
    struct job_unparked way = unparked(&fresh, AT_US + 2 * SECOND_US, 100);
    TEST_CHECK(way.came == 1 && way.damaged == 1 && claims(&fresh, &jobs[1]) && pauses(&fresh) == 1);
    flip(&fresh, TABLE_JOBS, key_of_uuid(&jobs[0]));
    way = unparked(&fresh, AT_US + 2 * SECOND_US + HOUR_US, 100);
    TEST_CHECK(way.came == 1 && way.damaged == 0 && claims(&fresh, &jobs[0]) && pauses(&fresh) == 0);
    fresh_close(&fresh);
}

static void test_damaged_jobs_in_front_are_passed_by_however_many_there_are(void)
{
    struct fresh fresh;
    enum { TORN = JOB_UNPARK_PASS_MAX + 10 };
    static struct uuid jobs[TORN + 2];
    struct uuid got;
    uint32_t count = TORN + 2;
    int64_t aside = 0;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), work = work_of(&fresh, WORK_KIND_SUCCESS_FAST);
    for (uint32_t i = 0; i < count; i++)
        jobs[i] = submit(&fresh, &client, WORK_KIND_SUCCESS_FAST);
    TEST_CHECK(pause_until(&fresh, PAUSE_WORK, &work, 0) == OK);
    while (claim(&fresh, &got) == ERR_UNANSWERED)
        ;
    for (uint32_t i = 0; i < TORN; i++)
        flip(&fresh, TABLE_JOBS, key_of_uuid(&jobs[i]));
    TEST_CHECK(resume(&fresh, PAUSE_WORK, &work, &aside) == OK && aside == count);
    struct job_unparked way = unparked(&fresh, AT_US, 1); /* the next command goes on behind those */
    TEST_CHECK(way.came == 1 && way.damaged == TORN - JOB_UNPARK_PASS_MAX && claims(&fresh, &jobs[TORN]));
    way = unparked(&fresh, AT_US, 100);
    TEST_CHECK(way.came == 1 && way.damaged == 0 && claims(&fresh, &jobs[TORN + 1]));
    way = unparked(&fresh, AT_US, 100); /* only damaged ones are left */
    TEST_CHECK(way.came == 0 && way.damaged == 0);
    for (uint32_t i = 0; i < TORN; i++) /* a store is looked at when it is closed */
        flip(&fresh, TABLE_JOBS, key_of_uuid(&jobs[i]));
    way = unparked(&fresh, AT_US + HOUR_US, TORN);
    TEST_CHECK(way.came == JOB_UNPARK_MAX && way.damaged == 0 && claims(&fresh, &jobs[0]));
    way = unparked(&fresh, AT_US + HOUR_US, TORN);
    TEST_CHECK(way.came == TORN - JOB_UNPARK_MAX && pauses(&fresh) == 0);
    fresh_close(&fresh);
}

static void test_damaged_pause_is_in_no_other_ones_way(void)
{
    struct fresh fresh;
    struct uuid got;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), work = work_of(&fresh, WORK_KIND_SUCCESS_FAST);
    struct uuid job = submit(&fresh, &client, WORK_KIND_SUCCESS_FAST);
    TEST_CHECK(pause_until(&fresh, PAUSE_CLIENT, &client, AT_US + SECOND_US) == OK);
    TEST_CHECK(claim(&fresh, &got) == ERR_UNANSWERED);
    TEST_CHECK(pause_until(&fresh, PAUSE_WORK, &work, AT_US + 2 * SECOND_US) == OK);
    struct key key = pause_key(PAUSE_CLIENT, &client);
    flip(&fresh, TABLE_PAUSES, key);
    struct job_unparked way = unparked(&fresh, AT_US + 3 * SECOND_US, 100);
    TEST_CHECK(way.came == 0 && way.damaged == 1 && pauses(&fresh) == 1);
    way = unparked(&fresh, AT_US + 3 * SECOND_US, 100);
    TEST_CHECK(way.damaged == 0);
    flip(&fresh, TABLE_PAUSES,
         key); /* its timer isn't the one that it knows of: who wants it over resumes it */
    way = unparked(&fresh, AT_US + 3 * SECOND_US + HOUR_US, 100);
    TEST_CHECK(way.came == 0 && way.damaged == 0 && pauses(&fresh) == 1);
    TEST_CHECK(resume(&fresh, PAUSE_CLIENT, &client, NULL) == OK && pauses(&fresh) == 0);
    TEST_CHECK(claims(&fresh, &job));
    fresh_close(&fresh);
}

/* What it is a pause of nobody knows for sure, but that there is one: its jobs don't run by mistake, and those of others do. */
static void test_a_pause_that_cannot_be_read_still_holds(void)
{
    struct fresh fresh;
    struct uuid got;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), work = work_of(&fresh, WORK_KIND_SUCCESS_FAST);
    struct uuid held = submit(&fresh, &client, WORK_KIND_SUCCESS_FAST);
    struct uuid other = submit(&fresh, &client, WORK_KIND_SUCCESS_NORMAL);
    TEST_CHECK(pause_until(&fresh, PAUSE_WORK, &work, 0) == OK);
    flip(&fresh, TABLE_PAUSES, pause_key(PAUSE_WORK, &work));
    TEST_CHECK(claims(&fresh, &other) && claim(&fresh, &got) == ERR_DAMAGED);
    flip(&fresh, TABLE_PAUSES, pause_key(PAUSE_WORK, &work));
    TEST_CHECK(claim(&fresh, &got) == ERR_UNANSWERED); /* set aside */
    TEST_CHECK(resume(&fresh, PAUSE_WORK, &work, NULL) == OK && claims(&fresh, &held));
    fresh_close(&fresh);
}

/* Pauses that an earlier version wrote are found by later ones. */
static void test_pauses_stand_under_their_scope_and_name(void)
{
    const struct uuid name = fresh_uuid();
    const struct key key = pause_key(PAUSE_CLIENT, &name);
    TEST_CHECK(key.size == 1 + sizeof(name) && key.bytes[0] == PAUSE_CLIENT &&
               memcmp(key.bytes + 1, name.bytes, sizeof(name)) == 0);
    TEST_CHECK(PAUSE_ALL == 0 && PAUSE_WORK == 1 && PAUSE_CLIENT == 2);
}

static void test_pause_taken_up_again_on_the_way_back(void)
{
    struct fresh fresh;
    struct uuid got, last;
    int64_t aside = 0;
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    for (int i = 0; i < 300; i++)
        last = submit(&fresh, &client, WORK_KIND_SUCCESS_FAST);
    TEST_CHECK(pause_until(&fresh, PAUSE_CLIENT, &client, 0) == OK);
    TEST_CHECK(claim(&fresh, &got) == ERR_UNANSWERED);
    TEST_CHECK(claim(&fresh, &got) == ERR_UNANSWERED);
    TEST_CHECK(resume(&fresh, PAUSE_CLIENT, &client, &aside) == OK && aside == 44);
    TEST_CHECK(pause_until(&fresh, PAUSE_CLIENT, &client, 0) == OK);
    TEST_CHECK(unpark(&fresh, AT_US, 256) == 0);
    TEST_CHECK(claim(&fresh, &got) == ERR_UNANSWERED);
    TEST_CHECK(claim(&fresh, &got) == ERR_NOT_FOUND);
    TEST_CHECK(job_of(&fresh, &last).lane == LANE_PAUSED_CLIENT);
    fresh_close(&fresh);
}

/* What comes back in more than one command doesn't wait for the time at which it began to. */
static void test_pause_gives_back_although_the_clock_is_set_back(void)
{
    struct fresh fresh;
    struct uuid got;
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    for (uint32_t i = 0; i < 3 * JOB_UNPARK_MAX; i++)
        (void)submit(&fresh, &client, WORK_KIND_SUCCESS_FAST);
    TEST_CHECK(pause_until(&fresh, PAUSE_CLIENT, &client, AT_US + 2 * SECOND_US) == OK);
    while (claim(&fresh, &got) == ERR_UNANSWERED)
        ;
    TEST_CHECK(unpark(&fresh, AT_US + 3600 * SECOND_US, JOB_UNPARK_MAX) == JOB_UNPARK_MAX);
    TEST_CHECK(unpark(&fresh, AT_US, JOB_UNPARK_MAX) == JOB_UNPARK_MAX && pauses(&fresh) == 1);
    TEST_CHECK(unpark(&fresh, AT_US, JOB_UNPARK_MAX) == JOB_UNPARK_MAX && pauses(&fresh) == 0);
    fresh_close(&fresh);
}

static void test_pause_ends_by_itself_and_never_early(void)
{
    struct fresh fresh;
    struct uuid got;
    uint64_t end = AT_US + 60 * SECOND_US;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), work = work_of(&fresh, WORK_KIND_SUCCESS_FAST);
    struct uuid job = submit(&fresh, &client, WORK_KIND_SUCCESS_FAST);
    TEST_CHECK(pause_until(&fresh, PAUSE_WORK, &work, AT_US) == ERR_INVALID);
    TEST_CHECK(pause_until(&fresh, PAUSE_WORK, &work, end - SECOND_US) == OK);
    TEST_CHECK(pause_until(&fresh, PAUSE_WORK, &work, end) == OK); /* the newest end counts */
    TEST_CHECK(pause_until(&fresh, PAUSE_ALL, &nobody, end) == OK);
    TEST_CHECK(claim(&fresh, &got) == ERR_NOT_FOUND);
    TEST_CHECK(unpark(&fresh, end - 1, 256) == 0 && pauses(&fresh) == 2);
    TEST_CHECK(unpark(&fresh, end, 256) == 0 && pauses(&fresh) == 0);
    TEST_CHECK(claims(&fresh, &job));
    fresh_close(&fresh);
}

static void test_pause_does_not_hold_the_one_that_an_operator_wants(void)
{
    struct fresh fresh;
    struct uuid got;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), work = work_of(&fresh, WORK_KIND_SUCCESS_SLOW);
    struct uuid first = submit(&fresh, &client, WORK_KIND_SUCCESS_SLOW);
    struct uuid wanted = submit(&fresh, &client, WORK_KIND_SUCCESS_SLOW);
    TEST_CHECK(pause_until(&fresh, PAUSE_WORK, &work, 0) == OK);
    TEST_CHECK(claim(&fresh, &got) == ERR_UNANSWERED);
    TEST_CHECK(pause_until(&fresh, PAUSE_ALL, &nobody, 0) == OK);
    TEST_CHECK(run_anyway(&fresh, &wanted) == OK);
    TEST_CHECK(run_anyway(&fresh, &wanted) == OK);
    TEST_CHECK(claims(&fresh, &wanted));
    TEST_CHECK(claim(&fresh, &got) == ERR_NOT_FOUND);
    TEST_CHECK(job_of(&fresh, &first).lane == LANE_PAUSED_WORK && job_of(&fresh, &wanted).pass == 0);
    TEST_CHECK(run_anyway(&fresh, &wanted) == ERR_CONFLICT && run_anyway(&fresh, &nobody) == ERR_NOT_FOUND);
    fresh_close(&fresh);
}

static void test_pause_a_job_that_is_set_aside_can_be_canceled(void)
{
    struct fresh fresh;
    struct uuid got;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), job = submit(&fresh, &client, WORK_KIND_SUCCESS_FAST);
    TEST_CHECK(pause_until(&fresh, PAUSE_CLIENT, &client, 0) == OK);
    TEST_CHECK(claim(&fresh, &got) == ERR_UNANSWERED);
    struct job_cancel c = {.id = job, .client = client, .kept_us = SECOND_US};
    TEST_CHECK(batch_one(fresh.store, &job_cancel_class, AT_US, &c, NULL) == OK);
    TEST_CHECK(job_of(&fresh, &job).state == JOB_CANCELED);
    TEST_CHECK(resume(&fresh, PAUSE_CLIENT, &client, NULL) == OK && pauses(&fresh) == 0);
    fresh_close(&fresh);
}

static void test_pause_scopes_have_names(void)
{
    TEST_CHECK(strcmp(pause_scope_name(PAUSE_ALL), "all") == 0 &&
               strcmp(pause_scope_name(PAUSE_WORK), "kind") == 0 &&
               strcmp(pause_scope_name(PAUSE_CLIENT), "client") == 0);
    TEST_CHECK(!pause_scope_name(PAUSE_SCOPE_COUNT));
}

static void test_pause_refusals(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid unknown = fresh_uuid();
    TEST_CHECK(pause_until(&fresh, PAUSE_SCOPE_COUNT, &nobody, 0) == ERR_INVALID);
    TEST_CHECK(pause_until(&fresh, PAUSE_ALL, &unknown, 0) == ERR_INVALID);
    TEST_CHECK(pause_until(&fresh, PAUSE_WORK, &nobody, 0) == ERR_INVALID);
    TEST_CHECK(pause_until(&fresh, PAUSE_CLIENT, &unknown, 0) == ERR_NOT_FOUND);
    for (uint32_t i = 0; i < PAUSES_MAX; i++) {
        struct uuid work = fresh_uuid();
        TEST_ASSERT(pause_until(&fresh, PAUSE_WORK, &work, 0) == OK);
    }
    TEST_CHECK(pause_until(&fresh, PAUSE_ALL, &nobody, 0) == ERR_LIMIT);
    TEST_CHECK(pauses(&fresh) == PAUSES_MAX);
    fresh_close(&fresh);
}

TEST_LIST
= {
    {"pause of everything touches no row", test_pause_of_everything_touches_no_row},
    {"pause says since when", test_pause_says_since_when},
    {"the end of a pause of everything wakes everybody",
     test_the_end_of_a_pause_of_everything_wakes_everybody},
    {"pause of a kind lets others by, and gives the place back",
     test_pause_of_a_kind_lets_others_by_and_gives_the_place_back},
    {"pause leaves what runs alone; a lost one waits",
     test_pause_leaves_what_runs_alone_and_a_lost_one_waits},
    {"pause of a client holds its kinds outside, too", test_pause_of_a_client_holds_its_kinds_outside_too},
    {"pause sets a bounded number aside, and brings as many back",
     test_pause_sets_a_bounded_number_aside_and_brings_as_many_back},
    {"pause: scopes have names", test_pause_scopes_have_names},
    {"damaged: jobs that were set aside are passed by", test_damaged_jobs_that_were_set_aside_are_passed_by},
    {"damaged: jobs in front are passed by, however many there are",
     test_damaged_jobs_in_front_are_passed_by_however_many_there_are},
    {"damaged: jobs of one pause hold up no other", test_damaged_jobs_of_one_pause_hold_up_no_other},
    {"damaged: a pause is in no other one's way", test_damaged_pause_is_in_no_other_ones_way},
    {"damaged: a pause that can't be read still holds", test_a_pause_that_cannot_be_read_still_holds},
    {"pauses stand under their scope and name", test_pauses_stand_under_their_scope_and_name},
    {"pause taken up again on the way back", test_pause_taken_up_again_on_the_way_back},
    {"pause gives back although the clock is set back", test_pause_gives_back_although_the_clock_is_set_back},
    {"pause ends by itself, never early", test_pause_ends_by_itself_and_never_early},
    {"pause doesn't hold the one that an operator wants",
     test_pause_does_not_hold_the_one_that_an_operator_wants},
    {"pause: a job that is set aside can be canceled", test_pause_a_job_that_is_set_aside_can_be_canceled},
    {"pause: refusals", test_pause_refusals},
    {NULL, NULL},
};
