#include "chaos/workload.h"

#include <stdio.h>
#include <stdlib.h>

#include "store/api_key.h"
#include "store/client_quota.h"
#include "store/audit.h"
#include "store/outbox.h"
#include "store/principal.h"
#include "store/rate_window.h"
#include "store/retention.h"
#include "store/revocation.h"
#include "store/seen_token.h"
#include "store/signing_key.h"
#include "chaos/workload_hooks.h"
#include "chaos/workload_jobs.h"
#include "store/view.h"
#include "tests/support/parcel.h"

enum { LANE = 1, DAY_S = 86400, COMMANDS_BYTES = WORKLOAD_BATCH_MAX * COMMAND_SIZE_MAX };

#define WORKLOAD_BEGIN_US UINT64_C(1790000000000000)

bool workload_create(struct workload *w, uint64_t seed)
{
    *w = (struct workload){.dice = dice_of(seed), .at_us = WORKLOAD_BEGIN_US};
    w->parcels_most = 8 + dice_below(&w->dice, 56);
    w->body_most = dice_chance(&w->dice, 300) ? 12000 : 100 + dice_below(&w->dice, 1500);
    w->bytes = malloc(COMMANDS_BYTES);
    return w->bytes != NULL;
}

void workload_destroy(struct workload *w)
{
    free(w->bytes);
}

/* ---- what there is to do something with ---- */

struct uuid workload_uuid(struct workload *w)
{
    struct uuid id;
    uint64_t high = dice_draw(&w->dice), low = dice_draw(&w->dice);
    if (dice_below(&w->dice, 2)) /* as version 7 does: behind those that are there */
        high = __builtin_bswap64(w->at_us / 1000 << 16 | (high & 0xffff));
    memcpy(id.bytes, &high, sizeof(high));
    memcpy(id.bytes + sizeof(high), &low, sizeof(low));
    return id;
}

/* A key of the table: one that is there, mostly. Most ids are of the past, so from wherever it is, some way back. */
struct uuid workload_id(struct workload *w, struct txn *txn, uint32_t table)
{
    struct uuid id = workload_uuid(w);
    if (dice_chance(&w->dice, 30))
        return id;
    struct key from = key_of_uuid(&id);
    struct scan scan = txn_scan(txn, table, key_span(&from), 0, SCAN_DOWN);
    for (uint32_t left = 1 + dice_below(&w->dice, 12); left > 0 && scan_next(&scan); left--)
        memcpy(id.bytes, scan.key.bytes, sizeof(id.bytes));
    scan_end(&scan);
    return id;
}

/* A row that waits, or one that is dead; its partition's fence. */
struct found_row {
    uint16_t partition;
    uint64_t seq, fence;
};

static struct found_row some_row(struct workload *w, struct txn *txn, uint32_t table)
{
    struct found_row row = {.partition = (uint16_t)dice_below(&w->dice, OUTBOX_PARTITIONS)};
    struct key from = {.size = 0}, of_partition = {.size = 0};
    key_add_u16(&from, row.partition);
    struct scan scan = txn_scan(txn, table, key_span(&from), 0, SCAN_UP);
    if (scan_next(&scan)) {
        row.partition = key_u16(scan.key.bytes);
        row.seq = key_u64((const uint8_t *)scan.key.bytes + 2);
    }
    scan_end(&scan);
    struct claim claim;
    key_add_u16(&of_partition, row.partition);
    if (txn_read(txn, TABLE_CLAIMS, key_span(&of_partition), &claim) == OK)
        row.fence = claim.fence;
    if (dice_chance(&w->dice, 20))
        row.fence--; /* one that is over */
    return row;
}

/* ---- commands ---- */

void workload_encode(struct workload *w, struct batch_item *item, const struct command_class *class,
                     const void *command)
{
    uint8_t *bytes = w->bytes + w->used;
    size_t size = record_encode(class->record, command, bytes, COMMANDS_BYTES - w->used);
    ASSERT(size > 0);
    w->used += size;
    *item = (struct batch_item){.class = class, .at_us = w->at_us, .bytes = span_of(bytes, size)};
}

