#include "acutest.h"
#include "tests/runtime/node.h"

#include "runtime/scheduler.h"

/* A server that does with a call what the call's first word says. */
enum deed {
    ANSWER,
    ANSWER_TWICE,
    FORGET,
    KEEP,
    DEFER,
    PASS_ON,
    REUSE_CALL,
    REUSE_REQUEST,
    REUSE_WAIT,
    REUSE_REPLY,
    FREE,
    DIE,
    STOP_NOW,
    SLOW
};
struct question {
    uint64_t deed, value;
    actor_pid to;
};
static struct actor_from promises[8];
static size_t promises_count;
static enum error outcomes[8];

static struct message *number(uint64_t value)
{
    return message_of(NOTE, &value, sizeof value);
}

static void take_promises(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < promises_count; i++)
        actor_reply_to(promises[i], number(i));
}

static enum actor_step server_handle(void *state, struct message *m)
{
    struct question *q = message_body(m, sizeof *q);
    if (m->type == RUN)
        return doll_handle(state, m);
    if (m->type == NOTE && m->size == 0) /* it was told to keep one: answers it now */
        actor_reply(*(struct message **)state, number(77));
    if (!q)
        return ACTOR_CONTINUE;
    switch ((enum deed)q->deed) {
    case ANSWER_TWICE:
        actor_reply(m, number(q->value));
        /* fall through */
    case ANSWER:
        actor_reply(m, number(q->value));
        break;
    case KEEP:
        message_keep(m);
        *(struct message **)state = m;
        break;
    case DEFER:
        promises[promises_count++] = actor_defer(m);
        actor_reply(m, number(1)); /* not its business any more */
        TEST_CHECK(actor_defer(m).ref == 0);
        break;
    case PASS_ON:
        q->deed = ANSWER;
        actor_send(q->to, m);
        break;
    case REUSE_CALL:
        q->deed = ANSWER;
        outcomes[0] = actor_call(q->to, m, NULL, DEADLINE_NONE);
        break;
    case REUSE_REQUEST: {
        uint64_t ref;
        size_t index;
        q->deed = ANSWER;
        TEST_CHECK(actor_request(q->to, m, &ref) == OK);
        outcomes[0] = actor_request_wait(&ref, 1, &index, NULL, DEADLINE_NONE);
        break;
    }
    case REUSE_WAIT:
        q->deed = FORGET;
        outcomes[0] = actor_send_wait(q->to, m, DEADLINE_NONE);
        break;
    case REUSE_REPLY: { /* the second call that is held answers the first one */
        struct message **first = state;
        if (*first) {
            actor_reply(*first, m);
            message_free(*first);
            *first = NULL;
        } else {
            message_keep(m);
            *first = m;
        }
        break;
    }
    case FREE:
        message_free(m);
        break;
    case DIE:
        actor_fail(7, "as told");
    case STOP_NOW:
        return ACTOR_STOP;
    case SLOW:
        actor_sleep(actor_deadline_ms(q->value));
        actor_reply(m, number(q->value));
        break;
    case FORGET:
        break;
    }
    return ACTOR_CONTINUE;
}

static const struct actor_class server_class = {
    .name = "server", .state_size = sizeof(struct message *), .handle = server_handle};

static enum error ask(actor_pid to, struct question q, struct message **ret, uint64_t ms)
{
    return actor_call(to, message_of(ASK, &q, sizeof q), ret, ms ? actor_deadline_ms(ms) : DEADLINE_NONE);
}

static actor_pid server(void)
{
    return spawn(&server_class, anywhere());
}

static void gone(actor_pid pid)
{
    actor_kill(pid);
    ended(pid);
}

