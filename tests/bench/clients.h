/* Clients: many connections of one thread that ask a server the same thing again and again.
 *
 * Each connection keeps alive and has `depth` requests on its way. At full speed it asks again as soon as all of them are
 * answered; at a rate each has its own times to ask, and a latency counts from the time at which it should have asked, so
 * that an answer that is late makes those behind it late as well. Every answer's status and length are looked at: one
 * that isn't as the first ends the program.
 *
 * At a rate the thread spins: it must have a CPU of its own.
 */
#ifndef COPPICE_TESTS_BENCH_CLIENTS_H
#define COPPICE_TESTS_BENCH_CLIENTS_H

#include <stddef.h>
#include <stdint.h>

#define CLIENTS_MAX       16384u
#define CLIENTS_DEPTH_MAX 16u

struct clients_options {
    uint16_t port;
    uint32_t connections, depth; /* depth 0: 1 */
    const char *request;         /* one, whole; borrowed */
    size_t request_size;
    int status; /* expected; 0: 200 */
};

struct clients_result {
    uint64_t requests;
    double rate; /* answered/s */
    double p50_us, p99_us;
};

struct clients;
struct clients *clients_open(const struct clients_options *options);
/* rate 0: as fast as the server answers. beside(arg), if there is one, is called once in a while, at least each ms.
 * Afterwards nothing is on its way. */
void clients_run(struct clients *clients, double rate, uint64_t ns, void (*beside)(void *arg), void *arg,
                 struct clients_result *ret);
void clients_close(struct clients *clients); /* accepts NULL */

/* A blocking connection to this port of the loopback; its end is no TIME_WAIT. Fails the program. */
int clients_connect(uint16_t port);

#endif
