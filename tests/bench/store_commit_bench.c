/* Durable commands: how many a second, how soon each is answered, and what they cost the writer.
 *
 * commit_N: N submitters on one scheduler, the writer on its own; each command is one record of 1 KiB with its event,
 * its outbox row and its ledger row, and is answered after the commit that holds it. peer: plain LMDB (limits.h)
 * writes the same rows in commits of N, on the same disk, by turns with ours; ratio: ours by peer, turn by turn.
 * group_N is how many commands a commit of ours had.
 *
 * p99_64: from the submitting of a command to its answer, in units of one raw sync: one sequential write of as many
 * bytes as a commit of ours wrote in that turn, and its fdatasync, the median of many in that turn (.peer, in us).
 * p99_64_4k is the same latency in units of a sync of 4 KiB; p99_64_pages of one of as many bytes in as many pieces as
 * the commit had, all over the file; p99_64_us in us. p99_64_lmdb is the p99 of plain LMDB's
 * commits of 64, in units of the first kind: nobody who keeps to two flushes a commit is below it. p99_64_raw is the p99 of that one
 * raw sync itself, in units of its median, and p99_64_like our p99 in units of that p99: like by like.
 *
 * cpu: of the writer's thread per command at 64 submitters, user and system, without the CPU that the kernel took for
 * flushing (disk.h); cpu_whole has that, too. cpu_256 is at 256. The peer is plain LMDB's thread, measured alike.
 */
#define _GNU_SOURCE
#include "tests/bench/bench.h"
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "tests/bench/disk.h"
#include "tests/bench/limits.h"
#include "tests/bench/load.h"
#include "tests/support/parcel.h"

#define TURN_NS     (250 * NS_PER_MS)
#define SYNC_NS     (60 * NS_PER_MS)
#define COMMITS_MAX 100000u

static struct store *store;
static struct limits *limits;
static const char *raw;

/* ---- plain LMDB's turn ---- */

struct peer {
    double rate, p99_us, cpu_us, sync_cpu_us;
};

static uint64_t thread_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static void run_peer(uint32_t group, struct peer *ret)
{
    static uint64_t took[COMMITS_MAX];
    uint64_t count = 0, started = bench_now(), cpu = thread_cpu_ns(), sync = disk_counts().sync_cpu_ns;
    do {
        uint64_t began = bench_now();
        limits_commit(limits, group);
        took[count++] = bench_now() - began;
    } while (bench_now() - started < TURN_NS && count < COMMITS_MAX);
    double commands = (double)count * group;
    *ret = (struct peer){.rate = bench_per_second(count * group, started),
                         .cpu_us = (double)(thread_cpu_ns() - cpu) / 1e3 / commands,
                         .sync_cpu_us = (double)(disk_counts().sync_cpu_ns - sync) / 1e3 / commands,
                         .p99_us = (double)bench_quantile(took, count, 0.99) / 1e3};
}

/* ---- turns ---- */

struct turn {
    struct load ours;
    struct peer peer;
    double sync_us, sync_p99_us, sync_4k_us,
        sync_pages_us; /* raw syncs: of as many bytes as a commit of ours; of 4 KiB; in pieces */
};

static void take_turn(uint32_t submitters, struct turn *t)
{
    run_peer(submitters, &t->peer);
    load_run_for(store, submitters, TURN_NS, &t->ours);
    size_t bytes = ((size_t)t->ours.commit_bytes + 4095) / 4096 * 4096;
    struct limits_syncs syncs = limits_sync(raw, bytes, 1, SYNC_NS);
    t->sync_us = (double)syncs.p50_ns / 1e3;
    t->sync_p99_us = (double)syncs.p99_ns / 1e3;
    t->sync_4k_us = (double)limits_sync(raw, 4096, 1, SYNC_NS).p50_ns / 1e3;
    uint32_t pieces = t->ours.commit_writes > 2 ? (uint32_t)t->ours.commit_writes - 1 : 1;
    t->sync_pages_us = (double)limits_sync(raw, bytes, pieces, SYNC_NS).p50_ns / 1e3;
}

/* X(name, unit, better, value of a turn); N: the submitters, as text */
#define RATE(X, N)                                                        \
    X("commit_" N, "commands/s", BENCH_MORE, t->ours.rate)                \
    X("commit_" N ".peer", "commands/s", BENCH_MORE, t->peer.rate)        \
    X("commit_" N ".ratio", "x", BENCH_MORE, t->ours.rate / t->peer.rate) \
    X("group_" N, "commands/commit", BENCH_MORE, t->ours.group)           \
    X("p50_" N "_us", "us", BENCH_LESS, t->ours.p50_us)
