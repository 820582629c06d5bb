/* What a scenario came to: filled in by config/chaos_run.c, judged there, written here as JSON (the ops contract's ChaosReport) and
 * as a page for people. Owns nothing. */
#ifndef COPPICE_CONFIG_CHAOS_REPORT_H
#define COPPICE_CONFIG_CHAOS_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "config/chaos_scripts.h"
#include "runtime/json.h"

/* What is judged of every scenario. X(ID, "name", what it asks) */
#define CHAOS_CHECKS(X)                                                                        \
    X(SCRIPT, "script", "what the script itself has checked")                                  \
    X(PROCESS, "process", "the process is the same, or another one where that is meant")       \
    X(CONTAINED, "contained", "those have ended who were to, and nobody else")                 \
    X(RETURNED, "returned", "everybody who ended stands in its place again")                   \
    X(ANSWERED, "answered", "no request of the load was left without an answer")               \
    X(SERVED, "served", "no request of the load failed, or was refused where none may be")     \
    X(READY, "ready", "it is ready, whole, and serves again within the time that it may take") \
    X(JOBS, "jobs", "every job that was acknowledged is there, and has come to its end")       \
    X(BOUNDED, "bounded", "descriptors and memory are what they were")

enum chaos_check {
#define X(id, name, asks) CHECK_##id,
    CHAOS_CHECKS(X)
#undef X
        CHECK_COUNT
};
const char *chaos_check_name(enum chaos_check check);

enum chaos_outcome { OUTCOME_HELD, OUTCOME_NOT_HELD, OUTCOME_UNABLE };

enum {
    CHAOS_FINDINGS_MAX = 64,
    CHAOS_SHOWN = 24,
    CHAOS_TEXT_MAX = 240,
    CHAOS_NOTES_MAX = 16,
    CHAOS_BUDGETS_MAX = 16
};

struct chaos_finding {
    enum chaos_check check;
    bool good;
    char what[CHAOS_TEXT_MAX];
};
struct chaos_budget {
    char name[64];
    uint32_t used, restarts, period_ms;
};
struct chaos_report {
    const struct chaos_script *script;
    enum chaos_outcome outcome;
    uint64_t seed;
    bool full;
    uint64_t started_us, took_ms;
    uint32_t died, restarted, untouched, missing;
    char names[CHAOS_SHOWN][64]; /* of the dead */
    uint64_t restarts;           /* that supervisors granted */
    uint64_t good, refused, failed, unanswered, slowest_ms, jobs;
    bool recovered;
    uint64_t recover_ms;
    int64_t memory, descriptors; /* more than before */
    struct chaos_budget budgets[CHAOS_BUDGETS_MAX];
    uint32_t budgets_count;
    char notes[CHAOS_NOTES_MAX][CHAOS_TEXT_MAX];
    uint32_t notes_count;
    struct chaos_finding findings[CHAOS_FINDINGS_MAX];
    uint32_t findings_count;
};

__attribute__((format(printf, 4, 5))) void chaos_report_find(struct chaos_report *r, enum chaos_check check,
                                                             bool good, const char *format, ...);
__attribute__((format(printf, 2, 3))) void chaos_report_note(struct chaos_report *r, const char *format, ...);
/* Whether a finding of this check says no. */
bool chaos_report_denied(const struct chaos_report *r, enum chaos_check check);

void chaos_report_write_json(struct json *json, const struct chaos_report *r);
void chaos_report_write_page(struct json_sink *sink, const struct chaos_report *r);

#endif
