/* kill9_service: kill -9 of the whole server at random instants, under load over HTTP, and what is left of its jobs.
 *
 *     kill9_service PROGRAM [--cycles N] [--seed S] [--dir D]
 *
 * Each cycle starts the real program on the same data directory, submits jobs over one connection, each with a key of its own, and
 * kills the server somewhere between the first submit and some milliseconds later; the workers run what is queued meanwhile. What was
 * answered with 202 is noted, and what wasn't answered is unknown. The next cycle begins with asking:
 *
 *     answered      the job is there, under its id, and its key gives the same id again
 *     unknown       the same key gives a job, the one that is there or a new one; from then on it is answered
 *     final         once seen, a final state never changes, and the report is there (JOB-293)
 *
 * Some jobs are looked at in each cycle, all of them at the end, when the server has come to rest: each is final, and `coppice check`
 * finds nothing. Before all that two controls: a job that nobody submitted, and an id that isn't the key's, must be missed.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "chaos/dice.h"

enum {
    CYCLE_SUBMITS = 64, /* at most, in one cycle */
    CYCLES_MAX = 100000,
    LOOKED_AT = 4,  /* jobs that are looked at in each cycle */
    LIFE_US = 3000, /* a server lives for up to that after its first submit */
    ANSWER_MAX = 65536,
    WAIT_MS = 20000,   /* for a line, or for an answer: beyond that the server hangs */
    REST_TRIES = 3000, /* of 10 ms: until all is final */
};

struct job {
    char id[37];
    uint8_t known, final; /* answered; its state was seen to be final */
    char state[12];
};

static struct campaign {
    const char *program;
    char dir[256], store[300];
    struct dice dice;
    uint64_t seed;
    uint32_t cycles;
    struct job *jobs; /* by the number of the key */
    uint64_t jobs_count, unknown, answered, violations;
    char key[128], client[64];
    pid_t server;
    int log, connection;
    uint16_t port;
    char answer[ANSWER_MAX];
} c;

static void complain(const char *what, uint64_t number)
{
    c.violations++;
    printf("violation: seed %" PRIu64 ": job %" PRIu64 " (%s): %s; the answer was: %.300s\n", c.seed, number,
           c.jobs ? c.jobs[number].id : "", what, c.answer);
}

static _Noreturn void give_up(const char *what)
{
    printf("kill9_service: %s: %s\n", what, strerror(errno));
    if (c.server > 0)
        kill(c.server, SIGKILL);
    exit(1);
}

/* ---- the server ---- */

/* The port of the line "started"; everything it writes before that is passed over. */
static void await_started(void)
{
    char line[8192];
    size_t used = 0;
    for (;;) {
        struct pollfd p = {.fd = c.log, .events = POLLIN};
        if (poll(&p, 1, WAIT_MS) != 1)
            give_up("the server doesn't start");
        ssize_t n = read(c.log, line + used, sizeof(line) - 1 - used);
        if (n <= 0)
            give_up("the server ended while it started");
        used += (size_t)n;
        line[used] = 0;
        char *at = strstr(line, "\"msg\":\"started\""),
             *port = at ? strstr(at, "\"client\":\"127.0.0.1:") : NULL;
        if (port && strchr(port, '}')) {
            c.port = (uint16_t)atoi(port + strlen("\"client\":\"127.0.0.1:"));
            return;
        }
        char *end = strrchr(line, '\n');
        if (end && !at) {
            used = strlen(end + 1);
            memmove(line, end + 1, used + 1);
        } else if (used == sizeof(line) - 1) {
            used = 0;
        }
    }
}

static void serve(void)
{
    int pipe_fds[2];
    if (pipe2(pipe_fds, O_CLOEXEC) != 0)
        give_up("no pipe");
    c.server = fork();
    if (c.server < 0)
        give_up("no process");
    if (c.server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(pipe_fds[1], 2);
        execl(c.program, c.program, "serve", "--store-dir", c.store, "--http-listen", "127.0.0.1:0",
              "--operator-listen", "127.0.0.1:0", "--limits-requests-per-minute", "1000000",
              "--limits-max-queue-size", "1000000", "--limits-max-active-jobs", "1000000", "--workers-count",
              "4", "--jobs-simulation-speed", "1000000", "--http-access-log=false", "--log-level", "info",
              (char *)NULL);
        _exit(127);
    }
    close(pipe_fds[1]);
    c.log = pipe_fds[0];
    await_started();
}

static void kill_server(int sig)
{
    kill(c.server, sig);
    if (waitpid(c.server, NULL, 0) != c.server)
        give_up("the server can't be waited for");
    c.server = 0;
    close(c.log);
    if (c.connection >= 0)
        close(c.connection);
    c.connection = -1;
}

/* Its log is read, or the pipe would fill; what it says is nobody's concern. */
static void drain(void)
{
    char bytes[65536];
    struct pollfd p = {.fd = c.log, .events = POLLIN};
    while (poll(&p, 1, 0) == 1 && read(c.log, bytes, sizeof(bytes)) > 0)
        ;
}

/* ---- HTTP, as little of it as is needed ---- */