static void draw_send(struct workload *w, struct batch_item *item)
{
    static uint8_t body[PARCEL_BODY_MAX];
    char key[40];
    struct parcel_send send = {.id = workload_uuid(w), .scope = span_text("workload")};
    uint32_t most = dice_chance(&w->dice, 20) ? 9000 : w->body_most, size = dice_below(&w->dice, most + 1);
    memset(body, (int)dice_below(&w->dice, 256), size);
    send.body = span_of(body, size);
    if (dice_chance(&w->dice, 600)) {
        uint32_t number =
            dice_chance(&w->dice, 100) ? dice_below(&w->dice, 50) : (uint32_t)dice_draw(&w->dice);
        snprintf(key, sizeof(key), "key-%u", (unsigned)number);
        send.key = span_text(key);
        send.digest.bytes[0] = (uint8_t)number;
    }
    if (dice_chance(&w->dice, 700))
        send.due_us = w->at_us + (1 + dice_below(&w->dice, 2 * DAY_S)) * UINT64_C(1000000);
    workload_encode(w, item, &parcel_send_class, &send);
}

static void draw_audit(struct workload *w, struct batch_item *item)
{
    struct audit_append entry = {.id = workload_uuid(w),
                                 .who = span_text("operator"),
                                 .verb = span_text("actor.kill"),
                                 .target = span_text("tree.leaf"),
                                 .outcome = span_text("done")};
    workload_encode(w, item, &audit_append_class, &entry);
}

/* ---- clients, keys and tokens ---- */

/* One of a few texts, so that the same one comes again. */
static struct span some_text(struct workload *w, char room[24])
{
    snprintf(room, 24, "text-%u", (unsigned)dice_below(&w->dice, 12));
    return span_text(room);
}

static struct digest some_digest(struct workload *w)
{
    struct uuid one = workload_uuid(w), two = workload_uuid(w);
    struct digest digest;
    memcpy(digest.bytes, one.bytes, sizeof(one.bytes));
    memcpy(digest.bytes + sizeof(one.bytes), two.bytes, sizeof(two.bytes));
    return digest;
}

static struct uuid some_audit(struct workload *w)
{
    return dice_chance(&w->dice, 500) ? workload_uuid(w) : (struct uuid){{0}};
}

static void draw_client(struct workload *w, struct batch_item *item)
{
    char key[24], from[24];
    struct client_create create = {.id = workload_uuid(w), .from = some_text(w, from)};
    if (dice_chance(&w->dice, 500))
        create.key = some_text(w, key);
    workload_encode(w, item, &client_create_class, &create);
}

static void draw_issue(struct workload *w, struct txn *txn, struct batch_item *item)
{
    char key[24];
    struct client_keys keys = {.issued = 0};
    struct api_key_issue issue = {.client = workload_id(w, txn, TABLE_CLIENTS),
                                  .id = workload_uuid(w),
                                  .hash = some_digest(w),
                                  .verb = (uint8_t)dice_below(&w->dice, API_KEY_VERB_COUNT),
                                  .window_us = DAY_S * UINT64_C(1000000),
                                  .ttl_us = (1 + dice_below(&w->dice, DAY_S)) * UINT64_C(1000000),
                                  .kept_us = (1 + dice_below(&w->dice, DAY_S)) * UINT64_C(1000000),
                                  .by = span_text("client"),
                                  .audit = some_audit(w)};
    if (dice_chance(&w->dice, 300))
        issue.key = some_text(w, key);
    if (dice_chance(&w->dice, 900) && client_read_keys(txn, &issue.client, &keys) == OK)
        issue.caller = keys.active;
    workload_encode(w, item, &api_key_issue_class, &issue);
}

static void draw_revoke(struct workload *w, struct txn *txn, struct batch_item *item)
{
    struct api_key key;
    struct api_key_revoke revoke = {.id = workload_id(w, txn, TABLE_API_KEYS),
                                    .by = span_text("operator"),
                                    .kept_us = DAY_S * UINT64_C(1000000),
                                    .audit = some_audit(w)};
    if (api_key_read(txn, &revoke.id, &key) == OK)
        revoke.client = key.client;
    workload_encode(w, item, &api_key_revoke_class, &revoke);
}

