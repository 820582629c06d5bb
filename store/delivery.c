#define _GNU_SOURCE /* memmem */
#include "store/delivery.h"

#include "runtime/hash.h"
#include "store/check.h"
#include "store/counter.h"
#include "store/named_id.h"
#include "store/retention.h"
#include "store/steady.h"
#include "store/store.h"

#define CHAIN_SIZE                               33u                    /* kind:1 job:16 webhook:16 */
#define ORDER_SIZE                               DELIVERY_KEY_OF_JOB    /* and event:8 topic:2 */
#define LIST_SIZE                                DELIVERY_KEY_OF_CLIENT /* kind:1 client:16 id:16 */

#define delivery_FIELD(name, TYPE, limit, since) RECORD_FIELD(delivery, name, TYPE, limit, since)
RECORD_CLASS(delivery, DELIVERY_FIELDS, 1);
#define delivery_index_FIELD(name, TYPE, limit, since) RECORD_FIELD(delivery_index, name, TYPE, limit, since)
RECORD_CLASS(delivery_index, DELIVERY_INDEX_FIELDS, 1);
#define delivery_result_FIELD(name, TYPE, limit, since) \
    RECORD_FIELD(delivery_result, name, TYPE, limit, since)
RECORD_CLASS(delivery_result, DELIVERY_RESULT_FIELDS, 1);
#define delivery_settle_FIELD(name, TYPE, limit, since) \
    RECORD_FIELD(delivery_settle, name, TYPE, limit, since)
RECORD_CLASS(delivery_settle, DELIVERY_SETTLE_FIELDS, 1);
#define delivery_resend_FIELD(name, TYPE, limit, since) \
    RECORD_FIELD(delivery_resend, name, TYPE, limit, since)
RECORD_CLASS(delivery_resend, DELIVERY_RESEND_FIELDS, 1);

static const struct uuid no_webhook = {{0}};

/* ---- names and the lifecycle ---- */

static const struct {
    const char *name, *code;
} errors[] = {
#define X(id, text, rfa) [id] = {text, rfa},
    DELIVERY_ERRORS(X)
#undef X
};

const char *delivery_error_name(uint8_t error)
{
    return error < DELIVERY_ERROR_COUNT ? errors[error].name : "";
}

const char *delivery_error_code(uint8_t error)
{
    return error < DELIVERY_ERROR_COUNT ? errors[error].code : "";
}

static const struct lifecycle_state states[] = {
#define X(id, text, mark) [id] = {.name = text, .flags = mark},
    DELIVERY_STATES(X)
#undef X
};
static const char *const outcomes[] = {
#define X(id, name) [id] = name,
    DELIVERY_OUTCOMES(X)
#undef X
};
static const struct lifecycle_edge edges[] = {
    {DELIVERY_PENDING, DELIVERY_SUCCEED, DELIVERY_DELIVERED},
    {DELIVERY_PENDING, DELIVERY_RETRY, DELIVERY_PENDING},
    {DELIVERY_PENDING, DELIVERY_GIVE_UP, DELIVERY_FAILED},
    {DELIVERY_PENDING, DELIVERY_DROP, DELIVERY_DROPPED},
    {DELIVERY_PENDING, DELIVERY_RESEND, DELIVERY_PENDING},
    {DELIVERY_DELIVERED, DELIVERY_RESEND, DELIVERY_PENDING},
    {DELIVERY_FAILED, DELIVERY_RESEND, DELIVERY_PENDING},
};
const struct lifecycle delivery_lifecycle = {
    .name = "delivery",
    .states = states,
    .events = outcomes,
    .edges = edges,
    .states_count = sizeof(states) / sizeof(*states),
    .events_count = sizeof(outcomes) / sizeof(*outcomes),
    .edges_count = sizeof(edges) / sizeof(*edges),
};

/* ---- keys ---- */

static struct key chain_key(const struct uuid *job, const struct uuid *webhook)
{
    struct key key = {.size = 0};
    key_add_u8(&key, DELIVERY_LIST_JOB);
    key_add_uuid(&key, job);
    key_add_uuid(&key, webhook);
    return key;
}

static struct key order_key(const struct delivery *d)
{
    struct key key = chain_key(&d->job, &d->webhook);
    key_add_u64(&key, d->event);
    key_add_u16(&key, d->topic);
    return key;
}

static struct key list_key(enum delivery_list list, const struct delivery *d)
{
    struct key key = {.size = 0};
    key_add_u8(&key, (uint8_t)list);
    key_add_uuid(&key, &d->client);
    key_add_uuid(&key, &d->id);
    return key;
}

static struct span id_span(const struct uuid *id)
{
    return span_of(id->bytes, sizeof(id->bytes));
}

enum error delivery_read(struct txn *txn, const struct uuid *id, struct delivery *ret_delivery)
{
    return txn_read(txn, TABLE_DELIVERIES, id_span(id), ret_delivery);
}

