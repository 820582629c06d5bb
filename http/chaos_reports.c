#define _GNU_SOURCE
#include "http/chaos_reports.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "http/audits.h"
#include "http/json_text.h"
#include "http/timestamp.h"
#include "runtime/actor.h"
#include "runtime/assert.h"
#include "store/store.h"

enum {
    HEAD_MAX = 4096, /* of a file: its first line, which is what the list shows */
    FILE_MAX = HEAD_MAX + CHAOS_REPORTS_BODY_MAX + 256,
    NAME_SIZE = 32,
};

STATIC_ASSERT(FILE_MAX <= 60000, "a file is one piece of an arena");

/* What of a report is in the list; the contract has checked that they are there, and of which type. */
static const char *const listed[] = {
    "scenario", "outcome",   "holds",     "seed",    "full",     "started_at",      "took_ms",
    "died",     "restarted", "untouched", "missing", "requests", "failed_requests", "recover_ms"};
enum { LISTED = sizeof(listed) / sizeof(*listed) };

/* The number of the newest report; 0 before anybody has looked: a directory without reports is looked at each time. */
static _Atomic uint64_t newest;

/* ---- files ---- */

static int directory_open(const struct store *store, bool make)
{
    int at = store->environment.dir_fd;
    if (make && mkdirat(at, CHAOS_REPORTS_DIR, 0700) != 0 && errno != EEXIST)
        return -1;
    return openat(at, CHAOS_REPORTS_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

static void place_name(uint64_t number, const char *suffix, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, "%02u%s", (unsigned)(number % CHAOS_REPORTS_MAX), suffix);
}

/* The first `room` bytes of a place's file; 0: nothing is there. */
static size_t place_read(int dir, uint64_t place, char *bytes, size_t room)
{
    char name[NAME_SIZE];
    size_t size = 0;
    place_name(place, ".json", name);
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return 0;
    for (ssize_t n; size < room && (n = read(fd, bytes + size, room - size)) > 0;)
        size += (size_t)n;
    close(fd);
    return size;
}

/* The head without its newline, and its number; 0: it is none of ours. */
static size_t head_read(int dir, uint64_t place, char head[HEAD_MAX], uint64_t *ret_number)
{
    static const char begin[] = "{\"id\":";
    size_t size = place_read(dir, place, head, HEAD_MAX);
    const char *end = memchr(head, '\n', size);
    if (!end || size < sizeof(begin) || memcmp(head, begin, sizeof(begin) - 1) != 0)
        return 0;
    *ret_number = strtoull(head + sizeof(begin) - 1, NULL, 10);
    return (size_t)(end - head);
}

static uint64_t newest_find(int dir)
{
    char *head = actor_alloc(HEAD_MAX);
    uint64_t found = atomic_load(&newest);
    if (found)
        return found;
    for (uint64_t place = 0, number; place < CHAOS_REPORTS_MAX; place++)
        if (head_read(dir, place, head, &number) && number > found)
            found = number;
    return found;
}

static uint64_t number_take(int dir)
{
    uint64_t none = 0, found = newest_find(dir);
    atomic_compare_exchange_strong(&newest, &none, found);
    return atomic_fetch_add(&newest, 1) + 1;
}

/* 0, or errno. Nothing is left of what couldn't be written. */
static int place_write(int dir, uint64_t number, const char *bytes, size_t size)
{
    char name[NAME_SIZE], whole[NAME_SIZE];
    place_name(number, ".new", name);
    place_name(number, ".json", whole);
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600), code = 0;
    if (fd < 0)
        return errno;
    for (size_t done = 0; done < size && !code;) {
        ssize_t n = write(fd, bytes + done, size - done);
        if (n > 0)
            done += (size_t)n;
        else if (n == 0 || errno != EINTR)
            code = n == 0 ? ENOSPC : errno;
    }
    if (close(fd) != 0 && !code)
        code = errno;
    if (!code && renameat(dir, name, dir, whole) != 0)
        code = errno;
    if (code)
        (void)unlinkat(dir, name, 0);
    return code;
}

/* ---- adding one ---- */

/* {"id":7,"kept_at":"...","scenario":"...",...}, a newline, the report. 0: it doesn't fit. */
static size_t compose(const struct json_text *report, uint64_t number, char *room)
{
    struct json_sink sink;
    struct json json;
    char at[TIME_TEXT_SIZE];
    const struct json_node *root = json_root(report);
    struct span whole = json_raw_of(report, root);
    json_sink_init(&sink, room, HEAD_MAX - 1, NULL, NULL);
    json_init(&json, &sink);
    time_format(store_time_us(), at);
    json_object_begin(&json);
    JSON_MEMBER(&json, "id", uint, number);
    JSON_MEMBER(&json, "kept_at", string, at);
    for (size_t i = 0; i < LISTED; i++) {
        struct span value = json_raw_of(report, json_member(report, root, listed[i]));
        json_key(&json, listed[i]);
        json_raw(&json, value.bytes, value.size);
    }
    json_object_end(&json);
    if (json_end(&json) != JSON_OK)
        return 0;
    size_t size = sink.length;
    room[size++] = '\n';
    memcpy(room + size, whole.bytes, whole.size);
    room[size + whole.size] = '\n';
    return size + whole.size + 1;
}

