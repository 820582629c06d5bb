/* Schemas: what each keyword accepts and refuses, with the words it says; which contracts don't compile; the contracts of this
 * house with bodies as clients send them. */
#include "acutest.h"

#include "http/schema.h"
#include "http/schema_text.h"

static struct json_node nodes[JSON_TEXT_NODES_MAX];
static char why[512];

static struct json_text read_value(const char *text)
{
    struct json_text json = {.nodes = nodes, .nodes_max = JSON_TEXT_NODES_MAX, .seed = 1};
    struct json_error error = {.what = ""};
    TEST_ASSERT_(json_text_read(&json, span_text(text), NULL, &error), "%s: %s at %u", text, error.what,
                 error.at);
    return json;
}

/* All defects as "KIND pointer: what; KIND pointer: what". */
static const char *defects_of(const struct schema *schema, const char *value)
{
    static const char *const kinds[] = {"MISSING", "TYPE", "VALUE", "FORMAT", "RANGE", "UNKNOWN"};
    static char text[8192];
    static struct schema_result result;
    struct json_text json = read_value(value);
    size_t length = 0;
    bool valid;
    memset(&result, 'x', sizeof result);
    valid = schema_check(schema, &json, json_root(&json), &result);
    TEST_CHECK(valid == result.valid && schema_check(schema, &json, json_root(&json), NULL) == valid);
    TEST_CHECK(valid == (result.count == 0));
    text[0] = 0;
    if (valid) {
        TEST_CHECK(result.defects[0].pointer[0] == 'x');
        return text;
    }
    for (uint32_t i = 0; i < result.count && i < SCHEMA_DEFECTS_MAX; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s %s: %s", i ? "; " : "",
                                   kinds[result.defects[i].kind], result.defects[i].pointer,
                                   result.defects[i].what);
    return text;
}

/* The same answer when the value stands within another: those are looked at in a shorter way first. */
static void check_within(const char *schema_text, const char *value, bool valid)
{
    static const char *const around[][2] = {{"{\"items\":%s}", "[%s]"},
                                            {"{\"additionalProperties\":%s}", "{\"a\":%s}"},
                                            {"{\"properties\":{\"a\":%s}}", "{\"b\":7,\"a\":%s}"}};
    char schema_room[4096], value_room[4096];
    if (strstr(schema_text, "$ref") || strlen(schema_text) + strlen(value) > 4000)
        return;
    for (size_t i = 0; i < sizeof around / sizeof *around; i++) {
        snprintf(schema_room, sizeof schema_room, around[i][0], schema_text);
        snprintf(value_room, sizeof value_room, around[i][1], value);
        struct schemas *schemas = schemas_create(span_text(schema_room), why, sizeof why);
        const struct schema *schema = schemas ? schemas_at(schemas, "", why, sizeof why) : NULL;
        TEST_ASSERT_(schema != NULL, "%s: %s", schema_room, why);
        struct json_text json = read_value(value_room);
        TEST_CHECK_(schema_check(schema, &json, json_root(&json), NULL) == valid, "%s of %s", schema_room,
                    value_room);
        schemas_destroy(schemas);
    }
}

static void check_case(const char *schema_text, const char *value, const char *wanted)
{
    struct schemas *schemas = schemas_create(span_text(schema_text), why, sizeof why);
    const struct schema *schema = schemas ? schemas_at(schemas, "", why, sizeof why) : NULL;
    const char *got;
    TEST_ASSERT_(schema != NULL, "%s: %s", schema_text, why);
    got = defects_of(schema, value);
    TEST_CHECK_(strcmp(got, wanted) == 0, "%s\n    of %s\n    says \"%s\"\n    not  \"%s\"", schema_text,
                value, got, wanted);
    schemas_destroy(schemas);
    check_within(schema_text, value, wanted[0] == 0);
}

struct one {
    const char *schema, *value, *defects;
};

static void check_all(const struct one *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check_case(cases[i].schema, cases[i].value, cases[i].defects);
}
#define CHECK_ALL(cases) check_all((cases), sizeof(cases) / sizeof *(cases))

static void types(void)
{
    static const struct one cases[] = {
        {"true", "[1]", ""},
        {"{}", "null", ""},
        {"false", "1", "VALUE : is not allowed"},
        {"{\"type\":\"string\"}", "\"\"", ""},
        {"{\"\\u0074ype\":\"string\"}", "1", "TYPE : must be a string"},
        {"{\"type\":\"string\"}", "1", "TYPE : must be a string"},
        {"{\"type\":\"number\"}", "-1.5e3", ""},
        {"{\"type\":\"number\"}", "\"1\"", "TYPE : must be a number"},
        {"{\"type\":\"number\"}", "1e308", ""},
        {"{\"type\":\"number\"}", "1.7976931348623157e308", ""},
        {"{\"type\":\"number\"}", "1.8e308", "RANGE : is no number that can be held"},
        {"{\"type\":\"number\"}", "1e400", "RANGE : is no number that can be held"},
        {"{}", "-1e400", "RANGE : is no number that can be held"},
        {"{\"type\":\"number\"}", "1e-400", ""},
        {"{\"type\":\"integer\"}", "-0", ""},
        {"{\"type\":\"integer\"}", "1.0", ""},
        {"{\"type\":\"integer\"}", "1.5", "TYPE : must be an integer"},
        {"{\"type\":\"integer\"}", "9007199254740993", ""},
        {"{\"type\":\"integer\"}", "18446744073709551615", ""},
        {"{\"type\":\"integer\"}", "18446744073709551616", "RANGE : must be an integer of 64 bits"},
        {"{\"type\":\"integer\"}", "-9223372036854775808", ""},
        {"{\"type\":\"integer\"}", "-9223372036854775809", "RANGE : must be an integer of 64 bits"},
        {"{\"type\":\"integer\"}", "1e400", "RANGE : must be an integer of 64 bits"},
        {"{\"type\":\"integer\"}", "1e19", ""},
        {"{\"type\":\"integer\"}", "1e20", "RANGE : must be an integer of 64 bits"},
        {"{\"type\":[\"integer\",\"number\"]}", "1e20", ""},
        {"{\"type\":\"boolean\"}", "true", ""},
        {"{\"type\":\"boolean\"}", "false", ""},
        {"{\"type\":\"boolean\"}", "0", "TYPE : must be true or false"},
        {"{\"type\":\"null\"}", "null", ""},
        {"{\"type\":\"null\"}", "0", "TYPE : must be null"},
        {"{\"type\":\"array\"}", "[]", ""},
        {"{\"type\":\"array\"}", "{}", "TYPE : must be an array"},
        {"{\"type\":\"object\"}", "{}", ""},
        {"{\"type\":\"object\"}", "[]", "TYPE : must be an object"},
        {"{\"type\":[\"string\",\"null\"]}", "null", ""},
        {"{\"type\":[\"string\",\"null\"]}", "1", "TYPE : must be a string or null"},
        {"{\"type\":\"string\",\"nullable\":true}", "null", ""},
        {"{\"type\":\"string\",\"nullable\":false}", "null", "TYPE : must be a string"},
        {"{\"type\":\"string\",\"enum\":[\"a\"],\"nullable\":true}", "null", ""},
        {"{\"$ref\":\"#/x-s\",\"nullable\":true,\"x-s\":{\"type\":\"string\"}}", "null", ""},
        {"{\"$ref\":\"#/x-s\",\"nullable\":true,\"x-s\":{\"type\":\"string\"}}", "1",
         "TYPE : must be a string"},
    };
    CHECK_ALL(cases);
}

static void values(void)
{
    static const struct one cases[] = {
        {"{\"enum\":[\"A\",\"B\",\"C\"]}", "\"B\"", ""},
        {"{\"enum\":[\"A\",\"B\",\"C\"]}", "\"\\u0043\"", ""},
        {"{\"enum\":[\"\\u0041\",1]}", "\"A\"", ""},
        {"{\"enum\":[\"A\",\"B\",\"C\"]}", "\"D\"", "VALUE : must be one of A, B, C"},
        {"{\"enum\":[\"A\",1,null,[1],\"\"]}", "[2]", "VALUE : must be one of A, 1, null, [1], \"\""},
        {"{\"enum\":[1]}", "1.0", ""},
        {"{\"enum\":[[1,{\"a\":2,\"b\":3}]]}", "[1,{\"b\":3,\"a\":2}]", ""},
        {"{\"const\":\"*\"}", "\"*\"", ""},
        {"{\"const\":\"*\"}", "\"secret\"", "VALUE : must be *"},
        {"{\"const\":true}", "1", "VALUE : must be true"},
        {"{\"const\":9007199254740993}", "9007199254740992", "VALUE : must be 9007199254740993"},
        {"{\"enum\":[\"01234567890123456789012345678901234567890123456789\","
         "\"01234567890123456789012345678901234567890123\","
         "\"0123456789\",\"x\",\"y\"]}",
         "0",
         "VALUE : must be one of 01234567890123456789012345678901234567890123456789, "
         "01234567890123456789012345678901234567890123, ..."},
    };
    CHECK_ALL(cases);
}

