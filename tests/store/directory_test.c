/* Directories in which no store can be opened: each has its own error, exit status and sentence, and is afterwards as it
 * was before (section 3.2 of the fault model: D2, D6, D7; S6: damaged is said, never taken for empty). */
#define _GNU_SOURCE
#include "acutest.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/directory.h"
#include "store/environment.h"
#include "tests/store/place.h"

static char dir[PLACE_PATH_MAX];
static char text[1024];

/* Small, so that a test is quick; places stay what they are. */
static struct environment_options small(const char *path)
{
    return (struct environment_options){.dir = path,
                                        .map = 1 << 20,
                                        .map_max = 8 << 20,
                                        .step = 256 << 10,
                                        .reserve = 64 << 10,
                                        .birth = {1, 2, 3}};
}

static void make_store(const char *path)
{
    struct environment e;
    struct environment_options o = small(path);
    enum error error = environment_open(&o, &store_schema, &e, text, sizeof(text));
    TEST_ASSERT_(error == OK, "%s", text);
    environment_close(&e);
}

static bool opens(const char *path)
{
    struct environment e;
    struct environment_options o = small(path);
    enum error error = environment_open(&o, &store_schema, &e, text, sizeof(text));
    TEST_CHECK_(error == OK, "%s: %s", error_name(error), text);
    if (error == OK)
        environment_close(&e);
    return error == OK;
}

/* Refused with this error, this status and a sentence with these words that names the directory; what lies at `place` is
 * not touched. */
static void refuses_with(const struct environment_options *o, const struct schema *schema, const char *place,
                         enum error expected, int status, const char *words)
{
    struct environment e;
    char *before = place_look(place);
    memset(text, 0, sizeof(text));
    enum error error = environment_open(o, schema, &e, text, sizeof(text));
    char *after = place_look(place);
    TEST_CHECK_(error == expected, "%s instead of %s: %s", error_name(error), error_name(expected), text);
    TEST_CHECK_(environment_exit_status(error) == status, "status %d", environment_exit_status(error));
    TEST_CHECK_(strstr(text, words) != NULL, "'%s' isn't in: %s", words, text);
    TEST_CHECK_(strstr(text, o->dir) != NULL, "the directory isn't in: %s", text);
    TEST_CHECK_(strlen(text) > strlen(o->dir) + 12 && !strchr(text, '\n'), "not a sentence: %s", text);
    TEST_CHECK_(strcmp(before, after) == 0, "before:\n%safter:\n%s", before, after);
    if (error == OK)
        environment_close(&e);
    free(before);
    free(after);
}

static void refuses(const char *path, enum error expected, int status, const char *words)
{
    struct environment_options o = small(path);
    refuses_with(&o, &store_schema, path, expected, status, words);
}

/* In a process of its own: the disks that it mounts are gone with it. */
static void apart(int (*run)(void *arg))
{
    int status = place_apart(run, NULL);
    TEST_CHECK_(status == 0, "status %d", status);
}

static const char *data_file(void)
{
    return place_in(dir, "data.mdb");
}

/* ---- not ours ---- */

static void test_other_files(void)
{
    place_make(dir);
    place_write(place_in(dir, "letter.txt"), "dear", 4);
    refuses(dir, ERR_FOREIGN, 73, "letter.txt");
    place_remove(dir);
    place_make(dir);
    place_write(place_in(dir, ".hidden"), "", 0);
    refuses(dir, ERR_FOREIGN, 73, ".hidden");
    place_remove(dir);
    place_make(dir);
    TEST_CHECK(mkdir(place_in(dir, "photos"), 0700) == 0);
    refuses(dir, ERR_FOREIGN, 73, "photos");
    place_write(place_in(dir, "letter.txt"), "dear", 4); /* one of the two is named */
    refuses(dir, ERR_FOREIGN, 73, "and no store");
    TEST_CHECK((strstr(text, "photos") != NULL) != (strstr(text, "letter.txt") != NULL));
    place_remove(dir);
}

static void test_another_program_s_data_file(void)
{
    char page[8192];
    place_make(dir);
    place_write(data_file(), "not a store at all\n", 19);
    refuses(dir, ERR_FOREIGN, 73, "isn't LMDB's");
    memset(page, 'x', sizeof(page));
    place_write(data_file(), page, sizeof(page));
    refuses(dir, ERR_FOREIGN, 73, "isn't LMDB's");
    place_remove(dir);
}

