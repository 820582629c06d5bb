/* Backups: whole or not there, of one state, brought back as they were; damage of any byte is found. */
#define _GNU_SOURCE /* memmem */
#include "acutest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/env.h"
#include "store/backup.h"
#include "store/check.h"
#include "store/counter.h"
#include "store/meta.h"
#include "tests/store/parcels.h"
#include "tests/store/place.h"

#define WALL_NS UINT64_C(1700000000123456000)

static char place[PLACE_PATH_MAX];
static struct parcels parcels;
static char text[512];
static struct backup_report report;

#define CHECK_ERROR(found, wanted)                                                                          \
    do {                                                                                                    \
        enum error check_found = (found);                                                                   \
        TEST_CHECK_(check_found == (wanted), "%s, not %s: %s", error_name(check_found), error_name(wanted), \
                    text);                                                                                  \
    } while (0)
#define CHECK_SAYS(word) TEST_CHECK_(strstr(text, (word)) != NULL, "'%s' in: %s", (word), text)

static enum error make(const char *from, const char *to)
{
    text[0] = 0;
    memset(&report, 0, sizeof(report));
    char dir[PLACE_PATH_MAX + 64], target[PLACE_PATH_MAX + 64];
    snprintf(dir, sizeof(dir), "%s/%s", place, from);
    snprintf(target, sizeof(target), "%s/%s", place, to);
    return backup_make(dir, target, &parcel_store_schema, WALL_NS, &report, text, sizeof(text));
}

static enum error verify(const char *dir)
{
    text[0] = 0;
    memset(&report, 0, sizeof(report));
    return backup_verify(place_in(place, dir), &parcel_store_schema, &report, text, sizeof(text));
}

static enum error restore(const char *dir, const char *into)
{
    text[0] = 0;
    memset(&report, 0, sizeof(report));
    return backup_restore(place_in(place, dir), place_in(place, into), &parcel_store_schema, &report, text,
                          sizeof(text));
}

/* A store of so many random batches in place/a. Returns its newest commit. */
static uint64_t make_store(uint32_t batches)
{
    place_make(place);
    parcels_init(&parcels, 21);
    parcels.body_max = 3000;
    struct store *store = parcels_open(place_in(place, "a"), NULL);
    parcels_run(&parcels, store, batches);
    uint64_t commit = parcels_commit(store);
    store_close(store);
    return commit;
}

static bool nothing_at(const char *name)
{
    struct stat st;
    return lstat(place_in(place, name), &st) < 0 && errno == ENOENT;
}

static void check_nothing_left(const char *name)
{
    char partial[64];
    snprintf(partial, sizeof(partial), "%s.partial", name);
    TEST_CHECK_(nothing_at(name), "%s is there", name);
    TEST_CHECK_(nothing_at(partial), "%s is there", partial);
}

/* ---- there and back ---- */

/* What the store says of itself and of its rows. */
struct state {
    struct uuid identity;
    uint64_t commit, rows, parcels;
};

static void count_finding(void *context, const char *finding)
{
    printf("%s\n", finding);
    ++*(uint64_t *)context;
}

static struct state state_of(const char *dir)
{
    struct check_report found;
    uint64_t findings = 0;
    struct state state;
    enum error e = check_directory(place_in(place, dir), &parcel_store_schema, count_finding, &findings,
                                   &found, text, sizeof(text));
    TEST_CHECK_(e == OK && findings == 0, "%s: %s", error_name(e), text);
    struct store *store = parcels_open(place_in(place, dir), NULL);
    state = (struct state){.identity = store->identity, .commit = parcels_commit(store), .rows = found.rows};
    MDB_txn *mdb;
    struct txn txn = {.mdb = NULL};
    TEST_CHECK(mdb_txn_begin(store->environment.mdb, NULL, MDB_RDONLY, &mdb) == 0);
    txn_open(&txn, store, mdb);
    state.parcels = txn_rows(&txn, TABLE_PARCELS);
    txn_release(&txn);
    mdb_txn_abort(mdb);
    store_close(store);
    return state;
}

