/* Signing keys in the store: one active key of an environment, what each change leaves behind, and the forensic window. */
#include "acutest.h"

#include "store/audit.h"
#include "store/counter.h"
#include "store/retention.h"
#include "store/signing_key.h"
#include "tests/store/fresh.h"

#define AT_US   UINT64_C(1700000000000000)
#define DAY_US  SIGNING_KEY_DAY_US
#define HOUR_US UINT64_C(3600000000)
#define JWK     "{\"kty\":\"EC\"}"

static const struct uuid none;

static struct signing_key_rotate rotation(struct uuid previous)
{
    return (struct signing_key_rotate){.id = fresh_uuid(),
                                       .previous = previous,
                                       .algorithm = span_text("ES256"),
                                       .environment = span_text("dev"),
                                       .public_jwk = span_text(JWK),
                                       .sealed = span_text("sealed"),
                                       .overlap_us = 8 * HOUR_US,
                                       .audit = fresh_uuid(),
                                       .who = span_text("ops"),
                                       .reason = span_text("because")};
}

static enum error rotate(struct fresh *fresh, uint64_t at_us, const struct signing_key_rotate *c)
{
    return batch_one(fresh->store, &signing_key_rotate_class, at_us, c, NULL);
}

static struct uuid rotate_well(struct fresh *fresh, uint64_t at_us, struct uuid previous)
{
    struct signing_key_rotate c = rotation(previous);
    TEST_CHECK(rotate(fresh, at_us, &c) == OK);
    return c.id;
}

static enum error revoke_it(struct fresh *fresh, uint64_t at_us, struct uuid id, uint64_t kept_us)
{
    const struct signing_key_revoke c = {.id = id,
                                         .kept_us = kept_us,
                                         .audit = fresh_uuid(),
                                         .who = span_text("ops"),
                                         .reason = span_text("it leaked")};
    return batch_one(fresh->store, &signing_key_revoke_class, at_us, &c, NULL);
}

static enum error take_away(struct fresh *fresh, uint64_t at_us, struct uuid id, uint64_t kept_us)
{
    const struct signing_key_remove c = {.id = id, .kept_us = kept_us};
    return batch_one(fresh->store, &signing_key_remove_class, at_us, &c, NULL);
}

static void sweep(struct fresh *fresh, uint64_t at_us)
{
    const struct retention_sweep c = {.limit = 0};
    TEST_CHECK(batch_one(fresh->store, &retention_sweep_class, at_us, &c, NULL) == OK);
}

/* The row, in a view that stays open. */
static struct view *look(struct fresh *fresh, struct uuid id, struct signing_key *ret)
{
    struct view *view = view_open_outside(fresh->store, 0);
    struct key key = key_of_uuid(&id);
    TEST_ASSERT(view != NULL);
    memset(ret, 0xee, sizeof(*ret));
    enum error e = txn_read(&view->txn, TABLE_SIGNING_KEYS, key_span(&key), ret);
    if (e)
        ret->state = 99;
    TEST_CHECK(e == OK || e == ERR_NOT_FOUND);
    return view;
}

static uint8_t state_of(struct fresh *fresh, struct uuid id)
{
    struct signing_key row;
    view_close(look(fresh, id, &row));
    return row.state;
}

static int64_t audited(struct fresh *fresh, const char *verb)
{
    return fresh_counter(fresh, COUNTER_AUDITS, span_text(verb));
}

/* ---- rotation ---- */

static void test_signing_key_rotation_retires_the_one_before(void)
{
    struct fresh fresh;
    struct signing_key row;
    fresh_open(&fresh);
    struct signing_key_rotate c = rotation(none);
    c.first = true;
    TEST_CHECK(rotate(&fresh, AT_US, &c) == OK);
    struct uuid first = c.id, second = rotate_well(&fresh, AT_US + 5, first);
    fresh_reopen(&fresh);
    struct view *view = look(&fresh, first, &row);
    TEST_CHECK(row.state == SIGNING_KEY_RETIRING && row.created_us == AT_US && row.rotated_us == AT_US + 5);
    TEST_CHECK(row.expires_us == AT_US + 5 + 8 * HOUR_US && row.ended_us == 0 && row.kept_until_us == 0);
    TEST_CHECK(row.sealed.size == 0); /* nothing is signed with it any more */
    TEST_CHECK(span_equal(row.public_jwk, span_text(JWK)) && span_equal(row.algorithm, span_text("ES256")) &&
               span_equal(row.environment, span_text("dev")) && span_equal(row.created_by, span_text("ops")));
    view_close(view);
    view = look(&fresh, second, &row);
    TEST_CHECK(row.state == SIGNING_KEY_ACTIVE && row.created_us == AT_US + 5 && row.rotated_us == 0 &&
               row.expires_us == 0 && span_equal(row.sealed, span_text("sealed")));
    view_close(view);
    TEST_CHECK(audited(&fresh, "key.bootstrapped") == 1 && audited(&fresh, "key.rotated") == 1);
    fresh_close(&fresh);
}

