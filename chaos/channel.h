/* Channel: the connections of one client to the server, kept alive and used again; one request at a time on each.
 *
 * An exchange waits in its strand: for a connection when CHANNEL_OPEN_MAX are in use, for the answer until its deadline. A
 * request is never sent twice by itself; who asks must know what that would mean.
 */
#ifndef COPPICE_CHAOS_CHANNEL_H
#define COPPICE_CHAOS_CHANNEL_H

#include "chaos/wire.h"

#define CHANNEL_OPEN_MAX 32u
#define CHANNEL_IDLE_NS \
    (20 * UINT64_C(1000000000)) /* well below what a server keeps an idle connection for */

struct channel {
    struct in_addr source; /* the address that it comes from; 0: any */
    const struct sockaddr_in *to;
    uint32_t open, idle_count;
    struct idle {
        struct wire *wire;
        uint64_t since;
    } idle[CHANNEL_OPEN_MAX];
    struct waiting waiting;
};

enum exchanged {
    EXCHANGE_ANSWERED,
    EXCHANGE_UNSENT, /* there was no connection: the server hasn't seen it */
    EXCHANGE_LOST,   /* nobody knows what the server has done with it */
};

void channel_init(struct channel *channel, struct in_addr source, const struct sockaddr_in *to);
/* *ret_letter is the caller's when it was answered; *ret_ns: from the first byte sent to the last one read. */
enum exchanged channel_exchange(struct channel *channel, struct span request, struct letter *ret_letter,
                                uint64_t *ret_ns, uint64_t until);
/* Closes what is idle. */
void channel_close(struct channel *channel);

#endif
