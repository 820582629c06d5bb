/* powercut: cuts the power at every point of a recorded workload and looks at what is left.
 *
 *     powercut [--states N] [--seed S] [--workers N] [--dir DIR]
 *     powercut --seed S --state N [--control A|B|C]     one state again, as a violation names it
 *
 * Under each seed a recorder makes a store and runs batches of the product's own commands on it, with a small map and
 * a small file so that both grow; syncs and writes through fail, of a broken disk or of a full one, the process is killed
 * between any two calls,
 * and each time the store is opened again and goes on. All of it is recorded below LMDB (chaos/disk.h). Checkers
 * then step through the log (chaos/platter.h) and build what a power cut might leave:
 *
 *     at each sync      every beginning of what is pending, random subsets, tears at 512 bytes
 *     at each write     a random subset
 *     after a sync, and after an answer: what is certain, and nothing else
 *     while a store is made or opened, and now and then later: all folders and files, opened by the product
 *
 * In each state the file must open, and show exactly the rows after some batch k, acknowledged <= k <= attempted,
 * free pages included (chaos/digest.h); so it is never empty, never a mix, and every value is what was written. A
 * sample is checked page by page (store/image.h); states of whole folders are opened for writing, every row is
 * checked, a batch is run and must be there when it is opened again.
 *
 * Three controls prove that the campaign would notice: A, syncs of data do nothing; B, the meta page waits for the next
 * sync; C, a store that is opened after a failure isn't synced first. A campaign that misses one of them fails.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "chaos/digest.h"
#include "chaos/platter.h"
#include "chaos/workload.h"
#include "store/check.h"
#include "store/image.h"
#include "store/view.h"
#include "tests/support/parcel.h"

enum {
    WORKERS_MAX = 16,
    REPORTS_MAX = 24,
    ALLOWED_MAX = 64,
    ROWS_MAX = 200000,
    BATCHES_MIN = 60,
    BATCHES_MORE = 80,
    SUBSETS = 24, /* and as many tears, at each sync */
    PREFIXES_MAX = 96,
    IMAGE_EVERY = 16,
    CONTROL_STATES = 30000, /* of one seed */
    CONTROL_VIOLATIONS = 3, /* then it has been caught under this seed */
    STATE_SECONDS = 60,     /* a checker that hangs is killed */
};

enum mark {
    MARK_ATTEMPT = 1, /* of a write: what it shows once it is there */
    MARK_DATA,        /* the number of data.mdb */
    MARK_OPENING,
    MARK_OPENED, /* and what it shows */
    MARK_ANSWERED,
};

static const char *const control_names[PLATTER_KINDS] = {
    [PLATTER_NO_DATA_SYNC] = "A", [PLATTER_NO_META_SYNC] = "B", [PLATTER_NO_FIRST_SYNC] = "C"};

struct report {
    uint64_t seed, state;
    uint32_t kind;
    char text[200];
};

struct shared {
    _Atomic uint64_t next_seed, states, trees, images, seeds, batches, failed_syncs, kills, grown, deaths,
        full;
    _Atomic uint64_t violations, caught[PLATTER_KINDS], control_states[PLATTER_KINDS];
    _Atomic uint32_t reports_count;
    struct report reports[REPORTS_MAX];
    struct worker {
        _Atomic uint64_t at, found; /* the state being looked at; violations of this part */
        _Atomic uint32_t recorded;
    } workers[WORKERS_MAX];
};

static struct shared *shared;
static struct {
    uint64_t states, first_seed, only_state;
    uint32_t workers;
    enum platter_kind only_kind;
    bool only;
    char dir[PATH_MAX - 64];
} options = {.states = 1000000, .first_seed = 1, .workers = 2, .dir = "/dev/shm"};

/* ---- what one process works with ---- */

static struct {
    struct worker *worker;
    uint64_t seed;
    enum platter_kind kind;
    char dir[PATH_MAX - 32];
    uint64_t now, wall;
    struct dice chance;
} here;

