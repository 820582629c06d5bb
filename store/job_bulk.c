#include "store/job_bulk.h"

#include "store/check.h"
#include "store/checksum.h"
#include "store/counter.h"
#include "store/job_fire.h"
#include "store/job_submit.h"
#include "store/retention.h"
#include "store/steady.h"

#define bulk_FIELD(name, TYPE, limit, since) RECORD_FIELD(bulk, name, TYPE, limit, since)
RECORD_CLASS(bulk, BULK_FIELDS, 1);
#define job_bulk_FIELD(name, TYPE, limit, since) RECORD_FIELD(job_bulk, name, TYPE, limit, since)
RECORD_CLASS(job_bulk, JOB_BULK_FIELDS, 2);
#define job_bulk_abort_FIELD(name, TYPE, limit, since) RECORD_FIELD(job_bulk_abort, name, TYPE, limit, since)
RECORD_CLASS(job_bulk_abort, JOB_BULK_ABORT_FIELDS, 1);
#define job_bulk_step_FIELD(name, TYPE, limit, since) RECORD_FIELD(job_bulk_step, name, TYPE, limit, since)
RECORD_CLASS(job_bulk_step, JOB_BULK_STEP_FIELDS, 2);

STATIC_ASSERT(BULKS_RUNNING_MAX < BULKS_OWN_MAX && BULKS_OWN_MAX <= BULKS_CLIENTS_MAX,
              "who has all his places has one that has ended");
STATIC_ASSERT(sizeof(struct bulk_changed) * BULK_CHANGE_MAX <= ANSWER_SIZE_MAX, "a step's answer fits");

static const struct uuid nobody = {{0}};
static const struct span no_label = {NULL, 0};

const char *bulk_action_name(uint8_t action)
{
    static const char *const names[] = {
#define X(id, name) [id] = (name),
        BULK_ACTIONS(X)
#undef X
    };
    return action < BULK_ACTION_COUNT ? names[action] : NULL;
}

static const struct lifecycle_state states[] = {
#define X(id, text, mark) [id] = {.name = text, .flags = mark},
    BULK_STATES(X)
#undef X
};
static const char *const events[] = {
#define X(id, name) [id] = (name),
    BULK_EVENTS(X)
#undef X
};
static const struct lifecycle_edge edges[] = {
    {BULK_RUNNING, BULK_FINISH, BULK_DONE},
    {BULK_RUNNING, BULK_ABORT, BULK_ABORTED},
};
const struct lifecycle bulk_lifecycle = {
    .name = "bulk",
    .states = states,
    .events = events,
    .edges = edges,
    .states_count = sizeof(states) / sizeof(*states),
    .events_count = sizeof(events) / sizeof(*events),
    .edges_count = sizeof(edges) / sizeof(*edges),
};

/* ---- rows ---- */

enum error bulk_read(struct txn *txn, const struct uuid *id, struct bulk *ret_bulk)
{
    struct key key = key_of_uuid(id);
    return txn_read(txn, TABLE_BULKS, key_span(&key), ret_bulk);
}

static void write_bulk(struct txn *txn, const struct bulk *bulk)
{
    struct key key = key_of_uuid(&bulk->id);
    txn_write(txn, TABLE_BULKS, key_span(&key), bulk);
}

/* A row, and room for its texts: what is read borrows from what is about to be written over. */
struct opened {
    struct bulk row;
    char label[BULK_LABEL], who[BULK_WHO], reason[BULK_REASON];
};

static struct span copied(struct span text, char *room)
{
    if (text.size > 0)
        memcpy(room, text.bytes, text.size);
    return span_of(room, text.size);
}

static enum error open_bulk(struct txn *txn, const struct uuid *id, struct opened *ret)
{
    enum error e = bulk_read(txn, id, &ret->row);
    if (e)
        return e;
    ret->row.label = copied(ret->row.label, ret->label);
    ret->row.who = copied(ret->row.who, ret->who);
    ret->row.reason = copied(ret->row.reason, ret->reason);
    return OK;
}

static void set_due(struct txn *txn, struct bulk *bulk, uint64_t due_us)
{
    if (bulk->due_us)
        (void)due_try_clear(txn, DUE_JOB_BULK, BULK_SHARD, bulk->due_us,
                            &bulk->id); /* find_due may have moved it */
    bulk->due_us = due_us;
    if (due_us)
        due_set(txn, &(struct due_entry){
                         .queue = DUE_JOB_BULK, .shard = BULK_SHARD, .due_us = due_us, .id = bulk->id});
}

