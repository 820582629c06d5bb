#include "config/chaos_report.h"

#include <stdarg.h>
#include <stdio.h>

#include "store/record.h"

static const char *const check_names[] = {
#define X(id, name, asks) name,
    CHAOS_CHECKS(X)
#undef X
};
static const char *const outcome_names[] = {"held", "not_held", "unable"};

const char *chaos_check_name(enum chaos_check check)
{
    return check_names[check];
}

void chaos_report_find(struct chaos_report *r, enum chaos_check check, bool good, const char *format, ...)
{
    va_list list;
    /* The last place is for one that says no: there may be more that say yes than are told. */
    if (r->findings_count == CHAOS_FINDINGS_MAX || (good && r->findings_count == CHAOS_FINDINGS_MAX - 1))
        return;
    struct chaos_finding *f = &r->findings[r->findings_count++];
    *f = (struct chaos_finding){.check = check, .good = good};
    va_start(list, format);
    (void)vsnprintf(f->what, sizeof(f->what), format, list);
    va_end(list);
    if (!good && r->outcome == OUTCOME_HELD)
        r->outcome = OUTCOME_NOT_HELD;
}

void chaos_report_note(struct chaos_report *r, const char *format, ...)
{
    va_list list;
    if (r->notes_count == CHAOS_NOTES_MAX)
        return;
    va_start(list, format);
    (void)vsnprintf(r->notes[r->notes_count++], CHAOS_TEXT_MAX, format, list);
    va_end(list);
}

bool chaos_report_denied(const struct chaos_report *r, enum chaos_check check)
{
    for (uint32_t i = 0; i < r->findings_count; i++)
        if (r->findings[i].check == check && !r->findings[i].good)
            return true;
    return false;
}

/* ---- JSON ---- */

static void write_lists(struct json *j, const struct chaos_report *r)
{
    json_key(j, "who");
    json_array_begin(j);
    for (uint32_t i = 0; i < r->died && i < CHAOS_SHOWN; i++)
        json_string(j, r->names[i]);
    json_array_end(j);
    json_key(j, "budgets");
    json_array_begin(j);
    for (uint32_t i = 0; i < r->budgets_count; i++) {
        const struct chaos_budget *b = &r->budgets[i];
        json_object_begin(j);
        JSON_MEMBER(j, "supervisor", string, b->name);
        JSON_MEMBER(j, "left", uint, b->restarts - b->used);
        JSON_MEMBER(j, "restarts", uint, b->restarts);
        JSON_MEMBER(j, "period_ms", uint, b->period_ms);
        json_object_end(j);
    }
    json_array_end(j);
    json_key(j, "notes");
    json_array_begin(j);
    for (uint32_t i = 0; i < r->notes_count; i++)
        json_string(j, r->notes[i]);
    json_array_end(j);
    json_key(j, "checks");
    json_array_begin(j);
    for (uint32_t i = 0; i < r->findings_count; i++) {
        json_object_begin(j);
        JSON_MEMBER(j, "check", string, check_names[r->findings[i].check]);
        JSON_MEMBER(j, "good", bool, r->findings[i].good);
        JSON_MEMBER(j, "what", string, r->findings[i].what);
        json_object_end(j);
    }
    json_array_end(j);
}

void chaos_report_write_json(struct json *j, const struct chaos_report *r)
{
    char at[TIME_TEXT_SIZE];
    time_format(r->started_us, at);
    json_object_begin(j);
    JSON_MEMBER(j, "scenario", string, r->script->name);
    JSON_MEMBER(j, "outcome", string, outcome_names[r->outcome]);
    JSON_MEMBER(j, "does", string, r->script->does);
    JSON_MEMBER(j, "holds", string, r->script->holds);
    JSON_MEMBER(j, "seed", uint, r->seed);
    JSON_MEMBER(j, "full", bool, r->full);
    JSON_MEMBER(j, "started_at", string, at);
    JSON_MEMBER(j, "took_ms", uint, r->took_ms);
    JSON_MEMBER(j, "died", uint, r->died);
    JSON_MEMBER(j, "restarted", uint, r->restarted);
    JSON_MEMBER(j, "untouched", uint, r->untouched);
    JSON_MEMBER(j, "missing", uint, r->missing);
    JSON_MEMBER(j, "restarts", uint, r->restarts);
    JSON_MEMBER(j, "requests", uint, r->good + r->refused + r->failed + r->unanswered);
    JSON_MEMBER(j, "failed_requests", uint, r->failed + r->unanswered);
    JSON_MEMBER(j, "refused_requests", uint, r->refused);
    JSON_MEMBER(j, "unanswered_requests", uint, r->unanswered);
    JSON_MEMBER(j, "slowest_ms", uint, r->slowest_ms);
    JSON_MEMBER(j, "jobs", uint, r->jobs);
    json_key(j, "recover_ms");
    if (r->recovered)
        json_uint(j, r->recover_ms);
    else
        json_null(j);
    JSON_MEMBER(j, "memory_bytes", int, r->memory);
    JSON_MEMBER(j, "descriptors", int, r->descriptors);
    write_lists(j, r);
    json_object_end(j);
}

