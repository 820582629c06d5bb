/* The environment: what it makes, what it gives to the next process, how it grows, and what happens when there is no more
 * room: D2 (disk full), D3 (map full), L3, L4, L6. */
#define _GNU_SOURCE
#include "acutest.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/batch.h"
#include "store/outbox.h"
#include "store/view.h"
#include "tests/store/place.h"
#include "tests/support/parcel.h"

#define KIB 1024ull
#define MIB (1024ull * KIB)

static char dir[PLACE_PATH_MAX];
static char text[1024];
static struct environment environment;

static struct environment_options small(void)
{
    return (struct environment_options){.dir = dir,
                                        .map = 1 * MIB,
                                        .map_max = 8 * MIB,
                                        .step = 256 * KIB,
                                        .reserve = 64 * KIB,
                                        .birth = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};
}

static void open_small(void)
{
    struct environment_options o = small();
    enum error e = environment_open(&o, &store_schema, &environment, text, sizeof(text));
    TEST_ASSERT_(e == OK, "%s: %s", error_name(e), text);
}

static struct stat stat_of(const char *name)
{
    struct stat st;
    TEST_ASSERT_(stat(place_in(dir, name), &st) == 0, "%s: %s", name, strerror(errno));
    return st;
}

/* ---- what it makes ---- */

static void test_what_is_made(void)
{
    struct uuid identity;
    char id[UUID_TEXT_SIZE], line[80];
    size_t size;
    place_make(dir);
    open_small();
    TEST_CHECK(stat_of("data.mdb").st_mode == (S_IFREG | 0600));
    TEST_CHECK(stat_of("lock.mdb").st_mode == (S_IFREG | 0600));
    TEST_CHECK(stat_of("coppice.lock").st_mode == (S_IFREG | 0600));
    TEST_CHECK(access(place_in(dir, "new"), F_OK) != 0);
    TEST_CHECK(environment_identity(&environment, &identity) == OK);
    uuid_format(&identity, id);
    snprintf(line, sizeof(line), "coppice store %s\n", id);
    uint8_t *says = place_read(place_in(dir, "coppice.lock"), &size);
    TEST_CHECK_(size == strlen(line) && memcmp(says, line, size) == 0, "%.*s", (int)size, (char *)says);
    free(says);
    TEST_CHECK(uuid_version(&identity) == 4);
    environment_close(&environment);
    place_remove(dir);
}

/* L6: the first step has its blocks, not only its size; and so has everything that is written through a map. */
/* What a map can't be is refused, before anything is made. */
static void test_sizes_that_cannot_be(void)
{
    static const struct {
        uint64_t map, map_max, step;
    } wrong[] = {
        {1 * MIB, 8 * MIB, 32 * KIB},        {128 * KIB, 8 * MIB, 256 * KIB},
        {1 * MIB, 512 * KIB, 256 * KIB},     {1 * MIB, 8 * MIB, 256 * KIB + 100},
        {1 * MIB + 100, 8 * MIB, 256 * KIB},
    };
    place_make(dir);
    char *before = place_look(dir);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct environment_options o = small();
        o.map = wrong[i].map;
        o.map_max = wrong[i].map_max;
        o.step = wrong[i].step;
        TEST_CHECK(environment_open(&o, &store_schema, &environment, text, sizeof(text)) == ERR_INVALID);
        TEST_CHECK_(strstr(text, "steps are at least 65536") != NULL, "%s", text);
    }
    char *after = place_look(dir);
    TEST_CHECK(strcmp(before, after) == 0);
    free(before);
    free(after);
    place_remove(dir);
}

/* The sentence ends where its room does. */
static void test_a_short_place_for_the_sentence(void)
{
    char little[8] = "";
    struct environment_options o = small();
    place_make(dir);
    o.step = 1;
    TEST_CHECK(environment_open(&o, &store_schema, &environment, little, sizeof(little)) == ERR_INVALID);
    TEST_CHECK_(little[0] == '\'' && strlen(little) == sizeof(little) - 1, "%s", little);
    place_remove(dir);
}

static void test_L6_allocated_ahead(void)
{
    place_make(dir);
    open_small();
    struct stat data = stat_of("data.mdb"), readers = stat_of("lock.mdb");
    TEST_CHECK_(data.st_size == 256 * 1024, "%lld", (long long)data.st_size);
    TEST_CHECK_(data.st_blocks * 512 >= data.st_size, "%lld blocks", (long long)data.st_blocks);
    TEST_CHECK_(readers.st_blocks * 512 >= readers.st_size, "%lld blocks for %lld bytes",
                (long long)readers.st_blocks, (long long)readers.st_size);
    TEST_CHECK(environment.allocated == 256 * KIB && !environment.tight);
    environment_close(&environment);
    place_remove(dir);
}

