#include "chaos/workload_jobs.h"

#include "store/nouns.h"

#define SECOND_US     UINT64_C(1000000)
#define LEASE_US      (7200 * SECOND_US) /* time passes in leaps here: some hold, some don't */
#define LEASE_LONG_US (30 * 86400 * SECOND_US)
#define KEPT_US       (3600 * SECOND_US)
#define STARTS        3u /* of a server that is started again and again: whose claims are whose */

const struct command_class *const workload_job_classes[WORKLOAD_JOB_CLASSES] = {
    &job_submit_class,   &job_claim_class,       &job_start_class,       &job_heartbeat_class,
    &job_finish_class,   &job_cancel_class,      &job_retry_class,       &job_fire_class,
    &job_reap_class,     &job_pause_class,       &job_resume_class,      &job_unpark_class,
    &job_run_class,      &job_bulk_class,        &job_bulk_abort_class,  &job_bulk_step_class,
    &schedule_put_class, &schedule_remove_class, &schedule_switch_class, &schedule_fire_class,
    &job_fairness_class, &job_admit_class,       &schedule_retime_class,
};

/* Few clients, so that their keys and queues meet. */
static struct uuid some_client(struct workload *w)
{
    struct uuid id = {{0xc1, [15] = (uint8_t)(1 + dice_below(&w->dice, 3))}};
    return id;
}

static uint64_t some_start(struct workload *w)
{
    return 1 + dice_below(&w->dice, STARTS);
}

/* A job that somebody has; else any. */
static struct uuid some_leased(struct workload *w, struct txn *txn)
{
    struct key from;
    struct uuid id = workload_id(w, txn, TABLE_JOBS);
    from.size = 0;
    key_add_u8(&from, DUE_JOB_LEASE);
    key_add_u16(&from, (uint16_t)dice_below(&w->dice, JOB_LEASE_SHARDS));
    struct scan scan = txn_scan(txn, TABLE_DUE, key_span(&from), 1, SCAN_UP);
    /* Not always the oldest one, whose lease is over. */
    for (uint32_t left = 1 + (uint32_t)dice_below(&w->dice, JOB_SHARDS); left > 0 && scan_next(&scan); left--)
        memcpy(id.bytes, (const uint8_t *)scan.key.bytes + scan.key.size - sizeof(id), sizeof(id));
    scan_end(&scan);
    return id;
}

/* Mostly one in this state. */
static struct uuid some_leased_in(struct workload *w, struct txn *txn, uint8_t state)
{
    struct job job = {.state = JOB_STATE_COUNT};
    struct uuid id = some_leased(w, txn);
    for (uint32_t tries = 0; tries < 8 && job_read(txn, &id, &job) == OK && job.state != state; tries++)
        id = some_leased(w, txn);
    return id;
}

static struct uuid some_in(struct workload *w, struct txn *txn, uint8_t state)
{
    struct job job = {.state = JOB_STATE_COUNT};
    struct uuid id = workload_id(w, txn, TABLE_JOBS);
    for (uint32_t tries = 0; tries < 16 && job_read(txn, &id, &job) == OK && job.state != state; tries++)
        id = workload_id(w, txn, TABLE_JOBS);
    return id;
}

static uint64_t fence_of(struct workload *w, struct txn *txn, const struct uuid *id)
{
    struct job job;
    if (job_read(txn, id, &job) != OK)
        return 1;
    return dice_chance(&w->dice, 50) ? job.fence - 1 : job.fence;
}