/* ---- for people ---- */

__attribute__((format(printf, 2, 3))) static void line(struct json_sink *sink, const char *format, ...)
{
    char text[1024];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    json_sink_text(sink, text);
    json_sink_text(sink, "\n");
}

static void write_names(struct json_sink *sink, const struct chaos_report *r)
{
    if (!r->died)
        return;
    json_sink_text(sink, "  who              ");
    for (uint32_t i = 0; i < r->died && i < CHAOS_SHOWN; i++) {
        json_sink_text(sink, i ? ", " : "");
        json_sink_text(sink, r->names[i]);
    }
    line(sink, "%s", r->died > CHAOS_SHOWN ? ", ..." : "");
}

static void write_budgets(struct json_sink *sink, const struct chaos_report *r)
{
    for (uint32_t i = 0; i < r->budgets_count; i++)
        line(sink, "  budget left      %u of %u in %u s: %s", r->budgets[i].restarts - r->budgets[i].used,
             r->budgets[i].restarts, r->budgets[i].period_ms / 1000, r->budgets[i].name);
}

static void write_findings(struct json_sink *sink, const struct chaos_report *r)
{
    for (uint32_t i = 0; i < r->findings_count; i++)
        line(sink, "  %s  %-9s  %s", r->findings[i].good ? "ok" : "NO", check_names[r->findings[i].check],
             r->findings[i].what);
}

void chaos_report_write_page(struct json_sink *sink, const struct chaos_report *r)
{
    static const char *const words[] = {"it held", "IT DID NOT HOLD", "it could not be tried here"};
    char at[TIME_TEXT_SIZE];
    const uint64_t requests = r->good + r->refused + r->failed + r->unanswered;
    time_format(r->started_us, at);
    line(sink, "%s: %s", r->script->name, words[r->outcome]);
    line(sink, "  done             %s", r->script->does);
    line(sink, "  must hold        %s", r->script->holds);
    line(sink, "  when             %s, for %.1f s; seed %llu%s", at, (double)r->took_ms / 1000,
         (unsigned long long)r->seed, r->full ? ", all of it" : "");
    for (uint32_t i = 0; i < r->notes_count; i++)
        line(sink, "  note             %s", r->notes[i]);
    if (r->outcome == OUTCOME_UNABLE)
        return;
    line(sink, "  died             %u, restarted %u, missing %u; untouched %u; %llu restarts", r->died,
         r->restarted, r->missing, r->untouched, (unsigned long long)r->restarts);
    write_names(sink, r);
    line(sink,
         "  requests         %llu: %llu good, %llu told to come again, %llu failed, %llu without an answer; "
         "the "
         "slowest took %llu ms",
         (unsigned long long)requests, (unsigned long long)r->good, (unsigned long long)r->refused,
         (unsigned long long)r->failed, (unsigned long long)r->unanswered, (unsigned long long)r->slowest_ms);
    if (r->recovered)
        line(sink, "  recovered        %llu ms after the fault was over", (unsigned long long)r->recover_ms);
    else
        line(sink, "  recovered        no");
    write_budgets(sink, r);
    line(sink, "  memory           %+.1f MiB, descriptors %+lld", (double)r->memory / 1048576,
         (long long)r->descriptors);
    write_findings(sink, r);
}
