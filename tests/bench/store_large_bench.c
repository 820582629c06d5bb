/* A store of 1,000,000 parcels of 1 KiB: how large it is, how fast it opens, and how fast it is read.
 *
 * bytes: pages of the file in use by the acknowledged commands, each of which brought its event, outbox row and
 * ledger row as well; they were written in commits of 256. bytes_file: blocks of the file, those that are only
 * allocated ahead included.
 *
 * open: from the exec of a program that opens the store (this one again) to its first record, read and verified; at
 * 1 GiB of used pages, all of them in the page cache. open_1m is the same at 1,000,000 parcels. open_writer: from exec
 * to the first durable command, at 1 GiB; it needs the ledger's keys, which reading does not.
 *
 * read: a thread's reads of random points, through a view that is opened again every 100 reads; read_fresh opens one
 * for each. A value is verified when it is read, so each byte of it is looked at. read.peer: mdb_get on the same file
 * in one long transaction, with a look at one byte of each cache line of the value; read_pointer.peer: without a look.
 * The ratio is to the former. read_busy: the same reads while 64 submitters keep the writer busy; its ratio is to the
 * peer without them, read_busy_own.ratio to our own reads without them. read_busy_writes is what the submitters got.
 */
#define _GNU_SOURCE
#include "tests/bench/bench.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "store/view.h"
#include "tests/bench/again.h"
#include "tests/bench/limits.h"
#include "tests/bench/load.h"
#include "tests/support/parcel.h"

#define PARCELS    1000000u
#define GROUP      256u
#define PIECE      (GROUP * 64u)
#define OPEN_BYTES (1ull << 30)
#define RENEW      100u
#define READ_NS    (150 * NS_PER_MS)
#define PEER_READS 60000u
#define BUSY_LANE  1u

static struct store *store;
static const char *folder;
static char first_read[] = "read", first_write[] = "write";

/* ---- opening ---- */

/* The second process: a server's way to its first read, or to its first durable command. */
static int serve_one(const char *dir, bool write_too)
{
    struct store *mine = load_open(dir);
    if (write_too) {
        load_write(mine, -(uint64_t)getpid(), 1,
                   1); /* before all others: these must go on growing at the end */
        _exit(write(STDOUT_FILENO, "1", 1) != 1);
    }
    struct view *view = view_open_outside(mine, 0);
    struct uuid id = load_id(1);
    struct key key = key_of_uuid(&id);
    struct parcel parcel;
    if (!view || txn_read(&view->txn, TABLE_PARCELS, key_span(&key), &parcel) != OK ||
        parcel.body.size != LIMITS_BODY || write(STDOUT_FILENO, "1", 1) != 1)
        return 1;
    view_close(view);
    _exit(0); /* what a server does at its end is not measured */
}

static void open_once(void *arg, double *ret)
{
    uint64_t started = bench_now();
    struct again again = again_start(arg, folder, NULL);
    again_await(&again);
    *ret = (double)(bench_now() - started) / 1e6;
    again_end(&again);
}

/* ---- writing it ---- */

static uint64_t used_bytes(void)
{
    MDB_envinfo info;
    if (mdb_env_info(store->environment.mdb, &info))
        bench_fail("mdb_env_info");
    return ((uint64_t)info.me_last_pgno + 1) * store->environment.page_size;
}

static uint64_t write_until(uint64_t from, uint64_t bytes)
{
    uint64_t at = from;
    while (at < PARCELS && used_bytes() < bytes) {
        uint64_t count = PARCELS - at < PIECE ? PARCELS - at : PIECE;
        load_write(store, at, count, GROUP);
        at += count;
    }
    return at;
}

static void report_size(void)
{
    struct stat stat;
    double used = (double)used_bytes() / PARCELS;
    if (fstat(store->environment.data_fd, &stat) < 0)
        bench_fail("the file can't be looked at");
    double file = (double)stat.st_blocks * 512 / PARCELS;
    bench_report(&(struct bench_row){"bytes", "bytes", BENCH_LESS}, &used, 1);
    bench_report(&(struct bench_row){"bytes_file", "bytes", BENCH_LESS}, &file, 1);
}

static void grow_and_open(void)
{
    store = load_open(folder);
    uint64_t at = write_until(0, OPEN_BYTES);
    store_close(store);
    bench_repeat(&(struct bench_row){"open", "ms", BENCH_LESS}, 1, open_once, first_read);
    bench_repeat(&(struct bench_row){"open_writer", "ms", BENCH_LESS}, 1, open_once, first_write);
    store = load_open(folder);
    write_until(at, UINT64_MAX);
    if (bench_wanted("bytes"))
        report_size();
    store_close(store);
    bench_repeat(&(struct bench_row){"open_1m", "ms", BENCH_LESS}, 1, open_once, first_read);
    store = load_open(folder);
}