/* row: NULL, then there is none. */
static void make_lmdb_with(const char *path, const char *table, const char *row)
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    MDB_val key = {.mv_size = row ? strlen(row) : 0, .mv_data = (void *)(uintptr_t)row},
            value = {.mv_size = 3, .mv_data = (char[]){"one"}};
    TEST_ASSERT(mdb_env_create(&env) == 0 && mdb_env_set_maxdbs(env, 4) == 0);
    TEST_ASSERT(mdb_env_open(env, path, 0, 0600) == 0);
    TEST_ASSERT(mdb_txn_begin(env, NULL, 0, &txn) == 0);
    TEST_ASSERT(mdb_dbi_open(txn, table, MDB_CREATE, &dbi) == 0);
    TEST_ASSERT(!row || mdb_put(txn, dbi, &key, &value, 0) == 0);
    TEST_ASSERT(mdb_txn_commit(txn) == 0);
    mdb_env_close(env);
}

static void make_lmdb(const char *path, const char *table)
{
    make_lmdb_with(path, table, "format");
}

static void test_another_program_s_lmdb(void)
{
    place_make(dir);
    make_lmdb(dir, "accounts");
    refuses(dir, ERR_FOREIGN, 73, "isn't a store of coppice");
    place_remove(dir);
    place_make(dir);
    make_lmdb(dir, NULL); /* rows without a table's name */
    refuses(dir, ERR_FOREIGN, 73, "isn't a store of coppice");
    place_remove(dir);
    place_make(dir);
    make_lmdb_with(dir, NULL, "meta"); /* one of them called as our table */
    refuses(dir, ERR_FOREIGN, 73, "isn't a store of coppice");
    struct environment_options o = small(dir);
    o.guest = true;
    refuses_with(&o, &store_schema, dir, ERR_FOREIGN, 73,
                 "isn't a store of coppice, or a damaged one: page ");
    place_remove(dir);
    place_make(dir);
    make_lmdb_with(dir, "meta", NULL); /* our table, with nothing in it */
    refuses(dir, ERR_FOREIGN, 73, "isn't a store of coppice");
    place_remove(dir);
}

/* A table that is called as ours and holds something else: no lock file says that a store of ours was here. */
static void test_a_table_with_our_name(void)
{
    place_make(dir);
    make_lmdb(dir, "meta");
    refuses(dir, ERR_FOREIGN, 73, "damaged one");
    place_remove(dir);
}

/* A lock that was left by a store names it; one whose line says nothing of the kind names none. */
static void test_what_a_lock_names(void)
{
    static const char *const nothing[] = {
        "somebody's lock\n",
        "coppice store 0d9f3f0a\n",
        "another words 0d9f3f0a-2b1c-4d5e-8f90-123456789abc\n",
        "coppice store 0d9f3f0a-2b1c-4d5e-8f90-123456789abg\n",
    };
    static const char another[] = "coppice store 0d9f3f0a-2b1c-4d5e-8f90-123456789abc\n";
    place_make(dir);
    make_store(dir);
    for (size_t i = 0; i < sizeof(nothing) / sizeof(*nothing); i++) {
        place_write(place_in(dir, "coppice.lock"), nothing[i], strlen(nothing[i]));
        TEST_CHECK_(opens(dir), "%s", nothing[i]);
    }
    place_write(place_in(dir, "coppice.lock"), another, strlen(another));
    refuses(dir, ERR_FOREIGN, 73, "of another store than coppice.lock names");
    place_remove(dir);
}

/* What has a manifest beside it and was never opened is a backup: a server that wrote to it would have it verify no more. A store that has
 * been opened has its lock there, whatever else lies beside it. */
static void test_a_backup(void)
{
    place_make(dir);
    make_store(dir);
    place_write(place_in(dir, "manifest.json"), "{}", 2);
    opens(dir);
    TEST_CHECK(unlink(place_in(dir, "coppice.lock")) == 0);
    refuses(dir, ERR_FOREIGN, 73, "is a backup; 'coppice restore' makes a store of it");
    TEST_CHECK(unlink(place_in(dir, "manifest.json")) == 0);
    opens(dir);
    place_remove(dir);
}

static void test_no_file(void)
{
    place_make(dir);
    TEST_CHECK(mkdir(data_file(), 0700) == 0);
    refuses(dir, ERR_FOREIGN, 73, "data.mdb");
    place_remove(dir);
}

static void test_a_file_for_a_directory(void)
{
    place_make(dir);
    place_write(place_in(dir, "store"), "hello", 5);
    refuses(place_in(dir, "store"), ERR_FOREIGN, 73, "is a file");
    TEST_CHECK(mkfifo(place_in(dir, "pipe"), 0600) == 0);
    refuses(place_in(dir, "pipe"), ERR_FOREIGN, 73, "is a file");
    struct environment_options o = small(place_in(dir, "store/inside"));
    refuses_with(&o, &store_schema, dir, ERR_SYSTEM, 71, "Not a directory");
    place_remove(dir);
}

