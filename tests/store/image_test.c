#include "store/image.h"

#include <fcntl.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "acutest.h"
#include "store/checksum.h"
#include "store/record.h"
#include "store/value.h"

enum {
    TABLES = 5,
    KEYS = 900,      /* different ones of a table */
    BODY_MAX = 60000 /* of a body */
};

#define BLOB_FIELDS(X) X(body, BYTES, BODY_MAX, 1)
RECORD_STRUCT(blob, BLOB_FIELDS);
#define blob_FIELD(name, TYPE, limit, since) RECORD_FIELD(blob, name, TYPE, limit, since)
RECORD_CLASS(blob, BLOB_FIELDS, 1);

static const char *const table_names[TABLES] = {"a", "bodies", "counters", "due", "events"};

/* ---- a file of LMDB's, and chance ---- */

struct base {
    char dir[64], file[96];
    MDB_env *env;
    MDB_dbi tables[TABLES];
};

static uint64_t chance;
static uint32_t pick(uint32_t count)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return (uint32_t)(chance >> 20) % count;
}

static void base_open(struct base *base, unsigned flags)
{
    MDB_txn *txn;
    TEST_ASSERT(mdb_env_create(&base->env) == 0);
    TEST_ASSERT(mdb_env_set_maxdbs(base->env, TABLES) == 0);
    TEST_ASSERT(mdb_env_set_mapsize(base->env, 1u << 28) == 0);
    TEST_ASSERT(mdb_env_open(base->env, base->dir, flags | MDB_NOTLS, 0600) == 0);
    TEST_ASSERT(mdb_txn_begin(base->env, NULL, flags & MDB_RDONLY, &txn) == 0);
    for (size_t i = 0; i < TABLES; i++) {
        int code = mdb_dbi_open(txn, table_names[i], flags & MDB_RDONLY ? 0 : MDB_CREATE, &base->tables[i]);
        TEST_ASSERT(code == 0);
    }
    TEST_ASSERT(mdb_txn_commit(txn) == 0);
}

