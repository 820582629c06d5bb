/* The keyring with a store, on the virtual clock: the order of the checks, remembered tokens and revocations that beat them,
 * replays, rotation, and what survives a restart. */
#define _GNU_SOURCE /* memmem */
#include "acutest.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "actors/fetch.h"
#include "http/keyring.h"
#include "http/vault.h"
#include "runtime/telemetry.h"
#include "store/audit.h"
#include "store/principal.h"
#include "store/retention.h"
#include "store/seen_token.h"
#include "store/signing_key.h"
#include "tests/support/origin.h"
#include "tests/support/stage.h"
#include "tests/support/token_maker.h"

#define HOUR_NS (3600 * NS_PER_S)
#define DAY_NS  (24 * HOUR_NS)
#define OTHER   "https://other"

static char master_file[128], set_file[128], blank_dir[64];
static const struct keyring_order order = {
    .who = {"ops", 3}, .reason = {"a test", 6}, .request_id = {"r-1", 3}};

/* ---- keys of the other issuer, in a file ---- */

enum { KEY_A, KEY_B, KEY_C, KEYS };
static struct maker_key makers[KEYS];

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    TEST_ASSERT(file != NULL);
    fputs(text, file);
    fclose(file);
}

/* The first `count` of them, and after it whatever is given. */
static void write_set(size_t count, const char *more)
{
    static char text[16384];
    size_t used = (size_t)snprintf(text, sizeof(text), "{\"keys\":[");
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i ? "," : "", makers[i].jwk);
    snprintf(text + used, sizeof(text) - used, "%s]}", more);
    write_file(set_file, text);
}

/* Before the tests, each of which is a process of its own: making an RSA key takes longer than all that a test does with it. */
__attribute__((constructor)) static void make_keys(void)
{
    maker_key_make(&makers[KEY_A], "ES256", "a");
    maker_key_make(&makers[KEY_B], "RS256", "b");
    maker_key_make(&makers[KEY_C], "ES256", "c");
}

static void prepare(void)
{
    snprintf(blank_dir, sizeof(blank_dir), "/dev/shm/coppice-keyring-%d", (int)getpid());
    mkdir(blank_dir, 0700);
    snprintf(master_file, sizeof(master_file), "%s/master", blank_dir);
    snprintf(set_file, sizeof(set_file), "%s/set.json", blank_dir);
    write_set(2, "");
}

static void clean(void)
{
    unlink(master_file);
    unlink(set_file);
    TEST_CHECK(rmdir(blank_dir) == 0);
}

/* ---- a keyring and its actor ---- */

static struct keyring *ring;
static struct arena_mark mark; /* of the body's actor */
static bool marked;
static actor_pid ring_actor;
static struct keyring_options options;

static void actor_begin(void)
{
    struct start_result result = {.pid = 0};
    const struct keyring_args args = {ring};
    const struct spawn_options o = {
        .class = &keyring_class, .name = KEYRING_NAME, .args = &args, .args_size = sizeof(args)};
    EXPECT(actor_start(&o, &result, DEADLINE_NONE) == OK);
    ring_actor = result.pid;
    actor_sleep(actor_deadline_ms(100)); /* it has loaded, and made its first key */
}

static void ring_begin(void)
{
    char why[256] = "";
    ring = keyring_create(&options, why, sizeof(why));
    if (!ring)
        printf("%s\n", why);
    EXPECT(ring != NULL);
    actor_begin();
}

static void ring_end(void)
{
    stage_kill(ring_actor);
    keyring_destroy(ring);
    ring = NULL;
}

/* As after a restart of the process: nothing but the store and the files is left. */
static void ring_again(void)
{
    ring_end();
    ring_begin();
}

static void options_begin(void)
{
    marked = false;
    options = (struct keyring_options){.issuer = "coppice",
                                       .audience = "coppice",
                                       .environment = "dev",
                                       .jwks_file = set_file,
                                       .jwks_issuer = OTHER,
                                       .master_key_file = master_file,
                                       .env = stage_store->env};
}

static void (*body_run)(void);

static void whole(void)
{
    options_begin();
    stage_writer();
    ring_begin();
    body_run();
    ring_end();
}

/* RINGED(test_name) { ... }: with a store, its writer and a keyring in dev. */
#define RINGED(name)                                                   \
    static void name##_body(void);                                     \
    static void name(void)                                             \
    {                                                                  \
        prepare();                                                     \
        body_run = name##_body;                                        \
        TEST_CHECK(stage_run(&(struct stage){.seed = 7}, whole) == 0); \
        clean();                                                       \
    }                                                                  \
    static void name##_body(void)

/* ---- tokens ---- */

static uint64_t now_s(void)
{
    return actor_wall_now() / NS_PER_S;
}

static char token[MAKER_TEXT_MAX];
static size_t token_size;

struct claims {
    const char *issuer, *audience, *subject, *role, *session, *jti, *kid;
    long long iat, exp; /* from now on; exp 0: an hour */
    bool corrupted;
};

/* By the other issuer's key. */
static void make(size_t key, const struct claims *c)
{
    char header[128], payload[1024];
    snprintf(header, sizeof(header), "{\"alg\":\"%s\",\"kid\":\"%s\"}", makers[key].algorithm,
             c->kid ? c->kid : makers[key].kid);
    snprintf(
        payload, sizeof(payload),
        "{\"iss\":\"%s\",\"aud\":\"%s\",\"sub\":\"%s\",\"role\":\"%s\",\"project_scope\":[\"p1\",\"p2\"],"
        "\"session_id\":\"%s\",\"jti\":\"%s\",\"iat\":%lld,\"exp\":%lld}",
        c->issuer ? c->issuer : OTHER, c->audience ? c->audience : "coppice", c->subject ? c->subject : "u1",
        c->role ? c->role : "owner", c->session ? c->session : "s1", c->jti ? c->jti : "j1",
        (long long)now_s() + c->iat, (long long)now_s() + (c->exp ? c->exp : 3600));
    token_size = maker_sign(&makers[key], header, payload, token);
    if (c->corrupted)
        token[token_size - 10] = token[token_size - 10] == 'A' ? 'B' : 'A';
}

static struct identity who;
static const char *why;

/* What `who` borrows from stays until the next one. */
static enum jwt_stage verify(void)
{
    if (marked)
        actor_arena_reset(mark);
    mark = actor_arena_mark();
    marked = true;
    return keyring_verify(ring, span_of(token, token_size), span_text("request-9"), &who, &why);
}

/* Of the same token. */
static enum jwt_stage look(void)
{
    struct arena_mark here = actor_arena_mark();
    struct identity me;
    enum jwt_stage stage = keyring_look(ring, span_of(token, token_size), &me, &why);
    actor_arena_reset(here);
    return stage;
}

static enum jwt_stage verify_made(size_t key, const struct claims *c)
{
    make(key, c);
    return verify();
}

static uint64_t signatures(void)
{
    return telemetry_counter_sum(runtime_telemetry(runtime_self()), TELEMETRY_AUTH_SIGNATURE);
}

static uint64_t rejected(const char *stage)
{
    return telemetry_counter_label(runtime_telemetry(runtime_self()), TELEMETRY_AUTH_REJECTED, stage);
}

/* One of the built-in issuer, now in `token`. */
static struct keyring_token issued;
static void issue(const char *subject, const char *role, uint64_t lifetime_s)
{
    bool unavailable;
    struct keyring_claims c = {.subject = span_text(subject),
                               .role = span_text(role),
                               .projects_count = 1,
                               .projects = {span_text("*")},
                               .lifetime_s = lifetime_s};
    const char *wrong = keyring_issue(ring, &c, &issued, &unavailable);
    if (wrong)
        printf("%s\n", wrong);
    EXPECT(wrong == NULL);
    token_size = issued.length;
    memcpy(token, issued.text, issued.length);
}

static bool jwks_has(const char *kid)
{
    static char text[8192];
    struct json_sink sink;
    struct json json;
    json_sink_init(&sink, text, sizeof(text) - 1, NULL, NULL);
    json_init(&json, &sink);
    keyring_write_jwks(ring, &json);
    EXPECT(json_end(&json) == JSON_OK);
    text[sink.length] = 0;
    EXPECT(strncmp(text, "{\"keys\":[", 9) == 0 && strcmp(text + sink.length - 2, "]}") == 0);
    static const char *const secrets[] = {"\"d\"", "\"p\"", "\"q\"", "\"k\"", "PRIVATE"};
    for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
        EXPECT(strstr(text, secrets[i]) == NULL);
    return strstr(text, kid) != NULL;
}

/* Audit entries of this verb; the newest one's details hold `part`, and its who is this. */
static size_t audits(const char *verb, const char *from, const char *part)
{
    size_t count = 0;
    struct key last = {.size = 0};
    struct audit audit;
    uint8_t most[16];
    memset(most, 0xff, sizeof(most));
    key_add(&last, most, sizeof(most));
    struct view *view = view_open(stage_store);
    EXPECT(view != NULL);
    struct scan scan = txn_scan(&view->txn, TABLE_AUDITS, key_span(&last), 0, SCAN_DOWN);
    while (scan_next(&scan) && scan_read(&scan, &audit) == OK) {
        if (!span_equal(audit.verb, span_text(verb)))
            continue;
        if (count++ > 0)
            continue;
        char details[256];
        snprintf(details, sizeof(details), "%.*s", (int)audit.details.size,
                 (const char *)audit.details.bytes);
        EXPECT(span_equal(audit.who, span_text(from)) && strstr(details, part) && audit.at_us > 0);
        if (strcmp(verb, "token.replayed") == 0)
            EXPECT(span_equal(audit.request_id, span_text("request-9")));
    }
    EXPECT(scan_end(&scan) == OK);
    view_close(view);
    return count;
}

static uint64_t rows(uint32_t table)
{
    struct view *view = view_open(stage_store);
    uint64_t count = txn_rows(&view->txn, table);
    view_close(view);
    return count;
}

static void active_kid(char kid[UUID_TEXT_SIZE])
{
    struct keyring_figures figures;
    keyring_figures(ring, &figures);
    memcpy(kid, figures.active, UUID_TEXT_SIZE);
}

/* ---- the order of the checks ---- */

RINGED(test_CTL_090_a_token_of_a_key_set)
{
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "one"}) == JWT_STAGE_OK);
    EXPECT(who.kind == IDENTITY_TOKEN && who.role == ROLE_OWNER && !who.all_projects &&
           who.projects_count == 2);
    EXPECT(span_equal(who.subject, span_text("u1")) && span_equal(who.session, span_text("s1")) &&
           span_equal(who.jti, span_text("one")) && span_equal(who.issuer, span_text(OTHER)));
    EXPECT(span_equal(who.projects[1], span_text("p2")) && who.expires_s == now_s() + 3600);
    EXPECT(verify_made(KEY_B, &(struct claims){.jti = "two"}) == JWT_STAGE_OK);
    EXPECT(verify_made(KEY_C, &(struct claims){.jti = "three"}) == JWT_STAGE_SIGNATURE); /* not in the set */
}

