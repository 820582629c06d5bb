/* The index of names against a list: any bytes as names, any order of registrations. */
#include <errno.h>
#include "runtime/assert.h"
#include "runtime/names.h"
#include "tests/fuzz/bytes.h"

enum { NAMES_HERE = 24, PIDS = 6 };

static struct {
    char name[NAME_BYTES_MAX];
    size_t length;
    uint64_t pid;
} model[NAMES_HERE];
static size_t model_count;

static size_t model_find(const char *name, size_t length)
{
    size_t i = 0;
    while (i < model_count && (model[i].length != length || memcmp(model[i].name, name, length) != 0))
        i++;
    return i;
}

static void model_drop(size_t i)
{
    model[i] = model[--model_count];
}

static void try_register(struct names *names, const char *name, size_t length, uint64_t pid)
{
    uint64_t holder = 0;
    size_t i = model_find(name, length);
    int e = names_register(names, name, length, pid, &holder);
    if (!length || length > NAME_BYTES_MAX || memchr(name, 0, length) || !pid) {
        ASSERT(e == -EINVAL);
    } else if (i < model_count) {
        ASSERT(e == -EEXIST && holder == model[i].pid);
    } else if (model_count == NAMES_HERE) {
        ASSERT(e == -ENOSPC);
    } else {
        ASSERT(e == 0);
        memcpy(model[i].name, name, length);
        model[i].length = length;
        model[i].pid = pid;
        model_count++;
    }
}

static void try_unregister_all(struct names *names, uint64_t pid)
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
    ASSERT(names_unregister_all(names, pid) == count);
}

struct shown {
    const char *prefix;
    size_t prefix_length, count;
};

static bool visit(void *context, const char *name, size_t length, uint64_t pid)
{
    struct shown *shown = context;
    size_t i = model_find(name, length);
    ASSERT(i < model_count && model[i].pid == pid && name[length] == 0);
    ASSERT(length >= shown->prefix_length && memcmp(name, shown->prefix, shown->prefix_length) == 0);
    shown->count++;
    return true;
}

static void try_each(struct names *names, const char *prefix, size_t length)
{
    struct shown shown = {prefix, length, 0};
    size_t count = 0;
    for (size_t i = 0; i < model_count; i++)
        count += model[i].length >= length && (!length || memcmp(model[i].name, prefix, length) == 0);
    names_each(names, prefix, length, visit, &shown);
    ASSERT(shown.count == count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes input = {data, size};
    struct names *names = names_create(NAMES_HERE);
    ASSERT(names);
    model_count = 0;
    while (input.left) {
        uint8_t op = take(&input);
        uint64_t pid = take(&input) % PIDS;
        const char *name;
        size_t length = take_piece(&input, op >> 4 == 15 ? take(&input) : op >> 4, &name);
        size_t i = model_find(name, length);
        switch (op % 8) {
        case 0:
        case 1:
        case 2:
            try_register(names, name, length, pid);
            break;
        case 3: {
            bool held = i < model_count && model[i].pid == pid;
            ASSERT(names_unregister(names, name, length, pid) == held);
            if (held)
                model_drop(i);
            break;
        }
        case 4:
            if (pid)
                try_unregister_all(names, pid);
            break;
        case 5:
            try_each(names, name, length);
            break;
        default: {
            uint64_t holder = i < model_count ? model[i].pid : 0;
            struct name_key key = names_key(names, name, length);
            ASSERT(names_lookup(names, name, length) == holder && names_lookup_key(names, &key) == holder);
        }
        }
        ASSERT(names_count(names) == model_count);
    }
    names_destroy(names);
    return 0;
}
