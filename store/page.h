/* One page of LMDB 0.9's, as it lies in the file: is it sound by itself, and what is on it?
 *
 * Numbers are little-endian; a page's number times the page size is where it lies.
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
 * A page is looked into only after page_wrong has found nothing; then no number on it leads out of it. Nothing here
 * reads files, waits or allocates; any thread.
 */
#ifndef COPPICE_STORE_PAGE_H
#define COPPICE_STORE_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/span.h"

#define PAGE_HEAD     16u
#define PAGE_SIZE_MIN 4096u
#define PAGE_SIZE_MAX 32768u
#define PAGE_NONE     UINT64_MAX /* the root of an empty tree */
#define PAGE_DEPTH    32u        /* of a tree, at most: LMDB's cursors hold as many pages */
#define PAGE_KEY_MAX  511u       /* of LMDB */

enum page_kind { PAGE_BRANCH = 1, PAGE_LEAF = 2, PAGE_OVERFLOW = 4, PAGE_META = 8 };
enum page_flag { NODE_BIG = 1, NODE_TREE = 2 };
enum page_role { PAGE_OF_FREE, PAGE_OF_TABLES, PAGE_OF_ROWS };

struct page_head {
    uint64_t number;
    uint16_t pad, kind, lower, upper;
};
struct page_node {
    uint16_t low, high, flags, key_size;
};
struct page_tree {
    uint32_t pad; /* in the first tree of a meta page: the page size */
    uint16_t flags, depth;
    uint64_t branches, leaves, overflows, entries, root;
};

/* What is wrong with a branch or a leaf that should have this number and belong to such a tree; NULL: nothing. */
const char *page_wrong(const uint8_t *page, uint32_t page_size, uint64_t number, enum page_role role,
                       bool leaf);
/* The same about its keys: each greater than the one before, at least `low` (a branch's second greater than that) and
 * below `high`; NULL: unbounded. Of a page that page_wrong has found nothing wrong with. */
const char *page_order_wrong(const uint8_t *page, enum page_role role, bool leaf, const struct span *low,
                             const struct span *high);
/* And about the head of a run of pages that should hold a value of `size` bytes. `room`: pages from it to the last one. */
const char *page_run_wrong(const struct page_head *head, uint32_t page_size, uint64_t number, uint64_t room,
                           uint32_t size);

struct page_head page_head(const uint8_t *page);
uint64_t page_run(const struct page_head *head); /* its pages */
uint32_t page_count(const uint8_t *page);        /* nodes */
struct page_node page_node(const uint8_t *page, uint32_t index);
struct span page_key(const uint8_t *page, uint32_t index);
const uint8_t *page_data(const uint8_t *page,
                         uint32_t index); /* of a leaf; page_data_size bytes, or a run's number */
uint32_t page_data_size(struct page_node node);
uint64_t page_child(const uint8_t *page, uint32_t index); /* of a branch */
int page_compare(enum page_role role, struct span a, struct span b);

#endif
