/* The whole server, fed with bytes through its operator's listener: HTTP parsing, routing, names and pids of the chaos verbs.
 * Whatever comes in, the process lives, and what it answers is HTTP in the eyes of an independent parser.
 *
 * The server runs in a thread without containment, so that a fault ends the process. Kills beyond the root's budget end the
 * server; it is started again on the same socket. The first byte of the input says in how small pieces the rest is sent.
 */
#define _GNU_SOURCE /* memmem */
#include <errno.h>
#include <llhttp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "config/boot.h"
#include "config/log.h"
#include "http/address.h"
#include "tests/fuzz/bytes.h"

static struct address address;
static struct options options;
static char folder[] = "/tmp/coppice-fuzz-XXXXXX", listen_at[128];

static void *serve(void *arg)
{
    for (;;)
        boot_serve(arg);
    return NULL;
}

static void remove_socket(void)
{
    address_remove(&address);
    rmdir(folder);
}

static void start(void)
{
    static struct boot boot = {.options = &options};
    static char *argv[] = {
        "coppice",     "serve", "--schedulers",    "2", "--containment=false", "--operator-listen", listen_at,
        "--log-level", "error", "--operator-idle", "2s"};
    char *none[] = {NULL}, why[512];
    pthread_t thread;
    ASSERT(mkdtemp(folder));
    snprintf(listen_at, sizeof listen_at, "unix:%s/socket", folder);
    int status = options_parse(&options, (int)(sizeof argv / sizeof *argv), argv, none, why, sizeof why);
    ASSERT(status == 0 && address_parse(options.operator_listen, &address, why, sizeof why));
    log_open(LOG_ERROR);
    boot.rows = topology_rows;
    boot.rows_count = topology_count;
    boot.listening = address_listen(&address, why, sizeof why);
    ASSERT(boot.listening >= 0);
    atexit(remove_socket);
    status = pthread_create(&thread, NULL, serve, &boot);
    ASSERT(status == 0);
}

static void send_all(int fd, struct bytes *input, size_t piece)
{
    while (input->left) {
        size_t n = input->left < piece ? input->left : piece;
        ssize_t sent = send(fd, input->at, n, MSG_NOSIGNAL);
        if (sent < 0)
            return; /* it has refused the rest */
        input->at += sent;
        input->left -= (size_t)sent;
    }
}

/* Answers one after the other, as they are promised: a body's length is known, or it ends with the connection. */
static void hear(int fd, bool heads)
{
    static char answer[65536];
    llhttp_t parser;
    llhttp_settings_t settings;
    llhttp_errno_t e = HPE_OK;
    ssize_t n;
    llhttp_settings_init(&settings);
    llhttp_init(&parser, HTTP_RESPONSE, &settings);
    while ((n = read(fd, answer, sizeof answer)) > 0 || (n < 0 && errno == EINTR)) {
        if (n > 0 && e == HPE_OK)
            e = llhttp_execute(&parser, answer, (size_t)n);
        ASSERT(heads || e == HPE_OK || e == HPE_CLOSED_CONNECTION);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool started;
    struct bytes input = {data, size};
    if (!started)
        start();
    started = true;
    size_t piece = 1 + (size_t)take(&input) * 16;
    bool heads = memmem(data, size, "HEAD", 4); /* answers without the body that they speak of */
    int fd = address_connect(&address);
    ASSERT(fd >= 0);
    send_all(fd, &input, piece);
    shutdown(fd, SHUT_WR);
    hear(fd, heads);
    close(fd);
    return 0;
}
