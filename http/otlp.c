#include "http/otlp.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "actors/fetch.h"
#include "actors/job_spans.h"
#include "http/trace.h"
#include "http/url.h"
#include "runtime/json.h"
#include "runtime/runtime.h"
#include "runtime/telemetry.h"

/* ---- the environment ---- */

enum variable {
#define X(id, name) VARIABLE_##id,
    OTLP_VARIABLES(X)
#undef X
        VARIABLE_COUNT
};

static const char *const names[] = {
#define X(id, name) [VARIABLE_##id] = name,
    OTLP_VARIABLES(X)
#undef X
};

struct reader {
    char *const *environment;
    char *text;
    size_t text_size;
};

/* NULL when it is absent or empty. */
static const char *value_of(const struct reader *r, enum variable variable)
{
    size_t length = strlen(names[variable]);
    for (char *const *at = r->environment; *at; at++)
        if (strncmp(*at, names[variable], length) == 0 && (*at)[length] == '=')
            return (*at)[length + 1] ? *at + length + 1 : NULL;
    return NULL;
}

/* Which of the two is set: the form for traces first. */
static enum variable either(const struct reader *r, enum variable traces, enum variable general)
{
    return value_of(r, traces) ? traces : general;
}

__attribute__((format(printf, 3, 4))) static bool complain(const struct reader *r, enum variable variable,
                                                           const char *format, ...)
{
    int length = snprintf(r->text, r->text_size, "%s: ", names[variable]);
    va_list list;
    va_start(list, format);
    if (length >= 0 && (size_t)length < r->text_size)
        vsnprintf(r->text + length, r->text_size - (size_t)length, format, list);
    va_end(list);
    return false;
}

/* Whether anything is to be exported at all, and whether as lines. */
static bool wanted(const struct reader *r, bool *ret_wanted, bool *ret_lines)
{
    const char *disabled = value_of(r, VARIABLE_SDK_DISABLED), *exporter = value_of(r, VARIABLE_EXPORTER);
    *ret_wanted = false;
    *ret_lines = exporter && strcmp(exporter, "console") == 0;
    if (!*ret_lines && !value_of(r, VARIABLE_ENDPOINT) && !value_of(r, VARIABLE_TRACES_ENDPOINT))
        return true;
    if (disabled && strcasecmp(disabled, "true") != 0 && strcasecmp(disabled, "false") != 0)
        return complain(r, VARIABLE_SDK_DISABLED, "'%s' is neither true nor false", disabled);
    if (disabled && strcasecmp(disabled, "true") == 0)
        return true;
    if (exporter && strcmp(exporter, "none") == 0)
        return true;
    if (exporter && !*ret_lines && strcmp(exporter, "otlp") != 0)
        return complain(r, VARIABLE_EXPORTER, "'%s' is neither otlp nor console nor none", exporter);
    *ret_wanted = true;
    return true;
}

static bool read_endpoint(const struct reader *r, struct otlp_options *o)
{
    enum variable variable = either(r, VARIABLE_TRACES_ENDPOINT, VARIABLE_ENDPOINT);
    const char *value = value_of(r, variable), *path = "";
    size_t length = strlen(value);
    if (strncmp(value, "http://", 7) != 0 && strncmp(value, "https://", 8) != 0)
        return complain(r, variable, "'%s' does not begin with http:// or https://", value);
    for (const char *at = value; *at; at++)
        if (*at <= 0x20 || *at >= 0x7f)
            return complain(r, variable, "the URL holds a byte that must be escaped");
    const char *authority = strstr(value, "://") + 3;
    if (memchr(authority, '@', strcspn(authority, "/?#")))
        return complain(r, variable, "a user does not belong into the URL");
    if (variable == VARIABLE_ENDPOINT)
        path = value[length - 1] == '/' ? "v1/traces" : "/v1/traces";
    if (length + strlen(path) >= sizeof(o->endpoint))
        return complain(r, variable, "the URL is longer than %zu bytes", sizeof(o->endpoint) - 1);
    snprintf(o->endpoint, sizeof(o->endpoint), "%s%s", value, path);
    return true;
}

