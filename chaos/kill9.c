/* kill9: kill -9 of a working store at random instants, and what is left afterwards.
 *
 *     kill9 [--cycles N] [--seed S] [--parents N] [--dir D] [--memory D]
 *
 * A parent starts a process that opens a store and loads it; every attempt is written to shared memory before it
 * is made, and its answer when it came. The parent kills the process: while it opens (or makes) the store, under
 * load, 0.2 to 4 ms after the first answer, or while it closes. A second process then opens the store and
 * compares it with a model that has seen the same attempts and answers:
 *
 *     answered OK     is there, with every byte, its events, outbox rows, ledger row, due entry and counters;
 *                     a token that was used can't come as another one, a client that came and an audit entry are there,
 *                     its keys stand, have ended or were used as it says, and what retention swept has gone
 *     refused         has left nothing, and the model refuses it for the same reason
 *     not answered    is wholly there or not at all; sent again with the same key it gives the stored answer in
 *                     the first case and is executed once in the second
 *
 * and the number of rows of each table is what the model says, so there is nothing besides. A store goes through
 * some tens of such cycles, which is its ordeal; then all of it is compared, `coppice check`'s look at the rows included, and the
 * next one begins with other sizes. Every other ordeal has the real writer and submitters as actors; in the others one
 * thread makes the batches, and all of a batch must be there or nothing.
 *
 * One ordeal of five has a twin instead of a model: every command of the registry is drawn, and the same batches go to a store
 * that nobody kills (kill9_twin.h). A campaign says how many commands were accepted in those.
 *
 * A campaign begins with controls, stores that answer before the commit or commit a batch in two halves, with a model and with a
 * twin: it fails unless all are found out.
 *
 * Most ordeals are in memory (--memory, /dev/shm when it is there), one of DISK_SHARE on the disk (--dir).
 *
 * Its nouns: chaos/kill9_names.h (what things are called), kill9_attempt.h (what is tried), kill9_model.h (what must be there),
 * kill9_ordeal.h (one store), kill9_submitter.h (who tries), kill9_victim.h (who is killed), kill9_sight.h (what is seen),
 * kill9_judge.h (whether it is right) and kill9_twin.h (stores with a twin). Here is the campaign: parents, their cycles, the
 * instants of the kills, the controls.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "chaos/camp.h"
#include "chaos/kill9_judge.h"
#include "chaos/kill9_ordeal.h"
#include "chaos/kill9_twin.h"
#include "chaos/kill9_victim.h"

#define PARENTS_MAX    16u
#define PATIENCE_MS    600000 /* for a process that says nothing: it hangs, or each of its syncs takes seconds */
#define CONTROL_CYCLES 300u
#define VIOLATIONS_MAX 5u /* then a parent gives up; each leaves its store */

static struct {
    uint64_t cycles, seed, parents;
    const char *dir, *memory;
} options = {.cycles = 10000, .seed = 1, .parents = 2, .dir = "build/kill9", .memory = "/dev/shm"};

static struct camp on_disk, in_memory;
static struct dice parent_dice;
static uint64_t opening_ns = 2000000; /* how long opening takes on this machine, about */

static uint64_t now_ns(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
    struct timespec ts = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
    while (nanosleep(&ts, &ts) != 0 && errno == EINTR)
        ;
}

static pid_t fork_child(void)
{
    pid_t parent = getpid();
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        perror("kill9: fork");
        exit(71);
    }
    if (pid == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent))
        _exit(6);
    return pid;
}

enum when { WHEN_OPENING, WHEN_LOADED, WHEN_CLOSING };

/* Waits until the victim says that it is there; false: it has ended, or says nothing any more. */
static bool hear(int fd, enum ordeal_moment moment)
{
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int ready = poll(&p, 1, PATIENCE_MS);
        char said;
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return ordeal_complain("the process under load hangs");
        if (read(fd, &said, 1) != 1)
            return false;
        if (said == (char)moment)
            return true;
    }
}

