#include "chaos/errand.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chaos/brief.h"
#include "chaos/page.h"
#include "chaos/problem.h"
#include "chaos/verdict.h"
#include "runtime/json.h"

#define MS UINT64_C(1000000)
#define S  (1000 * MS)

enum { POLL_FIRST_MS = 10, POLL_MOST_MS = 1000, POLL_LEAST_MS = 3 };

static const char *const type_names[] = {"EXECUTE", "DEFERRED", "EMIT_EVENT"};

const char *type_name(enum job_type type)
{
    return type_names[type];
}

static bool lucky(struct errand *e, uint32_t percent)
{
    return dice_chance(&e->dice, percent * 10);
}

/* A call about this job: GET, POST, ... of /v1/jobs/ID and what stands behind that. */
static int ask(struct errand *e, struct caller *caller, enum time operation, const char *behind,
               struct letter *ret_answer)
{
    char path[160];
    const char *method = operation == TIME_CANCEL || operation == TIME_RETRY ? "POST" : "GET";
    snprintf(path, sizeof(path), "/v1/jobs/%s%s", e->id, behind);
    struct call call = {.operation = operation, .method = method, .path = path};
    if (method[0] == 'P' && lucky(e, 50))
        call.body = span_text("{}"); /* as good as none */
    return caller_call(caller, &call, ret_answer);
}

/* ---- submit ---- */

static void write_time(struct json *json, uint64_t ms, bool fraction)
{
    char text[40];
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    size_t size = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    if (fraction)
        size += (size_t)snprintf(text + size, sizeof(text) - size, ".%03u", (unsigned)(ms % 1000));
    snprintf(text + size, sizeof(text) - size, "Z");
    json_string(json, text);
}

static void write_body(struct errand *e)
{
    struct json_sink sink;
    struct json json;
    json_sink_init(&sink, e->body, sizeof(e->body) - 1, NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "type", string, type_name(e->type));
    if (e->asked != KIND_DRAWN)
        JSON_MEMBER(&json, "work_kind", string, kind_name(e->asked));
    if (e->execution_ms) {
        json_key(&json, "execution_at");
        write_time(&json, e->execution_ms, e->execution_ms % 1000 != 0);
    } else if (lucky(e, 20)) {
        json_key(&json, "execution_at");
        json_null(&json);
    }
    if (e->callback)
        JSON_MEMBER(&json, "callback", string, e->callback->url);
    if (e->key[0] && e->key_in_body)
        JSON_MEMBER(&json, "idempotency_key", string, e->key);
    json_object_end(&json);
    if (json_end(&json) != JSON_OK)
        abort();
    e->body[sink.length] = 0;
}

static int send_submit(struct errand *e, const char *body, struct letter *ret_answer)
{
    char header[160] = "";
    if (e->key[0] && !e->key_in_body)
        snprintf(header, sizeof(header), "Idempotency-Key: %s\r\n", e->key);
    else if (e->key[0] && lucky(e, 30)) /* the body's counts */
        snprintf(header, sizeof(header), "Idempotency-Key: not-%s\r\n", e->key);
    const struct call call = {.operation = TIME_SUBMIT,
                              .method = "POST",
                              .path = "/v1/jobs",
                              .headers = header,
                              .body = span_text(body)};
    return caller_call(e->caller, &call, ret_answer);
}

/* The three members of a 202; false: they aren't that. */
static bool read_accepted(const struct letter *answer, struct uuid *ret_id, int *ret_state,
                          uint64_t *ret_created_ms)
{
    const struct page *page = page_read(0, answer_body(answer));
    const struct json_node *root = page ? page_root(page) : NULL;
    char state[16] = "";
    bool good = page && page_members(root) == 3 && page_uuid(page, root, "job_id", ret_id) &&
                page_text(page, root, "state", state, sizeof(state)) &&
                page_time(page, root, "created_at", ret_created_ms);
    *ret_state = state_of(state);
    return VERDICT(ACCEPTED, good && *ret_state != STATE_NONE, "202 with %.300s", answer->body);
}

