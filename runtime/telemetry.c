/* How a shard is read while its thread writes it.
 *
 * Everything that two threads touch is atomic. Counts are stored by their one writer with a plain load and
 * store. A slot of the ring carries a state: the writer stores one that no reader accepts, then the content,
 * then the new state; the reader takes the state, the content, and the state again, and drops what it has
 * read if the two differ. The content is stored with release and loaded with acquire order, so that a reader
 * who met one new word of it also meets the changed state; no fences, which ThreadSanitizer does not know.
 *
 * Kept records are numbered across all shards. A number is drawn before its record can be read, so a reader that goes on
 * behind the greatest number it has seen would lose the record of a thread that is held up in between. Therefore each
 * shard says, before it draws one, how many had been drawn (`keeping`), and takes that back when the record is there:
 * what a reader may see ends before the first number that may still be on its way (telemetry_kept).
 */
#include "runtime/telemetry.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/actor.h"
#include "runtime/assert.h"
#include "runtime/histogram.h"
#include "runtime/json.h"
#include "runtime/slo_window.h"

enum {
    RING_WORDS = sizeof(struct telemetry_record) / 8,
    LABEL_TEXTS_MAX =
        ((uint32_t)TELEMETRY_EVENT_COUNT + (uint32_t)TELEMETRY_GAUGE_COUNT) * (TELEMETRY_LABELS_MAX - 1),
    LABEL_PLACES = 2 * TELEMETRY_LABELS_MAX, /* at most half full: a search always ends at a free place */
    LABEL_OTHER = 0,
    WHY_MAX = TELEMETRY_VALUE_MAX + 1,
};

STATIC_ASSERT(sizeof(struct telemetry_record) % 8 == 0, "records are copied word by word");
STATIC_ASSERT(TELEMETRY_DIMENSION_COUNT <= 64, "required dimensions are bits of one word");
STATIC_ASSERT(TELEMETRY_SUBSCRIBERS_MAX <= 8, "subscribers of an event are bits of one byte");
STATIC_ASSERT(LABEL_PLACES < 256, "places are bytes");
STATIC_ASSERT(LABEL_TEXTS_MAX <= UINT16_MAX, "the number of a text fits");

/* The lists as tables. */

enum unit {
#define X(id) UNIT_##id,
    TELEMETRY_UNITS(X)
#undef X
};

enum histogram_index {
#define X(event, ...) HISTOGRAM_OF_##event,
    TELEMETRY_HISTOGRAMS(X)
#undef X
        HISTOGRAM_COUNT
};

