#include "acutest.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/options.h"
#include "config/sockets.h"

static char why[512];

static void test_addresses_of_clients(void)
{
    static const struct {
        const char *text;
        size_t count;
        bool exposed;
    } good[] = {
        {"127.0.0.1:8080", 1, false},
        {"localhost:0", 1, false},
        {"[::1]:65535", 1, false},
        {"0.0.0.0:80", 1, true},
        {"*:80", 1, true},
        {"[::]:80", 1, true},
        {"192.0.2.7:80", 1, true},
        {"[2001:db8::1]:80", 1, true},
        {"unix:/run/x", 1, false},
        {"127.5.6.7:1", 1, false},
        {"127.0.0.1:1, [::1]:1", 2, false},
        {"127.0.0.1:1,unix:/x,*:3", 3, true},
    };
    static const char *const bad[] = {"",
                                      "x",
                                      ":80",
                                      "127.0.0.1",
                                      "127.0.0.1:",
                                      "127.0.0.1:65536",
                                      "127.0.0.1:-1",
                                      "127.0.0.1:8x",
                                      "::1:80",
                                      "[::1:80",
                                      "[]:80",
                                      "example.org:80",
                                      "unix:x",
                                      "127.0.0.1:1,",
                                      "127.0.0.1:1,,x:2",
                                      "1.2.3:80",
                                      "127.0.0.1 :80",
                                      "[::1%lo]:80"};
    struct socket_address addresses[SOCKETS_ADDRESSES_MAX];
    size_t count;
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        bool exposed = false;
        TEST_CHECK_(sockets_parse(good[i].text, addresses, &count, why, sizeof(why)), "%s: %s", good[i].text,
                    why);
        TEST_CHECK_(count == good[i].count, "%s", good[i].text);
        for (size_t k = 0; k < count; k++)
            exposed |= addresses[k].exposed;
        TEST_CHECK_(exposed == good[i].exposed, "%s", good[i].text);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        why[0] = 0;
        TEST_CHECK_(!sockets_parse(bad[i], addresses, &count, why, sizeof(why)), "%s", bad[i]);
        TEST_CHECK_(strstr(why, "it must be ") != NULL, "%s says %s", bad[i], why);
    }
    TEST_CHECK(!sockets_parse("*:1,*:2,*:3,*:4,*:5,*:6,*:7,*:8,*:9", addresses, &count, why, sizeof(why)));
    TEST_CHECK(sockets_parse("*:1,*:2,*:3,*:4,*:5,*:6,*:7,*:8", addresses, &count, why, sizeof(why)) &&
               count == 8);
}

static void test_addresses_that_meet(void)
{
    static const struct {
        const char *a, *b;
        bool meet;
    } cases[] = {
        {"127.0.0.1:80", "127.0.0.1:80", true}, {"127.0.0.1:80", "127.0.0.1:81", false},
        {"127.0.0.1:0", "127.0.0.1:0", false},  {"0.0.0.0:80", "127.0.0.1:80", true},
        {"127.0.0.1:80", "*:80", true},         {"127.0.0.1:80", "127.0.0.2:80", false},
        {"[::]:80", "127.0.0.1:80", false},     {"[::]:80", "[::1]:80", true},
        {"[::1]:80", "[::1]:80", true},         {"[::1]:80", "[2001:db8::1]:80", false},
        {"unix:/run/a", "unix:/run/a", true},   {"unix:/run/a", "unix:/run/b", false},
        {"unix:/run/a", "127.0.0.1:80", false},
    };
    struct socket_address a[SOCKETS_ADDRESSES_MAX], b[SOCKETS_ADDRESSES_MAX];
    size_t count;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        TEST_ASSERT(sockets_parse(cases[i].a, a, &count, why, sizeof(why)));
        TEST_ASSERT(sockets_parse(cases[i].b, b, &count, why, sizeof(why)));
        TEST_CHECK_(sockets_meet(&a[0].address, &b[0].address) == cases[i].meet, "%s and %s", cases[i].a,
                    cases[i].b);
    }
}

static in_port_t port_of(int fd)
{
    struct sockaddr_in here;
    socklen_t size = sizeof(here);
    TEST_ASSERT(getsockname(fd, (struct sockaddr *)&here, &size) == 0);
    return ntohs(here.sin_port);
}

