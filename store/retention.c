#include "store/retention.h"

#include "store/api_key.h"
#include "store/audit.h"
#include "store/calendar.h"
#include "store/check.h"
#include "store/counter.h"
#include "store/delivery.h"
#include "store/job.h"
#include "store/job_bulk.h"
#include "store/ledger.h"
#include "store/rate_window.h"
#include "store/revocation.h"
#include "store/seen_token.h"
#include "store/signing_key.h"

struct kind {
    uint16_t number;
    retention_expire *expire;
    retention_find *find;
};

static const struct kind kinds[] = {
#define X(id, number, expire, find) {number, expire, find},
    RETENTION_KINDS(X)
#undef X
};

/* Filled before a store is opened, read by the writer and by check. */
static struct kind outside[RETENTION_OUTSIDE_MAX];
static uint32_t outside_count;

static const struct kind *kind_in(const struct kind *list, size_t count, uint16_t number)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].number == number)
            return &list[i];
    return NULL;
}

static const struct kind *kind_of(uint16_t number)
{
    const struct kind *kind = kind_in(kinds, sizeof(kinds) / sizeof(kinds[0]), number);
    return kind ? kind : kind_in(outside, outside_count, number);
}

void retention_extend(uint16_t number, retention_expire *expire, retention_find *find)
{
    const struct kind *kind = kind_of(number);
    ASSERT(number >= RETENTION_KIND_OUTSIDE && expire && find);
    if (kind) {
        ASSERT(kind->expire == expire && kind->find == find);
        return;
    }
    ASSERT(outside_count < RETENTION_OUTSIDE_MAX);
    outside[outside_count++] = (struct kind){number, expire, find};
}

void retention_set(struct txn *txn, uint16_t kind, uint64_t due_us, const struct uuid *id, uint64_t value)
{
    due_set(txn, &(struct due_entry){.queue = DUE_RETENTION,
                                     .shard = RETENTION_SHARD,
                                     .due_us = due_us,
                                     .id = *id,
                                     .row = {.kind = kind, .value = value}});
}

void retention_clear(struct txn *txn, uint64_t due_us, const struct uuid *id)
{
    (void)due_try_clear(txn, DUE_RETENTION, RETENTION_SHARD, due_us, id);
}

/* ---- the sweep ---- */

#define PAGE_MAX 32u /* entries on the stack at one time */

struct sweep {
    uint64_t now_us;
    uint32_t handled, removed;
    bool unfinished; /* the next entry isn't gone yet */
};

static void put_off(struct txn *txn, const struct due_entry *entry, uint64_t now_us)
{
    due_move(txn, entry, now_us < UINT64_MAX - RETENTION_AGAIN_US ? now_us + RETENTION_AGAIN_US : UINT64_MAX);
}

static const struct kind *kind_that_has(const struct kind *list, size_t count, struct txn *txn,
                                        const struct due_entry *entry)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].find(txn, entry) == OK)
            return &list[i];
    return NULL;
}

/* What the entry's row says it is about; when the row can't be read, or says what can't be, the kind that has such a thing. */
static const struct kind *kind_of_entry(struct txn *txn, struct due_entry *entry)
{
    struct key key = due_key(entry->queue, entry->shard, entry->due_us, &entry->id);
    const struct kind *kind = NULL;
    if (txn_read(txn, TABLE_DUE, key_span(&key), &entry->row) == OK)
        kind = kind_of(entry->row.kind);
    else
        entry->row = (struct due){.kind = 0};
    if (!kind)
        kind = kind_that_has(kinds, sizeof(kinds) / sizeof(kinds[0]), txn, entry);
    return kind ? kind : kind_that_has(outside, outside_count, txn, entry);
}

static void handle(struct txn *txn, struct sweep *sweep, struct due_entry *entry)
{
    const struct kind *kind = kind_of_entry(txn, entry);
    enum error e = kind ? kind->expire(txn, entry) : ERR_INVALID;
    sweep->handled++;
    switch (e) {
    case OK:
    case ERR_NOT_FOUND:
        retention_clear(txn, entry->due_us, &entry->id);
        sweep->removed += e == OK;
        break;
    case ERR_LIMIT:
        sweep->unfinished = true;
        break;
    default:
        put_off(txn, entry, sweep->now_us);
    }
}

