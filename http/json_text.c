/* How a text is read: one loop that knows which container it is in. A value is scanned to its end; behind it comes a comma
 * or the end of the container. The open containers are a stack of node positions of JSON_TEXT_DEPTH_MAX.
 *
 * Strings are where the bytes are, so they are looked at eight or sixteen at a time: of these, `special` marks the bytes that
 * need a closer look (quote, backslash, control, beyond ASCII). Names that are there twice are looked for when their object ends:
 * then there is one table at a time, and it needs no more than a few KiB of stack. Most objects needn't be looked at, because each
 * of their names has left another bit (name_bit) of a word.
 */
#include "http/json_text.h"

#include <math.h>
#include <stdlib.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "runtime/hash.h"
#include "runtime/json.h"

STATIC_ASSERT(sizeof(struct json_node) == 16, "a node takes 16 bytes");
STATIC_ASSERT(JSON_TEXT_NUMBER_MAX < 309, "a number without exponent is finite");
STATIC_ASSERT(JSON_TEXT_NODES_MAX <= 1u << 16, "positions of nodes fit into the slots of the tables");

enum {
    SLOTS_MAX = 2048,
    FEW_MEMBERS = 8 /* up to here each name is compared with each: cheaper than hashing */
};
STATIC_ASSERT(JSON_TEXT_MEMBERS_MAX * 2 <= SLOTS_MAX && JSON_TEXT_ELEMENTS_MAX * 2 <= SLOTS_MAX,
              "half of the slots stay free");

/* What the library's ctype would ask a locale. */
static inline bool is_digit(uint8_t c)
{
    return (uint8_t)(c - '0') < 10;
}

/* ---- strings ---- */

/* A byte's high bit is set when the byte is '"', '\\', below 0x20 or above 0x7f. A borrow can mark a byte wrongly, but only
 * one behind a byte that is marked rightly, and only the first one counts. */
static inline uint64_t special(uint64_t word)
{
    const uint64_t ones = 0x0101010101010101u, highs = ones << 7;
    uint64_t quote = word ^ ones * '"', backslash = word ^ ones * '\\';
    return ((quote - ones) | (backslash - ones) | (word - ones * 0x20) | word) & highs;
}

#ifdef __SSE2__
/* The same of sixteen bytes, exactly, a bit for each. As signed bytes those beyond ASCII are below 0x20, too. */
static inline unsigned special16(const uint8_t *p)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i ends =
        _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')), _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\')));
    return (unsigned)_mm_movemask_epi8(_mm_or_si128(ends, _mm_cmplt_epi8(bytes, _mm_set1_epi8(0x20))));
}
#endif

static int hex_digit(uint8_t c)
{
    uint8_t letter = c | 0x20;
    return is_digit(c) ? c - '0' : letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/* The four digits behind \u, or -1. */
static int32_t hex_four(const uint8_t *p, const uint8_t *end)
{
    int32_t code = 0;
    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(p[i]);
        if (digit < 0)
            return -1;
        code = code << 4 | digit;
    }
    return code;
}

/* How many bytes the escape at `p` (a backslash) has; 0: *ret_why says what is wrong with it. */
static size_t escape_size(const uint8_t *p, const uint8_t *end, const char **ret_why)
{
    int32_t code, low;
    *ret_why = "this is no escape";
    if (end - p < 2)
        return 0;
    if (p[1] != 'u')
        return memchr("\"\\/bfnrt", p[1], 8) ? 2 : 0;
    code = hex_four(p + 2, end);
    if (code < 0)
        return 0;
    if (code == 0) {
        *ret_why = "an escaped NUL";
        return 0;
    }
    if (code < 0xd800 || code > 0xdfff)
        return 6;
    *ret_why = "half of a surrogate pair";
    if (code >= 0xdc00 || end - p < 12 || p[6] != '\\' || p[7] != 'u')
        return 0;
    low = hex_four(p + 8, end);
    return low >= 0xdc00 && low <= 0xdfff ? 12 : 0;
}

