#define _GNU_SOURCE
#include "config/chaos_load.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/chaos_client.h"
#include "runtime/env.h"

static void count(struct chaos_load *load, int number, int status, uint64_t took, const char *why)
{
    bool good = status / 100 == 2;
    uint64_t slowest = atomic_load(&load->slowest_ns);
    if (good)
        atomic_fetch_add(&load->good, 1);
    else if (status == 429 || status == 503 || status == 507)
        atomic_fetch_add(&load->refused, 1);
    else if (status)
        atomic_fetch_add(&load->failed, 1);
    else
        atomic_fetch_add(&load->unanswered, 1);
    if (!good && !load->first_bad[0])
        snprintf(load->first_bad, sizeof(load->first_bad), "%d: %.200s", status, why);
    if (!good)
        atomic_store(&load->last_bad, env_real()->now(env_real()));
    atomic_store(&load->streak[number], good ? atomic_load(&load->streak[number]) + 1 : 0);
    while (took > slowest && !atomic_compare_exchange_weak(&load->slowest_ns, &slowest, took))
        ;
}

static int ask(struct chaos_load *load, int number, const struct client *c, const struct client_request *q,
               struct chaos_answer *answer)
{
    uint64_t began = env_real()->now(env_real());
    int status = chaos_client_ask(c, q, answer);
    count(load, number, status, env_real()->now(env_real()) - began, answer->why);
    return status;
}

void chaos_load_add(struct chaos_load *load, const char id[CHAOS_JOB_ID])
{
    uint32_t at = atomic_load(&load->jobs);
    do {
        if (at == CHAOS_JOBS_MAX)
            return;
    } while (!atomic_compare_exchange_weak(&load->jobs, &at, at + 1));
    memcpy(load->job[at], id, CHAOS_JOB_ID);
}

/* The id of the job that was made, kept with the others; until there are as many as may be. */
static void submit(struct chaos_load *load, int number, const struct client *c)
{
    static struct chaos_answer answer;
    char id[CHAOS_JOB_ID];
    const struct client_request q = {.method = "POST",
                                     .target = "/v1/jobs",
                                     .body = "{\"type\":\"EXECUTE\",\"work_kind\":\"SUCCESS_FAST\"}"};
    if (ask(load, number, c, &q, &answer) / 100 != 2 || !chaos_answer_text(&answer, "job_id", id, sizeof(id)))
        return;
    chaos_load_add(load, id);
}

static void look(struct chaos_load *load, int number, const struct client *c, const char *path)
{
    static struct chaos_answer answer;
    ask(load, number, c, &(struct client_request){.method = "GET", .target = path}, &answer);
}

static void misbehave(struct chaos_load *load, int number, const struct client *c)
{
    struct client nobody = *c;
    uint32_t deed = atomic_exchange(&load->misdeed, MISDEED_NONE);
    char text[64];
    if (deed == MISDEED_FAILED)
        look(load, number, c, "/v1/nowhere");
    if (deed == MISDEED_UNANSWERED && address_parse("127.0.0.1:1", &nobody.address, text, sizeof(text)))
        look(load, number, &nobody, "/healthz");
}

static _Noreturn void load_run(struct chaos_load *load, int number, const struct client *c, uint64_t pause)
{
    char path[64 + CHAOS_JOB_ID];
    for (uint32_t turn = (uint32_t)number; !atomic_load(&load->over); turn++) {
        uint32_t jobs = atomic_load(&load->jobs);
        uint64_t next = env_real()->now(env_real()) + pause;
        misbehave(load, number, c);
        snprintf(path, sizeof(path), "/v1/jobs/%s", jobs ? load->job[turn % jobs] : "");
        if (turn % 3 == 0 && jobs < CHAOS_JOBS_MAX)
            submit(load, number, c);
        else if (turn % 3 == 1 && jobs && load->job[turn % jobs][0]) /* it has its number before its id */
            look(load, number, c, path);
        else
            look(load, number, c, "/healthz");
        env_thread_sleep(next);
    }
    _exit(0);
}

