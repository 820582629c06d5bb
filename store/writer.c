#include "store/writer.h"

#include <stdio.h>

#include "runtime/pressure.h"
#include "runtime/runtime.h"
#include "runtime/telemetry.h"
#include "store/batch.h"

enum {
    WAKES_FEW = 64,
    EXIT_IO = 74,
    LINGER_NS_MAX = 1000000,
    LINGER_PAUSE_NS = 60000, /* between two that come: a scheduler that slept needs as long to wake */
    WRITER_LOAD = 3,
};

/* What one turn works on: the process has one writer at a time. */
struct turn {
    struct message **messages; /* BATCH_MAX */
    struct batch_item *items;  /* BATCH_MAX */
    size_t count;
    uint64_t bytes; /* of the messages */
    bool full;      /* the next command doesn't fit */
    /* how long it waits for more */
    size_t expected;
    uint64_t until, quiet, pause;
    uint64_t gathered; /* when the last one had come */
};

struct writer {
    struct store *store;
    uint64_t commit_ns;    /* the last one's */
    size_t answered_count; /* in the last turn */
    bool alone;            /* on a scheduler of its own */
    struct turn turn;
    uint32_t state; /* the store's, as last told */
};

/* ---- whom a commit wakes ---- */

/* So many of them: the first in the group have watched for longest. */
static void wake_topic(uint32_t topic, size_t most)
{
    char group[STORE_GROUP_SIZE];
    actor_pid few[WAKES_FEW], *pids = few;
    struct arena_mark mark = actor_arena_mark();
    store_group(topic, group);
    size_t count = actor_members(group, few, WAKES_FEW), room = WAKES_FEW;
    if (count > room && most > room && (pids = actor_try_alloc(STORE_WATCHERS_MAX * sizeof(*pids))) != NULL)
        count = actor_members(group, pids, room = STORE_WATCHERS_MAX);
    pids = pids ? pids : few;
    for (size_t i = 0; i < count && i < room && i < most; i++)
        (void)actor_cast(pids[i], STORE_WAKE, &topic, sizeof(topic));
    actor_arena_reset(mark);
}

static void wake(struct txn *txn)
{
    for (uint32_t word = 0; word < TXN_TOPICS / 64; word++)
        for (uint64_t bits = txn->wakes[word]; bits; bits &= bits - 1)
            wake_topic(word * 64 + (uint32_t)__builtin_ctzll(bits), STORE_WATCHERS_MAX);
    memset(txn->wakes, 0, sizeof(txn->wakes));
    if (txn->few.count > 0)
        wake_topic(txn->few.topic, txn->few.count);
    txn->few.count = 0;
}

/* ---- birth ---- */

static enum actor_step writer_init(void *state, const void *args, size_t args_size)
{
    struct writer *w = state;
    (void)args;
    (void)args_size;
    w->store = store_here();
    if (!w->store || store_state(w->store) == STORE_FAILED)
        actor_refuse(reason_error(ERR_UNAVAILABLE));
    w->turn.messages = actor_alloc(BATCH_MAX * sizeof(void *));
    w->turn.items = actor_alloc(BATCH_MAX * sizeof(*w->turn.items));
    w->state = store_state(w->store);
    w->alone = actor_scheduler_of(actor_self()) >= (int)runtime_schedulers();
    wake(&w->store->txn); /* whom a writer that was killed after its commit has left asleep */
    (void)actor_cast(actor_self(), WRITER_LOAD, NULL,
                     0); /* not here: those who only read needn't wait for it */
    return ACTOR_CONTINUE;
}

/* ---- answers ---- */

/* One that can't be made, because messages are used up, leaves the submitter without (ERR_UNANSWERED): unknown. The
 * command itself goes when the handler returns, with all others of the turn. */
static void answer(struct message *command, enum error e, const struct answer *a)
{
    struct writer_reply head = {.error = (uint32_t)e};
    uint32_t size = a ? a->size : 0;
    struct message *reply = message_new(WRITER_REPLY, sizeof(head) + size);
    if (reply) {
        memcpy(reply->payload, &head, sizeof(head));
        if (size)
            memcpy(reply->payload + sizeof(head), a->bytes, size);
        actor_reply(command, reply);
    }
}

/* ---- what has arrived ---- */

static enum error admitted(const struct command_class *class)
{
    static const enum pressure_priority priorities[] = {
        [COMMAND_NORMAL] = PRIORITY_NORMAL, [COMMAND_LOW] = PRIORITY_LOW, [COMMAND_HIGH] = PRIORITY_HIGH};
    enum pressure_level level = (enum pressure_level)actor_pressure();
    if (level < PRESSURE_DEGRADED)
        return OK;
    return pressure_admits(level, priorities[class->priority]) == PRESSURE_ADMIT ? OK : ERR_SHED;
}

static bool too_late(const struct writer_command *head)
{
    return head->until_ms && (int32_t)((uint32_t)(actor_now() / NS_PER_MS) - head->until_ms) > 0;
}

static void take(struct writer *w, struct message *m)
{
    struct turn *turn = &w->turn;
    struct writer_command head;
    if (m->size < sizeof(head) || m->kind != MESSAGE_CALL) {
        answer(m, ERR_INVALID, NULL);
        return;
    }
    memcpy(&head, m->payload, sizeof(head));
    const struct command_class *class = schema_command(w->store->schema, head.code);
    enum error e = !class                                               ? ERR_INVALID
                   : class->priority != COMMAND_HIGH && too_late(&head) ? ERR_TIMEOUT
                                                                        : admitted(class);
    if (e) {
        answer(m, e, NULL);
        return;
    }
    turn->items[turn->count] =
        (struct batch_item){.class = class,
                            .at_us = head.at_us,
                            .bytes = span_of(m->payload + sizeof(head), m->size - sizeof(head))};
    turn->messages[turn->count++] = m;
    turn->bytes += m->size;
}

