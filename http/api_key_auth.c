#include "http/api_key_auth.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "runtime/runtime.h"
#include "store/sha256.h"
#include "store/view.h"

/* ---- the form ---- */

enum { PREFIX = 4, DIGITS = 43, CHECK = 6, CHUNK = 10 /* digits: 62^10 < 2^60 */ };

static const char alphabet[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/* One more than its value; 0: not a digit. */
static const uint8_t digits_of[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
    ['G'] = 17, ['H'] = 18, ['I'] = 19, ['J'] = 20, ['K'] = 21, ['L'] = 22, ['M'] = 23, ['N'] = 24,
    ['O'] = 25, ['P'] = 26, ['Q'] = 27, ['R'] = 28, ['S'] = 29, ['T'] = 30, ['U'] = 31, ['V'] = 32,
    ['W'] = 33, ['X'] = 34, ['Y'] = 35, ['Z'] = 36, ['a'] = 37, ['b'] = 38, ['c'] = 39, ['d'] = 40,
    ['e'] = 41, ['f'] = 42, ['g'] = 43, ['h'] = 44, ['i'] = 45, ['j'] = 46, ['k'] = 47, ['l'] = 48,
    ['m'] = 49, ['n'] = 50, ['o'] = 51, ['p'] = 52, ['q'] = 53, ['r'] = 54, ['s'] = 55, ['t'] = 56,
    ['u'] = 57, ['v'] = 58, ['w'] = 59, ['x'] = 60, ['y'] = 61, ['z'] = 62,
};

static uint32_t crc32_of(const char *bytes, size_t size)
{
    static const uint32_t nibbles[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
        0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < size; i++) {
        crc ^= (uint8_t)bytes[i];
        crc = crc >> 4 ^ nibbles[crc & 15];
        crc = crc >> 4 ^ nibbles[crc & 15];
    }
    return ~crc;
}

static void write_check(const char *text, char check[CHECK])
{
    uint32_t crc = crc32_of(text, PREFIX + DIGITS);
    for (int i = CHECK; i-- > 0; crc /= 62)
        check[i] = alphabet[crc % 62];
}

void api_key_write(const uint8_t secret[API_KEY_SECRET_SIZE], char ret_text[API_KEY_TEXT_SIZE])
{
    uint8_t number[API_KEY_SECRET_SIZE];
    memcpy(number, secret, sizeof(number));
    memcpy(ret_text, API_KEY_PREFIX, PREFIX);
    for (int i = DIGITS; i-- > 0;) {
        unsigned rest = 0;
        for (size_t k = 0; k < sizeof(number); k++) {
            unsigned part = rest << 8 | number[k];
            number[k] = (uint8_t)(part / 62);
            rest = part % 62;
        }
        ret_text[PREFIX + i] = alphabet[rest];
    }
    write_check(ret_text, ret_text + PREFIX + DIGITS);
    ret_text[API_KEY_TEXT_LENGTH] = 0;
    explicit_bzero(number, sizeof(number));
}

/* number = number * factor + add; false: that is more than 256 bits. */
static bool push(uint64_t number[4], uint64_t factor, uint64_t add)
{
    for (int i = 0; i < 4; i++) {
        __extension__ unsigned __int128 part = (unsigned __int128)number[i] * factor + add;
        number[i] = (uint64_t)part;
        add = (uint64_t)(part >> 64);
    }
    return add == 0;
}

/* *seen: the high bit is set once one was no digit. */
static inline uint64_t chunk_of(const char *digits, int count, uint8_t *seen)
{
    uint64_t chunk = 0;
    for (int i = 0; i < count; i++) {
        uint8_t digit = (uint8_t)(digits_of[(uint8_t)digits[i]] - 1);
        *seen |= digit;
        chunk = chunk * 62 + digit;
    }
    return chunk;
}

static bool read_digits(const char *digits, uint64_t number[4])
{
    STATIC_ASSERT(DIGITS == 4 * CHUNK + 3 && CHUNK == 10, "as it is taken apart here");
    uint8_t seen = 0;
    bool fits = true;
    for (int at = 0; at < 4 * CHUNK; at += CHUNK)
        fits &= push(number, UINT64_C(839299365868340224), chunk_of(digits + at, CHUNK, &seen)); /* 62^10 */
    fits &= push(number, UINT64_C(62) * 62 * 62, chunk_of(digits + 4 * CHUNK, 3, &seen));
    return fits && !(seen & 0x80);
}

/* All but the checksum. */
static bool read_secret(struct span text, uint8_t ret_secret[API_KEY_SECRET_SIZE])
{
    const char *at = text.bytes;
    uint64_t number[4] = {0};
    if (text.size != API_KEY_TEXT_LENGTH || memcmp(at, API_KEY_PREFIX, PREFIX) != 0 ||
        !read_digits(at + PREFIX, number))
        return false;
    for (int i = 0; i < 4; i++) {
        uint64_t big = __builtin_bswap64(number[3 - i]);
        memcpy(ret_secret + (size_t)i * sizeof(big), &big, sizeof(big));
    }
    return true;
}

static bool check_fits(struct span text)
{
    char check[CHECK];
    write_check(text.bytes, check);
    return memcmp((const char *)text.bytes + PREFIX + DIGITS, check, CHECK) == 0;
}

bool api_key_parse(struct span text, uint8_t ret_secret[API_KEY_SECRET_SIZE])
{
    return read_secret(text, ret_secret) && check_fits(text);
}

/* ---- the table of verified keys ---- */

/* `change` is odd while somebody writes, and grows with every change: who wants to put in what the store said must find it
 * as it was before that look. */
struct slot {
    _Atomic uint64_t change;
    _Atomic uint64_t until_ns;   /* believed until then; 0: empty */
    _Atomic uint64_t expires_us; /* of the key */
    _Atomic uint64_t check;      /* the text's last six characters, which then needn't be computed again */
    _Atomic uint64_t hash[4], client[2], key[2];
} __attribute__((aligned(128)));
STATIC_ASSERT(sizeof(struct slot) == 128, "a slot is two cache lines");

struct entry {
    uint64_t expires_us, check;
    struct uuid client, key;
};

#define SLOTS_SIZE (API_KEY_SLOTS * sizeof(struct slot))
static struct slot *slots;

bool api_keys_start(void)
{
    ASSERT(!slots);
    /* Its pages are there when a key comes that needs them. */
    void *memory = mmap(NULL, SLOTS_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    slots = memory == MAP_FAILED ? NULL : memory;
    return slots != NULL;
}

void api_keys_stop(void)
{
    if (slots)
        munmap((void *)slots, SLOTS_SIZE);
    slots = NULL;
}

static struct slot *slot_of(const struct digest *hash)
{
    uint64_t word;
    memcpy(&word, hash->bytes, sizeof(word));
    return &slots[word % API_KEY_SLOTS];
}

static void load_words(const _Atomic uint64_t *from, void *to, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t word = atomic_load_explicit(&from[i], memory_order_acquire);
        memcpy((uint8_t *)to + i * sizeof(word), &word, sizeof(word));
    }
}

static void store_words(_Atomic uint64_t *to, const void *from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t word;
        memcpy(&word, (const uint8_t *)from + i * sizeof(word), sizeof(word));
        atomic_store_explicit(&to[i], word, memory_order_release);
    }
}

