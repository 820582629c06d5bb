/* API keys as clients show them: their form, what each kind of bad one is called, and that revocation beats the table of
 * verified keys on every scheduler. */
#include "acutest.h"

#include "http/api_key_auth.h"
#include "store/store.h"
#include "tests/support/stage.h"

#define S_US    UINT64_C(1000000)
#define TTL_US  (3600 * S_US)
#define KEPT_US (90 * 86400 * S_US)

static const struct uuid nobody = {{0}};

/* ---- the form ---- */

static void random_secret(uint64_t *state, uint8_t secret[API_KEY_SECRET_SIZE])
{
    for (size_t i = 0; i < API_KEY_SECRET_SIZE; i++) {
        *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        secret[i] = (uint8_t)(*state >> 56);
    }
}

static void check_round(const uint8_t secret[API_KEY_SECRET_SIZE])
{
    uint8_t again[API_KEY_SECRET_SIZE];
    char text[API_KEY_TEXT_SIZE];
    api_key_write(secret, text);
    TEST_CHECK(strlen(text) == API_KEY_TEXT_LENGTH && strncmp(text, "cop_", 4) == 0);
    TEST_CHECK(api_key_parse(span_text(text), again) && memcmp(again, secret, sizeof(again)) == 0);
}

static void test_key_comes_back_as_it_was(void)
{
    uint8_t secret[API_KEY_SECRET_SIZE] = {0};
    uint64_t state = 1;
    check_round(secret);
    memset(secret, 0xff, sizeof(secret));
    check_round(secret);
    for (int i = 0; i < 2000; i++) {
        random_secret(&state, secret);
        check_round(secret);
    }
}

/* Computed apart from this program: 62 * 62 + 1 as the number, and the CRC-32 of the 47 bytes before it. */
static void test_key_is_what_the_header_says(void)
{
    uint8_t secret[API_KEY_SECRET_SIZE] = {0};
    char text[API_KEY_TEXT_SIZE];
    secret[30] = 0x0f; /* 3845 = 62 * 62 + 1 */
    secret[31] = 0x05;
    api_key_write(secret, text);
    TEST_CHECK_(strcmp(text, "cop_00000000000000000000000000000000000000001014EXB3T") == 0, "%s", text);
}

static void test_any_changed_character_is_noticed(void)
{
    uint8_t secret[API_KEY_SECRET_SIZE], out[API_KEY_SECRET_SIZE];
    char good[API_KEY_TEXT_SIZE], bad[API_KEY_TEXT_SIZE];
    uint64_t state = 7;
    random_secret(&state, secret);
    api_key_write(secret, good);
    for (size_t at = 0; at < API_KEY_TEXT_LENGTH; at++)
        for (int c = 0; c < 256; c++) {
            memcpy(bad, good, sizeof(bad));
            bad[at] = (char)c;
            if (bad[at] != good[at])
                TEST_CHECK(!api_key_parse(span_of(bad, API_KEY_TEXT_LENGTH), out));
        }
    for (uint32_t size = 0; size < API_KEY_TEXT_LENGTH; size++)
        TEST_CHECK(!api_key_parse(span_of(good, size), out));
    TEST_CHECK(!api_key_parse(span_of(good, API_KEY_TEXT_LENGTH + 1), out));
}

/* 43 digits hold a little more than 256 bits: what is above must not be another text of a small number. */
static void test_numbers_above_256_bits_are_refused(void)
{
    uint8_t out[API_KEY_SECRET_SIZE];
    TEST_CHECK(!api_key_parse(span_text("cop_yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp22zcA4m"), out));
    TEST_CHECK(api_key_parse(span_text("cop_yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp114MnJy"), out) &&
               out[0] == 0xff && out[31] == 0xff);
}

/* ---- in a store ---- */

struct made {
    struct uuid client, id;
    struct digest hash;
    char text[API_KEY_TEXT_SIZE];
};

static struct uuid any_id(void)
{
    struct uuid id;
    actor_random_bytes(&id, sizeof(id));
    return id;
}

