#include "store/api_key.h"

#include <stdio.h>

#include "store/audit.h"
#include "store/check.h"
#include "store/counter.h"
#include "store/ledger.h"
#include "store/retention.h"

#define api_key_FIELD(name, TYPE, limit, since) RECORD_FIELD(api_key, name, TYPE, limit, since)
RECORD_CLASS(api_key, API_KEY_FIELDS, 1);
#define api_key_hash_FIELD(name, TYPE, limit, since) RECORD_FIELD(api_key_hash, name, TYPE, limit, since)
RECORD_CLASS(api_key_hash, API_KEY_HASH_FIELDS, 1);
#define api_key_issue_FIELD(name, TYPE, limit, since) RECORD_FIELD(api_key_issue, name, TYPE, limit, since)
RECORD_CLASS(api_key_issue, API_KEY_ISSUE_FIELDS, 2);
#define api_key_issued_FIELD(name, TYPE, limit, since) RECORD_FIELD(api_key_issued, name, TYPE, limit, since)
RECORD_CLASS(api_key_issued, API_KEY_ISSUED_FIELDS, 1);
#define api_key_revoke_FIELD(name, TYPE, limit, since) RECORD_FIELD(api_key_revoke, name, TYPE, limit, since)
RECORD_CLASS(api_key_revoke, API_KEY_REVOKE_FIELDS, 2);
#define api_key_touch_FIELD(name, TYPE, limit, since) RECORD_FIELD(api_key_touch, name, TYPE, limit, since)
RECORD_CLASS(api_key_touch, API_KEY_TOUCH_FIELDS, 1);

static const struct uuid no_key = {{0}};

const char *api_key_end_name(uint8_t end)
{
    static const char *const names[] = {
#define X(id, name) [id] = name,
        API_KEY_ENDS(X)
#undef X
    };
    return end < API_KEY_END_COUNT ? names[end] : "";
}

static struct span id_span(const struct uuid *id)
{
    return span_of(id->bytes, sizeof(id->bytes));
}

static struct span hash_span(const struct digest *hash)
{
    return span_of(hash->bytes, sizeof(hash->bytes));
}

enum error api_key_read(struct txn *txn, const struct uuid *id, struct api_key *ret_key)
{
    return txn_read(txn, TABLE_API_KEYS, id_span(id), ret_key);
}

enum error api_key_find(struct txn *txn, const struct digest *hash, struct api_key *ret_key)
{
    struct api_key_hash row;
    enum error e = txn_read(txn, TABLE_API_KEY_HASHES, hash_span(hash), &row);
    if (e)
        return e;
    e = api_key_read(txn, &row.id, ret_key);
    return e == ERR_NOT_FOUND ? ERR_DAMAGED : e; /* written and removed together */
}

/* ---- who asks ---- */

/* The key that a request came with must still be its client's, when the writer gets to it. */
static enum error caller_stands(struct txn *txn, const struct uuid *client, const struct uuid *caller,
                                uint64_t at_us)
{
    struct api_key key;
    enum error e = api_key_read(txn, caller, &key);
    if (e)
        return e == ERR_NOT_FOUND ? ERR_CONFLICT : e;
    if (!uuid_equal(&key.client, client) || key.ended_us != 0)
        return ERR_CONFLICT;
    return key.expires_us <= at_us ? ERR_EXPIRED : OK;
}

static enum error may_issue(struct txn *txn, const struct api_key_issue *c, uint64_t at_us,
                            const struct client *client, const struct client_keys *keys)
{
    if (c->verb == API_KEY_FORCE)
        return OK;
    if (!uuid_equal(&c->caller, &no_key))
        return caller_stands(txn, &c->client, &c->caller, at_us);
    uint64_t age_us = at_us > client->created_us ? at_us - client->created_us : 0;
    bool in_time = age_us < c->window_us;
    return keys->issued == 0 && in_time ? OK : ERR_TOKEN;
}

/* ---- ending one ---- */

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

struct ending {
    enum api_key_end why;
    struct span by;
    uint64_t at_us, kept_us;
};

