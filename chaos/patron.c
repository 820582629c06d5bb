#define _GNU_SOURCE
#include "chaos/patron.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "chaos/life.h"
#include "chaos/saga.h"
#include "runtime/env.h"

enum { PATIENCE_MS = 60000, BROKEN_MS = 5, AGAIN_MS = 40, AIM_MS = 12000 };

struct kind {
    const char *name;
    bool outside, fails; /* fails: it never succeeds */
};
static const struct kind kinds[] = {
    {"SUCCESS_FAST", false, false},
    {"PAYLOAD_SMALL", false, false},
    {"FAIL_IMMEDIATE", false, true},
    {"RETRY_ON_FAIL", false, false},
    {"FAIL_AFTER_RETRYABLE", false, true},
    {"SUCCESS_NORMAL", false, false},
    {"RETRY_LIMIT_REACHED", false, true},
    {"x.a", true, false},
    {"x.b", true, false},
};
enum { KINDS = sizeof(kinds) / sizeof(*kinds), KINDS_INSIDE = 7 };

static const char *const deed_names[] = {
#define X(id) #id,
    DEEDS(X)
#undef X
};

/* ---- time and chance ---- */

static uint64_t now_of(void)
{
    return saga->now;
}

static uint64_t in_ms(uint64_t ms)
{
    return now_of() + ms * NS_PER_MS;
}

static uint32_t below(struct patron *p, uint32_t count)
{
    return dice_below(&p->dice, count);
}

void patron_begin(struct patron *p, uint8_t number, uint64_t seed)
{
    *p = (struct patron){.number = number, .fd = -1};
    p->dice = dice_of(seed ^ (0x70617472ull + number) << 20);
    p->client = number % 2 == 1 && below(p, 3) == 0 ? (uint8_t)(number - 1) : number;
}

uint64_t patron_next(const struct patron *p)
{
    uint64_t next = p->stage == PATRON_IDLE ? p->next : p->until;
    if (p->stage != PATRON_IDLE && p->hang_at && p->hang_at < next)
        next = p->hang_at;
    if (p->stage == PATRON_SENDING && p->next > now_of() && p->next < next)
        next = p->next;
    return next;
}

/* ---- what is said about a job's state ---- */

static uint32_t rank_of(uint8_t state)
{
    switch (state) {
    case JOB_CREATED:
        return 0;
    case JOB_QUEUED:
    case JOB_ASSIGNED: /* a claim that never started comes back */
        return 1;
    case JOB_RUNNING:
        return 2;
    default:
        return 3;
    }
}

static bool before(struct sight a, struct sight b)
{
    return a.attempt != b.attempt ? a.attempt < b.attempt : rank_of(a.state) < rank_of(b.state);
}

static bool is_final(uint8_t state)
{
    return rank_of(state) == 3;
}

/* Whether it can be like this at all, whatever was seen before. */
static void judge_possible(const struct order *o, struct sight s, const char *by)
{
    if (s.attempt > saga->knobs.retry_max + 1u)
        saga_violate("%s: job %u has its attempt %u of %u (J7)", by, o->number, s.attempt,
                     saga->knobs.retry_max + 1);
    if (s.state == JOB_SUCCEEDED && kinds[o->kind].fails)
        saga_violate("%s: job %u of %s has succeeded", by, o->number, kinds[o->kind].name);
    if (s.state == JOB_CANCELED && !o->cancel_tried)
        saga_violate("%s: job %u is canceled, and nobody asked for that (J1)", by, o->number);
}

/* What has become of requests without an answer. */
static void note_unknown(struct order *o, struct sight s)
{
    bool newer = o->sight.attempt && s.attempt > o->sight.attempt;
    if (s.state == JOB_CANCELED && o->cancel_unknown && !o->sight.canceled && o->sight.state != JOB_CANCELED)
        SOMETIMES(CANCEL_WAS_DONE);
    if (newer && o->retry_unknown && o->sight.state == JOB_FAILED)
        SOMETIMES(RETRY_WAS_DONE);
    if (o->outside && s.state == JOB_RUNNING && s.attempt > o->lease.attempt && o->sight.state != JOB_RUNNING)
        SOMETIMES(CLAIM_WAS_DONE);
    if (s.state == JOB_FAILED && s.attempt == saga->knobs.retry_max + 1u && s.attempt > 1 &&
        o->sight.state != JOB_FAILED)
        SOMETIMES(LAST_ATTEMPT);
}

/* What was said to a request that was sent when `floor` was known. */
static void see(struct order *o, struct sight floor, struct sight s, const char *by)
{
    judge_possible(o, s, by);
    bool for_good = floor.attempt && (floor.state == JOB_SUCCEEDED || floor.state == JOB_CANCELED);
    if (floor.attempt &&
        (before(s, floor) || (for_good && (s.state != floor.state || s.attempt != floor.attempt)) ||
         (s.attempt == floor.attempt && is_final(floor.state) && s.state != floor.state)))
        saga_violate("%s: job %u is %s in attempt %u, and was %s in attempt %u before (J1, J2)", by,
                     o->number, job_state_name(s.state), s.attempt, job_state_name(floor.state),
                     floor.attempt);
    if (floor.canceled && s.state != JOB_CANCELED)
        saga_violate("%s: job %u is %s, and was canceled before (J1, J2)", by, o->number,
                     job_state_name(s.state));
    note_unknown(o, s);
    s.canceled = o->sight.canceled;
    if (!o->sight.attempt || before(o->sight, s))
        o->sight = s;
    o->seen_at = now_of();
}

/* ---- answers as text ---- */

static bool text_of(const char *body, const char *name, char *room, size_t size)
{
    char wanted[48];
    snprintf(wanted, sizeof(wanted), "\"%s\":\"", name);
    const char *at = strstr(body, wanted);
    if (!at)
        return false;
    at += strlen(wanted);
    size_t length = strcspn(at, "\"");
    if (length >= size)
        return false;
    memcpy(room, at, length);
    room[length] = 0;
    return true;
}

static uint64_t number_of(const char *body, const char *name)
{
    char wanted[48];
    snprintf(wanted, sizeof(wanted), "\"%s\":", name);
    const char *at = strstr(body, wanted);
    return at ? strtoull(at + strlen(wanted), NULL, 10) : 0;
}

static bool state_of(const char *body, uint8_t *ret)
{
    char name[16];
    if (!text_of(body, "state", name, sizeof(name)))
        return false;
    for (*ret = 0; *ret < JOB_STATE_COUNT; ++*ret)
        if (strcmp(job_state_name(*ret), name) == 0)
            return true;
    return false;
}

static uint64_t hash_text(const char *bytes, size_t size)
{
    uint64_t h = 0xcbf29ce484222325ull;
    for (size_t i = 0; i < size; i++)
        h = (h ^ (uint8_t)bytes[i]) * 0x100000001b3ull;
    return h;
}