RINGED(test_AMB_22_a_role_that_there_is_none_of_is_no_claim)
{
    static const char *const none[] = {"king", "Owner", "owner ", "owner,agent"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        EXPECT(verify_made(KEY_A, &(struct claims){.jti = none[i], .role = none[i]}) == JWT_STAGE_CLAIMS);
        EXPECT(verify() == JWT_STAGE_CLAIMS); /* nor is it remembered */
    }
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "v", .role = "viewer"}) == JWT_STAGE_OK);
}

RINGED(test_CTL_089_what_is_remembered_needs_no_signature_and_says_the_same)
{
    uint64_t before = signatures();
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "one", .role = "agent"}) == JWT_STAGE_OK);
    EXPECT(signatures() == before + 1);
    struct identity first = who;
    for (int i = 0; i < 10; i++) {
        EXPECT(verify() == JWT_STAGE_OK && signatures() == before + 1);
        EXPECT(who.kind == first.kind && who.role == first.role && who.expires_s == first.expires_s &&
               who.projects_count == first.projects_count && who.all_projects == first.all_projects);
        EXPECT(span_equal(who.subject, span_text("u1")) && span_equal(who.jti, span_text("one")) &&
               span_equal(who.session, span_text("s1")) && span_equal(who.issuer, span_text(OTHER)) &&
               span_equal(who.projects[0], span_text("p1")) && span_equal(who.projects[1], span_text("p2")));
    }
    EXPECT(rows(TABLE_SEEN_TOKENS) == 1);
    token[token_size - 10] ^= 1; /* another token, however like it */
    EXPECT(verify() != JWT_STAGE_OK && signatures() > before);
}

RINGED(test_CTL_089_a_revoked_token_is_refused_before_any_cryptography)
{
    uint64_t before = signatures(), stopped = rejected("blocklist");
    EXPECT(keyring_revoke(&order, REVOCATION_TOKEN, span_text(OTHER), span_text("gone"), 0, DEADLINE_NONE) ==
           OK);
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "gone", .corrupted = true}) == JWT_STAGE_BLOCKLIST);
    EXPECT(strstr(why, "revoked") != NULL);
    EXPECT(signatures() == before && rejected("blocklist") == stopped + 1);
    /* of this issuer alone */
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "here"}) == JWT_STAGE_OK);
    EXPECT(audits("token.revoked", "ops", "") == 1);
}

/* What no token can have is refused, and not cut to what one could have. */
RINGED(test_CTL_099_what_can_be_revoked_has_a_greatest_length)
{
    static const char none[] = "";
    char text[JWT_TEXT_MAX + 2];
    memset(text, 'a', sizeof(text));
    for (int kind = 0; kind <= REVOCATION_KIND_COUNT; kind++) {
        enum error wrong = kind == REVOCATION_KEY ? ERR_NOT_FOUND : ERR_INVALID;
        struct span fits = span_of(text, REVOCATION_VALUE_MAX),
                    longer = span_of(text, REVOCATION_VALUE_MAX + 1);
        struct span issuer = span_of(text, REVOCATION_ISSUER_MAX),
                    too_long = span_of(text, REVOCATION_ISSUER_MAX + 1);
        enum revocation_kind k = (enum revocation_kind)kind;
        EXPECT(keyring_revoke(&order, k, span_text(OTHER), longer, now_s() + 60, DEADLINE_NONE) == wrong);
        EXPECT(keyring_revoke(&order, k, span_text(OTHER), span_text(none), now_s() + 60, DEADLINE_NONE) ==
               wrong);
        EXPECT(keyring_revoke(&order, k, too_long, fits, now_s() + 60, DEADLINE_NONE) == wrong);
        if (kind == REVOCATION_KIND_COUNT)
            EXPECT(keyring_revoke(&order, k, issuer, fits, now_s() + 60, DEADLINE_NONE) == ERR_INVALID);
        else if (kind != REVOCATION_KEY)
            EXPECT(keyring_revoke(&order, k, issuer, fits, now_s() + 60, DEADLINE_NONE) == OK);
    }
    EXPECT(rows(TABLE_REVOCATIONS) == REVOCATION_KIND_COUNT - 1);
}

RINGED(test_CTL_093_the_first_step_that_fails_decides)
{
    EXPECT(keyring_revoke(&order, REVOCATION_TOKEN, span_text(OTHER), span_text("gone"), 0, DEADLINE_NONE) ==
           OK);
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "seen"}) == JWT_STAGE_OK);
    static const struct {
        const char *jti, *audience;
        bool corrupted;
        long long exp;
        enum jwt_stage stage;
    } cases[] = {
        {"gone", "coppice", false, 0, JWT_STAGE_BLOCKLIST},
        {"gone", "coppice", true, 0, JWT_STAGE_BLOCKLIST},
        {"gone", "else", false, 0, JWT_STAGE_BLOCKLIST},
        {"gone", "else", true, -1, JWT_STAGE_BLOCKLIST},
        {"new", "coppice", true, 0, JWT_STAGE_SIGNATURE},
        {"new", "else", true, 0, JWT_STAGE_SIGNATURE},
        {"new", "coppice", true, -1, JWT_STAGE_SIGNATURE},
        {"seen", "else", true, 0, JWT_STAGE_SIGNATURE},
        {"new", "else", false, 0, JWT_STAGE_CLAIMS},
        {"new", "coppice", false, -1, JWT_STAGE_CLAIMS},
        {"seen", "else", false, 0, JWT_STAGE_CLAIMS},
        {"seen", "coppice", false, 7200, JWT_STAGE_REPLAY},
        {"new", "coppice", false, 0, JWT_STAGE_OK},
    };
    static const char *const names[] = {"", "form", "blocklist", "signature", "claims", "replay"};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t before = cases[i].stage ? rejected(names[cases[i].stage]) : 0;
        enum jwt_stage stage = verify_made(KEY_A, &(struct claims){.jti = cases[i].jti,
                                                                   .audience = cases[i].audience,
                                                                   .iat = cases[i].exp < 0 ? -10 : 0,
                                                                   .exp = cases[i].exp,
                                                                   .corrupted = cases[i].corrupted});
        if (stage != cases[i].stage)
            printf("case %zu: stage %d, %s\n", i, (int)stage, why ? why : "");
        EXPECT(stage == cases[i].stage);
        EXPECT(!cases[i].stage || rejected(names[cases[i].stage]) == before + 1);
    }
    token_size = 10;
    EXPECT(verify() == JWT_STAGE_FORM);
    token_size = JWT_SIZE_MAX + 1;
    EXPECT(verify() == JWT_STAGE_FORM);
    token_size = 0;
    EXPECT(verify() == JWT_STAGE_FORM);
}

RINGED(test_CTL_087_CTL_088_header_algorithms_that_are_not_the_keys)
{
    static const char *const names[] = {"none", "None", "HS256", "HS384", "HS512", "PS256", "RS256", "ES384"};
    char header[128], payload[512], pem[4096];
    snprintf(payload, sizeof(payload),
             "{\"iss\":\"" OTHER
             "\",\"aud\":\"coppice\",\"sub\":\"u\",\"role\":\"owner\",\"project_scope\":\"*\","
             "\"session_id\":\"s\",\"jti\":\"j\",\"iat\":%llu,\"exp\":%llu}",
             (unsigned long long)now_s(), (unsigned long long)now_s() + 60);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(header, sizeof(header), "{\"alg\":\"%s\",\"kid\":\"a\"}", names[i]);
        token_size = maker_join(header, payload, "", 0, token);
        EXPECT(verify() == JWT_STAGE_SIGNATURE);
        token_size = maker_sign_hmac(pem, maker_pem(&makers[KEY_A], pem), header, payload, token);
        EXPECT(verify() == JWT_STAGE_SIGNATURE);
        token_size = maker_sign(&makers[KEY_A], header, payload, token); /* the key did sign this */
        EXPECT(verify() == (i < 6 ? JWT_STAGE_SIGNATURE : JWT_STAGE_CLAIMS));
    }
    token_size = maker_sign(&makers[KEY_A], "{\"alg\":\"ES256\",\"kid\":\"a\"}", payload, token);
    EXPECT(verify() == JWT_STAGE_OK);
}

RINGED(test_CTL_078_CTL_113_kids_that_nobody_has)
{
    static const char *const kids[] = {"",    "x", "../a", "a/../a", "a\\u0000",    "' OR 1=1 --",
                                       "%61", "A", "a ",   " a",     "/etc/passwd", "c"};
    for (size_t i = 0; i < sizeof(kids) / sizeof(kids[0]); i++) {
        enum jwt_stage stage = verify_made(KEY_A, &(struct claims){.kid = kids[i]});
        EXPECT(stage == JWT_STAGE_SIGNATURE || stage == JWT_STAGE_FORM);
    }
    EXPECT(verify_made(KEY_A, &(struct claims){.kid = "b"}) == JWT_STAGE_SIGNATURE);
}

RINGED(test_CTL_073_CTL_104_a_key_speaks_for_its_issuer_alone)
{
    EXPECT(verify_made(KEY_A, &(struct claims){.issuer = "coppice"}) == JWT_STAGE_SIGNATURE);
    EXPECT(verify_made(KEY_A, &(struct claims){.issuer = "https://mallory"}) == JWT_STAGE_SIGNATURE);
    EXPECT(verify_made(KEY_A, &(struct claims){.issuer = OTHER "/"}) == JWT_STAGE_SIGNATURE);
    issue("u1", "owner", 0);
    char kid[UUID_TEXT_SIZE];
    active_kid(kid);
    EXPECT(strcmp(kid, issued.kid) == 0 && verify() == JWT_STAGE_OK);
    /* the built-in issuer's kid with the other one's name */
    EXPECT(verify_made(KEY_A, &(struct claims){.kid = kid}) == JWT_STAGE_SIGNATURE);
}

/* ---- replays ---- */

RINGED(test_CTL_092_the_same_jti_in_another_token_is_a_replay)
{
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "one"}) == JWT_STAGE_OK);
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "one", .subject = "mallory"}) == JWT_STAGE_REPLAY);
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "one", .session = "s2"}) == JWT_STAGE_REPLAY);
    EXPECT(verify_made(KEY_B, &(struct claims){.jti = "one"}) == JWT_STAGE_REPLAY);
    EXPECT(audits("token.replayed", "u1", "SEV2") == 3);
    EXPECT(verify() == JWT_STAGE_REPLAY); /* the same replay again is audited once a day */
    EXPECT(audits("token.replayed", "u1", "SEV2") == 3);
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "two"}) == JWT_STAGE_OK);
    ring_again();
    EXPECT(verify() == JWT_STAGE_OK); /* the same complete token: reuse, whatever was forgotten */
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "two", .exp = 1800}) == JWT_STAGE_REPLAY);
    EXPECT(rows(TABLE_SEEN_TOKENS) == 2);
}

