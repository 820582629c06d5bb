#include "tests/actors/hooks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "actors/relay.h"
#include "runtime/supervisor.h"
#include "store/client.h"
#include "store/counter.h"
#include "store/job_change.h"
#include "store/job_submit.h"

enum { ASKED = 1, REPLY, LATE };

struct hooks_call hooks_calls[HOOKS_CALLS_MAX];
uint32_t hooks_count;
bool hooks_fetch;
static hooks_receiver *receiver_now;
static actor_pid relays[OUTBOX_PARTITIONS], senders[DELIVERY_PARTITIONS];

/* ---- the receiver ---- */

struct asked {
    uint64_t number, ref, deadline, time_ns, turn;
    actor_pid from;
    bool (*wanted)(const void *about);
    uint8_t about[FETCH_ABOUT_SIZE];
};

static struct asked asked[HOOKS_CALLS_MAX];

/* As fetch: so many at a time, and so many of them to one host; the others wait, up to their deadline. Their time runs from then. */
enum call_state { CALL_WAITS = 1, CALL_RUNS, CALL_ENDED };
static uint8_t states[HOOKS_CALLS_MAX];
static uint32_t begun; /* those before it do not wait any more */

static void copy_member(const char *body, const char *name, char *room, size_t size)
{
    char key[48];
    snprintf(key, sizeof(key), "\"%s\":\"", name);
    const char *at = strstr(body, key);
    room[0] = 0;
    if (at)
        snprintf(room, size, "%.*s", (int)strcspn(at + strlen(key), "\""), at + strlen(key));
}

static void note_call(const struct fetch_request *q, uint64_t deadline)
{
    struct hooks_call *c = &hooks_calls[hooks_count];
    const char *attempt;
    snprintf(c->url, sizeof(c->url), "%s", q->url);
    snprintf(c->headers, sizeof(c->headers), "%s", q->headers);
    snprintf(c->body, sizeof(c->body), "%.*s", (int)q->body_size, (const char *)q->body);
    copy_member(c->body, "event_name", c->event, sizeof(c->event));
    copy_member(c->body, "job_id", c->job, sizeof(c->job));
    copy_member(c->body, "delivery_id", c->delivery, sizeof(c->delivery));
    attempt = strstr(c->body, "\"delivery_attempt\":");
    c->attempt = attempt ? strtoull(attempt + strlen("\"delivery_attempt\":"), NULL, 10) : 0;
    c->at_ns = actor_now();
    c->timeout_ns = q->time_ns;
    c->any_address = q->any_address;
    c->arrived = false;
    EXPECT(deadline - actor_now() == q->time_ns);
}

static enum error begin(const struct fetch_request *q, uint64_t *ret_ref, uint64_t deadline)
{
    if (hooks_count == HOOKS_CALLS_MAX)
        return ERR_FULL;
    note_call(q, deadline);
    struct asked *a = &asked[hooks_count];
    *a = (struct asked){.number = hooks_count,
                        .ref = hooks_count + 1,
                        .deadline = deadline,
                        .time_ns = q->time_ns,
                        .from = actor_self(),
                        .wanted = q->wanted};
    memcpy(a->about, q->about, sizeof(a->about));
    states[hooks_count++] = CALL_WAITS;
    *ret_ref = a->ref;
    struct message *m = message_of(ASKED, a, sizeof(*a));
    return m ? actor_send_name("receiver", m) : ERR_MEMORY;
}

static struct hooks_answer said_to(uint64_t number)
{
    return receiver_now ? receiver_now(&hooks_calls[number])
                        : (struct hooks_answer){.status = 200, .after_ms = 1};
}

static bool same_host(uint64_t a, uint64_t b)
{
    struct span x = delivery_host(span_text(hooks_calls[a].url)),
                y = delivery_host(span_text(hooks_calls[b].url));
    return span_equal(x, y);
}

static bool has_room(uint64_t number)
{
    uint32_t all = 0, host = 0;
    for (uint32_t i = 0; i < hooks_count; i++) {
        all += states[i] == CALL_RUNS;
        host += states[i] == CALL_RUNS && same_host(i, number);
    }
    return all < FETCH_TIMED_MAX && host < FETCH_HOST_MAX;
}

