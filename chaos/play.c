#define _GNU_SOURCE
#include "chaos/play.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "chaos/brief.h"
#include "chaos/flood.h"
#include "chaos/page.h"
#include "chaos/problem.h"
#include "chaos/stage.h"
#include "chaos/verdict.h"

#define MS UINT64_C(1000000)

enum { CROWD_MAX = 50, RACERS = 6, CANCELERS = 20, RETRIERS = 10, SKEW_TRIES = 50 };

/* ---- many at once ---- */

struct crowd {
    struct caller *caller;
    const struct call *call;
    uint32_t next, left, count;
    struct waiting done;
    struct letter answers[CROWD_MAX];
    int statuses[CROWD_MAX];
};

static void member(void *arg)
{
    struct crowd *crowd = arg;
    uint32_t own = crowd->next++;
    crowd->statuses[own] = caller_call(crowd->caller, crowd->call, &crowd->answers[own]);
    if (--crowd->left == 0)
        strand_wake_all(&crowd->done);
}

/* The same request so many times, all before the first answer. Allocated, for crowd_free. */
static struct crowd *crowd_ask(struct caller *caller, const struct call *call, uint32_t count)
{
    struct crowd *crowd = calloc(1, sizeof(*crowd));
    if (!crowd)
        exit(2);
    crowd->caller = caller, crowd->call = call;
    for (; crowd->count < count && strand_start(member, crowd); crowd->count++)
        crowd->left++;
    while (crowd->left && strand_wait(&crowd->done, UINT64_MAX))
        ;
    return crowd;
}

static void crowd_free(struct crowd *crowd)
{
    for (uint32_t i = 0; i < crowd->count; i++)
        letter_free(&crowd->answers[i]);
    free(crowd);
}

static bool code_is(const struct letter *answer, const char *code)
{
    char found[PROBLEM_CODE_SIZE];
    problem_code(answer, found);
    return strcmp(found, code) == 0;
}

/* ---- jobs of the stage ---- */

struct errand *play_errand(struct stage *stage, int kind, struct dice *dice)
{
    struct errand *e = calloc(1, sizeof(*e));
    if (!e)
        exit(2);
    e->caller = &stage->client, e->stranger = &stage->other;
    e->asked = kind, e->kind = -1;
    e->dice = dice_of(dice_draw(dice));
    if (brief.restarts)
        caller_unique(e->key, sizeof(e->key), "play");
    return e;
}

void play_schedule(struct errand *e, uint64_t ahead_ms)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    e->type = TYPE_DEFERRED;
    e->execution_ms = (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000 + ahead_ms;
}

static void finish_and_judge(struct errand *e)
{
    if (errand_await(e, false))
        errand_judge(e);
    errand_end(e);
}

/* ---- keys ---- */

static const char *const key_paths[] = {"", "/renew", "/revoke"};

static int key_call(struct caller *caller, const char *id, const char *authorization, const char *behind,
                    const char *body, struct letter *ret_answer)
{
    static const enum time operations[] = {TIME_CREATE_KEY, TIME_RENEW_KEY, TIME_REVOKE_KEY};
    char path[128];
    size_t which = 0;
    while (which < 2 && strcmp(behind, key_paths[which]) != 0)
        which++;
    snprintf(path, sizeof(path), "/v1/clients/%s/keys%s", id, behind);
    const struct call call = {.operation = operations[which],
                              .method = "POST",
                              .path = path,
                              .authorization = authorization,
                              .body = body ? span_text(body) : (struct span){0}};
    return caller_call(caller, &call, ret_answer);
}

/* Reads a key that was given out into the caller; false: it is none. */
static bool read_key(struct caller *caller, const struct letter *answer)
{
    const struct page *page = page_read(0, answer_body(answer));
    const struct json_node *root = page ? page_root(page) : NULL;
    char secret[160];
    if (!page || !page_text(page, root, "api_key", secret, sizeof(secret)) ||
        !page_text(page, root, "key_id", caller->key_id, sizeof(caller->key_id)))
        return false;
    snprintf(caller->bearer, sizeof(caller->bearer), "Bearer %s", secret);
    return page_members(root) == 4;
}

static int list_with(struct caller *caller, const char *authorization)
{
    const struct call call = {
        .operation = TIME_LIST, .method = "GET", .path = "/v1/jobs?limit=1", .authorization = authorization};
    return caller_status(caller, &call);
}

