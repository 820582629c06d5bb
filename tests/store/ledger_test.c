#include "acutest.h"

#include <stdio.h>
#include <sys/resource.h>

#include "store/nouns.h"
#include "store/batch.h"
#include "tests/store/place.h"
#include "tests/support/sanitized.h"
#include "tests/support/spoil.h"

/* I1 to I4: the invariants of idempotency. */

/* ---- one command that does what a test wants ---- */

enum { ONCE, EXPIRE, LOOK, FAIL };
#define STEP_FIELDS(X)                  \
    X(op, U8, 0, 1)                     \
    X(lifetime, U8, 0, 1)               \
    X(limit, U32, 0, 1)                 \
    X(scope, TEXT, LEDGER_SCOPE_MAX, 1) \
    X(key, TEXT, LEDGER_KEY_MAX, 1)     \
    X(digest, DIGEST, 0, 1)
RECORD_STRUCT(step, STEP_FIELDS);
#define step_FIELD(name, TYPE, limit, since) RECORD_FIELD(step, name, TYPE, limit, since)
RECORD_CLASS(step, STEP_FIELDS, 1);

enum { EXECUTIONS = 9100 }; /* a counter: how often something was really done */

struct outcome {
    uint64_t execution; /* which one it was */
    uint32_t removed;
    bool repeated, more;
};

static void (*look)(struct txn *txn);

/* As every command with a key: look first, then do it, and keep what was answered. */
static enum error once(struct txn *txn, uint64_t at_us, const struct step *step, struct outcome *out)
{
    struct ledger row = {.at_us = 77};
    int64_t executions;
    enum error e = ledger_find(txn, at_us, step->scope, step->key, &step->digest, &row);
    if (e == OK) {
        TEST_ASSERT(row.answer.size == sizeof(out->execution));
        memcpy(&out->execution, row.answer.bytes, sizeof(out->execution));
        out->repeated = true;
        return OK;
    }
    TEST_CHECK(row.at_us == 77);
    if (e != ERR_NOT_FOUND)
        return e;
    if (!ledger_room(txn))
        return ERR_LIMIT;
    e = counter_read(txn, EXECUTIONS, span_of(NULL, 0), &executions);
    if (e)
        return e;
    counter_add(txn, EXECUTIONS, span_of(NULL, 0), 1);
    out->execution = (uint64_t)executions + 1;
    ledger_put(txn, step->lifetime, at_us, step->scope, step->key, &step->digest,
               span_of(&out->execution, sizeof(out->execution)));
    return OK;
}

static enum error step_apply(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct step *step = command;
    struct outcome out = {.repeated = false};
    enum error e = OK;
    switch (step->op) {
    case ONCE:
        e = once(txn, at_us, step, &out);
        break;
    case EXPIRE:
        e = ledger_expire(txn, at_us, step->limit, &out.removed, &out.more);
        break;
    case LOOK:
        look(txn);
        break;
    default: /* as when a write fails */
        txn->writes++;
        txn->error = ERR_MEMORY;
    }
    if (e == OK)
        answer_add(answer, &out, sizeof(out));
    return e;
}

static const struct command_class step_class = {
    .name = "test.step", .record = &step_record, .apply = step_apply, .code = 9100};
static const struct command_class *const commands[] = {&step_class};
static const struct schema_table tables[] = {TABLES(SCHEMA_TABLE_ROW)};
static const struct schema schema = {
    .tables = tables, .tables_count = TABLE_COUNT, .commands = commands, .commands_count = 1, .format = 1};

/* ---- a store in a fresh directory ---- */

static char dir[PLACE_PATH_MAX];
static struct store *store;

static enum error try_store_up(uint32_t ledger_max, uint64_t map, char *text, size_t size)
{
    struct store_options options = {
        .environment = {.dir = dir, .map = map, .map_max = 1u << 30, .step = 65536, .reserve = 4096},
        .schema = &schema,
        .ledger_max = ledger_max};
    return store_open(&options, &store, text, size);
}

static void store_up(uint32_t ledger_max)
{
    char text[512];
    enum error e = try_store_up(ledger_max, 1u << 20, text, sizeof(text));
    TEST_ASSERT_(e == OK, "%s", text);
    TEST_ASSERT(store_load(store) == OK);
}

static void begin(uint32_t ledger_max)
{
    place_make(dir);
    store_up(ledger_max);
}

static void reopen(uint32_t ledger_max)
{
    store_close(store);
    store_up(ledger_max);
}

static void end(void)
{
    store_close(store);
    place_remove(dir);
}

/* ---- steps ---- */

#define S   UINT64_C(1000000)
#define DAY (86400 * S)
#define T0  (UINT64_C(1800000000) * S)

static struct step once_of(const char *scope, const char *key, uint8_t digest)
{
    return (struct step){.op = ONCE,
                         .lifetime = LEDGER_DAY,
                         .scope = span_text(scope),
                         .key = span_text(key),
                         .digest = {.bytes = {digest}}};
}

static enum error run_one(const struct step *step, uint64_t at_us, struct outcome *ret_outcome)
{
    struct answer answer;
    enum error e = batch_one(store, &step_class, at_us, step, &answer);
    if (e == OK)
        memcpy(ret_outcome, answer.bytes, sizeof(*ret_outcome));
    return e;
}

static enum error ask(const char *scope, const char *key, uint8_t digest, uint64_t at_us,
                      struct outcome *ret_outcome)
{
    struct step step = once_of(scope, key, digest);
    return run_one(&step, at_us, ret_outcome);
}

static enum error ask_for(enum ledger_lifetime lifetime, const char *key, uint64_t at_us,
                          struct outcome *ret_outcome)
{
    struct step step = once_of("s", key, 1);
    step.lifetime = (uint8_t)lifetime;
    return run_one(&step, at_us, ret_outcome);
}

static enum error expire(uint64_t at_us, uint32_t limit, uint32_t *ret_removed)
{
    struct step step = {.op = EXPIRE, .limit = limit};
    struct outcome out;
    enum error e = run_one(&step, at_us, &out);
    if (e == OK)
        *ret_removed = out.removed;
    return e;
}

static enum error with(void (*f)(struct txn *txn))
{
    struct step step = {.op = LOOK};
    struct outcome out;
    look = f;
    return run_one(&step, 1, &out);
}

static uint64_t rows_in_table;

static void count_rows(struct txn *txn)
{
    rows_in_table = txn_rows(txn, TABLE_LEDGER);
}

/* Table and index agree, and there are so many. */
static void rows_are(uint64_t count)
{
    TEST_CHECK(with(count_rows) == OK);
    TEST_CHECK_(rows_in_table == count, "%llu rows", (unsigned long long)rows_in_table);
    TEST_CHECK_(ledger_index_rows(store->ledger) == count, "%llu in the index",
                (unsigned long long)ledger_index_rows(store->ledger));
}

/* Several in one batch; its outcomes are in items. */
static struct batch_item items[BATCH_MAX];

static enum error run_steps(const struct step *steps, const uint64_t *at_us, size_t count)
{
    static uint8_t bytes[BATCH_MAX][512];
    for (size_t i = 0; i < count; i++) {
        size_t size = record_encode(&step_record, &steps[i], bytes[i], sizeof(bytes[i]));
        TEST_ASSERT(size > 0);
        items[i] =
            (struct batch_item){.class = &step_class, .at_us = at_us[i], .bytes = span_of(bytes[i], size)};
    }
    return batch_run(store, items, count);
}

