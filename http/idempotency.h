/* Idempotency of requests: the key that a client sends, and whether two bodies mean the same (AMB-J-29). What is done with them
 * is the ledger's (store/ledger.h). From the connection's actor; memory is its arena's. */
#ifndef COPPICE_HTTP_IDEMPOTENCY_H
#define COPPICE_HTTP_IDEMPOTENCY_H

#include "http/request.h"
#include "http/response.h"
#include "store/record.h"

/* Of the header, quoted (as its draft writes it) or bare, which is the same key; empty: none was sent. False: answered. */
bool idempotency_take_key(const struct request *q, struct response *r, struct span *ret_key);
/* 1 to LEDGER_KEY_MAX visible ASCII characters. */
bool idempotency_key_good(struct span key);

/* Of what the body means, not of how it is written: white space, escapes and the order of members don't count. No body is {}.
 * `except`: a member of the root that doesn't count; or NULL. By the store's secret: nobody finds two bodies with one digest. */
struct digest idempotency_digest(const struct request *q, const char *except);

#endif
