/* Two processes and one store: exactly one has it, each time (D7, S5, G23).
 *
 * Two real processes meet at a barrier in shared memory and open the same directory at once, TWO_RACES=1000 times
 * (10,000 in a campaign): one that doesn't exist, an empty one, and one with a store. */
#define _GNU_SOURCE
#include "acutest.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/store.h"
#include "tests/store/place.h"

enum { RACERS = 2 };

struct meeting {
    _Atomic uint32_t waiting, turn;
    _Atomic uint32_t owners;  /* at this moment */
    _Atomic uint32_t overlap; /* how often there were two */
    _Atomic uint32_t result[RACERS], opened[RACERS], refused[RACERS];
    _Atomic uint32_t won[RACERS], tries[RACERS], lets[RACERS], bad, gone;
    char text[RACERS][256];
};

static struct meeting *meeting;
static char dir[PLACE_PATH_MAX], store_dir[PLACE_PATH_MAX + 16];

static uint32_t races(void)
{
    const char *text = getenv("TWO_RACES");
    return text ? (uint32_t)strtoul(text, NULL, 10) : 1000;
}

static struct environment_options small(void)
{
    return (struct environment_options){.dir = store_dir,
                                        .map = 1 << 20,
                                        .map_max = 8 << 20,
                                        .step = 64 << 10,
                                        .reserve = 64 << 10,
                                        .birth = {7}};
}

/* Nobody passes before all have come. */
static void meet(void)
{
    uint32_t turn = atomic_load(&meeting->turn);
    if (atomic_fetch_add(&meeting->waiting, 1) + 1 == RACERS) {
        atomic_store(&meeting->waiting, 0);
        atomic_fetch_add(&meeting->turn, 1);
        return;
    }
    while (atomic_load(&meeting->turn) == turn && !atomic_load(&meeting->gone))
        sched_yield();
}

/* What lies there when the race begins. */
enum ground { MISSING, EMPTY, STORE, GROUNDS };

static void lay(enum ground ground)
{
    if (ground != STORE)
        place_remove(store_dir);
    if (ground == EMPTY)
        (void)mkdir(store_dir, 0700);
}

static void race(uint32_t me, uint32_t round)
{
    struct environment e;
    struct environment_options o = small();
    enum ground ground = round % GROUNDS;
    if (me == 0)
        lay(ground);
    meet();
    enum error error = environment_open(&o, &store_schema, &e, meeting->text[me], sizeof(meeting->text[me]));
    atomic_store(&meeting->result[me], error);
    meet(); /* the owner has it until the other one has tried */
    uint32_t other = atomic_load(&meeting->result[1 - me]);
    if (error == OK)
        atomic_fetch_add(&meeting->won[me], 1);
    if (me == 0 && !((error == OK && other == ERR_IN_USE) || (error == ERR_IN_USE && other == OK))) {
        atomic_fetch_add(&meeting->bad, 1);
        printf("race %u, ground %d: %s and %s (%s; %s)\n", round, ground, error_name(error),
               error_name((enum error)other), meeting->text[0], meeting->text[1]);
    }
    meet();
    if (error == OK)
        environment_close(&e);
    meet();
}

static void race_all(uint32_t me)
{
    uint32_t count = races();
    for (uint32_t round = 0; round < count && atomic_load(&meeting->bad) < 5; round++)
        race(me, round);
}

/* Until the other one has tried once more, waits as well, or is through. */
static void let_the_other_try(uint32_t me, uint32_t count)
{
    uint32_t seen = atomic_load(&meeting->tries[1 - me]);
    atomic_store(&meeting->lets[me], 1);
    while (seen < count && atomic_load(&meeting->tries[1 - me]) == seen &&
           !atomic_load(&meeting->lets[1 - me]) && !atomic_load(&meeting->gone))
        sched_yield();
    atomic_store(&meeting->lets[me], 0);
}

/* No barrier: open, look around, close, again. At no moment are there two owners. */
static void take_turns(uint32_t me)
{
    struct environment_options o = small();
    uint32_t count = races();
    meet();
    for (uint32_t i = 0; i < count; i++) {
        struct environment e;
        enum error error =
            environment_open(&o, &store_schema, &e, meeting->text[me], sizeof(meeting->text[me]));
        if (error == ERR_IN_USE) {
            atomic_fetch_add(&meeting->refused[me], 1);
            sched_yield();
            continue;
        }
        if (error != OK) {
            atomic_fetch_add(&meeting->bad, 1);
            printf("turn %u: %s: %s\n", i, error_name(error), meeting->text[me]);
            continue;
        }
        atomic_fetch_add(&meeting->opened[me], 1);
        if (atomic_fetch_add(&meeting->owners, 1) != 0)
            atomic_fetch_add(&meeting->overlap, 1);
        sched_yield();
        atomic_fetch_sub(&meeting->owners, 1);
        environment_close(&e);
        if (i % 8 == 0)
            let_the_other_try(me, count);
    }
}

