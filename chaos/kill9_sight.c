#include "chaos/kill9_sight.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "chaos/kill9_ordeal.h"
#include "store/client.h"
#include "store/counter.h"
#include "store/event.h"
#include "store/ledger.h"

/* ---- rows of the outbox ---- */

static struct sight_row rows_seen[OWNERS][PARCELS][STEPS];
static struct sight_row notes_seen[OWNERS][PARCELS][SLOTS + 1]; /* of its keys, and its own */

/* NULL: it complained. */
static struct sight_row *see_row(const struct uuid *stream, uint64_t event)
{
    uint32_t owner, index, slot;
    if (event == 1 && names_find_note(stream, &owner, &index, &slot))
        return &notes_seen[owner][index][slot];
    if (!names_find(stream, &owner, &index) || event < 1 || event > STEPS) {
        ordeal_complain("a row of the outbox is about something that nobody sent");
        return NULL;
    }
    return &rows_seen[owner][index][event - 1];
}

bool sight_take(struct txn *txn)
{
    memset(rows_seen, 0, sizeof(rows_seen));
    memset(notes_seen, 0, sizeof(notes_seen));
    struct key first = {.size = 0};
    key_add_u8(&first, 0);
    struct scan scan = txn_scan(txn, TABLE_OUTBOX, key_span(&first), 0, SCAN_UP);
    while (scan_next(&scan)) {
        struct outbox row;
        enum error e = scan_read(&scan, &row);
        if (e != OK)
            return ordeal_complain("a row of the outbox can't be read: %s", error_name(e));
        struct sight_row *seen = see_row(&row.stream, row.event);
        if (!seen)
            return false;
        seen->count++;
        seen->attempts = row.attempts;
        seen->partition = key_u16(scan.key.bytes);
        seen->seq = key_u64((const uint8_t *)scan.key.bytes + 2);
    }
    enum error e = scan_end(&scan);
    if (e != OK)
        return ordeal_complain("the outbox can't be read: %s", error_name(e));
    scan = txn_scan(txn, TABLE_DEAD, key_span(&first), 0, SCAN_UP);
    while (scan_next(&scan)) {
        struct dead row;
        e = scan_read(&scan, &row);
        struct sight_row *seen = e == OK ? see_row(&row.stream, row.event) : NULL;
        if (!seen)
            return ordeal_complain("a dead row can't be read, or is about nothing: %s", error_name(e));
        seen->dead++;
        seen->attempts = row.attempts;
    }
    e = scan_end(&scan);
    return e == OK || ordeal_complain("the dead rows can't be read: %s", error_name(e));
}

const struct sight_row *sight_row(uint32_t owner, uint32_t index, uint32_t event)
{
    return &rows_seen[owner][index][event];
}

/* ---- a parcel ---- */

/* Why it isn't what it should be; empty: it is. */
static char difference[200];

__attribute__((format(printf, 1, 2))) static bool differs(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(difference, sizeof(difference), format, args);
    va_end(args);
    return false;
}

static bool row_is(uint32_t owner, uint32_t index, const struct parcel_model *p, uint32_t i)
{
    const struct sight_row *seen = &rows_seen[owner][index][i];
    if (p->there == DROPPED)
        return (seen->count == 0 && seen->dead == 0) || differs("a row of the outbox is left of it");
    if (i >= p->events)
        return (seen->count == 0 && seen->dead == 0 && p->row[i] == WAITING) ||
               differs("a row of the outbox is there, or was marked, of an event that isn't: %u", i + 1);
    uint8_t row = p->row[i];
    if (p->row_open[i] && row == WAITING && seen->count == 0)
        row = p->open_fate[i];
    if (seen->count != (row == WAITING) || seen->dead != (row == BURIED))
        return differs("event %u is %u times in the outbox and %u times among the dead", i + 1, seen->count,
                       seen->dead);
    if (row == GONE || seen->attempts == p->defers[i])
        return true;
    return (p->defer_open[i] && seen->attempts == p->defers[i] + 1) ||
           differs("event %u: %u attempts for %u", i + 1, seen->attempts, p->defers[i]);
}

