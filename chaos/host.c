#define _GNU_SOURCE
#include "chaos/host.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOG_MAX = 1 << 20, EXIT_USAGE = 64 };

static pid_t newest; /* to be killed when the program gives up */

uint64_t host_now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

void host_rest_us(uint64_t us)
{
    struct timespec t = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000) * 1000};
    nanosleep(&t, NULL);
}

_Noreturn void host_give_up(const char *what)
{
    printf("%s: %s\n0 passed, 1 failed\n", what, strerror(errno));
    if (newest > 0)
        kill(newest, SIGKILL);
    exit(1);
}

/* ---- its folder ---- */

void host_begin(struct host *h, const char *program, const char *parent)
{
    char path[340];
    const char *quick = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    *h = (struct host){.program = program, .connection = -1};
    snprintf(h->dir, sizeof(h->dir), "%s/coppice-host.XXXXXX", parent ? parent : quick);
    if (!mkdtemp(h->dir))
        host_give_up(h->dir);
    snprintf(h->store, sizeof(h->store), "%s/store", h->dir);
    snprintf(h->log, sizeof(h->log), "%s/log", h->dir);
    snprintf(path, sizeof(path), "%s/board", h->dir);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)sizeof(*h->board)) != 0)
        host_give_up(path);
    h->board = mmap(NULL, sizeof(*h->board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (h->board == MAP_FAILED)
        host_give_up(path);
    close(fd);
}

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *ftw)
{
    (void)s, (void)kind, (void)ftw;
    return remove(path);
}

void host_remove(struct host *h)
{
    munmap(h->board, sizeof(*h->board));
    nftw(h->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- its process ---- */

/* What this start has written so far; NULL: there is no log. */
static const char *read_log(const struct host *h)
{
    static char text[LOG_MAX];
    FILE *file = fopen(h->log, "r");
    size_t used = 0;
    if (!file)
        return NULL;
    if (fseek(file, h->log_from, SEEK_SET) == 0)
        used = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[used] = 0;
    return text;
}

static uint16_t port_in(const char *line, const char *name)
{
    const char *at = strstr(line, name);
    return at ? (uint16_t)atoi(at + strlen(name)) : 0;
}

static bool await_started(struct host *h, uint64_t began_us)
{
    while (host_now_us() - began_us < UINT64_C(1000) * HOST_WAIT_MS) {
        const char *text = read_log(h), *at = text ? strstr(text, "\"msg\":\"started\"") : NULL;
        if (at && strchr(at, '\n')) {
            h->port = port_in(at, "\"client\":\"127.0.0.1:");
            h->operator= port_in(at, "\"operator\":\"127.0.0.1:");
            h->started_us = host_now_us() - began_us;
            return true;
        }
        if (waitpid(h->pid, NULL, WNOHANG) == h->pid) {
            h->pid = newest = 0;
            return false;
        }
        host_rest_us(500);
    }
    host_give_up("the server neither starts nor ends");
}

static void read_token(struct host *h)
{
    char path[340];
    snprintf(path, sizeof(path), "%s/operator.token", h->store);
    FILE *file = fopen(path, "r");
    if (!file || !fgets(h->token, sizeof(h->token), file))
        host_give_up("no operator's token");
    fclose(file);
    h->token[strcspn(h->token, "\r\n")] = 0;
}

static _Noreturn void become(const struct host *h, int log, const char *const *options)
{
    static const char *const common[] = {"serve",
                                         "--http-listen",
                                         "127.0.0.1:0",
                                         "--operator-listen",
                                         "127.0.0.1:0",
                                         "--limits-requests-per-minute",
                                         "1000000",
                                         "--http-access-log=false",
                                         "--store-op-timeout",
                                         "1m",
                                         "--http-request-timeout",
                                         "1m",
                                         "--store-dir"};
    char *argv[HOST_OPTIONS_MAX] = {(char *)(uintptr_t)h->program}, board[340];
    size_t count = 1;
    for (size_t i = 0; i < sizeof(common) / sizeof(*common); i++)
        argv[count++] = (char *)(uintptr_t)common[i];
    argv[count++] = (char *)(uintptr_t)h->store;
    while (*options && count + 1 < HOST_OPTIONS_MAX)
        argv[count++] = (char *)(uintptr_t)*options++;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(board, sizeof(board), "%s/board", h->dir);
    setenv(BOARD_VARIABLE, board, 1);
    dup2(log, STDERR_FILENO);
    execv(h->program, argv);
    _exit(127);
}

bool host_starts(struct host *h, const char *const *options)
{
    int log = open(h->log, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    uint64_t began_us = host_now_us();
    if (log < 0)
        host_give_up(h->log);
    h->log_from = (long)lseek(log, 0, SEEK_END);
    h->pid = newest = fork();
    if (h->pid < 0)
        host_give_up("no process");
    if (h->pid == 0)
        become(h, log, options);
    close(log);
    if (!await_started(h, began_us))
        return false;
    read_token(h);
    return true;
}

void host_start(struct host *h, const char *const *options)
{
    if (host_starts(h, options))
        return;
    fputs(h->log, stdout);
    host_give_up(": the server doesn't start");
}

bool host_ended(struct host *h, uint32_t wait_ms, int *ret_status)
{
    uint64_t began_us = host_now_us();
    do {
        pid_t ended = waitpid(h->pid, ret_status, WNOHANG);
        if (ended == h->pid) {
            h->pid = newest = 0;
            host_hang_up(h);
            return true;
        }
        if (ended < 0)
            host_give_up("the server can't be waited for");
        if (wait_ms)
            host_rest_us(200);
    } while (host_now_us() - began_us < UINT64_C(1000) * wait_ms);
    return false;
}

void host_end(struct host *h, int sig)
{
    int status;
    if (h->pid <= 0)
        return;
    kill(h->pid, sig);
    if (!host_ended(h, HOST_WAIT_MS, &status))
        host_give_up("the server doesn't end");
}

uint64_t host_memory_kb(const struct host *h)
{
    char path[64], line[256];
    uint64_t kb = 0;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)h->pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, "RssAnon:", 8) == 0)
            kb = strtoull(line + 8, NULL, 10);
    if (file)
        fclose(file);
    return kb;
}

