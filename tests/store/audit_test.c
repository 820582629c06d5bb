/* Audit entries: kept whole and for 400 days, told once, and answered again instead of written again. */
#include "acutest.h"

#include "store/audit.h"
#include "store/counter.h"
#include "store/event.h"
#include "store/ledger.h"
#include "store/outbox.h"
#include "store/retention.h"
#include "store/store.h"
#include "tests/store/fresh.h"

#define DAY_US (UINT64_C(86400) * 1000000)
#define AT_US  UINT64_C(1700000000000000)

static struct audit_append entry_of(struct uuid id, const char *key)
{
    return (struct audit_append){.id = id,
                                 .key = span_text(key),
                                 .who = span_text("ops@example.org"),
                                 .verb = span_text("actor.kill"),
                                 .target = span_text("<0.7.1>"),
                                 .reason = span_text("it hung"),
                                 .outcome = span_text("done"),
                                 .request_id = span_text("r-1"),
                                 .details = span_text("{\"left\":3}")};
}

/* *ret_id: what was answered; may be NULL. */
static enum error append_at(struct fresh *fresh, uint64_t at_us, const struct audit_append *c,
                            struct uuid *ret_id)
{
    struct answer answer;
    enum error e = batch_one(fresh->store, &audit_append_class, at_us, c, &answer);
    if (!e && TEST_CHECK(answer.size == sizeof(struct uuid)) && ret_id)
        memcpy(ret_id, answer.bytes, sizeof(*ret_id));
    return e;
}

static enum error append(struct fresh *fresh, const struct audit_append *c, struct uuid *ret_id)
{
    return append_at(fresh, AT_US, c, ret_id);
}

static struct view *look(struct fresh *fresh)
{
    struct view *view = view_open_outside(fresh->store, 0);
    TEST_ASSERT(view != NULL);
    return view;
}

static uint64_t rows(struct fresh *fresh, uint32_t table)
{
    struct view *view = look(fresh);
    uint64_t count = txn_rows(&view->txn, table);
    view_close(view);
    return count;
}

static bool there(struct fresh *fresh, const struct uuid *id)
{
    struct view *view = look(fresh);
    struct key key = key_of_uuid(id);
    struct audit audit;
    enum error e = txn_read(&view->txn, TABLE_AUDITS, key_span(&key), &audit);
    view_close(view);
    TEST_CHECK(e == OK || e == ERR_NOT_FOUND);
    return e == OK;
}

static int64_t counted(struct fresh *fresh, const char *verb)
{
    return fresh_counter(fresh, COUNTER_AUDITS, span_text(verb));
}

/* ---- appending ---- */

static void check_told(struct view *view, const struct uuid *id)
{
    struct event event;
    TEST_CHECK(txn_rows(&view->txn, TABLE_OUTBOX) == 0); /* nobody would ever take it out (AMB-62) */
    TEST_CHECK(event_read(&view->txn, id, 1, &event) == OK);
    TEST_CHECK(event.at_us == AT_US && event.domain == AUDIT_DOMAIN && event.name == AUDIT_APPENDED &&
               event.from_state == EVENT_NO_STATE && event.to_state == EVENT_NO_STATE);
}

static void test_audit_is_kept_as_it_came_with_event_and_due_entry(void)
{
    struct fresh fresh;
    struct audit audit;
    struct uuid answered;
    struct due_entry due;
    uint32_t count;
    fresh_open(&fresh);
    struct audit_append c = entry_of(fresh_uuid(), "");
    TEST_CHECK(append(&fresh, &c, &answered) == OK && uuid_equal(&answered, &c.id));
    fresh_reopen(&fresh);
    struct view *view = look(&fresh);
    struct key key = key_of_uuid(&c.id);
    TEST_CHECK(txn_read(&view->txn, TABLE_AUDITS, key_span(&key), &audit) == OK);
    TEST_CHECK(uuid_equal(&audit.id, &c.id) && audit.at_us == AT_US);
    TEST_CHECK(span_equal(audit.who, c.who) && span_equal(audit.verb, c.verb) &&
               span_equal(audit.target, c.target) && span_equal(audit.reason, c.reason) &&
               span_equal(audit.outcome, c.outcome) && span_equal(audit.request_id, c.request_id) &&
               span_equal(audit.details, c.details));
    check_told(view, &c.id);
    TEST_CHECK(due_scan(&view->txn, DUE_RETENTION, RETENTION_SHARD, UINT64_MAX, &due, 1, &count) == OK);
    TEST_CHECK(count == 1 && due.due_us == AT_US + 400 * DAY_US && due.row.kind == RETENTION_AUDIT);
    TEST_CHECK(txn_rows(&view->txn, TABLE_LEDGER) == 0);
    view_close(view);
    TEST_CHECK(counted(&fresh, "actor.kill") == 1 && counted(&fresh, "actor.start") == 0);
    fresh_close(&fresh);
}

