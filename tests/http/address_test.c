#include "acutest.h"

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

TEST_LIST
= {
    {"addresses that are meant", test_addresses_that_are_meant},
    {"addresses that are refused", test_addresses_that_are_refused},
    {"the longest path", test_the_longest_path},
    {"port 0 becomes a port", test_port_0_becomes_a_port},
    {"unix sockets", test_unix_sockets},
    {NULL, NULL},
};