static void answered(void)
{
    actor_pid a = server(), b = server();
    struct message *m = NULL;
    TEST_CHECK(ask(a, (struct question){ANSWER, 5, 0}, &m, 0) == OK && *(uint64_t *)m->payload == 5);
    TEST_CHECK(m->from == a);
    TEST_CHECK(ask(a, (struct question){ANSWER_TWICE, 6, 0}, &m, 0) == OK && *(uint64_t *)m->payload == 6);
    TEST_CHECK(ask(a, (struct question){PASS_ON, 8, b}, &m, 0) == OK && *(uint64_t *)m->payload == 8);
    TEST_CHECK(m->from == b); /* whoever got it answers it */
    TEST_CHECK(ask(a, (struct question){ANSWER, 9, 0}, NULL, 0) == OK);
    TEST_CHECK(actor_call(doll(SPAWN_HERE), message_of(ASK, "twenty-four bytes payload", 24), &m,
                          DEADLINE_NONE) == OK);
    TEST_CHECK(m->size == 24 &&
               memcmp(m->payload, "twenty-four bytes", 17) == 0); /* answered by its own block */
    gone(m->from);
    TEST_CHECK(actor_call(actor_self(), message_new(ASK, 0), NULL, DEADLINE_NONE) == ERR_CALLING_SELF);
    TEST_CHECK(actor_call(a, NULL, NULL, DEADLINE_NONE) == ERR_MEMORY);
    TEST_CHECK(actor_call_name("nobody", message_new(ASK, 0), NULL, DEADLINE_NONE) == ERR_NOPROC);
    gone(a);
    gone(b);
    TEST_CHECK(!mail());
}

static void test_answered(void)
{
    node_sim(answered);
}

static void unanswered(void)
{
    actor_pid a = server(), b = server();
    struct message *m = NULL;
    TEST_CHECK(ask(a, (struct question){FORGET, 0, 0}, &m, 0) == ERR_UNANSWERED);
    TEST_CHECK(ask(a, (struct question){FREE, 0, 0}, &m, 0) == ERR_UNANSWERED);
    TEST_CHECK(m == NULL);
    TEST_CHECK(ask(a, (struct question){PASS_ON, 0, actor_self()}, &m, 5) ==
               ERR_TIMEOUT); /* I don't answer myself */
    message_free(actor_receive(NULL, NULL, DEADLINE_NONE));
    gone(b);
    TEST_CHECK(ask(a, (struct question){PASS_ON, 0, b}, &m, 0) == ERR_NOPROC); /* passed on to the dead */
    TEST_CHECK(ask(a, (struct question){STOP_NOW, 0, 0}, &m, 0) == ERR_DOWN);
    TEST_CHECK(m && ((struct message_down *)(void *)m->payload)->reason.kind == REASON_NORMAL);
    a = server();
    TEST_CHECK(ask(a, (struct question){DIE, 0, 0}, &m, 0) == ERR_DOWN);
    struct message_down *d = (void *)m->payload;
    TEST_CHECK(d->reason.kind == REASON_ERROR && d->reason.code == 7 && d->pid == a && d->reason.detail);
    TEST_CHECK(ask(a, (struct question){ANSWER, 0, 0}, &m, 0) == ERR_NOPROC);
    TEST_CHECK(!mail());
}

/* Whoever gave a start up may call the newcomer before that one hears of it: when it ends in its init then, that is an answer, too,
 * and not only the start's. */
static enum actor_step defer_in_init(void *state, const void *args, size_t size)
{
    (void)state;
    (void)args;
    (void)size;
    actor_defer(actor_receive(NULL, NULL, DEADLINE_NONE));
    (void)actor_receive(NULL, NULL, DEADLINE_NONE);
    return ACTOR_CONTINUE;
}
static const struct actor_class slow_class = {.name = "slow", .init = defer_in_init, .handle = doll_handle};

static void given_up(void)
{
    for (int i = 0; i < 20; i++) {
        struct spawn_options o = {.class = &slow_class, .name = "slow", .scheduler = anywhere()};
        struct start_result r;
        actor_pid pid = 0;
        TEST_CHECK(actor_start(&o, &r, actor_now()) == ERR_TIMEOUT);
        for (int tries = 0; tries < 10 && !pid; tries++) {
            actor_yield();
            pid = actor_whereis("slow");
        }
        if (pid) {
            enum error e = actor_call(pid, message_new(ASK, 8), NULL, actor_deadline_ms(1000));
            TEST_CHECK_(e == ERR_DOWN || e == ERR_NOPROC, "%s", error_name(e));
        }
        settle();
        TEST_CHECK(!actor_whereis("slow"));
    }
}

static void test_given_up(void)
{
    node_sim(given_up);
}

static void test_unanswered(void)
{
    node_sim(unanswered);
}

/* A call's block that is used for another call, a send, or an answer: its caller hears that it won't be
 * answered. */
