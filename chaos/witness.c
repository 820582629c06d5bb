#define _GNU_SOURCE
#include "chaos/witness.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chaos/mortal.h"
#include "runtime/assert.h"

enum {
    OLDER_LOOKED_AT = 4,               /* in each judgement */
    RECENT = 64,                       /* numbers among which one is canceled or sent with another body */
    REST_MAX_US = 60000000,            /* until all is final: twice a lease */
    REST_NS = 2000000,                 /* between two looks */
    LIST_PAGES_MAX = WITNESS_JOBS_MAX, /* with one on each */
    BODY_MAX = 512,
    PATH_MAX_BYTES = 256,
    FILL_MAX = 32000,
    FILL_AT_ONCE = 32, /* they would not go into a connection's bytes */
    TOLD_MAX = 20,     /* violations of one store; behind them they are counted */
};

enum what { ENROL, KEY, SUBMIT, WRONG, OTHER_BODY, CANCEL, LOOK, REPORT, FILL, LIST };

/* ---- what there is to complain of ---- */

void witness_complain(struct witness *w, const char *format, ...)
{
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    if (w->violations++ == 0)
        snprintf(w->first, sizeof(w->first), "%.*s", (int)sizeof(w->first) - 1, text);
    if (w->quiet)
        return;
    atomic_fetch_add(&w->totals->violations, 1);
    if (w->violations > TOLD_MAX)
        return;
    printf("violation: %s: %s\n", w->place, text);
    fflush(stdout); /* one of several processes: the whole goes out at once */
}

static void complain_of(struct witness *w, const struct sheaf_ask *ask, const char *what)
{
    witness_complain(w, "job %u (%s): %s; the answer was %d: %.300s", (unsigned)ask->number,
                     w->jobs[ask->number].id, what, ask->status, ask->body);
}

/* Of a server that was told to end. */
static bool refused_for_now(const struct witness *w, const struct sheaf_ask *ask)
{
    return w->draining && ask->status == 503;
}

/* ---- answers ---- */

static void heard_enrolment(struct witness *w, const struct sheaf_ask *ask)
{
    bool client = ask->what == ENROL;
    if (ask->status <= 0 || refused_for_now(w, ask))
        return;
    if (ask->status != 201 ||
        !sheaf_field(ask->body, client ? "client_id" : "api_key", client ? w->client : w->sheaf.key,
                     client ? sizeof(w->client) : sizeof(w->sheaf.key)))
        witness_complain(w, "no %s; the answer was %d: %.300s", client ? "client" : "key", ask->status,
                         ask->body);
}

/* A job for this number, as far as is known the first one or the same again. */
static void believe(struct witness *w, struct witness_job *job, const struct sheaf_ask *ask, const char *id)
{
    bool again = strstr(ask->head, "\r\nIdempotent-Replayed: true") != NULL;
    if (job->known == WITNESS_UNTRIED && again)
        complain_of(w, ask, "a key that nobody had sent was known");
    else if (job->known == WITNESS_REFUSED && again)
        complain_of(w, ask, "what was refused is there");
    else if (job->known == WITNESS_ANSWERED && strcmp(id, job->id) != 0)
        complain_of(w, ask, "its key gave another job");
    else if (job->known == WITNESS_ANSWERED && !again)
        complain_of(w, ask, "what was answered is executed once more");
    if (job->known == WITNESS_UNKNOWN)
        atomic_fetch_add(again ? &w->totals->committed : &w->totals->uncommitted, 1);
    if (job->known != WITNESS_ANSWERED)
        atomic_fetch_add(&w->totals->answered, 1);
    snprintf(job->id, sizeof(job->id), "%s", id);
    job->known = WITNESS_ANSWERED;
}

static void heard_submit(struct witness *w, struct witness_job *job, const struct sheaf_ask *ask)
{
    char id[WITNESS_ID_SIZE];
    if (ask->status == SHEAF_UNSENT)
        return;
    if (ask->status == SHEAF_LOST) {
        job->known = job->known == WITNESS_ANSWERED ? WITNESS_ANSWERED : WITNESS_UNKNOWN;
    } else if (refused_for_now(w, ask)) {
        job->known = job->known == WITNESS_UNTRIED ? WITNESS_REFUSED : job->known;
        atomic_fetch_add(&w->totals->refused, 1);
    } else if (ask->status != 202 || !sheaf_field(ask->body, "job_id", id, sizeof(id))) {
        complain_of(w, ask, "a submit was refused");
    } else {
        believe(w, job, ask, id);
    }
}

