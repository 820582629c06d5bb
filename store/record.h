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
};

#define RECORD_STRUCT(name, FIELDS) \
    struct name {                   \
        FIELDS(RECORD_MEMBER)       \
    };                              \
    extern const struct record_class name##_record
#define RECORD_MEMBER(name, TYPE, limit, since) field_##TYPE name;

#define RECORD_CLASS(NAME, FIELDS, VERSION)                                                               \
    static const struct record_field NAME##_fields[] = {FIELDS(NAME##_FIELD)};                            \
    const struct record_class NAME##_record = {.name = #NAME,                                             \
                                               .fields = NAME##_fields,                                   \
                                               .count = sizeof(NAME##_fields) / sizeof(NAME##_fields[0]), \
                                               .size = sizeof(struct NAME),                               \
                                               .version = VERSION}
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
/* NULL, or the name of the first field that breaks its limit. */
const char *record_refused(const struct record_class *class, const void *record);
/* The members of one object, without its braces: the caller may add some of its own. */
void record_write_json(const struct record_class *class, const void *record, struct json *json);

/* 2026-11-18T13:04:51.123456Z, always six digits. A time after the year 9999 shows as its last microsecond. */
#define TIME_TEXT_SIZE 28
void time_format(uint64_t us, char text[TIME_TEXT_SIZE]);

#endif
