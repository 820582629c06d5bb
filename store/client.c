#include "store/client.h"

#include "store/check.h"
#include "store/counter.h"
#include "store/ledger.h"
#include "store/retention.h"

#define client_FIELD(name, TYPE, limit, since) RECORD_FIELD(client, name, TYPE, limit, since)
RECORD_CLASS(client, CLIENT_FIELDS, 1);
#define client_keys_FIELD(name, TYPE, limit, since) RECORD_FIELD(client_keys, name, TYPE, limit, since)
RECORD_CLASS(client_keys, CLIENT_KEYS_FIELDS, 2);
#define client_create_FIELD(name, TYPE, limit, since) RECORD_FIELD(client_create, name, TYPE, limit, since)
RECORD_CLASS(client_create, CLIENT_CREATE_FIELDS, 1);

static const struct span no_label = {NULL, 0};

enum error client_read(struct txn *txn, const struct uuid *id, struct client *ret_client)
{
    struct key key = key_of_uuid(id);
    return txn_read(txn, TABLE_CLIENTS, key_span(&key), ret_client);
}

enum error client_read_keys(struct txn *txn, const struct uuid *id, struct client_keys *ret_keys)
{
    struct key key = key_of_uuid(id);
    struct client_keys keys = {.issued = 0};
    enum error e = txn_read(txn, TABLE_CLIENT_KEYS, key_span(&key), &keys);
    if (e == ERR_NOT_FOUND)
        *ret_keys = (struct client_keys){.issued = 0};
    else if (e == OK)
        *ret_keys = keys;
    return e == ERR_NOT_FOUND ? OK : e;
}

/* ---- creating ---- */

static const char scope_prefix[] = "client.create/";
STATIC_ASSERT(sizeof(scope_prefix) - 1 + CLIENT_FROM_MAX <= LEDGER_SCOPE_MAX, "an address fits into a scope");

static enum error creatable(struct txn *txn, const struct client_create *c, uint64_t at_us)
{
    static const struct uuid none = {{0}};
    struct client there;
    int64_t clients = 0;
    if (uuid_equal(&c->id, &none) || at_us >= UINT64_MAX - CLIENT_UNUSED_US)
        return ERR_INVALID;
    enum error e = client_read(txn, &c->id, &there);
    if (e != ERR_NOT_FOUND)
        return e ? e : ERR_EXISTS;
    e = counter_read(txn, COUNTER_CLIENTS, no_label, &clients);
    if (e)
        return e;
    return clients >= CLIENTS_MAX || (c->key.size > 0 && !ledger_room(txn)) ? ERR_LIMIT : OK;
}

static enum error apply_create(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    static const struct digest request = {{0}}; /* there is nothing in it that could differ */
    const struct client_create *c = command;
    uint8_t scope[LEDGER_SCOPE_MAX];
    struct span scope_span = span_of(scope, sizeof(scope_prefix) - 1 + c->from.size);
    struct span id = span_of(&c->id, sizeof(c->id));
    struct ledger row;
    enum error e = ERR_NOT_FOUND;
    memcpy(scope, scope_prefix, sizeof(scope_prefix) - 1);
    if (c->from.size > 0)
        memcpy(scope + sizeof(scope_prefix) - 1, c->from.bytes, c->from.size);
    if (c->key.size > 0)
        e = ledger_find(txn, at_us, scope_span, c->key, &request, &row);
    if (e == OK)
        answer_add(answer, row.answer.bytes, row.answer.size);
    if (e != ERR_NOT_FOUND)
        return e;
    e = creatable(txn, c, at_us);
    if (e)
        return e;
    struct key key = key_of_uuid(&c->id);
    struct client client = {.id = c->id, .created_us = at_us};
    txn_add(txn, TABLE_CLIENTS, key_span(&key), &client);
    retention_set(txn, RETENTION_CLIENT, at_us + CLIENT_UNUSED_US, &c->id, 0);
    counter_add(txn, COUNTER_CLIENTS, no_label, 1);
    if (c->key.size > 0)
        ledger_put(txn, LEDGER_DAY, at_us, scope_span, c->key, &request, id);
    answer_add(answer, id.bytes, id.size);
    return OK;
}

const struct command_class client_create_class = {
    .name = "client.create",
    .record = &client_create_record,
    .apply = apply_create,
    .code = 100,
};

/* ---- when its day is over ---- */

enum error client_expire(struct txn *txn, const struct due_entry *entry)
{
    struct key key = key_of_uuid(&entry->id);
    struct client_keys keys = {.issued = 0};
    struct client client;
    enum error e = client_read(txn, &entry->id, &client);
    if (!e)
        e = client_read_keys(txn, &entry->id, &keys);
    if (e || keys.issued > 0)
        return e ? e : ERR_NOT_FOUND; /* it stays; the entry goes */
    txn_remove(txn, TABLE_CLIENTS, key_span(&key));
    counter_add(txn, COUNTER_CLIENTS, no_label, -1);
    return OK;
}

enum error client_find_due(struct txn *txn, const struct due_entry *entry)
{
    struct client_keys keys = {.issued = 0};
    struct client client;
    enum error e = client_read(txn, &entry->id, &client);
    if (!e)
        e = client_read_keys(txn, &entry->id, &keys);
    if (e)
        return e;
    return client.created_us + CLIENT_UNUSED_US == entry->due_us && keys.issued == 0 ? OK : ERR_CONFLICT;
}

/* ---- what must be true ---- */

void client_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    const struct client *client = value;
    char id[UUID_TEXT_SIZE];
    struct client_keys keys = {.issued = 0};
    struct due due;
    uuid_format(&client->id, id);
    if (!span_equal(key, span_of(&client->id, sizeof(client->id))))
        check_complain(check, "clients: %s stands under another id", id);
    struct key due_at =
        due_key(DUE_RETENTION, RETENTION_SHARD, client->created_us + CLIENT_UNUSED_US, &client->id);
    if (client_read_keys(txn, &client->id, &keys) == OK && keys.issued == 0 &&
        txn_read(txn, TABLE_DUE, key_span(&due_at), &due) == ERR_NOT_FOUND)
        check_complain(check, "clients: %s never had a key and will never be removed", id);
    check_count(check, COUNTER_CLIENTS, no_label, 1);
}
