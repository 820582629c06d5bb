#include "actors/deduper.h"

#include <string.h>
#include <sys/mman.h>

#include "runtime/chains.h"
#include "runtime/hash.h"
#include "runtime/telemetry.h"

enum { DEDUPER_ASK = 1, DEDUPER_INSPECT, DEDUPER_ANSWER, DEDUPER_FIGURES };

#define WINDOW_DEFAULT 65536u
#define EXPIRY_DEFAULT (600 * NS_PER_S)
/* Per question this many expired keys are cleared at most, so that no question pays for a quiet night. Two
 * would keep pace with one new key each; the rest catches up. */
#define EXPIRE_BATCH 16

struct entry {
    uint64_t hash[2];
    uint64_t expires;
};

/* A ring in order of arrival, which is the order of expiry: all keys live equally long. Slot i has the chain
 * id i + 1. */
struct deduper {
    struct hash_key keys[2]; /* drawn at start, so that nobody knows which ids share a chain */
    struct entry *ring;
    struct chains chains;
    uint32_t oldest;
    uint64_t expiry_ns;
    struct deduper_figures figures;
};

struct question {
    uint16_t instance_length, message_length;
    char bytes[]; /* both ids, one behind the other */
};

/* The window's memory: mapped whole, since an arena has it in pieces of 64 KiB only; touched as it fills. */
struct region {
    size_t size;
    struct entry ring[];
};

static void region_release(void *region)
{
    munmap(region, ((struct region *)region)->size);
}

static struct region *region_map(uint32_t window)
{
    size_t size = sizeof(struct region) + window * sizeof(struct entry) + chains_bytes(window);
    struct region *region =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region == MAP_FAILED)
        return NULL;
    region->size = size;
    if (actor_own(region_release, region))
        return region;
    munmap(region, size);
    return NULL;
}

static enum actor_step deduper_init(void *state, const void *args, size_t args_size)
{
    struct deduper *d = state;
    struct deduper_args a = {0};
    if (args_size == sizeof(a))
        memcpy(&a, args, sizeof(a));
    else if (args_size != 0)
        actor_refuse(reason_of(REASON_ERROR));
    uint32_t window = a.window ? a.window : WINDOW_DEFAULT;
    if (window > DEDUPER_WINDOW_MAX)
        actor_refuse(reason_of(REASON_ERROR));
    d->figures.window = window;
    d->expiry_ns = a.expiry_ns ? a.expiry_ns : EXPIRY_DEFAULT;
    for (int i = 0; i < 2; i++)
        d->keys[i] = (struct hash_key){actor_random(), actor_random()};
    struct region *region = region_map(window);
    if (!region)
        actor_refuse(reason_of(REASON_QUOTA));
    d->ring = region->ring;
    chains_init(&d->chains, &region->ring[window], window);
    return ACTOR_CONTINUE;
}

static void drop_oldest(struct deduper *d)
{
    chains_remove(&d->chains, d->oldest + 1);
    d->oldest = (d->oldest + 1) % d->figures.window;
    d->figures.keys--;
}

static void expire(struct deduper *d, uint64_t now)
{
    for (int i = 0; i < EXPIRE_BATCH && d->figures.keys > 0 && d->ring[d->oldest].expires <= now; i++) {
        drop_oldest(d);
        d->figures.expired++;
    }
}

static void hash_question(const struct deduper *d, const struct question *q, uint64_t hash[2])
{
    for (int i = 0; i < 2; i++) {
        struct hash_sip sip;
        hash_sip_start(&sip, &d->keys[i]);
        hash_sip_add(&sip, q,
                     sizeof(*q) + q->instance_length +
                         q->message_length); /* lengths first: no two pairs agree */
        hash[i] = hash_sip_end(&sip);
    }
}

/* An expired key that the batch has not reached yet counts as unknown; its slot goes when its turn comes. */
static bool known(const struct deduper *d, const uint64_t hash[2], uint64_t now)
{
    for (uint32_t id = chains_first(&d->chains, hash[0]); id; id = chains_next(&d->chains, id)) {
        const struct entry *e = &d->ring[id - 1];
        if (e->hash[0] == hash[0] && e->hash[1] == hash[1] && e->expires > now)
            return true;
    }
    return false;
}