static void test_signing_key_an_environment_has_one_active_key(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid first = rotate_well(&fresh, AT_US, none);
    struct signing_key_rotate c = rotation(none);
    TEST_CHECK(rotate(&fresh, AT_US, &c) == ERR_CONFLICT); /* it didn't know of the active one */
    c.first = true;
    TEST_CHECK(rotate(&fresh, AT_US, &c) == ERR_EXISTS);
    c = rotation(fresh_uuid());
    TEST_CHECK(rotate(&fresh, AT_US, &c) == ERR_NOT_FOUND);
    c = rotation(first);
    c.first = true;
    TEST_CHECK(rotate(&fresh, AT_US, &c) == ERR_INVALID);
    c = rotation(first);
    c.environment = span_text("stage");
    TEST_CHECK(rotate(&fresh, AT_US, &c) == ERR_INVALID);
    c = rotation(first);
    c.id = first;
    TEST_CHECK(rotate(&fresh, AT_US, &c) == ERR_EXISTS);
    struct uuid second = rotate_well(&fresh, AT_US, first);
    c = rotation(first);
    TEST_CHECK(rotate(&fresh, AT_US, &c) == ERR_TRANSITION); /* two that rotate at once: one wins */
    TEST_CHECK(state_of(&fresh, second) == SIGNING_KEY_ACTIVE);
    c = rotation(none); /* another environment is another matter */
    c.environment = span_text("stage");
    c.first = true;
    TEST_CHECK(rotate(&fresh, AT_US, &c) == OK);
    fresh_close(&fresh);
}

static void test_signing_key_incomplete_ones_are_refused(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct signing_key_rotate good = rotation(none), c = good;
    c.id = none;
    TEST_CHECK(rotate(&fresh, AT_US, &c) == ERR_INVALID);
    c = good;
    c.sealed = span_of(NULL, 0);
    TEST_CHECK(rotate(&fresh, AT_US, &c) == ERR_INVALID);
    c = good;
    c.public_jwk = span_of(NULL, 0);
    TEST_CHECK(rotate(&fresh, AT_US, &c) == ERR_INVALID);
    c = good;
    c.environment = span_of(NULL, 0);
    TEST_CHECK(rotate(&fresh, AT_US, &c) == ERR_INVALID);
    c = good;
    c.audit = none; /* what can't be audited isn't done */
    TEST_CHECK(rotate(&fresh, AT_US, &c) == ERR_INVALID);
    TEST_CHECK(state_of(&fresh, good.id) == 99);
    TEST_CHECK(rotate(&fresh, AT_US, &good) == OK);
    fresh_close(&fresh);
}

/* ---- ends ---- */

static void test_CTL_110_signing_key_revoked_in_any_living_state(void)
{
    struct fresh fresh;
    struct signing_key row;
    fresh_open(&fresh);
    struct uuid first = rotate_well(&fresh, AT_US, none), second = rotate_well(&fresh, AT_US, first);
    TEST_CHECK(revoke_it(&fresh, AT_US + 7, first, 90 * DAY_US) == OK);
    TEST_CHECK(revoke_it(&fresh, AT_US + 8, second, 90 * DAY_US) == OK);
    TEST_CHECK(revoke_it(&fresh, AT_US + 9, second, 90 * DAY_US) == ERR_TRANSITION);
    TEST_CHECK(revoke_it(&fresh, AT_US + 9, fresh_uuid(), 90 * DAY_US) == ERR_NOT_FOUND);
    struct view *view = look(&fresh, second, &row);
    TEST_CHECK(row.state == SIGNING_KEY_REVOKED && row.ended_us == AT_US + 8 && row.sealed.size == 0 &&
               row.kept_until_us == AT_US + 8 + 90 * DAY_US);
    TEST_CHECK(span_equal(row.ended_by, span_text("ops")) &&
               span_equal(row.ended_for, span_text("it leaked")) &&
               span_equal(row.public_jwk, span_text(JWK)));
    view_close(view);
    TEST_CHECK(audited(&fresh, "key.revoked") == 2);
    struct uuid third = rotate_well(&fresh, AT_US + 10, none); /* none is active: there may be another */
    TEST_CHECK(state_of(&fresh, third) == SIGNING_KEY_ACTIVE);
    fresh_close(&fresh);
}

