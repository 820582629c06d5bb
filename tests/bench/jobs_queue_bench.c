/* Jobs that wait: what a million of them cost, and whether they are in the way. Each has a payload of 1 KiB.
 *
 * They are written to the store by the command of a submit, in commits of 1,024 that are synced together, while no server has
 * it; the servers have no workers of their own.
 *
 * start: 100,000 queued, from exec to the first 200 of /readyz, again and again. queued_bytes: resident bytes that are no
 * file's, of a server with 1,000,000 queued, which has let 1,000 be claimed, beyond those of one with 1,000, by the million;
 * queued_file_bytes: blocks of the file, by the million. claim_flat: jobs claimed per second over HTTP, one at a time from
 * each of eight connections, out of 1,000,000, by the same out of 1,000, a hundred here, a hundred there; claim is the first of
 * these rates, claim.peer the other. fill is how many were written per second.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "store/batch.h"
#include "store/job_submit.h"
#include "tests/bench/bench.h"
#include "tests/bench/jobserver.h"
#include "tests/bench/limits.h"

#define TURNS     5
#define FEW       1000u
#define PIECES    10u /* of a turn: what the machine does meanwhile hits both */
#define STARTED   100000u
#define MANY      1000000u
#define CLAIMERS  8u
#define WORK_KIND "x.bench"
#define GROUP     BATCH_MAX
#define ENCODED   2048u

/* ---- filling a store ---- */

struct filling {
    struct store *store;
    struct batch_item *items;
    uint8_t *bytes;
    struct uuid client;
    struct uuid_source ids;
    char payload[QUEUE_BODY];
    uint64_t number;
};

static void fill_item(struct filling *f, uint32_t i)
{
    static const struct span none = {"", 0};
    uint8_t *at = f->bytes + (size_t)i * ENCODED;
    memcpy(f->payload + 1, queue_body(++f->number), 16);
    struct job_submit submit = {.id = uuid_v7(&f->ids),
                                .client = f->client,
                                .type = JOB_EXECUTE,
                                .kind = WORK_KIND_USER,
                                .kind_name = span_of(WORK_KIND, sizeof WORK_KIND - 1),
                                .callback = none,
                                .payload = span_of(f->payload, sizeof f->payload),
                                .key = none,
                                .repeat = none,
                                .request_id = none,
                                .trace = none,
                                .runtime_max_ms = 120000,
                                .payload_max = JOB_PAYLOAD_MAX,
                                .queue_max = UINT32_MAX};
    size_t size = record_encode(job_submit_class.record, &submit, at, ENCODED);
    f->items[i] = (struct batch_item){.class = &job_submit_class,
                                      .at_us = env_real()->wall(env_real()) / NS_PER_US,
                                      .bytes = span_of(at, size)};
}

static void fill_all(struct filling *f, uint32_t count)
{
    for (uint32_t done = 0; done < count;) {
        uint32_t n = count - done < GROUP ? count - done : GROUP;
        for (uint32_t i = 0; i < n; i++)
            fill_item(f, i);
        enum error e = batch_run(f->store, f->items, n);
        for (uint32_t i = 0; i < n && !e; i++)
            e = f->items[i].answer.error;
        if (e)
            bench_fail("submitting to a store: %s", error_name(e));
        done += n;
    }
}

/* So many jobs more for the first of the server's clients, whose process is not there. */
static void fill(const struct jobserver *server, uint32_t count)
{
    struct filling *f = calloc(1, sizeof *f);
    char folder[4200], text[512];
    if (!f || !(f->items = calloc(GROUP, sizeof *f->items)) || !(f->bytes = malloc(GROUP * ENCODED)))
        bench_fail("no memory");
    snprintf(folder, sizeof folder, "%s/store", server->daemon.folder);
    enum error e =
        store_open(&(struct store_options){.environment = {.dir = folder}}, &f->store, text, sizeof text);
    if (e || store_load(f->store))
        bench_fail("%s: %s", error_name(e), text);
    if (!uuid_parse(server->ids[0], strlen(server->ids[0]), &f->client))
        bench_fail("no id: %s", server->ids[0]);
    uuid_source_init(&f->ids, env_real());
    memcpy(f->payload, queue_body(0), sizeof f->payload);
    f->payload[0] = f->payload[sizeof f->payload - 1] = '"';
    int code = mdb_env_set_flags(f->store->environment.mdb, MDB_NOSYNC, 1); /* once at the end is enough */
    fill_all(f, count);
    code = code ? code : mdb_env_sync(f->store->environment.mdb, 1);
    if (code)
        bench_fail("filling a store: %s", mdb_strerror(code));
    store_close(f->store);
    free(f->items);
    free(f->bytes);
    free(f);
}

/* ---- claims ---- */

struct claims {
    struct jobserver *server;
    struct queue_counts counts;
};

static size_t claim(void *arg, uint32_t who, char *room)
{
    static const char body[] = "{\"kinds\":[\"" WORK_KIND "\"],\"max\":1,\"wait_ms\":0}";
    struct claims *c = arg;
    (void)who;
    return queue_next(&c->counts)
               ? jobserver_request(c->server->keys[0], "POST", "/v1/work:claim", body, room)
               : 0;
}

static size_t hear_claim(void *arg, uint32_t who, const char *bytes, size_t size, uint32_t *ret_done)
{
    struct claims *c = arg;
    int status;
    size_t head, whole = asker_answer(bytes, size, &status, &head);
    (void)who;
    if (!whole)
        return 0;
    if (status != 200 || !memmem(bytes + head, whole - head, "\"job_id\":", 9))
        bench_fail("a claim: %.*s", (int)whole, bytes);
    c->counts.finished++;
    *ret_done = 1;
    return whole;
}

