#include "chaos/auditor.h"

#include <stdio.h>
#include <string.h>

#include "chaos/saga.h"
#include "store/check.h"
#include "store/delivery.h"
#include "store/view.h"

enum { LANE = 3 };

static void tell(void *context, const char *finding)
{
    saga_violate("%s: %s (J6, J8, S2)", (const char *)context, finding);
}

void auditor_rows(struct store *store, const char *when)
{
    struct check_report report = {0};
    char context[32];
    snprintf(context, sizeof(context), "%s", when);
    struct view *view = view_open_outside(store, LANE);
    if (!view) {
        saga_violate("%s: no view", when);
        return;
    }
    enum error e = check_rows(&view->txn, &store_schema, tell, context, &report);
    if (e || report.findings)
        saga_violate("%s: rows: %s, %llu findings", when, error_name(e), (unsigned long long)report.findings);
    view_close(view);
    saga->figures.checks++;
}

static void judge_job(const struct order *o, const struct job *job, bool at_rest)
{
    if (job->attempt < o->sight.attempt || (at_rest && o->sight.attempt && job->state != o->sight.state))
        saga_violate("the store: job %u is %s in attempt %u, and was seen %s in attempt %u (J2)", o->number,
                     job_state_name(job->state), job->attempt, job_state_name(o->sight.state),
                     o->sight.attempt);
    if (job->events < o->events)
        saga_violate("the store: job %u has %u events, and %u were seen (R4)", o->number, job->events,
                     o->events);
    if (at_rest && !job_state_final(job->state))
        saga_violate("the store: job %u is %s at rest (J6)", o->number, job_state_name(job->state));
}

void auditor_orders(struct store *store, bool at_rest)
{
    uint64_t known = 0;
    struct view *view = view_open_outside(store, LANE);
    if (!view) {
        saga_violate("no view");
        return;
    }
    for (uint32_t i = 0; i < saga->orders_count; i++) {
        const struct order *o = &saga->orders[i];
        struct uuid id;
        struct job job;
        if (!o->known)
            continue;
        known++;
        if (!uuid_parse(o->id, strlen(o->id), &id) || job_read(&view->txn, &id, &job) != OK)
            saga_violate("the store: job %u, %s, was acknowledged and is lost (J2)", o->number, o->id);
        else
            judge_job(o, &job, at_rest);
    }
    uint64_t rows = txn_rows(&view->txn, TABLE_JOBS);
    if (at_rest && rows != known)
        saga_violate("the store has %llu jobs, and %llu were ordered (I1)", (unsigned long long)rows,
                     (unsigned long long)known);
    view_close(view);
}

uint32_t auditor_pending(struct store *store)
{
    struct key from = {.size = 0};
    struct view *view = view_open_outside(store, LANE);
    uint32_t count = 0;
    if (!view)
        return 1;
    struct scan scan = txn_scan(&view->txn, TABLE_DELIVERIES, key_span(&from), 0, SCAN_UP);
    while (scan_next(&scan)) {
        struct delivery d;
        count += scan_read(&scan, &d) == OK && d.state == DELIVERY_PENDING;
    }
    if (scan_end(&scan) != OK)
        saga_violate("deliveries can't be read");
    count += (uint32_t)txn_rows(&view->txn, TABLE_OUTBOX);
    view_close(view);
    return count;
}
