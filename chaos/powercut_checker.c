#define _GNU_SOURCE
#include "chaos/powercut_checker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "chaos/digest.h"
#include "chaos/powercut_cut.h"
#include "chaos/powercut_recorder.h"
#include "store/image.h"

enum {
    SUBSETS = 24, /* and as many tears, at each sync */
    PREFIXES_MAX = 96,
    IMAGE_EVERY = 16,
    /* A checker that computes on and on is killed, by what it has used of a processor: on a machine that stands still one that is
     * well stands still, too. One that waits for ever is killed by the clock. */
    STATE_SECONDS = 60,
    STATE_WAIT_SECONDS = 600,
};

struct checker {
    struct platter platter;
    struct platter_image image;
    struct platter_choice choice;
    struct dice dice;
    char path[PATH_MAX], tree[PATH_MAX];
    uint64_t allowed[CUT_ALLOWED_MAX], ordinal, from, until;
    uint32_t data, allowed_count, index, last_answer, before_last;
    bool watched;
};

static bool allowed(const struct checker *c, uint64_t digest)
{
    for (uint32_t i = 0; i < c->allowed_count; i++)
        if (c->allowed[i] == digest)
            return true;
    return false;
}

static void check_pages(struct checker *c)
{
    struct image_report report;
    char why[160] = "";
    enum error e = image_check(c->image.fd, 0, &report, why, sizeof(why));
    if (e)
        cut_violation("page by page: %s: %s", error_name(e), why);
    atomic_fetch_add(&cut_shared->images, 1);
}

static void check_image(struct checker *c)
{
    uint64_t digest, rows;
    const char *wrong = digest_of(c->path, CUT_ROWS_MAX, &digest, &rows);
    if (wrong)
        cut_violation("doesn't open or read: %s", wrong);
    else if (!allowed(c, digest))
        cut_violation("shows %" PRIu64 " rows that are of no batch between acknowledged and attempted", rows);
    else if (c->ordinal % IMAGE_EVERY == 0)
        check_pages(c);
}

/* The next states have so much time; 0: as much as they like. */
static void bound(unsigned seconds, unsigned wait_seconds)
{
    setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = seconds}, NULL);
    alarm(wait_seconds);
}

/* Whether this state is one to look at; counts it. */
static bool wanted(struct checker *c)
{
    uint64_t ordinal = c->ordinal++;
    if (ordinal < c->from || ordinal >= c->until)
        return false;
    atomic_store(&cut_here.worker->at, ordinal);
    if (ordinal % 256 == 0)
        bound(STATE_SECONDS, STATE_WAIT_SECONDS);
    atomic_fetch_add_explicit(cut_here.kind == PLATTER_HONEST ? &cut_shared->states
                                                              : &cut_shared->control_states[cut_here.kind],
                              1, memory_order_relaxed);
    return true;
}

static void look(struct checker *c)
{
    platter_build(&c->platter, &c->choice, &c->image);
    check_image(c);
}

static void states_at_sync(struct checker *c)
{
    uint32_t count = c->platter.pending_count;
    uint32_t step = count / PREFIXES_MAX + 1;
    for (uint32_t i = 0; i <= count; i += step)
        if (wanted(c)) {
            platter_prefix(&c->platter, i, &c->choice);
            look(c);
        }
    for (uint32_t i = 0; i < 2 * SUBSETS && count > 0; i++) {
        struct dice dice = dice_of(cut_here.seed << 40 ^ c->ordinal);
        if (!wanted(c))
            continue;
        if (i % 2)
            platter_subset(&c->platter, &dice, &c->choice);
        else
            platter_torn(&c->platter, &dice, &c->choice);
        look(c);
    }
}

static void state_by_chance(struct checker *c)
{
    struct dice dice = dice_of(cut_here.seed << 40 ^ c->ordinal);
    if (!wanted(c))
        return;
    platter_torn(&c->platter, &dice, &c->choice);
    look(c);
}

