#include "chaos/kill9_submitter.h"

#define CROWD_USED   64u
#define CLIENTS_USED 64u     /* parcels whose clients have keys */
#define KEY_OTHER    100000u /* keys that no parcel was made with */
#define NOTE_EVERY   32u /* parcels: the relay sees RELAYED_MAX rows of a partition and takes none of these */
#define RELAYED_MAX  16u
#define SOON_MAX     32u /* by then the keeper's parcels are over: long ago, and many at one time */
#define DUE_LATE_US  UINT64_C(4000000000000000)
#define FOREVER_US   (UINT64_C(1) << 62)

static struct {
    uint16_t partition;
    uint64_t fence;
    uint32_t count, next;
    struct outbox_row rows[RELAYED_MAX];
} relay;
static _Atomic bool any_answer;

/* ---- parcels ---- */

static uint32_t choose_size(struct dice *dice)
{
    uint32_t kind = dice_below(dice, 100);
    return dice_below(dice, kind < 70 ? 300 : kind < 97 ? 5000 : PARCEL_BODY_MAX + 1);
}

static void choose_new(struct lane_model *lane, struct attempt *a)
{
    struct dice *dice = &lane->dice;
    a->kind = SEND;
    a->parcel = (uint16_t)lane->parcels++;
    a->key = dice_below(dice, 4) ? a->parcel + 1u : 0;
    a->size = choose_size(dice);
    if (a->owner == KEEPER)
        a->due_us = dice_below(dice, 3) ? 1 + dice_below(dice, SOON_MAX) : 0;
    else
        a->due_us = dice_below(dice, 3) ? 0 : DUE_LATE_US + dice_below(dice, 1000);
}

/* A parcel that was sent before, in one of three ways: the same request again (answered from the ledger), the
 * same id under another key (exists), or its key for another request (reused). */
static void choose_again(struct lane_model *lane, struct attempt *a)
{
    struct dice *dice = &lane->dice;
    const struct parcel_model *p = &lane->parcel[a->parcel];
    a->kind = SEND;
    a->size = p->size;
    a->due_us = p->due_us;
    a->variant = p->variant;
    a->key = p->key;
    if (p->there != LIVING && !p->key)
        a->kind = DROP; /* nothing keeps that id from being made again */
    else if (p->there == LIVING && dice_below(dice, 3) == 0)
        a->key = KEY_OTHER + dice_below(dice, 1000);
    else if (p->key && dice_below(dice, 3) == 0)
        a->variant = 1;
}

static void choose_of_crowd(struct lane_model *lane, struct attempt *a)
{
    a->kind = SEND;
    a->owner = CROWD;
    a->parcel = (uint16_t)dice_below(&lane->dice, CROWD_USED);
    a->key = a->parcel + 1u;
    a->size = 100 + a->parcel;
}

/* ---- keys ---- */

static uint8_t free_slot(const struct parcel_model *p, uint8_t slot)
{
    for (uint32_t i = 0; i < SLOTS; i++)
        if (p->keys[(slot + i) % SLOTS].there != LIVING)
            return (uint8_t)((slot + i) % SLOTS);
    return slot;
}

static void choose_issue(struct lane_model *lane, const struct parcel_model *p, struct attempt *a)
{
    struct dice *dice = &lane->dice;
    a->kind = ISSUE;
    a->verb = (uint8_t)dice_below(dice, API_KEY_VERB_COUNT);
    a->key = dice_below(dice, 4) == 0;
    a->variant = dice_below(dice, 4) == 0;
    a->spent = dice_below(dice, 8) == 0;
    if (dice_below(dice, 8))
        a->slot = free_slot(p, a->slot);
}

static void choose_revoke(struct lane_model *lane, const struct parcel_model *p, struct attempt *a)
{
    struct dice *dice = &lane->dice;
    a->kind = REVOKE;
    a->noted = dice_below(dice, 8) == 0;
    if (p->active && dice_below(dice, 4))
        a->slot = (uint8_t)(p->active - 1);
    if (dice_below(dice, 2))
        a->caller = 0; /* an operator */
}

/* Mostly by the key that stands. */
static void choose_key(struct lane_model *lane, struct attempt *a)
{
    struct dice *dice = &lane->dice;
    a->parcel %= CLIENTS_USED;
    const struct parcel_model *p = &lane->parcel[a->parcel];
    uint32_t kind = dice_below(dice, 100);
    a->slot = (uint8_t)dice_below(dice, SLOTS);
    a->caller = dice_below(dice, 4) ? p->active : (uint8_t)dice_below(dice, SLOTS + 1);
    a->fleeting = a->owner == KEEPER && dice_below(dice, 2);
    if (!p->enrolled && dice_below(dice, 8)) {
        a->kind = ENROL;
    } else if (kind < 50) {
        choose_issue(lane, p, a);
    } else if (kind < 75) {
        choose_revoke(lane, p, a);
    } else {
        a->kind = TOUCH;
        a->due_us = 1 + dice_below(dice, 1000);
    }
}