static void a_value_longer_than_a_sentence(void)
{
    char schema[256], value[256];
    snprintf(schema, sizeof schema, "{\"enum\":[\"%0150d\",\"b\"]}", 0);
    check_case(schema, "\"b\"", "");
    check_case(schema, "\"c\"", "VALUE : must be one of ...");
    snprintf(value, sizeof value, "\"%0150d\"", 0);
    check_case(schema, value, "");
}

static void numbers(void)
{
    static const struct one cases[] = {
        {"{\"minimum\":0}", "0", ""},
        {"{\"minimum\":0}", "-0", ""},
        {"{\"minimum\":0}", "-1", "RANGE : must be at least 0"},
        {"{\"minimum\":0}", "-1e-400", "RANGE : must be at least 0"},
        {"{\"minimum\":0}", "\"text\"", ""},
        {"{\"minimum\":1.5}", "1.50", ""},
        {"{\"minimum\":1.5}", "1.4999999999999999999999", "RANGE : must be at least 1.5"},
        {"{\"maximum\":9007199254740992}", "9007199254740993", "RANGE : must be at most 9007199254740992"},
        {"{\"maximum\":99999999999999999999}", "99999999999999999999", ""},
        {"{\"maximum\":10}", "1e1", ""},
        {"{\"maximum\":10}", "10.01", "RANGE : must be at most 10"},
        {"{\"maximum\":10}", "10.0", ""},
        {"{\"maximum\":10}", "9.99", ""},
        {"{\"minimum\":3,\"maximum\":2}", "2", "RANGE : must be at least 3"},
        {"{\"exclusiveMaximum\":3}", "2.5", ""},
        {"{\"exclusiveMaximum\":-9223372036854775808}", "-9223372036854775808",
         "RANGE : must be below -9223372036854775808"},
        {"{\"exclusiveMinimum\":9223372036854775807}", "9223372036854775807",
         "RANGE : must be above 9223372036854775807"},
        {"{\"exclusiveMinimum\":9223372036854775807}", "9223372036854775807.5", ""},
        {"{\"type\":\"integer\",\"minimum\":1}", "1.0", ""},
        {"{\"type\":\"integer\",\"minimum\":1}", "1.5", "TYPE : must be an integer"},
        {"{\"type\":\"integer\"}", "99999999999999999999", "RANGE : must be an integer of 64 bits"},
        {"{\"exclusiveMinimum\":0}", "0", "RANGE : must be above 0"},
        {"{\"exclusiveMinimum\":0}", "0.1", ""},
        {"{\"exclusiveMaximum\":1}", "1.0", "RANGE : must be below 1"},
        {"{\"exclusiveMaximum\":1}", "0.99", ""},
        {"{\"exclusiveMinimum\":0}", "0.000000000000000001", ""},
        {"{\"exclusiveMaximum\":1}", "0.99999999999999999999", ""},
        {"{\"minimum\":0}", "-0.5", "RANGE : must be at least 0"},
        {"{\"minimum\":-1}", "-0.5", ""},
        {"{\"minimum\":-1}", "-1.5", "RANGE : must be at least -1"},
        {"{\"maximum\":-1}", "-0.5", "RANGE : must be at most -1"},
        {"{\"maximum\":-1}", "-1.5", ""},
        {"{\"exclusiveMinimum\":-2}", "-2.0", "RANGE : must be above -2"},
        {"{\"exclusiveMaximum\":-1}", "-1.000000000000001", ""},
        {"{\"maximum\":9223372036854775807}", "9223372036854775808",
         "RANGE : must be at most 9223372036854775807"},
        {"{\"minimum\":-9223372036854775808}", "-9223372036854775809",
         "RANGE : must be at least -9223372036854775808"},
        {"{\"multipleOf\":5}", "15.5", "RANGE : must be a multiple of 5"},
        {"{\"format\":\"int32\"}", "2147483647.5", "RANGE : must be an integer of 32 bits"},
        {"{\"multipleOf\":5}", "15", ""},
        {"{\"multipleOf\":5}", "-15", ""},
        {"{\"multipleOf\":5}", "-9223372036854775805", ""},
        {"{\"multipleOf\":5}", "16", "RANGE : must be a multiple of 5"},
        {"{\"multipleOf\":5}", "7.5", "RANGE : must be a multiple of 5"},
        {"{\"multipleOf\":5}", "18446744073709551615", ""},
        {"{\"type\":\"integer\",\"format\":\"int32\"}", "2147483647", ""},
        {"{\"type\":\"integer\",\"format\":\"int32\"}", "2147483648",
         "RANGE : must be an integer of 32 bits"},
        {"{\"type\":\"integer\",\"format\":\"int32\"}", "-2147483648", ""},
        {"{\"type\":\"integer\",\"format\":\"int64\"}", "9223372036854775807", ""},
        {"{\"type\":\"integer\",\"format\":\"int64\"}", "9223372036854775808",
         "RANGE : must be an integer of 64 bits"},
    };
    CHECK_ALL(cases);
}

static void strings(void)
{
    static const struct one cases[] = {
        {"{\"minLength\":1}", "\"\"", "RANGE : must have at least 1 character"},
        {"{\"minLength\":2}", "\"\xf0\x9f\x98\x80\"", "RANGE : must have at least 2 characters"},
        {"{\"minLength\":2}", "\"\\ud83d\\ude00\"", "RANGE : must have at least 2 characters"},
        {"{\"minLength\":2}", "\"\xc3\xa9\xc3\xa9\"", ""},
        {"{\"maxLength\":2}", "\"\xf0\x9f\x98\x80\xf0\x9f\x98\x80\"", ""},
        {"{\"maxLength\":2}", "\"\\ud83d\\ude00\\n\"", ""},
        {"{\"maxLength\":2}", "\"abc\"", "RANGE : must have at most 2 characters"},
        {"{\"maxLength\":1}", "\"ab\"", "RANGE : must have at most 1 character"},
        {"{\"maxLength\":0}", "\"\"", ""},
        {"{\"maxLength\":0}", "[1]", ""},
        {"{\"format\":\"uuid\"}", "\"0d9f3f0a-2b1c-4d5e-8F90-123456789ABC\"", ""},
        {"{\"format\":\"uuid\"}", "\"0d9f3f0a\\u002d2b1c-4d5e-8f90-123456789abc\"", ""},
        {"{\"format\":\"uuid\"}", "\"0d9f3f0a-2b1c-4d5e-8f90-123456789abg\"", "FORMAT : must be a UUID"},
        {"{\"format\":\"uuid\"}", "7", ""},
        {"{\"format\":\"date-time\"}", "\"2026-11-18T16:00:00Z\"", ""},
        {"{\"format\":\"date-time\"}", "\"2026-11-18\"", "FORMAT : must be an RFC 3339 date and time"},
        {"{\"format\":\"uri\"}", "\"https:\\/\\/example.org\\/a?b#c\"", ""},
        {"{\"format\":\"uri\"}", "\"example.org\"", "FORMAT : must be an absolute URI"},
        {"{\"pattern\":\"^[\\\\x21-\\\\x7e]+$\"}", "\"a~!\"", ""},
        {"{\"pattern\":\"^[\\\\x21-\\\\x7e]+$\"}", "\"a b\"",
         "FORMAT : must be visible ASCII without spaces"},
        {"{\"pattern\":\"Z$\",\"format\":\"date-time\"}", "\"2026-11-18T16:00:00+01:00\"",
         "FORMAT : must end in Z"},
    };
    CHECK_ALL(cases);
}

