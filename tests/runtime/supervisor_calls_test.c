/* Both sides of a supervisor's calls when the other one doesn't keep to them: whoever is asked may be no supervisor at all, and whoever
 * asks may have written the message himself. */
#include "acutest.h"
#include "tests/runtime/node.h"

#include <stdio.h>
#include <string.h>
#include "runtime/supervisor_calls.h"

/* ---- answers that are none ---- */

static struct lie {
    uint32_t type;
    size_t size;
} lie;

static enum actor_step liar_handle(void *state, struct message *m)
{
    static const unsigned char bytes[sizeof(struct supervisor_info) + sizeof(struct child_info)];
    (void)state;
    actor_reply_bytes(m, lie.type, bytes, lie.size);
    return ACTOR_CONTINUE;
}

static const struct actor_class liar_class = {.name = "liar", .handle = liar_handle};

static const struct child_spec doll_spec = {.id = "a", .class = &doll_class};

/* ERR_INVALID from each function, unless the answer is by chance the one that belongs to it. */
static void expect_all_invalid(actor_pid liar)
{
    struct child_result r;
    struct child_info info;
    struct child_counts counts;
    struct supervisor_info whole;
    size_t stored, total;
    EXPECT(supervisor_start_child(liar, &doll_spec, &r, DEADLINE_NONE) == ERR_INVALID);
    EXPECT(supervisor_start_dynamic(liar, NULL, 0, NULL, &r, DEADLINE_NONE) == ERR_INVALID);
    EXPECT(supervisor_restart_child(liar, "a", NULL, DEADLINE_NONE) == ERR_INVALID);
    EXPECT(supervisor_terminate_child(liar, "a", DEADLINE_NONE) == ERR_INVALID);
    EXPECT(supervisor_terminate_pid(liar, 1, DEADLINE_NONE) == ERR_INVALID);
    EXPECT(supervisor_delete_child(liar, "a", DEADLINE_NONE) == ERR_INVALID);
    EXPECT(supervisor_resume_child(liar, "a", DEADLINE_NONE) == ERR_INVALID);
    EXPECT(supervisor_resume_pid(liar, 1, DEADLINE_NONE) == ERR_INVALID);
    EXPECT(supervisor_which_child(liar, "a", &info, DEADLINE_NONE) == ERR_INVALID);
    EXPECT(supervisor_which_children(liar, 0, &info, 1, &stored, &total, DEADLINE_NONE) == ERR_INVALID);
    EXPECT(supervisor_count_children(liar, &counts, DEADLINE_NONE) == ERR_INVALID);
    EXPECT(supervisor_inspect(liar, &whole, DEADLINE_NONE) == ERR_INVALID);
}

static void lies_body(void)
{
    static const struct lie lies[] = {{4711, 0},
                                      {ANSWER_ERROR, 0},
                                      {ANSWER_ERROR, 5},
                                      {ANSWER_CHILD, 0},
                                      {ANSWER_REFUSED, 0},
                                      {ANSWER_INFO, 0},
                                      {ANSWER_INFO, sizeof(struct child_info) + 1},
                                      {ANSWER_CHILDREN, sizeof(struct which_answer) - 1},
                                      {ANSWER_COUNTS, 1},
                                      {ANSWER_INSPECT, sizeof(struct supervisor_info) + 8}};
    actor_pid liar = spawn(&liar_class, anywhere());
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        lie = lies[i];
        expect_all_invalid(liar);
    }
    actor_kill(liar);
}

static void test_lies(void)
{
    node_sim(lies_body);
}

/* ---- arguments that are none ---- */

static actor_pid start(const struct supervisor_spec *spec)
{
    struct start_result r = {0};
    EXPECT(supervisor_start(spec, anywhere(), &r, DEADLINE_NONE) == OK);
    return r.pid;
}

static void end(actor_pid sup)
{
    EXPECT(supervisor_stop(sup, reason_of(REASON_NORMAL), DEADLINE_NONE) == OK);
}

static void arguments_body(void)
{
    actor_pid sup = start(&(struct supervisor_spec){.strategy = ONE_FOR_ONE});
    struct child_result r = {0};
    struct child_spec spec = doll_spec;
    EXPECT(supervisor_start_child(sup, NULL, &r, DEADLINE_NONE) == ERR_BADARG);
    spec.args_size = 1;
    EXPECT(supervisor_start_child(sup, &spec, &r, DEADLINE_NONE) == ERR_BADARG);
    spec.args = &spec;
    spec.args_size = ACTOR_ARGS_MAX + 1;
    EXPECT(supervisor_start_child(sup, &spec, &r, DEADLINE_NONE) == ERR_BADARG);
    EXPECT(supervisor_start_dynamic(sup, NULL, 1, NULL, &r, DEADLINE_NONE) == ERR_BADARG);
    EXPECT(supervisor_start_dynamic(sup, &spec, ACTOR_ARGS_MAX + 1, NULL, &r, DEADLINE_NONE) == ERR_BADARG);
    EXPECT(supervisor_terminate_child(sup, NULL, DEADLINE_NONE) == ERR_NOT_FOUND);
    EXPECT(supervisor_start_child(sup, &doll_spec, NULL, DEADLINE_NONE) == OK); /* nobody wants to know who */
    struct child_info info;
    EXPECT(supervisor_which_children(sup, 0, &info, 1, NULL, NULL, DEADLINE_NONE) == OK &&
           !strcmp(info.id, "a"));
    size_t stored = 7;
    EXPECT(supervisor_which_children(sup, 0, &info, 0, &stored, NULL, DEADLINE_NONE) == OK && stored == 0);
    end(sup);
}

