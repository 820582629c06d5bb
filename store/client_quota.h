/* Quotas of requests: how many a client may still make in its window, kept through restarts (JOB-332, AMB-J-50).
 *
 * A window begins with the first request after the last one is over. Who counts takes some at a time, beforehand: a commit for
 * each request would cost more than most requests do. What was taken and not used is lost with whoever took it (a server that is
 * killed); so there may be fewer requests than the quota says, never more. A clock that goes back behind the beginning of a window
 * begins another one.
 *
 * It stands in the row of the client's keys, which every client has that can make such a request.
 */
#ifndef COPPICE_STORE_CLIENT_QUOTA_H
#define COPPICE_STORE_CLIENT_QUOTA_H

#include "store/client.h"

#define CLIENT_QUOTA_WINDOW_MAX (UINT64_C(366) * 86400 * 1000000)

#define CLIENT_QUOTA_TAKE_FIELDS(X) \
    X(client, UUID, 0, 1)           \
    X(quota, U64, 0, 1)             \
    X(window_us, U64, 0, 1)         \
    X(want, U32, 0, 1)
RECORD_STRUCT(client_quota_take, CLIENT_QUOTA_TAKE_FIELDS);
/* Code 104; answer: a struct client_quota_taken as it is. ERR_NOT_FOUND: the client never had a key. ERR_INVALID: a quota, a wish or
 * a window of 0, or a window longer than CLIENT_QUOTA_WINDOW_MAX. */
extern const struct command_class client_quota_take_class;

struct client_quota_taken {
    uint32_t granted; /* up to `want`; 0: the quota is used up, and nothing was written */
    uint32_t unused;
    uint64_t left;    /* beyond those */
    uint64_t ends_us; /* the window does */
};

#endif
