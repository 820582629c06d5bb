/* Contracts: the OpenAPI and AsyncAPI documents of docs/contract, in the binary as they are.
 *
 * X(ID, "name", "file", kind). The YAML is what people read and what `contract show` prints, byte for byte; the JSON form
 * next to it (docs/contract/generated, made by `make contract`) is what is served and compiled. docs/contract/
 * control.events.tsv binds a details schema to each name of an event (spec/control.md groups 26 and 27).
 *
 * A contract that can't be enforced whole doesn't start: every schema of every document is compiled, also those that no
 * operation uses, and whatever is not understood is refused with its place. Boot only; immutable afterwards, and shared
 * by all threads.
 */
#ifndef COPPICE_HTTP_CONTRACT_H
#define COPPICE_HTTP_CONTRACT_H

#include "http/catalogue.h"
#include "http/schema.h"

#define CONTRACTS(X)                                  \
    X(OPS, "ops", "ops.openapi", OPENAPI)             \
    X(CONTROL, "control", "control.openapi", OPENAPI) \
    X(JOBS, "jobs", "jobs.openapi", OPENAPI)          \
    X(WORK, "work", "work.openapi", OPENAPI)          \
    X(EVENTS, "events", "control.asyncapi", ASYNCAPI)

enum contract {
#define X(id, name, file, kind) CONTRACT_##id,
    CONTRACTS(X)
#undef X
        CONTRACT_COUNT
};
enum contract_kind { CONTRACT_OPENAPI, CONTRACT_ASYNCAPI };

const char *contract_name(enum contract contract);
enum contract_kind contract_kind(enum contract contract);
struct span contract_yaml(enum contract contract);
struct span contract_json(enum contract contract);
const char *
contract_etag(enum contract contract); /* of the JSON, quoted: its checksum (store/checksum.h); after boot */

/* A row of control.events.tsv, as it stands there: who is published where, with which details. */
struct contract_event {
    struct span name, channel;
    struct span
        details; /* "IngressEventDetails", below /components/schemas/ of the event contract; "": none */
    struct span requires; /* "failure_reason,rollback_steps": details of this name need these as well */
    struct span fixed;    /* "mutation_type=write,result=applied": and these have one value */
};
struct span contract_events_text(void);
/* The row at *at in a table of this form, and *at moves on; *at is 0 at first. False: no more, or a row that isn't one
 * (then *at is not the size of the text). */
bool contract_event_next(struct span table, size_t *at, struct contract_event *ret_row);

struct contracts; /* all of them, compiled */
/* NULL: the sentence names document, place and what is wrong. Boot only. */
struct contracts *contracts_create(char *ret_text, size_t text_size);
void contracts_destroy(struct contracts *contracts);
const struct schemas *contracts_schemas(const struct contracts *contracts, enum contract contract);

#define CONTRACT_PARAMETERS_MAX 12u
#define CONTRACT_ANSWERS_MAX    16u
#define CONTRACT_OPERATIONS_MAX 128u
#define CONTRACT_EVENTS_MAX     128u

struct contract_parameter {
    const char *name;
    enum { PARAMETER_PATH, PARAMETER_QUERY, PARAMETER_HEADER } in;
    bool required;
    const struct schema *schema;
};

/* One operation: what is checked of a request, and of its answers. */
struct contract_operation {
    enum contract contract;
    const char *id, *method, *path; /* as the document has them */
    const struct schema *body;      /* NULL: none */
    bool body_required;
    uint32_t parameters_count;
    struct contract_parameter parameters[CONTRACT_PARAMETERS_MAX];
    uint32_t answers_count;
    struct {
        uint16_t status;             /* 0: default */
        const char *type;            /* the media type, or NULL: no body; one entry per type */
        const struct schema *schema; /* NULL: any */
    } answers[CONTRACT_ANSWERS_MAX];
};
/* `path` is the document's, behind its base ("/v1" of the jobs contract is put in front of its paths). */
const struct contract_operation *contracts_operation(const struct contracts *contracts, const char *method,
                                                     const char *path);
const struct contract_operation *contracts_each(const struct contracts *contracts,
                                                size_t position); /* NULL: no more */
/* What a refusal of this surface looks like. */
const struct schema *contracts_refusal(const struct contracts *contracts, enum surface surface);
/* The details schema of an event by its name, with what its row adds (spec/control.md groups 25 to 27), or NULL. */
const struct schema *contracts_event(const struct contracts *contracts, const char *event_name);

#endif
