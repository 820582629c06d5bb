#include "store/delivery_relay.h"

#include "store/job.h"

#define delivery_relay_FIELD(name, TYPE, limit, since) RECORD_FIELD(delivery_relay, name, TYPE, limit, since)
RECORD_CLASS(delivery_relay, DELIVERY_RELAY_FIELDS, 1);

bool delivery_relays(uint16_t topic)
{
    return topic == OUTBOX_JOB || topic == OUTBOX_JOB_EMITTED;
}

/* What the event is called, whose it is, and where the job has its events sent to. */
static enum error source_of(struct txn *txn, const struct outbox *row, struct delivery_source *ret)
{
    struct job_definition definition;
    struct event event;
    struct job job;
    enum error e = job_read(txn, &row->stream, &job);
    if (!e)
        e = job_read_definition(txn, &row->stream, &definition);
    if (!e)
        e = event_read(txn, &row->stream, row->event, &event);
    if (!e && event.name >= JOB_EVENT_COUNT)
        e = ERR_DAMAGED;
    if (e)
        return e;
    *ret = (struct delivery_source){.client = job.client,
                                    .job = job.id,
                                    .event = row->event,
                                    .topic = row->topic,
                                    .bit = row->topic == OUTBOX_JOB_EMITTED ? JOB_EMIT : (uint8_t)event.name,
                                    .event_us = event.at_us,
                                    .callback = definition.callback};
    return OK;
}

/* One row: its deliveries, and it has gone; or it is buried. */
static void relay_row(struct txn *txn, const struct delivery_times *times, const struct delivery_relay *c,
                      uint64_t seq, struct delivery_relayed *relayed, uint8_t *ret_error)
{
    struct key key = outbox_key(c->partition, seq);
    struct delivery_source source;
    struct outbox row;
    uint32_t made = 0;
    if (txn_read(txn, TABLE_OUTBOX, key_span(&key), &row) != OK || !delivery_relays(row.topic))
        return; /* gone, or told of by check: a row that can't be read can't be moved either */
    enum error e = source_of(txn, &row, &source);
    if (!e)
        e = delivery_spread(txn, times, &source, &made);
    relayed->rows++;
    relayed->deliveries += made;
    relayed->buried += e != OK;
    *ret_error = (uint8_t)e;
    if (e)
        e = outbox_bury(txn, c->partition, seq, c->fence, times->at_us, span_text(error_name(e)));
    else
        e = outbox_mark(txn, c->partition, seq, c->fence);
    if (!txn->error) /* it is there and ours: what has been written must not be kept */
        txn->error = e;
}

static uint64_t row_at(struct span rows, uint32_t at)
{
    uint64_t seq;
    memcpy(&seq, (const uint8_t *)rows.bytes + at, sizeof(seq));
    return seq;
}

static enum error rows_sound(struct span rows)
{
    uint64_t before = 0;
    if (rows.size == 0 || rows.size % sizeof(uint64_t))
        return ERR_INVALID;
    for (uint32_t at = 0; at < rows.size; at += sizeof(uint64_t)) {
        if (row_at(rows, at) <= before)
            return ERR_INVALID;
        before = row_at(rows, at);
    }
    return OK;
}

static enum error apply_relay(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct delivery_relay *c = command;
    const struct delivery_times times = {.at_us = at_us, .steady_us = c->steady_us, .kept_us = c->kept_us};
    struct delivery_relayed relayed = {.deliveries = 0};
    enum error e = rows_sound(c->rows);
    if (!e && at_us > UINT64_MAX - c->kept_us)
        e = ERR_INVALID;
    if (!e)
        e = outbox_held(txn, c->partition, c->fence);
    if (e)
        return e;
    for (uint32_t at = 0; at < c->rows.size && !txn->error; at += sizeof(uint64_t))
        relay_row(txn, &times, c, row_at(c->rows, at), &relayed, &relayed.errors[at / sizeof(uint64_t)]);
    answer_add(answer, &relayed, sizeof(relayed));
    return OK;
}

const struct command_class delivery_relay_class = {
    .name = "delivery.relay",
    .record = &delivery_relay_record,
    .apply = apply_relay,
    .code = 244,
    .priority = COMMAND_HIGH,
};
