#include "tests/support/pipeline.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/assert.h"

#define COUNT(array)     (sizeof(array) / sizeof(*(array)))
#define ANY_OF(p, array) ((array)[pipeline_random((p), COUNT(array))])

uint64_t pipeline_random(struct pipeline *p, uint64_t below)
{
    uint64_t z = p->chance += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % below;
}

static bool one_in(struct pipeline *p, uint64_t count)
{
    return pipeline_random(p, count) == 0;
}

static void add(struct pipeline *p, const char *bytes, size_t size)
{
    if (size > PIPELINE_MAX - p->size)
        size = PIPELINE_MAX - p->size; /* a pipeline may end anywhere */
    memcpy(p->bytes + p->size, bytes, size);
    p->size += size;
}

static void say(struct pipeline *p, const char *text)
{
    add(p, text, strlen(text));
}

__attribute__((format(printf, 2, 3))) static void sayf(struct pipeline *p, const char *format, ...)
{
    char text[512];
    va_list list;
    va_start(list, format);
    int n = vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    ASSERT(n >= 0 && (size_t)n < sizeof(text));
    add(p, text, (size_t)n);
}

/* ---- good requests ---- */

static const char *const methods[] = {"GET",    "GET",   "GET",   "POST",    "POST", "HEAD", "PUT",
                                      "DELETE", "PATCH", "TRACE", "OPTIONS", "BREW", "PLAY", "M-SEARCH"};
static const char *const targets[] = {"/",
                                      "/hello",
                                      "/v1/jobs/0190-7:cancel",
                                      "/a%20b?q=1&r=%2F",
                                      "/very/long/path/of/many/segments?x",
                                      "//a",
                                      "/?",
                                      "/a;b=c,d@e!$&'()*+~._-",
                                      "/%zz",
                                      "http://example.org/x?y",
                                      "/a/../b"};
static const char *const fields[] = {
    "Accept: */*\r\n",
    "User-Agent: a b c\r\n",
    "X-Empty:\r\n",
    "X-Spaces: \t  in the middle \t \r\n",
    "x:y\r\n",
    "Content-Type: application/json\r\n",
    "Authorization: Bearer a.b.c\r\n",
    "X-Latin: \xe4\xf6\xfc\r\n",
    "Cookie: a=b; c=\"d\"\r\n",
    "X-Colons: a:b:c\r\n",
    "X-Like: Content-Length: 5\r\n",
    "Content-Length-Not: 5\r\n",
    "Transfer-Encodings: chunked\r\n",
    "!#$%&'*+-.^_`|~: token\r\n",
    "Expect: 100-continue\r\n",
    "Connection: close\r\n",
    "Connection: keep-alive\r\n",
    "connection: TE, Keep-Alive\r\n",
    "TE: trailers\r\n",
    "If-None-Match: \"x\", W/\"y\"\r\n",
    "Accept: text/plain\r\n",
    "Idempotency-Key: \"8e03978e\"\r\n",
};
static const char *const bodies[] = {
    "",
    "x",
    "{\"a\":1}",
    "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
    "0\r\n\r\n",
    "\r\n\r\n",
    "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
    "\r\nPOST /x HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
    "\xff\xfe\x01 bytes \n of \r any kind",
};
static const char *const extensions[] = {"", "", "", ";a", ";a=b", ";a=\"b c\"", ";a=b;c"};
static const char *const trailers[] = {"", "", "", "X-Sum: 1\r\n", "A:\r\nB: c\r\n"};

static void say_chunks(struct pipeline *p, const char *body)
{
    size_t left = strlen(body);
    while (left > 0) {
        size_t n = 1 + pipeline_random(p, left < 40 ? left : 40);
        if (one_in(p, 2))
            sayf(p, one_in(p, 2) ? "%zx" : "%zX", n);
        else
            sayf(p, "%0*zx", (int)(1 + pipeline_random(p, 16)), n);
        sayf(p, "%s\r\n", ANY_OF(p, extensions));
        add(p, body, n);
        say(p, "\r\n");
        body += n;
        left -= n;
    }
    sayf(p, "0%s\r\n%s\r\n", ANY_OF(p, extensions), ANY_OF(p, trailers));
}

static void say_fields(struct pipeline *p)
{
    bool said[COUNT(fields)] = {false};
    for (uint64_t n = pipeline_random(p, 5); n > 0; n--) {
        uint64_t i = pipeline_random(p, COUNT(fields));
        if (!said[i])
            say(p, fields[i]);
        said[i] = true;
    }
}

static void say_request(struct pipeline *p)
{
    static const char *const codings[] = {"chunked", "chunked", "Chunked", "\t chunked ", "CHUNKED"};
    const char *method = ANY_OF(p, methods), *body = ANY_OF(p, bodies);
    bool old = one_in(p, 12), bodied = one_in(p, 2), chunked = bodied && !old && one_in(p, 2);
    bool anybody = strcmp(method, "OPTIONS") == 0 && one_in(p, 2);
    if (one_in(p, 20))
        say(p, "\r\n");
    sayf(p, "%s %s HTTP/1.%d\r\n", method, anybody ? "*" : ANY_OF(p, targets), !old);
    say_fields(p);
    if (!old || one_in(p, 2))
        say(p, one_in(p, 3) ? "host:localhost:8080\r\n" : "Host: localhost\r\n");
    if (chunked)
        sayf(p, "Transfer-Encoding:%s\r\n", ANY_OF(p, codings));
    else if (bodied)
        sayf(p, "Content-Length: %zu\r\n", strlen(body));
    say_fields(p);
    say(p, "\r\n");
    if (chunked)
        say_chunks(p, body);
    else if (bodied)
        say(p, body);
    p->requests++;
}

