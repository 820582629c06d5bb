#include "http/idempotency.h"

#include "http/json_text.h"
#include "runtime/hash.h"
#include "store/ledger.h"
#include "store/store.h"

bool idempotency_key_good(struct span key)
{
    const char *at = key.bytes;
    bool good = key.size >= 1 && key.size <= LEDGER_KEY_MAX;
    for (uint32_t i = 0; good && i < key.size; i++)
        good = at[i] > ' ' && at[i] < 0x7f;
    return good;
}

bool idempotency_take_key(const struct request *q, struct response *r, struct span *ret_key)
{
    struct span key = q->known[HEADER_IDEMPOTENCY_KEY];
    const char *at = key.bytes;
    *ret_key = span_of("", 0);
    if (!at)
        return true;
    if (key.size >= 2 && at[0] == '"' && at[key.size - 1] == '"')
        key = span_of(++at, key.size - 2);
    if (!idempotency_key_good(key)) {
        response_error(r, ERROR_RFA_REQUEST_MALFORMED,
                       "Idempotency-Key must have 1 to %u visible ASCII characters", LEDGER_KEY_MAX);
        return false;
    }
    *ret_key = key;
    return true;
}

/* ---- digests ---- */

struct reading {
    const struct json_text *json;
    struct hash_key key;
    const struct json_node *except; /* a member's name, or NULL */
};

static uint64_t value_hash(const struct reading *r, const struct json_node *node);

/* Members count in any order. */
static uint64_t object_hash(const struct reading *r, const struct json_node *node)
{
    uint64_t sum = 0;
    for (const struct json_node *name = json_first(r->json, node); name;
         name = json_after(r->json, node, name)) {
        if (name == r->except)
            continue;
        uint64_t pair[2] = {value_hash(r, name), value_hash(r, json_value_of(name))};
        sum += hash_sip24(&r->key, pair, sizeof(pair));
    }
    return sum;
}

static uint64_t value_hash(const struct reading *r, const struct json_node *node)
{
    struct hash_sip sip;
    struct span text = json_raw_of(r->json, node);
    uint64_t part;
    hash_sip_start(&sip, &r->key);
    hash_sip_add(&sip, &node->kind, sizeof(node->kind));
    switch ((enum json_kind)node->kind) {
    case JSON_OBJECT:
        part = object_hash(r, node);
        hash_sip_add(&sip, &part, sizeof(part));
        break;
    case JSON_ARRAY:
        for (const struct json_node *each = json_first(r->json, node); each;
             each = json_after(r->json, node, each)) {
            part = value_hash(r, each);
            hash_sip_add(&sip, &part, sizeof(part));
        }
        break;
    case JSON_STRING:
        if (node->flags & JSON_ESCAPED)
            (void)json_string_of(r->json, node, actor_alloc(node->length), node->length, &text);
        else
            (void)json_string_of(r->json, node, NULL, 0, &text);
        hash_sip_add(&sip, text.bytes, text.size);
        break;
    default:
        hash_sip_add(&sip, text.bytes, text.size);
    }
    return hash_sip_end(&sip);
}

struct digest idempotency_digest(const struct request *q, const char *except)
{
    struct json_node node = {.length = 2, .next = 1, .kind = JSON_OBJECT};
    const struct json_text empty = {.text = {"{}", 2}, .nodes = &node, .nodes_max = 1, .count = 1};
    struct reading r = {.json = q->json ? q->json : &empty};
    const struct json_node *root = json_root(r.json), *value;
    struct digest digest;
    value = except && root->kind == JSON_OBJECT ? json_member(r.json, root, except) : NULL;
    r.except = value ? value - 1 : NULL;
    for (uint64_t i = 0; i < sizeof(digest.bytes) / sizeof(uint64_t); i++) {
        memcpy(&r.key, store_here()->secret, sizeof(r.key));
        r.key.k0 ^= i + 1; /* the words differ by their keys */
        uint64_t word = value_hash(&r, root);
        memcpy(digest.bytes + i * sizeof(word), &word, sizeof(word));
    }
    return digest;
}