/* One after an even and one after an odd commit: the number decides which meta page is which. */
static void test_there_and_back(void)
{
    for (uint32_t batches = 60; batches <= 63; batches++) {
        uint64_t commit = make_store(batches);
        struct state before = state_of("a");
        CHECK_ERROR(make("a", "b"), OK);
        TEST_CHECK(report.commit == commit && report.rows == before.rows && strlen(report.sha256) == 64);
        struct backup_report made = report;
        CHECK_ERROR(verify("b"), OK);
        TEST_CHECK(memcmp(&made, &report, sizeof(made)) == 0);
        CHECK_ERROR(restore("b", "c"), OK);
        TEST_CHECK(memcmp(&made, &report, sizeof(made)) == 0);
        struct state after = state_of("c");
        TEST_CHECK(memcmp(&before, &after, sizeof(before)) == 0 && after.parcels > 10);
        struct store *store = parcels_open(place_in(place, "c"), NULL);
        parcels_run(&parcels, store, 20);
        TEST_CHECK(parcels_commit(store) > commit);
        store_close(store);
        state_of("c");
        place_remove(place);
    }
}

static void test_a_new_store_and_back(void)
{
    TEST_CHECK(make_store(0) == 1);
    CHECK_ERROR(make("a", "b"), OK);
    TEST_CHECK(report.commit == 1);
    TEST_CHECK(mkdir(place_in(place, "c"), 0700) == 0); /* empty will do */
    CHECK_ERROR(restore("b", "c"), OK);
    struct state before = state_of("a"), after = state_of("c");
    TEST_CHECK(memcmp(&before, &after, sizeof(before)) == 0);
    place_remove(place);
}

/* A restored store says whose it is before anybody has opened it: a data file that is gone is damage. */
static void test_a_restored_directory_names_its_store(void)
{
    size_t size, restored_size;
    struct store *store = NULL;
    make_store(5);
    CHECK_ERROR(make("a", "b"), OK);
    CHECK_ERROR(restore("b", "c"), OK);
    uint8_t *line = place_read(place_in(place, "a/coppice.lock"), &size),
            *restored = place_read(place_in(place, "c/coppice.lock"), &restored_size);
    TEST_CHECK(size > 0 && size == restored_size && memcmp(line, restored, size) == 0);
    free(line);
    free(restored);
    TEST_CHECK(unlink(place_in(place, "c/data.mdb")) == 0);
    CHECK_ERROR(store_open(&(struct store_options){.environment = {.dir = place_in(place, "c")},
                                                   .schema = &parcel_store_schema},
                           &store, text, sizeof(text)),
                ERR_DAMAGED);
    TEST_CHECK(nothing_at("c/data.mdb"));
    place_remove(place);
}

static void test_the_files_of_a_backup(void)
{
    struct stat st;
    size_t size;
    make_store(10);
    CHECK_ERROR(make("a", "b/"), OK);
    TEST_CHECK(nothing_at("b.partial"));
    TEST_CHECK(stat(place_in(place, "b"), &st) == 0 && (st.st_mode & 0777) == 0700);
    TEST_CHECK(stat(place_in(place, "b/data.mdb"), &st) == 0 && (st.st_mode & 0777) == 0600);
    TEST_CHECK((uint64_t)st.st_size == report.bytes);
    TEST_CHECK(nothing_at("b/lock.mdb") && nothing_at("b/coppice.lock"));
    char *manifest = (char *)place_read(place_in(place, "b/manifest.json"), &size);
    manifest[size - 1] = 0;
    TEST_CHECK_(strncmp(manifest, "{\"kind\":\"coppice backup\",\"manifest\":1,\"format\":1,\"identity\":\"",
                        60) == 0,
                "%s", manifest);
    TEST_CHECK(strstr(manifest, "\"made_at\":\"2023-11-14T22:13:20.123456Z\"") != NULL);
    TEST_CHECK(strstr(manifest, report.sha256) != NULL);
    free(manifest);
    char command[2 * PLACE_PATH_MAX];
    snprintf(command, sizeof(command), "echo '%s  %s' | sha256sum --check --status", report.sha256,
             place_in(place, "b/data.mdb"));
    TEST_CHECK(system(command) == 0);
    char *before = place_look(place_in(place, "b"));
    CHECK_ERROR(verify("b"), OK);
    char *after = place_look(place_in(place, "b"));
    TEST_CHECK(strcmp(before, after) == 0);
    free(before);
    free(after);
    place_remove(place);
}

