/* An exchange: a request made by hand, the handler of its route, and the answer taken apart; without a connection. */
#ifndef COPPICE_TESTS_SUPPORT_EXCHANGE_H
#define COPPICE_TESTS_SUPPORT_EXCHANGE_H

#include "http/json_text.h"
#include "http/route.h"

struct exchange {
    struct request q;
    struct response r;
    struct json_text sent, answer;
    struct json_node sent_nodes[256], answer_nodes[256];
};

/* The row of this method and path; it must be there. */
const struct route *exchange_route(const struct route *routes, size_t count, enum method method,
                                   const char *path);
/* body: JSON, or NULL. Everything is borrowed. Who asks, and more of the request, is filled in by the caller in between. */
void exchange_begin(struct exchange *x, const struct route *route, const char *param, const char *body);
void exchange_serve(struct exchange *x); /* precheck and handler; the answer is read */
/* A member of the answer, by names with dots in between ("error.code"): its text without quotes; "" when it isn't there. Good
 * until the next call. */
const char *exchange_member(const struct exchange *x, const char *names);
bool exchange_has_header(const struct exchange *x, const char *line); /* "Retry-After: 1" */

#endif
