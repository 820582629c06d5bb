/* Figures of the store, for /stats and /metrics: read by one short view, copied, and closed before anything is sent. */
#ifndef COPPICE_HTTP_STORE_FIGURES_H
#define COPPICE_HTTP_STORE_FIGURES_H

#include "runtime/json.h"
#include "store/outbox.h"
#include "store/store.h"

struct store_figures {
    struct store *store; /* NULL: there is none */
    bool known;          /* what follows could be read */
    struct environment_stats environment;
    uint64_t rows[SCHEMA_TABLES_MAX];
    enum outbox_level outbox[OUTBOX_PARTITIONS];
    int64_t dead[OUTBOX_PARTITIONS]; /* rows that it has given up */
};
/* From an actor. */
void store_figures_read(struct store_figures *ret_figures);
/* An object; null without a store. */
void store_figures_write(const struct store_figures *figures, struct json *json);

#endif
