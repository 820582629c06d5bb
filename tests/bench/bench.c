#define _GNU_SOURCE
#include "tests/bench/bench.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "runtime/runtime.h"

static const char *section;
static uint64_t ends_at;
static int null_fd = -1;

/* ---- beginning and failing ---- */

static void on_overdue(int signal)
{
    static const char text[] = "bench: three times over its time: something hangs\n";
    (void)signal;
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    _exit(1);
}

void bench_begin(const char *name, uint32_t seconds)
{
    section = name;
    ends_at = bench_now() + seconds * NS_PER_S;
    null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    signal(SIGALRM, on_overdue);
    alarm(3 * seconds);
    setvbuf(stdout, NULL, _IOLBF, 0);
}

void bench_fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fprintf(stderr, "bench: ");
    vfprintf(stderr, format, list);
    fprintf(stderr, "\n");
    va_end(list);
    fflush(NULL);
    _exit(1);
}

bool bench_wanted(const char *name)
{
    const char *only = getenv("BENCH_ONLY");
    return !only || strstr(name, only);
}

/* ---- repeating and reporting ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Rates without decimals, times with two, bytes with one: memory comes in pages. */
static void print_line(const char *name, const char *suffix, double value, const char *unit)
{
    int decimals = strcmp(unit, "bytes") == 0 ? 1 : value < 1000 ? 2 : 0;
    printf("%s.%s%s %.*f %s\n", section, name, suffix, decimals, value, unit);
}

void bench_report(const struct bench_row *row, const double *values, size_t count)
{
    double sorted[BENCH_REPETITIONS_MAX];
    ASSERT(count > 0 && count <= BENCH_REPETITIONS_MAX);
    memcpy(sorted, values, count * sizeof *values);
    qsort(sorted, count, sizeof *sorted, by_value);
    double median = count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
    print_line(row->name, "", median, row->unit);
    print_line(row->name, ".best", row->better == BENCH_MORE ? sorted[count - 1] : sorted[0], row->unit);
}

void bench_repeat(const struct bench_row *rows, size_t rows_count, bench_run *run, void *arg)
{
    double values[BENCH_ROWS_MAX][BENCH_REPETITIONS_MAX], one[BENCH_ROWS_MAX];
    size_t count = 0;
    bool wanted = false;
    ASSERT(rows_count <= BENCH_ROWS_MAX);
    for (size_t i = 0; i < rows_count; i++)
        wanted |= bench_wanted(rows[i].name);
    if (!wanted)
        return;
    run(arg, one);
    uint64_t started = bench_now();
    while (count < BENCH_REPETITIONS_MAX) {
        uint64_t now = bench_now();
        if (count >= BENCH_REPETITIONS && (now - started > BENCH_ROW_NS || now > ends_at))
            break;
        run(arg, one);
        for (size_t i = 0; i < rows_count; i++)
            values[i][count] = one[i];
        count++;
    }
    for (size_t i = 0; i < rows_count; i++)
        bench_report(&rows[i], values[i], count);
}

/* ---- looking at the machine ---- */

uint64_t bench_now(void)
{
    return env_real()->now(env_real());
}

double bench_per_second(uint64_t count, uint64_t started)
{
    return (double)count * 1e9 / (double)(bench_now() - started);
}

uint64_t bench_resident(void)
{
    char text[128] = "";
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    char *second = n > 0 ? strchr(text, ' ') : NULL;
    if (!second)
        bench_fail("/proc/self/statm cannot be read");
    return strtoull(second, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

size_t bench_descriptors(void)
{
    size_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    if (!dir)
        bench_fail("/proc/self/fd cannot be read");
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

const char *bench_folder(void)
{
    static char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n < 0)
        bench_fail("/proc/self/exe cannot be read");
    path[n] = 0;
    for (int i = 0; i < 3; i++) { /* tests/bench/NAME */
        char *slash = strrchr(path, '/');
        if (!slash)
            bench_fail("this program is not in a build folder");
        *slash = 0;
    }
    return path;
}

/* One series for all threads would be a race, so it is for the root alone. */
uint64_t bench_random(void)
{
    static uint64_t state;
    uint64_t z = state += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

uint64_t bench_quantile(uint64_t *values, size_t count, double share)
{
    ASSERT(count > 0);
    qsort(values, count, sizeof *values, by_size);
    size_t at = (size_t)((double)count * share);
    return values[at < count ? at : count - 1];
}

/* ---- a runtime to measure in ---- */

static void (*body_now)(void);
static bool body_done;

static enum actor_step root_init(void *state, const void *args, size_t size)
{
    (void)state, (void)args, (void)size;
    return ACTOR_PROCEED;
}

static enum actor_step root_proceed(void *state)
{
    (void)state;
    body_now();
    body_done = true;
    return ACTOR_STOP;
}

static enum actor_step root_handle(void *state, struct message *m)
{
    (void)state, (void)m;
    return ACTOR_CONTINUE;
}

static const struct actor_class root_class = {
    .name = "bench_root",
    .init = root_init,
    .proceed = root_proceed,
    .handle = root_handle,
    .trap_exits = true,
    .mailbox_capacity = 1000000,
    .arena_quota = (size_t)1 << 32,
    .runaway_ns = DEADLINE_NONE,
};

static void log_line(const char *line, size_t size)
{
    (void)!write(null_fd, line, size);
}

void bench_node(uint32_t schedulers, void (*body)(void))
{
    char error[256];
    struct runtime *rt = runtime_create(&(struct runtime_options){.schedulers = schedulers, .log = log_line},
                                        error, sizeof error);
    if (!rt)
        bench_fail("%s", error);
    body_now = body;
    body_done = false;
    enum error e = runtime_spawn(rt, &(struct spawn_options){.class = &root_class}, &(actor_pid){0});
    int status = e ? -1 : runtime_run(rt);
    if (!body_done || status != 0)
        bench_fail("the root ended early: spawn says %s, status %d", error_name(e), status);
    runtime_destroy(rt);
}

static bool has_type(const struct message *m, void *arg)
{
    return m->type == *(uint32_t *)arg;
}

void bench_await(uint32_t type)
{
    struct message *m = actor_receive(has_type, &type, bench_now() + 20 * NS_PER_S);
    if (!m)
        bench_fail("no message of type %u within 20 s", type);
    message_free(m);
}

actor_pid bench_spawn(const struct actor_class *class, const void *args, size_t args_size, int scheduler)
{
    actor_pid pid;
    enum error e = actor_spawn(
        &(struct spawn_options){.class = class, .args = args, .args_size = args_size, .scheduler = scheduler},
        &pid);
    if (e)
        bench_fail("spawn of %s: %s", class->name, error_name(e));
    return pid;
}
