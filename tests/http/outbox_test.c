/* The outbox for operators over HTTP: what it has given up is listed whatever is damaged, and comes back with an entry of who did it. */
#define _GNU_SOURCE /* memmem */
#include "acutest.h"

#include <stdio.h>

#include "http/front.h"
#include "http/outbox.h"
#include "http/surface.h"
#include "store/counter.h"
#include "store/job.h"
#include "store/outbox.h"
#include "tests/support/exchange.h"
#include "tests/support/spoil.h"
#include "tests/support/stage.h"

#define LIST   "/outbox/dead"
#define REVIVE "/outbox/dead/{id}:revive"

static void run(void (*body)(void))
{
    struct stage stage = {.schema = spoil_schema()};
    TEST_CHECK(stage_run(&stage, body) == 0);
}

/* ---- asking ---- */

static struct front front = {.name = "operator"};
static struct front_limits limits = {.request_ns = 10 * NS_PER_S, .store_ns = 2 * NS_PER_S};

static struct exchange *ask(enum method method, const char *param, const char *query, const char *body)
{
    static struct exchange x;
    struct arena_mark mark = actor_arena_mark();
    exchange_begin(
        &x, exchange_route(outbox_routes, outbox_routes_count, method, method == METHOD_GET ? LIST : REVIVE),
        param, body);
    x.q.identity.subject = span_text("ana");
    x.q.front = &front;
    x.q.began_ns = actor_now();
    x.q.query = span_text(query);
    atomic_store(&front.limits, &limits);
    trace_begin(&x.q.trace, span_of(NULL, 0), span_of(NULL, 0), span_of(NULL, 0));
    exchange_serve(&x);
    actor_arena_reset(mark);
    return &x;
}

static bool holds(const struct exchange *x, const char *text)
{
    return memmem(x->r.body, x->r.sink.length, text, strlen(text)) != NULL;
}

static struct exchange *list(const char *query)
{
    return ask(METHOD_GET, NULL, query, NULL);
}

static struct exchange *revive(const char *id)
{
    return ask(METHOD_POST, id, "", "{\"reason\":\"it is mended\"}");
}

static bool refused(const struct exchange *x, int status, const char *code)
{
    return x->r.status == status && strcmp(exchange_member(x, "code"), code) == 0;
}

/* The ids on a page: "2-1 2-2 null ". */
static const char *ids(const struct exchange *x)
{
    static char text[512];
    const struct json_node *rows = json_member(&x->answer, json_root(&x->answer), "dead");
    size_t used = 0;
    text[0] = 0;
    EXPECT(rows && rows->kind == JSON_ARRAY);
    for (const struct json_node *n = json_first(&x->answer, rows); n; n = json_after(&x->answer, rows, n)) {
        struct span raw = json_raw_of(&x->answer, json_member(&x->answer, n, "id"));
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%.*s ", (int)raw.size,
                                 (const char *)raw.bytes);
    }
    return text;
}

static bool shows(const struct exchange *x, const char *expected)
{
    return x->r.status == 200 && strcmp(ids(x), expected) == 0;
}

/* ---- dead rows ---- */

enum { PARCELS = 3 };
static uint16_t partition;
static char names[PARCELS][OUTBOX_ID_SIZE]; /* in the order of the list */

static enum error bury(uint64_t seq, uint64_t fence)
{
    const struct outbox_bury_command c = {
        .partition = partition, .seq = seq, .fence = fence, .reason = span_text("damaged")};
    return store_submit(&outbox_bury_class, &c, NULL, 0, NULL, actor_deadline_ms(1000));
}

static struct uuid parcel_in(uint64_t *number)
{
    struct view *view = view_open(stage_store);
    struct uuid id;
    do
        id = stage_id(++*number);
    while (outbox_partition(&view->txn, &id) != partition);
    view_close(view);
    return id;
}

/* Parcels of one partition, whose rows are dead; the first one's is that of a job by its topic. */
static struct uuid first_stream;
static enum error be_a_job(struct txn *txn)
{
    struct key key = outbox_key(partition, 1);
    struct dead row;
    enum error e = txn_read(txn, TABLE_DEAD, key_span(&key), &row);
    char reason[OUTBOX_REASON_MAX];
    EXPECT(e == OK && row.reason.size < sizeof(reason));
    memcpy(reason, row.reason.bytes, row.reason.size);
    row.reason.bytes = reason;
    row.topic = OUTBOX_JOB;
    row.attempts = 4;
    txn_write(txn, TABLE_DEAD, key_span(&key), &row);
    return OK;
}

