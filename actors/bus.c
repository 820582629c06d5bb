#include "actors/bus.h"

#include <string.h>

#include "runtime/telemetry.h"

enum { BUS_PUBLISH = 1, BUS_INSPECT, BUS_RECEIPT, BUS_FIGURES };

#define GROUP_PREFIX "bus:"

struct bus {
    actor_pid *members; /* BUS_SUBSCRIBERS_MAX of them */
    struct bus_figures figures;
};
STATIC_ASSERT(sizeof(struct bus) <= ACTOR_STATE_INLINE, "the bus costs its actor and one array");

/* A publication and an event are the same bytes: length of the topic, topic, 0, body. */
STATIC_ASSERT(1 + BUS_TOPIC_MAX + 1 + BUS_BODY_MAX <= MESSAGE_PAYLOAD_MAX, "an event fits into a message");

struct group_name {
    char text[sizeof(GROUP_PREFIX) + BUS_TOPIC_MAX];
};

static bool group_of(const char *topic, struct group_name *ret_name)
{
    size_t length = strnlen(topic, BUS_TOPIC_MAX + 1);
    if (length == 0 || length > BUS_TOPIC_MAX)
        return false;
    memcpy(ret_name->text, GROUP_PREFIX, sizeof(GROUP_PREFIX) - 1);
    memcpy(ret_name->text + sizeof(GROUP_PREFIX) - 1, topic, length + 1);
    return true;
}

/* ---- the bus ---- */

static bool read_event(const struct message *m, struct bus_event *ret_event)
{
    const unsigned char *p = m->payload;
    if (m->size < 3 || p[0] == 0 || p[0] > BUS_TOPIC_MAX || m->size < 2u + p[0] || p[1 + p[0]] != 0 ||
        memchr(p + 1, 0, p[0]))
        return false;
    *ret_event =
        (struct bus_event){.topic = (const char *)p + 1, .bytes = p + 2 + p[0], .size = m->size - 2u - p[0]};
    return true;
}

static enum actor_step bus_init(void *state, const void *args, size_t args_size)
{
    struct bus *b = state;
    (void)args;
    (void)args_size;
    b->members = actor_alloc(BUS_SUBSCRIBERS_MAX * sizeof(*b->members));
    return ACTOR_CONTINUE;
}

static struct bus_receipt fan_out(struct bus *b, const struct message *m, const char *topic)
{
    struct group_name group;
    struct bus_receipt receipt = {0};
    bool named = group_of(topic, &group);
    ASSERT(named);
    size_t members = actor_members(group.text, b->members, BUS_SUBSCRIBERS_MAX);
    /* More can have joined at the same instant than the limit allows; they are missed, not read past the
     * array. */
    size_t reached = members < BUS_SUBSCRIBERS_MAX ? members : BUS_SUBSCRIBERS_MAX;
    for (size_t i = 0; i < reached; i++)
        if (actor_cast(b->members[i], BUS_EVENT, m->payload, m->size) == OK)
            receipt.delivered++;
    receipt.missed = (uint32_t)members - receipt.delivered;
    b->figures.published++;
    b->figures.delivered += receipt.delivered;
    b->figures.missed += receipt.missed;
    return receipt;
}

static enum actor_step bus_handle(void *state, struct message *m)
{
    struct bus *b = state;
    struct bus_event event;
    struct bus_receipt receipt;
    switch (m->type) {
    case BUS_PUBLISH:
        if (!read_event(m, &event))
            return ACTOR_CONTINUE;
        receipt = fan_out(b, m, event.topic);
        if (m->kind == MESSAGE_CALL)
            actor_reply_bytes(m, BUS_RECEIPT, &receipt, sizeof(receipt));
        return ACTOR_CONTINUE;
    case BUS_INSPECT:
        actor_reply_bytes(m, BUS_FIGURES, &b->figures, sizeof(b->figures));
        return ACTOR_CONTINUE;
    default:
        TELEMETRY(MESSAGE_UNKNOWN, 1, DIM(CLASS, bus_class.name));
        return ACTOR_CONTINUE;
    }
}

const struct actor_class bus_class = {
    .name = "bus",
    .state_size = sizeof(struct bus),
    .init = bus_init,
    .handle = bus_handle,
    .mailbox_capacity = BUS_QUEUE_MAX,
};

/* ---- its users ---- */

bool bus_event_read(const struct message *m, struct bus_event *ret_event)
{
    return m->type == BUS_EVENT && read_event(m, ret_event);
}

enum error bus_subscribe(const char *topic)
{
    struct group_name group;
    if (!group_of(topic, &group))
        return ERR_INVALID;
    if (actor_members(group.text, NULL, 0) >= BUS_SUBSCRIBERS_MAX)
        return ERR_LIMIT;
    return actor_join(group.text);
}

enum error bus_unsubscribe(const char *topic)
{
    struct group_name group;
    return group_of(topic, &group) ? actor_leave(group.text) : ERR_INVALID;
}

size_t bus_subscribers(const char *topic)
{
    struct group_name group;
    return group_of(topic, &group) ? actor_members(group.text, NULL, 0) : 0;
}

static enum error publication(const char *topic, const void *bytes, size_t size, struct message **ret_message)
{
    struct group_name group;
    if (!group_of(topic, &group) || size > BUS_BODY_MAX)
        return ERR_INVALID;
    size_t length = strlen(topic);
    struct message *m = message_new(BUS_PUBLISH, 2 + length + size);
    if (!m)
        return ERR_MEMORY;
    m->payload[0] = (unsigned char)length;
    memcpy(m->payload + 1, topic, length + 1);
    if (size)
        memcpy(m->payload + 2 + length, bytes, size);
    *ret_message = m;
    return OK;
}

enum error bus_publish(const char *topic, const void *bytes, size_t size)
{
    struct message *m;
    actor_pid bus = actor_whereis(BUS_NAME);
    if (!bus)
        return ERR_NOPROC;
    enum error e = publication(topic, bytes, size, &m);
    return e == OK ? actor_send(bus, m) : e;
}

enum error bus_publish_wait(const char *topic, const void *bytes, size_t size,
                            struct bus_receipt *ret_receipt, uint64_t deadline)
{
    struct message *m, *reply;
    enum error e = publication(topic, bytes, size, &m);
    if (e == OK)
        e = actor_call_name(BUS_NAME, m, &reply, deadline);
    if (e != OK)
        return e;
    memcpy(ret_receipt, reply->payload, sizeof(*ret_receipt));
    message_free(reply);
    return OK;
}

enum error bus_inspect(struct bus_figures *ret_figures, uint64_t deadline)
{
    struct message *reply, *m = message_new(BUS_INSPECT, 0);
    enum error e = m ? actor_call_name(BUS_NAME, m, &reply, deadline) : ERR_MEMORY;
    if (e != OK)
        return e;
    memcpy(ret_figures, reply->payload, sizeof(*ret_figures));
    message_free(reply);
    return OK;
}
