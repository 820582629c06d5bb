/* Cron expressions: what is read, what is refused, and when the next time is. */
#include "acutest.h"

#include "store/cron.h"
#include "store/record.h"

static uint64_t at(const char *date)
{
    unsigned y, mo, d, h, m, s;
    TEST_ASSERT(sscanf(date, "%u-%u-%uT%u:%u:%u", &y, &mo, &d, &h, &m, &s) == 6);
    uint64_t days = 0;
    for (unsigned year = 1970; year < y; year++)
        days += year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 366 : 365;
    static const unsigned lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    for (unsigned month = 1; month < mo; month++)
        days += lengths[month - 1] + (month == 2 && y % 4 == 0 && (y % 100 != 0 || y % 400 == 0));
    return (((days + d - 1) * 24 + h) * 60 + m) * UINT64_C(60000000) + s * UINT64_C(1000000);
}

static const struct {
    const char *text, *after, *next; /* NULL: none */
} good[] = {
    {"* * * * *", "2026-11-18T13:04:51", "2026-11-18T13:05:00"},
    {"* * * * *", "2026-11-18T13:05:00", "2026-11-18T13:06:00"},
    {"0 * * * *", "2026-12-31T23:00:00", "2027-01-01T00:00:00"},
    {"*/15 * * * *", "2026-11-18T13:46:00", "2026-11-18T14:00:00"},
    {"5/20 9 * * *", "2026-11-18T09:25:00", "2026-11-18T09:45:00"},
    {"30 4 1,15 * *", "2026-11-02T00:00:00", "2026-11-15T04:30:00"},
    {"0 0 29 2 *", "2026-01-01T00:00:00", "2028-02-29T00:00:00"},
    {"0 0 29 2 *", "2096-03-01T00:00:00", "2104-02-29T00:00:00"},
    {"0 0 30 2 *", "2026-01-01T00:00:00", NULL},
    {"0 12 * * MON-FRI", "2026-11-20T12:00:00", "2026-11-23T12:00:00"},
    {"0 12 * * 0", "2026-11-18T00:00:00", "2026-11-22T12:00:00"},
    {"0 12 * * 7", "2026-11-18T00:00:00", "2026-11-22T12:00:00"},
    {"0 12 * * sun", "2026-11-18T00:00:00", "2026-11-22T12:00:00"},
    {"0 0 13 * FRI", "2026-11-18T00:00:00", "2026-11-20T00:00:00"},  /* either day is enough */
    {"0 0 */2 * FRI", "2026-11-20T00:00:00", "2026-11-27T00:00:00"}, /* a field with * restricts together */
    {"0 0 1 JAN,jul *", "2026-01-01T00:00:00", "2026-07-01T00:00:00"},
    {" 0\t0  1 1-3/2 * ", "2026-01-01T00:00:00", "2026-03-01T00:00:00"},
    {"59 23 31 12 *", "1999-12-31T23:58:59", "1999-12-31T23:59:00"},
};

static void test_cron_the_next_time(void)
{
    char text[256];
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        struct cron cron;
        TEST_CASE(good[i].text);
        TEST_ASSERT_(cron_parse(span_text(good[i].text), &cron, text, sizeof(text)), "%s", text);
        uint64_t next = cron_next_us(&cron, at(good[i].after)), wanted = good[i].next ? at(good[i].next) : 0;
        char got[TIME_TEXT_SIZE];
        time_format(next, got);
        TEST_CHECK_(next == wanted, "after %s comes %s", good[i].after, got);
    }
}

static void test_cron_refusals_name_the_field(void)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "the minute is missing"},
        {"* * * *", "the day of week is missing"},
        {"* * * * * *", "more than five fields, from '*'"},
        {"60 * * * *", "the minute is '60'; it must be made of 0 to 59"},
        {"* 24 * * *", "the hour is '24'"},
        {"* * 0 * *", "the day of month is '0'"},
        {"* * * 13 *", "the month is '13'; it must be made of 1 to 12 or names"},
        {"* * * * 8", "the day of week is '8'"},
        {"* * * * MONDAY", "the day of week is 'MONDAY'"},
        {"5-1 * * * *", "the minute is '5-1'"},
        {"*/0 * * * *", "the minute is '*/0'"},
        {"1,,2 * * * *", "the minute is '1,,2'"},
        {"1, * * * *", "the minute is '1,'"},
        {"- * * * *", "the minute is '-'"},
        {"99999999999 * * * *", "the minute is"},
        {"@daily", "the minute is '@daily'"},
    };
    char text[256];
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct cron cron;
        TEST_CASE(bad[i].text);
        TEST_CHECK(!cron_parse(span_text(bad[i].text), &cron, text, sizeof(text)));
        TEST_CHECK_(strstr(text, bad[i].says) != NULL, "says '%s'", text);
    }
}

/* Every minute of four years, asked one by one, is found in order and none twice. */
static void test_cron_every_hour_of_years_is_found(void)
{
    struct cron cron;
    char text[256];
    TEST_ASSERT(cron_parse(span_text("0 * * * *"), &cron, text, sizeof(text)));
    uint64_t now = at("2023-12-31T23:30:00"), end = at("2028-01-01T00:00:00"), count = 0;
    for (uint64_t next; (next = cron_next_us(&cron, now)) <= end; now = next, count++)
        TEST_ASSERT(next > now && next % UINT64_C(3600000000) == 0);
    TEST_CHECK(count == (UINT64_C(365) * 4 + 1) * 24 + 1);
}

TEST_LIST
= {
    {"cron: the next time", test_cron_the_next_time},
    {"cron: refusals name the field", test_cron_refusals_name_the_field},
    {"cron: every hour of years is found", test_cron_every_hour_of_years_is_found},
    {NULL, NULL},
};
