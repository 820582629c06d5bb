#include "http/keyring_impl.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/json.h"
#include "runtime/telemetry.h"
#include "store/audit.h"
#include "store/principal.h"
#include "store/seen_token.h"
#include "store/sha256.h"
#include "store/view.h"

enum {
    CACHE_DEFAULT = 16384,
    ISSUE_S_DEFAULT = 3600,
    STORE_MS = 5000,
    DIGEST_SIZE = 32,
};

/* ---- boot ---- */

static const char *const stage_names[] = {[JWT_STAGE_OK] = "ok",
#define X(id, name) [JWT_STAGE_##id] = name,
                                          JWT_STAGES(X)
#undef X
};

static struct keyring_options completed(const struct keyring_options *o)
{
    struct keyring_options options = *o;
    options.cadence_ns = o->cadence_ns ? o->cadence_ns : 6 * 3600 * NS_PER_S;
    options.overlap_ns = o->overlap_ns ? o->overlap_ns : (KEYRING_LIFETIME_S + KEYRING_SKEW_S) * NS_PER_S;
    options.history_ns = o->history_ns ? o->history_ns : SIGNING_KEY_KEPT_MIN_US * NS_PER_US;
    options.revocation_ns = o->revocation_ns ? o->revocation_ns : KEYRING_REVOCATION_S * NS_PER_S;
    options.cache = o->cache ? o->cache : CACHE_DEFAULT;
    options.env = o->env ? o->env : env_real();
    options.jwks_file = o->jwks_file && *o->jwks_file ? o->jwks_file : NULL;
    options.jwks_url = o->jwks_url && *o->jwks_url ? o->jwks_url : NULL;
    return options;
}

static bool sound(const struct keyring_options *o, char *ret_text, size_t text_size)
{
    bool sets = o->jwks_file || o->jwks_url;
    const char *why = NULL;
    if (o->overlap_ns < KEYRING_LIFETIME_S * NS_PER_S)
        why = "keys.overlap must be at least 8h, the longest life of a token";
    else if (o->cadence_ns < KEYRING_CADENCE_MIN_S * NS_PER_S)
        why = "keys.rotation_cadence must be at least 1h, or there would be more keys than can be kept";
    else if (o->history_ns < SIGNING_KEY_KEPT_MIN_US * NS_PER_US)
        why = "keys.history must be at least 90 days";
    else if (sets && (!o->jwks_issuer || !*o->jwks_issuer))
        why = "auth.jwks.issuer must say whose keys those of the key set are";
    else if (sets && strcmp(o->jwks_issuer, o->issuer) == 0)
        why = "auth.jwks.issuer is the built-in issuer; another one's keys must not speak for it";
    if (why)
        snprintf(ret_text, text_size, "%s", why);
    return !why;
}

static EVP_MD *sha256;

static struct key_reader *reader_here(struct keyring *k)
{
    int scheduler = actor_inside() ? actor_scheduler_of(actor_self()) : KEYRING_READERS - 1;
    return &k->readers[scheduler];
}

static bool hash(struct keyring *k, struct span text, uint8_t ret_digest[DIGEST_SIZE])
{
    unsigned size;
    actor_guard_begin();
    EVP_MD_CTX *hasher = reader_here(k)->hasher;
    bool good = crypto.EVP_DigestInit_ex(hasher, NULL, NULL) == 1 &&
                crypto.EVP_DigestUpdate(hasher, text.bytes, text.size) == 1 &&
                crypto.EVP_DigestFinal_ex(hasher, ret_digest, &size) == 1;
    actor_guard_end();
    return good;
}

static bool make_hashers(struct keyring *k)
{
    bool good = sha256 || (sha256 = crypto.EVP_MD_fetch(NULL, "SHA256", NULL));
    for (int i = 0; good && i < KEYRING_READERS; i++) {
        if (!k->readers[i].hasher)
            k->readers[i].hasher = crypto.EVP_MD_CTX_new();
        good = k->readers[i].hasher && crypto.EVP_DigestInit_ex(k->readers[i].hasher, sha256, NULL) == 1;
    }
    return good;
}

