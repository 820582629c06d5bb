#define _GNU_SOURCE /* accept4 */
#include "http/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/connection.h"
#include "http/peers.h"
#include "runtime/supervisor.h"
#include "runtime/telemetry.h"

enum {
    LISTENER_GO_ON = 1,    /* there may be more to accept */
    ACCEPTS_PER_TURN = 64, /* before the mailbox is looked at again */
    ACCEPTS_AT_END = 4096, /* a backlog */
    START_MS = 5000,
    TURNED_MAX = 32,
    TURNED_BYTES =
        1
        << 20, /* of each, as much as a request may have: then it is closed, whatever becomes of its answer */
    SPARES_MAX = 8,
};

/* Somebody who was told to come back. The answer is lost if we close before the request has come, so we wait for the
 * other side to close, or until somebody else needs the place. */
struct turned {
    int fd;
    uint64_t own, watch;
    uint64_t heard; /* bytes */
};

struct listener {
    struct listener_args args;
    /* Descriptors to give up when there are none left, so that newcomers can be told. More than one, because
     * without any left the kernel doesn't say whether there is a newcomer, and then the oldest of these places
     * is given up in vain. */
    uint32_t spare_count;
    uint64_t spares[SPARES_MAX];
    uint32_t turned_count;
    struct turned turned[TURNED_MAX]; /* oldest first */
};

static void observe(const struct listener *l, const char *outcome)
{
    TELEMETRY(HTTP_CONNECTION, 1, DIM(LISTENER, l->args.front->name), DIM(OUTCOME, outcome));
}

/* Each of them has its line among the requests; why is said once in a while. */
static void observe_crowded(struct listener *l, const char *reason)
{
    struct front *front = l->args.front;
    uint64_t quiet_until = atomic_load(&front->quiet_until);
    observe(l, "turned_away");
    atomic_fetch_add(&front->crowded, 1);
    if (actor_now() < quiet_until || !atomic_compare_exchange_strong(&front->quiet_until, &quiet_until,
                                                                     actor_deadline_ms(LISTENER_CROWDED_MS)))
        return;
    TELEMETRY(HTTP_CROWDED, atomic_exchange(&front->crowded, 0), DIM(LISTENER, front->name),
              DIM(REASON, reason));
}

/* ---- those who are told to come back ---- */

static void take_spares(struct listener *l)
{
    while (l->spare_count < SPARES_MAX) {
        int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return;
        l->spares[l->spare_count++] = actor_own_fd(fd);
    }
}

static void turned_drop(struct listener *l, uint32_t at)
{
    actor_unwatch(l->turned[at].watch);
    actor_release(l->turned[at].own);
    l->turned_count--;
    memmove(&l->turned[at], &l->turned[at + 1], (l->turned_count - at) * sizeof(*l->turned));
}

