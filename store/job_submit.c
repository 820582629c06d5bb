#include "store/job_submit.h"

#include "store/checksum.h"
#include "store/counter.h"
#include "store/job_queue.h"
#include "store/ledger.h"

#define job_submit_FIELD(name, TYPE, limit, since) RECORD_FIELD(job_submit, name, TYPE, limit, since)
RECORD_CLASS(job_submit, JOB_SUBMIT_FIELDS, 1);
#define job_submitted_FIELD(name, TYPE, limit, since) RECORD_FIELD(job_submitted, name, TYPE, limit, since)
RECORD_CLASS(job_submitted, JOB_SUBMITTED_FIELDS, 1);

#define SECOND_US UINT64_C(1000000)

static const struct span nothing = {NULL, 0};

/* ---- scopes of the ledger: a word and the client ---- */

#define SCOPE_SIZE (4 + 2 * (sizeof(struct uuid) + sizeof(struct digest)))
STATIC_ASSERT(SCOPE_SIZE <= LEDGER_SCOPE_MAX, "the longest is one of the ledger's");
struct scope {
    uint32_t size;
    char bytes[SCOPE_SIZE];
};

/* In hexadecimal: a scope is a text. */
static void scope_add(struct scope *scope, const uint8_t *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; i++) {
        scope->bytes[scope->size++] = digits[bytes[i] >> 4];
        scope->bytes[scope->size++] = digits[bytes[i] & 15];
    }
}

static void scope_begin(struct scope *scope, const char word[4], const struct uuid *client)
{
    memcpy(scope->bytes, word, 4);
    scope->size = 4;
    scope_add(scope, client->bytes, sizeof(client->bytes));
}

static struct span key_scope(const struct job_submit *c, struct scope *room)
{
    scope_begin(room, "job/", &c->client);
    return span_of(room->bytes, room->size);
}

/* And the body: several may come with one request's id, and each of them is known for itself. */
static struct span repeat_scope(const struct job_submit *c, struct scope *room)
{
    scope_begin(room, "req/", &c->client);
    scope_add(room, c->digest.bytes, sizeof(c->digest.bytes));
    return span_of(room->bytes, room->size);
}

/* ---- limits ---- */

enum error job_count(struct txn *txn, uint8_t state, int64_t *ret_count)
{
    return counter_read(txn, COUNTER_JOBS, span_of(&state, sizeof(state)), ret_count);
}

enum error job_count_active(struct txn *txn, int64_t *ret_count)
{
    int64_t sum = 0;
    enum error e = OK;
    for (uint8_t state = JOB_QUEUED; state <= JOB_RUNNING && !e; state++) {
        int64_t count = 0;
        e = job_count(txn, state, &count);
        sum += count;
    }
    *ret_count = sum;
    return e;
}

static enum error within_limits(struct txn *txn, const struct job_submit *c, bool queued)
{
    int64_t waiting = 0, active = 0;
    enum error e = queued ? job_count(txn, JOB_QUEUED, &waiting) : OK;
    if (!e && c->active_max)
        e = job_count_active(txn, &active);
    if (e)
        return e;
    if (queued && waiting >= (int64_t)c->queue_max)
        return ERR_QUEUE_FULL;
    return c->active_max && active >= (int64_t)c->active_max ? ERR_ACTIVE : OK;
}

/* ---- what was asked for before ---- */

static enum error answer_again(struct txn *txn, const struct ledger *row, struct answer *answer)
{
    struct uuid id;
    struct job job;
    uint8_t bytes[JOB_SUBMITTED_SIZE];
    if (row->answer.size != sizeof(id))
        return ERR_DAMAGED;
    memcpy(&id, row->answer.bytes, sizeof(id));
    enum error e = job_read(txn, &id, &job);
    if (e)
        return e;
    struct job_submitted submitted = {
        .id = id, .created_us = job.created_us, .state = job.state, .kind = job.kind};
    answer_add(answer, bytes, record_encode(&job_submitted_record, &submitted, bytes, sizeof(bytes)));
    return OK;
}

/* OK: answered. ERR_NOT_FOUND: it is new; *ret_repeat: and its request's id is to be noted. That id says nothing of a request
 * which has a key. */
