/* Problem: the shape of an error, and the catalogue of codes that one may have (spec/jobs.errors.tsv). */
#ifndef COPPICE_CHAOS_PROBLEM_H
#define COPPICE_CHAOS_PROBLEM_H

#include "chaos/wire.h"

#define PROBLEM_CODE_SIZE 64u

/* Judges an answer that is an error; request_id is that of its X-Request-Id. */
void problem_judge(const struct letter *answer, const char *request_id);
/* The `code`; "" of anything that has none. */
void problem_code(const struct letter *answer, char room[PROBLEM_CODE_SIZE]);

#endif