static void test_a_link_to_nothing(void)
{
    place_make(dir);
    TEST_CHECK(symlink("nowhere", place_in(dir, "link")) == 0);
    struct environment_options o = small(place_in(dir, "link"));
    refuses_with(&o, &store_schema, dir, ERR_SYSTEM, 71, "No such file");
    place_remove(dir);
}

static void test_names(void)
{
    static char name[9000];
    place_make(dir);
    struct environment_options o = small("");
    refuses_with(&o, &store_schema, dir, ERR_INVALID, 70, "is not a name");
    memset(name, 'n', sizeof(name) - 1);
    struct environment e;
    o.dir = name;
    TEST_CHECK(environment_open(&o, &store_schema, &e, text, sizeof(text)) == ERR_INVALID);
    name[4000] = 0; /* too long for the system, not for us */
    o.dir = name;
    TEST_CHECK(environment_open(&o, &store_schema, &e, text, sizeof(text)) == ERR_SYSTEM);
    o = small(place_in(dir, "no/such/parent"));
    refuses_with(&o, &store_schema, dir, ERR_SYSTEM, 71, "No such file");
    place_remove(dir);
}

/* ---- not writable: as a user without rights, because root may do everything ---- */

static int drop_and(void *arg)
{
    void (*check)(void) = *(void (**)(void))arg;
    if (setgid(PLACE_NOBODY) != 0 || setuid(PLACE_NOBODY) != 0)
        return 99;
    int before = test_current_failures_;
    check();
    return test_current_failures_ == before ? 0 : 1;
}

static void as_nobody(void (*check)(void))
{
    if (geteuid() != 0) {
        check();
        return;
    }
    int status = place_apart(drop_and, &check);
    TEST_CHECK_(status == 0, "status %d", status);
}

static void refuses_to_make(void)
{
    refuses(dir, ERR_NOT_WRITABLE, 77, "can't be written");
}

static void refuses_to_make_inside(void)
{
    struct environment_options o = small(place_in(dir, "store"));
    refuses_with(&o, &store_schema, dir, ERR_NOT_WRITABLE, 77, "can't be written");
}

static void refuses_to_look(void)
{
    struct environment_options o = small(dir);
    o.guest = true;
    refuses_with(&o, &store_schema, dir, ERR_NOT_WRITABLE, 77, "can't be read by this user (");
}

static void test_a_directory_of_others(void)
{
    place_make(dir);
    TEST_CHECK(chmod(dir, 0555) == 0);
    as_nobody(refuses_to_make);
    as_nobody(refuses_to_make_inside);
    TEST_CHECK(chmod(dir, 0000) == 0);
    as_nobody(refuses_to_make);
    as_nobody(refuses_to_look);
    TEST_CHECK(chmod(dir, 0700) == 0);
    place_remove(dir);
}

static void test_a_store_of_others(void)
{
    place_make(dir);
    make_store(dir);
    as_nobody(refuses_to_make); /* 0600, root's */
    as_nobody(refuses_to_look);
    TEST_CHECK(chmod(data_file(), 0444) == 0 && chmod(place_in(dir, "lock.mdb"), 0666) == 0 &&
               chmod(place_in(dir, "coppice.lock"), 0666) == 0);
    as_nobody(refuses_to_make); /* it could be read and locked, but not written */
    TEST_CHECK(chmod(data_file(), 0666) == 0 && chmod(place_in(dir, "coppice.lock"), 0444) == 0);
    as_nobody(refuses_to_make);
    TEST_CHECK(chmod(place_in(dir, "coppice.lock"), 0666) == 0 &&
               chmod(place_in(dir, "lock.mdb"), 0444) == 0);
    as_nobody(refuses_to_make);
    TEST_CHECK(opens(dir));
    place_remove(dir);
}

static int on_a_disk_that_can_t_be_written(void *arg)
{
    (void)arg;
    make_store(place_in(dir, "store"));
    TEST_CHECK(mkdir(place_in(dir, "empty"), 0700) == 0);
    if (!place_mount_read_only(dir))
        return 0;
    refuses(place_in(dir, "store"), ERR_NOT_WRITABLE, 77, "is on a disk that can't be written (");
    refuses(place_in(dir, "store"), ERR_NOT_WRITABLE, 77, "Read-only");
    refuses(place_in(dir, "empty"), ERR_NOT_WRITABLE, 77, "mount it for writing");
    struct environment_options o = small(place_in(dir, "missing"));
    refuses_with(&o, &store_schema, dir, ERR_NOT_WRITABLE, 77, "Read-only");
    struct environment e;
    o = small(place_in(dir, "store"));
    o.guest = true; /* writes nothing */
    TEST_CHECK_(environment_open(&o, &store_schema, &e, text, sizeof(text)) == OK, "%s", text);
    environment_close(&e);
    return test_current_failures_ != 0;
}

