/* A client's limit: as many of its jobs run as may, what is beyond it is in nobody's way, and each comes to its turn. */
#include "acutest.h"

#include "store/client.h"
#include "store/counter.h"
#include "store/job_change.h"
#include "store/job_lease.h"
#include "store/job_limit.h"
#include "store/job_pause.h"
#include "store/job_queue.h"
#include "store/job_submit.h"
#include "tests/store/fresh.h"

#define AT_US     UINT64_C(1700000000000000)
#define SECOND_US UINT64_C(1000000)

static struct uuid join(struct fresh *fresh)
{
    struct client_create c = {.id = fresh_uuid(), .from = span_text("192.0.2.1")};
    TEST_ASSERT(batch_one(fresh->store, &client_create_class, AT_US, &c, NULL) == OK);
    return c.id;
}

static struct uuid submit_of(struct fresh *fresh, const struct uuid *client, uint8_t kind)
{
    struct job_submit c = {.id = fresh_uuid(),
                           .client = *client,
                           .type = JOB_EXECUTE,
                           .kind = kind,
                           .runtime_max_ms = 120000,
                           .payload_max = 262144,
                           .queue_max = 100000};
    TEST_ASSERT(batch_one(fresh->store, &job_submit_class, AT_US, &c, NULL) == OK);
    return c.id;
}

static struct uuid submit(struct fresh *fresh, const struct uuid *client)
{
    return submit_of(fresh, client, WORK_KIND_SUCCESS_FAST);
}

/* As a worker does: again while jobs are only set aside. */
static enum error claim(struct fresh *fresh, uint32_t client_max, struct job_claimed *ret)
{
    struct answer answer;
    struct job_claim c = {.lane = LANE_SERVER,
                          .most = 1,
                          .owner = 1,
                          .running = 1,
                          .client_max = client_max,
                          .steady_us = AT_US,
                          .lease_us = SECOND_US,
                          .worker = span_text("worker:0")};
    enum error e;
    do
        e = batch_one(fresh->store, &job_claim_class, AT_US, &c, &answer);
    while (!e && answer.size == 0);
    if (!e)
        memcpy(ret, answer.bytes, sizeof(*ret));
    return e;
}

static bool claims(struct fresh *fresh, uint32_t client_max, const struct uuid *id, struct job_claimed *ret)
{
    return claim(fresh, client_max, ret) == OK && uuid_equal(&ret->id, id);
}

static void finish(struct fresh *fresh, const struct job_claimed *claimed)
{
    struct job_finish f = {.id = claimed->id,
                           .fence = claimed->fence,
                           .event = JOB_SUCCEED,
                           .steady_us = AT_US,
                           .kept_us = SECOND_US,
                           .retry_max = 3};
    TEST_ASSERT(batch_one(fresh->store, &job_finish_class, AT_US, &f, NULL) == OK);
}

static void cancel(struct fresh *fresh, const struct uuid *id)
{
    struct job_cancel c = {.id = *id, .kept_us = SECOND_US};
    TEST_ASSERT(batch_one(fresh->store, &job_cancel_class, AT_US, &c, NULL) == OK);
}

static struct job job_of(struct fresh *fresh, const struct uuid *id)
{
    struct job job = {.lane = LANE_COUNT};
    struct view *view = view_open_outside(fresh->store, 0);
    TEST_CHECK(job_read(&view->txn, id, &job) == OK);
    view_close(view);
    return job;
}

static uint8_t lane_of(struct fresh *fresh, const struct uuid *id)
{
    return job_of(fresh, id).lane;
}

static int64_t counted(struct fresh *fresh, const struct uuid *client)
{
    return fresh_counter(fresh, COUNTER_JOBS_COUNTED, span_of(client, sizeof(*client)));
}

static bool any_limited(struct fresh *fresh)
{
    struct view *view = view_open_outside(fresh->store, 0);
    bool any = false;
    TEST_ASSERT(view != NULL);
    TEST_CHECK(limit_any(&view->txn, &any) == OK);
    view_close(view);
    return any;
}

