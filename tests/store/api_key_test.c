/* API keys: one active one per client, whoever comes second in a race is refused, and what has ended is kept as long as
 * it must be. */
#include "acutest.h"

#include "store/api_key.h"
#include "store/audit.h"
#include "store/counter.h"
#include "store/retention.h"
#include "tests/store/fresh.h"

#define AT_US   UINT64_C(1700000000000000)
#define S_US    UINT64_C(1000000)
#define DAY_US  (86400 * S_US)
#define TTL_US  (90 * DAY_US)
#define KEPT_US (90 * DAY_US)

static const struct uuid nobody = {{0}};

static struct uuid new_client_as(struct fresh *fresh, uint64_t at_us, struct uuid id)
{
    struct client_create c = {.id = id, .from = span_text("192.0.2.1")};
    TEST_CHECK(batch_one(fresh->store, &client_create_class, at_us, &c, NULL) == OK);
    return id;
}

static struct uuid new_client(struct fresh *fresh, uint64_t at_us)
{
    return new_client_as(fresh, at_us, fresh_uuid());
}

static struct api_key_issue ask(struct uuid client, enum api_key_verb verb, struct uuid caller)
{
    struct api_key_issue c = {.client = client,
                              .id = fresh_uuid(),
                              .verb = (uint8_t)verb,
                              .caller = caller,
                              .window_us = 600 * S_US,
                              .ttl_us = TTL_US,
                              .kept_us = KEPT_US,
                              .by = span_text("tests")};
    struct uuid a = fresh_uuid(), b = fresh_uuid();
    memcpy(c.hash.bytes, a.bytes, 16);
    memcpy(c.hash.bytes + 16, b.bytes, 16);
    return c;
}

static enum error issue(struct fresh *fresh, uint64_t at_us, const struct api_key_issue *c,
                        struct api_key_issued *ret)
{
    struct answer answer;
    struct api_key_issued issued = {.made = 9};
    enum error e = batch_one(fresh->store, &api_key_issue_class, at_us, c, &answer);
    if (!e)
        TEST_CHECK(answer.size == API_KEY_ISSUED_SIZE &&
                   record_decode(&api_key_issued_record, 1, span_of(answer.bytes, answer.size), &issued) ==
                       OK);
    if (!e && ret)
        *ret = issued;
    return e;
}

static enum error take_away(struct fresh *fresh, uint64_t at_us, struct uuid client, struct uuid id,
                            struct uuid caller, struct uuid audit)
{
    struct api_key_revoke c = {.client = client,
                               .id = id,
                               .caller = caller,
                               .by = span_text("tests"),
                               .kept_us = KEPT_US,
                               .audit = audit,
                               .request_id = span_text("r-1")};
    struct answer answer;
    enum error e = batch_one(fresh->store, &api_key_revoke_class, at_us, &c, &answer);
    TEST_CHECK(e || answer.size == sizeof(struct digest));
    return e;
}

static enum error read_key(struct fresh *fresh, struct uuid id, struct api_key *ret)
{
    struct view *view = view_open_outside(fresh->store, 0);
    TEST_ASSERT(view != NULL);
    enum error e = api_key_read(&view->txn, &id, ret);
    view_close(view);
    return e; /* its spans are not for use */
}

static enum error find_key(struct fresh *fresh, const struct digest *hash, struct uuid *ret)
{
    struct api_key key;
    struct view *view = view_open_outside(fresh->store, 0);
    TEST_ASSERT(view != NULL);
    enum error e = api_key_find(&view->txn, hash, &key);
    view_close(view);
    if (!e)
        *ret = key.id;
    return e;
}

static uint64_t rows(struct fresh *fresh, uint32_t table)
{
    struct view *view = view_open_outside(fresh->store, 0);
    TEST_ASSERT(view != NULL);
    uint64_t count = txn_rows(&view->txn, table);
    view_close(view);
    return count;
}

static uint32_t sweep(struct fresh *fresh, uint64_t now_us)
{
    struct retention_sweep c = {.limit = 0};
    struct answer answer;
    uint32_t removed = 0;
    TEST_CHECK(batch_one(fresh->store, &retention_sweep_class, now_us, &c, &answer) == OK);
    memcpy(&removed, answer.bytes, sizeof(removed));
    return removed;
}

/* A client with one key, made at AT_US. */
static struct uuid first_key(struct fresh *fresh, struct uuid *ret_client)
{
    *ret_client = new_client(fresh, AT_US);
    struct api_key_issue c = ask(*ret_client, API_KEY_CREATE, nobody);
    TEST_CHECK(issue(fresh, AT_US, &c, NULL) == OK);
    return c.id;
}

/* ---- the first one ---- */

static void test_first_key_needs_none_within_the_window_AMB_J_21(void)
{
    struct fresh fresh;
    struct api_key_issued issued;
    struct uuid found;
    fresh_open(&fresh);
    struct uuid client = new_client(&fresh, AT_US);
    struct api_key_issue c = ask(client, API_KEY_CREATE, nobody);
    TEST_CHECK(issue(&fresh, AT_US + 600 * S_US, &c, NULL) == ERR_TOKEN); /* not after it */
    TEST_CHECK(rows(&fresh, TABLE_API_KEYS) == 0);
    TEST_CHECK(issue(&fresh, AT_US + 600 * S_US - 1, &c, &issued) == OK);
    TEST_CHECK(uuid_equal(&issued.id, &c.id) && issued.made == 1);
    TEST_CHECK(issued.created_us == AT_US + 600 * S_US - 1 &&
               issued.expires_us == issued.created_us + TTL_US);
    TEST_CHECK(find_key(&fresh, &c.hash, &found) == OK && uuid_equal(&found, &c.id));
    struct api_key_issue second = ask(client, API_KEY_CREATE, nobody); /* and only once */
    TEST_CHECK(issue(&fresh, AT_US + 1, &second, NULL) == ERR_TOKEN);
    second = ask(client, API_KEY_ROTATE, nobody);
    TEST_CHECK(issue(&fresh, AT_US + 1, &second, NULL) == ERR_TOKEN);
    second = ask(fresh_uuid(), API_KEY_CREATE, nobody);
    TEST_CHECK(issue(&fresh, AT_US + 1, &second, NULL) == ERR_NOT_FOUND);
    fresh_close(&fresh);
}