/* Once more without rotation: the same key, and no secret. */
static void repeat_key(struct caller *caller)
{
    struct letter answer;
    char id[40] = "";
    int status = key_call(caller, caller->id, NULL, "", NULL, &answer);
    const struct page *page = status == 201 ? page_read(0, answer_body(&answer)) : NULL;
    const struct json_node *root = page ? page_root(page) : NULL;
    VERDICT_CASE("JOB-097 a key is created again",
                 page_text(page, root, "key_id", id, sizeof(id)) && strcmp(id, caller->key_id) == 0 &&
                     page_is(page_member(page, root, "api_key"), JSON_NULL),
                 "%d %.200s", status, answer.body ? answer.body : "");
    letter_free(&answer);
}

/* A new key by `behind`; the old one is over at once. */
static void replace_key(struct caller *caller, const char *name, const char *behind, const char *body,
                        int success)
{
    struct letter answer;
    char old[sizeof(caller->bearer)], old_id[40];
    memcpy(old, caller->bearer, sizeof(old));
    memcpy(old_id, caller->key_id, sizeof(old_id));
    int status = key_call(caller, caller->id, NULL, behind, body, &answer);
    bool given = status == success && read_key(caller, &answer) && strcmp(old_id, caller->key_id) != 0;
    VERDICT_CASE(name, given, "%d", status);
    letter_free(&answer);
    VERDICT_CASE(name, list_with(caller, NULL) == 200, "the new key is not taken");
    VERDICT_CASE(name, list_with(caller, old) == 403, "the old key is not refused with 403");
}

static void play_keys(struct stage *stage)
{
    struct caller caller;
    struct letter answer;
    char body[80];
    (void)stage;
    if (!caller_enter(&caller))
        return;
    repeat_key(&caller);
    int status = key_call(&caller, caller.id, "", "", NULL, &answer);
    VERDICT_CASE("JOB-111 a second key without the first", status == 401, "%d", status);
    letter_free(&answer);
    replace_key(&caller, "JOB-097 JOB-025 a key is rotated", "", "{\"rotate\":true}", 201);
    replace_key(&caller, "JOB-091 JOB-118 a key is renewed", "/renew", "{}", 200);
    snprintf(body, sizeof(body), "{\"key_id\":\"%s\"}", caller.key_id);
    status = key_call(&caller, caller.id, NULL, "/revoke", body, &answer);
    VERDICT_CASE("JOB-092 a key is revoked", status == 200 && strcmp(answer.body, "{\"revoked\":true}") == 0,
                 "%d", status);
    letter_free(&answer);
    VERDICT_CASE("JOB-297 a revoked key", list_with(&caller, NULL) == 403, "it is taken");
    status = key_call(&caller, caller.id, NULL, "/renew", "{}", &answer);
    VERDICT_CASE("JOB-298 a revoked key renews",
                 status == 403 && code_is(&answer, "RFA_AUTH_API_KEY_DISABLED"), "%d", status);
    letter_free(&answer);
    status = key_call(&caller, caller.id, NULL, "/revoke", body, &answer);
    VERDICT_CASE("JOB-384 a revoked key revokes itself", status == 403, "%d", status);
    letter_free(&answer);
    caller_leave(&caller);
}

static void play_key_race(struct stage *stage)
{
    struct caller caller;
    char path[128];
    uint32_t winners = 0, losers = 0;
    (void)stage;
    if (!caller_enter(&caller))
        return;
    snprintf(path, sizeof(path), "/v1/clients/%s/keys", caller.id);
    const struct call call = {
        .operation = TIME_CREATE_KEY, .method = "POST", .path = path, .body = span_text("{\"rotate\":true}")};
    struct crowd *crowd = crowd_ask(&caller, &call, RACERS);
    for (uint32_t i = 0; i < crowd->count; i++) {
        const struct letter *answer = &crowd->answers[i];
        winners += crowd->statuses[i] == 201 && read_key(&caller, answer);
        /* Who comes after the winner has a key that is over. */
        losers += (crowd->statuses[i] == 409 && code_is(answer, "RFA_AUTH_API_KEY_CONFLICT")) ||
                  (crowd->statuses[i] == 403 && code_is(answer, "RFA_AUTH_API_KEY_DISABLED"));
    }
    VERDICT_CASE("JOB-114 JOB-365 simultaneous rotations", winners == 1 && winners + losers == crowd->count,
                 "%u won, %u lost, of %u", winners, losers, crowd->count);
    VERDICT_CASE("JOB-114 the winner's key", list_with(&caller, NULL) == 200, "it is not taken");
    crowd_free(crowd);
    caller_leave(&caller);
}

