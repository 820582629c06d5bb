#include "runtime/groups.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "acutest.h"

#define PID(scheduler, number) ((uint64_t)(scheduler) << 56 | (number))

static int join(struct groups *groups, const char *name, uint64_t pid)
{
    return groups_join(groups, name, strlen(name), pid);
}

static int leave(struct groups *groups, const char *name, uint64_t pid)
{
    return groups_leave(groups, name, strlen(name), pid);
}

static size_t size(struct groups *groups, const char *name)
{
    return groups_members(groups, name, strlen(name), NULL, 0);
}

/* The members as text, "1 2 3". */
static const char *members(struct groups *groups, const char *name)
{
    static char text[256];
    uint64_t pids[16];
    size_t count = groups_members(groups, name, strlen(name), pids, 16);
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; i < count && i < 16; i++) {
        int length =
            snprintf(text + used, sizeof(text) - used, "%s%llu", i ? " " : "", (unsigned long long)pids[i]);
        used += (size_t)length;
    }
    return text;
}

static void test_members_in_join_order(void)
{
    struct groups *groups = groups_create(10, 100);
    TEST_CHECK(size(groups, "room") == 0);
    TEST_CHECK(join(groups, "room", 3) == 0);
    TEST_CHECK(join(groups, "room", 1) == 0);
    TEST_CHECK(join(groups, "other", 9) == 0);
    TEST_CHECK(join(groups, "room", 2) == 0);
    TEST_CHECK(strcmp(members(groups, "room"), "3 1 2") == 0);
    TEST_CHECK(leave(groups, "room", 1) == 0);
    TEST_CHECK(join(groups, "room", 1) == 0);
    TEST_CHECK(strcmp(members(groups, "room"), "3 2 1") == 0);
    TEST_CHECK(strcmp(members(groups, "other"), "9") == 0);
    groups_destroy(groups);
}

static void test_join_counts_like_pg(void)
{
    struct groups *groups = groups_create(10, 100);
    join(groups, "room", 1);
    join(groups, "room", 2);
    join(groups, "room", 1);
    TEST_CHECK(strcmp(members(groups, "room"), "1 2 1") == 0);
    TEST_CHECK(leave(groups, "room", 1) == 0); /* the newest goes first */
    TEST_CHECK(strcmp(members(groups, "room"), "1 2") == 0);
    TEST_CHECK(leave(groups, "room", 1) == 0);
    TEST_CHECK(leave(groups, "room", 1) == -ENOENT);
    TEST_CHECK(strcmp(members(groups, "room"), "2") == 0);
    TEST_CHECK(leave(groups, "nobody", 1) == -ENOENT);
    groups_destroy(groups);
}

static void test_a_group_lives_as_long_as_a_member(void)
{
    struct groups *groups = groups_create(1, 10);
    TEST_CHECK(groups_count(groups) == 0);
    join(groups, "a", 1);
    join(groups, "a", 2);
    TEST_CHECK(groups_count(groups) == 1);
    TEST_CHECK(join(groups, "b", 1) == -ENOSPC);
    leave(groups, "a", 1);
    TEST_CHECK(join(groups, "b", 1) == -ENOSPC);
    leave(groups, "a", 2);
    TEST_CHECK(groups_count(groups) == 0);
    TEST_CHECK(join(groups, "b", 1) == 0); /* the only place is free again */
    TEST_CHECK(size(groups, "a") == 0);
    groups_destroy(groups);
}

static void test_local_members(void)
{
    struct groups *groups = groups_create(10, 100);
    for (uint64_t i = 0; i < 20; i++) {
        join(groups, "room", PID(i % 3 == 2 ? 255 : i % 3, i + 1));
    }
    uint64_t pids[20];
    TEST_CHECK(groups_local_members(groups, "room", 4, 0, pids, 20) == 7);
    TEST_CHECK(pids[0] == PID(0, 1));
    TEST_CHECK(pids[6] == PID(0, 19));
    TEST_CHECK(groups_local_members(groups, "room", 4, 255, pids, 20) == 6);
    TEST_CHECK(pids[5] == PID(255, 18));
    TEST_CHECK(groups_local_members(groups, "room", 4, 7, pids, 20) == 0);
    TEST_CHECK(groups_local_members(groups, "none", 4, 0, pids, 20) == 0);
    groups_destroy(groups);
}

static void test_copy_keeps_to_the_capacity(void)
{
    struct groups *groups = groups_create(10, 100);
    for (uint64_t i = 1; i <= 10; i++) {
        join(groups, "room", i);
    }
    uint64_t pids[5] = {0};
    TEST_CHECK(groups_members(groups, "room", 4, pids, 4) == 10);
    TEST_CHECK(pids[3] == 4);
    TEST_CHECK(pids[4] == 0);
    TEST_CHECK(groups_local_members(groups, "room", 4, 0, pids, 4) == 10);
    TEST_CHECK(pids[4] == 0);
    groups_destroy(groups);
}

