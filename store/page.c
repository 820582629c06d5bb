#include "store/page.h"

#include <string.h>

#include "runtime/assert.h"

#define NODE_HEAD 8u

STATIC_ASSERT(sizeof(struct page_head) == PAGE_HEAD && sizeof(struct page_node) == NODE_HEAD,
              "as in the file");
STATIC_ASSERT(sizeof(struct page_tree) == 48, "as in the file");

/* ---- what is on it ---- */

struct page_head page_head(const uint8_t *page)
{
    struct page_head head;
    memcpy(&head, page, sizeof(head));
    return head;
}

uint64_t page_run(const struct page_head *head)
{
    return (uint64_t)head->lower | (uint64_t)head->upper << 16;
}

uint32_t page_count(const uint8_t *page)
{
    return (page_head(page).lower - PAGE_HEAD) / 2;
}

static uint16_t offset_of(const uint8_t *page, uint32_t index)
{
    uint16_t offset;
    memcpy(&offset, page + PAGE_HEAD + 2 * index, sizeof(offset));
    return offset;
}

struct page_node page_node(const uint8_t *page, uint32_t index)
{
    struct page_node node;
    memcpy(&node, page + offset_of(page, index), sizeof(node));
    return node;
}

struct span page_key(const uint8_t *page, uint32_t index)
{
    return span_of(page + offset_of(page, index) + NODE_HEAD, page_node(page, index).key_size);
}

const uint8_t *page_data(const uint8_t *page, uint32_t index)
{
    return page + offset_of(page, index) + NODE_HEAD + page_node(page, index).key_size;
}

uint32_t page_data_size(struct page_node node)
{
    return (uint32_t)node.low | (uint32_t)node.high << 16;
}

uint64_t page_child(const uint8_t *page, uint32_t index)
{
    struct page_node node = page_node(page, index);
    return (uint64_t)node.low | (uint64_t)node.high << 16 | (uint64_t)node.flags << 32;
}