/* Writes the character that the escape at `p` means, which was found sound; moves both on. */
static void escape_take(const uint8_t **p, char **to)
{
    static const char plain[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const uint8_t *at = *p;
    char *out = *to;
    uint32_t code;
    if (at[1] != 'u') {
        *out = meant[strchr(plain, at[1]) - plain];
        *p += 2;
        *to += 1;
        return;
    }
    code = (uint32_t)hex_four(at + 2, at + 6);
    *p += 6;
    if (code >= 0xd800 && code <= 0xdfff) {
        code = 0x10000 + ((code - 0xd800) << 10) + (uint32_t)(hex_four(at + 8, at + 12) - 0xdc00);
        *p += 6;
    }
    if (code < 0x80) {
        *out++ = (char)code;
    } else if (code < 0x800) {
        *out++ = (char)(0xc0 | code >> 6);
        *out++ = (char)(0x80 | (code & 0x3f));
    } else {
        if (code < 0x10000) {
            *out++ = (char)(0xe0 | code >> 12);
        } else {
            *out++ = (char)(0xf0 | code >> 18);
            *out++ = (char)(0x80 | (code >> 12 & 0x3f));
        }
        *out++ = (char)(0x80 | (code >> 6 & 0x3f));
        *out++ = (char)(0x80 | (code & 0x3f));
    }
    *to = out;
}

/* string_end, of what holds more than plain bytes or ends soon. */
static const uint8_t *string_end_slowly(const uint8_t *p, const uint8_t *end, uint8_t *ret_flags,
                                        const uint8_t **ret_bad, const char **ret_why)
{
    for (;;) {
        size_t size;
        uint64_t marks = 0;
        while (end - p >= 8 && !(marks = special(hash_load64(p))))
            p += 8;
        if (marks)
            p += __builtin_ctzll(marks) >> 3;
        else
            while (p < end && *p >= 0x20 && *p < 0x80 && *p != '"' && *p != '\\')
                p++;
        *ret_bad = p;
        *ret_why = "the string does not end";
        if (p == end)
            return NULL;
        if (*p == '"')
            return p;
        if (*p == '\\') {
            *ret_flags = JSON_ESCAPED;
            size = escape_size(p, end, ret_why);
        } else if (*p < 0x20) {
            *ret_why = "a control character in a string";
            return NULL;
        } else {
            size = json_utf8_sequence(p, (size_t)(end - p));
            *ret_why = "this is not UTF-8";
        }
        if (!size)
            return NULL;
        p += size;
    }
}

/* From behind the opening quote to the closing one. NULL: *ret_bad is where, *ret_why what. */
static inline const uint8_t *string_end(const uint8_t *p, const uint8_t *end, uint8_t *ret_flags,
                                        const uint8_t **ret_bad, const char **ret_why)
{
#ifdef __SSE2__
    unsigned marks = 0;
    while (end - p >= 16 && !(marks = special16(p)))
        p += 16;
    if (marks && *(p += __builtin_ctz(marks)) == '"')
        return p;
#else
    uint64_t marks = 0;
    while (end - p >= 8 && !(marks = special(hash_load64(p))))
        p += 8;
    if (marks && *(p += __builtin_ctzll(marks) >> 3) == '"')
        return p;
#endif
    return string_end_slowly(p, end, ret_flags, ret_bad, ret_why);
}

/* What stands between the quotes. */
static inline struct span inner_of(const struct json_text *json, const struct json_node *node)
{
    const char *at = (const char *)json->text.bytes + node->at;
    return node->flags & JSON_BARE ? span_of(at, node->length) : span_of(at + 1, node->length - 2);
}

bool json_string_of(const struct json_text *json, const struct json_node *node, char *room, size_t size,
                    struct span *ret_text)
{
    struct span inner = inner_of(json, node);
    const uint8_t *p = inner.bytes, *end;
    char *to, *room_end;
    if (!(node->flags & JSON_ESCAPED)) {
        *ret_text = inner;
        return true;
    }
    end = p + inner.size;
    to = room;
    room_end = room + size;
    while (p < end) {
        const uint8_t *next = memchr(p, '\\', (size_t)(end - p));
        size_t plain = (size_t)((next ? next : end) - p);
        if (plain > (size_t)(room_end - to))
            return false;
        memcpy(to, p, plain);
        p += plain;
        to += plain;
        if (p < end) {
            char character[4], *behind = character;
            escape_take(&p, &behind);
            if (behind - character > room_end - to)
                return false;
            memcpy(to, character, (size_t)(behind - character));
            to += behind - character;
        }
    }
    *ret_text = span_of(room, (size_t)(to - room));
    return true;
}

uint32_t json_string_characters(const struct json_text *json, const struct json_node *node)
{
    struct span inner = inner_of(json, node);
    const uint8_t *p = inner.bytes, *end = p + inner.size;
    uint32_t count = 0;
    if (node->flags & JSON_ESCAPED)
        while (p < end) {
            char character[4], *behind = character;
            if (*p == '\\')
                escape_take(&p, &behind);
            else
                do
                    p++;
                while (p < end && (*p & 0xc0) == 0x80);
            count++;
        }
    else
        for (; p < end; p++)
            count += (*p & 0xc0) != 0x80;
    return count;
}

/* Whether two strings are the same without their escapes: character by character when one has any. */
static bool string_same_slowly(struct span a, bool a_escaped, struct span b, bool b_escaped)
{
    const uint8_t *p = a.bytes, *p_end = p + a.size, *q = b.bytes, *q_end = q + b.size;
    char left[4], right[4];
    const char *l = left, *r = right;
    char *l_end = left, *r_end = right;
    for (;;) {
        if (l == l_end && p < p_end) {
            l = l_end = left;
            if (a_escaped && *p == '\\')
                escape_take(&p, &l_end);
            else
                *l_end++ = (char)*p++;
        }
        if (r == r_end && q < q_end) {
            r = r_end = right;
            if (b_escaped && *q == '\\')
                escape_take(&q, &r_end);
            else
                *r_end++ = (char)*q++;
        }
        if (l == l_end || r == r_end)
            return l == l_end && r == r_end;
        if (*l++ != *r++)
            return false;
    }
}

static inline bool string_same(const struct json_text *a, const struct json_node *x,
                               const struct json_text *b, const struct json_node *y)
{
    struct span left = inner_of(a, x), right = inner_of(b, y);
    if (!((x->flags | y->flags) & JSON_ESCAPED))
        return span_equal(left, right);
    return string_same_slowly(left, x->flags & JSON_ESCAPED, right, y->flags & JSON_ESCAPED);
}

/* ---- numbers ---- */

/* From a minus or digit to behind the number. NULL: as for strings. */
static inline const uint8_t *number_end(const uint8_t *p, const uint8_t *end, uint8_t *ret_flags,
                                        const uint8_t **ret_bad, const char **ret_why)
{
    *ret_flags = JSON_INTEGER;
    *ret_why = "this is no number";
    if (*p == '-')
        p++;
    if (p < end && *p == '0')
        p++;
    else if (p < end && is_digit(*p))
        while (p < end && is_digit(*p))
            p++;
    else
        goto bad;
    if (p < end && *p == '.') {
        *ret_flags = 0;
        p++;
        if (p == end || !is_digit(*p))
            goto bad;
        while (p < end && is_digit(*p))
            p++;
    }
    if (p < end && (*p | 0x20) == 'e') {
        *ret_flags = JSON_POWER;
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        if (p == end || !is_digit(*p))
            goto bad;
        while (p < end && is_digit(*p))
            p++;
    }
    return p;
bad:
    *ret_bad = p;
    return NULL;
}

/* A number's value: sign, significant digits (no zeros at either end), and the power of ten of the first digit's place:
 * 0.d1d2d3... * 10^point. Zero has no digits and no sign. The digits stand in the text, perhaps with the point among them. */
struct decimal {
    const uint8_t *digits, *end;
    int32_t count; /* of digits, without the point */
    int32_t point;
    bool negative;
};

static struct decimal decimal_of(const struct json_text *json, const struct json_node *node)
{
    struct span text = json_raw_of(json, node);
    const uint8_t *p = text.bytes, *end = p + text.size, *mantissa_end, *dot = NULL, *q;
    struct decimal d = {.negative = *p == '-'};
    int32_t exponent = 0; /* of JSON_TEXT_EXPONENT_MAX digits */
    p += d.negative;
    for (q = p; q < end && (*q | 0x20) != 'e'; q++)
        if (*q == '.')
            dot = q;
    mantissa_end = q;
    if (q < end) {
        bool below = *++q == '-';
        q += *q == '-' || *q == '+';
        for (; q < end; q++)
            exponent = exponent * 10 + (*q - '0');
        exponent = below ? -exponent : exponent;
    }
    if (!dot)
        dot = mantissa_end;
    while (p < mantissa_end && (*p == '0' || *p == '.'))
        p++;
    while (mantissa_end > p && (mantissa_end[-1] == '0' || mantissa_end[-1] == '.'))
        mantissa_end--;
    if (p == mantissa_end)
        return (struct decimal){.digits = p, .end = p};
    d.digits = p;
    d.end = mantissa_end;
    d.count = (int32_t)(mantissa_end - p) - (p < dot && dot < mantissa_end);
    d.point = exponent + (int32_t)(dot - p) + (p > dot);
    return d;
}

/* The next digit, or -1 behind the last. */
static int decimal_digit(struct decimal *d)
{
    if (d->digits < d->end && *d->digits == '.')
        d->digits++;
    return d->digits < d->end ? *d->digits++ - '0' : -1;
}

static int decimal_compare(struct decimal a, struct decimal b)
{
    int below = a.negative ? 1 : -1; /* the answer when a is nearer to zero than b */
    if (a.negative != b.negative)
        return below < 0 ? 1 : -1;
    if (!a.count || !b.count)
        return a.count == b.count ? 0 : a.count ? -below : below;
    if (a.point != b.point)
        return a.point < b.point ? below : -below;
    for (;;) {
        int x = decimal_digit(&a), y = decimal_digit(&b);
        if (x != y)
            return x < y ? below : -below;
        if (x < 0)
            return 0;
    }
}

int json_number_compare(const struct json_text *a, const struct json_node *x, const struct json_text *b,
                        const struct json_node *y)
{
    return decimal_compare(decimal_of(a, x), decimal_of(b, y));
}

bool json_integral(const struct json_text *json, const struct json_node *node)
{
    struct decimal d;
    if (node->kind != JSON_NUMBER)
        return false;
    if (node->flags & JSON_INTEGER)
        return true;
    d = decimal_of(json, node);
    return d.point >= d.count;
}

/* Most numbers are short. What stands before the point, and whether there is anything but zeros behind it. False: this one is long,
 * or has an exponent. */
static inline bool short_of(const struct json_text *json, const struct json_node *node, uint64_t *ret_whole,
                            bool *ret_more, bool *ret_negative)
{
    enum { SHORT = 19 }; /* of as many digits each is below 2^64 */
    const uint8_t *p = (const uint8_t *)json->text.bytes + node->at, *end = p + node->length;
    uint64_t whole = 0;
    if (node->flags & JSON_POWER || node->length > SHORT)
        return false;
    *ret_negative = *p == '-';
    p += *ret_negative;
    while (p < end && *p != '.')
        whole = whole * 10 + (uint64_t)(*p++ - '0');
    while (p < end && (*p == '.' || *p == '0'))
        p++;
    *ret_whole = whole;
    *ret_more = p < end;
    *ret_negative &= whole || *ret_more; /* zero has no sign */
    return true;
}

bool json_floor_of(const struct json_text *json, const struct json_node *node, int64_t *ret_floor,
                   bool *ret_more)
{
    uint64_t whole;
    bool negative;
    if (node->kind != JSON_NUMBER || !short_of(json, node, &whole, ret_more, &negative) || whole > INT64_MAX)
        return false;
    *ret_floor = negative ? -(int64_t)whole - *ret_more : (int64_t)whole;
    return true;
}

/* The size of an integer, without its sign; false when it is none or beyond 64 bits. */
static bool magnitude_of(const struct json_text *json, const struct json_node *node, uint64_t *ret_value,
                         bool *ret_negative)
{
    struct decimal d;
    uint64_t value = 0;
    bool more;
    if (node->kind != JSON_NUMBER)
        return false;
    if (short_of(json, node, ret_value, &more, ret_negative))
        return !more;
    d = decimal_of(json, node);
    if (d.point < d.count || d.point > 20)
        return false;
    for (int32_t i = 0, digit; i < d.point; i++) {
        digit = decimal_digit(&d);
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(digit < 0 ? 0 : digit), &value))
            return false;
    }
    *ret_value = value;
    *ret_negative = d.negative;
    return true;
}

