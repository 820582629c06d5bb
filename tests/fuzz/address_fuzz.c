/* Addresses of operators: any text is understood or refused with a sentence, and what is understood is loopback or local. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include "http/address.h"
#include "runtime/assert.h"
#include "tests/fuzz/bytes.h"

static void check_accepted(const struct address *a)
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)&a->storage;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)&a->storage;
    ASSERT(a->size > 0 && a->size <= sizeof a->storage);
    switch (a->base.sa_family) {
    case AF_INET:
        ASSERT(!a->local_file && ntohl(four->sin_addr.s_addr) >> 24 == 127);
        break;
    case AF_INET6:
        ASSERT(!a->local_file && IN6_IS_ADDR_LOOPBACK(&six->sin6_addr));
        break;
    default:
        ASSERT(a->base.sa_family == AF_UNIX && a->local_file);
        ASSERT(a->local.sun_path[0] == '/' && memchr(a->local.sun_path, 0, sizeof a->local.sun_path));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes input = {data, size};
    struct address address;
    char text[1024], why[256];
    size_t why_size = 1 + take(&input); /* a short one is cut off, and still ends */
    take_text(&input, sizeof text, text, sizeof text);
    memset(why, 'x', sizeof why);
    if (address_parse(text, &address, why, why_size))
        check_accepted(&address);
    else
        ASSERT(memchr(why, 0, why_size) && (why_size == 1 || why[0]));
    return 0;
}
