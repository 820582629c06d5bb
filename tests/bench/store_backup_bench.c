/* A backup while the store works: by a process of its own, as an operator makes one, under 64 submitters; and of an open
 * store that nobody writes to.
 *
 * backup, backup_idle: MB/s of the copied image, from the exec of the program that makes it to its end, with everything synced and
 * its checksum in the manifest. peer: a new file of as many bytes, written from its beginning to its end and synced;
 * ratio: ours by peer. A backup also reads those bytes back: on a disk that reads as fast as it writes the most is 0.5.
 * backup_effect: how much slower durable commands were meanwhile, as a share of the rate before. Each turn has a store of its own:
 * what is written during one would be the next one's to copy.
 */
#define _GNU_SOURCE
#include "tests/bench/bench.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "store/backup.h"
#include "tests/bench/again.h"
#include "tests/bench/limits.h"
#include "tests/bench/load.h"
#include "tests/support/parcel.h"

#define PARCELS    150000u
#define GROUP      256u
#define SUBMITTERS 64u
#define QUIET_NS   (250 * NS_PER_MS)

static struct store *store;
static const char *folder, *raw, *copies;

static void store_make(void)
{
    store = load_open(folder);
    load_write(store, 0, PARCELS, GROUP);
}

static void store_remove(void)
{
    store_close(store);
    limits_remove(folder);
}

static int back_up(const char *dir, const char *to)
{
    struct backup_report report;
    char text[512];
    enum error e =
        backup_make(dir, to, &parcel_store_schema, env_real()->wall(env_real()), &report, text, sizeof(text));
    if (e)
        fprintf(stderr, "backup: %s: %s\n", error_name(e), text);
    return e ? 1 : 0;
}

struct copying {
    const char *to;
    struct again again;
    uint64_t started, took;
};

static bool copying(void *arg)
{
    struct copying *c = arg;
    if (!c->started) {
        c->started = bench_now();
        c->again = again_start("backup", folder, c->to);
    }
    c->took = bench_now() - c->started;
    return again_running(&c->again);
}

static uint64_t copied_bytes(const char *to)
{
    char path[4352];
    struct stat stat_of;
    snprintf(path, sizeof(path), "%s/data.mdb", to);
    if (stat(path, &stat_of) < 0)
        bench_fail("%s isn't there", path);
    return (uint64_t)stat_of.st_size;
}

/* Rate, peer and ratio. */
static void report(const char *to, uint64_t took, double ret[3])
{
    uint64_t bytes = copied_bytes(to);
    limits_remove(to);
    ret[0] = (double)bytes / 1e6 * 1e9 / (double)took;
    ret[1] = limits_write(raw, bytes) / 1e6;
    ret[2] = ret[0] / ret[1];
}

static void turn_idle(void *arg, double *ret)
{
    char to[4200];
    (void)arg;
    snprintf(to, sizeof(to), "%s/copy", copies);
    uint64_t started = bench_now();
    struct again again = again_start("backup", folder, to);
    again_end(&again);
    report(to, bench_now() - started, ret);
}

static void turn(void *arg, double *ret)
{
    char to[4200];
    struct load quiet, busy;
    struct copying c = {.to = to};
    (void)arg;
    snprintf(to, sizeof(to), "%s/copy", copies);
    store_make();
    load_run_for(store, SUBMITTERS, QUIET_NS, &quiet);
    load_run(store, SUBMITTERS, copying, &c, &busy);
    again_end(&c.again);
    store_remove();
    report(to, c.took, ret);
    ret[3] = 1 - busy.rate / quiet.rate;
}

int main(int argc, char **argv)
{
    static const struct bench_row rows[] = {{"backup", "MB/s", BENCH_MORE},
                                            {"backup.peer", "MB/s", BENCH_MORE},
                                            {"backup.ratio", "x", BENCH_MORE},
                                            {"backup_effect", "x", BENCH_LESS}};
    static const struct bench_row idle_rows[] = {{"backup_idle", "MB/s", BENCH_MORE},
                                                 {"backup_idle.peer", "MB/s", BENCH_MORE},
                                                 {"backup_idle.ratio", "x", BENCH_MORE}};
    if (argc == 4 && strcmp(argv[1], "backup") == 0)
        return back_up(argv[2], argv[3]);
    bench_begin("store", 30);
    if (!bench_wanted("backup backup_effect backup_idle"))
        return 0;
    folder = limits_folder("hot");
    raw = limits_folder("raw");
    copies = limits_folder("copies");
    store_make();
    bench_repeat(idle_rows, 3, turn_idle, NULL);
    store_remove();
    bench_repeat(rows, 4, turn, NULL);
    limits_remove(raw), limits_remove(copies);
    return 0;
}
