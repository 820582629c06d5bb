#include "runtime/hex.h"

#include <stdio.h>

#include "acutest.h"

static void test_every_byte_at_every_place(void)
{
    for (unsigned byte = 0; byte < 256; byte++)
        for (size_t count = 1; count <= 9; count++)
            for (size_t at = 0; at < count; at++) {
                unsigned char bytes[9] = {0};
                char text[20], expected[20];
                bytes[at] = (unsigned char)byte;
                for (size_t i = 0; i < count; i++)
                    snprintf(expected + 2 * i, 3, "%02x", bytes[i]);
                text[2 * count] = '!';
                TEST_CHECK(hex_write(text, bytes, count) == text + 2 * count);
                TEST_CHECK_(memcmp(text, expected, 2 * count) == 0, "%s", expected);
                TEST_CHECK(text[2 * count] == '!');
            }
}

static void test_of_nothing_nothing(void)
{
    char text[2] = "!";
    TEST_CHECK(hex_write(text, "", 0) == text);
    TEST_CHECK(text[0] == '!');
}

TEST_LIST
= {
    {"every byte at every place", test_every_byte_at_every_place},
    {"of nothing nothing", test_of_nothing_nothing},
    {0},
};
