/* Rows that are set aside: new rows of tables that hardly anybody looks into before the commit. They go into their tables at its end,
 * a table at a time and in the order of their keys (store/txn.h).
 *
 * So LMDB hands out a commit's pages table by table: those whose rows stay stand side by side, and so do those that the next
 * commit frees again, in long stretches instead of twos and threes between the others (store/fallow.h). And rows that go into one
 * page go there one after the other.
 *
 * Room for ASIDE_BYTES of keys and values and ASIDE_ROWS_MAX rows, from open to close; larger values than ASIDE_VALUE_MAX have pages
 * of their own anyway. Belongs to the writer's thread. Nothing blocks.
 */
#ifndef COPPICE_STORE_ASIDE_H
#define COPPICE_STORE_ASIDE_H

#include "store/keys.h"
#include "store/schema.h"
#include "store/store.h"

#define ASIDE_TABLES   3u /* new rows of a submit, each in another one */
#define ASIDE_ROWS_MAX (ASIDE_TABLES * BATCH_MAX)
#define ASIDE_BYTES \
    (UINT32_C(1) << 20) /* 700 submits with a payload of 1 KiB; with more the first ones go earlier */
#define ASIDE_VALUE_MAX 2048u

struct aside_row {
    struct aside_row *next;
    struct span key, value;
};

struct aside {
    uint8_t *bytes;         /* ASIDE_BYTES */
    struct aside_row *rows; /* ASIDE_ROWS_MAX */
    uint32_t bytes_count, rows_count;
    uint64_t tables; /* a bit for each that has rows here */
    struct aside_row *newest[SCHEMA_TABLES_MAX];
};

/* NULL: no memory. */
struct aside *aside_new(void);
void aside_delete(struct aside *aside); /* accepts NULL */

/* Copies both. False: there is no room, or the value is too large. */
bool aside_put(struct aside *aside, uint32_t table, struct span key, struct span value);
/* All rows of the table, the smallest key first, linked by `next`; they are good until the next aside_put. NULL: none. */
struct aside_row *aside_take(struct aside *aside, uint32_t table);
void aside_clear(struct aside *aside);

#endif
