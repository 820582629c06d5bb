/* Any bytes as JSON from outside. What is accepted has nodes that lie within each other as the header says, means what parson
 * makes of it, and each of its values is accepted alone as well; what is refused is refused at a byte of the text. */
#define json_string parson_json_string
#include <parson.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "http/json_text.h"
#include "runtime/assert.h"
#include "tests/fuzz/bytes.h"

enum { NODES = 4096 };
static struct json_node nodes[NODES], alone_nodes[NODES];

static void check_string(const struct json_text *json, const struct json_node *node, const char *parsons,
                         size_t parsons_length)
{
    char *room = malloc(node->length);
    struct span text;
    ASSERT(room && json_string_of(json, node, room, node->length, &text));
    ASSERT(text.size == parsons_length && (!text.size || memcmp(text.bytes, parsons, text.size) == 0));
    ASSERT(json_string_characters(json, node) <= text.size);
    free(room);
}

/* Below 0, 0, above 0: the number against this integer. */
static int compare_to(const struct json_text *json, const struct json_node *node, int64_t value)
{
    char text[24];
    struct json_node other;
    struct json_text one = {.nodes = &other, .nodes_max = 1};
    struct json_error error;
    snprintf(text, sizeof text, "%lld", (long long)value);
    ASSERT(json_text_read(&one, span_text(text), NULL, &error));
    return json_number_compare(json, node, &one, &other);
}

static void check_floor(const struct json_text *json, const struct json_node *node)
{
    int64_t floor;
    bool more;
    if (!json_floor_of(json, node, &floor, &more))
        return;
    ASSERT(more ? compare_to(json, node, floor) > 0 : compare_to(json, node, floor) == 0);
    ASSERT(floor == INT64_MAX || compare_to(json, node, floor + 1) < 0);
}

static void check_number(const struct json_text *json, const struct json_node *node, double parsons)
{
    int64_t value;
    uint64_t size;
    check_floor(json, node);
    ASSERT(json_double_of(json, node) == parsons);
    ASSERT(json_number_compare(json, node, json, node) == 0);
    if (json_int64_of(json, node, &value))
        ASSERT((double)value == parsons && json_integral(json, node));
    if (json_uint64_of(json, node, &size))
        ASSERT((double)size == parsons && json_integral(json, node));
}

static void check_against(const struct json_text *json, const struct json_node *node,
                          const JSON_Value *value);

static void check_object(const struct json_text *json, const struct json_node *node,
                         const JSON_Object *object)
{
    size_t position = 0;
    ASSERT(json_object_get_count(object) == node->count);
    for (const struct json_node *name = json_first(json, node); name; name = json_after(json, node, name)) {
        const char *parsons = json_object_get_name(object, position);
        check_string(json, name, parsons, strlen(parsons));
        ASSERT(json_member(json, node, parsons) == json_value_of(name));
        check_against(json, json_value_of(name), json_object_get_value_at(object, position));
        position++;
    }
    ASSERT(position == node->count);
}

static void check_against(const struct json_text *json, const struct json_node *node, const JSON_Value *value)
{
    size_t position = 0;
    switch ((enum json_kind)node->kind) {
    case JSON_NULL:
        ASSERT(json_value_get_type(value) == JSONNull);
        break;
    case JSON_FALSE:
    case JSON_TRUE:
        ASSERT(json_value_get_boolean(value) == (node->kind == JSON_TRUE));
        break;
    case JSON_NUMBER:
        check_number(json, node, json_value_get_number(value));
        break;
    case JSON_STRING:
        check_string(json, node, json_value_get_string(value), json_value_get_string_len(value));
        break;
    case JSON_ARRAY:
        for (const struct json_node *at = json_first(json, node); at; at = json_after(json, node, at))
            check_against(json, at, json_array_get_value(json_value_get_array(value), position++));
        ASSERT(position == node->count && json_array_get_count(json_value_get_array(value)) == position);
        json_unique(json, node);
        break;
    case JSON_OBJECT:
        check_object(json, node, json_value_get_object(value));
        break;
    }
}

/* Each node lies in the one that holds it, and alone it is sound and the same. */
static void check_nodes(const struct json_text *json)
{
    struct json_text alone = {.nodes = alone_nodes, .nodes_max = NODES, .seed = 1};
    struct json_error error;
    char pointer[64];
    size_t work = 0;
    for (uint32_t i = 0; i < json->count; i++) {
        const struct json_node *node = &json->nodes[i];
        ASSERT(node->length && node->at + node->length <= json->text.size);
        ASSERT(node->next > i && node->next <= json->count);
        ASSERT(i == 0 || node->at > json->nodes[0].at);
        if ((work += node->length) > 1u << 16)
            continue;
        ASSERT(json_text_read(&alone, json_raw_of(json, node), NULL, &error));
        ASSERT(alone.count == node->next - i && json_same(json, node, &alone, json_root(&alone)));
        json_pointer_to(json, node, pointer, sizeof pointer);
        ASSERT(memchr(pointer, 0, sizeof pointer) && (i == 0 || pointer[0] == '/'));
    }
}

/* parson refuses what strtod calls out of range, which is sound. */
static bool beyond_doubles(const struct json_text *json)
{
    for (uint32_t i = 0; i < json->count; i++) {
        double value;
        if (json->nodes[i].kind != JSON_NUMBER)
            continue;
        value = json_double_of(json, &json->nodes[i]);
        if (isinf(value) || fabs(value) < 1e-300)
            return true;
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json_text json = {.nodes = nodes, .nodes_max = NODES, .seed = 0x5eed};
    struct json_error error = {.at = UINT32_MAX};
    JSON_Value *value;
    char *whole;
    if (!json_text_read(&json, span_of(data, size), NULL, &error)) {
        ASSERT(error.at <= size && error.what && json.count == 0);
        return 0;
    }
    ASSERT(json.count && json_root(&json)->next == json.count);
    check_nodes(&json);
    whole = malloc(size + 1);
    ASSERT(whole);
    memcpy(whole, data, size);
    whole[size] = 0;
    value = json_parse_string(whole);
    ASSERT(value || beyond_doubles(&json));
    if (value)
        check_against(&json, json_root(&json), value);
    json_value_free(value);
    free(whole);
    return 0;
}
