/* How LMDB 0.9 lays a file out, beyond what a single page is (store/page.h).
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
#include "store/leaves.h"
#include "store/page.h"
#include "store/schema.h"
#include "store/value.h"

#define MAGIC              0xbeefc0deu
#define FORMAT             1u
#define MAP_MAX            (UINT64_C(1) << 47)
#define META_READS_MAX     64u /* each sees the other's half at most once per commit */
#define OUTLINE_LEAVES_MAX 1u  /* a table with more of them is read at its branches only */
#define REST_PAGES         64u /* between two rests: some 0.1 ms */

/* Of trees: keys that are numbers; and, in the file's first tree only, that it lies without a directory of its own. */
enum tree_flag { TREE_NUMBERS = 0x08, TREE_NO_DIRECTORY = 0x4000 };

enum { TREE_FREE, TREE_TABLES };
struct meta {
    uint32_t magic, format;
    uint64_t address, map;
    struct page_tree trees[2];
    uint64_t last, txn;
};
struct meta_page {
    struct page_head head;
    struct meta meta;
};
STATIC_ASSERT(sizeof(struct meta) == 136, "as in the file");
STATIC_ASSERT(sizeof(struct meta_page) == PAGE_HEAD + 136, "as in the file");

/* What a store says about itself in its table "meta" (store/meta.h); 0: it doesn't. */
struct said {
    uint64_t commit;
    uint32_t format;
};