static void wait_for_the_instant(int fd, enum when when)
{
    if (!hear(fd, ORDEAL_OPENS))
        return;
    uint64_t began = now_ns(CLOCK_MONOTONIC);
    if (when == WHEN_OPENING) {
        sleep_ns(dice_draw(&parent_dice) % (opening_ns + opening_ns / 4));
        return;
    }
    if (!hear(fd, ORDEAL_ANSWERED))
        return;
    opening_ns = (opening_ns * 7 + (now_ns(CLOCK_MONOTONIC) - began)) / 8;
    if (when == WHEN_LOADED)
        sleep_ns(200000 + dice_draw(&parent_dice) % 3800000);
    else if (hear(fd, ORDEAL_CLOSES))
        sleep_ns(dice_draw(&parent_dice) % 400000);
}

/* True: it was killed, or had closed its store properly. */
static bool run_victim(enum when when)
{
    int fds[2];
    if (pipe(fds) != 0) {
        perror("kill9: pipe");
        exit(71);
    }
    pid_t pid = fork_child();
    if (pid == 0) {
        close(fds[0]);
        ordeal_tell_to(fds[1]);
        victim_work(when == WHEN_CLOSING);
    }
    close(fds[1]);
    wait_for_the_instant(fds[0], when);
    kill(pid, SIGKILL);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    close(fds[0]);
    if (ordeal_shared->complaint[0])
        return false;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return true;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && when == WHEN_CLOSING)
        return true;
    return ordeal_complain("the process under load ended by itself: %s %d",
                           WIFSIGNALED(status) ? "signal" : "status",
                           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static void look(bool last)
{
    char text[512];
    struct store *store;
    if (ordeal.actors)
        ordeal.clock_us = now_ns(CLOCK_REALTIME) / NS_PER_US;
    enum error e = store_open(&ordeal.options, &store, text, sizeof(text));
    if (e != OK) {
        ordeal_complain("opening afterwards: %s: %.400s", error_name(e), text);
        _exit(1);
    }
    e = store_load(store);
    if (e != OK) {
        ordeal_complain("reading the ledger: %s", error_name(e));
        _exit(1);
    }
    bool good = ordeal.twin ? twin_judge(store, last) : judge_store(store, last);
    store_close(store);
    ordeal.committed = true;
    ordeal_shared->left = ordeal;
    _exit(good ? 0 : 1);
}

static bool run_judge(bool last)
{
    pid_t pid = fork_child();
    if (pid == 0) {
        alarm(PATIENCE_MS / 1000);
        look(last);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        ordeal = ordeal_shared->left;
        return true;
    }
    if (WIFEXITED(status) && ordeal_shared->complaint[0])
        return false;
    return ordeal_complain("the process that looks ended by %s %d", WIFSIGNALED(status) ? "signal" : "status",
                           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static void count_cycle(enum when when)
{
    ordeal_totals->cycles++;
    if (ordeal.on_disk)
        ordeal_totals->on_disk++;
    else
        ordeal_totals->in_memory++;
    if (when == WHEN_OPENING)
        ordeal_totals->opening++;
    else if (when == WHEN_LOADED)
        ordeal_totals->load++;
    else
        ordeal_totals->closing++;
}

static void tell_violation(uint32_t parent, uint64_t seed, enum when when)
{
    static const char *const whens[] = {
        [WHEN_OPENING] = "while opening", [WHEN_LOADED] = "under load", [WHEN_CLOSING] = "while closing"};
    camp_keep(&on_disk);
    camp_keep(&in_memory); /* a twin lies there */
    for (uint32_t n = 0; n < LANES; n++) {
        const struct attempt *a = ordeal_open(n);
        if (a)
            fprintf(stderr, "kill9:   lane %u had no answer to its %s of parcel %u of lane %u (batch %u)\n",
                    n, attempt_kind_name(a->kind), a->parcel, a->owner, a->batch);
    }
    fprintf(stderr,
            "kill9: VIOLATION: %s\n"
            "kill9:   parent %u with seed %" PRIu64 ", ordeal %" PRIu64
            " (%s, %s, %u lanes), its cycle %u, killed %s\n"
            "kill9:   what is left is kept in %s; the same choices again, at other instants: kill9 --seed "
            "%" PRIu64 " --parents %" PRIu64 " --cycles %" PRIu64 "\n",
            ordeal_shared->complaint, parent, seed, ordeal.number, ordeal.on_disk ? "disk" : "memory",
            ordeal.actors ? "actors"
            : ordeal.twin ? "twin"
                          : "batches",
            ordeal.lanes_busy, ordeal.cycle, whens[when], ordeal.dir, options.seed, options.parents,
            options.cycles);
}

static bool cycle(uint32_t parent, uint64_t seed, bool last)
{
    uint32_t kind = dice_below(&parent_dice, 100);
    enum when when = kind < 15 ? WHEN_OPENING : kind < 95 ? WHEN_LOADED : WHEN_CLOSING;
    ordeal_cycle(&parent_dice);
    count_cycle(when);
    if (run_victim(when) && run_judge(last))
        return true;
    ordeal_totals->failed++;
    if (!ordeal.control)
        tell_violation(parent, seed, when);
    return false;
}

/* Runs ordeals until so many cycles are done, or there were VIOLATIONS_MAX violations; one is enough of a control.
 * Returns the number of violations. */
static uint64_t run_ordeals(uint32_t parent, uint64_t seed, uint64_t cycles, enum control control)
{
    const struct ordeal_place place = {.disk = on_disk.dir, .memory = in_memory.dir, .parent = parent};
    uint64_t violations = 0;
    parent_dice.state = seed;
    ordeal_install();
    while (cycles && violations < (control ? 1 : VIOLATIONS_MAX)) {
        bool good = true, last = false;
        ordeal_begin(&place, control, &parent_dice);
        while (good && !last) {
            cycles--;
            last = ordeal.cycle + 1 == ordeal.cycles || cycles == 0;
            good = cycle(parent, seed, last);
        }
        violations += !good;
        if (good || control)
            ordeal_end();
    }
    return violations;
}

/* How many cycles it took until the store that does this wrong was found out; 0: it wasn't. */
static uint64_t control_run(enum control control)
{
    struct ordeal_totals *of_all = ordeal_totals;
    ordeal_totals = ordeal_memory(sizeof(*ordeal_totals));
    pid_t pid = fork_child();
    if (pid == 0) {
        exit(run_ordeals(PARENTS_MAX + control, options.seed, CONTROL_CYCLES, control) ? 0 : 1);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    uint64_t cycles = WIFEXITED(status) && WEXITSTATUS(status) == 0 ? ordeal_totals->cycles : 0;
    munmap(ordeal_totals, sizeof(*ordeal_totals));
    ordeal_totals = of_all;
    return cycles;
}

static void usage(void)
{
    fprintf(stderr, "kill9 [--cycles N] [--seed S] [--parents 1..%u] [--dir D] [--memory D]\n", PARENTS_MAX);
    exit(64);
}

static uint64_t number_of(const char *text)
{
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno || *end || !*text || *text == '-')
        usage();
    return value;
}

static void read_options(int argc, char **argv)
{
    if (argc % 2 == 0)
        usage();
    for (int i = 1; i < argc; i += 2) {
        if (strcmp(argv[i], "--cycles") == 0)
            options.cycles = number_of(argv[i + 1]);
        else if (strcmp(argv[i], "--seed") == 0)
            options.seed = number_of(argv[i + 1]);
        else if (strcmp(argv[i], "--parents") == 0)
            options.parents = number_of(argv[i + 1]);
        else if (strcmp(argv[i], "--dir") == 0)
            options.dir = argv[i + 1];
        else if (strcmp(argv[i], "--memory") == 0)
            options.memory = argv[i + 1];
        else
            usage();
    }
    if (options.parents < 1 || options.parents > PARENTS_MAX || options.cycles < options.parents)
        usage();
    if (access(options.memory, W_OK) != 0)
        options.memory = options.dir;
}

static void begin_camps(void)
{
    if ((mkdir(options.dir, 0777) != 0 && errno != EEXIST) || !camp_begin(&on_disk, options.dir, "kill9")) {
        perror(options.dir);
        exit(73);
    }
    if (!camp_begin(&in_memory, options.memory, "kill9")) {
        perror(options.memory);
        exit(73);
    }
}

static void end_camps(void)
{
    camp_end(&in_memory);
    camp_end(&on_disk);
    (void)rmdir(options.dir); /* when nothing was kept */
}

static int report(uint64_t began, bool controls)
{
    double seconds = (double)(now_ns(CLOCK_MONOTONIC) - began) / 1e9;
    const struct ordeal_totals *t = ordeal_totals;
    printf("kill9: seed %" PRIu64 ", %.1f s, %.0f cycles/s\n", options.seed, seconds,
           (double)t->cycles / seconds);
    printf("cycles           %" PRIu64 " (%" PRIu64 " in memory, %" PRIu64
           " on disk; killed while opening %" PRIu64 ", under load %" PRIu64 ", while closing %" PRIu64
           "), %" PRIu64 " stores\n",
           t->cycles, t->in_memory, t->on_disk, t->opening, t->load, t->closing, t->stores);
    printf("acknowledged     %" PRIu64 "\n", t->acknowledged);
    printf("lost             %" PRIu64 "\n", t->lost);
    printf("refused          %" PRIu64 "\n", t->refused);
    printf("refused present  %" PRIu64 "\n", t->present);
    printf("unknown outcomes %" PRIu64 " (committed %" PRIu64 ", not committed %" PRIu64
           ", changed nothing either way %" PRIu64 "); sent again %" PRIu64 "\n",
           t->unknown, t->committed, t->uncommitted, t->same, t->made_again);
    printf("rows checked at the end of ordeals %" PRIu64 ", batches cut in two %" PRIu64 "\n",
           t->checked_rows, t->batches_cut);
    uint32_t commands, accepted;
    twin_reached(&commands, &accepted);
    printf("twins            %" PRIu64 ": of the %" PRIu32 " commands of the registry %" PRIu32
           " were accepted and killed around\n",
           t->twins, commands, accepted);
    uint64_t passed = t->cycles - t->failed;
    uint64_t missing = options.cycles - t->cycles;
    printf("%" PRIu64 " passed, %" PRIu64 " failed\n", passed, t->failed + missing);
    return t->failed + missing || !controls ? 1 : 0;
}

static bool run_controls(void)
{
    static const char *const names[] = {[CONTROL_EARLY] = "an answer before the commit",
                                        [CONTROL_HALF] = "a batch in two halves",
                                        [CONTROL_TWIN_EARLY] = "the first, beside a twin",
                                        [CONTROL_TWIN_HALF] = "the second, beside a twin"};
    bool all = true;
    for (enum control control = CONTROL_EARLY; control < CONTROL_COUNT; control++) {
        uint64_t cycles = control_run(control);
        if (cycles)
            printf("control          %s: found in cycle %" PRIu64 "\n", names[control], cycles);
        else
            printf("control          %s: NOT FOUND in %u cycles; this campaign proves nothing\n",
                   names[control], CONTROL_CYCLES);
        all = all && cycles;
    }
    return all;
}

int main(int argc, char **argv)
{
    read_options(argc, argv);
    begin_camps();
    ordeal_totals = ordeal_memory(sizeof(*ordeal_totals));
    uint64_t began = now_ns(CLOCK_MONOTONIC);
    bool controls = run_controls();
    for (uint32_t n = 0; n < options.parents; n++)
        if (fork_child() == 0) {
            (void)run_ordeals(n, options.seed * 1000 + n,
                              options.cycles / options.parents + (n < options.cycles % options.parents),
                              CONTROL_NONE);
            exit(0);
        }
    while (wait(NULL) > 0 || errno == EINTR)
        ;
    end_camps();
    return report(began, controls);
}