RINGED(test_AMB_16_strict_mode_makes_tokens_one_shot)
{
    ring_end();
    options.jti_single_use = true;
    ring_begin();
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "one"}) == JWT_STAGE_OK);
    EXPECT(verify() == JWT_STAGE_REPLAY);
    EXPECT(verify() == JWT_STAGE_REPLAY);
    ring_again();
    EXPECT(verify() == JWT_STAGE_REPLAY);
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "two"}) == JWT_STAGE_OK);
}

/* Before a body has come: it is asked for again with the body, and must not be a replay of itself. */
RINGED(test_AMB_16_a_look_before_the_body_uses_no_token_up)
{
    make(KEY_A, &(struct claims){.jti = "zero"});
    EXPECT(look() == JWT_STAGE_OK && look() == JWT_STAGE_OK);
    EXPECT(rows(TABLE_SEEN_TOKENS) == 0);
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "zero", .session = "s2"}) == JWT_STAGE_OK);
    make(KEY_A, &(struct claims){.jti = "zero", .corrupted = true});
    EXPECT(look() == JWT_STAGE_SIGNATURE);
    ring_end();
    options.jti_single_use = true;
    ring_begin();
    make(KEY_A, &(struct claims){.jti = "one"});
    EXPECT(look() == JWT_STAGE_OK && verify() == JWT_STAGE_OK);
    EXPECT(verify() == JWT_STAGE_REPLAY);
}

static void sweep(void)
{
    const struct retention_sweep c = {.limit = 0};
    EXPECT(store_submit(&retention_sweep_class, &c, NULL, 0, NULL, DEADLINE_NONE) == OK);
}

RINGED(test_CTL_094_a_jti_is_kept_until_its_token_expires)
{
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "one", .exp = 100}) == JWT_STAGE_OK);
    actor_sleep(actor_now() + 98 * NS_PER_S);
    sweep();
    EXPECT(rows(TABLE_SEEN_TOKENS) == 1 && verify() == JWT_STAGE_OK);
    actor_sleep(actor_now() + 3 * NS_PER_S);
    EXPECT(verify() == JWT_STAGE_CLAIMS); /* remembered or not, its time is over */
    sweep();
    EXPECT(rows(TABLE_SEEN_TOKENS) == 0);
}

RINGED(test_CTL_092_without_a_writer_new_tokens_wait_and_known_ones_go_on)
{
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "one"}) == JWT_STAGE_OK);
    stage_kill(actor_whereis(WRITER_NAME));
    EXPECT(verify() == JWT_STAGE_OK);
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "two"}) == JWT_STAGE_STORE);
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "two", .corrupted = true}) == JWT_STAGE_SIGNATURE);
    stage_writer();
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "two"}) == JWT_STAGE_OK);
}

/* ---- revocation ---- */

RINGED(test_CTL_095_revocations_survive_a_restart_and_beat_what_is_remembered)
{
    actor_pid keeper = stage_keeper();
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "one"}) == JWT_STAGE_OK);
    EXPECT(verify() == JWT_STAGE_OK);
    EXPECT(keyring_revoke(&order, REVOCATION_TOKEN, span_text(OTHER), span_text("one"), now_s() + 3600,
                          DEADLINE_NONE) == OK);
    EXPECT(verify() == JWT_STAGE_BLOCKLIST);
    ring_again();
    EXPECT(verify() == JWT_STAGE_BLOCKLIST);
    EXPECT(rows(TABLE_REVOCATIONS) == 1);
    actor_sleep(actor_now() + 3602 * NS_PER_S);
    sweep();
    EXPECT(rows(TABLE_REVOCATIONS) == 0 && verify() != JWT_STAGE_OK);
    struct keyring_figures figures;
    actor_sleep(actor_now() + 200 * NS_PER_S); /* forgotten in steps */
    keyring_figures(ring, &figures);
    EXPECT(figures.revoked == 0);
    stage_kill(keeper);
}

/* Whatever the clock says meanwhile: what it forgot would be good again when it is right. */
RINGED(test_CTL_095_a_clock_that_was_ahead_forgets_no_revocation)
{
    int64_t ahead = 2 * (int64_t)DAY_NS;
    actor_pid keeper = stage_keeper();
    actor_sleep(actor_now() + 2 * NS_PER_S);
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "one"}) == JWT_STAGE_OK);
    EXPECT(keyring_revoke(&order, REVOCATION_TOKEN, span_text(OTHER), span_text("one"), now_s() + 3600,
                          DEADLINE_NONE) == OK);
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "two"}) == JWT_STAGE_OK);
    uint64_t two_s = now_s() + 3600;
    stage_clock_jump(ahead);
    EXPECT(keyring_revoke(&order, REVOCATION_TOKEN, span_text(OTHER), span_text("two"), two_s,
                          DEADLINE_NONE) == OK); /* over, says the clock */
    actor_sleep(actor_now() + 100 * NS_PER_S);
    EXPECT(rows(TABLE_REVOCATIONS) == 2 && rows(TABLE_SEEN_TOKENS) == 2);
    stage_clock_jump(-ahead);
    EXPECT(verify() == JWT_STAGE_BLOCKLIST);
    make(KEY_A, &(struct claims){.jti = "one"});
    EXPECT(verify() == JWT_STAGE_BLOCKLIST);
    stage_kill(keeper);
}

static void revoke_of(enum revocation_kind kind, const char *value)
{
    EXPECT(keyring_revoke(&order, kind, span_of(NULL, 0), span_text(value), 0, DEADLINE_NONE) == OK);
}

RINGED(test_CTL_099_CTL_100_CTL_101_principals_and_sessions_people_and_agents)
{
    static const char *const roles[] = {"owner", "agent"};
    for (size_t i = 0; i < 2; i++) {
        char jti[8];
        snprintf(jti, sizeof(jti), "j%zu", i);
        EXPECT(verify_made(KEY_A, &(struct claims){.jti = jti, .subject = roles[i], .role = roles[i]}) ==
               JWT_STAGE_OK);
        issue(roles[i], roles[i], 60); /* one of our own, of the same second */
        revoke_of(REVOCATION_SUBJECT, roles[i]);
        EXPECT(verify() == JWT_STAGE_BLOCKLIST);
        EXPECT(verify_made(KEY_A, &(struct claims){.jti = jti, .subject = roles[i], .role = roles[i]}) ==
               JWT_STAGE_BLOCKLIST);
        /* and one that was never seen */
        EXPECT(verify_made(KEY_A, &(struct claims){.jti = "x", .subject = roles[i]}) == JWT_STAGE_BLOCKLIST);
        issue(roles[i], roles[i], 60); /* after it, and still in that second: a new beginning */
        EXPECT(verify() == JWT_STAGE_OK);
        revoke_of(REVOCATION_SUBJECT, roles[i]);
        EXPECT(verify() == JWT_STAGE_BLOCKLIST);
        actor_sleep(actor_now() + 2 * NS_PER_S);
        issue(roles[i], roles[i], 60);
        EXPECT(verify() == JWT_STAGE_OK);
        /* the other issuer's clock may be ahead of ours by the skew */
        EXPECT(verify_made(KEY_A, &(struct claims){.jti = "y", .subject = roles[i]}) == JWT_STAGE_BLOCKLIST);
        actor_sleep(actor_now() + 120 * NS_PER_S);
        snprintf(jti, sizeof(jti), "k%zu", i);
        EXPECT(verify_made(KEY_A, &(struct claims){.jti = jti, .subject = roles[i]}) == JWT_STAGE_OK);
    }
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "s", .session = "s9"}) == JWT_STAGE_OK);
    revoke_of(REVOCATION_SESSION, "s9");
    EXPECT(verify() == JWT_STAGE_BLOCKLIST);
    actor_sleep(actor_now() + 2 * HOUR_NS);
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "t", .session = "s9"}) == JWT_STAGE_BLOCKLIST);
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "t", .session = "s8"}) == JWT_STAGE_OK);
    ring_again();
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "t", .session = "s9"}) == JWT_STAGE_BLOCKLIST);
    EXPECT(audits("subject.revoked", "ops", "") == 4 && audits("session.revoked", "ops", "") == 1);
}

/* A clock that was set back a little must not let tokens of the seconds before it through. */
RINGED(test_CTL_099_a_principal_revoked_after_the_clock_went_back)
{
    issue("u1", "owner", 0);
    EXPECT(verify() == JWT_STAGE_OK);
    stage_clock_jump(-3 * (int64_t)NS_PER_S);
    revoke_of(REVOCATION_SUBJECT, "u1");
    EXPECT(verify() == JWT_STAGE_BLOCKLIST);
    ring_again();
    EXPECT(verify() == JWT_STAGE_BLOCKLIST);
    actor_sleep(actor_now() + 4 * NS_PER_S);
    issue("u1", "owner", 0);
    EXPECT(verify() == JWT_STAGE_OK);
}

/* ---- a clock that was ahead ---- */

/* As http/tokens.c does before it tells of a token. */
static void issue_noted(const char *subject)
{
    char details[256];
    struct uuid_source source;
    issue(subject, "owner", 28800);
    snprintf(details, sizeof(details),
             "{\"subject\":\"%s\",\"role\":\"owner\",\"kid\":\"%s\",\"projects\":1}", subject, issued.kid);
    uuid_source_init(&source, stage_store->env);
    const struct audit_append entry = {.id = uuid_v7(&source),
                                       .who = span_text("ops"),
                                       .verb = span_text("token.issued"),
                                       .target = span_text(issued.jti),
                                       .outcome = span_text("done"),
                                       .details = span_text(details)};
    EXPECT(store_submit(&audit_append_class, &entry, NULL, 0, NULL, DEADLINE_NONE) == OK);
}

static bool refused_for_good(void)
{
    enum jwt_stage stage = verify();
    return stage == JWT_STAGE_SIGNATURE || stage == JWT_STAGE_BLOCKLIST;
}

