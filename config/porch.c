#include "config/porch.h"

#include <stdio.h>

#include "config/clock.h"
#include "config/log.h"
#include "config/notify.h"
#include "config/opening.h"
#include "config/signals.h"
#include "http/listener.h"
#include "runtime/runtime.h"
#include "runtime/supervisor.h"

#define CONNECTIONS "porch.connections"

enum { OTHERS = 2, LISTENERS_MAX = 1 + SOCKETS_ADDRESSES_MAX * SOCKETS_SHARES_MAX, ID_SIZE = 16 };

/* Everything that the small tree borrows; there is one porch in a process. */
static struct porch {
    struct front fronts[LISTENING_COUNT];
    struct supervisor_spec root, connections;
    unsigned char root_args[SUPERVISOR_ARGS_MAX], connections_args[SUPERVISOR_ARGS_MAX];
    struct listener_args listeners[LISTENERS_MAX];
    char ids[LISTENERS_MAX][ID_SIZE];
    struct child_spec children[OTHERS + LISTENERS_MAX]; /* waiter, connections, then who starts these */
    size_t listeners_count;
} porch;

static void plan_listener(const struct socket_set *set, uint32_t share, struct front *front, bool tls)
{
    size_t n = porch.listeners_count++;
    snprintf(porch.ids[n], ID_SIZE, "listener:%zu", n);
    porch.listeners[n] = (struct listener_args){.listening = set->fds[share],
                                                .tls = tls && !set->address.local_file,
                                                .front = front,
                                                .keep = true, /* the server's, which comes next */
                                                .connections = CONNECTIONS,
                                                .drain_ms = PORCH_DRAIN_MS};
    porch.children[OTHERS + n] = (struct child_spec){.id = porch.ids[n],
                                                     .class = &listener_class,
                                                     .args = &porch.listeners[n],
                                                     .args_size = sizeof(porch.listeners[n])};
}

static void plan(const struct options *o, const struct sockets *sockets, struct fronts *fronts)
{
    porch = (struct porch){.listeners_count = 0};
    for (size_t i = 0; i < LISTENING_COUNT; i++)
        fronts_porch(fronts, (enum listening)i, &porch.fronts[i]);
    plan_listener(&sockets->operator_set, 0, &porch.fronts[LISTENING_OPERATOR], false);
    for (size_t a = 0; a < sockets->clients_count; a++)
        for (uint32_t n = 0; n < sockets->clients[a].fds_count; n++)
            plan_listener(&sockets->clients[a], n, &porch.fronts[LISTENING_CLIENT],
                          o->tls_certificate[0] != 0);
    porch.connections = (struct supervisor_spec){.name = CONNECTIONS,
                                                 .register_name = true,
                                                 .strategy = DYNAMIC,
                                                 .intensity = 30,
                                                 .period_ms = 60000,
                                                 .max_children = PORCH_CONNECTIONS_MAX};
    porch.children[0] = (struct child_spec){.id = "waiter", .class = &notify_waiter_class};
    porch.children[1] =
        (struct child_spec){.id = CONNECTIONS,
                            .class = &supervisor_class,
                            .type = CHILD_SUPERVISOR,
                            .args = porch.connections_args,
                            .args_size = supervisor_args(&porch.connections, porch.connections_args)};
    porch.root = (struct supervisor_spec){.name = "porch",
                                          .intensity = 30,
                                          .period_ms = 60000,
                                          .children = porch.children,
                                          .children_count = OTHERS + porch.listeners_count,
                                          .root = true};
    (void)supervisor_args(&porch.root, porch.root_args);
}

static struct runtime *create(const struct options *o)
{
    char text[512];
    struct runtime *rt = runtime_create(&(struct runtime_options){.env = clock_here(),
                                                                  .schedulers = 1,
                                                                  .slice_ns = o->slice,
                                                                  .runaway_ns = o->runaway,
                                                                  .no_preemption = !o->preemption,
                                                                  .no_containment = !o->containment,
                                                                  .log = log_line},
                                        text, sizeof(text));
    const struct spawn_options root = {
        .class = &supervisor_class, .args = porch.root_args, .args_size = sizeof(porch.root)};
    if (rt && runtime_spawn(rt, &root, NULL) == OK)
        return rt;
    LOG(LOG_WARN, "boot", "nobody answers while the store is being opened", {"reason", rt ? "" : text, 0});
    if (rt)
        runtime_destroy(rt);
    return NULL;
}

static void opened(void *arg)
{
    runtime_stop(arg);
}

/* Without descriptors or memory for it the server starts all the same. */
bool porch_serve(const struct settings *settings, const struct sockets *sockets, struct fronts *fronts)
{
    plan(&settings->options, sockets, fronts);
    struct runtime *rt = create(&settings->options);
    if (!rt)
        return true;
    char clients[SOCKETS_CLIENTS_TEXT_MAX];
    LOG(LOG_INFO, "boot", "the store is still being opened; the probes answer",
        {"operator", sockets->operator_set.text, 0}, {"client", sockets_clients(sockets, clients), 0});
    signals_serve(rt);
    opening_then(opened, rt);
    (void)runtime_run(rt);
    opening_then(NULL, NULL);
    signals_serve(NULL);
    bool stopped = signals_stopped(); /* one that comes later is the server's, which has it at its start */
    runtime_destroy(rt);
    return !stopped;
}
