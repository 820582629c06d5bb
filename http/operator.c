#define _GNU_SOURCE /* accept4 */
#include "http/operator.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "actors/adapters.h"
#include "http/chaos.h"
#include "http/connection.h"
#include "runtime/runtime.h"
#include "runtime/supervisor.h"
#include "runtime/telemetry.h"

enum { EVENTS_DEFAULT = 1000, EVENTS_MAX = 100000, READY_ANSWER_MS = 1000 };

/* ---- the query string ---- */

/* The value of `name` in a=1&b=2, up to size - 1 bytes of it; "" when absent or longer. Values here need no
 * decoding. */
static const char *query_value(const char *query, const char *name, char *text, size_t size)
{
    size_t length = strlen(name);
    text[0] = 0;
    while (*query) {
        size_t member = strcspn(query, "&");
        if (member > length && memcmp(query, name, length) == 0 && query[length] == '=' &&
            member - length - 1 < size) {
            memcpy(text, query + length + 1, member - length - 1);
            text[member - length - 1] = 0;
            return text;
        }
        query += member + (query[member] == '&');
    }
    return text;
}

/* False, and the refusal is written, when the value is there and not a number from 1 to max. */
static bool query_number(const struct request *q, struct response *r, const char *name, size_t max,
                         size_t *number)
{
    char text[16], *end;
    query_value(q->query, name, text, sizeof(text));
    if (!text[0])
        return true;
    unsigned long value = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || value < 1 || value > max) {
        response_problem(r, 400, "%s is '%s'; it must be a number from 1 to %zu", name, text, max);
        return false;
    }
    *number = value;
    return true;
}

/* ---- what is served ---- */

static void serve_healthz(const struct operator_options *o, const struct request *q, struct response *r)
{
    (void)o;
    (void)q;
    response_begin(r, 200, RESPONSE_JSON);
    json_sink_text(&r->sink, "{\"status\":\"ok\"}\n");
}

static void serve_readyz(const struct operator_options *o, const struct request *q, struct response *r)
{
    struct adapter_state adapters[ADAPTERS_MAX];
    struct json json;
    size_t ready = 0, missing = living_missing(&o->rows);
    (void)q;
    bool answered = adapters_list(adapters, ADAPTERS_MAX, &ready, actor_deadline_ms(READY_ANSWER_MS)) == OK;
    r->header = missing || !answered ? "Retry-After" : NULL;
    r->header_value = "1";
    response_begin(r, missing || !answered ? 503 : 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "status", string, missing || !answered ? "unavailable" : "ready");
    json_key(&json, "missing");
    json_array_begin(&json);
    for (size_t i = 0; i < o->rows.count; i++)
        if (!o->rows.rows[i].per_key && !actor_whereis(o->rows.rows[i].name))
            json_string(&json, o->rows.rows[i].name);
    json_array_end(&json);
    json_key(&json, "adapters");
    json_object_begin(&json);
    for (size_t i = 0; i < ready; i++)
        JSON_MEMBER(&json, adapters[i].name, string, adapters[i].text);
    json_object_end(&json);
    json_object_end(&json);
    json_sink_text(&r->sink, "\n");
}

#define STATS(X)        \
    X(actors)           \
    X(spawned)          \
    X(ended)            \
    X(crashed)          \
    X(messages_handled) \
    X(messages_dropped) \
    X(messages_remote)  \
    X(preemptions)      \
    X(overruns)         \
    X(wakes)            \
    X(polls)            \
    X(turns)            \
    X(stacks)           \
    X(stacks_in_use)    \
    X(message_bytes)    \
    X(record_bytes)     \
    X(actor_bytes)      \
    X(timers)           \
    X(records)

static void serve_stats(const struct operator_options *o, const struct request *q, struct response *r)
{
    struct runtime_stats s;
    struct json json;
    (void)q;
    runtime_stats(runtime_self(), &s);
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "version", string, o->version);
    JSON_MEMBER(&json, "schedulers", uint, s.schedulers);
    json_key(&json, "runtime");
    json_object_begin(&json);
#define X(name) JSON_MEMBER(&json, #name, uint, s.name);
    STATS(X)
#undef X
    json_object_end(&json);
    json_object_end(&json);
    json_sink_text(&r->sink, "\n");
}

