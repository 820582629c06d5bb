/* The children of one supervisor: records in start order, found by tag, by id or by pid in constant time.
 *
 * Private to the supervisor, which is the only one to call this: inside its actor, because the memory is its
 * arena's. Nothing here blocks. A record stays where it is until child_free; a tag (index and generation)
 * stays good until the incarnation it was made for is over, and is refused ever after, so a late EXIT, DOWN,
 * timer or retry finds nobody.
 *
 *     tag = generation << 32 | index        generation counts up whenever an incarnation ends
 *
 * Memory comes from the arena once and is recycled by free lists: records in pages of 32 (the first 512) and
 * 512, blocks for plans, arguments and texts by size class. The map is a linear hash whose chains run through
 * the records; it grows by one bucket at a time, so no start ever waits for a table to be copied.
 *
 * Limits: SUPERVISOR_CHILDREN_MAX records; a block of at most CHILD_BLOCK_MAX bytes.
 */
#ifndef COPPICE_RUNTIME_SUPERVISOR_CHILDREN_H
#define COPPICE_RUNTIME_SUPERVISOR_CHILDREN_H

#include "runtime/restart_window.h"
#include "runtime/supervisor.h"

#define CHILD_NONE      UINT32_MAX
#define CHILD_BLOCK_MAX 65472u /* an arena gives no more in one piece */
#define CHILD_TEXT_MAX  96u

/* The part of a spec that never changes; the strings follow it. One for each child, or one for all of a
 * template. */
struct child_plan {
    const struct actor_class *class;
    int64_t shutdown_ms; /* the default is filled in */
    int scheduler;
    uint8_t restart, type;
    bool significant;
    uint8_t id_size, name_size;        /* with their NULs; 0: none */
    struct backoff_spec backoff;       /* first_ms 0: off; else the defaults are filled in */
    struct quarantine_spec quarantine; /* failures 0: off */
    char text[];                       /* id, then name */
};

/* What a child in trouble needs to remember. Only those have it that may back off or be quarantined, or whose
 * last reason had a detail. */
struct child_trouble {
    struct restart_window failures; /* grants one less than quarantine.failures */
    uint64_t started_at;
    uint64_t timer;            /* while backing off or quarantined */
    uint32_t attempts;         /* restarts delayed since it last lived long enough */
    bool probation;            /* was quarantined and hasn't proved itself since: one more failure suffices */
    char text[CHILD_TEXT_MAX]; /* the last reason with its detail; empty: see child.last */
};

struct child {
    actor_pid pid; /* of the incarnation that runs, or ran last */
    uint32_t generation, index;
    uint32_t older, newer; /* in start order; free: older is the next free one */
    uint32_t hash, hash_next;
    uint32_t args_size;
    uint8_t state;  /* enum child_state; changed by child_become alone */
    bool condemned; /* is being stopped by the supervisor */
    bool killed;    /* was asked in vain */
    bool watched;   /* by a monitor, while it is being stopped */
    bool hashed, has_plan, has_args, has_last;
    uint32_t restarts;
    const struct child_plan *plan;
    void *args; /* what it starts with; NULL when there is nothing to keep */
    char *name; /* a dynamic child's own; NULL: the plan's */
    struct child_trouble *trouble;
    struct reason last; /* of its last death; the detail is NULL */
};

/* An array in pages: elements 0..511 in pages of 32, the others in pages of 512. */
#define PAGED_FEW  32u
#define PAGED_MANY 512u
#define PAGED_TOP  16u /* 16 * 512 * 512 = 4 Mi elements */
struct paged {
    char *few[PAGED_MANY / PAGED_FEW];
    char **many[PAGED_TOP];
};
STATIC_ASSERT(SUPERVISOR_CHILDREN_MAX <= PAGED_TOP * PAGED_MANY * PAGED_MANY, "every child has a place");
STATIC_ASSERT(PAGED_MANY * sizeof(struct child) <= CHILD_BLOCK_MAX, "a page is one allocation");