static struct span trimmed(const char *begin, const char *end)
{
    while (begin < end && (*begin == ' ' || *begin == '\t'))
        begin++;
    while (begin < end && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    return span_of(begin, (size_t)(end - begin));
}

/* The next key=value of a list. False at the end; a pair without a key or a '=' has no bytes. */
static bool next_pair(const char **list, struct span *ret_key, struct span *ret_value)
{
    const char *begin = *list;
    if (!*begin)
        return false;
    const char *end = begin + strcspn(begin, ",");
    const char *equals = memchr(begin, '=', (size_t)(end - begin));
    *list = *end ? end + 1 : end;
    *ret_key = equals ? trimmed(begin, equals) : span_of(NULL, 0);
    *ret_value = equals ? trimmed(equals + 1, end) : span_of(NULL, 0);
    return true;
}

static bool token(struct span name)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    const char *at = name.bytes;
    for (uint32_t i = 0; i < name.size; i++)
        if (!(at[i] >= '0' && at[i] <= '9') && !((at[i] | 0x20) >= 'a' && (at[i] | 0x20) <= 'z') &&
            !(at[i] && strchr(others, at[i])))
            return false;
    return name.size > 0;
}

static bool read_headers(const struct reader *r, struct otlp_options *o)
{
    enum variable variable = either(r, VARIABLE_TRACES_HEADERS, VARIABLE_HEADERS);
    const char *list = value_of(r, variable);
    struct span key, value;
    char decoded[sizeof(o->headers)];
    size_t used = 0, size;
    while (list && next_pair(&list, &key, &value)) {
        if (!token(key))
            return complain(r, variable, "it is not a list of name=value with names of headers");
        if (!url_unescape(value, decoded, sizeof(decoded), &size))
            return complain(r, variable,
                            "the value of '%.*s' can't be unescaped, or it holds a control character",
                            (int)key.size, (const char *)key.bytes);
        if (used + key.size + size + sizeof(": \n") > sizeof(o->headers))
            return complain(r, variable, "the headers are longer than %zu bytes", sizeof(o->headers) - 1);
        used += (size_t)snprintf(o->headers + used, sizeof(o->headers) - used, "%.*s: %.*s\n", (int)key.size,
                                 (const char *)key.bytes, (int)size, decoded);
    }
    return true;
}

static bool read_timeout(const struct reader *r, struct otlp_options *o)
{
    enum variable variable = either(r, VARIABLE_TRACES_TIMEOUT, VARIABLE_TIMEOUT);
    const char *value = value_of(r, variable);
    char *end;
    o->timeout_ns = OTLP_TIMEOUT_MS * NS_PER_MS;
    if (!value)
        return true;
    errno = 0;
    unsigned long ms = strtoul(value, &end, 10);
    if (*value < '0' || *value > '9' || *end || errno || ms < 1 || ms > 600000)
        return complain(r, variable, "'%s' is not a number of milliseconds from 1 to 600000", value);
    o->timeout_ns = ms * NS_PER_MS;
    return true;
}

/* What is asked for and isn't done here. */
static bool read_refused(const struct reader *r)
{
    static const enum variable certificates[] = {VARIABLE_CERTIFICATE, VARIABLE_CLIENT_CERTIFICATE};
    enum variable protocol = either(r, VARIABLE_TRACES_PROTOCOL, VARIABLE_PROTOCOL);
    enum variable compression = either(r, VARIABLE_TRACES_COMPRESSION, VARIABLE_COMPRESSION);
    const char *value = value_of(r, protocol);
    if (value && strcmp(value, "http/json") != 0)
        return complain(r, protocol, "'%s' is not spoken here; http/json is", value);
    value = value_of(r, compression);
    if (value && strcmp(value, "none") != 0)
        return complain(r, compression, "'%s' is not done here; none is", value);
    for (size_t i = 0; i < sizeof(certificates) / sizeof(*certificates); i++)
        if (value_of(r, certificates[i]))
            return complain(r, certificates[i], "not used here; the system's certificates are trusted");
    return true;
}

