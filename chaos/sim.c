/* sim: the whole server under seeds, with faults at every seam, and clients who remember what they were told.
 *
 *     sim --seeds FIRST..LAST [--scenario NAME] [--workers N] [--dir DIR] [--reach] [--controls]
 *     sim --seed N [--scenario NAME] [--no-FAULT ...] [--steps N] [--loud]      one seed again
 *     sim --scenario soak --days N --seeds FIRST..LAST                          as long as N days, in one life
 *     sim ... --control NAME                                                    with a planted defect: it is to be found
 *     sim ... --hashes                                                          a line for each seed, to compare two builds by
 *
 * Each seed is a saga (chaos/saga.h) of several lives (chaos/life.h). Every hundredth one runs twice, and must come to the same hash of
 * all that happened. The first violation ends the campaign: it is shrunk, by switching faults off and by fewer steps as long as
 * the same thing is found, and printed as one line that makes it again.
 *
 * --controls runs the harness's own defects first, each of which has to be found. --reach fails the campaign when something that must
 * happen sometimes (chaos/sometimes.h) never did. The seeds of chaos/sim_seeds.h, which have found something once, come before all.
 *
 * 0: nothing was found; 1: something was, or a control wasn't; 64: a command line that can't be meant; 74: standard output takes
 * no more.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "chaos/life.h"
#include "chaos/sim_seeds.h"

enum {
    WORKERS_MAX = 64,
    TWICE_EVERY = 100,
    LIVES_MAX = 400,
    CONTROL_SEEDS = 400,
    SHRINK_TRIES = 30,
    SHRINK_SECONDS = 40, /* then what there is by then is small enough */
    MAPPED_SIZE =
        128 << 10, /* what is larger isn't kept when it is freed: to write into what was forked costs more */
    EXIT_USAGE_SIM = 64
};

static const char *const sometimes_prose[] = {
#define X(id, prose) prose,
    SOMETIMES_ALL(X)
#undef X
};
static const char *const sometimes_ids[] = {
#define X(id, prose) #id,
    SOMETIMES_ALL(X)
#undef X
};
static const char *const control_names[] = {
#define X(id, name, prose) name,
    CONTROLS(X)
#undef X
};

static struct plan_of_campaign {
    uint64_t first, last;
    struct saga_options saga;
    uint32_t workers;
    bool reach, controls, one, kept, hashes;
    char dir[128];
} plan = {.first = 1, .last = 1000, .workers = 2, .dir = "/dev/shm"};

/* What all workers of a campaign write into. */
static struct shared {
    _Atomic uint64_t next, done, twice;
    _Atomic uint64_t seen[SOMETIMES_COUNT];
    _Atomic uint64_t commits, answers, steps, lives, checks, virtual_s;
    _Atomic uint32_t found; /* the first one to say something */
    struct finding {
        uint64_t seed;
        char violation[400], where[64];
        char log[24][320];
    } finding;
} * shared;

static void *share(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        abort();
    return at;
}

/* ---- one seed ---- */

/* The last line that it said, such as which assertion failed. */
static const char *last_words(void)
{
    static char line[240], next[240];
    char path[200];
    snprintf(path, sizeof(path), "%s/" LIFE_LAST_WORDS, saga->options.dir);
    FILE *f = fopen(path, "r");
    line[0] = 0;
    while (f && fgets(next, sizeof(next), f))
        memcpy(line, next, sizeof(line));
    if (f)
        (void)fclose(f);
    line[strcspn(line, "\n")] = 0;
    return line;
}

static void judge_death(int status)
{
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGVTALRM)
        saga_violate("the process hangs: one step has no end");
    else if (WIFSIGNALED(status))
        saga_violate("the process died of signal %d: %s", WTERMSIG(status), last_words());
    else if (WEXITSTATUS(status) != ENDING_VIOLATED)
        saga_violate("the process ended with status %d in the middle of everything: %s", WEXITSTATUS(status),
                     last_words());
}

