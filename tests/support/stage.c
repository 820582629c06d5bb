#define TEST_NO_MAIN
#include "acutest.h"

#include "tests/support/stage.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/scheduler.h"

struct store *stage_store;
char stage_dir[256];

static void (*body_now)(void);
static bool finished;

/* ---- what is said, by any thread ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char failures[4000];
static char log_text[1 << 18];
static size_t log_used;

void stage_failed(const char *what, const char *file, int line)
{
    pthread_mutex_lock(&lock);
    size_t used = strlen(failures);
    snprintf(failures + used, sizeof(failures) - used, "%s:%d: %s\n", file, line, what);
    pthread_mutex_unlock(&lock);
}

static void take_log(const char *line, size_t size)
{
    pthread_mutex_lock(&lock);
    if (log_used + size + 2 < sizeof(log_text)) {
        memcpy(log_text + log_used, line, size);
        log_used += size;
        log_text[log_used++] = '\n';
    }
    pthread_mutex_unlock(&lock);
}

size_t stage_logged(const char *text)
{
    size_t count = 0;
    pthread_mutex_lock(&lock);
    log_text[log_used] = 0;
    for (const char *at = log_text; (at = strstr(at, text)) != NULL; at++)
        count++;
    pthread_mutex_unlock(&lock);
    return count;
}

/* ---- the store ---- */

static void tell_finding(void *context, const char *finding)
{
    (void)context;
    TEST_CHECK_(false, "%s", finding);
}

static void check_sound(void)
{
    struct check_report report = {0};
    struct view *view = view_open_outside(stage_store, 0);
    TEST_ASSERT(view != NULL);
    TEST_CHECK(check_rows(&view->txn, stage_store->schema, tell_finding, NULL, &report) == OK);
    view_close(view);
}

static void open_store(const struct stage *stage, struct env *env)
{
    char text[512] = "";
    parcel_install();
    if (stage->dir)
        snprintf(stage_dir, sizeof(stage_dir), "%s", stage->dir);
    else
        snprintf(stage_dir, sizeof(stage_dir), "%s/coppice-stage-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    TEST_ASSERT(stage->dir || mkdtemp(stage_dir) != NULL);
    struct store_options options = {.environment = {.dir = stage_dir,
                                                    .map = stage->map ? stage->map : 64u << 20,
                                                    .map_max = stage->map_max,
                                                    .step = stage->step ? stage->step : 1u << 20,
                                                    .reserve = stage->reserve ? stage->reserve : 1u << 20,
                                                    .whole_max = stage->whole_max,
                                                    .birth = {1, 2, 3}},
                                    .schema = stage->schema ? stage->schema : &parcel_store_schema,
                                    .view_age_ns = stage->view_age_ns,
                                    .env = env};
    enum error e = store_open(&options, &stage_store, text, sizeof(text));
    TEST_ASSERT_(e == OK, "%s: %s", error_name(e), text);
    store_install(stage_store);
}

static void close_store(const struct stage *stage)
{
    static const char *const files[] = {"data.mdb", "lock.mdb", "coppice.lock"};
    char path[300];
    TEST_CHECK_(views_count(stage_store) == 0, "%u views are left", views_count(stage_store));
    if (!stage->unsound)
        check_sound();
    store_close(stage_store);
    stage_store = NULL;
    if (stage->dir)
        return;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", stage_dir, files[i]);
        unlink(path);
    }
    TEST_CHECK_(rmdir(stage_dir) == 0, "%s is left", stage_dir);
}

/* ---- the root ---- */

static void end_name(const char *name)
{
    actor_pid pid = actor_whereis(name);
    if (!pid)
        return;
    actor_kill(pid);
    (void)stage_ended(pid);
}

static enum actor_step root_init(void *state, const void *args, size_t args_size)
{
    (void)state;
    (void)args;
    (void)args_size;
    return ACTOR_PROCEED;
}

static enum actor_step root_proceed(void *state)
{
    (void)state;
    body_now();
    end_name(KEEPER_NAME);
    end_name(WRITER_NAME);
    finished = true;
    return ACTOR_STOP;
}

static enum actor_step root_handle(void *state, struct message *m)
{
    (void)state;
    (void)m;
    return ACTOR_CONTINUE;
}

static const struct actor_class root_class = {
    .name = "root",
    .init = root_init,
    .proceed = root_proceed,
    .handle = root_handle,
    .trap_exits = true,
    .stack_size = 1 << 20,
    .mailbox_capacity = 1 << 20,
    .runaway_ns = DEADLINE_NONE,
};

static struct sim *sim; /* NULL: real */

void stage_clock_jump(int64_t ns)
{
    ASSERT(sim);
    sim_clock_jump(sim, ns);
}

int stage_run(const struct stage *stage, void (*body)(void))
{
    char text[256] = "";
    int status;
    struct runtime_options options = {
        .schedulers = stage->schedulers ? stage->schedulers : 2, .dedicated = 1, .log = take_log};
    struct runtime *rt;
    body_now = body;
    finished = false;
    log_used = 0;
    if (stage->real) {
        rt = runtime_create(&options, text, sizeof(text));
    } else {
        sim = sim_create(&(struct sim_options){
            .seed = stage->seed ? stage->seed : 1, .schedulers = options.schedulers, .runtime = options});
        rt = sim_runtime(sim);
    }
    TEST_ASSERT_(rt != NULL, "%s", text);
    open_store(stage, sim ? rt->env : NULL);
    TEST_ASSERT(runtime_spawn(rt, &(struct spawn_options){.class = &root_class}, NULL) == OK);
    if (sim) {
        sim_run(sim, 200000000);
        status = sim_exit_status(sim);
        stage_store->env = env_real(); /* the simulation's goes with it */
        sim_destroy(sim);
        sim = NULL;
    } else {
        status = runtime_run(rt);
        runtime_destroy(rt);
    }
    TEST_CHECK_(finished || status != 0, "the body didn't come to its end");
    TEST_CHECK_(!failures[0], "%s", failures);
    failures[0] = 0;
    close_store(stage);
    return status;
}

