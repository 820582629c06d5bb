#include "chaos/problem.h"

#include <stdlib.h>
#include <string.h>

#include "chaos/page.h"
#include "chaos/verdict.h"

/* X(NAME behind RFA_, status) */
#define CODES(X)                           \
    X(REQUEST_MALFORMED, 400)              \
    X(REQUEST_UNSUPPORTED_MEDIA_TYPE, 415) \
    X(REQUEST_METHOD_NOT_ALLOWED, 405)     \
    X(REQUEST_NOT_ACCEPTABLE, 406)         \
    X(REQUEST_PAYLOAD_TOO_LARGE, 413)      \
    X(REQUEST_RATE_LIMITED, 429)           \
    X(AUTH_INVALID_CREDENTIALS, 401)       \
    X(AUTH_TOKEN_EXPIRED, 401)             \
    X(AUTH_FORBIDDEN, 403)                 \
    X(AUTH_API_KEY_DISABLED, 403)          \
    X(JOB_VALIDATION_FAILED, 400)          \
    X(JOB_NOT_FOUND, 404)                  \
    X(JOB_CONFLICT, 409)                   \
    X(EXEC_QUEUE_FULL, 503)                \
    X(EXEC_TIMEOUT, 504)                   \
    X(EXEC_IDEMPOTENCY_CONFLICT, 409)      \
    X(EXEC_WORKER_UNAVAILABLE, 503)        \
    X(STORAGE_DB_ERROR, 503)               \
    X(STORAGE_UNAVAILABLE, 503)            \
    X(DEPENDENCY_TIMEOUT, 504)             \
    X(CONFIG_INVALID, 503)                 \
    X(INTERNAL, 500)                       \
    X(REQUEST_ROUTE_NOT_FOUND, 404)        \
    X(CLIENT_NOT_FOUND, 404)               \
    X(AUTH_API_KEY_NOT_FOUND, 404)         \
    X(AUTH_API_KEY_CONFLICT, 409)          \
    X(JOB_REPORT_NOT_FOUND, 404)           \
    X(WEBHOOK_NOT_FOUND, 404)              \
    X(WEBHOOK_CONFLICT, 409)

static struct code {
    const char *name;
    int status;
    char title[128]; /* as it was seen first */
} codes[] = {
#define X(name, status) {"RFA_" #name, status, ""},
    CODES(X)
#undef X
};
enum { CODE_COUNT = sizeof(codes) / sizeof(codes[0]) };

static struct code *code_of(const char *name)
{
    for (size_t i = 0; i < CODE_COUNT; i++)
        if (strcmp(codes[i].name, name) == 0)
            return &codes[i];
    return NULL;
}

void problem_code(const struct letter *answer, char room[PROBLEM_CODE_SIZE])
{
    const struct page *page = page_read(1, span_of(answer->body, answer->body_size));
    room[0] = 0;
    if (page)
        (void)page_text(page, page_root(page), "code", room, PROBLEM_CODE_SIZE);
}

/* urn:problem: and the code in lower case with hyphens. */
static void type_of(const struct code *code, char *room, size_t size)
{
    snprintf(room, size, "urn:problem:%s", code->name);
    for (char *c = room; *c; c++)
        *c = *c == '_' ? '-' : *c >= 'A' && *c <= 'Z' ? (char)(*c | 0x20) : *c;
}

static bool whole_seconds(const struct letter *answer)
{
    char text[32];
    return letter_field(answer, "retry-after", text, sizeof(text)) && strtol(text, NULL, 10) >= 1 &&
           text[strspn(text, "0123456789")] == 0;
}

static void judge_headers(const struct letter *answer, const char *code)
{
    char text[256];
    switch (answer->status) {
    case 401:
        VERDICT(HINTS,
                letter_field(answer, "www-authenticate", text, sizeof(text)) &&
                    strncmp(text, "Bearer", 6) == 0,
                "401 without WWW-Authenticate: Bearer");
        break;
    case 405:
        VERDICT(HINTS, letter_field(answer, "allow", text, sizeof(text)), "405 without Allow");
        break;
    case 429:
    case 503:
        VERDICT(HINTS, whole_seconds(answer), "%d %s without Retry-After in whole seconds", answer->status,
                code);
        break;
    default:
        break;
    }
}

static bool title_is_constant(struct code *code, const char *title)
{
    if (!code->title[0])
        snprintf(code->title, sizeof(code->title), "%.120s", title);
    return title[0] && strncmp(code->title, title, 120) == 0;
}

static bool limit_is_named(const struct page *page, const struct json_node *root)
{
    static const char *const limits[] = {"requests_per_minute", "anonymous", "quota", "max_active_jobs"};
    char limit[64];
    if (!page_text(page, root, "limit", limit, sizeof(limit)))
        return false;
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
        if (strcmp(limits[i], limit) == 0)
            return true;
    return false;
}

void problem_judge(const struct letter *answer, const char *request_id)
{
    char name[PROBLEM_CODE_SIZE] = "", text[512], type[128], media[128] = "";
    const struct page *page = page_read(1, span_of(answer->body, answer->body_size));
    const struct json_node *root = page ? page_root(page) : NULL;
    uint64_t status;
    (void)letter_field(answer, "content-type", media, sizeof(media));
    VERDICT(MEDIA, strncmp(media, "application/problem+json", 24) == 0, "%d is '%s'", answer->status, media);
    if (!VERDICT(PROBLEM, root && page_text(page, root, "code", name, sizeof(name)), "%d has no code: %.200s",
                 answer->status, answer->body))
        return;
    struct code *code = code_of(name);
    if (!VERDICT(PROBLEM, code && code->status == answer->status, "%s with %d", name, answer->status))
        return;
    type_of(code, type, sizeof(type));
    VERDICT(PROBLEM, page_text(page, root, "type", text, sizeof(text)) && strcmp(text, type) == 0,
            "%s has the type '%s'", name, text);
    VERDICT(PROBLEM, page_text(page, root, "title", text, sizeof(text)) && title_is_constant(code, text),
            "%s has the title '%s', and had '%s'", name, text, code->title);
    VERDICT(PROBLEM, page_number(page, root, "status", &status) && status == (uint64_t)answer->status,
            "%s: the member status is not %d", name, answer->status);
    VERDICT(PROBLEM, page_text(page, root, "detail", text, sizeof(text)) && text[0], "%s has no detail",
            name);
    VERDICT(PROBLEM,
            page_text(page, root, "instance", text, sizeof(text)) && strstr(text, request_id) != NULL,
            "%s has the instance '%s' for the request %s", name, text, request_id);
    VERDICT(PROBLEM, answer->status != 429 || limit_is_named(page, root), "429 doesn't name its limit");
    judge_headers(answer, name);
}
