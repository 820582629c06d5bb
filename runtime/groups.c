/* Two arrays, groups and memberships, numbered from 1 and reused. Each group's memberships are a list in the
 * order of joining. Two indexes lead in: name to group, and pid to its memberships, the newest first. All of
 * it under one mutex.
 */
#include "runtime/groups.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/assert.h"
#include "runtime/chains.h"
#include "runtime/hash.h"

#define BATCH_COUNT 64 /* memberships ended, or groups looked at, under one lock */

struct group {
    uint32_t first; /* membership; of a free group, the next free one */
    uint32_t last;
    uint32_t member_count; /* 0: free */
    uint32_t length;
    char name[GROUP_BYTES_MAX];
};

struct membership {
    uint64_t pid; /* 0: free */
    uint32_t group;
    uint32_t next; /* in the group; of a free membership, the next free one */
    uint32_t previous;
};

/* The ids of one array: those given back come first, then those never used. */
struct id_stock {
    uint32_t free; /* 0: none given back */
    uint32_t last; /* ids above it have never been used */
    uint32_t max;
    uint32_t in_use;
};

struct groups {
    pthread_mutex_t mutex;
    struct group *group;           /* by id */
    struct membership *membership; /* by id */
    struct id_stock group_ids;
    struct id_stock membership_ids;
    struct chains by_name; /* group ids */
    struct chains by_pid;  /* membership ids */
    struct hash_key key;
    size_t mapped_bytes;
};

static void groups_lock(struct groups *groups)
{
    int error = pthread_mutex_lock(&groups->mutex);
    ASSERT(error == 0);
}

static void groups_unlock(struct groups *groups)
{
    int error = pthread_mutex_unlock(&groups->mutex);
    ASSERT(error == 0);
}

static bool name_is_valid(const char *name, size_t length)
{
    return length - 1 < GROUP_BYTES_MAX && !memchr(name, 0, length);
}

/* Groups */

static uint32_t group_find(const struct groups *groups, const char *name, size_t length, uint64_t hash)
{
    uint32_t id = chains_first(&groups->by_name, hash);
    for (; id; id = chains_next(&groups->by_name, id)) {
        const struct group *group = &groups->group[id];
        if (group->length == length && memcmp(group->name, name, length) == 0) {
            break;
        }
    }
    return id;
}

/* An unused group, not yet counted as long as it has no member; 0 when there is no room. */
static uint32_t group_add(struct groups *groups, const char *name, size_t length, uint64_t hash)
{
    struct id_stock *ids = &groups->group_ids;
    if (ids->in_use == ids->max) {
        return 0;
    }
    uint32_t id = ids->free;
    if (id) {
        ids->free = groups->group[id].first;
    } else {
        id = ++ids->last;
    }
    ids->in_use++;
    struct group *group = &groups->group[id];
    group->first = group->last = group->member_count = 0;
    group->length = (uint32_t)length;
    memcpy(group->name, name, length);
    chains_add(&groups->by_name, hash, id);
    return id;
}

static void group_remove(struct groups *groups, uint32_t id)
{
    struct group *group = &groups->group[id];
    ASSERT(group->first == 0);
    ASSERT(group->last == 0);
    chains_remove(&groups->by_name, id);
    group->first = groups->group_ids.free;
    groups->group_ids.free = id;
    groups->group_ids.in_use--;
}

/* Memberships */

static void membership_add(struct groups *groups, uint32_t group_id, uint64_t pid)
{
    struct id_stock *ids = &groups->membership_ids;
    struct group *group = &groups->group[group_id];
    uint32_t id = ids->free;
    if (id) {
        ids->free = groups->membership[id].next;
    } else {
        ASSERT(ids->last < ids->max);
        id = ++ids->last;
    }
    ids->in_use++;
    groups->membership[id] = (struct membership){.pid = pid, .group = group_id, .previous = group->last};
    *(group->last ? &groups->membership[group->last].next : &group->first) = id;
    group->last = id;
    group->member_count++;
    chains_add(&groups->by_pid, hash_number(&groups->key, pid), id);
}

