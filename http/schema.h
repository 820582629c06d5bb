/* Schemas: the JSON Schema of a contract, compiled at start into checks over json_text.
 *
 * Subset: true and false, type (one or several), required, properties, additionalProperties (boolean or schema), enum,
 * const, format (uuid, date-time, uri; int32 and int64 of numbers), minimum, maximum, exclusiveMinimum, exclusiveMaximum,
 * multipleOf (integers), minLength, maxLength, pattern (one of the few that are declared in schema_text.h), items,
 * minItems, maxItems, uniqueItems, minProperties, maxProperties, oneOf, anyOf, allOf, not, if/then/else, $ref (within the
 * document; recursion through it is allowed), nullable (null is valid, whatever else is asked). Annotations (title,
 * description, default, example, examples, deprecated, readOnly, writeOnly, $comment, x-...) are passed over. Any other
 * keyword is refused when compiling: a contract that isn't enforced whole doesn't start.
 *
 * Stricter than JSON Schema in two places: a number must be one that a double can hold (1e400 is refused), and an integer one
 * that 64 bits can hold, signed or not. format is enforced, never an annotation.
 *
 * Compiled at boot into one block; immutable afterwards, shared by all threads. Checking doesn't allocate and doesn't block.
 * It takes time linear in nodes times alternatives, and at most SCHEMA_STEPS_MAX steps, since schemas can be written that
 * ask the same again and again; its stack is bounded by SCHEMA_DEPTH_MAX schemas within each other. A value that would need
 * more of either is refused.
 */
#ifndef COPPICE_HTTP_SCHEMA_H
#define COPPICE_HTTP_SCHEMA_H

#include "http/json_text.h"

struct schema;  /* one compiled schema */
struct schemas; /* what a document's schemas were compiled into; owns them */

#define SCHEMA_STEPS_MAX    1000000u /* a schema asked about a value: one, and one for each child of the value */
#define SCHEMA_REQUIRED_MAX 64u      /* required members of one object: bits of a word */
#define SCHEMA_DEPTH_MAX    64u /* schemas asked within each other; each takes up to 600 bytes of stack */

/* `document` is the contract's JSON text, whole ($ref points into it); borrowed until schemas_destroy. NULL: the
 * sentence says what, and where (a JSON pointer). Allocates: boot only. */
struct schemas *schemas_create(struct span document, char *ret_text, size_t text_size);
void schemas_destroy(struct schemas *schemas);
const struct json_text *schemas_document(const struct schemas *schemas);
/* The schema at this JSON pointer ("/components/schemas/JobSubmitRequest"), compiled on demand with all it refers to; NULL and
 * a sentence. After a NULL for a schema that can't be compiled nothing more is compiled. One thread, before the first check. */
const struct schema *schemas_at(struct schemas *schemas, const char *pointer, char *ret_text,
                                size_t text_size);
/* The same for the schema that stands at this node of schemas_document. */
const struct schema *schemas_of_node(struct schemas *schemas, const struct json_node *node, char *ret_text,
                                     size_t text_size);

#define SCHEMA_DEFECTS_MAX 16u

enum schema_defect_kind {
    DEFECT_MISSING, /* a required member */
    DEFECT_TYPE,
    DEFECT_VALUE,  /* enum, const, oneOf, anyOf, not, false */
    DEFECT_FORMAT, /* format, pattern */
    DEFECT_RANGE,  /* numbers, lengths, counts */
    DEFECT_UNKNOWN /* a member that is not allowed */
};

struct schema_defect {
    enum schema_defect_kind kind;
    char pointer[128]; /* of the value, or of a missing member where it should be; perhaps cut off */
    char what[128];    /* "must be one of A, B, C": words of the contract only, nothing of the client's */
};

struct schema_result {
    bool valid;
    uint32_t
        count; /* defects found; the first SCHEMA_DEFECTS_MAX are kept, missing members (of an object in the order
                     * of `required`, outer objects first) before all others */
    struct schema_defect defects[SCHEMA_DEFECTS_MAX];
};

/* True: valid, and `ret` (may be NULL: only the answer is wanted) is not touched beyond .valid and .count. Any thread. */
bool schema_check(const struct schema *schema, const struct json_text *json, const struct json_node *node,
                  struct schema_result *ret);
/* A parameter or a header's value: plain text, which is what its schema's type makes of it. An integer is one as JSON writes
 * it, without fraction and exponent. The defect's pointer is empty. */
bool schema_check_text(const struct schema *schema, struct span text, struct schema_defect *ret_defect);

#endif
