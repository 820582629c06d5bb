/* Differences of contracts: each test changes one place of a document and asks what a client would notice. The documents
 * are our own, changed as text. */
#define _GNU_SOURCE /* memmem */
#include "acutest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/contract.h"
#include "http/contract_diff.h"

/* ---- a document with some places of its text replaced ---- */

struct document {
    char *text;
    struct json_text json;
};

static void document_read(struct document *d)
{
    struct json_limits limits = {0};
    struct json_error error;
    d->json.nodes_max = JSON_TEXT_NODES_MAX;
    d->json.nodes = calloc(JSON_TEXT_NODES_MAX, sizeof(*d->json.nodes));
    TEST_ASSERT(d->json.nodes != NULL);
    TEST_ASSERT_(json_text_read(&d->json, span_text(d->text), &limits, &error), "byte %u: %s", error.at,
                 error.what);
}

/* `places` are pairs: what stands there, once, and what shall. NULL ends them. */
static struct document changed(enum contract contract, const char *const *places)
{
    struct span from = contract_json(contract);
    struct document d = {.text = malloc(from.size * 2 + 4096)};
    TEST_ASSERT(d.text != NULL);
    memcpy(d.text, from.bytes, from.size);
    d.text[from.size] = 0;
    for (; places && *places; places += 2) {
        char *at = strstr(d.text, places[0]);
        size_t old = strlen(places[0]), new = strlen(places[1]);
        TEST_ASSERT_(at != NULL, "the document has: %s", places[0]);
        TEST_ASSERT_(!strstr(at + 1, places[0]), "and once: %s", places[0]);
        memmove(at + new, at + old, strlen(at + old) + 1);
        memcpy(at, places[1], new);
    }
    document_read(&d);
    return d;
}

static void document_free(struct document *d)
{
    free(d->text);
    free(d->json.nodes);
}

struct told {
    char text[4096];
    size_t used;
};

static void take(void *context, bool breaking, const char *what)
{
    struct told *told = context;
    told->used += (size_t)snprintf(told->text + told->used, sizeof(told->text) - told->used, "%s %s\n",
                                   breaking ? "BREAKING" : "compatible", what);
    TEST_ASSERT(told->used < sizeof(told->text));
}

static struct contract_diff compare(enum contract contract, const char *const *old, const char *const *now,
                                    struct told *told)
{
    struct document a = changed(contract, old), b = changed(contract, now);
    struct contract_diff diff;
    *told = (struct told){.used = 0};
    TEST_CHECK(contract_diff(&a.json, &b.json, take, told, &diff));
    document_free(&a);
    document_free(&b);
    return diff;
}

/* One change, both ways: from what is published to the changed one, and back. */
struct change {
    enum contract contract;
    const char *places[8];
    uint32_t breaking, compatible;           /* there */
    uint32_t breaking_back, compatible_back; /* and back */
    const char *says;                        /* there */
};

static void check(const struct change *c)
{
    struct told told;
    struct contract_diff diff = compare(c->contract, NULL, c->places, &told);
    TEST_CASE(c->places[0]);
    TEST_CHECK_(diff.breaking == c->breaking && diff.compatible == c->compatible, "there: %u, %u\n%s",
                diff.breaking, diff.compatible, told.text);
    TEST_CHECK_(!c->says || strstr(told.text, c->says), "says: %s", told.text);
    TEST_CHECK(diff.allowed == (diff.breaking == 0));
    diff = compare(c->contract, c->places, NULL, &told);
    TEST_CHECK_(diff.breaking == c->breaking_back && diff.compatible == c->compatible_back,
                "back: %u, %u\n%s", diff.breaking, diff.compatible, told.text);
}

#define CHECK_ALL(changes)                                               \
    for (size_t i_ = 0; i_ < sizeof(changes) / sizeof(*(changes)); i_++) \
        check(&(changes)[i_]);

static void nothing(void)
{
    struct told told;
    for (enum contract c = 0; c < CONTRACT_COUNT; c++) {
        struct contract_diff diff = compare(c, NULL, NULL, &told);
        TEST_CHECK_(diff.breaking == 0 && diff.compatible == 0 && diff.allowed, "%s: %s", contract_name(c),
                    told.text);
    }
}

/* A client reads on as before. */
static void added(void)
{
    static const struct change changes[] = {
        {CONTRACT_CONTROL,
         {"\"prefer_local\": {", "\"prefer_cheap\": {\"type\": \"boolean\"}, \"prefer_local\": {"},
         .compatible = 1,
         .breaking_back = 1,
         .says = "a new optional member 'prefer_cheap'"},
        {CONTRACT_EVENTS,
         {"\"job.cancelled\": {", "\"job.paused\": {\"messages\": {\"paused\": {\"$ref\": "
                                  "\"#/components/messages/JobEvent\"}}}, \"job.cancelled\": {"},
         .compatible = 1,
         .breaking_back = 1,
         .says = "a new channel, 'job.paused'"},
        {CONTRACT_CONTROL,
         {"\"/dlq/items\": {", "\"/dlq/count\": {\"get\": {\"operationId\": \"countDlqItems\", "
                               "\"responses\": {}}}, \"/dlq/items\": {"},
         .compatible = 1,
         .breaking_back = 1,
         .says = "a new operation"},
        {CONTRACT_JOBS,
         {"\"name\": \"outcome\",", "\"name\": \"younger_than\", \"in\": \"query\", \"schema\": {\"type\": "
                                    "\"string\"}}, {\"name\": \"outcome\","},
         .compatible = 1,
         .breaking_back = 1,
         .says = "a new parameter 'younger_than'"},
        {CONTRACT_JOBS,
         {"\"description\": \"Job id.\"", "\"description\": \"The job.\""}, /* prose */
         .says = NULL},
    };
    CHECK_ALL(changes);
}