static void test_a_disk_that_can_t_be_written(void)
{
    place_make(dir);
    apart(on_a_disk_that_can_t_be_written);
    place_remove(dir);
}

/* ---- D2: no room ---- */

static int on_a_small_disk(void *arg)
{
    (void)arg;
    if (!place_mount(dir, 192 << 10)) /* a store takes 256 KiB to begin with */
        return 0;
    refuses(dir, ERR_NO_SPACE, 74, "without room");
    TEST_CHECK(mkdir(place_in(dir, "empty"), 0700) == 0);
    refuses(place_in(dir, "empty"), ERR_NO_SPACE, 74, "without room");
    struct environment_options o = small(place_in(dir, "missing"));
    refuses_with(&o, &store_schema, dir, ERR_NO_SPACE, 74, "without room");
    place_fill(place_in(dir, "empty/filler"));
    TEST_CHECK(rename(place_in(dir, "empty/filler"), place_in(dir, "filler")) == 0);
    /* Not even one page, and LMDB writes its table of readers through a map: without blocks of its own, a SIGBUS. */
    refuses(place_in(dir, "empty"), ERR_NO_SPACE, 74, "without room");
    TEST_CHECK(unlink(place_in(dir, "filler")) == 0);
    o.step = 64 << 10;
    struct environment e;
    o.dir = place_in(dir, "empty");
    enum error error = environment_open(&o, &store_schema, &e, text, sizeof(text));
    TEST_CHECK_(error == OK, "with less to begin with: %s",
                text); /* the same directory, nothing in its way */
    if (error == OK)
        environment_close(&e);
    return test_current_failures_ != 0;
}

static void test_D2_no_room_to_make_one(void)
{
    place_make(dir);
    apart(on_a_small_disk);
    place_remove(dir);
}

static int on_a_full_disk(void *arg)
{
    (void)arg;
    if (!place_mount(dir, 2 << 20))
        return 0;
    TEST_CHECK(mkdir(place_in(dir, "store"), 0700) == 0);
    make_store(place_in(dir, "store"));
    place_fill(place_in(dir, "filler"));
    opens(place_in(dir, "store")); /* to be read and cleaned up */
    return test_current_failures_ != 0;
}

static void test_D2_a_store_on_a_full_disk_opens(void)
{
    place_make(dir);
    apart(on_a_full_disk);
    place_remove(dir);
}

/* ---- D7: in use ---- */

static void test_D7_in_use_by_this_process(void)
{
    struct environment e;
    char other[PLACE_PATH_MAX], name[PLACE_PATH_MAX];
    place_make(dir);
    place_make(other);
    struct environment_options o = small(dir);
    TEST_ASSERT(environment_open(&o, &store_schema, &e, text, sizeof(text)) == OK);
    refuses(dir, ERR_IN_USE, 75, "is in use");
    refuses(dir, ERR_IN_USE, 75, "is in use");
    snprintf(name, sizeof(name), "%s", place_in(other, "link"));
    TEST_CHECK(symlink(dir, name) == 0); /* by another name */
    refuses(name, ERR_IN_USE, 75, "is in use");
    place_remove(other);
    environment_close(&e);
    TEST_CHECK(opens(dir));
    place_remove(dir);
}

static void test_D7_in_use_by_another_process(void)
{
    int fds[2];
    char byte = 0;
    place_make(dir);
    TEST_ASSERT(pipe(fds) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct environment e;
        struct environment_options o = small(dir);
        byte = environment_open(&o, &store_schema, &e, text, sizeof(text)) == OK ? 'y' : 'n';
        (void)!write(fds[1], &byte, 1);
        for (;;)
            pause();
    }
    TEST_ASSERT(read(fds[0], &byte, 1) == 1 && byte == 'y');
    refuses(dir, ERR_IN_USE, 75, "is in use");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    TEST_CHECK(opens(dir)); /* a killed one leaves nothing in the way */
    close(fds[0]);
    close(fds[1]);
    place_remove(dir);
}

/* In the instant before there is a store the lock counts as well. */
static void test_D7_in_use_while_it_is_made(void)
{
    place_make(dir);
    int fd = open(place_in(dir, "coppice.lock"), O_RDWR | O_CREAT, 0600);
    TEST_ASSERT(fd >= 0 && flock(fd, LOCK_EX) == 0);
    refuses(dir, ERR_IN_USE, 75, "is in use");
    close(fd);
    TEST_CHECK(opens(dir));
    place_remove(dir);
}