static bool same_hash(const struct digest *a, const struct digest *b)
{
    uint8_t differ = 0;
    for (size_t i = 0; i < sizeof(a->bytes); i++)
        differ |= a->bytes[i] ^ b->bytes[i];
    return differ == 0;
}

/* False: not there, or somebody is writing just now. *ret_change: for slot_put. */
static bool slot_find(struct slot *slot, const struct digest *hash, struct entry *ret, uint64_t *ret_change)
{
    struct digest there;
    struct entry entry;
    uint64_t change = atomic_load_explicit(&slot->change, memory_order_acquire), until_ns;
    *ret_change = change;
    load_words(&slot->until_ns, &until_ns, 1);
    if (until_ns <= actor_now() || change & 1)
        return false;
    load_words(slot->hash, &there, 4);
    load_words(slot->client, &entry.client, 2);
    load_words(slot->key, &entry.key, 2);
    load_words(&slot->expires_us, &entry.expires_us, 1);
    load_words(&slot->check, &entry.check, 1);
    if (atomic_load_explicit(&slot->change, memory_order_relaxed) != change || !same_hash(&there, hash))
        return false;
    *ret = entry;
    return true;
}

/* Guarded: a writer that was switched out would make others wait. */
static void slot_put(struct slot *slot, const struct digest *hash, const struct entry *entry, uint64_t change)
{
    uint64_t until_ns = actor_now() + API_KEY_BELIEVED_NS;
    if (change & 1)
        return;
    actor_guard_begin();
    if (atomic_compare_exchange_strong(&slot->change, &change, change + 1)) {
        store_words(slot->hash, hash, 4);
        store_words(slot->client, &entry->client, 2);
        store_words(slot->key, &entry->key, 2);
        store_words(&slot->expires_us, &entry->expires_us, 1);
        store_words(&slot->check, &entry->check, 1);
        store_words(&slot->until_ns, &until_ns, 1);
        atomic_store_explicit(&slot->change, change + 2, memory_order_release);
    }
    actor_guard_end();
}

