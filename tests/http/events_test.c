#include "acutest.h"

#include <inttypes.h>
#include <unistd.h>

#include "http/events.h"
#include "http/timestamp.h"
#include "runtime/env.h"
#include "runtime/telemetry.h"
#include "tests/support/operated.h"

#define STREAM "Accept: text/event-stream\r\n"

static size_t count(const char *text, const char *needle)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, needle)); at++)
        n++;
    return n;
}

/* A commit in the background or a handler that was switched out is news of its own: then it is asked again from there. */
static bool stays_where_nothing_is_new(const char *from)
{
    char next[128], path[256];
    for (int i = 0; i < 1000; i++) {
        snprintf(next, sizeof(next), "%s", from);
        snprintf(path, sizeof(path), "/stats/events?since=%s", next);
        if (operated_get(path) != 200)
            return false;
        from = operated_member("next");
        if (strstr(operated_body, "\"events\":[],"))
            return strcmp(from, next) == 0;
    }
    return false;
}

static void test_list(void)
{
    char next[128], path[256];
    operated_start(NULL);
    operated_grow();
    TEST_CHECK(operated_post("/test/mail/one/5", NULL) == 204);
    TEST_CHECK(operated_get("/stats/events?event=actor.start") == 200);
    TEST_CHECK(count(operated_body, "\"event\":\"actor.start\"") == 5);
    TEST_CHECK(count(operated_body, "\"event\":") == 5 && !strstr(operated_head, "\nLink: "));
    TEST_CHECK(operated_get("/stats/events?event=actor.start&limit=2") == 200);
    TEST_CHECK(count(operated_body, "\"event\":") == 2);
    TEST_CHECK(operated_has("\"attempt\":\"0\"") && operated_has("\"attempt\":\"1\""));
    snprintf(next, sizeof(next), "%s", operated_member("next"));
    snprintf(path, sizeof(path), "\nLink: <?event=actor.start&limit=2&since=%s>; rel=\"next\"\r\n", next);
    TEST_CHECK_(strstr(operated_head, path) != NULL, "%s", operated_head);
    snprintf(path, sizeof(path), "/stats/events?event=actor.start&limit=2&since=%s", next);
    TEST_CHECK(operated_get(path) == 200); /* as the link says */
    TEST_CHECK(operated_has("\"attempt\":\"2\"") && operated_has("\"attempt\":\"3\""));
    snprintf(path, sizeof(path), "/stats/events?event=actor.*&since=%s", next);
    TEST_CHECK(operated_get(path) == 200); /* goes on where the first one ended */
    TEST_CHECK(count(operated_body, "\"event\":") == 3 && operated_has("\"attempt\":\"2\""));
    TEST_CHECK(stays_where_nothing_is_new(operated_member("next")));
    operated_stop();
}

static void test_refusals(void)
{
    operated_start(NULL);
    TEST_CHECK(operated_get("/stats/events?event=nonsense") == 400 &&
               operated_has("there is none of that name"));
    TEST_CHECK(operated_get("/stats/events?event=act.*") == 400);
    TEST_CHECK(operated_get("/stats/events?since=yesterday") == 400 && operated_has("since is 'yesterday'"));
    TEST_CHECK(operated_get("/stats/events?since=1-1-99-1") == 400);
    TEST_CHECK(operated_get("/stats/events?since=1-99999999999999999999999-1-1") == 400);
    TEST_CHECK(operated_get("/stats/events?since=0123456789abcdef-") == 400);
    TEST_CHECK(operated_get("/stats/events?since=0123456789abcdef-1x") == 400);
    TEST_CHECK(operated_get("/stats/events?limit=1") == 200);
    char own[128], path[256];
    snprintf(own, sizeof(own), "%.17s", operated_member("next"));
    snprintf(path, sizeof(path), "/stats/events?since=%s1-1-1", own); /* as another version wrote ours */
    TEST_CHECK(operated_get(path) == 400);
    snprintf(path, sizeof(path), "/stats/events?since=%s18446744073709551616", own);
    TEST_CHECK(operated_get(path) == 400);
    TEST_CHECK(operated_get("/stats/events?limit=0") == 400);
    TEST_CHECK(operated_get("/stats/events?limit=100001") == 400);
    TEST_CHECK(operated_has("OPS_400_INVALID"));
    operated_stop();
}

