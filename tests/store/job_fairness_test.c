/* Fairness: clients take turns, whatever one of them has submitted; off, nothing of it is there; and no switch of it loses a job. */
#include "acutest.h"

#include <stdlib.h>
#include <unistd.h>

#include "store/client.h"
#include "store/counter.h"
#include "store/job_fairness.h"
#include "store/job_lease.h"
#include "store/job_pause.h"
#include "tests/store/jobs.h"

#define FLOOD 10000u

/* Turns go by these, in this order. */
static struct uuid client_of(uint8_t number)
{
    struct uuid id = {{0xc1, [15] = number}};
    return id;
}

static struct uuid join(struct jobs *j, uint8_t number)
{
    struct client_create c = {.id = client_of(number), .from = span_text("192.0.2.1")};
    TEST_ASSERT(batch_one(j->fresh.store, &client_create_class, j->at_us, &c, NULL) == OK);
    return c.id;
}

static void begin(struct jobs *j)
{
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0); /* it isn't about the disk */
    jobs_open(j);
}

static enum error set(struct jobs *j, uint8_t on, uint16_t most, struct job_fairness_set *ret)
{
    struct answer answer;
    struct job_fairness c = {.on = on, .most = most};
    enum error e = batch_one(j->fresh.store, &job_fairness_class, j->at_us, &c, &answer);
    if (!e && ret)
        memcpy(ret, answer.bytes, sizeof(*ret));
    return e;
}

static bool pending(struct jobs *j, bool on)
{
    bool any = false;
    struct view *view = view_open_outside(j->fresh.store, 0);
    TEST_CHECK(fairness_pending(&view->txn, on, &any) == OK);
    view_close(view);
    return any;
}

/* As the actor does: until there is nothing to do. Ends: each step sorts some. */
static void settle(struct jobs *j, bool on)
{
    while (pending(j, on))
        TEST_ASSERT(set(j, on, FAIRNESS_SORT_MAX, NULL) == OK);
}

static struct uuid submit_as(struct jobs *j, const struct uuid *client, uint8_t kind, uint8_t priority)
{
    struct job_submit c = jobs_wish(j, kind);
    c.client = *client;
    c.priority = priority;
    TEST_ASSERT(jobs_submit(j, &c, NULL) == OK);
    return c.id;
}

static struct uuid submit(struct jobs *j, const struct uuid *client)
{
    return submit_as(j, client, WORK_KIND_SUCCESS_FAST, 0);
}

/* Of one command; ERR_UNANSWERED: it has set some aside. */
static enum error claim_once(struct jobs *j, uint32_t client_max, struct job_claimed *ret)
{
    struct job_claim c = jobs_claim_of(j, 1);
    struct job_claimed got[JOB_CLAIM_MAX];
    uint32_t count = 0;
    c.client_max = client_max;
    enum error e = jobs_claim(j, &c, got, &count);
    if (!e && count == 1)
        *ret = got[0];
    return e ? e : count == 0 ? ERR_UNANSWERED : OK;
}

static bool claims(struct jobs *j, const struct uuid *id)
{
    struct job_claimed got;
    return claim_once(j, 0, &got) == OK && uuid_equal(&got.id, id);
}

static struct uuid served(struct jobs *j)
{
    struct job_claimed got = {.attempt = 0};
    TEST_ASSERT(claim_once(j, 0, &got) == OK);
    return got.client;
}

static uint32_t ahead(struct jobs *j, const struct uuid *id, uint32_t most)
{
    struct job job = jobs_look(j, id);
    uint32_t count = 0;
    struct view *view = view_open_outside(j->fresh.store, 0);
    TEST_CHECK(job_queue_ahead(&view->txn, &job, most, &count) == OK);
    view_close(view);
    return count;
}

struct row {
    uint32_t table;
    struct key key;
};

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

static void flip(struct jobs *j, uint32_t table, struct key key)
{
    struct row row = {table, key};
    TEST_CHECK(fresh_do(&j->fresh, j->at_us, flip_in, &row) == OK);
}

