/* The environment when a call fails that seldom does, or somebody else is quicker: another process that opens the directory, looks at it
 * or makes a store in it, between two calls of ours. */
#define _GNU_SOURCE
#include "acutest.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/batch.h"
#include "store/leaves.h"
#include "tests/store/place.h"
#include "tests/support/failing.h"
#include "tests/support/parcel.h"

enum { CALLS_MAX = 200, PAGE = 4096, NUMBER_AT = 144 };

static char dir[PLACE_PATH_MAX];
static char text[1024];
static struct environment environment;

static enum error open_at(const char *path, bool guest)
{
    struct environment_options o = {.dir = path,
                                    .map = 1 << 20,
                                    .map_max = 8 << 20,
                                    .step = 256 << 10,
                                    .reserve = 64 << 10,
                                    .birth = {1, 2, 3},
                                    .guest = guest};
    text[0] = 0;
    return environment_open(&o, &store_schema, &environment, text, sizeof(text));
}

static void open_sound(void)
{
    enum error e = open_at(dir, false);
    TEST_ASSERT_(e == OK, "%s: %s", error_name(e), text);
}

static void make(void)
{
    place_make(dir);
    open_sound();
    environment_close(&environment);
}

static const char *lock_file(void)
{
    return place_in(dir, "coppice.lock");
}

/* Whether somebody holds what is called coppice.lock now. */
static bool is_locked(void)
{
    int fd = open(lock_file(), O_RDWR | O_CLOEXEC);
    bool locked = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    close(fd);
    return locked;
}

/* ---- others at the lock ---- */

static int guest_fd;
static uint32_t locks; /* calls of flock */

static void guest_comes(void)
{
    guest_fd = open(lock_file(), O_RDONLY | O_CLOEXEC);
    TEST_ASSERT(guest_fd >= 0 && flock(guest_fd, LOCK_SH) == 0);
}

/* We ask for it alone, in vain, and see that it is shared, which is two calls more: then the guest goes. */
static void guest_goes(void)
{
    if (++locks < 4)
        failing_before("flock", guest_goes);
    else
        close(guest_fd);
}

static void test_an_owner_waits_for_a_guest(void)
{
    make();
    guest_comes();
    locks = 0;
    failing_before("flock", guest_goes);
    open_sound();
    TEST_CHECK(locks == 4 && is_locked());
    environment_close(&environment);
    place_remove(dir);
}

/* A second, which is as long as many of them need one after the other. */
static void test_an_owner_does_not_wait_for_ever(void)
{
    make();
    char *before = place_look(dir);
    guest_comes();
    TEST_CHECK(open_at(dir, false) == ERR_IN_USE && strstr(text, "is in use"));
    char *after = place_look(dir);
    TEST_CHECK(strcmp(before, after) == 0);
    free(before);
    free(after);
    close(guest_fd);
    open_sound();
    environment_close(&environment);
    place_remove(dir);
}

static void replace_lock(void)
{
    size_t size;
    uint8_t *line = place_read(lock_file(), &size);
    TEST_ASSERT(unlink(lock_file()) == 0);
    place_write(lock_file(), line, size);
    free(line);
}

/* The file that was opened has no name any more when it is locked: the one that has is locked as well. */
static void test_a_lock_that_is_another_file_by_now(void)
{
    make();
    failing_before("flock", replace_lock);
    open_sound();
    TEST_CHECK(is_locked());
    environment_close(&environment);
    place_remove(dir);
}

static char other_disk[PLACE_PATH_MAX], twin[PLACE_PATH_MAX + 32], here[PLACE_PATH_MAX + 32];

static void mount_twin(void)
{
    TEST_ASSERT(mount(twin, here, NULL, MS_BIND, NULL) == 0);
}