static bool prepare(struct keyring *k, char *ret_why, size_t why_size)
{
    if (!crypto_load(CRYPTO_FILE, ret_why, why_size))
        return false;
    if (make_hashers(k))
        return true;
    snprintf(ret_why, why_size, "libcrypto has no SHA-256");
    return false;
}

bool keyring_prepare(struct keyring *keyring, char *ret_why, size_t why_size)
{
    if (atomic_load_explicit(&keyring->prepared, memory_order_acquire))
        return true;
    actor_guard_begin();
    pthread_mutex_lock(&keyring->lock);
    bool good = atomic_load(&keyring->prepared) || prepare(keyring, ret_why, why_size);
    atomic_store_explicit(&keyring->prepared, good, memory_order_release);
    pthread_mutex_unlock(&keyring->lock);
    actor_guard_end();
    return good;
}

static bool fill(struct keyring *k, char *ret_text, size_t text_size)
{
    const struct keyring_options *o = &k->options;
    uint8_t secret[32];
    if (vault_open(o->master_key_file, o->env, &k->vault, &k->vault_made, ret_text, text_size))
        return false;
    o->env->random(o->env, secret, sizeof(secret));
    k->cache = token_cache_create(o->cache);
    k->blocklist = blocklist_create(secret);
    explicit_bzero(secret, sizeof(secret));
    struct key_table *table = calloc(1, sizeof(*table));
    atomic_init(&k->table, table);
    if (table)
        atomic_init(&table->opened, true); /* there is nothing in it */
    if (k->cache && k->blocklist && table)
        return true;
    snprintf(ret_text, text_size, "no memory for the keyring");
    return false;
}

struct keyring *keyring_create(const struct keyring_options *options, char *ret_text, size_t text_size)
{
    const struct keyring_options o = completed(options);
    if (!sound(&o, ret_text, text_size))
        return NULL;
    struct keyring *k = aligned_alloc(_Alignof(struct keyring), sizeof(*k));
    if (!k) {
        snprintf(ret_text, text_size, "no memory for the keyring");
        return NULL;
    }
    memset((void *)k, 0, sizeof(*k));
    pthread_mutex_init(&k->lock, NULL);
    k->options = o;
    k->issuers[0] = o.issuer;
    k->issuers[1] = o.jwks_file || o.jwks_url ? o.jwks_issuer : NULL;
    k->audiences[0] = o.audience;
    k->policy = (struct jwt_policy){.issuers = k->issuers,
                                    .audiences = k->audiences,
                                    .skew_s = KEYRING_SKEW_S,
                                    .lifetime_s = KEYRING_LIFETIME_S,
                                    .agent_lifetime_s = KEYRING_AGENT_S};
    if (fill(k, ret_text, text_size))
        return k;
    keyring_destroy(k);
    return NULL;
}

void keyring_destroy(struct keyring *keyring)
{
    if (!keyring)
        return;
    key_table_free(atomic_load(&keyring->table));
    while (keyring->retired) {
        struct key_table *table = keyring->retired;
        keyring->retired = table->next;
        key_table_free(table);
    }
    for (int i = 0; i < SET_COUNT; i++)
        free(keyring->sets[i].text);
    for (int i = 0; i < KEYRING_READERS; i++)
        if (keyring->readers[i].hasher)
            crypto.EVP_MD_CTX_free(keyring->readers[i].hasher);
    pthread_mutex_destroy(&keyring->lock);
    token_cache_destroy(keyring->cache);
    blocklist_destroy(keyring->blocklist);
    vault_close(&keyring->vault);
    free(keyring);
}

/* ---- reading the table ---- */