static void test_limit_holds_one_client_and_lets_others_by(void)
{
    struct fresh fresh;
    struct job_claimed a, b, c;
    struct uuid greedy[5];
    fresh_open(&fresh);
    struct uuid one = join(&fresh), two = join(&fresh);
    for (int i = 0; i < 5; i++)
        greedy[i] = submit(&fresh, &one);
    struct uuid modest = submit(&fresh, &two);
    TEST_CHECK(claims(&fresh, 2, &greedy[0], &a) && claims(&fresh, 2, &greedy[1], &b));
    TEST_CHECK(!any_limited(&fresh) && claims(&fresh, 2, &modest, &c));
    TEST_CHECK(claim(&fresh, 2, &c) == ERR_NOT_FOUND && lane_of(&fresh, &greedy[4]) == LANE_LIMITED);
    TEST_CHECK(any_limited(&fresh)); /* so a server that starts looks after them */
    TEST_CHECK(counted(&fresh, &one) == 2 && counted(&fresh, &two) == 1);
    fresh_reopen(&fresh);
    finish(&fresh, &b);
    TEST_CHECK(lane_of(&fresh, &greedy[2]) == LANE_SERVER && lane_of(&fresh, &greedy[3]) == LANE_LIMITED);
    TEST_CHECK(claims(&fresh, 2, &greedy[2], &b) && claim(&fresh, 2, &c) == ERR_NOT_FOUND);
    finish(&fresh, &a);
    finish(&fresh, &b);
    TEST_CHECK(claims(&fresh, 2, &greedy[3], &a) && claims(&fresh, 2, &greedy[4], &b));
    finish(&fresh, &a);
    finish(&fresh, &b);
    TEST_CHECK(counted(&fresh, &one) == 0 && !any_limited(&fresh));
    fresh_close(&fresh);
}

static void test_limit_off_counts_nothing(void)
{
    struct fresh fresh;
    struct job_claimed a;
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    for (int i = 0; i < 3; i++)
        (void)submit(&fresh, &client);
    for (int i = 0; i < 3; i++)
        TEST_CHECK(claim(&fresh, 0, &a) == OK);
    TEST_CHECK(counted(&fresh, &client) == 0);
    fresh_close(&fresh);
}

static void test_limit_switched_off_leaves_nobody_behind(void)
{
    struct fresh fresh;
    struct job_claimed a;
    struct uuid jobs[6];
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    for (int i = 0; i < 6; i++)
        jobs[i] = submit(&fresh, &client);
    TEST_CHECK(claims(&fresh, 1, &jobs[0], &a));
    struct job_claimed none;
    TEST_CHECK(claim(&fresh, 1, &none) == ERR_NOT_FOUND && lane_of(&fresh, &jobs[5]) == LANE_LIMITED);
    finish(&fresh, &a); /* from now on there is no limit */
    for (int i = 1; i < 6; i++)
        TEST_CHECK(claims(&fresh, 0, &jobs[i], &a));
    TEST_CHECK(claim(&fresh, 0, &a) == ERR_NOT_FOUND);
    fresh_close(&fresh);
}

static void test_limit_raised_counts_with_the_next_claim(void)
{
    struct fresh fresh;
    struct job_claimed a;
    struct uuid jobs[6];
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    for (int i = 0; i < 6; i++)
        jobs[i] = submit(&fresh, &client);
    TEST_CHECK(claims(&fresh, 1, &jobs[0], &a) && claim(&fresh, 1, &a) == ERR_NOT_FOUND);
    struct uuid newest = submit(&fresh, &client);
    TEST_CHECK(claims(&fresh, 3, &newest, &a)); /* the others are away; it brings one of them back */
    TEST_CHECK(claims(&fresh, 3, &jobs[1], &a));
    TEST_CHECK(claim(&fresh, 3, &a) == ERR_NOT_FOUND && counted(&fresh, &client) == 3);
    fresh_close(&fresh);
}

