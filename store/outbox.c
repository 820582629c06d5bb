#include "store/outbox.h"

#include <stdio.h>

#include "runtime/hash.h"
#include "store/check.h"
#include "store/counter.h"
#include "store/event.h"
#include "store/store.h"

#define KEY_SIZE                               10u /* partition:2 seq:8 */
#define PARTITION_SIZE                         2u

#define outbox_FIELD(name, TYPE, limit, since) RECORD_FIELD(outbox, name, TYPE, limit, since)
RECORD_CLASS(outbox, OUTBOX_FIELDS, 1);
#define claim_FIELD(name, TYPE, limit, since) RECORD_FIELD(claim, name, TYPE, limit, since)
RECORD_CLASS(claim, CLAIM_FIELDS, 1);
#define dead_FIELD(name, TYPE, limit, since) RECORD_FIELD(dead, name, TYPE, limit, since)
RECORD_CLASS(dead, DEAD_FIELDS, 1);

static struct key partition_key(uint16_t partition)
{
    struct key key;
    key.size = 0;
    key_add_u16(&key, partition);
    return key;
}

struct key outbox_key(uint16_t partition, uint64_t seq)
{
    struct key key = partition_key(partition);
    key_add_u64(&key, seq);
    return key;
}

void outbox_id_format(uint16_t partition, uint64_t seq, char text[OUTBOX_ID_SIZE])
{
    snprintf(text, OUTBOX_ID_SIZE, "%u-%llu", partition, (unsigned long long)seq);
}

/* Digits up to the end or to what is none; UINT64_MAX when there are too many. */
static uint64_t number_at(const char *text, uint32_t size, uint32_t *at)
{
    uint64_t value = 0;
    for (; *at < size && text[*at] >= '0' && text[*at] <= '9'; ++*at) {
        uint64_t digit = (uint64_t)(text[*at] - '0');
        value = value > (UINT64_MAX - digit) / 10 ? UINT64_MAX : value * 10 + digit;
    }
    return value;
}

bool outbox_id_parse(struct span text, uint16_t *ret_partition, uint64_t *ret_seq)
{
    char again[OUTBOX_ID_SIZE];
    uint32_t at = 0;
    uint64_t partition = number_at(text.bytes, text.size, &at);
    if (partition > UINT16_MAX || at == text.size)
        return false;
    at++;
    uint64_t seq = number_at(text.bytes, text.size, &at);
    outbox_id_format((uint16_t)partition, seq, again); /* there is one way to write it */
    if (!span_equal(text, span_text(again)))
        return false;
    *ret_partition = (uint16_t)partition;
    *ret_seq = seq;
    return true;
}

uint16_t outbox_partition(struct txn *txn, const struct uuid *stream)
{
    struct hash_key key;
    memcpy(&key, txn->store->secret, sizeof(key));
    return (uint16_t)hash_partition(&key, stream->bytes, sizeof(stream->bytes), OUTBOX_PARTITIONS);
}

/* ---- counters: their labels are the keys of partitions ---- */

static void count(struct txn *txn, uint16_t counter, uint16_t partition, int64_t delta)
{
    struct key label = partition_key(partition);
    counter_add(txn, counter, key_span(&label), delta);
}

static enum error counted(struct txn *txn, uint16_t counter, uint16_t partition, int64_t *ret_value)
{
    struct key label = partition_key(partition);
    return counter_read(txn, counter, key_span(&label), ret_value);
}

enum outbox_level outbox_level_of(int64_t rows)
{
    if (rows >= OUTBOX_HARD)
        return OUTBOX_FULL;
    return rows >= OUTBOX_SOFT ? OUTBOX_FULLISH : OUTBOX_OPEN;
}

enum error outbox_level(struct txn *txn, uint16_t partition, enum outbox_level *ret_level)
{
    int64_t rows, last;
    enum error e = counted(txn, COUNTER_OUTBOX, partition, &rows);
    if (!e) /* so that putting, which can't refuse, finds its counter sound */
        e = counted(txn, COUNTER_OUTBOX_NEXT, partition, &last);
    if (!e)
        *ret_level = outbox_level_of(rows);
    return e;
}

/* ---- rows ---- */

