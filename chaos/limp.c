/* limp: crashes of the kind that nothing may survive, in a real server under load, and that it doesn't (G10).
 *
 *     limp POISONED COPPICE [--cycles N] [--dir D]
 *
 * POISONED is chaos/poisoned, COPPICE the program whose `check` looks at the store. Each cycle starts the server on the same data directory, asks after
 * the jobs of the last cycle, submits some, and then something happens that tells nobody knows what else is broken, in one of the ways of POISONS_FORBIDDEN:
 * a fault where a library or the allocator holds its locks, in the runtime, while a dead actor's things are released, or a store into the
 * runtime's own memory, which does nothing by itself. Another client goes on submitting. What must be so:
 *
 *     ends          the process ends by the signal or with status 70, within WAIT_MS
 *     says so       one line of its log is fatal, and no more than one
 *     not a step    of a fault nothing is answered any more to who caused it; of a store into memory STRAY_ANSWERS at most, as it is noticed when
 *                   its thread has nothing more to do, or somebody waits
 *     kept          every job that was answered with 202, before or behind that, is there in the next cycle, and at the end; `check` finds nothing
 *     reach         each way was there at least N / ways times
 *
 * Controls, before: a crash that is contained must be told of, because the process goes on; and a job that nobody was given must be missed.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chaos/host.h"

enum {
    WAYS = POISON_FORBIDDEN_END - POISON_CONTAINED_COUNT,
    SUBMITS = 4, /* before it */
    BEHIND = 64, /* meanwhile, at most */
    WAIT_MS = 60000,
    CONTROL_MS = 300,
    STRAY_ANSWERS = 4, /* of a connection: it is noticed when nothing more is to be done, or somebody waits */
    EXIT_FATAL = 70,
    ID = 37,
};

static const char *const names[] = POISON_NAMES;

/* What the other client was told, which is a process of its own. */
struct meanwhile {
    uint32_t count;
    char ids[BEHIND][ID];
};

static struct campaign {
    struct host host;
    struct meanwhile *meanwhile;
    char (*ids)[ID]; /* of all jobs that were answered */
    uint64_t count, max, looked_at;
    uint64_t limped, silent, answered, lost, behind;
    uint64_t reached[WAYS];
    bool aloud;
} c;

static const char *const options[] = {"--schedulers", "2", "--jobs-simulation-speed", "1000", NULL};

static void complain(uint64_t *what, const char *text, const char *which)
{
    if ((*what)++ < 10 && c.aloud)
        printf("violation: %s: %s\n", which, text);
}

static void keep(const char *id)
{
    if (c.count == c.max) {
        c.max = c.max ? 2 * c.max : 4096;
        c.ids = realloc(c.ids, c.max * sizeof(*c.ids));
        if (!c.ids)
            host_give_up("no memory");
    }
    snprintf(c.ids[c.count++], ID, "%s", id);
}

static bool submit(struct host *h, char *ret_id)
{
    static const char job[] = "{\"type\":\"EXECUTE\",\"work_kind\":\"SUCCESS_FAST\"}";
    return host_ask(h, "POST", "/v1/jobs", "", job) == 202 && host_field(h, "job_id", ret_id, ID);
}

static void look(const char *id)
{
    char path[80];
    snprintf(path, sizeof(path), "/v1/jobs/%s", id);
    if (host_ask(&c.host, "GET", path, "", "") != 200)
        complain(&c.lost, "an acknowledged job is lost", id);
}

static void look_at_new_ones(void)
{
    for (; c.looked_at < c.count; c.looked_at++)
        look(c.ids[c.looked_at]);
}

/* A process that submits until nobody answers. */
static pid_t go_on(void)
{
    c.meanwhile->count = 0;
    pid_t pid = fork();
    if (pid < 0)
        host_give_up("no process");
    if (pid == 0) {
        c.host.connection = -1;
        while (c.meanwhile->count < BEHIND && submit(&c.host, c.meanwhile->ids[c.meanwhile->count]))
            c.meanwhile->count++;
        _exit(0);
    }
    return pid;
}

/* Ended as it must: whether by a fault's signal, or with last words. */
static bool well_ended(int status)
{
    if (WIFEXITED(status))
        return WEXITSTATUS(status) == EXIT_FATAL;
    int sig = WTERMSIG(status);
    return sig == SIGSEGV || sig == SIGBUS || sig == SIGABRT;
}

static void poison(const char *how, bool stray, uint32_t wait_ms)
{
    char field[64];
    int status = 0;
    pid_t other = go_on();
    snprintf(field, sizeof(field), "X-Poison: %s\r\n", how);
    uint32_t answers = host_ask(&c.host, "GET", "/healthz", field, "") != 0;
    for (uint32_t i = 0; stray && i < STRAY_ANSWERS && c.host.connection >= 0; i++)
        answers += host_ask(&c.host, "GET", "/healthz", "", "") != 0;
    if (answers > (stray ? STRAY_ANSWERS : 0))
        complain(&c.answered, "it was answered", how);
    if (!host_ended(&c.host, wait_ms, &status))
        complain(&c.limped, "the process goes on", how);
    else if (!well_ended(status))
        complain(&c.limped, "it ended, but not of this", how);
    else if (host_said(&c.host, "\"level\":\"fatal\"") != 1)
        complain(&c.silent, "it doesn't have exactly one line of last words", how);
    host_end(&c.host, SIGKILL);
    waitpid(other, NULL, 0);
    for (uint32_t i = 0; i < c.meanwhile->count; i++)
        keep(c.meanwhile->ids[i]);
    c.behind += c.meanwhile->count;
}

