#define _GNU_SOURCE /* accept4 */
#include "http/connection.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/body.h"
#include "http/parser.h"
#include "http/peers.h"
#include "http/tls.h"
#include "runtime/runtime.h"
#include "runtime/telemetry.h"

enum {
    IN_SIZE = 16384,
    OUT_SIZE = 16384,
    CIPHER_SIZE = 16384,
    CARRY_FIRST = 2048,      /* of a head that comes in pieces; doubled as it grows */
    CARRY_ARENA_MAX = 60000, /* in one piece of an arena; what is larger goes into a body */
    BARREN_MAX = 2,          /* reads of ciphertext without plaintext before others get their turn */
    BEHIND_BODY = 4096,      /* raw bytes of chunks that may be there beyond the data so far */
};

enum phase {
    PHASE_HEAD,   /* before the end of a head, or between requests */
    PHASE_LENGTH, /* in a body of known length */
    PHASE_CHUNKS,
    PHASE_CLOSING /* answered for the last time */
};

/* What is left of a request when its bytes end before it does. Lives in the arena. */
struct carry {
    struct arena_mark mark; /* before it was there */
    char *bytes;
    size_t length, capacity;
    size_t head; /* of the request whose body is coming */
    size_t body; /* decoded so far, chunked; behind it stand raw bytes */
    uint32_t body_max;
    uint64_t body_began, received;
    struct parser parser;
    struct body *slot; /* where the bytes are, when they are many */
};

/* On the stack while bytes are looked at. */
struct turn {
    struct request q;
    struct front_plan plan;
    struct response r;
    struct parser_before before; /* of the heads among the bytes at hand */
    uint32_t served, barren;     /* since the others had their turn */
    size_t out_length;
    char in[IN_SIZE];
    char out[OUT_SIZE]; /* last, where who buries a crashed actor may write first: see mourn */
};

/* Many of them are idle: two cache lines, and a block of just that size. */
struct connection {
    struct front *front;
    struct tls *tls;       /* NULL: plain */
    struct carry *carry;   /* NULL: nothing is left over */
    struct turn *turn;     /* NULL between turns */
    uint64_t rested;       /* since when no request has been served: bytes that make none buy no time */
    uint64_t began;        /* when the first byte of the request that is arriving came; 0: none has */
    uint64_t alarm, rings; /* the timer, 0: none; and for when it is set */
    uint64_t watch;
    struct connection *older, *newer; /* among those of this scheduler that may be idle */
    actor_pid pid;
    uint32_t requests, lingered;
    uint32_t listed_ms; /* when it was put among those that may be idle, as time goes round */
    uint32_t peer;
    int fd;
    uint8_t address[8];
    uint8_t address_size : 4;
    uint8_t empty_lines : 4; /* taken off since the last request */
    uint8_t phase;
    bool hangup : 1;
    bool broken : 1;
    bool ending : 1;  /* asked to, when the request at hand is done */
    bool serving : 1; /* a handler may be running */
    bool stirred : 1; /* something came while an answer waited for its next event */
    bool shaking : 1; /* hands: TLS isn't there yet */
    bool cut_off : 1; /* counted as too slow */
    bool listed : 1;  /* see listed_ms */
};
STATIC_ASSERT(sizeof(struct connection) <= 128, "blocks of states are powers of two");

struct front *connection_front(struct connection *c)
{
    return c->front;
}

static const struct front_limits *limits_of(const struct connection *c)
{
    return atomic_load_explicit(&c->front->limits, memory_order_acquire);
}

/* ---- the idle ones, oldest first; a list per scheduler, touched in guarded sections only ----
 *
 * A busy one isn't taken out: its neighbours are cold, and there are many requests between two times that anybody asks who
 * has been idle for longest. Who asks takes out those at the front that are busy; they come back when they are idle. */

static struct idle {
    struct connection *oldest, *newest;
    char apart[48]; /* of the next scheduler's */
} idle[RUNTIME_SCHEDULERS_MAX];

static struct idle *idle_of(const struct connection *c)
{
    return &idle[actor_scheduler_of(c->pid)];
}

static void unlist(struct connection *c)
{
    struct idle *list = idle_of(c);
    if (!c->listed)
        return;
    c->listed = false;
    *(c->older ? &c->older->newer : &list->oldest) = c->newer;
    *(c->newer ? &c->newer->older : &list->newest) = c->older;
}

/* It is idle from now on. Its place in the list is right to CONNECTION_ORDER_MS. */
static void list_idle(struct connection *c)
{
    struct idle *list = idle_of(c);
    uint32_t now_ms = (uint32_t)(actor_now() / NS_PER_MS);
    if (c->listed && now_ms - c->listed_ms < CONNECTION_ORDER_MS)
        return;
    unlist(c);
    c->listed = true;
    c->listed_ms = now_ms;
    c->older = list->newest;
    c->newer = NULL;
    *(list->newest ? &list->newest->newer : &list->oldest) = c;
    list->newest = c;
}

static bool is_idle(const struct connection *c)
{
    return !c->turn && !c->began && c->phase == PHASE_HEAD;
}

bool connection_shed(void)
{
    struct idle *list = &idle[actor_scheduler_of(actor_self())];
    actor_guard_begin();
    for (int i = 0; i < CONNECTION_SHED_LOOKS && list->oldest && !is_idle(list->oldest); i++)
        unlist(list->oldest);
    struct connection *c = list->oldest;
    actor_pid pid = c && is_idle(c) && actor_now() - c->rested >= CONNECTION_SHED_MS * NS_PER_MS ? c->pid : 0;
    actor_guard_end();
    if (pid)
        actor_exit_signal(pid, (struct reason){.kind = REASON_SHUTDOWN});
    return pid != 0;
}

