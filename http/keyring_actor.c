#define _GNU_SOURCE /* memmem */
#include "http/keyring_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "actors/fetch.h"
#include "runtime/json.h"
#include "store/view.h"

enum { KEYRING_ORDER = 1, KEYRING_ANSWER, KEYRING_TICK };
enum verb { VERB_ROTATE, VERB_REVOKE_KEY, VERB_REVOKE, VERB_EXPECT, VERB_STOP };

enum {
    PAGE = 2048, /* revocations read in one view */
    SUBMIT_MS = 5000,
    ATTEMPT_S = 10, /* between attempts at what the store refused */
    UNSURE_S = 60,  /* for how long the store is read again for a command whose end nobody knows */
};

/* ---- orders: what a handler wants done ---- */

struct order {
    uint8_t verb, first, kind, done, unsure;
    uint16_t who_size, reason_size, request_size, issuer_size, value_size;
    uint64_t expires_s;
    char who[AUDIT_WHO_MAX], reason[SIGNING_KEY_REASON_MAX], request[128];
    char issuer[REVOCATION_ISSUER_MAX], value[REVOCATION_VALUE_MAX];
};
struct order_answer {
    uint32_t error;
    char kid[UUID_TEXT_SIZE];
};

/* Cut off where it ends, but never within a character. */
static uint16_t take_text(char *room, size_t most, struct span text)
{
    const uint8_t *at = text.bytes;
    size_t size = text.size < most ? text.size : most;
    while (size < text.size && size > 0 && (at[size] & 0xc0) == 0x80)
        size--;
    if (size)
        memcpy(room, at, size);
    return (uint16_t)size;
}

static struct order order_of(enum verb verb, const struct keyring_order *o)
{
    struct order order = {.verb = (uint8_t)verb};
    order.who_size = take_text(order.who, sizeof(order.who), o->who);
    order.reason_size = take_text(order.reason, sizeof(order.reason), o->reason);
    order.request_size = take_text(order.request, sizeof(order.request), o->request_id);
    return order;
}

static enum error submit_order(const struct order *order, struct order_answer *ret_answer, uint64_t deadline)
{
    struct message *reply = NULL, *m = message_of(KEYRING_ORDER, order, sizeof(*order));
    if (!m)
        return ERR_MEMORY;
    enum error e = actor_call_name(KEYRING_NAME, m, &reply, deadline);
    if (e == OK) {
        memcpy(ret_answer, reply->payload, sizeof(*ret_answer));
        e = (enum error)ret_answer->error;
    }
    if (reply)
        message_free(reply);
    return e;
}

enum error keyring_rotate(const struct keyring_order *o, bool first, char ret_kid[UUID_TEXT_SIZE],
                          uint64_t deadline)
{
    struct order order = order_of(VERB_ROTATE, o);
    struct order_answer answer;
    order.first = first;
    enum error e = submit_order(&order, &answer, deadline);
    if (!e)
        memcpy(ret_kid, answer.kid, UUID_TEXT_SIZE);
    return e;
}

enum error keyring_revoke_key(const struct keyring_order *o, struct span kid, uint64_t deadline)
{
    return keyring_revoke(o, REVOCATION_KEY, span_of(NULL, 0), kid, 0, deadline);
}

enum error keyring_revoke(const struct keyring_order *o, enum revocation_kind kind, struct span issuer,
                          struct span value, uint64_t expires_s, uint64_t deadline)
{
    struct order order = order_of(kind == REVOCATION_KEY ? VERB_REVOKE_KEY : VERB_REVOKE, o);
    struct order_answer answer;
    bool fits = value.size > 0 && value.size <= sizeof(order.value) && issuer.size <= sizeof(order.issuer);
    if (kind == REVOCATION_KEY && !fits)
        return ERR_NOT_FOUND;
    if (kind >= REVOCATION_KIND_COUNT || !fits)
        return ERR_INVALID;
    order.kind = (uint8_t)kind;
    order.expires_s = expires_s;
    order.issuer_size = take_text(order.issuer, sizeof(order.issuer), issuer);
    order.value_size = take_text(order.value, sizeof(order.value), value);
    return submit_order(&order, &answer, deadline);
}

void keyring_expect_end(void)
{
    const struct order order = {.verb = VERB_EXPECT};
    struct message *m = message_of(KEYRING_ORDER, &order, sizeof(order));
    if (m)
        (void)actor_send_name(KEYRING_NAME, m);
}

enum error keyring_stop_subject(const struct keyring_order *o, struct span subject, bool done, bool unsure,
                                uint64_t deadline)
{
    struct order order = order_of(VERB_STOP, o);
    struct order_answer answer;
    if (subject.size == 0 || subject.size > sizeof(order.value))
        return ERR_NOT_FOUND;
    order.kind = REVOCATION_SUBJECT;
    order.done = done;
    order.unsure = unsure;
    order.value_size = take_text(order.value, sizeof(order.value), subject);
    return submit_order(&order, &answer, deadline);
}

/* ---- the actor ---- */

/* What it may complain about. */
enum matter {
    MATTER_LOAD,
    MATTER_OWN,
    MATTER_CRYPTO,
    MATTER_AGE,
    MATTER_SET,
    MATTER_COUNT = MATTER_SET + SET_COUNT
};