/* As a client has it after a restart, a reboot or an upgrade. */
static void test_sequences_of_others(void)
{
    static const char *const since[] = {"0123456789abcdef-1-0-0", /* of an older version */
                                        "0123456789abcdef-18446744073709551615"};
    char path[256], next[128], header[256];
    operated_start(NULL);
    operated_grow();
    TEST_CHECK(operated_post("/test/mail/one/5", NULL) == 204);
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "/stats/events?event=actor.start&since=%s", since[i]);
        TEST_CHECK(operated_get(path) == 200 && count(operated_body, "\"event\":") == 5);
    }
    snprintf(next, sizeof(next), "%s", operated_member("next"));
    snprintf(path, sizeof(path), "/stats/events?event=actor.start&since=%.16s-18446744073709551615", next);
    TEST_CHECK(operated_get(path) == 200 && count(operated_body, "\"event\":") == 5); /* ours, not yet */
    static const char *const last[] = {"99999999999999999-0-1", "yesterday",
                                       "0123456789abcdef-9999999999999999"};
    for (size_t i = 0; i < 3; i++) {
        snprintf(header, sizeof(header), STREAM "Last-Event-ID: %s\r\n", last[i]);
        int fd = operated_open("/stats/events?event=actor.start", header);
        TEST_CHECK(operated_await(fd, "\"attempt\":\"4\""));
        close(fd);
    }
    operated_stop();
}

/* What happened can be laid beside the log and the audit. */
static void test_times(void)
{
    char before[TIMESTAMP_SIZE], after[TIMESTAMP_SIZE];
    operated_start(NULL);
    operated_grow();
    timestamp_format(env_real()->wall(env_real()) - NS_PER_S, before);
    TEST_CHECK(operated_post("/test/mail/one/1", NULL) == 204);
    TEST_CHECK(operated_get("/stats/events?event=actor.start") == 200);
    timestamp_format(env_real()->wall(env_real()) + NS_PER_S, after);
    const char *at = operated_member("at");
    TEST_CHECK(strlen(at) == TIMESTAMP_SIZE - 1 && strcmp(before, at) <= 0 && strcmp(at, after) <= 0);
    operated_stop();
}

/* The id of the last event that has come. */
static void last_id(char id[128])
{
    const char *at = NULL;
    for (const char *next = operated_seen; (next = strstr(next, "id: ")); next++)
        at = next + 4;
    snprintf(id, 128, "%.*s", at ? (int)strcspn(at, "\n") : 0, at ? at : "");
}

static void test_stream(void)
{
    char id[128], header[256];
    operated_start(NULL);
    operated_grow();
    TEST_CHECK(operated_post("/test/mail/one/3", NULL) == 204); /* before: not seen */
    int fd = operated_open("/stats/events?event=actor.start", STREAM);
    TEST_CHECK(operated_await(fd, "retry: 1000\n\n"));
    TEST_CHECK(strstr(operated_seen, "Content-Type: text/event-stream") != NULL);
    TEST_CHECK(strstr(operated_seen, "X-Accel-Buffering: no") != NULL);
    TEST_CHECK(strstr(operated_seen, "Connection: close\r\n") != NULL);
    TEST_CHECK(operated_post("/test/mail/two/3", NULL) == 204);
    TEST_CHECK(operated_await(fd, "\"attempt\":\"2\""));
    TEST_CHECK(count(operated_seen, "\nevent: actor.start\ndata: {\"at\":\"2") == 3);
    TEST_CHECK(strstr(operated_seen, "\"class\":\"one\"") == NULL);
    last_id(id);
    close(fd);
    TEST_CHECK(operated_post("/test/mail/two/5", NULL) == 204); /* while nobody is there */
    snprintf(header, sizeof(header), STREAM "Last-Event-ID: %s\r\n", id);
    fd = operated_open("/stats/events?event=actor.start", header);
    TEST_CHECK(operated_await(fd, "\"attempt\":\"4\""));
    TEST_CHECK(count(operated_seen, "id: ") == 5);
    close(fd);
    fd = operated_open("/stats/events", "Accept: Text/Event-Stream;charset=utf-8\r\n"); /* in any case */
    TEST_CHECK(operated_await(fd, "retry: 1000\n\n"));
    close(fd);
    static const char *const others[] = {"Accept: text/event-streams\r\n",
                                         "Accept: */*, text/event-stream;q=0\r\n"};
    for (size_t i = 0; i < 2; i++) {
        TEST_CHECK(operated_ask("GET", "/stats/events?limit=1", others[i], NULL) == 200);
        TEST_CHECK_(strstr(operated_head, "Content-Type: application/json\r\n") != NULL, "%s", others[i]);
    }
    TEST_CHECK(operated_ask("GET", "/stats/events?limit=2", STREAM, NULL) == 400 &&
               operated_has("limit is of a list"));
    TEST_CHECK(operated_ask("HEAD", "/stats/events", STREAM, NULL) == 200 && operated_body[0] == 0);
    TEST_CHECK(strstr(operated_head, "Content-Type: text/event-stream") &&
               !strstr(operated_head, "Content-Length:"));
    operated_stop();
}

