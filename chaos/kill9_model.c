#include "chaos/kill9_model.h"

#include <stdlib.h>

#include "store/calendar.h"

#define TICKS \
    (UINT64_C(1) << 32) /* where keys begin in the order of what is over: behind the keeper's parcels */
#define NOTHING UINT64_MAX

/* ---- answers ---- */

struct model_answer model_answer_of(enum error e)
{
    return (struct model_answer){.error = e};
}

static struct model_answer answer_bytes(const void *bytes, size_t size)
{
    struct model_answer answer = {.error = OK, .size = (uint32_t)size};
    ASSERT(size <= sizeof(answer.bytes));
    memcpy(answer.bytes, bytes, size);
    return answer;
}

struct model_answer model_answer_sent(uint32_t owner, uint32_t index)
{
    struct uuid id = names_parcel(owner, index);
    uint8_t bytes[sizeof(id) + 1];
    memcpy(bytes, &id, sizeof(id));
    bytes[sizeof(id)] = PARCEL_HELD;
    return answer_bytes(bytes, sizeof(bytes));
}

struct model_answer model_answer_issued(uint32_t owner, uint32_t index, const struct issue_model *issue,
                                        bool made)
{
    struct api_key_issued issued = {.id = names_api_key(owner, index, issue->slot),
                                    .created_us = issue->created_us,
                                    .expires_us = issue->created_us + (issue->spent ? 0 : ATTEMPT_KEY_TTL_US),
                                    .made = made};
    struct model_answer answer = {.error = OK, .untimed = issue->created_us == 0};
    answer.size =
        (uint32_t)record_encode(&api_key_issued_record, &issued, answer.bytes, sizeof(answer.bytes));
    return answer;
}

bool model_answers(const struct model_answer *expected, const void *bytes, size_t size)
{
    enum { TIMES_AT = 16, TIMES_END = 32 }; /* of a struct api_key_issued */
    const uint8_t *at = bytes;
    if (size != expected->size)
        return false;
    if (expected->may_more) {
        uint32_t more;
        memcpy(&more, at + sizeof(uint32_t), sizeof(more));
        return memcmp(at, expected->bytes, sizeof(uint32_t)) == 0 && more <= 1;
    }
    if (!expected->untimed)
        return size == 0 || memcmp(at, expected->bytes, size) == 0;
    return memcmp(at, expected->bytes, TIMES_AT) == 0 &&
           memcmp(at + TIMES_END, expected->bytes + TIMES_END, size - TIMES_END) == 0;
}

/* ---- parcels ---- */

static struct model_answer model_send(struct lane_model *lane, const struct attempt *a)
{
    struct parcel_model *p = &lane->parcel[a->parcel];
    if (a->key && a->key <= PARCELS && lane->key[a->key].used) {
        const struct sent_model *k = &lane->key[a->key];
        return k->variant == a->variant && k->parcel == a->parcel ? model_answer_sent(a->owner, a->parcel)
                                                                  : model_answer_of(ERR_KEY_REUSED);
    }
    if (p->there == LIVING)
        return model_answer_of(ERR_EXISTS);
    p->there = LIVING;
    p->state = PARCEL_HELD;
    p->size = a->size;
    p->key = a->key;
    p->variant = a->variant;
    p->due_us = a->due_us;
    p->event[0] = PARCEL_SEND;
    p->at_us[0] = a->owner == CROWD ? 0 : a->at_us; /* whose was first? */
    p->events = 1;
    if (a->key && a->key <= PARCELS)
        lane->key[a->key] = (struct sent_model){.used = true, .variant = a->variant, .parcel = a->parcel};
    return model_answer_sent(a->owner, a->parcel);
}

static struct model_answer model_move(struct lane_model *lane, const struct attempt *a)
{
    struct parcel_model *p = &lane->parcel[a->parcel];
    if (p->there != LIVING)
        return model_answer_of(ERR_NOT_FOUND);
    uint8_t to;
    if (p->state == PARCEL_HELD && a->event == PARCEL_SEND)
        to = PARCEL_SENT;
    else if (p->state == PARCEL_SENT && a->event == PARCEL_DELIVER)
        to = PARCEL_DELIVERED;
    else if ((p->state == PARCEL_HELD || p->state == PARCEL_SENT) && a->event == PARCEL_LOSE)
        to = PARCEL_LOST;
    else
        return model_answer_of(ERR_TRANSITION);
    p->state = to;
    p->at_us[p->events] = a->at_us;
    p->event[p->events++] = a->event;
    return answer_bytes(&to, sizeof(to));
}

