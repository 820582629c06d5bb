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

#include "config/domains.h"
#include "config/fronts.h"
#include "config/notify.h"
#include "config/plan.h"
#include "config/settings.h"
#include "config/signals.h"
#include "config/sockets.h"
#include "http/keyring.h"
#include "http/otlp.h"
#include "runtime/runtime.h"

enum {
    ROWS_MAX = 64,
    LINES = 128,
    LINE_SIZE = 400,
    AXES_MAX = 8,
    LISTED_MAX = 512,
    ARGS_OWN = 12,
    CHOICES_MAX = 24,
};

struct axe_note {
    char class[WORLD_CLASS_MAX];
};

struct world {
    struct world_options options;
    struct settings settings;
    struct sockets sockets;
    struct plan *plan;
    struct fronts *fronts;
    struct sim *sim;
    struct store *store;
    size_t rows_count;
    struct topology_row rows[ROWS_MAX];
    actor_pid root, axes[AXES_MAX];
    uint32_t axes_count;
    char http[WORLD_PATH_MAX], operator_at[WORLD_PATH_MAX], store_dir[WORLD_PATH_MAX], config[WORLD_PATH_MAX];
    char schedulers[16];
    struct sockaddr_un address;
    uint32_t lines_count;
    char lines[LINES][LINE_SIZE];
};

static struct world *here; /* there is one in a process */
static world_depart *departing;
struct world_faults world_faults;

/* ---- what the program's link sends through here ---- */

extern struct env *__real_env_real(void);
extern struct contracts *__real_contracts_create(char *ret_text, size_t text_size);
extern ssize_t __real_send(int fd, const void *bytes, size_t size, int flags);
extern ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
extern int __real_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags);
struct env *__wrap_env_real(void);
ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags);
struct contracts *__wrap_contracts_create(char *ret_text, size_t text_size);
enum error __wrap_fetch_begin(const struct fetch_request *request, uint64_t *ret_ref, uint64_t deadline);

struct env *__wrap_env_real(void)
{
    return here && here->sim ? sim_runtime_env(here->sim) : __real_env_real();
}

ssize_t world_real_send(int fd, const void *bytes, size_t size, int flags)
{
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

int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
    if (world_faults.accept_fails && dice_chance(&world_faults.dice, world_faults.accept_fails)) {
        world_faults.accepts_failed++;
        errno = dice_below(&world_faults.dice, 2) ? EMFILE : ECONNABORTED;
        return -1;
    }
    return __real_accept4(fd, address, size, flags);
}

static struct contracts *prepared;

bool world_prepare(char *why, size_t size)
{
    prepared = __real_contracts_create(why, size);
    return prepared != NULL;
}