struct keyring_state {
    struct keyring *k;
    struct uuid_source ids;
    struct own_key own[KEYRING_OWN_MAX];
    uint32_t own_count;
    bool revocations_loaded, keys_loaded;
    bool ever;             /* there is, or was, a key of this environment */
    bool looked;           /* what was issued before this start is known */
    bool ahead;            /* there are tokens of later than now, and nothing ends them yet */
    uint64_t attempt_at;   /* monotonic: not before */
    uint64_t unsure_until; /* monotonic: the store may change by a command that was given up */
    uint64_t
        ends_until; /* the same of a command that ends a subject's tokens: who submits it may not live to tell its end */
    uint64_t refresh_at; /* monotonic: of the sets */
    uint64_t asked_at;   /* monotonic: when that was done last */
    uint64_t fetch_ref;  /* 0: none under way */
    uint64_t fetch_until;
    struct timespec modified;       /* of the file, as it was read last */
    const char *said[MATTER_COUNT]; /* the last complaint of each, which isn't repeated until it is settled */
};

static uint64_t now_us(void)
{
    return actor_wall_now() / NS_PER_US;
}

static void tell(const char *level, const char *what, const char *why)
{
    char line[1024];
    struct json_sink sink;
    struct json json;
    json_sink_init(&sink, line, sizeof(line), NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "level", string, level);
    JSON_MEMBER(&json, "component", string, KEYRING_NAME);
    JSON_MEMBER(&json, "msg", string, what);
    JSON_MEMBER(&json, "reason", string, why);
    json_object_end(&json);
    if (json_end(&json) == JSON_OK)
        runtime_log(runtime_self(), line, sink.length);
}

static void complain(struct keyring_state *s, enum matter matter, const char *level, const char *what,
                     const char *why)
{
    if (s->said[matter] != what)
        tell(level, what, why);
    s->said[matter] = what;
}

static void settle(struct keyring_state *s, enum matter matter)
{
    s->said[matter] = NULL;
}

/* ---- key sets ---- */

static void note_set(struct keyring_state *s, int which)
{
    struct keyring *k = s->k;
    uint64_t oldest = k->sets[which].at_ns = actor_now();
    for (int i = 0; i < SET_COUNT; i++)
        if (k->sets[i].text && k->sets[i].at_ns < oldest)
            oldest = k->sets[i].at_ns;
    atomic_store(&k->set_at_ns, oldest);
    settle(s, MATTER_SET + (enum matter)which);
}

enum set_end { SET_REFUSED, SET_SAME, SET_TAKEN };

/* A set without keys counts: who has withdrawn them all must not be trusted for longer than who has withdrawn one. */
static enum set_end set_take(struct keyring_state *s, int which, const char *text, size_t size)
{
    struct keyring *k = s->k;
    struct key_set *set = &k->sets[which];
    uint32_t good = 0;
    char why[200] = "no memory";
    if (set->text && set->size == size && memcmp(set->text, text, size) == 0) {
        note_set(s, which);
        return SET_SAME;
    }
    struct arena_mark mark = actor_arena_mark();
    struct json_node *nodes = actor_alloc(KEYRING_SET_NODES * sizeof(*nodes));
    actor_guard_begin();
    struct key_table *trial = calloc(1, sizeof(*trial));
    bool is_set = trial && key_table_add_set(trial, k->options.jwks_issuer, span_of(text, size), nodes, &good,
                                             why, sizeof(why));
    key_table_free(trial);
    char *copy = is_set ? malloc(size) : NULL;
    if (copy) {
        memcpy(copy, text, size);
        free(set->text);
        *set = (struct key_set){.text = copy, .size = size};
    }
    actor_guard_end();
    actor_arena_reset(mark);
    if (!copy) {
        complain(s, MATTER_SET + (enum matter)which, "warn",
                 "a key set was refused, and the one before it is kept", why);
        return SET_REFUSED;
    }
    note_set(s, which);
    if (!good)
        tell("warn", "a key set has no key that can be used, so nothing that its issuer signs is taken", why);
    return SET_TAKEN;
}

/* ---- loading ---- */

static enum error stop_key(struct keyring *k, const char *issuer, struct span kid, uint64_t expires_s)
{
    struct blocklist_id id = blocklist_id(k->blocklist, REVOCATION_KEY, span_text(issuer), kid);
    return blocklist_put(k->blocklist, id, UINT64_MAX, expires_s);
}

/* Until then every token that was issued before now has expired. */
static uint64_t all_expired_s(uint64_t us)
{
    return us / 1000000 + KEYRING_TOKENS_S;
}

/* A revocation that is forgotten because the wall clock is ahead would be missing once it is right again. */
static uint64_t over_for_good_s(void)
{
    STATIC_ASSERT(KEYRING_LIFETIME_S + 2 * KEYRING_SKEW_S < CALENDAR_TRUST_S,
                  "a clock is believed when no token of before is left");
    return store_here() ? store_retained_us(store_here()) / 1000000 : 0;
}