static void open_entry(struct errand *e)
{
    struct entry *there;
    e->entry = book_add(&e->uuid, &there);
    uuid_format(&e->uuid, e->id);
    if (!VERDICT(DISTINCT, e->entry != NULL, "%s is the id of two jobs", e->id)) {
        e->entry = there;
        return;
    }
    tally(COUNT_SUBMITTED);
    e->entry->caller = e->caller->number;
    e->entry->asked = e->entry->kind = (uint8_t)e->asked;
    e->entry->state = (uint8_t)e->state;
    e->entry->created_ms = e->created_ms;
    e->entry->at_once = e->execution_ms == 0;
}

bool errand_adopt(struct errand *e, const struct letter *answer)
{
    if (!e->submitted)
        e->submitted = strand_now();
    e->kind = e->asked == KIND_DRAWN ? -1 : e->asked;
    e->attempt = 1;
    if (!read_accepted(answer, &e->uuid, &e->state, &e->created_ms))
        return false;
    VERDICT(ACCEPTED, e->type != TYPE_DEFERRED || e->near || e->state == STATE_CREATED || brief.restarts,
            "%s is accepted as %s", type_name(e->type), state_name(e->state));
    open_entry(e);
    return true;
}

bool errand_submit(struct errand *e)
{
    struct letter answer;
    write_body(e);
    e->submitted = strand_now();
    int status = send_submit(e, e->body, &answer);
    e->late = e->brink && status == 400 && strand_now() - e->submitted > ERRAND_BRINK_MS * MS;
    bool good =
        !e->late &&
        VERDICT(ACCEPTED, status == 202, "%s: %d %.300s", e->body, status, answer.body ? answer.body : "") &&
        errand_adopt(e, &answer);
    letter_free(&answer);
    return good;
}

void errand_be_refused(struct errand *e)
{
    struct letter answer;
    char code[PROBLEM_CODE_SIZE];
    write_body(e);
    int status = send_submit(e, e->body, &answer);
    problem_code(&answer, code);
    VERDICT(INVALID, status == 400 && strcmp(code, "RFA_JOB_VALIDATION_FAILED") == 0, "%s: %d %s", e->body,
            status, code);
    letter_free(&answer);
}

void errand_submit_again(struct errand *e)
{
    struct letter answer;
    struct uuid id = {0};
    uint64_t created = 0;
    int state = STATE_NONE, status = send_submit(e, e->body, &answer);
    if (VERDICT(REPEATED, status == 202 && read_accepted(&answer, &id, &state, &created), "again: %d %.200s",
                status, answer.body ? answer.body : ""))
        VERDICT(REPEATED, uuid_equal(&id, &e->uuid) && created == e->created_ms,
                "%s again is another job: %.200s", e->id, answer.body);
    tally(COUNT_REPEATS);
    letter_free(&answer);
}

void errand_submit_otherwise(struct errand *e)
{
    struct letter answer;
    char body[sizeof(e->body) + 32], code[PROBLEM_CODE_SIZE];
    /* Unknown members are passed over, and count (AMB-J-57). */
    snprintf(body, sizeof(body), "{\"other\":1,%s", e->body + 1);
    int status = send_submit(e, body, &answer);
    problem_code(&answer, code);
    VERDICT(REPEATED, status == 409 && strcmp(code, "RFA_EXEC_IDEMPOTENCY_CONFLICT") == 0,
            "the key of %s with another body: %d %s", e->id, status, code);
    letter_free(&answer);
}

/* ---- a look ---- */

static const char *outcome_of(int state)
{
    return state == STATE_SUCCEEDED ? "SUCCESS" : state == STATE_FAILED ? "FAILED" : "CANCELED";
}

