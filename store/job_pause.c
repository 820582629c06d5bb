#include "store/job_pause.h"

#include "store/check.h"
#include "store/client.h"
#include "store/counter.h"
#include "store/job_fire.h"
#include "store/store.h"

#define pause_FIELD(name, TYPE, limit, since) RECORD_FIELD(pause, name, TYPE, limit, since)
RECORD_CLASS(pause, PAUSE_FIELDS, 2);
#define job_pause_FIELD(name, TYPE, limit, since) RECORD_FIELD(job_pause, name, TYPE, limit, since)
RECORD_CLASS(job_pause, JOB_PAUSE_FIELDS, 1);
#define job_resume_FIELD(name, TYPE, limit, since) RECORD_FIELD(job_resume, name, TYPE, limit, since)
RECORD_CLASS(job_resume, JOB_RESUME_FIELDS, 1);
#define job_unpark_FIELD(name, TYPE, limit, since) RECORD_FIELD(job_unpark, name, TYPE, limit, since)
RECORD_CLASS(job_unpark, JOB_UNPARK_FIELDS, 1);
#define job_run_FIELD(name, TYPE, limit, since) RECORD_FIELD(job_run, name, TYPE, limit, since)
RECORD_CLASS(job_run, JOB_RUN_FIELDS, 1);

#define PAGE_MAX 16u /* rows on the stack at one time */

static const struct uuid nobody = {{0}};

const char *pause_scope_name(uint8_t scope)
{
    static const char *const names[] = {
#define X(id, name) [id] = (name),
        PAUSE_SCOPES(X)
#undef X
    };
    return scope < PAUSE_SCOPE_COUNT ? names[scope] : NULL;
}

struct key pause_key(uint8_t scope, const struct uuid *name)
{
    struct key key = {.size = 0};
    key_add_u8(&key, scope);
    key_add_uuid(&key, name);
    return key;
}

static enum error read_pause(struct txn *txn, uint8_t scope, const struct uuid *name, struct pause *ret)
{
    struct key key = pause_key(scope, name);
    return txn_read(txn, TABLE_PAUSES, key_span(&key), ret);
}

/* A row, and room for its texts: what is read borrows from what is about to be written over. */
struct opened {
    struct pause row;
    char label[PAUSE_LABEL], who[PAUSE_WHO], reason[PAUSE_REASON];
};

static struct span copied(struct span text, char *room)
{
    if (text.size > 0)
        memcpy(room, text.bytes, text.size);
    return span_of(room, text.size);
}

static enum error open_pause(struct txn *txn, uint8_t scope, const struct uuid *name, struct opened *ret)
{
    enum error e = read_pause(txn, scope, name, &ret->row);
    if (e)
        return e;
    ret->row.label = copied(ret->row.label, ret->label);
    ret->row.who = copied(ret->row.who, ret->who);
    ret->row.reason = copied(ret->row.reason, ret->reason);
    return OK;
}

static void write_pause(struct txn *txn, const struct pause *pause)
{
    struct key key = pause_key(pause->scope, &pause->name);
    txn_write(txn, TABLE_PAUSES, key_span(&key), pause);
}

/* ---- its timer: the end that was set, or at once while jobs come back ---- */

/* Of a pause of everything the name is zero, and of those of kinds and clients they are of different forms: so it is enough. */
static void set_due(struct txn *txn, struct pause *pause, uint64_t due_us)
{
    if (pause->due_us == due_us)
        return;
    if (pause->due_us) /* one that couldn't be read for a while has another timer, which goes by itself */
        (void)due_try_clear(txn, DUE_JOB_PAUSE, PAUSE_SHARD, pause->due_us, &pause->name);
    pause->due_us = due_us;
    if (due_us)
        due_set(txn, &(struct due_entry){.queue = DUE_JOB_PAUSE,
                                         .shard = PAUSE_SHARD,
                                         .due_us = due_us,
                                         .id = pause->name,
                                         .row = {.kind = pause->scope}});
}

/* ---- what a claim asks ---- */

static enum error in_force(struct txn *txn, uint8_t scope, const struct uuid *name, struct pause *ret)
{
    enum error e = read_pause(txn, scope, name, ret);
    return !e && ret->ending ? ERR_NOT_FOUND : e;
}