static void start_waiting(void)
{
    for (uint32_t i = begun; i < hooks_count; i++) {
        if (states[i] != CALL_WAITS || !has_room(i))
            continue;
        if (asked[i].wanted && !asked[i].wanted(asked[i].about)) {
            const struct fetch_answer done = {.ref = asked[i].ref, .error = ERR_IGNORED};
            states[i] = CALL_ENDED;
            (void)actor_cast(asked[i].from, FETCH_DONE, &done, sizeof(done));
            continue;
        }
        hooks_calls[i].at_ns = asked[i].turn = actor_now();
        hooks_calls[i].arrived = true;
        const struct hooks_answer said = said_to(i);
        uint64_t most = asked[i].turn + asked[i].time_ns;
        uint64_t at = said.after_ms == UINT64_MAX ? most : actor_deadline_ms(said.after_ms);
        states[i] = CALL_RUNS;
        actor_timer(at < most ? at : most, REPLY, i);
    }
    while (begun < hooks_count && states[begun] != CALL_WAITS)
        begun++;
}

static void end_call(uint64_t number)
{
    const struct asked *a = &asked[number];
    struct fetch_answer done = {.ref = a->ref, .turn = a->turn, .error = ERR_SHED};
    if (states[number] == CALL_ENDED)
        return;
    if (states[number] == CALL_RUNS) {
        const struct hooks_answer said = said_to(number);
        done.error = said.after_ms == UINT64_MAX ? ERR_TIMEOUT : said.error;
        done.status = done.error && done.error != ERR_LIMIT ? 0 : said.status;
        done.retry_after_s = said.retry_after_s;
        snprintf(done.why, sizeof(done.why), "%s", done.error == ERR_UNAVAILABLE ? "no libcurl here" : "");
    }
    states[number] = CALL_ENDED;
    (void)actor_cast(a->from, FETCH_DONE, &done, sizeof(done));
}

static enum actor_step receiver_handle(void *state, struct message *m)
{
    struct asked a;
    uint64_t number;
    (void)state;
    if (m->type == ASKED) {
        memcpy(&a, m->payload, sizeof(a));
        start_waiting();
        if (states[a.number] == CALL_WAITS)
            actor_timer(a.deadline, LATE, a.number);
    } else {
        memcpy(&number, m->payload, sizeof(number));
        if (m->type == REPLY || states[number] == CALL_WAITS)
            end_call(number);
        start_waiting();
    }
    return ACTOR_CONTINUE;
}

static const struct actor_class receiver_class = {
    .name = "receiver", .state_size = 8, .handle = receiver_handle};

/* ---- the node ---- */

static actor_pid start(const struct actor_class *class, const void *args, size_t size, const char *name)
{
    struct start_result result = {.pid = 0};
    const struct spawn_options o = {.class = class, .args = args, .args_size = size, .name = name};
    EXPECT(actor_start(&o, &result, actor_deadline_ms(1000)) == OK);
    return result.pid;
}

static void start_all(void)
{
    for (uint32_t p = 0; p < OUTBOX_PARTITIONS; p++)
        relays[p] = start(&relay_class, &p, sizeof(p), NULL);
    for (uint32_t p = 0; p < DELIVERY_PARTITIONS; p++) {
        const struct outbound_args args = {.partition = p, .begin = hooks_fetch ? NULL : begin};
        senders[p] = start(&outbound_class, &args, sizeof(args), NULL);
    }
}

void hooks_start(const struct webhooks_settings *settings, hooks_receiver *receiver)
{
    hooks_count = begun = 0;
    hooks_fetch = false;
    memset(states, 0, sizeof(states));
    receiver_now = receiver;
    webhooks_configure(settings);
    (void)stage_writer();
    (void)start(&receiver_class, NULL, 0, "receiver");
    start_all();
}

void hooks_receive(hooks_receiver *receiver)
{
    receiver_now = receiver;
}

