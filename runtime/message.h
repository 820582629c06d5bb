/* Messages: blocks of 64 bytes to 64 KiB that travel between actors.
 *
 * Owned by exactly one party at a time. message_new makes one that the running actor holds; sending, replying or
 * forwarding gives it up. What an actor still holds when its handler returns is freed by the runtime, so handlers never
 * free and a crash leaks nothing; message_keep holds on to one across turns, message_free lets go early.
 * Callable from actors on scheduler threads; foreign threads use runtime_post (runtime/runtime.h).
 */
#ifndef COPPICE_RUNTIME_MESSAGE_H
#define COPPICE_RUNTIME_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "runtime/reason.h"

typedef uint64_t actor_pid; /* scheduler (8 bits) | slot (24) | generation (32); 0 is nobody */

/* Types 1 to MESSAGE_USER_MAX are the actors' own. Those above are what the runtime tells an actor's handler. */
#define MESSAGE_USER_MAX 0x00efffffu
enum message_type {
    MESSAGE_EXIT = 0x00f00001,    /* a linked actor ended and this one traps exits: struct message_exit */
    MESSAGE_DOWN = 0x00f00002,    /* a monitored actor ended: struct message_down */
    MESSAGE_TIMER = 0x00f00003,   /* only when actor_timer was given type 0: struct message_timer */
    MESSAGE_READY = 0x00f00004,   /* a watched descriptor is ready: struct message_ready */
    MESSAGE_TIMEOUT = 0x00f00005, /* nothing else arrived in time: see actor_idle_timeout */
};

enum message_kind { MESSAGE_CAST, MESSAGE_CALL, MESSAGE_REPLY, MESSAGE_SIGNAL, MESSAGE_ALARM };

struct message {
    struct message *next;    /* the link of whoever owns it */
    actor_pid to;            /* while in transit */
    actor_pid from;          /* the sender; 0 when sent from outside */
    uint64_t ref;            /* a call's reference */
    uint32_t type;           /* enum message_type or the actors' own */
    uint32_t size : 24;      /* payload bytes */
    uint32_t block : 4;      /* size class of the block */
    uint32_t kind : 3;       /* enum message_kind */
    uint32_t reasoned : 1;   /* the payload starts with a struct reason that is dropped with the message */
    unsigned char payload[]; /* aligned to 8 */
};

#define MESSAGE_HEAD        40u
#define MESSAGE_BLOCK_MIN   64u
#define MESSAGE_BLOCK_MAX   65536u
#define MESSAGE_BLOCKS      11                                 /* 64 << 0 .. 64 << 10 */
#define MESSAGE_SMALL       (MESSAGE_BLOCK_MIN - MESSAGE_HEAD) /* 24 bytes travel in one cache line */
#define MESSAGE_PAYLOAD_MAX (MESSAGE_BLOCK_MAX - MESSAGE_HEAD)

struct message_exit {
    struct reason reason; /* first: see message.reasoned */
    actor_pid pid;        /* who ended */
    uint64_t tag;         /* the tag given when the link was made (spawn_options.tag), else 0 */
    bool at_start;        /* over a link: it hadn't finished handling one message since its init */
};

struct message_down {
    struct reason reason;
    actor_pid pid;
    uint64_t ref; /* what actor_monitor returned */
    uint64_t tag; /* the tag given to the monitor */
    bool gone;    /* it had ended before the monitor came: the reason is noproc */
};

struct message_timer {
    uint64_t ref;
    uint64_t value;
};

struct message_ready {
    uint64_t ref;
    int fd;
    uint32_t events; /* WATCH_READ, WATCH_WRITE, WATCH_HANGUP */
};

/* NULL when size is over MESSAGE_PAYLOAD_MAX or the message pools are used up. The payload is not cleared. */
struct message *message_new(uint32_t type, size_t size);
/* The same with the bytes copied in by the caller's side of the call, so that a bad pointer is the caller's fault. */
static inline struct message *message_of(uint32_t type, const void *bytes, size_t size)
{
    struct message *m = message_new(type, size);
    if (m && size)
        __builtin_memcpy(m->payload, bytes, size);
    return m;
}
void message_free(struct message *m);
/* Hold on to a message after the handler returns: until message_free or a send. Each kept one costs a record (see
 * runtime.h) and nothing else; false when there are none, and then it is held as before, until the handler returns. */
bool message_keep(struct message *m);

/* The payload when it is exactly of this size, else NULL: every receiver checks before it looks inside. */
static inline void *message_body(struct message *m, size_t size)
{
    return m->size == size ? m->payload : NULL;
}

#endif