/* Without memory for what can't be refused, such as the answer to a start, the runtime ends the process and says so. */
static bool ran_dry(int status)
{
    if (!WIFEXITED(status) || WEXITSTATUS(status) != EX_SOFTWARE || !(saga->faults >> FAULT_ALLOCS & 1) ||
        !strstr(last_words(), "memory used up") || !life_salvage())
        return false;
    SOMETIMES(RAN_DRY);
    return true;
}

/* Returns whether another life follows. */
static bool live(void)
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        life_run();
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        abort();
    bool ended =
        (WIFEXITED(status) && (WEXITSTATUS(status) == ENDING_CUT || WEXITSTATUS(status) == ENDING_KILLED)) ||
        ran_dry(status);
    if (ended && !saga_violated()) {
        for (uint32_t i = 0; i < saga->patrons_count; i++)
            patron_cut_off(&saga->patrons[i]);
        receiver_cut_off(&saga->receiver);
        saga->ended = saga->now;
        saga->now +=
            (uint64_t)(1 + dice_below(&saga->dice, 3000)) * NS_PER_MS; /* until it is started again */
        if (saga->life > LIVES_MAX)
            saga_violate("more than %d lives", LIVES_MAX);
        return !saga_violated();
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != ENDING_DONE)
        judge_death(status);
    return false;
}

static void run_seed(const struct saga_options *options)
{
    saga_begin(saga, options);
    if (options->control == CONTROL_CHANCE) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        saga->dice = dice_of((uint64_t)t.tv_nsec);
    }
    life_clean(options->dir);
    if (mkdir(options->dir, 0700) < 0)
        abort();
    for (bool more = life_prepare(); more;)
        more = live();
    life_clean(options->dir);
}

/* ---- what was found, made small ---- */

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* What a violation is about: its words, without numbers. */
static void gist(const char *violation, char room[64])
{
    size_t n = 0;
    for (; *violation && n < 28; violation++)
        if ((*violation | 32) >= 'g' && (*violation | 32) <= 'z')
            room[n++] = *violation;
    room[n] = 0;
}

static bool same_again(const struct saga_options *options, const char *wanted)
{
    char found[64];
    run_seed(options);
    gist(saga->violation, found);
    return saga_violated() && strcmp(found, wanted) == 0;
}

static bool may_try(double began)
{
    static int tries;
    return tries++ < SHRINK_TRIES && seconds() < began + SHRINK_SECONDS;
}

static void shrink(struct saga_options *o, const char *violation)
{
    char wanted[64];
    double began = seconds();
    gist(violation, wanted);
    if (!same_again(o, wanted))
        return;
    for (uint32_t kind = 0; kind < FAULT_COUNT && may_try(began); kind++) {
        struct saga_options less = *o;
        less.faults &= ~(1u << kind);
        if (less.faults != o->faults && same_again(&less, wanted))
            *o = less;
    }
    (void)same_again(o, wanted);
    o->steps_max = saga->phase == PHASE_SAFETY ? (uint32_t)saga->safety + 1 : saga->knobs.safety_steps;
    for (uint32_t steps = o->steps_max / 2; steps > 0 && may_try(began); steps /= 2) {
        struct saga_options less = *o;
        while (less.steps_max > steps && may_try(began)) {
            less.steps_max -= steps;
            if (!same_again(&less, wanted))
                break;
            *o = less;
        }
    }
}

static void print_line(const struct saga_options *o)
{
    const char *commit = getenv("COMMIT");
    printf("  again: build/gcc/chaos/sim --seed %" PRIu64 " --scenario %s", o->seed,
           scenario_name(o->scenario));
    for (uint32_t kind = 0; kind < FAULT_COUNT; kind++)
        if (!(o->faults >> kind & 1))
            printf(" --no-%s", fault_name(kind));
    if (o->steps_max)
        printf(" --steps %u", o->steps_max);
    if (o->control)
        printf(" --control %s", control_names[o->control]);
    printf("%s%s\n", commit && *commit ? "   # commit " : "", commit && *commit ? commit : "");
}

