/* Cron expressions: when something is to happen again and again, in UTC.
 *
 *     minute hour day-of-month month day-of-week        0 to 59, 0 to 23, 1 to 31, 1 to 12 or JAN, 0 to 7 or SUN (0 and 7)
 *
 * A field is a list with commas: *, a value, a range a-b, each of them with a step /n; a value with a step goes on to the end of the
 * field. When both days are restricted, either is enough, as in every cron. Pure: nothing here reads a clock.
 */
#ifndef COPPICE_STORE_CRON_H
#define COPPICE_STORE_CRON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/span.h"

#define CRON_TEXT_MAX  128u
#define CRON_YEARS_MAX 8u /* a 29th of February comes after that at the latest, across 2100 */

struct cron {
    uint64_t minutes; /* bit per value */
    uint32_t hours, days, months, weekdays;
    bool any_day, any_weekday; /* the field begins with * */
};

/* False: it can't be meant; *ret_text says which field and why, with a 0 behind it. */
bool cron_parse(struct span text, struct cron *ret_cron, char *ret_text, size_t text_size);
/* The first time later than this, in whole minutes; 0: there is none within CRON_YEARS_MAX years. What asks for a date and a weekday
 * at once, which only a step of all can (each 31st day from the first on, in February, on a Monday), may be rarer, and is none then. */
uint64_t cron_next_us(const struct cron *cron, uint64_t after_us);

#endif
