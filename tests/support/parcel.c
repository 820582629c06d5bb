#include "tests/support/parcel.h"

#include "store/nouns.h"

#define ROW_SIZE                               sizeof(uint64_t)

#define parcel_FIELD(name, TYPE, limit, since) RECORD_FIELD(parcel, name, TYPE, limit, since)
RECORD_CLASS(parcel, PARCEL_FIELDS, 1);
#define parcel_send_FIELD(name, TYPE, limit, since) RECORD_FIELD(parcel_send, name, TYPE, limit, since)
RECORD_CLASS(parcel_send, PARCEL_SEND_FIELDS, 1);
#define parcel_move_FIELD(name, TYPE, limit, since) RECORD_FIELD(parcel_move, name, TYPE, limit, since)
RECORD_CLASS(parcel_move, PARCEL_MOVE_FIELDS, 1);
#define parcel_drop_FIELD(name, TYPE, limit, since) RECORD_FIELD(parcel_drop, name, TYPE, limit, since)
RECORD_CLASS(parcel_drop, PARCEL_DROP_FIELDS, 1);

/* ---- the lifecycle ---- */

static const struct lifecycle_state states[] = {
#define X(id, name, flags) [id] = {name, flags},
    PARCEL_STATES(X)
#undef X
};
static const char *const events[] = {
#define X(id, name) [id] = name,
    PARCEL_EVENTS(X)
#undef X
};
static const struct lifecycle_edge edges[] = {
    {PARCEL_HELD, PARCEL_SEND, PARCEL_SENT},
    {PARCEL_HELD, PARCEL_LOSE, PARCEL_LOST},
    {PARCEL_SENT, PARCEL_DELIVER, PARCEL_DELIVERED},
    {PARCEL_SENT, PARCEL_LOSE, PARCEL_LOST},
};
const struct lifecycle parcel_lifecycle = {
    .name = "parcel",
    .states = states,
    .events = events,
    .edges = edges,
    .states_count = PARCEL_STATE_COUNT,
    .events_count = PARCEL_EVENT_COUNT,
    .edges_count = sizeof(edges) / sizeof(edges[0]),
};

/* ---- what every change of a parcel does ---- */

static void count(struct txn *txn, uint8_t state, int64_t delta)
{
    counter_add(txn, COUNTER_PARCELS, span_of(&state, sizeof(state)), delta);
}

static enum error outbox_open(struct txn *txn, const struct uuid *id)
{
    enum outbox_level level;
    enum error e = outbox_level(txn, outbox_partition(txn, id), &level);
    if (e)
        return e;
    return level == OUTBOX_FULL ? ERR_LIMIT : OK;
}

/* The event with this number and its outbox row; or a refusal and nothing. */
static enum error tell(struct txn *txn, const struct uuid *id, uint64_t at, const struct event *event,
                       uint64_t *ret_row)
{
    uint64_t seq;
    enum error e = outbox_open(txn, id);
    if (!e)
        e = event_append(txn, id, at, event, &seq, NULL);
    if (!e) {
        *ret_row = 0;
        outbox_put(txn, event->at_us, PARCEL_TOPIC, id, seq, ret_row);
    }
    return e;
}

struct rows {
    uint64_t row[PARCEL_EVENTS_MAX];
    uint32_t count;
};

static struct rows rows_of(const struct parcel *parcel)
{
    struct rows rows = {.count = parcel->rows.size / (uint32_t)ROW_SIZE};
    if (rows.count > 0)
        memcpy(rows.row, parcel->rows.bytes, rows.count * ROW_SIZE);
    return rows;
}

static struct span rows_span(const struct rows *rows)
{
    return span_of(rows->row, rows->count * ROW_SIZE);
}

/* With all that belongs to it but its due entry. The parcel's spans are gone after the first write. */
static enum error removed(struct txn *txn, const struct uuid *id, const struct parcel *parcel)
{
    struct key key = key_of_uuid(id);
    struct rows rows = rows_of(parcel);
    uint16_t partition = outbox_partition(txn, id);
    uint8_t state = parcel->state;
    bool left = false;
    enum error e = event_remove_stream(txn, id, PARCEL_EVENTS_MAX, &left);
    if (e)
        return e;
    ASSERT(!left);
    for (uint32_t i = 0; i < rows.count; i++)
        outbox_forget(txn, partition, rows.row[i]); /* a damaged one stays, and check tells of it */
    txn_remove(txn, TABLE_PARCELS, key_span(&key));
    count(txn, state, -1);
    return OK;
}