void outbox_put(struct txn *txn, uint64_t at_us, uint16_t topic, const struct uuid *stream, uint64_t event,
                uint64_t *ret_seq)
{
    uint16_t partition = outbox_partition(txn, stream);
    struct outbox row = {.at_us = at_us, .topic = topic, .stream = *stream, .event = event};
    int64_t last;
    enum error e = counted(txn, COUNTER_OUTBOX_NEXT, partition, &last);
    if (e) { /* outbox_level has seen it sound: what is written now must not be kept */
        txn->error = txn->error ? txn->error : e;
        return;
    }
    uint64_t seq = (uint64_t)last + 1;
    struct key key = outbox_key(partition, seq);
    txn_add(txn, TABLE_OUTBOX, key_span(&key), &row);
    count(txn, COUNTER_OUTBOX, partition, 1);
    count(txn, COUNTER_OUTBOX_NEXT, partition, 1);
    txn_wake(txn, STORE_TOPIC(TOPIC_OUTBOX, partition));
    *ret_seq = seq;
}

/* A partition that nobody has claimed has the fence 0. */
static enum error fence_read(struct txn *txn, uint16_t partition, uint64_t *ret_fence)
{
    struct key key = partition_key(partition);
    struct claim claim = {.fence = 0};
    enum error e = txn_read(txn, TABLE_CLAIMS, key_span(&key), &claim);
    if (e && e != ERR_NOT_FOUND)
        return e;
    *ret_fence = claim.fence;
    return OK;
}

enum error outbox_claim(struct txn *txn, uint16_t partition, uint64_t holder, uint64_t at_us,
                        uint64_t *ret_fence)
{
    struct key key = partition_key(partition);
    struct claim claim = {.holder = holder, .at_us = at_us};
    enum error e = partition < OUTBOX_PARTITIONS ? OK : ERR_INVALID;
    if (!e)
        e = fence_read(txn, partition, &claim.fence);
    if (e)
        return e;
    claim.fence++;
    txn_write(txn, TABLE_CLAIMS, key_span(&key), &claim);
    *ret_fence = claim.fence;
    return OK;
}

enum error outbox_held(struct txn *txn, uint16_t partition, uint64_t fence)
{
    uint64_t current;
    enum error e = partition < OUTBOX_PARTITIONS ? OK : ERR_INVALID;
    if (!e)
        e = fence_read(txn, partition, &current);
    if (e)
        return e;
    return fence != current || current == 0 ? ERR_FENCED : OK;
}

/* The row, for the holder of this fence and nobody else. */
static enum error row_held(struct txn *txn, uint16_t partition, uint64_t seq, uint64_t fence,
                           struct outbox *ret_row)
{
    struct key key = outbox_key(partition, seq);
    enum error e = outbox_held(txn, partition, fence);
    return e ? e : txn_read(txn, TABLE_OUTBOX, key_span(&key), ret_row);
}

static void row_remove(struct txn *txn, uint16_t partition, uint64_t seq)
{
    struct key key = outbox_key(partition, seq);
    txn_remove(txn, TABLE_OUTBOX, key_span(&key));
    count(txn, COUNTER_OUTBOX, partition, -1);
}

static void dead_remove(struct txn *txn, uint16_t partition, uint64_t seq)
{
    struct key key = outbox_key(partition, seq);
    txn_remove(txn, TABLE_DEAD, key_span(&key));
    count(txn, COUNTER_DEAD, partition, -1);
}

enum error outbox_mark(struct txn *txn, uint16_t partition, uint64_t seq, uint64_t fence)
{
    struct outbox row;
    enum error e = row_held(txn, partition, seq, fence, &row);
    if (e)
        return e;
    row_remove(txn, partition, seq);
    return OK;
}

enum error outbox_defer(struct txn *txn, uint16_t partition, uint64_t seq, uint64_t fence,
                        uint64_t not_before_us)
{
    struct key key = outbox_key(partition, seq);
    struct outbox row;
    enum error e = row_held(txn, partition, seq, fence, &row);
    if (e)
        return e;
    row.attempts = (uint16_t)(row.attempts + (row.attempts < UINT16_MAX));
    row.not_before_us = not_before_us;
    txn_write(txn, TABLE_OUTBOX, key_span(&key), &row);
    return OK;
}

enum error outbox_bury(struct txn *txn, uint16_t partition, uint64_t seq, uint64_t fence, uint64_t at_us,
                       struct span reason)
{
    struct key key = outbox_key(partition, seq);
    struct outbox row;
    enum error e = row_held(txn, partition, seq, fence, &row);
    if (e)
        return e;
    struct dead dead = {.at_us = row.at_us,
                        .topic = row.topic,
                        .attempts = row.attempts,
                        .buried_us = at_us,
                        .stream = row.stream,
                        .event = row.event,
                        .reason = reason};
    row_remove(txn, partition, seq);
    txn_add(txn, TABLE_DEAD, key_span(&key), &dead);
    count(txn, COUNTER_DEAD, partition, 1);
    return OK;
}

