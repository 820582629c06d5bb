/* contain: crashes of actors in a real server under load, and what all the others notice of them (G9, G11, G13).
 *
 *     contain PROGRAM [--crashes N] [--requests N] [--loops N] [--rate N] [--seed S] [--times]
 *
 * PROGRAM is chaos/poisoned. Clients who do nothing wrong ask for the server's health and for a job, RATE requests a second, and submit one now and
 * then; meanwhile somebody else makes actors crash, in every way of POISONS_CONTAINED: half of them are connections, in the middle of a
 * request, the others children of a supervisor, which must be replaced by one that answers. Slices with crashes and slices without take turns.
 * Then, in a server whose actors may compute for BUDGET_MS, LOOPS handlers that never end. What must be so:
 *
 *     lives         the process is the same one, and ready
 *     others        0 requests of others failed
 *     alone         every crash has ended its actor: a request that crashed is answered 500, and who comes in a dead one's place answers
 *     reach         each way to crash was there at least N / (2 * ways) times, and the server has counted as many
 *     memory        at its most in the second half less than 1 MiB above its most in the first, as pools grow with the busiest moment and
 *                   leaks with each crash; descriptors are as many as before
 *     loops         every one of them was ended, and alone
 *     times         --times: p99 of others with crashes beside the one without: less than 1 ms more; from the fault to the next answer p50
 *                   100 us, p99 1 ms, 20 ms at most; a turn of the others behind a loop comes at most BUDGET_MS + 1 ms late. Without --times these
 *                   are told and not judged: on a machine with others at work they are the machine's.
 *
 * Controls, before: each figure spoiled must be told of; a server that keeps descriptors and memory of each crash must be found out, and
 * one without containment (it ends).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chaos/dice.h"
#include "chaos/host.h"
#include "chaos/volley.h"

enum {
    WARM = 200, /* of each way, before anything is measured */
    WARM_SLICES = 5,
    SLICE_MS = 1000,     /* with crashes */
    QUIET_PART = 4,      /* without: a quarter of it */
    SUBMIT_EVERY = 1024, /* requests of others; what jobs take of memory is not what is measured */
    VICTIMS_EACH = 20,   /* crashes of supervised actors, one request */
    BUDGET_MS = 5,
    LONGEST_US = 1000000,
    REST_US = 100000, /* between two looks at the descriptors, */
    REST_LOOKS = 10,  /* of which so many in a row find as many */
    GROWTH_KB = 1024,
    MORE_US = 1000,
    P50_NS = 100000,
    P99_NS = 1000000,
    MAX_NS = 20000000,
    LATE_NS = (BUDGET_MS + 1) * 1000000,
    LEAKS = 32,
    METRIC_TRIES = 10,
};

static const char *const names[] = POISON_NAMES;

struct figures {
    uint64_t crashes, least; /* least: of one way */
    uint64_t counted;        /* by the server */
    uint64_t requests, failed;
    uint64_t
        unanswered; /* requests that crashed and were not answered 500, and victims that were not replaced */
    uint64_t ended; /* the process */
    int64_t grown_kb, descriptors;
    uint64_t loops, loops_ended;
    /* times */
    uint64_t quiet_us, busy_us, p50_ns, p99_ns, max_ns, late_ns;
};

/* Between the one who asks and the one who crashes. */
struct turns {
    _Atomic uint64_t wanted, done, unanswered;
    _Atomic uint64_t late_ns; /* the most behind a loop */
};

static struct campaign {
    struct host host;
    struct turns *turns;
    uint64_t crashes, requests, loops, rate, seed, asked, failed;
    bool times, busy;
    uint32_t took[2][LONGEST_US + 1];
    char submit[512], look[512];
} c;

static uint32_t wrong(bool is, const char *what, double value, double goal, bool aloud)
{
    if (is && aloud)
        printf("violation: %s: %.0f, and the bound is %.0f\n", what, value, goal);
    return is;
}

