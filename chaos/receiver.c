#define _GNU_SOURCE
#include "chaos/receiver.h"

#include <stdio.h>
#include <string.h>

#include "chaos/saga.h"

void receiver_begin(struct receiver *r, uint64_t seed)
{
    r->dice = dice_of(seed ^ 0x686f6f6b);
}

void receiver_cut_off(struct receiver *r)
{
    if (r->flights_count > 0)
        SOMETIMES(HOOK_LOST);
    r->flights_count = 0;
}

static uint64_t hash_of(const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    uint64_t h = 0xcbf29ce484222325ull;
    for (size_t i = 0; i < size; i++)
        h = (h ^ at[i]) * 0x100000001b3ull;
    return h;
}

static bool line_of(const char *headers, const char *name, char *room, size_t size)
{
    const char *at = headers ? strstr(headers, name) : NULL;
    if (!at)
        return false;
    at += strlen(name);
    snprintf(room, size, "%.*s", (int)strcspn(at, "\r\n"), at);
    return true;
}

static struct arrival *arrival_of(struct receiver *r, const char *id)
{
    for (uint32_t i = 0; i < r->arrivals_count; i++)
        if (strcmp(r->arrivals[i].id, id) == 0)
            return &r->arrivals[i];
    return NULL;
}

/* Each try that isn't one of the declared ones follows from something that lost its record: an end of the server, or one of what has been
 * done to it. */
static void judge_attempts(const struct arrival *a)
{
    if (a->attempts > 1 + saga->knobs.webhook_retries + saga->life - 1 + saga->strikes)
        saga_violate("webhook %s was tried %u times, and may be %u times (W5)", a->id, a->attempts,
                     1 + saga->knobs.webhook_retries);
}

/* O4 for repeats. */
static void judge_again(struct arrival *a, uint64_t hash)
{
    SOMETIMES(HOOKED_AGAIN);
    judge_attempts(a);
    if (a->life != saga->life)
        SOMETIMES(HOOK_OVER_RESTART);
    if (a->hash != hash)
        saga_violate("webhook %s came again with other bytes (O4)", a->id);
}

static bool read_event(const struct fetch_request *request, struct arrival *a)
{
    char body[512];
    const char *job, *state;
    snprintf(body, sizeof(body), "%.*s", (int)(request->body_size < 500 ? request->body_size : 500),
             (const char *)request->body);
    job = strstr(body, "\"job_id\":\"");
    state = strstr(body, "\"next_state\":\"");
    if (!job || !state)
        return false;
    snprintf(a->job, UUID_TEXT_SIZE, "%.36s", job + 10);
    for (a->state = 0; a->state < JOB_STATE_COUNT; a->state++)
        if (strncmp(state + 14, job_state_name(a->state), strlen(job_state_name(a->state))) == 0)
            return true;
    return false;
}

bool receiver_was_told(const struct receiver *r, const char *job, uint8_t hook, uint8_t state)
{
    for (uint32_t i = 0; i < r->arrivals_count; i++)
        if (r->arrivals[i].hook == hook && r->arrivals[i].state == state &&
            strcmp(r->arrivals[i].job, job) == 0)
            return true;
    return r->arrivals_count == RECEIVER_ARRIVALS;
}

/* O3: a later event of the same job isn't sent while an earlier one is neither taken nor given up; tries are bounded, so one that has
 * not been taken must have had them all, or the tries that a crash makes unknown. */
static void judge_order(const struct receiver *r, const struct arrival *new)
{
    for (uint32_t i = 0; i < r->arrivals_count; i++) {
        const struct arrival *a = &r->arrivals[i];
        if (a != new && a->hook == new->hook && !a->taken && strcmp(a->job, new->job) == 0)
            SOMETIMES(HOOK_GIVEN_UP);
        if (a != new && a->hook == new->hook && !a->taken && strcmp(a->job, new->job) == 0 &&
            a->attempts < 1 + saga->knobs.webhook_retries)
            saga_violate("webhook %s of job %s was sent before %s, which came earlier, had an end (O3)",
                         new->id, new->job, a->id);
    }
}

