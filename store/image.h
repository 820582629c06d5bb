/* Images: a data file as it lies on the disk, looked at page by page (store/page.h) without LMDB and without mapping it.
 *
 * Knows LMDB's format 0.9 (little-endian, 64 bits): two meta pages, the newer one counts; from its two roots every
 * page is reached exactly once or is in the list of free pages, no page is both, none beyond the last one; pages
 * have the right kind, bounds and order of keys; counts of entries, pages and depth are what the roots say. The
 * values' own checksums are verified as well. So whatever LMDB would do with the file, it does with what was
 * written, or the image is refused.
 *
 * Reads with pread and never trusts a number from the file before it was compared with a bound.
 */
#ifndef COPPICE_STORE_IMAGE_H
#define COPPICE_STORE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/error.h"

/* What is in the slot of the meta page that doesn't count. LATER: the next transaction, whole, under the number of one
 * before: its last write of all failed, and whether it was done was never told to anybody; or it was done, and its
 * number is damaged. UNSURE: nothing that could be there; so perhaps it was a later transaction that was acknowledged.
 * A failed write leaves LATER, and UNSURE only when another transaction was begun over it. A start gives LATER its number
 * back (image_finish) and refuses UNSURE. */
enum image_other { IMAGE_OTHER_BEFORE, IMAGE_OTHER_LATER, IMAGE_OTHER_UNSURE };

struct image_report {
    uint64_t txn;                 /* of the meta page that counts */
    uint64_t pages;               /* up to the last one in use */
    uint64_t reached, free, lost; /* lost: neither reached nor free; a waste, not damage */
    uint64_t rows;
    uint64_t damaged; /* values that aren't what was written; the tree that leads to them is sound */
    uint32_t page_size;
    enum image_other other; /* only of a check of the newest transaction */
    uint32_t later_format;  /* with LATER: what that transaction says of itself (store/meta.h); 0: nothing */
};

/* The meta pages only: is this an LMDB file of ours, whole as far as they say? For a look beside a living writer. Only
 * when the file is shorter than they say everything is looked at, because what is missing may have been free.
 * OK, ERR_FOREIGN (another kind of file), ERR_DAMAGED, ERR_IO, ERR_MEMORY. */
enum error image_peek(int fd, struct image_report *ret_report, char *ret_text, size_t text_size);
/* What a start looks at, while nobody writes. With up to `whole_max` bytes in use: all of it, and *ret_leaves is NULL.
 * With more, its outline: the meta pages, the lists of free pages of both transactions, the tree of tables, each branch, and
 * tables of a few pages wholly; *ret_leaves (may be NULL) is then what is left, and the report's rows, reached and lost
 * count what was seen. A file whose other meta page isn't of the commit before is looked at wholly, whatever its size.
 * As image_peek. */
struct leaves;
enum error image_look(int fd, uint64_t whole_max, struct leaves **ret_leaves, struct image_report *ret_report,
                      char *ret_text, size_t text_size);
/* All of it, for the transaction `txn` (0: the newest). Memory: two bits per page and the largest value, from the
 * heap. Beside a living writer: for the transaction of an open reader, which keeps its pages.
 * As image_peek; ERR_NOT_FOUND: no meta page is of that transaction (any more). With ERR_DAMAGED the report is written
 * as well when values are all that is damaged. */
enum error image_check(int fd, uint64_t txn, struct image_report *ret_report, char *ret_text,
                       size_t text_size);
/* As image_check of the newest transaction, with a rest between each few pages, in which the caller may do other things and
 * even end: what is allocated belongs to `image`, which can be used again and is destroyed by whoever created it. */
struct image;
typedef void image_rest(void *arg);
struct image *image_create(void);        /* NULL: no memory */
void image_destroy(struct image *image); /* accepts NULL */
enum error image_check_slowly(struct image *image, int fd, image_rest *rest, void *arg,
                              struct image_report *ret_report, char *ret_text, size_t text_size);
/* When a check has just said LATER: gives that transaction its number back, and syncs. So a commit that was
 * acknowledged isn't lost to one damaged bit, and one whose end nobody knew is done. Only while one holds the directory's
 * lock, before LMDB opens the file. OK, ERR_NOT_FOUND (there is none), or as image_check. */
enum error image_finish(int fd, char *ret_text, size_t text_size);

#endif
