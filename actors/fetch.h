/* Fetch: HTTP requests to the outside, by libcurl on the scheduler's own poller.
 *
 * One actor runs a multi handle; whoever wants something calls fetch and waits, or asks with fetch_begin and gets a
 * FETCH_DONE message. Bounds: FETCH_MAX at a time and FETCH_HOST_MAX of one host and port, FETCH_QUEUE_MAX waiting (then
 * ERR_SHED). Those that have a time of their own, which are webhooks, get FETCH_TIMED_MAX at a time; so what the server itself wants, such
 * as keys and traces, doesn't wait for receivers. HTTP/1.1 over http and https only. An answer that is longer than asked for and a total deadline that has passed
 * are failed fetches. A redirect is an answer like any other and is never followed; nothing is decompressed; cookies, .netrc
 * and the proxies of the environment are not used.
 *
 * Unless any_address is set, only public unicast addresses are connected to (actors/reach.h): each address that the name
 * has resolved to is looked at when its socket is made, and once more before a request goes out over a connection that
 * was there already. A name without an address is refused as well.
 *
 * A kept connection that the peer closes without a word just when a request goes out over it says nothing of that request: libcurl sends
 * it again over another connection, POST as well, up to five times within the fetch's time. So a request may arrive more than once, with
 * the same bytes; whoever asks for what must not happen twice says so in it, as webhooks do by their id. Over a new connection a
 * request goes out once.
 *
 * libcurl is loaded when the first one asks; where it isn't installed every fetch is answered, by ERR_UNAVAILABLE.
 *
 * Names are resolved by libcurl in threads, one for each fetch that resolves. A fetch that ends meanwhile leaves its thread
 * to the C library's own time limit (resolv.conf: 5 s a server and try), so there may be that many more for that long.
 */
#ifndef COPPICE_ACTORS_FETCH_H
#define COPPICE_ACTORS_FETCH_H

#include "runtime/actor.h"

#define FETCH_MAX      64u
#define FETCH_HOST_MAX 8u
#define FETCH_TIMED_MAX \
    60u /* at a time of those with time_ns: the other places are kept for the server's own */
#define FETCH_QUEUE_MAX          1024u
#define FETCH_BODY_MAX           61440u /* of an answer: it travels in one message */
#define FETCH_URL_MAX            2049u  /* with its end */
#define FETCH_HEADERS_MAX        4096u
#define FETCH_REQUEST_MAX        65000u /* URL, headers and body of a request together: they travel in one message */
#define FETCH_ANSWER_HEADERS_MAX 16384u /* of an answer, all of them; more is ERR_LIMIT */
#define FETCH_NAME               "fetch"
#define FETCH_ABOUT_SIZE         32u
#define FETCH_DONE               0x00efff10u /* payload: struct fetch_answer and the body behind it */

struct fetch_request {
    const char *method; /* "GET", "POST": capital letters */
    const char *url;
    const char *headers; /* lines "Name: value\n", or NULL */
    const void *body;
    size_t body_size;
    uint32_t answer_max; /* bytes of body wanted, at most FETCH_BODY_MAX */
    bool
        any_address; /* also loopback and private ones: for what the operator configured, never for clients' URLs */
    uint64_t
        time_ns; /* of fetch_begin; 0: the deadline is of all. Else the deadline is of its turn, and this much time
                       * it has from then on. */
    /* Asked with `about` when its turn has come, by the fetch actor: false, and nothing is sent. NULL: it is wanted. */
    bool (*wanted)(const void *about);
    uint8_t about[FETCH_ABOUT_SIZE];
};

struct fetch_answer {
    uint64_t ref;           /* of fetch_begin */
    int status;             /* 0: there was none */
    uint32_t retry_after_s; /* 0: not said */
    uint32_t size;          /* of the body, which stands behind this struct in the message */
    uint64_t turn;          /* when its turn came, as actor_now says it; 0: it didn't, and nothing was sent */
    enum error error;       /* as fetch returns it */
    char why[120];          /* a sentence for the log when there is an error */
};

/* Waits. OK: there was an answer, whatever its status; its body is copied to `room`. Else there was none, or not a whole
 * one, and only error and why say something, and of one that was too long status and retry_after_s as well:
 *
 *     ERR_TIMEOUT     not by the deadline
 *     ERR_SHED        its turn didn't come by the deadline, or FETCH_QUEUE_MAX are waiting already
 *     ERR_IGNORED     it wasn't wanted any more when its turn came
 *     ERR_LIMIT       longer than asked for, or too many headers
 *     ERR_FORBIDDEN   an address that may not be reached
 *     ERR_INVALID     a URL, a method or headers that can't be meant, or too long
 *     ERR_SYSTEM      not resolved, not connected, TLS failed, a broken answer
 *     ERR_UNAVAILABLE libcurl isn't there, or is one that can't be used
 *     ERR_NOPROC, ERR_DOWN, ERR_MEMORY, ERR_FULL: no fetch actor, or not any more, or no room
 */
enum error fetch(const struct fetch_request *request, struct fetch_answer *ret_answer, void *room,
                 size_t size, uint64_t deadline);
/* FETCH_DONE with this ref will come, once, at the deadline and time_ns at the latest; unless the fetch actor ends before: who
 * must know that monitors it. */
enum error fetch_begin(const struct fetch_request *request, uint64_t *ret_ref, uint64_t deadline);

extern const struct actor_class
    fetch_class; /* row "fetch" of the topology; registers as FETCH_NAME by its row. args: none, or another file name for
                  * the loader than CURL_FILE of actors/curl.h, with its end */

#endif