static const struct crowd_talk claim_talk = {"claims", NULL, claim, hear_claim};

static bool claiming(void *arg)
{
    const struct claims *c = arg;
    return c->counts.finished < c->counts.jobs;
}

struct claimer {
    struct jobserver server;
    struct claims claims;
    struct crowd *crowd;
};

static void open_claimer(struct claimer *c)
{
    c->claims.server = &c->server;
    c->crowd = crowd_open(
        &(struct crowd_part){
            .port = c->server.daemon.port, .connections = CLAIMERS, .talk = &claim_talk, .arg = &c->claims},
        1);
}

/* A piece of a turn; how long it took. */
static uint64_t claim_piece(struct claimer *c)
{
    c->claims.counts.jobs += FEW / PIECES;
    uint64_t began = bench_now();
    crowd_run(c->crowd, 0, claiming, &c->claims, NULL);
    return bench_now() - began;
}

static bool submitting(void *arg)
{
    const struct jobserver_submits *m = arg;
    return m->answered < m->counts.jobs;
}

/* What was claimed is replaced. */
static void submit_few(struct claimer *c)
{
    static struct jobserver_submits m;
    m = (struct jobserver_submits){
        .server = &c->server, .work_kind = WORK_KIND, .clients = 1, .counts = {.jobs = FEW}};
    struct crowd *crowd = crowd_open(
        &(struct crowd_part){
            .port = c->server.daemon.port, .connections = 64, .talk = &jobserver_submit_talk, .arg = &m},
        1);
    crowd_run(crowd, 0, submitting, &m, NULL);
    crowd_close(crowd);
}

/* ---- the servers ---- */

static const char *many_folder, *few_folder;
static struct claimer many, few;

static void start(struct jobserver *server, const char *folder)
{
    jobserver_begin(server, folder, 0);
    jobserver_await(server);
}

static void start_once(void *arg, double *ret)
{
    uint64_t began = bench_now();
    (void)arg;
    start(&many.server, many_folder);
    *ret = (double)(bench_now() - began) / 1e6;
    daemon_stop(&many.server.daemon);
}

static double file_bytes(void)
{
    char path[4200];
    struct stat stat_of;
    snprintf(path, sizeof path, "%s/store/data.mdb", many_folder);
    if (stat(path, &stat_of) < 0)
        bench_fail("%s isn't there", path);
    return (double)stat_of.st_blocks * 512 / MANY;
}

static void measure_claims(void)
{
    double out_of_many[TURNS], out_of_few[TURNS], ratio[TURNS];
    for (int turn = -1; turn < TURNS; turn++) {
        int i = turn < 0 ? 0 : turn;
        uint64_t ns_many = 0, ns_few = 0;
        for (uint32_t piece = 0; piece < PIECES; piece++) /* many, few, few, many, ... */
            for (uint32_t half = 0; half < 2; half++)
                if ((piece + half) % 2 == 0)
                    ns_many += claim_piece(&many);
                else
                    ns_few += claim_piece(&few);
        out_of_many[i] = FEW * 1e9 / (double)ns_many;
        out_of_few[i] = FEW * 1e9 / (double)ns_few;
        ratio[i] = out_of_many[i] / out_of_few[i];
        submit_few(&few);
    }
    bench_report(&(struct bench_row){"claim", "jobs/s", BENCH_MORE}, out_of_many, TURNS);
    bench_report(&(struct bench_row){"claim.peer", "jobs/s", BENCH_MORE}, out_of_few, TURNS);
    bench_report(&(struct bench_row){"claim_flat", "x", BENCH_MORE}, ratio, TURNS);
}

static void measure_many(void)
{
    uint64_t began = bench_now();
    fill(&many.server, MANY - STARTED);
    double rate = bench_per_second(MANY - STARTED, began), file = file_bytes();
    bench_report(&(struct bench_row){"fill", "jobs/s", BENCH_MORE}, &rate, 1);
    bench_report(&(struct bench_row){"queued_file_bytes", "bytes", BENCH_LESS}, &file, 1);
    start(&many.server, many_folder);
    start(&few.server, few_folder);
    jobserver_enrol(&few.server);
    open_claimer(&many);
    open_claimer(&few);
    submit_few(&few);
    measure_claims();
    double more =
        (double)daemon_anonymous(&many.server.daemon) - (double)daemon_anonymous(&few.server.daemon);
    more /= MANY;
    bench_report(&(struct bench_row){"queued_bytes", "bytes", BENCH_LESS}, &more, 1);
}

int main(void)
{
    bench_begin("jobs", 25);
    if (!jobserver_possible()) {
        fprintf(stderr, "jobs: this program has no jobs yet\n");
        return 0;
    }
    many_folder = limits_folder("many");
    few_folder = limits_folder("few");
    start(&many.server, many_folder);
    jobserver_enrol(&many.server);
    daemon_stop(&many.server.daemon);
    fill(&many.server, STARTED);
    bench_repeat(&(struct bench_row){"start", "ms", BENCH_LESS}, 1, start_once, NULL);
    if (bench_wanted("fill") || bench_wanted("queued_bytes queued_file_bytes") || bench_wanted("claim_flat"))
        measure_many();
    daemon_kill(&many.server.daemon);
    daemon_kill(&few.server.daemon);
    crowd_close(many.crowd);
    crowd_close(few.crowd);
    limits_remove(many_folder);
    limits_remove(few_folder);
    return 0;
}