static enum actor_step refusing_init(void *state, const void *args, size_t size)
{
    (void)state, (void)args, (void)size;
    actor_refuse(reason_with_detail(reason_error(7), "not today", 9));
}

static const struct actor_class refusing_class = {
    .name = "refusing", .init = refusing_init, .handle = doll_handle};

/* A reason that nobody wants goes with the message: the books are looked at. */
static void unwanted_body(void)
{
    actor_pid sup = start(&(struct supervisor_spec){.strategy = ONE_FOR_ONE});
    const struct child_spec spec = {.id = "a", .class = &refusing_class};
    struct child_result r = {0};
    EXPECT(supervisor_start_child(sup, &spec, &r, DEADLINE_NONE) == ERR_INIT && r.why.detail);
    reason_drop(&r.why);
    EXPECT(supervisor_start_child(sup, &spec, NULL, DEADLINE_NONE) == ERR_INIT);
    end(sup);
}

static void test_unwanted(void)
{
    node_sim(unwanted_body);
}

static void test_arguments(void)
{
    node_sim(arguments_body);
}

/* ---- requests that are none ---- */

static uint32_t answer_of(actor_pid sup, struct message *m)
{
    struct message *reply = NULL;
    EXPECT(actor_call(sup, m, &reply, DEADLINE_NONE) == OK);
    uint32_t code = OK;
    if (reply->type == ANSWER_ERROR)
        memcpy(&code, reply->payload, sizeof code);
    else if (reply->type == ANSWER_CHILD)
        code = ((const struct child_answer *)(const void *)reply->payload)->error;
    message_free(reply);
    return code;
}

/* A request to start a doll; id and name as they are given, with the bytes behind them. */
static uint32_t start_child_raw(actor_pid sup, const char *id, uint8_t id_size, const char *name,
                                uint8_t name_size)
{
    struct message *m = message_new(CALL_START_CHILD, sizeof(struct start_request) + id_size + name_size);
    struct start_request *r = (struct start_request *)(void *)m->payload;
    *r = (struct start_request){.class = &doll_class, .id_size = id_size, .name_size = name_size};
    memcpy(r->bytes, id, id_size);
    memcpy(r->bytes + id_size, name, name_size);
    return answer_of(sup, m);
}

static uint32_t start_dynamic_raw(actor_pid sup, const char *name, uint32_t size, uint32_t said)
{
    struct message *m = message_new(CALL_START_DYNAMIC, sizeof(struct start_dynamic_request) + size);
    struct start_dynamic_request *r = (struct start_dynamic_request *)(void *)m->payload;
    *r = (struct start_dynamic_request){.name_size = said};
    memcpy(r->bytes, name, size);
    return answer_of(sup, m);
}

static void requests_body(void)
{
    actor_pid sup = start(&(struct supervisor_spec){.strategy = ONE_FOR_ONE});
    EXPECT(start_child_raw(sup, "ab", 2, "", 0) == ERR_INVALID);   /* an id without its end */
    EXPECT(start_child_raw(sup, "a\0b", 4, "", 0) == ERR_INVALID); /* one that ends before */
    EXPECT(start_child_raw(sup, "a", 2, "bc", 2) == ERR_INVALID);  /* the same with a name */
    EXPECT(start_child_raw(sup, "a", 2, "b\0c", 4) == ERR_INVALID);
    EXPECT(start_child_raw(sup, "a", 2, "b", 2) == OK && actor_whereis("b"));
    struct child_counts counts;
    EXPECT(supervisor_count_children(sup, &counts, DEADLINE_NONE) == OK && counts.specs == 1);
    EXPECT(start_dynamic_raw(sup, "", 0, 0) == ERR_INVALID); /* there is no template */
    end(sup);

    static char long_name[200];
    memset(long_name, 'n', sizeof long_name - 1);
    sup = start(&(struct supervisor_spec){.strategy = DYNAMIC, .template = &doll_spec});
    EXPECT(start_dynamic_raw(sup, "ab", 3, 4) == ERR_INVALID); /* a byte too few */
    EXPECT(start_dynamic_raw(sup, "", 1, 1) == ERR_INVALID);   /* no name is empty */
    EXPECT(start_dynamic_raw(sup, "ab", 2, 2) == ERR_INVALID);
    EXPECT(start_dynamic_raw(sup, "a\0b", 4, 4) == ERR_INVALID);
    EXPECT(start_dynamic_raw(sup, long_name, sizeof long_name, sizeof long_name) == ERR_INVALID);
    EXPECT(supervisor_count_children(sup, &counts, DEADLINE_NONE) == OK && counts.workers == 0);
    EXPECT(start_dynamic_raw(sup, "ab", 3, 3) == OK && actor_whereis("ab"));
    end(sup);
}

static void test_requests(void)
{
    node_sim(requests_body);
}

TEST_LIST
= {{"answers that are none", test_lies},
   {"arguments that are none", test_arguments},
   {"a refusal whose reason nobody wants to know", test_unwanted},
   {"requests that are none", test_requests},
   {NULL, NULL}};
