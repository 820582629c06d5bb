/* Every allocation, every call of LMDB and every call of the system fails once, while a store is made, while one is
 * opened, and in a batch of each command: the store says so, has written all or nothing, leaks nothing, and goes on
 * (or ends, and is whole when it is opened again). */
#include "acutest.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chaos/workload.h"
#include "store/api_key.h"
#include "store/check.h"
#include "store/checksum.h"
#include "store/delivery_astray.h"
#include "store/delivery_relay.h"
#include "store/job_schedule.h"
#include "store/outbox.h"
#include "store/principal.h"
#include "store/retention.h"
#include "store/job_fire.h"
#include "store/job_lease.h"
#include "store/job_bulk.h"
#include "store/job_fairness.h"
#include "store/job_limit.h"
#include "store/job_pause.h"
#include "store/job_submit.h"
#include "store/signing_key.h"
#include "store/view.h"
#include "store/webhook.h"
#include "tests/store/place.h"
#include "tests/support/failing.h"
#include "tests/support/stage.h"

enum {
    LANE = 2,
    TEMPLATE_BATCHES = 55,
    TEMPLATE_MOVES = 20,
    TEMPLATE_THINGS = 6, /* of each kind, behind the batches */
    SEEDS = 400,
    TEMPLATES = 12,
    CALLS_MAX = 20000
};

static const char *const kind_names[] = {
#define X(id, name) [id] = name,
    FAILING_KINDS(X)
#undef X
};

/* ---- stores ---- */

static char place[PLACE_PATH_MAX];
static char template[PLACE_PATH_MAX + 16], work[PLACE_PATH_MAX + 16];
static uint64_t template_us; /* when its last batch was */

static enum error open_at(const char *dir, struct store **ret_store, char text[256])
{
    struct store_options options = {
        .environment = {.dir = dir,
                        .map = 256 << 10,
                        .map_max = 4 << 20,
                        .step = 64 << 10,
                        .reserve = 16 << 10,
                        .views_max = 16},
        .schema = &parcel_store_schema,
        .ledger_max = 4096,
    };
    memset(options.environment.birth, 7, sizeof(options.environment.birth));
    text[0] = 0;
    return store_open(&options, ret_store, text, 256);
}

static struct store *open_sound(const char *dir)
{
    char text[256];
    struct store *store = NULL;
    enum error e = open_at(dir, &store, text);
    TEST_ASSERT_(e == OK, "opens: %s: %s", error_name(e), text);
    return store;
}

static void copy_file(const char *name)
{
    size_t size;
    uint8_t *bytes = place_read(place_in(template, name), &size);
    place_write(place_in(work, name), bytes, size);
    free(bytes);
}

static void copy_template(void)
{
    place_remove(work);
    TEST_ASSERT(mkdir(work, 0700) == 0);
    copy_file("data.mdb");
    copy_file("coppice.lock");
}

static const struct command_class *const makers[] = {
    &signing_key_rotate_class, &client_create_class, &api_key_issue_class, &principal_put_class,
    &webhook_put_class,        &outbox_claim_class,  &job_submit_class,    &delivery_relay_class,
    &delivery_settle_class,    &job_submit_class,    &job_claim_class,     &outbox_bury_class,
    &job_finish_class,         &job_pause_class,     &job_submit_class,    &job_bulk_class,
    &schedule_put_class,       &job_resume_class,    &job_submit_class,    &job_claim_class,
    &job_finish_class,         &job_finish_class,
};

static void draw_several(struct workload *w, struct store *store, const struct command_class *class,
                         int count)
{
    for (int i = 0; i < count; i++) {
        workload_draw_one(w, store, class);
        TEST_ASSERT(batch_run(store, w->items, 1) == OK);
    }
}

static int64_t failed_jobs(struct store *store)
{
    int64_t count = 0;
    struct view *view = view_open_outside(store, 2);
    TEST_ASSERT(view && job_count(&view->txn, JOB_FAILED, &count) == OK);
    view_close(view);
    return count;
}