static void bury_parcels(void)
{
    uint64_t number = 0, fence = 0;
    size_t size = 0;
    partition = 5;
    const struct outbox_claim_command claim = {.partition = partition, .holder = 7};
    (void)stage_writer();
    EXPECT(store_submit(&outbox_claim_class, &claim, &fence, sizeof(fence), &size, actor_deadline_ms(1000)) ==
           OK);
    for (uint64_t seq = 1; seq <= PARCELS; seq++) {
        struct uuid id = parcel_in(&number);
        first_stream = seq == 1 ? id : first_stream;
        EXPECT(stage_send(number, 10) == OK && bury(seq, fence) == OK);
        outbox_id_format(partition, seq, names[seq - 1]);
    }
    EXPECT(spoil(be_a_job) == OK);
}

static uint64_t rows_in(uint32_t table)
{
    struct view *view = view_open(stage_store);
    uint64_t rows = txn_rows(&view->txn, table);
    view_close(view);
    return rows;
}

static uint32_t flipped_row;
static enum error flip(struct txn *txn)
{
    struct key key = outbox_key(partition, flipped_row);
    spoil_value(txn, TABLE_DEAD, key_span(&key));
    return OK;
}

/* ---- the list ---- */

static void listed_body(void)
{
    char expected[128], stream[UUID_TEXT_SIZE];
    bury_parcels();
    uuid_format(&first_stream, stream);
    struct exchange *x = list("");
    EXPECT(shows(x, "\"5-1\" \"5-2\" \"5-3\" ") && holds(x, "\"next\":null"));
    snprintf(expected, sizeof(expected), "\"topic\":\"job\",\"stream\":\"%s\",\"job_id\":\"%s\",\"event\":1,",
             stream, stream);
    EXPECT(holds(x, expected) && holds(x, "\"reason\":\"damaged\",\"attempts\":4,\"unreadable\":null"));
    EXPECT(holds(x, "\"topic\":null,\"stream\":\"") &&
           holds(x, "\"job_id\":null")); /* of a topic without a name */
    EXPECT(holds(x, "\"buried_at\":\"20"));
}

static void test_dead_rows_are_listed(void)
{
    run(listed_body);
}

static void paged_body(void)
{
    char query[320];
    bury_parcels();
    struct exchange *x = list("limit=2");
    EXPECT(shows(x, "\"5-1\" \"5-2\" "));
    snprintf(query, sizeof(query), "limit=2&after=%s", exchange_member(x, "next"));
    x = list(query);
    EXPECT(shows(x, "\"5-3\" ") && holds(x, "\"next\":null"));
    EXPECT(refused(list("after=nonsense"), 400, "OPS_400_INVALID"));
    EXPECT(refused(list("limit=0"), 400, "OPS_400_INVALID") &&
           refused(list("limit=101"), 400, "OPS_400_INVALID"));
}

static void test_a_page_goes_on_where_the_one_before_ended(void)
{
    run(paged_body);
}

static enum error put_none(struct txn *txn)
{
    struct key key = {.size = 0};
    key_add_u8(&key, 0);
    txn_add(txn, TABLE_DEAD, key_span(&key), &(struct dead){.event = 1});
    return OK;
}

static enum error take_none(struct txn *txn)
{
    static const uint8_t key = 0;
    spoil_remove(txn, TABLE_DEAD, span_of(&key, 1));
    return OK;
}

static void damaged_body(void)
{
    char query[320];
    bury_parcels();
    for (flipped_row = 1; flipped_row <= 2; flipped_row++)
        EXPECT(spoil(flip) == OK);
    struct exchange *x = list("");
    EXPECT(shows(x, "\"5-1\" \"5-2\" \"5-3\" "));
    EXPECT(holds(x,
                 "{\"id\":\"5-2\",\"topic\":null,\"stream\":null,\"job_id\":null,\"event\":null,\"at\":null,"
                 "\"buried_at\":null,\"reason\":null,\"attempts\":null,\"unreadable\":\"damaged\"}"));
    x = list("limit=1"); /* a page may end with one, too */
    EXPECT(shows(x, "\"5-1\" "));
    snprintf(query, sizeof(query), "after=%s", exchange_member(x, "next"));
    EXPECT(shows(list(query), "\"5-2\" \"5-3\" "));
    EXPECT(refused(revive("5-1"), 503, "OPS_503_STORE") && rows_in(TABLE_AUDITS) == 0);
    for (flipped_row = 1; flipped_row <= 2; flipped_row++)
        EXPECT(spoil(flip) == OK);
    EXPECT(spoil(put_none) == OK);
    EXPECT(shows(list(""), "null \"5-1\" \"5-2\" \"5-3\" "));
    EXPECT(spoil(take_none) == OK);
}

static void test_a_row_that_cannot_be_read_is_listed_as_such(void)
{
    run(damaged_body);
}

/* ---- revival ---- */