/* Where the object that begins here ends; texts have no braces in them. */
static const char *behind_object(const char *at)
{
    int depth = 0;
    for (; *at; at++) {
        depth += *at == '{';
        depth -= *at == '}';
        if (depth == 0)
            return at + 1;
    }
    return at;
}

/* ---- requests ---- */

/* For people: what clients have asked and heard. */
static void tell_loudly(const struct patron *p, const char *what, int status, const char *body)
{
    if (saga->options.loud)
        fprintf(stderr, "%llu.%06llu patron %u %s %s %d %.*s\n", (unsigned long long)(now_of() / NS_PER_S),
                (unsigned long long)(now_of() / 1000 % 1000000), p->number, what, deed_names[p->deed], status,
                300, body);
}

__attribute__((format(printf, 4, 5))) static void ask(struct patron *p, const char *method, const char *path,
                                                      const char *format, ...)
{
    char body[600] = "";
    va_list list;
    va_start(list, format);
    if (*format)
        vsnprintf(body, sizeof(body), format, list);
    va_end(list);
    int size = snprintf(p->request, sizeof(p->request),
                        "%s %s HTTP/1.1\r\nHost: h\r\n%s%s%s%sContent-Length: %zu\r\n\r\n%s", method, path,
                        *p->key ? "Authorization: Bearer " : "", p->key, *p->key ? "\r\n" : "",
                        *body ? "Content-Type: application/json\r\n" : "", strlen(body), body);
    p->request_size = (uint32_t)size;
    tell_loudly(p, path, 0, body);
    p->request_sent = p->pieces = 0;
    p->answer_size = 0;
    p->stage = PATRON_SENDING;
    p->sent = now_of();
    p->until = in_ms(PATIENCE_MS);
    p->hang_at = saga_strikes(FAULT_HANGUPS, &p->dice) ? in_ms(below(p, 200)) : 0;
}

static bool is_end(enum deed deed)
{
    return deed == DEED_COMPLETE || deed == DEED_FAIL;
}

static void note_others(const struct patron *p, const struct order *o)
{
    for (uint32_t i = 0; i < saga->patrons_count; i++) {
        const struct patron *q = &saga->patrons[i];
        if (q == p || q->stage == PATRON_IDLE || q->order != o)
            continue;
        SOMETIMES(ASKED_TOGETHER);
        if ((is_end(q->deed) && p->deed == DEED_CANCEL) || (is_end(p->deed) && q->deed == DEED_CANCEL))
            SOMETIMES(CANCEL_RACED);
    }
}

static void about(struct patron *p, struct order *o)
{
    p->order = o;
    p->floor = o->sight;
    p->told = o->told;
    p->newest = o->lease.attempt;
    p->events_floor = o->events;
}

static void ask_about(struct patron *p, enum deed deed, struct order *o, const char *method,
                      const char *behind)
{
    char path[80];
    about(p, o);
    p->deed = deed;
    note_others(p, o);
    snprintf(path, sizeof(path), "/v1/jobs/%s%s", o->id, behind);
    ask(p, method, path, "%s", "");
}

static uint64_t wall_ms(void)
{
    return (1800000000ull * NS_PER_S + now_of() + (uint64_t)saga->wall_ns) / NS_PER_MS;
}

static void ask_submit(struct patron *p, struct order *o, bool otherwise)
{
    char when[80] = "";
    uint32_t number = o->number;
    about(p, o);
    p->deed = otherwise ? DEED_OTHERWISE : DEED_SUBMIT;
    if (!otherwise) {
        for (uint32_t i = 0; i < saga->patrons_count; i++)
            if (&saga->patrons[i] != p && saga->patrons[i].stage != PATRON_IDLE &&
                saga->patrons[i].order == o && saga->patrons[i].deed == DEED_SUBMIT)
                SOMETIMES(SUBMIT_PARALLEL);
        if (saga->options.control == CONTROL_TWICE && o->tried && !o->known)
            number += 1000;
        o->tried = true;
    }
    if (o->deferred) {
        time_t s = (time_t)(o->due_ms / 1000);
        struct tm tm;
        gmtime_r(&s, &tm);
        strftime(when, sizeof(when), ",\"execution_at\":\"%Y-%m-%dT%H:%M:%SZ\"", &tm);
    }
    char payload[40] = "";
    if (o->outside) /* names it to those who run it */
        snprintf(payload, sizeof(payload), ",\"payload\":{\"n\":%u}", otherwise ? number + 5000 : number);
    uint32_t kind = otherwise && !o->outside ? (o->kind + 1u) % KINDS_INSIDE : o->kind;
    ask(p, "POST", o->outside ? "/v1/work:submit" : "/v1/jobs",
        "{\"type\":\"%s\",\"work_kind\":\"%s\",\"idempotency_key\":\"k%u\"%s%s}",
        o->deferred ? "DEFERRED" : "EXECUTE", kinds[kind].name, o->key + (number - o->number) % 5000, when,
        payload);
}

/* Counted by client, so that clients have the same ones (I4). Over all days: a key is kept for longer than one of them. */
static uint32_t new_key(const struct patron *p)
{
    uint32_t key = saga->patrons[p->client].keys++;
    for (uint32_t i = 0; i < saga->orders_count; i++)
        if (saga->orders[i].key == key && saga->orders[i].client != p->client)
            SOMETIMES(SAME_KEY);
    return key;
}

static struct order *new_order(struct patron *p)
{
    if (saga->orders_count >= saga->knobs.orders)
        return NULL;
    uint32_t key = new_key(p);
    struct order *o = &saga->orders[saga->orders_count];
    *o = (struct order){.number = saga->numbers + saga->orders_count++,
                        .key = key,
                        .life = saga->life,
                        .leaps = saga->leaps,
                        .client = p->client,
                        .kind = (uint8_t)below(p, KINDS)};
    o->outside = kinds[o->kind].outside;
    o->deferred = !o->outside && below(p, 5) == 0;
    if (o->deferred)
        o->due_ms = wall_ms() + 2000 + below(p, 20000);
    return o;
}

/* One of this client's, known or not as wanted; NULL: there is none at the first places looked at. */
static struct order *some_order(struct patron *p, bool known, bool outside)
{
    for (int tries = 0; tries < 8 && saga->orders_count > 0; tries++) {
        struct order *o = &saga->orders[below(p, saga->orders_count)];
        if (o->client == p->client && o->known == known && o->tried && !o->refused &&
            (!outside || o->outside))
            return o;
    }
    return NULL;
}

/* ---- leases ---- */