static void test_audit_of_the_greatest_size(void)
{
    static char text[512], json[16384];
    struct fresh fresh;
    struct audit audit;
    fresh_open(&fresh);
    memset(text, 'x', sizeof(text));
    memset(json, 'x', sizeof(json));
    json[0] = json[sizeof(json) - 1] = '"';
    struct audit_append c = {.id = fresh_uuid(),
                             .key = span_of(text, 255),
                             .who = span_of(text, AUDIT_WHO_MAX),
                             .verb = span_of(text, 64),
                             .target = span_of(text, 256),
                             .reason = span_of(text, 512),
                             .outcome = span_of(text, 64),
                             .request_id = span_of(text, 128),
                             .details = span_of(json, sizeof(json))};
    TEST_CHECK(append(&fresh, &c, NULL) == OK && append(&fresh, &c, NULL) == OK);
    struct view *view = look(&fresh);
    struct key key = key_of_uuid(&c.id);
    TEST_CHECK(txn_read(&view->txn, TABLE_AUDITS, key_span(&key), &audit) == OK);
    TEST_CHECK(span_equal(audit.details, c.details));
    view_close(view);
    c.who.size++; /* one byte too many of any is refused before it is applied */
    TEST_CHECK(append(&fresh, &c, NULL) == ERR_INVALID);
    TEST_CHECK(rows(&fresh, TABLE_AUDITS) == 1 && rows(&fresh, TABLE_LEDGER) == 1);
    fresh_close(&fresh);
}

static void test_audit_refusals_write_nothing(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct audit_append good = entry_of(fresh_uuid(), ""), c = good;
    TEST_CHECK(append(&fresh, &good, NULL) == OK);
    TEST_CHECK(append(&fresh, &good, NULL) == ERR_EXISTS); /* without a key it is another entry */
    c.id = (struct uuid){{0}};
    TEST_CHECK(append(&fresh, &c, NULL) == ERR_INVALID);
    c = entry_of(fresh_uuid(), "");
    c.verb.size = 0;
    TEST_CHECK(append(&fresh, &c, NULL) == ERR_INVALID);
    c = entry_of(fresh_uuid(), "k");
    TEST_CHECK(append_at(&fresh, UINT64_MAX - 1, &c, NULL) == ERR_INVALID); /* its end is after all time */
    TEST_CHECK(rows(&fresh, TABLE_AUDITS) == 1 && rows(&fresh, TABLE_EVENTS) == 1 &&
               rows(&fresh, TABLE_LEDGER) == 0);
    TEST_CHECK(append_at(&fresh, AT_US + 1, &c, NULL) == OK); /* the refused key was not used up */
    fresh_close(&fresh);
}

struct pretend {
    uint16_t partition;
    int64_t rows;
};

static enum error pretend(struct txn *txn, uint64_t at_us, void *context)
{
    const struct pretend *p = context;
    const uint8_t label[2] = {0, (uint8_t)p->partition};
    (void)at_us;
    counter_add(txn, COUNTER_OUTBOX, span_of(label, sizeof(label)), p->rows);
    txn->writes++; /* a batch without a row has nothing to commit */
    return OK;
}

