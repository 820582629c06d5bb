#define _GNU_SOURCE
#include "chaos/world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "chaos/disk.h"
#include "chaos/ground.h"
#include "config/domains.h"
#include "config/fronts.h"
#include "config/notify.h"
#include "config/plan.h"
#include "config/settings.h"
#include "config/signals.h"
#include "config/sockets.h"
#include "http/keyring.h"
#include "http/otlp.h"
#include "http/surface.h"
#include "runtime/runtime.h"
#include "runtime/groups.h"
#include "runtime/names.h"
#include "runtime/scheduler.h"

enum {
    ROWS_MAX = 64,
    LINES = 128,
    LINE_SIZE = 400,
    AXES_MAX = 8,
    LISTED_MAX = 512,
    ARGS_OWN = 12,
    CHOICES_MAX = 24,
    DEAD_MAX = 256,
    POLLERS_MAX = 8,
    DEAF_MAX = 64,
};

struct axe_note {
    char class[WORLD_CLASS_MAX];
};

/* What depends on the command line alone: made once, by who forks the processes. */
static struct blueprint {
    struct settings settings;
    struct plan *plan;
    size_t rows_count;
    struct topology_row rows[ROWS_MAX];
    char http[WORLD_PATH_MAX], operator_at[WORLD_PATH_MAX], store_dir[WORLD_PATH_MAX], config[WORLD_PATH_MAX];
    char schedulers[16];
    struct sockaddr_un address;
} blueprint;

struct world {
    struct world_options options;
    struct sockets sockets;
    struct fronts *fronts;
    struct sim *sim;
    struct store *store;
    actor_pid root, axes[AXES_MAX];
    uint32_t axes_count;
    uint32_t lines_count;
    char lines[LINES][LINE_SIZE];
    bool starved; /* memory was refused */
    bool running; /* a step of the server, and nobody else */
    struct warden warden;
    uint32_t dead_count; /* in this step: nobody finds them by their names any more */
    struct dead {
        actor_pid pid;
        char name[WARDEN_NAME];
    } dead[DEAD_MAX];
    char finding[300];
    struct world_strike strike; /* the last one */
    uint64_t struck_at;
};

static struct world *here; /* there is one in a process */
static world_depart *departing;
struct world_faults world_faults;

/* ---- what the program's link sends through here ---- */

extern struct env *__real_env_real(void);
extern struct contracts *__real_contracts_create(char *ret_text, size_t text_size);
extern struct routes *__real_surface_routes(enum listening listening, const struct contracts *contracts,
                                            char *ret_text, size_t text_size);
extern ssize_t __real_send(int fd, const void *bytes, size_t size, int flags);
extern ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
extern void __real_sim_trace_add(struct scheduler *s, uint32_t what, uint64_t a, uint64_t b);
void __wrap_sim_trace_add(struct scheduler *s, uint32_t what, uint64_t a, uint64_t b);
extern void *__real_pool_take_slow(struct pool *p);
void *__wrap_pool_take_slow(struct pool *p);
extern int __real_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags);
extern int __real_shutdown(int fd, int how);
extern pid_t __real_getpid(void);
struct env *__wrap_env_real(void);
int __wrap_shutdown(int fd, int how);
pid_t __wrap_getpid(void);
ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags);
struct contracts *__wrap_contracts_create(char *ret_text, size_t text_size);
struct routes *__wrap_surface_routes(enum listening listening, const struct contracts *contracts,
                                     char *ret_text, size_t text_size);
enum error __wrap_fetch_begin(const struct fetch_request *request, uint64_t *ret_ref, uint64_t deadline);

struct env *__wrap_env_real(void)
{
    return here && here->sim ? sim_runtime_env(here->sim) : __real_env_real();
}

/* ---- what the server hears of its descriptors ----
 *
 * All who are at the other ends are in this process. So nothing has come since a poller said so unless one of them has done something, or
 * the server has armed one; and most looks need no call of the system. */

static uint64_t stirs = 1; /* by those outside, and by arming */
static uint64_t deeds;     /* sends and shuts of the server */
static struct quiet {
    const struct poller *poller;
    uint64_t since; /* had nothing to say then */
} quiets[POLLERS_MAX];