static struct job_admitted admit(struct fresh *fresh, const struct uuid *after, uint32_t client_max)
{
    struct answer answer;
    struct job_admitted admitted = {.clients = 0};
    struct job_admit c = {.client_max = client_max};
    if (after)
        c.after = *after;
    TEST_ASSERT(batch_one(fresh->store, &job_admit_class, AT_US, &c, &answer) == OK);
    if (TEST_CHECK(answer.size == sizeof(admitted)))
        memcpy(&admitted, answer.bytes, sizeof(admitted));
    return admitted;
}

static void test_limit_another_one_needs_no_end_and_no_submit(void)
{
    static const uint32_t limits[] = {3, 0};
    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
        uint32_t most = limits[i];
        struct fresh fresh;
        struct job_claimed a, none;
        TEST_CASE_("from 1 to %u", most);
        fresh_open(&fresh);
        struct uuid client = join(&fresh), first = submit(&fresh, &client), second = submit(&fresh, &client);
        struct uuid third = submit(&fresh, &client), last = submit(&fresh, &client);
        TEST_CHECK(claims(&fresh, 1, &first, &a) && claim(&fresh, 1, &none) == ERR_NOT_FOUND);
        TEST_CHECK(admit(&fresh, NULL, 1).clients == 0 && claim(&fresh, most, &none) == ERR_NOT_FOUND);
        fresh_reopen(&fresh); /* with the new limit */
        struct job_admitted admitted = admit(&fresh, NULL, most);
        TEST_CHECK(admitted.clients == 1 && admitted.more == 0);
        TEST_CHECK(claims(&fresh, most, &second, &a) && claims(&fresh, most, &third, &a));
        TEST_CHECK(most ? claim(&fresh, most, &none) == ERR_NOT_FOUND : claims(&fresh, most, &last, &a));
        TEST_CHECK(lane_of(&fresh, &last) == (most ? LANE_LIMITED : LANE_NONE));
        fresh_close(&fresh);
    }
}

/* More than one command looks at. */
static void test_limit_another_one_is_told_to_each_client(void)
{
    enum { CLIENTS = JOB_ADMIT_CLIENTS_MAX + 3 };
    struct fresh fresh;
    struct job_claimed a;
    fresh_open(&fresh);
    for (uint32_t i = 0; i < CLIENTS; i++) {
        struct uuid client = join(&fresh);
        for (int k = 0; k < 3; k++)
            (void)submit(&fresh, &client);
    }
    for (uint32_t i = 0; i < CLIENTS; i++)
        TEST_CHECK(claim(&fresh, 1, &a) == OK);
    TEST_CHECK(claim(&fresh, 1, &a) == ERR_NOT_FOUND);
    struct job_admitted admitted = admit(&fresh, NULL, 2);
    TEST_CHECK(admitted.clients == JOB_ADMIT_CLIENTS_MAX && admitted.more == 1);
    admitted = admit(&fresh, &admitted.after, 2);
    TEST_CHECK(admitted.clients == 3 && admitted.more == 0);
    for (uint32_t i = 0; i < CLIENTS; i++)
        TEST_CHECK(claim(&fresh, 2, &a) == OK);
    TEST_CHECK(claim(&fresh, 2, &a) == ERR_NOT_FOUND);
    fresh_close(&fresh);
}

