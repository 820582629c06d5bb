#include "chaos/kill9_judge.h"

#include <inttypes.h>

#include "chaos/kill9_ordeal.h"
#include "chaos/kill9_sight.h"
#include "store/batch.h"
#include "store/check.h"
#include "store/counter.h"
#include "store/view.h"

/* ---- what was answered ---- */

/* About the parcel itself, or what has its number. */
static bool same_parcel(const struct attempt *a, uint32_t owner, uint32_t parcel)
{
    return a && a->kind != CLAIM && a->kind != SWEEP && !attempt_on_row(a) && a->owner == owner &&
           a->parcel == parcel;
}

/* Nobody knows whether it is still there. */
static bool open_removal(uint32_t owner, uint32_t parcel)
{
    const struct attempt *a = owner < LANES ? ordeal_open(owner) : NULL;
    return a && (a->kind == SWEEP || (a->kind == DROP && same_parcel(a, owner, parcel)));
}

/* The fence goes up. */
static bool claimed_right(const struct attempt *a)
{
    uint64_t fence;
    if (a->error != OK || a->answer_size != sizeof(fence))
        return ordeal_complain("a claim was answered %s", error_name(a->error));
    memcpy(&fence, a->answer, sizeof(fence));
    if (fence <= ordeal.fence[a->partition])
        return ordeal_complain("partition %u: fence %" PRIu64 " after %" PRIu64, a->partition, fence,
                               ordeal.fence[a->partition]);
    ordeal.fence[a->partition] = fence;
    return true;
}

static bool answered_right(const struct attempt *a, const struct model_answer *expected)
{
    if (a->kind == CLAIM)
        return claimed_right(a);
    /* Another lane may remove the parcel before or after its row is marked. */
    const struct parcel_model *p = &ordeal.lane[a->owner].parcel[a->parcel];
    if (attempt_on_row(a) && a->error == OK && p->there == DROPPED)
        return true;
    if (attempt_on_row(a) && a->error == ERR_NOT_FOUND && open_removal(a->owner, a->parcel))
        return true;
    if (a->error != expected->error)
        return ordeal_complain("%s of parcel %u of lane %u was answered %s instead of %s",
                               attempt_kind_name(a->kind), a->parcel, a->owner, error_name(a->error),
                               error_name(expected->error));
    if (a->error == OK && !model_answers(expected, a->answer, a->answer_size))
        return ordeal_complain("%s of parcel %u of lane %u was answered with other bytes",
                               attempt_kind_name(a->kind), a->parcel, a->owner);
    return true;
}

static bool take_in(const struct attempt *a)
{
    struct model_answer expected = model_apply(&ordeal.lane[a->owner], a);
    if (!answered_right(a, &expected))
        return false;
    if (a->error == OK)
        ordeal_totals->acknowledged++;
    else
        ordeal_totals->refused++;
    return true;
}

/* The model takes in what was answered. Rows of the outbox may be marked before the sender hears of its commit,
 * and nobody else changes a lane's parcels, so the lanes are independent. */
static bool replay_answered(void)
{
    for (uint32_t n = 0; n < LANES; n++)
        for (uint32_t i = 0; i < ordeal_shared->count[n]; i++) {
            const struct attempt *a = &ordeal_shared->attempts[n][i];
            struct lane_model *lane = &ordeal.lane[a->owner];
            if (a->kind == SEND && a->owner == n && a->parcel >= lane->parcels)
                lane->parcels = a->parcel + 1u;
            ordeal.clock_us = a->at_us > ordeal.clock_us ? a->at_us : ordeal.clock_us;
            if (!attempt_open(a) && !attempt_turned_away(a->error) && !take_in(a))
                return false;
        }
    return true;
}

static void open_marks(bool set)
{
    for (uint32_t i = 0; i < ordeal_shared->count[RELAY]; i++) {
        const struct attempt *a = &ordeal_shared->attempts[RELAY][i];
        struct parcel_model *p = &ordeal.lane[a->owner].parcel[a->parcel];
        if (!attempt_open(a) || !attempt_on_row(a) || a->stale)
            continue;
        if (a->kind == DEFER)
            p->defer_open[a->event] = set;
        else
            p->row_open[a->event] = set;
        p->open_fate[a->event] = a->kind == MARK ? GONE : BURIED;
    }
}

