#include "actors/outbound.h"

#include <stdio.h>

#include "actors/callback_url.h"
#include "actors/jobs.h"
#include "actors/strays.h"
#include "actors/webhooks.h"
#include "runtime/telemetry.h"
#include "runtime/runtime.h"
#include "store/job_change.h"
#include "store/view.h"

enum {
    OUTBOUND_LOOK = 1,
    URL_ROOM = CALLBACK_URL_MAX + 1,
    HEADERS_ROOM = 1024,
    BODY_ROOM = 58000,
    SIGNATURES_MAX = 2,
    BUCKETS = 256, /* by the last byte of an id, which is a hash's */
};
STATIC_ASSERT(URL_ROOM + HEADERS_ROOM + BODY_ROOM <= FETCH_REQUEST_MAX, "a request holds all of it");
/* What is in an event beside its data: ids, names, times; data are JSON already. */
STATIC_ASSERT(EVENT_DATA_MAX + 2048 <= BODY_ROOM, "any event fits");

#define SCAN_SHARE \
    4u /* of a look's time that must pass before the next one: a fifth of the time is spent on looks at most */

enum stage { FREE, IN_HAND, RESULT, SETTLING };

/* A delivery that is being seen to. */
struct flight {
    uint8_t stage;
    bool unproven, suspect; /* its lane was, when it began */
    uint16_t lane;          /* position of what is remembered of it */
    uint16_t next;          /* of those busy with ids of one bucket: its number and 1; 0: none */
    uint16_t tries;
    uint64_t ref; /* of fetch */
    uint64_t began_ns;
    uint64_t deadline; /* of its turn */
    uint64_t time_ns;  /* that its receiver has from then on */
    struct uuid client, job, webhook;
    struct delivery_result result;
    bool made;  /* the result is that of an attempt */
    char *host; /* its place in the tables */
};

struct lane {
    bool used;
    bool proven; /* it answered, the last time that it was asked */
    uint16_t number;
    uint16_t window;     /* requests that it may have in hand */
    uint16_t hand, busy; /* flights in fetch's hands; all of them */
    uint8_t strikes;     /* failures since it has answered the last time, or is known */
    uint8_t refusals;    /* times in a row that it has asked for less */
    uint64_t until;      /* nothing is begun in it before then: it has asked for less */
    uint64_t used_ns;
};

/* Made for the first delivery, each in one piece of an arena. */
struct hosts {
    char text[OUTBOUND_FLIGHTS][DELIVERY_HOST_MAX + 1];
};
struct texts {
    char url[URL_ROOM], headers[HEADERS_ROOM], body[BODY_ROOM];
};
struct tables {
    struct flight flights[OUTBOUND_FLIGHTS];
    struct lane lanes[OUTBOUND_LANES_KEPT];
    uint16_t busy[BUCKETS]; /* the first of each bucket, as in struct flight */
    struct texts *texts;
    struct strays strays;
    /* From here on nothing is read that wasn't written just before. */
    struct due_entry entries[OUTBOUND_FLIGHTS + OUTBOUND_LANE_MAX + OUTBOUND_SKIP_MAX];
    uint8_t settling[DELIVERY_RESULTS_MAX]; /* flights, in the order of the command */
    uint8_t results[DELIVERY_RESULTS_MAX * DELIVERY_RESULT_SIZE];
};

struct outbound {
    struct outbound_args args;
    struct tables *t; /* NULL: nothing was sent so far */
    uint32_t hand, hand_most, settling_count;
    uint32_t unproven, suspects; /* of those in hand; suspects are unproven, too */
    uint64_t settle_ref;         /* of store_ask; 0: none is open */
    bool standing;               /* nothing can go out at all, and that was said */
    uint64_t fetch_monitor;
    uint64_t hold_until;   /* nothing is begun before then */
    uint64_t settle_until; /* nor settled */
    uint64_t scan_after;
    uint64_t timer, alarm; /* of the next look, and when that is */
    uint64_t next_due_us;  /* steady; of what was seen in this look */
    uint32_t next_lane;    /* where a look begins */
    uint32_t turn_lane;    /* behind the unproven one that had its turn last */
};

/* ---- looks ---- */

static void look_at(struct outbound *o, uint64_t deadline)
{
    if (o->timer && o->alarm <= deadline)
        return;
    if (o->timer)
        (void)actor_timer_cancel(o->timer, NULL);
    o->alarm = deadline;
    o->timer = actor_timer(deadline, OUTBOUND_LOOK, deadline);
}

/* Something may have changed for any lane; looks are rationed. */
static void look_soon(struct outbound *o)
{
    uint64_t now = actor_now();
    look_at(o, o->scan_after > now ? o->scan_after : now);
}

static void trouble(struct outbound *o, uint64_t *until)
{
    *until = actor_deadline_ms(OUTBOUND_TROUBLE_MS);
    look_at(o, *until);
}

/* ---- lanes ---- */

/* What would be lost with it, if it were forgotten: an unproven one that comes again is treated as one that is new. */
static unsigned lane_worth(const struct lane *l)
{
    return !l->used ? 0 : !l->proven && l->until <= actor_now() ? 1 : 2;
}

static bool lane_goes_before(const struct lane *l, const struct lane *other)
{
    unsigned worth = lane_worth(l), than = lane_worth(other);
    return worth < than || (worth == than && l->used_ns < other->used_ns);
}

