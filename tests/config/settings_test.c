#include "acutest.h"

#include <inttypes.h>
#include <string.h>

#include "config/settings.h"
#include "http/json_text.h"

#define ARGUMENTS_MAX 16

static struct file file;
static struct options options;
static char text[1024];

/* Settings of a file, and a command line; both lists end with NULL. What is borrowed outlives the call. */
static int parse(const char *settings, const char *const arguments[], const char *const environment[])
{
    static char copies[2 * ARGUMENTS_MAX][128];
    char *argv[ARGUMENTS_MAX + 1] = {0}, *env[ARGUMENTS_MAX + 1] = {0};
    int argc = 0;
    argv[argc++] = strcpy(copies[0], "coppice");
    for (; *arguments; arguments++, argc++)
        argv[argc] = strcpy(copies[argc], *arguments);
    for (size_t i = 0; environment[i]; i++)
        env[i] = strcpy(copies[ARGUMENTS_MAX + i], environment[i]);
    text[0] = 0;
    memset(&options, 0, sizeof(options));
    if (!file_read_text(&file, "x.json", settings, strlen(settings), text, sizeof(text)))
        return EXIT_CONFIG;
    return options_parse_with(&file, &options, argc, argv, env, text, sizeof(text));
}

#define ARGS(...)  ((const char *const[]){__VA_ARGS__, NULL})
#define CHECK(...) ((const char *const[]){"config", "check", ##__VA_ARGS__, NULL})
#define NONE       ((const char *const[]){NULL})

#define CHECK_REFUSED(settings, arguments, says)                                 \
    do {                                                                         \
        TEST_CHECK_(parse(settings, arguments, NONE) == EXIT_CONFIG, "refused"); \
        TEST_CHECK_(strstr(text, says) != NULL, "'%s' says '%s'", text, says);   \
    } while (0)
#define CHECK_TAKEN(settings, arguments) \
    TEST_CHECK_(parse(settings, arguments, NONE) == 0, "taken, but: %s", text)

static void test_flags_over_environment_over_file_over_defaults(void)
{
    const char *settings = "{\"schedulers\": 2, \"slice\": \"2ms\", \"log.level\": \"warn\",\n"
                           "\"store\": {\"dir\": \"/s\"}, \"guardian\": true}";
    TEST_ASSERT_(parse(settings, ARGS("serve", "--schedulers", "4", "--no-guardian"),
                       ARGS("COPPICE_SLICE=3ms", "COPPICE_SCHEDULERS=3")) == 0,
                 "%s", text);
    TEST_CHECK(options.schedulers == 4 && options.slice == 3 * MS && options.log_level == LOG_WARN);
    TEST_CHECK(strcmp(options.store_dir, "/s") == 0 && !options.guardian && options.preemption);
    TEST_CHECK(options.sources[OPTION_schedulers].kind == SOURCE_FLAG);
    TEST_CHECK(options.sources[OPTION_slice].kind == SOURCE_ENVIRONMENT);
    TEST_CHECK(options.sources[OPTION_log_level].kind == SOURCE_FILE);
    TEST_CHECK(options.sources[OPTION_store_dir].line == 2 &&
               strcmp(options.sources[OPTION_store_dir].file, "x.json") == 0);
    TEST_CHECK(options.sources[OPTION_preemption].kind == SOURCE_DEFAULT);
}

static void test_keys_of_the_file(void)
{
    CHECK_REFUSED("{\n\"store\": {\n\"dirr\": \"x\"}}", ARGS("serve"),
                  "x.json:3: there is no setting 'store.dirr'; did you mean store.dir?");
    CHECK_REFUSED("{\"frobnicate\": 1}", ARGS("serve"),
                  "there is no setting 'frobnicate'; 'coppice config show'");
    /* options of one command line, and the file's own name, are no settings */
    CHECK_REFUSED("{\"json\": true}", ARGS("serve"), "there is no setting 'json'");
    CHECK_REFUSED("{\"config\": \"y\"}", ARGS("serve"), "there is no setting 'config'");
    CHECK_REFUSED("{\"slice\": 4}", ARGS("serve"),
                  "x.json:1: slice is a number; it must be a text: a duration");
    CHECK_REFUSED("{\"schedulers\": \"4\"}", ARGS("serve"),
                  "schedulers is a text; it must be a number: a whole");
    CHECK_REFUSED("{\"guardian\": \"true\"}", ARGS("serve"), "guardian is a text; it must be true or false");
    CHECK_REFUSED("{\"schedulers\": 1.5}", ARGS("serve"),
                  "x.json:1: schedulers is '1.5'; it must be a whole number");
    CHECK_REFUSED("{\"schedulers\": 65}", ARGS("serve"),
                  "schedulers is '65'; it must be a whole number from 0 to 64");
    CHECK_REFUSED("{\"environment\": \"test\"}", ARGS("serve"), "it must be dev, stage or prod");
    /* a later file, or the same key of conf.d, takes the earlier one's place: see file_test */
    CHECK_TAKEN("{\"url\": \"unix:/x\", \"token.file\": \"/t\"}", ARGS("serve"));
    CHECK_TAKEN("{\"http.listen\": [\"127.0.0.1:1\", \"unix:/x\"]}", ARGS("serve"));
    TEST_CHECK(strcmp(options.http_listen, "127.0.0.1:1,unix:/x") == 0);
    /* what another command's settings are worth is none of this one's business; unknown keys are */
    CHECK_TAKEN("{\"slice\": \"9h\"}", ARGS("tree"));
    CHECK_REFUSED("{\"operator.lisen\": \"9h\"}", ARGS("tree"), "did you mean operator.listen?");
}