static uint32_t violations(const struct figures *f, bool times, bool aloud)
{
    double most_us = (double)f->quiet_us + MORE_US;
    uint64_t reach = f->crashes / (2 * (uint64_t)POISON_CONTAINED_COUNT);
    uint32_t bad =
        wrong(f->ended > 0, "processes ended", (double)f->ended, 0, aloud) +
        wrong(f->failed > 0, "requests of others failed", (double)f->failed, 0, aloud) +
        wrong(f->requests == 0, "requests of others", 0, 1, aloud) +
        wrong(f->unanswered > 0, "crashes that ended more or less than their actor", (double)f->unanswered, 0,
              aloud) +
        wrong(f->least < reach, "crashes of one way", (double)f->least, (double)reach, aloud) +
        wrong(f->counted < f->crashes, "crashes that the server counted", (double)f->counted,
              (double)f->crashes, aloud) +
        wrong(f->grown_kb >= GROWTH_KB, "KiB that memory has grown", (double)f->grown_kb, GROWTH_KB, aloud) +
        wrong(f->descriptors != 0, "more descriptors", (double)f->descriptors, 0, aloud) +
        wrong(f->loops_ended != f->loops, "loops that were ended", (double)f->loops_ended, (double)f->loops,
              aloud);
    if (!times)
        return bad;
    return bad +
           wrong((double)f->busy_us >= most_us, "us, p99 of others", (double)f->busy_us, most_us, aloud) +
           wrong(f->p50_ns > P50_NS, "ns until somebody answers again, p50", (double)f->p50_ns, P50_NS,
                 aloud) +
           wrong(f->p99_ns > P99_NS, "ns until somebody answers again, p99", (double)f->p99_ns, P99_NS,
                 aloud) +
           wrong(f->max_ns > MAX_NS, "ns until somebody answers again", (double)f->max_ns, MAX_NS, aloud) +
           wrong(f->late_ns > LATE_NS, "ns that others waited behind a loop", (double)f->late_ns, LATE_NS,
                 aloud);
}

/* ---- the others ---- */

static const char *request(void *context, uint64_t number)
{
    (void)context;
    if (number % SUBMIT_EVERY == 0)
        return c.submit;
    return number % 2 ? c.look : "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n";
}

static void judge(void *context, const struct volley_answer *answer)
{
    uint64_t us = answer->took_us < LONGEST_US ? answer->took_us : LONGEST_US;
    (void)context;
    c.took[c.busy][us]++;
    c.asked += c.busy;
    if (answer->status == 200 || answer->status == 202)
        return;
    if (c.failed++ < 3)
        printf("a request of others: status %d: %.200s\n", answer->status, answer->head);
}

static void second(void *context)
{
    (void)context;
}

static void fire(uint64_t ms)
{
    struct volley v = {.port = c.host.port,
                       .rate = c.rate,
                       .duration_us = ms * 1000,
                       .request = request,
                       .answer = judge,
                       .second = second};
    if (volley_fire(&v) == UINT64_MAX)
        host_give_up("no memory");
}

static void know_requests(void)
{
    static const char job[] = "{\"type\":\"EXECUTE\",\"work_kind\":\"SUCCESS_FAST\"}";
    char id[64];
    host_enrol(&c.host);
    if (host_ask(&c.host, "POST", "/v1/jobs", "", job) != 202 ||
        !host_field(&c.host, "job_id", id, sizeof(id)))
        host_give_up("no job");
    snprintf(c.submit, sizeof(c.submit),
             "POST /v1/jobs HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\nContent-Type: "
             "application/json\r\nContent-Length: %zu\r\n\r\n%s",
             c.host.key, sizeof(job) - 1, job);
    snprintf(c.look, sizeof(c.look),
             "GET /v1/jobs/%s HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\n\r\n", id, c.host.key);
    host_hang_up(&c.host);
}

/* ---- the one who crashes: a process of its own ---- */

/* One request that crashes in its handler: it alone is answered so. */
static void crash_connection(struct host *h, const char *how)
{
    char field[64];
    snprintf(field, sizeof(field), "X-Poison: %s\r\n", how);
    if (host_ask(h, "GET", "/healthz", field, "") != 500)
        atomic_fetch_add(&c.turns->unanswered, 1);
}

static void crash_victims(struct host *h, const char *how, uint64_t count)
{
    char fields[96];
    snprintf(fields, sizeof(fields), "X-Poison: %s\r\nX-Victims: %" PRIu64 "\r\n", how, count);
    if (host_ask(h, "GET", "/healthz", fields, "") != 200)
        atomic_fetch_add(&c.turns->unanswered, 1);
}

static _Noreturn void crash_all(struct host *h)
{
    struct dice dice = dice_of(c.seed);
    uint64_t done = 0;
    h->connection = -1; /* the parent's is the parent's */
    for (;; host_rest_us(100))
        while (done < atomic_load(&c.turns->wanted)) {
            const char *how = names[dice_below(&dice, POISON_CONTAINED_COUNT)];
            uint64_t left = atomic_load(&c.turns->wanted) - done;
            if (left >= VICTIMS_EACH && dice_below(&dice, VICTIMS_EACH + 1) == 0) {
                crash_victims(h, how, VICTIMS_EACH);
                done += VICTIMS_EACH;
            } else {
                crash_connection(h, how);
                done++;
            }
            atomic_store(&c.turns->done, done);
        }
}

