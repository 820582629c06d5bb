/* Mortals: what ended a server, and when. The servers here are lines of shell. */
#include "acutest.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chaos/mortal.h"

#define STARTED "echo '{\"msg\":\"started\",\"client\":\"127.0.0.1:4711\"}' >&2; "

static struct mortal m;

static void start(const char *script)
{
    char *argv[] = {"/bin/sh", "-c", (char *)(uintptr_t)script, NULL};
    mortal_start(&m, argv);
}

static void test_it_says_when_it_has_started(void)
{
    start("echo before >&2; " STARTED "exec sleep 100");
    TEST_CHECK(mortal_await(&m));
    TEST_CHECK(m.port == 4711);
    mortal_doom(&m, 1);
    TEST_CHECK(mortal_end(&m) == MORTAL_KILLED);
    TEST_CHECK(mortal_struck());
    TEST_CHECK(m.pid == 0);
}

static void test_the_instant_comes_while_it_starts(void)
{
    start("exec sleep 100");
    mortal_doom(&m, 20000);
    TEST_CHECK(!mortal_await(&m));
    TEST_CHECK(mortal_end(&m) == MORTAL_KILLED);
}

static void test_the_last_order_counts(void)
{
    start(STARTED "exec sleep 100");
    TEST_CHECK(mortal_await(&m));
    mortal_doom(&m, UINT64_C(100000000));
    mortal_doom(&m, 1);
    TEST_CHECK(mortal_end(&m) == MORTAL_KILLED);
}

static void test_it_may_leave_before(void)
{
    start("exit 0");
    mortal_doom(&m, UINT64_C(10000000));
    TEST_CHECK(mortal_end(&m) == MORTAL_LEFT);
    TEST_CHECK(!mortal_struck());
}

static void test_an_end_of_its_own_is_told(void)
{
    start("echo last words >&2; exit 3");
    TEST_CHECK(!mortal_await(&m));
    TEST_CHECK(mortal_end(&m) == MORTAL_BROKEN);
    TEST_CHECK(WIFEXITED(m.status) && WEXITSTATUS(m.status) == 3);
    TEST_CHECK(strstr(m.words, "last words") != NULL);
    start("kill -SEGV $$");
    TEST_CHECK(mortal_end(&m) == MORTAL_BROKEN);
}

static void test_a_kill_by_somebody_else_is_not_ours(void)
{
    start(STARTED "exec sleep 100");
    TEST_CHECK(mortal_await(&m));
    mortal_signal(&m, SIGKILL);
    TEST_CHECK(mortal_end(&m) == MORTAL_BROKEN);
}

static void test_of_many_words_the_last_are_kept(void)
{
    start("i=0; while [ $i -lt 2000 ]; do echo line $i >&2; i=$((i + 1)); done; " STARTED "exec sleep 100");
    TEST_CHECK(mortal_await(&m));
    TEST_CHECK(strstr(m.words, "line 1999\n") != NULL);
    TEST_CHECK(strstr(m.words, "line 0\n") == NULL);
    mortal_doom(&m, 1);
    TEST_CHECK(mortal_end(&m) == MORTAL_KILLED);
}

TEST_LIST
= {
    {"it says when it has started", test_it_says_when_it_has_started},
    {"the instant comes while it starts", test_the_instant_comes_while_it_starts},
    {"the last order counts", test_the_last_order_counts},
    {"it may leave before", test_it_may_leave_before},
    {"an end of its own is told", test_an_end_of_its_own_is_told},
    {"a kill by somebody else is not ours", test_a_kill_by_somebody_else_is_not_ours},
    {"of many words the last are kept", test_of_many_words_the_last_are_kept},
    {NULL, NULL},
};
