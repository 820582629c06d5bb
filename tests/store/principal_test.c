/* Principals in the store: who is there, what another secret changes, and what the audit log says of it. */
#include "acutest.h"

#include "store/principal.h"
#include "tests/store/fresh.h"

#define AT_US UINT64_C(1700000000000000)

static struct principal_put ask(enum principal_verb verb, const char *name)
{
    struct principal_put c = {.verb = (uint8_t)verb,
                              .name = span_text(name),
                              .role = span_text("agent"),
                              .projects = span_text("p1 p2"),
                              .agent_template = span_text("builder"),
                              .tier = span_text("B"),
                              .audit = fresh_uuid(),
                              .who = span_text("olga"),
                              .reason = span_text("a test"),
                              .request_id = span_text("r-1")};
    struct uuid a = fresh_uuid(), b = fresh_uuid();
    memcpy(c.hash.bytes, a.bytes, 16);
    memcpy(c.hash.bytes + 16, b.bytes, 16);
    return c;
}

static enum error put(struct fresh *fresh, uint64_t at_us, const struct principal_put *c)
{
    return batch_one(fresh->store, &principal_put_class, at_us, c, NULL);
}

static enum error take_away(struct fresh *fresh, const char *name)
{
    const struct principal_remove c = {
        .name = span_text(name), .audit = fresh_uuid(), .who = span_text("olga")};
    return batch_one(fresh->store, &principal_remove_class, AT_US, &c, NULL);
}

/* The view stays open: what was read borrows from it. */
static struct view *look(struct fresh *fresh, const char *name, enum error wanted, struct principal *ret)
{
    struct view *view = view_open_outside(fresh->store, 0);
    TEST_ASSERT(view != NULL);
    TEST_CHECK(principal_read(&view->txn, span_text(name), ret) == wanted);
    return view;
}

static uint64_t audits(struct fresh *fresh, const char *verb)
{
    struct view *view = view_open_outside(fresh->store, 0);
    uint64_t count = 0;
    struct audit row;
    TEST_ASSERT(view != NULL);
    struct scan scan = txn_scan(&view->txn, TABLE_AUDITS, span_of("", 1), 0, SCAN_UP);
    while (scan_next(&scan) && scan_read(&scan, &row) == OK)
        count += span_equal(row.verb, span_text(verb)) && span_equal(row.who, span_text("olga"));
    TEST_CHECK(scan_end(&scan) == OK);
    view_close(view);
    return count;
}

static void test_made_given_another_secret_and_taken_away(void)
{
    struct fresh fresh;
    struct principal row = {.created_us = 0};
    fresh_open(&fresh);
    const struct principal_put first = ask(PRINCIPAL_CREATE, "agent:1"),
                               again = ask(PRINCIPAL_CREATE, "agent:1"),
                               other = ask(PRINCIPAL_ROTATE, "agent:1"),
                               nobody = ask(PRINCIPAL_ROTATE, "agent:2");
    TEST_CHECK(put(&fresh, AT_US, &first) == OK);
    TEST_CHECK(put(&fresh, AT_US, &again) == ERR_EXISTS);
    TEST_CHECK(put(&fresh, AT_US, &nobody) == ERR_NOT_FOUND);
    TEST_CHECK(put(&fresh, AT_US + 5, &other) == OK);
    fresh_reopen(&fresh);
    struct view *view = look(&fresh, "agent:1", OK, &row);
    TEST_CHECK(memcmp(&row.hash, &other.hash, sizeof(row.hash)) == 0);
    TEST_CHECK(row.created_us == AT_US && row.rotated_us == AT_US + 5);
    TEST_CHECK(span_equal(row.role, span_text("agent")) && span_equal(row.projects, span_text("p1 p2")) &&
               span_equal(row.agent_template, span_text("builder")) && span_equal(row.tier, span_text("B")) &&
               span_equal(row.created_by, span_text("olga")));
    view_close(view);
    TEST_CHECK(take_away(&fresh, "agent:1") == OK && take_away(&fresh, "agent:1") == ERR_NOT_FOUND);
    view_close(look(&fresh, "agent:1", ERR_NOT_FOUND, &row));
    TEST_CHECK(put(&fresh, AT_US, &first) != OK); /* its audit entry is there */
    TEST_CHECK(put(&fresh, AT_US, &again) == OK);
    TEST_CHECK(audits(&fresh, "principal.created") == 2 && audits(&fresh, "principal.rotated") == 1 &&
               audits(&fresh, "principal.revoked") == 1);
    fresh_close(&fresh);
}