static struct quiet *quiet_of(const struct poller *poller)
{
    struct quiet *q = quiets;
    while (q < quiets + POLLERS_MAX - 1 && q->poller && q->poller != poller)
        q++;
    if (q->poller != poller)
        *q = (struct quiet){.poller = poller};
    return q;
}

static size_t quiet_wait(struct poller *poller, struct env_event *events, size_t count, uint64_t deadline)
{
    struct quiet *q = quiet_of(poller);
    uint64_t now = stirs;
    if (q->since == now)
        return 0;
    size_t n = __real_env_real()->poller_wait(poller, events, count, deadline);
    q->since = n == 0 ? now : 0;
    return n;
}

static int stirring_arm(struct poller *poller, int fd, uint32_t events, bool once, uint64_t token)
{
    stirs++;
    return __real_env_real()->poller_arm(poller, fd, events, once, token);
}

/* Nobody sleeps who could be woken. */
static void idle_wake(struct poller *poller)
{
    (void)poller;
}

static struct env *descriptors(void)
{
    static struct env env;
    env = *__real_env_real();
    env.poller_wait = quiet_wait;
    env.poller_arm = stirring_arm;
    env.poller_wake = idle_wake;
    return &env;
}

/* What the server has done to its connections: it has sent, shut or closed. Before that nobody outside hears anything new. */
static uint64_t server_deeds(void)
{
    return deeds + disk_closes();
}

ssize_t world_receive(int fd, void *room, size_t size)
{
    static struct deaf {
        int fd;
        uint64_t since; /* there was nothing to hear then */
    } deaf[DEAF_MAX];
    struct deaf *d = &deaf[fd % DEAF_MAX];
    uint64_t now = server_deeds() + 1;
    if (d->fd == fd && d->since == now) {
        errno = EAGAIN;
        return -1;
    }
    ssize_t n = recv(fd, room, size, 0);
    *d = (struct deaf){.fd = fd, .since = n < 0 && errno == EAGAIN ? now : 0};
    stirs += n >= 0;
    return n;
}

void world_hang_up(int fd)
{
    stirs++;
    close(fd);
}

ssize_t world_real_send(int fd, const void *bytes, size_t size, int flags)
{
    stirs++;
    return __real_send(fd, bytes, size, flags);
}

/* How many of so many bytes go; 0: it would have to wait. */
static size_t let_go(size_t size)
{
    if (world_faults.send_waits && dice_chance(&world_faults.dice, world_faults.send_waits))
        return 0;
    if (size > 1 && world_faults.send_halves && dice_chance(&world_faults.dice, world_faults.send_halves))
        return 1 + dice_below(&world_faults.dice, (uint32_t)size - 1);
    return size;
}

ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags)
{
    size_t some = let_go(size);
    deeds++;
    if (some == 0 && size > 0) {
        errno = EAGAIN;
        return -1;
    }
    return __real_send(fd, bytes, some, flags);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
    size_t size = 0;
    for (size_t i = 0; i < message->msg_iovlen; i++)
        size += message->msg_iov[i].iov_len;
    size_t some = let_go(size);
    deeds++;
    if (some == size)
        return __real_sendmsg(fd, message, flags);
    for (size_t i = 0; some && i < message->msg_iovlen; i++) /* a beginning of the first piece that has any */
        if (message->msg_iov[i].iov_len > 0)
            return __real_send(fd, message->msg_iov[i].iov_base,
                               some < message->msg_iov[i].iov_len ? some : message->msg_iov[i].iov_len,
                               flags);
    errno = EAGAIN;
    return -1;
}

int __wrap_shutdown(int fd, int how)
{
    deeds++;
    return __real_shutdown(fd, how);
}

/* Asked at each batch, and a call of the system: one process is one life. */
pid_t __wrap_getpid(void)
{
    static pid_t own;
    if (!here)
        return __real_getpid();
    return own ? own : (own = __real_getpid());
}

