#include "acutest.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "actors/reach.h"

static void test_W3_which_addresses_are_public(void)
{
    static const char *const closed[] = {
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.0",
        "10.255.255.255",
        "100.64.0.0",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.255",
        "169.254.0.1",
        "172.16.0.0",
        "172.31.255.255",
        "192.0.0.8",
        "192.0.2.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:8.8.8.8",
        "::8.8.8.8",
        "64:ff9b::8.8.8.8",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:808:808::1",
        "3fff::1",
        "fc00::1",
        "fdff::1",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "4000::1",
        "5f00::1",
    };
    static const char *const open[] = {
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.1.1.1",
        "128.0.0.1",
        "169.253.1.1",
        "172.15.1.1",
        "172.32.0.1",
        "192.0.1.1",
        "192.167.1.1",
        "198.17.1.1",
        "198.20.0.1",
        "223.255.255.255",
        "2606:4700::1111",
        "2a00:1450::1",
        "2001:4860:4860::8888",
        "2003::1",
    };
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr other = {.sa_family = AF_UNIX};
    for (size_t i = 0; i < sizeof(closed) / sizeof(*closed) + sizeof(open) / sizeof(*open); i++) {
        bool want = i >= sizeof(closed) / sizeof(*closed);
        const char *text = want ? open[i - sizeof(closed) / sizeof(*closed)] : closed[i];
        bool is_four = inet_pton(AF_INET, text, &four.sin_addr) == 1;
        TEST_ASSERT(is_four || inet_pton(AF_INET6, text, &six.sin6_addr) == 1);
        const void *address = is_four ? (const void *)&four : (const void *)&six;
        TEST_CHECK_(reach_public(address) == want, "%s", text);
    }
    TEST_CHECK(!reach_public(&other));
}

TEST_LIST
= {
    {"W3: which addresses are public", test_W3_which_addresses_are_public},
    {NULL, NULL},
};
