/* The reference that the parser is compared with: where a request ends, and what is in it.
 *
 * Written from the grammar of RFC 9112 and RFC 9110 and from the house's stricter rules, one function per rule, without
 * llhttp and without a state that outlives a call: it looks at all the bytes from the request's start each time. It is
 * slow, and so simple that it can be believed by reading it.
 *
 * Stricter than the grammar, because two readers could differ: a bare CR or LF anywhere outside of a body; more than one
 * empty line before a request; white space anywhere but around a field's value and in a chunk's extension; any transfer
 * coding but one "chunked"; a tab behind that or a length; Content-Length and Transfer-Encoding together, or either one twice; no
 * Host in HTTP/1.1, or several; a field twice that means something once only; control characters in values; trailers
 * that are part of framing; targets whose form doesn't go with the method; methods that are longer than any, and CONNECT.
 */
#ifndef COPPICE_TESTS_SUPPORT_SPLITTER_H
#define COPPICE_TESTS_SUPPORT_SPLITTER_H

#include "store/span.h"

#define SPLIT_FIELDS_MAX   100u
#define SPLIT_METHOD_MAX   40u
#define SPLIT_LINE_MAX     8192u  /* bytes of the target */
#define SPLIT_HEAD_MAX     32768u /* of the head, with the empty line */
#define SPLIT_CHUNK_LINE   255u   /* without its CRLF */
#define SPLIT_TRAILERS_MAX 8192u
#define SPLIT_BODY_MAX     65536u

enum split {
    SPLIT_MORE,    /* more bytes can still make a request of it */
    SPLIT_DONE,    /* one request, of *ret_used bytes */
    SPLIT_REFUSED, /* nothing that follows is a request */
};

/* Spans point into the bytes that were given. */
struct split_request {
    struct span method, target;
    uint32_t minor;
    bool keep_alive, expects_continue, has_length, chunked;
    uint32_t fields_count;
    struct {
        struct span name, value;
    } fields[SPLIT_FIELDS_MAX];
    size_t head_size;
    size_t body_size;
    char body[SPLIT_BODY_MAX]; /* without the chunks around it */
    const char *why;           /* of a refusal */
};

/* A body of more than SPLIT_BODY_MAX bytes is an assertion: this is for tests. */
enum split split_request(const char *bytes, size_t size, struct split_request *ret, size_t *ret_used);

#endif