/* `key` was read in this transaction, and its spans go with the first write: so that is the row itself. */
static void end_key(struct txn *txn, struct api_key *key, const struct ending *ending)
{
    uint64_t was_gone = key->gone_us;
    key->ended_us = ending->at_us;
    key->end = (uint8_t)ending->why;
    key->ended_by = ending->by;
    key->gone_us = earlier(ending->at_us, key->expires_us) + ending->kept_us;
    txn_write(txn, TABLE_API_KEYS, id_span(&key->id), key);
    retention_clear(txn, was_gone, &key->id);
    retention_set(txn, RETENTION_API_KEY, key->gone_us, &key->id, 0);
}

struct note {
    const struct uuid *id, *client, *key;
    struct span who, request_id, reason;
    const char *verb;
};

/* The last thing a command does. */
static void note(struct txn *txn, uint64_t at_us, const struct note *n)
{
    char client[UUID_TEXT_SIZE], key[UUID_TEXT_SIZE], details[80];
    if (uuid_equal(n->id, &no_key))
        return;
    uuid_format(n->client, client);
    uuid_format(n->key, key);
    snprintf(details, sizeof(details), "{\"client_id\":\"%s\"}", client);
    (void)audit_note(txn, at_us,
                     &(struct audit_append){.id = *n->id,
                                            .who = n->who,
                                            .verb = span_text(n->verb),
                                            .target = span_text(key),
                                            .reason = n->reason,
                                            .outcome = span_text("done"),
                                            .request_id = n->request_id,
                                            .details = span_text(details)});
}

/* ---- issuing ---- */

static const char scope_prefix[] = "api_key.issue/";
struct scope {
    char bytes[sizeof(scope_prefix) - 1 + UUID_TEXT_SIZE];
};

static struct span scope_of(const struct uuid *client, struct scope *scope)
{
    memcpy(scope->bytes, scope_prefix, sizeof(scope_prefix) - 1);
    uuid_format(client, scope->bytes + sizeof(scope_prefix) - 1);
    return span_of(scope->bytes, sizeof(scope->bytes) - 1);
}

static void answer_issued(struct answer *answer, const struct api_key_issued *issued)
{
    uint8_t bytes[API_KEY_ISSUED_SIZE];
    size_t size = record_encode(&api_key_issued_record, issued, bytes, sizeof(bytes));
    ASSERT(size == sizeof(bytes));
    answer_add(answer, bytes, size);
}

static void remember(struct txn *txn, const struct api_key_issue *c, uint64_t at_us,
                     const struct api_key_issued *issued)
{
    struct api_key_issued again = *issued; /* what a repeat is told */
    uint8_t bytes[API_KEY_ISSUED_SIZE];
    struct scope scope;
    if (c->key.size == 0)
        return;
    again.made = 0;
    again.ended = (struct digest){{0}};
    size_t size = record_encode(&api_key_issued_record, &again, bytes, sizeof(bytes));
    ledger_put(txn, LEDGER_DAY, at_us, scope_of(&c->client, &scope), c->key, &c->digest,
               span_of(bytes, size));
}

static int64_t kept_max(const struct api_key_issue *c)
{
    return c->verb == API_KEY_FORCE ? API_KEYS_FORCED_MAX : API_KEYS_KEPT_MAX;
}

/* Whether the new row can be written. */
static enum error issuable(struct txn *txn, const struct api_key_issue *c)
{
    struct api_key_hash hash;
    struct api_key key;
    int64_t kept;
    enum error e = api_key_read(txn, &c->id, &key);
    if (e == ERR_NOT_FOUND)
        e = txn_read(txn, TABLE_API_KEY_HASHES, hash_span(&c->hash), &hash);
    if (e != ERR_NOT_FOUND)
        return e ? e : ERR_EXISTS;
    e = counter_read(txn, COUNTER_API_KEYS, id_span(&c->client), &kept);
    if (!e && kept >= kept_max(c))
        e = ERR_LIMIT;
    return e;
}