static const struct event_row {
    const char *name, *measurement, *counter, *labels, *help;
    uint64_t required;
    enum unit unit;
    enum telemetry_dimension label;
} events[TELEMETRY_EVENT_COUNT] = {
#define HAS(id) (UINT64_C(1) << DIM_##id)
#define X(id, name_, measurement_, unit_, counter_, label_, labels_, required_, help_) \
    [TELEMETRY_##id] = {.name = name_,                                                 \
                        .measurement = measurement_,                                   \
                        .counter = counter_,                                           \
                        .labels = labels_,                                             \
                        .help = help_,                                                 \
                        .required = required_,                                         \
                        .unit = UNIT_##unit_,                                          \
                        .label = DIM_##label_},
    TELEMETRY_EVENTS(X)
#undef X
};

#define X(id, name, measurement, unit, counter, label, labels, required, help) \
    STATIC_ASSERT((HAS(label) & (required)) != 0,                              \
                  "the label of " name " is not one of its required dimensions");
TELEMETRY_EVENTS(X)
#undef X
#undef HAS

static const char *const dimension_names[TELEMETRY_DIMENSION_COUNT] = {
#define X(id, name) [DIM_##id] = name,
    TELEMETRY_DIMENSIONS(X)
#undef X
};

static const char *const failure_class_names[FAILURE_CLASS_COUNT] = {
#define X(id, name) [FAILURE_CLASS_##id] = name,
    FAILURE_CLASSES(X)
#undef X
};

/* One more than the class that the event must name; 0: any of them. */
static const uint8_t failure_class_of[TELEMETRY_EVENT_COUNT] = {
#define X(event, class) [TELEMETRY_##event] = FAILURE_CLASS_##class + 1,
    TELEMETRY_FAILURES(X)
#undef X
};

static const struct histogram_row {
    const char *name, *help;
} histograms[HISTOGRAM_COUNT] = {
#define X(event, name_, help_) [HISTOGRAM_OF_##event] = {.name = name_, .help = help_},
    TELEMETRY_HISTOGRAMS(X)
#undef X
};

static const bool frequent[TELEMETRY_EVENT_COUNT] = {
#define X(event) [TELEMETRY_##event] = true,
    TELEMETRY_FREQUENT(X)
#undef X
};

/* One more than its index; 0: none. The same for SLOs. */
static const uint8_t histogram_of[TELEMETRY_EVENT_COUNT] = {
#define X(event, ...) [TELEMETRY_##event] = HISTOGRAM_OF_##event + 1,
    TELEMETRY_HISTOGRAMS(X)
#undef X
};

static const struct slo_row {
    const char *name, *capability;
    struct telemetry_threshold threshold;
    enum slo_kind kind;
} slos[TELEMETRY_SLO_COUNT] = {
#define X(id, name_, event, kind_, warn_, critical_, capability_)                \
    [TELEMETRY_SLO_##id] = {.name = name_,                                       \
                            .capability = capability_,                           \
                            .threshold = {.warn = warn_, .critical = critical_}, \
                            .kind = SLO_##kind_},
    TELEMETRY_SLOS(X)
#undef X
};

static const uint8_t slo_of[TELEMETRY_EVENT_COUNT] = {
#define X(id, name, event, ...) [TELEMETRY_##event] = TELEMETRY_SLO_##id + 1,
    TELEMETRY_SLOS(X)
#undef X
};

static const char *const slo_level_names[SLO_LEVEL_COUNT] = {
#define X(id, name) [SLO_##id] = name,
    SLO_LEVELS(X)
#undef X
};

static const struct gauge_row {
    const char *name, *label, *help;
} gauges[TELEMETRY_GAUGE_COUNT] = {
#define X(id, name_, label_, help_) [TELEMETRY_GAUGE_##id] = {.name = name_, .label = label_, .help = help_},
    TELEMETRY_GAUGES(X)
#undef X
};

/* State. */

struct label_value {
    uint8_t length;
    char text[TELEMETRY_VALUE_MAX + 1];
};

/* The values seen of one label. Only grows: a value, once it has an index, keeps it. "other" isn't written down. The texts of all labels
 * lie behind each other as they come, so that those known at boot take a few pages instead of some for each label. */
struct labels {
    const struct label_value *texts;       /* of all labels */
    _Atomic uint8_t added;                 /* beside "other" */
    _Atomic uint8_t places[LABEL_PLACES];  /* open addressing: index of the value, 0 is free */
    uint16_t values[TELEMETRY_LABELS_MAX]; /* numbers of texts, each written before its place and `added` */
};

struct slot {
    _Atomic uint64_t state; /* 2n + 1: record n is being written; 2n + 2: it is there */
    _Atomic uint64_t words[RING_WORDS];
};

struct telemetry_shard {
    struct telemetry *telemetry;
    uint32_t index;
    /* Written by the shard's thread only. */
    _Alignas(64) _Atomic uint64_t next; /* n of the next record */
    _Atomic uint64_t keeping; /* 1 + how many numbers were drawn before the one in work; 0: none is */
    uint64_t asked, ahead;    /* when the wall clock was asked, and by how much it was ahead then */
    _Atomic uint64_t counts[TELEMETRY_EVENT_COUNT][TELEMETRY_LABELS_MAX];
    struct histogram histograms[HISTOGRAM_COUNT];
    struct slo_window windows[TELEMETRY_SLO_COUNT];
    struct slot ring[TELEMETRY_RING_SIZE];
};

struct subscriber {
    telemetry_subscriber call;
    void *context;
    bool taken;             /* under the lock */
    _Atomic uint32_t calls; /* in progress */
};

struct telemetry {
    uint64_t (*now)(void *context);
    uint64_t (*wall)(void *context);
    void *context;
    uint64_t process; /* tells it from another one */
    size_t size;      /* of the whole mapping */
    uint32_t shard_count;
    struct telemetry_threshold thresholds[TELEMETRY_SLO_COUNT];
    pthread_mutex_t lock;        /* growing labels, taking subscriber places */
    pthread_mutex_t shared_lock; /* writing the shard of foreign threads, shards[shard_count] */
    pthread_mutex_t merge_lock;
    struct histogram merged;               /* for writing metrics */
    _Alignas(64) _Atomic uint64_t numbers; /* of kept records, drawn so far */
    struct subscriber subscribers[TELEMETRY_SUBSCRIBERS_MAX];
    _Atomic uint8_t wanted[TELEMETRY_EVENT_COUNT]; /* bit i: subscriber i wants the event */
    struct labels labels[TELEMETRY_EVENT_COUNT];
    uint8_t known
        [TELEMETRY_EVENT_COUNT]; /* labels that were there from the beginning: the first ones behind "other" */
    struct {
        struct labels labels;
        _Atomic int64_t cells[TELEMETRY_LABELS_MAX];
    } gauges[TELEMETRY_GAUGE_COUNT];
    uint32_t texts_count; /* under the lock */
    struct label_value texts[LABEL_TEXTS_MAX];
    struct telemetry_shard shards[];
};

static struct telemetry *_Atomic installed;
static _Thread_local struct telemetry_shard *current_shard;
static _Thread_local bool delivering;

static void add(_Atomic uint64_t *cell, uint64_t n)
{
    atomic_store_explicit(cell, atomic_load_explicit(cell, memory_order_relaxed) + n, memory_order_relaxed);
}

/* Names. */

const char *telemetry_event_name(enum telemetry_event event)
{
    return event < TELEMETRY_EVENT_COUNT ? events[event].name : "unknown";
}

const char *telemetry_measurement_name(enum telemetry_event event)
{
    return event < TELEMETRY_EVENT_COUNT ? events[event].measurement : "unknown";
}

const char *telemetry_dimension_name(enum telemetry_dimension dimension)
{
    return dimension < TELEMETRY_DIMENSION_COUNT ? dimension_names[dimension] : "unknown";
}

uint64_t telemetry_required(enum telemetry_event event)
{
    return event < TELEMETRY_EVENT_COUNT ? events[event].required : 0;
}

const char *failure_class_name(enum failure_class class)
{
    return class < FAILURE_CLASS_COUNT ? failure_class_names[class] : "unknown";
}

const char *telemetry_slo_name(enum telemetry_slo slo)
{
    return slo < TELEMETRY_SLO_COUNT ? slos[slo].name : "unknown";
}

const char *slo_level_name(enum slo_level level)
{
    return level < SLO_LEVEL_COUNT ? slo_level_names[level] : "unknown";
}

/* Labels. */

static uint32_t label_hash(const char *text, size_t length)
{
    uint64_t hash = length;

    while (length > 0) {
        uint64_t word = 0;
        size_t part = length < 8 ? length : 8;

        if (part == 8)
            memcpy(&word, text, 8);
        else
            for (size_t i = 0; i < part; i++) /* shorter than the call would be */
                word |= (uint64_t)(unsigned char)text[i] << (8 * i);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
        text += part;
        length -= part;
    }
    return (uint32_t)hash;
}

/* The index of a value, or LABEL_OTHER; *ret_place is where it is or would be. */
static uint8_t label_find(const struct labels *labels, const char *text, size_t length, uint32_t *ret_place)
{
    uint32_t place = label_hash(text, length) % LABEL_PLACES;

    for (;;) {
        uint8_t index = atomic_load_explicit(&labels->places[place], memory_order_acquire);

        const struct label_value *value = &labels->texts[labels->values[index]];

        if (index == LABEL_OTHER || (value->length == length && memcmp(value->text, text, length) == 0)) {
            *ret_place = place;
            return index;
        }
        place = (place + 1) % LABEL_PLACES;
    }
}

static uint32_t label_count(const struct labels *labels)
{
    return 1u + atomic_load_explicit(&labels->added, memory_order_acquire);
}

static const struct label_value *label_value(const struct labels *labels, uint32_t index)
{
    static const struct label_value other = {.length = 5, .text = "other"};

    return index == LABEL_OTHER ? &other : &labels->texts[labels->values[index]];
}

static void label_store(struct telemetry *t, struct labels *labels, uint8_t index, const char *text,
                        size_t length)
{
    struct label_value *value = &t->texts[t->texts_count];

    ASSERT(text != NULL); /* each event requires the dimension of its label */
    value->length = (uint8_t)length;
    memcpy(value->text, text, length);
    labels->values[index] = (uint16_t)t->texts_count++;
}

static uint8_t label_add(struct telemetry *t, struct labels *labels, const char *text, size_t length)
{
    uint32_t place;
    uint8_t index;

    pthread_mutex_lock(&t->lock);
    index = label_find(labels, text, length, &place);
    if (index == LABEL_OTHER) {
        uint32_t count = label_count(labels);

        if (count < TELEMETRY_LABELS_MAX) {
            index = (uint8_t)count;
            label_store(t, labels, index, text, length);
            atomic_store_explicit(&labels->places[place], index, memory_order_release);
            atomic_store_explicit(&labels->added, index, memory_order_release);
        }
    }
    pthread_mutex_unlock(&t->lock);
    return index;
}

/* The index of a value, which gets one now if there is room. `length` <= TELEMETRY_VALUE_MAX. */
static uint8_t label_index(struct telemetry *t, struct labels *labels, const char *text, size_t length)
{
    uint32_t place;
    uint8_t index = label_find(labels, text, length, &place);

    if (index != LABEL_OTHER || label_count(labels) == TELEMETRY_LABELS_MAX)
        return index;
    if (length == 5 && memcmp(text, "other", 5) == 0)
        return LABEL_OTHER;
    return label_add(t, labels, text, length);
}

static void labels_init(struct telemetry *t, struct labels *labels, const char *known)
{
    labels->texts = t->texts;
    while (*known != 0) {
        size_t length = strcspn(known, "|");

        label_index(t, labels, known, length);
        known += length + (known[length] == '|');
    }
}

/* Creation. */

bool telemetry_slo_accepts(enum telemetry_slo slo, struct telemetry_threshold threshold)
{
    const struct telemetry_threshold *contract = &slos[slo].threshold;

    switch (slos[slo].kind) {
    case SLO_P95:
        return threshold.warn > 0 && threshold.warn <= threshold.critical &&
               threshold.warn <= contract->warn && threshold.critical <= contract->critical;
    case SLO_RATIO:
        return threshold.warn <= 1000000 && threshold.warn >= threshold.critical &&
               threshold.warn >= contract->warn && threshold.critical >= contract->critical;
    case SLO_TOTAL:
        return threshold.warn == contract->warn && threshold.critical > 0 &&
               threshold.critical <= contract->critical;
    }
    return false;
}

static bool thresholds_fill(struct telemetry_threshold *to, const struct telemetry_threshold *from)
{
    for (enum telemetry_slo i = 0; i < TELEMETRY_SLO_COUNT; i++) {
        to[i] = from[i].warn == 0 && from[i].critical == 0 ? slos[i].threshold : from[i];
        if (!telemetry_slo_accepts(i, to[i]))
            return false;
    }
    return true;
}

struct telemetry *telemetry_create(const struct telemetry_options *options)
{
    struct telemetry_threshold thresholds[TELEMETRY_SLO_COUNT];
    struct telemetry *t;
    size_t size;

    if (options->shards == 0 || options->shards > TELEMETRY_SHARDS_MAX ||
        !thresholds_fill(thresholds, options->slo))
        return NULL;
    /* Straight from the kernel: zeroed, aligned, and resident only where it was written. */
    size = sizeof(*t) + (options->shards + 1) * sizeof(t->shards[0]);
    t = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (t == MAP_FAILED)
        return NULL;
    t->now = options->now;
    t->wall = options->wall ? options->wall : options->now;
    t->context = options->context;
    t->process = t->wall(t->context);
    t->size = size;
    t->shard_count = options->shards;
    memcpy(t->thresholds, thresholds, sizeof(thresholds));
    pthread_mutex_init(&t->lock, NULL);
    pthread_mutex_init(&t->shared_lock, NULL);
    pthread_mutex_init(&t->merge_lock, NULL);
    for (enum telemetry_event i = 0; i < TELEMETRY_EVENT_COUNT; i++) {
        labels_init(t, &t->labels[i], events[i].labels);
        t->known[i] = (uint8_t)(label_count(&t->labels[i]) - 1);
    }
    for (enum telemetry_gauge i = 0; i < TELEMETRY_GAUGE_COUNT; i++)
        labels_init(t, &t->gauges[i].labels, "");
    for (uint32_t i = 0; i <= t->shard_count; i++) {
        t->shards[i].telemetry = t;
        t->shards[i].index = i;
    }
    return t;
}

void telemetry_destroy(struct telemetry *t)
{
    struct telemetry *self = t;

    if (t == NULL)
        return;
    atomic_compare_exchange_strong(&installed, &self, NULL);
    pthread_mutex_destroy(&t->lock);
    pthread_mutex_destroy(&t->shared_lock);
    pthread_mutex_destroy(&t->merge_lock);
    munmap(t, t->size);
}

void telemetry_install(struct telemetry *t)
{
    atomic_store_explicit(&installed, t, memory_order_release);
}

struct telemetry_shard *telemetry_shard(struct telemetry *t, uint32_t index)
{
    ASSERT(index < t->shard_count);
    return &t->shards[index];
}

struct telemetry_shard *telemetry_shard_enter(struct telemetry_shard *shard)
{
    struct telemetry_shard *before = current_shard;

    current_shard = shard;
    return before;
}

static struct telemetry *telemetry_here(void)
{
    return current_shard != NULL ? current_shard->telemetry
                                 : atomic_load_explicit(&installed, memory_order_acquire);
}

/* Packing and checking an event. */

/* Bytes of the value, cut so that no character is split and the cut shows. */
static size_t text_pack(char *to, const char *text)
{
    size_t length = text == NULL ? 0 : strnlen(text, TELEMETRY_VALUE_MAX + 1);

    if (length <= TELEMETRY_VALUE_MAX) {
        memcpy(to, text == NULL ? "" : text, length);
        return length;
    }
    length = TELEMETRY_VALUE_MAX - 3;
    while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
        length--;
    memcpy(to, text, length);
    memcpy(to + length, "...", 3);
    return length + 3;
}

static size_t value_pack(char *to, const struct telemetry_dim *dim)
{
    struct json_sink sink;

    if (dim->kind == DIM_KIND_TEXT)
        return text_pack(to, dim->text);
    json_sink_init(&sink, to, TELEMETRY_VALUE_MAX, NULL, NULL);
    if (dim->kind == DIM_KIND_INT)
        json_sink_int(&sink, dim->number);
    else
        json_sink_hex(&sink, dim->hex);
    return sink.length;
}

static bool measurement_possible(enum unit unit, int64_t measurement)
{
    switch (unit) {
    case UNIT_COUNT:
        return true;
    case UNIT_NS:
    case UNIT_PPM:
        return measurement >= 0;
    case UNIT_YESNO:
        return measurement == 0 || measurement == 1;
    }
    return false;
}

static bool failure_class_fits(enum telemetry_event event, const char *text)
{
    if (failure_class_of[event] != 0)
        return strcmp(text, failure_class_names[failure_class_of[event] - 1]) == 0;
    for (enum failure_class i = 0; i < FAILURE_CLASS_COUNT; i++)
        if (strcmp(text, failure_class_names[i]) == 0)
            return true;
    return false;
}

static bool refuse(char *why, const char *text, const char *name)
{
    struct json_sink sink;

    json_sink_init(&sink, why, WHY_MAX - 1, NULL, NULL);
    json_sink_text(&sink, text);
    json_sink_text(&sink, name);
    why[sink.length] = 0;
    return false;
}

/* Fills in everything but time, n and shard. False, with the reason in `why`, when the event is refused. */
static bool record_pack(struct telemetry_record *record, enum telemetry_event event, int64_t measurement,
                        const struct telemetry_dim *dims, size_t count, char *why)
{
    uint64_t seen = 0, missing;
    size_t at = 0;

    record->measurement = measurement;
    record->event = (uint16_t)event;
    record->dims = 0;
    record->reserved = 0;
    if (event >= TELEMETRY_EVENT_COUNT)
        return refuse(why, "unknown event", "");
    if (!measurement_possible(events[event].unit, measurement))
        return refuse(why, "impossible ", events[event].measurement);
    if (count > TELEMETRY_DIMS_MAX)
        return refuse(why, "too many dimensions", "");
    for (size_t i = 0; i < count; i++) {
        enum telemetry_dimension dimension = dims[i].dimension;
        char *value = record->text + at + 2;
        size_t length;

        if (dimension >= TELEMETRY_DIMENSION_COUNT)
            return refuse(why, "unknown dimension", "");
        if (seen & (UINT64_C(1) << dimension))
            return refuse(why, "twice ", dimension_names[dimension]);
        length = value_pack(value, &dims[i]);
        if (length == 0)
            continue;
        value[length] = 0;
        if (dimension == DIM_FAILURE_CLASS && !failure_class_fits(event, value))
            return refuse(why, "wrong ", dimension_names[dimension]);
        record->text[at] = (char)dimension;
        record->text[at + 1] = (char)length;
        record->dims++;
        seen |= UINT64_C(1) << dimension;
        at += length + 3;
    }
    record->text_length = (uint16_t)at;
    missing = events[event].required & ~seen;
    if (missing != 0)
        return refuse(why, "missing ", dimension_names[__builtin_ctzll(missing)]);
    return true;
}

static const char *record_find(const struct telemetry_record *record, enum telemetry_dimension dimension,
                               size_t *ret_length)
{
    size_t at = 0;

    for (uint8_t i = 0; i < record->dims; i++) {
        size_t length = (unsigned char)record->text[at + 1];

        if ((unsigned char)record->text[at] == dimension) {
            *ret_length = length;
            return record->text + at + 2;
        }
        at += length + 3;
    }
    return NULL;
}

const char *telemetry_record_value(const struct telemetry_record *record, enum telemetry_dimension dimension)
{
    size_t length;

    return record_find(record, dimension, &length);
}

/* Emitting. */

static void slot_write(struct slot *slot, const struct telemetry_record *record)
{
    size_t words = (offsetof(struct telemetry_record, text) + record->text_length + 7) / 8;
    const char *bytes = (const char *)record;

    atomic_store_explicit(&slot->state, 2 * record->n + 1, memory_order_relaxed);
    for (size_t i = 0; i < words; i++) {
        uint64_t word;

        memcpy(&word, bytes + 8 * i, 8);
        atomic_store_explicit(&slot->words[i], word, memory_order_release);
    }
    atomic_store_explicit(&slot->state, 2 * record->n + 2, memory_order_release);
}

static void shard_add(struct telemetry_shard *shard, enum telemetry_event event, int64_t measurement,
                      uint32_t index)
{
    add(&shard->counts[event][index], 1);
    if (histogram_of[event] != 0)
        histogram_record(&shard->histograms[histogram_of[event] - 1], (uint64_t)measurement);
}

static void shard_count(struct telemetry_shard *shard, enum telemetry_event event, int64_t measurement,
                        const char *label, size_t length)
{
    struct telemetry *t = shard->telemetry;

    shard_add(shard, event, measurement, label_index(t, &t->labels[event], label, length));
}

static uint64_t wall_of(struct telemetry_shard *shard, uint64_t time)
{
    const struct telemetry *t = shard->telemetry;

    if (time < shard->asked || time - shard->asked >= TELEMETRY_WALL_STALE_NS || shard->asked == 0) {
        shard->ahead = t->wall(t->context) - time;
        shard->asked = time;
    }
    return time + shard->ahead;
}

/* Who ends in the middle (an actor without a stack left) leaves a number without a record, and `keeping` as it was until
 * the shard's next one, which tells of that end. */
static void shard_keep(struct telemetry_shard *shard, struct telemetry_record *record)
{
    struct telemetry *t = shard->telemetry;

    atomic_store(&shard->keeping, atomic_load(&t->numbers) + 1);
    record->sequence = atomic_fetch_add(&t->numbers, 1) + 1;
    record->wall = wall_of(shard, record->time);
    slot_write(&shard->ring[record->n % TELEMETRY_RING_SIZE], record);
    atomic_store_explicit(&shard->next, record->n + 1, memory_order_release);
    atomic_store_explicit(&shard->keeping, 0, memory_order_release);
}

static void shard_judge(struct telemetry_shard *shard, enum telemetry_slo slo,
                        const struct telemetry_record *record)
{
    slo_window_record(&shard->windows[slo], slos[slo].kind, shard->telemetry->thresholds[slo], record->time,
                      record->measurement);
}

static void shard_take(struct telemetry_shard *shard, struct telemetry_record *record)
{
    struct telemetry *t = shard->telemetry;
    enum telemetry_event event = record->event;
    size_t length = 0;
    const char *label = record_find(record, events[event].label, &length);

    record->time = t->now(t->context);
    record->shard = (uint16_t)shard->index;
    record->n = atomic_load_explicit(&shard->next, memory_order_relaxed);
    shard_count(shard, event, record->measurement, label, length);
    if (slo_of[event] != 0)
        shard_judge(shard, slo_of[event] - 1u, record);
    record->sequence = 0;
    if (frequent[event])
        record->wall = wall_of(shard, record->time); /* for subscribers alone */
    else
        shard_keep(shard, record);
}

/* Pairs with telemetry_unsubscribe: it clears the wish and then looks for calls, we announce the call and
 * then look for the wish, all in one total order; so either it waits for us or we do not call.
 *
 * A subscriber is code of above in the middle of ours: of an append to a mailbox, say, whose level has changed. It is
 * guarded, because an actor that was switched out in it, and ended there, would leave that half done, nobody told on this
 * thread any more, and whoever unsubscribes waiting. */
static void record_deliver(struct telemetry *t, const struct telemetry_record *record)
{
    uint8_t wanted = atomic_load_explicit(&t->wanted[record->event], memory_order_relaxed);

    if (wanted == 0 || delivering)
        return;
    delivering = true;
    actor_guard_begin();
    for (uint32_t i = 0; i < TELEMETRY_SUBSCRIBERS_MAX; i++) {
        struct subscriber *subscriber = &t->subscribers[i];

        if ((wanted & (1u << i)) == 0)
            continue;
        atomic_fetch_add(&subscriber->calls, 1);
        if (atomic_load(&t->wanted[record->event]) & (1u << i))
            subscriber->call(subscriber->context, record);
        atomic_fetch_sub(&subscriber->calls, 1);
    }
    actor_guard_end();
    delivering = false;
}

/* Whether there is nothing to do but to count: a frequent event in which nobody sees more than its label, and which is
 * plainly sound. Any doubt is left to record_pack. */
static bool only_counts(const struct telemetry *t, enum telemetry_event event, int64_t measurement,
                        const struct telemetry_dim *dims, size_t count, const char **ret_label,
                        size_t *ret_length)
{
    uint64_t seen = 0;

    if (event >= TELEMETRY_EVENT_COUNT || !frequent[event] || slo_of[event] != 0 ||
        atomic_load_explicit(&t->wanted[event], memory_order_relaxed) != 0 ||
        !measurement_possible(events[event].unit, measurement) || count > TELEMETRY_DIMS_MAX)
        return false;
    for (size_t i = 0; i < count; i++) {
        enum telemetry_dimension dimension = dims[i].dimension;

        if (dims[i].kind != DIM_KIND_TEXT || dims[i].text == NULL || dims[i].text[0] == 0 ||
            dimension >= TELEMETRY_DIMENSION_COUNT || dimension == DIM_FAILURE_CLASS ||
            (seen & (UINT64_C(1) << dimension)) != 0)
            return false;
        seen |= UINT64_C(1) << dimension;
        if (dimension == events[event].label) {
            *ret_label = dims[i].text;
            *ret_length = strnlen(dims[i].text, TELEMETRY_VALUE_MAX + 1);
        }
    }
    /* The label is one of the required: it was there. */
    return (events[event].required & ~seen) == 0 && *ret_length <= TELEMETRY_VALUE_MAX;
}

bool telemetry_count(enum telemetry_event event, int64_t measurement, uint32_t known)
{
    struct telemetry_shard *shard = current_shard;

    ASSERT(event < TELEMETRY_EVENT_COUNT);
    if (shard == NULL || !frequent[event] || slo_of[event] != 0 ||
        atomic_load_explicit(&shard->telemetry->wanted[event], memory_order_relaxed) != 0 ||
        !measurement_possible(events[event].unit, measurement) || known >= shard->telemetry->known[event])
        return false;
    shard_add(shard, event, measurement, known + 1); /* they were put in first, behind "other" */
    return true;
}

bool telemetry_emit(enum telemetry_event event, int64_t measurement, const struct telemetry_dim *dims,
                    size_t count)
{
    struct telemetry *t = telemetry_here();
    struct telemetry_record record;
    const char *label = NULL;
    size_t length = 0;
    char why[WHY_MAX];

    if (t == NULL)
        return false;
    if (current_shard != NULL && only_counts(t, event, measurement, dims, count, &label, &length)) {
        shard_count(current_shard, event, measurement, label, length);
        return true;
    }
    if (!record_pack(&record, event, measurement, dims, count, why)) {
        TELEMETRY(TELEMETRY_REJECTED, 1, DIM(EVENT, telemetry_event_name(event)), DIM(REASON, why));
        return false;
    }
    if (current_shard != NULL) {
        shard_take(current_shard, &record);
    } else {
        pthread_mutex_lock(&t->shared_lock);
        shard_take(&t->shards[t->shard_count], &record);
        pthread_mutex_unlock(&t->shared_lock);
    }
    record_deliver(t, &record);
    return true;
}

void telemetry_counter_expect(enum telemetry_event event, const char *label)
{
    struct telemetry *t = telemetry_here();
    char text[TELEMETRY_VALUE_MAX];

    ASSERT(event < TELEMETRY_EVENT_COUNT);
    if (t != NULL)
        (void)label_index(t, &t->labels[event], text, text_pack(text, label));
}

/* Gauges. */

_Atomic int64_t *telemetry_gauge_cell(enum telemetry_gauge gauge, const char *label)
{
    struct telemetry *t = telemetry_here();
    char text[TELEMETRY_VALUE_MAX];
    size_t length;

    ASSERT(gauge < TELEMETRY_GAUGE_COUNT);
    if (t == NULL)
        return NULL;
    length = text_pack(text, label);
    return &t->gauges[gauge].cells[label_index(t, &t->gauges[gauge].labels, text, length)];
}

void telemetry_gauge_set(enum telemetry_gauge gauge, const char *label, int64_t value)
{
    _Atomic int64_t *cell = telemetry_gauge_cell(gauge, label);

    if (cell != NULL)
        atomic_store(cell, value);
}

void telemetry_gauge_add(enum telemetry_gauge gauge, const char *label, int64_t change)
{
    _Atomic int64_t *cell = telemetry_gauge_cell(gauge, label);

    if (cell != NULL)
        atomic_fetch_add(cell, change);
}

int64_t telemetry_gauge_get(enum telemetry_gauge gauge, const char *label)
{
    _Atomic int64_t *cell = telemetry_gauge_cell(gauge, label);

    return cell != NULL ? atomic_load(cell) : 0;
}

void telemetry_gauge_each(const struct telemetry *t, enum telemetry_gauge gauge,
                          void (*visit)(void *context, const char *label, int64_t value), void *context)
{
    const struct labels *labels = &t->gauges[gauge].labels;
    uint32_t count = label_count(labels);

    for (uint32_t i = 0; i < count; i++)
        visit(context, label_value(labels, i)->text,
              atomic_load_explicit(&t->gauges[gauge].cells[i], memory_order_relaxed));
}

/* Subscribers. */

static int subscriber_place(struct telemetry *t)
{
    for (int i = 0; i < TELEMETRY_SUBSCRIBERS_MAX; i++)
        if (!t->subscribers[i].taken)
            return i;
    return -1;
}

int telemetry_subscribe(struct telemetry *t, const struct telemetry_filter *filter,
                        telemetry_subscriber subscriber, void *context)
{
    int handle;

    pthread_mutex_lock(&t->lock);
    handle = subscriber_place(t);
    if (handle >= 0) {
        t->subscribers[handle].taken = true;
        t->subscribers[handle].call = subscriber;
        t->subscribers[handle].context = context;
        for (uint32_t i = 0; i < TELEMETRY_EVENT_COUNT; i++)
            if (filter == NULL || (filter->words[i / 64] >> (i % 64) & 1) != 0)
                atomic_fetch_or(&t->wanted[i], (uint8_t)(1u << handle));
    }
    pthread_mutex_unlock(&t->lock);
    return handle;
}

void telemetry_unsubscribe(struct telemetry *t, int handle)
{
    ASSERT(handle >= 0 && handle < TELEMETRY_SUBSCRIBERS_MAX);
    ASSERT(!delivering);
    for (uint32_t i = 0; i < TELEMETRY_EVENT_COUNT; i++)
        atomic_fetch_and(&t->wanted[i], (uint8_t) ~(1u << handle));
    while (atomic_load(&t->subscribers[handle].calls) > 0)
        sched_yield();
    pthread_mutex_lock(&t->lock);
    t->subscribers[handle].taken = false;
    pthread_mutex_unlock(&t->lock);
}

/* Reading. */

static uint64_t counter_read(const struct telemetry *t, enum telemetry_event event, uint32_t label)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i <= t->shard_count; i++)
        sum += atomic_load_explicit(&t->shards[i].counts[event][label], memory_order_relaxed);
    return sum;
}