bool json_int64_of(const struct json_text *json, const struct json_node *node, int64_t *ret_value)
{
    uint64_t size;
    bool negative;
    if (!magnitude_of(json, node, &size, &negative) || size > (uint64_t)INT64_MAX + negative)
        return false;
    *ret_value = negative ? (int64_t)(0 - size) : (int64_t)size;
    return true;
}

bool json_uint64_of(const struct json_text *json, const struct json_node *node, uint64_t *ret_value)
{
    uint64_t size;
    bool negative;
    if (!magnitude_of(json, node, &size, &negative) || negative)
        return false;
    *ret_value = size;
    return true;
}

double json_double_of(const struct json_text *json, const struct json_node *node)
{
    char text[JSON_TEXT_NUMBER_MAX + 1];
    struct span raw = json_raw_of(json, node);
    ASSERT(node->kind == JSON_NUMBER && raw.size < sizeof text);
    memcpy(text, raw.bytes, raw.size);
    text[raw.size] = 0;
    return strtod(text, NULL); /* the process keeps the C locale */
}

bool json_power_finite(const struct json_text *json, const struct json_node *node)
{
    int32_t point = decimal_of(json, node).point;
    /* The largest double is 0.1797...e309. */
    return point < 309 || (point == 309 && !isinf(json_double_of(json, node)));
}