/* It was too slow: with its head, its body, the handshake, or with taking an answer. */
static void cut_off(struct connection *c)
{
    if (!c->cut_off)
        TELEMETRY(HTTP_CONNECTION, 1, DIM(LISTENER, c->front->name), DIM(OUTCOME, "cut_off"));
    c->cut_off = true;
}

/* ---- sending ---- */

/* One descriptor can be armed once: the connection's own watch gives way to the writer's and comes back after it. */
static bool wait_until_writable(struct connection *c, uint64_t deadline)
{
    actor_unwatch(c->watch);
    c->watch = 0;
    enum error e = actor_wait_fd(c->fd, WATCH_WRITE, deadline);
    c->watch = actor_watch(c->fd, WATCH_READ);
    if (e == ERR_TIMEOUT)
        cut_off(c);
    return e == OK && c->watch;
}

static bool send_raw(struct connection *c, struct iovec *pieces, size_t count, uint64_t deadline)
{
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = count};
    while (!c->broken && message.msg_iovlen > 0) {
        /* One piece, which is most answers, needs no list of pieces to be read by the kernel. */
        ssize_t sent = message.msg_iovlen == 1
                           ? send(c->fd, message.msg_iov->iov_base, message.msg_iov->iov_len, MSG_NOSIGNAL)
                           : sendmsg(c->fd, &message, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0) {
            c->broken = (errno != EAGAIN && errno != EWOULDBLOCK) || !wait_until_writable(c, deadline);
            continue;
        }
        size_t done = (size_t)sent;
        while (message.msg_iovlen > 0 && done >= message.msg_iov->iov_len) {
            done -= message.msg_iov->iov_len;
            message.msg_iov++;
            message.msg_iovlen--;
        }
        if (message.msg_iovlen > 0) {
            message.msg_iov->iov_base = (char *)message.msg_iov->iov_base + done;
            message.msg_iov->iov_len -= done;
        }
    }
    return !c->broken;
}

static bool send_pending(struct connection *c, uint64_t deadline)
{
    char cipher[4096];
    size_t size;
    while (!c->broken && (size = tls_pending(c->tls, cipher, sizeof(cipher))) > 0)
        send_raw(c, &(struct iovec){.iov_base = cipher, .iov_len = size}, 1, deadline);
    return !c->broken;
}

static bool send_pieces(struct connection *c, struct iovec *pieces, size_t count, uint64_t deadline)
{
    if (!c->tls)
        return send_raw(c, pieces, count, deadline);
    for (size_t i = 0; i < count && !c->broken; i++) {
        const char *at = pieces[i].iov_base;
        for (size_t left = pieces[i].iov_len; left > 0 && !c->broken;) {
            size_t n = left < 16384 ? left : 16384; /* a record; so that no more than one waits in memory */
            c->broken = tls_send(c->tls, at, n) != TLS_OK || !send_pending(c, deadline);
            at += n;
            left -= n;
        }
    }
    return !c->broken;
}

bool connection_flush(struct connection *c, uint64_t deadline)
{
    struct turn *t = c->turn;
    if (t->out_length == 0)
        return !c->broken;
    struct iovec piece = {.iov_base = t->out, .iov_len = t->out_length};
    bool sent = send_pieces(c, &piece, 1, deadline);
    t->out_length = 0; /* not before: who is ended while he waits must say nothing more, see apologise */
    return sent;
}

bool connection_write(struct connection *c, const struct iovec *pieces, size_t count, uint64_t deadline)
{
    struct turn *t = c->turn;
    for (size_t i = 0; i < count; i++) {
        size_t size = pieces[i].iov_len;
        if (size > OUT_SIZE - t->out_length && !connection_flush(c, deadline))
            return false;
        if (size > OUT_SIZE) {
            struct iovec piece = pieces[i];
            if (!send_pieces(c, &piece, 1, deadline))
                return false;
            continue;
        }
        memcpy(t->out + t->out_length, pieces[i].iov_base, size);
        t->out_length += size;
    }
    return !c->broken;
}

char *connection_room(struct connection *c, size_t size, uint64_t deadline)
{
    STATIC_ASSERT(CONNECTION_ROOM <= OUT_SIZE, "it is there when nothing waits");
    struct turn *t = c->turn;
    ASSERT(size <= CONNECTION_ROOM);
    if (size > OUT_SIZE - t->out_length)
        connection_flush(c, deadline);
    return c->broken ? NULL : t->out + t->out_length;
}

void connection_wrote(struct connection *c, size_t size)
{
    c->turn->out_length += size;
}

struct wanted {
    struct connection *c;
    message_match *match;
    void *arg;
};

static bool is_wanted(const struct message *m, void *arg)
{
    const struct wanted *w = arg;
    return m->type == MESSAGE_EXIT ||
           (m->type == MESSAGE_READY &&
            ((const struct message_ready *)(const void *)m->payload)->ref == w->c->watch) ||
           (w->match && w->match(m, w->arg));
}

bool connection_stays(const struct connection *c)
{
    return !c->ending && !atomic_load_explicit(&c->front->draining, memory_order_relaxed);
}