uint64_t telemetry_counter_sum(const struct telemetry *t, enum telemetry_event event)
{
    uint32_t count = label_count(&t->labels[event]);
    uint64_t sum = 0;

    for (uint32_t i = 0; i < count; i++)
        sum += counter_read(t, event, i);
    return sum;
}

uint64_t telemetry_counter_label(const struct telemetry *t, enum telemetry_event event, const char *label)
{
    char text[TELEMETRY_VALUE_MAX];
    size_t length = text_pack(text, label);
    uint32_t place;
    uint8_t index = label_find(&t->labels[event], text, length, &place);

    if (index == LABEL_OTHER && strcmp(label, "other") != 0)
        return 0;
    return counter_read(t, event, index);
}

bool telemetry_histogram_merge(const struct telemetry *t, enum telemetry_event event, struct histogram *into)
{
    if (histogram_of[event] == 0)
        return false;
    for (uint32_t i = 0; i <= t->shard_count; i++)
        histogram_merge(into, &t->shards[i].histograms[histogram_of[event] - 1]);
    return true;
}

/* False when record n is not in the slot any more, or changed while it was read. */
static bool slot_read(const struct slot *slot, uint64_t n, struct telemetry_record *ret_record)
{
    char *bytes = (char *)ret_record;
    size_t words = offsetof(struct telemetry_record, text) / 8;

    if (atomic_load_explicit(&slot->state, memory_order_acquire) != 2 * n + 2)
        return false;
    for (size_t i = 0; i < words; i++) {
        uint64_t word = atomic_load_explicit(&slot->words[i], memory_order_acquire);

        memcpy(bytes + 8 * i, &word, 8);
        if (i + 1 == offsetof(struct telemetry_record, text) / 8 &&
            ret_record->text_length <= TELEMETRY_TEXT_MAX)
            words += (ret_record->text_length + 7u) / 8;
    }
    return atomic_load_explicit(&slot->state, memory_order_relaxed) == 2 * n + 2;
}

