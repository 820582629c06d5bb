/* Rate windows: sliding, to the microsecond, whatever the clock does; against a model. */
#include "acutest.h"

#include "store/rate_window.h"
#include "store/retention.h"
#include "tests/store/fresh.h"

#define AT_US  UINT64_C(1700000000000000)
#define S_US   UINT64_C(1000000)
#define MIN_US (60 * S_US)

static struct rate_window_taken take_of(struct fresh *fresh, const char *actor, uint8_t bucket,
                                        uint32_t quota, uint64_t at_us)
{
    struct rate_window_take c = {
        .actor = span_text(actor), .bucket = bucket, .quota = quota, .window_us = MIN_US};
    struct rate_window_taken taken = {.wait_us = UINT64_MAX};
    struct answer answer;
    TEST_CHECK(batch_one(fresh->store, &rate_window_take_class, at_us, &c, &answer) == OK);
    if (TEST_CHECK(answer.size == sizeof(taken)))
        memcpy(&taken, answer.bytes, sizeof(taken));
    return taken;
}

static bool passes(struct fresh *fresh, const char *actor, uint8_t bucket, uint32_t quota, uint64_t at_us)
{
    return take_of(fresh, actor, bucket, quota, at_us).allowed == 1;
}

static uint64_t rows(struct fresh *fresh, uint32_t table)
{
    struct view *view = view_open_outside(fresh->store, 0);
    TEST_ASSERT(view != NULL);
    uint64_t count = txn_rows(&view->txn, table);
    view_close(view);
    return count;
}

static void test_window_lets_the_quota_pass_and_says_how_long_to_wait_CTL_155_CTL_162(void)
{
    struct fresh fresh;
    struct rate_window_taken taken;
    fresh_open(&fresh);
    for (uint32_t i = 0; i < 60; i++) {
        taken = take_of(&fresh, "a", 1, 60, AT_US + i * S_US / 2);
        TEST_CHECK(taken.allowed == 1 && taken.remaining == 59 - i && taken.wait_us == MIN_US);
    }
    uint64_t now_us = AT_US + 30 * S_US;
    taken = take_of(&fresh, "a", 1, 60, now_us);
    TEST_CHECK(taken.allowed == 0 && taken.remaining == 0 && taken.wait_us == 30 * S_US);
    TEST_CHECK(!passes(&fresh, "a", 1, 60, now_us + taken.wait_us - 1));
    TEST_CHECK(passes(&fresh, "a", 1, 60, now_us + taken.wait_us));
    TEST_CHECK(!take_of(&fresh, "a", 1, 60, now_us + taken.wait_us)
                    .allowed); /* the next leaves half a second later */
    fresh_close(&fresh);
}

static void test_window_refused_ones_do_not_count_AMB_28(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    TEST_CHECK(passes(&fresh, "a", 1, 1, AT_US));
    for (uint32_t i = 1; i < 60; i++)
        TEST_CHECK(!passes(&fresh, "a", 1, 1, AT_US + i * S_US));
    TEST_CHECK(passes(&fresh, "a", 1, 1, AT_US + MIN_US));
    fresh_close(&fresh);
}

static void test_window_of_each_actor_and_bucket_survives_a_restart_AMB_28(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    TEST_CHECK(passes(&fresh, "a", 1, 1, AT_US));
    TEST_CHECK(passes(&fresh, "b", 1, 1, AT_US) && passes(&fresh, "a", 2, 1, AT_US));
    fresh_reopen(&fresh);
    TEST_CHECK(!passes(&fresh, "a", 1, 1, AT_US + 1));
    TEST_CHECK(!passes(&fresh, "b", 1, 1, AT_US + 1));
    TEST_CHECK(!passes(&fresh, "a", 2, 1, AT_US + 1));
    TEST_CHECK(rows(&fresh, TABLE_RATE_WINDOWS) == 3);
    fresh_close(&fresh);
}