static struct outcome outcome_of(size_t i)
{
    struct outcome out;
    TEST_ASSERT(items[i].answer.error == OK && items[i].answer.size == sizeof(out));
    memcpy(&out, items[i].answer.bytes, sizeof(out));
    return out;
}

/* ---- I1 to I4 ---- */

static void test_i1_one_execution(void)
{
    struct step steps[64];
    uint64_t at_us[64];
    struct outcome out;
    begin(0);
    for (size_t i = 0; i < 64; i++) {
        steps[i] = once_of("s", "k", 1);
        at_us[i] = T0 + i;
    }
    for (unsigned batch = 0; batch < 3; batch++) {
        TEST_CHECK(run_steps(steps, at_us, 64) == OK);
        for (size_t i = 0; i < 64; i++) {
            out = outcome_of(i);
            TEST_CHECK(out.execution == 1 && out.repeated == (batch > 0 || i > 0));
        }
    }
    TEST_CHECK(ask("s", "other", 1, T0, &out) == OK && out.execution == 2 && !out.repeated);
    rows_are(2);
    end();
}

static void test_i2_another_request(void)
{
    struct outcome out;
    begin(0);
    TEST_CHECK(ask("s", "k", 0, T0, &out) == OK);
    for (size_t i = 0; i < 32; i++) {
        struct step step = once_of("s", "k", 0);
        step.digest.bytes[i] ^= 0x80;
        TEST_CHECK(run_one(&step, T0, &out) == ERR_KEY_REUSED);
    }
    TEST_CHECK(ask("s", "k", 0, T0, &out) == OK && out.repeated && out.execution == 1);
    rows_are(1);
    end();
}

static void test_i3_stored_answers_outlive_the_process(void)
{
    struct outcome out;
    begin(0);
    TEST_CHECK(ask("s", "a", 1, T0, &out) == OK && ask("s", "b", 2, T0, &out) == OK);
    reopen(0);
    rows_are(2);
    TEST_CHECK(ask("s", "a", 1, T0, &out) == OK && out.repeated && out.execution == 1);
    TEST_CHECK(ask("s", "b", 2, T0, &out) == OK && out.repeated && out.execution == 2);
    TEST_CHECK(ask("s", "b", 1, T0, &out) == ERR_KEY_REUSED);
    TEST_CHECK(ask("s", "c", 1, T0, &out) == OK && !out.repeated && out.execution == 3);
    end();
}

/* What an aborted transaction put isn't known afterwards: the same request is done, once. */
static void test_i3_aborted_is_not_answered(void)
{
    static const uint64_t at_us[] = {T0, T0, T0};
    struct step steps[] = {once_of("s", "a", 1), once_of("s", "b", 1), {.op = FAIL}};
    struct outcome out;
    begin(0);
    TEST_CHECK(ask("s", "a", 1, T0, &out) == OK);
    TEST_CHECK(run_steps(steps, at_us, 3) == ERR_MEMORY);
    rows_are(1);
    TEST_CHECK(ask("s", "a", 1, T0, &out) == OK && out.repeated);
    TEST_CHECK(ask("s", "b", 2, T0, &out) == OK && !out.repeated && out.execution == 2);
    rows_are(2);
    end();
}

static void test_i4_scopes(void)
{
    static const char *const pairs[][2] = {{"a", "bc"}, {"ab", "c"}, {"abc", ""},
                                           {"", "abc"}, {"b", "bc"}, {"", ""}};
    enum { PAIRS = sizeof(pairs) / sizeof(pairs[0]) };
    uint64_t hashes[PAIRS];
    struct outcome out;
    begin(0);
    for (size_t i = 0; i < 2 * PAIRS; i++) {
        TEST_CHECK(ask(pairs[i % PAIRS][0], pairs[i % PAIRS][1], 1, T0, &out) == OK);
        TEST_CHECK(out.repeated == (i >= PAIRS) && out.execution == i % PAIRS + 1);
    }
    rows_are(PAIRS);
    for (size_t i = 0; i < PAIRS; i++) {
        hashes[i] = ledger_index_hash(store->ledger, span_text(pairs[i][0]), span_text(pairs[i][1]));
        for (size_t j = 0; j < i; j++)
            TEST_CHECK(hashes[i] != hashes[j]);
    }
    end();
}

/* ---- time ---- */

static void test_time_is_over_at_its_end(void)
{
    static const uint64_t lifetimes[LEDGER_LIFETIME_COUNT] = {
#define X(id, name, seconds) [id] = (seconds)*S,
        LEDGER_LIFETIMES(X)
#undef X
    };
    static const char *const keys[LEDGER_KEPT] = {"d", "w", "q"};
    struct outcome out;
    begin(0);
    for (enum ledger_lifetime i = 0; i < LEDGER_KEPT; i++) {
        uint64_t over = T0 + lifetimes[i];
        TEST_CHECK(ask_for(i, keys[i], T0, &out) == OK && !out.repeated);
        uint64_t first = out.execution;
        TEST_CHECK(ask_for(i, keys[i], over - 1, &out) == OK && out.repeated && out.execution == first);
        TEST_CHECK(ask_for(i, keys[i], over, &out) == OK && !out.repeated && out.execution == first + 1);
        /* A clock that went back finds the new one. */
        TEST_CHECK(ask_for(i, keys[i], over - 1, &out) == OK && out.repeated && out.execution == first + 1);
        rows_are(i + 1u);
    }
    reopen(0);
    rows_are(3);
    TEST_CHECK(ask_for(LEDGER_DAY, "q", T0 + 90 * DAY, &out) == OK && out.repeated && out.execution == 6);
    end();
}

/* One that is kept is there until it is forgotten, and then its key is a new one. */
static void forget_first(struct txn *txn)
{
    ledger_forget(txn, LEDGER_KEPT, 1);
    ledger_forget(txn, LEDGER_KEPT, 7); /* there is none */
}

static void test_what_is_kept_goes_by_name(void)
{
    struct outcome out;
    uint32_t removed = 0;
    begin(0);
    TEST_CHECK(ask_for(LEDGER_KEPT, "k", T0, &out) == OK && !out.repeated);
    TEST_CHECK(ask_for(LEDGER_KEPT, "k", T0 + 4000 * DAY, &out) == OK && out.repeated);
    TEST_CHECK(expire(T0 + 4000 * DAY, 9, &removed) == OK && removed == 0);
    reopen(0);
    rows_are(1);
    TEST_CHECK(with(forget_first) == OK);
    rows_are(0);
    TEST_CHECK(ask_for(LEDGER_KEPT, "k", T0, &out) == OK && !out.repeated);
    rows_are(1);
    end();
}