static void make_key_of(struct made *made, const uint8_t secret[API_KEY_SECRET_SIZE], enum api_key_verb verb,
                        const struct uuid *client)
{
    struct client_create create = {.id = any_id(), .from = span_text("tests")};
    if (!client)
        EXPECT(store_submit(&client_create_class, &create, NULL, 0, NULL, DEADLINE_NONE) == OK);
    made->client = client ? *client : create.id;
    made->id = any_id();
    made->hash = api_key_hash(secret);
    api_key_write(secret, made->text);
    struct api_key_issue issue = {.client = made->client,
                                  .id = made->id,
                                  .hash = made->hash,
                                  .verb = (uint8_t)verb,
                                  .window_us = 600 * S_US,
                                  .ttl_us = TTL_US,
                                  .kept_us = KEPT_US,
                                  .by = span_text("tests")};
    EXPECT(store_submit(&api_key_issue_class, &issue, NULL, 0, NULL, DEADLINE_NONE) == OK);
}

static void make_key(struct made *made, enum api_key_verb verb, const struct uuid *client)
{
    uint8_t secret[API_KEY_SECRET_SIZE];
    actor_random_bytes(secret, sizeof(secret));
    make_key_of(made, secret, verb, client);
}

static void end_key(const struct made *made)
{
    struct api_key_revoke c = {
        .client = made->client, .id = made->id, .by = span_text("tests"), .kept_us = KEPT_US};
    EXPECT(store_submit(&api_key_revoke_class, &c, NULL, 0, NULL, DEADLINE_NONE) == OK);
    api_key_forget(&made->hash);
}

static enum error_code verify(const char *text, struct identity *who)
{
    return api_key_verify(span_text(text), who);
}

static void run(void (*body)(void), bool real)
{
    struct stage stage = {.real = real};
    TEST_CHECK(api_keys_start());
    TEST_CHECK(stage_run(&stage, body) == 0);
    api_keys_stop();
}

static void names_body(void)
{
    struct identity who;
    struct made made, never;
    char client[UUID_TEXT_SIZE];
    uint8_t secret[API_KEY_SECRET_SIZE] = {1};
    (void)stage_writer();
    make_key(&made, API_KEY_CREATE, NULL);
    api_key_write(secret, never.text);
    EXPECT(verify("", &who) == ERROR_RFA_AUTH_INVALID_CREDENTIALS);
    EXPECT(verify("Bearer", &who) == ERROR_RFA_AUTH_INVALID_CREDENTIALS);
    EXPECT(verify(never.text, &who) == ERROR_RFA_AUTH_INVALID_CREDENTIALS);
    EXPECT(who.kind == IDENTITY_NONE && uuid_equal(&who.client, &nobody));
    for (int i = 0; i < 3; i++) { /* from the store, then from the table */
        EXPECT(verify(made.text, &who) == ERROR_NONE);
        uuid_format(&made.client, client);
        EXPECT(who.kind == IDENTITY_CLIENT && uuid_equal(&who.client, &made.client) &&
               uuid_equal(&who.key, &made.id) && span_equal(who.subject, span_text(client)));
        EXPECT(who.expires_s > 0 && who.projects_count == 0 && !who.all_projects && who.role == 0);
    }
    never = made;
    never.text[API_KEY_TEXT_LENGTH - 1] ^= 1; /* the right key with a wrong checksum is in no table */
    EXPECT(verify(never.text, &who) == ERROR_RFA_AUTH_INVALID_CREDENTIALS &&
           verify(made.text, &who) == ERROR_NONE);
    end_key(&made);
    EXPECT(verify(made.text, &who) == ERROR_RFA_AUTH_API_KEY_DISABLED);
    EXPECT(who.kind == IDENTITY_NONE && uuid_equal(&who.client, &made.client));
}

static void test_what_each_kind_is_called_JOB_294_JOB_295_JOB_297_AMB_J_23(void)
{
    run(names_body, false);
}