/* ---- while it is written to ---- */

enum { TURNS = 4, TURN_BATCHES = 400 };

/* Writes for a turn whenever it is told to, and says the commit that each ends with: how much there is to copy doesn't
 * hang on how fast this machine is. */
static int write_on(int said, int told)
{
    struct store *store = parcels_open(place_in(place, "a"), NULL);
    uint64_t commit = 0;
    char byte;
    parcels_init(&parcels, 77);
    do {
        parcels_run(&parcels, store, TURN_BATCHES);
        commit = parcels_commit(store);
        if (write(said, &commit, sizeof(commit)) != sizeof(commit))
            return 1;
    } while (read(told, &byte, 1) == 1);
    store_close(store);
    return 0;
}

static void test_beside_a_writer(void)
{
    int said[2], told[2], status;
    uint64_t last;
    place_make(place);
    parcel_install();
    TEST_ASSERT(pipe(said) == 0 && pipe(told) == 0);
    pid_t writer = fork();
    if (writer == 0) {
        close(told[1]);
        close(said[0]);
        _exit(write_on(said[1], told[0]));
    }
    close(told[0]);
    close(said[1]);
    TEST_ASSERT(read(said[0], &last, sizeof(last)) == sizeof(last));
    for (int i = 0; i < TURNS; i++) {
        char name[8], into[8];
        snprintf(name, sizeof(name), "b%d", i);
        snprintf(into, sizeof(into), "c%d", i);
        TEST_ASSERT(write(told[1], "w", 1) == 1);
        CHECK_ERROR(make("a", name), OK);
        TEST_CHECK(report.commit >= last);
        CHECK_ERROR(restore(name, into), OK); /* which has checked every row, reference and counter */
        TEST_CHECK(state_of(into).commit == report.commit);
        TEST_ASSERT(read(said[0], &last, sizeof(last)) == sizeof(last));
        TEST_CHECK(report.commit <= last);
    }
    close(told[1]);
    TEST_CHECK(waitpid(writer, &status, 0) == writer && status == 0);
    place_remove(place);
}

/* The owner opens, closes and opens the store all the time: a guest waits for a better moment. */
static int open_and_close(int stop)
{
    char byte;
    if (fcntl(stop, F_SETFL, O_NONBLOCK) < 0)
        return 1;
    while (read(stop, &byte, 1) < 0 && errno == EAGAIN)
        store_close(parcels_open(place_in(place, "a"), NULL));
    return 0;
}

static void test_beside_an_owner_that_comes_and_goes(void)
{
    int stop[2], status;
    make_store(20);
    TEST_ASSERT(pipe(stop) == 0);
    pid_t owner = fork();
    if (owner == 0) {
        close(stop[1]);
        _exit(open_and_close(stop[0]));
    }
    close(stop[0]);
    for (int i = 0; i < 20; i++) {
        char name[8];
        snprintf(name, sizeof(name), "b%d", i);
        CHECK_ERROR(make("a", name), OK);
    }
    close(stop[1]);
    TEST_CHECK(waitpid(owner, &status, 0) == owner && status == 0);
    place_remove(place);
}

/* ---- what is in the way ---- */

