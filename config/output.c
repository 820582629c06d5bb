#include "config/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "http/catalogue.h"

/* Whoever starts us with one of the three closed would have its number given to the first file or socket that is opened,
 * and what we say written into that. Standard output is opened the wrong way round, so that what is lost is noticed. */
static void take_places(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR);
}

void output_open(void)
{
    struct sigaction action = {.sa_handler = SIG_IGN};
    take_places();
    sigemptyset(&action.sa_mask);
    sigaction(SIGPIPE, &action, NULL);
    sigaction(SIGXFSZ, &action, NULL);
}

static int refusal; /* why standard output took no more */

static bool flush_out(void *context, const char *bytes, size_t length)
{
    (void)context;
    while (length > 0) {
        ssize_t written = write(STDOUT_FILENO, bytes, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            refusal = errno;
            return false;
        }
        bytes += written;
        length -= (size_t)written;
    }
    return true;
}

struct json_sink output_sink(void)
{
    static char buffer[8192];
    struct json_sink sink;
    json_sink_init(&sink, buffer, sizeof(buffer), flush_out, NULL);
    return sink;
}

int output_done(struct json_sink *sink)
{
    if (json_sink_flush(sink) == JSON_OK || refusal == EPIPE)
        return EXIT_SUCCESS;
    return output_complain(EXIT_IO, "standard output:", strerror(refusal));
}

int output_refusal(void)
{
    return refusal;
}

int output_complain(int status, const char *what, const char *text)
{
    fprintf(stderr, "coppice: %s%s%s\n", what, *what ? " " : "", text);
    return status;
}

int output_refuse_settings(const char *text)
{
    fprintf(stderr, "coppice: %s: %s\n", catalogue_row(ERROR_RFA_CONFIG_INVALID)->code, text);
    return EXIT_CONFIG;
}

bool output_color(const struct options *o)
{
    const char *none = getenv("NO_COLOR"), *term = getenv("TERM");
    return o->color && !(none && *none) && term && strcmp(term, "dumb") != 0 && isatty(STDOUT_FILENO);
}

bool output_drawable(void)
{
    const char *term = getenv("TERM");
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

bool output_interactive(void)
{
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

bool output_pause(uint64_t ns)
{
    struct pollfd reader = {.fd = STDOUT_FILENO};
    uint64_t ms = ns / 1000000;
    return poll(&reader, 1, ms < INT_MAX ? (int)ms : INT_MAX) == 0;
}

bool output_ask(const char *question)
{
    char line[16] = "";
    fprintf(stderr, "%s [y/N] ", question);
    if (!fgets(line, sizeof(line), stdin))
        return false;
    line[strcspn(line, "\n")] = 0;
    return strcasecmp(line, "y") == 0 || strcasecmp(line, "yes") == 0;
}
