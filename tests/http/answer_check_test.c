/* Answer checks: status by status what is looked at, and which of several declarations an answer is held against. */
#include "acutest.h"

#include <stdio.h>

#include "http/answer_check.h"
#include "http/request.h"
#include "tests/support/inside.h"

static struct response r;
static struct request q;
static char why[ANSWER_CHECK_WHY];

/* 200 and 409 are declared, each with a type, and nothing else is by itself. */
static struct contract_operation operation;

static void declare(bool otherwise)
{
    operation = (struct contract_operation){.id = "x", .method = "GET", .path = "/x"};
    operation.answers[operation.answers_count++].status = 200;
    operation.answers[0].type = "application/json";
    operation.answers[operation.answers_count++].status = 204;
    operation.answers[operation.answers_count++].status = 201;
    operation.answers[2].type = "application/json; charset=utf-8";
    operation.answers[operation.answers_count++].status = 409;
    operation.answers[3].type = "application/problem+json";
    if (otherwise)
        operation.answers[operation.answers_count++].type =
            "application/problem+json"; /* of any other status */
}

static bool good(void)
{
    struct arena_mark mark = actor_arena_mark();
    why[0] = 0;
    bool is = answer_check(NULL, &operation, &r, why);
    if (r.kept)
        body_drop(r.kept);
    actor_arena_reset(mark);
    return is && !why[0];
}

static bool bad(const char *what)
{
    bool is = good();
    return !is && strstr(why, what);
}

static void answer(int status, const char *type)
{
    memset(&q, 0, sizeof(q));
    memset(&r, 0, sizeof(r));
    r.request = &q;
    r.surface = SURFACE_JOBS;
    response_begin(&r, status, type);
    if (type && strstr(type, "json"))
        json_sink_text(&r.sink, "{\"a\":1}");
}

static void refusal(enum error_code code)
{
    memset(&q, 0, sizeof(q));
    memset(&r, 0, sizeof(r));
    r.request = &q;
    r.surface = SURFACE_JOBS;
    response_error(&r, code, "so");
}

INSIDE(declared)
{
    TEST_CHECK(bodies_open());
    for (int otherwise = 0; otherwise < 2; otherwise++) {
        declare(otherwise);
        answer(200, "application/json");
        TEST_CHECK_(good(), "%s", why);
        answer(200, "application/json; charset=utf-8");
        TEST_CHECK_(good(), "%s", why);
        static const char *const others[] = {"application/yaml", "application/jso", "application/jsons",
                                             "application/problem+json", "text/plain; charset=utf-8"};
        for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
            answer(200, others[i]);
            TEST_CHECK_(bad("has a type that its contract doesn't have"), "%s: %s", others[i], why);
        }
        answer(200, NULL);
        TEST_CHECK_(bad("has a type that its contract doesn't have: none"), "%s", why);
        answer(204, NULL);
        TEST_CHECK_(good(), "%s", why);
        answer(204, "application/json");
        TEST_CHECK_(bad("has a type that its contract doesn't have"), "%s", why);
        answer(202, "application/json"); /* a default is of refusals */
        TEST_CHECK_(bad("is one that its contract doesn't have"), "%s", why);
        answer(304, NULL);
        TEST_CHECK_(good(), "%s", why);
    }
    bodies_close();
}

INSIDE(made)
{
    TEST_CHECK(bodies_open());
    declare(false);
    answer(201, "application/json");
    TEST_CHECK_(bad("doesn't say where what it made is"), "%s", why);
    answer(201, "application/json");
    response_header(&r, "Location", "/x/7");
    TEST_CHECK_(good(), "%s", why);
    bodies_close();
}

INSIDE(refused)
{
    TEST_CHECK(bodies_open());
    for (int otherwise = 0; otherwise < 2; otherwise++) {
        declare(otherwise);
        refusal(ERROR_RFA_EXEC_IDEMPOTENCY_CONFLICT);
        TEST_CHECK_(good(), "%s", why);
        refusal(ERROR_RFA_JOB_NOT_FOUND); /* declared by the default, or not at all, which is no fault */
        TEST_CHECK_(good(), "%s", why);
        refusal(ERROR_RFA_JOB_NOT_FOUND);
        r.status = 410;
        TEST_CHECK_(good(), "%s", why); /* without contracts nobody reads what it says */
        refusal(ERROR_RFA_JOB_NOT_FOUND);
        r.type = "application/json";
        TEST_CHECK_(bad("is a refusal of another type: application/json"), "%s", why);
        refusal(ERROR_RFA_JOB_NOT_FOUND);
        r.surface = SURFACE_CONTROL;
        TEST_CHECK_(bad("is a refusal of another type: application/problem+json"), "%s", why);
    }
    operation.answers[4].type = "application/json"; /* another one by default: held against it */
    refusal(ERROR_RFA_JOB_NOT_FOUND);
    TEST_CHECK_(bad("has a type that its contract doesn't have: application/problem+json"), "%s", why);
    refusal(ERROR_RFA_EXEC_IDEMPOTENCY_CONFLICT); /* which has one of its own */
    TEST_CHECK_(good(), "%s", why);
    bodies_close();
}

INSIDE(broken)
{
    TEST_CHECK(bodies_open());
    declare(false);
    answer(200, "application/json");
    json_sink_text(&r.sink, ",");
    TEST_CHECK_(bad("is not JSON: "), "%s", why);
    r.failed = true; /* it is cut off anyway */
    TEST_CHECK_(good(), "%s", why);
    bodies_close();
}

TEST_LIST
= {
    {"what is declared of an answer", declared},
    {"what was made has a place", made},
    {"refusals have a shape, and what is declared of them", refused},
    {"what is not JSON", broken},
    {0},
};