static void test_window_when_the_clock_goes_back(void)
{
    struct fresh fresh;
    struct rate_window_taken taken;
    fresh_open(&fresh);
    TEST_CHECK(passes(&fresh, "a", 1, 1, AT_US + 3600 * S_US));
    taken = take_of(&fresh, "a", 1, 1, AT_US); /* an hour back: as if just now */
    TEST_CHECK(taken.allowed == 0 && taken.wait_us == MIN_US);
    TEST_CHECK(passes(&fresh, "b", 1, 2, AT_US + 3600 * S_US));
    TEST_CHECK(passes(&fresh, "b", 1, 2, AT_US)); /* from here on by the clock as it is */
    TEST_CHECK(!passes(&fresh, "b", 1, 2, AT_US + MIN_US - 1));
    TEST_CHECK(passes(&fresh, "b", 1, 2, AT_US + MIN_US));
    fresh_close(&fresh);
}

static void test_window_with_a_quota_that_was_lowered(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    for (uint32_t i = 0; i < 10; i++)
        TEST_CHECK(passes(&fresh, "a", 1, 10, AT_US + i * S_US));
    struct rate_window_taken taken = take_of(&fresh, "a", 1, 3, AT_US + 10 * S_US);
    TEST_CHECK(taken.allowed == 0 && taken.wait_us == 57 * S_US); /* until the eighth of ten has left */
    TEST_CHECK(!passes(&fresh, "a", 1, 3, AT_US + 67 * S_US - 1));
    TEST_CHECK(passes(&fresh, "a", 1, 3, AT_US + 67 * S_US));
    fresh_close(&fresh);
}

static void test_window_refuses_what_cant_be_meant(void)
{
    struct fresh fresh;
    struct rate_window_take good = {.actor = span_text("a"), .bucket = 1, .quota = 1, .window_us = MIN_US};
    struct rate_window_take bad[5] = {good, good, good, good, good};
    fresh_open(&fresh);
    bad[0].actor = span_text("");
    bad[1].quota = 0;
    bad[2].quota = RATE_WINDOW_QUOTA_MAX + 1;
    bad[3].window_us = 0;
    bad[4].window_us = RATE_WINDOW_IDLE_US + 1;
    for (size_t i = 0; i < 5; i++)
        TEST_CHECK(batch_one(fresh.store, &rate_window_take_class, AT_US, &bad[i], NULL) == ERR_INVALID);
    TEST_CHECK(batch_one(fresh.store, &rate_window_take_class, UINT64_MAX, &good, NULL) == ERR_INVALID);
    TEST_CHECK(rows(&fresh, TABLE_RATE_WINDOWS) == 0);
    fresh_close(&fresh);
}

/* ---- against a model ---- */

#define MODEL_QUOTA 7u

struct model {
    uint64_t times[4000];
    uint32_t count;
};

static bool model_take(struct model *m, uint64_t now_us, uint64_t *ret_wait_us)
{
    uint32_t inside = 0, oldest = 0;
    for (uint32_t i = m->count; i > 0 && m->times[i - 1] + MIN_US > now_us; i--) {
        inside++;
        oldest = i - 1;
    }
    *ret_wait_us = inside >= MODEL_QUOTA ? m->times[oldest] + MIN_US - now_us : MIN_US;
    if (inside >= MODEL_QUOTA)
        return false;
    m->times[m->count++] = now_us;
    return true;
}

static void test_window_as_its_model(void)
{
    static struct model models[3];
    static const char *const actors[] = {"one", "two", "a longer name of somebody"};
    struct fresh fresh;
    uint64_t now_us = AT_US;
    fresh_open(&fresh);
    for (uint32_t round = 0; round < 3000; round++) {
        uint32_t who = fresh_below(3);
        uint64_t wait_us;
        bool allowed = model_take(&models[who], now_us, &wait_us);
        struct rate_window_taken taken = take_of(&fresh, actors[who], 4, MODEL_QUOTA, now_us);
        TEST_CHECK((taken.allowed == 1) == allowed && taken.wait_us == wait_us);
        now_us += fresh_below(8) == 0 && !allowed ? wait_us : fresh_below(5000000);
    }
    fresh_close(&fresh);
}

/* ---- how long a row is kept ---- */

static uint32_t sweep(struct fresh *fresh, uint64_t now_us)
{
    struct retention_sweep c = {.limit = 0};
    struct answer answer;
    uint32_t removed = 0;
    TEST_CHECK(batch_one(fresh->store, &retention_sweep_class, now_us, &c, &answer) == OK);
    memcpy(&removed, answer.bytes, sizeof(removed));
    return removed;
}

