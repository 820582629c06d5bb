#include "store/client_quota.h"

#define client_quota_take_FIELD(name, TYPE, limit, since) \
    RECORD_FIELD(client_quota_take, name, TYPE, limit, since)
RECORD_CLASS(client_quota_take, CLIENT_QUOTA_TAKE_FIELDS, 1);

static bool over(const struct client_keys *keys, uint64_t window_us, uint64_t at_us)
{
    return at_us < keys->quota_since_us || at_us - keys->quota_since_us >= window_us;
}

static enum error apply_take(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct client_quota_take *c = command;
    struct key key = key_of_uuid(&c->client);
    struct client_keys keys;
    if (c->quota == 0 || c->want == 0 || c->window_us == 0 || c->window_us > CLIENT_QUOTA_WINDOW_MAX ||
        at_us > UINT64_MAX - CLIENT_QUOTA_WINDOW_MAX)
        return ERR_INVALID;
    enum error e = txn_read(txn, TABLE_CLIENT_KEYS, key_span(&key), &keys);
    if (e)
        return e;
    if (over(&keys, c->window_us, at_us)) {
        keys.quota_since_us = at_us;
        keys.quota_used = 0;
    }
    uint64_t left = c->quota > keys.quota_used ? c->quota - keys.quota_used : 0;
    uint32_t granted = left < c->want ? (uint32_t)left : c->want;
    struct client_quota_taken taken = {
        .granted = granted, .left = left - granted, .ends_us = keys.quota_since_us + c->window_us};
    if (granted > 0) {
        keys.quota_used += granted;
        txn_write(txn, TABLE_CLIENT_KEYS, key_span(&key), &keys);
    }
    answer_add(answer, &taken, sizeof(taken));
    return OK;
}

const struct command_class client_quota_take_class = {
    .name = "client.quota_take",
    .record = &client_quota_take_record,
    .apply = apply_take,
    .code = 104,
};
