#include "http/chaos_verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/actor_view.h"
#include "http/audits.h"
#include "http/front.h"
#include "http/json_text.h"
#include "runtime/runtime.h"
#include "runtime/telemetry.h"
#include "store/writer.h"

enum {
    NAME_MAX_SHOWN = 64,
    DETAILS_MAX = 16384, /* of an audit entry */
    PAUSE_MAX_MS = 64,   /* between two looks at who has come back */
    MESSAGE_LAST = 1,    /* to who ends it when the answer is gone */
    LOOP_S_MAX =
        3, /* seconds that an endless loop computes where the class of the actor has no runaway budget */
    LOOP_TURNS = 1000000, /* of it between two looks at the clock: some of a ms */
    FLOOD_BYTES = 64,     /* of a message of a flood */
};

enum verb { VERB_KILL, VERB_CRASH, VERB_SUSPEND, VERB_RESUME, VERB_FLOOD };
static const char *const verb_names[] = {"kill", "crash", "suspend", "resume", "flood"};
static const char *const audit_verbs[] = {"actor.kill", "actor.crash", "actor.suspend", "actor.resume",
                                          "actor.flood"};

/* Why somebody is expected to end. */
#define CAUSES(X)                                         \
    X(NONE, "")                                           \
    X(TARGET, "target")                                   \
    X(ALL, "one_for_all")                                 \
    X(REST, "rest_for_one")                               \
    X(BELOW, "below")           /* its supervisor ends */ \
    X(ESCALATION, "escalation") /* a supervisor whose restart budget this would exceed */

enum cause {
#define X(id, name) CAUSE_##id,
    CAUSES(X)
#undef X
};
static const char *const cause_names[] = {
#define X(id, name) [CAUSE_##id] = name,
    CAUSES(X)
#undef X
};

/* One actor of the tree as it was before. */
struct seen {
    actor_pid pid, now; /* now: who stands in its place afterwards */
    uint64_t place;
    const char *class_name;
    uint32_t supervisor; /* position in the list; its own: the root, or outside the tree */
    uint8_t cause;       /* enum cause: expected to end */
    bool supervises, dynamic, temporary;
    bool left;      /* it has ended by itself */
    uint64_t watch; /* the monitor of one who may; 0: none */
    char name[NAME_MAX_SHOWN];
};

enum { BLOCK = 480, BLOCKS = CHAOS_SEEN_MAX / BLOCK + 1 };
STATIC_ASSERT(BLOCK * sizeof(struct seen) <= 60000, "a block is one piece of an arena");

struct experiment {
    const struct request *q;
    enum verb verb;
    bool dry_run;
    void (*fault)(void);              /* what an actor that is told to crash does */
    uint64_t messages, sent, refused; /* of a flood */
    char target[ACTOR_VIEW_NAME_MAX];
    struct span reason;

    struct actor_info actor; /* the target, before */
    struct seen *blocks[BLOCKS];
    uint32_t room, count, position; /* of the target in seen */
    uint16_t *gone;                 /* positions of those who died, so many: */
    uint32_t died, missing;         /* missing: those of them who are to come back and haven't */
    uint32_t left;                  /* others, who came to their own end meanwhile */
    bool complete;
    bool ends_process; /* predicted: the escalation goes up to the root */
    bool takes_us;     /* predicted: this connection goes, too */
    bool handed_over;  /* it is done when this connection has its answer */
    bool supervised;
    struct supervisor_info before, after; /* its supervisor */

    const char *outcome;
    char end_reason[96];
    uint64_t down_ns, took_ns;
    bool over;
};

STATIC_ASSERT(CHAOS_SEEN_MAX < UINT16_MAX, "positions are 16 bits");

static struct seen *seen_at(const struct experiment *x, uint32_t position)
{
    return &x->blocks[position / BLOCK][position % BLOCK];
}