/* ---- idempotency ---- */

static void play_client_key(struct stage *stage)
{
    struct caller guest;
    char key[100], header[140], first[64] = "";
    (void)stage;
    caller_init(&guest);
    caller_unique(key, sizeof(key), "client");
    snprintf(header, sizeof(header), "Idempotency-Key: %s\r\n", key);
    const struct call call = {.operation = TIME_CREATE_CLIENT,
                              .method = "POST",
                              .path = "/v1/clients",
                              .headers = header,
                              .body = span_text("{}")};
    for (int i = 0; i < 2; i++) {
        struct letter answer;
        char id[64] = "";
        int status = caller_call(&guest, &call, &answer);
        const struct page *page = page_read(0, answer_body(&answer));
        if (page)
            (void)page_text(page, page_root(page), "client_id", id, sizeof(id));
        if (!i)
            memcpy(first, id, sizeof(first));
        VERDICT_CASE("JOB-101 a client is created again", status == 201 && id[0] && strcmp(id, first) == 0,
                     "%d %s, and before %s", status, id, first);
        letter_free(&answer);
    }
    caller_leave(&guest);
}

/* All of the crowd were answered 202, with one job. */
static bool one_job(struct crowd *crowd)
{
    struct uuid id, first = {0};
    bool good = crowd->count > 0;
    for (uint32_t i = 0; i < crowd->count && good; i++) {
        const struct page *page =
            crowd->statuses[i] == 202 ? page_read(0, answer_body(&crowd->answers[i])) : NULL;
        good = page && page_uuid(page, page_root(page), "job_id", &id) && (i == 0 || uuid_equal(&id, &first));
        if (i == 0 && good)
            first = id;
    }
    return good;
}

static void play_simultaneous(struct stage *stage, struct dice *dice)
{
    struct errand *e = play_errand(stage, KIND_DUPLICATE_SUBMIT_SAME_KEY, dice);
    char body[256], key[100];
    caller_unique(key, sizeof(key), "job");
    snprintf(body, sizeof(body),
             "{\"type\":\"EXECUTE\",\"work_kind\":\"DUPLICATE_SUBMIT_SAME_KEY\",\"idempotency_key\":\"%s\"}",
             key);
    const struct call call = {
        .operation = TIME_SUBMIT, .method = "POST", .path = "/v1/jobs", .body = span_text(body)};
    struct crowd *crowd = crowd_ask(&stage->client, &call, CROWD_MAX);
    bool one = one_job(crowd);
    VERDICT_CASE("JOB-323 50 submits with one key at once", one, "%u answers name more than one job",
                 crowd->count);
    if (one && errand_adopt(e, &crowd->answers[0]))
        finish_and_judge(e);
    crowd_free(crowd);
    free(e);
}

/* Without a key, a request id and a body that come again are a retransmission (AMB-J-30). */
static void play_retransmission(struct stage *stage, struct dice *dice)
{
    static const char body[] = "{\"type\":\"EXECUTE\",\"work_kind\":\"SUCCESS_FAST\"}";
    struct errand *e = play_errand(stage, KIND_SUCCESS_FAST, dice);
    char id[100];
    caller_unique(id, sizeof(id), "once");
    const struct call call = {.operation = TIME_SUBMIT,
                              .method = "POST",
                              .path = "/v1/jobs",
                              .request_id = id,
                              .body = span_text(body)};
    struct crowd *crowd = crowd_ask(&stage->client, &call, 3);
    bool one = one_job(crowd);
    VERDICT_CASE("JOB-093 a request that is sent again", one, "%s names more than one job", id);
    if (one && errand_adopt(e, &crowd->answers[0]))
        finish_and_judge(e);
    crowd_free(crowd);
    free(e);
}

/* ---- storms ---- */