static void load_row(struct keyring_state *s, const struct signing_key *row, struct own_row *keys,
                     uint32_t *count)
{
    struct keyring *k = s->k;
    char kid[UUID_TEXT_SIZE];
    if (!span_equal(row->environment, span_text(k->options.environment)))
        return;
    s->ever = true;
    uuid_format(&row->id, kid);
    if (row->state == SIGNING_KEY_REVOKED && all_expired_s(row->ended_us) > now_us() / 1000000)
        stop_key(k, k->options.issuer, span_text(kid), all_expired_s(row->ended_us));
    if (lifecycle_terminal(&signing_key_lifecycle, row->state) || *count == KEYRING_OWN_MAX)
        return;
    struct own_row *key = &keys[(*count)++];
    key->own = (struct own_key){.id = row->id,
                                .state = row->state,
                                .created_us = row->created_us,
                                .expires_us = row->expires_us,
                                .issued_s = row->rotated_us / 1000000 + KEYRING_AHEAD_S};
    memcpy(key->kid, kid, sizeof(kid));
    key->jwk_size = row->public_jwk.size;
    memcpy(key->jwk, row->public_jwk.bytes, row->public_jwk.size);
    key->sealed_size = row->sealed.size;
    if (row->sealed.size)
        memcpy(key->sealed, row->sealed.bytes, row->sealed.size);
}

/* Newest first, so that the active one is there however many are retiring. */
static enum error read_keys(struct keyring_state *s, struct own_row *keys, uint32_t *ret_count)
{
    struct key last = {.size = 0};
    struct signing_key row;
    uint8_t most[16];
    memset(most, 0xff, sizeof(most));
    key_add(&last, most, sizeof(most));
    struct view *view = view_open(store_here());
    if (!view)
        return ERR_UNAVAILABLE;
    struct scan scan = txn_scan(&view->txn, TABLE_SIGNING_KEYS, key_span(&last), 0, SCAN_DOWN);
    while (scan_next(&scan) && scan_read(&scan, &row) == OK)
        load_row(s, &row, keys, ret_count);
    enum error e = scan_end(&scan);
    view_close(view);
    return e;
}

/* Whatever the clock said when they retired, that was before the active one was made. */
static void bound_keys(struct own_row *keys, uint32_t count)
{
    uint64_t made_s = UINT64_MAX;
    for (uint32_t i = 0; i < count; i++)
        if (keys[i].own.state == SIGNING_KEY_ACTIVE) {
            made_s = keys[i].own.created_us / 1000000 + KEYRING_AHEAD_S;
            keys[i].own.issued_s = UINT64_MAX;
        }
    for (uint32_t i = 0; i < count; i++)
        if (keys[i].own.state != SIGNING_KEY_ACTIVE && keys[i].own.issued_s > made_s)
            keys[i].own.issued_s = made_s;
}

static enum error load_keys(struct keyring_state *s)
{
    uint32_t count = 0;
    struct arena_mark mark = actor_arena_mark();
    struct own_row *keys = actor_alloc(KEYRING_OWN_MAX * sizeof(*keys));
    struct json_node *nodes = actor_alloc(KEYRING_SET_NODES * sizeof(*nodes));
    enum error e = store_here() ? read_keys(s, keys, &count) : ERR_UNAVAILABLE;
    if (!e) {
        bound_keys(keys, count);
        s->own_count = count;
        for (uint32_t i = 0; i < count; i++)
            s->own[i] = keys[i].own;
        actor_guard_begin();
        e = key_table_make(s->k, keys, count, nodes) ? OK : ERR_MEMORY;
        actor_guard_end();
    }
    explicit_bzero(keys, KEYRING_OWN_MAX * sizeof(*keys));
    actor_arena_reset(mark);
    s->keys_loaded |= e == OK;
    return e;
}

static enum error load_revocation(struct keyring *k, const struct revocation *row)
{
    struct blocklist_id id =
        blocklist_id(k->blocklist, (enum revocation_kind)row->kind, row->issuer, row->value);
    uint64_t cut_off_s = row->kind == REVOCATION_SUBJECT ? row->revoked_us / 1000000 : UINT64_MAX;
    return blocklist_put(k->blocklist, id, cut_off_s,
                         row->expires_us ? row->expires_us / 1000000 + 1 : UINT64_MAX);
}

/* One page behind *from; *ret_more: there are others. */
static enum error load_page(struct keyring *k, struct key *from, bool *ret_more)
{
    struct revocation row;
    uint32_t count = 0;
    struct key start = *from;
    struct view *view = view_open(store_here());
    if (!view)
        return ERR_UNAVAILABLE;
    struct scan scan = txn_scan(&view->txn, TABLE_REVOCATIONS, key_span(&start), 0, SCAN_UP);
    while (count < PAGE && scan_next(&scan) && scan_read(&scan, &row) == OK) {
        (void)load_revocation(k, &row); /* the store has no more than fit */
        from->size = 0;
        key_add(from, scan.key.bytes, scan.key.size);
        count++;
    }
    enum error e = scan_end(&scan);
    view_close(view);
    *ret_more = count == PAGE;
    return e;
}

static enum error load_revocations(struct keyring_state *s)
{
    struct key from = {.size = 0};
    bool more = true;
    enum error e = store_here() ? OK : ERR_UNAVAILABLE;
    while (!e && more) { /* a page begins with the last row of the one before: the same thing again */
        e = load_page(s->k, &from, &more);
        actor_yield();
    }
    s->revocations_loaded |= e == OK;
    return e;
}

