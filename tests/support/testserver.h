/* A server of a test's own routes: the product's listeners, connections and front, in a process of its own.
 *
 * testserver_start binds the loopback, forks, and the child runs; what it logs is kept for testserver_logged. The child
 * must be forked before the test has threads of its own.
 */
#ifndef COPPICE_TESTS_SUPPORT_TESTSERVER_H
#define COPPICE_TESTS_SUPPORT_TESTSERVER_H

#include "http/front.h"

#define TESTSERVER_SCHEDULERS_MAX 4u

struct testserver_options {
    const struct route *routes;
    size_t routes_count;
    /* In the child, before it runs: opens what the handlers need. The store it returns (or NULL) is installed, served by
     * a writer and a keeper, and closed. May bind operations to routes, and change what front_find("client") has. */
    struct store *(*prepare)(struct routes *routes);
    struct front_limits limits; /* 0: those of http/front.h, and no cap on the connections of one address */
    uint32_t schedulers;        /* 0: 1 */
    uint32_t connections;       /* 0: any number */
    uint32_t descriptors;       /* RLIMIT_NOFILE of the child; 0: as it is */
    uint32_t cpu;               /* it runs on this one alone, counted from 1; 0: on any */
    uint64_t runaway_ns;        /* 0: the runtime's */
    bool tls;                   /* with the context that prepare installs */
};

struct testserver {
    int pid; /* 0: none */
    uint16_t port;
    int log, exit_status;
};

/* Whatever fails ends the process with a sentence. */
void testserver_start(const struct testserver_options *options, struct testserver *ret);
/* SIGTERM, and waits: its status is in exit_status (128 + n: ended by signal n). */
void testserver_stop(struct testserver *server);
bool testserver_runs(struct testserver *server);
/* How often its log has this text, so far. */
size_t testserver_logged(const struct testserver *server, const char *text);
/* Its processor time in ns, and its resident bytes. */
uint64_t testserver_cpu_ns(const struct testserver *server);
uint64_t testserver_resident(const struct testserver *server);
int testserver_connect(const struct testserver *server); /* blocking */

#endif