/* Where the reader is in one shard's ring. */
struct cursor {
    uint64_t n, end;
    uint64_t sequence; /* of record n */
};

/* Moves to the next record that is still there and behind `after`; *ret_record is that record. */
static void cursor_settle(struct cursor *cursor, const struct telemetry_shard *shard, uint64_t after,
                          struct telemetry_record *ret_record)
{
    for (; cursor->n < cursor->end; cursor->n++) {
        if (slot_read(&shard->ring[cursor->n % TELEMETRY_RING_SIZE], cursor->n, ret_record) &&
            ret_record->sequence > after) {
            cursor->sequence = ret_record->sequence;
            return;
        }
    }
}

static uint32_t cursor_oldest(const struct cursor *cursors, uint32_t count)
{
    uint32_t oldest = count;

    for (uint32_t i = 0; i < count; i++)
        if (cursors[i].n < cursors[i].end &&
            (oldest == count || cursors[i].sequence < cursors[oldest].sequence))
            oldest = i;
    return oldest;
}

/* A drawn number at or below the first one read here was drawn by somebody who had said so in `keeping` before: that is
 * seen, or that it was taken back, and then the record too. */
uint64_t telemetry_kept(const struct telemetry *t)
{
    uint64_t kept = atomic_load(&t->numbers);

    for (uint32_t i = 0; i <= t->shard_count; i++) {
        uint64_t keeping = atomic_load(&t->shards[i].keeping);

        if (keeping != 0 && keeping - 1 < kept)
            kept = keeping - 1;
    }
    return kept;
}