static void load(struct keyring_state *s)
{
    enum error e = s->revocations_loaded ? OK : load_revocations(s);
    if (!e && !s->keys_loaded)
        e = load_keys(s);
    if (e) {
        complain(s, MATTER_LOAD, "error",
                 atomic_load(&s->k->loaded) ? "keys can't be loaded again, and those of before are kept"
                                            : "keys and revocations can't be loaded, so no token is taken",
                 error_name(e));
        return;
    }
    settle(s, MATTER_LOAD);
    atomic_store_explicit(&s->k->loaded, true, memory_order_release);
}

/* ---- rotation ---- */

static const struct own_key *active_of(const struct keyring_state *s)
{
    for (uint32_t i = 0; i < s->own_count; i++)
        if (s->own[i].state == SIGNING_KEY_ACTIVE)
            return &s->own[i];
    return NULL;
}

static void draw(void *context, void *bytes, size_t size)
{
    (void)context;
    actor_random_bytes(bytes, size);
}

struct newcomer {
    struct uuid id;
    char kid[UUID_TEXT_SIZE], jwk[JWT_JWK_MAX];
    size_t jwk_size;
    uint8_t sealed[JWT_SECRET_SIZE + VAULT_OVERHEAD];
};

static bool newcomer_make(struct keyring_state *s, struct newcomer *n)
{
    uint8_t secret[JWT_SECRET_SIZE], nonce[VAULT_NONCE_SIZE];
    char name[128];
    n->id = uuid_v7(&s->ids);
    uuid_format(&n->id, n->kid);
    jwt_secret_make(draw, NULL, secret);
    actor_random_bytes(nonce, sizeof(nonce));
    actor_guard_begin();
    struct jwt_signer *signer = jwt_signer_create(n->kid, secret);
    n->jwk_size = signer ? jwt_signer_jwk(signer, n->jwk) : 0;
    if (signer)
        vault_seal(&s->k->vault, nonce, keyring_sealed_name(name, s->k, n->kid),
                   span_of(secret, sizeof(secret)), n->sealed);
    jwt_signer_free(signer);
    explicit_bzero(secret, sizeof(secret));
    actor_guard_end();
    return n->jwk_size > 0;
}

static enum error submit(const struct command_class *class, const void *command)
{
    return store_submit(class, command, NULL, 0, NULL, actor_deadline_ms(SUBMIT_MS));
}

/* As store/store.h says: it may have been done, or will be. */
static bool unknown_end(enum error e)
{
    return e == ERR_TIMEOUT || e == ERR_DOWN || e == ERR_IO || e == ERR_UNANSWERED;
}

/* Whatever was answered: what counts is in the store. */
static enum error load_changed(struct keyring_state *s, enum error e)
{
    if (unknown_end(e))
        s->unsure_until = actor_now() + UNSURE_S * NS_PER_S;
    return load_keys(s);
}

/* Whether one more would put a key out of mind that signed a token which is still good. That was before the next one came. */
static bool crowded(const struct keyring_state *s)
{
    if (s->own_count < KEYRING_OWN_MAX)
        return false;
    const struct own_key *oldest = &s->own[KEYRING_OWN_MAX - 1], *next = oldest - 1;
    uint64_t now = now_us(), tokens_us = KEYRING_TOKENS_S * 1000000;
    return now < oldest->expires_us && now < next->created_us + tokens_us;
}

static enum error rotate(struct keyring_state *s, bool first, struct span who, struct span reason,
                         struct span request_id, char ret_kid[UUID_TEXT_SIZE])
{
    const struct own_key *active = active_of(s);
    const struct keyring_options *o = &s->k->options;
    struct newcomer n;
    char why[200];
    if (!s->keys_loaded)
        return ERR_UNAVAILABLE;
    if (first ? s->ever : !s->ever)
        return first ? ERR_EXISTS : ERR_NOT_FOUND;
    bool urgent = !active || s->ahead || atomic_load(&s->k->signless);
    if (!urgent && crowded(s))
        return ERR_LIMIT;
    if (!keyring_prepare(s->k, why, sizeof(why))) {
        complain(s, MATTER_CRYPTO, "error", "no signing key can be made", why);
        return ERR_UNAVAILABLE;
    }
    settle(s, MATTER_CRYPTO);
    if (!newcomer_make(s, &n))
        return ERR_MEMORY;
    struct signing_key_rotate c = {.id = n.id,
                                   .first = first,
                                   .algorithm = span_text("ES256"),
                                   .environment = span_text(o->environment),
                                   .public_jwk = span_of(n.jwk, n.jwk_size),
                                   .sealed = span_of(n.sealed, sizeof(n.sealed)),
                                   .overlap_us = o->overlap_ns / NS_PER_US,
                                   .audit = uuid_v7(&s->ids),
                                   .who = who,
                                   .reason = reason,
                                   .request_id = request_id};
    if (active)
        c.previous = active->id;
    enum error e = submit(&signing_key_rotate_class, &c);
    enum error loaded = load_changed(s, e);
    memcpy(ret_kid, n.kid, sizeof(n.kid));
    return e ? e : loaded;
}

static bool rotate_alone(struct keyring_state *s, bool first, const char *reason)
{
    char kid[UUID_TEXT_SIZE];
    const struct span none = {NULL, 0};
    enum error e = rotate(s, first, span_text("system"), span_text(reason), none, kid);
    if (e) {
        complain(s, MATTER_OWN, "error", "a signing key could not be made", error_name(e));
        s->attempt_at = actor_now() + ATTEMPT_S * NS_PER_S;
    } else {
        tell("info", first ? "the first signing key was made" : "the signing key was rotated", reason);
        settle(s, MATTER_OWN);
    }
    return e == OK;
}