static void test_audit_needs_no_room_in_the_outbox(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct audit_append c = entry_of(fresh_uuid(), "k");
    struct view *view = look(&fresh);
    struct pretend full = {.partition = outbox_partition(&view->txn, &c.id), .rows = OUTBOX_HARD};
    view_close(view);
    TEST_CHECK(fresh_do(&fresh, AT_US, pretend, &full) == OK);
    TEST_CHECK(append(&fresh, &c, NULL) == OK);
    full.rows = -full.rows;
    TEST_CHECK(fresh_do(&fresh, AT_US, pretend, &full) == OK);
    fresh_close(&fresh);
}

static enum error note_twice(struct txn *txn, uint64_t at_us, void *context)
{
    struct audit_append c = entry_of(*(const struct uuid *)context, "");
    TEST_CHECK(audit_note(txn, at_us, &c) == ERR_LIMIT);
    TEST_CHECK(audit_note_if_possible(txn, at_us, &c) == OK && txn->writes == 0);
    c.verb.size = 0; /* what can't be meant is told of all the same */
    TEST_CHECK(audit_note_if_possible(txn, at_us, &c) == ERR_INVALID);
    return ERR_NOT_FOUND;
}

static void test_audit_has_an_end_of_its_room(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    TEST_CHECK(fresh.store->audits_max == AUDITS_MAX); /* unless the options say otherwise: store.audits */
    fresh.store->audits_max = 2;
    struct audit_append first = entry_of(fresh_uuid(), ""), second = entry_of(fresh_uuid(), "k"),
                        third = entry_of(fresh_uuid(), "l");
    TEST_CHECK(append(&fresh, &first, NULL) == OK && append(&fresh, &second, NULL) == OK);
    TEST_CHECK(append(&fresh, &third, NULL) == ERR_LIMIT && append(&fresh, &second, NULL) == OK);
    TEST_CHECK(fresh_do(&fresh, AT_US, note_twice, &third.id) == ERR_NOT_FOUND);
    TEST_CHECK(rows(&fresh, TABLE_AUDITS) == 2 && rows(&fresh, TABLE_EVENTS) == 2 &&
               rows(&fresh, TABLE_LEDGER) == 1);
    fresh_close(&fresh);
}

/* ---- the same again ---- */

static void test_audit_repeated_is_answered_again(void)
{
    struct fresh fresh;
    struct uuid answered;
    fresh_open(&fresh);
    struct audit_append first = entry_of(fresh_uuid(), "key-1"), again = entry_of(fresh_uuid(), "key-1");
    again.request_id = span_text("r-2"); /* a second try has an id of its own and another request */
    TEST_CHECK(append(&fresh, &first, NULL) == OK);
    TEST_CHECK(append_at(&fresh, AT_US + 5, &again, &answered) == OK && uuid_equal(&answered, &first.id));
    fresh_reopen(&fresh);
    TEST_CHECK(append_at(&fresh, AT_US + DAY_US - 1, &again, &answered) == OK &&
               uuid_equal(&answered, &first.id));
    TEST_CHECK(!there(&fresh, &again.id) && rows(&fresh, TABLE_AUDITS) == 1 &&
               rows(&fresh, TABLE_EVENTS) == 1 && rows(&fresh, TABLE_DUE) == 1 &&
               counted(&fresh, "actor.kill") == 1);
    TEST_CHECK(append_at(&fresh, AT_US + DAY_US, &again, &answered) == OK &&
               uuid_equal(&answered, &again.id)); /* a day later the key is a new one */
    TEST_CHECK(rows(&fresh, TABLE_AUDITS) == 2);
    fresh_close(&fresh);
}