static void count_running(struct txn *txn, const struct uuid *owner, int64_t delta)
{
    counter_add(txn, COUNTER_BULKS, span_of(owner, sizeof(*owner)), delta);
}

/* ---- places ---- */

struct ended {
    bool any;
    uint64_t at_us;
    struct uuid id;
};

/* Who has how many, and what ended first. */
struct tally {
    uint32_t own, of_clients;
    struct ended first_own, first;
};

static void note_ended(struct ended *first, const struct bulk *row)
{
    if (!first->any || row->finished_us < first->at_us)
        *first = (struct ended){.any = true, .at_us = row->finished_us, .id = row->id};
}

static void note_row(struct tally *t, const struct uuid *owner, const struct bulk *row)
{
    bool own = uuid_equal(&row->owner, owner), of_client = !uuid_equal(&row->owner, &nobody);
    t->own += own;
    t->of_clients += of_client;
    if (row->state == BULK_RUNNING)
        return;
    if (own)
        note_ended(&t->first_own, row);
    if (of_client)
        note_ended(&t->first, row);
}

/* The row behind this key, and its own key. ERR_DAMAGED: it can't be read; ERR_NOT_FOUND: there is none. */
static enum error next_row(struct txn *txn, struct key *key, struct bulk *ret)
{
    key_add_u8(key, 0);
    struct scan scan = txn_scan(txn, TABLE_BULKS, key_span(key), 0, SCAN_UP);
    bool sound = scan_next(&scan) && scan_read(&scan, ret) == OK;
    bool found = scan.key.size > 0 && scan.key.size < KEY_SIZE_MAX;
    key->size = 0;
    if (found)
        key_add(key, scan.key.bytes, scan.key.size);
    enum error e = scan_end(&scan);
    return !found ? e ? e : ERR_NOT_FOUND : sound ? OK : ERR_DAMAGED;
}

/* One that can't be read has a place of the clients', whosever it is. */
static enum error tally_all(struct txn *txn, const struct uuid *owner, struct tally *t)
{
    struct key key = {.size = 0};
    struct bulk row;
    enum error e = OK;
    *t = (struct tally){.own = 0};
    while (!txn->error && e != ERR_NOT_FOUND) {
        e = next_row(txn, &key, &row);
        if (!e)
            note_row(t, owner, &row);
        else
            t->of_clients += e == ERR_DAMAGED;
    }
    return txn->error;
}

static void drop(struct txn *txn, const struct ended *ended)
{
    struct key key = key_of_uuid(&ended->id);
    retention_clear(txn, ended->at_us + BULK_KEPT_US, &ended->id);
    txn_remove(txn, TABLE_BULKS, key_span(&key));
}

/* A place for one more. ERR_LIMIT: all that may be had are of such as run. */
static enum error make_room(struct txn *txn, const struct uuid *owner)
{
    struct tally t;
    enum error e = tally_all(txn, owner, &t);
    bool no_place = t.own >= BULKS_OWN_MAX, client = !uuid_equal(owner, &nobody);
    if (e || (!no_place && (!client || t.of_clients < BULKS_CLIENTS_MAX)))
        return e;
    const struct ended *goes = t.first_own.any || no_place ? &t.first_own : &t.first;
    if (!goes->any)
        return ERR_LIMIT;
    drop(txn, goes);
    return txn->error;
}

/* ---- start ---- */

static enum error startable(struct txn *txn, const struct job_bulk *c)
{
    struct bulk there;
    int64_t running = 0;
    bool own = uuid_equal(&c->owner, &nobody) || uuid_equal(&c->owner, &c->client);
    if (uuid_equal(&c->id, &nobody) || c->action >= BULK_ACTION_COUNT || !own || c->states == 0 ||
        (c->type != BULK_ANY_TYPE && c->type >= JOB_TYPE_COUNT))
        return ERR_INVALID;
    enum error e = bulk_read(txn, &c->id, &there);
    if (e != ERR_NOT_FOUND)
        return e ? e : ERR_EXISTS;
    e = counter_read(txn, COUNTER_BULKS, span_of(&c->owner, sizeof(c->owner)), &running);
    if (!e && running >= BULKS_RUNNING_MAX)
        e = ERR_LIMIT;
    return e;
}