static void test_off_it_is_first_in_first_out_and_writes_nothing_JOB_277_JOB_278(void)
{
    struct jobs j;
    struct uuid ids[12];
    struct job_fairness_set done;
    begin(&j);
    TEST_CHECK(!pending(&j, false) && pending(&j, true));
    for (uint8_t i = 0; i < 12; i++) {
        struct uuid client = client_of((uint8_t)(1 + i * 5 % 3));
        ids[i] = submit(&j, &client);
    }
    TEST_CHECK(jobs_rows(&j, TABLE_JOB_QUEUE) == 12 && jobs_rows(&j, TABLE_FAIRNESS) == 0);
    uint64_t sum = jobs_sum(&j);
    TEST_CHECK(set(&j, 0, 1, &done) == OK && done.sorted == 0 && jobs_sum(&j) == sum);
    for (uint32_t i = 0; i < 12; i++)
        TEST_CHECK(ahead(&j, &ids[i], 100) == 0 && claims(&j, &ids[i]));
    TEST_CHECK(jobs_rows(&j, TABLE_FAIRNESS) == 0);
    jobs_close(&j);
}

static void test_it_is_on_or_off(void)
{
    struct jobs j;
    begin(&j);
    uint64_t sum = jobs_sum(&j);
    TEST_CHECK(set(&j, 2, 1, NULL) == ERR_INVALID && set(&j, 1, 0, NULL) == ERR_INVALID &&
               set(&j, 0, 0, NULL) == ERR_INVALID && jobs_sum(&j) == sum);
    TEST_CHECK(set(&j, 1, 1, NULL) == OK && !pending(&j, true) && pending(&j, false));
    TEST_CHECK(jobs_rows(&j, TABLE_FAIRNESS) == 1);
    sum = jobs_sum(&j);
    TEST_CHECK(set(&j, 1, 1, NULL) == OK && jobs_sum(&j) == sum);
    TEST_CHECK(set(&j, 0, 1, NULL) == OK && !pending(&j, false) && jobs_rows(&j, TABLE_FAIRNESS) == 0);
    jobs_close(&j);
}

/* The one who has submitted ten thousand has the same turns as those who have submitted one. */
static void test_a_flood_delays_another_client_by_one_round(void)
{
    struct jobs j;
    struct uuid greedy = client_of(5), first, got;
    begin(&j);
    j.queue_max = 2 * FLOOD;
    settle(&j, true);
    first = submit(&j, &greedy);
    for (uint32_t i = 1; i < FLOOD; i++)
        submit(&j, &greedy);
    for (uint8_t number = 3; number <= 7; number += 2) { /* before it, and behind it */
        struct uuid modest = number == 5 ? client_of(9) : client_of(number), job = submit(&j, &modest);
        TEST_CHECK(ahead(&j, &job, 100) <= 1);
        got = served(&j);
        if (!uuid_equal(&got, &modest)) {
            TEST_CHECK(uuid_equal(&got, &greedy) && ahead(&j, &job, 100) == 0);
            got = served(&j);
        }
        TEST_CHECK(uuid_equal(&got, &modest) && jobs_look(&j, &job).state == JOB_ASSIGNED);
        got = served(&j);
        TEST_CHECK(uuid_equal(&got, &greedy));
    }
    TEST_CHECK(jobs_look(&j, &first).state == JOB_ASSIGNED);
    jobs_close(&j);
}

static void test_clients_take_turns_and_each_has_its_own_order(void)
{
    struct jobs j;
    struct uuid ids[4][3];
    begin(&j);
    settle(&j, true);
    for (uint8_t number = 1; number <= 3; number++)
        for (uint32_t i = 0; i < 3; i++) {
            struct uuid client = client_of(number);
            ids[number][i] = submit(&j, &client);
        }
    TEST_CHECK(jobs_rows(&j, TABLE_JOB_QUEUE) == 18);
    TEST_CHECK(claims(&j, &ids[1][0]) && claims(&j, &ids[2][0]));
    fresh_reopen(&j.fresh); /* whose turn it is stands in the store */
    TEST_CHECK(claims(&j, &ids[3][0]) && claims(&j, &ids[1][1]));
    struct uuid late = client_of(4), newest = submit(&j, &late);
    TEST_CHECK(claims(&j, &ids[2][1]) && claims(&j, &ids[3][1]) && claims(&j, &newest));
    for (uint8_t number = 1; number <= 3; number++)
        TEST_CHECK(claims(&j, &ids[number][2]));
    TEST_CHECK(jobs_rows(&j, TABLE_JOB_QUEUE) == 0);
    jobs_close(&j);
}