/* A command that asks a server is not blind because somebody edits the file. */
static void test_what_cant_be_used_is_left_out(void)
{
    static const char settings[] =
        "{\"operator.lisen\": \"x\", \"operator\": {\"listen\": \"unix:/o\", \"idle\": 1},\n"
        "\"store.dir\": 7, \"url\": \"unix:/u\"}";
    char *argv[] = {"coppice", "tree", NULL}, *environment[] = {NULL}, complaint[256] = "";
    TEST_ASSERT_(file_read_text(&file, "x.json", settings, sizeof(settings) - 1, text, sizeof(text)), "%s",
                 text);
    TEST_CHECK(options_parse_forgiving(&file, &options, 2, argv, environment, text, sizeof(text), complaint,
                                       sizeof(complaint)) == 0);
    TEST_CHECK_(strstr(complaint, "x.json:1: there is no setting 'operator.lisen'; did you mean") != NULL,
                "%s", complaint);
    TEST_CHECK(strcmp(options.operator_listen, "unix:/o") == 0 && strcmp(options.url, "unix:/u") == 0);
    TEST_CHECK(strcmp(options.store_dir, "coppice-data") == 0);
    TEST_CHECK(options.sources[OPTION_store_dir].kind == SOURCE_DEFAULT);
    /* the first complaint stays, and the command line is refused as ever */
    argv[1] = "tre";
    TEST_CHECK(options_parse_forgiving(&file, &options, 2, argv, environment, text, sizeof(text), complaint,
                                       sizeof(complaint)) == EXIT_USAGE);
}

static void test_ctl_068_plain_http_on_a_public_address(void)
{
    static const char *const public[] = {"0.0.0.0:80", "*:80", "[::]:80", "10.1.2.3:8080",
                                         "127.0.0.1:1,192.0.2.7:80"};
    static const char *const private[] = {"127.0.0.1:80", "[::1]:80", "unix:/x", "localhost:80,unix:/y"};
    for (size_t i = 0; i < sizeof(public) / sizeof(*public); i++) {
        CHECK_REFUSED("{}", CHECK("--env", "prod", "--http-listen", public[i]), "(CTL-068)");
        CHECK_REFUSED("{}", ARGS("serve", "--env=stage", "--http-listen", public[i]), "(CTL-068)");
        CHECK_TAKEN("{}", CHECK("--env", "dev", "--http-listen", public[i]));
        CHECK_TAKEN("{}", CHECK("--env", "prod", "--tls-terminated-by-proxy", "--http-listen", public[i]));
        CHECK_TAKEN("{}",
                    CHECK("--env", "prod", "--tls-certificate=c", "--tls-key=k", "--http-listen", public[i]));
    }
    for (size_t i = 0; i < sizeof(private) / sizeof(*private); i++)
        CHECK_TAKEN("{}", CHECK("--env", "prod", "--http-listen", private[i]));
    CHECK_REFUSED("{}", CHECK("--http-listen", "example.org:80"),
                  "--http-listen is 'example.org:80'; it must be");
    CHECK_REFUSED("{}", CHECK("--http-listen", "127.0.0.1:65536"), "with a port from 0 to 65535");
    CHECK_REFUSED(
        "{}", CHECK("--tls-key", "k"),
        "--tls-key stands alone; tls.certificate and tls.key go together, and tls.certificate is missing");
    CHECK_REFUSED("{}", CHECK("--tls-certificate", "k"), "tls.key is missing");
    CHECK_REFUSED("{}", CHECK("--tls-client-ca", "k"), "--tls-client-ca needs tls.certificate");
}

/* JOB-454: what several settings mean together is refused where the value stands. */
static void test_refusals_name_the_place(void)
{
    CHECK_REFUSED("{\n\"operator\": {\"listen\": \"0.0.0.0:7070\"}}", CHECK(),
                  "x.json:2: operator.listen is '0.0.0.0:7070'; it must be");
    CHECK_REFUSED("{\n\n\"http.listen\": [\"*:80\"]}", CHECK("--env=prod"),
                  "x.json:3: http.listen is '*:80', which other machines reach");
    CHECK_REFUSED("{\"tls.key\": \"k\"}", CHECK(), "x.json:1: tls.key stands alone");
    CHECK_REFUSED("{\"keys\": {\n\"overlap\": \"7h\"}}", CHECK(), "x.json:2: keys.overlap is 7h;");
    CHECK_REFUSED("{\"runaway\": \"1ms\", \"slice\": \"2ms\"}", CHECK(), "x.json:1: runaway is 1000us");
    TEST_CHECK(parse("{}", CHECK(), ARGS("COPPICE_HTTP_LISTEN=nowhere")) == EXIT_CONFIG);
    TEST_CHECK_(strncmp(text, "COPPICE_HTTP_LISTEN is 'nowhere'; ", 34) == 0, "%s", text);
}

static void test_lists_are_for_what_may_be_several(void)
{
    CHECK_TAKEN("{\"http.listen\": [\"127.0.0.1:1\", \"127.0.0.1:2\"]}", CHECK());
    TEST_CHECK(strcmp(options.http_listen, "127.0.0.1:1,127.0.0.1:2") == 0);
    CHECK_TAKEN("{\"adapters\": [\"clock\"], \"http.csp.script_src\": [\"'self'\"]}", CHECK());
    CHECK_REFUSED("{\"store.dir\": [\"a\", \"b\"]}", CHECK(),
                  "x.json:1: store.dir is a list; it must be a text");
    CHECK_REFUSED("{\"auth.issuer\": [\"a\"]}", CHECK(), "auth.issuer is a list; it must be a text");
    CHECK_REFUSED("{\"schedulers\": [\"2\"]}", CHECK(), "schedulers is a list; it must be a number");
    CHECK_REFUSED("{\"log.level\": [\"info\"]}", CHECK(), "log.level is a list; it must be a text");
}

static void test_an_address_is_listened_at_once(void)
{
    CHECK_REFUSED("{}", CHECK("--http-listen", "127.0.0.1:7070"),
                  "--http-listen is '127.0.0.1:7070' and operator.listen is '127.0.0.1:7070'");
    CHECK_REFUSED("{}", CHECK("--http-listen", "*:7070"), "one address can be listened at once");
    CHECK_REFUSED("{}", CHECK("--http-listen", "unix:/run/a,unix:/run/a"), "which has one address twice");
    CHECK_TAKEN("{}", CHECK("--http-listen", "127.0.0.1:7071,[::]:7070"));
}