static void ask_claim(struct patron *p)
{
    static const uint32_t waits[] = {0, 0, 200, 2000};
    p->deed = DEED_CLAIM;
    p->order = NULL;
    p->wait_ms = waits[below(p, 4)];
    p->lease_ms = (uint32_t[]){1000, 2000, 10000, 60000}[below(p, 4)];
    ask(p, "POST", "/v1/work:claim", "{\"max\":%u,\"lease_ms\":%u,\"worker\":\"p%u\",\"wait_ms\":%u}",
        1 + below(p, PATRON_CLAIM_MAX), p->lease_ms, p->number, p->wait_ms);
}

static void ask_with_lease(struct patron *p, enum deed deed, struct order *o)
{
    static const char *const verbs[] = {
        [DEED_BEAT] = "heartbeat", [DEED_COMPLETE] = "complete", [DEED_FAIL] = "fail"};
    char path[40], rest[80] = "";
    about(p, o);
    p->deed = deed;
    p->lease = o->lease;
    p->lease_ms = (uint32_t[]){1000, 5000, 30000}[below(p, 3)];
    bool old =
        deed != DEED_BEAT && p->held[0] && p->held_order && !p->aim && below(p, p->held_unknown ? 2 : 4) == 0;
    if (old) { /* again, or with an old one */
        about(p, p->held_order);
        memcpy(p->lease.token, p->held, sizeof(p->held));
        p->lease.attempt = p->held_attempt;
        p->lease.at_most = UINT64_MAX;
    }
    if (deed == DEED_BEAT)
        o->lease.beaten = true;
    if (deed == DEED_BEAT)
        snprintf(rest, sizeof(rest), ",\"lease_ms\":%u", p->lease_ms);
    if (deed == DEED_FAIL)
        snprintf(rest, sizeof(rest), ",\"message\":\"no\",\"retryable\":%s", below(p, 2) ? "true" : "false");
    if (deed == DEED_FAIL && below(p, 2))
        snprintf(rest, sizeof(rest), ",\"retryable\":true,\"retry_after_ms\":%u", below(p, 2000));
    if (deed != DEED_BEAT) {
        p->held_unknown = old && p->held_unknown;
        memcpy(p->held, p->lease.token, sizeof(p->held));
        p->held_order = p->order;
        p->held_attempt = p->lease.attempt;
        if (p->lease.attempt == p->order->lease.attempt)
            p->order->lease.ended = true;
    }
    note_others(p, p->order);
    snprintf(path, sizeof(path), "/v1/work:%s", verbs[deed]);
    ask(p, "POST", path, "{\"job_id\":\"%s\",\"lease_token\":\"%s\"%s}", p->order->id, p->lease.token, rest);
}

/* ---- what is done next ---- */

static bool ask_first(struct patron *p)
{
    struct patron *first = &saga->patrons[p->client];
    if (p->registered)
        return false;
    if (first != p) {
        if (!first->registered)
            return false;
        memcpy(p->client_id, first->client_id, sizeof(p->client_id));
        memcpy(p->key, first->key, sizeof(p->key));
        p->registered = p->hooked = true;
        return false;
    }
    char path[80];
    p->deed = *p->client_id ? DEED_KEY : DEED_REGISTER;
    snprintf(path, sizeof(path), "/v1/clients/%s/keys", p->client_id);
    ask(p, "POST", *p->client_id ? path : "/v1/clients", "%s", "");
    return true;
}

static bool ask_hook(struct patron *p)
{
    if (p->hooked)
        return false;
    p->deed = DEED_HOOK;
    ask(p, "POST", "/v1/webhooks", "{\"url\":\"http://r%u.example/h%u\",\"events\":[\"*\"]}", p->number,
        p->number);
    return true;
}

static bool do_submit(struct patron *p)
{
    struct order *o = below(p, 3) == 0 ? some_order(p, false, false) : NULL;
    if (!o && below(p, 6) == 0)
        o = some_order(p, true, false); /* again, though it was answered */
    if (!o)
        o = new_order(p);
    if (o)
        ask_submit(p, o, false);
    return o != NULL;
}

static bool do_with_job(struct patron *p, enum deed deed, const char *method, const char *behind)
{
    struct order *o = some_order(p, true, false);
    if (!o)
        return false;
    if (deed == DEED_CANCEL) {
        o->cancel_tried = true;
        o->lease.ended = true;
    }
    ask_about(p, deed, o, method, behind);
    return true;
}

/* Of another client, if there is one: nothing of it may be told (H5). */
static bool do_strange(struct patron *p)
{
    struct order *o = saga->orders_count ? &saga->orders[below(p, saga->orders_count)] : NULL;
    static const char *const behind[] = {"", "/events", "/report"};
    if (!o || !o->known || o->client == p->client)
        return false;
    ask_about(p, DEED_STRANGER, o, "GET", behind[below(p, 3)]);
    return true;
}

/* What is no request: one answer, and the connection is closed (H2, H3). */
static bool do_hostile(struct patron *p)
{
    static const char both[] = "POST /v1/jobs HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nTransfer-Encoding: "
                               "chunked\r\n\r\n0\r\n\r\n";
    static const char *const heads[] = {
        both,
        "GET /healthz HTTP/1.1\r\nHost: h\r\nHost: g\r\n\r\n",
        "POST /v1/jobs HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd",
        "GET /healthz HTTP/1.1\r\nHost : h\r\n\r\n",
        "GET /healthz HTTP/1.1\nHost: h\n\n",
    };
    p->deed = DEED_HOSTILE;
    p->order = NULL;
    ask(p, "GET", "/", "%s", "");
    p->request_size = (uint32_t)snprintf(p->request, sizeof(p->request), "%s",
                                         heads[below(p, sizeof(heads) / sizeof(*heads))]);
    return true;
}

/* It comes back in the very instant in which a lease is over: then it is over (J5). */
static bool take_aim(struct patron *p, struct order *o)
{
    const struct lease *l = &o->lease;
    if (l->ended || l->life != saga->life || l->at_most <= now_of() || l->at_most > in_ms(AIM_MS))
        return false;
    p->aim = o;
    p->next = l->at_most;
    return true;
}

static bool shoot(struct patron *p)
{
    static const enum deed deeds[] = {DEED_BEAT, DEED_COMPLETE, DEED_FAIL};
    struct order *o = p->aim;
    bool still = o && o->lease.attempt && !o->lease.ended && o->lease.life == saga->life;
    if (still)
        ask_with_lease(p, deeds[below(p, 3)], o);
    p->aim = NULL;
    return still;
}

static bool do_with_lease(struct patron *p, enum deed deed)
{
    struct order *o = some_order(p, true, true);
    if (!o || !o->lease.attempt || (deed != DEED_FAIL && below(p, 3) == 0 && take_aim(p, o)))
        return false;
    ask_with_lease(p, deed, o);
    return true;
}