static void test_several_of_one_claim_are_in_turn_too(void)
{
    struct jobs j;
    struct job_claimed got[JOB_CLAIM_MAX];
    uint32_t count = 0;
    struct uuid one = client_of(1), two = client_of(2);
    begin(&j);
    settle(&j, true);
    for (uint32_t i = 0; i < 3; i++)
        submit(&j, &one);
    submit(&j, &two);
    struct job_claim c = jobs_claim_of(&j, 4);
    TEST_CHECK(jobs_claim(&j, &c, got, &count) == OK && count == 4);
    TEST_CHECK(uuid_equal(&got[0].client, &one) && uuid_equal(&got[1].client, &two) &&
               uuid_equal(&got[2].client, &one) && uuid_equal(&got[3].client, &one));
    jobs_close(&j);
}

/* Whoever may say how urgent its own jobs are doesn't take others' turns by it. */
static void test_priorities_count_within_a_client(void)
{
    struct jobs j;
    struct uuid one = client_of(1), two = client_of(2);
    begin(&j);
    settle(&j, true);
    struct uuid low = submit_as(&j, &one, WORK_KIND_SUCCESS_FAST, 0),
                high = submit_as(&j, &one, WORK_KIND_SUCCESS_FAST, 9),
                higher = submit_as(&j, &one, WORK_KIND_SUCCESS_FAST, 9), other = submit(&j, &two);
    TEST_CHECK(ahead(&j, &low, 100) == 3 && ahead(&j, &other, 100) == 1 && ahead(&j, &higher, 100) == 2);
    TEST_CHECK(claims(&j, &high) && claims(&j, &other) && claims(&j, &higher) && claims(&j, &low));
    jobs_close(&j);
}

static void test_an_operators_wish_comes_before_all_turns(void)
{
    struct jobs j;
    struct uuid one = client_of(1), two = client_of(2);
    begin(&j);
    settle(&j, true);
    struct uuid first = submit(&j, &one), second = submit(&j, &one), other = submit(&j, &two);
    struct job_run run = {.id = second};
    TEST_CHECK(batch_one(j.fresh.store, &job_run_class, j.at_us, &run, NULL) == OK);
    TEST_CHECK(jobs_look(&j, &second).lane == LANE_SERVER && jobs_rows(&j, TABLE_JOB_QUEUE) == 5);
    TEST_CHECK(!pending(&j, true)); /* it stays there */
    TEST_CHECK(ahead(&j, &second, 100) == 0 && ahead(&j, &first, 100) == 1 && ahead(&j, &other, 100) == 2);
    TEST_CHECK(claims(&j, &second) && claims(&j, &first) && claims(&j, &other));
    jobs_close(&j);
}

/* ---- switched ---- */

static void test_what_was_queued_before_gets_its_turn(void)
{
    struct jobs j;
    struct uuid greedy = client_of(1), modest = client_of(2);
    struct job_fairness_set done;
    uint32_t many = FAIRNESS_SORT_MAX + 100;
    begin(&j);
    struct uuid first = submit(&j, &greedy), second = submit(&j, &greedy);
    for (uint32_t i = 2; i < many; i++)
        submit(&j, &greedy);
    struct uuid last = submit(&j, &modest);
    TEST_CHECK(set(&j, 1, 1, &done) == OK && done.sorted == 1 && done.damaged == 0);
    TEST_CHECK(jobs_look(&j, &first).lane == LANE_FAIR && jobs_look(&j, &second).lane == LANE_SERVER);
    struct uuid newest = submit(&j, &modest);
    TEST_CHECK(claims(&j, &first) &&
               claims(&j, &newest)); /* those in turn come before those that aren't yet */
    TEST_CHECK(claims(&j, &second));
    TEST_CHECK(set(&j, 1, 1000, &done) == OK && done.sorted == FAIRNESS_SORT_MAX && pending(&j, true));
    fresh_reopen(&j.fresh);
    TEST_CHECK(set(&j, 1, 1000, &done) == OK && done.sorted == 100 - 2 + 1 && !pending(&j, true));
    TEST_CHECK(jobs_rows(&j, TABLE_JOB_QUEUE) == 2 * (many - 2 + 1));
    struct uuid got = served(&j);
    TEST_CHECK(uuid_equal(&got, &greedy) && claims(&j, &last));
    jobs_close(&j);
}

