#include "store/event.h"

#include "store/store.h"

#define event_FIELD(name, TYPE, limit, since) RECORD_FIELD(event, name, TYPE, limit, since)
RECORD_CLASS(event, EVENT_FIELDS, 1);

#define STREAM_SIZE sizeof(struct uuid)
#define KEY_SIZE    (STREAM_SIZE + 8)

struct key event_key(const struct uuid *stream, uint64_t seq)
{
    struct key key = key_of_uuid(stream);
    key_add_u64(&key, seq);
    return key;
}

uint32_t event_topic(const struct uuid *stream)
{
    return STORE_TOPIC(TOPIC_EVENTS, stream->bytes[sizeof(stream->bytes) - 1]);
}

static struct scan scan_from(struct txn *txn, const struct uuid *stream, uint64_t seq,
                             enum scan_direction direction)
{
    struct key from = event_key(stream, seq);
    return txn_scan(txn, TABLE_EVENTS, key_span(&from), STREAM_SIZE, direction);
}

/* Numbers begin at 1; 0: this isn't the key of an event. */
static uint64_t seq_of(const struct scan *scan)
{
    return scan->key.size == KEY_SIZE ? key_u64((const uint8_t *)scan->key.bytes + STREAM_SIZE) : 0;
}

/* Number and time of the stream's last event; both 0 when there is none. */
static enum error newest(struct txn *txn, const struct uuid *stream, uint64_t *ret_seq, uint64_t *ret_at_us)
{
    struct key first = event_key(stream, 0);
    if (txn_beyond(txn, TABLE_EVENTS, key_span(&first))) {
        *ret_seq = *ret_at_us = 0;
        return OK;
    }
    struct scan scan = scan_from(txn, stream, UINT64_MAX, SCAN_DOWN);
    struct event event = {.at_us = 0};
    uint64_t seq = 0;
    bool found = scan_next(&scan) && scan_read(&scan, &event) == OK;
    if (found)
        seq = seq_of(&scan);
    enum error e = scan_end(&scan);
    if (e)
        return e;
    if (found && seq == 0)
        return ERR_DAMAGED;
    *ret_seq = seq;
    *ret_at_us = event.at_us;
    return OK;
}

enum error event_last(struct txn *txn, const struct uuid *stream, uint64_t *ret_seq)
{
    uint64_t at_us;
    return newest(txn, stream, ret_seq, &at_us);
}

enum error event_read(struct txn *txn, const struct uuid *stream, uint64_t seq, struct event *ret_event)
{
    struct key key = event_key(stream, seq);
    return txn_read(txn, TABLE_EVENTS, key_span(&key), ret_event);
}

/* Without the time: a repeat comes later than what it repeats. */
static bool same(const struct event *a, const struct event *b)
{
    return a->domain == b->domain && a->name == b->name && a->from_state == b->from_state &&
           a->to_state == b->to_state && span_equal(a->data, b->data);
}

static enum error compare(struct txn *txn, const struct uuid *stream, uint64_t seq, const struct event *event)
{
    struct event there;
    enum error e = event_read(txn, stream, seq, &there);
    if (e == ERR_NOT_FOUND)
        return ERR_CONFLICT; /* the stream is being removed, and this number is gone */
    if (e)
        return e;
    return same(&there, event) ? OK : ERR_CONFLICT;
}

enum error event_append(struct txn *txn, const struct uuid *stream, uint64_t at, const struct event *event,
                        uint64_t *ret_seq, bool *ret_repeated)
{
    uint64_t last, last_us;
    enum error e = newest(txn, stream, &last, &last_us);
    if (e)
        return e;
    if (at == 0)
        at = last + 1;
    if (at > last + 1)
        return ERR_CONFLICT;

    bool repeated = at <= last;
    if (repeated) {
        e = compare(txn, stream, at, event);
        if (e)
            return e;
    } else {
        struct key key = event_key(stream, at);
        struct event row = *event;
        if (row.at_us < last_us)
            row.at_us = last_us;
        txn_add(txn, TABLE_EVENTS, key_span(&key), &row);
        txn_wake(txn, event_topic(stream));
    }
    *ret_seq = at;
    if (ret_repeated)
        *ret_repeated = repeated;
    return OK;
}

enum error event_add(struct txn *txn, const struct uuid *stream, uint64_t seq, const struct event *event)
{
    struct key key = event_key(stream, seq);
    enum error e = txn_try_add(txn, TABLE_EVENTS, key_span(&key), event);
    if (e)
        return ERR_DAMAGED;
    txn_wake(txn, event_topic(stream));
    return OK;
}

/* Looks before anything goes: up to `limit` events from the first on, each sound and without a gap. */
static enum error removable(struct txn *txn, const struct uuid *stream, uint32_t limit, uint64_t *ret_first,
                            uint32_t *ret_count, bool *ret_left)
{
    struct scan scan = scan_from(txn, stream, 0, SCAN_UP);
    uint64_t first = 0;
    uint32_t count = 0;
    bool gap = false, left = false;
    while (!gap && !left && scan_next(&scan)) {
        uint64_t seq = seq_of(&scan);
        if (count == 0)
            first = seq;
        gap = seq == 0 || seq != first + count;
        left = count == limit;
        count += !left;
    }
    enum error e = scan_end(&scan);
    if (e)
        return e;
    if (gap)
        return ERR_DAMAGED;
    *ret_first = first;
    *ret_count = count;
    *ret_left = left;
    return OK;
}

enum error event_remove_stream(struct txn *txn, const struct uuid *stream, uint32_t limit, bool *ret_left)
{
    uint64_t first;
    uint32_t count;
    bool left;
    enum error e = removable(txn, stream, limit, &first, &count, &left);
    if (e)
        return e;
    for (uint32_t i = 0; i < count; i++) {
        struct key key = event_key(stream, first + i);
        txn_remove(txn, TABLE_EVENTS, key_span(&key));
    }
    *ret_left = left;
    return OK;
}
