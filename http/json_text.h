/* JSON from outside: read strictly, kept as a flat list of where each value stands in the text.
 *
 * One pass says whether the text is sound (RFC 8259 grammar, UTF-8, depth, sizes, duplicate keys, no NUL escapes, no
 * lone surrogates, no byte order mark, nothing behind the value) and leaves a node per value. Numbers stay text, so
 * that 2^53+1 and 129.95 are what the client wrote. Validators and handlers read the nodes; nothing is copied except a
 * string that holds escapes, when it is asked for. It is the only reader of the server; the tests compare it with parson
 * (docs/decisions/0017-json-text.md).
 *
 * Memory is the caller's. A node takes 16 bytes; JSON_TEXT_NODES_MAX of them 1 MiB. Reading needs some 5 KiB of stack, at
 * any depth. Nothing here allocates, blocks or keeps state; a text that was read may be looked at by many threads.
 */
#ifndef COPPICE_HTTP_JSON_TEXT_H
#define COPPICE_HTTP_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/span.h"

/* Hard limits; those of a call may be tighter, never wider. */
#define JSON_TEXT_DEPTH_MAX    64u /* containers within each other */
#define JSON_TEXT_NODES_MAX    65536u
#define JSON_TEXT_ELEMENTS_MAX 1000u /* of one array (CTL-058) */
#define JSON_TEXT_MEMBERS_MAX  1000u /* of one object */
#define JSON_TEXT_KEY_MAX      256u  /* bytes of a member's name as it is written */
#define JSON_TEXT_NUMBER_MAX   256u  /* bytes of a number */
#define JSON_TEXT_EXPONENT_MAX 9u    /* digits of an exponent, not counting leading zeros */

enum json_kind { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

/* In document order. The children of a container follow it; a member is its name (a JSON_STRING) and then its value. */
struct json_node {
    uint32_t at;     /* first byte in the text: of the quote, of the brace, ... */
    uint32_t length; /* bytes in the text, quotes and braces included */
    uint32_t next;   /* position of the node behind this one and all it holds */
    uint16_t count;  /* elements or members; 0 of all others */
    uint8_t kind;    /* enum json_kind */
    uint8_t flags;   /* JSON_ESCAPED and so on */
};
enum {
    JSON_ESCAPED = 1, /* a string with escapes */
    JSON_INTEGER = 2, /* a number without fraction or exponent */
    JSON_BARE = 4,    /* a string that stands there without quotes: json_text_bare */
    JSON_POWER = 8    /* a number with an exponent */
};

struct json_text {
    struct span text;
    struct json_node *nodes; /* the caller's */
    uint32_t nodes_max;
    uint32_t count;
    uint64_t seed; /* of the hash that finds duplicate names; chosen by the caller, secret */
};

struct json_limits {
    uint32_t depth, nodes, elements, members, key; /* 0: the limits above; a container as root has depth 1 */
};

struct json_error {
    uint32_t at;      /* byte */
    const char *what; /* static: "a member of this name was there before" */
    bool limit;       /* sound so far, but larger than allowed */
};

/* nodes, nodes_max (at least 1) and seed are set by the caller; the text is borrowed as long as the nodes are looked at.
 * False: *ret_error says where and why, and the nodes mean nothing. limits may be NULL. Names are compared without their
 * escapes, through a hash that the seed keys, so finding one that is there twice takes linear time whatever the names. */
bool json_text_read(struct json_text *json, struct span text, const struct json_limits *limits,
                    struct json_error *ret_error);
/* A text without quotes and escapes as if it had been read as a string: what a path or a query holds. */
void json_text_bare(struct json_text *json, struct json_node *node, struct span text);

static inline const struct json_node *json_root(const struct json_text *json)
{
    return &json->nodes[0];
}
/* The member's value, or NULL. Linear; the name is given without quotes or escapes. */
const struct json_node *json_member(const struct json_text *json, const struct json_node *object,
                                    const char *name);
/* for (child = json_first(j, node); child; child = json_after(j, node, child)); of an object these are names. */
static inline const struct json_node *json_first(const struct json_text *json,
                                                 const struct json_node *container)
{
    (void)json;
    return container->count ? container + 1 : NULL;
}
static inline const struct json_node *
json_after(const struct json_text *json, const struct json_node *container, const struct json_node *child)
{
    uint32_t next = container->kind == JSON_OBJECT ? child[1].next : child->next;
    return next < container->next ? &json->nodes[next] : NULL;
}
static inline const struct json_node *json_value_of(const struct json_node *name)
{
    return name + 1;
}
/* The text of a value as it stands there. */
static inline struct span json_raw_of(const struct json_text *json, const struct json_node *node)
{
    return span_of((const char *)json->text.bytes + node->at, node->length);
}
/* A string without quotes: as it stands in the text when it has no escapes, else written to room, which needs at most the
 * node's length. False: it does not fit. */
bool json_string_of(const struct json_text *json, const struct json_node *node, char *room, size_t size,
                    struct span *ret_text);
uint32_t json_string_characters(const struct json_text *json, const struct json_node *node); /* code points */

/* Exact, of the number's value: 1.0, 10e-1 and 1 are the same, and -0 is 0. False when it is no integer, or doesn't fit. */
bool json_int64_of(const struct json_text *json, const struct json_node *node, int64_t *ret_value);
bool json_uint64_of(const struct json_text *json, const struct json_node *node, uint64_t *ret_value);
bool json_integral(const struct json_text *json, const struct json_node *node); /* of any size */
/* The nearest double; 1e400 is infinite. */
double json_double_of(const struct json_text *json, const struct json_node *node);
/* As a double; without an exponent all are. */
bool json_power_finite(const struct json_text *json, const struct json_node *node);
static inline bool json_finite(const struct json_text *json, const struct json_node *node)
{
    return !(node->flags & JSON_POWER) || json_power_finite(json, node);
}
/* The largest integer that isn't above the number, and whether the number is more than that. False: it isn't written in a
 * way that says so at once (an exponent, more than 19 bytes); nothing follows from that. */
bool json_floor_of(const struct json_text *json, const struct json_node *node, int64_t *ret_floor,
                   bool *ret_more);
/* Below 0, 0 or above 0: exactly how two numbers compare. */
int json_number_compare(const struct json_text *a, const struct json_node *x, const struct json_text *b,
                        const struct json_node *y);

/* Deep; members in any order; 1, 1.0 and 1e0 are the same number. Linear when the members come in the same order, else
 * members times members of an object at worst. Recursive: up to JSON_TEXT_DEPTH_MAX calls. */
bool json_same(const struct json_text *a, const struct json_node *x, const struct json_text *b,
               const struct json_node *y);
/* No two elements of the array are the same. Linear but for the seed. */
bool json_unique(const struct json_text *json, const struct json_node *array);
/* The RFC 6901 pointer to a node (of a member's name: to the member), cut off at size - 1 bytes, never within a character,
 * with a 0 behind it. Walks from the root. */
void json_pointer_to(const struct json_text *json, const struct json_node *node, char *room, size_t size);

#endif