/* Room for those who live now, and some who come meanwhile. */
static void seen_make(struct experiment *x)
{
    struct runtime_stats stats;
    runtime_stats(runtime_self(), &stats);
    x->room = stats.actors + BLOCK < CHAOS_SEEN_MAX ? (uint32_t)stats.actors + BLOCK : CHAOS_SEEN_MAX;
    for (uint32_t i = 0; i * BLOCK <= x->room; i++) /* and for the target behind them */
        x->blocks[i] = actor_alloc(BLOCK * sizeof(struct seen));
    x->gone = actor_alloc((x->room + 1) * sizeof(*x->gone));
}

/* ---- who is there ---- */

static bool take(void *context, const struct living_node *n)
{
    struct experiment *x = context;
    if (!n->pid)
        return true;
    if (x->count == x->room)
        return false;
    struct seen *s = seen_at(x, x->count);
    *s = (struct seen){.pid = n->pid,
                       .place = n->place,
                       .class_name = n->class_name,
                       .supervisor = x->count,
                       .supervises = n->supervises,
                       .dynamic = n->dynamic,
                       .temporary = n->restart == RESTART_TEMPORARY};
    snprintf(s->name, sizeof(s->name), "%.63s", n->name);
    for (uint32_t i = x->count - 1; x->count;
         i = seen_at(x, i)->supervisor) { /* it is on the way up from the last one */
        if (seen_at(x, i)->pid == n->supervisor)
            s->supervisor = i;
        if (seen_at(x, i)->pid == n->supervisor || seen_at(x, i)->supervisor == i)
            break;
    }
    if (n->pid == x->actor.pid)
        x->position = x->count;
    x->count++;
    return true;
}

/* The target is always among them, at the end if it isn't in the tree, or further down than was looked. */
static void look_before(struct experiment *x)
{
    seen_make(x);
    x->position = UINT32_MAX;
    x->complete = living_visit(x->q->front->rows, false, take, x);
    if (x->position == UINT32_MAX) {
        struct seen *s = seen_at(x, x->count);
        *s = (struct seen){.pid = x->actor.pid,
                           .class_name = x->actor.class_name,
                           .supervisor = x->count,
                           .temporary = true};
        snprintf(s->name, sizeof(s->name), "%.63s", x->actor.name[0] ? x->actor.name : x->actor.class_name);
        x->position = x->count++;
    }
    struct seen *target = seen_at(x, x->position);
    if (x->actor.name[0])
        snprintf(target->name, sizeof(target->name), "%.63s", x->actor.name);
    x->supervised = target->supervisor != x->position &&
                    supervisor_inspect(seen_at(x, target->supervisor)->pid, &x->before,
                                       actor_deadline_ms(ACTOR_VIEW_ANSWER_MS)) == OK;
}

/* ---- who would end ---- */

static void expect(struct seen *s, enum cause cause)
{
    if (!s->cause)
        s->cause = (uint8_t)cause;
}

/* Those who stand beside `at` and go with it by the strategy. */
static void expect_siblings(struct experiment *x, uint32_t at, enum strategy strategy)
{
    for (uint32_t i = 0; i < x->count; i++) {
        if (i == at || seen_at(x, i)->supervisor != seen_at(x, at)->supervisor ||
            seen_at(x, i)->supervisor == i)
            continue;
        if (strategy == ONE_FOR_ALL)
            expect(seen_at(x, i), CAUSE_ALL);
        else if (strategy == REST_FOR_ONE && i > at)
            expect(seen_at(x, i), CAUSE_REST);
    }
}

/* Up from the target: whoever ends takes along those below; its supervisor restarts by its strategy, and ends itself when
 * that is one more than its budget. */