/* *ret_dead: what is to come back; its reason is gone with the next write. */
static enum error revivable(struct txn *txn, uint16_t partition, uint64_t seq, struct dead *ret_dead)
{
    struct key key = outbox_key(partition, seq);
    enum outbox_level level;
    enum error e = partition < OUTBOX_PARTITIONS ? OK : ERR_INVALID;
    if (!e)
        e = txn_read(txn, TABLE_DEAD, key_span(&key), ret_dead);
    if (!e)
        e = outbox_level(txn, partition, &level);
    return !e && level == OUTBOX_FULL ? ERR_LIMIT : e;
}

static void bring_back(struct txn *txn, uint16_t partition, uint64_t seq, const struct dead *dead)
{
    struct key key = outbox_key(partition, seq);
    const struct outbox row = {
        .at_us = dead->at_us, .topic = dead->topic, .stream = dead->stream, .event = dead->event};
    dead_remove(txn, partition, seq);
    txn_add(txn, TABLE_OUTBOX, key_span(&key), &row);
    count(txn, COUNTER_OUTBOX, partition, 1);
    txn_wake(txn, STORE_TOPIC(TOPIC_OUTBOX, partition));
}

enum error outbox_revive(struct txn *txn, uint16_t partition, uint64_t seq)
{
    struct dead dead;
    enum error e = revivable(txn, partition, seq, &dead);
    if (!e)
        bring_back(txn, partition, seq, &dead);
    return e;
}

enum error outbox_forget(struct txn *txn, uint16_t partition, uint64_t seq)
{
    struct key key = outbox_key(partition, seq);
    struct outbox row;
    struct dead dead;
    enum error e = txn_read(txn, TABLE_OUTBOX, key_span(&key), &row);
    if (e == OK) {
        row_remove(txn, partition, seq);
        return OK;
    }
    if (e == ERR_NOT_FOUND)
        e = txn_read(txn, TABLE_DEAD, key_span(&key), &dead);
    if (e == OK)
        dead_remove(txn, partition, seq);
    return e == ERR_NOT_FOUND ? OK : e;
}

/* From this row on, until one can't be read, which is found by its key: OK, and *from is the key behind that one. ERR_NOT_FOUND: there
 * are no more. */
static enum error scan_rows(struct txn *txn, uint16_t partition, struct key *from, struct outbox_row *rows,
                            uint32_t most, uint32_t *count)
{
    struct scan scan = txn_scan(txn, TABLE_OUTBOX, key_span(from), PARTITION_SIZE, SCAN_UP);
    const void *last = NULL;
    enum error e = OK, sound = OK;
    while (!sound && *count < most) {
        struct outbox_row *row = &rows[*count];
        sound = scan_next(&scan) ? OK : scan.error;
        if (scan.key.bytes == last) /* the end, or pages that LMDB can't make sense of */
            e = sound ? sound : ERR_NOT_FOUND;
        else if (scan.key.size != KEY_SIZE)
            e = ERR_DAMAGED;
        if (e)
            break;
        last = scan.key.bytes;
        *row = (struct outbox_row){.partition = partition,
                                   .seq = key_u64((const uint8_t *)last + PARTITION_SIZE)};
        row->error = sound = sound ? sound : scan_read(&scan, &row->row);
        ++*count;
    }
    (void)scan_end(&scan);
    if (!e && sound) {
        *from = outbox_key(partition, rows[*count - 1].seq);
        key_add_u8(from, 0);
    }
    return e;
}

enum error outbox_scan(struct txn *txn, uint16_t partition, uint64_t after, struct outbox_row *rows,
                       uint32_t most, uint32_t *ret_count)
{
    struct key from = outbox_key(partition, after + (after < UINT64_MAX));
    enum error e = OK;
    *ret_count = 0;
    while (!e && *ret_count < most)
        e = scan_rows(txn, partition, &from, rows, most, ret_count);
    return e == ERR_NOT_FOUND ? OK : e;
}

/* ---- dead rows, as a list ---- */

void outbox_dead_begin(struct txn *txn, const struct key *after, struct outbox_dead_scan *ret)
{
    ret->after = *after;
    ret->scan = txn_scan(txn, TABLE_DEAD, key_span(after), 0, SCAN_UP);
}

