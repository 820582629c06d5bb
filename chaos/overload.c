/* overload: ten times as many jobs as the server can do, for a while, and what becomes of those it took (G20).
 *
 *     overload PROGRAM [--seconds N] [--dir D]
 *
 * The real program with WORKERS workers, each of which takes WORK_MS for a job, and a queue of QUEUE jobs. First the peak is measured:
 * twice as many are submitted as can be done, and how many are done in a second is the peak. Then ten times the peak, for N seconds;
 * every sixteenth request comes from somebody without a key. What must be so:
 *
 *     offered      ten times the peak, or nothing was shown
 *     explicit     whoever wasn't served has 429 or 503, and Retry-After; nobody is left without an answer
 *     kept         every job that was answered with 202 is SUCCEEDED and has its report, and no other job is there
 *     goodput      90 % of the peak are done in each second, on average
 *     flat         memory of the process in the second half is what it was in the first, within MEMORY_PERCENT and MEMORY_KB
 *     recovery     a job that is submitted within a second of the end takes no more than twice as long as before all this
 *
 * Time is chaos/stillness.h's: for as long as the machine itself stands still, nobody can do anything.
 *
 * Before that its controls: of figures that are right with one of them spoiled, that one must be told of; and a server without limits
 * must fail: it takes everything, and who comes afterwards waits for all of it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chaos/stillness.h"
#include "chaos/volley.h"

enum {
    WORKERS = 8,
    WORK_MS = 100,
    QUEUE =
        32, /* 0.4 s of work: whoever comes when it is full and all is over waits less than the second that he may */
    ACTIVE = 1000,
    TIMES = 10,
    STRANGERS = 16, /* one request of so many is a stranger's */
    CALM_JOBS = 10,
    PEAK_SECONDS = 4,
    CONTROL_SECONDS = 2,
    GOODPUT_PERCENT = 90,
    MEMORY_PERCENT = 5,
    MEMORY_KB =
        4096, /* its pools grow with the busiest moment; a leak of 170 bytes a request is more, in a minute */
    RECOVERY_US = 1000000,
    WAIT_MS = 60000,
    SAMPLES_MAX = 3600,
    ANSWER_MAX = 1 << 20,
};

struct figures {
    double peak, goodput; /* jobs done a second */
    double times;         /* offered, of the peak */
    uint64_t offered, accepted, refused_429, refused_503;
    uint64_t silent;              /* refused without Retry-After, or not answered, or answered otherwise */
    uint64_t lost;                /* answered with 202, and not done */
    uint64_t uninvited;           /* done, and not answered with 202 */
    uint64_t first_kb, second_kb; /* the most memory in the two halves */
    uint64_t normal_us, recovery_us;
};

static struct campaign {
    const char *program;
    char dir[256], store[300];
    pid_t server;
    uint16_t port, operator;
    char key[128], token[256], submit[512], stranger[256];
    char (*ids)[37]; /* of what was answered with 202 */
    uint64_t ids_count, ids_max;
    uint64_t memory_kb[SAMPLES_MAX];
    uint32_t samples;
    struct figures figures;
    char answer[ANSWER_MAX];
} c;

static _Noreturn void give_up(const char *what)
{
    printf("overload: %s: %s\n0 passed, 1 failed\n", what, strerror(errno));
    if (c.server > 0)
        kill(c.server, SIGKILL);
    exit(1);
}

static void rest_ms(int ms)
{
    (void)poll(NULL, 0, ms);
}

/* ---- what must be so ---- */

static uint32_t wrong(bool is, const char *what, double value, double goal, bool aloud)
{
    if (is && aloud)
        printf("violation: %s: %.2f, and the bound is %.2f\n", what, value, goal);
    return is;
}

static uint32_t violations(const struct figures *f, bool aloud)
{
    double least = f->peak * GOODPUT_PERCENT / 100,
           most_kb = (double)f->first_kb * (100 + MEMORY_PERCENT) / 100 + MEMORY_KB;
    uint64_t refused = f->refused_429 + f->refused_503;
    return wrong(f->times < TIMES * 0.95, "times of the peak offered", f->times, TIMES * 0.95, aloud) +
           wrong(refused == 0, "refused", (double)refused, 1, aloud) +
           wrong(f->silent > 0, "not answered, or refused without Retry-After", (double)f->silent, 0, aloud) +
           wrong(f->lost > 0, "acknowledged jobs lost", (double)f->lost, 0, aloud) +
           wrong(f->uninvited > 0, "jobs that nobody was promised", (double)f->uninvited, 0, aloud) +
           wrong(f->goodput < least, "jobs a second done", f->goodput, least, aloud) +
           wrong((double)f->second_kb > most_kb, "KiB of memory", (double)f->second_kb, most_kb, aloud) +
           wrong(f->recovery_us >= RECOVERY_US, "us until it is as before", (double)f->recovery_us,
                 RECOVERY_US, aloud);
}