static void predict(struct experiment *x)
{
    uint32_t at = x->position;
    expect(seen_at(x, at), CAUSE_TARGET);
    for (;;) {
        struct supervisor_info supervisor;
        uint32_t above = seen_at(x, at)->supervisor;
        if (above == at) {
            x->ends_process = at == 0 && seen_at(x, at)->supervises;
            break;
        }
        if (seen_at(x, at)->temporary || supervisor_inspect(seen_at(x, above)->pid, &supervisor,
                                                            actor_deadline_ms(ACTOR_VIEW_ANSWER_MS)) != OK)
            break;
        expect_siblings(x, at, supervisor.strategy);
        if (supervisor.budget_used < supervisor.intensity)
            break;
        expect(seen_at(x, above), CAUSE_ESCALATION);
        at = above;
    }
    for (uint32_t i = 0; i < x->count; i++) /* supervisors stand before their children */
        if (seen_at(x, i)->supervisor != i && seen_at(x, seen_at(x, i)->supervisor)->cause)
            expect(seen_at(x, i), CAUSE_BELOW);
    for (uint32_t i = 0; i < x->count; i++)
        x->takes_us |= seen_at(x, i)->pid == actor_self() && seen_at(x, i)->cause;
}

static bool outlives_us(const struct experiment *x)
{
    return x->takes_us || x->ends_process;
}

/* Whether somebody will stand in this place again. */
static bool comes_back(const struct experiment *x, const struct seen *s)
{
    if (!s->cause || !s->place || x->ends_process)
        return false;
    return s->cause == CAUSE_TARGET ? !s->temporary : !s->dynamic && !s->temporary;
}

/* ---- who did ---- */

static bool take_after(void *context, const struct living_node *n)
{
    struct experiment *x = context;
    if (!n->pid || !n->place)
        return true;
    for (uint32_t i = 0; i < x->died; i++) {
        struct seen *s = seen_at(x, x->gone[i]);
        if (s->place == n->place && s->pid != n->pid) {
            s->now = n->pid;
            break;
        }
    }
    return true;
}

static bool is_down_of(const struct message *m, void *arg)
{
    const uint64_t *ref = arg;
    return m->type == MESSAGE_DOWN && ((const struct message_down *)(const void *)m->payload)->ref == *ref;
}

/* Temporary ones come and go, a connection with its client; those that the prediction has not are watched, so that a
 * client's goodbye isn't taken for a consequence. */
static void watch(struct experiment *x)
{
    for (uint32_t i = 0; i < x->count; i++) {
        struct seen *s = seen_at(x, i);
        if (s->temporary && !s->cause && s->pid != actor_self())
            s->watch = actor_monitor(s->pid, 0); /* 0, no record left: what becomes of it counts as a death */
    }
}

static void unwatch(struct experiment *x)
{
    for (uint32_t i = 0; i < x->count; i++)
        if (seen_at(x, i)->watch)
            actor_demonitor(seen_at(x, i)->watch);
}

/* Of a dead one: whether it came to its own end. */
static bool has_left(struct seen *s)
{
    if (!s->watch)
        return s->left;
    struct message *m = actor_receive(is_down_of, &s->watch, actor_deadline_ms(ACTOR_VIEW_ANSWER_MS));
    if (!m)
        return false;
    const struct message_down *down = (const void *)m->payload;
    s->left =
        down->gone || !reason_abnormal(&down->reason); /* gone: before it was watched, and that was before */
    s->watch = 0;
    message_free(m);
    return s->left;
}

/* False: somebody is still missing. */
static bool look_after(struct experiment *x)
{
    x->died = x->missing = x->left = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        if (actor_alive(seen_at(x, i)->pid))
            continue;
        if (has_left(seen_at(x, i)))
            x->left++;
        else
            x->gone[x->died++] = (uint16_t)i;
    }
    living_visit(x->q->front->rows, false, take_after, x);
    for (uint32_t i = 0; i < x->died; i++)
        x->missing += !seen_at(x, x->gone[i])->now && comes_back(x, seen_at(x, x->gone[i]));
    return x->missing == 0;
}

/* ---- what an actor does that is told to crash: on its own stack, in its own name ---- */

/* Kept from the sanitizers: their own check would come before the trap. */
#define UNCHECKED __attribute__((noinline, no_sanitize("address", "undefined", "thread")))

static int *volatile nowhere;
static volatile int zero, one = 1;

UNCHECKED static void trap(void)
{
    *nowhere = 1;
}

UNCHECKED static void give_up(void)
{
    abort();
}