/* Two children run it; true when both came to their end. */
static bool two(void (*run)(uint32_t me))
{
    pid_t pids[RACERS];
    bool good = true;
    meeting = mmap(NULL, sizeof(*meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    TEST_ASSERT(meeting != MAP_FAILED);
    place_make(dir);
    snprintf(store_dir, sizeof(store_dir), "%s/store", dir);
    fflush(NULL);
    for (uint32_t me = 0; me < RACERS; me++) {
        pids[me] = fork();
        TEST_ASSERT(pids[me] >= 0);
        if (pids[me] == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            run(me);
            fflush(NULL);
            _exit(0);
        }
    }
    for (uint32_t me = 0; me < RACERS; me++) {
        int status = 0;
        while (wait(&status) < 0)
            TEST_ASSERT(errno == EINTR);
        good = good && WIFEXITED(status) && WEXITSTATUS(status) == 0;
        atomic_store(&meeting->gone, 1); /* the other one must not wait for it */
    }
    place_remove(dir);
    return good;
}

static void test_races(void)
{
    TEST_CHECK(two(race_all));
    TEST_CHECK_(meeting->bad == 0, "%u races had no owner, two of them, or an error", meeting->bad);
    TEST_CHECK_(meeting->won[0] + meeting->won[1] == races(), "%u + %u won", meeting->won[0],
                meeting->won[1]);
    printf("%u races: the first won %u, the second %u\n", races(), meeting->won[0], meeting->won[1]);
}

static void test_turns(void)
{
    TEST_CHECK(two(take_turns));
    TEST_CHECK_(meeting->bad == 0, "%u errors", meeting->bad);
    TEST_CHECK_(meeting->overlap == 0, "%u times there were two owners", meeting->overlap);
    TEST_CHECK(meeting->opened[0] + meeting->opened[1] > 0);
    printf("opened %u and %u times, refused %u and %u times\n", meeting->opened[0], meeting->opened[1],
           meeting->refused[0], meeting->refused[1]);
}

/* ---- a fork with an open store ---- */

enum { REFUSED = 70 }; /* the status of a process that ends by an assertion */
static struct environment forked;

static int child_opens(void *arg)
{
    struct environment e;
    struct environment_options o = small();
    char text[256];
    (void)arg;
    return (int)environment_open(&o, &store_schema, &e, text, sizeof(text));
}

static int child_looks(void *arg)
{
    struct environment_stats stats;
    (void)arg;
    return environment_stats(&forked, NULL, &stats) == OK ? 0 : 1;
}

static int child_writes(void *arg)
{
    return environment_grow(arg) == OK ? 0 : 1;
}

static int child_allocates(void *arg)
{
    return environment_allocate(arg, 0) == OK ? 0 : 1;
}

/* The child of a fork has the parent's descriptors and map, and no business with them. */
static void test_fork_with_an_open_store(void)
{
    char text[256];
    place_make(dir);
    snprintf(store_dir, sizeof(store_dir), "%s", dir);
    struct environment_options o = small();
    TEST_ASSERT(environment_open(&o, &store_schema, &forked, text, sizeof(text)) == OK);
    TEST_CHECK(place_apart(child_opens, NULL) == ERR_IN_USE);
    TEST_CHECK(place_apart(child_looks, NULL) == REFUSED);
    TEST_CHECK(place_apart(child_writes, &forked) == REFUSED);
    TEST_CHECK(place_apart(child_allocates, &forked) == REFUSED);
    struct environment_stats stats;
    TEST_CHECK(environment_stats(&forked, NULL, &stats) == OK); /* the parent goes on */
    environment_close(&forked);
    TEST_CHECK(environment_open(&o, &store_schema, &forked, text, sizeof(text)) == OK);
    environment_close(&forked);
    place_remove(dir);
}

/* A program that the server has started doesn't keep the store from being opened again. */
static void test_a_started_program_holds_nothing(void)
{
    char text[256];
    int says[2], hears[2];
    place_make(dir);
    snprintf(store_dir, sizeof(store_dir), "%s", dir);
    struct environment_options o = small();
    TEST_ASSERT(environment_open(&o, &store_schema, &forked, text, sizeof(text)) == OK);
    TEST_ASSERT(pipe(says) == 0 && pipe(hears) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(hears[0], 0);
        dup2(says[1], 1);
        execlp("sh", "sh", "-c", "echo; read line", (char *)NULL);
        _exit(127);
    }
    char byte;
    TEST_CHECK(read(says[0], &byte, 1) == 1); /* it runs */
    environment_close(&forked);
    enum error error = environment_open(&o, &store_schema, &forked, text, sizeof(text));
    TEST_CHECK_(error == OK, "%s", text);
    environment_close(&forked);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    for (int i = 0; i < 2; i++) {
        close(says[i]);
        close(hears[i]);
    }
    place_remove(dir);
}

TEST_LIST
= {{"D7 S5 G23 two open at once", test_races},
   {"D7 S5 they take turns", test_turns},
   {"D7 a fork with an open store", test_fork_with_an_open_store},
   {"D7 a started program holds nothing", test_a_started_program_holds_nothing},
   {NULL, NULL}};
