/* A fuzzer's input, taken piece by piece: what is not there reads as zero, so that every input means something. */
#ifndef COPPICE_TESTS_FUZZ_BYTES_H
#define COPPICE_TESTS_FUZZ_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* libFuzzer calls it with one input after the other; it always returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bytes {
    const uint8_t *at;
    size_t left;
};

static inline uint8_t take(struct bytes *b)
{
    if (!b->left)
        return 0;
    b->left--;
    return *b->at++;
}

static inline uint64_t take_n(struct bytes *b, unsigned count)
{
    uint64_t value = 0;
    while (count--)
        value = value << 8 | take(b);
    return value;
}

/* Up to length bytes as they are; how many there were. They are good as long as the input is. */
static inline size_t take_piece(struct bytes *b, size_t length, const char **ret_piece)
{
    length = length < b->left ? length : b->left;
    *ret_piece = (const char *)b->at;
    b->at += length;
    b->left -= length;
    return length;
}

/* The same as a string in `text`, which has room for size bytes; a NUL among them ends it. */
static inline void take_text(struct bytes *b, size_t length, char *text, size_t size)
{
    const char *piece;
    length = take_piece(b, length < size ? length : size - 1, &piece);
    if (length)
        memcpy(text, piece, length);
    text[length] = 0;
}

#endif
