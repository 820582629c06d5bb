#include "store/cron.h"

#include <stdio.h>
#include <string.h>

#define MINUTE_US UINT64_C(60000000)
#define DAY_US    (UINT64_C(1440) * MINUTE_US)

struct field {
    const char *name;
    uint32_t first, last;
    const char *const *names; /* from `first` on; NULL: numbers alone */
};

static const char *const months[] = {"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL",
                                     "AUG", "SEP", "OCT", "NOV", "DEC", NULL};
static const char *const weekdays[] = {"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", NULL};
static const struct field fields[] = {
    {"minute", 0, 59, NULL},  {"hour", 0, 23, NULL},           {"day of month", 1, 31, NULL},
    {"month", 1, 12, months}, {"day of week", 0, 7, weekdays},
};
#define FIELDS (sizeof(fields) / sizeof(*fields))

/* ---- reading ---- */

struct reader {
    const char *at, *end; /* of the field */
    const struct field *field;
};

static bool take_name(struct reader *r, uint32_t *ret_value)
{
    for (uint32_t i = 0; r->field->names && r->field->names[i] && r->end - r->at >= 3; i++) {
        bool same = true;
        for (int c = 0; c < 3; c++)
            same &= (r->at[c] & ~0x20) == r->field->names[i][c];
        if (!same)
            continue;
        r->at += 3;
        *ret_value = r->field->first + i;
        return true;
    }
    return false;
}

static bool take_number(struct reader *r, uint32_t *ret_value)
{
    uint32_t value = 0, digits = 0;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9' && digits < 4; r->at++, digits++)
        value = 10 * value + (uint32_t)(*r->at - '0');
    *ret_value = value;
    return digits > 0;
}

static bool take_value(struct reader *r, uint32_t *ret_value)
{
    return (take_name(r, ret_value) || take_number(r, ret_value)) && *ret_value >= r->field->first &&
           *ret_value <= r->field->last;
}

static bool take_char(struct reader *r, char c)
{
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

/* One element of the list. */
static bool take_element(struct reader *r, uint64_t *bits)
{
    uint32_t from = r->field->first, to = r->field->last, step = 1;
    bool star = take_char(r, '*');
    bool range = star;
    if (!star) {
        if (!take_value(r, &from))
            return false;
        to = from;
        range = take_char(r, '-');
        if (range && (!take_value(r, &to) || to < from))
            return false;
    }
    if (take_char(r, '/')) {
        if (!take_number(r, &step) || step == 0 || step > r->field->last)
            return false;
        to = range ? to : r->field->last;
    }
    for (uint32_t value = from; value <= to; value += step)
        *bits |= UINT64_C(1) << value;
    return true;
}

static bool take_field(struct reader *r, uint64_t *ret_bits)
{
    *ret_bits = 0;
    do
        if (!take_element(r, ret_bits))
            return false;
    while (take_char(r, ','));
    return r->at == r->end;
}

static bool blank(char c)
{
    return c == ' ' || c == '\t';
}

bool cron_parse(struct span text, struct cron *ret_cron, char *ret_text, size_t text_size)
{
    const char *at = text.bytes, *end = at + text.size;
    uint64_t bits[FIELDS];
    bool star[FIELDS];
    for (size_t i = 0; i < FIELDS; i++) {
        while (at < end && blank(*at))
            at++;
        const char *begin = at;
        while (at < end && !blank(*at))
            at++;
        if (begin == at) {
            snprintf(ret_text, text_size, "the %s is missing; there must be five fields", fields[i].name);
            return false;
        }
        struct reader r = {.at = begin, .end = at, .field = &fields[i]};
        star[i] = *begin == '*';
        if (!take_field(&r, &bits[i])) {
            snprintf(ret_text, text_size, "the %s is '%.*s'; it must be made of %u to %u%s, with * , - and /",
                     fields[i].name, (int)(at - begin), begin, fields[i].first, fields[i].last,
                     fields[i].names ? " or names of three letters" : "");
            return false;
        }
    }
    while (at < end && blank(*at))
        at++;
    if (at < end) {
        snprintf(ret_text, text_size, "there are more than five fields, from '%.*s' on", (int)(end - at), at);
        return false;
    }
    *ret_cron = (struct cron){.minutes = bits[0],
                              .hours = (uint32_t)bits[1],
                              .days = (uint32_t)bits[2],
                              .months = (uint32_t)bits[3],
                              .weekdays = (uint32_t)((bits[4] | bits[4] >> 7) & 0x7f),
                              .any_day = star[2],
                              .any_weekday = star[4]};
    return true;
}

/* ---- when ---- */

struct date {
    uint32_t month, day, weekday;
};

/* Of a day since 1970. */
static struct date date_of(uint64_t days)
{
    uint64_t z = days + 719468, era = z / 146097, of_era = z % 146097;
    uint64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    uint64_t of_year = of_era - (365 * year + year / 4 - year / 100), month = (5 * of_year + 2) / 153;
    (void)era;
    return (struct date){.month = (uint32_t)(month < 10 ? month + 3 : month - 9),
                         .day = (uint32_t)(of_year - (153 * month + 2) / 5 + 1),
                         .weekday = (uint32_t)((days + 4) % 7)};
}

static bool fits(const struct cron *c, const struct date *d)
{
    bool day = (c->days >> d->day & 1) != 0, weekday = (c->weekdays >> d->weekday & 1) != 0;
    if (!(c->months >> d->month & 1))
        return false;
    return c->any_day || c->any_weekday ? day && weekday : day || weekday;
}

/* The first minute of the day from this one on; 1440: none. */
static uint32_t minute_from(const struct cron *c, uint32_t minute)
{
    for (; minute < 1440; minute++) {
        if (!(c->hours >> minute / 60 & 1))
            minute += 59 - minute % 60;
        else if (c->minutes >> minute % 60 & 1)
            return minute;
    }
    return 1440;
}

uint64_t cron_next_us(const struct cron *cron, uint64_t after_us)
{
    uint64_t minute = after_us / MINUTE_US + 1, day = minute / 1440;
    uint32_t of_day = (uint32_t)(minute % 1440);
    for (uint32_t i = 0; i <= CRON_YEARS_MAX * 366; i++, day++, of_day = 0) {
        struct date date = date_of(day);
        if (!fits(cron, &date))
            continue;
        uint32_t found = minute_from(cron, of_day);
        if (found < 1440)
            return day * DAY_US + found * MINUTE_US;
    }
    return 0;
}
