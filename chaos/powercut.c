/* powercut: cuts the power at every point of a recorded workload and looks at what is left.
 *
 *     powercut [--states N] [--seed S] [--workers N] [--dir DIR]
 *     powercut --seed S --state N [--control A|B|C]     one state again, as a violation names it
 *
 * Under each seed a recorder makes a store and runs batches of the product's own commands on it, with a small map and
 * a small file so that both grow; syncs and writes through fail, of a broken disk or of a full one, the process is killed
 * between any two calls,
 * and each time the store is opened again and goes on. All of it is recorded below LMDB (chaos/disk.h). Checkers
 * then step through the log (chaos/platter.h) and build what a power cut might leave:
 *
 *     at each sync      every beginning of what is pending, random subsets, tears at 512 bytes
 *     at each write     a random subset
 *     after a sync, and after an answer: what is certain, and nothing else
 *     while a store is made or opened, and now and then later: all folders and files, opened by the product
 *
 * In each state the file must open, and show exactly the rows after some batch k, acknowledged <= k <= attempted,
 * free pages included (chaos/digest.h); so it is never empty, never a mix, and every value is what was written. A
 * sample is checked page by page (store/image.h); states of whole folders are opened for writing, every row is
 * checked, a batch is run and must be there when it is opened again.
 *
 * Three controls prove that the campaign would notice: A, syncs of data do nothing; B, the meta page waits for the next
 * sync; C, a store that is opened after a failure isn't synced first. A campaign that misses one of them fails.
 *
 * What it is made of: chaos/powercut_recorder.h, chaos/powercut_checker.h and chaos/powercut_cut.h (what they share); here is the
 * campaign.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "chaos/powercut_checker.h"
#include "chaos/powercut_cut.h"
#include "chaos/powercut_recorder.h"
#include "tests/support/parcel.h"

enum { CONTROL_STATES = 30000 }; /* of one seed */

/* ---- one seed: a recorder, and checkers that may die ---- */

static void silence(void)
{
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        dup2(fd, STDERR_FILENO);
}