static void play_cancel_storm(struct stage *stage, struct dice *dice)
{
    struct errand *e = play_errand(stage, KIND_CANCEL_DURING_RUN, dice);
    char path[128];
    uint32_t good = 0;
    if (errand_submit(e)) {
        snprintf(path, sizeof(path), "/v1/jobs/%s/cancel", e->id);
        const struct call call = {.operation = TIME_CANCEL, .method = "POST", .path = path};
        struct crowd *crowd = crowd_ask(&stage->client, &call, CANCELERS);
        for (uint32_t i = 0; i < crowd->count; i++)
            good += crowd->statuses[i] == 200 ||
                    (crowd->statuses[i] == 409 && code_is(&crowd->answers[i], "RFA_JOB_CONFLICT"));
        VERDICT_CASE("JOB-325 20 cancels at once", good == crowd->count, "%u of %u were answered 200 or 409",
                     good, crowd->count);
        crowd_free(crowd);
        finish_and_judge(e); /* with one event, whatever came first */
    }
    free(e);
}

static void play_retry_storm(struct stage *stage, struct dice *dice)
{
    struct errand *e = play_errand(stage, KIND_FAIL_IMMEDIATE, dice);
    char path[128];
    uint32_t good = 0;
    if (errand_submit(e) && errand_await(e, false)) {
        snprintf(path, sizeof(path), "/v1/jobs/%s/retry", e->id);
        const struct call call = {.operation = TIME_RETRY, .method = "POST", .path = path};
        struct crowd *crowd = crowd_ask(&stage->client, &call, RETRIERS);
        for (uint32_t i = 0; i < crowd->count; i++)
            good += crowd->statuses[i] == 200 ||
                    (crowd->statuses[i] == 409 && code_is(&crowd->answers[i], "RFA_JOB_CONFLICT"));
        VERDICT_CASE("JOB-096 JOB-325 10 retries at once", good == crowd->count,
                     "%u of %u were answered 200 or 409", good, crowd->count);
        crowd_free(crowd);
        if (errand_look(e))
            finish_and_judge(e); /* one job.retried for each attempt */
    }
    free(e);
}

/* ---- schedules ---- */

/* Half a second ago is within the skew of a second: it is taken, and due at once, if the machine gets it to the store in time. */
static void play_skew(struct stage *stage, struct dice *dice)
{
    struct errand *e = play_errand(stage, KIND_SCHEDULED_ON_TIME, dice);
    bool good = false;
    e->near = e->brink = e->late = true;
    for (uint32_t i = 0; e->late && i < SKEW_TRIES; i++) {
        play_schedule(e, 0);
        e->execution_ms -= 500;
        good = errand_submit(e);
    }
    VERDICT_CASE("JOB-267 half a second ago", good, "it was refused");
    if (good)
        finish_and_judge(e);
    free(e);
}

/* ---- webhooks ---- */

static int register_hook(struct caller *caller, const char *url, const char *events, const char *headers,
                         char id[64])
{
    struct letter answer;
    char body[400];
    snprintf(body, sizeof(body), "{\"url\":\"%s\",\"events\":%s}", url, events);
    const struct call call = {.operation = TIME_REGISTER,
                              .method = "POST",
                              .path = "/v1/webhooks",
                              .headers = headers,
                              .body = span_text(body)};
    int status = caller_call(caller, &call, &answer);
    const struct page *page = page_read(0, answer_body(&answer));
    id[0] = 0;
    if (page)
        (void)page_text(page, page_root(page), status == 201 ? "webhook_id" : "code", id, 64);
    letter_free(&answer);
    return status;
}

static int unregister_hook(struct caller *caller, const char *id, bool *ret_deleted)
{
    struct letter answer;
    char path[128];
    snprintf(path, sizeof(path), "/v1/webhooks/%s", id);
    const struct call call = {.operation = TIME_UNREGISTER, .method = "DELETE", .path = path};
    int status = caller_call(caller, &call, &answer);
    *ret_deleted = answer.body && strcmp(answer.body, "{\"deleted\":true}") == 0;
    letter_free(&answer);
    return status;
}

