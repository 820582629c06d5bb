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

union command_struct {
    uint8_t bytes[COMMAND_STRUCT_MAX];
    uint64_t aligned;
};

/* What the command answers; a failed write shows in txn->error. */
static enum error apply(struct txn *txn, struct batch_item *item)
{
    union command_struct command;
    const struct command_class *class = item->class;
    ASSERT(class->record->size <= sizeof(command));
    if (record_decode(class->record, class->record->version, item->bytes, &command) != OK)
        return ERR_INVALID;
    txn->writes = 0;
    enum error e = class->apply(txn, item->at_us, &command, &item->answer);
    ASSERT(e == OK || txn->writes == 0 || txn->error); /* decide, then write all or nothing */
    return e;
}

/* All of them; whether anything was written. `roomy`: else only what cleans up. */
static bool apply_all(struct store *store, struct batch_item *items, size_t count, bool roomy)
{
    struct txn *txn = &store->txn;
    uint8_t *room = store->answers;
    bool wrote = false;
    for (size_t i = 0; i < count && !txn->error; i++) {
        items[i].answer = (struct answer){.bytes = room};
        if (!roomy && !items[i].class->cleanup) {
            items[i].answer.error = ERR_NO_SPACE;
            continue;
        }
        items[i].answer.error = apply(txn, &items[i]);
        wrote |= items[i].answer.error == OK && txn->writes > 0;
        room += (items[i].answer.size + 7u) & ~7u;
    }
    return wrote;
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

static enum error attempt(struct store *store, struct batch_item *items, size_t count, bool roomy,
                          bool *ret_wrote)
{
    struct txn *txn = &store->txn;
    enum error e = txn_begin(txn);
    if (e)
        return txn->code == MDB_PANIC ? fail(store, "an earlier commit", txn->code) : e;
    *ret_wrote = apply_all(store, items, count, roomy);
    if (!*ret_wrote && !txn->error) {
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
static enum error guarded(struct store *store, struct batch_item *items, size_t count, bool roomy,
                          bool *ret_wrote)
{
    actor_guard_begin();
    ledger_index_begin(store->ledger);
    enum error e = attempt(store, items, count, roomy, ret_wrote);
    if (e)
        ledger_index_abort(store->ledger);
    else
        ledger_index_commit(store->ledger);
    if (!e && *ret_wrote && store->journal && journal_write(store->journal, items, count) != OK)
        e = fail(store, "writing the journal", journal_code(store->journal));
    actor_guard_end();
    return e;
}

/* ---- space ---- */

static enum error grow(struct store *store)
{
    if (!views_stop(store, store->view_age_ns + VIEWS_STOP_MARGIN_NS))
        return ERR_UNAVAILABLE;
    actor_guard_begin();
    enum error e = environment_grow(&store->environment);
    actor_guard_end();
    views_go_on(store);
    if (!e)
        atomic_fetch_add(&store->grown, 1);
    return e;
}

/* With a view open it has to wait for the next batch: until then ordinary commands are refused. */
static void limit(struct store *store)
{
    if (!views_stop(store, 0))
        return;
    actor_guard_begin();
    (void)environment_limit(&store->environment);
    actor_guard_end();
    views_go_on(store);
}

/* Room for so many bytes of commands, with what they make of others' pages: LMDB would meet the end of the disk in the
 * middle of a commit, and couldn't tell it from a failing one. */
static enum error allocate(struct store *store, uint64_t bytes)
{
    actor_guard_begin();
    enum error e = environment_allocate(&store->environment, COMMAND_GROWTH * bytes);
    actor_guard_end();
    if (e == ERR_IO)
        return fail(store, "allocating the file ahead", EIO);
    atomic_store(&store->state, e ? STORE_TIGHT : STORE_OPEN);
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

static void note(struct store *store, const struct batch_item *items, size_t count, bool wrote,
                 uint64_t began)
{
    uint64_t refused = 0;
    for (size_t i = 0; i < count; i++)
        refused += items[i].answer.error != OK;
    atomic_fetch_add_explicit(&store->commands, count, memory_order_relaxed);
    atomic_fetch_add_explicit(&store->refused, refused, memory_order_relaxed);
    if (!wrote)
        return;
    atomic_fetch_add_explicit(&store->commits, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&store->commit_ns, store->env->now(store->env) - began, memory_order_relaxed);
}

enum error batch_run(struct store *store, struct batch_item *items, size_t count)
{
    uint64_t began = store->env->now(store->env);
    bool wrote = false;
    ASSERT(count <= BATCH_MAX);
    ASSERT(getpid() == store->environment.process);
    if (store_state(store) == STORE_FAILED || store_load(store) != OK)
        return ERR_UNAVAILABLE;
    uint64_t bytes = bytes_of(items, count);
    enum error e = allocate(store, bytes);
    if (e)
        return e;
    bool roomy = environment_roomy(&store->environment, COMMAND_GROWTH * bytes);
    e = guarded(store, items, count, roomy, &wrote);
    while (e == ERR_NO_SPACE &&
           store->txn.code == MDB_MAP_FULL) { /* ends: each turn doubles the map, or isn't roomy */
        e = grow(store);
        if (e == ERR_NO_SPACE && roomy) {
            roomy = false;
            e = OK;
        }
        if (!e)
            e = guarded(store, items, count, roomy, &wrote);
        else
            break;
    }
    if (e)
        return e;
    note(store, items, count, wrote, began);
    if (!wrote)
        return OK;
    (void)allocate(store, 0);
    return OK; /* the commit is on the disk, even when allocating ahead failed */
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