static void see_times(struct txn *txn)
{
    struct digest digest = {.bytes = {1}};
    struct ledger row;
    TEST_CHECK(ledger_find(txn, T0, span_text("s"), span_text("d"), &digest, &row) == OK);
    TEST_CHECK(row.at_us == T0 && row.expires_us == T0 + DAY && span_equal(row.scope, span_text("s")) &&
               span_equal(row.key, span_text("d")) && row.digest.bytes[0] == 1);
    TEST_CHECK(ledger_find(txn, T0, span_text("s"), span_text("late"), &digest, &row) == OK);
    TEST_CHECK(row.at_us == UINT64_MAX - 5 && row.expires_us == UINT64_MAX);
}

static void test_times_in_the_row(void)
{
    struct outcome out;
    begin(0);
    TEST_CHECK(ask_for(LEDGER_DAY, "d", T0, &out) == OK);
    TEST_CHECK(ask_for(LEDGER_DAY, "late", UINT64_MAX - 5, &out) == OK);
    TEST_CHECK(with(see_times) == OK);
    end();
}

/* The same key again before it was cleaned up, in a transaction that fails: the old row is there again. */
static void test_replaced_row_comes_back(void)
{
    static const uint64_t at_us[] = {T0 + DAY, T0 + DAY};
    struct step steps[] = {once_of("s", "k", 2), {.op = FAIL}};
    struct outcome out;
    begin(0);
    TEST_CHECK(ask("s", "k", 1, T0, &out) == OK);
    TEST_CHECK(run_steps(steps, at_us, 2) == ERR_MEMORY);
    TEST_CHECK(ask("s", "k", 1, T0, &out) == OK && out.repeated && out.execution == 1);
    rows_are(1);
    TEST_CHECK(run_steps(steps, at_us, 1) == OK);
    TEST_CHECK(ask("s", "k", 1, T0, &out) == ERR_KEY_REUSED);
    rows_are(1);
    end();
}

/* ---- cleaning up ---- */

/* Ten each for a day and a week, a second apart. */
static void ten_each(void)
{
    struct outcome out;
    for (uint64_t i = 0; i < 10; i++) {
        char key[2][8];
        snprintf(key[0], sizeof(key[0]), "d%u", (unsigned)i);
        snprintf(key[1], sizeof(key[1]), "w%u", (unsigned)i);
        TEST_CHECK(ask_for(LEDGER_DAY, key[0], T0 + i * S, &out) == OK);
        TEST_CHECK(ask_for(LEDGER_WEEK, key[1], T0 + i * S, &out) == OK);
    }
}

static void test_expire(void)
{
    struct outcome out;
    uint32_t removed = 99;
    begin(0);
    ten_each();
    TEST_CHECK(expire(T0 + DAY - 1, 100, &removed) == OK && removed == 0);
    TEST_CHECK(expire(T0 + DAY, 100, &removed) == OK && removed == 1);
    TEST_CHECK(expire(T0 + DAY + 4 * S, 3, &removed) == OK && removed == 3);
    rows_are(16);
    TEST_CHECK(ask_for(LEDGER_DAY, "d4", T0, &out) == OK && out.repeated);
    TEST_CHECK(expire(T0 + DAY + 4 * S, 3, &removed) == OK && removed == 1);
    TEST_CHECK(ask_for(LEDGER_DAY, "d5", T0, &out) == OK && out.repeated);
    TEST_CHECK(ask_for(LEDGER_DAY, "d0", T0, &out) == OK && !out.repeated);
    rows_are(16);
    /* That last row came with an earlier time and stands behind: it goes when those before it do. */
    TEST_CHECK(expire(T0 + 7 * DAY, 0, &removed) == OK && removed == 0);
    TEST_CHECK(expire(T0 + 7 * DAY, 100, &removed) == OK && removed == 7);
    rows_are(9);
    reopen(0);
    rows_are(9);
    TEST_CHECK(expire(T0 + 8 * DAY, 100, &removed) == OK && removed == 9);
    TEST_CHECK(expire(UINT64_MAX, 100, &removed) == OK && removed == 0);
    rows_are(0);
    end();
}

/* A clock that was ahead by a year: what comes after it goes in its time, and so do its own. */
static void test_rows_that_are_ahead_hold_up_nobody(void)
{
    struct outcome out;
    uint32_t removed = 99;
    begin(0);
    TEST_CHECK(ask_for(LEDGER_DAY, "before", T0 - S, &out) == OK);
    TEST_CHECK(ask_for(LEDGER_DAY, "ahead", T0 + 365 * DAY, &out) == OK);
    TEST_CHECK(ask_for(LEDGER_DAY, "behind", T0, &out) == OK);
    TEST_CHECK(ask_for(LEDGER_DAY, "last", T0 + 2 * DAY, &out) == OK);
    TEST_CHECK(expire(T0 + DAY, 1, &removed) == OK && removed == 1);
    TEST_CHECK(expire(T0 + 2 * DAY, 100, &removed) == OK && removed == 1);
    rows_are(2);
    TEST_CHECK(ask_for(LEDGER_DAY, "ahead", T0 + 2 * DAY, &out) == OK && out.repeated && out.execution == 2);
    TEST_CHECK(ask_for(LEDGER_DAY, "behind", T0 + 2 * DAY, &out) == OK && !out.repeated);
    reopen(0);
    TEST_CHECK(expire(T0 + 3 * DAY, 100, &removed) == OK && removed == 2);
    TEST_CHECK(expire(T0 + 366 * DAY, 100, &removed) == OK && removed == 1);
    rows_are(0);
    end();
}

/* Less than LEDGER_AHEAD_US isn't passed by: those behind it wait for as long. */
static void test_rows_a_little_ahead_keep_their_order(void)
{
    struct outcome out;
    uint32_t removed = 99;
    begin(0);
    TEST_CHECK(ask_for(LEDGER_DAY, "ahead", T0 + LEDGER_AHEAD_US, &out) == OK);
    TEST_CHECK(ask_for(LEDGER_DAY, "behind", T0 - DAY, &out) == OK);
    TEST_CHECK(expire(T0, 100, &removed) == OK && removed == 0);
    TEST_CHECK(expire(T0 + DAY + LEDGER_AHEAD_US, 100, &removed) == OK && removed == 2);
    end();
}

/* Many of them take several looks, and those behind them go all the same; then it begins at the front again. */
static void test_many_rows_that_are_ahead(void)
{
    enum { MANY = 2 * LEDGER_PASS_MAX + 10 };
    struct outcome out;
    uint32_t removed = 0;
    begin(0);
    for (uint32_t i = 0; i < MANY + 3; i++) {
        char key[12];
        snprintf(key, sizeof(key), "%u", i);
        TEST_CHECK(ask_for(LEDGER_DAY, key, i < MANY ? T0 + 365 * DAY : T0, &out) == OK);
    }
    for (uint32_t look_again = 0; look_again < 2; look_again++)
        TEST_CHECK(expire(T0 + DAY, 100, &removed) == OK && removed == 0);
    reopen(0);
    TEST_CHECK(expire(T0 + DAY, 2, &removed) == OK && removed == 2);
    TEST_CHECK(expire(T0 + DAY, 2, &removed) == OK && removed == 1);
    rows_are(MANY);
    for (uint32_t left = MANY; left > 0; left -= removed) {
        TEST_CHECK(expire(T0 + 366 * DAY, LEDGER_EXPIRE_MAX, &removed) == OK);
        if (!TEST_CHECK(removed == (left < LEDGER_EXPIRE_MAX ? left : LEDGER_EXPIRE_MAX)))
            break;
    }
    rows_are(0);
    end();
}

