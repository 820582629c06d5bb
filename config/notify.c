#define _GNU_SOURCE
#include "config/notify.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "config/log.h"
#include "runtime/runtime.h"

enum { MESSAGE_PULSE = 1, MESSAGE_LOOK = 2, MESSAGE_WAIT = 3, PULSES_A_LOOK = 4 };

static struct {
    int fd;
    struct sockaddr_un address;
    socklen_t address_size;
    uint64_t watchdog_ns;
} to = {.fd = -1};

/* ---- the socket ---- */

static bool parse_address(const char *text)
{
    size_t length = text ? strlen(text) : 0;
    if (length < 2 || length > sizeof(to.address.sun_path) - 1 || (text[0] != '/' && text[0] != '@'))
        return false;
    to.address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(to.address.sun_path, text, length);
    if (text[0] == '@') /* abstract: it begins with a 0 byte and has none at its end */
        to.address.sun_path[0] = 0;
    to.address_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (text[0] == '@' ? 0 : 1));
    return true;
}

static bool number(const char *text, uint64_t *ret_value)
{
    char *end;
    if (!text || *text < '0' || *text > '9')
        return false;
    errno = 0;
    *ret_value = strtoull(text, &end, 10);
    return errno == 0 && *end == 0;
}

static uint64_t watchdog(void)
{
    uint64_t us, pid;
    const char *whose = getenv("WATCHDOG_PID");
    if (!number(getenv("WATCHDOG_USEC"), &us) || us > UINT64_MAX / NS_PER_US)
        return 0;
    if (whose && (!number(whose, &pid) || pid != (uint64_t)getpid()))
        return 0;
    return us * NS_PER_US;
}

bool notify_open(void)
{
    bool asked = parse_address(getenv("NOTIFY_SOCKET"));
    to.watchdog_ns = asked ? watchdog() : 0;
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
    if (asked)
        to.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return to.fd >= 0;
}

void notify_close(void)
{
    if (to.fd >= 0)
        close(to.fd);
    to.fd = -1;
    to.watchdog_ns = 0;
}

uint64_t notify_watchdog_ns(void)
{
    return to.fd >= 0 ? to.watchdog_ns : 0;
}

void notify_send(const char *format, ...)
{
    char text[NOTIFY_TEXT_MAX];
    va_list list;
    if (to.fd < 0)
        return;
    va_start(list, format);
    int length = vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    if (length > 0)
        (void)sendto(to.fd, text, (size_t)length < sizeof(text) ? (size_t)length : sizeof(text) - 1,
                     MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *)&to.address, to.address_size);
}

void notify_reloading(void)
{
    struct env *env = env_real();
    notify_send("RELOADING=1\nMONOTONIC_USEC=%llu\nSTATUS=reading the settings again",
                (unsigned long long)(env->now(env) / NS_PER_US));
}

/* ---- pulses: one actor per scheduler that counts ---- */

static _Atomic uint64_t beats[RUNTIME_SCHEDULERS_MAX];

struct pulse {
    uint32_t scheduler;
    uint64_t every_ns;
};

static void pulse_again(const struct pulse *p)
{
    if (!actor_timer(actor_now() + p->every_ns, MESSAGE_PULSE, 0))
        actor_fail(1, "no timer is left");
}

static enum actor_step pulse_init(void *state, const void *args, size_t args_size)
{
    ASSERT(args_size == sizeof(struct pulse));
    memcpy(state, args, args_size);
    pulse_again(state);
    return ACTOR_CONTINUE;
}

static enum actor_step pulse_handle(void *state, struct message *m)
{
    const struct pulse *p = state;
    if (m->type == MESSAGE_PULSE) {
        atomic_fetch_add_explicit(&beats[p->scheduler], 1, memory_order_relaxed);
        pulse_again(p);
    } else {
        actor_unknown(m);
    }
    return ACTOR_CONTINUE;
}

static const struct actor_class pulse_class = {
    .name = "pulse",
    .state_size = sizeof(struct pulse),
    .init = pulse_init,
    .handle = pulse_handle,
};

/* ---- the actor ---- */

static struct {
    void (*call)(const void *context);
    const void *context;
} ready;

void notify_on_ready(void (*call)(const void *context), const void *context)
{
    ready.call = call;
    ready.context = context;
}

static void tell_ready(void)
{
    if (ready.call)
        ready.call(ready.context);
    ready.call = NULL;
    notify_send("READY=1\nSTATUS=serving");
}