static _Noreturn void loop_all(struct host *h)
{
    h->connection = -1;
    crash_victims(h, "sigsegv", 1); /* so that the metronomes are there */
    for (uint64_t done = 0;; host_rest_us(100))
        while (done < atomic_load(&c.turns->wanted)) {
            atomic_store(&c.host.board->late[0], 0);
            atomic_store(&c.host.board->late[1], 0);
            crash_connection(h, "loop");
            for (uint32_t i = 0; i < 2; i++)
                if (atomic_load(&c.host.board->late[i]) > atomic_load(&c.turns->late_ns))
                    atomic_store(&c.turns->late_ns, atomic_load(&c.host.board->late[i]));
            atomic_store(&c.turns->done, ++done);
        }
}

static pid_t other_process(void (*run)(struct host *h))
{
    pid_t pid = fork();
    if (pid < 0)
        host_give_up("no process");
    if (pid == 0)
        run(&c.host);
    return pid;
}

/* So many more; the clients go on meanwhile, and as long afterwards as it takes. */
static void crash_more(uint64_t count)
{
    int status;
    c.busy = true;
    atomic_fetch_add(&c.turns->wanted, count);
    do
        fire(SLICE_MS);
    while (atomic_load(&c.turns->done) < atomic_load(&c.turns->wanted) && !host_ended(&c.host, 0, &status));
    c.busy = false;
}

/* ---- figures ---- */

static uint64_t quantile_us(const uint32_t *took, double share)
{
    uint64_t all = 0, seen = 0;
    for (uint32_t us = 0; us <= LONGEST_US; us++)
        all += took[us];
    for (uint32_t us = 0; us <= LONGEST_US; us++) {
        seen += took[us];
        if (all && (double)seen > share * (double)all)
            return us;
    }
    return 0;
}

