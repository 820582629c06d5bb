/* Views: one state each, owned by whoever opened them, and out of the way when the map grows. */
#include "acutest.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "store/outbox.h"
#include "tests/support/stage.h"
#include "tests/support/sanitized.h"

/* ---- what a view sees ---- */

static bool sees(struct view *view, uint64_t number)
{
    struct uuid id = stage_id(number);
    struct key key = key_of_uuid(&id);
    struct parcel parcel;
    return txn_read(&view->txn, TABLE_PARCELS, key_span(&key), &parcel) == OK;
}

static uint64_t scanned(struct view *view)
{
    struct key start;
    uint64_t rows = 0;
    start.size = 0;
    struct scan scan = txn_scan(&view->txn, TABLE_PARCELS, key_span(&start), 0, SCAN_UP);
    while (scan_next(&scan))
        rows++;
    EXPECT(scan_end(&scan) == OK);
    return rows;
}

static void one_state_body(void)
{
    struct view *views[4];
    stage_writer();
    for (uint64_t i = 0; i < 4; i++) {
        views[i] = view_open(stage_store);
        EXPECT(views[i] != NULL && scanned(views[i]) == i);
        EXPECT(stage_send(i, 100) == OK);
    }
    EXPECT(views_count(stage_store) == 4);
    for (uint64_t i = 0; i < 4;
         i++) /* each still sees what was there when it was opened, and the newest is new */
        for (uint64_t number = 0; number < 4; number++)
            EXPECT(sees(views[i], number) == (number < i));
    for (uint64_t i = 0; i < 4; i++)
        EXPECT(scanned(views[i]) == i && txn_rows(&views[i]->txn, TABLE_PARCELS) == i);
    for (uint64_t i = 0; i < 4; i++)
        view_close(views[i]);
    EXPECT(views_count(stage_store) == 0 && stage_find(3) == OK && stage_find(4) == ERR_NOT_FOUND);
}

static void test_one_state(void)
{
    for (uint64_t seed = 1; seed <= 3; seed++)
        TEST_CHECK(stage_run(&(struct stage){.seed = seed}, one_state_body) == 0);
}

/* ---- whoever ends leaves none behind ---- */

static actor_pid watcher;
static _Atomic int way;
static volatile int *volatile nowhere;

/* What it is for is a fault: the sanitizers would say so first. */
__attribute__((noinline, no_sanitize("address", "undefined", "thread"))) static void store_nowhere(void)
{
    *nowhere = 1;
}

static void hold_and_end(void *arg)
{
    struct view *views[3];
    for (int i = 0; i < 3; i++)
        EXPECT((views[i] = view_open(stage_store)) != NULL);
    view_close(views[1]);
    (void)arg;
    stage_note(watcher, 1);
    switch ((int)way) {
    case 'k':
        actor_sleep(DEADLINE_NONE);
        break;
    case 'f':
        store_nowhere();
        break;
    case 'e':
        actor_fail(1, "enough");
    default: /* its function ends */
        break;
    }
}

static void endings_body(void)
{
    static const struct {
        char way;
        enum reason_kind why;
    } ways[] = {{'k', REASON_KILLED}, {'e', REASON_ERROR}, {'n', REASON_NORMAL}, {'f', REASON_CRASH}};
    watcher = actor_self();
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        for (uint32_t on = 0; on < 2; on++) {
            way = ways[i].way;
            uint64_t ref;
            actor_pid pid = stage_doll(SPAWN_ON(on), hold_and_end, NULL);
            ref = actor_monitor(pid, 0);
            EXPECT(ref != 0);
            (void)stage_noted();
            if (way == 'k')
                EXPECT(views_count(stage_store) == 2);
            if (way == 'k')
                actor_kill(pid);
            struct reason why = stage_ended(pid);
            EXPECT(why.kind == ways[i].why || why.kind == REASON_NOPROC);
            EXPECT(views_count(stage_store) == 0);
        }
}

/* The monitor was there before: by the time DOWN is read, everything is closed. */
static void before_down_body(void)
{
    uint32_t type;
    watcher = actor_self();
    way = 'k';
    for (uint32_t i = 0; i < 20; i++) {
        actor_pid pid = stage_doll(SPAWN_ON(i % 2), hold_and_end, NULL);
        EXPECT(actor_monitor(pid, 0) != 0);
        (void)stage_noted();
        actor_kill(pid);
        while (!stage_mail(&type))
            actor_yield();
        EXPECT(type == MESSAGE_DOWN && views_count(stage_store) == 0);
    }
}