static void test_first_key_switched_off_AMB_J_21(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid client = new_client(&fresh, AT_US);
    struct api_key_issue c = ask(client, API_KEY_CREATE, nobody);
    c.window_us = 0;
    TEST_CHECK(issue(&fresh, AT_US, &c, NULL) == ERR_TOKEN); /* not even in the same instant */
    TEST_CHECK(issue(&fresh, AT_US - 1, &c, NULL) == ERR_TOKEN);
    c.verb = API_KEY_FORCE;
    TEST_CHECK(issue(&fresh, AT_US + 1, &c, NULL) == OK);
    fresh_close(&fresh);
}

/* The first key is not to be had again by who knows the client's id, even when it was revoked. */
static void test_revoked_only_key_AMB_J_26(void)
{
    struct fresh fresh;
    struct uuid client;
    fresh_open(&fresh);
    struct uuid id = first_key(&fresh, &client);
    TEST_CHECK(take_away(&fresh, AT_US + 1, client, id, id, nobody) == OK);
    struct api_key_issue c = ask(client, API_KEY_CREATE, nobody);
    TEST_CHECK(issue(&fresh, AT_US + 2, &c, NULL) == ERR_TOKEN);
    c = ask(client, API_KEY_FORCE, nobody);
    TEST_CHECK(issue(&fresh, AT_US + 2, &c, NULL) == OK);
    fresh_close(&fresh);
}

/* ---- create, rotate, renew ---- */

static void test_renewing_needs_one_that_is_there(void)
{
    struct fresh fresh;
    fresh_open(&fresh);
    struct uuid client = new_client(&fresh, AT_US);
    struct api_key_issue c = ask(client, API_KEY_RENEW, nobody);
    TEST_CHECK(issue(&fresh, AT_US + 1, &c, NULL) == ERR_CONFLICT && rows(&fresh, TABLE_API_KEYS) == 0);
    c.verb = API_KEY_ROTATE;
    TEST_CHECK(issue(&fresh, AT_US + 1, &c, NULL) == OK && rows(&fresh, TABLE_API_KEYS) == 1);
    fresh_close(&fresh);
}

static void test_create_again_tells_of_the_key_that_is_there_JOB_097(void)
{
    struct fresh fresh;
    struct api_key_issued issued;
    struct uuid client;
    fresh_open(&fresh);
    struct uuid id = first_key(&fresh, &client);
    struct api_key_issue c = ask(client, API_KEY_CREATE, id);
    TEST_CHECK(issue(&fresh, AT_US + 5, &c, &issued) == OK);
    TEST_CHECK(uuid_equal(&issued.id, &id) && issued.made == 0 && issued.created_us == AT_US &&
               issued.expires_us == AT_US + TTL_US);
    TEST_CHECK(rows(&fresh, TABLE_API_KEYS) == 1);
    /* Its key of idempotency is used up by that answer, whatever becomes of the key that it tells of (AMB-J-24). */
    c = ask(client, API_KEY_CREATE, id);
    c.key = span_text("k");
    TEST_CHECK(issue(&fresh, AT_US + 5, &c, &issued) == OK && issued.made == 0);
    TEST_CHECK(take_away(&fresh, AT_US + 6, client, id, id, nobody) == OK);
    c.id = fresh_uuid();
    TEST_CHECK(issue(&fresh, AT_US + 7, &c, &issued) == OK && uuid_equal(&issued.id, &id) &&
               issued.made == 0);
    c.digest.bytes[0] ^= 1;
    TEST_CHECK(issue(&fresh, AT_US + 7, &c, &issued) == ERR_KEY_REUSED);
    TEST_CHECK(rows(&fresh, TABLE_API_KEYS) == 1);
    fresh_close(&fresh);
}

static void check_replaced(enum api_key_verb verb, enum api_key_end end)
{
    struct fresh fresh;
    struct api_key_issued issued;
    struct api_key old, now;
    struct uuid client, found;
    fresh_open(&fresh);
    struct uuid id = first_key(&fresh, &client);
    TEST_CHECK(read_key(&fresh, id, &old) == OK && old.ended_us == 0);
    struct api_key_issue c = ask(client, verb, id);
    TEST_CHECK(issue(&fresh, AT_US + DAY_US, &c, &issued) == OK);
    TEST_CHECK(issued.made == 1 && uuid_equal(&issued.id, &c.id) &&
               memcmp(&issued.ended, &old.hash, sizeof(old.hash)) == 0);
    TEST_CHECK(issued.expires_us == AT_US + DAY_US + TTL_US); /* later than before: JOB-091 */
    TEST_CHECK(read_key(&fresh, id, &old) == OK && old.ended_us == AT_US + DAY_US && old.end == end &&
               old.gone_us == AT_US + DAY_US + KEPT_US);
    TEST_CHECK(read_key(&fresh, c.id, &now) == OK && now.ended_us == 0);
    TEST_CHECK(find_key(&fresh, &c.hash, &found) == OK && find_key(&fresh, &old.hash, &found) == OK);
    fresh_close(&fresh);
}

static void test_rotate_and_renew_end_the_old_key_at_once_JOB_118_AMB_J_25(void)
{
    check_replaced(API_KEY_ROTATE, API_KEY_ROTATED);
    check_replaced(API_KEY_RENEW, API_KEY_RENEWED);
}