static void test_limit_a_promise_that_is_broken_is_the_next_ones(void)
{
    struct fresh fresh;
    struct job_claimed a;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), first = submit(&fresh, &client), second = submit(&fresh, &client);
    struct uuid slow = submit_of(&fresh, &client, WORK_KIND_SUCCESS_SLOW), last = submit(&fresh, &client);
    TEST_CHECK(claims(&fresh, 1, &first, &a));
    struct job_claimed none;
    TEST_CHECK(claim(&fresh, 1, &none) == ERR_NOT_FOUND && lane_of(&fresh, &last) == LANE_LIMITED);
    finish(&fresh, &a);
    TEST_CHECK(lane_of(&fresh, &second) == LANE_SERVER);
    cancel(&fresh, &second); /* before it is claimed */
    TEST_CHECK(lane_of(&fresh, &slow) == LANE_SERVER);
    struct job_pause pause = {.scope = PAUSE_WORK,
                              .name = job_work_id(fresh.store, WORK_KIND_SUCCESS_SLOW, span_text(""))};
    TEST_CHECK(batch_one(fresh.store, &job_pause_class, AT_US, &pause, NULL) == OK);
    TEST_CHECK(claims(&fresh, 1, &last, &a)); /* the slow one is paused */
    TEST_CHECK(lane_of(&fresh, &slow) == LANE_PAUSED_WORK && job_of(&fresh, &slow).slot == JOB_NO_SLOT);
    cancel(&fresh, &last); /* while it runs */
    TEST_CHECK(counted(&fresh, &client) == 0);
    fresh_close(&fresh);
}

/* The limit is a lower one when it is to be claimed: its place has gone, and nobody gets it from it. */
static void test_limit_lowered_takes_a_promise_back(void)
{
    struct fresh fresh;
    struct job_claimed a, b, none;
    struct uuid jobs[4];
    fresh_open(&fresh);
    struct uuid client = join(&fresh);
    for (int i = 0; i < 4; i++)
        jobs[i] = submit(&fresh, &client);
    TEST_CHECK(claims(&fresh, 2, &jobs[0], &a) && claims(&fresh, 2, &jobs[1], &b));
    TEST_CHECK(claim(&fresh, 2, &none) == ERR_NOT_FOUND && lane_of(&fresh, &jobs[3]) == LANE_LIMITED);
    finish(&fresh, &b);
    TEST_CHECK(job_of(&fresh, &jobs[2]).slot == JOB_SLOT_PROMISED);
    TEST_CHECK(claim(&fresh, 1, &none) == ERR_NOT_FOUND && lane_of(&fresh, &jobs[2]) == LANE_LIMITED);
    TEST_CHECK(job_of(&fresh, &jobs[2]).slot == JOB_NO_SLOT);
    cancel(&fresh, &jobs[2]);
    TEST_CHECK(lane_of(&fresh, &jobs[3]) == LANE_LIMITED);
    finish(&fresh, &a);
    TEST_CHECK(claims(&fresh, 1, &jobs[3], &a));
    finish(&fresh, &a);
    fresh_close(&fresh);
}

static void test_limit_does_not_hold_the_one_that_an_operator_wants(void)
{
    struct fresh fresh;
    struct job_claimed a, b;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), first = submit(&fresh, &client), second = submit(&fresh, &client);
    TEST_CHECK(claims(&fresh, 1, &first, &a) && claim(&fresh, 1, &b) == ERR_NOT_FOUND);
    struct job_run run = {.id = second};
    TEST_CHECK(batch_one(fresh.store, &job_run_class, AT_US, &run, NULL) == OK);
    TEST_CHECK(claims(&fresh, 1, &second, &b) && counted(&fresh, &client) == 2);
    fresh_close(&fresh);
}

/* Of a kind of the client's own. */
static struct uuid submit_kind(struct fresh *fresh, const struct uuid *client, const char *kind)
{
    struct job_submit c = {.id = fresh_uuid(),
                           .client = *client,
                           .type = JOB_EXECUTE,
                           .kind = WORK_KIND_USER,
                           .kind_name = span_text(kind),
                           .payload = span_text("{}"),
                           .runtime_max_ms = 120000,
                           .payload_max = 262144,
                           .queue_max = 100000};
    TEST_ASSERT(batch_one(fresh->store, &job_submit_class, AT_US, &c, NULL) == OK);
    return c.id;
}

static struct uuid submit_outside(struct fresh *fresh, const struct uuid *client)
{
    return submit_kind(fresh, client, "x.mine");
}

