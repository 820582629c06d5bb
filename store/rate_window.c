#include "store/rate_window.h"

#include "store/check.h"
#include "store/named_id.h"
#include "store/retention.h"
#include "store/store.h"

#define rate_window_FIELD(name, TYPE, limit, since) RECORD_FIELD(rate_window, name, TYPE, limit, since)
RECORD_CLASS(rate_window, RATE_WINDOW_FIELDS, 1);
#define rate_window_take_FIELD(name, TYPE, limit, since) \
    RECORD_FIELD(rate_window_take, name, TYPE, limit, since)
RECORD_CLASS(rate_window_take, RATE_WINDOW_TAKE_FIELDS, 1);

/* Key and, for its due entry, id. */
static struct uuid id_of(const struct txn *txn, uint8_t bucket, struct span actor)
{
    const struct span parts[] = {span_of(&bucket, sizeof(bucket)), actor};
    return named_id(txn->store, "rate_window", parts, 2);
}

struct window {
    uint64_t times[RATE_WINDOW_QUOTA_MAX];
    uint32_t count;
};

/* The times of the row that still count, none of them ahead of now. */
static void look_back(const struct rate_window *row, uint64_t now_us, uint64_t window_us, struct window *ret)
{
    ret->count = 0;
    for (uint32_t i = 0; i < row->times.size / sizeof(uint64_t); i++) {
        uint64_t at;
        memcpy(&at, (const uint8_t *)row->times.bytes + i * sizeof(at), sizeof(at));
        at = at < now_us ? at : now_us;
        if (now_us - at < window_us)
            ret->times[ret->count++] = at;
    }
}

static void write_row(struct txn *txn, const struct uuid *id, struct rate_window *row,
                      const struct window *window)
{
    struct key key = key_of_uuid(id);
    row->newest_us = window->times[window->count - 1];
    row->times = span_of(window->times, window->count * sizeof(uint64_t));
    txn_write(txn, TABLE_RATE_WINDOWS, key_span(&key), row);
}

static enum error apply_take(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct rate_window_take *c = command;
    struct rate_window_taken taken = {.allowed = 1};
    struct rate_window row;
    struct window window = {.count = 0};
    if (c->actor.size == 0 || c->quota == 0 || c->quota > RATE_WINDOW_QUOTA_MAX || c->window_us == 0 ||
        c->window_us > RATE_WINDOW_IDLE_US || at_us >= UINT64_MAX - RATE_WINDOW_IDLE_US)
        return ERR_INVALID;
    struct uuid id = id_of(txn, c->bucket, c->actor);
    struct key key = key_of_uuid(&id);
    enum error e = txn_read(txn, TABLE_RATE_WINDOWS, key_span(&key), &row);
    if (e && e != ERR_NOT_FOUND)
        return e;
    bool there = e == OK;
    if (there)
        look_back(&row, at_us, c->window_us, &window);
    if (window.count >= c->quota) {
        taken.allowed = 0; /* more than the quota are there when it was lowered: all of those must leave */
        taken.wait_us = window.times[window.count - c->quota] + c->window_us - at_us;
        answer_add(answer, &taken, sizeof(taken));
        return OK;
    }
    uint64_t sweep_us = there ? row.sweep_us : at_us + RATE_WINDOW_IDLE_US;
    window.times[window.count++] = at_us;
    row = (struct rate_window){.actor = c->actor, .bucket = c->bucket, .sweep_us = sweep_us};
    write_row(txn, &id, &row, &window);
    if (!there)
        retention_set(txn, RETENTION_RATE_WINDOW, sweep_us, &id, 0);
    taken.remaining = c->quota - window.count;
    taken.wait_us = c->window_us;
    answer_add(answer, &taken, sizeof(taken));
    return OK;
}

const struct command_class rate_window_take_class = {
    .name = "rate_window.take",
    .record = &rate_window_take_record,
    .apply = apply_take,
    .code = 130,
};

/* ---- when it is looked at ---- */

/* One used within the day before is looked at again a day after that use; so a row that is in use all the time costs one
 * due entry a day and not one a request. */
enum error rate_window_expire(struct txn *txn, const struct due_entry *entry)
{
    struct key key = key_of_uuid(&entry->id);
    uint8_t actor[RATE_WINDOW_ACTOR_MAX], times[RATE_WINDOW_QUOTA_MAX * sizeof(uint64_t)];
    struct rate_window row;
    enum error e = txn_read(txn, TABLE_RATE_WINDOWS, key_span(&key), &row);
    if (e)
        return e;
    uint64_t idle_at = row.newest_us + RATE_WINDOW_IDLE_US;
    if (idle_at <= entry->due_us) {
        txn_remove(txn, TABLE_RATE_WINDOWS, key_span(&key));
        return OK;
    }
    memcpy(actor, row.actor.bytes, row.actor.size);
    memcpy(times, row.times.bytes, row.times.size);
    row.actor.bytes = actor; /* what was read goes with the first write */
    row.times.bytes = times;
    row.sweep_us = idle_at;
    retention_clear(txn, idle_at, &entry->id); /* one that was put off may stand there */
    retention_set(txn, RETENTION_RATE_WINDOW, idle_at, &entry->id, 0);
    txn_write(txn, TABLE_RATE_WINDOWS, key_span(&key), &row);
    return OK;
}

enum error rate_window_find_due(struct txn *txn, const struct due_entry *entry)
{
    struct key key = key_of_uuid(&entry->id);
    struct rate_window row;
    enum error e = txn_read(txn, TABLE_RATE_WINDOWS, key_span(&key), &row);
    if (e)
        return e;
    return row.sweep_us == entry->due_us ? OK : ERR_CONFLICT;
}

/* ---- what must be true ---- */

void rate_window_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    const struct rate_window *row = value;
    struct uuid id = id_of(txn, row->bucket, row->actor);
    struct key due_at = due_key(DUE_RETENTION, RETENTION_SHARD, row->sweep_us, &id);
    uint64_t before = 0, at = 0;
    struct due due;
    if (!span_equal(key, span_of(id.bytes, sizeof(id.bytes))))
        check_complain(check, "rate_windows: '%.*s' stands under another key", (int)row->actor.size,
                       (const char *)row->actor.bytes);
    if (txn_read(txn, TABLE_DUE, key_span(&due_at), &due) == ERR_NOT_FOUND)
        check_complain(check, "rate_windows: '%.*s' will never be removed", (int)row->actor.size,
                       (const char *)row->actor.bytes);
    if (row->times.size == 0 || row->times.size % sizeof(uint64_t) != 0)
        check_complain(check, "rate_windows: '%.*s' has no times", (int)row->actor.size,
                       (const char *)row->actor.bytes);
    for (uint32_t i = 0; i + sizeof(at) <= row->times.size; i += (uint32_t)sizeof(at), before = at) {
        memcpy(&at, (const uint8_t *)row->times.bytes + i, sizeof(at));
        if (at < before)
            check_complain(check, "rate_windows: '%.*s' has times out of order", (int)row->actor.size,
                           (const char *)row->actor.bytes);
    }
    if (at != row->newest_us)
        check_complain(check, "rate_windows: '%.*s' has another newest time", (int)row->actor.size,
                       (const char *)row->actor.bytes);
}