static void draw_touch(struct workload *w, struct txn *txn, struct batch_item *item)
{
    uint8_t uses[4 * API_KEY_TOUCH_SIZE];
    for (size_t at = 0; at < sizeof(uses); at += API_KEY_TOUCH_SIZE) {
        struct uuid id = workload_id(w, txn, TABLE_API_KEYS);
        memcpy(uses + at, id.bytes, sizeof(id.bytes));
        memcpy(uses + at + sizeof(id.bytes), &w->at_us, sizeof(w->at_us));
    }
    const struct api_key_touch touch = {.uses = span_of(uses, sizeof(uses))};
    workload_encode(w, item, &api_key_touch_class, &touch);
}

/* Of a state, or one that isn't there. */
static struct uuid some_signing_key(struct workload *w, struct txn *txn, uint8_t state)
{
    struct signing_key row;
    struct uuid id = dice_chance(&w->dice, 30) ? workload_uuid(w) : (struct uuid){{0}};
    const struct key from = {.size = 0};
    struct scan scan = txn_scan(txn, TABLE_SIGNING_KEYS, key_span(&from), 0, SCAN_UP);
    while (scan_next(&scan) && scan_read(&scan, &row) == OK)
        if (row.state == state)
            id = row.id;
    scan_end(&scan);
    return id;
}

static void draw_rotate(struct workload *w, struct txn *txn, struct batch_item *item)
{
    static const char jwk[] = "{\"kty\":\"EC\"}";
    const struct signing_key_rotate rotate = {
        .id = workload_uuid(w),
        .previous = some_signing_key(w, txn, SIGNING_KEY_ACTIVE),
        .first = txn_rows(txn, TABLE_SIGNING_KEYS) == 0,
        .algorithm = span_text("ES256"),
        .environment = span_text("dev"),
        .public_jwk = span_text(jwk),
        .sealed = span_text("sealed"),
        .overlap_us = dice_below(&w->dice, 3600) * UINT64_C(1000000),
        .audit = workload_uuid(w),
        .who = span_text("workload"),
        .reason = span_text("its time"),
    };
    workload_encode(w, item, &signing_key_rotate_class, &rotate);
}

static void draw_end_of_key(struct workload *w, struct txn *txn, struct batch_item *item, bool emergency)
{
    const struct uuid id = some_signing_key(
        w, txn, emergency && dice_below(&w->dice, 2) ? SIGNING_KEY_ACTIVE : SIGNING_KEY_RETIRING);
    const struct signing_key_revoke revoke = {.id = id,
                                              .kept_us = SIGNING_KEY_KEPT_MIN_US,
                                              .audit = workload_uuid(w),
                                              .who = span_text("workload"),
                                              .reason = span_text("lost")};
    const struct signing_key_remove removal = {.id = id, .kept_us = SIGNING_KEY_KEPT_MIN_US};
    if (emergency)
        workload_encode(w, item, &signing_key_revoke_class, &revoke);
    else
        workload_encode(w, item, &signing_key_remove_class, &removal);
}

static void draw_revocation(struct workload *w, struct batch_item *item)
{
    char value[24];
    const struct revocation_put put = {.kind = (uint8_t)dice_below(&w->dice, REVOCATION_KIND_COUNT),
                                       .value = some_text(w, value),
                                       .expires_us =
                                           w->at_us + dice_below(&w->dice, 3600) * UINT64_C(1000000),
                                       .audit = workload_uuid(w),
                                       .who = span_text("workload"),
                                       .reason = span_text("lost")};
    workload_encode(w, item, &revocation_put_class, &put);
}

static void draw_seen(struct workload *w, struct batch_item *item)
{
    char jti[24];
    const struct seen_token_put put = {.issuer = span_text("workload"),
                                       .jti = some_text(w, jti),
                                       .digest = some_digest(w),
                                       .subject = span_text("somebody"),
                                       .expires_us =
                                           w->at_us + dice_below(&w->dice, 3600) * UINT64_C(1000000)};
    workload_encode(w, item, &seen_token_put_class, &put);
}

