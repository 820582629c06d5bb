#include "store/revocation.h"

#include <stdio.h>

#include "store/check.h"
#include "store/named_id.h"
#include "store/retention.h"
#include "store/store.h"

#define revocation_FIELD(name, TYPE, limit, since) RECORD_FIELD(revocation, name, TYPE, limit, since)
RECORD_CLASS(revocation, REVOCATION_FIELDS, 1);
#define revocation_put_FIELD(name, TYPE, limit, since) RECORD_FIELD(revocation_put, name, TYPE, limit, since)
RECORD_CLASS(revocation_put, REVOCATION_PUT_FIELDS, 1);

static const char *const kind_names[] = {
#define X(id, name) [id] = name,
    REVOCATION_KINDS(X)
#undef X
};

const char *revocation_kind_name(uint8_t kind)
{
    return kind < REVOCATION_KIND_COUNT ? kind_names[kind] : NULL;
}

static struct uuid id_of(const struct store *store, uint8_t kind, struct span issuer, struct span value)
{
    const struct span parts[] = {span_of(&kind, sizeof(kind)), issuer, value};
    return named_id(store, "revocation", parts, sizeof(parts) / sizeof(parts[0]));
}

/* ---- revocation.put ---- */

static bool sound(const struct revocation_put *c, uint64_t at_us)
{
    return c->kind < REVOCATION_KIND_COUNT && c->value.size > 0 &&
           (c->expires_us == 0 || c->expires_us > at_us);
}

/* The later of two ends; 0 is never. */
static uint64_t later(uint64_t a, uint64_t b)
{
    if (a == 0 || b == 0)
        return 0;
    return a > b ? a : b;
}

static uint64_t latest(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t most = a > b ? a : b;
    return most > c ? most : c;
}

static enum error note(struct txn *txn, uint64_t at_us, const struct revocation_put *c)
{
    char verb[32];
    snprintf(verb, sizeof(verb), "%s.revoked", kind_names[c->kind]);
    return audit_note_if_possible(txn, at_us,
                                  &(struct audit_append){.id = c->audit,
                                                         .who = c->who,
                                                         .verb = span_text(verb),
                                                         .target = c->value,
                                                         .reason = c->reason,
                                                         .outcome = span_text("done"),
                                                         .request_id = c->request_id});
}

enum error revocation_read(struct txn *txn, enum revocation_kind kind, struct span issuer, struct span value,
                           struct revocation *ret_revocation)
{
    struct uuid id = id_of(txn->store, (uint8_t)kind, issuer, value);
    struct key key = key_of_uuid(&id);
    return txn_read(txn, TABLE_REVOCATIONS, key_span(&key), ret_revocation);
}

enum error revocation_plan(struct txn *txn, uint64_t at_us, const struct revocation_put *c,
                           struct revocation_plan *ret_plan)
{
    struct revocation there = {.expires_us = 0};
    if (!sound(c, at_us))
        return ERR_INVALID;
    enum error e = revocation_read(txn, (enum revocation_kind)c->kind, c->issuer, c->value, &there);
    bool known = e == OK;
    if (e && e != ERR_NOT_FOUND)
        return e;
    if (!known && txn_rows(txn, TABLE_REVOCATIONS) >= REVOCATIONS_MAX)
        return ERR_LIMIT;
    *ret_plan = (struct revocation_plan){
        .row = {.id = id_of(txn->store, c->kind, c->issuer, c->value),
                .kind = c->kind,
                .issuer = c->issuer,
                .value = c->value,
                .revoked_us = latest(at_us, c->cut_off_us, known ? there.revoked_us : 0),
                .expires_us = known ? later(there.expires_us, c->expires_us) : c->expires_us,
                .who = c->who,
                .reason = c->reason},
        .before_us = known ? there.expires_us : 0};
    return OK;
}

void revocation_keep(struct txn *txn, const struct revocation_plan *plan)
{
    const struct revocation *row = &plan->row;
    struct key key = key_of_uuid(&row->id);
    txn_write(txn, TABLE_REVOCATIONS, key_span(&key), row);
    if (plan->before_us == row->expires_us)
        return;
    if (plan->before_us)
        retention_clear(txn, plan->before_us, &row->id);
    if (row->expires_us)
        retention_set(txn, RETENTION_REVOCATION, row->expires_us, &row->id, 0);
}

static enum error apply_put(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct revocation_put *c = command;
    struct revocation_plan plan;
    enum error e = revocation_plan(txn, at_us, c, &plan);
    if (!e)
        e = note(txn, at_us, c);
    if (e)
        return e;
    revocation_keep(txn, &plan);
    answer_add(answer, &plan.row.id, sizeof(plan.row.id));
    return OK;
}

const struct command_class revocation_put_class = {
    .name = "revocation.put",
    .record = &revocation_put_record,
    .apply = apply_put,
    .code = 113,
    .priority = COMMAND_HIGH,
};

/* ---- when its time is over ---- */

enum error revocation_expire(struct txn *txn, const struct due_entry *entry)
{
    struct key key = key_of_uuid(&entry->id);
    struct revocation row;
    enum error e = txn_read(txn, TABLE_REVOCATIONS, key_span(&key), &row);
    if (!e)
        txn_remove(txn, TABLE_REVOCATIONS, key_span(&key));
    return e;
}

/* ---- what must be true ---- */

enum error revocation_find_due(struct txn *txn, const struct due_entry *entry)
{
    struct key key = key_of_uuid(&entry->id);
    struct revocation row;
    enum error e = txn_read(txn, TABLE_REVOCATIONS, key_span(&key), &row);
    if (e)
        return e;
    return row.expires_us == entry->due_us ? OK : ERR_CONFLICT;
}

void revocation_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    const struct revocation *row = value;
    struct uuid right = id_of(txn->store, row->kind, row->issuer, row->value);
    char id[UUID_TEXT_SIZE];
    struct due due;
    uuid_format(&row->id, id);
    if (!span_equal(key, span_of(&row->id, sizeof(row->id))) || !uuid_equal(&right, &row->id))
        check_complain(check, "revocations: %s isn't the id of what it revokes", id);
    if (row->kind >= REVOCATION_KIND_COUNT)
        check_complain(check, "revocations: %s is of the unknown kind %u", id, row->kind);
    if (row->expires_us == 0)
        return;
    struct key due_at = due_key(DUE_RETENTION, RETENTION_SHARD, row->expires_us, &row->id);
    if (txn_read(txn, TABLE_DUE, key_span(&due_at), &due) == ERR_NOT_FOUND)
        check_complain(check, "revocations: %s will never be removed, its due entry isn't there", id);
}
