#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/hex.h"
#include "runtime/telemetry.h"
#include "store/aside.h"
#include "store/audit.h"
#include "store/batch.h"
#include "store/counter.h"
#include "store/journal.h"
#include "store/ledger.h"
#include "store/meta.h"
#include "store/standing.h"
#include "store/steady.h"
#include "store/view.h"
#include "store/writer.h"

enum { LEDGER_MAX = 4u << 20 };

const char *store_state_name(enum store_state state)
{
    static const char *const names[] = {
#define X(id, name) [id] = name,
        STORE_STATES(X)
#undef X
    };
    return state < sizeof(names) / sizeof(*names) ? names[state] : "unknown";
}

enum store_state store_state(const struct store *store)
{
    return (enum store_state)atomic_load(&store->state);
}

void store_tell_state(struct store *store)
{
    enum store_state state = store_state(store);
    if (atomic_exchange(&store->told, state) != (uint32_t)state)
        TELEMETRY(STORE_STATE, 1, DIM(COMPONENT, "store"), DIM(REASON, store_state_name(state)));
}

uint64_t store_retained_us(const struct store *store)
{
    return atomic_load_explicit(&store->retained_us, memory_order_relaxed);
}

/* ---- opening ---- */

static enum error say(enum error e, const char *dir, const char *what, char *text, size_t size)
{
    if (e)
        snprintf(text, size, "'%s' %s (%s)", dir, what, error_name(e));
    return e;
}

static enum error memory_of(struct store *store)
{
    store->txn.scratch = malloc(VALUE_SIZE_MAX);
    store->txn.counters = calloc(TXN_COUNTERS_MAX, sizeof(*store->txn.counters));
    store->txn.kinds = calloc(TXN_KINDS, sizeof(*store->txn.kinds));
    store->txn.aside = aside_new();
    store->answers = malloc(BATCH_ANSWER_BYTES);
    store->txn.store = store;
    enum error e = views_create(store);
    return e || !store->txn.scratch || !store->txn.counters || !store->txn.kinds || !store->txn.aside ||
                   !store->answers
               ? ERR_MEMORY
               : OK;
}

/* The writer's scheduler has nobody else on it, but who wants to end it must get a word in. */
static void rest(void *arg)
{
    (void)arg;
    actor_yield();
}

static enum error believe(struct store *store)
{
    char why[160] = "";
    enum error e =
        environment_believe(&store->environment, actor_inside() ? rest : NULL, NULL, why, sizeof(why));
    if (e)
        snprintf(store->failure, sizeof(store->failure), "the store can't be believed: %s", why);
    return e;
}

static enum error migrate_step(struct txn *txn, const struct schema *schema, uint32_t from)
{
    for (uint32_t i = 0; i < schema->migrations_count; i++)
        if (schema->migrations[i].from == from)
            return schema->migrations[i].migrate(txn);
    return ERR_NOT_FOUND;
}

/* From what the store is to what the program writes, in one transaction. */
static enum error migrate(struct store *store, const struct meta_format *format)
{
    struct txn *txn = &store->txn;
    MDB_dbi meta = store->environment.tables[TABLE_META];
    if (format->format == store->schema->format)
        return OK;
    enum error e = believe(store);
    if (!e)
        e = txn_begin(txn);
    if (e)
        return e;
    for (uint32_t from = format->format; !e && from < store->schema->format; from++)
        e = migrate_step(txn, store->schema, from);
    counter_write_all(txn);
    int code =
        e || txn->error ? 0 : meta_write_format(txn->mdb, meta, store->schema->format, &format->identity);
    if (!e && !code && !txn->error)
        code = meta_write_stamp(txn->mdb, meta);
    if (e || code || txn->error) {
        enum error first = e ? e : txn->error ? txn->error : txn_error_of(code);
        txn_abort(txn);
        return first;
    }
    return txn_commit(txn);
}

static enum error load(struct store *store, struct txn *txn)
{
    struct ledger_index *ledger = NULL;
    enum error e = ledger_index_create(store->ledger_max, store->secret, &ledger);
    if (!e)
        e = ledger_index_load(ledger, txn);
    if (e)
        ledger_index_destroy(ledger);
    else
        store->ledger = ledger;
    return e;
}

static enum error load_ledger(struct store *store)
{
    struct view *view = actor_inside() ? view_open(store) : view_open_outside(store, 0);
    enum error e = ERR_MEMORY;
    if (view) {
        actor_guard_begin(); /* a writer that is killed meanwhile has loaded it */
        e = load(store, &view->txn);
        actor_guard_end();
        view_close(view);
    }
    if (e)
        snprintf(store->failure, sizeof(store->failure), "the ledger can't be read: %s", error_name(e));
    return e;
}

enum error store_load(struct store *store)
{
    if (store->ledger)
        return OK;
    enum error e = believe(store);
    return e ? e : load_ledger(store);
}

/* Steady time never begins before it ended. Without memory for a look it begins with the wall clock, and nobody knows which claims are
 * of an earlier start: to refuse now would be to refuse a directory that was touched already. */