static void test_audit_key_with_another_request(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct audit_append first = entry_of(fresh_uuid(), "key-1");
    TEST_CHECK(append(&fresh, &first, NULL) == OK);
    struct audit_append other[5];
    for (size_t i = 0; i < 5; i++)
        other[i] = entry_of(fresh_uuid(), "key-1");
    other[0].verb = span_text("actor.stop");
    other[1].target = span_text("<0.8.1>");
    other[2].reason = span_text("it hung ");
    other[3].outcome = span_text("refused");
    other[4].details = span_text("");
    for (size_t i = 0; i < 5; i++)
        TEST_CHECK(append(&fresh, &other[i], NULL) == ERR_KEY_REUSED);
    struct audit_append moved = entry_of(fresh_uuid(), "key-1"); /* where a field ends counts, too */
    moved.reason = span_text("it hungdone");
    moved.outcome = span_text("");
    TEST_CHECK(append(&fresh, &moved, NULL) == ERR_KEY_REUSED);
    moved = entry_of(fresh_uuid(), "key-1");
    moved.who = span_text("dev@example.org"); /* keys are each caller's own */
    TEST_CHECK(append(&fresh, &moved, NULL) == OK);
    TEST_CHECK(rows(&fresh, TABLE_AUDITS) == 2);
    fresh_close(&fresh);
}

/* ---- 400 days ---- */

static uint32_t sweep(struct fresh *fresh, uint64_t now_us)
{
    struct retention_sweep c = {.limit = 0};
    struct answer answer;
    uint32_t swept[2] = {0, 1};
    TEST_CHECK(batch_one(fresh->store, &retention_sweep_class, now_us, &c, &answer) == OK);
    if (TEST_CHECK(answer.size == sizeof(swept)))
        memcpy(swept, answer.bytes, sizeof(swept));
    TEST_CHECK(swept[1] == 0);
    return swept[0];
}

static void test_audit_is_kept_400_days_to_the_microsecond(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct audit_append c = entry_of(fresh_uuid(), "");
    TEST_CHECK(append(&fresh, &c, NULL) == OK);
    TEST_CHECK(sweep(&fresh, AT_US + 400 * DAY_US - 1) == 0 && there(&fresh, &c.id));
    TEST_CHECK(sweep(&fresh, AT_US + 400 * DAY_US) == 1 && !there(&fresh, &c.id));
    TEST_CHECK(rows(&fresh, TABLE_EVENTS) == 0 && rows(&fresh, TABLE_OUTBOX) == 0 &&
               rows(&fresh, TABLE_DUE) == 0 && counted(&fresh, "actor.kill") == 0);
    fresh_close(&fresh);
}

/* ---- of an earlier version ---- */

struct old_row {
    struct uuid id;
    uint64_t seq;
};

/* The row of the outbox, and the number of it in the entry's timer. */
static enum error put_old_row(struct txn *txn, uint64_t at_us, void *context)
{
    struct old_row *x = context;
    outbox_put(txn, at_us, AUDIT_TOPIC, &x->id, 1, &x->seq);
    retention_clear(txn, at_us + AUDIT_KEPT_US, &x->id);
    retention_set(txn, RETENTION_AUDIT, at_us + AUDIT_KEPT_US, &x->id, x->seq);
    return OK;
}

static struct old_row append_old(struct fresh *fresh)
{
    struct old_row x = {.id = fresh_uuid()};
    struct audit_append c = entry_of(x.id, "");
    TEST_CHECK(append(fresh, &c, NULL) == OK);
    TEST_CHECK(fresh_do(fresh, AT_US, put_old_row, &x) == OK);
    return x;
}

/* A row that was given up goes with its entry: else it would name an event that isn't there. */
static void test_audit_takes_its_dead_row_along(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct old_row old = append_old(&fresh);
    struct view *view = look(&fresh);
    uint16_t partition = outbox_partition(&view->txn, &old.id);
    view_close(view);
    struct outbox_claim_command claim = {.partition = partition, .holder = 1};
    struct outbox_bury_command bury = {.partition = partition, .seq = old.seq, .fence = 1};
    struct outbox_revive_command revive = {.partition = partition, .seq = old.seq};
    TEST_CHECK(batch_one(fresh.store, &outbox_claim_class, AT_US, &claim, NULL) == OK);
    TEST_CHECK(batch_one(fresh.store, &outbox_bury_class, AT_US, &bury, NULL) == OK);
    TEST_CHECK(batch_one(fresh.store, &outbox_revive_class, AT_US, &revive, NULL) == OK);
    TEST_CHECK(batch_one(fresh.store, &outbox_bury_class, AT_US, &bury, NULL) == OK);
    fresh_sound(&fresh);
    TEST_CHECK(rows(&fresh, TABLE_DEAD) == 1);
    TEST_CHECK(sweep(&fresh, AT_US + 400 * DAY_US) == 1 && rows(&fresh, TABLE_DEAD) == 0);
    fresh_close(&fresh);
}