/* Messages, states, chunks of arenas: what a scheduler takes once it has used up those that it had at hand. */
void *__wrap_pool_take_slow(struct pool *p)
{
    if (here && here->running && world_faults.memory_after && --world_faults.memory_after == 0) {
        world_faults.memory_failed++;
        here->starved = true;
        warden_starve(&here->warden);
        return NULL;
    }
    return __real_pool_take_slow(p);
}

int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
    if (world_faults.accept_fails && dice_chance(&world_faults.dice, world_faults.accept_fails)) {
        world_faults.accepts_failed++;
        errno = dice_below(&world_faults.dice, 2) ? EMFILE : ECONNABORTED;
        return -1;
    }
    return __real_accept4(fd, address, size, flags);
}

/* ---- births and deaths, for the warden ---- */

/* As it was declared: a name that its starter gives it, or, of a supervisor, its spec's. */
static void tell_birth(struct world *w, struct scheduler *s, actor_pid pid, actor_pid parent)
{
    struct actor *a = &s->actors[pid_slot(pid)];
    const struct spawn_birth *b =
        a->birth ? (const struct spawn_birth *)(const void *)a->birth->payload : NULL;
    struct supervisor_spec spec = {.name = NULL};
    struct warden_birth birth = {.pid = pid, .parent = parent, .class = a->class->name, .name = ""};
    if (b && b->name_size)
        birth.name = (const char *)b->bytes;
    if (a->class == &supervisor_class && b && b->args_size == sizeof(spec)) {
        memcpy(&spec, b->bytes + b->name_size, sizeof(spec));
        birth.supervisor = true;
        birth.dynamic = spec.strategy == DYNAMIC;
        birth.name = spec.name ? spec.name : "";
        birth.intensity = spec.intensity || spec.period_ms ? (uint32_t)spec.intensity : 1;
        birth.period_ns =
            spec.intensity || spec.period_ms ? (uint64_t)spec.period_ms * NS_PER_MS : 5 * NS_PER_S;
    }
    if (w->options.loud)
        fprintf(stderr, "%llu.%06llu %llx begins: %s %s\n", (unsigned long long)(s->now / NS_PER_S),
                (unsigned long long)(s->now / 1000 % 1000000), (unsigned long long)pid, birth.class,
                birth.name);
    warden_born(&w->warden, s->now, &birth);
}

static enum warden_end end_of(enum reason_kind kind)
{
    if (kind == REASON_QUOTA && here->starved)
        return WARDEN_NORMAL; /* who can't do without memory ends, and comes back */
    switch (kind) {
    case REASON_SHUTDOWN:
        return WARDEN_SHUTDOWN;
    case REASON_KILLED:
        return WARDEN_KILLED;
    case REASON_CRASH:
    case REASON_OVERRUN:
    case REASON_QUOTA:
    case REASON_BAD_RETURN:
        return WARDEN_FAULT;
    default:
        return WARDEN_NORMAL;
    }
}

static void tell_death(struct world *w, struct scheduler *s, actor_pid pid, enum reason_kind kind)
{
    for (uint32_t i = 0; i < w->warden.actors_count && w->dead_count < DEAD_MAX; i++)
        if (w->warden.actors[i].pid == pid && w->warden.actors[i].name[0]) {
            w->dead[w->dead_count].pid = pid;
            memcpy(w->dead[w->dead_count++].name, w->warden.actors[i].name, WARDEN_NAME);
        }
    if (w->options.loud)
        fprintf(stderr, "%llu.%06llu %llx ends: %s\n", (unsigned long long)(s->now / NS_PER_S),
                (unsigned long long)(s->now / 1000 % 1000000), (unsigned long long)pid, reason_name(kind));
    warden_died(&w->warden, s->now, pid, end_of(kind));
}

void __wrap_sim_trace_add(struct scheduler *s, uint32_t what, uint64_t a, uint64_t b)
{
    __real_sim_trace_add(s, what, a, b);
    if (here && what == TRACE_BIRTH)
        tell_birth(here, s, a, b);
    if (here && what == TRACE_DEATH)
        tell_death(here, s, a, (enum reason_kind)b);
}

