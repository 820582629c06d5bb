/* UUIDs: 16 bytes that name a thing, in the order of their bytes.
 *
 * Ours are version 7 (RFC 9562): 48 bits of milliseconds, then a counter that starts at random within each
 * millisecond and goes up, then chance. So those of one generator are strictly increasing, also when the
 * wall clock goes back, and a table that is keyed by them grows at its end. What a contract wants as version
 * 4 is all chance. Time and chance come from the environment, so a seed gives the same ids again.
 *
 * A generator belongs to one scheduler (or one plain thread): no locks, and no system call for most ids. None
 * of these functions blocks.
 */
#ifndef COPPICE_STORE_UUID_H
#define COPPICE_STORE_UUID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "runtime/env.h"

struct uuid {
    uint8_t bytes[16];
};

#define UUID_TEXT_SIZE 37 /* 8-4-4-4-12 in lower case, and the end */

struct uuid_source {
    struct env *env;  /* borrowed */
    uint64_t last_ms; /* of the newest id; never goes back */
    uint32_t count;   /* 26 bits within last_ms; starts below 2^25 */
    uint32_t drawn;   /* bytes of chance that were used */
    uint8_t chance[256];
};

void uuid_source_init(struct uuid_source *source, struct env *env);
/* Strictly greater than every id this source gave before. */
struct uuid uuid_v7(struct uuid_source *source);
struct uuid uuid_v4(struct uuid_source *source);

/* Milliseconds since 1970 of a version 7 id; 0 for any other. */
uint64_t uuid_time_ms(const struct uuid *id);
/* 0 when the variant is not that of RFC 9562, as in the id that is all zero. */
unsigned uuid_version(const struct uuid *id);

void uuid_format(const struct uuid *id, char text[UUID_TEXT_SIZE]);
/* Exactly the 36 characters of the canonical form, either case; anything else is refused. */
bool uuid_parse(const char *text, size_t length, struct uuid *ret_id);

static inline bool uuid_equal(const struct uuid *a, const struct uuid *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

#endif
