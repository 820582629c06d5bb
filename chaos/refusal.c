#define _GNU_SOURCE
#include "chaos/refusal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chaos/brief.h"
#include "chaos/problem.h"
#include "chaos/stage.h"
#include "chaos/verdict.h"

#define NONE "00000000-0000-4000-8000-000000000000"

/* ---- one request that must be refused ---- */

enum { PER_GUEST = 15 }; /* refused credentials from one address, which may be limited */

/* Words of a template: $NONE is an id that nothing has, $JOB a job of the client, $CLIENT and $OTHER clients, $AGO5 and
 * $AGO2 times so many seconds ago, $AHEAD one ahead, $LONG 256 characters. */
static const char *word(const struct stage *stage, const char *name, char room[300])
{
    static const char long_key[] = "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk";
    if (strcmp(name, "NONE") == 0)
        return NONE;
    if (strcmp(name, "JOB") == 0)
        return stage->job;
    if (strcmp(name, "CLIENT") == 0)
        return stage->client.id;
    if (strcmp(name, "OTHER") == 0)
        return stage->other.id;
    if (strcmp(name, "LONG") == 0) {
        snprintf(room, 300, "%s%s%s%s", long_key, long_key, long_key, long_key);
        return room;
    }
    time_t at = time(NULL);
    at += strcmp(name, "AHEAD") == 0 ? 3600 : strcmp(name, "AGO5") == 0 ? -5 : -3;
    struct tm tm;
    gmtime_r(&at, &tm);
    strftime(room, 300, "%Y-%m-%dT%H:%M:%SZ", &tm);
    return room;
}

