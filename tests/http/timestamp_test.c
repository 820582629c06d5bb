#include "acutest.h"

#include "http/timestamp.h"
#include "store/record.h"

static void test_what_is_written_is_read(void)
{
    static const uint64_t times[] = {0,
                                     1,
                                     999999,
                                     UINT64_C(951782400000000),     /* 2000-02-29 */
                                     UINT64_C(1763472000123456),    /* 2025 */
                                     UINT64_C(4107542399999999),    /* 2100-02-28T23:59:59.999999Z */
                                     UINT64_C(4107542400000000),    /* 2100-03-01: no leap day */
                                     UINT64_C(253402300799999999)}; /* the last of the year 9999 */
    char text[TIME_TEXT_SIZE];
    uint64_t us;
    for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
        time_format(times[i], text);
        TEST_CHECK_(timestamp_parse(span_text(text), &us) && us == times[i], "%s is %llu", text,
                    (unsigned long long)us);
    }
    for (uint64_t day = 0; day < 150000; day += 13) { /* each month of 400 years */
        time_format(day * UINT64_C(86400000000), text);
        TEST_CHECK_(timestamp_parse(span_text(text), &us) && us == day * UINT64_C(86400000000), "%s", text);
    }
}

/* JOB-259, JOB-304 */
static void test_what_is_a_time_and_what_is_none(void)
{
    static const struct {
        const char *text;
        uint64_t us;
    } good[] = {{"2030-01-01T00:00:00Z", UINT64_C(1893456000000000)},
                {"2030-01-01t00:00:00Z", UINT64_C(1893456000000000)},
                {"2030-01-01T00:00:00.5Z", UINT64_C(1893456000500000)},
                {"2030-01-01T00:00:00.000001Z", UINT64_C(1893456000000001)},
                {"2030-01-01T00:00:00.0000010000Z", UINT64_C(1893456000000001)},
                {"2030-01-01T00:00:00.0000001Z", UINT64_C(1893456000000001)}, /* never early */
                {"2030-01-01T00:00:00.00000010Z", UINT64_C(1893456000000001)},
                {"2030-01-01T00:00:00.9999990000010000Z", UINT64_C(1893456001000000)},
                {"2016-12-31T23:59:60Z", UINT64_C(1483228800000000)},
                {"1970-01-01T00:00:00Z", 0},
                {"1969-12-31T23:59:59.9Z", 0},
                {"0000-01-01T00:00:00Z", 0}};
    static const char *const bad[] = {"",
                                      "tomorrow",
                                      "1700000000",
                                      "2030-13-01T00:00:00Z",
                                      "2030-02-29T00:00:00Z",
                                      "2030-01-01T24:00:00Z",
                                      "2030-01-01T00:00:00",
                                      "2030-01-01T00:00:00+00:00",
                                      "2030-01-01T00:00:00+02:00",
                                      "2030-01-01T00:00:00z",
                                      "2030-01-01T00:00:00.Z",
                                      "2030-01-01 00:00:00Z",
                                      "2030-01-01T00:00:00Z ",
                                      "2030-01-01"};
    uint64_t us;
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        TEST_CHECK_(timestamp_parse(span_text(good[i].text), &us) && us == good[i].us, "%s is %llu",
                    good[i].text, (unsigned long long)us);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        TEST_CHECK_(!timestamp_parse(span_text(bad[i]), &us), "'%s'", bad[i]);
}

TEST_LIST
= {
    {"what is written is read", test_what_is_written_is_read},
    {"JOB-259 JOB-304 what is a time, and what is none", test_what_is_a_time_and_what_is_none},
    {NULL, NULL},
};
