#include "http/token_cache.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/actor.h"
#include "store/sha256.h"

enum { WAYS = 4, DIGEST_WORDS = 4, HEAD_WORDS = offsetof(struct cached_token, text) / 8 };
enum { TOKEN_WORDS = sizeof(struct cached_token) / 8 };

struct place {
    _Atomic uint64_t version; /* 0: empty; odd: being written */
    _Atomic uint64_t digest[DIGEST_WORDS];
    _Atomic uint64_t words[TOKEN_WORDS];
};
STATIC_ASSERT(sizeof(struct cached_token) % 8 == 0, "a token is words");
STATIC_ASSERT(sizeof(struct place) <= 1024, "as the header says");

struct token_cache {
    uint32_t mask; /* of sets */
    _Atomic uint32_t turn;
    struct place places[];
};

struct token_cache *token_cache_create(uint32_t tokens)
{
    uint32_t sets = 1;
    while (sets * WAYS < tokens && sets < 1u << 20)
        sets *= 2;
    struct token_cache *cache = calloc(1, sizeof(*cache) + (size_t)sets * WAYS * sizeof(struct place));
    if (cache)
        cache->mask = sets - 1;
    return cache;
}

void token_cache_destroy(struct token_cache *cache)
{
    free(cache);
}

static uint64_t get(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static struct place *set_of(struct token_cache *cache, const uint8_t digest[32])
{
    uint32_t at;
    memcpy(&at, digest, sizeof(at));
    return &cache->places[(size_t)(at & cache->mask) * WAYS];
}

static bool same_digest(const struct place *place, const uint8_t digest[32])
{
    uint64_t there[DIGEST_WORDS];
    for (int i = 0; i < DIGEST_WORDS; i++)
        there[i] = get(&place->digest[i]);
    return secret_equal(there, digest, sizeof(there));
}

static void copy_words(const struct place *place, uint64_t *words)
{
    for (size_t i = 0; i < HEAD_WORDS; i++)
        words[i] = get(&place->words[i]);
}

/* What was there when nobody wrote; false otherwise. */
static bool read_place(const struct place *place, const uint8_t digest[32], struct cached_token *ret)
{
    uint64_t words[TOKEN_WORDS];
    uint64_t version = atomic_load_explicit(&place->version, memory_order_acquire);
    if (version == 0 || (version & 1) || !same_digest(place, digest))
        return false;
    copy_words(place, words);
    memcpy(ret, words, HEAD_WORDS * 8);
    if (ret->text_size > TOKEN_CACHE_TEXT_MAX)
        return false; /* half of another one */
    size_t all = HEAD_WORDS + (ret->text_size + 7u) / 8;
    for (size_t i = HEAD_WORDS; i < all; i++)
        words[i] = get(&place->words[i]);
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&place->version, memory_order_relaxed) != version)
        return false;
    memcpy(ret->text, words + HEAD_WORDS, (all - HEAD_WORDS) * 8);
    return true;
}

bool token_cache_find(struct token_cache *cache, const uint8_t digest[32], struct cached_token *ret_token)
{
    const struct place *set = set_of(cache, digest);
    for (int way = 0; way < WAYS; way++)
        if (read_place(&set[way], digest, ret_token))
            return true;
    return false;
}

/* Its own, an empty one, or whose turn it is. */
static struct place *place_for(struct token_cache *cache, struct place *set, const uint8_t digest[32])
{
    for (int way = 0; way < WAYS; way++)
        if (same_digest(&set[way], digest))
            return &set[way];
    for (int way = 0; way < WAYS; way++)
        if (get(&set[way].version) == 0)
            return &set[way];
    return &set[atomic_fetch_add_explicit(&cache->turn, 1, memory_order_relaxed) % WAYS];
}

static void write_place(struct place *place, const uint8_t digest[32], const struct cached_token *token)
{
    uint64_t words[TOKEN_WORDS], key[DIGEST_WORDS];
    size_t all = HEAD_WORDS + (token->text_size + 7u) / 8;
    memcpy(words, token, sizeof(words));
    memcpy(key, digest, sizeof(key));
    for (int i = 0; i < DIGEST_WORDS; i++)
        atomic_store_explicit(&place->digest[i], key[i], memory_order_relaxed);
    for (size_t i = 0; i < all; i++)
        atomic_store_explicit(&place->words[i], words[i], memory_order_relaxed);
}

void token_cache_put(struct token_cache *cache, const uint8_t digest[32], const struct cached_token *token)
{
    struct place *place = place_for(cache, set_of(cache, digest), digest);
    actor_guard_begin(); /* whoever is ended in the middle would leave it odd */
    uint64_t version = get(&place->version);
    if (!(version & 1) &&
        atomic_compare_exchange_strong_explicit(&place->version, &version, version + 1, memory_order_acquire,
                                                memory_order_relaxed)) {
        atomic_thread_fence(memory_order_release);
        write_place(place, digest, token);
        atomic_store_explicit(&place->version, version + 2, memory_order_release);
    }
    actor_guard_end();
}

/* ---- what an identity is packed into ---- */

static bool pack(struct cached_token *token, struct span text)
{
    uint16_t size = (uint16_t)text.size;
    if (token->text_size + sizeof(size) + text.size > TOKEN_CACHE_TEXT_MAX)
        return false;
    memcpy(token->text + token->text_size, &size, sizeof(size));
    if (size)
        memcpy(token->text + token->text_size + sizeof(size), text.bytes, size);
    token->text_size = (uint16_t)(token->text_size + sizeof(size) + size);
    return true;
}

bool cached_token_pack(struct cached_token *token, const struct identity *who)
{
    token->text_size = 0;
    token->role = (uint32_t)who->role;
    token->all_projects = who->all_projects;
    token->projects_count = who->projects_count;
    token->expires_s = who->expires_s;
    bool fits = pack(token, who->subject) && pack(token, who->session) && pack(token, who->jti) &&
                pack(token, who->issuer);
    for (uint16_t i = 0; i < who->projects_count; i++)
        fits = fits && pack(token, who->projects[i]);
    return fits;
}

static struct span unpack(const struct cached_token *token, size_t *at)
{
    uint16_t size;
    memcpy(&size, token->text + *at, sizeof(size));
    struct span text = span_of(token->text + *at + sizeof(size), size);
    *at += sizeof(size) + size;
    ASSERT(*at <= token->text_size);
    return text;
}

void cached_token_unpack(const struct cached_token *token, struct identity *ret_who)
{
    size_t at = 0;
    *ret_who = (struct identity){.kind = IDENTITY_TOKEN,
                                 .role = (enum role)token->role,
                                 .all_projects = token->all_projects,
                                 .projects_count = token->projects_count,
                                 .expires_s = token->expires_s};
    ret_who->subject = unpack(token, &at);
    ret_who->session = unpack(token, &at);
    ret_who->jti = unpack(token, &at);
    ret_who->issuer = unpack(token, &at);
    for (uint16_t i = 0; i < token->projects_count; i++)
        ret_who->projects[i] = unpack(token, &at);
}
