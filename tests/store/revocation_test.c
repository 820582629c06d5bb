/* Revocations and seen tokens in the store: what counts as the same one, and until when each is kept. */
#include "acutest.h"

#include "store/audit.h"
#include "store/counter.h"
#include "store/named_id.h"
#include "store/retention.h"
#include "store/revocation.h"
#include "store/seen_token.h"
#include "tests/store/fresh.h"

#define AT_US UINT64_C(1700000000000000)

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

static void sweep(struct fresh *fresh, uint64_t at_us)
{
    const struct retention_sweep c = {.limit = 0};
    TEST_CHECK(batch_one(fresh->store, &retention_sweep_class, at_us, &c, NULL) == OK);
}

/* ---- revocations ---- */

static struct revocation_put revocation(uint8_t kind, const char *issuer, const char *value,
                                        uint64_t expires_us)
{
    return (struct revocation_put){.kind = kind,
                                   .issuer = span_text(issuer),
                                   .value = span_text(value),
                                   .expires_us = expires_us,
                                   .audit = fresh_uuid(),
                                   .who = span_text("ops"),
                                   .reason = span_text("it leaked")};
}

static enum error revoke_it(struct fresh *fresh, uint64_t at_us, const struct revocation_put *c,
                            struct uuid *ret_id)
{
    struct answer answer;
    enum error e = batch_one(fresh->store, &revocation_put_class, at_us, c, &answer);
    if (!e && TEST_CHECK(answer.size == sizeof(*ret_id)))
        memcpy(ret_id, answer.bytes, sizeof(*ret_id));
    return e;
}

static struct uuid revoke_well(struct fresh *fresh, uint64_t at_us, uint8_t kind, const char *issuer,
                               const char *value, uint64_t expires_us)
{
    struct revocation_put c = revocation(kind, issuer, value, expires_us);
    struct uuid id = {{0}};
    TEST_CHECK(revoke_it(fresh, at_us, &c, &id) == OK);
    return id;
}

static void check_row(struct fresh *fresh, struct uuid id, uint64_t revoked_us, uint64_t expires_us)
{
    struct view *view = look(fresh);
    struct key key = key_of_uuid(&id);
    struct revocation row;
    TEST_CHECK(txn_read(&view->txn, TABLE_REVOCATIONS, key_span(&key), &row) == OK);
    TEST_CHECK(row.revoked_us == revoked_us && row.expires_us == expires_us);
    TEST_CHECK(span_equal(row.who, span_text("ops")) && span_equal(row.reason, span_text("it leaked")));
    view_close(view);
}

static void test_CTL_095_revocation_of_each_kind_is_kept(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    for (uint8_t kind = 0; kind < REVOCATION_KIND_COUNT; kind++) {
        struct uuid id = revoke_well(&fresh, AT_US, kind, "i", "v", AT_US + 100);
        fresh_reopen(&fresh);
        check_row(&fresh, id, AT_US, AT_US + 100);
        char verb[32];
        snprintf(verb, sizeof(verb), "%s.revoked", revocation_kind_name(kind));
        TEST_CHECK(fresh_counter(&fresh, COUNTER_AUDITS, span_text(verb)) == 1);
    }
    TEST_CHECK(rows(&fresh, TABLE_REVOCATIONS) == REVOCATION_KIND_COUNT);
    TEST_CHECK(revocation_kind_name(REVOCATION_KIND_COUNT) == NULL);
    fresh_close(&fresh);
}

static void test_revocation_of_the_same_thing_moves_on_and_never_back(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid id = revoke_well(&fresh, AT_US, REVOCATION_SUBJECT, "", "u1", AT_US + 100), again;
    again = revoke_well(&fresh, AT_US + 10, REVOCATION_SUBJECT, "", "u1", AT_US + 50);
    TEST_CHECK(uuid_equal(&id, &again));
    check_row(&fresh, id, AT_US + 10, AT_US + 100);
    revoke_well(&fresh, AT_US + 5, REVOCATION_SUBJECT, "", "u1", AT_US + 200);
    check_row(&fresh, id, AT_US + 10, AT_US + 200);
    fresh_sound(&fresh);
    revoke_well(&fresh, AT_US + 5, REVOCATION_SUBJECT, "", "u1", 0); /* for ever */
    check_row(&fresh, id, AT_US + 10, 0);
    revoke_well(&fresh, AT_US + 5, REVOCATION_SUBJECT, "", "u1", AT_US + 300);
    check_row(&fresh, id, AT_US + 10, 0);
    TEST_CHECK(rows(&fresh, TABLE_REVOCATIONS) == 1);
    sweep(&fresh, UINT64_C(3000000000000000));
    TEST_CHECK(rows(&fresh, TABLE_REVOCATIONS) == 1);
    struct revocation_put ahead = revocation(REVOCATION_SUBJECT, "", "u1", 0);
    ahead.cut_off_us = AT_US + 20; /* tokens of these seconds were issued before the clock went back */
    TEST_CHECK(revoke_it(&fresh, AT_US + 6, &ahead, &again) == OK);
    check_row(&fresh, id, AT_US + 20, 0);
    fresh_close(&fresh);
}