static void note(const struct request *q, const char *outcome)
{
    char scenario[64] = "", text[64];
    const struct json_node *name = request_member(q, "scenario");
    struct span span = {NULL, 0};
    if (json_string_of(q->json, name, text, sizeof(text), &span))
        snprintf(scenario, sizeof(scenario), "%.*s", (int)span.size, (const char *)span.bytes);
    (void)audits_note(q,
                      &(struct audits_entry){.verb = "chaos.report", .target = scenario, .outcome = outcome});
}

static void refuse(struct response *r, int code)
{
    if (code == ENOSPC || code == EDQUOT || code == EFBIG)
        response_error(r, ERROR_OPS_507_NO_SPACE, "the disk has no room for a report");
    else
        response_error(r, ERROR_OPS_503_STORE, "a report can't be kept: %s", strerror(code));
}

void chaos_reports_serve_add(const struct request *q, struct response *r)
{
    struct store *store = store_here();
    struct json json;
    int dir = store ? directory_open(store, true) : -1, code = errno;
    if (dir < 0) {
        refuse(r, store ? code : ENODEV);
        return;
    }
    uint64_t owned = actor_own_fd(dir), number = number_take(dir);
    char *room = actor_alloc(FILE_MAX);
    size_t size = compose(q->json, number, room);
    code = size ? place_write(dir, number, room, size) : EMSGSIZE;
    actor_release(owned);
    if (code) {
        refuse(r, code);
        return;
    }
    note(q, "kept");
    response_begin(r, 201, RESPONSE_JSON);
    response_header(r, "Location", "/stats/chaos/%llu", (unsigned long long)number);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "id", uint, number);
    json_object_end(&json);
    json_sink_text(&r->sink, "\n");
}

/* ---- showing them ---- */

void chaos_reports_serve_list(const struct request *q, struct response *r)
{
    struct store *store = store_here();
    int dir = store ? directory_open(store, false) : -1;
    uint64_t owned = dir < 0 ? 0 : actor_own_fd(dir), last = dir < 0 ? 0 : newest_find(dir), shown = 0;
    char *head = actor_alloc(HEAD_MAX);
    (void)q;
    response_begin(r, 200, RESPONSE_JSON);
    json_sink_text(&r->sink, "{\"reports\":[");
    for (uint64_t i = 0; i < CHAOS_REPORTS_MAX && i < last; i++) {
        uint64_t number;
        size_t size = head_read(dir, last - i, head, &number);
        if (!size || number != last - i)
            continue;
        json_sink_text(&r->sink, shown++ ? "," : "");
        json_sink_bytes(&r->sink, head, size);
    }
    json_sink_text(&r->sink, "]}\n");
    if (owned)
        actor_release(owned);
}

/* A number without sign or zeros in front; 0: it is none. */
static uint64_t number_of(struct span text)
{
    const unsigned char *digits = text.bytes;
    uint64_t number = 0;
    if (text.size == 0 || text.size > 18 || digits[0] == '0')
        return 0;
    for (size_t i = 0; i < text.size; i++) {
        if (digits[i] < '0' || digits[i] > '9')
            return 0;
        number = number * 10 + digits[i] - '0';
    }
    return number;
}

void chaos_reports_serve_one(const struct request *q, struct response *r)
{
    struct store *store = store_here();
    uint64_t number = number_of(q->params[0]), there = 0;
    int dir = store && number ? directory_open(store, false) : -1;
    uint64_t owned = dir < 0 ? 0 : actor_own_fd(dir);
    char *room = actor_alloc(FILE_MAX);
    size_t head = dir < 0 ? 0 : head_read(dir, number, room, &there), size = 0;
    if (head && there == number)
        size = place_read(dir, number, room, FILE_MAX);
    if (owned)
        actor_release(owned);
    if (size <= head + 1) {
        response_error(r, ERROR_OPS_404_NOT_FOUND, "there is no such report; %u are kept", CHAOS_REPORTS_MAX);
        return;
    }
    response_begin(r, 200, RESPONSE_JSON);
    json_sink_bytes(&r->sink, room + head + 1, size - head - 1);
}
