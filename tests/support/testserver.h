/* A server of a test's own routes: the product's listeners, connections and front, in a process of its own.
 *
 * testserver_start binds the loopback, forks, and the child runs; what it logs is kept for testserver_logged. The child
 * must be forked before the test has threads of its own.
 *
 * Its clock is the machine's and goes on by as much as testserver_advance says. So a limit that a test is about is long enough that no
 * machine is too slow for it (TESTSERVER_LONG), and over when the test says so.
 */
#ifndef COPPICE_TESTS_SUPPORT_TESTSERVER_H
#define COPPICE_TESTS_SUPPORT_TESTSERVER_H

#include <poll.h>

#include "http/front.h"

#define TESTSERVER_SCHEDULERS_MAX 4u
#define TESTSERVER_STUCK_MS       120000 /* nothing takes that long; then a test fails instead of hanging */
#define TESTSERVER_LONG           (600 * NS_PER_S) /* nothing takes that long by itself, however slow the machine is */

struct testserver_options {
    const struct route *routes;
    size_t routes_count;
    /* In the child, before it runs: opens what the handlers need. The store it returns (or NULL) is installed, served by
     * a writer and a keeper, and closed. May bind operations to routes, and change what front_find("client") has. */
    struct store *(*prepare)(struct routes *routes);
    struct front_limits
        limits;           /* 0: TESTSERVER_LONG, 512 bytes/s, and no cap on the connections of one address */
    uint32_t schedulers;  /* 0: 1 */
    uint32_t connections; /* 0: any number */
    uint32_t descriptors; /* RLIMIT_NOFILE of the child; 0: as it is */
    uint32_t cpu;         /* it runs on this one alone, counted from 1; 0: on any */
    uint64_t runaway_ns;  /* 0: the runtime's */
    bool tls;             /* with the context that prepare installs */
};

struct testserver {
    int pid; /* 0: none */
    uint16_t port;
    int log, exit_status;
    struct testserver_clock *clock;
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
/* Its clock leaps, and it looks who is too late now. What it hasn't read yet came after that: whoever waits for a limit to be over
 * leaps until it is. From then on nobody is preempted in it. */
void testserver_advance(struct testserver *server, uint64_t ns);
/* Leaps, an eighth of TESTSERVER_LONG at a time, until something comes on this connection: bytes, or its end. */
void testserver_outwait(struct testserver *server, int fd);
/* poll(2), also when the machine or somebody else stops this process meanwhile. */
int testserver_poll(struct pollfd *fds, nfds_t count, int ms);
int testserver_connect(const struct testserver *server); /* blocking */

#endif