static struct model_answer model_drop(struct lane_model *lane, const struct attempt *a)
{
    struct parcel_model *p = &lane->parcel[a->parcel];
    if (p->there != LIVING)
        return model_answer_of(ERR_NOT_FOUND);
    if (p->state != PARCEL_DELIVERED && p->state != PARCEL_LOST)
        return model_answer_of(ERR_CONFLICT);
    p->there = DROPPED;
    return model_answer_of(OK);
}

static struct model_answer model_row(struct lane_model *lane, const struct attempt *a)
{
    struct parcel_model *p = &lane->parcel[a->parcel];
    if (a->stale)
        return model_answer_of(ERR_FENCED);
    if (p->there == DROPPED || p->row[a->event] != WAITING)
        return model_answer_of(ERR_NOT_FOUND);
    if (a->kind == DEFER)
        p->defers[a->event]++;
    else
        p->row[a->event] = a->kind == MARK ? GONE : BURIED;
    return model_answer_of(OK);
}

static struct model_answer model_claim(struct lane_model *lane, const struct attempt *a)
{
    (void)lane;
    (void)a;
    return model_answer_of(OK);
}

/* ---- what has a parcel's number ---- */

static struct model_answer model_use(struct lane_model *lane, const struct attempt *a)
{
    struct parcel_model *p = &lane->parcel[a->parcel];
    if (p->used != 0 && p->used != a->variant + 1)
        return model_answer_of(ERR_CONFLICT);
    p->used = (uint8_t)(a->variant + 1);
    return model_answer_of(OK);
}

/* What comes once, and is answered with its id. */
static struct model_answer model_once(uint8_t *there, struct uuid id)
{
    if (*there)
        return model_answer_of(ERR_EXISTS);
    *there = true;
    return answer_bytes(id.bytes, sizeof(id.bytes));
}

static struct model_answer model_enrol(struct lane_model *lane, const struct attempt *a)
{
    return model_once(&lane->parcel[a->parcel].enrolled, names_parcel(a->owner, a->parcel));
}

static struct model_answer model_note(struct lane_model *lane, const struct attempt *a)
{
    return model_once(&lane->parcel[a->parcel].noted, names_note(a->owner, a->parcel));
}

/* ---- keys of its client ---- */

static enum error caller_stands(const struct parcel_model *p, uint8_t caller)
{
    const struct api_key_model *key = &p->keys[caller - 1];
    if (key->there != LIVING || key->end != API_KEY_NOT_ENDED)
        return ERR_CONFLICT;
    return key->spent ? ERR_EXPIRED : OK;
}

static enum error may_issue(const struct parcel_model *p, const struct attempt *a)
{
    if (!p->enrolled)
        return ERR_NOT_FOUND;
    if (a->verb == API_KEY_FORCE)
        return OK;
    if (a->caller)
        return caller_stands(p, a->caller);
    return p->issued == 0 ? OK : ERR_TOKEN;
}

static void end_active(const struct lane_model *lane, struct parcel_model *p, const struct attempt *a,
                       enum api_key_end end)
{
    struct api_key_model *key = &p->keys[p->active - 1];
    key->end = (uint8_t)end;
    key->ended_us = a->at_us;
    key->ended_tick = lane->ticks;
    key->fleeting = a->fleeting;
    p->active = 0;
}

static void tell(struct parcel_model *p, const struct attempt *a, const struct issue_model *issue)
{
    if (!a->key)
        return;
    p->told[a->slot] = *issue;
    p->told[a->slot].used = true;
    p->told[a->slot].variant = a->variant;
}

static struct issue_model issue_of(const struct parcel_model *p, uint8_t slot)
{
    return (struct issue_model){
        .slot = slot, .created_us = p->keys[slot].created_us, .spent = p->keys[slot].spent};
}

