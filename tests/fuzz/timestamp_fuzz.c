/* Timestamps: what is understood is what libc's calendar makes of the same text; what is written is understood again. */
#define _GNU_SOURCE /* timegm */
#include "http/timestamp.h"
#include <stdio.h>
#include <time.h>
#include "runtime/assert.h"
#include "tests/fuzz/bytes.h"

#define LAST_MS UINT64_C(253402300799999) /* 9999-12-31T23:59:59.999Z */

/* The plain second reading, of a text that was understood: microseconds, rounded up. */
static uint64_t plain_us(const char *text)
{
    struct tm tm = {0};
    int used = 0;
    ASSERT(sscanf(text, "%4d-%2d-%2d%*c%2d:%2d:%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
                  &tm.tm_min, &tm.tm_sec, &used) == 6);
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    if (tm.tm_year < 70)
        return 0;
    time_t seconds = timegm(&tm);
    uint64_t us = 0, unit = 100000;
    bool rest = false;
    if (text[used] == '.')
        for (const char *at = text + used + 1; *at >= '0' && *at <= '9'; at++, unit /= 10) {
            us += (uint64_t)(*at - '0') * unit;
            rest |= unit == 0 && *at != '0';
        }
    return (uint64_t)seconds * 1000000 + us + rest;
}

static void check_text(struct bytes *input)
{
    char text[64];
    uint64_t us = 1;
    take_text(input, sizeof text - 1, text, sizeof text);
    if (!timestamp_parse(span_text(text), &us))
        return;
    size_t length = strlen(text);
    ASSERT(length >= 20 && text[length - 1] == 'Z');
    ASSERT(us == plain_us(text));
}

static void check_time(uint64_t wall_ns)
{
    char text[TIMESTAMP_SIZE];
    uint64_t us, ms = wall_ns / 1000000 < LAST_MS ? wall_ns / 1000000 : LAST_MS;
    timestamp_format(wall_ns, text);
    ASSERT(strlen(text) == TIMESTAMP_SIZE - 1);
    ASSERT(timestamp_parse(span_text(text), &us) && us == ms * 1000);
    ASSERT(us == plain_us(text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes input = {data, size};
    if (take(&input) & 1)
        check_time(take_n(&input, 8));
    else
        check_text(&input);
    return 0;
}