/* Announced first, then looked at again: whoever replaced it in between will see the announcement or be seen. */
struct key_table *keyring_read_begin(struct keyring *keyring)
{
    actor_guard_begin();
    struct key_reader *reader = reader_here(keyring);
    struct key_table *table = atomic_load(&keyring->table), *seen;
    do {
        seen = table;
        atomic_store(&reader->table, seen);
        table = atomic_load(&keyring->table);
    } while (table != seen);
    key_table_open(keyring, table);
    return table;
}

void keyring_read_end(struct keyring *keyring)
{
    atomic_store_explicit(&reader_here(keyring)->table, NULL, memory_order_release);
    actor_guard_end();
}

/* The generation goes up behind the table: who read the old number with the new table only verifies once more. */
void keyring_publish(struct keyring *keyring, struct key_table *table)
{
    struct key_table *old = atomic_exchange(&keyring->table, table);
    atomic_fetch_add(&keyring->generation, 1);
    old->next = keyring->retired;
    keyring->retired = old;
}

static bool is_read(struct keyring *k, const struct key_table *table)
{
    for (int i = 0; i < KEYRING_READERS; i++)
        if (atomic_load(&k->readers[i].table) == table)
            return true;
    return false;
}

void keyring_reclaim(struct keyring *keyring)
{
    for (struct key_table **at = &keyring->retired; *at;) {
        struct key_table *table = *at;
        if (is_read(keyring, table)) {
            at = &table->next;
            continue;
        }
        *at = table->next;
        key_table_free(table);
    }
}

static const struct keyring_entry *entry_of(const struct key_table *table, struct span issuer,
                                            const char *kid)
{
    for (uint32_t i = 0; i < table->count; i++) {
        const struct keyring_entry *entry = &table->entries[i];
        if (!entry->twice && strcmp(jwt_key_kid(entry->key), kid) == 0 &&
            span_equal(span_text(entry->issuer), issuer))
            return entry;
    }
    return NULL;
}

/* ---- step 1: the blocklist ---- */

void keyring_stops(const struct keyring *keyring, const struct jwt *jwt,
                   struct blocklist_id ret_stops[TOKEN_CACHE_STOPS])
{
    const struct blocklist *b = keyring->blocklist;
    const struct span any = {NULL, 0};
    ret_stops[0] = blocklist_id(b, REVOCATION_TOKEN, jwt->issuer, jwt->jti);
    ret_stops[1] = blocklist_id(b, REVOCATION_KEY, jwt->issuer, span_text(jwt->kid));
    ret_stops[2] = blocklist_id(b, REVOCATION_SESSION, any, jwt->session);
    ret_stops[3] = blocklist_id(b, REVOCATION_SUBJECT, any, jwt->subject);
}

/* Static texts: what has been revoked. */
static const char *stopped(struct keyring *k, const struct cached_token *token)
{
    static const char *const words[TOKEN_CACHE_STOPS] = {"revoked token", "revoked key", "revoked session",
                                                         "revoked subject"};
    for (int i = 0; i < (int)TOKEN_CACHE_STOPS; i++)
        if (blocklist_stops(k->blocklist, token->stops[i], token->issued_s))
            return words[i];
    return NULL;
}

/* ---- step 2: the signature. The algorithm is the key's, never the header's. ---- */

static bool verify_with(struct keyring *k, const struct jwt *jwt, uint64_t now_s,
                        enum jwt_algorithm *ret_algorithm, uint64_t *ret_until_s, bool *ret_known)
{
    const struct key_table *table = keyring_read_begin(k);
    const struct keyring_entry *entry = entry_of(table, jwt->issuer, jwt->kid);
    bool good = false;
    *ret_known = entry && now_s < entry->until_s && jwt->iat <= entry->issued_s;
    if (*ret_known) {
        *ret_algorithm = jwt_key_algorithm(entry->key);
        *ret_until_s = entry->until_s;
        good = jwt_key_verify(entry->key, jwt);
    }
    keyring_read_end(k);
    return good;
}