static void test_leave_all_ends_every_membership(void)
{
    struct groups *groups = groups_create(1000, 3000);
    char name[16];
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof(name), "group:%d", i);
        join(groups, name, 1);
        join(groups, name, 2);
        if (i % 5 == 0) {
            join(groups, name, 1);
        }
    }
    join(groups, "mine alone", 1);
    TEST_CHECK(groups_membership_count(groups) == 1101);
    TEST_CHECK(groups_leave_all(groups, 1) == 601);
    TEST_CHECK(groups_leave_all(groups, 1) == 0);
    TEST_CHECK(groups_leave_all(groups, 0) == 0);
    TEST_CHECK(groups_membership_count(groups) == 500);
    TEST_CHECK(groups_count(groups) == 500);
    TEST_CHECK(strcmp(members(groups, "group:499"), "2") == 0);
    TEST_CHECK(groups_leave_all(groups, 2) == 500);
    TEST_CHECK(groups_count(groups) == 0);
    groups_destroy(groups);
}

static void test_limits_and_bad_names(void)
{
    TEST_CHECK(groups_create(0, 1) == NULL);
    TEST_CHECK(groups_create(1, 0) == NULL);
    TEST_CHECK(groups_create((size_t)GROUPS_COUNT_MAX + 1, 1) == NULL);
    TEST_CHECK(groups_create(1, (size_t)GROUPS_MEMBERSHIP_MAX + 1) == NULL);
    groups_destroy(NULL);

    struct groups *groups = groups_create(2, 3);
    char longest[GROUP_BYTES_MAX + 1];
    memset(longest, 'x', sizeof(longest));
    TEST_CHECK(groups_join(groups, longest, GROUP_BYTES_MAX, 1) == 0);
    TEST_CHECK(groups_join(groups, longest, GROUP_BYTES_MAX + 1, 1) == -EINVAL);
    TEST_CHECK(groups_join(groups, "", 0, 1) == -EINVAL);
    TEST_CHECK(groups_join(groups, "a\0b", 3, 1) == -EINVAL);
    TEST_CHECK(groups_join(groups, "a", 1, 0) == -EINVAL);
    TEST_CHECK(groups_leave(groups, "", 0, 1) == -ENOENT);
    TEST_CHECK(groups_leave(groups, longest, GROUP_BYTES_MAX + 1, 1) == -ENOENT);
    TEST_CHECK(groups_members(groups, longest, GROUP_BYTES_MAX, NULL, 0) == 1);
    TEST_CHECK(groups_members(groups, longest, GROUP_BYTES_MAX + 1, NULL, 0) == 0);

    TEST_CHECK(join(groups, "b", 1) == 0);
    TEST_CHECK(join(groups, "c", 1) == -ENOSPC); /* groups */
    TEST_CHECK(join(groups, "b", 2) == 0);
    TEST_CHECK(join(groups, "b", 3) == -ENOSPC); /* memberships */
    TEST_CHECK(strcmp(members(groups, "b"), "1 2") == 0);
    TEST_CHECK(groups_count(groups) == 2);
    /* A new group for which there is no membership must not stay behind. */
    groups_leave_all(groups, 1);
    TEST_CHECK(groups_count(groups) == 1);
    join(groups, "b", 4);
    join(groups, "b", 5);
    TEST_CHECK(join(groups, "d", 1) == -ENOSPC);
    TEST_CHECK(groups_count(groups) == 1);
    groups_destroy(groups);
}

struct shown {
    char text[256];
    int stop_after;
};

static bool show(void *context, const char *name, size_t length, size_t member_count)
{
    struct shown *shown = context;
    size_t used = strlen(shown->text);
    TEST_CHECK(strlen(name) == length);
    snprintf(shown->text + used, sizeof(shown->text) - used, "%s=%zu ", name, member_count);
    return --shown->stop_after != 0;
}

static void test_each_shows_groups_with_members(void)
{
    struct groups *groups = groups_create(10, 100);
    struct shown all = {.stop_after = -1}, two = {.stop_after = 2}, none = {.stop_after = -1};
    groups_each(groups, show, &none);
    TEST_CHECK(none.text[0] == 0);
    join(groups, "c", 1);
    join(groups, "a", 1);
    join(groups, "gone", 1);
    join(groups, "b", 1);
    join(groups, "a", 2);
    leave(groups, "gone", 1);
    groups_each(groups, show, &all);
    TEST_CHECK(strcmp(all.text, "c=1 a=2 b=1 ") == 0);
    groups_each(groups, show, &two);
    TEST_CHECK(strcmp(two.text, "c=1 a=2 ") == 0);
    groups_destroy(groups);
}

