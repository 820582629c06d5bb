#include "store/record.h"

#include "runtime/assert.h"

STATIC_ASSERT(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are copied as they stand in memory");

#define X(name, ctype, size) \
    STATIC_ASSERT((size) == 0 || sizeof(ctype) == (size), "a fixed field is as long in bytes as in memory");
FIELD_TYPES(X)
#undef X

/* 0: the length stands before the bytes. */
static const uint8_t fixed_sizes[FIELD_TYPE_COUNT] = {
#define X(name, ctype, size) [FIELD_##name] = (size),
    FIELD_TYPES(X)
#undef X
};

#define JSON_NUMBER_MAX (UINT64_C(1) << 53) /* readers that keep numbers as doubles are exact up to here */

static const char hex_digits[] = "0123456789abcdef";

/* ---- what a field may hold ---- */

/* Eight bytes at once while they are ASCII: most text is. The second test finds a zero byte among them. */
static bool eight_plain(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    return ((word | (word - 0x0101010101010101u)) & 0x8080808080808080u) == 0;
}

static bool text_sound(struct span text)
{
    const uint8_t *bytes = text.bytes;
    size_t i = 0;
    while (i < text.size) {
        size_t left = text.size - i;
        if (left >= 8 && eight_plain(bytes + i))
            i += 8;
        else if (bytes[i] > 0 && bytes[i] < 0x80)
            i++;
        else {
            size_t length = json_utf8_sequence(bytes + i, left);
            if (length == 0)
                return false;
            i += length;
        }
    }
    return true;
}

static bool span_sound(struct span span, uint32_t limit, bool text)
{
    return span.size <= limit && (!text || text_sound(span));
}

static const void *field_of(const struct record_field *field, const void *record)
{
    return (const uint8_t *)record + field->offset;
}

static const struct span *span_field_of(const struct record_field *field, const void *record)
{
    return field_of(field, record);
}

static bool field_sound(const struct record_field *field, const void *record)
{
    return fixed_sizes[field->type] > 0 ||
           span_sound(*span_field_of(field, record), field->limit, field->type == FIELD_TEXT);
}

const char *record_refused(const struct record_class *class, const void *record)
{
    for (size_t i = 0; i < class->count; i++)
        if (!field_sound(&class->fields[i], record))
            return class->fields[i].name;
    return NULL;
}

/* ---- bytes ---- */

size_t record_span_measure(const struct span *span, uint32_t limit, bool text)
{
    return span_sound(*span, limit, text) ? RECORD_LENGTH_SIZE + span->size : 0;
}

size_t record_span_sound(const uint8_t *at, size_t left, uint32_t limit, bool text)
{
    uint32_t length;
    if (left < RECORD_LENGTH_SIZE)
        return 0;
    memcpy(&length, at, RECORD_LENGTH_SIZE);
    bool sound = length <= left - RECORD_LENGTH_SIZE &&
                 (length == 0 || span_sound(span_of(at + RECORD_LENGTH_SIZE, length), limit, text));
    return sound ? RECORD_LENGTH_SIZE + length : 0;
}

size_t record_size(const struct record_class *class, const void *record)
{
    return class->measure(record);
}

void record_lay(const struct record_class *class, const void *record, void *bytes)
{
    class->put(record, bytes);
}

size_t record_encode(const struct record_class *class, const void *record, void *bytes, size_t room)
{
    size_t size = class->measure(record);
    if (size == 0 || size > room)
        return 0;
    class->put(record, bytes);
    return size;
}

enum error record_decode(const struct record_class *class, uint8_t version, struct span bytes,
                         void *ret_record)
{
    if (version > class->version)
        return ERR_NEWER;
    if (version == 0 || !class->sound(bytes.bytes, bytes.size, version))
        return ERR_DAMAGED;
    memset(ret_record, 0, class->size);
    class->take(bytes.bytes, version, ret_record);
    return OK;
}

/* ---- JSON ---- */

static void write_unsigned(struct json *json, uint64_t value)
{
    if (value <= JSON_NUMBER_MAX)
        json_uint(json, value);
    else
        json_uint_string(json, value);
}

static void write_signed(struct json *json, int64_t value)
{
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    if (magnitude <= JSON_NUMBER_MAX) {
        json_int(json, value);
        return;
    }
    json_raw(json, "\"", 1);
    json_sink_int(json->sink, value);
    json_sink_text(json->sink, "\"");
}

static void write_time(struct json *json, uint64_t us)
{
    char text[TIME_TEXT_SIZE];
    if (us == 0) {
        json_null(json);
        return;
    }
    time_format(us, text);
    json_string(json, text);
}

static void write_uuid(struct json *json, const struct uuid *id)
{
    char text[UUID_TEXT_SIZE];
    if (uuid_equal(id, &(struct uuid){{0}})) {
        json_null(json);
        return;
    }
    uuid_format(id, text);
    json_string(json, text);
}

static void write_digest(struct json *json, const struct digest *digest)
{
    char text[2 * sizeof(digest->bytes)];
    for (size_t i = 0; i < sizeof(digest->bytes); i++) {
        text[2 * i] = hex_digits[digest->bytes[i] >> 4];
        text[2 * i + 1] = hex_digits[digest->bytes[i] & 15];
    }
    json_string_n(json, text, sizeof(text));
}

/* Three bytes, or what is left of them, as four characters. */
static void base64_group(const uint8_t *bytes, size_t left, char text[4])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t group = (uint32_t)bytes[0] << 16;
    group |= left > 1 ? (uint32_t)bytes[1] << 8 : 0;
    group |= left > 2 ? bytes[2] : 0;
    text[0] = digits[group >> 18];
    text[1] = digits[group >> 12 & 63];
    text[2] = left > 1 ? digits[group >> 6 & 63] : '=';
    text[3] = left > 2 ? digits[group & 63] : '=';
}

