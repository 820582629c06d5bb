#include "store/signing_key.h"

#include "store/check.h"
#include "store/retention.h"

#define signing_key_FIELD(name, TYPE, limit, since) RECORD_FIELD(signing_key, name, TYPE, limit, since)
RECORD_CLASS(signing_key, SIGNING_KEY_FIELDS, 1);
#define signing_key_rotate_FIELD(name, TYPE, limit, since) \
    RECORD_FIELD(signing_key_rotate, name, TYPE, limit, since)
RECORD_CLASS(signing_key_rotate, SIGNING_KEY_ROTATE_FIELDS, 1);
#define signing_key_revoke_FIELD(name, TYPE, limit, since) \
    RECORD_FIELD(signing_key_revoke, name, TYPE, limit, since)
RECORD_CLASS(signing_key_revoke, SIGNING_KEY_REVOKE_FIELDS, 1);
#define signing_key_remove_FIELD(name, TYPE, limit, since) \
    RECORD_FIELD(signing_key_remove, name, TYPE, limit, since)
RECORD_CLASS(signing_key_remove, SIGNING_KEY_REMOVE_FIELDS, 1);

/* ---- the lifecycle ---- */

static const struct lifecycle_state states[] = {
#define X(id, name, flags) [id] = {name, flags},
    SIGNING_KEY_STATES(X)
#undef X
};
static const char *const events[] = {
#define X(id, name) [id] = name,
    SIGNING_KEY_EVENTS(X)
#undef X
};
static const struct lifecycle_edge edges[] = {
    {SIGNING_KEY_ACTIVE, SIGNING_KEY_ROTATE, SIGNING_KEY_RETIRING},
    {SIGNING_KEY_ACTIVE, SIGNING_KEY_REVOKE, SIGNING_KEY_REVOKED},
    {SIGNING_KEY_RETIRING, SIGNING_KEY_REVOKE, SIGNING_KEY_REVOKED},
    {SIGNING_KEY_RETIRING, SIGNING_KEY_REMOVE, SIGNING_KEY_REMOVED},
};
const struct lifecycle signing_key_lifecycle = {
    .name = "signing key",
    .states = states,
    .events = events,
    .edges = edges,
    .states_count = SIGNING_KEY_STATE_COUNT,
    .events_count = SIGNING_KEY_EVENT_COUNT,
    .edges_count = sizeof(edges) / sizeof(edges[0]),
};

/* ---- a row that is changed: its texts are kept, because what was read is gone with the first write ---- */

struct kept {
    struct signing_key row;
    uint8_t algorithm[16], environment[16], created_by[AUDIT_WHO_MAX], public_jwk[SIGNING_KEY_JWK_MAX];
};

static struct span keep(struct span text, uint8_t *room)
{
    if (text.size > 0)
        memcpy(room, text.bytes, text.size);
    return span_of(room, text.size);
}

/* The row as it will be after the event. The private half ends with being active. */
static enum error next_of(struct txn *txn, const struct uuid *id, uint8_t event, struct kept *ret)
{
    struct key key = key_of_uuid(id);
    uint8_t to;
    enum error e = txn_read(txn, TABLE_SIGNING_KEYS, key_span(&key), &ret->row);
    if (!e)
        e = lifecycle_next(&signing_key_lifecycle, ret->row.state, event, &to);
    if (e)
        return e;
    ret->row.state = to;
    ret->row.algorithm = keep(ret->row.algorithm, ret->algorithm);
    ret->row.environment = keep(ret->row.environment, ret->environment);
    ret->row.created_by = keep(ret->row.created_by, ret->created_by);
    ret->row.public_jwk = keep(ret->row.public_jwk, ret->public_jwk);
    ret->row.sealed = span_of(NULL, 0);
    return OK;
}

static void write_row(struct txn *txn, const struct signing_key *row)
{
    struct key key = key_of_uuid(&row->id);
    txn_write(txn, TABLE_SIGNING_KEYS, key_span(&key), row);
}

static enum error note(struct txn *txn, uint64_t at_us, const struct uuid *audit, const char *verb,
                       const struct uuid *id, struct span who, struct span reason, struct span request_id,
                       const char *details)
{
    char kid[UUID_TEXT_SIZE];
    uuid_format(id, kid);
    const struct audit_append entry = {.id = *audit,
                                       .who = who,
                                       .verb = span_text(verb),
                                       .target = span_text(kid),
                                       .reason = reason,
                                       .outcome = span_text("done"),
                                       .request_id = request_id,
                                       .details = span_text(details)};
    return audit_note_if_possible(txn, at_us, &entry);
}