/* What was read goes with the first write: its texts, held on to. */
struct held {
    char host[DELIVERY_HOST_MAX];
    uint8_t history[DELIVERY_HISTORY_MAX * DELIVERY_ATTEMPT_SIZE];
};

static void hold(struct delivery *d, struct held *room)
{
    if (d->host.size)
        memcpy(room->host, d->host.bytes, d->host.size);
    if (d->history.size)
        memcpy(room->history, d->history.bytes, d->history.size);
    d->host.bytes = room->host;
    d->history.bytes = room->history;
}

static void write_row(struct txn *txn, const struct delivery *d)
{
    txn_write(txn, TABLE_DELIVERIES, id_span(&d->id), d);
}

/* ---- counters ---- */

static void count(struct txn *txn, const struct delivery *d, int64_t delta)
{
    counter_add(txn, COUNTER_DELIVERIES, span_of(&d->state, sizeof(d->state)), delta);
    if (d->state == DELIVERY_PENDING)
        counter_add(txn, COUNTER_DELIVERIES_PENDING, id_span(&d->client), delta);
}

/* ---- lanes, and the due index ---- */

struct span delivery_host(struct span url)
{
    const char *at = url.bytes, *end = at + url.size;
    const char *slashes = url.size > 2 ? memmem(at, url.size, "//", 2) : NULL;
    if (!slashes)
        return span_of(NULL, 0);
    at = slashes + 2;
    const char *stop = at;
    while (stop < end && *stop != '/' && *stop != '?')
        stop++;
    return span_of(at, (size_t)(stop - at));
}

/* Names are the same in either case. */
static uint16_t lane_of(const struct txn *txn, struct span host)
{
    char lower[DELIVERY_HOST_MAX];
    const char *text = host.bytes;
    uint32_t size = host.size < sizeof(lower) ? host.size : (uint32_t)sizeof(lower);
    struct hash_key key;
    for (uint32_t i = 0; i < size; i++)
        lower[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] | 0x20 : text[i]);
    memcpy(&key, txn->store->secret, sizeof(key));
    return (uint16_t)hash_partition(&key, lower, size, DELIVERY_LANES);
}

/* From this time on it is one of those that may be sent; `steady_us`: it is now. */
static void make_ready(struct txn *txn, struct delivery *d, uint64_t steady_us, uint64_t not_before_us)
{
    d->not_before_us = not_before_us ? not_before_us : 1;
    steady_note(txn, steady_us);
    due_set(txn, &(struct due_entry){
                     .queue = DUE_DELIVERY, .shard = d->lane, .due_us = d->not_before_us, .id = d->id});
    txn_wake(txn, STORE_TOPIC(TOPIC_DELIVERIES, d->lane / DELIVERY_LANES_EACH));
}

/* An entry that isn't there is no reason to keep it from anything. */
static void make_unready(struct txn *txn, struct delivery *d)
{
    if (d->not_before_us)
        (void)due_try_clear(txn, DUE_DELIVERY, d->lane, d->not_before_us, &d->id);
    d->not_before_us = 0;
}

enum error delivery_next_lane(struct txn *txn, uint16_t partition, uint32_t lane, struct due_entry *ret_entry)
{
    uint32_t first = partition * DELIVERY_LANES_EACH;
    struct due_entry entry;
    if (partition >= DELIVERY_PARTITIONS)
        return ERR_INVALID;
    if (lane >= DELIVERY_LANES_EACH)
        return ERR_NOT_FOUND;
    enum error e = due_first(txn, DUE_DELIVERY, (uint16_t)(first + lane), &entry);
    if (!e && entry.shard >= first + DELIVERY_LANES_EACH)
        e = ERR_NOT_FOUND;
    if (!e)
        *ret_entry = entry;
    return e;
}

/* ---- chains ---- */

/* What a search does at a row that can't be read, or leads nowhere. */
enum unreadable { UNREADABLE_ENDS, UNREADABLE_IS_PASSED };

/* The greatest key that a row of the chain can have before this one; false: it is the chain's first. */
static bool key_before(struct key *key)
{
    uint32_t at = key->size;
    if (at > ORDER_SIZE) { /* no row's: the one that it begins with comes before it */
        key->size = ORDER_SIZE;
        return true;
    }
    while (at > CHAIN_SIZE && key->bytes[at - 1] == 0)
        at--;
    if (at == CHAIN_SIZE)
        return false;
    key->bytes[at - 1]--;
    memset(key->bytes + at, UINT8_MAX, ORDER_SIZE - at);
    key->size = ORDER_SIZE;
    return true;
}

/* A row of the chain has ended the scan: it goes on beyond it, whatever its key. Ends, since each time that is another one; at what isn't
 * a row (a page that can't be read) it is false, and at a key as long as any can be. */