static void base_name(struct base *base)
{
    snprintf(base->dir, sizeof(base->dir), "%s/image.XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    TEST_ASSERT(mkdtemp(base->dir) != NULL);
    snprintf(base->file, sizeof(base->file), "%s/data.mdb", base->dir);
}

static void base_create(struct base *base)
{
    base_name(base);
    base_open(base, MDB_NOSYNC);
}

static void base_remove(struct base *base)
{
    char lock[96];
    snprintf(lock, sizeof(lock), "%s/lock.mdb", base->dir);
    unlink(base->file);
    unlink(lock);
    rmdir(base->dir);
}

static size_t value_of(size_t table, struct span key, uint32_t size, uint8_t *bytes, size_t room)
{
    static uint8_t body[BODY_MAX];
    memset(body, (int)pick(256), size);
    if (size > 0)
        body[pick(size)] = (uint8_t)pick(256);
    struct blob blob = {.body = span_of(body, size)};
    return value_write(value_seed(table_names[table]), key, &blob_record, &blob, bytes, room);
}

/* Half of them end in a tail of many lengths, so that leaves and branches fill up unevenly. */
static struct span key_of(size_t table, uint32_t number, uint8_t bytes[128])
{
    uint32_t size = 8 + (number % 2) * (number * 37 % 120) * (uint32_t)(table != 0);
    memset(bytes, (int)('a' + number % 26), size);
    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (uint8_t)((uint64_t)number * 2654435761u >> (56 - 8 * i));
    return span_of(bytes, size);
}

static void put(struct base *base, MDB_txn *txn, size_t table, uint32_t number, uint32_t size)
{
    static uint8_t bytes[BODY_MAX + 64];
    uint8_t key_bytes[128];
    struct span key = key_of(table, number, key_bytes);
    MDB_val k = {.mv_size = key.size, .mv_data = key_bytes};
    MDB_val v = {.mv_size = value_of(table, key, size, bytes, sizeof(bytes)), .mv_data = bytes};
    TEST_ASSERT(v.mv_size > 0);
    TEST_ASSERT(mdb_put(txn, base->tables[table], &k, &v, 0) == 0);
}

static void del(struct base *base, MDB_txn *txn, size_t table, uint32_t number)
{
    uint8_t key_bytes[128];
    struct span key = key_of(table, number, key_bytes);
    MDB_val k = {.mv_size = key.size, .mv_data = key_bytes};
    int code = mdb_del(txn, base->tables[table], &k, NULL);
    TEST_ASSERT(code == 0 || code == MDB_NOTFOUND);
}

static uint32_t some_size(void)
{
    switch (pick(12)) {
    case 0:
        return pick(BODY_MAX);
    case 1:
    case 2:
        return 1900 + pick(300); /* around where a value gets pages of its own */
    case 3:
        return 4000 + pick(200); /* around the end of a page */
    default:
        return pick(300);
    }
}

/* One transaction. `mood`: how many of 100 changes delete. */
static void change(struct base *base, uint32_t mood, uint32_t changes)
{
    MDB_txn *txn;
    TEST_ASSERT(mdb_txn_begin(base->env, NULL, 0, &txn) == 0);
    for (uint32_t i = 0; i < changes; i++) {
        size_t table = pick(TABLES);
        uint32_t number = pick(KEYS);
        if (pick(100) < mood)
            del(base, txn, table, number);
        else
            put(base, txn, table, number, table == 0 ? pick(20) : some_size());
    }
    if (pick(400) == 0)
        TEST_ASSERT(mdb_drop(txn, base->tables[pick(TABLES)], 0) == 0);
    if (pick(20) == 0)
        mdb_txn_abort(txn);
    else
        TEST_ASSERT(mdb_txn_commit(txn) == 0);
}

static uint64_t entries(struct base *base)
{
    MDB_txn *txn;
    uint64_t count = 0;
    TEST_ASSERT(mdb_txn_begin(base->env, NULL, MDB_RDONLY, &txn) == 0);
    for (size_t i = 0; i < TABLES; i++) {
        MDB_stat stat;
        TEST_ASSERT(mdb_stat(txn, base->tables[i], &stat) == 0);
        count += stat.ms_entries;
    }
    mdb_txn_abort(txn);
    return count;
}

static void check_sound(struct base *base, int fd)
{
    char text[256] = "";
    struct image_report report = {0};
    MDB_envinfo info;
    TEST_ASSERT(mdb_env_info(base->env, &info) == 0);
    TEST_ASSERT_(image_check(fd, 0, &report, text, sizeof(text)) == OK, "transaction %zu: %s",
                 info.me_last_txnid, text);
    TEST_ASSERT(report.txn == info.me_last_txnid);
    TEST_ASSERT(report.pages == info.me_last_pgno + 1);
    TEST_ASSERT_(report.lost == 0, "transaction %zu: %llu lost", info.me_last_txnid,
                 (unsigned long long)report.lost);
    TEST_ASSERT(report.reached + report.free + report.lost + 2 == report.pages);
    TEST_ASSERT(report.rows == entries(base));
    TEST_ASSERT(report.other == IMAGE_OTHER_BEFORE);
    TEST_ASSERT(image_peek(fd, &report, text, sizeof(text)) == OK);
}

/* ---- what LMDB writes is sound ---- */

/* All of a transaction is written but its meta page: a crash may leave that, and neither of the two states before it
 * has lost anything. */
static void check_before_meta(int fd, const uint8_t before[8192])
{
    uint8_t after[8192];
    char text[256] = "";
    struct image_report report = {0};
    TEST_ASSERT(pread(fd, after, sizeof(after), 0) == sizeof(after));
    TEST_ASSERT(pwrite(fd, before, sizeof(after), 0) == sizeof(after));
    TEST_ASSERT_(image_check(fd, 0, &report, text, sizeof(text)) == OK, "%s", text);
    TEST_ASSERT(report.other == IMAGE_OTHER_BEFORE);
    TEST_ASSERT(pwrite(fd, after, sizeof(after), 0) == sizeof(after));
}

static void run_workload(uint64_t seed, unsigned transactions)
{
    struct base base;
    MDB_txn *reader = NULL;
    static const uint32_t moods[] = {5, 40, 60, 95, 100};
    chance = seed * 0x9e3779b97f4a7c15u + 1;
    base_create(&base);
    int fd = open(base.file, O_RDWR | O_CLOEXEC);
    TEST_ASSERT(fd >= 0);
    for (unsigned i = 0; i < transactions; i++) {
        uint8_t metas[8192];
        TEST_ASSERT(pread(fd, metas, sizeof(metas), 0) == sizeof(metas));
        change(&base, moods[i / 16 % 5], 1 + pick(i % 32 == 0 ? 600 : 40));
        if (!reader && pick(10) == 0)
            TEST_ASSERT(mdb_txn_begin(base.env, NULL, MDB_RDONLY, &reader) == 0);
        else if (reader && pick(10) == 0) {
            mdb_txn_abort(reader); /* the list of free pages grew long meanwhile, and is used up again */
            reader = NULL;
        }
        check_sound(&base, fd);
        check_before_meta(fd, metas);
    }
    if (reader)
        mdb_txn_abort(reader);
    close(fd);
    mdb_env_close(base.env);
    base_remove(&base);
}

static void test_whatever_lmdb_writes_is_sound(void)
{
    const char *more = getenv("IMAGE_SEEDS");
    uint64_t seeds = more ? strtoull(more, NULL, 10) : 3;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        TEST_CASE_("seed %llu", (unsigned long long)seed);
        run_workload(seed, 160);
    }
}

