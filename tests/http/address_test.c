#include "acutest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "http/address.h"

static struct address address;
static char why[256];

static bool parses(const char *text)
{
    why[0] = 0;
    return address_parse(text, &address, why, sizeof(why));
}

static void test_addresses_that_are_meant(void)
{
    static const char *const good[] = {"127.0.0.1:0", "127.0.0.1:65535", "127.1.2.3:80", "localhost:7070",
                                       "[::1]:7070"};
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        TEST_CHECK_(parses(good[i]), "%s", good[i]);
        TEST_CHECK(!address.local_file);
    }
    TEST_CHECK(parses("unix:/run/x.sock") && address.local_file);
    TEST_CHECK(strcmp(address.local.sun_path, "/run/x.sock") == 0);
}

static void test_addresses_that_are_refused(void)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "127.0.0.1:PORT"},
        {"7070", "127.0.0.1:PORT"},
        {"127.0.0.1", "127.0.0.1:PORT"},
        {"127.0.0.1:", "a port from 0 to 65535"},
        {"127.0.0.1:65536", "a port from 0 to 65535"},
        {"127.0.0.1:+80", "a port from 0 to 65535"},
        {"127.0.0.1:000080", "a port from 0 to 65535"},
        {"127.0.0.1:80x", "a port from 0 to 65535"},
        {"0.0.0.0:80", "for this machine only"},
        {"192.168.0.1:80", "for this machine only"},
        {"example.org:80", "for this machine only"},
        {"localhost.example.org:80", "for this machine only"},
        {"127.0.0.1.example.org:80", "for this machine only"},
        {":80", "for this machine only"},
        {"[::]:80", "for this machine only"},
        {"[::1]x:80", "for this machine only"},
        {"[::1]:80:81", "for this machine only"},
        {"unix:", "begins with /"},
        {"unix:x.sock", "begins with /"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        TEST_CHECK_(!parses(bad[i].text), "'%s' is refused", bad[i].text);
        TEST_CHECK_(strstr(why, bad[i].says) != NULL, "'%s' says '%s'", why, bad[i].says);
        TEST_CHECK_(strncmp(why + 1, bad[i].text, strlen(bad[i].text)) == 0, "'%s' names the value", why);
    }
}

static void test_the_longest_path(void)
{
    char text[160] = "unix:/";
    memset(text + 6, 'p', 107 - 1);
    TEST_CHECK(parses(text) && strlen(address.local.sun_path) == 107);
    strcat(text, "p");
    TEST_CHECK(!parses(text) && strstr(why, "107 bytes"));
}

static void test_port_0_becomes_a_port(void)
{
    char text[ADDRESS_TEXT_MAX];
    TEST_ASSERT(parses("127.0.0.1:0"));
    int fd = address_listen(&address, why, sizeof(why));
    TEST_ASSERT(fd >= 0);
    address_text(fd, text);
    TEST_CHECK(strncmp(text, "127.0.0.1:", 10) == 0 && strcmp(text, "127.0.0.1:0") != 0);
    TEST_CHECK(parses(text));
    int client = address_connect(&address);
    TEST_CHECK(client >= 0);
    TEST_CHECK(address_listen(&address, why, sizeof(why)) == -1);
    TEST_CHECK(strstr(why, "is another server running?") != NULL);
    close(client);
    close(fd);
    TEST_CHECK(address_connect(&address) == -1 && errno == ECONNREFUSED);
}

static void test_unix_sockets(void)
{
    char folder[] = "/tmp/address_test.XXXXXX", text[128];
    struct stat s;
    TEST_ASSERT(mkdtemp(folder) != NULL);
    snprintf(text, sizeof(text), "unix:%s/s", folder);
    TEST_ASSERT(parses(text));
    int first = address_listen(&address, why, sizeof(why));
    TEST_CHECK(first >= 0);
    TEST_CHECK(stat(text + 5, &s) == 0 && (s.st_mode & 0777) == 0600);
    TEST_CHECK(address_listen(&address, why, sizeof(why)) == -1); /* somebody answers */
    close(first);
    int second = address_listen(&address, why, sizeof(why)); /* nobody does: what is left behind goes */
    TEST_CHECK(second >= 0);
    char shown[ADDRESS_TEXT_MAX];
    address_text(second, shown);
    TEST_CHECK(strcmp(shown, text) == 0);
    close(second);
    address_remove(&address);
    TEST_CHECK(stat(text + 5, &s) == -1);
    TEST_CHECK(mkdir(text + 5, 0700) == 0);
    TEST_CHECK(address_listen(&address, why, sizeof(why)) == -1); /* not a socket: left alone */
    TEST_CHECK(rmdir(text + 5) == 0);
    TEST_CHECK(rmdir(folder) == 0);
}

