/* Starting Redis for whoever is built on it: durable, every write synced before it is answered. */
#ifndef COPPICE_TESTS_BENCH_REDIS_H
#define COPPICE_TESTS_BENCH_REDIS_H

#include "tests/bench/daemon.h"

/* False: it isn't installed. daemon_await says when it listens. */
bool redis_begin(struct daemon *daemon, const char *folder);

#endif