static bool read_resource(const struct reader *r, struct otlp_options *o)
{
    const char *service = value_of(r, VARIABLE_SERVICE_NAME),
               *list = value_of(r, VARIABLE_RESOURCE_ATTRIBUTES);
    struct span key, value;
    char decoded[sizeof(o->attributes)];
    size_t size;
    snprintf(o->service, sizeof(o->service), "%s", OTLP_SERVICE);
    if (list && strlen(list) >= sizeof(o->attributes))
        return complain(r, VARIABLE_RESOURCE_ATTRIBUTES, "longer than %zu bytes", sizeof(o->attributes) - 1);
    snprintf(o->attributes, sizeof(o->attributes), "%s", list ? list : "");
    while (list && next_pair(&list, &key, &value)) {
        if (key.size == 0 || !url_unescape(value, decoded, sizeof(decoded), &size))
            return complain(r, VARIABLE_RESOURCE_ATTRIBUTES, "it is not a list of key=value");
        if (span_equal(key, span_text("service.name")) && size > 0 && size < sizeof(o->service))
            snprintf(o->service, sizeof(o->service), "%.*s", (int)size, decoded);
    }
    if (service && strlen(service) >= sizeof(o->service))
        return complain(r, VARIABLE_SERVICE_NAME, "longer than %zu bytes", sizeof(o->service) - 1);
    if (service)
        snprintf(o->service, sizeof(o->service), "%s", service);
    return true;
}

static bool read_sampler(const struct reader *r, struct otlp_options *o)
{
    static const struct {
        const char *name;
        bool parent_based, ratio;
        double sample;
    } samplers[] = {
        {"parentbased_always_on", true, false, 1},
        {"parentbased_always_off", true, false, 0},
        {"parentbased_traceidratio", true, true, 1},
        {"always_on", false, false, 1},
        {"always_off", false, false, 0},
        {"traceidratio", false, true, 1},
    };
    const char *name = value_of(r, VARIABLE_SAMPLER), *arg = value_of(r, VARIABLE_SAMPLER_ARG);
    size_t i = 0, count = sizeof(samplers) / sizeof(*samplers);
    char *end;
    while (name && i < count && strcmp(name, samplers[i].name) != 0)
        i++;
    if (i == count)
        return complain(
            r, VARIABLE_SAMPLER,
            "'%s' is none of parentbased_always_on, parentbased_always_off, parentbased_traceidratio, "
            "always_on, always_off, traceidratio",
            name);
    o->parent_based = samplers[i].parent_based;
    o->sample = samplers[i].sample;
    if (!samplers[i].ratio || !arg)
        return true;
    o->sample = strtod(arg, &end);
    if (end == arg || *end || !(o->sample >= 0 && o->sample <= 1))
        return complain(r, VARIABLE_SAMPLER_ARG, "'%s' is not a number from 0 to 1", arg);
    return true;
}

bool otlp_options_parse(struct otlp_options *ret, char *const environment[], char *ret_text, size_t text_size)
{
    const struct reader r = {environment, ret_text, text_size};
    struct otlp_options o = {.timeout_ns = OTLP_TIMEOUT_MS * NS_PER_MS, .parent_based = true};
    bool on, lines;
    if (!wanted(&r, &on, &lines))
        return false;
    if (on && !lines &&
        !(read_endpoint(&r, &o) && read_headers(&r, &o) && read_timeout(&r, &o) && read_refused(&r) &&
          read_resource(&r, &o)))
        return false;
    if (on && !read_sampler(&r, &o))
        return false;
    o.lines = on && lines;
    *ret = o;
    return true;
}

/* ---- a batch ---- */

enum { FLUSH = 1 };