/* What is due of our own keys. */
static void look_after_own(struct keyring_state *s)
{
    const struct own_key *active = active_of(s);
    bool dev = strcmp(s->k->options.environment, "dev") == 0;
    uint64_t now = now_us(), cadence = s->k->options.cadence_ns / NS_PER_US;
    if (!s->ever) {
        if (dev)
            rotate_alone(s, true, "the first start");
    } else if (!active) {
        rotate_alone(s, false, "there was no active key");
    } else if (now >= active->created_us + cadence) {
        rotate_alone(s, false, "the cadence");
    } else if (active->created_us > now + cadence) {
        rotate_alone(s, false, "the clock was ahead when the active key was made");
    } else if (dev && atomic_load(&s->k->signless)) {
        rotate_alone(s, false, "the active key can't be opened with this master key");
    }
}

/* ---- a clock that was ahead ---- */

/* The entry that comes with each token (http/tokens.c) says which key has signed it. */
static const struct own_key *signer_in(const struct keyring_state *s, struct span details)
{
    static const char name[] = "\"kid\":\"";
    const char *end = (const char *)details.bytes + details.size;
    const char *at = details.size ? memmem(details.bytes, details.size, name, sizeof(name) - 1) : NULL;
    struct uuid id;
    if (!at || (size_t)(end - at) < sizeof(name) - 1 + UUID_TEXT_SIZE - 1 ||
        !uuid_parse(at + sizeof(name) - 1, UUID_TEXT_SIZE - 1, &id))
        return NULL;
    for (uint32_t i = 0; i < s->own_count; i++)
        if (uuid_equal(&s->own[i].id, &id))
            return &s->own[i];
    return NULL;
}

/* Whether that token would be taken once the clock has come to it. */
static bool would_count(const struct keyring_state *s, const struct audit *row)
{
    const struct own_key *key =
        span_equal(row->verb, span_text("token.issued")) ? signer_in(s, row->details) : NULL;
    return key && row->at_us / 1000000 <= key->issued_s;
}

/* A page of entries from *from down to those of now; false: there is no need for another one. */
static bool look_page(const struct keyring_state *s, uint64_t now_s, struct key *from, uint64_t *ret_newest_s,
                      enum error *ret_error)
{
    struct audit row;
    uint32_t count = 0;
    bool more = true;
    struct key start = *from;
    struct view *view = view_open(store_here());
    *ret_error = ERR_UNAVAILABLE;
    if (!view)
        return false;
    struct scan scan = txn_scan(&view->txn, TABLE_AUDITS, key_span(&start), 0, SCAN_DOWN);
    while (more && count++ < PAGE && (more = scan_next(&scan)) && (more = scan_read(&scan, &row) == OK)) {
        from->size = 0;
        key_add(from, scan.key.bytes, scan.key.size);
        if (would_count(s, &row))
            *ret_newest_s = row.at_us / 1000000;
        more = row.at_us / 1000000 > now_s && *ret_newest_s == 0;
    }
    *ret_error = scan_end(&scan);
    view_close(view);
    return more;
}

/* At a start nobody knows what was issued before it, but the audit log, whose ids are in the order of their times. *ret_newest_s: of
 * a token that would still count; 0: there is none of later than now. */
static enum error look_for_newest(const struct keyring_state *s, uint64_t now_s, uint64_t *ret_newest_s)
{
    struct key from = {.size = 0};
    enum error e;
    uint8_t most[16];
    memset(most, 0xff, sizeof(most));
    key_add(&from, most, sizeof(most));
    *ret_newest_s = 0;
    while (look_page(s, now_s, &from, ret_newest_s, &e)) /* begins with the last row of the one before */
        actor_yield();
    return e;
}

static void bound_newest(struct keyring *k, uint64_t least_s, uint64_t most_s)
{
    uint64_t newest_s = atomic_load(&k->newest_s), right_s;
    do
        right_s = newest_s < least_s ? least_s : newest_s > most_s ? most_s : newest_s;
    while (right_s != newest_s && !atomic_compare_exchange_weak(&k->newest_s, &newest_s, right_s));
}

/* Tokens of later than now would come to life with the time, whoever's were ended meanwhile; and a cut-off that ends them would
 * keep out whoever comes now. So another key signs from now on, and nothing that those before it have signed may be of later. */
static void look_at_clock(struct keyring_state *s)
{
    struct keyring *k = s->k;
    uint64_t now_s = now_us() / 1000000, latest_s = now_s + KEYRING_AHEAD_S, newest_s = 0;
    enum error e = s->looked ? OK : look_for_newest(s, now_s, &newest_s);
    if (e == ERR_UNAVAILABLE)
        return; /* the next tick does */
    bound_newest(k, s->looked || newest_s > now_s ? newest_s : now_s, UINT64_MAX);
    s->ahead = e || atomic_load(&k->newest_s) > latest_s; /* what can't be read may be one */
    if (s->ahead && s->ever &&
        (!active_of(s) ||
         !rotate_alone(s, false, "tokens are of later than now: the clock was ahead, or it is behind")))
        return;
    s->ahead = false;
    s->looked = true;
    bound_newest(k, 0, latest_s);
}