/* The value begins with its quote; the rest needs no escapes and goes to the sink in pieces. */
static void write_base64(struct json *json, struct span span)
{
    const uint8_t *bytes = span.bytes;
    char text[256];
    size_t length = 0;
    json_raw(json, "\"", 1);
    for (size_t i = 0; i < span.size; i += 3) {
        base64_group(bytes + i, span.size - i, text + length);
        length += 4;
        if (length == sizeof(text)) {
            json_sink_bytes(json->sink, text, length);
            length = 0;
        }
    }
    json_sink_bytes(json->sink, text, length);
    json_sink_text(json->sink, "\"");
}

static void write_json_text(struct json *json, struct span text)
{
    if (text.size > 0)
        json_foreign(json, text.bytes, text.size);
    else
        json_null(json);
}

static void write_value(struct json *json, const struct record_field *field, const void *record)
{
    const void *at = field_of(field, record);
    const struct span *span = at;
    switch (field->type) {
    case FIELD_U8:
        json_uint(json, *(const uint8_t *)at);
        break;
    case FIELD_U16:
        json_uint(json, *(const uint16_t *)at);
        break;
    case FIELD_U32:
        json_uint(json, *(const uint32_t *)at);
        break;
    case FIELD_U64:
        write_unsigned(json, *(const uint64_t *)at);
        break;
    case FIELD_I64:
        write_signed(json, *(const int64_t *)at);
        break;
    case FIELD_TIME:
        write_time(json, *(const uint64_t *)at);
        break;
    case FIELD_UUID:
        write_uuid(json, at);
        break;
    case FIELD_DIGEST:
        write_digest(json, at);
        break;
    case FIELD_TEXT:
        json_string_n(json, span->bytes, span->size);
        break;
    case FIELD_BYTES:
        write_base64(json, *span);
        break;
    default:
        ASSERT(field->type == FIELD_JSON);
        write_json_text(json, *span);
    }
}

/* A time is a number of microseconds in the record and a text here: expires_us is expires_at, at_us is at. */
static void write_name(struct json *json, const struct record_field *field)
{
    char name[64];
    size_t length = strlen(field->name);
    bool time = field->type == FIELD_TIME && length > 3 && length < sizeof(name) &&
                strcmp(field->name + length - 3, "_us") == 0;
    if (!time) {
        json_key(json, field->name);
        return;
    }
    memcpy(name, field->name, length - 2);
    memcpy(name + length - 2, "at", 3);
    json_key(json, strcmp(name, "at_at") == 0 ? "at" : name);
}

void record_write_json(const struct record_class *class, const void *record, struct json *json)
{
    for (size_t i = 0; i < class->count; i++) {
        write_name(json, &class->fields[i]);
        write_value(json, &class->fields[i], record);
    }
}

/* ---- time ---- */

#define US_PER_SECOND UINT64_C(1000000)
#define DAY_SECONDS   UINT64_C(86400)
/* The last microsecond of 9999: 2932897 days from 1970-01-01 to 10000-01-01. */
#define TIME_SHOWN_MAX (2932897 * DAY_SECONDS * US_PER_SECOND - 1)

struct date {
    uint64_t year, month, day;
};

/* Years are counted from the first of March, so that the leap day is the last of its year; then a cycle of
 * 400 years has 146097 days, one of 100 years 36524 (and one more the fourth time), one of 4 years 1461. */
static struct date date_of_days(uint64_t days)
{
    uint64_t since_0000_03_01 = days + 719468;
    uint64_t cycle = since_0000_03_01 / 146097;
    uint64_t in_cycle = since_0000_03_01 % 146097;
    uint64_t year = (in_cycle - in_cycle / 1460 + in_cycle / 36524 - in_cycle / 146096) / 365;
    uint64_t in_year = in_cycle - (365 * year + year / 4 - year / 100);
    uint64_t month = (5 * in_year + 2) / 153; /* five months from March on have 153 days, and so again */
    bool next_year = month >= 10;
    return (struct date){
        .year = cycle * 400 + year + next_year,
        .month = next_year ? month - 9 : month + 3,
        .day = in_year - (153 * month + 2) / 5 + 1,
    };
}

/* `width` digits and what follows them. Returns where the next part begins. */
static char *digits_write(char *at, uint64_t value, unsigned width, char after)
{
    for (unsigned i = width; i > 0; i--) {
        at[i - 1] = (char)('0' + value % 10);
        value /= 10;
    }
    at[width] = after;
    return at + width + 1;
}

void time_format(uint64_t us, char text[TIME_TEXT_SIZE])
{
    uint64_t shown = us < TIME_SHOWN_MAX ? us : TIME_SHOWN_MAX;
    uint64_t seconds = shown / US_PER_SECOND;
    uint64_t in_day = seconds % DAY_SECONDS;
    struct date date = date_of_days(seconds / DAY_SECONDS);
    char *at = digits_write(text, date.year, 4, '-');
    at = digits_write(at, date.month, 2, '-');
    at = digits_write(at, date.day, 2, 'T');
    at = digits_write(at, in_day / 3600, 2, ':');
    at = digits_write(at, in_day / 60 % 60, 2, ':');
    at = digits_write(at, in_day % 60, 2, '.');
    at = digits_write(at, shown % US_PER_SECOND, 6, 'Z');
    *at = '\0';
}
