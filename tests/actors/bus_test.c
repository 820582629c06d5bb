#include "acutest.h"

#include <string.h>

#include "actors/bus.h"
#include "tests/support/inside.h"

static actor_pid start_bus(void)
{
    struct start_result r;
    struct spawn_options o = {.class = &bus_class, .name = BUS_NAME};
    TEST_ASSERT(actor_start(&o, &r, DEADLINE_NONE) == OK);
    return r.pid;
}

/* The next event that this actor got, or "" when there is none. */
static struct message *next_event(struct bus_event *event)
{
    struct message *m = actor_receive(NULL, NULL, actor_deadline_ms(1));
    if (m && !bus_event_read(m, event))
        m = NULL;
    return m;
}

static void check_event(const char *topic, const char *body)
{
    struct bus_event event;
    struct message *m = next_event(&event);
    if (!TEST_CHECK(m != NULL))
        return;
    TEST_CHECK(strcmp(event.topic, topic) == 0);
    TEST_CHECK(event.size == strlen(body) && memcmp(event.bytes, body, event.size) == 0);
    message_free(m);
}

static void check_silence(void)
{
    struct bus_event event;
    TEST_CHECK(next_event(&event) == NULL);
}

/* A subscriber that never handles more than its first message, with room for two. */
static enum actor_step sleeper_init(void *state, const void *args, size_t args_size)
{
    (void)state;
    (void)args;
    (void)args_size;
    return bus_subscribe("news") == OK ? ACTOR_CONTINUE : ACTOR_IGNORE;
}

static enum actor_step sleeper_handle(void *state, struct message *m)
{
    (void)state;
    (void)m;
    actor_sleep(DEADLINE_NONE);
    return ACTOR_CONTINUE;
}

static const struct actor_class sleeper_class = {
    .name = "sleeper", .init = sleeper_init, .handle = sleeper_handle, .mailbox_capacity = 2};

static actor_pid start_sleeper(void)
{
    struct start_result r;
    struct spawn_options o = {.class = &sleeper_class};
    TEST_ASSERT(actor_start(&o, &r, DEADLINE_NONE) == OK);
    return r.pid;
}

INSIDE(test_delivers_in_order_to_subscribers_only)
{
    start_bus();
    TEST_CHECK(bus_publish("news", "lost", 4) == OK);
    inside_settle();
    TEST_CHECK(bus_subscribe("news") == OK);
    TEST_CHECK(bus_subscribers("news") == 1);
    TEST_CHECK(bus_publish("news", "one", 3) == OK);
    TEST_CHECK(bus_publish("weather", "rain", 4) == OK);
    TEST_CHECK(bus_publish("news", "two", 3) == OK);
    TEST_CHECK(bus_publish("news", NULL, 0) == OK);
    check_event("news", "one");
    check_event("news", "two");
    check_event("news", "");
    check_silence();
    TEST_CHECK(bus_unsubscribe("news") == OK);
    TEST_CHECK(bus_unsubscribe("news") == ERR_NOT_FOUND);
    TEST_CHECK(bus_publish("news", "three", 5) == OK);
    check_silence();
}

INSIDE(test_tells_who_was_missed)
{
    struct bus_receipt receipt;
    struct bus_figures figures;
    start_bus();
    start_sleeper();
    TEST_CHECK(bus_subscribe("news") == OK);
    for (uint32_t i = 0; i < 3; i++) { /* one that it sleeps in, two that wait */
        TEST_CHECK(bus_publish_wait("news", "x", 1, &receipt, DEADLINE_NONE) == OK);
        TEST_CHECK(receipt.delivered == 2 && receipt.missed == 0);
        inside_settle();
    }
    TEST_CHECK(bus_publish_wait("news", "x", 1, &receipt, DEADLINE_NONE) == OK);
    TEST_CHECK(receipt.delivered == 1 && receipt.missed == 1);
    TEST_CHECK(bus_inspect(&figures, DEADLINE_NONE) == OK);
    TEST_CHECK(figures.published == 4 && figures.delivered == 7 && figures.missed == 1);
}

