#include "acutest.h"

#include "store/nouns.h"
#include "store/batch.h"
#include "tests/store/place.h"

/* ---- one command that does what a test wants ---- */

enum { ADD, ADD_BLINDLY, REFUSE, LOOK, FAIL };
#define STEP_FIELDS(X)                    \
    X(op, U8, 0, 1)                       \
    X(counter, U16, 0, 1)                 \
    X(label, BYTES, COUNTER_LABEL_MAX, 1) \
    X(delta, I64, 0, 1)
RECORD_STRUCT(step, STEP_FIELDS);
#define step_FIELD(name, TYPE, limit, since) RECORD_FIELD(step, name, TYPE, limit, since)
RECORD_CLASS(step, STEP_FIELDS, 1);

static void (*look)(struct txn *txn);

/* ADD answers what the counter is then. */
static enum error step_apply(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct step *step = command;
    int64_t value = 0;
    (void)at_us;
    switch (step->op) {
    case ADD:
        counter_add(txn, step->counter, step->label, step->delta);
        TEST_CHECK(counter_read(txn, step->counter, step->label, &value) == OK);
        break;
    case ADD_BLINDLY:
        counter_add(txn, step->counter, step->label, step->delta);
        break;
    case REFUSE: /* having looked, as one does */
        TEST_CHECK(counter_read(txn, step->counter, step->label, &value) == OK && value == 0);
        return ERR_CONFLICT;
    case LOOK:
        look(txn);
        break;
    default: /* as when a write fails */
        txn->writes++;
        txn->error = ERR_MEMORY;
    }
    answer_add(answer, &value, sizeof(value));
    return OK;
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

static void store_up(void)
{
    struct store_options options = {
        .environment = {.dir = dir, .map = 1u << 20, .map_max = 1u << 30, .step = 65536, .reserve = 4096},
        .schema = &schema};
    char text[512];
    enum error e = store_open(&options, &store, text, sizeof(text));
    TEST_ASSERT_(e == OK, "%s", text);
}

static void begin(void)
{
    place_make(dir);
    store_up();
}

static void reopen(void)
{
    store_close(store);
    store_up();
}

static void end(void)
{
    store_close(store);
    place_remove(dir);
}

/* The function's transaction, which is committed when it wrote. */
static enum error with(void (*f)(struct txn *txn))
{
    struct step step = {.op = LOOK};
    look = f;
    return batch_one(store, &step_class, 1, &step, NULL);
}

static int64_t value_of(struct txn *txn, uint16_t counter, const char *label)
{
    int64_t value = 0x7777;
    TEST_CHECK(counter_read(txn, counter, span_text(label), &value) == OK);
    return value;
}

/* ---- names and keys ---- */

static void test_names(void)
{
    TEST_CHECK(strcmp(counter_name(COUNTER_DUE), "due") == 0);
    TEST_CHECK(strcmp(counter_name(COUNTER_LEDGER_NEXT), "ledger_next") == 0);
    TEST_CHECK(counter_name(0) == NULL && counter_name(9000) == NULL);
}

static void test_keys(void)
{
    struct key key = counter_key(0x0102, span_text("ab"));
    TEST_CHECK(span_equal(key_span(&key), span_of("\1\2ab", 4)));
    key = counter_key(0xfffe, span_of(NULL, 0));
    TEST_CHECK(span_equal(key_span(&key), span_of("\xff\xfe", 2)));
}

/* ---- sums of one transaction ---- */

static void add_some(struct txn *txn)
{
    TEST_CHECK(value_of(txn, 5, "a") == 0);
    counter_add(txn, 5, span_text("a"), 3);
    counter_add(txn, 5, span_text("b"), -2);
    counter_add(txn, 5, span_text(""), 7);
    counter_add(txn, 6, span_text("a"), INT64_MAX);
    counter_add(txn, 5, span_text("a"), 4);
    TEST_CHECK(value_of(txn, 5, "a") == 7 && value_of(txn, 5, "b") == -2 && value_of(txn, 5, "") == 7);
    TEST_CHECK(value_of(txn, 6, "a") == INT64_MAX && value_of(txn, 6, "b") == 0);
    TEST_CHECK(txn_rows(txn, TABLE_COUNTERS) == 0); /* summed, not yet written */
    TEST_CHECK(txn->writes == 5);
}

static void see_some(struct txn *txn)
{
    TEST_CHECK(value_of(txn, 5, "a") == 7 && value_of(txn, 5, "b") == -2 && value_of(txn, 5, "") == 7);
    TEST_CHECK(value_of(txn, 6, "a") == INT64_MAX && value_of(txn, 6, "b") == 0);
    TEST_CHECK(txn_rows(txn, TABLE_COUNTERS) == 4);
}

static void test_sums(void)
{
    begin();
    TEST_CHECK(with(add_some) == OK);
    TEST_CHECK(with(see_some) == OK);
    reopen();
    TEST_CHECK(with(see_some) == OK);
    end();
}

/* ---- zero has no row ---- */

static void take_seven(struct txn *txn)
{
    counter_add(txn, 5, span_text("a"), -7);
    counter_add(txn, 5, span_text("new"), 9);
    counter_add(txn, 5, span_text("new"), -9);
}

static void see_no_a(struct txn *txn)
{
    struct key key = counter_key(5, span_text("a"));
    struct counter row;
    TEST_CHECK(txn_read(txn, TABLE_COUNTERS, key_span(&key), &row) == ERR_NOT_FOUND);
    TEST_CHECK(txn_rows(txn, TABLE_COUNTERS) == 3 && value_of(txn, 5, "new") == 0);
}

static void add_a_again(struct txn *txn)
{
    counter_add(txn, 5, span_text("a"), 7);
}

static void test_zero_has_no_row(void)
{
    begin();
    TEST_CHECK(with(add_some) == OK);
    TEST_CHECK(with(take_seven) == OK);
    TEST_CHECK(with(see_no_a) == OK);
    TEST_CHECK(with(take_seven) == OK); /* below zero, and back */
    TEST_CHECK(with(add_a_again) == OK);
    TEST_CHECK(with(see_no_a) == OK);
    TEST_CHECK(with(add_a_again) == OK);
    TEST_CHECK(with(see_some) == OK);
    end();
}

/* ---- more counters than a transaction keeps ---- */

enum { MANY = 3 * TXN_COUNTERS_MAX };

static void see_many(struct txn *txn)
{
    for (uint16_t i = 0; i < MANY; i++) {
        int64_t value;
        TEST_CHECK(counter_read(txn, 9, span_of(&i, sizeof(i)), &value) == OK && value == 2 * i);
    }
}

static void add_many(struct txn *txn)
{
    for (unsigned round = 0; round < 2; round++)
        for (uint16_t i = 0; i < MANY; i++)
            counter_add(txn, 9, span_of(&i, sizeof(i)), i);
    see_many(txn);
}

static void test_many(void)
{
    begin();
    TEST_CHECK(with(add_many) == OK);
    TEST_CHECK(with(see_many) == OK);
    end();
}

/* Wherever the room for sums ends: looking at one more counter isn't a write. */
static void many_and_a_refusal(uint32_t every)
{
    enum { COUNT = 2 * TXN_COUNTERS_MAX };
    static uint8_t bytes[COUNT][64];
    static struct batch_item items[COUNT];
    begin();
    for (uint16_t i = 0; i < COUNT; i++) {
        struct step step = {.op = i % every ? ADD_BLINDLY : REFUSE,
                            .counter = 9,
                            .label = span_of(&i, sizeof(i)),
                            .delta = 1};
        size_t size = record_encode(&step_record, &step, bytes[i], sizeof(bytes[i]));
        items[i] = (struct batch_item){.class = &step_class, .at_us = 1, .bytes = span_of(bytes[i], size)};
    }
    TEST_CHECK(batch_run(store, items, COUNT) == OK);
    for (uint32_t i = 0; i < COUNT; i++)
        TEST_CHECK(items[i].answer.error == (i % every ? OK : ERR_CONFLICT));
    end();
}

static void test_many_and_a_refusal(void)
{
    for (uint32_t every = 2; every <= 7; every++)
        many_and_a_refusal(every);
}

/* ---- damage ---- */

static void flip(struct txn *txn)
{
    uint8_t bytes[64];
    struct key key = counter_key(5, span_text("a"));
    MDB_val k = {.mv_size = key.size, .mv_data = key.bytes}, v;
    MDB_dbi dbi = store->environment.tables[TABLE_COUNTERS];
    TEST_ASSERT(mdb_get(txn->mdb, dbi, &k, &v) == 0 && v.mv_size <= sizeof(bytes));
    memcpy(bytes, v.mv_data, v.mv_size);
    bytes[v.mv_size - 1] ^= 1;
    v.mv_data = bytes;
    TEST_ASSERT(mdb_put(txn->mdb, dbi, &k, &v, 0) == 0);
    txn->writes++;
}

static void see_damage(struct txn *txn)
{
    int64_t value = 0x7777;
    TEST_CHECK(counter_read(txn, 5, span_text("a"), &value) == ERR_DAMAGED && value == 0x7777);
    TEST_CHECK(value_of(txn, 5, "b") == -2);
}

static void add_to_both(struct txn *txn)
{
    counter_add(txn, 5, span_text("b"), 1);
    counter_add(txn, 5, span_text("a"), 1);
}

static void add_to_b(struct txn *txn)
{
    counter_add(txn, 5, span_text("b"), 1);
}

static void see_b_once(struct txn *txn)
{
    TEST_CHECK(value_of(txn, 5, "b") == -1);
}

static void test_damage_is_told_and_never_written_over(void)
{
    begin();
    TEST_CHECK(with(add_some) == OK);
    TEST_CHECK(with(flip) == OK);
    TEST_CHECK(with(see_damage) == OK);
    TEST_CHECK(with(add_to_both) == ERR_DAMAGED); /* and nothing of it is there */
    TEST_CHECK(with(see_damage) == OK);
    TEST_CHECK(with(add_to_b) == OK);
    TEST_CHECK(with(see_b_once) == OK);
    end();
}

/* ---- random operations against an array ---- */

static uint64_t chance_state;

static uint32_t chance(uint32_t count)
{
    chance_state = chance_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((chance_state >> 33) % count);
}

#define LABELS  80
#define NUMBERS 5
#define BATCH   400
#define ROUNDS  400

static int64_t model[NUMBERS][LABELS], attempt[NUMBERS][LABELS];

/* From nothing to 64 bytes, each the beginning of the next: length counts. */
static struct span label_of(uint32_t i)
{
    static const uint8_t bytes[LABELS];
    static uint8_t last[LABELS][2];
    if (i <= COUNTER_LABEL_MAX)
        return span_of(bytes, i);
    last[i][0] = 1;
    last[i][1] = (uint8_t)i;
    return span_of(last[i], 2);
}

/* Every row is one of the model's, and every number of the model that isn't 0 has its row. */
static void see_model(struct txn *txn)
{
    uint64_t rows = 0;
    for (uint16_t counter = 0; counter < NUMBERS; counter++) {
        for (uint32_t label = 0; label < LABELS; label++) {
            struct key key = counter_key((uint16_t)(300 * counter), label_of(label));
            struct counter row = {.value = 0};
            enum error e = txn_read(txn, TABLE_COUNTERS, key_span(&key), &row);
            TEST_CHECK(e == (model[counter][label] ? OK : ERR_NOT_FOUND) &&
                       row.value == model[counter][label]);
            rows += model[counter][label] != 0;
        }
    }
    TEST_CHECK(txn_rows(txn, TABLE_COUNTERS) == rows);
}

static int64_t delta_for(int64_t value)
{
    switch (chance(4)) {
    case 0:
        return -value; /* to nothing */
    case 1:
        return -1;
    case 2:
        return (int64_t)chance(1u << 30) << 20;
    default:
        return 1;
    }
}

static void random_round(void)
{
    static uint8_t bytes[BATCH][128];
    static struct batch_item items[BATCH];
    int64_t expected[BATCH];
    size_t count = 1 + chance(chance(5) ? 20 : BATCH - 1);
    bool doomed = chance(4) == 0;
    size_t doom = chance((uint32_t)count);
    memcpy(attempt, model, sizeof(model));
    for (size_t i = 0; i < count; i++) {
        uint32_t counter = chance(NUMBERS), label = chance(LABELS);
        struct step step = {.op = ADD, .counter = (uint16_t)(300 * counter), .label = label_of(label)};
        step.delta = delta_for(attempt[counter][label]);
        expected[i] = attempt[counter][label] += step.delta;
        if (doomed && i == doom)
            step.op = FAIL;
        size_t size = record_encode(&step_record, &step, bytes[i], sizeof(bytes[i]));
        items[i] = (struct batch_item){.class = &step_class, .at_us = 1, .bytes = span_of(bytes[i], size)};
    }
    TEST_CHECK(batch_run(store, items, count) == (doomed ? ERR_MEMORY : OK));
    if (doomed)
        return;
    memcpy(model, attempt, sizeof(model));
    for (size_t i = 0; i < count; i++)
        TEST_CHECK(items[i].answer.error == OK && memcmp(items[i].answer.bytes, &expected[i], 8) == 0);
}

static void test_random_against_arrays(void)
{
    begin();
    chance_state = 11;
    memset(model, 0, sizeof(model));
    for (unsigned round = 1; round <= ROUNDS; round++) {
        random_round();
        if (round % 50 == 0)
            reopen();
        if (round % 10 == 0)
            TEST_CHECK(with(see_model) == OK);
    }
    end();
}

TEST_LIST
= {
    {"names", test_names},
    {"keys", test_keys},
    {"sums are seen at once and written once", test_sums},
    {"zero has no row", test_zero_has_no_row},
    {"more counters than a transaction keeps", test_many},
    {"more counters than that, and a refusal in between", test_many_and_a_refusal},
    {"damage is told and never written over", test_damage_is_told_and_never_written_over},
    {"random operations, aborts and restarts against an array", test_random_against_arrays},
    {NULL, NULL},
};
