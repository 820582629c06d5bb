#define _GNU_SOURCE
#include "config/chaos_run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/chaos_client.h"
#include "config/chaos_fault.h"
#include "config/chaos_load.h"
#include "config/chaos_tree.h"
#include "http/living.h"
#include "runtime/env.h"

enum { LINE_MAX_BYTES = 1024, LOOK_MS = 50, WARM_REQUESTS = 4, HELD_CONNECTIONS = 64, NOBODY_SHOWN = 3 };

struct run {
    const struct chaos_order *order;
    const struct chaos_script *script;
    struct chaos_report *report;
    struct chaos_load *load;
    char dir[256];
    pid_t slow, receivers[RECEIVER_COUNT];
    uint16_t ports[RECEIVER_COUNT];
    uint64_t over;              /* when the fault was; 0: not yet */
    int held[HELD_CONNECTIONS]; /* of a control */
    uint32_t held_count;
};

static struct chaos_tree before, after;

static uint64_t now(void)
{
    return env_real()->now(env_real());
}

static void pause_ms(uint64_t ms)
{
    env_thread_sleep(now() + ms * NS_PER_MS);
}

/* ---- what the script needs ---- */

static bool file_write(const struct run *x, const char *name, const char *bytes, size_t size, char *why,
                       size_t why_size)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", x->dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool good = fd >= 0 && write(fd, bytes, size) == (ssize_t)size;
    if (!good)
        snprintf(why, why_size, "'%s' can't be written: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return good;
}

/* Options for curl: where, and with what in the hand. */
static bool door_write(const struct run *x, const char *name, const struct client *c, char *why,
                       size_t why_size)
{
    char text[1024], socket[256] = "";
    if (c->address.local_file)
        snprintf(socket, sizeof(socket), "unix-socket = \"%.200s\"\n", c->address.local.sun_path);
    int size =
        snprintf(text, sizeof(text), "%s%s%s%s", socket,
                 c->token[0] ? "header = \"Authorization: Bearer " : "", c->token, c->token[0] ? "\"\n" : "");
    return file_write(x, name, text, (size_t)size, why, why_size);
}

static bool prepare(struct run *x, char *why, size_t why_size)
{
    char name[80];
    size_t size;
    const char *tmp = getenv("TMPDIR"), *common = chaos_script_common(&size);
    snprintf(x->dir, sizeof(x->dir), "%.200s/coppice-chaos.XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(x->dir)) {
        snprintf(why, why_size, "'%s' can't be made: %s", x->dir, strerror(errno));
        x->dir[0] = 0;
        return false;
    }
    snprintf(name, sizeof(name), "%s.sh", x->script->name);
    return file_write(x, "common.sh", common, size, why, why_size) &&
           file_write(x, name, x->script->text, (size_t)(x->script->end - x->script->text), why, why_size) &&
           door_write(x, "operator.curl", &x->order->operators, why, why_size) &&
           door_write(x, "key.curl", &x->order->clients, why, why_size);
}

static void tidy(const struct run *x)
{
    static const char *const names[] = {"common.sh", "operator.curl", "key.curl", "said",
                                        "received",  "held",          "slow"};
    char path[512];
    if (!x->dir[0])
        return;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        snprintf(path, sizeof(path), "%s/%s", x->dir, names[i]);
        (void)unlink(path);
    }
    snprintf(path, sizeof(path), "%s/%s.sh", x->dir, x->script->name);
    (void)unlink(path);
    (void)rmdir(x->dir);
}

/* ---- receivers ---- */

static bool receivers_start(struct run *x, char *why, size_t why_size)
{
    char file[512];
    snprintf(file, sizeof(file), "%s/received", x->dir);
    for (int i = 0; i < RECEIVER_COUNT && x->script->receivers; i++) {
        x->receivers[i] = chaos_receiver_start((enum chaos_receiver)i, file, x->ports[RECEIVER_GOOD],
                                               &x->ports[i], why, why_size);
        if (!x->receivers[i])
            return false;
    }
    return true;
}

static void children_stop(struct run *x)
{
    for (int i = 0; i < RECEIVER_COUNT; i++) {
        chaos_fault_stop(x->receivers[i]);
        x->receivers[i] = 0;
    }
    chaos_fault_stop(x->slow);
    x->slow = 0;
}

/* ---- controls ---- */

