#include "acutest.h"

#include <unistd.h>

#include "http/chaos_verbs.h"
#include "http/actor_view.h"
#include "tests/support/operated.h"
#include "tests/support/sanitized.h"

#define WHY "{\"reason\":\"game day\"}"
#define DRY "{\"dry_run\":true}"

static char pid[32];
static const char *pid_of(const char *name)
{
    char path[128];
    snprintf(path, sizeof(path), "/stats/actors/%s", name);
    TEST_CHECK(operated_get(path) == 200);
    snprintf(pid, sizeof(pid), "%s", operated_member("pid"));
    return pid;
}

static int chaos(const char *target, const char *verb, const char *body)
{
    char path[ACTOR_VIEW_NAME_MAX + 128];
    snprintf(path, sizeof(path), "/chaos/actors/%s:%s", target, verb);
    return operated_post(path, body);
}

static void test_kill(void)
{
    char old[32], two[32];
    operated_start(NULL);
    operated_grow();
    snprintf(old, sizeof(old), "%s", pid_of("one"));
    snprintf(two, sizeof(two), "%s", pid_of("two"));
    TEST_CHECK(chaos("one", "kill", WHY) == 200);
    TEST_CHECK(operated_has("{\"verb\":\"kill\",\"target\":\"one\",\"reason\":\"game "
                            "day\",\"dry_run\":false,\"actor\":{\"pid\":\""));
    TEST_CHECK(operated_has("\"outcome\":\"recovered\",\"complete\":true"));
    TEST_CHECK(operated_has("\"cause\":\"target\",\"comes_back\":true}],\"count\":1,"));
    TEST_CHECK(operated_has("\"strategy\":\"one_for_one\",\"restarts\":20,\"period_ms\":60000,\"used_"
                            "before\":0,\"used_after\":1}"));
    TEST_CHECK(operated_has("\"end_reason\":\"killed\",\"successor\":\"0x"));
    TEST_CHECK(operated_has("\"expected\":true"));
    TEST_CHECK(operated_has("\"missing\":0,\"down_us\":"));
    TEST_CHECK(strcmp(pid_of("one"), old) != 0);
    TEST_CHECK(strcmp(pid_of("two"), two) == 0);
    TEST_CHECK(chaos(old, "kill", WHY) == 404);                                  /* it is nobody's now */
    TEST_CHECK(chaos("front.connections%3Etop%3Edyn%3Ed1", "kill", DRY) == 200); /* by where it stands */
    TEST_CHECK(operated_has("\"name\":\"d1\""));
    TEST_CHECK(chaos("front.connections%3Etop%3Edyn%3Ed9", "kill", DRY) == 404);
    TEST_CHECK(chaos("top%3Edyn%3Ed1", "kill", DRY) == 404);
    TEST_CHECK(chaos("front.connections%3E%3Etop", "kill", DRY) == 404);
    operated_stop();
}

static void test_crash(void)
{
    operated_start(NULL);
    operated_grow();
    TEST_CHECK(chaos("one", "crash", WHY) == 200);
    TEST_CHECK(operated_has("\"outcome\":\"recovered\""));
    TEST_CHECK(operated_has("\"end_reason\":\"crash(SIGSEGV) at 0x0\""));
    TEST_CHECK(operated_get("/stats") == 200 && operated_has("\"crashed\":1"));
    TEST_CHECK(operated_get("/stats/events?event=actor.crash") == 200 && operated_has("\"class\":\"idle\""));
    TEST_CHECK(operated_get("/stats/events?event=chaos.verb") == 200 &&
               operated_has("\"operation\":\"crash\""));
    operated_stop();
}

/* A machine that stood still may have left the loop no time within that of the answer. Its budget ends it all the same: then
 * the next one is told. */
static int crash(const char *body, const char *how, unsigned *loops)
{
    char old[32];
    for (;;) {
        snprintf(old, sizeof(old), "%s", pid_of("one"));
        int status = chaos("one", "crash", body);
        bool told = status != 504 || strstr(operated_body, "has not ended within");
        *loops += told && strcmp(how, "loop") == 0;
        if (status != 504)
            return status;
        while (told && (operated_get("/stats/actors/one") != 200 || strcmp(operated_member("pid"), old) == 0))
            ;
    }
}

