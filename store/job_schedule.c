#include "store/job_schedule.h"

#include "store/check.h"
#include "store/client.h"
#include "store/counter.h"
#include "store/job_change.h"
#include "store/job_fire.h"
#include "store/job_queue.h"
#include "store/ledger.h"

#define schedule_FIELD(name, TYPE, limit, since) RECORD_FIELD(schedule, name, TYPE, limit, since)
RECORD_CLASS(schedule, SCHEDULE_FIELDS, 1);
#define schedule_put_FIELD(name, TYPE, limit, since) RECORD_FIELD(schedule_put, name, TYPE, limit, since)
RECORD_CLASS(schedule_put, SCHEDULE_PUT_FIELDS, 2);
#define schedule_remove_FIELD(name, TYPE, limit, since) \
    RECORD_FIELD(schedule_remove, name, TYPE, limit, since)
RECORD_CLASS(schedule_remove, SCHEDULE_REMOVE_FIELDS, 1);
#define schedule_switch_FIELD(name, TYPE, limit, since) \
    RECORD_FIELD(schedule_switch, name, TYPE, limit, since)
RECORD_CLASS(schedule_switch, SCHEDULE_SWITCH_FIELDS, 1);
#define schedule_fire_FIELD(name, TYPE, limit, since) RECORD_FIELD(schedule_fire, name, TYPE, limit, since)
RECORD_CLASS(schedule_fire, SCHEDULE_FIRE_FIELDS, 1);
#define schedule_retime_FIELD(name, TYPE, limit, since) \
    RECORD_FIELD(schedule_retime, name, TYPE, limit, since)
RECORD_CLASS(schedule_retime, SCHEDULE_RETIME_FIELDS, 1);

enum { ROW_SCHEDULE = 0, ROW_OF_CLIENT = 1 };
#define OF_CLIENT_PREFIX (1u + 16u)
#define OF_CLIENT_SIZE   (OF_CLIENT_PREFIX + 16u)

static const struct uuid nobody = {{0}};

#define NAMES(function, LIST)                                                  \
    const char *function(uint8_t number)                                       \
    {                                                                          \
        static const char *const names[] = {LIST(NAME)};                       \
        return number < sizeof(names) / sizeof(*names) ? names[number] : NULL; \
    }
#define NAME(id, name) [id] = (name),
NAMES(schedule_overlap_name, SCHEDULE_OVERLAPS)
NAMES(schedule_missed_name, SCHEDULE_MISSES)
NAMES(schedule_outcome_name, SCHEDULE_OUTCOMES)

/* ---- rows ---- */

static struct key row_key(const struct uuid *id)
{
    struct key key = {.size = 0};
    key_add_u8(&key, ROW_SCHEDULE);
    key_add_uuid(&key, id);
    return key;
}

static struct key client_key(const struct uuid *client, const struct uuid *id)
{
    struct key key = {.size = 0};
    key_add_u8(&key, ROW_OF_CLIENT);
    key_add_uuid(&key, client);
    if (id)
        key_add_uuid(&key, id);
    return key;
}

enum error schedule_read(struct txn *txn, const struct uuid *id, struct schedule *ret_schedule)
{
    struct key key = row_key(id);
    return txn_read(txn, TABLE_SCHEDULES, key_span(&key), ret_schedule);
}

enum error schedule_list(struct txn *txn, const struct uuid *client, const struct uuid *after,
                         struct uuid *ids, uint32_t most, uint32_t *ret_count)
{
    struct key from = client_key(client, after);
    if (after)
        key_add_u8(&from, 0); /* the first key behind it */
    struct scan scan = txn_scan(txn, TABLE_SCHEDULES, key_span(&from), OF_CLIENT_PREFIX, SCAN_UP);
    uint32_t count = 0;
    while (count < most && scan_next(&scan))
        if (scan.key.size == OF_CLIENT_SIZE)
            memcpy(&ids[count++], (const uint8_t *)scan.key.bytes + OF_CLIENT_PREFIX, sizeof(*ids));
    *ret_count = count;
    return scan_end(&scan);
}

/* A row to be written again, with its texts: they borrow from the map, which stays as it is until the first write, and the row is
 * the first that a command writes of this table. The job that is submitted takes what it needs before. */
static enum error open_for(struct txn *txn, const struct uuid *id, const struct uuid *client,
                           struct schedule *ret)
{
    enum error e = schedule_read(txn, id, ret);
    return !e && !uuid_equal(client, &ret->client) ? ERR_FORBIDDEN : e;
}

