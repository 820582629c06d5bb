#define _GNU_SOURCE
#include "chaos/brief.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct brief brief = {
#define X(field, name, preset, most, argument, prose) .field = preset,
    BRIEF_NUMBERS(X)
#undef X
        .speed = 1,
    .url = "http://127.0.0.1:8080", .receiver = {.sin_family = AF_INET}};

_Noreturn static void usage(void)
{
    puts("traffic [OPTION...]: drives a server through the published contract of jobs, and checks what it "
         "sees\n");
    printf("  --%-28s %s\n", "url http://HOST:PORT", "of the server [http://127.0.0.1:8080]");
#define X(field, name, preset, most, argument, prose) \
    printf("  --%-28s %s [%llu]\n", name " " argument, prose, (unsigned long long)(preset));
    BRIEF_NUMBERS(X)
#undef X
    printf("  --%-28s %s [1]\n", "speed X", "jobs.simulation_speed");
    printf("  --%-28s %s\n", "only KIND[,KIND...]", "these kinds alone");
    printf("  --%-28s %s\n", "signing-secret whsec_...", "webhooks.signing_secret: signatures are checked");
    printf("  --%-28s %s\n", "receiver ADDRESS[:PORT]",
           "where this program listens for webhooks, at 33 ports from there on [127.0.0.1, any]");
#define X(field, name, prose) printf("  --%-28s %s\n", name, prose);
    BRIEF_FLAGS(X)
#undef X
    exit(0);
}

_Noreturn static void refuse(const char *option, const char *value)
{
    fprintf(stderr, "traffic: --%s: '%s' can't be used; --help says what can\n", option, value ? value : "");
    exit(2);
}

static uint64_t number_of(const char *option, const char *value, uint64_t most)
{
    char *end;
    errno = 0;
    unsigned long long n = value ? strtoull(value, &end, 10) : 0;
    if (!value || !*value || *end || errno || n > most || value[0] == '-')
        refuse(option, value);
    return n;
}

static void resolve(const char *option, const char *text, struct sockaddr_in *ret)
{
    char host[128], *port = NULL;
    struct addrinfo *found, hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    snprintf(host, sizeof(host), "%s", text);
    if ((port = strchr(host, ':')))
        *port++ = 0;
    if (getaddrinfo(host, port, &hints, &found) != 0)
        refuse(option, text);
    memcpy(ret, found->ai_addr, sizeof(*ret));
    freeaddrinfo(found);
}

static void read_url(const char *url)
{
    static const char prefix[] = "http://";
    brief.url = url;
    if (strncmp(url, prefix, sizeof(prefix) - 1) != 0)
        refuse("url", url);
    snprintf(brief.host, sizeof(brief.host), "%s", url + sizeof(prefix) - 1);
    brief.host[strcspn(brief.host, "/")] = 0;
    resolve("url", brief.host, &brief.server);
    if (!brief.server.sin_port)
        brief.server.sin_port = htons(80);
    brief.loopback = ntohl(brief.server.sin_addr.s_addr) >> 24 == 127;
}

static bool read_flag(const char *name)
{
#define X(field, text, prose)      \
    if (strcmp(name, text) == 0) { \
        brief.field = true;        \
        return true;               \
    }
    BRIEF_FLAGS(X)
#undef X
    return false;
}

static bool read_number(const char *name, const char *value)
{
#define X(field, text, preset, most, argument, prose) \
    if (strcmp(name, text) == 0) {                    \
        brief.field = number_of(name, value, most);   \
        return true;                                  \
    }
    BRIEF_NUMBERS(X)
#undef X
    return false;
}

static void read_value(const char *name, const char *value)
{
    char *end;
    if (read_number(name, value))
        return;
    if (!value)
        refuse(name, value);
    if (strcmp(name, "url") == 0) {
        read_url(value);
    } else if (strcmp(name, "speed") == 0) {
        brief.speed = strtod(value, &end);
        if (*end || !(brief.speed > 0))
            refuse(name, value);
    } else if (strcmp(name, "only") == 0) {
        brief.only = value;
    } else if (strcmp(name, "signing-secret") == 0) {
        brief.secret = value;
    } else if (strcmp(name, "receiver") == 0) {
        resolve(name, value, &brief.receiver);
    } else {
        refuse(name, value);
    }
}

void brief_read(int argc, char **argv)
{
    read_url(brief.url);
    brief.receiver.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) != 0)
            refuse(argv[i], NULL);
        const char *name = argv[i] + 2;
        if (strcmp(name, "help") == 0)
            usage();
        if (read_flag(name))
            continue;
        read_value(name, i + 1 < argc ? argv[i + 1] : NULL);
        i++;
    }
    if (!brief.clients || !brief.open)
        refuse("clients, --open", "0");
}