static void test_one_socket_per_scheduler_on_one_port(void)
{
    struct sockets s, again;
    char taken[64];
    TEST_ASSERT_(sockets_open(&s, "127.0.0.1:0", "127.0.0.1:0", 3, why, sizeof(why)) == 0, "%s", why);
    TEST_CHECK(s.clients_count == 1 && s.clients[0].fds_count == 3 && s.operator_set.fds_count == 1);
    in_port_t port = port_of(s.clients[0].fds[0]);
    snprintf(taken, sizeof(taken), "127.0.0.1:%u", port);
    TEST_CHECK(port != 0 && strcmp(s.clients[0].text, taken) == 0);
    for (uint32_t i = 0; i < 3; i++) {
        int listening = 0, flags = fcntl(s.clients[0].fds[i], F_GETFL);
        socklen_t size = sizeof(listening);
        TEST_CHECK(port_of(s.clients[0].fds[i]) == port);
        TEST_CHECK(getsockopt(s.clients[0].fds[i], SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 &&
                   listening);
        TEST_CHECK((flags & O_NONBLOCK) && (fcntl(s.clients[0].fds[i], F_GETFD) & FD_CLOEXEC));
    }
    /* although both would allow to share it */
    TEST_CHECK(sockets_open(&again, taken, "127.0.0.1:0", 3, why, sizeof(why)) == 69);
    TEST_CHECK_(strstr(why, taken) && strstr(why, "is another server running?"), "%s", why);
    TEST_CHECK(again.operator_set.fds_count == 0 && again.clients_count == 0);
    TEST_CHECK(sockets_open(&again, "127.0.0.1:0", s.operator_set.text, 3, why, sizeof(why)) == 69);
    TEST_CHECK_(strstr(why, "--operator-listen is ") != NULL, "%s", why);
    TEST_CHECK(sockets_open(&again, "127.0.0.1:0", "0.0.0.0:0", 1, why, sizeof(why)) == EXIT_CONFIG);
    sockets_close(&s);
    TEST_CHECK(sockets_open(&again, taken, "127.0.0.1:0", 2, why, sizeof(why)) == 0);
    sockets_close(&again);
}

static void test_unix_sockets_are_copied_and_removed(void)
{
    struct sockets s;
    char path[64] = "/tmp/sockets_test.XXXXXX", list[160], operators[96];
    TEST_ASSERT(mkdtemp(path) != NULL);
    snprintf(list, sizeof(list), "unix:%s/c,127.0.0.1:0", path);
    snprintf(operators, sizeof(operators), "unix:%s/o", path);
    TEST_ASSERT_(sockets_open(&s, list, operators, 2, why, sizeof(why)) == 0, "%s", why);
    TEST_CHECK(s.clients_count == 2 && s.clients[0].fds_count == 2 && s.clients[1].fds_count == 2);
    char clients[SOCKETS_CLIENTS_TEXT_MAX], both[sizeof(list) + ADDRESS_TEXT_MAX];
    snprintf(both, sizeof(both), "unix:%s/c,%s", path, s.clients[1].text);
    TEST_CHECK_(strcmp(sockets_clients(&s, clients), both) == 0, "%s", clients);
    TEST_CHECK(strcmp(sockets_clients(&(struct sockets){.clients_count = 0}, clients), "") == 0);
    TEST_CHECK(access(operators + 5, F_OK) == 0);
    int fd = address_connect(&s.clients[0].address);
    TEST_CHECK(fd >= 0 && accept(s.clients[0].fds[1], NULL, NULL) >= 0); /* whoever is first */
    close(fd);
    sockets_close(&s);
    TEST_CHECK(access(operators + 5, F_OK) != 0);
    TEST_CHECK(rmdir(path) == 0);
}

static void listen_at(int place, int count, const void *address, socklen_t size)
{
    int fd = socket(((const struct sockaddr *)address)->sa_family, SOCK_STREAM, 0);
    TEST_ASSERT(bind(fd, address, size) == 0 && listen(fd, 5) == 0);
    TEST_ASSERT(dup2(fd, 3 + place) == 3 + place);
    if (fd >= 3 + count)
        close(fd);
}

static void announce(int count, const char *names);

/* Descriptors from 3 on, as a service manager leaves them. */
static void hand_over(int count, const char *names)
{
    const struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    for (int i = 0; i < count; i++)
        listen_at(i, count, &any, sizeof(any));
    announce(count, names);
}

/* One of them. */
static void hand_over_one(const void *address, socklen_t size, const char *name)
{
    listen_at(0, 1, address, size);
    announce(1, name);
}

static void announce(int count, const char *names)
{
    char number[16];
    snprintf(number, sizeof(number), "%d", getpid());
    setenv("LISTEN_PID", number, 1);
    snprintf(number, sizeof(number), "%d", count);
    setenv("LISTEN_FDS", number, 1);
    if (names)
        setenv("LISTEN_FDNAMES", names, 1);
    else
        unsetenv("LISTEN_FDNAMES");
}

static void test_sockets_of_the_service_manager(void)
{
    struct sockets s;
    hand_over(3, "client:operator:client");
    in_port_t operators = port_of(4);
    TEST_ASSERT_(sockets_open(&s, "127.0.0.1:0", "127.0.0.1:0", 2, why, sizeof(why)) == 0, "%s", why);
    TEST_CHECK(s.clients_count == 2 && s.clients[0].activated && s.clients[0].fds_count == 2);
    TEST_CHECK(s.operator_set.activated && port_of(s.operator_set.fds[0]) == operators);
    TEST_CHECK((fcntl(3, F_GETFD) & FD_CLOEXEC) && (fcntl(3, F_GETFL) & O_NONBLOCK));
    TEST_CHECK(!getenv("LISTEN_PID") && !getenv("LISTEN_FDS") && !getenv("LISTEN_FDNAMES"));
    sockets_close(&s);
}

static void test_sockets_of_the_service_manager_without_names(void)
{
    struct sockets s;
    hand_over(1, NULL);
    in_port_t port = port_of(3);
    TEST_ASSERT_(sockets_open(&s, "127.0.0.1:0", "127.0.0.1:0", 1, why, sizeof(why)) == 0, "%s", why);
    TEST_CHECK(s.clients_count == 1 && port_of(s.clients[0].fds[0]) == port);
    TEST_CHECK(s.operator_set.fds_count == 1 && !s.operator_set.activated);
    sockets_close(&s);
}

/* CTL-068: who reaches the operator's listener may kill actors. */
static void test_an_operators_socket_that_others_reach(void)
{
    struct sockets s;
    const struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_ANY)}};
    const struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_un nameless = {.sun_family = AF_UNIX};
    int length = snprintf(nameless.sun_path + 1, sizeof(nameless.sun_path) - 1, "sockets_test-%d", getpid());
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    hand_over_one(&four, sizeof(four), "operator");
    TEST_CHECK(sockets_open(&s, "127.0.0.1:0", "127.0.0.1:0", 1, why, sizeof(why)) == EXIT_CONFIG);
    TEST_CHECK_(strstr(why, "LISTEN_FDNAMES names operator 0.0.0.0:") && strstr(why, "for this machine only"),
                "%s", why);
    TEST_CHECK(s.operator_set.fds_count == 0);
    hand_over_one(&six, sizeof(six), "operator");
    TEST_CHECK(sockets_open(&s, "127.0.0.1:0", "127.0.0.1:0", 1, why, sizeof(why)) == EXIT_CONFIG);
    hand_over_one(&nameless, size, "operator"); /* no mode decides about this one */
    TEST_CHECK(sockets_open(&s, "127.0.0.1:0", "127.0.0.1:0", 1, why, sizeof(why)) == EXIT_CONFIG);
    TEST_CHECK_(strstr(why, "a unix socket without a path") != NULL, "%s", why);
    hand_over_one(&four, sizeof(four), "client"); /* config/outside.h decides about it */
    TEST_CHECK(sockets_open(&s, "127.0.0.1:0", "127.0.0.1:0", 1, why, sizeof(why)) == 0);
    TEST_CHECK(s.clients[0].activated && s.clients[0].exposed);
    sockets_close(&s);
}