/* What an open attempt came to, for the counts and for the batch it was in. */
enum outcome { OUTCOME_NONE, OUTCOME_SAME, OUTCOME_BEFORE, OUTCOME_AFTER };
static enum outcome outcomes[LANES];

/* What is judged as one: a parcel, or, when retention may have taken anything of it, all that the keeper owns. */
struct part {
    uint32_t owner, first, count;
};

static bool swept(void)
{
    for (uint32_t i = 0; i < ordeal_shared->count[KEEPER]; i++)
        if (ordeal_shared->attempts[KEEPER][i].kind == SWEEP)
            return true;
    return false;
}

static struct part part_of(const struct attempt *a)
{
    if (a->owner == KEEPER && swept())
        return (struct part){.owner = KEEPER, .count = ordeal.lane[KEEPER].parcels};
    return (struct part){.owner = a->owner, .first = a->parcel, .count = 1};
}

static uint32_t differing; /* the parcel of a part that isn't as it should be */

static bool part_is(struct txn *txn, const struct part *part, const struct lane_model *lane)
{
    for (differing = part->first; differing < part->first + part->count; differing++)
        if (!sight_is(txn, part->owner, differing, lane))
            return false;
    return part->owner != KEEPER || sight_retained(txn, lane);
}

static bool part_same(const struct part *part, const struct lane_model *a, const struct lane_model *b)
{
    for (uint32_t i = part->first; i < part->first + part->count; i++)
        if (!model_same(&a->parcel[i], &b->parcel[i]))
            return false;
    return a->retained_us == b->retained_us && a->retained_open == b->retained_open;
}

static bool mismatch(const struct attempt *a, bool open)
{
    bool refused = !open && a->error != OK;
    if (refused)
        ordeal_totals->present++;
    else
        ordeal_totals->lost++;
    return ordeal_complain("parcel %u of lane %u after %s, %s: %s", differing, a->owner,
                           attempt_kind_name(a->kind),
                           open      ? "never answered, is neither as before nor as after it"
                           : refused ? "refused, is not as before"
                                     : "answered, is not as after it",
                           sight_difference());
}

/* Compares what attempts of this cycle were about; `open` is the one without an answer. */
static bool judge(struct txn *txn, uint32_t number, const struct attempt *last, const struct attempt *open)
{
    static struct lane_model after;
    const struct lane_model *lane = &ordeal.lane[last->owner];
    struct part part = part_of(last);
    if (!open)
        return part_is(txn, &part, lane) || mismatch(last, false);
    after = *lane;
    struct model_answer expected = model_apply(&after, open);
    bool before_it = part_is(txn, &part, lane);
    if (expected.error != OK || part_same(&part, &after, lane))
        outcomes[number] = OUTCOME_SAME;
    else if (before_it)
        outcomes[number] = OUTCOME_BEFORE;
    else if (part_is(txn, &part, &after))
        outcomes[number] = OUTCOME_AFTER;
    else
        return mismatch(open, true);
    return outcomes[number] != OUTCOME_SAME || before_it || mismatch(open, true);
}

/* Whose open attempt is about the same as this one; LANES: nobody's. The crowd's are sent by many lanes: any open send of one
 * may have made it, and the first stands for all. */
static uint32_t open_about(const struct attempt *a)
{
    const struct attempt *open = ordeal_open(KEEPER);
    if (a->owner == KEEPER && open && open->owner == KEEPER && swept())
        return KEEPER;
    for (uint32_t n = 0; n < RELAY; n++)
        if (same_parcel(ordeal_open(n), a->owner, a->parcel))
            return n;
    return LANES;
}

static bool judge_touched(struct txn *txn)
{
    bool keeper_judged = false;
    for (uint32_t n = 0; n < LANES; n++)
        for (uint32_t i = 0; i < ordeal_shared->count[n]; i++) {
            const struct attempt *a = &ordeal_shared->attempts[n][i];
            if (a->kind == CLAIM || (a->owner == KEEPER && keeper_judged))
                continue;
            uint32_t about = open_about(a);
            if (!judge(txn, about, a, about < LANES ? ordeal_open(about) : NULL))
                return false;
            keeper_judged = keeper_judged || (a->owner == KEEPER && swept());
        }
    return true;
}

/* By an attempt that nobody answered, and that was done. */
static bool removed(uint32_t owner, uint32_t parcel)
{
    static struct lane_model after;
    if (!open_removal(owner, parcel) || outcomes[owner] != OUTCOME_AFTER)
        return false;
    after = ordeal.lane[owner];
    (void)model_apply(&after, ordeal_open(owner));
    return after.parcel[parcel].there == DROPPED;
}