static const char *check_signature(struct keyring *k, const struct jwt *jwt, uint64_t now_s,
                                   enum jwt_algorithm *ret_algorithm, uint64_t *ret_until_s)
{
    bool known;
    if (jwt->algorithm == JWT_NONE)
        return "alg is not one that is taken";
    if (!jwt->kid[0])
        return "no kid";
    bool good = verify_with(k, jwt, now_s, ret_algorithm, ret_until_s, &known);
    if (!known) {
        if (k->issuers[1] && span_equal(span_text(k->issuers[1]), jwt->issuer))
            atomic_store(&k->wanted, true);
        return "no key of this issuer has this kid, or had it when this says that it was issued";
    }
    TELEMETRY(AUTH_SIGNATURE, 1, DIM(OUTCOME, good ? "good" : "bad"));
    return good ? NULL : "the signature is not the key's";
}

/* ---- step 3: the claims. An agent is who says so, or who is registered as one (AMB-18). ---- */

/* False: the store can't be asked. */
static bool policy_for(const struct keyring *k, const struct jwt *jwt, struct jwt_policy *policy)
{
    struct principal row;
    struct view *view = store_here() ? view_open(store_here()) : NULL;
    if (!view)
        return !store_here();
    enum error e = principal_read(&view->txn, jwt->subject, &row);
    if (!e && role_of(row.role) == ROLE_AGENT) {
        policy->agent_lifetime_s = agent_template_seconds(k->options.templates, k->options.templates_count,
                                                          row.agent_template, row.tier);
        policy->lifetime_s = policy->agent_lifetime_s;
    }
    view_close(view);
    return !e || e == ERR_NOT_FOUND;
}

/* ---- step 4: replays ---- */

static void audit_replay(const struct jwt *jwt, struct span request_id, const uint8_t digest[DIGEST_SIZE])
{
    struct uuid_source source;
    char key[2 * DIGEST_SIZE + 1];
    for (size_t i = 0; i < DIGEST_SIZE; i++)
        snprintf(key + 2 * i, 3, "%02x", digest[i]);
    uuid_source_init(&source, store_here()->env);
    const struct audit_append entry = {
        .id = uuid_v7(&source),
        .key = span_text(key), /* once a day for each token */
        .who = span_of(jwt->subject.bytes, jwt->subject.size < AUDIT_WHO_MAX ? jwt->subject.size : 0),
        .verb = span_text("token.replayed"),
        .target = jwt->jti,
        .outcome = span_text("refused"),
        .request_id = request_id,
        .details = span_text("{\"severity\":\"SEV2\"}")};
    (void)store_submit(&audit_append_class, &entry, NULL, 0, NULL, actor_deadline_ms(STORE_MS));
}

/* What the store says of it so far; ERR_NOT_FOUND: nothing. */
static enum error look_up(struct keyring *k, const struct jwt *jwt, const uint8_t digest[DIGEST_SIZE])
{
    struct store *store = store_here();
    struct uuid id = seen_token_id(store, jwt->issuer, jwt->jti);
    struct key key = key_of_uuid(&id);
    struct seen_token row;
    struct view *view = view_open(store);
    if (!view)
        return ERR_NOT_FOUND; /* the command looks again */
    enum error e = txn_read(&view->txn, TABLE_SEEN_TOKENS, key_span(&key), &row);
    if (!e && (k->options.jti_single_use || !secret_equal(&row.digest, digest, DIGEST_SIZE)))
        e = ERR_CONFLICT;
    view_close(view);
    return e;
}

