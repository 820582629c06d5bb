/* The store as a whole: opening, formats and their migrations, new tables, lost commits, the store of this process. */
#include "acutest.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/counter.h"
#include "store/view.h"
#include "tests/store/place.h"
#include "tests/support/parcel.h"

static char dir[PLACE_PATH_MAX];

static enum error open_with(const struct schema *schema, struct store **ret_store, char text[512])
{
    text[0] = '\0';
    parcel_install();
    return store_open(&(struct store_options){.environment = {.dir = dir, .map = 16 << 20, .step = 1 << 20},
                                              .schema = schema},
                      ret_store, text, 512);
}

static struct store *open_sound(const struct schema *schema)
{
    struct store *store = NULL;
    char text[512];
    enum error e = open_with(schema, &store, text);
    TEST_ASSERT_(e == OK, "%s: %s", error_name(e), text);
    return store;
}

static int64_t counter_of(struct store *store, uint16_t counter)
{
    struct view *view = view_open_outside(store, 0);
    int64_t value = -1;
    TEST_CHECK(view && counter_read(&view->txn, counter, span_of(NULL, 0), &value) == OK);
    view_close(view);
    return value;
}

/* ---- migrations ---- */

enum { MIGRATED = 9200 };

static enum error to_2(struct txn *txn)
{
    int64_t value = -1;
    TEST_CHECK(counter_read(txn, MIGRATED, span_of(NULL, 0), &value) == OK && value == 0);
    counter_add(txn, MIGRATED, span_of(NULL, 0), 2);
    return OK;
}

static enum error to_3(struct txn *txn)
{
    int64_t value = -1; /* after the one before, in the same transaction */
    TEST_CHECK(counter_read(txn, MIGRATED, span_of(NULL, 0), &value) == OK && value == 2);
    counter_add(txn, MIGRATED, span_of(NULL, 0), 30);
    return OK;
}

static enum error fails(struct txn *txn)
{
    struct counter counter = {.value = 77};
    struct key key = counter_key(MIGRATED + 1, span_of(NULL, 0));
    txn_write(txn, TABLE_COUNTERS, key_span(&key), &counter);
    return ERR_CONFLICT;
}

static enum error breaks(struct txn *txn)
{
    counter_add(txn, MIGRATED, span_of(NULL, 0), 5);
    txn->error = ERR_NO_SPACE; /* as a write that failed leaves it */
    return OK;
}

static struct schema schema_of(uint32_t format, const struct schema_migration *migrations, uint32_t count)
{
    struct schema schema = parcel_store_schema;
    schema.format = format;
    schema.migrations = migrations;
    schema.migrations_count = count;
    return schema;
}

static void test_forward(void)
{
    static const struct schema_migration both[] = {{2, to_3}, {1, to_2}};
    struct schema third = schema_of(3, both, 2);
    place_make(dir);
    struct store *store = open_sound(&parcel_store_schema);
    struct uuid identity = store->identity;
    uint8_t secret[16];
    memcpy(secret, store->secret, sizeof(secret));
    store_close(store);
    for (int again = 0; again < 2; again++) { /* the second time there is nothing to do */
        store = open_sound(&third);
        TEST_CHECK(counter_of(store, MIGRATED) == 32);
        TEST_CHECK(uuid_equal(&store->identity, &identity) && memcmp(store->secret, secret, 16) == 0);
        struct parcel_send send = {.id = {{(uint8_t)(again + 1)}}};
        TEST_CHECK(batch_one(store, &parcel_send_class, 1, &send, NULL) == OK);
        store_close(store);
    }
    place_remove(dir);
}