static void go_on(struct store *store)
{
    struct view *view = actor_inside() ? view_open(store) : view_open_outside(store, 0);
    uint64_t noted = 0;
    int64_t fence = 0;
    if (!view)
        return;
    if (steady_noted(&view->txn, &noted) == OK && noted > store->opened_us)
        store->opened_us = noted; /* one that can't be read is told of by whoever looks at all rows */
    if (counter_read(&view->txn, COUNTER_JOB_FENCE, (struct span){NULL, 0}, &fence) == OK && fence >= 0)
        store->first_fence = (uint64_t)fence + 1;
    view_close(view);
}

static enum error bring_up(struct store *store, const struct store_options *o, char *text, size_t size)
{
    struct environment_options environment = o->environment;
    const char *dir = environment.dir;
    enum error e = memory_of(store);
    if (e)
        return say(e, dir, "can't be opened: no memory", text, size);
    bool born = false;
    for (size_t i = 0; i < sizeof(environment.birth); i++)
        born |= environment.birth[i] != 0;
    if (!born)
        store->env->random(store->env, environment.birth, sizeof(environment.birth));
    e = environment_open(&environment, store->schema, &store->environment, text, size);
    if (e)
        return e;
    store->identity = store->environment.format.identity;
    memcpy(store->secret, store->environment.format.secret, sizeof(store->secret));
    if (environment.guest)
        return OK;
    e = migrate(store, &store->environment.format);
    if (e)
        return say(e, dir, "holds a store of an older format that could not be brought forward", text, size);
    go_on(store);
    store->ledger_max = o->ledger_max ? o->ledger_max : LEDGER_MAX;
    store->audits_max = o->audits_max ? o->audits_max : AUDITS_MAX;
    if (o->record && o->record[0])
        e = journal_create(o->record, store, &store->journal);
    return say(e, dir, "can't be recorded: the journal can't be made", text, size);
}

enum error store_open(const struct store_options *options, struct store **ret_store, char *ret_text,
                      size_t text_size)
{
    struct store *store = calloc(1, sizeof(*store));
    if (!store)
        return say(ERR_MEMORY, options->environment.dir, "can't be opened: no memory", ret_text, text_size);
    store->schema = options->schema ? options->schema : &store_schema;
    store->env = options->env ? options->env : env_real();
    store->opened_us = store->env->wall(store->env) / NS_PER_US;
    store->opened_elapsed_us = store->env->elapsed(store->env) / NS_PER_US;
    store->env->random(store->env, &store->start, sizeof(store->start));
    store->start |= 1;
    store->view_age_ns = options->view_age_ns ? options->view_age_ns : 5 * NS_PER_S;
    store->environment.lock_fd = store->environment.dir_fd = -1;
    enum error e = bring_up(store, options, ret_text, text_size);
    if (e)
        store_close(store);
    else
        *ret_store = store;
    return e;
}

static struct store *here;

void store_close(struct store *store)
{
    if (!store)
        return;
    if (here == store)
        here = NULL;
    journal_close(store->journal);
    views_destroy(store);
    ledger_index_destroy(store->ledger);
    fallow_close(&store->fallow, &store->environment);
    environment_close(&store->environment);
    free(store->answers);
    aside_delete(store->txn.aside);
    free(store->txn.counters);
    free(store->txn.kinds);
    free(store->txn.scratch);
    free(store);
}

/* ---- for actors ---- */

void store_install(struct store *store)
{
    here = store;
}

struct store *store_here(void)
{
    return here;
}

uint64_t store_time_us(void)
{
    return actor_wall_now() / NS_PER_US;
}

uint64_t store_steady_us(const struct store *store)
{
    struct env *env = store->env;
    return store->opened_us + env->elapsed(env) / NS_PER_US - store->opened_elapsed_us;
}

uint64_t store_wall_of(const struct store *store, uint64_t steady_us)
{
    uint64_t wall_us = store_time_us(), now_us = store_steady_us(store);
    if (steady_us >= now_us)
        return steady_us ? wall_us + (steady_us - now_us) : 0;
    uint64_t ago_us = now_us - steady_us;
    return !steady_us ? 0 : wall_us > ago_us ? wall_us - ago_us : 1;
}

/* For each topic of a commit, and there is one for each stream of events; with snprintf it was a fortieth of a submit's
 * instructions in the writer, and the one below a fourteenth. */
void store_group(uint32_t topic, char name[STORE_GROUP_SIZE])
{
    static const char word[] = "store.topic.";
    char digits[10];
    size_t at = sizeof(digits);
    STATIC_ASSERT(sizeof(word) + sizeof(digits) <= STORE_GROUP_SIZE, "it fits");
    do
        digits[--at] = (char)('0' + topic % 10);
    while (topic /= 10);
    memcpy(name, word, sizeof(word) - 1);
    memcpy(name + sizeof(word) - 1, digits + at, sizeof(digits) - at);
    name[sizeof(word) - 1 + sizeof(digits) - at] = 0;
}