/* Files of two disks may have the same number. */
static int on_two_disks(void *arg)
{
    struct stat lock, file = {0};
    (void)arg;
    place_make(other_disk);
    if (!place_mount(dir, 4 << 20) || !place_mount(other_disk, 4 << 20))
        return 0;
    open_sound();
    environment_close(&environment);
    TEST_ASSERT(stat(lock_file(), &lock) == 0);
    for (uint32_t i = 0; i < 1000 && file.st_ino != lock.st_ino; i++) {
        snprintf(twin, sizeof(twin), "%s/%u", other_disk, i);
        place_write(twin, "", 0);
        TEST_ASSERT(stat(twin, &file) == 0);
    }
    if (file.st_ino != lock.st_ino) {
        printf("left out: this machine's disks in memory share their numbers of files\n");
        return 0;
    }
    TEST_CHECK(file.st_dev != lock.st_dev);
    snprintf(here, sizeof(here), "%s", lock_file());
    failing_before("flock", mount_twin);
    open_sound();
    TEST_CHECK(is_locked());
    environment_close(&environment);
    return test_current_failures_ != 0;
}

static void test_a_lock_on_another_disk_by_now(void)
{
    place_make(dir);
    int status = place_apart(on_two_disks, NULL);
    TEST_CHECK_(status == 0, "status %d", status);
    place_remove(dir);
}

/* ---- a directory that two want to make ---- */

static void other_makes_dir(void)
{
    TEST_ASSERT(mkdir(dir, 0700) == 0);
}

static void test_a_directory_that_another_makes(void)
{
    make();
    place_remove(dir);
    failing_before("mkdir", other_makes_dir);
    open_sound();
    environment_close(&environment);
    place_remove(dir);
}

static void other_locks(void)
{
    guest_fd = open(lock_file(), O_RDWR | O_CLOEXEC);
    TEST_ASSERT(guest_fd >= 0 && flock(guest_fd, LOCK_EX) == 0);
}

/* We have made it, and another one is quicker at the lock: it is his now, and nothing of it is taken away. */
static void test_a_directory_that_another_has_by_now(void)
{
    make();
    place_remove(dir);
    failing_before("flock", other_locks);
    TEST_CHECK(open_at(dir, false) == ERR_IN_USE);
    TEST_CHECK(access(lock_file(), F_OK) == 0 && is_locked());
    close(guest_fd);
    open_sound();
    environment_close(&environment);
    place_remove(dir);
}

/* ---- a store that is made meanwhile ---- */

static char aside[PLACE_PATH_MAX + 16];

static void data_comes(void)
{
    TEST_ASSERT(rename(aside, place_in(dir, "data.mdb")) == 0);
}

/* The lock file names it already, and its data came behind our look: it isn't lost. */
static void test_a_guest_while_a_store_comes(void)
{
    make();
    snprintf(aside, sizeof(aside), "%s.aside", dir);
    TEST_ASSERT(rename(place_in(dir, "data.mdb"), aside) == 0);
    failing_before("pread", data_comes);
    TEST_CHECK(open_at(dir, true) == ERR_MISSING);
    TEST_CHECK_(strstr(text, "holds no store") != NULL, "%s", text);
    TEST_CHECK(open_at(dir, true) == OK);
    environment_close(&environment);
    place_remove(dir);
}

static void test_a_guest_where_looking_fails(void)
{
    place_make(dir);
    for (uint64_t n = 1; n < CALLS_MAX; n++) {
        failing_begin(FAILING_SYSTEM, n);
        enum error e = open_at(dir, true);
        bool hit = failing_end();
        TEST_CASE_("call %u, %s", (unsigned)n, failing_name());
        TEST_CHECK_(e == (hit && strcmp(failing_name(), "openat") != 0 ? ERR_IO : ERR_MISSING), "%s: %s",
                    error_name(e), text);
        if (!hit) {
            TEST_CHECK(n > 5);
            break;
        }
    }
    place_remove(dir);
}

/* ---- a commit that lacks its number ---- */

