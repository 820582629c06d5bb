#include "store/meta.h"

#include "runtime/assert.h"
#include "store/value.h"

#define meta_FIELD(name, TYPE, limit, since) RECORD_FIELD(meta, name, TYPE, limit, since)
RECORD_CLASS(meta, META_FIELDS, 1);

static enum error row_read(MDB_txn *txn, MDB_dbi dbi, const char *name, void *ret_bytes, size_t size)
{
    struct span key = span_text(name), bytes;
    MDB_val k = {.mv_size = key.size, .mv_data = (void *)(uintptr_t)key.bytes}, v;
    struct meta meta;
    uint8_t version;
    int code = mdb_get(txn, dbi, &k, &v);
    if (code)
        return code == MDB_NOTFOUND ? ERR_NOT_FOUND : ERR_DAMAGED;
    if (value_open(value_seed("meta"), key, span_of(v.mv_data, v.mv_size), &version, &bytes) != OK ||
        record_decode(&meta_record, version, bytes, &meta) != OK || meta.value.size != size)
        return ERR_DAMAGED;
    memcpy(ret_bytes, meta.value.bytes, size);
    return OK;
}

static int row_write(MDB_txn *txn, MDB_dbi dbi, const char *name, const void *bytes, size_t size)
{
    uint8_t value[VALUE_HEAD + sizeof(uint32_t) + META_VALUE_MAX];
    struct span key = span_text(name);
    struct meta meta = {.value = span_of(bytes, size)};
    size_t length = value_write(value_seed("meta"), key, &meta_record, &meta, value, sizeof(value));
    ASSERT(length);
    MDB_val k = {.mv_size = key.size, .mv_data = (void *)(uintptr_t)key.bytes};
    MDB_val v = {.mv_size = length, .mv_data = value};
    return mdb_put(txn, dbi, &k, &v, 0);
}

struct format_row {
    uint32_t format, unused;
    struct uuid identity;
};

enum error meta_read_format(MDB_txn *txn, MDB_dbi dbi, struct meta_format *ret_format)
{
    struct format_row row;
    enum error e = row_read(txn, dbi, "format", &row, sizeof(row));
    if (e)
        return e;
    ret_format->format = row.format;
    ret_format->identity = row.identity;
    if (row_read(txn, dbi, "secret", ret_format->secret, sizeof(ret_format->secret)) != OK ||
        row_read(txn, dbi, "commit", &ret_format->commit, sizeof(ret_format->commit)) != OK)
        return ERR_DAMAGED;
    return OK;
}

int meta_write_format(MDB_txn *txn, MDB_dbi dbi, uint32_t format, const struct uuid *identity)
{
    struct format_row row = {.format = format, .identity = *identity};
    return row_write(txn, dbi, "format", &row, sizeof(row));
}

int meta_write_stamp(MDB_txn *txn, MDB_dbi dbi)
{
    uint64_t commit = mdb_txn_id(txn);
    return row_write(txn, dbi, "commit", &commit, sizeof(commit));
}

int meta_write_birth(MDB_txn *txn, MDB_dbi dbi, uint32_t format, const uint8_t birth[32])
{
    struct uuid identity;
    memcpy(identity.bytes, birth, sizeof(identity.bytes));
    identity.bytes[6] = (uint8_t)((identity.bytes[6] & 0x0f) | 0x40); /* chance alone: version 4 */
    identity.bytes[8] = (uint8_t)((identity.bytes[8] & 0x3f) | 0x80);
    int code = meta_write_format(txn, dbi, format, &identity);
    if (!code)
        code = row_write(txn, dbi, "secret", birth + 16, 16);
    return code ? code : meta_write_stamp(txn, dbi);
}
