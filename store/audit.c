#include "store/audit.h"

#include <stdio.h>

#include "runtime/hash.h"
#include "store/check.h"
#include "store/counter.h"
#include "store/event.h"
#include "store/ledger.h"
#include "store/outbox.h"
#include "store/retention.h"
#include "store/store.h"

#define FIRST_EVENT                           UINT64_C(1) /* and the only one of an entry */
#define NO_ROW                                UINT64_C(0) /* of the outbox */

#define audit_FIELD(name, TYPE, limit, since) RECORD_FIELD(audit, name, TYPE, limit, since)
RECORD_CLASS(audit, AUDIT_FIELDS, 1);
#define audit_append_FIELD(name, TYPE, limit, since) RECORD_FIELD(audit_append, name, TYPE, limit, since)
RECORD_CLASS(audit_append, AUDIT_APPEND_FIELDS, 1);

/* ---- appending ---- */

static const char scope_prefix[] = "audit.append/";
STATIC_ASSERT(sizeof(scope_prefix) - 1 + AUDIT_WHO_MAX <= LEDGER_SCOPE_MAX, "who fits into a scope");

struct scope {
    uint8_t bytes[LEDGER_SCOPE_MAX];
    uint32_t size;
};

static struct scope scope_of(struct span who)
{
    struct scope scope = {.size = sizeof(scope_prefix) - 1 + who.size};
    memcpy(scope.bytes, scope_prefix, sizeof(scope_prefix) - 1);
    if (who.size > 0)
        memcpy(scope.bytes + sizeof(scope_prefix) - 1, who.bytes, who.size);
    return scope;
}

static void hash_span(struct hash_sip *sip, struct span span)
{
    hash_sip_add(sip, &span.size, sizeof(span.size));
    hash_sip_add(sip, span.bytes, span.size);
}

static uint64_t hash_request(const struct hash_key *key, const struct audit_append *c)
{
    struct hash_sip sip;
    hash_sip_start(&sip, key);
    hash_span(&sip, c->who);
    hash_span(&sip, c->verb);
    hash_span(&sip, c->target);
    hash_span(&sip, c->reason);
    hash_span(&sip, c->outcome);
    hash_span(&sip, c->details);
    return hash_sip_end(&sip);
}

/* What makes two tries the same request, as 256 bits of keyed hash: the words differ by their keys. */
static struct digest digest_of(const struct txn *txn, const struct audit_append *c)
{
    struct digest digest;
    for (uint64_t i = 0; i < sizeof(digest.bytes) / sizeof(uint64_t); i++) {
        struct hash_key key;
        memcpy(&key, txn->store->secret, sizeof(key));
        key.k0 ^= i + 1;
        uint64_t word = hash_request(&key, c);
        memcpy(digest.bytes + i * sizeof(word), &word, sizeof(word));
    }
    return digest;
}

static bool sound(const struct audit_append *c, uint64_t at_us)
{
    static const struct uuid none = {{0}};
    return !uuid_equal(&c->id, &none) && c->verb.size > 0 && at_us < UINT64_MAX - AUDIT_KEPT_US;
}

/* Whether the entry can be written. */
static enum error appendable(struct txn *txn, const struct audit_append *c, uint64_t at_us)
{
    struct key key = key_of_uuid(&c->id);
    struct audit there;
    enum error e = sound(c, at_us) ? txn_read(txn, TABLE_AUDITS, key_span(&key), &there) : ERR_INVALID;
    if (e != ERR_NOT_FOUND)
        return e ? e : ERR_EXISTS;
    bool room =
        txn_rows(txn, TABLE_AUDITS) < txn->store->audits_max && (c->key.size == 0 || ledger_room(txn));
    return room ? OK : ERR_LIMIT;
}

static void append(struct txn *txn, const struct audit_append *c, uint64_t at_us)
{
    struct key key = key_of_uuid(&c->id);
    struct audit audit = {.id = c->id,
                          .at_us = at_us,
                          .who = c->who,
                          .verb = c->verb,
                          .target = c->target,
                          .reason = c->reason,
                          .outcome = c->outcome,
                          .request_id = c->request_id,
                          .details = c->details};
    txn_add(txn, TABLE_AUDITS, key_span(&key), &audit);
    retention_set(txn, RETENTION_AUDIT, at_us + AUDIT_KEPT_US, &c->id, NO_ROW);
    counter_add(txn, COUNTER_AUDITS, c->verb, 1);
}

enum error audit_note(struct txn *txn, uint64_t at_us, const struct audit_append *c)
{
    const struct event event = {.at_us = at_us,
                                .domain = AUDIT_DOMAIN,
                                .name = AUDIT_APPENDED,
                                .from_state = EVENT_NO_STATE,
                                .to_state = EVENT_NO_STATE};
    uint64_t seq;
    enum error e = appendable(txn, c, at_us);
    if (!e)
        e = event_append(txn, &c->id, FIRST_EVENT, &event, &seq, NULL);
    if (!e)
        append(txn, c, at_us);
    return e;
}

enum error audit_note_if_possible(struct txn *txn, uint64_t at_us, const struct audit_append *c)
{
    enum error e = audit_note(txn, at_us, c);
    return e == ERR_LIMIT || e == ERR_DAMAGED ? txn->error : e;
}