/* A string whose escapes don't fit into the room for them can't be looked at: it is refused. */
static void long_string_with_escapes(void)
{
    static char value[8192];
    value[0] = '"';
    memset(value + 1, 'a', 5000);
    memcpy(value + 5001, "\\n\"", 4);
    check_case("{\"pattern\":\"Z$\"}", value, "FORMAT : is too long");
    check_case("{\"maxLength\":5001}", value, "");
    check_case("{\"maxLength\":5000}", value, "RANGE : must have at most 5000 characters");
}

static void arrays(void)
{
    static const struct one cases[] = {
        {"{\"items\":{\"type\":\"string\"}}", "[\"a\",\"b\"]", ""},
        {"{\"items\":{\"type\":\"string\"}}", "[\"a\",1,\"b\",null]",
         "TYPE /1: must be a string; TYPE /3: must be a string"},
        {"{\"items\":{\"type\":\"string\"}}", "{\"a\":1}", ""},
        {"{\"items\":false}", "[]", ""},
        {"{\"items\":false}", "[1]", "VALUE /0: is not allowed"},
        {"{\"minItems\":1}", "[]", "RANGE : must have at least 1 element"},
        {"{\"minItems\":2}", "[1]", "RANGE : must have at least 2 elements"},
        {"{\"maxItems\":2}", "[1,2,3]", "RANGE : must have at most 2 elements"},
        {"{\"uniqueItems\":true}", "[1,\"1\",[1],{\"a\":1},true,null]", ""},
        {"{\"uniqueItems\":true}", "[1,2,1.0]", "VALUE : must not hold the same twice"},
        {"{\"uniqueItems\":true}", "[{\"a\":1,\"b\":2},{\"b\":2,\"a\":1}]",
         "VALUE : must not hold the same twice"},
        {"{\"uniqueItems\":false}", "[1,1]", ""},
    };
    CHECK_ALL(cases);
}

static void objects(void)
{
    static const struct one cases[] = {
        {"{\"required\":[\"a\",\"b\"]}", "{\"b\":1,\"a\":null}", ""},
        {"{\"required\":[\"a\",\"b\"]}", "{}", "MISSING /a: is required; MISSING /b: is required"},
        {"{\"required\":[\"a\"]}", "[]", ""},
        {"{\"required\":[\"x/y~\"]}", "{}", "MISSING /x~1y~0: is required"},
        {"{\"properties\":{\"a\":{\"type\":\"string\"}}}", "{\"a\":\"\",\"b\":1}", ""},
        {"{\"properties\":{\"a\":{\"type\":\"string\"}}}", "{\"\\u0061\":1}", "TYPE /a: must be a string"},
        {"{\"properties\":{\"a\":true,\"b\":{\"type\":\"string\"}}}", "{\"\\u0062\":1}",
         "TYPE /b: must be a string"},
        {"{\"properties\":{\"\\u0061\":{\"type\":\"string\"}}}", "{\"a\":1}", "TYPE /a: must be a string"},
        {"{\"properties\":{\"a\":true},\"additionalProperties\":false}", "{\"a\":1}", ""},
        {"{\"properties\":{\"a\":true},\"additionalProperties\":false}", "{\"a\":1,\"b\":2,\"\\u0063\":3}",
         "UNKNOWN /b: is not known here; UNKNOWN /c: is not known here"},
        {"{\"required\":[\"a\"],\"additionalProperties\":false}", "{\"a\":1}",
         "UNKNOWN /a: is not known here"},
        {"{\"properties\":{\"a\":true},\"additionalProperties\":{\"type\":\"integer\"}}",
         "{\"a\":\"\",\"b\":2}", ""},
        {"{\"properties\":{\"a\":true},\"additionalProperties\":{\"type\":\"integer\"}}", "{\"b\":\"\"}",
         "TYPE /b: must be an integer"},
        {"{\"required\":[\"b\"],\"additionalProperties\":{\"type\":\"integer\"}}", "{\"b\":\"\"}",
         "TYPE /b: must be an integer"},
        {"{\"additionalProperties\":true,\"properties\":{\"a\":false}}", "{\"b\":1}", ""},
        {"{\"additionalProperties\":true,\"properties\":{\"a\":false}}", "{\"a\":1}",
         "VALUE /a: is not allowed"},
        {"{\"additionalProperties\":false}", "{\"a\":1}", "UNKNOWN /a: is not known here"},
        {"{\"required\":[\"a\",\"b\"]}", "{\"\\u0061\":1}", "MISSING /b: is required"},
        {"{\"required\":[\"the same at first, 1\",\"the same at first, 2\"]}", "{\"the same at first, 2\":1}",
         "MISSING /the same at first, 1: is required"},
        {"{\"properties\":{\"the same at first, 1\":{\"type\":\"string\"},\"the same at first, "
         "2\":{\"type\":\"null\"}}}",
         "{\"the same at first, 2\":1}", "TYPE /the same at first, 2: must be null"},
        {"{\"properties\":{\"the same at first, 1\":{\"type\":\"string\"}},\"additionalProperties\":false}",
         "{\"the same at first, 2\":1}", "UNKNOWN /the same at first, 2: is not known here"},
        {"{\"minProperties\":1}", "{}", "RANGE : must have at least 1 member"},
        {"{\"maxProperties\":1}", "{\"a\":1,\"b\":1}", "RANGE : must have at most 1 member"},
        {"{\"properties\":{\"o\":{\"required\":[\"x\"]}},\"required\":[\"a\",\"o\"]}", "{\"o\":{\"y\":1}}",
         "MISSING /a: is required; MISSING /o/x: is required"},
    };
    CHECK_ALL(cases);
}

/* CTL-029, AMB-07: missing members first and in the schema's order, whatever else is wrong and wherever. */
static void missing_members_come_first(void)
{
    static const char schema[] =
        "{\"type\":\"object\",\"required\":[\"z\",\"a\",\"m\"],\"properties\":{\"a\":{\"type\":\"string\"},"
        "\"m\":{\"required\":[\"q\",\"p\"]},"
        "\"l\":{\"items\":{\"type\":\"string\"}}},\"additionalProperties\":{\"type\":\"string\"}}";
    check_case(schema, "{\"n\":1,\"m\":{}}",
               "MISSING /z: is required; MISSING /a: is required; MISSING /m/q: is required; MISSING /m/p: "
               "is required; "
               "TYPE /n: must be a string");
    check_case(schema,
               "{\"l\":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16],\"z\":\"\",\"a\":\"\",\"m\":{\"p\":0}}",
               "MISSING /m/q: is required; TYPE /l/0: must be a string; TYPE /l/1: must be a string; TYPE "
               "/l/2: must be a "
               "string; TYPE /l/3: must be a string; TYPE /l/4: must be a string; TYPE /l/5: must be a "
               "string; TYPE /l/6: "
               "must be a string; TYPE /l/7: must be a string; TYPE /l/8: must be a string; TYPE /l/9: must "
               "be a string; "
               "TYPE /l/10: must be a string; TYPE /l/11: must be a string; TYPE /l/12: must be a string; "
               "TYPE /l/13: must "
               "be a string; TYPE /l/14: must be a string");
}

/* There is room for so many, and for so much of each. */
static void missing_members_beyond_all_room(void)
{
    char schema[1024] = "{\"required\":[\"n0\"", wanted[4096] = "", value[512];
    for (unsigned i = 1; i < SCHEMA_DEFECTS_MAX + 2; i++)
        snprintf(schema + strlen(schema), sizeof schema - strlen(schema), ",\"n%u\"", i);
    strcat(schema, "]}");
    for (unsigned i = 0; i < SCHEMA_DEFECTS_MAX; i++)
        snprintf(wanted + strlen(wanted), sizeof wanted - strlen(wanted), "%sMISSING /n%u: is required",
                 i ? "; " : "", i);
    check_case(schema, "{}", wanted);
    snprintf(schema, sizeof schema, "{\"required\":[\"%0200d\"]}", 0);
    snprintf(wanted, sizeof wanted, "MISSING /%0125d: is required", 0);
    check_case(schema, "{}", wanted);
    snprintf(value, sizeof value, "{\"%0200d\":{}}", 0);
    snprintf(wanted, sizeof wanted, "MISSING /%0126d: is required", 0);
    check_case("{\"additionalProperties\":{\"required\":[\"a\"]}}", value, wanted);
}

