/* Grants: POST /v1/auth/token, where services and agents get tokens of the built-in issuer for their secret (AMB-21).
 *
 *     {"grant_type": "client_credentials", "client_id": NAME, "client_secret": "cop_...", "scope": "p1 p2",
 *      "lifetime_seconds": 900, "replaces": TOKEN}
 *     {"access_token": "...", "token_type": "Bearer", "expires_in": 900, "scope": "p1 p2"}
 *
 * The members and their meaning are those of OAuth 2.0 (RFC 6749, 4.4), as JSON. Who may have what is the principal's row
 * (http/principals.h): the token has its role; scope asks for fewer projects than it has. No token outlives the cap of its
 * role, nor that of the agent's template (CTL-079 to CTL-081). There is no way to make a token live longer: what goes on
 * for longer asks for another one, and names in `replaces` the one that ends when the new one begins (CTL-084).
 *
 * A row is looked at for each request, and once more when the token's audit entry is written: so nobody whose principal was
 * revoked before the answer gets one. Wrong secrets count against the address, as all refused credentials do; asking has a
 * limit of its own. Users and their passwords are not known here, and the grant "password" is refused by name.
 */
#ifndef COPPICE_HTTP_GRANTS_H
#define COPPICE_HTTP_GRANTS_H

#include "http/route.h"

#define GRANTS_BODY_MAX 16384u /* a token to replace, and 32 projects */

extern const struct route grant_routes[]; /* on the client port; its errors are the control surface's */
extern const size_t grant_routes_count;

#endif