static bool go_on_beyond(struct scan *scan)
{
    struct key beyond = {.size = 0};
    enum scan_direction direction = (enum scan_direction)scan->direction;
    if (scan->error != ERR_DAMAGED || scan->key.size == 0 || scan->key.size == KEY_SIZE_MAX)
        return false;
    key_add(&beyond, scan->key.bytes, scan->key.size);
    if (direction == SCAN_UP)
        key_add_u8(&beyond, 0);
    else if (!key_before(&beyond))
        return false;
    (void)scan_end(scan);
    *scan = txn_scan(scan->txn, TABLE_DELIVERY_INDEX, key_span(&beyond), CHAIN_SIZE, direction);
    return true;
}

static bool next_row(struct scan *scan, bool pass)
{
    while (!scan_next(scan))
        if (!pass || !go_on_beyond(scan))
            return false;
    return true;
}

/* The nearest one of the chain in that direction that stands in it, and not beside. ERR_NOT_FOUND: none. Its texts borrow from the
 * transaction. As many rows are read as stand beside the chain in between, or are passed. */
static enum error neighbour(struct txn *txn, const struct delivery *d, enum scan_direction direction,
                            enum unreadable unreadable, struct delivery *ret_neighbour)
{
    struct key from = order_key(d);
    struct scan scan = txn_scan(txn, TABLE_DELIVERY_INDEX, key_span(&from), CHAIN_SIZE, direction);
    struct delivery_index row;
    struct delivery found = {.beside = 1};
    enum error e = OK;
    bool pass = unreadable == UNREADABLE_IS_PASSED;
    while (!e && found.beside && next_row(&scan, pass)) {
        if (span_equal(scan.key, key_span(&from))) /* itself */
            continue;
        e = scan_read(&scan, &row);
        if (!e)
            e = delivery_read(txn, &row.id, &found);
        if (pass && (e == ERR_DAMAGED || e == ERR_NOT_FOUND)) {
            found.beside = 1; /* whatever was read of it */
            e = OK;
        }
    }
    enum error end = scan_end(&scan);
    e = end ? end : e;
    if (!e && found.beside)
        e = ERR_NOT_FOUND;
    if (!e)
        *ret_neighbour = found;
    return e;
}

static bool waits(const struct delivery *d)
{
    return d->state == DELIVERY_PENDING && d->not_before_us == 0;
}

/* Whether the one before it is unfinished, so that `d` has to wait. */
static enum error is_blocked(struct txn *txn, const struct delivery *d, enum unreadable unreadable,
                             bool *ret_blocked)
{
    struct delivery before;
    enum error e = neighbour(txn, d, SCAN_DOWN, unreadable, &before);
    *ret_blocked = !e && before.state == DELIVERY_PENDING;
    return e == ERR_NOT_FOUND ? OK : e;
}

/* Whether a later one has been sent already, or may be by now. */
static enum error is_late(struct txn *txn, const struct delivery *d, bool *ret_late)
{
    struct delivery after;
    enum error e = neighbour(txn, d, SCAN_UP, UNREADABLE_IS_PASSED, &after);
    *ret_late = !e && !waits(&after);
    return e == ERR_NOT_FOUND ? OK : e;
}

/* `d` has come to its end: who is behind it in the chain is its first now. One that can't be read stays as it is, and check tells; it
 * holds up nobody behind it. */
static void pass_on(struct txn *txn, uint64_t steady_us, const struct delivery *d)
{
    struct delivery next;
    struct held room;
    if (neighbour(txn, d, SCAN_UP, UNREADABLE_IS_PASSED, &next) != OK || !waits(&next))
        return;
    hold(&next, &room);
    make_ready(txn, &next, steady_us, steady_us);
    write_row(txn, &next);
}

void delivery_pass(struct txn *txn, uint64_t steady_us, const struct delivery *at)
{
    struct key order = order_key(at);
    struct delivery_index row;
    struct delivery next;
    struct held room;
    bool blocked = true;
    if (txn_read(txn, TABLE_DELIVERY_INDEX, key_span(&order), &row) != OK || !uuid_equal(&row.id, &at->id) ||
        neighbour(txn, at, SCAN_UP, UNREADABLE_IS_PASSED, &next) != OK || !waits(&next))
        return;
    hold(&next, &room);
    if (is_blocked(txn, &next, UNREADABLE_IS_PASSED, &blocked) != OK || blocked)
        return;
    make_ready(txn, &next, steady_us, steady_us);
    write_row(txn, &next);
}

/* ---- making them ---- */

/* Where one goes. */
struct target {
    struct uuid webhook;
    uint32_t host_size;
    char host[DELIVERY_HOST_MAX];
};

