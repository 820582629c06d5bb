/* The due index against a plain array: order, shards, times, counters, and the same after opening again. */
#include "acutest.h"

#include "store/counter.h"
#include "store/due.h"
#include "tests/store/fresh.h"

/* No queue of the product's but retention: another number keeps check from asking what the ids name, and is
 * therefore complained about; so these stores are emptied before they are closed. */
#define QUEUE      77u
#define OTHER      78u
#define SHARDS     3u
#define ENTRIES    400u
#define STEPS      600u
#define TIME_BOUND 50u

static enum error set(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    due_set(txn, context);
    return OK;
}

static enum error clear(struct txn *txn, uint64_t at_us, void *context)
{
    const struct due_entry *entry = context;
    (void)at_us;
    due_clear(txn, entry->queue, entry->shard, entry->due_us, &entry->id);
    return OK;
}

static struct due_entry entry_of(uint8_t queue, uint16_t shard, uint64_t due_us, uint8_t id)
{
    return (struct due_entry){.queue = queue,
                              .shard = shard,
                              .due_us = due_us,
                              .id = {{[15] = id}},
                              .row = {.kind = id, .value = due_us * 3}};
}

static bool same_key(const struct due_entry *a, const struct due_entry *b)
{
    return a->queue == b->queue && a->shard == b->shard && a->due_us == b->due_us &&
           uuid_equal(&a->id, &b->id);
}

static bool same(const struct due_entry *a, const struct due_entry *b)
{
    return same_key(a, b) && a->row.kind == b->row.kind && a->row.value == b->row.value;
}

static enum error scan(struct fresh *fresh, uint8_t queue, uint16_t shard, uint64_t until_us,
                       struct due_entry *entries, uint32_t most, uint32_t *ret_count)
{
    struct view *view = view_open_outside(fresh->store, 0);
    TEST_ASSERT(view != NULL);
    enum error e = due_scan(&view->txn, queue, shard, until_us, entries, most, ret_count);
    view_close(view);
    return e;
}

static enum error next(struct fresh *fresh, uint8_t queue, uint16_t shard, uint64_t *ret_due_us)
{
    struct view *view = view_open_outside(fresh->store, 0);
    TEST_ASSERT(view != NULL);
    enum error e = due_next(&view->txn, queue, shard, ret_due_us);
    view_close(view);
    return e;
}

static void test_due_never_early_and_never_late(void)
{
    struct fresh fresh;
    struct due_entry entry = entry_of(QUEUE, 0, 1000, 1), found[2];
    uint32_t count = 9;
    uint64_t due_us = 9;
    fresh_open(&fresh);
    TEST_CHECK(next(&fresh, QUEUE, 0, &due_us) == ERR_NOT_FOUND && due_us == 9);
    TEST_CHECK(scan(&fresh, QUEUE, 0, UINT64_MAX, found, 2, &count) == OK && count == 0);
    TEST_CHECK(fresh_do(&fresh, 1, set, &entry) == OK);
    TEST_CHECK(scan(&fresh, QUEUE, 0, 999, found, 2, &count) == OK && count == 0);
    TEST_CHECK(scan(&fresh, QUEUE, 0, 1000, found, 2, &count) == OK && count == 1);
    TEST_CHECK(same(&found[0], &entry));
    TEST_CHECK(scan(&fresh, QUEUE, 0, 1000, found, 0, &count) == OK && count == 0);
    fresh_reopen(&fresh);
    TEST_CHECK(next(&fresh, QUEUE, 0, &due_us) == OK && due_us == 1000);
    TEST_CHECK(next(&fresh, QUEUE, 1, &due_us) == ERR_NOT_FOUND);
    TEST_CHECK(next(&fresh, OTHER, 0, &due_us) == ERR_NOT_FOUND);
    TEST_CHECK(fresh_do(&fresh, 2, clear, &entry) == OK);
    TEST_CHECK(next(&fresh, QUEUE, 0, &due_us) == ERR_NOT_FOUND);
    fresh_close(&fresh);
}