static void play_hooks(struct stage *stage, struct dice *dice)
{
    static const char finals[] = "[\"job.succeeded\",\"job.failed\"]";
    char id[64], again[64], key[100], header[140];
    bool deleted;
    struct inbox *inbox = inbox_make(MANNER_GOOD, 1u << EVENT_SUCCEEDED | 1u << EVENT_FAILED);
    caller_unique(key, sizeof(key), "hook");
    snprintf(header, sizeof(header), "Idempotency-Key: %s\r\n", key);
    int status = register_hook(&stage->client, inbox->url, finals, header, id);
    VERDICT_CASE("JOB-184 a webhook is registered", status == 201 && id[0], "%d", status);
    status = register_hook(&stage->client, inbox->url, finals, header, again);
    VERDICT_CASE("JOB-101 and again with its key", status == 201 && strcmp(id, again) == 0, "%d %s", status,
                 again);
    status = register_hook(&stage->client, inbox->url, finals, NULL, again);
    VERDICT_CASE("JOB-189 JOB-368 and again without",
                 status == 409 && strcmp(again, "RFA_WEBHOOK_CONFLICT") == 0, "%d %s", status, again);
    status = register_hook(&stage->client, inbox->url, "[\"job.created\"]", header, again);
    VERDICT_CASE("JOB-189 its key with another body",
                 status == 409 && strcmp(again, "RFA_EXEC_IDEMPOTENCY_CONFLICT") == 0, "%d %s", status,
                 again);
    struct errand *e = play_errand(stage, KIND_SUCCESS_FAST, dice);
    e->subscribed = inbox;
    if (errand_submit(e))
        finish_and_judge(e);
    status = unregister_hook(&stage->other, id, &deleted);
    VERDICT_CASE("JOB-196 another client's webhook", status == 403 && !deleted, "%d", status);
    status = unregister_hook(&stage->client, id, &deleted);
    VERDICT_CASE("JOB-193 it is unregistered", status == 200 && deleted, "%d", status);
    inbox->closed = true;
    status = unregister_hook(&stage->client, id, &deleted);
    VERDICT_CASE("JOB-197 and once more", status == 404, "%d", status);
    free(e);
    e = play_errand(stage, KIND_SUCCESS_FAST, dice); /* nothing comes of it: the inbox would say so */
    if (errand_submit(e))
        finish_and_judge(e);
    free(e);
}

/* A port that nobody listens at, until the job has ended. */
static int closed_port(struct sockaddr_in *ret)
{
    socklen_t size = sizeof(*ret);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    *ret = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = brief.receiver.sin_addr};
    if (fd < 0 || bind(fd, (struct sockaddr *)(void *)ret, size) != 0 ||
        getsockname(fd, (struct sockaddr *)(void *)ret, &size) != 0)
        exit(2);
    return fd;
}

static void play_unreachable(struct stage *stage, struct dice *dice)
{
    struct sockaddr_in address;
    struct errand *e = play_errand(stage, KIND_SUCCESS_FAST, dice);
    int fd = closed_port(&address);
    struct inbox *inbox = inbox_make(MANNER_GOOD, EVENTS_ALL);
    char host[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &address.sin_addr, host, sizeof(host));
    snprintf(inbox->url, sizeof(inbox->url), "http://%s:%u/in/%u", host, ntohs(address.sin_port),
             inbox->number);
    inbox->late = true;
    e->callback = inbox;
    bool ended = errand_submit(e) && errand_await(e, false);
    VERDICT_CASE("JOB-326 a receiver that is not there", ended && e->state == STATE_SUCCEEDED,
                 "the job is %s", state_name(e->state));
    inbox_listen_at(fd); /* what was not given up comes now */
    if (ended) {
        e->callback = NULL; /* nobody knows what was given up */
        VERDICT_CASE("JOB-326 when it is there", lane_await(lane_of(&e->uuid, inbox->number)),
                     "nothing comes");
        errand_judge(e);
        lane_drop(&e->uuid, inbox->number);
    }
    errand_end(e);
    free(e);
}

void play_all(struct stage *stage, struct dice *dice)
{
    play_keys(stage);
    play_key_race(stage);
    play_client_key(stage);
    play_simultaneous(stage, dice);
    play_retransmission(stage, dice);
    play_cancel_storm(stage, dice);
    play_retry_storm(stage, dice);
    play_skew(stage, dice);
    if (!brief.no_webhooks) {
        play_hooks(stage, dice);
        play_unreachable(stage, dice);
    }
    flood_all(stage, dice);
}
