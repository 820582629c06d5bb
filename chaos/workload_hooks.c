#include "chaos/workload_hooks.h"

#include <stdio.h>

#include "store/nouns.h"

#define SECOND_US UINT64_C(1000000)
#define KEPT_US   (86400 * SECOND_US)
enum { RESULTS = 4 };

const struct command_class *const workload_hook_classes[WORKLOAD_HOOK_CLASSES] = {
    &webhook_put_class,    &webhook_remove_class,  &webhook_switch_class,  &webhook_rotate_class,
    &delivery_relay_class, &delivery_settle_class, &delivery_resend_class,
};

/* ---- webhooks ---- */

static void draw_put(struct workload *w, struct txn *txn, struct batch_item *item)
{
    static const char *const keys[] = {"a", "b", "c", "d"};
    char url[48];
    int size = snprintf(url, sizeof(url), "https://%u.example/", (unsigned)dice_below(&w->dice, 12));
    struct webhook_put put = {.client = workload_id(w, txn, TABLE_CLIENTS),
                              .id = workload_uuid(w),
                              .events = 1 + dice_below(&w->dice, 4),
                              .url = span_of(url, (size_t)size)};
    if (dice_chance(&w->dice, 300))
        put.key = span_text(keys[dice_below(&w->dice, 4)]);
    workload_encode(w, item, &webhook_put_class, &put);
}

/* One that is there, by its client mostly. */
static struct uuid some_webhook(struct workload *w, struct txn *txn, struct uuid *ret_client)
{
    struct uuid id = workload_id(w, txn, TABLE_WEBHOOK_IDS);
    *ret_client = workload_uuid(w);
    if (!dice_chance(&w->dice, 50))
        (void)webhook_owner(txn, &id, ret_client);
    return id;
}

static void draw_change(struct workload *w, struct txn *txn, struct batch_item *item, uint16_t code)
{
    struct uuid client, id = some_webhook(w, txn, &client);
    const struct webhook_remove removal = {.client = client, .id = id};
    const struct webhook_rotate rotate = {.client = client, .id = id};
    const struct webhook_switch turn = {.client = client, .id = id, .on = (uint8_t)dice_below(&w->dice, 2)};
    if (code == webhook_remove_class.code)
        workload_encode(w, item, &webhook_remove_class, &removal);
    else if (code == webhook_rotate_class.code)
        workload_encode(w, item, &webhook_rotate_class, &rotate);
    else
        workload_encode(w, item, &webhook_switch_class, &turn);
}

/* ---- the relay ---- */

/* Rows of one partition that tell of jobs, in order. */
static uint32_t rows_of_jobs(struct txn *txn, uint16_t partition, uint64_t numbers[DELIVERY_RELAY_ROWS_MAX])
{
    struct outbox_row rows[DELIVERY_RELAY_ROWS_MAX];
    uint32_t count = 0, found = 0;
    if (outbox_scan(txn, partition, 0, rows, DELIVERY_RELAY_ROWS_MAX, &count) != OK)
        return 0;
    for (uint32_t i = 0; i < count; i++)
        if (delivery_relays(rows[i].row.topic))
            numbers[found++] = rows[i].seq;
    return found;
}

static uint64_t fence_of(struct workload *w, struct txn *txn, uint16_t partition)
{
    struct key key = {.size = 0};
    struct claim claim = {.fence = 0};
    key_add_u16(&key, partition);
    (void)txn_read(txn, TABLE_CLAIMS, key_span(&key), &claim);
    return dice_chance(&w->dice, 20) ? claim.fence - 1 : claim.fence;
}

static void draw_relay(struct workload *w, struct txn *txn, struct batch_item *item)
{
    uint64_t numbers[DELIVERY_RELAY_ROWS_MAX] = {1};
    struct delivery_relay c = {.steady_us = w->at_us, .kept_us = KEPT_US};
    uint32_t count = 0, first = dice_below(&w->dice, OUTBOX_PARTITIONS);
    for (uint32_t i = 0; i < OUTBOX_PARTITIONS && count == 0; i++) {
        c.partition = (uint16_t)((first + i) % OUTBOX_PARTITIONS);
        count = rows_of_jobs(txn, c.partition, numbers);
    }
    c.fence = fence_of(w, txn, c.partition);
    c.rows = span_of(numbers, (count ? count : 1) * sizeof(*numbers));
    workload_encode(w, item, &delivery_relay_class, &c);
}