static bool connected(void)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(c.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval limit = {.tv_sec = WAIT_MS / 1000};
    if (c.connection >= 0)
        return true;
    c.connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c.connection < 0)
        give_up("no socket");
    setsockopt(c.connection, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    if (connect(c.connection, (struct sockaddr *)&to, sizeof(to)) == 0)
        return true;
    close(c.connection);
    c.connection = -1;
    return false;
}

/* The status, and the body in c.answer; 0: there was no answer. */
static int exchange(const char *method, const char *path, const char *headers, const char *body)
{
    char request[2048];
    size_t used = 0, length = 0;
    char *head = NULL;
    c.answer[0] = 0;
    int size = snprintf(
        request, sizeof(request), "%s %s HTTP/1.1\r\nHost: h\r\n%s%s%s%s%sContent-Length: %zu\r\n\r\n%s",
        method, path, *c.key ? "Authorization: Bearer " : "", c.key, *c.key ? "\r\n" : "",
        body ? "Content-Type: application/json\r\n" : "", headers, body ? strlen(body) : 0, body ? body : "");
    if (!connected() || send(c.connection, request, (size_t)size, MSG_NOSIGNAL) != size)
        return 0;
    for (;;) {
        ssize_t n = recv(c.connection, c.answer + used, sizeof(c.answer) - 1 - used, 0);
        if (n <= 0)
            return 0;
        used += (size_t)n;
        c.answer[used] = 0;
        if (!head && (head = strstr(c.answer, "\r\n\r\n")) != NULL) {
            char *field = strcasestr(c.answer, "\r\nContent-Length:");
            length = field && field < head ? strtoul(field + strlen("\r\nContent-Length:"), NULL, 10) : 0;
            head += 4;
        }
        if (head && used >= (size_t)(head - c.answer) + length)
            break;
    }
    int status = atoi(c.answer + strlen("HTTP/1.1 "));
    memmove(c.answer, head, length);
    c.answer[length] = 0;
    return status;
}

static bool field(const char *name, char *value, size_t size)
{
    char wanted[64];
    snprintf(wanted, sizeof(wanted), "\"%s\":\"", name);
    const char *at = strstr(c.answer, wanted);
    if (!at)
        return false;
    at += strlen(wanted);
    snprintf(value, size, "%.*s", (int)strcspn(at, "\""), at);
    return true;
}

/* ---- what is asked ---- */

static void enrol(void)
{
    char path[128];
    *c.key = 0;
    if (exchange("POST", "/v1/clients", "", NULL) != 201 || !field("client_id", c.client, sizeof(c.client)))
        give_up("no client");
    snprintf(path, sizeof(path), "/v1/clients/%s/keys", c.client);
    if (exchange("POST", path, "", NULL) != 201 || !field("api_key", c.key, sizeof(c.key)))
        give_up("no key");
}

/* False: it wasn't answered. */
static bool submit(uint64_t number)
{
    static const char *const kinds[] = {"SUCCESS_FAST", "FAIL_IMMEDIATE", "RETRY_ON_FAIL", "PAYLOAD_SMALL"};
    struct job *job = &c.jobs[number];
    char body[256], id[37];
    snprintf(body, sizeof(body),
             "{\"type\":\"EXECUTE\",\"work_kind\":\"%s\",\"idempotency_key\":\"k%" PRIu64 "\"}",
             kinds[number % 4], number);
    int status = exchange("POST", "/v1/jobs", "", body);
    if (status == 0)
        return false;
    if (status != 202 || !field("job_id", id, sizeof(id)))
        complain("a submit was refused", number);
    else if (job->known && strcmp(id, job->id) != 0)
        complain("its key gave another job", number);
    else
        snprintf(job->id, sizeof(job->id), "%s", id);
    c.answered += !job->known;
    job->known = 1;
    return true;
}

static bool is_final(const char *state)
{
    return strcmp(state, "SUCCEEDED") == 0 || strcmp(state, "FAILED") == 0 || strcmp(state, "CANCELED") == 0;
}

/* Whether it is there, and what it says fits what it said before. */
static void look(uint64_t number)
{
    struct job *job = &c.jobs[number];
    char path[128], state[12] = "";
    snprintf(path, sizeof(path), "/v1/jobs/%s", job->id);
    int status = exchange("GET", path, "", NULL);
    if (status != 200 || !field("state", state, sizeof(state))) {
        complain("an acknowledged job is lost", number);
        return;
    }
    if (job->final && strcmp(state, job->state) != 0)
        complain("a final state has changed", number);
    if (is_final(state) && !job->final) {
        job->final = 1;
        snprintf(job->state, sizeof(job->state), "%s", state);
        snprintf(path, sizeof(path), "/v1/jobs/%s/report", job->id);
        if (exchange("GET", path, "", NULL) != 200)
            complain("a final job has no report", number);
    }
}