static void test_of_two_rotations_one_loses_JOB_114_JOB_124(void)
{
    static const enum api_key_verb verbs[] = {API_KEY_CREATE, API_KEY_ROTATE, API_KEY_RENEW};
    struct fresh fresh;
    struct uuid client;
    fresh_open(&fresh);
    struct uuid id = first_key(&fresh, &client);
    struct api_key_issue winner = ask(client, API_KEY_ROTATE, id);
    TEST_CHECK(issue(&fresh, AT_US + 1, &winner, NULL) == OK);
    for (size_t i = 0; i < 3; i++) {
        struct api_key_issue loser = ask(client, verbs[i], id);
        TEST_CHECK(issue(&fresh, AT_US + 1, &loser, NULL) == ERR_CONFLICT);
    }
    TEST_CHECK(take_away(&fresh, AT_US + 1, client, id, id, nobody) == ERR_CONFLICT); /* JOB-134 */
    TEST_CHECK(rows(&fresh, TABLE_API_KEYS) == 2);
    struct api_key_issue next = ask(client, API_KEY_RENEW, winner.id);
    TEST_CHECK(issue(&fresh, AT_US + 2, &next, NULL) == OK);
    fresh_close(&fresh);
}

static void test_expired_caller_is_told_so_JOB_296(void)
{
    struct fresh fresh;
    struct uuid client;
    fresh_open(&fresh);
    struct uuid id = first_key(&fresh, &client);
    struct api_key_issue c = ask(client, API_KEY_RENEW, id);
    TEST_CHECK(issue(&fresh, AT_US + TTL_US, &c, NULL) == ERR_EXPIRED);
    TEST_CHECK(take_away(&fresh, AT_US + TTL_US, client, id, id, nobody) == ERR_EXPIRED);
    TEST_CHECK(issue(&fresh, AT_US + TTL_US - 1, &c, NULL) == OK);
    fresh_close(&fresh);
}

static void test_caller_of_another_client_is_refused(void)
{
    struct fresh fresh;
    struct uuid client, other;
    fresh_open(&fresh);
    (void)first_key(&fresh, &client);
    struct uuid theirs = first_key(&fresh, &other);
    struct api_key_issue c = ask(client, API_KEY_ROTATE, theirs);
    TEST_CHECK(issue(&fresh, AT_US + 1, &c, NULL) == ERR_CONFLICT);
    TEST_CHECK(take_away(&fresh, AT_US + 1, client, theirs, nobody, nobody) == ERR_NOT_FOUND); /* JOB-133 */
    fresh_close(&fresh);
}

/* ---- idempotency ---- */

static void test_same_key_is_answered_again_without_making_another_JOB_101_AMB_J_24(void)
{
    struct fresh fresh;
    struct api_key_issued first, again;
    fresh_open(&fresh);
    struct uuid client = new_client(&fresh, AT_US);
    struct api_key_issue c = ask(client, API_KEY_CREATE, nobody);
    c.key = span_text("k");
    c.digest.bytes[0] = 1;
    TEST_CHECK(issue(&fresh, AT_US, &c, &first) == OK && first.made == 1);
    struct api_key_issue repeat = ask(client, API_KEY_CREATE, nobody);
    repeat.key = c.key;
    repeat.digest = c.digest;
    TEST_CHECK(issue(&fresh, AT_US + 1, &repeat, &again) == OK && again.made == 0);
    TEST_CHECK(uuid_equal(&again.id, &first.id) && again.expires_us == first.expires_us);
    repeat.digest.bytes[0] = 2;
    TEST_CHECK(issue(&fresh, AT_US + 1, &repeat, NULL) == ERR_KEY_REUSED);
    /* A rotation that was answered is not done twice. */
    struct api_key_issue rotate = ask(client, API_KEY_ROTATE, first.id);
    rotate.key = span_text("r");
    TEST_CHECK(issue(&fresh, AT_US + 2, &rotate, &first) == OK);
    struct api_key_issue rotate_again = ask(client, API_KEY_ROTATE, first.id);
    rotate_again.key = span_text("r");
    TEST_CHECK(issue(&fresh, AT_US + 3, &rotate_again, &again) == OK && uuid_equal(&again.id, &rotate.id));
    const struct digest nothing = {{0}}; /* and ends nothing again */
    TEST_CHECK(memcmp(&first.ended, &nothing, sizeof(nothing)) != 0 &&
               memcmp(&again.ended, &nothing, sizeof(nothing)) == 0);
    TEST_CHECK(rows(&fresh, TABLE_API_KEYS) == 2);
    struct uuid next = client; /* the id beside it is another client's, and so is its key */
    next.bytes[15] ^= 1;
    struct api_key_issue theirs = ask(new_client_as(&fresh, AT_US, next), API_KEY_CREATE, nobody);
    theirs.key = c.key;
    theirs.digest = c.digest;
    TEST_CHECK(issue(&fresh, AT_US + 3, &theirs, &again) == OK && uuid_equal(&again.id, &theirs.id));
    fresh_close(&fresh);
}

static void test_refused_requests_do_not_use_up_the_key_AMB_J_29(void)
{
    struct fresh fresh;
    struct uuid client;
    fresh_open(&fresh);
    struct uuid id = first_key(&fresh, &client);
    struct api_key_issue c = ask(client, API_KEY_CREATE, nobody);
    c.key = span_text("k");
    TEST_CHECK(issue(&fresh, AT_US + 1, &c, NULL) == ERR_TOKEN);
    c = ask(client, API_KEY_ROTATE, id);
    c.key = span_text("k");
    c.digest.bytes[0] = 7;
    TEST_CHECK(issue(&fresh, AT_US + 2, &c, NULL) == OK);
    fresh_close(&fresh);
}

/* What was promised to whoever has a key of idempotency can't be kept then; others were promised nothing. */
static void test_a_full_ledger_refuses_keys_of_idempotency_alone(void)
{
    struct fresh fresh;
    struct uuid client;
    fresh_open(&fresh);
    fresh.ledger_max = 1;
    fresh_reopen(&fresh);
    struct uuid id = first_key(&fresh, &client);
    struct api_key_issue first = ask(client, API_KEY_ROTATE, id),
                         second = ask(client, API_KEY_ROTATE, first.id);
    first.key = span_text("a");
    second.key = span_text("b");
    TEST_CHECK(issue(&fresh, AT_US + 1, &first, NULL) == OK);
    TEST_CHECK(issue(&fresh, AT_US + 2, &first, NULL) == OK && rows(&fresh, TABLE_LEDGER) == 1);
    TEST_CHECK(issue(&fresh, AT_US + 2, &second, NULL) == ERR_LIMIT && rows(&fresh, TABLE_API_KEYS) == 2);
    second.key = span_text("");
    TEST_CHECK(issue(&fresh, AT_US + 2, &second, NULL) == OK && rows(&fresh, TABLE_LEDGER) == 1);
    fresh_close(&fresh);
}

