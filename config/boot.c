#define _GNU_SOURCE /* environ */
#include "config/boot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/clock.h"
#include "config/domains.h"
#include "config/log.h"
#include "config/notify.h"
#include "config/opening.h"
#include "config/output.h"
#include "config/outside.h"
#include "config/plan.h"
#include "config/porch.h"
#include "config/reload.h"
#include "config/signals.h"
#include "http/catalogue.h"
#include "runtime/runtime.h"
#include "store/store.h"

/* ---- checks ---- */

static enum error refused(const char *component, const char *text)
{
    LOG(LOG_ERROR, "boot", "failure.boot_config", {"component", component, 0}, {"failure_class", "fatal", 0},
        {"reason", text, 0}, {"boot_stage", "check", 0},
        {"error_code", catalogue_row(ERROR_RFA_CONFIG_INVALID)->code, 0});
    return ERR_INVALID;
}

enum error boot_check(const struct boot *boot, char *ret_text, size_t text_size)
{
    struct tls_context *tls = NULL;
    if (topology_check(boot->rows, boot->rows_count, ret_text, text_size) != OK)
        return refused("topology", ret_text);
    if (!outside_check(&boot->settings->options, environ, &tls, ret_text, text_size))
        return refused("runtime", ret_text);
    if (tls)
        tls_context_release(tls);
    return OK;
}

/* ---- from start to end ---- */

/* The line of the log, and the sentence behind it. */
static int failed(int status, const char *message, const char *why)
{
    LOG(LOG_ERROR, "boot", message, {"reason", why, 0});
    return output_complain(status, "", why);
}

/* The same, of what the settings say and can't be had. */
static int unusable(const char *message, const char *why)
{
    LOG(LOG_ERROR, "boot", message, {"reason", why, 0},
        {"error_code", catalogue_row(ERROR_RFA_CONFIG_INVALID)->code, 0});
    return output_refuse_settings(why);
}

/* NULL: it was told, with advice by the names that settings and limits have for an operator. */
static struct runtime *create(const struct options *o)
{
    char text[256], why[512];
    struct runtime *rt = runtime_create(
        &(struct runtime_options){
            .env = clock_here(),
            .schedulers = (uint32_t)o->schedulers,
            .dedicated = 1, /* the store's writer stands still while the disk syncs */
            .actors_max = (uint32_t)o->actors_max,
            .message_bytes_max = o->message_memory,
            .slice_ns = o->slice,
            .runaway_ns = o->runaway,
            .no_preemption = !o->preemption,
            .no_containment = !o->containment,
            .log = log_line,
            .logs = log_wants,
        },
        text, sizeof(text));
    if (!rt) {
        snprintf(why, sizeof(why),
                 "%s; lower actors.max, or let this process have more (ulimit -v and -n, LimitAS= and "
                 "LimitNOFILE=)",
                 text);
        (void)failed(EXIT_SYSTEM, "the runtime could not be created", why);
    }
    return rt;
}

/* JOB-356: also for whoever doesn't ask for readiness. */
static void tell_workers(const struct options *o)
{
    if (o->workers_count == 0 && !o->workers_outside)
        LOG(LOG_WARN, "boot",
            "workers.count is 0: jobs of the catalogue stay QUEUED, and the server isn't ready; "
            "workers.outside says that programs of one's own do the work",
            {"error_code", catalogue_row(ERROR_RFA_EXEC_WORKER_UNAVAILABLE)->code, 0});
}

/* Not before everything lives: who reads this line may send signals, kill actors and look at the tree. */
static void started(const void *context)
{
    const struct boot *boot = context;
    struct runtime_stats stats;
    char clients[SOCKETS_CLIENTS_TEXT_MAX];
    runtime_stats(runtime_self(), &stats);
    LOG(LOG_INFO, "boot", "started", {"version", COPPICE_VERSION, 0}, {"pid", NULL, getpid()},
        {"operator", boot->sockets->operator_set.text, 0},
        {"client", sockets_clients(boot->sockets, clients), 0},
        {"environment", boot->settings->options.environment, 0}, {"schedulers", NULL, stats.schedulers},
        {"subsystems", NULL, (int64_t)boot->rows_count});
    tell_workers(&boot->settings->options);
}

static int run(struct runtime *rt, const struct boot *boot, const struct plan *plan)
{
    const struct spawn_options root = plan_root(plan);
    enum error e = runtime_spawn(rt, &root, NULL);
    if (e != OK) {
        char why[128];
        snprintf(why, sizeof(why), "the root of the tree could not be started: %s", error_name(e));
        return failed(EXIT_FAILURE, "the root could not be started", why);
    }
    notify_on_ready(started, boot);
    int status = runtime_run(rt);
    LOG(status ? LOG_ERROR : LOG_INFO, "boot", "ended", {"status", NULL, status});
    return status;
}

static void apply(void *context, const struct settings *settings)
{
    domains_configure(&settings->options);
    tell_workers(&settings->options);
    fronts_reload(context, settings);
}

