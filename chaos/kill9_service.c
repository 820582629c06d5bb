/* kill9_service: kill -9 of the whole server at random instants of its life, under load over HTTP, and what is left of its jobs.
 *
 *     kill9_service PROGRAM [--cycles N] [--seed S] [--lanes N] [--dir D]
 *
 * A lane starts the real program on a store, again and again, and kills it each time at an instant that was drawn (mortal.h):
 *
 *     while it starts   between the first instruction and the line that says it has started: making the store, opening it, the tree
 *     early             from that line on, while its client asks what has become of all that the last server was asked (witness.h)
 *     under load        while it is asked on one to four connections, with one to eight requests on the way on each
 *     while it drains   some time after SIGTERM, under load; one that ended before isn't counted as a kill
 *
 * Nothing else may end it: a server that ends by itself, or hangs, is a violation. A store goes through some tens to a few hundred such
 * lives, with its own map, steps, workers and schedulers. Then it is served once more and nobody kills: whatever was tried becomes
 * known, all jobs come to their end, the list has them and no other one, `coppice check` finds nothing. That looks at one of
 * CHECK_SHARE stores just as the kill has left it, too. A start reads every page of a small store, so that lives on a store
 * that only grows become slower and slower; large ones, of which it reads a part (store/leaves.h), are made: one of LARGE_SHARE.
 *
 * Before all that controls, each of which has to be told of. A campaign of REACH_CYCLES or more for each lane in which no kill of one
 * sort came, no refusal, no cancel or no unknown outcome of either kind proves less than it says, and fails.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chaos/camp.h"
#include "chaos/mortal.h"
#include "chaos/witness.h"

enum {
    CYCLES_MAX = 1000000,
    LANES_MAX = 16,
    VIOLATIONS_MAX = 3,  /* stores of a lane; then it gives up */
    LIVES_LEAST = 20,    /* of a store */
    LIVES_MORE = 200,    /* at most so many more */
    LARGE_LIVES = 40,    /* of a large one, which take longer */
    LARGE_SHARE = 16,    /* one of so many stores is large, and the first of all */
    LARGE_JOBS = 2300,   /* of LARGE_BYTES: more than the 64 MB of which a start reads all */
    LARGE_BYTES = 30000, /* with its other bytes eight pages */
    STORE_JOBS = 4000,   /* a store with as many is at its end */
    CHECK_SHARE = 20,
    LIFE_US = 3000, /* a server lives for up to that after the draw of its end */
    LARGE_LIFE_US = 60000,
    LIFE_SUBMITS = 48,   /* requests to one server, about */
    MAKING_CHANCE = 600, /* of 1000 first starts are killed */
    CONTROL_ROUNDS = 8,  /* of requests, before it begins; more until it has the jobs that it needs */
    CONTROL_ROUNDS_MAX = 200,
    REACH_CYCLES = 500, /* for each lane */
    WORDS_TOLD = 700,
    BURST_MAX = 8, /* requests on the way on one connection */
    EXIT_USAGE = 64,
};

/* When a server is killed. */
#define MOMENTS(X)                                 \
    X(MAKING, "while its store was made")          \
    X(STARTING, "while it started")                \
    X(JUDGED, "while it was asked about the last") \
    X(LOADED, "under load")                        \
    X(DRAINING, "while it drained")

enum moment {
#define X(id, text) MOMENT_##id,
    MOMENTS(X)
#undef X
        MOMENT_COUNT
};

enum plan { PLAN_START, PLAN_EARLY, PLAN_LOAD, PLAN_DRAIN, PLAN_NONE };

/* Shared by the lanes. */
struct totals {
    struct witness_totals witnesses;
    _Atomic uint64_t left; /* kills that nobody has taken */
    _Atomic uint64_t kills[MOMENT_COUNT], of_large, drained, stores, large, checks;
};

struct lane {
    struct dice dice;
    struct mortal mortal;
    struct witness witness;
    char store[300], drawn[4][32]; /* drawn: options of the server */
    bool large, made;              /* made: a server has started on it */
    enum moment moment;
    uint64_t start_us, drain_us; /* how long they take here, about */
    uint64_t drained_from_us;
    uint32_t stores, spoiled;
};

static struct {
    const char *program, *dir;
    uint64_t cycles, seed, lanes;
} options = {.cycles = 1000, .seed = 1};

static struct camp camp;
static struct totals *totals;

/* ---- a store ---- */

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *ftw)
{
    (void)s, (void)kind, (void)ftw;
    return remove(path);
}