/* Nothing that could be the secret is anywhere in what is kept: rows hold the hash alone. */
static void test_ids_and_hashes_are_unique(void)
{
    struct fresh fresh;
    struct uuid client;
    fresh_open(&fresh);
    struct uuid id = first_key(&fresh, &client);
    struct api_key_issue c = ask(client, API_KEY_ROTATE, id), d = ask(client, API_KEY_ROTATE, id);
    c.id = id;
    TEST_CHECK(issue(&fresh, AT_US + 1, &c, NULL) == ERR_EXISTS);
    struct api_key there;
    TEST_CHECK(read_key(&fresh, id, &there) == OK);
    d.hash = there.hash;
    TEST_CHECK(issue(&fresh, AT_US + 1, &d, NULL) == ERR_EXISTS);
    d.id = nobody;
    TEST_CHECK(issue(&fresh, AT_US + 1, &d, NULL) == ERR_INVALID);
    d = ask(client, API_KEY_VERB_COUNT, id);
    TEST_CHECK(issue(&fresh, AT_US + 1, &d, NULL) == ERR_INVALID);
    d = ask(client, API_KEY_ROTATE, id);
    d.ttl_us = UINT64_MAX / 2;
    TEST_CHECK(issue(&fresh, AT_US + 1, &d, NULL) == ERR_INVALID);
    fresh_close(&fresh);
}

/* ---- revoking ---- */

static bool is_ended_by(struct fresh *fresh, const struct uuid *id, const char *who)
{
    struct view *view = view_open_outside(fresh->store, 0);
    struct api_key key;
    TEST_ASSERT(view != NULL);
    bool is = api_key_read(&view->txn, id, &key) == OK && span_equal(key.ended_by, span_text(who));
    view_close(view);
    return is;
}

/* The only audit entry there is says what was done with which key of whom. */
static void is_noted(struct fresh *fresh, const char *verb, const struct uuid *client, const struct uuid *key)
{
    struct view *view = view_open_outside(fresh->store, 0);
    const struct key first = {.size = 0};
    char target[UUID_TEXT_SIZE], of[UUID_TEXT_SIZE], details[80];
    struct audit audit;
    TEST_ASSERT(view != NULL);
    uuid_format(key, target);
    uuid_format(client, of);
    snprintf(details, sizeof(details), "{\"client_id\":\"%s\"}", of);
    struct scan scan = txn_scan(&view->txn, TABLE_AUDITS, key_span(&first), 0, SCAN_UP);
    TEST_ASSERT(scan_next(&scan) && scan_read(&scan, &audit) == OK);
    TEST_CHECK(span_equal(audit.verb, span_text(verb)) && span_equal(audit.target, span_text(target)));
    TEST_CHECK(span_equal(audit.details, span_text(details)) && span_equal(audit.who, span_text("tests")));
    TEST_CHECK(span_equal(audit.request_id, span_text("r-1")));
    TEST_CHECK(!scan_next(&scan) && scan_end(&scan) == OK);
    view_close(view);
}

static void test_revoke_once_and_again_AMB_J_26(void)
{
    struct fresh fresh;
    struct api_key key;
    struct uuid client;
    fresh_open(&fresh);
    struct uuid id = first_key(&fresh, &client);
    struct api_key_issue c = ask(client, API_KEY_ROTATE, id);
    TEST_CHECK(issue(&fresh, AT_US + 1, &c, NULL) == OK);
    TEST_CHECK(take_away(&fresh, AT_US + 2, client, id, c.id, fresh_uuid()) ==
               OK); /* ended before: as it was */
    TEST_CHECK(read_key(&fresh, id, &key) == OK && key.ended_us == AT_US + 1 && key.end == API_KEY_ROTATED);
    TEST_CHECK(rows(&fresh, TABLE_AUDITS) == 0);
    TEST_CHECK(take_away(&fresh, AT_US + 3, client, c.id, c.id, fresh_uuid()) == OK);
    TEST_CHECK(read_key(&fresh, c.id, &key) == OK && key.ended_us == AT_US + 3 && key.end == API_KEY_REVOKED);
    is_noted(&fresh, "api_key.revoke", &client, &c.id);
    TEST_CHECK(is_ended_by(&fresh, &id, "tests") && is_ended_by(&fresh, &c.id, "tests"));
    TEST_CHECK(take_away(&fresh, AT_US + 4, client, c.id, nobody, fresh_uuid()) == OK); /* an operator's */
    TEST_CHECK(rows(&fresh, TABLE_AUDITS) == 1);
    TEST_CHECK(take_away(&fresh, AT_US + 4, client, fresh_uuid(), nobody, nobody) == ERR_NOT_FOUND);
    fresh_close(&fresh);
}

/* ---- how long they are kept ---- */

static void test_revoked_key_is_kept_90_days_JOB_402(void)
{
    struct fresh fresh;
    struct api_key key;
    struct uuid client, found;
    fresh_open(&fresh);
    struct uuid id = first_key(&fresh, &client);
    TEST_CHECK(read_key(&fresh, id, &key) == OK);
    TEST_CHECK(take_away(&fresh, AT_US + S_US, client, id, id, nobody) == OK);
    TEST_CHECK(sweep(&fresh, AT_US + S_US + KEPT_US - 1) == 0 && find_key(&fresh, &key.hash, &found) == OK);
    TEST_CHECK(sweep(&fresh, AT_US + S_US + KEPT_US) == 1);
    TEST_CHECK(find_key(&fresh, &key.hash, &found) == ERR_NOT_FOUND && rows(&fresh, TABLE_API_KEYS) == 0);
    TEST_CHECK(fresh_counter(&fresh, COUNTER_API_KEYS, span_of(client.bytes, 16)) == 0);
    struct api_key_issue c = ask(client, API_KEY_CREATE, nobody); /* it has had one, and always will have */
    TEST_CHECK(issue(&fresh, AT_US + 1, &c, NULL) == ERR_TOKEN);
    fresh_close(&fresh);
}