void hooks_restart(void)
{
    for (uint32_t p = 0; p < OUTBOX_PARTITIONS; p++)
        stage_kill(relays[p]);
    for (uint32_t p = 0; p < DELIVERY_PARTITIONS; p++)
        stage_kill(senders[p]);
    start_all();
}

actor_pid hooks_relay(uint32_t partition)
{
    return relays[partition];
}

actor_pid hooks_outbound(uint32_t partition)
{
    return senders[partition];
}

void hooks_settle(uint64_t ms)
{
    actor_sleep(actor_deadline_ms(ms));
}

/* ---- clients and jobs ---- */

static struct uuid new_id(void)
{
    static struct uuid_source source;
    static const struct store *of;
    if (of != stage_store) {
        uuid_source_init(&source, stage_store->env);
        of = stage_store;
    }
    return uuid_v7(&source);
}

static enum error submit(const struct command_class *class, const void *command)
{
    return store_submit(class, command, NULL, 0, NULL, actor_deadline_ms(5000));
}

struct uuid hooks_client(void)
{
    const struct client_create c = {.id = new_id(), .from = span_text("192.0.2.1")};
    EXPECT(submit(&client_create_class, &c) == OK);
    return c.id;
}

struct uuid hooks_put(const struct uuid *client, const char *url, uint32_t events)
{
    const struct webhook_put c = {.client = *client, .id = new_id(), .events = events, .url = span_text(url)};
    EXPECT(submit(&webhook_put_class, &c) == OK);
    return c.id;
}

enum error hooks_remove(const struct uuid *client, const struct uuid *id)
{
    const struct webhook_remove c = {.client = *client, .id = *id};
    return submit(&webhook_remove_class, &c);
}

struct uuid hooks_job(const struct uuid *client, const char *callback)
{
    const struct job_submit c = {.id = new_id(),
                                 .client = *client,
                                 .type = JOB_EXECUTE,
                                 .kind = 1,
                                 .callback = span_text(callback),
                                 .runtime_max_ms = 120000,
                                 .payload_max = 262144,
                                 .queue_max = 100000,
                                 .trace =
                                     span_text("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")};
    EXPECT(submit(&job_submit_class, &c) == OK);
    return c.id;
}

void hooks_cancel(const struct uuid *job)
{
    const struct job_cancel c = {.id = *job, .kept_us = UINT64_C(86400000000)};
    EXPECT(submit(&job_cancel_class, &c) == OK);
}

/* ---- looking ---- */

int64_t hooks_counted(uint8_t state)
{
    struct view *view = view_open(stage_store);
    int64_t count = -1;
    EXPECT(view != NULL && counter_read(&view->txn, COUNTER_DELIVERIES, span_of(&state, 1), &count) == OK);
    view_close(view);
    return count;
}

enum error hooks_delivery(const struct uuid *job, const struct uuid *webhook, uint64_t event,
                          struct delivery *ret)
{
    static const struct uuid none = {{0}};
    struct view *view = view_open(stage_store);
    struct delivery_scan scan;
    struct delivery d;
    struct key key;
    enum error e = OK;
    bool found = false;
    EXPECT(view != NULL);
    delivery_scan_begin(&view->txn, DELIVERY_LIST_JOB, job, NULL, &scan);
    while (!e && !found) {
        e = delivery_scan_next(&scan, &d, &key);
        found = !e && d.event == event && uuid_equal(&d.webhook, webhook ? webhook : &none);
    }
    (void)scan_end(&scan.scan);
    if (found)
        *ret = d;
    view_close(view);
    return found ? OK : e;
}

uint32_t hooks_calls_of(const struct uuid *job, const char *event)
{
    char text[UUID_TEXT_SIZE] = "";
    uint32_t count = 0;
    if (job)
        uuid_format(job, text);
    for (uint32_t i = 0; i < hooks_count; i++)
        count += (!job || strcmp(hooks_calls[i].job, text) == 0) &&
                 (!event || strcmp(hooks_calls[i].event, event) == 0);
    return count;
}