static void write_schedule(struct txn *txn, const struct schedule *s)
{
    struct key key = row_key(&s->id);
    txn_write(txn, TABLE_SCHEDULES, key_span(&key), s);
}

static uint64_t next_after(const struct schedule *s, uint64_t after_us)
{
    struct cron cron;
    char text[8];
    return cron_parse(s->cron, &cron, text, sizeof(text)) ? cron_next_us(&cron, after_us) : 0;
}

static void move_due(struct txn *txn, const struct schedule *s, uint64_t from_us, uint64_t to_us)
{
    if (from_us == to_us)
        return;
    if (from_us)
        (void)due_try_clear(txn, DUE_SCHEDULE, SCHEDULE_SHARD, from_us,
                            &s->id); /* find_due may have moved it */
    if (to_us)
        due_set(txn, &(struct due_entry){
                         .queue = DUE_SCHEDULE, .shard = SCHEDULE_SHARD, .due_us = to_us, .id = s->id});
}

/* ---- history ---- */

struct history {
    uint8_t bytes[SCHEDULE_HISTORY_MAX * SCHEDULE_ENTRY_SIZE];
    uint32_t size;
};

static void history_open(const struct schedule *s, struct history *h)
{
    h->size = s->history.size;
    if (h->size > 0)
        memcpy(h->bytes, s->history.bytes, h->size);
}

static void history_note(struct history *h, uint64_t at_us, uint8_t outcome, const struct uuid *job)
{
    uint32_t kept = h->size < sizeof(h->bytes) ? h->size : (uint32_t)sizeof(h->bytes) - SCHEDULE_ENTRY_SIZE;
    memmove(h->bytes + SCHEDULE_ENTRY_SIZE, h->bytes, kept);
    memcpy(h->bytes, &at_us, sizeof(at_us));
    h->bytes[8] = outcome;
    memcpy(h->bytes + 9, job, sizeof(*job));
    h->size = kept + SCHEDULE_ENTRY_SIZE;
}

uint32_t schedule_history(const struct schedule *schedule,
                          struct schedule_entry entries[SCHEDULE_HISTORY_MAX])
{
    const uint8_t *at = schedule->history.bytes;
    uint32_t count = schedule->history.size / SCHEDULE_ENTRY_SIZE;
    for (uint32_t i = 0; i < count; i++, at += SCHEDULE_ENTRY_SIZE) {
        memcpy(&entries[i].at_us, at, sizeof(entries[i].at_us));
        entries[i].outcome = at[8];
        memcpy(&entries[i].job, at + 9, sizeof(entries[i].job));
    }
    return count;
}

/* Whether there is a job of this time. One that was left out, for whatever reason, is looked at anew when it comes again: a clock that was
 * ahead has left out times that nobody has come to yet. */
static bool submitted_at(const struct schedule *s, uint64_t at_us)
{
    struct schedule_entry entries[SCHEDULE_HISTORY_MAX];
    uint32_t count = schedule_history(s, entries);
    for (uint32_t i = 0; i < count; i++)
        if (entries[i].at_us == at_us && entries[i].outcome == OUTCOME_SUBMITTED)
            return true;
    return false;
}

/* This time, or the first one behind it that it has submitted nothing for: a clock that was set back comes to some of them again. */
static uint64_t undone(const struct schedule *s, uint64_t at_us)
{
    for (uint32_t i = 0; i < SCHEDULE_HISTORY_MAX && at_us && submitted_at(s, at_us); i++)
        at_us = next_after(s, at_us);
    return at_us;
}

/* ---- put, remove, switch ---- */

static enum error puttable(struct txn *txn, const struct schedule_put *c)
{
    struct uuid ids[SCHEDULES_MAX];
    struct schedule there;
    struct client client;
    struct cron cron;
    char text[8];
    uint32_t count = 0;
    bool kind = c->kind == WORK_KIND_USER ? work_kind_user(c->kind_name)
                                          : c->kind == WORK_KIND_NONE || work_kind_row(c->kind) != NULL;
    if (uuid_equal(&c->id, &nobody) || c->overlap >= OVERLAP_COUNT || c->missed >= MISSED_COUNT || !kind ||
        c->priority > JOB_PRIORITY_MAX || !cron_parse(c->cron, &cron, text, sizeof(text)))
        return ERR_INVALID;
    enum error e = schedule_read(txn, &c->id, &there);
    if (e != ERR_NOT_FOUND)
        return e ? e : ERR_EXISTS;
    e = client_read(txn, &c->client, &client);
    if (!e)
        e = schedule_list(txn, &c->client, NULL, ids, SCHEDULES_MAX, &count);
    bool full = count == SCHEDULES_MAX || (c->key.size > 0 && !ledger_room(txn));
    return e ? e : full ? ERR_LIMIT : OK;
}