static void judge_definition(struct errand *e, const struct page *page, const struct json_node *root)
{
    const struct json_node *definition = page_member(page, root, "definition"),
                           *fails = page_member(page, definition, "should_fail");
    char name[64] = "";
    uint64_t duration = 0, payload = 0;
    bool good = page_text(page, definition, "work_kind", name, sizeof(name)) &&
                page_number(page, definition, "duration_ms", &duration) &&
                page_number(page, definition, "payload_size", &payload) &&
                (page_is(fails, JSON_TRUE) || page_is(fails, JSON_FALSE)) && page_members(definition) == 4;
    int kind = kind_of(name);
    if (!VERDICT(DEFINITION, good && kind >= 0, "%s has the definition of '%s'", e->id, name))
        return;
    if (e->asked == KIND_DRAWN) {
        int must = kind_drawn_at(e->created_ms);
        VERDICT(DRAWN, kind == must, "%s of %llu was drawn as %s, and must be %s", e->id,
                (unsigned long long)e->created_ms, name, must < 0 ? "none" : kind_name(must));
        VERDICT(DRAWN, duration >= 500 && duration <= 120000 && payload >= 1024 && payload <= 262144,
                "%s was drawn out of bounds: %llu ms, %llu bytes", e->id, (unsigned long long)duration,
                (unsigned long long)payload);
        e->entry->drawn_known = true;
    } else {
        VERDICT(DEFINITION, kind == e->asked, "%s was asked for, and is %s", kind_name(e->asked), name);
    }
    const struct kind_row *row = kind_row(kind);
    VERDICT(DEFINITION,
            duration == kind_duration_ms(kind) && payload == row->payload &&
                page_is(fails, row->fails ? JSON_TRUE : JSON_FALSE),
            "%s has %llu ms, %llu bytes, %s", name, (unsigned long long)duration, (unsigned long long)payload,
            page_is(fails, JSON_TRUE) ? "fails" : "doesn't fail");
    e->kind = kind;
    e->entry->kind = (uint8_t)kind;
}

static void judge_outcome(struct errand *e, const struct page *page, const struct json_node *root)
{
    char outcome[16];
    const struct json_node *failure = page_member(page, root, "failure");
    bool named = page_text(page, root, "outcome", outcome, sizeof(outcome));
    VERDICT(OUTCOME,
            state_final(e->state) ? named && strcmp(outcome, outcome_of(e->state)) == 0
                                  : page_is(page_member(page, root, "outcome"), JSON_NULL),
            "%s is %s with the outcome '%s'", e->id, state_name(e->state), outcome);
    e->failure[0] = 0;
    if (e->state != STATE_FAILED)
        return;
    VERDICT(OUTCOME,
            page_text(page, failure, "reason", e->failure, sizeof(e->failure)) &&
                page_member(page, failure, "retryable"),
            "%s is FAILED without a reason", e->id);
}

static void judge_job(struct errand *e, const struct page *page, const struct json_node *root)
{
    char id[64], type[16], state[16], callback[200];
    uint64_t created = 0, execution = 0;
    const struct json_node *at = page_member(page, root, "execution_at"),
                           *call = page_member(page, root, "callback");
    bool good = page_text(page, root, "job_id", id, sizeof(id)) && strcmp(id, e->id) == 0 &&
                page_text(page, root, "type", type, sizeof(type)) && strcmp(type, type_name(e->type)) == 0 &&
                page_text(page, root, "state", state, sizeof(state)) &&
                page_time(page, root, "created_at", &created) && created == e->created_ms &&
                page_time(page, root, "updated_at", &e->updated_ms) && e->updated_ms >= created &&
                page_number(page, root, "attempt", &e->attempt) && e->attempt >= 1 &&
                e->attempt <= brief.retries + 1 && page_member(page, root, "outcome");
    bool timed = e->execution_ms ? page_time(page, root, "execution_at", &execution) &&
                                       execution >= e->execution_ms && execution < e->execution_ms + 1000
                                 : page_is(at, JSON_NULL);
    bool called = e->callback ? page_text(page, root, "callback", callback, sizeof(callback)) &&
                                    strcmp(callback, e->callback->url) == 0
                              : page_is(call, JSON_NULL);
    if (!VERDICT(SHAPE, good && timed && called && state_of(state) != STATE_NONE, "%s: %.*s", e->body, 400,
                 (const char *)page->json.text.bytes))
        return;
    e->state = state_of(state);
    e->entry->state = (uint8_t)e->state;
    judge_definition(e, page, root);
    judge_outcome(e, page, root);
}

bool errand_look(struct errand *e)
{
    struct letter answer;
    int status = ask(e, e->caller, TIME_GET, "", &answer);
    const struct page *page = status == 200 ? page_read(0, answer_body(&answer)) : NULL;
    if (VERDICT(SHAPE, page != NULL, "GET %s: %d %.200s", e->id, status, answer.body ? answer.body : ""))
        judge_job(e, page, page_root(page));
    letter_free(&answer);
    return page != NULL;
}

/* ---- waiting ---- */