/* ---- newer ---- */

static void test_a_newer_format(void)
{
    struct environment e;
    struct schema later = store_schema;
    later.format++;
    place_make(dir);
    struct environment_options o = small(dir);
    TEST_ASSERT(environment_open(&o, &later, &e, text, sizeof(text)) == OK);
    environment_close(&e);
    refuses(dir, ERR_NEWER, 78, "a newer one wrote it");
    o.guest = true;
    refuses_with(&o, &store_schema, dir, ERR_NEWER, 78, "");
    o.guest = false;
    TEST_CHECK(environment_open(&o, &later, &e, text, sizeof(text)) == OK);
    environment_close(&e);
    place_remove(dir);
}

/* A table more: an owner makes it, a guest can't, and says so. */
static void test_a_store_of_an_older_program(void)
{
    struct schema_table tables[TABLE_COUNT + 1];
    struct schema newer = store_schema;
    struct environment e;
    TEST_ASSERT(store_schema.tables_count == TABLE_COUNT);
    memcpy(tables, store_schema.tables, sizeof(store_schema.tables[0]) * TABLE_COUNT);
    tables[TABLE_COUNT] = tables[0];
    tables[TABLE_COUNT].name = "another";
    newer.tables = tables;
    newer.tables_count++;
    place_make(dir);
    make_store(dir);
    struct environment_options o = small(dir);
    o.guest = true;
    TEST_CHECK(environment_open(&o, &newer, &e, text, sizeof(text)) == ERR_DAMAGED);
    TEST_CHECK_(strstr(text, "has a table less than this program's stores") != NULL, "%s", text);
    TEST_CHECK(opens(dir)); /* nothing was made */
    o.guest = false;
    TEST_CHECK(environment_open(&o, &newer, &e, text, sizeof(text)) == OK);
    environment_close(&e);
    o.guest = true;
    TEST_CHECK(environment_open(&o, &newer, &e, text, sizeof(text)) == OK);
    environment_close(&e);
    place_remove(dir);
}

/* ---- a commit that lacks its number alone ---- */

static uint64_t newest_commit(void)
{
    struct environment e;
    struct environment_options o = small(dir);
    enum error error = environment_open(&o, &store_schema, &e, text, sizeof(text));
    TEST_ASSERT_(error == OK, "%s", text);
    uint64_t commit = e.format.commit;
    environment_close(&e);
    return commit;
}

/* One more commit, which says it is of this format; its meta page has the number that it replaced. Returns its true number. */
static uint64_t commit_without_a_number(uint32_t format)
{
    enum { PAGE = 4096, NUMBER_AT = 144 };
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    struct meta_format was;
    uint64_t number, less;
    TEST_ASSERT(mdb_env_create(&env) == 0 && mdb_env_set_maxdbs(env, 8) == 0);
    TEST_ASSERT(mdb_env_open(env, dir, 0, 0600) == 0);
    TEST_ASSERT(mdb_txn_begin(env, NULL, 0, &txn) == 0);
    TEST_ASSERT(mdb_dbi_open(txn, "meta", 0, &dbi) == 0 && meta_read_format(txn, dbi, &was) == OK);
    number = mdb_txn_id(txn);
    TEST_ASSERT(meta_write_format(txn, dbi, format, &was.identity) == 0 && meta_write_stamp(txn, dbi) == 0);
    TEST_ASSERT(mdb_txn_commit(txn) == 0);
    mdb_env_close(env);
    TEST_ASSERT(unlink(place_in(dir, "lock.mdb")) == 0);
    int fd = open(data_file(), O_RDWR | O_CLOEXEC);
    off_t at = (off_t)(number % 2 * PAGE + NUMBER_AT);
    TEST_ASSERT(fd >= 0 && pread(fd, &less, sizeof(less), at) == sizeof(less) && less == number);
    less -= 2;
    TEST_ASSERT(pwrite(fd, &less, sizeof(less), at) == sizeof(less));
    close(fd);
    return number;
}

/* It was done, or never said not to be: it gets its number back, with our lock there or without. */
static void test_a_commit_without_its_number(void)
{
    place_make(dir);
    make_store(dir);
    uint64_t number = commit_without_a_number(store_schema.format);
    TEST_CHECK(newest_commit() == number);
    number = commit_without_a_number(store_schema.format);
    TEST_CHECK(unlink(place_in(dir, "coppice.lock")) == 0);
    TEST_CHECK(newest_commit() == number);
    place_remove(dir);
}

