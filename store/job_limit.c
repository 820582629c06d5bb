#include "store/job_limit.h"

#define job_admit_FIELD(name, TYPE, limit, since) RECORD_FIELD(job_admit, name, TYPE, limit, since)
RECORD_CLASS(job_admit, JOB_ADMIT_FIELDS, 1);

static const struct uuid nobody = {{0}};

static bool has_room(struct txn *txn, const struct uuid *client, uint32_t client_max)
{
    int64_t counted = 0;
    if (!client_max)
        return true;
    return job_queue_counted(txn, client, &counted) == OK && counted < (int64_t)client_max;
}

static enum error apply_admit(struct txn *txn, uint64_t at_us, const void *command, struct answer *answer)
{
    const struct job_admit *c = command;
    struct job_admitted admitted = {.after = c->after, .more = 1};
    enum error e = OK;
    (void)at_us;
    for (uint32_t i = 0; i < JOB_ADMIT_CLIENTS_MAX && !e; i++) {
        bool first = uuid_equal(&admitted.after, &nobody);
        e = job_queue_next_client(txn, LANE_LIMITED, first ? NULL : &admitted.after, &admitted.after);
        if (!e && has_room(txn, &admitted.after, c->client_max)) {
            job_queue_admit(txn, &admitted.after);
            admitted.clients++;
        }
        e = txn->error ? txn->error : e;
    }
    if (e == ERR_NOT_FOUND) {
        admitted.more = 0;
        e = OK;
    }
    if (txn->writes > 0 && !txn->error)
        txn->error = e; /* half of a change must not be kept */
    if (!e)
        answer_add(answer, &admitted, sizeof(admitted));
    return e;
}

const struct command_class job_admit_class = {
    .name = "job.admit",
    .record = &job_admit_record,
    .apply = apply_admit,
    .code = 228,
};

enum error limit_any(struct txn *txn, bool *ret_any)
{
    struct uuid client;
    enum error e = job_queue_next_client(txn, LANE_LIMITED, NULL, &client);
    *ret_any = !e;
    return e == ERR_NOT_FOUND ? OK : e;
}