/* A connection that the server has taken: it has answered there. */
static int hold(const struct client *c)
{
    static const char ask[] = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";
    char first;
    int fd = address_connect(&c->address);
    if (fd >= 0 && write(fd, ask, sizeof(ask) - 1) == (ssize_t)sizeof(ask) - 1)
        (void)!read(fd, &first, 1);
    return fd;
}

static void chaos_verb(const struct run *x, const char *verb, const char *target)
{
    static struct chaos_answer answer;
    char path[128];
    snprintf(path, sizeof(path), "/chaos/actors/%s:%s", target, verb);
    (void)chaos_client_ask(
        &x->order->operators,
        &(struct client_request){.method = "POST", .target = path, .body = "{\"reason\":\"a control\"}"},
        &answer);
}

/* Where jobs may fail with their runner, one that fails by itself; else, and where a server that was just hit refuses that, one
 * that nobody was told of. */
static void lose_job(struct run *x)
{
    static struct chaos_answer answer;
    char id[CHAOS_JOB_ID] = "00000000-0000-7000-8000-000000000000";
    if (x->script->runners_die) {
        (void)chaos_client_ask(
            &x->order->clients,
            &(struct client_request){.method = "POST",
                                     .target = "/v1/jobs",
                                     .body = "{\"type\":\"EXECUTE\",\"work_kind\":\"FAIL_IMMEDIATE\"}"},
            &answer);
        (void)chaos_answer_text(&answer, "job_id", id, sizeof(id));
    }
    chaos_load_add(x->load, id);
}

/* What its check has to notice, done at the end of the script. */
static void sabotage(struct run *x)
{
    switch (x->order->control) {
    case CHECK_SCRIPT:
        chaos_report_find(x->report, CHECK_SCRIPT, false, "a control");
        break;
    case CHECK_PROCESS:
        (void)kill((pid_t)before.pid, SIGKILL);
        break;
    case CHECK_CONTAINED:
        chaos_verb(x, "kill", "telemetry");
        break;
    case CHECK_RETURNED: /* its supervisor would start it again */
        chaos_verb(x, "suspend", "outside");
        chaos_verb(x, "kill", "fetch");
        break;
    case CHECK_ANSWERED:
        atomic_store(&x->load->misdeed, MISDEED_UNANSWERED);
        break;
    case CHECK_SERVED:
        atomic_store(&x->load->misdeed, MISDEED_FAILED);
        break;
    case CHECK_READY:
        chaos_verb(x, "suspend", "store.writer");
        break;
    case CHECK_JOBS:
        lose_job(x);
        break;
    case CHECK_BOUNDED:
        for (; x->held_count < HELD_CONNECTIONS; x->held_count++)
            x->held[x->held_count] = hold(&x->order->operators);
        break;
    default:
        break;
    }
}

static void relent(struct run *x)
{
    if (x->order->control == CHECK_RETURNED)
        chaos_verb(x, "resume", "outside");
    if (x->order->control == CHECK_READY)
        chaos_verb(x, "resume", "store.writer");
    for (uint32_t i = 0; i < x->held_count; i++)
        if (x->held[i] >= 0)
            close(x->held[i]);
}

/* ---- the script ---- */

static void set(const char *name, const char *value)
{
    if (setenv(name, value, 1) != 0)
        _exit(126);
}

static void set_number(const char *name, uint64_t number)
{
    char text[32];
    snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
    set(name, text);
}

static void set_receivers(const struct run *x)
{
    char name[64], url[64];
    for (int i = 0; i < RECEIVER_COUNT && x->script->receivers; i++) {
        snprintf(name, sizeof(name), "CHAOS_RECEIVER_%s", chaos_receiver_name((enum chaos_receiver)i));
        snprintf(url, sizeof(url), "http://127.0.0.1:%u/hook", x->ports[i]);
        set(name, url);
    }
}

static const char *url_of(const struct client *c, const char *otherwise, char *room, size_t size)
{
    if (c->address.local_file)
        return "http://localhost";
    snprintf(room, size, "%s%s", strncmp(otherwise, "http://", 7) == 0 ? "" : "http://", otherwise);
    while (*room && room[strlen(room) - 1] == '/')
        room[strlen(room) - 1] = 0;
    return room;
}

