#include "runtime/names.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "acutest.h"

static int take(struct names *names, const char *name, uint64_t pid)
{
    return names_register(names, name, strlen(name), pid, NULL);
}

static uint64_t look(const struct names *names, const char *name)
{
    return names_lookup(names, name, strlen(name));
}

static bool drop(struct names *names, const char *name, uint64_t pid)
{
    return names_unregister(names, name, strlen(name), pid);
}

static void test_REG_01_one_holder(void)
{
    struct names *names = names_create(100);
    uint64_t holder = 99;
    TEST_CHECK(look(names, "room:42") == 0);
    TEST_CHECK(names_register(names, "room:42", 7, 1, &holder) == 0);
    TEST_CHECK(holder == 99); /* written only when the name is taken */
    TEST_CHECK(look(names, "room:42") == 1);
    TEST_CHECK(names_register(names, "room:42", 7, 2, &holder) == -EEXIST);
    TEST_CHECK(holder == 1);
    TEST_CHECK(names_register(names, "room:42", 7, 1, NULL) == -EEXIST);
    TEST_CHECK(look(names, "room:42") == 1);
    TEST_CHECK(look(names, "room:4") == 0);
    TEST_CHECK(look(names, "room:421") == 0);
    TEST_CHECK(names_count(names) == 1);
    names_destroy(names);
}

static void test_REG_05_only_the_holder_unregisters(void)
{
    struct names *names = names_create(100);
    TEST_CHECK(!drop(names, "room", 1));
    take(names, "room", 1);
    TEST_CHECK(!drop(names, "room", 2));
    TEST_CHECK(!drop(names, "room", 0));
    TEST_CHECK(!drop(names, "other", 1));
    TEST_CHECK(look(names, "room") == 1);
    TEST_CHECK(drop(names, "room", 1));
    TEST_CHECK(!drop(names, "room", 1));
    TEST_CHECK(look(names, "room") == 0);
    TEST_CHECK(names_count(names) == 0);
    names_destroy(names);
}

static void test_REG_08_the_other_name_stays(void)
{
    struct names *names = names_create(100);
    take(names, "first", 1);
    take(names, "second", 1);
    TEST_CHECK(drop(names, "first", 1));
    TEST_CHECK(look(names, "first") == 0);
    TEST_CHECK(look(names, "second") == 1);
    names_destroy(names);
}

/* With room for two names, a refused registration that took anything would be noticed. */
static void test_REG_09_refused_registrations_take_nothing(void)
{
    struct names *names = names_create(2);
    take(names, "held", 1);
    for (uint64_t i = 0; i < 10000; i++) {
        TEST_CHECK(take(names, "held", 2 + i) == -EEXIST);
        TEST_CHECK(names_unregister_all(names, 2 + i) == 0);
    }
    TEST_CHECK(names_count(names) == 1);
    TEST_CHECK(take(names, "second", 1) == 0);
    for (uint64_t i = 0; i < 10000; i++) {
        TEST_CHECK(take(names, "third", 2 + i) == -ENOSPC);
        TEST_CHECK(names_unregister_all(names, 2 + i) == 0);
    }
    TEST_CHECK(drop(names, "held", 1));
    TEST_CHECK(take(names, "third", 3) == 0);
    TEST_CHECK(look(names, "second") == 1);
    names_destroy(names);
}

struct shown {
    char text[400];
    int stop_after;
};

static bool show(void *context, const char *name, size_t length, uint64_t pid)
{
    struct shown *shown = context;
    size_t used = strlen(shown->text);
    TEST_CHECK(strlen(name) == length);
    snprintf(shown->text + used, sizeof(shown->text) - used, "%s=%llu ", name, (unsigned long long)pid);
    return --shown->stop_after != 0;
}

static const char *all_of(const struct names *names, const char *prefix)
{
    static struct shown shown;
    shown = (struct shown){.stop_after = -1};
    names_each(names, prefix, strlen(prefix), show, &shown);
    return shown.text;
}

