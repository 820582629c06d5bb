#include "tests/store/parcels.h"

#include <stdio.h>

#include "store/audit.h"
#include "store/retention.h"

void parcels_init(struct parcels *p, uint64_t seed)
{
    memset(p, 0, sizeof(*p));
    p->state = seed;
    p->at_us = 1700000000000000;
    p->body_max = 6000;
}

uint64_t parcels_random(struct parcels *p, uint64_t below)
{
    uint64_t z = p->state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (z ^ z >> 31) % below;
}

static void add(struct parcels *p, size_t *count, const struct command_class *class, const void *command)
{
    struct batch_item *item = &p->items[(*count)++];
    size_t size = record_encode(class->record, command, p->bytes + p->used, sizeof(p->bytes) - p->used);
    ASSERT(size > 0);
    *item =
        (struct batch_item){.class = class, .at_us = p->at_us, .bytes = span_of(p->bytes + p->used, size)};
    p->used += size;
    p->at_us += 1 + parcels_random(p, 5000);
}

static struct uuid new_id(struct parcels *p)
{
    struct uuid id;
    for (size_t i = 0; i < sizeof(id.bytes); i++)
        id.bytes[i] = (uint8_t)parcels_random(p, 256);
    return id;
}

static void add_send(struct parcels *p, size_t *count)
{
    static uint8_t body[PARCEL_BODY_MAX];
    char key[32];
    uint64_t known = parcels_random(p, PARCELS_IDS);
    if (parcels_random(p, 10) > 0)
        p->ids[known] = new_id(p);
    size_t size = parcels_random(p, p->body_max);
    memset(body, (int)parcels_random(p, 256), size);
    snprintf(key, sizeof(key), "key-%llu", (unsigned long long)parcels_random(p, 400));
    struct parcel_send send = {.id = p->ids[known],
                               .scope = span_text("tests"),
                               .key = span_text(parcels_random(p, 2) ? key : ""),
                               .digest.bytes[0] = (uint8_t)parcels_random(p, 2),
                               .due_us = parcels_random(p, 3) ? p->at_us + parcels_random(p, 1000000) : 0,
                               .body = span_of(body, size)};
    add(p, count, &parcel_send_class, &send);
}

static void add_outbox(struct parcels *p, size_t *count)
{
    uint16_t partition = (uint16_t)parcels_random(p, OUTBOX_PARTITIONS);
    uint64_t fence = p->fences[partition], seq = 1 + parcels_random(p, 60);
    switch (parcels_random(p, 5)) {
    case 0:
        add(p, count, &outbox_claim_class,
            &(struct outbox_claim_command){.partition = partition, .holder = p->at_us});
        break;
    case 1:
        add(p, count, &outbox_mark_class,
            &(struct outbox_mark_command){.partition = partition, .seq = seq, .fence = fence});
        break;
    case 2:
        add(p, count, &outbox_defer_class,
            &(struct outbox_defer_command){
                .partition = partition, .seq = seq, .fence = fence, .not_before_us = p->at_us + 1000});
        break;
    case 3:
        add(p, count, &outbox_bury_class,
            &(struct outbox_bury_command){
                .partition = partition, .seq = seq, .fence = fence, .reason = span_text("nobody home")});
        break;
    default:
        add(p, count, &outbox_revive_class,
            &(struct outbox_revive_command){.partition = partition, .seq = seq});
    }
}

static void add_one(struct parcels *p, size_t *count)
{
    struct uuid id = p->ids[parcels_random(p, PARCELS_IDS)];
    uint64_t kind = parcels_random(p, 20);
    if (kind < 7)
        add_send(p, count);
    else if (kind < 12)
        add(p, count, &parcel_move_class,
            &(struct parcel_move){.id = id, .event = (uint8_t)parcels_random(p, PARCEL_EVENT_COUNT)});
    else if (kind < 14)
        add(p, count, &parcel_drop_class, &(struct parcel_drop){.id = id});
    else if (kind < 18)
        add_outbox(p, count);
    else if (kind < 19)
        add(p, count, &audit_append_class,
            &(struct audit_append){.id = new_id(p),
                                   .who = span_text("tests"),
                                   .verb = span_text("parcel.kick"),
                                   .details = span_text("{\"hard\":true}")});
    else
        add(p, count, &retention_sweep_class, &(struct retention_sweep){.limit = 8});
}

/* A claim's answer is the fence that later marks carry. */
static void learn(struct parcels *p, const struct batch_item *item)
{
    struct outbox_claim_command claim;
    p->done += item->answer.error == OK;
    p->refused += item->answer.error != OK;
    if (item->class != &outbox_claim_class || item->answer.error)
        return;
    enum error e = record_decode(item->class->record, item->class->record->version, item->bytes, &claim);
    ASSERT(e == OK && item->answer.size == sizeof(uint64_t));
    memcpy(&p->fences[claim.partition], item->answer.bytes, sizeof(uint64_t));
}

void parcels_run(struct parcels *p, struct store *store, uint32_t batches)
{
    for (uint32_t i = 0; i < batches; i++) {
        size_t count = 0, wanted = 1 + parcels_random(p, PARCELS_BATCH_MAX);
        p->used = 0;
        while (count < wanted)
            add_one(p, &count);
        enum error e = batch_run(store, p->items, count);
        ASSERT(e == OK);
        for (size_t n = 0; n < count; n++)
            learn(p, &p->items[n]);
    }
}

struct store *parcels_open(const char *dir, const char *record)
{
    struct store *store = NULL;
    char text[512] = "";
    parcel_install();
    const struct store_options options = {
        .environment =
            {.dir = dir, .map = 1 << 20, .map_max = 256 << 20, .step = 1 << 18, .reserve = 1 << 16},
        .schema = &parcel_store_schema,
        .record = record,
        .ledger_max = 4096,
    };
    enum error e = store_open(&options, &store, text, sizeof(text));
    if (e)
        fprintf(stderr, "%s: %s\n", error_name(e), text);
    ASSERT(e == OK);
    return store;
}

uint64_t parcels_commit(struct store *store)
{
    MDB_envinfo info;
    int code = mdb_env_info(store->environment.mdb, &info);
    ASSERT(code == 0);
    return info.me_last_txnid;
}