/* Each way in which code of an actor can fail has its own end, and is as contained as the others. */
static void test_crash_how(void)
{
    static const struct {
        const char *how, *reason;
    } ways[] = {
        {"trap", "crash(SIGSEGV)"}, {"abort", "crash(SIGABRT)"},        {"loop", "overrun"},
        {"divide", "crash(SIG"},    {"stack", "crash(stack_overflow)"}, {"memory", "quota"},
    };
    char body[64], reason[64];
    unsigned loops = 0;
    operated_start(NULL);
    operated_grow();
    for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
        if (SANITIZED && i > 1) /* nobody is switched out in such builds, and stacks are another matter */
            break;
        snprintf(body, sizeof(body), "{\"reason\":\"game day\",\"how\":\"%s\"}", ways[i].how);
        snprintf(reason, sizeof(reason), "\"end_reason\":\"%s", ways[i].reason);
        TEST_CHECK_(crash(body, ways[i].how, &loops) == 200, "%s", ways[i].how);
        TEST_CHECK_(operated_has(reason) && operated_has("\"outcome\":\"recovered\""), "%s", ways[i].how);
    }
    if (!SANITIZED) { /* the loop was switched out slice by slice, and ended by its budget: not by the verb's own clock */
        TEST_CHECK(operated_get("/metrics") == 200);
        snprintf(body, sizeof(body), "\ncoppice_runtime_overruns_total %u\n", loops);
        TEST_CHECK(operated_has(body));
    }
    TEST_CHECK(chaos("one", "crash", "{\"reason\":\"game day\",\"how\":\"gently\"}") == 400);
    TEST_CHECK(chaos("one", "crash", "{\"reason\":\"game day\",\"how\":7}") == 400);
    operated_stop();
}

/* What an actor doesn't know it drops; what its mailbox has no room for the sender is told. */
static void test_flood(void)
{
    char old[32];
    operated_start(NULL);
    operated_grow();
    snprintf(old, sizeof(old), "%s", pid_of("one"));
    TEST_CHECK(chaos("one", "flood", "{\"reason\":\"game day\",\"messages\":3}") == 200);
    TEST_CHECK(operated_has("\"outcome\":\"flooded\"") &&
               operated_has("\"flood\":{\"sent\":3,\"refused\":0}"));
    TEST_CHECK(chaos("one", "flood", "{\"reason\":\"game day\",\"messages\":1}") == 200);
    TEST_CHECK(operated_has("\"flood\":{\"sent\":1,\"refused\":0}"));
    TEST_CHECK(chaos("one", "suspend", WHY) == 200);
    TEST_CHECK(chaos("one", "flood", "{\"reason\":\"game day\",\"messages\":100000}") == 200);
    TEST_CHECK(!operated_has("\"refused\":0}"));
    TEST_CHECK(chaos("one", "resume", WHY) == 200);
    TEST_CHECK(strcmp(pid_of("one"), old) == 0);
    TEST_CHECK(chaos("one", "flood", DRY) == 200 && operated_has("\"outcome\":\"predicted\""));
    TEST_CHECK(chaos("one", "flood", "{\"messages\":3}") == 400);
    TEST_CHECK(chaos("one", "flood", "{\"reason\":\"game day\",\"messages\":0}") == 400);
    TEST_CHECK(chaos("one", "flood", "{\"reason\":\"game day\",\"messages\":100001}") == 400);
    TEST_CHECK(chaos("nobody", "flood", WHY) == 404);
    operated_stop();
}