static void test_a_new_file_and_an_emptied_one_are_sound(void)
{
    struct base base;
    base_create(&base);
    int fd = open(base.file, O_RDONLY | O_CLOEXEC);
    check_sound(&base, fd);
    chance = 5;
    change(&base, 0, 300);
    check_sound(&base, fd);
    MDB_txn *txn;
    TEST_ASSERT(mdb_txn_begin(base.env, NULL, 0, &txn) == 0);
    for (size_t i = 0; i < TABLES; i++)
        for (uint32_t number = 0; number < KEYS; number++)
            del(&base, txn, i, number);
    TEST_ASSERT(mdb_txn_commit(txn) == 0);
    TEST_CHECK(entries(&base) == 0);
    check_sound(&base, fd);
    close(fd);
    mdb_env_close(base.env);
    base_remove(&base);
}

static void test_a_compact_copy_is_sound(void)
{
    struct base base, copy;
    char text[256] = "";
    struct image_report report;
    chance = 9;
    base_create(&base);
    base_name(&copy);
    for (int i = 0; i < 50; i++)
        change(&base, 30, 100);
    TEST_ASSERT(mdb_env_copy2(base.env, copy.dir, MDB_CP_COMPACT) == 0);
    int fd = open(copy.file, O_RDONLY | O_CLOEXEC);
    TEST_CHECK_(image_check(fd, 0, &report, text, sizeof(text)) == OK, "%s", text);
    TEST_CHECK(report.txn == 1 && report.free == 0 && report.rows == entries(&base));
    close(fd);
    mdb_env_close(base.env);
    base_remove(&base);
    base_remove(&copy);
}