static enum error apply_bulk(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct job_bulk *c = command;
    int64_t newest = 0;
    (void)answer;
    enum error e = startable(txn, c);
    if (!e)
        e = counter_read(txn, COUNTER_JOB_SEQ, no_label, &newest);
    if (!e && c->by_steady)
        e = make_room(txn, &c->owner);
    if (e)
        return e;
    struct bulk bulk = {.id = c->id,
                        .owner = c->owner,
                        .action = c->action,
                        .state = BULK_RUNNING,
                        .client = c->client,
                        .states = c->states,
                        .type = c->type,
                        .work = c->work,
                        .from_us = c->from_us,
                        .until_us = c->until_us,
                        .label = c->label,
                        .created_us = at_us,
                        .last_seq = (uint64_t)newest,
                        .who = c->who,
                        .reason = c->reason};
    set_due(txn, &bulk, c->by_steady ? BULK_AT_ONCE : at_us);
    count_running(txn, &bulk.owner, 1);
    write_bulk(txn, &bulk);
    return OK;
}

const struct command_class job_bulk_class = {
    .name = "job.bulk",
    .record = &job_bulk_record,
    .apply = apply_bulk,
    .code = 224,
};

/* ---- its end ---- */

/* One that runs. */
static void end_bulk(struct txn *txn, struct bulk *bulk, enum bulk_event event, uint64_t at_us)
{
    enum error e = lifecycle_next(&bulk_lifecycle, bulk->state, (uint8_t)event, &bulk->state);
    ASSERT(e == OK);
    set_due(txn, bulk, 0);
    count_running(txn, &bulk->owner, -1);
    bulk->finished_us = at_us;
    retention_set(txn, RETENTION_BULK, at_us + BULK_KEPT_US, &bulk->id, 0);
}

static enum error apply_abort(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct job_bulk_abort *c = command;
    struct opened bulk;
    (void)answer;
    enum error e = open_bulk(txn, &c->id, &bulk);
    if (!e && !uuid_equal(&c->owner, &nobody) && !uuid_equal(&c->owner, &bulk.row.owner))
        e = ERR_FORBIDDEN;
    if (e || bulk.row.state != BULK_RUNNING)
        return e;
    end_bulk(txn, &bulk.row, BULK_ABORT, at_us);
    write_bulk(txn, &bulk.row);
    return OK;
}

const struct command_class job_bulk_abort_class = {
    .name = "job.bulk_abort",
    .record = &job_bulk_abort_record,
    .apply = apply_abort,
    .code = 225,
    .priority = COMMAND_HIGH,
};

/* ---- which jobs ---- */

static bool matches(const struct bulk *b, const struct job *job)
{
    return job->seq <= b->last_seq && (b->states & 1u << job->state) != 0 &&
           (b->type == BULK_ANY_TYPE || b->type == job->type) &&
           (uuid_equal(&b->work, &nobody) || uuid_equal(&b->work, &job->work)) &&
           (uuid_equal(&b->client, &nobody) || uuid_equal(&b->client, &job->client)) &&
           job->created_us >= b->from_us && (b->until_us == 0 || job->created_us < b->until_us);
}

static bool changeable(uint8_t action, const struct job *job, uint16_t retry_max)
{
    if (action == BULK_CANCEL)
        return !job_state_final(job->state);
    return job->state == JOB_FAILED && job->attempt <= retry_max && job->attempt < UINT16_MAX;
}

/* Whether `job`, which the cursor has come to, is one. */
static bool take(struct bulk *b, const struct job *job, uint16_t retry_max)
{
    if (!matches(b, job))
        return false;
    b->matched++;
    if (changeable(b->action, job, retry_max))
        return true;
    b->left++;
    return false;
}

struct found {
    struct uuid id;
    uint64_t seq;
    uint64_t left; /* of the task, up to here */
};

/* One look: what it goes through, and what it has come to. */
struct looking {
    struct txn *txn;
    struct bulk *b;
    struct found *found;
    uint32_t most, count, looked;
    uint16_t retry_max;
    bool end;
};

static bool goes_on(const struct looking *l)
{
    return !l->end && l->count < l->most && l->looked < BULK_LOOK_MAX;
}