/* Ids, times and names of keys, and four texts of 63 bytes that are escaped as six each; and what ends the document. */
#define SPAN_JSON_MAX 3584u
STATIC_ASSERT(SPAN_JSON_MAX > 1000 + TRACE_ATTRIBUTES_MAX * TRACE_TEXT_MAX * 6 + TRACE_STATE_MAX * 2,
              "a span fits"); /* in a tracestate there is nothing that \u is needed for */
#define ANSWER_MAX  4096u
#define RETRY_MAX_S 300u

struct exporter {
    const struct otlp_options *options;
    char *headers; /* for fetch */
    char *body;    /* OTLP_BODY_MAX; of the batch that is under way */
    char *answer;  /* ANSWER_MAX; not looked at */
    size_t body_size;
    uint32_t count; /* spans in it; 0: none is under way */
    uint32_t tries;
    uint32_t scheduler; /* whose ring is next */
    uint64_t exported, given_up;
    bool failing; /* it was said in the log */
};

static void hex(const uint8_t *bytes, size_t size, char *text)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; i++) {
        *text++ = digits[bytes[i] >> 4];
        *text++ = digits[bytes[i] & 15];
    }
    *text = 0;
}

static void write_id(struct json *json, const char *key, const uint8_t *bytes, size_t size)
{
    char text[2 * 16 + 1];
    hex(bytes, size, text);
    JSON_MEMBER(json, key, string, text);
}

static void write_text_attribute(struct json *json, struct span key, struct span value)
{
    json_object_begin(json);
    json_key(json, "key");
    json_string_n(json, key.bytes, key.size);
    json_key(json, "value");
    json_object_begin(json);
    json_key(json, "stringValue");
    json_string_n(json, value.bytes ? value.bytes : "", value.size);
    json_object_end(json);
    json_object_end(json);
}

static void write_number_attribute(struct json *json, const char *key, int64_t number)
{
    char text[24];
    snprintf(text, sizeof(text), "%lld", (long long)number);
    json_object_begin(json);
    JSON_MEMBER(json, "key", string, key);
    json_key(json, "value");
    json_object_begin(json);
    JSON_MEMBER(json, "intValue", string, text);
    json_object_end(json);
    json_object_end(json);
}

static void write_attributes(struct json *json, const struct trace_recorded *span)
{
    json_key(json, "attributes");
    json_array_begin(json);
    for (size_t i = 0; i < TRACE_ATTRIBUTES_MAX && span->attributes[i].key; i++)
        if (span->attributes[i].textual)
            write_text_attribute(json, span_text(span->attributes[i].key),
                                 span_text(span->attributes[i].text));
        else
            write_number_attribute(json, span->attributes[i].key, span->attributes[i].number);
    json_array_end(json);
}

/* "GET /v1/jobs" */
static void write_name(struct json *json, const struct trace_recorded *span)
{
    char name[160]; /* a path of a route is no longer than a line of its table */
    snprintf(name, sizeof(name), "%s%s%s", span->method ? span->method : "", span->method ? " " : "",
             span->name);
    JSON_MEMBER(json, "name", string, name);
}

static void write_link(struct json *json, const struct trace_recorded *span)
{
    json_key(json, "links");
    json_array_begin(json);
    json_object_begin(json);
    write_id(json, "traceId", span->link_trace_id, sizeof(span->link_trace_id));
    write_id(json, "spanId", span->link_span_id, sizeof(span->link_span_id));
    json_object_end(json);
    json_array_end(json);
}

