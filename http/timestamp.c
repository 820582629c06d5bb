#include "http/timestamp.h"

#include <string.h>

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