static void test_switched_off_all_goes_by_the_order_of_creation_again(void)
{
    struct jobs j;
    struct uuid ids[30];
    begin(&j);
    for (uint32_t i = 0; i < 30; i++) {
        struct uuid client = client_of((uint8_t)(1 + i / 4 % 3));
        if (i == 10)
            settle(&j, true);
        if (i == 20)
            TEST_CHECK(set(&j, 0, 1, NULL) == OK && !pending(&j, false) &&
                       jobs_rows(&j, TABLE_FAIRNESS) == 1);
        ids[i] = submit(&j, &client);
    }
    TEST_CHECK(jobs_look(&j, &ids[19]).lane == LANE_FAIR && jobs_look(&j, &ids[20]).lane == LANE_SERVER);
    TEST_CHECK(ahead(&j, &ids[19], 100) == 19 && ahead(&j, &ids[29], 100) == 29 &&
               ahead(&j, &ids[29], 10) == 10);
    for (uint32_t i = 0; i < 30; i++) {
        if (i == 15)
            fresh_reopen(&j.fresh);
        TEST_CHECK(claims(&j, &ids[i]));
    }
    TEST_CHECK(pending(&j, false) && set(&j, 0, 1, NULL) == OK && jobs_rows(&j, TABLE_FAIRNESS) == 0);
    jobs_close(&j);
}

static void test_switched_back_and_forth_each_job_is_claimed_once(void)
{
    struct jobs j;
    begin(&j);
    uint32_t left = 0;
    struct job_claimed got;
    for (uint32_t i = 0; i < 400; i++) {
        struct uuid client = client_of((uint8_t)(1 + fresh_below(5)));
        if (fresh_below(20) == 0)
            TEST_CHECK(set(&j, (uint8_t)fresh_below(2), (uint16_t)(1 + fresh_below(4)), NULL) == OK);
        if (fresh_below(3) > 0) {
            submit_as(&j, &client, WORK_KIND_SUCCESS_FAST, (uint8_t)fresh_below(3));
            left++;
        } else if (left > 0) {
            TEST_CHECK(claim_once(&j, 0, &got) == OK);
            left--;
        }
    }
    fresh_sound(&j.fresh);
    while (left > 0 && TEST_CHECK(claim_once(&j, 0, &got) == OK))
        left--;
    TEST_CHECK(claim_once(&j, 0, &got) == ERR_NOT_FOUND && jobs_rows(&j, TABLE_JOB_QUEUE) == 0);
    jobs_close(&j);
}

/* ---- with pauses, limits, and what comes back ---- */