/* Issued while the clock is ahead by so much; its subject is revoked when it is right again; and then the clock comes there. */
static void revoked_behind(uint64_t ahead_s, bool restart_ahead, bool restart)
{
    const int64_t ahead_ns = (int64_t)(ahead_s * NS_PER_S);
    char before[UUID_TEXT_SIZE], after[UUID_TEXT_SIZE];
    stage_clock_jump(ahead_ns);
    issue_noted("dave");
    EXPECT(verify() == JWT_STAGE_OK);
    active_kid(before);
    if (restart_ahead)
        ring_again();
    stage_clock_jump(-ahead_ns);
    if (restart)
        ring_again();
    revoke_of(REVOCATION_SUBJECT, "dave");
    actor_sleep(actor_now() + 3 * NS_PER_S);
    active_kid(after);
    EXPECT((strcmp(before, after) != 0) == (ahead_s > 60));
    for (uint64_t slept = 0; slept < ahead_s + 300; slept += 20) {
        EXPECT(verify() != JWT_STAGE_OK);
        actor_sleep(actor_now() + 20 * NS_PER_S);
    }
    EXPECT(refused_for_good());
    ring_again();
    EXPECT(refused_for_good());
    issue("dave", "owner", 0);
    EXPECT(verify() == JWT_STAGE_OK);
    EXPECT(ahead_s <= 60 || strcmp(issued.kid, after) == 0); /* once, and not with each start */
}

RINGED(test_CTL_099_a_token_of_a_clock_that_was_ahead_never_comes_to_life)
{
    static const uint64_t aheads[] = {50, 100, 600, 3600};
    for (size_t i = 0; i < sizeof(aheads) / sizeof(aheads[0]); i++)
        for (int restarts = 0; restarts < 4; restarts++)
            revoked_behind(aheads[i], restarts & 1, restarts & 2);
}

/* As the command does that ends a principal, and whoever submitted it. */
static enum error stop_dave(void)
{
    struct keyring_end end = keyring_end_of(ring);
    struct uuid_source source;
    uuid_source_init(&source, stage_store->env);
    const struct revocation_put put = {.kind = REVOCATION_SUBJECT,
                                       .value = span_text("dave"),
                                       .cut_off_us = end.cut_off_us,
                                       .expires_us = now_s() * 1000000 + end.tokens_us,
                                       .audit = uuid_v7(&source),
                                       .who = span_text("ops"),
                                       .reason = span_text("he left")};
    EXPECT(store_submit(&revocation_put_class, &put, NULL, 0, NULL, DEADLINE_NONE) == OK);
    return keyring_stop_subject(&order, span_text("dave"), true, false, DEADLINE_NONE);
}

RINGED(test_CTL_099_a_token_of_a_clock_that_was_ahead_ends_before_the_answer)
{
    static const uint64_t aheads[] = {100, 600};
    for (int i = 0; i < 6; i++) {
        const int64_t ahead_ns = (int64_t)(aheads[i & 1] * NS_PER_S);
        bool kept = i < 4;
        stage_clock_jump(ahead_ns);
        issue_noted("dave");
        EXPECT(verify() == JWT_STAGE_OK);
        if (!kept)
            stage_kill(actor_whereis(WRITER_NAME));
        stage_clock_jump(-ahead_ns);
        enum error e = i < 2 ? stop_dave()
                             : keyring_revoke(&order, REVOCATION_SUBJECT, span_of(NULL, 0), span_text("dave"),
                                              0, DEADLINE_NONE);
        EXPECT((e == OK) == kept);
        EXPECT(refused_for_good());
        for (int slept = 0; slept < 720; slept += 60) {
            actor_sleep(actor_now() + 60 * NS_PER_S);
            EXPECT(refused_for_good());
        }
        if (!kept)
            stage_writer();
    }
}

RINGED(test_CTL_099_a_clock_that_was_ahead_locks_nobody_out)
{
    static char old[MAKER_TEXT_MAX];
    const int64_t hour_ns = (int64_t)HOUR_NS;
    issue_noted("u1");
    size_t old_size = token_size;
    memcpy(old, token, old_size);
    stage_clock_jump(hour_ns);
    issue_noted("somebody else");
    stage_clock_jump(-hour_ns);
    revoke_of(REVOCATION_SUBJECT, "dave"); /* before the keyring has seen it, too */
    actor_sleep(actor_now() + 2 * NS_PER_S);
    issue("dave", "owner", 0);
    EXPECT(verify() == JWT_STAGE_OK);
    uint64_t cut_off_us = keyring_end_of(ring).cut_off_us;
    EXPECT(cut_off_us <= (now_s() + 60) * 1000000);
    for (int i = 0; i < 3; i++) {
        revoke_of(REVOCATION_SUBJECT, "dave");
        EXPECT(verify() == JWT_STAGE_BLOCKLIST);
        actor_sleep(actor_now() + 1 * NS_PER_S);
        issue("dave", "owner", 0);
        EXPECT(verify() == JWT_STAGE_OK);
    }
    memcpy(token, old, token_size = old_size); /* of before: nobody's business */
    EXPECT(verify() == JWT_STAGE_OK);
    ring_again();
    EXPECT(verify() == JWT_STAGE_OK);
}

RINGED(test_CTL_089_a_revocation_counts_even_when_the_store_cant_keep_it)
{
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "one"}) == JWT_STAGE_OK);
    stage_kill(actor_whereis(WRITER_NAME));
    EXPECT(keyring_revoke(&order, REVOCATION_TOKEN, span_text(OTHER), span_text("one"), 0, DEADLINE_NONE) ==
           ERR_UNAVAILABLE);
    EXPECT(verify() == JWT_STAGE_BLOCKLIST);
    stage_writer();
}

RINGED(test_CTL_110_a_revoked_key_takes_all_that_it_signed_with_it)
{
    char first[UUID_TEXT_SIZE], second[UUID_TEXT_SIZE];
    active_kid(first);
    issue("u1", "owner", 0);
    EXPECT(verify() == JWT_STAGE_OK && verify() == JWT_STAGE_OK);
    EXPECT(keyring_revoke_key(&order, span_text(first), DEADLINE_NONE) == OK);
    uint64_t before = signatures();
    EXPECT(verify() == JWT_STAGE_BLOCKLIST && signatures() == before);
    active_kid(second);
    EXPECT(second[0] && strcmp(first, second) != 0 && jwks_has(second) && !jwks_has(first));
    EXPECT(audits("key.revoked", "ops", "SEV1") == 1);
    ring_again();
    EXPECT(verify() == JWT_STAGE_BLOCKLIST && signatures() == before);
    issue("u1", "owner", 0);
    EXPECT(strcmp(issued.kid, second) == 0 && verify() == JWT_STAGE_OK);
    EXPECT(keyring_revoke_key(&order, span_text(first), DEADLINE_NONE) == ERR_TRANSITION);
    EXPECT(keyring_revoke_key(&order, span_text("nobody"), DEADLINE_NONE) == ERR_NOT_FOUND);
    EXPECT(keyring_revoke_key(&order, span_text("00000000-0000-7000-8000-000000000001"), DEADLINE_NONE) ==
           ERR_NOT_FOUND);
    /* one of a set: for ever */
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "one"}) == JWT_STAGE_OK);
    EXPECT(keyring_revoke(&order, REVOCATION_KEY, span_text("coppice"), span_text("a"), 0, DEADLINE_NONE) ==
           ERR_NOT_FOUND);
    EXPECT(verify() == JWT_STAGE_OK);
    EXPECT(keyring_revoke(&order, REVOCATION_KEY, span_text(OTHER), span_text("a"), 0, DEADLINE_NONE) == OK);
    EXPECT(verify() == JWT_STAGE_BLOCKLIST);
    EXPECT(keyring_revoke_key(&order, span_text("a"), DEADLINE_NONE) == OK);
    actor_sleep(actor_now() + 30 * DAY_NS);
    ring_again();
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "two"}) == JWT_STAGE_BLOCKLIST);
    EXPECT(verify_made(KEY_B, &(struct claims){.jti = "three"}) == JWT_STAGE_OK);
}

/* Nobody knows then whether it was written; so it counts, and what the store has in the end is what is known here. */
RINGED(test_CTL_110_a_revocation_of_a_key_whose_end_nobody_knows_counts)
{
    char first[UUID_TEXT_SIZE], second[UUID_TEXT_SIZE];
    actor_pid writer = actor_whereis(WRITER_NAME);
    active_kid(first);
    issue("u1", "owner", 0);
    EXPECT(verify() == JWT_STAGE_OK);
    actor_suspend(writer);
    EXPECT(keyring_revoke_key(&order, span_text(first), DEADLINE_NONE) == ERR_TIMEOUT);
    EXPECT(verify() == JWT_STAGE_BLOCKLIST);
    actor_sleep(actor_deadline_ms(3000));
    actor_resume(writer);
    actor_sleep(actor_deadline_ms(3000));
    active_kid(second);
    EXPECT(second[0] && strcmp(first, second) != 0 && !jwks_has(first));
    EXPECT(verify() == JWT_STAGE_BLOCKLIST);
    issue("u1", "owner", 0);
    EXPECT(strcmp(issued.kid, second) == 0 && verify() == JWT_STAGE_OK);
}

/* Whoever writes another issuer's set can't shield one of ours by giving its kid to a key of theirs. */
RINGED(test_CTL_110_a_key_set_with_our_kid_does_not_shield_our_key)
{
    char kid[UUID_TEXT_SIZE];
    struct maker_key kept = makers[KEY_B];
    ring_end();
    ring_begin();
    active_kid(kid);
    maker_key_make(&makers[KEY_B], "ES256", kid);
    write_set(2, "");
    ring_again();
    issue("u1", "owner", 0);
    EXPECT(verify() == JWT_STAGE_OK);
    EXPECT(verify_made(KEY_B, &(struct claims){.jti = "theirs"}) == JWT_STAGE_OK);
    EXPECT(keyring_revoke_key(&order, span_text(kid), DEADLINE_NONE) == OK);
    EXPECT(verify() == JWT_STAGE_BLOCKLIST);
    memcpy(token, issued.text, token_size = issued.length);
    EXPECT(verify() == JWT_STAGE_BLOCKLIST && !jwks_has(kid));
    ring_again();
    EXPECT(verify() != JWT_STAGE_OK);
    EXPECT(verify_made(KEY_B, &(struct claims){.jti = "more"}) == JWT_STAGE_BLOCKLIST);
    maker_key_free(&makers[KEY_B]);
    makers[KEY_B] = kept;
}

/* ---- rotation ---- */

RINGED(test_CTL_105_rotation_leaves_nobody_outside)
{
    char first[UUID_TEXT_SIZE], second[UUID_TEXT_SIZE];
    active_kid(first);
    issue("u1", "owner", 28800);
    EXPECT(verify() == JWT_STAGE_OK);
    EXPECT(keyring_rotate(&order, false, second, DEADLINE_NONE) == OK);
    EXPECT(strcmp(first, second) != 0 && jwks_has(first) && jwks_has(second));
    EXPECT(verify() == JWT_STAGE_OK);
    static char old[MAKER_TEXT_MAX];
    size_t old_size = token_size;
    memcpy(old, token, old_size);
    issue("u1", "owner", 0);
    EXPECT(strcmp(issued.kid, second) == 0 && verify() == JWT_STAGE_OK);
    memcpy(token, old, token_size = old_size);
    ring_again();
    EXPECT(verify() == JWT_STAGE_OK);
    actor_sleep(actor_now() + 28790 * NS_PER_S); /* until its very end, over the next rotations */
    EXPECT(verify() == JWT_STAGE_OK && jwks_has(first));
    actor_sleep(actor_now() + 300 * NS_PER_S);
    EXPECT(verify() != JWT_STAGE_OK && !jwks_has(first));
    EXPECT(audits("key.rotated", "system", "INFO") >= 2);
}

