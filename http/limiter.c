#include "http/limiter.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "http/response.h"
#include "runtime/hash.h"
#include "store/rate_window.h"
#include "store/store.h"

enum kind { KIND_BUCKET, KIND_WINDOW };
enum {
    PER_ADDRESS = KIND_BUCKET,
    PER_CLIENT = KIND_BUCKET,
    PER_SUBJECT = KIND_BUCKET,
    PER_ROUTE = KIND_BUCKET,
    PER_ACTOR = KIND_WINDOW
};

static const struct policy {
    const char *name;
    uint32_t quota, window_s;
    enum kind kind;
} policies[LIMIT_COUNT] = {
#define X(id, text, requests, window, per) [LIMIT_##id] = {text, requests, window, (enum kind)PER_##per},
    LIMITS(X)
#undef X
};

/* tag: which key; 0: nobody's. full_at: of a bucket, when it will have its whole quota again; of a window, until when it
 * is refused without asking the store. */
struct cell {
    _Atomic uint64_t tag, full_at;
};

struct overrides {
    const struct limiter_override *list;
    uint32_t count;
};

struct limiter {
    struct hash_key secret;
    uint32_t sets_mask;
    _Atomic uint32_t quota[LIMIT_COUNT];
    _Atomic uint32_t style;            /* enum limiter_style */
    struct overrides overrides[2];     /* the one in use, and the one before */
    _Atomic uint32_t overrides_in_use; /* which */
    size_t cells_size;
    struct cell *cells;
};

/* ---- making ---- */

static uint32_t sets_for(uint32_t cells)
{
    uint32_t sets = 1;
    cells = cells ? cells : LIMITER_CELLS_MAX;
    cells = cells < LIMITER_CELLS_MAX ? cells : LIMITER_CELLS_MAX;
    while (sets * LIMITER_WAYS < cells)
        sets *= 2;
    return sets;
}

static uint32_t most_of(const struct policy *policy)
{
    return policy->kind == KIND_WINDOW ? RATE_WINDOW_QUOTA_MAX : LIMITER_QUOTA_MAX;
}

void limiter_configure(struct limiter *limiter, const struct limiter_options *options)
{
    atomic_store_explicit(&limiter->style, (uint32_t)options->style, memory_order_relaxed);
    uint32_t next = 1 - atomic_load(&limiter->overrides_in_use);
    ASSERT(options->overrides_count <= LIMITER_OVERRIDES_MAX);
    limiter->overrides[next] = (struct overrides){options->overrides, options->overrides_count};
    atomic_store_explicit(&limiter->overrides_in_use, next, memory_order_release);
    for (uint32_t i = 0; i < LIMIT_COUNT; i++) {
        uint32_t quota = options->quota[i] ? options->quota[i] : policies[i].quota,
                 most = most_of(&policies[i]);
        atomic_store_explicit(&limiter->quota[i], quota < most ? quota : most, memory_order_relaxed);
    }
}

