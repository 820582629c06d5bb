/* Export: every row of a store as one line of JSON, for people and for other programs.
 *
 *     {"table":"audits","key":"0193...","version":1,"record":{"id":"...","at":"2026-11-18T13:04:51.123456Z",...}}
 *
 * Tables in the order of the schema, rows in the order of their keys; key is in hex, record has the members of the
 * table's record in the order of its fields. The rows that make up a store's secret are among them: what is exported
 * is to be guarded like a backup.
 *
 * An export may take long, and a reader that holds one state for long makes the store's file grow. So it goes on to the
 * newest state after every EXPORT_ROWS rows, at the key after the last one: each row is one that was committed, but
 * rows of different stretches may be of different moments. A state of one moment is what a backup is.
 * Every page is looked at before: a tree that is damaged would only lack rows.
 */
#ifndef COPPICE_STORE_EXPORT_H
#define COPPICE_STORE_EXPORT_H

#include "store/guest.h"

#define EXPORT_ROWS       4096u
#define EXPORT_RECORD_MAX 1024u /* bytes of the largest struct of a record */

struct export_report {
    uint64_t rows;
    uint64_t states; /* that were looked at */
};

/* Flushes at the end of each stretch. ERR_DAMAGED with the page, and nothing is written; or with table and key after which
 * nothing can be believed; ERR_IO: the
 * sink takes no more (its status says so). The lines before are whole. */
enum error export_jsonl(struct guest *guest, struct json_sink *sink, struct export_report *ret_report,
                        char *ret_text, size_t text_size);

#endif
