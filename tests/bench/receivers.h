/* Receivers of webhooks: many servers of one thread beside the program, each with an address of its own (127.0.1.1 and so on),
 * one port. A receiver answers 200 to each request as soon as it is whole, or never anything. */
#ifndef COPPICE_TESTS_BENCH_RECEIVERS_H
#define COPPICE_TESTS_BENCH_RECEIVERS_H

#include <stdint.h>

#define RECEIVERS_MAX 200u

/* The last `silent` of them say nothing. */
void receivers_begin(uint32_t count, uint32_t silent);
void receivers_end(void);
/* http://127.0.1.1:4711/hook */
void receivers_url(uint32_t receiver, char *ret, uint32_t size);
/* Requests that were answered so far, of all of them; and when the last one came (bench_now). */
uint64_t receivers_count(uint64_t *ret_last_at);

#endif
