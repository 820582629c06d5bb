/* The jobs' part of a workload: every command of the domain, about jobs that are looked up in the store. */
#ifndef COPPICE_CHAOS_WORKLOAD_JOBS_H
#define COPPICE_CHAOS_WORKLOAD_JOBS_H

#include "chaos/workload.h"

#define WORKLOAD_JOB_CLASSES 23u
extern const struct command_class *const workload_job_classes[WORKLOAD_JOB_CLASSES];

/* False: not one of them. */
bool workload_draw_job(struct workload *w, struct txn *txn, struct batch_item *item, uint16_t code);

#endif
