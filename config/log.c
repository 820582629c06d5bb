#define _GNU_SOURCE
#include "config/log.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runtime/actor.h"
#include "runtime/env.h"
#include "runtime/json.h"

enum { ROOM = LOG_LINE_MAX - 4 }; /* for the priority in front of a line */

static _Atomic int level_min = LOG_INFO;
static _Atomic bool as_text, to_journal;
static _Atomic uint64_t dropped;
static struct telemetry *followed;
static int followed_handle = -1;

/* ---- where lines go ---- */

enum sink { SINK_POLL, SINK_OWN, SINK_SOCKET, SINK_FILE };

static _Atomic int sink_kind = SINK_POLL;
static int own = -1; /* standard error opened once more, so that only we don't wait for it */

static void sink_open(void)
{
    struct stat s;
    if (own >= 0)
        close(own);
    own = -1;
    int kind = SINK_POLL;
    if (fstat(STDERR_FILENO, &s) != 0) {
        kind = SINK_POLL;
    } else if (S_ISSOCK(s.st_mode)) {
        kind = SINK_SOCKET;
    } else if (S_ISREG(s.st_mode)) {
        kind = SINK_FILE; /* never waits, and others write at the same place in it */
    } else {
        own = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        kind = own >= 0 ? SINK_OWN : SINK_POLL;
    }
    atomic_store(&sink_kind, kind);
}

static ssize_t put_once(const char *line, size_t size)
{
    switch ((enum sink)atomic_load_explicit(&sink_kind, memory_order_relaxed)) {
    case SINK_SOCKET:
        return send(STDERR_FILENO, line, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    case SINK_OWN:
        return write(own, line, size);
    case SINK_FILE:
        return write(STDERR_FILENO, line, size);
    case SINK_POLL:
        break;
    }
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&out, 1, 0) != 1 || out.revents != POLLOUT) /* nobody at the other end: no SIGPIPE either */
        return -1;
    return write(STDERR_FILENO, line, size);
}

/* One write, so that lines of several threads don't mix. False: it would have to wait. */
static bool put(const char *line, size_t size)
{
    ssize_t written;
    do {
        errno = 0;
        written = put_once(line, size);
    } while (written < 0 && errno == EINTR);
    return written == (ssize_t)size;
}

/* ---- secrets ---- */

static bool begins(const char *name, size_t length, const char *part)
{
    size_t size = strlen(part);
    return size <= length && strncasecmp(name, part, size) == 0;
}

/* Letters, as bits, with which the name of a secret begins: nearly all places of a name are passed over by this alone. */
static bool may_begin(char c)
{
    static const uint32_t letters =
        1u << ('p' - 'a') | 1u << ('s' - 'a') | 1u << ('a' - 'a') | 1u << ('c' - 'a') | 1u << ('m' - 'a');
    unsigned letter = (unsigned)((unsigned char)c | 0x20) - 'a';
    return letter < 26 && (letters >> letter & 1);
}

bool log_secret(const char *name, size_t length)
{
    static const char *const parts[] = {"password",    "passwd", "secret",    "authorization",
                                        "api_key",     "apikey", "api-key",   "credential",
                                        "private_key", "cookie", "master_key"};
    static const char last[] = "token";
    for (size_t at = 0; at < length; at++)
        for (size_t i = 0; may_begin(name[at]) && i < sizeof(parts) / sizeof(*parts); i++)
            if ((name[at] | 0x20) == parts[i][0] && begins(name + at, length - at, parts[i]))
                return true;
    /* "access_token", but neither "tokens" nor "token_count" */
    size_t part = sizeof(last) - 1;
    return length >= part && strncasecmp(name + length - part, last, part) == 0;
}

/* Behind the string that begins with the quote at `at`. Lines are ours: their strings are whole. */
static size_t behind_string(const char *line, size_t at, size_t size)
{
    for (at++; at < size && line[at] != '"'; at++)
        at += line[at] == '\\';
    return at < size ? at + 1 : size;
}

static size_t behind_value(const char *line, size_t at, size_t size)
{
    size_t depth = 0;
    if (at < size && line[at] == '"')
        return behind_string(line, at, size);
    while (at < size) {
        char c = line[at];
        if (depth == 0 && (c == ',' || c == '}' || c == ']'))
            return at;
        if (c == '"') {
            at = behind_string(line, at, size);
            continue;
        }
        depth += c == '{' || c == '[';
        depth -= depth && (c == '}' || c == ']');
        at++;
        if (depth == 0 && (c == '}' || c == ']'))
            return at;
    }
    return size;
}

struct out {
    char *bytes;
    size_t size, room;
    bool full;
};