/* What a client says in the middle of an answer isn't read: a next request waits in the socket. Only its end counts. */
enum error connection_wait(struct connection *c, message_match *match, void *arg,
                           struct message **ret_message, uint64_t deadline)
{
    struct wanted wanted = {.c = c, .match = match, .arg = arg};
    for (;;) {
        /* It may have hung up with the last bytes of its request: that isn't said twice. */
        if (c->broken || c->hangup || !connection_stays(c))
            return ERR_DOWN;
        struct message *m = actor_receive(is_wanted, &wanted, deadline);
        if (!m)
            return ERR_TIMEOUT;
        if (m->type == MESSAGE_EXIT) {
            c->ending = true;
        } else if (m->type == MESSAGE_READY) {
            char one;
            const struct message_ready *ready = (const void *)m->payload;
            c->stirred = true; /* nobody will say again that there is something to read */
            c->hangup = c->hangup || (ready->events & WATCH_HANGUP) != 0;
            if (c->hangup || recv(c->fd, &one, 1, MSG_PEEK) == 0)
                return ERR_DOWN;
        } else {
            *ret_message = m;
            return OK;
        }
    }
}

/* ---- answering ---- */

/* Without the buffers, which needn't be zero. */
static void response_for(struct connection *c, const struct request *q)
{
    struct response *r = &c->turn->r;
    memset(r, 0, offsetof(struct response, headers));
    r->connection = c;
    r->request = q;
    r->http10 = q && q->minor == 0;
    r->bodyless = q && q->method == METHOD_HEAD;
    r->keep_alive = q && q->keep_alive && connection_stays(c) &&
                    (limits_of(c)->requests_max == 0 || c->requests < limits_of(c)->requests_max);
}

static enum actor_step linger(struct connection *c)
{
    uint64_t deadline = actor_now() + limits_of(c)->write_ns;
    connection_flush(c, deadline);
    if (c->tls && !c->broken && tls_shutdown(c->tls) != TLS_FAILED)
        send_pending(c, deadline);
    /* Also when the client has closed its side: bytes of it that nobody reads would reset the answer away. */
    if (c->broken || shutdown(c->fd, SHUT_WR) != 0)
        return ACTOR_STOP;
    c->phase = PHASE_CLOSING;
    c->began = actor_now() + CONNECTION_LINGER_MS * NS_PER_MS;
    c->carry = NULL;
    return ACTOR_CONTINUE;
}