/* ---- deliveries ---- */

/* One that may be sent, mostly. */
static struct uuid some_delivery(struct workload *w, struct txn *txn)
{
    struct due_entry entry;
    if (dice_chance(&w->dice, 700) &&
        delivery_next_lane(txn, (uint16_t)dice_below(&w->dice, DELIVERY_PARTITIONS), 0, &entry) == OK)
        return entry.id;
    return workload_id(w, txn, TABLE_DELIVERIES);
}

static struct delivery_result some_result(struct workload *w, struct txn *txn)
{
    struct delivery_result r = {.id = some_delivery(w, txn),
                                .outcome = (uint8_t)dice_below(&w->dice, DELIVERY_RESEND),
                                .began_us = w->at_us,
                                .took_ms = dice_below(&w->dice, 5000)};
    struct delivery d;
    if (delivery_read(txn, &r.id, &d) == OK)
        r.attempt = d.attempts + !dice_chance(&w->dice, 100);
    if (r.outcome != DELIVERY_SUCCEED)
        r.error = (uint8_t)(1 + dice_below(&w->dice, DELIVERY_ERROR_COUNT - 1));
    if (r.outcome == DELIVERY_RETRY)
        r.not_before_us = w->at_us + dice_below(&w->dice, 60) * SECOND_US;
    r.status = dice_chance(&w->dice, 100) ? DELIVERY_GONE_STATUS : 500;
    return r;
}

static void draw_settle(struct workload *w, struct txn *txn, struct batch_item *item)
{
    uint8_t bytes[RESULTS * DELIVERY_RESULT_SIZE];
    uint32_t count = 1 + dice_below(&w->dice, RESULTS);
    for (uint32_t i = 0; i < count; i++) {
        struct delivery_result r = some_result(w, txn);
        (void)record_encode(&delivery_result_record, &r, bytes + i * DELIVERY_RESULT_SIZE,
                            DELIVERY_RESULT_SIZE);
    }
    const struct delivery_settle c = {.steady_us = w->at_us,
                                      .kept_us = KEPT_US,
                                      .disable_after_us = 3600 * SECOND_US,
                                      .results = span_of(bytes, count * DELIVERY_RESULT_SIZE)};
    workload_encode(w, item, &delivery_settle_class, &c);
}

static void draw_resend(struct workload *w, struct txn *txn, struct batch_item *item)
{
    struct delivery_resend c = {.id = workload_id(w, txn, TABLE_DELIVERIES), .steady_us = w->at_us};
    struct delivery d;
    if (delivery_read(txn, &c.id, &d) == OK)
        c.client = d.client;
    workload_encode(w, item, &delivery_resend_class, &c);
}

/* Of a sound store there is nothing to be seen to: an entry is a delivery's own, or it isn't there. */
static void draw_astray(struct workload *w, struct txn *txn, struct batch_item *item)
{
    uint8_t bytes[DELIVERY_STRAY_SIZE];
    struct delivery_stray stray = {.id = workload_id(w, txn, TABLE_DELIVERIES), .due_us = w->at_us};
    struct delivery d;
    if (delivery_read(txn, &stray.id, &d) == OK && dice_chance(&w->dice, 700)) {
        stray.lane = d.lane;
        stray.due_us = d.not_before_us;
    }
    (void)record_encode(&delivery_stray_record, &stray, bytes, sizeof(bytes));
    const struct delivery_astray c = {.steady_us = w->at_us, .strays = span_of(bytes, sizeof(bytes))};
    workload_encode(w, item, &delivery_astray_class, &c);
}

bool workload_draw_hook(struct workload *w, struct txn *txn, struct batch_item *item, uint16_t code)
{
    if (code == webhook_put_class.code)
        draw_put(w, txn, item);
    else if (code == delivery_relay_class.code)
        draw_relay(w, txn, item);
    else if (code == delivery_settle_class.code)
        draw_settle(w, txn, item);
    else if (code == delivery_resend_class.code)
        draw_resend(w, txn, item);
    else if (code == delivery_astray_class.code)
        draw_astray(w, txn, item);
    else if (code > webhook_put_class.code && code <= webhook_rotate_class.code)
        draw_change(w, txn, item, code);
    else
        return false;
    return true;
}
