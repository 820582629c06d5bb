#define _GNU_SOURCE
#include "tests/bench/load.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "runtime/runtime.h"
#include "store/writer.h"
#include "tests/bench/bench.h"
#include "tests/bench/disk.h"
#include "tests/bench/limits.h"
#include "tests/support/parcel.h"

#define WARM_NS     (40 * NS_PER_MS)
#define PACE_NS     (2 * NS_PER_MS)
#define ANSWER_MS   10000
#define LATENCY_MAX (1u << 20) /* of one load: more are not remembered */
#define IDS_BEFORE  (1u << 24) /* parcels may have negative numbers, too */

static uint8_t body[LIMITS_BODY];

/* ---- a store, and one parcel of it ---- */

struct store *load_open(const char *folder)
{
    static bool installed;
    struct store *store;
    char text[512];
    struct store_options options = {.environment = {.dir = folder}, .schema = &parcel_store_schema};
    if (!installed)
        parcel_install();
    installed = true;
    enum error e = store_open(&options, &store, text, sizeof(text));
    if (e)
        bench_fail("%s: %s", error_name(e), text);
    for (size_t i = 0; i < sizeof(body); i++)
        body[i] = (uint8_t)(i * 31 + i / 64);
    return store;
}

static void fill_parcel(struct parcel_send *parcel, const struct uuid *id, char key[UUID_TEXT_SIZE])
{
    static const char scope[] = "tenant-000000017";
    _Static_assert(sizeof(scope) - 1 == LIMITS_SCOPE, "as the yardstick writes it");
    _Static_assert(UUID_TEXT_SIZE - 1 == LIMITS_KEY, "as the yardstick writes it");
    uuid_format(id, key);
    *parcel = (struct parcel_send){.id = *id,
                                   .scope = span_of(scope, LIMITS_SCOPE),
                                   .key = span_of(key, LIMITS_KEY),
                                   .body = span_of(body, sizeof(body))};
    memcpy(parcel->digest.bytes, id->bytes, sizeof(id->bytes));
}

/* ---- written at once ---- */

static uint64_t wall_us(void)
{
    return env_real()->wall(env_real()) / NS_PER_US;
}

struct uuid load_id(uint64_t i)
{
    struct uuid id = {.bytes = {0x01, 0x90, 0, 0, 0, 0, 0x70, 0, 0x80}};
    uint64_t number = i + IDS_BEFORE, rest = number * 0x9e3779b97f4a7c15u;
    uint32_t ms = __builtin_bswap32((uint32_t)(number / 16));
    memcpy(id.bytes + 2, &ms, sizeof(ms));
    id.bytes[7] = (uint8_t)(number % 16);
    memcpy(id.bytes + 9, &rest, 7);
    return id;
}

void load_write(struct store *store, uint64_t from, uint64_t count, uint32_t group)
{
    enum { ENCODED = LIMITS_BODY + 256 };
    struct batch_item *items = calloc(group, sizeof(*items));
    uint8_t *bytes = malloc((size_t)group * ENCODED);
    if (!items || !bytes)
        bench_fail("no memory for a batch of %u", group);
    if (store_load(store))
        bench_fail("the ledger can't be read");
    for (uint64_t done = 0; done < count;) {
        uint32_t n = count - done < group ? (uint32_t)(count - done) : group;
        for (uint32_t i = 0; i < n; i++) {
            char key[UUID_TEXT_SIZE];
            struct parcel_send parcel;
            struct uuid id = load_id(from + done + i);
            uint8_t *at = bytes + (size_t)i * ENCODED;
            fill_parcel(&parcel, &id, key);
            size_t size = record_encode(parcel_send_class.record, &parcel, at, ENCODED);
            items[i] = (struct batch_item){
                .class = &parcel_send_class, .at_us = wall_us(), .bytes = span_of(at, size)};
        }
        enum error e = batch_run(store, items, n);
        for (uint32_t i = 0; i < n && !e; i++)
            e = items[i].answer.error;
        if (e)
            bench_fail("writing parcels: %s", error_name(e));
        done += n;
    }
    free(items);
    free(bytes);
}

/* ---- submitters: all of them on one scheduler, so what they share needs no locks ---- */

static struct {
    struct store *store;
    uint32_t submitters, ended;
    bool (*going)(void *arg);
    void *arg;
    struct load *result;
    struct uuid_source ids;
    bool measuring, stop, done;
    uint64_t served; /* from the beginning */
    uint64_t answered, latencies_count;
    uint64_t *latencies;
    _Atomic int writer_thread;
    int null_fd;
} now;

static struct uuid next_id(void)
{
    actor_guard_begin(); /* nobody else in between */
    struct uuid id = uuid_v7(&now.ids);
    actor_guard_end();
    return id;
}

static void submit_one(void)
{
    char key[UUID_TEXT_SIZE];
    uint8_t answer[64];
    size_t size;
    struct parcel_send parcel;
    struct uuid id = next_id();
    fill_parcel(&parcel, &id, key);
    uint64_t started = bench_now();
    enum error e = store_submit(&parcel_send_class, &parcel, answer, sizeof(answer), &size,
                                actor_deadline_ms(ANSWER_MS));
    if (e || size != 17)
        bench_fail("a submitter got %s, %zu bytes", error_name(e), size);
    now.served++;
    if (!now.measuring)
        return;
    now.answered++;
    if (now.latencies_count < LATENCY_MAX)
        now.latencies[now.latencies_count++] = bench_now() - started;
}

static enum actor_step submitter_init(void *state, const void *args, size_t size)
{
    (void)state, (void)args, (void)size;
    return ACTOR_PROCEED;
}

static enum actor_step submitter_proceed(void *state)
{
    (void)state;
    while (!now.stop)
        submit_one();
    now.ended++;
    return ACTOR_STOP;
}