static void reused(void)
{
    const enum deed deeds[] = {REUSE_CALL, REUSE_REQUEST, REUSE_WAIT};
    actor_pid a = server(), b = server();
    for (size_t i = 0; i < 3; i++) {
        outcomes[0] = ERR_INVALID;
        TEST_CHECK_(ask(a, (struct question){deeds[i], 3, b}, NULL, 1000) == ERR_UNANSWERED, "%zu", i);
        settle();
        TEST_CHECK(outcomes[0] == OK);
    }
    uint64_t refs[2];
    size_t index;
    struct message *m;
    for (size_t i = 0; i < 2; i++) {
        struct question q = {REUSE_REPLY, i, 0};
        TEST_CHECK(actor_request(a, message_of(ASK, &q, sizeof q), &refs[i]) == OK);
    }
    TEST_CHECK(actor_request_wait(&refs[1], 1, &index, &m, actor_deadline_ms(9)) == ERR_UNANSWERED);
    TEST_CHECK(actor_request_wait(&refs[0], 1, &index, &m, actor_deadline_ms(9)) == OK &&
               m->size == sizeof(struct question));
    gone(a);
    gone(b);
}

static void test_reused(void)
{
    node_sim(reused);
}

/* ---- deferred ---- */

static void deferring(void)
{
    actor_pid a = server();
    uint64_t refs[4];
    size_t index;
    struct message *m;
    promises_count = 0;
    for (int i = 0; i < 4; i++) {
        struct question q = {DEFER, 0, 0};
        TEST_CHECK(actor_request(a, message_of(ASK, &q, sizeof q), &refs[i]) == OK);
    }
    TEST_CHECK(actor_request_wait(refs, 4, &index, &m, actor_deadline_ms(1)) == ERR_TIMEOUT);
    tell(a, take_promises, NULL);
    tell(a, take_promises, NULL); /* a token is good for one answer */
    for (uint64_t i = 0; i < 4; i++) {
        TEST_CHECK(actor_request_wait(refs, 4, &index, &m, DEADLINE_NONE) == OK);
        TEST_CHECK(index == i && *(uint64_t *)m->payload == i);
    }
    TEST_CHECK(actor_request_wait(refs, 4, &index, &m, DEADLINE_NONE) == ERR_INVALID);
    /* A kept call is answered turns later, too. */
    struct question q = {KEEP, 0, 0};
    TEST_CHECK(actor_request(a, message_of(ASK, &q, sizeof q), &refs[0]) == OK);
    settle();
    actor_cast(a, NOTE, NULL, 0);
    TEST_CHECK(actor_request_wait(refs, 1, &index, &m, DEADLINE_NONE) == OK && *(uint64_t *)m->payload == 77);
    /* Deferred, kept, queued: its death answers them all, once. */
    promises_count = 0;
    q.deed = DEFER;
    actor_request(a, message_of(ASK, &q, sizeof q), &refs[0]);
    q.deed = KEEP;
    actor_request(a, message_of(ASK, &q, sizeof q), &refs[1]);
    settle();
    actor_suspend(a);
    q.deed = ANSWER;
    actor_request(a, message_of(ASK, &q, sizeof q), &refs[2]);
    settle();
    actor_kill(a);
    for (int i = 0; i < 3; i++) {
        TEST_CHECK(actor_request_wait(refs, 3, &index, &m, DEADLINE_NONE) == ERR_DOWN);
        struct message_down *d = (void *)m->payload;
        TEST_CHECK(d->pid == a && d->reason.kind == REASON_KILLED);
    }
    TEST_CHECK(actor_request_wait(refs, 3, &index, &m, DEADLINE_NONE) == ERR_INVALID);
    /* Another actor's token, and tokens of an earlier life, are nobody's. */
    a = server();
    tell(a, take_promises, NULL);
    settle();
    take_promises(NULL);
    gone(a);
    TEST_CHECK(!mail());
}

static void test_deferring(void)
{
    node_sim(deferring);
}

static void dead_caller(void *arg)
{
    ask(*(actor_pid *)arg, (struct question){DEFER, 0, 0}, NULL, 0);
}

/* The caller ends while its call is deferred: the answer goes nowhere. */
static void deferred_for_the_dead(void)
{
    actor_pid a = server(), caller = doll(anywhere());
    promises_count = 0;
    tell(caller, dead_caller, &a);
    settle();
    TEST_CHECK(promises_count == 1);
    gone(caller);
    tell(a, take_promises, NULL);
    settle();
    gone(a);
}

static void test_deferred_for_the_dead(void)
{
    node_sim(deferred_for_the_dead);
}

/* ---- resources first, then those who wait ---- */

