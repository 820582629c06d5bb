/* Actors of a simulated node that do what the input says, one byte a deed: births and deaths, messages under each mailbox
 * policy, calls, promises, links, monitors, names, groups, timers. Nothing of that may end the process or leave anything
 * behind: when the node has been wound down, every book reads zero.
 */
#include "runtime/blob.h"
#include "runtime/scheduler.h"
#include "runtime/sim.h"
#include "runtime/telemetry.h"
#include "tests/fuzz/bytes.h"

enum {
    KNOWN = 16,       /* pids, and refs of each kind, that deeds may mean */
    DEEDS_MAX = 600,  /* of one input */
    DEEDS_A_TURN = 4, /* at most, in one callback */
    STEPS_MAX = 2000000
};

static struct bytes input;
static unsigned deeds;
static bool going;
static actor_pid known[KNOWN];
static unsigned known_count;

/* What one actor holds: only its own references mean anything to it. */
struct puppet {
    uint64_t requests[4], monitors[4], timers[4], owned[4];
    struct actor_from promises[4];
    struct message *kept;
    unsigned at;
};

static void remember(actor_pid pid)
{
    known[known_count++ % KNOWN] = pid;
}

static actor_pid somebody(void)
{
    return known[take(&input) % KNOWN];
}

static const char *some_name(void)
{
    static const char *const names[] = {"a", "b", "c", "d", "", "a name that is neither short nor long"};
    return names[take(&input) % 6];
}

static uint64_t soon(void)
{
    uint8_t n = take(&input);
    return n == 255 ? actor_now() : actor_now() + (uint64_t)n * 100 * NS_PER_US;
}

static struct message *some_message(void)
{
    static const uint32_t sizes[] = {0,    8,     MESSAGE_SMALL,      MESSAGE_SMALL + 1,
                                     1000, 20000, MESSAGE_PAYLOAD_MAX};
    uint8_t n = take(&input);
    struct message *m = message_new(1 + n % 3u, sizes[n / 3 % 7]);
    ASSERT(m);
    memset(m->payload, n, m->size);
    return m;
}

static struct reason some_reason(void)
{
    uint8_t n = take(&input);
    struct reason why = reason_of((enum reason_kind)(n % REASON_KIND_COUNT));
    why.code = n;
    return n & 64 ? reason_with_detail(why, "detail", n & 7) : why;
}

static int somewhere(void)
{
    return take(&input) % 4 ? SPAWN_HERE : SPAWN_ON(take(&input) % runtime_schedulers());
}

static bool owned_now[256];
static void release(void *arg)
{
    bool *mark = arg;
    ASSERT(*mark);
    *mark = false;
}

static uint64_t own_something(void)
{
    for (size_t i = 0; i < 256; i++) {
        if (owned_now[i])
            continue;
        owned_now[i] = true;
        uint64_t ref = actor_own(release, &owned_now[i]);
        ASSERT(ref);
        return ref;
    }
    return 0;
}

static const struct actor_class *some_class(void);

static struct spawn_options some_birth(void)
{
    uint8_t n = take(&input);
    return (struct spawn_options){
        .class = some_class(),
        .name = n & 8 ? some_name() : NULL,
        .args = n & 16 ? "arguments" : NULL,
        .args_size = n & 16 ? 9 : 0,
        .link = n & 1,
        .monitor = n & 2,
        .tag = n,
        .scheduler = somewhere(),
    };
}

static bool of_type(const struct message *m, void *arg)
{
    return m->type == *(uint32_t *)arg;
}

static bool visit(void *context, const char *name, size_t length, actor_pid pid)
{
    (void)context;
    ASSERT(pid && length && name[length] == 0);
    return true;
}

