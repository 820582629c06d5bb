#include "acutest.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/file.h"

static struct file file;
static char why[512];

static bool reads(const char *text)
{
    why[0] = 0;
    return file_read_text(&file, "x.json", text, strlen(text), why, sizeof(why));
}

/* The last entry of this key, as it counts. */
static const struct file_entry *entry(const char *key)
{
    const struct file_entry *found = NULL;
    for (uint32_t i = 0; i < file.count; i++)
        if (strcmp(file.entries[i].key, key) == 0)
            found = &file.entries[i];
    return found;
}

#define CHECK_ENTRY(key_, value_, kind_, line_)                                                        \
    do {                                                                                               \
        const struct file_entry *e_ = entry(key_);                                                     \
        TEST_CHECK_(e_ &&strcmp(e_->value, value_) == 0 && e_->kind == (kind_) && e_->line == (line_), \
                    "%s is '%s', kind %d, line %u", key_, e_ ? e_->value : "(missing)",                \
                    e_ ? (int)e_->kind : -1, e_ ? e_->line : 0);                                       \
    } while (0)

#define CHECK_REFUSED(text_, says_)                                            \
    do {                                                                       \
        TEST_CHECK_(!reads(text_), "refused: %s", text_);                      \
        TEST_CHECK_(strstr(why, says_) != NULL, "'%s' says '%s'", why, says_); \
    } while (0)

static void test_keys_with_dots_and_nested_objects(void)
{
    TEST_ASSERT_(reads("{\"a\": 1,\n \"b.c\": \"two\",\n \"d\": {\"e\": true, \"f.g\": {\"h\": false}},\n"
                       " \"i\": [\"x\", \"y\"]}"),
                 "%s", why);
    TEST_CHECK(file.count == 5);
    CHECK_ENTRY("a", "1", FILE_NUMBER, 1);
    CHECK_ENTRY("b.c", "two", FILE_TEXT, 2);
    CHECK_ENTRY("d.e", "true", FILE_FLAG, 3);
    CHECK_ENTRY("d.f.g.h", "false", FILE_FLAG, 3);
    CHECK_ENTRY("i", "x,y", FILE_LIST, 4);
    TEST_CHECK(strcmp(file.entries[0].path, "x.json") == 0 && file.files_count == 1);
}

static void test_comments_are_spaces(void)
{
    TEST_ASSERT_(
        reads("// first\n{ /* in\nbetween */ \"a\": \"http://x/*y*/\", // at the end\n\"b\": 2 /**/ }\n"
              "/* behind */ // and more"),
        "%s", why);
    CHECK_ENTRY("a", "http://x/*y*/", FILE_TEXT, 3);
    CHECK_ENTRY("b", "2", FILE_NUMBER, 4);
    TEST_CHECK(reads("") && file.count == 0);
    TEST_CHECK(reads("// nothing yet\n /* \n */ ") && file.count == 0);
    TEST_CHECK(reads("{\"a\": \"quote \\\" // no comment\"}") && file.count == 1);
    CHECK_ENTRY("a", "quote \" // no comment", FILE_TEXT, 1);
    CHECK_REFUSED("{\n/* never\nends }", "x.json:2: the comment that begins here has no end");
    CHECK_REFUSED("{} /", "x.json:1: ");
    CHECK_REFUSED("{\"a\" / 1}", "x.json:1: ");
}

static void test_what_stands_there_twice(void)
{
    CHECK_REFUSED("{\"a\": 1,\n\"a\": 2}", "x.json:2: ");
    CHECK_REFUSED("{\"a\": {\"b\": 1},\n\n\"a.b\": 2}", "x.json:3: a.b was given in line 1 already");
    CHECK_REFUSED("{\"a.b\": {\"c\": 1},\n\"a\": {\"b.c\": 2}}",
                  "x.json:2: a.b.c was given in line 1 already");
}

static void test_what_is_no_setting(void)
{
    CHECK_REFUSED("[]", "x.json:1: the file must hold one object");
    CHECK_REFUSED("\n\n7", "x.json:3: the file must hold one object");
    CHECK_REFUSED("{\"a\":\nnull}", "x.json:1: a is null; leave it out to have its default");
    CHECK_REFUSED("{\"a\": [\"x\",\n7]}", "x.json:2: a is a list with something that is no text");
    CHECK_REFUSED("{\"a\": [\"x\", \"\"]}", "a text that is empty or holds a comma");
    CHECK_REFUSED("{\"a\": [\"x,y\"]}", "a text that is empty or holds a comma");
    CHECK_REFUSED("{\"a\": [{}]}", "something that is no text");
    CHECK_REFUSED("{\"a\": 1,}", "x.json:1: ");
    CHECK_REFUSED("{'a': 1}", "x.json:1: ");
    CHECK_REFUSED("{\"a\": 1} {\"b\": 2}", "x.json:1: ");
    CHECK_REFUSED("{\"a\": 1\n", "x.json:2: ");
    CHECK_REFUSED("{\"a\": 01}", "x.json:1: ");
    CHECK_REFUSED("{\"a\": \"\\u0000\"}", "x.json:1: ");
    CHECK_REFUSED("\xef\xbb\xbf{}", "x.json:1: ");
    CHECK_REFUSED("{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":1}}}}}}}}}", "x.json:1: ");
    CHECK_REFUSED("{\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\":"
                  "{\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\": 1}}",
                  "no setting has a name as long as this");
}