/* In the table or not, to the microsecond; and an expired one that was revoked is called revoked. */
static void expiry_body(void)
{
    struct identity who;
    struct made made;
    (void)stage_writer();
    make_key(&made, API_KEY_CREATE, NULL);
    struct view *view = view_open(stage_store);
    struct api_key key;
    EXPECT(api_key_find(&view->txn, &made.hash, &key) == OK);
    view_close(view);
    uint64_t left = key.expires_us - store_time_us();
    actor_sleep(actor_now() + left * NS_PER_US - 2 * NS_PER_US);
    EXPECT(verify(made.text, &who) == ERROR_NONE);
    actor_sleep(actor_now() + 1 * NS_PER_US);
    EXPECT(verify(made.text, &who) == ERROR_NONE);
    const struct identity good = who;
    EXPECT(api_key_still(&good) == ERROR_NONE);
    actor_sleep(actor_now() + 1 * NS_PER_US);
    EXPECT(store_time_us() == key.expires_us);
    EXPECT(verify(made.text, &who) == ERROR_RFA_AUTH_TOKEN_EXPIRED); /* although it is in the table */
    EXPECT(api_key_still(&good) == ERROR_RFA_AUTH_TOKEN_EXPIRED);
    actor_sleep(actor_now() + 5 * NS_PER_S);
    EXPECT(verify(made.text, &who) == ERROR_RFA_AUTH_TOKEN_EXPIRED);
    EXPECT(uuid_equal(&who.client, &made.client) && who.kind == IDENTITY_NONE);
    end_key(&made);
    EXPECT(verify(made.text, &who) == ERROR_RFA_AUTH_API_KEY_DISABLED);
}

static void test_expired_to_the_microsecond_JOB_296(void)
{
    run(expiry_body, false);
}

/* Whoever revoked died before he could forget it: a second, no longer. Until then nobody looks at the store. */
static void orphan_body(void)
{
    struct identity who;
    struct made made;
    (void)stage_writer();
    make_key(&made, API_KEY_CREATE, NULL);
    EXPECT(verify(made.text, &who) == ERROR_NONE);
    const uint64_t until_ns = actor_now() + API_KEY_BELIEVED_NS;
    struct api_key_revoke c = {
        .client = made.client, .id = made.id, .by = span_text("tests"), .kept_us = KEPT_US};
    EXPECT(store_submit(&api_key_revoke_class, &c, NULL, 0, NULL, DEADLINE_NONE) == OK);
    EXPECT(verify(made.text, &who) == ERROR_NONE);
    actor_sleep(until_ns - 1);
    EXPECT(verify(made.text, &who) == ERROR_NONE && uuid_equal(&who.client, &made.client));
    actor_sleep(until_ns);
    EXPECT(verify(made.text, &who) == ERROR_RFA_AUTH_API_KEY_DISABLED);
}

static void test_nobody_is_believed_for_longer_than_a_second(void)
{
    run(orphan_body, false);
}

/* Two keys with one place in the table, and hashes that have the last byte in common, too: two of some thousand. */
enum { DRAWN = 8192 };
static uint8_t drawn[DRAWN][API_KEY_SECRET_SIZE];
static uint16_t drawn_by[(size_t)API_KEY_SLOTS * 256]; /* one more than its number */

static bool draw_neighbours(const uint8_t **ret_one, const uint8_t **ret_other)
{
    uint64_t word;
    memset(drawn_by, 0, sizeof(drawn_by));
    for (uint16_t i = 0; i < DRAWN; i++) {
        actor_random_bytes(drawn[i], sizeof(drawn[i]));
        struct digest hash = api_key_hash(drawn[i]);
        memcpy(&word, hash.bytes, sizeof(word));
        uint16_t *before = &drawn_by[word % API_KEY_SLOTS * 256 + hash.bytes[sizeof(hash.bytes) - 1]];
        if (*before) {
            *ret_one = drawn[*before - 1];
            *ret_other = drawn[i];
            return true;
        }
        *before = (uint16_t)(i + 1);
    }
    return false;
}

/* Who is in the table stands there for no other key: not for one whose checksum is put where the other's was, and not for one that
 * takes its place. */
