/* Verdict: what was checked, how often, and what was found wrong.
 *
 * Checks are rows below; cases are the refusals of chaos/refusal.h, which have names of their own. A failure is said at once
 * on standard error, the first VERDICT_SAID of each; all are counted.
 */
#ifndef COPPICE_CHAOS_VERDICT_H
#define COPPICE_CHAOS_VERDICT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/json.h"

enum { VERDICT_SAID = 5, VERDICT_CASES_MAX = 512, VERDICT_WORDS = 400 };

/* X(ID, "name", "what must be so", "requirements") */
#define CHECKS(X)                                                                                           \
    X(CAME, "answer.came", "every request is answered", "JOB-005")                                          \
    X(ID, "answer.request_id", "each answer has a request id, and keeps the caller's", "JOB-381")           \
    X(MEDIA, "answer.media_type", "success is JSON, errors are problem details", "JOB-099 JOB-376")         \
    X(STATUS, "answer.status", "no status but those of the operation; no 1xx, 204, 3xx, 500, 504",          \
      "JOB-369 JOB-370 JOB-371 JOB-372 JOB-373 JOB-374")                                                    \
    X(PROBLEM, "problem.shape", "all members; status and title are the code's",                             \
      "JOB-339 JOB-377 JOB-378 JOB-379 JOB-380 JOB-382")                                                    \
    X(HINTS, "problem.headers", "401, 405, 429 and 503 say what to do", "JOB-375")                          \
    X(CLIENT, "client.created", "clients and keys have their members", "JOB-089 JOB-103 JOB-108")           \
    X(ACCEPTED, "submit.accepted", "202 with exactly job_id, state, created_at", "JOB-081 JOB-138 JOB-372") \
    X(INVALID, "submit.invalid", "PAYLOAD_INVALID is refused", "JOB-064 JOB-350")                           \
    X(REPEATED, "submit.repeated", "one key, one job; another body is a conflict",                          \
      "JOB-051 JOB-093 JOB-094 JOB-143 JOB-323 JOB-355")                                                    \
    X(DISTINCT, "submit.distinct", "two keys, two jobs; no id names two jobs", "JOB-052 JOB-289")           \
    X(SHAPE, "job.shape", "all members of a job, in every state", "JOB-010 JOB-168 JOB-389")                \
    X(DEFINITION, "job.definition", "the definition is its kind's in the catalogue",                        \
      "JOB-011 JOB-029 JOB-033 JOB-067 JOB-073")                                                            \
    X(DRAWN, "job.drawn", "without a kind it is drawn from created_at, within the bounds",                  \
      "JOB-026 JOB-028 JOB-068 JOB-070")                                                                    \
    X(OUTCOME, "job.outcome", "outcome and failure go with the state", "JOB-204 JOB-205 JOB-206")           \
    X(ENDS, "job.ends", "each job ends as its kind must", "JOB-009 JOB-034..058 JOB-061..063")              \
    X(STUCK, "job.moves", "no job stays where it is", "JOB-005 JOB-316")                                    \
    X(READS, "job.reads", "reading changes nothing: two reads are the same bytes", "JOB-087 JOB-088")       \
    X(REPORTED, "report.at_once", "the report is there at first sight of a final state, not before",        \
      "JOB-209 JOB-293 JOB-366 JOB-460")                                                                    \
    X(REPORT, "report.shape", "all members; times and outcome are those of the events",                     \
      "JOB-018 JOB-176 JOB-394 JOB-397")                                                                    \
    X(KEPT, "events.kept", "an event never changes: list, report and delivery have the same",               \
      "JOB-017 JOB-021")                                                                                    \
    X(EVENT, "events.shape", "all members of each event", "JOB-014 JOB-393")                                \
    X(SEQUENCE, "events.sequence", "only allowed changes, from CREATED on, each with its event",            \
      "JOB-015 JOB-208 JOB-211 JOB-219 JOB-227 JOB-235 JOB-236 JOB-237 JOB-246 JOB-291 JOB-456")            \
    X(INCREASING, "events.times", "timestamps of a job strictly increase", "JOB-016")                       \
    X(PAYLOAD, "events.payload", "scenario, attempt, reason, progress, outputs, final",                     \
      "JOB-032 JOB-037 JOB-038 JOB-039 JOB-041 JOB-045 JOB-046 JOB-276 JOB-335")                            \
    X(EARLY, "time.early", "nothing happens before its time", "JOB-034 JOB-041 JOB-261 JOB-262")            \
    X(LATE, "time.late", "nothing happens too late after it", "JOB-058 JOB-066 JOB-266")                    \
    X(BACKOFF, "retry.backoff", "a retried job waits at least the window of its attempt", "JOB-272")        \
    X(CANCELED, "cancel.answer", "canceled, or the final state; again it is the same",                      \
      "JOB-083 JOB-095 JOB-148 JOB-321")                                                                    \
    X(RETRIED, "retry.answer", "QUEUED with the next attempt, or nothing changes",                          \
      "JOB-085 JOB-096 JOB-158 JOB-268 JOB-270 JOB-271 JOB-322")                                            \
    X(EXHAUSTED, "retry.limit", "after the last attempt 409, and FAILED it stays",                          \
      "JOB-050 JOB-164 JOB-269 JOB-275 JOB-352")                                                            \
    X(OWNERSHIP, "ownership", "another client's job: 403, and no word of it",                               \
      "JOB-152 JOB-162 JOB-171 JOB-179 JOB-292 JOB-300 JOB-348")                                            \
    X(LISTED, "list.complete", "what was accepted is listed, once, and nothing else",                       \
      "JOB-003 JOB-082 JOB-286 JOB-301")                                                                    \
    X(LIST_ORDER, "list.order", "newest first; filters keep what they say", "JOB-003")                      \
    X(FIFO, "queue.order", "jobs are assigned in the order of their creation", "JOB-277 JOB-278")           \
    X(HOOK_SHAPE, "webhook.shape", "a delivery is its event, its ids and its attempt", "JOB-080 JOB-184")   \
    X(HOOK_ORDER, "webhook.order", "events of a job come in order, one at a time", "JOB-080 JOB-184")       \
    X(HOOK_ALL, "webhook.all", "each event comes, to those who asked for it and to nobody else",            \
      "JOB-053 JOB-055 JOB-080 JOB-184 JOB-193")                                                            \
    X(HOOK_ATTEMPTS, "webhook.attempts", "as often as there were failures, up to the limit",                \
      "JOB-053 JOB-054 JOB-055 JOB-056 JOB-329 JOB-330 JOB-446")                                            \
    X(HOOK_SIGNED, "webhook.signed", "the signature is that of the secret", "JOB-184")                      \
    X(HOOK_APART, "webhook.apart", "a receiver that hangs or fails does not hold its job up",               \
      "JOB-054 JOB-056 JOB-057 JOB-326 JOB-328 JOB-336")

enum check {
#define X(id, name, prose, rows) CHECK_##id,
    CHECKS(X)
#undef X
        CHECK_COUNT
};

/* VERDICT(OWNERSHIP, good, format, ...): true when it is good; else the words say what was found instead, and nothing of
 * them is looked at before. */
#define VERDICT(id, good, ...) VERDICT_OF(CHECK_##id, good, __VA_ARGS__)
#define VERDICT_OF(check, good, ...) \
    ((good) ? (verdict_pass(check), true) : (verdict_fail(check, __VA_ARGS__), false))
/* The same of a case of the catalogue; its name begins with its requirements and stays where it is. */
#define VERDICT_CASE(name, good, ...) \
    ((good) ? (verdict_case_pass(name), true) : (verdict_case_fail(name, __VA_ARGS__), false))

void verdict_pass(enum check check);
__attribute__((format(printf, 2, 3))) void verdict_fail(enum check check, const char *format, ...);
void verdict_case_pass(const char *name);
__attribute__((format(printf, 2, 3))) void verdict_case_fail(const char *name, const char *format, ...);

uint64_t verdict_failures(void);
uint64_t verdict_passes(void);
void verdict_print(FILE *to);
void verdict_json(struct json *json); /* members "checks" and "cases" */

#endif
