#include "config/boot.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "actors/adapters.h"
#include "actors/deduper.h"
#include "config/log.h"
#include "config/nearest.h"
#include "config/topology.h"
#include "http/address.h"
#include "http/operator.h"
#include "runtime/runtime.h"
#include "runtime/supervisor.h"

enum { DECLARED_SIZE = 256 * 1024 };

/* Everything that the tree borrows for its life: one block, allocated at boot. */
struct plan {
    struct supervisor_spec specs[TOPOLOGY_ROWS_MAX];
    struct child_spec children[TOPOLOGY_ROWS_MAX];
    unsigned char args[TOPOLOGY_ROWS_MAX][SUPERVISOR_ARGS_MAX];
    struct living_row rows[TOPOLOGY_ROWS_MAX];
    char intensity[TOPOLOGY_ROWS_MAX][32];
    char declared[DECLARED_SIZE];
    struct operator_options operator;
    struct operator_args operator_args;
    struct adapters_args adapters;
    struct deduper_args deduper;
};

/* --- checks
 * --------------------------------------------------------------------------------------------------------------
 */

static const struct adapter *adapter_known(const char *name, size_t length)
{
    for (const struct adapter *a = adapters_known; a->name; a++)
        if (strlen(a->name) == length && memcmp(a->name, name, length) == 0)
            return a;
    return NULL;
}

/* "clock,descriptors" -> the adapters of these names. */
static bool adapters_parse(const char *list, struct adapters_args *ret_args, char *text, size_t text_size)
{
    for (size_t count = 0; *list; count++) {
        size_t length = strcspn(list, ",");
        const struct adapter *a = adapter_known(list, length);
        char word[NEAREST_LENGTH_MAX + 1];
        snprintf(word, sizeof(word), "%.*s", (int)(length < NEAREST_LENGTH_MAX ? length : NEAREST_LENGTH_MAX),
                 list);
        struct nearest near = {.word = word};
        for (const struct adapter *known = adapters_known; known->name; known++)
            nearest_offer(&near, known->name);
        if (!a || count == ADAPTERS_MAX) {
            snprintf(text, text_size,
                     "--adapters names '%s'; it must be a list of at most %u of clock, descriptors%s%s", word,
                     ADAPTERS_MAX, near.best ? "; did you mean " : "", near.best ? near.best : "");
            return false;
        }
        ret_args->adapters[count] = a;
        list += length + (list[length] == ',');
    }
    return true;
}

static enum error refused(const char *component, const char *text)
{
    LOG(LOG_ERROR, "boot", "failure.boot_config", {"component", component, 0}, {"failure_class", "fatal", 0},
        {"reason", text, 0}, {"boot_stage", "check", 0});
    return ERR_INVALID;
}

enum error boot_check(const struct options *o, char *ret_text, size_t text_size)
{
    struct adapters_args adapters = {0};
    if (topology_check(topology_rows, topology_count, ret_text, text_size) != OK)
        return refused("topology", ret_text);
    if (!adapters_parse(o->adapters, &adapters, ret_text, text_size))
        return refused("runtime", ret_text);
    return OK;
}

/* --- the tree from the table
 * ---------------------------------------------------------------------------------------------- */

/* What the command line says about an actor of the table. */
static void plan_options(struct plan *plan, const struct options *o, const struct topology_row *row,
                         struct child_spec *child)
{
    if (row->class == &adapters_class) {
        child->args = &plan->adapters;
        child->args_size = sizeof(plan->adapters);
    } else if (row->class == &deduper_class) {
        plan->deduper =
            (struct deduper_args){.window = (uint32_t)o->deduper_window, .expiry_ns = o->deduper_expiry};
        child->args = &plan->deduper;
        child->args_size = sizeof(plan->deduper);
    } else if (row->class == &operator_class) {
        child->args = &plan->operator_args;
        child->args_size = sizeof(plan->operator_args);
    }
}

static void plan_worker(struct plan *plan, const struct options *o, const struct topology_row *row,
                        struct child_spec *child)
{
    *child = (struct child_spec){.id = row->name,
                                 .name = row->name,
                                 .class = row->class,
                                 .args = row->args,
                                 .args_size = row->args_size};
    plan_options(plan, o, row, child);
}

static void plan_supervisor(struct plan *plan, const struct options *o, size_t position)
{
    const struct topology_row *row = &topology_rows[position];
    plan->specs[position] = (struct supervisor_spec){
        .name = row->name,
        .register_name = true,
        .strategy = row->kind == TOPOLOGY_DYNAMIC ? DYNAMIC : row->strategy,
        .intensity = (int32_t)row->max_restarts,
        .period_ms = (int64_t)row->max_seconds * 1000,
        .max_children = strcmp(row->name, "front.connections") == 0 ? (uint32_t)o->operator_connections : 0,
        .root = position == 0,
    };
}

/* The children of one row stand together in plan->children, from `at` on. Lower rows are planned before their
 * parents, because a child's argument is a copy of its finished spec. Returns where the next ones may stand.
 */