/* When a job of its kind would be done if nothing held it up. */
static uint64_t done_ns(const struct errand *e)
{
    uint64_t duration = e->kind < 0 ? 0 : kind_duration_ms(e->kind);
    return (uint64_t)((double)duration / brief.speed * (double)MS);
}

/* A share of what it has taken so far: some dozen looks for a job that takes a minute. */
static uint64_t next_pause(const struct errand *e, bool running)
{
    uint64_t pause = (strand_now() - e->submitted) / (running ? 20 : 4);
    return pause > POLL_MOST_MS * MS    ? POLL_MOST_MS * MS
           : pause < POLL_LEAST_MS * MS ? POLL_LEAST_MS * MS
                                        : pause;
}

static uint64_t moved; /* when any job was seen to have changed */

bool errand_await(struct errand *e, bool running)
{
    uint64_t pause = running ? POLL_LEAST_MS * MS : POLL_FIRST_MS * MS + done_ns(e), changed = strand_now();
    int state = e->state;
    uint64_t patience = brief.patience_s * S + done_ns(e);
    if (!e->updated_ms && state_final(e->state)) /* said by the 202 of a submit that was sent again */
        return errand_look(e);
    while (!state_final(e->state) && !(running && e->state == STATE_RUNNING)) {
        strand_sleep(pause);
        if (!errand_look(e))
            return false;
        if (e->state != state)
            state = e->state, changed = moved = strand_now();
        /* A scheduled job may wait as long as it was asked to, and a queued one as long as others go first. */
        if (e->state == STATE_CREATED && e->execution_ms)
            changed = strand_now();
        if (e->state == STATE_QUEUED && moved > changed)
            changed = moved;
        if (!VERDICT(STUCK, strand_now() - changed <= patience, "%s (%s) has been %s for %llu s", e->id,
                     kind_name(e->kind < 0 ? KIND_DRAWN : e->kind), state_name(e->state),
                     (unsigned long long)(patience / S)))
            return false;
        pause = next_pause(e, running);
    }
    return true;
}

/* ---- the partner's actions ---- */

/* Whose answer holds job_id, state, updated_at. */
static int read_action(struct errand *e, const struct letter *answer, enum check check, uint64_t *ret_attempt,
                       uint64_t *ret_updated)
{
    const struct page *page = page_read(0, answer_body(answer));
    const struct json_node *root = page ? page_root(page) : NULL;
    char id[64], state[16];
    bool good = page && page_text(page, root, "job_id", id, sizeof(id)) && strcmp(id, e->id) == 0 &&
                page_text(page, root, "state", state, sizeof(state)) &&
                page_time(page, root, "updated_at", ret_updated) &&
                (!ret_attempt || page_number(page, root, "attempt", ret_attempt)) &&
                page_members(root) == (ret_attempt ? 4u : 3u);
    return VERDICT_OF(check, good, "%s: %.200s", e->id, answer->body) ? state_of(state) : STATE_NONE;
}

/* Which state it was canceled in. */
static void tally_cancel(const struct event *canceled)
{
    static const enum count counts[] = {[STATE_CREATED] = COUNT_CANCELED_CREATED,
                                        [STATE_QUEUED] = COUNT_CANCELED_QUEUED,
                                        [STATE_ASSIGNED] = COUNT_CANCELED_ASSIGNED,
                                        [STATE_RUNNING] = COUNT_CANCELED_RUNNING};
    if (canceled && canceled->prev <= STATE_RUNNING)
        tally(counts[canceled->prev]);
}

int errand_cancel(struct errand *e)
{
    struct letter answer, again;
    uint64_t updated = 0, updated_again = 0;
    int status = ask(e, e->caller, TIME_CANCEL, "/cancel", &answer), state = STATE_NONE;
    if (VERDICT(CANCELED, status == 200, "cancel %s: %d %.200s", e->id, status,
                answer.body ? answer.body : ""))
        state = read_action(e, &answer, CHECK_CANCELED, NULL, &updated);
    VERDICT(CANCELED, state_final(state), "%s is %s after its cancel", e->id, state_name(state));
    status = ask(e, e->caller, TIME_CANCEL, "/cancel", &again);
    bool same = status == 200 && answer.body && strcmp(answer.body, again.body) == 0;
    VERDICT(CANCELED, same, "cancel %s again: %d %.200s", e->id, status, again.body ? again.body : "");
    if (same)
        (void)read_action(e, &again, CHECK_CANCELED, NULL, &updated_again);
    letter_free(&answer);
    letter_free(&again);
    if (state != STATE_CANCELED)
        tally(COUNT_CANCELED_LATE);
    return state;
}

