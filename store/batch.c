#include "store/batch.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "store/counter.h"
#include "store/journal.h"
#include "store/ledger.h"
#include "store/meta.h"
#include "store/view.h"

void answer_add(struct answer *answer, const void *bytes, size_t size)
{
    ASSERT(size <= ANSWER_SIZE_MAX - answer->size);
    memcpy(answer->bytes + answer->size, bytes, size);
    answer->size += (uint32_t)size;
}

/* Bytes of file per byte of command, at most: values of 2 KiB and more have pages to themselves, half empty at worst. */
enum { COMMAND_GROWTH = 3 };

/* ---- applying ---- */

/* A command as its struct. */
struct decoded {
    enum error error;
    union {
        uint8_t bytes[COMMAND_STRUCT_MAX];
        uint64_t aligned;
    } command;
};

/* A batch on its way. */
struct run {
    struct store *store;
    struct batch_item *items;
    size_t count, applied;
    uint8_t *answers; /* where the next one goes */
    batch_more *more; /* NULL: the batch is complete */
    void *arg;
    uint64_t room; /* encoded bytes of commands for which the file is allocated */
    bool roomy;    /* else only what cleans up */
    bool wrote;
    size_t decoded_count;
    struct decoded decoded[2]; /* the one being applied and the next one, by number */
};

/* The bytes of a command lie in another core's cache. */
static void fetch(const struct run *run, size_t i)
{
    if (i < run->count)
        span_fetch(run->items[i].bytes);
}

/* In a journal stand commands of the version that wrote it, which they don't name. A version only appends fields, and no byte may be
 * left: so what one can read no other can. */
static enum error read_command(const struct record_class *class, struct span bytes, void *ret_command)
{
    enum error e = ERR_DAMAGED;
    for (uint8_t version = class->version; e == ERR_DAMAGED && version > 0; version--)
        e = record_decode(class, version, bytes, ret_command);
    return e;
}

static void decode(struct run *run)
{
    size_t i = run->decoded_count++;
    const struct batch_item *item = &run->items[i];
    const struct command_class *class = item->class;
    struct decoded *d = &run->decoded[i % 2];
    ASSERT(class->record->size <= sizeof(d->command));
    d->error = read_command(class->record, item->bytes, &d->command);
    if (!d->error && class->announce)
        class->announce(&run->store->txn, &d->command);
    fetch(run, i + 1);
}

/* What the command answers; a failed write shows in txn->error. */
static enum error apply(struct txn *txn, struct batch_item *item, const struct decoded *decoded)
{
    if (decoded->error)
        return ERR_INVALID;
    txn->writes = 0;
    enum error e = item->class->apply(txn, item->at_us, &decoded->command, &item->answer);
    ASSERT(e == OK || txn->writes == 0 || txn->error); /* decide, then write all or nothing */
    return e;
}

/* Those that haven't been yet. */
static void apply_all(struct run *run)
{
    struct txn *txn = &run->store->txn;
    for (; run->applied < run->count && !txn->error; run->applied++) {
        struct batch_item *item = &run->items[run->applied];
        while (run->decoded_count < run->count && run->decoded_count <= run->applied + 1)
            decode(run);
        item->answer = (struct answer){.bytes = run->answers};
        if (!run->roomy && !item->class->cleanup) {
            enum error e = run->decoded[run->applied % 2].error;
            item->answer.error = e ? ERR_INVALID : ERR_NO_SPACE;
            continue;
        }
        item->answer.error = apply(txn, item, &run->decoded[run->applied % 2]);
        run->wrote |= item->answer.error == OK && txn->writes > 0;
        run->answers += (item->answer.size + 7u) & ~7u;
    }
}

/* And those that come meanwhile. */
static void apply_and_gather(struct run *run)
{
    const struct txn *txn = &run->store->txn;
    size_t before;
    run->applied = run->decoded_count = 0;
    run->answers = run->store->answers;
    run->wrote = false;
    apply_all(run);
    while (run->more && !txn->error && run->count < BATCH_MAX) {
        before = run->count;
        run->count = run->more(run->arg, before, run->room);
        if (run->count == before)
            break;
        ASSERT(run->count > before && run->count <= BATCH_MAX);
        apply_all(run);
    }
    run->more = NULL; /* once: a second try is about the same commands */
}

/* ---- one transaction ---- */

/* After a commit that failed: LMDB goes on only when nothing but this transaction was lost. */
static bool lmdb_goes_on(struct store *store)
{
    MDB_txn *mdb;
    if (mdb_txn_begin(store->environment.mdb, NULL, 0, &mdb))
        return false;
    mdb_txn_abort(mdb);
    return true;
}