#if defined(__x86_64__) || defined(__i386__)
UNCHECKED static void divide(void)
{
    zero = one / zero;
}
#else /* elsewhere a division by zero has a result */
UNCHECKED static void divide(void)
{
    __builtin_trap();
}
#endif

/* Without end as far as its runaway budget goes; the clock is for classes that have none. It measures what that budget does: on a machine
 * that is busy or stands still the budget comes first, too. It is looked at seldom: inside it nobody is switched out, and this is here
 * to be. */
UNCHECKED static void loop(void)
{
    uint64_t end = env_thread_computed() + LOOP_S_MAX * NS_PER_S;
    while (env_thread_computed() < end)
        for (uint32_t i = 0; i < LOOP_TURNS; i++)
            zero = 0;
}

static volatile bool bottom; /* nobody sets it */

UNCHECKED static int deeper(volatile char *above)
{
    volatile char room[256];
    room[0] = above ? above[0] : 0;
    return bottom ? 0 : deeper(room) + room[0]; /* not the last thing it does: each call has a frame */
}

UNCHECKED static void overflow(void)
{
    zero = deeper(NULL) * 0;
}

UNCHECKED static void devour(void)
{
    for (;;)
        *(volatile char *)actor_alloc(4096) = 1;
}

/* X("name", what it does) */
#define FAULTS(X)        \
    X("trap", trap)      \
    X("abort", give_up)  \
    X("divide", divide)  \
    X("loop", loop)      \
    X("stack", overflow) \
    X("memory", devour)

static const struct {
    const char *name;
    void (*run)(void);
} faults[] = {
#define X(name, run) {name, run},
    FAULTS(X)
#undef X
};

static void refuse_trap(struct response *r)
{
    response_error(r, ERROR_OPS_409_CONFLICT,
                   "containment is off: a trap would end the process, so nobody is told to");
}

/* False: it was not to be had, and that is the answer. */
static bool end_it(struct experiment *x, struct response *r, uint64_t began)
{
    uint64_t ref = actor_monitor(x->actor.pid, 0);
    if (!ref) {
        response_error(r, ERROR_OPS_503_OVERLOADED, "there is no record left to watch it by");
        return false;
    }
    if (x->verb == VERB_KILL) {
        actor_kill(x->actor.pid);
    } else if (actor_crash(x->actor.pid, x->fault) != OK) {
        actor_demonitor(ref);
        refuse_trap(r);
        return false;
    }
    struct message *down = actor_receive(is_down_of, &ref, actor_deadline_ms(CHAOS_WAIT_MS));
    x->down_ns = actor_clock() - began;
    if (!down) {
        actor_demonitor(ref);
        response_error(r, ERROR_OPS_504_TIMEOUT, "'%s' was told to end and has not ended within %d ms",
                       x->target, CHAOS_WAIT_MS);
        return false;
    }
    char text[REASON_TEXT_MAX];
    reason_format(&((struct message_down *)(void *)down->payload)->reason, text, sizeof(text));
    snprintf(x->end_reason, sizeof(x->end_reason), "%.*s", (int)strcspn(text, ":"),
             text); /* without the backtrace */
    message_free(down);
    return true;
}

/* ---- an ending after which nobody may be left to answer ---- */

static void audit(const struct experiment *x, const char *outcome);

struct last {
    actor_pid connection, target;
    enum verb verb;
    void (*fault)(void);
};

static enum actor_step last_init(void *state, const void *args, size_t args_size)
{
    struct last *l = state;
    ASSERT(args_size == sizeof(*l));
    memcpy(l, args, sizeof(*l));
    bool timed = actor_timer(actor_deadline_ms(CHAOS_WAIT_MS), MESSAGE_LAST, 0) != 0;
    if (!timed || !actor_monitor(l->connection, 0)) /* rather an answer lost than a promise */
        actor_cast(actor_self(), MESSAGE_LAST, NULL, 0);
    return ACTOR_CONTINUE;
}

static enum actor_step last_handle(void *state, struct message *m)
{
    const struct last *l = state;
    if (m->type != MESSAGE_DOWN && m->type != MESSAGE_LAST) {
        actor_unknown(m);
        return ACTOR_CONTINUE;
    }
    if (l->verb == VERB_KILL)
        actor_kill(l->target);
    else
        (void)actor_crash(l->target, l->fault); /* whether traps are contained was asked before */
    return ACTOR_STOP;
}