static const char scope_prefix[] = "schedule.put/";
struct scope {
    char bytes[sizeof(scope_prefix) - 1 + UUID_TEXT_SIZE];
};

static struct span scope_of(const struct uuid *client, struct scope *scope)
{
    memcpy(scope->bytes, scope_prefix, sizeof(scope_prefix) - 1);
    uuid_format(client, scope->bytes + sizeof(scope_prefix) - 1);
    return span_of(scope->bytes, sizeof(scope->bytes) - 1);
}

static enum error apply_put(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct schedule_put *c = command;
    struct ledger earlier;
    struct scope room;
    struct span scope = scope_of(&c->client, &room);
    enum error e = ERR_NOT_FOUND;
    if (c->key.size > 0)
        e = ledger_find(txn, at_us, scope, c->key, &c->digest, &earlier);
    if (e == OK)
        answer_add(answer, earlier.answer.bytes, earlier.answer.size);
    if (e != ERR_NOT_FOUND)
        return e;
    e = puttable(txn, c);
    if (e)
        return e;
    struct schedule s = {.id = c->id,
                         .client = c->client,
                         .created_us = at_us,
                         .overlap = c->overlap,
                         .missed = c->missed,
                         .kind = c->kind,
                         .priority = c->priority,
                         .grace_us = c->grace_us,
                         .name = c->name,
                         .cron = c->cron,
                         .kind_name = c->kind_name,
                         .payload = c->payload};
    struct key key = row_key(&s.id), by_client = client_key(&s.client, &s.id);
    s.next_us = next_after(&s, at_us);
    txn_add(txn, TABLE_SCHEDULES, key_span(&key), &s);
    txn_add(txn, TABLE_SCHEDULES, key_span(&by_client), &(struct schedule){.id = s.id, .client = s.client});
    move_due(txn, &s, 0, s.next_us);
    struct span id = span_of(s.id.bytes, sizeof(s.id.bytes));
    answer_add(answer, id.bytes, id.size);
    if (c->key.size > 0)
        ledger_put(txn, LEDGER_DAY, at_us, scope, c->key, &c->digest, id);
    return OK;
}

const struct command_class schedule_put_class = {
    .name = "schedule.put",
    .record = &schedule_put_record,
    .apply = apply_put,
    .code = 230,
};

static enum error apply_remove(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct schedule_remove *c = command;
    struct schedule s;
    (void)at_us;
    (void)answer;
    enum error e = open_for(txn, &c->id, &c->client, &s);
    if (e)
        return e;
    struct key key = row_key(&c->id), by_client = client_key(&c->client, &c->id);
    move_due(txn, &s, s.next_us, 0);
    txn_remove(txn, TABLE_SCHEDULES, key_span(&key));
    (void)txn_try_remove(txn, TABLE_SCHEDULES,
                         key_span(&by_client)); /* one that has gone needn't be removed */
    return OK;
}

const struct command_class schedule_remove_class = {
    .name = "schedule.remove",
    .record = &schedule_remove_record,
    .apply = apply_remove,
    .code = 231,
    .cleanup = true,
};

static enum error apply_switch(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct schedule_switch *c = command;
    struct schedule s;
    (void)answer;
    enum error e = open_for(txn, &c->id, &c->client, &s);
    if (e || s.paused == (c->paused != 0))
        return e;
    uint64_t before = s.next_us;
    s.paused = c->paused != 0;
    s.next_us = s.paused ? 0 : undone(&s, next_after(&s, at_us));
    write_schedule(txn, &s); /* first: its texts are the map's */
    move_due(txn, &s, before, s.next_us);
    return OK;
}

const struct command_class schedule_switch_class = {
    .name = "schedule.switch",
    .record = &schedule_switch_record,
    .apply = apply_switch,
    .code = 232,
};

/* ---- fire ---- */