/* Forks a checker until one comes to the end. */
static void check_part(enum platter_kind kind, uint64_t from, uint64_t until)
{
    cut_here.kind = kind;
    atomic_store(&cut_here.worker->found, 0);
    for (;;) {
        int status;
        pid_t pid = fork();
        if (pid < 0)
            abort();
        if (pid == 0) {
            if (kind != PLATTER_HONEST && !cut_options.only)
                silence();
            checker_run(from, until);
            fflush(NULL);
            _exit(0);
        }
        if (waitpid(pid, &status, 0) != pid || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
            break;
        if (kind == PLATTER_HONEST)
            atomic_fetch_add(&cut_shared->deaths, 1);
        cut_violation("the reader died: %s", WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "it ended");
        from = atomic_load(&cut_here.worker->at) + 1;
        if (atomic_load(&cut_here.worker->found) >= CHECKER_CONTROL_VIOLATIONS * 4)
            break;
    }
    if (kind != PLATTER_HONEST && atomic_load(&cut_here.worker->found) > 0)
        atomic_fetch_add(&cut_shared->caught[kind], 1);
}

static void run_recorder(void)
{
    if (!recorder_run()) {
        cut_violation("harness: nothing was recorded: %s", strerror(errno));
        _exit(1);
    }
    atomic_store(&cut_here.worker->recorded, 1);
    if (cut_options.only) {
        check_part(cut_options.only_kind, cut_options.only_state, cut_options.only_state + 1);
        _exit(0);
    }
    check_part(PLATTER_HONEST, 0, UINT64_MAX);
    for (uint32_t kind = PLATTER_HONEST + 1; kind < PLATTER_KINDS; kind++)
        if (cut_here.seed < cut_options.first_seed + 2 || atomic_load(&cut_shared->caught[kind]) == 0)
            check_part((enum platter_kind)kind, 0, CONTROL_STATES);
    _exit(0);
}

static void run_seed(uint64_t seed)
{
    int status;
    cut_here.seed = seed;
    cut_here.kind = PLATTER_HONEST;
    atomic_store(&cut_here.worker->at, 0);
    atomic_store(&cut_here.worker->recorded, 0);
    pid_t pid = fork();
    if (pid < 0)
        abort();
    if (pid == 0)
        run_recorder();
    if (waitpid(pid, &status, 0) == pid && status != 0)
        cut_violation("the %s died: %s %d",
                      atomic_load(&cut_here.worker->recorded) ? "harness" : "recorded store",
                      WIFSIGNALED(status) ? "signal" : "status",
                      WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    atomic_fetch_add(&cut_shared->seeds, 1);
}

static void run_worker(uint32_t number)
{
    cut_here.worker = &cut_shared->workers[number];
    snprintf(cut_here.dir, sizeof(cut_here.dir), "%s/powercut.%ld.%u", cut_options.dir, (long)getppid(),
             (unsigned)number);
    if (mkdir(cut_here.dir, 0700) < 0 && errno != EEXIST)
        _exit(1);
    if (cut_options.only)
        run_seed(cut_options.first_seed);
    else
        while (atomic_load(&cut_shared->states) < cut_options.states &&
               atomic_load(&cut_shared->violations) < CUT_REPORTS_MAX)
            run_seed(atomic_fetch_add(&cut_shared->next_seed, 1));
    cut_remove(cut_here.dir);
    _exit(0);
}

/* ---- the campaign ---- */

static void print_reports(void)
{
    uint32_t count = atomic_load(&cut_shared->reports_count);
    for (uint32_t i = 0; i < count && i < CUT_REPORTS_MAX; i++) {
        const struct report *r = &cut_shared->reports[i];
        printf("VIOLATION --seed %" PRIu64 " --state %" PRIu64 ": %s\n", r->seed, r->state, r->text);
    }
}

static bool reached_all(void)
{
    return atomic_load(&cut_shared->batches) && atomic_load(&cut_shared->grown) &&
           atomic_load(&cut_shared->failed_syncs) && atomic_load(&cut_shared->kills) &&
           atomic_load(&cut_shared->trees) && atomic_load(&cut_shared->images) &&
           atomic_load(&cut_shared->full);
}

static int sum_up(double seconds)
{
    uint64_t states = atomic_load(&cut_shared->states), violations = atomic_load(&cut_shared->violations);
    uint32_t passed = violations == 0 && states > 0, failed = !passed;
    print_reports();
    printf("violations          %" PRIu64 " of %" PRIu64 " states (%.0f states/s, %.0f s)\n", violations,
           states, (double)states / seconds, seconds);
    printf("of them             %" PRIu64 " whole folders opened by the product, %" PRIu64
           " looked at page by page\n",
           atomic_load(&cut_shared->trees), atomic_load(&cut_shared->images));
    printf("recorded            %" PRIu64 " seeds, %" PRIu64 " batches, %" PRIu64 " growths of the map\n",
           atomic_load(&cut_shared->seeds), atomic_load(&cut_shared->batches),
           atomic_load(&cut_shared->grown));
    printf("faults              %" PRIu64 " failing syncs and writes through, %" PRIu64
           " after which a full disk's store went on, %" PRIu64 " killed processes\n",
           atomic_load(&cut_shared->failed_syncs), atomic_load(&cut_shared->full),
           atomic_load(&cut_shared->kills));
    for (uint32_t kind = PLATTER_HONEST + 1; kind < PLATTER_KINDS; kind++) {
        bool caught = atomic_load(&cut_shared->caught[kind]) > 0;
        printf("control %s           %s (%" PRIu64 " states)\n", cut_control_name(kind),
               caught ? "caught" : "MISSED", atomic_load(&cut_shared->control_states[kind]));
        passed += caught;
        failed += !caught;
    }
    if (!reached_all()) {
        printf("NOT REACHED         a campaign in which one of these never happened proves nothing\n");
        failed++;
    }
    printf("%u passed, %u failed\n", (unsigned)passed, (unsigned)failed);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int sum_up_one(void)
{
    print_reports();
    uint64_t found = atomic_load(&cut_shared->workers[0].found);
    printf("seed %" PRIu64 ", state %" PRIu64 ": %s\n", cut_options.first_seed, cut_options.only_state,
           found ? "violated" : "sound");
    return found ? EXIT_FAILURE : EXIT_SUCCESS;
}

static bool parse(int count, char **args)
{
    for (int i = 1; i + 1 < count; i += 2) {
        const char *name = args[i], *value = args[i + 1];
        if (strcmp(name, "--states") == 0)
            cut_options.states = strtoull(value, NULL, 10);
        else if (strcmp(name, "--seed") == 0)
            cut_options.first_seed = strtoull(value, NULL, 10);
        else if (strcmp(name, "--state") == 0) {
            cut_options.only = true;
            cut_options.only_state = strtoull(value, NULL, 10);
        } else if (strcmp(name, "--workers") == 0)
            cut_options.workers = (uint32_t)strtoul(value, NULL, 10);
        else if (strcmp(name, "--dir") == 0)
            snprintf(cut_options.dir, sizeof(cut_options.dir), "%s", value);
        else if (strcmp(name, "--control") == 0 && value[0] >= 'A' && value[0] <= 'C')
            cut_options.only_kind = (enum platter_kind)(value[0] - 'A' + 1);
        else
            return false;
    }
    return count % 2 == 1 && cut_options.workers >= 1 && cut_options.workers <= CUT_WORKERS_MAX;
}

int main(int count, char **args)
{
    struct timespec began, ended;
    if (!parse(count, args)) {
        fprintf(stderr,
                "powercut [--states N] [--seed S] [--workers N] [--dir DIR] [--state N [--control A|B|C]]\n");
        return 64;
    }
    setrlimit(RLIMIT_CORE, &(struct rlimit){0});
    parcel_install();
    cut_shared = mmap(NULL, sizeof(*cut_shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (cut_shared == MAP_FAILED)
        return EXIT_FAILURE;
    atomic_store(&cut_shared->next_seed, cut_options.first_seed);
    if (cut_options.only)
        cut_options.workers = 1;
    clock_gettime(CLOCK_MONOTONIC, &began);
    for (uint32_t i = 0; i < cut_options.workers; i++)
        if (fork() == 0)
            run_worker(i);
    int status, worst = 0;
    while (wait(&status) > 0)
        worst |= status;
    clock_gettime(CLOCK_MONOTONIC, &ended);
    double seconds = (double)(ended.tv_sec - began.tv_sec) + (double)(ended.tv_nsec - began.tv_nsec) / 1e9;
    int result = cut_options.only ? sum_up_one() : sum_up(seconds);
    return worst ? EXIT_FAILURE : result;
}