static void test_ctl_106_107_108_cadence_of_each_environment(void)
{
    static const struct {
        const char *environment, *good, *bad;
    } rows[] = {{"dev", "30d", "31d"}, {"stage", "14d", "15d"}, {"prod", "7d", "8d"}};
    char settings[128];
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        CHECK_TAKEN("{}", CHECK("--env", rows[i].environment, "--keys-rotation-cadence", rows[i].good));
        CHECK_REFUSED("{}", CHECK("--env", rows[i].environment, "--keys-rotation-cadence", rows[i].bad),
                      "--keys-rotation-cadence is ");
        snprintf(settings, sizeof(settings),
                 "{\"environment\": \"%s\", \"keys\": {\"rotation_cadence\": \"%ss\"}}", rows[i].environment,
                 "2592001"); /* 30 days and a second */
        CHECK_REFUSED(settings, CHECK(), "(CTL-106, CTL-107, CTL-108)");
    }
}

static void test_ctl_105_no_more_keys_than_are_kept_in_mind(void)
{
    CHECK_TAKEN("{}", CHECK("--keys-rotation-cadence", "1h"));
    CHECK_REFUSED("{}", CHECK("--keys-rotation-cadence", "59m59s"), "it must be a duration from 1h");
}

static void count_warnings(void *context, const char *sentence)
{
    int *count = context;
    *count +=
        strstr(sentence, "CTL-085") != NULL && strstr(sentence, "keys.rotation_cadence is 8h; below 8h");
}

static int warnings(void)
{
    int count = 0;
    options_warn(&options, count_warnings, &count);
    return count;
}

static void test_ctl_085_cadence_and_overlap_against_the_life_of_tokens(void)
{
    CHECK_TAKEN("{}", CHECK());
    TEST_CHECK(options.keys_rotation_cadence == 6 * 3600 * S && options.keys_overlap == (8 * 3600 + 120) * S);
    TEST_CHECK(warnings() == 0);
    CHECK_TAKEN("{}", CHECK("--keys-rotation-cadence", "7h59m59s"));
    TEST_CHECK(warnings() == 0);
    CHECK_TAKEN("{}", CHECK("--keys-rotation-cadence", "8h"));
    TEST_CHECK(warnings() == 1);
    CHECK_REFUSED("{}", CHECK("--keys-rotation-cadence", "8h", "--auth-strict-rotation"), "(CTL-085)");
    CHECK_TAKEN("{}", CHECK("--keys-overlap", "8h"));
    CHECK_REFUSED("{}", CHECK("--keys-overlap", "7h59m59s"), "it must be at least 8h");
}

static void test_ctl_111_history_of_keys(void)
{
    CHECK_TAKEN("{}", CHECK("--keys-history", "90d"));
    CHECK_REFUSED("{}", CHECK("--keys-history", "89d23h"), "it must be a duration from 90d");
}

static void test_cadence_overlap_and_history_within_the_keys_there_may_be(void)
{
    CHECK_TAKEN("{}", CHECK("--keys-rotation-cadence", "1h", "--keys-overlap", "33h59m"));
    CHECK_REFUSED("{}", CHECK("--keys-rotation-cadence", "1h", "--keys-overlap", "34h"),
                  "keys.rotation_cadence is 1h; that makes 36 valid keys at a time, of at most 35");
    CHECK_TAKEN("{}", CHECK("--keys-rotation-cadence", "1h", "--keys-history", "127d14h"));
    CHECK_REFUSED(
        "{\"keys\": {\n\"history\": \"127d15h\"}}", CHECK("--keys-rotation-cadence", "1h"),
        "x.json:2: keys.history is 127d15h and keys.rotation_cadence is 1h; that makes 3073 keys that "
        "are kept, of at most 3072");
}

static void test_ctl_115_a_release_leaves_nothing_to_defaults(void)
{
    static const char *const environments[] = {"dev", "stage", "prod"};
    for (size_t i = 0; i < 3; i++) {
        const char *env = environments[i];
        CHECK_TAKEN("{}", CHECK("--env", env));
        CHECK_REFUSED("{}", CHECK("--env", env, "--release"),
                      "must set keys.rotation_cadence, keys.overlap, keys.revocation_sla");
        CHECK_REFUSED("{\"keys\": {\"overlap\": \"9h\", \"revocation_sla\": \"1m\"}}",
                      CHECK("--release", "--env", env), "must set keys.rotation_cadence; ");
        CHECK_TAKEN(
            "{\"keys\": {\"rotation_cadence\": \"6h\", \"overlap\": \"9h\", \"revocation_sla\": \"1m\", "
            "\"bootstrap_rehearsed\": \"2026-11-18\"}}",
            CHECK("--release", "--env", env));
    }
}

static void test_ctl_120_a_release_to_prod_was_rehearsed(void)
{
#define DECIDED \
    "--keys-rotation-cadence", "6h", "--keys-overlap", "9h", "--keys-revocation-sla", "1m", "--release"
    static const char *const bad[] = {"yes",        "2026-13-01", "2026-00-01", "2026-01-32",
                                      "2026-1-1",   "2026-01-00", "20260101",   "2026-01-01T00:00:00Z",
                                      "2026-01-0x", "x026-01-01"};
    CHECK_TAKEN("{}", CHECK("--env", "prod"));
    CHECK_TAKEN("{}", CHECK("--env", "dev", DECIDED));
    CHECK_TAKEN("{}", CHECK("--env", "stage", DECIDED));
    CHECK_REFUSED("{}", CHECK("--env", "prod", DECIDED), "RB-015");
    static const char *const good[] = {"2026-11-18", "2026-01-01", "2026-10-31", "2026-12-09"};
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        CHECK_TAKEN("{}", CHECK("--env", "prod", DECIDED, "--keys-bootstrap-rehearsed", good[i]));
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        CHECK_REFUSED("{}", CHECK("--keys-bootstrap-rehearsed", bad[i]), "it must be a day");
}