static void cycle(uint64_t number)
{
    char id[ID];
    uint32_t way = (uint32_t)(number % WAYS), how = POISON_CONTAINED_COUNT + way;
    host_start(&c.host, options);
    if (!c.host.key[0])
        host_enrol(&c.host);
    look_at_new_ones();
    for (uint32_t i = 0; i < SUBMITS; i++)
        if (submit(&c.host, id))
            keep(id);
        else
            complain(&c.lost, "a submit was refused", names[how]);
    poison(names[how], how >= POISON_STRAY_WORKER && how <= POISON_STRAY_SCHEDULER, WAIT_MS);
    c.reached[way]++;
}

/* ---- controls ---- */

static bool a_survivor_is_told_of(void)
{
    host_start(&c.host, options);
    host_enrol(&c.host);
    poison("sigsegv", false, CONTROL_MS);
    bool told = c.limped == 1 && c.answered == 1;
    c.limped = c.answered = 0;
    return told;
}

static bool a_lost_job_is_missed(void)
{
    host_start(&c.host, options);
    look_at_new_ones();
    bool missed = c.lost == 0;
    look("00000000-0000-7000-8000-000000000000");
    missed = missed && c.lost == 1;
    c.lost = 0;
    host_end(&c.host, SIGKILL);
    return missed;
}

/* ---- the campaign ---- */

static uint64_t least_reached(void)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < WAYS; i++)
        least = c.reached[i] < least ? c.reached[i] : least;
    return least;
}

static void look_at_all(void)
{
    host_start(&c.host, options);
    c.looked_at = 0;
    look_at_new_ones();
    host_end(&c.host, SIGTERM);
}

static uint32_t judge(uint64_t cycles, bool sound)
{
    uint64_t bad = c.limped + c.silent + c.answered + c.lost, reach = cycles / WAYS;
    if (!sound)
        printf("violation: coppice check finds something: %s/check\n", c.host.dir);
    if (least_reached() < reach)
        printf("violation: a way to crash was there only %" PRIu64 " times\n", least_reached());
    printf("%" PRIu64 " forbidden crashes, at least %" PRIu64 " of each of %d ways: limped on %" PRIu64
           ", without last words %" PRIu64 ", answered %" PRIu64 "\n",
           cycles, least_reached(), WAYS, c.limped, c.silent, c.answered);
    printf("%" PRIu64 " of %" PRIu64 " acknowledged jobs lost; %" PRIu64
           " of them were submitted meanwhile\n",
           c.lost, c.count, c.behind);
    printf("%" PRIu64 " of %" PRIu64 " crashes did anything but end the process\n", bad, cycles);
    return (bad > 0) + (uint32_t)!sound + (least_reached() < reach);
}

int main(int argc, char **argv)
{
    uint64_t cycles = 1000;
    const char *dir = NULL;
    for (int i = 3; i < argc; i++) {
        if (strcmp(argv[i], "--dir") == 0 && i + 1 < argc)
            dir = argv[++i];
        else if (!host_option(argc, argv, &i, "--cycles", 1, 1000000, &cycles))
            return fprintf(stderr, "limp: there is no option %s\n", argv[i]), 64;
    }
    if (argc < 3 || access(argv[1], X_OK) != 0 || access(argv[2], X_OK) != 0)
        return fprintf(stderr, "usage: limp POISONED COPPICE [OPTION]...\n"), 64;
    setvbuf(stdout, NULL, _IOLBF, 0);
    c.meanwhile = mmap(NULL, sizeof(*c.meanwhile), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (c.meanwhile == MAP_FAILED)
        host_give_up("no memory");
    host_begin(&c.host, argv[1], dir);
    bool told = a_survivor_is_told_of(), missed = a_lost_job_is_missed();
    printf("control: who survives a crash is told of: %s\n", told ? "yes" : "NO");
    printf("control: a lost job is missed: %s\n", missed ? "yes" : "NO");
    c.aloud = true;
    for (uint64_t i = 0; i < cycles && c.limped + c.lost < 20; i++)
        cycle(i);
    look_at_all();
    uint32_t bad = judge(cycles, host_sound(&c.host, argv[2])) + (uint32_t)(!told + !missed);
    if (bad)
        printf("the store and the log are in %s\n", c.host.dir);
    else
        host_remove(&c.host);
    free(c.ids);
    printf("%u passed, %u failed\n", bad ? 0u : 1u, bad);
    return bad ? 1 : 0;
}