static void test_a_target_that_is_there_stays_as_it_is(void)
{
    make_store(10);
    TEST_CHECK(mkdir(place_in(place, "b"), 0700) == 0);
    CHECK_ERROR(make("a", "b"), ERR_EXISTS);
    CHECK_SAYS("is there already");
    TEST_CHECK(rmdir(place_in(place, "b")) == 0 && nothing_at("b.partial"));
    CHECK_ERROR(make("a", "none/b"), ERR_MISSING);
    CHECK_ERROR(make("none", "b"), ERR_MISSING);
    check_nothing_left("b");
    place_write(place_in(place, "file"), "x", 1);
    CHECK_ERROR(make("a", "file/b"), ERR_FOREIGN);
    CHECK_ERROR(backup_make(place_in(place, "a"), "", &parcel_store_schema, 0, &report, text, sizeof(text)),
                ERR_INVALID);
    place_remove(place);
}

static void test_what_an_interrupted_backup_left_is_removed(void)
{
    make_store(10);
    TEST_CHECK(mkdir(place_in(place, "b.partial"), 0700) == 0);
    place_write(place_in(place, "b.partial/data.mdb"), "half", 4);
    place_write(place_in(place, "b.partial/manifest.json"), "{", 1);
    CHECK_ERROR(make("a", "b"), OK);
    CHECK_ERROR(verify("b"), OK);
    TEST_CHECK(mkdir(place_in(place, "c.partial"), 0700) == 0);
    place_write(place_in(place, "c.partial/mine"), "half", 4);
    CHECK_ERROR(make("a", "c"), ERR_EXISTS);
    CHECK_SAYS("'mine' is in it");
    TEST_CHECK(!nothing_at("c.partial/mine") && nothing_at("c"));
    place_remove(place);
}

static void test_two_backups_to_one_place(void)
{
    make_store(10);
    TEST_CHECK(mkdir(place_in(place, "b.partial"), 0700) == 0);
    place_write(place_in(place, "b.partial/data.mdb"), "of the other one", 16);
    int fd = open(place_in(place, "b.partial"), O_RDONLY | O_DIRECTORY);
    TEST_ASSERT(fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0);
    CHECK_ERROR(make("a", "b"), ERR_IN_USE);
    TEST_CHECK(!nothing_at("b.partial/data.mdb") && nothing_at("b"));
    close(fd);
    CHECK_ERROR(make("a", "b"), OK);
    place_remove(place);
}

static void test_a_directory_with_something_in_it_is_not_restored_into(void)
{
    make_store(10);
    CHECK_ERROR(make("a", "b"), OK);
    char *before = place_look(place_in(place, "a"));
    CHECK_ERROR(restore("b", "a"), ERR_EXISTS);
    CHECK_SAYS("isn't empty");
    char *after = place_look(place_in(place, "a"));
    TEST_CHECK(strcmp(before, after) == 0);
    free(before);
    free(after);
    TEST_CHECK(mkdir(place_in(place, "c"), 0700) == 0);
    place_write(place_in(place, "c/mine"), "x", 1);
    CHECK_ERROR(restore("b", "c"), ERR_EXISTS);
    TEST_CHECK(nothing_at("c/data.mdb") && nothing_at("c/coppice.lock"));
    CHECK_ERROR(restore("b", "none/d"), ERR_MISSING);
    place_remove(place);
}

/* What a restore leaves that is cut off before the store has its name. tests/store/failing_deeds_test.c cuts one off at each
 * of its calls. */
static void leave_a_restore(const char *name)
{
    static const char line[] = "coppice restore 0d9f3f0a-2b1c-4d5e-8f90-123456789abc\n";
    char path[64];
    TEST_CHECK(mkdir(place_in(place, name), 0700) == 0);
    snprintf(path, sizeof(path), "%s/coppice.lock", name);
    place_write(place_in(place, path), line, sizeof(line) - 1);
    snprintf(path, sizeof(path), "%s/new", name);
    TEST_CHECK(mkdir(place_in(place, path), 0700) == 0);
    snprintf(path, sizeof(path), "%s/new/data.mdb", name);
    place_write(place_in(place, path), "half", 4);
}

