#define _GNU_SOURCE
#include "chaos/caller.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chaos/brief.h"
#include "chaos/page.h"
#include "chaos/problem.h"
#include "chaos/verdict.h"

#define MS        UINT64_C(1000000)
#define S         (1000 * MS)
#define ANSWER_NS (30 * S) /* an answer that takes longer doesn't come */
#define AWAY_NS   (50 * MS)

enum { ERRORS_COMMON = 9, ENTRIES_MAX = 8 };

/* What each operation may answer, success first; the common ones may come from everywhere. */
static const int common[ERRORS_COMMON] = {404, 405, 406, 411, 413, 415, 429, 503, 0};
static const struct {
    int success;
    int errors[5]; /* beside the common ones */
} allowed[OPERATION_COUNT] = {
    [TIME_CREATE_CLIENT] = {201, {400}},
    [TIME_CREATE_KEY] = {201, {400, 401, 403, 409}},
    [TIME_RENEW_KEY] = {200, {400, 401, 403, 409}},
    [TIME_REVOKE_KEY] = {200, {400, 401, 403, 409}},
    [TIME_SUBMIT] = {202, {400, 401, 403, 409}},
    [TIME_GET] = {200, {401, 403}},
    [TIME_REPORT] = {200, {401, 403}},
    [TIME_EVENTS] = {200, {400, 401, 403}},
    [TIME_CANCEL] = {200, {400, 401, 403, 409}},
    [TIME_RETRY] = {200, {400, 401, 403, 409}},
    [TIME_LIST] = {200, {400, 401, 403}},
    [TIME_REGISTER] = {201, {400, 401, 403, 409}},
    [TIME_UNREGISTER] = {200, {401, 403}},
    [TIME_OTHER] = {200, {400, 401, 403, 409}},
};

static uint32_t callers;
static uint64_t requests;

/* ---- what makes this run another one than the last ---- */

static uint64_t began_ms(void)
{
    static uint64_t began;
    if (!began) {
        struct timespec time;
        clock_gettime(CLOCK_REALTIME, &time);
        began = (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
    }
    return began;
}

void caller_unique(char *room, size_t size, const char *what)
{
    static uint64_t count;
    snprintf(room, size, "%s-%llu-%llx-%llu", what, (unsigned long long)brief.seed,
             (unsigned long long)began_ms(), (unsigned long long)++count);
}

/* ---- what is true of every answer ---- */

static bool among(const int *list, size_t count, int status)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] && list[i] == status)
            return true;
    return false;
}

static void judge_answer(const struct call *call, const struct letter *answer, const char *sent_id)
{
    char id[256] = "", media[128] = "";
    bool ok = answer->status == allowed[call->operation].success;
    VERDICT(STATUS,
            (ok || among(allowed[call->operation].errors, 5, answer->status) ||
             among(common, ERRORS_COMMON, answer->status)) &&
                answer->interim == 0,
            "%s %s: %d, %u of 1xx before it; %.200s", call->method, call->path, answer->status,
            answer->interim, answer->body);
    (void)letter_field(answer, "x-request-id", id, sizeof(id));
    VERDICT(ID, id[0] && (!sent_id || strcmp(id, sent_id) == 0), "%s %s: sent '%s', answered '%s'",
            call->method, call->path, sent_id ? sent_id : "", id);
    if (answer->status >= 400) {
        problem_judge(answer, id);
        return;
    }
    (void)letter_field(answer, "content-type", media, sizeof(media));
    VERDICT(MEDIA, strncmp(media, "application/json", 16) == 0, "%s %s: %d is '%s'", call->method, call->path,
            answer->status, media);
}

/* ---- a request ---- */

/* Allocated; the caller frees it. */
static struct span request_text(const struct caller *caller, const struct call *call, const char *id)
{
    const char *authorization = call->authorization ? call->authorization : caller->bearer;
    char *text = malloc(4096 + call->body.size);
    if (!text)
        exit(2);
    int size = snprintf(text, 4096, "%s %s HTTP/1.1\r\nHost: %s\r\n%s%s%s%s%s%s%s", call->method, call->path,
                        brief.host, authorization[0] ? "Authorization: " : "", authorization,
                        authorization[0] ? "\r\n" : "", id ? "X-Request-Id: " : "", id ? id : "",
                        id ? "\r\n" : "", call->headers ? call->headers : "");
    if (call->body.bytes)
        size += snprintf(text + size, 4096 - (size_t)size, "Content-Type: %s\r\nContent-Length: %u\r\n",
                         call->media ? call->media : "application/json", call->body.size);
    size += snprintf(text + size, 4096 - (size_t)size, "\r\n");
    if (call->body.bytes)
        memcpy(text + size, call->body.bytes, call->body.size);
    return span_of(text, (size_t)size + call->body.size);
}

static enum exchanged exchange(struct caller *caller, const struct call *call, struct letter *ret_answer)
{
    char own[96];
    const char *id = call->request_id;
    uint64_t ns;
    if (!id && requests++ % 2) {
        caller_unique(own, sizeof(own), "t");
        id = own;
    }
    struct span text = request_text(caller, call, id);
    enum exchanged exchanged =
        channel_exchange(&caller->channel, text, ret_answer, &ns, strand_now() + ANSWER_NS);
    free((void *)(uintptr_t)text.bytes);
    if (exchanged == EXCHANGE_ANSWERED) {
        tally_time(call->operation, ns);
        judge_answer(call, ret_answer, id);
    }
    return exchanged;
}

/* How long a 429 or 503 asks to wait; 0: it is no such answer. */
static uint64_t waiting_ns(const struct letter *answer)
{
    char text[32];
    if (answer->status != 429 && answer->status != 503)
        return 0;
    long seconds = letter_field(answer, "retry-after", text, sizeof(text)) ? strtol(text, NULL, 10) : 1;
    return (uint64_t)(seconds < 1 ? 1 : seconds > 60 ? 60 : seconds) * S;
}

