/* The blocklist against a model: places that many share, over the end of the table, and what is forgotten in between. */
#include "acutest.h"

#include <inttypes.h>

#include "http/blocklist.h"

#define PLACES (2 * (uint64_t)BLOCKLIST_MAX)

static const uint8_t secret[32] = {7, 1, 9};

/* ---- ids ---- */

static bool same(struct blocklist_id a, struct blocklist_id b)
{
    return a.low == b.low && a.high == b.high;
}

static struct blocklist_id id_of(const struct blocklist *b, enum revocation_kind kind, const char *issuer,
                                 const char *value)
{
    return blocklist_id(b, kind, span_text(issuer), span_text(value));
}

/* A session that is called as a subject, or a token as a key, is another thing: who revokes the one stops not the other. */
static void test_each_kind_and_issuer_has_its_own_ids(void)
{
    static const struct {
        enum revocation_kind kind;
        const char *issuer, *value;
    } rows[] = {{REVOCATION_TOKEN, "", "x"},  {REVOCATION_SESSION, "", "x"}, {REVOCATION_SUBJECT, "", "x"},
                {REVOCATION_KEY, "", "x"},    {REVOCATION_TOKEN, "a", "x"},  {REVOCATION_KEY, "a", "x"},
                {REVOCATION_TOKEN, "ax", ""}, {REVOCATION_TOKEN, "", "ax"},  {REVOCATION_TOKEN, "ab", "c"},
                {REVOCATION_TOKEN, "a", "bc"}};
    struct blocklist *b = blocklist_create(secret);
    TEST_ASSERT(b != NULL);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct blocklist_id id = id_of(b, rows[i].kind, rows[i].issuer, rows[i].value);
        TEST_CHECK(blocklist_put(b, id, 100, UINT64_MAX) == OK && blocklist_count(b) == i + 1);
        TEST_CHECK(blocklist_stops(b, id, 100) && !blocklist_stops(b, id, 101));
        for (size_t k = 0; k < sizeof(rows) / sizeof(*rows); k++) {
            struct blocklist_id other = id_of(b, rows[k].kind, rows[k].issuer, rows[k].value);
            TEST_CHECK_(same(id, other) == (i == k), "%zu and %zu", i, k);
            TEST_CHECK_(blocklist_stops(b, other, 100) == (k <= i), "%zu after %zu", k, i);
        }
    }
    blocklist_destroy(b);
}

/* As often as it takes to have seen each place. */
static uint32_t forgotten(struct blocklist *b, uint64_t now_s)
{
    uint32_t count = 0;
    for (uint64_t i = 0; i < 2 * PLACES / 4096; i++)
        count += blocklist_forget(b, now_s);
    return count;
}

static void test_the_same_one_again_has_the_later_of_both(void)
{
    struct blocklist *b = blocklist_create(secret);
    TEST_ASSERT(b != NULL);
    struct blocklist_id id = id_of(b, REVOCATION_SUBJECT, "", "u");
    TEST_CHECK(!blocklist_stops(b, id, 0));
    TEST_CHECK(blocklist_put(b, id, 50, 1000) == OK && blocklist_put(b, id, 40, 2000) == OK);
    TEST_CHECK(blocklist_count(b) == 1 && blocklist_stops(b, id, 50) && !blocklist_stops(b, id, 51));
    TEST_CHECK(forgotten(b, 1999) == 0 && blocklist_stops(b, id, 50));
    TEST_CHECK(forgotten(b, 2000) == 1 && !blocklist_stops(b, id, 50) && blocklist_count(b) == 0);
    blocklist_destroy(b);
}

/* ---- places that many share ---- */

enum { THINGS = 24 };
static struct thing {
    struct blocklist_id id;
    uint64_t cut_off_s, expires_s; /* 0: not there */
} things[THINGS];

static uint64_t draw(uint64_t *state, uint64_t below)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (*state >> 33) % below;
}