static enum jwt_stage check_replay(struct keyring *k, const struct jwt *jwt, struct span request_id,
                                   const uint8_t digest[DIGEST_SIZE], const char **ret_why)
{
    struct seen_token_put put = {.issuer = jwt->issuer,
                                 .jti = jwt->jti,
                                 .subject = jwt->subject,
                                 .session = jwt->session,
                                 .expires_us = jwt->exp * 1000000,
                                 .single_use = k->options.jti_single_use};
    memcpy(&put.digest, digest, sizeof(put.digest));
    *ret_why = "the store can't say whether it is a replay";
    if (!store_here())
        return JWT_STAGE_STORE;
    enum error e = look_up(k, jwt, digest);
    if (e == ERR_NOT_FOUND)
        e = store_submit(&seen_token_put_class, &put, NULL, 0, NULL, actor_deadline_ms(STORE_MS));
    switch (e) {
    case OK:
        return JWT_STAGE_OK;
    case ERR_CONFLICT:
        audit_replay(jwt, request_id, digest);
        *ret_why = "a replay: its jti came with another token, or came before";
        return JWT_STAGE_REPLAY;
    case ERR_EXPIRED:
        *ret_why = "expired";
        return JWT_STAGE_CLAIMS;
    default:
        return JWT_STAGE_STORE;
    }
}

/* ---- all of them ---- */

static struct identity identity_of(const struct jwt *jwt)
{
    struct identity who = {.kind = IDENTITY_TOKEN,
                           .role = role_of(jwt->role),
                           .subject = jwt->subject,
                           .session = jwt->session,
                           .jti = jwt->jti,
                           .issuer = jwt->issuer,
                           .all_projects = jwt->all_projects,
                           .projects_count = (uint16_t)jwt->projects_count,
                           .expires_s = jwt->exp};
    memcpy(who.projects, jwt->projects, jwt->projects_count * sizeof(who.projects[0]));
    return who;
}

/* Another issuer's clock may be ahead of ours: what it issued before a cut-off may say that it was later. */
static uint64_t issued_s(const struct keyring *k, const struct jwt *jwt)
{
    bool ours = span_equal(jwt->issuer, span_text(k->options.issuer));
    return ours || jwt->iat < KEYRING_SKEW_S ? jwt->iat : jwt->iat - KEYRING_SKEW_S;
}

static enum jwt_stage verify_whole(struct keyring *k, struct span token, const uint8_t digest[DIGEST_SIZE],
                                   uint64_t now_s, const struct span *use, struct identity *ret_who,
                                   const char **ret_why)
{
    struct jwt *jwt = actor_alloc(sizeof(*jwt));
    struct cached_token *cached = actor_alloc(sizeof(*cached));
    uint64_t generation = atomic_load(&k->generation), until_s = 0; /* before the table is looked at */
    enum jwt_algorithm algorithm = JWT_NONE;
    if ((*ret_why = jwt_read(token, jwt)) != NULL)
        return JWT_STAGE_FORM;
    memset(cached, 0, offsetof(struct cached_token, text));
    keyring_stops(k, jwt, cached->stops);
    cached->issued_s = issued_s(k, jwt);
    if ((*ret_why = stopped(k, cached)) != NULL)
        return JWT_STAGE_BLOCKLIST;
    if ((*ret_why = check_signature(k, jwt, now_s, &algorithm, &until_s)) != NULL)
        return JWT_STAGE_SIGNATURE;
    struct jwt_policy policy = k->policy;
    if (!policy_for(k, jwt, &policy)) {
        *ret_why = "the store can't say whose it is";
        return JWT_STAGE_STORE;
    }
    if ((*ret_why = jwt_check_claims(jwt, &policy, algorithm, now_s)) != NULL)
        return JWT_STAGE_CLAIMS;
    if (!role_of(jwt->role)) {
        *ret_why = "its role is none of ours";
        return JWT_STAGE_CLAIMS;
    }
    enum jwt_stage stage = use ? check_replay(k, jwt, *use, digest, ret_why) : JWT_STAGE_OK;
    if (stage)
        return stage;
    if ((*ret_why = stopped(k, cached)) != NULL) /* revoked while the store was asked */
        return JWT_STAGE_BLOCKLIST;
    *ret_who = identity_of(jwt);
    bool fits = cached_token_pack(cached, ret_who);
    cached->generation = generation;
    if (until_s < cached->expires_s)
        cached->expires_s = until_s;
    if (fits && use && !k->options.jti_single_use)
        token_cache_put(k->cache, digest, cached);
    return JWT_STAGE_OK;
}