/* More has happened than is kept: it is told how much, and the answer's places are as exact as ever. */
static void test_missed(void)
{
    enum { MANY = TELEMETRY_RING_SIZE + 100 };
    char since[128], path[256];
    operated_start(NULL);
    operated_grow();
    TEST_CHECK(operated_get("/stats/events?limit=100000") == 200 && operated_has("\"missed\":0,"));
    snprintf(since, sizeof(since), "%s", operated_member("next"));
    snprintf(path, sizeof(path), "/test/mail/one/%d", MANY);
    TEST_CHECK(operated_post(path, NULL) == 204);
    snprintf(path, sizeof(path), "/stats/events?limit=100000&since=%s", since);
    TEST_CHECK(operated_get(path) == 200);
    size_t kept = count(operated_body, "\"event\":");
    uint64_t missed = strtoull(operated_member("missed"), NULL, 10), from = strtoull(since + 17, NULL, 10),
             to = strtoull(operated_member("next") + 17, NULL, 10);
    TEST_CHECK(missed >= 100 && from + missed + kept == to);
    snprintf(path, sizeof(path), STREAM "Last-Event-ID: %s\r\n", since);
    int fd = operated_open("/stats/events?event=supervisor.restart", path);
    TEST_CHECK(operated_await(fd, "\nevent: missed\ndata: {\"missed\":"));
    TEST_CHECK(strstr(operated_seen, "id: ") == NULL);
    close(fd);
    operated_stop();
}

/* What is written over while the client takes its time is missed as well. */
static void test_missed_meanwhile(void)
{
    char path[256];
    operated_start(NULL);
    operated_grow();
    TEST_CHECK(operated_get("/stats/events?limit=100000") == 200);
    uint64_t from = strtoull(operated_member("next") + 17, NULL, 10);
    snprintf(path, sizeof(path), "/stats/events?limit=100000&since=%s", operated_member("next"));
    TEST_CHECK(operated_post("/test/mail/one/1000", NULL) == 204);
    int fd = operated_begin(path);
    TEST_CHECK(operated_get("/stats/events?limit=100000") == 200);
    uint64_t begun = strtoull(operated_member("next") + 17, NULL, 10);
    do { /* until nothing is left of what it tells of: on whatever scheduler that was */
        TEST_CHECK(operated_post("/test/mail/two/1100", NULL) == 204);
        TEST_CHECK(operated_get("/stats/events?event=actor.start&limit=1") == 200);
    } while (strtoull(operated_member("next") + 17, NULL, 10) < begun);
    TEST_CHECK(operated_end(fd) == 200);
    size_t told = count(operated_body, "\"event\":");
    uint64_t missed = strtoull(operated_member("missed"), NULL, 10),
             to = strtoull(operated_member("next") + 17, NULL, 10);
    TEST_CHECK_(told > 0 && missed > 0, "%zu told, %" PRIu64 " missed", told, missed);
    TEST_CHECK_(from + missed + told == to, "%" PRIu64 " + %" PRIu64 " + %zu, %" PRIu64, from, missed, told,
                to);
    operated_stop();
}

static void test_as_many_as_may_be(void)
{
    operated_start(&(struct operated_options){.streams_max = 1});
    int fd = operated_open("/stats/events", STREAM);
    TEST_CHECK(operated_await(fd, "retry: 1000\n\n"));
    TEST_CHECK(operated_ask("GET", "/stats/events", STREAM, NULL) == 503);
    TEST_CHECK(operated_has("OPS_503_OVERLOADED"));
    TEST_CHECK(operated_get("/stats/events") == 200); /* a list is no stream */
    TEST_CHECK(operated_get("/stats") == 200 && operated_has("\"streams\":1"));
    close(fd);
    do /* until the server has seen it go */
        operated_get("/stats");
    while (!strstr(operated_body, "\"streams\":0"));
    fd = operated_open("/stats/events", STREAM);
    TEST_CHECK(operated_await(fd, "retry: 1000\n\n"));
    close(fd);
    operated_stop();
}

/* A server that ends doesn't wait for those who watch it. */
static void test_drain(void)
{
    operated_start(NULL);
    int fd = operated_open("/stats/events", STREAM);
    TEST_CHECK(operated_await(fd, "retry: 1000\n\n"));
    TEST_CHECK(operated_post("/test/drain", NULL) == 204);
    TEST_CHECK(operated_await(fd, "\r\n0\r\n\r\n"));
    close(fd);
    operated_stop();
}

static void test_silence(void)
{
    operated_start(NULL);
    int fd = operated_open("/stats/events?event=store.damaged", STREAM);
    uint64_t began = env_real()->now(env_real());
    TEST_CHECK(operated_await(fd, "\n:\n\n"));
    TEST_CHECK(env_real()->now(env_real()) - began >= (EVENTS_KEEP_ALIVE_MS - 1000) * NS_PER_MS);
    close(fd);
    operated_stop();
}

TEST_LIST
= {
    {"a list, and where it goes on", test_list},
    {"what can't be meant", test_refusals},
    {"a sequence of another process", test_sequences_of_others},
    {"when it happened", test_times},
    {"a stream, and where it goes on", test_stream},
    {"what isn't kept any more is missed", test_missed},
    {"what goes while a slow client reads is missed", test_missed_meanwhile},
    {"as many streams as may be", test_as_many_as_may_be},
    {"a stream ends with the server", test_drain},
    {"a silent stream says that it is there", test_silence},
    {NULL, NULL},
};
