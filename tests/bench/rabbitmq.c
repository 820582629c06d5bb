/* RabbitMQ with a quorum queue, over AMQP 0-9-1: durable messages, a confirm for each; workers acknowledge what came together.
 *
 * A frame is a byte of type, two of channel, four of size, so many bytes and 0xCE; a method begins with its class and number.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tests/bench/bench.h"
#include "tests/bench/queue.h"

#define CONSUMERS 4u
#define PREFETCH  256u
#define FRAME_END 0xCE
#define FRAME_MAX 131072u

enum { FRAME_METHOD = 1, FRAME_HEADER, FRAME_BODY, FRAME_HEARTBEAT = 8 };
#define METHOD(class, number) ((uint32_t)(class) << 16 | (number))

enum method {
    CONNECTION_START = METHOD(10, 10),
    CONNECTION_START_OK = METHOD(10, 11),
    CONNECTION_TUNE = METHOD(10, 30),
    CONNECTION_TUNE_OK = METHOD(10, 31),
    CONNECTION_OPEN = METHOD(10, 40),
    CONNECTION_OPEN_OK = METHOD(10, 41),
    CHANNEL_OPEN = METHOD(20, 10),
    CHANNEL_OPEN_OK = METHOD(20, 11),
    QUEUE_DECLARE = METHOD(50, 10),
    QUEUE_DECLARE_OK = METHOD(50, 11),
    BASIC_QOS = METHOD(60, 10),
    BASIC_QOS_OK = METHOD(60, 11),
    BASIC_CONSUME = METHOD(60, 20),
    BASIC_CONSUME_OK = METHOD(60, 21),
    BASIC_PUBLISH = METHOD(60, 40),
    BASIC_DELIVER = METHOD(60, 60),
    BASIC_ACK = METHOD(60, 80),
    CONFIRM_SELECT = METHOD(85, 10),
    CONFIRM_SELECT_OK = METHOD(85, 11),
};

/* ---- its process ---- */

struct rabbit {
    struct daemon epmd;
    char environment[12][4200];
};

/* The program of the package changes the user and knows one folder; the one behind it doesn't. */
static bool find_program(char *ret, size_t size)
{
    char wrapper[4096], real[4096];
    if (!daemon_finds("rabbitmq-server", wrapper, sizeof wrapper) || !realpath(wrapper, real))
        return false;
    int n = snprintf(ret, size, "%s/rabbitmq-server", dirname(real));
    return n > 0 && (size_t)n < size && access(ret, X_OK) == 0;
}

/* Its own port mapper first: else the first Erlang of this machine would leave one behind. */
static void begin_epmd(struct rabbit *r, const char *folder)
{
    char port[8];
    r->epmd = (struct daemon){.folder = folder, .port = daemon_free_port()};
    snprintf(port, sizeof port, "%u", r->epmd.port);
    const char *const argv[] = {"epmd", "-port", port, "-address", "127.0.0.1", NULL};
    daemon_begin(&r->epmd, argv, NULL, false);
    daemon_await(&r->epmd);
}

static void write_files(const char *folder)
{
    static const char *const files[][2] = {{"plugins", "[].\n"}, {"rabbit.conf", ""}, {"environment", ""}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[4200];
        snprintf(path, sizeof path, "%s/%s", folder, files[i][0]);
        FILE *f = fopen(path, "we");
        if (!f || fputs(files[i][1], f) < 0 || fclose(f))
            bench_fail("%s can't be written", path);
    }
}