/* ---- parcel.send ---- */

static enum error sendable(struct txn *txn, const struct parcel_send *c)
{
    struct key key = key_of_uuid(&c->id);
    struct parcel there;
    enum error e = txn_read(txn, TABLE_PARCELS, key_span(&key), &there);
    if (e != ERR_NOT_FOUND)
        return e ? e : ERR_EXISTS;
    return c->key.size == 0 || ledger_room(txn) ? OK : ERR_LIMIT;
}

static void announce_send(const struct txn *txn, const void *command)
{
    const struct parcel_send *c = command;
    if (c->key.size > 0)
        ledger_expect(txn, c->scope, c->key);
}

static enum error apply_send(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct parcel_send *c = command;
    const struct event event = {.at_us = at_us,
                                .domain = PARCEL_DOMAIN,
                                .name = PARCEL_SEND,
                                .from_state = EVENT_NO_STATE,
                                .to_state = PARCEL_HELD};
    struct key key = key_of_uuid(&c->id);
    struct rows rows = {.count = 1};
    struct ledger known;
    uint8_t reply[sizeof(struct uuid) + 1];
    enum error e = ERR_NOT_FOUND;
    if (c->key.size > 0)
        e = ledger_find(txn, at_us, c->scope, c->key, &c->digest, &known);
    if (e == OK)
        answer_add(answer, known.answer.bytes, known.answer.size);
    if (e != ERR_NOT_FOUND)
        return e;
    e = sendable(txn, c);
    if (!e)
        e = tell(txn, &c->id, 1, &event, &rows.row[0]);
    if (e)
        return e;
    struct parcel parcel = {.state = PARCEL_HELD,
                            .at_us = at_us,
                            .moved_us = at_us,
                            .due_us = c->due_us,
                            .rows = rows_span(&rows),
                            .body = c->body};
    txn_add(txn, TABLE_PARCELS, key_span(&key), &parcel);
    count(txn, PARCEL_HELD, 1);
    if (c->due_us > 0)
        retention_set(txn, PARCEL_RETENTION_KIND, c->due_us, &c->id, 0);
    memcpy(reply, &c->id, sizeof(c->id));
    reply[sizeof(c->id)] = PARCEL_HELD;
    if (c->key.size > 0)
        ledger_put(txn, LEDGER_DAY, at_us, c->scope, c->key, &c->digest, span_of(reply, sizeof(reply)));
    answer_add(answer, reply, sizeof(reply));
    return OK;
}

const struct command_class parcel_send_class = {
    .name = "parcel.send",
    .record = &parcel_send_record,
    .apply = apply_send,
    .announce = announce_send,
    .code = 9001,
};

/* ---- parcel.move ---- */

/* What was read is gone with the first write, and too much for a stack: the writer's thread has one of these. */
static _Thread_local uint8_t body_kept[PARCEL_BODY_MAX];

static struct span body_keep(struct span body)
{
    if (body.size > 0)
        memcpy(body_kept, body.bytes, body.size);
    return span_of(body_kept, body.size);
}

static enum error apply_move(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct parcel_move *c = command;
    struct key key = key_of_uuid(&c->id);
    struct parcel parcel;
    uint8_t to;
    enum error e = txn_read(txn, TABLE_PARCELS, key_span(&key), &parcel);
    if (!e)
        e = lifecycle_next(&parcel_lifecycle, parcel.state, c->event, &to);
    if (e)
        return e;
    struct rows rows = rows_of(&parcel);
    uint8_t from = parcel.state;
    ASSERT(rows.count < PARCEL_EVENTS_MAX);
    parcel.moved_us = at_us > parcel.moved_us ? at_us : parcel.moved_us;
    parcel.body = body_keep(parcel.body);
    const struct event event = {.at_us = parcel.moved_us,
                                .domain = PARCEL_DOMAIN,
                                .name = c->event,
                                .from_state = from,
                                .to_state = to};
    e = tell(txn, &c->id, rows.count + 1, &event, &rows.row[rows.count]);
    if (e)
        return e;
    rows.count++;
    parcel.state = to;
    parcel.rows = rows_span(&rows);
    txn_write(txn, TABLE_PARCELS, key_span(&key), &parcel);
    count(txn, from, -1);
    count(txn, to, 1);
    answer_add(answer, &to, sizeof(to));
    return OK;
}