/* Whoever else has this place is forgotten as well, and found again at its next request. */
void api_key_forget(const struct digest *hash)
{
    struct slot *slot = slot_of(hash);
    uint64_t change, empty = 0;
    actor_guard_begin();
    do /* a writer is done within a few instructions: it can't be switched out either */
        change = atomic_load_explicit(&slot->change, memory_order_relaxed) & ~UINT64_C(1);
    while (!atomic_compare_exchange_weak(&slot->change, &change, change + 1));
    store_words(&slot->until_ns, &empty, 1);
    atomic_store_explicit(&slot->change, change + 2, memory_order_release);
    actor_guard_end();
}

/* ---- last use ---- */

#define API_KEY_USED 0x00ad0001u
#define FLUSH        0x00ad0002u
enum { FLUSH_AFTER_MS = 10000 };

struct use {
    struct uuid key;
    uint64_t at_us;
};
STATIC_ASSERT(sizeof(struct use) == API_KEY_TOUCH_SIZE, "as the command has them");

struct use_list {
    uint32_t count;
    struct use list[API_KEY_TOUCHED_MAX]; /* each key once */
};

/* More than fit are dropped, and come again. `written`: what went to the store last, because whoever looked before that
 * commit may still come. */
struct uses {
    struct use_list waiting, written;
};

static struct use *use_in(struct use_list *uses, const struct uuid *key)
{
    for (uint32_t i = 0; i < uses->count; i++)
        if (uuid_equal(&uses->list[i].key, key))
            return &uses->list[i];
    return NULL;
}

/* One that was noted while the clock was ahead says nothing about now. */
static bool just_noted(uint64_t noted_us, uint64_t now_us)
{
    return noted_us <= now_us && now_us - noted_us < API_KEY_USE_US;
}

/* The store says when it was written down last; so each key comes here about once a minute, however often it is used. */
static void tell_use(const struct api_key *key, uint64_t now_us)
{
    struct use use = {.key = key->id, .at_us = now_us};
    if (just_noted(key->used_us, now_us))
        return;
    actor_pid to = actor_whereis(API_KEY_USES_NAME);
    if (to)
        (void)actor_cast(to, API_KEY_USED, &use, sizeof(use));
}

static void add_use(struct uses *uses, const struct use *use)
{
    struct use *written = use_in(&uses->written, &use->key), *waiting = use_in(&uses->waiting, &use->key);
    if (written && just_noted(written->at_us, use->at_us))
        return;
    if (waiting) {
        waiting->at_us = use->at_us;
        return;
    }
    if (uses->waiting.count == 0)
        actor_timer(actor_deadline_ms(FLUSH_AFTER_MS), FLUSH, 0);
    if (uses->waiting.count < API_KEY_TOUCHED_MAX)
        uses->waiting.list[uses->waiting.count++] = *use;
}

/* Written or not: if not, the next use will say. */
static void flush_uses(struct uses *uses)
{
    uses->written = uses->waiting;
    uses->waiting.count = 0;
    struct api_key_touch c = {.uses = span_of(uses->written.list, uses->written.count * sizeof(struct use))};
    if (uses->written.count > 0 &&
        store_submit(&api_key_touch_class, &c, NULL, 0, NULL, actor_deadline_ms(ACTOR_CALL_DEFAULT_MS)) != OK)
        uses->written.count = 0;
}

static enum actor_step handle_uses(void *state, struct message *m)
{
    struct uses *uses = state;
    struct use *use;
    switch (m->type) {
    case API_KEY_USED:
        use = message_body(m, sizeof(*use));
        if (use)
            add_use(uses, use);
        break;
    case FLUSH:
        flush_uses(uses);
        break;
    default:
        actor_unknown(m);
    }
    return ACTOR_CONTINUE;
}

const struct actor_class api_key_uses_class = {.name = "api_keys",
                                               .state_size = sizeof(struct uses),
                                               .handle = handle_uses,
                                               .mailbox_policy = MAILBOX_DROP_OLDEST};

/* ---- verifying ---- */