static enum error expect_removal(struct txn *txn, uint64_t at_us, void *context)
{
    retention_set(txn, RETENTION_API_KEY, at_us, context, 0);
    return OK;
}

static void test_an_entry_of_a_key_that_has_gone_goes(void)
{
    struct fresh fresh;
    struct uuid gone = fresh_uuid();
    fresh_open(&fresh);
    TEST_CHECK(fresh_do(&fresh, AT_US, expect_removal, &gone) == OK && rows(&fresh, TABLE_DUE) == 1);
    TEST_CHECK(sweep(&fresh, AT_US) == 0 && rows(&fresh, TABLE_DUE) == 0);
    fresh_close(&fresh);
}

static void test_active_key_is_kept_and_an_expired_one_90_days_longer_JOB_401(void)
{
    struct fresh fresh;
    struct api_key key;
    struct uuid client;
    fresh_open(&fresh);
    client = new_client(&fresh, AT_US);
    struct api_key_issue c = ask(client, API_KEY_CREATE, nobody);
    c.ttl_us = 800 * DAY_US;
    TEST_CHECK(issue(&fresh, AT_US, &c, NULL) == OK);
    TEST_CHECK(sweep(&fresh, AT_US + 400 * DAY_US) == 0 && read_key(&fresh, c.id, &key) == OK);
    TEST_CHECK(sweep(&fresh, AT_US + 800 * DAY_US + KEPT_US - 1) == 0);
    /* Revoked after its time: no longer kept than without that. */
    TEST_CHECK(take_away(&fresh, AT_US + 850 * DAY_US, client, c.id, nobody, nobody) == OK);
    TEST_CHECK(sweep(&fresh, AT_US + 800 * DAY_US + KEPT_US - 1) == 0);
    TEST_CHECK(sweep(&fresh, AT_US + 800 * DAY_US + KEPT_US) == 1 && rows(&fresh, TABLE_API_KEYS) == 0);
    c = ask(client, API_KEY_FORCE, nobody);
    TEST_CHECK(issue(&fresh, AT_US + 900 * DAY_US, &c, NULL) == OK);
    TEST_CHECK(sweep(&fresh, AT_US + 900 * DAY_US + TTL_US + KEPT_US) == 1); /* while it is the active one */
    fresh_sound(&fresh);
    c = ask(client, API_KEY_FORCE, nobody);
    TEST_CHECK(issue(&fresh, AT_US + 1200 * DAY_US, &c, NULL) == OK);
    fresh_close(&fresh);
}

/* One key after the other until so many are kept; the newest. */
static struct uuid rotate_until(struct fresh *fresh, struct uuid client, enum api_key_verb verb,
                                struct uuid id, uint32_t kept)
{
    for (uint32_t i = (uint32_t)rows(fresh, TABLE_API_KEYS); i < kept; i++) {
        struct api_key_issue c = ask(client, verb, verb == API_KEY_FORCE ? nobody : id);
        TEST_CHECK(issue(fresh, AT_US + i, &c, NULL) == OK);
        id = c.id;
    }
    return id;
}

static void test_a_client_can_not_fill_the_store_with_keys(void)
{
    struct fresh fresh;
    struct uuid client;
    fresh_open(&fresh);
    struct uuid id = first_key(&fresh, &client);
    id = rotate_until(&fresh, client, API_KEY_ROTATE, id, API_KEYS_KEPT_MAX);
    struct api_key_issue c = ask(client, API_KEY_ROTATE, id);
    TEST_CHECK(issue(&fresh, AT_US + S_US, &c, NULL) == ERR_LIMIT);
    TEST_CHECK(rows(&fresh, TABLE_API_KEYS) == API_KEYS_KEPT_MAX);
    struct uuid other;
    (void)first_key(&fresh, &other);
    TEST_CHECK(take_away(&fresh, AT_US + S_US, client, id, id, nobody) == OK); /* that always goes */
    fresh_close(&fresh);
}

static void test_an_operator_helps_a_client_that_has_used_up_its_keys_AMB_J_26(void)
{
    struct fresh fresh;
    struct uuid client;
    struct api_key key;
    fresh_open(&fresh);
    struct uuid first = first_key(&fresh, &client);
    struct uuid id = rotate_until(&fresh, client, API_KEY_ROTATE, first, API_KEYS_KEPT_MAX);
    TEST_CHECK(take_away(&fresh, AT_US + S_US, client, id, id, nobody) == OK); /* so it has none */
    id = rotate_until(&fresh, client, API_KEY_FORCE, nobody, API_KEYS_FORCED_MAX);
    TEST_CHECK(read_key(&fresh, id, &key) == OK && key.ended_us == 0);
    TEST_CHECK(read_key(&fresh, first, &key) == OK); /* JOB-402: and nothing of the audit has gone for it */
    struct api_key_issue c = ask(client, API_KEY_FORCE, nobody);
    TEST_CHECK(issue(&fresh, AT_US + S_US, &c, NULL) == ERR_LIMIT);
    TEST_CHECK(rows(&fresh, TABLE_API_KEYS) == API_KEYS_FORCED_MAX);
    fresh_close(&fresh);
}

/* ---- last use ---- */

/* What the key's last use is after a command of this time says that it was used then. */
static uint64_t touched(struct fresh *fresh, struct uuid id, uint64_t at_us, uint64_t used_us)
{
    struct api_key key;
    struct uuid gone = fresh_uuid();
    uint8_t uses[2 * API_KEY_TOUCH_SIZE];
    memcpy(uses, gone.bytes, 16);
    memcpy(uses + 16, &used_us, 8);
    memcpy(uses + 24, id.bytes, 16);
    memcpy(uses + 40, &used_us, 8);
    struct api_key_touch c = {.uses = span_of(uses, sizeof(uses))};
    TEST_CHECK(batch_one(fresh->store, &api_key_touch_class, at_us, &c, NULL) == OK);
    TEST_CHECK(read_key(fresh, id, &key) == OK && key.created_by.size == strlen("tests"));
    return key.used_us;
}

