#include "store/webhook.h"

#include "store/check.h"
#include "store/client.h"
#include "store/counter.h"
#include "store/job.h"
#include "store/ledger.h"
#include "store/sha256.h"
#include "store/store.h"

#define CLIENT_SIZE                             16u
#define KEY_SIZE                                32u /* client:16 id:16 */

#define webhook_FIELD(name, TYPE, limit, since) RECORD_FIELD(webhook, name, TYPE, limit, since)
RECORD_CLASS(webhook, WEBHOOK_FIELDS, 2);
#define webhook_id_FIELD(name, TYPE, limit, since) RECORD_FIELD(webhook_id, name, TYPE, limit, since)
RECORD_CLASS(webhook_id, WEBHOOK_ID_FIELDS, 1);
#define webhook_put_FIELD(name, TYPE, limit, since) RECORD_FIELD(webhook_put, name, TYPE, limit, since)
RECORD_CLASS(webhook_put, WEBHOOK_PUT_FIELDS, 1);
#define webhook_made_FIELD(name, TYPE, limit, since) RECORD_FIELD(webhook_made, name, TYPE, limit, since)
RECORD_CLASS(webhook_made, WEBHOOK_MADE_FIELDS, 1);
#define webhook_remove_FIELD(name, TYPE, limit, since) RECORD_FIELD(webhook_remove, name, TYPE, limit, since)
RECORD_CLASS(webhook_remove, WEBHOOK_REMOVE_FIELDS, 1);
#define webhook_switch_FIELD(name, TYPE, limit, since) RECORD_FIELD(webhook_switch, name, TYPE, limit, since)
RECORD_CLASS(webhook_switch, WEBHOOK_SWITCH_FIELDS, 1);
#define webhook_rotate_FIELD(name, TYPE, limit, since) RECORD_FIELD(webhook_rotate, name, TYPE, limit, since)
RECORD_CLASS(webhook_rotate, WEBHOOK_ROTATE_FIELDS, 1);

/* ---- names ---- */

STATIC_ASSERT((int)JOB_EVENT_COUNT <= (int)WEBHOOK_EVENTS_MAX, "each event has its bit");

bool webhook_event_named(struct span name, uint8_t *ret_bit)
{
    for (unsigned bit = 0; bit < JOB_EVENT_COUNT; bit++)
        if (span_equal(span_text(job_event_name((uint8_t)bit)), name)) {
            *ret_bit = (uint8_t)bit;
            return true;
        }
    return false;
}

const char *webhook_reason_name(uint8_t reason)
{
    static const char *const names[] = {
#define X(id, name) [id] = name,
        WEBHOOK_REASONS(X)
#undef X
    };
    return reason < WEBHOOK_REASON_COUNT ? names[reason] : "";
}

static const struct lifecycle_state states[] = {
#define X(id, text, mark) [id] = {.name = text, .flags = mark},
    WEBHOOK_STATES(X)
#undef X
};
static const char *const changes[] = {
#define X(id, name) [id] = name,
    WEBHOOK_CHANGES(X)
#undef X
};
static const struct lifecycle_edge edges[] = {
    {WEBHOOK_ACTIVE, WEBHOOK_DISABLE, WEBHOOK_DISABLED},
    {WEBHOOK_DISABLED, WEBHOOK_ENABLE, WEBHOOK_ACTIVE},
};
const struct lifecycle webhook_lifecycle = {
    .name = "webhook",
    .states = states,
    .events = changes,
    .edges = edges,
    .states_count = sizeof(states) / sizeof(*states),
    .events_count = sizeof(changes) / sizeof(*changes),
    .edges_count = sizeof(edges) / sizeof(*edges),
};

/* ---- rows ---- */

static struct key key_of(const struct uuid *client, const struct uuid *id)
{
    struct key key = key_of_uuid(client);
    key_add_uuid(&key, id);
    return key;
}

static struct span id_span(const struct uuid *id)
{
    return span_of(id->bytes, sizeof(id->bytes));
}

enum error webhook_read(struct txn *txn, const struct uuid *client, const struct uuid *id,
                        struct webhook *ret_webhook)
{
    struct key key = key_of(client, id);
    return txn_read(txn, TABLE_WEBHOOKS, key_span(&key), ret_webhook);
}

enum error webhook_owner(struct txn *txn, const struct uuid *id, struct uuid *ret_client)
{
    struct webhook_id row;
    enum error e = txn_read(txn, TABLE_WEBHOOK_IDS, id_span(id), &row);
    if (!e)
        *ret_client = row.client;
    return e;
}

/* From this key on, until a row can't be read: then ERR_DAMAGED, and *from is the key behind it; or is as it was, when there is no
 * key to go on behind. */
