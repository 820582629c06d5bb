/* Trace context: the request id and W3C trace context of what is being done, taken from the client or made.
 *
 * A bad traceparent never fails a request: it is as if none had come, and its tracestate goes with it. Who sends a good one
 * gets its trace id and its decision to sample (unless the sampler has its own, see trace_export).
 *
 * Spans are recorded by the front, by http/commit.h and by whoever wants to, kept in a ring of TRACE_RING per scheduler and
 * taken from there by the exporter (http/otlp.h), the only reader; a full ring drops the newest and counts. Nothing here
 * blocks, allocates or takes a lock.
 */
#ifndef COPPICE_HTTP_TRACE_H
#define COPPICE_HTTP_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/span.h"

#define TRACE_ID_TEXT     32u
#define TRACE_SPAN_TEXT   16u
#define TRACE_PARENT_TEXT 55u /* 00-<32>-<16>-<2> */
#define TRACE_STATE_MAX   512u
#define TRACE_REQUEST_MAX \
    128u /* of an X-Request-Id: visible ASCII without '"' and '\'; others are replaced by ours */

struct trace {
    uint8_t trace_id[16]; /* never all zeros */
    uint8_t span_id[8];   /* ours */
    uint8_t parent_id[8]; /* the client's; zeros: none */
    uint8_t flags;        /* bit 0: sampled */
    uint8_t request_id_length;
    char request_id[TRACE_REQUEST_MAX]; /* the client's, or a UUIDv7 */
    uint8_t trace_text_length;          /* 0: none */
    char trace_text
        [TRACE_REQUEST_MAX]; /* what the client calls the trace, when that is no trace id: for its errors */
    struct span state;       /* tracestate as it came, at most TRACE_STATE_MAX; borrowed */
};

/* A traceparent by itself: trace id, parent and flags, or false. Version 00 is read exactly, ff is refused, later ones are
 * read as far as they are known. */
bool trace_parse(struct span traceparent, struct trace *ret);
/* From the header values (bytes NULL: absent). From an actor. */
void trace_begin(struct trace *trace, struct span traceparent, struct span tracestate,
                 struct span request_id);
/* Ids that came in the body: a request id that could have been a header's, a trace id of 32 hex digits, or a text for one that could
 * have been a request id. Others (bytes NULL: none) leave what there is. */
void trace_adopt(struct trace *trace, struct span request_id, struct span trace_id);
/* A child of `parent` for something done on its behalf. */
void trace_child(struct trace *child, const struct trace *parent);
void trace_write_parent(const struct trace *trace, char text[TRACE_PARENT_TEXT + 1]);
void trace_write_id(const struct trace *trace, char text[TRACE_ID_TEXT + 1]);
void trace_write_span(const struct trace *trace, char text[TRACE_SPAN_TEXT + 1]);

/* OpenTelemetry's kinds and statuses. */
enum trace_kind { TRACE_INTERNAL = 1, TRACE_SERVER, TRACE_CLIENT, TRACE_PRODUCER, TRACE_CONSUMER };
enum trace_status { TRACE_UNSET = 0, TRACE_OK, TRACE_ERROR };

struct trace_span {
    const struct trace *trace;
    enum trace_kind kind;
    enum trace_status status;
    const char *method;          /* static, of a request: stands before the name; or NULL */
    const char *name;            /* static: "/v1/jobs", "store.commit" */
    uint64_t began_ns, ended_ns; /* monotonic, as actor_now */
    const uint8_t *link_trace_id,
        *link_span_id; /* 16 and 8 bytes: another one that it has to do with; or NULL */
    /* Up to four attributes; keys are static, texts copied up to 63 bytes, NULL text: the number. */
    struct {
        const char *key;
        const char *text;
        int64_t number;
    } attributes[4];
};
/* From an actor, or what is released with one. Does nothing while nobody exports, or when the trace is not sampled. */
void trace_record(const struct trace_span *span);
bool trace_exporting(void);

/* ---- for the exporter ---- */

#define TRACE_RING           1024u /* spans of one scheduler; 968 bytes each, touched when they are used */
#define TRACE_ATTRIBUTES_MAX 4u
#define TRACE_TEXT_MAX       63u

/* A span as the ring keeps it. */
struct trace_recorded {
    uint8_t trace_id[16], span_id[8], parent_id[8];
    uint8_t flags, kind, status;
    uint16_t state_size;
    char state[TRACE_STATE_MAX]; /* of a request's span: its tracestate */
    const char *method;          /* NULL: none */
    const char *name;
    uint64_t began_ns, ended_ns;
    bool linked;
    uint8_t link_trace_id[16], link_span_id[8];
    struct {
        const char *key; /* NULL: no more */
        int64_t number;
        bool textual;
        char text[TRACE_TEXT_MAX + 1];
    } attributes[TRACE_ATTRIBUTES_MAX];
};

/* Which new traces are sampled, and whether anything is recorded at all. `sample`: the share (0..1) of traces, by their id;
 * parent_based: only of those that come without a parent, the others go by its flag. Any thread. */
void trace_export(bool on, double sample, bool parent_based);
/* The oldest span of this scheduler's ring. One reader. */
bool trace_take(uint32_t scheduler, struct trace_recorded *ret);

struct trace_counts {
    uint64_t recorded, dropped; /* since the process began */
};
void trace_counts(struct trace_counts *ret); /* any thread */
/* While no runtime runs: generators begin anew and recorded spans are gone, so that a seed gives the same ids again. */
void trace_forget(void);

#endif