static void test_closed_before_down(void)
{
    for (uint64_t seed = 1; seed <= 10; seed++)
        TEST_CHECK(stage_run(&(struct stage){.seed = seed}, before_down_body) == 0);
    TEST_CHECK(stage_run(&(struct stage){.real = true}, before_down_body) == 0);
    TEST_CHECK(stage_run(&(struct stage){.real = true}, endings_body) == 0);
}

/* ---- pages are used again ---- */

static off_t used_bytes(void)
{
    MDB_envinfo info;
    mdb_env_info(stage_store->environment.mdb, &info);
    return (off_t)((info.me_last_pgno + 1) * stage_store->environment.page_size);
}

static void overwrite(uint32_t times)
{
    struct outbox_claim_command claim = {.partition = 1};
    for (uint32_t i = 0; i < times; i++) {
        claim.holder = i;
        EXPECT(batch_one(stage_store, &outbox_claim_class, i + 1, &claim, NULL) == OK);
    }
}

/* Views that were killed keep no pages: after them the file stays as large as it was. */
static void reuse_body(void)
{
    watcher = actor_self();
    way = 'k';
    for (uint32_t i = 0; i < 8; i++) {
        actor_pid pid = stage_doll(SPAWN_ON(i % 2), hold_and_end, NULL);
        (void)stage_noted();
        overwrite(10);
        actor_kill(pid);
        (void)stage_ended(pid);
    }
    overwrite(2000); /* some of them lie fallow (store/fallow.h) */
    off_t before = used_bytes();
    overwrite(20000);
    EXPECT(used_bytes() == before);
    EXPECT(stage_mail(&(uint32_t){0}) == false);
}

/* The counter-test: a view that is held does make it grow. */
static void held_grows_body(void)
{
    overwrite(100);
    off_t before = used_bytes();
    struct view *view = view_open(stage_store);
    overwrite(1000);
    EXPECT(used_bytes() > before + 1000 * 4096);
    view_close(view);
}

/* Things of all sizes come and go while views are open now and then, some of them killed: the file stays within a factor
 * of what lives, whatever has been before. */
enum { LIVING = 300, TURNS = 4000, HELD = 25, LARGEST = 12000 };
#define FACTOR 3
#define SPARE  (4 << 20) /* HELD turns of three commits of some ten pages each, twice */

static uint64_t chance;
static uint32_t pick(uint32_t below)
{
    chance = chance * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(chance >> 33) % below;
}

static enum error send_sized(uint64_t number, uint32_t size)
{
    static const char body[LARGEST];
    struct parcel_send send = {.id = stage_id(number), .body = span_of(body, size)};
    return batch_one(stage_store, &parcel_send_class, number + 1, &send, NULL);
}

static enum error end_of(uint64_t number)
{
    struct parcel_move move = {.id = stage_id(number), .event = PARCEL_LOSE};
    struct parcel_drop gone = {.id = stage_id(number)};
    enum error e = batch_one(stage_store, &parcel_move_class, number + 1, &move, NULL);
    return e ? e : batch_one(stage_store, &parcel_drop_class, number + 1, &gone, NULL);
}

static void churn_body(void)
{
    static uint32_t sizes[LIVING + TURNS];
    uint64_t live = 0;
    off_t most[2] = {0};
    actor_pid holder = 0;
    watcher = actor_self();
    way = 'k';
    chance = 1;
    for (uint32_t i = 0; i < LIVING + TURNS; i++) {
        sizes[i] = pick(4) ? pick(600) : pick(LARGEST);
        EXPECT(send_sized(i, sizes[i]) == OK);
        live += sizes[i];
        if (i < LIVING)
            continue;
        EXPECT(end_of(i - LIVING) == OK);
        live -= sizes[i - LIVING];
        off_t used = used_bytes();
        most[i >= LIVING + TURNS / 2] =
            used > most[i >= LIVING + TURNS / 2] ? used : most[i >= LIVING + TURNS / 2];
        if (i % HELD == 0) {
            if (holder) {
                actor_kill(holder);
                (void)stage_ended(holder);
            }
            holder = stage_doll(SPAWN_ON(i % 2), hold_and_end, NULL);
            (void)stage_noted();
        }
    }
    actor_kill(holder);
    (void)stage_ended(holder);
    EXPECT((uint64_t)most[0] < FACTOR * live + SPARE && (uint64_t)most[1] < FACTOR * live + SPARE);
    EXPECT(most[1] <= most[0] + most[0] / 4);
}

static void test_S4_the_file_is_bounded_by_what_lives(void)
{
    TEST_CHECK(stage_run(&(struct stage){.seed = 1}, churn_body) == 0);
}