static void state_for_certain(struct checker *c)
{
    if (!wanted(c))
        return;
    platter_prefix(&c->platter, 0, &c->choice);
    look(c);
}

/* ---- whole folders, opened by the product ---- */

static struct store *open_tree(bool must_exist)
{
    char dir[PATH_MAX], text[160] = "";
    struct store *store = NULL;
    struct store_options o = recording->store_options;
    cut_path(dir, "tree/store");
    o.environment.dir = dir;
    o.environment.must_exist = must_exist;
    enum error e = store_open(&o, &store, text, sizeof(text));
    if (e)
        cut_violation("the product refuses what is left: %s: %s", error_name(e), text);
    return store;
}

static uint64_t tree_shows(void)
{
    char data[PATH_MAX];
    uint64_t digest = 0, rows;
    cut_path(data, "tree/store/data.mdb");
    const char *wrong = digest_of(data, CUT_ROWS_MAX, &digest, &rows);
    if (wrong)
        cut_violation("opened by the product, then not readable: %s", wrong);
    return digest;
}

static void go_on_with_tree(struct checker *c, struct store *store)
{
    struct workload *w = &recording->workload;
    w->dice = dice_of(c->ordinal);
    cut_check_rows(store, "what is left");
    enum error e = batch_run(store, w->items, workload_draw(w, store));
    if (e)
        cut_violation("what is left takes no batch: %s", error_name(e));
    store_close(store);
    uint64_t shown = tree_shows();
    store = open_tree(true);
    if (store && tree_shows() != shown)
        cut_violation("what is left forgets a batch");
    if (store)
        cut_check_rows(store, "what is left, opened again");
    store_close(store);
}

static void state_of_tree(struct checker *c)
{
    struct dice dice = dice_of(cut_here.seed << 40 ^ c->ordinal);
    if (!wanted(c))
        return;
    atomic_fetch_add(&cut_shared->trees, 1);
    cut_remove(c->tree);
    platter_torn(&c->platter, &dice, &c->choice);
    if (mkdir(c->tree, 0700) < 0 || !platter_build_tree(&c->platter, &c->choice, &dice, c->tree)) {
        cut_violation("harness: a tree can't be built: %s", strerror(errno));
        return;
    }
    struct store *store = open_tree(c->watched);
    if (!store)
        return;
    if (c->watched && !allowed(c, tree_shows()))
        cut_violation("opened by the product: shows what is of no batch between acknowledged and attempted");
    go_on_with_tree(c, store);
}

/* ---- along the log ---- */

static void allow(struct checker *c, uint64_t digest)
{
    if (c->allowed_count < CUT_ALLOWED_MAX)
        c->allowed[c->allowed_count++] = digest;
    else
        cut_violation("harness: too many attempts without an answer");
}

static void follow_mark(struct checker *c, const struct disk_entry *entry)
{
    switch ((enum mark)entry->mark) {
    case MARK_DATA:
        c->data = (uint32_t)entry->value;
        break;
    case MARK_OPENING:
        c->platter.opening = true;
        break;
    case MARK_OPENED:
    case MARK_ANSWERED:
        if (!c->watched && !platter_watch(&c->platter, c->data, &c->image))
            cut_violation("harness: no image");
        c->watched = true;
        c->platter.kind = cut_here.kind; /* a store comes into being on an honest disk */
        c->platter.opening = false;
        c->allowed_count = 0;
        allow(c, entry->value);
        if (cut_here.kind ==
            PLATTER_NO_DATA_SYNC) /* it forgets to sync the last two batches, not all of them */
            platter_settle(&c->platter, c->before_last);
        c->before_last = c->last_answer;
        c->last_answer = c->index;
        break;
    case MARK_ATTEMPT:
        break;
    }
}

static bool tree_now(struct checker *c)
{
    struct dice dice = dice_of(cut_here.seed << 32 ^ c->index);
    uint32_t one_of = !c->watched ? 8 : c->platter.opening ? 4 : 400;
    return cut_here.kind == PLATTER_HONEST && dice_below(&dice, one_of) == 0;
}

