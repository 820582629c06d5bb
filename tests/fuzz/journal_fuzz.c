/* Journals: whatever the file holds, a replay ends with a report or a sentence, and leaves a store in which nothing is wrong. Checksums
 * alone would keep everything out, so most inputs have theirs made right first. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "runtime/assert.h"
#include "store/check.h"
#include "store/checksum.h"
#include "store/journal.h"
#include "store/view.h"
#include "tests/fuzz/bytes.h"
#include "tests/support/parcel.h"

/* As store/journal.h draws it. */
enum {
    HEAD_MAP = 18 + 32 + 8,
    HEAD_NUMBERS = 4,
    HEAD_SUM = HEAD_MAP + HEAD_NUMBERS * 8,
    HEAD = HEAD_SUM + 8,
    BATCH_SUM = 13,
    BATCH = BATCH_SUM + 8,
    COMMAND_SIZE_AT = 11,
    COMMAND = 15,
    SIZE_MAX_BYTES = 1 << 16
};

/* Of the store that is made: small, so that one is made quickly. */
static const uint64_t numbers[HEAD_NUMBERS] = {1 << 20, 1 << 22, 1 << 16, 1 << 16};

static char dir[64], file[96];

static void remove_store(void)
{
    static const char *const files[] = {"data.mdb", "lock.mdb", "coppice.lock"};
    char path[128];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/store/%s", dir, files[i]);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/store", dir);
    int gone = rmdir(path);
    ASSERT(gone == 0 || access(path, F_OK) != 0);
}

static void remove_dir(void)
{
    remove_store();
    unlink(file);
    rmdir(dir);
}

static void make_dir(void)
{
    snprintf(dir, sizeof dir, "%s/journal-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    ASSERT(mkdtemp(dir));
    parcel_install();
    snprintf(file, sizeof file, "%s/journal", dir);
    atexit(remove_dir);
}

static uint64_t number_at(const uint8_t *at, unsigned size)
{
    uint64_t value = 0;
    memcpy(&value, at, size);
    return value;
}

static uint64_t seal(uint64_t seed, uint8_t *bytes, size_t size)
{
    uint64_t sum = checksum(seed, bytes, size);
    memcpy(bytes + size, &sum, sizeof sum);
    return sum;
}

/* One batch, whose size is made right as well: its commands up to `left` bytes. Returns what it takes, 0: there is none. */
static size_t mend_batch(uint8_t *at, size_t left, uint64_t *seed)
{
    if (left < BATCH + 8)
        return 0;
    uint64_t count = number_at(at + 1, 4), used = BATCH, sum;
    for (uint64_t i = 0; i < count; i++) {
        if (left - used < COMMAND + 8 ||
            number_at(at + used + COMMAND_SIZE_AT, 4) > left - used - COMMAND - 8)
            return 0;
        used += COMMAND + number_at(at + used + COMMAND_SIZE_AT, 4);
    }
    uint64_t size = used - BATCH;
    memcpy(at + 5, &size, sizeof size);
    sum = *seed = seal(*seed, at, BATCH_SUM);
    for (uint64_t i = 0, from = BATCH; i < count; i++) {
        uint64_t length = number_at(at + from + COMMAND_SIZE_AT, 4);
        sum = checksum(checksum(sum, at + from, COMMAND), at + from + COMMAND, length);
        from += COMMAND + length;
    }
    memcpy(at + used, &sum, sizeof sum);
    *seed = sum;
    return used + sizeof sum;
}

static void mend(uint8_t *bytes, size_t size)
{
    if (size < HEAD)
        return;
    memcpy(bytes + HEAD_MAP, numbers, sizeof numbers);
    uint64_t seed = seal(0, bytes, HEAD_SUM);
    for (size_t at = HEAD, took; (took = mend_batch(bytes + at, size - at, &seed)) > 0;)
        at += took;
}

static void complain(void *context, const char *finding)
{
    (void)context;
    fprintf(stderr, "%s\n", finding);
}

static void check_store(const char *path)
{
    struct store_options options = {.environment = {.dir = path}, .schema = &parcel_store_schema};
    struct check_report report;
    struct store *store;
    char why[512] = "";
    enum error e = store_open(&options, &store, why, sizeof why);
    if (e)
        fprintf(stderr, "%s: %s\n", error_name(e), why);
    ASSERT(e == OK);
    struct view *view = view_open_outside(store, 1);
    ASSERT(view && check_rows(&view->txn, &parcel_store_schema, complain, NULL, &report) == OK);
    ASSERT(report.findings == 0);
    view_close(view);
    store_close(store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t bytes[SIZE_MAX_BYTES];
    struct bytes input = {data, size};
    struct replay_report report = {0};
    char why[512] = "", path[96];
    if (!dir[0])
        make_dir();
    bool check = take(&input) % 8 == 0; /* it takes as long as the rest */
    bool mended = take(&input) % 16 != 0;
    size = input.left < sizeof bytes ? input.left : sizeof bytes;
    memcpy(bytes, input.at, size);
    if (mended)
        mend(bytes, size);
    int fd = open(file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ASSERT(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    close(fd);
    snprintf(path, sizeof path, "%s/store", dir);
    enum error e = journal_replay(file, path, &parcel_store_schema, &report, why, sizeof why);
    ASSERT(e == OK || why[0]);
    if (check && e != ERR_INVALID && access(path, F_OK) == 0)
        check_store(path);
    remove_store();
    return 0;
}