static void test_birth_decides(void)
{
    struct uuid first, again, other;
    place_make(dir);
    open_small();
    TEST_CHECK(environment_identity(&environment, &first) == OK);
    environment_close(&environment);
    place_remove(dir);
    open_small(); /* another store, of the same birth */
    TEST_CHECK(environment_identity(&environment, &again) == OK);
    TEST_CHECK(uuid_equal(&first, &again));
    environment_close(&environment);
    place_remove(dir);
    struct environment_options o = small();
    o.birth[3] ^= 1;
    TEST_ASSERT(environment_open(&o, &store_schema, &environment, text, sizeof(text)) == OK);
    TEST_CHECK(environment_identity(&environment, &other) == OK);
    TEST_CHECK(!uuid_equal(&first, &other));
    environment_close(&environment);
    place_remove(dir);
}

/* Opening and closing a store that is there changes not a byte of it, whatever birth it is opened with. */
static void test_opened_again(void)
{
    struct uuid first, again;
    place_make(dir);
    open_small();
    TEST_CHECK(environment_identity(&environment, &first) == OK);
    environment_close(&environment);
    size_t size, size_again;
    uint8_t *before = place_read(place_in(dir, "data.mdb"), &size);
    struct environment_options o = small();
    o.birth[0] = 99;
    o.must_exist = true;
    TEST_ASSERT(environment_open(&o, &store_schema, &environment, text, sizeof(text)) == OK);
    TEST_CHECK(environment_identity(&environment, &again) == OK);
    TEST_CHECK(uuid_equal(&first, &again));
    environment_close(&environment);
    uint8_t *after = place_read(place_in(dir, "data.mdb"), &size_again);
    TEST_CHECK(size == size_again && memcmp(before, after, size) == 0);
    free(before);
    free(after);
    place_remove(dir);
}

static void test_L3_flags(void)
{
    unsigned flags;
    place_make(dir);
    open_small();
    TEST_CHECK(mdb_env_get_flags(environment.mdb, &flags) == 0);
    TEST_CHECK_(flags == MDB_NOTLS, "%x", flags);
    environment_close(&environment);
    place_remove(dir);
}

/* Any program that knows LMDB 0.9 finds our tables by their names. */
static void test_others_can_read_it(void)
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    MDB_stat stat;
    place_make(dir);
    open_small();
    environment_close(&environment);
    TEST_ASSERT(mdb_env_create(&env) == 0 && mdb_env_set_maxdbs(env, 64) == 0);
    TEST_ASSERT(mdb_env_open(env, dir, MDB_RDONLY, 0600) == 0);
    TEST_ASSERT(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn) == 0);
    for (uint32_t i = 0; i < store_schema.tables_count; i++)
        TEST_CHECK_(mdb_dbi_open(txn, store_schema.tables[i].name, 0, &dbi) == 0, "%s",
                    store_schema.tables[i].name);
    TEST_CHECK(mdb_dbi_open(txn, "meta", 0, &dbi) == 0 && mdb_stat(txn, dbi, &stat) == 0 &&
               stat.ms_entries >= 3);
    mdb_txn_abort(txn);
    mdb_env_close(env);
    place_remove(dir);
}

static void test_others_tools_can_read_it(void)
{
    char command[PLACE_PATH_MAX + 64];
    if (system("command -v mdb_stat mdb_dump >/dev/null") != 0) {
        printf("left out: mdb_stat and mdb_dump are not on this machine\n");
        return;
    }
    place_make(dir);
    open_small(); /* beside a living owner, too */
    snprintf(command, sizeof(command), "mdb_stat -e -a %s | grep -q 'Status of audits'", dir);
    TEST_CHECK(system(command) == 0);
    snprintf(command, sizeof(command), "mdb_dump -a %s | grep -q '^database=meta'", dir);
    TEST_CHECK(system(command) == 0);
    environment_close(&environment);
    place_remove(dir);
}

