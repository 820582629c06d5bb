/* What a schema is compiled into; http/schema.c makes it, http/schema_check.c obeys it, nobody else includes it. */
#ifndef COPPICE_HTTP_SCHEMA_RULES_H
#define COPPICE_HTTP_SCHEMA_RULES_H

#include "http/schema.h"
#include "http/schema_text.h"
#include "runtime/hash.h"

/* Kinds of values as bits; true and false are one type, integers a part of the numbers. */
#define KIND(kind)   (1u << (kind))
#define KIND_INTEGER (1u << 7)
#define KINDS_ALL    (KIND(JSON_OBJECT + 1) - 1)

/* How another schema is asked about the same value. In a schema's list those of one role stand together. */
enum part_role { PART_ALL, PART_ANY, PART_ONE, PART_NOT, PART_IF, PART_THEN, PART_ELSE };

struct part {
    enum part_role role;
    const struct schema *schema;
};

/* The first sixteen bytes of a name. */
struct name_words {
    uint64_t low, high;
};

struct property {
    struct span name;            /* in the document, or in the block when it has escapes */
    struct name_words words;     /* of the name */
    const struct schema *schema; /* NULL: any */
    uint64_t required;           /* its bit in `seen`; 0: not required */
    bool declared;               /* in properties; else in required only */
};

/* A number that others are compared with. */
struct bound {
    const struct json_node *node; /* in the document; NULL: none */
    int64_t value;                /* when small */
    bool small;
};

enum bound_kind { BOUND_MINIMUM, BOUND_MAXIMUM, BOUND_ABOVE, BOUND_BELOW, BOUND_KINDS };

struct schema {
    const struct schemas *schemas;
    const struct json_node *node; /* in the document */
    uint16_t types;               /* KIND bits and KIND_INTEGER; 0: any */
    uint16_t kinds;               /* KIND bits that may be valid, all parts considered */
    uint8_t format;               /* enum text_format */
    uint8_t pattern;              /* enum text_pattern */
    uint8_t integer_bits;         /* 32, 64, or 0 */
    bool never;                   /* the schema false */
    bool nullable;
    bool finished; /* kinds is known */
    bool bounded;  /* any of bounds or multiple */
    bool unique;
    bool closed; /* no members beyond the properties */
    bool whole;  /* of the numbers integers alone */
    uint16_t
        quick; /* KIND bits of strings and numbers that need no more than a look at their length, or at the range below */
    int64_t sure_low, sure_high;     /* numbers from here to there are within all bounds; others may be */
    uint32_t length_min, length_max; /* of strings, in characters; UINT32_MAX: any */
    uint32_t elements_min, elements_max;
    uint32_t members_min, members_max;
    uint16_t properties_count, properties_max;
    uint16_t required_count;
    uint16_t parts_count;
    struct bound bounds[BOUND_KINDS];
    uint64_t multiple;             /* 0: any */
    const struct schema *elements; /* NULL: any */
    const struct schema *others;   /* of the members beyond the properties; NULL: any */
    struct property *properties;   /* those of `required` first, in its order */
    uint16_t *slots;               /* by property_hash: position + 1, or 0 */
    uint32_t slots_mask;
    uint64_t required; /* all bits that must be seen */
    struct part *parts;
    const struct json_node *values;   /* of enum: the array; NULL: any */
    const struct json_node *constant; /* NULL: any */
    struct schema *asked_by;          /* while kinds is being found: the way back */
    uint16_t visited;                 /* of the parts */
    bool on_way;
};

struct schemas {
    struct json_text document;
    uint32_t *of_node;  /* one more than the position in `all` of what a node was compiled into, or 0 */
    struct schema *all; /* in the order in which they were met */
    uint32_t count;     /* met */
    uint32_t done;      /* of those, compiled */
    bool broken;        /* one couldn't be compiled */
    size_t size;        /* of the block, this included */
    size_t nodes_size;  /* of the document's nodes, in bytes */
    char *free, *end;   /* what is left of it */
};

static inline struct name_words name_words_of(struct span name)
{
    struct name_words words;
    hash_load16(name.bytes, name.size, &words.low, &words.high);
    return words;
}

/* Names of properties are the contract's, so nobody has a hand in who collides with whom. */
static inline uint64_t property_hash(struct span name, struct name_words words)
{
    if (name.size > 16)
        words.high += hash_load64((const char *)name.bytes + name.size - 8);
    return hash_mix(words.low ^ 0x9e3779b97f4a7c15u, words.high + name.size + 0x243f6a8885a308d3u);
}

static inline bool property_is(const struct property *property, struct span name, struct name_words words)
{
    return property->words.low == words.low && property->words.high == words.high &&
           property->name.size == name.size &&
           (name.size <= 16 || memcmp(property->name.bytes, name.bytes, name.size) == 0);
}

#endif
