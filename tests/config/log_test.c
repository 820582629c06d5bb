#include "acutest.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/log.h"
#include "runtime/env.h"

/* Standard error is a pipe of our own meanwhile; both ends never wait. */
static int reader, saved;

static void catch_lines(void)
{
    int ends[2];
    TEST_ASSERT(pipe(ends) == 0);
    TEST_ASSERT(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
    saved = dup(STDERR_FILENO);
    reader = ends[0];
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
}

static void let_go(void)
{
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(reader);
}

static char lines[1 << 17];

static uint64_t now_of(void *context)
{
    struct env *env = context;
    return env->now(env);
}

static const char *caught(void)
{
    size_t length = 0;
    ssize_t n;
    while ((n = read(reader, lines + length, sizeof(lines) - 1 - length)) > 0)
        length += (size_t)n;
    lines[length] = 0;
    return lines;
}

#define HAS(needle) TEST_CHECK_(strstr(lines, needle) != NULL, "'%s' is in '%.400s'", needle, lines)

static void test_a_line_is_one_object(void)
{
    catch_lines();
    log_open(LOG_INFO);
    LOG(LOG_WARN, "boot", "something\nhappened", {"text", "a \"word\"", 0}, {"number", NULL, -7});
    caught();
    let_go();
    HAS("{\"ts\":\"20");
    HAS("Z\",\"level\":\"warn\",\"logger\":\"boot\",\"msg\":\"something\\nhappened\",\"text\":\"a "
        "\\\"word\\\"\",\"number\":-7}\n");
    TEST_CHECK(strchr(lines, '\n') == lines + strlen(lines) - 1);
}

static void test_lines_below_the_level_are_left_out(void)
{
    catch_lines();
    log_open(LOG_WARN);
    LOG(LOG_INFO, "boot", "quiet", {"n", NULL, 1});
    LOG(LOG_ERROR, "boot", "loud", {"n", NULL, 1});
    caught();
    let_go();
    HAS("loud");
    TEST_CHECK(strstr(lines, "quiet") == NULL);
}

static void test_a_line_that_is_too_long_keeps_its_form(void)
{
    static char big[LOG_LINE_MAX];
    memset(big, 'x', sizeof(big) - 1);
    catch_lines();
    log_open(LOG_INFO);
    LOG(LOG_ERROR, "boot", "big", {"text", big, 0});
    caught();
    let_go();
    HAS("\"msg\":\"big\",\"cut\":true}\n");
}

/* What is masked may be longer than the secret was: many of them make a line longer than one may be, and it is cut. */
static void test_a_line_that_becomes_too_long_is_cut(void)
{
    static char line[LOG_LINE_MAX];
    size_t used = (size_t)snprintf(line, sizeof(line), "{\"msg\":\"m\"");
    while (used + 32 < sizeof(line) - 64)
        used += (size_t)snprintf(line + used, sizeof(line) - used, ",\"token\":7");
    used += (size_t)snprintf(line + used, sizeof(line) - used, ",\"end\":\"here\"}");
    catch_lines();
    log_open(LOG_INFO);
    log_line(line, used);
    LOG(LOG_WARN, "boot", "the next one", {"number", NULL, 7});
    caught();
    let_go();
    const char *end = strchr(lines, '\n');
    TEST_ASSERT(end != NULL);
    TEST_CHECK_((size_t)(end - lines) < LOG_LINE_MAX && end - lines > LOG_LINE_MAX / 2, "%td bytes",
                end - lines);
    HAS("\"msg\":\"m\",\"token\":\"***\",\"token\":\"***\"");
    TEST_CHECK(strstr(lines, "\"token\":7") == NULL && strstr(lines, "\"end\"") == NULL);
    TEST_CHECK_(strstr(end, "\"msg\":\"the next one\",\"number\":7}\n") != NULL, "%.200s", end);
}

static void test_the_runtimes_lines_get_the_time(void)
{
    catch_lines();
    log_line("{\"msg\":\"actor crashed\"}", 23);
    log_line("{\"level\":\"error\",\"msg\":\"gave up\"}", 33);
    log_line("{\"level\":\"error\"}", 17);
    log_line("no object", 9);
    caught();
    let_go();
    HAS("Z\",\"logger\":\"runtime\",\"msg\":\"actor crashed\"}\n");
    HAS("Z\",\"level\":\"error\",\"logger\":\"runtime\",\"msg\":\"gave up\"}\n"); /* in the order of all lines */
    HAS("Z\",\"logger\":\"runtime\",\"level\":\"error\"}\n");
    HAS("\nno object\n");
}

/* A store that can't take everything is a warning; that it can again is worth a line, and none for those who asked for
 * warnings alone. */
static const char *told_of_states(enum log_level level)
{
    struct env *env = env_real();
    struct telemetry *telemetry =
        telemetry_create(&(struct telemetry_options){.shards = 1, .now = now_of, .context = env});
    TEST_ASSERT(telemetry != NULL);
    telemetry_install(telemetry);
    catch_lines();
    log_open(level);
    log_follow(telemetry);
    TELEMETRY(STORE_STATE, 1, DIM(COMPONENT, "store"), DIM(REASON, "tight"));
    TELEMETRY(STORE_STATE, 1, DIM(COMPONENT, "store"), DIM(REASON, "open"));
    TELEMETRY(STORE_STATE, 1, DIM(COMPONENT, "store"), DIM(REASON, "failed"));
    TELEMETRY(STORE_COMMIT, 1, DIM(OUTCOME, "ok"));
    caught();
    let_go();
    telemetry_destroy(telemetry);
    return lines;
}

/* With both states. */
static void test_refused_changes_of_jobs_JOB_324(void)
{
    struct telemetry *telemetry =
        telemetry_create(&(struct telemetry_options){.shards = 1, .now = now_of, .context = env_real()});
    TEST_ASSERT(telemetry != NULL);
    telemetry_install(telemetry);
    catch_lines();
    log_open(LOG_WARN);
    log_follow(telemetry);
    TELEMETRY(JOB_REFUSED, 1, DIM(EVENT, "job.succeeded"), DIM(JOB_ID, "the-job"),
              DIM(CURRENT_STATE, "QUEUED"), DIM(NEXT_STATE, "SUCCEEDED"));
    caught();
    let_go();
    telemetry_destroy(telemetry);
    HAS("\"level\":\"warn\"");
    HAS("job.transition_refused");
    HAS("\"job_id\":\"the-job\"");
    HAS("\"current_state\":\"QUEUED\"");
    HAS("\"next_state\":\"SUCCEEDED\"");
}

static void test_states_of_the_store(void)
{
    told_of_states(LOG_INFO);
    const char *tight = strstr(lines, "\"level\":\"warn\""), *open = strstr(lines, "\"level\":\"info\"");
    HAS("\"msg\":\"store.state\"");
    TEST_ASSERT_(tight && open && tight < open, "%s", lines);
    const char *failed = strstr(open, "\"level\":\"warn\"");
    TEST_ASSERT_(failed != NULL, "%s", lines);
    TEST_CHECK(strstr(tight, "\"reason\":\"tight\"") < open && strstr(open, "\"reason\":\"open\"") < failed);
    TEST_CHECK(strstr(failed, "\"reason\":\"failed\"") != NULL);
    TEST_CHECK(strstr(lines, "store.commit") == NULL);
    told_of_states(LOG_WARN);
    HAS("\"reason\":\"tight\"");
    HAS("\"reason\":\"failed\"");
    TEST_CHECK_(strstr(lines, "\"reason\":\"open\"") == NULL, "%s", lines);
}

/* Nobody reads: writing goes on at once, and says later how much was lost. */
static void test_a_full_pipe_stops_nobody(void)
{
    catch_lines();
    log_open(LOG_INFO);
    for (int i = 0; i < 10000; i++)
        LOG(LOG_INFO, "boot", "a line that nobody reads", {"i", NULL, i});
    size_t read = strlen(caught());
    TEST_CHECK(read > 4096 && read < 10000 * 50);
    LOG(LOG_INFO, "boot", "somebody reads again", {"i", NULL, 0});
    caught();
    let_go();
    HAS("lines were dropped because standard error was full\",\"count\":");
    HAS("somebody reads again");
}

/* ---- secrets ---- */

static void test_secrets_are_masked_wherever_a_line_comes_from(void)
{
    static const char *const secret[] = {
        "password", "db_password", "Secret", "client_secret", "token",  "access_token", "Authorization",
        "api_key",  "x-api-key",   "apikey", "private_key",   "cookie", "credentials",  "master_key"};
    static const char *const plain[] = {"tokens", "token_count", "author", "key", "keys",
                                        "kid",    "path",        "name",   ""};
    for (size_t i = 0; i < sizeof(secret) / sizeof(*secret); i++)
        TEST_CHECK_(log_secret(secret[i], strlen(secret[i])), "%s", secret[i]);
    for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
        TEST_CHECK_(!log_secret(plain[i], strlen(plain[i])), "%s", plain[i]);
    catch_lines();
    log_open(LOG_INFO);
    LOG(LOG_INFO, "t", "fields", {"password", "hunter2", 0}, {"pin_secret", NULL, 1234}, {"tokens", NULL, 5});
#define LINE \
    "{\"level\":\"info\",\"msg\":\"nested\",\"a\":{\"token\":[1,{\"x\":\"hunter2\"}],\"b\":\"c\"},\"d\":1}"
    log_line(LINE, sizeof(LINE) - 1);
    LOG(LOG_INFO, "t", "header", {"said", "Authorization: Bearer hunter2 and more", 0});
    LOG(LOG_INFO, "t", "quotes", {"said", "a \"password\": is no member", 0});
    caught();
    let_go();
    TEST_CHECK_(strstr(lines, "hunter2") == NULL && strstr(lines, "1234") == NULL, "%s", lines);
    HAS("\"password\":\"***\",\"pin_secret\":\"***\",\"tokens\":5}\n");
    HAS("\"a\":{\"token\":\"***\",\"b\":\"c\"},\"d\":1}\n");
    HAS("\"said\":\"Authorization: Bearer *** and more\"}\n");
    HAS("\"said\":\"a \\\"password\\\": is no member\"}\n");
}

static void put_line(const char *line)
{
    log_line(line, strlen(line));
}

/* ---- for people, for the journal ---- */

static void test_words_for_people(void)
{
    catch_lines();
    log_open(LOG_DEBUG);
    log_set_text(true);
    LOG(LOG_WARN, "boot", "all is well", {"reason", "because of this", 0}, {"n", NULL, 7}, {"who", "me", 0},
        {"none", "", 0}, {"token", "hunter2", 0});
    put_line("{\"level\":\"error\",\"msg\":\"actor crashed\",\"event\":{\"a\":[1,2]}}");
    caught();
    log_set_text(false);
    let_go();
    HAS("Z WARN  boot: all is well reason=\"because of this\" n=7 who=me none=\"\" token=***\n");
    HAS("Z ERROR runtime: actor crashed event={\"a\":[1,2]}\n");
    TEST_CHECK(lines[0] == '2');
}

static void test_lines_of_the_journal_have_their_priority(void)
{
    char stream[64];
    struct stat s;
    catch_lines();
    log_open(LOG_DEBUG);
    TEST_ASSERT(fstat(STDERR_FILENO, &s) == 0);
    snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)s.st_dev, (unsigned long long)s.st_ino);
    log_set_journal(stream);
    LOG(LOG_ERROR, "t", "e", {"n", NULL, 1});
    LOG(LOG_WARN, "t", "w", {"n", NULL, 1});
    LOG(LOG_INFO, "t", "i", {"n", NULL, 1});
    LOG(LOG_DEBUG, "t", "d", {"n", NULL, 1});
    log_set_journal("1:2"); /* somebody else's */
    LOG(LOG_ERROR, "t", "other", {"n", NULL, 1});
    log_set_journal(NULL);
    caught();
    let_go();
    const char *at = lines;
    static const char *const begin[] = {"<3>{", "<4>{", "<6>{", "<7>{", "{\"ts\""};
    for (size_t i = 0; i < 5; i++) {
        TEST_CHECK_(strncmp(at, begin[i], strlen(begin[i])) == 0, "%.40s", at);
        at = strchr(at, '\n') + 1;
    }
}

