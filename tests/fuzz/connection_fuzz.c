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
static struct settings settings;
static struct sockets sockets;
static char folder[] = "/tmp/coppice-fuzz-XXXXXX", listen_at[128], clients_at[128], store_dir[128];

static void *serve(void *arg)
{
    for (;;)
        boot_serve(arg);
    return NULL;
}

static void remove_all(void)
{
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ASSERT(system(command) == 0);
}

static void start(void)
{
    static struct boot boot = {.settings = &settings, .sockets = &sockets};
    static char *argv[] = {"coppice",           "serve",
                           "--schedulers=2",    "--containment=false",
                           "--operator-listen", listen_at,
                           "--http-listen",     clients_at,
                           "--store-dir",       store_dir,
                           "--store-map=64MiB", "--store-step=1MiB",
                           "--log-level=error", "--http-access-log=false",
                           "--operator-idle=2s"};
    char *none[] = {NULL}, why[512];
    pthread_t thread;
    ASSERT(mkdtemp(folder));
    snprintf(listen_at, sizeof listen_at, "unix:%s/operator", folder);
    snprintf(clients_at, sizeof clients_at, "unix:%s/clients", folder);
    snprintf(store_dir, sizeof store_dir, "%s/store", folder);
    int status = settings_load(&settings, (int)(sizeof argv / sizeof *argv), argv, none, why, sizeof why);
    ASSERT(status == 0 && address_parse(listen_at, &address, why, sizeof why));
    log_open(LOG_ERROR);
    boot.rows = topology_rows;
    boot.rows_count = topology_count;
    boot.argc = (int)(sizeof argv / sizeof *argv);
    boot.argv = argv;
    status = sockets_open(&sockets, clients_at, listen_at, 2, why, sizeof why);
    ASSERT(status == 0);
    atexit(remove_all);
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
    llhttp_settings_t hooks;
    llhttp_errno_t e = HPE_OK;
    ssize_t n;
    llhttp_settings_init(&hooks);
    llhttp_init(&parser, HTTP_RESPONSE, &hooks);
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