struct limiter *limiter_create(const struct limiter_options *options)
{
    struct env *env = options->env ? options->env : env_real();
    struct limiter *limiter = calloc(1, sizeof(*limiter));
    if (!limiter)
        return NULL;
    uint32_t sets = sets_for(options->cells);
    limiter->sets_mask = sets - 1;
    limiter->cells_size = sets * LIMITER_WAYS * sizeof(struct cell);
    /* Its pages are there when a client comes that needs them. */
    limiter->cells =
        mmap(NULL, limiter->cells_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (limiter->cells == MAP_FAILED) {
        free(limiter);
        return NULL;
    }
    env->random(env, &limiter->secret, sizeof(limiter->secret));
    limiter_configure(limiter, options);
    return limiter;
}

void limiter_destroy(struct limiter *limiter)
{
    if (!limiter)
        return;
    munmap((void *)limiter->cells, limiter->cells_size);
    free(limiter);
}

const char *limit_name(enum limit limit)
{
    return limit < LIMIT_COUNT ? policies[limit].name : "unknown";
}

/* ---- which cell, which quota ---- */

static uint64_t tag_of(const struct limiter *limiter, uint32_t number, struct span key)
{
    struct hash_key secret = {limiter->secret.k0 ^ number, limiter->secret.k1};
    uint64_t tag = hash_bytes(&secret, key.bytes, key.size);
    return tag ? tag : 1;
}

/* The key's cell, or one that it may have; *ret_mine says which. */
static struct cell *cell_of(const struct limiter *limiter, uint64_t tag, bool *ret_mine)
{
    struct cell *set = limiter->cells + (size_t)(tag >> 32 & limiter->sets_mask) * LIMITER_WAYS,
                *fullest = set;
    uint64_t best = UINT64_MAX;
    *ret_mine = true;
    for (uint32_t i = 0; i < LIMITER_WAYS; i++) {
        uint64_t there = atomic_load_explicit(&set[i].tag, memory_order_acquire);
        uint64_t full_at = there ? atomic_load_explicit(&set[i].full_at, memory_order_relaxed) : 0;
        if (there == tag)
            return &set[i];
        if (full_at < best) {
            best = full_at;
            fullest = &set[i];
        }
    }
    *ret_mine = false;
    return fullest;
}

/* NULL: others took every cell that was offered. */
static struct cell *claim_cell(const struct limiter *limiter, uint64_t tag)
{
    for (uint32_t i = 0; i < LIMITER_WAYS; i++) {
        bool mine;
        struct cell *cell = cell_of(limiter, tag, &mine);
        if (mine)
            return cell;
        uint64_t there = atomic_load_explicit(&cell->tag, memory_order_relaxed);
        if (there == tag || !atomic_compare_exchange_strong(&cell->tag, &there, tag))
            continue;
        atomic_store_explicit(&cell->full_at, 0, memory_order_release);
        return cell;
    }
    return NULL;
}

static uint32_t quota_of(const struct limiter *limiter, enum limit limit, struct span key, bool *ret_none)
{
    const struct overrides *overrides =
        &limiter->overrides[atomic_load_explicit(&limiter->overrides_in_use, memory_order_acquire)];
    *ret_none = false;
    for (uint32_t i = 0; i < overrides->count; i++) {
        const struct limiter_override *o = &overrides->list[i];
        if (o->limit != limit || !span_equal(span_of(o->key, o->key_size), key))
            continue;
        uint32_t most = most_of(&policies[limit]);
        *ret_none = o->quota == 0;
        return o->quota < most ? o->quota : most;
    }
    return atomic_load_explicit(&limiter->quota[limit], memory_order_relaxed);
}

static uint32_t seconds_up(uint64_t ns)
{
    return (uint32_t)((ns + NS_PER_S - 1) / NS_PER_S);
}

static uint32_t at_least_one(uint32_t seconds)
{
    return seconds ? seconds : 1;
}

/* ---- token buckets ---- */

/* A request costs `step`; a bucket that will be full at T has room for one when T + step lies no more than its whole
 * content ahead. */
struct bucket {
    uint64_t step, content;
};

static struct bucket bucket_of(const struct limit_result *result)
{
    uint64_t step = result->window_s * NS_PER_S / result->quota;
    return (struct bucket){.step = step, .content = step * result->quota};
}

static bool fits(const struct bucket *bucket, uint64_t full_at, uint64_t now, struct limit_result *result)
{
    uint64_t next = (full_at > now ? full_at : now) + bucket->step, ahead = next - now;
    result->allowed = ahead <= bucket->content;
    result->remaining = result->allowed ? (uint32_t)((bucket->content - ahead) / bucket->step) : 0;
    result->reset_s = at_least_one(seconds_up(result->allowed ? ahead : ahead - bucket->content));
    return result->allowed;
}

static void take_token(struct limiter *limiter, uint64_t tag, struct limit_result *result)
{
    struct bucket bucket = bucket_of(result);
    struct cell *cell = claim_cell(limiter, tag);
    uint64_t now = actor_now(),
             full_at = cell ? atomic_load_explicit(&cell->full_at, memory_order_relaxed) : 0;
    do {
        if (!fits(&bucket, full_at, now, result))
            return;
    } while (cell && !atomic_compare_exchange_weak_explicit(&cell->full_at, &full_at,
                                                            (full_at > now ? full_at : now) + bucket.step,
                                                            memory_order_relaxed, memory_order_relaxed));
}

/* ---- windows ---- */

/* Numbers that tell the two uses of the table apart; buckets of the same key are a third. */
enum { REFUSED_UNTIL = 1u << 16, STAND_IN = 1u << 17 };

static void keep_refused(struct limiter *limiter, uint64_t tag, uint64_t until)
{
    struct cell *cell = claim_cell(limiter, tag);
    if (cell)
        atomic_store_explicit(&cell->full_at, until, memory_order_relaxed);
}

static bool still_refused(struct limiter *limiter, uint64_t tag, uint64_t now, struct limit_result *result)
{
    bool mine;
    struct cell *cell = cell_of(limiter, tag, &mine);
    uint64_t until = mine ? atomic_load_explicit(&cell->full_at, memory_order_relaxed) : 0;
    if (until <= now)
        return false;
    result->allowed = false;
    result->remaining = 0;
    result->reset_s = at_least_one(seconds_up(until - now));
    return true;
}

static void take_from_window(struct limiter *limiter, enum limit limit, struct span key,
                             struct limit_result *result)
{
    uint64_t refused_tag = tag_of(limiter, REFUSED_UNTIL | (uint32_t)limit, key);
    struct rate_window_take c = {.actor = key,
                                 .bucket = (uint8_t)limit,
                                 .quota = result->quota,
                                 .window_us = result->window_s * NS_PER_S / NS_PER_US};
    struct rate_window_taken taken;
    size_t size = 0;
    if (still_refused(limiter, refused_tag, actor_now(), result))
        return;
    enum error e = store_submit(&rate_window_take_class, &c, &taken, sizeof(taken), &size,
                                actor_deadline_ms(ACTOR_CALL_DEFAULT_MS));
    if (e || size != sizeof(taken)) {
        take_token(limiter, tag_of(limiter, STAND_IN | (uint32_t)limit, key), result);
        return;
    }
    result->allowed = taken.allowed == 1;
    result->remaining = taken.remaining;
    result->reset_s = at_least_one(seconds_up(taken.wait_us * NS_PER_US));
    if (!result->allowed)
        keep_refused(limiter, refused_tag, actor_now() + taken.wait_us * NS_PER_US);
}

/* ---- by the front ---- */

/* True: there is something to count. */
static bool begin(struct limiter *limiter, enum limit limit, struct span key, struct limit_result *result)
{
    bool none;
    ASSERT(limit < LIMIT_COUNT);
    *result = (struct limit_result){.allowed = true, .window_s = policies[limit].window_s};
    if (limit == LIMIT_NONE)
        return false;
    result->quota = quota_of(limiter, limit, key, &none);
    if (!none)
        return result->quota > 0;
    result->allowed = false;
    result->quota = 1; /* what a header can say of nothing */
    result->reset_s = result->window_s;
    return false;
}

bool limiter_counts(const struct limiter *limiter, enum limit limit)
{
    uint32_t in_use = atomic_load_explicit(&limiter->overrides_in_use, memory_order_acquire);
    return atomic_load_explicit(&limiter->quota[limit], memory_order_relaxed) ||
           limiter->overrides[in_use].count;
}

struct limit_result limiter_take(struct limiter *limiter, enum limit limit, struct span key)
{
    struct limit_result result;
    if (!begin(limiter, limit, key, &result))
        return result;
    if (policies[limit].kind == KIND_WINDOW)
        take_from_window(limiter, limit, key, &result);
    else
        take_token(limiter, tag_of(limiter, (uint32_t)limit, key), &result);
    return result;
}

struct limit_result limiter_look(struct limiter *limiter, enum limit limit, struct span key)
{
    struct limit_result result;
    bool mine;
    ASSERT(policies[limit].kind == KIND_BUCKET);
    if (!begin(limiter, limit, key, &result))
        return result;
    struct bucket bucket = bucket_of(&result);
    struct cell *cell = cell_of(limiter, tag_of(limiter, (uint32_t)limit, key), &mine);
    uint64_t full_at = mine ? atomic_load_explicit(&cell->full_at, memory_order_relaxed) : 0;
    (void)fits(&bucket, full_at, actor_now(), &result);
    return result;
}

/* ---- what is said about it ---- */

static const struct {
    const char *name, *prefix;
} styles[] = {
#define X(id, name, prefix) {name, prefix},
    LIMITER_STYLES(X)
#undef X
};

enum limiter_style limiter_style(const char *name)
{
    for (int i = 0; i < LIMITER_STYLE_COUNT; i++)
        if (strcmp(name, styles[i].name) == 0)
            return (enum limiter_style)i;
    return LIMITER_STYLE_DRAFT;
}

const char *limiter_prefix(const struct limiter *limiter)
{
    return styles[atomic_load_explicit(&limiter->style, memory_order_relaxed)].prefix;
}

static void tell(struct limiter_told *told, const char *prefix, const struct limit_result *result)
{
    uint32_t remaining = result->allowed ? result->remaining : 0;
    bool less =
        remaining < told->remaining || (remaining == told->remaining && result->reset_s > told->reset_s);
    if (!prefix || (told->prefix && !less))
        return;
    *told = (struct limiter_told){
        .prefix = prefix, .quota = result->quota, .remaining = remaining, .reset_s = result->reset_s};
}

/* "name";first=number;second=number, as RFC 9651 writes an item with parameters. A submit has two: by printf they
 * were an eighth of its instructions. */
struct item {
    char text[96]; /* a name is a word of LIMITS, numbers have ten digits at most */
    size_t size;
};

static void item_text(struct item *item, const char *text, size_t size)
{
    ASSERT(size <= sizeof(item->text) - item->size);
    memcpy(item->text + item->size, text, size);
    item->size += size;
}

static void item_number(struct item *item, const char *name, uint32_t number)
{
    char digits[10];
    size_t at = sizeof(digits);
    do
        digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    item_text(item, name, strlen(name));
    item_text(item, digits + at, sizeof(digits) - at);
}

static void write_item(struct response *r, const char *header, const char *name, uint32_t first,
                       uint32_t second, const char *const parameters[2])
{
    struct item item; /* not cleared */
    item.size = 0;
    item_text(&item, "\"", 1);
    item_text(&item, name, strlen(name));
    item_text(&item, "\"", 1);
    item_number(&item, parameters[0], first);
    item_number(&item, parameters[1], second);
    response_header_text(r, header, item.text, item.size);
}

void limiter_write_headers(const struct limiter *limiter, const struct limit_result *result, enum limit limit,
                           struct response *r)
{
    const char *name = limit_name(limit);
    if (result->quota == 0)
        return;
    write_item(r, "RateLimit-Policy", name, result->quota, result->window_s,
               (const char *const[]){";q=", ";w="});
    write_item(r, "RateLimit", name, result->remaining, result->reset_s, (const char *const[]){";r=", ";t="});
    if (!result->allowed)
        response_header(r, "Retry-After", "%u", result->reset_s);
    tell(&r->limited, limiter_prefix(limiter), result);
}

uint32_t limiter_write_triple(const struct limiter_told *told, char text[LIMITER_TRIPLE_MAX])
{
    if (!told->prefix)
        return 0;
    int n = snprintf(text, LIMITER_TRIPLE_MAX, "%sLimit: %u\r\n%sRemaining: %u\r\n%sReset: %u\r\n",
                     told->prefix, told->quota, told->prefix, told->remaining, told->prefix, told->reset_s);
    ASSERT(n > 0 && (uint32_t)n < LIMITER_TRIPLE_MAX);
    return (uint32_t)n;
}
