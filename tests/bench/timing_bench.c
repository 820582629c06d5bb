/* Timing: whether the time of a refusal tells how much of a secret was right.
 *
 * Two classes of wrong secrets, MEASUREMENTS of each, one at a time in random order: those that are wrong in front, and those
 * that are right up to the end. A subject that compares byte by byte takes longer for the second. What is measured is one call:
 *
 *     secret_equal       64 bytes; the first one wrong, or the last one
 *     operator_token     operator_token_check of a token whose first four characters are others, or whose last four are
 *     api_key            api_key_verify of a sound key (its checksum is right) with four other digits in front, or behind
 *     control            memcmp as one writes it oneself; it must be found out
 *
 * Four characters, so that hardly a call is like another: the hash of a guess decides where it is looked for, and a few fixed
 * guesses of each class would differ for that reason alone. A guess is copied to the one place where all are shown.
 *
 * The slowest CROP of all measurements are left out: the machine's interruptions. Then Welch's t between the classes: beyond
 * T_MAX either way, the classes differ. It must do so in RUNS runs, with the same sign, to be a leak: a real one stays.
 * Prints each figure as a line `name value unit`; fails when a subject leaks, or the control doesn't.
 */
#include "acutest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/api_key_auth.h"
#include "http/front.h"
#include "http/operator_token.h"
#include "store/sha256.h"
#include "store/store.h"
#include "tests/support/stage.h"

#define T_MAX 4.5
enum {
    RUNS = 3,
    CROP_PERCENT = 10,
    COMPARED = 64,
    CHANGED = 4,
    SHOWN_MAX = 128,
    LONGEST_NS = 1 << 16, /* longer ones are counted as this */
    MEASUREMENTS = 1000000,
    ARENA_EVERY = 1024 /* calls; what they took goes then */
};

static uint32_t *times[2]; /* ns, of each class */
static char shown[SHOWN_MAX], right[SHOWN_MAX];
static struct front front;
static char token_hash[OPERATOR_TOKEN_HASH];
static uint64_t chance = 88172645463325252u;

static uint64_t random_word(void)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return chance;
}

/* ---- subjects ---- */

struct subject {
    const char *name;
    bool leaks; /* the control */
    void (*guess)(bool behind);
    bool (*taken)(void);
};

static void guess_bytes(bool behind)
{
    memcpy(shown, right, COMPARED);
    shown[behind ? COMPARED - 1 : 0] ^= (char)(1 + random_word() % 255);
}

static bool bytes_equal(void)
{
    return secret_equal(shown, right, COMPARED);
}