static void test_pages_are_used_again(void)
{
    TEST_CHECK(stage_run(&(struct stage){.seed = 1}, reuse_body) == 0);
    TEST_CHECK(stage_run(&(struct stage){.seed = 1}, held_grows_body) == 0);
}

/* ---- limits ---- */

static void limits_body(void)
{
    struct view *views[VIEWS_PER_LANE];
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < VIEWS_PER_LANE; i++)
            EXPECT((views[i] = view_open(stage_store)) != NULL);
        EXPECT(view_open(stage_store) == NULL && views_count(stage_store) == VIEWS_PER_LANE);
        view_close(views[7]);
        EXPECT((views[7] = view_open(stage_store)) != NULL);
        for (uint32_t i = 0; i < VIEWS_PER_LANE; i++)
            view_close(views[i]);
        EXPECT(views_count(stage_store) == 0);
    }
}

static void test_limits(void)
{
    TEST_CHECK(stage_run(&(struct stage){.seed = 1}, limits_body) == 0);
}

/* ---- the same lane for all actors of a scheduler, who are switched out anywhere ---- */

enum { CROWD = 8, ROUNDS = 20000 };

static void compute(void)
{
    for (volatile int i = 0; i < 500; i++)
        ;
}

static void open_and_close(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        struct view *view = view_open(stage_store);
        EXPECT(view != NULL && view->owner == actor_self());
        compute();
        if (view)
            view_close(view);
    }
}

static void spin(void *arg)
{
    (void)arg;
    for (;;) { /* killed wherever it is */
        struct view *view = view_open(stage_store);
        compute();
        if (view)
            view_close(view);
    }
}

static void crowd_body(void)
{
    actor_pid crowd[CROWD], spinners[4];
    for (uint32_t i = 0; i < CROWD; i++)
        crowd[i] = stage_doll(SPAWN_ON(i % 2), open_and_close, NULL);
    for (uint32_t round = 0; round < 100; round++) {
        for (uint32_t i = 0; i < 4; i++)
            spinners[i] = stage_doll(SPAWN_ON(i % 2), spin, NULL);
        actor_sleep(actor_now() + 200000);
        for (uint32_t i = 0; i < 4; i++)
            actor_kill(spinners[i]);
        for (uint32_t i = 0; i < 4; i++)
            (void)stage_ended(spinners[i]);
    }
    for (uint32_t i = 0; i < CROWD; i++)
        (void)stage_ended(crowd[i]);
    EXPECT(views_count(stage_store) == 0);
    limits_body(); /* none was lost */
}

static void test_switched_out_anywhere(void)
{
    if (SANITIZED) {
        TEST_MSG("nobody is switched out under a sanitizer, and those who spin would spin for ever");
        return;
    }
    TEST_CHECK(stage_run(&(struct stage){.real = true}, crowd_body) == 0);
}

/* ---- while the map grows ---- */

static _Atomic bool over;
static _Atomic uint64_t opened, refused;

static void come_and_go(void *arg)
{
    (void)arg;
    while (!over) {
        struct view *view = view_open(stage_store);
        if (view) {
            (void)sees(view, 0);
            view_close(view);
        }
        atomic_fetch_add(view ? &opened : &refused, 1);
        actor_yield();
    }
}

static void grow_body(void)
{
    actor_pid readers[4];
    over = false;
    opened = refused = 0;
    stage_writer();
    for (uint32_t i = 0; i < 4; i++)
        readers[i] = stage_doll(SPAWN_ON(i % 2), come_and_go, NULL);
    for (uint64_t i = 0; i < 150; i++)
        EXPECT(stage_send(i, 30000) == OK);
    while (opened < 1000)
        actor_yield();
    over = true;
    for (uint32_t i = 0; i < 4; i++)
        (void)stage_ended(readers[i]);
    EXPECT(refused == 0 && stage_store->grown >= 2);
    for (uint64_t i = 0; i < 150; i++)
        EXPECT(stage_find(i) == OK);
}

static void test_the_map_grows(void)
{
    TEST_CHECK(stage_run(&(struct stage){.real = true, .map = 1 << 20, .step = 1 << 16}, grow_body) == 0);
}

/* From plain threads, stopping and letting in as fast as it goes: nobody is turned away. */
static void *stop_and_go(void *arg)
{
    struct store *store = arg;
    while (!over) {
        EXPECT(views_stop(store, 600 * NS_PER_S));
        views_go_on(store);
        opened = 1;
    }
    return NULL;
}