static bool event_is(struct txn *txn, const struct uuid *id, const struct parcel *record,
                     const struct parcel_model *p, uint32_t i, uint64_t *before_us)
{
    static const uint8_t to[] = {
        [PARCEL_SEND] = PARCEL_SENT, [PARCEL_DELIVER] = PARCEL_DELIVERED, [PARCEL_LOSE] = PARCEL_LOST};
    struct event event;
    enum error e = event_read(txn, id, i + 1, &event);
    if (e != OK)
        return differs("event %u: %s", i + 1, error_name(e));
    uint8_t state = i ? to[p->event[i]] : PARCEL_HELD;
    if (event.to_state != state)
        return differs("event %u leads to state %u, not %u", i + 1, event.to_state, state);
    if (event.at_us < *before_us)
        return differs("event %u is before the one before it", i + 1);
    if (p->at_us[i] && event.at_us != p->at_us[i])
        return differs("event %u has another time", i + 1);
    if (i == 0 && event.at_us != record->at_us)
        return differs("the record's time isn't the event's");
    if (i + 1 == p->events && event.at_us != record->moved_us)
        return differs("the record moved at another time than the event says");
    *before_us = event.at_us;
    return true;
}

static bool told(struct txn *txn, struct span scope, struct span key, const struct digest *digest,
                 const struct model_answer *answer)
{
    struct ledger row;
    enum error e = ledger_find(txn, ordeal.clock_us, scope, key, digest, &row);
    if (!answer)
        return e == ERR_NOT_FOUND || differs("the ledger knows its key: %s", error_name(e));
    if (e != OK)
        return differs("the ledger: %s", error_name(e));
    return model_answers(answer, row.answer.bytes, row.answer.size) ||
           differs("the ledger has another answer");
}

static bool ledger_is(struct txn *txn, uint32_t owner, uint32_t index, const struct sent_model *sent)
{
    struct digest digest = names_digest(owner, index, sent->variant);
    struct model_answer answer = model_answer_sent(owner, index);
    char text[NAMES_SIZE];
    snprintf(text, sizeof(text), "k%" PRIu32, index + 1);
    return told(txn, span_text(names_scope(owner)), span_text(text), &digest, sent->used ? &answer : NULL);
}

static bool due_is(struct txn *txn, const struct uuid *id, uint64_t due_us)
{
    struct key key = due_key(DUE_RETENTION, RETENTION_SHARD, due_us, id);
    struct due row;
    enum error e = txn_read(txn, TABLE_DUE, key_span(&key), &row);
    return e == OK || differs("its due entry: %s", error_name(e));
}

/* The numbers of its outbox rows, which it keeps, are those under which the rows stand. */
static bool numbers_are(uint32_t owner, uint32_t index, const struct parcel *record,
                        const struct parcel_model *p)
{
    if (record->rows.size != p->events * sizeof(uint64_t))
        return differs("%u bytes of row numbers for %u events", record->rows.size, p->events);
    for (uint32_t i = 0; i < p->events; i++) {
        const struct sight_row *seen = &rows_seen[owner][index][i];
        uint64_t seq;
        memcpy(&seq, (const uint8_t *)record->rows.bytes + i * sizeof(seq), sizeof(seq));
        if (seen->count && seen->seq != seq)
            return differs("the row of event %u is not where the record says", i + 1);
    }
    return true;
}

static bool record_is(struct txn *txn, uint32_t owner, uint32_t index, const struct parcel_model *p)
{
    struct uuid id = names_parcel(owner, index);
    struct key key = key_of_uuid(&id);
    struct parcel record;
    uint64_t last;
    enum error e = txn_read(txn, TABLE_PARCELS, key_span(&key), &record);
    if (p->there != LIVING && e != ERR_NOT_FOUND)
        return differs("the record is there: %s", error_name(e));
    if (p->there == LIVING && e != OK)
        return differs("the record: %s", error_name(e));
    enum error events = event_last(txn, &id, &last);
    if (events != OK || last != (p->there == LIVING ? p->events : 0))
        return differs("%" PRIu64 " events: %s", events == OK ? last : 0, error_name(events));
    if (p->there != LIVING)
        return true;
    if (record.state != p->state || record.due_us != p->due_us ||
        !span_equal(record.body, names_body(owner, index, p->size)))
        return differs("the record has other values: state %u for %u, %u bytes for %u", record.state,
                       p->state, record.body.size, p->size);
    uint64_t before_us = 0;
    if (!numbers_are(owner, index, &record, p))
        return false;
    for (uint32_t i = 0; i < p->events; i++)
        if (!event_is(txn, &id, &record, p, i, &before_us))
            return false;
    return p->due_us == 0 || due_is(txn, &id, p->due_us);
}

