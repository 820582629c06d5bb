#include "http/webhook_metrics.h"

#include "actors/webhooks.h"
#include "store/counter.h"
#include "store/view.h"

static void write_figures(const struct exposition *t)
{
    struct webhook_figures f = webhooks_figures();
    exposition_family(t, "webhook_deliveries", "counter",
                      "Attempts to deliver an event, by what came of them.");
    exposition_sample(t, "webhook_deliveries_total", "result", "success", f.succeeded);
    exposition_sample(t, "webhook_deliveries_total", "result", "failure", f.failed);
    exposition_counter(t, "webhook_failures", "Attempts to deliver an event that failed.", f.failed);
    exposition_counter(t, "coppice_webhook_given_up",
                       "Deliveries that failed for good, until somebody sends them again.", f.given_up);
    exposition_counter(t, "coppice_webhook_dropped", "Deliveries whose webhook or job was gone.", f.dropped);
    exposition_counter(t, "coppice_webhook_disabled",
                       "Webhooks that were disabled because of what their receivers answered, or didn't.",
                       f.disabled);
}

static void write_states(const struct exposition *t)
{
    int64_t counts[DELIVERY_STATE_COUNT] = {0};
    struct view *view = store_here() ? view_open(store_here()) : NULL;
    enum error e = view ? OK : ERR_UNAVAILABLE;
    for (uint8_t state = 0; state < DELIVERY_STATE_COUNT && !e; state++)
        e = counter_read(&view->txn, COUNTER_DELIVERIES, span_of(&state, sizeof(state)), &counts[state]);
    if (view)
        view_close(view);
    if (e)
        return;
    exposition_family(t, "coppice_deliveries", "gauge", "Deliveries in the store, by state.");
    for (unsigned state = 0; state < DELIVERY_STATE_COUNT; state++)
        exposition_sample(t, "coppice_deliveries", "state",
                          lifecycle_state_name(&delivery_lifecycle, (uint8_t)state), (uint64_t)counts[state]);
}

void webhook_metrics_write(const struct exposition *t)
{
    write_figures(t);
    write_states(t);
}