RINGED(test_CTL_105_no_key_goes_before_its_tokens)
{
    char kid[UUID_TEXT_SIZE], active[UUID_TEXT_SIZE];
    static char old[MAKER_TEXT_MAX];
    uint32_t rotations = 0;
    issue("u1", "owner", 28800);
    size_t old_size = token_size;
    memcpy(old, token, old_size);
    while (rotations < 100 && keyring_rotate(&order, false, kid, DEADLINE_NONE) == OK)
        rotations++;
    EXPECT(rotations == 39 && keyring_rotate(&order, false, kid, DEADLINE_NONE) == ERR_LIMIT);
    EXPECT(verify() == JWT_STAGE_OK);
    active_kid(active);
    EXPECT(keyring_revoke_key(&order, span_text(active), DEADLINE_NONE) == OK); /* that always goes */
    active_kid(kid);
    EXPECT(strcmp(active, kid) != 0);
    issue("u1", "owner", 0);
    EXPECT(verify() == JWT_STAGE_OK && strcmp(issued.kid, kid) == 0);
    ring_again();
    memcpy(token, old, token_size = old_size);
    EXPECT(verify() == JWT_STAGE_OK);
    actor_sleep(actor_now() + 28800 * NS_PER_S + 200 * NS_PER_S); /* over the next rotation, too */
    EXPECT(verify() != JWT_STAGE_OK && keyring_rotate(&order, false, kid, DEADLINE_NONE) == OK);
}

static size_t history(const char *kid, uint8_t *ret_state)
{
    struct uuid id;
    struct signing_key row;
    EXPECT(uuid_parse(kid, strlen(kid), &id));
    struct key key = key_of_uuid(&id);
    struct view *view = view_open(stage_store);
    enum error e = txn_read(&view->txn, TABLE_SIGNING_KEYS, key_span(&key), &row);
    if (!e)
        *ret_state = row.state;
    EXPECT(e || (row.sealed.size > 0) == (row.state == SIGNING_KEY_ACTIVE));
    view_close(view);
    return e == OK;
}

RINGED(test_CTL_109_CTL_119_a_key_older_than_the_cadence_is_replaced)
{
    struct keyring_figures figures;
    char first[UUID_TEXT_SIZE], second[UUID_TEXT_SIZE];
    keyring_figures(ring, &figures);
    EXPECT(figures.next_rotation_us <= actor_wall_now() / NS_PER_US + 6 * HOUR_NS / NS_PER_US);
    active_kid(first);
    actor_sleep(actor_now() + 6 * HOUR_NS - 2 * NS_PER_S);
    active_kid(second);
    EXPECT(strcmp(first, second) == 0);
    actor_sleep(actor_now() + 4 * NS_PER_S);
    active_kid(second);
    EXPECT(strcmp(first, second) != 0);
    EXPECT(audits("key.rotated", "system", "INFO") == 1);
    issue("u1", "viewer", 0);
    EXPECT(verify() == JWT_STAGE_OK && strcmp(issued.kid, second) == 0);
}

/* A key from years ahead would be the active one until then. */
RINGED(test_CTL_109_a_clock_that_was_ahead_does_not_end_rotation)
{
    const int64_t years = (int64_t)(3650 * DAY_NS);
    char first[UUID_TEXT_SIZE], ahead[UUID_TEXT_SIZE], after[UUID_TEXT_SIZE];
    struct keyring_figures figures;
    active_kid(first);
    stage_clock_jump(years);
    actor_sleep(actor_now() + 5 * NS_PER_S);
    active_kid(ahead);
    EXPECT(strcmp(first, ahead) != 0);
    stage_clock_jump(-years);
    actor_sleep(actor_now() + 5 * NS_PER_S);
    active_kid(after);
    EXPECT(strcmp(ahead, after) != 0 && jwks_has(after));
    issue("u1", "owner", 0);
    EXPECT(verify() == JWT_STAGE_OK && strcmp(issued.kid, after) == 0);
    actor_sleep(actor_now() + HOUR_NS); /* once, and not again and again */
    active_kid(ahead);
    EXPECT(strcmp(ahead, after) == 0);
    keyring_figures(ring, &figures);
    EXPECT(figures.next_rotation_us <= actor_wall_now() / NS_PER_US + 6 * HOUR_NS / NS_PER_US);
}

RINGED(test_CTL_105_a_rotation_that_is_written_late_is_noticed)
{
    char first[UUID_TEXT_SIZE], second[UUID_TEXT_SIZE];
    actor_pid writer = actor_whereis(WRITER_NAME);
    active_kid(first);
    actor_suspend(writer);
    EXPECT(keyring_rotate(&order, false, second, DEADLINE_NONE) == ERR_TIMEOUT);
    actor_sleep(actor_deadline_ms(3000));
    actor_resume(writer);
    actor_sleep(actor_deadline_ms(3000));
    active_kid(second);
    EXPECT(strcmp(first, second) != 0);
    uint8_t state = 99;
    EXPECT(history(first, &state) && state == SIGNING_KEY_RETIRING);
    EXPECT(history(second, &state) && state == SIGNING_KEY_ACTIVE);
}

RINGED(test_CTL_111_ended_keys_stay_for_the_forensic_window)
{
    char first[UUID_TEXT_SIZE];
    uint8_t state = 99;
    active_kid(first);
    EXPECT(keyring_revoke_key(&order, span_text(first), DEADLINE_NONE) == OK);
    stage_kill(ring_actor); /* a quarter of a year of rotations isn't what this is about */
    actor_sleep(actor_now() + 89 * DAY_NS);
    sweep();
    EXPECT(history(first, &state) && state == SIGNING_KEY_REVOKED);
    actor_sleep(actor_now() + DAY_NS - 1 * NS_PER_S);
    sweep();
    EXPECT(history(first, &state) == 1);
    actor_sleep(actor_now() + 2 * NS_PER_S);
    sweep();
    EXPECT(history(first, &state) == 0);
    actor_begin();
}

/* A key of ours whose private half the test has: the retiring one is verified with for an hour only. */
RINGED(test_CTL_114_no_stale_key_is_taken_beyond_its_grace)
{
    struct signing_key_rotate c = {.algorithm = span_text("ES256"),
                                   .environment = span_text("dev"),
                                   .sealed = span_text("nobody can open this"),
                                   .overlap_us = HOUR_NS / NS_PER_US,
                                   .who = span_text("test")};
    struct uuid_source ids;
    char kid[UUID_TEXT_SIZE], active[UUID_TEXT_SIZE];
    struct maker_key ours;
    uuid_source_init(&ids, stage_store->env);
    active_kid(active);
    EXPECT(uuid_parse(active, strlen(active), &c.previous));
    c.id = uuid_v7(&ids);
    c.audit = uuid_v7(&ids);
    uuid_format(&c.id, kid);
    maker_key_make(&ours, "ES256", kid);
    c.public_jwk = span_text(ours.jwk);
    EXPECT(store_submit(&signing_key_rotate_class, &c, NULL, 0, NULL, DEADLINE_NONE) == OK);
    c.previous = c.id;
    c.id = uuid_v7(&ids);
    c.audit = uuid_v7(&ids);
    EXPECT(store_submit(&signing_key_rotate_class, &c, NULL, 0, NULL, DEADLINE_NONE) == OK);
    ring_again();
    struct maker_key kept = makers[KEY_C];
    makers[KEY_C] = ours;
    EXPECT(verify_made(KEY_C, &(struct claims){.issuer = "coppice", .exp = 14400}) == JWT_STAGE_OK);
    actor_sleep(actor_now() + HOUR_NS - 10 * NS_PER_S);
    EXPECT(verify() == JWT_STAGE_OK);
    stage_kill(ring_actor); /* whether anybody looks after it or not */
    actor_sleep(actor_now() + 11 * NS_PER_S);
    EXPECT(verify() == JWT_STAGE_SIGNATURE); /* remembered, and not expired */
    EXPECT(verify_made(KEY_C, &(struct claims){.issuer = "coppice", .jti = "new"}) == JWT_STAGE_SIGNATURE);
    makers[KEY_C] = kept;
    maker_key_free(&ours);
    actor_begin();
}

RINGED(test_CTL_102_keys_are_of_one_environment)
{
    issue("u1", "owner", 0);
    EXPECT(verify() == JWT_STAGE_OK);
    ring_end();
    options.environment = "stage";
    ring_begin();
    EXPECT(verify() == JWT_STAGE_SIGNATURE);
    EXPECT(!jwks_has(issued.kid));
}

RINGED(test_CTL_116_CTL_117_CTL_118_outside_dev_an_operator_makes_the_first_key)
{
    char kid[UUID_TEXT_SIZE] = "";
    struct keyring_token one;
    bool unavailable = false;
    EXPECT(keyring_ready(ring, &why));
    EXPECT(audits("key.bootstrapped", "system", "SEV1") == 1); /* dev's own */
    ring_end();
    options.environment = "prod";
    ring_begin();
    EXPECT(!keyring_ready(ring, &why) && strstr(why, "bootstrap") != NULL);
    struct keyring_claims c = {.subject = span_text("u"),
                               .role = span_text("owner"),
                               .projects_count = 1,
                               .projects = {span_text("*")}};
    EXPECT(keyring_issue(ring, &c, &one, &unavailable) != NULL && unavailable);
    EXPECT(keyring_rotate(&order, false, kid, DEADLINE_NONE) == ERR_NOT_FOUND);
    actor_sleep(actor_now() + DAY_NS);
    EXPECT(!keyring_ready(ring, &why));
    EXPECT(keyring_rotate(&order, true, kid, DEADLINE_NONE) == OK);
    EXPECT(keyring_ready(ring, &why) && jwks_has(kid));
    EXPECT(audits("key.bootstrapped", "ops", "SEV1") == 2);
    EXPECT(keyring_rotate(&order, true, kid, DEADLINE_NONE) == ERR_EXISTS);
    EXPECT(keyring_issue(ring, &c, &one, &unavailable) == NULL);
}