/* As a program outside does: one job, if one may run. */
static enum error claim_outside(struct fresh *fresh, const struct uuid *client, struct job_claimed *ret)
{
    struct answer answer;
    struct job_claim c = {.lane = LANE_OUTSIDE,
                          .client = *client,
                          .most = 1,
                          .running = 1,
                          .client_max = 1,
                          .steady_us = AT_US,
                          .lease_us = SECOND_US,
                          .worker = span_text("mine")};
    enum error e = batch_one(fresh->store, &job_claim_class, AT_US, &c, &answer);
    if (!e && answer.size == sizeof(*ret))
        memcpy(ret, answer.bytes, sizeof(*ret));
    return !e && answer.size == 0 ? ERR_NOT_FOUND : e;
}

/* Seed 1193 of the simulator: one for which nobody came had the promise, and the client's others waited for ever. However many. */
static void test_limit_keeps_no_place_for_what_nobody_asks_for(void)
{
    enum { OUTSIDE = 100 };
    struct fresh fresh;
    struct job_claimed a, none;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), first = submit_outside(&fresh, &client);
    struct uuid outside = submit_outside(&fresh, &client);
    for (uint32_t i = 1; i < OUTSIDE; i++)
        (void)submit_outside(&fresh, &client);
    struct uuid ours = submit(&fresh, &client);
    TEST_CHECK(claim_outside(&fresh, &client, &a) == OK && uuid_equal(&a.id, &first));
    TEST_CHECK(claim_outside(&fresh, &client, &none) == ERR_NOT_FOUND &&
               claim(&fresh, 1, &none) == ERR_NOT_FOUND);
    TEST_CHECK(lane_of(&fresh, &outside) == LANE_OUTSIDE && lane_of(&fresh, &ours) == LANE_LIMITED);
    finish(&fresh, &a);
    TEST_CHECK(lane_of(&fresh, &outside) == LANE_OUTSIDE && lane_of(&fresh, &ours) == LANE_SERVER);
    TEST_CHECK(claims(&fresh, 1, &ours, &a)); /* and nobody asks for the other ones */
    TEST_CHECK(claim_outside(&fresh, &client, &none) == ERR_NOT_FOUND && counted(&fresh, &client) == 1);
    finish(&fresh, &a);
    TEST_CHECK(claim_outside(&fresh, &client, &a) == OK && uuid_equal(&a.id, &outside));
    fresh_close(&fresh);
}

struct part {
    struct uuid client;
    uint32_t woken; /* of those who wait for its jobs */
};

static enum error finish_and_look(struct txn *txn, uint64_t at_us, void *context)
{
    struct part *part = context;
    (void)at_us;
    job_queue_admit(txn, &part->client); /* as when one of its jobs has ended */
    for (uint32_t i = 0; i < txn->parts_count; i++)
        if (txn->parts[i].topic == job_topic_client(&part->client))
            part->woken += txn->parts[i].count;
    return OK;
}

/* They aren't brought back from anywhere, so whoever waits for them has to hear of the place. */
static void test_limit_wakes_those_outside_when_there_is_a_place(void)
{
    struct fresh fresh;
    struct part part = {.woken = 0};
    fresh_open(&fresh);
    part.client = join(&fresh);
    TEST_CHECK(fresh_do(&fresh, AT_US, finish_and_look, &part) == OK && part.woken == 0);
    (void)submit_outside(&fresh, &part.client);
    (void)submit_outside(&fresh, &part.client);
    TEST_CHECK(fresh_do(&fresh, AT_US, finish_and_look, &part) == OK && part.woken == 1);
    fresh_close(&fresh);
}

enum { KINDS = 20, PLACES = 8 };

struct places {
    struct uuid client;
    struct uuid works[KINDS]; /* by the age of their first jobs */
    uint32_t first;           /* of those that still have one */
};

static enum error look_who_is_woken(struct txn *txn, uint64_t at_us, void *context)
{
    const struct places *p = context;
    (void)at_us;
    job_queue_admit(txn, &p->client);
    uint32_t wanted = KINDS - p->first < PLACES ? KINDS - p->first : PLACES;
    TEST_CHECK_(txn->parts_count == wanted, "%u", txn->parts_count);
    for (uint32_t i = 0; i < txn->parts_count; i++)
        TEST_CHECK_(txn->parts[i].part == job_topic_part(&p->client, &p->works[p->first + i]), "%u of %u", i,
                    p->first);
    return OK;
}