/* ---- the level ---- */

static void test_the_level_changes_while_telemetry_is_followed(void)
{
    struct env *env = env_real();
    struct telemetry *telemetry =
        telemetry_create(&(struct telemetry_options){.shards = 1, .now = now_of, .context = env});
    TEST_ASSERT(telemetry != NULL);
    telemetry_install(telemetry);
    catch_lines();
    log_open(LOG_INFO);
    log_follow(telemetry);
    TELEMETRY(STORE_COMMIT, 1, DIM(OUTCOME, "one"));
    LOG(LOG_DEBUG, "t", "debug one", {"n", NULL, 1});
    log_set_level(LOG_DEBUG);
    TEST_CHECK(log_level_here() == LOG_DEBUG);
    TELEMETRY(STORE_COMMIT, 1, DIM(OUTCOME, "two"));
    LOG(LOG_DEBUG, "t", "debug two", {"n", NULL, 1});
    log_set_level(LOG_ERROR);
    TELEMETRY(STORE_COMMIT, 1, DIM(OUTCOME, "three"));
    TELEMETRY(STORE_STATE, 1, DIM(COMPONENT, "store"), DIM(REASON, "failed"));
    LOG(LOG_WARN, "t", "warn three", {"n", NULL, 1});
    put_line("{\"level\":\"warn\",\"msg\":\"warn four\"}");
    LOG(LOG_ERROR, "t", "error three", {"n", NULL, 1});
    caught();
    let_go();
    telemetry_destroy(telemetry);
    HAS("\"outcome\":\"two\"");
    HAS("debug two");
    HAS("error three");
    static const char *const quiet[] = {"\"one\"", "debug one",  "\"three\"",
                                        "failed",  "warn three", "warn four"};
    for (size_t i = 0; i < sizeof(quiet) / sizeof(*quiet); i++)
        TEST_CHECK_(strstr(lines, quiet[i]) == NULL, "'%s' in %s", quiet[i], lines);
}