#define LATENCY(X)                                                            \
    X("p99_64", "syncs", BENCH_LESS, t->ours.p99_us / t->sync_us)             \
    X("p99_64.peer", "us", BENCH_LESS, t->sync_us)                            \
    X("p99_64_4k", "syncs", BENCH_LESS, t->ours.p99_us / t->sync_4k_us)       \
    X("p99_64_4k.peer", "us", BENCH_LESS, t->sync_4k_us)                      \
    X("p99_64_pages", "syncs", BENCH_LESS, t->ours.p99_us / t->sync_pages_us) \
    X("p99_64_pages.peer", "us", BENCH_LESS, t->sync_pages_us)                \
    X("p99_64_us", "us", BENCH_LESS, t->ours.p99_us)                          \
    X("p99_64_lmdb", "syncs", BENCH_LESS, t->peer.p99_us / t->sync_us)        \
    X("p99_64_raw", "syncs", BENCH_LESS, t->sync_p99_us / t->sync_us)         \
    X("p99_64_like", "syncs", BENCH_LESS, t->ours.p99_us / t->sync_p99_us)    \
    X("commit_64_bytes", "bytes", BENCH_LESS, t->ours.commit_bytes)           \
    X("commit_64_syncs", "syncs", BENCH_LESS, t->ours.commit_syncs)
#define CPU(X, suffix)                                                              \
    X("cpu" suffix, "us", BENCH_LESS, t->ours.cpu_us - t->ours.sync_cpu_us)         \
    X("cpu" suffix ".peer", "us", BENCH_LESS, t->peer.cpu_us - t->peer.sync_cpu_us) \
    X("cpu_whole" suffix, "us", BENCH_LESS, t->ours.cpu_us)                         \
    X("cpu_whole" suffix ".peer", "us", BENCH_LESS, t->peer.cpu_us)

#define REPORT(row, row_unit, row_better, value)                                                       \
    do {                                                                                               \
        double values[BENCH_REPETITIONS];                                                              \
        for (const struct turn *t = turns; t < turns + BENCH_REPETITIONS; t++)                         \
            values[t - turns] = value;                                                                 \
        bench_report(&(struct bench_row){.name = row, .unit = row_unit, .better = row_better}, values, \
                     BENCH_REPETITIONS);                                                               \
    } while (0);

static bool take_turns(const char *name, uint32_t submitters, struct turn turns[BENCH_REPETITIONS])
{
    struct turn warm;
    if (!bench_wanted(name))
        return false;
    take_turn(submitters, &warm);
    for (int i = 0; i < BENCH_REPETITIONS; i++)
        take_turn(submitters, &turns[i]);
    return true;
}

/* The yardstick is fair only as long as it writes what we write. */
static void compare_rows(void)
{
    static const uint32_t tables[] = {TABLE_PARCELS, TABLE_EVENTS, TABLE_OUTBOX, TABLE_LEDGER};
    static const uint32_t keys[] = {
#define X(id, name, key, value) key,
        LIMITS_ROWS(X)
#undef X
    };
    static const uint32_t values[] = {
#define X(id, name, key, value) value,
        LIMITS_ROWS(X)
#undef X
    };
    for (int i = 0; i < LIMITS_ROW_COUNT; i++) {
        MDB_txn *txn;
        MDB_cursor *cursor;
        MDB_val k, v;
        if (mdb_txn_begin(store->environment.mdb, NULL, MDB_RDONLY, &txn) ||
            mdb_cursor_open(txn, store->environment.tables[tables[i]], &cursor) ||
            mdb_cursor_get(cursor, &k, &v, MDB_LAST))
            bench_fail("table %d of ours can't be read", i);
        if (k.mv_size != keys[i] || v.mv_size != values[i])
            bench_fail("table %d: a row of ours has %zu + %zu bytes, the yardstick's %u + %u", i, k.mv_size,
                       v.mv_size, keys[i], values[i]);
        mdb_cursor_close(cursor);
        mdb_txn_abort(txn);
    }
}

int main(void)
{
    static struct turn turns[BENCH_REPETITIONS];
    bench_begin("store", 20);
    raw = limits_folder("raw");
    const char *plain = limits_folder("lmdb"), *ours = limits_folder("commit");
    limits = limits_open(plain);
    store = load_open(ours);
    load_write(store, 0, 256, 256);
    compare_rows();
    if (take_turns("commit_1", 1, turns)) {
        RATE(REPORT, "1")
    }
    if (take_turns("commit_64 p99_64 cpu", 64, turns)) {
        RATE(REPORT, "64")
        LATENCY(REPORT)
        CPU(REPORT, "")
    }
    if (take_turns("commit_256 cpu_256", 256, turns)) {
        RATE(REPORT, "256")
        CPU(REPORT, "_256")
    }
    store_close(store);
    limits_close(limits);
    limits_remove(plain), limits_remove(ours), limits_remove(raw);
    return 0;
}