static bool begin(struct queue *q, const char *folder)
{
    char program[4200];
    const char *env[13] = {NULL};
    uint32_t count = 0;
    if (!find_program(program, sizeof program))
        return false;
    struct rabbit *r = calloc(1, sizeof *r);
    if (!r)
        bench_fail("no memory");
    q->own = r;
    q->daemon = (struct daemon){.folder = folder, .port = daemon_free_port()};
    write_files(folder);
    begin_epmd(r, folder);
#define ADD(...)                                                                    \
    do {                                                                            \
        snprintf(r->environment[count], sizeof r->environment[count], __VA_ARGS__); \
        env[count] = r->environment[count];                                         \
        count++;                                                                    \
    } while (0)
    ADD("HOME=%s", folder);
    ADD("ERL_EPMD_PORT=%u", r->epmd.port);
    ADD("RABBITMQ_NODENAME=bench@localhost");
    ADD("RABBITMQ_MNESIA_BASE=%s/data", folder);
    ADD("RABBITMQ_LOGS=-");
    ADD("RABBITMQ_NODE_IP_ADDRESS=127.0.0.1");
    ADD("RABBITMQ_NODE_PORT=%u", q->daemon.port);
    ADD("RABBITMQ_DIST_PORT=%u", daemon_free_port());
    ADD("RABBITMQ_ENABLED_PLUGINS_FILE=%s/plugins", folder);
    ADD("RABBITMQ_CONFIG_FILE=%s/rabbit", folder);
    ADD("RABBITMQ_CONF_ENV_FILE=%s/environment", folder);
    ADD("NOTIFY_SOCKET=%s/nobody",
        folder); /* as under a service manager: it stays the process that we started */
#undef ADD
    daemon_begin(&q->daemon, (const char *const[]){program, NULL}, env, false);
    return true;
}

static void await(struct queue *q)
{
    daemon_await(&q->daemon);
}

static void end(struct queue *q)
{
    struct rabbit *r = q->own;
    queue_close(q);
    daemon_kill(&q->daemon);
    daemon_kill(&r->epmd);
    free(r);
}

/* ---- frames ---- */

struct writing {
    char *bytes;
    size_t at, frame;
};

static void add(struct writing *w, const void *bytes, size_t size)
{
    memcpy(w->bytes + w->at, bytes, size);
    w->at += size;
}

static void add_8(struct writing *w, uint8_t n)
{
    add(w, &n, 1);
}

static void add_16(struct writing *w, uint16_t n)
{
    n = htobe16(n);
    add(w, &n, sizeof n);
}

static void add_32(struct writing *w, uint32_t n)
{
    n = htobe32(n);
    add(w, &n, sizeof n);
}

static void add_64(struct writing *w, uint64_t n)
{
    n = htobe64(n);
    add(w, &n, sizeof n);
}

static void add_short(struct writing *w, const char *text)
{
    add_8(w, (uint8_t)strlen(text));
    add(w, text, strlen(text));
}

static void add_long(struct writing *w, const char *text, size_t size)
{
    add_32(w, (uint32_t)size);
    add(w, text, size);
}

static void frame_begin(struct writing *w, uint8_t type, uint16_t channel)
{
    add_8(w, type);
    add_16(w, channel);
    w->frame = w->at;
    add_32(w, 0);
}

static void frame_end(struct writing *w)
{
    uint32_t size = htobe32((uint32_t)(w->at - w->frame - 4));
    memcpy(w->bytes + w->frame, &size, sizeof size);
    add_8(w, FRAME_END);
}

static void method_begin(struct writing *w, uint16_t channel, enum method method)
{
    frame_begin(w, FRAME_METHOD, channel);
    add_32(w, method);
}

struct frame {
    uint8_t type;
    uint32_t method; /* of a method */
    const char *payload;
    size_t size; /* of the frame, with its end */
};

static uint32_t get_32(const char *bytes)
{
    uint32_t n;
    memcpy(&n, bytes, sizeof n);
    return be32toh(n);
}

/* False: it isn't whole. */
static bool read_frame(const char *bytes, size_t size, struct frame *ret)
{
    if (size < 8 || size < get_32(bytes + 3) + 8u)
        return false;
    *ret = (struct frame){.type = (uint8_t)bytes[0], .payload = bytes + 7, .size = get_32(bytes + 3) + 8u};
    if ((uint8_t)bytes[ret->size - 1] != FRAME_END)
        bench_fail("rabbitmq: no frame");
    if (ret->type == FRAME_METHOD)
        ret->method = get_32(ret->payload);
    return true;
}