static void test_touch_moves_forward_only(void)
{
    struct fresh fresh;
    struct uuid client;
    const uint64_t now_us = AT_US + 300 * S_US;
    fresh_open(&fresh);
    struct uuid id = first_key(&fresh, &client);
    TEST_CHECK(touched(&fresh, id, now_us, AT_US + 60 * S_US) == AT_US + 60 * S_US);
    TEST_CHECK(touched(&fresh, id, now_us, AT_US + 30 * S_US) == AT_US + 60 * S_US);
    TEST_CHECK(touched(&fresh, id, now_us, AT_US + 120 * S_US) == AT_US + 120 * S_US);
    TEST_CHECK(touched(&fresh, id, now_us, now_us) == now_us); /* just now, and then what was before */
    TEST_CHECK(touched(&fresh, id, now_us, AT_US + 120 * S_US) == now_us);
    struct api_key_touch odd = {.uses = span_of("12345678901234567890123", 23)};
    TEST_CHECK(batch_one(fresh.store, &api_key_touch_class, AT_US, &odd, NULL) == ERR_INVALID);
    fresh_close(&fresh);
}

/* One that can't be read is told of when nothing else was written, wherever it stands among the others. */
static void test_touch_tells_of_a_key_that_cannot_be_read(void)
{
    struct fresh fresh;
    struct uuid client;
    fresh_open(&fresh);
    struct uuid id = first_key(&fresh, &client), unknown = fresh_uuid();
    uint8_t uses[2 * API_KEY_TOUCH_SIZE] = {0};
    struct api_key_touch c = {.uses = span_of(uses, sizeof(uses))};
    fresh_flip(&fresh, TABLE_API_KEYS, key_of_uuid(&id));
    for (uint32_t at = 0; at < sizeof(uses); at += API_KEY_TOUCH_SIZE) {
        memcpy(uses, unknown.bytes, sizeof(unknown));
        memcpy(uses + API_KEY_TOUCH_SIZE, unknown.bytes, sizeof(unknown));
        memcpy(uses + at, id.bytes, sizeof(id));
        TEST_CHECK(batch_one(fresh.store, &api_key_touch_class, AT_US, &c, NULL) == ERR_DAMAGED);
    }
    fresh_flip(&fresh, TABLE_API_KEYS, key_of_uuid(&id));
    TEST_CHECK(batch_one(fresh.store, &api_key_touch_class, AT_US, &c, NULL) == OK);
    fresh_close(&fresh);
}

static void test_touch_of_a_clock_that_was_ahead_gives_way(void)
{
    struct fresh fresh;
    struct uuid client;
    const uint64_t ahead_us = AT_US + 86400 * S_US;
    fresh_open(&fresh);
    struct uuid id = first_key(&fresh, &client);
    TEST_CHECK(touched(&fresh, id, ahead_us, ahead_us) == ahead_us);
    TEST_CHECK(touched(&fresh, id, AT_US + 60 * S_US, AT_US + 50 * S_US) == AT_US + 50 * S_US);
    TEST_CHECK(touched(&fresh, id, AT_US + 70 * S_US, ahead_us) ==
               AT_US + 70 * S_US); /* noted before it was right */
    fresh_close(&fresh);
}

/* ---- what check finds ---- */

static enum error lose_hash(struct txn *txn, uint64_t at_us, void *context)
{
    const struct api_key *key = context;
    (void)at_us;
    txn_remove(txn, TABLE_API_KEY_HASHES, span_of(key->hash.bytes, 32));
    return OK;
}

static enum error lose_key(struct txn *txn, uint64_t at_us, void *context)
{
    const struct api_key *key = context;
    (void)at_us;
    txn_remove(txn, TABLE_API_KEYS, span_of(key->id.bytes, 16));
    return OK;
}

static enum error lose_due(struct txn *txn, uint64_t at_us, void *context)
{
    const struct api_key *key = context;
    (void)at_us;
    retention_clear(txn, key->gone_us, &key->id);
    return OK;
}

static enum error lose_client(struct txn *txn, uint64_t at_us, void *context)
{
    const struct api_key *key = context;
    (void)at_us;
    txn_remove(txn, TABLE_CLIENTS, span_of(key->client.bytes, 16));
    return OK;
}

static enum error two_active(struct txn *txn, uint64_t at_us, void *context)
{
    const struct api_key *key = context;
    struct client_keys keys = {.active = {{5}}, .issued = 1};
    (void)at_us;
    txn_write(txn, TABLE_CLIENT_KEYS, span_of(key->client.bytes, 16), &keys);
    return OK;
}

static enum error ended_for_no_reason(struct txn *txn, uint64_t at_us, void *context)
{
    struct api_key key = *(const struct api_key *)context;
    (void)at_us;
    key.end = API_KEY_REVOKED;
    key.created_by = key.ended_by = span_text("x");
    txn_write(txn, TABLE_API_KEYS, span_of(key.id.bytes, 16), &key);
    return OK;
}

static void test_damage_is_found(void)
{
    struct fresh fresh;
    struct uuid client;
    struct api_key key;
    fresh_open(&fresh);
    struct uuid id = first_key(&fresh, &client);
    TEST_CHECK(read_key(&fresh, id, &key) == OK);
    TEST_CHECK(fresh_would_find(&fresh, lose_hash, &key,
                                fresh_about("api_keys: ", &id, " can't be found by its hash")));
    TEST_CHECK(fresh_would_find(&fresh, lose_key, &key, fresh_about("a hash leads to ", &id, ", which")));
    TEST_CHECK(fresh_would_find(&fresh, lose_key, &key,
                                fresh_about("the active key of client ", &client, " isn't")));
    TEST_CHECK(fresh_would_find(&fresh, lose_due, &key, "will never be removed"));
    TEST_CHECK(fresh_would_find(&fresh, lose_client, &key, "belongs to a client that isn't there"));
    TEST_CHECK(fresh_would_find(&fresh, lose_client, &key,
                                fresh_about("client_keys: client ", &client, " isn't there")));
    TEST_CHECK(fresh_would_find(&fresh, two_active, &key, "its client says otherwise"));
    TEST_CHECK(fresh_would_find(&fresh, ended_for_no_reason, &key, "without a reason"));
    fresh_close(&fresh);
}