static uint64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* From another process, so that the kill comes while an answer is being waited for, too. */
static pid_t kill_later(uint64_t us)
{
    pid_t killer = fork();
    if (killer < 0)
        give_up("no process");
    if (killer == 0) {
        struct timespec t = {.tv_sec = 0, .tv_nsec = (long)us * 1000};
        nanosleep(&t, NULL);
        kill(c.server, SIGKILL);
        _exit(0);
    }
    return killer;
}

static void cycle(uint64_t *next)
{
    serve();
    for (uint64_t number = *next > CYCLE_SUBMITS ? *next - CYCLE_SUBMITS : 0; number < *next; number++)
        if (!c.jobs[number].known)
            (void)submit(number);
    for (uint32_t i = 0; i<LOOKED_AT && * next> 0; i++) {
        uint64_t number = dice_draw(&c.dice) % *next;
        if (c.jobs[number].known)
            look(number);
    }
    pid_t killer = kill_later(1 + dice_below(&c.dice, LIFE_US));
    for (uint32_t i = 0; i < CYCLE_SUBMITS; i++, ++*next)
        if (!submit(*next)) {
            c.unknown++;
            ++*next;
            break;
        }
    drain();
    kill_server(SIGKILL);
    waitpid(killer, NULL, 0);
}

/* ---- the end ---- */

static void rest(uint64_t count)
{
    serve();
    for (uint64_t number = 0; number < count; number++) {
        if (!submit(number)) /* unknown ones become known, known ones must give the same id */
            complain("no answer at rest", number);
        if (number % 64 == 0)
            drain();
    }
    for (uint64_t number = 0; number < count; number++) {
        for (uint32_t tries = 0; tries < REST_TRIES; tries++) {
            look(number);
            if (c.jobs[number].final || c.violations > 100)
                break;
            struct timespec t = {.tv_nsec = 10000000};
            nanosleep(&t, NULL);
            drain();
        }
        if (!c.jobs[number].final)
            complain("it never came to an end", number);
        if (number % 64 == 0)
            drain();
    }
    kill_server(SIGTERM);
}

static void check_store(void)
{
    char command[700];
    snprintf(command, sizeof(command), "'%s' check --store-dir '%s' >'%s/check' 2>&1", c.program, c.store,
             c.dir);
    if (system(command) != 0) {
        c.violations++;
        printf("violation: coppice check finds something: %s/check\n", c.dir);
    }
}

/* Both must be missed, or the campaign proves nothing. */
static bool controls_are_found(void)
{
    struct job none = {.id = "00000000-0000-7000-8000-000000000000", .known = 1}, *jobs = c.jobs;
    uint64_t before = c.violations;
    c.jobs = &none;
    printf("two controls, which are to be found:\n");
    serve();
    enrol();
    look(0);
    (void)submit(0);
    kill_server(SIGKILL);
    c.jobs = jobs;
    bool found = c.violations == before + 2;
    c.violations = before;
    c.answered = 0;
    return found;
}

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *ftw)
{
    (void)s, (void)kind, (void)ftw;
    return remove(path);
}

static void begin_dir(const char *parent)
{
    snprintf(c.dir, sizeof(c.dir), "%s/kill9_service.XXXXXX", parent);
    if (!mkdtemp(c.dir))
        give_up(c.dir);
    snprintf(c.store, sizeof(c.store), "%s/store", c.dir);
}

int main(int argc, char **argv)
{
    const char *dir = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    c.cycles = 1000;
    c.seed = 1;
    c.connection = -1;
    c.program = argc > 1 ? argv[1] : "";
    for (int i = 2; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--cycles") == 0)
            c.cycles = (uint32_t)strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0)
            c.seed = strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--dir") == 0)
            dir = argv[i + 1];
        else
            return fprintf(stderr, "kill9_service: there is no option %s\n", argv[i]), 64;
    }
    if (!*c.program || c.cycles == 0 || c.cycles > CYCLES_MAX)
        return fprintf(stderr, "usage: kill9_service PROGRAM [--cycles 1..%d] [--seed S] [--dir D]\n",
                       CYCLES_MAX),
               64;
    c.dice = dice_of(c.seed);
    uint64_t began = now_us(), next = 0;
    begin_dir(dir);
    bool found = controls_are_found();
    nftw(c.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    begin_dir(dir);
    c.jobs = calloc((size_t)c.cycles * (CYCLE_SUBMITS + 1) + 1, sizeof(*c.jobs));
    if (!c.jobs)
        give_up("no memory");
    serve();
    enrol();
    kill_server(SIGKILL);
    for (uint32_t i = 0; i < c.cycles && c.violations < 10; i++)
        cycle(&next);
    uint64_t unknown = c.unknown, answered = c.answered;
    rest(next);
    check_store();
    printf("%u kills of the whole server in %.1f s: %" PRIu64 " submits answered, %" PRIu64
           " unknown; acknowledged jobs lost or wrong: %" PRIu64 "; controls %s\n",
           c.cycles, (double)(now_us() - began) / 1e6, answered, unknown, c.violations,
           found ? "found" : "MISSED");
    bool good = found && c.violations == 0;
    if (good)
        nftw(c.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    printf("%u passed, %u failed\n", good ? c.cycles : 0u, good ? 0u : 1u);
    return good ? 0 : 1;
}