/* A retry while it is on its way changes nothing. It may have failed again meanwhile, and then it is another one. */
static void retry_again(struct errand *e, uint64_t attempt)
{
    struct letter answer;
    uint64_t now_at = 0, updated;
    int status = ask(e, e->caller, TIME_RETRY, "/retry", &answer);
    if (status == 200) {
        int state = read_action(e, &answer, CHECK_RETRIED, &now_at, &updated);
        VERDICT(RETRIED, now_at == attempt || (now_at == attempt + 1 && state == STATE_QUEUED),
                "retry %s again: attempt %llu after %llu, %s", e->id, (unsigned long long)now_at,
                (unsigned long long)attempt, state_name(state));
    } else {
        VERDICT(RETRIED, status == 409 && attempt == brief.retries + 1, "retry %s again: %d %.200s", e->id,
                status, answer.body ? answer.body : "");
    }
    letter_free(&answer);
}

/* No retries are left. */
static void judge_exhausted(struct errand *e, const struct letter *answer)
{
    char code[PROBLEM_CODE_SIZE];
    problem_code(answer, code);
    VERDICT(EXHAUSTED, answer->status == 409 && strcmp(code, "RFA_JOB_CONFLICT") == 0,
            "retry %llu of %s: %d %s", (unsigned long long)e->attempt, e->id, answer->status, code);
}

bool errand_retry(struct errand *e)
{
    struct letter answer;
    uint64_t attempt = 0, updated;
    uint64_t before = e->attempt;
    int status = ask(e, e->caller, TIME_RETRY, "/retry", &answer), state = STATE_NONE;
    bool exhausted = before == brief.retries + 1;
    if (exhausted)
        judge_exhausted(e, &answer);
    else if (VERDICT(RETRIED, status == 200, "retry %s: %d %.200s", e->id, status,
                     answer.body ? answer.body : ""))
        state = read_action(e, &answer, CHECK_RETRIED, &attempt, &updated);
    letter_free(&answer);
    if (exhausted || state == STATE_NONE)
        return false;
    /* With --restarts the answer to an earlier one may have been lost. */
    VERDICT(RETRIED, brief.restarts ? attempt > before : state == STATE_QUEUED && attempt == before + 1,
            "retry %s: %s, attempt %llu after %llu", e->id, state_name(state), (unsigned long long)attempt,
            (unsigned long long)before);
    tally(COUNT_RETRIES);
    e->state = state, e->attempt = attempt;
    if (lucky(e, 30))
        retry_again(e, attempt);
    return true;
}

/* ---- the last look ---- */

static struct trodden trodden(const struct errand *e)
{
    return (struct trodden){.job = e->uuid,
                            .kind = e->kind,
                            .created_ms = e->created_ms,
                            .execution_ms = e->type == TYPE_DEFERRED ? e->execution_ms : 0};
}

static void judge_report_times(const struct errand *e, const struct page *page, const struct json_node *root)
{
    const struct trail *trail = &e->trail;
    const struct event *running = trail_last(trail, EVENT_RUNNING), *last = &trail->events[trail->count - 1],
                       *retried = trail_last(trail, EVENT_RETRIED);
    uint64_t started = 0, finished = 0, duration = 1;
    bool ran = running && (!retried || running > retried); /* in its latest attempt */
    bool good = page_time(page, root, "finished_at", &finished) && finished == last->at_ms &&
                page_number(page, root, "duration_ms", &duration);
    if (ran)
        good = good && page_time(page, root, "started_at", &started) && started == running->at_ms &&
               duration == finished - started;
    else
        good = good && page_is(page_member(page, root, "started_at"), JSON_NULL) && duration == 0;
    VERDICT(REPORT, good, "%s: started %llu, finished %llu, took %llu ms; by its events %llu to %llu", e->id,
            (unsigned long long)started, (unsigned long long)finished, (unsigned long long)duration,
            ran ? (unsigned long long)running->at_ms : 0, (unsigned long long)last->at_ms);
}

