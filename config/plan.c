#include "config/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "actors/deduper.h"
#include "actors/jobs.h"
#include "actors/worker.h"
#include "config/signals.h"
#include "http/nearest.h"
#include "http/keyring.h"
#include "http/listener.h"
#include "http/otlp.h"

enum {
    SHARES_MAX = SOCKETS_SHARES_MAX,
    LISTENERS_MAX = SOCKETS_ADDRESSES_MAX * SHARES_MAX,
    NAME_SIZE = 48,
    PARTITIONS_MAX = JOBS_WORKERS_MAX + 512, /* of all rows together */
};

/* Everything that the tree borrows for its life: one block, allocated at boot. */
struct plan {
    const struct topology_row *table;
    size_t count;
    const struct options *options;
    struct supervisor_spec specs[TOPOLOGY_ROWS_MAX];
    struct child_spec children[TOPOLOGY_ROWS_MAX];
    unsigned char args[TOPOLOGY_ROWS_MAX][SUPERVISOR_ARGS_MAX];
    struct living_row rows[TOPOLOGY_ROWS_MAX];
    struct living_rows living;
    struct adapters_args adapters;
    struct deduper_args deduper;
    struct keyring_args keyring;
    struct otlp_args otlp;

    /* The client port: children of the row TOPOLOGY_CLIENTS, supervisors of connections first. */
    const struct sockets *sockets;
    struct fronts *fronts;
    struct listener_args operator_listener;
    struct supervisor_spec connections[SHARES_MAX];
    unsigned char connections_args[SHARES_MAX][SUPERVISOR_ARGS_MAX];
    struct listener_args listeners[LISTENERS_MAX];
    struct child_spec clients[SHARES_MAX + LISTENERS_MAX];
    char names[SHARES_MAX + LISTENERS_MAX][NAME_SIZE];

    /* Children of rows per key whose keys are known. */
    size_t shares, partitions_count;
    struct child_spec partitions[PARTITIONS_MAX];
    uint32_t partition_numbers[PARTITIONS_MAX];
    char partition_names[PARTITIONS_MAX][NAME_SIZE];
};

static const struct adapter *adapter_known(const char *name, size_t length)
{
    for (const struct adapter *a = adapters_known; a->name; a++)
        if (strlen(a->name) == length && memcmp(a->name, name, length) == 0)
            return a;
    return NULL;
}

bool plan_adapters(const char *list, struct adapters_args *ret_args, char *text, size_t text_size)
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
            snprintf(text, text_size, "names '%s'; it must be a list of at most %u of clock, descriptors%s%s",
                     word, ADAPTERS_MAX, near.best ? "; did you mean " : "", near.best ? near.best : "");
            return false;
        }
        ret_args->adapters[count] = a;
        list += length + (list[length] == ',');
    }
    return true;
}

/* ---- the tree from the table ---- */

/* What the command line says about an actor of the table. */
static void plan_options(struct plan *plan, const struct topology_row *row, struct child_spec *child)
{
    const struct options *o = plan->options;
    if (row->class == &adapters_class) {
        child->args = &plan->adapters;
        child->args_size = sizeof(plan->adapters);
    } else if (row->class == &deduper_class) {
        plan->deduper =
            (struct deduper_args){.window = (uint32_t)o->deduper_window, .expiry_ns = o->deduper_expiry};
        child->args = &plan->deduper;
        child->args_size = sizeof(plan->deduper);
    } else if (row->class == &keyring_class) {
        child->args = &plan->keyring;
        child->args_size = sizeof(plan->keyring);
    } else if (row->class == &otlp_class) {
        child->args = &plan->otlp;
        child->args_size = sizeof(plan->otlp);
    } else if (row->class == &listener_class) {
        child->args = &plan->operator_listener;
        child->args_size = sizeof(plan->operator_listener);
    }
}

static void plan_worker(struct plan *plan, const struct topology_row *row, struct child_spec *child)
{
    *child = (struct child_spec){.id = row->name,
                                 .name = row->name,
                                 .class = row->class,
                                 .args = row->args,
                                 .args_size = row->args_size,
                                 .scheduler = row->scheduler};
    plan_options(plan, row, child);
}

static void plan_supervisor(struct plan *plan, size_t position)
{
    const struct topology_row *row = &plan->table[position];
    plan->specs[position] = (struct supervisor_spec){
        .name = row->name,
        .register_name = true,
        .strategy = row->kind == TOPOLOGY_DYNAMIC ? DYNAMIC : row->strategy,
        .intensity = (int32_t)row->max_restarts,
        .period_ms = (int64_t)row->max_seconds * 1000,
        .max_children =
            strcmp(row->name, TOPOLOGY_OPERATORS) == 0 ? (uint32_t)plan->options->operator_connections : 0,
        .root = position == 0,
    };
}