/* Kinds have ids by chance, and are found in their order: by that the same few would have every place. */
static void test_limit_wakes_those_outside_by_age(void)
{
    struct fresh fresh;
    struct places places = {.first = 0};
    struct uuid ids[KINDS];
    struct job_claimed a;
    char kind[16];
    fresh_open(&fresh);
    places.client = join(&fresh);
    for (uint32_t i = 0; i < KINDS; i++) {
        snprintf(kind, sizeof(kind), "x.kind%u", i);
        ids[i] = submit_kind(&fresh, &places.client, kind);
        places.works[i] = job_of(&fresh, &ids[i]).work;
    }
    for (; places.first < KINDS; places.first++) {
        TEST_CHECK(fresh_do(&fresh, AT_US, look_who_is_woken, &places) == OK);
        TEST_CHECK(claim_outside(&fresh, &places.client, &a) == OK && uuid_equal(&a.id, &ids[places.first]));
        finish(&fresh, &a);
    }
    fresh_close(&fresh);
}

enum { VERY_MANY = 2 * JOB_WAKE_WORKS_MAX };

struct very_many {
    struct uuid client;
    struct uuid works[VERY_MANY]; /* by the age of their first jobs */
};

/* Nothing has been claimed yet, so it begins with the smallest id. */
static bool is_looked_at(const struct very_many *m, uint32_t kind)
{
    uint32_t before = 0;
    for (uint32_t i = 0; i < VERY_MANY; i++)
        before += memcmp(&m->works[i], &m->works[kind], sizeof(m->works[i])) < 0;
    return before < JOB_WAKE_WORKS_MAX;
}

static enum error look_who_of_very_many_is_woken(struct txn *txn, uint64_t at_us, void *context)
{
    const struct very_many *m = context;
    uint32_t kind = 0;
    (void)at_us;
    job_queue_admit(txn, &m->client);
    TEST_CHECK_(txn->parts_count == PLACES, "%u", txn->parts_count);
    for (uint32_t i = 0; i < txn->parts_count && kind < VERY_MANY; i++, kind++) {
        while (kind < VERY_MANY && !is_looked_at(m, kind))
            kind++;
        TEST_CHECK(kind < VERY_MANY && txn->parts[i].part == job_topic_part(&m->client, &m->works[kind]));
    }
    TEST_CHECK(kind > PLACES); /* there were older ones, and nobody came to them */
    return OK;
}

/* The work for one place is bounded, however many kinds somebody makes up. */
static void test_limit_looks_at_so_many_kinds_outside(void)
{
    static struct very_many many;
    struct fresh fresh;
    char kind[16];
    fresh_open(&fresh);
    many.client = join(&fresh);
    for (uint32_t i = 0; i < VERY_MANY; i++) {
        snprintf(kind, sizeof(kind), "x.kind%u", i);
        struct uuid id = submit_kind(&fresh, &many.client, kind);
        many.works[i] = job_of(&fresh, &id).work;
    }
    TEST_CHECK(fresh_do(&fresh, AT_US, look_who_of_very_many_is_woken, &many) == OK);
    fresh_close(&fresh);
}

struct looks {
    struct very_many many;
    bool woken[VERY_MANY];
};

static enum error note_who_is_woken(struct txn *txn, uint64_t at_us, void *context)
{
    struct looks *looks = context;
    (void)at_us;
    job_queue_admit(txn, &looks->many.client);
    for (uint32_t i = 0; i < txn->parts_count; i++)
        for (uint32_t kind = 0; kind < VERY_MANY; kind++)
            looks->woken[kind] |=
                txn->parts[i].part == job_topic_part(&looks->many.client, &looks->many.works[kind]);
    counter_add(txn, COUNTER_JOB_FENCE, span_of(NULL, 0), 1); /* as with the next claim */
    return OK;
}