static void add_target(struct target *targets, uint32_t *count, const struct uuid *webhook, struct span url)
{
    struct target *t = &targets[(*count)++];
    struct span host = delivery_host(url);
    t->webhook = *webhook;
    t->host_size = host.size < DELIVERY_HOST_MAX ? host.size : DELIVERY_HOST_MAX;
    if (t->host_size)
        memcpy(t->host, host.bytes, t->host_size);
}

/* ERR_DAMAGED: those that can be read are there, and there is another one. */
static enum error find_targets(struct txn *txn, const struct delivery_source *source, struct target *targets,
                               uint32_t *ret_count)
{
    struct webhook webhooks[WEBHOOKS_MAX];
    uint32_t count = 0, listed = 0;
    if (source->callback.size > 0)
        add_target(targets, &count, &no_webhook, source->callback);
    enum error e = webhook_list_sound(txn, &source->client, webhooks, &listed);
    for (uint32_t i = 0; i < listed; i++)
        if (webhooks[i].state == WEBHOOK_ACTIVE && webhooks[i].events >> source->bit & 1)
            add_target(targets, &count, &webhooks[i].id, webhooks[i].url);
    *ret_count = count;
    return e;
}

static struct uuid id_of(struct txn *txn, const struct delivery_source *source, const struct uuid *webhook)
{
    const struct span parts[] = {id_span(&source->job), id_span(webhook),
                                 span_of(&source->event, sizeof(source->event)),
                                 span_of(&source->topic, sizeof(source->topic))};
    struct uuid id = named_id(txn->store, "delivery", parts, sizeof(parts) / sizeof(*parts));
    uint64_t ms = source->event_us / 1000;
    for (int i = 0; i < 6; i++)
        id.bytes[i] = (uint8_t)(ms >> (40 - 8 * i));
    id.bytes[6] = (uint8_t)(0x70u | (id.bytes[6] & 0x0fu));
    return id;
}

/* All that is asked of the store about a target, before the first of them is written. */
static enum error plan(struct txn *txn, const struct delivery_source *source, const struct target *target,
                       uint64_t at_us, struct delivery *ret_delivery, bool *ret_blocked, bool *ret_there)
{
    struct delivery there;
    bool late = false;
    struct span host = span_of(target->host, target->host_size);
    *ret_delivery = (struct delivery){.id = id_of(txn, source, &target->webhook),
                                      .client = source->client,
                                      .job = source->job,
                                      .webhook = target->webhook,
                                      .event = source->event,
                                      .topic = source->topic,
                                      .lane = lane_of(txn, host),
                                      .at_us = at_us,
                                      .host = host};
    enum error e = delivery_read(txn, &ret_delivery->id, &there);
    *ret_there = e != ERR_NOT_FOUND;
    if (e && e != ERR_NOT_FOUND)
        return e;
    e = is_blocked(txn, ret_delivery, UNREADABLE_IS_PASSED, ret_blocked);
    if (!e && !*ret_there)
        e = is_late(txn, ret_delivery, &late);
    ret_delivery->beside = late;
    *ret_blocked = *ret_blocked && !late;
    return e;
}

static void add_row(struct txn *txn, const struct delivery_times *times, struct delivery *d, bool blocked,
                    bool backlog)
{
    struct key order = order_key(d), list = list_key(DELIVERY_LIST_ALL, d),
               dead = list_key(DELIVERY_LIST_FAILED, d);
    const struct delivery_index row = {.id = d->id};
    if (backlog) {
        d->state = DELIVERY_FAILED;
        d->error = DELIVERY_BACKLOG;
        d->beside = 1; /* it never had its turn: those behind it wait for those before it */
        d->finished_us = d->at_us;
        d->gone_us = d->at_us + times->kept_us;
        txn_add(txn, TABLE_DELIVERY_INDEX, key_span(&dead), &row);
        retention_set(txn, RETENTION_DELIVERY, d->gone_us, &d->id, 0);
    } else if (!blocked) {
        make_ready(txn, d, times->steady_us, times->steady_us);
    }
    txn_add(txn, TABLE_DELIVERIES, id_span(&d->id), d);
    txn_add(txn, TABLE_DELIVERY_INDEX, key_span(&order), &row);
    txn_add(txn, TABLE_DELIVERY_INDEX, key_span(&list), &row);
    count(txn, d, 1);
}

struct plans {
    struct target targets[DELIVERY_TARGETS_MAX];
    struct delivery rows[DELIVERY_TARGETS_MAX];
    bool blocked[DELIVERY_TARGETS_MAX], there[DELIVERY_TARGETS_MAX];
    uint32_t count;
    int64_t pending; /* of the client */
    bool damaged;    /* somebody's can't be read: he is left out, and no other */
};

/* What one receiver's damage is to the others: nothing. */
static enum error of_all(const struct txn *txn, struct plans *plans, enum error e)
{
    if (e != ERR_DAMAGED || txn->error)
        return e;
    plans->damaged = true;
    return OK;
}

