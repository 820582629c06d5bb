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
    WRITER_LOAD = 4,
    WRITER_SERVE,       /* there is more for those that stand than the last batch had room for */
    STANDING_LOOKS = 8, /* whenever one says that it still stands, so many others are looked after */
};

/* What one turn works on: the process has one writer at a time. */
struct turn {
    struct message **messages; /* BATCH_MAX; NULL: nobody waits */
    struct stand **stands;     /* BATCH_MAX; NULL: it is no standing command, or it stands again */
    struct batch_item *items;  /* BATCH_MAX */
    size_t count;
    size_t settled;  /* of those before, the standing ones that found nothing stand again */
    uint32_t served; /* standing ones that were taken up */
    uint64_t bytes;  /* of the messages */
    bool full;       /* the next command doesn't fit */
    /* how long it waits for more */
    size_t expected;
    uint64_t until, quiet, pause;
    uint64_t gathered; /* when the last one had come */
};

struct writer {
    struct store *store;
    uint64_t commit_ns;       /* the last one's */
    size_t answered, callers; /* of the last turn: what came to something, and who had asked for it */
    bool alone;               /* on a scheduler of its own */
    bool lingers;             /* in this turn */
    struct turn turn;
    struct standing standing;
    uint32_t owed; /* things that nobody has been taken up for */
    bool tight;    /* so the store was behind the last turn */
};

/* ---- whom a commit wakes ---- */

/* So many of them: the first in the group have watched for longest. Returns how many there were. */
static size_t wake_group(const char *group, const void *word, size_t size, size_t most)
{
    actor_pid few[WAKES_FEW], *pids = few;
    struct arena_mark mark = actor_arena_mark();
    size_t woken = 0;
    size_t count = actor_members(group, few, WAKES_FEW), room = WAKES_FEW;
    if (count > room && most > room && (pids = actor_try_alloc(STORE_WATCHERS_MAX * sizeof(*pids))) != NULL)
        count = actor_members(group, pids, room = STORE_WATCHERS_MAX);
    pids = pids ? pids : few;
    for (; woken < count && woken < room && woken < most; woken++)
        (void)actor_cast(pids[woken], STORE_WAKE, word, size);
    actor_arena_reset(mark);
    return woken;
}

static void wake_topic(uint32_t topic)
{
    char group[STORE_GROUP_SIZE];
    store_group(topic, group);
    (void)wake_group(group, &topic, sizeof(topic), STORE_WATCHERS_MAX);
}

static void wake_part(const struct txn_part *few)
{
    char group[STORE_GROUP_SIZE];
    struct store_part word = {.topic = few->topic, .part = few->part, .other = few->other};
    store_part_group(few->topic, few->part, group);
    size_t woken = wake_group(group, &word, sizeof(word), few->count);
    store_part_group(few->topic, few->other, group);
    (void)wake_group(group, &word, sizeof(word), few->count - woken);
}

static void wake(struct txn *txn)
{
    for (uint32_t word = 0; word < TXN_TOPICS / 64; word++)
        for (uint64_t bits = txn->wakes[word]; bits; bits &= bits - 1)
            wake_topic(word * 64 + (uint32_t)__builtin_ctzll(bits));
    memset(txn->wakes, 0, sizeof(txn->wakes));
    for (uint32_t i = 0; i < txn->parts_count; i++)
        wake_part(&txn->parts[i]);
    txn->parts_count = 0;
}

