/* Fallow: when it begins, what it may cost, and when it gives way. */
#include "acutest.h"

#include <signal.h>
#include <sys/resource.h>

#include "store/fallow.h"
#include "store/view.h"
#include "tests/store/place.h"
#include "tests/support/parcel.h"

enum { MIB = 1 << 20, GROUP = 64, BODY = 600 };

static char dir[PLACE_PATH_MAX];
static struct store *store;
static uint64_t sent;

static void open_store(uint64_t map, uint64_t map_max, uint64_t step)
{
    char text[512] = "";
    struct store_options options = {
        .environment =
            {.dir = dir, .map = map, .map_max = map_max, .step = step, .reserve = 64 << 10, .birth = {1}},
        .schema = &parcel_store_schema};
    place_make(dir);
    parcel_install();
    sent = 0;
    enum error e = store_open(&options, &store, text, sizeof(text));
    TEST_ASSERT_(e == OK, "%s: %s", error_name(e), text);
}

static void close_store(void)
{
    store_close(store);
    place_remove(dir);
}

static struct uuid id_of(uint64_t number)
{
    struct uuid id = {.bytes = {1}};
    for (int i = 0; i < 8; i++)
        id.bytes[15 - i] = (uint8_t)(number >> (8 * i));
    return id;
}

/* One commit of so many new parcels. */
static enum error send_many(uint32_t count)
{
    static const char body[BODY];
    static uint8_t bytes[GROUP][BODY + 200];
    struct batch_item items[GROUP];
    TEST_ASSERT(count <= GROUP);
    for (uint32_t i = 0; i < count; i++) {
        struct parcel_send send = {.id = id_of(++sent), .body = span_of(body, sizeof(body))};
        size_t size = record_encode(parcel_send_class.record, &send, bytes[i], sizeof(bytes[i]));
        items[i] =
            (struct batch_item){.class = &parcel_send_class, .at_us = sent, .bytes = span_of(bytes[i], size)};
    }
    enum error e = batch_run(store, items, count);
    return e ? e : items[count - 1].answer.error;
}

static uint64_t free_bytes(void)
{
    struct view *view = view_open_outside(store, 0);
    TEST_ASSERT(view != NULL);
    uint64_t bytes = environment_free(&store->environment, view->txn.mdb);
    view_close(view);
    return bytes;
}

static uint64_t used(void)
{
    return environment_used(&store->environment);
}

/* Phases follow each other, and what is free never comes to much more than a quarter of the file. */
static void test_it_grows_and_uses_stretches_by_turns(void)
{
    uint32_t turns[FALLOW_STRETCHES + 1] = {0};
    enum fallow_phase before = FALLOW_NONE;
    uint32_t whole = 0;
    bool grows = false;
    open_store(256 * MIB, 0, MIB);
    for (int i = 0; i < 600; i++) {
        uint64_t had = used();
        TEST_CHECK(send_many(GROUP) == OK);
        enum fallow_phase phase = store->fallow.phase;
        turns[phase] += phase != before;
        if (phase != FALLOW_GROWING || before != FALLOW_GROWING || used() == had)
            grows = false;
        else if (grows) /* the second one: what was free had gone before it */
            TEST_CHECK_(used() - had >= GROUP * BODY, "grows by all that it writes: %llu",
                        (unsigned long long)(used() - had)),
                whole++;
        else
            grows = true;
        if (i > 100 && i % 20 == 0)
            TEST_CHECK_(free_bytes() <= used() / 4 + MIB, "%llu of %llu are free",
                        (unsigned long long)free_bytes(), (unsigned long long)used());
        before = phase;
    }
    TEST_CHECK_(whole > 200, "%u", whole);
    TEST_CHECK_(turns[FALLOW_GROWING] > 2 && turns[FALLOW_STRETCHES] > 2, "%u and %u turns",
                turns[FALLOW_GROWING], turns[FALLOW_STRETCHES]);
    close_store();
}