static enum error list_from(struct txn *txn, struct key *from, struct webhook webhooks[WEBHOOKS_MAX],
                            uint32_t *found)
{
    struct scan scan = txn_scan(txn, TABLE_WEBHOOKS, key_span(from), CLIENT_SIZE, SCAN_UP);
    enum error e = OK, end;
    while (!e && *found < WEBHOOKS_MAX && scan_next(&scan)) {
        e = scan.key.size == KEY_SIZE ? scan_read(&scan, &webhooks[*found]) : ERR_DAMAGED;
        *found += e == OK;
    }
    end = scan_end(&scan);
    e = e ? e : end;
    if (e == ERR_DAMAGED && scan.key.size >= CLIENT_SIZE && scan.key.size < KEY_SIZE_MAX) {
        from->size = 0;
        key_add(from, scan.key.bytes, scan.key.size);
        key_add_u8(from, 0);
    }
    return e;
}

enum error webhook_list(struct txn *txn, const struct uuid *client, struct webhook webhooks[WEBHOOKS_MAX],
                        uint32_t *ret_count)
{
    struct key from = key_of_uuid(client);
    uint32_t found = 0;
    enum error e = list_from(txn, &from, webhooks, &found);
    if (!e)
        *ret_count = found;
    return e;
}

enum error webhook_list_sound(struct txn *txn, const struct uuid *client,
                              struct webhook webhooks[WEBHOOKS_MAX], uint32_t *ret_count)
{
    struct key from = key_of_uuid(client), before;
    enum error e, first = OK;
    *ret_count = 0;
    do {
        before = from;
        e = list_from(txn, &from, webhooks, ret_count);
        first = first ? first : e;
    } while (e == ERR_DAMAGED && !txn->error && !span_equal(key_span(&before), key_span(&from)));
    return e && e != ERR_DAMAGED ? e : first;
}

void webhook_secret(const struct store *store, const struct uuid *id, uint32_t number,
                    uint8_t ret_secret[WEBHOOK_SECRET_SIZE])
{
    static const char purpose[] = "coppice webhook secret";
    struct hmac hmac;
    hmac_start(&hmac, store->secret, sizeof(store->secret));
    hmac_add(&hmac, purpose, sizeof(purpose));
    hmac_add(&hmac, id->bytes, sizeof(id->bytes));
    hmac_add(&hmac, &number, sizeof(number));
    hmac_end(&hmac, ret_secret);
}

/* The client's own of this id. */
static enum error own(struct txn *txn, const struct uuid *client, const struct uuid *id,
                      struct webhook *ret_webhook)
{
    struct uuid owner;
    enum error e = webhook_owner(txn, id, &owner);
    if (e)
        return e;
    if (!uuid_equal(&owner, client))
        return ERR_FORBIDDEN;
    e = webhook_read(txn, client, id, ret_webhook);
    return e == ERR_NOT_FOUND ? ERR_DAMAGED : e; /* written and removed together */
}

/* The URL may be the row's own: it is encoded before anything is written. */
static void write_row(struct txn *txn, const struct webhook *webhook)
{
    struct key key = key_of(&webhook->client, &webhook->id);
    txn_write(txn, TABLE_WEBHOOKS, key_span(&key), webhook);
}

/* ---- putting one ---- */

static const char scope_prefix[] = "webhook.put/";
struct scope {
    char bytes[sizeof(scope_prefix) - 1 + UUID_TEXT_SIZE];
};

static struct span scope_of(const struct uuid *client, struct scope *scope)
{
    memcpy(scope->bytes, scope_prefix, sizeof(scope_prefix) - 1);
    uuid_format(client, scope->bytes + sizeof(scope_prefix) - 1);
    return span_of(scope->bytes, sizeof(scope->bytes) - 1);
}

/* Another one for the same, which would get everything twice; or too many. */
static enum error look_for_twin(struct txn *txn, const struct webhook_put *c)
{
    struct webhook there[WEBHOOKS_MAX];
    uint32_t count = 0;
    enum error e = webhook_list(txn, &c->client, there, &count);
    for (uint32_t i = 0; !e && i < count; i++)
        if (there[i].events == c->events && span_equal(there[i].url, c->url))
            e = ERR_CONFLICT;
    return !e && count == WEBHOOKS_MAX ? ERR_LIMIT : e;
}

static enum error puttable(struct txn *txn, const struct webhook_put *c)
{
    static const struct uuid none = {{0}};
    struct client client;
    struct uuid owner;
    if (uuid_equal(&c->id, &none) || c->events == 0 || c->url.size == 0)
        return ERR_INVALID;
    enum error e = client_read(txn, &c->client, &client);
    if (e)
        return e;
    e = webhook_owner(txn, &c->id, &owner);
    if (e != ERR_NOT_FOUND)
        return e ? e : ERR_EXISTS;
    e = look_for_twin(txn, c);
    return !e && c->key.size > 0 && !ledger_room(txn) ? ERR_LIMIT : e;
}

