/* JSONTestSuite, brought by npm: what begins with n_ is refused. What begins with y_ is accepted unless it holds what this house
 * refuses although the grammar allows it (a name twice, an escaped NUL); those, and the texts of the other kinds (where the
 * grammar leaves it open) that are refused, are written down here. parson reads the same files; where it accepts what we
 * refuse is written down as well. */
#include "acutest.h"

#define json_string parson_json_string
#include <parson.h>

#include <dirent.h>
#include "http/json_text.h"

#define FOLDER "build/npm/json-suite/files"

static struct json_node nodes[JSON_TEXT_NODES_MAX];
static char text[1u << 20];

static bool accepts(const char *file, size_t *ret_size, struct json_error *ret_error)
{
    char path[512];
    FILE *f;
    struct json_text json = {.nodes = nodes, .nodes_max = JSON_TEXT_NODES_MAX, .seed = 1};
    snprintf(path, sizeof path, FOLDER "/%s", file);
    f = fopen(path, "rb");
    TEST_ASSERT_(f != NULL, "%s", path);
    *ret_size = fread(text, 1, sizeof text - 1, f);
    text[*ret_size] = 0;
    fclose(f);
    return json_text_read(&json, span_of(text, *ret_size), NULL, ret_error);
}

/* Which of y_, i_ and t_ are refused, and why. All others are accepted. */
static const char *const refused[][2] = {
    {"i_structure_UTF-8_BOM_empty_object.json", "a byte order mark"},
    {"t_object_same_key_different_values.json", "a member of this name was there before"},
    {"t_object_same_key_same_value.json", "a member of this name was there before"},
    {"t_object_same_key_unclear_values.json", "a member of this name was there before"},
    {"y_object_duplicated_key.json", "a member of this name was there before"},
    {"y_object_duplicated_key_and_value.json", "a member of this name was there before"},
    {"i_number_huge_exp.json", "a number of too many digits"},
    {"i_string_UTF-16LE_with_BOM.json", "a value is missing"},
    {"i_string_utf16BE_no_BOM.json", "a value is missing"},
    {"i_string_utf16LE_no_BOM.json", "a value is missing"},
    {"t_string_with_escaped_NULL.json", "an escaped NUL"},
    {"y_object_escaped_null_in_key.json", "an escaped NUL"},
    {"y_string_null_escape.json", "an escaped NUL"},
    {"i_object_key_lone_2nd_surrogate.json", "half of a surrogate pair"},
    {"i_string_1st_surrogate_but_2nd_missing.json", "half of a surrogate pair"},
    {"i_string_1st_valid_surrogate_2nd_invalid.json", "half of a surrogate pair"},
    {"i_string_incomplete_surrogate_and_escape_valid.json", "half of a surrogate pair"},
    {"i_string_incomplete_surrogate_pair.json", "half of a surrogate pair"},
    {"i_string_incomplete_surrogates_escape_valid.json", "half of a surrogate pair"},
    {"i_string_invalid_lonely_surrogate.json", "half of a surrogate pair"},
    {"i_string_invalid_surrogate.json", "half of a surrogate pair"},
    {"i_string_inverted_surrogates_U+1D11E.json", "half of a surrogate pair"},
    {"i_string_lone_second_surrogate.json", "half of a surrogate pair"},
    {"t_string_1_escaped_invalid_codepoint.json", "half of a surrogate pair"},
    {"t_string_2_escaped_invalid_codepoints.json", "half of a surrogate pair"},
    {"t_string_3_escaped_invalid_codepoints.json", "half of a surrogate pair"},
    {"i_structure_500_nested_arrays.json", "nested too deep"},
};

static const char *refusal_of(const char *file)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (strcmp(refused[i][0], file) == 0)
            return refused[i][1];
    return NULL;
}

/* What parson accepts and we don't. */
static const char *const laxer[] = {
    "i_structure_500_nested_arrays.json",
    "i_structure_UTF-8_BOM_empty_object.json",
    "n_array_comma_after_close.json",
    "n_array_extra_close.json",
    "n_array_extra_comma.json",
    "n_array_number_and_comma.json",
    "n_number_-2..json",
    "n_number_0.e1.json",
    "n_number_2.e+3.json",
    "n_number_2.e-3.json",
    "n_number_2.e3.json",
    "n_number_neg_real_without_int_part.json",
    "n_number_real_without_fractional_part.json",
    "n_object_lone_continuation_byte_in_key_and_trailing_comma.json",
    "n_object_trailing_comma.json",
    "n_object_trailing_comment.json",
    "n_object_trailing_comment_open.json",
    "n_object_trailing_comment_slash_open.json",
    "n_object_trailing_comment_slash_open_incomplete.json",
    "n_object_with_trailing_garbage.json",
    "n_string_with_trailing_garbage.json",
    "n_structure_array_trailing_garbage.json",
    "n_structure_array_with_extra_array_close.json",
    "n_structure_close_unopened_array.json",
    "n_structure_double_array.json",
    "n_structure_number_with_trailing_garbage.json",
    "n_structure_object_followed_by_closing_object.json",
    "n_structure_object_with_trailing_garbage.json",
    "n_structure_trailing_#.json",
    "n_structure_whitespace_formfeed.json",
    "t_string_with_escaped_NULL.json",
    "y_string_null_escape.json",
};

static void check_against_parson(const char *file, size_t size, bool accepted)
{
    JSON_Value *value;
    bool listed = false;
    for (size_t i = 0; i < sizeof laxer / sizeof *laxer; i++)
        listed |= strcmp(laxer[i], file) == 0;
    if (strlen(text) != size)
        return; /* it reads up to a NUL */
    value = json_parse_string(text);
    TEST_CHECK_((value && !accepted) == listed, "%s: parson %s, we %s", file, value ? "accepts" : "refuses",
                accepted ? "accept" : "refuse");
    json_value_free(value);
}

static void suite(void)
{
    unsigned counts[128] = {0};
    struct dirent *entry;
    DIR *folder;
    TEST_ASSERT(system("sh tests/npm/json-suite/fetch >&2") == 0);
    folder = opendir(FOLDER);
    TEST_ASSERT(folder != NULL);
    while ((entry = readdir(folder))) {
        const char *file = entry->d_name;
        struct json_error error = {0};
        bool accepted;
        size_t size;
        if (file[0] == '.')
            continue;
        accepted = accepts(file, &size, &error);
        counts[file[0] & 127]++;
        if (file[0] == 'n') {
            TEST_CHECK_(!accepted, "%s", file);
        } else {
            const char *why = refusal_of(file);
            TEST_CHECK_(accepted == !why && (accepted || strcmp(why, error.what) == 0), "%s: %s", file,
                        accepted ? "accepted" : error.what);
        }
        check_against_parson(file, size, accepted);
    }
    closedir(folder);
    TEST_CHECK_(counts['y'] == 95 && counts['n'] == 188 && counts['i'] == 35 && counts['t'] == 22,
                "%u %u %u %u", counts['y'], counts['n'], counts['i'], counts['t']);
}

TEST_LIST
= {
    {"the suite of JSON texts: each is accepted or refused as it must be", suite},
    {NULL, NULL},
};