/* What one time comes to. */
struct firing {
    const struct schedule_fire *c;
    struct schedule s;
    struct history history;
    struct schedule_fired fired;
    uint64_t at_us, occurrence_us;
    bool by_hand;
};

static bool still_there(struct txn *txn, const struct schedule *s, struct job *job, struct job_texts *texts)
{
    return !uuid_equal(&s->last_job, &nobody) && job_open(txn, &s->last_job, job, texts) == OK &&
           !job_state_final(job->state);
}

/* The job before this one, if it may be; it may go on when those who are told of it can't be told now. */
static void cancel_old(struct txn *txn, struct firing *f, struct job *job)
{
    uint8_t from = job->state;
    if (job_tellable(txn, job) != OK || job_cancel_now(txn, job, f->at_us, f->c->kept_us) != OK)
        return;
    job_write(txn, job);
    f->fired.canceled = job->id;
    f->fired.old = job_changed_of(job, from, true);
}

static enum error submit(struct txn *txn, struct firing *f)
{
    uint8_t bytes[JOB_SUBMITTED_SIZE + 8];
    struct answer answer = {.bytes = bytes};
    struct job_submitted submitted;
    const struct schedule *s = &f->s;
    struct job_submit job = {.id = f->c->job,
                             .client = s->client,
                             .type = JOB_EXECUTE,
                             .kind = s->kind,
                             .kind_name = s->kind_name,
                             .priority = s->priority,
                             .payload = s->payload,
                             .should_fail_ppm = f->c->should_fail_ppm,
                             .runtime_max_ms = f->c->runtime_max_ms,
                             .payload_max = f->c->payload_max,
                             .queue_max = f->c->queue_max,
                             .active_max = f->c->active_max};
    enum error e = job_submit_class.apply(txn, f->at_us, &job, &answer);
    if (e)
        return e;
    e = record_decode(&job_submitted_record, 1, span_of(bytes, answer.size), &submitted);
    ASSERT(e == OK); /* it was made a moment ago */
    f->fired.kind = submitted.kind;
    f->fired.job = job.id;
    f->s.last_job = job.id;
    f->s.last_us = f->fired.at_us = f->occurrence_us;
    f->s.submitted++;
    return OK;
}

static uint8_t outcome_of(enum error e, bool by_hand)
{
    switch (e) {
    case OK:
        return by_hand ? OUTCOME_BY_HAND : OUTCOME_SUBMITTED;
    case ERR_QUEUE_FULL:
    case ERR_ACTIVE:
    case ERR_LIMIT:
        return OUTCOME_FULL;
    default:
        return OUTCOME_REFUSED;
    }
}

/* Submits, or says why not. The policy of overlaps is asked first; the old job is canceled when the new one is there. */
static enum error run(struct txn *txn, struct firing *f)
{
    struct job_texts texts;
    struct job old;
    bool overlaps = !f->by_hand && f->s.overlap != OVERLAP_ALLOW && still_there(txn, &f->s, &old, &texts);
    if (overlaps && f->s.overlap == OVERLAP_SKIP) {
        f->fired.outcome = OUTCOME_OVERLAP;
        return OK;
    }
    enum error e = submit(txn, f);
    f->fired.outcome = outcome_of(e, f->by_hand);
    if (!e && overlaps)
        cancel_old(txn, f, &old);
    return e;
}

/* Times that are left out, noted one by one as far as that is useful; the next one to be looked at. */
static uint64_t leave_out(struct firing *f, uint64_t until_us)
{
    uint64_t at = f->s.next_us;
    for (uint32_t i = 0; i < SCHEDULE_MISSED_MAX && at && at <= until_us; i++, at = next_after(&f->s, at)) {
        history_note(&f->history, at, OUTCOME_MISSED, &nobody);
        f->s.skipped++;
    }
    return at && at <= until_us ? next_after(&f->s, until_us) : at;
}

/* When it is to be looked at again, after this time was dealt with. */
static uint64_t go_on(const struct firing *f, uint64_t late_us)
{
    if (late_us > f->s.grace_us && f->s.missed == MISSED_RUN_ONCE)
        return next_after(&f->s, f->c->wall_us);
    return next_after(&f->s, f->occurrence_us);
}

