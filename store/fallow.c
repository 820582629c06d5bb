#include "store/fallow.h"

static uint64_t limit_of(uint64_t used)
{
    return used / 4 < FALLOW_BYTES ? used / 4 : FALLOW_BYTES;
}

static bool begin(struct fallow *f, struct environment *e)
{
    int code = f->reader ? mdb_txn_renew(f->reader) : mdb_txn_begin(e->mdb, NULL, MDB_RDONLY, &f->reader);
    if (code) {
        fallow_close(f, e);
        return false;
    }
    f->open = true;
    __atomic_store_n(&e->fallow_txn, mdb_txn_id(f->reader), __ATOMIC_RELAXED);
    return true;
}

static bool many(const struct fallow *f)
{
    return f->usual >= FALLOW_MANY * FALLOW_LATELY;
}

/* What follows when the file has come to the end of a phase. */
static enum fallow_phase next(enum fallow_phase phase, uint64_t free, uint64_t limit)
{
    switch (phase) {
    case FALLOW_GROWING:
        return FALLOW_STRETCHES;
    case FALLOW_STRETCHES:
        return free < limit / 2 ? FALLOW_GROWING : FALLOW_NONE;
    default:
        return free < limit ? FALLOW_GROWING : FALLOW_NONE;
    }
}

static void move_on(struct fallow *f, struct environment *e, uint64_t used)
{
    uint64_t limit = limit_of(used);
    fallow_end(f, e);
    f->until = used;
    f->phase = many(f) ? f->phase : FALLOW_NONE;
    if (!many(f) || !begin(f, e))
        return;
    uint64_t free = environment_free(e, f->reader);
    f->phase = next(f->phase, free, limit);
    if (f->phase == FALLOW_GROWING)
        f->until = used + (free < limit ? limit - free : 0);
    if (f->phase == FALLOW_NONE)
        fallow_end(f, e);
}

void fallow_tend(struct fallow *f, struct environment *e)
{
    uint64_t used = environment_used(e);
    if (e->tight || e->limited || e->options.step < FALLOW_STEP)
        fallow_end(f, e);
    else if (!f->resting && used > f->until)
        move_on(f, e, used);
}

void fallow_note(struct fallow *f, struct environment *e, size_t commands)
{
    f->usual = f->usual - f->usual / FALLOW_LATELY + (uint32_t)commands;
    if (f->open && f->usual < FALLOW_MANY * FALLOW_LATELY / 2)
        fallow_end(f, e);
}

uint64_t fallow_growth(const struct fallow *f)
{
    return f->open ? 2 * FALLOW_PAGES * f->usual / FALLOW_LATELY : 0; /* twice what is usual */
}

bool fallow_yield(struct fallow *f, struct environment *e)
{
    bool open = f->open;
    fallow_end(f, e);
    f->resting = true;
    return open;
}

void fallow_end(struct fallow *f, struct environment *e)
{
    if (f->open)
        mdb_txn_reset(f->reader);
    f->open = false;
    __atomic_store_n(&e->fallow_txn, 0, __ATOMIC_RELAXED);
}

void fallow_go_on(struct fallow *f)
{
    f->resting = false;
}

void fallow_close(struct fallow *f, struct environment *e)
{
    fallow_end(f, e);
    if (f->reader)
        mdb_txn_abort(f->reader);
    f->reader = NULL;
}