/* Of a key that wasn't there, and the active one ends. */
static struct model_answer issue_new(const struct lane_model *lane, struct parcel_model *p,
                                     const struct attempt *a)
{
    struct digest ended = {{0}};
    if (p->active) {
        ended = names_api_key_hash(a->owner, a->parcel, p->active - 1u);
        end_active(lane, p, a, a->verb == API_KEY_RENEW ? API_KEY_RENEWED : API_KEY_ROTATED);
    }
    p->keys[a->slot] = (struct api_key_model){.created_us = a->at_us,
                                              .created_tick = lane->ticks,
                                              .there = LIVING,
                                              .spent = a->spent,
                                              .fleeting = a->fleeting,
                                              .noted = p->keys[a->slot].noted};
    p->active = (uint8_t)(a->slot + 1);
    p->issued++;
    struct issue_model issue = issue_of(p, a->slot);
    tell(p, a, &issue);
    struct model_answer answer = model_answer_issued(a->owner, a->parcel, &issue, true);
    memcpy(answer.bytes + answer.size - sizeof(ended), &ended, sizeof(ended));
    return answer;
}

static struct model_answer model_issue(struct lane_model *lane, const struct attempt *a)
{
    struct parcel_model *p = &lane->parcel[a->parcel];
    const struct issue_model *told = &p->told[a->slot];
    if (a->key && told->used)
        return told->variant == a->variant ? model_answer_issued(a->owner, a->parcel, told, false)
                                           : model_answer_of(ERR_KEY_REUSED);
    enum error e = may_issue(p, a);
    if (e)
        return model_answer_of(e);
    if (a->verb == API_KEY_RENEW && !p->active)
        return model_answer_of(ERR_CONFLICT);
    if (a->verb == API_KEY_CREATE && p->active) {
        struct issue_model issue = issue_of(p, (uint8_t)(p->active - 1));
        tell(p, a, &issue);
        return model_answer_issued(a->owner, a->parcel, &issue, false);
    }
    if (p->keys[a->slot].there == LIVING)
        return model_answer_of(ERR_EXISTS);
    return issue_new(lane, p, a);
}

static struct model_answer model_revoke(struct lane_model *lane, const struct attempt *a)
{
    struct parcel_model *p = &lane->parcel[a->parcel];
    struct api_key_model *key = &p->keys[a->slot];
    struct digest hash = names_api_key_hash(a->owner, a->parcel, a->slot);
    enum error e = a->caller ? caller_stands(p, a->caller) : OK;
    if (!e && key->there != LIVING)
        e = ERR_NOT_FOUND;
    if (e)
        return model_answer_of(e);
    if (key->end == API_KEY_NOT_ENDED) { /* then it is the active one */
        end_active(lane, p, a, API_KEY_REVOKED);
        key->noted = key->noted || a->noted;
    }
    return answer_bytes(&hash, sizeof(hash));
}

static struct model_answer model_touch(struct lane_model *lane, const struct attempt *a)
{
    struct parcel_model *p = &lane->parcel[a->parcel];
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        if (p->keys[slot].there == LIVING && a->due_us > p->keys[slot].used_us)
            p->keys[slot].used_us = a->due_us;
    return model_answer_of(OK);
}

/* ---- what time takes ---- */

/* Something that is over; slot SLOTS: the parcel itself. */
struct over {
    uint64_t moment;
    struct uuid id;
    uint32_t parcel, slot;
};

/* When a key goes; NOTHING: not while the ordeal lasts. */
static uint64_t key_goes(const struct api_key_model *key)
{
    if (key->there != LIVING || !key->fleeting || !(key->spent || key->end != API_KEY_NOT_ENDED))
        return NOTHING;
    return TICKS + (key->spent ? key->created_tick : key->ended_tick);
}

/* In the order of the due index. */
static int over_compare(const void *left, const void *right)
{
    const struct over *a = left, *b = right;
    if (a->moment != b->moment)
        return a->moment < b->moment ? -1 : 1;
    return memcmp(&a->id, &b->id, sizeof(a->id));
}

static size_t over_of(const struct lane_model *lane, const struct attempt *a, struct over *over)
{
    size_t count = 0;
    bool all = a->due_us == 0 || a->due_us > TICKS;
    for (uint32_t i = 0; i < PARCELS; i++) {
        const struct parcel_model *p = &lane->parcel[i];
        if (p->there == LIVING && p->due_us && (all || p->due_us <= a->due_us))
            over[count++] = (struct over){
                .moment = p->due_us, .id = names_parcel(a->owner, i), .parcel = i, .slot = SLOTS};
        for (uint32_t slot = 0; slot < SLOTS && all; slot++)
            if (key_goes(&p->keys[slot]) != NOTHING)
                over[count++] = (struct over){.moment = key_goes(&p->keys[slot]),
                                              .id = names_api_key(a->owner, i, slot),
                                              .parcel = i,
                                              .slot = slot};
    }
    qsort(over, count, sizeof(*over), over_compare);
    return count;
}