static void broken(void)
{
    static const struct change changes[] = {
        /* a value less, or one more: whoever switches over them notices */
        {CONTRACT_CONTROL,
         {"\"approve\",\n              \"reject\",\n              \"request_changes\",\n              "
          "\"defer\"",
          "\"approve\",\n              \"reject\",\n              \"defer\""},
         .breaking = 1,
         .breaking_back = 1,
         .says = "DecisionRequest/properties/decision/enum is another"},
        /* a required member that is no longer required, or gone */
        {CONTRACT_CONTROL,
         {"\"required\": [\n          \"accepted_count\",", "\"required\": ["},
         .breaking = 1,
         .breaking_back = 1,
         .says = "doesn't require 'accepted_count' any more"},
        {CONTRACT_CONTROL,
         {"\"required\": [\n          \"accepted_count\",", "\"required\": [",
          "\"accepted_count\": {\n            \"type\": \"integer\"\n          },", ""},
         .breaking = 2,
         .breaking_back = 1,
         .says = "has no member 'accepted_count' any more"},
        /* a required member of another type */
        {CONTRACT_CONTROL,
         {"\"accepted_count\": {\n            \"type\": \"integer\"",
          "\"accepted_count\": {\n            \"type\": \"string\""},
         .breaking = 1,
         .breaking_back = 1,
         .says = "accepted_count/type is another"},
        /* an existing channel of another name */
        {CONTRACT_EVENTS,
         {"\"job.retrying\": {", "\"job.retried\": {"},
         .breaking = 1,
         .compatible = 1,
         .breaking_back = 1,
         .compatible_back = 1,
         .says = "/channels/job.retrying is gone"},
        /* an alias that goes */
        {CONTRACT_CONTROL,
         {"\"/jobs/{job_id}:approve\": {", "\"/jobs/{job_id}:accept\": {"},
         .breaking = 1,
         .compatible = 1,
         .breaking_back = 1,
         .compatible_back = 1,
         .says = "is gone"},
        {CONTRACT_CONTROL,
         {"\"max_age_hours\",\n            \"required\": false",
          "\"max_age_hours\",\n            \"required\": true"},
         .breaking = 1,
         .breaking_back = 1,
         .says = "has the parameter 'max_age_hours', but not as optional"},
        {CONTRACT_JOBS,
         {"\"maxLength\": 2048", "\"maxLength\": 1024"},
         .breaking = 1,
         .breaking_back = 1,
         .says = "HttpUrl/maxLength is another"},
        /* a rule that there was not, and that is gone on the way back; a new word of prose is none */
        {CONTRACT_CONTROL,
         {"\"prefer_local\": {", "\"prefer_local\": {\"const\": true,"},
         .breaking = 1,
         .breaking_back = 1,
         .says = "has 'const' now"},
        {CONTRACT_JOBS,
         {"\"maxLength\": 2048", "\"maxLength\": 2048, \"title\": \"an address\""},
         .says = NULL},
        {CONTRACT_JOBS,
         {"\"maxLength\": 2048", "\"maxLength\": 2048, \"minLength\": 9, \"title\": \"an address\""},
         .breaking = 1,
         .breaking_back = 1,
         .says = "HttpUrl has 'minLength' now"},
        {CONTRACT_JOBS,
         {"\"url\": \"/v1\"", "\"url\": \"/v2\""},
         .breaking = 1,
         .breaking_back = 1,
         .says = "another server"},
        {CONTRACT_JOBS,
         {"\"operationId\": \"getJob\"", "\"operationId\": \"readJob\""},
         .breaking = 1,
         .breaking_back = 1,
         .says = "another operationId"},
    };
    CHECK_ALL(changes);
}

/* A new event with a schema of its own is one alternative more of an event's details; elsewhere it is another schema. */
static void alternatives(void)
{
    static const struct change changes[] = {
        {CONTRACT_EVENTS,
         {"\"$ref\": \"#/components/schemas/GenericSystemEventDetails\"",
          "\"$ref\": \"#/components/schemas/GenericSystemEventDetails\"}, {\"$ref\": "
          "\"#/components/schemas/DrillDetails\"",
          "\"GenericSystemEventDetails\": {",
          "\"DrillDetails\": {\"type\": \"object\"}, \"GenericSystemEventDetails\": {"},
         .compatible = 2,
         .breaking_back = 2,
         .says = "has a new alternative"},
    };
    CHECK_ALL(changes);
}