static void test_a_guest_beside_the_owner(void)
{
    struct environment guest;
    struct environment_options o = small();
    place_make(dir);
    open_small();
    o.guest = true;
    size_t size, size_again;
    uint8_t *before = place_read(place_in(dir, "data.mdb"), &size);
    TEST_CHECK_(environment_open(&o, &store_schema, &guest, text, sizeof(text)) == OK, "%s", text);
    struct uuid ours, theirs;
    TEST_CHECK(environment_identity(&environment, &ours) == OK &&
               environment_identity(&guest, &theirs) == OK);
    TEST_CHECK(uuid_equal(&ours, &theirs));
    struct environment_stats stats;
    MDB_txn *txn;
    TEST_ASSERT(mdb_txn_begin(guest.mdb, NULL, MDB_RDONLY, &txn) == 0);
    TEST_CHECK(environment_stats(&guest, txn, &stats) == OK);
    TEST_CHECK(stats.last_txn == environment.format.commit && stats.oldest_txn == stats.last_txn &&
               stats.file == 256 * KIB);
    mdb_txn_abort(txn);
    environment_close(&guest);
    environment_close(&environment);
    uint8_t *after = place_read(place_in(dir, "data.mdb"), &size_again);
    TEST_CHECK(size == size_again && memcmp(before, after, size) == 0);
    free(before);
    free(after);
    place_remove(dir);
}

/* ---- growing ---- */

static void test_D3_the_map_doubles_up_to_its_limit(void)
{
    MDB_envinfo info;
    place_make(dir);
    open_small();
    for (uint64_t map = 1 * MIB; map < 8 * MIB; map *= 2) {
        TEST_CHECK(environment.map == map);
        TEST_CHECK(mdb_env_info(environment.mdb, &info) == 0 && info.me_mapsize == map);
        TEST_CHECK(environment_can_grow(&environment));
        TEST_CHECK(environment_grow(&environment) == OK);
    }
    TEST_CHECK(environment.map == 8 * MIB && !environment_can_grow(&environment));
    TEST_CHECK(environment_grow(&environment) == ERR_NO_SPACE);
    TEST_CHECK(environment.map == 8 * MIB);
    environment_close(&environment);
    place_remove(dir);
}

static void test_D3_the_last_doubling_is_shorter(void)
{
    struct environment_options o = small();
    place_make(dir);
    o.map_max = 3 * MIB;
    TEST_ASSERT(environment_open(&o, &store_schema, &environment, text, sizeof(text)) == OK);
    TEST_CHECK(environment_grow(&environment) == OK && environment.map == 2 * MIB);
    TEST_CHECK(environment_grow(&environment) == OK && environment.map == 3 * MIB);
    TEST_CHECK(environment_grow(&environment) == ERR_NO_SPACE);
    environment_close(&environment);
    place_remove(dir);
}

/* One commit that goes beyond all that was allocated: what it uses has blocks, and more are allocated behind it. */
static void test_L6_a_commit_beyond_what_is_allocated(void)
{
    static uint8_t large[512 * KIB];
    MDB_val key = {.mv_size = 5, .mv_data = (char[]){"large"}},
            value = {.mv_size = sizeof(large), .mv_data = large};
    MDB_txn *txn;
    place_make(dir);
    open_small();
    TEST_CHECK(environment_ahead(&environment) > 0);
    TEST_ASSERT(mdb_txn_begin(environment.mdb, NULL, 0, &txn) == 0);
    TEST_ASSERT(mdb_put(txn, environment.tables[TABLE_META], &key, &value, 0) == 0);
    TEST_ASSERT(mdb_txn_commit(txn) == 0);
    uint64_t used = environment_used(&environment);
    TEST_CHECK(used > environment.allocated && environment_ahead(&environment) == 0);
    TEST_CHECK(environment_allocate(&environment, 0) == OK);
    TEST_CHECK(environment.allocated >= used + 128 * KIB &&
               environment_ahead(&environment) == environment.allocated - used);
    TEST_CHECK((uint64_t)stat_of("data.mdb").st_size == environment.allocated);
    environment_close(&environment);
    place_remove(dir);
}

/* ---- a store with parcels in it ---- */

static struct store *store;
static uint8_t body[PARCEL_BODY_MAX];
static uint64_t clock_us = 1000000;

static void open_store(const struct environment_options *o)
{
    struct store_options options = {.environment = *o, .schema = &parcel_store_schema, .ledger_max = 65536};
    parcel_install();
    enum error e = store_open(&options, &store, text, sizeof(text));
    TEST_ASSERT_(e == OK, "%s: %s", error_name(e), text);
}