/* The schedule's row is written by whoever calls this. Now lies behind all that it is late by. */
static void fire_due(struct txn *txn, struct firing *f)
{
    uint64_t late = f->c->wall_us - f->s.next_us;
    f->occurrence_us = f->s.next_us;
    if (late > f->s.grace_us && f->s.missed == MISSED_SKIP) {
        f->s.next_us = leave_out(f, f->c->wall_us - f->s.grace_us - 1);
        f->fired.outcome = OUTCOME_MISSED;
        return;
    }
    if (late > f->s.grace_us && f->s.missed == MISSED_RUN_ALL && late > SCHEDULE_CATCH_UP_US) {
        f->s.next_us = leave_out(f, f->c->wall_us - SCHEDULE_CATCH_UP_US - 1);
        f->fired.outcome = OUTCOME_MISSED;
        return;
    }
    (void)run(txn, f);
    history_note(&f->history, f->occurrence_us, f->fired.outcome, &f->fired.job);
    f->s.skipped += f->fired.outcome != OUTCOME_SUBMITTED;
    f->s.next_us = go_on(f, late);
}

/* What stands in the row borrows from the map until the first write: so it is kept here meanwhile. One command at a time. */
struct kept {
    char name[SCHEDULE_NAME_MAX], cron[CRON_TEXT_MAX], kind_name[WORK_KIND_NAME_MAX];
    char payload[SCHEDULE_PAYLOAD_MAX];
};
static struct span copied(struct span text, char *room)
{
    if (text.size > 0)
        memcpy(room, text.bytes, text.size);
    return span_of(room, text.size);
}

static void keep(struct schedule *s, struct kept *kept)
{
    s->name = copied(s->name, kept->name);
    s->cron = copied(s->cron, kept->cron);
    s->kind_name = copied(s->kind_name, kept->kind_name);
    s->payload = copied(s->payload, kept->payload);
}

/* ERR_NOT_FOUND: nothing is due; or a timer that is no schedule's own was, and went, or that of one which can't be read, and comes again
 * later: the next call looks at the one behind it. */
static enum error find_due(struct txn *txn, const struct schedule_fire *c, struct schedule *ret)
{
    struct due_entry entry;
    uint32_t count = 0;
    enum error e = due_scan_keys(txn, DUE_SCHEDULE, SCHEDULE_SHARD, c->wall_us, &entry, 1, &count);
    if (e || count == 0)
        return e ? e : ERR_NOT_FOUND;
    e = schedule_read(txn, &entry.id, ret);
    if (!e && ret->next_us == entry.due_us)
        return OK;
    if (!e || e == ERR_NOT_FOUND)
        due_clear(txn, DUE_SCHEDULE, SCHEDULE_SHARD, entry.due_us, &entry.id);
    else
        due_move(txn, &entry, job_later(c->wall_us, JOB_SET_BY_US));
    return ERR_NOT_FOUND;
}

static enum error apply_fire(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct schedule_fire *c = command;
    struct firing f = {.c = c, .at_us = at_us, .by_hand = !uuid_equal(&c->id, &nobody)};
    struct kept kept;
    enum error e = f.by_hand ? open_for(txn, &c->id, &c->client, &f.s) : find_due(txn, c, &f.s);
    if (e)
        return e == ERR_NOT_FOUND && !f.by_hand ? OK : e;
    keep(&f.s, &kept);
    history_open(&f.s, &f.history);
    f.fired.schedule = f.s.id;
    f.fired.client = f.s.client;
    uint64_t due_us = f.s.next_us;
    if (f.by_hand) {
        f.occurrence_us = at_us;
        e = run(txn, &f);
        if (e)
            return e;
        history_note(&f.history, at_us, f.fired.outcome, &f.fired.job);
    } else {
        fire_due(txn, &f);
    }
    f.s.history = span_of(f.history.bytes, f.history.size);
    f.s.next_us = f.by_hand ? f.s.next_us : undone(&f.s, f.s.next_us);
    write_schedule(txn, &f.s);
    move_due(txn, &f.s, due_us, f.s.next_us);
    answer_add(answer, &f.fired, sizeof(f.fired));
    return OK;
}

const struct command_class schedule_fire_class = {
    .name = "schedule.fire",
    .record = &schedule_fire_record,
    .apply = apply_fire,
    .code = 233,
};

/* ---- a clock that was set back ---- */

/* The one behind `after` (all zero: the first); also when its row can't be read. */
static enum error schedule_behind(struct txn *txn, const struct uuid *after, struct uuid *ret_id)
{
    struct key from = row_key(after);
    key_add_u8(&from, 0);
    struct scan scan = txn_scan(txn, TABLE_SCHEDULES, key_span(&from), 1, SCAN_UP);
    (void)scan_next(&scan);
    bool found = scan.key.size == 1 + sizeof(*ret_id);
    if (found)
        memcpy(ret_id, (const uint8_t *)scan.key.bytes + 1, sizeof(*ret_id));
    enum error e = scan_end(&scan);
    return found ? OK : e ? e : ERR_NOT_FOUND;
}