static void remove_expired(struct keyring_state *s)
{
    bool removed = false;
    for (uint32_t i = 0; i < s->own_count; i++) {
        const struct signing_key_remove c = {.id = s->own[i].id,
                                             .kept_us = s->k->options.history_ns / NS_PER_US};
        if (s->own[i].state == SIGNING_KEY_RETIRING && now_us() >= s->own[i].expires_us)
            removed |= submit(&signing_key_remove_class, &c) == OK;
    }
    if (removed)
        load_keys(s);
}

/* ---- orders ---- */

static struct span issuer_of(const struct keyring *k, const struct order *o)
{
    return o->issuer_size ? span_of(o->issuer, o->issuer_size) : span_text(k->options.issuer);
}

static enum error put_revocation(struct keyring_state *s, const struct order *o, enum revocation_kind kind,
                                 struct span issuer, uint64_t cut_off_us, uint64_t expires_us)
{
    const struct revocation_put c = {.kind = (uint8_t)kind,
                                     .issuer = issuer,
                                     .value = span_of(o->value, o->value_size),
                                     .expires_us = expires_us,
                                     .cut_off_us = cut_off_us,
                                     .audit = uuid_v7(&s->ids),
                                     .who = span_of(o->who, o->who_size),
                                     .reason = span_of(o->reason, o->reason_size),
                                     .request_id = span_of(o->request, o->request_size)};
    return submit(&revocation_put_class, &c);
}

/* A subject's tokens of later than its cut-off, of a clock that was ahead: another key ends them, without waiting for the tick that would
 * look. Where the store makes none, they are ended in memory until it does, and the subject gets no others before the clock comes there. */
static enum error end_ahead(struct keyring_state *s, struct blocklist_id id, bool stored)
{
    uint64_t now_s = now_us() / 1000000, newest_s;
    if (stored)
        look_at_clock(s);
    newest_s = atomic_load(&s->k->newest_s);
    if (newest_s <= now_s + KEYRING_AHEAD_S)
        return OK;
    return blocklist_put(s->k->blocklist, id, newest_s, all_expired_s(newest_s * 1000000));
}

static struct blocklist_id id_of_subject(const struct keyring *k, struct span subject)
{
    return blocklist_id(k->blocklist, REVOCATION_SUBJECT, span_of(NULL, 0), subject);
}

/* In memory first: it counts at once, whatever the disk says. */
static enum error revoke_thing(struct keyring_state *s, const struct order *o)
{
    struct keyring *k = s->k;
    const struct span any = {NULL, 0};
    uint64_t now = now_us(), expires_s = all_expired_s(now);
    struct span issuer = o->kind == REVOCATION_TOKEN ? issuer_of(k, o) : any;
    if (o->kind == REVOCATION_TOKEN && o->expires_s && o->expires_s < expires_s)
        expires_s = o->expires_s + 1;
    if (expires_s <= now / 1000000 && expires_s <= over_for_good_s())
        return OK; /* it has expired by itself, whichever clock is right */
    if (expires_s <= now / 1000000)
        expires_s = all_expired_s(now);
    struct blocklist_id id =
        blocklist_id(k->blocklist, (enum revocation_kind)o->kind, issuer, span_of(o->value, o->value_size));
    uint64_t issued_s = keyring_cut_off_s(k);
    bool subject = o->kind == REVOCATION_SUBJECT;
    enum error e = blocklist_put(k->blocklist, id, subject ? issued_s : UINT64_MAX, expires_s);
    if (e)
        return e;
    e = put_revocation(s, o, (enum revocation_kind)o->kind, issuer, subject ? issued_s * 1000000 : 0,
                       expires_s * 1000000);
    enum error ended = subject ? end_ahead(s, id, e == OK) : OK;
    return e ? e : ended;
}

static void expect_end(struct keyring_state *s)
{
    s->ends_until = actor_now() + UNSURE_S * NS_PER_S;
}

/* The store has it: the command that ended the principal has put it there. None: nothing of this subject was revoked. */
static enum error stop_stored(struct keyring *k, struct span subject, uint64_t *ret_cut_off_s)
{
    struct revocation row;
    struct view *view = store_here() ? view_open(store_here()) : NULL;
    if (!view)
        return ERR_UNAVAILABLE;
    enum error e = revocation_read(&view->txn, REVOCATION_SUBJECT, span_of(NULL, 0), subject, &row);
    if (!e)
        e = load_revocation(k, &row);
    if (!e)
        *ret_cut_off_s = row.revoked_us / 1000000;
    view_close(view);
    return e == ERR_NOT_FOUND ? OK : e;
}

/* What can't be read now is read by the next ticks, whatever is answered. Somebody was issued a token of a later second (first_second)
 * while the command waited: it may be this subject's, and nobody has the new secret yet. */
static enum error stop_subject(struct keyring_state *s, const struct order *o)
{
    uint64_t cut_off_s = UINT64_MAX;
    enum error e = stop_stored(s->k, span_of(o->value, o->value_size), &cut_off_s);
    if (e || o->unsure)
        expect_end(s);
    else if (o->done && keyring_cut_off_s(s->k) > cut_off_s)
        e = revoke_thing(s, o);
    else if (o->done && cut_off_s < UINT64_MAX)
        e = end_ahead(s, id_of_subject(s->k, span_of(o->value, o->value_size)), true);
    return e;
}