static uint64_t take_number_away(void)
{
    uint64_t numbers[2];
    int fd = open(place_in(dir, "data.mdb"), O_RDWR | O_CLOEXEC);
    TEST_ASSERT(fd >= 0);
    for (int i = 0; i < 2; i++)
        TEST_ASSERT(pread(fd, &numbers[i], 8, i * PAGE + NUMBER_AT) == 8);
    int newest = numbers[1] > numbers[0];
    uint64_t number = numbers[newest], less = number - 2;
    TEST_ASSERT(pwrite(fd, &less, 8, newest * PAGE + NUMBER_AT) == 8);
    close(fd);
    return number;
}

static void test_every_call_fails_while_a_commit_gets_its_number(void)
{
    make();
    size_t size;
    MDB_txn *txn;
    open_sound();
    TEST_ASSERT(mdb_txn_begin(environment.mdb, NULL, 0, &txn) == 0);
    TEST_ASSERT(meta_write_stamp(txn, environment.tables[TABLE_META]) == 0 && mdb_txn_commit(txn) == 0);
    environment_close(&environment);
    uint64_t number = take_number_away();
    uint8_t *bytes = place_read(place_in(dir, "data.mdb"), &size);
    for (enum failing_kind kind = FAILING_HEAP; kind <= FAILING_SPACE; kind++)
        for (uint64_t n = 1; n < CALLS_MAX; n++) {
            place_write(place_in(dir, "data.mdb"), bytes, size);
            failing_begin(kind, n);
            enum error e = open_at(dir, false);
            bool hit = failing_end();
            TEST_CASE_("call %u, %s", (unsigned)n, failing_name());
            TEST_CHECK_(e == OK || (hit && text[0]), "%s: %s", error_name(e), text);
            if (e)
                open_sound();
            TEST_CHECK(environment.format.commit == number);
            environment_close(&environment);
            if (!hit)
                break;
        }
    free(bytes);
    place_remove(dir);
}

/* ---- one that is open ---- */

static void test_a_signal_while_blocks_are_allocated(void)
{
    struct stat data;
    place_make(dir);
    failing_next("posix_fallocate", EINTR);
    open_sound();
    environment_close(&environment);
    TEST_CHECK(stat(place_in(dir, "data.mdb"), &data) == 0 && data.st_size == 256 << 10);
    TEST_CHECK(data.st_blocks * 512 >= data.st_size);
    TEST_CHECK(stat(place_in(dir, "lock.mdb"), &data) == 0 && data.st_blocks * 512 >= data.st_size);
    place_remove(dir);
}

static void test_what_can_not_be_read_of_one_that_is_open(void)
{
    struct uuid identity = {.bytes = {9}}, before = identity;
    struct environment_stats stats;
    MDB_txn *txn;
    make();
    open_sound();
    failing_begin(FAILING_LMDB, 1);
    TEST_CHECK(environment_identity(&environment, &identity) == ERR_MEMORY && failing_end());
    TEST_CHECK(uuid_equal(&identity, &before));
    TEST_CHECK(environment_identity(&environment, &identity) == OK && !uuid_equal(&identity, &before));
    TEST_ASSERT(mdb_txn_begin(environment.mdb, NULL, MDB_RDONLY, &txn) == 0);
    failing_next("fstat", EIO);
    TEST_CHECK(environment_stats(&environment, txn, &stats) == ERR_IO);
    TEST_CHECK(environment_stats(&environment, txn, &stats) == OK && stats.file == 256 << 10);
    mdb_txn_abort(txn);
    environment_close(&environment);
    place_remove(dir);
}