static enum error make_plans(struct txn *txn, uint64_t at_us, const struct delivery_source *source,
                             struct plans *plans)
{
    enum error e = of_all(txn, plans, find_targets(txn, source, plans->targets, &plans->count));
    if (!e)
        e = counter_read(txn, COUNTER_DELIVERIES_PENDING, id_span(&source->client), &plans->pending);
    for (uint32_t i = 0; !e && i < plans->count; i++) {
        e = plan(txn, source, &plans->targets[i], at_us, &plans->rows[i], &plans->blocked[i],
                 &plans->there[i]);
        plans->there[i] = plans->there[i] || e; /* nothing is added over what nobody knows */
        e = of_all(txn, plans, e);
    }
    return e;
}

enum error delivery_spread(struct txn *txn, const struct delivery_times *times,
                           const struct delivery_source *source, uint32_t *ret_count)
{
    struct plans plans = {.count = 0}; /* 17 KiB */
    uint32_t made = 0;
    ASSERT(source->bit < WEBHOOK_EVENTS_MAX);
    if (times->at_us > UINT64_MAX - times->kept_us)
        return ERR_INVALID;
    enum error e = make_plans(txn, times->at_us, source, &plans);
    if (e)
        return e;
    for (uint32_t i = 0; i < plans.count; i++) {
        bool backlog = plans.pending + made >= DELIVERIES_PENDING_MAX;
        if (plans.there[i])
            continue;
        add_row(txn, times, &plans.rows[i], plans.blocked[i], backlog);
        made++;
    }
    if (ret_count)
        *ret_count = made;
    return plans.damaged ? ERR_DAMAGED : OK;
}

/* ---- attempts ---- */

uint32_t delivery_attempts_kept(const struct delivery *delivery)
{
    return delivery->history.size / DELIVERY_ATTEMPT_SIZE;
}

/* at_us:8 took_ms:4 status:2 error:1 0:1, little-endian */
struct delivery_attempt delivery_attempt_at(const struct delivery *delivery, uint32_t position)
{
    const uint8_t *at = (const uint8_t *)delivery->history.bytes + position * DELIVERY_ATTEMPT_SIZE;
    struct delivery_attempt attempt;
    ASSERT(position < delivery_attempts_kept(delivery));
    memcpy(&attempt.at_us, at, 8);
    memcpy(&attempt.took_ms, at + 8, 4);
    memcpy(&attempt.status, at + 12, 2);
    attempt.error = at[14];
    return attempt;
}

/* One more, in the room that the history is held in; the oldest one makes way. */
static void note_attempt(struct delivery *d, const struct delivery_result *r, struct held *room)
{
    if (delivery_attempts_kept(d) == DELIVERY_HISTORY_MAX) {
        d->history.size -= DELIVERY_ATTEMPT_SIZE;
        memmove(room->history, room->history + DELIVERY_ATTEMPT_SIZE, d->history.size);
    }
    uint8_t *at = room->history + d->history.size;
    memcpy(at, &r->began_us, 8);
    memcpy(at + 8, &r->took_ms, 4);
    memcpy(at + 12, &r->status, 2);
    at[14] = r->error;
    at[15] = 0;
    d->history.size += DELIVERY_ATTEMPT_SIZE;
    d->attempts++;
    d->tries = (uint16_t)(d->tries + (d->tries < UINT16_MAX));
}

/* ---- settling ---- */

static bool result_sound(const struct delivery_result *r)
{
    bool timed = r->outcome == DELIVERY_RETRY;
    return r->outcome < DELIVERY_RESEND && r->error < DELIVERY_ERROR_COUNT &&
           (r->not_before_us != 0) == timed &&
           (r->outcome == DELIVERY_SUCCEED) == (r->error == DELIVERY_NO_ERROR);
}

/* Whether it tells of an attempt, and not only of an end without one. */
static bool was_made(const struct delivery *d, const struct delivery_result *r)
{
    return r->attempt == d->attempts + 1;
}

static bool is_stale(const struct delivery *d, const struct delivery_result *r)
{
    bool without =
        (r->outcome == DELIVERY_DROP || r->outcome == DELIVERY_GIVE_UP) && r->attempt == d->attempts;
    return d->state != DELIVERY_PENDING || d->not_before_us == 0 || (!was_made(d, r) && !without);
}

static void finish(struct txn *txn, uint64_t at_us, struct delivery *d, uint64_t kept_us)
{
    const struct delivery_index row = {.id = d->id};
    struct key dead = list_key(DELIVERY_LIST_FAILED, d);
    d->finished_us = at_us;
    d->gone_us = at_us < UINT64_MAX - kept_us ? at_us + kept_us : UINT64_MAX;
    retention_set(txn, RETENTION_DELIVERY, d->gone_us, &d->id, 0);
    if (d->state == DELIVERY_FAILED)
        txn_write(txn, TABLE_DELIVERY_INDEX, key_span(&dead),
                  &row); /* over one that had no reason to be there */
}