uint32_t host_descriptors(const struct host *h)
{
    char path[64];
    uint32_t count = 0;
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)h->pid);
    DIR *dir = opendir(path);
    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count;
}

uint32_t host_said(const struct host *h, const char *word)
{
    const char *text = read_log(h);
    uint32_t count = 0;
    for (const char *at = text; at && (at = strstr(at, word)); at = strchr(at, '\n'))
        count++;
    return count;
}

/* ---- what it is asked ---- */

static int dial(uint16_t port)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval limit = {.tv_sec = HOST_WAIT_MS / 1000};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        host_give_up("no socket");
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
        return fd;
    close(fd);
    return -1;
}

/* The status, and the body in `answer`, which without a length ends with the connection. 0: no answer. */
static int hear(struct host *h, int fd, bool *ret_last)
{
    size_t used = 0, length = 0;
    bool to_the_end = false;
    char *body = NULL;
    while (!body || to_the_end || used < (size_t)(body - h->answer) + length) {
        ssize_t n = recv(fd, h->answer + used, sizeof(h->answer) - 1 - used, 0);
        if (n == 0 && to_the_end) {
            length = used - (size_t)(body - h->answer);
            break;
        }
        if (n < 0 && errno == EINTR)
            continue; /* who was stopped and continued: a read with a limit isn't resumed by the system */
        if (n <= 0)
            return 0;
        used += (size_t)n;
        h->answer[used] = 0;
        if (!body && (body = strstr(h->answer, "\r\n\r\n")) != NULL) {
            const char *field = strcasestr(h->answer, "\r\nContent-Length:");
            to_the_end = !field || field > body;
            length = to_the_end || !field ? 0 : strtoul(field + strlen("\r\nContent-Length:"), NULL, 10);
            body += 4;
        }
    }
    const char *last = strcasestr(h->answer, "\r\nConnection: close");
    *ret_last = last && last < body;
    int status = atoi(h->answer + strlen("HTTP/1.1 "));
    memmove(h->answer, body, length);
    h->answer[length] = 0;
    return status;
}