/* Nothing more will be said, and nothing is missing: who speaks TLS is told (RFC 9112, 9.8). As much as goes out at once. */
static void say_closed(struct connection *c)
{
    char alert[512];
    size_t size;
    if (!c->tls || c->shaking || c->broken || c->phase == PHASE_CLOSING || tls_shutdown(c->tls) == TLS_FAILED)
        return;
    while ((size = tls_pending(c->tls, alert, sizeof(alert))) > 0)
        (void)!send(c->fd, alert, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The last answer: about a request that was refused before there was a whole one. */
static enum actor_step refuse(struct connection *c, enum error_kind kind, const char *why)
{
    struct turn *t = c->turn;
    response_for(c, &t->q);
    t->r.keep_alive = false;
    t->q.address = span_of(c->address, c->address_size);
    front_refuse(c->front, &t->q, &t->plan, &t->r, kind, why);
    return linger(c);
}

/* Bytes that aren't a request get an answer with ids: those that can be read in them, or new ones. */
static enum actor_step refuse_head(struct connection *c, const char *bytes, size_t size, enum error_kind kind,
                                   const char *why)
{
    struct request *q = &c->turn->q;
    memset(q, 0, offsetof(struct request, fields));
    q->method = METHOD_UNKNOWN;
    q->minor = 1;
    parser_glimpse(bytes, size, q);
    front_glimpse(c->front, q, &c->turn->plan);
    return refuse(c, kind, why);
}

static enum error_kind framing_kind(const struct parser *p)
{
    return p->status == 414   ? ERROR_KIND_TARGET_TOO_LONG
           : p->status == 431 ? ERROR_KIND_HEADER_TOO_LARGE
           : p->status == 417 ? ERROR_KIND_EXPECTATION
                              : ERROR_KIND_MALFORMED;
}

/* The same when the head is known, and it is the body that can't go on: in the shape of its path, with its ids. */
static enum actor_step refuse_body(struct connection *c, enum error_kind kind, const char *why)
{
    struct turn *t = c->turn;
    front_plan(c->front, &t->q, true, &t->plan);
    return refuse(c, kind, why);
}

/* False: the connection is to be closed. */
static bool serve(struct connection *c)
{
    struct turn *t = c->turn;
    c->requests++;
    response_for(c, &t->q);
    t->q.address = span_of(c->address, c->address_size);
    c->serving = true;
    bool keep = front_serve(c->front, &t->q, &t->plan, &t->r);
    c->serving = false;
    c->rested = actor_now();
    return keep && !c->broken;
}

/* ---- what is left over ---- */

static void carry_drop(struct connection *c)
{
    struct arena_mark mark = c->carry->mark;
    if (c->carry->slot)
        body_drop(c->carry->slot);
    c->carry = NULL;
    c->phase = PHASE_HEAD;
    actor_arena_reset(mark);
}

/* Room for `capacity` bytes in one piece. False: there is none. */
static bool carry_reserve(struct connection *c, size_t capacity)
{
    struct carry *carry = c->carry;
    if (carry->capacity >= capacity)
        return true;
    char *bytes;
    struct body *slot = NULL;
    if (capacity > CARRY_ARENA_MAX) {
        if (capacity > BODY_BYTES_MAX || !(slot = body_take()))
            return false;
        bytes = slot->bytes;
        capacity = BODY_BYTES_MAX;
    } else {
        capacity = capacity < 2 * carry->capacity ? 2 * carry->capacity : capacity;
        capacity = capacity < CARRY_ARENA_MAX ? capacity : CARRY_ARENA_MAX;
        bytes = actor_alloc(capacity);
    }
    if (carry->length)
        memcpy(bytes, carry->bytes, carry->length);
    carry->bytes = bytes;
    carry->capacity = capacity;
    carry->slot = slot;
    return true;
}

/* Begins to keep: `size` bytes that are on the stack now. */
static void carry_begin(struct connection *c, const char *bytes, size_t size)
{
    STATIC_ASSERT((size_t)IN_SIZE + CARRY_FIRST <= CARRY_ARENA_MAX, "what was read at once fits");
    struct arena_mark mark = actor_arena_mark();
    c->carry = actor_alloc(sizeof(*c->carry));
    memset(c->carry, 0, sizeof(*c->carry));
    c->carry->mark = mark;
    (void)carry_reserve(c, size + CARRY_FIRST); /* there is always room behind */
    memcpy(c->carry->bytes, bytes, size);
    c->carry->length = size;
    c->carry->parser.empty_lines = c->empty_lines;
}

/* The request at the front has been served. What stands behind it came with its last bytes, so it fits onto the stack:
 * nothing stays in the arena, or in a body, because a client never stops between two requests. Returns its size. */
static size_t carry_end(struct connection *c, size_t used)
{
    size_t left = c->carry->length - used;
    ASSERT(left <= IN_SIZE);
    memcpy(c->turn->in, c->carry->bytes + used, left);
    carry_drop(c);
    return left;
}

/* The views of a head that was read before: its bytes may have moved. */
static void head_again(struct connection *c)
{
    struct parser parser = {0};
    size_t head;
    enum parsed parsed = parser_head(&parser, c->carry->bytes, c->carry->head, &c->turn->q, &head);
    ASSERT(parsed == PARSED_DONE && head == c->carry->head);
    c->turn->before.fields = NULL;
}

/* ---- one request after the other ---- */

/* What became of the bytes. */
enum eaten {
    EATEN_ONE,  /* a request was served */
    EATEN_MORE, /* they end before the request does; the rest is kept */
    EATEN_LAST  /* the last answer was given, or can't be */
};

static enum eaten give_up(struct connection *c, enum actor_step step)
{
    if (step != ACTOR_CONTINUE)
        c->broken = true;
    return EATEN_LAST;
}

/* The answer that has just been given is the last. */
static enum eaten last_words(struct connection *c)
{
    return give_up(c, linger(c));
}

/* The head is there, its body isn't. Is it wanted, and is there room? */
static enum eaten body_begins(struct connection *c, char *bytes, size_t head, size_t have,
                              const struct parser *parser)
{
    struct turn *t = c->turn;
    struct arena_mark mark = actor_arena_mark();
    front_plan(c->front, &t->q, false, &t->plan);
    if (t->plan.refused) {
        t->q.keep_alive = false;
        return serve(c) ? EATEN_LAST : last_words(c);
    }
    if (parser->length > t->plan.body_max)
        return give_up(c, refuse(c, ERROR_KIND_TOO_LARGE, "the body is longer than this path takes"));
    actor_arena_reset(mark); /* when the body is there it is planned again */
    size_t need = parser->chunked ? have + BEHIND_BODY : head + (size_t)parser->length;
    if (!c->carry)
        carry_begin(c, bytes, have);
    struct carry *carry = c->carry;
    carry->head = head;
    if (!carry_reserve(c, need)) {
        head_again(c);
        return give_up(c, refuse_body(c, ERROR_KIND_OVERLOADED, "too many large requests are being read"));
    }
    carry->parser = *parser;
    carry->body = 0;
    carry->body_max = t->plan.body_max;
    carry->body_began = actor_now();
    carry->received = have - head;
    c->phase = parser->chunked ? PHASE_CHUNKS : PHASE_LENGTH;
    if (t->q.expects_continue && have == head) {
        static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
        struct iovec piece = {.iov_base = (void *)(uintptr_t)text, .iov_len = sizeof(text) - 1};
        uint64_t deadline = actor_now() + limits_of(c)->write_ns;
        if (!connection_write(c, &piece, 1, deadline) || !connection_flush(c, deadline))
            return EATEN_LAST;
    }
    return EATEN_MORE;
}

/* Serves the request whose head and body stand at `bytes`. */
static enum eaten serve_whole(struct connection *c, const char *bytes, size_t head, size_t body)
{
    struct turn *t = c->turn;
    struct arena_mark mark = actor_arena_mark();
    t->q.body = span_of(bytes + head, body);
    front_plan(c->front, &t->q, true, &t->plan);
    c->began = 0;
    c->empty_lines = 0;
    if (!serve(c))
        return last_words(c);
    actor_arena_reset(mark);
    return EATEN_ONE;
}

/* One request at the start of `bytes`, of which nothing was looked at before. */
static enum eaten eat_head(struct connection *c, char *bytes, size_t size, size_t *ret_used)
{
    struct turn *t = c->turn;
    struct parser fresh = {.empty_lines = c->empty_lines}, *parser = c->carry ? &c->carry->parser : &fresh;
    size_t head = 0, used, written;
    enum parsed parsed = parser_head_after(parser, &t->before, bytes, size, &t->q, &head);
    if (parsed == PARSED_REFUSED)
        return give_up(c, refuse_head(c, bytes, size, framing_kind(parser), parser->why));
    if (parsed == PARSED_MORE)
        return EATEN_MORE;
    if (!parser->chunked && parser->length <= size - head) {
        size_t body = (size_t)parser->length;
        *ret_used = head + body;
        return serve_whole(c, bytes, head, body);
    }
    struct parser body = *parser;
    if (!parser->chunked)
        return body_begins(c, bytes, head, size, &body);
    /* Chunks that are all here are put together where they stand. */
    parsed = parser_chunks(&body, bytes + head, size - head, bytes + head, &used, &written);
    if (parsed == PARSED_REFUSED)
        return give_up(c, refuse_body(c, framing_kind(&body), body.why));
    if (parsed == PARSED_DONE) {
        *ret_used = head + used;
        return serve_whole(c, bytes, head, written);
    }
    if (c->carry)
        c->carry->length = head + written;
    enum eaten eaten = body_begins(c, bytes, head, head + written, &body);
    if (eaten == EATEN_MORE)
        c->carry->body = written;
    if (eaten == EATEN_MORE && written > c->carry->body_max) {
        head_again(c);
        return give_up(c, refuse_body(c, ERROR_KIND_TOO_LARGE, "the body is longer than this path takes"));
    }
    return eaten;
}

static enum eaten eat_length(struct connection *c, size_t *ret_used)
{
    struct carry *carry = c->carry;
    size_t whole = carry->head + (size_t)carry->parser.length;
    if (carry->length < whole)
        return EATEN_MORE;
    head_again(c);
    c->phase = PHASE_HEAD;
    *ret_used = whole;
    return serve_whole(c, carry->bytes, carry->head, whole - carry->head);
}

static enum eaten eat_chunks(struct connection *c, size_t *ret_used)
{
    struct carry *carry = c->carry;
    size_t raw = carry->head + carry->body, used, written;
    enum parsed parsed = parser_chunks(&carry->parser, carry->bytes + raw, carry->length - raw,
                                       carry->bytes + raw, &used, &written);
    if (parsed == PARSED_MORE && carry->body + written <= carry->body_max) {
        carry->body += written;
        carry->length = carry->head + carry->body;
        if (carry_reserve(c, carry->length + BEHIND_BODY))
            return EATEN_MORE;
        head_again(c);
        return give_up(c, refuse_body(c, ERROR_KIND_OVERLOADED, "too many large requests are being read"));
    }
    head_again(c);
    if (parsed == PARSED_REFUSED)
        return give_up(c, refuse_body(c, framing_kind(&carry->parser), carry->parser.why));
    carry->body += written;
    if (carry->body > carry->body_max)
        return give_up(c, refuse_body(c, ERROR_KIND_TOO_LARGE, "the body is longer than this path takes"));
    c->phase = PHASE_HEAD;
    *ret_used = raw + used;
    return serve_whole(c, carry->bytes, carry->head, carry->body);
}

static enum eaten eat(struct connection *c, char *bytes, size_t size, size_t *ret_used)
{
    switch (c->phase) {
    case PHASE_LENGTH:
        return eat_length(c, ret_used);
    case PHASE_CHUNKS:
        return eat_chunks(c, ret_used);
    default:
        return eat_head(c, bytes, size, ret_used);
    }
}

/* An empty line behind a request, or in front of the first, and nothing else: that is no slow request, the connection is
 * idle. It buys no time either. */
static bool eat_empty_line(struct connection *c, const char *bytes, size_t size)
{
    if (!parser_empty_line(&(struct parser){.empty_lines = c->empty_lines}, bytes, size))
        return false;
    c->empty_lines = (c->empty_lines + 1u) & 15u;
    c->began = 0;
    if (c->carry) /* it came in two pieces */
        carry_drop(c);
    return true;
}

/* All that stands at `bytes`, which is the carry's when there is one. False: no more of this connection is read as a
 * request. */
static bool eat_all(struct connection *c, char *bytes, size_t size)
{
    size_t at = 0;
    c->turn->before.fields = NULL; /* its bytes have made room for these */
    for (;;) {
        size_t used = 0;
        if (size > at && c->turn->served == FRONT_PIPELINE_MAX) {
            c->turn->served = 0;
            actor_yield();
        }
        if (size > at && !c->began)
            c->began = actor_now();
        enum eaten eaten = size > at ? eat(c, bytes + at, size - at, &used) : EATEN_MORE;
        if (eaten == EATEN_LAST)
            return false;
        if (eaten == EATEN_MORE)
            break;
        at += used;
        if (c->carry) {
            size = carry_end(c, used);
            bytes = c->turn->in;
            at = 0;
            c->turn->before.fields = NULL;
        }
        c->turn->served++;
    }
    if (c->phase != PHASE_HEAD || size == at || eat_empty_line(c, bytes + at, size - at))
        return true;
    if (!c->carry) {
        carry_begin(c, bytes + at, size - at);
        return true;
    }
    return c->carry->length < c->carry->capacity || carry_reserve(c, c->carry->length + CARRY_FIRST);
}

/* ---- reading ---- */

/* In TLS 1.3 the last word of a handshake is the client's, and we have nothing to say to it: its first request would wait for
 * our acknowledgement, which the kernel holds back for 40 ms, where the client's kernel gathers small pieces (Nagle). */
static void end_handshake(struct connection *c)
{
    int on = 1;
    c->shaking = false;
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
}

static uint64_t deadline_of(const struct connection *c);

/* Bytes of TLS that hold none of a request: half of a record; or new keys and refused renegotiations, of which a client may send
 * as many as it likes. Others get their turn in between, and no time is bought. False: it is over. */
static bool bear(struct connection *c)
{
    if (++c->turn->barren < BARREN_MAX)
        return true;
    c->turn->barren = 0;
    actor_yield();
    return actor_now() <= deadline_of(c);
}

/* As recv: 0 is the end, -1 with EAGAIN that there is no more now, with ETIME that its time is over. *ret_dry: the socket has
 * been emptied. */
static ssize_t receive(struct connection *c, char *bytes, size_t room, bool *ret_dry)
{
    ssize_t n;
    if (!c->tls) {
        do
            n = recv(c->fd, bytes, room, 0);
        while (n < 0 && errno == EINTR);
        *ret_dry = n >= 0 && (size_t)n < room && !c->hangup;
        return n;
    }
    char cipher[CIPHER_SIZE];
    size_t size = 0, given = 0;
    for (;;) {
        enum tls_result result = tls_receive(c->tls, cipher, given, bytes, room, &size);
        if (c->shaking && tls_established(c->tls))
            end_handshake(c);
        if (!send_pending(c, actor_now() + limits_of(c)->write_ns) || result == TLS_FAILED) {
            errno = EPROTO;
            return -1;
        }
        if (result != TLS_WANT)
            return result == TLS_OK ? (ssize_t)size : 0;
        do
            n = recv(c->fd, cipher, sizeof(cipher), 0);
        while (n < 0 && errno == EINTR);
        if (n <= 0)
            return n;
        if (given && !bear(c)) {
            errno = ETIME;
            return -1;
        }
        given = (size_t)n;
    }
}

/* A body must keep coming; the time it has grows with what came. */
static uint64_t body_deadline(const struct connection *c)
{
    const struct front_limits *l = limits_of(c);
    uint64_t rate = l->body_rate ? l->body_rate : 1;
    return c->carry->body_began + l->body_grace_ns + c->carry->received * NS_PER_S / rate;
}

static uint64_t deadline_of(const struct connection *c)
{
    switch (c->phase) {
    case PHASE_LENGTH:
    case PHASE_CHUNKS:
        return body_deadline(c);
    case PHASE_CLOSING:
        return c->began; /* when it is over */
    default:
        if (c->began)
            return c->began + limits_of(c)->head_ns;
        return c->rested + (c->shaking ? limits_of(c)->handshake_ns : limits_of(c)->idle_ns);
    }
}

/* What is still coming after the last answer is dropped. */
static enum actor_step drop_all(struct connection *c)
{
    char dropped[4096];
    ssize_t n;
    while ((n = recv(c->fd, dropped, sizeof(dropped), 0)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK ? ACTOR_CONTINUE : ACTOR_STOP;
        c->lingered += (uint32_t)n;
        if (c->lingered > CONNECTION_LINGER_BYTES)
            return ACTOR_STOP;
    }
    return ACTOR_STOP;
}

/* Its time is over, and there is no request that could be answered. */
static bool over(struct connection *c)
{
    if (c->shaking) {
        TELEMETRY(HTTP_REFUSED, 1, DIM(REASON, "handshake"));
        cut_off(c);
    }
    return c->phase == PHASE_CLOSING || !c->began;
}

static enum actor_step too_slow(struct connection *c)
{
    static const char why[] = "the request did not arrive in time";
    cut_off(c);
    if (c->phase == PHASE_HEAD)
        return refuse_head(c, c->carry ? c->carry->bytes : "", c->carry ? c->carry->length : 0,
                           ERROR_KIND_REQUEST_TIMEOUT, why);
    head_again(c);
    return refuse_body(c, ERROR_KIND_REQUEST_TIMEOUT, why);
}

/* False: the actor ends. */
static bool read_all(struct connection *c)
{
    for (;;) {
        struct carry *carry = c->carry;
        char *base = carry ? carry->bytes : c->turn->in;
        size_t have = carry ? carry->length : 0, room = (carry ? carry->capacity : (size_t)IN_SIZE) - have;
        bool dry = false;
        if (c->phase == PHASE_LENGTH) {
            ASSERT(carry);
            room = carry->head + (size_t)carry->parser.length - have;
        } else if (room > IN_SIZE) { /* what may come behind the request must fit onto the stack: carry_end */
            room = IN_SIZE;
        }
        ASSERT(room > 0);
        ssize_t n = receive(c, base + have, room, &dry);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return true;
        if (n < 0 && errno == ETIME)
            return !over(c) && too_slow(c) == ACTOR_CONTINUE;
        if (n <= 0)
            return false;
        if (carry) {
            carry->length += (size_t)n;
            carry->received += (size_t)n;
        }
        if (!eat_all(c, base, have + (size_t)n))
            return c->phase == PHASE_CLOSING;
        if (c->ending && !c->began)
            return linger(c) == ACTOR_CONTINUE; /* what stands behind the answer must not reset it away */
        /* Bytes that trickle in don't buy time. */
        if (c->began && actor_now() > deadline_of(c))
            return too_slow(c) == ACTOR_CONTINUE;
        if (dry && !c->stirred)
            return true;
        c->stirred = false;
    }
}

static bool turn(struct connection *c)
{
    struct turn t;
    t.out_length = 0;
    t.served = t.barren = 0;
    c->turn = &t;
    bool go_on = read_all(c);
    if (!c->broken)
        connection_flush(c, actor_now() + limits_of(c)->write_ns);
    c->turn = NULL;
    if (!go_on)
        say_closed(c);
    return go_on && !c->broken;
}

/* One that rings before the deadline is left alone: most requests move the deadline on, and who is rung looks whether it is
 * over. So a timer is set once in a while, not with each request. */
static void set_alarm(struct connection *c)
{
    uint64_t deadline = deadline_of(c);
    if (c->alarm && c->rings <= deadline)
        return;
    if (c->alarm)
        actor_timer_cancel(c->alarm, NULL);
    c->alarm = actor_timer(deadline, 0, 0);
    c->rings = deadline;
}

static enum actor_step on_ready(struct connection *c, const struct message_ready *ready)
{
    enum actor_step step = ACTOR_CONTINUE;
    c->hangup = c->hangup || (ready->events & WATCH_HANGUP) != 0;
    if (c->phase == PHASE_CLOSING)
        step = drop_all(c);
    else if (c->shaking && actor_now() > deadline_of(c) && over(c)) /* bytes that trickle in buy no time */
        step = ACTOR_STOP;
    else if (!turn(c))
        step = ACTOR_STOP;
    else if (c->phase == PHASE_CLOSING)
        step = drop_all(c);
    if (step == ACTOR_CONTINUE && !c->began && c->phase == PHASE_HEAD) {
        actor_guard_begin();
        list_idle(c);
        actor_guard_end();
    }
    if (step == ACTOR_CONTINUE)
        set_alarm(c);
    return step;
}

/* Its time is over by the clock, but what came in time may not have been looked at: the process was stopped, or busy. Bytes that
 * trickle gain nothing, they are looked at and found too late. */
static bool has_come(const struct connection *c)
{
    char one;
    return c->phase != PHASE_CLOSING && recv(c->fd, &one, 1, MSG_PEEK) > 0;
}

static enum actor_step on_timeout(struct connection *c)
{
    static const struct message_ready look = {.events = WATCH_READ};
    struct turn t;
    if (has_come(c))
        return on_ready(c, &look);
    if (over(c)) {
        say_closed(c);
        return ACTOR_STOP;
    }
    t.out_length = 0;
    c->turn = &t;
    enum actor_step step = too_slow(c);
    c->turn = NULL;
    if (step == ACTOR_CONTINUE)
        set_alarm(c);
    return step;
}

static enum actor_step on_alarm(struct connection *c, const struct message_timer *alarm)
{
    if (alarm->ref != c->alarm) /* another has been set since */
        return ACTOR_CONTINUE;
    c->alarm = 0;
    if (actor_now() >= deadline_of(c))
        return on_timeout(c);
    set_alarm(c);
    return ACTOR_CONTINUE;
}

/* ---- the actor ---- */

/* Nothing of the answer has gone out (CTL-283). With other answers still in the turn's buffer the client hears nothing, rather
 * than something that belongs elsewhere. */
static void apologise(struct connection *c)
{
    char text[RESPONSE_LAST_MAX], cipher[RESPONSE_LAST_MAX + 256];
    struct turn *t = c->turn;
    if (c->broken || t->out_length || t->r.head_sent)
        return;
    const char *bytes = text;
    size_t size = response_last_words(&t->r, text);
    if (c->tls) {
        size = tls_send(c->tls, text, size) == TLS_OK ? tls_pending(c->tls, cipher, sizeof(cipher)) : 0;
        bytes = cipher;
    }
    (void)!send(c->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* What the log shows of the request goes where nobody writes: into the body of the answer, which isn't sent. */
static struct span keep_apart(struct span text, char *room, size_t size)
{
    size_t kept = text.size < size ? text.size : size;
    if (kept)
        memcpy(room, text.bytes, kept);
    return span_of(room, kept);
}

/* A handler has crashed, or its actor was ended. The actor is over, but not its stack: who buries it begins at the top, where
 * the answers of this turn were kept; the bytes that came lie below those, and the request below those. A body's room, owned
 * later than what calls this, is given back already, with the bytes in it. */
static void mourn(struct connection *c)
{
    struct turn *t = c->turn;
    if (!t || !c->serving)
        return;
    c->serving = false;
    if (c->carry && c->carry->slot) {
        t->q.path = t->q.route ? span_text(t->q.route->path) : span_of(NULL, 0);
        t->q.identity.subject = span_of(NULL, 0);
    }
    t->q.trace.state = span_of(NULL, 0);
    char *room = t->r.body;
    t->q.path = keep_apart(t->q.path, room, sizeof(t->r.body) / 2);
    t->q.identity.subject =
        keep_apart(t->q.identity.subject, room + sizeof(t->r.body) / 2, IDENTITY_SUBJECT_MAX);
    apologise(c);
    front_crashed(c->front, &t->q, &t->r);
}

static void leave(void *arg)
{
    struct connection *c = arg;
    if (!c->tls)
        mourn(c);
    unlist(c);
    atomic_fetch_sub_explicit(&c->front->connections, 1, memory_order_relaxed);
    peers_leave(c->peer);
}

static void close_tls(void *arg)
{
    struct connection *c = arg;
    mourn(c);
    tls_close(c->tls);
}

/* ---- those who would take what others need, or have enough ----
 *
 * The listener tells them so, and hears them out: who closes on what he hasn't read takes back what he has said.
 *
 * The kernel gives the lowest number there is, so one this near to the limit says how few are left. */

static struct {
    int fd;        /* 1 + its descriptor; 0: nobody */
    int listening; /* whose it is */
} left_over[RUNTIME_SCHEDULERS_MAX];

bool connection_scarce(int fd, uint32_t leave_free, uint32_t *ret_left)
{
    struct rlimit limit;
    if (!leave_free || getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return false;
    *ret_left = (uint32_t)(limit.rlim_cur / 8 < leave_free ? limit.rlim_cur / 8 : leave_free);
    return (rlim_t)fd + *ret_left >= limit.rlim_cur;
}

int connection_left_over(int listening)
{
    int here = actor_scheduler_of(actor_self());
    int fd = left_over[here].fd - 1;
    if (fd < 0 || left_over[here].listening != listening)
        return -1;
    left_over[here].fd = 0;
    return fd;
}

/* For the listener, which waits for our start; if it has gone meanwhile, or another one of this scheduler has somebody at the same
 * time, the next one closes this one. */
_Noreturn static void leave_over(int fd, int listening, int32_t why)
{
    int here = actor_scheduler_of(actor_self());
    if (left_over[here].fd)
        close(left_over[here].fd - 1);
    left_over[here].fd = fd + 1;
    left_over[here].listening = listening;
    actor_refuse(reason_error(why));
}

static void begin_tls(struct connection *c)
{
    struct tls_context *context = tls_context_here();
    actor_guard_begin();
    c->tls = context ? tls_open(context) : NULL;
    actor_guard_end();
    if (!c->tls || !actor_own(close_tls, c))
        actor_refuse(reason_error(CONNECTION_NO_TLS));
    c->shaking = true;
}

static enum actor_step connection_init(void *state, const void *args, size_t args_size)
{
    struct connection *c = state;
    struct connection_args a;
    struct sockaddr_storage from = {0};
    socklen_t from_size = sizeof(from);
    int on = 1;
    uint32_t left;
    ASSERT(args_size == sizeof(a));
    memcpy(&a, args, sizeof(a));
    c->front = a.front;
    c->pid = actor_self();
    do
        c->fd = accept4(a.listening, (struct sockaddr *)&from, &from_size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    while (c->fd < 0 && (errno == EINTR || errno == ECONNABORTED));
    if (c->fd < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return ACTOR_IGNORE;
    if (c->fd < 0)
        actor_refuse(reason_error(errno));
    if (connection_scarce(c->fd, a.leave_free, &left))
        leave_over(c->fd, a.listening, CONNECTION_NO_DESCRIPTORS);
    c->peer = PEER_NONE;
    c->address_size = (uint8_t)(peers_key(&from, c->address) & 15u);
    if (!peers_enter(&from, limits_of(c)->peer_max, &c->peer)) {
        TELEMETRY(HTTP_REFUSED, 1, DIM(REASON, "peer"));
        leave_over(c->fd, a.listening, CONNECTION_PEER_FULL);
    }
    if (!actor_own_fd(c->fd)) {
        close(c->fd);
        peers_leave(c->peer);
        actor_refuse(reason_error(ENOMEM));
    }
    atomic_fetch_add_explicit(&c->front->connections, 1, memory_order_relaxed);
    if (!actor_own(leave, c)) {
        leave(c);
        actor_refuse(reason_error(ENOMEM));
    }
    if (a.tls)
        begin_tls(c);
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on,
                     sizeof(on)); /* unix sockets have none, and need none */
    c->watch = actor_watch(c->fd, WATCH_READ);
    if (!c->watch)
        actor_refuse(reason_error(errno));
    actor_guard_begin();
    list_idle(c);
    actor_guard_end();
    c->rested = actor_now();
    set_alarm(c);
    return ACTOR_CONTINUE;
}

static enum actor_step connection_handle(void *state, struct message *m)
{
    struct connection *c = state;
    switch (m->type) {
    case MESSAGE_READY:
        return on_ready(c, (const void *)m->payload);
    case MESSAGE_TIMER:
        return on_alarm(c, (const void *)m->payload);
    case MESSAGE_EXIT: /* not the supervisor's, which ends us by way of connection_terminate */
        return ACTOR_STOP;
    default:
        actor_unknown(m);
        return ACTOR_CONTINUE;
    }
}

static bool is_ready(const struct message *m, void *arg)
{
    (void)arg;
    return m->type == MESSAGE_READY;
}

/* The server stops: a request that has begun to arrive is taken in and answered, in its own time and for as long as the
 * supervisor waits. */
static void connection_terminate(void *state, const struct reason *why)
{
    static const struct message_ready look = {.events = WATCH_READ};
    struct connection *c = state;
    c->ending = true;
    if (why->kind != REASON_SHUTDOWN)
        return;
    /* What has come and wasn't announced yet counts as well. */
    enum actor_step step = c->phase == PHASE_CLOSING ? ACTOR_CONTINUE : on_ready(c, &look);
    while (step == ACTOR_CONTINUE && (c->began || c->phase == PHASE_CLOSING)) {
        struct message *m = actor_receive(is_ready, NULL, deadline_of(c));
        step = m ? on_ready(c, (const void *)m->payload) : on_timeout(c);
        if (m)
            message_free(m);
    }
    say_closed(c);
}

const struct actor_class connection_class = {
    .name = "connection",
    .state_size = sizeof(struct connection),
    .init = connection_init,
    .handle = connection_handle,
    .terminate = connection_terminate,
    .trap_exits = true,
    .stack_size = 256 * 1024, /* a turn: 50 KiB; TLS another 20; a handler has the rest */
    .arena_quota =
        4u << 20, /* what is left of a request: 2 x 60 KB; 64 KiB for each level of the tree being shown */
};
