/* Page tokens: what was sealed comes back, and nothing else opens. */
#include "acutest.h"

#include "store/token.h"
#include "tests/store/fresh.h"

#define LIST   7u
#define FILTER UINT64_C(0x1122334455667788)

static struct store one = {.secret = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};
static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static struct key key_of_size(uint32_t size)
{
    struct key key = {.size = size};
    for (uint32_t i = 0; i < size; i++)
        key.bytes[i] = (uint8_t)(i * 37 + size);
    return key;
}

static bool refused(const char *text, size_t length)
{
    struct key key = {.size = 99};
    return token_open(&one, LIST, FILTER, text, length, &key) == ERR_TOKEN && key.size == 99;
}

static void test_token_any_key_comes_back(void)
{
    for (uint32_t size = 0; size <= KEY_SIZE_MAX; size++) {
        struct key key = key_of_size(size), opened;
        char text[TOKEN_TEXT_MAX];
        size_t length = token_seal(&one, LIST, FILTER, key_span(&key), text);
        TEST_CASE_("%u bytes", size);
        TEST_CHECK(length == strlen(text) && length == ((17 + size) * 8 + 5) / 6);
        TEST_CHECK(strspn(text, digits) == length);
        TEST_CHECK(token_open(&one, LIST, FILTER, text, length, &opened) == OK);
        TEST_CHECK(span_equal(key_span(&opened), key_span(&key)));
    }
}

static void test_token_every_change_of_a_character_is_refused(void)
{
    struct key key = key_of_size(20);
    char text[TOKEN_TEXT_MAX];
    size_t length = token_seal(&one, LIST, FILTER, key_span(&key), text);
    for (size_t i = 0; i < length; i++) {
        char kept = text[i];
        for (int c = 0; c < 256; c++) {
            text[i] = (char)c;
            if (text[i] != kept && !TEST_CHECK(refused(text, length)))
                TEST_MSG("character %zu as %d", i, c);
        }
        text[i] = kept;
    }
    TEST_CHECK(!refused(text, length));
}

static void test_token_cut_or_lengthened_is_refused(void)
{
    for (uint32_t size = 0; size <= 4; size++) {
        struct key key = key_of_size(size);
        char text[TOKEN_TEXT_MAX + 8];
        size_t length = token_seal(&one, LIST, FILTER, key_span(&key), text);
        for (size_t cut = 0; cut < length; cut++)
            TEST_CHECK(refused(text, cut));
        for (size_t more = 1; more <= 4; more++) {
            memset(text + length, 'A', more);
            TEST_CHECK(refused(text, length + more));
            memset(text + length, '=', more);
            TEST_CHECK(refused(text, length + more));
        }
    }
}

static void test_token_malformed_is_refused(void)
{
    char text[2 * TOKEN_TEXT_MAX];
    memset(text, 'A', sizeof(text));
    for (size_t length = 0; length <= sizeof(text); length++)
        TEST_CHECK(refused(text, length));
    TEST_CHECK(refused("a b", 3) && refused("AAA+/AAA", 8) && refused("AA==", 4) && refused("\0", 1));
}

/* The last character of these has bits that stand for nothing: another one with the same bytes is no token. */
static void test_token_has_one_spelling(void)
{
    for (uint32_t size = 0; size < 3; size++) {
        struct key key = key_of_size(size);
        char text[TOKEN_TEXT_MAX];
        size_t length = token_seal(&one, LIST, FILTER, key_span(&key), text);
        char *last = text + length - 1;
        const char *digit = strchr(digits, *last);
        if (length % 4 != 0) {
            *last = digits[(size_t)(digit - digits) + 1];
            TEST_CHECK(refused(text, length));
        }
    }
}

static void test_token_of_another_list_filter_or_store_is_refused(void)
{
    struct key key = key_of_size(16), opened;
    char text[TOKEN_TEXT_MAX];
    size_t length = token_seal(&one, LIST, FILTER, key_span(&key), text);
    for (unsigned bit = 0; bit < 16; bit++)
        TEST_CHECK(token_open(&one, (uint16_t)(LIST ^ 1u << bit), FILTER, text, length, &opened) ==
                   ERR_TOKEN);
    for (unsigned bit = 0; bit < 64; bit++)
        TEST_CHECK(token_open(&one, LIST, FILTER ^ UINT64_C(1) << bit, text, length, &opened) == ERR_TOKEN);
    for (unsigned bit = 0; bit < 128; bit++) {
        struct store other = one;
        other.secret[bit / 8] ^= (uint8_t)(1u << bit % 8);
        TEST_CHECK(token_open(&other, LIST, FILTER, text, length, &opened) == ERR_TOKEN);
    }
}

/* Either half of the tag alone refuses: it is 128 bits, and not 64 twice. */
static void test_token_both_halves_of_the_seal_count(void)
{
    struct key key = key_of_size(7), other = key_of_size(7);
    char text[TOKEN_TEXT_MAX], changed[TOKEN_TEXT_MAX];
    other.bytes[0] ^= 1;
    size_t length = token_seal(&one, LIST, FILTER, key_span(&key), text);
    token_seal(&one, LIST, FILTER, key_span(&other), changed);
    /* version and first half: 9 bytes, 12 characters; second half: to byte 17, character 22 */
    TEST_CHECK(memcmp(text, changed, 12) != 0 && memcmp(text + 12, changed + 12, 10) != 0);
    memcpy(changed, text, 12);
    TEST_CHECK(refused(changed, length));
    token_seal(&one, LIST, FILTER, key_span(&other), changed);
    memcpy(changed + 12, text + 12, 10);
    TEST_CHECK(refused(changed, length));
}

static void test_token_outlives_the_process(void)
{
    struct fresh fresh;
    struct key key = key_of_size(24), opened;
    char text[TOKEN_TEXT_MAX];
    fresh_open(&fresh);
    size_t length = token_seal(fresh.store, LIST, FILTER, key_span(&key), text);
    fresh_reopen(&fresh);
    TEST_CHECK(token_open(fresh.store, LIST, FILTER, text, length, &opened) == OK);
    TEST_CHECK(span_equal(key_span(&opened), key_span(&key)));
    fresh_close(&fresh);
}

/* Clients keep tokens over an upgrade: the text is a contract. It comes from another program's SipHash. */
static void test_token_looks_as_it_always_did(void)
{
    struct key key = {.size = 0};
    char text[TOKEN_TEXT_MAX];
    key_add(&key, "page", 4);
    token_seal(&one, LIST, FILTER, key_span(&key), text);
    TEST_CHECK_(strcmp(text, "AbcGoalXFelLPd1pA17dwE9wYWdl") == 0, "%s", text);
}

TEST_LIST
= {
    {"token: any key comes back", test_token_any_key_comes_back},
    {"token: every change of a character is refused", test_token_every_change_of_a_character_is_refused},
    {"token: cut or lengthened", test_token_cut_or_lengthened_is_refused},
    {"token: malformed", test_token_malformed_is_refused},
    {"token: one spelling", test_token_has_one_spelling},
    {"token: of another list, filter or store", test_token_of_another_list_filter_or_store_is_refused},
    {"token: both halves of the seal count", test_token_both_halves_of_the_seal_count},
    {"token: outlives the process", test_token_outlives_the_process},
    {"token: looks as it always did", test_token_looks_as_it_always_did},
    {NULL, NULL},
};
