/* libcrypto is there when it is asked for, and not before. Each test runs in a process of its own. */
#include "acutest.h"

#include <dlfcn.h>
#include <stdio.h>

#include "store/crypto.h"

static char why[256];

static bool in_memory(void)
{
    return dlopen(CRYPTO_FILE, RTLD_LAZY | RTLD_NOLOAD) != NULL;
}

static void test_it_is_loaded_when_asked_for(void)
{
    TEST_CHECK(!in_memory() && !crypto_loaded());
    TEST_CHECK(crypto_load(CRYPTO_FILE, why, sizeof(why)));
    TEST_MSG("%s", why);
    TEST_CHECK(in_memory() && crypto_loaded());
    BIGNUM *number = crypto.BN_bin2bn((const unsigned char *)"\x07", 1, NULL);
    TEST_CHECK(crypto.BN_is_odd(number) && crypto.BN_num_bits(number) == 3);
    crypto.BN_free(number);
    TEST_CHECK(crypto_load(CRYPTO_FILE, why, sizeof(why)));
}

static void test_one_that_is_missing_is_a_sentence_and_tried_anew(void)
{
    TEST_CHECK(!crypto_load("libnothere.so.3", why, sizeof(why)));
    TEST_CHECK(strncmp(why, "libcrypto can't be loaded: libnothere.so.3", 42) == 0);
    TEST_MSG("%s", why);
    TEST_CHECK(!crypto_loaded() && !crypto.EVP_MD_fetch);
    TEST_CHECK(crypto_load(CRYPTO_FILE, why, sizeof(why)) && crypto_loaded());
}

static void test_another_library_is_refused(void)
{
    TEST_CHECK(!crypto_load("libm.so.6", why, sizeof(why)));
    TEST_CHECK(strncmp(why, "libm.so.6 has no ", 17) == 0);
    TEST_MSG("%s", why);
    TEST_CHECK(!crypto_loaded() && !crypto.BIO_free);
}

static void test_a_short_place_for_the_sentence(void)
{
    char little[10] = "";
    TEST_CHECK(!crypto_load("libnothere.so.3", little, sizeof(little)));
    TEST_CHECK(strcmp(little, "libcrypto") == 0);
}

TEST_LIST
= {
    {"it is loaded when asked for", test_it_is_loaded_when_asked_for},
    {"one that is missing is a sentence, and tried anew",
     test_one_that_is_missing_is_a_sentence_and_tried_anew},
    {"another library is refused", test_another_library_is_refused},
    {"a short place for the sentence", test_a_short_place_for_the_sentence},
    {NULL, NULL},
};
