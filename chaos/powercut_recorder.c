#define _GNU_SOURCE
#include "chaos/powercut_recorder.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chaos/digest.h"
#include "chaos/powercut_cut.h"
#include "chaos/workload.h"
#include "tests/support/parcel.h"

enum { BATCHES_MIN = 60, BATCHES_MORE = 80 };

struct recording *recording;

static uint64_t shown_by(const char *data)
{
    uint64_t digest = 0, rows;
    disk_pause();
    const char *wrong = digest_of(data, CUT_ROWS_MAX, &digest, &rows);
    disk_resume();
    if (wrong)
        cut_violation("recording: %s", wrong);
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
    if (r->attempted_count < CUT_ALLOWED_MAX)
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
        cut_violation("recording: a restarted store shows what nobody attempted");
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
            atomic_fetch_add(&cut_shared->kills, 1);
        if (e == OK && !died) {
            settle(r);
            return true;
        }
        store_close(r->store);
        r->store = NULL;
        if (e && tries == 0)
            cut_violation("recording: a restarted store isn't opened: %s (%s)", text, error_name(e));
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
        cut_violation("recording: a failing disk made a batch %s, and the store %s", error_name(e),
                      store_state_name(store_state(r->store)));
    if (batch_run(r->store, &item, 1) != ERR_UNAVAILABLE)
        cut_violation("recording: a failed store takes another batch");
}

/* A sync of data that finds the disk full: LMDB has dropped the transaction, and nothing else. */
static bool was_full(struct recording *r, enum error e)
{
    if (e != ERR_NO_SPACE || disk_dead() || store_state(r->store) == STORE_FAILED)
        return false;
    if (shown_by(r->data) != r->shown)
        cut_violation("recording: a batch for which there was no room shows");
    atomic_fetch_add(&cut_shared->full, 1);
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
        cut_violation("recording: a batch was answered although a sync had failed");
    if (e == OK) {
        uint64_t shows = shown_by(r->data);
        uint64_t last = r->attempted_count ? r->attempted[r->attempted_count - 1] : r->shown;
        if (shows != last)
            cut_violation("recording: a batch was answered, and the file shows something else");
        r->shown = shows;
        r->attempted_count = 0;
        disk_mark(MARK_ANSWERED, shows);
        atomic_fetch_add(&cut_shared->batches, 1);
    } else if (failing && faults.code == ENOSPC && was_full(r, e)) {
        failing = false; /* it goes on */
    } else if (failing) {
        check_failed(r, e);
    } else if (shown_by(r->data) != r->shown || e != ERR_NO_SPACE) {
        cut_violation("recording: a batch was refused (%s) on a sound disk", error_name(e));
    }
    if (died)
        atomic_fetch_add(&cut_shared->kills, 1);
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
        cut_violation("recording: a store is opened twice (%s)", error_name(e));
    store_close(second);
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
    r->store_options.env = &cut_env;
    r->store_options.ledger_max = 8192;
}

bool recorder_run(void)
{
    struct recording *r = recording = calloc(1, sizeof(*recording));
    if (!r || !workload_create(&r->workload, cut_here.seed))
        return false;
    cut_here.now = 1;
    cut_here.wall = UINT64_C(1790000000) * NS_PER_S;
    cut_here.chance = dice_of(cut_here.seed ^ 0x5eed);
    r->dice = dice_of(cut_here.seed ^ 0xd15c);
    cut_path(r->base, "recorded");
    snprintf(r->dir, sizeof(r->dir), "%s/recorded/store", cut_here.dir);
    snprintf(r->data, sizeof(r->data), "%s/recorded/store/data.mdb", cut_here.dir);
    cut_remove(r->base);
    choose_sizes(r);
    r->store_options.environment.dir = r->dir;
    if (mkdir(r->base, 0700) < 0 || !disk_record(r->base, cut_here.seed))
        return false;
    disk_witness(witness);
    uint32_t batches = BATCHES_MIN + dice_below(&r->dice, BATCHES_MORE);
    bool open = open_store(r);
    if (open)
        check_alone(r);
    for (uint32_t i = 0; open && i < batches && !disk_full(); i++) {
        uint64_t grown = atomic_load(&r->store->grown);
        bool lives = run_batch(r);
        atomic_fetch_add(&cut_shared->grown, atomic_load(&r->store->grown) - grown);
        if (lives && !dice_chance(&r->dice, 15))
            continue;
        store_close(r->store);
        open = open_store(r);
    }
    disk_stop();
    if (open) {
        cut_check_rows(r->store, "recording");

        store_close(r->store);
    }
    atomic_fetch_add(&cut_shared->failed_syncs, disk_failed_syncs());
    if (disk_full())
        cut_violation("recording: longer than its log");
    return true;
}