/* ---- names ---- */

static inline struct hash_key key_of(const struct json_text *json)
{
    return (struct hash_key){json->seed, hash_mix(json->seed ^ 0x9e3779b97f4a7c15u, 0x243f6a8885a308d3u)};
}

/* The same for the same characters, however they are written: of pieces of so many bytes without escapes. */
static uint64_t string_hash(const struct json_text *json, const struct hash_key *key,
                            const struct json_node *node)
{
    enum { PIECE = 64 };
    struct span inner = inner_of(json, node);
    const uint8_t *p = inner.bytes, *end = p + inner.size;
    char room[PIECE + 4], *to = room;
    uint64_t hash = 0;
    if (!(node->flags & JSON_ESCAPED)) {
        for (; end - p > PIECE; p += PIECE)
            hash = hash_mix(hash ^ key->k0, hash_bytes(key, p, PIECE) ^ key->k1);
        return hash ^ hash_bytes(key, p, (size_t)(end - p));
    }
    while (p < end) {
        if (*p == '\\')
            escape_take(&p, &to);
        else
            *to++ = (char)*p++;
        if (to - room > PIECE) {
            hash = hash_mix(hash ^ key->k0, hash_bytes(key, room, PIECE) ^ key->k1);
            memcpy(room, room + PIECE, 4);
            to -= PIECE;
        }
    }
    return hash ^ hash_bytes(key, room, (size_t)(to - room));
}