static _Noreturn void unexpected(const struct frame *f)
{
    bench_fail("rabbitmq: frame %u, method %u.%u: %.*s", f->type, f->method >> 16, f->method & 0xffff,
               (int)(f->size > 16 ? f->size - 16 : 0), f->payload + 6);
}

/* ---- how a connection begins ---- */

static void converse(int fd, const char *bytes, size_t said, enum method answer)
{
    char room[8192];
    size_t size = 0;
    struct frame f;
    if (send(fd, bytes, said, MSG_NOSIGNAL) != (ssize_t)said)
        bench_fail("rabbitmq takes nothing");
    while (!read_frame(room, size, &f)) {
        ssize_t n = recv(fd, room + size, sizeof room - size, 0);
        if (n <= 0)
            bench_fail("rabbitmq says nothing");
        size += (size_t)n;
    }
    if (f.method != answer || f.size != size)
        unexpected(&f);
}

static void request(int fd, struct writing *w, enum method answer)
{
    frame_end(w);
    converse(fd, w->bytes, w->at, answer);
    w->at = 0;
}

static void open_connection(int fd, struct writing *w)
{
    static const char hello[] = {'A', 'M', 'Q', 'P', 0, 0, 9, 1}, guest[] = "\0guest\0guest";
    converse(fd, hello, sizeof hello, CONNECTION_START);
    method_begin(w, 0, CONNECTION_START_OK);
    add_32(w, 0); /* properties of ours: none */
    add_short(w, "PLAIN");
    add_long(w, guest, sizeof guest - 1);
    add_short(w, "en_US");
    request(fd, w, CONNECTION_TUNE);
    method_begin(w, 0, CONNECTION_TUNE_OK);
    add_16(w, 16);
    add_32(w, FRAME_MAX);
    add_16(w, 0); /* no heartbeats */
    frame_end(w);
    method_begin(w, 0, CONNECTION_OPEN);
    add_short(w, "/");
    add_short(w, "");
    add_8(w, 0);
    request(fd, w, CONNECTION_OPEN_OK);
    method_begin(w, 1, CHANNEL_OPEN);
    add_short(w, "");
    request(fd, w, CHANNEL_OPEN_OK);
}

static void declare(int fd, struct writing *w, const char *name)
{
    method_begin(w, 1, QUEUE_DECLARE);
    add_16(w, 0);
    add_short(w, name);
    add_8(w, 1u << 1); /* durable */
    size_t table = w->at;
    add_32(w, 0);
    add_short(w, "x-queue-type");
    add_8(w, 'S');
    add_long(w, "quorum", 6);
    uint32_t size = htobe32((uint32_t)(w->at - table - 4));
    memcpy(w->bytes + table, &size, sizeof size);
    request(fd, w, QUEUE_DECLARE_OK);
}

/* ---- submitters ---- */

struct line {
    const char *name; /* the queue's */
    struct queue_counts counts;
    uint64_t delivered[CONSUMERS], acknowledged[CONSUMERS];
};

static void greet_submitter(void *arg, uint32_t who, int fd)
{
    const struct line *line = arg;
    char room[1024];
    struct writing w = {.bytes = room};
    open_connection(fd, &w);
    if (who == 0)
        declare(fd, &w, line->name);
    method_begin(&w, 1, CONFIRM_SELECT);
    add_8(&w, 0);
    request(fd, &w, CONFIRM_SELECT_OK);
}