/* It must be refused with this status, and whether there is an answer changes nothing. */
static void heard_refusal(struct witness *w, const struct sheaf_ask *ask, int status)
{
    if (ask->status == status || refused_for_now(w, ask))
        atomic_fetch_add(&w->totals->refused, 1);
    else if (ask->status > 0)
        complain_of(w, ask, "what is wrong was not refused");
}

static bool is_final(const char *state)
{
    return strcmp(state, "SUCCEEDED") == 0 || strcmp(state, "FAILED") == 0 || strcmp(state, "CANCELED") == 0;
}

static const char *wrong_state(const struct witness_job *job, const char *state)
{
    bool canceled = strcmp(state, "CANCELED") == 0;
    if (job->canceled && !canceled)
        return "an acknowledged cancel is lost";
    if (job->final && strcmp(state, job->state) != 0)
        return "a final state has changed";
    if (canceled && !job->cancel_tried)
        return "nobody has canceled it";
    if (job->kind != WITNESS_RUN && !canceled &&
        strcmp(state, job->kind == WITNESS_KEPT ? "QUEUED" : "CREATED") != 0)
        return "it was run, and should wait";
    return NULL;
}

static void see_state(struct witness *w, struct witness_job *job, const struct sheaf_ask *ask)
{
    char state[sizeof(job->state)] = "";
    const char *wrong =
        sheaf_field(ask->body, "state", state, sizeof(state)) ? wrong_state(job, state) : "it has no state";
    if (wrong)
        complain_of(w, ask, wrong);
    job->final = is_final(state);
    snprintf(job->state, sizeof(job->state), "%s", state);
}

static void heard_cancel(struct witness *w, struct witness_job *job, const struct sheaf_ask *ask)
{
    if (ask->status <= 0 || refused_for_now(w, ask))
        return;
    if (ask->status != 200) {
        complain_of(w, ask, "a cancel was refused");
        return;
    }
    atomic_fetch_add(&w->totals->canceled, !job->canceled);
    job->canceled = true;
    see_state(w, job, ask);
}

/* Whether it is there, and what it says fits what it said before. */
static void heard_look(struct witness *w, struct witness_job *job, const struct sheaf_ask *ask)
{
    if (ask->status <= 0 || refused_for_now(w, ask))
        return;
    atomic_fetch_add(&w->totals->looks, 1);
    if (ask->status != 200)
        complain_of(w, ask, "an acknowledged job is lost");
    else
        see_state(w, job, ask);
}

static void heard_report(struct witness *w, struct witness_job *job, const struct sheaf_ask *ask)
{
    char id[WITNESS_ID_SIZE];
    if (ask->status <= 0 || refused_for_now(w, ask))
        return;
    if (ask->status != 200 || !sheaf_field(ask->body, "job_id", id, sizeof(id)) || strcmp(id, job->id) != 0)
        complain_of(w, ask, "a final job has no report");
    job->reported = true;
}

static void heard(void *context, const struct sheaf_ask *ask)
{
    struct witness *w = context;
    struct witness_job *job = &w->jobs[ask->number];
    switch ((enum what)ask->what) {
    case ENROL:
    case KEY:
        heard_enrolment(w, ask);
        break;
    case SUBMIT:
    case FILL:
        heard_submit(w, job, ask);
        break;
    case WRONG:
        heard_refusal(w, ask, 400);
        break;
    case OTHER_BODY:
        heard_refusal(w, ask, 409);
        break;
    case CANCEL:
        heard_cancel(w, job, ask);
        break;
    case LOOK:
        heard_look(w, job, ask);
        break;
    case REPORT:
        heard_report(w, job, ask);
        break;
    case LIST: /* has an ear of its own */
        break;
    }
}

/* ---- requests ---- */

/* False: an answer is missing. */
static bool ask_all(struct witness *w)
{
    uint32_t missing = sheaf_ask_all(&w->sheaf, heard, w);
    if (missing && !mortal_struck() && !w->draining)
        witness_complain(w, "%u answers are missing, and nobody has killed the server", (unsigned)missing);
    return missing == 0;
}

