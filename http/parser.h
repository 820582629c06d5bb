/* The parser: bytes into requests, strictly. llhttp reads the grammar; what it forgives is refused here.
 *
 * Ambiguity is never resolved, only refused (400, or the status that names the limit), and after a refusal nothing more
 * of the connection is read as a request. Request views point into the bytes that were given: zero copies.
 *
 * The caller gives all the bytes from the start of the request each time (parser_head); a head that isn't complete is
 * looked at again when more has come, from where the search for its end stopped. Bodies follow by parser_body, which
 * takes bytes as they come: with Content-Length they stand in one piece, chunked ones are moved together in place.
 */
#ifndef COPPICE_HTTP_PARSER_H
#define COPPICE_HTTP_PARSER_H

#include <llhttp.h>

#include "http/request.h"

#define PARSER_TARGET_MAX     8192u
#define PARSER_HEAD_MAX       32768u
#define PARSER_METHOD_MAX     40u /* of a method that nobody knows; those that we know are shorter */
#define PARSER_EMPTY_LINES    1u  /* before a request (RFC 9112 2.2); clients of old send one behind a body */
#define PARSER_CHUNK_LINE_MAX 256u /* size and extension */
#define PARSER_TRAILERS_MAX   8192u

enum parsed {
    PARSED_MORE = 0, /* not all there yet */
    PARSED_DONE,     /* *ret_used bytes were read */
    PARSED_REFUSED,  /* status and why are set */
};

struct parser {
    /* of the head */
    uint32_t searched;   /* bytes in which the end of the head isn't */
    uint8_t empty_lines; /* taken off already, see parser_empty_line */
    /* of the body */
    bool chunked;
    uint64_t length; /* announced */
    uint8_t state;   /* of the chunks */
    uint64_t chunk_left, chunk_size;
    uint32_t line_used, trailers_used;
    uint8_t chunk_digits;
    /* of a refusal */
    int status;
    const char *why;
};

void parser_reset(struct parser *parser);
/* One head at the start of `bytes`. PARSED_DONE: *ret_request holds its views, *ret_used is where the body begins, and
 * parser->chunked and ->length say how it comes. */
enum parsed parser_head(struct parser *parser, const char *bytes, size_t size, struct request *ret_request,
                        size_t *ret_used);
/* The head that was read before, of the same connection. Clients say the same with each request but for its first line: where
 * the bytes behind that are the same again, what they mean stands in the request already, and only the line is read; where the line
 * is the same as well, nothing is. */
struct parser_before {
    const char *fields; /* behind the request line; NULL: there was none */
    size_t line, size;  /* of the request line with its end; of what is behind it */
    uint64_t length;
    bool chunked;
};
/* As parser_head, which is this with nothing before, and fills in *before for the next one. Its bytes and *ret_request must be
 * as they were left; the caller who knows that they aren't sets before->fields to NULL. */
enum parsed parser_head_after(struct parser *parser, struct parser_before *before, const char *bytes,
                              size_t size, struct request *ret_request, size_t *ret_used);
/* A name, an IPv4 address, or an IPv6 address in brackets, and perhaps a port of at most 65535 (or none behind the colon, as RFC
 * 3986 has it); no path, no user. */
bool parser_is_host(const char *text, size_t size);
/* What can be read all the same of a head that was refused, or hasn't come to its end: for the shape of the answer, its ids and the
 * log, never for what is done. Fills in the method and the target, if the bytes begin with them, and the known fields that name ids,
 * each if it is there once; the rest of *ret_request stays as it is. */
void parser_glimpse(const char *bytes, size_t size, struct request *ret_request);
/* All there is in front of a request is an empty line: no request has begun. Who takes it off gives what comes next to a new
 * parser with one more in empty_lines. */
bool parser_empty_line(const struct parser *parser, const char *bytes, size_t size);
/* Chunked bodies: reads `size` bytes at `bytes`, writes data to `out` (may be `bytes` itself, never more than was
 * read). PARSED_DONE: the last chunk and its trailers were read. */
enum parsed parser_chunks(struct parser *parser, const char *bytes, size_t size, char *out, size_t *ret_used,
                          size_t *ret_written);

#endif
