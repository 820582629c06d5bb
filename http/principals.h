/* Principals as operators see them: services and agents with a secret, for which POST /v1/auth/token (http/grants.h) gives
 * them tokens.
 *
 *     GET  /principals                  by name, page by page; never a secret, nor its hash
 *     POST /principals                  a new one: name, role, projects, of an agent its template and tier
 *     POST /principals/{name}:rotate    another secret
 *     POST /principals/{name}:revoke    it is none any more
 *
 * The secret is in the one answer that made it and nowhere else; it has the form of an API key (http/api_key_auth.h). With
 * another secret, and with the end, all tokens of that name end as well, before the answer (CTL-099 to CTL-101). Who is to
 * have another role or other projects is revoked and made anew.
 *
 * A name has 1 to 112 letters, digits and . _ : @ -; so have projects, up to 128 of them, or there is the one "*".
 */
#ifndef COPPICE_HTTP_PRINCIPALS_H
#define COPPICE_HTTP_PRINCIPALS_H

#include "http/route.h"

#define PRINCIPALS_BODY_MAX 16384u

extern const struct route principal_routes[]; /* the operator's */
extern const size_t principal_routes_count;

#endif
