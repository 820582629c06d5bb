/* Tokens and the keys that sign them, as operators and verifiers see them.
 *
 *     GET  /.well-known/jwks.json     on every listener, without credentials
 *     GET  /keys                      those that haven't ended, and when the active one is replaced
 *     GET  /keys/history              all of them, newest first, page by page
 *     POST /keys:bootstrap, /keys:rotate, /keys/{kid}:revoke
 *     POST /tokens:issue              also as POST /tokens
 *     POST /tokens:revoke             of a token, a jti, a key, a session or a subject; /tokens/{jti}:revoke of one of ours
 *
 * What changes something goes through the keyring's actor and leaves an audit entry. No answer holds a private half; a
 * token is in the answer that made it and nowhere else.
 */
#ifndef COPPICE_HTTP_TOKENS_H
#define COPPICE_HTTP_TOKENS_H

#include "http/keyring.h"
#include "http/route.h"

#define TOKENS_BODY_MAX 16384u

/* The audit entry of a token that was issued: who may do what, and for how long, is a matter of record. Waits. */
enum error token_note_issue(const struct request *q, struct span who, const struct keyring_claims *claims,
                            const struct keyring_token *token);

extern const struct route jwks_routes[]; /* public */
extern const size_t jwks_routes_count;
extern const struct route token_routes[]; /* the operator's */
extern const size_t token_routes_count;

#endif