/* Positions of nodes by hash; 0 is a free slot, since the root is nobody's member. */
struct slots {
    uint32_t mask;
    uint16_t at[SLOTS_MAX];
};

static inline void slots_begin(struct slots *slots, uint32_t count)
{
    uint32_t size = 8;
    while (size < count * 2)
        size *= 2;
    ASSERT(size <= SLOTS_MAX);
    slots->mask = size - 1;
    memset(slots->at, 0, size * sizeof slots->at[0]);
}

/* The first node in there that is the same, or NULL, and then this one is put in. */
typedef bool same_nodes(const struct json_text *a, const struct json_node *x, const struct json_text *b,
                        const struct json_node *y);
static inline const struct json_node *slots_put(struct slots *slots, const struct json_text *json,
                                                const struct json_node *node, uint64_t hash, same_nodes *same)
{
    for (uint32_t slot = (uint32_t)(hash >> 32) & slots->mask;; slot = (slot + 1) & slots->mask) {
        if (!slots->at[slot]) {
            slots->at[slot] = (uint16_t)(node - json->nodes);
            return NULL;
        }
        if (same(json, &json->nodes[slots->at[slot]], json, node))
            return &json->nodes[slots->at[slot]];
    }
}

/* Names mostly differ in their length or in a letter at one of their ends. */
static inline bool name_same(const struct json_text *json, const struct json_node *x,
                             const struct json_node *y)
{
    const uint8_t *text = json->text.bytes, *left = text + x->at, *right = text + y->at;
    if ((x->flags | y->flags) & JSON_ESCAPED)
        return string_same(json, x, json, y);
    return x->length == y->length && left[1] == right[1] && left[x->length - 2] == right[x->length - 2] &&
           memcmp(left, right, x->length) == 0;
}

/* Of a name's length and its letters at both ends, the quote of an empty one: names that are the same have the same, unless there
 * are escapes in them. */
static inline uint64_t name_bit(const uint8_t *begin, const struct json_node *name)
{
    const uint8_t *text = begin + name->at;
    return UINT64_C(1) << ((text[1] + 3u * text[name->length - 2] + 5u * name->length) & 63);
}

/* A name that the object has twice, or NULL. Its nodes are the last ones so far. Apart from the other for its slots: pages of stack
 * that few objects need. */
__attribute__((noinline)) static const struct json_node *name_twice_of_many(const struct json_text *json,
                                                                            const struct json_node *object)
{
    const struct json_node *name = object + 1, *end = json->nodes + json->count;
    struct hash_key key = key_of(json);
    struct slots slots;
    slots_begin(&slots, object->count);
    for (; name < end; name = json->nodes + name[1].next)
        if (slots_put(&slots, json, name, string_hash(json, &key, name), string_same))
            return name;
    return NULL;
}

static inline const struct json_node *name_twice(const struct json_text *json, const struct json_node *object)
{
    const struct json_node *name = object + 1, *end = json->nodes + json->count, *other;
    if (object->count > FEW_MEMBERS)
        return name_twice_of_many(json, object);
    for (; name < end; name = json->nodes + name[1].next)
        for (other = object + 1; other < name; other = json->nodes + other[1].next)
            if (name_same(json, other, name))
                return name;
    return NULL;
}

/* ---- reading ---- */

static inline uint32_t limit_of(uint32_t wanted, uint32_t most)
{
    return wanted && wanted < most ? wanted : most;
}