int page_compare(enum page_role role, struct span a, struct span b)
{
    if (role == PAGE_OF_FREE) {
        uint64_t left, right;
        memcpy(&left, a.bytes, sizeof(left));
        memcpy(&right, b.bytes, sizeof(right));
        return (left > right) - (left < right);
    }
    int order = memcmp(a.bytes, b.bytes, a.size < b.size ? a.size : b.size);
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

/* ---- whether it is sound ---- */

static uint64_t node_size(struct page_node node, bool leaf)
{
    uint64_t data = !leaf ? 0 : node.flags & NODE_BIG ? sizeof(uint64_t) : page_data_size(node);
    return (NODE_HEAD + node.key_size + data + 1) & ~UINT64_C(1);
}

static bool flags_possible(enum page_role role, struct page_node node)
{
    if (role == PAGE_OF_TABLES)
        return node.flags == NODE_TREE && page_data_size(node) == sizeof(struct page_tree);
    return (node.flags & ~NODE_BIG) == 0;
}

static bool key_size_possible(enum page_role role, uint32_t size)
{
    return role == PAGE_OF_FREE ? size == sizeof(uint64_t) : size >= 1 && size <= PAGE_KEY_MAX;
}

/* A bit for each even offset of the page at which a node begins. */
struct starts {
    uint64_t bits[PAGE_SIZE_MAX / 2 / 64];
};

static bool start_at(const struct starts *starts, uint64_t offset)
{
    return starts->bits[offset / 128] >> (offset / 2 % 64) & 1;
}

static const char *node_wrong(const uint8_t *page, uint32_t page_size, enum page_role role, bool leaf,
                              uint32_t index, struct starts *starts, uint64_t *filled)
{
    uint16_t offset = offset_of(page, index);
    if (offset < page_head(page).upper || offset % 2 != 0 || offset > page_size - NODE_HEAD)
        return "a node would be outside of the nodes' part";
    struct page_node node = page_node(page, index);
    uint64_t size = node_size(node, leaf);
    if (size > page_size - offset || start_at(starts, offset))
        return "a node reaches into another one or beyond the page";
    if (leaf && !flags_possible(role, node))
        return "a node is of a kind that doesn't belong there";
    if (!(index == 0 && !leaf) && !key_size_possible(role, node.key_size))
        return "a key has a size that isn't possible";
    starts->bits[offset / 128] |= UINT64_C(1) << (offset / 2 % 64);
    *filled += size;
    return NULL;
}

/* Whether the nodes fill the page from `upper` to its end, each byte belonging to one: where one ends another begins, or
 * the page ends. So from the one that begins at `upper` they follow each other to the end, and by the sum of their sizes
 * there are no others. */
static const char *nodes_wrong(const uint8_t *page, uint32_t page_size, enum page_role role, bool leaf)
{
    struct starts starts;
    uint64_t filled = 0;
    uint32_t count = page_count(page), upper = page_head(page).upper;
    memset(starts.bits, 0, page_size / 2 / 8);
    for (uint32_t i = 0; i < count; i++) {
        const char *wrong = node_wrong(page, page_size, role, leaf, i, &starts, &filled);
        if (wrong)
            return wrong;
    }
    if (filled != page_size - upper || !start_at(&starts, upper))
        return "there is a hole among its nodes";
    for (uint32_t i = 0; i < count; i++) {
        uint64_t end = offset_of(page, i) + node_size(page_node(page, i), leaf);
        if (end != page_size && !start_at(&starts, end))
            return "a node reaches into another one or beyond the page";
    }
    return NULL;
}

const char *page_wrong(const uint8_t *page, uint32_t page_size, uint64_t number, enum page_role role,
                       bool leaf)
{
    struct page_head head = page_head(page);
    /* LMDB never leaves a branch with one child, except among free pages, which it is changing as it saves them. */
    uint32_t least = leaf || role == PAGE_OF_FREE ? 1 : 2;
    ASSERT(page_size >= PAGE_SIZE_MIN && page_size <= PAGE_SIZE_MAX);
    if (head.number != number)
        return "it has the number of another page";
    if (head.kind != (leaf ? PAGE_LEAF : PAGE_BRANCH))
        return "it is not of the kind that belongs there";
    if (head.lower % 2 != 0 || head.lower < PAGE_HEAD + 2 * least || head.lower > head.upper ||
        head.upper > page_size)
        return "its bounds are not possible";
    if (head.upper % 2 != 0 || head.upper == page_size)
        return "a node would be outside of the nodes' part";
    return nodes_wrong(page, page_size, role, leaf);
}

const char *page_order_wrong(const uint8_t *page, enum page_role role, bool leaf, const struct span *low,
                             const struct span *high)
{
    uint32_t count = page_count(page), first = leaf ? 0 : 1;
    if (count <= first)
        return NULL;
    struct span before = page_key(page, first), key;
    if (low && page_compare(role, before, *low) < (leaf ? 0 : 1))
        return "its first key belongs before it";
    for (uint32_t i = first + 1; i < count; i++, before = key) {
        key = page_key(page, i);
        if (page_compare(role, key, before) <= 0)
            return "its keys are out of order";
    }
    return high && page_compare(role, before, *high) >= 0 ? "its last key belongs behind it" : NULL;
}

const char *page_run_wrong(const struct page_head *head, uint32_t page_size, uint64_t number, uint64_t room,
                           uint32_t size)
{
    uint64_t needed = (PAGE_HEAD - 1 + (uint64_t)size) / page_size + 1;
    if (head->number != number || head->kind != PAGE_OVERFLOW)
        return "it should begin a value and doesn't";
    /* More than needed: written once and then shorter, within one transaction. */
    if (page_run(head) < needed || page_run(head) > room)
        return "the value has more or fewer pages than it can have";
    return NULL;
}
