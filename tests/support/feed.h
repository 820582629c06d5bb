/* Feeds bytes to the parser piece by piece, as a connection does, and tells of each whole request.
 *
 * What hasn't been fed yet isn't there: its place holds other bytes until then.
 */
#ifndef COPPICE_TESTS_SUPPORT_FEED_H
#define COPPICE_TESTS_SUPPORT_FEED_H

#include "http/parser.h"

#define FEED_MAX 131072u

/* The request's views, the body's as well, are good during the call. `end`: of its bytes in the whole. False: stop. */
typedef bool feed_request(void *context, const struct request *q, size_t end);

struct feed {
    enum parsed
        last;     /* PARSED_MORE: all was read, and something is missing or nothing is left; PARSED_REFUSED */
    bool whole;   /* nothing of an unfinished request is left */
    bool in_body; /* the unfinished or refused request's head was taken */
    bool stopped; /* by the callback */
    int status;   /* of a refusal */
    const char *why;
    uint32_t requests;
    size_t begin; /* of the unfinished or refused request */
};

/* cuts: ends of pieces, ascending, all below size. */
struct feed feed_bytes(const char *bytes, size_t size, const size_t *cuts, size_t cuts_count,
                       feed_request *on_request, void *context);

#endif