static void write_new(struct txn *txn, const struct api_key_issue *c, uint64_t at_us,
                      const struct client *client, const struct client_keys *keys,
                      struct api_key_issued *issued)
{
    struct api_key key = {.id = c->id,
                          .client = c->client,
                          .hash = c->hash,
                          .created_us = at_us,
                          .expires_us = at_us + c->ttl_us,
                          .gone_us = at_us + c->ttl_us + c->kept_us,
                          .created_by = c->by};
    struct client_keys now = *keys;
    now.active = c->id;
    now.issued++;
    if (keys->issued == 0)
        retention_clear(txn, client->created_us + CLIENT_UNUSED_US, &c->client);
    txn_add(txn, TABLE_API_KEYS, id_span(&c->id), &key);
    txn_add(txn, TABLE_API_KEY_HASHES, hash_span(&c->hash), &(struct api_key_hash){.id = c->id});
    txn_write(txn, TABLE_CLIENT_KEYS, id_span(&c->client), &now);
    retention_set(txn, RETENTION_API_KEY, key.gone_us, &c->id, 0);
    counter_add(txn, COUNTER_API_KEYS, id_span(&c->client), 1);
    issued->id = c->id;
    issued->created_us = key.created_us;
    issued->expires_us = key.expires_us;
    issued->made = 1;
}

static enum error issue(struct txn *txn, const struct api_key_issue *c, uint64_t at_us,
                        struct api_key_issued *issued)
{
    struct client client;
    struct client_keys keys;
    struct api_key active = {.ended_us = 0};
    enum error e = client_read(txn, &c->client, &client);
    if (!e)
        e = client_read_keys(txn, &c->client, &keys);
    if (!e)
        e = may_issue(txn, c, at_us, &client, &keys);
    if (e)
        return e;
    bool there = !uuid_equal(&keys.active, &no_key);
    e = there ? api_key_read(txn, &keys.active, &active) : OK;
    if (e)
        return e == ERR_NOT_FOUND ? ERR_DAMAGED : e;
    if (c->verb == API_KEY_RENEW && !there)
        return ERR_CONFLICT;
    if (c->verb == API_KEY_CREATE && there) { /* the caller's own, which stands */
        *issued = (struct api_key_issued){
            .id = active.id, .created_us = active.created_us, .expires_us = active.expires_us};
        remember(txn, c, at_us, issued);
        return OK;
    }
    e = issuable(txn, c);
    if (e)
        return e;
    if (there) {
        issued->ended = active.hash;
        end_key(txn, &active,
                &(struct ending){.why = c->verb == API_KEY_RENEW ? API_KEY_RENEWED : API_KEY_ROTATED,
                                 .by = c->by,
                                 .at_us = at_us,
                                 .kept_us = c->kept_us});
    }
    write_new(txn, c, at_us, &client, &keys, issued);
    remember(txn, c, at_us, issued);
    note(txn, at_us,
         &(struct note){.id = &c->audit,
                        .client = &c->client,
                        .key = &c->id,
                        .who = c->by,
                        .request_id = c->request_id,
                        .reason = c->reason,
                        .verb = "api_key.issue"});
    return OK;
}

/* Far enough from the end of time that no sum of these overflows. */
static bool span_of_time(uint64_t us)
{
    return us < UINT64_MAX / 4;
}

static enum error apply_issue(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct api_key_issue *c = command;
    struct api_key_issued issued = {.made = 0};
    struct scope scope;
    struct ledger row;
    if (uuid_equal(&c->id, &no_key) || c->verb >= API_KEY_VERB_COUNT || !span_of_time(at_us) ||
        !span_of_time(c->ttl_us) || !span_of_time(c->kept_us))
        return ERR_INVALID;
    enum error e = ERR_NOT_FOUND;
    if (c->key.size > 0)
        e = ledger_find(txn, at_us, scope_of(&c->client, &scope), c->key, &c->digest, &row);
    if (e == OK)
        answer_add(answer, row.answer.bytes, row.answer.size);
    if (e != ERR_NOT_FOUND)
        return e;
    if (c->key.size > 0 && !ledger_room(txn))
        return ERR_LIMIT;
    e = issue(txn, c, at_us, &issued);
    if (!e)
        answer_issued(answer, &issued);
    return e;
}

