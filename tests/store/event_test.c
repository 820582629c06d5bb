#include "acutest.h"

#include "store/nouns.h"
#include "store/batch.h"
#include "tests/store/place.h"

/* R1, R2, R4, R8: the invariants of runs, which are streams. */

/* ---- one command that does what a test wants ---- */

enum { APPEND, APPEND_TWICE, REMOVE, LOOK, FAIL };
#define STEP_FIELDS(X)    \
    X(op, U8, 0, 1)       \
    X(stream, UUID, 0, 1) \
    X(at, U64, 0, 1)      \
    X(name, U16, 0, 1)    \
    X(state, U8, 0, 1)    \
    X(limit, U32, 0, 1)   \
    X(data, BYTES, EVENT_DATA_MAX, 1)
RECORD_STRUCT(step, STEP_FIELDS);
#define step_FIELD(name, TYPE, limit, since) RECORD_FIELD(step, name, TYPE, limit, since)
RECORD_CLASS(step, STEP_FIELDS, 1);

#define UNTOUCHED UINT64_C(0x7777777777777777)
struct outcome {
    uint64_t seq;
    bool repeated, left;
};

static void (*look)(struct txn *txn);

static enum error append_apply(struct txn *txn, uint64_t at_us, const struct step *step, struct outcome *out)
{
    struct event event = {.at_us = at_us,
                          .domain = 7,
                          .name = step->name,
                          .from_state = EVENT_NO_STATE,
                          .to_state = step->state,
                          .data = step->data};
    struct outcome got = {.seq = UNTOUCHED};
    enum error e = event_append(txn, &step->stream, step->at, &event, &got.seq, &got.repeated);
    TEST_CHECK(e == OK || (got.seq == UNTOUCHED && !got.repeated));
    *out = got;
    return e;
}