const char *world_finding(struct world *w)
{
    const struct names *names = sim_runtime(w->sim)->names;
    for (uint32_t i = 0; i < w->dead_count; i++)
        if (names_lookup(names, w->dead[i].name, strlen(w->dead[i].name)) == w->dead[i].pid)
            snprintf(w->finding, sizeof(w->finding), "%s is dead, and still found by its name (A3)",
                     w->dead[i].name);
    w->dead_count = 0;
    return w->finding[0] ? w->finding : warden_finding(&w->warden);
}

struct warden *world_warden(struct world *w)
{
    return &w->warden;
}

static struct {
    struct contracts *contracts;
    struct routes *routes[LISTENING_COUNT];
} prepared;

bool world_prepare(char *why, size_t size)
{
    ground_lay();
    prepared.contracts = __real_contracts_create(why, size);
    for (uint32_t i = 0; i < LISTENING_COUNT; i++)
        if (!prepared.contracts ||
            !(prepared.routes[i] = __real_surface_routes(i, prepared.contracts, why, size)))
            return false;
    return true;
}

struct contracts *__wrap_contracts_create(char *ret_text, size_t text_size)
{
    return prepared.contracts ? prepared.contracts : __real_contracts_create(ret_text, text_size);
}

struct routes *__wrap_surface_routes(enum listening listening, const struct contracts *contracts,
                                     char *ret_text, size_t text_size)
{
    return contracts == prepared.contracts && prepared.routes[listening]
               ? prepared.routes[listening]
               : __real_surface_routes(listening, contracts, ret_text, text_size);
}

void world_on_fetch(world_depart *depart)
{
    departing = depart;
}

enum error __wrap_fetch_begin(const struct fetch_request *request, uint64_t *ret_ref, uint64_t deadline)
{
    static uint64_t ref;
    (void)deadline;
    *ret_ref = ++ref;
    if (departing)
        departing(ref, actor_self(), request);
    return OK;
}

void world_fetched(struct world *w, actor_pid to, const struct fetch_answer *answer)
{
    (void)runtime_post(sim_runtime(w->sim), to, FETCH_DONE, answer, sizeof(*answer));
}

/* ---- the log ---- */

static void take_line(const char *line, size_t size)
{
    struct world *w = here;
    if (!w)
        return;
    snprintf(w->lines[w->lines_count++ % LINES], LINE_SIZE, "%.*s", (int)size, line);
    if (w->options.loud)
        fprintf(stderr, "%.*s\n", (int)size, line);
}

const char *world_log(const struct world *w, uint32_t number)
{
    uint32_t first = w->lines_count > LINES ? w->lines_count - LINES : 0;
    return first + number < w->lines_count ? w->lines[(first + number) % LINES] : NULL;
}

/* ---- the axe: one on each scheduler, beside the tree ---- */

enum { AXE_STRIKE = 1, AXE_FLOOD, AXE_NOISE = 0x00e100d0, NOISE_MAX = 1200, WATCHED_MAX = 16, YIELDS = 6 };
static uint32_t flooded;

struct axe {
    actor_pid pids[LISTED_MAX];
    uint32_t watched_count;
    struct watched {
        actor_pid pid;
        uint64_t ref;
        bool told, over;
        char name[WARDEN_NAME];
    } watched[WATCHED_MAX];
};

static size_t list_others(struct axe *axe)
{
    uint32_t cursor = 0;
    size_t count = 0, kept = 0;
    uint32_t scheduler = (uint32_t)actor_scheduler_of(actor_self());
    do
        count += runtime_actors(scheduler, &cursor, axe->pids + count, LISTED_MAX - count);
    while (cursor && count < LISTED_MAX);
    for (size_t i = 0; i < count; i++)
        if (axe->pids[i] != actor_self() && axe->pids[i] != here->root)
            axe->pids[kept++] = axe->pids[i];
    return kept;
}

/* There are so many of these that the others would never be hit. */
static bool is_one_of_many(const char *class)
{
    return strcmp(class, "shard") == 0 || strcmp(class, "outbound") == 0 || strcmp(class, "relay") == 0;
}