static unsigned releases;
static void released(void *arg)
{
    (void)arg;
    TEST_CHECK(scheduler_current->outbox_count == 0);
    releases++;
}

static void own(void *arg)
{
    (void)arg;
    TEST_CHECK(actor_own(released, NULL) != 0);
}

static void told_last(void)
{
    actor_pid a = server();
    uint64_t refs[3];
    releases = 0;
    promises_count = 0;
    tell(a, own, NULL);
    for (int i = 0; i < 3; i++) {
        struct question q = {i == 1 ? KEEP : DEFER, 0, 0};
        actor_request(a, message_of(ASK, &q, sizeof q), &refs[i]);
    }
    settle();
    actor_kill(a);
    for (int i = 0; i < 3; i++) {
        size_t index;
        TEST_CHECK(actor_request_wait(refs, 3, &index, NULL, DEADLINE_NONE) == ERR_DOWN);
        TEST_CHECK(releases == 1 && !actor_alive(a));
    }
}

static void test_told_last(void)
{
    node_sim(told_last);
}

/* ---- too late ---- */

static void too_late(void)
{
    actor_pid a = server();
    struct message *m = NULL;
    uint64_t began = actor_now();
    TEST_CHECK(ask(a, (struct question){SLOW, 20, 0}, &m, 5) == ERR_TIMEOUT);
    TEST_CHECK(actor_now() == began + 5 * NS_PER_MS && !m);
    TEST_CHECK(ask(a, (struct question){ANSWER, 1, 0}, &m, 100) == OK &&
               *(uint64_t *)m->payload == 1);                                       /* not the old one */
    TEST_CHECK(actor_call(a, message_new(ASK, 3), &m, actor_now()) == ERR_TIMEOUT); /* a deadline of now */
    TEST_CHECK(actor_call(a, message_new(ASK, 3), &m, 1) == ERR_TIMEOUT);           /* and one long past */
    settle();
    gone(a);
    TEST_CHECK(!mail());
    /* Answer and deadline at the same instant: one of both, never a leak, never a second answer. */
    a = server();
    for (int i = 0; i < 20; i++) {
        enum error e = ask(a, (struct question){SLOW, 5, 0}, &m, 5);
        TEST_CHECK(e == OK || e == ERR_TIMEOUT);
        e = ask(a, (struct question){ANSWER, 100, 0}, &m, 50);
        TEST_CHECK(e == OK && *(uint64_t *)m->payload == 100);
    }
    gone(a);
    TEST_CHECK(!mail());
}

static void test_too_late(void)
{
    node_sim(too_late);
}

/* ---- open requests ---- */

static void requests(void)
{
    actor_pid a = server(), dead = server();
    uint64_t refs[300], ref;
    size_t index;
    struct message *m;
    gone(dead);
    for (uint64_t i = 0; i < 300; i++) {
        struct question q = {ANSWER, i, 0};
        TEST_CHECK(actor_request(i % 3 ? a : dead, message_of(ASK, &q, sizeof q), &refs[i]) == OK);
    }
    for (int i = 2; i < 300; i += 3)
        actor_request_drop(refs[i]);
    unsigned oks = 0, noprocs = 0;
    enum error e;
    while ((e = actor_request_wait(refs, 300, &index, &m, DEADLINE_NONE)) != ERR_INVALID) {
        oks += e == OK && index % 3 == 1 && *(uint64_t *)m->payload == index;
        noprocs += e == ERR_NOPROC && index % 3 == 0;
    }
    TEST_CHECK_(oks == 100 && noprocs == 100, "%u and %u", oks, noprocs);
    TEST_CHECK(actor_request(actor_self(), message_new(ASK, 0), &ref) == ERR_CALLING_SELF);
    TEST_CHECK(actor_request(a, NULL, &ref) == ERR_MEMORY);
    TEST_CHECK(actor_request_wait(NULL, 0, &index, &m, DEADLINE_NONE) == ERR_INVALID);
    gone(a);
    TEST_CHECK(!mail());
}

static void test_requests(void)
{
    node_sim(requests);
}