/* `d` was read in this transaction. */
static void move(struct txn *txn, uint64_t at_us, const struct delivery_settle *c, struct delivery *d,
                 const struct delivery_result *r)
{
    struct held room;
    uint8_t next = d->state;
    enum error e = lifecycle_next(&delivery_lifecycle, d->state, r->outcome, &next);
    ASSERT(!e); /* what isn't pending is stale */
    hold(d, &room);
    if (was_made(d, r))
        note_attempt(d, r, &room);
    make_unready(txn, d);
    count(txn, d, -1);
    d->state = next;
    d->error = r->error;
    if (next == DELIVERY_PENDING)
        make_ready(txn, d, c->steady_us, r->not_before_us);
    else
        finish(txn, at_us, d, c->kept_us);
    count(txn, d, 1);
    write_row(txn, d);
    if (next != DELIVERY_PENDING && !d->beside)
        pass_on(txn, c->steady_us, d);
}

static enum delivery_settled settle(struct txn *txn, uint64_t at_us, const struct delivery_settle *c,
                                    const struct delivery_result *r)
{
    struct delivery d;
    bool disabled = false;
    if (delivery_read(txn, &r->id, &d) != OK || is_stale(&d, r))
        return DELIVERY_STALE;
    bool made = was_made(&d, r);
    move(txn, at_us, c, &d, r);
    const struct webhook_attempt attempt = {.client = &d.client,
                                            .id = &d.webhook,
                                            .at_us = at_us,
                                            .steady_us = c->steady_us,
                                            .disable_after_us = c->disable_after_us,
                                            .delivered = r->outcome == DELIVERY_SUCCEED,
                                            .given_up = r->outcome == DELIVERY_GIVE_UP,
                                            .gone = r->status == DELIVERY_GONE_STATUS};
    /* A webhook's row that can't be read is told of by check; the delivery is settled all the same. */
    if (made && !uuid_equal(&d.webhook, &no_webhook))
        (void)webhook_attempted(txn, &attempt, &disabled);
    return disabled ? DELIVERY_WEBHOOK_DISABLED : DELIVERY_SETTLED;
}

/* Any bytes of this size are one: its fields have fixed sizes, and which values are sound is asked here. */
static enum error result_at(struct span results, uint32_t at, struct delivery_result *ret)
{
    enum error e = record_decode(&delivery_result_record, 1,
                                 span_of((const uint8_t *)results.bytes + at, DELIVERY_RESULT_SIZE), ret);
    ASSERT(e == OK);
    return result_sound(ret) ? OK : ERR_INVALID;
}

static enum error apply_settle(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct delivery_settle *c = command;
    struct delivery_result r;
    if (c->results.size == 0 || c->results.size % DELIVERY_RESULT_SIZE)
        return ERR_INVALID;
    for (uint32_t at = 0; at < c->results.size; at += DELIVERY_RESULT_SIZE)
        if (result_at(c->results, at, &r))
            return ERR_INVALID;
    for (uint32_t at = 0; at < c->results.size; at += DELIVERY_RESULT_SIZE) {
        (void)result_at(c->results, at, &r);
        uint8_t settled = (uint8_t)settle(txn, at_us, c, &r);
        answer_add(answer, &settled, sizeof(settled));
    }
    return OK;
}

const struct command_class delivery_settle_class = {
    .name = "delivery.settle",
    .record = &delivery_settle_record,
    .apply = apply_settle,
    .code = 245,
    .priority = COMMAND_HIGH,
    .cleanup = true,
};

/* ---- sending again ---- */

static enum error resendable(struct txn *txn, const struct delivery_resend *c, struct delivery *d,
                             uint8_t *next)
{
    struct webhook webhook;
    int64_t pending = 0;
    enum error e = delivery_read(txn, &c->id, d);
    if (e)
        return e;
    if (!uuid_equal(&d->client, &c->client))
        return ERR_FORBIDDEN;
    e = lifecycle_next(&delivery_lifecycle, d->state, DELIVERY_RESEND, next);
    if (!e && !uuid_equal(&d->webhook, &no_webhook)) {
        e = webhook_read(txn, &d->client, &d->webhook, &webhook);
        e = e == ERR_NOT_FOUND || (!e && webhook.state != WEBHOOK_ACTIVE) ? ERR_CONFLICT : e;
    }
    if (!e && d->state != DELIVERY_PENDING)
        e = counter_read(txn, COUNTER_DELIVERIES_PENDING, id_span(&d->client), &pending);
    return !e && pending >= DELIVERIES_PENDING_MAX ? ERR_LIMIT : e;
}

/* A row that has gone needn't be removed; check tells of it. */
static void leave_list(struct txn *txn, const struct key *key)
{
    (void)txn_try_remove(txn, TABLE_DELIVERY_INDEX, key_span(key));
}