static void test_due_until_the_last_time_there_is(void)
{
    struct fresh fresh;
    struct due_entry late = entry_of(QUEUE, UINT16_MAX, UINT64_MAX, 2);
    struct due_entry first = entry_of(QUEUE, UINT16_MAX, 0, 3), found[3];
    struct due_entry next_queue = entry_of(OTHER, 0, 0, 4);
    uint32_t count;
    fresh_open(&fresh);
    TEST_CHECK(fresh_do(&fresh, 1, set, &late) == OK);
    TEST_CHECK(fresh_do(&fresh, 1, set, &next_queue) == OK);
    TEST_CHECK(fresh_do(&fresh, 1, set, &first) == OK);
    TEST_CHECK(scan(&fresh, QUEUE, UINT16_MAX, UINT64_MAX, found, 3, &count) == OK && count == 2);
    TEST_CHECK(same(&found[0], &first) && same(&found[1], &late));
    TEST_CHECK(fresh_do(&fresh, 1, clear, &late) == OK && fresh_do(&fresh, 1, clear, &first) == OK);
    TEST_CHECK(scan(&fresh, QUEUE, UINT16_MAX, UINT64_MAX, found, 3, &count) == OK && count == 0);
    TEST_CHECK(scan(&fresh, OTHER, 0, UINT64_MAX, found, 3, &count) == OK && count == 1);
    TEST_CHECK(fresh_do(&fresh, 1, clear, &next_queue) == OK);
    fresh_close(&fresh);
}

static enum error set_and_look(struct txn *txn, uint64_t at_us, void *context)
{
    const uint32_t topic = STORE_TOPIC(TOPIC_DUE, QUEUE);
    struct due_entry found[2];
    uint32_t count;
    (void)at_us;
    due_set(txn, context);
    TEST_CHECK(txn->wakes[topic / 64] == UINT64_C(1) << topic % 64);
    TEST_CHECK(due_scan(txn, QUEUE, 0, UINT64_MAX, found, 2, &count) == OK && count == 1);
    due_clear(txn, QUEUE, 0, found[0].due_us, &found[0].id);
    TEST_CHECK(due_scan(txn, QUEUE, 0, UINT64_MAX, found, 2, &count) == OK && count == 0);
    return OK;
}

static enum error clear_twice(struct txn *txn, uint64_t at_us, void *context)
{
    const struct due_entry *entry = context;
    (void)at_us;
    due_set(txn, entry);
    for (int i = 0; i < 2; i++)
        TEST_CHECK(due_try_clear(txn, QUEUE, entry->shard, entry->due_us, &entry->id) ==
                   (i ? ERR_NOT_FOUND : OK));
    return OK;
}

/* Whoever goes by a row of his own is told when it isn't there, and it is counted down once. */
static void test_due_one_that_has_gone_is_not_cleared(void)
{
    struct fresh fresh;
    struct due_entry entry = entry_of(QUEUE, 1, 10, 1);
    fresh_open(&fresh);
    TEST_CHECK(fresh_do(&fresh, 1, clear_twice, &entry) == OK);
    fresh_close(&fresh);
}

static void test_due_seen_in_the_transaction_that_sets_it_and_wakes(void)
{
    struct fresh fresh;
    struct due_entry entry = entry_of(QUEUE, 0, 5, 1);
    fresh_open(&fresh);
    TEST_CHECK(fresh_do(&fresh, 1, set_and_look, &entry) == OK);
    fresh_close(&fresh);
}

/* ---- against a plain array ---- */

struct model {
    struct due_entry entries[ENTRIES];
    uint32_t count;
};

static bool before(const struct due_entry *a, const struct due_entry *b)
{
    if (a->due_us != b->due_us)
        return a->due_us < b->due_us;
    return memcmp(&a->id, &b->id, sizeof(a->id)) < 0;
}

