/* Mortal: a real server that is killed at an instant chosen before, wherever it is by then.
 *
 * The instant is this process's ITIMER_REAL, and its SIGALRM handler sends SIGKILL: nobody has to wait for it, and it strikes in the middle
 * of a request as well as before the server's first instruction. So there is one mortal at a time in a process, and whoever waits in
 * a system call expects EINTR. The server dies with this process.
 *
 * What the machine refuses (a pipe, a process) ends this one with a line and status 1.
 */
#ifndef COPPICE_CHAOS_MORTAL_H
#define COPPICE_CHAOS_MORTAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define MORTAL_WAIT_MS   120000u /* for anything: beyond that the server hangs */
#define MORTAL_WORDS_MAX 8192u

enum mortal_end {
    MORTAL_KILLED, /* by us */
    MORTAL_LEFT,   /* with status 0 */
    MORTAL_BROKEN, /* by itself with something else, or by somebody else */
};

struct mortal {
    pid_t pid; /* 0: it doesn't run */
    uint16_t port;
    uint64_t began_us;
    int log; /* its standard error */
    uint32_t used;
    char words[MORTAL_WORDS_MAX]; /* what it said last; ended by 0 */
    int status;                   /* of the last end, as waitpid says it */
};

/* Microseconds of a clock that only goes forward. */
uint64_t mortal_now_us(void);
_Noreturn void mortal_give_up(const char *what);

/* argv as execv wants it. */
void mortal_start(struct mortal *m, char *const *argv);
/* Waits for the line that says that it has started. False: it has ended, or hangs; mortal_end is to be called either way. */
bool mortal_await(struct mortal *m);
/* Kills it in so many microseconds, or one; the last order counts. */
void mortal_doom(struct mortal *m, uint64_t us);
/* Whether that has happened. */
bool mortal_struck(void);
void mortal_signal(const struct mortal *m, int sig);
/* What it has written is read, or the pipe would fill. */
void mortal_hear(struct mortal *m);
/* Waits for its end; one that was not doomed is so now, in MORTAL_WAIT_MS. */
enum mortal_end mortal_end(struct mortal *m);

#endif