enum deed {
    SPAWN,
    START,
    SEND,
    SEND_WAIT,
    SEND_NAME,
    CALL,
    CALL_NAME,
    REQUEST,
    REQUEST_WAIT,
    REQUEST_DROP,
    DEFER,
    REPLY,
    REPLY_LATER,
    RECEIVE,
    KEEP,
    LET_GO,
    LINK,
    UNLINK,
    MONITOR,
    DEMONITOR,
    TRAP,
    KILL,
    SIGNAL,
    STOP,
    REGISTER,
    UNREGISTER,
    WHEREIS,
    JOIN,
    LEAVE,
    MEMBERS,
    TIMER,
    CANCEL,
    IDLE,
    SLEEP,
    YIELD,
    ALLOC,
    OWN,
    RELEASE,
    STALE,
    SUSPEND,
    RESUME,
    INSPECT,
    EXIT,
    RETURN,
    DEED_COUNT
};

/* m is what is being handled, NULL when it has been given away or there is none. False: the callback is over. */
static bool act(struct puppet *p, struct message **m)
{
    struct message *reply = NULL;
    struct start_result born;
    struct actor_info info;
    actor_pid pids[8], pid;
    uint64_t remaining;
    size_t index;
    uint32_t type;
    unsigned at = p->at++ % 4;
    switch ((enum deed)(take(&input) % DEED_COUNT)) {
    case SPAWN: {
        struct spawn_options o = some_birth();
        if (actor_spawn(&o, &pid) == OK)
            remember(pid);
        break;
    }
    case START: {
        struct spawn_options o = some_birth();
        if (actor_start(&o, &born, soon()) == OK)
            remember(born.pid);
        reason_drop(&born.why);
        break;
    }
    case SEND:
        pid = somebody();
        actor_send(pid, some_message());
        break;
    case SEND_WAIT:
        pid = somebody();
        reply = some_message();
        actor_send_wait(pid, reply, soon());
        break;
    case SEND_NAME:
        actor_send_name(some_name(), some_message());
        break;
    case CALL:
        pid = somebody();
        reply = some_message();
        actor_call(pid, reply, take(&input) & 1 ? &reply : NULL, soon());
        break;
    case CALL_NAME:
        actor_call_name(some_name(), some_message(), &reply, soon());
        break;
    case REQUEST:
        if (p->requests[at])
            actor_request_drop(p->requests[at]);
        p->requests[at] = 0;
        actor_request(somebody(), some_message(), &p->requests[at]);
        break;
    case REQUEST_WAIT:
        if (p->requests[0] && p->requests[1] &&
            actor_request_wait(p->requests, 2, &index, &reply, soon()) != ERR_TIMEOUT)
            p->requests[index] = 0;
        break;
    case REQUEST_DROP:
        if (p->requests[at])
            actor_request_drop(p->requests[at]);
        p->requests[at] = 0;
        break;
    case DEFER:
        if (*m && (*m)->kind == MESSAGE_CALL && !p->promises[at].ref)
            p->promises[at] = actor_defer(*m);
        break;
    case REPLY:
        if (*m)
            actor_reply(*m, some_message());
        break;
    case REPLY_LATER:
        if (p->promises[at].ref)
            actor_reply_to(p->promises[at], some_message());
        p->promises[at].ref = 0;
        break;
    case RECEIVE:
        type = take(&input) % 4;
        reply = actor_receive(type ? of_type : NULL, &type, soon());
        if (reply && take(&input) & 1)
            message_free(reply);
        break;
    case KEEP:
        if (*m && !p->kept) {
            message_keep(*m);
            p->kept = *m;
            *m = NULL;
        }
        break;
    case LET_GO:
        if (p->kept && take(&input) & 1)
            message_free(p->kept);
        else if (p->kept && p->kept->type <= MESSAGE_USER_MAX)
            actor_send(somebody(), p->kept);
        else
            break;
        p->kept = NULL;
        break;
    case LINK:
        actor_link(somebody());
        break;
    case UNLINK:
        actor_unlink(somebody());
        break;
    case MONITOR:
        p->monitors[at] =
            take(&input) & 1 ? actor_monitor(somebody(), at) : actor_monitor_name(some_name(), at);
        break;
    case DEMONITOR:
        actor_demonitor(p->monitors[at]);
        break;
    case TRAP:
        actor_trap_exits(take(&input) & 1);
        break;
    case KILL:
        actor_kill(somebody());
        break;
    case SIGNAL:
        pid = somebody();
        actor_exit_signal(pid, some_reason());
        break;
    case STOP: {
        struct reason why = {0};
        pid = somebody();
        struct reason wish = some_reason();
        if (actor_stop(pid, wish, &why, soon()) == OK)
            reason_drop(&why);
        break;
    }
    case REGISTER:
        pid = somebody();
        actor_register(some_name(), take(&input) & 1 ? actor_self() : pid, &pid);
        break;
    case UNREGISTER:
        actor_unregister(some_name());
        break;
    case WHEREIS:
        actor_whereis(some_name());
        actor_each_name("", visit, NULL);
        break;
    case JOIN:
        actor_join(some_name());
        break;
    case LEAVE:
        actor_leave(some_name());
        break;
    case MEMBERS:
        actor_members(some_name(), pids, 8);
        break;
    case TIMER:
        remaining = soon();
        p->timers[at] = actor_timer(remaining, take(&input) % 3, at);
        break;
    case CANCEL:
        actor_timer_cancel(p->timers[at], &remaining);
        break;
    case IDLE:
        actor_idle_timeout(soon());
        break;
    case SLEEP:
        actor_sleep(soon());
        break;
    case YIELD:
        actor_yield();
        break;
    case ALLOC:
        remaining = take_n(&input, 2);
        memset(actor_alloc(remaining), 1, remaining);
        break;
    case OWN:
        if (!p->owned[at])
            p->owned[at] = own_something();
        break;
    case RELEASE:
        if (p->owned[at])
            actor_release(p->owned[at]);
        p->owned[at] = 0;
        break;
    case STALE: /* references of others, of nobody, of long ago */
        actor_demonitor(take_n(&input, 8));
        actor_timer_cancel(take_n(&input, 8), NULL);
        break;
    case SUSPEND:
        actor_suspend(somebody());
        break;
    case RESUME:
        actor_resume(somebody());
        break;
    case INSPECT:
        actor_inspect(somebody(), &info, soon());
        break;
    case EXIT:
        actor_exit(some_reason());
    case RETURN:
    case DEED_COUNT:
        return false;
    }
    return true;
}