static _Noreturn void script_child(const struct run *x, int out)
{
    char path[512], room[600];
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(path, sizeof(path), "%s/said", x->dir);
    int said = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), null = open("/dev/null", O_RDONLY);
    if (said < 0 || null < 0 || dup2(null, 0) < 0 || dup2(said, 1) < 0 || dup2(said, 2) < 0)
        _exit(126);
    if (out == 3 ? fcntl(3, F_SETFD, 0) != 0 : dup2(out, 3) < 0)
        _exit(126);
    const struct client *operators = &x->order->operators, *clients = &x->order->clients;
    set("CHAOS_OPERATOR", url_of(operators, operators->named, room, sizeof(room)));
    set("CHAOS_CLIENTS", url_of(clients, x->order->client_url, room, sizeof(room)));
    set("CHAOS_DIR", x->dir);
    snprintf(path, sizeof(path), "%s/operator.curl", x->dir);
    set("CHAOS_CURL", path);
    snprintf(path, sizeof(path), "%s/key.curl", x->dir);
    set("CHAOS_KEY", path);
    set("CHAOS_FULL", x->order->full ? "yes" : "");
    set_number("CHAOS_SEED", x->order->seed);
    set_number("CHAOS_PID", before.pid);
    set_receivers(x);
    snprintf(path, sizeof(path), "%s/%s.sh", x->dir, x->script->name);
    (void)execlp("sh", "sh", path, (char *)NULL);
    _exit(127);
}

static void over(struct run *x)
{
    for (int i = 0; i < CHAOS_LOADERS; i++)
        atomic_store(&x->load->streak[i], 0);
    x->over = now();
}

/* "slow 50". The file says that it is, until "fast": a script that goes on at once would be quicker than this. */
static void slow(struct run *x, const char *ms)
{
    char why[256];
    x->slow = chaos_fault_slow((pid_t)before.pid, strtoull(ms, NULL, 10) * NS_PER_MS, why, sizeof(why));
    if (x->slow && file_write(x, "slow", "", 0, why, sizeof(why)))
        return;
    x->report->outcome = OUTCOME_UNABLE;
    chaos_report_note(x->report, "%s", why);
}

static void checked(struct run *x, const char *rest)
{
    bool good = strncmp(rest, "yes ", 4) == 0;
    chaos_report_find(x->report, CHECK_SCRIPT, good, "%s", rest + (good ? 4 : strcspn(rest, " ")));
}

static void expect(struct run *x, const char *who, bool below)
{
    if (!chaos_tree_expect(&before, who, below))
        chaos_report_find(x->report, CHECK_CONTAINED, false, "there was nobody called %.100s", who);
}

static void heard(struct run *x, char *line)
{
    char *rest = line + strcspn(line, " ");
    if (*rest)
        *rest++ = 0;
    if (strcmp(line, "dies") == 0 || strcmp(line, "dies-below") == 0) {
        expect(x, rest, line[4] != 0);
    } else if (strcmp(line, "check") == 0) {
        checked(x, rest);
    } else if (strcmp(line, "note") == 0) {
        chaos_report_note(x->report, "%s", rest);
    } else if (strcmp(line, "unable") == 0) {
        x->report->outcome = OUTCOME_UNABLE;
        chaos_report_note(x->report, "%s", rest);
    } else if (strcmp(line, "over") == 0) {
        over(x);
    } else if (strcmp(line, "slow") == 0) {
        slow(x, rest);
    } else if (strcmp(line, "fast") == 0) {
        chaos_fault_stop(x->slow);
        x->slow = 0;
    } else {
        chaos_report_find(x->report, CHECK_SCRIPT, false, "the script said '%.80s'", line);
    }
}

/* Until the script, and whoever it has left behind, has closed the pipe. */
static void listen_to(struct run *x, int from)
{
    char line[LINE_MAX_BYTES], c;
    size_t length = 0;
    for (;;) {
        ssize_t n = read(from, &c, 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        if (c != '\n') {
            if (length < sizeof(line) - 1)
                line[length++] = c;
            continue;
        }
        line[length] = 0;
        length = 0;
        heard(x, line);
    }
}

/* The last line of what it has written to standard output and error. */
static void last_words(const struct run *x, char *room, size_t size)
{
    char path[512];
    ssize_t n = -1;
    snprintf(path, sizeof(path), "%s/said", x->dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        off_t end = lseek(fd, 0, SEEK_END);
        (void)lseek(fd, end > (off_t)size - 1 ? end - (off_t)size + 1 : 0, SEEK_SET);
        n = read(fd, room, size - 1);
        close(fd);
    }
    room[n > 0 ? n : 0] = 0;
    for (char *c = room; *c; c++)
        *c = *c == '\n' ? ' ' : *c;
}

static _Noreturn void watch_child(pid_t group)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    env_thread_sleep(now() + CHAOS_SCRIPT_S * NS_PER_S);
    (void)kill(-group, SIGKILL);
    _exit(0);
}

