/* A contract's schema and a value for it, both any bytes, with a NUL between them: the schema compiles or a sentence says why
 * not; whoever asks why a value is wrong is told something, in words that end, and never anything of a valid one. */
#include <stdlib.h>
#include "http/schema.h"
#include "runtime/assert.h"
#include "tests/fuzz/bytes.h"

enum { NODES = 4096 };

static void check_defect(const struct schema_defect *defect)
{
    ASSERT(defect->kind <= DEFECT_UNKNOWN);
    ASSERT(memchr(defect->pointer, 0, sizeof defect->pointer) &&
           memchr(defect->what, 0, sizeof defect->what));
    ASSERT(defect->what[0] && (!defect->pointer[0] || defect->pointer[0] == '/'));
}

static void check_value(const struct schema *schema, struct span text)
{
    static struct json_node nodes[NODES];
    struct json_text json = {.nodes = nodes, .nodes_max = NODES, .seed = 0x5eed};
    struct schema_result result;
    struct json_error error;
    bool valid, others = false;
    if (!json_text_read(&json, text, NULL, &error))
        return;
    memset(&result, 0xee, sizeof result);
    valid = schema_check(schema, &json, json_root(&json), &result);
    ASSERT(valid == schema_check(schema, &json, json_root(&json), NULL));
    ASSERT(valid == result.valid && valid == (result.count == 0));
    for (uint32_t i = 0; i < result.count && i < SCHEMA_DEFECTS_MAX; i++) {
        check_defect(&result.defects[i]);
        ASSERT(!others || result.defects[i].kind != DEFECT_MISSING);
        others |= result.defects[i].kind != DEFECT_MISSING;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *between = size ? memchr(data, 0, size) : NULL;
    size_t document_size = between ? (size_t)(between - data) : size;
    struct span value = between ? span_of(between + 1, size - document_size - 1) : span_of(data, 0);
    struct schema_defect defect;
    const struct schema *schema;
    char why[256] = "", *document;
    struct schemas *schemas;
    if (document_size > 1u << 16)
        return 0;
    document = malloc(document_size + 1);
    ASSERT(document);
    memcpy(document, data, document_size);
    schemas = schemas_create(span_of(document, document_size), why, sizeof why);
    schema = schemas ? schemas_at(schemas, "", why, sizeof why) : NULL;
    ASSERT(schema || why[0]);
    if (schema) {
        check_value(schema, value);
        memset(&defect, 0xee, sizeof defect);
        if (!schema_check_text(schema, value, &defect))
            check_defect(&defect);
    }
    schemas_destroy(schemas);
    free(document);
    return 0;
}