static void test_REG_10_both_indexes_are_empty_after_death(void)
{
    struct names *names = names_create(1000);
    char name[16];
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "one:%d", i);
        take(names, name, 1);
        snprintf(name, sizeof(name), "two:%d", i);
        take(names, name, 2);
    }
    TEST_CHECK(names_unregister_all(names, 1) == 300);
    TEST_CHECK(names_unregister_all(names, 1) == 0);
    TEST_CHECK(all_of(names, "one:")[0] == 0);
    TEST_CHECK(look(names, "two:299") == 2);
    TEST_CHECK(names_count(names) == 300);
    TEST_CHECK(names_unregister_all(names, 2) == 300);
    TEST_CHECK(names_unregister_all(names, 0) == 0);
    TEST_CHECK(all_of(names, "")[0] == 0);
    TEST_CHECK(names_count(names) == 0);
    names_destroy(names);
}

static void test_limits_and_bad_names(void)
{
    TEST_CHECK(names_create(0) == NULL);
    TEST_CHECK(names_create((size_t)NAMES_COUNT_MAX + 1) == NULL);
    names_destroy(NULL);

    struct names *names = names_create(100);
    char longest[NAME_BYTES_MAX + 1];
    memset(longest, 'x', sizeof(longest));
    TEST_CHECK(names_register(names, longest, NAME_BYTES_MAX, 1, NULL) == 0);
    TEST_CHECK(names_lookup(names, longest, NAME_BYTES_MAX) == 1);
    TEST_CHECK(names_register(names, longest, NAME_BYTES_MAX + 1, 1, NULL) == -EINVAL);
    TEST_CHECK(names_lookup(names, longest, NAME_BYTES_MAX + 1) == 0);
    TEST_CHECK(!names_unregister(names, longest, NAME_BYTES_MAX + 1, 1));
    TEST_CHECK(names_register(names, longest, SIZE_MAX, 1, NULL) == -EINVAL);
    TEST_CHECK(names_lookup(names, longest, SIZE_MAX) == 0);
    TEST_CHECK(names_register(names, "", 0, 1, NULL) == -EINVAL);
    TEST_CHECK(names_lookup(names, "", 0) == 0);
    TEST_CHECK(!names_unregister(names, "", 0, 1));
    TEST_CHECK(names_register(names, "a\0b", 3, 1, NULL) == -EINVAL);
    TEST_CHECK(names_register(names, "a\0", 2, 1, NULL) == -EINVAL);
    TEST_CHECK(names_register(names, "a", 1, 0, NULL) == -EINVAL);
    TEST_CHECK(names_register(names, "a", 1, 1, NULL) == 0);
    TEST_CHECK(names_lookup(names, "a\0", 2) == 0); /* the padding is not part of the name */
    TEST_CHECK(names_count(names) == 2);
    names_destroy(names);
}

/* All lengths, twice: alike except for the last byte. Keys and lookups stop where readable memory ends. */
static void test_every_length(void)
{
    unsigned char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TEST_ASSERT(pages != MAP_FAILED);
    TEST_ASSERT(mprotect(pages + 4096, 4096, PROT_NONE) == 0);
    struct names *names = names_create(2 * NAME_BYTES_MAX);
    memset(pages, 'n', 4096);
    for (int pass = 0; pass < 3; pass++) {
        for (size_t length = 1; length <= NAME_BYTES_MAX; length++) {
            const char *name = (char *)pages + 4096 - length;
            for (uint64_t last = 'a'; last <= 'b'; last++) {
                pages[4095] = (unsigned char)last;
                uint64_t pid = length << 8 | last;
                struct name_key key = names_key(names, name, length);
                TEST_CHECK(pass != 0 || names_register(names, name, length, pid, NULL) == 0);
                TEST_CHECK(names_lookup(names, name, length) == pid);
                TEST_CHECK(names_lookup_key(names, &key) == pid);
                TEST_CHECK(pass != 2 || names_unregister(names, name, length, pid));
                TEST_CHECK(pass != 2 || names_lookup_key(names, &key) == 0);
                TEST_MSG("length %zu, pass %d", length, pass);
            }
        }
    }
    TEST_CHECK(names_count(names) == 0);
    names_destroy(names);
    TEST_CHECK(munmap(pages, 8192) == 0);
}