struct contracts *__wrap_contracts_create(char *ret_text, size_t text_size)
{
    return prepared ? prepared : __real_contracts_create(ret_text, text_size);
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

enum { AXE_STRIKE = 1 };
static char killed[WORLD_CLASS_MAX];

struct axe {
    actor_pid pids[LISTED_MAX];
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

static enum actor_step axe_handle(void *state, struct message *m)
{
    struct axe *axe = state;
    struct actor_info info;
    const uint64_t *draw = m->type == AXE_STRIKE ? message_body(m, sizeof(*draw)) : NULL;
    if (!draw)
        return ACTOR_CONTINUE;
    struct dice dice = dice_of(*draw);
    size_t count = list_others(axe);
    for (int tries = 0; count > 0 && tries < CHOICES_MAX; tries++) {
        actor_pid pid = axe->pids[dice_below(&dice, (uint32_t)count)];
        if (actor_inspect(pid, &info, DEADLINE_NONE) != OK ||
            (is_one_of_many(info.class_name) && tries + 1 < CHOICES_MAX && dice_below(&dice, 12)))
            continue;
        snprintf(killed, sizeof(killed), "%s", info.class_name);
        actor_kill(pid);
        break;
    }
    return ACTOR_CONTINUE;
}

static const struct actor_class axe_class = {
    .name = "axe", .state_size = sizeof(struct axe), .handle = axe_handle, .stack_size = 64 * 1024};

void world_kill_one(struct world *w, uint64_t draw)
{
    actor_pid axe = w->axes[(draw >> 32) % w->axes_count];
    (void)runtime_post(sim_runtime(w->sim), axe, AXE_STRIKE, &draw, sizeof(draw));
}

void world_killed(struct world *w, char ret_class[WORLD_CLASS_MAX])
{
    (void)w;
    memcpy(ret_class, killed, sizeof(killed));
    killed[0] = 0;
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

static void choose_rows(struct world *w)
{
    for (size_t i = 0; i < topology_count && w->rows_count < ROWS_MAX; i++)
        if (!left_out(&topology_rows[i]))
            w->rows[w->rows_count++] = topology_rows[i];
}

static bool load_settings(struct world *w, char *why, size_t size)
{
    static char *const nothing[] = {NULL};
    const char *argv[ARGS_OWN + WORLD_ARGS_MAX + 1] = {
        "coppice",       "serve", "--config",          w->config,      "--store-dir",  w->store_dir,
        "--http-listen", w->http, "--operator-listen", w->operator_at, "--schedulers", w->schedulers};
    int argc = ARGS_OWN;
    for (uint32_t i = 0; i < WORLD_ARGS_MAX && w->options.args[i]; i++)
        argv[argc++] = w->options.args[i];
    return settings_load(&w->settings, argc, (char *const *)(uintptr_t)argv, nothing, why, size) == 0;
}

static bool name_places(struct world *w, char *why, size_t size)
{
    const char *dir = w->options.dir;
    snprintf(w->http, sizeof(w->http), "unix:%s/c", dir);
    snprintf(w->operator_at, sizeof(w->operator_at), "unix:%s/o", dir);
    snprintf(w->store_dir, sizeof(w->store_dir), "%s", w->options.store_dir);
    snprintf(w->config, sizeof(w->config), "%s/f", dir);
    snprintf(w->schedulers, sizeof(w->schedulers), "%u", w->options.schedulers);
    w->address.sun_family = AF_UNIX;
    int length = snprintf(w->address.sun_path, sizeof(w->address.sun_path), "%s/c", dir);
    int fd = open(w->config, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    bool made = fd >= 0 && write(fd, "{}\n", 3) == 3;
    close(fd);
    return made && (size_t)length < sizeof(w->address.sun_path) ? true
                                                                : refuse(why, size, "no place for a socket");
}

static bool open_store(struct world *w, char *why, size_t size)
{
    const struct world_store *s = &w->options.store;
    const struct store_options options = {.environment = {.dir = w->store_dir,
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
    const struct spawn_options root = plan_root(w->plan);
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
        .descriptors = __real_env_real(),
        .runtime = {.dedicated = 1, .actors_max = 4096, .names_max = 4096, .log = take_line}});
    if (w->sim)
        sim_clock_jump(w->sim, o->wall_ns);
    return w->sim != NULL;
}

/* As boot_serve has it. */
static bool make(struct world *w, char *why, size_t size)
{
    if (!make_sim(w) || !name_places(w, why, size) || !load_settings(w, why, size))
        return false;
    const struct options *o = &w->settings.options;
    if (sockets_open(&w->sockets, o->http_listen, o->operator_listen, (uint32_t)o->schedulers, why, size))
        return false;
    domains_configure(o);
    choose_rows(w);
    w->plan = plan_create(o, w->rows, w->rows_count);
    w->fronts = w->plan ? fronts_create(&w->settings, &w->sockets, plan_rows(w->plan), why, size) : NULL;
    if (!w->fronts || !open_store(w, why, size))
        return false;
    store_install(w->store);
    if (!fronts_open(w->fronts, &w->settings, why, size))
        return false;
    plan_finish(w->plan, w->fronts, &w->sockets);
    return spawn_all(w, why, size);
}

struct world *world_open(const struct world_options *options, char *why, size_t size)
{
    here = calloc(1, sizeof(*here));
    if (!here)
        return NULL;
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
    return sim_settle(w->sim, 1) == 1;
}

void world_wait(struct world *w, uint64_t until)
{
    (void)sim_run_until(w->sim, until, 1);
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
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&w->address, sizeof(w->address)) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}