static bool script_run(struct run *x, char *why, size_t why_size)
{
    int pipe_fds[2], status = 0;
    char words[200];
    pid_t script = pipe2(pipe_fds, O_CLOEXEC) == 0 ? fork() : -1;
    if (script < 0) {
        snprintf(why, why_size, "no process for the script: %s", strerror(errno));
        return false;
    }
    if (script == 0)
        script_child(x, pipe_fds[1]);
    (void)setpgid(script, script);
    close(pipe_fds[1]);
    pid_t watch = fork();
    if (watch == 0)
        watch_child(script);
    listen_to(x, pipe_fds[0]);
    close(pipe_fds[0]);
    (void)waitpid(script, &status, 0);
    if (watch > 0) {
        (void)kill(watch, SIGKILL);
        (void)waitpid(watch, NULL, 0);
    }
    if (status != 0) {
        last_words(x, words, sizeof(words));
        chaos_report_find(x->report, CHECK_SCRIPT, false, "the script ended with %s %d: %s",
                          WIFEXITED(status) ? "status" : "signal",
                          WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), words);
    }
    if (!x->over)
        over(x);
    return true;
}

/* ---- until all is well ---- */

static bool ready(const struct run *x)
{
    static struct chaos_answer answer;
    return chaos_client_ask(&x->order->operators,
                            &(struct client_request){.method = "GET", .target = "/readyz"}, &answer) == 200;
}

static bool served(const struct run *x)
{
    for (int i = 0; i < CHAOS_LOADERS; i++)
        if (atomic_load(&x->load->streak[i]) < CHAOS_STREAK)
            return false;
    return true;
}

static uint32_t missing(void)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < before.count; i++) {
        const struct chaos_place *place = chaos_tree_find(&after, before.places[i].path);
        count += !place || !place->pid[0];
    }
    return count;
}

static int64_t descriptors(void)
{
    return (int64_t)after.open_fds - (int64_t)before.open_fds;
}

/* When it was the last time that all was well, from here on: the first look of those that found nothing. */
static void await_well(struct run *x)
{
    uint64_t limit = x->order->control == CHECK_COUNT ? CHAOS_RECOVER_S : CHAOS_CONTROL_S,
             deadline = x->over + limit * NS_PER_S, since = 0;
    char why[256];
    for (;;) {
        bool well = ready(x) && chaos_tree_look(&after, &x->order->operators, why, sizeof(why)) &&
                    !after.empty && !after.unseen[0] && !missing();
        since = !well ? 0 : since ? since : now();
        if (well && served(x)) {
            uint64_t bad = atomic_load(&x->load->last_bad);
            since = bad > since ? bad : since;
            x->report->recovered = true;
            x->report->recover_ms = (since > x->over ? since - x->over : 0) / NS_PER_MS;
            if (descriptors() <= CHAOS_DESCRIPTORS) /* connections leave in their own time */
                return;
        }
        if (now() >= deadline)
            return;
        pause_ms(LOOK_MS);
    }
}

/* ---- judging ---- */

static void name_add(char *names, size_t size, uint32_t count, const char *name)
{
    size_t used = strlen(names);
    if (count < NOBODY_SHOWN)
        snprintf(names + used, size - used, "%s%s", used ? ", " : "", name);
    else if (count == NOBODY_SHOWN)
        snprintf(names + used, size - used, ", ...");
}