/* The next newcomer, at the cost of a spare descriptor or of who was turned away longest ago. */
static int accept_anyway(struct listener *l)
{
    int fd = accept4(l->args.listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0 || (errno != EMFILE && errno != ENFILE))
        return fd;
    if (l->spare_count)
        actor_release(l->spares[--l->spare_count]);
    else if (l->turned_count)
        turned_drop(l, 0);
    return accept4(l->args.listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

/* Of all listeners. Of the descriptors that are left to others they keep half at most, and one each. */
static _Atomic uint32_t turned_all;

static void turned_end(void *arg)
{
    close((int)(intptr_t)arg);
    atomic_fetch_sub(&turned_all, 1);
}

static void turned_keep(struct listener *l, int fd)
{
    uint32_t left;
    bool scarce = connection_scarce(fd, l->args.leave_free, &left);
    if (l->turned_count == TURNED_MAX || (l->turned_count && scarce && atomic_load(&turned_all) >= left / 2))
        turned_drop(l, 0);
    atomic_fetch_add(&turned_all, 1);
    struct turned t = {.fd = fd, .own = actor_own(turned_end, (void *)(intptr_t)fd)};
    t.watch = t.own ? actor_watch(fd, WATCH_READ) : 0;
    if (t.watch)
        l->turned[l->turned_count++] = t;
    else if (t.own)
        actor_release(t.own);
    else
        turned_end((void *)(intptr_t)fd);
}

static void say_full(const struct listener *l, int fd, bool own)
{
    char text[RESPONSE_LAST_MAX];
    uint8_t address[8];
    struct sockaddr_storage from = {0};
    socklen_t size = sizeof(from);
    (void)getpeername(fd, (struct sockaddr *)&from, &size);
    struct span key = span_of(address, peers_key(&from, address));
    (void)!send(fd, text, front_turn_away(l->args.front, key, own, text), MSG_NOSIGNAL);
}

/* own: there is no room for more of its address. Over TLS it would take a handshake to say so. */
static void see_off(struct listener *l, int fd, bool own)
{
    if (!l->args.tls)
        say_full(l, fd, own);
    shutdown(fd, SHUT_WR);
    turned_keep(l, fd);
    take_spares(l);
}

/* No room. Accepts one, unless it was, and tells it to come back; the connection that has been idle for longest makes room for the
 * next. False: there is nobody, or no way to say so. */
static bool turn_away(struct listener *l, int fd, const char *reason)
{
    if (fd < 0)
        fd = accept_anyway(l);
    if (fd < 0) {
        if (errno != EAGAIN &&
            errno != EWOULDBLOCK) { /* who is waiting there doesn't announce itself again */
            connection_shed();
            actor_timer(actor_deadline_ms(LISTENER_RETRY_MS), LISTENER_GO_ON, 0);
        }
        take_spares(l);
        return false;
    }
    connection_shed();
    observe_crowded(l, reason);
    see_off(l, fd, false);
    return true;
}

/* What it has to say is taken in, up to a bound; when it has closed, so do we. */
static void hear_turned(struct listener *l, uint64_t watch)
{
    char dropped[4096];
    ssize_t n;
    for (uint32_t i = 0; i < l->turned_count; i++) {
        struct turned *t = &l->turned[i];
        if (t->watch != watch)
            continue;
        do {
            n = read(t->fd, dropped, sizeof(dropped));
            t->heard += n > 0 ? (uint64_t)n : 0;
        } while ((n > 0 && t->heard <= TURNED_BYTES) || (n < 0 && errno == EINTR));
        if (n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) {
            turned_drop(l, i);
            take_spares(l);
        }
        return;
    }
}

/* ---- accepting ---- */

/* Has one connection actor started, which accepts. False: nothing more to do now. */
static bool accept_one(struct listener *l)
{
    const struct connection_args args = {.listening = l->args.listening,
                                         .tls = l->args.tls,
                                         .leave_free = l->args.leave_free,
                                         .front = l->args.front};
    const struct child_spec spec = {.class = &connection_class,
                                    .args = &args,
                                    .args_size = sizeof(args),
                                    .restart = RESTART_TEMPORARY,
                                    .scheduler = SPAWN_ON(actor_scheduler_of(actor_self())),
                                    .shutdown_ms = (int64_t)l->args.drain_ms};
    struct child_result child = {0};
    actor_pid supervisor = actor_whereis(l->args.connections);
    switch (supervisor_start_child(supervisor, &spec, &child, actor_deadline_ms(START_MS))) {
    case OK:
        if (child.pid)
            observe(l, "accepted");
        return child.pid != 0;
    case ERR_IGNORED:
        return false;
    case ERR_MAX_CHILDREN:
        return turn_away(l, -1, "connections");
    case ERR_INIT: {
        int32_t code = child.why.code;
        reason_drop(&child.why);
        int fd = connection_left_over(l->args.listening);
        if (code == CONNECTION_PEER_FULL || code == CONNECTION_NO_TLS) {
            observe(l, "turned_away");
            if (fd >= 0)
                see_off(l, fd, code == CONNECTION_PEER_FULL);
            return true;
        }
        if (code == CONNECTION_NO_DESCRIPTORS || code == EMFILE || code == ENFILE)
            return turn_away(l, fd, "descriptors");
        return turn_away(l, -1, "memory");
    }
    default:
        actor_timer(actor_deadline_ms(LISTENER_RETRY_MS), LISTENER_GO_ON, 0);
        return false;
    }
}

static void accept_all(struct listener *l)
{
    int accepted =
        0; /* also while the server drains: /readyz says so before nobody answers any more (CTL-539) */
    while (accepted < ACCEPTS_PER_TURN && accept_one(l))
        accepted++;
    if (accepted == ACCEPTS_PER_TURN)
        (void)actor_cast(actor_self(), LISTENER_GO_ON, NULL, 0);
}

/* ---- the actor ---- */

static enum actor_step listener_init(void *state, const void *args, size_t args_size)
{
    struct listener *l = state;
    ASSERT(args_size == sizeof(l->args));
    memcpy(&l->args, args, sizeof(l->args));
    if (!actor_watch(l->args.listening, WATCH_READ))
        actor_refuse(reason_error(errno));
    take_spares(l);
    return ACTOR_CONTINUE;
}

static enum actor_step listener_handle(void *state, struct message *m)
{
    struct listener *l = state;
    const struct message_ready *ready = (const void *)m->payload;
    switch (m->type) {
    case MESSAGE_READY:
        if (ready->fd != l->args.listening)
            hear_turned(l, ready->ref);
        else
            accept_all(l);
        return ACTOR_CONTINUE;
    case LISTENER_GO_ON:
        accept_all(l);
        return ACTOR_CONTINUE;
    default:
        actor_unknown(m);
        return ACTOR_CONTINUE;
    }
}

/* The server stops. The supervisor of connections, which starts them, is asked to end after us. */
static void listener_terminate(void *state, const struct reason *why)
{
    struct listener *l = state;
    if (why->kind != REASON_SHUTDOWN || !atomic_load(&l->args.front->draining) || l->args.keep)
        return;
    for (int accepted = 0; accepted < ACCEPTS_AT_END && accept_one(l); accepted++)
        ;
    (void)shutdown(l->args.listening, SHUT_RDWR);
}

const struct actor_class listener_class = {
    .name = "listener",
    .state_size = sizeof(struct listener),
    .init = listener_init,
    .handle = listener_handle,
    .terminate = listener_terminate,
    .trap_exits = true,
};