/* Those that had a command standing with the writer before have none with this one. */
static void wake_stood(const struct schema *schema)
{
    for (uint32_t i = 0; i < schema->commands_count; i++)
        if (schema->commands[i]->topic)
            wake_topic(schema->commands[i]->topic);
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
    w->turn.stands = actor_alloc(BATCH_MAX * sizeof(void *));
    w->turn.items = actor_alloc(BATCH_MAX * sizeof(*w->turn.items));
    standing_init(&w->standing);
    w->alone = actor_scheduler_of(actor_self()) >= (int)runtime_schedulers();
    wake(&w->store->txn); /* whom a writer that was killed after its commit has left asleep */
    wake_stood(w->store->schema);
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

/* The same to whom a standing command belongs. */
static void give(actor_pid who, uint64_t number, enum error e, const struct answer *a)
{
    struct store_given head = {.number = number, .error = (uint32_t)e};
    uint32_t size = a ? a->size : 0;
    struct message *m = message_new(STORE_GIVEN, sizeof(head) + size);
    if (!m)
        return;
    memcpy(m->payload, &head, sizeof(head));
    if (size)
        memcpy(m->payload + sizeof(head), a->bytes, size);
    (void)actor_send(who, m);
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

/* A revocation that comes late is better than none; but what a claim takes when nobody waits for it any more, nobody has. */
static bool may_be_late(const struct command_class *class)
{
    return class->priority == COMMAND_HIGH && !class->topic;
}

static bool too_late(const struct writer_command *head)
{
    return head->until_ms && (int32_t)((uint32_t)(actor_now() / NS_PER_MS) - head->until_ms) > 0;
}

static void add(struct turn *turn, const struct command_class *class, uint64_t at_us, struct span bytes,
                struct message *m, struct stand *stand)
{
    turn->items[turn->count] =
        (struct batch_item){.class = class, .at_us = at_us, .bytes = bytes, .stands = stand != NULL};
    turn->messages[turn->count] = m;
    turn->stands[turn->count++] = stand;
    turn->bytes += bytes.size;
}

static void add_stand(struct turn *turn, struct stand *stand, uint64_t at_us)
{
    add(turn, stand->class, at_us, span_of(stand->bytes, stand->size), NULL, stand);
}

/* It came with this very batch: what becomes of it will be told. */
static bool stands_here(const struct turn *turn, actor_pid who, uint64_t number)
{
    for (size_t i = 0; i < turn->count; i++)
        if (turn->stands[i] && turn->stands[i]->who == who && turn->stands[i]->number == number)
            return true;
    return false;
}

/* A copy of it; it is a command of this batch first. */
static void take_standing(struct writer *w, const struct message *m)
{
    struct writer_stand head;
    if (m->size < sizeof(head) || m->kind != MESSAGE_CAST)
        return;
    memcpy(&head, m->payload, sizeof(head));
    const struct command_class *class = schema_command(w->store->schema, head.code);
    size_t size = m->size - sizeof(head);
    if (!class || !class->topic || size > STANDING_BYTES_MAX) {
        give(m->from, head.number, ERR_INVALID, NULL);
        return;
    }
    struct stand *stand =
        head.again ? standing_find(&w->standing, m->from, head.number) : standing_new(&w->standing);
    if (head.again)
        standing_tidy(&w->standing, STANDING_LOOKS);
    if (!stand && head.again && stands_here(&w->turn, m->from, head.number))
        return;
    if (!stand) { /* again: behind what became of it, or instead, where his mailbox had no room for that */
        give(m->from, head.number, head.again ? ERR_NOT_FOUND : ERR_FULL, NULL);
        return;
    }
    stand->who = m->from;
    stand->number = head.number;
    stand->class = class;
    stand->size = (uint32_t)size;
    memcpy(stand->bytes, m->payload + sizeof(head), size);
    add_stand(&w->turn, stand, head.at_us);
}

static void take_call(struct writer *w, struct message *m)
{
    struct writer_command head;
    if (m->size < sizeof(head) || m->kind != MESSAGE_CALL) {
        answer(m, ERR_INVALID, NULL);
        return;
    }
    memcpy(&head, m->payload, sizeof(head));
    const struct command_class *class = schema_command(w->store->schema, head.code);
    enum error e = !class                                   ? ERR_INVALID
                   : !may_be_late(class) && too_late(&head) ? ERR_TIMEOUT
                                                            : admitted(class);
    if (e) {
        answer(m, e, NULL);
        return;
    }
    add(&w->turn, class, head.at_us, span_of(m->payload + sizeof(head), m->size - sizeof(head)), m, NULL);
}

static void take(struct writer *w, struct message *m)
{
    if (m->type == WRITER_STAND)
        take_standing(w, m);
    else
        take_call(w, m);
}

struct fit {
    uint64_t room; /* bytes of further commands */
    bool full;     /* the next one doesn't fit: it and those behind it are for the next batch */
};

static bool is_command(const struct message *m, void *arg)
{
    struct fit *fit = arg;
    if (m->type != WRITER_COMMAND && m->type != WRITER_STAND)
        return false;
    fit->full |= m->size > fit->room;
    return !fit->full;
}

/* Commands that are in the mailbox, as many as fit. */
static void gather(struct writer *w, uint64_t room)
{
    struct message *m;
    ASSERT(w->turn.bytes <= room); /* that is how much was allocated for, or more */
    struct fit fit = {.room = room - w->turn.bytes};
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
    turn->expected = turn->count + w->answered; /* who waited already, and who may come back */
    turn->pause = w->commit_ns / 8 > LINGER_PAUSE_NS ? w->commit_ns / 8 : LINGER_PAUSE_NS;
    turn->until = now + longest;
    turn->quiet = now + turn->pause;
}

/* Whoever sends several commands in a row is one. */
static bool another_caller(const struct turn *turn, size_t i)
{
    const struct message *m = turn->messages[i], *before = i > 0 ? turn->messages[i - 1] : NULL;
    return m && (!before || before->from != m->from);
}

/* Only on a scheduler of its own: on another's those who are expected couldn't run meanwhile. */
static bool lingers(const struct writer *w)
{
    size_t calls = 0;
    for (size_t i = 0; i < w->turn.count && calls <= 2; i++)
        calls += another_caller(&w->turn, i);
    return w->alone && calls + w->callers > 2; /* more than one who goes on alone */
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

/* ---- those that stand ---- */

/* Of commands that were applied, the standing ones that found nothing stand again; and those for which a tight store has no room, whose
 * actors would only come again and again. */
static void settle(struct writer *w)
{
    struct turn *turn = &w->turn;
    for (; turn->settled < turn->count; turn->settled++) {
        struct stand **stand = &turn->stands[turn->settled];
        enum error e = turn->items[turn->settled].answer.error;
        if (!*stand || (e != ERR_NOT_FOUND && e != ERR_NO_SPACE))
            continue;
        standing_put(&w->standing, *stand);
        *stand = NULL;
    }
}

/* It says when it was sent, which may be long ago. */
static void renew(const struct store *store, struct stand *stand)
{
    union {
        uint8_t bytes[COMMAND_STRUCT_MAX];
        uint64_t aligned;
    } command;
    uint8_t bytes[STANDING_BYTES_MAX];
    const struct record_class *record = stand->class->record;
    enum error e = record_decode(record, record->version, span_of(stand->bytes, stand->size), &command);
    ASSERT(!e); /* it found nothing, or no room: so it was read already */
    stand->class->renew(&command, store_steady_us(store));
    size_t size = record_encode(record, &command, bytes, sizeof(bytes));
    ASSERT(size == stand->size);
    memcpy(stand->bytes, bytes, size);
}

/* As many as there are things for them, and as fit. */
static bool serve(struct writer *w, uint32_t offered, uint64_t room)
{
    struct turn *turn = &w->turn;
    size_t before = turn->count;
    struct stand *stand;
    while (turn->served < offered && turn->count < BATCH_MAX && turn->bytes + STANDING_BYTES_MAX <= room &&
           (stand = standing_take(&w->standing)) != NULL) {
        renew(w->store, stand);
        add_stand(turn, stand, store_time_us());
        turn->served++;
    }
    return turn->count > before;
}

static size_t more(void *arg, size_t count, uint64_t room)
{
    struct writer *w = arg;
    ASSERT(count == w->turn.count);
    settle(w);
    if (serve(w, w->owed + w->store->txn.few.count, room))
        return w->turn.count;
    if (!w->lingers)
        return count;
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

/* What was there for those who stand while the store was tight is theirs when it is open again. */
static void look_for_room(struct writer *w)
{
    bool tight = store_state(w->store) == STORE_TIGHT;
    if (w->tight && !tight && w->standing.count > 0) {
        w->owed = w->standing.count;
        (void)actor_cast(actor_self(), WRITER_SERVE, NULL, 0);
    }
    w->tight = tight;
}

/* A store that has failed ends the process: nobody may go on with what it remembers. */
static enum actor_step abandon(struct writer *w)
{
    store_tell_state(w->store);
    runtime_abandon(EXIT_IO, w->store->failure);
    return ACTOR_STOP;
}

static void begin(struct turn *turn)
{
    turn->count = turn->settled = 0;
    turn->served = 0;
    turn->bytes = 0;
}

static void answer_one(struct writer *w, size_t i, enum error e)
{
    const struct answer *a = &w->turn.items[i].answer;
    answer(w->turn.messages[i], e ? e : a->error, e ? NULL : a);
    w->callers += another_caller(&w->turn, i);
    w->answered++;
}

static void give_one(struct writer *w, size_t i, enum error e)
{
    const struct answer *a = &w->turn.items[i].answer;
    struct stand *stand = w->turn.stands[i];
    give(stand->who, stand->number, e ? e : a->error, e ? NULL : a);
    standing_free(&w->standing, stand);
    w->answered++;
}

/* Those first that are given something: their work begins with it, and who has asked may be told over a slow way meanwhile. */
static void answer_all(struct writer *w, enum error e)
{
    w->answered = w->callers = 0;
    for (size_t i = 0; i < w->turn.count; i++)
        if (w->turn.stands[i])
            give_one(w, i, e);
    for (size_t i = 0; i < w->turn.count; i++)
        if (w->turn.messages[i])
            answer_one(w, i, e);
}

/* What nobody was taken up for, though somebody stands, is for the next batch. */
static void owe(struct writer *w, uint32_t more_offered)
{
    uint32_t offered = w->owed + more_offered;
    w->owed = offered > w->turn.served ? offered - w->turn.served : 0;
    atomic_store_explicit(&w->store->standing, w->standing.count, memory_order_relaxed);
    if (w->standing.count == 0)
        w->owed = 0;
    else if (w->owed)
        (void)actor_cast(actor_self(), WRITER_SERVE, NULL, 0);
}

static uint64_t commits(const struct writer *w)
{
    return atomic_load_explicit(&w->store->commits, memory_order_relaxed);
}

static enum actor_step run(struct writer *w)
{
    struct turn *turn = &w->turn;
    struct txn *txn = &w->store->txn;
    const uint64_t before = commits(w);
    expect(w);
    w->lingers = lingers(w);
    enum error e = batch_gather(w->store, turn->items, &turn->count, more, w);
    if (e == ERR_IO)
        return abandon(w); /* nobody is answered */
    w->commit_ns = w->store->env->now(w->store->env) - turn->gathered;
    if (!e)
        settle(w);
    answer_all(w, e);
    (void)actor_listen(0); /* they have their answers; the rest can wait */
    wake(txn);
    owe(w, e ? 0 : txn->few.count);
    (void)actor_listen(0);         /* and who waits for what has changed needn't wait for the next commit */
    if (e || commits(w) != before) /* one that wrote nothing has no commit, and took no time for one */
        TELEMETRY(STORE_COMMIT, (int64_t)w->commit_ns, DIM(OUTCOME, error_name(e)));
    if (!e)
        batch_rest(w->store);
    if (store_state(w->store) == STORE_FAILED) /* these commands have their commit, the next ones won't */
        return abandon(w);
    store_tell_state(w->store);
    look_for_room(w);
    return ACTOR_CONTINUE;
}

static enum actor_step writer_handle(void *state, struct message *m)
{
    struct writer *w = state;
    begin(&w->turn);
    switch (m->type) {
    case WRITER_LOAD:
        load(w);
        return ACTOR_CONTINUE;
    case WRITER_SERVE:
        (void)serve(w, w->owed, UINT64_MAX);
        break;
    case WRITER_COMMAND:
    case WRITER_STAND:
        take(w, m);
        break;
    default:
        actor_unknown(m);
        return ACTOR_CONTINUE;
    }
    gather(w, UINT64_MAX);
    return w->turn.count ? run(w) : ACTOR_CONTINUE;
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