static enum actor_step perform(struct puppet *p, struct message *m)
{
    for (unsigned n = DEEDS_A_TURN; n && going && input.left && deeds < DEEDS_MAX; n--, deeds++)
        if (!act(p, &m))
            return (enum actor_step)(take(&input) % 5);
    return ACTOR_CONTINUE;
}

static enum actor_step puppet_handle(void *state, struct message *m)
{
    return perform(state, m);
}

static enum actor_step puppet_init(void *state, const void *args, size_t args_size)
{
    (void)args;
    ASSERT(args_size == 0 || args_size == 9);
    return take(&input) & 1 ? perform(state, NULL) : ACTOR_CONTINUE;
}

static enum actor_step puppet_proceed(void *state)
{
    return perform(state, NULL);
}

static void puppet_terminate(void *state, const struct reason *why)
{
    char text[REASON_TEXT_MAX];
    reason_format(why, text, sizeof text);
    (void)perform(state, NULL);
}

#define PUPPET(...)                                                                                    \
    {                                                                                                  \
        .state_size = sizeof(struct puppet), .init = puppet_init, .handle = puppet_handle,             \
        .proceed = puppet_proceed, .terminate = puppet_terminate, .arena_quota = 1u << 18, __VA_ARGS__ \
    }
static const struct actor_class classes[] = {
    PUPPET(.name = "refusing", .mailbox_capacity = 3),
    PUPPET(.name = "dropping", .mailbox_capacity = 3, .mailbox_policy = MAILBOX_DROP_OLDEST),
    PUPPET(.name = "waiting", .mailbox_capacity = 2, .mailbox_policy = MAILBOX_WAIT),
    PUPPET(.name = "trapping", .mailbox_capacity = 3, .trap_exits = true),
    PUPPET(.name = "roomy", .trap_exits = true, .stack_size = 256 * 1024),
};

