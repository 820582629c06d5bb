/* How LMDB 0.9 lays a file out, as far as it is looked at here. Numbers are little-endian; a page's number times the
 * page size is where it lies.
 *
 *     page    0        8     10     12              16
 *            +--------+-----+------+-------+-------+---------------- - - ------------+
 *            | number | pad | kind | lower | upper | offsets ... free ... nodes      |   branch, leaf
 *            | number | pad | kind | pages of run  | the value's bytes               |   overflow
 *            | number | pad | kind |               | meta                            |   pages 0 and 1
 *            +--------+-----+------+-------+-------+---------------- - - ------------+
 *     node    0     2      4       6          8
 *            +-----+------+-------+----------+-----+------ - -
 *            | low | high | flags | key size | key | data             even in size
 *            +-----+------+-------+----------+-----+------ - -
 *
 * Offsets stand in the order of keys, one of two bytes for each node, from 16 to `lower`; nodes fill the page from
 * `upper` to its end without holes. In a branch low, high and flags are the child's number (48 bits), and the key is
 * the least that the child may hold; that of the first node means nothing. In a leaf low and high are the size of the
 * data: the value itself, or (flag BIG) the number of the first page of a run that holds it, or (flag TREE) the
 * record of a tree.
 *
 * Three kinds of trees: of free pages (key: a transaction as a number in memory order; data: a count and that many
 * page numbers, descending), of tables (their names, their trees), and each table's own.
 *
 * A transaction writes its meta page to the slot that its number's last bit says; the other slot holds the one
 * before. Each but the first frees pages of the one before it: so the last list of free pages has its number, and a
 * slot whose number is too high is found. When such a write fails LMDB puts the old number back over the new roots:
 * so of the slot that doesn't count, only what never changes must be sound. What is under its roots is looked at as
 * well, and the report says what it is.
 *
 * The file may end before the last page in use: pages that one transaction both took and gave back were never
 * written. They are then in the list of free pages.
 */
#include "store/image.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/assert.h"
#include "store/schema.h"
#include "store/value.h"

#define MAGIC          0xbeefc0deu
#define FORMAT         1u
#define PAGE_HEAD      16u
#define NODE_HEAD      8u
#define PAGE_SIZE_MIN  4096u
#define PAGE_SIZE_MAX  32768u
#define MAP_MAX        (UINT64_C(1) << 47)
#define NO_PAGE        UINT64_MAX
#define DEPTH_MAX      32u  /* LMDB's cursors hold as many pages */
#define KEY_MAX        511u /* of LMDB */
#define META_READS_MAX 64u  /* each sees the other's half at most once per commit */

enum page_kind { PAGE_BRANCH = 1, PAGE_LEAF = 2, PAGE_OVERFLOW = 4, PAGE_META = 8 };
enum node_flag { NODE_BIG = 1, NODE_TREE = 2 };
/* Of trees: keys that are numbers; and, in the file's first tree only, that it lies without a directory of its own. */
enum tree_flag { TREE_NUMBERS = 0x08, TREE_NO_DIRECTORY = 0x4000 };

struct page_head {
    uint64_t number;
    uint16_t pad, kind, lower, upper;
};
struct node {
    uint16_t low, high, flags, key_size;
};
struct tree {
    uint32_t pad; /* in the first tree of a meta page: the page size */
    uint16_t flags, depth;
    uint64_t branches, leaves, overflows, entries, root;
};
enum { TREE_FREE, TREE_TABLES };
struct meta {
    uint32_t magic, format;
    uint64_t address, map;
    struct tree trees[2];
    uint64_t last, txn;
};
struct meta_page {
    struct page_head head;
    struct meta meta;
};
STATIC_ASSERT(sizeof(struct page_head) == PAGE_HEAD && sizeof(struct node) == NODE_HEAD, "as in the file");
STATIC_ASSERT(sizeof(struct tree) == 48 && sizeof(struct meta) == 136, "as in the file");
STATIC_ASSERT(sizeof(struct meta_page) == PAGE_HEAD + 136, "as in the file");

struct image_table {
    char name[KEY_MAX + 1];
    struct tree tree;
};