static void test_a_snapshot_is_found_while_its_meta_page_stands(void)
{
    struct base base;
    char text[256];
    struct image_report report;
    chance = 11;
    base_create(&base);
    int fd = open(base.file, O_RDONLY | O_CLOEXEC);
    MDB_txn *reader;
    TEST_ASSERT(mdb_txn_begin(base.env, NULL, MDB_RDONLY, &reader) == 0);
    uint64_t txn = mdb_txn_id(reader), rows = entries(&base);
    TEST_CHECK(image_check(fd, txn, &report, text, sizeof(text)) == OK);
    for (uint64_t later = 0; later < 3; later++) {
        enum error e = image_check(fd, txn, &report, text, sizeof(text));
        TEST_CHECK(later < 2 ? e == OK && report.txn == txn && report.rows == rows : e == ERR_NOT_FOUND);
        MDB_txn *writer;
        TEST_ASSERT(mdb_txn_begin(base.env, NULL, 0, &writer) == 0);
        for (uint32_t i = 0; i < 20; i++)
            put(&base, writer, 1, pick(KEYS), 500);
        TEST_ASSERT(mdb_txn_commit(writer) == 0);
    }
    mdb_txn_abort(reader);
    close(fd);
    mdb_env_close(base.env);
    base_remove(&base);
}

/* ---- what isn't, is found, or nobody can tell ---- */

struct bytes {
    uint8_t *at;
    size_t size;
};

static struct bytes file_read(const char *name)
{
    struct stat status;
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    TEST_ASSERT(fd >= 0 && fstat(fd, &status) == 0);
    struct bytes bytes = {.at = malloc((size_t)status.st_size), .size = (size_t)status.st_size};
    TEST_ASSERT(bytes.at && pread(fd, bytes.at, bytes.size, 0) == status.st_size);
    close(fd);
    return bytes;
}

static void file_write(const char *name, const void *bytes, size_t size)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    TEST_ASSERT(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    close(fd);
}

static enum error check_bytes(const char *name, const void *bytes, size_t size, char *text, size_t text_size)
{
    struct image_report report;
    file_write(name, bytes, size);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    enum error e = image_check(fd, 0, &report, text, text_size);
    close(fd);
    return e;
}

/* All that LMDB reads out of the file, as a number. */
static uint64_t contents(const struct base *of)
{
    struct base base = *of;
    MDB_txn *txn;
    uint64_t sum = 0;
    base_open(&base, MDB_RDONLY | MDB_NOLOCK);
    TEST_ASSERT(mdb_txn_begin(base.env, NULL, MDB_RDONLY, &txn) == 0);
    for (size_t i = 0; i < TABLES; i++) {
        MDB_cursor *cursor;
        MDB_val k, v;
        TEST_ASSERT(mdb_cursor_open(txn, base.tables[i], &cursor) == 0);
        while (mdb_cursor_get(cursor, &k, &v, MDB_NEXT) == 0) {
            MDB_val found;
            sum = checksum(checksum(sum + i, k.mv_data, k.mv_size), v.mv_data, v.mv_size);
            TEST_ASSERT(mdb_get(txn, base.tables[i], &k, &found) == 0 && found.mv_data == v.mv_data);
        }
        mdb_cursor_close(cursor);
    }
    mdb_txn_abort(txn);
    mdb_env_close(base.env);
    return sum;
}

/* And going on with it: it is written to until every free page has been used, and stays sound. */
static void check_goes_on(const struct base *of)
{
    struct base base = *of;
    chance = 77;
    base_open(&base, MDB_NOSYNC | MDB_NOLOCK);
    int fd = open(base.file, O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < 6; i++) {
        struct image_report report = {0};
        char text[256] = "";
        change(&base, 50, 40);
        TEST_CHECK_(image_check(fd, 0, &report, text, sizeof(text)) == OK, "%s", text);
        TEST_CHECK(report.rows == entries(&base));
    }
    close(fd);
    mdb_env_close(base.env);
}

static void base_small(struct base *base, unsigned rounds)
{
    base_create(base);
    for (unsigned i = 0; i < rounds; i++)
        change(base, 35, 25);
    mdb_env_close(base->env);
}

/* Bits that decide most are tried all; of the others one in some. IMAGE_BITS=all tries every one. */
static bool try_bit(size_t byte, unsigned bit, size_t step)
{
    size_t within = byte % 4096;
    return within < (byte < 8192 ? 152 : 18) ||
           (within % step == byte / 4096 % step && bit == within / step % 8);
}