static bool room_for_one(struct witness *w)
{
    return !sheaf_full(&w->sheaf) || ask_all(w);
}

static enum witness_kind kind_of(uint32_t number)
{
    return number % 8 == 7 ? WITNESS_DEFERRED : WITNESS_RUN;
}

static void add_submit(struct witness *w, enum what what, uint32_t number)
{
    static const char *const kinds[] = {"SUCCESS_FAST", "FAIL_IMMEDIATE", "RETRY_ON_FAIL", "PAYLOAD_SMALL"};
    char body[BODY_MAX];
    bool deferred = w->jobs[number].kind == WITNESS_DEFERRED;
    snprintf(body, sizeof(body), "{\"type\":\"%s\",\"work_kind\":\"%s\"%s,\"idempotency_key\":\"k%u\"}",
             deferred ? "DEFERRED" : "EXECUTE",
             what == WRONG ? "NO_SUCH_KIND" : kinds[(number + (what == OTHER_BODY)) % 4],
             deferred ? ",\"execution_at\":\"2099-01-01T00:00:00Z\"" : "", (unsigned)number);
    sheaf_add(&w->sheaf, what, number, "POST", "/v1/jobs", body);
}

static void add_get(struct witness *w, enum what what, uint32_t number)
{
    char path[PATH_MAX_BYTES];
    snprintf(path, sizeof(path), "/v1/jobs/%s%s", w->jobs[number].id,
             what == REPORT   ? "/report"
             : what == CANCEL ? "/cancel"
                              : "");
    sheaf_add(&w->sheaf, what, number, what == CANCEL ? "POST" : "GET", path, NULL);
}

static void add_cancel(struct witness *w, uint32_t number)
{
    w->jobs[number].cancel_tried = true;
    add_get(w, CANCEL, number);
}

static void touch(struct witness *w, uint32_t number)
{
    w->touched = number < w->touched ? number : w->touched;
}

bool witness_init(struct witness *w, struct witness_totals *totals, uint64_t seed)
{
    *w = (struct witness){.totals = totals, .dice = dice_of(seed)};
    w->jobs = calloc(WITNESS_JOBS_MAX, sizeof(*w->jobs));
    return sheaf_init(&w->sheaf) && w->jobs;
}

void witness_fini(struct witness *w)
{
    sheaf_fini(&w->sheaf);
    free(w->jobs);
}

void witness_forget(struct witness *w, const char *place)
{
    memset(w->jobs, 0, WITNESS_JOBS_MAX * sizeof(*w->jobs));
    w->count = w->touched = 0;
    w->violations = 0;
    w->first[0] = 0;
    w->client[0] = w->sheaf.key[0] = 0;
    snprintf(w->place, sizeof(w->place), "%s", place);
}

void witness_meet(struct witness *w, uint16_t port)
{
    w->draining = false;
    sheaf_meet(&w->sheaf, port, 1 + dice_below(&w->dice, SHEAF_LINES));
}

bool witness_enrol(struct witness *w)
{
    char path[PATH_MAX_BYTES];
    if (w->sheaf.key[0])
        return true;
    w->client[0] = 0;
    sheaf_add(&w->sheaf, ENROL, 0, "POST", "/v1/clients", NULL);
    if (!ask_all(w) || !w->client[0])
        return false;
    snprintf(path, sizeof(path), "/v1/clients/%s/keys", w->client);
    sheaf_add(&w->sheaf, KEY, 0, "POST", path, NULL);
    return ask_all(w) && w->sheaf.key[0];
}

/* ---- after a kill ---- */

static bool judge_one(struct witness *w, uint32_t number)
{
    const struct witness_job *job = &w->jobs[number];
    if (!room_for_one(w))
        return false;
    if (job->known == WITNESS_UNKNOWN)
        add_submit(w, SUBMIT, number);
    else if (job->known == WITNESS_ANSWERED && job->cancel_tried && !job->canceled)
        add_cancel(w, number);
    else if (job->known == WITNESS_ANSWERED)
        add_get(w, LOOK, number);
    return true;
}

