/* Telemetry: one call says what happened; everything that observes is fed by it.
 *
 *     TELEMETRY(ACTOR_EXIT, 1, DIM(CLASS, "room"), DIM(REASON, "normal"));
 *
 * An event has a name, a measurement and dimensions (runtime/telemetry_names.h). It is refused, and counted
 * as telemetry.rejected, when one of its required dimensions is absent or empty, when its measurement cannot
 * be, when a dimension is given twice, or when its failure_class is not the one its contract names. What is
 * accepted feeds
 *
 *   counters    per event and per value of its one label dimension, the first TELEMETRY_LABELS_MAX - 1 values
 * by name, all others as "other" histograms  of the events that have one SLO windows the last five minutes of
 * the events that have an SLO the ring    the newest TELEMETRY_RING_SIZE events of each shard, the frequent
 * ones left out subscribers up to TELEMETRY_SUBSCRIBERS_MAX functions, called on the emitting thread
 *
 * A shard belongs to one scheduler thread, which enters it once and then writes it alone, without locks.
 * Threads which entered none share one more shard behind a lock. Readers may be any thread at any time; they
 * never stop a writer.
 *
 * All memory is taken at creation: about 0.9 MiB of address space per shard, of which a page becomes resident
 * when it is first written. Emitting does not block (foreign threads: for as long as another foreign thread
 * takes), does not allocate, reads no clock but the one given, and is not async-signal-safe.
 */
#ifndef COPPICE_RUNTIME_TELEMETRY_H
#define COPPICE_RUNTIME_TELEMETRY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/error.h"
#include "runtime/telemetry_names.h"

struct histogram;
struct json;
struct json_sink;
struct telemetry;
struct telemetry_shard;

enum telemetry_dimension {
#define X(id, name) DIM_##id,
    TELEMETRY_DIMENSIONS(X)
#undef X
        TELEMETRY_DIMENSION_COUNT
};

enum telemetry_event {
#define X(id, ...) TELEMETRY_##id,
    TELEMETRY_EVENTS(X)
#undef X
        TELEMETRY_EVENT_COUNT
};

enum telemetry_gauge {
#define X(id, ...) TELEMETRY_GAUGE_##id,
    TELEMETRY_GAUGES(X)
#undef X
        TELEMETRY_GAUGE_COUNT
};

enum telemetry_slo {
#define X(id, ...) TELEMETRY_SLO_##id,
    TELEMETRY_SLOS(X)
#undef X
        TELEMETRY_SLO_COUNT
};

enum failure_class {
#define X(id, name) FAILURE_CLASS_##id,
    FAILURE_CLASSES(X)
#undef X
        FAILURE_CLASS_COUNT
};

enum {
    TELEMETRY_SHARDS_MAX = 64, /* schedulers; the one of foreign threads comes on top */
    TELEMETRY_RING_SIZE = 1024,
    TELEMETRY_LABELS_MAX = 64,
    TELEMETRY_SUBSCRIBERS_MAX = 8,
    TELEMETRY_DIMS_MAX = 8,
    /* Bytes of a dimension's value; holds "instance:<uuid>/listener" (54). A longer one ends in "...". */
    TELEMETRY_VALUE_MAX = 56,
    /* Each dimension: its number, its length, the value, a 0. */
    TELEMETRY_TEXT_MAX = TELEMETRY_DIMS_MAX * (TELEMETRY_VALUE_MAX + 3),
};

const char *telemetry_event_name(enum telemetry_event event);
const char *telemetry_measurement_name(enum telemetry_event event);
const char *telemetry_dimension_name(enum telemetry_dimension dimension);
uint64_t telemetry_required(enum telemetry_event event); /* bit 1 << DIM_... for each required dimension */
const char *failure_class_name(enum failure_class class);

/* Creation. */

struct telemetry_threshold {
    int64_t warn, critical; /* in the unit of the SLO's measurement; both 0: the contract's */
};

struct telemetry_options {
    uint32_t shards;                /* 1..TELEMETRY_SHARDS_MAX */
    uint64_t (*now)(void *context); /* ns, never going back within a thread */
    /* ns since 1970, asked for now and then; it may be set. NULL: `now` is. At the creation it also tells this telemetry
     * from that of another process. */
    uint64_t (*wall)(void *context);
    void *context; /* borrowed */
    struct telemetry_threshold slo[TELEMETRY_SLO_COUNT];
};

/* NULL when memory is not to be had, shards is out of range, or a threshold is looser than the contract's. */
struct telemetry *telemetry_create(const struct telemetry_options *options);
/* No thread may be inside a shard or emitting. Accepts NULL. Uninstalls. */
void telemetry_destroy(struct telemetry *telemetry);
/* Makes it the one that threads without a shard emit into. NULL: they emit into nothing. */
void telemetry_install(struct telemetry *telemetry);