/* Pairs whose hashes, with the published key, agree in the home bucket and in the 32 bits that a slot keeps:
 * only the bytes behind the sixteenth, or in the tail, tell them apart. Found by trying three million names;
 * a change of the hash needs new ones, and the first check says so. */
static void test_names_whose_slots_are_equal(void)
{
    static const char *const pairs[][2] = {
        {"sixteen bytes...02166342", "sixteen bytes...02860670"},
        {"a name of more than forty-eight bytes, all of which are the same, 00008353",
         "a name of more than forty-eight bytes, all of which are the same, 00741712"},
    };
    struct names *names = names_create(100);
    for (int i = 0; i < 2; i++) {
        const char *first = pairs[i][0], *second = pairs[i][1];
        uint64_t differing =
            names_key(names, first, strlen(first)).hash ^ names_key(names, second, strlen(second)).hash;
        TEST_CHECK(differing != 0 && differing >> 32 == 0 && (differing & 63) == 0);
        TEST_CHECK(take(names, first, 1) == 0);
        TEST_CHECK(look(names, second) == 0);
        TEST_CHECK(take(names, second, 2) == 0);
        TEST_CHECK(look(names, first) == 1);
        TEST_CHECK(look(names, second) == 2);
        TEST_CHECK(drop(names, first, 1));
        TEST_CHECK(look(names, first) == 0);
        TEST_CHECK(look(names, second) == 2);
    }
    names_destroy(names);
}

/* Old entries are reused for new names at every size of the table, also while the next one is being filled.
 */
static void test_entries_are_reused_while_it_grows(void)
{
    enum { LOW = 50, STEPS = 7000 };
    struct names *names = names_create(STEPS + LOW);
    char name[32];
    for (unsigned i = 0; i < LOW; i++) {
        snprintf(name, sizeof(name), "low:%u", i);
        TEST_CHECK(take(names, name, 1) == 0);
    }
    for (unsigned i = 0; i < STEPS; i++) {
        snprintf(name, sizeof(name), "high:%u", i);
        TEST_CHECK(take(names, name, 2) == 0);
        snprintf(name, sizeof(name), "low:%u", i);
        TEST_CHECK(drop(names, name, 1));
        TEST_CHECK(look(names, name) == 0);
        snprintf(name, sizeof(name), "low:%u", i + LOW);
        TEST_CHECK(take(names, name, 1) == 0);
        TEST_CHECK(look(names, name) == 1);
    }
    TEST_CHECK(names_unregister_all(names, 1) == LOW);
    TEST_CHECK(names_unregister_all(names, 2) == STEPS);
    TEST_CHECK(names_count(names) == 0);
    names_destroy(names);
}

