#include "store/job_fairness.h"

#include "store/check.h"

#define fairness_FIELD(name, TYPE, limit, since) RECORD_FIELD(fairness, name, TYPE, limit, since)
RECORD_CLASS(fairness, FAIRNESS_FIELDS, 1);
#define job_fairness_FIELD(name, TYPE, limit, since) RECORD_FIELD(job_fairness, name, TYPE, limit, since)
RECORD_CLASS(job_fairness, JOB_FAIRNESS_FIELDS, 1);

struct key fairness_key(void)
{
    struct key key = {.size = 0};
    key_add_u8(&key, LANE_SERVER);
    return key;
}

enum error fairness_read(struct txn *txn, struct fairness *ret)
{
    struct key key = fairness_key();
    return txn_read(txn, TABLE_FAIRNESS, key_span(&key), ret);
}

bool fairness_on(struct txn *txn)
{
    struct fairness f;
    return fairness_read(txn, &f) == OK && f.on;
}

static void write_row(struct txn *txn, const struct fairness *f)
{
    struct key key = fairness_key();
    txn_write(txn, TABLE_FAIRNESS, key_span(&key), f);
}

void fairness_served(struct txn *txn, struct fairness *fairness, const struct uuid *client)
{
    if (uuid_equal(&fairness->last, client))
        return;
    fairness->last = *client;
    write_row(txn, fairness);
}

/* ---- what was queued before ---- */

/* Those that an operator wants now have rank 0: they stay where they are, before all others. */
static struct key behind_sorted(const struct fairness *f)
{
    struct key key = {.size = 0};
    key_add_u8(&key, LANE_SERVER);
    key_add_u8(&key, f->rank);
    key_add_u64(&key, f->rank ? f->place : UINT64_MAX);
    return key;
}

static enum error next_unsorted(struct txn *txn, const struct fairness *f, struct job_queue *row,
                                struct key *ret_key)
{
    struct key behind = behind_sorted(f);
    return job_queue_next(txn, LANE_SERVER, NULL, NULL, &behind, row, ret_key);
}

/* A row that isn't its job's is damaged as well. */
static enum error sort_one(struct txn *txn, const struct key *key, const struct uuid *id)
{
    struct job_texts texts;
    struct job job;
    enum error e = job_open(txn, id, &job, &texts);
    if (e)
        return e;
    struct key own = job_queue_key(&job);
    if (job.lane != LANE_SERVER || !span_equal(key_span(&own), key_span(key)))
        return ERR_DAMAGED;
    job_queue_sort(txn, &job);
    job_write(txn, &job);
    return OK;
}

/* The next ones, from where it was left. One that is damaged is in nobody's way: it is passed by. */
static enum error sort(struct txn *txn, struct fairness *f, uint32_t most, struct job_fairness_set *ret)
{
    struct job_queue row;
    struct key key;
    for (uint32_t looked = 0; looked < FAIRNESS_LOOK_MAX && ret->sorted < most; looked++) {
        enum error e = next_unsorted(txn, f, &row, &key);
        if (key.size == 0) /* there is none, or the table itself is damaged there */
            return txn->error;
        struct job_turn turn = job_queue_turn(&key);
        f->rank = turn.bytes[0];
        f->place = 0;
        for (uint32_t i = 1; i < sizeof(turn.bytes); i++)
            f->place = f->place << 8 | turn.bytes[i];
        e = e ? e : sort_one(txn, &key, &row.id);
        if (txn->error)
            return txn->error;
        ret->sorted += e == OK;
        ret->damaged += e != OK;
    }
    return OK;
}

/* ---- on and off ---- */

static enum error switch_on(struct txn *txn, uint32_t most, struct job_fairness_set *ret)
{
    struct fairness f, before;
    enum error e = fairness_read(txn, &f);
    if (e)
        f = (struct fairness){.on = 0}; /* also of a row that can't be read */
    before = f;
    bool fresh = !f.on;
    if (fresh)
        f = (struct fairness){.on = 1, .last = before.last};
    e = sort(txn, &f, most < FAIRNESS_SORT_MAX ? most : FAIRNESS_SORT_MAX, ret);
    if (!e && (fresh || f.rank != before.rank || f.place != before.place))
        write_row(txn, &f);
    return e;
}

/* Off for good when no job is left that has two rows. */
static enum error switch_off(struct txn *txn)
{
    struct fairness f;
    struct key key = fairness_key();
    bool left = false;
    enum error e = fairness_read(txn, &f);
    if (e == ERR_NOT_FOUND)
        return OK;
    if (e)
        f = (struct fairness){.on = 1}; /* it is written anew */
    enum error sure = job_queue_any_fair(txn, &left);
    if (sure)
        return sure;
    if (!left)
        txn_remove(txn, TABLE_FAIRNESS, key_span(&key));
    else if (f.on)
        write_row(txn, &(struct fairness){.on = 0, .last = f.last});
    return OK;
}

static enum error apply_fairness(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct job_fairness *c = command;
    struct job_fairness_set set = {.sorted = 0};
    (void)at_us;
    if (c->on > 1 || c->most == 0)
        return ERR_INVALID;
    enum error e = c->on ? switch_on(txn, c->most, &set) : switch_off(txn);
    if (txn->writes > 0 && !txn->error)
        txn->error = e; /* half of a change must not be kept */
    if (!e)
        answer_add(answer, &set, sizeof(set));
    return e;
}

const struct command_class job_fairness_class = {
    .name = "job.fairness",
    .record = &job_fairness_record,
    .apply = apply_fairness,
    .code = 227,
};

enum error fairness_pending(struct txn *txn, bool on, bool *ret_any)
{
    struct fairness f;
    struct job_queue row;
    struct key key;
    enum error e = fairness_read(txn, &f);
    *ret_any = false;
    if (e == ERR_NOT_FOUND) {
        *ret_any = on;
        return OK;
    }
    if (e || on != (f.on != 0)) { /* one that can't be read is written anew */
        *ret_any = !e || e == ERR_DAMAGED;
        return *ret_any ? OK : e;
    }
    if (on) {
        (void)next_unsorted(txn, &f, &row, &key);
        *ret_any = key.size > 0;
        return txn->error;
    }
    e = job_queue_any_fair(txn, ret_any);
    *ret_any = !*ret_any;
    return e;
}

/* ---- what must be true ---- */

void fairness_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    const struct fairness *f = value;
    struct key own = fairness_key();
    (void)txn;
    if (!span_equal(key, key_span(&own)))
        check_complain(check, "fairness: a row stands under another key");
    if (f->on > 1)
        check_complain(check, "fairness: it is neither on nor off, but %u", f->on);
}