INSIDE(test_forgets_a_dead_subscriber)
{
    struct bus_receipt receipt;
    start_bus();
    actor_pid sleeper = start_sleeper();
    TEST_CHECK(bus_subscribers("news") == 1);
    actor_kill(sleeper);
    inside_settle();
    TEST_CHECK(bus_subscribers("news") == 0);
    TEST_CHECK(bus_publish_wait("news", "x", 1, &receipt, DEADLINE_NONE) == OK);
    TEST_CHECK(receipt.delivered == 0 && receipt.missed == 0);
}

INSIDE(test_keeps_subscriptions_over_its_death)
{
    actor_pid bus = start_bus();
    TEST_CHECK(bus_subscribe("news") == OK);
    actor_kill(bus);
    inside_settle();
    TEST_CHECK(bus_publish("news", "x", 1) == ERR_NOPROC);
    start_bus();
    TEST_CHECK(bus_publish("news", "back", 4) == OK);
    check_event("news", "back");
}

INSIDE(test_holds_its_limits)
{
    static char body[BUS_BODY_MAX + 1], topic[BUS_TOPIC_MAX + 2];
    struct bus_receipt receipt;
    struct bus_event event;
    start_bus();
    memset(topic, 't', BUS_TOPIC_MAX + 1);
    TEST_CHECK(bus_subscribe(topic) == ERR_INVALID);
    TEST_CHECK(bus_publish(topic, NULL, 0) == ERR_INVALID);
    TEST_CHECK(bus_subscribe("") == ERR_INVALID);
    TEST_CHECK(bus_publish("", NULL, 0) == ERR_INVALID);
    TEST_CHECK(bus_publish("news", body, BUS_BODY_MAX + 1) == ERR_INVALID);
    topic[BUS_TOPIC_MAX] = 0;
    TEST_CHECK(bus_subscribe(topic) == OK);
    memset(body, 'b', sizeof(body));
    TEST_CHECK(bus_publish(topic, body, BUS_BODY_MAX) == OK);
    struct message *m = next_event(&event);
    TEST_CHECK(m && strcmp(event.topic, topic) == 0 && event.size == BUS_BODY_MAX &&
               memcmp(event.bytes, body, BUS_BODY_MAX) == 0);
    for (uint32_t i = 0; i < BUS_SUBSCRIBERS_MAX; i++)
        TEST_CHECK(bus_subscribe("crowd") == OK);
    TEST_CHECK(bus_subscribe("crowd") == ERR_LIMIT);
    TEST_CHECK(bus_publish_wait("crowd", "x", 1, &receipt, DEADLINE_NONE) == OK);
    TEST_CHECK(receipt.delivered + receipt.missed == BUS_SUBSCRIBERS_MAX);
}

INSIDE(test_refuses_bytes_that_are_no_event)
{
    static const struct {
        unsigned char bytes[8];
        size_t size;
    } bad[] = {
        {{0, 0, 0}, 3},          /* no topic */
        {{1, 'a'}, 2},           /* no end of the topic */
        {{200, 'a', 0}, 3},      /* longer than there are bytes, and than a topic may be */
        {{2, 'a', 0, 0}, 4},     /* a 0 inside */
        {{2, 'a', 'b', 'c'}, 4}, /* no 0 behind it */
        {{0}, 0},
    };
    struct bus_event event;
    struct bus_figures figures;
    actor_pid bus = start_bus();
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct message *m = message_of(BUS_EVENT, bad[i].bytes, bad[i].size);
        TEST_CHECK_(!bus_event_read(m, &event), "bytes %zu", i);
        message_free(m);
        TEST_CHECK(actor_call(bus, message_of(1, bad[i].bytes, bad[i].size), NULL, DEADLINE_NONE) ==
                   ERR_UNANSWERED);
    }
    TEST_CHECK(bus_inspect(&figures, DEADLINE_NONE) == OK && figures.published == 0);
}

TEST_LIST
= {
    {"TOP-012 the bus delivers in order, to subscribers only", test_delivers_in_order_to_subscribers_only},
    {"the bus tells how many missed an event", test_tells_who_was_missed},
    {"the bus forgets a dead subscriber", test_forgets_a_dead_subscriber},
    {"subscriptions outlive the bus", test_keeps_subscriptions_over_its_death},
    {"the bus holds its limits", test_holds_its_limits},
    {"the bus refuses bytes that are no event", test_refuses_bytes_that_are_no_event},
    {NULL, NULL},
};