static bool in_sets(struct keyring *k, struct span kid)
{
    const struct key_table *table = keyring_read_begin(k);
    bool found = false;
    for (uint32_t i = 0; i < table->count && k->issuers[1]; i++)
        found |= strcmp(table->entries[i].issuer, k->issuers[1]) == 0 &&
                 span_equal(span_text(jwt_key_kid(table->entries[i].key)), kid);
    keyring_read_end(k);
    return found;
}

/* One of a set: its owner may go on publishing it, so it stays revoked. */
static enum error revoke_foreign(struct keyring_state *s, const struct order *o)
{
    struct keyring *k = s->k;
    struct span kid = span_of(o->value, o->value_size);
    enum error e = stop_key(k, k->issuers[1], kid, UINT64_MAX);
    return e ? e : put_revocation(s, o, REVOCATION_KEY, span_text(k->issuers[1]), 0, 0);
}

/* One of ours. One that may have been written counts; a successor comes with it, or with the next look at the keys. */
static enum error revoke_own(struct keyring_state *s, const struct order *o, const struct uuid *id)
{
    const struct span who = span_of(o->who, o->who_size), reason = span_of(o->reason, o->reason_size),
                      request_id = span_of(o->request, o->request_size);
    const struct signing_key_revoke c = {.id = *id,
                                         .kept_us = s->k->options.history_ns / NS_PER_US,
                                         .audit = uuid_v7(&s->ids),
                                         .who = who,
                                         .reason = reason,
                                         .request_id = request_id};
    char kid[UUID_TEXT_SIZE], successor[UUID_TEXT_SIZE];
    enum error e = submit(&signing_key_revoke_class, &c), stopped = OK;
    uuid_format(id, kid); /* the form that tokens have */
    if (!e || unknown_end(e))
        stopped = stop_key(s->k, s->k->options.issuer, span_text(kid), all_expired_s(now_us()));
    enum error loaded = load_changed(s, e);
    if (e)
        return e;
    if (!stopped && !loaded && !active_of(s) && rotate(s, false, who, reason, request_id, successor))
        complain(s, MATTER_OWN, "error", "there is no active signing key, and none could be made", "");
    return stopped ? stopped : loaded;
}

static bool is_meant(const struct order *o, const char *issuer)
{
    return o->issuer_size == 0 ||
           (issuer && span_equal(span_of(o->issuer, o->issuer_size), span_text(issuer)));
}

/* Both may have this kid: a set's owner chooses those of its keys. */
static enum error revoke_key(struct keyring_state *s, const struct order *o)
{
    struct span kid = span_of(o->value, o->value_size);
    struct uuid id;
    bool foreign = is_meant(o, s->k->issuers[1]) && in_sets(s->k, kid);
    bool own = is_meant(o, s->k->options.issuer) && uuid_parse(kid.bytes, kid.size, &id);
    enum error theirs = foreign ? revoke_foreign(s, o) : ERR_NOT_FOUND;
    enum error ours = own ? revoke_own(s, o, &id) : ERR_NOT_FOUND;
    if (ours == ERR_NOT_FOUND || (ours == ERR_TRANSITION && foreign))
        return theirs;
    return ours ? ours : foreign ? theirs : OK;
}

static void obey(struct keyring_state *s, struct message *m)
{
    const struct order *o = message_body(m, sizeof(*o));
    struct order_answer answer = {.error = ERR_INVALID};
    if (o && o->verb == VERB_ROTATE)
        answer.error = rotate(s, o->first, span_of(o->who, o->who_size), span_of(o->reason, o->reason_size),
                              span_of(o->request, o->request_size), answer.kid);
    else if (o && o->verb == VERB_REVOKE_KEY)
        answer.error = revoke_key(s, o);
    else if (o && o->verb == VERB_REVOKE)
        answer.error = revoke_thing(s, o);
    else if (o && o->verb == VERB_EXPECT)
        expect_end(s);
    else if (o && o->verb == VERB_STOP)
        answer.error = stop_subject(s, o);
    actor_reply_bytes(m, KEYRING_ANSWER, &answer, sizeof(answer));
}

/* ---- sets: the file and the URL ---- */

/* What readers see; the next tick tries again what can't be done now. */
static void load_sets(struct keyring_state *s)
{
    if (load_keys(s))
        s->keys_loaded = false;
}

static enum set_end refresh_file(struct keyring_state *s)
{
    struct arena_mark mark = actor_arena_mark();
    char *text = actor_alloc(KEYRING_SET_BYTES_MAX);
    size_t size = 0;
    enum set_end end = SET_REFUSED;
    actor_guard_begin();
    bool read = key_set_read(s->k->options.jwks_file, text, &size, &s->modified);
    actor_guard_end();
    if (read)
        end = set_take(s, SET_FILE, text, size);
    else
        complain(s, MATTER_SET + SET_FILE, "warn",
                 "the file of keys can't be read, and what was in it is kept", s->k->options.jwks_file);
    actor_arena_reset(mark);
    return end;
}

/* What failed is tried again sooner than what went well is refreshed. */
static void fetch_again(struct keyring_state *s, uint64_t seconds)
{
    uint64_t again = actor_now() + seconds * NS_PER_S;
    s->refresh_at = again < s->refresh_at ? again : s->refresh_at;
}