static bool bytes_equal_early(void)
{
    const volatile char *a = shown, *b = right;
    for (int i = 0; i < COMPARED; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

/* So many characters from `at` on become others. */
static void change(char *at, const char *digits, uint32_t digits_count)
{
    uint64_t word = random_word();
    for (int i = 0; i < CHANGED; i++, word >>= 16)
        at[i] = digits[(word & 0xffff) % digits_count];
}

static const char token_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
                  key_digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
enum { SCHEME = 7, TOKEN_PREFIX = 7, KEY_PREFIX = 4, KEY_DIGITS = 43, KEY_CHECK = 6 };

static void guess_token(bool behind)
{
    memcpy(shown, right, SCHEME + OPERATOR_TOKEN_LENGTH);
    change(shown + SCHEME + (behind ? OPERATOR_TOKEN_LENGTH - CHANGED : TOKEN_PREFIX), token_digits, 64);
}

static bool token_taken(void)
{
    return operator_token_check(&front, span_of(shown, SCHEME + OPERATOR_TOKEN_LENGTH));
}

static uint32_t crc_table[256];

static void crc_prepare(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
        crc_table[i] = crc;
    }
}

/* A key of sound form: as whoever guesses would make it. The first digit stays, so that the number is one of 256 bits. */
static void guess_key(bool behind)
{
    uint32_t crc = 0xffffffff;
    memcpy(shown, right, API_KEY_TEXT_LENGTH);
    change(shown + KEY_PREFIX + (behind ? KEY_DIGITS - CHANGED : 1), key_digits, 62);
    for (int i = 0; i < KEY_PREFIX + KEY_DIGITS; i++)
        crc = crc >> 8 ^ crc_table[(crc ^ (uint8_t)shown[i]) & 255];
    crc = ~crc;
    for (int i = KEY_CHECK; i-- > 0; crc /= 62)
        shown[KEY_PREFIX + KEY_DIGITS + i] = key_digits[crc % 62];
}

static struct identity who;

static bool key_taken(void)
{
    return api_key_verify(span_of(shown, API_KEY_TEXT_LENGTH), &who) != ERROR_RFA_AUTH_INVALID_CREDENTIALS;
}

/* ---- measuring ---- */

static void measure_one(const struct subject *s, bool behind, uint32_t *ret_ns)
{
    s->guess(behind);
    uint64_t began = actor_clock();
    bool taken = s->taken();
    uint64_t took = actor_clock() - began;
    if (taken && memcmp(shown, right, COMPARED) != 0) /* one guess of 2^24 is the secret itself */
        stage_failed("a wrong secret was taken", __FILE__, __LINE__);
    *ret_ns = took < LONGEST_NS ? (uint32_t)took : LONGEST_NS - 1;
}

static void measure(const struct subject *s)
{
    struct arena_mark mark = actor_arena_mark();
    for (uint32_t i = 0; i < MEASUREMENTS; i++) {
        bool first = random_word() >> 40 & 1;
        measure_one(s, first, &times[first][i]);
        measure_one(s, !first, &times[!first][i]);
        if (i % ARENA_EVERY == 0)
            actor_arena_reset(mark);
    }
    actor_arena_reset(mark);
}

/* What the fastest 100 - CROP_PERCENT of both classes together stay below. */
static uint32_t longest_kept(void)
{
    static uint32_t counts[LONGEST_NS];
    uint64_t kept = 0, wanted = (uint64_t)MEASUREMENTS * 2 * (100 - CROP_PERCENT) / 100;
    uint32_t at = 0;
    memset(counts, 0, sizeof(counts));
    for (int class = 0; class < 2; class ++)
        for (uint32_t i = 0; i < MEASUREMENTS; i++)
            counts[times[class][i]]++;
    while (at < LONGEST_NS - 1 && (kept += counts[at]) < wanted)
        at++;
    return at;
}

struct moments {
    double count, mean, variance;
};

static struct moments moments_of(const uint32_t *ns, uint32_t longest)
{
    struct moments m = {0};
    double squares = 0;
    for (uint32_t i = 0; i < MEASUREMENTS; i++) {
        if (ns[i] > longest)
            continue;
        double from_mean = ns[i] - m.mean;
        m.count++;
        m.mean += from_mean / m.count;
        squares += from_mean * (ns[i] - m.mean);
    }
    m.variance = squares / (m.count - 1);
    return m;
}

/* Newton's, which is all that is needed of the mathematical library. */
static double root_of(double square)
{
    double root = square > 1 ? square : 1;
    for (int i = 0; i < 100; i++)
        root = (root + square / root) / 2;
    return root;
}

static double magnitude(double t)
{
    return t < 0 ? -t : t;
}

static double welch(double *ret_difference)
{
    uint32_t longest = longest_kept();
    struct moments a = moments_of(times[0], longest), b = moments_of(times[1], longest);
    double error = root_of(a.variance / a.count + b.variance / b.count);
    *ret_difference = b.mean - a.mean;
    return error > 0 ? *ret_difference / error : 0;
}

static void judge(const struct subject *s)
{
    double t = 0, difference = 0;
    int sign = 0, run = 0;
    bool differs = true;
    for (; run < RUNS && differs; run++) {
        measure(s);
        t = welch(&difference);
        int now = t > 0 ? 1 : -1;
        differs = magnitude(t) >= T_MAX && (run == 0 || now == sign);
        sign = now;
    }
    printf("timing.%s_t %.2f 1\n", s->name, magnitude(t));
    printf("timing.%s_difference %.3f ns\n", s->name, difference);
    fflush(stdout);
    EXPECT(differs == s->leaks);
}

/* ---- the secrets ---- */

static void make_token(void)
{
    char token[OPERATOR_TOKEN_TEXT], text[256], path[320];
    snprintf(path, sizeof(path), "%s/" OPERATOR_TOKEN_FILE, stage_dir);
    EXPECT(operator_token_open(path, env_real(), token, token_hash, text, sizeof(text)) == OK);
    remove(path);
    front.operator_token_hash = token_hash;
    snprintf(right, sizeof(right), "Bearer %s", token);
    memcpy(shown, right, sizeof(shown));
    EXPECT(token_taken());
}

static void make_key(void)
{
    uint8_t secret[API_KEY_SECRET_SIZE];
    struct client_create create = {.from = span_text("timing")};
    actor_random_bytes(&create.id, sizeof(create.id));
    EXPECT(store_submit(&client_create_class, &create, NULL, 0, NULL, DEADLINE_NONE) == OK);
    actor_random_bytes(secret, sizeof(secret));
    secret[0] = 1; /* any digits may follow the first one */
    api_key_write(secret, right);
    struct api_key_issue issue = {.client = create.id,
                                  .hash = api_key_hash(secret),
                                  .verb = API_KEY_CREATE,
                                  .window_us = 600000000,
                                  .ttl_us = 3600000000,
                                  .kept_us = 86400000000,
                                  .by = span_text("timing")};
    actor_random_bytes(&issue.id, sizeof(issue.id));
    EXPECT(store_submit(&api_key_issue_class, &issue, NULL, 0, NULL, DEADLINE_NONE) == OK);
    memcpy(shown, right, sizeof(shown));
    EXPECT(key_taken());
}

/* ---- each in a process of its own ---- */

static const struct subject control = {"control", true, guess_bytes, bytes_equal_early},
                            bytes = {"secret_equal", false, guess_bytes, bytes_equal},
                            token = {"operator_token", false, guess_token, token_taken},
                            key = {"api_key", false, guess_key, key_taken};

static void control_body(void)
{
    actor_random_bytes(right, COMPARED);
    judge(&control);
}

static void bytes_body(void)
{
    actor_random_bytes(right, COMPARED);
    judge(&bytes);
}

static void token_body(void)
{
    make_token();
    judge(&token);
}

static void key_body(void)
{
    EXPECT(stage_writer());
    EXPECT(api_keys_start());
    make_key();
    judge(&key);
    api_keys_stop();
}

static void run(void (*body)(void))
{
    static const struct stage stage = {.real = true, .schedulers = 1, .schema = &store_schema};
    crc_prepare();
    for (int class = 0; class < 2; class ++)
        TEST_ASSERT((times[class] = malloc(MEASUREMENTS * sizeof(uint32_t))) != NULL);
    printf("\n");
    TEST_CHECK(stage_run(&stage, body) == 0);
    for (int class = 0; class < 2; class ++)
        free(times[class]);
}

static void test_control(void)
{
    run(control_body);
}

static void test_bytes(void)
{
    run(bytes_body);
}

static void test_token(void)
{
    run(token_body);
}

static void test_key(void)
{
    run(key_body);
}

TEST_LIST
= {
    {"a comparison that ends at the first difference is found out", test_control},
    {"secret_equal takes as long for either", test_bytes},
    {"the operator's token", test_token},
    {"an API key", test_key},
    {NULL, NULL},
};
