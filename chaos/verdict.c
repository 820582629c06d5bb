#include "chaos/verdict.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    const char *name, *prose, *rows;
    uint64_t passed, failed;
    char said[VERDICT_SAID][VERDICT_WORDS];
};

static struct entry checks[CHECK_COUNT] = {
#define X(id, name_, prose_, rows_) [CHECK_##id] = {.name = name_, .prose = prose_, .rows = rows_},
    CHECKS(X)
#undef X
};
static struct entry cases[VERDICT_CASES_MAX];
static uint32_t cases_count;

static void fail(struct entry *entry, const char *format, va_list list)
{
    if (entry->failed < VERDICT_SAID) {
        char *words = entry->said[entry->failed];
        vsnprintf(words, VERDICT_WORDS, format, list);
        fprintf(stderr, "FAILED %s: %s\n", entry->name, words);
    }
    entry->failed++;
}

void verdict_pass(enum check check)
{
    checks[check].passed++;
}

void verdict_fail(enum check check, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fail(&checks[check], format, list);
    va_end(list);
}

static struct entry *case_of(const char *name)
{
    for (uint32_t i = 0; i < cases_count; i++)
        if (strcmp(cases[i].name, name) == 0)
            return &cases[i];
    if (cases_count == VERDICT_CASES_MAX)
        abort(); /* the catalogue is a table; VERDICT_CASES_MAX must hold it */
    cases[cases_count].name = name;
    return &cases[cases_count++];
}

void verdict_case_pass(const char *name)
{
    case_of(name)->passed++;
}

void verdict_case_fail(const char *name, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fail(case_of(name), format, list);
    va_end(list);
}

static uint64_t sum(const struct entry *entries, uint32_t count, bool failed)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < count; i++)
        all += failed ? entries[i].failed : entries[i].passed;
    return all;
}

uint64_t verdict_failures(void)
{
    return sum(checks, CHECK_COUNT, true) + sum(cases, cases_count, true);
}

uint64_t verdict_passes(void)
{
    return sum(checks, CHECK_COUNT, false) + sum(cases, cases_count, false);
}

/* ---- printed ---- */

void verdict_print(FILE *to)
{
    fprintf(to, "\n%-20s %9s %7s  what must be so\n", "check", "passed", "failed");
    for (uint32_t i = 0; i < CHECK_COUNT; i++)
        if (checks[i].passed || checks[i].failed)
            fprintf(to, "%-20s %9llu %7llu  %s\n", checks[i].name, (unsigned long long)checks[i].passed,
                    (unsigned long long)checks[i].failed, checks[i].prose);
    fprintf(to, "%-20s %9llu %7llu  %u requests that must be refused, or have their own script\n", "refusals",
            (unsigned long long)sum(cases, cases_count, false),
            (unsigned long long)sum(cases, cases_count, true), cases_count);
    for (uint32_t i = 0; i < cases_count; i++)
        if (cases[i].failed)
            fprintf(to, "    FAILED %s: %s\n", cases[i].name, cases[i].said[0]);
}

static void entry_json(struct json *json, const struct entry *entry)
{
    json_object_begin(json);
    JSON_MEMBER(json, "name", string, entry->name);
    if (entry->rows)
        JSON_MEMBER(json, "requirements", string, entry->rows);
    JSON_MEMBER(json, "passed", uint, entry->passed);
    JSON_MEMBER(json, "failed", uint, entry->failed);
    if (entry->failed) {
        json_key(json, "said");
        json_array_begin(json);
        for (uint64_t i = 0; i < VERDICT_SAID && i < entry->failed; i++)
            json_string(json, entry->said[i]);
        json_array_end(json);
    }
    json_object_end(json);
}

void verdict_json(struct json *json)
{
    json_key(json, "checks");
    json_array_begin(json);
    for (uint32_t i = 0; i < CHECK_COUNT; i++)
        entry_json(json, &checks[i]);
    json_array_end(json);
    json_key(json, "cases");
    json_array_begin(json);
    for (uint32_t i = 0; i < cases_count; i++)
        entry_json(json, &cases[i]);
    json_array_end(json);
}