/* The oldest of the shard after *after (NULL: of all). */
static const struct due_entry *model_next(const struct model *model, uint8_t queue, uint16_t shard,
                                          const struct due_entry *after)
{
    const struct due_entry *best = NULL;
    for (uint32_t i = 0; i < model->count; i++) {
        const struct due_entry *entry = &model->entries[i];
        if (entry->queue == queue && entry->shard == shard && (!after || before(after, entry)) &&
            (!best || before(entry, best)))
            best = entry;
    }
    return best;
}

static void compare_shard(struct fresh *fresh, const struct model *model, uint8_t queue, uint16_t shard)
{
    static struct due_entry found[ENTRIES];
    uint64_t until_us = fresh_below(TIME_BOUND + 2), due_us = 0;
    uint32_t most = fresh_below(ENTRIES), count = 0, expected = 0;
    const struct due_entry *entry = model_next(model, queue, shard, NULL);
    TEST_CHECK(next(fresh, queue, shard, &due_us) == (entry ? OK : ERR_NOT_FOUND));
    TEST_CHECK(!entry || entry->due_us == due_us);
    TEST_CHECK(scan(fresh, queue, shard, until_us, found, most, &count) == OK);
    while (entry && entry->due_us <= until_us && expected < most) {
        if (!TEST_CHECK(expected < count && same(&found[expected], entry)))
            return;
        expected++;
        entry = model_next(model, queue, shard, entry);
    }
    TEST_CHECK(expected == count);
}

static void compare(struct fresh *fresh, const struct model *model)
{
    int64_t in_queue[2] = {0, 0};
    for (uint32_t i = 0; i < model->count; i++)
        in_queue[model->entries[i].queue - QUEUE]++;
    for (uint8_t q = 0; q < 2; q++) {
        uint8_t queue = (uint8_t)(QUEUE + q);
        TEST_CHECK(fresh_counter(fresh, COUNTER_DUE, span_of(&queue, 1)) == in_queue[q]);
        for (uint16_t shard = 0; shard < SHARDS; shard++)
            compare_shard(fresh, model, queue, shard);
    }
}

static bool model_has(const struct model *model, const struct due_entry *entry)
{
    for (uint32_t i = 0; i < model->count; i++)
        if (model->entries[i].queue == entry->queue && model->entries[i].shard == entry->shard &&
            model->entries[i].due_us == entry->due_us && uuid_equal(&model->entries[i].id, &entry->id))
            return true;
    return false;
}

static void step(struct fresh *fresh, struct model *model, uint32_t add_of_ten)
{
    struct due_entry entry = entry_of((uint8_t)(QUEUE + fresh_below(2)), (uint16_t)fresh_below(SHARDS),
                                      fresh_below(TIME_BOUND), (uint8_t)fresh_below(256));
    if (fresh_below(10) < add_of_ten) {
        if (model->count == ENTRIES || model_has(model, &entry))
            return;
        TEST_CHECK(fresh_do(fresh, 1, set, &entry) == OK);
        model->entries[model->count++] = entry;
    } else if (model->count > 0) {
        uint32_t i = fresh_below(model->count);
        TEST_CHECK(fresh_do(fresh, 1, clear, &model->entries[i]) == OK);
        model->entries[i] = model->entries[--model->count];
    }
}

static void test_due_random_against_an_array(void)
{
    static struct model model;
    struct fresh fresh;
    fresh_open(&fresh);
    for (uint32_t i = 0; i < STEPS; i++) {
        step(&fresh, &model, i < STEPS / 2 ? 8 : 3);
        if (i % 20 == 0)
            compare(&fresh, &model);
        if (i % 150 == 149)
            fresh_reopen(&fresh);
    }
    TEST_CHECK(model.count > 20);
    while (model.count > 0)
        step(&fresh, &model, 0);
    compare(&fresh, &model);
    fresh_close(&fresh);
}