/* Against an array of (group, pid) in the order of joining. */
static struct {
    int group;
    uint64_t pid;
} model[2000];
static size_t model_count;

static void model_remove(size_t at)
{
    memmove(&model[at], &model[at + 1], (model_count - at - 1) * sizeof(model[0]));
    model_count--;
}

static bool model_leave(int group, uint64_t pid)
{
    for (size_t i = model_count; i-- > 0;) {
        if (model[i].group == group && model[i].pid == pid) {
            model_remove(i);
            return true;
        }
    }
    return false;
}

static size_t model_leave_all(uint64_t pid)
{
    size_t before = model_count;
    for (size_t i = model_count; i-- > 0;) {
        if (model[i].pid == pid) {
            model_remove(i);
        }
    }
    return before - model_count;
}

static bool model_agrees(struct groups *groups, int group, const char *name)
{
    uint64_t pids[2000];
    size_t count = groups_members(groups, name, strlen(name), pids, 2000), at = 0;
    for (size_t i = 0; i < model_count; i++) {
        if (model[i].group == group && (at == count || pids[at++] != model[i].pid)) {
            return false;
        }
    }
    return at == count;
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void test_random_against_a_model(void)
{
    struct groups *groups = groups_create(40, 2000);
    uint64_t state = 7;
    for (int step = 0; step < 60000; step++) {
        int group = (int)(next_random(&state) % 40);
        uint64_t pid = 1 + next_random(&state) % 50, what = next_random(&state) % 100;
        char name[16];
        snprintf(name, sizeof(name), "g%d", group);
        if (what < 55) {
            int error = join(groups, name, pid);
            TEST_CHECK(error == (model_count == 2000 ? -ENOSPC : 0));
            if (error == 0) {
                model[model_count].group = group;
                model[model_count++].pid = pid;
            }
        } else if (what < 98) {
            TEST_CHECK(leave(groups, name, pid) == (model_leave(group, pid) ? 0 : -ENOENT));
        } else {
            TEST_CHECK(groups_leave_all(groups, pid) == model_leave_all(pid));
        }
        TEST_CHECK(model_agrees(groups, group, name));
    }
    TEST_CHECK(groups_membership_count(groups) == model_count);
    groups_destroy(groups);
}

/* Each thread moves its own pids through shared groups; a snapshot never shows more of one pid than it
 * joined. */
enum { THREADS = 4, ROUNDS = 20000 };

struct worker {
    struct groups *groups;
    uint64_t number;
    unsigned errors;
};

static void *work(void *argument)
{
    struct worker *w = argument;
    uint64_t state = w->number;
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t pid = PID(w->number, round + 1), pids[64];
        const char *name = next_random(&state) % 2 ? "red" : "blue";
        w->errors += join(w->groups, name, pid) != 0;
        w->errors += join(w->groups, name, pid) != 0;
        w->errors += groups_local_members(w->groups, name, strlen(name), (uint8_t)w->number, pids, 64) != 2;
        w->errors += pids[0] != pid || pids[1] != pid;
        w->errors += groups_members(w->groups, name, strlen(name), pids, 64) > 2 * THREADS;
        if (round % 2) {
            w->errors += groups_leave_all(w->groups, pid) != 2;
        } else {
            w->errors += leave(w->groups, name, pid) != 0;
            w->errors += leave(w->groups, name, pid) != 0;
            w->errors += leave(w->groups, name, pid) != -ENOENT;
        }
    }
    return NULL;
}

static void test_threads(void)
{
    struct groups *groups = groups_create(2, 2 * THREADS);
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.groups = groups, .number = i + 1};
        TEST_ASSERT(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        TEST_ASSERT(pthread_join(threads[i], NULL) == 0);
        TEST_CHECK(workers[i].errors == 0);
    }
    TEST_CHECK(groups_count(groups) == 0);
    TEST_CHECK(groups_membership_count(groups) == 0);
    groups_destroy(groups);
}

TEST_LIST
= {
    {"members stand in the order of joining", test_members_in_join_order},
    {"a pid leaves as often as it joined", test_join_counts_like_pg},
    {"a group lives as long as a member", test_a_group_lives_as_long_as_a_member},
    {"local members are those of one scheduler", test_local_members},
    {"copies keep to the capacity", test_copy_keeps_to_the_capacity},
    {"leave_all ends every membership", test_leave_all_ends_every_membership},
    {"limits and bad names are refused", test_limits_and_bad_names},
    {"each shows the groups with members", test_each_shows_groups_with_members},
    {"random calls against a model", test_random_against_a_model},
    {"threads", test_threads},
    {NULL, NULL},
};