static struct uuid id_of(uint32_t number)
{
    struct uuid id = {.bytes = {1, 2, 3, 4}};
    memcpy(id.bytes + 12, &(uint32_t){__builtin_bswap32(number)}, 4);
    return id;
}

static enum error put(uint32_t number, uint32_t size)
{
    struct parcel_send send = {.id = id_of(number), .scope = span_text("test"), .body = span_of(body, size)};
    char key[16];
    snprintf(key, sizeof(key), "k%u", number);
    send.key = span_text(key);
    memset(body, (int)number, size);
    return batch_one(store, &parcel_send_class, ++clock_us, &send, NULL);
}

static enum error move(uint32_t number, uint8_t event)
{
    struct parcel_move command = {.id = id_of(number), .event = event};
    return batch_one(store, &parcel_move_class, ++clock_us, &command, NULL);
}

static enum error drop(uint32_t number)
{
    struct parcel_drop command = {.id = id_of(number)};
    return batch_one(store, &parcel_drop_class, ++clock_us, &command, NULL);
}

/* Is it there, with all its bytes? */
static enum error there(uint32_t number, uint32_t size)
{
    struct uuid id = id_of(number);
    struct key key = key_of_uuid(&id);
    struct parcel parcel;
    struct view *view = view_open_outside(store, 0);
    if (!view)
        return ERR_UNAVAILABLE;
    enum error e = txn_read(&view->txn, TABLE_PARCELS, key_span(&key), &parcel);
    memset(body, (int)number, size);
    if (e == OK && !span_equal(parcel.body, span_of(body, size)))
        e = ERR_DAMAGED;
    view_close(view);
    return e;
}

static uint64_t rows(uint32_t table)
{
    struct view *view = view_open_outside(store, 0);
    TEST_ASSERT(view != NULL);
    uint64_t count = txn_rows(&view->txn, table);
    view_close(view);
    return count;
}

enum { ENOUGH = 20000 };

/* Puts parcels from `from` on until one is refused; its number. */
static uint32_t put_until_refused(uint32_t from, uint32_t size, enum error expected)
{
    for (uint32_t i = from; i < from + ENOUGH; i++) {
        enum error e = put(i, size);
        if (e == OK)
            continue;
        TEST_CHECK_(e == expected, "%s after %u: %s", error_name(e), i, store->failure);
        return i;
    }
    TEST_CHECK_(false, "there was always room");
    return from + ENOUGH;
}

/* All that were answered are there; the one that was refused has left nothing. */
static void check_all(uint32_t count, uint32_t size)
{
    for (uint32_t i = 0; i < count; i++)
        TEST_CHECK_(there(i, size) == OK, "parcel %u: %s", i, error_name(there(i, size)));
    TEST_CHECK(there(count, size) == ERR_NOT_FOUND);
    TEST_CHECK(rows(TABLE_PARCELS) == count && rows(TABLE_LEDGER) == count);
}

/* The file is always allocated ahead of its use, and its blocks are there. */
static void test_L6_the_file_grows_in_steps(void)
{
    struct environment_options o = small();
    struct environment_stats stats;
    uint32_t steps = 0;
    uint64_t last = 0;
    place_make(dir);
    open_store(&o);
    for (uint32_t i = 0; i < 400; i++) {
        TEST_CHECK(put(i, 4000) == OK);
        struct stat data = stat_of("data.mdb");
        TEST_CHECK(environment_stats(&store->environment, NULL, &stats) == OK);
        TEST_CHECK_(stats.allocated >= stats.used && (uint64_t)data.st_size >= stats.allocated,
                    "%llu of %llu used, file %lld", (unsigned long long)stats.used,
                    (unsigned long long)stats.allocated, (long long)data.st_size);
        TEST_CHECK_(data.st_blocks * 512 >= data.st_size, "%lld blocks for %lld bytes",
                    (long long)data.st_blocks, (long long)data.st_size);
        steps += stats.allocated != last;
        last = stats.allocated;
    }
    TEST_CHECK_(steps > 4 && steps < 40, "%u steps", steps);
    TEST_CHECK(store_state(store) == STORE_OPEN);
    store_close(store);
    place_remove(dir);
}