enum error pause_find(struct txn *txn, const struct job *job, struct pause *ret_pause)
{
    if (job->pass || txn_rows(txn, TABLE_PAUSES) == 0)
        return ERR_NOT_FOUND;
    enum error e = in_force(txn, PAUSE_ALL, &nobody, ret_pause);
    if (e == ERR_NOT_FOUND)
        e = in_force(txn, PAUSE_WORK, &job->work, ret_pause);
    if (e == ERR_NOT_FOUND)
        e = in_force(txn, PAUSE_CLIENT, &job->client, ret_pause);
    return e;
}

enum error pause_verdict(struct txn *txn, const struct job *job, enum job_lane *ret_lane)
{
    struct pause pause;
    enum error e = pause_find(txn, job, &pause);
    if (e)
        return e == ERR_NOT_FOUND ? OK : e;
    if (pause.scope == PAUSE_ALL)
        return ERR_NOT_FOUND;
    *ret_lane = pause.scope == PAUSE_WORK ? LANE_PAUSED_WORK : LANE_PAUSED_CLIENT;
    return ERR_CONFLICT;
}

enum error pause_aside(struct txn *txn, const struct pause *pause, int64_t *ret_count)
{
    *ret_count = 0;
    if (pause->scope == PAUSE_ALL)
        return OK;
    return job_queue_aside(txn, pause->scope == PAUSE_WORK ? LANE_PAUSED_WORK : LANE_PAUSED_CLIENT,
                           &pause->name, ret_count);
}

/* ---- pause ---- */

static enum error pausable(struct txn *txn, uint64_t at_us, const struct job_pause *c)
{
    struct client client;
    if (c->scope >= PAUSE_SCOPE_COUNT || (c->until_us && c->until_us <= at_us) ||
        (c->scope == PAUSE_ALL) != uuid_equal(&c->name, &nobody))
        return ERR_INVALID;
    return c->scope == PAUSE_CLIENT ? client_read(txn, &c->name, &client) : OK;
}

static enum error apply_pause(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct job_pause *c = command;
    struct pause row;
    enum error e = pausable(txn, at_us, c);
    if (e)
        return e;
    e = read_pause(txn, c->scope, &c->name, &row);
    if (e && e != ERR_NOT_FOUND)
        return e;
    if (e && txn_rows(txn, TABLE_PAUSES) >= PAUSES_MAX)
        return ERR_LIMIT;
    struct pause pause = {.scope = c->scope,
                          .name = c->name,
                          .since_us = e || row.ending ? at_us : row.since_us,
                          .until_us = c->until_us,
                          .due_us = e ? 0 : row.due_us,
                          .label = c->label,
                          .who = c->who,
                          .reason = c->reason};
    set_due(txn, &pause, c->until_us);
    write_pause(txn, &pause);
    answer_add(answer, &pause.since_us, sizeof(pause.since_us));
    return OK;
}

const struct command_class job_pause_class = {
    .name = "job.pause",
    .record = &job_pause_record,
    .apply = apply_pause,
    .code = 220,
    .priority = COMMAND_HIGH, /* whoever wants it quieter must get through */
};

/* ---- the way back ---- */

static enum job_lane lane_of(uint8_t scope)
{
    return scope == PAUSE_WORK ? LANE_PAUSED_WORK : LANE_PAUSED_CLIENT;
}

/* What one command may still do of it, and has met. */
struct way {
    uint32_t left;
    uint32_t damaged; /* jobs that were passed by */
    bool stuck;       /* of the pause at hand only damaged ones are left */
};

/* Into the lane it came from. A row that isn't its job's is damaged as well. */
static enum error bring_one(struct txn *txn, const struct pause *pause, const struct key *key,
                            const struct uuid *id)
{
    struct job_texts texts;
    struct job job;
    enum error e = job_open(txn, id, &job, &texts);
    if (e)
        return e;
    if (job.lane != lane_of(pause->scope))
        return ERR_DAMAGED;
    struct key own = job_queue_key(&job);
    if (!span_equal(key_span(&own), key_span(key)))
        return ERR_DAMAGED;
    job_queue_take(txn, &job);
    job_queue_put(txn, &job);
    job_write(txn, &job);
    return OK;
}

