#include "store/principal.h"

#include "store/check.h"

#define principal_FIELD(name, TYPE, limit, since) RECORD_FIELD(principal, name, TYPE, limit, since)
RECORD_CLASS(principal, PRINCIPAL_FIELDS, 1);
#define principal_put_FIELD(name, TYPE, limit, since) RECORD_FIELD(principal_put, name, TYPE, limit, since)
RECORD_CLASS(principal_put, PRINCIPAL_PUT_FIELDS, 2);
#define principal_remove_FIELD(name, TYPE, limit, since) \
    RECORD_FIELD(principal_remove, name, TYPE, limit, since)
RECORD_CLASS(principal_remove, PRINCIPAL_REMOVE_FIELDS, 2);

STATIC_ASSERT(PRINCIPAL_NAME_MAX <= AUDIT_WHO_MAX && PRINCIPAL_NAME_MAX <= KEY_SIZE_MAX,
              "a name is a key, and who did it");
STATIC_ASSERT(PRINCIPAL_NAME_MAX <= REVOCATION_VALUE_MAX, "a name is the subject of its tokens");

enum error principal_read(struct txn *txn, struct span name, struct principal *ret_principal)
{
    if (name.size == 0 || name.size > PRINCIPAL_NAME_MAX)
        return ERR_NOT_FOUND;
    return txn_read(txn, TABLE_PRINCIPALS, name, ret_principal);
}

/* ---- the end of its tokens ---- */

/* Of what was issued by now. A command of version 1 has no tokens_us: an order of its own ended them. */
static enum error plan_end(struct txn *txn, uint64_t at_us, uint64_t tokens_us,
                           const struct revocation_put *c, struct revocation_plan *ret_plan)
{
    struct revocation_put whole = *c;
    uint64_t from_us = c->cut_off_us > at_us ? c->cut_off_us : at_us;
    if (tokens_us == 0)
        return OK;
    whole.kind = REVOCATION_SUBJECT;
    whole.expires_us = from_us + tokens_us;
    return revocation_plan(txn, at_us, &whole, ret_plan);
}

/* ---- principal.put ---- */

/* Nobody is let in without a word about it; but a secret that leaked must get another one whether or not there is room for a note. */
static enum error note_put(struct txn *txn, uint64_t at_us, const struct principal_put *c)
{
    bool created = c->verb == PRINCIPAL_CREATE;
    const struct audit_append entry = {.id = c->audit,
                                       .who = c->who,
                                       .verb = span_text(created ? "principal.created" : "principal.rotated"),
                                       .target = c->name,
                                       .reason = c->reason,
                                       .outcome = span_text("done"),
                                       .request_id = c->request_id};
    return created ? audit_note(txn, at_us, &entry) : audit_note_if_possible(txn, at_us, &entry);
}

static enum error putable(struct txn *txn, const struct principal_put *c, enum error found)
{
    if (found && found != ERR_NOT_FOUND)
        return found;
    if (c->verb == PRINCIPAL_ROTATE)
        return found;
    if (c->role.size == 0 || c->projects.size == 0)
        return ERR_INVALID;
    if (!found)
        return ERR_EXISTS;
    return txn_rows(txn, TABLE_PRINCIPALS) >= PRINCIPALS_MAX ? ERR_LIMIT : OK;
}

static enum error apply_put(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct principal_put *c = command;
    const uint64_t tokens_us = c->verb == PRINCIPAL_ROTATE ? c->tokens_us : 0;
    struct revocation_plan end;
    struct principal row;
    (void)answer;
    if (c->verb >= PRINCIPAL_VERB_COUNT || c->name.size == 0)
        return ERR_INVALID;
    enum error e = putable(txn, c, principal_read(txn, c->name, &row));
    if (!e)
        e = plan_end(txn, at_us, tokens_us,
                     &(struct revocation_put){
                         .value = c->name, .cut_off_us = c->cut_off_us, .who = c->who, .reason = c->reason},
                     &end);
    if (!e)
        e = note_put(txn, at_us, c);
    if (e)
        return e;
    if (c->verb == PRINCIPAL_CREATE)
        row = (struct principal){.name = c->name,
                                 .role = c->role,
                                 .projects = c->projects,
                                 .agent_template = c->agent_template,
                                 .tier = c->tier,
                                 .created_us = at_us,
                                 .created_by = c->who};
    else /* the entry was written, so what was read before is gone, and there is no way back but for all */
        e = principal_read(txn, c->name, &row);
    if (e) {
        txn->error = txn->error ? txn->error : e;
        return e;
    }
    row.hash = c->hash;
    row.rotated_us = at_us;
    txn_write(txn, TABLE_PRINCIPALS, c->name, &row);
    if (tokens_us)
        revocation_keep(txn, &end);
    return OK;
}

const struct command_class principal_put_class = {
    .name = "principal.put",
    .record = &principal_put_record,
    .apply = apply_put,
    .code = 140,
};

/* ---- principal.remove ---- */

static enum error apply_remove(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct principal_remove *c = command;
    struct revocation_plan end;
    struct principal row;
    (void)answer;
    enum error e = principal_read(txn, c->name, &row);
    if (!e)
        e = plan_end(txn, at_us, c->tokens_us,
                     &(struct revocation_put){
                         .value = c->name, .cut_off_us = c->cut_off_us, .who = c->who, .reason = c->reason},
                     &end);
    if (e)
        return e;
    txn_remove(txn, TABLE_PRINCIPALS, c->name);
    if (c->tokens_us)
        revocation_keep(txn, &end);
    (void)audit_note(txn, at_us,
                     &(struct audit_append){.id = c->audit,
                                            .who = c->who,
                                            .verb = span_text("principal.revoked"),
                                            .target = c->name,
                                            .reason = c->reason,
                                            .outcome = span_text("done"),
                                            .request_id = c->request_id});
    return OK;
}

const struct command_class principal_remove_class = {
    .name = "principal.remove",
    .record = &principal_remove_record,
    .apply = apply_remove,
    .code = 141,
    .priority = COMMAND_HIGH,
    .cleanup = true,
};

/* ---- what must be true ---- */

void principal_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    const struct principal *row = value;
    int size = (int)row->name.size;
    const char *name = row->name.bytes;
    (void)txn;
    if (!span_equal(key, row->name))
        check_complain(check, "principals: '%.*s' stands under another key", size, name);
    if (row->role.size == 0 || row->projects.size == 0)
        check_complain(check, "principals: '%.*s' has no role, or no projects", size, name);
    /* Its times say nothing of each other: both are the wall clock's, which is put back. */
}