/* True: the trail is that of the report. */
static bool judge_report(struct errand *e, const struct letter *answer)
{
    const struct page *page = page_read(0, answer_body(answer));
    const struct json_node *root = page ? page_root(page) : NULL;
    struct trodden job = trodden(e);
    char id[64], outcome[16];
    bool good = page && page_text(page, root, "job_id", id, sizeof(id)) && strcmp(id, e->id) == 0 &&
                page_text(page, root, "outcome", outcome, sizeof(outcome)) &&
                strcmp(outcome, outcome_of(e->state)) == 0;
    if (!VERDICT(REPORT, good, "%s: %.300s", e->id, answer->body) ||
        !trail_read(page, page_member(page, root, "events"), &job, &e->trail))
        return false;
    const struct event *last = &e->trail.events[e->trail.count - 1];
    VERDICT(SEQUENCE, last->next == e->state && e->trail.attempts == e->attempt,
            "%s is %s at attempt %llu; its events end in %s at %u", e->id, state_name(e->state),
            (unsigned long long)e->attempt, state_name(last->next), e->trail.attempts);
    judge_report_times(e, page, root);
    return true;
}

/* Whether the list of events is what the report has; in pages of `limit`. */
static void judge_events(struct errand *e, uint32_t limit)
{
    char cursor[520] = "", behind[640];
    uint32_t seen = 0;
    bool more = true, good = true;
    while (more && good) {
        struct letter answer;
        struct event event;
        snprintf(behind, sizeof(behind), "/events?limit=%u%s%s", limit, cursor[0] ? "&cursor=" : "", cursor);
        int status = ask(e, e->caller, TIME_EVENTS, behind, &answer);
        const struct page *page = status == 200 ? page_read(0, answer_body(&answer)) : NULL;
        const struct json_node *root = page ? page_root(page) : NULL,
                               *items = page_member(page, root, "items");
        good = page && page_is(items, JSON_ARRAY) && items->count <= limit;
        for (const struct json_node *n = good ? json_first(&page->json, items) : NULL; n && good;
             n = json_after(&page->json, items, n), seen++)
            good = seen < e->trail.count && trail_event_read(page, n, false, &event) &&
                   event.print == e->trail.events[seen].print;
        more = good && page_text(page, root, "next_cursor", cursor, 512);
        VERDICT(KEPT, good, "%s%s: %d, event %u is not the report's", e->id, behind, status, seen);
        letter_free(&answer);
    }
    VERDICT(KEPT, !good || seen == e->trail.count, "%s has %u events in its list, %u in its report", e->id,
            seen, e->trail.count);
}

static void judge_reads(struct errand *e, enum time operation, const char *behind)
{
    struct letter one, two;
    int status = ask(e, e->caller, operation, behind, &one),
        again = ask(e, e->caller, operation, behind, &two);
    VERDICT(READS, status == 200 && again == 200 && strcmp(one.body, two.body) == 0,
            "GET %s%s: %d %.200s and then %d %.200s", e->id, behind, status, one.body ? one.body : "", again,
            two.body ? two.body : "");
    letter_free(&one);
    letter_free(&two);
}

/* Cancel of what is final, and retry of what has not failed. */
static void judge_final_actions(struct errand *e)
{
    struct letter answer;
    uint64_t updated = 0, attempt = 0;
    int status = ask(e, e->caller, TIME_CANCEL, "/cancel", &answer);
    int state = status == 200 ? read_action(e, &answer, CHECK_CANCELED, NULL, &updated) : STATE_NONE;
    VERDICT(CANCELED, state == e->state && updated == e->updated_ms,
            "cancel of %s, which was %s of %llu: %d %.200s", e->id, state_name(e->state),
            (unsigned long long)e->updated_ms, status, answer.body ? answer.body : "");
    letter_free(&answer);
    if (e->state == STATE_FAILED)
        return;
    status = ask(e, e->caller, TIME_RETRY, "/retry", &answer);
    state = status == 200 ? read_action(e, &answer, CHECK_RETRIED, &attempt, &updated) : STATE_NONE;
    VERDICT(RETRIED, state == e->state && attempt == e->attempt && updated == e->updated_ms,
            "retry of %s, which was %s: %d %.200s", e->id, state_name(e->state), status,
            answer.body ? answer.body : "");
    letter_free(&answer);
}