static void remove_store(const struct lane *l)
{
    (void)nftw(l->store, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Sizes at which the map and the file grow often, and the usual ones; few workers and many. */
static void draw_options(struct lane *l)
{
    static const char *const maps[] = {"2MiB", "8MiB", "64MiB", "1GiB"};
    static const char *const steps[] = {"256KiB", "1MiB", "1MiB", "32MiB"};
    uint32_t size = l->large ? 3 : dice_below(&l->dice, 4);
    snprintf(l->drawn[0], sizeof(l->drawn[0]), "--store-map=%s", maps[size]);
    snprintf(l->drawn[1], sizeof(l->drawn[1]), "--store-step=%s", steps[size]);
    snprintf(l->drawn[2], sizeof(l->drawn[2]), "--workers-count=%d", 1 << dice_below(&l->dice, 4));
    snprintf(l->drawn[3], sizeof(l->drawn[3]), "--schedulers=%u", (unsigned)dice_below(&l->dice, 4));
}

static void store_begin(struct lane *l, const char *name, bool large)
{
    char place[512];
    snprintf(l->store, sizeof(l->store), "%s/%s-%u", camp.dir, name, (unsigned)l->stores++);
    l->large = large;
    l->made = false;
    draw_options(l);
    snprintf(place, sizeof(place), "seed %" PRIu64 ", %s (%s %s %s %s)", options.seed, l->store, l->drawn[0],
             l->drawn[1], l->drawn[2], l->drawn[3]);
    witness_forget(&l->witness, place);
}

/* The queue is as long as it gets, a client may ask as often as it likes, and a machine with other work to do is no reason for a
 * refusal. */
static void start(struct lane *l)
{
    char dir[320];
    char *argv[] = {(char *)(uintptr_t)options.program,
                    "serve",
                    dir,
                    "--http-listen=127.0.0.1:0",
                    "--operator-listen=127.0.0.1:0",
                    "--limits-requests-per-minute=1000000",
                    "--limits-max-queue-size=1000000",
                    "--limits-max-active-jobs=1000000",
                    "--http-request-timeout=1m",
                    "--store-op-timeout=1m",
                    "--store-reserve=1MiB",
                    "--jobs-simulation-speed=1000000",
                    "--http-access-log=false",
                    "--log-level=info",
                    l->drawn[0],
                    l->drawn[1],
                    l->drawn[2],
                    l->drawn[3],
                    NULL};
    snprintf(dir, sizeof(dir), "--store-dir=%s", l->store);
    mortal_start(&l->mortal, argv);
}

/* Nothing is found, however the last server has ended. */
static bool check_store(const struct lane *l)
{
    char command[1200];
    snprintf(command, sizeof(command), "'%s' check --store-dir '%s' >'%s.check' 2>&1", options.program,
             l->store, l->store);
    bool good = system(command) == 0;
    snprintf(command, sizeof(command), "%s.check", l->store);
    if (good)
        (void)unlink(command);
    return good;
}

static void check(struct lane *l)
{
    atomic_fetch_add(&totals->checks, 1);
    if (!check_store(l))
        witness_complain(&l->witness, "coppice check finds something: %s.check", l->store);
}

/* ---- one life ---- */

static void doom(struct lane *l, uint64_t within_us)
{
    mortal_doom(&l->mortal, 1 + dice_draw(&l->dice) % within_us);
}

static uint64_t life_us(const struct lane *l)
{
    return l->large ? LARGE_LIFE_US : LIFE_US;
}

/* Rounds of requests until an answer is missing, or so many were asked. */
static bool load(struct lane *l, uint32_t requests)
{
    uint32_t burst = l->witness.sheaf.lines_count * (1 + dice_below(&l->dice, BURST_MAX));
    for (uint32_t asked = 0; asked < requests; asked += burst) {
        if (!witness_load(&l->witness, burst))
            return false;
        mortal_hear(&l->mortal);
    }
    return true;
}

static void ask_to_end(struct lane *l)
{
    l->moment = MOMENT_DRAINING;
    l->witness.draining = true;
    l->drained_from_us = mortal_now_us();
    mortal_signal(&l->mortal, SIGTERM);
}

static void drain(struct lane *l)
{
    ask_to_end(l);
    doom(l, 2 * l->drain_us); /* under load it takes longer than what was measured */
    (void)load(l, LIFE_SUBMITS);
}

static void serve(struct lane *l, enum plan plan)
{
    l->moment = MOMENT_JUDGED;
    witness_meet(&l->witness, l->mortal.port);
    if (plan == PLAN_EARLY)
        doom(l, life_us(l));
    if (!witness_enrol(&l->witness) || !witness_judge(&l->witness))
        return;
    l->moment = MOMENT_LOADED;
    if (plan == PLAN_LOAD)
        doom(l, life_us(l));
    if (load(l, plan == PLAN_DRAIN ? dice_below(&l->dice, LIFE_SUBMITS) : LIFE_SUBMITS) && plan == PLAN_DRAIN)
        drain(l);
}

static enum plan draw_plan(struct lane *l)
{
    uint32_t of_hundred = dice_below(&l->dice, 100);
    if (!l->made && dice_chance(&l->dice, MAKING_CHANCE))
        return PLAN_START;
    return of_hundred < 25   ? PLAN_START
           : of_hundred < 45 ? PLAN_EARLY
           : of_hundred < 85 ? PLAN_LOAD
                             : PLAN_DRAIN;
}

/* Whether it has started; how long that took counts for the next draws. */
static bool started(struct lane *l, enum plan plan)
{
    l->moment = l->made ? MOMENT_STARTING : MOMENT_MAKING;
    start(l);
    if (plan == PLAN_START)
        doom(l, l->start_us + l->start_us / 8);
    if (!mortal_await(&l->mortal))
        return false;
    l->start_us = (l->start_us * 7 + mortal_now_us() - l->mortal.began_us) / 8;
    l->made = true;
    return true;
}

static void tell_end(struct lane *l)
{
    static const char *const moments[] = {
#define X(id, text) [MOMENT_##id] = text,
        MOMENTS(X)
#undef X
    };
    const struct mortal *m = &l->mortal;
    const char *words = m->words + (m->used > WORDS_TOLD ? m->used - WORDS_TOLD : 0);
    witness_complain(&l->witness, "%s it ended by itself, or hung: %s %d; its last words: %s",
                     moments[l->moment], WIFSIGNALED(m->status) ? "signal" : "status",
                     WIFSIGNALED(m->status) ? WTERMSIG(m->status) : WEXITSTATUS(m->status), words);
}

/* True: it was killed, as planned. False: it had drained in time, or it is a violation. */
static bool died(struct lane *l, enum plan plan, bool had_started)
{
    enum mortal_end end = mortal_end(&l->mortal);
    if (end == MORTAL_LEFT && l->moment == MOMENT_DRAINING) {
        l->drain_us = (l->drain_us * 7 + mortal_now_us() - l->drained_from_us) / 8;
        atomic_fetch_add(&totals->drained, plan == PLAN_DRAIN);
        return false;
    }
    if (end == MORTAL_KILLED && plan != PLAN_NONE && (had_started || plan == PLAN_START))
        return true;
    tell_end(l);
    return false;
}

/* True: it counts as a kill. */
static bool live(struct lane *l, enum plan plan)
{
    bool had_started = started(l, plan);
    if (had_started)
        serve(l, plan);
    if (!died(l, plan, had_started))
        return false;
    atomic_fetch_add(&totals->kills[l->moment], 1);
    atomic_fetch_add(&totals->of_large, l->large);
    if (l->made && dice_below(&l->dice, CHECK_SHARE) == 0)
        check(l);
    return true;
}

/* ---- a life that nobody ends ---- */

/* False: it doesn't start, which is a violation. */
static bool serve_in_peace(struct lane *l)
{
    if (!started(l, PLAN_NONE)) {
        (void)mortal_end(&l->mortal);
        tell_end(l);
        return false;
    }
    witness_meet(&l->witness, l->mortal.port);
    return witness_enrol(&l->witness);
}

static void leave_in_peace(struct lane *l)
{
    ask_to_end(l);
    (void)died(l, PLAN_NONE, true);
}

static void kill_now(struct lane *l)
{
    doom(l, 1);
    (void)mortal_end(&l->mortal);
}

static void rest(struct lane *l)
{
    if (!serve_in_peace(l))
        return;
    witness_rest(&l->witness);
    leave_in_peace(l);
    check(l);
}

/* A store that is larger than what a start looks at; the one who made it is killed, too. */
static void make_large(struct lane *l)
{
    atomic_fetch_add(&totals->large, 1);
    if (!serve_in_peace(l))
        return;
    (void)witness_fill(&l->witness, LARGE_JOBS, LARGE_BYTES);
    kill_now(l);
}

/* ---- a lane ---- */

static bool take_kill(void)
{
    uint64_t left = atomic_load(&totals->left);
    while (left > 0 && !atomic_compare_exchange_weak(&totals->left, &left, left - 1))
        ; /* somebody else was quicker, so that less is left */
    return left > 0;
}

/* True: nothing is wrong with it, and it is gone. */
static bool run_store(struct lane *l, const char *name, bool large)
{
    store_begin(l, name, large);
    uint32_t lives = large ? LARGE_LIVES : LIVES_LEAST + dice_below(&l->dice, LIVES_MORE);
    uint32_t jobs = STORE_JOBS + (large ? LARGE_JOBS : 0);
    atomic_fetch_add(&totals->stores, 1);
    if (large)
        make_large(l);
    while (lives-- > 0 && l->witness.violations == 0 && l->witness.count < jobs && take_kill())
        if (!live(l, draw_plan(l)))
            atomic_fetch_add(&totals->left, 1); /* somebody else may have it */
    if (l->witness.violations == 0)
        rest(l);
    if (l->witness.violations == 0)
        remove_store(l);
    return l->witness.violations == 0;
}

static struct lane *lane_create(uint64_t number)
{
    struct lane *l = calloc(1, sizeof(*l));
    uint64_t seed = options.seed * 1000 + number;
    if (!l || !witness_init(&l->witness, &totals->witnesses, ~seed))
        mortal_give_up("no memory");
    l->dice = dice_of(seed);
    l->start_us = 10000; /* until it is known better */
    l->drain_us = 3000;
    return l;
}

static _Noreturn void run_lane(uint64_t number)
{
    struct lane *l = lane_create(number);
    char name[32];
    snprintf(name, sizeof(name), "lane-%u", (unsigned)number);
    for (uint32_t stores = 0; atomic_load(&totals->left) > 0 && l->spoiled < VIOLATIONS_MAX; stores++) {
        bool large = number == 0 ? stores % LARGE_SHARE == 0 : dice_below(&l->dice, LARGE_SHARE) == 0;
        if (!run_store(l, name, large)) {
            camp_keep(&camp);
            l->spoiled++;
        }
    }
    fflush(NULL);
    _exit(0);
}

/* ---- controls ---- */

/* What is wrong on purpose has to be told of. Each control has a store of its own, on which a client has done this and that. */

/* NULL: there is none yet. */
static struct witness_job *answered_job(struct lane *l, enum witness_kind kind)
{
    for (uint32_t number = 0; number < l->witness.count; number++) {
        struct witness_job *job = &l->witness.jobs[number];
        if (job->known == WITNESS_ANSWERED && job->kind == kind && !job->cancel_tried)
            return job;
    }
    return NULL;
}

static void judge_all(struct lane *l)
{
    l->witness.touched = 0;
    (void)witness_judge(&l->witness);
}

static void control_lost(struct lane *l)
{
    struct witness_job *job = answered_job(l, WITNESS_RUN);
    snprintf(job->id, sizeof(job->id), "00000000-0000-7000-8000-000000000000");
    judge_all(l);
}

static void control_other_job(struct lane *l)
{
    struct witness_job *run = answered_job(l, WITNESS_RUN), *deferred = answered_job(l, WITNESS_DEFERRED);
    memcpy(run->id, deferred->id, sizeof(run->id));
    witness_rest(&l->witness);
}

static void control_refused(struct lane *l)
{
    answered_job(l, WITNESS_RUN)->known = WITNESS_REFUSED;
    witness_rest(&l->witness);
}

static void control_beside(struct lane *l)
{
    answered_job(l, WITNESS_RUN)->known = WITNESS_UNTRIED;
    witness_rest(&l->witness);
}

static void control_cancel(struct lane *l)
{
    struct witness_job *job = answered_job(l, WITNESS_DEFERRED);
    job->cancel_tried = job->canceled = true;
    judge_all(l);
}

static void control_final(struct lane *l)
{
    struct witness_job *job = answered_job(l, WITNESS_RUN);
    job->final = true;
    snprintf(job->state, sizeof(job->state), "SCRAPPED");
    judge_all(l);
}

static void control_crash(struct lane *l)
{
    mortal_signal(&l->mortal, SIGSEGV);
    (void)died(l, PLAN_LOAD, true);
}

static void control_silence(struct lane *l)
{
    mortal_signal(&l->mortal, SIGKILL); /* not by mortal_doom: by somebody else */
    (void)witness_load(&l->witness, BURST_MAX);
}

/* The data file as it was before the last answers. */
static void control_earlier(struct lane *l)
{
    char command[1200];
    static const char copy[] = "cp '%s/data.mdb' '%s/data.mdb.earlier'",
                      back[] = "mv '%s/data.mdb.earlier' '%s/data.mdb'";
    kill_now(l);
    snprintf(command, sizeof(command), copy, l->store, l->store);
    if (system(command) != 0 || !serve_in_peace(l))
        mortal_give_up("no copy of a store");
    (void)witness_load(&l->witness, BURST_MAX);
    kill_now(l);
    snprintf(command, sizeof(command), back, l->store, l->store);
    if (system(command) != 0 || !serve_in_peace(l))
        mortal_give_up("a store can't be put back");
    (void)witness_judge(&l->witness);
}

/* A bit of every page but the first two. */
static void control_damage(struct lane *l)
{
    char path[400];
    uint8_t byte;
    leave_in_peace(l);
    snprintf(path, sizeof(path), "%s/data.mdb", l->store);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    for (off_t at = 2 * 4096 + 64; fd >= 0 && pread(fd, &byte, 1, at) == 1; at += 4096) {
        byte ^= 1;
        if (pwrite(fd, &byte, 1, at) != 1)
            break;
    }
    close(fd);
    check(l);
}

static const struct control {
    const char *name;
    void (*run)(struct lane *l);
    const char *told; /* what is said of it, among other words */
} controls[] = {
    {"an acknowledged job that isn't there", control_lost, "an acknowledged job is lost"},
    {"a key that gives another job", control_other_job, "its key gave another job"},
    {"a refused job that is there", control_refused, "what was refused is there"},
    {"a job beside those that are known", control_beside, "which nobody was told of"},
    {"an acknowledged cancel that wasn't", control_cancel, "an acknowledged cancel is lost"},
    {"a final state that changes", control_final, "a final state has changed"},
    {"a server that crashes", control_crash, "it ended by itself"},
    {"a server that somebody else kills", control_silence, "nobody has killed the server"},
    {"a store put back to what it was", control_earlier, "is lost"},
    {"a store with flipped bits", control_damage, "coppice check finds something"},
};

/* A server whose client knows a job of each kind. */
static bool control_ready(struct lane *l)
{
    bool good = serve_in_peace(l);
    for (int i = 0; good && i < CONTROL_ROUNDS_MAX; i++) {
        good = witness_load(&l->witness, BURST_MAX);
        if (i >= CONTROL_ROUNDS && answered_job(l, WITNESS_RUN) && answered_job(l, WITNESS_DEFERRED))
            return good && l->witness.violations == 0;
    }
    return false;
}

/* What it says is what it should say. */
static bool control_found(struct lane *l, const struct control *control)
{
    store_begin(l, "control", false);
    l->witness.quiet = true;
    bool ready = control_ready(l);
    if (ready)
        control->run(l);
    if (l->mortal.pid)
        kill_now(l);
    remove_store(l);
    bool found = ready && strstr(l->witness.first, control->told);
    printf("control          %s: %s%s\n", control->name,
           found ? "found" : "NOT FOUND, this campaign proves nothing; instead: ",
           found ? "" : l->witness.first);
    return found;
}

static bool controls_found(void)
{
    struct lane *l = lane_create(LANES_MAX);
    bool all = true;
    for (size_t i = 0; i < sizeof(controls) / sizeof(*controls); i++)
        all = control_found(l, &controls[i]) && all;
    witness_fini(&l->witness);
    free(l);
    memset(totals, 0, sizeof(*totals)); /* what was done so far was theirs */
    return all;
}

/* ---- the campaign ---- */

static pid_t fork_lane(uint64_t number)
{
    pid_t parent = getpid();
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        mortal_give_up("no process");
    if (pid == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
            _exit(1);
        run_lane(number);
    }
    return pid;
}

/* True: each has come to its end. */
static bool run_lanes(void)
{
    pid_t pids[LANES_MAX];
    bool good = true;
    atomic_store(&totals->left, options.cycles);
    for (uint64_t i = 0; i < options.lanes; i++)
        pids[i] = fork_lane(i);
    for (uint64_t i = 0; i < options.lanes; i++) {
        int status = 1;
        while (waitpid(pids[i], &status, 0) < 0 && errno == EINTR)
            ;
        good = good && status == 0;
    }
    return good;
}

static bool reached(const char *what, uint64_t count)
{
    if (count > 0 || options.cycles < REACH_CYCLES * options.lanes)
        return true;
    printf("never            %s: this campaign proves less than it says\n", what);
    return false;
}

static bool all_reached(void)
{
    const struct witness_totals *w = &totals->witnesses;
    bool all = true;
#define X(id, text) all &= reached("killed " text, totals->kills[MOMENT_##id]);
    MOMENTS(X)
#undef X
    all &= reached("a large store was killed", totals->of_large);
    all &= reached("drained in time", totals->drained);
    all &= reached("refused", w->refused);
    all &= reached("canceled", w->canceled);
    all &= reached("unknown, and committed", w->committed);
    all &= reached("unknown, and not committed", w->uncommitted);
    return all;
}

static uint64_t kills_count(void)
{
    uint64_t kills = 0;
    for (int i = 0; i < MOMENT_COUNT; i++)
        kills += totals->kills[i];
    return kills;
}

static int report(uint64_t began_us, bool good)
{
    const struct witness_totals *w = &totals->witnesses;
    double seconds = (double)(mortal_now_us() - began_us) / 1e6;
    uint64_t kills = kills_count();
#define X(id, text) printf("killed           %" PRIu64 " " text "\n", totals->kills[MOMENT_##id]);
    MOMENTS(X)
#undef X
    printf("stores           %" PRIu64 ", of them large %" PRIu64 " (killed %" PRIu64
           " times); coppice check looked at %" PRIu64 "\n",
           totals->stores, totals->large, totals->of_large, totals->checks);
    printf("drained in time  %" PRIu64 "\n", totals->drained);
    printf("acknowledged     %" PRIu64 " submits, %" PRIu64 " cancels; looked at %" PRIu64
           " times, listed %" PRIu64 "\n",
           w->answered, w->canceled, w->looks, w->listed);
    printf("refused          %" PRIu64 "\n", w->refused);
    printf("unknown outcomes %" PRIu64 " (committed %" PRIu64 ", not committed %" PRIu64 ")\n",
           w->committed + w->uncommitted, w->committed, w->uncommitted);
    good = all_reached() && good && kills == options.cycles && w->violations == 0;
    printf("%" PRIu64 " kills of the whole server in %.1f s, %.1f ms each: %" PRIu64 " violations\n", kills,
           seconds, seconds * 1000 / (double)(kills ? kills : 1), w->violations);
    printf("%" PRIu64 " passed, %u failed\n", good ? kills : 0, good ? 0u : 1u);
    return good ? 0 : 1;
}

static _Noreturn void usage(void)
{
    fprintf(stderr, "kill9_service PROGRAM [--cycles 1..%d] [--seed S] [--lanes 1..%d] [--dir D]\n",
            CYCLES_MAX, LANES_MAX);
    exit(EXIT_USAGE);
}

static uint64_t number_of(const char *text, uint64_t least, uint64_t most)
{
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno || *end || *text < '0' || *text > '9' || value < least || value > most)
        usage();
    return value;
}

static void read_options(int argc, char **argv)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    options.lanes = cpus < LANES_MAX ? (uint64_t)cpus + 1 : LANES_MAX; /* one of them waits for something */
    options.dir = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    if (argc < 2 || argc % 2 != 0)
        usage();
    options.program = argv[1];
    for (int i = 2; i < argc; i += 2) {
        if (strcmp(argv[i], "--cycles") == 0)
            options.cycles = number_of(argv[i + 1], 1, CYCLES_MAX);
        else if (strcmp(argv[i], "--seed") == 0)
            options.seed = number_of(argv[i + 1], 0, UINT32_MAX);
        else if (strcmp(argv[i], "--lanes") == 0)
            options.lanes = number_of(argv[i + 1], 1, LANES_MAX);
        else if (strcmp(argv[i], "--dir") == 0)
            options.dir = argv[i + 1];
        else
            usage();
    }
}

int main(int argc, char **argv)
{
    read_options(argc, argv);
    setvbuf(stdout, NULL, _IOLBF, 0);
    totals = mmap(NULL, sizeof(*totals), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (totals == MAP_FAILED)
        mortal_give_up("no memory");
    if (!camp_begin(&camp, options.dir, "kill9_service"))
        mortal_give_up(options.dir);
    uint64_t began_us = mortal_now_us();
    bool found = controls_found();
    bool ran = run_lanes();
    int status = report(began_us, found && ran);
    camp_end(&camp);
    return status;
}