static void revived_body(void)
{
    struct audit entry = {.at_us = 0};
    bury_parcels();
    struct exchange *x = revive("5-2");
    EXPECT(x->r.status == 200 && holds(x, "{\"id\":\"5-2\",\"revived\":true}"));
    EXPECT(shows(list(""), "\"5-1\" \"5-3\" "));
    struct view *view = view_open(stage_store);
    struct outbox_row row;
    uint32_t count = 0;
    EXPECT(outbox_scan(&view->txn, partition, 0, &row, 1, &count) == OK && count == 1 && row.seq == 2 &&
           row.row.attempts == 0);
    struct key from = {.size = 0};
    struct scan scan = txn_scan(&view->txn, TABLE_AUDITS, key_span(&from), 0, SCAN_UP);
    EXPECT(scan_next(&scan) && scan_read(&scan, &entry) == OK);
    EXPECT(span_equal(entry.who, span_text("ana")) && span_equal(entry.verb, span_text("outbox.revived")) &&
           span_equal(entry.target, span_text("5-2")) &&
           span_equal(entry.reason, span_text("it is mended")) && entry.request_id.size > 0);
    EXPECT(!scan_next(&scan) && scan_end(&scan) == OK);
    view_close(view);
    EXPECT(refused(revive("5-2"), 404, "OPS_404_NOT_FOUND"));   /* it waits, and is not dead */
    EXPECT(ask(METHOD_POST, "5-1", "", NULL)->r.status == 200); /* without a reason, too */
    EXPECT(rows_in(TABLE_AUDITS) == 2);
}

static void test_a_dead_row_comes_back_with_an_entry_of_who_did_it(void)
{
    run(revived_body);
}

static void unknown_body(void)
{
    static const char *const unknown[] = {"5-4", "4-1",   "8-1",  "65535-1", "65536-1",
                                          "5",   "05-1",  "5-01", "-",       "5-",
                                          "-1",  "a job", "5-1 ", "5:1",     "5-18446744073709551616"};
    bury_parcels();
    for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++)
        EXPECT(refused(revive(unknown[i]), 404, "OPS_404_NOT_FOUND"));
    EXPECT(rows_in(TABLE_DEAD) == PARCELS && rows_in(TABLE_AUDITS) == 0);
}

static void test_what_is_not_dead_is_not_found(void)
{
    run(unknown_body);
}

static int64_t more_rows;
static enum error fill(struct txn *txn)
{
    uint8_t label[2] = {0, (uint8_t)partition};
    counter_add(txn, COUNTER_OUTBOX, span_of(label, sizeof(label)), more_rows);
    return OK;
}

static void full_body(void)
{
    bury_parcels();
    more_rows = OUTBOX_HARD;
    EXPECT(spoil(fill) == OK);
    struct exchange *x = revive("5-1");
    EXPECT(refused(x, 503, "OPS_503_OVERLOADED") && exchange_has_header(x, "Retry-After: 1"));
    EXPECT(rows_in(TABLE_DEAD) == PARCELS && rows_in(TABLE_AUDITS) == 0);
    more_rows = -OUTBOX_HARD;
    EXPECT(spoil(fill) == OK && revive("5-1")->r.status == 200);
}

static void test_a_full_outbox_takes_none_back(void)
{
    run(full_body);
}

static void without_body(void)
{
    bury_parcels();
    stage_kill(actor_whereis(WRITER_NAME));
    EXPECT(revive("5-1")->r.status == 503 && rows_in(TABLE_DEAD) == PARCELS);
    EXPECT(shows(list(""), "\"5-1\" \"5-2\" \"5-3\" "));
}

static void test_without_a_writer_nothing_comes_back(void)
{
    run(without_body);
}

/* ---- who may ---- */

static void test_the_outbox_is_the_operators_alone(void)
{
    for (size_t i = 0; i < outbox_routes_count; i++)
        TEST_CHECK(outbox_routes[i].surface == SURFACE_OPERATOR && outbox_routes[i].auth == AUTH_OPERATOR &&
                   outbox_routes[i].changes == (outbox_routes[i].method == METHOD_POST));
    for (enum listening l = 0; l < LISTENING_COUNT; l++) {
        const struct surface_tables t = surface_tables(l);
        bool there = false;
        for (size_t i = 0; i < t.count; i++)
            there |= t.tables[i] == outbox_routes;
        TEST_CHECK(there == (l == LISTENING_OPERATOR));
    }
}

TEST_LIST
= {
    {"dead rows are listed", test_dead_rows_are_listed},
    {"a page goes on where the one before ended", test_a_page_goes_on_where_the_one_before_ended},
    {"a row that can't be read is listed as such", test_a_row_that_cannot_be_read_is_listed_as_such},
    {"a dead row comes back with an entry of who did it",
     test_a_dead_row_comes_back_with_an_entry_of_who_did_it},
    {"what is not dead is not found", test_what_is_not_dead_is_not_found},
    {"a full outbox takes none back", test_a_full_outbox_takes_none_back},
    {"without a writer nothing comes back", test_without_a_writer_nothing_comes_back},
    {"the outbox is the operators' alone", test_the_outbox_is_the_operators_alone},
    {NULL, NULL},
};
