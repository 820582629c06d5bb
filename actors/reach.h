/* Reach: which addresses a URL of a client's may lead to.
 *
 * Public unicast ones: not loopback, private, link-local, shared, reserved, multicast, for documentation, nor one of those
 * dressed as another (IPv4-mapped, NAT64, 6to4, Teredo). It is asked about the address of each socket, never about a name:
 * what a name leads to can change between two questions.
 */
#ifndef COPPICE_ACTORS_REACH_H
#define COPPICE_ACTORS_REACH_H

#include <stdbool.h>

struct sockaddr;

bool reach_public(const struct sockaddr *address);

#endif