/* ---- a worker ---- */

static void sum(void)
{
    for (uint32_t i = 0; i < SOMETIMES_COUNT; i++)
        atomic_fetch_add(&shared->seen[i], saga->seen[i]);
    atomic_fetch_add(&shared->commits, saga->figures.commits);
    atomic_fetch_add(&shared->answers, saga->figures.answers);
    atomic_fetch_add(&shared->lives, saga->figures.lives);
    atomic_fetch_add(&shared->checks, saga->figures.checks);
    atomic_fetch_add(&shared->steps, saga->steps);
    atomic_fetch_add(&shared->virtual_s, saga->now / NS_PER_S);
    atomic_fetch_add(&shared->done, 1);
}

static void report(void)
{
    if (atomic_fetch_add(&shared->found, 1) != 0)
        return;
    struct finding *f = &shared->finding;
    f->seed = saga->options.seed;
    memcpy(f->violation, saga->violation, sizeof(f->violation));
    memcpy(f->where, saga->where, sizeof(f->where));
    memcpy(f->log, saga->last_log, sizeof(f->log));
}

/* What changes nothing but the time that it takes leaves each of these lines as it was. */
static void tell_hash(void)
{
    const struct figures *f = &saga->figures;
    printf("seed %" PRIu64 " %016" PRIx64 ": %" PRIu64 " lives, %" PRIu64 " commits, %" PRIu64
           " answers, %" PRIu64 " steps, %" PRIu64 " looks, %" PRIu64 " ns\n",
           saga->options.seed, saga->hash, f->lives, f->commits, f->answers, saga->steps, f->checks,
           saga->now);
}

static void run_again(const struct saga_options *options)
{
    uint64_t hash = saga->hash;
    run_seed(options);
    atomic_fetch_add(&shared->twice, 1);
    if (!saga_violated() && saga->hash != hash)
        saga_violate("two runs of one seed differ: %016" PRIx64 " and %016" PRIx64 " (G4)", hash, saga->hash);
}

static void prepare(void)
{
    char why[256];
    if (!world_prepare(why, sizeof(why))) {
        printf("sim: %s\n", why);
        abort();
    }
}

static void work(uint32_t number)
{
    static char dir[160];
    struct saga_options options = plan.saga;
    snprintf(dir, sizeof(dir), "%s/coppice-sim-%d-%u", plan.dir, (int)getppid(), number);
    options.dir = dir;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    saga = share(sizeof(*saga));
    prepare();
    while (!atomic_load(&shared->found)) {
        options.seed = atomic_fetch_add(&shared->next, 1);
        if (options.seed > plan.last)
            break;
        run_seed(&options);
        sum();
        if (plan.hashes)
            tell_hash();
        if (!saga_violated() &&
            (options.seed % TWICE_EVERY == 0 || options.control == CONTROL_CHANCE || plan.one))
            run_again(&options);
        if (saga_violated())
            report();
    }
    fflush(stdout);
    _exit(0);
}

static void run_all(uint64_t first, uint64_t last, enum control control)
{
    plan.last = last;
    plan.saga.control = control;
    atomic_store(&shared->next, first);
    atomic_store(&shared->found, 0);
    shared->finding.violation[0] = 0;
    fflush(stdout);
    for (uint32_t i = 0; i < plan.workers; i++)
        if (fork() == 0)
            work(i);
    while (wait(NULL) > 0)
        ;
}

/* ---- a campaign ---- */

static void tell_finding(void)
{
    static char dir[160];
    const struct finding *f = &shared->finding;
    struct saga_options o = plan.saga;
    printf("violation: seed %" PRIu64 ": %s\n  in %s\n", f->seed, f->violation, f->where);
    for (uint32_t i = 0; i < 24; i++)
        if (f->log[i][0])
            printf("  | %s\n", f->log[i]);
    snprintf(dir, sizeof(dir), "%s/coppice-sim-%d-s", plan.dir, (int)getpid());
    o.dir = dir;
    o.seed = f->seed;
    o.loud = false;
    saga = share(sizeof(*saga));
    if (!plan.one)
        shrink(&o, f->violation);
    print_line(&o);
}