#define CHILD_BLOCK_STEP  16u
#define CHILD_BLOCK_STEPS 32u /* multiples of 16 up to 512 */
#define CHILD_BLOCK_LARGE 7u  /* 1, 2, 4, 8, 16, 32 KiB and CHILD_BLOCK_MAX */

struct children {
    struct paged records, buckets;
    uint32_t records_used, free;
    uint32_t buckets_count, buckets_mask; /* mask: the next power of two, less one */
    uint32_t oldest, newest;
    uint32_t count;
    uint32_t running;          /* state CHILD_RUNNING */
    uint32_t supervisors;      /* of type CHILD_SUPERVISOR, in whatever state */
    uint32_t significant_left; /* significant ones that haven't ended: any state but CHILD_STOPPED */
    uint64_t version;          /* changes whenever the order list does */
    void *blocks[CHILD_BLOCK_STEPS + CHILD_BLOCK_LARGE];
};

/* False when the arena gives nothing. */
bool children_init(struct children *t);

/* A new record at the end of the start order: state CHILD_STOPPED, plan and everything else empty. NULL: no
 * memory, or SUPERVISOR_CHILDREN_MAX reached. The plan becomes the child's own (has_plan) or is shared. */
struct child *child_new(struct children *t, const struct child_plan *plan, bool own);
/* Forgets it: out of the order, out of the map, its blocks recycled. Every tag of it becomes stale. */
void child_free(struct children *t, struct child *c);
/* The one place where states change; keeps the counts. */
void child_become(struct children *t, struct child *c, enum child_state state);
/* Its incarnation is over: tags made before are stale from now on. */
static inline void child_outdate(struct child *c)
{
    c->generation++;
}

void *children_block(struct children *t, size_t size); /* aligned to 16; NULL: no memory */
void children_block_free(struct children *t, void *block, size_t size);
bool child_keep_args(struct children *t, struct child *c, const void *args, size_t size);
bool child_keep_name(struct children *t, struct child *c, const char *name);
struct child_trouble *child_trouble(struct children *t,
                                    struct child *c); /* made when missing; NULL: no memory */

static inline void *paged_at(const struct paged *p, uint32_t i, size_t size)
{
    if (i < PAGED_MANY)
        return p->few[i / PAGED_FEW] + i % PAGED_FEW * size;
    return p->many[i / (PAGED_MANY * PAGED_MANY)][i / PAGED_MANY % PAGED_MANY] + i % PAGED_MANY * size;
}

static inline struct child *child_at(const struct children *t, uint32_t index)
{
    return index == CHILD_NONE ? NULL : paged_at(&t->records, index, sizeof(struct child));
}

static inline uint64_t child_tag(const struct child *c)
{
    return (uint64_t)c->generation << 32 | c->index;
}

/* NULL: no child's, or stale. Generations start at 1, so no tag is 0. */
static inline struct child *child_of_tag(const struct children *t, uint64_t tag)
{
    uint32_t index = (uint32_t)tag;
    if (index >= t->records_used)
        return NULL;
    struct child *c = child_at(t, index);
    return c->generation == (uint32_t)(tag >> 32) ? c : NULL;
}

static inline const char *plan_id(const struct child_plan *p)
{
    return p->id_size ? p->text : "";
}
static inline const char *plan_name(const struct child_plan *p)
{
    return p->name_size ? p->text + p->id_size : NULL;
}

/* The map has one kind of key a supervisor: the plan's id, or the pid. Ids must be different, pids are. */
void child_hash_id(struct children *t, struct child *c);
void child_hash_pid(struct children *t, struct child *c);
void child_unhash(struct children *t, struct child *c);
struct child *child_of_id(const struct children *t, const char *id);
struct child *child_of_pid(const struct children *t, actor_pid pid);

#endif