/* Looks until one has nothing more to do. */
static uint32_t looks_of_a_round(uint64_t at_us)
{
    struct step step = {.op = EXPIRE, .limit = LEDGER_EXPIRE_MAX};
    struct outcome out = {.more = true};
    uint32_t looks = 0;
    for (; looks < 100 && out.more; looks++)
        TEST_CHECK(run_one(&step, at_us, &out) == OK && out.removed == 0);
    return looks;
}

/* A round ends with the longest way, and isn't drawn out by who has come to his end before: three looks and two aren't six. */
static void test_rows_that_are_ahead_of_several_lifetimes(void)
{
    enum { DAYS = 2 * LEDGER_PASS_MAX + 10, WEEKS = LEDGER_PASS_MAX + 10 };
    struct outcome out;
    uint32_t removed = 0;
    begin(0);
    for (uint32_t i = 0; i < DAYS + WEEKS; i++) {
        char key[12];
        snprintf(key, sizeof(key), "%u", i);
        TEST_CHECK(ask_for(i < DAYS ? LEDGER_DAY : LEDGER_WEEK, key, T0 + 365 * DAY, &out) == OK);
    }
    for (uint32_t round = 0; round < 3; round++)
        TEST_CHECK(looks_of_a_round(T0 + DAY) == 3);
    TEST_CHECK(ask_for(LEDGER_QUARTER, "over", T0 - 90 * DAY, &out) == OK);
    TEST_CHECK(expire(T0 + DAY, 100, &removed) == OK && removed == 1);
    TEST_CHECK(ask_for(LEDGER_QUARTER, "over", T0 - 90 * DAY, &out) == OK); /* in the middle of a round */
    TEST_CHECK(expire(T0 + DAY, 100, &removed) == OK && removed == 1);
    rows_are(DAYS + WEEKS);
    end();
}

static void test_aborted_expire_comes_back(void)
{
    static const uint64_t at_us[] = {T0 + 30 * DAY, T0 + 30 * DAY, T0 + 30 * DAY};
    struct step steps[] = {{.op = EXPIRE, .limit = 13}, once_of("s", "new", 1), {.op = FAIL}};
    struct outcome out;
    begin(0);
    ten_each();
    TEST_CHECK(run_steps(steps, at_us, 3) == ERR_MEMORY);
    rows_are(20);
    TEST_CHECK(ask_for(LEDGER_DAY, "d0", T0, &out) == OK && out.repeated && out.execution == 1);
    TEST_CHECK(ask_for(LEDGER_WEEK, "w2", T0, &out) == OK && out.repeated && out.execution == 6);
    TEST_CHECK(run_steps(steps, at_us, 2) == OK && outcome_of(0).removed == 13);
    rows_are(8);
    end();
}

/* ---- the limit ---- */

static void test_limit(void)
{
    struct outcome out;
    uint32_t removed;
    begin(3);
    TEST_CHECK(ask("s", "1", 1, T0, &out) == OK && ask("s", "2", 1, T0, &out) == OK);
    TEST_CHECK(ask("s", "3", 1, T0, &out) == OK);
    TEST_CHECK(ask("s", "4", 1, T0, &out) == ERR_LIMIT);
    TEST_CHECK(ask("s", "2", 1, T0, &out) == OK && out.repeated); /* repeats are always answered */
    TEST_CHECK(ask("s", "2", 2, T0, &out) == ERR_KEY_REUSED);
    rows_are(3);
    TEST_CHECK(expire(T0 + DAY, 1, &removed) == OK && removed == 1);
    TEST_CHECK(ask("s", "4", 1, T0, &out) == OK && !out.repeated && out.execution == 4);
    TEST_CHECK(ask("s", "5", 1, T0, &out) == ERR_LIMIT);
    reopen(2); /* lowered: what is there is known, nothing is added */
    rows_are(3);
    TEST_CHECK(ask("s", "4", 1, T0, &out) == OK && out.repeated);
    TEST_CHECK(ask("s", "5", 1, T0, &out) == ERR_LIMIT);
    TEST_CHECK(expire(T0 + DAY, 2, &removed) == OK && removed == 2);
    TEST_CHECK(ask("s", "5", 1, T0, &out) == OK && ask("s", "6", 1, T0, &out) == ERR_LIMIT);
    end();
}

static void test_limit_within_a_batch(void)
{
    struct step steps[5];
    char keys[5][2];
    static const uint64_t at_us[5] = {T0, T0, T0, T0, T0};
    begin(3);
    for (size_t i = 0; i < 5; i++) {
        snprintf(keys[i], sizeof(keys[i]), "%u", (unsigned)i);
        steps[i] = once_of("s", keys[i], 1);
    }
    TEST_CHECK(run_steps(steps, at_us, 5) == OK);
    for (size_t i = 0; i < 5; i++)
        TEST_CHECK(items[i].answer.error == (i < 3 ? OK : ERR_LIMIT));
    rows_are(3);
    end();
}

static void put_two_without_asking(struct txn *txn)
{
    struct digest digest = {.bytes = {1}};
    ledger_put(txn, LEDGER_DAY, T0, span_text("s"), span_text("1"), &digest, span_of(NULL, 0));
    ledger_put(txn, LEDGER_DAY, T0, span_text("s"), span_text("2"), &digest, span_of(NULL, 0));
}

static void put_the_same_twice(struct txn *txn)
{
    struct digest digest = {.bytes = {1}};
    ledger_put(txn, LEDGER_DAY, T0, span_text("s"), span_text("1"), &digest, span_of(NULL, 0));
    ledger_put(txn, LEDGER_DAY, T0 + DAY - 1, span_text("s"), span_text("1"), &digest, span_of(NULL, 0));
}

struct puts {
    uint32_t ledger_max;
    void (*f)(struct txn *txn);
};

static int put(void *arg)
{
    struct puts *puts = arg;
    store_up(puts->ledger_max);
    with(puts->f);
    store_close(store);
    return 0;
}

/* In a process of its own; its exit status. */
static int put_apart(uint32_t ledger_max, void (*f)(struct txn *txn))
{
    struct puts puts = {.ledger_max = ledger_max, .f = f};
    place_make(dir);
    int status = place_apart(put, &puts);
    place_remove(dir);
    return status;
}

static void test_putting_without_asking_is_a_bug(void)
{
    TEST_CHECK(put_apart(1, put_two_without_asking) == 70);
    TEST_CHECK(put_apart(2, put_two_without_asking) == 0);
    TEST_CHECK(put_apart(2, put_the_same_twice) == 70);
}

/* ---- damage, and rows that aren't what the index takes them for ---- */

static struct key row_key(uint8_t lifetime, uint64_t row)
{
    struct key key = {.size = 0};
    key_add_u8(&key, lifetime);
    key_add_u64(&key, row);
    return key;
}

