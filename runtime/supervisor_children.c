#include "runtime/supervisor_children.h"

#include <string.h>
#include "runtime/hash.h"

#define BUCKETS_FIRST 8u

/* Not secret: ids and pids are the program's own, and a chain is never longer than the children are many. */
static const struct hash_key map_key = {.k0 = 0x9ae16a3b2f90404fu, .k1 = 0xc949c7defebb5ac5u};

/* ---- pages ---- */

/* Room for element i, which follows the last one. */
static bool paged_grow(struct paged *p, uint32_t i, size_t size)
{
    if (i < PAGED_MANY) {
        char **page = &p->few[i / PAGED_FEW];
        return *page || (*page = actor_try_alloc(PAGED_FEW * size));
    }
    char ***middle = &p->many[i / (PAGED_MANY * PAGED_MANY)];
    if (!*middle) {
        char **pages = actor_try_alloc(PAGED_MANY * sizeof *pages);
        if (!pages)
            return false;
        memset(pages, 0, PAGED_MANY * sizeof *pages);
        *middle = pages;
    }
    char **page = &(*middle)[i / PAGED_MANY % PAGED_MANY];
    return *page || (*page = actor_try_alloc(PAGED_MANY * size));
}

/* ---- blocks ---- */

static size_t block_class(size_t size, size_t *ret_size)
{
    ASSERT(size > 0 && size <= CHILD_BLOCK_MAX);
    if (size <= (size_t)CHILD_BLOCK_STEP * CHILD_BLOCK_STEPS) {
        size_t steps = (size + CHILD_BLOCK_STEP - 1) / CHILD_BLOCK_STEP;
        *ret_size = steps * CHILD_BLOCK_STEP;
        return steps - 1;
    }
    size_t bits = 64 - (size_t)__builtin_clzll(size - 1); /* 513..1024: 10 */
    *ret_size = bits < 16 ? (size_t)1 << bits : CHILD_BLOCK_MAX;
    return CHILD_BLOCK_STEPS + bits - 10;
}

void *children_block(struct children *t, size_t size)
{
    size_t rounded;
    void **list = &t->blocks[block_class(size, &rounded)];
    void *block = *list;
    if (!block)
        return actor_try_alloc(rounded);
    memcpy(list, block, sizeof *list);
    return block;
}

void children_block_free(struct children *t, void *block, size_t size)
{
    size_t rounded;
    void **list = &t->blocks[block_class(size, &rounded)];
    memcpy(block, list, sizeof *list);
    *list = block;
}

bool child_keep_args(struct children *t, struct child *c, const void *args, size_t size)
{
    if (size == 0)
        return true;
    c->args = children_block(t, size);
    if (!c->args)
        return false;
    memcpy(c->args, args, size);
    c->args_size = (uint32_t)size;
    c->has_args = true;
    return true;
}

bool child_keep_name(struct children *t, struct child *c, const char *name)
{
    if (!name)
        return true;
    size_t size = strlen(name) + 1;
    c->name = children_block(t, size);
    if (c->name)
        memcpy(c->name, name, size);
    return c->name != NULL;
}

struct child_trouble *child_trouble(struct children *t, struct child *c)
{
    if (!c->trouble) {
        c->trouble = children_block(t, sizeof *c->trouble);
        if (c->trouble)
            *c->trouble = (struct child_trouble){0};
    }
    return c->trouble;
}

/* ---- records ---- */

bool children_init(struct children *t)
{
    *t = (struct children){.free = CHILD_NONE, .oldest = CHILD_NONE, .newest = CHILD_NONE};
    for (uint32_t i = 0; i < BUCKETS_FIRST; i++) {
        if (!paged_grow(&t->buckets, i, sizeof(uint32_t)))
            return false;
        *(uint32_t *)paged_at(&t->buckets, i, sizeof(uint32_t)) = CHILD_NONE;
    }
    t->buckets_count = BUCKETS_FIRST;
    t->buckets_mask = BUCKETS_FIRST - 1;
    return true;
}

static struct child *record_take(struct children *t)
{
    if (t->free != CHILD_NONE) {
        struct child *c = child_at(t, t->free);
        t->free = c->older;
        return c;
    }
    if (t->records_used >= SUPERVISOR_CHILDREN_MAX ||
        !paged_grow(&t->records, t->records_used, sizeof(struct child)))
        return NULL;
    struct child *c = child_at(t, t->records_used);
    c->index = t->records_used++;
    c->generation = 1;
    return c;
}

struct child *child_new(struct children *t, const struct child_plan *plan, bool own)
{
    struct child *c = record_take(t);
    if (!c)
        return NULL;
    *c = (struct child){.generation = c->generation,
                        .index = c->index,
                        .older = t->newest,
                        .newer = CHILD_NONE,
                        .plan = plan,
                        .has_plan = own,
                        .state = CHILD_STOPPED};
    if (t->newest != CHILD_NONE)
        child_at(t, t->newest)->newer = c->index;
    else
        t->oldest = c->index;
    t->newest = c->index;
    t->count++;
    t->version++;
    t->supervisors += plan->type == CHILD_SUPERVISOR;
    return c;
}