static void parts(void)
{
    static const struct one cases[] = {
        {"{\"allOf\":[{\"type\":\"number\"},{\"minimum\":3}]}", "3", ""},
        {"{\"allOf\":[{\"maximum\":0},{\"minimum\":3}]}", "2",
         "RANGE : must be at most 0; RANGE : must be at least 3"},
        {"{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}", "3", ""},
        {"{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}", "3.5", "TYPE : must be an integer"},
        {"{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}", "[]",
         "TYPE : must be a string or a number"},
        {"{\"anyOf\":[{\"minimum\":1},{\"maximum\":5}]}", "3", ""},
        {"{\"oneOf\":[{\"minimum\":1},{\"maximum\":5}]}", "3",
         "VALUE : matches more than one of the alternatives"},
        {"{\"oneOf\":[{\"minimum\":3},{\"maximum\":1}]}", "2", "VALUE : matches none of the alternatives"},
        {"{\"oneOf\":[{\"type\":\"string\",\"format\":\"uuid\"},{\"type\":\"null\"}]}", "null", ""},
        {"{\"oneOf\":[{\"type\":\"string\",\"format\":\"uuid\"},{\"type\":\"null\"}]}", "\"x\"",
         "FORMAT : must be a UUID"},
        {"{\"oneOf\":[{\"type\":\"string\",\"format\":\"uuid\"},{\"type\":\"null\"}]}", "1",
         "TYPE : must be a string or null"},
        {"{\"oneOf\":[{\"enum\":[\"a\",\"b\"]},{\"type\":\"string\",\"const\":\"*\"}]}", "\"*\"", ""},
        {"{\"oneOf\":[{\"enum\":[\"a\",\"b\"]},{\"type\":\"string\",\"const\":\"*\"}]}", "\"c\"",
         "VALUE : must be one of a, b, *"},
        {"{\"oneOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]},{\"type\":\"null\"}]}",
         "{\"a\":1,\"b\":1}", "VALUE : matches more than one of the alternatives"},
        {"{\"oneOf\":[{\"type\":\"object\",\"required\":[\"a\"]},{\"type\":\"null\"}]}", "{}",
         "MISSING /a: is required"},
        {"{\"anyOf\":[{\"minimum\":1},{\"minimum\":3}],\"oneOf\":[{\"maximum\":5},{\"maximum\":1}]}", "2",
         ""},
        {"{\"anyOf\":[{\"minimum\":1},{\"minimum\":3}],\"oneOf\":[{\"maximum\":5},{\"maximum\":1}]}", "1",
         "VALUE : matches more than one of the alternatives"},
        {"{\"not\":{\"type\":\"string\"}}", "1", ""},
        {"{\"not\":{\"type\":\"string\"}}", "\"\"", "VALUE : is not allowed"},
        {"{\"if\":{\"properties\":{\"k\":{\"const\":1}}},\"then\":{\"required\":[\"a\"]},\"else\":{"
         "\"required\":[\"b\"]}}",
         "{\"k\":1}", "MISSING /a: is required"},
        {"{\"if\":{\"properties\":{\"k\":{\"const\":1}}},\"then\":{\"required\":[\"a\"]},\"else\":{"
         "\"required\":[\"b\"]}}",
         "{\"k\":2}", "MISSING /b: is required"},
        {"{\"if\":{\"properties\":{\"k\":{\"const\":1}}},\"then\":{\"required\":[\"a\"]},\"else\":{"
         "\"required\":[\"b\"]}}",
         "{\"k\":2,\"b\":0}", ""},
        {"{\"then\":{\"required\":[\"a\"]},\"if\":true}", "{}", "MISSING /a: is required"},
        {"{\"if\":false,\"then\":false}", "{}", ""},
        {"{\"oneOf\":[false,false]}", "1", "VALUE : matches none of the alternatives"},
        {"{\"anyOf\":[{\"anyOf\":[{\"const\":1},{\"const\":2}]},{\"const\":\"x\"}]}", "3",
         "VALUE : must be one of 1, 2"},
    };
    CHECK_ALL(cases);
}

static void references(void)
{
    static const struct one cases[] = {
        {"{\"$ref\":\"#/x-d/s\",\"x-d\":{\"s\":{\"type\":\"string\"}}}", "1", "TYPE : must be a string"},
        {"{\"$ref\":\"#/x-d/0\",\"x-d\":[{\"type\":\"string\"}]}", "1", "TYPE : must be a string"},
        {"{\"$ref\":\"#/x-d/a~1b~0c%7Bd%7d\",\"x-d\":{\"a/b~c{d}\":{\"type\":\"string\"}}}", "1",
         "TYPE : must be a string"},
        {"{\"$ref\":\"#/x-a\",\"minimum\":3,\"x-a\":{\"$ref\":\"#/"
         "x-b\",\"description\":\"\"},\"x-b\":{\"maximum\":1}}",
         "2", "RANGE : must be at least 3; RANGE : must be at most 1"},
        {"{\"properties\":{\"next\":{\"$ref\":\"#\"},\"v\":{\"type\":\"integer\"}}}",
         "{\"v\":1,\"next\":{\"v\":2,\"next\":{\"v\":\"\"}}}", "TYPE /next/next/v: must be an integer"},
        {"{\"items\":{\"$ref\":\"#/x-a\"},\"x-a\":{\"$ref\":\"#/x-b\"},\"x-b\":{\"minimum\":3}}", "[3,2]",
         "RANGE /1: must be at least 3"},
        {"{\"items\":{\"$ref\":\"#\"},\"type\":\"array\"}", "[[],[[]],[[1]]]",
         "TYPE /2/0/0: must be an array"},
        {"{\"$ref\":\"#\\/x-\\u0061\",\"x-a\":{\"type\":\"string\"}}", "1", "TYPE : must be a string"},
    };
    CHECK_ALL(cases);
}