static struct json_limits limits_of(const struct json_text *json, const struct json_limits *wanted)
{
    static const struct json_limits none;
    if (!wanted)
        wanted = &none;
    return (struct json_limits){
        .depth = limit_of(wanted->depth, JSON_TEXT_DEPTH_MAX),
        .nodes = limit_of(wanted->nodes, limit_of(json->nodes_max, JSON_TEXT_NODES_MAX)),
        .elements = limit_of(wanted->elements, JSON_TEXT_ELEMENTS_MAX),
        .members = limit_of(wanted->members, JSON_TEXT_MEMBERS_MAX),
        .key = limit_of(wanted->key, JSON_TEXT_KEY_MAX),
    };
}

static bool number_in_limits(const uint8_t *p, const uint8_t *end)
{
    if (end - p > (ptrdiff_t)JSON_TEXT_NUMBER_MAX)
        return false;
    while (p < end && (*p | 0x20) != 'e')
        p++;
    if (p == end)
        return true;
    for (p++; p < end && (*p == '+' || *p == '-' || *p == '0');)
        p++;
    return end - p <= (ptrdiff_t)JSON_TEXT_EXPONENT_MAX;
}

static inline const uint8_t *space_end(const uint8_t *p, const uint8_t *end)
{
    while (p < end && *p <= ' ' && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    return p;
}

/* Most texts that machines write have no white space: asked before space_end, this says that at once. */
static inline bool is_space_or_end(const uint8_t *p, const uint8_t *end)
{
    return p == end || *p <= ' ';
}

bool json_text_read(struct json_text *json, struct span text, const struct json_limits *limits,
                    struct json_error *ret_error)
{
    const struct json_limits most = limits_of(json, limits);
    const uint8_t *const begin = text.size ? text.bytes : "", *const end = begin + text.size;
    const uint8_t *p = begin, *bad;
    const struct json_node *twice;
    struct json_node *const nodes = json->nodes, *node, *container = NULL;
    uint16_t open[JSON_TEXT_DEPTH_MAX]; /* positions of the containers around `container` */
    uint64_t seen[JSON_TEXT_DEPTH_MAX]; /* name_bit of the names so far, of each open object */
    uint64_t doubtful = 0;              /* one bit for each depth: its object may have a name twice */
    uint32_t depth = 0, count = 0;
    const char *why;
    bool limit = false;

    ASSERT(json->nodes_max);
    json->text = text;
    if (text.size >= 3 && memcmp(begin, "\xef\xbb\xbf", 3) == 0) {
        why = "a byte order mark";
        goto refused;
    }

value:
    if (is_space_or_end(p, end) && (p = space_end(p, end)) == end)
        goto no_value;
    if (count == most.nodes)
        goto too_many_nodes;
    node = &nodes[count++];
    *node = (struct json_node){.at = (uint32_t)(p - begin)};
    switch (*p) {
    case '"':
        node->kind = JSON_STRING;
        p = string_end(p + 1, end, &node->flags, &bad, &why);
        if (!p)
            goto refused_there;
        p++;
        break;
    case '{':
    case '[':
        if (depth == most.depth) {
            why = "nested too deep";
            goto limited;
        }
        if (container)
            open[depth - 1] = (uint16_t)(container - nodes);
        seen[depth] = 0;
        doubtful &= ~(UINT64_C(1) << depth);
        depth++;
        container = node;
        container->kind = *p == '{' ? JSON_OBJECT : JSON_ARRAY;
        p = space_end(p + 1, end);
        if (p < end && *p == (container->kind == JSON_OBJECT ? '}' : ']'))
            goto close;
        if (container->kind == JSON_OBJECT)
            goto name;
        goto value;
    case '-':
    case '0' ... '9':
        node->kind = JSON_NUMBER;
        bad = p;
        p = number_end(p, end, &node->flags, &bad, &why);
        if (!p)
            goto refused_there;
        if (p - (begin + node->at) > (ptrdiff_t)JSON_TEXT_EXPONENT_MAX &&
            !number_in_limits(begin + node->at, p)) {
            p = begin + node->at;
            why = "a number of too many digits";
            goto limited;
        }
        break;
    case 't':
        if (end - p < 4 || memcmp(p, "true", 4) != 0)
            goto no_value;
        node->kind = JSON_TRUE;
        p += 4;
        break;
    case 'f':
        if (end - p < 5 || memcmp(p, "false", 5) != 0)
            goto no_value;
        node->kind = JSON_FALSE;
        p += 5;
        break;
    case 'n':
        if (end - p < 4 || memcmp(p, "null", 4) != 0)
            goto no_value;
        node->kind = JSON_NULL;
        p += 4;
        break;
    default:
        goto no_value;
    }
    node->length = (uint32_t)(p - begin) - node->at;
    node->next = count;

    /* Behind a value. */
behind:
    if (!container)
        goto done;
    if (is_space_or_end(p, end) && (p = space_end(p, end)) == end)
        goto ends_early;
    container->count++;
    if (*p == ',') {
        if (container->kind == JSON_OBJECT) {
            if (container->count == most.members) {
                why = "an object of too many members";
                goto limited;
            }
            p++;
            goto name;
        }
        if (container->count == most.elements) {
            why = "an array of too many elements";
            goto limited;
        }
        p++;
        goto value;
    }
    if (*p != (container->kind == JSON_OBJECT ? '}' : ']'))
        goto no_comma;

close:
    p++;
    container->length = (uint32_t)(p - begin) - container->at;
    container->next = json->count = count;
    if (doubtful >> (depth - 1) & 1 && (twice = name_twice(json, container))) {
        p = begin + twice->at;
        why = "a member of this name was there before";
        goto refused;
    }
    depth--;
    container = depth ? &nodes[open[depth - 1]] : NULL;
    goto behind;

name:
    if (is_space_or_end(p, end))
        p = space_end(p, end);
    if (p == end || *p != '"')
        goto no_name;
    if (count == most.nodes)
        goto too_many_nodes;
    node = &nodes[count++];
    *node = (struct json_node){.at = (uint32_t)(p - begin), .next = count, .kind = JSON_STRING};
    p = string_end(p + 1, end, &node->flags, &bad, &why);
    if (!p)
        goto refused_there;
    p++;
    node->length = (uint32_t)(p - begin) - node->at;
    if (node->length - 2 > most.key) {
        p = begin + node->at;
        why = "a member's name is too long";
        goto limited;
    }
    uint64_t bit = name_bit(begin, node);
    if (seen[depth - 1] & bit || node->flags & JSON_ESCAPED)
        doubtful |= UINT64_C(1) << (depth - 1);
    seen[depth - 1] |= bit;
    if (is_space_or_end(p, end))
        p = space_end(p, end);
    if (p == end || *p != ':')
        goto no_colon;
    p++;
    goto value;

done:
    p = space_end(p, end);
    why = "something stands behind the value";
    if (p != end)
        goto refused;
    json->count = count;
    return true;

no_value:
    why = "a value is missing";
    goto refused;
ends_early:
    why = "the text ends too early";
    goto refused;
no_comma:
    why = "a comma or the container's end is missing";
    goto refused;
no_name:
    why = "a member's name is missing";
    goto refused;
no_colon:
    why = "a colon is missing";
    goto refused;
too_many_nodes:
    why = "too many values";
limited:
    limit = true;
    goto refused;
refused_there:
    p = bad;
refused:
    json->count = 0;
    *ret_error = (struct json_error){.at = (uint32_t)(p - begin), .what = why, .limit = limit};
    return false;
}

void json_text_bare(struct json_text *json, struct json_node *node, struct span text)
{
    *node = (struct json_node){.length = text.size, .next = 1, .kind = JSON_STRING, .flags = JSON_BARE};
    *json = (struct json_text){.text = text, .nodes = node, .nodes_max = 1, .count = 1};
}

/* ---- looking ---- */

/* The value of the member with this name, searched for from `from` to the end and then from the beginning. */
static const struct json_node *member_from(const struct json_text *json, const struct json_node *object,
                                           const struct json_node *from, const struct json_text *names,
                                           const struct json_node *name)
{
    for (const struct json_node *at = from; at; at = json_after(json, object, at))
        if (string_same(json, at, names, name))
            return at + 1;
    for (const struct json_node *at = object + 1; at != from; at = json_after(json, object, at))
        if (string_same(json, at, names, name))
            return at + 1;
    return NULL;
}

const struct json_node *json_member(const struct json_text *json, const struct json_node *object,
                                    const char *name)
{
    struct json_text bare;
    struct json_node node;
    const struct json_node *first = object->kind == JSON_OBJECT ? json_first(json, object) : NULL;
    if (!first)
        return NULL;
    json_text_bare(&bare, &node, span_text(name));
    return member_from(json, object, first, &bare, &node);
}

static bool object_same(const struct json_text *a, const struct json_node *x, const struct json_text *b,
                        const struct json_node *y)
{
    const struct json_node *from = json_first(b, y), *other;
    for (const struct json_node *name = json_first(a, x); name; name = json_after(a, x, name)) {
        other = member_from(b, y, from, a, name);
        if (!other || !json_same(a, name + 1, b, other))
            return false;
        from = json_after(b, y, other - 1);
        from = from ? from : json_first(b, y);
    }
    return true;
}

static bool array_same(const struct json_text *a, const struct json_node *x, const struct json_text *b,
                       const struct json_node *y)
{
    const struct json_node *left = json_first(a, x), *right = json_first(b, y);
    for (; left; left = json_after(a, x, left), right = json_after(b, y, right))
        if (!json_same(a, left, b, right))
            return false;
    return true;
}

bool json_same(const struct json_text *a, const struct json_node *x, const struct json_text *b,
               const struct json_node *y)
{
    if (x->kind != y->kind || x->count != y->count)
        return false;
    switch (x->kind) {
    case JSON_NUMBER:
        return json_number_compare(a, x, b, y) == 0;
    case JSON_STRING:
        return string_same(a, x, b, y);
    case JSON_OBJECT:
        return object_same(a, x, b, y);
    case JSON_ARRAY:
        return array_same(a, x, b, y);
    default: /* of the others the kind says all */
        break;
    }
    return true;
}

static uint64_t number_hash(const struct json_text *json, const struct hash_key *key,
                            const struct json_node *node)
{
    struct decimal d = decimal_of(json, node);
    uint64_t hash = hash_number(key, (uint64_t)d.point << 1 | d.negative);
    for (int digit; (digit = decimal_digit(&d)) >= 0;)
        hash = hash_mix(hash ^ key->k0, (uint64_t)digit ^ key->k1);
    return hash;
}

/* The same for whatever json_same calls the same. */
static uint64_t node_hash(const struct json_text *json, const struct hash_key *key,
                          const struct json_node *node)
{
    uint64_t hash = node->kind;
    switch (node->kind) {
    case JSON_NUMBER:
        return number_hash(json, key, node);
    case JSON_STRING:
        return string_hash(json, key, node);
    case JSON_ARRAY:
        for (const struct json_node *at = json_first(json, node); at; at = json_after(json, node, at))
            hash = hash_mix(hash ^ key->k0, node_hash(json, key, at) ^ key->k1);
        break;
    case JSON_OBJECT: /* a sum: the order doesn't matter */
        for (const struct json_node *at = json_first(json, node); at; at = json_after(json, node, at))
            hash += hash_mix(string_hash(json, key, at) ^ key->k0, node_hash(json, key, at + 1) ^ key->k1);
        break;
    default: /* of the others the kind says all */
        break;
    }
    return hash_number(key, hash);
}

bool json_unique(const struct json_text *json, const struct json_node *array)
{
    const struct hash_key key = key_of(json);
    struct slots slots;
    slots_begin(&slots, array->count);
    for (const struct json_node *at = json_first(json, array); at; at = json_after(json, array, at))
        if (slots_put(&slots, json, at, node_hash(json, &key, at), json_same))
            return false;
    return true;
}

/* ---- pointers ---- */

struct pointer {
    char *room;
    size_t size, length;
    bool full;
};

/* One character whole, or nothing more at all. */
static void pointer_put(struct pointer *to, const char *bytes, size_t size)
{
    if (to->full || to->length + size >= to->size) {
        to->full = true;
        return;
    }
    memcpy(to->room + to->length, bytes, size);
    to->length += size;
}

static void pointer_name(struct pointer *to, const struct json_text *json, const struct json_node *name)
{
    char room[JSON_TEXT_KEY_MAX];
    struct span text;
    const uint8_t *p, *end;
    bool fits = json_string_of(json, name, room, sizeof room, &text); /* JSON_TEXT_KEY_MAX */
    ASSERT(fits);
    p = text.bytes;
    end = p + text.size;
    while (p < end && !to->full) {
        size_t size = *p < 0x80 ? 1 : json_utf8_sequence(p, (size_t)(end - p));
        if (*p == '~')
            pointer_put(to, "~0", 2);
        else if (*p == '/')
            pointer_put(to, "~1", 2);
        else
            pointer_put(to, (const char *)p, size);
        p += size;
    }
}

static void pointer_index(struct pointer *to, uint32_t index)
{
    char digits[10], *p = digits + sizeof digits;
    do
        *--p = (char)('0' + index % 10);
    while (index /= 10);
    pointer_put(to, p, (size_t)(digits + sizeof digits - p));
}

void json_pointer_to(const struct json_text *json, const struct json_node *node, char *room, size_t size)
{
    struct pointer to = {.room = room, .size = size};
    const struct json_node *at = json->nodes;
    uint32_t target = (uint32_t)(node - json->nodes);
    ASSERT(size && target < json->count);
    while (at != node) {
        const struct json_node *child = json_first(json, at), *next;
        uint32_t index = 0;
        while ((next = json_after(json, at, child)) && next <= node) {
            child = next;
            index++;
        }
        pointer_put(&to, "/", 1);
        if (at->kind == JSON_ARRAY) {
            pointer_index(&to, index);
            at = child;
        } else {
            pointer_name(&to, json, child);
            if (child == node)
                break;
            at = child + 1;
        }
    }
    room[to.length] = 0;
}