static void flip(struct txn *txn, uint8_t lifetime, uint64_t row)
{
    uint8_t bytes[256];
    struct key key = row_key(lifetime, row);
    MDB_val k = {.mv_size = key.size, .mv_data = key.bytes}, v;
    MDB_dbi dbi = store->environment.tables[TABLE_LEDGER];
    TEST_ASSERT(mdb_get(txn->mdb, dbi, &k, &v) == 0 && v.mv_size <= sizeof(bytes));
    memcpy(bytes, v.mv_data, v.mv_size);
    bytes[v.mv_size - 1] ^= 1;
    v.mv_data = bytes;
    TEST_ASSERT(mdb_put(txn->mdb, dbi, &k, &v, 0) == 0);
    txn->writes++;
}

static void flip_third_of_a_day(struct txn *txn)
{
    flip(txn, LEDGER_DAY, 3);
}

static void load_another(struct txn *txn)
{
    struct ledger_index *index;
    TEST_ASSERT(ledger_index_create(100, store->secret, &index) == OK);
    TEST_CHECK(ledger_index_load(index, txn) == ERR_DAMAGED);
    ledger_index_destroy(index);
}

static void put_row_of_no_lifetime(struct txn *txn)
{
    struct key key = row_key(LEDGER_LIFETIME_COUNT, 1);
    struct ledger row = {.at_us = T0, .expires_us = T0, .scope = span_text("s"), .key = span_text("k")};
    txn_write(txn, TABLE_LEDGER, key_span(&key), &row);
}

static void test_a_row_of_no_lifetime_is_damage(void)
{
    begin(0);
    ten_each();
    TEST_CHECK(with(put_row_of_no_lifetime) == OK && with(load_another) == OK);
    end();
}

static void test_damage_is_told(void)
{
    struct outcome out;
    uint32_t removed = 99;
    char text[512];
    begin(0);
    ten_each();
    TEST_CHECK(with(flip_third_of_a_day) == OK);
    TEST_CHECK(ask_for(LEDGER_DAY, "d2", T0, &out) == ERR_DAMAGED); /* and not: never heard of */
    TEST_CHECK(ask_for(LEDGER_DAY, "d3", T0, &out) == OK && out.repeated);
    TEST_CHECK(with(load_another) == OK);
    rows_are(20);
    /* What stands before it goes, and so do other lifetimes; then there is nothing left but to say it. */
    TEST_CHECK(expire(T0 + DAY + 9 * S, 100, &removed) == OK && removed == 2);
    TEST_CHECK(expire(T0 + 7 * DAY, 100, &removed) == OK && removed == 1);
    removed = 99;
    TEST_CHECK(expire(T0 + 7 * DAY, 100, &removed) == ERR_DAMAGED && removed == 99);
    rows_are(17);
    store_close(store);
    store = NULL;
    TEST_CHECK(try_store_up(0, 1u << 20, text, sizeof(text)) == ERR_DAMAGED);
    TEST_CHECK(store == NULL);
    place_remove(dir);
}

static struct key passed_key(void)
{
    static const uint8_t lifetime = LEDGER_DAY;
    return counter_key(COUNTER_LEDGER_PASSED, span_of(&lifetime, 1));
}

static void pass_no_row(struct txn *txn)
{
    struct key key = passed_key();
    txn_write(txn, TABLE_COUNTERS, key_span(&key), &(struct counter){.value = -5});
}

static void see_pass_no_row(struct txn *txn)
{
    struct key key = passed_key();
    struct counter counter;
    TEST_CHECK(txn_read(txn, TABLE_COUNTERS, key_span(&key), &counter) == OK && counter.value == -5);
}

/* Where the last look ended is none of the ledger's rows: each begins at the front, and what is over goes. */
static void test_a_look_that_ended_nowhere(void)
{
    struct outcome out;
    uint32_t removed = 99;
    begin(0);
    TEST_CHECK(with(pass_no_row) == OK);
    TEST_CHECK(ask_for(LEDGER_DAY, "ahead", T0 + 365 * DAY, &out) == OK);
    TEST_CHECK(ask_for(LEDGER_DAY, "over", T0, &out) == OK);
    TEST_CHECK(expire(T0 + DAY, 100, &removed) == OK && removed == 1);
    TEST_CHECK(with(see_pass_no_row) == OK);
    rows_are(1);
    end();
}

static void flip_passed(struct txn *txn)
{
    struct key key = passed_key();
    spoil_value(txn, TABLE_COUNTERS, key_span(&key));
}

/* Where it ended nobody knows: what is over goes all the same, and when nothing is the damage is told. */
static void test_a_look_that_ended_nobody_knows_where(void)
{
    struct outcome out;
    uint32_t removed = 99;
    begin(0);
    TEST_CHECK(with(pass_no_row) == OK && with(flip_passed) == OK);
    TEST_CHECK(ask_for(LEDGER_DAY, "over", T0, &out) == OK);
    TEST_CHECK(expire(T0, 100, &removed) == ERR_DAMAGED && removed == 99);
    TEST_CHECK(expire(T0 + DAY, 100, &removed) == OK && removed == 1);
    TEST_CHECK(expire(T0 + DAY, 100, &removed) == ERR_DAMAGED);
    end();
}

static void flip_week_behind_a_look(struct txn *txn)
{
    flip(txn, LEDGER_WEEK, LEDGER_PASS_MAX + 5);
}

/* Who comes to damage isn't on the way any more: nobody waits for that. Of those who are others wait for the end. */
static void test_damage_on_the_way_holds_up_nobody(void)
{
    enum { MANY_AHEAD = LEDGER_PASS_MAX + 10 };
    static const enum ledger_lifetime lifetimes[] = {LEDGER_WEEK, LEDGER_DAY, LEDGER_QUARTER};
    struct step step = {.op = EXPIRE, .limit = LEDGER_EXPIRE_MAX};
    struct outcome out;
    begin(0);
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t row = 0; row < MANY_AHEAD; row++) {
            char key[12];
            snprintf(key, sizeof(key), "%u.%u", i, row);
            TEST_CHECK(ask_for(lifetimes[i], key, T0 + 365 * DAY, &out) == OK);
        }
        if (i == 1)
            TEST_CHECK(with(flip_week_behind_a_look) == OK);
        if (i < 2) /* the weeks are on their way, and then the days are */
            TEST_CHECK(run_one(&step, T0 + DAY, &out) == OK && out.removed == 0 && out.more);
    }
    TEST_CHECK(run_one(&step, T0 + DAY, &out) == OK &&
               !out.more); /* the days' end; the quarters have waited */
    TEST_CHECK(run_one(&step, T0 + DAY, &out) == OK && out.more);
    rows_are(3 * MANY_AHEAD);
    end();
}

static void make_row_1(struct txn *txn, const char *scope, const char *name)
{
    struct key key = row_key(LEDGER_DAY, 1);
    struct ledger row = {.at_us = T0,
                         .expires_us = T0 + DAY,
                         .scope = span_text(scope),
                         .key = span_text(name),
                         .answer = span_text("12345678")};
    txn_write(txn, TABLE_LEDGER, key_span(&key), &row);
}

/* The row that the index has for key 1 becomes one of key X, or of another scope: as when both had the same 64 bits. */
static void make_another_of_it(struct txn *txn)
{
    make_row_1(txn, "s", "X");
}

static void make_another_scope_of_it(struct txn *txn)
{
    make_row_1(txn, "t", "1");
}