/* Enums as numbers, ids in hex, 64 bits as strings: OTLP's own JSON. `wall`: what the wall clock is ahead by. */
static void write_span(struct json *json, const struct trace_recorded *span, uint64_t wall)
{
    static const uint8_t none[8];
    json_object_begin(json);
    write_id(json, "traceId", span->trace_id, sizeof(span->trace_id));
    write_id(json, "spanId", span->span_id, sizeof(span->span_id));
    if (memcmp(span->parent_id, none, sizeof(none)) != 0)
        write_id(json, "parentSpanId", span->parent_id, sizeof(span->parent_id));
    if (span->state_size) {
        json_key(json, "traceState");
        json_string_n(json, span->state, span->state_size);
    }
    JSON_MEMBER(json, "flags", uint, span->flags);
    write_name(json, span);
    JSON_MEMBER(json, "kind", uint, span->kind);
    JSON_MEMBER(json, "startTimeUnixNano", uint_string, span->began_ns + wall);
    JSON_MEMBER(json, "endTimeUnixNano", uint_string, span->ended_ns + wall);
    write_attributes(json, span);
    if (span->linked)
        write_link(json, span);
    if (span->status != TRACE_UNSET) {
        json_key(json, "status");
        json_object_begin(json);
        JSON_MEMBER(json, "code", uint, span->status);
        json_object_end(json);
    }
    json_object_end(json);
}

static void write_resource(struct json *json, const struct otlp_options *o)
{
    const char *list = o->attributes;
    char decoded[sizeof(o->attributes)];
    struct span key, value, name = span_text("service.name"), version = span_text("service.version");
    size_t size;
    json_key(json, "resource");
    json_object_begin(json);
    json_key(json, "attributes");
    json_array_begin(json);
    write_text_attribute(json, name, span_text(o->service));
    bool versioned = false;
    while (next_pair(&list, &key, &value)) {
        if (span_equal(key, name) || !url_unescape(value, decoded, sizeof(decoded), &size))
            continue;
        versioned = versioned || span_equal(key, version);
        write_text_attribute(json, key, span_of(decoded, size));
    }
    if (!versioned)
        write_text_attribute(json, version, span_text(COPPICE_VERSION));
    json_array_end(json);
    json_object_end(json);
}

/* A span of any scheduler, beginning with the one after the last: none of them is left waiting. */
static bool take(struct exporter *x, struct trace_recorded *ret)
{
    for (uint32_t i = 0; i < RUNTIME_SCHEDULERS_MAX; i++) {
        uint32_t scheduler = (x->scheduler + i) % RUNTIME_SCHEDULERS_MAX;
        if (trace_take(scheduler, ret)) {
            x->scheduler = (scheduler + 1) % RUNTIME_SCHEDULERS_MAX;
            return true;
        }
    }
    return false;
}