static void test_a_limited_flood_costs_a_claim_one_job(void)
{
    struct jobs j;
    struct job_claimed got;
    begin(&j);
    settle(&j, true);
    struct uuid greedy = client_of(1), modest = client_of(2), first = submit(&j, &greedy);
    for (uint32_t i = 0; i < 1000; i++)
        submit(&j, &greedy);
    struct uuid other = submit(&j, &modest), others = submit(&j, &modest);
    TEST_CHECK(claim_once(&j, 1, &got) == OK && uuid_equal(&got.id, &first));
    struct job_finish end = jobs_end_of(&j, &first, got.fence, JOB_SUCCEED);
    TEST_CHECK(claim_once(&j, 1, &got) == OK && uuid_equal(&got.id, &other));
    TEST_CHECK(jobs_begin(&j, &first, end.fence) == OK);
    struct job_finish ends = jobs_end_of(&j, &other, got.fence, JOB_SUCCEED);
    TEST_CHECK(jobs_begin(&j, &other, ends.fence) == OK && jobs_finish(&j, &ends, NULL) == OK);
    TEST_CHECK(claim_once(&j, 1, &got) == OK && uuid_equal(&got.id, &others)); /* past the thousand */
    TEST_CHECK(fresh_counter(&j.fresh, COUNTER_JOBS_ASIDE,
                             span_of((uint8_t[17]){LANE_LIMITED, 0xc1, [16] = 1}, 17)) == 1);
    TEST_CHECK(jobs_finish(&j, &end, NULL) == OK); /* the one that was set aside is back, at its place */
    TEST_CHECK(claim_once(&j, 1, &got) == OK && uuid_equal(&got.client, &greedy));
    TEST_CHECK(jobs_look(&j, &got.id).seq == jobs_look(&j, &first).seq + 1);
    jobs_close(&j);
}

static enum error pause_it(struct jobs *j, uint8_t scope, const struct uuid *name)
{
    struct job_pause c = {.scope = scope,
                          .name = *name,
                          .label = span_text("what"),
                          .who = span_text("operator"),
                          .reason = span_text("why")};
    return batch_one(j->fresh.store, &job_pause_class, j->at_us, &c, NULL);
}

static enum error resume(struct jobs *j, uint8_t scope, const struct uuid *name)
{
    struct job_resume c = {.scope = scope, .name = *name};
    return batch_one(j->fresh.store, &job_resume_class, j->at_us, &c, NULL);
}

static void test_paused_jobs_come_back_to_their_places_and_to_no_more_turns(void)
{
    struct jobs j;
    struct job_claimed got;
    begin(&j);
    settle(&j, true);
    struct uuid one = join(&j, 1), two = join(&j, 2), none = {{0}};
    struct uuid slow = submit_as(&j, &one, WORK_KIND_SUCCESS_SLOW, 0), first = submit(&j, &one),
                second = submit(&j, &two), third = submit(&j, &two), fourth = submit(&j, &two);
    struct uuid kind = job_work_id(j.fresh.store, WORK_KIND_SUCCESS_SLOW, span_text(""));
    TEST_CHECK(pause_it(&j, PAUSE_WORK, &kind) == OK);
    TEST_CHECK(claims(&j, &first)); /* the same client's next one */
    TEST_CHECK(jobs_look(&j, &slow).lane == LANE_PAUSED_WORK);
    TEST_CHECK(pause_it(&j, PAUSE_CLIENT, &two) == OK);
    TEST_CHECK(claim_once(&j, 0, &got) == ERR_UNANSWERED &&
               jobs_look(&j, &second).lane == LANE_PAUSED_CLIENT);
    TEST_CHECK(resume(&j, PAUSE_WORK, &kind) == OK && jobs_look(&j, &slow).lane == LANE_FAIR);
    TEST_CHECK(resume(&j, PAUSE_CLIENT, &two) == OK);
    TEST_CHECK(claims(&j, &second) && claims(&j, &slow) && claims(&j, &third));
    TEST_CHECK(pause_it(&j, PAUSE_ALL, &none) == OK && claim_once(&j, 0, &got) == ERR_NOT_FOUND);
    TEST_CHECK(resume(&j, PAUSE_ALL, &none) == OK && claims(&j, &fourth));
    jobs_close(&j);
}