__attribute__((format(printf, 1, 2))) static void violation(const char *format, ...)
{
    va_list list;
    char text[sizeof(((struct report *)0)->text)];
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    atomic_fetch_add(&here.worker->found, 1);
    if (here.kind != PLATTER_HONEST) {
        if (options.only)
            printf("%s\n", text);
        return;
    }
    atomic_fetch_add(&shared->violations, 1);
    uint32_t slot = atomic_fetch_add(&shared->reports_count, 1);
    if (slot >= REPORTS_MAX)
        return;
    struct report *report = &shared->reports[slot];
    report->seed = here.seed;
    report->state = atomic_load(&here.worker->at);
    memcpy(report->text, text, sizeof(text));
}

static void path_of(char path[PATH_MAX], const char *name)
{
    snprintf(path, PATH_MAX, "%s/%s", here.dir, name);
}

static int remove_one(const char *path, const struct stat *stat, int kind, struct FTW *ftw)
{
    (void)stat;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static void remove_all(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- an environment whose time and chance are the seed's ---- */

static uint64_t env_now(struct env *env)
{
    (void)env;
    return here.now += 1000;
}

static uint64_t env_wall(struct env *env)
{
    (void)env;
    return here.wall += 1000;
}

static void env_random(struct env *env, void *bytes, size_t size)
{
    uint8_t *to = bytes;
    (void)env;
    for (size_t i = 0; i < size; i++)
        to[i] = (uint8_t)dice_draw(&here.chance);
}

static uint32_t env_pick(struct env *env, uint32_t count)
{
    (void)env;
    (void)count;
    return 0;
}

static struct env seeded = {.name = "powercut",
                            .simulated = true,
                            .now = env_now,
                            .wall = env_wall,
                            .elapsed = env_now,
                            .random = env_random,
                            .pick = env_pick};

/* ---- recording ---- */

struct recording {
    struct dice dice;
    struct workload workload;
    struct store_options store_options;
    struct store *store;
    char base[PATH_MAX], dir[PATH_MAX], data[PATH_MAX];
    uint64_t shown, attempted[ALLOWED_MAX]; /* what the last answer promised; what may be there instead */
    uint32_t attempted_count;
    bool born;
};
static struct recording *recording;

static uint64_t shown_by(const char *data)
{
    uint64_t digest = 0, rows;
    disk_pause();
    const char *wrong = digest_of(data, ROWS_MAX, &digest, &rows);
    disk_resume();
    if (wrong)
        violation("recording: %s", wrong);
    return digest;
}

static void witness(int fd, struct disk_entry *entry)
{
    char data[64];
    struct recording *r = recording;
    if (!r->born)
        return;
    snprintf(data, sizeof(data), "/proc/self/fd/%d", fd);
    entry->mark = MARK_ATTEMPT;
    entry->value = shown_by(data);
    if (r->attempted_count < ALLOWED_MAX)
        r->attempted[r->attempted_count++] = entry->value;
}

static struct disk_faults faults_of_opening(struct recording *r)
{
    struct disk_faults faults = {0};
    uint32_t face = dice_below(&r->dice, 10);
    if (face < 3)
        faults.dies_after = 1 + dice_below(&r->dice, r->born ? 6 : 40);
    else if (face == 3)
        faults.sync_fails = 400;
    else if (face == 4)
        faults.through_fails = 400;
    return faults;
}

/* What is there after a restart without a power cut: the last answer, or an attempt that nobody was told of. */
static void settle(struct recording *r)
{
    uint64_t shows = shown_by(r->data);
    bool known = !r->born || shows == r->shown;
    for (uint32_t i = 0; i < r->attempted_count; i++)
        known |= shows == r->attempted[i];
    if (!known)
        violation("recording: a restarted store shows what nobody attempted");
    r->born = true;
    r->shown = shows;
    r->attempted_count = 0;
    disk_mark(MARK_DATA, disk_file(r->data));
    disk_mark(MARK_OPENED, shows);
}

/* Opens, with processes that die or disks that fail on the way; the last try has a sound disk. */
static bool open_store(struct recording *r)
{
    char text[512];
    for (int tries = 3; tries >= 0; tries--) {
        r->store = NULL;
        disk_mark(MARK_OPENING, 0);
        disk_fail(tries > 0 ? faults_of_opening(r) : (struct disk_faults){0});
        enum error e = store_open(&r->store_options, &r->store, text, sizeof(text));
        bool died = disk_dead();
        disk_fail((struct disk_faults){0});
        if (died)
            atomic_fetch_add(&shared->kills, 1);
        if (e == OK && !died) {
            settle(r);
            return true;
        }
        store_close(r->store);
        r->store = NULL;
        if (e && tries == 0)
            violation("recording: a restarted store isn't opened: %s (%s)", text, error_name(e));
    }
    return false;
}

static struct disk_faults faults_of_batch(struct recording *r)
{
    struct disk_faults faults = {0};
    uint32_t face = dice_below(&r->dice, 100);
    faults.code = dice_below(&r->dice, 2) ? ENOSPC : EIO;
    if (face < 5)
        faults.sync_fails = face < 3 ? 1000 : 500; /* a second try may succeed, and must not be made */
    else if (face < 12)
        faults.through_fails = 1000;
    else if (face < 20)
        faults.dies_after = 1 + dice_below(&r->dice, 14);
    return faults;
}

/* S3: after a failed commit nothing is answered any more. */
static void check_failed(struct recording *r, enum error e)
{
    struct batch_item item = r->workload.items[0];
    if (e != ERR_IO || store_state(r->store) != STORE_FAILED)
        violation("recording: a failing disk made a batch %s, and the store %s", error_name(e),
                  store_state_name(store_state(r->store)));
    if (batch_run(r->store, &item, 1) != ERR_UNAVAILABLE)
        violation("recording: a failed store takes another batch");
}

/* A sync of data that finds the disk full: LMDB has dropped the transaction, and nothing else. */
static bool was_full(struct recording *r, enum error e)
{
    if (e != ERR_NO_SPACE || disk_dead() || store_state(r->store) == STORE_FAILED)
        return false;
    if (shown_by(r->data) != r->shown)
        violation("recording: a batch for which there was no room shows");
    atomic_fetch_add(&shared->full, 1);
    return true;
}

/* False: this process has ended. */
static bool run_batch(struct recording *r)
{
    size_t count = workload_draw(&r->workload, r->store);
    uint64_t failed = disk_failed_syncs();
    struct disk_faults faults = faults_of_batch(r);
    disk_fail(faults);
    enum error e = batch_run(r->store, r->workload.items, count);
    bool died = disk_dead(), failing = died || disk_failed_syncs() > failed;
    bool goes_on = !died && store_state(r->store) != STORE_FAILED;
    if (e == OK && goes_on && faults.code == EIO && disk_failed_syncs() > failed)
        violation("recording: a batch was answered although a sync had failed");
    if (e == OK) {
        uint64_t shows = shown_by(r->data);
        uint64_t last = r->attempted_count ? r->attempted[r->attempted_count - 1] : r->shown;
        if (shows != last)
            violation("recording: a batch was answered, and the file shows something else");
        r->shown = shows;
        r->attempted_count = 0;
        disk_mark(MARK_ANSWERED, shows);
        atomic_fetch_add(&shared->batches, 1);
    } else if (failing && faults.code == ENOSPC && was_full(r, e)) {
        failing = false; /* it goes on */
    } else if (failing) {
        check_failed(r, e);
    } else if (shown_by(r->data) != r->shown || e != ERR_NO_SPACE) {
        violation("recording: a batch was refused (%s) on a sound disk", error_name(e));
    }
    if (died)
        atomic_fetch_add(&shared->kills, 1);
    disk_fail((struct disk_faults){0});
    return !failing && store_state(r->store) != STORE_FAILED;
}

static void check_alone(struct recording *r)
{
    char text[512];
    struct store *second = NULL;
    disk_pause();
    enum error e = store_open(&r->store_options, &second, text, sizeof(text));
    disk_resume();
    if (e != ERR_IN_USE)
        violation("recording: a store is opened twice (%s)", error_name(e));
    store_close(second);
}

static uint32_t complaints;
static void complain(void *context, const char *finding)
{
    violation("%s: %s", (const char *)context, finding);
    complaints++;
}

static void check_all_rows(struct store *store, const char *where)
{
    struct check_report report;
    char context[32];
    snprintf(context, sizeof(context), "%s", where);
    struct view *view = view_open_outside(store, 2);
    if (!view) {
        violation("%s: no view", where);
        return;
    }
    complaints = 0;
    enum error e = check_rows(&view->txn, &parcel_store_schema, complain, context, &report);
    if (e || (report.findings > 0 && complaints == 0))
        violation("%s: rows: %s", where, error_name(e));
    view_close(view);
}

static void choose_sizes(struct recording *r)
{
    static const uint64_t maps[] = {128 << 10, 192 << 10, 256 << 10, 512 << 10};
    struct environment_options *e = &r->store_options.environment;
    e->map = maps[dice_below(&r->dice, 4)];
    e->map_max = 4 << 20;
    e->step = 64 << 10;
    e->reserve = (4 + dice_below(&r->dice, 8)) << 12;
    e->views_max = 16;
    r->store_options.schema = &parcel_store_schema;
    r->store_options.env = &seeded;
    r->store_options.ledger_max = 8192;
}

static bool record(void)
{
    struct recording *r = recording = calloc(1, sizeof(*recording));
    if (!r || !workload_create(&r->workload, here.seed))
        return false;
    here.now = 1;
    here.wall = UINT64_C(1790000000) * NS_PER_S;
    here.chance = dice_of(here.seed ^ 0x5eed);
    r->dice = dice_of(here.seed ^ 0xd15c);
    path_of(r->base, "recorded");
    snprintf(r->dir, sizeof(r->dir), "%s/recorded/store", here.dir);
    snprintf(r->data, sizeof(r->data), "%s/recorded/store/data.mdb", here.dir);
    remove_all(r->base);
    choose_sizes(r);
    r->store_options.environment.dir = r->dir;
    if (mkdir(r->base, 0700) < 0 || !disk_record(r->base, here.seed))
        return false;
    disk_witness(witness);
    uint32_t batches = BATCHES_MIN + dice_below(&r->dice, BATCHES_MORE);
    bool open = open_store(r);
    if (open)
        check_alone(r);
    for (uint32_t i = 0; open && i < batches && !disk_full(); i++) {
        uint64_t grown = atomic_load(&r->store->grown);
        bool lives = run_batch(r);
        atomic_fetch_add(&shared->grown, atomic_load(&r->store->grown) - grown);
        if (lives && !dice_chance(&r->dice, 15))
            continue;
        store_close(r->store);
        open = open_store(r);
    }
    disk_stop();
    if (open) {
        check_all_rows(r->store, "recording");

        store_close(r->store);
    }
    atomic_fetch_add(&shared->failed_syncs, disk_failed_syncs());
    if (disk_full())
        violation("recording: longer than its log");
    return true;
}

/* ---- checking ---- */

struct checker {
    struct platter platter;
    struct platter_image image;
    struct platter_choice choice;
    struct dice dice;
    char path[PATH_MAX], tree[PATH_MAX];
    uint64_t allowed[ALLOWED_MAX], ordinal, from, until;
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
        violation("page by page: %s: %s", error_name(e), why);
    atomic_fetch_add(&shared->images, 1);
}

static void check_image(struct checker *c)
{
    uint64_t digest, rows;
    const char *wrong = digest_of(c->path, ROWS_MAX, &digest, &rows);
    if (wrong)
        violation("doesn't open or read: %s", wrong);
    else if (!allowed(c, digest))
        violation("shows %" PRIu64 " rows that are of no batch between acknowledged and attempted", rows);
    else if (c->ordinal % IMAGE_EVERY == 0)
        check_pages(c);
}

/* Whether this state is one to look at; counts it. */
static bool wanted(struct checker *c)
{
    uint64_t ordinal = c->ordinal++;
    if (ordinal < c->from || ordinal >= c->until)
        return false;
    atomic_store(&here.worker->at, ordinal);
    if (ordinal % 256 == 0)
        alarm(STATE_SECONDS);
    atomic_fetch_add_explicit(here.kind == PLATTER_HONEST ? &shared->states
                                                          : &shared->control_states[here.kind],
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
        struct dice dice = dice_of(here.seed << 40 ^ c->ordinal);
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
    struct dice dice = dice_of(here.seed << 40 ^ c->ordinal);
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
    path_of(dir, "tree/store");
    o.environment.dir = dir;
    o.environment.must_exist = must_exist;
    enum error e = store_open(&o, &store, text, sizeof(text));
    if (e)
        violation("the product refuses what is left: %s: %s", error_name(e), text);
    return store;
}

static uint64_t tree_shows(void)
{
    char data[PATH_MAX];
    uint64_t digest = 0, rows;
    path_of(data, "tree/store/data.mdb");
    const char *wrong = digest_of(data, ROWS_MAX, &digest, &rows);
    if (wrong)
        violation("opened by the product, then not readable: %s", wrong);
    return digest;
}

static void go_on_with_tree(struct checker *c, struct store *store)
{
    struct workload *w = &recording->workload;
    w->dice = dice_of(c->ordinal);
    check_all_rows(store, "what is left");
    enum error e = batch_run(store, w->items, workload_draw(w, store));
    if (e)
        violation("what is left takes no batch: %s", error_name(e));
    store_close(store);
    uint64_t shown = tree_shows();
    store = open_tree(true);
    if (store && tree_shows() != shown)
        violation("what is left forgets a batch");
    if (store)
        check_all_rows(store, "what is left, opened again");
    store_close(store);
}

static void state_of_tree(struct checker *c)
{
    struct dice dice = dice_of(here.seed << 40 ^ c->ordinal);
    if (!wanted(c))
        return;
    atomic_fetch_add(&shared->trees, 1);
    remove_all(c->tree);
    platter_torn(&c->platter, &dice, &c->choice);
    if (mkdir(c->tree, 0700) < 0 || !platter_build_tree(&c->platter, &c->choice, &dice, c->tree)) {
        violation("harness: a tree can't be built: %s", strerror(errno));
        return;
    }
    struct store *store = open_tree(c->watched);
    if (!store)
        return;
    if (c->watched && !allowed(c, tree_shows()))
        violation("opened by the product: shows what is of no batch between acknowledged and attempted");
    go_on_with_tree(c, store);
}

/* ---- along the log ---- */

static void allow(struct checker *c, uint64_t digest)
{
    if (c->allowed_count < ALLOWED_MAX)
        c->allowed[c->allowed_count++] = digest;
    else
        violation("harness: too many attempts without an answer");
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
            violation("harness: no image");
        c->watched = true;
        c->platter.kind = here.kind; /* a store comes into being on an honest disk */
        c->platter.opening = false;
        c->allowed_count = 0;
        allow(c, entry->value);
        if (here.kind == PLATTER_NO_DATA_SYNC) /* it forgets to sync the last two batches, not all of them */
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
    struct dice dice = dice_of(here.seed << 32 ^ c->index);
    uint32_t one_of = !c->watched ? 8 : c->platter.opening ? 4 : 400;
    return here.kind == PLATTER_HONEST && dice_below(&dice, one_of) == 0;
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

static void check_log(uint64_t from, uint64_t until)
{
    uint32_t count;
    const struct disk_entry *log = disk_log(&count);
    struct checker *c = calloc(1, sizeof(*c));
    if (!c || !platter_create(&c->platter, log))
        abort();
    path_of(c->path, "image");
    path_of(c->tree, "tree");
    c->image.fd = open(c->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    c->image.map = mmap(NULL, PLATTER_FILE_MAX, PROT_READ | PROT_WRITE, MAP_SHARED, c->image.fd, 0);
    if (c->image.map == MAP_FAILED)
        abort();
    c->from = from;
    c->until = until;
    for (c->index = 0; c->index < count && c->ordinal < until; c->index++) {
        follow(c, &log[c->index]);
        if (here.kind != PLATTER_HONEST && atomic_load(&here.worker->found) >= CONTROL_VIOLATIONS)
            break;
    }
    if (options.only) {
        c->index -= c->index > 0;
        tell(c);
    }
    if (c->platter.overflow)
        violation("harness: more is pending than fits");
    alarm(0);
}

/* ---- one seed: a recorder, and checkers that may die ---- */

static void silence(void)
{
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        dup2(fd, STDERR_FILENO);
}

/* Forks a checker until one comes to the end. */
static void check_part(enum platter_kind kind, uint64_t from, uint64_t until)
{
    here.kind = kind;
    atomic_store(&here.worker->found, 0);
    for (;;) {
        int status;
        pid_t pid = fork();
        if (pid < 0)
            abort();
        if (pid == 0) {
            if (kind != PLATTER_HONEST && !options.only)
                silence();
            check_log(from, until);
            fflush(NULL);
            _exit(0);
        }
        if (waitpid(pid, &status, 0) != pid || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
            break;
        if (kind == PLATTER_HONEST)
            atomic_fetch_add(&shared->deaths, 1);
        violation("the reader died: %s", WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "it ended");
        from = atomic_load(&here.worker->at) + 1;
        if (atomic_load(&here.worker->found) >= CONTROL_VIOLATIONS * 4)
            break;
    }
    if (kind != PLATTER_HONEST && atomic_load(&here.worker->found) > 0)
        atomic_fetch_add(&shared->caught[kind], 1);
}

static void run_recorder(void)
{
    if (!record()) {
        violation("harness: nothing was recorded: %s", strerror(errno));
        _exit(1);
    }
    atomic_store(&here.worker->recorded, 1);
    if (options.only) {
        check_part(options.only_kind, options.only_state, options.only_state + 1);
        _exit(0);
    }
    check_part(PLATTER_HONEST, 0, UINT64_MAX);
    for (uint32_t kind = PLATTER_HONEST + 1; kind < PLATTER_KINDS; kind++)
        if (here.seed < options.first_seed + 2 || atomic_load(&shared->caught[kind]) == 0)
            check_part((enum platter_kind)kind, 0, CONTROL_STATES);
    _exit(0);
}

static void run_seed(uint64_t seed)
{
    int status;
    here.seed = seed;
    here.kind = PLATTER_HONEST;
    atomic_store(&here.worker->at, 0);
    atomic_store(&here.worker->recorded, 0);
    pid_t pid = fork();
    if (pid < 0)
        abort();
    if (pid == 0)
        run_recorder();
    if (waitpid(pid, &status, 0) == pid && status != 0)
        violation("the %s died: %s %d", atomic_load(&here.worker->recorded) ? "harness" : "recorded store",
                  WIFSIGNALED(status) ? "signal" : "status",
                  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    atomic_fetch_add(&shared->seeds, 1);
}

static void run_worker(uint32_t number)
{
    here.worker = &shared->workers[number];
    snprintf(here.dir, sizeof(here.dir), "%s/powercut.%ld.%u", options.dir, (long)getppid(),
             (unsigned)number);
    if (mkdir(here.dir, 0700) < 0 && errno != EEXIST)
        _exit(1);
    if (options.only)
        run_seed(options.first_seed);
    else
        while (atomic_load(&shared->states) < options.states &&
               atomic_load(&shared->violations) < REPORTS_MAX)
            run_seed(atomic_fetch_add(&shared->next_seed, 1));
    remove_all(here.dir);
    _exit(0);
}

/* ---- the campaign ---- */

static void print_reports(void)
{
    uint32_t count = atomic_load(&shared->reports_count);
    for (uint32_t i = 0; i < count && i < REPORTS_MAX; i++) {
        const struct report *r = &shared->reports[i];
        printf("VIOLATION --seed %" PRIu64 " --state %" PRIu64 ": %s\n", r->seed, r->state, r->text);
    }
}

static bool reached_all(void)
{
    return atomic_load(&shared->batches) && atomic_load(&shared->grown) &&
           atomic_load(&shared->failed_syncs) && atomic_load(&shared->kills) && atomic_load(&shared->trees) &&
           atomic_load(&shared->images) && atomic_load(&shared->full);
}

static int sum_up(double seconds)
{
    uint64_t states = atomic_load(&shared->states), violations = atomic_load(&shared->violations);
    uint32_t passed = violations == 0 && states > 0, failed = !passed;
    print_reports();
    printf("violations          %" PRIu64 " of %" PRIu64 " states (%.0f states/s, %.0f s)\n", violations,
           states, (double)states / seconds, seconds);
    printf("of them             %" PRIu64 " whole folders opened by the product, %" PRIu64
           " looked at page by page\n",
           atomic_load(&shared->trees), atomic_load(&shared->images));
    printf("recorded            %" PRIu64 " seeds, %" PRIu64 " batches, %" PRIu64 " growths of the map\n",
           atomic_load(&shared->seeds), atomic_load(&shared->batches), atomic_load(&shared->grown));
    printf("faults              %" PRIu64 " failing syncs and writes through, %" PRIu64
           " after which a full disk's store went on, %" PRIu64 " killed processes\n",
           atomic_load(&shared->failed_syncs), atomic_load(&shared->full), atomic_load(&shared->kills));
    for (uint32_t kind = PLATTER_HONEST + 1; kind < PLATTER_KINDS; kind++) {
        bool caught = atomic_load(&shared->caught[kind]) > 0;
        printf("control %s           %s (%" PRIu64 " states)\n", control_names[kind],
               caught ? "caught" : "MISSED", atomic_load(&shared->control_states[kind]));
        passed += caught;
        failed += !caught;
    }
    if (!reached_all()) {
        printf("NOT REACHED         a campaign in which one of these never happened proves nothing\n");
        failed++;
    }
    printf("%u passed, %u failed\n", (unsigned)passed, (unsigned)failed);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int sum_up_one(void)
{
    print_reports();
    uint64_t found = atomic_load(&shared->workers[0].found);
    printf("seed %" PRIu64 ", state %" PRIu64 ": %s\n", options.first_seed, options.only_state,
           found ? "violated" : "sound");
    return found ? EXIT_FAILURE : EXIT_SUCCESS;
}

static bool parse(int count, char **args)
{
    for (int i = 1; i + 1 < count; i += 2) {
        const char *name = args[i], *value = args[i + 1];
        if (strcmp(name, "--states") == 0)
            options.states = strtoull(value, NULL, 10);
        else if (strcmp(name, "--seed") == 0)
            options.first_seed = strtoull(value, NULL, 10);
        else if (strcmp(name, "--state") == 0) {
            options.only = true;
            options.only_state = strtoull(value, NULL, 10);
        } else if (strcmp(name, "--workers") == 0)
            options.workers = (uint32_t)strtoul(value, NULL, 10);
        else if (strcmp(name, "--dir") == 0)
            snprintf(options.dir, sizeof(options.dir), "%s", value);
        else if (strcmp(name, "--control") == 0 && value[0] >= 'A' && value[0] <= 'C')
            options.only_kind = (enum platter_kind)(value[0] - 'A' + 1);
        else
            return false;
    }
    return count % 2 == 1 && options.workers >= 1 && options.workers <= WORKERS_MAX;
}

int main(int count, char **args)
{
    struct timespec began, ended;
    if (!parse(count, args)) {
        fprintf(stderr,
                "powercut [--states N] [--seed S] [--workers N] [--dir DIR] [--state N [--control A|B|C]]\n");
        return 64;
    }
    setrlimit(RLIMIT_CORE, &(struct rlimit){0});
    parcel_install();
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return EXIT_FAILURE;
    atomic_store(&shared->next_seed, options.first_seed);
    if (options.only)
        options.workers = 1;
    clock_gettime(CLOCK_MONOTONIC, &began);
    for (uint32_t i = 0; i < options.workers; i++)
        if (fork() == 0)
            run_worker(i);
    int status, worst = 0;
    while (wait(&status) > 0)
        worst |= status;
    clock_gettime(CLOCK_MONOTONIC, &ended);
    double seconds = (double)(ended.tv_sec - began.tv_sec) + (double)(ended.tv_nsec - began.tv_nsec) / 1e9;
    int result = options.only ? sum_up_one() : sum_up(seconds);
    return worst ? EXIT_FAILURE : result;
}
