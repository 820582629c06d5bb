/* Quotas of requests, as the front asks for them (store/client_quota.h): limits.client_quota_requests of one client in
 * limits.client_quota_window, whatever it asks for. Off unless configured; then a request costs one comparison.
 *
 * Each scheduler takes some beforehand, a thousandth of the quota at a time, and counts them down; so a quota below 2000 is counted one
 * by one, with a commit each, and a larger one is exact but for what was taken and not used. Each remembers QUOTA_CELLS clients.
 *
 * While the store takes nothing, nothing is counted and all pass: reading must stay possible, and there is nothing else to be had.
 */
#ifndef COPPICE_HTTP_CLIENT_QUOTA_H
#define COPPICE_HTTP_CLIENT_QUOTA_H

#include "http/request.h"
#include "http/response.h"

#define QUOTA_CELLS 1024u
#define QUOTA_WAYS  4u
#define QUOTA_PARTS 1024u /* that a quota is taken in */
#define QUOTA_MOST  4096u /* requests taken at a time */

struct client_quota_settings {
    uint64_t requests, window_us; /* requests 0: off */
};
/* Boot and reload; any thread. */
void client_quota_configure(const struct client_quota_settings *settings);

/* One request of the client that q->identity is; false: answered with 429. From an actor; may wait for the store. */
bool client_quota_take(const struct request *q, struct response *r);

#endif
