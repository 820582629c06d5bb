#define _GNU_SOURCE /* pipe2 */
#include "config/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/log.h"
#include "config/notify.h"
#include "config/reload.h"
#include "http/audits.h"
#include "http/front.h"
#include "http/living.h"
#include "store/audit.h"
#include "store/store.h"

enum { MESSAGE_STOP = 0x100, AUDIT_MS = 1000 };
STATIC_ASSERT(SIGNALS_WHO_MAX == AUDIT_WHO_MAX, "who asks is whom an entry names");

static _Atomic(struct runtime *) running; /* NULL: none, as between the porch's and the server's own */
static int ends[2] = {-1, -1};
static _Atomic int stops;        /* how often an end was asked for */
static _Atomic bool untold;      /* it was asked for, and no runtime has been told yet */
static _Atomic bool attended;    /* the actor has lived: what is written is read */
static _Atomic bool passed;      /* a stop was written for it */
static _Atomic uint64_t stop_at; /* deadline of a drain that has begun; 0: none has */

/* ---- in the handler: nothing but what is async-signal-safe ---- */

static bool pass_on(char what)
{
    return write(ends[1], &what, 1) == 1;
}

static void stop_first(struct runtime *rt)
{
    if (!atomic_load(&attended)) {
        runtime_stop(rt);
        return;
    }
    atomic_store(&passed, true);
    if (pass_on('T'))
        return;
    atomic_store(&passed, false);
    runtime_stop(rt);
}

/* By whoever is second of those two: the signal, and the runtime. */
static void tell_stop(struct runtime *rt)
{
    if (rt && atomic_exchange(&untold, false))
        stop_first(rt);
}

static void stop(void)
{
    bool first = atomic_fetch_add(&stops, 1) == 0;
    if (first)
        atomic_store(&untold, true);
    struct runtime *rt = atomic_load(&running);
    if (first) {
        tell_stop(rt);
    } else if (rt) {
        runtime_stop(rt); /* twice is at once, whoever was first to ask */
        runtime_stop(rt);
    }
}

static void handle(int signal)
{
    int error = errno;
    if (signal == SIGHUP)
        (void)pass_on('H');
    else if (signal == SIGUSR1)
        (void)pass_on('U');
    else
        stop();
    errno = error;
}

/* ---- handlers ---- */

static const int stopping[] = {SIGTERM, SIGINT}, waiting[] = {SIGHUP, SIGUSR1};
enum { EACH = sizeof(stopping) / sizeof(*stopping) };
STATIC_ASSERT(sizeof(stopping) == sizeof(waiting), "both lists are as long");

static void install(const int signals[EACH], void (*handler)(int signal))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < EACH; i++)
        sigaction(signals[i], &action, NULL);
}

/* A mask is inherited, from whoever started us. */
static void unblock(void)
{
    sigset_t heard;
    sigemptyset(&heard);
    for (int i = 0; i < EACH; i++) {
        sigaddset(&heard, stopping[i]);
        sigaddset(&heard, waiting[i]);
    }
    pthread_sigmask(SIG_UNBLOCK, &heard, NULL);
}

bool signals_open(void)
{
    struct sigaction ignored = {.sa_handler = SIG_IGN};
    atomic_store(&running, NULL);
    atomic_store(&stops, 0);
    atomic_store(&untold, false);
    atomic_store(&attended, false);
    atomic_store(&passed, false);
    atomic_store(&stop_at, 0);
    bool piped = pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0;
    if (!piped)
        ends[0] = ends[1] = -1;
    install(waiting, handle);
    unblock();
    sigemptyset(&ignored.sa_mask);
    sigaction(SIGPIPE, &ignored, NULL);
    sigaction(SIGXFSZ, &ignored, NULL); /* a file that may not grow is a full disk: the write says so */
    return piped;
}

void signals_serve(struct runtime *runtime)
{
    atomic_store(&attended, false);
    atomic_store(&running, runtime);
    if (runtime)
        install(stopping, handle);
    tell_stop(runtime);
}

bool signals_stopped(void)
{
    return atomic_load(&stops) > 0;
}

void signals_close(void)
{
    install(stopping, SIG_DFL);
    install(waiting, SIG_IGN);
    atomic_store(&running, NULL);
    for (int i = 0; i < 2; i++) {
        if (ends[i] >= 0)
            close(ends[i]);
        ends[i] = -1;
    }
}

/* ---- the actor ---- */

static void wait_for_stop(void)
{
    if (!actor_timer(atomic_load(&stop_at), MESSAGE_STOP, 0))
        runtime_stop(runtime_self()); /* rather early than never */
}

static void drain(void)
{
    static const char *const names[] = {"client", "operator"};
    const struct settings *settings = reload_settings();
    uint64_t delay = settings ? settings->options.http_shutdown_delay : 0;
    if (atomic_load(&stop_at))
        return;
    LOG(LOG_INFO, "signals", "stopping", {"delay_ms", NULL, (int64_t)(delay / NS_PER_MS)});
    notify_send("STOPPING=1\nSTATUS=draining");
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        struct front *front = front_find(names[i]);
        if (front)
            atomic_store(&front->draining, true);
    }
    atomic_store(&stop_at, actor_now() + delay);
    if (delay == 0)
        runtime_stop(runtime_self());
    else
        wait_for_stop();
}

static void reload(struct reload_report *report)
{
    notify_reloading();
    reload_now(report);
    reload_tell(report);
    notify_send(report->done ? "READY=1\nSTATUS=serving"
                             : "READY=1\nSTATUS=serving; the last reload was refused, see the log");
}

/* A store that hangs keeps nobody waiting for longer than he waits himself, and once a stop was asked for nobody at all: it has the
 * entry all the same. */