/* ---- reading ---- */

struct reader {
    uint32_t lane, renew;
    uint64_t chance;
    _Atomic uint64_t reads;
    _Atomic bool stop;
};

static uint64_t reader_random(struct reader *r)
{
    uint64_t z = r->chance += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void read_through_view(struct reader *r)
{
    struct view *view = view_open_outside(store, r->lane);
    if (!view)
        bench_fail("no view");
    for (uint32_t i = 0; i < r->renew; i++) {
        struct uuid id = load_id(reader_random(r) % PARCELS);
        struct key key = key_of_uuid(&id);
        struct span bytes;
        uint8_t version;
        enum error e = txn_get(&view->txn, TABLE_PARCELS, key_span(&key), &version, &bytes);
        if (e || bytes.size < LIMITS_BODY)
            bench_fail("a read: %s", error_name(e));
    }
    view_close(view);
    r->reads += r->renew;
}

static double read_for(uint32_t renew)
{
    struct reader r = {.lane = 0, .renew = renew, .chance = bench_random()};
    uint64_t started = bench_now();
    do
        read_through_view(&r);
    while (bench_now() - started < READ_NS);
    return bench_per_second(r.reads, started);
}

static void *read_on(void *arg)
{
    struct reader *r = arg;
    while (!r->stop)
        read_through_view(r);
    return NULL;
}

/* Beside a load: from its first question whether to go on to the last. */
struct beside {
    struct reader reader;
    uint64_t started, reads;
    double rate;
};

static bool reading(void *arg)
{
    struct beside *b = arg;
    uint64_t time = bench_now();
    if (!b->started)
        b->started = time, b->reads = b->reader.reads;
    if (time - b->started < READ_NS)
        return true;
    b->rate = (double)(b->reader.reads - b->reads) * 1e9 / (double)(time - b->started);
    return false;
}

static double read_busy(double *ret_writes)
{
    struct beside b = {.reader = {.lane = BUSY_LANE, .renew = RENEW, .chance = bench_random()}};
    struct load load;
    pthread_t thread;
    if (pthread_create(&thread, NULL, read_on, &b.reader))
        bench_fail("no thread");
    load_run(store, 64, reading, &b, &load);
    b.reader.stop = true;
    pthread_join(thread, NULL);
    *ret_writes = load.rate;
    return b.rate;
}

static void read_turn(void *arg, double *ret)
{
    MDB_env *mdb = store->environment.mdb;
    MDB_dbi dbi = store->environment.tables[TABLE_PARCELS];
    double own = read_for(RENEW), writes;
    (void)arg;
    double peer = limits_read(mdb, dbi, load_id, PARCELS, PEER_READS, true);
    double busy = read_busy(&writes);
    ret[0] = own, ret[1] = peer, ret[2] = own / peer;
    ret[3] = read_for(1);
    ret[4] = limits_read(mdb, dbi, load_id, PARCELS, PEER_READS, false);
    ret[5] = busy, ret[6] = busy / peer, ret[7] = busy / own;
    ret[8] = writes;
}

static void measure_reads(void)
{
    static const struct bench_row rows[] = {{"read", "reads/s", BENCH_MORE},
                                            {"read.peer", "reads/s", BENCH_MORE},
                                            {"read.ratio", "x", BENCH_MORE},
                                            {"read_fresh", "reads/s", BENCH_MORE},
                                            {"read_pointer.peer", "reads/s", BENCH_MORE},
                                            {"read_busy", "reads/s", BENCH_MORE},
                                            {"read_busy.ratio", "x", BENCH_MORE},
                                            {"read_busy_own.ratio", "x", BENCH_MORE},
                                            {"read_busy_writes", "commands/s", BENCH_MORE}};
    enum { COUNT = sizeof(rows) / sizeof(rows[0]) };
    double turn[COUNT], values[COUNT][BENCH_REPETITIONS];
    if (!bench_wanted("read read_busy"))
        return;
    read_turn(NULL, turn);
    for (int i = 0; i < BENCH_REPETITIONS; i++) {
        read_turn(NULL, turn);
        for (int k = 0; k < COUNT; k++)
            values[k][i] = turn[k];
    }
    for (int k = 0; k < COUNT; k++)
        bench_report(&rows[k], values[k], BENCH_REPETITIONS);
}

int main(int argc, char **argv)
{
    if (argc == 3)
        return serve_one(argv[2], strcmp(argv[1], first_write) == 0);
    bench_begin("store", 30);
    folder = limits_folder("large");
    grow_and_open();
    measure_reads();
    store_close(store);
    limits_remove(folder);
    return 0;
}