static void check_refused(const char *dir, enum error wanted, const char *word)
{
    struct store *store = NULL;
    char *before = place_look(place_in(place, dir));
    CHECK_ERROR(store_open(&(struct store_options){.environment = {.dir = place_in(place, dir)},
                                                   .schema = &parcel_store_schema},
                           &store, text, sizeof(text)),
                wanted);
    CHECK_SAYS(word);
    char *after = place_look(place_in(place, dir));
    TEST_CHECK(strcmp(before, after) == 0);
    free(before);
    free(after);
}

static void test_what_a_restore_left_that_was_cut_off_is_restored_into(void)
{
    make_store(10);
    CHECK_ERROR(make("a", "b"), OK);
    leave_a_restore("c");
    check_refused("c", ERR_DAMAGED, "holds a restore that was cut off");
    check_refused("c", ERR_DAMAGED, "run 'coppice restore' again");
    struct check_report found;
    uint64_t findings = 0;
    CHECK_ERROR(check_directory(place_in(place, "c"), &parcel_store_schema, count_finding, &findings, &found,
                                text, sizeof(text)),
                OK);
    TEST_CHECK(findings == 1);
    CHECK_ERROR(restore("b", "c"), OK);
    struct state before = state_of("a"), after = state_of("c");
    TEST_CHECK(memcmp(&before, &after, sizeof(before)) == 0);
    CHECK_ERROR(restore("b", "c"), ERR_EXISTS);
    place_remove(place);
}

/* As a program leaves the line that doesn't know it. */
static void say_restore(const char *name)
{
    char path[64], line[64], identity[UUID_TEXT_SIZE];
    struct state state = state_of(name);
    uuid_format(&state.identity, identity);
    snprintf(line, sizeof(line), "coppice restore %s\n", identity);
    snprintf(path, sizeof(path), "%s/coppice.lock", name);
    place_write(place_in(place, path), line, strlen(line));
}

/* An older program has served from what a restore left that was cut off behind its last but one step. */
static void test_a_store_that_was_written_to_is_not_restored_into(void)
{
    uint64_t commit = make_store(10);
    CHECK_ERROR(make("a", "b"), OK);
    CHECK_ERROR(restore("b", "c"), OK);
    struct store *store = parcels_open(place_in(place, "c"), NULL);
    parcels_run(&parcels, store, 1);
    TEST_CHECK(parcels_commit(store) == commit + 1);
    store_close(store);
    say_restore("c");
    char *before = place_look(place_in(place, "c"));
    CHECK_ERROR(restore("b", "c"), ERR_EXISTS);
    CHECK_SAYS("move its data.mdb away");
    char *after = place_look(place_in(place, "c"));
    TEST_CHECK(strcmp(before, after) == 0);
    free(before);
    free(after);
    TEST_CHECK(rename(place_in(place, "c/data.mdb"), place_in(place, "mine")) == 0);
    CHECK_ERROR(restore("b", "c"), OK);
    TEST_CHECK(state_of("c").commit == commit);
    place_remove(place);
}

static void test_a_restore_that_fails_leaves_another_as_it_was_cut_off(void)
{
    make_store(10);
    CHECK_ERROR(make("a", "b"), OK);
    leave_a_restore("c");
    int fd = open(place_in(place, "c/coppice.lock"), O_RDWR);
    TEST_ASSERT(fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0); /* it goes on: nobody has cut it off */
    CHECK_ERROR(restore("b", "c"), ERR_IN_USE);
    TEST_CHECK(!nothing_at("c/new/data.mdb"));
    check_refused("c", ERR_IN_USE, "is in use");
    close(fd);
    place_write(place_in(place, "c/mine"), "x", 1);
    CHECK_ERROR(restore("b", "c"), ERR_EXISTS);
    CHECK_SAYS("'mine' is in it");
    TEST_CHECK(!nothing_at("c/new/data.mdb") && unlink(place_in(place, "c/mine")) == 0);
    place_write(place_in(place, "c/new/mine"), "x", 1); /* that can't be cleared */
    TEST_CHECK(restore("b", "c") != OK);
    check_refused("c", ERR_DAMAGED, "holds a restore that was cut off");
    TEST_CHECK(unlink(place_in(place, "c/new/mine")) == 0);
    CHECK_ERROR(restore("b", "c"), OK);
    state_of("c");
    place_remove(place);
}