RINGED(test_CTL_112_without_its_master_key_nothing_can_be_signed)
{
    ring_end();
    options.environment = "prod";
    ring_begin();
    char kid[UUID_TEXT_SIZE];
    EXPECT(keyring_rotate(&order, true, kid, DEADLINE_NONE) == OK);
    issue("u1", "owner", 0);
    EXPECT(verify() == JWT_STAGE_OK);
    ring_end();
    unlink(master_file);
    ring_begin();
    EXPECT(!keyring_ready(ring, &why) && strstr(why, "master key") != NULL);
    EXPECT(verify() == JWT_STAGE_OK); /* what was signed stays signed */
    EXPECT(keyring_rotate(&order, false, kid, DEADLINE_NONE) == OK && keyring_ready(ring, &why));
    EXPECT(verify() == JWT_STAGE_OK);
}

RINGED(test_CTL_105_a_killed_keyring_comes_back_with_what_it_had)
{
    char kid[UUID_TEXT_SIZE], same[UUID_TEXT_SIZE];
    active_kid(kid);
    issue("u1", "owner", 0);
    EXPECT(verify() == JWT_STAGE_OK);
    revoke_of(REVOCATION_SUBJECT, "u2");
    stage_kill(ring_actor);
    EXPECT(verify() == JWT_STAGE_OK && keyring_ready(ring, &why));
    EXPECT(verify_made(KEY_A, &(struct claims){.subject = "u2"}) == JWT_STAGE_BLOCKLIST);
    actor_begin();
    active_kid(same);
    EXPECT(strcmp(kid, same) == 0);
    EXPECT(audits("key.rotated", "system", "INFO") == 0);
}

/* ---- key sets ---- */

RINGED(test_CTL_090_several_keys_with_one_kid_are_nobodys)
{
    struct maker_key twin;
    static char more[4200];
    ring_end();
    maker_key_make(&twin, "RS256", "a");
    snprintf(more, sizeof(more), ",%s", twin.jwk);
    write_set(2, more);
    ring_begin();
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "one"}) == JWT_STAGE_SIGNATURE);
    EXPECT(verify_made(KEY_B, &(struct claims){.jti = "two"}) == JWT_STAGE_OK);
    maker_key_free(&twin);
}

static void let_in(const char *name, const char *role, const char *template, const char *tier)
{
    struct uuid_source source;
    uuid_source_init(&source, store_here()->env);
    const struct principal_put c = {.verb = PRINCIPAL_CREATE,
                                    .name = span_text(name),
                                    .role = span_text(role),
                                    .projects = span_text("*"),
                                    .agent_template = span_text(template),
                                    .tier = span_text(tier),
                                    .audit = uuid_v7(&source),
                                    .who = span_text("ops")};
    EXPECT(store_submit(&principal_put_class, &c, NULL, 0, NULL, DEADLINE_NONE) == OK);
}

RINGED(test_CTL_081_AMB_18_whoever_is_registered_as_an_agent_is_one_by_its_template)
{
    static const struct agent_template templates[] = {{.id = "other", .seconds = {1, 1, 1}},
                                                      {.id = "builder", .seconds = {0, 0, 3600}}};
    options.templates = templates;
    options.templates_count = 2;
    ring_again();
    let_in("a-c", "agent", "builder", "C");
    let_in("a-b", "agent", "builder", "B");
    let_in("a-any", "agent", "builder", "");
    let_in("a-free", "agent", "unheard-of", "C");
    let_in("s", "service", "", "");
    static const struct {
        const char *subject, *role;
        long long lifetime_s;
        enum jwt_stage stage;
    } cases[] = {
        {"a-c", "agent", 3600, JWT_STAGE_OK},       {"a-c", "agent", 3601, JWT_STAGE_CLAIMS},
        {"a-c", "service", 3601, JWT_STAGE_CLAIMS}, /* whatever its role says */
        {"a-c", "service", 3600, JWT_STAGE_OK},     {"a-b", "agent", 14400, JWT_STAGE_OK},
        {"a-b", "agent", 14401, JWT_STAGE_CLAIMS},  {"a-b", "owner", 14401, JWT_STAGE_CLAIMS},
        {"a-any", "agent", 3601, JWT_STAGE_CLAIMS}, {"a-free", "agent", 14400, JWT_STAGE_OK},
        {"s", "service", 28800, JWT_STAGE_OK},      {"u", "owner", 28800, JWT_STAGE_OK},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char jti[16];
        snprintf(jti, sizeof(jti), "t%zu", i);
        enum jwt_stage stage = verify_made(KEY_A, &(struct claims){.subject = cases[i].subject,
                                                                   .role = cases[i].role,
                                                                   .jti = jti,
                                                                   .exp = cases[i].lifetime_s});
        if (stage != cases[i].stage)
            printf("%s as %s for %lld: %d\n", cases[i].subject, cases[i].role, cases[i].lifetime_s, stage);
        EXPECT(stage == cases[i].stage);
    }
}

/* CTL-115: what another issuer has withdrawn is taken for no longer than keys.revocation_sla says. */
RINGED(test_CTL_115_a_withdrawn_key_goes_within_the_revocation_sla)
{
    static const uint64_t slas[] = {2, 60, 600};
    for (size_t i = 0; i < sizeof(slas) / sizeof(slas[0]); i++) {
        char jti[3][16];
        for (int k = 0; k < 3; k++)
            snprintf(jti[k], sizeof(jti[k]), "%zu-%d", i, k);
        options.revocation_ns = slas[i] * NS_PER_S;
        write_set(2, "");
        ring_again();
        EXPECT(verify_made(KEY_B, &(struct claims){.jti = jti[0]}) == JWT_STAGE_OK);
        write_set(1, "");
        actor_sleep(actor_now() + slas[i] * NS_PER_S);
        EXPECT(verify_made(KEY_B, &(struct claims){.jti = jti[1]}) == JWT_STAGE_SIGNATURE);
        EXPECT(verify_made(KEY_A, &(struct claims){.jti = jti[2]}) == JWT_STAGE_OK);
        struct keyring_figures figures;
        keyring_figures(ring, &figures);
        EXPECT(figures.revocation_s == slas[i] && figures.set_age_s <= slas[i]);
    }
    unlink(set_file); /* measured: what isn't there any more is kept, and grows older than it should */
    actor_sleep(actor_now() + 1000 * NS_PER_S);
    struct keyring_figures figures;
    keyring_figures(ring, &figures);
    EXPECT(figures.set_age_s > figures.revocation_s);
}

static const char too_old[] = "is taken for longer than keys.revocation_sla";

/* Who publishes no key, or none that can be used, has withdrawn those of before. */
RINGED(test_CTL_113_CTL_115_a_set_without_a_key_withdraws_them_all)
{
    static const char *const sets[] = {"{\"keys\":[]}", "{\"keys\":[{\"kty\":\"oct\"}]}",
                                       "{\"keys\":[{\"kty\":\"EC\",\"kid\":\"a\"}]}"};
    options.revocation_ns = 60 * NS_PER_S;
    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
        char jti[2][16];
        for (int k = 0; k < 2; k++)
            snprintf(jti[k], sizeof(jti[k]), "%zu-%d", i, k);
        write_set(2, "");
        ring_again();
        EXPECT(verify_made(KEY_A, &(struct claims){.jti = jti[0]}) == JWT_STAGE_OK);
        EXPECT(verify() == JWT_STAGE_OK); /* it is remembered by now */
        write_file(set_file, sets[i]);
        actor_sleep(actor_now() + 60 * NS_PER_S);
        EXPECT(verify() == JWT_STAGE_SIGNATURE);
        EXPECT(verify_made(KEY_B, &(struct claims){.jti = jti[1]}) == JWT_STAGE_SIGNATURE);
        EXPECT(stage_logged("has no key that can be used") == i + 1);
    }
    write_set(1, "");
    actor_sleep(actor_now() + 60 * NS_PER_S);
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "again"}) == JWT_STAGE_OK);
    EXPECT(stage_logged(too_old) == 0);
}

/* What is no set says nothing of any key: those of before are kept, and the log says when that is too long. */
RINGED(test_CTL_115_the_log_says_when_a_set_is_kept_for_too_long)
{
    for (int again = 0; again < 2; again++) {
        char jti[16];
        write_set(2, "");
        actor_sleep(actor_now() + 60 * NS_PER_S);
        write_file(set_file, "{");
        actor_sleep(actor_now() + 45 * NS_PER_S);
        EXPECT(stage_logged("a key set was refused") == (size_t)again + 1);
        actor_sleep(actor_now() + 300 * NS_PER_S);
        snprintf(jti, sizeof(jti), "t%d", again);
        EXPECT(verify_made(KEY_A, &(struct claims){.jti = jti}) == JWT_STAGE_OK);
        EXPECT(stage_logged(too_old) == (size_t)again + 1 &&
               stage_logged("a key set was refused") == (size_t)again + 1);
    }
    unlink(set_file); /* the same complaint goes on: it is still too old */
    actor_sleep(actor_now() + 300 * NS_PER_S);
    EXPECT(stage_logged(too_old) == 2 && stage_logged("the file of keys can't be read") == 1);
}

RINGED(test_AMB_21_a_complaint_is_said_again_after_a_recovery)
{
    for (size_t times = 1; times <= 3; times++) {
        unlink(set_file);
        actor_sleep(actor_now() + 301 * NS_PER_S);
        EXPECT(stage_logged("the file of keys can't be read") == times);
        write_set(times == 2 ? 1 : 2, ""); /* the same one as before, or another one */
        actor_sleep(actor_now() + 301 * NS_PER_S);
    }
}

RINGED(test_AMB_21_a_set_is_refreshed_and_a_bad_one_changes_nothing)
{
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "a1"}) == JWT_STAGE_OK);
    EXPECT(verify_made(KEY_C, &(struct claims){.jti = "c1"}) == JWT_STAGE_SIGNATURE);
    write_set(3, ",{\"kty\":\"oct\",\"kid\":\"h\",\"k\":\"AAAA\"}"); /* what can't be used is passed over */
    actor_sleep(actor_now() + 301 * NS_PER_S);
    EXPECT(verify_made(KEY_C, &(struct claims){.jti = "c1"}) == JWT_STAGE_OK);
    static const char *const bad[] = {"", "{", "[]", "{}", "{\"keys\":1}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        write_file(set_file, bad[i]);
        actor_sleep(actor_now() + 301 * NS_PER_S);
        EXPECT(verify_made(KEY_C, &(struct claims){.jti = "c1", .iat = 1, .exp = 30}) == JWT_STAGE_REPLAY);
    }
    unlink(set_file);
    actor_sleep(actor_now() + 301 * NS_PER_S);
    char jti[] = "gone";
    EXPECT(verify_made(KEY_C, &(struct claims){.jti = jti}) == JWT_STAGE_OK);
    write_set(1, "");
    EXPECT(verify_made(KEY_C, &(struct claims){.kid = "unknown"}) ==
           JWT_STAGE_SIGNATURE); /* so it looks sooner */
    actor_sleep(actor_now() + 32 * NS_PER_S);
    EXPECT(verify_made(KEY_C, &(struct claims){.jti = "c3"}) == JWT_STAGE_SIGNATURE);
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "a3"}) == JWT_STAGE_OK);
}