size_t telemetry_recent(const struct telemetry *t, uint64_t after, telemetry_visitor visit, void *context)
{
    struct cursor cursors[TELEMETRY_SHARDS_MAX + 1];
    struct telemetry_record record;
    uint32_t count = t->shard_count + 1;
    uint64_t kept = telemetry_kept(t);
    size_t visited = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t end = atomic_load_explicit(&t->shards[i].next, memory_order_acquire);

        cursors[i] =
            (struct cursor){.n = end > TELEMETRY_RING_SIZE ? end - TELEMETRY_RING_SIZE : 0, .end = end};
        cursor_settle(&cursors[i], &t->shards[i], after, &record);
    }
    for (;;) {
        uint32_t i = cursor_oldest(cursors, count);

        if (i == count || cursors[i].sequence > kept)
            return visited;
        if (slot_read(&t->shards[i].ring[cursors[i].n % TELEMETRY_RING_SIZE], cursors[i].n, &record)) {
            visited++;
            if (!visit(context, &record))
                return visited;
        }
        cursors[i].n++;
        cursor_settle(&cursors[i], &t->shards[i], after, &record);
    }
}

static void measurement_write(struct json *json, enum telemetry_event event, int64_t measurement)
{
    json_key(json, events[event].measurement);
    switch (events[event].unit) {
    case UNIT_COUNT:
    case UNIT_YESNO:
        json_int(json, measurement);
        break;
    case UNIT_NS:
    case UNIT_PPM:
        json_decimal(json, measurement, 6);
        break;
    }
}