/* Some that failed, so that there is something to retry; nothing may be paused meanwhile. */
static void fail_some(struct workload *w, struct store *store)
{
    static const struct command_class *const way[] = {&job_resume_class, &job_submit_class, &job_claim_class,
                                                      &job_start_class, &job_finish_class};
    for (uint32_t round = 0; round < 100 && failed_jobs(store) < TEMPLATE_THINGS; round++)
        for (size_t i = 0; i < sizeof(way) / sizeof(*way); i++)
            draw_several(w, store, way[i], 2);
    draw_several(w, store, &job_submit_class, 4 * TEMPLATE_THINGS); /* some of them are set aside ... */
    draw_several(w, store, &job_pause_class, 3);
    draw_several(w, store, &job_claim_class,
                 2 * TEMPLATE_THINGS); /* ... by these, the others wait or are claimed */
    draw_several(w, store, &job_submit_class, 4 * TEMPLATE_THINGS);
}

/* What stands in it is chance: where a command finds nothing that it could be about, another one may have it. */
static void make_template(uint64_t seed)
{
    struct workload w;
    place_remove(template);
    TEST_ASSERT(workload_create(&w, seed));
    struct store *store = open_sound(template);
    for (int i = 0; i < TEMPLATE_BATCHES; i++)
        TEST_ASSERT(batch_run(store, w.items, workload_draw(&w, store)) == OK);
    draw_several(&w, store, &parcel_move_class, TEMPLATE_MOVES); /* some are to come to their end */
    draw_several(&w, store, &parcel_send_class, TEMPLATE_THINGS);
    for (size_t i = 0; i < sizeof(makers) / sizeof(*makers);
         i++) /* so that there is something of each kind */
        draw_several(&w, store, makers[i], TEMPLATE_THINGS);
    fail_some(&w, store);
    store_close(store);
    template_us = w.at_us;
    workload_destroy(&w);
}

static void begin(void)
{
    parcel_install();
    place_make(place);
    snprintf(template, sizeof(template), "%s/template", place);
    snprintf(work, sizeof(work), "%s/work", place);
    make_template(2);
}

static void end(void)
{
    place_remove(place);
}

/* All rows of all tables as one number. */
static uint64_t rows_of(struct store *store)
{
    uint64_t sum = 0;
    struct view *view = view_open_outside(store, LANE);
    struct key from = {.size = 1};
    TEST_ASSERT(view != NULL);
    for (uint32_t table = 0; table < parcel_store_schema.tables_count; table++) {
        struct scan scan = txn_scan(&view->txn, table, key_span(&from), 0, SCAN_UP);
        while (scan_next(&scan))
            sum +=
                checksum(checksum(table, scan.key.bytes, scan.key.size), scan.bytes.bytes, scan.bytes.size);
        TEST_CHECK(scan_end(&scan) == OK);
    }
    view_close(view);
    return sum;
}

static void complain(void *context, const char *finding)
{
    (void)context;
    TEST_CHECK_(false, "rows: %s", finding);
}

static void check_sound(struct store *store)
{
    struct check_report report;
    struct view *view = view_open_outside(store, LANE);
    TEST_ASSERT(view != NULL);
    TEST_CHECK(check_rows(&view->txn, &parcel_store_schema, complain, NULL, &report) == OK);
    view_close(view);
}

