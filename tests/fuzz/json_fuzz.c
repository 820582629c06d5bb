/* The JSON writer: whatever is written and whatever the strings hold, a document without an error is one that an independent
 * reader understands, and holds nothing but valid UTF-8 without control characters. Strings come back as they were. */
#define json_string parson_json_string
#include <parson.h>
#undef json_string
#include <stdlib.h>
#include "runtime/assert.h"
#include "runtime/json.h"
#include "tests/fuzz/bytes.h"

static char document[1 << 18];
static size_t document_length;

static bool append(void *context, const char *bytes, size_t length)
{
    (void)context;
    if (length > sizeof document - 1 - document_length)
        return false;
    memcpy(document + document_length, bytes, length);
    document_length += length;
    return true;
}

/* What is called is legal more often than not: an illegal call must give JSON_MISUSE, not a broken document. */
static void write_one(struct json *json, struct bytes *input)
{
    const char *piece;
    char text[256];
    uint8_t op = take(input);
    if (op < 0x80 && json->depth && (json->objects >> (json->depth - 1) & 1) && !json->keyed) {
        take_text(input, take(input), text, sizeof text);
        json_key(json, text);
    }
    switch (op % 16) {
    case 0:
        json_object_begin(json);
        break;
    case 1:
        json_array_begin(json);
        break;
    case 2:
        json_object_end(json);
        break;
    case 3:
        json_array_end(json);
        break;
    case 4:
        take_text(input, take(input), text, sizeof text);
        json_key(json, text);
        break;
    case 5: {
        size_t length = take_piece(input, take(input), &piece);
        json_string_n(json, piece, length);
        break;
    }
    case 6:
        json_int(json, (int64_t)take_n(input, 8));
        break;
    case 7:
        json_uint(json, take_n(input, 8));
        break;
    case 8:
        json_decimal(json, (int64_t)take_n(input, 8), take(input) % 19);
        break;
    case 9: {
        uint64_t bits = take_n(input, 8);
        double value;
        memcpy(&value, &bits, sizeof value);
        json_double(json, value);
        break;
    }
    case 10:
        json_bool(json, take(input) & 1);
        break;
    case 11:
        json_null(json);
        break;
    case 12:
        json_uint_string(json, take_n(input, 8));
        break;
    case 13:
        json_hex_string(json, take_n(input, 8));
        break;
    case 14:
        json_string(json, NULL);
        break;
    default:
        take_text(input, take(input), text, sizeof text);
        json_string(json, text);
    }
}

static void check_text(const char *text, size_t length)
{
    for (size_t i = 0; i < length;) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x80) {
            ASSERT(c >= 0x20 && c != 0x7f);
            i++;
            continue;
        }
        size_t n = json_utf8_sequence((const unsigned char *)text + i, length - i);
        ASSERT(n >= 2 && n <= 4);
        i += n;
    }
}

static bool valid_utf8(const char *text, size_t length)
{
    for (size_t i = 0, n; i < length; i += n) {
        n = (unsigned char)text[i] < 0x80 ? 1
                                          : json_utf8_sequence((const unsigned char *)text + i, length - i);
        if (!n)
            return false;
    }
    return true;
}

/* One string, there and back. */
static void round_trip(const char *bytes, size_t length, size_t capacity)
{
    static char buffer[256];
    struct json_sink sink;
    struct json json;
    document_length = 0;
    json_sink_init(&sink, buffer, capacity, append, NULL);
    json_init(&json, &sink);
    json_array_begin(&json);
    json_string_n(&json, bytes, length);
    json_array_end(&json);
    ASSERT(json_end(&json) == JSON_OK);
    document[document_length] = 0;
    check_text(document, document_length);
    JSON_Value *value = json_parse_string(document);
    ASSERT(value);
    JSON_Array *array = json_value_get_array(value);
    ASSERT(array && json_array_get_count(array) == 1 && json_array_get_string(array, 0));
    if (valid_utf8(bytes, length)) {
        ASSERT(json_array_get_string_len(array, 0) == length);
        ASSERT(memcmp(json_array_get_string(array, 0), bytes, length) == 0);
    }
    json_value_free(value);
}

static void any_calls(struct bytes *input, size_t capacity)
{
    static char buffer[256];
    struct json_sink sink;
    struct json json;
    document_length = 0;
    json_sink_init(&sink, buffer, capacity, append, NULL);
    json_init(&json, &sink);
    while (input->left && sink.status == JSON_OK)
        write_one(&json, input);
    while (json.depth && sink.status == JSON_OK) { /* what is open is closed, most of the time */
        if (json.keyed)
            json_null(&json);
        if (json.objects >> (json.depth - 1) & 1)
            json_object_end(&json);
        else
            json_array_end(&json);
    }
    enum json_status status = json_end(&json);
    if (status != JSON_OK)
        return;
    document[document_length] = 0;
    check_text(document, document_length);
    JSON_Value *value = json_parse_string(document);
    ASSERT(value ||
           strstr(document, "\":")); /* a key twice in one object is the caller's doing, and parson's no */
    json_value_free(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes input = {data, size};
    uint8_t how = take(&input);
    if (how & 1)
        round_trip((const char *)input.at, input.left, 1 + how % 200u);
    else
        any_calls(&input, 1 + how % 200u);
    return 0;
}