static void answer_made(struct answer *answer, const struct webhook_made *made,
                        uint8_t bytes[WEBHOOK_MADE_SIZE])
{
    size_t size = record_encode(&webhook_made_record, made, bytes, WEBHOOK_MADE_SIZE);
    ASSERT(size == WEBHOOK_MADE_SIZE);
    answer_add(answer, bytes, size);
}

static enum error apply_put(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct webhook_put *c = command;
    uint8_t bytes[WEBHOOK_MADE_SIZE];
    struct scope scope;
    struct ledger row;
    struct span scope_span = scope_of(&c->client, &scope);
    enum error e = ERR_NOT_FOUND;
    if (c->key.size > 0)
        e = ledger_find(txn, at_us, scope_span, c->key, &c->digest, &row);
    if (e == OK)
        answer_add(answer, row.answer.bytes, row.answer.size);
    if (e != ERR_NOT_FOUND)
        return e;
    e = puttable(txn, c);
    if (e)
        return e;
    write_row(txn, &(struct webhook){.id = c->id,
                                     .client = c->client,
                                     .created_us = at_us,
                                     .changed_us = at_us,
                                     .events = c->events,
                                     .state = WEBHOOK_ACTIVE,
                                     .url = c->url});
    txn_add(txn, TABLE_WEBHOOK_IDS, id_span(&c->id), &(struct webhook_id){.client = c->client});
    counter_add(txn, COUNTER_WEBHOOKS, id_span(&c->client), 1);
    answer_made(answer, &(struct webhook_made){.id = c->id, .created_us = at_us}, bytes);
    if (c->key.size > 0)
        ledger_put(txn, LEDGER_DAY, at_us, scope_span, c->key, &c->digest, span_of(bytes, sizeof(bytes)));
    return OK;
}

const struct command_class webhook_put_class = {
    .name = "webhook.put",
    .record = &webhook_put_record,
    .apply = apply_put,
    .code = 240,
};

/* ---- and what is done with it ---- */

/* `webhook` is the row as it was read in this transaction. */
static void change(struct txn *txn, uint64_t at_us, struct webhook *webhook, enum webhook_change event,
                   enum webhook_reason reason)
{
    uint8_t next = webhook->state;
    enum error e = lifecycle_next(&webhook_lifecycle, webhook->state, (uint8_t)event, &next);
    ASSERT(!e); /* its callers have looked */
    webhook->state = next;
    webhook->reason = (uint8_t)reason;
    webhook->changed_us = at_us;
    write_row(txn, webhook);
    counter_add(txn, COUNTER_WEBHOOKS, id_span(&webhook->client), next == WEBHOOK_ACTIVE ? 1 : -1);
}

static enum error apply_remove(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct webhook_remove *c = command;
    struct webhook webhook;
    enum error e = own(txn, &c->client, &c->id, &webhook);
    (void)at_us;
    (void)answer;
    if (e)
        return e;
    struct key key = key_of(&c->client, &c->id);
    bool active = webhook.state == WEBHOOK_ACTIVE;
    txn_remove(txn, TABLE_WEBHOOKS, key_span(&key));
    txn_remove(txn, TABLE_WEBHOOK_IDS, id_span(&c->id));
    if (active)
        counter_add(txn, COUNTER_WEBHOOKS, id_span(&c->client), -1);
    return OK;
}

const struct command_class webhook_remove_class = {
    .name = "webhook.remove",
    .record = &webhook_remove_record,
    .apply = apply_remove,
    .code = 241,
    .cleanup = true,
};

static void forget_failures(struct webhook *webhook)
{
    webhook->failing_us = webhook->failing_steady_us = 0;
    webhook->given_up = 0;
}

static enum error apply_switch(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct webhook_switch *c = command;
    struct webhook webhook;
    enum error e = own(txn, &c->client, &c->id, &webhook);
    (void)answer;
    if (!e && c->on > 1)
        e = ERR_INVALID;
    if (e || (webhook.state == WEBHOOK_ACTIVE) == (c->on == 1))
        return e;
    if (c->on)
        forget_failures(&webhook); /* it gets all its time again */
    change(txn, at_us, &webhook, c->on ? WEBHOOK_ENABLE : WEBHOOK_DISABLE,
           c->on ? WEBHOOK_NO_REASON : WEBHOOK_BY_CLIENT);
    return OK;
}

