#define _GNU_SOURCE
#include "tests/bench/limits.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "tests/bench/bench.h"

#define STEP        (32u << 20) /* the store's own (store/environment.h) */
#define MAP         (8ull << 30)
#define SYNC_FILE   (64u << 20)
#define SYNCS_MAX   4096u
#define PAGE        4096u
#define CHUNK       (1u << 20)
#define FOLDERS_MAX 8
#define IN_MEMORY   0x01021994 /* TMPFS_MAGIC */

static void check(int code, const char *what)
{
    if (code)
        bench_fail("%s: %s", what, mdb_strerror(code));
}

/* ---- folders ---- */

/* Held until the program ends. */
static void take_turn(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
        bench_fail("%s: %s", path, errno == EWOULDBLOCK ? "another benchmark is running" : strerror(errno));
}

const char *limits_folder(const char *name)
{
    static char paths[FOLDERS_MAX][4096];
    static int used;
    struct statfs fs;
    if (used == FOLDERS_MAX)
        bench_fail("more than %d folders", FOLDERS_MAX);
    char *path = paths[used++];
    int n = snprintf(path, sizeof(paths[0]), "%s/bench", bench_folder());
    if (n < 0 || (mkdir(path, 0755) < 0 && errno != EEXIST) || statfs(path, &fs) < 0)
        bench_fail("%s: %s", path, strerror(errno));
    if (fs.f_type == IN_MEMORY)
        bench_fail("%s is in memory: there is no disk to measure", path);
    if (used == 1)
        take_turn(path);
    snprintf(path + n, sizeof(paths[0]) - (size_t)n, "/%s", name);
    limits_remove(path);
    if (mkdir(path, 0755) < 0)
        bench_fail("%s: %s", path, strerror(errno));
    return path;
}

static void remove_within(int parent, const char *name)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (unlinkat(fd, entry->d_name, 0) < 0)
            remove_within(fd, entry->d_name);
    }
    closedir(dir);
    (void)unlinkat(parent, name, AT_REMOVEDIR);
}

void limits_remove(const char *folder)
{
    remove_within(AT_FDCWD, folder);
}

/* ---- the disk ---- */

static int open_in(const char *folder, const char *name)
{
    char path[4352];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        bench_fail("%s: %s", path, strerror(errno));
    return fd;
}

static void write_all(int fd, const void *bytes, size_t size, uint64_t at)
{
    if (pwrite(fd, bytes, size, (off_t)at) != (ssize_t)size)
        bench_fail("a write of %zu bytes: %s", size, strerror(errno));
}

static void sync_all(int fd)
{
    if (fdatasync(fd) < 0)
        bench_fail("a sync: %s", strerror(errno));
}

static void fill(int fd, uint64_t size)
{
    static const uint8_t zeros[CHUNK];
    for (uint64_t at = 0; at < size; at += CHUNK)
        write_all(fd, zeros, CHUNK, at);
    sync_all(fd);
}

static void overwrite(int fd, const uint8_t *bytes, size_t size, uint32_t pieces, uint64_t *at)
{
    size_t piece = size / pieces;
    for (uint32_t i = 0; i < pieces; i++) {
        uint64_t spread = pieces > 1 ? bench_random() % (SYNC_FILE / PAGE) * PAGE : *at;
        if (spread + piece > SYNC_FILE)
            spread = 0;
        write_all(fd, bytes, piece, spread);
        *at = spread + piece;
    }
}

struct limits_syncs limits_sync(const char *folder, size_t bytes, uint32_t pieces, uint64_t for_ns)
{
    static uint64_t took[SYNCS_MAX];
    struct stat stat;
    size_t count = 0;
    int fd = open_in(folder, "sync");
    uint8_t *block = malloc(bytes);
    ASSERT(pieces > 0 && bytes / pieces >= PAGE && bytes <= SYNC_FILE);
    if (!block || fstat(fd, &stat) < 0)
        bench_fail("no memory for %zu bytes", bytes);
    memset(block, 0x5a, bytes);
    if (stat.st_size == 0)
        fill(fd, SYNC_FILE);
    for (uint64_t began = bench_now(), at = 0; bench_now() - began < for_ns && count < SYNCS_MAX; count++) {
        uint64_t started = bench_now();
        overwrite(fd, block, bytes, pieces, &at);
        sync_all(fd);
        took[count] = bench_now() - started;
    }
    close(fd);
    free(block);
    return (struct limits_syncs){.p50_ns = bench_quantile(took, count, 0.5),
                                 .p99_ns = bench_quantile(took, count, 0.99)};
}

double limits_write(const char *folder, uint64_t bytes)
{
    int fd = open_in(folder, "sequential");
    uint64_t started = bench_now();
    fill(fd, bytes);
    double rate = bench_per_second(bytes, started);
    if (ftruncate(fd, 0) < 0)
        bench_fail("cutting a file: %s", strerror(errno));
    close(fd);
    return rate;
}

/* ---- plain LMDB ---- */

struct limits {
    MDB_env *env;
    MDB_dbi tables[LIMITS_ROW_COUNT];
    int fd;
    uint64_t allocated, serial;
    uint64_t partition[OUTBOX_PARTITIONS];
};