/* One of those that live here; 0: nobody. */
static actor_pid choose_one(struct axe *axe, uint64_t draw, struct actor_info *info)
{
    struct dice dice = dice_of(draw);
    size_t count = list_others(axe);
    for (int tries = 0; count > 0 && tries < CHOICES_MAX; tries++) {
        actor_pid pid = axe->pids[dice_below(&dice, (uint32_t)count)];
        if (actor_inspect(pid, info, DEADLINE_NONE) == OK &&
            (!is_one_of_many(info->class_name) || tries + 1 == CHOICES_MAX || dice_below(&dice, 12) == 0))
            return pid;
    }
    return 0;
}

/* It is on our own scheduler, so it handles nothing meanwhile: what it takes is what it has room for (A5). */
static void flood(struct axe *axe, actor_pid pid)
{
    struct scheduler *s = scheduler_current;
    const struct actor *a = actor_of(s, pid);
    uint32_t sent = 0, room = a ? a->mail_capacity : 0;
    bool drops = a && a->class->mailbox_policy == MAILBOX_DROP_OLDEST;
    (void)axe;
    while (sent < NOISE_MAX && actor_cast(pid, AXE_NOISE, NULL, 0) == OK)
        sent++;
    if (a && !drops && sent > room)
        snprintf(here->finding, sizeof(here->finding), "a mailbox for %u took %u messages (A5)", room, sent);
    flooded += sent < NOISE_MAX;
    if (here->options.loud)
        fprintf(stderr, "%llx is flooded with %u\n", (unsigned long long)pid, sent);
}

/* Who watches it is told of its end once, when nobody finds it any more, and not at all when it watches no longer (A1, A3). */
static void watch(struct axe *axe, actor_pid pid)
{
    struct watched *v = &axe->watched[axe->watched_count++ % WATCHED_MAX];
    *v = (struct watched){.pid = pid, .ref = actor_monitor(pid, axe->watched_count - 1)};
    for (uint32_t i = 0; i < here->warden.actors_count; i++)
        if (here->warden.actors[i].pid == pid)
            memcpy(v->name, here->warden.actors[i].name, sizeof(v->name));
}

static void watch_no_longer(struct axe *axe)
{
    struct watched *v = &axe->watched[(axe->watched_count - 1) % WATCHED_MAX];
    for (int i = 0; i < YIELDS; i++) /* so that it is told before */
        actor_yield();
    actor_demonitor(v->ref);
    v->over = true;
}

static void hear(struct axe *axe, const struct message_down *down)
{
    struct watched *v = &axe->watched[down->tag % WATCHED_MAX];
    if (down->tag + WATCHED_MAX < axe->watched_count || v->pid != down->pid)
        return; /* of too long ago */
    if (v->told || v->over)
        snprintf(here->finding, sizeof(here->finding), "an end is told %s (A1)",
                 v->told ? "twice" : "to who watches no longer");
    if (v->name[0] && actor_whereis(v->name) == v->pid)
        snprintf(here->finding, sizeof(here->finding),
                 "%s has ended, and is found by its name by who hears of it (A3)", v->name);
    v->told = true;
}

static void strike(struct axe *axe, actor_pid pid, const struct actor_info *info, bool forget)
{
    struct world_strike *s = &here->strike;
    uint64_t now = actor_now();
    snprintf(s->class, sizeof(s->class), "%s", info->class_name);
    s->together = here->struck_at == now;
    s->busy = info->mailbox_depth > 0;
    s->newborn = warden_age(&here->warden, pid, now) == 0;
    here->struck_at = now;
    watch(axe, pid);
    warden_struck(&here->warden, now, pid);
    actor_kill(pid);
    if (forget)
        watch_no_longer(axe);
}

static enum actor_step axe_handle(void *state, struct message *m)
{
    struct axe *axe = state;
    struct actor_info info;
    if (m->type == MESSAGE_DOWN)
        hear(axe, (const struct message_down *)(const void *)m->payload);
    const uint64_t *draw =
        m->type == AXE_STRIKE || m->type == AXE_FLOOD ? message_body(m, sizeof(*draw)) : NULL;
    actor_pid pid = draw ? choose_one(state, *draw, &info) : 0;
    if (pid && m->type == AXE_FLOOD)
        flood(axe, pid);
    else if (pid)
        strike(axe, pid, &info, *draw % 3 == 0);
    return ACTOR_CONTINUE;
}