static void test_equal_hashes(void)
{
    struct outcome out;
    uint32_t removed;
    begin(0);
    TEST_CHECK(ask("s", "1", 1, T0, &out) == OK && out.execution == 1);
    TEST_CHECK(with(make_another_of_it) == OK);
    TEST_CHECK(ask("s", "1", 2, T0, &out) == OK && !out.repeated && out.execution == 2);
    TEST_CHECK(ask("s", "1", 2, T0, &out) == OK && out.repeated && out.execution == 2);
    TEST_CHECK(ask("s", "1", 1, T0, &out) == ERR_KEY_REUSED);
    rows_are(2);
    reopen(0); /* now each by its own hash */
    TEST_CHECK(ask("s", "1", 2, T0, &out) == OK && out.repeated && out.execution == 2);
    TEST_CHECK(ask("s", "X", 0, T0, &out) == OK && out.repeated);
    TEST_CHECK(expire(T0 + DAY, 10, &removed) == OK && removed == 2);
    rows_are(0);
    end();
}

static void test_equal_hashes_of_scopes(void)
{
    struct outcome out;
    begin(0);
    TEST_CHECK(ask("s", "1", 1, T0, &out) == OK && out.execution == 1);
    TEST_CHECK(with(make_another_scope_of_it) == OK);
    TEST_CHECK(ask("s", "1", 2, T0, &out) == OK && !out.repeated && out.execution == 2);
    reopen(0);
    TEST_CHECK(ask("t", "1", 0, T0, &out) == OK && out.repeated);
    TEST_CHECK(ask("s", "1", 2, T0, &out) == OK && out.repeated && out.execution == 2);
    end();
}

static void take_row_away(struct txn *txn)
{
    struct key key = row_key(LEDGER_DAY, 1);
    txn_remove(txn, TABLE_LEDGER, key_span(&key));
}

static void test_a_row_that_is_gone_is_damage(void)
{
    struct outcome out;
    begin(0);
    TEST_CHECK(ask("s", "1", 1, T0, &out) == OK);
    TEST_CHECK(with(take_row_away) == OK);
    TEST_CHECK(ask("s", "1", 1, T0, &out) == ERR_DAMAGED);
    end();
}

/* ---- what can't be put fails its whole transaction: an answer whose key nobody kept would be given twice ---- */

static void flip_last_number(struct txn *txn)
{
    static const uint8_t lifetime = LEDGER_DAY;
    struct key key = counter_key(COUNTER_LEDGER_NEXT, span_of(&lifetime, 1));
    spoil_value(txn, TABLE_COUNTERS, key_span(&key));
}

static void test_i1_a_key_that_gets_no_number_fails_what_was_done_with_it(void)
{
    struct outcome out;
    begin(0);
    TEST_CHECK(ask("s", "1", 1, T0, &out) == OK && out.execution == 1);
    TEST_CHECK(with(flip_last_number) == OK);
    TEST_CHECK(ask("s", "2", 1, T0, &out) == ERR_DAMAGED);
    rows_are(1);
    TEST_CHECK(with(flip_last_number) == OK);
    TEST_CHECK(ask("s", "2", 1, T0, &out) == OK && !out.repeated && out.execution == 2);
    rows_are(2);
    end();
}

static void flip_first_of_a_day(struct txn *txn)
{
    flip(txn, LEDGER_DAY, 1);
}

static void put_without_looking(struct txn *txn)
{
    const struct digest digest = {.bytes = {1}};
    TEST_CHECK(ledger_put(txn, LEDGER_DAY, T0 + DAY, span_text("s"), span_text("1"), &digest,
                          span_of(NULL, 0)) == 0);
}

static void test_i1_nothing_is_put_beside_a_row_that_cannot_be_read(void)
{
    struct outcome out;
    begin(0);
    TEST_CHECK(ask("s", "1", 1, T0, &out) == OK);
    TEST_CHECK(with(flip_first_of_a_day) == OK);
    TEST_CHECK(with(put_without_looking) == ERR_DAMAGED);
    rows_are(1);
    TEST_CHECK(with(flip_first_of_a_day) == OK);
    TEST_CHECK(ask("s", "1", 1, T0, &out) == OK && out.repeated);
    end();
}

/* ---- the index under load ---- */

enum { MANY = 20 * BATCH_MAX };

/* Asks for the keys from..from+count-1 at once, the odd ones for a week. */
static enum error ask_many(uint32_t from, uint32_t count)
{
    static char names[BATCH_MAX][16];
    static struct step steps[BATCH_MAX];
    static uint64_t at_us[BATCH_MAX];
    for (uint32_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof(names[i]), "%u", from + i);
        steps[i] = once_of("many", names[i], 1);
        steps[i].lifetime = (from + i) % 2 ? LEDGER_WEEK : LEDGER_DAY;
        at_us[i] = T0;
    }
    return run_steps(steps, at_us, count);
}

static bool days_are_gone;

static void see_many(struct txn *txn)
{
    static const struct digest digest = {.bytes = {1}};
    for (uint64_t i = 0; i < MANY; i++) {
        char name[16];
        struct ledger row;
        uint64_t execution = i + 1;
        snprintf(name, sizeof(name), "%u", (unsigned)i);
        enum error e = ledger_find(txn, T0, span_text("many"), span_text(name), &digest, &row);
        if (days_are_gone && i % 2 == 0)
            TEST_CHECK(e == ERR_NOT_FOUND);
        else
            TEST_CHECK(e == OK && span_equal(row.answer, span_of(&execution, sizeof(execution))));
    }
}

static void test_many_rows(void)
{
    uint32_t removed, all = 0;
    begin(0);
    days_are_gone = false;
    for (uint32_t from = 0; from < MANY; from += BATCH_MAX)
        TEST_CHECK(ask_many(from, BATCH_MAX) == OK);
    TEST_CHECK(store->environment.map > 1u << 20); /* it was full in between */
    rows_are(MANY);
    TEST_CHECK(with(see_many) == OK);
    reopen(0);
    rows_are(MANY);
    TEST_CHECK(with(see_many) == OK);
    while (expire(T0 + DAY, UINT32_MAX, &removed) == OK && removed > 0) {
        TEST_CHECK(removed <= LEDGER_EXPIRE_MAX);
        all += removed;
    }
    TEST_CHECK(all == MANY / 2);
    days_are_gone = true;
    rows_are(MANY / 2);
    TEST_CHECK(with(see_many) == OK);
    reopen(0);
    TEST_CHECK(with(see_many) == OK);
    end();
}

/* Keys whose hashes belong to the last slots of any table: what doesn't fit there goes on at its beginning. */
enum { CHAIN = 24 };
static char chain[CHAIN][16];
static bool chain_gone[CHAIN];

static void name_the_chain(void)
{
    unsigned number = 0;
    for (size_t i = 0; i < CHAIN; number++) {
        snprintf(chain[i], sizeof(chain[i]), "%u", number);
        i += ledger_index_hash(store->ledger, span_text("s"), span_text(chain[i])) >> 48 >= 0xfff0;
    }
}

static void see_chain(struct txn *txn)
{
    static const struct digest digest = {.bytes = {1}};
    for (size_t i = 0; i < CHAIN; i++) {
        struct ledger row;
        enum error e = ledger_find(txn, T0, span_text("s"), span_text(chain[i]), &digest, &row);
        TEST_CHECK(e == (chain_gone[i] ? ERR_NOT_FOUND : OK));
    }
}

