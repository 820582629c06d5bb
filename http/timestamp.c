#include "http/timestamp.h"

#include <string.h>

#include "http/schema_text.h"
#include "runtime/actor.h"

#define LAST_MS UINT64_C(253402300799999) /* 9999-12-31T23:59:59.999Z */

static void digits(char *at, uint64_t number, int count)
{
    while (count--) {
        at[count] = (char)('0' + number % 10);
        number /= 10;
    }
}

/* Days are counted from 1 March of year 0, so that leap days come last: 719,468 of them before 1970. */
void timestamp_format(uint64_t wall_ns, char text[TIMESTAMP_SIZE])
{
    uint64_t ms = wall_ns / 1000000;
    if (ms > LAST_MS)
        ms = LAST_MS;
    uint64_t day = ms / 86400000 + 719468, era = day / 146097, of_era = day % 146097;
    uint64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    uint64_t of_year = of_era - (365 * year + year / 4 - year / 100), month = (5 * of_year + 2) / 153;
    memcpy(text, "0000-00-00T00:00:00.000Z", TIMESTAMP_SIZE);
    digits(text, year + era * 400 + (month >= 10), 4);
    digits(text + 5, month < 10 ? month + 3 : month - 9, 2);
    digits(text + 8, of_year - (153 * month + 2) / 5 + 1, 2);
    digits(text + 11, ms / 3600000 % 24, 2);
    digits(text + 14, ms / 60000 % 60, 2);
    digits(text + 17, ms / 1000 % 60, 2);
    digits(text + 20, ms % 1000, 3);
}

static uint64_t number(const char *at, int count)
{
    uint64_t value = 0;
    while (count--)
        value = value * 10 + (uint64_t)(*at++ - '0');
    return value;
}

/* As above, the other way: days since 1 March of year 0. */
static uint64_t day_of(uint64_t year, uint64_t month, uint64_t day)
{
    uint64_t from_march = month > 2 ? month - 3 : month + 9;
    year -= month <= 2 && year > 0;
    return 365 * year + year / 4 - year / 100 + year / 400 + (153 * from_march + 2) / 5 + day - 1;
}

/* Digits behind the point, as microseconds rounded up. */
static uint64_t fraction_us(const char *at, const char *end)
{
    uint64_t us = 0, unit = 100000;
    bool rest = false;
    for (; at < end; at++, unit /= 10) {
        us += (uint64_t)(*at - '0') * unit;
        rest |= unit == 0 && *at != '0';
    }
    return us + rest;
}

bool timestamp_parse(struct span text, uint64_t *ret_us)
{
    const char *at = text.bytes, *end = at + text.size;
    if (!text_is_date_time(text) || end[-1] != 'Z')
        return false;
    uint64_t day = day_of(number(at, 4), number(at + 5, 2), number(at + 8, 2));
    uint64_t s = number(at + 11, 2) * 3600 + number(at + 14, 2) * 60 + number(at + 17, 2);
    *ret_us = 0;
    if (day >= 719468)
        *ret_us =
            ((day - 719468) * 86400 + s) * 1000000 + (at[19] == '.' ? fraction_us(at + 20, end - 1) : 0);
    return true;
}

uint64_t timestamp_wall(void)
{
    static _Thread_local uint64_t asked,
        ahead; /* when it was asked, and by how much it was ahead of our clock */
    uint64_t now = actor_now();
    if (now < asked || now - asked >= TIMESTAMP_STALE_NS || !ahead) {
        ahead = actor_wall_now() - now;
        asked = now;
    }
    return now + ahead;
}