/* Records used up: refused with an error, and everything goes on when some are free again. */
static void no_records(void)
{
    actor_pid a = spawn(&server_class, SPAWN_HERE);
    static uint64_t refs[1000];
    size_t n = 0, index;
    enum error e;
    struct question q = {FORGET, 0, 0};
    while (n < 1000 && !(e = actor_request(a, message_of(ASK, &q, sizeof q), &refs[n])))
        n++;
    TEST_CHECK_(e == ERR_MEMORY && n > 10 && n < 1000, "%s after %zu", error_name(e), n);
    TEST_CHECK(actor_monitor(a, 0) == 0 && actor_timer(0, 1, 0) == 0 && actor_own(released, NULL) == 0);
    TEST_CHECK(actor_link(a) == ERR_MEMORY && actor_register("name", actor_self(), NULL) == ERR_MEMORY);
    TEST_CHECK(actor_join("group") == ERR_MEMORY && actor_watch(0, WATCH_READ) == 0);
    actor_pid newcomer = 0;
    struct start_result r;
    TEST_CHECK(actor_spawn(&(struct spawn_options){.class = &server_class, .link = true}, &newcomer) ==
               ERR_MEMORY);
    TEST_CHECK(actor_start(&(struct spawn_options){.class = &server_class, .monitor = true}, &r,
                           DEADLINE_NONE) == ERR_MEMORY);
    TEST_CHECK(actor_start(&(struct spawn_options){.class = &server_class, .name = "n"}, &r, DEADLINE_NONE) ==
               ERR_MEMORY);
    TEST_CHECK(actor_stop(a, reason_of(REASON_NORMAL), NULL, DEADLINE_NONE) == ERR_MEMORY);
    actor_request_drop(refs[--n]); /* one is free: enough for one end of a link, not for both */
    TEST_CHECK(actor_spawn(&(struct spawn_options){.class = &server_class, .link = true}, &newcomer) ==
               ERR_MEMORY);
    actor_request_drop(refs[--n]); /* and for a link without a monitor */
    TEST_CHECK(actor_spawn(&(struct spawn_options){.class = &server_class, .link = true, .monitor = true},
                           &newcomer) == ERR_MEMORY);
    while (n)
        if (actor_request_wait(refs, n, &index, NULL, DEADLINE_NONE) == ERR_UNANSWERED)
            refs[index] = refs[--n];
        else
            TEST_CHECK(false);
    settle();
    TEST_CHECK(!mail()); /* no EXIT of those that were never handed out */
    TEST_CHECK(scheduler_current->records_living == 0 && scheduler_current->living == 2);
    gone(a);
}

static void test_no_records(void)
{
    node_sim_with(no_records, &(struct sim_options){.seed = 1, .runtime.actors_max = 40});
}

/* A full mailbox: the caller hears of it wherever it is. */
static const struct actor_class small_class = {
    .name = "small", .state_size = sizeof(struct message *), .handle = server_handle, .mailbox_capacity = 2};

static void full(void)
{
    actor_pid a = spawn(&small_class, anywhere());
    uint64_t refs[5];
    size_t index, fulls = 0;
    actor_suspend(a);
    settle();
    struct question q = {ANSWER, 4, 0};
    for (int i = 0; i < 5; i++) {
        enum error e = actor_request(a, message_of(ASK, &q, sizeof q), &refs[i]);
        TEST_CHECK(e == OK || e == ERR_FULL); /* at once when it is here or known, else as an answer */
        fulls += e == ERR_FULL;
        if (e)
            refs[i] = 0;
    }
    settle();
    TEST_CHECK(ask(a, q, NULL, 0) == ERR_FULL);
    actor_resume(a);
    enum error e;
    unsigned oks = 0;
    while ((e = actor_request_wait(refs, 5, &index, NULL, DEADLINE_NONE)) != ERR_INVALID) {
        TEST_CHECK(e == OK || e == ERR_FULL);
        fulls += e == ERR_FULL;
        oks += e == OK;
    }
    TEST_CHECK(oks == 2 && fulls == 3);
    gone(a);
}

static void test_full(void)
{
    node_sim(full);
}

TEST_LIST
= {
    {"answered: once, by whoever it was passed on to, by its own block", test_answered},
    {"unanswered: forgotten, freed, passed on to the dead, crashed", test_unanswered},
    {"unanswered by who was started in vain", test_given_up},
    {"a call's block used for something else answers the call", test_reused},
    {"deferred and kept calls; death answers them", test_deferring},
    {"deferred for one that has died", test_deferred_for_the_dead},
    {"callers learn of the end when everything is released", test_told_last},
    {"too late", test_too_late},
    {"open requests", test_requests},
    {"records used up", test_no_records},
    {"full mailboxes refuse calls", test_full},
    {NULL, NULL},
};