static enum error first(struct fresh *fresh, uint16_t shard, struct due_entry *ret)
{
    struct view *view = view_open_outside(fresh->store, 0);
    TEST_ASSERT(view != NULL);
    enum error e = due_first(&view->txn, QUEUE, shard, ret);
    view_close(view);
    return e;
}

static void test_due_the_first_shard_that_has_something(void)
{
    struct fresh fresh;
    struct due_entry entries[] = {entry_of(QUEUE, 3, 9, 1), entry_of(QUEUE, 3, 5, 2),
                                  entry_of(QUEUE, 700, 1, 3), entry_of(OTHER, 0, 1, 4)},
                     found;
    fresh_open(&fresh);
    TEST_CHECK(first(&fresh, 0, &found) == ERR_NOT_FOUND);
    for (int i = 0; i < 4; i++)
        TEST_CHECK(fresh_do(&fresh, 1, set, &entries[i]) == OK);
    TEST_CHECK(first(&fresh, 0, &found) == OK && same_key(&found, &entries[1]));
    TEST_CHECK(first(&fresh, 3, &found) == OK && same_key(&found, &entries[1]));
    TEST_CHECK(first(&fresh, 4, &found) == OK && same_key(&found, &entries[2]));
    TEST_CHECK(first(&fresh, 700, &found) == OK && same_key(&found, &entries[2]));
    TEST_CHECK(first(&fresh, 701, &found) == ERR_NOT_FOUND); /* the other queue is not looked into */
    for (int i = 0; i < 4; i++)
        TEST_CHECK(fresh_do(&fresh, 1, clear, &entries[i]) == OK);
    fresh_close(&fresh);
}

/* The row's last byte; the same again, and it is whole. */
static enum error flip(struct txn *txn, uint64_t at_us, void *context)
{
    const struct due_entry *entry = context;
    struct key key = due_key(entry->queue, entry->shard, entry->due_us, &entry->id);
    MDB_dbi dbi = txn->store->environment.tables[TABLE_DUE];
    MDB_val k = {key.size, key.bytes}, v;
    uint8_t bytes[64];
    (void)at_us;
    TEST_ASSERT(mdb_get(txn->mdb, dbi, &k, &v) == 0 && v.mv_size <= sizeof(bytes));
    memcpy(bytes, v.mv_data, v.mv_size);
    bytes[v.mv_size - 1] ^= 1;
    v.mv_data = bytes;
    TEST_ASSERT(mdb_put(txn->mdb, dbi, &k, &v, 0) == 0);
    txn->writes++;
    return OK;
}

/* Each set of damaged rows, each number of entries wanted, each time: by their keys as if nothing were wrong. */
static void test_due_keys_are_read_whatever_their_rows_say(void)
{
    enum { COUNT = 5 };
    struct fresh fresh;
    struct due_entry all[COUNT], found[COUNT];
    uint32_t count;
    uint64_t at;
    fresh_open(&fresh);
    for (uint8_t i = 0; i < COUNT; i++) {
        all[i] = entry_of(QUEUE, 1, 10u + i / 2, i);
        TEST_CHECK(fresh_do(&fresh, 1, set, &all[i]) == OK);
    }
    for (uint32_t set_of = 0; set_of < 1u << COUNT; set_of++) {
        for (uint32_t i = 0; i < COUNT; i++)
            if (set_of & 1u << i)
                TEST_CHECK(fresh_do(&fresh, 1, flip, &all[i]) == OK);
        struct view *view = view_open_outside(fresh.store, 0);
        for (uint32_t most = 1; most <= COUNT; most++)
            for (uint64_t until = 9; until < 14; until++) {
                uint32_t due = until < 10 ? 0 : until < 12 ? 2 * (uint32_t)(until - 9) : COUNT;
                TEST_CHECK(due_scan_keys(&view->txn, QUEUE, 1, until, found, most, &count) == OK);
                TEST_CHECK(count == (due < most ? due : most));
                for (uint32_t i = 0; i < count; i++)
                    TEST_CHECK(found[i].due_us == all[i].due_us && uuid_equal(&found[i].id, &all[i].id) &&
                               found[i].queue == QUEUE && found[i].shard == 1);
            }
        TEST_CHECK(due_next(&view->txn, QUEUE, 1, &at) == OK && at == 10);
        TEST_CHECK(due_first(&view->txn, QUEUE, 0, &found[0]) == OK && same_key(&found[0], &all[0]));
        TEST_CHECK(due_scan(&view->txn, QUEUE, 1, 20, found, COUNT, &count) ==
                   (set_of ? ERR_DAMAGED : OK)); /* whoever needs the row isn't given another one */
        TEST_CHECK(due_scan_keys(&view->txn, QUEUE, 0, 20, found, COUNT, &count) == OK && count == 0);
        view_close(view);
        for (uint32_t i = 0; i < COUNT; i++)
            if (set_of & 1u << i)
                TEST_CHECK(fresh_do(&fresh, 1, flip, &all[i]) == OK);
    }
    for (uint32_t i = 0; i < COUNT; i++)
        TEST_CHECK(fresh_do(&fresh, 1, clear, &all[i]) == OK);
    fresh_close(&fresh);
}