static bool do_one(struct patron *p, enum deed deed)
{
    struct order *o;
    switch (deed) {
    case DEED_SUBMIT:
        return do_submit(p);
    case DEED_OTHERWISE:
        if ((o = some_order(p, true, false)) != NULL)
            ask_submit(p, o, true);
        return o != NULL;
    case DEED_STRANGER:
        return do_strange(p);
    case DEED_HOSTILE:
        return do_hostile(p);
    case DEED_LOOK:
        return do_with_job(p, deed, "GET", "");
    case DEED_EVENTS:
        return do_with_job(p, deed, "GET", "/events?limit=100");
    case DEED_REPORT:
        return do_with_job(p, deed, "GET", "/report");
    case DEED_CANCEL:
        return do_with_job(p, deed, "POST", "/cancel");
    case DEED_RETRY:
        return do_with_job(p, deed, "POST", "/retry");
    case DEED_CLAIM:
        ask_claim(p);
        return true;
    case DEED_BEAT:
    case DEED_COMPLETE:
    case DEED_FAIL:
        return do_with_lease(p, deed);
    default:
        return false;
    }
}

static bool do_something(struct patron *p)
{
    static const struct {
        enum deed deed;
        uint32_t weight;
    } weights[] = {{DEED_SUBMIT, 30},   {DEED_OTHERWISE, 3}, {DEED_LOOK, 14}, {DEED_EVENTS, 6},
                   {DEED_REPORT, 5},    {DEED_CANCEL, 5},    {DEED_RETRY, 8}, {DEED_CLAIM, 12},
                   {DEED_COMPLETE, 10}, {DEED_FAIL, 4},      {DEED_BEAT, 5},  {DEED_STRANGER, 3},
                   {DEED_HOSTILE, 2}};
    if (p->aim)
        return shoot(p);
    uint32_t draw = below(p, 107), at = 0;
    while (draw >= weights[at].weight)
        draw -= weights[at++].weight;
    return do_one(p, weights[at].deed);
}

/* ---- while everything comes to its end ---- */

/* A retry that had no answer may be done for as long as a request may take. */
static bool is_done(const struct order *o)
{
    uint64_t settled = saga->heal_began + PATIENCE_MS * NS_PER_MS;
    bool for_good = o->sight.state != JOB_FAILED || !o->retry_unknown || o->seen_at > settled;
    return !o->tried || o->refused || (o->known && o->sight.attempt && is_final(o->sight.state) && for_good);
}

static bool finish_one(struct patron *p, struct order *o)
{
    if (!o->known && p->crowded && below(p, 2)) {
        ask_claim(p);
        return true;
    }
    if (!o->known) {
        ask_submit(p, o, false);
        return true;
    }
    if (o->outside && o->lease.attempt && !o->lease.ended && below(p, 2)) {
        ask_with_lease(p, DEED_COMPLETE, o);
        return true;
    }
    if (o->outside && below(p, 2)) {
        ask_claim(p);
        return true;
    }
    ask_about(p, DEED_LOOK, o, "GET", "");
    return true;
}

/* A queue may be full of what only its clients can work on. */
static bool make_room(struct patron *p)
{
    bool may = p->crowded && below(p, 2);
    for (uint32_t i = 0; i < saga->orders_count && may; i++) {
        struct order *o = &saga->orders[i];
        if (o->client == p->client && o->outside && o->lease.attempt && !o->lease.ended)
            return ask_with_lease(p, DEED_COMPLETE, o), true;
    }
    return false;
}

static bool finish_something(struct patron *p)
{
    uint32_t count = saga->orders_count, first = count ? below(p, count) : 0;
    if (make_room(p))
        return true;
    for (uint32_t i = 0; i < count; i++) {
        struct order *o = &saga->orders[(first + i) % count];
        if (o->client == p->client && !is_done(o))
            return finish_one(p, o);
    }
    return false;
}

bool patrons_rest(void)
{
    for (uint32_t i = 0; i < saga->orders_count; i++)
        if (!is_done(&saga->orders[i]))
            return false;
    for (uint32_t i = 0; i < saga->patrons_count; i++)
        if (saga->patrons[i].stage != PATRON_IDLE)
            return false;
    return true;
}

void patrons_forget(void)
{
    saga->numbers += saga->orders_count;
    saga->orders_count = 0;
    saga->receiver.arrivals_count = 0;
    for (uint32_t i = 0; i < saga->patrons_count; i++) {
        saga->patrons[i].held[0] = 0;
        saga->patrons[i].held_order = saga->patrons[i].aim = NULL;
    }
}

bool patrons_ready(void)
{
    for (uint32_t i = 0; i < saga->patrons_count; i++)
        if (!saga->patrons[i].registered || !saga->patrons[i].hooked || saga->patrons[i].stage != PATRON_IDLE)
            return false;
    return true;
}

void patrons_tell(char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (uint32_t i = 0; i < saga->orders_count && used < size; i++) {
        const struct order *o = &saga->orders[i];
        if (!is_done(o))
            used += (size_t)snprintf(text + used, size - used, " job %u (%s, %s%s, attempt %u %s)", o->number,
                                     kinds[o->kind].name, o->known ? "" : "unknown ", o->id, o->sight.attempt,
                                     o->sight.attempt ? job_state_name(o->sight.state) : "never seen");
    }
    for (uint32_t i = 0; i < saga->patrons_count && used < size; i++)
        if (saga->patrons[i].stage != PATRON_IDLE)
            used += (size_t)snprintf(text + used, size - used, " patron %u waits for %s", i,
                                     deed_names[saga->patrons[i].deed]);
}

/* ---- judging answers ---- */

static void judge_submit(struct patron *p, int status, const char *body)
{
    struct order *o = p->order;
    char id[UUID_TEXT_SIZE];
    uint8_t state;
    if (status != 202) {
        if (status == 400 && o->deferred && !o->known) { /* its time is over by now: then it isn't there */
            if (saga->leaps == 0 && o->due_ms > wall_ms() + 1000)
                saga_violate("a deferred submit in time was refused: %.200s", body);
            o->refused = true;
        } else if (status != 429) {
            saga_violate("submit of job %u: %d %.200s", o->number, status, body);
        } else {
            SOMETIMES(SUBMIT_REFUSED);
        }
        return;
    }
    if (!text_of(body, "job_id", id, sizeof(id)) || !state_of(body, &state)) {
        saga_violate("submit of job %u was answered %.200s", o->number, body);
        return;
    }
    if (o->known && o->life != saga->life && strstr(p->answer, "Idempotent-Replayed"))
        SOMETIMES(KEY_OVER_RESTART);
    for (uint32_t i = 0; i < saga->orders_count; i++)
        if (&saga->orders[i] != o && saga->orders[i].known && strcmp(saga->orders[i].id, id) == 0)
            saga_violate("the key of job %u gave %s, which is job %u (I1, I4)", o->number, id,
                         saga->orders[i].number);
    if (o->known && strcmp(id, o->id) != 0) {
        saga_violate("the key of job %u, %s, gave another one, %s (I1, I3)", o->number, o->id, id);
        return;
    }
    if (o->refused)
        saga_violate("job %u was refused for ever, and is there", o->number);
    if (!o->known && o->unknown) {
        if (strstr(p->answer, "Idempotent-Replayed"))
            SOMETIMES(SUBMIT_WAS_DONE);
        else
            SOMETIMES(SUBMIT_WAS_NOT);
    }
    memcpy(o->id, id, sizeof(id));
    o->known = true;
    p->crowded = false;
}