static void test_what_is_retried_requeued_or_due_takes_turns(void)
{
    struct jobs j;
    begin(&j);
    settle(&j, true);
    struct job_submit later = jobs_wish_at(&j, j.at_us + 10 * JOBS_SECOND_US);
    TEST_CHECK(jobs_submit(&j, &later, NULL) == OK);
    struct jobs_held failed = jobs_in(&j, JOB_FAILED), assigned = jobs_in(&j, JOB_ASSIGNED);
    TEST_CHECK(jobs_retry(&j, &j.client, &failed.id, NULL) == OK);
    jobs_pass(&j, 100 * JOBS_SECOND_US);
    TEST_CHECK(jobs_fire(&j, NULL, 0) == 3);
    TEST_CHECK(jobs_look(&j, &later.id).lane == LANE_FAIR && jobs_look(&j, &failed.id).lane == LANE_FAIR &&
               jobs_look(&j, &assigned.id).lane == LANE_FAIR);
    TEST_CHECK(claims(&j, &later.id) && claims(&j, &failed.id));
    TEST_CHECK(jobs_cancel(&j, &j.client, &assigned.id, NULL) == OK && jobs_rows(&j, TABLE_JOB_QUEUE) == 0);
    jobs_close(&j);
}

static void test_kinds_outside_are_their_clients_own(void)
{
    struct jobs j;
    begin(&j);
    settle(&j, true);
    struct job_submit c = jobs_wish_user(&j, "x.mine");
    TEST_CHECK(jobs_submit(&j, &c, NULL) == OK && jobs_look(&j, &c.id).lane == LANE_OUTSIDE);
    jobs_close(&j);
}

/* ---- how many are before it ---- */

/* Each job says how many are before it; then all are claimed, and it was so. */
static void check_ahead(struct jobs *j, const struct uuid *ids, uint32_t count)
{
    uint32_t said[64];
    struct job_claimed got;
    TEST_ASSERT(count <= 64);
    for (uint32_t i = 0; i < count; i++) {
        said[i] = ahead(j, &ids[i], 100);
        TEST_CHECK(ahead(j, &ids[i], 7) == (said[i] < 7 ? said[i] : 7));
    }
    for (uint32_t turn = 0; turn < count; turn++) {
        TEST_ASSERT(claim_once(j, 0, &got) == OK);
        for (uint32_t i = 0; i < count; i++)
            if (uuid_equal(&ids[i], &got.id))
                TEST_CHECK_(said[i] == turn, "%u are before it, not %u", turn, said[i]);
    }
}

static void test_ahead_is_how_many_are_claimed_before(void)
{
    struct jobs j;
    struct uuid ids[64];
    begin(&j);
    for (uint32_t round = 0; round < 20; round++) {
        uint32_t count = 1 + fresh_below(40), clients = 1 + fresh_below(7);
        settle(&j, round % 4 > 0);
        for (uint32_t i = 0; i < count; i++) {
            struct uuid client = client_of((uint8_t)(1 + fresh_below(clients)));
            ids[i] = submit_as(&j, &client, WORK_KIND_SUCCESS_FAST, (uint8_t)fresh_below(2));
        }
        if (round % 4 == 3)
            settle(&j, false);
        struct job_run run = {.id = ids[fresh_below(count)]};
        if (round % 2)
            TEST_CHECK(batch_one(j.fresh.store, &job_run_class, j.at_us, &run, NULL) == OK);
        check_ahead(&j, ids, count);
    }
    jobs_close(&j);
}

/* ---- damaged ---- */

static void test_without_its_row_nobody_waits_and_it_is_made_anew(void)
{
    struct jobs j;
    struct uuid one = client_of(1), two = client_of(2);
    begin(&j);
    settle(&j, true);
    struct uuid first = submit(&j, &one), second = submit(&j, &one), third = submit(&j, &two);
    flip(&j, TABLE_FAIRNESS, fairness_key());
    TEST_CHECK(claims(&j, &first) && ahead(&j, &third, 100) == 1); /* as if it were off */
    struct uuid newest = submit(&j, &two);
    TEST_CHECK(jobs_look(&j, &newest).lane == LANE_SERVER && pending(&j, true) && pending(&j, false));
    settle(&j, true);
    TEST_CHECK(jobs_look(&j, &newest).lane == LANE_FAIR);
    TEST_CHECK(claims(&j, &second) && claims(&j, &third) && claims(&j, &newest));
    flip(&j, TABLE_FAIRNESS, fairness_key());
    settle(&j, false);
    TEST_CHECK(jobs_rows(&j, TABLE_FAIRNESS) == 0);
    jobs_close(&j);
}

