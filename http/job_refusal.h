/* Refusals about jobs: what the store said, as the contract of whoever asked has it (spec/jobs.errors.tsv, or the operator's). */
#ifndef COPPICE_HTTP_JOB_REFUSAL_H
#define COPPICE_HTTP_JOB_REFUSAL_H

#include "http/response.h"

#define JOB_RETRY_S 2u /* Retry-After of what is full: it is no longer as soon as one job has gone on */

/* Answers. `e` isn't OK. */
void job_refuse(struct response *r, enum error e);

#endif
