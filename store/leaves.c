#include "store/leaves.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "runtime/assert.h"
#include "store/schema.h"
#include "store/value.h"

struct rooted {
    struct page_tree tree;
    uint64_t seed;
    bool bound;
};

struct leaves {
    _Atomic bool pending;
    uint32_t page_size, known_count;
    uint64_t pages;
    const uint8_t *file;               /* mapped, read only */
    _Atomic uint64_t *seen, *doubtful; /* a bit per page */
    struct rooted tables[SCHEMA_TABLES_MAX];
    struct leaves_table known[];
};

/* From a tree's root to a leaf: pages, and in each branch the node that leads on. */
struct path {
    uint64_t pages[PAGE_DEPTH];
    uint32_t indices[PAGE_DEPTH];
};

/* ---- life ---- */

static size_t words(const struct leaves *leaves)
{
    return (size_t)(leaves->pages / 64 + 1);
}

enum error leaves_create(int fd, uint32_t page_size, uint64_t pages, const struct leaves_table *tables,
                         uint32_t tables_count, struct leaves **ret_leaves)
{
    struct leaves *leaves = calloc(1, sizeof(*leaves) + tables_count * sizeof(*tables));
    if (!leaves)
        return ERR_MEMORY;
    leaves->page_size = page_size;
    leaves->pages = pages;
    leaves->known_count = tables_count;
    memcpy(leaves->known, tables, tables_count * sizeof(*tables));
    leaves->seen = calloc(words(leaves), sizeof(*leaves->seen));
    leaves->doubtful = calloc(words(leaves), sizeof(*leaves->doubtful));
    void *file = mmap(NULL, (size_t)pages * page_size, PROT_READ, MAP_SHARED, fd, 0);
    leaves->file = file == MAP_FAILED ? NULL : file;
    atomic_init(&leaves->pending, true);
    if (!leaves->seen || !leaves->doubtful || !leaves->file) {
        leaves_destroy(leaves);
        return ERR_MEMORY;
    }
    *ret_leaves = leaves;
    return OK;
}

void leaves_destroy(struct leaves *leaves)
{
    if (!leaves)
        return;
    if (leaves->file) {
        int error = munmap((void *)(uintptr_t)leaves->file, (size_t)leaves->pages * leaves->page_size);
        ASSERT(error == 0);
    }
    free(leaves->seen);
    free(leaves->doubtful);
    free(leaves);
}

void leaves_bind(struct leaves *leaves, uint32_t number, const char *name)
{
    struct rooted *table = &leaves->tables[number];
    ASSERT(number < SCHEMA_TABLES_MAX);
    table->tree = (struct page_tree){.root = PAGE_NONE};
    table->seed = value_seed(name);
    table->bound = true;
    for (uint32_t i = 0; i < leaves->known_count; i++)
        if (strcmp(leaves->known[i].name, name) == 0)
            table->tree = leaves->known[i].tree;
}

bool leaves_pending(const struct leaves *leaves)
{
    return leaves && atomic_load_explicit(&leaves->pending, memory_order_acquire);
}

void leaves_done(struct leaves *leaves)
{
    atomic_store_explicit(&leaves->pending, false, memory_order_release);
}

static bool bit(const _Atomic uint64_t *bits, uint64_t number)
{
    return atomic_load_explicit(&bits[number / 64], memory_order_acquire) >> (number % 64) & 1;
}

static void bit_set(_Atomic uint64_t *bits, uint64_t number)
{
    atomic_fetch_or_explicit(&bits[number / 64], UINT64_C(1) << (number % 64), memory_order_release);
}

/* ---- from the root to a leaf ---- */

static const uint8_t *page_at(const struct leaves *leaves, uint64_t number)
{
    ASSERT(number >= 2 && number < leaves->pages);
    return leaves->file + number * leaves->page_size;
}