static void judge_otherwise(struct patron *p, int status, const char *body)
{
    if (status != 409 || !strstr(body, "RFA_EXEC_IDEMPOTENCY_CONFLICT"))
        saga_violate("the key of job %u with another body: %d %.200s (I2)", p->order->number, status, body);
    else
        SOMETIMES(SUBMIT_OTHERWISE);
}

static void judge_stranger(struct patron *p, int status, const char *body)
{
    if (status != 403 && status != 404)
        saga_violate("job %u of another client: %d %.200s (H5)", p->order->number, status, body);
    else
        SOMETIMES(STRANGER);
}

static void judge_hostile(struct patron *p, int status, const char *body)
{
    if ((status != 400 && status != 413) || !strcasestr(p->answer, "\r\nConnection: close"))
        saga_violate("what is no request: %d %.200s (H2, H3)", status, body);
    else
        SOMETIMES(HOSTILE);
}

static void judge_look(struct patron *p, int status, const char *body)
{
    struct sight s = {.attempt = (uint16_t)number_of(body, "attempt")};
    if (status != 200 || !state_of(body, &s.state) || !s.attempt) {
        saga_violate("job %u, which was acknowledged: %d %.200s (J2)", p->order->number, status, body);
        return;
    }
    if (saga->options.control == CONTROL_STALE && saga->steps % 64 == 0 && p->floor.attempt)
        s.state = JOB_CREATED;
    see(p->order, p->floor, s, "a look");
    if (p->order->deferred && s.state == JOB_SUCCEEDED) {
        SOMETIMES(DEFERRED);
        if (p->order->leaps != saga->leaps)
            SOMETIMES(DEFERRED_OVER_LEAP);
        if (p->order->life != saga->life)
            SOMETIMES(DEFERRED_OVER_RESTART);
    }
    if (!kinds[p->order->kind].fails && s.state == JOB_SUCCEEDED && s.attempt > 1)
        SOMETIMES(FAILED_EARLY);
}

/* R1, R3, R4: the beginning never changes, and never gets shorter. */
static void judge_events(struct patron *p, int status, const char *body)
{
    struct order *o = p->order;
    uint32_t count = 0;
    uint64_t h = 0;
    char newest[40] = "";
    const char *at = strstr(body, "\"items\":[");
    if (status != 200 || !at) {
        saga_violate("events of job %u: %d %.200s", o->number, status, body);
        return;
    }
    for (at += 9; *at == '{' && count < ORDER_EVENTS_MAX; at += *at == ',') {
        const char *end = behind_object(at);
        h = h * 31 + hash_text(at, (size_t)(end - at));
        if (count < o->events && o->events_hash[count] != h)
            saga_violate("event %u of job %u has changed: %.200s (R3)", count + 1, o->number, at);
        o->events_hash[count++] = h;
        char when[40];
        if (!text_of(at, "timestamp", when, sizeof(when)) || strcmp(when, newest) < 0)
            saga_violate("event %u of job %u is older than the one before it: %.200s (R8)", count, o->number,
                         at);
        memcpy(newest, when, sizeof(newest));
        if (strstr(at, "RUNNER_LOST") && strstr(at, "RUNNER_LOST") < end)
            SOMETIMES(RUNNER_LOST);
        at = end;
    }
    if (count < p->events_floor)
        saga_violate("job %u has %u events, and had %u (R4)", o->number, count, p->events_floor);
    if (p->events_floor && count > p->events_floor)
        SOMETIMES(EVENTS_GREW);
    if (count > o->events)
        o->events = count;
}

static void judge_report(struct patron *p, int status, const char *body)
{
    struct order *o = p->order;
    bool none = status == 404 && strstr(body, "RFA_JOB_REPORT_NOT_FOUND");
    if (none && p->floor.attempt && is_final(p->floor.state) && p->floor.state != JOB_FAILED)
        saga_violate("job %u is %s and has no report (J3)", o->number, job_state_name(p->floor.state));
    if (none)
        return;
    if (status != 200) {
        saga_violate("report of job %u: %d %.200s", o->number, status, body);
        return;
    }
    uint64_t h = hash_text(body, strlen(body));
    bool for_good = strstr(body, "\"outcome\":\"SUCCESS\"") || strstr(body, "\"outcome\":\"CANCELED\"");
    if (for_good && o->report_attempt && o->report_hash != h)
        saga_violate("the report of job %u has changed: %.200s (J3)", o->number, body);
    if (for_good) {
        o->report_attempt = 1;
        o->report_hash = h;
    }
}

static void judge_cancel(struct patron *p, int status, const char *body)
{
    struct order *o = p->order;
    uint8_t state;
    if (status == 409)
        return; /* others were quicker, again and again */
    if (status != 200 || !state_of(body, &state)) {
        saga_violate("cancel of job %u: %d %.200s", o->number, status, body);
        return;
    }
    if (!is_final(state))
        saga_violate("job %u was canceled, and is %s", o->number, job_state_name(state));
    if (state != JOB_CANCELED) {
        SOMETIMES(CANCEL_LATE);
        return;
    }
    if (rank_of(p->floor.state) < 2)
        SOMETIMES(CANCEL_QUEUED);
    else
        SOMETIMES(CANCEL_RUNNING);
    o->sight.canceled = true;
}

static void judge_retry(struct patron *p, int status, const char *body)
{
    struct order *o = p->order;
    struct sight s = {.attempt = (uint16_t)number_of(body, "attempt")};
    if (status == 409) {
        SOMETIMES(RETRY_REFUSED);
        return;
    }
    if (status != 200 || !state_of(body, &s.state)) {
        saga_violate("retry of job %u: %d %.200s", o->number, status, body);
        return;
    }
    see(o, p->floor, s, "a retry");
    if (s.attempt > 1 && s.state == JOB_QUEUED)
        SOMETIMES(RETRIED);
}

/* ---- claims and reports ---- */