static void flip_bits(uint64_t seed, unsigned rounds)
{
    struct base base, copy;
    char text[256];
    struct image_report report;
    size_t step = getenv("IMAGE_BITS") ? 0 : 23;
    uint64_t found = 0, harmless = 0, laters = 0;
    chance = seed;
    base_small(&base, rounds);
    base_name(&copy);
    struct bytes bytes = file_read(base.file);
    uint64_t truth = contents(&base);
    file_write(copy.file, bytes.at, bytes.size);
    TEST_ASSERT(contents(&copy) == truth);
    int fd = open(copy.file, O_RDWR | O_CLOEXEC);
    TEST_ASSERT(image_check(fd, 0, &report, text, sizeof(text)) == OK);
    TEST_ASSERT(report.other == IMAGE_OTHER_BEFORE);
    uint64_t txn = report.txn;
    for (size_t i = 0; i < bytes.size; i++) {
        for (unsigned b = 0; b < 8; b++) {
            uint8_t flipped = bytes.at[i] ^ (uint8_t)(1u << b);
            if (step != 0 && !try_bit(i, b, step))
                continue;
            TEST_ASSERT(pwrite(fd, &flipped, 1, (off_t)i) == 1);
            enum error e = image_check(fd, 0, &report, text, sizeof(text));
            found += e != OK;
            harmless += e == OK;
            if (e == OK && report.other == IMAGE_OTHER_LATER) {
                TEST_CHECK(report.txn == txn - 1); /* the number became less by two */
                TEST_CHECK(contents(&copy) != truth);
                TEST_CHECK(image_finish(fd, text, sizeof(text)) == OK && contents(&copy) == truth);
                TEST_CHECK(image_finish(fd, text, sizeof(text)) == ERR_NOT_FOUND);
                laters++;
            } else if (e == OK) {
                TEST_CHECK_(contents(&copy) == truth, "bit %u of byte %zu", b, i);
                if (harmless % 64 == 0) {
                    check_goes_on(&copy);
                    file_write(copy.file, bytes.at, bytes.size);
                }
            } else
                TEST_CHECK_((e == ERR_DAMAGED || e == ERR_FOREIGN) && text[0], "%s", error_name(e));
        }
        TEST_ASSERT(pwrite(fd, &bytes.at[i], 1, (off_t)i) == 1);
    }
    TEST_CHECK(laters == (txn & 2) / 2);
    TEST_CHECK(found > bytes.size / 50);
    TEST_MSG("%zu bytes: %llu found, %llu harmless", bytes.size, (unsigned long long)found,
             (unsigned long long)harmless);
    close(fd);
    free(bytes.at);
    base_remove(&base);
    base_remove(&copy);
}

static void test_D6_each_flipped_bit_is_found_or_harmless(void)
{
    flip_bits(3, 4);
    flip_bits(3, 5);
    flip_bits(3, 6);
}

static void test_D6_a_file_cut_off_is_found_or_harmless(void)
{
    struct base base, copy;
    char text[256];
    chance = 21;
    base_small(&base, 12);
    base_name(&copy);
    struct bytes bytes = file_read(base.file);
    uint64_t truth = contents(&base);
    TEST_CHECK(check_bytes(copy.file, bytes.at, bytes.size, text, sizeof(text)) == OK);
    for (size_t size = 0; size < bytes.size; size += 512) {
        enum error e = check_bytes(copy.file, bytes.at, size, text, sizeof(text));
        if (e == OK)
            TEST_CHECK(contents(&copy) == truth);
        else
            TEST_CHECK_(e == ERR_DAMAGED, "%zu bytes: %s", size, error_name(e));
        int fd = open(copy.file, O_RDONLY | O_CLOEXEC);
        struct image_report report;
        TEST_CHECK_(image_peek(fd, &report, text, sizeof(text)) == e, "a short file is seen at a glance");
        close(fd);
    }
    free(bytes.at);
    base_remove(&base);
    base_remove(&copy);
}