static void serve_tree(const struct operator_options *o, const struct request *q, struct response *r)
{
    size_t children = LIVING_CHILDREN_DEFAULT;
    char format[8];
    struct json json;
    if (!query_number(q, r, "children", LIVING_CHILDREN_MAX, &children))
        return;
    query_value(q->query, "format", format, sizeof(format));
    if (strcmp(format, "text") == 0) {
        response_begin(r, 200, RESPONSE_TEXT);
        living_write_text(&o->rows, &r->sink, children);
    } else if (!format[0] || strcmp(format, "json") == 0) {
        response_begin(r, 200, RESPONSE_JSON);
        json_init(&json, &r->sink);
        living_write_json(&o->rows, &json, children);
        json_sink_text(&r->sink, "\n");
    } else {
        response_problem(r, 400, "format is '%s'; it must be json or text", format);
    }
}

/* ---- events: <time>-<shard>-<n> is a place in their order ---- */

static bool position_parse(const char *text, struct telemetry_position *ret_position)
{
    uint64_t parts[3];
    char *end;
    for (int i = 0; i < 3; i++) {
        if (*text < '0' || *text > '9')
            return false;
        errno = 0;
        parts[i] = strtoull(text, &end, 10);
        if (errno || *end != (i < 2 ? '-' : 0))
            return false;
        text = end + 1;
    }
    if (parts[1] > TELEMETRY_SHARDS_MAX)
        return false;
    *ret_position = (struct telemetry_position){.time = parts[0], .shard = (uint32_t)parts[1], .n = parts[2]};
    return true;
}

struct events {
    struct json *json;
    size_t left;
    struct telemetry_position next;
};

static bool write_event(void *context, const struct telemetry_record *record)
{
    struct events *e = context;
    telemetry_record_write(record, e->json);
    e->next = (struct telemetry_position){.time = record->time, .n = record->n, .shard = record->shard};
    return --e->left > 0;
}

static void serve_events(const struct operator_options *o, const struct request *q, struct response *r)
{
    char since[72], next[72];
    struct json json;
    struct events e = {.json = &json, .left = EVENTS_DEFAULT};
    (void)o;
    query_value(q->query, "since", since, sizeof(since));
    if (since[0] && !position_parse(since, &e.next)) {
        response_problem(r, 400, "since is '%s'; it must be the next or the sequence of an earlier answer",
                         since);
        return;
    }
    if (!query_number(q, r, "limit", EVENTS_MAX, &e.left))
        return;
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    json_key(&json, "events");
    json_array_begin(&json);
    telemetry_recent(runtime_telemetry(runtime_self()), since[0] ? &e.next : NULL, write_event, &e);
    json_array_end(&json);
    struct json_sink text;
    json_sink_init(&text, next, sizeof(next), NULL, NULL);
    json_sink_uint(&text, e.next.time);
    json_sink_text(&text, "-");
    json_sink_uint(&text, e.next.shard);
    json_sink_text(&text, "-");
    json_sink_uint(&text, e.next.n);
    json_key(&json, "next");
    json_string_n(&json, next, text.length);
    json_object_end(&json);
    json_sink_text(&r->sink, "\n");
}

static void metric(struct json_sink *sink, const char *name, uint64_t value)
{
    json_sink_text(sink, "# TYPE coppice_runtime_");
    json_sink_text(sink, name);
    json_sink_text(sink, " gauge\ncoppice_runtime_");
    json_sink_text(sink, name);
    json_sink_text(sink, " ");
    json_sink_uint(sink, value);
    json_sink_text(sink, "\n");
}

static void serve_metrics(const struct operator_options *o, const struct request *q, struct response *r)
{
    struct runtime_stats s;
    (void)q;
    runtime_stats(runtime_self(), &s);
    response_begin(r, 200, RESPONSE_METRICS);
    json_sink_text(&r->sink, "# TYPE coppice_build_info gauge\ncoppice_build_info{version=\"");
    json_sink_text(&r->sink, o->version);
    json_sink_text(&r->sink, "\"} 1\n");
    metric(&r->sink, "schedulers", s.schedulers);
#define X(name) metric(&r->sink, #name, s.name);
    STATS(X)
#undef X
    telemetry_write_metrics(runtime_telemetry(runtime_self()), &r->sink, TELEMETRY_PROMETHEUS);
}