static void look_at(struct looking *l, const struct job *job)
{
    struct bulk *b = l->b;
    l->looked++;
    if (take(b, job, l->retry_max))
        l->found[l->count++] = (struct found){.id = job->id, .seq = job->seq, .left = b->left};
}

/* One that can't be read: nobody knows whether it is one of them, and it must not be in the way of those behind it. So that it isn't
 * passed over in silence, it is counted as left. */
static void pass(struct looking *l)
{
    l->looked++;
    l->b->matched++;
    l->b->left++;
}

static struct span behind_id(const struct bulk *b, struct key *room)
{
    *room = key_of_uuid(&b->after_id);
    if (!uuid_equal(&b->after_id, &nobody))
        key_add_u8(room, 0); /* the first key behind it */
    return key_span(room);
}

/* A row that can't be read has ended the scan: it is passed when its key tells where it stands. A page that can't be read has no keys:
 * the scan is at the row before it. */
static enum error pass_of_all(struct looking *l, const struct scan *scan)
{
    struct bulk *b = l->b;
    if (scan->error != ERR_DAMAGED || l->txn->error)
        return scan->error;
    if (scan->key.size != sizeof(b->after_id) ||
        memcmp(scan->key.bytes, b->after_id.bytes, scan->key.size) <= 0)
        return ERR_DAMAGED;
    memcpy(b->after_id.bytes, scan->key.bytes, sizeof(b->after_id.bytes));
    pass(l);
    return OK;
}

/* Through everybody's jobs, by id. */
static enum error look_at_all(struct looking *l)
{
    struct key room;
    struct scan scan = txn_scan(l->txn, TABLE_JOBS, behind_id(l->b, &room), 0, SCAN_UP);
    struct job job;
    while (goes_on(l) && scan_next(&scan) && scan_read(&scan, &job) == OK) {
        l->b->after_id = job.id;
        l->b->after_seq = job.seq; /* tells how far it is, and nothing else */
        look_at(l, &job);
    }
    l->end = goes_on(l) && !scan.error;
    enum error e = pass_of_all(l, &scan);
    (void)scan_end(&scan);
    return e;
}

#define OWN_KEY_SIZE (sizeof(struct uuid) + sizeof(uint64_t)) /* client, seq */

/* The number of the row that the scan is at. False: it isn't one behind the cursor. */
static bool own_seq(const struct looking *l, const struct scan *scan, uint64_t *ret_seq)
{
    if (scan->key.size != OWN_KEY_SIZE)
        return false;
    *ret_seq = key_u64((const uint8_t *)scan->key.bytes + sizeof(struct uuid));
    return *ret_seq > l->b->after_seq;
}

/* `e`: what came of reading the row itself. OK: the cursor is behind it. */
static enum error look_at_own_row(struct looking *l, const struct scan *scan, enum error e,
                                  const struct uuid *id)
{
    struct bulk *b = l->b;
    struct job job;
    uint64_t seq;
    if (l->txn->error || (e && e != ERR_DAMAGED))
        return e;
    if (!own_seq(l, scan, &seq))
        return ERR_DAMAGED;
    l->end = seq > b->last_seq; /* it came later, and so did those behind it */
    if (!e && !l->end)
        e = job_read(l->txn, id, &job);
    if (l->txn->error || (e && e != ERR_DAMAGED && e != ERR_NOT_FOUND))
        return e;
    b->after_seq = seq;
    if (e && !l->end)
        pass(l);
    else if (!l->end)
        look_at(l, &job);
    return OK;
}

/* Through one client's, in their order. */
static enum error look_at_own(struct looking *l)
{
    struct key from = client_job_key(&l->b->client, l->b->after_seq + 1);
    struct scan scan = txn_scan(l->txn, TABLE_CLIENT_JOBS, key_span(&from), sizeof(l->b->client), SCAN_UP);
    struct client_job row;
    enum error e = OK;
    bool more = true;
    while (!e && more && goes_on(l)) {
        more = scan_next(&scan) && scan_read(&scan, &row) == OK;
        if (more || scan.error)
            e = look_at_own_row(l, &scan, scan.error, &row.id);
        else
            l->end = true;
    }
    (void)scan_end(&scan);
    return e;
}