/* A supervisor ends, and all below it; its own supervisor starts them again. */
static void test_below(void)
{
    operated_start(NULL);
    operated_grow();
    TEST_CHECK(chaos("all", "kill", DRY) == 200);
    TEST_CHECK(operated_has("\"dry_run\":true") && operated_has("\"outcome\":\"predicted\""));
    TEST_CHECK(operated_has("\"count\":4,"));
    TEST_CHECK(operated_has("\"name\":\"a1\"") && operated_has("\"cause\":\"below\",\"comes_back\":true"));
    TEST_CHECK(chaos("all", "kill", WHY) == 200);
    TEST_CHECK(operated_has("\"outcome\":\"recovered\"") && operated_has("\"died_count\":4,"));
    TEST_CHECK(strstr(operated_body, "\"expected\":false") == NULL);
    TEST_CHECK(operated_get("/stats/actors/a3") == 200);
    TEST_CHECK(chaos("dyn", "kill", WHY) ==
               200); /* those who came at run time don't come back by themselves */
    TEST_CHECK(operated_has("\"outcome\":\"recovered\"") && operated_has("\"died_count\":3,"));
    TEST_CHECK(operated_has("\"cause\":\"below\",\"comes_back\":false"));
    TEST_CHECK(operated_get("/stats/actors/d1") == 404);
    operated_stop();
}

/* As many as a busy server has: all of them are compared. */
static void test_busy(void)
{
    operated_start(NULL);
    operated_grow();
    TEST_CHECK(operated_post("/test/crowd/8000", NULL) == 204);
    TEST_CHECK(chaos("one", "kill", WHY) == 200);
    TEST_CHECK(operated_has("\"outcome\":\"recovered\",\"complete\":true"));
    TEST_CHECK(operated_has("\"died_count\":1,"));
    operated_stop();
}

/* A client that leaves while somebody else is killed didn't die of it; a connection that fails may have. */
static void test_meanwhile(void)
{
    operated_start(NULL);
    operated_grow();
    int fd = operated_visit("leaves");
    TEST_CHECK(chaos("late", "kill", WHY) == 200); /* the connection ends between the two looks */
    TEST_CHECK(operated_has("\"outcome\":\"recovered\"") && operated_has("\"died_count\":1,"));
    TEST_CHECK(operated_has("\"ended_meanwhile\":1,") && operated_has("\"missing\":0"));
    TEST_CHECK(strstr(operated_body, "\"expected\":false") == NULL);
    TEST_CHECK(!operated_await(fd, "more")); /* it has ended */
    close(fd);
    fd = operated_visit("fails");
    TEST_CHECK(chaos("late", "kill", WHY) == 200);
    TEST_CHECK(operated_has("\"died_count\":2,") && operated_has("\"ended_meanwhile\":0,"));
    TEST_CHECK(operated_has("\"expected\":false"));
    close(fd);
    operated_stop();
}

static void test_strategies(void)
{
    operated_start(NULL);
    operated_grow();
    TEST_CHECK(chaos("a2", "kill", WHY) == 200);
    TEST_CHECK(operated_has("\"cause\":\"one_for_all\"") && operated_has("\"count\":3,"));
    TEST_CHECK(operated_has("\"died_count\":3,") && operated_has("\"missing\":0"));
    TEST_CHECK(chaos("r2", "kill", WHY) == 200);
    TEST_CHECK(operated_has("\"cause\":\"rest_for_one\"") && operated_has("\"count\":2,"));
    TEST_CHECK(operated_has("\"died_count\":2,") && operated_has("\"missing\":0"));
    TEST_CHECK(strstr(operated_body, "\"name\":\"r1\"") == NULL);
    operated_stop();
}

/* One more than the budget: the supervisor ends, too, and comes back with its child. */
static void test_escalation(void)
{
    operated_start(NULL);
    operated_grow();
    TEST_CHECK(chaos("t1", "kill", DRY) == 200);
    TEST_CHECK(operated_has("\"cause\":\"escalation\"") && operated_has("\"count\":2,"));
    TEST_CHECK(chaos("t1", "kill", WHY) == 200);
    TEST_CHECK(operated_has("\"outcome\":\"recovered\"") && operated_has("\"died_count\":2,"));
    TEST_CHECK(operated_has("\"used_before\":0,\"used_after\":null"));
    TEST_CHECK(operated_get("/stats/actors/t1") == 200);
    operated_stop();
}