static size_t plan_children(struct plan *plan, const struct options *o, size_t parent, size_t at)
{
    size_t first = at, count = 0;
    for (size_t i = parent + 1; i < topology_count; i++)
        count += strcmp(topology_rows[i].parent, topology_rows[parent].name) == 0 &&
                 !topology_per_key(&topology_rows[i]);
    size_t next = first + count;
    for (size_t i = parent + 1; i < topology_count; i++) {
        const struct topology_row *row = &topology_rows[i];
        if (strcmp(row->parent, topology_rows[parent].name) != 0 || topology_per_key(row))
            continue;
        struct child_spec *child = &plan->children[at++];
        if (row->kind == TOPOLOGY_WORKER) {
            plan_worker(plan, o, row, child);
            continue;
        }
        plan_supervisor(plan, o, i);
        if (row->kind == TOPOLOGY_SUPERVISOR)
            next = plan_children(plan, o, i, next);
        *child = (struct child_spec){.id = row->name,
                                     .class = &supervisor_class,
                                     .type = CHILD_SUPERVISOR,
                                     .args = plan->args[i],
                                     .args_size = supervisor_args(&plan->specs[i], plan->args[i])};
    }
    plan->specs[parent].children = &plan->children[first];
    plan->specs[parent].children_count = count;
    return next;
}

/* What the operator's view needs of the table, in terms of its own. */
static void plan_rows(struct plan *plan)
{
    struct json_sink sink;
    struct json json;
    size_t used = 0;
    for (size_t i = 0; i < topology_count; i++) {
        const struct topology_row *row = &topology_rows[i];
        json_sink_init(&sink, plan->declared + used, DECLARED_SIZE - used - 1, NULL, NULL);
        json_init(&json, &sink);
        topology_write_row(&json, row);
        enum json_status status = json_end(&json);
        ASSERT(status == JSON_OK);
        snprintf(plan->intensity[i], sizeof(plan->intensity[i]), "%u/%us", row->max_restarts,
                 row->max_seconds);
        plan->rows[i] = (struct living_row){.name = row->name,
                                            .strategy = strategy_name(row->strategy),
                                            .intensity = plan->intensity[i],
                                            .owner = row->owner,
                                            .per_key = topology_per_key(row),
                                            .declared = plan->declared + used};
        used += sink.length;
        plan->declared[used++] = 0;
    }
}

static struct plan *plan_create(const struct boot *boot)
{
    const struct options *o = boot->options;
    struct plan *plan = calloc(1, sizeof(*plan));
    char text[256];
    if (!plan)
        return NULL;
    bool known = adapters_parse(o->adapters, &plan->adapters, text, sizeof(text));
    ASSERT(known);
    plan->adapters.descriptors = o->descriptors;
    plan_rows(plan);
    plan->operator=(struct operator_options){
        .listening = boot->listening,
        .loopback_only = strncmp(o->operator_listen, "unix:", 5) != 0,
        .idle_ns = o->operator_idle,
        .connections = "front.connections",
        .version = COPPICE_VERSION,
        .rows = {.contract = TOPOLOGY_CONTRACT, .rows = plan->rows, .count = topology_count},
    };
    plan->operator_args.options = &plan->operator;
    plan_supervisor(plan, o, 0);
    plan_children(plan, o, 0, 0);
    supervisor_args(&plan->specs[0], plan->args[0]);
    return plan;
}

/* --- signals
 * ---------------------------------------------------------------------------------------------------------------
 */

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

/* --- from start to end
 * ----------------------------------------------------------------------------------------------------- */

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

static int run(struct runtime *rt, const struct plan *plan)
{
    char address[ADDRESS_TEXT_MAX];
    struct runtime_stats stats;
    enum error e = runtime_spawn(rt,
                                 &(struct spawn_options){.class = &supervisor_class,
                                                         .args = plan->args[0],
                                                         .args_size = sizeof(plan->specs[0])},
                                 NULL);
    if (e != OK) {
        LOG(LOG_ERROR, "boot", "the root could not be started", {"err", error_name(e), 0});
        return EXIT_FAILURE;
    }
    address_text(plan->operator.listening, address);
    runtime_stats(rt, &stats);
    LOG(LOG_INFO, "boot", "started", {"version", COPPICE_VERSION, 0}, {"pid", NULL, getpid()},
        {"operator", address, 0}, {"schedulers", NULL, stats.schedulers},
        {"subsystems", NULL, (int64_t)topology_count});
    int status = runtime_run(rt);
    LOG(status ? LOG_ERROR : LOG_INFO, "boot", "ended", {"status", NULL, status});
    return status;
}

int boot_serve(void *arg)
{
    const struct boot *boot = arg;
    struct plan *plan = plan_create(boot);
    struct runtime *rt = plan ? create(boot->options) : NULL;
    int status = plan ? EXIT_CONFIG : EXIT_FAILURE;
    if (rt) {
        log_follow(runtime_telemetry(rt));
        signals_install(rt);
        status = run(rt, plan);
        signals_restore();
        runtime_destroy(rt);
    }
    free(plan);
    return status;
}