/* A full disk: the map can't be made as short as the file, it is as it was, and nothing counts as room that can't be looked at. */
static void test_a_limit_that_can_not_be_set(void)
{
    MDB_envinfo info;
    make();
    open_sound();
    failing_next("posix_fallocate", ENOSPC);
    TEST_CHECK(environment_allocate(&environment, 1 << 20) == ERR_NO_SPACE);
    TEST_CHECK(environment.tight && environment_limit_due(&environment));
    TEST_CHECK(!environment_roomy(&environment, 1)); /* not limited yet */
    failing_begin(FAILING_LMDB, 1);
    TEST_CHECK(environment_limit(&environment) == ERR_MEMORY && failing_end());
    TEST_CHECK(!environment.limited && mdb_env_info(environment.mdb, &info) == 0 &&
               info.me_mapsize == 1 << 20);
    TEST_CHECK(environment_limit(&environment) == OK && environment.limited);
    TEST_CHECK(mdb_env_info(environment.mdb, &info) == 0 && info.me_mapsize == 256 << 10);
    uint64_t room = environment_ahead(&environment) - environment.options.reserve;
    TEST_CHECK(environment_roomy(&environment, room));
    failing_begin(FAILING_LMDB, 1);
    TEST_CHECK(!environment_roomy(&environment, room + 1) && failing_end());
    TEST_CHECK(environment_grow(&environment) == ERR_NO_SPACE && environment.map == 1 << 20);
    environment_close(&environment);
    place_remove(dir);
}

/* ---- a large one ---- */

static void test_no_memory_to_look_at_all_of_it(void)
{
    enum { PARCELS = 300 };
    static const char body[1100];
    struct store *store;
    struct store_options options = {
        .environment = {.dir = dir, .map = 64 << 20, .step = 64 << 10, .reserve = 4096, .whole_max = 1},
        .schema = &parcel_store_schema,
        .ledger_max = 65536};
    parcel_install();
    place_make(dir);
    TEST_ASSERT_(store_open(&options, &store, text, sizeof(text)) == OK, "%s", text);
    for (uint32_t i = 0; i < PARCELS; i++) {
        struct parcel_send send = {.id = {.bytes = {1, (uint8_t)(i >> 8), (uint8_t)i}},
                                   .scope = span_text("test"),
                                   .body = span_of(body, sizeof(body))};
        TEST_ASSERT(batch_one(store, &parcel_send_class, 1000, &send, NULL) == OK);
    }
    store_close(store);
    TEST_ASSERT_(store_open(&options, &store, text, sizeof(text)) == OK, "%s", text);
    TEST_CHECK(leaves_pending(store->environment.leaves));
    int64_t live = failing_live();
    failing_begin(FAILING_HEAP, 1);
    TEST_CHECK(environment_believe(&store->environment, NULL, NULL, text, sizeof(text)) == ERR_MEMORY);
    TEST_CHECK(failing_end() && strstr(text, "no memory") && failing_live() == live);
    TEST_CHECK(leaves_pending(store->environment.leaves));
    TEST_CHECK(environment_believe(&store->environment, NULL, NULL, text, sizeof(text)) == OK);
    TEST_CHECK(!leaves_pending(store->environment.leaves));
    store_close(store);
    place_remove(dir);
}

TEST_LIST
= {{"an owner waits for a guest", test_an_owner_waits_for_a_guest},
   {"an owner doesn't wait for ever", test_an_owner_does_not_wait_for_ever},
   {"a lock that is another file by now", test_a_lock_that_is_another_file_by_now},
   {"a lock on another disk by now", test_a_lock_on_another_disk_by_now},
   {"a directory that another makes", test_a_directory_that_another_makes},
   {"a directory that another has by now", test_a_directory_that_another_has_by_now},
   {"a guest while a store comes", test_a_guest_while_a_store_comes},
   {"a guest where looking fails", test_a_guest_where_looking_fails},
   {"every call fails while a commit gets its number", test_every_call_fails_while_a_commit_gets_its_number},
   {"a signal while blocks are allocated", test_a_signal_while_blocks_are_allocated},
   {"what can't be read of one that is open", test_what_can_not_be_read_of_one_that_is_open},
   {"a limit that can't be set", test_a_limit_that_can_not_be_set},
   {"no memory to look at all of it", test_no_memory_to_look_at_all_of_it},
   {NULL, NULL}};