static void unfetched(struct keyring_state *s, uint64_t seconds, const char *why)
{
    s->fetch_ref = 0;
    fetch_again(s, seconds);
    complain(s, MATTER_SET + SET_URL, "warn", "the key set can't be fetched, and the one before it is kept",
             why);
}

/* Whatever keeps it from coming: it isn't there, isn't answered, isn't one. */
static void look_at_age(struct keyring_state *s)
{
    uint64_t at = atomic_load(&s->k->set_at_ns);
    char why[64];
    if (!at || actor_now() - at <= s->k->options.revocation_ns) {
        settle(s, MATTER_AGE);
        return;
    }
    snprintf(why, sizeof(why), "it came %llu s ago", (unsigned long long)((actor_now() - at) / NS_PER_S));
    complain(s, MATTER_AGE, "error",
             "a key set doesn't come, and what was revoked is taken for longer than keys.revocation_sla",
             why);
}

static void refresh_url(struct keyring_state *s)
{
    const struct fetch_request request = {.method = "GET",
                                          .url = s->k->options.jwks_url,
                                          .headers = "Accept: application/json\n",
                                          .answer_max = KEYRING_SET_BYTES_MAX,
                                          .any_address = true};
    if (s->fetch_ref && actor_now() < s->fetch_until)
        return;
    s->fetch_until = actor_deadline_ms(KEYRING_FETCH_MS + KEYRING_TICK_MS);
    enum error e = fetch_begin(&request, &s->fetch_ref, actor_deadline_ms(KEYRING_FETCH_MS));
    if (e) /* at a start the actor that fetches may come a moment later */
        unfetched(s, e == ERR_NOPROC ? 1 : KEYRING_AGAIN_S, error_name(e));
}

/* A key that its issuer has withdrawn must not be taken for longer than that; an answer takes its time, too. */
static uint64_t refresh_ns(const struct keyring *k)
{
    uint64_t most = KEYRING_REFRESH_S * NS_PER_S, half = k->options.revocation_ns / 2;
    return half < most ? half : most;
}

static void refresh(struct keyring_state *s)
{
    struct keyring *k = s->k;
    uint64_t now = actor_now();
    bool wanted = atomic_load(&k->wanted) && now >= s->asked_at + KEYRING_AGAIN_S * NS_PER_S;
    if (!k->issuers[1] || (now < s->refresh_at && !wanted))
        return;
    atomic_store(&k->wanted, false);
    s->asked_at = now;
    s->refresh_at = now + refresh_ns(k);
    if (k->options.jwks_file && refresh_file(s) == SET_TAKEN)
        load_sets(s);
    if (k->options.jwks_url)
        refresh_url(s);
}

static void fetched(struct keyring_state *s, struct message *m)
{
    const struct fetch_answer *answer = (const void *)m->payload;
    if (m->size < sizeof(*answer) || answer->ref != s->fetch_ref || answer->size > m->size - sizeof(*answer))
        return;
    s->fetch_ref = 0;
    if (answer->error || answer->status != 200) {
        unfetched(s, KEYRING_AGAIN_S, answer->error ? answer->why : "its status isn't 200");
        return;
    }
    enum set_end end = set_take(s, SET_URL, (const char *)(answer + 1), answer->size);
    if (end == SET_TAKEN)
        load_sets(s);
    else if (end == SET_REFUSED)
        fetch_again(s, KEYRING_AGAIN_S);
}

/* ---- its life ---- */

static void tick(struct keyring_state *s)
{
    if (!s->keys_loaded || !s->revocations_loaded)
        load(s);
    else if (actor_now() < s->unsure_until)
        load_keys(s);
    if (actor_now() < s->ends_until && load_revocations(s) != OK)
        expect_end(s);
    if (s->keys_loaded && actor_now() >= s->attempt_at) {
        remove_expired(s);
        look_at_clock(s);
        look_after_own(s);
    }
    refresh(s);
    look_at_age(s);
    actor_guard_begin();
    keyring_reclaim(s->k);
    blocklist_forget(s->k->blocklist, over_for_good_s());
    actor_guard_end();
    actor_timer(actor_deadline_ms(KEYRING_TICK_MS), KEYRING_TICK, 0);
}

static enum actor_step keyring_init(void *state, const void *args, size_t args_size)
{
    struct keyring_state *s = state;
    ASSERT(args_size == sizeof(struct keyring_args));
    s->k = ((const struct keyring_args *)args)->keyring;
    uuid_source_init(&s->ids, s->k->options.env);
    return ACTOR_PROCEED;
}

/* Sets come first, so that the first table has what is in the file. */
static enum actor_step keyring_proceed(void *state)
{
    struct keyring_state *s = state;
    if (s->k->options.jwks_file)
        (void)refresh_file(s);
    tick(s);
    return ACTOR_CONTINUE;
}

static enum actor_step keyring_handle(void *state, struct message *m)
{
    struct keyring_state *s = state;
    switch (m->type) {
    case KEYRING_ORDER:
        obey(s, m);
        break;
    case KEYRING_TICK:
        tick(s);
        break;
    case FETCH_DONE:
        fetched(s, m);
        break;
    default:
        actor_unknown(m);
    }
    return ACTOR_CONTINUE;
}

const struct actor_class keyring_class = {
    .name = "keyring",
    .state_size = sizeof(struct keyring_state),
    .init = keyring_init,
    .proceed = keyring_proceed,
    .handle = keyring_handle,
    .stack_size = 256 * 1024,
};