size_t telemetry_sequence_write(const struct telemetry *telemetry, uint64_t sequence,
                                char text[TELEMETRY_SEQUENCE_MAX])
{
    int length =
        snprintf(text, TELEMETRY_SEQUENCE_MAX, "%016" PRIx64 "-%" PRIu64, telemetry->process, sequence);
    return (size_t)length;
}

/* What stands behind another process's name is its own affair, as long as it is numbers: it may be of another version. */
enum error telemetry_sequence_read(const struct telemetry *telemetry, const char *text, uint64_t *ret)
{
    static const char digits[] = "0123456789";
    uint64_t process, sequence;

    if (strspn(text, "0123456789abcdef") != 16 || text[16] != '-' || !isdigit((unsigned char)text[17]) ||
        text[17 + strspn(text + 17, "0123456789-")] != 0)
        return ERR_INVALID;
    process = strtoull(text, NULL, 16);
    if (process != telemetry->process)
        return ERR_NOT_FOUND;
    if (text[17 + strspn(text + 17, digits)] != 0)
        return ERR_INVALID;
    errno = 0;
    sequence = strtoull(text + 17, NULL, 10);
    if (errno != 0)
        return ERR_INVALID;
    *ret = sequence;
    return OK;
}

void telemetry_record_write(const struct telemetry *telemetry, const struct telemetry_record *record,
                            const char *at, struct json *json)
{
    char text[TELEMETRY_SEQUENCE_MAX];
    size_t length = telemetry_sequence_write(telemetry, record->sequence, text), from = 0;

    json_object_begin(json);
    JSON_MEMBER(json, "at", string, at);
    JSON_MEMBER(json, "event", string, events[record->event].name);
    JSON_MEMBER(json, "sequence", string_n, text, length);
    json_key(json, "measurement");
    json_object_begin(json);
    measurement_write(json, record->event, record->measurement);
    json_object_end(json);
    json_key(json, "dimensions");
    json_object_begin(json);
    for (uint8_t i = 0; i < record->dims; i++) {
        size_t size = (unsigned char)record->text[from + 1];

        json_key(json, dimension_names[(unsigned char)record->text[from]]);
        json_string_n(json, record->text + from + 2, size);
        from += size + 3;
    }
    json_object_end(json);
    json_object_end(json);
}