/* ---- the client port ---- */

static size_t plan_connections(struct plan *plan, size_t shares)
{
    for (size_t n = 0; n < shares; n++) {
        snprintf(plan->names[n], NAME_SIZE, TOPOLOGY_CONNECTIONS ":%zu", n);
        plan->connections[n] = (struct supervisor_spec){
            .name = plan->names[n],
            .register_name = true,
            .strategy = DYNAMIC,
            .intensity = 30,
            .period_ms = 60000,
            .max_children = (uint32_t)((plan->options->http_connections + shares - 1) / shares),
        };
        plan->clients[n] = (struct child_spec){.id = plan->names[n],
                                               .class = &supervisor_class,
                                               .type = CHILD_SUPERVISOR,
                                               .scheduler = SPAWN_ON(n),
                                               .args = plan->connections_args[n]};
        plan->clients[n].args_size = supervisor_args(&plan->connections[n], plan->connections_args[n]);
    }
    return shares;
}

static uint32_t drain_ms(const struct plan *plan)
{
    uint64_t ms = plan->options->http_drain / NS_PER_MS;
    return (uint32_t)(ms ? ms : 1);
}

/* The service manager or the guardian has it, too, for the server that comes next. */
static bool outlives_us(const struct plan *plan, const struct socket_set *set)
{
    return set->activated || plan->options->guardian;
}

static size_t plan_listeners(struct plan *plan, size_t at)
{
    size_t number = 0;
    for (size_t a = 0; a < plan->sockets->clients_count; a++)
        for (uint32_t n = 0; n < plan->sockets->clients[a].fds_count; n++, at++, number++) {
            snprintf(plan->names[at], NAME_SIZE, "front.listener:%zu.%u", a, n);
            plan->listeners[number] = (struct listener_args){
                .listening = plan->sockets->clients[a].fds[n],
                .tls = plan->options->tls_certificate[0] && !plan->sockets->clients[a].address.local_file,
                .front = fronts_client(plan->fronts),
                .leave_free = LISTENER_LEAVE_FREE,
                .keep = outlives_us(plan, &plan->sockets->clients[a]),
                .connections = plan->names[n],
                .drain_ms = drain_ms(plan)};
            plan->clients[at] = (struct child_spec){.id = plan->names[at],
                                                    .name = plan->names[at],
                                                    .class = &listener_class,
                                                    .args = &plan->listeners[number],
                                                    .args_size = sizeof(plan->listeners[number]),
                                                    .scheduler = SPAWN_ON(n)};
        }
    return at;
}

/* As many as there are schedulers: each has its share of every address. */
static size_t count_shares(const struct plan *plan)
{
    size_t shares = 1;
    for (size_t a = 0; a < plan->sockets->clients_count; a++)
        shares = plan->sockets->clients[a].fds_count > shares ? plan->sockets->clients[a].fds_count : shares;
    return shares;
}

static void plan_clients(struct plan *plan, struct supervisor_spec *spec)
{
    spec->children = plan->clients;
    spec->children_count = plan_listeners(plan, plan_connections(plan, plan->shares));
}

/* ---- rows per key whose keys are known ---- */

static uint32_t partitions_of(const struct topology_row *row)
{
    struct jobs_settings jobs = jobs_settings();
    return row->class == &worker_class ? jobs.workers * jobs.concurrency : row->partitions;
}

static void plan_partition(struct plan *plan, const struct topology_row *row, uint32_t number)
{
    size_t at = plan->partitions_count++;
    ASSERT(at < PARTITIONS_MAX);
    plan->partition_numbers[at] = number;
    snprintf(plan->partition_names[at], NAME_SIZE, "%.*s%u", (int)strcspn(row->name, "<"), row->name, number);
    plan->partitions[at] = (struct child_spec){.id = plan->partition_names[at],
                                               .name = plan->partition_names[at],
                                               .class = row->class,
                                               .args = &plan->partition_numbers[at],
                                               .args_size = sizeof(plan->partition_numbers[at]),
                                               .scheduler = SPAWN_ON(number % plan->shares)};
}

static bool has_partitions(const struct plan *plan, const struct topology_row *parent)
{
    for (size_t i = 0; i < plan->count; i++)
        if (strcmp(plan->table[i].parent, parent->name) == 0 && topology_per_key(&plan->table[i]) &&
            plan->table[i].partitions)
            return true;
    return false;
}

