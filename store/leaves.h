/* Leaves: the part of a large file that its start has not looked at.
 *
 * Of a file with up to environment_options.whole_max bytes in use a start reads every page. Of a larger one it reads
 * what leads to rows: the meta pages, both lists of free pages, the tree of tables, every branch, and small tables
 * wholly (image_look). What is left are leaves and the values that lie on pages of their own. From then on they are
 * pending: each is looked at before something is read from it, and all of them, with all that an image check looks
 * at, before the first write (environment_believe). Meanwhile nobody writes, so the file stays what it was at the
 * start, and where LMDB will go for a key is known before it goes there.
 *
 * A leaf is looked at once: whether it is sound as a page, its keys belong there, and each of its values is what was
 * written. So a reader gets what was written or ERR_DAMAGED, also for "not found", and LMDB never walks on a page that
 * nobody has looked at.
 *
 * leaves_look: any thread, at any time; it reads through a map of its own and doesn't wait but for the disk. The rest
 * belongs to whoever opens and writes.
 */
#ifndef COPPICE_STORE_LEAVES_H
#define COPPICE_STORE_LEAVES_H

#include <stdatomic.h>

#include "runtime/error.h"
#include "store/page.h"

struct leaves_table {
    char name[PAGE_KEY_MAX + 1];
    struct page_tree tree;
};

struct leaves;

/* Over trees whose branches are sound and lead nowhere but into the file's first `pages` pages. ERR_MEMORY. */
enum error leaves_create(int fd, uint32_t page_size, uint64_t pages, const struct leaves_table *tables,
                         uint32_t tables_count, struct leaves **ret_leaves);
void leaves_destroy(struct leaves *leaves); /* accepts NULL */
/* `number` is how leaves_look will call the table of this name. One that the file doesn't have has no leaves. */
void leaves_bind(struct leaves *leaves, uint32_t number, const char *name);
/* False for NULL, and once everything has been looked at. */
bool leaves_pending(const struct leaves *leaves);
void leaves_done(struct leaves *leaves);

/* Where LMDB is about to go. AT: to this key; a value there is verified when it is read. The others also answer for
 * what isn't there: AROUND for this key, and one step from it to either side; FIRST and LAST for an end of the table and
 * one step from it. */
enum leaves_way { LEAVES_AT, LEAVES_AROUND, LEAVES_FIRST, LEAVES_LAST };

/* OK: it may go. ERR_DAMAGED: it may not; or, but for AT, a value there or its key isn't what was written, so that a row
 * that isn't found may be that one. A key in a branch that isn't what was written leads to a neighbour of the right leaf,
 * whose own keys show it: so both neighbours are looked at. */
enum error leaves_look(struct leaves *leaves, uint32_t number, enum leaves_way way, struct span key);

#endif