/* ---- the server ---- */

static uint16_t port_in(const char *line, const char *name)
{
    const char *at = strstr(line, name);
    return at ? (uint16_t)atoi(at + strlen(name)) : 0;
}

/* What it writes goes into a file, so that nobody has to read it while there is something else to do. */
static void await_started(const char *log)
{
    static char text[1 << 16];
    for (int waited = 0; waited < WAIT_MS; waited += 5) {
        FILE *file = fopen(log, "r");
        size_t used = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
        if (file)
            fclose(file);
        text[used] = 0;
        char *at = strstr(text, "\"msg\":\"started\"");
        if (at && strchr(at, '\n')) {
            c.port = port_in(at, "\"client\":\"127.0.0.1:");
            c.operator= port_in(at, "\"operator\":\"127.0.0.1:");
            return;
        }
        rest_ms(5);
    }
    give_up("the server doesn't start");
}

static void read_token(void)
{
    char path[340];
    snprintf(path, sizeof(path), "%s/operator.token", c.store);
    FILE *file = fopen(path, "r");
    if (!file || !fgets(c.token, sizeof(c.token), file))
        give_up("no operator's token");
    fclose(file);
    c.token[strcspn(c.token, "\r\n")] = 0;
}

static void serve(uint64_t queue)
{
    char log[300], workers[16], speed[16], queued[24], active[24];
    snprintf(workers, sizeof(workers), "%d", WORKERS);
    snprintf(speed, sizeof(speed), "%d", 1000 / WORK_MS);
    snprintf(queued, sizeof(queued), "%" PRIu64, queue);
    snprintf(active, sizeof(active), "%" PRIu64, queue + ACTIVE);
    snprintf(log, sizeof(log), "%s/log", c.dir);
    int fd = open(log, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || (c.server = fork()) < 0)
        give_up("no process");
    if (c.server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(fd, 2);
        execl(c.program, c.program, "serve", "--store-dir", c.store, "--http-listen", "127.0.0.1:0",
              "--operator-listen", "127.0.0.1:0", "--limits-requests-per-minute", "1000000",
              "--limits-max-queue-size", queued, "--limits-max-active-jobs", active, "--workers-count",
              workers, "--jobs-simulation-speed", speed, "--http-access-log=false", "--log-level", "info",
              "--store-op-timeout", "1m", "--http-request-timeout", "1m", (char *)NULL);
        _exit(127);
    }
    close(fd);
    await_started(log);
    read_token();
}

static void end_server(int sig)
{
    kill(c.server, sig);
    if (waitpid(c.server, NULL, 0) != c.server)
        give_up("the server can't be waited for");
    c.server = 0;
}

/* Memory that is the process's own: what it maps of the store is the disk's. */
static uint64_t memory_kb(void)
{
    char path[64], line[256];
    uint64_t kb = 0;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)c.server);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, "RssAnon:", 8) == 0)
            kb = strtoull(line + 8, NULL, 10);
    if (file)
        fclose(file);
    return kb;
}

/* ---- one request after the other ---- */

/* The status, and the body in c.answer; 0: there was no answer. The connection is closed behind it. */
static int exchange(uint16_t port, const char *credential, const char *method, const char *path,
                    const char *body)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval limit = {.tv_sec = WAIT_MS / 1000};
    char request[1024];
    size_t used = 0;
    ssize_t n = 0;
    int size = snprintf(
        request, sizeof(request),
        "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n%s%s%s%sContent-Length: %zu\r\n\r\n%s",
        method, path, *credential ? "Authorization: Bearer " : "", credential, *credential ? "\r\n" : "",
        *body ? "Content-Type: application/json\r\n" : "", strlen(body), body);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        give_up("no socket");
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 &&
        send(fd, request, (size_t)size, MSG_NOSIGNAL) == size)
        while ((n = recv(fd, c.answer + used, sizeof(c.answer) - 1 - used, 0)) > 0 ||
               (n < 0 && errno == EINTR)) /* who was stopped and continued: it isn't resumed by the system */
            used += n > 0 ? (size_t)n : 0;
    close(fd);
    c.answer[used] = 0;
    return used > strlen("HTTP/1.1 ") ? atoi(c.answer + strlen("HTTP/1.1 ")) : 0;
}

