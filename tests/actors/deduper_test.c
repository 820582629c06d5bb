#include "acutest.h"

#include <stdio.h>
#include <string.h>

#include "actors/deduper.h"
#include "tests/support/inside.h"

static actor_pid start_deduper(uint32_t window, uint64_t expiry_ns)
{
    struct start_result r;
    struct deduper_args args = {.window = window, .expiry_ns = expiry_ns};
    struct spawn_options o = {
        .class = &deduper_class, .name = DEDUPER_NAME, .args = &args, .args_size = sizeof(args)};
    TEST_ASSERT(actor_start(&o, &r, DEADLINE_NONE) == OK);
    return r.pid;
}

static bool seen(const char *instance, const char *message)
{
    bool answer = false;
    TEST_CHECK(deduper_seen(instance, message, &answer, DEADLINE_NONE) == OK);
    return answer;
}

static struct deduper_figures figures(void)
{
    struct deduper_figures f = {0};
    TEST_CHECK(deduper_inspect(&f, DEADLINE_NONE) == OK);
    return f;
}

INSIDE(test_tells_new_from_seen)
{
    start_deduper(0, 0);
    TEST_CHECK(!seen("i1", "m1"));
    TEST_CHECK(seen("i1", "m1"));
    TEST_CHECK(!seen("i2", "m1"));
    TEST_CHECK(!seen("i1", "m2"));
    TEST_CHECK(!seen("i", "1m1")); /* the same bytes, cut elsewhere */
    TEST_CHECK(!seen("i1m", "1"));
    TEST_CHECK(seen("i1", "m1"));
    TEST_CHECK(figures().keys == 5 && figures().asked == 7 && figures().seen == 2 &&
               figures().window == 65536);
}

INSIDE(test_forgets_exactly_at_expiry)
{
    start_deduper(8, 10 * NS_PER_S);
    uint64_t began = actor_now();
    TEST_CHECK(!seen("i", "m"));
    actor_sleep(began + 10 * NS_PER_S - 1);
    TEST_CHECK(seen("i", "m")); /* asking again doesn't make it live longer */
    actor_sleep(began + 10 * NS_PER_S);
    TEST_CHECK(!seen("i", "m"));
    TEST_CHECK(figures().expired == 1 && figures().keys == 1);
}

INSIDE(test_pushes_the_oldest_out)
{
    char id[16];
    start_deduper(4, 0);
    for (int i = 0; i < 5; i++) {
        snprintf(id, sizeof(id), "%d", i);
        TEST_CHECK(!seen("i", id));
    }
    TEST_CHECK(figures().keys == 4 && figures().pushed_out == 1);
    TEST_CHECK(seen("i", "1") && seen("i", "4"));
    TEST_CHECK(!seen("i", "0"));
    TEST_CHECK(!seen("i", "1")); /* which 0 has just pushed out */
}

/* Three windows' worth of keys: the ring goes round, chains are filled and emptied, and the answers stay
 * right. */
INSIDE(test_goes_round_for_ever)
{
    char id[16];
    start_deduper(64, 0);
    for (int i = 0; i < 192; i++) {
        snprintf(id, sizeof(id), "%d", i);
        TEST_CHECK_(!seen("i", id), "%s is new", id);
        TEST_CHECK_(seen("i", id), "%s is seen", id);
        if (i >= 63) {
            snprintf(id, sizeof(id), "%d", i - 63);
            TEST_CHECK_(seen("i", id), "%s is still known", id);
        }
    }
    TEST_CHECK(figures().pushed_out == 128 && figures().keys == 64);
}

/* More expire at the same instant than one question clears: they count as unknown before their turn has come. */
INSIDE(test_a_quiet_night_costs_nobody)
{
    char id[16];
    start_deduper(64, NS_PER_S);
    uint64_t began = actor_now();
    for (int i = 0; i < 64; i++) {
        snprintf(id, sizeof(id), "%d", i);
        TEST_CHECK(!seen("i", id));
    }
    actor_sleep(began + NS_PER_S);
    TEST_CHECK(!seen("i", "63"));
    TEST_CHECK(figures().keys > 1);
    TEST_CHECK(seen("i", "63"));
    for (int i = 0; i < 8; i++)
        TEST_CHECK(!seen("j", (const char[]){(char)('a' + i), 0}));
    TEST_CHECK(figures().keys == 9 && figures().expired == 64 && figures().pushed_out == 0);
}

INSIDE(test_a_kill_forgets_the_window)
{
    bool answer;
    actor_pid d = start_deduper(0, 0);
    TEST_CHECK(!seen("i", "m"));
    actor_kill(d);
    inside_settle();
    TEST_CHECK(deduper_seen("i", "m", &answer, DEADLINE_NONE) == ERR_NOPROC);
    start_deduper(0, 0);
    TEST_CHECK(!seen("i", "m"));
}

INSIDE(test_refuses_what_cannot_be_meant)
{
    char longest[DEDUPER_ID_MAX + 2];
    bool answer;
    struct start_result r;
    struct deduper_args args = {.window = DEDUPER_WINDOW_MAX + 1};
    struct spawn_options o = {.class = &deduper_class, .args = &args, .args_size = sizeof(args)};
    TEST_CHECK(actor_start(&o, &r, DEADLINE_NONE) == ERR_INIT);
    reason_drop(&r.why);
    o.args_size = 3;
    TEST_CHECK(actor_start(&o, &r, DEADLINE_NONE) == ERR_INIT);
    reason_drop(&r.why);
    actor_pid d = start_deduper(0, 0);
    memset(longest, 'x', sizeof(longest));
    longest[DEDUPER_ID_MAX + 1] = 0;
    TEST_CHECK(deduper_seen(longest, "m", &answer, DEADLINE_NONE) == ERR_INVALID);
    TEST_CHECK(deduper_seen("i", longest, &answer, DEADLINE_NONE) == ERR_INVALID);
    TEST_CHECK(deduper_seen("", "m", &answer, DEADLINE_NONE) == ERR_INVALID);
    TEST_CHECK(deduper_seen("i", "", &answer, DEADLINE_NONE) == ERR_INVALID);
    longest[DEDUPER_ID_MAX] = 0;
    TEST_CHECK(!seen(longest, longest) && seen(longest, longest));
    /* lengths that promise more or less than there is */
    static const uint16_t bad[][3] = {{1, 2, 'a'}, {0, 2, 'a'}, {300, 1, 'a'}, {1, 0, 'a'}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        TEST_CHECK(actor_call(d, message_of(1, bad[i], sizeof(bad[i])), NULL, DEADLINE_NONE) ==
                   ERR_UNANSWERED);
    TEST_CHECK(actor_call(d, message_of(1, "x", 1), NULL, DEADLINE_NONE) == ERR_UNANSWERED);
    TEST_CHECK(figures().asked == 2);
}

TEST_LIST
= {
    {"TOP-021 the deduper tells new from seen", test_tells_new_from_seen},
    {"a key is forgotten exactly at its expiry", test_forgets_exactly_at_expiry},
    {"a full window pushes the oldest out", test_pushes_the_oldest_out},
    {"the window goes round for ever", test_goes_round_for_ever},
    {"a quiet night costs nobody", test_a_quiet_night_costs_nobody},
    {"a kill forgets the window", test_a_kill_forgets_the_window},
    {"the deduper refuses what cannot be meant", test_refuses_what_cannot_be_meant},
    {NULL, NULL},
};