/* Of the payload: the job's number. */
static struct order *claimed_order(struct patron *p, const char *job)
{
    char id[UUID_TEXT_SIZE];
    uint64_t number = number_of(job, "n") - saga->numbers;
    if (number >= saga->orders_count || !text_of(job, "job_id", id, sizeof(id))) {
        saga_violate("a claim gave what nobody has ordered: %.200s", job);
        return NULL;
    }
    struct order *o = &saga->orders[number];
    if (o->client != p->client || !o->outside || !o->tried || (o->known && strcmp(id, o->id) != 0)) {
        saga_violate("a claim gave job %u as %s: %.120s (I1)", o->number, id, job);
        return NULL;
    }
    memcpy(o->id, id, sizeof(id));
    o->known = true;
    return o;
}

/* J4, J5: nobody is given a job that somebody else has. */
static void judge_claim(struct patron *p, struct order *o, const char *job)
{
    struct lease *old = &o->lease, new = {.life = saga->life};
    new.attempt = (uint16_t)number_of(job, "attempt");
    new.at_least = p->sent + p->lease_ms *NS_PER_MS;
    new.at_most = now_of() + p->lease_ms *NS_PER_MS;
    if (!text_of(job, "lease_token", new.token, sizeof(new.token)))
        saga_violate("a claim without its token: %.200s", job);
    bool same = old->life == saga->life;
    uint64_t grace =
        saga->began + saga->knobs.lease_ms * NS_PER_MS; /* what an earlier life gave away lasts as long */
    if (old->attempt && old->life + 1 == saga->life && !old->ended && old->at_least > saga->ended &&
        now_of() < grace)
        saga_violate("job %u was claimed again %llu ms after a start, before its lease of an earlier life "
                     "was over (J5)",
                     o->number, (unsigned long long)((now_of() - saga->began) / NS_PER_MS));
    if (old->attempt && same && !old->ended && now_of() < old->at_least)
        saga_violate("job %u was claimed again %llu ms before its lease was over (J5)", o->number,
                     (unsigned long long)((old->at_least - now_of()) / NS_PER_MS));
    if (new.attempt < old->attempt && p->newest >= old->attempt)
        saga_violate("job %u was claimed in attempt %u, and before in %u (J4)", o->number, new.attempt,
                     old->attempt);
    if (old->attempt && !old->ended && new.attempt >= old->attempt)
        SOMETIMES(CLAIMED_AGAIN);
    if (new.attempt >= old->attempt)
        *old = new;
    see(o, (struct sight){0}, (struct sight){.attempt = new.attempt, .state = JOB_RUNNING}, "a claim");
    SOMETIMES(CLAIMED);
}

static void judge_claims(struct patron *p, int status, const char *body)
{
    const char *at = strstr(body, "\"jobs\":[");
    if (status != 200 || !at) {
        saga_violate("a claim: %d %.200s", status, body);
        return;
    }
    bool waited = p->wait_ms && now_of() > p->sent;
    uint32_t count = 0;
    for (at += 8; *at == '{'; at += *at == ',') {
        char job[900];
        const char *end = behind_object(at);
        snprintf(job, sizeof(job), "%.*s", (int)(end - at), at);
        struct order *o = claimed_order(p, job);
        if (o)
            judge_claim(p, o, job);
        if (waited)
            SOMETIMES(CLAIM_WAITED);
        if (++count == 2)
            SOMETIMES(CLAIMED_SEVERAL);
        at = end;
    }
}

/* One of this life, that is: of those of an earlier one none ends before the usual length of one has passed (store/job_fire.h). */
static bool lease_was_over(const struct patron *p)
{
    return p->lease.life == saga->life && !p->lease.beaten && p->lease.at_most <= p->sent;
}

static void judge_beat(struct patron *p, int status, const char *body)
{
    struct order *o = p->order;
    if (p->sent == p->lease.at_most)
        SOMETIMES(BEAT_AT_END);
    if (status == 409) {
        SOMETIMES(BEAT_LOST);
        return;
    }
    if (status != 200) {
        saga_violate("a heartbeat: %d %.200s", status, body);
        return;
    }
    if (strstr(body, "\"cancel_requested\":true")) {
        if (!o->cancel_tried)
            saga_violate("a heartbeat says that job %u is canceled, and nobody asked for that", o->number);
        SOMETIMES(BEAT_CANCELED);
        return;
    }
    if (p->lease.attempt < p->newest || lease_was_over(p))
        saga_violate("a heartbeat of job %u counted %s, %lld ms later (J4)", o->number,
                     lease_was_over(p) ? "behind the end of its lease" : "with an old token",
                     (long long)(p->sent - p->lease.at_most) / 1000000);
    SOMETIMES(BEAT);
    if (strcmp(o->lease.token, p->lease.token) == 0) {
        uint64_t least = p->sent + p->lease_ms * NS_PER_MS, most = now_of() + p->lease_ms * NS_PER_MS;
        o->lease.at_least =
            least > o->lease.at_least ? o->lease.at_least : least; /* it may have been made shorter */
        o->lease.at_most = most > o->lease.at_most ? most : o->lease.at_most;
        o->lease.beaten = p->lease.beaten;
    }
}