static void neighbours_body(void)
{
    struct identity who;
    struct made one, other;
    const uint8_t *first = NULL, *second = NULL;
    char forged[API_KEY_TEXT_SIZE];
    (void)stage_writer();
    EXPECT(draw_neighbours(&first, &second));
    make_key_of(&one, first, API_KEY_CREATE, NULL);
    EXPECT(verify(one.text, &who) == ERROR_NONE);
    api_key_write(second, forged);
    EXPECT(verify(forged, &who) == ERROR_RFA_AUTH_INVALID_CREDENTIALS);
    memcpy(forged + API_KEY_TEXT_LENGTH - 6, one.text + API_KEY_TEXT_LENGTH - 6, 6);
    EXPECT(verify(forged, &who) == ERROR_RFA_AUTH_INVALID_CREDENTIALS && who.kind == IDENTITY_NONE);
    make_key_of(&other, second, API_KEY_CREATE, NULL);
    for (int i = 0; i < 4; i++) {
        EXPECT(verify(one.text, &who) == ERROR_NONE && uuid_equal(&who.client, &one.client));
        EXPECT(verify(other.text, &who) == ERROR_NONE && uuid_equal(&who.client, &other.client));
        EXPECT(uuid_equal(&who.key, &other.id));
    }
}

static void test_two_keys_with_one_place_are_not_each_other(void)
{
    run(neighbours_body, false);
}

/* A look at the store that began before the commit must not come into the table after it. */
static void no_store_body(void)
{
    struct identity who;
    struct made made;
    actor_pid writer = stage_writer();
    make_key(&made, API_KEY_CREATE, NULL);
    EXPECT(verify(made.text, &who) == ERROR_NONE);
    stage_kill(writer); /* reading needs none */
    actor_sleep(actor_now() + 2 * API_KEY_BELIEVED_NS);
    EXPECT(verify(made.text, &who) == ERROR_NONE);
}

static void test_keys_are_good_while_there_is_no_writer(void)
{
    run(no_store_body, false);
}

/* ---- last use ---- */

static uint64_t used_at(const struct made *made)
{
    struct api_key key;
    struct view *view = view_open(stage_store);
    EXPECT(api_key_read(&view->txn, &made->id, &key) == OK);
    view_close(view);
    return key.used_us;
}

static void uses_body(void)
{
    struct identity who;
    struct made made[3];
    struct start_result started;
    (void)stage_writer();
    EXPECT(actor_start(&(struct spawn_options){.class = &api_key_uses_class, .name = API_KEY_USES_NAME},
                       &started, DEADLINE_NONE) == OK);
    for (int i = 0; i < 3; i++)
        make_key(&made[i], API_KEY_CREATE, NULL);
    uint64_t commands = atomic_load(&stage_store->commands);
    uint64_t began = store_time_us();
    for (int tick = 0; tick < 600; tick++) { /* a minute, ten times a second */
        for (int i = 0; i < 2; i++)
            EXPECT(verify(made[i].text, &who) == ERROR_NONE);
        actor_sleep(actor_now() + 100 * NS_PER_MS);
    }
    EXPECT(atomic_load(&stage_store->commands) - commands == 1); /* both keys, once */
    EXPECT(used_at(&made[0]) >= began && used_at(&made[0]) <= began + 11 * S_US && used_at(&made[2]) == 0);
    for (int tick = 0; tick < 300; tick++) {
        EXPECT(verify(made[0].text, &who) == ERROR_NONE);
        actor_sleep(actor_now() + 100 * NS_PER_MS);
    }
    EXPECT(atomic_load(&stage_store->commands) - commands == 2);
    EXPECT(used_at(&made[0]) >= began + 60 * S_US && used_at(&made[1]) <= began + 11 * S_US);
    (void)actor_stop(started.pid, (struct reason){.kind = REASON_SHUTDOWN}, NULL, DEADLINE_NONE);
}

static void test_last_use_is_written_once_a_minute(void)
{
    run(uses_body, false);
}

