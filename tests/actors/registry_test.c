#include "acutest.h"

#include <stdio.h>
#include <string.h>

#include "actors/registry.h"
#include "tests/support/inside.h"

static enum actor_step idle_handle(void *state, struct message *m)
{
    (void)state;
    (void)m;
    return ACTOR_CONTINUE;
}

static const struct actor_class idle_class = {.name = "idle", .handle = idle_handle};

static actor_pid start_named(const char *name)
{
    struct start_result r;
    struct spawn_options o = {.class = &idle_class, .name = name};
    TEST_ASSERT(actor_start(&o, &r, DEADLINE_NONE) == OK);
    return r.pid;
}

static actor_pid start_registry(const char *prefix)
{
    struct start_result r;
    struct registry_args args = {0};
    snprintf(args.prefix, sizeof(args.prefix), "%s", prefix);
    struct spawn_options o = {
        .class = &registry_class, .name = "registry", .args = &args, .args_size = sizeof(args)};
    TEST_ASSERT(actor_start(&o, &r, DEADLINE_NONE) == OK);
    return r.pid;
}

static uint64_t count(void)
{
    uint64_t n = 0;
    TEST_CHECK(registry_count("registry", &n, DEADLINE_NONE) == OK);
    return n;
}

INSIDE(test_counts_the_living)
{
    start_registry("room:");
    TEST_CHECK(count() == 0);
    actor_pid a = start_named("room:a");
    start_named("room:b");
    start_named("roommate");
    start_named("agent:a");
    start_named("room:"); /* no id */
    TEST_CHECK(count() == 2);
    actor_kill(a);
    inside_settle();
    TEST_CHECK(count() == 1);
    start_named("room:a");
    TEST_CHECK(count() == 2);
}

INSIDE(test_leaves_out_parts_of_a_subtree)
{
    start_registry("instance:");
    start_named("instance:7");
    start_named("instance:7/server");
    start_named("instance:7/poller");
    TEST_CHECK(count() == 1);
}

/* 25 names, registered in an order that isn't theirs, read in pages of 10. */
INSIDE(test_lists_page_by_page_in_order)
{
    struct registry_entry page[10];
    char name[32], after[REGISTRY_ID_MAX] = "";
    size_t stored, seen = 0;
    actor_pid pids[25];
    start_registry("room:");
    for (unsigned i = 0; i < 25; i++) {
        snprintf(name, sizeof(name), "room:%02u", i * 7 % 25);
        pids[i * 7 % 25] = start_named(name);
    }
    do {
        TEST_ASSERT(registry_list("registry", after, page, 10, &stored, DEADLINE_NONE) == OK);
        for (size_t i = 0; i < stored; i++, seen++) {
            snprintf(name, sizeof(name), "%02zu", seen);
            TEST_CHECK(strcmp(page[i].id, name) == 0);
            TEST_CHECK(page[i].pid == pids[seen]);
        }
        if (stored)
            strcpy(after, page[stored - 1].id);
    } while (stored == 10);
    TEST_CHECK(seen == 25);
}

INSIDE(test_is_rebuilt_from_the_living)
{
    uint64_t n;
    actor_pid registry = start_registry("room:");
    start_named("room:a");
    actor_kill(registry);
    inside_settle();
    TEST_CHECK(registry_count("registry", &n, DEADLINE_NONE) == ERR_NOPROC);
    start_registry("room:");
    TEST_CHECK(count() == 1);
}

INSIDE(test_refuses_what_cannot_be_meant)
{
    static struct registry_entry page[REGISTRY_PAGE_MAX + 1];
    char longest[REGISTRY_ID_MAX + 1];
    size_t stored;
    struct start_result r;
    struct registry_args args = {.prefix = ""};
    struct spawn_options o = {.class = &registry_class, .args = &args, .args_size = sizeof(args)};
    TEST_CHECK(actor_start(&o, &r, DEADLINE_NONE) == ERR_INIT);
    reason_drop(&r.why);
    memset(args.prefix, 'x', sizeof(args.prefix)); /* no end */
    TEST_CHECK(actor_start(&o, &r, DEADLINE_NONE) == ERR_INIT);
    reason_drop(&r.why);
    start_registry("room:");
    TEST_CHECK(registry_list("registry", "", page, REGISTRY_PAGE_MAX + 1, &stored, DEADLINE_NONE) ==
               ERR_INVALID);
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = 0;
    TEST_CHECK(registry_list("registry", longest, page, 1, &stored, DEADLINE_NONE) == ERR_INVALID);
    TEST_CHECK(registry_list("registry", "", page, REGISTRY_PAGE_MAX, &stored, DEADLINE_NONE) == OK &&
               stored == 0);
    /* a call it doesn't know is answered by nobody, and the registry goes on */
    TEST_CHECK(actor_call_name("registry", message_new(99, 0), NULL, DEADLINE_NONE) == ERR_UNANSWERED);
    TEST_CHECK(count() == 0);
}

TEST_LIST
= {
    {"TOP-009..TOP-011 a registry counts the living", test_counts_the_living},
    {"a registry leaves out the parts of a subtree", test_leaves_out_parts_of_a_subtree},
    {"a registry lists page by page, in order", test_lists_page_by_page_in_order},
    {"a registry is rebuilt from the living", test_is_rebuilt_from_the_living},
    {"a registry refuses what cannot be meant", test_refuses_what_cannot_be_meant},
    {NULL, NULL},
};