static const struct actor_class *some_class(void)
{
    return &classes[take(&input) % 5];
}

/* Begins the play, and lets time pass until nothing is left of the input, or nobody does anything any more. */
static enum actor_step root_init(void *state, const void *args, size_t args_size)
{
    (void)state;
    (void)args;
    (void)args_size;
    return ACTOR_PROCEED;
}

static enum actor_step root_proceed(void *state)
{
    (void)state;
    for (unsigned rounds = 0; input.left && deeds < DEEDS_MAX && rounds < 100; rounds++) {
        const struct spawn_options o = {.class = some_class(), .scheduler = somewhere()};
        actor_pid pid;
        if (actor_spawn(&o, &pid) == OK) {
            remember(pid);
            actor_send(pid, some_message());
        }
        actor_sleep(actor_deadline_ms(1));
    }
    going = false;
    return ACTOR_STOP;
}

static enum actor_step root_handle(void *state, struct message *m)
{
    (void)state;
    (void)m;
    return ACTOR_CONTINUE;
}

static const struct actor_class root_class = {
    .name = "root", .init = root_init, .proceed = root_proceed, .handle = root_handle, .trap_exits = true};

static void quiet(const char *line, size_t size)
{
    (void)line;
    (void)size;
}

static void wind_down(struct runtime *rt)
{
    for (int pass = 0; pass < 3; pass++) { /* what one says to another in the end is heard in the next pass */
        for (uint32_t i = 0; i < rt->schedulers_count; i++) {
            scheduler_current = rt->schedulers[i];
            telemetry_shard_enter(scheduler_current->telemetry);
            scheduler_wind_down(scheduler_current);
        }
    }
    telemetry_shard_enter(NULL);
    scheduler_current = NULL;
}

static void check_books(struct runtime *rt)
{
    struct pool_stats p;
    for (uint32_t i = 0; i < rt->schedulers_count; i++) {
        struct scheduler *s = rt->schedulers[i];
        ASSERT(s->living == 0);
        ASSERT(s->records_living == 0);
        ASSERT(wheel_count(&s->wheel) == 0);
        ASSERT(s->watches == 0);
    }
    for (uint32_t i = 0; i < MESSAGE_BLOCKS; i++) {
        pool_depot_stats(rt->message_depots[i], &p);
        ASSERT(p.in_use == 0);
    }
    pool_depot_stats(rt->chunk_depot, &p);
    ASSERT(p.in_use == 0);
    ASSERT(blob_count() == 0);
    for (size_t i = 0; i < 256; i++)
        ASSERT(!owned_now[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input = (struct bytes){data, size};
    uint8_t how = take(&input);
    deeds = known_count = 0;
    memset(known, 0, sizeof known);
    going = true;
    struct sim *sim = sim_create(&(struct sim_options){
        .seed = take_n(&input, 2),
        .schedulers = 1 + how % 3,
        .order = (enum sim_order)(how / 3 % 3),
        .runtime = {.actors_max = 1000, .names_max = 16, .no_containment = true, .log = quiet},
    });
    ASSERT(sim);
    enum error e = runtime_spawn(sim_runtime(sim), &(struct spawn_options){.class = &root_class}, NULL);
    ASSERT(e == OK);
    sim_run(sim, STEPS_MAX);
    ASSERT(!going && sim_exit_status(sim) == 0);
    wind_down(sim_runtime(sim));
    check_books(sim_runtime(sim));
    sim_destroy(sim);
    return 0;
}