/* Whoever only sleeps can't be late by anything that a server does. */
static _Noreturn void pulse_run(struct chaos_load *load)
{
    while (!atomic_load(&load->over)) {
        uint64_t due = env_real()->now(env_real()) + NS_PER_S / 10;
        env_thread_sleep(due);
        uint64_t late = env_real()->now(env_real()) - due;
        if (late > atomic_load(&load->still_ns))
            atomic_store(&load->still_ns, late);
    }
    _exit(0);
}

struct chaos_load *chaos_load_start(const struct client *clients, uint64_t rate)
{
    struct chaos_load *load =
        mmap(NULL, sizeof(*load), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (load == MAP_FAILED)
        return NULL;
    for (int i = 0; i <= CHAOS_LOADERS; i++) {
        pid_t parent = getpid();
        load->processes[i] = fork();
        if (load->processes[i] < 0) {
            chaos_load_stop(load);
            chaos_load_free(load);
            return NULL;
        }
        if (load->processes[i] == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent)
                _exit(1);
            if (i == CHAOS_LOADERS)
                pulse_run(load);
            load_run(load, i, clients, CHAOS_LOADERS * NS_PER_S / rate);
        }
    }
    return load;
}

void chaos_load_stop(struct chaos_load *load)
{
    atomic_store(&load->over, true);
    for (int i = 0; i <= CHAOS_LOADERS; i++) {
        if (load->processes[i] > 0)
            (void)waitpid(load->processes[i], NULL, 0);
        load->processes[i] = 0;
    }
}

void chaos_load_free(struct chaos_load *load)
{
    (void)munmap(load, sizeof(*load));
}

struct end {
    char state[CHAOS_STATE], reason[CHAOS_STATE]; /* reason: of a failed one; "" */
};

static void read_end(const struct chaos_answer *a, struct end *ret)
{
    *ret = (struct end){.state = ""};
    if (!chaos_answer_text(a, "state", ret->state, sizeof(ret->state)))
        return;
    (void)chaos_json_text(&a->json, chaos_json_at(&a->json, json_root(&a->json), "failure", "reason"),
                          ret->reason, sizeof(ret->reason));
}

/* "SUCCEEDED", "FAILED", or something else when the deadline came first. */
static void settle(const struct client *clients, const char *job, uint64_t deadline, struct end *ret)
{
    static struct chaos_answer answer;
    char path[64 + CHAOS_JOB_ID];
    snprintf(path, sizeof(path), "/v1/jobs/%s", job);
    for (;;) {
        int status =
            chaos_client_ask(clients, &(struct client_request){.method = "GET", .target = path}, &answer);
        read_end(&answer, ret); /* nothing, of one that isn't 200 */
        if (strcmp(ret->state, "SUCCEEDED") == 0 || strcmp(ret->state, "FAILED") == 0 || status == 404 ||
            env_real()->now(env_real()) >= deadline)
            return;
        env_thread_sleep(env_real()->now(env_real()) +
                         100 * NS_PER_MS); /* as often as default limits let a client ask */
    }
}

/* Only a lost runner is the fault's doing: a job that failed for another reason has come to an end that nobody asked for. */
static void take(struct chaos_settled *settled, const char *job, const struct end *end)
{
    bool lost = strcmp(end->state, "FAILED") == 0 && strcmp(end->reason, "RUNNER_LOST") == 0;
    bool first = !settled->open && !(lost && settled->lost);
    if (strcmp(end->state, "SUCCEEDED") == 0) {
        settled->succeeded++;
        return;
    }
    if (first) {
        snprintf(settled->which, sizeof(settled->which), "%s", job);
        snprintf(settled->state, sizeof(settled->state), "%s", end->state);
        snprintf(settled->reason, sizeof(settled->reason), "%s", end->reason);
    }
    settled->lost += lost;
    settled->open += !lost;
}

struct chaos_settled chaos_load_settle(struct chaos_load *load, const struct client *clients,
                                       uint64_t deadline)
{
    struct chaos_settled settled = {.which = ""};
    struct end end;
    uint32_t jobs = atomic_load(&load->jobs);
    for (uint32_t i = 0; i < jobs; i++) {
        settle(clients, load->job[i], deadline, &end);
        take(&settled, load->job[i], &end);
    }
    return settled;
}
