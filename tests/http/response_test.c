/* What an answer says beside its body: when it was made, when to come back, and which credentials it wants. */
#define _GNU_SOURCE /* memmem */
#include "acutest.h"

#include <stdio.h>
#include <time.h>

#include "http/front.h"
#include "http/response.h"
#include "http/timestamp.h"
#include "tests/support/stage.h"

static struct response r;
static struct request q;

static void begin(enum surface surface, const char *authorization)
{
    memset(&q, 0, sizeof(q));
    memset(&r, 0, sizeof(r));
    r.request = &q;
    r.surface = surface;
    if (authorization)
        q.known[HEADER_AUTHORIZATION] = span_text(authorization);
}

/* ---- Date ---- */

static bool says(const char *text, size_t size, const char *line)
{
    return memmem(text, size, line, strlen(line)) != NULL;
}

/* Now, as the C library writes it. */
static void check_date(const struct front *front)
{
    char text[RESPONSE_LAST_MAX], line[64];
    time_t now = (time_t)(actor_wall_now() / NS_PER_S);
    struct tm parts;
    begin(SURFACE_PUBLIC, NULL);
    r.error = ERROR_OPS_503_OVERLOADED;
    size_t size = response_turn_away(&r, front, false, text);
    EXPECT(gmtime_r(&now, &parts) &&
           strftime(line, sizeof(line), "\r\nDate: %a, %d %b %Y %H:%M:%S GMT\r\n", &parts) > 0);
    EXPECT(says(text, size, line));
}

/* Each month of two hundred years, as far as the clock goes, with two centuries that end without a leap day; and two years day by day. */
static void date_body(void)
{
    static struct front front = {.name = "client"};
    const int64_t day_ns = INT64_C(86400) * (int64_t)NS_PER_S;
    check_date(&front);
    for (int i = 0; i < 80000 / 13; i++) {
        stage_clock_jump(13 * day_ns + INT64_C(3661) * (int64_t)NS_PER_S);
        (void)actor_sleep(actor_now() + TIMESTAMP_STALE_NS);
        check_date(&front);
    }
    for (int i = 0; i < 800; i++) {
        stage_clock_jump(-day_ns);
        (void)actor_sleep(actor_now() + TIMESTAMP_STALE_NS);
        check_date(&front);
    }
}

static void test_the_date_is_that_of_now_in_each_month(void)
{
    struct stage stage = {.real = false};
    TEST_CHECK(stage_run(&stage, date_body) == 0);
}

/* ---- values of headers ---- */

static const char *value;
static size_t value_size;

static void write_value(void *arg)
{
    (void)arg;
    begin(SURFACE_JOBS, NULL);
    response_header_text(&r, "X-Value", value, value_size);
}

static bool is_taken(const char *text, size_t size)
{
    value = text;
    value_size = size;
    return stage_ended(stage_doll(0, write_value, NULL)).kind == REASON_NORMAL;
}

/* A line that ends early would begin another one, or the body: wherever it stands in a value of any length, and beside what may stand
 * there. The handler ends, and nothing of it goes out. */
static void split_body(void)
{
    static const char wrong[] = {'\r', '\n', 0, 1, 0x0b, 0x1f},
                      right[] = {' ', '\t', '!', '~', (char)0x80, (char)0xff};
    char text[24];
    for (size_t size = 1; size < sizeof(text); size++) {
        memset(text, 'a', sizeof(text));
        for (size_t at = 0; at < size; at++) {
            text[at] = right[(size + at) % sizeof(right)];
            EXPECT(is_taken(text, size));
        }
        for (size_t at = 0; at < size; at++) {
            char was = text[at];
            text[at] = wrong[(size + at) % sizeof(wrong)];
            EXPECT(!is_taken(text, size));
            text[at] = was;
        }
    }
}

static void test_a_value_cannot_end_its_line(void)
{
    struct stage stage = {.real = false};
    TEST_CHECK(stage_run(&stage, split_body) == 0);
}

/* ---- by the status ---- */

static bool has_line(const char *line)
{
    char wanted[160];
    snprintf(wanted, sizeof(wanted), "%s\r\n", line);
    return says(r.headers, r.headers_length, wanted);
}

static bool is_about_scope(enum error_code code)
{
    return code == ERROR_AUTH_403_ROLE || code == ERROR_AUTH_403_SCOPE || code == ERROR_OPS_403_FORBIDDEN ||
           code == ERROR_RFA_AUTH_FORBIDDEN;
}

/* Who was told another time by a limit keeps that one. */
static void test_who_is_to_come_back_is_told_when(void)
{
    for (int code = 1; code < ERROR_CODE_COUNT; code++) {
        const struct catalogue_row *row = catalogue_row((enum error_code)code);
        bool later = row->status == 429 || row->status == 503;
        begin(SURFACE_JOBS, NULL);
        response_error(&r, (enum error_code)code, "so");
        TEST_CHECK_(response_has_header(&r, "Retry-After") == later, "%s", row->code);
        TEST_CHECK_(has_line("Retry-After: 1") == later, "%s", row->code);
        begin(SURFACE_JOBS, NULL);
        response_header(&r, "Retry-After", "7");
        response_error(&r, (enum error_code)code, "so");
        TEST_CHECK_(has_line("Retry-After: 7") && !has_line("Retry-After: 1"), "%s", row->code);
    }
}

/* RFC 6750, 3: without a credential no error is named; with one that is good it is said what it lacks, where that would help. A page
 * from elsewhere lacks none. */
static void test_which_credentials_are_wanted(void)
{
    static const struct route route = {.roles = ROLE_OWNER | ROLE_AGENT};
    for (int code = 1; code < ERROR_CODE_COUNT; code++) {
        const struct catalogue_row *row = catalogue_row((enum error_code)code);
        bool scope = is_about_scope((enum error_code)code);
        begin(SURFACE_CONTROL, NULL);
        response_error(&r, (enum error_code)code, "so");
        TEST_CHECK_(has_line("WWW-Authenticate: Bearer realm=\"coppice\"") == (row->status == 401), "%s",
                    row->code);
        TEST_CHECK_(response_has_header(&r, "WWW-Authenticate") == (row->status == 401), "%s", row->code);
        for (int cross_site = 0; cross_site < 2; cross_site++) {
            begin(SURFACE_CONTROL, "bEARER x");
            q.cross_site = cross_site;
            q.route = &route;
            response_error(&r, (enum error_code)code, "so");
            TEST_CHECK_(has_line("WWW-Authenticate: Bearer realm=\"coppice\", error=\"invalid_token\"") ==
                            (row->status == 401),
                        "%s", row->code);
            TEST_CHECK_(response_has_header(&r, "WWW-Authenticate") ==
                            (row->status == 401 || (scope && !cross_site)),
                        "%s", row->code);
            TEST_CHECK_(says(r.headers, r.headers_length, "error=\"insufficient_scope\"") ==
                            (scope && !cross_site),
                        "%s", row->code);
            TEST_CHECK_(says(r.headers, r.headers_length, "scope=\"") ==
                            (code == ERROR_AUTH_403_ROLE && !cross_site),
                        "%s", row->code);
        }
    }
}

TEST_LIST
= {
    {"the date is that of now, in each month", test_the_date_is_that_of_now_in_each_month},
    {"a value can't end its line", test_a_value_cannot_end_its_line},
    {"who is to come back is told when", test_who_is_to_come_back_is_told_when},
    {"which credentials are wanted", test_which_credentials_are_wanted},
    {NULL, NULL},
};