static void test_D6_a_page_of_another_state_is_found_or_harmless(void)
{
    struct base base, copy;
    char text[256];
    unsigned found = 0;
    chance = 31;
    base_small(&base, 8);
    base_name(&copy);
    struct bytes old = file_read(base.file);
    base_open(&base, MDB_NOSYNC);
    for (unsigned i = 0; i < 6; i++)
        change(&base, 35, 25);
    mdb_env_close(base.env);
    struct bytes bytes = file_read(base.file);
    uint64_t truth = contents(&base);
    size_t pages = bytes.size / 4096;
    for (size_t i = 0; i < 3 * pages; i++) { /* an older page, a zeroed one, another one */
        uint8_t *page = bytes.at + i % pages * 4096, kept[4096];
        memcpy(kept, page, 4096);
        if (i < pages && (i + 1) * 4096 <= old.size)
            memcpy(page, old.at + i * 4096, 4096);
        else if (i < 2 * pages)
            memset(page, 0, 4096);
        else
            memcpy(page, bytes.at + pick((uint32_t)pages) * 4096, 4096);
        enum error e = check_bytes(copy.file, bytes.at, bytes.size, text, sizeof(text));
        found += e != OK;
        if (e == OK)
            TEST_CHECK_(contents(&copy) == truth, "page %zu", i % pages);
        memcpy(page, kept, 4096);
    }
    TEST_CHECK_(found > pages / 2, "%u of %zu", found, pages);
    free(bytes.at);
    free(old.at);
    base_remove(&base);
    base_remove(&copy);
}

static void test_what_is_not_a_file_of_lmdb_is_foreign(void)
{
    struct base copy;
    char text[256], zeros[8192] = {0};
    base_name(&copy);
    TEST_CHECK(check_bytes(copy.file, "some text\n", 10, text, sizeof(text)) == ERR_FOREIGN);
    TEST_CHECK(check_bytes(copy.file, "x", 1, text, sizeof(text)) == ERR_FOREIGN);
    TEST_CHECK(check_bytes(copy.file, zeros, sizeof(zeros), text, sizeof(text)) == ERR_FOREIGN);
    TEST_CHECK(check_bytes(copy.file, "", 0, text, sizeof(text)) == ERR_DAMAGED);
    struct bytes self = file_read("/proc/self/exe");
    TEST_CHECK(check_bytes(copy.file, self.at, self.size, text, sizeof(text)) == ERR_FOREIGN);
    free(self.at);
    base_remove(&copy);
    struct image_report report;
    int fd = open("/", O_RDONLY | O_CLOEXEC);
    TEST_CHECK(image_check(fd, 0, &report, text, sizeof(text)) == ERR_FOREIGN);
    close(fd);
    TEST_CHECK(image_check(-1, 0, &report, text, sizeof(text)) == ERR_IO);
}

static uint64_t commit_some(struct base *base)
{
    MDB_envinfo info;
    MDB_txn *txn;
    TEST_ASSERT(mdb_txn_begin(base->env, NULL, 0, &txn) == 0);
    for (uint32_t i = 0; i < 60; i++)
        put(base, txn, pick(TABLES), pick(KEYS), some_size());
    TEST_ASSERT(mdb_txn_commit(txn) == 0);
    TEST_ASSERT(mdb_env_info(base->env, &info) == 0);
    return info.me_last_txnid;
}

/* As LMDB leaves it when the last write of a commit fails: the new roots, under the number and the last page of the
 * transaction before last. What became of that commit was never told to anybody; it is finished. */
