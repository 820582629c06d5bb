/* Records: declared once as a table of fields, which yields the struct, the bytes and the JSON.
 *
 *     #define PARCEL_FIELDS(X)           \
 *         X(id, UUID, 0, 1)              \     X(name, TYPE, limit, since)
 *         X(state, U8, 0, 1)             \     limit: most bytes of TEXT, BYTES and JSON; else 0
 *         X(sent_at, TIME, 0, 1)         \     since: the version of the record that brought the field
 *         X(body, BYTES, 4096, 1)
 *     RECORD_STRUCT(parcel, PARCEL_FIELDS);
 *     RECORD_CLASS(parcel, PARCEL_FIELDS, 1);   in one .c file: const struct record_class parcel_record
 *
 * Bytes: the fields in their order, numbers little-endian and of fixed size, TEXT, BYTES and JSON as a length
 * of 4 bytes and the bytes. No padding, so equal records have equal bytes. A version only appends fields:
 * reading bytes of version v leaves fields with since > v zero, and a version above the class's own is
 * refused with ERR_NEWER. Decoding checks everything (lengths, limits, UTF-8 of TEXT, nothing left over) and
 * gives ERR_DAMAGED; spans then point into the bytes.
 *
 * Commands are made of the same tables (store/command.h). Nothing here allocates or blocks.
 */
#ifndef COPPICE_STORE_RECORD_H
#define COPPICE_STORE_RECORD_H

#include "runtime/error.h"
#include "runtime/json.h"
#include "store/span.h"
#include "store/uuid.h"

struct digest {
    uint8_t bytes[32];
};

/* X(TYPE, C type, bytes when fixed or 0) */
#define FIELD_TYPES(X)                                                                                     \
    X(U8, uint8_t, 1)                                                                                      \
    X(U16, uint16_t, 2)                                                                                    \
    X(U32, uint32_t, 4)                                                                                    \
    X(U64, uint64_t, 8)      /* JSON: a number up to 2^53, a string above */                               \
    X(I64, int64_t, 8)       /* JSON: a string beyond 2^53 in either direction */                          \
    X(TIME, uint64_t, 8)     /* microseconds since 1970; JSON: RFC 3339 with Z, null when 0; x_us: x_at */ \
    X(UUID, struct uuid, 16) /* JSON: canonical text; all zero: null */                                    \
    X(DIGEST, struct digest, 32) /* JSON: 64 hex digits */                                                 \
    X(TEXT, struct span, 0)      /* UTF-8 without NUL */                                                   \
    X(BYTES, struct span, 0)     /* JSON: base64 */                                                        \
    X(JSON, struct span, 0)      /* a JSON value as text, checked when it came in; JSON: as it is, \
                                    in one line; null when empty */

enum field_type {
#define X(name, ctype, size) FIELD_##name,
    FIELD_TYPES(X)
#undef X
        FIELD_TYPE_COUNT
};

#define X(name, ctype, size) typedef ctype field_##name;
FIELD_TYPES(X)
#undef X

enum { /* bytes; 0: the length stands before them */
#define X(name, ctype, size) RECORD_FIXED_##name = (size),
       FIELD_TYPES(X)
#undef X
};
#define RECORD_LENGTH_SIZE 4u

struct record_field {
    const char *name;
    uint16_t offset; /* in the struct */
    uint8_t type;    /* enum field_type */
    uint8_t since;
    uint32_t limit;
};

struct record_class {
    const char *name;
    const struct record_field *fields;
    uint16_t count;
    uint16_t size;   /* of the struct */
    uint8_t version; /* 1..255 */
    /* What the table says, field by field with each one's own type, so that moving a field is a move and no look into the table: by
     * RECORD_CLASS, for record.c alone. */
    size_t (*measure)(const void *record);                          /* 0: a field breaks its limit */
    void (*put)(const void *record, uint8_t *at);                   /* what was measured */
    bool (*sound)(const uint8_t *at, size_t left, uint8_t version); /* the bytes are its fields */
    void (*take)(const uint8_t *at, uint8_t version, void *record); /* from sound bytes */
};

/* Of a span: how many bytes it takes, its length included; 0: it breaks its limit. */
size_t record_span_measure(const struct span *span, uint32_t limit, bool text);
/* Of bytes that begin with a length: how many there are with it; 0: they aren't a span like that. */
size_t record_span_sound(const uint8_t *at, size_t left, uint32_t limit, bool text);

/* `fixed` and `since` are constants of the table, and what depends on them is no code. */
static inline __attribute__((always_inline)) bool record_since(unsigned since, uint8_t version)
{
    return since <= 1 || since <= version;
}

static inline __attribute__((always_inline)) size_t record_measure(const void *field, size_t fixed,
                                                                   uint32_t limit, bool text)
{
    return fixed ? fixed : record_span_measure(field, limit, text);
}

static inline __attribute__((always_inline)) uint8_t *record_put(uint8_t *at, const void *field, size_t fixed)
{
    struct span span;
    if (fixed) {
        memcpy(at, field, fixed);
        return at + fixed;
    }
    memcpy(&span, field, sizeof(span));
    memcpy(at, &span.size, RECORD_LENGTH_SIZE);
    if (span.size > 0)
        memcpy(at + RECORD_LENGTH_SIZE, span.bytes, span.size);
    return at + RECORD_LENGTH_SIZE + span.size;
}

static inline __attribute__((always_inline)) size_t record_sound(const uint8_t *at, size_t left, size_t fixed,
                                                                 uint32_t limit, bool text)
{
    if (fixed)
        return left >= fixed ? fixed : 0;
    return record_span_sound(at, left, limit, text);
}

