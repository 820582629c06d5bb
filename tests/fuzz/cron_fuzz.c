/* Cron expressions: what is understood means what a plain second reading of it means, and the next time is the first minute that
 * fits, as a walk through the minutes and libc's calendar find it. */
#define _GNU_SOURCE /* timegm's other half, gmtime_r */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>
#include "runtime/assert.h"
#include "store/cron.h"
#include "tests/fuzz/bytes.h"

enum { FIELDS = 5, VALUES = 64, MINUTES_WALKED = 4000, DAY_MINUTES = 1440 };

#define MINUTE_US UINT64_C(60000000)
#define LAST_US   UINT64_C(250000000000000000) /* in the year 9892 */

static const int lowest[FIELDS] = {0, 0, 1, 1, 0}, highest[FIELDS] = {59, 23, 31, 12, 7};
static const char names[] = "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDECSUNMONTUEWEDTHUFRISAT";

/* The plain second reading: a table of what is meant. */
struct plain {
    bool on[FIELDS][VALUES];
    bool star[FIELDS];
};

/* A number or a name; -1: neither. *at goes behind it. */
static int plain_value(int field, const char **at)
{
    if (isdigit((unsigned char)**at)) {
        char *end;
        long value = strtol(*at, &end, 10);
        bool long_number = end - *at > 4;
        *at = end;
        return long_number || value > highest[field] || value < lowest[field] ? -1 : (int)value;
    }
    int from = field == 3 ? 0 : 12, count = field == 3 ? 12 : field == 4 ? 7 : 0;
    for (int i = 0; i < count; i++)
        if (strncasecmp(*at, names + (size_t)(3 * (from + i)), 3) == 0) {
            *at += 3;
            return i + lowest[field];
        }
    return -1;
}

static bool plain_element(struct plain *p, int field, const char *at)
{
    int from = lowest[field], to = highest[field];
    long step = 1;
    bool range = *at == '*';
    if (range) {
        at++;
    } else {
        from = to = plain_value(field, &at);
        range = from >= 0 && *at == '-';
        if (range) {
            at++;
            to = plain_value(field, &at);
        }
    }
    if (from < 0 || to < from)
        return false;
    if (*at == '/') {
        char *end;
        if (!isdigit((unsigned char)at[1]))
            return false;
        step = strtol(at + 1, &end, 10);
        if (end - (at + 1) > 4 || step < 1 || step > highest[field])
            return false;
        at = end;
        to = range ? to : highest[field];
    }
    for (long value = from; value <= to; value += step)
        p->on[field][value] = true;
    return *at == 0;
}

static bool plain_field(struct plain *p, int field, char *text)
{
    p->star[field] = *text == '*';
    for (;;) {
        char *comma = strchr(text, ',');
        if (comma)
            *comma = 0;
        if (!plain_element(p, field, text))
            return false;
        if (!comma)
            return true;
        text = comma + 1;
    }
}

static bool plain_read(char *text, struct plain *ret)
{
    char *rest = NULL;
    int field = 0;
    memset(ret, 0, sizeof *ret);
    for (char *word = strtok_r(text, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest))
        if (field == FIELDS || !plain_field(ret, field++, word))
            return false;
    ret->on[4][0] |= ret->on[4][7];
    return field == FIELDS;
}

static bool plain_day(const struct plain *p, const struct tm *tm)
{
    bool day = p->on[2][tm->tm_mday], weekday = p->on[4][tm->tm_wday];
    return p->on[3][tm->tm_mon + 1] && (p->star[2] || p->star[4] ? day && weekday : day || weekday);
}

static bool plain_fits(const struct plain *p, uint64_t us)
{
    struct tm tm;
    time_t seconds = (time_t)(us / 1000000);
    ASSERT(gmtime_r(&seconds, &tm));
    return p->on[0][tm.tm_min] && p->on[1][tm.tm_hour] && plain_day(p, &tm);
}

/* No minute before it fits: the next ones one by one, then day by day, of which none but its own may fit. */
static void check_first(const struct plain *p, uint64_t after_us, uint64_t next_us)
{
    uint64_t at = (after_us / MINUTE_US + 1) * MINUTE_US;
    uint64_t until = next_us ? next_us : at + CRON_YEARS_MAX * 365 * DAY_MINUTES * MINUTE_US;
    for (int i = 0; i < MINUTES_WALKED && at < until; i++, at += MINUTE_US)
        ASSERT(!plain_fits(p, at));
    for (; at + DAY_MINUTES * MINUTE_US < until; at += DAY_MINUTES * MINUTE_US) {
        struct tm tm;
        time_t seconds = (time_t)(at / 1000000);
        ASSERT(gmtime_r(&seconds, &tm) && !plain_day(p, &tm));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes input = {data, size};
    struct cron cron;
    struct plain plain;
    char text[2 * CRON_TEXT_MAX], again[2 * CRON_TEXT_MAX], why[160];
    uint64_t after_us = take_n(&input, 7) % LAST_US;
    take_text(&input, sizeof text - 1, text, sizeof text);
    memcpy(again, text, sizeof again);
    memset(why, 0, sizeof why);
    bool understood = cron_parse(span_text(text), &cron, why, sizeof why);
    ASSERT(understood == plain_read(again, &plain));
    ASSERT(understood || (why[0] && memchr(why, 0, sizeof why)));
    if (!understood)
        return 0;
    uint64_t next_us = cron_next_us(&cron, after_us);
    ASSERT(!next_us || (next_us > after_us && next_us % MINUTE_US == 0 && plain_fits(&plain, next_us)));
    check_first(&plain, after_us, next_us);
    return 0;
}
