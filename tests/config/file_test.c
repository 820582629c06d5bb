#include "acutest.h"

#include <errno.h>
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
    TEST_CHECK(!file_read_text(&file, "x.json", " ", 2, why, sizeof(why))); /* its 0 is no space */
    TEST_CHECK_(strstr(why, "x.json:1: ") != NULL, "%s", why);
    /* what lies behind the text ends no comment, though the text before has left it there; nor does it make one of a slash */
    TEST_CHECK(reads("{\"a\": \"xx*/\"}") &&
               !file_read_text(&file, "x.json", "{} /* y", 7, why, sizeof(why)));
    TEST_CHECK_(strstr(why, "x.json:1: the comment that begins here has no end") != NULL, "%s", why);
    TEST_CHECK(reads("{\"\":\"*/\"}") && !file_read_text(&file, "x.json", "{}  /", 5, why, sizeof(why)));
    TEST_CHECK_(!strstr(why, "comment"), "%s", why);
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

/* Of a file that is wrong somewhere it is said what, and what makes sense all the same is there. */
static void test_what_makes_sense_of_a_file_that_is_wrong(void)
{
    static const struct {
        const char *text, *why, *there, *missing;
    } rows[] = {
        {"{\"a\": \"1\",\n \"b\": {\"c\": \"2\", oops }, \"d\": 3}", "x.json:2: ", "a b.c", "d"},
        {"{\"a\": 1\n \"b\": 2}", "x.json:2: ", "a", "b"},
        {"{\"a\": {\"b\": 1}\n \"c\": 2}", "x.json:2: ", "a.b", "c"},
        {"{\"a\": 1, \"b\": {\"c\": 2, \"d\": \"cut o", "x.json:1: ", "a b.c", "b.d"},
        {"{\"a\": 1, \"b\": [\"x\", \"y\", }", "x.json:1: ", "a", "b"},
        {"{\"a\": 1, \"b\": 2}}", "x.json:1: ", "a", "c"},
        {"{\"a\": 1, \"b\": 2 /* and so on", "x.json:1: the comment that begins here has no end", "a", "c"},
        {"{\"a\": 1} /* and so on", "x.json:1: the comment that begins here has no end", "a", "c"},
        {"{\"a\": 1, \"b\": [{\"c\": 2, oops }]}", "x.json:1: ", "a", "c"},
        {"{\"a\": [\"x\"], \"b\": 2, oops }", "x.json:1: ", "a b", "c"},
        {"{\"a\": null,\n\"b\": 2}", "x.json:1: a is null; leave it out", "b", "a"},
        {"{\"a\": 1, \"a\": 2, \"b\": 3}", "x.json:1: ", "a", "c"},
        {"oops", "x.json:1: ", "", "a"},
        {"{", "x.json:1: ", "", "a"},
        {"\"", "x.json:1: ", "", "a"},
        {"/*", "x.json:1: ", "", "a"},
        {"[1, 2", "x.json:1: ", "", "a"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char names[32], *place = names;
        TEST_CASE(rows[i].text);
        TEST_CHECK(!reads(rows[i].text));
        TEST_CHECK_(strncmp(why, rows[i].why, strlen(rows[i].why)) == 0, "%s", why);
        snprintf(names, sizeof(names), "%s", rows[i].there);
        for (char *name; (name = strsep(&place, " "));)
            TEST_CHECK_(!*name || entry(name), "%s", name);
        TEST_CHECK_(!entry(rows[i].missing), "%s", rows[i].missing);
    }
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
    put("conf.d/40.json", "{\"d\": 40}"); /* is read all the same */
    put("coppice.json", "{\"e\": 1, oops}");
    TEST_CHECK(!file_read(&file, at("coppice.json"), why, sizeof(why)));
    TEST_CHECK_(strstr(why, "/coppice.json:1: ") != NULL, "%s", why);
    CHECK_ENTRY("e", "1", FILE_NUMBER, 1);
    CHECK_ENTRY("a", "20", FILE_NUMBER, 1);
    CHECK_ENTRY("d", "40", FILE_NUMBER, 1);
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
    snprintf(home, sizeof(home), "HOME=%s", folder);
    snprintf(xdg, sizeof(xdg), "OTHER=x");
    (void)file_default_path(environment, true, path, sizeof(path)); /* not those of root's own folder */
    TEST_CHECK_(strcmp(path, "/etc/coppice/coppice.json") == 0, "%s", path);
    (void)file_default_path(nothing, false, path, sizeof(path));
    TEST_CHECK(strcmp(path, "/etc/coppice/coppice.json") == 0);
    char command[96];
    snprintf(command, sizeof(command), "rm -r %s", folder);
    TEST_CHECK(system(command) == 0);
}

/* ---- limits on the disk ---- */

static void begin(void)
{
    memcpy(folder, "/tmp/file_test.XXXXXX", sizeof("/tmp/file_test.XXXXXX"));
    TEST_ASSERT(mkdtemp(folder) != NULL);
    TEST_ASSERT(mkdir(at("conf.d"), 0700) == 0);
    put("coppice.json", "{}");
}

static void end(void)
{
    char command[96];
    snprintf(command, sizeof(command), "rm -r %s", folder);
    TEST_CHECK(system(command) == 0);
}

static bool reads_all(void)
{
    why[0] = 0;
    return file_read(&file, at("coppice.json"), why, sizeof(why));
}

#define CHECK_ALL_REFUSED(says_) \
    TEST_CHECK_(!reads_all() && strstr(why, says_) != NULL, "'%s' says '%s'", why, says_)

static void test_a_folder_has_31_files(void)
{
    begin();
    for (unsigned i = 0; i < 32; i++) {
        char name[32], text[32];
        snprintf(name, sizeof(name), "conf.d/%02u.json", i);
        snprintf(text, sizeof(text), "{\"k%u\": %u}", i, i);
        put(name, text);
        if (i == 30)
            TEST_CHECK_(reads_all() && file.count == 31 && file.files_count == FILE_COUNT_MAX, "%s", why);
    }
    CHECK_ALL_REFUSED("/conf.d: more than 31 files");
    end();
}

/* The text of all files together is bounded: in the middle of a file, and between two. */
static void test_all_settings_have_262144_bytes(void)
{
    static char text[FILE_BYTES_MAX];
    char name[32];
    begin();
    for (unsigned i = 0; i < 4; i++) {
        snprintf(name, sizeof(name), "conf.d/%02u.json", i);
        snprintf(text, sizeof(text), "{\"k%u\": \"%0*d\"}", i, 65000, 0);
        put(name, text);
    }
    TEST_ASSERT_(reads_all() && file.count == 4, "%s", why);
    size_t left = FILE_TEXT_MAX - file.text_used, path = strlen(at("conf.d/04.json")) + 1;
    snprintf(text, sizeof(text), "{\"k4\": \"%0*d\"}", (int)(left - path - sizeof("k4")), 0);
    put("conf.d/04.json", text); /* one byte too many, its 0 */
    CHECK_ALL_REFUSED("/conf.d/04.json:1: more than 262144 bytes of settings");
    snprintf(text, sizeof(text), "{\"k4\": \"%0*d\"}", (int)(left - path - sizeof("k4") - 1), 0);
    put("conf.d/04.json", text);
    TEST_CHECK_(reads_all() && file.text_used == FILE_TEXT_MAX, "%s", why);
    text[strlen(text) - 1] = 0;
    strcat(text, ", \"\": 1}"); /* not even its name, which is empty */
    put("conf.d/04.json", text);
    CHECK_ALL_REFUSED("/conf.d/04.json:1: more than 262144 bytes of settings");
    text[strlen(text) - sizeof(", \"\": 1}") + 1] = 0;
    strcat(text, "}");
    put("conf.d/04.json", text);
    put("conf.d/05.json", "{\"k5\": 5}");
    CHECK_ALL_REFUSED("/conf.d/05.json: more than 262144 bytes of settings before it");
    end();
}

static void test_files_that_are_too_much(void)
{
    static char text[FILE_BYTES_MAX + 2];
    begin();
    memset(text, ' ', FILE_BYTES_MAX + 1);
    memcpy(text, "{}", 2);
    put("conf.d/a.json", text);
    CHECK_ALL_REFUSED("/conf.d/a.json: the file has more than 65536 bytes");
    text[FILE_BYTES_MAX] = 0;
    put("conf.d/a.json", text);
    TEST_CHECK_(reads_all(), "%s", why);
    put("conf.d/a.json", " \t\r\n");
    CHECK_ALL_REFUSED("/conf.d/a.json: the file is empty");
    end();
    char long_path[600];
    memset(long_path, 'p', sizeof(long_path) - 1);
    long_path[sizeof(long_path) - 1] = 0;
    TEST_CHECK(!file_read(&file, long_path, why, sizeof(why)) && strstr(why, "a path of a file has at most"));
    char *most = strstr(why, "at most ");
    TEST_ASSERT_(most != NULL, "%s", why);
    size_t longest = strtoul(most + strlen("at most "), NULL, 10);
    TEST_ASSERT(longest > 0 && longest + 1 < sizeof(long_path));
    long_path[longest + 1] = 0; /* one more than that, and as many */
    TEST_CHECK(!file_read(&file, long_path, why, sizeof(why)) && strstr(why, "a path of a file has at most"));
    long_path[longest] = 0;
    TEST_CHECK_(!file_read(&file, long_path, why, sizeof(why)) && !strstr(why, "at most"), "%s", why);
}

/* What a folder is not, or holds beside files of settings. */
static void test_the_folder_beside_it(void)
{
    begin();
    put("conf.d/.json", "no JSON");
    put("conf.d/x.jso", "no JSON");
    put("conf.d/a.json", "{\"a\": 1}");
    TEST_CHECK_(reads_all() && file.files_count == 2, "%s", why);
    end();
    begin();
    TEST_ASSERT(rmdir(at("conf.d")) == 0);
    put("conf.d", "no folder");
    TEST_CHECK_(reads_all() && file.files_count == 1, "%s", why);
    TEST_ASSERT(unlink(at("conf.d")) == 0 && symlink("conf.d", at("conf.d")) == 0);
    CHECK_ALL_REFUSED("/conf.d: Too many levels of symbolic links");
    char here[256];
    TEST_ASSERT(getcwd(here, sizeof(here)) != NULL && unlink(at("conf.d")) == 0 && chdir(folder) == 0);
    TEST_ASSERT(mkdir("conf.d", 0700) == 0);
    put("conf.d/a.json", "{\"a\": 1}");
    TEST_CHECK_(file_read(&file, "coppice.json", why, sizeof(why)) && file.files_count == 2, "%s", why);
    TEST_ASSERT(chdir(here) == 0);
    end();
    TEST_CHECK(file_read(&file, "/dev/null", why, sizeof(why)) &&
               file.count == 0); /* no file that is empty */
}

/* ---- calls that fail: they come by here (Makefile) ---- */

static int read_fails, fstat_fails; /* the next one does, with this code */

static bool fails(int *code)
{
    errno = *code;
    *code = 0;
    return errno != 0;
}

ssize_t __real_read(int fd, void *bytes, size_t size);
ssize_t __wrap_read(int fd, void *bytes, size_t size);
ssize_t __wrap_read(int fd, void *bytes, size_t size)
{
    return fails(&read_fails) ? -1 : __real_read(fd, bytes, size);
}

int __real_fstat(int fd, struct stat *ret);
int __wrap_fstat(int fd, struct stat *ret);
int __wrap_fstat(int fd, struct stat *ret)
{
    return fails(&fstat_fails) ? -1 : __real_fstat(fd, ret);
}

/* A signal is no end, a failure is one; and a file of which nobody can say what it is may be empty, as /dev/null. */
static void test_calls_that_fail(void)
{
    begin();
    put("coppice.json", "{\"a\": 1}");
    read_fails = EINTR;
    TEST_CHECK_(reads_all() && entry("a") && !read_fails, "%s", why);
    read_fails = EIO;
    CHECK_ALL_REFUSED("/coppice.json: Input/output error");
    put("coppice.json", "");
    CHECK_ALL_REFUSED("/coppice.json: the file is empty");
    fstat_fails = EIO;
    TEST_CHECK_(reads_all() && file.count == 0 && !fstat_fails, "%s", why);
    end();
}

static void test_texts_and_lists_that_are_too_long(void)
{
    static char text[32768];
    snprintf(text, sizeof(text), "{\"a\": \"\\u0041%0*d\"}", 4096, 0);
    CHECK_REFUSED(text, "a has more than 4096 bytes");
    snprintf(text, sizeof(text), "{\"a\": [\"\\u0041%0*d\"]}", 1024, 0);
    CHECK_REFUSED(text, "a has too many bytes");
    snprintf(text, sizeof(text), "{\"a\": [\"%0*d\",\n\"%0*d\"]}", 2000, 0, 2096, 0);
    CHECK_REFUSED(text, "x.json:2: a has too many bytes");
    snprintf(text, sizeof(text), "{\"a\": [\"%0*d\",\"%0*d\"]}", 2000, 0, 2095, 0);
    TEST_CHECK(reads(text) && strlen(entry("a")->value) == 4096);
    snprintf(text, sizeof(text), "{\"\\u0041%0*d\": 1}", 100, 0);
    CHECK_REFUSED(text, "a member's name is too long");
    CHECK_REFUSED("{\"a\": \"never ends", "x.json:1: ");
    CHECK_REFUSED("{\"a\": \"never ends\n\"}", "x.json:1: ");
    CHECK_REFUSED("{\"a\": \"never ends \\", "x.json:1: ");
    TEST_CHECK(!file_read_text(&file, "x.json", "[]", 2, why, 4) && strcmp(why, "x.j") == 0);
}

static void test_where_it_is_not_looked_for(void)
{
    char path[256], xdg[128], home[128], *environment[] = {home, xdg, NULL};
    begin();
    snprintf(home, sizeof(home), "HOMER=%s", folder); /* another variable */
    snprintf(xdg, sizeof(xdg), "HOME=relative");
    (void)file_default_path(environment, false, path, sizeof(path));
    TEST_CHECK(strcmp(path, "/etc/coppice/coppice.json") == 0);
    snprintf(xdg, sizeof(xdg), "HOME=%s", folder); /* there is none in there */
    (void)file_default_path(environment, false, path, sizeof(path));
    TEST_CHECK(strcmp(path, "/etc/coppice/coppice.json") == 0);
    snprintf(home, sizeof(home), "XDG_CONFIG_HOME=%s", folder);
    (void)file_default_path(environment, false, path, sizeof(path));
    TEST_CHECK(strcmp(path, "/etc/coppice/coppice.json") == 0);
    TEST_ASSERT(mkdir(at(".config"), 0700) == 0 && mkdir(at(".config/coppice"), 0700) == 0);
    put(".config/coppice/coppice.json", "{}");
    snprintf(home, sizeof(home), "XDG_CONFIG_HOME=relative"); /* is to be ignored */
    TEST_CHECK(file_default_path(environment, false, path, sizeof(path)));
    TEST_CHECK_(strcmp(path, at(".config/coppice/coppice.json")) == 0, "%s", path);
    end();
}

TEST_LIST
= {
    {"keys with dots and nested objects", test_keys_with_dots_and_nested_objects},
    {"comments are spaces", test_comments_are_spaces},
    {"what stands there twice", test_what_stands_there_twice},
    {"what is no setting", test_what_is_no_setting},
    {"limits", test_limits},
    {"what makes sense of a file that is wrong", test_what_makes_sense_of_a_file_that_is_wrong},
    {"the folder beside it comes on top", test_the_folder_beside_it_comes_on_top},
    {"where it is looked for", test_where_it_is_looked_for},
    {"a folder has 31 files", test_a_folder_has_31_files},
    {"all settings have 262144 bytes", test_all_settings_have_262144_bytes},
    {"files that are too much", test_files_that_are_too_much},
    {"what the folder is not, or holds", test_the_folder_beside_it},
    {"calls that fail", test_calls_that_fail},
    {"texts and lists that are too long", test_texts_and_lists_that_are_too_long},
    {"where it is not looked for", test_where_it_is_not_looked_for},
    {NULL, NULL},
};