/* The oldest one of the shortest lifetime. */
static void chain_lose_one(void)
{
    for (unsigned lifetime = 0; lifetime < LEDGER_LIFETIME_COUNT; lifetime++) {
        for (size_t i = 0; i < CHAIN; i++) {
            if (i * 7 % 3 == lifetime && !chain_gone[i]) {
                chain_gone[i] = true;
                return;
            }
        }
    }
}

static void test_a_chain_around_the_end(void)
{
    static const uint64_t at_us[] = {T0 + 90 * DAY, T0 + 90 * DAY};
    struct step steps[] = {{.op = EXPIRE, .limit = 9}, {.op = FAIL}};
    struct outcome out;
    uint32_t removed;
    begin(0);
    name_the_chain();
    memset(chain_gone, 0, sizeof(chain_gone));
    for (size_t i = 0; i < CHAIN; i++)
        TEST_CHECK(ask_for((enum ledger_lifetime)(i * 7 % 3), chain[i], T0, &out) == OK && !out.repeated);
    for (uint64_t left = CHAIN; left > 0; left--) {
        rows_are(left);
        TEST_CHECK(with(see_chain) == OK);
        TEST_CHECK(run_steps(steps, at_us, 2) == ERR_MEMORY); /* out and in again, in another order */
        TEST_CHECK(with(see_chain) == OK);
        TEST_CHECK(expire(T0 + 90 * DAY, 1, &removed) == OK && removed == 1);
        chain_lose_one();
    }
    TEST_CHECK(with(see_chain) == OK);
    rows_are(0);
    end();
}

static uint64_t mapped_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    unsigned long long pages = 0;
    TEST_ASSERT(f && fscanf(f, "%llu", &pages) == 1);
    fclose(f);
    return pages * 4096;
}

/* 2^16 slots would become 2^17 with the next batch: 2 MiB, of which only one can be had. */
static void test_no_memory_for_a_larger_index(void)
{
    enum { SLOTS = 1 << 16, BEFORE = SLOTS / 2 - 4 * BATCH_MAX, MOST = SLOTS / 4 * 3 };
    struct rlimit limit, narrow;
    char text[512];
    uint32_t from;
    if (SANITIZED)
        return; /* a sanitizer needs memory of its own */
    place_make(dir);
    TEST_ASSERT_(try_store_up(0, 64u << 20, text, sizeof(text)) == OK, "%s", text);
    for (from = 0; from < BEFORE; from += BATCH_MAX)
        TEST_CHECK(ask_many(from, BATCH_MAX) == OK);
    TEST_ASSERT(getrlimit(RLIMIT_AS, &limit) == 0);
    narrow = (struct rlimit){.rlim_cur = mapped_bytes() + (1u << 20), .rlim_max = limit.rlim_max};
    TEST_ASSERT(setrlimit(RLIMIT_AS, &narrow) == 0);
    for (; from < MOST; from += BATCH_MAX) {
        TEST_CHECK(ask_many(from, BATCH_MAX) == OK);
        for (size_t i = 0; i < BATCH_MAX; i++)
            TEST_CHECK(items[i].answer.error == OK);
    }
    TEST_CHECK(ask_many(from - 1, 2) == OK);
    TEST_CHECK(outcome_of(0).repeated && items[1].answer.error == ERR_LIMIT);
    TEST_ASSERT(setrlimit(RLIMIT_AS, &limit) == 0);
    TEST_CHECK(ask_many(from - 1, 2) == OK);
    TEST_CHECK(outcome_of(0).repeated && !outcome_of(1).repeated);
    rows_are(MOST + 1);
    end();
}

static void load_without_memory(struct txn *txn)
{
    struct rlimit limit, narrow;
    struct ledger_index *index;
    TEST_ASSERT(ledger_index_create(1u << 20, store->secret, &index) == OK);
    TEST_ASSERT(getrlimit(RLIMIT_AS, &limit) == 0);
    narrow = (struct rlimit){.rlim_cur = mapped_bytes() + (64u << 10), .rlim_max = limit.rlim_max};
    TEST_ASSERT(setrlimit(RLIMIT_AS, &narrow) == 0);
    enum error e = ledger_index_load(index, txn);
    TEST_ASSERT(setrlimit(RLIMIT_AS, &limit) == 0);
    TEST_CHECK_(e == ERR_MEMORY, "%s", error_name(e));
    ledger_index_destroy(index);
}

/* 2^13 slots are there at first, and 2^14 of 16 bytes each can't be had. */
static void test_no_memory_for_the_index_of_what_is_there(void)
{
    if (SANITIZED)
        return;
    begin(0);
    for (uint32_t from = 0; from <= 1u << 12; from += BATCH_MAX)
        TEST_CHECK(ask_many(from, BATCH_MAX) == OK);
    TEST_CHECK(with(load_without_memory) == OK);
    end();
}

/* ---- random operations against a plain array ---- */

#define KEYS     80 /* in two scopes; more than there is room for */
#define ROWS_MAX 30
#define ROUNDS   1500
#define STEPS    24

struct known {
    uint64_t number, execution, expires_us;
    uint32_t key;
    uint8_t lifetime, digest;
};

static struct model {
    struct known rows[ROWS_MAX]; /* in the order in which they came */
    uint32_t count;
    uint64_t executions, next[LEDGER_LIFETIME_COUNT];
} model, attempt;

static uint64_t now_us, chance_state;
static uint32_t reached[5]; /* new, repeated, another request, limit, replaced */

static uint32_t chance(uint32_t count)
{
    chance_state = chance_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((chance_state >> 33) % count);
}

static const char *scope_of(uint32_t key)
{
    return key % 2 ? "tenant-b" : "tenant-a";
}

static const char *name_of(uint32_t key)
{
    static char names[KEYS][16];
    snprintf(names[key], sizeof(names[key]), "key-%u", key / 2);
    return names[key];
}

static void model_take(struct model *m, uint32_t i)
{
    memmove(&m->rows[i], &m->rows[i + 1], (--m->count - i) * sizeof(m->rows[0]));
}

static uint32_t model_find(const struct model *m, uint32_t key)
{
    for (uint32_t i = 0; i < m->count; i++)
        if (m->rows[i].key == key)
            return i;
    return UINT32_MAX;
}

static enum error model_once(struct model *m, struct known want, struct outcome *out)
{
    uint32_t there = model_find(m, want.key);
    static const uint64_t lifetimes[] = {DAY, 7 * DAY, 90 * DAY};
    if (there < m->count && now_us < m->rows[there].expires_us) {
        bool same = m->rows[there].digest == want.digest;
        reached[same ? 1 : 2]++;
        *out = (struct outcome){.execution = m->rows[there].execution, .repeated = true};
        return same ? OK : ERR_KEY_REUSED;
    }
    if (m->count == ROWS_MAX) {
        reached[3]++;
        return ERR_LIMIT;
    }
    reached[there < m->count ? 4 : 0]++;
    if (there < m->count)
        model_take(m, there);
    want.number = ++m->next[want.lifetime];
    want.execution = ++m->executions;
    want.expires_us = now_us + lifetimes[want.lifetime];
    m->rows[m->count++] = want;
    *out = (struct outcome){.execution = want.execution};
    return OK;
}

