/* Limits on how often: a table of token buckets in memory (any thread, no lock, one compare-and-swap), and for the
 * buckets of the control contract the sliding window of spec/control.md AMB-28, which survives a restart.
 *
 * X(ID, "name", requests, window in s, per) per: ADDRESS, CLIENT (the key's client), SUBJECT (a token's sub), ROUTE (of all who
 * ask there together), ACTOR (sub). Those per ACTOR
 * are windows in the store (store/rate_window.h), a commit each: they are rare by definition. The store knows them by their
 * place in this list, so new ones go to its end. One that was refused is refused again from memory until its time has come,
 * so asking too often costs the store nothing. When the store can't be asked, a token bucket of the same quota stands in.
 *
 * A token bucket holds `requests` and gets them back evenly over its window (AMB-J-65); as GCRA (ITU-T I.371) it is one
 * number, the time at which it will be full again. Keys are remembered in sets of LIMITER_WAYS; a set that is full of others
 * gives up the cell that is fullest, which forgets nothing when that one is full, and a debt when all are in use: with
 * LIMITER_CELLS_MAX cells that takes tens of thousands of busy keys. 16 bytes a cell: 1 MiB.
 */
#ifndef COPPICE_HTTP_LIMITER_H
#define COPPICE_HTTP_LIMITER_H

#include "runtime/env.h"
#include "runtime/error.h"
#include "store/span.h"

struct response;

#define LIMITS(X)                                                                                            \
    X(NONE, "none", 0, 0, ROUTE)                                                                             \
    X(ADDRESS, "address", 0, 60, ADDRESS) /* of any request on the client port; 0: off unless configured */  \
    X(CLIENT, "client", 600, 60, CLIENT)  /* limits.requests_per_minute, JOB-441 */                          \
    X(REGISTER, "register", 60, 60, ADDRESS) /* new clients and first keys, which need no credentials */     \
    X(SUBMIT, "submit", 20, 60, ACTOR)       /* CTL-160 */                                                   \
    X(DECISION, "decision", 10, 60, ACTOR)   /* CTL-158, all three paths */                                  \
    X(DLQ_LIST, "dlq_list", 60, 60, ACTOR)   /* CTL-155 */                                                   \
    X(DLQ_REPROCESS, "dlq_reprocess", 20, 60, ACTOR)                                                         \
    X(DLQ_BULK, "dlq_bulk", 5, 60, ACTOR)                                                                    \
    X(FAILURES, "failures", 600, 60, ADDRESS) /* refused credentials of one address: beyond that it waits */ \
    X(TOKEN, "token", 60, 60, ADDRESS)        /* tokens that are asked for with a secret */                  \
    X(SUBJECT, "subject", 600, 60, SUBJECT)   /* limits.subject: where a token has no bucket of its own */   \
    X(REGISTER_ALL, "register_all", 6000, 60,                                                                \
      ROUTE) /* new clients and first keys, from wherever they come */                                       \
    X(TOKEN_ALL, "token_all", 6000, 60, ROUTE)                                                               \
    X(WORK, "work", 60000, 60, CLIENT) /* a client's workers: claims, heartbeats, ends */                    \
    X(OPERATOR_FAILURES, "operator_failures", 600, 60,                                                       \
      ADDRESS) /* the same of the operators' listener: neither listener's count for the other */

enum limit {
#define X(id, name, requests, window, per) LIMIT_##id,
    LIMITS(X)
#undef X
        LIMIT_COUNT
};

struct limit_result {
    bool allowed;
    uint32_t quota, window_s; /* of the policy; quota 0: there is no limit */
    uint32_t remaining;
    uint32_t
        reset_s; /* until a refused one would be allowed, at least 1; or until the quota is whole again */
};

/* Beside RateLimit and RateLimit-Policy: three fields for clients that know no others. A prefix for each. */
#define LIMITER_STYLES(X)             \
    X(DRAFT, "draft", NULL)           \
    X(TRIPLE, "triple", "RateLimit-") \
    X(X_TRIPLE, "x-triple", "X-RateLimit-")
enum limiter_style {
#define X(id, name, prefix) LIMITER_STYLE_##id,
    LIMITER_STYLES(X)
#undef X
        LIMITER_STYLE_COUNT
};
/* Of this name; DRAFT when there is none. */
enum limiter_style limiter_style(const char *name);

struct limiter;
#define LIMITER_CELLS_MAX     65536u /* keys remembered; beyond that the one idle for longest in its set goes */
#define LIMITER_WAYS          4u
#define LIMITER_OVERRIDES_MAX 1024u
#define LIMITER_KEY_MAX       64u
#define LIMITER_QUOTA_MAX     1000000u /* of token buckets; of windows RATE_WINDOW_QUOTA_MAX */

/* Another quota for one key: limits.clients.<client_id>.requests_per_minute (JOB-447). */
struct limiter_override {
    enum limit limit;
    uint32_t quota; /* 0: none at all is allowed, and a refused one is told to come back after a window */
    uint8_t key_size, key[LIMITER_KEY_MAX];
};

struct limiter_options {
    uint32_t cells;                           /* 0: LIMITER_CELLS_MAX; rounded up to a power of two */
    uint32_t quota[LIMIT_COUNT];              /* 0: the table's; more than the maximum: that */
    const struct limiter_override *overrides; /* borrowed until the limiter has been destroyed */
    uint32_t overrides_count;                 /* at most LIMITER_OVERRIDES_MAX */
    enum limiter_style style;                 /* of what is said about it */
    struct env *env;                          /* chance for the table's hash; NULL: env_real() */
};
struct limiter *limiter_create(const struct limiter_options *options); /* NULL: no memory. Boot only */
void limiter_destroy(struct limiter *limiter);
/* A reload: quotas and overrides from now on. Any thread, one at a time; the overrides of before must stay as long as
 * somebody may be reading them. */
void limiter_configure(struct limiter *limiter, const struct limiter_options *options);

/* Counts one request of `key` in this bucket, if allowed. From an actor; those with a window may wait for the store. */
/* Whether there is anything to count: false, as long as nobody sets a quota for it or for any key, saves asking. */
bool limiter_counts(const struct limiter *limiter, enum limit limit);
/* Of the three older fields, as limits.headers has it now; NULL: there are none. */
const char *limiter_prefix(const struct limiter *limiter);
struct limit_result limiter_take(struct limiter *limiter, enum limit limit, struct span key);
/* What limiter_take would say, and nothing is counted. Token buckets only. */
struct limit_result limiter_look(struct limiter *limiter, enum limit limit, struct span key);
const char *limit_name(enum limit limit);

/* RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers), and Retry-After when it was refused. Nothing when
 * there is no limit. Before the response begins. In an older style as well: that has room for one bucket, and gets the one that
 * has the least left. */
void limiter_write_headers(const struct limiter *limiter, const struct limit_result *result, enum limit limit,
                           struct response *r);
/* The three fields of one that was taken, into text, a line each; their size. */
#define LIMITER_TRIPLE_MAX 128u
struct limiter_told {
    const char *prefix; /* NULL: nothing */
    uint32_t quota, remaining, reset_s;
};
uint32_t limiter_write_triple(const struct limiter_told *told, char text[LIMITER_TRIPLE_MAX]);

#endif