static const struct actor_class axe_class = {
    .name = "axe", .state_size = sizeof(struct axe), .handle = axe_handle, .stack_size = 64 * 1024};

static void send_axe(struct world *w, uint32_t what, uint64_t draw)
{
    actor_pid axe = w->axes[(draw >> 32) % w->axes_count];
    (void)runtime_post(sim_runtime(w->sim), axe, what, &draw, sizeof(draw));
}

void world_kill_one(struct world *w, uint64_t draw)
{
    send_axe(w, AXE_STRIKE, draw);
}

void world_flood_one(struct world *w, uint64_t draw)
{
    send_axe(w, AXE_FLOOD, draw);
}

uint32_t world_flooded(struct world *w)
{
    uint32_t count = flooded;
    (void)w;
    flooded = 0;
    return count;
}

bool world_struck(struct world *w, struct world_strike *ret)
{
    *ret = w->strike;
    w->strike.class[0] = 0;
    return ret->class[0] != 0;
}

static bool look_into(void *context, const char *name, size_t length, size_t count)
{
    struct world *w = context;
    static uint64_t pids[LISTED_MAX];
    size_t members = groups_members(sim_runtime(w->sim)->groups, name, length, pids, LISTED_MAX);
    (void)count;
    for (size_t i = 0; i < members && i < LISTED_MAX; i++)
        if (!warden_knows(&w->warden, pids[i]))
            snprintf(w->finding, sizeof(w->finding), "the group %s has a member that is dead (A3)", name);
    return true;
}

void world_rest(struct world *w)
{
    groups_each(sim_runtime(w->sim)->groups, look_into, w);
    warden_rest(&w->warden);
}

/* ---- making one ---- */

static bool refuse(char *why, size_t size, const char *what)
{
    snprintf(why, size, "%s", what);
    return false;
}

static bool left_out(const struct topology_row *row)
{
    return row->class == &signals_class || row->class == &otlp_class || row->class == &keyring_class ||
           row->class == &notify_class;
}

static void choose_rows(struct blueprint *b)
{
    b->rows_count = 0;
    for (size_t i = 0; i < topology_count && b->rows_count < ROWS_MAX; i++)
        if (!left_out(&topology_rows[i]))
            b->rows[b->rows_count++] = topology_rows[i];
}

static bool load_settings(struct blueprint *b, const struct world_options *options, char *why, size_t size)
{
    static char *const nothing[] = {NULL};
    const char *argv[ARGS_OWN + WORLD_ARGS_MAX + 1] = {
        "coppice",       "serve", "--config",          b->config,      "--store-dir",  b->store_dir,
        "--http-listen", b->http, "--operator-listen", b->operator_at, "--schedulers", b->schedulers};
    int argc = ARGS_OWN;
    for (uint32_t i = 0; i < WORLD_ARGS_MAX && options->args[i]; i++)
        argv[argc++] = options->args[i];
    return settings_load(&b->settings, argc, (char *const *)(uintptr_t)argv, nothing, why, size) == 0;
}

