/* Callback URLs: whoever reads one that is let through sees the same scheme, host and port in it. The second reader is libcurl, which
 * will connect to it; and no address in it is one that may not be reached. */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include "actors/callback_url.h"
#include "actors/reach.h"
#include "runtime/assert.h"
#include "tests/fuzz/bytes.h"

#define CURL_CALLS(X) X(curl_url) X(curl_url_set) X(curl_url_get) X(curl_url_cleanup) X(curl_free)

/* As the product has it: loaded, not linked. */
static struct {
    void *library;
#define X(name) __typeof__(name) *name;
    CURL_CALLS(X)
#undef X
} curl;

static void load_curl(void)
{
    curl.library = dlopen("libcurl.so.4", RTLD_NOW);
    ASSERT(curl.library);
#define X(name) ASSERT((curl.name = (__typeof__(name) *)dlsym(curl.library, #name)) != NULL);
    CURL_CALLS(X)
#undef X
}

/* Empty: there is none. */
static void part_of(CURLU *url, CURLUPart part, char text[CALLBACK_URL_MAX + 1])
{
    char *found = NULL;
    *text = 0;
    if (curl.curl_url_get(url, part, &found, 0) != CURLUE_OK)
        return;
    ASSERT(strlen(found) <= CALLBACK_URL_MAX);
    strcpy(text, found);
    curl.curl_free(found);
}

/* A host that reads as an address leads to a public one. */
static void check_address(const char *host)
{
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    char text[64];
    if (inet_aton(host, &four.sin_addr)) /* the lax one, which takes numbers, octal and hexadecimal, too */
        ASSERT(reach_public((const struct sockaddr *)(const void *)&four));
    if (sscanf(host, "[%63[^]]", text) == 1) {
        ASSERT(inet_pton(AF_INET6, text, &six.sin6_addr) == 1);
        ASSERT(reach_public((const struct sockaddr *)(const void *)&six));
    }
    ASSERT(strcasecmp(host, "localhost") != 0);
}

/* libcurl writes an address of six anew, in its shortest form. */
static bool same_host(const char *ours, size_t size, const char *host)
{
    struct in6_addr a, b;
    char mine[64], other[64];
    if (size == strlen(host) && strncasecmp(ours, host, size) == 0)
        return true;
    return size < sizeof mine && sscanf(ours, "[%63[^]]", mine) == 1 &&
           sscanf(host, "[%63[^]]", other) == 1 && inet_pton(AF_INET6, mine, &a) == 1 &&
           inet_pton(AF_INET6, other, &b) == 1 && memcmp(&a, &b, sizeof a) == 0;
}

static void check_let_through(const char *text, bool allow_private)
{
    static char scheme[CALLBACK_URL_MAX + 1], host[CALLBACK_URL_MAX + 1], port[CALLBACK_URL_MAX + 1],
        user[CALLBACK_URL_MAX + 1], ours[CALLBACK_URL_MAX + 1];
    CURLU *url = curl.curl_url();
    ASSERT(url && curl.curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK);
    part_of(url, CURLUPART_SCHEME, scheme);
    part_of(url, CURLUPART_HOST, host);
    part_of(url, CURLUPART_PORT, port);
    part_of(url, CURLUPART_USER, user);
    curl.curl_url_cleanup(url);
    ASSERT(!*user && *host && (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0));
    struct span place = callback_url_host(span_text(text));
    snprintf(ours, sizeof ours, "%.*s", (int)place.size, (const char *)place.bytes);
    const char *behind = *ours == '[' ? strchr(ours, ']') + 1 : ours + strcspn(ours, ":");
    ASSERT(!*behind || *behind == ':');
    ASSERT(same_host(ours, (size_t)(behind - ours), host));
    ASSERT(strtoul(*behind && behind[1] ? behind + 1 : "0", NULL, 10) ==
           strtoul(*port ? port : "0", NULL, 10));
    if (!allow_private)
        check_address(host);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes input = {data, size};
    char text[CALLBACK_URL_MAX + 1];
    const char *why = NULL;
    if (!curl.library)
        load_curl();
    bool allow_private = take(&input) & 1;
    take_text(&input, sizeof text - 1, text, sizeof text);
    if (callback_url_check(span_text(text), allow_private, &why))
        check_let_through(text, allow_private);
    else
        ASSERT(why && *why);
    return 0;
}