static void membership_remove(struct groups *groups, uint32_t id)
{
    struct membership *membership = &groups->membership[id];
    struct group *group = &groups->group[membership->group];
    *(membership->previous ? &groups->membership[membership->previous].next : &group->first) =
        membership->next;
    *(membership->next ? &groups->membership[membership->next].previous : &group->last) =
        membership->previous;
    chains_remove(&groups->by_pid, id);
    if (--group->member_count == 0) {
        group_remove(groups, membership->group);
    }
    *membership = (struct membership){.next = groups->membership_ids.free};
    groups->membership_ids.free = id;
    groups->membership_ids.in_use--;
}

/* The newest membership of pid, in that group or (group 0) in any; 0 when there is none. */
static uint32_t membership_find(const struct groups *groups, uint64_t pid, uint32_t group)
{
    uint32_t id = chains_first(&groups->by_pid, hash_number(&groups->key, pid));
    for (; id; id = chains_next(&groups->by_pid, id)) {
        const struct membership *membership = &groups->membership[id];
        if (membership->pid == pid && (group == 0 || membership->group == group)) {
            break;
        }
    }
    return id;
}

/* Joining and leaving */

static int join_locked(struct groups *groups, const char *name, size_t length, uint64_t hash, uint64_t pid)
{
    if (groups->membership_ids.in_use == groups->membership_ids.max) {
        return -ENOSPC;
    }
    uint32_t group = group_find(groups, name, length, hash);
    if (group == 0) {
        group = group_add(groups, name, length, hash);
    }
    if (group == 0) {
        return -ENOSPC;
    }
    membership_add(groups, group, pid);
    return 0;
}

int groups_join(struct groups *groups, const char *name, size_t length, uint64_t pid)
{
    if (!name_is_valid(name, length) || pid == 0) {
        return -EINVAL;
    }
    uint64_t hash = hash_bytes(&groups->key, name, length);
    groups_lock(groups);
    int error = join_locked(groups, name, length, hash, pid);
    groups_unlock(groups);
    return error;
}

int groups_leave(struct groups *groups, const char *name, size_t length, uint64_t pid)
{
    if (!name_is_valid(name, length) || pid == 0) {
        return -ENOENT;
    }
    uint64_t hash = hash_bytes(&groups->key, name, length);
    groups_lock(groups);
    uint32_t group = group_find(groups, name, length, hash);
    uint32_t membership = group ? membership_find(groups, pid, group) : 0;
    if (membership) {
        membership_remove(groups, membership);
    }
    groups_unlock(groups);
    return membership ? 0 : -ENOENT;
}

size_t groups_leave_all(struct groups *groups, uint64_t pid)
{
    size_t count = 0;
    uint32_t membership = 1;
    while (membership && pid != 0) {
        groups_lock(groups);
        for (int i = 0; i < BATCH_COUNT && (membership = membership_find(groups, pid, 0)); i++) {
            membership_remove(groups, membership);
            count++;
        }
        groups_unlock(groups);
    }
    return count;
}

/* Looking */

static size_t members_locked(const struct groups *groups, uint32_t group, uint64_t *pids, size_t capacity)
{
    uint32_t id = groups->group[group].first;
    for (size_t count = 0; id && count < capacity; id = groups->membership[id].next) {
        pids[count++] = groups->membership[id].pid;
    }
    return groups->group[group].member_count;
}

static size_t local_members_locked(const struct groups *groups, uint32_t group, uint8_t scheduler,
                                   uint64_t *pids, size_t capacity)
{
    size_t count = 0;
    for (uint32_t id = groups->group[group].first; id; id = groups->membership[id].next) {
        uint64_t pid = groups->membership[id].pid;
        if (pid >> 56 != scheduler) {
            continue;
        }
        if (count < capacity) {
            pids[count] = pid;
        }
        count++;
    }
    return count;
}

size_t groups_members(struct groups *groups, const char *name, size_t length, uint64_t *pids, size_t capacity)
{
    uint64_t hash = hash_bytes(&groups->key, name, length);
    groups_lock(groups);
    uint32_t group = group_find(groups, name, length, hash);
    size_t count = group ? members_locked(groups, group, pids, capacity) : 0;
    groups_unlock(groups);
    return count;
}