static void test_limits(void)
{
    static char text[FILE_BYTES_MAX + 2];
    size_t used = 0;
    memset(text, ' ', sizeof(text) - 1);
    TEST_CHECK(file_read_text(&file, "x.json", text, FILE_BYTES_MAX, why, sizeof(why)));
    TEST_CHECK(!file_read_text(&file, "x.json", text, FILE_BYTES_MAX + 1, why, sizeof(why)));
    TEST_CHECK_(strstr(why, "more than 65536 bytes") != NULL, "%s", why);
    text[used++] = '{';
    for (unsigned i = 0; i <= FILE_ENTRIES_MAX; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s\"k%u\":1", i ? "," : "", i);
    text[used++] = '}';
    TEST_CHECK(!file_read_text(&file, "x.json", text, used, why, sizeof(why)));
    TEST_CHECK_(strstr(why, "x.json:1: ") != NULL, "%s", why);
}

/* ---- on the disk ---- */

static char folder[64];

static void put(const char *name, const char *text)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    TEST_ASSERT(f != NULL);
    fputs(text, f);
    fclose(f);
}

static const char *at(const char *name)
{
    static char path[160];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void test_the_folder_beside_it_comes_on_top(void)
{
    memcpy(folder, "/tmp/file_test.XXXXXX", sizeof("/tmp/file_test.XXXXXX"));
    TEST_ASSERT(mkdtemp(folder) != NULL);
    put("coppice.json", "{\"a\": 1, \"b\": 1}");
    TEST_ASSERT_(file_read(&file, at("coppice.json"), why, sizeof(why)), "%s", why);
    TEST_CHECK(file.files_count == 1);
    TEST_ASSERT(mkdir(at("conf.d"), 0700) == 0);
    put("conf.d/20.json", "{\"a\": 20}");
    put("conf.d/10.json", "{\"a\": 10,\n\"c\": 10}");
    put("conf.d/.hidden.json", "{\"a\": 99}");
    put("conf.d/note.txt", "no JSON");
    TEST_ASSERT_(file_read(&file, at("coppice.json"), why, sizeof(why)), "%s", why);
    TEST_CHECK(file.files_count == 3);
    CHECK_ENTRY("a", "20", FILE_NUMBER, 1);
    CHECK_ENTRY("b", "1", FILE_NUMBER, 1);
    CHECK_ENTRY("c", "10", FILE_NUMBER, 2);
    TEST_CHECK(strstr(entry("a")->path, "/conf.d/20.json") != NULL);
    put("conf.d/30.json", "{\n oops }");
    TEST_CHECK(!file_read(&file, at("coppice.json"), why, sizeof(why)));
    TEST_CHECK_(strstr(why, "/conf.d/30.json:2: ") != NULL, "%s", why);
    TEST_CHECK(!file_read(&file, at("missing.json"), why, sizeof(why)));
    TEST_CHECK_(strstr(why, "missing.json: No such file or directory") != NULL, "%s", why);
    TEST_CHECK(!file_read(&file, folder, why, sizeof(why))); /* a folder is no file */
    char command[96];
    snprintf(command, sizeof(command), "rm -r %s", folder);
    TEST_CHECK(system(command) == 0);
}

static void test_where_it_is_looked_for(void)
{
    char path[256], xdg[96], home[96], *environment[] = {home, xdg, NULL}, *nothing[] = {NULL};
    memcpy(folder, "/tmp/file_test.XXXXXX", sizeof("/tmp/file_test.XXXXXX"));
    TEST_ASSERT(mkdtemp(folder) != NULL);
    TEST_ASSERT(mkdir(at(".config"), 0700) == 0 && mkdir(at(".config/coppice"), 0700) == 0);
    put(".config/coppice/coppice.json", "{}");
    snprintf(home, sizeof(home), "HOME=%s", folder);
    snprintf(xdg, sizeof(xdg), "OTHER=x");
    TEST_CHECK(file_default_path(environment, false, path, sizeof(path)));
    TEST_CHECK_(strcmp(path, at(".config/coppice/coppice.json")) == 0, "%s", path);
    snprintf(xdg, sizeof(xdg), "XDG_CONFIG_HOME=%s/.config", folder);
    snprintf(home, sizeof(home), "HOME=/nowhere");
    TEST_CHECK(file_default_path(environment, false, path, sizeof(path)));
    TEST_CHECK_(strcmp(path, at(".config/coppice/coppice.json")) == 0, "%s", path);
    /* root's settings, and those of somebody without any, are the machine's */
    (void)file_default_path(environment, true, path, sizeof(path));
    TEST_CHECK(strcmp(path, "/etc/coppice/coppice.json") == 0);
    (void)file_default_path(nothing, false, path, sizeof(path));
    TEST_CHECK(strcmp(path, "/etc/coppice/coppice.json") == 0);
    char command[96];
    snprintf(command, sizeof(command), "rm -r %s", folder);
    TEST_CHECK(system(command) == 0);
}

TEST_LIST
= {
    {"keys with dots and nested objects", test_keys_with_dots_and_nested_objects},
    {"comments are spaces", test_comments_are_spaces},
    {"what stands there twice", test_what_stands_there_twice},
    {"what is no setting", test_what_is_no_setting},
    {"limits", test_limits},
    {"the folder beside it comes on top", test_the_folder_beside_it_comes_on_top},
    {"where it is looked for", test_where_it_is_looked_for},
    {NULL, NULL},
};