static void test_D4_a_commit_whose_last_write_failed_is_finished(void)
{
    for (uint32_t i = 0; i < 8; i++) {
        struct base base;
        char text[256] = "";
        struct image_report report = {0};
        uint64_t numbers[2]; /* the last page and the transaction */
        chance = 41 + i;
        base_small(&base, 9);
        base_open(&base, MDB_NOSYNC);
        int fd = open(base.file, O_RDWR | O_CLOEXEC);
        uint64_t txn = commit_some(&base);
        off_t at = (off_t)(txn % 2 * 4096 + 16 + 120);
        TEST_ASSERT(pread(fd, numbers, sizeof(numbers), at) == sizeof(numbers) && numbers[1] == txn);
        TEST_ASSERT(commit_some(&base) == txn + 1 && commit_some(&base) == txn + 2);
        mdb_env_close(base.env);
        uint64_t truth = contents(&base);
        TEST_ASSERT(image_check(fd, 0, &report, text, sizeof(text)) == OK && report.txn == txn + 2);
        uint64_t pages = report.pages;
        TEST_ASSERT(pwrite(fd, numbers, sizeof(numbers), at) == sizeof(numbers));
        TEST_CHECK_(image_check(fd, 0, &report, text, sizeof(text)) == OK, "%s", text);
        TEST_CHECK(report.txn == txn + 1 && report.other == IMAGE_OTHER_LATER);
        TEST_CHECK(contents(&base) != truth);
        TEST_CHECK(image_finish(fd, text, sizeof(text)) == OK);
        TEST_CHECK(image_check(fd, 0, &report, text, sizeof(text)) == OK);
        TEST_CHECK(report.txn == txn + 2 && report.other == IMAGE_OTHER_BEFORE);
        TEST_CHECK(report.pages == pages && contents(&base) == truth);
        close(fd);
        base_remove(&base);
    }
}

/* Neither the transaction before nor the next one: perhaps the next one was damaged there, and acknowledged. */
static void test_D6_a_slot_that_holds_neither_is_told(void)
{
    struct base base;
    char text[256];
    struct image_report report = {0};
    uint64_t number;
    chance = 61;
    base_small(&base, 9);
    int fd = open(base.file, O_RDWR | O_CLOEXEC);
    TEST_ASSERT(image_check(fd, 0, &report, text, sizeof(text)) == OK);
    off_t slot = (off_t)(report.txn % 2 * 4096 + 16);
    number = report.txn - 2;
    TEST_ASSERT(pwrite(fd, &number, sizeof(number), slot + 128) == sizeof(number));
    TEST_ASSERT(image_check(fd, 0, &report, text, sizeof(text)) == OK);
    TEST_CHECK(report.other == IMAGE_OTHER_LATER);
    number = 4711;
    TEST_ASSERT(pwrite(fd, &number, sizeof(number), slot + 24 + 48 + 40) ==
                sizeof(number)); /* the root of tables */
    TEST_CHECK(image_check(fd, 0, &report, text, sizeof(text)) == OK);
    TEST_CHECK(report.other == IMAGE_OTHER_UNSURE);
    TEST_CHECK(image_finish(fd, text, sizeof(text)) == ERR_NOT_FOUND);
    close(fd);
    base_remove(&base);
}

TEST_LIST
= {
    {"whatever_lmdb_writes_is_sound", test_whatever_lmdb_writes_is_sound},
    {"a_new_file_and_an_emptied_one_are_sound", test_a_new_file_and_an_emptied_one_are_sound},
    {"a_compact_copy_is_sound", test_a_compact_copy_is_sound},
    {"a_snapshot_is_found_while_its_meta_page_stands", test_a_snapshot_is_found_while_its_meta_page_stands},
    {"D6_each_flipped_bit_is_found_or_harmless", test_D6_each_flipped_bit_is_found_or_harmless},
    {"D6_a_file_cut_off_is_found_or_harmless", test_D6_a_file_cut_off_is_found_or_harmless},
    {"D6_a_page_of_another_state_is_found_or_harmless", test_D6_a_page_of_another_state_is_found_or_harmless},
    {"what_is_not_a_file_of_lmdb_is_foreign", test_what_is_not_a_file_of_lmdb_is_foreign},
    {"D4_a_commit_whose_last_write_failed_is_finished", test_D4_a_commit_whose_last_write_failed_is_finished},
    {"D6_a_slot_that_holds_neither_is_told", test_D6_a_slot_that_holds_neither_is_told},
    {NULL, NULL},
};