static const char *served; /* the set's text, or NULL: 500 */
static bool serve_set(const struct origin_request *q)
{
    static char head[128];
    if (!served)
        return origin_text(q, "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n");
    snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", strlen(served));
    return origin_text(q, head) && origin_text(q, served);
}

static void await_keys(uint32_t count)
{
    struct keyring_figures figures = {.keys = count + 1};
    while (keyring_figures(ring, &figures), figures.keys != count)
        actor_sleep(actor_deadline_ms(1));
}

static void from_a_url(void)
{
    static char url[64], set[4400];
    struct start_result result = {.pid = 0};
    const struct spawn_options fetcher = {.class = &fetch_class, .name = FETCH_NAME};
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/keys", (unsigned)origin_start(serve_set));
    snprintf(set, sizeof(set), "{\"keys\":[%s]}", makers[KEY_C].jwk);
    served = set;
    options_begin();
    options.jwks_file = NULL;
    options.jwks_url = url;
    stage_writer();
    ring_begin(); /* before there is anybody who fetches */
    EXPECT(verify_made(KEY_C, &(struct claims){.jti = "one"}) == JWT_STAGE_SIGNATURE);
    EXPECT(actor_start(&fetcher, &result, DEADLINE_NONE) == OK);
    await_keys(2);
    EXPECT(verify_made(KEY_C, &(struct claims){.jti = "one"}) == JWT_STAGE_OK);
    EXPECT(verify_made(KEY_A, &(struct claims){.jti = "two"}) == JWT_STAGE_SIGNATURE);
    ring_end();
    served = NULL; /* an issuer that fails: what a start hasn't had, it doesn't have, and the rest goes on */
    uint32_t asked = origin_counts().requests;
    ring_begin();
    while (origin_counts().requests == asked)
        actor_sleep(actor_deadline_ms(1));
    EXPECT(verify_made(KEY_C, &(struct claims){.jti = "three"}) == JWT_STAGE_SIGNATURE);
    issue("u1", "owner", 0);
    EXPECT(verify() == JWT_STAGE_OK);
    ring_end();
    stage_kill(result.pid);
    origin_stop();
}

static void test_AMB_21_a_set_comes_from_a_url(void)
{
    prepare();
    TEST_CHECK(stage_run(&(struct stage){.real = true, .schedulers = 2}, from_a_url) == 0);
    clean();
}

/* Anybody can name a kid that nobody has; the origin of a set that can't be had must not feel it. */
RINGED(test_AMB_21_unknown_kids_do_not_hurry_a_set_that_fails)
{
    struct start_result result = {.pid = 0};
    const struct spawn_options fetcher = {.class = &fetch_class, .name = FETCH_NAME};
    struct actor_info before, after;
    ring_end();
    options.jwks_file = NULL;
    options.jwks_url = "nothing://fetches/this";
    EXPECT(actor_start(&fetcher, &result, DEADLINE_NONE) == OK);
    ring_begin();
    actor_sleep(actor_deadline_ms(1000));
    EXPECT(stage_logged("can't be fetched") == 1);
    EXPECT(actor_inspect(result.pid, &before, DEADLINE_NONE) == OK);
    for (int i = 0; i < 25; i++) {
        EXPECT(verify_made(KEY_A, &(struct claims){.kid = "unknown"}) == JWT_STAGE_SIGNATURE);
        actor_sleep(actor_deadline_ms(1000));
    }
    EXPECT(actor_inspect(result.pid, &after, DEADLINE_NONE) == OK);
    EXPECT(before.handled > 0 && after.handled == before.handled);
    actor_sleep(actor_deadline_ms(10000));
    EXPECT(actor_inspect(result.pid, &after, DEADLINE_NONE) == OK);
    EXPECT(after.handled > before.handled);
    stage_kill(result.pid);
}

/* ---- many at once, on threads of their own ---- */

enum { VERIFIERS = 4, ROTATIONS = 12, AFTER = 200 };
static _Atomic bool revoked_now;
static _Atomic uint32_t verified, ended;
static char shared[KEYRING_TOKEN_MAX];
static size_t shared_size;

static void verify_on(void *arg)
{
    struct identity me;
    const char *reason;
    uint32_t after = 0;
    (void)arg;
    while (after < AFTER) {
        struct arena_mark start = actor_arena_mark();
        bool before = atomic_load(&revoked_now);
        enum jwt_stage stage =
            keyring_verify(ring, span_of(shared, shared_size), span_text("request-9"), &me, &reason);
        EXPECT(before ? stage == JWT_STAGE_BLOCKLIST : stage == JWT_STAGE_OK || stage == JWT_STAGE_BLOCKLIST);
        EXPECT(stage != JWT_STAGE_OK || (span_equal(me.subject, span_text("u1")) && me.projects_count == 1));
        actor_arena_reset(start);
        atomic_fetch_add(&verified, 1);
        after += before;
        if (atomic_load(&verified) % 16 == 0)
            actor_yield();
    }
    atomic_fetch_add(&ended, 1);
}

static void many_at_once(void)
{
    char kid[UUID_TEXT_SIZE], jti[32];
    revoked_now = false;
    verified = ended = 0;
    options_begin();
    stage_writer();
    ring_begin();
    issue("u1", "owner", 0);
    memcpy(shared, token, shared_size = token_size);
    for (int i = 0; i < VERIFIERS; i++)
        (void)stage_doll(SPAWN_ON(i % 2), verify_on, NULL);
    for (uint32_t i = 0; i < ROTATIONS; i++) { /* each throws away all that is remembered */
        uint32_t seen = atomic_load(&verified);
        EXPECT(keyring_rotate(&order, false, kid, DEADLINE_NONE) == OK);
        snprintf(jti, sizeof(jti), "another %u", i);
        EXPECT(keyring_revoke(&order, REVOCATION_TOKEN, span_of(NULL, 0), span_text(jti), 0, DEADLINE_NONE) ==
               OK);
        while (atomic_load(&verified) < seen + 50)
            actor_sleep(actor_deadline_ms(1));
    }
    revoke_of(REVOCATION_SUBJECT, "u1");
    atomic_store(&revoked_now, true);
    while (atomic_load(&ended) < VERIFIERS)
        actor_sleep(actor_deadline_ms(1));
    ring_end();
}

static void test_CTL_110_revocation_beats_what_is_remembered_on_every_thread(void)
{
    prepare();
    TEST_CHECK(stage_run(&(struct stage){.real = true, .schedulers = 2}, many_at_once) == 0);
    clean();
}

/* ---- issuing ---- */

RINGED(test_CTL_079_CTL_080_CTL_104_what_is_issued_is_what_is_taken)
{
    struct keyring_claims c = {.subject = span_text("u\"1\\"),
                               .role = span_text("agent"),
                               .session = span_text("s-1"),
                               .projects_count = 2,
                               .projects = {span_text("p1"), span_text("p2")},
                               .lifetime_s = 14400};
    bool unavailable;
    EXPECT(keyring_issue(ring, &c, &issued, &unavailable) == NULL);
    memcpy(token, issued.text, token_size = issued.length);
    EXPECT(verify() == JWT_STAGE_OK && who.role == ROLE_AGENT && span_equal(who.subject, c.subject) &&
           span_equal(who.session, c.session) && span_equal(who.jti, span_text(issued.jti)) &&
           who.expires_s == now_s() + 14400 && who.projects_count == 2);
    c.lifetime_s = 14401;
    EXPECT(keyring_issue(ring, &c, &issued, &unavailable) != NULL && !unavailable);
    c.role = span_text("owner");
    c.lifetime_s = 28800;
    EXPECT(keyring_issue(ring, &c, &issued, &unavailable) == NULL);
    c.lifetime_s = 28801;
    EXPECT(keyring_issue(ring, &c, &issued, &unavailable) != NULL);
    c.lifetime_s = 0;
    c.role = span_text("king");
    EXPECT(keyring_issue(ring, &c, &issued, &unavailable) != NULL);
    c.role = span_text("viewer");
    c.projects_count = 0;
    EXPECT(keyring_issue(ring, &c, &issued, &unavailable) != NULL);
    c.projects_count = 1;
    c.subject = span_of(NULL, 0);
    EXPECT(keyring_issue(ring, &c, &issued, &unavailable) != NULL);
    /* all of it as long as it may be, which is more than is remembered of a token */
    static char text[IDENTITY_SUBJECT_MAX];
    memset(text, 'x', sizeof(text));
    c.subject = c.session = span_of(text, sizeof(text));
    c.projects_count = 10;
    for (uint32_t i = 0; i < c.projects_count; i++)
        c.projects[i] = span_of(text, sizeof(text));
    EXPECT(keyring_issue(ring, &c, &issued, &unavailable) == NULL);
    memcpy(token, issued.text, token_size = issued.length);
    uint64_t before = signatures();
    EXPECT(verify() == JWT_STAGE_OK && verify() == JWT_STAGE_OK && who.projects_count == 10);
    EXPECT(signatures() == before + 2);
    c.projects_count = IDENTITY_PROJECTS_MAX;
    for (uint32_t i = 0; i < c.projects_count; i++)
        c.projects[i] = span_of(text, sizeof(text));
    EXPECT(keyring_issue(ring, &c, &issued, &unavailable) != NULL && !unavailable);
}

/* ---- what a start refuses ---- */

static void check_refused(const struct keyring_options *o, const char *part)
{
    char text[256] = "";
    struct keyring *k = keyring_create(o, text, sizeof(text));
    TEST_CHECK_(k == NULL, "%s", part);
    TEST_CHECK_(strstr(text, part) != NULL, "'%s' has no '%s'", text, part);
    keyring_destroy(k);
}