static int smaller(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void time_restarts(struct figures *f)
{
    struct board *b = c.host.board;
    uint64_t count = atomic_load(&b->times_count);
    count = count < BOARD_TIMES ? count : BOARD_TIMES;
    if (count == 0)
        return;
    qsort(b->times, count, sizeof(*b->times), smaller);
    f->p50_ns = b->times[count / 2];
    f->p99_ns = b->times[count * 99 / 100];
    f->max_ns = b->times[count - 1];
}

static uint64_t metric(const char *name)
{
    int status = 0;
    for (uint32_t tries = 0; tries < METRIC_TRIES && status != 200; tries++) {
        host_rest_us(tries * 100000);
        status = host_ask_operator(&c.host, "GET", "/metrics", "");
    }
    for (const char *at = c.host.answer; status == 200 && (at = strstr(at, name)) != NULL; at++)
        if (at[strlen(name)] == ' ' && (at == c.host.answer || at[-1] == '\n'))
            return strtoull(at + strlen(name) + 1, NULL, 10);
    printf("%s isn't among the metrics: status %d, %zu bytes\n", name, status, strlen(c.host.answer));
    return 0;
}

static uint64_t crashed_so_far(uint64_t *ret_least)
{
    uint64_t sum = 0;
    *ret_least = UINT64_MAX;
    for (uint32_t i = 0; i < POISON_CONTAINED_COUNT; i++) {
        uint64_t count = atomic_load(&c.host.board->crashes[i]);
        sum += count;
        *ret_least = count < *ret_least ? count : *ret_least;
    }
    return sum;
}

/* ---- the acts ---- */

static void begin(const char *const *options)
{
    host_start(&c.host, options);
    know_requests();
    atomic_store(&c.turns->wanted, 0);
    atomic_store(&c.turns->done, 0);
    atomic_store(&c.turns->unanswered, 0);
    c.asked = c.failed = 0;
    memset(c.took, 0, sizeof(c.took));
}

static void note_memory(uint64_t *most_kb)
{
    uint64_t kb = host_memory_kb(&c.host);
    *most_kb = kb > *most_kb ? kb : *most_kb;
}

/* When nobody has closed any more for a while: what the campaign has hung up the server closes when it gets to it. */
static uint32_t descriptors_at_rest(void)
{
    uint32_t least = host_descriptors(&c.host);
    for (uint32_t same = 0; same < REST_LOOKS; same++) {
        host_rest_us(REST_US);
        uint32_t now = host_descriptors(&c.host);
        same = now < least ? 0 : same;
        least = now < least ? now : least;
    }
    return least;
}

static void crash_act(struct figures *f)
{
    static const char *const options[] = {"--schedulers", "2", "--jobs-simulation-speed", "1000", NULL};
    uint64_t slices = c.requests * 1000 / (c.rate * SLICE_MS), done = 0;
    int status;
    begin(options);
    pid_t other = other_process(crash_all);
    for (uint32_t i = 0; i < WARM_SLICES;
         i++) /* pools grow with the busiest moment, and there are more of these */
        crash_more(WARM * (uint64_t)POISON_CONTAINED_COUNT);
    c.asked = 0;
    memset(c.took, 0, sizeof(c.took));
    atomic_store(&c.host.board->times_count, 0);
    uint64_t least, before = crashed_so_far(&least), most_kb[2] = {0, 0};
    uint32_t descriptors = descriptors_at_rest();
    slices = slices > 2 ? slices : 2;
    for (uint64_t i = 0; (i < slices || c.asked < c.requests) && f->ended == 0; i++) {
        uint64_t share = i < slices ? (c.crashes - done) / (slices - i) : 0;
        fire(SLICE_MS / QUIET_PART);
        crash_more(share);
        done += share;
        note_memory(&most_kb[2 * i >= slices]);
        f->ended = c.host.pid == 0;
    }
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    if (f->ended == 0) {
        int64_t left = descriptors_at_rest();
        f->grown_kb = (int64_t)most_kb[1] - (int64_t)most_kb[0];
        f->descriptors = left - (int64_t)descriptors;
        f->counted = metric("coppice_runtime_actors_crashed_total") - before;
        f->ended += host_ask_operator(&c.host, "GET", "/readyz", "") != 200;
        f->ended += host_ended(&c.host, 0, &status);
    }
    f->crashes = crashed_so_far(&f->least) - before;
    f->requests = c.asked;
    f->failed = c.failed;
    f->unanswered = atomic_load(&c.turns->unanswered) + atomic_load(&c.host.board->wrong);
    f->quiet_us = quantile_us(c.took[0], 0.99);
    f->busy_us = quantile_us(c.took[1], 0.99);
    time_restarts(f);
    if (c.host.pid)
        host_end(&c.host, SIGTERM);
}

static void loop_act(struct figures *f)
{
    static const char *const options[] = {"--schedulers", "2", "--runaway", "5ms", NULL};
    int status;
    begin(options);
    pid_t other = other_process(loop_all);
    c.rate /= 4; /* every second millisecond of one thread is a loop's */
    crash_more(c.loops);
    c.rate *= 4;
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    f->ended += host_ended(&c.host, 0, &status);
    f->loops = c.loops;
    if (c.host.pid)
        f->loops_ended = metric("coppice_actor_exits_total{reason=\"overrun\"}");
    f->unanswered += atomic_load(&c.turns->unanswered);
    f->failed += c.failed;
    f->requests += c.asked;
    f->late_ns = atomic_load(&c.turns->late_ns);
    if (c.host.pid)
        host_end(&c.host, SIGTERM);
}

/* ---- controls ---- */

static bool each_is_told_of(void)
{
    const struct figures good = {.crashes = 1200,
                                 .least = 100,
                                 .counted = 1200,
                                 .requests = 1,
                                 .grown_kb = 1023,
                                 .loops = 1,
                                 .loops_ended = 1,
                                 .quiet_us = 100,
                                 .busy_us = 1099,
                                 .p50_ns = P50_NS,
                                 .p99_ns = P99_NS,
                                 .max_ns = MAX_NS,
                                 .late_ns = LATE_NS};
    struct figures bad[14];
    bool found = violations(&good, true, false) == 0;
    for (uint32_t i = 0; i < 14; i++)
        bad[i] = good;
    bad[0].ended = 1;
    bad[1].failed = 1;
    bad[2].requests = 0;
    bad[3].unanswered = 1;
    bad[4].least = 99;
    bad[5].counted = 1199;
    bad[6].grown_kb = 1024;
    bad[7].descriptors = -1;
    bad[8].loops_ended = 0;
    bad[9].busy_us = 1100;
    bad[10].p50_ns++;
    bad[11].p99_ns++;
    bad[12].max_ns++;
    bad[13].late_ns++;
    for (uint32_t i = 0; i < 14; i++)
        found = found && violations(&bad[i], true, false) == 1 &&
                violations(&bad[i], false, false) == (i < 9 ? 1 : 0);
    return found;
}

/* What each crash leaves behind is seen. */
static bool leaks_are_seen(void)
{
    static const char *const options[] = {"--schedulers", "2", NULL};
    begin(options);
    for (uint32_t i = 0; i < LEAKS; i++)
        crash_connection(&c.host, "sigsegv");
    uint64_t kb = host_memory_kb(&c.host);
    uint32_t descriptors = host_descriptors(&c.host);
    for (uint32_t i = 0; i < LEAKS; i++)
        crash_connection(&c.host, "leak");
    bool seen = host_memory_kb(&c.host) >= kb + GROWTH_KB &&
                host_descriptors(&c.host) >= descriptors + LEAKS / 2 &&
                atomic_load(&c.turns->unanswered) == 0;
    host_end(&c.host, SIGTERM);
    return seen;
}

static bool without_containment_it_ends(void)
{
    static const char *const options[] = {"--schedulers", "2", "--containment=false", NULL};
    int status;
    begin(options);
    crash_connection(&c.host, "sigsegv");
    bool ended = host_ended(&c.host, HOST_WAIT_MS, &status) && atomic_load(&c.turns->unanswered) == 1;
    host_end(&c.host, SIGKILL);
    return ended;
}

/* Whether each says what it must; and how many don't. */
static uint32_t controls(const char *program)
{
    host_begin(&c.host, program, NULL);
    bool told = each_is_told_of(), seen = leaks_are_seen(), ends = without_containment_it_ends();
    host_remove(&c.host);
    printf("control: each spoiled figure is told of: %s\n", told ? "yes" : "NO");
    printf("control: what crashes leave behind is seen: %s\n", seen ? "yes" : "NO");
    printf("control: without containment the process ends: %s\n", ends ? "yes" : "NO");
    return (uint32_t)(!told + !seen + !ends);
}

static void report(const struct figures *f)
{
    printf("crashes             %10" PRIu64 ", at least %" PRIu64
           " of each of %d ways; the server counted %" PRIu64 "\n",
           f->crashes, f->least, POISON_CONTAINED_COUNT, f->counted);
    printf("loops               %10" PRIu64 ", ended: %" PRIu64 "\n", f->loops, f->loops_ended);
    printf("others meanwhile    %10" PRIu64 " requests, failed: %" PRIu64
           "; p99 %.2f ms, without crashes %.2f ms\n",
           f->requests, f->failed, (double)f->busy_us / 1000, (double)f->quiet_us / 1000);
    printf("answers again after %10.1f us (p50), %.1f us (p99), %.1f us at most\n", (double)f->p50_ns / 1000,
           (double)f->p99_ns / 1000, (double)f->max_ns / 1000);
    printf("behind a loop       %10.2f ms late at most\n", (double)f->late_ns / 1e6);
    printf("memory              %+10" PRId64 " KiB, descriptors %+" PRId64 "\n", f->grown_kb, f->descriptors);
}

int main(int argc, char **argv)
{
    struct figures figures = {.crashes = 0};
    const char *program = argc > 1 ? argv[1] : "";
    c.crashes = 100000, c.requests = 1000000, c.loops = 1000, c.rate = 8000, c.seed = 1;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--times") == 0)
            c.times = true;
        else if (!host_option(argc, argv, &i, "--crashes", 100, 10000000, &c.crashes) &&
                 !host_option(argc, argv, &i, "--requests", 1000, 100000000, &c.requests) &&
                 !host_option(argc, argv, &i, "--loops", 1, 100000, &c.loops) &&
                 !host_option(argc, argv, &i, "--rate", 100, 100000, &c.rate) &&
                 !host_option(argc, argv, &i, "--seed", 0, UINT64_MAX, &c.seed))
            return fprintf(stderr, "contain: there is no option %s\n", argv[i]), 64;
    }
    if (access(program, X_OK) != 0)
        return fprintf(stderr, "usage: contain PROGRAM [OPTION]...; PROGRAM is chaos/poisoned\n"), 64;
    setvbuf(stdout, NULL, _IOLBF, 0);
    c.turns = mmap(NULL, sizeof(*c.turns), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (c.turns == MAP_FAILED)
        host_give_up("no memory");
    uint32_t bad = controls(program);
    host_begin(&c.host, program, NULL);
    crash_act(&figures);
    loop_act(&figures);
    report(&figures);
    uint32_t broken = violations(&figures, c.times, true);
    if (broken + bad == 0)
        host_remove(&c.host);
    else
        printf("the server's log is in %s\n", c.host.dir);
    printf("%" PRIu64 " of %" PRIu64 " crashes and loops were anybody else's\n",
           figures.ended + figures.failed + figures.unanswered, figures.crashes + figures.loops);
    printf("%u passed, %u failed\n", broken + bad ? 0u : 1u, broken + bad);
    return broken + bad ? 1 : 0;
}