static struct arrival *note_arrival(struct receiver *r, const struct fetch_request *request)
{
    char id[UUID_TEXT_SIZE] = "";
    const char *numbered = memmem(request->body, request->body_size, "\"delivery_attempt\":", 19);
    uint64_t hash = hash_of(request->body,
                            numbered ? (size_t)(numbered - (const char *)request->body) : request->body_size);
    if (!line_of(request->headers, "webhook-id: ", id, sizeof(id)))
        saga_violate("a webhook without its id: %.120s", request->headers ? request->headers : "");
    struct arrival *a = arrival_of(r, id);
    if (a) {
        a->attempts++;
        judge_again(a, hash);
        return a;
    }
    if (r->arrivals_count == RECEIVER_ARRIVALS)
        return NULL;
    a = &r->arrivals[r->arrivals_count++];
    *a = (struct arrival){.hash = hash,
                          .attempts = 1,
                          .life = saga->life,
                          .hook = (uint8_t)(strstr(request->url, "/h")[2] - '0')};
    memcpy(a->id, id, sizeof(a->id));
    if (!read_event(request, a))
        saga_violate("webhook %s names no job, or no state of it", a->id);
    SOMETIMES(HOOKED);
    judge_order(r, a);
    return a;
}

static uint64_t time_of(struct receiver *r)
{
    return saga->now +
           (dice_below(&r->dice, 4) ? 1 + dice_below(&r->dice, 50) : dice_below(&r->dice, 3000)) * NS_PER_MS;
}

/* The end of its fetch: an answer, or none by its time. */
static void choose_end(struct receiver *r, struct arriving *f, const struct fetch_request *request)
{
    static const int bad[] = {500, 503, 404, 301, 429};
    f->at = time_of(r);
    f->answer.status = 200;
    f->answer.turn = saga->now;
    if (saga_strikes(FAULT_RECEIVERS, &r->dice) ||
        (saga_on(FAULT_RECEIVERS) && dice_below(&r->dice, 4) == 0)) {
        SOMETIMES(HOOK_FAILED);
        f->answer.status = bad[dice_below(&r->dice, 5)];
    }
    if (saga_on(FAULT_RECEIVERS) && dice_below(&r->dice, 6) == 0) {
        SOMETIMES(HOOK_SILENT);
        f->answer.status = 0;
        f->answer.error = ERR_TIMEOUT;
        snprintf(f->answer.why, sizeof(f->answer.why), "nobody answered");
    }
    if (f->at > saga->now + request->time_ns) {
        f->at = saga->now + request->time_ns;
        f->answer.status = 0;
        f->answer.error = ERR_TIMEOUT;
    }
}

void receiver_take(uint64_t ref, actor_pid from, const struct fetch_request *request)
{
    struct receiver *r = &saga->receiver;
    struct arrival *a = note_arrival(r, request);
    if (saga->options.loud)
        fprintf(stderr, "webhook %s %.*s\n", request->url,
                (int)(request->body_size < 400 ? request->body_size : 400), (const char *)request->body);
    if (r->flights_count == RECEIVER_FLIGHTS)
        return; /* whoever asked takes it for lost after a while */
    struct arriving *f = &r->flights[r->flights_count++];
    *f = (struct arriving){.from = from, .answer = {.ref = ref}};
    f->arrival = a ? (uint32_t)(a - r->arrivals) : RECEIVER_ARRIVALS;
    choose_end(r, f, request);
    if (a && f->answer.status / 100 == 2)
        a->taken = true;
    saga_mix(request->url, strlen(request->url));
}

bool receiver_step(struct receiver *r, struct world *w)
{
    bool any = false;
    for (uint32_t i = 0; i < r->flights_count;) {
        struct arriving *f = &r->flights[i];
        if (f->at > saga->now) {
            i++;
            continue;
        }
        world_fetched(w, f->from, &f->answer);
        *f = r->flights[--r->flights_count];
        any = true;
    }
    return any;
}

uint64_t receiver_next(const struct receiver *r)
{
    uint64_t next = UINT64_MAX;
    for (uint32_t i = 0; i < r->flights_count; i++)
        if (r->flights[i].at < next)
            next = r->flights[i].at;
    return next;
}