/* Zeros go ahead of slow growth: once for each 128 KiB, and not at all ahead of fast growth, however often it is looked. */
static void test_zeros_ahead(void)
{
    struct environment_options o = {.dir = dir};
    place_make(dir);
    open_store(&o);
    struct environment *e = &store->environment;
    TEST_CHECK(put(0, 100) == OK);
    uint64_t zeroed = e->zeroed;
    TEST_CHECK(zeroed > e->used);
    for (int i = 0; i < 10; i++)
        TEST_CHECK(environment_allocate(e, 0) == OK && e->zeroed == zeroed);
    for (uint32_t i = 1; i < 40; i++) { /* several pages each: each growth is slow */
        zeroed = e->zeroed;
        TEST_CHECK(put(i, 20000) == OK);
        TEST_CHECK(e->zeroed >= e->used && e->zeroed <= e->used + 2 * (128 << 10));
        TEST_CHECK((e->zeroed - zeroed) % (128 << 10) == 0 || zeroed < e->used);
    }
    static struct parcel_send sends[16];
    static uint8_t bytes[16][20400];
    struct batch_item items[16];
    for (uint32_t round = 0; round < 4; round++) { /* 320 KB at a time: that isn't */
        zeroed = e->zeroed;
        for (uint32_t i = 0; i < 16; i++) {
            sends[i] = (struct parcel_send){.id.bytes = {2, (uint8_t)round, (uint8_t)i},
                                            .body = span_of(body, 20000)};
            size_t size = record_encode(parcel_send_class.record, &sends[i], bytes[i], sizeof(bytes[i]));
            items[i] = (struct batch_item){
                .class = &parcel_send_class, .at_us = 1, .bytes = span_of(bytes[i], size)};
        }
        TEST_CHECK(batch_run(store, items, 16) == OK);
        TEST_CHECK(environment_allocate(e, 100) == OK && e->zeroed == zeroed);
    }
    store_close(store);
    place_remove(dir);
}

/* How far the oldest reader is behind, in commits. */
static void test_the_age_of_the_oldest_reader(void)
{
    struct environment_options o = small();
    struct environment_stats stats;
    place_make(dir);
    open_store(&o);
    TEST_CHECK(put(0, 100) == OK);
    TEST_CHECK(environment_stats(&store->environment, NULL, &stats) == OK);
    TEST_CHECK(stats.oldest_txn == stats.last_txn);
    struct view *view = view_open_outside(store, 0);
    TEST_ASSERT(view != NULL);
    for (uint32_t i = 1; i < 4; i++)
        TEST_CHECK(put(i, 100) == OK);
    TEST_CHECK(environment_stats(&store->environment, NULL, &stats) == OK);
    TEST_CHECK_(stats.last_txn - stats.oldest_txn == 3, "%llu",
                (unsigned long long)(stats.last_txn - stats.oldest_txn));
    view_close(view);
    TEST_CHECK(environment_stats(&store->environment, NULL, &stats) == OK);
    TEST_CHECK(stats.oldest_txn == stats.last_txn);
    store_close(store);
    place_remove(dir);
}

static void test_D3_a_small_map_grows_by_itself(void)
{
    struct environment_options o = small();
    o.map = 256 * KIB;
    o.map_max = 64 * MIB;
    place_make(dir);
    open_store(&o);
    for (uint32_t i = 0; i < 2000; i++)
        TEST_CHECK_(put(i, 3000) == OK, "parcel %u", i);
    TEST_CHECK(atomic_load(&store->grown) >= 4);
    TEST_CHECK(store->environment.map > 6 * MIB && store->environment.map <= 64 * MIB);
    check_all(2000, 3000);
    store_close(store);
    open_store(&o); /* with the options of before: the map is as large as the file needs */
    check_all(2000, 3000);
    store_close(store);
    place_remove(dir);
}

/* One batch that needs several doublings: it is applied once, whole. */
static void test_D3_a_batch_is_replayed(void)
{
    static struct batch_item items[BATCH_MAX];
    static uint8_t encoded[BATCH_MAX][5000];
    struct environment_options o = small();
    o.map = 256 * KIB;
    o.map_max = 64 * MIB;
    place_make(dir);
    open_store(&o);
    memset(body, 7, 4000);
    for (uint32_t i = 0; i < BATCH_MAX; i++) {
        struct parcel_send send = {.id = id_of(i), .scope = span_text("test"), .body = span_of(body, 4000)};
        size_t size = record_encode(&parcel_send_record, &send, encoded[i], sizeof(encoded[i]));
        items[i] =
            (struct batch_item){.class = &parcel_send_class, .at_us = 5, .bytes = span_of(encoded[i], size)};
    }
    TEST_CHECK(batch_run(store, items, BATCH_MAX) == OK);
    for (uint32_t i = 0; i < BATCH_MAX; i++)
        TEST_CHECK_(items[i].answer.error == OK, "%u: %s", i, error_name(items[i].answer.error));
    TEST_CHECK(atomic_load(&store->grown) >= 3);
    TEST_CHECK(rows(TABLE_PARCELS) == BATCH_MAX && rows(TABLE_EVENTS) == BATCH_MAX &&
               rows(TABLE_OUTBOX) == BATCH_MAX);
    TEST_CHECK(atomic_load(&store->commits) == 1);
    store_close(store);
    place_remove(dir);
}

