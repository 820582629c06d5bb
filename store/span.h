/* A span: bytes that belong to somebody else, and how many.
 *
 * Always borrowed. What a transaction or a view hands out is good until it ends; what a decoded record points
 * to, as long as the bytes it was decoded from.
 */
#ifndef COPPICE_STORE_SPAN_H
#define COPPICE_STORE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct span {
    const void *bytes; /* borrowed; may be NULL when size is 0 */
    uint32_t size;
};

static inline struct span span_of(const void *bytes, size_t size)
{
    return (struct span){.bytes = bytes, .size = (uint32_t)size};
}

static inline struct span span_text(const char *text)
{
    return span_of(text, strlen(text));
}

static inline bool span_equal(struct span a, struct span b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.bytes, b.bytes, a.size) == 0);
}

/* Asks for the bytes' cache lines at once, which will be read one after the other. Beyond so many the processor has seen
 * where it goes, and asks for the next ones by itself. */
#define SPAN_FETCH_MAX 2048u
static inline void span_fetch(struct span span)
{
    for (uint32_t at = 0; at < span.size && at < SPAN_FETCH_MAX; at += 64)
        __builtin_prefetch((const uint8_t *)span.bytes + at);
}

#endif