static void expand(const struct stage *stage, const char *template, char *room, size_t size)
{
    size_t at = 0;
    while (*template && at + 1 < size) {
        char name[16] = "", text[300];
        if (*template != '$') {
            room[at++] = *template ++;
            continue;
        }
        size_t length = strspn(template + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
        snprintf(name, sizeof(name), "%.*s", (int)length, template + 1);
        int added = snprintf(room + at, size - at, "%s", word(stage, name, text));
        at += (size_t)added < size - at ? (size_t)added : size - at - 1;
        template += 1 + length;
    }
    room[at] = 0;
}

/* X(name, method, path, headers, body (NULL: none), status, code ("": any), what the answer must name) */
#define ROWS(X)                                                                                              \
    /* 15.2: input */                                                                                        \
    X("JOB-340 JOB-306 broken JSON", POST, "/v1/jobs", "", "{", 400, "REQUEST_MALFORMED", "")                \
    X("JOB-140 no body", POST, "/v1/jobs", "", "", 400, "REQUEST_MALFORMED", "")                             \
    X("JOB-140 an array", POST, "/v1/jobs", "", "[]", 400, "REQUEST_MALFORMED", "")                          \
    X("JOB-140 a text", POST, "/v1/jobs", "", "\"x\"", 400, "REQUEST_MALFORMED", "")                         \
    X("JOB-301 no type", POST, "/v1/jobs", "", "{}", 400, "REQUEST_MALFORMED", "type")                       \
    X("JOB-301 DEFERRED without a time", POST, "/v1/jobs", "", "{\"type\":\"DEFERRED\"}", 400,               \
      "JOB_VALIDATION_FAILED", "execution_at")                                                               \
    X("JOB-074 DEFERRED at null", POST, "/v1/jobs", "", "{\"type\":\"DEFERRED\",\"execution_at\":null}",     \
      400, "JOB_VALIDATION_FAILED", "execution_at")                                                          \
    X("JOB-140 type is a number", POST, "/v1/jobs", "", "{\"type\":1}", 400, "REQUEST_MALFORMED", "type")    \
    X("JOB-302 JOB-078 no such type", POST, "/v1/jobs", "", "{\"type\":\"INSTANT\"}", 400,                   \
      "JOB_VALIDATION_FAILED", "type")                                                                       \
    X("JOB-260 EXECUTE at a time", POST, "/v1/jobs", "",                                                     \
      "{\"type\":\"EXECUTE\",\"execution_at\":\"$AHEAD\"}", 400, "JOB_VALIDATION_FAILED", "execution_at")    \
    X("JOB-260 EMIT_EVENT at a time", POST, "/v1/jobs", "",                                                  \
      "{\"type\":\"EMIT_EVENT\",\"execution_at\":\"$AHEAD\"}", 400, "JOB_VALIDATION_FAILED", "execution_at") \
    X("JOB-303 JOB-263 5 s ago", POST, "/v1/jobs", "", "{\"type\":\"DEFERRED\",\"execution_at\":\"$AGO5\"}", \
      400, "JOB_VALIDATION_FAILED", "execution_at")                                                          \
    X("JOB-267 3 s ago", POST, "/v1/jobs", "", "{\"type\":\"DEFERRED\",\"execution_at\":\"$AGO3\"}", 400,    \
      "JOB_VALIDATION_FAILED", "execution_at")                                                               \
    X("JOB-304 tomorrow", POST, "/v1/jobs", "", "{\"type\":\"DEFERRED\",\"execution_at\":\"tomorrow\"}",     \
      400, "JOB_VALIDATION_FAILED", "execution_at")                                                          \
    X("JOB-304 month 13", POST, "/v1/jobs", "",                                                              \
      "{\"type\":\"DEFERRED\",\"execution_at\":\"2030-13-01T00:00:00Z\"}", 400, "JOB_VALIDATION_FAILED",     \
      "execution_at")                                                                                        \
    X("JOB-304 a Unix time", POST, "/v1/jobs", "",                                                           \
      "{\"type\":\"DEFERRED\",\"execution_at\":\"1900000000\"}", 400, "JOB_VALIDATION_FAILED",               \
      "execution_at")                                                                                        \
    X("JOB-304 a number", POST, "/v1/jobs", "", "{\"type\":\"DEFERRED\",\"execution_at\":1900000000}", 400,  \
      "", "execution_at")                                                                                    \
    X("JOB-259 no Z", POST, "/v1/jobs", "",                                                                  \
      "{\"type\":\"DEFERRED\",\"execution_at\":\"2090-01-01T00:00:00\"}", 400, "JOB_VALIDATION_FAILED",      \
      "execution_at")                                                                                        \
    X("JOB-259 an offset", POST, "/v1/jobs", "",                                                             \
      "{\"type\":\"DEFERRED\",\"execution_at\":\"2090-01-01T00:00:00+02:00\"}", 400,                         \
      "JOB_VALIDATION_FAILED", "execution_at")                                                               \
    X("JOB-305 ftp", POST, "/v1/jobs", "", "{\"type\":\"EXECUTE\",\"callback\":\"ftp://h/x\"}", 400,         \
      "JOB_VALIDATION_FAILED", "callback")                                                                   \
    X("JOB-305 no host", POST, "/v1/jobs", "", "{\"type\":\"EXECUTE\",\"callback\":\"http://\"}", 400,       \
      "JOB_VALIDATION_FAILED", "callback")                                                                   \
    X("JOB-305 an empty host", POST, "/v1/jobs", "", "{\"type\":\"EXECUTE\",\"callback\":\"http:///x\"}",    \
      400, "JOB_VALIDATION_FAILED", "callback")                                                              \
    X("JOB-305 a blank", POST, "/v1/jobs", "", "{\"type\":\"EXECUTE\",\"callback\":\"https://a b/\"}", 400,  \
      "JOB_VALIDATION_FAILED", "callback")                                                                   \
    X("JOB-305 a number", POST, "/v1/jobs", "", "{\"type\":\"EXECUTE\",\"callback\":1}", 400,                \
      "REQUEST_MALFORMED", "callback")                                                                       \
    X("JOB-033 JOB-065 no such kind", POST, "/v1/jobs", "", "{\"type\":\"EXECUTE\",\"work_kind\":\"NAP\"}",  \
      400, "JOB_VALIDATION_FAILED", "work_kind")                                                             \
    X("JOB-033 kind is a number", POST, "/v1/jobs", "", "{\"type\":\"EXECUTE\",\"work_kind\":1}", 400,       \
      "REQUEST_MALFORMED", "work_kind")                                                                      \
    X("JOB-350 JOB-064 PAYLOAD_INVALID", POST, "/v1/jobs", "",                                               \
      "{\"type\":\"EXECUTE\",\"work_kind\":\"PAYLOAD_INVALID\"}", 400, "JOB_VALIDATION_FAILED", "")          \
    X("JOB-137 an empty key", POST, "/v1/jobs", "", "{\"type\":\"EXECUTE\",\"idempotency_key\":\"\"}", 400,  \
      "", "idempotency_key")                                                                                 \
    X("JOB-137 a blank in the key", POST, "/v1/jobs", "",                                                    \
      "{\"type\":\"EXECUTE\",\"idempotency_key\":\"a b\"}", 400, "", "idempotency_key")                      \
    X("JOB-137 256 characters of a key", POST, "/v1/jobs", "",                                               \
      "{\"type\":\"EXECUTE\",\"idempotency_key\":\"$LONG\"}", 400, "", "idempotency_key")                    \
    X("JOB-137 the key is a number", POST, "/v1/jobs", "", "{\"type\":\"EXECUTE\",\"idempotency_key\":1}",   \
      400, "REQUEST_MALFORMED", "idempotency_key")                                                           \
    X("JOB-101 a blank in the header's key", POST, "/v1/jobs", "Idempotency-Key: a b\r\n",                   \
      "{\"type\":\"EXECUTE\"}", 400, "", "")                                                                 \
    /* 16: HTTP */                                                                                           \
    X("JOB-362 no such path", GET, "/v1/unknown", "", NULL, 404, "REQUEST_ROUTE_NOT_FOUND", "")              \
    X("JOB-374 a slash at the end", GET, "/v1/jobs/", "", NULL, 404, "REQUEST_ROUTE_NOT_FOUND", "")          \
    X("JOB-342 PUT /v1/jobs", PUT, "/v1/jobs", "", "{}", 405, "REQUEST_METHOD_NOT_ALLOWED", "")              \
    X("JOB-342 DELETE /v1/jobs", DELETE, "/v1/jobs", "", NULL, 405, "REQUEST_METHOD_NOT_ALLOWED", "")        \
    X("JOB-387 DELETE of a job", DELETE, "/v1/jobs/$JOB", "", NULL, 405, "REQUEST_METHOD_NOT_ALLOWED", "")   \
    X("JOB-147 GET cancel", GET, "/v1/jobs/$JOB/cancel", "", NULL, 405, "REQUEST_METHOD_NOT_ALLOWED", "")    \
    X("JOB-157 GET retry", GET, "/v1/jobs/$JOB/retry", "", NULL, 405, "REQUEST_METHOD_NOT_ALLOWED", "")      \
    X("JOB-175 POST report", POST, "/v1/jobs/$JOB/report", "", "{}", 405, "REQUEST_METHOD_NOT_ALLOWED", "")  \
    X("JOB-102 GET clients", GET, "/v1/clients", "", NULL, 405, "REQUEST_METHOD_NOT_ALLOWED", "")            \
    X("JOB-107 GET keys", GET, "/v1/clients/$CLIENT/keys", "", NULL, 405, "REQUEST_METHOD_NOT_ALLOWED", "")  \
    X("JOB-117 GET renew", GET, "/v1/clients/$CLIENT/keys/renew", "", NULL, 405,                             \
      "REQUEST_METHOD_NOT_ALLOWED", "")                                                                      \
    X("JOB-127 GET revoke", GET, "/v1/clients/$CLIENT/keys/revoke", "", NULL, 405,                           \
      "REQUEST_METHOD_NOT_ALLOWED", "")                                                                      \
    X("JOB-183 PUT webhooks", PUT, "/v1/webhooks", "", "{}", 405, "REQUEST_METHOD_NOT_ALLOWED", "")          \
    X("JOB-192 POST of a webhook", POST, "/v1/webhooks/$NONE", "", "{}", 405, "REQUEST_METHOD_NOT_ALLOWED",  \
      "")                                                                                                    \
    X("JOB-343 HTML is asked for", GET, "/v1/jobs/$JOB", "Accept: text/html\r\n", NULL, 406,                 \
      "REQUEST_NOT_ACCEPTABLE", "")                                                                          \
    X("JOB-374 never 304", GET, "/v1/jobs/$JOB", "If-None-Match: *\r\n", NULL, 200, "", "")                  \
    X("JOB-369 Upgrade is passed over", GET, "/v1/jobs/$JOB",                                                \
      "Upgrade: websocket\r\nConnection: Upgrade\r\n", NULL, 200, "", "")                                    \
    /* reads */                                                                                              \
    X("JOB-351 JOB-172 an unknown job", GET, "/v1/jobs/$NONE", "", NULL, 404, "JOB_NOT_FOUND", "")           \
    X("JOB-172 no id", GET, "/v1/jobs/nonsense", "", NULL, 404, "JOB_NOT_FOUND", "")                         \
    X("JOB-180 the report of an unknown job", GET, "/v1/jobs/$NONE/report", "", NULL, 404, "JOB_NOT_FOUND",  \
      "")                                                                                                    \
    X("JOB-180 no id of a report", GET, "/v1/jobs/nonsense/report", "", NULL, 404, "JOB_NOT_FOUND", "")      \
    X("JOB-366 JOB-396 no report as yet", GET, "/v1/jobs/$JOB/report", "", NULL, 404,                        \
      "JOB_REPORT_NOT_FOUND", "")                                                                            \
    X("JOB-172 events of an unknown job", GET, "/v1/jobs/$NONE/events", "", NULL, 404, "JOB_NOT_FOUND", "")  \
    X("JOB-003 limit 0", GET, "/v1/jobs?limit=0", "", NULL, 400, "", "limit")                                \
    X("JOB-003 limit 101", GET, "/v1/jobs?limit=101", "", NULL, 400, "", "limit")                            \
    X("JOB-003 limit x", GET, "/v1/jobs?limit=x", "", NULL, 400, "", "limit")                                \
    X("JOB-003 no such state", GET, "/v1/jobs?state=ASLEEP", "", NULL, 400, "", "state")                     \
    X("JOB-003 no such cursor", GET, "/v1/jobs?cursor=nonsense", "", NULL, 400, "", "cursor")                \
    /* actions */                                                                                            \
    X("JOB-153 cancel of an unknown job", POST, "/v1/jobs/$NONE/cancel", "", NULL, 404, "JOB_NOT_FOUND", "") \
    X("JOB-150 cancel of no id", POST, "/v1/jobs/nonsense/cancel", "", NULL, 400, "REQUEST_MALFORMED", "")   \
    X("JOB-150 cancel with a body", POST, "/v1/jobs/$JOB/cancel", "", "{\"x\":1}", 400, "REQUEST_MALFORMED", \
      "")                                                                                                    \
    X("JOB-150 cancel with an array", POST, "/v1/jobs/$JOB/cancel", "", "[]", 400, "REQUEST_MALFORMED", "")  \
    X("JOB-163 retry of an unknown job", POST, "/v1/jobs/$NONE/retry", "", NULL, 404, "JOB_NOT_FOUND", "")   \
    X("JOB-160 retry of no id", POST, "/v1/jobs/nonsense/retry", "", NULL, 400, "REQUEST_MALFORMED", "")     \
    X("JOB-160 retry with a body", POST, "/v1/jobs/$JOB/retry", "", "{\"x\":1}", 400, "REQUEST_MALFORMED",   \
      "")                                                                                                    \
    /* keys */                                                                                               \
    X("JOB-110 keys of no id", POST, "/v1/clients/nonsense/keys", "", NULL, 400, "REQUEST_MALFORMED", "")    \
    X("JOB-110 rotate is a text", POST, "/v1/clients/$CLIENT/keys", "", "{\"rotate\":\"yes\"}", 400,         \
      "REQUEST_MALFORMED", "rotate")                                                                         \
    X("JOB-363 JOB-113 keys of an unknown client", POST, "/v1/clients/$NONE/keys", "", NULL, 404,            \
      "CLIENT_NOT_FOUND", "")                                                                                \
    X("JOB-112 keys of another client", POST, "/v1/clients/$OTHER/keys", "", NULL, 403, "AUTH_FORBIDDEN",    \
      "")                                                                                                    \
    X("JOB-120 renew with an array", POST, "/v1/clients/$CLIENT/keys/renew", "", "[]", 400,                  \
      "REQUEST_MALFORMED", "")                                                                               \
    X("JOB-120 renew of no id", POST, "/v1/clients/nonsense/keys/renew", "", "{}", 400, "REQUEST_MALFORMED", \
      "")                                                                                                    \
    X("JOB-298 JOB-123 renew of an unknown client", POST, "/v1/clients/$NONE/keys/renew", "", "{}", 404,     \
      "CLIENT_NOT_FOUND", "")                                                                                \
    X("JOB-122 renew of another client", POST, "/v1/clients/$OTHER/keys/renew", "", "{}", 403,               \
      "AUTH_FORBIDDEN", "")                                                                                  \
    X("JOB-130 revoke of nothing", POST, "/v1/clients/$CLIENT/keys/revoke", "", "{}", 400,                   \
      "REQUEST_MALFORMED", "key_id")                                                                         \
    X("JOB-130 revoke of a number", POST, "/v1/clients/$CLIENT/keys/revoke", "", "{\"key_id\":1}", 400,      \
      "REQUEST_MALFORMED", "key_id")                                                                         \
    X("JOB-299 JOB-133 JOB-364 revoke of an unknown key", POST, "/v1/clients/$CLIENT/keys/revoke", "",       \
      "{\"key_id\":\"$NONE\"}", 404, "AUTH_API_KEY_NOT_FOUND", "")                                           \
    X("JOB-133 revoke of an unknown client", POST, "/v1/clients/$NONE/keys/revoke", "",                      \
      "{\"key_id\":\"$NONE\"}", 404, "CLIENT_NOT_FOUND", "")                                                 \
    X("JOB-132 revoke of another client", POST, "/v1/clients/$OTHER/keys/revoke", "",                        \
      "{\"key_id\":\"$NONE\"}", 403, "AUTH_FORBIDDEN", "")                                                   \
    /* 15.7: webhooks */                                                                                     \
    X("JOB-327 JOB-186 a webhook of nothing", POST, "/v1/webhooks", "", "{}", 400, "", "url")                \
    X("JOB-327 ftp", POST, "/v1/webhooks", "", "{\"url\":\"ftp://h/x\",\"events\":[\"*\"]}", 400,            \
      "JOB_VALIDATION_FAILED", "url")                                                                        \
    X("JOB-327 no host", POST, "/v1/webhooks", "", "{\"url\":\"http://\",\"events\":[\"*\"]}", 400,          \
      "JOB_VALIDATION_FAILED", "url")                                                                        \
    X("JOB-186 url is a number", POST, "/v1/webhooks", "", "{\"url\":1,\"events\":[\"*\"]}", 400,            \
      "REQUEST_MALFORMED", "url")                                                                            \
    X("JOB-186 no events", POST, "/v1/webhooks", "", "{\"url\":\"http://192.0.2.1/x\"}", 400, "", "events")  \
    X("JOB-186 an empty list of events", POST, "/v1/webhooks", "",                                           \
      "{\"url\":\"http://192.0.2.1/x\",\"events\":[]}", 400, "JOB_VALIDATION_FAILED", "events")              \
    X("JOB-186 no such event", POST, "/v1/webhooks", "",                                                     \
      "{\"url\":\"http://192.0.2.1/x\",\"events\":[\"job.asleep\"]}", 400, "JOB_VALIDATION_FAILED",          \
      "events")                                                                                              \
    X("JOB-186 events is a text", POST, "/v1/webhooks", "",                                                  \
      "{\"url\":\"http://192.0.2.1/x\",\"events\":\"*\"}", 400, "REQUEST_MALFORMED", "events")               \
    X("JOB-367 JOB-197 an unknown webhook", DELETE, "/v1/webhooks/$NONE", "", NULL, 404,                     \
      "WEBHOOK_NOT_FOUND", "")                                                                               \
    X("JOB-197 no id of a webhook", DELETE, "/v1/webhooks/nonsense", "", NULL, 404, "WEBHOOK_NOT_FOUND", "")

static const struct row {
    const char *name, *method, *path, *headers, *body;
    int status;
    const char *code, *naming;
} rows[] = {
#define X(name, method, path, headers, body, status, code, naming) \
    {name, #method, path, headers, body, status, code, naming},
    ROWS(X)
#undef X
};

static bool code_is(const struct letter *answer, const char *code)
{
    char found[PROBLEM_CODE_SIZE];
    problem_code(answer, found);
    return !code[0] || (strncmp(found, "RFA_", 4) == 0 && strcmp(found + 4, code) == 0);
}

static void judge_row(struct stage *stage, const struct row *row)
{
    char path[300], body[1024];
    struct letter answer;
    expand(stage, row->path, path, sizeof(path));
    expand(stage, row->body ? row->body : "", body, sizeof(body));
    const struct call call = {.operation = TIME_OTHER,
                              .method = row->method,
                              .path = path,
                              .headers = row->headers,
                              .body = row->body ? span_text(body) : (struct span){0}};
    int status = caller_call(&stage->client, &call, &answer);
    VERDICT_CASE(row->name,
                 status == row->status && code_is(&answer, row->code) && strstr(answer.body, row->naming),
                 "%s %s %s: %d %.300s", row->method, path, body, status, answer.body ? answer.body : "");
    letter_free(&answer);
}

/* ---- without good credentials ---- */

static const struct place {
    const char *name, *method, *path, *body;
} places[] = {
    {"submit", "POST", "/v1/jobs", "{\"type\":\"EXECUTE\"}"},
    {"list", "GET", "/v1/jobs", NULL},
    {"get", "GET", "/v1/jobs/$JOB", NULL},
    {"report", "GET", "/v1/jobs/$JOB/report", NULL},
    {"events", "GET", "/v1/jobs/$JOB/events", NULL},
    {"cancel", "POST", "/v1/jobs/$JOB/cancel", NULL},
    {"retry", "POST", "/v1/jobs/$JOB/retry", NULL},
    {"create key", "POST", "/v1/clients/$CLIENT/keys", NULL},
    {"renew key", "POST", "/v1/clients/$CLIENT/keys/renew", "{}"},
    {"revoke key", "POST", "/v1/clients/$CLIENT/keys/revoke", "{\"key_id\":\"$NONE\"}"},
    {"register webhook", "POST", "/v1/webhooks", "{\"url\":\"http://192.0.2.1/x\",\"events\":[\"*\"]}"},
    {"unregister webhook", "DELETE", "/v1/webhooks/$NONE", NULL},
};

static const struct credential {
    const char *name, *value; /* value NULL: the revoked key */
    const char *more;
    int status;
    const char *code;
} credentials[] = {
    {"JOB-294 JOB-346 without a key", "", "", 401, "AUTH_INVALID_CREDENTIALS"},
    {"JOB-346 an empty key", "Bearer ", "", 401, "AUTH_INVALID_CREDENTIALS"},
    {"JOB-295 JOB-346 an unknown key", "Bearer cop_nobodys", "", 401, "AUTH_INVALID_CREDENTIALS"},
    {"JOB-100 another scheme", "Basic eDp5", "", 401, "AUTH_INVALID_CREDENTIALS"},
    {"JOB-100 another header", "", "X-Api-Key: cop_nobodys\r\n", 401, "AUTH_INVALID_CREDENTIALS"},
    {"JOB-297 JOB-349 JOB-385 a revoked key", NULL, "", 403, "AUTH_API_KEY_DISABLED"},
};

static void judge_place(struct stage *stage, struct caller *guest, const struct place *place,
                        const struct credential *credential)
{
    char path[300], body[300];
    struct letter answer;
    expand(stage, place->path, path, sizeof(path));
    expand(stage, place->body ? place->body : "", body, sizeof(body));
    const struct call call = {.operation = TIME_OTHER,
                              .method = place->method,
                              .path = path,
                              .authorization = credential->value ? credential->value : stage->revoked,
                              .headers = credential->more,
                              .body = place->body ? span_text(body) : (struct span){0}};
    int status = caller_call(guest, &call, &answer);
    VERDICT_CASE(credential->name,
                 status == credential->status && code_is(&answer, credential->code) &&
                     !strstr(answer.body, "job_id"),
                 "%s: %d %.300s", place->name, status, answer.body ? answer.body : "");
    letter_free(&answer);
}

static void judge_credentials(struct stage *stage)
{
    struct caller guest;
    uint32_t asked = 0;
    for (size_t c = 0; c < sizeof(credentials) / sizeof(credentials[0]); c++)
        for (size_t p = 0; p < sizeof(places) / sizeof(places[0]); p++) {
            if (!brief.loopback && p) /* there is one address */
                continue;
            if (asked++ % PER_GUEST == 0) {
                if (asked > 1)
                    caller_leave(&guest);
                caller_init(&guest);
            }
            judge_place(stage, &guest, &places[p], &credentials[c]);
        }
    caller_leave(&guest);
}

/* ---- what a text of the table can't be ---- */

static void judge_types(struct stage *stage)
{
    static const char *const paths[] = {"/v1/jobs", "/v1/webhooks"};
    for (size_t i = 0; i < 2; i++) {
        struct letter answer;
        const struct call call = {.operation = TIME_OTHER,
                                  .method = "POST",
                                  .path = paths[i],
                                  .media = "text/plain",
                                  .body = span_text("{\"type\":\"EXECUTE\"}")};
        int status = caller_call(&stage->client, &call, &answer);
        VERDICT_CASE("JOB-341 JOB-099 a text",
                     status == 415 && code_is(&answer, "REQUEST_UNSUPPORTED_MEDIA_TYPE"), "%s: %d", paths[i],
                     status);
        letter_free(&answer);
    }
}

static void judge_size(struct stage *stage)
{
    struct letter answer;
    size_t size = brief.body_max + 1;
    char *body = malloc(size);
    if (!body)
        exit(2);
    memset(body, ' ', size);
    memcpy(body, "{\"type\":\"EXECUTE\"}", 18);
    const struct call call = {
        .operation = TIME_OTHER, .method = "POST", .path = "/v1/jobs", .body = span_of(body, size)};
    int status = caller_call(&stage->client, &call, &answer);
    VERDICT_CASE("JOB-306 JOB-344 a body above the limit",
                 status == 413 && code_is(&answer, "REQUEST_PAYLOAD_TOO_LARGE"), "%zu bytes: %d %.200s", size,
                 status, answer.body ? answer.body : "");
    letter_free(&answer);
    free(body);
}

void refusal_all(struct stage *stage)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        judge_row(stage, &rows[i]);
    judge_types(stage);
    judge_size(stage);
    judge_credentials(stage);
}