static inline __attribute__((always_inline)) const uint8_t *record_take(const uint8_t *at, void *field,
                                                                        size_t fixed)
{
    uint32_t length;
    if (fixed) {
        memcpy(field, at, fixed);
        return at + fixed;
    }
    memcpy(&length, at, RECORD_LENGTH_SIZE);
    struct span *span = field; /* member by member: what is between them stays 0 */
    span->bytes = (const char *)at + RECORD_LENGTH_SIZE;
    span->size = length;
    return at + RECORD_LENGTH_SIZE + length;
}

#define RECORD_STRUCT(name, FIELDS) \
    struct name {                   \
        FIELDS(RECORD_MEMBER)       \
    };                              \
    extern const struct record_class name##_record
#define RECORD_MEMBER(name, TYPE, limit, since) field_##TYPE name;

#define RECORD_CLASS(NAME, FIELDS, VERSION)                                                               \
    static const struct record_field NAME##_fields[] = {FIELDS(NAME##_FIELD)};                            \
    static size_t NAME##_bytes_measure(const void *record)                                                \
    {                                                                                                     \
        const struct NAME *r = record;                                                                    \
        size_t sum = 0, size;                                                                             \
        FIELDS(RECORD_MEASURE_FIELD)                                                                      \
        return sum;                                                                                       \
    }                                                                                                     \
    static void NAME##_bytes_put(const void *record, uint8_t *bytes)                                      \
    {                                                                                                     \
        const struct NAME *r = record;                                                                    \
        uint8_t *at = bytes;                                                                              \
        FIELDS(RECORD_PUT_FIELD)                                                                          \
        (void)at;                                                                                         \
    }                                                                                                     \
    static bool NAME##_bytes_sound(const uint8_t *bytes, size_t all, uint8_t version)                     \
    {                                                                                                     \
        const uint8_t *at = bytes;                                                                        \
        size_t left = all, size;                                                                          \
        (void)version;                                                                                    \
        FIELDS(RECORD_SOUND_FIELD)                                                                        \
        return left == 0;                                                                                 \
    }                                                                                                     \
    static void NAME##_bytes_take(const uint8_t *bytes, uint8_t version, void *record)                    \
    {                                                                                                     \
        struct NAME *r = record;                                                                          \
        const uint8_t *at = bytes;                                                                        \
        (void)version;                                                                                    \
        FIELDS(RECORD_TAKE_FIELD)                                                                         \
        (void)at;                                                                                         \
    }                                                                                                     \
    const struct record_class NAME##_record = {.name = #NAME,                                             \
                                               .fields = NAME##_fields,                                   \
                                               .count = sizeof(NAME##_fields) / sizeof(NAME##_fields[0]), \
                                               .size = sizeof(struct NAME),                               \
                                               .version = VERSION,                                        \
                                               .measure = NAME##_bytes_measure,                           \
                                               .put = NAME##_bytes_put,                                   \
                                               .sound = NAME##_bytes_sound,                               \
                                               .take = NAME##_bytes_take}
#define RECORD_MEASURE_FIELD(field, TYPE, most, from)                                          \
    size = record_measure(&r->field, RECORD_FIXED_##TYPE, (most), FIELD_##TYPE == FIELD_TEXT); \
    if (size == 0)                                                                             \
        return 0;                                                                              \
    sum += size;
#define RECORD_PUT_FIELD(field, TYPE, most, from) at = record_put(at, &r->field, RECORD_FIXED_##TYPE);
#define RECORD_SOUND_FIELD(field, TYPE, most, from)                                             \
    if (record_since(from, version)) {                                                          \
        size = record_sound(at, left, RECORD_FIXED_##TYPE, (most), FIELD_##TYPE == FIELD_TEXT); \
        if (size == 0)                                                                          \
            return false;                                                                       \
        at += size;                                                                             \
        left -= size;                                                                           \
    }
#define RECORD_TAKE_FIELD(field, TYPE, most, from) \
    if (record_since(from, version))               \
        at = record_take(at, &r->field, RECORD_FIXED_##TYPE);
/* The row of one field of one record; each .c file says once:
 *     #define parcel_FIELD(name, TYPE, limit, since) RECORD_FIELD(parcel, name, TYPE, limit, since) */
#define RECORD_FIELD(RECORD, field, TYPE, most, from) \
    {.name = #field,                                  \
     .offset = offsetof(struct RECORD, field),        \
     .type = FIELD_##TYPE,                            \
     .since = (from),                                 \
     .limit = (most)},

/* The bytes that record_encode will write; 0 when a field breaks its limit (record_refused names it). */
size_t record_size(const struct record_class *class, const void *record);
/* Room for record_size bytes. Returns what was written, in the class's own version; 0 when a field breaks its
 * limit or the room is too small. */
size_t record_encode(const struct record_class *class, const void *record, void *bytes, size_t room);
/* OK, ERR_DAMAGED or ERR_NEWER; *ret_record is written only when OK. Its spans borrow from bytes. */
enum error record_decode(const struct record_class *class, uint8_t version, struct span bytes,
                         void *ret_record);
/* Of one that record_size has measured, into a room of that size. */
void record_lay(const struct record_class *class, const void *record, void *bytes);
/* NULL, or the name of the first field that breaks its limit. */
const char *record_refused(const struct record_class *class, const void *record);
/* The members of one object, without its braces: the caller may add some of its own. */
void record_write_json(const struct record_class *class, const void *record, struct json *json);

/* 2026-11-18T13:04:51.123456Z, always six digits. A time after the year 9999 shows as its last microsecond. */
#define TIME_TEXT_SIZE 28
void time_format(uint64_t us, char text[TIME_TEXT_SIZE]);

#endif
