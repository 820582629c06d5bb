/* Version 7 as RFC 9562 draws it, with a counter of 26 bits where it leaves the choice (6.2, method 1):
 *
 *     byte  0..5    milliseconds since 1970, big-endian
 *           6..7    0111, counter bits 25..14
 *           8..9    10, counter bits 13..0
 *          10..15   chance
 *
 * The counter begins below 2^25, so at least 2^25 ids fit into a millisecond; should it pass 2^26, the
 * milliseconds run ahead of the clock by one.
 */
#include "store/uuid.h"

#include "runtime/assert.h"
#include "runtime/hex.h"

#define COUNT_START_MASK ((1u << 25) - 1)
#define COUNT_END        (1u << 26)
#define VARIANT          0x80u /* the two high bits of byte 8 */

void uuid_source_init(struct uuid_source *source, struct env *env)
{
    *source = (struct uuid_source){.env = env, .drawn = sizeof(source->chance)};
}

/* Asks the environment once for many ids. What is left at the end of a block and doesn't suffice is dropped. */
static void draw(struct uuid_source *source, void *bytes, uint32_t size)
{
    ASSERT(size <= sizeof(source->chance));
    if (size > sizeof(source->chance) - source->drawn) {
        source->env->random(source->env, source->chance, sizeof(source->chance));
        source->drawn = 0;
    }
    memcpy(bytes, source->chance + source->drawn, size);
    source->drawn += size;
}

static uint32_t draw_count(struct uuid_source *source)
{
    uint32_t count;
    draw(source, &count, sizeof(count));
    return count & COUNT_START_MASK;
}

static void mark(struct uuid *id, unsigned version)
{
    id->bytes[6] = (uint8_t)((id->bytes[6] & 0x0fu) | version << 4);
    id->bytes[8] = (uint8_t)((id->bytes[8] & 0x3fu) | VARIANT);
}

/* Moves to the next place in the order: a later millisecond, or a higher count within this one. */
static void advance(struct uuid_source *source)
{
    uint64_t now_ms = source->env->wall(source->env) / NS_PER_MS;
    if (now_ms > source->last_ms) {
        source->last_ms = now_ms;
        source->count = draw_count(source);
    } else if (++source->count == COUNT_END) {
        source->last_ms++;
        source->count = draw_count(source);
    }
}

struct uuid uuid_v7(struct uuid_source *source)
{
    struct uuid id;
    advance(source);
    for (unsigned i = 0; i < 6; i++)
        id.bytes[i] = (uint8_t)(source->last_ms >> (40 - 8 * i));
    id.bytes[6] = (uint8_t)(source->count >> 22);
    id.bytes[7] = (uint8_t)(source->count >> 14);
    id.bytes[8] = (uint8_t)(source->count >> 8);
    id.bytes[9] = (uint8_t)source->count;
    draw(source, id.bytes + 10, 6);
    mark(&id, 7);
    return id;
}

struct uuid uuid_v4(struct uuid_source *source)
{
    struct uuid id;
    draw(source, id.bytes, sizeof(id.bytes));
    mark(&id, 4);
    return id;
}

unsigned uuid_version(const struct uuid *id)
{
    return (id->bytes[8] & 0xc0u) == VARIANT ? id->bytes[6] >> 4 : 0;
}

uint64_t uuid_time_ms(const struct uuid *id)
{
    uint64_t ms = 0;
    if (uuid_version(id) != 7)
        return 0;
    for (unsigned i = 0; i < 6; i++)
        ms = ms << 8 | id->bytes[i];
    return ms;
}

void uuid_format(const struct uuid *id, char text[UUID_TEXT_SIZE])
{
    char digits[32];
    hex_write_eight(digits, id->bytes);
    hex_write_eight(digits + 16, id->bytes + 8);
    memcpy(text, digits, 8);
    memcpy(text + 9, digits + 8, 4);
    memcpy(text + 14, digits + 12, 4);
    memcpy(text + 19, digits + 16, 4);
    memcpy(text + 24, digits + 20, 4);
    memcpy(text + 28, digits + 24, 8);
    text[8] = text[13] = text[18] = text[23] = '-';
    text[36] = '\0';
}

/* One more than what a digit is worth; 0: it is none. */
static const uint8_t hex_values[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
    ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

bool uuid_parse(const char *text, size_t length, struct uuid *ret_id)
{
    struct uuid id;
    uint8_t digits[32], seen = 0;
    if (length != UUID_TEXT_SIZE - 1 || text[8] != '-' || text[13] != '-' || text[18] != '-' ||
        text[23] != '-')
        return false;
    memcpy(digits, text, 8);
    memcpy(digits + 8, text + 9, 4);
    memcpy(digits + 12, text + 14, 4);
    memcpy(digits + 16, text + 19, 4);
    memcpy(digits + 20, text + 24, 12);
    for (unsigned i = 0; i < sizeof(id.bytes); i++) {
        uint8_t high = (uint8_t)(hex_values[digits[2 * i]] - 1),
                low = (uint8_t)(hex_values[digits[2 * i + 1]] - 1);
        seen |= high | low;
        id.bytes[i] = (uint8_t)(high << 4 | low);
    }
    if (seen > 15)
        return false;
    *ret_id = id;
    return true;
}