/* Only that word makes it a restore's. */
static void test_what_a_server_left_is_not_restored_into(void)
{
    make_store(10);
    CHECK_ERROR(make("a", "b"), OK);
    TEST_CHECK(unlink(place_in(place, "a/data.mdb")) == 0 && unlink(place_in(place, "a/lock.mdb")) == 0);
    CHECK_ERROR(restore("b", "a"), ERR_EXISTS);
    CHECK_SAYS("'coppice.lock' is in it");
    check_refused("a", ERR_DAMAGED, "has lost its data.mdb");
    TEST_CHECK(truncate(place_in(place, "a/coppice.lock"), 0) == 0);
    CHECK_ERROR(restore("b", "a"), OK); /* of a making, or a restore, that had just begun */
    state_of("a");
    place_remove(place);
}

/* ---- no room ---- */

static int fill_the_disk(void *arg)
{
    char disk[PLACE_PATH_MAX + 16];
    (void)arg;
    snprintf(disk, sizeof(disk), "%s/disk", place);
    if (mkdir(disk, 0700) != 0 || !place_mount(disk, 128 << 10))
        return 77;
    if (make("a", "disk/b") != ERR_NO_SPACE || !nothing_at("disk/b") || !nothing_at("disk/b.partial"))
        return printf("%s\n", text), 1;
    if (make("a", "b") != OK || restore("b", "disk/c") != ERR_NO_SPACE || !nothing_at("disk/c"))
        return printf("%s\n", text), 2;
    return 0;
}

static void test_a_full_disk_leaves_nothing(void)
{
    make_store(200);
    int status = place_apart(fill_the_disk, NULL);
    TEST_CHECK_(status == 0 || status == 77, "status %d", status);
    place_remove(place);
}

/* ---- damage ---- */

/* Where flips of a manifest change nothing that is told: when and by which version it was made. */
static bool told_only(const char *manifest, size_t at)
{
    const char *made = strstr(manifest, "\"made_at\":\"") + 11,
               *version = strstr(manifest, "\"version\":\"") + 11;
    return (manifest + at >= made && manifest + at < made + 27) ||
           (manifest + at >= version && manifest + at < version + strcspn(version, "\""));
}

static void test_damage_of_any_byte_is_found(void)
{
    size_t size;
    make_store(10);
    CHECK_ERROR(make("a", "b"), OK);
    uint64_t bytes = report.bytes;
    uint8_t *manifest = place_read(place_in(place, "b/manifest.json"), &size);
    for (size_t at = 0; at < size; at++) {
        if (told_only((char *)manifest, at))
            continue;
        place_flip(place_in(place, "b/manifest.json"), at);
        enum error e = verify("b");
        TEST_CHECK_(e == ERR_DAMAGED || e == ERR_NEWER, "byte %zu of the manifest: %s", at, error_name(e));
        place_write(place_in(place, "b/manifest.json"), manifest, size);
    }
    free(manifest);
    uint8_t *data = place_read(place_in(place, "b/data.mdb"), &size);
    TEST_CHECK(size == bytes);
    for (size_t at = 0; at < size; at += at < 300 ? 1 : size / 200) {
        place_flip(place_in(place, "b/data.mdb"), at);
        CHECK_ERROR(verify("b"), ERR_DAMAGED);
        CHECK_ERROR(restore("b", "c"), ERR_DAMAGED);
        TEST_CHECK(nothing_at("c"));
        place_write(place_in(place, "b/data.mdb"), data, size);
    }
    CHECK_ERROR(verify("b"), OK);
    TEST_CHECK(truncate(place_in(place, "b/data.mdb"), (off_t)size - 1) == 0);
    CHECK_ERROR(verify("b"), ERR_DAMAGED);
    CHECK_SAYS("the manifest says");
    TEST_CHECK(unlink(place_in(place, "b/data.mdb")) == 0);
    CHECK_ERROR(verify("b"), ERR_DAMAGED);
    CHECK_SAYS("lost its data.mdb");
    TEST_CHECK(unlink(place_in(place, "b/manifest.json")) == 0);
    CHECK_ERROR(verify("b"), ERR_MISSING);
    CHECK_ERROR(verify("none"), ERR_MISSING);
    free(data);
    place_remove(place);
}