#define TOKENS_US UINT64_C(3600000000)

/* Up to when tokens of this name are ended; 0: none was. */
static uint64_t ended_us(struct fresh *fresh, const char *name, uint64_t *ret_expires_us)
{
    struct view *view = view_open_outside(fresh->store, 0);
    struct revocation row = {.revoked_us = 0};
    enum error e = revocation_read(&view->txn, REVOCATION_SUBJECT, span_of(NULL, 0), span_text(name), &row);
    TEST_CHECK(e == OK || e == ERR_NOT_FOUND);
    *ret_expires_us = row.expires_us;
    view_close(view);
    return row.revoked_us;
}

static void test_CTL_099_tokens_end_in_the_same_commit(void)
{
    struct fresh fresh;
    uint64_t expires_us;
    fresh_open(&fresh);
    struct principal_put c = ask(PRINCIPAL_CREATE, "a");
    c.tokens_us = TOKENS_US; /* of a new one there are none */
    TEST_CHECK(put(&fresh, AT_US, &c) == OK && ended_us(&fresh, "a", &expires_us) == 0);
    c = ask(PRINCIPAL_ROTATE, "a"); /* as a server of before wrote it */
    TEST_CHECK(put(&fresh, AT_US, &c) == OK && ended_us(&fresh, "a", &expires_us) == 0);
    c = ask(PRINCIPAL_ROTATE, "a");
    c.tokens_us = TOKENS_US;
    c.audit = (struct uuid){{0}};
    TEST_CHECK(put(&fresh, AT_US, &c) == ERR_INVALID && ended_us(&fresh, "a", &expires_us) == 0);
    c.audit = fresh_uuid();
    TEST_CHECK(put(&fresh, AT_US, &c) == OK && ended_us(&fresh, "a", &expires_us) == AT_US);
    TEST_CHECK(expires_us == AT_US + TOKENS_US);
    const struct principal_remove end = {.name = span_text("a"),
                                         .audit = fresh_uuid(),
                                         .who = span_text("olga"),
                                         .tokens_us = TOKENS_US,
                                         .cut_off_us = AT_US + 7};
    TEST_CHECK(batch_one(fresh.store, &principal_remove_class, AT_US, &end, NULL) == OK);
    TEST_CHECK(ended_us(&fresh, "a", &expires_us) == AT_US + 7 && expires_us == AT_US + 7 + TOKENS_US);
    TEST_CHECK(batch_one(fresh.store, &principal_remove_class, AT_US, &end, NULL) == ERR_NOT_FOUND);
    fresh_reopen(&fresh);
    TEST_CHECK(ended_us(&fresh, "a", &expires_us) == AT_US + 7);
    fresh_close(&fresh);
}