/* J3, J4. */
static void judge_end(struct patron *p, int status, const char *body)
{
    struct order *o = p->order;
    struct sight s = {.attempt = (uint16_t)number_of(body, "attempt")};
    bool doubted = p->held_unknown && strcmp(p->held, p->lease.token) == 0;
    p->held_unknown = false;
    if (p->sent == p->lease.at_most)
        SOMETIMES(REPORT_AT_END);
    if (status == 409 && p->lease.life && p->lease.life != saga->life)
        SOMETIMES(STALE_OVER_RESTART);
    if (status == 409) {
        if (p->lease.attempt < p->newest)
            SOMETIMES(REPORT_STALE);
        else if (p->told.attempt == p->lease.attempt)
            SOMETIMES(REPORT_OTHER);
        else if (lease_was_over(p))
            SOMETIMES(REPORT_LATE);
        return;
    }
    if (status != 200 || !state_of(body, &s.state)) {
        saga_violate("a report: %d %.200s", status, body);
        return;
    }
    bool again = p->told.attempt == p->lease.attempt && strcmp(p->told.token, p->lease.token) == 0;
    if (again)
        SOMETIMES(REPORT_AGAIN);
    if (s.attempt < p->lease.attempt)
        saga_violate("a report of attempt %u of job %u was taken for attempt %u", p->lease.attempt, o->number,
                     s.attempt);
    if (!again && o->told.attempt == p->lease.attempt && strcmp(o->told.token, p->lease.token) != 0)
        saga_violate("two reports of attempt %u of job %u were taken (J3)", s.attempt, o->number);
    if (!again && o->told.attempt == p->lease.attempt && o->told.state != s.state &&
        s.attempt == p->lease.attempt)
        saga_violate("two reports of attempt %u of job %u were taken: %s and %s (J3)", s.attempt, o->number,
                     job_state_name(o->told.state), job_state_name(s.state));
    if (!again && !strstr(p->answer, "Idempotent-Replayed") &&
        (p->lease.attempt < p->newest || lease_was_over(p)))
        saga_violate("a report of job %u was taken %s, %lld ms later (J4)", o->number,
                     lease_was_over(p) ? "behind the end of its lease" : "with an old token",
                     (long long)(p->sent - p->lease.at_most) / 1000000);
    SOMETIMES(REPORTED);
    bool replayed = strstr(p->answer, "Idempotent-Replayed") != NULL;
    if (doubted && replayed)
        SOMETIMES(REPORT_WAS_DONE);
    if (doubted && !replayed)
        SOMETIMES(REPORT_WAS_NOT);
    if (!replayed && p->lease.life && p->lease.life != saga->life)
        SOMETIMES(LEASE_OVER_RESTART);
    bool goes_on = strstr(body, "\"will_retry\":true") != NULL;
    if (goes_on && !again)
        SOMETIMES(RETRIED_BY_ITSELF);
    if (again && (s.attempt != p->told.attempt || s.state != p->told.state))
        saga_violate("the report of job %u was taken as %s, and said again it is %s (J3)", o->number,
                     job_state_name(p->told.state), job_state_name(s.state));
    if (!again && s.attempt == p->lease.attempt && is_final(s.state)) {
        o->told.attempt = p->lease.attempt;
        o->told.state = s.state;
        memcpy(o->told.token, p->lease.token, sizeof(o->told.token));
        if (!goes_on)
            see(o, (struct sight){0}, s, "a report");
    }
}

/* ---- every answer ---- */

/* 5xx: nobody knows whether it was done. */
static void take_trouble(struct patron *p, int status, const char *body)
{
    bool quiet = !saga->faults && saga->life == 1;
    if (p->deed == DEED_RETRY)
        p->order->retry_unknown = true;
    bool full = strstr(body, "RFA_EXEC_QUEUE_FULL") || strstr(body, "RATE_LIMITED");
    p->crowded = p->crowded || strstr(body, "RFA_EXEC_QUEUE_FULL");
    if (full)
        SOMETIMES(SUBMIT_REFUSED);
    else if (status == 504 || strstr(body, "RFA_EXEC_TIMEOUT"))
        SOMETIMES(TOO_LATE);
    else if (status == 503 || status == 507)
        SOMETIMES(NO_STORE);
    bool hit = saga->faults & (1u << FAULT_KILLS | 1u << FAULT_ALLOCS); /* the actor that was at it */
    if (status == 500 && hit)
        SOMETIMES(HIT);
    if (status == 500 && !hit && !strstr(body, "STORAGE"))
        saga_violate("%s: %d %.200s", deed_names[p->deed], status, body);
    if (quiet && !full && saga->knobs.store.map_max > saga->knobs.store.map * 2 && saga->phase != PHASE_SETUP)
        saga_violate("%s while nothing fails: %d %.200s", deed_names[p->deed], status, body);
}

static void judge_first(struct patron *p, int status, const char *body)
{
    if (status != 201) {
        saga_violate("%s: %d %.200s", deed_names[p->deed], status, body);
        return;
    }
    if (p->deed == DEED_REGISTER)
        (void)text_of(body, "client_id", p->client_id, sizeof(p->client_id));
    if (p->deed == DEED_KEY)
        p->registered = text_of(body, "api_key", p->key, sizeof(p->key));
    if (p->deed == DEED_HOOK)
        p->hooked = true;
}

static void judge(struct patron *p, int status, const char *body)
{
    tell_loudly(p, "hears", status, body);
    saga->figures.answers++;
    saga_mix(body, strlen(body));
    if (status >= 500 || (status == 429 && p->deed != DEED_SUBMIT)) {
        take_trouble(p, status, body);
        return;
    }
    if (status == 408 && (saga->faults & (1u << FAULT_TRICKLES | 1u << FAULT_STALLS))) {
        SOMETIMES(TOO_SLOW); /* it wasn't whole in time: nothing was done */
        return;
    }
    if (status == 401 || (status == 403 && p->deed != DEED_STRANGER)) {
        saga_violate("%s: a key that was given is refused: %d %.200s", deed_names[p->deed], status, body);
        return;
    }
    switch (p->deed) {
    case DEED_REGISTER:
    case DEED_KEY:
    case DEED_HOOK:
        judge_first(p, status, body);
        break;
    case DEED_SUBMIT:
        judge_submit(p, status, body);
        break;
    case DEED_OTHERWISE:
        judge_otherwise(p, status, body);
        break;
    case DEED_STRANGER:
        judge_stranger(p, status, body);
        break;
    case DEED_HOSTILE:
        judge_hostile(p, status, body);
        break;
    case DEED_LOOK:
        judge_look(p, status, body);
        break;
    case DEED_EVENTS:
        judge_events(p, status, body);
        break;
    case DEED_REPORT:
        judge_report(p, status, body);
        break;
    case DEED_CANCEL:
        judge_cancel(p, status, body);
        break;
    case DEED_RETRY:
        judge_retry(p, status, body);
        break;
    case DEED_CLAIM:
        judge_claims(p, status, body);
        break;
    case DEED_BEAT:
        judge_beat(p, status, body);
        break;
    case DEED_COMPLETE:
    case DEED_FAIL:
        judge_end(p, status, body);
        break;
    case DEED_NOTHING:
    case DEED_COUNT:
        break;
    }
}

/* ---- the connection ---- */

static void rest(struct patron *p, uint64_t ms)
{
    p->stage = PATRON_IDLE;
    p->order = NULL;
    p->next = in_ms(ms);
}

static void leave(struct patron *p)
{
    if (p->fd >= 0)
        world_hang_up(p->fd);
    p->fd = -1;
}

/* The request has no answer, and won't have one. */
static void give_up(struct patron *p)
{
    switch (p->deed) {
    case DEED_SUBMIT:
        SOMETIMES(SUBMIT_UNKNOWN);
        p->order->unknown = true;
        break;
    case DEED_CANCEL:
        SOMETIMES(CANCEL_UNKNOWN);
        p->order->cancel_unknown = true;
        break;
    case DEED_CLAIM:
        SOMETIMES(CLAIM_UNKNOWN);
        break;
    case DEED_COMPLETE:
    case DEED_FAIL:
        SOMETIMES(REPORT_UNKNOWN);
        p->held_unknown = true;
        break;
    case DEED_RETRY:
        p->order->retry_unknown = true;
        break;
    default:
        break;
    }
    leave(p);
    rest(p, BROKEN_MS);
}