static enum error fail(struct store *store, const char *what, int code)
{
    snprintf(store->failure, sizeof(store->failure),
             "%s failed: %s; what was being written may or may not be on the disk", what, mdb_strerror(code));
    atomic_store(&store->state, STORE_FAILED);
    return ERR_IO;
}

/* A full disk, a full map or no memory: the transaction is gone and nothing else. Anything else leaves it open what
 * the disk has, and a second try at a sync would lie. */
static enum error commit(struct store *store)
{
    enum error e = txn_commit(&store->txn);
    if (e != ERR_IO)
        return e;
    int code = store->txn.code;
    e = txn_error_of(code);
    if ((e == ERR_NO_SPACE || e == ERR_MEMORY) && lmdb_goes_on(store))
        return e;
    return fail(store, "a commit", code);
}

static enum error attempt(struct run *run)
{
    struct store *store = run->store;
    struct txn *txn = &store->txn;
    enum error e = txn_begin(txn);
    if (e)
        return txn->code == MDB_PANIC ? fail(store, "an earlier commit", txn->code) : e;
    apply_and_gather(run);
    if (!run->wrote && !txn->error) {
        txn_abort(txn);
        return OK;
    }
    counter_write_all(txn);
    int code = txn->error ? 0 : meta_write_stamp(txn->mdb, store->environment.tables[TABLE_META]);
    if (code) {
        txn->code = code;
        txn->error = txn_error_of(code);
    }
    return commit(store);
}

/* In one piece: a writer that is killed has done all of it or nothing. */
static enum error guarded(struct run *run)
{
    struct store *store = run->store;
    actor_guard_begin();
    fallow_tend(&store->fallow, &store->environment);
    ledger_index_begin(store->ledger);
    enum error e = attempt(run);
    if (e)
        ledger_index_abort(store->ledger);
    else
        ledger_index_commit(store->ledger);
    if (!e && run->wrote)
        fallow_note(&store->fallow, &store->environment, run->count);
    if (!e && run->wrote && store->journal && journal_write(store->journal, run->items, run->count) != OK)
        e = fail(store, "writing the journal", journal_code(store->journal));
    actor_guard_end();
    return e;
}

/* ---- space ---- */

/* Whoever looks is stopped only for a map that can be larger then: up to where it was when the disk has room again, else
 * by doubling. */
static enum error grow(struct store *store)
{
    struct environment *environment = &store->environment;
    if (!environment_can_grow(environment))
        return ERR_NO_SPACE;
    if (!views_stop(store, store->view_age_ns + VIEWS_STOP_MARGIN_NS))
        return ERR_UNAVAILABLE;
    actor_guard_begin();
    fallow_end(&store->fallow, &store->environment);
    enum error e =
        environment_limit_due(environment) ? environment_limit(environment) : environment_grow(environment);
    actor_guard_end();
    views_go_on(store);
    if (e)
        return e;
    fallow_go_on(&store->fallow);
    atomic_fetch_add(&store->grown, 1);
    return OK;
}

/* With a view open it has to wait for the next batch: until then ordinary commands are refused. */
static void limit(struct store *store)
{
    if (!views_stop(store, 0))
        return;
    actor_guard_begin();
    fallow_end(&store->fallow, &store->environment);
    if (environment_limit(&store->environment) == OK && !store->environment.limited)
        fallow_go_on(&store->fallow); /* the map ends where it did before the disk was full */
    actor_guard_end();
    views_go_on(store);
}

/* Tight is the store whose file has no room ahead, and one whose disk has refused a page of the last commit: where blocks that
 * are there already are written elsewhere, or where the file may not be so large any more. */
static void tell_state(struct store *store, bool tight)
{
    uint32_t before = store_state(store);
    if (before != STORE_FAILED &&
        before != STORE_LOST) /* for good, and until the keeper sees its file again */
        (void)atomic_compare_exchange_strong(&store->state, &before, tight ? STORE_TIGHT : STORE_OPEN);
}

/* Room for so many bytes of commands, with what they make of others' pages: LMDB would meet the end of the disk in the
 * middle of a commit, and couldn't tell it from a failing one. */