static void draw_take(struct workload *w, struct batch_item *item)
{
    char actor[24];
    const struct rate_window_take take = {.actor = some_text(w, actor),
                                          .bucket = (uint8_t)dice_below(&w->dice, 3),
                                          .quota = dice_below(&w->dice, 8),
                                          .window_us = 60 * UINT64_C(1000000)};
    workload_encode(w, item, &rate_window_take_class, &take);
}

static void draw_quota(struct workload *w, struct txn *txn, struct batch_item *item)
{
    const struct client_quota_take take = {.client = workload_id(w, txn, TABLE_CLIENT_KEYS),
                                           .quota = dice_below(&w->dice, 8),
                                           .window_us = 60 * UINT64_C(1000000),
                                           .want = 1 + dice_below(&w->dice, 4)};
    workload_encode(w, item, &client_quota_take_class, &take);
}

static void draw_principal(struct workload *w, struct batch_item *item, bool end)
{
    char name[24];
    const struct principal_put put = {.verb = (uint8_t)dice_below(&w->dice, PRINCIPAL_VERB_COUNT),
                                      .name = some_text(w, name),
                                      .hash = some_digest(w),
                                      .role = span_text("agent"),
                                      .projects = span_text("p1 p2"),
                                      .audit = workload_uuid(w),
                                      .who = span_text("workload"),
                                      .tokens_us = 3600 * UINT64_C(1000000)};
    const struct principal_remove removal = {
        .name = put.name, .audit = put.audit, .who = span_text("workload"), .tokens_us = put.tokens_us};
    if (end)
        workload_encode(w, item, &principal_remove_class, &removal);
    else
        workload_encode(w, item, &principal_put_class, &put);
}

enum { DOMAIN_CLASSES = 13 };
static const struct command_class *const domain_classes[DOMAIN_CLASSES] = {
    &client_create_class,      &api_key_issue_class,      &api_key_revoke_class,     &api_key_touch_class,
    &signing_key_rotate_class, &signing_key_revoke_class, &signing_key_remove_class, &revocation_put_class,
    &seen_token_put_class,     &rate_window_take_class,   &principal_put_class,      &principal_remove_class,
    &client_quota_take_class,
};

static void draw_of_domain(struct workload *w, struct txn *txn, struct batch_item *item, uint16_t code)
{
    if (code == client_create_class.code)
        draw_client(w, item);
    else if (code == api_key_issue_class.code)
        draw_issue(w, txn, item);
    else if (code == api_key_revoke_class.code)
        draw_revoke(w, txn, item);
    else if (code == api_key_touch_class.code)
        draw_touch(w, txn, item);
    else if (code == signing_key_rotate_class.code)
        draw_rotate(w, txn, item);
    else if (code == signing_key_revoke_class.code || code == signing_key_remove_class.code)
        draw_end_of_key(w, txn, item, code == signing_key_revoke_class.code);
    else if (code == revocation_put_class.code)
        draw_revocation(w, item);
    else if (code == seen_token_put_class.code)
        draw_seen(w, item);
    else if (code == client_quota_take_class.code)
        draw_quota(w, txn, item);
    else if (code == principal_put_class.code || code == principal_remove_class.code)
        draw_principal(w, item, code == principal_remove_class.code);
    else if (!workload_draw_job(w, txn, item, code) && !workload_draw_hook(w, txn, item, code)) {
        ASSERT(code == rate_window_take_class.code);
        draw_take(w, item);
    }
}