static void test_CTL_085_CTL_111_CTL_112_what_a_start_refuses(void)
{
    prepare();
    struct keyring_options o = {
        .issuer = "coppice", .audience = "coppice", .environment = "dev", .master_key_file = master_file};
    char text[256] = "";
    struct keyring *k = keyring_create(&o, text, sizeof(text));
    TEST_CHECK_(k != NULL, "%s", text);
    keyring_destroy(k);
    o.overlap_ns = 8 * HOUR_NS - 1;
    check_refused(&o, "overlap");
    o.overlap_ns = 8 * HOUR_NS;
    o.cadence_ns = HOUR_NS - 1;
    check_refused(&o, "rotation_cadence");
    o.cadence_ns = HOUR_NS;
    o.history_ns = 89 * DAY_NS;
    check_refused(&o, "90 days");
    o.history_ns = 0;
    o.jwks_file = set_file;
    check_refused(&o, "issuer");
    o.jwks_issuer = "coppice";
    check_refused(&o, "issuer");
    o.jwks_issuer = OTHER;
    chmod(master_file, 0640);
    check_refused(&o, "0600");
    chmod(master_file, 0600);
    TEST_CHECK(truncate(master_file, 31) == 0);
    check_refused(&o, "31 bytes");
    TEST_CHECK(truncate(master_file, 33) == 0);
    check_refused(&o, "longer");
    unlink(master_file);
    TEST_CHECK(symlink("/dev/zero", master_file) == 0);
    check_refused(&o, "can't be opened");
    unlink(master_file);
    o.master_key_file = "/nowhere/at/all";
    check_refused(&o, "can't be written");
    clean();
}

/* ---- the vault ---- */

static void test_CTL_112_the_vault_opens_what_it_sealed_under_its_name(void)
{
    struct vault vault, other;
    uint8_t nonce[VAULT_NONCE_SIZE] = {1, 2, 3}, secret[32], sealed[sizeof(secret) + VAULT_OVERHEAD],
            plain[32];
    char text[256] = "";
    bool made = false;
    struct stat stat_;
    prepare();
    TEST_ASSERT(vault_open(master_file, env_real(), &vault, &made, text, sizeof(text)) == OK && made);
    TEST_CHECK(stat(master_file, &stat_) == 0 && (stat_.st_mode & 0777) == 0600 && stat_.st_size == 32);
    TEST_ASSERT(vault_open(master_file, env_real(), &other, &made, text, sizeof(text)) == OK && !made);
    TEST_CHECK(memcmp(&vault, &other, sizeof(vault)) == 0);
    memset(secret, 0x5a, sizeof(secret));
    vault_seal(&vault, nonce, span_text("key 1"), span_of(secret, sizeof(secret)), sealed);
    TEST_CHECK(memmem(sealed, sizeof(sealed), secret, 4) == NULL);
    struct span all = span_of(sealed, sizeof(sealed));
    TEST_CHECK(vault_unseal(&other, span_text("key 1"), all, plain, sizeof(plain)) &&
               memcmp(plain, secret, sizeof(secret)) == 0);
    TEST_CHECK(!vault_unseal(&other, span_text("key 2"), all, plain, sizeof(plain)));
    TEST_CHECK(memcmp(plain, secret, sizeof(secret)) != 0);
    TEST_CHECK(!vault_unseal(&other, span_text("key 1"), all, plain, 31));
    TEST_CHECK(!vault_unseal(&other, span_text("key 1"), span_of(sealed, sizeof(sealed) - 1), plain, 32));
    TEST_CHECK(!vault_unseal(&other, span_text("key 1"), span_of(sealed, 0), plain, 32));
    for (size_t i = 0; i < sizeof(sealed); i++) {
        sealed[i] ^= 1;
        TEST_CHECK(!vault_unseal(&vault, span_text("key 1"), all, plain, sizeof(plain)));
        sealed[i] ^= 1;
    }
    other.key[31] ^= 1;
    TEST_CHECK(!vault_unseal(&other, span_text("key 1"), all, plain, sizeof(plain)));
    vault_close(&vault);
    TEST_CHECK(vault.key[0] == 0 && vault.key[31] == 0);
    clean();
}

TEST_LIST
= {
    {"keyring: CTL-090 a token of a key set", test_CTL_090_a_token_of_a_key_set},
    {"keyring: CTL-089 what is remembered needs no signature",
     test_CTL_089_what_is_remembered_needs_no_signature_and_says_the_same},
    {"keyring: CTL-089 a revoked token is refused before any cryptography",
     test_CTL_089_a_revoked_token_is_refused_before_any_cryptography},
    {"keyring: CTL-099 what can be revoked has a greatest length",
     test_CTL_099_what_can_be_revoked_has_a_greatest_length},
    {"keyring: CTL-090..CTL-093 the first step that fails decides",
     test_CTL_093_the_first_step_that_fails_decides},
    {"keyring: CTL-087 CTL-088 header algorithms that are not the key's",
     test_CTL_087_CTL_088_header_algorithms_that_are_not_the_keys},
    {"keyring: CTL-078 CTL-113 kids that nobody has", test_CTL_078_CTL_113_kids_that_nobody_has},
    {"keyring: CTL-073 CTL-104 a key speaks for its issuer alone",
     test_CTL_073_CTL_104_a_key_speaks_for_its_issuer_alone},
    {"keyring: CTL-092 the same jti in another token is a replay",
     test_CTL_092_the_same_jti_in_another_token_is_a_replay},
    {"keyring: AMB-16 strict mode makes tokens one-shot", test_AMB_16_strict_mode_makes_tokens_one_shot},
    {"keyring: AMB-16 a look before the body uses no token up",
     test_AMB_16_a_look_before_the_body_uses_no_token_up},
    {"keyring: CTL-094 a jti is kept until its token expires",
     test_CTL_094_a_jti_is_kept_until_its_token_expires},
    {"keyring: CTL-092 without a writer new tokens wait",
     test_CTL_092_without_a_writer_new_tokens_wait_and_known_ones_go_on},
    {"keyring: CTL-095 revocations survive a restart",
     test_CTL_095_revocations_survive_a_restart_and_beat_what_is_remembered},
    {"keyring: CTL-095 a clock that was ahead forgets no revocation",
     test_CTL_095_a_clock_that_was_ahead_forgets_no_revocation},
    {"keyring: CTL-099 CTL-100 CTL-101 principals and sessions, people and agents",
     test_CTL_099_CTL_100_CTL_101_principals_and_sessions_people_and_agents},
    {"keyring: CTL-099 a principal revoked after the clock went back",
     test_CTL_099_a_principal_revoked_after_the_clock_went_back},
    {"keyring: CTL-099 a token of a clock that was ahead never comes to life",
     test_CTL_099_a_token_of_a_clock_that_was_ahead_never_comes_to_life},
    {"keyring: CTL-099 a token of a clock that was ahead ends before the answer",
     test_CTL_099_a_token_of_a_clock_that_was_ahead_ends_before_the_answer},
    {"keyring: CTL-099 a clock that was ahead locks nobody out",
     test_CTL_099_a_clock_that_was_ahead_locks_nobody_out},
    {"keyring: CTL-089 a revocation counts even when the store can't keep it",
     test_CTL_089_a_revocation_counts_even_when_the_store_cant_keep_it},
    {"keyring: CTL-110 a revoked key takes all that it signed with it",
     test_CTL_110_a_revoked_key_takes_all_that_it_signed_with_it},
    {"keyring: AMB-22 a role that there is none of is no claim",
     test_AMB_22_a_role_that_there_is_none_of_is_no_claim},
    {"keyring: CTL-110 a revocation of a key whose end nobody knows counts",
     test_CTL_110_a_revocation_of_a_key_whose_end_nobody_knows_counts},
    {"keyring: CTL-110 a key set with our kid does not shield our key",
     test_CTL_110_a_key_set_with_our_kid_does_not_shield_our_key},
    {"keyring: CTL-109 a clock that was ahead does not end rotation",
     test_CTL_109_a_clock_that_was_ahead_does_not_end_rotation},
    {"keyring: CTL-105 a rotation that is written late is noticed",
     test_CTL_105_a_rotation_that_is_written_late_is_noticed},
    {"keyring: CTL-105 rotation leaves nobody outside", test_CTL_105_rotation_leaves_nobody_outside},
    {"keyring: CTL-105 no key goes before its tokens", test_CTL_105_no_key_goes_before_its_tokens},
    {"keyring: CTL-109 CTL-119 a key older than the cadence is replaced",
     test_CTL_109_CTL_119_a_key_older_than_the_cadence_is_replaced},
    {"keyring: CTL-111 ended keys stay for the forensic window",
     test_CTL_111_ended_keys_stay_for_the_forensic_window},
    {"keyring: CTL-114 no stale key is taken beyond its grace",
     test_CTL_114_no_stale_key_is_taken_beyond_its_grace},
    {"keyring: CTL-102 keys are of one environment", test_CTL_102_keys_are_of_one_environment},
    {"keyring: CTL-116 CTL-117 CTL-118 outside dev an operator makes the first key",
     test_CTL_116_CTL_117_CTL_118_outside_dev_an_operator_makes_the_first_key},
    {"keyring: CTL-112 without its master key nothing can be signed",
     test_CTL_112_without_its_master_key_nothing_can_be_signed},
    {"keyring: CTL-105 a killed keyring comes back with what it had",
     test_CTL_105_a_killed_keyring_comes_back_with_what_it_had},
    {"keyring: CTL-090 several keys with one kid are nobody's",
     test_CTL_090_several_keys_with_one_kid_are_nobodys},
    {"keyring: CTL-115 a withdrawn key goes within the revocation SLA",
     test_CTL_115_a_withdrawn_key_goes_within_the_revocation_sla},
    {"keyring: CTL-081 AMB-18 whoever is registered as an agent is one, by its template",
     test_CTL_081_AMB_18_whoever_is_registered_as_an_agent_is_one_by_its_template},
    {"keyring: CTL-113 CTL-115 a set without a key withdraws them all",
     test_CTL_113_CTL_115_a_set_without_a_key_withdraws_them_all},
    {"keyring: CTL-115 the log says when a set is kept for too long",
     test_CTL_115_the_log_says_when_a_set_is_kept_for_too_long},
    {"keyring: AMB-21 a complaint is said again after a recovery",
     test_AMB_21_a_complaint_is_said_again_after_a_recovery},
    {"keyring: AMB-21 a set is refreshed, and a bad one changes nothing",
     test_AMB_21_a_set_is_refreshed_and_a_bad_one_changes_nothing},
    {"keyring: AMB-21 a set comes from a URL", test_AMB_21_a_set_comes_from_a_url},
    {"keyring: AMB-21 unknown kids do not hurry a set that fails",
     test_AMB_21_unknown_kids_do_not_hurry_a_set_that_fails},
    {"keyring: CTL-110 revocation beats what is remembered, on every thread",
     test_CTL_110_revocation_beats_what_is_remembered_on_every_thread},
    {"keyring: CTL-079 CTL-080 CTL-104 what is issued is what is taken",
     test_CTL_079_CTL_080_CTL_104_what_is_issued_is_what_is_taken},
    {"keyring: CTL-085 CTL-111 CTL-112 what a start refuses",
     test_CTL_085_CTL_111_CTL_112_what_a_start_refuses},
    {"keyring: CTL-112 the vault opens what it sealed under its name",
     test_CTL_112_the_vault_opens_what_it_sealed_under_its_name},
    {NULL, NULL},
};