/* Off while jobs still stand where they had turns: the row says so from here on, whatever it said. */
static void test_a_row_that_cannot_be_read_is_switched_off_as_well(void)
{
    struct jobs j;
    struct uuid one = client_of(1);
    struct fairness f = {.on = 9};
    begin(&j);
    settle(&j, true);
    struct uuid id = submit(&j, &one);
    flip(&j, TABLE_FAIRNESS, fairness_key());
    TEST_CHECK(set(&j, 0, 1, NULL) == OK);
    struct view *view = view_open_outside(j.fresh.store, 0);
    TEST_ASSERT(view != NULL);
    TEST_CHECK(fairness_read(&view->txn, &f) == OK && f.on == 0);
    view_close(view);
    TEST_CHECK(claims(&j, &id));
    settle(&j, false);
    TEST_CHECK(jobs_rows(&j, TABLE_FAIRNESS) == 0);
    jobs_close(&j);
}

/* All that it has is damaged: its turn is the next one's. */
static void test_a_client_with_nothing_but_damage_is_passed_by(void)
{
    struct jobs j;
    struct uuid one = client_of(1), two = client_of(2);
    begin(&j);
    settle(&j, true);
    struct uuid torn[] = {submit(&j, &one), submit(&j, &one)}, good = submit(&j, &two);
    for (int i = 0; i < 2; i++)
        flip(&j, TABLE_JOBS, key_of_uuid(&torn[i]));
    TEST_CHECK(claims(&j, &good) && jobs_claim_one(&j, NULL) == ERR_DAMAGED);
    for (int i = 0; i < 2; i++)
        flip(&j, TABLE_JOBS, key_of_uuid(&torn[i]));
    TEST_CHECK(claims(&j, &torn[0]) && claims(&j, &torn[1]));
    settle(&j, false);
    jobs_close(&j);
}

static void test_damaged_jobs_are_in_nobodys_way(void)
{
    struct jobs j;
    struct job_fairness_set done;
    struct uuid one = client_of(1), two = client_of(2), ids[6];
    begin(&j);
    for (uint32_t i = 0; i < 4; i++)
        ids[i] = submit(&j, &one);
    struct key torn = {.size = 0};
    key_add_uuid(&torn, &ids[1]);
    struct job whole = jobs_look(&j, &ids[2]);
    struct key in_queue = job_queue_key(&whole);
    flip(&j, TABLE_JOBS, torn);
    flip(&j, TABLE_JOB_QUEUE, in_queue);
    TEST_CHECK(set(&j, 1, 100, &done) == OK && done.sorted == 2 && done.damaged == 2 && !pending(&j, true));
    ids[4] = submit(&j, &two);
    TEST_CHECK(claims(&j, &ids[0]));
    struct job fair = jobs_look(&j, &ids[3]);
    flip(&j, TABLE_JOB_QUEUE, job_queue_key(&fair));
    TEST_CHECK(claims(&j, &ids[4]));
    struct job_claimed got;
    TEST_CHECK(claim_once(&j, 0, &got) == ERR_DAMAGED);           /* the first of them is told of */
    TEST_CHECK(set(&j, 0, 1, NULL) == OK && claims(&j, &ids[3])); /* by its other row */
    flip(&j, TABLE_JOBS, torn);
    flip(&j, TABLE_JOB_QUEUE, in_queue);
    TEST_CHECK(claims(&j, &ids[1]) && claims(&j, &ids[2]));
    jobs_close(&j);
}

static enum error lose_second(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    struct key key = job_queue_order_key(context);
    txn_remove(txn, TABLE_JOB_QUEUE, key_span(&key));
    return OK;
}

static enum error lose_first(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    struct key key = job_queue_key(context);
    txn_remove(txn, TABLE_JOB_QUEUE, key_span(&key));
    return OK;
}