/* What that commit says of itself counts, and it is not touched. */
static void test_a_newer_commit_without_its_number(void)
{
    place_make(dir);
    make_store(dir);
    commit_without_a_number(store_schema.format + 1);
    refuses(dir, ERR_NEWER, 78, "a newer one wrote it");
    place_remove(dir);
}

/* ---- D6, S6: damaged is said, never taken for empty ---- */

static void test_S6_no_data_file(void)
{
    place_make(dir);
    make_store(dir);
    TEST_CHECK(rename(data_file(), place_in(dir, "../coppice-test-aside")) == 0);
    refuses(dir, ERR_DAMAGED, 65, "has lost its data.mdb");
    refuses(dir, ERR_DAMAGED, 65, "has lost its data.mdb"); /* and again: nothing was made the first time */
    struct environment_options o = small(dir);
    o.guest = true;
    refuses_with(&o, &store_schema, dir, ERR_DAMAGED, 65, "has lost its data.mdb");
    /* what a server keeps beside its store doesn't make the directory somebody else's */
    place_write(place_in(dir, "operator.token"), "cop_op_", 7);
    refuses(dir, ERR_DAMAGED, 65, "has lost its data.mdb");
    refuses_with(&o, &store_schema, dir, ERR_DAMAGED, 65, "has lost its data.mdb");
    TEST_CHECK(truncate(place_in(dir, "coppice.lock"), 0) == 0); /* of a store that wasn't finished */
    refuses(dir, ERR_FOREIGN, 73, "operator.token");
    refuses_with(&o, &store_schema, dir, ERR_MISSING, 66, "holds no store");
    TEST_CHECK(unlink(place_in(dir, "operator.token")) == 0);
    TEST_CHECK(rename(place_in(dir, "../coppice-test-aside"), data_file()) == 0);
    TEST_CHECK(opens(dir));
    place_remove(dir);
}

static void test_S6_an_empty_data_file(void)
{
    place_make(dir);
    make_store(dir);
    place_write(data_file(), "", 0);
    refuses(dir, ERR_DAMAGED, 65, "an empty data.mdb");
    TEST_CHECK(unlink(place_in(dir, "coppice.lock")) == 0); /* without a lock that names a store, too */
    refuses(dir, ERR_DAMAGED, 65, "an empty data.mdb");
    place_remove(dir);
}

static void test_S6_truncated(void)
{
    size_t size;
    place_make(dir);
    make_store(dir);
    uint8_t *bytes = place_read(data_file(), &size);
    const size_t lengths[] = {1, 100, 4095, 4096, 6000, 8191, 8192, 12288};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        TEST_CASE_("%zu bytes", lengths[i]);
        place_write(data_file(), bytes, lengths[i]);
        struct environment e;
        struct environment_options o = small(dir);
        char *before = place_look(dir);
        enum error error = environment_open(&o, &store_schema, &e, text, sizeof(text));
        char *after = place_look(dir);
        TEST_CHECK_(error == ERR_DAMAGED || error == ERR_FOREIGN, "%s: %s", error_name(error), text);
        TEST_CHECK_(lengths[i] < 8192 || error == ERR_DAMAGED, "%s: %s", error_name(error), text);
        TEST_CHECK(strcmp(before, after) == 0);
        free(before);
        free(after);
    }
    place_write(data_file(), bytes, size);
    TEST_CHECK(opens(dir));
    free(bytes);
    place_remove(dir);
}

/* One flipped bit anywhere in a page that is used: said, or harmless because it is where nothing stands. */
static void test_S6_a_flipped_bit(void)
{
    struct uuid identity, other;
    struct environment e;
    size_t size;
    uint64_t said = 0;
    place_make(dir);
    make_store(dir);
    struct environment_options o = small(dir);
    TEST_ASSERT(environment_open(&o, &store_schema, &e, text, sizeof(text)) == OK);
    TEST_CHECK(environment_identity(&e, &identity) == OK);
    environment_close(&e);
    uint8_t *bytes = place_read(data_file(), &size);
    for (size_t at = 0; at < size && at < 24576; at += 13) {
        place_flip(data_file(), at);
        enum error error = environment_open(&o, &store_schema, &e, text, sizeof(text));
        if (error == OK) {
            TEST_CHECK_(environment_identity(&e, &other) == OK && uuid_equal(&identity, &other), "byte %zu",
                        at);
            environment_close(&e);
        } else {
            said++;
            TEST_CHECK_(error == ERR_DAMAGED || error == ERR_FOREIGN || error == ERR_NEWER,
                        "byte %zu: %s: %s", at, error_name(error), text);
        }
        place_write(data_file(), bytes, size);
    }
    TEST_CHECK_(said > 20, "%llu flips were said", (unsigned long long)said);
    TEST_CHECK(opens(dir));
    free(bytes);
    place_remove(dir);
}

