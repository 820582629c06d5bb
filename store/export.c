#include "store/export.h"

#include <stdio.h>

struct export
{
    struct guest *guest;
    struct json_sink *sink;
    struct json json;
    struct export_report report;
    uint32_t table;
    struct key last; /* of the rows of the table that were written; empty: none was */
    char *text;
    size_t text_size;
};

#define HEX_SIZE (2 * KEY_SIZE_MAX + 1)

static void hex(struct span bytes, char text[HEX_SIZE])
{
    const uint8_t *at = bytes.bytes;
    for (uint32_t i = 0; i < bytes.size; i++) {
        text[2 * i] = "0123456789abcdef"[at[i] >> 4];
        text[2 * i + 1] = "0123456789abcdef"[at[i] & 15];
    }
    text[2 * bytes.size] = 0;
}

static const struct schema_table *table(const struct export *x)
{
    return &x->guest->store.schema->tables[x->table];
}

static enum error refuse(const struct export *x, enum error e)
{
    char key[HEX_SIZE];
    hex(key_span(&x->last), key);
    if (x->sink->status != JSON_OK)
        snprintf(x->text, x->text_size, "the export can't be written: %s", json_status_name(x->sink->status));
    else
        snprintf(x->text, x->text_size,
                 "table %s, the row after %s%s: %s; the export ends here, 'coppice check' says more",
                 table(x)->name, *key ? "key " : "its beginning", key, error_name(e));
    return e;
}

static void write_row(struct export *x, const struct scan *scan, const void *record)
{
    char key[HEX_SIZE];
    hex(scan->key, key);
    json_init(&x->json, x->sink);
    json_object_begin(&x->json);
    JSON_MEMBER(&x->json, "table", string, table(x)->name);
    JSON_MEMBER(&x->json, "key", string, key);
    JSON_MEMBER(&x->json, "version", uint, scan->version);
    json_key(&x->json, "record");
    json_object_begin(&x->json);
    record_write_json(table(x)->record, record, &x->json);
    json_object_end(&x->json);
    json_object_end(&x->json);
    json_sink_text(x->sink, "\n"); /* json_end would flush each line */
}

/* Up to EXPORT_ROWS rows behind the last one, of one state. *ret_more: the table may have others. */
static enum error write_stretch(struct export *x, bool *ret_more)
{
    _Alignas(16) char record[EXPORT_RECORD_MAX];
    struct span from = key_span(&x->last);
    struct scan scan = txn_scan(&x->guest->txn, x->table, from, 0, SCAN_UP);
    struct key last = x->last;
    uint32_t rows = 0;
    ASSERT(table(x)->record->size <= sizeof(record));
    while (rows < EXPORT_ROWS && scan_next(&scan)) {
        if (last.size && span_equal(scan.key, key_span(&last)))
            continue; /* where the stretch before ended */
        if (scan_read(&scan, record) != OK)
            break;
        write_row(x, &scan, record);
        x->last.size = 0;
        key_add(&x->last, scan.key.bytes, scan.key.size);
        rows++;
        if (x->sink->status != JSON_OK)
            break;
    }
    x->report.rows += rows;
    *ret_more = rows == EXPORT_ROWS;
    enum error e = scan_end(&scan);
    if (json_sink_flush(x->sink) != JSON_OK)
        return refuse(x, ERR_IO);
    return e ? refuse(x, e) : OK;
}

static enum error write_table(struct export *x)
{
    bool more = true;
    x->last.size = 0;
    while (more) {
        enum error e = write_stretch(x, &more);
        if (e)
            return e;
        e = guest_renew(x->guest);
        if (e) {
            snprintf(x->text, x->text_size, "the newest state of the store can't be read: %s", error_name(e));
            return e;
        }
        x->report.states++;
    }
    return OK;
}

/* A damaged value ends the export when its turn comes. */
static enum error look(struct guest *guest, char *ret_text, size_t text_size)
{
    struct image_report image = {.damaged = 0};
    char why[256] = "";
    enum error e = guest_look(guest, &image, why, sizeof(why));
    if (e == OK || (e == ERR_DAMAGED && image.damaged > 0))
        return OK;
    snprintf(ret_text, text_size, "%s; nothing was exported", why);
    return e;
}

enum error export_jsonl(struct guest *guest, struct json_sink *sink, struct export_report *ret_report,
                        char *ret_text, size_t text_size)
{
    struct export x = {
        .guest = guest, .sink = sink, .report.states = 1, .text = ret_text, .text_size = text_size};
    enum error damaged = look(guest, ret_text, text_size);
    if (damaged)
        return damaged;
    for (x.table = 0; x.table < guest->store.schema->tables_count; x.table++) {
        enum error e = write_table(&x);
        if (e)
            return e;
    }
    *ret_report = x.report;
    return OK;
}