static void gather(struct exporter *x)
{
    struct json_sink sink;
    struct json json;
    struct trace_recorded span;
    uint64_t wall = actor_wall_now() - actor_now();
    x->count = x->tries = 0;
    if (!take(x, &span))
        return;
    json_sink_init(&sink, x->body, OTLP_BODY_MAX, NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    json_key(&json, "resourceSpans");
    json_array_begin(&json);
    json_object_begin(&json);
    write_resource(&json, x->options);
    json_key(&json, "scopeSpans");
    json_array_begin(&json);
    json_object_begin(&json);
    json_key(&json, "scope");
    json_object_begin(&json);
    JSON_MEMBER(&json, "name", string, "coppice");
    JSON_MEMBER(&json, "version", string, COPPICE_VERSION);
    json_object_end(&json);
    json_key(&json, "spans");
    json_array_begin(&json);
    do {
        write_span(&json, &span, wall);
        x->count++;
    } while (x->count < OTLP_BATCH_MAX && sink.length + SPAN_JSON_MAX <= OTLP_BODY_MAX && take(x, &span));
    json_array_end(&json);
    json_object_end(&json);
    json_array_end(&json);
    json_object_end(&json);
    json_array_end(&json);
    json_object_end(&json);
    ASSERT(json_end(&json) == JSON_OK);
    x->body_size = sink.length;
}

/* ---- posting ---- */

static void tell(struct exporter *x)
{
    struct trace_counts counts;
    trace_counts(&counts);
    telemetry_gauge_set(TELEMETRY_GAUGE_TRACE_SPANS, "recorded", (int64_t)counts.recorded);
    telemetry_gauge_set(TELEMETRY_GAUGE_TRACE_SPANS, "dropped", (int64_t)(counts.dropped + job_spans_lost()));
    telemetry_gauge_set(TELEMETRY_GAUGE_TRACE_SPANS, "exported", (int64_t)x->exported);
    telemetry_gauge_set(TELEMETRY_GAUGE_TRACE_SPANS, "given_up", (int64_t)x->given_up);
}

/* Once when it begins to fail and once when that is over. */
static void say(struct exporter *x, bool failing, const struct fetch_answer *answer)
{
    char line[512];
    struct json_sink sink;
    struct json json;
    if (failing == x->failing)
        return;
    x->failing = failing;
    json_sink_init(&sink, line, sizeof(line), NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "level", string, failing ? "warn" : "info");
    JSON_MEMBER(&json, "logger", string, "otlp");
    JSON_MEMBER(&json, "msg", string,
                failing ? "the collector does not take the spans" : "the collector takes spans again");
    if (failing && answer->status)
        JSON_MEMBER(&json, "status", int, answer->status);
    else if (failing)
        JSON_MEMBER(&json, "err", string, answer->why);
    json_object_end(&json);
    if (json_end(&json) == JSON_OK)
        runtime_log(runtime_self(), line, sink.length);
}

static bool again_later(const struct fetch_answer *answer)
{
    switch (answer->status) {
    case 0: /* no answer */
        return answer->error != ERR_INVALID && answer->error != ERR_LIMIT;
    case 429:
    case 502:
    case 503:
    case 504:
        return true;
    default:
        return false;
    }
}

/* As long as the collector says, or twice as long as before and up to half of it more, so that not all come back at once. */
static uint64_t pause_of(const struct exporter *x, const struct fetch_answer *answer)
{
    uint64_t pause = NS_PER_S << (x->tries - 1);
    if (answer->retry_after_s > 0)
        return (answer->retry_after_s < RETRY_MAX_S ? answer->retry_after_s : RETRY_MAX_S) * NS_PER_S;
    return pause + actor_random() % (pause / 2);
}

/* Posts the batch once. Returns when to go on. */
static uint64_t post(struct exporter *x)
{
    const struct fetch_request request = {.method = "POST",
                                          .url = x->options->endpoint,
                                          .headers = x->headers,
                                          .body = x->body,
                                          .body_size = x->body_size,
                                          .answer_max = ANSWER_MAX,
                                          .any_address = true};
    struct fetch_answer answer;
    (void)fetch(&request, &answer, x->answer, ANSWER_MAX, actor_now() + x->options->timeout_ns);
    bool taken = answer.status >= 200 && answer.status < 300;
    say(x, !taken, &answer);
    x->tries++;
    if (!taken && again_later(&answer) && x->tries < OTLP_TRIES)
        return actor_now() + pause_of(x, &answer);
    if (taken)
        x->exported += x->count;
    else
        x->given_up += x->count;
    bool full = x->count == OTLP_BATCH_MAX || x->body_size + SPAN_JSON_MAX > OTLP_BODY_MAX;
    x->count = 0;
    return full ? actor_now() : actor_now() + OTLP_PERIOD_NS;
}

/* ---- lines of the log ---- */

#define LINE_MAX_SIZE (SPAN_JSON_MAX + 64u)

/* A sink that is full drops them, and counts. */
static void write_line(const struct trace_recorded *span, uint64_t wall)
{
    char line[LINE_MAX_SIZE];
    struct json_sink sink;
    struct json json;
    json_sink_init(&sink, line, sizeof(line), NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "level", string, "info");
    JSON_MEMBER(&json, "logger", string, "trace");
    JSON_MEMBER(&json, "msg", string, "span");
    json_key(&json, "span");
    write_span(&json, span, wall);
    json_object_end(&json);
    ASSERT(json_end(&json) == JSON_OK);
    runtime_log(runtime_self(), line, sink.length);
}

/* As many as a batch, then others have their turn. Returns when to go on. */
static uint64_t write_lines(struct exporter *x)
{
    struct trace_recorded span;
    uint64_t wall = actor_wall_now() - actor_now();
    uint32_t count = 0;
    for (; count < OTLP_BATCH_MAX && take(x, &span); count++)
        write_line(&span, wall);
    x->exported += count;
    return count == OTLP_BATCH_MAX ? actor_now() : actor_now() + OTLP_PERIOD_NS;
}

/* ---- turns ---- */

static uint64_t post_some(struct exporter *x)
{
    if (x->count == 0)
        gather(x);
    return x->count > 0 ? post(x) : actor_now() + OTLP_PERIOD_NS;
}

static void next(uint64_t when)
{
    if (!actor_timer(when, FLUSH, 0))
        actor_exit(reason_of(REASON_QUOTA));
}

static void flush(struct exporter *x)
{
    uint64_t when = x->options->lines ? write_lines(x) : post_some(x);
    tell(x);
    next(when);
}

/* ---- life ---- */

static enum actor_step otlp_handle(void *state, struct message *m)
{
    if (m->type == FLUSH)
        flush(state);
    else
        actor_unknown(m);
    return ACTOR_CONTINUE;
}

/* What an actor tells of a job, as one of ours. */
static void record_job_span(const struct job_span *span)
{
    struct trace trace = {.flags = 1};
    memcpy(trace.trace_id, span->trace_id, sizeof(trace.trace_id));
    memcpy(trace.span_id, span->span_id, sizeof(trace.span_id));
    memcpy(trace.parent_id, span->parent_id, sizeof(trace.parent_id));
    struct trace_span record = {.trace = &trace,
                                .kind = span->outward ? TRACE_CLIENT : TRACE_INTERNAL,
                                .status = span->failed ? TRACE_ERROR : TRACE_UNSET,
                                .name = span->name,
                                .began_ns = span->began_ns,
                                .ended_ns = span->ended_ns,
                                .link_trace_id = span->link ? span->link->trace_id : NULL,
                                .link_span_id = span->link ? span->link->span_id : NULL};
    STATIC_ASSERT(JOB_SPAN_ATTRIBUTES <= TRACE_ATTRIBUTES_MAX, "they fit");
    for (size_t i = 0; i < JOB_SPAN_ATTRIBUTES && span->attributes[i].key; i++) {
        record.attributes[i].key = span->attributes[i].key;
        record.attributes[i].text = span->attributes[i].text;
        record.attributes[i].number = span->attributes[i].number;
    }
    trace_record(&record);
}

static void stop_recording(void *arg)
{
    (void)arg;
    job_spans_to(NULL);
    trace_export(false, 0, true);
}

static enum actor_step otlp_init(void *state, const void *args, size_t args_size)
{
    struct exporter *x = state;
    const struct otlp_args *a = args;
    ASSERT(args_size == sizeof(*a));
    x->options = a->options;
    if (!x->options->endpoint[0] && !x->options->lines)
        return ACTOR_CONTINUE;
    size_t headers_size = strlen(x->options->headers) + sizeof("Content-Type: application/json\n");
    x->headers = actor_alloc(headers_size);
    snprintf(x->headers, headers_size, "Content-Type: application/json\n%s", x->options->headers);
    x->body = actor_alloc(OTLP_BODY_MAX);
    x->answer = actor_alloc(ANSWER_MAX);
    if (!actor_own(stop_recording, NULL))
        actor_fail(ERR_MEMORY, "no record to stop recording by");
    trace_export(true, x->options->sample, x->options->parent_based);
    job_spans_to(record_job_span);
    next(actor_now() + OTLP_PERIOD_NS);
    return ACTOR_CONTINUE;
}

const struct actor_class otlp_class = {
    .name = "otlp",
    .state_size = sizeof(struct exporter),
    .init = otlp_init,
    .handle = otlp_handle,
};