static void test_ctl_149_scripts_of_the_user_interface(void)
{
    CHECK_TAKEN("{}", CHECK("--http-csp-script-src", "'self'"));
    CHECK_REFUSED("{}", CHECK("--http-csp-script-src", "'self' 'unsafe-inline'"), "(CTL-149)");
    CHECK_REFUSED("{}", CHECK("--http-csp-script-src", "'unsafe-eval'"), "(CTL-149)");
    CHECK_REFUSED("{}", CHECK("--http-csp-script-src", "'self' https://cdn.example.com"), "(CTL-149)");
    CHECK_TAKEN("{}", CHECK("--http-csp-script-src", "'self' https://cdn.example.com",
                            "--http-csp-approved-cdns", "https://cdn.example.com"));
    CHECK_REFUSED("{}",
                  CHECK("--http-csp-script-src", "'self' https://cdn.example.com.evil.org",
                        "--http-csp-approved-cdns", "https://cdn.example.com"),
                  "(CTL-149)");
    CHECK_REFUSED("{}", CHECK("--http-csp-approved-cdns", "'unsafe-inline'"), "it must be origins");
    CHECK_REFUSED("{}", CHECK("--http-csp-approved-cdns", "http://cdn.example.com"), "it must be origins");
    static char many[700] = "{\"http.csp.script_src\": \"";
    for (int i = 0; i < 40; i++)
        strcat(many, "'self' ");
    CHECK_REFUSED(strcat(many, "\"}"), CHECK(), "has more than 256 bytes");
}

static void test_ctl_151_embedding_needs_an_approved_use_case(void)
{
    CHECK_TAKEN("{}", CHECK());
    TEST_CHECK(strcmp(options.http_frame_options, "DENY") == 0);
    CHECK_REFUSED("{}", CHECK("--http-frame-options", "SAMEORIGIN"), "(CTL-151)");
    CHECK_TAKEN("{}",
                CHECK("--http-frame-options", "SAMEORIGIN", "--frame-embedding-approved-use-case", "kiosk"));
    CHECK_REFUSED("{}", CHECK("--http-frame-options", "ALLOW"), "it must be DENY or SAMEORIGIN");
}

static void test_issuers_and_origins(void)
{
    CHECK_REFUSED("{}", CHECK("--auth-jwks-file", "k"), "--auth-jwks-file needs auth.jwks.issuer");
    CHECK_REFUSED("{}", CHECK("--auth-jwks-file", "k", "--auth-jwks-issuer", "coppice"),
                  "built-in issuer's name");
    CHECK_TAKEN("{}", CHECK("--auth-jwks-file", "k", "--auth-jwks-issuer", "idp"));
    CHECK_TAKEN("{}", CHECK("--auth-jwks-url", "http://idp/k", "--auth-jwks-issuer", "idp"));
    CHECK_REFUSED("{}",
                  CHECK("--env", "prod", "--auth-jwks-url", "http://idp/k", "--auth-jwks-issuer", "idp"),
                  "must begin with https://");
    CHECK_TAKEN("{}", CHECK("--http-cors-origin", "https://app.example.com:8443"));
    char origin[270] = "https://"; /* as long as there can be one: it goes into every answer */
    memset(origin + 8, 'a', 253);
    strcpy(origin + 8 + 253, ":65535");
    CHECK_TAKEN("{}", CHECK("--http-cors-origin", origin));
    memset(origin + 8, 'a', 254);
    strcpy(origin + 8 + 254, ":65535");
    CHECK_REFUSED("{}", CHECK("--http-cors-origin", origin), "of at most 267 bytes");
    CHECK_REFUSED("{}", CHECK("--http-cors-origin", "*"), "it must be one origin");
    CHECK_REFUSED("{}", CHECK("--http-cors-origin", "https://app.example.com/"), "it must be one origin");
    CHECK_REFUSED("{}", CHECK("--http-cors-origin", "https://a.org\r\nX: y"), "it must be one origin");
}

static void test_amb_78_a_clock_ahead_is_for_dev(void)
{
    CHECK_TAKEN("{}", CHECK("--clock-offset", "89d"));
    CHECK_REFUSED("{}", CHECK("--clock-offset", "1s", "--env", "stage"), "--clock-offset is for dev");
    CHECK_REFUSED("{}", CHECK("--clock-offset", "1s", "--env", "prod"), "--clock-offset is for dev");
}

static void test_job_447_quotas_of_single_clients(void)
{
    CHECK_TAKEN("{\"limits\": {\"requests_per_minute\": 100,\n"
                "\"clients\": {\"018f5c8e-0000-7000-8000-000000000001\": {\"requests_per_minute\": 7}}}}",
                ARGS("serve"));
    CHECK_REFUSED("{\"limits.clients.018f5c8e-0000-7000-8000-000000000001.requests_per_minute\": \"7\"}",
                  ARGS("serve"), "it must be a whole number from 1 to 1000000");
    /* CTL-162: who is told to wait must have something to wait for */
    CHECK_REFUSED("{\"limits.clients.018f5c8e-0000-7000-8000-000000000001.requests_per_minute\": 0}",
                  ARGS("serve"), "is '0'; it must be a whole number from 1 to 1000000");
    CHECK_REFUSED(
        "{\"limits.clients.somebody.requests_per_minute\": 7}", ARGS("serve"),
        "x.json:1: limits.clients.somebody.requests_per_minute: 'somebody' must be a client's id, a UUID");
}