static const struct {
    const char *name;
    uint32_t key, value;
} shapes[] = {
#define X(id, name, key, value) {name, key, value},
    LIMITS_ROWS(X)
#undef X
};

/* As environment_allocate does. */
static void allocate(struct limits *l)
{
    MDB_envinfo info;
    check(mdb_env_info(l->env, &info), "mdb_env_info");
    uint64_t used = ((uint64_t)info.me_last_pgno + 1) * PAGE;
    if (used > l->allocated)
        l->allocated = used;
    if (l->allocated - used >= STEP / 2)
        return;
    check(posix_fallocate(l->fd, (off_t)l->allocated, STEP), "allocating ahead");
    l->allocated += STEP;
    sync_all(l->fd);
}

struct limits *limits_open(const char *folder)
{
    MDB_txn *txn;
    struct limits *l = calloc(1, sizeof(*l));
    if (!l)
        bench_fail("no memory");
    check(mdb_env_create(&l->env), "mdb_env_create");
    check(mdb_env_set_maxdbs(l->env, SCHEMA_TABLES_MAX), "mdb_env_set_maxdbs");
    check(mdb_env_set_mapsize(l->env, MAP), "mdb_env_set_mapsize");
    check(mdb_env_open(l->env, folder, MDB_NOTLS, 0600), "mdb_env_open");
    check(mdb_env_get_fd(l->env, &l->fd), "mdb_env_get_fd");
    check(mdb_txn_begin(l->env, NULL, 0, &txn), "mdb_txn_begin");
    for (uint32_t i = 0; i < LIMITS_ROW_COUNT; i++)
        check(mdb_dbi_open(txn, shapes[i].name, MDB_CREATE, &l->tables[i]), "mdb_dbi_open");
    check(mdb_txn_commit(txn), "mdb_txn_commit");
    allocate(l);
    return l;
}

void limits_close(struct limits *l)
{
    mdb_env_close(l->env);
    free(l);
}

static void put(MDB_cursor *cursor, enum limits_row row, const void *key, const void *value, unsigned flags)
{
    MDB_val k = {.mv_size = shapes[row].key, .mv_data = (void *)(uintptr_t)key};
    MDB_val v = {.mv_size = shapes[row].value, .mv_data = (void *)(uintptr_t)value};
    check(mdb_cursor_put(cursor, &k, &v, flags), "mdb_cursor_put");
}

static void write_command(struct limits *l, MDB_cursor *const *cursors)
{
    static uint8_t value[LIMITS_BODY + 256];
    struct key key = {.size = 0}, row = {.size = 0}, place = {.size = 0};
    uint64_t serial = ++l->serial, mixed = serial * 0x9e3779b97f4a7c15u;
    uint16_t partition = (uint16_t)(mixed >> 32) % OUTBOX_PARTITIONS;
    key_add_u64(&key, serial); /* 16 bytes of an id, and the first event of its stream */
    key_add_u64(&key, mixed);
    key_add_u64(&key, 1);
    key_add_u8(&row, 0);
    key_add_u64(&row, serial);
    key_add_u16(&place, partition);
    key_add_u64(&place, ++l->partition[partition]);
    memcpy(value, &mixed, sizeof(mixed));
    put(cursors[LIMITS_RECORD], LIMITS_RECORD, key.bytes, value, MDB_APPEND);
    put(cursors[LIMITS_EVENT], LIMITS_EVENT, key.bytes, value, MDB_APPEND);
    put(cursors[LIMITS_OUTBOX], LIMITS_OUTBOX, place.bytes, value, 0);
    put(cursors[LIMITS_LEDGER], LIMITS_LEDGER, row.bytes, value, MDB_APPEND);
}

void limits_commit(struct limits *l, uint32_t group)
{
    MDB_txn *txn;
    MDB_cursor *cursors[LIMITS_ROW_COUNT];
    check(mdb_txn_begin(l->env, NULL, 0, &txn), "mdb_txn_begin");
    for (uint32_t i = 0; i < LIMITS_ROW_COUNT; i++)
        check(mdb_cursor_open(txn, l->tables[i], &cursors[i]), "mdb_cursor_open");
    for (uint32_t i = 0; i < group; i++)
        write_command(l, cursors);
    for (uint32_t i = 0; i < LIMITS_ROW_COUNT; i++)
        mdb_cursor_close(cursors[i]);
    check(mdb_txn_commit(txn), "mdb_txn_commit");
    allocate(l);
}

double limits_read(MDB_env *env, MDB_dbi dbi, limits_key *key, uint64_t keys, uint64_t count, bool look)
{
    MDB_txn *txn;
    uint64_t sum = 0;
    check(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn), "mdb_txn_begin");
    uint64_t started = bench_now();
    for (uint64_t i = 0; i < count; i++) {
        struct uuid id = key(bench_random() % keys);
        MDB_val k = {.mv_size = sizeof(id), .mv_data = id.bytes}, v;
        check(mdb_get(txn, dbi, &k, &v), "mdb_get");
        for (size_t at = 0; look && at < v.mv_size; at += 64)
            sum += ((const uint8_t *)v.mv_data)[at];
    }
    double rate = bench_per_second(count, started);
    mdb_txn_abort(txn);
    if (look && !sum)
        bench_fail("the values are empty");
    return rate;
}