static enum error retime(struct txn *txn, const struct uuid *id, uint64_t wall_us, bool *ret_changed)
{
    struct schedule s;
    *ret_changed = false;
    enum error e = schedule_read(txn, id, &s);
    if (e || s.next_us == 0)
        return e;
    uint64_t before = s.next_us, next = undone(&s, next_after(&s, wall_us));
    if (next == 0 || next >= before)
        return OK;
    s.next_us = next;
    write_schedule(txn, &s); /* first: its texts are the map's */
    move_due(txn, &s, before, next);
    *ret_changed = true;
    return OK;
}

/* One that is damaged is in nobody's way. */
static enum error apply_retime(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct schedule_retime *c = command;
    struct schedule_retimed retimed = {.after = c->after, .more = 1};
    enum error e = OK;
    (void)at_us;
    for (uint32_t i = 0; i < SCHEDULE_RETIME_LOOK_MAX && retimed.changed < SCHEDULE_RETIME_MAX && !e; i++) {
        bool changed = false;
        e = schedule_behind(txn, &retimed.after, &retimed.after);
        if (!e)
            retimed.damaged += retime(txn, &retimed.after, c->wall_us, &changed) != OK;
        retimed.changed += changed;
        e = txn->error ? txn->error : e;
    }
    if (e == ERR_NOT_FOUND) {
        retimed.more = 0;
        e = OK;
    }
    if (txn->writes > 0 && !txn->error)
        txn->error = e; /* half of a change must not be kept */
    if (!e)
        answer_add(answer, &retimed, sizeof(retimed));
    return e;
}

const struct command_class schedule_retime_class = {
    .name = "schedule.retime",
    .record = &schedule_retime_record,
    .apply = apply_retime,
    .code = 234,
};

/* ---- what must be true ---- */

static void check_way(struct check *check, struct txn *txn, struct span key, const struct schedule *row,
                      const char *id)
{
    struct schedule schedule;
    struct key own = client_key(&row->client, &row->id);
    if (!span_equal(key, key_span(&own)))
        check_complain(check, "schedules: %s stands under another client", id);
    enum error e = schedule_read(txn, &row->id, &schedule);
    if (e == ERR_NOT_FOUND || (!e && !uuid_equal(&schedule.client, &row->client)))
        check_complain(check, "schedules: %s of this client isn't there", id);
}

void schedule_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    const struct schedule *s = value;
    struct key own = row_key(&s->id), by_client = client_key(&s->client, &s->id),
               due = due_key(DUE_SCHEDULE, SCHEDULE_SHARD, s->next_us, &s->id);
    struct span bytes;
    uint8_t version;
    char id[UUID_TEXT_SIZE];
    uuid_format(&s->id, id);
    if (key.size == OF_CLIENT_SIZE) {
        check_way(check, txn, key, s, id);
        return;
    }
    if (!span_equal(key, key_span(&own)))
        check_complain(check, "schedules: %s stands under another id", id);
    if (txn_get(txn, TABLE_SCHEDULES, key_span(&by_client), &version, &bytes) == ERR_NOT_FOUND)
        check_complain(check, "schedules: %s isn't among its client's", id);
    if (s->paused && s->next_us)
        check_complain(check, "schedules: %s is paused and has a timer", id);
    if (s->next_us && txn_get(txn, TABLE_DUE, key_span(&due), &version, &bytes) == ERR_NOT_FOUND)
        check_complain(check, "schedules: %s will never be looked at", id);
    if (s->history.size % SCHEDULE_ENTRY_SIZE != 0)
        check_complain(check, "schedules: %s has half an entry in its history", id);
}

void schedule_check_due(struct check *check, struct txn *txn, const struct due_entry *entry)
{
    struct schedule s;
    char id[UUID_TEXT_SIZE];
    uuid_format(&entry->id, id);
    enum error e = schedule_read(txn, &entry->id, &s);
    if (e == ERR_NOT_FOUND || (!e && s.next_us != entry->due_us))
        check_complain(check, "due: a timer of the schedule %s, which isn't there or has another one", id);
}