/* D3: at the end of the map writes are refused, reads and clean-up go on, and what was cleaned up is room again. */
static void test_D3_the_end_of_the_map(void)
{
    struct environment_options o = small();
    o.map_max = 4 * MIB;
    o.reserve = 512 * KIB;
    place_make(dir);
    open_store(&o);
    for (uint32_t i = 0; i < 100; i++)
        TEST_CHECK(put(i, 2000) == OK && move(i, PARCEL_LOSE) == OK);
    uint32_t count = put_until_refused(100, 2000, ERR_NO_SPACE);
    TEST_CHECK_(count > 300, "%u", count);
    TEST_CHECK(store_state(store) == STORE_TIGHT);
    TEST_CHECK(put(count, 2000) == ERR_NO_SPACE);
    check_all(count, 2000);
    for (uint32_t i = 0; i < 100; i++)
        TEST_CHECK_(drop(i) == OK, "%u", i);
    TEST_CHECK(rows(TABLE_PARCELS) == count - 100);
    for (uint32_t i = 0; i < 20; i++) /* in their place */
        TEST_CHECK_(put(count + i, 2000) == OK, "%u", i);
    store_close(store);
    open_store(&o);
    TEST_CHECK(there(count + 19, 2000) == OK && there(count - 1, 2000) == OK &&
               there(99, 2000) == ERR_NOT_FOUND);
    store_close(store);
    place_remove(dir);
}

/* A full store can be emptied altogether. */
static void test_D3_a_full_store_can_be_emptied(void)
{
    struct environment_options o = small();
    o.map_max = 2 * MIB;
    o.reserve = 256 * KIB;
    place_make(dir);
    open_store(&o);
    uint32_t count = 0;
    while (count < ENOUGH && put(count, 500) == OK && move(count, PARCEL_LOSE) == OK)
        count++;
    TEST_CHECK(count > 100 && count < ENOUGH);
    for (uint32_t i = 0; i < count; i++)
        TEST_CHECK_(drop(i) == OK, "%u of %u", i, count);
    TEST_CHECK(rows(TABLE_PARCELS) <= 1 && rows(TABLE_EVENTS) <= 1);
    store_close(store);
    place_remove(dir);
}

/* ---- D2: a disk that is full while the store runs ---- */

static int on_a_disk_that_fills(void *arg)
{
    (void)arg;
    if (!place_mount(dir, 8 * MIB))
        return 0;
    char mounted[PLACE_PATH_MAX];
    snprintf(mounted, sizeof(mounted), "%s", dir);
    TEST_CHECK(mkdir(place_in(dir, "store"), 0700) == 0);
    struct environment_options o = small();
    o.dir = place_in(dir, "store");
    o.map = o.map_max = 32 * MIB;
    o.reserve = 128 * KIB;
    open_store(&o);
    for (uint32_t i = 0; i < 100; i++)
        TEST_CHECK(put(i, 2000) == OK && move(i, PARCEL_LOSE) == OK);
    place_fill(place_in(mounted, "filler"));
    uint32_t count = put_until_refused(100, 2000, ERR_NO_SPACE);
    TEST_CHECK(store_state(store) == STORE_TIGHT);
    TEST_CHECK(put(count, 2000) == ERR_NO_SPACE); /* and goes on being refused */
    check_all(count, 2000);                       /* reading works */
    for (uint32_t i = 0; i < 10; i++)
        TEST_CHECK_(drop(i) == OK, "clean-up %u", i);
    TEST_CHECK(there(9, 2000) == ERR_NOT_FOUND && there(10, 2000) == OK);
    TEST_CHECK(unlink(place_in(mounted, "filler")) == 0);
    TEST_CHECK_(put(count, 2000) == OK, "there is room again, and nobody opened it anew");
    TEST_CHECK(store_state(store) == STORE_OPEN);
    for (uint32_t i = 1; i < 500; i++)
        TEST_CHECK_(put(count + i, 2000) == OK, "%u", i);
    store_close(store);
    open_store(&o);
    TEST_CHECK(there(count + 499, 2000) == OK && there(9, 2000) == ERR_NOT_FOUND);
    store_close(store);
    return test_current_failures_ != 0;
}