static void out_bytes(struct out *out, const char *bytes, size_t size)
{
    if (out->full || size > out->room - out->size) {
        out->full = true;
        return;
    }
    memcpy(out->bytes + out->size, bytes, size);
    out->size += size;
}

static void out_text(struct out *out, const char *text)
{
    out_bytes(out, text, strlen(text));
}

/* A string, without what follows "Bearer ". */
static void out_string(struct out *out, const char *string, size_t size)
{
    static const char scheme[] = "bearer ";
    size_t length = sizeof(scheme) - 1;
    for (size_t at = 0; at + length < size; at++)
        if ((string[at] | 0x20) == 'b' && strncasecmp(string + at, scheme, length) == 0) {
            size_t end = at + length;
            while (end < size && string[end] != ' ' && string[end] != '"' && string[end] != '\\')
                end++;
            out_bytes(out, string, at + length);
            out_text(out, "***");
            out_bytes(out, string + end, size - end);
            return;
        }
    out_bytes(out, string, size);
}

/* The line with its secrets masked, at any depth. */
static void mask(struct out *out, const char *line, size_t size)
{
    size_t from = 0; /* what wasn't copied yet */
    for (size_t at = 0; at < size;) {
        if (line[at] != '"') {
            at++;
            continue;
        }
        size_t end = behind_string(line, at, size);
        out_bytes(out, line + from, at - from);
        if (end < size && line[end] == ':') {
            out_bytes(out, line + at, end + 1 - at);
            bool secret = end - at >= 2 && log_secret(line + at + 1, end - at - 2);
            at = end + 1;
            if (secret) {
                out_text(out, "\"***\"");
                at = behind_value(line, at, size);
            }
        } else {
            out_string(out, line + at, end - at);
            at = end;
        }
        from = at;
    }
    out_bytes(out, line + from, size - from);
}

/* ---- lines for people ---- */

struct member {
    const char *key, *value; /* as they stand, without the key's quotes */
    size_t key_size, value_size;
};

/* The next member of the object that the line is; *at begins behind its brace. */
static bool next_member(const char *line, size_t size, size_t *at, struct member *ret)
{
    while (*at < size && line[*at] == ',')
        ++*at;
    if (*at >= size || line[*at] != '"')
        return false;
    size_t end = behind_string(line, *at, size);
    if (end - *at < 2 || end >= size || line[end] != ':')
        return false;
    ret->key = line + *at + 1;
    ret->key_size = end - *at - 2;
    *at = behind_value(line, end + 1, size);
    ret->value = line + end + 1;
    ret->value_size = *at - end - 1;
    return true;
}

static bool member_of(const char *line, size_t size, const char *key, struct member *ret)
{
    size_t at = 1;
    while (next_member(line, size, &at, ret))
        if (ret->key_size == strlen(key) && memcmp(ret->key, key, ret->key_size) == 0)
            return true;
    return false;
}

/* Quotes only where they are needed to see what belongs together. */
static void out_value(struct out *out, const struct member *m, bool always)
{
    bool quoted = m->value_size >= 2 && m->value[0] == '"', plain = m->value_size > 2;
    for (size_t i = 1; quoted && i + 1 < m->value_size; i++)
        plain &= m->value[i] != '\\' && (always || (m->value[i] != ' ' && m->value[i] != '='));
    if (quoted && plain)
        out_bytes(out, m->value + 1, m->value_size - 2);
    else
        out_bytes(out, m->value, m->value_size);
}

static void out_people(struct out *out, enum log_level level, const char *line, size_t size)
{
    static const char *const names[] = {
        [LOG_DEBUG] = " DEBUG ", [LOG_INFO] = " INFO  ", [LOG_WARN] = " WARN  ", [LOG_ERROR] = " ERROR "};
    static const char *const head[] = {"ts", "level", "logger", "msg"};
    struct member m;
    if (member_of(line, size, "ts", &m))
        out_value(out, &m, true);
    out_text(out, names[level]);
    if (member_of(line, size, "logger", &m))
        out_value(out, &m, true);
    out_text(out, ": ");
    if (member_of(line, size, "msg", &m))
        out_value(out, &m, true);
    for (size_t at = 1; next_member(line, size, &at, &m);) {
        bool told = false;
        for (size_t i = 0; i < sizeof(head) / sizeof(*head); i++)
            told |= m.key_size == strlen(head[i]) && memcmp(m.key, head[i], m.key_size) == 0;
        if (told)
            continue;
        out_text(out, " ");
        out_bytes(out, m.key, m.key_size);
        out_text(out, "=");
        out_value(out, &m, false);
    }
}

/* ---- one line ---- */