static void test_revocation_goes_with_the_tokens_it_concerns(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    revoke_well(&fresh, AT_US, REVOCATION_TOKEN, "i", "j", AT_US + 100);
    revoke_well(&fresh, AT_US, REVOCATION_SESSION, "", "s", AT_US + 101);
    sweep(&fresh, AT_US + 99);
    TEST_CHECK(rows(&fresh, TABLE_REVOCATIONS) == 2);
    sweep(&fresh, AT_US + 100);
    TEST_CHECK(rows(&fresh, TABLE_REVOCATIONS) == 1);
    fresh_sound(&fresh);
    sweep(&fresh, AT_US + 101);
    TEST_CHECK(rows(&fresh, TABLE_REVOCATIONS) == 0);
    fresh_close(&fresh);
}

static void test_revocation_that_cant_be_meant(void)
{
    struct fresh fresh;
    struct uuid id;
    fresh_open(&fresh);
    struct revocation_put c = revocation(REVOCATION_KIND_COUNT, "i", "v", AT_US + 1);
    TEST_CHECK(revoke_it(&fresh, AT_US, &c, &id) == ERR_INVALID);
    c = revocation(REVOCATION_TOKEN, "i", "", AT_US + 1);
    TEST_CHECK(revoke_it(&fresh, AT_US, &c, &id) == ERR_INVALID);
    c = revocation(REVOCATION_TOKEN, "i", "v", AT_US);
    TEST_CHECK(revoke_it(&fresh, AT_US, &c, &id) == ERR_INVALID);
    c = revocation(REVOCATION_TOKEN, "i", "v", AT_US + 1);
    memset(&c.audit, 0, sizeof(c.audit));
    TEST_CHECK(revoke_it(&fresh, AT_US, &c, &id) == ERR_INVALID);
    TEST_CHECK(rows(&fresh, TABLE_REVOCATIONS) == 0);
    fresh_close(&fresh);
}

/* Parts have lengths: ("a", "bc") isn't ("ab", "c"), whatever is in them. */
static void test_named_ids_keep_their_parts_apart(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    const struct span parts[][2] = {{{"a", 1}, {"bc", 2}}, {{"ab", 2}, {"c", 1}}, {{"abc", 3}, {"", 0}},
                                    {{"", 0}, {"abc", 3}}, {{"a", 1}, {"b", 1}},  {{"a\0", 2}, {"b", 1}},
                                    {{"a", 1}, {"\0b", 2}}};
    enum { COUNT = sizeof(parts) / sizeof(parts[0]) };
    struct uuid ids[COUNT + 1];
    for (size_t i = 0; i < COUNT; i++)
        ids[i] = named_id(fresh.store, "k", parts[i], 2);
    ids[COUNT] = named_id(fresh.store, "l", parts[0], 2);
    for (size_t i = 0; i <= COUNT; i++) {
        TEST_CHECK(uuid_version(&ids[i]) == 8);
        for (size_t j = 0; j < i; j++)
            TEST_CHECK_(!uuid_equal(&ids[i], &ids[j]), "%zu and %zu", i, j);
    }
    struct uuid same = named_id(fresh.store, "k", parts[0], 2);
    TEST_CHECK(uuid_equal(&same, &ids[0]));
    fresh_close(&fresh);
}

/* ---- seen tokens ---- */

static enum error see_as(struct fresh *fresh, uint64_t at_us, const char *issuer, const char *jti,
                         uint8_t digest, uint64_t expires_us, bool single_use)
{
    struct seen_token_put c = {.issuer = span_text(issuer),
                               .jti = span_text(jti),
                               .subject = span_text("u"),
                               .session = span_text("s"),
                               .expires_us = expires_us,
                               .single_use = single_use};
    memset(&c.digest, digest, sizeof(c.digest));
    return batch_one(fresh->store, &seen_token_put_class, at_us, &c, NULL);
}

static enum error see(struct fresh *fresh, const char *issuer, const char *jti, uint8_t digest)
{
    return see_as(fresh, AT_US, issuer, jti, digest, AT_US + 100, false);
}

static void test_CTL_092_seen_token_again_is_reuse_and_another_is_a_replay(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    TEST_CHECK(see(&fresh, "i", "j", 1) == OK);
    TEST_CHECK(see(&fresh, "i", "j", 1) == OK);
    TEST_CHECK(see(&fresh, "i", "j", 2) == ERR_CONFLICT);
    fresh_reopen(&fresh);
    TEST_CHECK(see(&fresh, "i", "j", 1) == OK);
    TEST_CHECK(see(&fresh, "i", "j", 2) == ERR_CONFLICT);
    TEST_CHECK(see(&fresh, "i2", "j", 2) == OK && see(&fresh, "i", "j2", 2) == OK); /* of each issuer */
    TEST_CHECK(rows(&fresh, TABLE_SEEN_TOKENS) == 3);
    TEST_CHECK(see(&fresh, "", "j", 1) == ERR_INVALID && see(&fresh, "i", "", 1) == ERR_INVALID);
    TEST_CHECK(see_as(&fresh, AT_US + 100, "i", "late", 1, AT_US + 100, false) == ERR_EXPIRED);
    fresh_close(&fresh);
}