/* ---- chaos ---- */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Percent-decodes in place, once. False: a bad escape, or one that hides a NUL or a slash. */
static bool decode(char *text)
{
    char *to = text;
    for (; *text; text++, to++) {
        if (*text != '%') {
            *to = *text;
            continue;
        }
        int high = hex_digit(text[1]), low = high < 0 ? -1 : hex_digit(text[2]);
        if (low < 0)
            return false;
        *to = (char)(high << 4 | low);
        if (*to == 0 || *to == '/')
            return false;
        text += 2;
    }
    *to = 0;
    return true;
}

#define CHAOS_PREFIX "/chaos/actors/"

/* "/chaos/actors/rooms:kill": names hold colons of their own, so the verb is what follows the last one. */
static void serve_chaos(const struct operator_options *o, const struct request *q, struct response *r)
{
    char *target = q->path + strlen(CHAOS_PREFIX), *verb = strrchr(target, ':');
    (void)o;
    if (!verb || verb == target || strcmp(verb, ":kill") != 0) {
        response_problem(r, 404, "there is no '%s'; it must be " CHAOS_PREFIX "{pid-or-name}:kill", q->path);
        return;
    }
    *verb = 0;
    if (decode(target))
        chaos_kill(target, r);
    else
        response_problem(r, 400, "the name holds an escape that can't be meant");
}

/* ---- routes ---- */

struct route {
    const char *path;
    bool prefix;  /* the path goes on */
    bool changes; /* POST, else GET and HEAD */
    void (*serve)(const struct operator_options *o, const struct request *q, struct response *r);
};

static const struct route routes[] = {
    {.path = "/healthz", .serve = serve_healthz},
    {.path = "/readyz", .serve = serve_readyz},
    {.path = "/stats", .serve = serve_stats},
    {.path = "/stats/tree", .serve = serve_tree},
    {.path = "/stats/events", .serve = serve_events},
    {.path = "/metrics", .serve = serve_metrics},
    {.path = CHAOS_PREFIX, .prefix = true, .changes = true, .serve = serve_chaos},
};

static void route_request(const void *context, const struct request *q, struct response *r)
{
    for (size_t i = 0; i < sizeof(routes) / sizeof(*routes); i++) {
        const struct route *route = &routes[i];
        if (route->prefix ? strncmp(q->path, route->path, strlen(route->path)) != 0
                          : strcmp(q->path, route->path) != 0)
            continue;
        bool fits = route->changes ? q->method == HTTP_POST : q->method == HTTP_GET || q->method == HTTP_HEAD;
        if (!fits) {
            r->header = "Allow";
            r->header_value = route->changes ? "POST" : "GET, HEAD";
            response_problem(r, 405, "%s takes %s", route->path, r->header_value);
        } else if (route->changes && q->cross_site) {
            response_problem(r, 403, "a page from elsewhere may not do this");
        } else {
            route->serve(context, q, r);
        }
        return;
    }
    response_problem(r, 404, "there is nothing at '%s'", q->path);
}

/* ---- the listener ---- */

enum {
    OPERATOR_GO_ON = 1,    /* there may be more to accept */
    ACCEPTS_PER_TURN = 64, /* before the mailbox is looked at again */
    RETRY_MS = 50,         /* while the supervisor of connections is being started again */
    START_MS = 5000,
    TURNED_MAX = 32,
    SPARES_MAX = 8,
};

/* Somebody who was told to come back. The answer is lost if we close before the request has come, so we wait for the
 * other side to close, or until somebody else needs the place. */
struct turned {
    int fd;
    uint64_t own, watch;
};

struct listener {
    const struct operator_options *options;
    /* Descriptors to give up when there are none left, so that newcomers can be told. More than one, because
     * without any left the kernel doesn't say whether there is a newcomer, and then the oldest of these places
     * is given up in vain. */
    uint32_t spare_count;
    uint64_t spares[SPARES_MAX];
    uint32_t turned_count;
    struct turned turned[TURNED_MAX]; /* oldest first */
};

static void take_spares(struct listener *l)
{
    while (l->spare_count < SPARES_MAX) {
        int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return;
        l->spares[l->spare_count++] = actor_own_fd(fd);
    }
}

static void turned_drop(struct listener *l, uint32_t at)
{
    actor_unwatch(l->turned[at].watch);
    actor_release(l->turned[at].own);
    l->turned_count--;
    memmove(&l->turned[at], &l->turned[at + 1], (l->turned_count - at) * sizeof(*l->turned));
}