/* How far it is; of rank 0 and place 0 there is no job. */
static struct key behind_of(const struct pause *pause)
{
    struct key key = {.size = 0};
    key_add_u8(&key, (uint8_t)lane_of(pause->scope));
    key_add_uuid(&key, &pause->name);
    key_add_u8(&key, pause->rank);
    key_add_u64(&key, pause->place);
    return key;
}

static void go_behind(struct pause *pause, const struct key *key)
{
    struct job_turn turn = job_queue_turn(key);
    pause->rank = turn.bytes[0];
    pause->place = 0;
    for (uint32_t i = 1; i < sizeof(turn.bytes); i++)
        pause->place = pause->place << 8 | turn.bytes[i];
}

/* As many as may be, from where it was left. One that is damaged is in nobody's way: it is passed by. */
static enum error bring_back(struct txn *txn, struct pause *pause, struct way *way)
{
    struct job_queue row;
    struct key key;
    uint32_t passed = 0;
    way->stuck = false;
    while (way->left > 0 && pause->scope != PAUSE_ALL && passed < JOB_UNPARK_PASS_MAX && !way->stuck) {
        struct key behind = behind_of(pause);
        enum error e = job_queue_next(txn, lane_of(pause->scope), &pause->name, NULL, &behind, &row, &key);
        if (!e)
            e = bring_one(txn, pause, &key, &row.id);
        if (txn->error)
            return txn->error;
        way->stuck = key.size == 0; /* there is none, or the table itself is damaged there */
        way->left -= e == OK;
        passed += e && !way->stuck;
        if (!way->stuck)
            go_behind(pause, &key);
    }
    if (way->stuck)
        pause->rank = 0, pause->place = 0; /* from the first one, when it is looked at again */
    way->damaged += passed;
    return OK;
}

/* Those who found nothing because of a pause of everything wait for work. */
static void wake_all(struct txn *txn)
{
    struct uuid any = {{0}};
    txn_wake(txn, JOB_TOPIC_QUEUE);
    for (uint8_t i = 0; i < JOB_TOPIC_CLIENTS; i++) {
        any.bytes[15] = i;
        txn_wake(txn, job_topic_client(&any));
    }
}

/* A pause that has ended, or ends: as many as may be come back now, the others later; when those that are left are damaged, much later.
 */
static enum error end_pause(struct txn *txn, struct pause *pause, uint64_t at_us, struct way *way)
{
    int64_t aside = 0;
    struct key key = pause_key(pause->scope, &pause->name);
    if (pause->scope == PAUSE_ALL)
        wake_all(txn);
    enum error e = bring_back(txn, pause, way);
    if (!e)
        e = pause_aside(txn, pause, &aside);
    if (e)
        return e;
    pause->ending = 1;
    uint64_t next_us = way->stuck ? job_later(at_us, JOB_SET_BY_US) : PAUSE_AT_ONCE;
    set_due(txn, pause, aside > 0 ? next_us : 0);
    if (aside > 0)
        write_pause(txn, pause);
    else
        txn_remove(txn, TABLE_PAUSES, key_span(&key));
    return OK;
}

static enum error apply_resume(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct job_resume *c = command;
    struct way way = {.left = JOB_UNPARK_MAX};
    int64_t aside = 0;
    struct opened pause;
    enum error e = open_pause(txn, c->scope, &c->name, &pause);
    if (!e && pause.row.ending)
        e = ERR_NOT_FOUND;
    if (!e)
        e = end_pause(txn, &pause.row, at_us, &way);
    if (!e)
        e = pause_aside(txn, &pause.row, &aside);
    if (!e)
        answer_add(answer, &aside, sizeof(aside));
    if (txn->writes > 0 && !txn->error)
        txn->error = e; /* half of a change must not be kept */
    return e;
}

const struct command_class job_resume_class = {
    .name = "job.resume",
    .record = &job_resume_record,
    .apply = apply_resume,
    .code = 221,
    .priority = COMMAND_HIGH,
};

