#include "actors/reach.h"

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

struct range {
    uint8_t bytes[16];
    uint8_t bits;
};

static bool in_range(const uint8_t *address, const struct range *range)
{
    unsigned whole = range->bits / 8, rest = range->bits % 8;
    if (memcmp(address, range->bytes, whole) != 0)
        return false;
    return rest == 0 || ((address[whole] ^ range->bytes[whole]) >> (8 - rest)) == 0;
}

static bool in_any(const uint8_t *address, const struct range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (in_range(address, &ranges[i]))
            return true;
    return false;
}

/* IANA's special-purpose registries, and multicast. */
static const struct range closed4[] = {
    {{0}, 8},
    {{10}, 8},
    {{100, 64}, 10},
    {{127}, 8},
    {{169, 254}, 16},
    {{172, 16}, 12},
    {{192, 0, 0}, 24},
    {{192, 0, 2}, 24},
    {{192, 88, 99}, 24},
    {{192, 168}, 16},
    {{198, 18}, 15},
    {{198, 51, 100}, 24},
    {{203, 0, 113}, 24},
    {{224}, 4},
    {{240}, 4},
};
/* Only 2000::/3 is given out at all; without Teredo and its neighbours, documentation and 6to4. */
static const struct range open6 = {{0x20}, 3};
static const struct range closed6[] = {
    {{0x20, 0x01}, 23},
    {{0x20, 0x01, 0x0d, 0xb8}, 32},
    {{0x20, 0x02}, 16},
    {{0x3f, 0xff}, 20},
};

bool reach_public(const struct sockaddr *address)
{
    const void *a = address;
    uint8_t bytes[16];
    switch (address->sa_family) {
    case AF_INET:
        memcpy(bytes, &((const struct sockaddr_in *)a)->sin_addr, 4);
        return !in_any(bytes, closed4, sizeof(closed4) / sizeof(*closed4));
    case AF_INET6:
        memcpy(bytes, &((const struct sockaddr_in6 *)a)->sin6_addr, 16);
        return in_range(bytes, &open6) && !in_any(bytes, closed6, sizeof(closed6) / sizeof(*closed6));
    default:
        return false;
    }
}