/* As if it had been moved to where all stand, and its second row left. */
static enum error move_first(struct txn *txn, uint64_t at_us, void *context)
{
    struct job job = *(struct job *)context;
    lose_first(txn, at_us, &job);
    job.lane = LANE_SERVER;
    struct key key = job_queue_key(&job);
    txn_add(txn, TABLE_JOB_QUEUE, key_span(&key),
            &(struct job_queue){.id = job.id, .client = job.client, .work = job.work});
    job_write(txn, &job);
    return OK;
}

static enum error say_three(struct txn *txn, uint64_t at_us, void *context)
{
    struct fairness f = {.on = 3};
    struct key key = fairness_key();
    (void)at_us;
    (void)context;
    txn_write(txn, TABLE_FAIRNESS, key_span(&key), &f);
    return OK;
}

static enum error stand_elsewhere(struct txn *txn, uint64_t at_us, void *context)
{
    struct fairness f = {.on = 1};
    struct key key = {.size = 0};
    (void)at_us;
    (void)context;
    key_add_u8(&key, LANE_OUTSIDE);
    txn_write(txn, TABLE_FAIRNESS, key_span(&key), &f);
    return OK;
}

static void test_check_knows_both_rows(void)
{
    struct jobs j;
    begin(&j);
    settle(&j, true);
    struct uuid id = jobs_new(&j);
    struct job job = jobs_look(&j, &id);
    TEST_CHECK(fresh_would_find(&j.fresh, lose_second, &job, "has no row in the order of creation"));
    TEST_CHECK(fresh_would_find(&j.fresh, lose_first, &job, "has no row in the queue"));
    TEST_CHECK(fresh_would_find(&j.fresh, say_three, NULL, "neither on nor off, but 3"));
    TEST_CHECK(fresh_would_find(&j.fresh, stand_elsewhere, NULL, "under another key"));
    TEST_CHECK(fresh_would_find(&j.fresh, move_first, &job, "stands where it shouldn't"));
    jobs_close(&j);
}

TEST_LIST
= {
    {"fairness: off it is first in, first out, and writes nothing (JOB-277, JOB-278)",
     test_off_it_is_first_in_first_out_and_writes_nothing_JOB_277_JOB_278},
    {"fairness is on or off", test_it_is_on_or_off},
    {"fairness: a flood of one client delays another's job by one round",
     test_a_flood_delays_another_client_by_one_round},
    {"fairness: clients take turns, and each has its own order",
     test_clients_take_turns_and_each_has_its_own_order},
    {"fairness: several of one claim are in turn, too", test_several_of_one_claim_are_in_turn_too},
    {"fairness: priorities count within a client", test_priorities_count_within_a_client},
    {"fairness: an operator's wish comes before all turns", test_an_operators_wish_comes_before_all_turns},
    {"fairness: what was queued before gets its turn", test_what_was_queued_before_gets_its_turn},
    {"fairness switched off, all goes by the order of creation again",
     test_switched_off_all_goes_by_the_order_of_creation_again},
    {"fairness switched back and forth, each job is claimed once",
     test_switched_back_and_forth_each_job_is_claimed_once},
    {"fairness: a limited flood costs a claim one job", test_a_limited_flood_costs_a_claim_one_job},
    {"fairness: paused jobs come back to their places, and to no more turns",
     test_paused_jobs_come_back_to_their_places_and_to_no_more_turns},
    {"fairness: what is retried, requeued or due takes turns",
     test_what_is_retried_requeued_or_due_takes_turns},
    {"fairness: kinds outside are their client's own", test_kinds_outside_are_their_clients_own},
    {"fairness: ahead is how many are claimed before", test_ahead_is_how_many_are_claimed_before},
    {"fairness without its row: nobody waits, and it is made anew",
     test_without_its_row_nobody_waits_and_it_is_made_anew},
    {"fairness: a row that can't be read is switched off as well",
     test_a_row_that_cannot_be_read_is_switched_off_as_well},
    {"fairness: a client with nothing but damage is passed by",
     test_a_client_with_nothing_but_damage_is_passed_by},
    {"fairness: damaged jobs are in nobody's way", test_damaged_jobs_are_in_nobodys_way},
    {"fairness: check knows both rows", test_check_knows_both_rows},
    {NULL, NULL},
};
