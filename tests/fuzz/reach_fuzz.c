/* Addresses that a client's URL may lead to: no address is public that the list of closed ones holds, here written as people write it
 * and read by libc; and an address of the one family in the dress of the other is never public. */
#include "actors/reach.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include "runtime/assert.h"
#include "tests/fuzz/bytes.h"

static const char *const closed4[] = {
    "0.0.0.0/8",     "10.0.0.0/8",      "100.64.0.0/10",  "127.0.0.0/8",    "169.254.0.0/16",
    "172.16.0.0/12", "192.0.0.0/24",    "192.0.2.0/24",   "192.88.99.0/24", "192.168.0.0/16",
    "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4",    "240.0.0.0/4",
};
/* Those that fault models and registries name, and the dresses: mapped, compatible, translated, NAT64, 6to4, Teredo. */
static const char *const closed6[] = {
    "::/128",    "::1/128",   "::ffff:0:0/96", "::/96",         "64:ff9b::/96", "64:ff9b:1::/48",
    "100::/64",  "2001::/32", "2001:2::/48",   "2001:db8::/32", "2001:10::/28", "2002::/16",
    "3fff::/20", "5f00::/16", "fc00::/7",      "fe80::/10",     "fec0::/10",    "ff00::/8",
};

/* Bit by bit. */
static bool holds(int family, const char *range, const uint8_t *address)
{
    uint8_t from[16];
    char text[64];
    int bits = 0;
    ASSERT(sscanf(range, "%63[^/]/%d", text, &bits) == 2);
    ASSERT(inet_pton(family, text, from) == 1);
    for (int i = 0; i < bits; i++)
        if ((from[i / 8] ^ address[i / 8]) >> (7 - i % 8) & 1)
            return false;
    return true;
}

static bool any_holds(int family, const char *const *ranges, size_t count, const uint8_t *address)
{
    for (size_t i = 0; i < count; i++)
        if (holds(family, ranges[i], address))
            return true;
    return false;
}

static void fill(struct bytes *input, uint8_t *address, size_t size)
{
    for (size_t i = 0; i < size; i++)
        address[i] = take(input);
}

static void check_four(struct bytes *input)
{
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(80)};
    uint8_t address[4];
    fill(input, address, sizeof address);
    memcpy(&four.sin_addr, address, sizeof address);
    bool public = reach_public((const struct sockaddr *)(const void *)&four);
    ASSERT(public != any_holds(AF_INET, closed4, sizeof closed4 / sizeof *closed4, address));
}

static void check_six(struct bytes *input)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(80)};
    uint8_t address[16];
    fill(input, address, sizeof address);
    memcpy(&six.sin6_addr, address, sizeof address);
    bool public = reach_public((const struct sockaddr *)(const void *)&six);
    ASSERT(!public || !any_holds(AF_INET6, closed6, sizeof closed6 / sizeof *closed6, address));
    ASSERT(!public || holds(AF_INET6, "2000::/3", address));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes input = {data, size};
    struct sockaddr other = {.sa_family = (sa_family_t)take(&input)};
    if (other.sa_family & 1)
        check_six(&input);
    else
        check_four(&input);
    ASSERT(other.sa_family == AF_INET || other.sa_family == AF_INET6 || !reach_public(&other));
    return 0;
}
