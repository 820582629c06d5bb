#include "http/events.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "http/front.h"
#include "http/media.h"
#include "http/paging.h"
#include "http/parameter.h"
#include "http/timestamp.h"
#include "runtime/runtime.h"
#include "runtime/telemetry.h"

enum { EVENT_NAME_MAX = 48 };

/* ---- which ones ---- */

struct wanted {
    char name[EVENT_NAME_MAX]; /* "": all; "actor." with family */
    size_t length;
    bool family;
};

static bool wants(const struct wanted *w, enum telemetry_event event)
{
    const char *name = telemetry_event_name(event);
    return w->family ? strncmp(name, w->name, w->length) == 0 : w->length == 0 || strcmp(name, w->name) == 0;
}

static bool wanted_read(const struct request *q, struct response *r, struct wanted *ret)
{
    if (!parameter_text(q, r, "event", ret->name, sizeof(ret->name)))
        return false;
    ret->length = strlen(ret->name);
    ret->family = ret->length > 2 && strcmp(ret->name + ret->length - 2, ".*") == 0;
    if (ret->family)
        ret->name[--ret->length] = 0;
    for (enum telemetry_event event = 0; event < TELEMETRY_EVENT_COUNT; event++)
        if (wants(ret, event))
            return true;
    response_error_about(r, ERROR_OPS_400_INVALID, "event", "is '%s%s'; there is none of that name",
                         ret->name, ret->family ? "*" : "");
    return false;
}

/* ---- places in their order ---- */

static size_t sequence_write(uint64_t sequence, char text[TELEMETRY_SEQUENCE_MAX])
{
    return telemetry_sequence_write(runtime_telemetry(runtime_self()), sequence, text);
}

/* The client's place: the sequence that it has seen, 0 when it names none. What is no place in our events starts at the
 * oldest one that is kept: a sequence of another process, one from the future; and whatever a stream comes back with,
 * because a browser that is refused then never comes again. False: it is no sequence, and that is the answer. */
static bool place_read(const struct request *q, struct response *r, uint64_t *ret, bool *ret_given)
{
    const struct telemetry *telemetry = runtime_telemetry(runtime_self());
    char text[EVENTS_SINCE_SIZE];
    const struct span last = q->known[HEADER_LAST_EVENT_ID];
    bool again = last.bytes && last.size; /* a reconnecting stream is further than its address */
    if (!parameter_text(q, r, "since", text, sizeof(text)))
        return false;
    if (again)
        snprintf(text, sizeof(text), "%.*s", (int)last.size, (const char *)last.bytes);
    *ret_given = text[0] != 0;
    enum error e = text[0] ? telemetry_sequence_read(telemetry, text, ret) : OK;
    if (e == ERR_INVALID && !again) {
        response_error_about(r, ERROR_OPS_400_INVALID, "since",
                             "is '%s'; it must be the next or the sequence of an earlier answer", text);
        return false;
    }
    if (e || !text[0] || *ret > telemetry_kept(telemetry))
        *ret = 0;
    return true;
}

static void record_write(const struct telemetry_record *record, struct json *json)
{
    char at[TIMESTAMP_SIZE];
    timestamp_format(record->wall, at);
    telemetry_record_write(runtime_telemetry(runtime_self()), record, at, json);
}

/* ---- as a list ---- */

/* Looked at twice: the head says where a list goes on that ends at its limit, and the head goes out first. */
struct list {
    struct json *json;
    const struct wanted *wanted;
    uint64_t left;
    uint64_t next;  /* the last one looked at */
    uint64_t place; /* the last one written, or passed over */
    uint64_t missed;
};

static bool list_look(void *context, const struct telemetry_record *record)
{
    struct list *l = context;
    l->next = record->sequence;
    return !wants(l->wanted, record->event) || --l->left > 0;
}

/* Up to where the first look ended; what has come since is the next one's. What is written over while a slow client takes what
 * stands before it is missed, as well as what was before anybody looked. */
static bool list_add(void *context, const struct telemetry_record *record)
{
    struct list *l = context;
    if (record->sequence > l->next)
        return false;
    l->missed += record->sequence - l->place - 1;
    l->place = record->sequence;
    if (wants(l->wanted, record->event))
        record_write(record, l->json);
    return true;
}

static void serve_list(const struct request *q, struct response *r, const struct wanted *wanted)
{
    struct json json;
    struct list l = {.json = &json, .wanted = wanted};
    bool given;
    char next[TELEMETRY_SEQUENCE_MAX];
    if (!place_read(q, r, &l.next, &given) ||
        !parameter_number(q, r, "limit", EVENTS_DEFAULT, EVENTS_MAX, &l.left))
        return;
    const struct telemetry *telemetry = runtime_telemetry(runtime_self());
    l.place = l.next;
    telemetry_recent(telemetry, l.place, list_look, &l);
    size_t size = sequence_write(l.next, next);
    if (l.left == 0)
        paging_link(q, r, "since", span_of(next, size));
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    json_key(&json, "events");
    json_array_begin(&json);
    telemetry_recent(telemetry, l.place, list_add, &l);
    json_array_end(&json);
    JSON_MEMBER(&json, "missed", uint, l.missed + l.next - l.place);
    JSON_MEMBER(&json, "next", string_n, next, size);
    json_object_end(&json);
    json_sink_text(&r->sink, "\n");
}