static bool field(const char *from, const char *name, char *value, size_t size)
{
    char wanted[64];
    snprintf(wanted, sizeof(wanted), "\"%s\":\"", name);
    const char *at = strstr(from, wanted);
    if (!at)
        return false;
    at += strlen(wanted);
    snprintf(value, size, "%.*s", (int)strcspn(at, "\""), at);
    return true;
}

#define JOB "{\"type\":\"EXECUTE\",\"work_kind\":\"SUCCESS_FAST\"}"

static void enrol(void)
{
    char path[128], client[64];
    if (exchange(c.port, "", "POST", "/v1/clients", "") != 201 ||
        !field(c.answer, "client_id", client, sizeof(client)))
        give_up("no client");
    snprintf(path, sizeof(path), "/v1/clients/%s/keys", client);
    if (exchange(c.port, "", "POST", path, "") != 201 || !field(c.answer, "api_key", c.key, sizeof(c.key)))
        give_up("no key");
    snprintf(c.submit, sizeof(c.submit),
             "POST /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Type: "
             "application/json\r\nContent-Length: %zu\r\n\r\n%s",
             c.key, strlen(JOB), JOB);
    snprintf(c.stranger, sizeof(c.stranger),
             "POST /v1/clients HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n");
}

static uint64_t done(void)
{
    if (exchange(c.operator, c.token, "GET", "/metrics", "") != 200)
        give_up("no metrics");
    const char *at = strstr(c.answer, "\njobs_succeeded_total ");
    return at ? strtoull(at + strlen("\njobs_succeeded_total "), NULL, 10) : 0;
}

static void keep(const char *id)
{
    if (c.ids_count == c.ids_max) {
        c.ids_max = c.ids_max ? 2 * c.ids_max : 4096;
        c.ids = realloc(c.ids, c.ids_max * sizeof(*c.ids));
        if (!c.ids)
            give_up("no memory");
    }
    snprintf(c.ids[c.ids_count++], sizeof(*c.ids), "%s", id);
}

/* Whether it has come to its end, and well. */
static bool succeeded(const char *id)
{
    char path[64], state[16] = "";
    snprintf(path, sizeof(path), "/v1/jobs/%s", id);
    return exchange(c.port, c.key, "GET", path, "") == 200 &&
           field(c.answer, "state", state, sizeof(state)) && strcmp(state, "SUCCEEDED") == 0;
}

/* How long one job takes from its submit to its end; more than `patience_us`: longer, or it was refused. */
static uint64_t one_job_us(uint64_t patience_us)
{
    uint64_t began_us = stillness_now_us();
    char id[37];
    if (exchange(c.port, c.key, "POST", "/v1/jobs", JOB) != 202 ||
        !field(c.answer, "job_id", id, sizeof(id))) {
        rest_ms(5);
        return UINT64_MAX;
    }
    keep(id);
    c.figures.accepted++;
    while (!succeeded(id)) {
        if (stillness_since(began_us) > patience_us)
            return UINT64_MAX;
        rest_ms(1);
    }
    return stillness_since(began_us);
}

/* ---- many ---- */

static const char *request(void *context, uint64_t number)
{
    (void)context;
    return number % STRANGERS == STRANGERS - 1 ? c.stranger : c.submit;
}

static bool says_when(const char *head)
{
    const char *at = strcasestr(head, "\r\nRetry-After:");
    return at && strtoul(at + strlen("\r\nRetry-After:"), NULL, 10) >= 1;
}

static void judge(void *context, const struct volley_answer *answer)
{
    struct figures *f = context;
    char id[37];
    bool stranger = answer->number % STRANGERS == STRANGERS - 1;
    if (answer->status == 202 && field(answer->body, "job_id", id, sizeof(id))) {
        keep(id);
        f->accepted++;
    } else if ((answer->status == 429 || answer->status == 503) && says_when(answer->head)) {
        *(answer->status == 429 ? &f->refused_429 : &f->refused_503) += 1;
    } else if (!(stranger && answer->status == 201)) {
        if (f->silent++ < 3)
            printf("an answer with status %d: %.200s\n", answer->status, answer->head);
    }
}

static void sample(void *context)
{
    (void)context;
    if (c.samples < SAMPLES_MAX)
        c.memory_kb[c.samples++] = memory_kb();
}