const struct command_class webhook_switch_class = {
    .name = "webhook.switch",
    .record = &webhook_switch_record,
    .apply = apply_switch,
    .code = 242,
};

static enum error apply_rotate(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct webhook_rotate *c = command;
    struct webhook webhook;
    enum error e = own(txn, &c->client, &c->id, &webhook);
    if (!e && webhook.secret == UINT32_MAX)
        e = ERR_LIMIT;
    if (e)
        return e;
    uint32_t number = ++webhook.secret;
    webhook.secret_us = at_us;
    write_row(txn, &webhook);
    answer_add(answer, &number, sizeof(number));
    return OK;
}

const struct command_class webhook_rotate_class = {
    .name = "webhook.rotate",
    .record = &webhook_rotate_record,
    .apply = apply_rotate,
    .code = 243,
};

/* A row that doesn't know the steady time of its first failure counts from this one on. */
static void note_failure(struct webhook *webhook, const struct webhook_attempt *attempt)
{
    if (!webhook->failing_us)
        webhook->failing_us = attempt->at_us;
    if (!webhook->failing_steady_us)
        webhook->failing_steady_us = attempt->steady_us;
    if (attempt->given_up && webhook->given_up < WEBHOOK_GIVEN_UP_MIN)
        webhook->given_up++;
}

/* Whether this failure, which is noted, was one too many. */
static bool failed_enough(const struct webhook *webhook, const struct webhook_attempt *attempt)
{
    uint64_t since_us = webhook->failing_steady_us;
    return attempt->given_up && webhook->given_up >= WEBHOOK_GIVEN_UP_MIN && attempt->disable_after_us &&
           attempt->steady_us > since_us && attempt->steady_us - since_us >= attempt->disable_after_us;
}

enum error webhook_attempted(struct txn *txn, const struct webhook_attempt *attempt, bool *ret_disabled)
{
    struct webhook webhook;
    enum error e = webhook_read(txn, attempt->client, attempt->id, &webhook);
    *ret_disabled = false;
    if (e)
        return e == ERR_NOT_FOUND ? OK : e;
    const struct webhook was = webhook;
    if (attempt->delivered)
        forget_failures(&webhook);
    else
        note_failure(&webhook, attempt);
    if (webhook.state == WEBHOOK_ACTIVE && (attempt->gone || failed_enough(&webhook, attempt))) {
        change(txn, attempt->at_us, &webhook, WEBHOOK_DISABLE,
               attempt->gone ? WEBHOOK_GONE : WEBHOOK_FAILING);
        *ret_disabled = true;
    } else if (was.failing_us != webhook.failing_us || was.failing_steady_us != webhook.failing_steady_us ||
               was.given_up != webhook.given_up) {
        write_row(txn, &webhook);
    }
    return OK;
}

/* ---- what must be true ---- */

void webhook_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    const struct webhook *webhook = value;
    struct key expected = key_of(&webhook->client, &webhook->id);
    struct webhook_id row;
    char id[UUID_TEXT_SIZE];
    uuid_format(&webhook->id, id);
    if (!span_equal(key, key_span(&expected)))
        check_complain(check, "webhooks: %s stands under another id", id);
    if (!lifecycle_state_name(&webhook_lifecycle, webhook->state))
        check_complain(check, "webhooks: %s is in the unknown state %u", id, webhook->state);
    if ((webhook->state == WEBHOOK_ACTIVE) != (webhook->reason == WEBHOOK_NO_REASON) ||
        webhook->reason >= WEBHOOK_REASON_COUNT)
        check_complain(check, "webhooks: %s is in state %u for reason %u", id, webhook->state,
                       webhook->reason);
    if (webhook->events == 0)
        check_complain(check, "webhooks: %s wants no events", id);
    if (txn_read(txn, TABLE_WEBHOOK_IDS, id_span(&webhook->id), &row) == ERR_NOT_FOUND)
        check_complain(check, "webhooks: nothing leads to %s", id);
    if (webhook->state == WEBHOOK_ACTIVE)
        check_count(check, COUNTER_WEBHOOKS, id_span(&webhook->client), 1);
}

void webhook_id_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    const struct webhook_id *row = value;
    char text[UUID_TEXT_SIZE];
    struct webhook webhook;
    struct uuid id;
    if (key.size != sizeof(id.bytes)) {
        check_complain(check, "webhook_ids: a key of %u bytes", key.size);
        return;
    }
    memcpy(id.bytes, key.bytes, sizeof(id.bytes));
    uuid_format(&id, text);
    if (webhook_read(txn, &row->client, &id, &webhook) == ERR_NOT_FOUND)
        check_complain(check, "webhook_ids: %s leads to no webhook", text);
}