/* True unless it would have to wait. A line that became too long is cut: people see that it is. */
static bool emit(enum log_level level, const char *line, size_t size)
{
    static const char *const priorities[] = {
        [LOG_DEBUG] = "<7>", [LOG_INFO] = "<6>", [LOG_WARN] = "<4>", [LOG_ERROR] = "<3>"};
    char masked[LOG_LINE_MAX], whole[LOG_LINE_MAX];
    struct out m = {.bytes = masked, .room = ROOM};
    struct out w = {.bytes = whole, .room = sizeof(whole) - 1};
    mask(&m, line, size);
    if (atomic_load_explicit(&to_journal, memory_order_relaxed))
        out_text(&w, priorities[level]);
    if (atomic_load_explicit(&as_text, memory_order_relaxed) && m.size > 0 && m.bytes[0] == '{')
        out_people(&w, level, masked, m.size);
    else
        out_bytes(&w, masked, m.size);
    whole[w.size++] = '\n';
    return put(whole, w.size);
}

/* 2026-01-31T23:59:59.123Z */
static void timestamp_of(uint64_t wall, char text[32])
{
    time_t seconds = (time_t)(wall / NS_PER_S);
    struct tm t;
    gmtime_r(&seconds, &t);
    size_t length = strftime(text, 32, "%Y-%m-%dT%H:%M:%S", &t);
    unsigned ms = (unsigned)(wall / NS_PER_MS % 1000);
    const char rest[] = {'.', (char)('0' + ms / 100), (char)('0' + ms / 10 % 10), (char)('0' + ms % 10), 'Z',
                         0};
    memcpy(text + length, rest, sizeof(rest));
}