const struct command_class api_key_issue_class = {
    .name = "api_key.issue",
    .record = &api_key_issue_record,
    .apply = apply_issue,
    .code = 101,
};

/* ---- revoking ---- */

static enum error apply_revoke(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct api_key_revoke *c = command;
    struct client_keys keys;
    struct api_key key;
    enum error e = OK;
    if (!span_of_time(at_us) || !span_of_time(c->kept_us))
        return ERR_INVALID;
    if (!uuid_equal(&c->caller, &no_key))
        e = caller_stands(txn, &c->client, &c->caller, at_us);
    if (!e)
        e = api_key_read(txn, &c->id, &key);
    if (!e && !uuid_equal(&key.client, &c->client))
        e = ERR_NOT_FOUND; /* whose it is, is nobody else's business */
    if (!e)
        e = client_read_keys(txn, &c->client, &keys);
    if (e)
        return e;
    answer_add(answer, key.hash.bytes, sizeof(key.hash.bytes));
    if (key.ended_us != 0)
        return OK;
    end_key(txn, &key,
            &(struct ending){.why = API_KEY_REVOKED, .by = c->by, .at_us = at_us, .kept_us = c->kept_us});
    keys.active = no_key;
    txn_write(txn, TABLE_CLIENT_KEYS, id_span(&c->client), &keys);
    note(txn, at_us,
         &(struct note){.id = &c->audit,
                        .client = &c->client,
                        .key = &c->id,
                        .who = c->by,
                        .request_id = c->request_id,
                        .reason = c->reason,
                        .verb = "api_key.revoke"});
    return OK;
}

const struct command_class api_key_revoke_class = {
    .name = "api_key.revoke",
    .record = &api_key_revoke_record,
    .apply = apply_revoke,
    .code = 102,
    .priority = COMMAND_HIGH,
    .cleanup = true,
};

/* ---- last use ---- */

/* Forward only; but what was noted while the clock was ahead must not stay until it has come there again. */
static enum error touch(struct txn *txn, uint64_t at_us, const uint8_t *at)
{
    struct api_key key;
    struct uuid id;
    uint64_t used_us;
    memcpy(id.bytes, at, sizeof(id.bytes));
    memcpy(&used_us, at + sizeof(id.bytes), sizeof(used_us));
    enum error e = api_key_read(txn, &id, &key);
    if (used_us > at_us)
        used_us = at_us;
    if (e || (used_us <= key.used_us && key.used_us <= at_us))
        return e == ERR_NOT_FOUND ? OK : e;
    key.used_us = used_us;
    txn_write(txn, TABLE_API_KEYS, id_span(&id), &key);
    return OK;
}

static enum error apply_touch(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct api_key_touch *c = command;
    enum error first = OK;
    (void)answer;
    if (c->uses.size % API_KEY_TOUCH_SIZE != 0)
        return ERR_INVALID;
    for (uint32_t i = 0; i < c->uses.size; i += API_KEY_TOUCH_SIZE) {
        enum error e = touch(txn, at_us, (const uint8_t *)c->uses.bytes + i);
        first = first ? first : e;
    }
    return txn->writes == 0 ? first : OK; /* a damaged row is told of when there is nothing else */
}

const struct command_class api_key_touch_class = {
    .name = "api_key.touch",
    .record = &api_key_touch_record,
    .apply = apply_touch,
    .code = 103,
    .priority = COMMAND_LOW,
};

/* ---- when its time is over ---- */

enum error api_key_expire(struct txn *txn, const struct due_entry *entry)
{
    struct client_keys keys;
    struct api_key key;
    enum error e = api_key_read(txn, &entry->id, &key);
    if (!e)
        e = client_read_keys(txn, &key.client, &keys);
    if (e)
        return e;
    txn_remove(txn, TABLE_API_KEYS, id_span(&key.id));
    (void)txn_try_remove(txn, TABLE_API_KEY_HASHES,
                         hash_span(&key.hash)); /* one that has gone needn't be removed */
    counter_add(txn, COUNTER_API_KEYS, id_span(&key.client), -1);
    if (uuid_equal(&keys.active, &key.id)) {
        keys.active = no_key;
        txn_write(txn, TABLE_CLIENT_KEYS, id_span(&key.client), &keys);
    }
    return OK;
}