static void what_does_not_compile(void)
{
    static const struct {
        const char *document, *why;
    } cases[] = {
        {"{\"type\":\"text\"}", "/type: this is no type"},
        {"{\"type\":[]}", "/type: a type is missing"},
        {"{\"type\":[\"string\",1]}", "/type/1: this is no type"},
        {"{\"types\":1}", "the document: the keyword \"types\" is not known"},
        {"{\"\":1}", "the document: the keyword \"\" is not known"},
        {"{\"xx\":1}", "the document: the keyword \"xx\" is not known"},
        {"{\"properties\":{\"a\":{\"prefixItems\":[]}}}",
         "/properties/a: the keyword \"prefixItems\" is not known"},
        {"{\"properties\":[]}", "/properties: must be an object"},
        {"{\"properties\":{\"a\":1}}", "/properties/a: a schema must be an object, true or false"},
        {"{\"required\":\"a\"}", "/required: must be an array of at most 64 names"},
        {"{\"required\":[1]}", "/required/0: must be a name"},
        {"{\"required\":[\"a\",\"\\u0061\"]}", "/required/1: this name was there before"},
        {"{\"items\":[{}]}", "/items: a schema must be an object, true or false"},
        {"{\"enum\":[]}", "/enum: must be an array with at least one value"},
        {"{\"enum\":1}", "/enum: must be an array with at least one value"},
        {"{\"format\":\"email\"}", "/format: a format that nobody checks here"},
        {"{\"format\":1}", "/format: a format that nobody checks here"},
        {"{\"pattern\":\"^a+$\"}", "/pattern: a pattern that nobody checks here (http/schema_text.h)"},
        {"{\"pattern\":1}", "/pattern: a pattern that nobody checks here (http/schema_text.h)"},
        {"{\"minimum\":\"0\"}", "/minimum: must be a number"},
        {"{\"exclusiveMinimum\":true}", "/exclusiveMinimum: must be a number"},
        {"{\"multipleOf\":0}", "/multipleOf: must be an integer above 0"},
        {"{\"multipleOf\":0.1}", "/multipleOf: must be an integer above 0"},
        {"{\"minLength\":-1}", "/minLength: must be an integer from 0 to 4294967294"},
        {"{\"maxItems\":4294967295}", "/maxItems: must be an integer from 0 to 4294967294"},
        {"{\"minItems\":2,\"maxItems\":1}", "the document: a minimum is above its maximum"},
        {"{\"minLength\":2,\"maxLength\":1}", "the document: a minimum is above its maximum"},
        {"{\"minProperties\":2,\"maxProperties\":1}", "the document: a minimum is above its maximum"},
        {"{\"uniqueItems\":1}", "/uniqueItems: must be true or false"},
        {"{\"nullable\":\"yes\"}", "/nullable: must be true or false"},
        {"{\"additionalProperties\":1}", "/additionalProperties: a schema must be an object, true or false"},
        {"{\"oneOf\":[]}", "/oneOf: must be an array with at least one schema"},
        {"{\"allOf\":{}}", "/allOf: must be an array with at least one schema"},
        {"{\"allOf\":[true,1]}", "/allOf/1: a schema must be an object, true or false"},
        {"{\"not\":1}", "/not: a schema must be an object, true or false"},
        {"{\"then\":{}}", "/then: there is no if beside it"},
        {"{\"else\":{}}", "/else: there is no if beside it"},
        {"{\"$ref\":1}", "/$ref: $ref must be a string, of at most 1024 bytes when it has escapes"},
        {"{\"$ref\":\"other.json#/a\"}", "/$ref: $ref must begin with #: it stays within the document"},
        {"{\"$ref\":\"#/nowhere\"}", "/$ref: $ref points to nothing"},
        {"{\"$ref\":\"#nowhere\"}", "/$ref: $ref points to nothing"},
        {"{\"$ref\":\"#/%zz\",\"x-d\":{}}", "/$ref: $ref points to nothing"},
        {"{\"$ref\":\"#/~2\"}", "/$ref: $ref points to nothing"},
        {"{\"$ref\":\"#/~\",\"x-d\":[{}]}", "/$ref: $ref points to nothing"},
        {"{\"$ref\":\"#/%\",\"x-d\":[{}]}", "/$ref: $ref points to nothing"},
        {"{\"$ref\":\"#/%4\",\"x-d\":[{}]}", "/$ref: $ref points to nothing"},
        {"{\"$ref\":\"#/%4z\",\"x-d\":[{}]}", "/$ref: $ref points to nothing"},
        {"{\"$ref\":\"#/%:0\",\"x-d\":[{}]}", "/$ref: $ref points to nothing"},
        {"{\"$ref\":\"#/%+0\",\"x-d\":[{}]}", "/$ref: $ref points to nothing"},
        {"{\"$ref\":\"#/%g0\",\"x-d\":[{}]}", "/$ref: $ref points to nothing"},
        {"{\"$ref\":\"#/%00\",\"x-d\":[{}]}", "/$ref: $ref points to nothing"},
        {"{\"$ref\":\"#/x-d/-\",\"x-d\":[{}]}", "/$ref: $ref points to nothing"},
        {"{\"$ref\":\"#/x-d/a\",\"x-d\":[{}]}", "/$ref: $ref points to nothing"},
        {"{\"$ref\":\"#/x-d/1x\",\"x-d\":[{}]}", "/$ref: $ref points to nothing"},
        {"{\"$ref\":\"\",\"x-d\":[{}]}", "/$ref: $ref must begin with #: it stays within the document"},
        {"{\"$ref\":\"#/nowhere\",\"minimum\":1}", "/$ref: $ref points to nothing"},
        {"{\"$ref\":\"#/x-d\",\"minimum\":1,\"x-d\":1}", "/x-d: a schema must be an object, true or false"},
        {"{\"$ref\":\"#/x-d/00\",\"x-d\":[{}]}", "/$ref: $ref points to nothing"},
        {"{\"$ref\":\"#/x-d/1\",\"x-d\":[{}]}", "/$ref: $ref points to nothing"},
        {"{\"$ref\":\"#/x-d\",\"x-d\":[{}]}", "/x-d: a schema must be an object, true or false"},
        {"{\"$ref\":\"#\"}", "the document: refers to itself without end"},
        {"{\"$ref\":\"#/x-a\",\"x-a\":{\"$ref\":\"#\"}}", "/x-a: refers to itself without end"},
        {"{\"allOf\":[{\"$ref\":\"#\"}]}", "the document: asks itself about the same value without end"},
        {"{\"anyOf\":[{\"not\":{\"$ref\":\"#\"}}]}",
         "the document: asks itself about the same value without end"},
        {"{\"items\":{\"oneOf\":[{\"$ref\":\"#/items\"}]}}",
         "/items: asks itself about the same value without end"},
        {"[1]", "the document: a schema must be an object, true or false"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct schemas *schemas = schemas_create(span_text(cases[i].document), why, sizeof why);
        TEST_ASSERT_(schemas != NULL, "%s: %s", cases[i].document, why);
        TEST_CHECK_(!schemas_at(schemas, "", why, sizeof why), "%s", cases[i].document);
        TEST_CHECK_(strcmp(why, cases[i].why) == 0, "%s: \"%s\", not \"%s\"", cases[i].document, why,
                    cases[i].why);
        TEST_CHECK(!schemas_at(schemas, "", why, sizeof why)); /* and still not */
        schemas_destroy(schemas);
    }
    TEST_CHECK(!schemas_create(span_text("{\"a\":1,\"a\":2}"), why, sizeof why));
    TEST_CHECK_(strcmp(why, "byte 7: a member of this name was there before") == 0, "%s", why);
    TEST_CHECK(!schemas_create(span_text(""), why, sizeof why));
    schemas_destroy(NULL);
}

static void check_does_not_compile(const char *document, const char *wanted)
{
    struct schemas *schemas = schemas_create(span_text(document), why, sizeof why);
    TEST_ASSERT_(schemas != NULL, "%s: %s", document, why);
    TEST_CHECK(!schemas_at(schemas, "", why, sizeof why));
    TEST_CHECK_(strcmp(why, wanted) == 0, "%s: \"%s\", not \"%s\"", document, why, wanted);
    schemas_destroy(schemas);
}

static void what_is_too_long_does_not_compile(void)
{
    static char document[4096];
    char names[SCHEMA_REQUIRED_MAX * 8] = "\"n\"";
    snprintf(document, sizeof document, "{\"$ref\":\"#/%0*d\"}", (int)JSON_TEXT_KEY_MAX + 1, 0);
    check_does_not_compile(document, "/$ref: $ref points to nothing");
    snprintf(document, sizeof document, "{\"$ref\":\"#\\/%01100d\"}", 0);
    check_does_not_compile(document,
                           "/$ref: $ref must be a string, of at most 1024 bytes when it has escapes");
    for (unsigned i = 0; i < SCHEMA_REQUIRED_MAX; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), ",\"n%u\"", i);
    snprintf(document, sizeof document, "{\"required\":[%s]}", names);
    check_does_not_compile(document, "/required: must be an array of at most 64 names");
}

static void schemas_of_one_document(void)
{
    static const char document[] =
        "{\"a\":{\"type\":\"string\"},\"b/c\":{\"items\":{\"$ref\":\"#/a\"}},\"d\":\"\\u0041\"}";
    struct schemas *schemas = schemas_create(span_text(document), why, sizeof why);
    const struct schema *a, *b;
    TEST_ASSERT(schemas != NULL);
    b = schemas_at(schemas, "/b~1c", why, sizeof why);
    a = schemas_at(schemas, "/a", why, sizeof why);
    TEST_ASSERT(a && b && a != b);
    TEST_CHECK(schemas_at(schemas, "/a", why, sizeof why) == a &&
               schemas_at(schemas, "/b~1c", why, sizeof why) == b);
    TEST_CHECK(!schemas_at(schemas, "/e", why, sizeof why) && strcmp(why, "/e: there is nothing") == 0);
    TEST_CHECK(!schemas_at(schemas, "a", why, sizeof why));
    TEST_CHECK(strcmp(defects_of(b, "[\"x\",1]"), "TYPE /1: must be a string") == 0);
    TEST_CHECK(json_member(schemas_document(schemas), json_root(schemas_document(schemas)), "d") != NULL);
    schemas_destroy(schemas);
}

/* ---- bounds of work ---- */

static void check_depth(const char *value, bool valid)
{
    struct schemas *schemas = schemas_create(span_text("{\"items\":{\"$ref\":\"#\"}}"), why, sizeof why);
    const char *got = defects_of(schemas_at(schemas, "", why, sizeof why), value);
    TEST_CHECK_(strcmp(got, valid ? "" : "RANGE : is too much to check") == 0, "%s", got);
    schemas_destroy(schemas);
}

/* Numbers that are told of by a look are steps as well: of 40 x 999 of them each part takes 80,001, so the 13th part is too much, and
 * the last step is a number's. */