/* ---- and others ---- */

static void cut_out(struct pipeline *p, size_t at, size_t size)
{
    memmove(p->bytes + at, p->bytes + at + size, p->size - at - size);
    p->size -= size;
}

static void put_in(struct pipeline *p, size_t at, const char *bytes, size_t size)
{
    if (size > PIPELINE_MAX - p->size)
        return;
    memmove(p->bytes + at + size, p->bytes + at, p->size - at);
    memcpy(p->bytes + at, bytes, size);
    p->size += size;
}

/* The end of a line at random, behind its CRLF; 0: there is none. */
static size_t some_line(struct pipeline *p)
{
    size_t at = pipeline_random(p, p->size);
    for (size_t i = at; i + 1 < p->size; i++)
        if (p->bytes[i] == '\r' && p->bytes[i + 1] == '\n')
            return i + 2;
    return 0;
}

static const char *const lines[] = {
    "Content-Length: 5\r\n",
    "Content-Length: 0\r\n",
    "content-length:5, 5\r\n",
    "Content-Length: +5\r\n",
    "Content-Length: 0x5\r\n",
    "Content-Length: 5 \r\n",
    "Content-Length: 05\r\n",
    "Content-Length: 5 5\r\n",
    "Content-Length:\r\n",
    "Content-Length: -1\r\n",
    "Content-Length: 18446744073709551621\r\n",
    "Content-Length : 5\r\n",
    " Content-Length: 5\r\n",
    "\tx\r\n",
    "Content_Length: 5\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: identity\r\n",
    "Transfer-Encoding: chunked, chunked\r\n",
    "Transfer-Encoding: gzip, chunked\r\n",
    "Transfer-Encoding: xchunked\r\n",
    ("Transfer-Encoding:\x0b"
     "chunked\r\n"),
    "Transfer-Encoding: ,chunked\r\n",
    "Transfer-Encoding\r\n",
    "Transfer-Encoding : chunked\r\n",
    "Host: b\r\n",
    "Host:\r\n",
    "Host: a/b\r\n",
    "Host: a@b\r\n",
    "CONNECT example.org:443 HTTP/1.1\r\nHost: a\r\n\r\n",
    "BREW / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n",
    "Transfer-Encoding: chunked\t\r\n",
    "GET / HTTP/1.1\r\nHost: a:b\r\n\r\n",
    "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
    ": empty\r\n",
    "no colon\r\n",
    "\r\n",
    "\n",
    "\r",
    "x: y\rContent-Length: 5\r\n",
    "x: y\nContent-Length: 5\r\n",
    "Expect: 200-ok\r\n",
    "Connection: close, keep-alive\r\n",
    "Connection: Upgrade\r\nUpgrade: h2c\r\n",
    "Upgrade: websocket\r\n",
    "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
    "0\r\n\r\n",
    "5\r\nabcde\r\n",
    "+5\r\n",
    "0x5\r\n",
    " 5\r\n",
    "5 \r\n",
    "5;\r\n",
    ";\r\n",
    "5;a\rb\r\n",
    "5;a\nb\r\n",
    "-1\r\n",
    "ffffffffffffffff\r\n",
    "00000000000000005\r\n",
    "10000000000000005\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
};
static const char marks[] = "\r\n \t:;,/0159afxAF+-\"\x7f\x80\xff\x0b\x0c\x01?#%@[]";

static void change(struct pipeline *p)
{
    size_t at = pipeline_random(p, p->size), line = some_line(p), other;
    char mark = marks[pipeline_random(p, sizeof(marks))]; /* with its NUL */
    const char *text = ANY_OF(p, lines);
    switch (pipeline_random(p, 10)) {
    case 0:
        p->bytes[at] = mark;
        break;
    case 1:
        cut_out(p, at, 1);
        break;
    case 2:
        put_in(p, at, &mark, 1);
        break;
    case 3:
    case 4:
    case 5:
        put_in(p, line, text, strlen(text));
        break;
    case 6: /* one half of a line's end */
        if (line)
            cut_out(p, line - 1 - pipeline_random(p, 2), 1);
        break;
    case 7: /* a line, or several, away */
        other = some_line(p);
        if (line < other)
            cut_out(p, line, other - line);
        break;
    case 8: /* or twice */
        other = some_line(p);
        if (line < other && other - line < 1024) {
            char copy[1024];
            memcpy(copy, p->bytes + line, other - line);
            put_in(p, line, copy, other - line);
        }
        break;
    default: /* in the middle of a line */
        put_in(p, at, text, strlen(text));
    }
    p->changes++;
}

void pipeline_make(struct pipeline *p, uint64_t seed)
{
    p->chance = seed;
    p->changes = p->requests = 0;
    p->size = 0;
    for (uint64_t n = 1 + pipeline_random(p, 4); n > 0; n--)
        say_request(p);
    if (one_in(p, 3))
        for (uint64_t n = 1 + pipeline_random(p, 4); n > 0 && p->size > 0; n--)
            change(p);
    if (one_in(p, 8))
        p->size = pipeline_random(p, p->size + 1); /* cut off */
}
