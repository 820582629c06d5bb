/* comeback: kill -9 of a server with a large store and many open jobs, and how long until it answers again (G12).
 *
 *     comeback COPPICE [--jobs N] [--bytes N] [--restarts N] [--dir D] [--times]
 *
 * The real program under its guardian, without workers. JOBS jobs with a payload of BYTES each are submitted and stay open. Then the server's
 * process is killed again and again, and at once somebody asks for one of these jobs: from the kill to the answer with 200 is what it takes, with
 * everything in it: noticing the death, the new process, opening the store, the tree. What must be so:
 *
 *     comes back    each time, within WAIT_MS, as another process
 *     kept          the job that is asked for is there, each time another one
 *     large         as many jobs are open as were submitted, and the store's file is as large as that
 *     times         --times: p99 100 ms, 500 ms at most; without it this is told and not judged
 *
 * Controls, before: a server without a guardian doesn't come back, and that must be told of; a job that nobody submitted is missed.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chaos/dice.h"
#include "chaos/host.h"
#include "chaos/volley.h"

enum {
    WAIT_MS = 60000,
    CONTROL_MS = 300,
    RATE = 20000,
    ID = 37,
    BODY_MAX = 60000,
    P99_US = 100000,
    MAX_US = 500000,
    RESTARTS_MAX = 1000, /* that a guardian allows in an hour */
};

static struct campaign {
    struct host host;
    uint64_t jobs, bytes, restarts;
    char (*ids)[ID];
    uint64_t count, refused;
    uint64_t took_us[RESTARTS_MAX], restarted, lost, late;
    char request[BODY_MAX + 1024];
} c;

static const char *const guarded[] = {"--guardian", "--guardian-intensity",
                                      "1000/3600s", "--workers-count",
                                      "0",          "--limits-max-queue-size",
                                      "10000000",   "--limits-max-active-jobs",
                                      "10000000",   NULL};
static const char *const alone[] = {"--workers-count", "0", NULL};

/* ---- many jobs ---- */

static const char *request(void *context, uint64_t number)
{
    (void)context, (void)number;
    return c.request;
}

static void note(void *context, const struct volley_answer *answer)
{
    const char *at = strstr(answer->body, "\"job_id\":\"");
    (void)context;
    if (answer->status == 202 && at && c.count < c.jobs)
        snprintf(c.ids[c.count++], ID, "%s", at + strlen("\"job_id\":\""));
    else if (answer->status != 202 && c.refused++ < 3)
        printf("a submit was answered %d: %.200s\n", answer->status, answer->body);
}

static void second(void *context)
{
    (void)context;
}

static void fill(void)
{
    static char payload[BODY_MAX];
    static char body[BODY_MAX + 64];
    memset(payload, 'p', c.bytes);
    int size = snprintf(body, sizeof(body), "{\"work_kind\":\"x.kept\",\"payload\":\"%s\"}", payload);
    snprintf(c.request, sizeof(c.request),
             "POST /v1/work:submit HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\nContent-Type: "
             "application/json\r\nContent-Length: %d\r\n\r\n%s",
             c.host.key, size, body);
    while (c.count < c.jobs && c.refused == 0) {
        uint64_t us = (c.jobs - c.count) * 1000000 / RATE + 1000;
        struct volley v = {.port = c.host.port,
                           .rate = RATE,
                           .duration_us = us,
                           .request = request,
                           .answer = note,
                           .second = second};
        if (volley_fire(&v) == UINT64_MAX)
            host_give_up("no memory");
    }
    if (c.refused)
        host_give_up("jobs can't be submitted");
}

/* ---- one restart ---- */

/* The guardian's child; 0: there is none just now. */
static pid_t child_of(pid_t guardian)
{
    char path[80];
    int pid = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)guardian, (int)guardian);
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%d", &pid) != 1)
        pid = 0;
    if (file)
        fclose(file);
    return (pid_t)pid;
}

/* From the kill (0: of nobody) to the first 200; UINT64_MAX: none came; one less: there is no such job. */
static uint64_t kill_and_ask(pid_t victim, const char *id, uint32_t wait_ms)
{
    char path[80];
    int status = 0;
    snprintf(path, sizeof(path), "/v1/jobs/%s", id);
    host_hang_up(&c.host);
    uint64_t began_us = host_now_us(), now_us = began_us;
    if (victim > 0)
        kill(victim, SIGKILL);
    while (status != 200 && now_us - began_us < UINT64_C(1000) * wait_ms) {
        status = host_ask(&c.host, "GET", path, "", "");
        if (status == 404)
            return UINT64_MAX - 1;
        if (status != 200) {
            host_hang_up(&c.host);
            host_rest_us(200);
        }
        now_us = host_now_us();
    }
    return status == 200 ? now_us - began_us : UINT64_MAX;
}