static void work_on_many_numbers_is_bounded(void)
{
    enum { ARRAYS = 40, COUNT = 999, PARTS = 12 };
    static const char part[] = ",{\"items\":{\"items\":{\"type\":\"number\"}}}";
    static char value[ARRAYS * (2 * COUNT + 2) + 3], schema[(PARTS + 2) * sizeof part] = "{\"allOf\":[true";
    size_t length = 0;
    for (unsigned i = 0; i < ARRAYS * COUNT; i++)
        length += (size_t)sprintf(value + length, "%s7", i % COUNT ? "," : i ? "],[" : "[[");
    strcpy(value + length, "]]");
    for (unsigned i = 0; i < PARTS; i++)
        strcat(schema, part);
    strcat(schema, "]}");
    check_case(schema, value, "");
    strcpy(schema + strlen(schema) - 2, part);
    strcat(schema, "]}");
    check_case(schema, value, "RANGE : is too much to check");
}

/* A schema that asks everything twice at each level: 2^n without the bound. */
static void work_is_bounded(void)
{
    static const char schema[] =
        "{\"allOf\":[{\"items\":{\"$ref\":\"#\"}},{\"items\":{\"$ref\":\"#\"}}],\"x-a\":0}";
    static const char negated[] =
        "{\"properties\":{\"a\":{\"not\":{\"allOf\":[{\"$ref\":\"#/x-t\"},false]}}},"
        "\"x-t\":{\"allOf\":[{\"items\":{\"$ref\":\"#/x-t\"}},{\"items\":{\"$ref\":\"#/x-t\"}}]}}";
    char value[192] = {0};
    memset(value, '[', 10);
    memset(value + 10, ']', 10);
    check_case(schema, value, "");
    memset(value, '[', 25);
    memset(value + 25, ']', 25);
    check_case(schema, value, "RANGE : is too much to check");
    memset(value, '[', 60);
    memset(value + 60, ']', 60);
    check_case("{\"items\":{\"$ref\":\"#\"}}", value, "");
    check_case("{\"allOf\":[{\"items\":{\"$ref\":\"#\"}}]}", value, "RANGE : is too much to check");
    /* What is wrong is told, whatever hasn't been looked at. */
    memset(value, '[', 25);
    memset(value + 25, ']', 25);
    value[50] = 0;
    check_case("{\"allOf\":[{\"maxItems\":0},{\"$ref\":\"#/x-t\"}],"
               "\"x-t\":{\"allOf\":[{\"items\":{\"$ref\":\"#/x-t\"}},{\"items\":{\"$ref\":\"#/x-t\"}}]}}",
               value, "RANGE : must have at most 0 elements");
    /* A number, which most is told of by a look, is one schema too deep. */
    memset(value, '[', SCHEMA_DEPTH_MAX - 1);
    strcpy(value + SCHEMA_DEPTH_MAX - 1, "7");
    memset(value + SCHEMA_DEPTH_MAX, ']', SCHEMA_DEPTH_MAX - 1);
    value[2 * SCHEMA_DEPTH_MAX - 1] = 0;
    check_depth(value, true);
    memset(value, '[', SCHEMA_DEPTH_MAX);
    memset(value + SCHEMA_DEPTH_MAX, ']', SCHEMA_DEPTH_MAX);
    value[SCHEMA_DEPTH_MAX] = '7';
    memset(value + SCHEMA_DEPTH_MAX + 1, ']', SCHEMA_DEPTH_MAX);
    value[2 * SCHEMA_DEPTH_MAX + 1] = 0;
    check_depth(value, false);
    /* Who gives up has not found that the value isn't so. */
    memcpy(value, "{\"a\":", 5);
    memset(value + 5, '[', 30);
    memset(value + 35, ']', 30);
    strcpy(value + 65, "}");
    check_case(negated, value, "RANGE : is too much to check");
}

/* ---- the client's words ---- */

static void defects_name_no_value_of_the_client(void)
{
    static const char *const schemas[] = {
        "{\"type\":\"integer\"}",
        "{\"enum\":[1]}",
        "{\"const\":2}",
        "{\"format\":\"uuid\"}",
        "{\"maxLength\":1}",
        "{\"pattern\":\"Z$\"}",
        "{\"oneOf\":[{\"maxLength\":1},{\"maxLength\":2}]}",
        "{\"not\":{}}",
        "false",
    };
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        struct schemas *all = schemas_create(span_text(schemas[i]), why, sizeof why);
        const char *said = defects_of(schemas_at(all, "", why, sizeof why), "\"hunter2-hunter2\"");
        TEST_CHECK_(said[0] && !strstr(said, "hunter2"), "%s", said);
        schemas_destroy(all);
    }
}

/* ---- parameters ---- */