static enum actor_step ignore(void *state, struct message *m)
{
    (void)state, (void)m;
    return ACTOR_CONTINUE;
}

static const struct actor_class submitter_class = {.name = "submitter",
                                                   .init = submitter_init,
                                                   .proceed = submitter_proceed,
                                                   .handle = ignore,
                                                   .runaway_ns = DEADLINE_NONE};

/* On the writer's scheduler, to say which thread that is. */
static enum actor_step probe_init(void *state, const void *args, size_t size)
{
    (void)state, (void)args, (void)size;
    now.writer_thread = gettid();
    return ACTOR_IGNORE;
}

static const struct actor_class probe_class = {.name = "probe", .init = probe_init, .handle = ignore};

static uint64_t writer_cpu_ns(void)
{
    char path[64], text[128] = "";
    snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", now.writer_thread);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
        bench_fail("%s can't be read", path);
    close(fd);
    return strtoull(text, NULL, 10);
}

/* ---- the root ---- */

static void start_all(void)
{
    struct start_result result;
    int scheduler = SPAWN_ON(runtime_dedicated(0));
    enum error e = actor_start(&(struct spawn_options){.class = &probe_class, .scheduler = scheduler},
                               &result, actor_deadline_ms(ANSWER_MS));
    if (e != ERR_IGNORED)
        bench_fail("the probe: %s", error_name(e));
    e = actor_start(
        &(struct spawn_options){.class = &writer_class, .name = WRITER_NAME, .scheduler = scheduler}, &result,
        actor_deadline_ms(ANSWER_MS));
    if (e)
        bench_fail("the writer: %s", error_name(e));
    for (uint32_t i = 0; i < now.submitters; i++)
        bench_spawn(&submitter_class, NULL, 0, SPAWN_HERE);
}

static void measure(void)
{
    struct store *store = now.store;
    struct disk_counts disk = disk_counts();
    uint64_t commits = store->commits, commands = store->commands, cpu = writer_cpu_ns(),
             started = bench_now();
    now.measuring = true;
    do
        actor_sleep(actor_now() + PACE_NS);
    while (now.going(now.arg));
    now.measuring = false;
    uint64_t elapsed = bench_now() - started;
    struct disk_counts end = disk_counts();
    cpu = writer_cpu_ns() - cpu;
    commits = store->commits - commits;
    commands = store->commands - commands;
    if (!now.answered || !commits || !commands)
        bench_fail("nothing was answered");
    *now.result = (struct load){
        .rate = (double)now.answered * 1e9 / (double)elapsed,
        .p50_us = (double)bench_quantile(now.latencies, now.latencies_count, 0.5) / 1e3,
        .p99_us = (double)bench_quantile(now.latencies, now.latencies_count, 0.99) / 1e3,
        .cpu_us = (double)cpu / 1e3 / (double)commands,
        .sync_cpu_us = (double)(end.sync_cpu_ns - disk.sync_cpu_ns) / 1e3 / (double)commands,
        .group = (double)commands / (double)commits,
        .commit_bytes = (double)(end.bytes - disk.bytes) / (double)commits,
        .commit_writes = (double)(end.writes - disk.writes) / (double)commits,
        .commit_syncs = (double)(end.syncs - disk.syncs) / (double)commits,
    };
}

static enum actor_step root_proceed(void *state)
{
    (void)state;
    start_all();
    while (now.served < now.submitters) /* the writer reads the ledger's keys first */
        actor_sleep(actor_now() + PACE_NS);
    actor_sleep(actor_now() + WARM_NS);
    measure();
    now.stop = true;
    while (now.ended < now.submitters)
        actor_sleep(actor_now() + PACE_NS);
    now.done = true;
    return ACTOR_STOP;
}

static const struct actor_class root_class = {.name = "bench_root",
                                              .init = submitter_init,
                                              .proceed = root_proceed,
                                              .handle = ignore,
                                              .runaway_ns = DEADLINE_NONE};

static void log_line(const char *line, size_t size)
{
    (void)!write(now.null_fd, line, size);
}

void load_run(struct store *store, uint32_t submitters, bool (*going)(void *arg), void *arg,
              struct load *ret_load)
{
    static uint64_t *latencies;
    char text[256];
    ASSERT(submitters > 0 && submitters <= LOAD_SUBMITTERS_MAX);
    if (!latencies && !(latencies = malloc(LATENCY_MAX * sizeof(*latencies))))
        bench_fail("no memory for latencies");
    memset(&now, 0, sizeof(now));
    now.store = store, now.submitters = submitters, now.going = going, now.arg = arg;
    now.result = ret_load, now.latencies = latencies;
    now.null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    uuid_source_init(&now.ids, env_real());
    store_install(store);
    struct runtime *rt = runtime_create(
        &(struct runtime_options){.schedulers = 1, .dedicated = 1, .log = log_line}, text, sizeof(text));
    if (!rt)
        bench_fail("%s", text);
    enum error e = runtime_spawn(rt, &(struct spawn_options){.class = &root_class}, &(actor_pid){0});
    int status = e ? -1 : runtime_run(rt);
    if (!now.done || status != 0)
        bench_fail("the root ended early: spawn says %s, status %d", error_name(e), status);
    runtime_destroy(rt);
    close(now.null_fd);
}

struct time {
    uint64_t for_ns, until; /* 0: it hasn't begun */
};

static bool within(void *arg)
{
    struct time *time = arg;
    if (!time->until)
        time->until = bench_now() + time->for_ns;
    return bench_now() < time->until;
}

void load_run_for(struct store *store, uint32_t submitters, uint64_t ns, struct load *ret_load)
{
    load_run(store, submitters, within, &(struct time){.for_ns = ns}, ret_load);
}