/* Rows whose mark nobody answered. */
static void judge_marks(void)
{
    const struct attempt *a = ordeal_open(RELAY);
    if (!a || !attempt_on_row(a))
        return;
    const struct parcel_model *p = &ordeal.lane[a->owner].parcel[a->parcel];
    const struct sight_row *seen = sight_row(a->owner, a->parcel, a->event);
    if (a->stale || p->there == DROPPED || p->row[a->event] != WAITING || removed(a->owner, a->parcel))
        outcomes[RELAY] = OUTCOME_SAME; /* it is refused, or may be: the relay read the row before it went */
    else if (a->kind == DEFER)
        outcomes[RELAY] = seen->attempts == p->defers[a->event] ? OUTCOME_BEFORE : OUTCOME_AFTER;
    else
        outcomes[RELAY] = seen->count ? OUTCOME_BEFORE : OUTCOME_AFTER;
}

static bool judge_claims(struct txn *txn)
{
    for (uint16_t partition = 0; partition < OUTBOX_PARTITIONS; partition++) {
        struct key key = {.size = 0};
        key_add_u16(&key, partition);
        struct claim claim = {.fence = 0};
        enum error e = txn_read(txn, TABLE_CLAIMS, key_span(&key), &claim);
        const struct attempt *a = ordeal_open(RELAY);
        uint64_t fence = ordeal.fence[partition];
        bool open = a && a->kind == CLAIM && a->partition == partition;
        if (e != OK && e != ERR_NOT_FOUND)
            return ordeal_complain("the claim of partition %u: %s", partition, error_name(e));
        if (claim.fence != fence && !(open && claim.fence > fence))
            return ordeal_complain("the fence of partition %u is %" PRIu64 " instead of %" PRIu64, partition,
                                   claim.fence, fence);
        if (open)
            outcomes[RELAY] = claim.fence == fence ? OUTCOME_BEFORE : OUTCOME_AFTER;
        ordeal.fence[partition] = claim.fence;
    }
    return true;
}

/* Those of one batch share one commit. */
static bool judge_batch(void)
{
    bool before = false, after = false;
    for (uint32_t n = 0; n < LANES; n++) {
        const struct attempt *a = ordeal_open(n);
        if (!a)
            continue;
        ordeal_totals->unknown++;
        enum outcome o = outcomes[n];
        o == OUTCOME_AFTER    ? ordeal_totals->committed++
        : o == OUTCOME_BEFORE ? ordeal_totals->uncommitted++
                              : ordeal_totals->same++;
        if (a->batch == 0 || a->owner == CROWD)
            continue;
        before = before || o == OUTCOME_BEFORE;
        after = after || o == OUTCOME_AFTER;
    }
    if (before && after) {
        ordeal_totals->batches_cut++;
        return ordeal_complain("half of a batch is there");
    }
    return true;
}

/* The same again. What was done already is answered as a repeat is: by the ledger where it had a key. */
static bool send_again(struct store *store, uint32_t number)
{
    struct attempt *a = ordeal_open(number);
    if (!a)
        return true;
    bool done = outcomes[number] == OUTCOME_AFTER;
    struct request r;
    struct answer answer = {.error = OK};
    attempt_request(a, &r);
    uint64_t at_us = ordeal.actors ? ordeal.clock_us : a->at_us;
    enum error e = batch_one(store, r.class, at_us, &r.command, &answer);
    struct model_answer expected = model_apply(&ordeal.lane[a->owner], a);
    if (done)
        expected = model_apply(&ordeal.lane[a->owner], a);
    if (a->kind == CLAIM) {
        ordeal.fence[a->partition]++;
        return e == OK || ordeal_complain("a claim, sent again, was answered %s", error_name(e));
    }
    ordeal_totals->made_again++;
    if (e != expected.error)
        return ordeal_complain("%s of parcel %u of lane %u (%s), sent again, was answered %s instead of %s",
                               attempt_kind_name(a->kind), a->parcel, a->owner,
                               done ? "it was there" : "it was not there", error_name(e),
                               error_name(expected.error));
    return e != OK || model_answers(&expected, answer.bytes, answer.size) ||
           ordeal_complain("%s of parcel %u of lane %u, sent again, was answered with other bytes",
                           attempt_kind_name(a->kind), a->parcel, a->owner);
}