/* A manifest that fits its file, but not what the file is. */
static void rewrite(const char *from, const char *to)
{
    size_t size;
    char *manifest = (char *)place_read(place_in(place, "b/manifest.json"), &size);
    char *at = memmem(manifest, size, from, strlen(from));
    TEST_ASSERT(at != NULL && strlen(from) == strlen(to));
    memcpy(at, to, strlen(to));
    place_write(place_in(place, "b/manifest.json"), manifest, size);
    free(manifest);
}

static void test_a_manifest_that_says_otherwise(void)
{
    uint64_t commit = make_store(10);
    char right[64], wrong[64];
    CHECK_ERROR(make("a", "b"), OK);
    rewrite("\"manifest\":1", "\"manifest\":2");
    CHECK_ERROR(verify("b"), ERR_NEWER);
    rewrite("\"manifest\":2", "\"manifest\":1");
    rewrite("\"format\":1", "\"format\":2");
    CHECK_ERROR(verify("b"), ERR_NEWER);
    CHECK_SAYS("is of format 2, this program knows up to 1");
    rewrite("\"format\":2", "\"format\":1");
    snprintf(right, sizeof(right), "\"commit\":%llu,", (unsigned long long)commit);
    snprintf(wrong, sizeof(wrong), "\"commit\":%llu,",
             (unsigned long long)(commit % 10 == 9 ? commit - 1 : commit + 1));
    rewrite(right, wrong);
    CHECK_ERROR(verify("b"), ERR_DAMAGED);
    CHECK_SAYS("the manifest says otherwise");
    rewrite(wrong, right);
    CHECK_ERROR(verify("b"), OK);
    place_remove(place);
}

/* A store whose rows are damaged isn't copied as if it were whole. */
static void test_a_damaged_store_gives_no_backup(void)
{
    size_t size;
    make_store(30);
    uint8_t *data = place_read(place_in(place, "a/data.mdb"), &size);
    unsigned refused = 0;
    for (size_t at = 2 * 4096; at < size; at += 3989) { /* about one of a page, each time elsewhere in it */
        place_flip(place_in(place, "a/data.mdb"), at);
        enum error e = make("a", "b");
        if (e == OK) { /* a byte that means nothing: of a free page, or between the rows */
            CHECK_ERROR(verify("b"), OK);
            place_remove(place_in(place, "b"));
        } else {
            TEST_CHECK_(e == ERR_DAMAGED || e == ERR_FOREIGN || e == ERR_NO_SPACE, "byte %zu: %s: %s", at,
                        error_name(e), text);
            refused++;
        }
        check_nothing_left("b");
        place_write(place_in(place, "a/data.mdb"), data, size);
    }
    TEST_CHECK_(refused > 10, "%u", refused);
    free(data);
    place_remove(place);
}

/* Spoils one row of the store in place/a, in a commit that is sound otherwise. */
static void spoil(uint32_t table, int (*how)(MDB_cursor *cursor, MDB_val *key, MDB_val *value))
{
    MDB_txn *txn;
    MDB_cursor *cursor;
    MDB_val key, value;
    struct store *store = parcels_open(place_in(place, "a"), NULL);
    TEST_ASSERT(mdb_txn_begin(store->environment.mdb, NULL, 0, &txn) == 0);
    TEST_ASSERT(mdb_cursor_open(txn, store->environment.tables[table], &cursor) == 0);
    TEST_ASSERT(mdb_cursor_get(cursor, &key, &value, MDB_FIRST) == 0);
    TEST_ASSERT(how(cursor, &key, &value) == 0);
    mdb_cursor_close(cursor);
    TEST_ASSERT(meta_write_stamp(txn, store->environment.tables[TABLE_META]) == 0);
    TEST_ASSERT(mdb_txn_commit(txn) == 0);
    store_close(store);
}

