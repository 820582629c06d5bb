#include "store/seen_token.h"

#include "store/check.h"
#include "store/named_id.h"
#include "store/retention.h"
#include "store/store.h"

#define seen_token_FIELD(name, TYPE, limit, since) RECORD_FIELD(seen_token, name, TYPE, limit, since)
RECORD_CLASS(seen_token, SEEN_TOKEN_FIELDS, 1);
#define seen_token_put_FIELD(name, TYPE, limit, since) RECORD_FIELD(seen_token_put, name, TYPE, limit, since)
RECORD_CLASS(seen_token_put, SEEN_TOKEN_PUT_FIELDS, 1);

struct uuid seen_token_id(const struct store *store, struct span issuer, struct span jti)
{
    const struct span parts[] = {issuer, jti};
    return named_id(store, "seen_token", parts, sizeof(parts) / sizeof(parts[0]));
}

/* ---- seen_token.put ---- */

static enum error apply_put(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct seen_token_put *c = command;
    struct seen_token there;
    (void)answer;
    if (c->issuer.size == 0 || c->jti.size == 0)
        return ERR_INVALID;
    if (c->expires_us <= at_us)
        return ERR_EXPIRED;
    struct uuid id = seen_token_id(txn->store, c->issuer, c->jti);
    struct key key = key_of_uuid(&id);
    enum error e = txn_read(txn, TABLE_SEEN_TOKENS, key_span(&key), &there);
    if (e == OK)
        return !c->single_use && memcmp(&there.digest, &c->digest, sizeof(c->digest)) == 0 ? OK
                                                                                           : ERR_CONFLICT;
    if (e != ERR_NOT_FOUND)
        return e;
    if (txn_rows(txn, TABLE_SEEN_TOKENS) >= SEEN_TOKENS_MAX)
        return ERR_LIMIT;
    const struct seen_token row = {.id = id,
                                   .issuer = c->issuer,
                                   .jti = c->jti,
                                   .digest = c->digest,
                                   .subject = c->subject,
                                   .session = c->session,
                                   .first_us = at_us,
                                   .expires_us = c->expires_us};
    txn_add(txn, TABLE_SEEN_TOKENS, key_span(&key), &row);
    retention_set(txn, RETENTION_SEEN_TOKEN, c->expires_us, &id, 0);
    return OK;
}

const struct command_class seen_token_put_class = {
    .name = "seen_token.put",
    .record = &seen_token_put_record,
    .apply = apply_put,
    .code = 114,
};

/* ---- when its time is over ---- */

enum error seen_token_expire(struct txn *txn, const struct due_entry *entry)
{
    struct key key = key_of_uuid(&entry->id);
    struct seen_token row;
    enum error e = txn_read(txn, TABLE_SEEN_TOKENS, key_span(&key), &row);
    if (!e)
        txn_remove(txn, TABLE_SEEN_TOKENS, key_span(&key));
    return e;
}

/* ---- what must be true ---- */

enum error seen_token_find_due(struct txn *txn, const struct due_entry *entry)
{
    struct key key = key_of_uuid(&entry->id);
    struct seen_token row;
    enum error e = txn_read(txn, TABLE_SEEN_TOKENS, key_span(&key), &row);
    if (e)
        return e;
    return row.expires_us == entry->due_us ? OK : ERR_CONFLICT;
}

void seen_token_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    const struct seen_token *row = value;
    struct uuid right = seen_token_id(txn->store, row->issuer, row->jti);
    char id[UUID_TEXT_SIZE];
    struct due due;
    uuid_format(&row->id, id);
    if (!span_equal(key, span_of(&row->id, sizeof(row->id))) || !uuid_equal(&right, &row->id))
        check_complain(check, "seen_tokens: %s isn't the id of its issuer and jti", id);
    struct key due_at = due_key(DUE_RETENTION, RETENTION_SHARD, row->expires_us, &row->id);
    if (txn_read(txn, TABLE_DUE, key_span(&due_at), &due) == ERR_NOT_FOUND)
        check_complain(check, "seen_tokens: %s will never be removed, its due entry isn't there", id);
}
