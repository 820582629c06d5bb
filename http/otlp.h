/* The trace exporter: takes recorded spans (http/trace.h) and posts them as OTLP/HTTP JSON, by the fetch actor; or writes each of them
 * as a line of the log, whose member "span" is what would have been posted (AMB-J-52).
 *
 * Configured by the standard OTEL_* variables; off unless an endpoint is named, or the exporter is console, which has no
 * collector and needs none of the variables about one. Every second it writes or posts what there is, the latter in
 * batches of OTLP_BATCH_MAX spans. A failed post is tried again as the protocol says (no answer, 429, 502, 503, 504;
 * Retry-After is obeyed, else the pause doubles from one second), OTLP_TRIES times in all, then its spans are given up and
 * counted; any other refusal gives them up at once. A success is never repeated, not even a partial one. A dead collector
 * costs the memory of one batch and nothing else: the rings of http/trace.h fill, drop and count. What was recorded in the
 * last second before an end isn't posted any more.
 *
 * Gauge coppice_trace_spans{kind}: recorded, dropped (a ring was full, or a job's trace could not be read), exported, given_up.
 */
#ifndef COPPICE_HTTP_OTLP_H
#define COPPICE_HTTP_OTLP_H

#include "runtime/actor.h"

#define OTLP_BATCH_MAX  128u
#define OTLP_TRIES      5u
#define OTLP_PERIOD_NS  (1 * NS_PER_S)
#define OTLP_BODY_MAX   61440u /* a batch that would be longer is cut off before; see SPAN_JSON_MAX in otlp.c */
#define OTLP_SERVICE    "coppice"
#define OTLP_TIMEOUT_MS 10000u

/* X("variable"): what is read. The TRACES_ form of a variable wins over the general one. Of others of the standard, those
 * that ask for what isn't done here (a client's certificate, compression) are refused while an endpoint is named. */
#define OTLP_VARIABLES(X)                                                                      \
    X(SDK_DISABLED, "OTEL_SDK_DISABLED")                     /* true: off */                   \
    X(EXPORTER, "OTEL_TRACES_EXPORTER")                      /* otlp, console, none */         \
    X(ENDPOINT, "OTEL_EXPORTER_OTLP_ENDPOINT")               /* /v1/traces is appended */      \
    X(TRACES_ENDPOINT, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") /* the whole URL */               \
    X(HEADERS, "OTEL_EXPORTER_OTLP_HEADERS")                 /* name=value,... with escapes */ \
    X(TRACES_HEADERS, "OTEL_EXPORTER_OTLP_TRACES_HEADERS")                                     \
    X(TIMEOUT, "OTEL_EXPORTER_OTLP_TIMEOUT") /* ms; 10000 */                                   \
    X(TRACES_TIMEOUT, "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT")                                     \
    X(PROTOCOL, "OTEL_EXPORTER_OTLP_PROTOCOL") /* http/json */                                 \
    X(TRACES_PROTOCOL, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")                                   \
    X(COMPRESSION, "OTEL_EXPORTER_OTLP_COMPRESSION") /* none */                                \
    X(TRACES_COMPRESSION, "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION")                             \
    X(CERTIFICATE, "OTEL_EXPORTER_OTLP_CERTIFICATE") /* refused: the system's are used */      \
    X(CLIENT_CERTIFICATE, "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE")                             \
    X(SERVICE_NAME, "OTEL_SERVICE_NAME")               /* coppice */                           \
    X(RESOURCE_ATTRIBUTES, "OTEL_RESOURCE_ATTRIBUTES") /* key=value,... with escapes */        \
    X(SAMPLER, "OTEL_TRACES_SAMPLER")                  /* parentbased_always_on */             \
    X(SAMPLER_ARG, "OTEL_TRACES_SAMPLER_ARG")          /* 0..1 for the ratios; 1 */

struct otlp_options {
    bool lines;            /* of the log, and no collector */
    char endpoint[512];    /* the whole URL; empty, and no lines: off */
    char headers[1024];    /* "Name: value\n" lines; they may hold secrets and are never logged */
    char service[128];     /* service.name of the resource */
    char attributes[1024]; /* of the resource, as given: k=v,k=v */
    uint64_t timeout_ns;   /* of one try */
    double sample;         /* 0..1, by the trace id */
    bool parent_based;
};
/* From an environment as environ; an empty variable is as if it weren't there. False: a sentence that names the variable.
 * While nothing is exported the others aren't looked at. */
bool otlp_options_parse(struct otlp_options *ret, char *const environment[], char *ret_text,
                        size_t text_size);

struct otlp_args {
    const struct otlp_options *options; /* borrowed, constant */
};
/* Row "telemetry.otlp" of the topology. Recording begins with its init and ends when it does; without an endpoint it lives
 * and does nothing. */
extern const struct actor_class otlp_class;

#endif