static void test_each_shows_prefix_in_a_fixed_order(void)
{
    static const struct hash_key other_key = {.k0 = 1, .k1 = 2};
    struct names *indexes[2] = {names_create(1000), names_create_keyed(1000, &other_key)};
    for (int i = 0; i < 2; i++) {
        struct names *names = indexes[i];
        TEST_CHECK(all_of(names, "")[0] == 0);
        take(names, "room:1", 1);
        take(names, "gone", 2);
        take(names, "agent:1", 3);
        take(names, "room:2", 4);
        take(names, "ro", 5);
        drop(names, "gone", 2);
        take(names, "room:3", 6); /* where "gone" was */
        TEST_CHECK(strcmp(all_of(names, ""), "room:1=1 room:3=6 agent:1=3 room:2=4 ro=5 ") == 0);
        TEST_CHECK(strcmp(all_of(names, "room:"), "room:1=1 room:3=6 room:2=4 ") == 0);
        TEST_CHECK(strcmp(all_of(names, "x"), "") == 0);
        struct shown two = {.stop_after = 2};
        names_each(names, "room:", 5, show, &two);
        TEST_CHECK(strcmp(two.text, "room:1=1 room:3=6 ") == 0);
        names_destroy(names);
    }
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Random registrations and their ends against an array, through all sizes of the table and full buckets. The
 * number of names swells to the limit and ebbs to nothing several times. */
enum { MODEL_NAMES = 12000, MODEL_MAX = 8000 };

static size_t model_name(char *text, size_t size, size_t number)
{
    return (size_t)snprintf(text, size, number % 3 ? "room:%zu" : "a name that is too long for two words:%zu",
                            number);
}

static void model_step(struct names *names, uint64_t *pid_of, size_t *count, uint64_t *state, bool swell)
{
    char name[NAME_BYTES_MAX];
    size_t number = next_random(state) % MODEL_NAMES;
    size_t length = model_name(name, sizeof(name), number);
    uint64_t pid = 1 + next_random(state) % 2000, holder = 0;
    TEST_CHECK(names_lookup(names, name, length) == pid_of[number]);
    if (pid_of[number] == 0) {
        int error = names_register(names, name, length, pid, &holder);
        TEST_CHECK(error == (*count == MODEL_MAX ? -ENOSPC : 0));
        if (error == 0) {
            pid_of[number] = pid;
            ++*count;
        }
    } else if (!swell) {
        TEST_CHECK(names_unregister(names, name, length, pid_of[number]));
        pid_of[number] = 0;
        --*count;
    } else {
        TEST_CHECK(names_register(names, name, length, pid, &holder) == -EEXIST);
        TEST_CHECK(holder == pid_of[number]);
    }
}

static void model_check(struct names *names, const uint64_t *pid_of, size_t count)
{
    size_t found = 0;
    for (size_t number = 0; number < MODEL_NAMES; number++) {
        char name[NAME_BYTES_MAX];
        size_t length = model_name(name, sizeof(name), number);
        TEST_CHECK(names_lookup(names, name, length) == pid_of[number]);
        found += pid_of[number] != 0;
    }
    TEST_CHECK(found == count);
    TEST_CHECK(names_count(names) == count);
}

static void model_kill(struct names *names, uint64_t *pid_of, size_t *count, uint64_t pid)
{
    size_t held = 0;
    for (size_t number = 0; number < MODEL_NAMES; number++) {
        if (pid_of[number] == pid) {
            pid_of[number] = 0;
            held++;
        }
    }
    TEST_CHECK(names_unregister_all(names, pid) == held);
    *count -= held;
}

static void test_random_against_a_model(void)
{
    static uint64_t pid_of[MODEL_NAMES];
    struct names *names = names_create(MODEL_MAX);
    size_t count = 0;
    uint64_t state = 3;
    for (int tide = 0; tide < 3; tide++) {
        for (int step = 0; step < 26000; step++) {
            model_step(names, pid_of, &count, &state, true);
            if (step % 2600 == 0) {
                model_check(names, pid_of, count);
            }
        }
        TEST_CHECK(count == MODEL_MAX);
        for (int step = 0; step < 8000; step++) {
            model_step(names, pid_of, &count, &state, false);
        }
        for (uint64_t pid = 1; pid <= 2000; pid++) {
            if (pid % 400 == 0) {
                model_check(names, pid_of, count);
            }
            if (tide < 2 || pid % 2) {
                model_kill(names, pid_of, &count, pid);
            }
        }
        model_check(names, pid_of, count);
    }
    names_destroy(names);
}

/* Threads. A pid is the thread's number and the count of its attempts, so that each is used once. */
enum { THREADS = 3 };
#define PID(thread, attempt) ((uint64_t)(thread) << 56 | (attempt))
#define THREAD_OF(pid)       ((pid) >> 56)
#define ATTEMPT_OF(pid)      ((pid) & (((uint64_t)1 << 56) - 1))

struct worker {
    struct names *names;
    uint64_t number;
    uint64_t attempts;
    uint64_t won;
    unsigned stale, refused, torn, missing;
};

static void run(void *(*work)(void *), struct worker *workers, unsigned count, void *(*other)(void *),
                void *argument)
{
    pthread_t threads[8], other_thread;
    for (unsigned i = 0; i < count; i++) {
        TEST_ASSERT(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    if (other) {
        TEST_ASSERT(pthread_create(&other_thread, NULL, other, argument) == 0);
        TEST_ASSERT(pthread_join(other_thread, NULL) == 0);
    }
    for (unsigned i = 0; i < count; i++) {
        TEST_ASSERT(pthread_join(threads[i], NULL) == 0);
    }
}

/* The last attempt of each thread whose end is known to everybody: a lookup or a refusal that starts
 * afterwards must not name it or an earlier one. */
static _Atomic uint64_t ended[THREADS];

static bool is_stale(uint64_t pid, const uint64_t *ended_before)
{
    return pid != 0 && ATTEMPT_OF(pid) <= ended_before[THREAD_OF(pid)];
}

static void load_ended(uint64_t *ended_before)
{
    for (int i = 0; i < THREADS; i++) {
        ended_before[i] = atomic_load(&ended[i]);
    }
}

static void *storm(void *argument)
{
    struct worker *w = argument;
    for (uint64_t attempt = 1; attempt <= w->attempts; attempt++) {
        uint64_t ended_before[THREADS], holder = 0, pid = PID(w->number, attempt);
        load_ended(ended_before);
        w->stale += is_stale(look(w->names, "the name"), ended_before);
        load_ended(ended_before);
        int error = names_register(w->names, "the name", 8, pid, &holder);
        if (error) {
            w->refused += error != -EEXIST || holder == 0 || is_stale(holder, ended_before);
            continue;
        }
        w->missing += look(w->names, "the name") != pid;
        w->missing += names_unregister_all(w->names, pid) != 1;
        atomic_store(&ended[w->number], attempt);
        w->stale += look(w->names, "the name") == pid;
        w->won++;
    }
    return NULL;
}

static void test_STORM_04_one_name_a_million_times(void)
{
    struct names *names = names_create(4);
    struct worker workers[THREADS] = {{0}};
    uint64_t won = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.names = names, .number = i, .attempts = 1000000 / THREADS + 1};
    }
    run(storm, workers, THREADS, NULL, NULL);
    for (unsigned i = 0; i < THREADS; i++) {
        TEST_CHECK(workers[i].stale == 0);
        TEST_CHECK(workers[i].refused == 0);
        TEST_CHECK(workers[i].missing == 0);
        won += workers[i].won;
    }
    TEST_CHECK(won > 0);
    TEST_CHECK(names_count(names) == 0);
    TEST_CHECK(take(names, "the name", 1) == 0);
    names_destroy(names);
}

/* Two long names take turns in the same entry. Whoever looks up one must never
 * get the pid that belongs to the other. Readers run until the writer is done. */
static char twins[2][NAME_BYTES_MAX];
static atomic_bool writer_done;

static void *take_turns(void *argument)
{
    struct names *names = argument;
    for (uint64_t attempt = 1; attempt <= 200000; attempt++) {
        const char *name = twins[attempt % 2];
        uint64_t pid = attempt << 1 | attempt % 2;
        names_register(names, name, NAME_BYTES_MAX, pid, NULL);
        names_unregister(names, name, NAME_BYTES_MAX, pid);
    }
    atomic_store(&writer_done, true);
    return NULL;
}

static bool look_at_twin(void *context, const char *name, size_t length, uint64_t pid)
{
    struct worker *w = context;
    w->torn += length != NAME_BYTES_MAX || memcmp(name, twins[pid % 2], length) != 0;
    return true;
}

static void *look_at_twins(void *argument)
{
    struct worker *w = argument;
    uint64_t newest[2] = {0, 0};
    do {
        for (uint64_t i = 0; i < 32; i++) {
            uint64_t twin = i % 2, pid = names_lookup(w->names, twins[twin], NAME_BYTES_MAX);
            w->torn += pid != 0 && pid % 2 != twin;
            w->stale += pid != 0 && pid < newest[twin]; /* pids grow: time does not run backwards */
            newest[twin] = pid ? pid : newest[twin];
        }
        for (int i = 0; i < 4; i++) {
            names_each(w->names, "", 0, look_at_twin, w);
        }
        w->won++;
    } while (!atomic_load(&writer_done));
    return NULL;
}

static void test_lookups_are_never_torn(void)
{
    memset(twins[0], 't', NAME_BYTES_MAX);
    memset(twins[1], 'T', NAME_BYTES_MAX);
    struct names *names = names_create(4);
    struct worker workers[2] = {{.names = names}, {.names = names}};
    atomic_store(&writer_done, false);
    run(look_at_twins, workers, 2, take_turns, names);
    for (unsigned i = 0; i < 2; i++) {
        TEST_CHECK(workers[i].torn == 0);
        TEST_CHECK(workers[i].stale == 0);
        TEST_CHECK(workers[i].won > 0);
    }
    TEST_CHECK(names_count(names) == 0);
    names_destroy(names);
}

/* The same without chance: a lookup is stopped in its middle. The text of its key continues on a page that
 * cannot be read, so comparing it faults after half of the entry has been read; the handler changes the index
 * under the lookup and makes the page readable. */
enum { PAGE = 4096, HALF = NAME_BYTES_MAX / 2 };

static struct {
    char *pages;
    struct names *names;
    void (*change)(struct names *names);
    unsigned stops;
} stopped;

static void on_fault(int signal_number, siginfo_t *info, void *context)
{
    (void)signal_number;
    (void)context;
    if (info->si_addr < (void *)(stopped.pages + PAGE) || stopped.stops > 0 ||
        mprotect(stopped.pages + PAGE, PAGE, PROT_READ) != 0) {
        abort();
    }
    stopped.stops++;
    stopped.change(stopped.names);
}

static const char name_before[] =
    "before, which is a name that goes on in its tail; the rest is the same for both";
static const char name_after[] =
    "after!, which is a name that goes on in its tail; the rest is the same for both";

static void change_holder(struct names *names)
{
    drop(names, name_before, 1);
    take(names, name_before, 2);
}

static void change_name(struct names *names)
{
    drop(names, name_before, 1);
    take(names, name_after, 2);
}

static void change_size(struct names *names)
{
    char name[32];
    for (unsigned i = 0; i < 5000; i++) {
        snprintf(name, sizeof(name), "other:%u", i);
        take(names, name, 3);
    }
}

/* What a lookup of name_before answers, when it is held by 1 and this happens meanwhile. */
static uint64_t look_while(void (*change)(struct names *names))
{
    struct names *names = names_create(10000);
    char *text = stopped.pages + PAGE - HALF;
    TEST_CHECK(mprotect(stopped.pages, 2 * PAGE, PROT_READ | PROT_WRITE) == 0);
    memcpy(text, name_before, sizeof(name_before));
    TEST_CHECK(take(names, name_before, 1) == 0);
    struct name_key key = names_key(names, text, strlen(text));
    TEST_CHECK(mprotect(stopped.pages + PAGE, PAGE, PROT_NONE) == 0);
    stopped.names = names;
    stopped.change = change;
    stopped.stops = 0;
    uint64_t pid = names_lookup_key(names, &key);
    TEST_CHECK(stopped.stops == 1);
    names_destroy(names);
    return pid;
}

static void test_changes_in_the_middle_of_a_lookup(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, before;
    stopped.pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TEST_ASSERT(stopped.pages != MAP_FAILED);
    TEST_ASSERT(sigaction(SIGSEGV, &action, &before) == 0);
    TEST_CHECK(look_while(change_name) == 0);   /* the same entry, but 2 never had this name */
    TEST_CHECK(look_while(change_holder) != 1); /* 0: free for a moment, or 2 */
    TEST_CHECK(look_while(change_size) == 1);   /* held all the while */
    TEST_ASSERT(sigaction(SIGSEGV, &before, NULL) == 0);
    TEST_CHECK(munmap(stopped.pages, 2 * PAGE) == 0);
}

/* Names that are held all the while are found in every lookup and shown by every walk, while the table
 * doubles six times under them, buckets fill up and all other names come and go. */
enum { HELD = 50, OTHERS = 12000 };

static void *grow(void *argument)
{
    struct names *names = argument;
    char name[32];
    for (int pass = 0; pass < 2; pass++) {
        for (uint64_t i = 0; i < OTHERS; i++) {
            snprintf(name, sizeof(name), "other:%u", (unsigned)i);
            take(names, name, 1000 + i / 10);
            if (i % 3 == 0) {
                drop(names, name, 1000 + i / 10);
            }
        }
        for (uint64_t i = 0; i <= OTHERS / 10; i++) {
            names_unregister_all(names, 1000 + i);
        }
    }
    atomic_store(&writer_done, true);
    return NULL;
}

static bool count_held(void *context, const char *name, size_t length, uint64_t pid)
{
    struct worker *w = context;
    w->torn += pid != (uint64_t)atoi(name + 5) + 1 || length < 6;
    w->attempts++;
    return true;
}

static void *look_at_held(void *argument)
{
    struct worker *w = argument;
    char name[32];
    do {
        for (unsigned i = 0; i < HELD; i++) {
            snprintf(name, sizeof(name), "held:%u", i);
            uint64_t pid = look(w->names, name);
            w->missing += pid == 0;
            w->torn += pid != 0 && pid != i + 1;
        }
        if (w->won % 16 == 0) {
            w->attempts = 0;
            names_each(w->names, "held:", 5, count_held, w);
            w->missing += w->attempts != HELD;
        }
        w->won++;
    } while (!atomic_load(&writer_done));
    return NULL;
}

static void test_held_names_are_found_while_it_grows(void)
{
    char name[32];
    for (int round = 0; round < 4; round++) { /* a table grows once in its life */
        struct names *names = names_create(HELD + OTHERS);
        for (unsigned i = 0; i < HELD; i++) {
            snprintf(name, sizeof(name), "held:%u", i);
            TEST_CHECK(take(names, name, i + 1) == 0);
        }
        struct worker workers[2] = {{.names = names}, {.names = names}};
        atomic_store(&writer_done, false);
        run(look_at_held, workers, 2, grow, names);
        for (unsigned i = 0; i < 2; i++) {
            TEST_CHECK(workers[i].missing == 0);
            TEST_CHECK(workers[i].torn == 0);
            TEST_CHECK(workers[i].won > 0);
        }
        TEST_CHECK(names_count(names) == HELD);
        names_destroy(names);
    }
}

TEST_LIST
= {
    {"REG-01 one holder at a time", test_REG_01_one_holder},
    {"REG-05 only the holder unregisters", test_REG_05_only_the_holder_unregisters},
    {"REG-08 the other name stays", test_REG_08_the_other_name_stays},
    {"REG-09 refused registrations take nothing", test_REG_09_refused_registrations_take_nothing},
    {"REG-10 both indexes are empty after death", test_REG_10_both_indexes_are_empty_after_death},
    {"limits and bad names are refused", test_limits_and_bad_names},
    {"every length", test_every_length},
    {"names whose slots are equal", test_names_whose_slots_are_equal},
    {"entries are reused while it grows", test_entries_are_reused_while_it_grows},
    {"each shows a prefix in a fixed order", test_each_shows_prefix_in_a_fixed_order},
    {"random calls against a model", test_random_against_a_model},
    {"STORM-04 one name a million times", test_STORM_04_one_name_a_million_times},
    {"lookups are never torn", test_lookups_are_never_torn},
    {"changes in the middle of a lookup", test_changes_in_the_middle_of_a_lookup},
    {"held names are found while it grows", test_held_names_are_found_while_it_grows},
    {NULL, NULL},
};