static void take(struct lane_model *lane, const struct over *over)
{
    struct parcel_model *p = &lane->parcel[over->parcel];
    if (over->slot == SLOTS) {
        p->there = DROPPED;
        return;
    }
    p->keys[over->slot].there = DROPPED;
    if (p->active == over->slot + 1)
        p->active = 0;
}

static struct model_answer model_sweep(struct lane_model *lane, const struct attempt *a)
{
    static struct over over[PARCELS * (1 + SLOTS)];
    uint32_t limit = a->limit ? a->limit : RETENTION_ROWS_MAX;
    size_t count = over_of(lane, a, over);
    uint32_t taken[2] = {count < limit ? (uint32_t)count : limit, count >= limit};
    for (uint32_t i = 0; i < taken[0]; i++)
        take(lane, &over[i]);
    if (a->due_us > TICKS) {
        lane->retained_open = lane->retained_open || a->at_us == 0;
        if (a->at_us >= lane->retained_us + CALENDAR_NOTE_US)
            lane->retained_us = a->at_us;
    }
    struct model_answer answer = answer_bytes(taken, sizeof(taken));
    answer.may_more = taken[1] == 0;
    return answer;
}

struct model_answer model_apply(struct lane_model *lane, const struct attempt *a)
{
    static struct model_answer (*const models[])(struct lane_model *, const struct attempt *) = {
        [SEND] = model_send,   [MOVE] = model_move,   [DROP] = model_drop,   [CLAIM] = model_claim,
        [MARK] = model_row,    [DEFER] = model_row,   [BURY] = model_row,    [USE] = model_use,
        [ENROL] = model_enrol, [NOTE] = model_note,   [ISSUE] = model_issue, [REVOKE] = model_revoke,
        [TOUCH] = model_touch, [SWEEP] = model_sweep,
    };
    lane->ticks++;
    return models[a->kind](lane, a);
}

/* Member by member: what lies between them is nobody's. */
bool model_same(const struct parcel_model *a, const struct parcel_model *b)
{
#define SAME(member) (memcmp(&a->member, &b->member, sizeof(a->member)) == 0)
    return SAME(there) && SAME(state) && SAME(events) && SAME(variant) && SAME(used) && SAME(enrolled) &&
           SAME(noted) && SAME(active) && SAME(event) && SAME(row) && SAME(defers) && SAME(row_open) &&
           SAME(defer_open) && SAME(open_fate) && SAME(size) && SAME(key) && SAME(issued) && SAME(due_us) &&
           SAME(at_us) && SAME(keys) && SAME(told);
#undef SAME
}

/* ---- how many rows ---- */

static void rows_of_note(struct model_rows *rows)
{
    rows->audits++;
    rows->due++;
    rows->events++;
}

static void rows_of_client(struct model_rows *rows, const struct parcel_model *p)
{
    rows->clients += p->enrolled;
    rows->due += p->enrolled && p->issued == 0;
    rows->keyed += p->issued > 0;
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        rows->keys += p->keys[slot].there == LIVING;
        rows->due += p->keys[slot].there == LIVING;
        rows->ledger += p->told[slot].used;
        if (p->keys[slot].noted)
            rows_of_note(rows);
    }
}

static void rows_of_parcel(struct model_rows *rows, const struct parcel_model *p)
{
    for (uint32_t i = 0; i < p->events; i++) {
        rows->outbox += p->row[i] == WAITING;
        rows->dead += p->row[i] == BURIED;
    }
    rows->parcels++;
    rows->events += p->events;
    rows->due += p->due_us != 0;
    rows->states[p->state]++;
}

struct model_rows model_rows(const struct lane_model lanes[OWNERS])
{
    struct model_rows rows;
    memset(&rows, 0, sizeof(rows));
    for (uint32_t owner = 0; owner < OWNERS; owner++)
        for (uint32_t i = 0; i < PARCELS; i++) {
            const struct parcel_model *p = &lanes[owner].parcel[i];
            rows.ledger += lanes[owner].key[i + 1].used;
            rows.tokens += p->used != 0;
            rows.due += p->used != 0;
            rows_of_client(&rows, p);
            if (p->noted)
                rows_of_note(&rows);
            if (p->there == LIVING)
                rows_of_parcel(&rows, p);
        }
    return rows;
}