/* ---- what has its number ---- */

static bool token_is(struct txn *txn, uint32_t owner, uint32_t index, const struct parcel_model *p)
{
    char text[NAMES_SIZE];
    struct span jti = names_token(owner, index, text);
    struct uuid id = seen_token_id(txn->store, span_text("kill9"), jti);
    struct key key = key_of_uuid(&id);
    struct seen_token row;
    enum error e = txn_read(txn, TABLE_SEEN_TOKENS, key_span(&key), &row);
    if (!p->used)
        return e == ERR_NOT_FOUND || differs("its token was used: %s", error_name(e));
    if (e != OK)
        return differs("its token: %s", error_name(e));
    struct digest digest = names_digest(owner, index, p->used - 1u);
    if (!span_equal(row.jti, jti) || !span_equal(row.subject, span_text(names_scope(owner))) ||
        memcmp(&row.digest, &digest, sizeof(digest)) != 0 || row.expires_us != ATTEMPT_TOKEN_EXPIRES_US)
        return differs("its token has other values");
    return due_is(txn, &id, ATTEMPT_TOKEN_EXPIRES_US);
}

/* Which of its keys stands, and how many there were. */
static bool keyed_is(struct txn *txn, uint32_t owner, uint32_t index, const struct parcel_model *p)
{
    struct uuid client = names_parcel(owner, index), active = {{0}};
    struct client_keys keys = {.issued = 0};
    enum error e = client_read_keys(txn, &client, &keys);
    if (p->active)
        active = names_api_key(owner, index, p->active - 1u);
    return (e == OK && keys.issued == p->issued && uuid_equal(&keys.active, &active)) ||
           differs("its client had %" PRIu64 " keys, not %u, or another one stands: %s", keys.issued,
                   p->issued, error_name(e));
}

static bool client_is(struct txn *txn, uint32_t owner, uint32_t index, const struct parcel_model *p)
{
    struct uuid id = names_parcel(owner, index);
    struct client client;
    enum error e = client_read(txn, &id, &client);
    if (!p->enrolled)
        return e == ERR_NOT_FOUND || differs("its client has come: %s", error_name(e));
    if (e != OK)
        return differs("its client: %s", error_name(e));
    if (!uuid_equal(&client.id, &id))
        return differs("its client has another id");
    return keyed_is(txn, owner, index, p) &&
           (p->issued > 0 || due_is(txn, &id, client.created_us + CLIENT_UNUSED_US));
}

/* An audit entry, its event, and when it goes; nobody is told of it by the outbox. */
static bool audited(struct txn *txn, const struct uuid *id, bool there, uint32_t rows, struct span target)
{
    struct key key = key_of_uuid(id);
    struct audit audit;
    struct event event;
    enum error e = txn_read(txn, TABLE_AUDITS, key_span(&key), &audit);
    if (rows > 0)
        return differs("its audit entry has %u rows in the outbox", rows);
    if (!there)
        return e == ERR_NOT_FOUND || differs("its audit entry: %s", error_name(e));
    if (e != OK || !span_equal(audit.target, target))
        return differs("its audit entry: %s", e ? error_name(e) : "it is another one");
    uint64_t due_us = audit.at_us + AUDIT_KEPT_US;
    e = event_read(txn, id, 1, &event);
    return e == OK ? due_is(txn, id, due_us) : differs("its audit entry's event: %s", error_name(e));
}

static bool note_is(struct txn *txn, uint32_t owner, uint32_t index, const struct parcel_model *p)
{
    struct uuid id = names_note(owner, index);
    return audited(txn, &id, p->noted, notes_seen[owner][index][SLOTS].count, span_text(names_scope(owner)));
}

/* ---- keys of its client ---- */

static bool key_times_are(const struct api_key *row, const struct api_key_model *key)
{
    uint64_t expires_us = row->created_us + (key->spent ? 0 : ATTEMPT_KEY_TTL_US);
    uint64_t end_us = key->end && row->ended_us < expires_us ? row->ended_us : expires_us;
    if (key->created_us && row->created_us != key->created_us)
        return differs("its client's key was made at another time");
    if (key->end && key->ended_us && row->ended_us != key->ended_us)
        return differs("its client's key ended at another time");
    return (row->expires_us == expires_us &&
            row->gone_us == end_us + (key->fleeting ? 0 : ATTEMPT_KEY_KEPT_US)) ||
           differs("its client's key is over at another time");
}

