/* Responses: a head and a body, written as a stream into the connection.
 *
 *     response_begin(r, 200, RESPONSE_JSON);
 *     response_header(r, "Location", "/v1/jobs/%s", id);      any number that fits RESPONSE_HEADERS_MAX
 *     json_init(&json, &r->sink); ...                         the body, into r->sink
 *
 * The front ends it. What fits into RESPONSE_BODY_MAX goes out with its Content-Length, together with the other
 * answers of the same read; longer ones go out chunk by chunk (to HTTP/1.0 clients: until the connection closes). A
 * client that doesn't take the bytes makes the writer wait, for write_ns with each RESPONSE_BODY_MAX of them; then the
 * response has failed and the connection is closed. The handler's security headers can't be weaker than the front's: those
 * are written last, by response_end alone, and a handler's header of the same name is refused by assertion.
 *
 * Event streams: response_stream, then response_flush after each event and response_wait between them.
 *
 * Used by the connection's actor only, while it handles one request; lives on its stack.
 */
#ifndef COPPICE_HTTP_RESPONSE_H
#define COPPICE_HTTP_RESPONSE_H

#include "http/catalogue.h"
#include "http/limiter.h"
#include "runtime/actor.h"
#include "runtime/json.h"

struct body;
struct connection;
struct front;
struct request;

#define RESPONSE_BODY_MAX    8192u
#define RESPONSE_HEADERS_MAX 1024u
#define RESPONSE_JSON        "application/json"
#define RESPONSE_TEXT        "text/plain; charset=utf-8"
#define RESPONSE_EVENTS      "text/event-stream"

struct response {
    struct connection *connection; /* borrowed */
    const struct request *request; /* borrowed; NULL: refused before there was one */
    uint64_t deadline;             /* for the client to take the next bytes */
    bool http10, bodyless;         /* bodyless: HEAD, 204, 304 */
    bool keep_alive;
    bool head_sent, chunked, streaming, failed;
    enum error failure; /* why, when a handler has said so: response_fail */
    bool checked;       /* its body is wanted by http/answer_check.h; false again when it can't be had */
    bool beyond; /* on purpose it says more than its operation's contract knows of: not compared with that */
    struct body *kept; /* what of it has gone out, then; NULL: nothing. The front's to drop */
    uint32_t kept_size;
    int status;                  /* 0: not begun */
    const char *type;            /* NULL: no body */
    enum surface surface;        /* whose path it is: the shape of an error */
    struct limiter_told limited; /* the bucket that has the least left */
    enum error_code error;       /* ERROR_NONE, or which row of the catalogue this answer is */
    char job_id[40]; /* of the job an error is about, for the control envelope (CTL-252); or empty */
    uint32_t headers_length;
    uint32_t headers_ours; /* of it, the front's: what the handler found */
    uint64_t sent_bytes;   /* of the body, for the access log */
    struct json_sink sink;
    char headers[RESPONSE_HEADERS_MAX];
    char body[RESPONSE_BODY_MAX];
};

void response_begin(struct response *r, int status, const char *type);
/* One more header line. Control characters in the value are an assertion: values from outside are checked before. */
__attribute__((format(printf, 3, 4))) void response_header(struct response *r, const char *name,
                                                           const char *format, ...);
/* The same of a value as it stands: without a format, at a tenth of the cost. */
void response_header_text(struct response *r, const char *name, const char *value, size_t size);
/* Whether a line of this name is there. */
bool response_has_header(const struct response *r, const char *name);
/* A whole response from the error catalogue, in the shape of the surface that owns the request's path. `format` says what
 * is wrong with this request; it must not repeat secrets or payload. */
__attribute__((format(printf, 3, 4))) void response_error(struct response *r, enum error_code code,
                                                          const char *format, ...);
/* The same with more members: `write` is called inside the control envelope's "details" object, or at the top level of
 * problem details; it may write members. */
void response_error_with(struct response *r, enum error_code code, const char *detail,
                         void (*write)(struct json *json, void *context), void *context);

/* By a handler that has begun an answer and can't tell it to its end. As long as nothing of it has gone out the front says so instead,
 * as anything that fails is told (catalogue_failure); else the connection ends in the middle of it. */
void response_fail(struct response *r, enum error e);

/* About one member of the body, or one parameter, by its name: "<field> <what>", and the entry of "errors" that a schema's refusal would have. */
void response_error_field(struct response *r, enum error_code code, const char *field, const char *what);
__attribute__((format(printf, 4, 5))) void response_error_about(struct response *r, enum error_code code,
                                                                const char *field, const char *format, ...);

/* Sends the head now and everything in the sink with each response_flush: for answers of unknown length that trickle.
 * Events: 200, RESPONSE_EVENTS, no-store, X-Accel-Buffering: no. */
void response_stream(struct response *r, int status, const char *type);
bool response_flush(struct response *r); /* false: the client is gone, or slower than allowed; stop */
/* Waits, also before the answer begins, until the deadline or until a message for the handler matches (*ret_message, may be NULL
 * to want none). ERR_DOWN: the client closed or the server drains; ERR_TIMEOUT: time to say ":" again. What is ready goes out first, of
 * this answer and of those to earlier requests of the connection. */
enum error response_wait(struct response *r, message_match *match, void *arg, struct message **ret_message,
                         uint64_t deadline);

/* By the front, behind the handler: what is said instead of an answer that has failed before any of it went out. */
void response_instead(struct response *r);
/* By the front. True: the connection stays open. */
bool response_end(struct response *r);
const char *response_title(int status);
/* By the connection, when the handler of this response has crashed: the bytes of a 500 instead of it. From what is released
 * when an actor has ended. Its size. */
#define RESPONSE_LAST_MAX  2816u
#define RESPONSE_LAST_OURS 512u /* of the front's headers; more are left out */
size_t response_last_words(struct response *r, char text[RESPONSE_LAST_MAX]);

/* By the front, for a connection that there is no room for: with the surface, the code and the ids that are in the response already,
 * the bytes that tell it so. Their size. */
size_t response_turn_away(struct response *r, const struct front *front, bool own,
                          char text[RESPONSE_LAST_MAX]);

#endif