static void check_all(struct blocklist *b, uint64_t step)
{
    uint32_t there = 0;
    for (size_t i = 0; i < THINGS; i++) {
        const struct thing *t = &things[i];
        there += t->expires_s != 0;
        TEST_CHECK_(blocklist_stops(b, t->id, t->cut_off_s) == (t->expires_s != 0), "%zu at %" PRIu64, i,
                    step);
        TEST_CHECK(!blocklist_stops(b, t->id, t->cut_off_s + 1));
    }
    TEST_CHECK(blocklist_count(b) == there);
}

static void forget_all(struct blocklist *b, uint64_t now_s)
{
    (void)forgotten(b, now_s);
    for (size_t i = 0; i < THINGS; i++)
        if (things[i].expires_s <= now_s)
            things[i].cut_off_s = things[i].expires_s = 0;
}

/* All at home in the last two places or the first two: who is forgotten leaves nobody behind who can't be found, and takes nobody
 * along. */
static void test_who_shares_a_place_is_found_when_others_are_forgotten(void)
{
    static const uint64_t homes[] = {PLACES - 2, PLACES - 1, 0, 1};
    uint64_t state = 5, now_s = 1000;
    struct blocklist *b = blocklist_create(secret);
    TEST_ASSERT(b != NULL);
    for (size_t i = 0; i < THINGS; i++)
        things[i].id = (struct blocklist_id){.low = homes[i % 4] + PLACES * i, .high = 2 * i + 1};
    for (uint64_t step = 0; step < 300; step++) {
        for (uint64_t puts = draw(&state, 6); puts > 0; puts--) {
            struct thing *t = &things[draw(&state, THINGS)];
            uint64_t cut_off_s = 1 + draw(&state, 1000), expires_s = now_s + 1 + draw(&state, 40);
            TEST_CHECK(blocklist_put(b, t->id, cut_off_s, expires_s) == OK);
            t->cut_off_s = cut_off_s > t->cut_off_s ? cut_off_s : t->cut_off_s;
            t->expires_s = expires_s > t->expires_s ? expires_s : t->expires_s;
        }
        check_all(b, step);
        now_s += draw(&state, 8);
        forget_all(b, now_s);
        check_all(b, step);
    }
    blocklist_destroy(b);
}

static void test_one_more_than_there_may_be(void)
{
    struct blocklist *b = blocklist_create(secret);
    TEST_ASSERT(b != NULL);
    for (uint64_t i = 0; i < BLOCKLIST_MAX; i++)
        if (blocklist_put(b, (struct blocklist_id){.low = i, .high = 1}, 10, i == 5 ? 20 : UINT64_MAX) != OK)
            TEST_CHECK_(false, "%" PRIu64, i);
    const struct blocklist_id more = {.low = 7, .high = 3}, there = {.low = 7, .high = 1};
    TEST_CHECK(blocklist_count(b) == BLOCKLIST_MAX);
    TEST_CHECK(blocklist_put(b, more, 10, UINT64_MAX) == ERR_LIMIT && !blocklist_stops(b, more, 10));
    TEST_CHECK(blocklist_put(b, there, 11, UINT64_MAX) == OK && blocklist_stops(b, there, 11));
    TEST_CHECK(forgotten(b, 19) == 0 && forgotten(b, 20) == 1);
    TEST_CHECK(blocklist_put(b, more, 10, UINT64_MAX) == OK && blocklist_stops(b, more, 10));
    TEST_CHECK(blocklist_count(b) == BLOCKLIST_MAX && blocklist_stops(b, there, 11));
    blocklist_destroy(b);
}

TEST_LIST
= {
    {"blocklist: each kind and issuer has its own ids", test_each_kind_and_issuer_has_its_own_ids},
    {"blocklist: the same one again has the later of both", test_the_same_one_again_has_the_later_of_both},
    {"blocklist: who shares a place is found when others are forgotten",
     test_who_shares_a_place_is_found_when_others_are_forgotten},
    {"blocklist: one more than there may be", test_one_more_than_there_may_be},
    {NULL, NULL},
};