static void test_S6_a_flipped_bit_in_a_row(void)
{
    size_t size;
    place_make(dir);
    make_store(dir);
    uint8_t *bytes = place_read(data_file(), &size);
    uint8_t *row = memmem(bytes, size, "secret", 6);
    TEST_ASSERT(row != NULL);
    place_flip(data_file(), (uint64_t)(row - bytes) + 16); /* in the value behind the key */
    refuses(dir, ERR_DAMAGED, 65, "damaged");
    free(bytes);
    place_remove(dir);
}

/* A lock without a store is what a process leaves that was killed while it made one. */
static void test_what_an_interrupted_making_leaves(void)
{
    place_make(dir);
    place_write(place_in(dir, "coppice.lock"), "", 0);
    TEST_CHECK(opens(dir));
    place_remove(dir);
    place_make(dir);
    place_write(place_in(dir, "coppice.lock"), "", 0);
    TEST_CHECK(mkdir(place_in(dir, "new"), 0700) == 0);
    place_write(place_in(dir, "new/data.mdb"), "half", 4);
    place_write(place_in(dir, "new/lock.mdb"), "", 0);
    TEST_CHECK(opens(dir));
    TEST_CHECK(access(place_in(dir, "new"), F_OK) != 0);
    TEST_CHECK(mkdir(place_in(dir, "new"), 0700) == 0); /* it had been renamed, the folder was still to go */
    TEST_CHECK(opens(dir));
    TEST_CHECK(access(place_in(dir, "new"), F_OK) != 0);
    TEST_CHECK(mkdir(place_in(dir, "new"), 0700) == 0); /* what somebody else put there isn't removed */
    place_write(place_in(dir, "new/letter.txt"), "dear", 4);
    refuses(dir, ERR_SYSTEM, 71, "removing new: Directory not empty");
    TEST_CHECK(unlink(place_in(dir, "new/letter.txt")) == 0 && opens(dir));
    place_remove(dir);
}

/* ---- missing ---- */

static void test_missing(void)
{
    place_make(dir);
    struct environment_options o = small(place_in(dir, "store"));
    o.must_exist = true;
    refuses_with(&o, &store_schema, dir, ERR_MISSING, 66, "doesn't exist");
    o.dir = dir;
    refuses_with(&o, &store_schema, dir, ERR_MISSING, 66, "holds no store");
    place_write(place_in(dir, "coppice.lock"), "", 0);
    refuses_with(&o, &store_schema, dir, ERR_MISSING, 66, "holds no store");
    place_remove(dir);
}

static void test_missing_for_a_guest(void)
{
    place_make(dir);
    struct environment_options o = small(place_in(dir, "store"));
    o.guest = true;
    refuses_with(&o, &store_schema, dir, ERR_MISSING, 66, "doesn't exist");
    o.dir = dir;
    refuses_with(&o, &store_schema, dir, ERR_MISSING, 66, "holds no store");
    place_write(place_in(dir, "letter.txt"), "dear", 4);
    refuses_with(&o, &store_schema, dir, ERR_MISSING, 66, "holds no store");
    place_remove(dir);
}

static void test_damaged_for_a_guest(void)
{
    place_make(dir);
    struct environment_options o = small(dir);
    o.guest = true;
    place_write(data_file(), "", 0);
    refuses_with(&o, &store_schema, dir, ERR_DAMAGED, 65, "");
    place_write(data_file(), "not a store at all\n", 19);
    refuses_with(&o, &store_schema, dir, ERR_FOREIGN, 73, "");
    place_remove(dir);
    place_make(dir);
    make_lmdb(dir, "accounts");
    refuses_with(&o, &store_schema, dir, ERR_FOREIGN, 73, "");
    place_remove(dir);
}

/* ---- options ---- */

static void test_sizes_that_can_t_be(void)
{
    place_make(dir);
    struct environment_options o = small(dir);
    o.step = 4096;
    refuses_with(&o, &store_schema, dir, ERR_INVALID, 70, "65536");
    o = small(dir);
    o.map = 64 << 10;
    refuses_with(&o, &store_schema, dir, ERR_INVALID, 70, "step <= map");
    o = small(dir);
    o.map_max = 512 << 10;
    refuses_with(&o, &store_schema, dir, ERR_INVALID, 70, "map.max");
    o = small(dir);
    o.map_max += 100;
    refuses_with(&o, &store_schema, dir, ERR_INVALID, 70, "multiples of 4096");
    place_remove(dir);
}

/* ---- looking from outside ---- */