static struct key key_of_bytes(const void *bytes, uint32_t size)
{
    struct key key = {.size = 0};
    key_add(&key, bytes, size);
    return key;
}

static void test_further_damage_is_found(void)
{
    struct fresh fresh;
    struct uuid client, stranger = fresh_uuid();
    struct api_key key;
    fresh_open(&fresh);
    struct uuid id = first_key(&fresh, &client);
    TEST_CHECK(read_key(&fresh, id, &key) == OK);
    key.created_by = key.ended_by = span_text("x");
    struct api_key other = key;
    struct client_keys keys = {.active = id, .issued = 0};
    TEST_CHECK(
        fresh_finds(&fresh, TABLE_API_KEYS, key_of_uuid(&stranger), &other, "stands under another id"));
    other.hash.bytes[0] ^= 1;
    TEST_CHECK(fresh_finds(&fresh, TABLE_API_KEYS, key_of_uuid(&id), &other, "can't be found by its hash"));
    TEST_CHECK(fresh_finds(&fresh, TABLE_API_KEYS, key_of_uuid(&id), &other, "or has another one"));
    other = key;
    other.end = API_KEY_END_COUNT;
    TEST_CHECK(fresh_finds(&fresh, TABLE_API_KEYS, key_of_uuid(&id), &other, "has ended without a reason"));
    other = key;
    other.end = API_KEY_REVOKED;
    other.ended_us = AT_US;
    TEST_CHECK(
        fresh_finds(&fresh, TABLE_API_KEYS, key_of_uuid(&id), &other, "is ended, and its client says"));
    TEST_CHECK(fresh_finds(&fresh, TABLE_API_KEYS, key_of_uuid(&id), &other, "isn't there, or not active"));
    other = key;
    other.client = stranger;
    TEST_CHECK(fresh_finds(&fresh, TABLE_API_KEYS, key_of_uuid(&id), &other, "isn't there, or not active"));
    TEST_CHECK(fresh_finds(&fresh, TABLE_API_KEY_HASHES, key_of_bytes(key.hash.bytes, 32),
                           &(struct api_key_hash){.id = stranger}, "can't be found by its hash"));
    TEST_CHECK(fresh_finds(&fresh, TABLE_CLIENT_KEYS, key_of_uuid(&client), &keys,
                           fresh_about("client_keys: client ", &client, " never had a key")));
    TEST_CHECK(fresh_finds(&fresh, TABLE_CLIENT_KEYS, key_of_bytes("short", 5), &keys, "a key of 5 bytes"));
    TEST_CHECK(
        !fresh_finds(&fresh, TABLE_CLIENT_KEYS, key_of_bytes("short", 5), &keys, "client_keys: client"));
    TEST_CHECK(strcmp(api_key_end_name(API_KEY_REVOKED), "revoked") == 0 &&
               !*api_key_end_name(API_KEY_END_COUNT));
    fresh_close(&fresh);
}

/* Its own row is told of, and not each row that leads to it. */
static void test_a_key_that_cannot_be_read_is_told_of_once(void)
{
    struct fresh fresh;
    struct uuid client;
    struct api_key key;
    char text[FRESH_TEXT];
    fresh_open(&fresh);
    struct uuid id = first_key(&fresh, &client);
    fresh_flip(&fresh, TABLE_API_KEYS, key_of_uuid(&id));
    TEST_CHECK(fresh_findings(&fresh, text) > 0);
    TEST_CHECK(!fresh_tells(&fresh, "a hash leads to") && !fresh_tells(&fresh, "the active key of client"));
    fresh_flip(&fresh, TABLE_API_KEYS, key_of_uuid(&id));
    fresh_flip(&fresh, TABLE_CLIENT_KEYS, key_of_uuid(&client));
    TEST_CHECK(fresh_findings(&fresh, text) > 0 && !fresh_tells(&fresh, "its client says otherwise"));
    fresh_flip(&fresh, TABLE_CLIENT_KEYS, key_of_uuid(&client));
    TEST_CHECK(read_key(&fresh, id, &key) == OK);
    fresh_flip(&fresh, TABLE_API_KEY_HASHES, key_of_bytes(key.hash.bytes, sizeof(key.hash.bytes)));
    TEST_CHECK(fresh_findings(&fresh, text) > 0 && !fresh_tells(&fresh, "can't be found by its hash"));
    fresh_flip(&fresh, TABLE_API_KEY_HASHES, key_of_bytes(key.hash.bytes, sizeof(key.hash.bytes)));
    fresh_close(&fresh);
}

/* A row that is missing where another one says that it is: damage, and not "never heard of it". */
static void test_a_key_that_another_row_speaks_of_is_there(void)
{
    struct fresh fresh;
    struct uuid client, found;
    struct api_key key;
    fresh_open(&fresh);
    struct uuid id = first_key(&fresh, &client);
    TEST_CHECK(read_key(&fresh, id, &key) == OK);
    key.created_by = key.ended_by = span_text("x");
    struct api_key_issue c = ask(client, API_KEY_FORCE, nobody);
    fresh_take(&fresh, TABLE_API_KEYS, key_of_uuid(&id));
    TEST_CHECK(find_key(&fresh, &key.hash, &found) == ERR_DAMAGED);
    TEST_CHECK(issue(&fresh, AT_US, &c, NULL) == ERR_DAMAGED);
    fresh_put(&fresh, TABLE_API_KEYS, key_of_uuid(&id), &key);
    TEST_CHECK(find_key(&fresh, &key.hash, &found) == OK && uuid_equal(&found, &id));
    fresh_flip(&fresh, TABLE_API_KEYS, key_of_uuid(&id));
    TEST_CHECK(find_key(&fresh, &key.hash, &found) == ERR_DAMAGED);
    TEST_CHECK(issue(&fresh, AT_US, &c, NULL) == ERR_DAMAGED);
    struct api_key_issue again = ask(client, API_KEY_ROTATE, id);
    TEST_CHECK(issue(&fresh, AT_US, &again, NULL) == ERR_DAMAGED);
    fresh_flip(&fresh, TABLE_API_KEYS, key_of_uuid(&id));
    fresh_close(&fresh);
}

