/* Host: a real server as campaigns need one: started, asked over HTTP, ended, and its folder removed.
 *
 * For one thread; one server at a time of each host. Whatever the machine itself refuses (a process, a socket, a folder), or a server
 * that doesn't start within HOST_WAIT_MS, ends the program with a line and status 1: there is nothing to be measured then.
 */
#ifndef COPPICE_CHAOS_HOST_H
#define COPPICE_CHAOS_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "chaos/board.h"

#define HOST_WAIT_MS     120000u
#define HOST_ANSWER_MAX  (1u << 20)
#define HOST_OPTIONS_MAX 64u

struct host {
    const char *program;
    char dir[256], store[300], log[300];
    struct board *board;
    pid_t pid; /* 0: it doesn't run */
    uint16_t port, operator;
    uint64_t started_us;                   /* from its start to the line that says so */
    char token[256], key[128], client[64]; /* client, and key: of the newest host_enrol */
    int connection;                        /* of the client; -1 */
    long log_from;                         /* where the log of this start begins */
    char answer[HOST_ANSWER_MAX];
};

/* Microseconds of a clock that only goes forward. */
uint64_t host_now_us(void);
void host_rest_us(uint64_t us);
/* Prints what and why; the server of the last host_start is killed. */
_Noreturn void host_give_up(const char *what);

/* A folder below `parent`, or below the quickest place there is (NULL). */
void host_begin(struct host *h, const char *program, const char *parent);
void host_remove(struct host *h);

/* Options behind those that all have; ended by NULL. The ports are 0: another one each time, unless the options say otherwise. */
void host_start(struct host *h, const char *const *options);
/* The same; false: it ended while it started. */
bool host_starts(struct host *h, const char *const *options);
/* Whether it has ended by now, or within so long; its wait status, once. */
bool host_ended(struct host *h, uint32_t wait_ms, int *ret_status);
void host_end(struct host *h, int sig);
/* From /proc: memory that is its own, and descriptors. */
uint64_t host_memory_kb(const struct host *h);
uint32_t host_descriptors(const struct host *h);
/* Of this start: how many lines of its log hold the word. */
uint32_t host_said(const struct host *h, const char *word);

/* One request of the client, on its connection, which is made anew when it is closed. Fields are lines that end in CR LF. The status, and the body
 * in `answer`; 0: there was no answer. */
int host_ask(struct host *h, const char *method, const char *path, const char *fields, const char *body);
int host_ask_operator(struct host *h, const char *method, const char *path, const char *body);
/* Leaves the connection. */
void host_hang_up(struct host *h);
/* The text of "name" in the last answer. */
bool host_field(const struct host *h, const char *name, char *value, size_t size);
/* A client of its own, with a key. */
void host_enrol(struct host *h);
/* `coppice check` of its store, by the program given: nothing is found. The server doesn't run. */
bool host_sound(const struct host *h, const char *coppice);

/* From a command line: true when argv[*at] is this option, and then its number. Anything wrong is one line and status 64. */
bool host_option(int argc, char **argv, int *at, const char *name, uint64_t least, uint64_t most,
                 uint64_t *ret_number);

#endif