static enum error find_before(struct txn *txn, const struct job_submit *c, uint64_t at_us,
                              struct answer *answer, bool *ret_repeat)
{
    struct scope room;
    struct ledger row;
    enum error e;
    *ret_repeat = false;
    if (c->key.size > 0) {
        e = ledger_find(txn, at_us, key_scope(c, &room), c->key, &c->digest, &row);
        if (e)
            return e;
        e = answer_again(txn, &row, answer);
        return e == ERR_NOT_FOUND ? ERR_DAMAGED : e; /* the job takes its key along */
    }
    if (c->repeat.size == 0)
        return ERR_NOT_FOUND;
    e = ledger_find(txn, at_us, repeat_scope(c, &room), c->repeat, &c->digest, &row);
    *ret_repeat = e == ERR_NOT_FOUND;
    if (!e)
        e = answer_again(txn, &row, answer);
    return e; /* one whose first has gone is another job */
}

/* ---- the definition ---- */

static enum error define(const struct job_submit *c, uint64_t created_us, struct job_definition *ret)
{
    struct work_definition work = {.kind = WORK_KIND_USER};
    *ret = (struct job_definition){.kind_name = nothing,
                                   .callback = c->callback,
                                   .trace = c->trace,
                                   .request_id = c->request_id,
                                   .payload = c->payload};
    if (c->kind == WORK_KIND_USER) {
        if (!work_kind_user(c->kind_name))
            return ERR_INVALID;
        work.payload_bytes = c->payload.size;
        ret->kind_name = c->kind_name;
    } else if (c->kind == WORK_KIND_NONE) {
        if (!work_definition_draw(created_us / 1000, c->should_fail_ppm, c->payload_max, c->runtime_max_ms,
                                  &work))
            return ERR_INVALID;
    } else if (!work_definition_of_kind(c->kind, c->runtime_max_ms, &work)) {
        return ERR_INVALID;
    }
    if (work.payload_bytes > c->payload_max)
        return ERR_INVALID;
    ret->kind = work.kind;
    ret->should_fail = work.should_fail;
    ret->duration_ms = work.duration_ms;
    ret->payload_size = work.payload_bytes;
    return OK;
}

/* The id of a kind is a keyed hash of its name, and most jobs are of a kind that was there a moment ago. What is remembered says
 * nothing that the name doesn't, so it may stay from one transaction to the next. */
static struct uuid work_of(struct txn *txn, uint8_t kind, struct span name)
{
    if (kind != WORK_KIND_USER || name.size > TXN_KIND_MAX)
        return job_work_id(txn->store, kind, name);
    ASSERT(name.size > 0); /* a user's kind has a name */
    struct txn_kind *known = &txn->kinds[checksum(0, name.bytes, name.size) % TXN_KINDS];
    if (!span_equal(span_of(known->name, known->size), name)) {
        known->id = job_work_id(txn->store, kind, name);
        known->size = name.size;
        memcpy(known->name, name.bytes, name.size);
    }
    return known->id;
}

/* ---- apply ---- */

static enum error next_numbers(struct txn *txn, uint64_t at_us, struct job *job)
{
    int64_t seq = 0, newest = 0;
    enum error e = counter_read(txn, COUNTER_JOB_SEQ, nothing, &seq);
    if (!e)
        e = counter_read(txn, COUNTER_JOB_NEWEST, nothing, &newest);
    /* Numbers never begin anew: while there are jobs, the row of the last one has gone. */
    if (!e && seq == 0 && txn_rows(txn, TABLE_CLIENT_JOBS) > 0)
        e = ERR_DAMAGED;
    if (e)
        return e;
    job->seq = job->place = (uint64_t)seq + 1;
    job->created_us = at_us < JOB_TIME_MAX ? at_us - at_us % 1000 : JOB_TIME_MAX;
    if (job->created_us < (uint64_t)newest)
        job->created_us = (uint64_t)newest;
    return OK;
}

static void note_numbers(struct txn *txn, const struct job *job)
{
    int64_t newest = 0;
    counter_add(txn, COUNTER_JOB_SEQ, nothing, 1);
    (void)counter_read(txn, COUNTER_JOB_NEWEST, nothing, &newest); /* next_numbers could */
    if ((int64_t)job->created_us > newest)
        counter_add(txn, COUNTER_JOB_NEWEST, nothing, (int64_t)job->created_us - newest);
}

static void note_ledger(struct txn *txn, const struct job_submit *c, uint64_t at_us, bool repeat,
                        struct job *job)
{
    struct span id = span_of(&c->id, sizeof(c->id));
    struct scope room;
    if (c->key.size > 0)
        job->ledger = ledger_put(txn, LEDGER_KEPT, at_us, key_scope(c, &room), c->key, &c->digest, id) + 1;
    if (repeat && ledger_room_spare(txn))
        ledger_put(txn, LEDGER_DAY, at_us, repeat_scope(c, &room), c->repeat, &c->digest, id);
}