/* ---- by the body ---- */

static actor_pid begin(const struct actor_class *class, const char *name, int scheduler)
{
    struct start_result result = {.pid = 0};
    enum error e = actor_start(&(struct spawn_options){.class = class, .name = name, .scheduler = scheduler},
                               &result, DEADLINE_NONE);
    EXPECT(e == OK);
    return result.pid;
}

actor_pid stage_writer(void)
{
    return begin(&writer_class, WRITER_NAME, SPAWN_DEDICATED(0));
}

actor_pid stage_keeper(void)
{
    return begin(&keeper_class, KEEPER_NAME, SPAWN_HERE);
}

void stage_settle(void)
{
    actor_sleep(actor_now() + 1); /* the virtual clock moves when nobody can run */
}

enum { RUN = 1, NOTE };
struct order {
    void (*run)(void *arg);
    void *arg;
};

static enum actor_step doll_handle(void *state, struct message *m)
{
    struct order *order = m->type == RUN ? message_body(m, sizeof(*order)) : NULL;
    (void)state;
    if (!order)
        return ACTOR_CONTINUE;
    order->run(order->arg);
    return ACTOR_STOP;
}

static const struct actor_class doll_class = {
    .name = "doll", .handle = doll_handle, .stack_size = 256 * 1024, .runaway_ns = DEADLINE_NONE};
static const struct actor_class trapper_class = {.name = "trapper",
                                                 .handle = doll_handle,
                                                 .stack_size = 256 * 1024,
                                                 .trap_exits = true,
                                                 .runaway_ns = DEADLINE_NONE};

static actor_pid spawn_to_run(const struct actor_class *class, int scheduler, void (*run)(void *), void *arg)
{
    struct order order = {run, arg};
    actor_pid pid = 0;
    EXPECT(actor_spawn(&(struct spawn_options){.class = class, .scheduler = scheduler}, &pid) == OK);
    EXPECT(actor_cast(pid, RUN, &order, sizeof(order)) == OK);
    return pid;
}

actor_pid stage_doll(int scheduler, void (*run)(void *arg), void *arg)
{
    return spawn_to_run(&doll_class, scheduler, run, arg);
}

actor_pid stage_trapper(int scheduler, void (*run)(void *arg), void *arg)
{
    return spawn_to_run(&trapper_class, scheduler, run, arg);
}

static bool is_down(const struct message *m, void *arg)
{
    return m->type == MESSAGE_DOWN &&
           ((const struct message_down *)(const void *)m->payload)->ref == *(uint64_t *)arg;
}

static struct reason down(uint64_t ref)
{
    struct message *m = actor_receive(is_down, &ref, DEADLINE_NONE);
    struct reason why = ((struct message_down *)(void *)m->payload)->reason;
    why.detail = NULL;
    message_free(m);
    return why;
}

struct reason stage_ended(actor_pid pid)
{
    return down(actor_monitor(pid, 0));
}

void stage_kill(actor_pid pid)
{
    uint64_t ref = actor_monitor(pid, 0);
    actor_kill(pid);
    EXPECT(down(ref).kind == REASON_KILLED);
}

void stage_note(actor_pid to, uint64_t value)
{
    EXPECT(actor_cast(to, NOTE, &value, sizeof(value)) == OK);
}

static bool is_note(const struct message *m, void *arg)
{
    (void)arg;
    return m->type == NOTE;
}

uint64_t stage_noted(void)
{
    uint64_t value;
    struct message *m = actor_receive(is_note, NULL, DEADLINE_NONE);
    memcpy(&value, m->payload, sizeof(value));
    message_free(m);
    return value;
}

bool stage_mail(uint32_t *ret_type)
{
    struct message *m = actor_receive(NULL, NULL, 0);
    if (!m)
        return false;
    *ret_type = m->type;
    message_free(m);
    return true;
}

/* ---- parcels ---- */

struct uuid stage_id(uint64_t number)
{
    struct uuid id = {{0}};
    uint64_t big = __builtin_bswap64(number);
    id.bytes[0] = 1;
    memcpy(id.bytes + 8, &big, sizeof(big));
    return id;
}

enum error stage_send(uint64_t number, uint32_t body_size)
{
    static const char body[PARCEL_BODY_MAX];
    char answer[64];
    size_t size = 0;
    struct parcel_send send = {.id = stage_id(number), .body = span_of(body, body_size)};
    enum error e = store_submit(&parcel_send_class, &send, answer, sizeof(answer), &size, DEADLINE_NONE);
    EXPECT(e != OK || (size == 17 && memcmp(answer, &send.id, sizeof(send.id)) == 0));
    return e;
}

enum error stage_find(uint64_t number)
{
    struct uuid id = stage_id(number);
    struct key key = key_of_uuid(&id);
    struct parcel parcel;
    struct view *view = view_open(stage_store);
    if (!view)
        return ERR_UNAVAILABLE;
    enum error e = txn_read(&view->txn, TABLE_PARCELS, key_span(&key), &parcel);
    view_close(view);
    return e;
}