static bool key_has_values(const struct api_key *row, uint32_t owner, const struct uuid *client,
                           const struct api_key_model *key)
{
    if (!uuid_equal(&row->client, client) || !span_equal(row->created_by, span_text(names_scope(owner))))
        return differs("its client's key is somebody else's");
    if (row->end != key->end || (row->ended_us != 0) != (key->end != API_KEY_NOT_ENDED))
        return differs("its client's key has the end '%s' for '%s'", api_key_end_name(row->end),
                       api_key_end_name(key->end));
    if (row->used_us != key->used_us)
        return differs("its client's key was used at %" PRIu64 ", not %" PRIu64, row->used_us, key->used_us);
    return key_times_are(row, key);
}

static bool key_is(struct txn *txn, uint32_t owner, uint32_t index, uint32_t slot,
                   const struct api_key_model *key)
{
    struct uuid client = names_parcel(owner, index), id = names_api_key(owner, index, slot);
    struct digest hash = names_api_key_hash(owner, index, slot);
    struct api_key row, found;
    enum error e = api_key_read(txn, &id, &row);
    enum error by_hash = api_key_find(txn, &hash, &found);
    if (key->there != LIVING)
        return (e == ERR_NOT_FOUND && by_hash == ERR_NOT_FOUND) ||
               differs("its client's key %u is there: %s, %s", slot, error_name(e), error_name(by_hash));
    if (e || by_hash || !uuid_equal(&found.id, &id))
        return differs("its client's key %u: %s, by its hash %s", slot, error_name(e), error_name(by_hash));
    return key_has_values(&row, owner, &client, key) && due_is(txn, &id, row.gone_us);
}

static bool issue_is(struct txn *txn, uint32_t owner, uint32_t index, uint32_t slot,
                     const struct issue_model *issue)
{
    struct uuid client = names_parcel(owner, index);
    struct digest digest = names_digest(owner, index, issue->variant);
    struct model_answer answer = model_answer_issued(owner, index, issue, false);
    char key[NAMES_SIZE], scope[ATTEMPT_SCOPE_SIZE];
    return told(txn, attempt_issue_scope(&client, scope), attempt_issue_key(slot, key), &digest,
                issue->used ? &answer : NULL);
}

static bool key_note_is(struct txn *txn, uint32_t owner, uint32_t index, uint32_t slot, bool noted)
{
    struct uuid id = names_api_key_note(owner, index, slot), about = names_api_key(owner, index, slot);
    char target[UUID_TEXT_SIZE];
    uuid_format(&about, target);
    return audited(txn, &id, noted, notes_seen[owner][index][slot].count, span_text(target));
}

static bool keys_are(struct txn *txn, uint32_t owner, uint32_t index, const struct parcel_model *p)
{
    if (!p->enrolled)
        return true; /* then there is no other row either: the number of rows says so */
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        if (!key_is(txn, owner, index, slot, &p->keys[slot]) ||
            !issue_is(txn, owner, index, slot, &p->told[slot]) ||
            !key_note_is(txn, owner, index, slot, p->keys[slot].noted))
            return false;
    return true;
}

bool sight_retained(struct txn *txn, const struct lane_model *lane)
{
    int64_t noted = 0;
    enum error e = counter_read(txn, COUNTER_RETAINED, span_of(NULL, 0), &noted);
    return (e == OK && (lane->retained_open || noted == (int64_t)lane->retained_us)) ||
           differs("retention noted %" PRId64 ", not %" PRIu64 ": %s", noted, lane->retained_us,
                   error_name(e));
}

bool sight_is(struct txn *txn, uint32_t owner, uint32_t index, const struct lane_model *lane)
{
    const struct parcel_model *p = &lane->parcel[index];
    difference[0] = 0;
    if (!record_is(txn, owner, index, p) || !ledger_is(txn, owner, index, &lane->key[index + 1]) ||
        !token_is(txn, owner, index, p) || !client_is(txn, owner, index, p) ||
        !keys_are(txn, owner, index, p) || !note_is(txn, owner, index, p))
        return false;
    for (uint32_t i = 0; i < STEPS; i++)
        if (!row_is(owner, index, p, i))
            return false;
    return true;
}

const char *sight_difference(void)
{
    return difference;
}