static int descriptors(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    TEST_ASSERT(dir != NULL);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

struct held {
    int descriptors;
    int64_t live;
};

static struct held held(void)
{
    return (struct held){descriptors(), failing_live()};
}

static void check_nothing_leaks(struct held before)
{
    struct held now = held();
    TEST_CHECK_(now.descriptors == before.descriptors, "%d descriptors are left",
                now.descriptors - before.descriptors);
    TEST_CHECK_(now.live == before.live, "%lld allocations are left", (long long)(now.live - before.live));
}

/* ---- batches ---- */

struct run {
    struct workload workload;
    size_t count;
    struct store *store;
    uint64_t before, after; /* rows without the batch, and with it */
    struct answered {
        enum error error;
        uint32_t size;
        uint64_t sum;
    } answers[WORKLOAD_BATCH_MAX];
    uint32_t accepted;
};

/* What says that something failed, and nothing about the question. */
static bool excuse(enum error e)
{
    return e == ERR_IO || e == ERR_MEMORY || e == ERR_NO_SPACE || e == ERR_DAMAGED || e == ERR_UNAVAILABLE;
}

static struct answered answered(const struct batch_item *item)
{
    return (struct answered){item->answer.error, item->answer.size,
                             checksum(0, item->answer.bytes, item->answer.size)};
}

static void start_over(struct run *r)
{
    store_close(r->store);
    copy_template();
    r->store = open_sound(work);
}

/* The batch as it is without failures; false: a single command that was refused, or wasn't, as not wanted. */
static bool rehearse(struct run *r, const struct command_class *class, uint64_t seed, bool accepted)
{
    TEST_ASSERT(workload_create(&r->workload, seed));
    r->workload.at_us = template_us;
    r->store = NULL;
    start_over(r);
    r->before = rows_of(r->store);
    if (class)
        workload_draw_one(&r->workload, r->store, class);
    r->count = class ? 1 : workload_draw(&r->workload, r->store);
    TEST_ASSERT(batch_run(r->store, r->workload.items, r->count) == OK);
    r->after = rows_of(r->store);
    r->accepted = 0;
    for (size_t i = 0; i < r->count; i++) {
        r->answers[i] = answered(&r->workload.items[i]);
        r->accepted += r->answers[i].error == OK;
    }
    if (!class || (r->accepted > 0 && r->before != r->after) == accepted) {
        start_over(r);
        return true;
    }
    store_close(r->store);
    workload_destroy(&r->workload);
    return false;
}

/* Commands that do what they can: those about several jobs or deliveries keep what they did beside one that is damaged. */
static bool one_by_one(const struct command_class *class)
{
    return class == &job_claim_class || class == &job_fire_class || class == &job_reap_class ||
           class == &job_fairness_class || class == &job_admit_class || class == &schedule_retime_class ||
           class == &delivery_relay_class || class == &delivery_settle_class ||
           class == &delivery_astray_class;
}

/* A sweep removes what it can: what it could not read is put off, and it says how much it has done. */
static bool did_less(const struct batch_item *item)
{
    return (item->class == &retention_sweep_class || one_by_one(item->class)) && item->answer.error == OK;
}

/* What LMDB can't read ends the transaction and is damage, not a commit that failed. */
static bool was_a_read(void)
{
    return strcmp(failing_name(), "mdb_get") == 0 || strcmp(failing_name(), "mdb_cursor_get") == 0;
}

/* The batch was answered although a call failed: each answer is the right one or an excuse, and of those that were
 * excused nothing is there. What a command answers may hang on one before it that was excused. */
static void judge_answered(struct run *r)
{
    uint32_t excused = 0;
    for (size_t i = 0; i < r->count; i++) {
        const struct batch_item *item = &r->workload.items[i];
        struct answered answer = answered(item), right = r->answers[i];
        if (answer.error == right.error && answer.size == right.size && answer.sum == right.sum)
            continue;
        TEST_CHECK_(excused > 0 || excuse(answer.error) || did_less(item), "%s answers %s, not %s",
                    item->class->name, error_name(answer.error), error_name(right.error));
        excused++;
    }
    uint64_t rows = rows_of(r->store);
    if (excused == 0)
        TEST_CHECK_(rows == r->after, "all of it is there");
    else if (r->count == 1 && !did_less(&r->workload.items[0]))
        TEST_CHECK_(rows == r->before, "nothing is there");
    check_sound(r->store);
    if (rows != r->before)
        start_over(r);
}

static void judge_failed(struct run *r, enum error e)
{
    TEST_CHECK_(excuse(e), "says %s", error_name(e));
    TEST_CHECK_(!was_a_read() || e == ERR_DAMAGED, "a read that failed says %s: %s", error_name(e),
                r->store->failure);
    if (store_state(r->store) != STORE_FAILED) {
        TEST_CHECK_(rows_of(r->store) == r->before, "nothing is there");
        return;
    }
    TEST_CHECK_(e == ERR_IO, "a store that failed says %s", error_name(e));
    TEST_CHECK(batch_run(r->store, r->workload.items, r->count) == ERR_UNAVAILABLE);
    store_close(r->store);
    r->store = open_sound(work);
    uint64_t rows = rows_of(r->store);
    TEST_CHECK_(rows == r->before || rows == r->after, "all or nothing is there, opened again");
    if (rows != r->before)
        start_over(r);
}

static void fail_each_call(struct run *r, enum failing_kind kind)
{
    for (uint64_t n = 1; n < CALLS_MAX; n++) {
        failing_begin(kind, n);
        enum error e = batch_run(r->store, r->workload.items, r->count);
        bool hit = failing_end();
        if (!hit) {
            TEST_CHECK_(e == OK, "the last turn: %s", error_name(e));
            judge_answered(r);
            return;
        }
        TEST_CASE_("%s: %s, call %u, %s", r->count == 1 ? r->workload.items[0].class->name : "batch",
                   kind_names[kind], (unsigned)n, failing_name());
        if (e == OK)
            judge_answered(r);
        else
            judge_failed(r, e);
    }
    TEST_CHECK_(false, "more calls than a batch makes");
}

static void fail_batch(struct run *r)
{
    for (enum failing_kind kind = 0; kind < FAILING_KIND_COUNT; kind++)
        fail_each_call(r, kind);
    TEST_CASE("afterwards");
    check_sound(r->store);
    store_close(r->store);
    workload_destroy(&r->workload);
}

static void fail_class(const struct command_class *class, bool accepted)
{
    static struct run r;
    struct held before = held();
    uint64_t seed = 1, other = 2;
    while (seed < SEEDS && !rehearse(&r, class, seed, accepted)) {
        seed++;
        if (seed == SEEDS && accepted && other < TEMPLATES) {
            make_template(++other);
            seed = 1;
        }
    }
    if (seed == SEEDS) { /* such as a claim that is refused: there is none */
        TEST_CHECK_(!accepted, "%s is never accepted", class->name);
        return;
    }
    TEST_MSG("%s, %s", class->name, accepted ? "accepted" : "refused");
    fail_batch(&r);
    check_nothing_leaks(before);
}

static void test_s1_every_call_fails_in_a_batch_of_each_command(void)
{
    begin();
    for (uint32_t i = 0; i < parcel_store_schema.commands_count; i++) {
        if (parcel_store_schema.commands[i] != &delivery_astray_class) /* it changes what isn't sound alone */
            fail_class(parcel_store_schema.commands[i], true);
        fail_class(parcel_store_schema.commands[i], false);
    }
    end();
}

static void test_s1_every_call_fails_in_a_large_batch(void)
{
    static struct run r;
    begin();
    struct held before = held();
    for (uint64_t seed = 3; seed < 5; seed++) {
        TEST_ASSERT(rehearse(&r, NULL, seed, true));
        fail_batch(&r);
    }
    check_nothing_leaks(before);
    end();
}

/* ---- under a writer ---- */

static struct {
    enum failing_kind kind;
    uint64_t n;
    bool hit;
    enum error heard; /* ERR_UNANSWERED: nothing */
} live;

static void live_doll(void *arg)
{
    (void)arg;
    failing_begin(live.kind, live.n);
    live.heard = stage_send(2, 9000);
    live.hit = failing_end();
}

static void live_body(void)
{
    live.heard = ERR_UNANSWERED;
    stage_writer();
    EXPECT(stage_send(1, 10) == OK);
    stage_settle();
    (void)stage_ended(stage_doll(SPAWN_ON(1), live_doll, NULL));
    EXPECT(live.heard == OK || excuse(live.heard));
    EXPECT(stage_find(1) == OK && stage_find(2) == (live.heard == OK ? OK : ERR_NOT_FOUND));
    if (store_state(stage_store) == STORE_OPEN)
        EXPECT(stage_send(3, 10) == OK);
}

static void reopened_body(void)
{
    enum error e = stage_find(2);
    EXPECT(stage_find(1) == OK);
    EXPECT(live.heard == ERR_UNANSWERED ? e == OK || e == ERR_NOT_FOUND
                                        : e == (live.heard == OK ? OK : ERR_NOT_FOUND));
    stage_writer();
    EXPECT(stage_send(4, 10) == OK);
}

/* Whoever is answered hears the truth. Nobody is when the process ends with 74, but for one whose commit was done and what
 * comes behind it, such as allocating ahead, failed. */
static int live_once(void)
{
    struct stage stage = {.dir = work, .unsound = true}; /* LMDB may let nobody look any more */
    place_remove(work);
    TEST_ASSERT(mkdir(work, 0700) == 0);
    live.hit = false;
    int status = stage_run(&stage, live_body);
    live.hit |= failing_end();
    TEST_CHECK_(status == 0 || status == 74, "status %d", status);
    TEST_CHECK(stage_logged("\"exit_status\":74") == (status == 74));
    TEST_CHECK_(status == 0 || live.heard == ERR_UNANSWERED || live.heard == OK, "it heard %s",
                error_name(live.heard));
    stage.unsound = false;
    TEST_CHECK(stage_run(&stage, reopened_body) == 0);
    return status;
}

static void test_S3_L5_every_call_fails_under_a_writer(void)
{
    uint32_t ended = 0;
    begin();
    struct held before = held();
    for (live.kind = 0; live.kind < FAILING_KIND_COUNT; live.kind++)
        for (live.n = 1; live.n < CALLS_MAX; live.n++) {
            TEST_CASE_("%s, call %u, behind %s", kind_names[live.kind], (unsigned)live.n, failing_name());
            ended += live_once() == 74;
            if (!live.hit)
                break;
        }
    TEST_CHECK_(ended > 5, "%u times", ended);
    check_nothing_leaks(before);
    end();
}

/* ---- while the map grows under a view ---- */

enum { GROW_FIRST = 2, GROW_LAST = 12, GROW_BODY = 30000 };
static struct {
    uint64_t asked, grown; /* the last number that was sent; how often the map grew */
} growing;

static void grow_doll(void *arg)
{
    (void)arg;
    failing_begin(live.kind, live.n);
    enum error e = OK;
    for (uint64_t number = GROW_FIRST; e == OK && number <= GROW_LAST; number++) {
        live.heard = ERR_UNANSWERED;
        growing.asked = number;
        live.heard = e = stage_send(number, GROW_BODY);
    }
    live.hit = failing_end();
}

/* What was answered is there, what was refused isn't, and of the one without an answer nobody knows. */
static void expect_grown_rows(void)
{
    for (uint64_t number = 1; number < growing.asked; number++)
        EXPECT(stage_find(number) == OK);
    enum error e = stage_find(growing.asked);
    EXPECT(live.heard == ERR_UNANSWERED ? e == OK || e == ERR_NOT_FOUND
                                        : e == (live.heard == OK ? OK : ERR_NOT_FOUND));
}

static void grow_body(void)
{
    live.heard = ERR_UNANSWERED;
    stage_writer();
    EXPECT(stage_send(1, 10) == OK);
    struct view *view = view_open(stage_store);
    actor_pid sender = stage_doll(SPAWN_ON(1), grow_doll, NULL);
    actor_sleep(actor_now() +
                NS_PER_S); /* the virtual clock: the writer has come to where it waits for this view */
    EXPECT(stage_store->grown == 0);
    view_close(view);
    (void)stage_ended(sender);
    growing.grown = stage_store->grown;
    EXPECT(live.heard == OK || excuse(live.heard));
    expect_grown_rows();
    if (store_state(stage_store) == STORE_OPEN)
        EXPECT(stage_send(100, GROW_BODY) == OK);
}

static void regrown_body(void)
{
    expect_grown_rows();
    stage_writer();
    EXPECT(stage_send(101, GROW_BODY) == OK);
}

static int grow_once(void)
{
    struct stage stage = {.dir = work,
                          .map = 256 << 10,
                          .map_max = 4 << 20,
                          .step = 64 << 10,
                          .reserve = 16 << 10,
                          .unsound = true};
    place_remove(work);
    TEST_ASSERT(mkdir(work, 0700) == 0);
    live.hit = false;
    memset(&growing, 0, sizeof(growing));
    int status = stage_run(&stage, grow_body);
    live.hit |= failing_end();
    TEST_CHECK_(status == 0 || status == 74, "status %d", status);
    TEST_CHECK(stage_logged("\"exit_status\":74") == (status == 74));
    stage.unsound = false;
    TEST_CHECK(stage_run(&stage, regrown_body) == 0);
    return status;
}

static void test_S3_L5_every_call_fails_while_the_map_grows_under_a_view(void)
{
    uint32_t ended = 0, refused = 0;
    begin();
    struct held before = held();
    for (live.kind = 0; live.kind < FAILING_KIND_COUNT; live.kind++)
        for (live.n = 1; live.n < CALLS_MAX; live.n++) {
            TEST_CASE_("%s, call %u, behind %s", kind_names[live.kind], (unsigned)live.n, failing_name());
            int status = grow_once();
            ended += status == 74;
            refused += status == 0 && live.heard != OK;
            if (!live.hit)
                break;
            TEST_CHECK(status == 74 || live.heard != OK || growing.grown > 0);
        }
    TEST_CHECK(growing.grown > 0 && live.heard == OK);
    TEST_CHECK_(ended > 5 && refused > 5, "%u ended, %u refused", ended, refused);
    check_nothing_leaks(before);
    end();
}

/* ---- while pages begin to lie fallow ---- */

enum { FALLOW_GROUP = 32, FALLOW_BODY = 500 };

static enum error send_group(struct store *store, uint64_t first)
{
    static const char body[FALLOW_BODY];
    static uint8_t bytes[FALLOW_GROUP][FALLOW_BODY + 200];
    struct batch_item items[FALLOW_GROUP];
    for (uint32_t i = 0; i < FALLOW_GROUP; i++) {
        struct parcel_send send = {.body = span_of(body, sizeof(body))};
        memcpy(send.id.bytes, &(uint64_t){__builtin_bswap64(first + i + 1)}, 8);
        size_t size = record_encode(parcel_send_class.record, &send, bytes[i], sizeof(bytes[i]));
        items[i] = (struct batch_item){
            .class = &parcel_send_class, .at_us = first + 1, .bytes = span_of(bytes[i], size)};
    }
    enum error e = batch_run(store, items, FALLOW_GROUP);
    return e ? e : items[FALLOW_GROUP - 1].answer.error;
}

static bool has_parcel(struct store *store, uint64_t number)
{
    struct uuid id = {.bytes = {0}};
    struct parcel parcel;
    memcpy(id.bytes, &(uint64_t){__builtin_bswap64(number + 1)}, 8);
    struct key key = key_of_uuid(&id);
    struct view *view = view_open_outside(store, LANE);
    TEST_ASSERT(view != NULL);
    enum error e = txn_read(&view->txn, TABLE_PARCELS, key_span(&key), &parcel);
    view_close(view);
    TEST_CHECK(e == OK || e == ERR_NOT_FOUND);
    return e == OK;
}

static struct store *open_roomy(void)
{
    char text[256];
    struct store *store = NULL;
    struct store_options options = {
        .environment = {.dir = work, .map = 64 << 20, .step = 1 << 20, .reserve = 16 << 10, .views_max = 16},
        .schema = &parcel_store_schema,
        .ledger_max = 4096};
    enum error e = store_open(&options, &store, text, sizeof(text));
    TEST_ASSERT_(e == OK, "opens: %s: %s", error_name(e), text);
    return store;
}

/* What can't lie fallow is no reason to refuse; whatever fails, a batch is there whole or not at all. */
static void fail_as_fallow_begins(enum failing_kind kind)
{
    uint64_t first = 0, went_without = 0;
    place_remove(work);
    TEST_ASSERT(mkdir(work, 0700) == 0);
    struct store *store = open_roomy();
    for (; first < 20 * FALLOW_GROUP; first += FALLOW_GROUP)
        TEST_CHECK(send_group(store, first) == OK);
    TEST_CHECK(store->fallow.open);
    for (uint64_t n = 1; n < CALLS_MAX; n++, first += FALLOW_GROUP) {
        fallow_close(&store->fallow, &store->environment); /* so that it begins from nothing, in this batch */
        fallow_go_on(&store->fallow);                      /* a map that was said to be full made it rest */
        store->fallow.phase = FALLOW_GROWING;
        store->fallow.until = 0;
        failing_begin(kind, n);
        enum error e = send_group(store, first);
        bool hit = failing_end();
        TEST_CASE_("%s, call %u, %s", kind_names[kind], (unsigned)n, failing_name());
        TEST_CHECK_(e == OK || excuse(e), "says %s", error_name(e));
        TEST_CHECK(hit || (e == OK && store->fallow.open));
        went_without += e == OK && !store->fallow.open;
        if (store_state(store) == STORE_FAILED) {
            store_close(store);
            store = open_roomy();
            TEST_CHECK(has_parcel(store, first) == has_parcel(store, first + FALLOW_GROUP - 1));
            for (int i = 0; i < 20; i++, first += FALLOW_GROUP)
                TEST_CHECK(send_group(store, first + FALLOW_GROUP) == OK);
        } else
            TEST_CHECK(has_parcel(store, first) == (e == OK) &&
                       has_parcel(store, first + FALLOW_GROUP - 1) == (e == OK));
        if (!hit)
            break;
    }
    TEST_CHECK(went_without > 0 || (kind != FAILING_LMDB && kind != FAILING_LMDB_FULL));
    check_sound(store);
    store_close(store);
}

static void test_S1_every_call_fails_as_pages_begin_to_lie_fallow(void)
{
    begin();
    struct held before = held();
    for (enum failing_kind kind = 0; kind < FAILING_KIND_COUNT; kind++)
        fail_as_fallow_begins(kind);
    check_nothing_leaks(before);
    end();
}

/* ---- making and opening ---- */

/* What lies in the directory: nothing, a store, one that lost its lock file. */
enum lying { LYING_NONE, LYING_STORE, LYING_UNLOCKED };

static void judge_opening(enum error e, struct store *store, const char *text, uint64_t rows,
                          enum lying lying)
{
    TEST_CHECK_(e == OK ? store != NULL : store == NULL && text[0] != 0, "%s: '%s'", error_name(e), text);
    if (e) {
        TEST_CHECK_((e != ERR_FOREIGN || lying == LYING_UNLOCKED) && e != ERR_MISSING && e != ERR_NEWER &&
                        e != ERR_EXISTS,
                    "says %s: '%s'", error_name(e), text);
        store = open_sound(work);
    }
    TEST_CHECK_(rows_of(store) == rows, "it is the same store");
    store_close(store);
}

/* Names, and what the files of a store hold; not when they were written: its meta pages are, as they were. */
static uint64_t dir_of(const char *path)
{
    uint64_t sum = 0;
    size_t size;
    DIR *listing = opendir(path);
    if (!listing)
        return 0;
    for (struct dirent *entry; (entry = readdir(listing));) {
        bool file = strcmp(entry->d_name, "data.mdb") == 0 || strcmp(entry->d_name, "coppice.lock") == 0;
        uint8_t *bytes = file ? place_read(place_in(path, entry->d_name), &size) : NULL;
        uint64_t name = checksum(1, entry->d_name, strlen(entry->d_name));
        sum += file ? checksum(name, bytes, size) : name; /* in whatever order */
        free(bytes);
    }
    closedir(listing);
    return sum;
}

static void fail_opening(enum failing_kind kind, enum lying lying)
{
    uint64_t rows = 0;
    for (uint64_t n = 0; n < CALLS_MAX; n++) {
        char text[256];
        struct store *store = NULL;
        if (lying == LYING_NONE)
            place_remove(work);
        else
            copy_template();
        if (lying == LYING_UNLOCKED)
            TEST_ASSERT(unlink(place_in(work, "coppice.lock")) == 0);
        struct held before = held();
        if (n == 0) { /* what it is when nothing fails */
            store = open_sound(work);
            rows = rows_of(store);
            store_close(store);
            continue;
        }
        uint64_t untouched = dir_of(work);
        failing_begin(kind, n);
        enum error e = open_at(work, &store, text);
        bool hit = failing_end();
        if (hit)
            TEST_CASE_("%s, call %u, %s", kind_names[kind], (unsigned)n, failing_name());
        TEST_CHECK_(e == OK || lying == LYING_NONE || dir_of(work) == untouched,
                    "a refused directory is as it was: %s", text);
        judge_opening(e, store, text, rows, lying);
        check_nothing_leaks(before);
        if (!hit) {
            TEST_CHECK_(e == OK, "the last turn: %s: %s", error_name(e), text);
            return;
        }
    }
    TEST_CHECK_(false, "more calls than an opening makes");
}

static void test_s6_every_call_fails_while_a_store_is_made(void)
{
    begin();
    for (enum failing_kind kind = 0; kind < FAILING_KIND_COUNT; kind++)
        fail_opening(kind, LYING_NONE);
    end();
}

static void test_s6_every_call_fails_while_a_store_is_opened(void)
{
    begin();
    for (enum failing_kind kind = 0; kind < FAILING_KIND_COUNT; kind++)
        for (enum lying lying = LYING_STORE; lying <= LYING_UNLOCKED; lying++)
            fail_opening(kind, lying);
    end();
}

TEST_LIST
= {
    {"S1_every_call_fails_in_a_batch_of_each_command", test_s1_every_call_fails_in_a_batch_of_each_command},
    {"S1_every_call_fails_in_a_large_batch", test_s1_every_call_fails_in_a_large_batch},
    {"S3_L5_every_call_fails_under_a_writer", test_S3_L5_every_call_fails_under_a_writer},
    {"S3_L5_every_call_fails_while_the_map_grows_under_a_view",
     test_S3_L5_every_call_fails_while_the_map_grows_under_a_view},
    {"S1_every_call_fails_as_pages_begin_to_lie_fallow",
     test_S1_every_call_fails_as_pages_begin_to_lie_fallow},
    {"S6_every_call_fails_while_a_store_is_made", test_s6_every_call_fails_while_a_store_is_made},
    {"S6_every_call_fails_while_a_store_is_opened", test_s6_every_call_fails_while_a_store_is_opened},
    {NULL, NULL},
};