static void follow(struct checker *c, const struct disk_entry *entry)
{
    bool sync = entry->kind == DISK_SYNC || entry->kind == DISK_SYNC_NAMES;
    if (sync && tree_now(c))
        state_of_tree(c);
    if (sync && c->watched)
        states_at_sync(c);
    platter_step(&c->platter, c->index);
    if (entry->kind == DISK_WRITE && entry->mark == MARK_ATTEMPT)
        allow(c, entry->value);
    if (entry->kind == DISK_MARK)
        follow_mark(c, entry);
    if (!sync && tree_now(c))
        state_of_tree(c);
    if (!c->watched)
        return;
    if (entry->kind == DISK_WRITE || entry->kind == DISK_SIZE)
        state_by_chance(c);
    else
        state_for_certain(c);
}

/* For whoever looks at one state: what happened before it, and what is pending in it. */
static void tell_entry(uint32_t index, const struct disk_entry *e)
{
    static const char *const kinds[] = {"write",  "size",   "sync",       "link",
                                        "unlink", "rename", "sync names", "mark"};
    static const char *const outcomes[] = {"", " (lost)", " (failed, landed)", " (failed, half)"};
    static const char *const marks[] = {"", "attempt", "data", "opening", "opened", "answered"};
    printf("%6u %-10s file %u", (unsigned)index, kinds[e->kind], (unsigned)e->file);
    if (e->kind == DISK_WRITE)
        printf(" pages %u+%u%s", (unsigned)e->first, (unsigned)e->pages, e->through ? " through" : "");
    if (e->kind == DISK_SYNC)
        printf("%s%s", e->of ? " of the write" : "", outcomes[e->outcome]);
    if (e->kind == DISK_LINK || e->kind == DISK_UNLINK || e->kind == DISK_RENAME)
        printf(" %u/%s %s", (unsigned)e->folder, e->name, e->to_name);
    if (e->mark)
        printf(" %s %016" PRIx64, marks[e->mark], e->value);
    printf("\n");
}

static void tell(const struct checker *c)
{
    enum { ENTRIES = 40 };
    for (uint32_t i = c->index > ENTRIES ? c->index - ENTRIES : 0; i <= c->index; i++)
        tell_entry(i, &c->platter.log[i]);
    printf("pending: %u pieces, %u changes of names;", (unsigned)c->platter.pending_count,
           (unsigned)c->platter.changes_count);
    for (uint32_t i = 0; i < c->platter.pending_count; i++)
        printf(" %u:%u/%02x", (unsigned)c->platter.pending[i].file, (unsigned)c->platter.pending[i].page,
               (unsigned)c->choice.sectors[i]);
    printf("\n");
}

void checker_run(uint64_t from, uint64_t until)
{
    uint32_t count;
    const struct disk_entry *log = disk_log(&count);
    struct checker *c = calloc(1, sizeof(*c));
    if (!c || !platter_create(&c->platter, log))
        abort();
    cut_path(c->path, "image");
    cut_path(c->tree, "tree");
    c->image.fd = open(c->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    c->image.map = mmap(NULL, PLATTER_FILE_MAX, PROT_READ | PROT_WRITE, MAP_SHARED, c->image.fd, 0);
    if (c->image.map == MAP_FAILED)
        abort();
    c->from = from;
    c->until = until;
    for (c->index = 0; c->index < count && c->ordinal < until; c->index++) {
        follow(c, &log[c->index]);
        if (cut_here.kind != PLATTER_HONEST &&
            atomic_load(&cut_here.worker->found) >= CHECKER_CONTROL_VIOLATIONS)
            break;
    }
    if (cut_options.only) {
        c->index -= c->index > 0;
        tell(c);
    }
    if (c->platter.overflow)
        cut_violation("harness: more is pending than fits");
    bound(0, 0);
}