struct fit {
    uint64_t room; /* bytes of further commands */
    bool full;     /* the next one doesn't fit: it and those behind it are for the next batch */
};

static bool is_command(const struct message *m, void *arg)
{
    struct fit *fit = arg;
    if (m->type != WRITER_COMMAND)
        return false;
    fit->full |= m->size > fit->room;
    return !fit->full;
}

/* Commands that are in the mailbox, as many as fit. */
static void gather(struct writer *w, uint64_t room)
{
    struct message *m;
    struct fit fit = {.room = room > w->turn.bytes ? room - w->turn.bytes : 0};
    while (w->turn.count < BATCH_MAX && (m = actor_receive_now(is_command, &fit)) != NULL) {
        fit.room -= m->size;
        take(w, m);
    }
    w->turn.full = fit.full;
}

/* ---- what comes while it is applied ---- */

/* Those who were just answered often have their next command ready in a moment. Committing without them would make
 * two commits of one, each as slow; so as long as commands keep coming in, up to as many as were answered, the commit
 * waits: at most for half of what the last one took, and for an eighth when nobody comes. */
static void expect(struct writer *w)
{
    uint64_t now = w->store->env->now(w->store->env);
    uint64_t longest = w->commit_ns / 2 < LINGER_NS_MAX ? w->commit_ns / 2 : LINGER_NS_MAX;
    struct turn *turn = &w->turn;
    turn->gathered = now;
    turn->expected = turn->count + w->answered_count; /* who waited already, and who may come back */
    turn->pause = w->commit_ns / 8 > LINGER_PAUSE_NS ? w->commit_ns / 8 : LINGER_PAUSE_NS;
    turn->until = now + longest;
    turn->quiet = now + turn->pause;
}

/* Only on a scheduler of its own: on another's those who are expected couldn't run meanwhile. */
static bool lingers(const struct writer *w)
{
    return w->alone && w->turn.count + w->answered_count > 2; /* more than one who goes on alone */
}

/* Waits for the next ones; false when the batch is complete. */
static bool wait(struct writer *w, uint64_t room)
{
    const struct turn *turn = &w->turn;
    uint64_t until = turn->until < turn->quiet ? turn->until : turn->quiet;
    size_t before = turn->count;
    do
        gather(w, room);
    while (turn->count == before && !turn->full && before < turn->expected && actor_listen(until));
    return turn->count > before;
}

static size_t more(void *arg, size_t count, uint64_t room)
{
    struct writer *w = arg;
    ASSERT(count == w->turn.count);
    bool came = wait(w, room);
    w->turn.gathered = w->store->env->now(w->store->env);
    if (came)
        w->turn.quiet = w->turn.gathered + w->turn.pause;
    return w->turn.count;
}

/* ---- after the commit ---- */

static void load(struct writer *w)
{
    enum error e = store_load(w->store);
    if (e)
        runtime_abandon(environment_exit_status(e), w->store->failure);
}

static void tell_state(struct writer *w)
{
    enum store_state state = store_state(w->store);
    if (state == w->state)
        return;
    w->state = state;
    TELEMETRY(STORE_STATE, 1, DIM(COMPONENT, "store"), DIM(REASON, store_state_name(state)));
}

/* A store that has failed ends the process: nobody may go on with what it remembers. */
static enum actor_step abandon(struct writer *w)
{
    tell_state(w);
    runtime_abandon(EXIT_IO, w->store->failure);
    return ACTOR_STOP;
}

static enum actor_step writer_handle(void *state, struct message *m)
{
    struct writer *w = state;
    if (m->type == WRITER_LOAD) {
        load(w);
        return ACTOR_CONTINUE;
    }
    if (m->type != WRITER_COMMAND) {
        actor_unknown(m);
        return ACTOR_CONTINUE;
    }
    struct turn *turn = &w->turn;
    turn->count = 0;
    turn->bytes = 0;
    take(w, m);
    gather(w, UINT64_MAX);
    if (!turn->count)
        return ACTOR_CONTINUE;
    expect(w);
    enum error e = batch_gather(w->store, turn->items, &turn->count, lingers(w) ? more : NULL, w);
    if (e == ERR_IO)
        return abandon(w); /* nobody is answered */
    w->commit_ns = w->store->env->now(w->store->env) - turn->gathered;
    w->answered_count = turn->count;
    for (size_t i = 0; i < turn->count; i++)
        answer(turn->messages[i], e ? e : turn->items[i].answer.error, e ? NULL : &turn->items[i].answer);
    (void)actor_listen(0); /* they have their answers; the rest can wait */
    wake(&w->store->txn);
    TELEMETRY(STORE_COMMIT, (int64_t)w->commit_ns, DIM(OUTCOME, error_name(e)));
    if (!e)
        batch_rest(w->store);
    if (store_state(w->store) == STORE_FAILED) /* these commands have their commit, the next ones won't */
        return abandon(w);
    tell_state(w);
    return ACTOR_CONTINUE;
}

const struct actor_class writer_class = {
    .name = "store.writer",
    .state_size = sizeof(struct writer),
    .init = writer_init,
    .handle = writer_handle,
    .mailbox_policy = MAILBOX_REFUSE,
    .mailbox_capacity = STORE_QUEUE_MAX,
    .stack_size = 256 * 1024,
    .arena_quota = 4u << 20,
    .runaway_ns = DEADLINE_NONE, /* a slow disk isn't an endless loop */
};