/* False: nothing is remembered of it that still counts. */
static bool verify_again(struct keyring *k, const uint8_t digest[DIGEST_SIZE], uint64_t now_s,
                         struct identity *ret_who, enum jwt_stage *ret_stage, const char **ret_why)
{
    struct cached_token *cached = actor_alloc(sizeof(*cached));
    if (!token_cache_find(k->cache, digest, cached))
        return false;
    *ret_stage = JWT_STAGE_BLOCKLIST;
    if ((*ret_why = stopped(k, cached)) != NULL)
        return true;
    if (cached->generation != atomic_load_explicit(&k->generation, memory_order_acquire) ||
        now_s >= cached->expires_s) /* of the token or of its key: the steps find out */
        return false;
    *ret_stage = JWT_STAGE_OK;
    cached_token_unpack(cached, ret_who);
    return true;
}

/* use: the id of the request in which it is used; NULL: it is only looked at. */
static enum jwt_stage verify(struct keyring *keyring, struct span token, const struct span *use,
                             struct identity *ret_who, const char **ret_why)
{
    uint8_t digest[DIGEST_SIZE];
    char unprepared[200];
    enum jwt_stage stage;
    uint64_t now_s = actor_wall_now() / NS_PER_S;
    *ret_why = NULL;
    if (token.size > JWT_SIZE_MAX) {
        stage = JWT_STAGE_FORM;
        *ret_why = "too long";
    } else if (!atomic_load_explicit(&keyring->loaded, memory_order_acquire)) {
        stage = JWT_STAGE_STORE;
        *ret_why = "keys and revocations are not loaded yet";
    } else if (!keyring_prepare(keyring, unprepared, sizeof(unprepared)) || !hash(keyring, token, digest)) {
        stage = JWT_STAGE_STORE;
        *ret_why = "libcrypto can't be used";
    } else if (!verify_again(keyring, digest, now_s, ret_who, &stage, ret_why)) {
        stage = verify_whole(keyring, token, digest, now_s, use, ret_who, ret_why);
    }
    if (stage)
        TELEMETRY(AUTH_REJECTED, 1, DIM(STAGE, stage_names[stage]), DIM(REASON, *ret_why));
    return stage;
}

enum jwt_stage keyring_verify(struct keyring *keyring, struct span token, struct span request_id,
                              struct identity *ret_who, const char **ret_why)
{
    return verify(keyring, token, &request_id, ret_who, ret_why);
}

enum jwt_stage keyring_look(struct keyring *keyring, struct span token, struct identity *ret_who,
                            const char **ret_why)
{
    return verify(keyring, token, NULL, ret_who, ret_why);
}

/* ---- what others may see ---- */

void keyring_write_jwks(struct keyring *keyring, struct json *json)
{
    char *text = NULL;
    size_t size = 0;
    while (true) { /* writing may wait, and nobody waits while it reads */
        struct key_table *table = keyring_read_begin(keyring);
        bool room = table->jwks_size <= size;
        size = table->jwks_size;
        if (room && size)
            memcpy(text, table->jwks, size);
        keyring_read_end(keyring);
        if (room)
            break;
        text = actor_alloc(size);
    }
    if (size)
        json_raw(json, text, size);
    else
        json_raw(json, "{\"keys\":[]}", strlen("{\"keys\":[]}"));
}

bool keyring_ready(struct keyring *keyring, const char **ret_why)
{
    bool loaded = atomic_load(&keyring->loaded);
    const struct key_table *table = keyring_read_begin(keyring);
    bool opened = table->opened, signs = table->signer != NULL;
    keyring_read_end(keyring);
    if (loaded && signs)
        return true;
    *ret_why = !loaded   ? "keys and revocations are not loaded yet"
               : !opened ? "libcrypto can't be used"
               : atomic_load(&keyring->signless)
                   ? "the active signing key can't be opened with this master key; bring it back, or rotate"
                   : "there is no signing key; an operator makes the first one (coppice keys bootstrap)";
    return false;
}

