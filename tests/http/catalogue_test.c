/* The error catalogue beside the tables of the contracts in docs/contract. */
#include "acutest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/catalogue.h"

enum { COLUMNS = 7, LINE = 1024 };
enum { JOBS_OWN = 6 }; /* extensions of the jobs surface that its specification does not have */

struct table {
    FILE *file;
    char line[LINE];
    const char *column[COLUMNS + 1];
};

static void table_open(struct table *t, const char *path)
{
    t->file = fopen(path, "r");
    TEST_ASSERT_(t->file != NULL, "%s can be read", path);
    TEST_ASSERT(fgets(t->line, sizeof(t->line), t->file) != NULL);
}

static bool table_next(struct table *t)
{
    if (!fgets(t->line, sizeof(t->line), t->file)) {
        fclose(t->file);
        return false;
    }
    t->line[strcspn(t->line, "\n")] = 0;
    char *rest = t->line;
    int n = 0;
    for (char *column; (column = strsep(&rest, "\t")) && n < COLUMNS; n++)
        t->column[n] = column;
    t->column[n] = NULL;
    return true;
}

static const struct catalogue_row *find(const char *code)
{
    for (enum error_code c = ERROR_NONE + 1; c < ERROR_CODE_COUNT; c++)
        if (strcmp(catalogue_row(c)->code, code) == 0)
            return catalogue_row(c);
    return NULL;
}

static int count(enum surface surface, bool extension)
{
    int n = 0;
    for (enum error_code c = ERROR_NONE + 1; c < ERROR_CODE_COUNT; c++)
        n += catalogue_row(c)->surface == surface && catalogue_row(c)->extension == extension;
    return n;
}

#define SAME(code, a, b) TEST_CHECK_(strcmp((a), (b)) == 0, "%s: '%s' is '%s'", (code), (a), (b))

/* code http retryable retry_class meaning domain class_source; in the order of the table, from the first code on. */
static void control_rows(void)
{
    struct table t;
    enum error_code c = ERROR_NONE;
    table_open(&t, "docs/contract/control.errors.tsv");
    while (table_next(&t)) {
        const struct catalogue_row *row = catalogue_row(++c);
        SAME(row->code, row->code, t.column[0]);
        TEST_CHECK_(row->status == atoi(t.column[1]), "%s: %d", row->code, row->status);
        SAME(row->code, row->retryable ? "true" : "false", t.column[2]);
        SAME(row->code, row->retry_class, t.column[3]);
        SAME(row->code, row->title, t.column[4]);
        TEST_CHECK(row->surface == SURFACE_CONTROL && !row->extension);
    }
    TEST_CHECK(c == 30);
    TEST_CHECK(count(SURFACE_CONTROL, false) == 30);
    TEST_CHECK(count(SURFACE_CONTROL, true) == 6);
}

/* CTL-284: how many codes each domain has; a code's domain is what it begins with. */
static void control_domains(void)
{
    static const struct {
        const char *domains[2];
        int codes;
    } wanted[] = {{{"AUTH_"}, 6},
                  {{"REQ_", "CONTRACT_"}, 4},
                  {{"JOB_"}, 8},
                  {{"POLICY_", "APPROVAL_"}, 5},
                  {{"BUDGET_", "RATE_"}, 3},
                  {{"DLQ_"}, 2},
                  {{"INFRA_", "INTERNAL_"}, 2}};
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
        int n = 0;
        for (enum error_code c = ERROR_NONE + 1; c < ERROR_CODE_COUNT; c++) {
            const struct catalogue_row *row = catalogue_row(c);
            for (int d = 0; d < 2 && wanted[i].domains[d]; d++)
                n += row->surface == SURFACE_CONTROL && !row->extension &&
                     strncmp(row->code, wanted[i].domains[d], strlen(wanted[i].domains[d])) == 0;
        }
        TEST_CHECK_(n == wanted[i].codes, "%s... has %d codes", wanted[i].domains[0], n);
    }
}

