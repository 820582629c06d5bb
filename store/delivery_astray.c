#include "store/delivery_astray.h"

#define delivery_stray_FIELD(name, TYPE, limit, since) RECORD_FIELD(delivery_stray, name, TYPE, limit, since)
RECORD_CLASS(delivery_stray, DELIVERY_STRAY_FIELDS, 1);
#define delivery_astray_FIELD(name, TYPE, limit, since) \
    RECORD_FIELD(delivery_astray, name, TYPE, limit, since)
RECORD_CLASS(delivery_astray, DELIVERY_ASTRAY_FIELDS, 1);

/* ---- places ---- */

/* kind:1 job:16 webhook:16 event:8 topic:2 */
static void note_place(struct span key, const struct uuid *id, struct delivery_stray *strays, uint32_t count)
{
    const uint8_t *at = key.bytes;
    for (uint32_t i = 0; i < count; i++) {
        struct delivery_stray *s = &strays[i];
        if (s->placed || !uuid_equal(&s->id, id))
            continue;
        memcpy(s->job.bytes, at + 1, sizeof(s->job.bytes));
        memcpy(s->webhook.bytes, at + 17, sizeof(s->webhook.bytes));
        s->event = key_u64(at + 33);
        s->topic = key_u16(at + 41);
        s->placed = 1;
    }
}
STATIC_ASSERT(DELIVERY_KEY_OF_JOB == 43, "the last of them ends there");

enum error delivery_find_places(struct txn *txn, struct key *from, uint32_t most,
                                struct delivery_stray *strays, uint32_t count)
{
    struct delivery_index row;
    if (from->size == 0)
        key_add_u8(from, DELIVERY_LIST_JOB);
    struct scan scan = txn_scan(txn, TABLE_DELIVERY_INDEX, key_span(from), 1, SCAN_UP);
    for (uint32_t i = 0; i < most && scan_next(&scan); i++)
        if (scan_read(&scan, &row) == OK && scan.key.size == DELIVERY_KEY_OF_JOB)
            note_place(scan.key, &row.id, strays, count);
    /* One that can't be read ends this part, and is passed. */
    struct span last = scan.key;
    enum error e = scan_end(&scan);
    if (last.size == 0 || last.size == KEY_SIZE_MAX || txn->error)
        return e ? e : ERR_NOT_FOUND;
    from->size = 0;
    key_add(from, last.bytes, last.size);
    key_add_u8(from, 0);
    return OK;
}

/* ---- the command ---- */

static uint64_t put_off(uint64_t steady_us)
{
    return steady_us < UINT64_MAX - DELIVERY_ASTRAY_US ? steady_us + DELIVERY_ASTRAY_US : UINT64_MAX;
}

static bool is_entry(struct txn *txn, uint16_t lane, uint64_t due_us, const struct uuid *id)
{
    struct key key = due_key(DUE_DELIVERY, lane, due_us, id);
    uint8_t version;
    struct span bytes;
    return txn_get(txn, TABLE_DUE, key_span(&key), &version, &bytes) != ERR_NOT_FOUND;
}

/* `d` has another entry than this one, or is to have none. */
static void take_away(struct txn *txn, const struct delivery_stray *s, const struct delivery *d)
{
    const struct due_entry own = {
        .queue = DUE_DELIVERY, .shard = d->lane, .due_us = d->not_before_us, .id = d->id};
    bool wanted = d->state == DELIVERY_PENDING && d->not_before_us != 0;
    due_clear(txn, DUE_DELIVERY, s->lane, s->due_us, &s->id);
    if (wanted && !is_entry(txn, own.shard, own.due_us, &own.id))
        due_set(txn, &own);
}

static enum delivery_astray_found see_to(struct txn *txn, uint64_t steady_us, const struct delivery_stray *s)
{
    const struct due_entry entry = {
        .queue = DUE_DELIVERY, .shard = s->lane, .due_us = s->due_us, .id = s->id};
    const struct delivery place = {
        .id = s->id, .job = s->job, .webhook = s->webhook, .event = s->event, .topic = s->topic};
    struct delivery d;
    if (!is_entry(txn, s->lane, s->due_us, &s->id))
        return DELIVERY_NO_STRAY;
    enum error e = delivery_read(txn, &s->id, &d);
    if (txn->error)
        return DELIVERY_NO_STRAY; /* nothing can be read */
    if (e) {
        due_move(txn, &entry, put_off(steady_us));
        if (s->placed)
            delivery_pass(txn, steady_us, &place);
        return DELIVERY_UNREADABLE;
    }
    if (d.state == DELIVERY_PENDING && d.not_before_us == s->due_us && d.lane == s->lane)
        return DELIVERY_NO_STRAY;
    take_away(txn, s, &d);
    return DELIVERY_STRAY;
}

static enum error apply_astray(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct delivery_astray *c = command;
    struct delivery_stray s;
    (void)at_us;
    if (c->strays.size == 0 || c->strays.size % DELIVERY_STRAY_SIZE)
        return ERR_INVALID;
    for (uint32_t at = 0; at < c->strays.size; at += DELIVERY_STRAY_SIZE) {
        /* Any bytes of this size are one: its fields have fixed sizes. */
        enum error e = record_decode(&delivery_stray_record, 1,
                                     span_of((const uint8_t *)c->strays.bytes + at, DELIVERY_STRAY_SIZE), &s);
        ASSERT(e == OK);
        uint8_t found = (uint8_t)see_to(txn, c->steady_us, &s);
        answer_add(answer, &found, sizeof(found));
    }
    return OK;
}

const struct command_class delivery_astray_class = {
    .name = "delivery.astray",
    .record = &delivery_astray_record,
    .apply = apply_astray,
    .code = 247,
    .priority = COMMAND_HIGH,
};