/* Parcels up to some time, or all that is over; the latter once more in the calendar's way. */
static void choose_sweep(struct lane_model *lane, struct attempt *a)
{
    struct dice *dice = &lane->dice;
    a->kind = SWEEP;
    a->parcel = 0;
    a->limit = dice_below(dice, 2) ? 0 : 1 + dice_below(dice, 8);
    if (dice_below(dice, 2))
        a->due_us = 1 + dice_below(dice, SOON_MAX);
    else
        a->due_us = dice_below(dice, 2) ? 0 : FOREVER_US;
}

/* ---- what a lane does ---- */

static void choose_own(struct lane_model *lane, uint32_t number, struct attempt *a)
{
    struct dice *dice = &lane->dice;
    uint32_t kind = dice_below(dice, 100);
    a->owner = (uint8_t)number;
    if (kind < 5) {
        choose_of_crowd(lane, a);
        return;
    }
    if (lane->parcels < PARCELS && (kind < 40 || lane->parcels == 0)) {
        choose_new(lane, a);
        return;
    }
    a->parcel = (uint16_t)dice_below(dice, lane->parcels);
    a->event = (uint8_t)dice_below(dice, PARCEL_EVENT_COUNT);
    if (kind < 48)
        choose_again(lane, a);
    else if (kind < 63)
        a->kind = MOVE;
    else if (kind < 68)
        a->kind = DROP;
    else if (kind < 72)
        a->kind = a->parcel % NOTE_EVERY ? ENROL : NOTE;
    else if (kind < 78) {
        a->kind = USE;
        a->variant = dice_below(dice, 4) == 0;
    } else if (kind < 83 && number == KEEPER)
        choose_sweep(lane, a);
    else
        choose_key(lane, a);
}

/* The relay goes through one partition after the other: claims it, reads some rows, and marks them. */
static void choose_relayed(struct lane_model *lane, struct attempt *a)
{
    struct dice *dice = &lane->dice;
    while (relay.next < relay.count) {
        const struct outbox_row *row = &relay.rows[relay.next];
        uint32_t owner, index;
        if (!names_find(&row->row.stream, &owner, &index) || row->row.event < 1 || row->row.event > STEPS) {
            relay.next++; /* whoever looks complains of it */
            continue;
        }
        uint32_t kind = dice_below(dice, 100);
        a->kind = kind < 80 ? MARK : kind < 92 ? DEFER : BURY;
        a->stale = dice_below(dice, 10) == 0;
        a->fence = relay.fence - (a->stale ? 1 : 0);
        a->partition = row->partition;
        a->seq = row->seq;
        a->owner = (uint8_t)owner;
        a->parcel = (uint16_t)index;
        a->event = (uint8_t)(row->row.event - 1);
        relay.next += dice_below(dice, 8) ? 1 : 0; /* some are marked twice */
        return;
    }
    relay.count = relay.next = 0;
    relay.partition = (uint16_t)dice_below(dice, OUTBOX_PARTITIONS);
    a->kind = CLAIM;
    a->partition = relay.partition;
}

struct attempt *submitter_try(uint32_t lane, uint64_t at_us, uint32_t batch)
{
    uint32_t at = ordeal_shared->count[lane];
    if (at == ATTEMPTS_MAX)
        return NULL;
    struct attempt *a = &ordeal_shared->attempts[lane][at];
    memset(a, 0, sizeof(*a));
    if (lane == RELAY)
        choose_relayed(&ordeal.lane[lane], a);
    else
        choose_own(&ordeal.lane[lane], lane, a);
    a->at_us = at_us;
    a->batch = batch;
    atomic_store_explicit(&a->stage, MADE, memory_order_release);
    __atomic_store_n(&ordeal_shared->count[lane], at + 1, __ATOMIC_RELEASE);
    return a;
}

void submitter_answered(uint32_t lane, struct attempt *a, enum error e, const void *bytes, size_t size)
{
    a->error = (uint8_t)e;
    a->answer_size = (uint8_t)(size > UINT8_MAX ? UINT8_MAX : size);
    if (e == OK && size <= sizeof(a->answer))
        memcpy(a->answer, bytes, size);
    atomic_store_explicit(&a->stage, ANSWERED, memory_order_release);
    if (!atomic_exchange(&any_answer, true))
        ordeal_tell(ORDEAL_ANSWERED);
    if (attempt_turned_away(e) || attempt_open_ended(e))
        return;
    if (lane != RELAY && a->owner == lane)
        (void)model_apply(&ordeal.lane[lane], a);
    if (a->kind == CLAIM && e == OK && size == sizeof(relay.fence))
        memcpy(&relay.fence, bytes, sizeof(relay.fence));
}

void submitter_look(struct view *view)
{
    relay.next = 0;
    if (!view || outbox_scan(&view->txn, relay.partition, 0, relay.rows, RELAYED_MAX, &relay.count) != OK)
        relay.count = 0;
}