/* The lowest number that is free: what has been opened and closed again leaves it as it was. */
static int free_number(void)
{
    int fd = dup(STDIN_FILENO);
    close(fd);
    return fd;
}

static bool listens_not(int error, const char *says)
{
    int before = free_number();
    errno = why[0] = 0;
    return address_listen(&address, why, sizeof(why)) == -1 && errno == error && strstr(why, says) &&
           free_number() == before;
}

static bool looks_bad(int error, const char *says)
{
    int before = free_number();
    errno = why[0] = 0;
    return !address_look(&address, why, sizeof(why)) && errno == error && strstr(why, says) &&
           free_number() == before;
}

static bool looks_good(void)
{
    int before = free_number();
    why[0] = 0;
    return address_look(&address, why, sizeof(why)) && !why[0] && free_number() == before;
}

/* What can't be listened at leaves nothing open, and its code is there for who asks. To look binds nothing for longer than it takes, and
 * finds a server that runs no obstacle. */
static void test_what_cannot_be_listened_at_and_what_a_look_says(void)
{
    char text[ADDRESS_TEXT_MAX];
    TEST_ASSERT(parses("127.0.0.1:0") && looks_good());
    int fd = address_listen(&address, why, sizeof(why));
    TEST_ASSERT(fd >= 0);
    address_text(fd, text);
    TEST_ASSERT(parses(text));
    TEST_CHECK_(listens_not(EADDRINUSE, "is another server running?"), "%s", why);
    TEST_CHECK_(looks_good(), "%s", why);
    close(fd);
    TEST_CHECK_(looks_good(), "%s", why);
    struct sockaddr_in *v4 = (void *)&address.storage;
    v4->sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1, of no machine: RFC 5737 */
    TEST_CHECK_(listens_not(EADDRNOTAVAIL, "no interface of this machine has that address"), "%s", why);
    TEST_CHECK_(looks_bad(EADDRNOTAVAIL, "no interface of this machine has that address"), "%s", why);
}

static void test_what_cannot_be_a_unix_socket_and_what_a_look_says(void)
{
    char folder[] = "/tmp/address_test.XXXXXX", text[128];
    struct stat s;
    TEST_ASSERT(mkdtemp(folder) != NULL);
    snprintf(text, sizeof(text), "unix:%s/s", folder);
    TEST_ASSERT(parses(text));
    TEST_CHECK_(looks_good() && stat(text + 5, &s) == -1, "%s", why); /* nothing is made */
    int fd = address_listen(&address, why, sizeof(why));
    TEST_ASSERT(fd >= 0);
    TEST_CHECK_(listens_not(EADDRINUSE, "is another server running?"), "%s", why);
    TEST_CHECK_(looks_good() && stat(text + 5, &s) == 0, "%s", why); /* of a server that runs, or has run */
    close(fd);
    TEST_CHECK_(looks_good() && stat(text + 5, &s) == 0, "%s", why);
    TEST_CHECK(unlink(text + 5) == 0 && mkdir(text + 5, 0700) == 0);
    TEST_CHECK_(listens_not(EEXIST, "something that is no socket has that name"), "%s", why);
    TEST_CHECK_(looks_bad(EEXIST, "something that is no socket has that name"), "%s", why);
    TEST_CHECK(rmdir(text + 5) == 0 && rmdir(folder) == 0);
    TEST_CHECK_(listens_not(ENOENT, "the directory of the socket isn't there"), "%s", why);
    TEST_CHECK_(looks_bad(ENOENT, "the directory of the socket isn't there"), "%s", why);
}

TEST_LIST
= {
    {"addresses that are meant", test_addresses_that_are_meant},
    {"addresses that are refused", test_addresses_that_are_refused},
    {"the longest path", test_the_longest_path},
    {"port 0 becomes a port", test_port_0_becomes_a_port},
    {"unix sockets", test_unix_sockets},
    {"what can't be listened at, and what a look says", test_what_cannot_be_listened_at_and_what_a_look_says},
    {"what can't be a unix socket, and what a look says",
     test_what_cannot_be_a_unix_socket_and_what_a_look_says},
    {NULL, NULL},
};