static void texts(void)
{
    static const struct {
        const char *schema, *text, *what;
    } cases[] = {
        {"{\"type\":\"integer\",\"minimum\":1,\"maximum\":200}", "20", NULL},
        {"{\"type\":\"integer\",\"minimum\":1,\"maximum\":200}", "0", "must be at least 1"},
        {"{\"type\":\"integer\"}", "", "must be an integer"},
        {"{\"type\":\"integer\"}", " 1", "must be an integer"},
        {"{\"type\":\"integer\"}", "1 ", "must be an integer"},
        {"{\"type\":\"integer\"}", "+1", "must be an integer"},
        {"{\"type\":\"integer\"}", "01", "must be an integer"},
        {"{\"type\":\"integer\"}", "1e2", "must be an integer"},
        {"{\"type\":\"integer\"}", "1.0", "must be an integer"},
        {"{\"type\":\"integer\"}", "0x10", "must be an integer"},
        {"{\"type\":\"integer\"}", "99999999999999999999", "must be an integer of 64 bits"},
        {"{\"type\":\"integer\"}", "\"1\"", "must be an integer"},
        {"{\"type\":\"integer\"}", "null", "must be an integer"},
        {"{\"type\":\"integer\"}", "[1]", "must be an integer"},
        {"{\"type\":\"number\"}", "1.5e1", NULL},
        {"{\"type\":\"boolean\"}", "true", NULL},
        {"{\"type\":\"boolean\"}", "TRUE", "must be true or false"},
        {"{\"type\":\"boolean\"}", "1", "must be true or false"},
        {"{\"type\":\"string\"}", "20", NULL},
        {"{\"type\":\"string\"}", "", NULL},
        {"{\"type\":\"string\",\"minLength\":1}", "", "must have at least 1 character"},
        {"{\"type\":\"string\",\"maxLength\":2}", "\xc3\xa9\xc3\xa9", NULL},
        {"{\"type\":\"string\",\"maxLength\":2}", "a\\n", "must have at most 2 characters"},
        {"{\"type\":\"string\",\"format\":\"uuid\"}", "0d9f3f0a-2b1c-4d5e-8f90-123456789abc", NULL},
        {"{\"type\":\"string\",\"format\":\"uuid\"}", "\"0d9f3f0a-2b1c-4d5e-8f90-123456789abc\"",
         "must be a UUID"},
        {"{\"type\":\"string\",\"enum\":[\"a\",\"true\"]}", "true", NULL},
        {"{\"enum\":[\"a\",2]}", "2", NULL},
        {"{\"enum\":[\"a\",2]}", "3", "must be one of a, 2"},
        {"{\"enum\":[\"a\",2]}", "b", "must be one of a, 2"},
        {"{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"string\",\"const\":\"all\"}]}", "all", NULL},
        {"{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"string\",\"const\":\"all\"}]}", "7", NULL},
        {"{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"string\",\"const\":\"all\"}]}", "x", "must be all"},
        {"{\"type\":\"array\"}", "a", "must be an array"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct schemas *schemas = schemas_create(span_text(cases[i].schema), why, sizeof why);
        const struct schema *schema = schemas_at(schemas, "", why, sizeof why);
        struct schema_defect defect = {.what = ""};
        bool valid;
        TEST_ASSERT_(schema != NULL, "%s", why);
        valid = schema_check_text(schema, span_text(cases[i].text), &defect);
        TEST_CHECK_(valid == !cases[i].what && strcmp(defect.what, valid ? "" : cases[i].what) == 0 &&
                        !defect.pointer[0],
                    "%s of %s: \"%s\"", cases[i].schema, cases[i].text, defect.what);
        schemas_destroy(schemas);
    }
}

/* ---- formats ---- */

static void formats(void)
{
    static const struct {
        bool (*is)(struct span text);
        const char *text;
        bool good;
    } cases[] = {
        {text_is_uuid, "00000000-0000-0000-0000-000000000000", true},
        {text_is_uuid, "", false},
        {text_is_uuid, "00000000-0000-0000-0000-0000000000000", false},
        {text_is_uuid, "000000000000-0000-0000-000000000000--", false},
        {text_is_uuid, "{0000000-0000-0000-0000-00000000000}", false},
        {text_is_date_time, "2026-11-18T16:49:53Z", true},
        {text_is_date_time, "2026-11-18t16:49:53.123456789z", true},
        {text_is_date_time, "2026-11-18T16:49:53-23:59", true},
        {text_is_date_time, "2024-02-29T00:00:00Z", true},
        {text_is_date_time, "2000-02-29T00:00:00Z", true},
        {text_is_date_time, "1900-02-29T00:00:00Z", false},
        {text_is_date_time, "2026-02-29T00:00:00Z", false},
        {text_is_date_time, "2026-04-31T00:00:00Z", false},
        {text_is_date_time, "2026-00-01T00:00:00Z", false},
        {text_is_date_time, "2026-13-01T00:00:00Z", false},
        {text_is_date_time, "2026-01-00T00:00:00Z", false},
        {text_is_date_time, "2026-01-01T24:00:00Z", false},
        {text_is_date_time, "2026-01-01T00:60:00Z", false},
        {text_is_date_time, "2016-12-31T23:59:60Z", true},
        {text_is_date_time, "2017-01-01T00:59:60+01:00", true},
        {text_is_date_time, "2016-12-31T15:59:60.5-08:00", true},
        {text_is_date_time, "2016-12-31T22:59:60Z", false},
        {text_is_date_time, "2016-12-31T23:59:60+01:00", false},
        {text_is_date_time, "2016-12-31T23:59:61Z", false},
        {text_is_date_time, "2026-11-18 16:49:53Z", false},
        {text_is_date_time, "2026-11-18T16:49:53", false},
        {text_is_date_time, "2026-11-18T16:49:53.Z", false},
        {text_is_date_time, "2026-11-18T16:49:53,5Z", false},
        {text_is_date_time, "2026-11-18T16:49Z", false},
        {text_is_date_time, "2026-11-18T16:49:53+24:00", false},
        {text_is_date_time, "2026-11-18T16:49:53+01:60", false},
        {text_is_date_time, "2026-11-18T16:49:53+0100", false},
        {text_is_date_time, "2026-11-18T16:49:53Z ", false},
        {text_is_date_time, "+026-11-18T16:49:53Z", false},
        {text_is_date_time, "2026-1-18T16:49:53.0Z", false},
        {text_is_date_time, "2026x11-18T16:49:53Z", false},
        {text_is_date_time, "2026-11x18T16:49:53Z", false},
        {text_is_date_time, "2026-11-18T16x49:53Z", false},
        {text_is_date_time, "2026-11-18T16:49x53Z", false},
        {text_is_date_time, "2026-11-18Tx6:49:53Z", false},
        {text_is_date_time, "2026-11-18T16:x9:53Z", false},
        {text_is_date_time, "2026-11-18T16:49:x3Z", false},
        {text_is_date_time, "2026-11-18T16:49:53*01:00", false},
        {text_is_date_time, "2026-11-18T16:49:53+01.00", false},
        {text_is_date_time, "2026-11-18T16:49:53+x1:00", false},
        {text_is_date_time, "2026-11-18T16:49:53+01:x0", false},
        {text_is_date_time, "2026-11-18T16:49:53.5", false},
        {text_is_uri, "https://example.org", true},
        {text_is_uri, "HTTP://user:pa%20ss@example.org:8080/a/b;c=1?d=[", false},
        {text_is_uri, "HTTP://user:pa%20ss@example.org:8080/a/b;c=1?d=/?#e/?", true},
        {text_is_uri, "http://[::1]:80/", true},
        {text_is_uri, "http://[2001:db8::1.2.3.4]", true},
        {text_is_uri, "http://[v1.a:b]/", true},
        {text_is_uri, "http://[::1", false},
        {text_is_uri, "http://[::g]", false},
        {text_is_uri, "http://[]", false},
        {text_is_uri, "http://[v1]", false},
        {text_is_uri, "http://[v.a]", false},
        {text_is_uri, "http://[v1x.a]", false},
        {text_is_uri, "http://[v1.]", false},
        {text_is_uri, "http://[v1.a@]", false},
        {text_is_uri, "http://[0000:0000:0000:0000:0000:0000:255.255.255.255]", true},
        {text_is_uri, "http://[0000:0000:0000:0000:0000:0000:0255.255.255.255]", false},
        {text_is_uri, "http://a?b", true},
        {text_is_uri, "http://a:80", true},
        {text_is_uri, "http://a/~b_c", true},
        {text_is_uri, "http://a#b", true},
        {text_is_uri, "a+b-c.d1:x", true},
        {text_is_uri, "a_b:x", false},
        {text_is_uri, "a:/b", true},
        {text_is_uri, "a:b/", true},
        {text_is_uri, "https://example.org/%4z", false},
        {text_is_uri, "http://[::1]x", false},
        {text_is_uri, "http://a:b@c@d", false},
        {text_is_uri, "http://a:port/", false},
        {text_is_uri, "http://", false},
        {text_is_uri, "https:///path", false},
        {text_is_uri, "http:a", false},
        {text_is_uri, "http:", false},
        {text_is_uri, "file:///etc", true},
        {text_is_uri, "urn:signal:Pause:v1", true},
        {text_is_uri, "mailto:a@example.org", true},
        {text_is_uri, "about:", true},
        {text_is_uri, "tag:x,2026:%C3%A9", true},
        {text_is_uri, "tag:x,2026:\xc3\xa9", false},
        {text_is_uri, "https://example.org/%zz", false},
        {text_is_uri, "https://example.org/%4", false},
        {text_is_uri, "https://example.org/a b", false},
        {text_is_uri, "https://example.org/<>", false},
        {text_is_uri, "https://exa\\mple.org/", false},
        {text_is_uri, "//example.org/", false},
        {text_is_uri, "/relative", false},
        {text_is_uri, "1http://a", false},
        {text_is_uri, "", false},
        {text_is_uri, ":", false},
        {text_is_uri, "http", false},
        {text_is_uri, "a#b#c", false},
        {text_is_uri, "a:#b#c", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        TEST_CHECK_(cases[i].is(span_text(cases[i].text)) == cases[i].good, "%s", cases[i].text);
    TEST_CHECK(!text_is_uri(span_of("a:\0", 3)) && !text_is_uri(span_of("http://[::1\0]", 13)));
    TEST_CHECK(text_has_format(span_text("whatever"), TEXT_FORMAT_ANY));
}

static void patterns(void)
{
    static const struct {
        enum text_pattern pattern;
        const char *text;
        bool good;
    } cases[] = {
        {TEXT_PATTERN_VISIBLE, "!~", true},
        {TEXT_PATTERN_VISIBLE, "", false},
        {TEXT_PATTERN_VISIBLE, "a\x7f", false},
        {TEXT_PATTERN_VISIBLE, "a\n", false},
        {TEXT_PATTERN_VISIBLE, "\xc3\xa9", false},
        {TEXT_PATTERN_ENDS_IN_Z, "Z", true},
        {TEXT_PATTERN_ENDS_IN_Z, "", false},
        {TEXT_PATTERN_ENDS_IN_Z, "Zz", false},
        {TEXT_PATTERN_ENDS_IN_Z, "Z\n", false},
        {TEXT_PATTERN_HTTP_URL, "http://a", true},
        {TEXT_PATTERN_HTTP_URL, "ftp4://a", false},
        {TEXT_PATTERN_HTTP_URL, "HTTP://a", false},
        {TEXT_PATTERN_HTTP_URL, "xhttp://a", false},
        {TEXT_PATTERN_HTTP_URL, "file:///etc/passwd", false},
        {TEXT_PATTERN_HTTP_URL, "https://a", true},
        {TEXT_PATTERN_HTTP_URL, "httpss://a", false},
        {TEXT_PATTERN_HTTP_URL, "https://", false},
        {TEXT_PATTERN_HTTP_URL, "http:///a", false},
        {TEXT_PATTERN_HTTP_URL, "http://?a", false},
        {TEXT_PATTERN_HTTP_URL, "http://#", false},
        {TEXT_PATTERN_HTTP_URL, "http:// a", false},
        {TEXT_PATTERN_HTTP_URL, "http://\xe2\x80\x83", false},
        {TEXT_PATTERN_HTTP_URL, "http://\xc2\xa0", false},
        {TEXT_PATTERN_HTTP_URL, "http://\xef\xbb\xbf", false},
        {TEXT_PATTERN_HTTP_URL, "http://\xc3\xa9", true},
        {TEXT_PATTERN_HTTP_URL, "http://\xe2\x80\x94", true},
        {TEXT_PATTERN_HTTP_URL, "http://\x01", true},
        {TEXT_PATTERN_HTTP_URL, "http://\t", false},
        {TEXT_PATTERN_HTTP_URL, "http://\x0e", true},
        {TEXT_PATTERN_ANY, "whatever", true},
        {TEXT_PATTERN_HTTP_URL, "htt", false},
        {TEXT_PATTERN_HTTP_URL, "http", false},
        {TEXT_PATTERN_HTTP_URL, "ftp://a", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        TEST_CHECK_(text_matches(span_text(cases[i].text), cases[i].pattern) == cases[i].good, "%u of %s",
                    cases[i].pattern, cases[i].text);
}

/* ---- the contracts ---- */

static char document[1u << 20];

static struct schemas *contract(const char *file)
{
    struct schemas *schemas;
    char path[256];
    size_t size;
    FILE *f;
    snprintf(path, sizeof path, "docs/contract/generated/%s.json", file);
    f = fopen(path, "rb");
    TEST_ASSERT_(f != NULL, "%s", path);
    size = fread(document, 1, sizeof document, f);
    fclose(f);
    schemas = schemas_create(span_of(document, size), why, sizeof why);
    TEST_ASSERT_(schemas != NULL, "%s: %s", file, why);
    return schemas;
}

static const struct schema *named(struct schemas *schemas, const char *name)
{
    const struct schema *schema;
    char pointer[256];
    snprintf(pointer, sizeof pointer, "/components/schemas/%s", name);
    schema = schemas_at(schemas, pointer, why, sizeof why);
    TEST_ASSERT_(schema != NULL, "%s: %s", name, why);
    return schema;
}

static void contracts_compile_whole(void)
{
    static const char *const files[] = {"control.openapi", "jobs.openapi", "work.openapi", "ops.openapi",
                                        "control.asyncapi"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct schemas *schemas = contract(files[i]);
        const struct json_text *json = schemas_document(schemas);
        const struct json_node *components = json_member(json, json_root(json), "components");
        const struct json_node *all = json_member(json, components, "schemas");
        unsigned count = 0;
        for (const struct json_node *at = json_first(json, all); at; at = json_after(json, all, at)) {
            char pointer[256];
            json_pointer_to(json, at + 1, pointer, sizeof pointer);
            TEST_CHECK_(schemas_at(schemas, pointer, why, sizeof why) != NULL, "%s: %s", files[i], why);
            count++;
        }
        TEST_CHECK_(count >= 3, "%s: %u", files[i], count);
        schemas_destroy(schemas);
    }
}

static void control_bodies(void)
{
    struct schemas *schemas = contract("control.openapi");
    const struct schema *submit = named(schemas, "JobSubmitRequest");
#define META                                                                                          \
    "\"meta\":{\"schema_version\":\"v1\",\"request_id\":\"r\",\"trace_id\":\"t\",\"actor_id\":\"a\"," \
    "\"project_id\":\"p\"}"
#define REST "\"idempotency_key\":\"k\",\"intent\":\"i\",\"risk_tier\":\"A\",\"payload\":{\"any\":[1]}"
    static const struct {
        const char *body, *defects;
    } cases[] = {
        {"{" META "," REST "}", ""},
        {"{" META "," REST
         ",\"parent_job_id\":null,\"constraints\":{\"cost_limit_usd\":129.95,\"prefer_local\":true}}",
         ""},
        {"{" META "," REST ",\"unknown\":1}", ""},
        {"{" REST "}", "MISSING /meta: is required"},
        {"{\"meta\":{}," REST "}",
         "MISSING /meta/schema_version: is required; MISSING /meta/request_id: is required; MISSING "
         "/meta/trace_id: is "
         "required; MISSING /meta/actor_id: is required; MISSING /meta/project_id: is required"},
        {"{" META ",\"idempotency_key\":null,\"intent\":\"i\",\"risk_tier\":\"D\",\"payload\":[]}",
         "TYPE /idempotency_key: must be a string; VALUE /risk_tier: must be one of A, B, C; TYPE /payload: "
         "must be an object"},
        {"{" META "," REST ",\"parent_job_id\":\"x\"}", "FORMAT /parent_job_id: must be a UUID"},
        {"{" META "," REST ",\"constraints\":{\"cost_limit_usd\":1e400}}",
         "RANGE /constraints/cost_limit_usd: is no number that can be held"},
        {"{" META "," REST ",\"constraints\":{\"cost_limit_usd\":-0.01}}",
         "RANGE /constraints/cost_limit_usd: must be at least 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *got = defects_of(submit, cases[i].body);
        TEST_CHECK_(strcmp(got, cases[i].defects) == 0, "%s: %s", cases[i].body, got);
    }
    schemas_destroy(schemas);
}

static void jobs_bodies(void)
{
    struct schemas *schemas = contract("jobs.openapi");
    const struct schema *submit = named(schemas, "JobSubmitRequest");
    static const struct {
        const char *body, *defects;
    } cases[] = {
        {"{\"type\":\"EXECUTE\"}", ""},
        {"{\"type\":\"DEFERRED\",\"execution_at\":\"2026-12-01T00:00:00Z\",\"callback\":\"https://"
         "example.org/h\"}",
         ""},
        {"{\"type\":\"EXECUTE\",\"execution_at\":null,\"callback\":null}", ""},
        {"{}", "MISSING /type: is required"},
        {"{\"type\":\"execute\"}", "VALUE /type: must be one of EXECUTE, DEFERRED, EMIT_EVENT"},
        {"{\"type\":\"DEFERRED\",\"execution_at\":\"2026-12-01T00:00:00+01:00\"}",
         "FORMAT /execution_at: must end in Z"},
        {"{\"type\":\"DEFERRED\",\"execution_at\":\"soon\"}",
         "FORMAT /execution_at: must be an RFC 3339 date and time"},
        {"{\"type\":\"DEFERRED\",\"execution_at\":1}", "TYPE /execution_at: must be a string or null"},
        {"{\"type\":\"EXECUTE\",\"callback\":\"ftp://example.org\"}",
         "FORMAT /callback: must begin with http:// or https:// and a host"},
        {"{\"type\":\"EXECUTE\",\"idempotency_key\":\"a b\"}",
         "FORMAT /idempotency_key: must be visible ASCII without spaces"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *got = defects_of(submit, cases[i].body);
        TEST_CHECK_(strcmp(got, cases[i].defects) == 0, "%s: %s", cases[i].body, got);
    }
    schemas_destroy(schemas);
}

TEST_LIST
= {
    {"types", types},
    {"enum and const", values},
    {"numbers", numbers},
    {"strings", strings},
    {"a long string with escapes", long_string_with_escapes},
    {"arrays", arrays},
    {"objects", objects},
    {"missing members come first (CTL-029, AMB-07)", missing_members_come_first},
    {"allOf, anyOf, oneOf, not, if", parts},
    {"references", references},
    {"what does not compile", what_does_not_compile},
    {"schemas of one document", schemas_of_one_document},
    {"work is bounded", work_is_bounded},
    {"missing members beyond all room", missing_members_beyond_all_room},
    {"a value longer than a sentence", a_value_longer_than_a_sentence},
    {"what is too long does not compile", what_is_too_long_does_not_compile},
    {"work on many numbers is bounded", work_on_many_numbers_is_bounded},
    {"defects name no value of the client", defects_name_no_value_of_the_client},
    {"parameters and headers", texts},
    {"formats", formats},
    {"patterns", patterns},
    {"the contracts compile whole", contracts_compile_whole},
    {"bodies of the control contract", control_bodies},
    {"bodies of the jobs contract", jobs_bodies},
    {NULL, NULL},
};
