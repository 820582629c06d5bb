/* URLs: what stands between method and version of a request line, taken apart strictly and decoded once.
 *
 * What comes out is the path that is routed, authorised and logged: there is no second reading of it anywhere. Whatever
 * two readers could see differently is refused, never repaired: an escaped slash or backslash, dot segments (plain or
 * escaped), empty segments, control characters, UTF-8 that isn't, an escape that decoding would make into another escape,
 * and every byte that RFC 3986 doesn't allow as it is.
 *
 * Two decisions. A slash at the end is kept: "/jobs/" is another path than "/jobs", and no route has it. An escaped colon
 * (%3A) is refused in the last segment, where a plain one begins a verb ("/jobs/{id}:cancel"): so no decoded byte can ever
 * become the separator, and nobody who reads the path has to remember where a colon came from. In earlier segments, where
 * there are no verbs, it is decoded like any other.
 *
 * Nothing here blocks, allocates or keeps anything.
 */
#ifndef COPPICE_HTTP_URL_H
#define COPPICE_HTTP_URL_H

#include "store/span.h"

/* X(ID, "what is wrong, for the answer"): all but URL_OK are 400. */
#define URL_RESULTS(X)                                                                               \
    X(OK, "")                                                                                        \
    X(FORM, "the request target must be a path, or an absolute http URL")                            \
    X(AUTHORITY, "the request target's authority is not a host and port")                            \
    X(BYTE, "the request target holds a byte that must be escaped")                                  \
    X(ESCAPE, "the request target holds a '%' that is not followed by two hexadecimal digits")       \
    X(SLASH, "the path holds an escaped slash or backslash")                                         \
    X(CONTROL, "the path holds an escaped control character")                                        \
    X(UTF8, "the path is not UTF-8 when decoded")                                                    \
    X(TWICE, "the path is escaped twice")                                                            \
    X(DOTS, "the path holds a segment '.' or '..'")                                                  \
    X(EMPTY, "the path holds an empty segment")                                                      \
    X(COLON, "the path's last segment holds an escaped colon; the one before a verb is a plain ':'") \
    X(LONG, "the path is too long")

enum url_result {
#define X(id, text) URL_##id,
    URL_RESULTS(X)
#undef X
};
const char *url_result_text(enum url_result result);

struct url {
    struct span path;  /* decoded, begins with '/'; borrows the target, or the room when it held escapes */
    struct span query; /* behind the '?', its escapes sound but not decoded; bytes NULL: there was no '?' */
    struct span
        host; /* of an absolute URL, as it stood, with its port: it must be the Host field's; bytes NULL: none */
    bool asterisk; /* "*": the server as a whole; the path is "/" then */
};

/* `options`: the method is OPTIONS, the only one that may ask for "*". `room` holds the path if it has escapes: as long as
 * the longest target suffices. A fragment ('#') is refused. */
enum url_result url_path(struct span target, bool options, char *room, size_t size, struct url *ret);

/* Takes the first parameter off `query` (a=1&b=2&c; empty pieces are passed over); false: there is none left. Name and
 * value are as sent: url_decode. */
bool url_query_next(struct span *query, struct span *ret_name, struct span *ret_value);
/* A name or value of a query, '+' being a space. False: a broken escape, a control character, not UTF-8, or more than
 * `size` bytes. */
bool url_decode(struct span text, char *room, size_t size, size_t *ret_size);
/* The same where a '+' is a plus, as in everything that isn't a query. */
bool url_unescape(struct span text, char *room, size_t size, size_t *ret_size);

#endif
