#include "http/body.h"

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
    {"a slot comes back with its owner", with_its_owner},
    {0},
};