/* One of those that no request of the last server was about. */
static bool judge_older(struct witness *w)
{
    uint32_t number = dice_below(&w->dice, w->touched);
    const struct witness_job *job = &w->jobs[number];
    if (!room_for_one(w))
        return false;
    if (job->known == WITNESS_ANSWERED && job->kind != WITNESS_KEPT && dice_below(&w->dice, 2))
        add_submit(w, SUBMIT, number);
    else if (job->known == WITNESS_ANSWERED)
        add_get(w, job->final ? REPORT : LOOK, number);
    return true;
}

bool witness_judge(struct witness *w)
{
    for (uint32_t number = w->touched; number < w->count; number++)
        if (!judge_one(w, number))
            return false;
    for (uint32_t i = 0; i < OLDER_LOOKED_AT && w->touched > 0; i++)
        if (!judge_older(w))
            return false;
    if (!ask_all(w))
        return false;
    w->touched = w->count;
    return true;
}

/* ---- under load ---- */

/* A number that was answered, of the last ones; false: the one that was drawn isn't. */
static bool draw_answered(struct witness *w, uint32_t *ret_number)
{
    uint32_t back = 1 + dice_below(&w->dice, RECENT);
    if (back > w->count || w->jobs[w->count - back].known != WITNESS_ANSWERED)
        return false;
    *ret_number = w->count - back;
    return w->jobs[*ret_number].kind != WITNESS_KEPT;
}

static void load_known(struct witness *w)
{
    uint32_t number;
    if (!draw_answered(w, &number))
        return;
    touch(w, number);
    if (w->jobs[number].kind == WITNESS_DEFERRED && !w->jobs[number].cancel_tried)
        add_cancel(w, number);
    else
        add_submit(w, OTHER_BODY, number);
}

static void load_new(struct witness *w)
{
    uint32_t number = w->count++;
    bool wrong = dice_below(&w->dice, 16) == 0;
    touch(w, number);
    w->jobs[number].kind = (uint8_t)kind_of(number);
    if (wrong)
        w->jobs[number].known = WITNESS_REFUSED; /* whatever the answer is, or that there is none */
    add_submit(w, wrong ? WRONG : SUBMIT, number);
}

bool witness_load(struct witness *w, uint32_t count)
{
    ASSERT(count <= SHEAF_MAX);
    for (uint32_t i = 0; i < count && w->count < WITNESS_JOBS_MAX; i++)
        if (dice_below(&w->dice, 4) == 0)
            load_known(w);
        else
            load_new(w);
    return ask_all(w);
}

bool witness_fill(struct witness *w, uint32_t count, uint32_t size)
{
    static char body[FILL_MAX + 128];
    ASSERT(size <= FILL_MAX);
    for (uint32_t i = 0; i < count && w->count < WITNESS_JOBS_MAX; i++) {
        uint32_t number = w->count++;
        w->jobs[number].kind = WITNESS_KEPT;
        snprintf(body, sizeof(body),
                 "{\"work_kind\":\"x.kept\",\"idempotency_key\":\"k%u\",\"payload\":\"%0*u\"}",
                 (unsigned)number, (int)size, (unsigned)number);
        sheaf_add(&w->sheaf, FILL, number, "POST", "/v1/work:submit", body);
        if (w->sheaf.count == FILL_AT_ONCE && !ask_all(w))
            return false;
    }
    return ask_all(w);
}

/* ---- at rest ---- */

/* Unknown ones become known, known ones give the same id, what was refused was never there; and who waits for ever is canceled. */
static bool submit_all(struct witness *w)
{
    for (uint32_t number = 0; number < w->count; number++) {
        if (w->jobs[number].known == WITNESS_UNTRIED || w->jobs[number].kind == WITNESS_KEPT)
            continue;
        if (!room_for_one(w))
            return false;
        add_submit(w, SUBMIT, number);
    }
    return ask_all(w);
}

static bool cancel_all(struct witness *w)
{
    for (uint32_t number = 0; number < w->count; number++) {
        if (w->jobs[number].known != WITNESS_ANSWERED || w->jobs[number].kind != WITNESS_DEFERRED)
            continue;
        if (!room_for_one(w))
            return false;
        add_cancel(w, number);
    }
    return ask_all(w);
}