static bool count_is(const char *what, uint64_t count, uint64_t expected)
{
    return count == expected || ordeal_complain("%" PRIu64 " %s instead of %" PRIu64
                                                ": something is there that nobody was told of, or half of it",
                                                count, what, expected);
}

/* Nothing beside what the model knows. */
static bool judge_states(struct txn *txn, const struct model_rows *rows)
{
    for (unsigned i = 0; i < PARCEL_STATE_COUNT; i++) {
        uint8_t state = (uint8_t)i;
        int64_t value = 0;
        enum error e = counter_read(txn, COUNTER_PARCELS, span_of(&state, 1), &value);
        if (e != OK || value != (int64_t)rows->states[state])
            return ordeal_complain("the counter of parcels in state %u is %" PRId64 " instead of %" PRIu64
                                   " (%s)",
                                   state, value, rows->states[state], error_name(e));
    }
    return true;
}

/* Nothing beside what the model knows. */
static bool judge_counts(struct txn *txn)
{
    struct model_rows rows = model_rows(ordeal.lane);
    const struct {
        const char *what;
        uint32_t table;
        uint64_t count;
    } tables[] = {
        {"parcels", TABLE_PARCELS, rows.parcels},
        {"events", TABLE_EVENTS, rows.events},
        {"rows in the outbox", TABLE_OUTBOX, rows.outbox},
        {"rows of the ledger", TABLE_LEDGER, rows.ledger},
        {"due entries", TABLE_DUE, rows.due},
        {"dead rows", TABLE_DEAD, rows.dead},
        {"used tokens", TABLE_SEEN_TOKENS, rows.tokens},
        {"audit entries", TABLE_AUDITS, rows.audits},
        {"clients", TABLE_CLIENTS, rows.clients},
        {"clients with keys", TABLE_CLIENT_KEYS, rows.keyed},
        {"keys", TABLE_API_KEYS, rows.keys},
        {"hashes of keys", TABLE_API_KEY_HASHES, rows.keys},
    };
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        if (!count_is(tables[i].what, txn_rows(txn, tables[i].table), tables[i].count))
            return false;
    return judge_states(txn, &rows);
}

static void tell_finding(void *context, const char *finding)
{
    (void)context;
    ordeal_complain("check: %s", finding);
}

static bool judge_everything(struct store *store, struct txn *txn)
{
    if (!sight_take(txn))
        return false;
    for (uint32_t owner = 0; owner < OWNERS; owner++)
        for (uint32_t i = 0; i < PARCELS; i++) {
            const struct lane_model *lane = &ordeal.lane[owner];
            if (!sight_is(txn, owner, i, lane))
                return ordeal_complain("at the end, parcel %u of lane %u: %s", i, owner, sight_difference());
        }
    struct check_report report;
    enum error e = check_rows(txn, store->schema, tell_finding, NULL, &report);
    if (e != OK)
        return ordeal_complain("check: %s", error_name(e));
    ordeal_totals->checked_rows += report.rows;
    return report.findings == 0;
}

static bool judge_left(struct txn *txn)
{
    memset(outcomes, 0, sizeof(outcomes));
    if (!replay_answered() || !sight_take(txn))
        return false;
    open_marks(true);
    if (!judge_touched(txn))
        return false;
    judge_marks();
    open_marks(false);
    return judge_claims(txn) && judge_batch();
}

/* Judged with what sending again came to, and from now on. */
static bool judge_after(struct store *store, struct txn *txn, bool last)
{
    bool good = judge_counts(txn) && sight_take(txn);
    for (uint32_t n = 0; good && n < LANES; n++) {
        const struct attempt *a = ordeal_open(n);
        if (a && a->kind != CLAIM)
            good = judge(txn, n, a, NULL);
    }
    return good && (!last || judge_everything(store, txn));
}

bool judge_store(struct store *store, bool last)
{
    struct view *view = view_open_outside(store, 0);
    if (!view)
        return ordeal_complain("no view could be opened");
    bool good = judge_left(&view->txn);
    view_close(view);
    for (uint32_t n = 0; good && n < LANES; n++)
        good = send_again(store, n);
    if (!good)
        return false;
    view = view_open_outside(store, 0);
    if (!view)
        return ordeal_complain("no view could be opened the second time");
    good = judge_after(store, &view->txn, last);
    view_close(view);
    return good;
}