/* ---- readers that don't read ---- */

static void *write_many(void *arg)
{
    for (int i = 0; i < 5000; i++)
        LOG(LOG_INFO, "boot", "a line that nobody reads", {"i", NULL, i});
    return arg;
}

/* Several threads at the edge of a full pipe: none of them may wait for its reader. */
static void test_a_full_pipe_stops_no_thread(void)
{
    pthread_t threads[4];
    catch_lines();
    log_open(LOG_INFO);
    for (int i = 0; i < 4; i++)
        TEST_ASSERT(pthread_create(&threads[i], NULL, write_many, NULL) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    uint64_t before = log_dropped();
    size_t whole = 0;
    for (const char *at = caught(); (at = strchr(at, '\n')); at++)
        whole++;
    LOG(LOG_INFO, "boot", "somebody reads again", {"i", NULL, 0});
    caught();
    let_go();
    TEST_CHECK_(before + whole == 20000, "%llu dropped, %zu written", (unsigned long long)before, whole);
    TEST_CHECK(log_dropped() == 0);
    char count[64];
    snprintf(count, sizeof(count), "\"count\":%llu}\n", (unsigned long long)before);
    HAS(count);
}

static void test_a_full_socket_stops_nobody(void)
{
    int ends[2];
    TEST_ASSERT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    saved = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    log_open(LOG_INFO);
    for (int i = 0; i < 20000; i++)
        LOG(LOG_INFO, "boot", "a line that nobody reads", {"i", NULL, i});
    TEST_CHECK(log_dropped() > 0);
    close(ends[0]); /* nor does one that is gone end the process */
    LOG(LOG_INFO, "boot", "nobody", {"i", NULL, 0});
    dup2(saved, STDERR_FILENO);
    close(saved);
}

TEST_LIST
= {
    {"log: refused changes of jobs (JOB-324)", test_refused_changes_of_jobs_JOB_324},
    {"a line is one object", test_a_line_is_one_object},
    {"lines below the level are left out", test_lines_below_the_level_are_left_out},
    {"a line that is too long keeps its form", test_a_line_that_is_too_long_keeps_its_form},
    {"a line that becomes too long is cut", test_a_line_that_becomes_too_long_is_cut},
    {"the runtime's lines get the time", test_the_runtimes_lines_get_the_time},
    {"a store's states are lines, each at its level", test_states_of_the_store},
    {"D10 a full pipe stops nobody", test_a_full_pipe_stops_nobody},
    {"D10 a full pipe stops no thread", test_a_full_pipe_stops_no_thread},
    {"D10 a full socket stops nobody", test_a_full_socket_stops_nobody},
    {"secrets are masked wherever a line comes from", test_secrets_are_masked_wherever_a_line_comes_from},
    {"words for people", test_words_for_people},
    {"lines of the journal have their priority", test_lines_of_the_journal_have_their_priority},
    {"the level changes while telemetry is followed", test_the_level_changes_while_telemetry_is_followed},
    {NULL, NULL},
};