struct notify {
    uint32_t schedulers;
    uint64_t every_ns; /* between two looks: half of what is allowed */
    uint32_t told;     /* which scheduler stands still, as the log says; none: their number */
    uint64_t seen[RUNTIME_SCHEDULERS_MAX];
};

static void look_again(const struct notify *n)
{
    if (!actor_timer(actor_now() + n->every_ns, MESSAGE_LOOK, 0))
        actor_fail(1, "no timer is left");
}

static enum actor_step notify_init(void *state, const void *args, size_t args_size)
{
    struct notify *n = state;
    (void)args;
    (void)args_size;
    n->schedulers = n->told = runtime_schedulers();
    n->every_ns = notify_watchdog_ns() / 2;
    return ACTOR_PROCEED;
}

static enum actor_step notify_proceed(void *state)
{
    struct notify *n = state;
    tell_ready();
    if (n->every_ns == 0)
        return ACTOR_CONTINUE;
    for (uint32_t i = 0; i < n->schedulers; i++) {
        const struct pulse p = {.scheduler = i, .every_ns = n->every_ns / PULSES_A_LOOK};
        n->seen[i] = atomic_load_explicit(&beats[i], memory_order_relaxed);
        enum error e = actor_spawn(&(struct spawn_options){.class = &pulse_class,
                                                           .args = &p,
                                                           .args_size = sizeof(p),
                                                           .link = true,
                                                           .scheduler = SPAWN_ON(i)},
                                   NULL);
        if (e != OK)
            actor_fail(1, error_name(e));
    }
    notify_send("WATCHDOG=1");
    look_again(n);
    return ACTOR_CONTINUE;
}

/* All of them have counted since the last look, or the watchdog isn't fed. */
static void look(struct notify *n)
{
    uint32_t still = n->schedulers;
    for (uint32_t i = 0; i < n->schedulers; i++)
        if (atomic_load_explicit(&beats[i], memory_order_relaxed) == n->seen[i])
            still = i;
    if (still < n->schedulers) {
        if (n->told != still)
            LOG(LOG_ERROR, "notify", "a scheduler stands still; the watchdog isn't fed",
                {"scheduler", NULL, still});
        n->told = still;
        return;
    }
    n->told = n->schedulers;
    for (uint32_t i = 0; i < n->schedulers; i++)
        n->seen[i] = atomic_load_explicit(&beats[i], memory_order_relaxed);
    notify_send("WATCHDOG=1");
}

static enum actor_step notify_handle(void *state, struct message *m)
{
    if (m->type == MESSAGE_LOOK) {
        look(state);
        look_again(state);
    } else {
        actor_unknown(m);
    }
    return ACTOR_CONTINUE;
}

const struct actor_class notify_class = {
    .name = "notify",
    .state_size = sizeof(struct notify),
    .init = notify_init,
    .proceed = notify_proceed,
    .handle = notify_handle,
};

/* ---- the waiter: a store that takes its time ---- */

struct waiter {
    uint64_t since, every_ns;
};

static void waiter_say(const struct waiter *w)
{
    uint64_t waited = actor_now() - w->since;
    if (waited > NOTIFY_WAIT_MAX_NS)
        return;
    notify_send("EXTEND_TIMEOUT_USEC=%llu\nSTATUS=opening the store, for %llu s%s",
                (unsigned long long)(NOTIFY_EXTEND_NS / NS_PER_US), (unsigned long long)(waited / NS_PER_S),
                notify_watchdog_ns() > 0 ? "\nWATCHDOG=1" : "");
    if (!actor_timer(actor_now() + w->every_ns, MESSAGE_WAIT, 0))
        actor_fail(1, "no timer is left");
}

static enum actor_step waiter_init(void *state, const void *args, size_t args_size)
{
    struct waiter *w = state;
    uint64_t watchdog_ns = notify_watchdog_ns();
    (void)args;
    (void)args_size;
    w->since = actor_now();
    w->every_ns = watchdog_ns > 0 && watchdog_ns / 2 < NOTIFY_WAIT_NS ? watchdog_ns / 2 : NOTIFY_WAIT_NS;
    waiter_say(w);
    return ACTOR_CONTINUE;
}

static enum actor_step waiter_handle(void *state, struct message *m)
{
    if (m->type == MESSAGE_WAIT)
        waiter_say(state);
    else
        actor_unknown(m);
    return ACTOR_CONTINUE;
}

const struct actor_class notify_waiter_class = {
    .name = "notify.waiter",
    .state_size = sizeof(struct waiter),
    .init = waiter_init,
    .handle = waiter_handle,
};