void keyring_figures(struct keyring *keyring, struct keyring_figures *ret_figures)
{
    struct keyring_figures figures = {.revoked = blocklist_count(keyring->blocklist),
                                      .cadence_s = keyring->options.cadence_ns / NS_PER_S,
                                      .overlap_s = keyring->options.overlap_ns / NS_PER_S,
                                      .revocation_s = keyring->options.revocation_ns / NS_PER_S};
    uint64_t set_at = atomic_load(&keyring->set_at_ns), now = actor_now();
    figures.set_age_s = set_at && now > set_at ? (now - set_at) / NS_PER_S : 0;
    const struct key_table *table = keyring_read_begin(keyring);
    figures.keys = table->count;
    if (table->signer) {
        snprintf(figures.active, sizeof(figures.active), "%s", jwt_signer_kid(table->signer));
        figures.next_rotation_us = table->created_us + keyring->options.cadence_ns / NS_PER_US;
    }
    keyring_read_end(keyring);
    *ret_figures = figures;
}

const char *keyring_environment(const struct keyring *keyring)
{
    return keyring->options.environment;
}

const char *keyring_issuer(const struct keyring *keyring)
{
    return keyring->options.issuer;
}

/* ---- issuing ---- */

static void write_claims(const struct keyring *k, const struct keyring_claims *c,
                         const struct keyring_token *t, uint64_t now_s, struct json *json)
{
    json_object_begin(json);
    JSON_MEMBER(json, "iss", string, k->options.issuer);
    json_key(json, "aud");
    if (c->audience.size)
        json_string_n(json, c->audience.bytes, c->audience.size);
    else
        json_string(json, k->options.audience);
    json_key(json, "sub");
    json_string_n(json, c->subject.bytes, c->subject.size);
    json_key(json, "role");
    json_string_n(json, c->role.bytes, c->role.size);
    json_key(json, "project_scope");
    json_array_begin(json);
    for (uint32_t i = 0; i < c->projects_count; i++)
        json_string_n(json, c->projects[i].bytes, c->projects[i].size);
    json_array_end(json);
    JSON_MEMBER(json, "session_id", string, t->session);
    JSON_MEMBER(json, "jti", string, t->jti);
    JSON_MEMBER(json, "iat", uint, now_s);
    JSON_MEMBER(json, "exp", uint, t->expires_s);
    json_object_end(json);
}

uint64_t keyring_longest_s(const struct keyring *keyring, const struct keyring_claims *claims)
{
    const struct keyring_options *o = &keyring->options;
    if (role_of(claims->role) != ROLE_AGENT)
        return KEYRING_LIFETIME_S;
    return agent_template_seconds(o->templates, o->templates_count, claims->agent_template, claims->tier);
}

static const char *defect_of(const struct keyring_claims *c, uint64_t lifetime_s, uint64_t longest_s)
{
    enum role role = role_of(c->role);
    if (c->subject.size == 0 || c->subject.size > IDENTITY_SUBJECT_MAX)
        return "sub must have 1 to 128 bytes";
    if (!role)
        return "role must be one of the roles";
    if (c->session.size > IDENTITY_SUBJECT_MAX)
        return "session_id must have at most 128 bytes";
    if (c->audience.size > JWT_TEXT_MAX)
        return "aud must have at most 256 bytes";
    if (c->projects_count == 0)
        return "project_scope must name a project, or \"*\"";
    for (uint32_t i = 0; i < c->projects_count; i++)
        if (c->projects[i].size == 0 || c->projects[i].size > IDENTITY_SUBJECT_MAX)
            return "a project in project_scope must have 1 to 128 bytes";
    if (lifetime_s > longest_s)
        return "a token lives for 8 hours at most, and an agent's for 4, or as long as its template says";
    return NULL;
}