static void timestamp(char text[32])
{
    struct env *env = env_real();
    timestamp_of(env->wall(env), text);
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

static void tell_dropped(void)
{
    char line[256];
    struct json_sink sink;
    struct json json;
    uint64_t lost = atomic_exchange(&dropped, 0);
    if (!lost)
        return;
    json_sink_init(&sink, line, sizeof(line), NULL, NULL);
    json_init(&json, &sink);
    line_begin(&json, LOG_WARN, "log", "lines were dropped because standard error was full");
    JSON_MEMBER(&json, "count", uint, lost);
    json_object_end(&json);
    if (json_end(&json) != JSON_OK || !emit(LOG_WARN, line, sink.length))
        atomic_fetch_add(&dropped, lost);
}

static void deliver(enum log_level level, const char *line, size_t size)
{
    if (atomic_load_explicit(&dropped, memory_order_relaxed))
        tell_dropped();
    if (!emit(level, line, size))
        atomic_fetch_add(&dropped, 1);
}

/* A line that didn't fit is replaced by its head alone. */
static void line_end(struct json *json, enum log_level level, const char *logger, const char *message)
{
    char head[512];
    struct json_sink sink;
    struct json short_json;
    json_object_end(json);
    if (json_end(json) == JSON_OK) {
        deliver(level, json->sink->buffer, json->sink->length);
        return;
    }
    json_sink_init(&sink, head, sizeof(head), NULL, NULL);
    json_init(&short_json, &sink);
    line_begin(&short_json, level, logger, message);
    JSON_MEMBER(&short_json, "cut", bool, true);
    json_object_end(&short_json);
    if (json_end(&short_json) == JSON_OK)
        deliver(level, head, sink.length);
}

static bool wanted(enum log_level level)
{
    return (int)level >= atomic_load_explicit(&level_min, memory_order_relaxed);
}

/* What says nothing about itself is as important as it can be. */
static enum log_level level_of_line(const char *line, size_t size)
{
    struct member m;
    enum log_level level = LOG_ERROR;
    char name[8];
    if (!member_of(line, size, "level", &m) || m.value_size < 3 || m.value_size - 2 >= sizeof(name))
        return level;
    memcpy(name, m.value + 1, m.value_size - 2);
    name[m.value_size - 2] = 0;
    (void)log_level_of(name, &level);
    return level;
}

bool log_wants(const char *level)
{
    enum log_level value = LOG_ERROR;
    return !log_level_of(level, &value) || wanted(value);
}

/* Of a line that begins with its level: the bytes of that member and of the comma behind it, which come before the logger. */
static size_t leading_level(const char *line, size_t size)
{
    static const char first[] = "{\"level\":";
    struct member m;
    if (size < sizeof(first) || memcmp(line, first, sizeof(first) - 1) != 0 ||
        !member_of(line, size, "level", &m))
        return 0;
    size_t end = (size_t)(m.value + m.value_size - line);
    return end < size && line[end] == ',' ? end : 0;
}

void log_line(const char *line, size_t size)
{
    char whole[LOG_LINE_MAX], ts[32];
    struct json_sink sink;
    struct member m;
    bool object = size > 2 && line[0] == '{';
    enum log_level level = object ? level_of_line(line, size) : LOG_ERROR;
    if (!wanted(level))
        return;
    json_sink_init(&sink, whole, ROOM, NULL, NULL);
    timestamp(ts);
    json_sink_text(&sink, "{\"ts\":\"");
    json_sink_text(&sink, ts);
    json_sink_text(&sink, "\",");
    size_t level_size = object ? leading_level(line, size) : 0;
    json_sink_bytes(&sink, line + 1, level_size);
    if (object && !member_of(line, size, "logger", &m))
        json_sink_text(&sink, "\"logger\":\"runtime\",");
    if (object)
        json_sink_bytes(&sink, line + 1 + level_size, size - 1 - level_size);
    if (object && sink.status == JSON_OK)
        deliver(level, whole, sink.length);
    else
        deliver(level, line, size < ROOM ? size : ROOM); /* as it is, rather than not at all */
}

const char log_null[] = "null";

void log_write(enum log_level level, const char *logger, const char *message, const struct log_field *fields,
               size_t count)
{
    char line[LOG_LINE_MAX];
    struct json_sink sink;
    struct json json;
    if (!wanted(level))
        return;
    json_sink_init(&sink, line, ROOM, NULL, NULL);
    json_init(&json, &sink);
    line_begin(&json, level, logger, message);
    if (actor_inside())
        JSON_MEMBER(&json, "actor", hex_string, actor_self());
    for (size_t i = 0; i < count; i++)
        if (fields[i].text)
            JSON_MEMBER(&json, fields[i].name, string, fields[i].text == log_null ? NULL : fields[i].text);
        else
            JSON_MEMBER(&json, fields[i].name, int, fields[i].number);
    line_end(&json, level, logger, message);
}

/* ---- telemetry ---- */

/* How much an event matters at most to a reader of the log; the rest is for debugging. A crash has a line of the
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
    case TELEMETRY_STORE_STATE:
    case TELEMETRY_HTTP_CROWDED:
    case TELEMETRY_JOB_REFUSED:
    case TELEMETRY_JOB_QUEUE_FULL:
        return LOG_WARN;
    default:
        return LOG_DEBUG;
    }
}

/* Good news of such an event: a store that is open again. */
static enum log_level level_of_record(const struct telemetry_record *record)
{
    enum telemetry_event event = (enum telemetry_event)record->event;
    if (event != TELEMETRY_STORE_STATE)
        return level_of(event);
    const char *state = telemetry_record_value(record, DIM_REASON);
    return state && strcmp(state, "open") == 0 ? LOG_INFO : level_of(event);
}

static void follow(void *context, const struct telemetry_record *record)
{
    char line[LOG_LINE_MAX], at[32];
    struct json_sink sink;
    struct json json;
    enum telemetry_event event = (enum telemetry_event)record->event;
    enum log_level level = level_of_record(record);
    (void)context;
    if (!wanted(level))
        return;
    json_sink_init(&sink, line, ROOM, NULL, NULL);
    json_init(&json, &sink);
    line_begin(&json, level, "telemetry", telemetry_event_name(event));
    json_key(&json, "event");
    timestamp_of(record->wall, at);
    telemetry_record_write(followed, record, at, &json);
    line_end(&json, level, "telemetry", telemetry_event_name(event));
}

static void subscribe(void)
{
    struct telemetry_filter filter = {0};
    for (int i = 0; i < TELEMETRY_EVENT_COUNT; i++)
        if (wanted(level_of((enum telemetry_event)i)))
            telemetry_filter_add(&filter, (enum telemetry_event)i);
    followed_handle = telemetry_subscribe(followed, &filter, follow, NULL);
}

void log_follow(struct telemetry *telemetry)
{
    followed = telemetry;
    subscribe();
}

/* ---- settings ---- */

void log_open(enum log_level level)
{
    followed = NULL; /* of a runtime that has ended */
    followed_handle = -1;
    atomic_store(&level_min, (int)level);
    sink_open();
}

enum log_level log_level_here(void)
{
    return (enum log_level)atomic_load(&level_min);
}

void log_set_level(enum log_level level)
{
    atomic_store(&level_min, (int)level);
    if (!followed)
        return;
    if (followed_handle >= 0)
        telemetry_unsubscribe(followed, followed_handle);
    subscribe();
}

void log_set_text(bool text)
{
    atomic_store(&as_text, text);
}

void log_set_journal(const char *stream)
{
    struct stat s;
    char here[64];
    if (!stream || fstat(STDERR_FILENO, &s) != 0) {
        atomic_store(&to_journal, false);
        return;
    }
    snprintf(here, sizeof(here), "%llu:%llu", (unsigned long long)s.st_dev, (unsigned long long)s.st_ino);
    atomic_store(&to_journal, strcmp(stream, here) == 0);
}

uint64_t log_dropped(void)
{
    return atomic_load(&dropped);
}