/* The pause that has this timer, whose own row may be damaged: its key has no scope. */
static enum error open_due(struct txn *txn, const struct due_entry *entry, struct opened *ret)
{
    enum error wrong = ERR_NOT_FOUND;
    for (uint32_t scope = 0; scope < PAUSE_SCOPE_COUNT; scope++) {
        enum error e = open_pause(txn, (uint8_t)scope, &entry->id, ret);
        if (!e && ret->row.due_us == entry->due_us)
            return OK;
        wrong = e && e != ERR_NOT_FOUND ? e : wrong;
    }
    return wrong;
}

/* The timer of a pause that can't be read comes again later; one that is no pause's goes. */
static enum error unpark(struct txn *txn, const struct due_entry *entry, uint64_t at_us, struct way *way)
{
    struct opened pause;
    enum error e = open_due(txn, entry, &pause);
    if (!e)
        return end_pause(txn, &pause.row, at_us, way);
    if (txn->error)
        return txn->error;
    if (e == ERR_NOT_FOUND) {
        due_clear(txn, entry->queue, entry->shard, entry->due_us, &entry->id);
        return txn->error;
    }
    due_move(txn, entry, job_later(at_us, JOB_SET_BY_US));
    way->damaged++;
    return txn->error;
}

static enum error apply_unpark(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct job_unpark *c = command;
    uint32_t most = c->most < JOB_UNPARK_MAX ? c->most : JOB_UNPARK_MAX, count = 0;
    struct way way = {.left = most};
    struct due_entry entries[PAGE_MAX];
    if (most == 0)
        return ERR_INVALID;
    (void)at_us;
    enum error e = due_scan_keys(txn, DUE_JOB_PAUSE, PAUSE_SHARD, c->wall_us, entries, PAGE_MAX, &count);
    for (uint32_t i = 0; i < count && way.left > 0 && !e; i++)
        e = unpark(txn, &entries[i], c->wall_us, &way);
    struct job_unparked unparked = {.came = most - way.left, .damaged = way.damaged};
    if (txn->writes > 0 && !txn->error)
        txn->error = e;
    if (!e)
        answer_add(answer, &unparked, sizeof(unparked));
    return e;
}

const struct command_class job_unpark_class = {
    .name = "job.unpark",
    .record = &job_unpark_record,
    .apply = apply_unpark,
    .code = 222,
};

/* ---- this one anyway ---- */

static enum error apply_run(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct job_run *c = command;
    struct job_texts texts;
    struct job job;
    (void)at_us;
    (void)answer;
    enum error e = job_open(txn, &c->id, &job, &texts);
    if (!e && job.state != JOB_QUEUED)
        e = ERR_CONFLICT;
    if (e || job.pass)
        return e;
    job_due_clear(txn, &job);
    job_queue_take(txn, &job);
    job.pass = 1;
    job_queue_put(txn, &job);
    job_write(txn, &job);
    return OK;
}

const struct command_class job_run_class = {
    .name = "job.run",
    .record = &job_run_record,
    .apply = apply_run,
    .code = 223,
};

/* ---- what must be true ---- */

void pause_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    const struct pause *pause = value;
    struct key own = pause_key(pause->scope, &pause->name),
               due = due_key(DUE_JOB_PAUSE, PAUSE_SHARD, pause->due_us, &pause->name);
    struct span bytes;
    uint8_t version;
    if (pause->scope >= PAUSE_SCOPE_COUNT || !span_equal(key, key_span(&own)))
        check_complain(check, "pauses: one of '%.*s' stands under another key", (int)pause->label.size,
                       (const char *)pause->label.bytes);
    if ((pause->ending || pause->until_us) != (pause->due_us != 0))
        check_complain(check, "pauses: that of '%.*s' has a wrong timer", (int)pause->label.size,
                       (const char *)pause->label.bytes);
    else if (pause->due_us && txn_get(txn, TABLE_DUE, key_span(&due), &version, &bytes) == ERR_NOT_FOUND)
        check_complain(check, "pauses: that of '%.*s' will never end", (int)pause->label.size,
                       (const char *)pause->label.bytes);
}

void pause_check_due(struct check *check, struct txn *txn, const struct due_entry *entry)
{
    struct pause pause;
    enum error e = read_pause(txn, (uint8_t)entry->row.kind, &entry->id, &pause);
    if (e == ERR_NOT_FOUND || (!e && pause.due_us != entry->due_us))
        check_complain(check, "due: a timer of a pause that isn't there, or has another one");
}