/* A row has ended the scan: it goes on behind it. False at what isn't a row, such as a page that can't be read, and at a key behind which
 * there is none. */
static bool go_on_behind(struct scan *scan)
{
    struct key behind = {.size = 0};
    if (scan->key.size == 0 || scan->key.size == KEY_SIZE_MAX)
        return false;
    key_add(&behind, scan->key.bytes, scan->key.size);
    key_add_u8(&behind, 0);
    (void)scan_end(scan);
    *scan = txn_scan(scan->txn, TABLE_DEAD, key_span(&behind), 0, SCAN_UP);
    return true;
}

/* The next row, readable or not (*ret_sound). */
static enum error dead_step(struct scan *scan, enum error *ret_sound)
{
    if (scan->error && !go_on_behind(scan))
        return scan->error;
    const void *last = scan->key.bytes;
    *ret_sound = scan_next(scan) ? OK : scan->error;
    if (scan->key.bytes != last)
        return OK;
    return *ret_sound ? *ret_sound : ERR_NOT_FOUND;
}

enum error outbox_dead_next(struct outbox_dead_scan *s, struct outbox_dead *ret)
{
    enum error sound = OK;
    do {
        enum error e = dead_step(&s->scan, &sound);
        if (e)
            return e;
    } while (span_equal(s->scan.key, key_span(&s->after)));
    *ret = (struct outbox_dead){.key = s->scan.key, .named = s->scan.key.size == KEY_SIZE};
    if (ret->named) {
        ret->partition = key_u16(ret->key.bytes);
        ret->seq = key_u64((const uint8_t *)ret->key.bytes + PARTITION_SIZE);
    }
    ret->error = sound ? sound : scan_read(&s->scan, &ret->row);
    if (ret->error)
        ret->row = (struct dead){.at_us = 0};
    return OK;
}

void outbox_dead_end(struct outbox_dead_scan *s)
{
    (void)scan_end(&s->scan);
}

enum error outbox_dead_count(struct txn *txn, uint16_t partition, int64_t *ret_rows)
{
    return counted(txn, COUNTER_DEAD, partition, ret_rows);
}

/* ---- commands ---- */

static enum error apply_claim(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct outbox_claim_command *c = command;
    uint64_t fence;
    enum error e = outbox_claim(txn, c->partition, c->holder, at_us, &fence);
    if (!e)
        answer_add(answer, &fence, sizeof(fence));
    return e;
}

static enum error apply_mark(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct outbox_mark_command *c = command;
    (void)at_us;
    (void)answer;
    return outbox_mark(txn, c->partition, c->seq, c->fence);
}

static enum error apply_defer(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct outbox_defer_command *c = command;
    (void)at_us;
    (void)answer;
    return outbox_defer(txn, c->partition, c->seq, c->fence, c->not_before_us);
}

static enum error apply_bury(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct outbox_bury_command *c = command;
    (void)answer;
    return outbox_bury(txn, c->partition, c->seq, c->fence, at_us, c->reason);
}

/* What must not wait for room for its note doesn't (docs/store.md). */
static enum error note_revival(struct txn *txn, uint64_t at_us, const struct outbox_revive_command *c)
{
    static const struct uuid none = {{0}};
    char id[OUTBOX_ID_SIZE];
    if (uuid_equal(&c->audit, &none))
        return OK;
    outbox_id_format(c->partition, c->seq, id);
    return audit_note_if_possible(txn, at_us,
                                  &(struct audit_append){.id = c->audit,
                                                         .who = c->who,
                                                         .verb = span_text("outbox.revived"),
                                                         .target = span_text(id),
                                                         .reason = c->reason,
                                                         .outcome = span_text("done"),
                                                         .request_id = c->request_id});
}

static enum error apply_revive(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct outbox_revive_command *c = command;
    struct dead dead;
    (void)answer;
    enum error e = revivable(txn, c->partition, c->seq, &dead);
    if (!e)
        e = note_revival(txn, at_us, c);
    if (!e)
        bring_back(txn, c->partition, c->seq, &dead);
    return e;
}

#define outbox_claim_command_FIELD(name, TYPE, limit, since) \
    RECORD_FIELD(outbox_claim_command, name, TYPE, limit, since)