/* An error is of what stands behind all that was found, and ends the look. */
static enum error look(struct txn *txn, struct bulk *b, uint16_t retry_max, struct found *found,
                       uint32_t most, uint32_t *ret_count, bool *ret_end)
{
    struct looking l = {.txn = txn, .b = b, .found = found, .most = most, .retry_max = retry_max};
    bool all = uuid_equal(&b->client, &nobody);
    enum error e = OK;
    while (!e && goes_on(&l)) /* one scan, unless a row ends it */
        e = all ? look_at_all(&l) : look_at_own(&l);
    *ret_count = l.count;
    *ret_end = l.end;
    return e;
}

enum error bulk_look(struct txn *txn, struct bulk *bulk, uint16_t retry_max, struct uuid *ids, uint32_t most,
                     uint32_t *ret_count, bool *ret_end)
{
    struct found found[BULK_CHANGE_MAX];
    enum error e = look(txn, bulk, retry_max, found, most < BULK_CHANGE_MAX ? most : BULK_CHANGE_MAX,
                        ret_count, ret_end);
    for (uint32_t i = 0; i < *ret_count; i++)
        ids[i] = found[i].id;
    return e;
}

/* ---- a step ---- */

/* A step has one chance for all of its jobs; they aren't to come back together. */
static uint64_t backoff_of(const struct job *job, const struct job_bulk_step *c)
{
    uint32_t chance = (uint32_t)checksum(c->chance, &job->id, sizeof(job->id));
    return job_backoff_us((uint16_t)(job->attempt + 1), c->base_us, c->most_us, chance);
}

static enum error change(struct txn *txn, const struct bulk *b, const struct job_bulk_step *c, uint64_t at_us,
                         const struct uuid *id, struct answer *answer)
{
    struct job_texts texts;
    struct job job;
    enum error e = job_open(txn, id, &job, &texts);
    if (e)
        return e;
    uint8_t from = job.state;
    if (b->action == BULK_CANCEL) {
        e = job_tellable(txn, &job);
        if (!e)
            e = job_cancel_now(txn, &job, at_us, c->kept_us);
    } else {
        e = job_retriable(txn, &job, c->retry_max, c->queue_max);
        if (!e)
            e = job_retry_now(txn, &job, at_us, c->steady_us, backoff_of(&job, c));
    }
    if (e)
        return e;
    job_write(txn, &job);
    struct bulk_changed changed = {.id = *id, .job = job_changed_of(&job, from, true)};
    answer_add(answer, &changed, sizeof(changed));
    return OK;
}

/* One that has to wait is the next step's first again, and so are those behind it. */
static void step_back(struct bulk *b, const struct bulk *before, const struct found *found, uint32_t at)
{
    b->left = at > 0 ? found[at - 1].left : before->left;
    b->matched = before->matched + at + (b->left - before->left);
    b->after_seq = at > 0 ? found[at - 1].seq : before->after_seq;
    b->after_id = at > 0 ? found[at - 1].id : before->after_id;
}

/* The time by which this step goes. */
static uint64_t now_of(const struct job_bulk_step *c)
{
    return c->by_steady ? c->steady_us : c->wall_us;
}

static enum error step(struct txn *txn, struct bulk *b, const struct job_bulk_step *c, uint64_t at_us,
                       struct answer *answer)
{
    const struct bulk before = *b;
    struct found found[BULK_CHANGE_MAX];
    uint32_t count = 0, at = 0;
    bool end = false;
    enum error e = look(txn, b, c->retry_max, found, BULK_CHANGE_MAX, &count, &end);
    uint64_t unsound = 0;
    bool wait = e && !count; /* what can't be read now is in the way of what is behind it, and of no other */
    for (; at < count && !wait; at++) {
        e = change(txn, b, c, at_us, &found[at].id, answer);
        wait = e == ERR_LIMIT || e == ERR_QUEUE_FULL;
        if (wait)
            break;
        b->changed += e == OK;
        unsound += e != OK;
    }
    if (txn->error)
        return txn->error;
    if (wait) {
        step_back(b, &before, found, at);
        b->left += unsound;
        set_due(txn, b, job_later(now_of(c), BULK_WAIT_US));
        return OK;
    }
    b->left += unsound;
    if (end)
        end_bulk(txn, b, BULK_FINISH, at_us);
    else
        set_due(txn, b, job_later(now_of(c), BULK_STEP_US));
    return OK;
}

/* ERR_NOT_FOUND: nothing is due; or a timer that is no bulk action's own was, and went, or that of one which can't be read, and comes again
 * later: the next call looks at the one behind it. */