enum error api_key_find_due(struct txn *txn, const struct due_entry *entry)
{
    struct api_key key;
    enum error e = api_key_read(txn, &entry->id, &key);
    if (e)
        return e;
    return key.gone_us == entry->due_us ? OK : ERR_CONFLICT;
}

/* ---- what must be true ---- */

static void check_ends(struct check *check, struct txn *txn, const struct api_key *key, const char *id)
{
    struct client_keys keys;
    if (key->end >= API_KEY_END_COUNT || (key->end == API_KEY_NOT_ENDED) != (key->ended_us == 0))
        check_complain(check, "api_keys: %s has ended without a reason, or the reverse", id);
    if (client_read_keys(txn, &key->client, &keys) == OK &&
        (key->ended_us == 0) != uuid_equal(&keys.active, &key->id))
        check_complain(check, "api_keys: %s is %s, and its client says otherwise", id,
                       key->ended_us == 0 ? "active" : "ended");
}

void api_key_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    const struct api_key *row = value;
    struct key due_at = due_key(DUE_RETENTION, RETENTION_SHARD, row->gone_us, &row->id);
    char id[UUID_TEXT_SIZE];
    struct api_key_hash hash;
    struct client client;
    struct due due;
    uuid_format(&row->id, id);
    if (!span_equal(key, id_span(&row->id)))
        check_complain(check, "api_keys: %s stands under another id", id);
    enum error e = txn_read(txn, TABLE_API_KEY_HASHES, hash_span(&row->hash), &hash);
    if (e == ERR_NOT_FOUND || (e == OK && !uuid_equal(&hash.id, &row->id)))
        check_complain(check, "api_keys: %s can't be found by its hash", id);
    if (client_read(txn, &row->client, &client) == ERR_NOT_FOUND)
        check_complain(check, "api_keys: %s belongs to a client that isn't there", id);
    if (txn_read(txn, TABLE_DUE, key_span(&due_at), &due) == ERR_NOT_FOUND)
        check_complain(check, "api_keys: %s will never be removed, its due entry isn't there", id);
    check_ends(check, txn, row, id);
    check_count(check, COUNTER_API_KEYS, id_span(&row->client), 1);
}

void api_key_hash_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    const struct api_key_hash *row = value;
    char id[UUID_TEXT_SIZE];
    struct api_key there;
    enum error e = api_key_read(txn, &row->id, &there);
    uuid_format(&row->id, id);
    if (e == ERR_NOT_FOUND || (e == OK && !span_equal(key, hash_span(&there.hash))))
        check_complain(check, "api_key_hashes: a hash leads to %s, which isn't there or has another one", id);
}

void client_keys_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    const struct client_keys *row = value;
    struct uuid id = no_key;
    char text[UUID_TEXT_SIZE];
    struct client client;
    struct api_key active;
    if (key.size != sizeof(id.bytes)) {
        check_complain(check, "client_keys: a key of %u bytes", key.size);
        return;
    }
    memcpy(id.bytes, key.bytes, sizeof(id.bytes));
    uuid_format(&id, text);
    if (client_read(txn, &id, &client) == ERR_NOT_FOUND)
        check_complain(check, "client_keys: client %s isn't there", text);
    if (row->issued == 0)
        check_complain(check, "client_keys: client %s never had a key", text);
    if (uuid_equal(&row->active, &no_key))
        return;
    enum error e = api_key_read(txn, &row->active, &active);
    if (e == ERR_NOT_FOUND || (e == OK && (!uuid_equal(&active.client, &id) || active.ended_us != 0)))
        check_complain(check, "client_keys: the active key of client %s isn't there, or not active", text);
}