/* Rows of other topics stay, wherever they stand between them. */
static enum error put_other_row(struct txn *txn, uint64_t at_us, void *context)
{
    uint64_t seq;
    outbox_put(txn, at_us, AUDIT_TOPIC + 1, context, 1, &seq);
    return OK;
}

static enum error clear_others(struct txn *txn, uint64_t at_us, void *context)
{
    struct outbox_row rows[16];
    uint32_t count = 0;
    (void)at_us;
    (void)context;
    for (uint16_t partition = 0; partition < OUTBOX_PARTITIONS; partition++) {
        TEST_CHECK(outbox_scan(txn, partition, 0, rows, 16, &count) == OK);
        for (uint32_t i = 0; i < count; i++)
            TEST_CHECK(outbox_forget(txn, partition, rows[i].seq) == OK);
    }
    return OK;
}

static void test_audit_rows_of_an_earlier_version_leave_the_outbox_in_steps(void)
{
    enum { OLD = 100, OTHERS = 7, STEP = 3 };
    struct fresh fresh;
    struct old_row old[OLD];
    struct answer answer;
    uint32_t swept[2] = {0, 1}, sweeps = 0;
    fresh_open(&fresh);
    for (uint32_t i = 0; i < OLD; i++) {
        old[i] = append_old(&fresh);
        if (i >= OLD - OTHERS)
            TEST_CHECK(fresh_do(&fresh, AT_US, put_other_row, &old[i].id) == OK);
    }
    fresh_sound(&fresh);
    struct retention_sweep c = {.limit = STEP};
    for (; swept[1] && sweeps < OLD; sweeps++) {
        uint64_t before = rows(&fresh, TABLE_OUTBOX);
        TEST_CHECK(batch_one(fresh.store, &retention_sweep_class, AT_US + 1, &c, &answer) == OK);
        memcpy(swept, answer.bytes, sizeof(swept));
        TEST_CHECK(swept[0] == 0 && before - rows(&fresh, TABLE_OUTBOX) <= OUTBOX_PARTITIONS * STEP);
    }
    TEST_CHECK_(sweeps > 1 && !swept[1], "%u sweeps", sweeps);
    c.limit = 0; /* those behind others that wait */
    TEST_CHECK(batch_one(fresh.store, &retention_sweep_class, AT_US + 1, &c, &answer) == OK);
    TEST_CHECK(rows(&fresh, TABLE_OUTBOX) == OTHERS && rows(&fresh, TABLE_AUDITS) == OLD);
    fresh_sound(&fresh);
    TEST_CHECK(fresh_do(&fresh, AT_US, clear_others, NULL) == OK);
    TEST_CHECK(sweep(&fresh, AT_US + 400 * DAY_US) == OLD); /* whose timers name rows that have gone */
    fresh_close(&fresh);
}

/* Three entries on each of 430 days, one of them with a key, a sweep a day: what is there is always what was
 * appended within the last 400 days, and the ledger knows the keys of one day. */