static void compare(struct run *x)
{
    struct chaos_report *r = x->report;
    char foreign[300] = "", idle[300] = "", lost[300] = "";
    uint32_t foreign_count = 0, idle_count = 0, lost_count = 0, expected = 0;
    bool same = before.pid == after.pid;
    for (uint32_t i = 0; i < before.count; i++) {
        const struct chaos_place *was = &before.places[i], *is = chaos_tree_find(&after, was->path);
        bool lives = is && is->pid[0], untouched = same && lives && strcmp(was->pid, is->pid) == 0;
        expected += was->expected;
        r->untouched += untouched;
        r->restarted += lives && !untouched;
        r->missing += !lives;
        if (!lives)
            name_add(lost, sizeof(lost), lost_count++, was->name);
        if (untouched && was->expected)
            name_add(idle, sizeof(idle), idle_count++, was->name);
        if (untouched)
            continue;
        if (!was->expected)
            name_add(foreign, sizeof(foreign), foreign_count++, was->name);
        if (r->died < CHAOS_SHOWN)
            snprintf(r->names[r->died], sizeof(r->names[0]), "%s", was->name);
        r->died++;
    }
    chaos_report_find(r, CHECK_PROCESS, same != x->script->another_process, "it was %llu and is %llu",
                      (unsigned long long)before.pid, (unsigned long long)after.pid);
    if (!x->script->another_process)
        chaos_report_find(r, CHECK_CONTAINED, !foreign_count && !idle_count,
                          "%u were to end; %u others have%s%s; %u of them haven't%s%s", expected,
                          foreign_count, foreign_count ? ": " : "", foreign, idle_count,
                          idle_count ? ": " : "", idle);
    if (after.unseen[0])
        chaos_report_find(r, CHECK_RETURNED, false, "not all that stand below %s were seen", after.unseen);
    chaos_report_find(r, CHECK_RETURNED, !lost_count, "%u places are empty%s%s", lost_count,
                      lost_count ? ": " : "", lost);
}

static void count_up(struct run *x)
{
    struct chaos_report *r = x->report;
    const struct chaos_load *load = x->load;
    bool same = before.pid == after.pid;
    r->good = atomic_load(&load->good);
    r->refused = atomic_load(&load->refused);
    r->failed = atomic_load(&load->failed);
    r->unanswered = atomic_load(&load->unanswered);
    r->slowest_ms = atomic_load(&load->slowest_ns) / NS_PER_MS;
    r->jobs = atomic_load(&load->jobs);
    r->restarts = same && after.restarts > before.restarts ? after.restarts - before.restarts : 0;
    r->memory = (int64_t)after.resident_bytes - (int64_t)before.resident_bytes;
    r->descriptors = descriptors();
    for (uint32_t i = 0; i < after.count && r->budgets_count < CHAOS_BUDGETS_MAX; i++) {
        const struct chaos_place *p = &after.places[i];
        if (!p->supervises || !p->used)
            continue;
        struct chaos_budget *b = &r->budgets[r->budgets_count++];
        snprintf(b->name, sizeof(b->name), "%s", p->name);
        b->used = p->used < p->restarts ? p->used : p->restarts;
        b->restarts = p->restarts;
        b->period_ms = p->period_ms;
    }
}

/* A machine that stands still for seconds (it was suspended, or is busy beyond measure) makes leases and requests run out of time,
 * whatever the server does. It is told, and then those aren't held against it. */
static bool stood_still(const struct run *x)
{
    return atomic_load(&x->load->still_ns) > CHAOS_STILL_S * NS_PER_S;
}

static void judge_load(struct run *x)
{
    struct chaos_report *r = x->report;
    enum chaos_tolerance tolerates = stood_still(x) && x->order->control == CHECK_COUNT && !r->failed
                                         ? TOLERATES_UNANSWERED
                                         : x->script->tolerates;
    const char *first = x->load->first_bad;
    const uint64_t requests = r->good + r->refused + r->failed + r->unanswered;
    chaos_report_find(r, CHECK_ANSWERED, !r->unanswered || tolerates == TOLERATES_UNANSWERED,
                      "%llu of %llu had no answer%s%s", (unsigned long long)r->unanswered,
                      (unsigned long long)requests, r->unanswered ? "; the first bad one: " : "",
                      r->unanswered ? first : "");
    chaos_report_find(r, CHECK_SERVED, !r->failed && (!r->refused || tolerates != TOLERATES_NOTHING),
                      "%llu failed, %llu were told to come again%s%s", (unsigned long long)r->failed,
                      (unsigned long long)r->refused, r->failed || r->refused ? "; the first bad one: " : "",
                      r->failed || r->refused ? first : "");
}