/* What the specification calls them, in whole numbers of the unit that the name says. */
static void test_a_setting_goes_by_its_other_name_too(void)
{
    CHECK_TAKEN(
        "{\"workers\": {\"lease_timeout_ms\": 40000}, \"auth.key_ttl_days\": 30,\n"
        "\"retention\": {\"jobs_days\": 7, \"revoked_keys_days\": 8}, \"auth.bootstrap_window_s\": 0}",
        ARGS("serve", "--limits-max-runtime-ms", "5000"));
    TEST_CHECK(options.workers_lease_timeout == 40 * S && options.auth_key_lifetime == 30 * DAY);
    TEST_CHECK(options.retention_jobs == 7 * DAY && options.retention_revoked_keys == 8 * DAY);
    TEST_CHECK(options.auth_bootstrap_window == 0 && options.limits_max_runtime == 5 * S);
    TEST_CHECK(options.sources[OPTION_auth_key_lifetime].kind == SOURCE_FILE);
    TEST_CHECK(options.sources[OPTION_limits_max_runtime].kind == SOURCE_FLAG);
    TEST_CHECK(parse("{\"retry.backoff_base_ms\": 1}", ARGS("serve"),
                     ARGS("COPPICE_RETRY_BACKOFF_BASE_MS=20")) == 0);
    TEST_CHECK(options.retry_backoff_base == 20 * MS);
    TEST_CHECK(
        parse("{}", ARGS("serve", "--retry-backoff-base=3s"), ARGS("COPPICE_RETRY_BACKOFF_BASE_MS=20")) == 0);
    TEST_CHECK(options.retry_backoff_base == 3 * S);
    CHECK_REFUSED(
        "{\"limits.max_runtime_ms\": 99}", ARGS("serve"),
        "x.json:1: limits.max_runtime_ms is '99'; it must be a whole number from 100 to 2592000000");
    CHECK_REFUSED("{\"limits.max_runtime_ms\": \"5s\"}", ARGS("serve"),
                  "limits.max_runtime_ms is a text; it must be a whole number from 100 to 2592000000");
    CHECK_REFUSED("{\"auth.key_ttl_days\": 1.5}", ARGS("serve"),
                  "auth.key_ttl_days is '1.5'; it must be a whole");
    CHECK_REFUSED("{\"retention.jobs_days\": 18446744073709551615}", ARGS("serve"),
                  "a whole number from 1 to 3650");
    CHECK_REFUSED("{\"limits.max_runtime_ms\": 2000,\n\"limits.max_runtime\": \"2s\"}", ARGS("serve"),
                  "x.json:2: limits.max_runtime was given in line 1 already, by its other name");
    CHECK_REFUSED("{\"limits.max_runtime\": \"2s\",\n\"limits.max_runtime_ms\": 2000}", ARGS("serve"),
                  "x.json:2: limits.max_runtime_ms was given in line 1 already, by its other name");
    CHECK_REFUSED("{}", ARGS("serve", "--retry-backoff-max-ms=x"),
                  "--retry-backoff-max-ms is 'x'; it must be a whole number from 0 to 2592000000");
}

static void test_numbers_with_a_fraction(void)
{
    CHECK_TAKEN("{\"jobs\": {\"should_fail_probability\": 0.123456, \"simulation_speed\": 1000}}",
                ARGS("serve"));
    TEST_CHECK(options.jobs_should_fail_probability == 123456 &&
               options.jobs_simulation_speed == 1000 * WHOLE);
    CHECK_TAKEN("{}", ARGS("serve", "--jobs-should-fail-probability=1", "--jobs-simulation-speed=0.5"));
    TEST_CHECK(options.jobs_should_fail_probability == WHOLE && options.jobs_simulation_speed == WHOLE / 2);
    static const char *const bad[] = {"1.1",  "-0.1", "0.1234567", ".5",   "0.",
                                      "1e-1", "0x1",  "",          "half", "18446744073709551616"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char flag[96];
        snprintf(flag, sizeof(flag), "--jobs-should-fail-probability=%s", bad[i]);
        CHECK_REFUSED("{}", ARGS("serve", flag), "it must be a number from 0.0 to 1.0, such as 0.2");
    }
    CHECK_REFUSED("{\"jobs.should_fail_probability\": \"0.5\"}", ARGS("serve"),
                  "is a text; it must be a number");
}

static void test_job_454_settings_of_jobs_that_cannot_be_used(void)
{
    CHECK_REFUSED(
        "{\"jobs\": {\"allowed_types\": [\"EXECUTE\", \"INSTANT\"]}}", CHECK(),
        "x.json:1: jobs.allowed_types names 'INSTANT'; it must be of EXECUTE, DEFERRED and EMIT_EVENT");
    CHECK_REFUSED("{\"jobs.allowed_types\": []}", CHECK(), "x.json:1: jobs.allowed_types is ''");
    CHECK_REFUSED("{\"jobs.allowed_types\": \",\"}", CHECK(), "jobs.allowed_types names no type");
    CHECK_REFUSED("{\"workers.heartbeat_interval_ms\": 30000}", CHECK(),
                  "x.json:1: workers.heartbeat_interval is 30s and workers.lease_timeout is 30s");
    CHECK_REFUSED("{\"workers\": {\"count\": 1024, \"max_concurrency\": 4}}", CHECK(),
                  "at most 4000 jobs at a time");
    CHECK_REFUSED("{\"limits.max_queue_size\": 0}", CHECK(),
                  "limits.max_queue_size is '0'; it must be a whole number from 1");
    CHECK_REFUSED("{\"retry.max\": 1001}", CHECK(),
                  "retry.max is '1001'; it must be a whole number from 0 to 1000");
    CHECK_REFUSED("{\"limits.max_job_payload_bytes\": 262145}", CHECK(),
                  "a whole number from 1024 to 262144");
    CHECK_REFUSED("{\"retry.maximum\": 3}", CHECK(), "x.json:1: there is no setting 'retry.maximum'");
    CHECK_REFUSED("{\"retry.max\": true}", CHECK(),
                  "x.json:1: retry.max is true or false; it must be a number");
}