static void test_CTL_114_signing_key_removed_at_its_time_and_not_before(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid first = rotate_well(&fresh, AT_US, none);
    TEST_CHECK(take_away(&fresh, AT_US + 9 * HOUR_US, first, 90 * DAY_US) ==
               ERR_TRANSITION); /* it is active */
    rotate_well(&fresh, AT_US, first);
    TEST_CHECK(take_away(&fresh, AT_US + 8 * HOUR_US - 1, first, 90 * DAY_US) == ERR_CONFLICT);
    TEST_CHECK(take_away(&fresh, AT_US + 8 * HOUR_US, first, 90 * DAY_US) == OK);
    TEST_CHECK(state_of(&fresh, first) == SIGNING_KEY_REMOVED);
    TEST_CHECK(take_away(&fresh, AT_US + 8 * HOUR_US, first, 90 * DAY_US) == ERR_TRANSITION);
    TEST_CHECK(revoke_it(&fresh, AT_US + 8 * HOUR_US, first, 90 * DAY_US) == ERR_TRANSITION);
    fresh_close(&fresh);
}

static void test_CTL_111_signing_key_history_of_ninety_days_at_least(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid first = rotate_well(&fresh, AT_US, none), second = rotate_well(&fresh, AT_US, first);
    TEST_CHECK(revoke_it(&fresh, AT_US, first, 90 * DAY_US - 1) == ERR_INVALID);
    TEST_CHECK(revoke_it(&fresh, AT_US, first, UINT64_MAX) == ERR_INVALID);
    TEST_CHECK(take_away(&fresh, AT_US + DAY_US, first, 89 * DAY_US) == ERR_INVALID);
    TEST_CHECK(revoke_it(&fresh, AT_US, first, 90 * DAY_US) == OK);
    TEST_CHECK(revoke_it(&fresh, AT_US, second, 400 * DAY_US) == OK);
    sweep(&fresh, AT_US + 89 * DAY_US);
    TEST_CHECK(state_of(&fresh, first) == SIGNING_KEY_REVOKED);
    sweep(&fresh, AT_US + 90 * DAY_US - 1);
    TEST_CHECK(state_of(&fresh, first) == SIGNING_KEY_REVOKED);
    sweep(&fresh, AT_US + 90 * DAY_US);
    TEST_CHECK(state_of(&fresh, first) == 99 && state_of(&fresh, second) == SIGNING_KEY_REVOKED);
    fresh_sound(&fresh);
    sweep(&fresh, AT_US + 500 * DAY_US);
    TEST_CHECK(state_of(&fresh, second) == 99);
    fresh_close(&fresh);
}

/* ---- what check finds ---- */

static enum error spoil_due(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    retention_clear(txn, AT_US + 90 * DAY_US, context);
    return OK;
}

static enum error spoil_row(struct txn *txn, const struct uuid *id, void (*how)(struct signing_key *row))
{
    static uint8_t bytes[SIGNING_KEY_JWK_MAX];
    struct key key = key_of_uuid(id);
    struct signing_key row;
    TEST_CHECK(txn_read(txn, TABLE_SIGNING_KEYS, key_span(&key), &row) == OK);
    memcpy(bytes, row.public_jwk.bytes, row.public_jwk.size);
    row.public_jwk.bytes = bytes;
    row.algorithm = row.environment = row.created_by = row.ended_by = row.ended_for = row.sealed =
        span_text("x");
    how(&row);
    txn_write(txn, TABLE_SIGNING_KEYS, key_span(&key), &row);
    return OK;
}