static enum error find_due(struct txn *txn, uint64_t now_us, struct opened *ret)
{
    struct due_entry entry;
    uint32_t count = 0;
    enum error e = due_scan_keys(txn, DUE_JOB_BULK, BULK_SHARD, now_us, &entry, 1, &count);
    if (e || count == 0)
        return e ? e : ERR_NOT_FOUND;
    e = open_bulk(txn, &entry.id, ret);
    if (!e && ret->row.due_us == entry.due_us && ret->row.state == BULK_RUNNING)
        return OK;
    if (!e || e == ERR_NOT_FOUND)
        due_clear(txn, DUE_JOB_BULK, BULK_SHARD, entry.due_us, &entry.id);
    else
        due_move(txn, &entry, job_later(now_us, JOB_SET_BY_US));
    return ERR_NOT_FOUND;
}

static enum error apply_step(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct job_bulk_step *c = command;
    struct opened bulk;
    enum error e = find_due(txn, now_of(c), &bulk);
    if (e)
        return e == ERR_NOT_FOUND ? OK : e;
    if (c->by_steady)
        steady_note(txn, c->steady_us);
    e = step(txn, &bulk.row, c, at_us, answer);
    if (!e)
        write_bulk(txn, &bulk.row);
    if (txn->writes > 0 && !txn->error)
        txn->error = e; /* half of a step must not be kept */
    return e;
}

const struct command_class job_bulk_step_class = {
    .name = "job.bulk_step",
    .record = &job_bulk_step_record,
    .apply = apply_step,
    .code = 226,
};

/* ---- retention ---- */

static bool may_go(const struct bulk *bulk, uint64_t due_us)
{
    return bulk->state != BULK_RUNNING && bulk->finished_us + BULK_KEPT_US <= due_us;
}

enum error bulk_expire(struct txn *txn, const struct due_entry *entry)
{
    struct key key = key_of_uuid(&entry->id);
    struct bulk bulk;
    enum error e = bulk_read(txn, &entry->id, &bulk);
    if (e)
        return e;
    if (!may_go(&bulk, entry->due_us))
        return ERR_NOT_FOUND;
    txn_remove(txn, TABLE_BULKS, key_span(&key));
    return OK;
}

enum error bulk_find_due(struct txn *txn, const struct due_entry *entry)
{
    struct bulk bulk;
    enum error e = bulk_read(txn, &entry->id, &bulk);
    return e ? e : may_go(&bulk, entry->due_us) ? OK : ERR_CONFLICT;
}

/* ---- what must be true ---- */

void bulk_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    const struct bulk *bulk = value;
    bool running = bulk->state == BULK_RUNNING;
    struct key due = due_key(DUE_JOB_BULK, BULK_SHARD, bulk->due_us, &bulk->id);
    struct span bytes;
    uint8_t version;
    char id[UUID_TEXT_SIZE];
    uuid_format(&bulk->id, id);
    if (!span_equal(key, span_of(&bulk->id, sizeof(bulk->id))))
        check_complain(check, "bulks: %s stands under another id", id);
    if (!lifecycle_state_name(&bulk_lifecycle, bulk->state)) {
        check_complain(check, "bulks: %s is in the unknown state %u", id, bulk->state);
        return;
    }
    if (running != (bulk->due_us != 0) || running != (bulk->finished_us == 0))
        check_complain(check, "bulks: %s is %s and has a wrong timer", id,
                       lifecycle_state_name(&bulk_lifecycle, bulk->state));
    else if (running && txn_get(txn, TABLE_DUE, key_span(&due), &version, &bytes) == ERR_NOT_FOUND)
        check_complain(check, "bulks: %s will never go on", id);
    if (bulk->matched < bulk->changed + bulk->left)
        check_complain(check, "bulks: %s has done more than it found", id);
    if (running)
        check_count(check, COUNTER_BULKS, span_of(&bulk->owner, sizeof(bulk->owner)), 1);
}

void bulk_check_due(struct check *check, struct txn *txn, const struct due_entry *entry)
{
    struct bulk bulk;
    char id[UUID_TEXT_SIZE];
    uuid_format(&entry->id, id);
    enum error e = bulk_read(txn, &entry->id, &bulk);
    if (e == ERR_NOT_FOUND || (!e && bulk.due_us != entry->due_us))
        check_complain(check, "due: a timer of the bulk action %s, which isn't there or has another one", id);
}