void store_part_group(uint32_t topic, uint64_t part, char name[STORE_GROUP_SIZE])
{
    static const char word[] = "store.part.";
    uint32_t big_topic = __builtin_bswap32(topic);
    uint64_t big_part = __builtin_bswap64(part);
    STATIC_ASSERT(sizeof(word) + 2 * sizeof(topic) + 1 + 2 * sizeof(part) <= STORE_GROUP_SIZE, "it fits");
    memcpy(name, word, sizeof(word) - 1);
    char *at = hex_write(name + sizeof(word) - 1, &big_topic, sizeof(big_topic));
    *at++ = '.';
    *hex_write(at, &big_part, sizeof(big_part)) = 0;
}

static bool pass_to(const struct store_part *wake, uint64_t part)
{
    char group[STORE_GROUP_SIZE];
    actor_pid next;
    store_part_group(wake->topic, part, group);
    return actor_members(group, &next, 1) > 0 && actor_cast(next, STORE_WAKE, wake, sizeof(*wake)) == OK;
}

void store_pass_on(struct message *wake)
{
    const struct store_part *part = message_body(wake, sizeof(*part));
    if (part && !pass_to(part, part->part))
        (void)pass_to(part, part->other);
}

/* As the writer compares it: 24 days from now it would come round, so whoever waits for longer waits for ever. */
static uint32_t until_of(uint64_t deadline)
{
    if (deadline > actor_now() + (UINT64_C(1) << 30) * NS_PER_MS)
        return 0;
    uint32_t ms = (uint32_t)(deadline / NS_PER_MS);
    return ms ? ms : 1;
}

static struct message *command_message(const struct command_class *class, const void *command, size_t size,
                                       uint64_t deadline)
{
    struct writer_command head = {
        .at_us = store_time_us(), .code = class->code, .until_ms = until_of(deadline)};
    struct message *m = message_new(WRITER_COMMAND, sizeof(head) + size);
    if (!m)
        return NULL;
    memcpy(m->payload, &head, sizeof(head));
    record_lay(class->record, command, m->payload + sizeof(head));
    return m;
}

static enum error take_reply(struct message *reply, void *ret_bytes, size_t room, size_t *ret_size)
{
    struct writer_reply head;
    if (reply->size < sizeof(head))
        return ERR_UNANSWERED;
    memcpy(&head, reply->payload, sizeof(head));
    size_t size = reply->size - sizeof(head);
    if (ret_bytes && size <= room)
        memcpy(ret_bytes, reply->payload + sizeof(head), size);
    if (ret_size)
        *ret_size = size;
    message_free(reply);
    return (enum error)head.error;
}

/* The writer and the message for it. */
static enum error prepare(const struct command_class *class, const void *command, uint64_t deadline,
                          actor_pid *ret_writer, struct message **ret_message)
{
    *ret_writer = actor_whereis(WRITER_NAME);
    if (!*ret_writer)
        return ERR_UNAVAILABLE;
    size_t command_size = record_size(class->record, command);
    if (!command_size || command_size > COMMAND_SIZE_MAX)
        return ERR_INVALID;
    *ret_message = command_message(class, command, command_size, deadline);
    return *ret_message ? OK : ERR_MEMORY;
}

static enum error hear(enum error e, struct message *reply, void *ret_bytes, size_t room, size_t *ret_size)
{
    if (e == ERR_DOWN && reply)
        message_free(reply);
    return e ? e : take_reply(reply, ret_bytes, room, ret_size);
}

enum error store_submit(const struct command_class *class, const void *command, void *ret_bytes, size_t room,
                        size_t *ret_size, uint64_t deadline)
{
    struct message *m, *reply = NULL;
    actor_pid writer;
    enum error e = prepare(class, command, deadline, &writer, &m);
    if (e)
        return e;
    e = actor_call(writer, m, &reply, deadline);
    return hear(e, reply, ret_bytes, room, ret_size);
}

enum error store_stand(const struct command_class *class, const void *command, uint64_t number, bool again,
                       actor_pid *ret_writer)
{
    struct writer_stand head = {
        .at_us = store_time_us(), .number = number, .code = class->code, .again = again};
    size_t size = record_size(class->record, command);
    *ret_writer = actor_whereis(WRITER_NAME);
    if (!*ret_writer)
        return ERR_UNAVAILABLE;
    if (!class->topic || !size || size > STANDING_BYTES_MAX)
        return ERR_INVALID;
    struct message *m = message_new(WRITER_STAND, sizeof(head) + size);
    if (!m)
        return ERR_MEMORY;
    memcpy(m->payload, &head, sizeof(head));
    record_lay(class->record, command, m->payload + sizeof(head));
    return actor_send(*ret_writer, m);
}

enum error store_ask(const struct command_class *class, const void *command, uint64_t *ret_ref)
{
    struct message *m;
    actor_pid writer;
    enum error e = prepare(class, command, DEADLINE_NONE, &writer, &m);
    return e ? e : actor_request(writer, m, ret_ref);
}

enum error store_hear(uint64_t ref, void *ret_bytes, size_t room, size_t *ret_size, uint64_t deadline)
{
    struct message *reply = NULL;
    size_t index;
    enum error e = actor_request_wait(&ref, 1, &index, &reply, deadline);
    return hear(e, reply, ret_bytes, room, ret_size);
}
