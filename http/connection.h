/* Connections: one actor per connection, from accept to close. A request that crashes its handler is answered 500, unless
 * some of its answer, or another one's, was on its way; that connection is closed, and nothing else.
 *
 * The actor accepts in its init (nobody waiting: it says ignore and leaves no trace). Each time bytes have come it reads
 * them onto its stack, serves every request that is whole, in order, and sends the answers together. What is left of a
 * request goes into the actor's arena, what is large into a body of http/body.h. Between requests it holds neither stack
 * nor buffer.
 *
 * A response that can't be finished, a framing that isn't certain and every refusal before a handler close the
 * connection: answered, shut down, and what the client still sends is dropped for CONNECTION_LINGER_MS or
 * CONNECTION_LINGER_BYTES, so that the answer isn't lost to a reset.
 *
 * When the server drains, the supervisor asks its children to end: an idle connection closes, a busy one finishes the
 * request it is at and says Connection: close.
 *
 * Limits: those of http/parser.h, and struct front_limits.
 */
#ifndef COPPICE_HTTP_CONNECTION_H
#define COPPICE_HTTP_CONNECTION_H

#include <sys/uio.h>

#include "http/front.h"
#include "runtime/actor.h"

#define CONNECTION_LINGER_MS 2000
#define CONNECTION_LINGER_BYTES \
    (16u << 20) /* of a proxy that sends a large body on before it reads a refusal */

struct connection_args {
    int listening; /* stays open for the process's life */
    bool tls;
    uint32_t leave_free; /* descriptors that are for others: of few, an eighth of what the process may have */
    struct front *front;
};
extern const struct actor_class connection_class;

/* What init is refused with, beside errno; the listener goes on (http/listener.c). */
enum { CONNECTION_PEER_FULL = 1 << 16, /* beyond errno's */ CONNECTION_NO_TLS, CONNECTION_NO_DESCRIPTORS };
/* After CONNECTION_NO_DESCRIPTORS and CONNECTION_PEER_FULL: who was accepted at this socket, and may not stay. The caller's; -1:
 * nobody. */
int connection_left_over(int listening);
/* Whether this descriptor, just made, is one of those that are left to others; then also how many these are. */
bool connection_scarce(int fd, uint32_t leave_free, uint32_t *ret_left);

/* By the listener, when there is no room: asks the connection of this scheduler that has been idle for longest, give or take
 * CONNECTION_ORDER_MS, and for CONNECTION_SHED_MS at least, to close. False: there is none, or none among the first
 * CONNECTION_SHED_LOOKS, of which nobody will look at those that are busy again. */
#define CONNECTION_SHED_MS    1000
#define CONNECTION_ORDER_MS   1000
#define CONNECTION_SHED_LOOKS 64
bool connection_shed(void);

/* ---- for http/response.c alone ---- */

/* Puts bytes behind those that wait to be sent. False: the connection is of no use any more. */
bool connection_write(struct connection *c, const struct iovec *pieces, size_t count, uint64_t deadline);
/* Where `size` bytes, at most CONNECTION_ROOM, fit behind those that wait: for who writes them there himself and then says how many
 * they were. NULL: as false above. */
#define CONNECTION_ROOM 16384u
char *connection_room(struct connection *c, size_t size, uint64_t deadline);
void connection_wrote(struct connection *c, size_t size);
/* Sends everything that waits. */
bool connection_flush(struct connection *c, uint64_t deadline);
/* Lets the actor wait for messages in the middle of an answer: false when the client has gone or the server drains. */
enum error connection_wait(struct connection *c, message_match *match, void *arg,
                           struct message **ret_message, uint64_t deadline);
struct front *connection_front(struct connection *c);
/* Whether it may go on behind this answer: the server may have begun to drain while the handler waited. */
bool connection_stays(const struct connection *c);

#endif
