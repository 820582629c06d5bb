#define _GNU_SOURCE
#include "chaos/channel.h"

#include <stdlib.h>
#include <string.h>

void channel_init(struct channel *channel, struct in_addr source, const struct sockaddr_in *to)
{
    *channel = (struct channel){.source = source, .to = to};
}

static void discard(struct channel *channel, struct wire *wire)
{
    wire_close(wire);
    free(wire);
    channel->open--;
}

static struct wire *take_idle(struct channel *channel)
{
    while (channel->idle_count) {
        struct idle *idle = &channel->idle[--channel->idle_count];
        if (strand_now() - idle->since < CHANNEL_IDLE_NS && !wire_stale(idle->wire))
            return idle->wire;
        discard(channel, idle->wire);
    }
    return NULL;
}

static struct wire *connect_new(struct channel *channel, uint64_t until)
{
    struct wire *wire = malloc(sizeof(*wire));
    channel->open++;
    if (wire && wire_connect(wire, channel->source, channel->to, until))
        return wire;
    free(wire);
    channel->open--;
    strand_wake_one(&channel->waiting);
    return NULL;
}

static struct wire *take(struct channel *channel, uint64_t until)
{
    for (;;) {
        struct wire *wire = take_idle(channel);
        if (wire)
            return wire;
        if (channel->open < CHANNEL_OPEN_MAX)
            return connect_new(channel, until);
        if (!strand_wait(&channel->waiting, until))
            return NULL;
    }
}

static void give(struct channel *channel, struct wire *wire, bool keep)
{
    if (keep)
        channel->idle[channel->idle_count++] = (struct idle){.wire = wire, .since = strand_now()};
    else
        discard(channel, wire);
    strand_wake_one(&channel->waiting);
}

enum exchanged channel_exchange(struct channel *channel, struct span request, struct letter *ret_letter,
                                uint64_t *ret_ns, uint64_t until)
{
    struct wire *wire = take(channel, until);
    if (!wire)
        return EXCHANGE_UNSENT;
    uint64_t began = strand_now();
    /* A refused body may be answered before all of it was sent: there may be an answer whatever became of sending. */
    (void)wire_send(wire, request, until);
    bool answered = wire_receive(wire, true, ret_letter, until);
    *ret_ns = strand_now() - began;
    give(channel, wire, answered && ret_letter->keep_alive);
    return answered ? EXCHANGE_ANSWERED : EXCHANGE_LOST;
}

void channel_close(struct channel *channel)
{
    while (channel->idle_count)
        discard(channel, channel->idle[--channel->idle_count].wire);
}