size_t groups_local_members(struct groups *groups, const char *name, size_t length, uint8_t scheduler,
                            uint64_t *pids, size_t capacity)
{
    uint64_t hash = hash_bytes(&groups->key, name, length);
    groups_lock(groups);
    uint32_t group = group_find(groups, name, length, hash);
    size_t count = group ? local_members_locked(groups, group, scheduler, pids, capacity) : 0;
    groups_unlock(groups);
    return count;
}

size_t groups_count(struct groups *groups)
{
    groups_lock(groups);
    size_t count = groups->group_ids.in_use;
    groups_unlock(groups);
    return count;
}

size_t groups_membership_count(struct groups *groups)
{
    groups_lock(groups);
    size_t count = groups->membership_ids.in_use;
    groups_unlock(groups);
    return count;
}

/* The next group with members from this id on, copied; its id, or 0 when the batch or the groups are at an
 * end. *io_id is where to go on. */
static bool group_next(struct groups *groups, uint32_t *io_id, struct group *ret_group)
{
    bool found = false;
    bool more = true;
    while (more && !found) {
        groups_lock(groups);
        for (int i = 0; i < BATCH_COUNT && !found; i++) {
            more = *io_id <= groups->group_ids.last;
            if (!more) {
                break;
            }
            found = groups->group[*io_id].member_count > 0;
            if (found) {
                *ret_group = groups->group[*io_id];
            }
            ++*io_id;
        }
        groups_unlock(groups);
    }
    return found;
}

void groups_each(struct groups *groups, groups_visit *visit, void *context)
{
    struct group group;
    char name[GROUP_BYTES_MAX + 1];
    for (uint32_t id = 1; group_next(groups, &id, &group);) {
        memcpy(name, group.name, group.length);
        name[group.length] = 0;
        if (!visit(context, name, group.length, group.member_count)) {
            return;
        }
    }
}

/* Life */

static size_t page_round(size_t bytes)
{
    return (bytes + 4095) & ~(size_t)4095;
}

struct groups *groups_create(size_t group_count_max, size_t membership_count_max)
{
    if (group_count_max - 1 >= GROUPS_COUNT_MAX || membership_count_max - 1 >= GROUPS_MEMBERSHIP_MAX) {
        return NULL;
    }
    size_t head_bytes = page_round(sizeof(struct groups));
    size_t group_bytes = page_round((group_count_max + 1) * sizeof(struct group));
    size_t membership_bytes = page_round((membership_count_max + 1) * sizeof(struct membership));
    size_t by_name_bytes = page_round(chains_bytes((uint32_t)group_count_max));
    size_t by_pid_bytes = page_round(chains_bytes((uint32_t)membership_count_max));
    size_t mapped_bytes = head_bytes + group_bytes + membership_bytes + by_name_bytes + by_pid_bytes;

    void *base =
        mmap(NULL, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        return NULL;
    }
    /* Memory in proportion to what is in it. Where the kernel has no huge pages, this fails. */
    (void)madvise(base, mapped_bytes, MADV_NOHUGEPAGE);
    unsigned char *at = base;
    struct groups *groups = base;
    groups->group = (void *)(at += head_bytes);
    groups->membership = (void *)(at += group_bytes);
    chains_init(&groups->by_name, at += membership_bytes, (uint32_t)group_count_max);
    chains_init(&groups->by_pid, at += by_name_bytes, (uint32_t)membership_count_max);
    groups->group_ids.max = (uint32_t)group_count_max;
    groups->membership_ids.max = (uint32_t)membership_count_max;
    groups->key = (struct hash_key){.k0 = 0x243f6a8885a308d3u, .k1 = 0x13198a2e03707344u};
    groups->mapped_bytes = mapped_bytes;
    int error = pthread_mutex_init(&groups->mutex, NULL);
    ASSERT(error == 0);
    return groups;
}

void groups_destroy(struct groups *groups)
{
    if (!groups) {
        return;
    }
    int error = pthread_mutex_destroy(&groups->mutex);
    ASSERT(error == 0);
    error = munmap(groups, groups->mapped_bytes);
    ASSERT(error == 0);
}