static void stop_and_go_body(void)
{
    pthread_t thread;
    over = false;
    opened = 0;
    EXPECT(pthread_create(&thread, NULL, stop_and_go, stage_store) == 0);
    while (!opened)
        actor_yield();
    for (int i = 0; i < 3000; i++) { /* each may have to sleep for a ms */
        struct view *view = view_open_outside(stage_store, 3);
        EXPECT(view != NULL);
        if (view)
            view_close(view);
    }
    over = true;
    pthread_join(thread, NULL);
}

static void test_stop_and_go(void)
{
    TEST_CHECK(stage_run(&(struct stage){.real = true}, stop_and_go_body) == 0);
}

/* ---- a view that is held while the map must grow ---- */

static void send_many(void *arg)
{
    for (uint64_t i = 0; i < 40; i++)
        EXPECT(stage_send(i, 30000) == OK);
    stage_note(watcher, (uint64_t)(uintptr_t)arg);
}

static void held_body(void)
{
    watcher = actor_self();
    stage_writer();
    struct view *view = view_open(stage_store);
    actor_pid sender = stage_doll(SPAWN_ON(1), send_many, (void *)(uintptr_t)7);
    actor_sleep(actor_now() + NS_PER_S); /* the virtual clock: by now it waits for us */
    EXPECT(actor_alive(sender) && stage_store->grown == 0 && scanned(view) == 0);
    view_close(view);
    EXPECT(stage_noted() == 7 && stage_store->grown == 1);
}

static void test_growing_waits(void)
{
    for (uint64_t seed = 1; seed <= 5; seed++)
        TEST_CHECK(stage_run(&(struct stage){.seed = seed, .map = 1 << 20, .step = 1 << 16}, held_body) == 0);
}

static void hold_for_ever(void *arg)
{
    struct view *view = view_open(stage_store);
    EXPECT(view != NULL);
    stage_note(watcher, 1);
    for (;;) {
        if (arg) /* it hears what it is told, and holds on */
            (void)actor_receive(NULL, NULL, DEADLINE_NONE);
        else
            actor_sleep(DEADLINE_NONE);
    }
}

/* Without a keeper: the writer waits for the view and ends whoever keeps it. */
static void held_for_ever_body(void)
{
    watcher = actor_self();
    stage_writer();
    for (int traps = 0; traps < 2; traps++) {
        actor_pid holder = traps ? stage_trapper(SPAWN_ON(0), hold_for_ever, &watcher)
                                 : stage_doll(SPAWN_ON(0), hold_for_ever, NULL);
        uint64_t grown = stage_store->grown, began = actor_now();
        (void)stage_noted();
        for (uint64_t i = 0; stage_store->grown == grown; i++)
            EXPECT(stage_send((uint64_t)traps * 1000 + i, 30000) == OK);
        EXPECT(!actor_alive(holder) && views_count(stage_store) == 0);
        uint64_t took = actor_now() - began;
        EXPECT(took > 5 * NS_PER_S && took < 5 * NS_PER_S + VIEWS_STOP_MARGIN_NS);
    }
}

static void test_who_holds_it_for_ever(void)
{
    for (uint64_t seed = 1; seed <= 5; seed++)
        TEST_CHECK(stage_run(&(struct stage){.seed = seed, .map = 1 << 20, .step = 1 << 16},
                             held_for_ever_body) == 0);
}

/* A parcel asked for, whose answer nobody waits for. */
static void request_parcel(actor_pid writer, uint64_t number)
{
    static const char body[30000];
    static char bytes[31000];
    struct parcel_send send = {.id = stage_id(number), .body = span_of(body, sizeof(body))};
    struct writer_command head = {.at_us = 1, .code = parcel_send_class.code};
    memcpy(bytes, &head, sizeof(head));
    size_t size =
        record_encode(parcel_send_class.record, &send, bytes + sizeof(head), sizeof(bytes) - sizeof(head));
    uint64_t ref;
    EXPECT(actor_request(writer, message_of(WRITER_COMMAND, bytes, sizeof(head) + size), &ref) == OK);
}

/* A writer that is killed while it waits for a view to go lets the others in. */
static void killed_while_growing_body(void)
{
    actor_pid writer = stage_writer();
    struct view *view = view_open(stage_store), *second;
    for (uint64_t i = 0; i < 60; i++)
        request_parcel(writer, i);
    actor_sleep(actor_now() + NS_PER_S);
    EXPECT(stage_store->grown == 0);
    stage_kill(writer);
    EXPECT((second = view_open(stage_store)) != NULL);
    if (second)
        view_close(second);
    view_close(view);
    stage_writer();
    for (uint64_t i = 100; i < 160; i++)
        EXPECT(stage_send(i, 30000) == OK);
    EXPECT(stage_store->grown > 0);
}