static void test_an_operators_unix_socket_of_the_service_manager(void)
{
    struct sockets s;
    struct sockaddr_un here = {.sun_family = AF_UNIX};
    char dir[64] = "/tmp/sockets_test.XXXXXX";
    TEST_ASSERT(mkdtemp(dir) != NULL);
    snprintf(here.sun_path, sizeof(here.sun_path), "%s/o", dir);
    hand_over_one(&here, sizeof(here), "operator");
    TEST_ASSERT_(sockets_open(&s, "127.0.0.1:0", "127.0.0.1:0", 1, why, sizeof(why)) == 0, "%s", why);
    TEST_CHECK(s.operator_set.activated && s.operator_set.address.local_file && !s.operator_set.exposed);
    TEST_CHECK(strcmp(s.operator_set.address.local.sun_path, here.sun_path) == 0);
    sockets_close(&s);
    TEST_CHECK(unlink(here.sun_path) == 0); /* the service manager's file stays */
    TEST_CHECK(rmdir(dir) == 0);
}

static void warn(void *context, const char *sentence)
{
    (void)sentence;
    ++*(int *)context;
}

/* What is brought isn't looked for, and what isn't is. */
static void test_a_look_at_sockets_of_the_service_manager(void)
{
    const char *never = "192.0.2.1:8080", *nowhere = "unix:/nowhere/at/all";
    int warned = 0;
    TEST_CHECK(sockets_look(never, "127.0.0.1:0", warn, &warned, why, sizeof(why)) == 69);
    TEST_CHECK(sockets_look("127.0.0.1:0", nowhere, warn, &warned, why, sizeof(why)) == 69);
    hand_over(2, "client:operator");
    TEST_CHECK_(sockets_look(never, nowhere, warn, &warned, why, sizeof(why)) == 0, "%s", why);
    hand_over(1, "client");
    TEST_CHECK(sockets_look(never, nowhere, warn, &warned, why, sizeof(why)) == 69);
    TEST_CHECK_(strstr(why, nowhere) != NULL, "%s", why);
    hand_over(1, "operator");
    TEST_CHECK(sockets_look(never, nowhere, warn, &warned, why, sizeof(why)) == 69);
    TEST_CHECK_(strstr(why, never) != NULL, "%s", why);
    hand_over(1, "clent");
    TEST_CHECK(sockets_look("127.0.0.1:0", "127.0.0.1:0", warn, &warned, why, sizeof(why)) == EXIT_CONFIG);
    TEST_CHECK(warned == 0);
    unsetenv("LISTEN_PID");
}

