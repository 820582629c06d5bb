/* The meta table: what a store says about itself. Three rows, each a record of up to META_VALUE_MAX bytes:
 *
 *     "format"   u32 format, u32 0, identity:16     little-endian
 *     "secret"   16 bytes of chance                 tokens and partitions are made with it
 *     "commit"   u64                                the transaction that wrote it, which is every one
 *
 * The stamp says of which commit the rows are: a start that finds them under a meta page with another number refuses. That
 * the number itself is damaged, so that the newest commit looks like an older one, is seen by the lists of free pages
 * (store/image.h); a meta page that was put back as a whole to what it was two commits before isn't seen at all.
 * Used by environment.c and store.c, over LMDB's transactions, before there is a store.
 */
#ifndef COPPICE_STORE_META_H
#define COPPICE_STORE_META_H

#include <lmdb.h>

#include "store/record.h"

#define META_VALUE_MAX 256u
#define META_FIELDS(X) X(value, BYTES, META_VALUE_MAX, 1)
RECORD_STRUCT(meta, META_FIELDS);

struct meta_format {
    uint32_t format;
    uint64_t commit;
    struct uuid identity;
    uint8_t secret[16];
};

/* ERR_NOT_FOUND: no row "format": not a store of ours. ERR_DAMAGED when one of the others is missing. */
enum error meta_read_format(MDB_txn *txn, MDB_dbi dbi, struct meta_format *ret_format);
/* Return LMDB's codes. */
int meta_write_birth(MDB_txn *txn, MDB_dbi dbi, uint32_t format, const uint8_t birth[32]);
int meta_write_format(MDB_txn *txn, MDB_dbi dbi, uint32_t format, const struct uuid *identity);
int meta_write_stamp(MDB_txn *txn, MDB_dbi dbi);

#endif