static void test_window_goes_after_a_day_without_use(void)
{
    const uint64_t day_us = RATE_WINDOW_IDLE_US;
    struct fresh fresh;
    fresh_open(&fresh);
    TEST_CHECK(passes(&fresh, "a", 1, 60, AT_US));
    TEST_CHECK(passes(&fresh, "b", 1, 60, AT_US));
    TEST_CHECK(passes(&fresh, "b", 1, 60, AT_US + day_us / 2));
    sweep(&fresh, AT_US + day_us - 1);
    TEST_CHECK(rows(&fresh, TABLE_RATE_WINDOWS) == 2);
    sweep(&fresh, AT_US + day_us);
    TEST_CHECK(rows(&fresh, TABLE_RATE_WINDOWS) == 1);
    fresh_sound(&fresh);
    sweep(&fresh, AT_US + day_us + day_us / 2 - 1);
    TEST_CHECK(rows(&fresh, TABLE_RATE_WINDOWS) == 1);
    sweep(&fresh, AT_US + day_us + day_us / 2);
    TEST_CHECK(rows(&fresh, TABLE_RATE_WINDOWS) == 0 && rows(&fresh, TABLE_DUE) == 0);
    fresh_close(&fresh);
}

/* ---- what check finds ---- */

struct spoilt {
    struct rate_window row;
    struct uuid id;
};

static enum error write_spoilt(struct txn *txn, uint64_t at_us, void *context)
{
    const struct spoilt *spoilt = context;
    (void)at_us;
    txn_write(txn, TABLE_RATE_WINDOWS, span_of(spoilt->id.bytes, 16), &spoilt->row);
    return OK;
}

static void test_window_damage_is_found(void)
{
    struct fresh fresh;
    uint64_t times[2] = {AT_US, AT_US - 1};
    fresh_open(&fresh);
    TEST_CHECK(passes(&fresh, "a", 1, 60, AT_US));
    struct view *view = view_open_outside(fresh.store, 0);
    TEST_ASSERT(view != NULL);
    struct scan scan = txn_scan(&view->txn, TABLE_RATE_WINDOWS, span_of("", 0), 0, SCAN_UP);
    struct spoilt good;
    TEST_ASSERT(scan_next(&scan) && scan_read(&scan, &good.row) == OK);
    memcpy(good.id.bytes, scan.key.bytes, 16);
    TEST_CHECK(scan_end(&scan) == OK);
    view_close(view);
    good.row.actor = span_text("a");
    good.row.times = span_of(times, sizeof(times[0]));
    struct spoilt bad = good;
    bad.row.actor = span_text("b");
    TEST_CHECK(fresh_would_find(&fresh, write_spoilt, &bad, "under another key"));
    bad = good;
    bad.row.sweep_us++;
    TEST_CHECK(fresh_would_find(&fresh, write_spoilt, &bad, "will never be removed"));
    bad = good;
    bad.row.newest_us++;
    TEST_CHECK(fresh_would_find(&fresh, write_spoilt, &bad, "another newest time"));
    bad = good;
    bad.row.times = span_of(times, sizeof(times));
    TEST_CHECK(fresh_would_find(&fresh, write_spoilt, &bad, "out of order"));
    bad = good;
    bad.row.times = span_of(times, 0);
    TEST_CHECK(fresh_would_find(&fresh, write_spoilt, &bad, "has no times"));
    fresh_close(&fresh);
}

TEST_LIST
= {
    {"rate window: the quota passes, waiting is enough (CTL-155, CTL-162)",
     test_window_lets_the_quota_pass_and_says_how_long_to_wait_CTL_155_CTL_162},
    {"rate window: refused ones don't count (AMB-28)", test_window_refused_ones_do_not_count_AMB_28},
    {"rate window: of each actor and bucket, through a restart (AMB-28)",
     test_window_of_each_actor_and_bucket_survives_a_restart_AMB_28},
    {"rate window: when the clock goes back", test_window_when_the_clock_goes_back},
    {"rate window: a quota that was lowered", test_window_with_a_quota_that_was_lowered},
    {"rate window: refuses what can't be meant", test_window_refuses_what_cant_be_meant},
    {"rate window: as its model", test_window_as_its_model},
    {"rate window: goes after a day without use", test_window_goes_after_a_day_without_use},
    {"rate window: damage is found", test_window_damage_is_found},
    {NULL, NULL},
};
