/* libcurl is there when it is asked for, and not before. Each test runs in a process of its own. */
#include "acutest.h"

#include <dlfcn.h>
#include <stdio.h>

#include "actors/curl.h"

static char why[256];

static bool in_memory(void)
{
    return dlopen(CURL_FILE, RTLD_LAZY | RTLD_NOLOAD) != NULL;
}

static void test_it_is_loaded_when_asked_for(void)
{
    TEST_CHECK(!in_memory() && !curl.version);
    TEST_CHECK(curl_load(CURL_FILE, why, sizeof(why)));
    TEST_MSG("%s", why);
    TEST_CHECK(in_memory() && curl.version && curl.version_num >= CURL_OLDEST);
    TEST_CHECK(strcmp(curl.easy_strerror(CURLE_OK), "No error") == 0);
    TEST_CHECK(curl_load(CURL_FILE, why, sizeof(why)));
}

static void test_one_that_is_missing_is_a_sentence_and_tried_anew(void)
{
    TEST_CHECK(!curl_load("libnothere.so.4", why, sizeof(why)));
    TEST_CHECK(strncmp(why, "libcurl can't be loaded: libnothere.so.4", 40) == 0);
    TEST_MSG("%s", why);
    TEST_CHECK(!curl.version && !curl.easy_init);
    TEST_CHECK(curl_load(CURL_FILE, why, sizeof(why)) && curl.version);
}

static void test_another_library_is_refused(void)
{
    TEST_CHECK(!curl_load("libssl.so.3", why, sizeof(why)));
    TEST_CHECK(strcmp(why, "libssl.so.3 has no curl_global_init") == 0);
    TEST_MSG("%s", why);
    TEST_CHECK(!curl.version && !curl.global_init);
}

static void test_a_short_place_for_the_sentence(void)
{
    char little[8] = "";
    TEST_CHECK(!curl_load("libnothere.so.4", little, sizeof(little)));
    TEST_CHECK(strcmp(little, "libcurl") == 0);
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