static void note_reload(const struct reload_report *report, const struct audits_by *by, struct span reason,
                        uint64_t until)
{
    if (store_here())
        (void)audits_hand_by(by,
                             &(struct audits_entry){.verb = "config.reload",
                                                    .target = "settings",
                                                    .reason = reason,
                                                    .outcome = report->done ? "reloaded" : "refused"},
                             signals_stopped() ? 0 : until);
}

static void reload_by_signal(void)
{
    struct reload_report report;
    reload(&report);
    note_reload(&report, &(struct audits_by){.who = span_text("signal")}, span_text("SIGHUP"),
                actor_deadline_ms(AUDIT_MS));
}

void signals_reload_fill(struct signals_reload *ret, const struct request *q, uint64_t audit_until)
{
    struct audits_by by = audits_by(q);
    struct span who = audits_cut(by.who, sizeof(ret->who)), reason = audits_reason(q);
    *ret = (struct signals_reload){.audit_until = audit_until,
                                   .who_size = (uint32_t)who.size,
                                   .request_id_size = (uint32_t)by.request_id.size,
                                   .reason_size = (uint32_t)reason.size};
    memcpy(ret->who, who.bytes, who.size);
    memcpy(ret->request_id, by.request_id.bytes, by.request_id.size);
    if (reason.size)
        memcpy(ret->reason, reason.bytes, reason.size);
}

static void reload_by_call(struct message *m)
{
    const struct signals_reload *asked = message_body(m, sizeof(*asked));
    struct reload_report report;
    reload(&report);
    if (asked)
        note_reload(&report,
                    &(struct audits_by){.who = span_of(asked->who, asked->who_size),
                                        .request_id = span_of(asked->request_id, asked->request_id_size)},
                    span_of(asked->reason, asked->reason_size), asked->audit_until);
    actor_reply_bytes(m, SIGNALS_RELOAD, &report, sizeof(report));
}

/* ---- SIGUSR1 ---- */

struct dump {
    char line[512];
    size_t length;
};

static void dump_line(struct dump *d)
{
    d->line[d->length] = 0;
    if (d->length)
        LOG(LOG_INFO, "tree", d->line, {"signal", "SIGUSR1", 0});
    d->length = 0;
}

static bool dump_bytes(void *context, const char *bytes, size_t length)
{
    struct dump *d = context;
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] != '\n')
            d->line[d->length++] = bytes[i];
        if (bytes[i] == '\n' || d->length == sizeof(d->line) - 1)
            dump_line(d);
    }
    return true;
}

static void dump(void)
{
    struct front *front = front_find("operator");
    struct runtime_stats s;
    struct dump d = {.length = 0};
    struct json_sink sink;
    char bytes[1024];
    runtime_stats(runtime_self(), &s);
#define FIGURE(name) {#name, NULL, (int64_t)s.name}
    LOG(LOG_INFO, "stats", "figures of the runtime", FIGURE(schedulers), FIGURE(actors), FIGURE(spawned),
        FIGURE(ended), FIGURE(crashed), FIGURE(messages_handled), FIGURE(messages_dropped),
        FIGURE(messages_remote), FIGURE(preemptions), FIGURE(overruns), FIGURE(wakes), FIGURE(polls),
        FIGURE(turns), FIGURE(stacks), FIGURE(stacks_in_use), FIGURE(message_bytes), FIGURE(record_bytes),
        FIGURE(actor_bytes), FIGURE(timers), FIGURE(records), {"log_dropped", NULL, (int64_t)log_dropped()});
#undef FIGURE
    if (!front || !front->rows)
        return;
    struct arena_mark mark = actor_arena_mark();
    json_sink_init(&sink, bytes, sizeof(bytes), dump_bytes, &d);
    living_write_text(front->rows, &sink, (struct living_part){LIVING_CHILDREN_DEFAULT, ""});
    json_sink_flush(&sink);
    dump_line(&d);
    actor_arena_reset(mark);
}

/* One at a time: what stands behind one that ends this actor is its successor's. */
static void read_pipe(void)
{
    char what;
    while (read(ends[0], &what, 1) == 1)
        switch (what) {
        case 'T':
            drain();
            break;
        case 'H':
            reload_by_signal();
            break;
        case 'U':
            dump();
            break;
        default:
            break;
        }
}

static enum actor_step signals_init(void *state, const void *args, size_t args_size)
{
    (void)state;
    (void)args;
    (void)args_size;
    if (ends[0] >= 0 && !actor_watch(ends[0], WATCH_READ))
        actor_fail(errno, "the pipe of signals can't be watched");
    if (atomic_load(&stop_at))
        wait_for_stop();
    else if (atomic_load(&passed))
        drain(); /* its byte may have been read by one that has ended since */
    atomic_store(&attended, ends[0] >= 0);
    return ACTOR_CONTINUE;
}

static enum actor_step signals_handle(void *state, struct message *m)
{
    (void)state;
    switch (m->type) {
    case MESSAGE_READY:
        read_pipe();
        break;
    case MESSAGE_STOP:
        runtime_stop(runtime_self());
        break;
    case SIGNALS_RELOAD:
        read_pipe(); /* a stop of meanwhile doesn't wait behind all the calls that have come before it */
        reload_by_call(m);
        break;
    default:
        actor_unknown(m);
    }
    return ACTOR_CONTINUE;
}

const struct actor_class signals_class = {
    .name = "signals",
    .state_size = 1,
    .init = signals_init,
    .handle = signals_handle,
    .stack_size = 256 * 1024, /* a tree is drawn, settings are read */
    .arena_quota = 4 << 20,
};