static void model_expire(struct model *m, uint32_t limit, struct outcome *out)
{
    *out = (struct outcome){.removed = 0};
    for (uint8_t lifetime = 0; lifetime < LEDGER_LIFETIME_COUNT; lifetime++) {
        for (uint32_t i = 0; i < m->count && out->removed < limit;) {
            if (m->rows[i].lifetime != lifetime) {
                i++;
                continue;
            }
            if (now_us < m->rows[i].expires_us)
                break;
            model_take(m, i);
            out->removed++;
        }
    }
}

static void time_passes(void)
{
    static const uint64_t jumps[] = {0, 1, S, 1000 * S, DAY / 3, 3 * DAY, 40 * DAY};
    now_us += jumps[chance(chance(10) ? 4 : 7)];
    if (chance(20) == 0)
        now_us -= 500 * S; /* clocks do that, too */
}

static enum error draw(struct step *step, struct outcome *out)
{
    struct known want = {
        .key = chance(KEYS), .digest = chance(8) == 0, .lifetime = (uint8_t)chance(LEDGER_KEPT)};
    time_passes();
    if (chance(8) == 0) {
        *step = (struct step){.op = EXPIRE, .limit = chance(10)};
        model_expire(&attempt, step->limit, out);
        return OK;
    }
    *step = once_of(scope_of(want.key), name_of(want.key), want.digest);
    step->lifetime = want.lifetime;
    return model_once(&attempt, want, out);
}

/* Every row lies where it should, every key is answered as it should be, and nothing else is there. */
static void see_model(struct txn *txn)
{
    TEST_CHECK(txn_rows(txn, TABLE_LEDGER) == model.count);
    TEST_CHECK(ledger_index_rows(store->ledger) == model.count);
    for (uint32_t i = 0; i < model.count; i++) {
        struct key at = row_key(model.rows[i].lifetime, model.rows[i].number);
        struct ledger row;
        TEST_CHECK(txn_read(txn, TABLE_LEDGER, key_span(&at), &row) == OK &&
                   span_equal(row.key, span_text(name_of(model.rows[i].key))) &&
                   row.expires_us == model.rows[i].expires_us);
    }
    for (uint32_t key = 0; key < KEYS; key++) {
        uint32_t there = model_find(&model, key);
        bool live = there < model.count && now_us < model.rows[there].expires_us;
        struct digest digest = {.bytes = {live ? model.rows[there].digest : 0}};
        struct ledger row;
        enum error e =
            ledger_find(txn, now_us, span_text(scope_of(key)), span_text(name_of(key)), &digest, &row);
        TEST_CHECK(e == (live ? OK : ERR_NOT_FOUND));
        if (e == OK)
            TEST_CHECK(span_equal(row.answer, span_of(&model.rows[there].execution, 8)));
    }
}

static void random_round(void)
{
    struct step steps[STEPS];
    uint64_t at_us[STEPS], before = now_us;
    enum error expected[STEPS];
    struct outcome outcomes[STEPS];
    size_t count = 1 + chance(STEPS - 1);
    bool doomed = chance(4) == 0;
    attempt = model;
    for (size_t i = 0; i < count; i++) {
        expected[i] = draw(&steps[i], &outcomes[i]);
        at_us[i] = now_us;
    }
    if (doomed)
        steps[chance((uint32_t)count)] = (struct step){.op = FAIL};
    TEST_CHECK(run_steps(steps, at_us, count) == (doomed ? ERR_MEMORY : OK));
    if (doomed) {
        now_us = before;
        return;
    }
    model = attempt;
    for (size_t i = 0; i < count; i++) {
        TEST_CHECK(items[i].answer.error == expected[i]);
        if (expected[i])
            continue;
        struct outcome got = outcome_of(i);
        TEST_CHECK(got.execution == outcomes[i].execution && got.removed == outcomes[i].removed &&
                   got.repeated == outcomes[i].repeated);
    }
}

static void test_random_against_an_array(void)
{
    begin(ROWS_MAX);
    chance_state = 5;
    now_us = T0;
    model = (struct model){.count = 0};
    for (unsigned round = 1; round <= ROUNDS; round++) {
        random_round();
        if (round % 50 == 0)
            reopen(ROWS_MAX);
        if (round % 5 == 0)
            TEST_CHECK(with(see_model) == OK);
    }
    for (size_t i = 0; i < sizeof(reached) / sizeof(reached[0]); i++)
        TEST_CHECK_(reached[i] > 100, "%zu was reached %u times", i, reached[i]);
    end();
}

TEST_LIST
= {
    {"I1: many requests with one key are one execution", test_i1_one_execution},
    {"I2: the key with another request is refused", test_i2_another_request},
    {"I3: stored answers outlive the process", test_i3_stored_answers_outlive_the_process},
    {"I3: what was aborted is not answered", test_i3_aborted_is_not_answered},
    {"I4: scopes are apart", test_i4_scopes},
    {"I1-I4: random operations, aborts and restarts against an array", test_random_against_an_array},
    {"time is over at its end", test_time_is_over_at_its_end},
    {"what is kept goes by name", test_what_is_kept_goes_by_name},
    {"times in the row", test_times_in_the_row},
    {"a replaced row comes back with the abort", test_replaced_row_comes_back},
    {"expiry from the front of each lifetime", test_expire},
    {"rows that are ahead hold up nobody", test_rows_that_are_ahead_hold_up_nobody},
    {"rows a little ahead keep their order", test_rows_a_little_ahead_keep_their_order},
    {"many rows that are ahead", test_many_rows_that_are_ahead},
    {"rows that are ahead, of several lifetimes", test_rows_that_are_ahead_of_several_lifetimes},
    {"aborted expiry comes back", test_aborted_expire_comes_back},
    {"limit", test_limit},
    {"limit within a batch", test_limit_within_a_batch},
    {"putting without asking is a bug", test_putting_without_asking_is_a_bug},
    {"damage is told", test_damage_is_told},
    {"damage on the way holds up nobody", test_damage_on_the_way_holds_up_nobody},
    {"a row of no lifetime is damage", test_a_row_of_no_lifetime_is_damage},
    {"a look that ended nowhere", test_a_look_that_ended_nowhere},
    {"a look that ended nobody knows where", test_a_look_that_ended_nobody_knows_where},
    {"equal hashes", test_equal_hashes},
    {"equal hashes of scopes", test_equal_hashes_of_scopes},
    {"a row that is gone is damage", test_a_row_that_is_gone_is_damage},
    {"I1: a key that gets no number fails what was done with it",
     test_i1_a_key_that_gets_no_number_fails_what_was_done_with_it},
    {"I1: nothing is put beside a row that can't be read",
     test_i1_nothing_is_put_beside_a_row_that_cannot_be_read},
    {"many rows: the index doubles, the map is full in between", test_many_rows},
    {"a chain around the end of the index", test_a_chain_around_the_end},
    {"no memory for a larger index", test_no_memory_for_a_larger_index},
    {"no memory for the index of what is there", test_no_memory_for_the_index_of_what_is_there},
    {NULL, NULL},
};
