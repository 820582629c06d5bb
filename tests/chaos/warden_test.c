/* The supervisor of reference: what it says of traces that are right, and of each that isn't. */
#include "acutest.h"

#include <string.h>

#include "chaos/warden.h"

#define SECOND UINT64_C(1000000000)

static struct warden w;

static void born(uint64_t at, uint64_t pid, uint64_t parent, const char *name)
{
    warden_born(&w, at * SECOND,
                &(struct warden_birth){.pid = pid, .parent = parent, .class = "worker", .name = name});
}

static void died(uint64_t at, uint64_t pid, enum warden_end end)
{
    warden_died(&w, at * SECOND, pid, end);
}

static void supervisor(uint64_t at, uint64_t pid, uint64_t parent, const char *name, bool dynamic)
{
    warden_born(&w, at * SECOND,
                &(struct warden_birth){.pid = pid,
                                       .parent = parent,
                                       .class = "supervisor",
                                       .name = name,
                                       .supervisor = true,
                                       .dynamic = dynamic,
                                       .intensity = 2,
                                       .period_ns = 10 * SECOND});
}

/* A root, a domain with three children, a dynamic supervisor with one. */
static void begin(void)
{
    warden_begin(&w);
    supervisor(0, 1, 0, "root", false);
    supervisor(0, 2, 1, "domain", false);
    born(0, 11, 2, "a");
    born(0, 12, 2, "b");
    born(0, 13, 2, "c");
    supervisor(0, 3, 1, "guests", true);
    born(0, 21, 3, "");
}

static void kill_one(uint64_t at, uint64_t pid)
{
    warden_struck(&w, at * SECOND, pid);
    died(at, pid, WARDEN_KILLED);
}

static void finds(const char *words)
{
    TEST_CHECK(strstr(warden_finding(&w), words) != NULL && (*words || !*warden_finding(&w)));
    TEST_MSG("wanted: %s; found: %s", words, warden_finding(&w));
}

static void test_restart(void)
{
    begin();
    kill_one(1, 12);
    born(1, 14, 2, "b");
    died(2, 21, WARDEN_NORMAL);
    warden_rest(&w);
    finds("");
    TEST_CHECK(w.returns == 1);
}

static void test_missing(void)
{
    begin();
    kill_one(1, 12);
    finds("");
    TEST_CHECK(warden_waits(&w, 60 * SECOND) && !warden_waits(&w, 61 * SECOND));
    warden_rest(&w);
    finds("b hasn't come back under domain");
}

static void test_twice(void)
{
    begin();
    born(1, 14, 2, "b");
    finds("where another one lives");
}

static void test_killed_by_nobody(void)
{
    begin();
    died(1, 12, WARDEN_KILLED);
    finds("killed by nobody");
    begin();
    died(1, 12, WARDEN_FAULT);
    finds("has crashed");
    begin();
    warden_struck(&w, SECOND, 12);
    TEST_CHECK(warden_waits(&w, 60 * SECOND) && !warden_waits(&w, 61 * SECOND));
    warden_rest(&w);
    finds("was killed, and lives");
}

/* Both ends of the window count: the third restart exactly ten seconds after the first is one too many. */
static void test_budget(void)
{
    begin();
    for (uint64_t i = 0; i < 3; i++) {
        kill_one(1 + i * 6, i ? 100 + i - 1 : 12);
        born(1 + i * 6, 100 + i, 2, "b");
    }
    finds("");
    begin();
    for (uint64_t i = 0; i < 3; i++) {
        finds("");
        kill_one(1 + i * 5, i ? 100 + i - 1 : 12);
        born(1 + i * 5, 100 + i, 2, "b");
    }
    finds("domain has restarted its children 3 times within 10000 ms, and may 2 times");
}

static void end_domain(uint64_t at, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t pids[] = {a, b, c};
    for (int i = 0; i < 3; i++)
        if (pids[i])
            died(at, pids[i], WARDEN_SHUTDOWN);
    died(at, 2, WARDEN_SHUTDOWN);
}

static void test_escalation(void)
{
    begin();
    kill_one(1, 12);
    born(1, 100, 2, "b");
    kill_one(2, 100);
    born(2, 101, 2, "b");
    kill_one(3, 101);
    end_domain(3, 13, 11, 0);
    supervisor(3, 4, 1, "domain", false);
    born(3, 111, 4, "a");
    born(3, 112, 4, "b");
    born(3, 113, 4, "c");
    warden_rest(&w);
    finds("");
    TEST_CHECK(w.escalations == 1 && w.endings == 1);
}

static void test_given_up_too_early(void)
{
    begin();
    kill_one(1, 12);
    end_domain(1, 13, 11, 0);
    finds("root ended domain before guests, which is younger");
    begin();
    died(1, 21, WARDEN_SHUTDOWN);
    died(1, 3, WARDEN_SHUTDOWN);
    end_domain(1, 13, 12, 11);
    died(1, 1, WARDEN_SHUTDOWN);
    finds("root has given up with restarts left");
}