static void test_what_can_not_be_meant_writes_nothing(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct principal_put c = ask(PRINCIPAL_CREATE, "x");
    c.role = span_of(NULL, 0);
    TEST_CHECK(put(&fresh, AT_US, &c) == ERR_INVALID);
    c = ask(PRINCIPAL_CREATE, "x");
    c.projects = span_of(NULL, 0);
    TEST_CHECK(put(&fresh, AT_US, &c) == ERR_INVALID);
    c = ask(PRINCIPAL_CREATE, "");
    TEST_CHECK(put(&fresh, AT_US, &c) == ERR_INVALID);
    c = ask(PRINCIPAL_VERB_COUNT, "x");
    TEST_CHECK(put(&fresh, AT_US, &c) == ERR_INVALID);
    c = ask(PRINCIPAL_CREATE, "x");
    c.audit = (struct uuid){{0}}; /* nobody is let in without a word about it */
    TEST_CHECK(put(&fresh, AT_US, &c) == ERR_INVALID);
    struct view *view = view_open_outside(fresh.store, 0);
    TEST_CHECK(txn_rows(&view->txn, TABLE_PRINCIPALS) == 0 && txn_rows(&view->txn, TABLE_AUDITS) == 0);
    view_close(view);
    fresh_close(&fresh);
}

static enum error misplace(struct txn *txn, uint64_t at_us, void *context)
{
    const struct principal row = {.name = span_text("a"),
                                  .role = span_text("agent"),
                                  .projects = span_text("*"),
                                  .created_us = at_us,
                                  .rotated_us = at_us};
    (void)context;
    txn_write(txn, TABLE_PRINCIPALS, span_text("b"), &row);
    return OK;
}

static enum error unmade(struct txn *txn, uint64_t at_us, void *context)
{
    const struct principal row = {.name = span_text("a"), .created_us = at_us, .rotated_us = at_us};
    (void)context;
    txn_write(txn, TABLE_PRINCIPALS, span_text("a"), &row);
    return OK;
}

static void test_check_tells_of_rows_that_no_command_writes(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    TEST_CHECK(fresh_would_find(&fresh, misplace, NULL, "stands under another key"));
    TEST_CHECK(fresh_would_find(&fresh, unmade, NULL, "has no role, or no projects"));
    fresh_close(&fresh);
}

static void test_a_clock_that_was_ahead_is_no_damage(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    const struct principal_put made = ask(PRINCIPAL_CREATE, "agent:1"),
                               again = ask(PRINCIPAL_ROTATE, "agent:1");
    TEST_CHECK(put(&fresh, AT_US, &made) == OK && put(&fresh, AT_US - 1, &again) == OK);
    fresh_close(&fresh); /* which checks all rows */
}

static void test_a_secret_is_changed_without_room_for_a_note(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    const struct principal_put made = ask(PRINCIPAL_CREATE, "agent:1"),
                               again = ask(PRINCIPAL_ROTATE, "agent:1"),
                               other = ask(PRINCIPAL_CREATE, "agent:2");
    struct principal row;
    TEST_CHECK(put(&fresh, AT_US, &made) == OK);
    fresh.store->audits_max = 1;
    TEST_CHECK(put(&fresh, AT_US + 1, &other) == ERR_LIMIT); /* nobody is let in without a word about it */
    TEST_CHECK(put(&fresh, AT_US + 2, &again) == OK);
    struct view *view = look(&fresh, "agent:1", OK, &row);
    TEST_CHECK(memcmp(row.hash.bytes, again.hash.bytes, sizeof(row.hash.bytes)) == 0);
    view_close(view);
    TEST_CHECK(take_away(&fresh, "agent:1") == OK);
    fresh_close(&fresh);
}

TEST_LIST
= {
    {"AMB-21 made, given another secret, and taken away", test_made_given_another_secret_and_taken_away},
    {"CTL-099 tokens end in the same commit", test_CTL_099_tokens_end_in_the_same_commit},
    {"what can't be meant writes nothing", test_what_can_not_be_meant_writes_nothing},
    {"check tells of rows that no command writes", test_check_tells_of_rows_that_no_command_writes},
    {"a secret made by a clock put right, of a principal made by one ahead, is no damage",
     test_a_clock_that_was_ahead_is_no_damage},
    {"a secret is changed without room for a note", test_a_secret_is_changed_without_room_for_a_note},
    {NULL, NULL},
};