struct digest api_key_hash(const uint8_t secret[API_KEY_SECRET_SIZE])
{
    const struct store *store = store_here();
    uint8_t salted[sizeof(store->secret) + API_KEY_SECRET_SIZE];
    struct digest hash;
    ASSERT(store);
    memcpy(salted, store->secret, sizeof(store->secret));
    memcpy(salted + sizeof(store->secret), secret, API_KEY_SECRET_SIZE);
    sha256_of(salted, sizeof(salted), hash.bytes);
    explicit_bzero(salted, sizeof(salted));
    return hash;
}

static enum error_code fill(const struct entry *entry, uint64_t now_us, struct identity *who)
{
    who->client = entry->client;
    who->key = entry->key;
    if (entry->expires_us <= now_us)
        return ERROR_RFA_AUTH_TOKEN_EXPIRED;
    char *text = actor_alloc(UUID_TEXT_SIZE);
    uuid_format(&entry->client, text);
    who->subject = span_of(text, UUID_TEXT_SIZE - 1);
    who->expires_s = entry->expires_us / 1000000;
    who->kind = IDENTITY_CLIENT;
    return ERROR_NONE;
}

static uint64_t check_of(struct span text)
{
    uint64_t check = 0;
    memcpy(&check, (const char *)text.bytes + PREFIX + DIGITS, CHECK);
    return check;
}

static enum error_code look_up(struct slot *slot, const struct digest *hash, struct span text,
                               uint64_t change, struct identity *who)
{
    struct api_key key;
    struct view *view = view_open(store_here());
    if (!view)
        return ERROR_RFA_STORAGE_UNAVAILABLE;
    enum error e = api_key_find(&view->txn, hash, &key);
    view_close(view); /* of key only what isn't a span from here on */
    if (e)
        return e == ERR_NOT_FOUND ? ERROR_RFA_AUTH_INVALID_CREDENTIALS : ERROR_RFA_STORAGE_DB_ERROR;
    const struct entry entry = {
        .expires_us = key.expires_us, .check = check_of(text), .client = key.client, .key = key.id};
    uint64_t now_us = store_time_us();
    if (key.ended_us != 0) {
        who->client = key.client;
        who->key = key.id;
        return ERROR_RFA_AUTH_API_KEY_DISABLED;
    }
    enum error_code code = fill(&entry, now_us, who);
    if (code == ERROR_NONE) {
        slot_put(slot, hash, &entry, change);
        tell_use(&key, now_us);
    }
    return code;
}

enum error_code api_key_still(const struct identity *who)
{
    static const struct uuid nobody = {{0}};
    struct api_key key;
    if (who->kind != IDENTITY_CLIENT || uuid_equal(&who->key, &nobody))
        return ERROR_NONE;
    struct view *view = view_open(store_here());
    if (!view)
        return ERROR_RFA_STORAGE_UNAVAILABLE;
    enum error e = api_key_read(&view->txn, &who->key, &key);
    view_close(view);
    if (e)
        return e == ERR_NOT_FOUND ? ERROR_RFA_AUTH_INVALID_CREDENTIALS : ERROR_RFA_STORAGE_DB_ERROR;
    if (key.ended_us != 0)
        return ERROR_RFA_AUTH_API_KEY_DISABLED;
    return key.expires_us > store_time_us() ? ERROR_NONE : ERROR_RFA_AUTH_TOKEN_EXPIRED;
}

enum error_code api_key_verify(struct span key, struct identity *ret_who)
{
    static const struct span nothing = {NULL, 0};
    uint8_t secret[API_KEY_SECRET_SIZE];
    struct entry entry;
    uint64_t change;
    ret_who->kind = IDENTITY_NONE;
    ret_who->role = (enum role)0;
    ret_who->subject = ret_who->session = ret_who->jti = ret_who->issuer = nothing;
    ret_who->client = ret_who->key = (struct uuid){{0}};
    ret_who->all_projects = false;
    ret_who->projects_count = 0;
    if (!read_secret(key, secret))
        return ERROR_RFA_AUTH_INVALID_CREDENTIALS;
    struct digest hash = api_key_hash(secret);
    explicit_bzero(secret, sizeof(secret));
    struct slot *slot = slot_of(&hash);
    if (slot_find(slot, &hash, &entry, &change) && entry.check == check_of(key))
        return fill(&entry, store_time_us(), ret_who);
    return check_fits(key) ? look_up(slot, &hash, key, change, ret_who) : ERROR_RFA_AUTH_INVALID_CREDENTIALS;
}