/* The root has none left, and waits for its children's ends; meanwhile somebody strikes another of them. */
static void test_another_death_while_one_gives_up(void)
{
    for (int early = 0; early <= 1; early++) {
        begin();
        kill_one(1, 2);
        supervisor(1, 4, 1, "domain", false);
        if (!early) {
            kill_one(2, 4);
            supervisor(2, 5, 1, "domain", false);
        }
        kill_one(3, early ? 4 : 5);
        kill_one(33, 3); /* a window later */
        died(34, 1, WARDEN_SHUTDOWN);
        finds(early ? "root has given up with restarts left" : "");
    }
}

static void test_order(void)
{
    begin();
    died(1, 12, WARDEN_SHUTDOWN);
    finds("domain ended b before c, which is younger");
    begin(); /* who came back stands where it stood */
    kill_one(1, 11);
    born(1, 14, 2, "a");
    died(2, 13, WARDEN_SHUTDOWN);
    died(2, 12, WARDEN_SHUTDOWN);
    died(2, 14, WARDEN_SHUTDOWN);
    finds("");
}

static void test_goes_on(void)
{
    begin();
    died(1, 13, WARDEN_SHUTDOWN);
    born(1, 14, 2, "c");
    finds("c is born under domain, which is ending");
}

/* Orphans hold their names for a while: a start that is refused for that shares its grant with the next one. */
static void test_orphans(void)
{
    begin();
    kill_one(1, 2);
    supervisor(1, 4, 1, "domain", false);
    born(1, 31, 4, "a");
    died(1, 31, WARDEN_NORMAL);
    died(1, 11, WARDEN_KILLED);
    born(1, 32, 4, "a");
    died(1, 12, WARDEN_KILLED);
    died(1, 13, WARDEN_KILLED);
    born(1, 33, 4, "b");
    born(1, 34, 4, "c");
    for (uint64_t i = 0; i < 2; i++) {
        kill_one(2, i ? 40 : 33);
        born(2, 40 + i, 4, "b");
    }
    warden_rest(&w);
    finds("");
    TEST_CHECK(w.doubts == 1);
}

static void test_pids(void)
{
    begin();
    born(1, 12, 2, "d");
    finds("with the pid of one that lives");
    begin();
    died(1, 99, WARDEN_NORMAL);
    finds("who wasn't born");
}

/* The one above has none left, and whoever it tells to end is given no turn until the time for that is over. */
static void test_killed_behind_its_time(void)
{
    begin();
    kill_one(1, 13), born(1, 14, 2, "c");
    kill_one(2, 14), born(2, 15, 2, "c");
    kill_one(3, 15);
    died(33, 12, WARDEN_KILLED);
    died(33, 11, WARDEN_KILLED);
    finds("");
    begin();
    kill_one(1, 13), born(1, 14, 2, "c");
    kill_one(2, 14), born(2, 15, 2, "c");
    kill_one(3, 15);
    died(3, 12, WARDEN_KILLED); /* at once */
    finds("b was killed by nobody, and its supervisor lives");
    begin();
    kill_one(1, 13), born(1, 14, 2, "c");
    kill_one(2, 14);
    died(32, 12, WARDEN_KILLED); /* and it has one left */
    finds("b was killed by nobody, and its supervisor lives");
    begin();
    kill_one(1, 13), born(1, 14, 2, "c");
    kill_one(2, 14), born(2, 15, 2, "c");
    kill_one(3, 15);
    died(33, 11, WARDEN_KILLED);
    finds("domain ended a before b, which is younger");
    begin();
    kill_one(1, 1); /* the root: what is below it ends */
    died(31, 13, WARDEN_KILLED);
    died(31, 12, WARDEN_KILLED);
    finds("");
    begin();
    kill_one(1, 1);
    died(1, 13, WARDEN_KILLED);
    finds("c was killed by nobody, and its supervisor lives");
}

TEST_LIST
= {
    {"A6: a child that ends comes back in its place", test_restart},
    {"A6: a place that stays empty", test_missing},
    {"A6: two in one place", test_twice},
    {"A7: killed by nobody, crashed by itself, killed and alive", test_killed_by_nobody},
    {"A6: a budget has a closed window", test_budget},
    {"A6: a spent budget goes up by one", test_escalation},
    {"A6: a budget that isn't spent", test_given_up_too_early},
    {"A6: another death while one gives up", test_another_death_while_one_gives_up},
    {"A6: killed when its time to end is over", test_killed_behind_its_time},
    {"A6: the youngest ends first", test_order},
    {"A6: who ends its children starts none", test_goes_on},
    {"A6: orphans", test_orphans},
    {"A2: pids", test_pids},
    {NULL, NULL},
};