static void remember(struct deduper *d, const uint64_t hash[2], uint64_t now)
{
    if (d->figures.keys == d->figures.window) {
        if (d->ring[d->oldest].expires > now)
            d->figures.pushed_out++;
        else
            d->figures.expired++;
        drop_oldest(d);
    }
    uint32_t slot = (uint32_t)(((uint64_t)d->oldest + d->figures.keys) % d->figures.window);
    uint64_t expires = now + d->expiry_ns;
    d->ring[slot] =
        (struct entry){.hash = {hash[0], hash[1]}, .expires = expires < now ? UINT64_MAX : expires};
    chains_add(&d->chains, hash[0], slot + 1);
    d->figures.keys++;
}

static bool seen(struct deduper *d, const struct question *q)
{
    uint64_t hash[2], now = actor_now();
    expire(d, now);
    hash_question(d, q, hash);
    d->figures.asked++;
    if (known(d, hash, now)) {
        d->figures.seen++;
        return true;
    }
    remember(d, hash, now);
    return false;
}

static bool length_fits(uint16_t length)
{
    return length >= 1 && length <= DEDUPER_ID_MAX;
}

static enum actor_step deduper_handle(void *state, struct message *m)
{
    struct deduper *d = state;
    const struct question *q = (const void *)m->payload;
    uint8_t answer;
    switch (m->type) {
    case DEDUPER_ASK:
        if (m->size < sizeof(*q) || !length_fits(q->instance_length) || !length_fits(q->message_length) ||
            m->size != sizeof(*q) + q->instance_length + q->message_length)
            return ACTOR_CONTINUE;
        answer = seen(d, q);
        actor_reply_bytes(m, DEDUPER_ANSWER, &answer, sizeof(answer));
        return ACTOR_CONTINUE;
    case DEDUPER_INSPECT:
        actor_reply_bytes(m, DEDUPER_FIGURES, &d->figures, sizeof(d->figures));
        return ACTOR_CONTINUE;
    default:
        TELEMETRY(MESSAGE_UNKNOWN, 1, DIM(CLASS, deduper_class.name));
        return ACTOR_CONTINUE;
    }
}

const struct actor_class deduper_class = {
    .name = "deduper",
    .state_size = sizeof(struct deduper),
    .init = deduper_init,
    .handle = deduper_handle,
};

enum error deduper_seen(const char *instance_id, const char *message_id, bool *ret_seen, uint64_t deadline)
{
    size_t instance_length = strnlen(instance_id, DEDUPER_ID_MAX + 1);
    size_t message_length = strnlen(message_id, DEDUPER_ID_MAX + 1);
    if (!length_fits((uint16_t)instance_length) || !length_fits((uint16_t)message_length))
        return ERR_INVALID;
    struct message *reply,
        *m = message_new(DEDUPER_ASK, sizeof(struct question) + instance_length + message_length);
    if (!m)
        return ERR_MEMORY;
    struct question *q = (void *)m->payload;
    q->instance_length = (uint16_t)instance_length;
    q->message_length = (uint16_t)message_length;
    memcpy(q->bytes, instance_id, instance_length);
    memcpy(q->bytes + instance_length, message_id, message_length);
    enum error e = actor_call_name(DEDUPER_NAME, m, &reply, deadline);
    if (e != OK)
        return e;
    *ret_seen = reply->payload[0] != 0;
    message_free(reply);
    return OK;
}

enum error deduper_inspect(struct deduper_figures *ret_figures, uint64_t deadline)
{
    struct message *reply, *m = message_new(DEDUPER_INSPECT, 0);
    enum error e = m ? actor_call_name(DEDUPER_NAME, m, &reply, deadline) : ERR_MEMORY;
    if (e != OK)
        return e;
    memcpy(ret_figures, reply->payload, sizeof(*ret_figures));
    message_free(reply);
    return OK;
}