static void test_D2_a_disk_that_fills(void)
{
    place_make(dir);
    int status = place_apart(on_a_disk_that_fills, NULL);
    TEST_CHECK_(status == 0, "status %d", status);
    place_remove(dir);
}

/* The same without any clean-up in between: room alone is enough. */
static int on_a_disk_that_gets_room(void *arg)
{
    (void)arg;
    if (!place_mount(dir, 4 * MIB))
        return 0;
    char mounted[PLACE_PATH_MAX];
    snprintf(mounted, sizeof(mounted), "%s", dir);
    TEST_CHECK(mkdir(place_in(dir, "store"), 0700) == 0);
    struct environment_options o = small();
    o.dir = place_in(dir, "store");
    o.map = o.map_max = 32 * MIB;
    o.reserve = 256 * KIB;
    open_store(&o);
    uint32_t count = 0;
    for (int round = 0; round < 3; round++) {
        place_fill(place_in(mounted, "filler"));
        count = put_until_refused(count, 1000, ERR_NO_SPACE);
        TEST_CHECK(unlink(place_in(mounted, "filler")) == 0);
        TEST_CHECK_(put(count, 1000) == OK, "round %d", round);
        count++;
    }
    check_all(count, 1000);
    store_close(store);
    return test_current_failures_ != 0;
}

static void test_D2_room_alone_is_enough(void)
{
    place_make(dir);
    int status = place_apart(on_a_disk_that_gets_room, NULL);
    TEST_CHECK_(status == 0, "status %d", status);
    place_remove(dir);
}

/* What an open view still sees is on the list of free pages, but can't be used again: it isn't room. */
static int on_a_full_disk_with_a_view(void *arg)
{
    (void)arg;
    if (!place_mount(dir, 6 * MIB))
        return 0;
    char mounted[PLACE_PATH_MAX];
    snprintf(mounted, sizeof(mounted), "%s", dir);
    TEST_CHECK(mkdir(place_in(dir, "store"), 0700) == 0);
    struct environment_options o = small();
    o.dir = place_in(dir, "store");
    o.map = o.map_max = 32 * MIB;
    o.reserve = 512 * KIB;
    open_store(&o);
    for (uint32_t i = 0; i < 400; i++)
        TEST_CHECK(put(i, 2000) == OK);
    for (uint32_t i = 0; i < 200; i++)
        TEST_CHECK(move(i, PARCEL_LOSE) == OK && drop(i) == OK);
    struct view *view = view_open_outside(store, 2);
    TEST_ASSERT(view != NULL);
    place_fill(place_in(mounted, "filler"));
    for (uint32_t i = 200; i < 400 && store_state(store) != STORE_FAILED; i++) {
        /* each gives pages back that the view holds on to */
        enum error e = move(i, PARCEL_SEND);
        TEST_CHECK_(e == OK || e == ERR_NO_SPACE, "%u: %s: %s", i, error_name(e), store->failure);
    }
    TEST_CHECK(put(1000, 2000) == ERR_NO_SPACE);
    TEST_CHECK(store_state(store) == STORE_TIGHT);
    view_close(view);
    TEST_CHECK(unlink(place_in(mounted, "filler")) == 0);
    TEST_CHECK(put(1001, 2000) == OK);
    store_close(store);
    open_store(&o);
    TEST_CHECK(there(1001, 2000) == OK && there(1000, 2000) == ERR_NOT_FOUND && there(399, 2000) == OK);
    store_close(store);
    return test_current_failures_ != 0;
}

static void test_D2_a_view_on_a_full_disk(void)
{
    place_make(dir);
    int status = place_apart(on_a_full_disk_with_a_view, NULL);
    TEST_CHECK_(status == 0, "status %d", status);
    place_remove(dir);
}