struct image {
    int fd;
    uint32_t page_size;
    uint64_t file_size;
    struct meta meta, other; /* the one that counts, and not */
    uint64_t pages;          /* up to the last one */
    uint64_t freed_last;     /* the last transaction that freed pages */
    uint64_t reached_count, free_count, rows, damaged;
    uint64_t *reached, *free; /* a bit per page */
    uint8_t *levels;          /* a page for each level of a tree */
    uint8_t *taken;           /* a byte for each two of a page */
    uint8_t *value;           /* one that lies on pages of its own */
    size_t value_room;
    struct image_table *tables; /* SCHEMA_TABLES_MAX */
    uint32_t tables_count;
    enum error error; /* of the first thing that was wrong */
    char *text;
    size_t text_size;
};

__attribute__((format(printf, 3, 4))) static void note(struct image *image, enum error e, const char *format,
                                                       ...)
{
    va_list args;
    va_start(args, format);
    if (image->text_size > 0)
        vsnprintf(image->text, image->text_size, format, args);
    va_end(args);
    image->error = e;
}

/* Always false. Macros, so that whoever reads a caller, also a tool, sees that. */
#define WRONG(image, ...)   (note(image, __VA_ARGS__), false)
#define DAMAGED(image, ...) WRONG(image, ERR_DAMAGED, __VA_ARGS__)