static int damage_value(MDB_cursor *cursor, MDB_val *key, MDB_val *value)
{
    uint8_t bytes[4096];
    TEST_ASSERT(value->mv_size <= sizeof(bytes));
    memcpy(bytes, value->mv_data, value->mv_size);
    bytes[value->mv_size / 2] ^= 1;
    return mdb_cursor_put(cursor, key, &(MDB_val){.mv_size = value->mv_size, .mv_data = bytes}, MDB_CURRENT);
}

static int remove_row(MDB_cursor *cursor, MDB_val *key, MDB_val *value)
{
    (void)key, (void)value;
    return mdb_cursor_del(cursor, 0);
}

static void test_one_damaged_value_gives_no_backup(void)
{
    make_store(30);
    spoil(TABLE_PARCELS, damage_value);
    CHECK_ERROR(make("a", "b"), ERR_DAMAGED);
    CHECK_SAYS("the checksum of a value is wrong");
    check_nothing_left("b");
    place_remove(place);
}

/* Each value is what was written, but a row that others name is gone: a faithful copy of a store that isn't sound. */
static void test_a_wrong_reference_is_found_by_verify(void)
{
    make_store(30);
    spoil(TABLE_EVENTS, remove_row);
    CHECK_ERROR(make("a", "b"), OK);
    CHECK_ERROR(verify("b"), ERR_DAMAGED);
    CHECK_SAYS("findings, the first: ");
    CHECK_ERROR(restore("b", "c"), ERR_DAMAGED);
    TEST_CHECK(nothing_at("c"));
    place_remove(place);
}

TEST_LIST
= {
    {"there_and_back", test_there_and_back},
    {"a_new_store_and_back", test_a_new_store_and_back},
    {"a_restored_directory_names_its_store", test_a_restored_directory_names_its_store},
    {"the_files_of_a_backup", test_the_files_of_a_backup},
    {"beside_a_writer", test_beside_a_writer},
    {"beside_an_owner_that_comes_and_goes", test_beside_an_owner_that_comes_and_goes},
    {"a_target_that_is_there_stays_as_it_is", test_a_target_that_is_there_stays_as_it_is},
    {"what_an_interrupted_backup_left_is_removed", test_what_an_interrupted_backup_left_is_removed},
    {"two_backups_to_one_place", test_two_backups_to_one_place},
    {"a_directory_with_something_in_it_is_not_restored_into",
     test_a_directory_with_something_in_it_is_not_restored_into},
    {"what_a_restore_left_that_was_cut_off_is_restored_into",
     test_what_a_restore_left_that_was_cut_off_is_restored_into},
    {"a_store_that_was_written_to_is_not_restored_into",
     test_a_store_that_was_written_to_is_not_restored_into},
    {"a_restore_that_fails_leaves_another_as_it_was_cut_off",
     test_a_restore_that_fails_leaves_another_as_it_was_cut_off},
    {"what_a_server_left_is_not_restored_into", test_what_a_server_left_is_not_restored_into},
    {"a_full_disk_leaves_nothing", test_a_full_disk_leaves_nothing},
    {"damage_of_any_byte_is_found", test_damage_of_any_byte_is_found},
    {"a_manifest_that_says_otherwise", test_a_manifest_that_says_otherwise},
    {"a_damaged_store_gives_no_backup", test_a_damaged_store_gives_no_backup},
    {"one_damaged_value_gives_no_backup", test_one_damaged_value_gives_no_backup},
    {"a_wrong_reference_is_found_by_verify", test_a_wrong_reference_is_found_by_verify},
    {NULL, NULL},
};