/* Waits until the connection has sent the answer and gone, CHAOS_WAIT_MS at most; then ends the target. */
static const struct actor_class last_class = {
    .name = "chaos.last", .state_size = sizeof(struct last), .init = last_init, .handle = last_handle};

/* False: it was not to be had, and that is the answer. */
static bool hand_over(struct experiment *x, struct response *r)
{
    const struct last l = {
        .connection = actor_self(), .target = x->actor.pid, .verb = x->verb, .fault = x->fault};
    if (x->verb == VERB_CRASH && actor_crash(0, trap) != OK) { /* of nobody: whether traps are contained */
        refuse_trap(r);
        return false;
    }
    x->outcome = x->ends_process ? "ends_process" : "asked";
    x->complete = false;
    x->handed_over = true;
    audit(x, x->outcome);
    enum error e = actor_spawn(
        &(struct spawn_options){
            .class = &last_class, .args = &l, .args_size = sizeof(l), .scheduler = SPAWN_HERE},
        NULL);
    if (e != OK)
        response_error(r, ERROR_OPS_503_OVERLOADED, "nobody can be started who would end it: %s",
                       catalogue_sentence(e));
    return e == OK;
}

/* Until everybody who is to come back is there. */
static void recover(struct experiment *x, uint64_t began)
{
    uint64_t deadline = actor_deadline_ms(CHAOS_WAIT_MS), pause = 1;
    actor_pid supervisor = seen_at(x, seen_at(x, x->position)->supervisor)->pid;
    if (x->supervised) /* asked something, it deals with the death first */
        (void)supervisor_inspect(supervisor, &x->after, deadline);
    while (!look_after(x) && actor_now() < deadline) {
        actor_sleep(actor_deadline_ms(pause));
        pause = pause < PAUSE_MAX_MS ? pause * 2 : PAUSE_MAX_MS;
    }
    x->took_ns = actor_clock() - began;
    x->over = true;
    unwatch(x);
    if (x->supervised && supervisor_inspect(supervisor, &x->after, deadline) != OK)
        x->after = (struct supervisor_info){.budget_used = UINT32_MAX}; /* it has gone, too */
    x->outcome = x->missing ? "not_recovered" : comes_back(x, seen_at(x, x->position)) ? "recovered" : "gone";
}

/* ---- the record ---- */

static void write_pid(struct json *json, const char *key, actor_pid pid)
{
    json_key(json, key);
    if (pid)
        json_hex_string(json, pid);
    else
        json_null(json);
}

static void write_seen(struct json *j, const struct seen *s)
{
    json_object_begin(j);
    JSON_MEMBER(j, "name", string, s->name);
    JSON_MEMBER(j, "class", string, s->class_name);
    write_pid(j, "pid", s->pid);
}

static void write_predicted(struct json *j, const struct experiment *x)
{
    uint32_t count = 0;
    json_key(j, "predicted");
    json_object_begin(j);
    json_key(j, "ends");
    json_array_begin(j);
    for (uint32_t i = 0; i < x->count; i++) {
        const struct seen *s = seen_at(x, i);
        if (!s->cause || count++ >= CHAOS_SHOWN_MAX)
            continue;
        write_seen(j, s);
        JSON_MEMBER(j, "cause", string, cause_names[s->cause]);
        JSON_MEMBER(j, "comes_back", bool, comes_back(x, s));
        json_object_end(j);
    }
    json_array_end(j);
    JSON_MEMBER(j, "count", uint, count);
    JSON_MEMBER(j, "untouched", uint, x->count - count);
    JSON_MEMBER(j, "ends_process", bool, x->ends_process);
    json_object_end(j);
}