static void restart_once(struct dice *dice)
{
    pid_t before = child_of(c.host.pid);
    uint64_t us = kill_and_ask(before, c.ids[dice_draw(dice) % c.count], WAIT_MS);
    if (us == UINT64_MAX - 1)
        c.lost++;
    else if (us == UINT64_MAX || child_of(c.host.pid) == before)
        c.late++;
    else
        c.took_us[c.restarted++] = us;
}

/* ---- controls ---- */

static uint32_t controls(const char *program, const char *dir)
{
    char id[ID];
    int status;
    host_begin(&c.host, program, dir);
    host_start(&c.host, alone);
    host_enrol(&c.host);
    if (host_ask(&c.host, "POST", "/v1/work:submit", "", "{\"work_kind\":\"x.kept\",\"payload\":1}") != 202 ||
        !host_field(&c.host, "job_id", id, sizeof(id)))
        host_give_up("no job");
    pid_t pid = c.host.pid;
    bool missed = kill_and_ask(0, "00000000-0000-7000-8000-000000000000", CONTROL_MS) == UINT64_MAX - 1;
    bool told = kill_and_ask(pid, id, CONTROL_MS) == UINT64_MAX && host_ended(&c.host, WAIT_MS, &status);
    host_remove(&c.host);
    printf("control: who doesn't come back is told of: %s\n", told ? "yes" : "NO");
    printf("control: a lost job is missed: %s\n", missed ? "yes" : "NO");
    return (uint32_t)!told + (uint32_t)!missed;
}

/* ---- the campaign ---- */

static int smaller(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t store_bytes(void)
{
    struct stat s;
    char path[340];
    snprintf(path, sizeof(path), "%s/data.mdb", c.host.store);
    return stat(path, &s) == 0 ? (uint64_t)s.st_blocks * 512 : 0;
}

static uint32_t judge(bool times)
{
    qsort(c.took_us, c.restarted, sizeof(*c.took_us), smaller);
    uint64_t p50 = c.restarted ? c.took_us[c.restarted / 2] : 0,
             p99 = c.restarted ? c.took_us[c.restarted * 99 / 100] : 0,
             most = c.restarted ? c.took_us[c.restarted - 1] : 0, bytes = store_bytes();
    bool small = bytes < c.jobs * c.bytes, slow = times && (p99 > P99_US || most > MAX_US);
    printf("%" PRIu64 " open jobs, a store of %.2f GiB, %" PRIu64
           " restarts: from the kill to the first 200 p50 %.1f ms, p99 %.1f ms, %.1f ms at most\n",
           c.count, (double)bytes / (1 << 30), c.restarted, (double)p50 / 1000, (double)p99 / 1000,
           (double)most / 1000);
    if (small)
        printf("violation: the store is smaller than what is in it\n");
    if (slow)
        printf("violation: p99 is to be %d ms, and %d ms at most\n", P99_US / 1000, MAX_US / 1000);
    printf("%" PRIu64 " of %" PRIu64 " restarts didn't come, or without a job (%" PRIu64 ")\n",
           c.late + c.lost, c.restarts, c.lost);
    return (uint32_t)(c.late + c.lost > 0) + (uint32_t)small + (uint32_t)slow + (uint32_t)(c.restarted == 0);
}

int main(int argc, char **argv)
{
    const char *dir = NULL;
    bool times = false;
    c.jobs = 100000, c.bytes = 10000, c.restarts = 1000;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--times") == 0)
            times = true;
        else if (strcmp(argv[i], "--dir") == 0 && i + 1 < argc)
            dir = argv[++i];
        else if (!host_option(argc, argv, &i, "--jobs", 1, 10000000, &c.jobs) &&
                 !host_option(argc, argv, &i, "--bytes", 1, BODY_MAX - 1000, &c.bytes) &&
                 !host_option(argc, argv, &i, "--restarts", 1, RESTARTS_MAX, &c.restarts))
            return fprintf(stderr, "comeback: there is no option %s\n", argv[i]), 64;
    }
    if (argc < 2 || access(argv[1], X_OK) != 0)
        return fprintf(stderr, "usage: comeback COPPICE [OPTION]...\n"), 64;
    setvbuf(stdout, NULL, _IOLBF, 0);
    struct dice dice = dice_of(1);
    uint32_t bad = controls(argv[1], dir);
    c.ids = calloc(c.jobs, sizeof(*c.ids));
    if (!c.ids)
        host_give_up("no memory");
    host_begin(&c.host, argv[1], dir);
    host_start(&c.host, guarded);
    host_enrol(&c.host);
    fill();
    for (uint64_t i = 0; i < c.restarts && c.late + c.lost < 3; i++)
        restart_once(&dice);
    bad += judge(times);
    host_end(&c.host, SIGTERM);
    if (bad)
        printf("the store and the log are in %s\n", c.host.dir);
    else
        host_remove(&c.host);
    free(c.ids);
    printf("%u passed, %u failed\n", bad ? 0u : 1u, bad);
    return bad ? 1 : 0;
}
