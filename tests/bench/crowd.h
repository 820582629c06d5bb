/* A crowd: connections of one thread to one or more servers, each of which says something, waits until that is answered, and
 * says the next thing. What they say, and in which protocol, is their talk's.
 *
 * Sockets block when they send: what is said at one time must fit into a socket's buffer, or be read while it is written.
 * Anything unexpected ends the program.
 */
#ifndef COPPICE_TESTS_BENCH_CROWD_H
#define COPPICE_TESTS_BENCH_CROWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CROWD_SAY_MAX   4096u
#define CROWD_DEPTH_MAX 32u
#define CROWD_PARTS_MAX 4u

/* arg is the part's; who counts the connections of the part from 0. */
struct crowd_talk {
    const char *name;
    /* Whatever the protocol begins with, at leisure; may be NULL. */
    void (*greet)(void *arg, uint32_t who, int fd);
    /* The next thing to say, of CROWD_SAY_MAX bytes at most; 0: nothing, until something comes or the next run begins. */
    size_t (*say)(void *arg, uint32_t who, char *room);
    /* How many of these bytes are whole and dealt with; 0: more must come first. *ret_done: how many things that were waited
     * for are among them. Fails the program when they say anything but that all is well. */
    size_t (*hear)(void *arg, uint32_t who, const char *bytes, size_t size, uint32_t *ret_done);
};

struct crowd_part {
    uint16_t port;
    uint32_t connections;
    uint32_t depth; /* things said together, and answered before the next ones; 0: 1 */
    const struct crowd_talk *talk;
    void *arg;
    bool patient; /* workers: they may be waiting when a run ends, and hear what they didn't ask for */
};

struct crowd_result {
    uint64_t done, ns; /* until the last of it was done */
    double rate;       /* done/s */
    double p50_us, p99_us;
};

struct crowd;
struct crowd *crowd_open(const struct crowd_part *parts, size_t parts_count);
/* As fast as they are answered, until that time is over (0: any time) or going(arg) is false (NULL: it's true). Afterwards
 * nothing is on its way but to the patient. One result for each part, may be NULL. */
void crowd_run(struct crowd *crowd, uint64_t ns, bool (*going)(void *arg), void *arg,
               struct crowd_result *ret_results);
void crowd_close(struct crowd *crowd); /* accepts NULL */

#endif