/* Nobody would be left to answer afterwards: the answer comes first, and so does the entry. */
static void test_takes_us(void)
{
    char old[32];
    operated_start(NULL);
    snprintf(old, sizeof(old), "%s", pid_of("front.connections"));
    TEST_CHECK(chaos("front.connections", "kill", WHY) == 202);
    TEST_CHECK(operated_has("\"outcome\":\"ends_process\",\"complete\":false"));
    TEST_CHECK(strstr(operated_body, "died_count") == NULL && strstr(operated_body, "missing") == NULL);
    do /* its own root is nobody here, which would end a real process; who comes meanwhile ends with it */
        operated_try("/stats/actors/front.connections");
    while (operated_status != 200 || strcmp(operated_member("pid"), old) == 0);
    TEST_CHECK(operated_get("/stats/audits?limit=2") == 200);
    TEST_CHECK(operated_has(
        "\"target\":\"front.connections\",\"reason\":\"game day\",\"outcome\":\"ends_process\""));
    TEST_CHECK(operated_has("\"next\":null")); /* one entry */
    operated_stop();
}

static void test_suspend(void)
{
    operated_start(NULL);
    operated_grow();
    TEST_CHECK(chaos("one", "suspend", DRY) == 200 && operated_has("\"outcome\":\"predicted\""));
    TEST_CHECK(operated_get("/stats/actors/one") == 200 && operated_has("\"status\":\"IDLE\""));
    TEST_CHECK(chaos("one", "suspend", WHY) == 200);
    TEST_CHECK(operated_has("\"status\":\"SUSPENDED\"") && operated_has("\"outcome\":\"suspended\""));
    TEST_CHECK(operated_post("/test/mail/one/7", NULL) == 204);
    TEST_CHECK(operated_get("/stats/actors/one") == 200);
    TEST_CHECK(operated_has("\"status\":\"SUSPENDED\"") && operated_has("\"depth\":7"));
    TEST_CHECK(operated_get("/stats/tree?state=bogus") == 400 && operated_has("quarantined"));
    TEST_CHECK(operated_get("/stats/tree?state=suspended") == 200);
    TEST_CHECK(operated_has("\"name\":\"one\"") && operated_has("\"matched\":1"));
    TEST_CHECK(operated_get("/stats/tree?top=mailbox&n=1") == 200);
    TEST_CHECK(operated_has("{\"actors\":[{\"name\":\"one\"") && operated_has("\"mailbox_depth\":7"));
    TEST_CHECK(chaos("one", "resume", WHY) == 200 && operated_has("\"outcome\":\"resumed\""));
    do
        operated_get("/stats/actors/one");
    while (!strstr(operated_body, "\"depth\":0"));
    TEST_CHECK(operated_has("\"status\":\"IDLE\""));
    operated_stop();
}

/* By whatever name, and before anything is done; ended it may be. */
static void test_suspend_who_is_needed(void)
{
    char two[32];
    operated_start(NULL);
    operated_grow();
    snprintf(two, sizeof(two), "%s", pid_of("two"));
    TEST_CHECK(chaos("two", "suspend", WHY) == 409 && operated_has("OPS_409_CONFLICT"));
    TEST_CHECK(operated_has("'two' can't be suspended: the tests need it"));
    TEST_CHECK(chaos(two, "suspend", WHY) == 409);
    TEST_CHECK(chaos("two", "suspend", DRY) == 409);
    TEST_CHECK(operated_get("/stats/actors/two") == 200 && operated_has("\"status\":\"IDLE\""));
    TEST_CHECK(operated_get("/stats/audits") == 200 &&
               operated_has("\"target\":\"two\",\"reason\":\"game day\",\"outcome\":\"409\""));
    TEST_CHECK(chaos("two", "resume", WHY) == 200);
    TEST_CHECK(chaos("two", "kill", WHY) == 200 && operated_has("\"outcome\":\"recovered\""));
    operated_stop();
}