static enum error write(struct txn *txn, const struct job_submit *c, uint64_t at_us, bool repeat,
                        struct job *job, const struct job_definition *definition)
{
    struct key key = key_of_uuid(&job->id), by_client = client_job_key(&job->client, job->seq);
    enum error e = job_begin(txn, job, job->created_us);
    if (e)
        return e;
    note_numbers(txn, job);
    note_ledger(txn, c, at_us, repeat, job);
    if (job->execution_us > at_us) {
        job_due_set(txn, job, job->execution_us);
    } else {
        e = job_move_on(txn, job, JOB_ENQUEUE, job->created_us, nothing);
        if (e)
            return e;
        job->queued_us = job->updated_us;
        job_queue_put(txn, job);
    }
    txn_add(txn, TABLE_JOB_DEFINITIONS, key_span(&key), definition);
    txn_add(txn, TABLE_CLIENT_JOBS, key_span(&by_client), &(struct client_job){.id = job->id});
    txn_add(txn, TABLE_JOBS, key_span(&key), job);
    return OK;
}

/* That a time is over is asked here, behind the question whether the job is there: a repeat may come later than its time. */
static bool valid(const struct job_submit *c, uint64_t at_us)
{
    static const struct uuid none = {{0}};
    return !uuid_equal(&c->id, &none) && c->type < JOB_TYPE_COUNT && c->priority <= JOB_PRIORITY_MAX &&
           (c->type == JOB_DEFERRED) == (c->execution_us != 0) &&
           (c->type != JOB_DEFERRED || c->execution_us > at_us || at_us - c->execution_us < JOB_LATE_US);
}

/* What is to come is so at a full second (AMB-J-44). */
static uint64_t scheduled(uint64_t execution_us, uint64_t at_us)
{
    uint64_t beyond = execution_us % SECOND_US;
    return execution_us <= at_us || beyond == 0 ? execution_us : job_later(execution_us, SECOND_US - beyond);
}

static enum error acceptable(struct txn *txn, const struct job_submit *c, uint64_t at_us,
                             const struct job *job)
{
    struct job there;
    enum error e = job_read(txn, &c->id, &there);
    if (e != ERR_NOT_FOUND)
        return e ? e : ERR_EXISTS;
    e = within_limits(txn, c, c->execution_us <= at_us);
    if (!e && c->key.size > 0 && !ledger_room(txn))
        e = ERR_LIMIT;
    return e ? e : job_tellable(txn, job);
}

static enum error apply_submit(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct job_submit *c = command;
    struct job job = {.id = c->id,
                      .client = c->client,
                      .type = c->type,
                      .priority = c->priority,
                      .told = c->callback.size > 0,
                      .attempt = 1,
                      .execution_us = scheduled(c->execution_us, at_us)};
    struct job_definition definition;
    uint8_t bytes[JOB_SUBMITTED_SIZE];
    bool repeat = false;
    enum error e = find_before(txn, c, at_us, answer, &repeat);
    if (e != ERR_NOT_FOUND)
        return e;
    e = valid(c, at_us) ? next_numbers(txn, at_us, &job) : ERR_INVALID;
    if (!e)
        e = define(c, job.created_us, &definition);
    if (!e)
        e = acceptable(txn, c, at_us, &job);
    if (e)
        return e;
    job.kind = definition.kind;
    job.work = work_of(txn, job.kind, definition.kind_name);
    e = write(txn, c, at_us, repeat, &job, &definition);
    if (e)
        return e;
    struct job_submitted submitted = {
        .id = job.id, .created_us = job.created_us, .state = job.state, .made = 1, .kind = job.kind};
    answer_add(answer, bytes, record_encode(&job_submitted_record, &submitted, bytes, sizeof(bytes)));
    return OK;
}

static void announce_submit(const struct txn *txn, const void *command)
{
    const struct job_submit *c = command;
    struct scope room;
    if (c->key.size > 0)
        ledger_expect(txn, key_scope(c, &room), c->key);
}

const struct command_class job_submit_class = {
    .name = "job.submit",
    .record = &job_submit_record,
    .apply = apply_submit,
    .announce = announce_submit,
    .code = 200,
};