/* With each claim it begins elsewhere: the oldest of all aren't left out for long. */
static void test_limit_looks_at_other_kinds_outside_each_time(void)
{
    static struct looks looks;
    struct fresh fresh;
    char kind[16];
    fresh_open(&fresh);
    looks.many.client = join(&fresh);
    for (uint32_t i = 0; i < VERY_MANY; i++) {
        snprintf(kind, sizeof(kind), "x.kind%u", i);
        struct uuid id = submit_kind(&fresh, &looks.many.client, kind);
        looks.many.works[i] = job_of(&fresh, &id).work;
    }
    for (uint32_t claims = 0; claims < 3; claims++) /* half of them each time */
        TEST_CHECK(fresh_do(&fresh, AT_US, note_who_is_woken, &looks) == OK);
    for (uint32_t i = 0; i < PLACES; i++)
        TEST_CHECK_(looks.woken[i], "nobody comes to kind %u", i);
    fresh_close(&fresh);
}

/* An earlier version set them aside as well. */
static enum error set_aside(struct txn *txn, uint64_t at_us, void *context)
{
    struct job_texts texts;
    struct job job;
    (void)at_us;
    enum error e = job_open(txn, context, &job, &texts);
    TEST_CHECK(e == OK);
    job_queue_move(txn, &job, LANE_LIMITED);
    job_write(txn, &job);
    return e;
}

static void test_limit_gives_back_what_an_earlier_version_has_set_aside(void)
{
    struct fresh fresh;
    struct job_claimed a, none;
    fresh_open(&fresh);
    struct uuid client = join(&fresh), outside = submit_outside(&fresh, &client);
    TEST_CHECK(fresh_do(&fresh, AT_US, set_aside, &outside) == OK);
    submit(&fresh, &client);
    struct uuid ours = submit(&fresh, &client);
    TEST_CHECK(claim(&fresh, 1, &a) == OK && claim(&fresh, 1, &none) == ERR_NOT_FOUND);
    TEST_CHECK(lane_of(&fresh, &outside) == LANE_LIMITED && lane_of(&fresh, &ours) == LANE_LIMITED);
    finish(&fresh, &a);
    TEST_CHECK(lane_of(&fresh, &outside) == LANE_OUTSIDE && claims(&fresh, 1, &ours, &a));
    fresh_close(&fresh);
}

TEST_LIST
= {
    {"limit holds one client, and lets others by", test_limit_holds_one_client_and_lets_others_by},
    {"limit: off it counts nothing", test_limit_off_counts_nothing},
    {"limit switched off leaves nobody behind", test_limit_switched_off_leaves_nobody_behind},
    {"limit raised counts with the next claim", test_limit_raised_counts_with_the_next_claim},
    {"limit: another one needs no end and no submit", test_limit_another_one_needs_no_end_and_no_submit},
    {"limit: another one is told to each client", test_limit_another_one_is_told_to_each_client},
    {"limit: a promise that is broken is the next one's",
     test_limit_a_promise_that_is_broken_is_the_next_ones},
    {"limit lowered takes a promise back", test_limit_lowered_takes_a_promise_back},
    {"limit doesn't hold the one that an operator wants",
     test_limit_does_not_hold_the_one_that_an_operator_wants},
    {"limit: no place is kept for what nobody asks for", test_limit_keeps_no_place_for_what_nobody_asks_for},
    {"limit: those outside are woken when there is a place",
     test_limit_wakes_those_outside_when_there_is_a_place},
    {"limit: kinds outside are woken by age", test_limit_wakes_those_outside_by_age},
    {"limit: so many kinds outside are looked at", test_limit_looks_at_so_many_kinds_outside},
    {"limit looks at other kinds outside each time", test_limit_looks_at_other_kinds_outside_each_time},
    {"limit: what an earlier version has set aside comes back",
     test_limit_gives_back_what_an_earlier_version_has_set_aside},
    {NULL, NULL},
};