static bool sign(struct keyring *k, const struct keyring_claims *c, uint64_t now_s, struct keyring_token *t,
                 bool *ret_signer)
{
    char claims[KEYRING_TOKEN_MAX / 2 + KEYRING_TOKEN_MAX / 8];
    struct json_sink sink;
    struct json json;
    json_sink_init(&sink, claims, sizeof(claims), NULL, NULL);
    json_init(&json, &sink);
    write_claims(k, c, t, now_s, &json);
    bool fits = json_end(&json) == JSON_OK;
    const struct key_table *table = keyring_read_begin(k);
    *ret_signer = table->signer != NULL;
    t->length = 0;
    if (fits && table->signer) {
        snprintf(t->kid, sizeof(t->kid), "%s", jwt_signer_kid(table->signer));
        t->length = jwt_sign(table->signer, span_of(claims, sink.length), t->text, sizeof(t->text));
    }
    keyring_read_end(k);
    return t->length > 0;
}

static void remember_newest(struct keyring *k, uint64_t iat_s)
{
    uint64_t newest = atomic_load(&k->newest_s);
    while (newest < iat_s && !atomic_compare_exchange_weak(&k->newest_s, &newest, iat_s))
        ;
}

/* A revocation of a subject ends what was issued up to its second: who is issued a token behind it gets the next one. Not
 * further ahead than half of what clocks may differ by: KEYRING_AHEAD_S. */
static uint64_t first_second(const struct keyring *k, struct span subject, uint64_t now_s)
{
    const struct blocklist_id id = blocklist_id(k->blocklist, REVOCATION_SUBJECT, span_of(NULL, 0), subject);
    uint64_t at_s = now_s;
    while (at_s < now_s + KEYRING_AHEAD_S && blocklist_stops(k->blocklist, id, at_s))
        at_s++;
    return at_s;
}

uint64_t keyring_cut_off_s(const struct keyring *k)
{
    uint64_t newest_s = atomic_load(&k->newest_s), now_s = actor_wall_now() / NS_PER_S;
    if (newest_s > now_s + KEYRING_AHEAD_S)
        newest_s = now_s + KEYRING_AHEAD_S;
    return newest_s > now_s ? newest_s : now_s;
}

/* Not beyond what was issued: a second more with each end, and ends in quick succession would be ahead of what first_second can give.
 * A token that is issued of a later second before the command is done: keyring_stop_subject. */
struct keyring_end keyring_end_of(const struct keyring *k)
{
    return (struct keyring_end){.tokens_us = KEYRING_TOKENS_S * 1000000,
                                .cut_off_us = keyring_cut_off_s(k) * 1000000};
}

const char *keyring_issue(struct keyring *keyring, const struct keyring_claims *claims,
                          struct keyring_token *ret_token, bool *ret_unavailable)
{
    uint64_t iat_s = first_second(keyring, claims->subject, actor_wall_now() / NS_PER_S);
    uint64_t longest_s = keyring_longest_s(keyring, claims);
    uint64_t usual_s = longest_s < ISSUE_S_DEFAULT ? longest_s : ISSUE_S_DEFAULT;
    uint64_t lifetime_s = claims->lifetime_s ? claims->lifetime_s : usual_s;
    const char *why = defect_of(claims, lifetime_s, longest_s);
    struct uuid_source source;
    struct uuid id;
    bool signer;
    *ret_unavailable = false;
    if (why)
        return why;
    uuid_source_init(&source, keyring->options.env);
    id = uuid_v4(&source);
    uuid_format(&id, ret_token->jti);
    id = uuid_v4(&source);
    uuid_format(&id, ret_token->session);
    if (claims->session.size) {
        memcpy(ret_token->session, claims->session.bytes, claims->session.size);
        ret_token->session[claims->session.size] = 0;
    }
    ret_token->expires_s = iat_s + lifetime_s;
    remember_newest(keyring, iat_s);
    if (sign(keyring, claims, iat_s, ret_token, &signer))
        return NULL;
    *ret_unavailable = !signer;
    return signer ? "the claims are too long for a token" : "there is no signing key";
}
