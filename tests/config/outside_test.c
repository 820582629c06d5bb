#include "acutest.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "config/outside.h"

static char why[512];

static char *const nothing[] = {NULL};

static struct options serving(const char *const *arguments, int count)
{
    char *argv[16] = {"coppice", "serve"};
    struct options o;
    for (int i = 0; i < count; i++)
        argv[2 + i] = (char *)(uintptr_t)arguments[i];
    TEST_ASSERT_(options_parse(&o, 2 + count, argv, nothing, why, sizeof(why)) == 0, "%s", why);
    return o;
}

/* CTL-068, also where no setting names the address, or where it isn't theirs any more. */
static void test_sockets_that_are_open_already(void)
{
    static const struct {
        const char *arguments[3];
        int count;
        bool activated, exposed, good;
    } cases[] = {
        {{"--env=prod"}, 1, true, true, false},
        {{"--env=stage"}, 1, true, true, false},
        {{"--env=prod"}, 1, true, false, true},
        {{"--env=prod"}, 1, false, true, false}, /* a guardian's, of settings that had TLS */
        {{"--env=prod"}, 1, false, false, true},
        {{"--env=dev"}, 1, true, true, true},
        {{"--env=prod", "--tls-terminated-by-proxy"}, 2, true, true, true},
        {{"--env=prod", "--tls-certificate=c", "--tls-key=k"}, 3, true, true, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct options o = serving(cases[i].arguments, cases[i].count);
        struct sockets s = {.clients_count = 2};
        s.clients[1] = (struct socket_set){
            .text = "0.0.0.0:80", .activated = cases[i].activated, .exposed = cases[i].exposed};
        TEST_CHECK_(outside_sockets(&o, &s, why, sizeof(why)) == cases[i].good, "case %zu", i);
        TEST_CHECK_(cases[i].good || (strstr(why, "0.0.0.0:80") && strstr(why, "(CTL-068)")), "%s", why);
    }
}

TEST_LIST
= {
    {"CTL-068 sockets that are open already", test_sockets_that_are_open_already},
    {NULL, NULL},
};
