#include "acutest.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "config/log.h"

/* Standard error is a pipe of our own meanwhile; both ends never wait. */
static int reader, saved;

static void catch_lines(void)
{
    int ends[2];
    TEST_ASSERT(pipe(ends) == 0);
    TEST_ASSERT(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
    saved = dup(STDERR_FILENO);
    reader = ends[0];
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
}

static void let_go(void)
{
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(reader);
}

static char lines[1 << 17];

static const char *caught(void)
{
    size_t length = 0;
    ssize_t n;
    while ((n = read(reader, lines + length, sizeof(lines) - 1 - length)) > 0)
        length += (size_t)n;
    lines[length] = 0;
    return lines;
}

#define HAS(needle) TEST_CHECK_(strstr(lines, needle) != NULL, "'%s' is in '%.400s'", needle, lines)

static void test_a_line_is_one_object(void)
{
    catch_lines();
    log_open(LOG_INFO);
    LOG(LOG_WARN, "boot", "something\nhappened", {"text", "a \"word\"", 0}, {"number", NULL, -7});
    caught();
    let_go();
    HAS("{\"ts\":\"20");
    HAS("Z\",\"level\":\"warn\",\"logger\":\"boot\",\"msg\":\"something\\nhappened\",\"text\":\"a "
        "\\\"word\\\"\",\"number\":-7}\n");
    TEST_CHECK(strchr(lines, '\n') == lines + strlen(lines) - 1);
}

static void test_lines_below_the_level_are_left_out(void)
{
    catch_lines();
    log_open(LOG_WARN);
    LOG(LOG_INFO, "boot", "quiet", {"n", NULL, 1});
    LOG(LOG_ERROR, "boot", "loud", {"n", NULL, 1});
    caught();
    let_go();
    HAS("loud");
    TEST_CHECK(strstr(lines, "quiet") == NULL);
}

static void test_a_line_that_is_too_long_keeps_its_form(void)
{
    static char big[LOG_LINE_MAX];
    memset(big, 'x', sizeof(big) - 1);
    catch_lines();
    log_open(LOG_INFO);
    LOG(LOG_ERROR, "boot", "big", {"text", big, 0});
    caught();
    let_go();
    HAS("\"msg\":\"big\",\"cut\":true}\n");
}

static void test_the_runtimes_lines_get_the_time(void)
{
    catch_lines();
    log_line("{\"msg\":\"actor crashed\"}", 23);
    log_line("no object", 9);
    caught();
    let_go();
    HAS("Z\",\"logger\":\"runtime\",\"msg\":\"actor crashed\"}\n");
    HAS("\nno object\n");
}

/* Nobody reads: writing goes on at once, and says later how much was lost. */
static void test_a_full_pipe_stops_nobody(void)
{
    catch_lines();
    log_open(LOG_INFO);
    for (int i = 0; i < 10000; i++)
        LOG(LOG_INFO, "boot", "a line that nobody reads", {"i", NULL, i});
    size_t read = strlen(caught());
    TEST_CHECK(read > 4096 && read < 10000 * 50);
    LOG(LOG_INFO, "boot", "somebody reads again", {"i", NULL, 0});
    caught();
    let_go();
    HAS("lines were dropped because standard error was full\",\"count\":");
    HAS("somebody reads again");
}

TEST_LIST
= {
    {"a line is one object", test_a_line_is_one_object},
    {"lines below the level are left out", test_lines_below_the_level_are_left_out},
    {"a line that is too long keeps its form", test_a_line_that_is_too_long_keeps_its_form},
    {"the runtime's lines get the time", test_the_runtimes_lines_get_the_time},
    {"D10 a full pipe stops nobody", test_a_full_pipe_stops_nobody},
    {NULL, NULL},
};