/* Jobs that were done in a second meanwhile. */
static double fire(uint64_t rate, uint64_t seconds, uint64_t *ret_fired)
{
    struct volley v = {.port = c.port,
                       .rate = rate,
                       .duration_us = seconds * 1000000,
                       .request = request,
                       .answer = judge,
                       .second = sample,
                       .context = &c.figures};
    uint64_t before = done(), began_us = stillness_now_us();
    *ret_fired = volley_fire(&v);
    if (*ret_fired == UINT64_MAX)
        give_up("no memory");
    uint64_t took_us = stillness_since(began_us);
    return (double)(done() - before) * 1e6 / (double)took_us;
}

/* ---- the three acts ---- */

static void be_calm(struct figures *f)
{
    for (uint32_t i = 0; i < CALM_JOBS; i++) {
        uint64_t us = one_job_us(UINT64_C(1000) * WAIT_MS);
        f->normal_us = us > f->normal_us ? us : f->normal_us;
    }
}

static uint64_t most(uint32_t from, uint32_t to)
{
    uint64_t kb = 0;
    for (uint32_t i = from; i < to; i++)
        kb = c.memory_kb[i] > kb ? c.memory_kb[i] : kb;
    return kb;
}

/* From its end until a job is submitted that takes no longer than it should. */
static uint64_t recover(const struct figures *f)
{
    uint64_t began_us = stillness_now_us(), since_us = 0;
    for (; since_us < 2 * RECOVERY_US; since_us = stillness_since(began_us))
        if (one_job_us(2 * RECOVERY_US) <= 2 * f->normal_us)
            break;
    return since_us;
}

/* The queue is full from the peak on. */
static void overload(uint64_t seconds)
{
    struct figures *f = &c.figures;
    uint64_t fired = 0, nominal = WORKERS * 1000 / WORK_MS;
    be_calm(f);
    (void)fire(2 * nominal, 1, &fired);
    f->peak = fire(2 * nominal, PEAK_SECONDS, &fired);
    f->peak = f->peak < (double)nominal
                  ? f->peak
                  : (double)nominal; /* more is what was begun before, or an error of time */
    uint64_t rate = (uint64_t)(f->peak * TIMES) + 1;
    rate += rate / (STRANGERS - 1) + rate / 50 +
            1; /* strangers' come on top, and what the last moment cuts off */
    c.samples = 0;
    uint64_t began_us = stillness_now_us();
    f->goodput = fire(rate, seconds, &f->offered);
    f->times =
        (double)f->offered * (STRANGERS - 1) / STRANGERS * 1e6 / (double)stillness_since(began_us) / f->peak;
    f->first_kb = most(0, c.samples / 2);
    f->second_kb = most(c.samples / 2, c.samples);
    f->recovery_us = recover(f);
}

static void account(struct figures *f)
{
    char path[64];
    for (uint64_t i = 0; i < c.ids_count; i++) {
        for (uint32_t tries = 0; tries < 1000 && !succeeded(c.ids[i]) && f->lost < 10; tries++)
            rest_ms(10); /* the last ones are still at work */
        snprintf(path, sizeof(path), "/v1/jobs/%s/report", c.ids[i]);
        if (!succeeded(c.ids[i]) || exchange(c.port, c.key, "GET", path, "") != 200) {
            f->lost++;
            printf("lost: job %s\n", c.ids[i]);
        }
    }
    uint64_t all = done();
    f->uninvited = all > c.ids_count ? all - c.ids_count : 0;
}

/* ---- controls ---- */

static bool each_is_told_of(void)
{
    const struct figures good = {.peak = 80,
                                 .goodput = 72,
                                 .times = 10,
                                 .refused_503 = 1,
                                 .first_kb = 10000,
                                 .second_kb = 11000,
                                 .recovery_us = RECOVERY_US - 1};
    struct figures bad[8];
    bool found = violations(&good, false) == 0;
    for (uint32_t i = 0; i < 8; i++)
        bad[i] = good;
    bad[0].times = 9;
    bad[1].refused_503 = 0;
    bad[2].silent = 1;
    bad[3].lost = 1;
    bad[4].uninvited = 1;
    bad[5].goodput = 71;
    bad[6].second_kb = 15000;
    bad[7].recovery_us = RECOVERY_US;
    for (uint32_t i = 0; i < 8; i++)
        found = found && violations(&bad[i], false) == 1;
    return found;
}

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *ftw)
{
    (void)s, (void)kind, (void)ftw;
    return remove(path);
}