/* SLO levels. */

void telemetry_slo_read(const struct telemetry *t, enum telemetry_slo slo, uint64_t now,
                        struct telemetry_slo_state *ret_state)
{
    struct slo_sum sum = {.samples = 0};

    for (uint32_t i = 0; i <= t->shard_count; i++)
        slo_sum_add(&sum, &t->shards[i].windows[slo], slos[slo].kind, now);
    slo_sum_judge(&sum, slos[slo].kind, t->thresholds[slo], ret_state);
}

/* Metrics. */

/* Upper bounds in ns, from one microsecond to two minutes: handler slices at one end, reconnects at the
 * other. */
static const uint64_t metric_bounds[] = {
    1000,       10000,      100000,      1000000,     5000000,     10000000,     25000000,
    50000000,   75000000,   100000000,   250000000,   500000000,   1000000000,   2500000000,
    5000000000, 7500000000, 10000000000, 30000000000, 60000000000, 120000000000,
};

enum { METRIC_BOUNDS = sizeof(metric_bounds) / sizeof(*metric_bounds) };

static void metric_head(struct json_sink *sink, const char *name, const char *suffix, const char *help,
                        const char *type)
{
    json_sink_text(sink, "# HELP coppice_");
    json_sink_text(sink, name);
    json_sink_text(sink, suffix);
    json_sink_text(sink, " ");
    json_sink_text(sink, help);
    json_sink_text(sink, "\n# TYPE coppice_");
    json_sink_text(sink, name);
    json_sink_text(sink, suffix);
    json_sink_text(sink, " ");
    json_sink_text(sink, type);
    json_sink_text(sink, "\n");
}

/* Only \\, \" and \n have an escape in this format; other control bytes and invalid UTF-8 become '?'. */
static void metric_label_value(struct json_sink *sink, const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text;

    for (size_t i = 0; i < length;) {
        size_t part = at[i] >= 0x20 && at[i] < 0x7f ? 1 : json_utf8_sequence(at + i, length - i);

        if (at[i] == '"' || at[i] == '\\')
            json_sink_text(sink, "\\");
        if (part > 0)
            json_sink_bytes(sink, text + i, part);
        else
            json_sink_text(sink, at[i] == '\n' ? "\\n" : "?");
        i += part > 0 ? part : 1;
    }
}

static void metric_series(struct json_sink *sink, const char *name, const char *suffix, const char *label,
                          const char *value, size_t length)
{
    json_sink_text(sink, "coppice_");
    json_sink_text(sink, name);
    json_sink_text(sink, suffix);
    json_sink_text(sink, "{");
    json_sink_text(sink, label);
    json_sink_text(sink, "=\"");
    metric_label_value(sink, value, length);
    json_sink_text(sink, "\"} ");
}