/* ---- signing_key.rotate ---- */

/* Whether keys of this environment are there, and whether one of them is active. */
static enum error look(struct txn *txn, struct span environment, bool *ret_any, bool *ret_active)
{
    const struct key from = {.size = 0};
    struct scan scan = txn_scan(txn, TABLE_SIGNING_KEYS, key_span(&from), 0, SCAN_UP);
    struct signing_key row;
    *ret_any = *ret_active = false;
    while (scan_next(&scan) && scan_read(&scan, &row) == OK) {
        if (!span_equal(row.environment, environment))
            continue;
        *ret_any = true;
        *ret_active |= row.state == SIGNING_KEY_ACTIVE;
    }
    return scan_end(&scan);
}

static enum error without_previous(struct txn *txn, const struct signing_key_rotate *c)
{
    bool any, active;
    enum error e = look(txn, c->environment, &any, &active);
    if (e)
        return e;
    if (c->first && any)
        return ERR_EXISTS;
    return active ? ERR_CONFLICT : OK;
}

static enum error with_previous(struct txn *txn, uint64_t at_us, const struct signing_key_rotate *c,
                                struct kept *ret_previous)
{
    enum error e = next_of(txn, &c->previous, SIGNING_KEY_ROTATE, ret_previous);
    if (e)
        return e;
    if (c->first || !span_equal(ret_previous->row.environment, c->environment))
        return ERR_INVALID;
    ret_previous->row.rotated_us = at_us;
    ret_previous->row.expires_us = at_us + c->overlap_us;
    return OK;
}

static bool rotation_sound(const struct signing_key_rotate *c, uint64_t at_us)
{
    static const struct uuid none = {{0}};
    return !uuid_equal(&c->id, &none) && c->algorithm.size > 0 && c->environment.size > 0 &&
           c->public_jwk.size > 0 && c->sealed.size > 0 && at_us < UINT64_MAX / 2 &&
           c->overlap_us < UINT64_MAX / 4;
}

static enum error apply_rotate(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct signing_key_rotate *c = command;
    static const struct uuid none = {{0}};
    bool replaces = !uuid_equal(&c->previous, &none);
    struct key key = key_of_uuid(&c->id);
    struct signing_key there;
    struct kept previous;
    if (!rotation_sound(c, at_us))
        return ERR_INVALID;
    enum error e = txn_read(txn, TABLE_SIGNING_KEYS, key_span(&key), &there);
    if (e != ERR_NOT_FOUND)
        return e ? e : ERR_EXISTS;
    e = replaces ? with_previous(txn, at_us, c, &previous) : without_previous(txn, c);
    if (!e && txn_rows(txn, TABLE_SIGNING_KEYS) >= SIGNING_KEYS_MAX)
        e = ERR_LIMIT;
    if (!e)
        e = note(txn, at_us, &c->audit, c->first ? "key.bootstrapped" : "key.rotated", &c->id, c->who,
                 c->reason, c->request_id, c->first ? "{\"severity\":\"SEV1\"}" : "{\"severity\":\"INFO\"}");
    if (e)
        return e;
    const struct signing_key row = {.id = c->id,
                                    .state = SIGNING_KEY_ACTIVE,
                                    .algorithm = c->algorithm,
                                    .environment = c->environment,
                                    .created_us = at_us,
                                    .created_by = c->who,
                                    .public_jwk = c->public_jwk,
                                    .sealed = c->sealed};
    if (replaces)
        write_row(txn, &previous.row);
    txn_add(txn, TABLE_SIGNING_KEYS, key_span(&key), &row);
    answer_add(answer, &c->id, sizeof(c->id));
    return OK;
}

const struct command_class signing_key_rotate_class = {
    .name = "signing_key.rotate",
    .record = &signing_key_rotate_record,
    .apply = apply_rotate,
    .code = 110,
    .priority = COMMAND_HIGH,
};

/* ---- the two ends ---- */

static bool kept_sound(uint64_t at_us, uint64_t kept_us)
{
    return kept_us >= SIGNING_KEY_KEPT_MIN_US && kept_us < UINT64_MAX / 4 && at_us < UINT64_MAX / 2;
}

static void end(struct txn *txn, struct kept *kept, uint64_t at_us, uint64_t kept_us)
{
    kept->row.ended_us = at_us;
    kept->row.kept_until_us = at_us + kept_us;
    write_row(txn, &kept->row);
    retention_set(txn, RETENTION_SIGNING_KEY, kept->row.kept_until_us, &kept->row.id, 0);
}