static uint16_t lane_place(struct outbound *o, uint16_t number)
{
    struct lane *goes = NULL;
    for (uint16_t i = 0; i < OUTBOUND_LANES_KEPT; i++) {
        struct lane *l = &o->t->lanes[i];
        if (l->used && l->number == number)
            return i;
        if (l->busy == 0 && (!goes || lane_goes_before(l, goes)))
            goes = l;
    }
    ASSERT(goes); /* there are more than flights */
    *goes = (struct lane){.used = true, .number = number, .window = 1, .used_ns = actor_now()};
    return (uint16_t)(goes - o->t->lanes);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* How many more may be begun in it. */
static uint32_t lane_room(const struct outbound *o, const struct lane *l)
{
    if (actor_now() < l->until)
        return 0;
    uint32_t most = l->proven ? l->window : 1;
    uint32_t room = l->hand < most ? most - l->hand : 0;
    if (!l->proven)
        room = smaller(room, OUTBOUND_UNPROVEN_MAX - smaller(o->unproven, OUTBOUND_UNPROVEN_MAX));
    if (l->strikes)
        room = smaller(room, OUTBOUND_SUSPECTS_MAX - smaller(o->suspects, OUTBOUND_SUSPECTS_MAX));
    return smaller(room, o->hand_most - smaller(o->hand, o->hand_most));
}

/* Whether an answer asks for less, of whatever it is: it says nothing of the one delivery. */
static bool asks_for_less(int status)
{
    return status == 429 || status == 502 || status == 503 || status == 504;
}

/* Each time longer, unless it says how long. What was under way beside the first that was refused says nothing new. */
static void lane_rest(struct lane *l, uint32_t retry_after_s)
{
    const struct webhooks_settings settings = webhooks_settings();
    uint64_t now = actor_now();
    if (now >= l->until)
        l->refusals = (uint8_t)(l->refusals + (l->refusals < UINT8_MAX));
    uint64_t backoff_us = job_backoff_us((uint16_t)(l->refusals + 1u), settings.backoff_base_us,
                                         settings.backoff_most_us, (uint32_t)actor_random());
    uint64_t rest_us = retry_after_s ? (uint64_t)retry_after_s * 1000000 : backoff_us;
    uint64_t most_us = (uint64_t)OUTBOUND_REST_MAX_S * 1000000;
    l->window = 1;
    l->until = later(l->until, now + (rest_us < most_us ? rest_us : most_us) * NS_PER_US);
}

/* What an attempt says of the host. */
static void lane_learn(struct lane *l, enum delivery_error error, const struct fetch_answer *a,
                       const struct flight *f)
{
    uint64_t took_ns = actor_now() - f->began_ns, quick_ns = f->time_ns / OUTBOUND_QUICK_PART;
    if (error == DELIVERY_TIMEOUT || error == DELIVERY_UNREACHABLE) {
        l->strikes = (uint8_t)(l->strikes + (l->strikes < UINT8_MAX));
        l->proven = false;
        return;
    }
    if (!l->proven)
        l->window = OUTBOUND_LANE_FIRST;
    l->proven = true;
    l->strikes = 0;
    if (asks_for_less(a->status)) {
        lane_rest(l, a->retry_after_s);
        return;
    }
    l->refusals = 0;
    if (took_ns <= quick_ns)
        l->window = (uint16_t)smaller(l->window + 1u, OUTBOUND_LANE_MAX);
    else if (took_ns > quick_ns * 2)
        l->window = OUTBOUND_LANE_FIRST;
}

/* ---- flights ---- */

static struct flight *flight_new(struct outbound *o)
{
    for (uint32_t i = 0; i < OUTBOUND_FLIGHTS; i++)
        if (o->t->flights[i].stage == FREE)
            return &o->t->flights[i];
    return NULL;
}

static struct flight *flight_by_ref(struct outbound *o, uint64_t ref)
{
    for (uint32_t i = 0; o->t && i < OUTBOUND_FLIGHTS; i++)
        if (o->t->flights[i].stage == IN_HAND && o->t->flights[i].ref == ref)
            return &o->t->flights[i];
    return NULL;
}

static uint8_t bucket_of(const struct uuid *id)
{
    return id->bytes[sizeof(id->bytes) - 1];
}

static bool is_busy(const struct outbound *o, const struct uuid *id)
{
    const struct flight *f;
    for (uint32_t at = o->t->busy[bucket_of(id)]; at > 0; at = f->next) {
        f = &o->t->flights[at - 1];
        if (uuid_equal(&f->result.id, id))
            return true;
    }
    return false;
}

static struct lane *lane_of(struct outbound *o, const struct flight *f)
{
    return &o->t->lanes[f->lane];
}

/* Its delivery is known; from here on nobody else sees to that. */
static void flight_begins(struct outbound *o, struct flight *f, uint16_t lane)
{
    uint16_t *first = &o->t->busy[bucket_of(&f->result.id)];
    f->lane = lane;
    f->next = *first;
    *first = (uint16_t)(f - o->t->flights + 1);
    lane_of(o, f)->busy++;
}

static void flight_free(struct outbound *o, struct flight *f)
{
    uint16_t number = (uint16_t)(f - o->t->flights + 1), *at = &o->t->busy[bucket_of(&f->result.id)];
    while (*at != number) { /* ends: it is there */
        ASSERT(*at > 0);
        at = &o->t->flights[*at - 1].next;
    }
    *at = f->next;
    lane_of(o, f)->busy--;
    f->stage = FREE;
}

/* It has come back from fetch, or was lost there. */
static void flight_lands(struct outbound *o, struct flight *f)
{
    lane_of(o, f)->hand--;
    o->hand--;
    o->unproven -= f->unproven;
    o->suspects -= f->suspect;
    f->ref = 0;
}

/* ---- what came of one ---- */

static void end_without(struct flight *f, enum delivery_outcome outcome, enum delivery_error error)
{
    f->result.attempt--; /* none was made */
    f->result.outcome = (uint8_t)outcome;
    f->result.error = (uint8_t)error;
    f->made = false;
    f->stage = RESULT;
}

static uint64_t retry_time(const struct flight *f, uint32_t retry_after_s,
                           const struct webhooks_settings *settings)
{
    uint64_t now_us = store_steady_us(store_here());
    uint64_t told_us = (uint64_t)smaller(retry_after_s, OUTBOUND_RETRY_AFTER_MAX_S) * 1000000;
    uint64_t backoff_us = job_backoff_us((uint16_t)(f->tries + 2u), settings->backoff_base_us,
                                         settings->backoff_most_us, (uint32_t)actor_random());
    return later(now_us + later(told_us, backoff_us), 1);
}

static void end_attempt(struct flight *f, enum delivery_error error, int status, uint32_t retry_after_s)
{
    const struct webhooks_settings settings = webhooks_settings();
    struct delivery_result *r = &f->result;
    bool last = f->tries + 1u > settings.retries_max || status == DELIVERY_GONE_STATUS;
    r->status = (uint16_t)status;
    r->error = (uint8_t)error;
    uint64_t took_ms = (actor_now() - f->began_ns) / NS_PER_MS;
    r->took_ms = took_ms < UINT32_MAX ? (uint32_t)took_ms : UINT32_MAX;
    r->outcome = error == DELIVERY_NO_ERROR ? DELIVERY_SUCCEED : last ? DELIVERY_GIVE_UP : DELIVERY_RETRY;
    if (r->outcome == DELIVERY_RETRY)
        r->not_before_us = retry_time(f, retry_after_s, &settings);
    f->made = true;
    f->stage = RESULT;
}

/* ---- making a request ---- */

struct request {
    const struct delivery *delivery;
    struct webhook webhook; /* of one that goes to a webhook */
    struct job job;
    struct job_definition definition;
    struct event event;
    const struct webhooks_settings *settings;
    uint64_t at_us;
};

/* What isn't there any more ends a delivery for good. What can't be read may be there again, after a restore. */
static enum delivery_error unread(enum error e, enum delivery_error gone)
{
    if (e == ERR_NOT_FOUND)
        return gone;
    TELEMETRY(STORE_DAMAGED, 1, DIM(COMPONENT, "outbound"),
              DIM(REASON, gone == DELIVERY_REMOVED ? "webhooks" : "jobs"));
    return DELIVERY_DAMAGED;
}

/* What it is made of. DELIVERY_NO_ERROR, or why there is nothing to be sent. */
static enum delivery_error request_read(struct txn *txn, struct request *q)
{
    static const struct uuid none = {{0}};
    const struct delivery *d = q->delivery;
    bool hook = !uuid_equal(&d->webhook, &none);
    enum error e = hook ? webhook_read(txn, &d->client, &d->webhook, &q->webhook) : OK;
    if (e)
        return unread(e, DELIVERY_REMOVED);
    if (hook && q->webhook.state != WEBHOOK_ACTIVE)
        return DELIVERY_DISABLED;
    e = job_read(txn, &d->job, &q->job);
    if (!e)
        e = job_read_definition(txn, &d->job, &q->definition);
    if (!e)
        e = event_read(txn, &d->job, d->event, &q->event);
    if (e)
        return unread(e, DELIVERY_JOB_GONE);
    if (!hook)
        q->webhook = (struct webhook){.url = q->definition.callback};
    const char *why;
    if (!callback_url_check(q->webhook.url, true, &why))
        return DELIVERY_URL;
    return callback_url_check(q->webhook.url, q->settings->allow_private, &why) ? DELIVERY_NO_ERROR
                                                                                : DELIVERY_ADDRESS;
}

/* The event object and two members more. 0: it doesn't fit. */
static size_t write_body(const struct request *q, char *room, size_t size)
{
    const struct delivery *d = q->delivery;
    char id[UUID_TEXT_SIZE];
    struct json_sink sink;
    struct json json;
    struct span kind = job_kind_name(q->job.kind, q->definition.kind_name);
    json_sink_init(&sink, room, size, NULL, NULL);
    json_init(&json, &sink);
    uuid_format(&d->id, id);
    json_object_begin(&json);
    if (d->topic == OUTBOX_JOB_EMITTED)
        job_emitted_write_json(&json, store_here(), &q->job, kind, d->event, &q->event);
    else
        job_event_write_json(&json, store_here(), &q->job, kind, d->event, &q->event);
    JSON_MEMBER(&json, "delivery_id", string, id);
    JSON_MEMBER(&json, "delivery_attempt", uint, d->attempts + 1);
    json_object_end(&json);
    return json_end(&json) == JSON_OK ? sink.length : 0;
}

struct secret {
    uint32_t size;
    uint8_t bytes[WEBHOOK_SECRET_BYTES_MAX];
};

static void own_secret(const struct webhook *webhook, uint32_t number, struct secret *ret)
{
    ret->size = WEBHOOK_SECRET_SIZE;
    webhook_secret(store_here(), &webhook->id, number, ret->bytes);
}

static void common_secret(const struct webhooks_settings *settings, struct secret *ret)
{
    ret->size = settings->secret_size;
    memcpy(ret->bytes, settings->secret, settings->secret_size);
}

/* The webhook's own, else the server's; for a day after a rotation the one before it as well. */
static uint32_t secrets_of(const struct request *q, struct secret secrets[SIGNATURES_MAX])
{
    const struct webhook *w = &q->webhook;
    uint32_t count = 0;
    if (w->secret)
        own_secret(w, w->secret, &secrets[count++]);
    if (w->secret && q->at_us >= later(w->secret_us, WEBHOOK_OVERLAP_US) &&
        q->at_us - w->secret_us >= WEBHOOK_OVERLAP_US)
        return count;
    if (w->secret > 1)
        own_secret(w, w->secret - 1, &secrets[count++]);
    else if (q->settings->secret_size)
        common_secret(q->settings, &secrets[count++]);
    return count;
}

static void write_headers(const struct request *q, struct span body, char *room, size_t size)
{
    struct secret secrets[SIGNATURES_MAX];
    char id[UUID_TEXT_SIZE], signature[WEBHOOK_SIGNATURE_SIZE];
    uint64_t at_s = q->at_us / 1000000;
    uint32_t count = secrets_of(q, secrets);
    uuid_format(&q->delivery->id, id);
    int used =
        snprintf(room, size, "Content-Type: application/json\nwebhook-id: %s\nwebhook-timestamp: %llu\n", id,
                 (unsigned long long)at_s);
    const struct webhook_message message = {.id = span_text(id), .at_s = at_s, .body = body};
    for (uint32_t i = 0; i < count; i++) {
        webhook_sign(span_of(secrets[i].bytes, secrets[i].size), &message, signature);
        used += snprintf(room + used, size - (size_t)used, "%s%s", i == 0 ? "webhook-signature: " : " ",
                         signature);
    }
    if (count)
        used += snprintf(room + used, size - (size_t)used, "\n");
    explicit_bzero(secrets, sizeof(secrets));
    ASSERT((size_t)used < size);
}

/* ---- sending ---- */

static void note_delivery(struct flight *f, const struct delivery *d, uint64_t at_us)
{
    uint32_t size = d->host.size;
    f->client = d->client;
    f->job = d->job;
    f->webhook = d->webhook;
    f->tries = d->tries;
    f->began_ns = actor_now();
    f->result = (struct delivery_result){.id = d->id, .attempt = d->attempts + 1, .began_us = at_us};
    if (size)
        memcpy(f->host, d->host.bytes, size);
    f->host[size] = 0;
}

/* An end that needs no request. False: it is to be sent. */
static bool ends_here(struct flight *f, enum delivery_error error)
{
    switch (error) {
    case DELIVERY_NO_ERROR:
        return false;
    case DELIVERY_ADDRESS:
        end_attempt(f, error, 0, 0); /* it may be reached when the setting is another one */
        return true;
    case DELIVERY_DISABLED:
    case DELIVERY_TOO_LARGE:
    case DELIVERY_DAMAGED:
        end_without(f, DELIVERY_GIVE_UP, error);
        return true;
    default:
        end_without(f, DELIVERY_DROP, error);
        return true;
    }
}

/* Whether a client may have one more of those that may hang: so it leaves places for the others'. */
static bool client_may(const struct outbound *o, const struct uuid *client, bool suspect)
{
    uint32_t unproven = 0, suspects = 0;
    for (uint32_t i = 0; i < OUTBOUND_FLIGHTS; i++) {
        const struct flight *f = &o->t->flights[i];
        if (f->stage != IN_HAND || !f->unproven || !uuid_equal(&f->client, client))
            continue;
        unproven++;
        suspects += f->suspect;
    }
    return unproven < OUTBOUND_CLIENT_UNPROVEN_MAX && (!suspect || suspects < OUTBOUND_CLIENT_SUSPECTS_MAX);
}

struct about {
    struct uuid client, webhook;
};
STATIC_ASSERT(sizeof(struct about) <= FETCH_ABOUT_SIZE, "a request knows what it is for");

/* Whether its webhook is still there, and to be told. It may have waited for its turn since it was made. */
static bool is_wanted(const void *about)
{
    struct about a;
    struct webhook webhook;
    struct view *view = view_open(store_here());
    if (!view)
        return true;
    memcpy(&a, about, sizeof(a));
    enum error e = webhook_read(&view->txn, &a.client, &a.webhook, &webhook);
    bool wanted = e != ERR_NOT_FOUND && (e || webhook.state == WEBHOOK_ACTIVE);
    view_close(view);
    return wanted;
}

static void note_about(struct fetch_request *request, const struct flight *f)
{
    static const struct uuid none = {{0}};
    const struct about about = {.client = f->client, .webhook = f->webhook};
    if (uuid_equal(&f->webhook, &none))
        return;
    request->wanted = is_wanted;
    memcpy(request->about, &about, sizeof(about));
}

enum made { MADE_NOTHING, MADE_STRAY, MADE_RESULT, MADE_REQUEST };

/* Whether the entry leads to one that is to be sent by it. */
static bool leads_there(struct txn *txn, const struct due_entry *entry, struct delivery *ret_delivery)
{
    return delivery_read(txn, &entry->id, ret_delivery) == OK && ret_delivery->state == DELIVERY_PENDING &&
           ret_delivery->not_before_us == entry->due_us;
}

/* Into the tables' room: the view is closed before anything is sent. */
static enum made prepare_in(struct outbound *o, struct txn *txn, const struct due_entry *entry,
                            struct flight *f, struct fetch_request *ret)
{
    const struct webhooks_settings settings = webhooks_settings();
    struct texts *t = o->t->texts;
    struct delivery d;
    struct request q = {.delivery = &d, .settings = &settings, .at_us = store_time_us()};
    if (!leads_there(txn, entry, &d))
        return txn->error ? MADE_NOTHING : MADE_STRAY;
    if (f->unproven && !client_may(o, &d.client, f->suspect))
        return MADE_NOTHING;
    note_delivery(f, &d, q.at_us);
    if (ends_here(f, request_read(txn, &q)))
        return MADE_RESULT;
    size_t size = write_body(&q, t->body, sizeof(t->body));
    if (size == 0 && ends_here(f, DELIVERY_TOO_LARGE))
        return MADE_RESULT;
    memcpy(t->url, q.webhook.url.bytes, q.webhook.url.size);
    t->url[q.webhook.url.size] = 0;
    write_headers(&q, span_of(t->body, size), t->headers, sizeof(t->headers));
    f->deadline = actor_deadline_ms(settings.timeout_ms);
    f->time_ns = settings.timeout_ms * NS_PER_MS;
    *ret = (struct fetch_request){.method = "POST",
                                  .url = t->url,
                                  .headers = t->headers,
                                  .body = t->body,
                                  .body_size = size,
                                  .answer_max = OUTBOUND_ANSWER_MAX,
                                  .any_address = settings.allow_private,
                                  .time_ns = f->time_ns};
    note_about(ret, f);
    return MADE_REQUEST;
}

static enum made prepare(struct outbound *o, const struct due_entry *entry, struct flight *f,
                         struct fetch_request *ret)
{
    struct view *view = view_open(store_here());
    if (!view)
        return MADE_NOTHING;
    enum made made = prepare_in(o, &view->txn, entry, f, ret);
    view_close(view);
    return made;
}

static void hold(struct outbound *o)
{
    o->hand_most = (o->hand_most + 1) / 2;
    trouble(o, &o->hold_until);
}

static void watch_fetch(struct outbound *o)
{
    if (!o->fetch_monitor && !o->args.begin)
        o->fetch_monitor = actor_monitor_name(FETCH_NAME, 0);
}

enum sent { SENT_NO_MORE, SENT_NOTHING, SENT_ONE };

/* SENT_NO_MORE: none can be begun just now. SENT_NOTHING: this one can't, and others may. */
static enum sent send_one(struct outbound *o, uint16_t place, const struct due_entry *entry)
{
    struct fetch_request request;
    struct flight *f = flight_new(o);
    if (!f)
        return SENT_NO_MORE;
    struct lane *l = &o->t->lanes[place];
    f->unproven = !l->proven;
    f->suspect = l->strikes > 0;
    enum made made = prepare(o, entry, f, &request);
    if (made == MADE_STRAY)
        strays_note(&o->t->strays, entry);
    if (made == MADE_STRAY || made == MADE_NOTHING)
        return SENT_NOTHING;
    flight_begins(o, f, place);
    if (made == MADE_RESULT)
        return SENT_ONE;
    watch_fetch(o);
    enum error e = (o->args.begin ? o->args.begin : fetch_begin)(&request, &f->ref, f->deadline);
    if (e == ERR_INVALID) {
        end_without(f, DELIVERY_DROP, DELIVERY_URL);
        return SENT_ONE;
    }
    if (e) {
        flight_free(o, f);
        hold(o);
        return SENT_NO_MORE;
    }
    f->stage = IN_HAND;
    o->unproven += f->unproven;
    o->suspects += f->suspect;
    o->hand++;
    l->hand++;
    return SENT_ONE;
}

/* One that is due, or whose time was given by a clock that was wrong. */
static bool is_due(struct outbound *o, uint64_t due_us, uint64_t now_us)
{
    if (due_us <= now_us || due_us > now_us + OUTBOUND_FAR_US)
        return true;
    if (due_us < o->next_due_us)
        o->next_due_us = due_us;
    return false;
}

/* The look that comes next is when this lane's rest is over, if none is before. */
static void note_rest(struct outbound *o, const struct lane *l, uint64_t now_us)
{
    uint64_t now = actor_now();
    if (now >= l->until)
        return;
    uint64_t over_us = now_us + (l->until - now + NS_PER_US - 1) / NS_PER_US;
    if (over_us < o->next_due_us)
        o->next_due_us = over_us;
}

/* Those of a lane that are due and nobody sees to, to the front of the tables' entries: `room`, and some more in place of those that
 * can't be begun. */
static uint32_t lane_choose(struct outbound *o, const struct lane *l, uint32_t room)
{
    uint32_t found = 0, chosen = 0;
    uint64_t now_us = store_steady_us(store_here());
    struct due_entry *entries = o->t->entries;
    struct view *view = view_open(store_here());
    if (!view)
        return 0;
    if (due_scan_keys(&view->txn, DUE_DELIVERY, l->number, UINT64_MAX, entries,
                      l->busy + room + OUTBOUND_SKIP_MAX, &found) != OK)
        found = 0; /* damaged: check tells */
    view_close(view);
    for (uint32_t i = 0; i < found; i++)
        if (!is_busy(o, &entries[i].id) && is_due(o, entries[i].due_us, now_us))
            entries[chosen++] = entries[i];
    return chosen;
}

/* False: no more can be begun just now. */
static bool lane_send(struct outbound *o, uint16_t place)
{
    struct lane *l = &o->t->lanes[place];
    uint32_t room = lane_room(o, l), begun = 0;
    enum sent sent = SENT_NOTHING;
    l->used_ns = actor_now();
    note_rest(o, l, store_steady_us(store_here()));
    if (room == 0)
        return true;
    uint32_t count = lane_choose(o, l, room);
    for (uint32_t i = 0; i < count && begun < room && sent != SENT_NO_MORE; i++) {
        sent = send_one(o, place, &o->t->entries[i]);
        begun += sent == SENT_ONE;
    }
    return sent != SENT_NO_MORE;
}

static enum error next_lane(const struct outbound *o, uint32_t from, struct due_entry *ret)
{
    struct view *view = view_open(store_here());
    if (!view)
        return ERR_UNAVAILABLE;
    enum error e = delivery_next_lane(&view->txn, (uint16_t)o->args.partition, from, ret);
    view_close(view);
    return e;
}

static void get_ready(struct outbound *o)
{
    if (o->t)
        return;
    struct hosts *hosts = actor_alloc(sizeof(*hosts));
    struct tables *t = actor_alloc(sizeof(*t));
    memset(t, 0, offsetof(struct tables, entries));
    t->texts = actor_alloc(sizeof(*t->texts));
    for (uint32_t i = 0; i < OUTBOUND_FLIGHTS; i++)
        t->flights[i].host = hosts->text[i];
    o->t = t;
}

/* The unproven ones have their turns one after the other, so that each of them has one. */
static bool send_lane(struct outbound *o, uint16_t number)
{
    uint32_t unproven = o->unproven;
    bool on = lane_send(o, lane_place(o, number));
    if (o->unproven > unproven)
        o->turn_lane = (number + 1u) % DELIVERY_LANES_EACH;
    return on;
}

/* All lanes that have something, each time from another one on. */
static void send_all(struct outbound *o)
{
    uint32_t begin = o->next_lane, lane = begin;
    struct due_entry entry = {.shard = 0};
    for (int part = 0; part < 2; part++) { /* up to the last lane, then from the first one */
        for (;;) {
            enum error e = next_lane(o, lane, &entry);
            uint32_t at = entry.shard % DELIVERY_LANES_EACH;
            if (e || (part == 1 && at >= begin))
                break;
            get_ready(o);
            lane = at + 1;
            if (o->hand >= o->hand_most || !send_lane(o, entry.shard)) {
                o->next_lane = lane % DELIVERY_LANES_EACH;
                return;
            }
        }
        lane = 0;
    }
    o->next_lane = o->turn_lane;
}

/* ---- settling ---- */

static uint32_t gather_results(struct outbound *o)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < OUTBOUND_FLIGHTS && count < DELIVERY_RESULTS_MAX; i++) {
        struct flight *f = &o->t->flights[i];
        if (f->stage != RESULT)
            continue;
        size_t size = record_encode(&delivery_result_record, &f->result,
                                    o->t->results + count * DELIVERY_RESULT_SIZE, DELIVERY_RESULT_SIZE);
        ASSERT(size == DELIVERY_RESULT_SIZE);
        o->t->settling[count++] = (uint8_t)i;
    }
    return count;
}
STATIC_ASSERT(OUTBOUND_FLIGHTS <= UINT8_MAX + 1, "a flight's number fits into a byte");

