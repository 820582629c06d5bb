/* Another process of the same program: what has to be measured from its exec on, or runs beside a server. */
#ifndef COPPICE_TESTS_BENCH_AGAIN_H
#define COPPICE_TESTS_BENCH_AGAIN_H

#include <stdbool.h>
#include <sys/types.h>

struct again {
    pid_t pid;
    int said; /* what it writes to standard output */
};

/* Starts this program again with these arguments, NULL where there is none. */
struct again again_start(const char *verb, const char *first, const char *second);
/* Waits for a byte on its standard output; an end without one ends this program. */
void again_await(struct again *again);
bool again_running(struct again *again);
/* Waits for its end; a status other than 0 ends this program. */
void again_end(struct again *again);

#endif
