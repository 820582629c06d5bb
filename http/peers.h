/* Peers: how many connections each address has, over all schedulers, without a lock.
 *
 * A fixed table of PEERS_MAX words, each the tag of an address and its count. An address is looked for in one set of
 * eight; IPv6 addresses count by their /64. When a set is full of others, or two schedulers meet a new address in the
 * same instant, a connection may go uncounted: the cap is a fence, not a ledger. Unix sockets have no address and no cap.
 */
#ifndef COPPICE_HTTP_PEERS_H
#define COPPICE_HTTP_PEERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define PEERS_MAX 65536u
#define PEER_NONE UINT32_MAX

/* False: the address has `max` (0: any number) already. Else *ret_place is for peers_leave; PEER_NONE: not counted. */
bool peers_enter(const struct sockaddr_storage *address, uint32_t max, uint32_t *ret_place);
void peers_leave(uint32_t place);
/* The bytes by which an address is counted and limited: 4, 8, or none. */
uint32_t peers_key(const struct sockaddr_storage *address, uint8_t ret_key[8]);

#endif