/* ---- as they happen ---- */

struct stream {
    struct response *r;
    const struct wanted *wanted;
    uint64_t place; /* seen up to here */
    bool wrote;
};

/* Without an id: who comes back after it has still seen no more than what it had seen before. */
static void stream_missed(struct stream *s, uint64_t count)
{
    json_sink_text(&s->r->sink, "event: missed\ndata: {\"missed\":");
    json_sink_uint(&s->r->sink, count);
    json_sink_text(&s->r->sink, "}\n\n");
    s->wrote = true;
}

static void stream_id(struct stream *s)
{
    char id[TELEMETRY_SEQUENCE_MAX];
    json_sink_text(&s->r->sink, "id: ");
    json_sink_bytes(&s->r->sink, id, sequence_write(s->place, id));
    json_sink_text(&s->r->sink, "\n");
}

static bool stream_add(void *context, const struct telemetry_record *record)
{
    struct stream *s = context;
    struct json_sink *sink = &s->r->sink;
    struct json json;
    if (record->sequence > s->place + 1)
        stream_missed(s, record->sequence - s->place - 1);
    s->place = record->sequence;
    if (!wants(s->wanted, record->event))
        return true;
    stream_id(s);
    json_sink_text(sink, "event: ");
    json_sink_text(sink, telemetry_event_name(record->event));
    json_sink_text(sink, "\ndata: ");
    json_init(&json, sink);
    record_write(record, &json);
    json_sink_text(sink, "\n\n");
    s->wrote = true;
    return sink->status == JSON_OK;
}

/* Until the client goes, takes nothing any more, or the server drains. */
static void stream_run(struct stream *s)
{
    const struct telemetry *telemetry = runtime_telemetry(runtime_self());
    uint64_t seen = UINT64_MAX, silent_until = actor_deadline_ms(EVENTS_KEEP_ALIVE_MS);
    struct message *nothing;
    do {
        uint64_t kept = telemetry_kept(telemetry);
        if (kept != seen) {
            telemetry_recent(telemetry, s->place, stream_add, s);
            seen = kept;
        }
        if (!s->wrote && actor_now() >= silent_until) {
            stream_id(s); /* who comes back needn't pass again what it didn't want */
            json_sink_text(&s->r->sink, ":\n\n");
            s->wrote = true;
        }
        if (s->wrote) {
            if (!response_flush(s->r))
                return;
            silent_until = actor_deadline_ms(EVENTS_KEEP_ALIVE_MS);
            s->wrote = false;
        }
    } while (response_wait(s->r, NULL, NULL, &nothing, actor_deadline_ms(EVENTS_LOOK_MS)) == ERR_TIMEOUT);
}

/* The count of streams goes back with the actor, however it ends. */
static void leave(void *arg)
{
    atomic_fetch_sub((_Atomic uint32_t *)arg, 1);
}

static void serve_stream(const struct request *q, struct response *r, const struct wanted *wanted)
{
    struct front *front = front_find(q->front->name);
    struct stream s = {.r = r, .wanted = wanted};
    uint64_t limit;
    bool given;
    if (!place_read(q, r, &s.place, &given) || !parameter_number(q, r, "limit", 0, EVENTS_MAX, &limit))
        return;
    if (limit) {
        response_error_field(r, ERROR_OPS_400_INVALID, "limit", "is of a list; a stream has no end");
        return;
    }
    uint32_t most = atomic_load(&front->limits)->streams_max;
    if (atomic_fetch_add(&front->streams, 1) >= most) {
        atomic_fetch_sub(&front->streams, 1);
        response_error(r, ERROR_OPS_503_OVERLOADED,
                       most == 1 ? "%u event stream is open, and there may be no more than that"
                                 : "%u event streams are open, and there may be no more than that",
                       most);
        return;
    }
    uint64_t own = actor_own(leave, &front->streams);
    if (!own) {
        leave(&front->streams);
        response_error(r, ERROR_OPS_503_OVERLOADED, "there is no record left to count this stream by");
        return;
    }
    if (q->method == METHOD_HEAD) {
        response_stream(r, 200, RESPONSE_EVENTS); /* its head, which knows no length */
    } else {
        r->keep_alive = false; /* it ends with the connection, and its head says so */
        response_stream(r, 200, RESPONSE_EVENTS);
        if (!given) /* from now on */
            s.place = telemetry_kept(runtime_telemetry(runtime_self()));
        json_sink_text(&r->sink, "retry: 1000\n\n");
        if (response_flush(r))
            stream_run(&s);
    }
    actor_release(own);
}

/* ---- which of the two ---- */

void events_serve(const struct request *q, struct response *r)
{
    struct wanted wanted;
    if (!wanted_read(q, r, &wanted))
        return;
    if (media_accepts(q, RESPONSE_EVENTS)) /* a browser's EventSource sends no other */
        serve_stream(q, r, &wanted);
    else
        serve_list(q, r, &wanted);
}