static void test_audit_over_430_days(void)
{
    enum { DAYS = 430, PER_DAY = 3 };
    static struct uuid ids[DAYS][PER_DAY];
    struct fresh fresh;
    fresh_open(&fresh);
    for (uint32_t day = 0; day < DAYS; day++) {
        uint64_t now_us = AT_US + day * DAY_US;
        struct batch_item items[PER_DAY + 1];
        uint8_t bytes[PER_DAY + 1][512];
        char key[16];
        snprintf(key, sizeof(key), "day %u", day);
        for (uint32_t i = 0; i < PER_DAY; i++) {
            ids[day][i] = fresh_uuid();
            struct audit_append c = entry_of(ids[day][i], i == 0 ? key : "");
            size_t size = record_encode(&audit_append_record, &c, bytes[i], sizeof(bytes[i]));
            items[i] = (struct batch_item){
                .class = &audit_append_class, .at_us = now_us, .bytes = span_of(bytes[i], size)};
        }
        struct retention_sweep c = {.limit = 0};
        size_t size = record_encode(&retention_sweep_record, &c, bytes[PER_DAY], sizeof(bytes[PER_DAY]));
        items[PER_DAY] = (struct batch_item){
            .class = &retention_sweep_class, .at_us = now_us, .bytes = span_of(bytes[PER_DAY], size)};
        TEST_CHECK(batch_run(fresh.store, items, PER_DAY + 1) == OK);
        uint32_t days_kept = day + 1 < AUDIT_KEPT_DAYS ? day + 1 : AUDIT_KEPT_DAYS;
        TEST_CHECK(counted(&fresh, "actor.kill") == days_kept * PER_DAY);
        TEST_CHECK(rows(&fresh, TABLE_LEDGER) == 1);
        for (uint32_t i = 0; i < PER_DAY; i++) {
            TEST_CHECK(there(&fresh, &ids[day][i]));
            TEST_CHECK(day < AUDIT_KEPT_DAYS || !there(&fresh, &ids[day - AUDIT_KEPT_DAYS][i]));
            TEST_CHECK(day + 1 < AUDIT_KEPT_DAYS || there(&fresh, &ids[day + 1 - AUDIT_KEPT_DAYS][i]));
        }
        if (day % 50 == 49) {
            fresh_sound(&fresh);
            fresh_reopen(&fresh);
        }
    }
    TEST_CHECK(rows(&fresh, TABLE_AUDITS) == AUDIT_KEPT_DAYS * PER_DAY);
    TEST_CHECK(rows(&fresh, TABLE_EVENTS) == AUDIT_KEPT_DAYS * PER_DAY);
    TEST_CHECK(rows(&fresh, TABLE_DUE) == AUDIT_KEPT_DAYS * PER_DAY);
    fresh_sound(&fresh);
    for (uint32_t left = AUDIT_KEPT_DAYS * PER_DAY; left > 0;) { /* nobody ran for years: many sweeps */
        struct retention_sweep c = {.limit = 0};
        TEST_CHECK(batch_one(fresh.store, &retention_sweep_class, AT_US + 2000 * DAY_US, &c, NULL) == OK);
        left = left > RETENTION_ROWS_MAX ? left - RETENTION_ROWS_MAX : 0;
        TEST_CHECK(rows(&fresh, TABLE_AUDITS) == left);
    }
    TEST_CHECK(rows(&fresh, TABLE_EVENTS) == 0 && rows(&fresh, TABLE_OUTBOX) == 0 &&
               rows(&fresh, TABLE_LEDGER) == 0);
    fresh_close(&fresh);
}

TEST_LIST
= {
    {"audit: kept as it came, with event and due entry (AMB-62)",
     test_audit_is_kept_as_it_came_with_event_and_due_entry},
    {"audit: of the greatest size", test_audit_of_the_greatest_size},
    {"audit: refusals write nothing", test_audit_refusals_write_nothing},
    {"audit: needs no room in the outbox", test_audit_needs_no_room_in_the_outbox},
    {"audit: has an end of its room", test_audit_has_an_end_of_its_room},
    {"audit: repeated is answered again", test_audit_repeated_is_answered_again},
    {"audit: a key with another request", test_audit_key_with_another_request},
    {"audit: kept 400 days to the microsecond", test_audit_is_kept_400_days_to_the_microsecond},
    {"audit: takes its dead row along", test_audit_takes_its_dead_row_along},
    {"audit: rows of an earlier version leave the outbox in steps",
     test_audit_rows_of_an_earlier_version_leave_the_outbox_in_steps},
    {"audit: over 430 days", test_audit_over_430_days},
    {NULL, NULL},
};