static bool control_is_found(enum control control)
{
    double began = seconds();
    run_all(1, CONTROL_SEEDS, control);
    bool found = atomic_load(&shared->found);
    printf("control %-9s %s %s%.100s%s (%.1f s)\n", control_names[control], found ? "found:" : "MISSED",
           found ? "\"" : "", found ? shared->finding.violation : "", found ? "\"" : "", seconds() - began);
    return found;
}

static uint32_t run_controls(void)
{
    uint32_t missed = 0;
    for (uint32_t control = CONTROL_NONE + 1; control < CONTROL_COUNT; control++)
        missed += !control_is_found(control);
    memset((void *)shared, 0, sizeof(*shared));
    return missed;
}

static uint32_t unreached(void)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < SOMETIMES_COUNT; i++) {
        uint64_t seen = atomic_load(&shared->seen[i]);
        printf("  %10" PRIu64 "  %-20s %s%s\n", seen, sometimes_ids[i], sometimes_prose[i],
               seen ? "" : "   NEVER");
        count += seen == 0;
    }
    return count;
}

static bool run_kept(void)
{
    struct saga_options all = plan.saga;
    for (size_t i = 0; i < sizeof(sim_seeds) / sizeof(*sim_seeds); i++) {
        plan.saga = all;
        plan.saga.scenario = sim_seeds[i].scenario;
        plan.saga.faults = FAULTS_ALL & ~sim_seeds[i].without;
        plan.saga.steps_max = sim_seeds[i].steps;
        run_all(sim_seeds[i].seed, sim_seeds[i].seed, CONTROL_NONE);
        if (atomic_load(&shared->found)) {
            tell_finding();
            return false;
        }
    }
    plan.saga = all;
    plan.saga.control = CONTROL_NONE;
    return true;
}

static int run_campaign(void)
{
    double began = seconds();
    uint64_t last = plan.last;
    enum control control = plan.saga.control;
    uint32_t missed = plan.controls ? run_controls() : 0;
    if (plan.kept && !run_kept())
        return EXIT_FAILURE;
    memset((void *)shared, 0, sizeof(*shared));
    double seeds_began = seconds();
    run_all(plan.first, last, control);
    double took = seconds() - seeds_began;
    uint64_t done = atomic_load(&shared->done);
    bool found = atomic_load(&shared->found);
    if (found)
        tell_finding();
    printf("%" PRIu64 " seeds of %s, %" PRIu64 " of them twice, in %.1f s: %.1f a second; %" PRIu64
           " lives, %" PRIu64 " commits, %" PRIu64 " answers, %" PRIu64 " steps, %" PRIu64
           " looks at all rows, %.1f virtual days\n",
           done, scenario_name(plan.saga.scenario), atomic_load(&shared->twice), took, (double)done / took,
           atomic_load(&shared->lives), atomic_load(&shared->commits), atomic_load(&shared->answers),
           atomic_load(&shared->steps), atomic_load(&shared->checks),
           (double)atomic_load(&shared->virtual_s) / 86400);
    uint32_t never = plan.one || found ? 0 : unreached();
    bool good = !found && !missed && (!plan.reach || !never);
    printf("violations: %u of %" PRIu64 " seeds; controls missed: %u; never reached: %u; %.1f s in all\n",
           found, done, missed, never, seconds() - began);
    printf("%" PRIu64 " passed, %u failed\n", good ? done : 0, good ? 0u : 1u);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- the command line ---- */

static _Noreturn void refuse(const char *what, const char *value)
{
    fprintf(stderr, "sim: %s: '%s'\n", what, value);
    exit(EXIT_USAGE_SIM);
}

static uint64_t number_of(const char *text, const char **ret_end)
{
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || errno || (!ret_end && *end))
        refuse("a whole number is needed", text);
    if (ret_end)
        *ret_end = end;
    return value;
}