static void test_refusals(void)
{
    operated_start(NULL);
    operated_grow();
    TEST_CHECK(chaos("one", "kill", NULL) == 400 && operated_has("OPS_400_MISSING_FIELD"));
    TEST_CHECK(operated_has("reason is missing"));
    TEST_CHECK(chaos("one", "kill", "{}") == 400 && operated_has("reason is missing"));
    TEST_CHECK(chaos("one", "kill", "{\"reason\":\"\"}") == 400);
    TEST_CHECK(chaos("one", "kill", "{\"reason\":7}") == 400);
    TEST_CHECK(chaos("one", "kill", "{\"reason\":\"x\",\"dry_run\":\"yes\"}") == 400);
    TEST_CHECK(chaos("one", "kill", "[]") == 400);
    TEST_CHECK(chaos("one", "kill", "{\"reason\"") == 400);
    TEST_CHECK(chaos("nobody", "kill", WHY) == 404 && operated_has("there is no actor 'nobody'"));
    TEST_CHECK(chaos("nobody", "crash", DRY) == 404);
    TEST_CHECK(chaos("one", "hug", WHY) == 404);
    TEST_CHECK(operated_ask("POST", "/chaos/actors/one:kill", "Origin: http://evil.example\r\n", WHY) == 403);
    TEST_CHECK(operated_ask("GET", "/chaos/actors/one:kill", "", NULL) == 405);
    TEST_CHECK(operated_get("/stats/actors/nobody") == 404);
    TEST_CHECK(operated_get("/stats/actors/instance:7") == 404 &&
               operated_has("there is no actor 'instance:7'"));
    static const size_t sizes[] = {ACTOR_VIEW_NAME_MAX - 1, ACTOR_VIEW_NAME_MAX, ACTOR_VIEW_NAME_MAX + 63};
    char name[ACTOR_VIEW_NAME_MAX + 64], path[sizeof(name) + 32];
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        size_t size = sizes[i];
        memset(name, 'n', size); /* as long as a name may be, and longer */
        name[size] = 0;
        snprintf(path, sizeof(path), "/stats/actors/%s", name);
        int wanted = size < ACTOR_VIEW_NAME_MAX ? 404 : 400;
        TEST_CHECK(chaos(name, "kill", WHY) == wanted && operated_get(path) == wanted);
        TEST_CHECK(wanted == 404 || operated_has("an actor's name has at most 255 bytes"));
    }
    TEST_CHECK(operated_get("/stats/actors/one") == 200); /* after all of that */
    operated_stop();
}

/* Who did what, why, and what came of it. */
static void test_audits(void)
{
    operated_start(NULL);
    operated_grow();
    TEST_CHECK(chaos("one", "kill", DRY) == 200);
    TEST_CHECK(operated_get("/stats/audits") == 200 && operated_has("{\"audits\":[],\"next\":null}"));
    TEST_CHECK(chaos("one", "crash", WHY) == 200);
    TEST_CHECK(operated_get("/stats/audits?limit=1") == 200);
    TEST_CHECK(operated_has(
        "\"verb\":\"actor.crash\",\"target\":\"one\",\"reason\":\"game day\",\"outcome\":\"recovered\""));
    TEST_CHECK(operated_has("\"end_reason\":\"crash(SIGSEGV) at 0x0\"")); /* in its details */
    TEST_CHECK(chaos("nobody", "kill", WHY) == 404);
    TEST_CHECK(operated_get("/stats/audits") == 200); /* entries of one millisecond have no order */
    TEST_CHECK(operated_has("\"target\":\"nobody\",\"reason\":\"game day\",\"outcome\":\"404\""));
    TEST_CHECK(chaos("store.writer", "kill", WHY) == 200 && operated_has("\"outcome\":\"gone\""));
    TEST_CHECK(operated_get("/stats/audits") == 200 && operated_has("\"target\":\"store.writer\""));
    TEST_CHECK(chaos("front.connections", "kill", DRY) == 200); /* we would go with it */
    TEST_CHECK(operated_has("\"name\":\"connection\""));
    operated_stop();
}

TEST_LIST
= {
    {"TOP-029 a kill and its record", test_kill},
    {"a crash is a real one, contained", test_crash},
    {"each way to crash", test_crash_how},
    {"a flood of messages", test_flood},
    {"what is below a supervisor", test_below},
    {"TOP-029 one of eight thousand", test_busy},
    {"TOP-029 who leaves meanwhile did not die of it", test_meanwhile},
    {"one_for_all and rest_for_one", test_strategies},
    {"one more than the budget", test_escalation},
    {"an ending that takes the connection along", test_takes_us},
    {"suspended, and what waits for it", test_suspend},
    {"who is needed to go on is not suspended", test_suspend_who_is_needed},
    {"what can't be meant", test_refusals},
    {"audit entries", test_audits},
    {NULL, NULL},
};