const struct command_class parcel_move_class = {
    .name = "parcel.move",
    .record = &parcel_move_record,
    .apply = apply_move,
    .code = 9002,
};

/* ---- parcel.drop, and retention ---- */

static enum error apply_drop(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct parcel_drop *c = command;
    struct key key = key_of_uuid(&c->id);
    struct parcel parcel;
    enum error e = txn_read(txn, TABLE_PARCELS, key_span(&key), &parcel);
    (void)at_us;
    (void)answer;
    if (!e && !lifecycle_terminal(&parcel_lifecycle, parcel.state))
        e = ERR_CONFLICT;
    if (!e)
        e = removed(txn, &c->id, &parcel);
    if (e)
        return e;
    if (parcel.due_us > 0)
        retention_clear(txn, parcel.due_us, &c->id);
    return OK;
}

const struct command_class parcel_drop_class = {
    .name = "parcel.drop",
    .record = &parcel_drop_record,
    .apply = apply_drop,
    .code = 9003,
    .cleanup = true,
};

static enum error parcel_expire(struct txn *txn, const struct due_entry *entry)
{
    struct key key = key_of_uuid(&entry->id);
    struct parcel parcel;
    enum error e = txn_read(txn, TABLE_PARCELS, key_span(&key), &parcel);
    return e ? e : removed(txn, &entry->id, &parcel);
}

static enum error parcel_find_due(struct txn *txn, const struct due_entry *entry)
{
    struct key key = key_of_uuid(&entry->id);
    struct parcel parcel;
    enum error e = txn_read(txn, TABLE_PARCELS, key_span(&key), &parcel);
    if (e)
        return e;
    return parcel.due_us == entry->due_us ? OK : ERR_CONFLICT;
}

void parcel_install(void)
{
    retention_extend(PARCEL_RETENTION_KIND, parcel_expire, parcel_find_due);
}

/* ---- what must be true ---- */

static void check_events(struct check *check, struct txn *txn, const struct uuid *id, const char *text,
                         const struct parcel *parcel)
{
    struct event event;
    uint64_t last;
    if (event_last(txn, id, &last) != OK || (last > 0 && event_read(txn, id, last, &event) != OK))
        return; /* damaged, and complained about where it stands */
    if (last == 0 || last != parcel->rows.size / ROW_SIZE)
        check_complain(check, "parcels: %s has %llu events and %u outbox rows", text,
                       (unsigned long long)last, (unsigned)(parcel->rows.size / ROW_SIZE));
    else if (event.to_state != parcel->state || event.at_us != parcel->moved_us)
        check_complain(check, "parcels: %s isn't where its last event took it", text);
}

static void parcel_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    const struct parcel *parcel = value;
    char text[UUID_TEXT_SIZE];
    struct uuid id;
    struct due due;
    if (key.size != sizeof(id.bytes)) {
        check_complain(check, "parcels: a key of %u bytes", key.size);
        return;
    }
    memcpy(id.bytes, key.bytes, sizeof(id.bytes));
    uuid_format(&id, text);
    struct key due_at = due_key(DUE_RETENTION, RETENTION_SHARD, parcel->due_us, &id);
    if (parcel->due_us > 0 && txn_read(txn, TABLE_DUE, key_span(&due_at), &due) == ERR_NOT_FOUND)
        check_complain(check, "parcels: %s has no due entry", text);
    if (!lifecycle_state_name(&parcel_lifecycle, parcel->state))
        check_complain(check, "parcels: %s is in the unknown state %u", text, parcel->state);
    check_events(check, txn, &id, text, parcel);
    check_count(check, COUNTER_PARCELS, span_of(&parcel->state, sizeof(parcel->state)), 1);
}

/* ---- the product's schema and these rows ---- */

static const struct schema_table tables[] = {
    [TABLE_PARCELS] = {.name = "parcels", .record = &parcel_record, .check = parcel_check},
    TABLES(SCHEMA_TABLE_ROW)};

static const struct command_class *const commands[] = {
    &parcel_send_class, &parcel_move_class, &parcel_drop_class, SCHEMA_COMMANDS(SCHEMA_COMMAND_ROW)};

const struct schema parcel_store_schema = {
    .tables = tables,
    .tables_count = sizeof(tables) / sizeof(tables[0]),
    .commands = commands,
    .commands_count = sizeof(commands) / sizeof(commands[0]),
    .format = 1,
};