static size_t plan_size(const struct child_plan *p)
{
    return sizeof *p + p->id_size + p->name_size;
}

void child_free(struct children *t, struct child *c)
{
    child_become(t, c, CHILD_STOPPED);
    child_unhash(t, c);
    t->supervisors -= c->plan->type == CHILD_SUPERVISOR;
    if (c->has_plan)
        children_block_free(t, (void *)(uintptr_t)c->plan, plan_size(c->plan));
    if (c->has_args)
        children_block_free(t, c->args, c->args_size);
    if (c->name)
        children_block_free(t, c->name, strlen(c->name) + 1);
    if (c->trouble)
        children_block_free(t, c->trouble, sizeof *c->trouble);
    if (c->older != CHILD_NONE)
        child_at(t, c->older)->newer = c->newer;
    else
        t->oldest = c->newer;
    if (c->newer != CHILD_NONE)
        child_at(t, c->newer)->older = c->older;
    else
        t->newest = c->older;
    t->count--;
    t->version++;
    child_outdate(c);
    c->plan = NULL;
    c->older = t->free;
    t->free = c->index;
}

void child_become(struct children *t, struct child *c, enum child_state state)
{
    t->running = t->running - (c->state == CHILD_RUNNING) + (state == CHILD_RUNNING);
    if (c->plan->significant)
        t->significant_left = t->significant_left - (c->state != CHILD_STOPPED) + (state != CHILD_STOPPED);
    c->state = (uint8_t)state;
}

/* ---- the map ---- */

static uint32_t *bucket_at(const struct children *t, uint32_t i)
{
    return paged_at(&t->buckets, i, sizeof(uint32_t));
}

/* Buckets at and beyond the count don't exist yet: their children still live in the lower half. */
static uint32_t *bucket_of(const struct children *t, uint32_t hash)
{
    uint32_t i = hash & t->buckets_mask;
    return bucket_at(t, i < t->buckets_count ? i : i & t->buckets_mask >> 1);
}

/* One bucket more: half of the chain of the one that stood in for it moves over. Without memory chains get
 * longer. */
static void map_grow(struct children *t)
{
    uint32_t i = t->buckets_count;
    ASSERT(i < SUPERVISOR_CHILDREN_MAX); /* it grows when there are more children */
    if (!paged_grow(&t->buckets, i, sizeof(uint32_t)))
        return;
    if (i > t->buckets_mask)
        t->buckets_mask = t->buckets_mask << 1 | 1;
    uint32_t *link = bucket_at(t, i & t->buckets_mask >> 1);
    uint32_t *fresh = bucket_at(t, i);
    *fresh = CHILD_NONE;
    t->buckets_count++;
    while (*link != CHILD_NONE) {
        struct child *c = child_at(t, *link);
        if ((c->hash & t->buckets_mask) != i) {
            link = &c->hash_next;
            continue;
        }
        *link = c->hash_next;
        c->hash_next = *fresh;
        *fresh = c->index;
    }
}

static void map_add(struct children *t, struct child *c, uint32_t hash)
{
    ASSERT(!c->hashed);
    if (t->count > t->buckets_count)
        map_grow(t);
    uint32_t *bucket = bucket_of(t, hash);
    c->hash = hash;
    c->hash_next = *bucket;
    c->hashed = true;
    *bucket = c->index;
}

void child_unhash(struct children *t, struct child *c)
{
    if (!c->hashed)
        return;
    uint32_t *link = bucket_of(t, c->hash);
    while (*link != c->index)
        link = &child_at(t, *link)->hash_next;
    *link = c->hash_next;
    c->hashed = false;
}

static uint32_t hash_of_id(const char *id, size_t length)
{
    return (uint32_t)hash_bytes(&map_key, id, length);
}

static uint32_t hash_of_pid(actor_pid pid)
{
    return (uint32_t)hash_number(&map_key, pid);
}

void child_hash_id(struct children *t, struct child *c)
{
    map_add(t, c, hash_of_id(plan_id(c->plan), c->plan->id_size - 1u));
}

void child_hash_pid(struct children *t, struct child *c)
{
    map_add(t, c, hash_of_pid(c->pid));
}

struct child *child_of_id(const struct children *t, const char *id)
{
    size_t length = strlen(id);
    uint32_t hash = hash_of_id(id, length);
    for (uint32_t i = *bucket_of(t, hash); i != CHILD_NONE;) {
        struct child *c = child_at(t, i);
        if (c->hash == hash && c->plan->id_size == length + 1 && memcmp(c->plan->text, id, length) == 0)
            return c;
        i = c->hash_next;
    }
    return NULL;
}

struct child *child_of_pid(const struct children *t, actor_pid pid)
{
    for (uint32_t i = *bucket_of(t, hash_of_pid(pid)); i != CHILD_NONE;) {
        struct child *c = child_at(t, i);
        if (c->pid == pid)
            return c;
        i = c->hash_next;
    }
    return NULL;
}