/* code http_status description actions origin test_trigger */
static void jobs_rows(void)
{
    struct table t;
    int rows = 0;
    table_open(&t, "docs/contract/jobs.errors.tsv");
    for (; table_next(&t); rows++) {
        const struct catalogue_row *row = find(t.column[0]);
        TEST_ASSERT_(row != NULL, "%s is in the catalogue", t.column[0]);
        TEST_CHECK_(row->status == atoi(t.column[1]), "%s: %d", row->code, row->status);
        SAME(row->code, row->title, t.column[2]);
        SAME(row->code, row->action, t.column[3]);
        TEST_CHECK_(row->extension == (strcmp(t.column[4], "extension") == 0), "%s", row->code);
        TEST_CHECK(row->surface == SURFACE_JOBS);
        TEST_CHECK(row->retryable == (strncmp(row->action, "Retry", 5) == 0));
    }
    TEST_CHECK(rows == 29);
    TEST_CHECK(count(SURFACE_JOBS, false) == 22);
    TEST_CHECK(count(SURFACE_JOBS, true) == 7 + JOBS_OWN);
}

/* code http retryable retry_class meaning action surface */
static void own_rows(void)
{
    struct table t;
    int rows = 0;
    table_open(&t, "docs/contract/ops.errors.tsv");
    for (; table_next(&t); rows++) {
        const struct catalogue_row *row = find(t.column[0]);
        TEST_ASSERT_(row != NULL, "%s is in the catalogue", t.column[0]);
        TEST_CHECK_(row->status == atoi(t.column[1]), "%s: %d", row->code, row->status);
        SAME(row->code, row->retryable ? "true" : "false", t.column[2]);
        SAME(row->code, row->retry_class, t.column[3]);
        SAME(row->code, row->title, t.column[4]);
        SAME(row->code, row->action, t.column[5]);
        SAME(row->code, surface_name(row->surface), t.column[6]);
        TEST_CHECK(row->extension);
    }
    int ours = count(SURFACE_CONTROL, true) + JOBS_OWN + count(SURFACE_OPERATOR, true);
    TEST_CHECK_(rows == ours, "ops.errors.tsv has %d rows, the catalogue %d of our own", rows, ours);
    TEST_CHECK(count(SURFACE_PUBLIC, true) + count(SURFACE_PUBLIC, false) + count(SURFACE_OPERATOR, false) ==
               0);
}