static void major_version_and_guide(void)
{
    static const char *const breaking[] = {"\"operationId\": \"getJob\"", "\"operationId\": \"readJob\"",
                                           NULL};
    static const char *const major[] = {"\"operationId\": \"getJob\"", "\"operationId\": \"readJob\"",
                                        "\"version\": \"1.0.0\"", "\"version\": \"2.0.0\"", NULL};
    static const char *const guide[] = {"\"operationId\": \"getJob\"", "\"operationId\": \"readJob\"",
                                        "\"version\": \"1.0.0\"",
                                        "\"version\": \"1.1.0\", \"x-migration-guide-ref\": \"guide\"", NULL};
    static const char *const both[] = {"\"operationId\": \"getJob\"", "\"operationId\": \"readJob\"",
                                       "\"version\": \"1.0.0\"",
                                       "\"version\": \"2.0.0\", \"x-migration-guide-ref\": \"guide\"", NULL};
    static const struct {
        const char *const *places;
        bool major_raised, guide, allowed;
    } wanted[] = {{breaking, false, false, false},
                  {major, true, false, false},
                  {guide, false, true, false},
                  {both, true, true, true}};
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
        struct told told;
        struct contract_diff diff = compare(CONTRACT_CONTROL, NULL, wanted[i].places, &told);
        TEST_CHECK_(diff.breaking == 1, "%zu: %s", i, told.text);
        TEST_CHECK(diff.major_raised == wanted[i].major_raised);
        TEST_CHECK(diff.guide == wanted[i].guide);
        TEST_CHECK(diff.allowed == wanted[i].allowed);
    }
}

static void other_kinds(void)
{
    struct document a = changed(CONTRACT_CONTROL, NULL), b = changed(CONTRACT_EVENTS, NULL);
    struct told told = {.used = 0};
    struct contract_diff diff;
    TEST_CHECK(!contract_diff(&a.json, &b.json, take, &told, &diff));
    TEST_CHECK(!contract_diff(&b.json, &a.json, take, &told, &diff));
    document_free(&a);
    document_free(&b);
}

#define HEAD "event_name\tchannel\tdetails\trequires\tfixed\n"
#define ROW  "a.b\tx.events\tSome\t\t\n"

static void events(void)
{
    static const struct {
        const char *old, *now;
        uint32_t breaking, compatible;
    } wanted[] = {
        {HEAD ROW, HEAD ROW, 0, 0},
        {HEAD ROW, HEAD ROW "a.c\tx.events\tSome\t\t\n", 0, 1},
        {HEAD ROW "a.c\tx.events\tSome\t\t\n", HEAD ROW, 1, 0},
        {HEAD ROW, HEAD "a.b\ty.events\tSome\t\t\n", 1, 0},
        {HEAD ROW, HEAD "a.b\tx.events\tOther\t\t\n", 1, 0},
        {HEAD ROW, HEAD "a.b\tx.events\tSome\tmember\t\n", 1, 0},
        {HEAD ROW, HEAD "a.b\tx.events\tSome\t\tresult=good\n", 1, 0},
        {HEAD ROW, HEAD "a.c\tx.events\tSome\t\t\n", 1, 1},
    };
    static const char *const wrong[] = {"",
                                        "x\n",
                                        HEAD "a.b\tx.events\tSome\t\n",
                                        HEAD "a.b\tx.events\tSome\t\t\t\n",
                                        HEAD "\tx.events\tSome\t\t\n",
                                        HEAD "a.b\tx.events\tSome\t\t"};
    struct told told = {.used = 0};
    struct contract_diff diff;
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
        TEST_CHECK(
            contract_diff_events(span_text(wanted[i].old), span_text(wanted[i].now), take, &told, &diff));
        TEST_CHECK_(diff.breaking == wanted[i].breaking && diff.compatible == wanted[i].compatible,
                    "%zu: %u, %u", i, diff.breaking, diff.compatible);
        TEST_CHECK(diff.allowed == (diff.breaking == 0));
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        TEST_CHECK_(!contract_diff_events(span_text(wrong[i]), span_text(HEAD ROW), take, &told, &diff),
                    "%zu", i);
        TEST_CHECK_(!contract_diff_events(span_text(HEAD ROW), span_text(wrong[i]), take, &told, &diff),
                    "%zu", i);
    }
}

TEST_LIST
= {
    {"CTL-064 a document is no other than itself", nothing},
    {"CTL-064 what is added and optional is compatible, and breaking to take away", added},
    {"CTL-020 CTL-065 removed, renamed, of another type: breaking", broken},
    {"CTL-064 another alternative of an event's details is compatible", alternatives},
    {"CTL-066 CTL-433 breaking needs a major version and a guide", major_version_and_guide},
    {"documents of two kinds are not compared", other_kinds},
    {"CTL-064 CTL-065 tables of events", events},
    {NULL, NULL},
};