/* The last node whose key isn't greater; the first one's counts as less than all. */
static uint32_t search(const uint8_t *branch, struct span key)
{
    uint32_t low = 0, high = page_count(branch);
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (page_compare(PAGE_OF_ROWS, page_key(branch, middle), key) <= 0)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* On the way from the root to a leaf. */
static uint32_t branches(const struct page_tree *tree)
{
    ASSERT(tree->depth >= 1 && tree->depth <= PAGE_DEPTH);
    return tree->depth - 1u;
}

/* Goes on from path->pages[level]. */
static void descend(const struct leaves *leaves, const struct page_tree *tree, struct path *path,
                    uint32_t level, enum leaves_way way, struct span key)
{
    for (; level < branches(tree); level++) {
        const uint8_t *branch = page_at(leaves, path->pages[level]);
        path->indices[level] = way == LEAVES_FIRST  ? 0
                               : way == LEAVES_LAST ? page_count(branch) - 1
                                                    : search(branch, key);
        path->pages[level + 1] = page_child(branch, path->indices[level]);
    }
}

/* To the leaf on the left or on the right of the path's; false: there is none. */
static bool step_aside(const struct leaves *leaves, const struct page_tree *tree, struct path *path,
                       bool right)
{
    for (uint32_t level = branches(tree); level-- > 0;) {
        const uint8_t *branch = page_at(leaves, path->pages[level]);
        uint32_t index = path->indices[level];
        if (right ? index + 1 == page_count(branch) : index == 0)
            continue;
        path->indices[level] = right ? index + 1 : index - 1;
        path->pages[level + 1] = page_child(branch, path->indices[level]);
        descend(leaves, tree, path, level + 1, right ? LEAVES_FIRST : LEAVES_LAST, span_text(""));
        return true;
    }
    return false;
}

/* ---- looking at one ---- */

/* What the branches above say about the keys of the path's leaf. */
static bool least_of(const struct leaves *leaves, const struct page_tree *tree, const struct path *path,
                     struct span *ret_key)
{
    for (uint32_t level = branches(tree); level-- > 0;)
        if (path->indices[level] > 0) {
            *ret_key = page_key(page_at(leaves, path->pages[level]), path->indices[level]);
            return true;
        }
    return false;
}

static bool limit_of(const struct leaves *leaves, const struct page_tree *tree, const struct path *path,
                     struct span *ret_key)
{
    for (uint32_t level = branches(tree); level-- > 0;) {
        const uint8_t *branch = page_at(leaves, path->pages[level]);
        if (path->indices[level] + 1 < page_count(branch)) {
            *ret_key = page_key(branch, path->indices[level] + 1);
            return true;
        }
    }
    return false;
}

/* A value on pages of its own; false: it can't be one. */
static bool run_find(const struct leaves *leaves, const uint8_t *leaf, uint32_t index, uint32_t size,
                     struct span *ret_value)
{
    uint64_t number;
    memcpy(&number, page_data(leaf, index), sizeof(number));
    if (number < 2 || number >= leaves->pages)
        return false;
    struct page_head head = page_head(page_at(leaves, number));
    if (page_run_wrong(&head, leaves->page_size, number, leaves->pages - number, size))
        return false;
    *ret_value = span_of(page_at(leaves, number) + PAGE_HEAD, size);
    return true;
}

/* false: LMDB would be led astray; *ret_doubt: not by this, but a value is wrong. */
static bool rows_sound(const struct leaves *leaves, const struct rooted *table, const uint8_t *leaf,
                       bool *ret_doubt)
{
    uint32_t count = page_count(leaf);
    for (uint32_t i = 0; i < count; i++) {
        struct page_node node = page_node(leaf, i);
        uint32_t size = page_data_size(node);
        struct span value = span_of(page_data(leaf, i), size), record;
        uint8_t version;
        if (size > VALUE_SIZE_MAX || (node.flags & NODE_BIG && !run_find(leaves, leaf, i, size, &value)))
            return false;
        if (value_open(table->seed, page_key(leaf, i), value, &version, &record) != OK)
            *ret_doubt = true;
    }
    return true;
}

static enum error look_at(struct leaves *leaves, const struct rooted *table, const struct path *path,
                          enum leaves_way way)
{
    uint64_t number = path->pages[branches(&table->tree)];
    if (!bit(leaves->seen, number)) {
        const uint8_t *leaf = page_at(leaves, number);
        struct span low, high;
        bool least = least_of(leaves, &table->tree, path, &low);
        bool limit = limit_of(leaves, &table->tree, path, &high), doubt = false;
        if (page_wrong(leaf, leaves->page_size, number, PAGE_OF_ROWS, true) ||
            page_order_wrong(leaf, PAGE_OF_ROWS, true, least ? &low : NULL, limit ? &high : NULL) ||
            !rows_sound(leaves, table, leaf, &doubt))
            return ERR_DAMAGED;
        if (doubt)
            bit_set(leaves->doubtful, number);
        bit_set(leaves->seen, number);
    }
    return way != LEAVES_AT && bit(leaves->doubtful, number) ? ERR_DAMAGED : OK;
}

static enum error look_aside(struct leaves *leaves, const struct rooted *table, struct path path, bool right,
                             enum leaves_way way)
{
    return step_aside(leaves, &table->tree, &path, right) ? look_at(leaves, table, &path, way) : OK;
}

enum error leaves_look(struct leaves *leaves, uint32_t number, enum leaves_way way, struct span key)
{
    const struct rooted *table = &leaves->tables[number];
    struct path path = {.pages[0] = table->tree.root};
    ASSERT(number < SCHEMA_TABLES_MAX && table->bound);
    if (table->tree.root == PAGE_NONE)
        return OK;
    descend(leaves, &table->tree, &path, 0, way, key);
    enum error e = look_at(leaves, table, &path, way);
    if (!e && way != LEAVES_AT)
        e = look_aside(leaves, table, path, false, way);
    if (!e && way != LEAVES_AT)
        e = look_aside(leaves, table, path, true, way);
    return e;
}
