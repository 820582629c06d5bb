#define _GNU_SOURCE
#include "chaos/powercut_cut.h"

#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/check.h"
#include "store/view.h"
#include "tests/support/parcel.h"

struct cut_shared *cut_shared;
struct cut_options cut_options = {.states = 1000000, .first_seed = 1, .workers = 2, .dir = "/dev/shm"};
struct cut_here cut_here;

const char *cut_control_name(enum platter_kind kind)
{
    static const char *const names[PLATTER_KINDS] = {
        [PLATTER_NO_DATA_SYNC] = "A", [PLATTER_NO_META_SYNC] = "B", [PLATTER_NO_FIRST_SYNC] = "C"};
    return names[kind];
}

__attribute__((format(printf, 1, 2))) void cut_violation(const char *format, ...)
{
    va_list list;
    char text[sizeof(((struct report *)0)->text)];
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    atomic_fetch_add(&cut_here.worker->found, 1);
    if (cut_here.kind != PLATTER_HONEST) {
        if (cut_options.only)
            printf("%s\n", text);
        return;
    }
    atomic_fetch_add(&cut_shared->violations, 1);
    uint32_t slot = atomic_fetch_add(&cut_shared->reports_count, 1);
    if (slot >= CUT_REPORTS_MAX)
        return;
    struct report *report = &cut_shared->reports[slot];
    report->seed = cut_here.seed;
    report->state = atomic_load(&cut_here.worker->at);
    memcpy(report->text, text, sizeof(text));
}

void cut_path(char path[PATH_MAX], const char *name)
{
    snprintf(path, PATH_MAX, "%s/%s", cut_here.dir, name);
}

static int remove_one(const char *path, const struct stat *stat, int kind, struct FTW *ftw)
{
    (void)stat;
    (void)kind;
    (void)ftw;
    return remove(path);
}

void cut_remove(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- an environment whose time and chance are the seed's ---- */

static uint64_t env_now(struct env *env)
{
    (void)env;
    return cut_here.now += 1000;
}

static uint64_t env_wall(struct env *env)
{
    (void)env;
    return cut_here.wall += 1000;
}

static void env_random(struct env *env, void *bytes, size_t size)
{
    uint8_t *to = bytes;
    (void)env;
    for (size_t i = 0; i < size; i++)
        to[i] = (uint8_t)dice_draw(&cut_here.chance);
}

static uint32_t env_pick(struct env *env, uint32_t count)
{
    (void)env;
    (void)count;
    return 0;
}

struct env cut_env = {.name = "powercut",
                      .simulated = true,
                      .now = env_now,
                      .wall = env_wall,
                      .elapsed = env_now,
                      .random = env_random,
                      .pick = env_pick};

/* ---- rows ---- */

static uint32_t complaints;
static void complain(void *context, const char *finding)
{
    cut_violation("%s: %s", (const char *)context, finding);
    complaints++;
}

void cut_check_rows(struct store *store, const char *where)
{
    struct check_report report;
    char context[32];
    snprintf(context, sizeof(context), "%s", where);
    struct view *view = view_open_outside(store, 2);
    if (!view) {
        cut_violation("%s: no view", where);
        return;
    }
    complaints = 0;
    enum error e = check_rows(&view->txn, &parcel_store_schema, complain, context, &report);
    if (e || (report.findings > 0 && complaints == 0))
        cut_violation("%s: rows: %s", where, error_name(e));
    view_close(view);
}