static void test_newer(void)
{
    static const struct schema_migration both[] = {{1, to_2}, {2, to_3}};
    struct schema third = schema_of(3, both, 2), second = schema_of(2, both, 2);
    struct store *store = NULL;
    char text[512];
    place_make(dir);
    store_close(open_sound(&parcel_store_schema));
    store_close(open_sound(&third));
    char *before = place_look(dir);
    TEST_CHECK(open_with(&second, &store, text) == ERR_NEWER && store == NULL);
    TEST_CHECK_(strstr(text, dir) && strstr(text, "format 3") && strstr(text, "up to 2"), "%s", text);
    TEST_CHECK(open_with(&parcel_store_schema, &store, text) == ERR_NEWER);
    char *after = place_look(dir);
    TEST_CHECK_(strcmp(before, after) == 0, "%s%s", before, after);
    free(before);
    free(after);
    store_close(open_sound(&third)); /* and it is as good as before */
    place_remove(dir);
}

/* A step that fails, one that isn't there, and a write that fails: the store stays what it was. */
static void test_failing(void)
{
    static const struct schema_migration failing[] = {{1, to_2}, {2, fails}}, missing[] = {{1, to_2}},
                                         breaking[] = {{1, breaks}, {2, to_3}},
                                         good[] = {{1, to_2}, {2, to_3}};
    const struct {
        struct schema schema;
        enum error error;
    } cases[] = {{schema_of(3, failing, 2), ERR_CONFLICT},
                 {schema_of(3, missing, 1), ERR_NOT_FOUND},
                 {schema_of(2, breaking, 2), ERR_NO_SPACE}};
    struct schema third = schema_of(3, good, 2);
    struct store *store = NULL;
    char text[512];
    place_make(dir);
    store_close(open_sound(&parcel_store_schema));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t size, size_after;
        uint8_t *before = place_read(place_in(dir, "data.mdb"), &size);
        enum error e = open_with(&cases[i].schema, &store, text);
        TEST_CHECK_(e == cases[i].error && store == NULL, "%zu: %s", i, error_name(e));
        TEST_CHECK_(strstr(text, dir) && strstr(text, "older format"), "%s", text);
        uint8_t *after = place_read(place_in(dir, "data.mdb"), &size_after);
        TEST_CHECK(size == size_after && memcmp(before, after, size) == 0);
        free(before);
        free(after);
        store = open_sound(&parcel_store_schema); /* still of the first format, and nothing in it */
        TEST_CHECK(counter_of(store, MIGRATED) == 0 && counter_of(store, MIGRATED + 1) == 0);
        store_close(store);
        store = NULL;
    }
    store = open_sound(&third);
    TEST_CHECK(counter_of(store, MIGRATED) == 32 && counter_of(store, MIGRATED + 1) == 0);
    store_close(store);
    place_remove(dir);
}

/* ---- a table that an older program didn't know ---- */

static uint32_t extras; /* its number */

static enum error apply_extra(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    struct key key = {.bytes = {7}, .size = 1};
    (void)at_us;
    (void)answer;
    txn_write(txn, extras, key_span(&key), command);
    return OK;
}

static void test_new_table(void)
{
    static const struct command_class extra_class = {
        .name = "extra", .record = &counter_record, .apply = apply_extra, .code = 9300};
    struct schema_table tables[SCHEMA_TABLES_MAX];
    struct schema wider = parcel_store_schema;
    struct key key = {.bytes = {7}, .size = 1};
    struct counter row = {.value = -1};
    extras = wider.tables_count;
    memcpy(tables, wider.tables, extras * sizeof(tables[0]));
    tables[extras] = (struct schema_table){.name = "extras", .record = &counter_record};
    wider.tables = tables;
    wider.tables_count++;
    place_make(dir);
    struct store *store = open_sound(&parcel_store_schema);
    struct parcel_send send = {.id = {{1}}};
    TEST_CHECK(batch_one(store, &parcel_send_class, 1, &send, NULL) == OK);
    store_close(store);
    for (int again = 0; again < 2; again++) {
        store = open_sound(&wider);
        struct view *view = view_open_outside(store, 0);
        TEST_CHECK(txn_rows(&view->txn, extras) == (uint64_t)again);
        TEST_CHECK(txn_rows(&view->txn, TABLE_PARCELS) == 1);
        TEST_CHECK(txn_read(&view->txn, extras, key_span(&key), &row) == (again ? OK : ERR_NOT_FOUND));
        TEST_CHECK(row.value == (again ? 5 : -1));
        view_close(view);
        TEST_CHECK(batch_one(store, &extra_class, 1, &(struct counter){.value = 5}, NULL) == OK);
        store_close(store);
    }
    store = open_sound(&parcel_store_schema); /* who doesn't know it leaves it alone */
    store_close(store);
    place_remove(dir);
}