static void test_AMB_16_seen_token_of_single_use(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    TEST_CHECK(see_as(&fresh, AT_US, "i", "j", 1, AT_US + 100, true) == OK);
    TEST_CHECK(see_as(&fresh, AT_US, "i", "j", 1, AT_US + 100, true) == ERR_CONFLICT);
    TEST_CHECK(see_as(&fresh, AT_US, "i", "j", 1, AT_US + 100, false) == OK);
    fresh_close(&fresh);
}

static void test_CTL_094_seen_token_until_it_expires(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    TEST_CHECK(see(&fresh, "i", "j", 1) == OK);
    sweep(&fresh, AT_US + 99);
    TEST_CHECK(rows(&fresh, TABLE_SEEN_TOKENS) == 1);
    sweep(&fresh, AT_US + 100);
    TEST_CHECK(rows(&fresh, TABLE_SEEN_TOKENS) == 0);
    fresh_close(&fresh);
}

/* ---- what check finds ---- */

static enum error clear_due(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    retention_clear(txn, AT_US + 100, context);
    return OK;
}

static enum error move_revocation(struct txn *txn, uint64_t at_us, void *context)
{
    const struct revocation row = {
        .id = *(struct uuid *)context, .kind = 9, .value = span_text("another"), .revoked_us = at_us};
    struct key key = key_of_uuid(context);
    txn_write(txn, TABLE_REVOCATIONS, key_span(&key), &row);
    return OK;
}

static enum error move_seen(struct txn *txn, uint64_t at_us, void *context)
{
    const struct seen_token row = {.id = *(struct uuid *)context,
                                   .issuer = span_text("i"),
                                   .jti = span_text("another"),
                                   .first_us = at_us,
                                   .expires_us = AT_US + 100};
    struct key key = key_of_uuid(context);
    txn_write(txn, TABLE_SEEN_TOKENS, key_span(&key), &row);
    return OK;
}

static void test_revocation_check_finds_what_is_wrong(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid id = revoke_well(&fresh, AT_US, REVOCATION_TOKEN, "i", "j", AT_US + 100);
    TEST_CHECK(see(&fresh, "i", "j", 1) == OK);
    struct uuid seen = seen_token_id(fresh.store, span_text("i"), span_text("j"));
    fresh_sound(&fresh);
    TEST_CHECK(fresh_would_find(&fresh, clear_due, &id, "revocations"));
    TEST_CHECK(fresh_would_find(&fresh, clear_due, &seen, "seen_tokens"));
    TEST_CHECK(fresh_would_find(&fresh, move_revocation, &id, "unknown kind"));
    TEST_CHECK(fresh_would_find(&fresh, move_revocation, &id, "isn't the id of what it revokes"));
    TEST_CHECK(fresh_would_find(&fresh, move_seen, &seen, "isn't the id of its issuer and jti"));
    fresh_close(&fresh);
}

static void test_revocation_needs_no_room_for_a_note(void)
{
    struct fresh fresh;
    struct revocation there;
    fresh_open(&fresh);
    fresh.store->audits_max = 0;
    (void)revoke_well(&fresh, AT_US, REVOCATION_TOKEN, "", "a", AT_US + 1);
    struct view *view = look(&fresh);
    TEST_CHECK(revocation_read(&view->txn, REVOCATION_TOKEN, span_text(""), span_text("a"), &there) == OK);
    view_close(view);
    TEST_CHECK(rows(&fresh, TABLE_AUDITS) == 0);
    fresh_close(&fresh);
}

TEST_LIST
= {
    {"revocation: CTL-095 one of each kind is kept", test_CTL_095_revocation_of_each_kind_is_kept},
    {"revocation: the same thing moves on and never back",
     test_revocation_of_the_same_thing_moves_on_and_never_back},
    {"revocation: goes with the tokens it concerns", test_revocation_goes_with_the_tokens_it_concerns},
    {"revocation: those that can't be meant", test_revocation_that_cant_be_meant},
    {"named ids: parts are kept apart", test_named_ids_keep_their_parts_apart},
    {"seen token: CTL-092 again is reuse, another is a replay",
     test_CTL_092_seen_token_again_is_reuse_and_another_is_a_replay},
    {"seen token: AMB-16 of single use", test_AMB_16_seen_token_of_single_use},
    {"seen token: CTL-094 until it expires", test_CTL_094_seen_token_until_it_expires},
    {"revocation: check finds what is wrong", test_revocation_check_finds_what_is_wrong},
    {"revocation: needs no room for a note", test_revocation_needs_no_room_for_a_note},
    {NULL, NULL},
};