static void settle(struct outbound *o)
{
    if (!o->t || o->settle_ref || actor_now() < o->settle_until)
        return;
    uint32_t count = gather_results(o);
    if (count == 0)
        return;
    const struct webhooks_settings settings = webhooks_settings();
    const struct delivery_settle c = {.steady_us = store_steady_us(store_here()),
                                      .kept_us = settings.kept_us,
                                      .disable_after_us = settings.disable_after_us,
                                      .results = span_of(o->t->results, count * DELIVERY_RESULT_SIZE)};
    if (store_ask(&delivery_settle_class, &c, &o->settle_ref) != OK) {
        o->settle_ref = 0;
        trouble(o, &o->settle_until);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        o->t->flights[o->t->settling[i]].stage = SETTLING;
    o->settling_count = count;
    look_at(o, actor_deadline_ms(OUTBOUND_SETTLE_LOOK_MS));
}

static void tell(const struct flight *f, uint8_t settled)
{
    if (settled != DELIVERY_STALE)
        webhooks_tell(&(struct webhook_told){.result = &f->result,
                                             .job = f->job,
                                             .webhook = f->webhook,
                                             .host = f->host,
                                             .made = f->made,
                                             .disabled = settled == DELIVERY_WEBHOOK_DISABLED});
}

/* What the store has said to the results, if it has. */
static void hear_store(struct outbound *o)
{
    uint8_t settled[DELIVERY_RESULTS_MAX];
    size_t size = 0;
    if (!o->settle_ref)
        return;
    enum error e = store_hear(o->settle_ref, settled, sizeof(settled), &size, actor_now());
    if (e == ERR_TIMEOUT) {
        look_at(o, actor_deadline_ms(OUTBOUND_SETTLE_LOOK_MS));
        return;
    }
    ASSERT(e != ERR_INVALID);
    bool done = e == OK && size == o->settling_count;
    o->settle_ref = 0;
    for (uint32_t i = 0; i < o->settling_count; i++) {
        struct flight *f = &o->t->flights[o->t->settling[i]];
        f->stage = RESULT; /* told again, if it wasn't taken: by its number it counts once */
        if (!done)
            continue;
        tell(f, settled[i]);
        flight_free(o, f);
    }
    if (!done)
        trouble(o, &o->settle_until);
}

/* ---- what fetch says ---- */

/* A status that is a failure is told, however long the page is that came with it. */
static enum delivery_error error_of(const struct fetch_answer *a)
{
    bool good = a->status >= 200 && a->status < 300;
    switch (a->error) {
    case OK:
        return good ? DELIVERY_NO_ERROR : DELIVERY_STATUS;
    case ERR_TIMEOUT:
        return DELIVERY_TIMEOUT;
    case ERR_LIMIT:
        return good || !a->status ? DELIVERY_ANSWER : DELIVERY_STATUS;
    case ERR_FORBIDDEN:
        return DELIVERY_ADDRESS;
    case ERR_INVALID:
        return DELIVERY_URL;
    default:
        return DELIVERY_UNREACHABLE;
    }
}

/* Trouble of our own: it says nothing of the receiver. */
static bool is_ours(enum error e)
{
    return e == ERR_SHED || e == ERR_UNAVAILABLE || e == ERR_MEMORY;
}

/* Once when nothing can go out any more, as without a usable libcurl, and once when that is over. */
static void say(struct outbound *o, bool standing, const char *why)
{
    char line[512];
    struct json_sink sink;
    struct json json;
    if (standing == o->standing)
        return;
    o->standing = standing;
    json_sink_init(&sink, line, sizeof(line), NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "level", string, standing ? "warn" : "info");
    JSON_MEMBER(&json, "logger", string, "webhooks");
    JSON_MEMBER(&json, "msg", string, standing ? "no webhook can be sent" : "webhooks are sent again");
    JSON_MEMBER(&json, "partition", uint, o->args.partition);
    if (standing)
        JSON_MEMBER(&json, "err", string, why);
    json_object_end(&json);
    if (json_end(&json) == JSON_OK)
        runtime_log(runtime_self(), line, sink.length);
}

/* Nothing was sent. One that has waited for its turn in vain says only that its host has more in hand than it gets through. */
static void on_ours(struct outbound *o, struct flight *f, enum error e)
{
    bool waited = e == ERR_SHED && actor_now() >= f->deadline;
    if (waited)
        lane_of(o, f)->window = (uint16_t)smaller(lane_of(o, f)->window, OUTBOUND_LANE_FIRST);
    flight_free(o, f);
    if (waited)
        look_soon(o);
    else
        hold(o);
}

/* The attempt began when its turn came. */
static void note_turn(struct flight *f, uint64_t turn)
{
    if (turn <= f->began_ns)
        return;
    f->result.began_us += (turn - f->began_ns) / NS_PER_US;
    f->began_ns = turn;
}

static void on_done(struct outbound *o, const struct message *m)
{
    struct fetch_answer a;
    if (m->size < sizeof(a))
        return;
    memcpy(&a, m->payload, sizeof(a));
    struct flight *f = flight_by_ref(o, a.ref);
    if (!f)
        return; /* one that was taken for lost */
    uint16_t place = f->lane;
    flight_lands(o, f);
    if (a.error == ERR_UNAVAILABLE)
        say(o, true, a.why);
    else if (!is_ours(a.error))
        say(o, false, NULL);
    if (is_ours(a.error)) {
        on_ours(o, f, a.error);
        return;
    }
    if (a.error == ERR_IGNORED) { /* nothing was sent; the next look says why */
        flight_free(o, f);
        look_soon(o);
        return;
    }
    note_turn(f, a.turn);
    enum delivery_error error = error_of(&a);
    lane_learn(&o->t->lanes[place], error, &a, f);
    if (error == DELIVERY_NO_ERROR)
        o->hand_most = smaller(o->hand_most + 1, OUTBOUND_HAND_MAX);
    end_attempt(f, error, a.status, a.retry_after_s);
    settle(o);
    if (actor_now() >= o->hold_until && o->t->lanes[place].proven)
        (void)lane_send(o, place);
    look_soon(o); /* for lanes that had to wait for a place in our hands */
}

/* Somebody ended it, and no request did. */
static bool was_ended(const struct message_down *down)
{
    uint8_t kind = down->reason.kind;
    return kind == REASON_NORMAL || kind == REASON_SHUTDOWN || kind == REASON_KILLED || kind == REASON_NOPROC;
}

/* What was in its hands has an end that nobody knows. When fetch has crashed it is a failed attempt, so that no delivery can end fetch
 * for ever; else it is sent again, as the same attempt. */
static void on_fetch_down(struct outbound *o, struct message *m)
{
    const struct message_down *down = message_body(m, sizeof(*down));
    o->fetch_monitor = 0;
    ASSERT(down);
    if (down->gone && actor_whereis(FETCH_NAME)) { /* it wasn't there when it was to be watched, and is now */
        watch_fetch(o);
        return;
    }
    bool ended = was_ended(down);
    for (uint32_t i = 0; o->t && i < OUTBOUND_FLIGHTS; i++) {
        struct flight *f = &o->t->flights[i];
        if (f->stage != IN_HAND)
            continue;
        flight_lands(o, f);
        if (ended)
            flight_free(o, f);
        else
            end_attempt(f, DELIVERY_STOPPED, 0, 0);
    }
    settle(o);
    trouble(o, &o->hold_until);
}

/* A full mailbox doesn't take fetch's message. */
static void find_lost(struct outbound *o)
{
    uint64_t now = actor_now();
    for (uint32_t i = 0; o->t && i < OUTBOUND_FLIGHTS; i++) {
        struct flight *f = &o->t->flights[i];
        if (f->stage != IN_HAND || now < f->deadline + f->time_ns + OUTBOUND_GRACE_MS * NS_PER_MS)
            continue;
        flight_lands(o, f);
        end_attempt(f, DELIVERY_STOPPED, 0, 0);
    }
}

/* ---- the actor ---- */

/* The end of a time of waiting, when it is yet to come and before `next`. */
static uint64_t ends_before(uint64_t until, uint64_t next)
{
    return until > actor_now() && until < next ? until : next;
}

/* 0: it has come, perhaps in the course of this look. */
static uint64_t later_by(uint64_t due_us, uint64_t now_us)
{
    return due_us > now_us ? due_us - now_us : 0;
}

/* Entries that lead nowhere. */
static void see_to_strays(struct outbound *o)
{
    enum strays_next next = o->t ? strays_step(&o->t->strays) : STRAYS_REST;
    if (next == STRAYS_SOON)
        look_soon(o);
    else if (next == STRAYS_WAITS)
        look_at(o, actor_deadline_ms(OUTBOUND_SETTLE_LOOK_MS));
}

static void look(struct outbound *o)
{
    uint64_t began = actor_clock();
    o->timer = 0;
    o->next_due_us = UINT64_MAX;
    hear_store(o);
    find_lost(o);
    settle(o);
    if (actor_now() >= o->scan_after && actor_now() >= o->hold_until) {
        send_all(o);
        settle(o); /* what came to an end without a request */
        uint64_t ended = actor_clock();
        o->scan_after = ended + (ended - began) * SCAN_SHARE;
    }
    see_to_strays(o);
    uint64_t now_us = store_steady_us(store_here());
    uint64_t wait_ns = OUTBOUND_LOOK_MS * NS_PER_MS;
    uint64_t left_us = later_by(o->next_due_us, now_us);
    if (left_us < wait_ns / NS_PER_US)
        wait_ns = left_us * NS_PER_US;
    uint64_t next = later(actor_now() + wait_ns, o->scan_after);
    next = ends_before(o->hold_until, next);
    look_at(o, ends_before(o->settle_until, next));
}

static enum actor_step outbound_init(void *state, const void *args, size_t args_size)
{
    struct outbound *o = state;
    char group[STORE_GROUP_SIZE];
    ASSERT(args_size == sizeof(o->args) || args_size == sizeof(o->args.partition));
    memcpy(&o->args, args, args_size);
    if (!store_here() || o->args.partition >= DELIVERY_PARTITIONS)
        actor_refuse(reason_error(ERR_UNAVAILABLE));
    store_group(STORE_TOPIC(TOPIC_DELIVERIES, o->args.partition), group);
    if (actor_join(group) != OK || actor_join(JOBS_CLOCK_GROUP) != OK)
        actor_refuse(reason_error(ERR_LIMIT));
    o->hand_most = OUTBOUND_HAND_MAX;
    look_at(o, actor_now()); /* not here: the tree must not wait for the disk */
    return ACTOR_CONTINUE;
}

static enum actor_step outbound_handle(void *state, struct message *m)
{
    struct outbound *o = state;
    const uint64_t *alarm;
    switch (m->type) {
    case OUTBOUND_LOOK:
        alarm = message_body(m, sizeof(*alarm));
        if (alarm && *alarm == o->alarm)
            look(o);
        break;
    case STORE_WAKE:
        hear_store(o); /* its answer came before the wake */
        settle(o);
        look_soon(o);
        break;
    case JOBS_CLOCK:
        look_soon(o);
        break;
    case FETCH_DONE:
        hear_store(o);
        on_done(o, m);
        break;
    case MESSAGE_DOWN:
        on_fetch_down(o, m);
        break;
    default:
        actor_unknown(m);
    }
    return ACTOR_CONTINUE;
}

const struct actor_class outbound_class = {
    .name = "outbound",
    .state_size = sizeof(struct outbound),
    .init = outbound_init,
    .handle = outbound_handle,
    .stack_size = 256u << 10, /* a scan of due entries and the JSON of an event */
};