RECORD_CLASS(outbox_claim_command, OUTBOX_CLAIM_FIELDS, 1);
const struct command_class outbox_claim_class = {
    .name = "outbox.claim",
    .record = &outbox_claim_command_record,
    .apply = apply_claim,
    .code = 10,
};

#define outbox_mark_command_FIELD(name, TYPE, limit, since) \
    RECORD_FIELD(outbox_mark_command, name, TYPE, limit, since)
RECORD_CLASS(outbox_mark_command, OUTBOX_MARK_FIELDS, 1);
const struct command_class outbox_mark_class = {
    .name = "outbox.mark",
    .record = &outbox_mark_command_record,
    .apply = apply_mark,
    .code = 11,
    .priority = COMMAND_HIGH,
    .cleanup = true,
};

#define outbox_defer_command_FIELD(name, TYPE, limit, since) \
    RECORD_FIELD(outbox_defer_command, name, TYPE, limit, since)
RECORD_CLASS(outbox_defer_command, OUTBOX_DEFER_FIELDS, 1);
const struct command_class outbox_defer_class = {
    .name = "outbox.defer",
    .record = &outbox_defer_command_record,
    .apply = apply_defer,
    .code = 12,
    .priority = COMMAND_HIGH,
};

#define outbox_bury_command_FIELD(name, TYPE, limit, since) \
    RECORD_FIELD(outbox_bury_command, name, TYPE, limit, since)
RECORD_CLASS(outbox_bury_command, OUTBOX_BURY_FIELDS, 1);
const struct command_class outbox_bury_class = {
    .name = "outbox.bury",
    .record = &outbox_bury_command_record,
    .apply = apply_bury,
    .code = 13,
    .priority = COMMAND_HIGH,
    .cleanup = true,
};

#define outbox_revive_command_FIELD(name, TYPE, limit, since) \
    RECORD_FIELD(outbox_revive_command, name, TYPE, limit, since)
RECORD_CLASS(outbox_revive_command, OUTBOX_REVIVE_FIELDS, 2);
const struct command_class outbox_revive_class = {
    .name = "outbox.revive",
    .record = &outbox_revive_command_record,
    .apply = apply_revive,
    .code = 14,
};

/* ---- what must be true ---- */

/* What a waiting row and a dead one have in common. False: the key says nothing. */
static bool check_row(struct check *check, struct txn *txn, const char *table, struct span key,
                      const struct uuid *stream, uint64_t event, uint16_t counter)
{
    char text[UUID_TEXT_SIZE];
    struct event told;
    if (key.size != KEY_SIZE) {
        check_complain(check, "%s: a key of %u bytes", table, key.size);
        return false;
    }
    uint16_t partition = key_u16(key.bytes);
    uint64_t seq = key_u64((const uint8_t *)key.bytes + PARTITION_SIZE);
    struct key label = partition_key(partition);
    uuid_format(stream, text);
    if (partition != outbox_partition(txn, stream))
        check_complain(check, "%s: row %u/%llu of %s belongs to another partition", table, partition,
                       (unsigned long long)seq, text);
    if (event_read(txn, stream, event, &told) == ERR_NOT_FOUND)
        check_complain(check, "%s: row %u/%llu names event %llu of %s, which isn't there", table, partition,
                       (unsigned long long)seq, (unsigned long long)event, text);
    check_count(check, counter, key_span(&label), 1);
    check_count_least(check, COUNTER_OUTBOX_NEXT, key_span(&label), (int64_t)seq);
    return true;
}

void outbox_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    const struct outbox *row = value;
    uint8_t version;
    struct span bytes;
    if (check_row(check, txn, "outbox", key, &row->stream, row->event, COUNTER_OUTBOX) &&
        txn_get(txn, TABLE_DEAD, key, &version, &bytes) != ERR_NOT_FOUND)
        check_complain(check, "outbox: row %u/%llu is among the dead as well", key_u16(key.bytes),
                       (unsigned long long)key_u64((const uint8_t *)key.bytes + PARTITION_SIZE));
}

void dead_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    const struct dead *row = value;
    check_row(check, txn, "dead", key, &row->stream, row->event, COUNTER_DEAD);
}

void claim_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    const struct claim *claim = value;
    (void)txn;
    if (key.size != PARTITION_SIZE || key_u16(key.bytes) >= OUTBOX_PARTITIONS)
        check_complain(check, "claims: a key that is no partition");
    else if (claim->fence == 0)
        check_complain(check, "claims: partition %u was claimed without a fence", key_u16(key.bytes));
}