static bool name_places(struct blueprint *b, const struct world_options *options, char *why, size_t size)
{
    const char *dir = options->dir;
    snprintf(b->http, sizeof(b->http), "unix:%s/c", dir);
    snprintf(b->operator_at, sizeof(b->operator_at), "unix:%s/o", dir);
    snprintf(b->store_dir, sizeof(b->store_dir), "%s", options->store_dir);
    snprintf(b->config, sizeof(b->config), "%s/f", dir);
    snprintf(b->schedulers, sizeof(b->schedulers), "%u", options->schedulers);
    b->address.sun_family = AF_UNIX;
    int length = snprintf(b->address.sun_path, sizeof(b->address.sun_path), "%s/c", dir);
    int fd = open(b->config, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    bool made = fd >= 0 && write(fd, "{}\n", 3) == 3;
    close(fd);
    return made && (size_t)length < sizeof(b->address.sun_path) ? true
                                                                : refuse(why, size, "no place for a socket");
}

static bool open_store(struct world *w, char *why, size_t size)
{
    const struct world_store *s = &w->options.store;
    const struct store_options options = {.environment = {.dir = blueprint.store_dir,
                                                          .map = s->map,
                                                          .map_max = s->map_max,
                                                          .step = s->step,
                                                          .reserve = s->reserve},
                                          .env = sim_runtime_env(w->sim),
                                          .ledger_max = s->ledger_max,
                                          .view_age_ns = s->view_age_ns};
    return store_open(&options, &w->store, why, size) == OK;
}

static bool spawn_all(struct world *w, char *why, size_t size)
{
    const struct spawn_options root = plan_root(blueprint.plan);
    struct runtime *rt = sim_runtime(w->sim);
    if (runtime_spawn(rt, &root, &w->root) != OK)
        return refuse(why, size, "the root could not be started");
    for (uint32_t i = 0; i <= w->options.schedulers && i < AXES_MAX; i++) /* the last is the writer's */
        if (runtime_spawn(rt, &(struct spawn_options){.class = &axe_class, .scheduler = SPAWN_ON(i)},
                          &w->axes[w->axes_count++]) != OK)
            return refuse(why, size, "no axe");
    return true;
}

static bool make_sim(struct world *w)
{
    const struct world_options *o = &w->options;
    w->sim = sim_create(&(struct sim_options){
        .seed = o->seed,
        .schedulers = o->schedulers,
        .order = o->order,
        .start_ns = o->start_ns,
        .descriptors = descriptors(),
        .runtime = {.dedicated = 1, .actors_max = 4096, .names_max = 4096, .log = take_line}});
    if (w->sim)
        sim_clock_jump(w->sim, o->wall_ns);
    return w->sim != NULL;
}

/* As boot_serve has it. */
static bool make(struct world *w, char *why, size_t size)
{
    if (!make_sim(w))
        return false;
    const struct options *o = &blueprint.settings.options;
    if (sockets_open(&w->sockets, o->http_listen, o->operator_listen, (uint32_t)o->schedulers, why, size))
        return false;
    w->fronts = fronts_create(&blueprint.settings, &w->sockets, plan_rows(blueprint.plan), why, size);
    if (!w->fronts || !open_store(w, why, size))
        return false;
    store_install(w->store);
    if (!fronts_open(w->fronts, &blueprint.settings, why, size))
        return false;
    plan_finish(blueprint.plan, w->fronts, &w->sockets);
    return spawn_all(w, why, size);
}

bool world_configure(const struct world_options *options, char *why, size_t size)
{
    struct blueprint *b = &blueprint;
    plan_destroy(b->plan);
    b->plan = NULL;
    if (!name_places(b, options, why, size) || !load_settings(b, options, why, size))
        return false;
    domains_configure(&b->settings.options);
    choose_rows(b);
    b->plan = plan_create(&b->settings.options, b->rows, b->rows_count);
    return b->plan || refuse(why, size, "no plan");
}

struct world *world_open(const struct world_options *options, char *why, size_t size)
{
    static struct world only; /* never cleared: most of it is never used */
    here = &only;
    here->options = *options;
    snprintf(why, size, "it can't be made");
    return make(here, why, size) ? here : NULL;
}

/* ---- running ---- */

struct sim *world_sim(struct world *w)
{
    return w->sim;
}

struct store *world_store(struct world *w)
{
    return w->store;
}

bool world_step(struct world *w)
{
    w->running = true;
    bool any = sim_settle(w->sim, 1) == 1;
    w->running = false;
    return any;
}

void world_wait(struct world *w, uint64_t until)
{
    w->running = true;
    (void)sim_run_until(w->sim, until, 1);
    w->running = false;
}

int world_exit_status(const struct world *w)
{
    return sim_exit_status(w->sim);
}

uint64_t world_now(const struct world *w)
{
    return sim_now(w->sim);
}

int world_connect(struct world *w)
{
    (void)w;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    stirs++;
    if (fd >= 0 && connect(fd, (struct sockaddr *)&blueprint.address, sizeof(blueprint.address)) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}
