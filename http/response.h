/* Responses: written as a stream into the connection, without knowing their length beforehand.
 *
 * begin, write into the sink, end. What fits into RESPONSE_BUFFER goes out in one piece with its
 * Content-Length; longer ones go out chunk by chunk (to HTTP/1.0 clients: until the connection closes). A
 * client who doesn't take the bytes makes the writer wait, up to the deadline; then the response has failed
 * and the connection is closed.
 *
 * Used by the connection's actor only, while it handles one request; lives on its stack.
 */
#ifndef COPPICE_HTTP_RESPONSE_H
#define COPPICE_HTTP_RESPONSE_H

#include "runtime/actor.h"
#include "runtime/json.h"

#define RESPONSE_BUFFER  8192u
#define RESPONSE_JSON    "application/json"
#define RESPONSE_TEXT    "text/plain; charset=utf-8"
#define RESPONSE_METRICS "text/plain; version=0.0.4; charset=utf-8"

struct response {
    int fd;            /* borrowed, non-blocking */
    uint64_t *watch;   /* the connection's watch of fd: taken away while the writer waits, and put back */
    uint64_t deadline; /* of the whole response */
    bool http10, bodyless, keep_alive;
    int status; /* 0: not begun */
    const char *type;
    const char *header, *header_value; /* one more header line, or NULL */
    bool head_sent, chunked, failed;
    struct json_sink sink;
    char buffer[RESPONSE_BUFFER];
};

/* The caller has set the fields up to keep_alive and zeroed the rest (the buffer needn't be). */
void response_begin(struct response *r, int status, const char *type);
/* Sends what is left. False: the connection is of no use any more. */
bool response_end(struct response *r);
/* A whole response: RFC 9457 problem details. The title follows from the status. */
__attribute__((format(printf, 3, 4))) void response_problem(struct response *r, int status,
                                                            const char *format, ...);
const char *response_title(int status);

#endif