void patron_cut_off(struct patron *p)
{
    p->fd = -1; /* the process that had it has gone */
    if (p->stage != PATRON_IDLE)
        give_up(p);
}

/* The end of the answer's body, once it is whole; NULL: not yet. Chunks are put together where they lie. */
static char *whole(struct patron *p, char **ret_body)
{
    p->answer[p->answer_size] = 0;
    char *head_end = strstr(p->answer, "\r\n\r\n"), *end = p->answer + p->answer_size;
    if (!head_end)
        return NULL;
    *ret_body = head_end + 4;
    char *length = strcasestr(p->answer, "\r\nContent-Length: ");
    if (length && length < head_end) {
        char *stop = *ret_body + strtoul(length + 18, NULL, 10);
        return stop <= end ? stop : NULL;
    }
    char *chunked = strcasestr(p->answer, "\r\nTransfer-Encoding: chunked");
    if (!chunked || chunked > head_end)
        return *ret_body;
    char *to = *ret_body, *at = *ret_body;
    for (;;) { /* once to see whether it is whole */
        char *line = strstr(at, "\r\n");
        unsigned long size = line ? strtoul(at, NULL, 16) : 0;
        if (!line || line + 2 + size + 2 > end)
            return NULL;
        if (size == 0)
            break;
        at = line + 2 + size + 2;
    }
    for (at = *ret_body;;) {
        char *line = strstr(at, "\r\n");
        unsigned long size = strtoul(at, NULL, 16);
        at = line + 2;
        if (size == 0)
            return to;
        memmove(to, at, size);
        to += size;
        at += size + 2;
    }
}

static bool unexplained(void)
{
    return !saga->faults && saga->life == 1;
}

/* Its head says that no more answers come; body: behind the head. */
static bool closes(struct patron *p, char *body)
{
    char first = *body;
    *body = 0;
    bool any = strcasestr(p->answer, "\r\nConnection: close") != NULL;
    *body = first;
    return any;
}

/* Of a job that it can still end: whoever works hurries, however long the others have been waiting. */
static bool holds_a_lease(const struct patron *p)
{
    for (uint32_t i = 0; i < saga->orders_count; i++) {
        const struct order *o = &saga->orders[i];
        if (o->client == p->client && o->lease.attempt && !o->lease.ended && o->lease.at_most > now_of())
            return true;
    }
    return false;
}

/* While everything comes to its end: later and later, so that a long wait takes few steps. */
static uint64_t patience(const struct patron *p)
{
    return 20 + (holds_a_lease(p) ? 0 : (saga->now - saga->heal_began) / NS_PER_MS / 20);
}

static bool take_answer(struct patron *p)
{
    char *body, *end = whole(p, &body);
    if (!end)
        return false;
    *end = 0;
    int status = atoi(p->answer + 9);
    life_note_answer();
    bool close_it = closes(p, body);
    if (strncmp(p->answer, "HTTP/1.1 ", 9) != 0)
        saga_violate("an answer that begins with %.40s (H1)", p->answer);
    else
        judge(p, status, body);
    if (close_it)
        leave(p);
    bool hurried = saga->phase == PHASE_SETUP;
    if (saga->phase == PHASE_HEAL)
        rest(p, patience(p));
    else if (hurried)
        rest(p, 0);
    else if (status >= 500)
        rest(p, AGAIN_MS + below(p, 200));
    else
        rest(p, below(p, 4) ? below(p, 10) : below(p, 3000));
    return true;
}

static void broke(struct patron *p)
{
    SOMETIMES(BROKEN);
    if (unexplained())
        saga_violate("%s: the connection broke while nothing fails", deed_names[p->deed]);
    give_up(p);
}

static bool hear(struct patron *p)
{
    ssize_t n = world_receive(p->fd, p->answer + p->answer_size, PATRON_ANSWER_MAX - p->answer_size);
    if (n < 0 && errno == EAGAIN)
        return false;
    if (n <= 0) {
        broke(p);
        return true;
    }
    p->answer_size += (uint32_t)n;
    (void)take_answer(p);
    return true;
}

static bool say(struct patron *p)
{
    uint32_t left = p->request_size - p->request_sent;
    if (p->next > now_of())
        return false;
    if (left > 1 && saga_on(FAULT_TRICKLES) && below(p, 2)) {
        left = 1 + below(p, left - 1);
        p->next = below(p, 8) ? 0 : in_ms(below(p, 300));
    }
    ssize_t n = world_real_send(p->fd, p->request + p->request_sent, left, MSG_NOSIGNAL);
    if (n < 0 && errno == EAGAIN)
        return false;
    if (n < 0) {
        if (p->request_sent == 0) { /* the server has closed it meanwhile: nothing has come over */
            leave(p);
            return true;
        }
        broke(p);
        return true;
    }
    p->request_sent += (uint32_t)n;
    if (++p->pieces == 3)
        SOMETIMES(TRICKLED);
    if (p->request_sent == p->request_size)
        p->stage = PATRON_WAITING;
    return true;
}

static bool go_away(struct patron *p)
{
    bool hangs = p->hang_at && p->hang_at <= now_of();
    if (!hangs && p->until > now_of())
        return false;
    if (hangs)
        SOMETIMES(HUNG_UP);
    else if (unexplained())
        saga_violate("%s had no answer for %u s while nothing fails", deed_names[p->deed],
                     PATIENCE_MS / 1000);
    give_up(p);
    return true;
}

static bool connected(struct patron *p)
{
    if (p->fd >= 0)
        return true;
    p->fd = world_connect(life_world());
    if (p->fd >= 0)
        return true;
    if (p->request_sent == 0 && p->stage == PATRON_SENDING)
        p->next = in_ms(AGAIN_MS);
    return false;
}

static bool begin(struct patron *p)
{
    if (p->next > now_of())
        return false;
    p->next = 0;
    if (ask_first(p) || !p->registered || ask_hook(p))
        return p->stage != PATRON_IDLE;
    if (saga->phase == PHASE_SETUP)
        return false;
    if (saga->phase != PHASE_SAFETY)
        p->aim = NULL;
    bool some = saga->phase == PHASE_SAFETY ? do_something(p) : finish_something(p);
    if (!some && !p->aim)
        p->next = in_ms(saga->phase == PHASE_SAFETY ? 1 + below(p, 50) : 500);
    return some;
}

bool patron_step(struct patron *p)
{
    if (p->stage == PATRON_IDLE)
        return begin(p);
    if (go_away(p))
        return true;
    if (p->stage == PATRON_SENDING)
        return p->next <= now_of() && connected(p) && say(p);
    return hear(p);
}
