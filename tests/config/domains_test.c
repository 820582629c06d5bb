#include "acutest.h"

#include <string.h>

#include "actors/jobs.h"
#include "config/domains.h"

static struct options options;
static char text[512];

/* Settings of the jobs' domain with this on the command line. */
static struct jobs_settings with(const char *argument)
{
    static char words[3][128];
    char *argv[] = {words[0], words[1], argument ? words[2] : NULL, NULL}, *environment[] = {NULL};
    strcpy(words[0], "coppice");
    strcpy(words[1], "serve");
    if (argument)
        strcpy(words[2], argument);
    TEST_ASSERT_(options_parse(&options, argument ? 3 : 2, argv, environment, text, sizeof(text)) == 0, "%s",
                 text);
    domains_configure(&options);
    return jobs_settings();
}

static bool same(const struct jobs_settings *a, const struct jobs_settings *b)
{
    return a->workers == b->workers && a->concurrency == b->concurrency && a->outside == b->outside &&
           a->poll_us == b->poll_us && a->lease_us == b->lease_us && a->heartbeat_us == b->heartbeat_us &&
           a->speed_ppm == b->speed_ppm && a->should_fail_ppm == b->should_fail_ppm &&
           a->runtime_max_ms == b->runtime_max_ms && a->payload_max == b->payload_max &&
           a->types == b->types && a->priorities == b->priorities && a->queue_max == b->queue_max &&
           a->active_max == b->active_max && a->active_queues == b->active_queues &&
           a->client_running_max == b->client_running_max && a->retry_max == b->retry_max &&
           a->retry_auto == b->retry_auto && a->backoff_base_us == b->backoff_base_us &&
           a->backoff_most_us == b->backoff_most_us && a->kept_us == b->kept_us;
}

#define CHECK_SETS(argument, field, wanted)                                                     \
    do {                                                                                        \
        struct jobs_settings set = with(argument);                                              \
        TEST_CHECK_(set.field == (wanted), "%s: %s is %llu", argument, #field,                  \
                    (unsigned long long)set.field);                                             \
        set.field = jobs_defaults.field;                                                        \
        TEST_CHECK_(same(&set, &jobs_defaults), "%s changes nothing but %s", argument, #field); \
    } while (0)

static void test_the_defaults_are_those_of_the_specification(void)
{
    struct jobs_settings set = with(NULL);
    TEST_CHECK(same(&set, &jobs_defaults));
    TEST_CHECK(set.retry_max == 3 && set.queue_max == 10000 && set.active_max == 20000);
    TEST_CHECK(set.runtime_max_ms == 120000 && set.payload_max == 262144 && set.should_fail_ppm == 200000);
    TEST_CHECK(set.lease_us == 30000000 && set.heartbeat_us == 5000000);
    TEST_CHECK(set.backoff_base_us == 1000000 && set.backoff_most_us == 60000000 && !set.retry_auto);
    TEST_CHECK(set.kept_us == UINT64_C(30) * 86400 * 1000000 && set.types == 7 && set.speed_ppm == 1000000);
}

/* JOB-442..JOB-445, JOB-448..JOB-450, JOB-452, JOB-453; JOB-273, JOB-274, JOB-287, JOB-288: by our name and by theirs. */
static void test_each_key_sets_its_field_and_no_other(void)
{
    CHECK_SETS("--workers-count=0", workers, 0);
    CHECK_SETS("--workers-outside", outside, true);
    CHECK_SETS("--workers-max-concurrency=2", concurrency, 2);
    CHECK_SETS("--workers-poll-interval=250ms", poll_us, 250000);
    CHECK_SETS("--workers-poll-interval-ms=250", poll_us, 250000);
    CHECK_SETS("--workers-lease-timeout=1m", lease_us, 60000000);
    CHECK_SETS("--workers-lease-timeout-ms=6000", lease_us, 6000000);
    CHECK_SETS("--workers-heartbeat-interval=1s", heartbeat_us, 1000000);
    CHECK_SETS("--workers-heartbeat-interval-ms=100", heartbeat_us, 100000);
    CHECK_SETS("--jobs-simulation-speed=2.5", speed_ppm, 2500000);
    CHECK_SETS("--jobs-should-fail-probability=0", should_fail_ppm, 0);
    CHECK_SETS("--jobs-should-fail-probability=1", should_fail_ppm, 1000000);
    CHECK_SETS("--limits-max-runtime=5s", runtime_max_ms, 5000);
    CHECK_SETS("--limits-max-runtime-ms=5000", runtime_max_ms, 5000);
    CHECK_SETS("--limits-max-job-payload=64KiB", payload_max, 65536);
    CHECK_SETS("--limits-max-job-payload-bytes=65536", payload_max, 65536);
    CHECK_SETS("--jobs-allowed-types=EXECUTE", types, 1u << JOB_EXECUTE);
    CHECK_SETS("--jobs-allowed-types=EMIT_EVENT,DEFERRED", types, 1u << JOB_EMIT_EVENT | 1u << JOB_DEFERRED);
    CHECK_SETS("--jobs-priorities", priorities, true);
    CHECK_SETS("--limits-max-queue-size=5", queue_max, 5);
    CHECK_SETS("--limits-max-active-jobs=5", active_max, 5);
    CHECK_SETS("--limits-active-jobs-policy=queue", active_queues, true);
    CHECK_SETS("--jobs-client-concurrency=7", client_running_max, 7);
    CHECK_SETS("--jobs-fairness=clients", fair, true);
    CHECK_SETS("--retry-max=1", retry_max, 1);
    CHECK_SETS("--retry-auto", retry_auto, true);
    CHECK_SETS("--retry-backoff-base=2s", backoff_base_us, 2000000);
    CHECK_SETS("--retry-backoff-base-ms=5", backoff_base_us, 5000);
    CHECK_SETS("--retry-backoff-max=2m", backoff_most_us, 120000000);
    CHECK_SETS("--retry-backoff-max-ms=10", backoff_most_us, 10000);
    CHECK_SETS("--retention-jobs=1h", kept_us, UINT64_C(3600) * 1000000);
    CHECK_SETS("--retention-jobs-days=2", kept_us, UINT64_C(2) * 86400 * 1000000);
}

TEST_LIST
= {
    {"the defaults are those of the specification", test_the_defaults_are_those_of_the_specification},
    {"JOB-442..JOB-453 each key sets its field and no other", test_each_key_sets_its_field_and_no_other},
    {NULL, NULL},
};