static void refused(struct errand *e, enum time operation, const char *behind)
{
    struct letter answer;
    char code[PROBLEM_CODE_SIZE];
    int status = ask(e, e->stranger, operation, behind, &answer);
    problem_code(&answer, code);
    VERDICT(OWNERSHIP,
            status == 403 && strcmp(code, "RFA_AUTH_FORBIDDEN") == 0 && !strstr(answer.body, "created_at"),
            "%s of another client's %s: %d %.200s", time_name(operation), e->id, status,
            answer.body ? answer.body : "");
    letter_free(&answer);
}

void errand_judge_ownership(struct errand *e)
{
    if (e->stranger == e->caller)
        return;
    refused(e, TIME_GET, "");
    refused(e, TIME_REPORT, "/report");
    refused(e, TIME_EVENTS, "/events");
    refused(e, TIME_CANCEL, "/cancel");
    refused(e, TIME_RETRY, "/retry");
}

void errand_judge_unreported(struct errand *e)
{
    struct letter answer;
    char code[PROBLEM_CODE_SIZE];
    int status = ask(e, e->caller, TIME_REPORT, "/report", &answer);
    problem_code(&answer, code);
    letter_free(&answer);
    bool ended = status == 200 && errand_look(e) && state_final(e->state);
    VERDICT(REPORTED, ended || (status == 404 && strcmp(code, "RFA_JOB_REPORT_NOT_FOUND") == 0),
            "the report of %s, which is %s: %d %s", e->id, state_name(e->state), status, code);
}

static void judge_deliveries(struct errand *e, struct inbox *inbox)
{
    const struct event *first = trail_first(&e->trail, EVENT_ASSIGNED),
                       *last = &e->trail.events[e->trail.count - 1];
    bool emitted =
        e->type == TYPE_EMIT_EVENT && e->state == STATE_SUCCEEDED && (inbox->events >> EVENT_EMITTED & 1);
    if (inbox->manner != MANNER_GOOD && first && e->trail.attempts == 1 && e->state == STATE_SUCCEEDED)
        VERDICT(HOOK_APART,
                (double)(last->at_ms - first->at_ms) <=
                    kind_duration_ms(e->kind) / brief.speed + 2.0 * (double)brief.late_ms,
                "%s took %llu ms from assigned to its end", e->id,
                (unsigned long long)(last->at_ms - first->at_ms));
    lane_judge(lane_of(&e->uuid, inbox->number), &e->trail, inbox->events, emitted);
}

void errand_end(struct errand *e)
{
    if (e->entry) {
        e->entry->settled = true;
        e->entry->given_up = !e->judged;
    }
    if (e->callback)
        lane_drop(&e->uuid, e->callback->number);
    if (e->subscribed)
        lane_drop(&e->uuid, e->subscribed->number);
}

void errand_judge(struct errand *e)
{
    struct letter answer;
    struct trodden job = trodden(e);
    int status = ask(e, e->caller, TIME_REPORT, "/report", &answer);
    tally_time(TIME_DONE, strand_now() - e->submitted);
    bool read = VERDICT(REPORTED, status == 200, "%s is %s, and its report %d %.200s", e->id,
                        state_name(e->state), status, answer.body ? answer.body : "") &&
                judge_report(e, &answer);
    letter_free(&answer);
    if (!read)
        return;
    e->judged = true;
    trail_judge_times(&e->trail, &job);
    tally_cancel(trail_last(&e->trail, EVENT_CANCELED));
    const struct event *assigned = trail_first(&e->trail, EVENT_ASSIGNED);
    e->entry->assigned_ms = assigned ? assigned->at_ms : 0;
    judge_events(e, lucky(e, 20) ? 2 : 100);
    if (lucky(e, 20))
        judge_reads(e, TIME_GET, "");
    if (lucky(e, 20))
        judge_reads(e, TIME_REPORT, "/report");
    if (lucky(e, 15))
        judge_final_actions(e);
    if (lucky(e, 10))
        errand_judge_ownership(e);
    if (e->callback)
        judge_deliveries(e, e->callback);
    if (e->subscribed)
        judge_deliveries(e, e->subscribed);
    if (lucky(e, 10)) /* nothing of all that has changed it */
        judge_events(e, 100);
}