static void test_ctl_081_templates_of_agents(void)
{
#define TEMPLATE(value) "{\"agent_templates\": {\"builder\": {\"max_token_seconds\": {\"C\": " value "}}}}"
    CHECK_TAKEN(TEMPLATE("3600"), CHECK());
    CHECK_TAKEN(TEMPLATE("14400"), CHECK());
    CHECK_TAKEN("{\"agent_templates.b-1_X.max_token_seconds.A\": 1}", ARGS("serve"));
    CHECK_TAKEN("{\"agent_templates.-_azAZ09.max_token_seconds.B\": 1}", ARGS("serve"));
    static const char *const outside[] = {"`", "{", "@", "[", "/", ":", "\u00e4"};
    for (size_t i = 0; i < sizeof(outside) / sizeof(*outside); i++) {
        char settings[96];
        snprintf(settings, sizeof(settings), "{\"agent_templates.x%s.max_token_seconds.A\": 1}", outside[i]);
        CHECK_REFUSED(settings, CHECK(), "must be 1 to 64 letters, digits, - and _");
    }
    CHECK_REFUSED(TEMPLATE("14401"), CHECK(), "it must be a whole number from 1 to 14400");
    CHECK_REFUSED(TEMPLATE("0"), CHECK(), "from 1 to 14400");
    CHECK_REFUSED(TEMPLATE("\"60\""), CHECK(), "from 1 to 14400");
    CHECK_REFUSED("{\"agent_templates.x.max_token_seconds.D\": 1}", CHECK(), "'D' must be A, B or C");
    CHECK_REFUSED("{\"agent_templates..max_token_seconds.A\": 1}", CHECK(),
                  "'' must be 1 to 64 letters, digits, - and _");
    CHECK_REFUSED("{\"agent_templates.x.max_token_seconds\": 1}", CHECK(), "there is no setting");
    CHECK_REFUSED("{\"agent_templates.x.max_token_seconds.A.B\": 1}", CHECK(), "there is no setting");
    CHECK_REFUSED("{\"agent_templates.x y.max_token_seconds.A\": 1}", CHECK(),
                  "'x y' must be 1 to 64 letters, digits, - and _");
}

static void test_ctl_083_amb_19_the_budget_of_tier_c_and_the_life_of_an_agents_token(void)
{
    char value[OPTION_VALUE_SIZE];
    CHECK_TAKEN("{}", CHECK());
    TEST_CHECK(options.timeouts_tier_c_total == 10985 * S);
    option_show(&option_table[OPTION_timeouts_tier_c_total], &options, value);
    TEST_CHECK(strcmp(value, "3h3m5s") == 0);
    CHECK_TAKEN("{\"timeouts.tier_c.total\": \"4h\"}", CHECK()); /* AMB-19: the cap itself is allowed */
    CHECK_REFUSED("{\"timeouts\": {\"tier_c\": {\"total\": \"14401s\"}}}", CHECK(), "(CTL-083)");
    CHECK_REFUSED("{}", CHECK("--timeouts-tier-c-total", "5h"), "--timeouts-tier-c-total is 5h");
}

static void test_ctl_027_the_versions_that_are_active(void)
{
    CHECK_TAKEN("{\"api.versions\": \"v1\"}", CHECK("--env", "prod"));
    CHECK_REFUSED("{\"api.versions\": \"v2\"}", CHECK(), "it must be v1");
    CHECK_REFUSED("{}", CHECK("--api-versions", ""), "it must be v1");
}

/* ---- what is shown ---- */

static char page[262144];

static const char *shown(enum source_kind source, bool json)
{
    struct json_sink sink;
    struct json writer;
    json_sink_init(&sink, page, sizeof(page) - 1, NULL, NULL);
    json_init(&writer, &sink);
    if (json)
        settings_write_json(&writer, &options, &file, &file, source);
    else
        settings_write_text(&sink, &options, &file, source);
    TEST_CHECK(sink.status == JSON_OK);
    page[sink.length] = 0;
    return page;
}

