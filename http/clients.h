/* Clients and their API keys over HTTP (spec/jobs.md, 9.1 to 9.4).
 *
 * Webhooks come with their domain: until then their routes answer what is true of a server that has none.
 *
 * The secret of a key is in the one answer that made it and nowhere else: the store has its hash, the ledger what may be
 * told again. Whoever repeats a request, with or without an Idempotency-Key, gets api_key null (AMB-J-24).
 *
 * Handlers run in the connection's actor and may wait for the store.
 */
#ifndef COPPICE_HTTP_CLIENTS_H
#define COPPICE_HTTP_CLIENTS_H

#include "http/route.h"

#define CLIENT_BOOTSTRAP_MAX_S 86400u /* a client without a key is removed after a day */

struct client_settings {
    uint64_t key_lifetime_s; /* auth.key_lifetime, auth.key_ttl_days: 90 days */
    uint64_t
        bootstrap_s; /* auth.bootstrap_window_s: 600; 0: first keys come from the operator (auth.bootstrap) */
    uint64_t kept_s; /* retention.revoked_keys_days: 90 days */
};
/* Boot and reload; any thread. What isn't configured is as above. bootstrap_s is cut to its maximum. */
void clients_configure(const struct client_settings *settings);

extern const struct route client_routes[]; /* on the client port */
extern const size_t client_routes_count;

/* On the operator's listener, for who has lost the only key (AMB-J-26):
 *     GET  /clients/{client_id}              what is known of it: its key, how many it had; never a secret
 *     POST /clients/{client_id}/keys:issue   a new key; ends the active one
 *     POST /clients/{client_id}/keys:revoke  {"key_id": ...} */
extern const struct route client_operator_routes[];
extern const size_t client_operator_routes_count;

#endif
