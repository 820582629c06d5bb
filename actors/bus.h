/* The signal bus: topics in this process. What is published under a topic goes to each of its subscribers.
 *
 * One actor orders all publications: every subscriber sees those of one topic in the same order.
 * Subscriptions are memberships in the runtime's groups, made and ended by the subscriber itself, so they
 * outlive the bus and end with the subscriber. A kill of the bus loses what waits in its mailbox and nothing
 * else; nothing here is durable.
 *
 * Delivery is at most once. A subscriber whose mailbox is full misses the event, and that is counted; nobody
 * waits for it. Limits: topics of 1 to BUS_TOPIC_MAX bytes, bodies up to BUS_BODY_MAX, BUS_SUBSCRIBERS_MAX
 * subscribers a topic, BUS_QUEUE_MAX publications waiting; beyond that ERR_FULL or ERR_LIMIT says so.
 */
#ifndef COPPICE_ACTORS_BUS_H
#define COPPICE_ACTORS_BUS_H

#include "runtime/actor.h"

#define BUS_TOPIC_MAX       90u
#define BUS_BODY_MAX        65000u
#define BUS_SUBSCRIBERS_MAX 4096u
#define BUS_QUEUE_MAX       4096u
#define BUS_NAME            "bus"

extern const struct actor_class bus_class; /* no arguments */

/* What a subscriber's handler gets: a message of this type. bus_event_read looks inside; what it stores is
 * borrowed from the message. False: it is not an event of the bus. */
enum { BUS_EVENT = 0x00b50001 };
struct bus_event {
    const char *topic; /* terminated */
    const void *bytes;
    size_t size;
};
bool bus_event_read(const struct message *m, struct bus_event *ret_event);

/* For the running actor. Subscribing twice gives each event twice and takes two to end. ERR_LIMIT,
 * ERR_INVALID. */
enum error bus_subscribe(const char *topic);
enum error bus_unsubscribe(const char *topic); /* ERR_NOT_FOUND when not subscribed */
size_t bus_subscribers(const char *topic);

/* Without waiting. ERR_FULL, ERR_INVALID, ERR_MEMORY; ERR_NOPROC when the bus isn't there. */
enum error bus_publish(const char *topic, const void *bytes, size_t size);
/* Waits until the event stands in the mailboxes of all subscribers that have room for it. */
struct bus_receipt {
    uint32_t delivered, missed;
};
enum error bus_publish_wait(const char *topic, const void *bytes, size_t size,
                            struct bus_receipt *ret_receipt, uint64_t deadline);

struct bus_figures {
    uint64_t published, delivered, missed; /* since this bus started */
};
enum error bus_inspect(struct bus_figures *ret_figures, uint64_t deadline);

#endif