/* Every entry handled has left the front, or ends the sweep: so each page begins there. */
static enum error things_expire(struct txn *txn, struct sweep *sweep, uint32_t limit)
{
    struct due_entry entries[PAGE_MAX];
    uint32_t count = 0;
    do {
        uint32_t left = limit - sweep->handled;
        uint32_t page = left < PAGE_MAX ? left : PAGE_MAX;
        enum error e =
            due_scan_keys(txn, DUE_RETENTION, RETENTION_SHARD, sweep->now_us, entries, page, &count);
        if (e)
            return e;
        for (uint32_t i = 0; i < count && !sweep->unfinished; i++)
            handle(txn, sweep, &entries[i]);
    } while (count > 0 && !sweep->unfinished && sweep->handled < limit);
    return OK;
}

/* From there the next start goes on. A row that can't be read says nothing. */
static void note_retained(struct txn *txn, uint64_t until_us)
{
    static const struct span no_label = {NULL, 0};
    int64_t noted = 0;
    if (counter_read(txn, COUNTER_RETAINED, no_label, &noted) == OK && until_us < INT64_MAX &&
        (int64_t)until_us >= noted + (int64_t)CALENDAR_NOTE_US)
        counter_add(txn, COUNTER_RETAINED, no_label, (int64_t)until_us - noted);
}

static enum error apply_sweep(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct retention_sweep *c = command;
    uint32_t limit = c->limit == 0 || c->limit > RETENTION_ROWS_MAX ? RETENTION_ROWS_MAX : c->limit;
    uint64_t until_us = c->until_us && c->until_us < at_us ? c->until_us : at_us;
    struct sweep sweep = {.now_us = until_us};
    uint32_t rows = 0;
    bool passing = false; /* rows of the ledger by, and there are others behind them */
    bool clearing;
    /* Either part may find damage: then it refuses by itself, and what the other one did is kept. */
    enum error things = things_expire(txn, &sweep, limit);
    enum error ledger = ledger_expire(txn, until_us, limit, &rows, &passing);
    audit_clear_outbox(txn, limit, &clearing);
    if (txn->writes == 0 && (things || ledger))
        return things ? things : ledger;
    if (c->until_us)
        note_retained(txn, until_us);
    uint32_t removed = sweep.removed + rows;
    uint32_t more = sweep.unfinished || sweep.handled == limit || rows == limit || passing || clearing;
    answer_add(answer, &removed, sizeof(removed));
    answer_add(answer, &more, sizeof(more));
    return OK;
}

#define retention_sweep_FIELD(name, TYPE, limit, since) \
    RECORD_FIELD(retention_sweep, name, TYPE, limit, since)
RECORD_CLASS(retention_sweep, RETENTION_SWEEP_FIELDS, 2);
const struct command_class retention_sweep_class = {
    .name = "retention.sweep",
    .record = &retention_sweep_record,
    .apply = apply_sweep,
    .code = 20,
    .cleanup = true,
};

/* ---- what must be true ---- */

void retention_check_due(struct check *check, struct txn *txn, const struct due_entry *entry)
{
    const struct kind *kind = kind_of(entry->row.kind);
    char id[UUID_TEXT_SIZE];
    uuid_format(&entry->id, id);
    if (!kind) {
        check_complain(check, "due: retention of %s is of the unknown kind %u", id, entry->row.kind);
        return;
    }
    switch (kind->find(txn, entry)) {
    case ERR_NOT_FOUND:
        check_complain(check, "due: retention is to remove %s (kind %u), which isn't there", id,
                       entry->row.kind);
        break;
    case ERR_CONFLICT:
        check_complain(check, "due: %s (kind %u) wants to be removed at another time", id, entry->row.kind);
        break;
    default: /* sound; or damaged, and complained about where it stands */
        break;
    }
}