/* It begins anew, beside its chain. */
static void revive(struct txn *txn, struct delivery *d, uint8_t next)
{
    struct key dead = list_key(DELIVERY_LIST_FAILED, d);
    if (d->state == DELIVERY_FAILED)
        leave_list(txn, &dead);
    retention_clear(txn, d->gone_us, &d->id);
    count(txn, d, -1);
    d->state = next;
    d->beside = 1;
    d->tries = 0;
    d->finished_us = d->gone_us = 0;
    count(txn, d, 1);
}

static enum error apply_resend(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct delivery_resend *c = command;
    struct held room;
    struct delivery d;
    uint8_t next;
    enum error e = resendable(txn, c, &d, &next);
    (void)at_us;
    (void)answer;
    if (e || (d.state == DELIVERY_PENDING && (d.not_before_us == 0 || d.not_before_us <= c->steady_us)))
        return e; /* refused; or it waits for another one, or is due already */
    hold(&d, &room);
    if (d.state == DELIVERY_PENDING)
        make_unready(txn, &d);
    else
        revive(txn, &d, next);
    make_ready(txn, &d, c->steady_us, c->steady_us);
    write_row(txn, &d);
    return OK;
}

const struct command_class delivery_resend_class = {
    .name = "delivery.resend",
    .record = &delivery_resend_record,
    .apply = apply_resend,
    .code = 246,
};

/* ---- lists ---- */