/* ---- a limit's queue: one of its strands asks again, the others wait behind it, in their order ---- */

struct turn {
    bool holds; /* it is this strand that asks again */
    uint64_t until;
};

static void queue_up(struct caller *caller, struct turn *turn)
{
    if (caller->limited)
        (void)strand_wait(&caller->queue, UINT64_MAX);
    caller->limited = true;
    turn->holds = true;
    turn->until = strand_now() + brief.patience_s * S;
}

static void hand_on(struct caller *caller, struct turn *turn)
{
    if (!turn->holds)
        return;
    turn->holds = false;
    if (caller->queue.first)
        strand_wake_one(&caller->queue);
    else
        caller->limited = false;
}

/* False: it is the answer. Else it was waited for, and is freed. */
static bool wait_for(struct caller *caller, struct turn *turn, const struct call *call, struct letter *answer)
{
    uint64_t wait = call->as_it_is ? 0 : waiting_ns(answer);
    if (!wait || strand_now() + wait > turn->until)
        return false;
    tally(answer->status == 429 ? COUNT_LIMITED : COUNT_BUSY);
    if (answer->status == 429 && !turn->holds)
        queue_up(caller, turn);
    letter_free(answer);
    strand_sleep(wait);
    return true;
}

/* False: the server has gone away, and that is not expected, or was for too long. */
static bool wait_for_server(const struct turn *turn)
{
    if (!brief.restarts || strand_now() > turn->until)
        return false;
    tally(COUNT_AWAY);
    strand_sleep(AWAY_NS);
    return true;
}

int caller_call(struct caller *caller, const struct call *call, struct letter *ret_answer)
{
    struct turn turn = {.until = strand_now() + brief.patience_s * S};
    enum exchanged exchanged;
    if (caller->limited && !call->as_it_is)
        queue_up(caller, &turn);
    do
        exchanged = exchange(caller, call, ret_answer);
    while (exchanged == EXCHANGE_ANSWERED ? wait_for(caller, &turn, call, ret_answer)
                                          : wait_for_server(&turn));
    hand_on(caller, &turn);
    VERDICT(CAME, exchanged == EXCHANGE_ANSWERED, "%s %s: %s", call->method, call->path,
            exchanged == EXCHANGE_UNSENT ? "there is no connection" : "it was sent, but not answered");
    if (exchanged == EXCHANGE_ANSWERED)
        return ret_answer->status;
    *ret_answer = (struct letter){0};
    return 0;
}

int caller_status(struct caller *caller, const struct call *call)
{
    struct letter answer;
    int status = caller_call(caller, call, &answer);
    letter_free(&answer);
    return status;
}

/* ---- clients ---- */

void caller_init(struct caller *caller)
{
    struct in_addr source = {0};
    *caller = (struct caller){.number = ++callers};
    if (brief.loopback) /* what is limited by address is each caller's own, and not that of the last run's */
        source.s_addr =
            htonl(UINT32_C(0x7f400000) + ((uint32_t)(began_ms() / 100) * 512 + caller->number) % (1 << 22));
    channel_init(&caller->channel, source, &brief.server);
}

static bool create_client(struct caller *caller)
{
    struct letter answer;
    char key[120], header[160];
    caller_unique(key, sizeof(key), "client");
    snprintf(header, sizeof(header), "Idempotency-Key: %s\r\n", key);
    const struct call call = {
        .operation = TIME_CREATE_CLIENT, .method = "POST", .path = "/v1/clients", .headers = header};
    int status = caller_call(caller, &call, &answer);
    const struct page *page = status == 201 ? page_read(0, answer_body(&answer)) : NULL;
    struct uuid id;
    bool good =
        page && page_members(page_root(page)) == 1 && page_uuid(page, page_root(page), "client_id", &id);
    VERDICT(CLIENT, good, "POST /v1/clients: %d %.200s", status, answer.body ? answer.body : "");
    if (good)
        uuid_format(&id, caller->id);
    letter_free(&answer);
    return good;
}

/* *ret_lost: there is a key, which went with the server's answer. */
static bool create_key(struct caller *caller, bool *ret_lost)
{
    struct letter answer;
    char path[128], secret[160] = "";
    uint64_t created, expires;
    struct uuid id;
    snprintf(path, sizeof(path), "/v1/clients/%s/keys", caller->id);
    const struct call call = {.operation = TIME_CREATE_KEY, .method = "POST", .path = path};
    int status = caller_call(caller, &call, &answer);
    const struct page *page = status == 201 ? page_read(0, answer_body(&answer)) : NULL;
    const struct json_node *root = page ? page_root(page) : NULL;
    bool good = page && page_text(page, root, "api_key", secret, sizeof(secret)) && secret[0] &&
                page_uuid(page, root, "key_id", &id) && page_time(page, root, "created_at", &created) &&
                page_time(page, root, "expires_at", &expires) && expires > created;
    *ret_lost = status == 401 && brief.restarts;
    VERDICT(CLIENT, good || *ret_lost, "POST %s: %d", path, status);
    if (good) {
        uuid_format(&id, caller->key_id);
        snprintf(caller->bearer, sizeof(caller->bearer), "Bearer %s", secret);
    }
    letter_free(&answer);
    return good;
}

bool caller_enter(struct caller *caller)
{
    bool lost = true, entered = false;
    caller_init(caller);
    for (int i = 0; i < ENTRIES_MAX && lost; i++) {
        lost = false;
        entered = create_client(caller) && create_key(caller, &lost);
    }
    return entered;
}

void caller_leave(struct caller *caller)
{
    channel_close(&caller->channel);
}