static void draw(struct workload *w, struct txn *txn, struct batch_item *item, uint16_t code)
{
    if (code == parcel_send_class.code) {
        draw_send(w, item);
    } else if (code == parcel_move_class.code) {
        struct parcel_move move = {.id = workload_id(w, txn, TABLE_PARCELS),
                                   .event = (uint8_t)dice_below(&w->dice, PARCEL_EVENT_COUNT)};
        workload_encode(w, item, &parcel_move_class, &move);
    } else if (code == parcel_drop_class.code) {
        struct parcel_drop drop = {.id = workload_id(w, txn, TABLE_PARCELS)};
        workload_encode(w, item, &parcel_drop_class, &drop);
    } else if (code == outbox_claim_class.code) {
        struct outbox_claim_command claim = {some_row(w, txn, TABLE_OUTBOX).partition, 7};
        workload_encode(w, item, &outbox_claim_class, &claim);
    } else if (code == outbox_mark_class.code) {
        struct found_row row = some_row(w, txn, TABLE_OUTBOX);
        struct outbox_mark_command mark = {row.partition, row.seq, row.fence};
        workload_encode(w, item, &outbox_mark_class, &mark);
    } else if (code == outbox_defer_class.code) {
        struct found_row row = some_row(w, txn, TABLE_OUTBOX);
        struct outbox_defer_command defer = {row.partition, row.seq, row.fence, w->at_us + 1000000};
        workload_encode(w, item, &outbox_defer_class, &defer);
    } else if (code == outbox_bury_class.code) {
        struct found_row row = some_row(w, txn, TABLE_OUTBOX);
        struct outbox_bury_command bury = {row.partition, row.seq, row.fence, span_text("nobody there")};
        workload_encode(w, item, &outbox_bury_class, &bury);
    } else if (code == outbox_revive_class.code) {
        struct found_row row = some_row(w, txn, TABLE_DEAD);
        struct outbox_revive_command revive = {.partition = row.partition, .seq = row.seq};
        workload_encode(w, item, &outbox_revive_class, &revive);
    } else if (code == retention_sweep_class.code) {
        struct retention_sweep sweep = {.limit = 1 + dice_below(&w->dice, 64)};
        workload_encode(w, item, &retention_sweep_class, &sweep);
    } else if (code == audit_append_class.code) {
        draw_audit(w, item);
    } else {
        draw_of_domain(w, txn, item, code);
    }
}

static uint16_t some_code(struct workload *w, bool crowded)
{
    uint32_t face = dice_below(&w->dice, 172);
    if (face >= 156)
        return workload_hook_classes[dice_below(&w->dice, WORKLOAD_HOOK_CLASSES)]->code;
    if (face >= 130) /* half of them submits and claims: what the others are about */
        return workload_job_classes[dice_below(&w->dice, 2)]->code;
    if (face >= 110)
        return workload_job_classes[dice_below(&w->dice, WORKLOAD_JOB_CLASSES)]->code;
    if (face >= 100)
        return domain_classes[dice_below(&w->dice, DOMAIN_CLASSES)]->code;
    if (face < 40)
        return crowded ? parcel_drop_class.code : parcel_send_class.code;
    if (face < 65)
        return parcel_move_class.code;
    if (face < 75)
        return parcel_drop_class.code;
    if (face < 83)
        return outbox_mark_class.code;
    if (face < 89)
        return outbox_claim_class.code;
    if (face < 91)
        return outbox_defer_class.code;
    if (face < 93)
        return outbox_bury_class.code;
    if (face < 95)
        return outbox_revive_class.code;
    return face < 98 ? retention_sweep_class.code : audit_append_class.code;
}

static void pass_time(struct workload *w)
{
    uint64_t s = dice_chance(&w->dice, 30) ? DAY_S : dice_below(&w->dice, 600);
    w->at_us += s * 1000000 + dice_below(&w->dice, 1000000);
}

size_t workload_draw(struct workload *w, struct store *store)
{
    size_t count = dice_chance(&w->dice, 400) ? 1 : 1 + dice_below(&w->dice, WORKLOAD_BATCH_MAX);
    struct view *view = view_open_outside(store, LANE);
    ASSERT(view);
    bool crowded = txn_rows(&view->txn, TABLE_PARCELS) > w->parcels_most;
    w->used = 0;
    pass_time(w);
    for (size_t i = 0; i < count; i++)
        draw(w, &view->txn, &w->items[i], some_code(w, crowded));
    view_close(view);
    return count;
}

void workload_draw_one(struct workload *w, struct store *store, const struct command_class *class)
{
    struct view *view = view_open_outside(store, LANE);
    ASSERT(view);
    w->used = 0;
    pass_time(w);
    draw(w, &view->txn, &w->items[0], class->code);
    view_close(view);
}