static void unknown_state(struct signing_key *row)
{
    row->state = 77;
}
static void another_id(struct signing_key *row)
{
    row->id = fresh_uuid();
}
static void only_sealed(struct signing_key *row)
{
    row->state = SIGNING_KEY_REVOKED;
}
static void active_again(struct signing_key *row)
{
    row->state = SIGNING_KEY_ACTIVE;
    row->environment = span_text("dev");
    row->ended_us = row->kept_until_us = 0;
}
static void no_end(struct signing_key *row)
{
    row->kept_until_us = 0;
}

static enum error spoil_state(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    return spoil_row(txn, context, unknown_state);
}
static enum error spoil_id(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    return spoil_row(txn, context, another_id);
}
static enum error spoil_sealed(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    return spoil_row(txn, context, only_sealed);
}
static enum error spoil_active(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    return spoil_row(txn, context, active_again);
}
static enum error spoil_end(struct txn *txn, uint64_t at_us, void *context)
{
    (void)at_us;
    return spoil_row(txn, context, no_end);
}

static void test_signing_key_check_finds_what_is_wrong(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid first = rotate_well(&fresh, AT_US, none);
    rotate_well(&fresh, AT_US, first);
    TEST_CHECK(revoke_it(&fresh, AT_US, first, 90 * DAY_US) == OK);
    fresh_sound(&fresh);
    TEST_CHECK(fresh_would_find(&fresh, spoil_due, &first, "will never be removed"));
    TEST_CHECK(fresh_would_find(&fresh, spoil_state, &first, "unknown state"));
    TEST_CHECK(fresh_would_find(&fresh, spoil_id, &first, "another id"));
    TEST_CHECK(fresh_would_find(&fresh, spoil_sealed, &first, "private half"));
    TEST_CHECK(fresh_would_find(&fresh, spoil_active, &first, "and another key of dev are both active"));
    TEST_CHECK(fresh_would_find(&fresh, spoil_end, &first, "has an end"));
    fresh_close(&fresh);
}

static void test_signing_key_lifecycle_is_sound(void)
{
    char text[256] = "";
    TEST_CHECK_(lifecycle_check(&signing_key_lifecycle, text, sizeof(text)), "%s", text);
    for (uint8_t from = 0; from < SIGNING_KEY_STATE_COUNT; from++)
        TEST_CHECK(
            !lifecycle_allows(&signing_key_lifecycle, from, SIGNING_KEY_ACTIVE)); /* nothing comes back */
}

/* A log that is full is no reason to trust a key that leaked, or to have none. */
static void test_CTL_110_signing_key_is_revoked_without_room_for_a_note(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid first = rotate_well(&fresh, AT_US, none);
    fresh.store->audits_max = 1;
    struct uuid second = rotate_well(&fresh, AT_US, first);
    TEST_CHECK(revoke_it(&fresh, AT_US, first, 90 * DAY_US) == OK);
    TEST_CHECK(revoke_it(&fresh, AT_US, second, 90 * DAY_US) == OK);
    TEST_CHECK(state_of(&fresh, first) == SIGNING_KEY_REVOKED &&
               state_of(&fresh, second) == SIGNING_KEY_REVOKED);
    fresh_close(&fresh);
}

TEST_LIST
= {
    {"signing key: CTL-105 a rotation retires the one before",
     test_signing_key_rotation_retires_the_one_before},
    {"signing key: an environment has one active key", test_signing_key_an_environment_has_one_active_key},
    {"signing key: incomplete ones are refused", test_signing_key_incomplete_ones_are_refused},
    {"signing key: CTL-110 revoked in any living state",
     test_CTL_110_signing_key_revoked_in_any_living_state},
    {"signing key: CTL-114 removed at its time and not before",
     test_CTL_114_signing_key_removed_at_its_time_and_not_before},
    {"signing key: CTL-111 history of ninety days at least",
     test_CTL_111_signing_key_history_of_ninety_days_at_least},
    {"signing key: check finds what is wrong", test_signing_key_check_finds_what_is_wrong},
    {"signing key: the lifecycle is sound", test_signing_key_lifecycle_is_sound},
    {"signing key: CTL-110 is revoked without room for a note",
     test_CTL_110_signing_key_is_revoked_without_room_for_a_note},
    {NULL, NULL},
};
