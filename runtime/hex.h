/* Hexadecimal digits of bytes, in lower case, four bytes at a time: ids are written into every answer. */
#ifndef COPPICE_RUNTIME_HEX_H
#define COPPICE_RUNTIME_HEX_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "runtime/assert.h"

STATIC_ASSERT(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are written to memory as they stand");

/* Each byte of the word becomes two digits, the first byte's first. */
static inline uint64_t hex_of_word(uint32_t bytes)
{
    uint64_t wide = (bytes | (uint64_t)bytes << 16) & UINT64_C(0x0000ffff0000ffff);
    wide = (wide | wide << 8) & UINT64_C(0x00ff00ff00ff00ff);
    uint64_t digits = (wide >> 4 | wide << 8) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    uint64_t letters = (digits + UINT64_C(0x0606060606060606)) >> 4 & UINT64_C(0x0101010101010101);
    return digits + UINT64_C(0x3030303030303030) + letters * ('a' - '0' - 10);
}

typedef uint8_t hex_bytes __attribute__((vector_size(16)));

/* Eight bytes become sixteen digits. */
static inline void hex_write_eight(char *to, const void *bytes)
{
    hex_bytes in = {0};
    memcpy(&in, bytes, 8);
    hex_bytes high = in >> 4, low = in & 15;
    hex_bytes digits =
        __builtin_shufflevector(high, low, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    digits += '0' + ((hex_bytes)(digits > 9) & ('a' - '0' - 10));
    memcpy(to, &digits, 16);
}

/* Writes 2 * count digits and no 0; returns where they end. */
static inline char *hex_write(char *to, const void *bytes, size_t count)
{
    const char *at = bytes;
    for (; count >= 8; count -= 8, at += 8, to += 16)
        hex_write_eight(to, at);
    for (; count >= 4; count -= 4, at += 4, to += 8) {
        uint32_t word;
        memcpy(&word, at, 4);
        uint64_t digits = hex_of_word(word);
        memcpy(to, &digits, 8);
    }
    for (; count; count--, at++, to += 2) {
        uint64_t digits = hex_of_word((unsigned char)*at);
        memcpy(to, &digits, 2);
    }
    return to;
}

#endif