struct telemetry_shard *telemetry_shard(struct telemetry *telemetry, uint32_t index);
/* What this thread emits goes there from now on (NULL: to the shared shard). One thread per shard at a time.
 * Returns the shard the thread was in. */
struct telemetry_shard *telemetry_shard_enter(struct telemetry_shard *shard);

/* Emitting. */

enum telemetry_dim_kind { DIM_KIND_TEXT, DIM_KIND_INT, DIM_KIND_HEX };

struct telemetry_dim {
    enum telemetry_dimension dimension;
    enum telemetry_dim_kind kind;
    union {
        const char *text; /* borrowed for the call; NULL or "" is an absent value */
        int64_t number;
        uint64_t hex;
    };
};

#define DIM(id, value) ((struct telemetry_dim){.dimension = DIM_##id, .kind = DIM_KIND_TEXT, .text = (value)})
#define DIM_INT(id, value) \
    ((struct telemetry_dim){.dimension = DIM_##id, .kind = DIM_KIND_INT, .number = (value)})
#define DIM_HEX(id, value) \
    ((struct telemetry_dim){.dimension = DIM_##id, .kind = DIM_KIND_HEX, .hex = (value)})

/* False when the event was refused, or when there is no telemetry to take it. Values are copied. */
bool telemetry_emit(enum telemetry_event event, int64_t measurement, const struct telemetry_dim *dims,
                    size_t count);

/* For those who emit the same sound event all the time: counts one whose label has this place among those that its row in
 * telemetry_names.h lists, without looking at any value. False: somebody wants to see the whole event, or it isn't a frequent
 * one, and nothing was done. */
bool telemetry_count(enum telemetry_event event, int64_t measurement, uint32_t known);

/* From now on the counter has a series for this value of its label, with 0 if nothing has come yet: who compares two
 * readings (increase() of Prometheus) doesn't see the first event of a series that is born by it. Any thread. */
void telemetry_counter_expect(enum telemetry_event event, const char *label);

#define TELEMETRY(id, measurement, ...)                                                        \
    telemetry_emit(TELEMETRY_##id, (measurement), (const struct telemetry_dim[]){__VA_ARGS__}, \
                   sizeof((const struct telemetry_dim[]){__VA_ARGS__}) / sizeof(struct telemetry_dim))

/* Gauges: any thread, lock-free but for the first use of a label. */

/* The cell of a gauge's label, for those who write it often; valid until destroy. Labels beyond
 * TELEMETRY_LABELS_MAX - 1 share "other". NULL when there is no telemetry. */
_Atomic int64_t *telemetry_gauge_cell(enum telemetry_gauge gauge, const char *label);
void telemetry_gauge_set(enum telemetry_gauge gauge, const char *label, int64_t value);
void telemetry_gauge_add(enum telemetry_gauge gauge, const char *label, int64_t change);
int64_t telemetry_gauge_get(enum telemetry_gauge gauge, const char *label);
/* Each label that was ever used, "other" first; the text is good as long as the telemetry. */
void telemetry_gauge_each(const struct telemetry *telemetry, enum telemetry_gauge gauge,
                          void (*visit)(void *context, const char *label, int64_t value), void *context);

/* Records: one event as the ring keeps it and subscribers see it. */

struct telemetry_record {
    uint64_t
        sequence; /* 1, 2, 3, ...: the order in which all shards kept them; 0: of a frequent event, not kept */
    uint64_t
        time; /* as the emitting thread had it, which may be a turn old: it can be before that of a lower sequence */
    uint64_t
        wall; /* what the wall clock said then, up to TELEMETRY_WALL_STALE_NS before carried on by the other one */
    uint64_t n; /* 0, 1, 2, ... within its shard */
    int64_t measurement;
    uint16_t event;
    uint16_t shard;
    uint16_t text_length;
    uint8_t dims;
    uint8_t reserved;
    char text[TELEMETRY_TEXT_MAX];
};

/* The value of a dimension, or NULL. Borrowed from the record. */
const char *telemetry_record_value(const struct telemetry_record *record, enum telemetry_dimension dimension);
#define TELEMETRY_WALL_STALE_NS UINT64_C(100000000)
/* {"at":"2026-11-18T17:31:58.188Z","event":"actor.exit","sequence":"<process>-<n>",
 * "measurement":{"count":1},"dimensions":{"class":"room",...}}; `at`: record->wall as the caller writes times. */
void telemetry_record_write(const struct telemetry *telemetry, const struct telemetry_record *record,
                            const char *at, struct json *json);

/* Subscribers. */

enum { TELEMETRY_FILTER_WORDS = (TELEMETRY_EVENT_COUNT + 63) / 64 };

struct telemetry_filter {
    uint64_t words[TELEMETRY_FILTER_WORDS];
};

static inline void telemetry_filter_add(struct telemetry_filter *filter, enum telemetry_event event)
{
    filter->words[event / 64] |= UINT64_C(1) << (event % 64);
}

/* Called on the emitting thread, after the record is in the ring, inside a guarded section: nobody is switched out in it, and
 * a fault in it ends the process. Must not block, and must return (an actor must not end inside it). It may emit; what it
 * emits is counted and recorded but not given to subscribers. */
typedef void (*telemetry_subscriber)(void *context, const struct telemetry_record *record);

/* `filter` NULL: all events. Returns a handle >= 0, or -1 when all places are taken. Any thread. */
int telemetry_subscribe(struct telemetry *telemetry, const struct telemetry_filter *filter,
                        telemetry_subscriber subscriber, void *context);
/* When it returns the subscriber is not running and will not be called again. Waits for a call in progress on
 * another thread; not from inside a subscriber. */
void telemetry_unsubscribe(struct telemetry *telemetry, int handle);

/* Reading: any thread. */

uint64_t telemetry_counter_sum(const struct telemetry *telemetry, enum telemetry_event event);
/* 0 for a label that was never seen; "other" gives those without a place of their own. */
uint64_t telemetry_counter_label(const struct telemetry *telemetry, enum telemetry_event event,
                                 const char *label);
/* Adds all shards to `into`. False when the event has no histogram. */
bool telemetry_histogram_merge(const struct telemetry *telemetry, enum telemetry_event event,
                               struct histogram *into);

/* A record's sequence as text, with the process that it is of: 16 digits, "-", a number and a 0. */
#define TELEMETRY_SEQUENCE_MAX (16 + 1 + 20 + 1)
size_t telemetry_sequence_write(const struct telemetry *telemetry, uint64_t sequence,
                                char text[TELEMETRY_SEQUENCE_MAX]);
/* ERR_INVALID: no sequence at all. ERR_NOT_FOUND: of another process. */
enum error telemetry_sequence_read(const struct telemetry *telemetry, const char *text, uint64_t *ret);

/* Returns false to stop. The record is the reader's copy, valid during the call. */
typedef bool (*telemetry_visitor)(void *context, const struct telemetry_record *record);

/* Visits the records in the rings in the order of their sequences, those behind `after` (0: all) up to telemetry_kept of
 * this moment. Whoever goes on behind the last one visited sees each record once, whichever thread is late; what the rings
 * have lost by then is a gap in the sequences. Returns how many were visited. Uses 3 KiB of stack. */
size_t telemetry_recent(const struct telemetry *telemetry, uint64_t after, telemetry_visitor visit,
                        void *context);

/* The sequence up to which nothing will be added any more. Unchanged, there is nothing new to visit. */
uint64_t telemetry_kept(const struct telemetry *telemetry);

/* SLO levels. */

#define SLO_LEVELS(X) \
    X(OK, "ok")       \
    X(WARN, "warn")   \
    X(CRITICAL, "critical")

enum slo_level {
#define X(id, name) SLO_##id,
    SLO_LEVELS(X)
#undef X
        SLO_LEVEL_COUNT
};

#define TELEMETRY_SLO_WINDOW_NS UINT64_C(300000000000) /* five minutes, moving in steps of ten seconds */
enum { TELEMETRY_SLO_SAMPLES_MIN = 20 };

struct telemetry_slo_state {
    enum slo_level level;
    bool insufficient; /* fewer than TELEMETRY_SLO_SAMPLES_MIN samples; then level is ok. Not for TOTAL: one
                          is enough */
    uint64_t samples;
    /* P95: ns, at most 6.3 % above the true one, and on the true one's side of both thresholds. RATIO: ppm
     * (1,000,000 without samples). TOTAL: the sum. */
    int64_t value;
    struct telemetry_threshold threshold; /* in force */
};

/* Over the window that ends at `now`: levels are exact, from counts of samples beyond each threshold. */
void telemetry_slo_read(const struct telemetry *telemetry, enum telemetry_slo slo, uint64_t now,
                        struct telemetry_slo_state *ret_state);
/* Whether these thresholds are consistent and at least as strict as the contract's. */
bool telemetry_slo_accepts(enum telemetry_slo slo, struct telemetry_threshold threshold);
const char *telemetry_slo_name(enum telemetry_slo slo);
const char *slo_level_name(enum slo_level level);

/* Metrics. */

/* They differ in how a counter's family is called: OpenMetrics leaves _total to its samples. */
enum telemetry_format {
    TELEMETRY_PROMETHEUS,  /* text format 0.0.4 */
    TELEMETRY_OPENMETRICS, /* 1.0.0, without its last line "# EOF", which is the document's */
};
/* Counters, histograms, gauges, SLO states; every known series from the start, with 0. */
void telemetry_write_metrics(struct telemetry *telemetry, struct json_sink *sink,
                             enum telemetry_format format);

#endif
