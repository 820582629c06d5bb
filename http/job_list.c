#include "http/job_list.h"

#include "http/commit.h"
#include "http/job_json.h"
#include "http/job_refusal.h"
#include "http/paging.h"
#include "http/rendered.h"
#include "store/store.h"
#include "store/view.h"

enum { LIST_OF_CLIENT = 200, LIST_OF_ALL = 202 };

struct listing {
    uint32_t table;     /* TABLE_CLIENT_JOBS or TABLE_JOBS */
    struct uuid client; /* TABLE_CLIENT_JOBS: whose */
    uint16_t list;
    bool operators;
    uint8_t state, outcome, type; /* numbers, from 1 on; 0: any */
    struct key at;                /* of the row that was looked at last; size 0: none yet */
    uint32_t looked, left;        /* jobs looked at; items that still fit */
    bool more, beyond;
    struct uuid *chosen; /* as many as `left` was: who is on the page */
    uint32_t count, shown;
    bool complete;         /* all of them are chosen */
    struct rendered *some; /* of them, behind those that were shown before */
};

/* ---- in a view ---- */

static bool passes(const struct listing *l, const struct job *job)
{
    return (!l->state || job->state == l->state - 1) && (!l->type || job->type == l->type - 1) &&
           (!l->outcome || job->state == l->outcome - 1);
}

static enum error render(struct txn *txn, const struct job *job, struct listing *l, bool *ret_full)
{
    struct job_definition d;
    enum error e = job_read_definition(txn, &job->id, &d);
    if (e && e != ERR_NOT_FOUND)
        return e;
    struct json *json = rendered_begin(l->some);
    json_object_begin(json);
    if (l->operators)
        job_json_write_id(json, "client_id", &job->client);
    job_json_write_members(json, job, e ? NULL : &d);
    json_object_end(json);
    *ret_full = !rendered_end(l->some);
    l->beyond |= job->kind == WORK_KIND_USER;
    return OK;
}

static enum error read_row(struct scan *scan, const struct listing *l, struct job *ret)
{
    struct client_job row;
    if (l->table == TABLE_JOBS)
        return scan_read(scan, ret);
    enum error e = scan_read(scan, &row);
    return e ? e : job_read(scan->txn, &row.id, ret);
}

static enum error choose_one(struct scan *scan, struct listing *l)
{
    struct job job;
    enum error e = read_row(scan, l, &job);
    if (e)
        return e;
    if (passes(l, &job)) {
        l->chosen[l->count++] = job.id;
        l->left--;
    }
    l->at.size = 0;
    key_add(&l->at, scan->key.bytes, scan->key.size);
    l->looked++;
    return OK;
}

/* Behind all that there is, or where the last view ended. */
static struct key from_of(const struct listing *l)
{
    struct key key = l->at;
    if (key.size)
        return key;
    if (l->table == TABLE_CLIENT_JOBS)
        key = key_of_uuid(&l->client);
    while (key.size <
           (l->table == TABLE_CLIENT_JOBS ? sizeof(struct uuid) + sizeof(uint64_t) : sizeof(struct uuid)))
        key_add_u8(&key, 0xff);
    return key;
}

/* As many as may be looked at in one view. */
static enum error choose_some(struct txn *txn, struct listing *l)
{
    struct key from = from_of(l);
    uint32_t prefix = l->table == TABLE_CLIENT_JOBS ? sizeof(struct uuid) : 0,
             chunk = l->looked + JOBS_SCAN_CHUNK;
    struct scan scan = txn_scan(txn, l->table, key_span(&from), prefix, SCAN_DOWN);
    enum error e = OK;
    l->more = false;
    while (!e && !l->more && scan_next(&scan)) {
        if (l->at.size && span_equal(scan.key, key_span(&l->at))) /* where the last one ended */
            continue;
        if (l->left == 0 || l->looked == chunk || l->looked == JOBS_SCAN_MAX)
            l->more = true;
        else
            e = choose_one(&scan, l);
    }
    enum error end = scan_end(&scan);
    l->complete = !l->more || l->left == 0 || l->looked == JOBS_SCAN_MAX;
    return e ? e : end;
}

