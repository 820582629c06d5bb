/* A daemon: another program that is measured, with a folder of its own, and what it costs.
 *
 * What it prints goes to "log" in its folder; it ends with this program at the latest.
 */
#ifndef COPPICE_TESTS_BENCH_DAEMON_H
#define COPPICE_TESTS_BENCH_DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct daemon {
    int pid; /* 0: none */
    int in, out;
    uint16_t port;
    const char *folder; /* its working directory; borrowed */
};

/* Is there such a program? Daemons are found as well. */
bool daemon_finds(const char *program, char *ret_path, size_t size);
uint16_t daemon_free_port(void);
/* argv ends with NULL; env: "NAME=value" to be added, ends with NULL, may be NULL. talks: its standard input and output are
 * daemon->in and daemon->out. */
void daemon_begin(struct daemon *daemon, const char *const *argv, const char *const *env, bool talks);
/* Until something listens at daemon->port. Fails the program when it doesn't. */
void daemon_await(struct daemon *daemon);
uint64_t daemon_cpu_ns(const struct daemon *daemon);    /* of all its threads, since it began */
uint64_t daemon_anonymous(const struct daemon *daemon); /* resident bytes that are no file's */
void daemon_stop(struct daemon *daemon); /* SIGTERM; waits for its end. Accepts one that isn't */
void daemon_kill(struct daemon *daemon); /* the same by SIGKILL */

#endif