static void take_seeds(const char *text)
{
    const char *end;
    plan.first = number_of(text, &end);
    if (strncmp(end, "..", 2) != 0)
        refuse("--seeds wants FIRST..LAST", text);
    plan.last = number_of(end + 2, NULL);
    if (plan.last < plan.first)
        refuse("--seeds wants FIRST..LAST", text);
}

static void take_scenario(const char *text)
{
    for (uint32_t i = 0; i < SCENARIO_COUNT; i++)
        if (strcmp(scenario_name(i), text) == 0) {
            plan.saga.scenario = i;
            return;
        }
    refuse("there is no scenario of this name; there are mixed, calm, crashes, actors, net, soak", text);
}

static void take_control(const char *text)
{
    for (uint32_t i = 1; i < CONTROL_COUNT; i++)
        if (strcmp(control_names[i], text) == 0) {
            plan.saga.control = i;
            return;
        }
    refuse("there is no control of this name", text);
}

static bool take_without(const char *name)
{
    for (uint32_t kind = 0; kind < FAULT_COUNT; kind++)
        if (strncmp(name, "--no-", 5) == 0 && strcmp(fault_name(kind), name + 5) == 0) {
            plan.saga.faults &= ~(1u << kind);
            return true;
        }
    return false;
}

static bool take_flag(const char *name)
{
    if (strcmp(name, "--reach") == 0)
        plan.reach = true;
    else if (strcmp(name, "--controls") == 0)
        plan.controls = true;
    else if (strcmp(name, "--kept") == 0)
        plan.kept = true;
    else if (strcmp(name, "--hashes") == 0)
        plan.hashes = true;
    else if (strcmp(name, "--loud") == 0)
        plan.saga.loud = true;
    else
        return take_without(name);
    return true;
}

static void take_value(const char *name, const char *value)
{
    if (strcmp(name, "--seeds") == 0)
        take_seeds(value);
    else if (strcmp(name, "--seed") == 0) {
        plan.first = plan.last = number_of(value, NULL);
        plan.one = true;
    } else if (strcmp(name, "--scenario") == 0)
        take_scenario(value);
    else if (strcmp(name, "--control") == 0)
        take_control(value);
    else if (strcmp(name, "--workers") == 0)
        plan.workers = (uint32_t)number_of(value, NULL);
    else if (strcmp(name, "--steps") == 0)
        plan.saga.steps_max = (uint32_t)number_of(value, NULL);
    else if (strcmp(name, "--days") == 0)
        plan.saga.days = (uint32_t)number_of(value, NULL);
    else if (strcmp(name, "--dir") == 0)
        snprintf(plan.dir, sizeof(plan.dir), "%s", value);
    else
        refuse("there is no such option; see the head of chaos/sim.c", name);
}

/* What couldn't be written is told, except to a reader that has gone. */
static int written(int status)
{
    if ((fflush(stdout) == 0 && !ferror(stdout)) || errno == EPIPE)
        return status;
    fprintf(stderr, "sim: standard output: %s\n", strerror(errno));
    return status ? status : EX_IOERR;
}

int main(int count, char **args)
{
    plan.saga.faults = FAULTS_ALL;
    for (int i = 1; i < count; i++) {
        if (take_flag(args[i]))
            continue;
        if (i + 1 == count)
            refuse(args[i][0] == '-' ? "there is no such option, or its value is missing"
                                     : "an option is needed",
                   args[i]);
        take_value(args[i], args[i + 1]);
        i++;
    }
    if (plan.workers < 1 || plan.workers > WORKERS_MAX)
        refuse("--workers is from 1 to 64", "");
    if (plan.one)
        plan.workers = 1;
    setrlimit(RLIMIT_CORE, &(struct rlimit){0});
    mallopt(M_MMAP_THRESHOLD, MAPPED_SIZE);
    shared = share(sizeof(*shared));
    return written(run_campaign());
}