/* A batch that doesn't fit on the disk is refused whole, and the next one that fits is taken. */
static int on_a_disk_for_less(void *arg)
{
    static struct batch_item items[200];
    static uint8_t encoded[200][31000];
    (void)arg;
    if (!place_mount(dir, 3 * MIB))
        return 0;
    struct environment_options o = small();
    TEST_CHECK(mkdir(place_in(dir, "store"), 0700) == 0);
    o.dir = place_in(dir, "store");
    o.map = o.map_max = 32 * MIB;
    open_store(&o);
    TEST_CHECK(put(5000, 100) == OK);
    memset(body, 7, 30000);
    for (uint32_t i = 0; i < 200; i++) { /* 6 MB */
        struct parcel_send send = {.id = id_of(i), .scope = span_text("test"), .body = span_of(body, 30000)};
        size_t size = record_encode(&parcel_send_record, &send, encoded[i], sizeof(encoded[i]));
        items[i] =
            (struct batch_item){.class = &parcel_send_class, .at_us = 5, .bytes = span_of(encoded[i], size)};
    }
    enum error e = batch_run(store, items, 200); /* refused as a whole, or each of them */
    TEST_CHECK_(e == ERR_NO_SPACE || e == OK, "%s: %s", error_name(e), store->failure);
    for (uint32_t i = 0; e == OK && i < 200; i++)
        TEST_CHECK_(items[i].answer.error == ERR_NO_SPACE, "%u: %s", i, error_name(items[i].answer.error));
    TEST_CHECK(store_state(store) != STORE_FAILED);
    TEST_CHECK(rows(TABLE_PARCELS) == 1 && rows(TABLE_EVENTS) == 1);
    TEST_CHECK(there(5000, 100) == OK);
    TEST_CHECK_(put(5001, 100) == OK, "a small one");
    store_close(store);
    open_store(&o);
    TEST_CHECK(there(5000, 100) == OK && there(5001, 100) == OK);
    store_close(store);
    return test_current_failures_ != 0;
}

static void test_D2_a_batch_that_does_not_fit(void)
{
    place_make(dir);
    int status = place_apart(on_a_disk_for_less, NULL);
    TEST_CHECK_(status == 0, "status %d", status);
    place_remove(dir);
}

/* D7: the child of a fork has no business with its parent's store. */
static int child_writes(void *arg)
{
    (void)arg;
    return put(1, 100) == OK ? 0 : 1;
}

static void test_D7_a_forked_child_can_t_write(void)
{
    struct environment_options o = small();
    place_make(dir);
    open_store(&o);
    TEST_CHECK(put(0, 100) == OK);
    int status = place_apart(child_writes, NULL);
    TEST_CHECK_(status == 70, "status %d", status); /* the process ends by an assertion */
    check_all(1, 100);
    TEST_CHECK(put(1, 100) == OK);
    store_close(store);
    place_remove(dir);
}

TEST_LIST
= {{"what is made", test_what_is_made},
   {"sizes that can't be are refused", test_sizes_that_cannot_be},
   {"a short place for the sentence", test_a_short_place_for_the_sentence},
   {"L6 allocated ahead", test_L6_allocated_ahead},
   {"birth decides which store it is", test_birth_decides},
   {"opened again", test_opened_again},
   {"L3 flags", test_L3_flags},
   {"others can read it", test_others_can_read_it},
   {"others' tools can read it", test_others_tools_can_read_it},
   {"a guest beside the owner", test_a_guest_beside_the_owner},
   {"D3 the map doubles up to its limit", test_D3_the_map_doubles_up_to_its_limit},
   {"D3 the last doubling is shorter", test_D3_the_last_doubling_is_shorter},
   {"L6 the file grows in steps", test_L6_the_file_grows_in_steps},
   {"L6 a commit beyond what is allocated", test_L6_a_commit_beyond_what_is_allocated},
   {"zeros ahead of slow growth, once", test_zeros_ahead},
   {"D3 a small map grows by itself", test_D3_a_small_map_grows_by_itself},
   {"D3 a batch is replayed", test_D3_a_batch_is_replayed},
   {"D3 the end of the map", test_D3_the_end_of_the_map},
   {"D3 a full store can be emptied", test_D3_a_full_store_can_be_emptied},
   {"D2 a disk that fills", test_D2_a_disk_that_fills},
   {"D2 room alone is enough", test_D2_room_alone_is_enough},
   {"D2 a view on a full disk", test_D2_a_view_on_a_full_disk},
   {"D2 a batch that doesn't fit", test_D2_a_batch_that_does_not_fit},
   {"D7 a forked child can't write", test_D7_a_forked_child_can_t_write},
   {"the age of the oldest reader", test_the_age_of_the_oldest_reader},
   {NULL, NULL}};