static void write_died(struct json *j, const struct experiment *x)
{
    json_key(j, "died");
    json_array_begin(j);
    for (uint32_t i = 0; i < x->died && i < CHAOS_SHOWN_MAX; i++) {
        const struct seen *s = seen_at(x, x->gone[i]);
        write_seen(j, s);
        write_pid(j, "successor", s->now);
        JSON_MEMBER(j, "expected", bool, s->cause != CAUSE_NONE);
        json_object_end(j);
    }
    json_array_end(j);
    JSON_MEMBER(j, "died_count", uint, x->died);
    JSON_MEMBER(j, "ended_meanwhile", uint, x->left);
    JSON_MEMBER(j, "untouched", uint, x->count - x->died - x->left);
    JSON_MEMBER(j, "missing", uint, x->missing);
}

static void write_budget(struct json *j, const struct experiment *x)
{
    json_key(j, "budget");
    if (!x->supervised) {
        json_null(j);
        return;
    }
    json_object_begin(j);
    JSON_MEMBER(j, "supervisor", string, x->before.name);
    JSON_MEMBER(j, "strategy", string, strategy_name(x->before.strategy));
    JSON_MEMBER(j, "restarts", uint, x->before.intensity);
    JSON_MEMBER(j, "period_ms", uint, x->before.period_ms);
    JSON_MEMBER(j, "used_before", uint, x->before.budget_used);
    json_key(j, "used_after");
    if (x->over && x->after.budget_used != UINT32_MAX)
        json_uint(j, x->after.budget_used);
    else
        json_null(j);
    json_object_end(j);
}

/* The members that the answer and the audit entry share. */
static void write_record(struct json *j, const struct experiment *x)
{
    bool ends = x->verb == VERB_KILL || x->verb == VERB_CRASH;
    json_key(j, "actor");
    json_object_begin(j);
    write_pid(j, "pid", x->actor.pid);
    JSON_MEMBER(j, "name", string, x->actor.name[0] ? x->actor.name : NULL);
    JSON_MEMBER(j, "class", string, x->actor.class_name);
    JSON_MEMBER(j, "status", string, x->actor.status);
    JSON_MEMBER(j, "mailbox_depth", uint, x->actor.mailbox_depth);
    JSON_MEMBER(j, "links", uint, x->actor.links);
    json_object_end(j);
    JSON_MEMBER(j, "outcome", string, x->outcome);
    JSON_MEMBER(j, "complete", bool, x->complete);
    if (ends) {
        write_predicted(j, x);
        write_budget(j, x);
    }
    if (x->verb == VERB_FLOOD && !x->dry_run) {
        json_key(j, "flood");
        json_object_begin(j);
        JSON_MEMBER(j, "sent", uint, x->sent);
        JSON_MEMBER(j, "refused", uint, x->refused);
        json_object_end(j);
    }
    if (x->over) {
        JSON_MEMBER(j, "end_reason", string, x->end_reason);
        write_pid(j, "successor", seen_at(x, x->position)->now);
        write_died(j, x);
        json_key(j, "down_us");
        json_decimal(j, (int64_t)x->down_ns, 3);
        json_key(j, "took_us");
        json_decimal(j, (int64_t)x->took_ns, 3);
    }
}

