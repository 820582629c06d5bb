#include "http/body.h"

#include <sys/mman.h>

#include "acutest.h"
#include "http/json_text.h"
#include "runtime/actor.h"
#include "tests/support/inside.h"

static enum actor_step take_one(void *state, const void *args, size_t args_size)
{
    (void)state, (void)args, (void)args_size;
    TEST_CHECK(body_take() != NULL);
    return ACTOR_CONTINUE;
}

static enum actor_step never(void *state, struct message *m)
{
    (void)state, (void)m;
    return ACTOR_STOP;
}

static const struct actor_class taker_class = {.name = "taker", .init = take_one, .handle = never};

INSIDE(all_of_them)
{
    static struct body *bodies[BODIES_MAX];
    TEST_CHECK(bodies_open());
    for (uint32_t i = 0; i < BODIES_MAX; i++) {
        bodies[i] = body_take();
        TEST_ASSERT(bodies[i] != NULL);
        TEST_CHECK(bodies[i]->bytes[0] == 0 && bodies[i]->bytes[BODY_BYTES_MAX - 1] == 0);
        memset(bodies[i]->bytes, 'x', 64);
        bodies[i]->nodes[BODY_NODES_MAX - 1].kind = 7;
    }
    TEST_CHECK(bodies_used() == BODIES_MAX);
    TEST_CHECK(body_take() == NULL);
    body_drop(bodies[70]);
    struct body *again = body_take();
    TEST_ASSERT(again == bodies[70]);
    TEST_CHECK(again->bytes[0] == 0); /* nothing of the last one's */
    for (uint32_t i = 0; i < BODIES_MAX; i++)
        body_drop(bodies[i]);
    TEST_CHECK(bodies_used() == 0);
    bodies_close();
}

/* What was said to be used is wiped; a slot of which nobody says so, or of which much was used, is empty as well. */
INSIDE(wiped)
{
    static const size_t used[][2] = {{0, 0}, {5000, 3}, {BODY_LITTLE, 0}, {BODY_LITTLE, 1}, {70000, 9000}};
    TEST_CHECK(bodies_open());
    for (size_t i = 0; i < sizeof(used) / sizeof(*used); i++) {
        struct body *body = body_take();
        TEST_ASSERT(body != NULL);
        memset(body->bytes, 'x', used[i][0]);
        memset(body->nodes, 7, used[i][1] * sizeof(*body->nodes));
        if (i > 0)
            body_used(body, used[i][0], used[i][1]);
        body_drop(body);
        struct body *again = body_take();
        TEST_ASSERT(again == body);
        size_t left = 0;
        for (size_t at = 0; at < BODY_BYTES_MAX; at++)
            left += again->bytes[at] != 0;
        for (size_t at = 0; at < 9000; at++)
            left += again->nodes[at].kind != 0 || again->nodes[at].next != 0;
        TEST_CHECK_(left == 0, "%zu of %zu and %zu are left", left, used[i][0], used[i][1]);
        body_drop(again);
    }
    bodies_close();
}

/* How many pages of the slot are in memory. */
static size_t resident(const struct body *body, size_t size)
{
    static unsigned char pages[BODY_BYTES_MAX / 4096];
    size_t count = 0;
    TEST_ASSERT(size / 4096 <= sizeof(pages) && mincore(body->bytes, size, pages) == 0);
    for (size_t i = 0; i < size / 4096; i++)
        count += pages[i] & 1;
    return count;
}

/* One large body must not keep its memory: there are many slots, and large bodies are rare. */
INSIDE(given_back)
{
    TEST_CHECK(bodies_open());
    for (int i = 0; i < 2; i++) {
        struct body *body = body_take();
        TEST_ASSERT(body != NULL);
        memset(body->bytes, 'x', i ? BODY_LITTLE : BODY_BYTES_MAX);
        TEST_CHECK(resident(body, i ? BODY_LITTLE : BODY_BYTES_MAX) > 0);
        body_used(body, i ? BODY_LITTLE : BODY_BYTES_MAX, i ? 1 : 0);
        body_drop(body);
        TEST_CHECK(resident(body, BODY_BYTES_MAX) == 0);
    }
    bodies_close();
}

INSIDE(with_its_owner)
{
    struct start_result started = {0};
    TEST_CHECK(bodies_open());
    TEST_CHECK(
        actor_start(&(struct spawn_options){.class = &taker_class}, &started, actor_deadline_ms(100)) == OK);
    TEST_CHECK(bodies_used() == 1);
    TEST_CHECK(actor_stop(started.pid, reason_of(REASON_KILLED), NULL, actor_deadline_ms(100)) == OK);
    TEST_CHECK(bodies_used() == 0);
    bodies_close();
}

TEST_LIST
= {
    {"a slot for each, and no more; nothing of the last owner's is left", all_of_them},
    {"little is wiped, much is given back", wiped},
    {"one large body does not keep its memory", given_back},
    {"a slot comes back with its owner", with_its_owner},
    {0},
};
