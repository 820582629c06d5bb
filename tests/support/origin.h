/* An origin: a small HTTP server in threads of its own, with good and bad manners, for tests of what asks others.
 *
 * Every connection has a thread that reads one request after the other (with Content-Length) and hands it to the test's
 * function, which writes whatever it likes. No time limits: a connection ends when its function says so, when the client
 * closes it, or at origin_stop.
 */
#ifndef COPPICE_TESTS_SUPPORT_ORIGIN_H
#define COPPICE_TESTS_SUPPORT_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ORIGIN_REQUEST_MAX 131072u

struct origin_request {
    int fd;
    const char *head; /* all of it, with its end */
    const char *path; /* up to a space */
    const char *body;
    size_t body_size;
};
/* False: close the connection. */
typedef bool origin_serve(const struct origin_request *request);

/* Listens on all of 127.0.0.0/8; returns the port. */
uint16_t origin_start(origin_serve *serve);
void origin_stop(void); /* closes everything and waits for its threads */

/* For a function that serves. */
bool origin_path(const struct origin_request *request, const char *path);
bool origin_write(const struct origin_request *request, const void *bytes, size_t size);
bool origin_text(const struct origin_request *request, const char *text);
void origin_until_closed(const struct origin_request *request); /* returns when the client has closed */
/* Waits until as many have come here since the last gate was passed. */
void origin_gate(uint32_t count);

struct origin_counts {
    uint32_t connections, requests, open; /* all so far, and those that are open now */
    uint32_t at_gate_max;                 /* the most that were at a gate at one time */
};
struct origin_counts origin_counts(void);

#endif