/* False: the row has no such children. Actors of the table that stand among them come along. */
static bool plan_partitions(struct plan *plan, const struct topology_row *parent,
                            struct supervisor_spec *spec)
{
    if (!has_partitions(plan, parent))
        return false;
    spec->children = &plan->partitions[plan->partitions_count];
    for (size_t i = 0; i < plan->count; i++) {
        const struct topology_row *row = &plan->table[i];
        if (strcmp(row->parent, parent->name) != 0)
            continue;
        if (!topology_per_key(row)) {
            ASSERT(row->kind == TOPOLOGY_WORKER && plan->partitions_count < PARTITIONS_MAX);
            plan_worker(plan, row, &plan->partitions[plan->partitions_count++]);
            spec->children_count++;
            continue;
        }
        for (uint32_t number = 0; number < partitions_of(row); number++, spec->children_count++)
            plan_partition(plan, row, number);
    }
    return true;
}

/* The children of one row stand together in plan->children, from `at` on. Lower rows are planned before their
 * parents, because a child's argument is a copy of its finished spec. Returns where the next may stand. */
static size_t plan_children(struct plan *plan, size_t parent, size_t at)
{
    size_t first = at, count = 0;
    for (size_t i = parent + 1; i < plan->count; i++)
        count += strcmp(plan->table[i].parent, plan->table[parent].name) == 0 &&
                 !topology_per_key(&plan->table[i]);
    size_t next = first + count;
    for (size_t i = parent + 1; i < plan->count; i++) {
        const struct topology_row *row = &plan->table[i];
        if (strcmp(row->parent, plan->table[parent].name) != 0 || topology_per_key(row))
            continue;
        struct child_spec *child = &plan->children[at++];
        if (row->kind == TOPOLOGY_WORKER) {
            plan_worker(plan, row, child);
            continue;
        }
        plan_supervisor(plan, i);
        if (strcmp(row->name, TOPOLOGY_CLIENTS) == 0)
            plan_clients(plan, &plan->specs[i]);
        else if (row->kind == TOPOLOGY_SUPERVISOR && !plan_partitions(plan, row, &plan->specs[i]))
            next = plan_children(plan, i, next);
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
static void declare_row(struct json *json, const void *declared)
{
    topology_write_row(json, declared);
}

/* Whoever hears of a stop, and whom the request to resume somebody goes through. */
static const char *needed(const struct topology_row *row)
{
    if (row->class == &signals_class)
        return "SIGTERM and SIGINT would not be heard";
    if ((row->class == &listener_class && !topology_per_key(row)) ||
        strcmp(row->name, TOPOLOGY_OPERATORS) == 0)
        return "nobody could reach the server to resume it";
    return NULL;
}

static void declare_rows(struct plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        const struct topology_row *row = &plan->table[i];
        plan->rows[i] = (struct living_row){.name = row->name,
                                            .owner = row->owner,
                                            .per_key = topology_per_key(row),
                                            .supervises = row->kind != TOPOLOGY_WORKER,
                                            .declared = row,
                                            .needed = needed(row)};
    }
}

struct plan *plan_create(const struct options *o, const struct topology_row *rows, size_t count)
{
    struct plan *plan = calloc(1, sizeof(*plan));
    char text[256];
    if (!plan)
        return NULL;
    plan->table = rows;
    plan->count = count;
    plan->options = o;
    bool known = plan_adapters(o->adapters, &plan->adapters, text, sizeof(text));
    ASSERT(known);
    plan->adapters.descriptors = o->descriptors;
    declare_rows(plan);
    plan->living = (struct living_rows){
        .contract = TOPOLOGY_CONTRACT, .rows = plan->rows, .count = count, .declare = declare_row};
    return plan;
}

const struct living_rows *plan_rows(const struct plan *plan)
{
    return &plan->living;
}

void plan_finish(struct plan *plan, struct fronts *fronts, const struct sockets *sockets)
{
    plan->fronts = fronts;
    plan->sockets = sockets;
    plan->shares = count_shares(plan);
    plan->keyring.keyring = fronts_keyring(fronts);
    plan->otlp.options = fronts_otlp(fronts);
    plan->operator_listener = (struct listener_args){.listening = sockets->operator_set.fds[0],
                                                     .front = fronts_operator(fronts),
                                                     .keep = outlives_us(plan, &sockets->operator_set),
                                                     .connections = TOPOLOGY_OPERATORS,
                                                     .drain_ms = drain_ms(plan)};
    plan_supervisor(plan, 0);
    plan_children(plan, 0, 0);
    supervisor_args(&plan->specs[0], plan->args[0]);
}

struct spawn_options plan_root(const struct plan *plan)
{
    return (struct spawn_options){
        .class = &supervisor_class, .args = plan->args[0], .args_size = sizeof(plan->specs[0])};
}

void plan_destroy(struct plan *plan)
{
    free(plan);
}