static void ahead_body(void)
{
    const int64_t day_ns = (int64_t)(86400 * NS_PER_S);
    struct identity who;
    struct made made;
    struct start_result started;
    (void)stage_writer();
    EXPECT(actor_start(&(struct spawn_options){.class = &api_key_uses_class, .name = API_KEY_USES_NAME},
                       &started, DEADLINE_NONE) == OK);
    stage_clock_jump(day_ns);
    make_key(&made, API_KEY_CREATE, NULL);
    EXPECT(verify(made.text, &who) == ERROR_NONE);
    actor_sleep(actor_now() + 11 * NS_PER_S);
    uint64_t ahead = used_at(&made);
    stage_clock_jump(-day_ns);
    uint64_t began = store_time_us();
    EXPECT(ahead > began);
    actor_sleep(actor_now() + 60 * NS_PER_S);
    EXPECT(verify(made.text, &who) == ERROR_NONE);
    actor_sleep(actor_now() + 11 * NS_PER_S);
    EXPECT(used_at(&made) >= began + 60 * S_US && used_at(&made) <= store_time_us());
    (void)actor_stop(started.pid, (struct reason){.kind = REASON_SHUTDOWN}, NULL, DEADLINE_NONE);
}

static void test_last_use_comes_back_with_a_clock_that_was_ahead(void)
{
    run(ahead_body, false);
}

/* ---- revocation beats the table ---- */

enum { ROUNDS = 150 };
static struct made rounds[ROUNDS];
static _Atomic uint32_t made_count, ended_count, refused_late, passed;
static _Atomic bool over;

static void keep_verifying(void *arg)
{
    struct identity who;
    (void)arg;
    while (!atomic_load(&over)) {
        uint32_t made = atomic_load(&made_count), ended = atomic_load(&ended_count);
        if (made == 0) {
            actor_yield();
            continue;
        }
        struct arena_mark mark = actor_arena_mark();
        enum error_code now = verify(rounds[made - 1].text, &who);
        if (now == ERROR_NONE)
            atomic_fetch_add(&passed, 1);
        if (ended >= made && now == ERROR_NONE) /* it had been answered before we asked */
            atomic_fetch_add(&refused_late, 1);
        actor_arena_reset(mark);
        actor_yield();
    }
}

static void race_body(void)
{
    actor_pid dolls[3];
    (void)stage_writer();
    atomic_store(&made_count, 0);
    atomic_store(&ended_count, 0);
    atomic_store(&over, false);
    for (int i = 0; i < 3; i++)
        dolls[i] = stage_doll(i % 2, keep_verifying, NULL);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        make_key(&rounds[i], API_KEY_CREATE, NULL);
        uint32_t before = atomic_load(&passed);
        atomic_store(&made_count, i + 1);
        while (atomic_load(&passed) < before + 5)
            actor_yield();
        end_key(&rounds[i]);
        atomic_store(&ended_count, i + 1);
        for (int k = 0; k < 50; k++)
            actor_yield();
    }
    atomic_store(&over, true);
    for (int i = 0; i < 3; i++)
        (void)stage_ended(dolls[i]);
    EXPECT(atomic_load(&refused_late) == 0);
    EXPECT(atomic_load(&passed) >= 5 * ROUNDS);
}

static void test_revocation_beats_the_table_on_all_schedulers_JOB_297(void)
{
    run(race_body, true);
}

TEST_LIST
= {
    {"api key: comes back as it was", test_key_comes_back_as_it_was},
    {"api key: is what the header says", test_key_is_what_the_header_says},
    {"api key: any changed character is noticed", test_any_changed_character_is_noticed},
    {"api key: numbers above 256 bits are refused", test_numbers_above_256_bits_are_refused},
    {"api key: what each kind is called (JOB-294, JOB-295, JOB-297, AMB-J-23)",
     test_what_each_kind_is_called_JOB_294_JOB_295_JOB_297_AMB_J_23},
    {"api key: expired to the microsecond (JOB-296)", test_expired_to_the_microsecond_JOB_296},
    {"api key: nobody is believed for longer than a second",
     test_nobody_is_believed_for_longer_than_a_second},
    {"api key: two keys with one place are not each other", test_two_keys_with_one_place_are_not_each_other},
    {"api key: good while there is no writer", test_keys_are_good_while_there_is_no_writer},
    {"api key: last use is written once a minute", test_last_use_is_written_once_a_minute},
    {"api key: last use comes back with a clock that was ahead",
     test_last_use_comes_back_with_a_clock_that_was_ahead},
    {"api key: revocation beats the table on all schedulers (JOB-297)",
     test_revocation_beats_the_table_on_all_schedulers_JOB_297},
    {NULL, NULL},
};