static int run_tree(const struct boot *boot, struct plan *plan, struct fronts *fronts)
{
    const struct options *o = &boot->settings->options;
    plan_finish(plan, fronts, boot->sockets);
    struct runtime *rt = create(o);
    if (!rt)
        return EXIT_SYSTEM;
    reload_install(boot->settings, boot->argc, boot->argv, environ);
    reload_on_apply(apply, fronts);
    log_follow(runtime_telemetry(rt));
    signals_serve(rt);
    int status = run(rt, boot, plan);
    signals_close();
    runtime_destroy(rt);
    return status;
}

/* ---- the store, and what needs it ---- */

static bool open_fronts(const struct boot *boot, struct fronts *fronts)
{
    char text[512] = "";
    if (fronts_open(fronts, boot->settings, text, sizeof(text)))
        return true;
    (void)unusable("the front could not be made", text);
    return false;
}

static int serve_open(const struct boot *boot, struct plan *plan, struct fronts *fronts, struct store *store)
{
    store_install(store);
    int status = open_fronts(boot, fronts) ? run_tree(boot, plan, fronts) : EXIT_CONFIG;
    store_close(store);
    return status;
}

/* Opening may take its time. What stands in the store's directory is looked at before anybody gets an answer, unless there
 * is no such directory yet. False: it isn't waited for, the process ends with *ret_status. */
static bool wait_for_store(const struct boot *boot, struct fronts *fronts, int *ret_status)
{
    const char *dir = boot->settings->options.store_dir;
    if (opening_wait(PORCH_AFTER_NS))
        return true;
    *ret_status = EXIT_CONFIG;
    if (environment_claimed(dir) && !open_fronts(boot, fronts))
        return false;
    if (porch_serve(boot->settings, boot->sockets, fronts))
        return true;
    LOG(LOG_INFO, "boot", "stopped before the store was open", {"dir", dir, 0});
    *ret_status = EXIT_SUCCESS;
    return false;
}

static int serve_with(const struct boot *boot, struct plan *plan)
{
    char text[512] = "";
    int status = EXIT_CONFIG;
    struct fronts *fronts = fronts_create(boot->settings, boot->sockets, plan_rows(plan), text, sizeof(text));
    if (!fronts)
        (void)unusable("the front could not be made", text);
    if (!fronts || !wait_for_store(boot, fronts, &status)) {
        opening_leave();
    } else {
        struct store *store = opening_end(&status);
        status = store ? serve_open(boot, plan, fronts, store) : status;
    }
    fronts_destroy(fronts);
    return status;
}

int boot_serve(const struct boot *boot)
{
    const struct options *o = &boot->settings->options;
    if (strcmp(o->environment, "dev") == 0)
        (void)clock_env(o->clock_offset);
    if (!signals_open())
        LOG(LOG_WARN, "boot",
            "no descriptor is left for signals; SIGTERM ends the server, SIGHUP does nothing",
            {"err", "EMFILE", 0});
    opening_begin(o); /* the disk is what takes longest */
    domains_configure(o);
    struct plan *plan = plan_create(o, boot->rows, boot->rows_count);
    int status = plan ? serve_with(boot, plan) : EXIT_FAILURE;
    if (!plan)
        opening_leave();
    plan_destroy(plan);
    signals_close();
    return status;
}

/* ---- with a guardian ---- */

/* The guardian's sockets are there, a share for each scheduler. */
static void keep_guardians(struct options *to, const struct options *from)
{
    static const enum option_position kept[] = {OPTION_http_listen, OPTION_operator_listen, OPTION_schedulers,
                                                OPTION_guardian, OPTION_guardian_intensity};
    for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
        option_copy(&option_table[kept[i]], to, from);
}

static bool load_again(const struct boot *boot, struct settings *ret, char *why, size_t why_size)
{
    struct tls_context *tls = NULL;
    if (settings_load(ret, boot->argc, boot->argv, environ, why, why_size) != 0)
        return false;
    keep_guardians(&ret->options, &boot->settings->options);
    bool good = outside_check(&ret->options, environ, &tls, why, why_size) &&
                outside_sockets(&ret->options, boot->sockets, why, why_size);
    if (tls)
        tls_context_release(tls);
    return good;
}

int boot_serve_guarded(void *arg, bool again)
{
    static struct settings settings;
    struct boot boot = *(const struct boot *)arg;
    char why[1024] = "";
    if (again && load_again(&boot, &settings, why, sizeof(why))) {
        boot.settings = &settings;
        log_set_level(settings.options.log_level);
        log_set_text(strcmp(settings.options.log_format, "text") == 0);
    } else if (again) {
        LOG(LOG_ERROR, "boot", "the settings can't be used; those of the guardian's start count",
            {"err", why, 0}, {"error_code", catalogue_row(ERROR_RFA_CONFIG_INVALID)->code, 0});
    }
    return boot_serve(&boot);
}
