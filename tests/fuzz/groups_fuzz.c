/* Groups against a list of memberships in the order of joining: any bytes as names, any order of calls. */
#include <errno.h>
#include "runtime/assert.h"
#include "runtime/groups.h"
#include "tests/fuzz/bytes.h"

enum { GROUPS_HERE = 6, MEMBERSHIPS_HERE = 24, PIDS = 6 };

static struct {
    char name[GROUP_BYTES_MAX];
    size_t length;
    uint64_t pid;
} model[MEMBERSHIPS_HERE];
static size_t model_count;

static bool of_group(size_t i, const char *name, size_t length)
{
    return model[i].length == length && memcmp(model[i].name, name, length) == 0;
}

static size_t members_of(const char *name, size_t length, uint64_t *pids)
{
    size_t count = 0;
    for (size_t i = 0; i < model_count; i++)
        if (of_group(i, name, length))
            pids[count++] = model[i].pid;
    return count;
}

static size_t groups_in_model(void)
{
    size_t count = 0;
    for (size_t i = 0, k; i < model_count; i++) {
        for (k = 0; k < i && !of_group(k, model[i].name, model[i].length);)
            k++;
        count += k == i;
    }
    return count;
}

static void model_drop(size_t i)
{
    memmove(&model[i], &model[i + 1], (--model_count - i) * sizeof model[0]);
}

static void try_join(struct groups *groups, const char *name, size_t length, uint64_t pid)
{
    uint64_t pids[MEMBERSHIPS_HERE];
    int e = groups_join(groups, name, length, pid);
    if (!length || length > GROUP_BYTES_MAX || memchr(name, 0, length) || !pid) {
        ASSERT(e == -EINVAL);
    } else if (model_count == MEMBERSHIPS_HERE ||
               (!members_of(name, length, pids) && groups_in_model() == GROUPS_HERE)) {
        ASSERT(e == -ENOSPC);
    } else {
        ASSERT(e == 0);
        memcpy(model[model_count].name, name, length);
        model[model_count].length = length;
        model[model_count++].pid = pid;
    }
}

static void try_leave(struct groups *groups, const char *name, size_t length, uint64_t pid)
{
    size_t last = MEMBERSHIPS_HERE;
    for (size_t i = 0; i < model_count; i++)
        if (of_group(i, name, length) && model[i].pid == pid)
            last = i;
    int e = groups_leave(groups, name, length, pid);
    if (last < MEMBERSHIPS_HERE) {
        ASSERT(e == 0);
        model_drop(last);
    } else {
        ASSERT(e == -ENOENT || e == -EINVAL);
    }
}

static void try_leave_all(struct groups *groups, uint64_t pid)
{
    size_t count = 0;
    for (size_t i = 0; i < model_count;) {
        if (model[i].pid != pid) {
            i++;
            continue;
        }
        model_drop(i);
        count++;
    }
    ASSERT(groups_leave_all(groups, pid) == count);
}

static void try_members(struct groups *groups, const char *name, size_t length, size_t capacity,
                        uint8_t scheduler)
{
    uint64_t expected[MEMBERSHIPS_HERE], pids[MEMBERSHIPS_HERE] = {0};
    size_t count = members_of(name, length, expected), local = 0;
    capacity %= MEMBERSHIPS_HERE + 1;
    ASSERT(groups_members(groups, name, length, pids, capacity) == count);
    ASSERT(memcmp(pids, expected, (count < capacity ? count : capacity) * sizeof *pids) == 0);
    for (size_t i = 0; i < count; i++)
        if (expected[i] >> 56 == scheduler)
            expected[local++] = expected[i];
    ASSERT(groups_local_members(groups, name, length, scheduler, pids, capacity) == local);
    ASSERT(memcmp(pids, expected, (local < capacity ? local : capacity) * sizeof *pids) == 0);
}

static bool visit(void *context, const char *name, size_t length, size_t member_count)
{
    uint64_t pids[MEMBERSHIPS_HERE];
    ASSERT(members_of(name, length, pids) == member_count && member_count > 0 && name[length] == 0);
    ++*(size_t *)context;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes input = {data, size};
    struct groups *groups = groups_create(GROUPS_HERE, MEMBERSHIPS_HERE);
    ASSERT(groups);
    model_count = 0;
    while (input.left) {
        uint8_t op = take(&input);
        uint8_t who = take(&input);
        uint64_t pid = who % PIDS ? (uint64_t)(who % 2) << 56 | who % PIDS : 0;
        const char *name;
        size_t length = take_piece(&input, op >> 4 == 15 ? take(&input) : op >> 4, &name), shown = 0;
        switch (op % 8) {
        case 0:
        case 1:
        case 2:
            try_join(groups, name, length, pid);
            break;
        case 3:
        case 4:
            try_leave(groups, name, length, pid);
            break;
        case 5:
            if (pid)
                try_leave_all(groups, pid);
            break;
        case 6:
            groups_each(groups, visit, &shown);
            ASSERT(shown == groups_in_model());
            break;
        default:
            try_members(groups, name, length, who, who % 2);
        }
        ASSERT(groups_membership_count(groups) == model_count && groups_count(groups) == groups_in_model());
    }
    groups_destroy(groups);
    return 0;
}