static bool image_read(struct image *image, void *bytes, size_t size, uint64_t at, const char *what)
{
    size_t done = 0;
    if (at > image->file_size || size > image->file_size - at)
        return DAMAGED(image, "%s would lie at byte %llu, beyond the end of the file", what,
                       (unsigned long long)at);
    while (done < size) {
        ssize_t n = pread(image->fd, (uint8_t *)bytes + done, size - done, (off_t)(at + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return WRONG(image, ERR_IO, "reading %s at byte %llu failed: %s", what, (unsigned long long)at,
                         strerror(errno));
        if (n == 0)
            return DAMAGED(image, "the file ends within %s", what);
        done += (size_t)n;
    }
    return true;
}

static bool image_measure(struct image *image)
{
    struct stat status;
    if (fstat(image->fd, &status) != 0)
        return WRONG(image, ERR_IO, "the size of the file can't be read: %s", strerror(errno));
    if (!S_ISREG(status.st_mode))
        return WRONG(image, ERR_FOREIGN, "it isn't a file");
    image->file_size = (uint64_t)status.st_size;
    return true;
}

/* ---- meta pages ---- */

static bool page_size_possible(uint32_t size)
{
    return size >= PAGE_SIZE_MIN && size <= PAGE_SIZE_MAX && (size & (size - 1)) == 0;
}

static bool magic_at(struct image *image, uint64_t at)
{
    uint32_t magic;
    return at + PAGE_HEAD + sizeof(magic) <= image->file_size &&
           image_read(image, &magic, sizeof(magic), at + PAGE_HEAD, "a meta page") && magic == MAGIC;
}

/* The first meta page isn't one. Is it because this is something else, or was it one? */
static void not_ours(struct image *image)
{
    for (uint32_t size = PAGE_SIZE_MIN; size <= PAGE_SIZE_MAX; size *= 2)
        if (magic_at(image, size)) {
            note(image, ERR_DAMAGED, "the first of the two meta pages isn't one any more");
            return;
        }
    note(image, ERR_FOREIGN, "it is not a data file of LMDB");
}

static bool metas_read_once(struct image *image, struct meta_page pages[2])
{
    if (image->file_size == 0)
        return DAMAGED(image, "the file is empty");
    if (!magic_at(image, 0)) {
        if (image->error != ERR_IO)
            not_ours(image);
        return false;
    }
    if (!image_read(image, &pages[0], sizeof(pages[0]), 0, "the first meta page"))
        return false;
    image->page_size = pages[0].meta.trees[TREE_FREE].pad;
    if (!page_size_possible(image->page_size))
        return DAMAGED(image, "the first meta page says that pages have %u bytes", image->page_size);
    return image_read(image, &pages[1], sizeof(pages[1]), image->page_size, "the second meta page");
}

/* A living writer may be in the middle of writing one: what is read twice alike is whole. */
static bool metas_read(struct image *image, struct meta_page pages[2])
{
    struct meta_page again[2];
    if (!metas_read_once(image, pages))
        return false;
    for (unsigned i = 0; i < META_READS_MAX; i++) {
        if (!metas_read_once(image, again))
            return false;
        if (memcmp(pages, again, sizeof(again)) == 0)
            return true;
        memcpy(pages, again, sizeof(again));
    }
    return WRONG(image, ERR_IO, "the meta pages are never the same twice");
}

/* What is the same in both slots for as long as the file lives, and the size of the map, which only grows. */
static bool meta_lasting_sound(struct image *image, const struct meta_page *page, unsigned slot)
{
    const struct meta *meta = &page->meta;
    uint16_t flags = meta->trees[TREE_FREE].flags;
    if (page->head.number != slot || page->head.kind != PAGE_META)
        return DAMAGED(image, "meta page %u has the number %llu and the kind %#x", slot,
                       (unsigned long long)page->head.number, page->head.kind);
    if (meta->magic != MAGIC || meta->format != FORMAT)
        return DAMAGED(image, "meta page %u isn't one of LMDB 0.9", slot);
    if (meta->trees[TREE_FREE].pad != image->page_size)
        return DAMAGED(image, "the meta pages don't agree about the size of pages: %u and %u",
                       image->page_size, meta->trees[TREE_FREE].pad);
    if (meta->address != 0 || (flags & ~TREE_NO_DIRECTORY) != TREE_NUMBERS)
        return DAMAGED(image, "meta page %u has flags (%#x) or an address that are never used", slot, flags);
    if (meta->map < 2 * image->page_size || meta->map > MAP_MAX)
        return DAMAGED(image, "meta page %u says that the map has %llu bytes", slot,
                       (unsigned long long)meta->map);
    return true;
}

static bool metas_agree(struct image *image, const struct meta_page pages[2])
{
    uint64_t even = pages[0].meta.txn, odd = pages[1].meta.txn;
    bool fresh = even == 0 && odd == 0;
    if (pages[0].meta.magic == MAGIC && pages[1].meta.magic == MAGIC && pages[0].meta.format != FORMAT &&
        pages[0].meta.format == pages[1].meta.format)
        return WRONG(image, ERR_FOREIGN, "it is in format %u of LMDB; this is for format %u",
                     pages[0].meta.format, FORMAT);
    for (unsigned slot = 0; slot < 2; slot++)
        if (!meta_lasting_sound(image, &pages[slot], slot))
            return false;
    if (!fresh && (even % 2 != 0 || odd % 2 != 1 || (even + 1 != odd && odd + 1 != even)))
        return DAMAGED(image, "the meta pages are of transactions %llu and %llu, which never stand together",
                       (unsigned long long)even, (unsigned long long)odd);
    return true;
}

static bool root_possible(const struct image *image, const struct tree *tree)
{
    if (tree->root == NO_PAGE)
        return tree->depth == 0 && tree->branches == 0 && tree->leaves == 0 && tree->overflows == 0 &&
               tree->entries == 0;
    return tree->root >= 2 && tree->root < image->pages && tree->depth >= 1 && tree->depth <= DEPTH_MAX;
}

/* Pages beyond the end of the file are all in the list of free pages, which is in the file, with eight bytes each: so
 * the file's size bounds how many there can be. */
static uint64_t pages_most(const struct image *image)
{
    return image->file_size / image->page_size + image->file_size / sizeof(uint64_t);
}

/* Of the slot that counts. */
static bool meta_sound(struct image *image)
{
    const struct meta *meta = &image->meta;
    if (meta->last < 1 || meta->last >= meta->map / image->page_size || meta->last >= pages_most(image))
        return DAMAGED(image, "page %llu would be the last one in use, which is not possible",
                       (unsigned long long)meta->last);
    image->pages = meta->last + 1;
    if (!root_possible(image, &meta->trees[TREE_FREE]) || !root_possible(image, &meta->trees[TREE_TABLES]))
        return DAMAGED(image, "the meta page of transaction %llu has a root that can't be one",
                       (unsigned long long)meta->txn);
    if (meta->trees[TREE_TABLES].flags != 0 || meta->trees[TREE_TABLES].pad != 0)
        return DAMAGED(image, "the tree of tables has flags (%#x, %u) that are never used",
                       meta->trees[TREE_TABLES].flags, meta->trees[TREE_TABLES].pad);
    return true;
}

/* txn 0: the newest. */
static bool image_begin(struct image *image, uint64_t txn)
{
    struct meta_page pages[2];
    /* Measured again behind the meta pages: a living writer makes the file grow before it writes them. */
    if (!image_measure(image) || !metas_read(image, pages) || !image_measure(image) ||
        !metas_agree(image, pages))
        return false;
    unsigned slot = pages[1].meta.txn > pages[0].meta.txn;
    if (txn != 0)
        slot = (unsigned)(txn & 1);
    if (txn != 0 && pages[slot].meta.txn != txn)
        return WRONG(image, ERR_NOT_FOUND, "transaction %llu is not in the meta pages",
                     (unsigned long long)txn);
    image->meta = pages[slot].meta;
    image->other = pages[1 - slot].meta;
    return meta_sound(image);
}

/* ---- each page once ---- */

static bool bit(const uint64_t *bits, uint64_t number)
{
    return bits[number / 64] >> (number % 64) & 1;
}

static bool page_take(struct image *image, uint64_t *bits, uint64_t number, const char *what)
{
    if (number < 2 || number >= image->pages)
        return DAMAGED(image, "page %llu (%s) is outside of what is in use, 2 to %llu",
                       (unsigned long long)number, what, (unsigned long long)image->meta.last);
    if (bit(image->reached, number) || bit(image->free, number))
        return DAMAGED(image, "page %llu (%s) is already %s", (unsigned long long)number, what,
                       bit(image->free, number) ? "in the list of free pages" : "in use elsewhere");
    bits[number / 64] |= UINT64_C(1) << (number % 64);
    return true;
}

static bool page_reach(struct image *image, uint64_t number, const char *what)
{
    image->reached_count++;
    return page_take(image, image->reached, number, what);
}

/* ---- trees ---- */

enum role { ROLE_FREE, ROLE_TABLES, ROLE_ROWS };

struct walk {
    struct image *image;
    const struct tree *tree;
    const char *name; /* for sentences */
    enum role role;
    uint64_t seed; /* of the table's values */
    uint64_t branches, leaves, overflows, entries;
};

#define WALK_DAMAGED(walk, number, what) \
    DAMAGED((walk)->image, "page %llu, of %s: " what, (unsigned long long)(number), (walk)->name)

static struct page_head page_head(const uint8_t *page)
{
    struct page_head head;
    memcpy(&head, page, sizeof(head));
    return head;
}

static uint32_t nodes_count(const uint8_t *page)
{
    return (page_head(page).lower - PAGE_HEAD) / 2;
}

static const uint8_t *node_at(const uint8_t *page, uint32_t index, struct node *ret_node)
{
    uint16_t offset;
    memcpy(&offset, page + PAGE_HEAD + 2 * index, sizeof(offset));
    memcpy(ret_node, page + offset, sizeof(*ret_node));
    return page + offset;
}

static struct span node_key(const uint8_t *page, uint32_t index)
{
    struct node node;
    const uint8_t *at = node_at(page, index, &node);
    return span_of(at + NODE_HEAD, node.key_size);
}

static uint32_t node_data_size(struct node node)
{
    return (uint32_t)node.low | (uint32_t)node.high << 16;
}

static uint64_t node_size(struct node node, bool leaf)
{
    uint64_t data = !leaf ? 0 : node.flags & NODE_BIG ? sizeof(uint64_t) : node_data_size(node);
    return (NODE_HEAD + node.key_size + data + 1) & ~UINT64_C(1);
}

static bool node_flags_possible(enum role role, struct node node)
{
    if (role == ROLE_TABLES)
        return node.flags == NODE_TREE && node_data_size(node) == sizeof(struct tree);
    return (node.flags & ~NODE_BIG) == 0;
}

static bool key_size_possible(enum role role, uint32_t size)
{
    return role == ROLE_FREE ? size == sizeof(uint64_t) : size >= 1 && size <= KEY_MAX;
}

/* Whether the nodes fill the page from `upper` to its end, each byte belonging to one. */
static bool nodes_sound(struct walk *walk, uint64_t number, const uint8_t *page, bool leaf)
{
    struct image *image = walk->image;
    struct page_head head = page_head(page);
    uint64_t filled = 0;
    memset(image->taken, 0, image->page_size / 2);
    for (uint32_t i = 0; i < nodes_count(page); i++) {
        uint16_t offset;
        struct node node;
        memcpy(&offset, page + PAGE_HEAD + 2 * i, sizeof(offset));
        if (offset < head.upper || offset % 2 != 0 || offset > image->page_size - NODE_HEAD)
            return WALK_DAMAGED(walk, number, "a node would be outside of the nodes' part");
        node_at(page, i, &node);
        uint64_t size = node_size(node, leaf);
        if (size > image->page_size - offset || memchr(image->taken + offset / 2, 1, (size_t)size / 2))
            return WALK_DAMAGED(walk, number, "a node reaches into another one or beyond the page");
        if (leaf && !node_flags_possible(walk->role, node))
            return WALK_DAMAGED(walk, number, "a node is of a kind that doesn't belong there");
        if (!(i == 0 && !leaf) && !key_size_possible(walk->role, node.key_size))
            return WALK_DAMAGED(walk, number, "a key has a size that isn't possible");
        memset(image->taken + offset / 2, 1, (size_t)size / 2);
        filled += size;
    }
    return filled == image->page_size - head.upper ||
           WALK_DAMAGED(walk, number, "there is a hole among its nodes");
}

static bool page_sound(struct walk *walk, uint64_t number, const uint8_t *page, bool leaf)
{
    struct page_head head = page_head(page);
    /* LMDB never leaves a branch with one child, except among free pages, which it is changing as it saves them. */
    uint32_t least = leaf || walk->role == ROLE_FREE ? 1 : 2;
    if (head.number != number)
        return WALK_DAMAGED(walk, number, "it has the number of another page");
    if (head.kind != (leaf ? PAGE_LEAF : PAGE_BRANCH))
        return WALK_DAMAGED(walk, number, "it is not of the kind that belongs there");
    if (head.lower % 2 != 0 || head.lower < PAGE_HEAD + 2 * least || head.lower > head.upper ||
        head.upper > walk->image->page_size)
        return WALK_DAMAGED(walk, number, "its bounds are not possible");
    return nodes_sound(walk, number, page, leaf);
}

static int keys_compare(enum role role, struct span a, struct span b)
{
    if (role == ROLE_FREE) {
        uint64_t left, right;
        memcpy(&left, a.bytes, sizeof(left));
        memcpy(&right, b.bytes, sizeof(right));
        return (left > right) - (left < right);
    }
    int order = memcmp(a.bytes, b.bytes, a.size < b.size ? a.size : b.size);
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

/* A value of `size` bytes on a run of pages of its own. */
static bool run_read(struct walk *walk, uint64_t number, uint32_t size, struct span *ret_value)
{
    struct image *image = walk->image;
    struct page_head head;
    if (number < 2 || number >= image->pages)
        return WALK_DAMAGED(walk, number, "a value can't lie there");
    if (!image_read(image, &head, sizeof(head), number * image->page_size, "a page of a value"))
        return false;
    uint64_t pages = (uint64_t)head.lower | (uint64_t)head.upper << 16;
    uint64_t needed = (PAGE_HEAD - 1 + (uint64_t)size) / image->page_size + 1;
    if (head.number != number || head.kind != PAGE_OVERFLOW)
        return WALK_DAMAGED(walk, number, "it should begin a value and doesn't");
    /* More than needed: written once and then shorter, within one transaction. */
    if (pages < needed || pages > image->pages - number)
        return WALK_DAMAGED(walk, number, "the value has more or fewer pages than it can have");
    for (uint64_t i = 0; i < pages; i++)
        if (!page_reach(image, number + i, "of a value"))
            return false;
    walk->overflows += pages;
    if (size > image->value_room) {
        uint8_t *room = realloc(image->value, size);
        if (!room)
            return WRONG(image, ERR_MEMORY, "no memory for a value of %u bytes", size);
        image->value = room;
        image->value_room = size;
    }
    if (!image_read(image, image->value, size, number * image->page_size + PAGE_HEAD, "a value"))
        return false;
    *ret_value = span_of(image->value, size);
    return true;
}

static bool free_list(struct walk *walk, uint64_t page, struct span key, struct span value)
{
    const uint8_t *at = value.bytes;
    uint64_t txn, count, number, above = UINT64_MAX;
    memcpy(&txn, key.bytes, sizeof(txn));
    if (txn < 1 || txn > walk->image->meta.txn)
        return WALK_DAMAGED(walk, page, "pages are freed by a transaction that wasn't yet");
    if (value.size < sizeof(count) || value.size % sizeof(count) != 0)
        return WALK_DAMAGED(walk, page, "a list has a size that isn't possible");
    memcpy(&count, at, sizeof(count));
    if (count > value.size / sizeof(count) - 1)
        return WALK_DAMAGED(walk, page, "a list has more pages than room");
    for (uint64_t i = 1; i <= count; i++, above = number) {
        memcpy(&number, at + i * sizeof(number), sizeof(number));
        if (number >= above)
            return WALK_DAMAGED(walk, page, "a list is out of order");
        if (!page_take(walk->image, walk->image->free, number, "of a list of free pages"))
            return false;
    }
    walk->image->free_count += count;
    walk->image->freed_last = txn;
    return true;
}

static bool name_plain(struct span name)
{
    const uint8_t *at = name.bytes;
    for (uint32_t i = 0; i < name.size; i++)
        if (at[i] <= ' ' || at[i] >= 0x7f)
            return false;
    return true;
}

static bool table_note(struct walk *walk, uint64_t page, struct span name, struct span record)
{
    struct image *image = walk->image;
    if (image->tables_count == SCHEMA_TABLES_MAX)
        return WALK_DAMAGED(walk, page, "there are more tables than a store has");
    if (!name_plain(name))
        return WALK_DAMAGED(walk, page, "the name of a table isn't one");
    struct image_table *table = &image->tables[image->tables_count++];
    memcpy(table->name, name.bytes, name.size);
    table->name[name.size] = 0;
    memcpy(&table->tree, record.bytes, sizeof(table->tree));
    if (table->tree.flags != 0 || table->tree.pad != 0 || !root_possible(image, &table->tree))
        return WALK_DAMAGED(walk, page, "the record of a table is not possible");
    return true;
}

static bool row_sound(struct walk *walk, uint64_t page, struct span key, struct span value)
{
    uint8_t version;
    struct span record;
    walk->image->rows++;
    if (value_open(walk->seed, key, value, &version, &record) != OK && walk->image->damaged++ == 0)
        (void)WALK_DAMAGED(walk, page, "the checksum of a value is wrong");
    return true;
}

static bool leaf_entry(struct walk *walk, uint64_t number, const uint8_t *page, uint32_t index)
{
    struct node node;
    const uint8_t *data = node_at(page, index, &node) + NODE_HEAD + node.key_size;
    struct span key = node_key(page, index), value = span_of(data, node_data_size(node));
    walk->entries++;
    if (walk->role == ROLE_ROWS && value.size > VALUE_SIZE_MAX)
        return WALK_DAMAGED(walk, number, "a value is larger than values are");
    if (node.flags & NODE_BIG) {
        uint64_t run;
        memcpy(&run, data, sizeof(run));
        if (!run_read(walk, run, node_data_size(node), &value))
            return false;
    }
    switch (walk->role) {
    case ROLE_FREE:
        return free_list(walk, number, key, value);
    case ROLE_TABLES:
        return table_note(walk, number, key, value);
    default:
        return row_sound(walk, number, key, value);
    }
}

/* Keys at least `low`, below `high`; NULL: unbounded. */
static bool walk_leaf(struct walk *walk, uint64_t number, const uint8_t *page, const struct span *low,
                      const struct span *high)
{
    uint32_t count = nodes_count(page);
    walk->leaves++;
    for (uint32_t i = 0; i < count; i++) {
        struct span key = node_key(page, i);
        if (i == 0 && low && keys_compare(walk->role, key, *low) < 0)
            return WALK_DAMAGED(walk, number, "its first key belongs before it");
        if (i > 0 && keys_compare(walk->role, key, node_key(page, i - 1)) <= 0)
            return WALK_DAMAGED(walk, number, "its keys are out of order");
        if (i == count - 1 && high && keys_compare(walk->role, key, *high) >= 0)
            return WALK_DAMAGED(walk, number, "its last key belongs behind it");
        if (!leaf_entry(walk, number, page, i))
            return false;
    }
    return true;
}

static bool walk_page(struct walk *walk, uint64_t number, uint32_t level, const struct span *low,
                      const struct span *high);

static bool walk_branch(struct walk *walk, uint64_t number, const uint8_t *page, uint32_t level,
                        const struct span *low, const struct span *high)
{
    uint32_t count = nodes_count(page);
    walk->branches++;
    for (uint32_t i = 0; i < count; i++) {
        struct node node;
        struct span from, to;
        node_at(page, i, &node);
        uint64_t child = (uint64_t)node.low | (uint64_t)node.high << 16 | (uint64_t)node.flags << 32;
        from = i > 0 ? node_key(page, i) : (struct span){0};
        to = i + 1 < count ? node_key(page, i + 1) : (struct span){0};
        const struct span *at_least = i > 0 ? &from : low;
        const struct span *below = i + 1 < count ? &to : high;
        if (at_least && below && keys_compare(walk->role, *at_least, *below) >= 0)
            return WALK_DAMAGED(walk, number, "its keys are out of order");
        if (!walk_page(walk, child, level + 1, at_least, below))
            return false;
    }
    return true;
}

/* The recursion is as deep as the tree says it is, which is DEPTH_MAX at most. */
static bool walk_page(struct walk *walk, uint64_t number, uint32_t level, const struct span *low,
                      const struct span *high)
{
    struct image *image = walk->image;
    uint8_t *page = image->levels + (size_t)(level - 1) * image->page_size;
    bool leaf = level == walk->tree->depth;
    if (!page_reach(image, number, walk->name) ||
        !image_read(image, page, image->page_size, number * image->page_size, walk->name) ||
        !page_sound(walk, number, page, leaf))
        return false;
    return leaf ? walk_leaf(walk, number, page, low, high)
                : walk_branch(walk, number, page, level, low, high);
}

static bool walk_tree(struct walk *walk)
{
    const struct tree *tree = walk->tree;
    if (tree->root == NO_PAGE)
        return true;
    if (!walk_page(walk, tree->root, 1, NULL, NULL))
        return false;
    if (walk->branches != tree->branches || walk->leaves != tree->leaves ||
        walk->overflows != tree->overflows || walk->entries != tree->entries)
        return DAMAGED(walk->image,
                       "%s: its record says %llu entries and %llu pages, there are %llu and %llu", walk->name,
                       (unsigned long long)tree->entries,
                       (unsigned long long)(tree->branches + tree->leaves + tree->overflows),
                       (unsigned long long)walk->entries,
                       (unsigned long long)(walk->branches + walk->leaves + walk->overflows));
    return true;
}

/* ---- all of it ---- */

static bool image_allocate(struct image *image)
{
    size_t words = (size_t)(image->pages / 64 + 1);
    image->reached = calloc(words, sizeof(uint64_t));
    image->free = calloc(words, sizeof(uint64_t));
    image->levels = malloc((size_t)DEPTH_MAX * image->page_size);
    image->taken = malloc(image->page_size / 2);
    image->tables = calloc(SCHEMA_TABLES_MAX, sizeof(*image->tables));
    if (!image->reached || !image->free || !image->levels || !image->taken || !image->tables)
        return WRONG(image, ERR_MEMORY, "no memory to look at %llu pages", (unsigned long long)image->pages);
    return true;
}

static void image_free(struct image *image)
{
    free(image->reached);
    free(image->free);
    free(image->levels);
    free(image->taken);
    free(image->tables);
    free(image->value);
}

static bool walk_free(struct image *image)
{
    struct walk walk = {.image = image,
                        .tree = &image->meta.trees[TREE_FREE],
                        .name = "the list of free pages",
                        .role = ROLE_FREE};
    return walk_tree(&walk);
}

static bool walk_rows(struct image *image)
{
    struct walk tables = {.image = image,
                          .tree = &image->meta.trees[TREE_TABLES],
                          .name = "the tree of tables",
                          .role = ROLE_TABLES};
    if (!walk_tree(&tables))
        return false;
    for (uint32_t i = 0; i < image->tables_count; i++) {
        struct image_table *table = &image->tables[i];
        struct walk rows = {.image = image,
                            .tree = &table->tree,
                            .name = table->name,
                            .role = ROLE_ROWS,
                            .seed = value_seed(table->name)};
        if (!walk_tree(&rows))
            return false;
    }
    return true;
}

/* The first transaction frees nothing. */
static bool number_fits(const struct image *image, uint64_t txn)
{
    return image->freed_last == (txn > 1 ? txn : 0);
}

static bool walk_all(struct image *image)
{
    if (!walk_free(image))
        return false;
    if (!number_fits(image, image->meta.txn))
        return DAMAGED(image, "the meta page of transaction %llu has the pages of transaction %llu",
                       (unsigned long long)image->meta.txn, (unsigned long long)image->freed_last);
    return walk_rows(image);
}

/* What is in use and isn't in the file must be free. */
static bool tail_free(struct image *image)
{
    for (uint64_t number = image->file_size / image->page_size; number < image->pages; number++)
        if (!bit(image->free, number) && !bit(image->reached, number))
            return DAMAGED(image, "the file ends before page %llu, which isn't free",
                           (unsigned long long)number);
    return true;
}

static bool image_walk(struct image *image)
{
    return image_allocate(image) && walk_all(image) && tail_free(image);
}

/* ---- the other slot ---- */

/* As many as there could be: a failed write puts an old number of the last page back, too. */
static bool other_begin(struct image *other)
{
    uint64_t most = pages_most(other);
    other->pages = other->meta.map / other->page_size < most ? other->meta.map / other->page_size : most;
    const struct tree *tables = &other->meta.trees[TREE_TABLES];
    return other->meta.last < other->pages && tables->flags == 0 && tables->pad == 0 &&
           root_possible(other, tables) && root_possible(other, &other->meta.trees[TREE_FREE]) &&
           image_allocate(other);
}

static void other_end(struct image *other)
{
    uint64_t last = other->pages - 1;
    while (last > other->meta.last && !bit(other->reached, last) && !bit(other->free, last))
        last--;
    other->meta.last = last > other->meta.last ? last : other->meta.last;
    other->pages = other->meta.last + 1;
}

/* *ret_meta: of a later transaction, with its number and its last page. */
static enum image_other other_look(const struct image *image, struct meta *ret_meta)
{
    char text[1];
    uint64_t before = image->other.txn, after = image->meta.txn + 1;
    enum image_other what = IMAGE_OTHER_UNSURE;
    struct image other = {.fd = image->fd,
                          .page_size = image->page_size,
                          .file_size = image->file_size,
                          .meta = image->other,
                          .text = text};
    other.meta.txn = after;
    if (other_begin(&other) && walk_free(&other)) {
        if (number_fits(&other, before))
            what = IMAGE_OTHER_BEFORE;
        else if (number_fits(&other, after) && walk_rows(&other) && other.damaged == 0) {
            other_end(&other);
            what = tail_free(&other) ? IMAGE_OTHER_LATER : IMAGE_OTHER_UNSURE;
        }
    }
    if (what == IMAGE_OTHER_LATER)
        *ret_meta = other.meta;
    image_free(&other);
    return what;
}

/* ---- all of it, for others ---- */

static struct image_report image_report(const struct image *image)
{
    return (struct image_report){.txn = image->meta.txn,
                                 .pages = image->pages,
                                 .reached = image->reached_count,
                                 .free = image->free_count,
                                 .lost = image->pages - 2 - image->reached_count - image->free_count,
                                 .rows = image->rows,
                                 .damaged = image->damaged,
                                 .page_size = image->page_size};
}

enum error image_check(int fd, uint64_t txn, struct image_report *ret_report, char *ret_text,
                       size_t text_size)
{
    struct image image = {.fd = fd, .text = ret_text, .text_size = text_size};
    struct meta later;
    if (image_begin(&image, txn) && image_walk(&image)) {
        *ret_report = image_report(&image);
        if (txn == 0)
            ret_report->other = other_look(&image, &later);
    }
    image_free(&image);
    return image.error;
}

/* The last page and the number stand side by side at the end, well within a sector. */
static bool number_write(struct image *image, const struct meta *meta)
{
    uint64_t numbers[] = {meta->last, meta->txn};
    uint64_t at = (meta->txn & 1) * image->page_size + PAGE_HEAD + offsetof(struct meta, last);
    if (pwrite(image->fd, numbers, sizeof(numbers), (off_t)at) == (ssize_t)sizeof(numbers) &&
        fsync(image->fd) == 0)
        return true;
    return WRONG(image, ERR_IO, "the number of transaction %llu can't be written: %s",
                 (unsigned long long)meta->txn, strerror(errno));
}

enum error image_finish(int fd, char *ret_text, size_t text_size)
{
    struct image image = {.fd = fd, .text = ret_text, .text_size = text_size};
    struct meta later;
    if (image_begin(&image, 0) && image_walk(&image)) {
        if (other_look(&image, &later) == IMAGE_OTHER_LATER)
            number_write(&image, &later);
        else
            note(&image, ERR_NOT_FOUND, "there is no later transaction");
    }
    image_free(&image);
    return image.error;
}

enum error image_peek(int fd, struct image_report *ret_report, char *ret_text, size_t text_size)
{
    struct image image = {.fd = fd, .text = ret_text, .text_size = text_size};
    if (!image_begin(&image, 0))
        return image.error;
    if (image.file_size / image.page_size < image.pages)
        return image_check(fd, 0, ret_report, ret_text, text_size);
    *ret_report =
        (struct image_report){.txn = image.meta.txn, .pages = image.pages, .page_size = image.page_size};
    return OK;
}