static void audit(const struct experiment *x, const char *outcome)
{
    struct json_sink sink;
    struct json json;
    char *room = actor_alloc(DETAILS_MAX);
    json_sink_init(&sink, room, DETAILS_MAX, NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    if (x->outcome)
        write_record(&json, x);
    json_object_end(&json);
    bool whole = json_end(&json) == JSON_OK;
    audits_note(x->q,
                &(struct audits_entry){.verb = audit_verbs[x->verb],
                                       .target = x->target,
                                       .reason = x->reason,
                                       .outcome = outcome,
                                       .details = whole ? span_of(room, sink.length) : (struct span){0}});
}

static void answer(const struct experiment *x, struct response *r)
{
    struct json json;
    response_begin(r, x->handed_over ? 202 : 200, RESPONSE_JSON);
    if (x->handed_over) /* the connection's end is what it waits for */
        r->keep_alive = false;
    json_init(&json, &r->sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "verb", string, verb_names[x->verb]);
    JSON_MEMBER(&json, "target", string, x->target);
    JSON_MEMBER(&json, "reason", string_n, x->reason.bytes ? x->reason.bytes : "", x->reason.size);
    JSON_MEMBER(&json, "dry_run", bool, x->dry_run);
    write_record(&json, x);
    json_object_end(&json);
    json_sink_text(&r->sink, "\n");
}

/* ---- requests ---- */

static bool body_read(struct experiment *x, struct response *r)
{
    const struct json_text *json = x->q->json;
    const struct json_node *root = json ? json_root(json) : NULL, *reason = NULL, *dry_run = NULL;
    if (root && root->kind != JSON_OBJECT) {
        response_error(r, ERROR_OPS_400_INVALID, "the body must be an object");
        return false;
    }
    if (root) {
        reason = json_member(json, root, "reason");
        dry_run = json_member(json, root, "dry_run");
    }
    if (dry_run && dry_run->kind != JSON_TRUE && dry_run->kind != JSON_FALSE) {
        response_error_field(r, ERROR_OPS_400_INVALID, "dry_run", "must be true or false");
        return false;
    }
    x->dry_run = dry_run && dry_run->kind == JSON_TRUE;
    if (reason) {
        char *room = actor_alloc(AUDITS_REASON_MAX);
        if (reason->kind != JSON_STRING ||
            !json_string_of(json, reason, room, AUDITS_REASON_MAX, &x->reason) ||
            x->reason.size > AUDITS_REASON_MAX) {
            response_error_about(r, ERROR_OPS_400_INVALID, "reason", "must be a text of at most %u bytes",
                                 AUDITS_REASON_MAX);
            return false;
        }
    }
    if (!x->dry_run && x->reason.size == 0) {
        response_error_field(r, ERROR_OPS_400_MISSING_FIELD, "reason",
                             "is missing; say why you do this, or ask for a dry_run");
        return false;
    }
    return true;
}

/* The contract has seen to it that each is one of those it may be, where there is a contract. */
static bool variant_read(struct experiment *x, struct response *r)
{
    const struct json_text *json = x->q->json;
    const struct json_node *how = json ? json_member(json, json_root(json), "how") : NULL,
                           *messages = json ? json_member(json, json_root(json), "messages") : NULL;
    x->fault = how ? NULL : trap;
    for (size_t i = 0; how && i < sizeof(faults) / sizeof(*faults); i++) {
        char room[32];
        struct span name;
        if (how->kind == JSON_STRING && json_string_of(json, how, room, sizeof(room), &name) &&
            span_equal(name, span_text(faults[i].name)))
            x->fault = faults[i].run;
    }
    x->messages = 1;
    if (messages &&
        (!json_uint64_of(json, messages, &x->messages) || x->messages < 1 || x->messages > CHAOS_FLOOD_MAX))
        response_error_about(r, ERROR_OPS_400_INVALID, "messages", "must be a number from 1 to %u",
                             CHAOS_FLOOD_MAX);
    else if (!x->fault)
        response_error_field(r, ERROR_OPS_400_INVALID, "how",
                             "must be one of trap, abort, divide, loop, stack and memory");
    else
        return true;
    return false;
}

static bool target_find(struct experiment *x, struct response *r)
{
    actor_pid pid = actor_view_find(x->q->front->rows, x->target);
    enum error e = pid ? actor_inspect(pid, &x->actor, actor_deadline_ms(ACTOR_VIEW_ANSWER_MS)) : ERR_NOPROC;
    if (e == OK && pid == actor_self()) {
        response_error(r, ERROR_OPS_409_CONFLICT, "'%s' is the actor that would have to answer you",
                       x->target);
        return false;
    }
    if (e != OK)
        actor_view_refuse(r, x->target, e);
    return e == OK;
}

/* True: it was done, or is about to be; false: the refusal is the answer. */
static bool ending(struct experiment *x, struct response *r)
{
    look_before(x);
    predict(x);
    if (x->dry_run) {
        x->outcome = "predicted";
        return true;
    }
    if (outlives_us(x))
        return hand_over(x, r);
    watch(x);
    uint64_t began = actor_clock();
    if (!end_it(x, r, began)) {
        unwatch(x);
        return false;
    }
    recover(x, began);
    return true;
}

/* Why the target can't be suspended; NULL: it can. */
static const char *needed(const struct experiment *x)
{
    const struct living_rows *rows = x->q->front->rows;
    for (size_t i = 0; i < rows->count; i++)
        if (rows->rows[i].needed && actor_whereis(rows->rows[i].name) == x->actor.pid)
            return rows->rows[i].needed;
    return NULL;
}

static bool suspension(struct experiment *x, struct response *r)
{
    bool suspend = x->verb == VERB_SUSPEND;
    const char *why = suspend ? needed(x) : NULL;
    if (why) {
        response_error(r, ERROR_OPS_409_CONFLICT, "'%s' can't be suspended: %s", x->target, why);
        return false;
    }
    x->complete = true;
    x->outcome = x->dry_run ? "predicted" : suspend ? "suspended" : "resumed";
    if (x->dry_run)
        return true;
    if (suspend && x->actor.pid == actor_whereis(WRITER_NAME))
        audit(x, "asked"); /* who is to write the entry won't */
    if (suspend)
        actor_suspend(x->actor.pid);
    else
        actor_resume(x->actor.pid);
    (void)actor_inspect(x->actor.pid, &x->actor, actor_deadline_ms(ACTOR_VIEW_ANSWER_MS));
    return true;
}

/* One after the other, without waiting: what its mailbox doesn't take is refused to the sender, and counted. */
static bool flood(struct experiment *x)
{
    static const char noise[FLOOD_BYTES] = "nobody knows a message of this type";
    x->complete = true;
    x->outcome = x->dry_run ? "predicted" : "flooded";
    for (uint64_t i = 0; !x->dry_run && i < x->messages; i++) {
        if (actor_cast(x->actor.pid, CHAOS_FLOOD_TYPE, noise, sizeof(noise)) == OK)
            x->sent++;
        else
            x->refused++;
    }
    if (!x->dry_run)
        (void)actor_inspect(x->actor.pid, &x->actor, actor_deadline_ms(ACTOR_VIEW_ANSWER_MS));
    return true;
}

static bool perform(struct experiment *x, struct response *r)
{
    switch (x->verb) {
    case VERB_KILL:
    case VERB_CRASH:
        return ending(x, r);
    case VERB_FLOOD:
        return flood(x);
    default:
        return suspension(x, r);
    }
}

static void serve(const struct request *q, struct response *r, enum verb verb)
{
    struct experiment *x = actor_alloc(sizeof(*x));
    *x = (struct experiment){.q = q, .verb = verb};
    char status[16];
    if (!actor_view_target(q, r, x->target) || !body_read(x, r) || !variant_read(x, r))
        return;
    bool done = target_find(x, r) && perform(x, r);
    if (done)
        answer(x, r);
    if (x->dry_run)
        return;
    snprintf(status, sizeof(status), "%d", r->status);
    bool writes_no_more = verb == VERB_SUSPEND && done && x->actor.pid == actor_whereis(WRITER_NAME);
    if (!writes_no_more && !(x->handed_over && done))
        audit(x, done ? x->outcome : status);
    TELEMETRY(CHAOS_VERB, (int64_t)x->took_ns, DIM(OPERATION, verb_names[verb]), DIM(TARGET, x->target),
              DIM(OUTCOME, done ? x->outcome : status));
}

void chaos_serve_kill(const struct request *q, struct response *r)
{
    serve(q, r, VERB_KILL);
}

void chaos_serve_crash(const struct request *q, struct response *r)
{
    serve(q, r, VERB_CRASH);
}

void chaos_serve_suspend(const struct request *q, struct response *r)
{
    serve(q, r, VERB_SUSPEND);
}

void chaos_serve_resume(const struct request *q, struct response *r)
{
    serve(q, r, VERB_RESUME);
}

void chaos_serve_flood(const struct request *q, struct response *r)
{
    serve(q, r, VERB_FLOOD);
}
