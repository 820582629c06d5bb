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
    LOOK_NS = 1000,
    WRITER_LOAD = 3,
};

/* What one turn works on: the process has one writer at a time. */
struct turn {
    struct message **messages; /* BATCH_MAX */
    struct batch_item *items;  /* BATCH_MAX */
    size_t count;
};

struct writer {
    struct store *store;
    uint64_t commit_ns;    /* the last one's */
    size_t answered_count; /* in the last turn */
    struct turn turn;
    uint32_t state; /* the store's, as last told */
};

/* ---- whom a commit wakes ---- */

static void wake_topic(uint32_t topic)
{
    char group[STORE_GROUP_SIZE];
    actor_pid few[WAKES_FEW], *pids = few;
    struct arena_mark mark = actor_arena_mark();
    store_group(topic, group);
    size_t count = actor_members(group, few, WAKES_FEW), room = WAKES_FEW;
    if (count > room && (pids = actor_try_alloc(STORE_WATCHERS_MAX * sizeof(*pids))) != NULL)
        count = actor_members(group, pids, room = STORE_WATCHERS_MAX);
    pids = pids ? pids : few;
    for (size_t i = 0; i < count && i < room; i++)
        (void)actor_cast(pids[i], STORE_WAKE, &topic, sizeof(topic));
    actor_arena_reset(mark);
}

static void wake(struct txn *txn)
{
    for (uint32_t word = 0; word < TXN_TOPICS / 64; word++)
        for (uint64_t bits = txn->wakes[word]; bits; bits &= bits - 1)
            wake_topic(word * 64 + (uint32_t)__builtin_ctzll(bits));
    memset(txn->wakes, 0, sizeof(txn->wakes));
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
    enum error e = class ? admitted(class) : ERR_INVALID;
    if (e) {
        answer(m, e, NULL);
        return;
    }
    turn->items[turn->count] =
        (struct batch_item){.class = class,
                            .at_us = head.at_us,
                            .bytes = span_of(m->payload + sizeof(head), m->size - sizeof(head))};
    turn->messages[turn->count++] = m;
}

static bool is_command(const struct message *m, void *arg)
{
    (void)arg;
    return m->type == WRITER_COMMAND;
}

static void gather(struct writer *w)
{
    struct message *m;
    while (w->turn.count < BATCH_MAX && (m = actor_receive(is_command, NULL, 0)) != NULL)
        take(w, m);
}

/* Those who were just answered often have their next command ready in a moment. Committing without them would make
 * two commits of one, each as slow; so as long as commands keep coming in, up to as many as were answered, the commit
 * waits: at most for half of what the last one took, and for an eighth when nobody comes. */
static void linger(struct writer *w)
{
    uint64_t longest = w->commit_ns / 2 < LINGER_NS_MAX ? w->commit_ns / 2 : LINGER_NS_MAX;
    size_t expected = w->turn.count + w->answered_count; /* who waited already, and who may come back */
    uint64_t until = actor_now() + longest;
    uint64_t pause = w->commit_ns / 8 > LINGER_PAUSE_NS ? w->commit_ns / 8 : LINGER_PAUSE_NS;
    uint64_t quiet = actor_now() + pause;
    while (w->turn.count < expected && actor_now() < until && actor_now() < quiet) {
        size_t before = w->turn.count;
        actor_sleep(actor_now() + LOOK_NS); /* a turn ends: answers go out, and what has arrived comes in */
        gather(w);
        if (w->turn.count > before)
            quiet = actor_now() + pause;
    }
}

/* ---- after the commit ---- */

static void load(struct writer *w)
{
    enum error e = store_load(w->store);
    if (e) {
        snprintf(w->store->failure, sizeof(w->store->failure), "the ledger can't be read: %s", error_name(e));
        runtime_abandon(environment_exit_status(e), w->store->failure);
    }
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
    w->turn.count = 0;
    take(w, m);
    gather(w);
    if (w->turn.count + w->answered_count > 2) /* more than one who goes on alone */
        linger(w);
    struct turn *turn = &w->turn;
    if (!turn->count)
        return ACTOR_CONTINUE;
    uint64_t began = w->store->env->now(w->store->env);
    enum error e = batch_run(w->store, turn->items, turn->count);
    if (e == ERR_IO)
        return abandon(w); /* nobody is answered */
    w->commit_ns = w->store->env->now(w->store->env) - began;
    w->answered_count = turn->count;
    for (size_t i = 0; i < turn->count; i++)
        answer(turn->messages[i], e ? e : turn->items[i].answer.error, e ? NULL : &turn->items[i].answer);
    wake(&w->store->txn);
    TELEMETRY(STORE_COMMIT, (int64_t)w->commit_ns, DIM(OUTCOME, error_name(e)));
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