static void test_killed_while_growing(void)
{
    for (uint64_t seed = 1; seed <= 5; seed++)
        TEST_CHECK(stage_run(&(struct stage){.seed = seed, .map = 1 << 20, .step = 1 << 16},
                             killed_while_growing_body) == 0);
}

/* ---- a disk that is full while a view is open ---- */

/* Files may not grow any more, or may again. */
static void disk_full(bool full)
{
    struct rlimit limit;
    struct stat file;
    EXPECT(fstat(stage_store->environment.data_fd, &file) == 0 && getrlimit(RLIMIT_FSIZE, &limit) == 0);
    (void)signal(SIGXFSZ, SIG_IGN);
    limit.rlim_cur = full ? (rlim_t)file.st_size : limit.rlim_max;
    EXPECT(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

/* The number of the first parcel that is refused. */
static uint64_t fill_up(uint64_t from, uint32_t size)
{
    enum error e = OK;
    uint64_t i = from;
    disk_full(true);
    while (e == OK && i < from + 1000)
        e = stage_send(i++, size);
    EXPECT(e == ERR_NO_SPACE && store_state(stage_store) == STORE_TIGHT && stage_store->environment.limited);
    return i - 1;
}

/* The map ends where the file ended; with room again, it may be larger as soon as nobody looks. */
static void room_again_body(void)
{
    watcher = actor_self();
    stage_writer();
    (void)fill_up(1000, 3000);
    struct view *view = view_open(stage_store);
    disk_full(false);
    actor_pid sender = stage_doll(SPAWN_ON(1), send_many, (void *)(uintptr_t)7);
    actor_sleep(actor_now() + NS_PER_S); /* the virtual clock: by now it waits for us */
    EXPECT(actor_alive(sender) && store_state(stage_store) == STORE_OPEN);
    view_close(view);
    EXPECT(stage_noted() == 7 && !stage_store->environment.limited);
}

static void test_room_again(void)
{
    for (uint64_t seed = 1; seed <= 5; seed++)
        TEST_CHECK(
            stage_run(&(struct stage){.seed = seed, .step = 1 << 16, .reserve = 4096}, room_again_body) == 0);
}

static enum error move_or_drop(uint64_t number, bool drop)
{
    struct parcel_move move = {.id = stage_id(number), .event = PARCEL_LOSE};
    struct parcel_drop gone = {.id = stage_id(number)};
    return drop ? store_submit(&parcel_drop_class, &gone, NULL, 0, NULL, actor_deadline_ms(60000))
                : store_submit(&parcel_move_class, &move, NULL, 0, NULL, actor_deadline_ms(60000));
}

/* What is removed stays as long as the view sees it. That the map can't grow is known before anybody is stopped. */
static void no_room_body(void)
{
    enum { OLD = 60 };
    stage_writer();
    for (uint64_t i = 0; i < OLD; i++)
        EXPECT(stage_send(i, 3000) == OK && move_or_drop(i, false) == OK);
    (void)fill_up(1000, 3000);
    struct view *view = view_open(stage_store);
    uint64_t began = actor_now(), i = 0;
    enum error e = OK;
    while (e == OK && i < OLD)
        e = move_or_drop(i++, true);
    EXPECT(e == ERR_NO_SPACE && actor_now() - began < NS_PER_S);
    EXPECT(scanned(view) > 0);
    view_close(view);
    EXPECT(move_or_drop(i - 1, true) == OK);
    disk_full(false);
}

static void test_no_room(void)
{
    for (uint64_t seed = 1; seed <= 5; seed++)
        TEST_CHECK(stage_run(&(struct stage){.seed = seed, .step = 1 << 16, .reserve = 4096}, no_room_body) ==
                   0);
}

TEST_LIST
= {
    {"a view is one state while the writer goes on", test_one_state},
    {"closed before DOWN, however its actor ends", test_closed_before_down},
    {"pages behind closed views are used again", test_pages_are_used_again},
    {"S4_the_file_is_bounded_by_what_lives", test_S4_the_file_is_bounded_by_what_lives},
    {"as many as a lane has, and then again", test_limits},
    {"actors are switched out and killed anywhere", test_switched_out_anywhere},
    {"D3 the map grows while views come and go", test_the_map_grows},
    {"D3 stopped and let in, nobody is turned away", test_stop_and_go},
    {"D3 growing waits for a view", test_growing_waits},
    {"D3 who holds a view for ever is ended by the writer", test_who_holds_it_for_ever},
    {"D3 a writer killed while growing lets everybody in", test_killed_while_growing},
    {"D2 a disk that gets room while a view is open", test_room_again},
    {"D2 without room nobody is stopped in order to grow", test_no_room},
    {NULL, NULL},
};