static void test_whether_a_store_may_be_there(void)
{
    static char name[5000];
    place_make(dir);
    TEST_CHECK(environment_suits(dir, text, sizeof(text)) == OK && !environment_claimed(dir));
    make_store(dir);
    TEST_CHECK(environment_suits(dir, text, sizeof(text)) == OK && environment_claimed(dir));
    place_remove(dir);
    TEST_CHECK(environment_suits(dir, text, sizeof(text)) == ERR_SYSTEM && strstr(text, "listing it"));
    TEST_CHECK(!environment_claimed(dir));
    place_make(dir);
    place_write(place_in(dir, "letter.txt"), "dear", 4);
    TEST_CHECK(environment_suits(dir, text, sizeof(text)) == ERR_FOREIGN && strstr(text, "letter.txt"));
    place_remove(dir);
    memset(name, '/', sizeof(name) - 1); /* the root, by so long a name that the lock's would be cut */
    TEST_CHECK(!environment_claimed(name));
}

/* A directory that is there and empty, or isn't there at all, is used. */
static void test_good_directories(void)
{
    place_make(dir);
    TEST_CHECK(opens(dir));
    TEST_CHECK(opens(place_in(dir, "")));
    place_remove(dir);
    place_make(dir);
    TEST_CHECK(opens(place_in(dir, "store")));
    TEST_CHECK(mkdir(place_in(dir, "mounted"), 0700) == 0 &&
               mkdir(place_in(dir, "mounted/lost+found"), 0700) == 0);
    TEST_CHECK(opens(place_in(dir, "mounted")));
    TEST_CHECK(symlink("mounted", place_in(dir, "link")) == 0);
    TEST_CHECK(opens(place_in(dir, "link")));
    place_remove(dir);
}

static void test_statuses(void)
{
    TEST_CHECK(environment_exit_status(ERR_IN_USE) == 75);
    TEST_CHECK(environment_exit_status(ERR_FOREIGN) == 73);
    TEST_CHECK(environment_exit_status(ERR_NOT_WRITABLE) == 77);
    TEST_CHECK(environment_exit_status(ERR_NO_SPACE) == 74);
    TEST_CHECK(environment_exit_status(ERR_NEWER) == 78);
    TEST_CHECK(environment_exit_status(ERR_DAMAGED) == 65);
    TEST_CHECK(environment_exit_status(ERR_MISSING) == 66);
    TEST_CHECK(environment_exit_status(ERR_IO) == 74);
    TEST_CHECK(environment_exit_status(ERR_MEMORY) == 71);
    TEST_CHECK(environment_exit_status(ERR_SYSTEM) == 71);
}

TEST_LIST
= {{"other files", test_other_files},
   {"another program's data file", test_another_program_s_data_file},
   {"another program's LMDB", test_another_program_s_lmdb},
   {"a table with our name", test_a_table_with_our_name},
   {"what a lock names", test_what_a_lock_names},
   {"a backup", test_a_backup},
   {"data.mdb is no file", test_no_file},
   {"a file for a directory", test_a_file_for_a_directory},
   {"a link to nothing", test_a_link_to_nothing},
   {"names", test_names},
   {"a directory of others", test_a_directory_of_others},
   {"a store of others", test_a_store_of_others},
   {"a disk that can't be written", test_a_disk_that_can_t_be_written},
   {"D2 no room to make one", test_D2_no_room_to_make_one},
   {"D2 a store on a full disk opens", test_D2_a_store_on_a_full_disk_opens},
   {"D7 in use by this process", test_D7_in_use_by_this_process},
   {"D7 in use by another process", test_D7_in_use_by_another_process},
   {"D7 in use while it is made", test_D7_in_use_while_it_is_made},
   {"a newer format", test_a_newer_format},
   {"a store of an older program", test_a_store_of_an_older_program},
   {"a commit without its number", test_a_commit_without_its_number},
   {"a newer commit without its number", test_a_newer_commit_without_its_number},
   {"whether a store may be there", test_whether_a_store_may_be_there},
   {"S6 D6 no data file", test_S6_no_data_file},
   {"S6 D6 an empty data file", test_S6_an_empty_data_file},
   {"S6 D6 truncated", test_S6_truncated},
   {"S6 D6 a flipped bit", test_S6_a_flipped_bit},
   {"S6 D6 a flipped bit in a row", test_S6_a_flipped_bit_in_a_row},
   {"what an interrupted making leaves", test_what_an_interrupted_making_leaves},
   {"missing", test_missing},
   {"missing for a guest", test_missing_for_a_guest},
   {"damaged for a guest", test_damaged_for_a_guest},
   {"sizes that can't be", test_sizes_that_can_t_be},
   {"good directories", test_good_directories},
   {"statuses", test_statuses},
   {NULL, NULL}};