struct image {
    int fd;
    bool outline; /* large tables at their branches only */
    uint32_t page_size;
    uint64_t file_size;
    struct meta meta, other; /* the one that counts, and not */
    uint64_t pages;          /* up to the last one */
    uint64_t freed_last;     /* the last transaction that freed pages */
    uint64_t reached_count, free_count, rows, damaged;
    uint64_t *reached, *free; /* a bit per page */
    uint8_t *levels;          /* a page for each level of a tree */
    uint8_t *value;           /* one that lies on pages of its own */
    size_t value_room;
    struct leaves_table *tables; /* SCHEMA_TABLES_MAX */
    uint32_t tables_count;
    struct said said;
    image_rest *rest; /* NULL: none */
    uint64_t rested;  /* at so many reached */
    void *rest_arg;
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

static bool root_possible(const struct image *image, const struct page_tree *tree)
{
    if (tree->root == PAGE_NONE)
        return tree->depth == 0 && tree->branches == 0 && tree->leaves == 0 && tree->overflows == 0 &&
               tree->entries == 0;
    return tree->root >= 2 && tree->root < image->pages && tree->depth >= 1 && tree->depth <= PAGE_DEPTH;
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

struct walk {
    struct image *image;
    const struct page_tree *tree;
    const char *name; /* for sentences */
    enum page_role role;
    bool leaves_too; /* else only the branches are read */
    uint64_t seed;   /* of the table's values */
    uint64_t branches, leaves, overflows, entries;
};

#define WALK_DAMAGED(walk, number, what) \
    DAMAGED((walk)->image, "page %llu, of %s: %s", (unsigned long long)(number), (walk)->name, what)

/* A value of `size` bytes on a run of pages of its own. */
static bool run_read(struct walk *walk, uint64_t number, uint32_t size, struct span *ret_value)
{
    struct image *image = walk->image;
    struct page_head head;
    if (number < 2 || number >= image->pages)
        return WALK_DAMAGED(walk, number, "a value can't lie there");
    if (!image_read(image, &head, sizeof(head), number * image->page_size, "a page of a value"))
        return false;
    const char *wrong = page_run_wrong(&head, image->page_size, number, image->pages - number, size);
    if (wrong)
        return WALK_DAMAGED(walk, number, wrong);
    for (uint64_t i = 0; i < page_run(&head); i++)
        if (!page_reach(image, number + i, "of a value"))
            return false;
    walk->overflows += page_run(&head);
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
    struct leaves_table *table = &image->tables[image->tables_count++];
    memcpy(table->name, name.bytes, name.size);
    table->name[name.size] = 0;
    memcpy(&table->tree, record.bytes, sizeof(table->tree));
    if (table->tree.flags != 0 || table->tree.pad != 0 || !root_possible(image, &table->tree))
        return WALK_DAMAGED(walk, page, "the record of a table is not possible");
    return true;
}

/* Rows of the table "meta": a length of four bytes, then what they say. */
static void said_note(struct said *said, struct span key, struct span record)
{
    const size_t head = sizeof(uint32_t);
    if (span_equal(key, span_text("commit")) && record.size == head + sizeof(said->commit))
        memcpy(&said->commit, (const uint8_t *)record.bytes + head, sizeof(said->commit));
    if (span_equal(key, span_text("format")) && record.size >= head + sizeof(said->format))
        memcpy(&said->format, (const uint8_t *)record.bytes + head, sizeof(said->format));
}

static bool row_sound(struct walk *walk, uint64_t page, struct span key, struct span value)
{
    struct image *image = walk->image;
    uint8_t version;
    struct span record;
    image->rows++;
    if (value_open(walk->seed, key, value, &version, &record) != OK) {
        if (image->damaged++ == 0)
            (void)WALK_DAMAGED(walk, page, "the checksum of a value is wrong");
    } else if (strcmp(walk->name, "meta") == 0) {
        said_note(&image->said, key, record);
    }
    return true;
}

static bool leaf_entry(struct walk *walk, uint64_t number, const uint8_t *page, uint32_t index)
{
    struct page_node node = page_node(page, index);
    struct span key = page_key(page, index);
    struct span value = span_of(page_data(page, index), page_data_size(node));
    walk->entries++;
    if (walk->role == PAGE_OF_ROWS && value.size > VALUE_SIZE_MAX)
        return WALK_DAMAGED(walk, number, "a value is larger than values are");
    if (node.flags & NODE_BIG) {
        uint64_t run;
        memcpy(&run, page_data(page, index), sizeof(run));
        if (!run_read(walk, run, page_data_size(node), &value))
            return false;
    }
    switch (walk->role) {
    case PAGE_OF_FREE:
        return free_list(walk, number, key, value);
    case PAGE_OF_TABLES:
        return table_note(walk, number, key, value);
    default:
        return row_sound(walk, number, key, value);
    }
}

static bool walk_leaf(struct walk *walk, uint64_t number, const uint8_t *page)
{
    uint32_t count = page_count(page);
    for (uint32_t i = 0; i < count; i++)
        if (!leaf_entry(walk, number, page, i))
            return false;
    return true;
}

static bool walk_page(struct walk *walk, uint64_t number, uint32_t level, const struct span *low,
                      const struct span *high);

static bool walk_branch(struct walk *walk, const uint8_t *page, uint32_t level, const struct span *low,
                        const struct span *high)
{
    uint32_t count = page_count(page);
    walk->branches++;
    for (uint32_t i = 0; i < count; i++) {
        struct span from = i > 0 ? page_key(page, i) : (struct span){0};
        struct span to = i + 1 < count ? page_key(page, i + 1) : (struct span){0};
        if (!walk_page(walk, page_child(page, i), level + 1, i > 0 ? &from : low, i + 1 < count ? &to : high))
            return false;
    }
    return true;
}

static void take_rest(struct image *image)
{
    if (!image->rest || image->reached_count - image->rested < REST_PAGES)
        return;
    image->rested = image->reached_count;
    image->rest(image->rest_arg);
}

/* The recursion is as deep as the tree says it is, which is PAGE_DEPTH at most. */
static bool walk_page(struct walk *walk, uint64_t number, uint32_t level, const struct span *low,
                      const struct span *high)
{
    struct image *image = walk->image;
    uint8_t *page = image->levels + (size_t)(level - 1) * image->page_size;
    bool leaf = level == walk->tree->depth;
    if (!page_reach(image, number, walk->name))
        return false;
    walk->leaves += leaf;
    if (leaf && !walk->leaves_too)
        return true;
    take_rest(image);
    if (!image_read(image, page, image->page_size, number * image->page_size, walk->name))
        return false;
    const char *wrong = page_wrong(page, image->page_size, number, walk->role, leaf);
    if (!wrong)
        wrong = page_order_wrong(page, walk->role, leaf, low, high);
    if (wrong)
        return WALK_DAMAGED(walk, number, wrong);
    return leaf ? walk_leaf(walk, number, page) : walk_branch(walk, page, level, low, high);
}

/* What the leaves would have said is not compared when they weren't read. */
static bool walk_tree(struct walk *walk)
{
    const struct page_tree *tree = walk->tree;
    if (tree->root == PAGE_NONE)
        return true;
    if (!walk_page(walk, tree->root, 1, NULL, NULL))
        return false;
    if (!walk->leaves_too) {
        walk->overflows = tree->overflows;
        walk->entries = tree->entries;
    }
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
    image->levels = malloc((size_t)PAGE_DEPTH * image->page_size);
    image->tables = calloc(SCHEMA_TABLES_MAX, sizeof(*image->tables));
    if (!image->reached || !image->free || !image->levels || !image->tables)
        return WRONG(image, ERR_MEMORY, "no memory to look at %llu pages", (unsigned long long)image->pages);
    return true;
}

static void image_free(struct image *image)
{
    free(image->reached);
    free(image->free);
    free(image->levels);
    free(image->tables);
    free(image->value);
}

static bool walk_free(struct image *image)
{
    struct walk walk = {.image = image,
                        .tree = &image->meta.trees[TREE_FREE],
                        .name = "the list of free pages",
                        .role = PAGE_OF_FREE,
                        .leaves_too = true};
    return walk_tree(&walk);
}

static bool walk_rows(struct image *image)
{
    struct walk tables = {.image = image,
                          .tree = &image->meta.trees[TREE_TABLES],
                          .name = "the tree of tables",
                          .role = PAGE_OF_TABLES,
                          .leaves_too = true};
    if (!walk_tree(&tables))
        return false;
    for (uint32_t i = 0; i < image->tables_count; i++) {
        struct leaves_table *table = &image->tables[i];
        struct walk rows = {.image = image,
                            .tree = &table->tree,
                            .name = table->name,
                            .role = PAGE_OF_ROWS,
                            .leaves_too = !image->outline || table->tree.leaves <= OUTLINE_LEAVES_MAX,
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
        if (!bit(image->free, number))
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
    const struct page_tree *tables = &other->meta.trees[TREE_TABLES];
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

/* A later transaction, whole: its meta page with its number and its last page, and the format it says it has. */
struct later {
    struct meta meta;
    uint32_t format;
};

static enum image_other other_look(const struct image *image, struct later *ret_later)
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
        else if (number_fits(&other, after) && walk_rows(&other) && other.damaged == 0 &&
                 (other.said.commit == 0 || other.said.commit == after)) {
            other_end(&other);
            what = tail_free(&other) ? IMAGE_OTHER_LATER : IMAGE_OTHER_UNSURE;
        }
    }
    if (what == IMAGE_OTHER_LATER)
        *ret_later = (struct later){.meta = other.meta, .format = other.said.format};
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

static void check(struct image *image, uint64_t txn, struct image_report *ret_report)
{
    struct later later = {.format = 0};
    if (!image_begin(image, txn) || !image_walk(image))
        return;
    *ret_report = image_report(image);
    if (txn == 0) {
        ret_report->other = other_look(image, &later);
        ret_report->later_format = later.format;
    }
}

enum error image_check(int fd, uint64_t txn, struct image_report *ret_report, char *ret_text,
                       size_t text_size)
{
    struct image image = {.fd = fd, .text = ret_text, .text_size = text_size};
    check(&image, txn, ret_report);
    image_free(&image);
    return image.error;
}

struct image *image_create(void)
{
    return calloc(1, sizeof(struct image));
}

void image_destroy(struct image *image)
{
    if (image)
        image_free(image);
    free(image);
}

enum error image_check_slowly(struct image *image, int fd, image_rest *rest, void *arg,
                              struct image_report *ret_report, char *ret_text, size_t text_size)
{
    image_free(image); /* what a check that was never ended has left */
    *image =
        (struct image){.fd = fd, .rest = rest, .rest_arg = arg, .text = ret_text, .text_size = text_size};
    check(image, 0, ret_report);
    return image->error;
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
    struct later later;
    if (image_begin(&image, 0) && image_walk(&image)) {
        if (other_look(&image, &later) == IMAGE_OTHER_LATER)
            number_write(&image, &later.meta);
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

/* The outline of a large file, and its leaves for later. False also when the other slot isn't of the commit before, which
 * only a check of everything can judge. */
static bool outline(struct image *image, struct leaves **ret_leaves)
{
    struct later later;
    image->outline = true;
    if (!image_walk(image) || other_look(image, &later) != IMAGE_OTHER_BEFORE)
        return false;
    uint64_t held = image->file_size / image->page_size;
    if (ret_leaves && leaves_create(image->fd, image->page_size, held < image->pages ? held : image->pages,
                                    image->tables, image->tables_count, ret_leaves) != OK)
        return WRONG(image, ERR_MEMORY, "no memory for its leaves");
    return true;
}

enum error image_look(int fd, uint64_t whole_max, struct leaves **ret_leaves, struct image_report *ret_report,
                      char *ret_text, size_t text_size)
{
    struct image image = {.fd = fd, .text = ret_text, .text_size = text_size};
    bool whole, outlined = false;
    if (ret_leaves)
        *ret_leaves = NULL;
    if (!image_begin(&image, 0))
        return image.error;
    whole = image.pages * image.page_size <= whole_max;
    if (!whole && (outlined = outline(&image, ret_leaves)))
        *ret_report = image_report(&image);
    image_free(&image);
    return outlined || image.error ? image.error : image_check(fd, 0, ret_report, ret_text, text_size);
}
