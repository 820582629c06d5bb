#include "chaos/kill9_twin.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "chaos/kill9_ordeal.h"
#include "chaos/workload.h"
#include "store/checksum.h"
#include "store/view.h"

#define LANE 1u /* of views */

static struct workload workload;

static bool begin(void)
{
    if (!workload_create(&workload, ordeal.lane[0].dice.state))
        return ordeal_complain("no memory for the workload");
    workload.at_us = ordeal.clock_us;
    return true;
}

/* Of all answers, and of what became of the batch. */
static uint64_t answers_sum(enum error all, size_t count)
{
    uint64_t sum = (uint64_t)all;
    for (size_t i = 0; i < count && all == OK; i++) {
        const struct answer *answer = &workload.items[i].answer;
        sum = checksum(sum + (uint64_t)answer->error, answer->bytes, answer->error ? 0 : answer->size);
    }
    return sum;
}

/* ---- the store that is killed ---- */

static enum error run(struct store *store, size_t count)
{
    size_t half = ordeal.control == CONTROL_TWIN_HALF ? count / 2 : 0;
    enum error e = half ? batch_run(store, workload.items, half) : OK;
    return e ? e : batch_run(store, workload.items + half, count - half);
}

static void answered(struct ordeal_batches *batches, uint32_t number)
{
    atomic_store_explicit(&batches->answered, number, memory_order_release);
    if (number == 1)
        ordeal_tell(ORDEAL_ANSWERED);
}

void twin_work(struct store *store, uint32_t batches)
{
    struct ordeal_batches *noted = &ordeal_shared->batches;
    if (!begin())
        exit(2);
    for (uint32_t n = 0; n < batches && n < ORDEAL_BATCHES_MAX; n++) {
        size_t count = workload_draw(&workload, store);
        atomic_store_explicit(&noted->begun, n + 1, memory_order_release);
        if (ordeal.control == CONTROL_TWIN_EARLY)
            answered(noted, n + 1);
        enum error e = run(store, count);
        if (ordeal.control)
            noted->sums[n] = 0; /* of a batch in two halves the first half's answers have gone */
        else
            noted->sums[n] = answers_sum(e, count);
        if (ordeal.control != CONTROL_TWIN_EARLY)
            answered(noted, n + 1);
        if (e == ERR_IO)
            return;
    }
}

/* ---- its twin ---- */

static struct store *open_twin(void)
{
    struct store_options options = ordeal.options;
    struct store *store = NULL;
    char text[256] = "";
    options.environment.dir = ordeal.twin_dir;
    options.environment.must_exist = false;
    enum error e = store_open(&options, &store, text, sizeof(text));
    if (!e)
        e = store_load(store);
    if (e)
        ordeal_complain("the twin: %s: %s", error_name(e), text);
    return e ? NULL : store;
}

/* Every row of every table but the one that counts commits, as one number. False: it complained. */
static bool rows_sum(struct store *store, uint64_t *ret_sum)
{
    uint64_t sum = 0;
    struct view *view = view_open_outside(store, LANE);
    enum error e = view ? OK : ERR_MEMORY;
    for (uint32_t table = 0; !e && table < store->schema->tables_count; table++) {
        if (table == TABLE_META)
            continue;
        struct scan scan = txn_scan(&view->txn, table, span_text(""), 0, SCAN_UP);
        while (scan_next(&scan))
            sum +=
                checksum(checksum(table, scan.key.bytes, scan.key.size), scan.bytes.bytes, scan.bytes.size);
        e = scan_end(&scan);
    }
    if (view)
        view_close(view);
    *ret_sum = sum;
    return e == OK || ordeal_complain("its rows can't be read: %s", error_name(e));
}

static void count_accepted(size_t count)
{
    const struct schema *schema = ordeal.options.schema;
    for (size_t i = 0; i < count; i++) {
        const struct batch_item *item = &workload.items[i];
        for (uint32_t at = 0; at < schema->commands_count && at < ORDEAL_COMMANDS_MAX; at++)
            if (schema->commands[at] == item->class && item->answer.error == OK)
                ordeal_totals->commands[at]++;
        if (item->answer.error == OK)
            ordeal_totals->acknowledged++;
        else
            ordeal_totals->refused++;
    }
}

/* The batches that were answered, one after the other. */
static bool follow(struct store *twin)
{
    const struct ordeal_batches *noted = &ordeal_shared->batches;
    for (uint32_t n = 0; n < noted->answered; n++) {
        size_t count = workload_draw(&workload, twin);
        enum error e = batch_run(twin, workload.items, count);
        if (!ordeal.control && answers_sum(e, count) != noted->sums[n])
            return ordeal_complain(
                "batch %u of %u that were answered was answered otherwise than by the twin", n,
                noted->answered);
        count_accepted(e ? 0 : count);
    }
    return true;
}

/* What was begun and not answered is there wholly, or not at all. */
static bool compare(struct store *store, struct store *twin)
{
    const struct ordeal_batches *noted = &ordeal_shared->batches;
    uint64_t left, right;
    if (!rows_sum(store, &left) || !rows_sum(twin, &right))
        return false;
    bool open = noted->begun > noted->answered, before = left == right;
    ordeal_totals->unknown += open;
    if (before) {
        ordeal_totals->uncommitted += open;
        return true;
    }
    if (open) {
        size_t count = workload_draw(&workload, twin);
        if (batch_run(twin, workload.items, count) != OK || !rows_sum(twin, &right))
            return ordeal_complain("the twin takes no batch: %s", twin->failure);
    }
    if (left == right) {
        ordeal_totals->committed++;
        return true;
    }
    ordeal_totals->lost++;
    return ordeal_complain("after %u batches that were answered of %u the rows are not its twin's",
                           noted->answered, noted->begun);
}

static void tell_finding(void *context, const char *finding)
{
    (void)context;
    ordeal_complain("check: %s", finding);
}

static bool check(struct store *store)
{
    struct check_report report = {.findings = 0};
    struct view *view = view_open_outside(store, LANE);
    enum error e = view ? check_rows(&view->txn, store->schema, tell_finding, NULL, &report) : ERR_MEMORY;
    if (view)
        view_close(view);
    ordeal_totals->checked_rows += report.rows;
    return e ? ordeal_complain("check: %s", error_name(e)) : report.findings == 0;
}

bool twin_judge(struct store *store, bool last)
{
    struct store *twin = begin() ? open_twin() : NULL;
    if (!twin)
        return false;
    bool good = follow(twin) && compare(store, twin);
    store_close(twin);
    ordeal.clock_us = workload.at_us;
    workload_destroy(&workload);
    return good && (!last || check(store));
}

void twin_reached(uint32_t *ret_commands, uint32_t *ret_accepted)
{
    *ret_commands = parcel_store_schema.commands_count;
    *ret_accepted = 0;
    for (uint32_t i = 0; i < *ret_commands && i < ORDEAL_COMMANDS_MAX; i++)
        *ret_accepted += ordeal_totals->commands[i] > 0;
}
