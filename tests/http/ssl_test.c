/* libssl is there when TLS is configured, and not before. Each test runs in a process of its own. */
#include "acutest.h"

#include <dlfcn.h>
#include <stdio.h>

#include "http/ssl.h"
#include "http/tls.h"

static char why[256];

static bool in_memory(const char *file)
{
    return dlopen(file, RTLD_LAZY | RTLD_NOLOAD) != NULL;
}

static void test_it_is_loaded_when_asked_for(void)
{
    TEST_CHECK(!in_memory(SSL_FILE) && !in_memory(CRYPTO_FILE));
    TEST_CHECK(ssl_load(SSL_FILE, why, sizeof(why)));
    TEST_MSG("%s", why);
    TEST_CHECK(in_memory(SSL_FILE) && crypto_loaded());
    SSL_CTX *context = ssl.SSL_CTX_new(ssl.TLS_server_method());
    TEST_CHECK(context != NULL);
    ssl.SSL_CTX_free(context);
    TEST_CHECK(ssl_load(SSL_FILE, why, sizeof(why)));
}

static void test_one_that_is_missing_is_a_sentence_and_tried_anew(void)
{
    TEST_CHECK(!ssl_load("libnothere.so.3", why, sizeof(why)));
    TEST_CHECK(strncmp(why, "libssl can't be loaded: libnothere.so.3", 39) == 0);
    TEST_MSG("%s", why);
    TEST_CHECK(!ssl.SSL_new && ssl_load(SSL_FILE, why, sizeof(why)));
}

static void test_another_library_is_refused(void)
{
    TEST_CHECK(!ssl_load("libm.so.6", why, sizeof(why)));
    TEST_CHECK(strncmp(why, "libm.so.6 has no ", 17) == 0);
    TEST_MSG("%s", why);
    TEST_CHECK(!ssl.SSL_new);
}

static void test_a_context_loads_it(void)
{
    TEST_CHECK(!tls_context_create("/nothere.pem", "/nothere.key", NULL, why, sizeof(why)));
    TEST_CHECK(strstr(why, "certificate /nothere.pem") != NULL && in_memory(SSL_FILE));
    TEST_MSG("%s", why);
}

static void test_no_context_doesn_t(void)
{
    TEST_CHECK(!tls_context_here());
    tls_context_install(NULL);
    tls_context_release(NULL);
    TEST_CHECK(!in_memory(SSL_FILE) && !in_memory(CRYPTO_FILE));
}

TEST_LIST
= {
    {"it is loaded when asked for", test_it_is_loaded_when_asked_for},
    {"one that is missing is a sentence, and tried anew",
     test_one_that_is_missing_is_a_sentence_and_tried_anew},
    {"another library is refused", test_another_library_is_refused},
    {"a context loads it", test_a_context_loads_it},
    {"no context doesn't", test_no_context_doesn_t},
    {NULL, NULL},
};
