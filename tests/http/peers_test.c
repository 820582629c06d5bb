#include "http/peers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "acutest.h"

static struct sockaddr_storage v4(const char *text)
{
    struct sockaddr_storage s = {0};
    struct sockaddr_in *in = (void *)&s;
    in->sin_family = AF_INET;
    inet_pton(AF_INET, text, &in->sin_addr);
    return s;
}

static struct sockaddr_storage v6(const char *text)
{
    struct sockaddr_storage s = {0};
    struct sockaddr_in6 *in6 = (void *)&s;
    in6->sin6_family = AF_INET6;
    inet_pton(AF_INET6, text, &in6->sin6_addr);
    return s;
}

static void cap(void)
{
    struct sockaddr_storage one = v4("192.0.2.1"), two = v4("192.0.2.2");
    uint32_t places[4], other, none = 0;
    for (int i = 0; i < 3; i++)
        TEST_CHECK(peers_enter(&one, 3, &places[i]) && places[i] != PEER_NONE);
    TEST_CHECK(!peers_enter(&one, 3, &none));
    TEST_CHECK(none == PEER_NONE);
    TEST_CHECK(peers_enter(&two, 3, &other));
    peers_leave(places[0]);
    TEST_CHECK(peers_enter(&one, 3, &places[0]));
    TEST_CHECK(!peers_enter(&one, 3, &none));
    TEST_CHECK(peers_enter(&one, 0, &places[3])); /* no cap, counted all the same */
    for (int i = 0; i < 4; i++)
        peers_leave(places[i]);
    peers_leave(other);
    peers_leave(PEER_NONE);
    TEST_CHECK(peers_enter(&one, 1, &places[0]));
    peers_leave(places[0]);
}

static void keys(void)
{
    uint8_t a[8], b[8];
    struct sockaddr_storage mapped = v6("::ffff:192.0.2.1"), plain = v4("192.0.2.1"),
                            local = {.ss_family = AF_UNIX};
    struct sockaddr_storage near = v6("2001:db8::1"), far = v6("2001:db8::ffff:1"),
                            else_where = v6("2001:db8:0:1::1");
    uint32_t place;
    TEST_CHECK(peers_key(&mapped, a) == 4 && peers_key(&plain, b) == 4 && memcmp(a, b, 4) == 0);
    TEST_CHECK(peers_key(&near, a) == 8 && peers_key(&far, b) == 8 && memcmp(a, b, 8) == 0);
    TEST_CHECK(peers_key(&else_where, b) == 8 && memcmp(a, b, 8) != 0);
    TEST_CHECK(peers_key(&local, a) == 0);
    TEST_CHECK(peers_enter(&local, 1, &place) && place == PEER_NONE);
    TEST_CHECK(peers_enter(&local, 1, &place) && place == PEER_NONE);
}

static void many(void)
{
    static uint32_t places[20000];
    uint32_t counted = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        struct sockaddr_storage s = v4("10.0.0.0");
        ((struct sockaddr_in *)&s)->sin_addr.s_addr = htonl(0x0a000000 + i);
        TEST_CHECK(peers_enter(&s, 1, &places[i]));
        counted += places[i] != PEER_NONE;
    }
    TEST_CHECK_(counted > 19000, "%u are counted", counted);
    for (uint32_t i = 0; i < 20000; i++)
        peers_leave(places[i]);
}

TEST_LIST
= {
    {"an address has its cap, and only it", cap},
    {"addresses count by what one customer has", keys},
    {"many addresses", many},
    {0},
};