static void draw_submit(struct workload *w, struct batch_item *item)
{
    static const char *const keys[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    static const char payload[] = "{\"to\":\"somebody\",\"n\":[1,2,3]}";
    bool deferred = dice_chance(&w->dice, 250), user = dice_chance(&w->dice, 250);
    struct job_submit c = {
        .id = workload_uuid(w),
        .client = some_client(w),
        .type = deferred                     ? JOB_DEFERRED
                : dice_chance(&w->dice, 200) ? JOB_EMIT_EVENT
                                             : JOB_EXECUTE,
        .kind = user ? WORK_KIND_USER : (uint8_t)dice_below(&w->dice, 32),
        .priority = (uint8_t)dice_below(&w->dice, JOB_PRIORITY_MAX + 1),
        .execution_us = deferred ? w->at_us + dice_below(&w->dice, 7200) * SECOND_US : 0,
        .should_fail_ppm = 300000,
        .runtime_max_ms = 120000,
        .payload_max = 262144,
        .queue_max = 500,
        .active_max = 600,
        .request_id = span_text("r"),
    };
    if (user) {
        c.kind_name = span_text(dice_chance(&w->dice, 500) ? "x.mail" : "x.resize");
        c.payload = span_of(payload, sizeof(payload) - 1);
    }
    if (dice_chance(&w->dice, 300))
        c.callback = span_text("http://192.0.2.1/hook");
    if (dice_chance(&w->dice, 400))
        c.key = span_text(keys[dice_below(&w->dice, 8)]);
    if (dice_chance(&w->dice, 100))
        c.repeat = span_text(keys[dice_below(&w->dice, 8)]);
    c.digest.bytes[0] = dice_chance(&w->dice, 100) ? 1 : 0;
    workload_encode(w, item, &job_submit_class, &c);
}

static void draw_claim(struct workload *w, struct batch_item *item)
{
    bool outside = dice_chance(&w->dice, 300);
    struct job_claim c = {.lane = outside ? LANE_OUTSIDE : LANE_SERVER,
                          .client = some_client(w),
                          .most = (uint16_t)(1 + dice_below(&w->dice, 4)),
                          .running = (uint8_t)(outside || dice_chance(&w->dice, 500)),
                          .owner = outside ? 0 : some_start(w),
                          .running_max = dice_chance(&w->dice, 200) ? 5 : 0,
                          .client_max = dice_chance(&w->dice, 100) ? 2 : 0,
                          .steady_us = w->at_us,
                          .lease_us = dice_chance(&w->dice, 500) ? LEASE_US : LEASE_LONG_US,
                          .worker = span_text("w1")};
    workload_encode(w, item, &job_claim_class, &c);
}

static void draw_progress(struct workload *w, struct txn *txn, struct batch_item *item, uint16_t code)
{
    struct uuid id = some_leased_in(w, txn, code == job_start_class.code ? JOB_ASSIGNED : JOB_RUNNING);
    uint64_t fence = fence_of(w, txn, &id);
    const struct job_start start = {id, fence, w->at_us, LEASE_US};
    const struct job_heartbeat beat = {.id = id,
                                       .fence = fence,
                                       .steady_us = w->at_us,
                                       .lease_us = LEASE_US,
                                       .progress = (uint16_t)dice_below(&w->dice, 1200),
                                       .stage = span_text("half way")};
    if (code == job_start_class.code)
        workload_encode(w, item, &job_start_class, &start);
    else
        workload_encode(w, item, &job_heartbeat_class, &beat);
}

static void draw_finish(struct workload *w, struct txn *txn, struct batch_item *item)
{
    struct uuid id = some_leased_in(w, txn, JOB_RUNNING);
    bool good = dice_chance(&w->dice, 600);
    struct job_finish c = {.id = id,
                           .fence = fence_of(w, txn, &id),
                           .event = good                         ? JOB_SUCCEED
                                    : dice_chance(&w->dice, 200) ? JOB_TIME_OUT
                                                                 : JOB_FAIL,
                           .failure = good ? JOB_NO_FAILURE : JOB_SIMULATED_FAILURE,
                           .retryable = !good && dice_chance(&w->dice, 500),
                           .progress = good ? 0 : 500,
                           .outputs = 1,
                           .outputs_bytes = 4096,
                           .steady_us = w->at_us,
                           .kept_us = KEPT_US,
                           .retry_max = 3,
                           .queue_max = dice_chance(&w->dice, 100) ? 1 : 500,
                           .auto_retry = dice_chance(&w->dice, 300),
                           .backoff_us = SECOND_US,
                           .message = span_text(good ? "" : "it broke"),
                           .result = span_text("{\"ok\":true}")};
    workload_encode(w, item, &job_finish_class, &c);
}

static void draw_fire(struct workload *w, struct batch_item *item)
{
    struct job_fire c = {.shard = (uint16_t)dice_below(&w->dice, JOB_SHARDS),
                         .wall_us = w->at_us,
                         .steady_us = w->at_us,
                         .start = some_start(w),
                         .queue_max = dice_chance(&w->dice, 100) ? 1 : 500,
                         .retry_max = 3,
                         .kept_us = KEPT_US,
                         .most = (uint16_t)(1 + dice_below(&w->dice, 8)),
                         .auto_retry = dice_chance(&w->dice, 300),
                         .base_us = SECOND_US,
                         .most_us = 60 * SECOND_US};
    workload_encode(w, item, &job_fire_class, &c);
}

static void draw_reap(struct workload *w, struct txn *txn, struct batch_item *item)
{
    struct uuid ids[2] = {some_leased(w, txn), some_leased(w, txn)};
    struct job_reap c = {.ids = span_of(ids, sizeof(ids)),
                         .steady_us = w->at_us,
                         .start = some_start(w),
                         .retry_max = 3,
                         .kept_us = KEPT_US,
                         .auto_retry = dice_chance(&w->dice, 300),
                         .queue_max = dice_chance(&w->dice, 100) ? 1 : 500,
                         .base_us = SECOND_US,
                         .most_us = 60 * SECOND_US};
    workload_encode(w, item, &job_reap_class, &c);
}

/* ---- pauses ---- */

/* One that stands in the queue; else any. */
static struct uuid some_queued(struct workload *w, struct txn *txn)
{
    struct key from;
    struct job_queue row = {.id = workload_id(w, txn, TABLE_JOBS)};
    from.size = 0;
    key_add_u8(&from, (uint8_t)(LANE_SERVER + dice_below(&w->dice, LANE_COUNT - LANE_SERVER)));
    struct scan scan = txn_scan(txn, TABLE_JOB_QUEUE, key_span(&from), 0, SCAN_UP);
    if (scan_next(&scan))
        (void)scan_read(&scan, &row);
    scan_end(&scan);
    return row.id;
}

static struct uuid some_paused(struct workload *w, struct txn *txn, uint8_t scope)
{
    struct job job;
    struct uuid id = some_queued(w, txn), none = {{0}};
    if (scope == PAUSE_ALL)
        return none;
    if (scope == PAUSE_CLIENT)
        return workload_id(w, txn, TABLE_CLIENTS);
    return job_read(txn, &id, &job) == OK ? job.work : id;
}

/* What stands before all others. */
static const struct uuid nobody = {{0}};

static bool draw_pause(struct workload *w, struct txn *txn, struct batch_item *item, uint16_t code)
{
    uint8_t scope = dice_chance(&w->dice, 30)    ? PAUSE_ALL
                    : dice_chance(&w->dice, 500) ? PAUSE_WORK
                                                 : PAUSE_CLIENT;
    struct key from = {.size = 0};
    struct scan scan;
    struct pause pause;
    struct job_pause c = {.scope = scope,
                          .name = some_paused(w, txn, scope),
                          .until_us = w->at_us + (1 + dice_below(&w->dice, 3600)) * SECOND_US,
                          .label = span_text("some"),
                          .who = span_text("operator"),
                          .reason = span_text("quiet")};
    struct job_resume resume = {.scope = scope, .name = c.name};
    const struct job_unpark unpark = {.wall_us = w->at_us + dice_below(&w->dice, 3600) * SECOND_US,
                                      .most = (uint16_t)(1 + dice_below(&w->dice, 8))};
    const struct job_run run = {some_queued(w, txn)};

    const struct job_fairness fairness = {.on = dice_chance(&w->dice, 500),
                                          .most = (uint16_t)(dice_chance(&w->dice, 30) ? 0 : 4)};
    const struct job_admit admit = {.after = dice_chance(&w->dice, 200) ? some_client(w) : nobody,
                                    .client_max = (uint32_t)dice_below(&w->dice, 6)};
    switch (code) {
    case 220: /* job.pause */
        if (dice_chance(&w->dice, 300))
            c.until_us = 0;
        workload_encode(w, item, &job_pause_class, &c);
        return true;
    case 221: /* job.resume */
        scan = txn_scan(txn, TABLE_PAUSES, key_span(&from), 0, SCAN_UP);
        if (scan_next(&scan) && scan_read(&scan, &pause) == OK)
            resume = (struct job_resume){pause.scope, pause.name};
        scan_end(&scan);
        workload_encode(w, item, &job_resume_class, &resume);
        return true;
    case 222: /* job.unpark */
        workload_encode(w, item, &job_unpark_class, &unpark);
        return true;
    case 223: /* job.run */
        workload_encode(w, item, &job_run_class, &run);
        return true;
    case 227: /* job.fairness */
        workload_encode(w, item, &job_fairness_class, &fairness);
        return true;
    case 228: /* job.admit */
        workload_encode(w, item, &job_admit_class, &admit);
        return true;
    default:
        return false;
    }
}

/* ---- bulk actions ---- */

static bool draw_bulk(struct workload *w, struct txn *txn, struct batch_item *item, uint16_t code)
{
    const struct uuid client = dice_chance(&w->dice, 700) ? some_client(w) : workload_uuid(w);
    const bool own = dice_chance(&w->dice, 800);
    const struct job_bulk bulk = {.id = workload_uuid(w),
                                  .owner = own ? client : (struct uuid){{0}},
                                  .action = (uint8_t)dice_below(&w->dice, BULK_ACTION_COUNT),
                                  .client = own || dice_chance(&w->dice, 500) ? client : (struct uuid){{0}},
                                  .states = UINT8_MAX,
                                  .type = BULK_ANY_TYPE,
                                  .who = span_text("operator"),
                                  .reason = span_text("all of them"),
                                  .by_steady = 1};
    const struct job_bulk_abort end = {.id = workload_id(w, txn, TABLE_BULKS)};
    const struct job_bulk_step step = {.wall_us = w->at_us + SECOND_US,
                                       .steady_us = w->at_us,
                                       .kept_us = KEPT_US,
                                       .retry_max = 3,
                                       .queue_max = 500,
                                       .base_us = SECOND_US,
                                       .most_us = 60 * SECOND_US,
                                       .by_steady = 1};
    if (code == job_bulk_class.code)
        workload_encode(w, item, &job_bulk_class, &bulk);
    else if (code == job_bulk_abort_class.code)
        workload_encode(w, item, &job_bulk_abort_class, &end);
    else if (code == job_bulk_step_class.code)
        workload_encode(w, item, &job_bulk_step_class, &step);
    else
        return false;
    return true;
}

/* ---- schedules ---- */

static struct schedule some_schedule(struct workload *w, struct txn *txn)
{
    struct schedule schedule = {.id = workload_uuid(w), .client = some_client(w)};
    struct key from;
    from.size = 0;
    key_add_u8(&from, 0);
    struct scan scan = txn_scan(txn, TABLE_SCHEDULES, key_span(&from), 1, SCAN_UP);
    for (uint32_t skip = dice_below(&w->dice, 3); scan_next(&scan) && skip > 0; skip--)
        ;
    (void)scan_read(&scan, &schedule);
    scan_end(&scan);
    return schedule;
}

static bool draw_schedule(struct workload *w, struct txn *txn, struct batch_item *item, uint16_t code)
{
    const struct schedule there = some_schedule(w, txn);
    const bool known = dice_chance(&w->dice, 900);
    const struct schedule_put put = {.id = workload_uuid(w),
                                     .client = known ? workload_id(w, txn, TABLE_CLIENTS) : workload_uuid(w),
                                     .overlap = (uint8_t)dice_below(&w->dice, OVERLAP_COUNT),
                                     .missed = (uint8_t)dice_below(&w->dice, MISSED_COUNT),
                                     .kind = WORK_KIND_SUCCESS_FAST,
                                     .grace_us = 60 * SECOND_US,
                                     .name = span_text("hourly"),
                                     .cron = span_text("7 * * * *"),
                                     .payload = span_text("")};
    const struct schedule_remove removal = {.id = there.id, .client = there.client};
    const struct schedule_switch turn = {
        .id = there.id, .client = there.client, .paused = (uint8_t)dice_below(&w->dice, 2)};
    const struct schedule_fire fire = {.id = known ? there.id : (struct uuid){{0}},
                                       .client = known ? there.client : (struct uuid){{0}},
                                       .job = workload_uuid(w),
                                       .wall_us = w->at_us,
                                       .kept_us = KEPT_US,
                                       .runtime_max_ms = 120000,
                                       .payload_max = 262144,
                                       .queue_max = 500,
                                       .active_max = 600};
    const struct schedule_retime retime = {.after = dice_chance(&w->dice, 200) ? there.id : nobody,
                                           .wall_us =
                                               w->at_us - dice_below(&w->dice, 60 * 86400) * SECOND_US};
    if (code == schedule_put_class.code)
        workload_encode(w, item, &schedule_put_class, &put);
    else if (code == schedule_remove_class.code)
        workload_encode(w, item, &schedule_remove_class, &removal);
    else if (code == schedule_switch_class.code)
        workload_encode(w, item, &schedule_switch_class, &turn);
    else if (code == schedule_fire_class.code)
        workload_encode(w, item, &schedule_fire_class, &fire);
    else if (code == schedule_retime_class.code)
        workload_encode(w, item, &schedule_retime_class, &retime);
    else
        return false;
    return true;
}

bool workload_draw_job(struct workload *w, struct txn *txn, struct batch_item *item, uint16_t code)
{
    if (code == job_submit_class.code) {
        draw_submit(w, item);
    } else if (code == job_claim_class.code) {
        draw_claim(w, item);
    } else if (code == job_start_class.code || code == job_heartbeat_class.code) {
        draw_progress(w, txn, item, code);
    } else if (code == job_finish_class.code) {
        draw_finish(w, txn, item);
    } else if (code == job_cancel_class.code) {
        const struct job_cancel c = {.id = workload_id(w, txn, TABLE_JOBS), .kept_us = KEPT_US};
        workload_encode(w, item, &job_cancel_class, &c);
    } else if (code == job_retry_class.code) {
        const struct job_retry c = {.id = some_in(w, txn, JOB_FAILED),
                                    .retry_max = 3,
                                    .queue_max = 500,
                                    .steady_us = w->at_us,
                                    .base_us = SECOND_US,
                                    .most_us = 60 * SECOND_US,
                                    .chance = (uint32_t)dice_draw(&w->dice)};
        workload_encode(w, item, &job_retry_class, &c);
    } else if (code == job_fire_class.code) {
        draw_fire(w, item);
    } else if (code == job_reap_class.code) {
        draw_reap(w, txn, item);
    } else {
        return draw_pause(w, txn, item, code) || draw_bulk(w, txn, item, code) ||
               draw_schedule(w, txn, item, code);
    }
    return true;
}