static int exchange(struct host *h, int fd, const char *credential, const char *method, const char *path,
                    const char *fields, const char *body, bool *ret_last)
{
    char request[8192];
    int size =
        snprintf(request, sizeof(request),
                 "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s%s%s%s%sContent-Length: %zu\r\n\r\n%s", method, path,
                 *credential ? "Authorization: Bearer " : "", credential, *credential ? "\r\n" : "",
                 *body ? "Content-Type: application/json\r\n" : "", fields, strlen(body), body);
    h->answer[0] = 0;
    *ret_last = true;
    if (size >= (int)sizeof(request))
        host_give_up("a request is too long");
    return send(fd, request, (size_t)size, MSG_NOSIGNAL) == size ? hear(h, fd, ret_last) : 0;
}

int host_ask(struct host *h, const char *method, const char *path, const char *fields, const char *body)
{
    bool last = true;
    if (h->connection < 0)
        h->connection = dial(h->port);
    h->answer[0] = 0;
    if (h->connection < 0)
        return 0;
    int status = exchange(h, h->connection, h->key, method, path, fields, body, &last);
    if (last)
        host_hang_up(h);
    return status;
}

int host_ask_operator(struct host *h, const char *method, const char *path, const char *body)
{
    bool last;
    int fd = dial(h->operator);
    if (fd < 0)
        return 0;
    int status = exchange(h, fd, h->token, method, path, "Connection: close\r\n", body, &last);
    close(fd);
    return status;
}

void host_hang_up(struct host *h)
{
    if (h->connection >= 0)
        close(h->connection);
    h->connection = -1;
}

bool host_field(const struct host *h, const char *name, char *value, size_t size)
{
    char wanted[64];
    snprintf(wanted, sizeof(wanted), "\"%s\":\"", name);
    const char *at = strstr(h->answer, wanted);
    if (!at)
        return false;
    at += strlen(wanted);
    snprintf(value, size, "%.*s", (int)strcspn(at, "\""), at);
    return true;
}

void host_enrol(struct host *h)
{
    char path[128];
    h->key[0] = 0;
    if (host_ask(h, "POST", "/v1/clients", "", "") != 201 ||
        !host_field(h, "client_id", h->client, sizeof(h->client)))
        host_give_up("no client");
    snprintf(path, sizeof(path), "/v1/clients/%s/keys", h->client);
    if (host_ask(h, "POST", path, "", "") != 201 || !host_field(h, "api_key", h->key, sizeof(h->key)))
        host_give_up("no key");
}

bool host_sound(const struct host *h, const char *coppice)
{
    char command[1200];
    snprintf(command, sizeof(command), "'%s' check --store-dir '%s' >'%s/check' 2>&1", coppice, h->store,
             h->dir);
    return system(command) == 0;
}

/* ---- command lines ---- */

bool host_option(int argc, char **argv, int *at, const char *name, uint64_t least, uint64_t most,
                 uint64_t *ret_number)
{
    char *end = NULL;
    if (strcmp(argv[*at], name) != 0)
        return false;
    const char *text = *at + 1 < argc ? argv[*at + 1] : "";
    uint64_t number = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || number < least || number > most) {
        fprintf(stderr, "%s is from %" PRIu64 " to %" PRIu64 ", not \"%s\"\n", name, least, most, text);
        exit(EXIT_USAGE);
    }
    *ret_number = number;
    (*at)++;
    return true;
}