static void judge(struct run *x)
{
    struct chaos_report *r = x->report;
    uint64_t limit = x->order->control == CHECK_COUNT ? CHAOS_RECOVER_S : CHAOS_CONTROL_S;
    struct chaos_settled jobs = chaos_load_settle(x->load, &x->order->clients, now() + limit * NS_PER_S);
    if (stood_still(x))
        chaos_report_note(r, "the machine stood still for %llu ms",
                          (unsigned long long)(atomic_load(&x->load->still_ns) / NS_PER_MS));
    compare(x);
    judge_load(x);
    chaos_report_find(r, CHECK_READY, r->recovered, r->recovered ? "after %llu ms" : "not within %llu ms",
                      (unsigned long long)(r->recovered ? r->recover_ms : limit * 1000));
    chaos_report_find(r, CHECK_JOBS, !jobs.open && (!jobs.lost || x->script->runners_die || stood_still(x)),
                      "%u succeeded, %u failed with their runner, %u are neither or have gone%s%s%s%s%s%s",
                      jobs.succeeded, jobs.lost, jobs.open, *jobs.which ? ": " : "", jobs.which,
                      *jobs.state ? " " : "", jobs.state, *jobs.reason ? " " : "", jobs.reason);
    chaos_report_find(
        r, CHECK_BOUNDED, r->descriptors <= CHAOS_DESCRIPTORS && r->memory <= (int64_t)CHAOS_MEMORY_MIB << 20,
        "%+lld descriptors, %+lld KiB", (long long)r->descriptors, (long long)(r->memory / 1024));
}

/* ---- all of it ---- */

/* Nothing is done where it couldn't be told who ended by it. */
static bool can_be_judged(struct run *x)
{
    if (!before.unseen[0])
        return true;
    x->report->outcome = OUTCOME_UNABLE;
    if (before.crowded)
        chaos_report_note(
            x->report,
            "more stand below %s than can be compared, which is %u of a class and %u in all; a server "
            "with fewer (workers.count, workers.max_concurrency) can be tried",
            before.unseen, LIVING_LIST_MAX, CHAOS_PLACES_MAX);
    else
        chaos_report_note(x->report,
                          "not all that stand below %s can be seen, so nobody could tell whether they live",
                          before.unseen);
    return false;
}

static bool warm(const struct run *x)
{
    uint64_t deadline = now() + CHAOS_RECOVER_S * NS_PER_S;
    while (atomic_load(&x->load->good) < WARM_REQUESTS * CHAOS_LOADERS || !atomic_load(&x->load->jobs)) {
        if (now() >= deadline)
            return false;
        pause_ms(LOOK_MS);
    }
    return true;
}

static bool begin(struct run *x, char *why, size_t why_size)
{
    if (!prepare(x, why, why_size) || !receivers_start(x, why, why_size))
        return false;
    x->load = chaos_load_start(&x->order->clients, x->order->rate);
    if (!x->load) {
        snprintf(why, why_size, "the load can't be started: %s", strerror(errno));
        return false;
    }
    if (!warm(x)) {
        snprintf(why, why_size, "the load isn't served before anything is done: %.250s", x->load->first_bad);
        return false;
    }
    uint64_t deadline = now() + CHAOS_RECOVER_S * NS_PER_S;
    for (;;) { /* a supervisor that didn't answer in time, on a machine that stood still: it is asked again */
        if (!chaos_tree_look(&before, &x->order->operators, why, why_size))
            return false;
        if ((!before.empty && (!before.unseen[0] || before.crowded)) || now() >= deadline)
            return true;
        pause_ms(LOOK_MS);
    }
}

bool chaos_run(const struct chaos_order *order, const struct chaos_script *script, struct chaos_report *ret,
               char *why, size_t why_size)
{
    struct run x = {.order = order, .script = script, .report = ret};
    uint64_t began = now();
    *ret = (struct chaos_report){.script = script, .seed = order->seed, .full = order->full};
    ret->started_us = env_real()->wall(env_real()) / NS_PER_US;
    bool good = begin(&x, why, why_size);
    if (good && can_be_judged(&x))
        good = script_run(&x, why, why_size);
    if (good && ret->outcome != OUTCOME_UNABLE) {
        sabotage(&x);
        await_well(&x);
        relent(&x);
        children_stop(&x);
        chaos_load_stop(x.load);
        count_up(&x);
        judge(&x);
    }
    children_stop(&x);
    if (x.load) {
        chaos_load_stop(x.load);
        chaos_load_free(x.load);
    }
    tidy(&x);
    ret->took_ms = (now() - began) / NS_PER_MS;
    return good;
}
