/* Sheaves: each request has its own answer, however the bytes come, and those that have none are told apart. The server says what
 * a test has written down for it. */
#include "acutest.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chaos/sheaf.h"

#define WITH_LENGTH "HTTP/1.1 202 Accepted\r\nContent-Length: 16\r\nX-Once: yes\r\n\r\n{\"job_id\":\"one\"}"
#define IN_CHUNKS                                                                                   \
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n4;x=y\r\n\"b\"}\r\n0\r\n" \
    "\r\n"
#define WITHOUT_BODY "HTTP/1.1 204 No Content\r\n\r\n"
#define LAST_ONE     "HTTP/1.1 503 Unavailable\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno"

enum { ASKS_MAX = 8, HEARD_MAX = 64 };

static struct sheaf s;
static struct heard {
    int status;
    char head[HEARD_MAX * 4], body[HEARD_MAX];
} heard[ASKS_MAX];
static uint32_t told;

static void tell(void *context, const struct sheaf_ask *ask)
{
    struct heard *h = &heard[ask->number];
    TEST_CHECK(context == heard && h->status == -2); /* once */
    h->status = ask->status;
    snprintf(h->head, sizeof(h->head), "%s", ask->head);
    snprintf(h->body, sizeof(h->body), "%s", ask->body);
    told++;
}

static int listening(uint16_t *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    TEST_ASSERT(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, 8) == 0);
    TEST_ASSERT(getsockname(fd, (struct sockaddr *)&at, &size) == 0);
    *ret_port = ntohs(at.sin_port);
    return fd;
}

/* Until so many requests are whole; they have no bodies. */
static void hear_requests(int fd, uint32_t count)
{
    char bytes[4096];
    size_t used = 0;
    while (count > 0) {
        ssize_t n = read(fd, bytes + used, sizeof(bytes) - 1 - used);
        if (n <= 0)
            _exit(1);
        used += (size_t)n;
        bytes[used] = 0;
        uint32_t ends = 0;
        for (const char *at = bytes; (at = strstr(at, "\r\n\r\n")) != NULL; at += 4)
            ends++;
        if (ends >= count)
            return;
    }
}

/* On each of its connections it hears `count` requests, says `answers` in pieces of `piece` bytes, and closes. */
static pid_t serve(uint16_t *ret_port, uint32_t connections, uint32_t count, const char *answers,
                   size_t piece)
{
    int fd = listening(ret_port);
    pid_t pid = fork();
    TEST_ASSERT(pid >= 0);
    if (pid == 0) {
        for (uint32_t i = 0; i < connections; i++) {
            int connection = accept(fd, NULL, NULL);
            hear_requests(connection, count);
            for (size_t at = 0, size = strlen(answers); at < size; at += piece)
                if (send(connection, answers + at, size - at < piece ? size - at : piece, MSG_NOSIGNAL) < 0)
                    break;
            close(connection);
        }
        _exit(0);
    }
    close(fd);
    return pid;
}

static void begin(uint16_t port, uint32_t lines)
{
    TEST_ASSERT(sheaf_init(&s));
    sheaf_meet(&s, port, lines);
}

static uint32_t ask(uint32_t count)
{
    told = 0;
    for (uint32_t i = 0; i < count; i++) {
        heard[i] = (struct heard){.status = -2};
        sheaf_add(&s, 0, i, "GET", "/", NULL);
    }
    uint32_t missing = sheaf_ask_all(&s, tell, heard);
    TEST_CHECK(told == count);
    return missing;
}

static void end(pid_t server)
{
    sheaf_fini(&s);
    if (server)
        TEST_CHECK(waitpid(server, NULL, 0) == server);
}

static void check_three(void)
{
    TEST_CHECK(heard[0].status == 202 && strcmp(heard[0].body, "{\"job_id\":\"one\"}") == 0);
    TEST_CHECK(strstr(heard[0].head, "X-Once") != NULL);
    TEST_CHECK(heard[1].status == 200 && strcmp(heard[1].body, "{\"a\":\"b\"}") == 0);
    TEST_CHECK(strstr(heard[1].head, "X-Once") == NULL);
    TEST_CHECK(heard[2].status == 204 && strcmp(heard[2].body, "") == 0);
}

static void test_answers_come_in_any_pieces(void)
{
    static const char answers[] = WITH_LENGTH IN_CHUNKS WITHOUT_BODY;
    for (size_t piece = 1; piece <= sizeof(answers); piece += piece < 8 ? 1 : 31) {
        uint16_t port;
        pid_t server = serve(&port, 1, 3, answers, piece);
        begin(port, 1);
        TEST_CHECK(ask(3) == 0);
        check_three();
        end(server);
    }
}

static void test_what_was_answered_before_the_end_counts(void)
{
    static const char answers[] = WITH_LENGTH IN_CHUNKS WITHOUT_BODY WITH_LENGTH;
    for (size_t cut = 1; cut <= strlen(WITH_LENGTH); cut++) {
        uint16_t port;
        char some[sizeof(answers)];
        snprintf(some, sizeof(some), "%.*s", (int)(strlen(answers) - cut), answers);
        pid_t server = serve(&port, 1, 4, some, sizeof(some));
        begin(port, 1);
        TEST_CHECK(ask(4) == 1);
        check_three();
        TEST_CHECK(heard[3].status == SHEAF_LOST && heard[3].body[0] == 0);
        end(server);
    }
}

static void test_requests_are_dealt_to_the_lines(void)
{
    uint16_t port;
    pid_t server = serve(&port, 4, 2, WITH_LENGTH LAST_ONE, 7);
    begin(port, 4);
    TEST_CHECK(ask(8) == 0);
    for (uint32_t i = 0; i < 8; i++)
        TEST_CHECK(heard[i].status == (i < 4 ? 202 : 503));
    end(server);
}

static void test_a_line_that_is_to_be_closed_is_made_anew(void)
{
    uint16_t port;
    pid_t server = serve(&port, 2, 1, LAST_ONE, 7);
    begin(port, 1);
    TEST_CHECK(ask(1) == 0 && heard[0].status == 503 && strcmp(heard[0].body, "no") == 0);
    TEST_CHECK(ask(1) == 0 && heard[0].status == 503);
    end(server);
}

static void test_what_never_left_is_known(void)
{
    uint16_t port;
    close(listening(&port));
    begin(port, 2);
    TEST_CHECK(ask(4) == 4);
    for (uint32_t i = 0; i < 4; i++)
        TEST_CHECK(heard[i].status == SHEAF_UNSENT);
    end(0);
}

static void test_fields_of_bodies(void)
{
    char value[8];
    TEST_CHECK(sheaf_field("{\"a\":\"b\",\"cd\":\"efg\"}", "cd", value, sizeof(value)) &&
               strcmp(value, "efg") == 0);
    TEST_CHECK(!sheaf_field("{\"a\":null}", "a", value, sizeof(value)) && value[0] == 0);
}

TEST_LIST
= {
    {"answers come in any pieces", test_answers_come_in_any_pieces},
    {"what was answered before the end counts", test_what_was_answered_before_the_end_counts},
    {"requests are dealt to the lines", test_requests_are_dealt_to_the_lines},
    {"a line that is to be closed is made anew", test_a_line_that_is_to_be_closed_is_made_anew},
    {"what never left is known", test_what_never_left_is_known},
    {"fields of bodies", test_fields_of_bodies},
    {NULL, NULL},
};