static void test_amb_79_every_default_is_reported_with_its_source(void)
{
    CHECK_TAKEN("{\"slice\": \"2ms\"}", ARGS("config", "show", "--schedulers", "3"));
    shown(SOURCE_DEFAULT, false);
#define X(field, key, kind, commands, min, max, marks, preset, unit, prose)            \
    if (option_is_setting(&option_table[OPTION_##field]) && ((commands)&FOR(SERVE)))   \
        TEST_CHECK_((strstr(page, key " ") != NULL) ==                                 \
                        (strcmp(key, "slice") != 0 && strcmp(key, "schedulers") != 0), \
                    "%s is among the defaults", key);
    OPTIONS(X)
#undef X
    shown(SOURCE_FILE, false);
    TEST_CHECK_(strstr(page, "slice ") && strstr(page, " 2ms ") && strstr(page, " file x.json:1\n"), "%s",
                page);
    TEST_CHECK(strchr(page, '\n') == page + strlen(page) - 1);
    shown(SOURCE_FLAG, true);
    TEST_CHECK_(
        strstr(page, "{\"key\":\"schedulers\",\"value\":3,\"source\":\"flag\",\"at\":\"--schedulers\",") !=
            NULL,
        "%s", page);
}

static void test_values_are_shown_as_they_can_be_given(void)
{
    char value[OPTION_VALUE_SIZE], argument[OPTION_VALUE_SIZE + 64], flag[OPTION_NAME_SIZE];
    struct options before;
    CHECK_TAKEN("{}", ARGS("serve", "--runaway=59m1s1ms", "--store-map=1537MiB", "--keys-overlap=8h2m",
                           "--guardian-intensity=5/90s", "--log-level=debug", "--guardian"));
    before = options;
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *o = &option_table[i];
        if (!(o->commands & FOR(SERVE)))
            continue;
        option_show(o, &before, value);
        option_flag(o, flag);
        snprintf(argument, sizeof(argument), "%s=%s", flag, value);
        TEST_ASSERT_(parse("{}", ARGS("serve", argument, "--runaway=1h", "--store-map-max=1TiB"), NONE) == 0,
                     "%s", text);
        if (i != OPTION_runaway && i != OPTION_store_map_max)
            TEST_CHECK_(option_same(o, &before, &options), "%s", argument);
    }
    option_show(&option_table[OPTION_runaway], &before, value);
    TEST_CHECK_(strcmp(value, "59m1s1ms") == 0, "%s", value);
}

static void test_keys_with_a_name_are_shown_where_they_stand(void)
{
    CHECK_TAKEN("{\n\"agent_templates.b.max_token_seconds.A\": 60,\n\"agent_templates\": {\"b\": "
                "{\"max_token_seconds\": "
                "{\"C\": 3600}}}}",
                ARGS("config", "show"));
    const char *wanted =
        "{\"key\":\"agent_templates.b.max_token_seconds.C\",\"value\":3600,\"source\":\"file\","
        "\"at\":\"x.json:3\",\"reloadable\":false}";
    TEST_CHECK(strstr(shown(SOURCE_COUNT, true), wanted) && strstr(shown(SOURCE_FILE, true), wanted));
    TEST_CHECK(strstr(page, "max_token_seconds.A\",\"value\":60") != NULL);
    TEST_CHECK(!strstr(shown(SOURCE_DEFAULT, true), "agent_templates"));
    TEST_CHECK(strstr(shown(SOURCE_FILE, false), "agent_templates.b.max_token_seconds.A 60 ") != NULL &&
               strstr(page, "file x.json:2\n") != NULL);
}

static void test_secrets_are_masked(void)
{
    CHECK_TAKEN("{}",
                ARGS("config", "show", "--auth-jwks-url", "https://u:hunter2@idp/k", "--auth-jwks-issuer=i"));
    TEST_CHECK(strstr(shown(SOURCE_COUNT, false), "hunter2") == NULL && strstr(page, "***") != NULL);
    TEST_CHECK(strstr(shown(SOURCE_COUNT, true), "hunter2") == NULL && strstr(page, "\"***\"") != NULL);
    /* one that isn't set is no secret */
    CHECK_TAKEN("{}", ARGS("config", "show"));
    TEST_CHECK(strstr(shown(SOURCE_COUNT, false), "***") == NULL);
}

static void test_the_schema_is_sound_and_names_every_setting(void)
{
    static struct json_node nodes[8192];
    struct json_text json = {.nodes = nodes, .nodes_max = sizeof(nodes) / sizeof(*nodes)};
    struct json_error error = {0};
    struct json_sink sink;
    struct json writer;
    json_sink_init(&sink, page, sizeof(page) - 1, NULL, NULL);
    json_init(&writer, &sink);
    settings_write_schema(&writer);
    TEST_ASSERT(json_end(&writer) == JSON_OK);
    page[sink.length] = 0;
    TEST_ASSERT_(json_text_read(&json, span_of(page, sink.length), NULL, &error), "%s at %u", error.what,
                 error.at);
    const struct json_node *properties = json_member(&json, json_root(&json), "properties");
    TEST_ASSERT(properties != NULL);
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *o = &option_table[i];
        /* either with dots, or in an object of its first part */
        char first[64];
        snprintf(first, sizeof(first), "%.*s", (int)strcspn(o->key, "."), o->key);
        bool there = json_member(&json, properties, o->key) || json_member(&json, properties, first);
        if (option_is_setting(o))
            TEST_CHECK_(there, "%s", o->key);
    }
    /* and those of which there is one per name, in objects and with dots */
    static const char *const ways[][10] = {{"limits", "properties", "clients", "additionalProperties",
                                            "properties", "requests_per_minute", "maximum"},
                                           {"agent_templates", "additionalProperties", "properties",
                                            "max_token_seconds", "additionalProperties", "maximum"}};
    for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
        const struct json_node *node = properties;
        for (size_t k = 0; ways[i][k] && TEST_CHECK_(node != NULL, "%s at %zu", ways[i][0], k); k++)
            node = json_member(&json, node, ways[i][k]);
        TEST_CHECK(node && node->kind == JSON_NUMBER);
    }
    const struct json_node *patterns = json_member(&json, json_root(&json), "patternProperties");
    TEST_CHECK(patterns && patterns->count == FAMILY_COUNT);
    TEST_CHECK(strstr(page, "\"^agent_templates\\\\.[^.]+\\\\.max_token_seconds\\\\.[^.]+$\"") != NULL);
    /* the other names, too */
    static const char *const others[][8] = {{"workers", "properties", "lease_timeout_ms", "maximum"},
                                            {"auth", "properties", "key_ttl_days", "minimum"},
                                            {"limits", "properties", "max_runtime_ms", "minimum"}};
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        const struct json_node *node = properties;
        for (size_t k = 0; others[i][k] && TEST_CHECK_(node != NULL, "%s at %zu", others[i][0], k); k++)
            node = json_member(&json, node, others[i][k]);
        TEST_CHECK(node && node->kind == JSON_NUMBER);
    }
    TEST_CHECK(json_member(&json, properties, "store.dir") != NULL &&
               json_member(&json, properties, "json") == NULL);
}

/* Of millionths; with as many digits behind the point as it needs. */
static const char *decimal(uint64_t value, char number[32])
{
    int size = snprintf(number, 32, "%" PRIu64 ".%06" PRIu64, value / WHOLE, value % WHOLE);
    while (number[size - 1] == '0')
        number[--size] = 0;
    if (number[size - 1] == '.')
        number[--size] = 0;
    return number;
}

/* How the schema of a setting begins: all of it that decides which values an editor takes. */
static void schema_begins(const struct option *o, char *begin, size_t size)
{
    char least[32], most[32];
    const char *list = o->marks & MARK_LIST ? "{\"oneOf\":[" : "";
    int used = 0;
    switch (o->kind) {
    case KIND_COUNT:
        snprintf(begin, size, "{\"type\":\"integer\",\"minimum\":%" PRIu64 ",\"maximum\":%" PRIu64 ",",
                 o->min, o->max);
        return;
    case KIND_DECIMAL:
        snprintf(begin, size, "{\"type\":\"number\",\"minimum\":%s,\"maximum\":%s,", decimal(o->min, least),
                 decimal(o->max, most));
        return;
    case KIND_FLAG:
        snprintf(begin, size, "{\"type\":\"boolean\",\"description\":");
        return;
    case KIND_LEVEL:
        snprintf(begin, size, "{\"type\":\"string\",\"enum\":[\"debug\",\"info\",\"warn\",\"error\"],");
        return;
    case KIND_DURATION:
        snprintf(begin, size, "{\"type\":\"string\",\"pattern\":\"^([0-9]+(ns|us|ms|s|m|h|d))+$\",");
        return;
    case KIND_SIZE:
        snprintf(begin, size, "{\"type\":\"string\",\"pattern\":\"^([0-9]+(B|KiB|MiB|GiB|TiB))+$\",");
        return;
    case KIND_CHOICE:
        used = snprintf(begin, size, "{\"type\":\"string\",\"enum\":[\"");
        for (const char *at = o->unit; *at; at++)
            used += *at == '|' ? snprintf(begin + used, size - (size_t)used, "\",\"")
                               : snprintf(begin + used, size - (size_t)used, "%c", *at);
        snprintf(begin + used, size - (size_t)used, "\"],");
        return;
    default:
        snprintf(begin, size, "%s{\"type\":\"string\",\"description\":", list);
    }
}