/* Its time comes whether or not anybody could still find it by its hash. */
static void test_a_key_without_its_hash_goes_as_well(void)
{
    struct fresh fresh;
    struct uuid client;
    struct api_key key;
    fresh_open(&fresh);
    struct uuid id = first_key(&fresh, &client);
    TEST_CHECK(read_key(&fresh, id, &key) == OK);
    fresh_take(&fresh, TABLE_API_KEY_HASHES, key_of_bytes(key.hash.bytes, 32));
    sweep(&fresh, key.gone_us);
    TEST_CHECK(read_key(&fresh, id, &key) == ERR_NOT_FOUND && rows(&fresh, TABLE_API_KEYS) == 0);
    fresh_close(&fresh);
}

static void test_times_beyond_all_sense_are_refused(void)
{
    struct fresh fresh;
    struct uuid client;
    fresh_open(&fresh);
    struct uuid id = first_key(&fresh, &client);
    struct api_key_issue c = ask(client, API_KEY_ROTATE, id);
    c.ttl_us = UINT64_MAX;
    TEST_CHECK(issue(&fresh, AT_US, &c, NULL) == ERR_INVALID);
    c = ask(client, API_KEY_ROTATE, id);
    c.kept_us = UINT64_MAX;
    TEST_CHECK(issue(&fresh, AT_US, &c, NULL) == ERR_INVALID);
    c = ask(client, API_KEY_ROTATE, id);
    TEST_CHECK(issue(&fresh, UINT64_MAX - 1, &c, NULL) == ERR_INVALID);
    c = ask(client, API_KEY_VERB_COUNT, id);
    TEST_CHECK(issue(&fresh, AT_US, &c, NULL) == ERR_INVALID);
    struct api_key_revoke revoke = {.client = client, .id = id, .kept_us = UINT64_MAX};
    TEST_CHECK(batch_one(fresh.store, &api_key_revoke_class, AT_US, &revoke, NULL) == ERR_INVALID);
    revoke.kept_us = 1;
    TEST_CHECK(batch_one(fresh.store, &api_key_revoke_class, UINT64_MAX - 1, &revoke, NULL) == ERR_INVALID);
    fresh_close(&fresh);
}

TEST_LIST
= {
    {"api key: the first needs none, within the window (AMB-J-21)",
     test_first_key_needs_none_within_the_window_AMB_J_21},
    {"api key: the first by an operator only (AMB-J-21)", test_first_key_switched_off_AMB_J_21},
    {"api key: the only one was revoked (AMB-J-26)", test_revoked_only_key_AMB_J_26},
    {"api key: renewing needs one that is there", test_renewing_needs_one_that_is_there},
    {"api key: create again tells of the one that is there (JOB-097)",
     test_create_again_tells_of_the_key_that_is_there_JOB_097},
    {"api key: rotate and renew end the old one at once (JOB-118, AMB-J-25)",
     test_rotate_and_renew_end_the_old_key_at_once_JOB_118_AMB_J_25},
    {"api key: of two rotations one loses (JOB-114, JOB-124, JOB-134)",
     test_of_two_rotations_one_loses_JOB_114_JOB_124},
    {"api key: an expired caller (JOB-296)", test_expired_caller_is_told_so_JOB_296},
    {"api key: a caller of another client (JOB-133)", test_caller_of_another_client_is_refused},
    {"api key: the same idempotency key (JOB-101, AMB-J-24)",
     test_same_key_is_answered_again_without_making_another_JOB_101_AMB_J_24},
    {"api key: refused requests don't use up the key (AMB-J-29)",
     test_refused_requests_do_not_use_up_the_key_AMB_J_29},
    {"api key: a full ledger refuses keys of idempotency alone",
     test_a_full_ledger_refuses_keys_of_idempotency_alone},
    {"api key: ids and hashes are unique", test_ids_and_hashes_are_unique},
    {"api key: revoke once and again (AMB-J-26)", test_revoke_once_and_again_AMB_J_26},
    {"api key: a revoked one is kept 90 days (JOB-402)", test_revoked_key_is_kept_90_days_JOB_402},
    {"api key: an entry of one that has gone goes", test_an_entry_of_a_key_that_has_gone_goes},
    {"api key: an active one is kept (JOB-401)",
     test_active_key_is_kept_and_an_expired_one_90_days_longer_JOB_401},
    {"api key: a client can't fill the store", test_a_client_can_not_fill_the_store_with_keys},
    {"an operator helps a client that has used up its keys (AMB-J-26)",
     test_an_operator_helps_a_client_that_has_used_up_its_keys_AMB_J_26},
    {"api key: last use moves forward only", test_touch_moves_forward_only},
    {"api key: a touch of a clock that was ahead gives way", test_touch_of_a_clock_that_was_ahead_gives_way},
    {"api key: a touch tells of one that can't be read", test_touch_tells_of_a_key_that_cannot_be_read},
    {"api key: damage is found", test_damage_is_found},
    {"api key: further damage is found", test_further_damage_is_found},
    {"api key: one that can't be read is told of once", test_a_key_that_cannot_be_read_is_told_of_once},
    {"api key: one that another row speaks of is there", test_a_key_that_another_row_speaks_of_is_there},
    {"api key: one without its hash goes as well", test_a_key_without_its_hash_goes_as_well},
    {"api key: times beyond all sense are refused", test_times_beyond_all_sense_are_refused},
    {NULL, NULL},
};