static void test_sockets_that_cannot_be_meant(void)
{
    struct sockets s;
    hand_over(1, "clent");
    TEST_CHECK(sockets_open(&s, "127.0.0.1:0", "127.0.0.1:0", 1, why, sizeof(why)) == EXIT_CONFIG);
    TEST_CHECK_(strstr(why, "LISTEN_FDNAMES names 'clent'") != NULL, "%s", why);
    hand_over(2, "operator:operator");
    TEST_CHECK(sockets_open(&s, "127.0.0.1:0", "127.0.0.1:0", 1, why, sizeof(why)) == EXIT_CONFIG);
    TEST_CHECK_(strstr(why, "operator too often") != NULL, "%s", why);
    hand_over(1, "client");
    TEST_ASSERT(dup2(STDIN_FILENO, 3) == 3);
    TEST_CHECK(sockets_open(&s, "127.0.0.1:0", "127.0.0.1:0", 1, why, sizeof(why)) == EXIT_CONFIG);
    TEST_CHECK_(strstr(why, "descriptor 3 of LISTEN_FDS is not a listening socket") != NULL, "%s", why);
    /* another process's */
    hand_over(1, "client");
    setenv("LISTEN_PID", "1", 1);
    TEST_CHECK(sockets_open(&s, "127.0.0.1:0", "127.0.0.1:0", 1, why, sizeof(why)) == 0);
    TEST_CHECK(!s.clients[0].activated);
    sockets_close(&s);
}

TEST_LIST
= {
    {"addresses of clients", test_addresses_of_clients},
    {"addresses that meet", test_addresses_that_meet},
    {"one socket per scheduler on one port", test_one_socket_per_scheduler_on_one_port},
    {"unix sockets are copied and removed", test_unix_sockets_are_copied_and_removed},
    {"sockets of the service manager", test_sockets_of_the_service_manager},
    {"sockets of the service manager without names", test_sockets_of_the_service_manager_without_names},
    {"an operator's socket that others reach", test_an_operators_socket_that_others_reach},
    {"an operator's unix socket of the service manager",
     test_an_operators_unix_socket_of_the_service_manager},
    {"a look at sockets of the service manager", test_a_look_at_sockets_of_the_service_manager},
    {"sockets that cannot be meant", test_sockets_that_cannot_be_meant},
    {NULL, NULL},
};
