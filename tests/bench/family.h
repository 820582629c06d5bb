/* A supervisor with children that tell who asks for it when they are up: what restarts are measured with.
 *
 * Each child's init sends MESSAGE FAMILY_UP with its index to the watcher. A child answers FAMILY_ASK with
 * how often it has been asked in this life; what else it is told goes to the function its family has for
 * that. All functions are called from an actor; those that wait, from the watcher. One family of FAMILY_MAX
 * children, or several smaller ones one after the other: their specs share one table, which a supervisor
 * copies when it starts.
 */
#ifndef COPPICE_TESTS_BENCH_FAMILY_H
#define COPPICE_TESTS_BENCH_FAMILY_H

#include "runtime/supervisor.h"
#include "tests/bench/bench.h"

enum { FAMILY_UP = 1000, FAMILY_ASK, FAMILY_USER };

#define FAMILY_MAX 100000u

/* watcher: who is told; told: for other messages to the children, may be NULL. */
actor_pid family_start(uint32_t count, actor_pid watcher, int scheduler, void (*told)(uint32_t type));
void family_stop(actor_pid sup);

/* For the watcher: wait for the next one to be up; its index. Its pid is in family_pid afterwards. */
uint32_t family_up(void);
extern actor_pid family_pid[FAMILY_MAX];
/* How often it had been asked in this life, this time included; 0: the call failed. */
uint64_t family_ask(uint32_t index);

/* End one by its pid, and wait until the new one answers: the time from the one to the other in ns. */
uint64_t family_revive(uint32_t index, void (*end)(actor_pid pid));

#endif
