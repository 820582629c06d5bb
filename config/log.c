#include "config/log.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/env.h"
#include "runtime/json.h"

static enum log_level level_min = LOG_INFO;
static _Atomic uint64_t dropped;

void log_open(enum log_level level)
{
    level_min = level;
}

/* One write, so that lines of several threads don't mix. False: it would have to wait. */
static bool put(const char *line, size_t size)
{
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    ssize_t written;
    if (poll(&out, 1, 0) != 1 || !(out.revents & POLLOUT))
        return false;
    do
        written = write(STDERR_FILENO, line, size);
    while (written < 0 && errno == EINTR);
    return true;
}

/* 2026-01-31T23:59:59.123Z */
static void timestamp(char text[32])
{
    struct env *env = env_real();
    uint64_t wall = env->wall(env);
    time_t seconds = (time_t)(wall / NS_PER_S);
    struct tm t;
    gmtime_r(&seconds, &t);
    size_t length = strftime(text, 32, "%Y-%m-%dT%H:%M:%S", &t);
    unsigned ms = (unsigned)(wall / NS_PER_MS % 1000);
    const char rest[] = {'.', (char)('0' + ms / 100), (char)('0' + ms / 10 % 10), (char)('0' + ms % 10), 'Z',
                         0};
    memcpy(text + length, rest, sizeof(rest));
}

static void line_begin(struct json *json, enum log_level level, const char *logger, const char *message)
{
    char ts[32];
    timestamp(ts);
    json_object_begin(json);
    JSON_MEMBER(json, "ts", string, ts);
    JSON_MEMBER(json, "level", string, log_level_name(level));
    JSON_MEMBER(json, "logger", string, logger);
    JSON_MEMBER(json, "msg", string, message);
}

static void deliver(const char *line, size_t size)
{
    char whole[LOG_LINE_MAX];
    uint64_t lost = atomic_exchange(&dropped, 0);
    if (lost) {
        struct json_sink sink;
        struct json json;
        json_sink_init(&sink, whole, sizeof(whole), NULL, NULL);
        json_init(&json, &sink);
        line_begin(&json, LOG_WARN, "log", "lines were dropped because standard error was full");
        JSON_MEMBER(&json, "count", uint, lost);
        json_object_end(&json);
        if (json_end_line(&json) != JSON_OK || !put(whole, sink.length))
            atomic_fetch_add(&dropped, lost);
    }
    if (size >= sizeof(whole))
        size = sizeof(whole) - 1;
    memcpy(whole, line, size);
    whole[size] = '\n';
    if (!put(whole, size + 1))
        atomic_fetch_add(&dropped, 1);
}

/* A line that didn't fit is replaced by its head alone. */
static void line_end(struct json *json, enum log_level level, const char *logger, const char *message)
{
    char head[512];
    struct json_sink sink;
    struct json short_json;
    json_object_end(json);
    if (json_end_line(json) == JSON_OK) {
        deliver(json->sink->buffer, json->sink->length - 1);
        return;
    }
    json_sink_init(&sink, head, sizeof(head), NULL, NULL);
    json_init(&short_json, &sink);
    line_begin(&short_json, level, logger, message);
    JSON_MEMBER(&short_json, "cut", bool, true);
    json_object_end(&short_json);
    if (json_end(&short_json) == JSON_OK)
        deliver(head, sink.length);
}

void log_line(const char *line, size_t size)
{
    char whole[LOG_LINE_MAX], ts[32];
    struct json_sink sink;
    json_sink_init(&sink, whole, sizeof(whole), NULL, NULL);
    timestamp(ts);
    json_sink_text(&sink, "{\"ts\":\"");
    json_sink_text(&sink, ts);
    json_sink_text(&sink, "\",\"logger\":\"runtime\",");
    if (size > 2 && line[0] == '{')
        json_sink_bytes(&sink, line + 1, size - 1);
    if (size > 2 && line[0] == '{' && sink.status == JSON_OK)
        deliver(whole, sink.length);
    else
        deliver(line, size); /* as it is, rather than not at all */
}

void log_write(enum log_level level, const char *logger, const char *message, const struct log_field *fields,
               size_t count)
{
    char line[LOG_LINE_MAX];
    struct json_sink sink;
    struct json json;
    if (level < level_min)
        return;
    json_sink_init(&sink, line, sizeof(line), NULL, NULL);
    json_init(&json, &sink);
    line_begin(&json, level, logger, message);
    for (size_t i = 0; i < count; i++)
        if (fields[i].text)
            JSON_MEMBER(&json, fields[i].name, string, fields[i].text);
        else
            JSON_MEMBER(&json, fields[i].name, int, fields[i].number);
    line_end(&json, level, logger, message);
}

/* ---- telemetry ---- */

/* How much an event matters to a reader of the log; the rest is for debugging. A crash has a line of the
 * runtime's own, with more in it. */
static enum log_level level_of(enum telemetry_event event)
{
    switch (event) {
    case TELEMETRY_FAILURE_BOOT_CONFIG:
    case TELEMETRY_FAILURE_ADAPTER_INIT:
    case TELEMETRY_FAILURE_RESTART_EXHAUSTED:
    case TELEMETRY_SUPERVISOR_ESCALATION:
        return LOG_ERROR;
    case TELEMETRY_SCHEDULER_OVERRUN:
    case TELEMETRY_SUPERVISOR_RESTART:
    case TELEMETRY_SUPERVISOR_QUARANTINE:
    case TELEMETRY_SUPERVISOR_SHUTDOWN_ERROR:
    case TELEMETRY_FAILURE_LISTENER_DISCONNECT:
    case TELEMETRY_FAILURE_OUTBOUND_PROVIDER:
    case TELEMETRY_FAILURE_POISON_MESSAGE:
    case TELEMETRY_FAILURE_POLICY_TIMEOUT:
    case TELEMETRY_PRESSURE_TRANSITION:
    case TELEMETRY_MESSAGE_UNKNOWN:
    case TELEMETRY_TELEMETRY_REJECTED:
        return LOG_WARN;
    default:
        return LOG_DEBUG;
    }
}

static void follow(void *context, const struct telemetry_record *record)
{
    char line[LOG_LINE_MAX];
    struct json_sink sink;
    struct json json;
    enum telemetry_event event = (enum telemetry_event)record->event;
    (void)context;
    json_sink_init(&sink, line, sizeof(line), NULL, NULL);
    json_init(&json, &sink);
    line_begin(&json, level_of(event), "telemetry", telemetry_event_name(event));
    json_key(&json, "event");
    telemetry_record_write(record, &json);
    line_end(&json, level_of(event), "telemetry", telemetry_event_name(event));
}

void log_follow(struct telemetry *telemetry)
{
    struct telemetry_filter filter = {0};
    for (int i = 0; i < TELEMETRY_EVENT_COUNT; i++)
        if (level_of((enum telemetry_event)i) >= level_min)
            telemetry_filter_add(&filter, (enum telemetry_event)i);
    (void)telemetry_subscribe(telemetry, &filter, follow, NULL);
}