static size_t publish(void *arg, uint32_t who, char *room)
{
    struct line *line = arg;
    struct writing w = {.bytes = room};
    (void)who;
    if (!queue_next(&line->counts))
        return 0;
    method_begin(&w, 1, BASIC_PUBLISH);
    add_16(&w, 0);
    add_short(&w, "");
    add_short(&w, line->name);
    add_8(&w, 0);
    frame_end(&w);
    frame_begin(&w, FRAME_HEADER, 1);
    add_16(&w, 60);
    add_16(&w, 0);
    add_64(&w, QUEUE_BODY);
    add_16(&w, 1u << 12); /* one property: the mode of delivery */
    add_8(&w, 2);         /* which is persistent */
    frame_end(&w);
    frame_begin(&w, FRAME_BODY, 1);
    add(&w, queue_body(line->counts.submitted), QUEUE_BODY);
    frame_end(&w);
    return w.at;
}

static size_t hear_confirm(void *arg, uint32_t who, const char *bytes, size_t size, uint32_t *ret_done)
{
    struct frame f;
    (void)arg, (void)who;
    if (!read_frame(bytes, size, &f))
        return 0;
    if (f.type != FRAME_METHOD || f.method != BASIC_ACK)
        unexpected(&f);
    *ret_done = 1;
    return f.size;
}

static const struct crowd_talk submit_talk = {"rabbitmq", greet_submitter, publish, hear_confirm};

/* ---- workers ---- */

static void greet_worker(void *arg, uint32_t who, int fd)
{
    const struct line *line = arg;
    char room[1024];
    struct writing w = {.bytes = room};
    (void)who;
    open_connection(fd, &w);
    method_begin(&w, 1, BASIC_QOS);
    add_32(&w, 0);
    add_16(&w, PREFETCH);
    add_8(&w, 0);
    request(fd, &w, BASIC_QOS_OK);
    method_begin(&w, 1, BASIC_CONSUME);
    add_16(&w, 0);
    add_short(&w, line->name);
    add_short(&w, "");
    add_8(&w, 0);
    add_32(&w, 0);
    request(fd, &w, BASIC_CONSUME_OK);
}

static size_t acknowledge(void *arg, uint32_t who, char *room)
{
    struct line *line = arg;
    struct writing w = {.bytes = room};
    if (line->delivered[who] == line->acknowledged[who])
        return 0;
    method_begin(&w, 1, BASIC_ACK);
    add_64(&w, line->delivered[who]);
    add_8(&w, 1); /* and all before it */
    frame_end(&w);
    line->counts.finished += line->delivered[who] - line->acknowledged[who];
    line->acknowledged[who] = line->delivered[who];
    return w.at;
}

/* A delivery is a method, a header and a body, in this order; its body is the end of it. */
static size_t hear_delivery(void *arg, uint32_t who, const char *bytes, size_t size, uint32_t *ret_done)
{
    struct line *line = arg;
    struct frame f;
    if (!read_frame(bytes, size, &f))
        return 0;
    if (f.type == FRAME_METHOD && f.method != BASIC_DELIVER)
        unexpected(&f);
    if (f.type == FRAME_BODY) {
        line->delivered[who]++;
        *ret_done = 1;
    }
    return f.size;
}

static const struct crowd_talk worker_talk = {"rabbitmq's worker", greet_worker, acknowledge, hear_delivery};

/* ---- as a queue ---- */

static struct crowd *open_crowd(struct queue *q, uint32_t clients, bool works,
                                struct queue_counts **ret_counts)
{
    static struct line lines[2] = {{.name = "submits"}, {.name = "through"}};
    const struct crowd_part parts[] = {
        {.port = q->daemon.port, .connections = clients, .talk = &submit_talk, .arg = &lines[works]},
        {.port = q->daemon.port,
         .connections = CONSUMERS,
         .talk = &worker_talk,
         .arg = &lines[1],
         .patient = true}};
    *ret_counts = &lines[works].counts;
    return crowd_open(parts, works ? 2 : 1);
}

const struct queue_class queue_rabbitmq = {.name = "rabbitmq",
                                           .begin = begin,
                                           .await = await,
                                           .submit = queue_submit,
                                           .through = queue_through,
                                           .end = end,
                                           .open = open_crowd};