struct moving {
    struct due_entry entry;
    uint64_t to_us;
};

static enum error move(struct txn *txn, uint64_t at_us, void *context)
{
    const struct moving *m = context;
    (void)at_us;
    due_move(txn, &m->entry, m->to_us);
    return OK;
}

static void test_due_moves_with_its_row_or_without_one_that_is_damaged(void)
{
    struct fresh fresh;
    struct moving m = {.entry = entry_of(QUEUE, 1, 10, 1), .to_us = 20};
    struct due_entry wanted = m.entry, found[3];
    uint32_t count;
    fresh_open(&fresh);
    TEST_CHECK(fresh_do(&fresh, 1, set, &m.entry) == OK && fresh_do(&fresh, 1, move, &m) == OK);
    wanted.due_us = 20;
    TEST_CHECK(scan(&fresh, QUEUE, 1, 99, found, 3, &count) == OK && count == 1 && same(&found[0], &wanted));
    m = (struct moving){.entry = wanted, .to_us = 30};
    TEST_CHECK(fresh_do(&fresh, 1, flip, &m.entry) == OK && fresh_do(&fresh, 1, move, &m) == OK);
    wanted.due_us = 30;
    wanted.row = (struct due){.kind = 0};
    TEST_CHECK(scan(&fresh, QUEUE, 1, 99, found, 3, &count) == OK && count == 1 && same(&found[0], &wanted));
    m = (struct moving){.entry = entry_of(QUEUE, 1, 40, 1), .to_us = 30}; /* to where it stands already */
    TEST_CHECK(fresh_do(&fresh, 1, set, &m.entry) == OK && fresh_do(&fresh, 1, move, &m) == OK);
    TEST_CHECK(scan(&fresh, QUEUE, 1, 99, found, 3, &count) == OK && count == 1 && same(&found[0], &wanted));
    TEST_CHECK(fresh_do(&fresh, 1, clear, &wanted) == OK);
    fresh_close(&fresh);
}

TEST_LIST
= {
    {"due: never early, never late, also after opening again", test_due_never_early_and_never_late},
    {"due: the last time and the last shard", test_due_until_the_last_time_there_is},
    {"due: seen where it is set, wakes who waits", test_due_seen_in_the_transaction_that_sets_it_and_wakes},
    {"due: one that has gone is not cleared", test_due_one_that_has_gone_is_not_cleared},
    {"due: random entries against an array", test_due_random_against_an_array},
    {"due: the first shard that has something", test_due_the_first_shard_that_has_something},
    {"due: keys are read whatever their rows say", test_due_keys_are_read_whatever_their_rows_say},
    {"due: moves with its row, or without one that is damaged",
     test_due_moves_with_its_row_or_without_one_that_is_damaged},
    {NULL, NULL},
};