static enum error apply_revoke(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct signing_key_revoke *c = command;
    struct kept kept;
    (void)answer;
    if (!kept_sound(at_us, c->kept_us))
        return ERR_INVALID;
    enum error e = next_of(txn, &c->id, SIGNING_KEY_REVOKE, &kept);
    if (!e)
        e = note(txn, at_us, &c->audit, "key.revoked", &c->id, c->who, c->reason, c->request_id,
                 "{\"severity\":\"SEV1\"}");
    if (e)
        return e;
    kept.row.ended_by = c->who;
    kept.row.ended_for = c->reason;
    end(txn, &kept, at_us, c->kept_us);
    return OK;
}

const struct command_class signing_key_revoke_class = {
    .name = "signing_key.revoke",
    .record = &signing_key_revoke_record,
    .apply = apply_revoke,
    .code = 111,
    .priority = COMMAND_HIGH,
};

static enum error apply_remove(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct signing_key_remove *c = command;
    struct kept kept;
    (void)answer;
    if (!kept_sound(at_us, c->kept_us))
        return ERR_INVALID;
    enum error e = next_of(txn, &c->id, SIGNING_KEY_REMOVE, &kept);
    if (!e && at_us < kept.row.expires_us)
        e = ERR_CONFLICT;
    if (e)
        return e;
    end(txn, &kept, at_us, c->kept_us);
    return OK;
}

const struct command_class signing_key_remove_class = {
    .name = "signing_key.remove",
    .record = &signing_key_remove_record,
    .apply = apply_remove,
    .code = 112,
    .priority = COMMAND_HIGH,
};

/* ---- when its time is over ---- */

enum error signing_key_expire(struct txn *txn, const struct due_entry *entry)
{
    struct key key = key_of_uuid(&entry->id);
    struct signing_key row;
    enum error e = txn_read(txn, TABLE_SIGNING_KEYS, key_span(&key), &row);
    if (!e)
        txn_remove(txn, TABLE_SIGNING_KEYS, key_span(&key));
    return e;
}

/* ---- what must be true ---- */

enum error signing_key_find_due(struct txn *txn, const struct due_entry *entry)
{
    struct key key = key_of_uuid(&entry->id);
    struct signing_key row;
    enum error e = txn_read(txn, TABLE_SIGNING_KEYS, key_span(&key), &row);
    if (e)
        return e;
    return row.kept_until_us == entry->due_us ? OK : ERR_CONFLICT;
}

/* The keys behind this one: each pair is complained about once. */
static bool another_is_active(struct txn *txn, const struct signing_key *row)
{
    struct key from = key_of_uuid(&row->id);
    struct scan scan = txn_scan(txn, TABLE_SIGNING_KEYS, key_span(&from), 0, SCAN_UP);
    struct signing_key other;
    bool found = false;
    while (!found && scan_next(&scan) && scan_read(&scan, &other) == OK)
        found = other.state == SIGNING_KEY_ACTIVE && !uuid_equal(&other.id, &row->id) &&
                span_equal(other.environment, row->environment);
    (void)scan_end(&scan); /* a damaged one is complained about where it stands */
    return found;
}

void signing_key_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    const struct signing_key *row = value;
    char id[UUID_TEXT_SIZE];
    struct due due;
    bool ended = lifecycle_terminal(&signing_key_lifecycle, row->state);
    uuid_format(&row->id, id);
    if (!span_equal(key, span_of(&row->id, sizeof(row->id))))
        check_complain(check, "signing_keys: %s stands under another id", id);
    if (row->state >= SIGNING_KEY_STATE_COUNT)
        check_complain(check, "signing_keys: %s is in the unknown state %u", id, row->state);
    if ((row->sealed.size > 0) != (row->state == SIGNING_KEY_ACTIVE))
        check_complain(check, "signing_keys: %s has a private half although it isn't active, or none", id);
    if (row->state == SIGNING_KEY_ACTIVE && another_is_active(txn, row))
        check_complain(check, "signing_keys: %s and another key of %.*s are both active", id,
                       (int)row->environment.size, (const char *)row->environment.bytes);
    if (ended != (row->kept_until_us > 0) || ended != (row->ended_us > 0))
        check_complain(check, "signing_keys: %s has an end although it hasn't ended, or none", id);
    if (!ended)
        return;
    struct key due_at = due_key(DUE_RETENTION, RETENTION_SHARD, row->kept_until_us, &row->id);
    if (txn_read(txn, TABLE_DUE, key_span(&due_at), &due) == ERR_NOT_FOUND)
        check_complain(check, "signing_keys: %s will never be removed, its due entry isn't there", id);
}
