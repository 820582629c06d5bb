#include "config/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "actors/deduper.h"
#include "config/nearest.h"
#include "http/operator.h"

enum { DECLARED_SIZE = 256 * 1024 };

/* Everything that the tree borrows for its life: one block, allocated at boot. */
struct plan {
    const struct topology_row *table;
    size_t count;
    const struct options *options;
    struct supervisor_spec specs[TOPOLOGY_ROWS_MAX];
    struct child_spec children[TOPOLOGY_ROWS_MAX];
    unsigned char args[TOPOLOGY_ROWS_MAX][SUPERVISOR_ARGS_MAX];
    struct living_row rows[TOPOLOGY_ROWS_MAX];
    char declared[DECLARED_SIZE];
    struct operator_options view;
    struct operator_args operator_args;
    struct adapters_args adapters;
    struct deduper_args deduper;
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
    } else if (row->class == &operator_class) {
        child->args = &plan->operator_args;
        child->args_size = sizeof(plan->operator_args);
    }
}

static void plan_worker(struct plan *plan, const struct topology_row *row, struct child_spec *child)
{
    *child = (struct child_spec){.id = row->name,
                                 .name = row->name,
                                 .class = row->class,
                                 .args = row->args,
                                 .args_size = row->args_size};
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
            strcmp(row->name, TOPOLOGY_CONNECTIONS) == 0 ? (uint32_t)plan->options->operator_connections : 0,
        .root = position == 0,
    };
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
        if (row->kind == TOPOLOGY_SUPERVISOR)
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
static void plan_rows(struct plan *plan)
{
    struct json_sink sink;
    struct json json;
    size_t used = 0;
    for (size_t i = 0; i < plan->count; i++) {
        const struct topology_row *row = &plan->table[i];
        json_sink_init(&sink, plan->declared + used, DECLARED_SIZE - used - 1, NULL, NULL);
        json_init(&json, &sink);
        topology_write_row(&json, row);
        enum json_status status = json_end(&json);
        ASSERT(status == JSON_OK);
        plan->rows[i] = (struct living_row){.name = row->name,
                                            .owner = row->owner,
                                            .per_key = topology_per_key(row),
                                            .declared = plan->declared + used};
        used += sink.length;
        plan->declared[used++] = 0;
    }
}

struct plan *plan_create(const struct options *o, const struct topology_row *rows, size_t count,
                         int listening)
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
    plan_rows(plan);
    plan->view = (struct operator_options){
        .listening = listening,
        .loopback_only = strncmp(o->operator_listen, "unix:", 5) != 0,
        .idle_ns = o->operator_idle,
        .connections = TOPOLOGY_CONNECTIONS,
        .version = COPPICE_VERSION,
        .rows = {.contract = TOPOLOGY_CONTRACT, .rows = plan->rows, .count = count},
    };
    plan->operator_args.options = &plan->view;
    plan_supervisor(plan, 0);
    plan_children(plan, 0, 0);
    supervisor_args(&plan->specs[0], plan->args[0]);
    return plan;
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