/* Its reader is nobody whom an operator should look for. */
static void test_its_reader_has_no_age(void)
{
    struct environment_stats stats;
    open_store(256 * MIB, 0, MIB);
    for (int i = 0; i < 60; i++)
        TEST_CHECK(send_many(GROUP) == OK);
    TEST_CHECK(store->fallow.open);
    TEST_CHECK(environment_stats(&store->environment, store->fallow.reader, &stats) == OK);
    TEST_CHECK(stats.oldest_txn == stats.last_txn);
    close_store();
}

static void test_not_for_single_commands(void)
{
    open_store(256 * MIB, 0, MIB);
    for (int i = 0; i < 200; i++) {
        TEST_CHECK(send_many(1) == OK);
        TEST_CHECK(!store->fallow.open);
    }
    for (int i = 0; i < 60; i++)
        TEST_CHECK(send_many(GROUP) == OK);
    TEST_CHECK(store->fallow.open);
    for (int i = 0; i < 60; i++)
        TEST_CHECK(send_many(1) == OK);
    TEST_CHECK(!store->fallow.open);
    close_store();
}

/* A map that is full is given what lies fallow before it grows, and refuses only when nothing does. */
static void test_D3_a_full_map_is_given_it_first(void)
{
    enum error e = OK;
    bool yielded = false;
    open_store(8 * MIB, 16 * MIB, MIB);
    while (e == OK && sent < 100000) {
        e = send_many(GROUP);
        yielded |= store->grown == 0 && store->fallow.resting;
        if (store->grown > 0 && used() < 8 * MIB)
            TEST_CHECK(!store->fallow.resting);
    }
    TEST_CHECK(yielded && e == ERR_NO_SPACE && store->grown == 1);
    TEST_CHECK(!store->fallow.open && store->fallow.resting);
    uint64_t kept = sent * BODY;
    TEST_CHECK_(kept > 16 * MIB / 3, "%llu bytes of bodies in 16 MiB", (unsigned long long)kept);
    close_store();
}

/* Files may not grow any more, or may again. */
static void disk_full(bool full)
{
    struct rlimit limit = {.rlim_cur = full ? store->environment.allocated : RLIM_INFINITY,
                           .rlim_max = RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    TEST_ASSERT(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

/* On a full disk all that is free is used, nobody fails in the middle of a commit, and with room it begins again. */
static void test_D2_a_full_disk_ends_it(void)
{
    enum error e = OK;
    open_store(256 * MIB, 0, MIB);
    while (!store->fallow.open || store->fallow.phase != FALLOW_GROWING || sent < 100 * GROUP)
        TEST_ASSERT(send_many(GROUP) == OK);
    disk_full(true);
    while (e == OK && sent < 100000)
        e = send_many(GROUP);
    TEST_CHECK_(e == ERR_NO_SPACE, "%s", error_name(e));
    TEST_CHECK(store_state(store) == STORE_TIGHT && !store->fallow.open &&
               store->environment.fallow_txn == 0);
    TEST_CHECK_(free_bytes() < MIB, "%llu are free", (unsigned long long)free_bytes());
    disk_full(false);
    for (int i = 0; i < 200; i++)
        TEST_CHECK(send_many(GROUP) == OK);
    TEST_CHECK(store_state(store) == STORE_OPEN && store->fallow.open);
    close_store();
}

static void test_not_where_little_is_allocated_ahead(void)
{
    open_store(64 * MIB, 0, 64 << 10);
    for (int i = 0; i < 60; i++)
        TEST_CHECK(send_many(GROUP) == OK && !store->fallow.open);
    close_store();
}

TEST_LIST
= {
    {"it grows and uses stretches by turns", test_it_grows_and_uses_stretches_by_turns},
    {"its reader has no age", test_its_reader_has_no_age},
    {"not for single commands", test_not_for_single_commands},
    {"D3 a full map is given it first", test_D3_a_full_map_is_given_it_first},
    {"D2 a full disk ends it", test_D2_a_full_disk_ends_it},
    {"not where little is allocated ahead", test_not_where_little_is_allocated_ahead},
    {NULL, NULL},
};