static void counters_write(const struct telemetry *t, struct json_sink *sink, enum telemetry_format format)
{
    for (enum telemetry_event i = 0; i < TELEMETRY_EVENT_COUNT; i++) {
        const struct labels *labels = &t->labels[i];
        uint32_t count = label_count(labels);

        metric_head(sink, events[i].counter, format == TELEMETRY_OPENMETRICS ? "" : "_total", events[i].help,
                    "counter");
        for (uint32_t j = 0; j < count; j++) {
            metric_series(sink, events[i].counter, "_total", dimension_names[events[i].label],
                          label_value(labels, j)->text, label_value(labels, j)->length);
            json_sink_uint(sink, counter_read(t, i, j));
            json_sink_text(sink, "\n");
        }
    }
}

struct distribution {
    uint64_t to[METRIC_BOUNDS]; /* how many are at most metric_bounds[i] */
    uint64_t count, sum;
};

static void distribution_read(struct telemetry *t, enum telemetry_event event, struct distribution *ret)
{
    pthread_mutex_lock(&t->merge_lock);
    histogram_clear(&t->merged);
    telemetry_histogram_merge(t, event, &t->merged);
    for (uint32_t i = 0; i < METRIC_BOUNDS; i++)
        ret->to[i] = histogram_count_to(&t->merged, metric_bounds[i]);
    ret->count = histogram_count(&t->merged);
    ret->sum = histogram_sum(&t->merged);
    pthread_mutex_unlock(&t->merge_lock);
}

static void seconds_write(struct json_sink *sink, uint64_t ns)
{
    json_sink_decimal(sink, ns < INT64_MAX ? (int64_t)ns : INT64_MAX, 9);
}

static void histogram_write(struct json_sink *sink, const struct histogram_row *row,
                            const struct distribution *d)
{
    metric_head(sink, row->name, "_seconds", row->help, "histogram");
    for (uint32_t i = 0; i <= METRIC_BOUNDS; i++) {
        json_sink_text(sink, "coppice_");
        json_sink_text(sink, row->name);
        json_sink_text(sink, "_seconds_bucket{le=\"");
        if (i < METRIC_BOUNDS)
            seconds_write(sink, metric_bounds[i]);
        else
            json_sink_text(sink, "+Inf");
        json_sink_text(sink, "\"} ");
        json_sink_uint(sink, i < METRIC_BOUNDS ? d->to[i] : d->count);
        json_sink_text(sink, "\n");
    }
    json_sink_text(sink, "coppice_");
    json_sink_text(sink, row->name);
    json_sink_text(sink, "_seconds_sum ");
    seconds_write(sink, d->sum);
    json_sink_text(sink, "\ncoppice_");
    json_sink_text(sink, row->name);
    json_sink_text(sink, "_seconds_count ");
    json_sink_uint(sink, d->count);
    json_sink_text(sink, "\n");
}

static void histograms_write(struct telemetry *t, struct json_sink *sink)
{
    for (enum telemetry_event i = 0; i < TELEMETRY_EVENT_COUNT; i++) {
        struct distribution distribution;

        if (histogram_of[i] == 0)
            continue;
        distribution_read(t, i, &distribution);
        histogram_write(sink, &histograms[histogram_of[i] - 1], &distribution);
    }
}

static void gauges_write(const struct telemetry *t, struct json_sink *sink)
{
    for (enum telemetry_gauge i = 0; i < TELEMETRY_GAUGE_COUNT; i++) {
        const struct labels *labels = &t->gauges[i].labels;
        uint32_t count = label_count(labels);

        metric_head(sink, gauges[i].name, "", gauges[i].help, "gauge");
        for (uint32_t j = 0; j < count; j++) {
            metric_series(sink, gauges[i].name, "", gauges[i].label, label_value(labels, j)->text,
                          label_value(labels, j)->length);
            json_sink_int(sink, atomic_load_explicit(&t->gauges[i].cells[j], memory_order_relaxed));
            json_sink_text(sink, "\n");
        }
    }
}

static void slo_series(struct json_sink *sink, enum telemetry_slo slo, const char *name, int64_t value,
                       unsigned scale)
{
    metric_series(sink, name, "", "slo", slos[slo].name, strlen(slos[slo].name));
    json_sink_decimal(sink, value, scale);
    json_sink_text(sink, "\n");
}

static void slos_write(const struct telemetry *t, struct json_sink *sink)
{
    static const struct {
        const char *name, *help;
        unsigned scale;
    } values[] = {
        [SLO_P95] = {"slo_p95_seconds", "95th percentile over the last five minutes.", 9},
        [SLO_RATIO] = {"slo_ratio", "Ratio over the last five minutes.", 6},
        [SLO_TOTAL] = {"slo_events", "Sum over the last five minutes.", 0},
    };
    struct telemetry_slo_state states[TELEMETRY_SLO_COUNT];
    uint64_t now = t->now(t->context);

    for (enum telemetry_slo i = 0; i < TELEMETRY_SLO_COUNT; i++)
        telemetry_slo_read(t, i, now, &states[i]);
    metric_head(sink, "slo_level", "", "0 ok, 1 warn, 2 critical, over the last five minutes.", "gauge");
    for (enum telemetry_slo i = 0; i < TELEMETRY_SLO_COUNT; i++)
        slo_series(sink, i, "slo_level", states[i].level, 0);
    metric_head(sink, "slo_insufficient", "", "1 when there are too few samples to tell a level.", "gauge");
    for (enum telemetry_slo i = 0; i < TELEMETRY_SLO_COUNT; i++)
        slo_series(sink, i, "slo_insufficient", states[i].insufficient, 0);
    metric_head(sink, "slo_samples", "", "Samples of the last five minutes.", "gauge");
    for (enum telemetry_slo i = 0; i < TELEMETRY_SLO_COUNT; i++)
        slo_series(sink, i, "slo_samples", (int64_t)states[i].samples, 0);
    for (enum slo_kind kind = SLO_P95; kind <= SLO_TOTAL; kind++) {
        metric_head(sink, values[kind].name, "", values[kind].help, "gauge");
        for (enum telemetry_slo i = 0; i < TELEMETRY_SLO_COUNT; i++)
            if (slos[i].kind == kind)
                slo_series(sink, i, values[kind].name, states[i].value, values[kind].scale);
    }
}

void telemetry_write_metrics(struct telemetry *t, struct json_sink *sink, enum telemetry_format format)
{
    counters_write(t, sink, format);
    histograms_write(t, sink);
    gauges_write(t, sink);
    slos_write(t, sink);
}
