/* libcurl, loaded when it is first needed: with it come some 25 shared libraries, 10,000 relocations and as many milliseconds
 * as the start of the server has altogether, and most servers fetch nothing (docs/decisions/0021-libcurl-when-needed.md).
 *
 * Its functions are called through the table `curl`: curl.easy_init() is curl_easy_init(). Types and constants are those of
 * its headers. Nobody may call them before curl_load has said true to him; what is loaded stays until the process ends.
 */
#ifndef COPPICE_ACTORS_CURL_H
#define COPPICE_ACTORS_CURL_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

#define CURL_FILE   "libcurl.so.4"
#define CURL_OLDEST 0x075500u /* 7.85.0: CURLOPT_PROTOCOLS_STR, without which a URL could name any protocol */

#define CURL_FUNCTIONS(X)  \
    X(global_init)         \
    X(version_info)        \
    X(easy_init)           \
    X(easy_setopt)         \
    X(easy_getinfo)        \
    X(easy_reset)          \
    X(easy_cleanup)        \
    X(easy_strerror)       \
    X(multi_init)          \
    X(multi_setopt)        \
    X(multi_assign)        \
    X(multi_add_handle)    \
    X(multi_remove_handle) \
    X(multi_info_read)     \
    X(multi_socket_action) \
    X(multi_cleanup)       \
    X(slist_append)        \
    X(slist_free_all)

struct curl {
#define X(name) __typeof__(curl_##name) *name;
    CURL_FUNCTIONS(X)
#undef X
    const char *version; /* "7.88.1"; NULL: not loaded */
    unsigned version_num;
    /* Of the OpenSSL that it uses; NULL: it uses another library. */
    long (*ssl_ctx_ctrl)(void *context, int command, long number, void *more);
};
extern struct curl curl; /* written by curl_load alone, once */

/* Loads and initialises it, unless that was done before. False: a sentence for the log, and nothing has happened; it is tried
 * anew the next time, so an installation needs no restart. `file` is CURL_FILE or another name for the loader. Reads files and
 * takes a lock, once for milliseconds; any thread; in an actor within a guarded section. */
bool curl_load(const char *file, char *ret_why, size_t why_size);

#endif
