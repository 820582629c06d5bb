/* Any bytes as a record: what decodes keeps every limit, and becomes the same bytes again; what was written in an older
 * version is the same record in the newest. Its JSON is one line, and an independent reader finds the texts in it. */
#define json_string parson_json_string
#include <parson.h>
#undef json_string
#include <stdlib.h>
#include "runtime/assert.h"
#include "store/record.h"
#include "tests/fuzz/bytes.h"

#define ANY_FIELDS(X)      \
    X(u8, U8, 0, 1)        \
    X(title, TEXT, 20, 1)  \
    X(u16, U16, 0, 1)      \
    X(u32, U32, 0, 1)      \
    X(body, BYTES, 300, 1) \
    X(u64, U64, 0, 1)      \
    X(i64, I64, 0, 2)      \
    X(at, TIME, 0, 2)      \
    X(more, JSON, 50, 2)   \
    X(id, UUID, 0, 3)      \
    X(sum, DIGEST, 0, 3)   \
    X(note, TEXT, 1000, 3)
RECORD_STRUCT(any, ANY_FIELDS);
#define any_FIELD(name, TYPE, limit, since) RECORD_FIELD(any, name, TYPE, limit, since)
RECORD_CLASS(any, ANY_FIELDS, 3);

static void check_limits(const struct any *any, uint8_t version)
{
    ASSERT(record_refused(&any_record, any) == NULL);
    ASSERT(any->title.size <= 20 && any->body.size <= 300 && any->more.size <= 50 && any->note.size <= 1000);
    ASSERT(!any->title.size || !memchr(any->title.bytes, 0, any->title.size));
    if (version < 3)
        ASSERT(!any->note.size && !any->sum.bytes[0] && uuid_equal(&any->id, &(struct uuid){{0}}));
    if (version < 2)
        ASSERT(!any->i64 && !any->at && !any->more.size);
}

static void check_bytes(const struct any *any, uint8_t version, struct span from)
{
    static uint8_t bytes[4096], again[4096];
    struct any decoded;
    size_t size = record_encode(&any_record, any, bytes, sizeof bytes);
    ASSERT(size > 0 && size == record_size(&any_record, any));
    if (version == any_record.version)
        ASSERT(span_equal(span_of(bytes, size), from));
    ASSERT(record_encode(&any_record, any, again, size - 1) == 0);
    ASSERT(record_decode(&any_record, any_record.version, span_of(bytes, size), &decoded) == OK);
    ASSERT(record_encode(&any_record, &decoded, again, size) == size && memcmp(bytes, again, size) == 0);
}

/* The document without the JSON field, which nobody has checked here; then with it. */
static void check_json(const struct any *any)
{
    static char document[8192];
    struct any shown = *any;
    for (int with = 0; with < 2; with++) {
        struct json_sink sink;
        struct json json;
        shown.more = with ? any->more : span_of(NULL, 0);
        json_sink_init(&sink, document, sizeof document - 1, NULL, NULL);
        json_init(&json, &sink);
        json_object_begin(&json);
        record_write_json(&any_record, &shown, &json);
        json_object_end(&json);
        ASSERT(json_end(&json) == JSON_OK);
        for (size_t i = 0; i < sink.length; i++)
            ASSERT((unsigned char)document[i] >= 0x20);
        document[sink.length] = 0;
        if (with)
            continue;
        JSON_Value *value = json_parse_string(document);
        JSON_Object *object = json_value_get_object(value);
        ASSERT(object && json_object_get_count(object) == any_record.count);
        const char *note = json_object_get_string(object, "note");
        ASSERT(note && span_equal(any->note, span_text(note)));
        ASSERT(json_object_get_string_len(object, "body") == (any->body.size + 2) / 3 * 4);
        ASSERT(json_object_get_string_len(object, "sum") == 64);
        json_value_free(value);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes input = {data, size};
    uint8_t version = take(&input);
    struct span from = span_of(input.at, input.left);
    struct any any, before;
    memset(&any, version, sizeof any);
    memcpy(&before, &any, sizeof any);
    enum error e = record_decode(&any_record, version, from, &any);
    if (e != OK) {
        ASSERT(e == (version > any_record.version ? ERR_NEWER : ERR_DAMAGED));
        ASSERT(memcmp(&any, &before, sizeof any) == 0);
        return 0;
    }
    check_limits(&any, version);
    check_bytes(&any, version, from);
    check_json(&any);
    return 0;
}