void delivery_scan_begin(struct txn *txn, enum delivery_list list, const struct uuid *of,
                         const struct key *after, struct delivery_scan *ret)
{
    static const struct uuid last = {
        {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
    enum scan_direction direction = list == DELIVERY_LIST_JOB ? SCAN_UP : SCAN_DOWN;
    struct key from = {.size = 0};
    key_add_u8(&from, (uint8_t)list);
    key_add_uuid(&from, of);
    uint32_t prefix = from.size;
    if (direction == SCAN_DOWN)
        key_add_uuid(&from, &last);
    ret->after = after ? *after : (struct key){.size = 0};
    /* A key of another list or of somebody else would let the scan begin elsewhere. */
    if (after && after->size > prefix && memcmp(after->bytes, from.bytes, prefix) == 0)
        from = *after;
    ret->scan = txn_scan(txn, TABLE_DELIVERY_INDEX, key_span(&from), prefix, direction);
}

enum error delivery_scan_next(struct delivery_scan *s, struct delivery *ret_delivery, struct key *ret_key)
{
    struct delivery_index row;
    while (scan_next(&s->scan)) {
        if (span_equal(s->scan.key, key_span(&s->after)))
            continue;
        enum error e = scan_read(&s->scan, &row);
        if (!e)
            e = delivery_read(s->scan.txn, &row.id, ret_delivery);
        if (e)
            return e == ERR_NOT_FOUND ? ERR_DAMAGED : e; /* written and removed together */
        ret_key->size = 0;
        key_add(ret_key, s->scan.key.bytes, s->scan.key.size);
        return OK;
    }
    return ERR_NOT_FOUND;
}

/* ---- retention ---- */

enum error delivery_expire(struct txn *txn, const struct due_entry *entry)
{
    struct delivery d;
    enum error e = delivery_read(txn, &entry->id, &d);
    if (e || d.gone_us == 0)
        return e ? e : ERR_NOT_FOUND; /* it was sent again: the entry is an old one */
    struct key order = order_key(&d), list = list_key(DELIVERY_LIST_ALL, &d),
               dead = list_key(DELIVERY_LIST_FAILED, &d);
    count(txn, &d, -1);
    if (d.state == DELIVERY_FAILED)
        leave_list(txn, &dead);
    leave_list(txn, &order);
    leave_list(txn, &list);
    txn_remove(txn, TABLE_DELIVERIES, id_span(&entry->id));
    return OK;
}

enum error delivery_find_due(struct txn *txn, const struct due_entry *entry)
{
    struct delivery d;
    enum error e = delivery_read(txn, &entry->id, &d);
    if (e)
        return e;
    return d.gone_us == entry->due_us ? OK : ERR_CONFLICT;
}

/* ---- what must be true ---- */

struct checked {
    struct check *check;
    struct txn *txn;
    const struct delivery *d;
    char id[UUID_TEXT_SIZE];
};

static void check_index(const struct checked *c, const struct key *key, bool there, const char *what)
{
    struct delivery_index row = {.id = {{0}}};
    enum error e = txn_read(c->txn, TABLE_DELIVERY_INDEX, key_span(key), &row);
    if (there && e == ERR_NOT_FOUND)
        check_complain(c->check, "deliveries: %s is missing in %s", c->id, what);
    else if (!there && e == OK)
        check_complain(c->check, "deliveries: %s is in %s and should not be", c->id, what);
    else if (e == OK && !uuid_equal(&row.id, &c->d->id))
        check_complain(c->check, "deliveries: the row of %s in %s names another one", c->id, what);
}

/* Pending ones have an entry unless they wait for another one; others have none, and had their turn. */
static void check_readiness(const struct checked *c)
{
    const struct delivery *d = c->d;
    bool blocked = false;
    struct due due;
    struct key at = due_key(DUE_DELIVERY, d->lane, d->not_before_us, &d->id);
    if (d->not_before_us && txn_read(c->txn, TABLE_DUE, key_span(&at), &due) == ERR_NOT_FOUND)
        check_complain(c->check, "deliveries: %s has no due entry", c->id);
    if (d->not_before_us && d->state != DELIVERY_PENDING)
        check_complain(c->check, "deliveries: %s is finished and due", c->id);
    if (is_blocked(c->txn, d, UNREADABLE_ENDS, &blocked) != OK)
        return; /* nobody knows */
    blocked = blocked && !d->beside;
    if (d->state != DELIVERY_PENDING && blocked)
        check_complain(c->check, "deliveries: %s has overtaken an earlier one of its job and receiver",
                       c->id);
    if (d->state == DELIVERY_PENDING && blocked != (d->not_before_us == 0))
        check_complain(c->check, "deliveries: %s %s", c->id,
                       blocked ? "overtakes an earlier one of its job and receiver" : "will never be sent");
}

void delivery_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    struct checked c = {.check = check, .txn = txn, .d = value};
    const struct delivery *d = c.d;
    uuid_format(&d->id, c.id);
    if (!span_equal(key, id_span(&d->id)))
        check_complain(check, "deliveries: %s stands under another id", c.id);
    if (!lifecycle_state_name(&delivery_lifecycle, d->state)) {
        check_complain(check, "deliveries: %s is in the unknown state %u", c.id, d->state);
        return;
    }
    if (d->history.size % DELIVERY_ATTEMPT_SIZE || delivery_attempts_kept(d) > d->attempts ||
        d->error >= DELIVERY_ERROR_COUNT)
        check_complain(check, "deliveries: the attempts of %s can't be", c.id);
    if (d->lane != lane_of(txn, d->host))
        check_complain(check, "deliveries: %s belongs to another lane", c.id);
    if ((d->state == DELIVERY_PENDING) != (d->gone_us == 0))
        check_complain(check, "deliveries: %s %s", c.id,
                       d->gone_us ? "is pending and will be removed"
                                  : "is finished and will never be removed");
    struct key order = order_key(d), list = list_key(DELIVERY_LIST_ALL, d),
               dead = list_key(DELIVERY_LIST_FAILED, d);
    check_index(&c, &order, true, "its chain");
    check_index(&c, &list, true, "its client's list");
    check_index(&c, &dead, d->state == DELIVERY_FAILED, "its client's failed ones");
    check_readiness(&c);
    check_count(check, COUNTER_DELIVERIES, span_of(&d->state, sizeof(d->state)), 1);
    if (d->state == DELIVERY_PENDING)
        check_count(check, COUNTER_DELIVERIES_PENDING, id_span(&d->client), 1);
}

void delivery_index_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    const struct delivery_index *row = value;
    char id[UUID_TEXT_SIZE];
    struct delivery d;
    uint8_t kind = key.size ? *(const uint8_t *)key.bytes : 0;
    if (key.size != (kind == DELIVERY_LIST_JOB ? ORDER_SIZE : LIST_SIZE) || kind == 0 ||
        kind > DELIVERY_LIST_FAILED) {
        check_complain(check, "delivery_index: a key of %u bytes and kind %u", key.size, kind);
        return;
    }
    uuid_format(&row->id, id);
    enum error e = delivery_read(txn, &row->id, &d);
    if (e == ERR_NOT_FOUND)
        check_complain(check, "delivery_index: a row of kind %u names %s, which isn't there", kind, id);
    if (e)
        return;
    struct key expected = kind == DELIVERY_LIST_JOB ? order_key(&d) : list_key((enum delivery_list)kind, &d);
    if (!span_equal(key, key_span(&expected)))
        check_complain(check, "delivery_index: a row of kind %u leads to %s by another way", kind, id);
}

void delivery_check_due(struct check *check, struct txn *txn, const struct due_entry *entry)
{
    char id[UUID_TEXT_SIZE];
    struct delivery d;
    uuid_format(&entry->id, id);
    switch (delivery_read(txn, &entry->id, &d)) {
    case OK:
        if (d.not_before_us != entry->due_us || d.lane != entry->shard)
            check_complain(check, "due: an entry of delivery %s that it did not ask for", id);
        break;
    case ERR_NOT_FOUND:
        check_complain(check, "due: an entry of delivery %s, which isn't there", id);
        break;
    default: /* damaged: complained about at the row itself */
        break;
    }
}