/* ---- commits that were lost ---- */

enum { METAS = 2 * 4096 };

/* LMDB's two meta pages as they were some commits ago, over the file of today: whatever LMDB makes of them, the store
 * isn't opened as if nothing had happened. */
static void test_older_metas(void)
{
    uint8_t metas[METAS];
    struct store *store = NULL;
    char text[512];
    for (uint8_t commits = 3; commits < 12; commits++) {
        place_make(dir);
        store = open_sound(&parcel_store_schema);
        struct parcel_send send = {.id = {{100}}};
        TEST_CHECK(batch_one(store, &parcel_send_class, 1, &send, NULL) == OK);
        int fd = open(place_in(dir, "data.mdb"), O_RDWR | O_CLOEXEC);
        TEST_CHECK(pread(fd, metas, METAS, 0) == METAS);
        for (uint8_t i = 0; i < commits; i++) {
            send.id.bytes[0] = (uint8_t)(i + 1);
            TEST_CHECK(batch_one(store, &parcel_send_class, 1, &send, NULL) == OK);
        }
        store_close(store);
        TEST_CHECK(pwrite(fd, metas, METAS, 0) == METAS);
        char *before = place_look(dir);
        store = NULL;
        enum error e = open_with(&parcel_store_schema, &store, text);
        TEST_CHECK_(e == ERR_DAMAGED && store == NULL, "%u commits: %s", commits, error_name(e));
        TEST_CHECK_(strstr(text, dir) != NULL, "%s", text);
        char *after = place_look(dir);
        TEST_CHECK_(strcmp(before, after) == 0, "%s%s", before, after);
        free(before);
        free(after);
        store_close(store);
        close(fd);
        place_remove(dir);
    }
}

/* ---- the store of this process ---- */

static void test_here(void)
{
    char name[STORE_GROUP_SIZE];
    place_make(dir);
    TEST_CHECK(store_here() == NULL);
    struct store *store = open_sound(NULL);
    TEST_CHECK(store->schema == &store_schema && store_state(store) == STORE_OPEN);
    store_install(store);
    TEST_CHECK(store_here() == store);
    store_close(store);
    TEST_CHECK(store_here() == NULL);
    TEST_CHECK(strcmp(store_state_name(STORE_OPEN), "open") == 0);
    TEST_CHECK(strcmp(store_state_name(STORE_TIGHT), "tight") == 0);
    TEST_CHECK(strcmp(store_state_name(STORE_LOST), "lost") == 0);
    TEST_CHECK(strcmp(store_state_name(STORE_FAILED), "failed") == 0);
    TEST_CHECK(strcmp(store_state_name((enum store_state)77), "unknown") == 0);
    store_group(STORE_TOPIC(TOPIC_EVENTS, 255), name);
    TEST_CHECK_(strcmp(name, "store.topic.767") == 0, "%s", name);
    TEST_CHECK(STORE_TOPIC(TOPIC_EVENTS, 0x1ff) == STORE_TOPIC(TOPIC_EVENTS, 0xff));
    TEST_CHECK(STORE_TOPIC(TOPIC_EVENTS, 255) < TXN_TOPICS);
    place_remove(dir);
}

TEST_LIST
= {
    {"formats are brought forward, step by step, in one transaction", test_forward},
    {"a newer format is refused and not touched", test_newer},
    {"a migration that fails leaves everything as it was", test_failing},
    {"a new table appears", test_new_table},
    {"older meta pages over newer data are refused", test_older_metas},
    {"the store of this process, its states and topics", test_here},
    {NULL, NULL},
};