static enum error allocate(struct store *store, uint64_t bytes)
{
    actor_guard_begin();
    enum error e =
        environment_allocate(&store->environment, COMMAND_GROWTH * bytes + fallow_growth(&store->fallow));
    actor_guard_end();
    if (e == ERR_IO)
        return fail(store, "allocating the file ahead", EIO);
    tell_state(store, e || store->starved);
    if (environment_limit_due(&store->environment))
        limit(store);
    return OK;
}

/* ---- the batch ---- */

static uint64_t bytes_of(const struct batch_item *items, size_t count)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += items[i].bytes.size;
    return bytes;
}

/* It came for something, and there was none, or no room to take it: it stands for that, or whoever has sent it comes again. */
static bool found_nothing(const struct batch_item *item)
{
    enum error e = item->answer.error;
    return item->class->topic && (e == ERR_NOT_FOUND || (item->stands && e == ERR_NO_SPACE));
}

static void note(const struct run *run, uint64_t began)
{
    struct store *store = run->store;
    uint64_t refused = 0, nothing = 0;
    for (size_t i = 0; i < run->count; i++) {
        bool idle = found_nothing(&run->items[i]);
        nothing += idle;
        refused += run->items[i].answer.error != OK && !idle;
    }
    atomic_fetch_add_explicit(&store->commands, run->count, memory_order_relaxed);
    atomic_fetch_add_explicit(&store->refused, refused, memory_order_relaxed);
    atomic_fetch_add_explicit(&store->found_nothing, nothing, memory_order_relaxed);
    if (!run->wrote)
        return;
    atomic_fetch_add_explicit(&store->commits, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&store->commit_ns, store->env->now(store->env) - began, memory_order_relaxed);
}

/* What lies fallow is used first. */
static enum error find_room(struct store *store)
{
    actor_guard_begin();
    bool found = fallow_yield(&store->fallow, &store->environment);
    actor_guard_end();
    return found ? OK : grow(store);
}

/* A map that is full doubles, and the same commands are applied again; when it can't, only what cleans up is. */
static enum error until_it_fits(struct run *run)
{
    enum error e = guarded(run);
    while (e == ERR_NO_SPACE &&
           run->store->txn.code == MDB_MAP_FULL) { /* ends: room once, larger each time, or not roomy */
        e = find_room(run->store);
        if (e == ERR_NO_SPACE && run->roomy) {
            run->roomy = false;
            e = OK;
        }
        if (e)
            break;
        e = guarded(run);
    }
    return e;
}

enum error batch_gather(struct store *store, struct batch_item *items, size_t *count, batch_more *more,
                        void *arg)
{
    uint64_t began = store->env->now(store->env);
    ASSERT(*count <= BATCH_MAX);
    ASSERT(getpid() == store->environment.process);
    if (store_state(store) == STORE_FAILED || store_state(store) == STORE_LOST)
        return ERR_UNAVAILABLE;
    enum error e = store_load(store);
    if (e)
        return e == ERR_DAMAGED ? e : ERR_UNAVAILABLE;
    uint64_t bytes = bytes_of(items, *count);
    e = allocate(store, bytes);
    if (e)
        return e;
    struct run run = {.store = store,
                      .items = items,
                      .count = *count,
                      .arg = arg,
                      .room = environment_ahead(&store->environment) / COMMAND_GROWTH,
                      .roomy = environment_roomy(&store->environment, COMMAND_GROWTH * bytes)};
    run.more = store_state(store) == STORE_OPEN ? more : NULL;
    e = until_it_fits(&run);
    *count = run.count;
    if (e == ERR_NO_SPACE ? run.store->txn.code != MDB_MAP_FULL : !e && run.wrote)
        store->starved = e != OK;
    if (store->starved)
        tell_state(store, true);
    if (!e)
        note(&run, began);
    return e;
}

void batch_rest(struct store *store)
{
    (void)allocate(store, 0); /* the commit is on the disk, even when this fails */
}

enum error batch_run(struct store *store, struct batch_item *items, size_t count)
{
    enum error e = batch_gather(store, items, &count, NULL, NULL);
    if (!e)
        batch_rest(store);
    return e;
}

enum error batch_one(struct store *store, const struct command_class *class, uint64_t at_us,
                     const void *command, struct answer *answer)
{
    uint8_t bytes[COMMAND_SIZE_MAX];
    size_t size = record_encode(class->record, command, bytes, sizeof(bytes));
    if (!size)
        return ERR_INVALID;
    struct batch_item item = {.class = class, .at_us = at_us, .bytes = span_of(bytes, size)};
    enum error e = batch_run(store, &item, 1);
    if (answer && !e)
        *answer = item.answer;
    return e ? e : item.answer.error;
}
