#include "http/trace.h"

#include <stdatomic.h>

#include "http/timestamp.h"
#include "runtime/hex.h"
#include "runtime/runtime.h"
#include "store/uuid.h"

#define SAMPLED   0x01u
#define RING_MASK (TRACE_RING - 1)
STATIC_ASSERT((TRACE_RING & RING_MASK) == 0, "a ring is a power of two");
STATIC_ASSERT(TRACE_REQUEST_MAX <= UINT8_MAX, "a request id's length fits into its byte");
STATIC_ASSERT(UUID_TEXT_SIZE <= TRACE_REQUEST_MAX, "our own request ids fit");

/* The scheduler that this actor lives on. */
static uint32_t here(void)
{
    int scheduler = actor_scheduler();
    ASSERT(scheduler >= 0 && scheduler < RUNTIME_SCHEDULERS_MAX);
    return (uint32_t)scheduler;
}

static bool zeros(const uint8_t *bytes, size_t size)
{
    uint8_t any = 0;
    for (size_t i = 0; i < size; i++)
        any |= bytes[i];
    return any == 0;
}

/* ---- the sampler ---- */

#define SAMPLE_ALL (UINT64_C(1) << 63)

static _Atomic bool exporting;
static _Atomic bool parents_decide = true;
static _Atomic uint64_t sample_bound; /* of 2^63: how many trace ids are sampled */

void trace_export(bool on, double sample, bool parent_based)
{
    uint64_t bound = sample >= 1 ? SAMPLE_ALL : sample > 0 ? (uint64_t)(sample * 0x1p63) : 0;
    atomic_store_explicit(&sample_bound, on ? bound : 0, memory_order_relaxed);
    atomic_store_explicit(&parents_decide, parent_based || !on, memory_order_relaxed);
    atomic_store_explicit(&exporting, on, memory_order_release);
}

bool trace_exporting(void)
{
    return atomic_load_explicit(&exporting, memory_order_acquire);
}

/* As the SDKs do it, so that all services of a trace decide alike: by the 63 bits in the second half of its id. */
static bool sampled(const uint8_t trace_id[16])
{
    uint64_t low;
    memcpy(&low, trace_id + 8, sizeof(low));
    return (__builtin_bswap64(low) >> 1) < atomic_load_explicit(&sample_bound, memory_order_relaxed);
}

/* ---- chance ---- */

/* Ids must differ, not be secret: one generator per scheduler (xoshiro256++, by Blackman and Vigna), seeded by the
 * environment. 40 bytes of the environment itself would cost more than all the rest of a beginning. */
struct generator {
    _Alignas(64) uint64_t state[4]; /* all zero: not seeded */
};

static struct generator generators[RUNTIME_SCHEDULERS_MAX];

static uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static inline uint64_t next(struct generator *g)
{
    uint64_t *s = g->state, result = rotate(s[0] + s[3], 23) + s[0], t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

__attribute__((noinline, cold)) static void seed(struct generator *g)
{
    while (!(g->state[0] | g->state[1] | g->state[2] | g->state[3]))
        actor_random_bytes(g->state, sizeof(g->state));
}

/* None of the words is zero. Guarded, so that two actors of a scheduler never draw the same. */
static inline void draw(uint64_t *words, size_t count)
{
    struct generator *mine = &generators[here()];
    actor_guard_begin();
    if (!(mine->state[0] | mine->state[1] | mine->state[2] | mine->state[3]))
        seed(mine);
    struct generator g = *mine; /* whose address nobody takes: it stays in registers */
    for (size_t i = 0; i < count; i++)
        do
            words[i] = next(&g);
        while (words[i] == 0);
    *mine = g;
    actor_guard_end();
}

/* Version 7 of RFC 9562; nothing is kept between two of them, so their order within a millisecond is chance. */
static void new_request_id(struct trace *trace, const uint64_t words[2])
{
    struct uuid id;
    uint64_t ms = timestamp_wall() / NS_PER_MS;
    uint64_t high = __builtin_bswap64(ms << 16 | UINT64_C(7) << 12 | words[0] >> 52),
             low = __builtin_bswap64(UINT64_C(2) << 62 | words[1] >> 2);
    memcpy(id.bytes, &high, 8);
    memcpy(id.bytes + 8, &low, 8);
    trace->request_id_length = UUID_TEXT_SIZE - 1;
    uuid_format(&id, trace->request_id);
}

/* ---- what a client sends ---- */

/* 16 for what isn't a digit in lower case. */
static unsigned hex_value(unsigned char c)
{
    if (c >= '0' && c <= '9')
        return c - (unsigned)'0';
    return c >= 'a' && c <= 'f' ? c - (unsigned)'a' + 10 : 16;
}

static bool take_hex(const unsigned char *text, uint8_t *ret, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        unsigned high = hex_value(text[2 * i]), low = hex_value(text[2 * i + 1]);
        if ((high | low) > 15)
            return false;
        ret[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

bool trace_parse(struct span traceparent, struct trace *ret)
{
    const unsigned char *text = traceparent.bytes;
    uint8_t version = 0, flags = 0, trace_id[16], parent_id[8];
    if (traceparent.size < TRACE_PARENT_TEXT || text[2] != '-' || text[35] != '-' || text[52] != '-')
        return false;
    if (!take_hex(text, &version, 1) || !take_hex(text + 3, trace_id, 16) ||
        !take_hex(text + 36, parent_id, 8) || !take_hex(text + 53, &flags, 1))
        return false;
    if (version == 0xff || zeros(trace_id, 16) || zeros(parent_id, 8))
        return false;
    if (traceparent.size > TRACE_PARENT_TEXT && (version == 0 || text[TRACE_PARENT_TEXT] != '-'))
        return false;
    memcpy(ret->trace_id, trace_id, sizeof(trace_id));
    memcpy(ret->parent_id, parent_id, sizeof(parent_id));
    ret->flags = flags & SAMPLED;
    return true;
}

/* What can be passed on; a longer list loses its last members, as the standard wants it. */
static struct span kept_state(struct span state)
{
    const unsigned char *text = state.bytes;
    uint32_t end = 0;
    for (uint32_t i = 0; i < state.size && i < TRACE_STATE_MAX; i++) {
        if ((text[i] < 0x20 && text[i] != '\t') || text[i] > 0x7e)
            return span_of(NULL, 0);
        if (text[i] == ',')
            end = i;
    }
    if (state.size <= TRACE_STATE_MAX)
        end = state.size;
    else if (text[TRACE_STATE_MAX] == ',')
        end = TRACE_STATE_MAX;
    return end ? span_of(text, end) : span_of(NULL, 0);
}

static bool sound_request_id(struct span id)
{
    const unsigned char *text = id.bytes;
    if (id.size == 0 || id.size > TRACE_REQUEST_MAX)
        return false;
    for (uint32_t i = 0; i < id.size; i++)
        if (text[i] < 0x21 || text[i] > 0x7e || text[i] == '"' || text[i] == '\\')
            return false;
    return true;
}

void trace_begin(struct trace *trace, struct span traceparent, struct span tracestate, struct span request_id)
{
    uint64_t words[5]; /* two of the trace's id, one of the span's, two of the request's */
    bool given = trace_parse(traceparent, trace);
    draw(words, 5);
    trace->trace_text_length = 0;
    trace->state = given ? kept_state(tracestate) : span_of(NULL, 0);
    if (!given) {
        memcpy(trace->trace_id, words, sizeof(trace->trace_id));
        memset(trace->parent_id, 0, sizeof(trace->parent_id));
    }
    if (!given || !atomic_load_explicit(&parents_decide, memory_order_relaxed))
        trace->flags = sampled(trace->trace_id) ? SAMPLED : 0;
    memcpy(trace->span_id, words + 2, sizeof(trace->span_id));
    if (sound_request_id(request_id)) {
        trace->request_id_length = (uint8_t)request_id.size;
        memcpy(trace->request_id, request_id.bytes, request_id.size);
    } else {
        new_request_id(trace, words + 3);
    }
}

void trace_adopt(struct trace *trace, struct span request_id, struct span trace_id)
{
    char parent[TRACE_PARENT_TEXT];
    struct trace given;
    if (sound_request_id(request_id)) {
        trace->request_id_length = (uint8_t)request_id.size;
        memcpy(trace->request_id, request_id.bytes, request_id.size);
    }
    if (sound_request_id(trace_id)) {
        trace->trace_text_length = (uint8_t)trace_id.size;
        memcpy(trace->trace_text, trace_id.bytes, trace_id.size);
    }
    if (trace_id.size != TRACE_ID_TEXT)
        return;
    memcpy(parent, "00-................................-0000000000000001-00", sizeof(parent));
    memcpy(parent + 3, trace_id.bytes, TRACE_ID_TEXT);
    if (trace_parse(span_of(parent, sizeof(parent)), &given))
        memcpy(trace->trace_id, given.trace_id, sizeof(trace->trace_id));
}

void trace_child(struct trace *child, const struct trace *parent)
{
    struct trace made = *parent;
    uint64_t word;
    draw(&word, 1);
    memcpy(made.parent_id, parent->span_id, sizeof(made.parent_id));
    memcpy(made.span_id, &word, sizeof(made.span_id));
    *child = made;
}

/* ---- texts ---- */

void trace_write_parent(const struct trace *trace, char text[TRACE_PARENT_TEXT + 1])
{
    char *at = text;
    memcpy(at, "00-", 3);
    at = hex_write(at + 3, trace->trace_id, sizeof(trace->trace_id));
    *at++ = '-';
    at = hex_write(at, trace->span_id, sizeof(trace->span_id));
    *at++ = '-';
    at = hex_write(at, &trace->flags, 1);
    *at = 0;
}

void trace_write_id(const struct trace *trace, char text[TRACE_ID_TEXT + 1])
{
    *hex_write(text, trace->trace_id, sizeof(trace->trace_id)) = 0;
}

void trace_write_span(const struct trace *trace, char text[TRACE_SPAN_TEXT + 1])
{
    *hex_write(text, trace->span_id, sizeof(trace->span_id)) = 0;
}

/* ---- the rings ---- */

/* `written` is its scheduler's, `taken` the exporter's; each reads the other's with acquire and publishes its own with
 * release, so a slot is never written while it is read. Two actors of one scheduler don't meet here: recording is a guarded
 * section. */
struct ring {
    _Atomic uint64_t written, dropped;
    _Alignas(64) _Atomic uint64_t taken;
    _Alignas(64) struct trace_recorded spans[TRACE_RING];
};

static struct ring rings[RUNTIME_SCHEDULERS_MAX];

static void copy_attributes(const struct trace_span *span, struct trace_recorded *slot)
{
    for (size_t i = 0; i < TRACE_ATTRIBUTES_MAX; i++) {
        const char *text = span->attributes[i].text;
        slot->attributes[i].key = span->attributes[i].key;
        slot->attributes[i].number = span->attributes[i].number;
        slot->attributes[i].textual = text != NULL;
        if (!text)
            continue;
        size_t length = strnlen(text, TRACE_TEXT_MAX);
        memcpy(slot->attributes[i].text, text, length);
        slot->attributes[i].text[length] = 0;
    }
}

static void fill(const struct trace_span *span, struct trace_recorded *slot)
{
    const struct trace *trace = span->trace;
    memcpy(slot->trace_id, trace->trace_id, sizeof(slot->trace_id));
    memcpy(slot->span_id, trace->span_id, sizeof(slot->span_id));
    memcpy(slot->parent_id, trace->parent_id, sizeof(slot->parent_id));
    slot->flags = trace->flags;
    slot->kind = (uint8_t)span->kind;
    slot->status = (uint8_t)span->status;
    slot->method = span->method;
    slot->name = span->name;
    /* What a child has of it is borrowed from a request that may be over. */
    slot->state_size = span->kind == TRACE_SERVER ? (uint16_t)trace->state.size : 0;
    if (slot->state_size)
        memcpy(slot->state, trace->state.bytes, slot->state_size);
    slot->linked = span->link_trace_id && span->link_span_id;
    if (slot->linked) {
        memcpy(slot->link_trace_id, span->link_trace_id, sizeof(slot->link_trace_id));
        memcpy(slot->link_span_id, span->link_span_id, sizeof(slot->link_span_id));
    }
    slot->began_ns = span->began_ns;
    slot->ended_ns = span->ended_ns;
    copy_attributes(span, slot);
}

static void push(struct ring *ring, const struct trace_span *span)
{
    uint64_t at = atomic_load_explicit(&ring->written, memory_order_relaxed);
    if (at - atomic_load_explicit(&ring->taken, memory_order_acquire) == TRACE_RING) {
        uint64_t dropped = atomic_load_explicit(&ring->dropped, memory_order_relaxed);
        atomic_store_explicit(&ring->dropped, dropped + 1, memory_order_relaxed);
        return;
    }
    fill(span, &ring->spans[at & RING_MASK]);
    atomic_store_explicit(&ring->written, at + 1, memory_order_release);
}

void trace_record(const struct trace_span *span)
{
    if (!trace_exporting() || !(span->trace->flags & SAMPLED))
        return;
    struct ring *ring = &rings[here()];
    actor_guard_begin();
    push(ring, span);
    actor_guard_end();
}

bool trace_take(uint32_t scheduler, struct trace_recorded *ret)
{
    ASSERT(scheduler < RUNTIME_SCHEDULERS_MAX);
    struct ring *ring = &rings[scheduler];
    uint64_t at = atomic_load_explicit(&ring->taken, memory_order_relaxed);
    if (at == atomic_load_explicit(&ring->written, memory_order_acquire))
        return false;
    *ret = ring->spans[at & RING_MASK];
    atomic_store_explicit(&ring->taken, at + 1, memory_order_release);
    return true;
}

void trace_counts(struct trace_counts *ret)
{
    struct trace_counts counts = {0, 0};
    for (size_t i = 0; i < RUNTIME_SCHEDULERS_MAX; i++) {
        counts.recorded += atomic_load_explicit(&rings[i].written, memory_order_relaxed);
        counts.dropped += atomic_load_explicit(&rings[i].dropped, memory_order_relaxed);
    }
    *ret = counts;
}

void trace_forget(void)
{
    memset(generators, 0, sizeof(generators));
    for (size_t i = 0; i < RUNTIME_SCHEDULERS_MAX; i++) {
        struct ring *ring = &rings[i];
        atomic_store_explicit(&ring->taken, atomic_load_explicit(&ring->written, memory_order_relaxed),
                              memory_order_relaxed);
    }
}