static void announce_append(const struct txn *txn, const void *command)
{
    const struct audit_append *c = command;
    struct scope scope = scope_of(c->who);
    if (c->key.size > 0)
        ledger_expect(txn, span_of(scope.bytes, scope.size), c->key);
}

static enum error apply_append(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct audit_append *c = command;
    struct scope scope = scope_of(c->who);
    struct span scope_span = span_of(scope.bytes, scope.size), id = span_of(&c->id, sizeof(c->id));
    struct digest digest = {{0}};
    struct ledger row;
    enum error e = ERR_NOT_FOUND;
    if (c->key.size > 0) {
        digest = digest_of(txn, c);
        e = ledger_find(txn, at_us, scope_span, c->key, &digest, &row);
    }
    if (e == OK)
        answer_add(answer, row.answer.bytes, row.answer.size);
    if (e != ERR_NOT_FOUND)
        return e;
    e = audit_note(txn, at_us, c);
    if (e)
        return e;
    if (c->key.size > 0)
        ledger_put(txn, LEDGER_DAY, at_us, scope_span, c->key, &digest, id);
    answer_add(answer, id.bytes, id.size);
    return OK;
}

const struct command_class audit_append_class = {
    .name = "audit.append",
    .record = &audit_append_record,
    .apply = apply_append,
    .announce = announce_append,
    .code = 30,
};

/* ---- when its time is over ---- */

enum error audit_expire(struct txn *txn, const struct due_entry *entry)
{
    struct key key = key_of_uuid(&entry->id);
    uint8_t verb[COUNTER_LABEL_MAX];
    struct audit audit;
    bool left;
    enum error e = txn_read(txn, TABLE_AUDITS, key_span(&key), &audit);
    if (e)
        return e;
    struct span label = span_of(verb, audit.verb.size); /* what was read goes with the first write */
    memcpy(verb, audit.verb.bytes, audit.verb.size);
    if (entry->row.value != NO_ROW)
        e = outbox_forget(txn, outbox_partition(txn, &entry->id), entry->row.value);
    if (!e)
        e = event_remove_stream(txn, &entry->id, 1, &left);
    if (e)
        return e == ERR_NOT_FOUND ? ERR_DAMAGED : e;
    if (left)
        return ERR_LIMIT;
    txn_remove(txn, TABLE_AUDITS, key_span(&key));
    counter_add(txn, COUNTER_AUDITS, label, -1);
    return OK;
}

/* ---- what an earlier version has put into the outbox ---- */

#define PAGE_MAX 32u /* rows on the stack at one time */

/* Up to `most` rows behind *after; false: there are no more, or none of these was one. Nobody takes them, so they stand in front: a
 * page without any says that there are none behind those that are on their way. */
static bool clear_page(struct txn *txn, uint16_t partition, uint32_t most, uint64_t *after)
{
    struct outbox_row rows[PAGE_MAX];
    uint32_t count = 0, cleared = 0;
    enum error e = outbox_scan(txn, partition, *after, rows, most, &count);
    for (uint32_t i = 0; i < count; i++) {
        *after = rows[i].seq;
        if (rows[i].error || rows[i].row.topic != AUDIT_TOPIC)
            continue;
        (void)outbox_forget(txn, partition, rows[i].seq);
        cleared++;
    }
    return !e && count == most && cleared > 0;
}

void audit_clear_outbox(struct txn *txn, uint32_t limit, bool *ret_more)
{
    *ret_more = false;
    for (uint16_t partition = 0; partition < OUTBOX_PARTITIONS; partition++) {
        uint32_t left = limit;
        uint64_t after = 0;
        bool more = true;
        while (more && left > 0) {
            uint32_t most = left < PAGE_MAX ? left : PAGE_MAX;
            more = clear_page(txn, partition, most, &after);
            left -= most;
        }
        *ret_more |= more;
    }
}

/* ---- what must be true ---- */

enum error audit_find_due(struct txn *txn, const struct due_entry *entry)
{
    struct key key = key_of_uuid(&entry->id);
    struct audit audit;
    enum error e = txn_read(txn, TABLE_AUDITS, key_span(&key), &audit);
    if (e)
        return e;
    return audit.at_us + AUDIT_KEPT_US == entry->due_us ? OK : ERR_CONFLICT;
}

void audit_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    const struct audit *audit = value;
    char id[UUID_TEXT_SIZE];
    struct event event;
    struct due due;
    uuid_format(&audit->id, id);
    if (!span_equal(key, span_of(&audit->id, sizeof(audit->id))))
        check_complain(check, "audits: %s stands under another id", id);
    struct key due_at = due_key(DUE_RETENTION, RETENTION_SHARD, audit->at_us + AUDIT_KEPT_US, &audit->id);
    if (txn_read(txn, TABLE_DUE, key_span(&due_at), &due) == ERR_NOT_FOUND)
        check_complain(check, "audits: %s will never be removed, its due entry isn't there", id);
    if (event_read(txn, &audit->id, FIRST_EVENT, &event) == ERR_NOT_FOUND)
        check_complain(check, "audits: %s has no event", id);
    check_count(check, COUNTER_AUDITS, audit->verb, 1);
}
