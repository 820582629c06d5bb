/* Sockets: what the server listens on, opened before anything else exists and kept for the process's life.
 *
 * Each address of http.listen becomes one socket per scheduler (SO_REUSEPORT), so that a connection is accepted, served
 * and closed on one core; a unix socket has one descriptor, and copies of it for the other schedulers. The operator's
 * address becomes one socket. Listeners come and go (they are actors, and may be killed), the sockets stay: clients wait
 * in the backlog meanwhile. With the guardian they are opened by it and inherited by each server.
 *
 * Socket activation: descriptors from 3 on that LISTEN_FDS counts, for LISTEN_PID, named "client" or "operator" by
 * LISTEN_FDNAMES (one that has no name is the clients'), take the place of the addresses of the settings, and are held against
 * the same: the operator's is for this machine only, and what clients' sockets need is config/outside.h's business.
 *
 * Blocks for as long as a local connect takes; boot only. Refusals are sentences that name the value and what would be
 * right.
 */
#ifndef COPPICE_CONFIG_SOCKETS_H
#define COPPICE_CONFIG_SOCKETS_H

#include <stdint.h>

#include "http/address.h"

#define SOCKETS_ADDRESSES_MAX 8u
#define SOCKETS_SHARES_MAX    64u /* schedulers */
#define SOCKETS_BACKLOG       4096

struct socket_address {
    struct address address;
    bool exposed; /* neither loopback nor a unix socket: other machines reach it */
};

/* "127.0.0.1:8080,[::]:8080,unix:/run/coppice/client.sock": up to SOCKETS_ADDRESSES_MAX, of any address of this machine
 * ("*:8080" is all of IPv4). */
bool sockets_parse(const char *list, struct socket_address ret[SOCKETS_ADDRESSES_MAX], size_t *ret_count,
                   char *ret_why, size_t why_size);

/* Whoever listens at one of them takes the other one's place: the same path, or port, of addresses that are the same or all. */
bool sockets_meet(const struct address *a, const struct address *b);

struct socket_set {
    char text[ADDRESS_TEXT_MAX]; /* where it really is; port 0 has become a port */
    struct address address;
    int fds[SOCKETS_SHARES_MAX]; /* non-blocking, close-on-exec; [n] is for scheduler n */
    uint32_t fds_count;
    bool exposed;
    bool activated; /* the service manager's: its file stays */
};

struct sockets {
    struct socket_set operator_set; /* one descriptor */
    struct socket_set clients[SOCKETS_ADDRESSES_MAX];
    size_t clients_count;
};

/* schedulers: 0 for as many as the CPUs that this process may use. 0, or the exit status (69: taken, 78: can't be meant,
 * 71: the system refused) and why; then nothing is left open. LISTEN_* are gone from the environment afterwards. */
int sockets_open(struct sockets *ret, const char *http_listen, const char *operator_listen,
                 uint32_t schedulers, char *ret_why, size_t why_size);
/* Whether sockets_open could, of addresses that can be meant and that no descriptor of LISTEN_* replaces: nothing is listened at, nor
 * connected to, and an address that is taken is none that can't be had. A port that this user may not have is warned of: its descriptor
 * may be passed to the server alone. 0, or what sockets_open would return and say. What LISTEN_* counts is closed afterwards. */
int sockets_look(const char *http_listen, const char *operator_listen,
                 void (*warn)(void *context, const char *sentence), void *context, char *ret_why,
                 size_t why_size);
/* Where clients connect, all of it with commas between, as http.listen has it; empty: nowhere. */
#define SOCKETS_CLIENTS_TEXT_MAX (SOCKETS_ADDRESSES_MAX * ADDRESS_TEXT_MAX)
const char *sockets_clients(const struct sockets *sockets, char text[SOCKETS_CLIENTS_TEXT_MAX]);
/* Closes all and removes the files of unix sockets that are ours. */
void sockets_close(struct sockets *sockets);

#endif
