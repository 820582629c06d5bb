/* A store of its own for a test: a fresh directory, the parcels' schema, opened again as often as wanted.
 *
 * The secret is always the same one, so that partitions and tokens are.
 */
#ifndef COPPICE_TESTS_STORE_FRESH_H
#define COPPICE_TESTS_STORE_FRESH_H

#include "store/view.h"
#include "tests/support/parcel.h"

struct fresh {
    char dir[256];
    struct store *store;
    const struct schema *schema;
    uint32_t ledger_max; /* from the next opening on; 0: the usual one */
};

void fresh_open(struct fresh *fresh);
void fresh_reopen(struct fresh *fresh);
/* Checks all rows, which must be sound, closes and removes the directory. */
void fresh_close(struct fresh *fresh);

/* Something done within a transaction of the store, as a command of its own. Its error is the command's. */
typedef enum error fresh_body(struct txn *txn, uint64_t at_us, void *context);
enum error fresh_do(struct fresh *fresh, uint64_t at_us, fresh_body *body, void *context);

/* Findings of check_rows; the first one is in *ret_text. */
#define FRESH_TEXT 512
uint64_t fresh_findings(struct fresh *fresh, char ret_text[FRESH_TEXT]);
/* Whether check would tell of this, had the body been done: it is taken back. */
bool fresh_would_find(struct fresh *fresh, fresh_body *body, void *context, const char *part);
/* One row, whatever anybody says: it is there with this record; it goes; one byte of it is another, and with the next call as it was. */
void fresh_put(struct fresh *fresh, uint32_t table, struct key key, const void *record);
void fresh_take(struct fresh *fresh, uint32_t table, struct key key);
void fresh_flip(struct fresh *fresh, uint32_t table, struct key key);
/* One that is whole by its checksum, and has a record of another kind; or one of a later version than anybody knows. */
void fresh_crumb(struct fresh *fresh, uint32_t table, struct key key);
void fresh_newer(struct fresh *fresh, uint32_t table, struct key key);
/* Whether check would tell of this, had that row this record (NULL: had it gone). */
bool fresh_finds(struct fresh *fresh, uint32_t table, struct key key, const void *record, const char *part);
/* Whether check tells of it now. */
bool fresh_tells(struct fresh *fresh, const char *part);
/* Part of a sentence that names this one; good until the next. */
const char *fresh_about(const char *before, const struct uuid *id, const char *after);
void fresh_sound(struct fresh *fresh); /* no findings, or the test fails with the first */
int64_t fresh_counter(struct fresh *fresh, uint16_t counter, struct span label);

/* ---- chance that is the same each time ---- */

uint64_t fresh_random(void);
uint32_t fresh_below(uint32_t bound);
struct uuid fresh_uuid(void); /* all chance, so in no order */

#endif
