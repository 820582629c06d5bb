/* Timestamps: RFC 3339 in UTC with milliseconds, as every body of the product writes them. Pure. */
#ifndef COPPICE_HTTP_TIMESTAMP_H
#define COPPICE_HTTP_TIMESTAMP_H

#include <stdbool.h>
#include <stdint.h>

#include "store/span.h"

#define TIMESTAMP_SIZE 25u /* "2026-01-31T23:59:59.123Z" and its 0 */

/* wall_ns: since 1970, as actor_wall_now; good until the year 9999, later ones are written as its last instant. */
void timestamp_format(uint64_t wall_ns, char text[TIMESTAMP_SIZE]);

/* An RFC 3339 date and time that ends in Z, as microseconds since 1970: a fraction is rounded up to whole ones, what was before 1970
 * is 0. False: it is none. */
bool timestamp_parse(struct span text, uint64_t *ret_us);

/* The wall clock as of TIMESTAMP_STALE_NS ago at most, carried on by the scheduler's own: for what is written with each
 * request. From an actor. */
#define TIMESTAMP_STALE_NS UINT64_C(100000000)
uint64_t timestamp_wall(void);

#endif