/* True: all were answered; *ret_waiting: as many aren't final. */
static bool look_at_all(struct witness *w, bool first, uint32_t *ret_waiting)
{
    uint32_t waiting = 0;
    for (uint32_t number = 0; number < w->count; number++) {
        const struct witness_job *job = &w->jobs[number];
        if (job->known != WITNESS_ANSWERED || (job->final && !first))
            continue;
        if (!room_for_one(w))
            return false;
        add_get(w, LOOK, number);
    }
    if (!ask_all(w))
        return false;
    for (uint32_t number = 0; number < w->count; number++)
        waiting += w->jobs[number].known == WITNESS_ANSWERED && w->jobs[number].kind != WITNESS_KEPT &&
                   !w->jobs[number].final;
    *ret_waiting = waiting;
    return true;
}

static bool await_all(struct witness *w)
{
    uint32_t waiting = 1, least = UINT32_MAX;
    uint64_t moved_us = mortal_now_us();
    for (bool first = true; mortal_now_us() - moved_us < REST_MAX_US; first = false) {
        if (!look_at_all(w, first, &waiting))
            return false;
        if (waiting == 0 || w->violations)
            return true;
        if (waiting < least) {
            least = waiting;
            moved_us = mortal_now_us();
        }
        nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
    }
    witness_complain(w, "%u jobs never came to an end", (unsigned)waiting);
    return false;
}

static bool report_all(struct witness *w)
{
    for (uint32_t number = 0; number < w->count; number++) {
        if (!w->jobs[number].final || w->jobs[number].reported)
            continue;
        if (!room_for_one(w))
            return false;
        add_get(w, REPORT, number);
    }
    return ask_all(w);
}

/* ---- the list ---- */

struct listing {
    struct witness *w;
    uint32_t known_count, seen_count;
    struct known {
        char id[WITNESS_ID_SIZE];
        bool seen;
    } known[WITNESS_JOBS_MAX]; /* by id */
    char cursor[128];
    bool good;
};

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct known *)a)->id, ((const struct known *)b)->id);
}

static void see_listed(struct listing *l, const struct known *listed)
{
    struct known *found = bsearch(listed, l->known, l->known_count, sizeof(*l->known), by_id);
    if (!found)
        witness_complain(l->w, "the list has %s, which nobody was told of", listed->id);
    else if (found->seen)
        witness_complain(l->w, "the list has %s twice", listed->id);
    else
        found->seen = true;
    l->seen_count++;
}

static void heard_page(void *context, const struct sheaf_ask *ask)
{
    static const char member[] = "\"job_id\":\"";
    struct listing *l = context;
    struct known listed = {.seen = false};
    l->good = ask->status == 200;
    if (!l->good) {
        witness_complain(l->w, "no list; the answer was %d: %.300s", ask->status, ask->body);
        return;
    }
    for (const char *at = ask->body; (at = strstr(at, member)) != NULL; at += sizeof(member) - 1) {
        (void)sheaf_field(at, "job_id", listed.id, sizeof(listed.id));
        see_listed(l, &listed);
    }
    (void)sheaf_field(ask->body, "next_cursor", l->cursor, sizeof(l->cursor));
}

static void compare_list(struct witness *w)
{
    static struct listing l;
    char path[PATH_MAX_BYTES] = "/v1/jobs?limit=100";
    l = (struct listing){.w = w, .good = true};
    for (uint32_t number = 0; number < w->count; number++)
        if (w->jobs[number].known == WITNESS_ANSWERED)
            memcpy(l.known[l.known_count++].id, w->jobs[number].id, WITNESS_ID_SIZE);
    qsort(l.known, l.known_count, sizeof(*l.known), by_id);
    for (uint32_t pages = 0; l.good && pages < LIST_PAGES_MAX && l.seen_count <= l.known_count; pages++) {
        sheaf_add(&w->sheaf, LIST, 0, "GET", path, NULL);
        (void)sheaf_ask_all(&w->sheaf, heard_page, &l);
        if (!l.cursor[0])
            break;
        snprintf(path, sizeof(path), "/v1/jobs?limit=100&cursor=%s", l.cursor);
    }
    for (uint32_t i = 0; l.good && i < l.known_count; i++)
        if (!l.known[i].seen)
            witness_complain(w, "the list hasn't %s, which is acknowledged", l.known[i].id);
    atomic_fetch_add(&w->totals->listed, l.seen_count);
}

void witness_rest(struct witness *w)
{
    if (submit_all(w) && cancel_all(w) && await_all(w) && report_all(w))
        compare_list(w);
}