static enum error step_apply(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct step *step = command;
    struct outcome out = {.seq = 0};
    enum error e = OK;
    switch (step->op) {
    case APPEND:
        e = append_apply(txn, at_us, step, &out);
        break;
    case APPEND_TWICE:
        e = append_apply(txn, at_us, step, &out);
        e = e ? e : append_apply(txn, at_us, step, &out);
        break;
    case REMOVE:
        e = event_remove_stream(txn, &step->stream, step->limit, &out.left);
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

/* ---- steps ---- */

static struct uuid stream_of(uint8_t last)
{
    struct uuid id = {.bytes = {0x01, 0x93}};
    id.bytes[15] = last;
    return id;
}

static enum error run_one(const struct step *step, uint64_t at_us, struct outcome *ret_outcome)
{
    struct answer answer;
    enum error e = batch_one(store, &step_class, at_us, step, &answer);
    if (e == OK)
        memcpy(ret_outcome, answer.bytes, sizeof(*ret_outcome));
    return e;
}

static enum error append(uint8_t stream, uint64_t at, uint64_t at_us, uint16_t name,
                         struct outcome *ret_outcome)
{
    struct step step = {.op = APPEND, .stream = stream_of(stream), .at = at, .name = name};
    return run_one(&step, at_us, ret_outcome);
}

/* Reads without writing: f checks what it sees. */
static void look_with(void (*f)(struct txn *txn))
{
    struct step step = {.op = LOOK};
    struct outcome out;
    look = f;
    TEST_CHECK(run_one(&step, 1, &out) == OK);
}

static enum error remove_stream(uint8_t stream, uint32_t limit, bool *ret_left)
{
    struct step step = {.op = REMOVE, .stream = stream_of(stream), .limit = limit};
    struct outcome out;
    enum error e = run_one(&step, 1, &out);
    if (e == OK)
        *ret_left = out.left;
    return e;
}

static uint64_t last_of(struct txn *txn, uint8_t stream)
{
    struct uuid id = stream_of(stream);
    uint64_t seq = UNTOUCHED;
    TEST_CHECK(event_last(txn, &id, &seq) == OK);
    return seq;
}

/* ---- numbers ---- */

static void see_two_neighbours(struct txn *txn)
{
    struct uuid id = stream_of(2);
    struct event event;
    TEST_CHECK(last_of(txn, 1) == 0);
    TEST_CHECK(last_of(txn, 2) == 5);
    TEST_CHECK(last_of(txn, 3) == 2);
    TEST_CHECK(last_of(txn, 4) == 0);
    TEST_CHECK(txn_rows(txn, TABLE_EVENTS) == 7);
    for (uint64_t seq = 1; seq <= 5; seq++) {
        TEST_CHECK(event_read(txn, &id, seq, &event) == OK);
        TEST_CHECK(event.name == 20 + seq && event.at_us == 1000 + seq && event.domain == 7);
        TEST_CHECK(event.from_state == EVENT_NO_STATE && event.to_state == 0 && event.data.size == 0);
    }
    TEST_CHECK(event_read(txn, &id, 0, &event) == ERR_NOT_FOUND);
    TEST_CHECK(event_read(txn, &id, 6, &event) == ERR_NOT_FOUND);
}

static void test_r1_numbers(void)
{
    static const struct {
        uint8_t stream;
        uint64_t at, seq;
    } rows[] = {{2, 0, 1}, {3, 1, 1}, {2, 2, 2}, {2, 0, 3}, {3, 0, 2}, {2, 4, 4}, {2, 0, 5}};
    struct outcome out;
    begin();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint16_t name = (uint16_t)(rows[i].stream * 10 + rows[i].seq);
        TEST_CHECK(append(rows[i].stream, rows[i].at, 1000 + rows[i].seq, name, &out) == OK);
        TEST_CHECK(out.seq == rows[i].seq && !out.repeated);
    }
    look_with(see_two_neighbours);
    reopen();
    look_with(see_two_neighbours);
    end();
}

static void see_three(struct txn *txn)
{
    struct uuid id = stream_of(9);
    struct event event;
    TEST_CHECK(last_of(txn, 9) == 3 && txn_rows(txn, TABLE_EVENTS) == 3);
    TEST_CHECK(event_read(txn, &id, 2, &event) == OK && event.name == 102 && event.at_us == 2000);
}

static void test_r2_repeats(void)
{
    struct outcome out;
    begin();
    for (uint16_t i = 1; i <= 3; i++)
        TEST_CHECK(append(9, i, i * UINT64_C(1000), (uint16_t)(100 + i), &out) == OK);
    for (uint16_t i = 1; i <= 3; i++) { /* the same, at a later time, too */
        TEST_CHECK(append(9, i, 77000, (uint16_t)(100 + i), &out) == OK && out.seq == i && out.repeated);
        TEST_CHECK(append(9, i, 77000, (uint16_t)(101 + i), &out) == ERR_CONFLICT);
    }
    TEST_CHECK(append(9, 5, 77000, 105, &out) == ERR_CONFLICT); /* a gap */
    TEST_CHECK(append(9, UINT64_MAX, 77000, 105, &out) == ERR_CONFLICT);
    TEST_CHECK(append(8, 2, 77000, 105, &out) == ERR_CONFLICT);
    look_with(see_three);
    reopen();
    TEST_CHECK(append(9, 2, 88000, 102, &out) == OK && out.seq == 2 && out.repeated);
    look_with(see_three);
    end();
}

/* Each field alone makes another event; only the time doesn't. */
static void see_differences(struct txn *txn)
{
    static const struct event event = {
        .at_us = 5, .domain = 1, .name = 2, .from_state = 3, .to_state = 4, .data = {"data", 4}};
    struct event other[] = {event, event, event, event, event, event, event};
    struct uuid id = stream_of(1);
    uint64_t seq;
    bool repeated;
    other[0].domain++;
    other[1].name++;
    other[2].from_state++;
    other[3].to_state++;
    other[4].data = span_text("dat");
    other[5].data = span_text("Data");
    other[6].at_us++;
    TEST_CHECK(event_append(txn, &id, 1, &event, &seq, NULL) == OK && seq == 1);
    for (size_t i = 0; i < 6; i++)
        TEST_CHECK_(event_append(txn, &id, 1, &other[i], &seq, &repeated) == ERR_CONFLICT, "%zu", i);
    TEST_CHECK(event_append(txn, &id, 1, &other[6], &seq, &repeated) == OK && seq == 1 && repeated);
    TEST_CHECK(event_append(txn, &id, 1, &other[6], &seq, NULL) == OK && seq == 1);
}

static void test_r2_what_is_the_same(void)
{
    begin();
    look_with(see_differences);
    end();
}

static void see_times(struct txn *txn)
{
    static const uint64_t times[] = {500, 500, 500, 501, 501};
    struct uuid id = stream_of(1);
    struct event event;
    for (uint64_t seq = 1; seq <= 5; seq++)
        TEST_CHECK(event_read(txn, &id, seq, &event) == OK && event.at_us == times[seq - 1]);
}

static void test_r8_time_never_goes_back(void)
{
    static const uint64_t times[] = {500, 499, 0, 501, 500};
    struct outcome out;
    begin();
    for (size_t i = 0; i < 5; i++)
        TEST_CHECK(append(1, 0, times[i], (uint16_t)i, &out) == OK);
    TEST_CHECK(append(2, 0, 3, 1, &out) == OK); /* another stream has its own time */
    look_with(see_times);
    TEST_CHECK(append(1, 2, 499, 1, &out) == OK &&
               out.repeated); /* raised when it was written: still the same */
    end();
}

/* ---- who is woken ---- */

static bool woken(const struct txn *txn, uint32_t topic)
{
    return txn->wakes[topic / 64] >> topic % 64 & 1;
}

static void see_wakes(struct txn *txn)
{
    struct event event = {.at_us = 1};
    struct uuid near = stream_of(200), far = stream_of(201);
    uint64_t seq;
    TEST_CHECK(event_topic(&near) == STORE_TOPIC(TOPIC_EVENTS, 200));
    TEST_CHECK(event_append(txn, &near, 2, &event, &seq, NULL) == ERR_CONFLICT);
    TEST_CHECK(!woken(txn, event_topic(&near)));
    TEST_CHECK(event_append(txn, &near, 1, &event, &seq, NULL) == OK);
    TEST_CHECK(woken(txn, event_topic(&near)) && !woken(txn, event_topic(&far)));
}

static void test_wakes(void)
{
    begin();
    look_with(see_wakes);
    end();
}

/* ---- removal ---- */

static void see_rest(struct txn *txn)
{
    struct uuid id = stream_of(5);
    struct event event;
    TEST_CHECK(last_of(txn, 4) == 2 && last_of(txn, 5) == 10 && last_of(txn, 6) == 2);
    TEST_CHECK(event_read(txn, &id, 7, &event) == ERR_NOT_FOUND);
    TEST_CHECK(event_read(txn, &id, 8, &event) == OK && event.name == 8);
    TEST_CHECK(txn_rows(txn, TABLE_EVENTS) == 7);
}

static void see_others(struct txn *txn)
{
    TEST_CHECK(last_of(txn, 4) == 2 && last_of(txn, 5) == 0 && last_of(txn, 6) == 2);
    TEST_CHECK(txn_rows(txn, TABLE_EVENTS) == 4);
}

static void test_removal_is_bounded(void)
{
    struct outcome out;
    bool left = false;
    begin();
    for (uint16_t i = 1; i <= 10; i++)
        TEST_CHECK(append(5, i, i, i, &out) == OK);
    for (uint16_t i = 1; i <= 2; i++)
        TEST_CHECK(append(4, i, i, i, &out) == OK && append(6, i, i, i, &out) == OK);
    TEST_CHECK(remove_stream(5, 0, &left) == OK && left);
    TEST_CHECK(remove_stream(5, 4, &left) == OK && left);
    TEST_CHECK(remove_stream(5, 3, &left) == OK && left);
    look_with(see_rest);
    TEST_CHECK(append(5, 7, 1, 7, &out) == ERR_CONFLICT); /* was there, and is gone */
    TEST_CHECK(append(5, 8, 1, 8, &out) == OK && out.repeated);
    left = true;
    TEST_CHECK(remove_stream(5, 3, &left) == OK && !left); /* exactly what is there */
    left = true;
    TEST_CHECK(remove_stream(5, 3, &left) == OK && !left); /* nothing is there */
    look_with(see_others);
    TEST_CHECK(append(5, 0, 1, 1, &out) == OK && out.seq == 1);
    end();
}

/* ---- damage ---- */

/* One bit of the row's last byte, past everything that would notice. */
static void flip(struct txn *txn, uint8_t stream, uint64_t seq)
{
    uint8_t bytes[256];
    struct uuid id = stream_of(stream);
    struct key key = event_key(&id, seq);
    MDB_val k = {.mv_size = key.size, .mv_data = key.bytes}, v;
    MDB_dbi dbi = store->environment.tables[TABLE_EVENTS];
    TEST_ASSERT(mdb_get(txn->mdb, dbi, &k, &v) == 0 && v.mv_size <= sizeof(bytes));
    memcpy(bytes, v.mv_data, v.mv_size);
    bytes[v.mv_size - 1] ^= 1;
    v.mv_data = bytes;
    TEST_ASSERT(mdb_put(txn->mdb, dbi, &k, &v, 0) == 0);
    txn->writes++;
}

static void flip_some(struct txn *txn)
{
    flip(txn, 1, 2);
    flip(txn, 2, 3);
}

static void see_damage(struct txn *txn)
{
    struct uuid middle = stream_of(1), newest = stream_of(2);
    struct event event = {.name = 999};
    uint64_t seq = UNTOUCHED;
    bool left = false;
    TEST_CHECK(event_read(txn, &middle, 2, &event) == ERR_DAMAGED && event.name == 999);
    TEST_CHECK(event_last(txn, &middle, &seq) == OK && seq == 3);
    seq = UNTOUCHED;
    TEST_CHECK(event_last(txn, &newest, &seq) == ERR_DAMAGED && seq == UNTOUCHED);
    TEST_CHECK(event_append(txn, &newest, 0, &event, &seq, NULL) == ERR_DAMAGED && seq == UNTOUCHED);
    TEST_CHECK(event_append(txn, &middle, 2, &event, &seq, NULL) == ERR_DAMAGED && seq == UNTOUCHED);
    TEST_CHECK(event_remove_stream(txn, &middle, 100, &left) == ERR_DAMAGED && !left);
    TEST_CHECK(txn_rows(txn, TABLE_EVENTS) == 9 && txn->writes == 0);
}

static void test_damage_is_told(void)
{
    struct outcome out;
    begin();
    for (uint8_t stream = 1; stream <= 3; stream++)
        for (uint16_t i = 1; i <= 3; i++)
            TEST_CHECK(append(stream, i, i, i, &out) == OK);
    look_with(flip_some);
    look_with(see_damage);
    TEST_CHECK(append(3, 0, 9, 4, &out) == OK && out.seq == 4); /* the others are well */
    end();
}

static void take_second_away(struct txn *txn)
{
    struct uuid id = stream_of(1);
    struct key key = event_key(&id, 2);
    txn_remove(txn, TABLE_EVENTS, key_span(&key));
}

static void test_r1_a_gap_is_damage(void)
{
    struct outcome out;
    bool left = false;
    begin();
    for (uint16_t i = 1; i <= 4; i++)
        TEST_CHECK(append(1, i, i, i, &out) == OK);
    look_with(take_second_away);
    TEST_CHECK(remove_stream(1, 100, &left) == ERR_DAMAGED && !left);
    TEST_CHECK(append(1, 0, 9, 5, &out) == OK && out.seq == 5);
    end();
}

/* ---- batches that fail ---- */

#define BATCH 32
static struct batch_item items[BATCH];
static struct step steps[BATCH];

static enum error run_steps(size_t count, const uint64_t *at_us)
{
    static uint8_t bytes[BATCH][EVENT_DATA_MAX + 128];
    for (size_t i = 0; i < count; i++) {
        size_t size = record_encode(&step_record, &steps[i], bytes[i], sizeof(bytes[i]));
        TEST_ASSERT(size > 0);
        items[i] =
            (struct batch_item){.class = &step_class, .at_us = at_us[i], .bytes = span_of(bytes[i], size)};
    }
    return batch_run(store, items, count);
}

static void see_all_that_fits(struct txn *txn)
{
    struct uuid id = stream_of(1);
    struct event event;
    TEST_CHECK(last_of(txn, 1) == 8 * BATCH);
    for (uint64_t seq = 1; seq <= 8 * BATCH; seq++)
        TEST_CHECK(event_read(txn, &id, seq, &event) == OK && event.data.size == EVENT_DATA_MAX &&
                   ((const uint8_t *)event.data.bytes)[seq] == (uint8_t)((seq + 1) / 2));
}

/* A full map aborts the batch in its middle, also in the middle of a command, and applies it again. */
static void test_r1_across_a_full_map(void)
{
    static uint8_t data[BATCH][EVENT_DATA_MAX];
    static uint64_t at_us[BATCH];
    struct outcome out;
    begin();
    for (uint64_t round = 0; round < 4; round++) {
        for (size_t i = 0; i < BATCH; i++) {
            memset(data[i], (int)(round * BATCH + i + 1), sizeof(data[i]));
            steps[i] = (struct step){
                .op = APPEND_TWICE, .stream = stream_of(1), .data = span_of(data[i], sizeof(data[i]))};
        }
        TEST_CHECK(run_steps(BATCH, at_us) == OK);
        for (size_t i = 0; i < BATCH; i++) {
            TEST_CHECK(items[i].answer.error == OK);
            memcpy(&out, items[i].answer.bytes, sizeof(out));
            TEST_CHECK(out.seq == 2 * (round * BATCH + i + 1));
        }
    }
    TEST_CHECK(store->environment.map > 1u << 20);
    look_with(see_all_that_fits);
    reopen();
    look_with(see_all_that_fits);
    end();
}

/* ---- random operations against plain arrays ---- */

#define STREAMS  6
#define SEQ_MAX  4096
#define ROUNDS   600
#define DATA_MAX 96

static struct log {
    uint64_t first, last; /* first > last: empty */
    uint64_t at_us[SEQ_MAX];
    uint16_t name[SEQ_MAX];
} model[STREAMS], attempt[STREAMS];

static uint64_t chance_state;

static uint32_t chance(uint32_t count)
{
    chance_state = chance_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((chance_state >> 33) % count);
}

static struct span data_of(uint16_t name)
{
    static const uint8_t pattern[DATA_MAX + 256] = {1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233};
    return span_of(pattern + name % 256, name % DATA_MAX);
}

static uint8_t stream_number(size_t i)
{
    static const uint8_t numbers[STREAMS] = {0, 1, 2, 127, 254, 255};
    return numbers[i];
}

static enum error model_append(struct log *log, uint64_t at, uint64_t at_us, uint16_t name,
                               struct outcome *ret_outcome)
{
    uint64_t next = log->last + 1;
    at = at ? at : next;
    if (at > next || (at < next && (at < log->first || log->name[at] != name)))
        return ERR_CONFLICT;
    *ret_outcome = (struct outcome){.seq = at, .repeated = at < next};
    if (at == next) {
        bool empty = log->first > log->last;
        log->name[at] = name;
        log->at_us[at] = !empty && at_us < log->at_us[log->last] ? log->at_us[log->last] : at_us;
        log->last = at;
    }
    return OK;
}

static void model_remove(struct log *log, uint32_t limit, struct outcome *ret_outcome)
{
    uint64_t there = log->last + 1 - log->first;
    *ret_outcome = (struct outcome){.left = there > limit};
    log->first += there > limit ? limit : there;
    if (log->first > log->last) {
        log->first = 1;
        log->last = 0;
    }
}

static enum error draw(struct step *step, uint64_t at_us, struct outcome *ret_outcome)
{
    size_t stream = chance(STREAMS);
    struct log *log = &attempt[stream];
    *step = (struct step){
        .op = APPEND, .stream = stream_of(stream_number(stream)), .name = (uint16_t)chance(500)};
    if (chance(12) == 0) {
        step->op = REMOVE;
        step->limit = chance(12);
        model_remove(log, step->limit, ret_outcome);
        return OK;
    }
    switch (chance(4)) {
    case 0: /* at a number that may be there, with what may be there */
        step->at = 1 + chance((uint32_t)log->last + 3);
        if (step->at <= log->last && chance(3) > 0)
            step->name = log->name[step->at];
        break;
    case 1:
        step->at = log->last + 1;
        break;
    default:
        break;
    }
    step->data = data_of(step->name);
    return model_append(log, step->at, at_us, step->name, ret_outcome);
}

static void see_model(struct txn *txn)
{
    uint64_t rows = 0;
    for (size_t i = 0; i < STREAMS; i++) {
        struct uuid id = stream_of(stream_number(i));
        struct event event;
        TEST_CHECK(last_of(txn, stream_number(i)) == model[i].last);
        TEST_CHECK(event_read(txn, &id, model[i].first - 1, &event) == ERR_NOT_FOUND);
        for (uint64_t seq = model[i].first; seq <= model[i].last; seq++, rows++)
            TEST_CHECK(event_read(txn, &id, seq, &event) == OK && event.at_us == model[i].at_us[seq] &&
                       event.name == model[i].name[seq] && span_equal(event.data, data_of(event.name)));
    }
    TEST_CHECK(txn_rows(txn, TABLE_EVENTS) == rows);
}

static void random_round(void)
{
    uint64_t at_us[BATCH];
    enum error expected[BATCH];
    struct outcome outcomes[BATCH];
    size_t count = 1 + chance(BATCH - 1);
    bool doomed = chance(4) == 0;
    memcpy(attempt, model, sizeof(model));
    for (size_t i = 0; i < count; i++) {
        at_us[i] = 1000000 + chance(1000000);
        expected[i] = draw(&steps[i], at_us[i], &outcomes[i]);
    }
    if (doomed)
        steps[chance((uint32_t)count)] = (struct step){.op = FAIL};
    TEST_CHECK(run_steps(count, at_us) == (doomed ? ERR_MEMORY : OK));
    if (doomed)
        return;
    memcpy(model, attempt, sizeof(model));
    for (size_t i = 0; i < count; i++) {
        struct outcome got;
        TEST_CHECK(items[i].answer.error == expected[i]);
        if (expected[i])
            continue;
        memcpy(&got, items[i].answer.bytes, sizeof(got));
        TEST_CHECK(got.seq == outcomes[i].seq && got.repeated == outcomes[i].repeated &&
                   got.left == outcomes[i].left);
    }
}

static void test_r4_random_against_arrays(void)
{
    begin();
    chance_state = 3;
    for (size_t i = 0; i < STREAMS; i++)
        model[i] = (struct log){.first = 1};
    for (unsigned round = 1; round <= ROUNDS; round++) {
        random_round();
        if (round % 50 == 0)
            reopen();
        if (round % 10 == 0)
            look_with(see_model);
    }
    end();
}

TEST_LIST
= {
    {"R1: numbers from 1 without gaps, stream by stream", test_r1_numbers},
    {"R1: a gap is damage", test_r1_a_gap_is_damage},
    {"R1: across a full map", test_r1_across_a_full_map},
    {"R2: a repeat gets what is there, another event a conflict", test_r2_repeats},
    {"R2: what is the same", test_r2_what_is_the_same},
    {"R4: random operations, aborts and restarts against arrays", test_r4_random_against_arrays},
    {"R8: time never goes back", test_r8_time_never_goes_back},
    {"appending wakes the stream's topic", test_wakes},
    {"removal is bounded and touches one stream", test_removal_is_bounded},
    {"damage is told", test_damage_is_told},
    {NULL, NULL},
};