/* The next newcomer, at the cost of the spare descriptor or of who was turned away longest ago. */
static int accept_anyway(struct listener *l)
{
    int fd = accept4(l->options->listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0 || (errno != EMFILE && errno != ENFILE))
        return fd;
    if (l->spare_count)
        actor_release(l->spares[--l->spare_count]);
    else if (l->turned_count)
        turned_drop(l, 0);
    return accept4(l->options->listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

/* Accepts one and tells it to come back. False: there is nobody, or no way to say so. */
static bool turn_away(struct listener *l)
{
    static const char busy[] = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\n"
                               "Connection: close\r\n\r\n";
    int fd = accept_anyway(l);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE)
            actor_timer(actor_deadline_ms(RETRY_MS), OPERATOR_GO_ON, 0);
        take_spares(l);
        return false;
    }
    (void)!send(fd, busy, sizeof(busy) - 1, MSG_NOSIGNAL);
    shutdown(fd, SHUT_WR);
    if (l->turned_count == TURNED_MAX)
        turned_drop(l, 0);
    struct turned t = {.fd = fd, .own = actor_own_fd(fd)};
    t.watch = t.own ? actor_watch(fd, WATCH_READ) : 0;
    if (t.watch)
        l->turned[l->turned_count++] = t;
    else if (t.own)
        actor_release(t.own);
    else
        close(fd);
    take_spares(l);
    return true;
}

/* What it has to say is taken in; when it has closed, so do we. */
static void hear_turned(struct listener *l, uint64_t watch)
{
    char dropped[4096];
    ssize_t n;
    for (uint32_t i = 0; i < l->turned_count; i++) {
        if (l->turned[i].watch != watch)
            continue;
        do
            n = read(l->turned[i].fd, dropped, sizeof(dropped));
        while (n > 0 || (n < 0 && errno == EINTR));
        if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) {
            turned_drop(l, i);
            take_spares(l);
        }
        return;
    }
}

/* Has one connection actor started, which accepts. False: nothing more to do now. */
static bool accept_one(struct listener *l)
{
    const struct operator_options *o = l->options;
    const struct connection_args args = {.listening = o->listening,
                                         .loopback_only = o->loopback_only,
                                         .idle_ns = o->idle_ns,
                                         .handler = route_request,
                                         .context = o};
    const struct child_spec spec = {.class = &connection_class,
                                    .args = &args,
                                    .args_size = sizeof(args),
                                    .restart = RESTART_TEMPORARY,
                                    .shutdown_ms = 1000};
    struct child_result child = {0};
    enum error e =
        supervisor_start_child(actor_whereis(o->connections), &spec, &child, actor_deadline_ms(START_MS));
    switch (e) {
    case OK:
        return child.pid != 0;
    case ERR_IGNORED:
        return false;
    case ERR_MAX_CHILDREN:
        return turn_away(l);
    case ERR_INIT:
        reason_drop(&child.why);
        return turn_away(l);
    default:
        actor_timer(actor_deadline_ms(RETRY_MS), OPERATOR_GO_ON, 0);
        return false;
    }
}

static enum actor_step listener_init(void *state, const void *args, size_t args_size)
{
    struct listener *l = state;
    ASSERT(args_size == sizeof(struct operator_args));
    l->options = ((const struct operator_args *)args)->options;
    if (!actor_watch(l->options->listening, WATCH_READ))
        actor_refuse(reason_error(errno));
    take_spares(l);
    return ACTOR_CONTINUE;
}

static void accept_all(struct listener *l)
{
    int accepted = 0;
    while (accepted < ACCEPTS_PER_TURN && accept_one(l))
        accepted++;
    if (accepted == ACCEPTS_PER_TURN)
        (void)actor_cast(actor_self(), OPERATOR_GO_ON, NULL, 0);
}

static enum actor_step listener_handle(void *state, struct message *m)
{
    struct listener *l = state;
    const struct message_ready *ready = (const void *)m->payload;
    switch (m->type) {
    case MESSAGE_READY:
        if (ready->fd != l->options->listening)
            hear_turned(l, ready->ref);
        else
            accept_all(l);
        return ACTOR_CONTINUE;
    case OPERATOR_GO_ON:
        accept_all(l);
        return ACTOR_CONTINUE;
    default:
        TELEMETRY(MESSAGE_UNKNOWN, 1, DIM(CLASS, operator_class.name));
        return ACTOR_CONTINUE;
    }
}

const struct actor_class operator_class = {
    .name = "listener",
    .state_size = sizeof(struct listener),
    .init = listener_init,
    .handle = listener_handle,
};