/* As many of the chosen as fit. */
static enum error render_some(struct txn *txn, struct listing *l)
{
    enum error e = OK;
    bool full = false;
    while (!e && !full && l->shown < l->count) {
        struct job job;
        e = job_read(txn, &l->chosen[l->shown], &job);
        if (!e && passes(l, &job))
            e = render(txn, &job, l, &full);
        else if (e == ERR_NOT_FOUND)
            e = OK;
        l->shown += !full;
    }
    return e;
}

static enum error list_in_view(struct listing *l)
{
    rendered_clear(l->some);
    struct view *view = view_open(store_here());
    enum error e = view ? OK : ERR_UNAVAILABLE;
    if (!e && !l->complete)
        e = choose_some(&view->txn, l);
    if (!e && l->complete)
        e = render_some(&view->txn, l);
    if (view)
        view_close(view);
    commit_note_read(e);
    return e;
}

/* ---- the page ---- */

/* Everything that a cursor depends on. */
static uint64_t filter_of(const struct listing *l)
{
    uint8_t bytes[sizeof(l->client) + 4];
    memcpy(bytes, l->client.bytes, sizeof(l->client));
    bytes[sizeof(l->client)] = l->state;
    bytes[sizeof(l->client) + 1] = l->outcome;
    bytes[sizeof(l->client) + 2] = l->type;
    bytes[sizeof(l->client) + 3] = l->table == TABLE_JOBS;
    return paging_filter(bytes, sizeof(bytes));
}

static bool take(const struct request *q, struct response *r, struct listing *l)
{
    return paging_take_word(q, r, "state", job_state_name, JOB_STATE_COUNT, &l->state) &&
           paging_take_word(q, r, "outcome", job_outcome_name, JOB_STATE_COUNT, &l->outcome) &&
           paging_take_word(q, r, "type", job_type_name, JOB_TYPE_COUNT, &l->type) &&
           paging_take_limit(q, r, JOBS_PAGE_USUAL, l->operators ? JOBS_ALL_MAX : JOBS_PAGE_MAX, &l->left);
}

static void write_page(const struct request *q, struct response *r, struct listing *l, uint64_t filter)
{
    struct json json;
    struct paging_next next;
    const struct key none = {.size = 0};
    paging_go_on(q, r, l->operators ? "after" : "cursor", l->list, filter, l->more ? &l->at : &none, &next);
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    json_key(&json, l->operators ? "jobs" : "items");
    json_array_begin(&json);
    rendered_write(l->some, &json);
    while (l->shown < l->count && !r->failed) {
        enum error e = list_in_view(l);
        if (e)
            response_fail(r, e);
        rendered_write(l->some, &json);
    }
    json_array_end(&json);
    paging_write_next(&json, l->operators ? "next" : "next_cursor", &next);
    json_object_end(&json);
    r->beyond |= l->beyond && !l->operators;
}

static void serve(const struct request *q, struct response *r, struct listing *l)
{
    uint64_t filter = filter_of(l);
    uint8_t size = (uint8_t)(sizeof(struct uuid) + (l->table == TABLE_CLIENT_JOBS ? sizeof(uint64_t) : 0));
    if (!paging_take_cursor(q, r, l->operators ? "after" : "cursor", l->list, filter, size, &l->at))
        return;
    l->some = rendered_new();
    l->chosen = actor_alloc(l->left * sizeof(*l->chosen));
    enum error e = OK;
    while (!e && !l->complete)
        e = list_in_view(l);
    if (e)
        job_refuse(r, e);
    else
        write_page(q, r, l, filter);
}

void job_list_serve(const struct request *q, struct response *r)
{
    struct listing l = {.table = TABLE_CLIENT_JOBS, .client = q->identity.client, .list = LIST_OF_CLIENT};
    if (take(q, r, &l))
        serve(q, r, &l);
}

void job_list_serve_all(const struct request *q, struct response *r)
{
    struct listing l = {.table = TABLE_JOBS, .list = LIST_OF_ALL, .operators = true};
    bool client = false;
    if (!take(q, r, &l) || !paging_take_id(q, r, "client", &l.client, &client))
        return;
    if (client)
        l.table = TABLE_CLIENT_JOBS;
    serve(q, r, &l);
}