/* In full with its dots, and by its last part in the object of the others; what is both a setting and an object is either. */
static void test_the_schema_takes_of_each_setting_what_the_file_may_say(void)
{
    char begin[512], wanted[1024], both[1024], end[256];
    struct json_sink sink;
    struct json writer;
    json_sink_init(&sink, page, sizeof(page) - 1, NULL, NULL);
    json_init(&writer, &sink);
    settings_write_schema(&writer);
    TEST_ASSERT(json_end(&writer) == JSON_OK);
    page[sink.length] = 0;
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *o = &option_table[i];
        bool bare = o->kind == KIND_COUNT || o->kind == KIND_DECIMAL || o->kind == KIND_FLAG;
        const char *last = strrchr(o->key, '.');
        if (!option_is_setting(o))
            continue;
        schema_begins(o, begin, sizeof(begin));
        snprintf(wanted, sizeof(wanted), "\"%s\":%s%s", o->key,
                 strcmp(o->key, "guardian") == 0 ? "{\"anyOf\":[" : "", begin);
        const char *at = strstr(page, wanted), *close = at ? strstr(at, "\"default\":") : NULL;
        TEST_CHECK_(at != NULL, "%s", wanted);
        snprintf(end, sizeof(end), "\"default\":%s%s%s}", bare ? "" : "\"", o->preset, bare ? "" : "\"");
        TEST_CHECK_(close && strncmp(close, end, strlen(end)) == 0, "%s: %s", o->key, end);
        if (!last)
            continue;
        snprintf(wanted, sizeof(wanted), "\"%s\":%s", last + 1, begin);
        snprintf(both, sizeof(both), "\"%s\":{\"anyOf\":[%s", last + 1, begin);
        TEST_CHECK_(strstr(page, wanted) || strstr(page, both), "%s", wanted);
    }
    TEST_CHECK(strstr(page,
                      "\"default\":false},{\"type\":\"object\",\"additionalProperties\":false,\"properties\":"
                      "{\"intensity\":{\"type\":\"string\",") != NULL);
    TEST_CHECK(
        strstr(page,
               "\"default\":\"127.0.0.1:8080\"},{\"type\":\"array\",\"items\":{\"type\":\"string\"}}]}") !=
        NULL);
}

TEST_LIST
= {
    {"refusals name the place", test_refusals_name_the_place},
    {"lists are for what may be several", test_lists_are_for_what_may_be_several},
    {"an address is listened at once", test_an_address_is_listened_at_once},
    {"flags over environment over file over defaults", test_flags_over_environment_over_file_over_defaults},
    {"JOB-454 keys of the file", test_keys_of_the_file},
    {"what can't be used is left out", test_what_cant_be_used_is_left_out},
    {"CTL-068 plain HTTP on a public address", test_ctl_068_plain_http_on_a_public_address},
    {"CTL-106 CTL-107 CTL-108 cadence of each environment", test_ctl_106_107_108_cadence_of_each_environment},
    {"CTL-105 no more keys than are kept in mind", test_ctl_105_no_more_keys_than_are_kept_in_mind},
    {"CTL-085 cadence and overlap against the life of tokens",
     test_ctl_085_cadence_and_overlap_against_the_life_of_tokens},
    {"CTL-111 history of keys", test_ctl_111_history_of_keys},
    {"cadence, overlap and history within the keys there may be",
     test_cadence_overlap_and_history_within_the_keys_there_may_be},
    {"CTL-115 a release leaves nothing to defaults", test_ctl_115_a_release_leaves_nothing_to_defaults},
    {"CTL-120 a release to prod was rehearsed", test_ctl_120_a_release_to_prod_was_rehearsed},
    {"CTL-149 scripts of the user interface", test_ctl_149_scripts_of_the_user_interface},
    {"CTL-151 embedding needs an approved use case", test_ctl_151_embedding_needs_an_approved_use_case},
    {"issuers and origins", test_issuers_and_origins},
    {"AMB-78 a clock ahead is for dev", test_amb_78_a_clock_ahead_is_for_dev},
    {"JOB-447 quotas of single clients", test_job_447_quotas_of_single_clients},
    {"CTL-081 templates of agents", test_ctl_081_templates_of_agents},
    {"CTL-083 AMB-19 the budget of tier C and the life of an agent's token",
     test_ctl_083_amb_19_the_budget_of_tier_c_and_the_life_of_an_agents_token},
    {"CTL-027 the versions that are active", test_ctl_027_the_versions_that_are_active},
    {"AMB-79 every default is reported with its source",
     test_amb_79_every_default_is_reported_with_its_source},
    {"values are shown as they can be given", test_values_are_shown_as_they_can_be_given},
    {"CTL-081 keys with a name are shown where they stand", test_keys_with_a_name_are_shown_where_they_stand},
    {"a setting goes by its other name too", test_a_setting_goes_by_its_other_name_too},
    {"numbers with a fraction", test_numbers_with_a_fraction},
    {"JOB-454 settings of jobs that can't be used", test_job_454_settings_of_jobs_that_cannot_be_used},
    {"secrets are masked", test_secrets_are_masked},
    {"the schema is sound and names every setting", test_the_schema_is_sound_and_names_every_setting},
    {"the schema takes of each setting what the file may say",
     test_the_schema_takes_of_each_setting_what_the_file_may_say},
    {NULL, NULL},
};
