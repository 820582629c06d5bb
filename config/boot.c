#include "config/boot.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "config/log.h"
#include "config/plan.h"
#include "http/address.h"
#include "runtime/runtime.h"

/* ---- checks ---- */

static enum error refused(const char *component, const char *text)
{
    LOG(LOG_ERROR, "boot", "failure.boot_config", {"component", component, 0}, {"failure_class", "fatal", 0},
        {"reason", text, 0}, {"boot_stage", "check", 0});
    return ERR_INVALID;
}

enum error boot_check(const struct boot *boot, char *ret_text, size_t text_size)
{
    struct adapters_args adapters = {0};
    if (topology_check(boot->rows, boot->rows_count, ret_text, text_size) != OK)
        return refused("topology", ret_text);
    if (!plan_adapters(boot->options->adapters, &adapters, ret_text, text_size))
        return refused("runtime", ret_text);
    return OK;
}

/* ---- signals ---- */

static struct runtime *running;

static void stop(int signal)
{
    (void)signal;
    runtime_stop(running);
}

static void signals_install(struct runtime *rt)
{
    struct sigaction action = {.sa_handler = stop, .sa_flags = SA_RESTART};
    running = rt;
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
}

static void signals_restore(void)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    running = NULL;
}

/* ---- from start to end ---- */

static struct runtime *create(const struct options *o)
{
    char text[512];
    struct runtime *rt = runtime_create(
        &(struct runtime_options){
            .schedulers = (uint32_t)o->schedulers,
            .actors_max = (uint32_t)o->actors_max,
            .message_bytes_max = o->message_memory,
            .slice_ns = o->slice,
            .runaway_ns = o->runaway,
            .no_preemption = !o->preemption,
            .no_containment = !o->containment,
            .log = log_line,
        },
        text, sizeof(text));
    if (!rt)
        LOG(LOG_ERROR, "boot", "the runtime could not be created", {"reason", text, 0});
    return rt;
}

static int run(struct runtime *rt, const struct boot *boot, const struct plan *plan)
{
    char address[ADDRESS_TEXT_MAX];
    struct runtime_stats stats;
    const struct spawn_options root = plan_root(plan);
    enum error e = runtime_spawn(rt, &root, NULL);
    if (e != OK) {
        LOG(LOG_ERROR, "boot", "the root could not be started", {"err", error_name(e), 0});
        return EXIT_FAILURE;
    }
    address_text(boot->listening, address);
    runtime_stats(rt, &stats);
    LOG(LOG_INFO, "boot", "started", {"version", COPPICE_VERSION, 0}, {"pid", NULL, getpid()},
        {"operator", address, 0}, {"schedulers", NULL, stats.schedulers},
        {"subsystems", NULL, (int64_t)boot->rows_count});
    int status = runtime_run(rt);
    LOG(status ? LOG_ERROR : LOG_INFO, "boot", "ended", {"status", NULL, status});
    return status;
}

int boot_serve(void *arg)
{
    const struct boot *boot = arg;
    struct plan *plan = plan_create(boot->options, boot->rows, boot->rows_count, boot->listening);
    struct runtime *rt = plan ? create(boot->options) : NULL;
    int status = plan ? EXIT_CONFIG : EXIT_FAILURE;
    if (rt) {
        log_follow(runtime_telemetry(rt));
        signals_install(rt);
        status = run(rt, boot, plan);
        signals_restore();
        runtime_destroy(rt);
    }
    plan_destroy(plan);
    return status;
}