/* JOB-339: prefix and scope, and words behind them. */
static void prefixes_of_the_jobs_surface(void)
{
    static const char *const scopes[] = {"REQUEST",    "AUTH",   "JOB",      "EXEC",   "STORAGE",
                                         "DEPENDENCY", "CONFIG", "INTERNAL", "CLIENT", "WEBHOOK"};
    for (enum error_code c = ERROR_NONE + 1; c < ERROR_CODE_COUNT; c++) {
        const char *code = catalogue_row(c)->code;
        if (catalogue_row(c)->surface != SURFACE_JOBS)
            continue;
        TEST_CHECK_(strncmp(code, "RFA_", 4) == 0 && !code[strspn(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_")], "%s",
                    code);
        bool scoped = false;
        for (size_t i = 0; i < sizeof(scopes) / sizeof(*scopes); i++)
            scoped |= strlen(scopes[i]) == strcspn(code + 4, "_") &&
                      strncmp(code + 4, scopes[i], strlen(scopes[i])) == 0;
        TEST_CHECK_(scoped, "%s has no scope", code);
    }
}

/* A code with a number in it has that status. */
static void numbers_in_codes(void)
{
    for (enum error_code c = ERROR_NONE + 1; c < ERROR_CODE_COUNT; c++) {
        const struct catalogue_row *row = catalogue_row(c);
        size_t digits = strcspn(row->code, "0123456789");
        if (row->code[digits])
            TEST_CHECK_(atoi(row->code + digits) == row->status, "%s: %d", row->code, row->status);
        else
            TEST_CHECK_(strncmp(row->code, "RFA_", 4) == 0, "%s names no status", row->code);
        TEST_CHECK(row->status >= 400 && row->status <= 599 && row->title[0]);
    }
}

static void every_kind(void)
{
    for (enum surface s = 0; s < SURFACE_COUNT; s++)
        for (enum error_kind k = 0; k < ERROR_KIND_COUNT; k++) {
            const struct catalogue_row *row = catalogue_row(catalogue_code(s, k));
            TEST_CHECK_(surface_shape(row->surface) == surface_shape(s), "%s of %s", row->code,
                        surface_name(s));
            TEST_CHECK_(row->surface == (s == SURFACE_PUBLIC ? SURFACE_OPERATOR : s), "%s of %s", row->code,
                        surface_name(s));
        }
}

static void kinds_as_the_contracts_say(void)
{
    static const struct {
        enum surface surface;
        enum error_kind kind;
        enum error_code code;
        int status;
    } wanted[] = {
        {SURFACE_CONTROL, ERROR_KIND_NO_ROUTE, ERROR_REQ_404_ROUTE_NOT_FOUND, 404},
        {SURFACE_CONTROL, ERROR_KIND_METHOD, ERROR_REQ_405_METHOD_NOT_ALLOWED, 405},
        {SURFACE_CONTROL, ERROR_KIND_REQUEST_TIMEOUT, ERROR_REQ_408_REQUEST_TIMEOUT, 408},
        {SURFACE_CONTROL, ERROR_KIND_TARGET_TOO_LONG, ERROR_REQ_414_TARGET_TOO_LONG, 414},
        {SURFACE_CONTROL, ERROR_KIND_EXPECTATION, ERROR_REQ_417_EXPECTATION_FAILED, 417},
        {SURFACE_CONTROL, ERROR_KIND_HEADER_TOO_LARGE, ERROR_REQ_431_HEADER_TOO_LARGE, 431},
        {SURFACE_CONTROL, ERROR_KIND_UNSUPPORTED_TYPE, ERROR_REQ_400_INVALID_SCHEMA, 400},
        {SURFACE_CONTROL, ERROR_KIND_TOO_LARGE, ERROR_REQ_400_INVALID_SCHEMA, 400},
        {SURFACE_CONTROL, ERROR_KIND_MISSING_FIELD, ERROR_REQ_400_MISSING_FIELD, 400},
        {SURFACE_CONTROL, ERROR_KIND_CROSS_SITE, ERROR_AUTH_403_ROLE, 403},
        {SURFACE_CONTROL, ERROR_KIND_NO_CREDENTIALS, ERROR_AUTH_401_MISSING_TOKEN, 401},
        {SURFACE_CONTROL, ERROR_KIND_THROTTLED, ERROR_RATE_429_THROTTLED, 429},
        {SURFACE_CONTROL, ERROR_KIND_TIMEOUT, ERROR_INFRA_503_DEPENDENCY_DOWN, 503},
        {SURFACE_JOBS, ERROR_KIND_REQUEST_TIMEOUT, ERROR_RFA_REQUEST_TIMEOUT, 408},
        {SURFACE_JOBS, ERROR_KIND_TARGET_TOO_LONG, ERROR_RFA_REQUEST_TARGET_TOO_LONG, 414},
        {SURFACE_JOBS, ERROR_KIND_EXPECTATION, ERROR_RFA_REQUEST_EXPECTATION_FAILED, 417},
        {SURFACE_JOBS, ERROR_KIND_HEADER_TOO_LARGE, ERROR_RFA_REQUEST_HEADER_TOO_LARGE, 431},
        {SURFACE_JOBS, ERROR_KIND_LENGTH_REQUIRED, ERROR_RFA_REQUEST_MALFORMED, 400},
        {SURFACE_JOBS, ERROR_KIND_MISSING_FIELD, ERROR_RFA_REQUEST_MALFORMED, 400},
        {SURFACE_JOBS, ERROR_KIND_TOO_LARGE, ERROR_RFA_REQUEST_PAYLOAD_TOO_LARGE, 413},
        {SURFACE_JOBS, ERROR_KIND_NO_CREDENTIALS, ERROR_RFA_AUTH_INVALID_CREDENTIALS, 401},
        {SURFACE_JOBS, ERROR_KIND_DISABLED_CREDENTIALS, ERROR_RFA_AUTH_API_KEY_DISABLED, 403},
        {SURFACE_JOBS, ERROR_KIND_TIMEOUT, ERROR_RFA_EXEC_TIMEOUT, 504},
        {SURFACE_PUBLIC, ERROR_KIND_HEADER_TOO_LARGE, ERROR_OPS_431_HEADER_TOO_LARGE, 431},
        {SURFACE_OPERATOR, ERROR_KIND_MISDIRECTED, ERROR_OPS_421_MISDIRECTED, 421},
        {SURFACE_OPERATOR, ERROR_KIND_NO_SPACE, ERROR_OPS_507_NO_SPACE, 507},
    };
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
        enum error_code code = catalogue_code(wanted[i].surface, wanted[i].kind);
        TEST_CHECK_(code == wanted[i].code && catalogue_row(code)->status == wanted[i].status,
                    "%s answers %s", surface_name(wanted[i].surface), catalogue_row(code)->code);
    }
}

/* Whatever the store couldn't do has one answer, on each surface. */
static void test_what_failed_has_one_kind(void)
{
    static const struct {
        enum error e;
        int operators, control, jobs;
    } rows[] = {
        {ERR_TIMEOUT, 504, 503, 504}, {ERR_NO_SPACE, 507, 503, 503}, {ERR_IO, 503, 503, 503},
        {ERR_DAMAGED, 503, 503, 503}, {ERR_NEWER, 503, 503, 503},    {ERR_SHED, 503, 503, 503},
        {ERR_FULL, 503, 503, 503},    {ERR_NOPROC, 503, 503, 503},   {ERR_UNAVAILABLE, 503, 503, 503},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        enum error_kind kind = catalogue_failure(rows[i].e);
        TEST_CASE(error_name(rows[i].e));
        TEST_CHECK(catalogue_row(catalogue_code(SURFACE_OPERATOR, kind))->status == rows[i].operators);
        TEST_CHECK(catalogue_row(catalogue_code(SURFACE_CONTROL, kind))->status == rows[i].control);
        TEST_CHECK(catalogue_row(catalogue_code(SURFACE_JOBS, kind))->status == rows[i].jobs);
        TEST_CHECK(catalogue_row(catalogue_code(SURFACE_JOBS, kind))->retryable);
        const char *sentence = catalogue_sentence(rows[i].e);
        TEST_CHECK_(strchr(sentence, ' ') && !strchr(sentence, '_'), "'%s'", sentence);
    }
}

TEST_LIST
= {
    {"CTL-247 CTL-250 CTL-254..284 control.errors.tsv row by row", control_rows},
    {"CTL-284 seven domains", control_domains},
    {"JOB-340..368 jobs.errors.tsv row by row", jobs_rows},
    {"ops.errors.tsv row by row", own_rows},
    {"JOB-339 codes of the jobs surface have its prefix and a scope", prefixes_of_the_jobs_surface},
    {"a number in a code is its status", numbers_in_codes},
    {"every kind of error has a code on every surface, in its shape", every_kind},
    {"AMB-05 AMB-06 AMB-07 AMB-12 AMB-41 JOB-301 kinds as the contracts say", kinds_as_the_contracts_say},
    {"what failed has one kind", test_what_failed_has_one_kind},
    {NULL, NULL},
};
