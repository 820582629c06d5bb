#define _GNU_SOURCE
#include "chaos/auditor.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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
    if (at_rest && !receiver_was_told(&saga->receiver, o->id, o->client, job->state))
        saga_violate("job %u is %s at rest, and who has ordered it was never told (O1, O2)", o->number,
                     job_state_name(job->state));
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

/* One bit of the value, wherever its bytes lie in the file: in the page that is read, and in older ones. */
static bool turn_over(const char *data_file, const void *value, size_t size, uint32_t bit)
{
    struct stat stat;
    bool any = false;
    int fd = open(data_file, O_RDWR | O_CLOEXEC);
    uint8_t *file = fd >= 0 && fstat(fd, &stat) == 0
                        ? mmap(NULL, (size_t)stat.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                        : MAP_FAILED;
    uint8_t *wanted = malloc(size);
    if (file != MAP_FAILED && wanted) {
        const uint8_t *end = file + stat.st_size;
        uint8_t *at = file;
        memcpy(wanted, value, size);
        for (; (at = memmem(at, (size_t)(end - at), wanted, size)); at++) {
            if ((at - file) % 2) /* nodes of LMDB lie at even places */
                continue;
            at[bit / 8] ^= (uint8_t)(1u << bit % 8);
            any = true;
        }
    }
    free(wanted);
    if (file != MAP_FAILED)
        (void)munmap(file, (size_t)stat.st_size);
    if (fd >= 0)
        close(fd);
    return any;
}

void auditor_damage(struct store *store, const char *data_file, struct dice *dice)
{
    const struct order *o = saga->orders_count ? &saga->orders[dice_below(dice, saga->orders_count)] : NULL;
    struct view *view = o && o->known ? view_open_outside(store, LANE) : NULL;
    struct uuid id;
    struct job job;
    if (!view)
        return;
    bool good = uuid_parse(o->id, strlen(o->id), &id);
    struct key key = key_of_uuid(&id);
    MDB_val wanted = {.mv_size = key.size, .mv_data = key.bytes}, value;
    good = good && mdb_get(view->txn.mdb, store->environment.tables[TABLE_JOBS], &wanted, &value) == 0 &&
           turn_over(data_file, value.mv_data, value.mv_size, dice_below(dice, (uint32_t)value.mv_size * 8));
    enum error e = good ? job_read(&view->txn, &id, &job) : ERR_DAMAGED;
    if (e != ERR_DAMAGED)
        saga_violate("job %u has a bit turned over, and reading it says %s (S6)", o->number, error_name(e));
    if (good)
        SOMETIMES(DAMAGED);
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