static void begin_dir(const char *parent)
{
    snprintf(c.dir, sizeof(c.dir), "%s/overload.XXXXXX", parent);
    if (!mkdtemp(c.dir))
        give_up(c.dir);
    snprintf(c.store, sizeof(c.store), "%s/store", c.dir);
    c.figures = (struct figures){.peak = 0};
    c.ids_count = 0;
}

static void end_dir(void)
{
    nftw(c.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A server that takes everything: whoever comes afterwards waits, and nobody has told him when to come back. Its strangers are still
 * refused, as that limit stays. */
static bool without_limits_it_fails(const char *parent)
{
    begin_dir(parent);
    serve(1000000);
    enrol();
    overload(CONTROL_SECONDS);
    end_server(SIGKILL);
    bool found = c.figures.recovery_us >= RECOVERY_US && c.figures.refused_503 == 0 &&
                 violations(&c.figures, false) > 0;
    end_dir();
    return found;
}

/* An id that nobody was given is one that is missed. */
static bool a_lost_job_is_missed(const char *parent)
{
    begin_dir(parent);
    serve(QUEUE);
    enrol();
    keep("00000000-0000-7000-8000-000000000000");
    c.figures.lost = 9; /* it isn't waited for */
    account(&c.figures);
    end_server(SIGKILL);
    bool found = c.figures.lost == 10;
    end_dir();
    return found;
}

static uint32_t check_store(void)
{
    char command[700];
    snprintf(command, sizeof(command), "'%s' check --store-dir '%s' >'%s/check' 2>&1", c.program, c.store,
             c.dir);
    if (system(command) == 0)
        return 0;
    printf("violation: coppice check finds something: %s/check\n", c.dir);
    return 1;
}

static void report(const struct figures *f, uint64_t seconds)
{
    printf("peak                %10.1f jobs/s\n", f->peak);
    printf("offered             %10.1f times of it for %" PRIu64 " s: %" PRIu64 " requests\n", f->times,
           seconds, f->offered);
    printf("goodput             %10.1f jobs/s, %.1f %% of the peak\n", f->goodput,
           100 * f->goodput / f->peak);
    printf("acknowledged        %10" PRIu64 " jobs, of which lost: %" PRIu64 ", and beyond them: %" PRIu64
           "\n",
           f->accepted, f->lost, f->uninvited);
    printf("refused             %10" PRIu64 " with 503, %" PRIu64 " with 429; silently: %" PRIu64 "\n",
           f->refused_503, f->refused_429, f->silent);
    printf("memory              %10" PRIu64 " KiB at most in the first half, %" PRIu64 " in the second\n",
           f->first_kb, f->second_kb);
    printf("one job before      %10.1f ms\n", (double)f->normal_us / 1000);
    printf("as before after     %10.1f ms\n", (double)f->recovery_us / 1000);
}

int main(int argc, char **argv)
{
    const char *dir = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    uint64_t seconds = 60;
    c.program = argc > 1 ? argv[1] : "";
    for (int i = 2; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seconds") == 0)
            seconds = strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--dir") == 0)
            dir = argv[i + 1];
        else
            return fprintf(stderr, "overload: there is no option %s\n", argv[i]), 64;
    }
    if (!*c.program || seconds < 4 || seconds > SAMPLES_MAX)
        return fprintf(stderr, "usage: overload PROGRAM [--seconds 4..%d] [--dir D]\n", SAMPLES_MAX), 64;
    setvbuf(stdout, NULL, _IOLBF, 0);
    stillness_begin();
    bool told = each_is_told_of(), missed = a_lost_job_is_missed(dir), fails = without_limits_it_fails(dir);
    printf("control: each spoiled figure is told of: %s\n", told ? "yes" : "NO");
    printf("control: a lost job is missed: %s\n", missed ? "yes" : "NO");
    printf("control: a server without limits fails: %s\n", fails ? "yes" : "NO");
    begin_dir(dir);
    serve(QUEUE);
    enrol();
    overload(seconds);
    account(&c.figures);
    end_server(SIGTERM);
    report(&c.figures, seconds);
    uint32_t bad = violations(&c.figures, true) + check_store() + !told + !missed + !fails;
    if (bad == 0)
        end_dir();
    free(c.ids);
    printf("%u passed, %u failed\n", bad ? 0u : 1u, bad);
    return bad ? 1 : 0;
}
