/* What all benchmarks share: repetitions, the lines they print, a clock, and a runtime to measure in.
 *
 * A row is measured once to warm up and then at least BENCH_REPETITIONS times; more while it is cheap,
 * because the machine is shared and the median of many is calmer. It prints `name median unit` and `name.best
 * best unit`. The program has a time it may take (bench_begin): when that is over, what is left does without
 * its extra repetitions; at three times that it ends with a message and status 1. A benchmark that finds
 * something wrong calls bench_fail: a figure of a system that doesn't work means nothing.
 *
 * Time is the real monotonic clock, also inside actors, whose own clock stands still during a turn.
 */
#ifndef COPPICE_TESTS_BENCH_BENCH_H
#define COPPICE_TESTS_BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "runtime/actor.h"

#define BENCH_REPETITIONS     5
#define BENCH_REPETITIONS_MAX 101
#define BENCH_ROWS_MAX        5
#define BENCH_ROW_NS          (400 * NS_PER_MS) /* repetitions beyond the fifth begin only within this */

enum bench_better { BENCH_MORE, BENCH_LESS };

struct bench_row {
    const char *name; /* without "runtime." and the like in front: that is the section's */
    const char *unit;
    enum bench_better better;
};

/* First: the section ("runtime") and the seconds this program may take. BENCH_ONLY=word in the environment
 * measures only rows whose name holds the word. */
void bench_begin(const char *section, uint32_t seconds);
/* Is this row asked for? What takes long to prepare asks first. */
bool bench_wanted(const char *name);

/* One repetition writes a figure for each row. */
typedef void bench_run(void *arg, double *ret_values);
void bench_repeat(const struct bench_row *rows, size_t rows_count, bench_run *run, void *arg);
/* The same for whoever has repeated it already. */
void bench_report(const struct bench_row *row, const double *values, size_t count);

__attribute__((format(printf, 1, 2))) _Noreturn void bench_fail(const char *format, ...);

uint64_t bench_now(void);                                  /* ns */
double bench_per_second(uint64_t count, uint64_t started); /* count things since then */
uint64_t bench_resident(void);                             /* bytes of this process in memory */
size_t bench_descriptors(void);                            /* open ones of this process */
uint64_t bench_random(void);                               /* the same ones each time; for the root */
const char *bench_folder(void);                            /* of this build: build/gcc */
/* The value below which this share of them lies. Sorts them. */
uint64_t bench_quantile(uint64_t *values, size_t count, double share);

/* A runtime with this many schedulers and a root actor that runs body and ends. In body everything of
 * runtime/actor.h may be called; the root traps exits, and its mailbox holds a million messages. Log lines go
 * to /dev/null. */
void bench_node(uint32_t schedulers, void (*body)(void));
/* Wait for a message of this type in the root, for 20 s at most, and let go of it. */
void bench_await(uint32_t type);
actor_pid bench_spawn(const struct actor_class *class, const void *args, size_t args_size, int scheduler);

#endif
