#define _GNU_SOURCE
#include "config/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "http/json_text.h"
#include "runtime/assert.h"

enum { DEPTH_MAX = 8, ROOM_BEHIND = DEPTH_MAX + 2, NODES_MAX = 4096, PATH_SIZE = 512, NAMES_MAX = 31 };
STATIC_ASSERT(NAMES_MAX + 1 == FILE_COUNT_MAX, "the file, and those of the folder beside it");

/* The file being read. */
struct reading {
    struct file *file;
    const char *path;  /* in the file's text */
    const char *bytes; /* as they stand in the file */
    struct json_text json;
    uint32_t first; /* entry of this file */
    char *why;
    size_t why_size;
    bool refused;
};

__attribute__((format(printf, 3, 4))) static bool refuse(struct reading *r, uint32_t line, const char *format,
                                                         ...)
{
    if (r->refused)
        return false;
    r->refused = true;
    int used = line ? snprintf(r->why, r->why_size, "%s:%u: ", r->path, line)
                    : snprintf(r->why, r->why_size, "%s: ", r->path);
    va_list list;
    va_start(list, format);
    if ((size_t)used < r->why_size)
        vsnprintf(r->why + used, r->why_size - (size_t)used, format, list);
    va_end(list);
    return false;
}

static uint32_t line_at(const char *bytes, size_t at)
{
    uint32_t line = 1;
    for (size_t i = 0; i < at; i++)
        line += bytes[i] == '\n';
    return line;
}

/* A copy with a 0 behind it, or NULL when the text is full. */
static const char *keep(struct file *file, const char *bytes, size_t size)
{
    if (size >= FILE_TEXT_MAX - file->text_used)
        return NULL;
    char *copy = file->text + file->text_used;
    memcpy(copy, bytes, size);
    copy[size] = 0;
    file->text_used += (uint32_t)size + 1;
    return copy;
}

/* ---- comments become spaces, so that every byte keeps its place ---- */

/* The end of the string that begins at `at`, or size. */
static size_t behind_string(const char *text, size_t at, size_t size)
{
    for (at++; at < size && text[at] != '"' && text[at] != '\n'; at++)
        at += text[at] == '\\';
    return at < size ? at + 1 : size;
}

static void blank_comments(struct reading *r, char *text, size_t size)
{
    for (size_t at = 0; at < size;) {
        if (text[at] == '"') {
            at = behind_string(text, at, size);
        } else if (text[at] == '/' && at + 1 < size && text[at + 1] == '/') {
            for (; at < size && text[at] != '\n'; at++)
                text[at] = ' ';
        } else if (text[at] == '/' && at + 1 < size && text[at + 1] == '*') {
            const char *end = memmem(text + at + 2, size - at - 2, "*/", 2);
            if (!end) {
                refuse(r, line_at(text, at), "the comment that begins here has no end");
                end = text + size - 2;
            }
            for (size_t stop = (size_t)(end - text) + 2; at < stop; at++)
                text[at] = text[at] == '\n' ? '\n' : ' ';
        } else {
            at++;
        }
    }
}

/* ---- what is whole before a mistake ---- */

/* Closes what is open at `at`, in place, as if the text ended there: its new size. */
static size_t closed(char *text, size_t at, const char *open, size_t depth)
{
    while (depth > 0)
        text[at++] = open[--depth] == '{' ? '}' : ']';
    return at;
}

/* Of a text that makes sense up to `wrong`: its members before that, closed, so that they can be read. They end where the
 * last one ends that a comma follows, or at `wrong` itself (`last`), when only the comma is missing there. There is room for
 * DEPTH_MAX + 1 more bytes. 0: there are none. */
static size_t whole_part(char *text, size_t wrong, bool last)
{
    char open[DEPTH_MAX + 1] = {0}, open_at_cut[DEPTH_MAX + 1] = {0};
    size_t depth = 0, cut = 0, depth_at_cut = 0;
    for (size_t at = 0; at < wrong; at++) {
        if (text[at] == '"')
            at = behind_string(text, at, wrong) - 1;
        else if (text[at] == '{' || text[at] == '[') {
            ASSERT(depth < sizeof(open)); /* up to here it was read, and so are the ends below */
            open[depth++] = text[at];
        } else if (text[at] == '}' || text[at] == ']') {
            ASSERT(depth > 0);
            depth--;
        }
        if ((last ? at + 1 == wrong : text[at] == ',') && depth > 0 && open[depth - 1] == '{') {
            cut = last ? wrong : at;
            depth_at_cut = depth;
            memcpy(open_at_cut, open, depth);
        }
    }
    return cut ? closed(text, cut, open_at_cut, depth_at_cut) : 0;
}

/* ---- from values to entries. No name and no text that was read holds a 0 byte (http/json_text.h). ---- */

static uint32_t line_of(const struct reading *r, const struct json_node *node)
{
    return line_at(r->bytes, node->at);
}

static bool add(struct reading *r, const char *key, const struct json_node *at, enum file_kind kind,
                const char *value, size_t size)
{
    struct file *f = r->file;
    uint32_t line = line_of(r, at);
    for (uint32_t i = r->first; i < f->count; i++)
        if (strcmp(f->entries[i].key, key) == 0)
            return refuse(r, line, "%s was given in line %u already", key, f->entries[i].line);
    if (f->count == FILE_ENTRIES_MAX)
        return refuse(r, line, "more than %u settings", FILE_ENTRIES_MAX);
    struct file_entry e = {.path = r->path, .line = line, .kind = kind};
    e.key = keep(f, key, strlen(key));
    e.value = keep(f, value, size);
    if (!e.key || !e.value)
        return refuse(r, line, "more than %u bytes of settings", FILE_TEXT_MAX);
    f->entries[f->count++] = e;
    return true;
}

static bool add_text(struct reading *r, const char *key, const struct json_node *name,
                     const struct json_node *value)
{
    char room[4096];
    struct span text;
    if (!json_string_of(&r->json, value, room, sizeof(room), &text))
        return refuse(r, line_of(r, value), "%s has more than %zu bytes", key, sizeof(room));
    return add(r, key, name, FILE_TEXT, text.bytes, text.size);
}

/* ["a", "b"] is "a,b". */
static bool add_list(struct reading *r, const char *key, const struct json_node *name,
                     const struct json_node *list)
{
    char joined[4096];
    size_t used = 0;
    const struct json_node *e = json_first(&r->json, list);
    for (; e; e = json_after(&r->json, list, e)) {
        char room[1024];
        struct span text;
        if (e->kind != JSON_STRING)
            return refuse(r, line_of(r, e), "%s is a list with something that is no text", key);
        if (!json_string_of(&r->json, e, room, sizeof(room), &text) || used + text.size + 1 > sizeof(joined))
            return refuse(r, line_of(r, e), "%s has too many bytes", key);
        if (text.size == 0 || memchr(text.bytes, ',', text.size))
            return refuse(r, line_of(r, e), "%s is a list with a text that is empty or holds a comma", key);
        if (used)
            joined[used++] = ',';
        memcpy(joined + used, text.bytes, text.size);
        used += text.size;
    }
    return add(r, key, name, FILE_LIST, joined, used);
}

static bool add_value(struct reading *r, const char *key, const struct json_node *name,
                      const struct json_node *value)
{
    struct span raw = json_raw_of(&r->json, value);
    switch (value->kind) {
    case JSON_STRING:
        return add_text(r, key, name, value);
    case JSON_NUMBER:
        return add(r, key, name, FILE_NUMBER, raw.bytes, raw.size);
    case JSON_TRUE:
    case JSON_FALSE:
        return add(r, key, name, FILE_FLAG, raw.bytes, raw.size);
    case JSON_ARRAY:
        return add_list(r, key, name, value);
    default: /* objects aren't given */
        return refuse(r, line_of(r, name), "%s is null; leave it out to have its default", key);
    }
}

/* Depth first, with the way down in an array: how deep a file may go is the array's length. */
static bool walk(struct reading *r)
{
    struct {
        const struct json_node *object, *name;
        size_t prefix; /* bytes of the key that belong to what lies above */
    } stack[DEPTH_MAX];
    char key[FILE_KEY_MAX];
    size_t depth = 1;
    const struct json_node *root = json_root(&r->json);
    if (root->kind != JSON_OBJECT)
        return refuse(r, line_of(r, root), "the file must hold one object, { ... }");
    bool good = true;
    stack[0].object = root;
    stack[0].name = json_first(&r->json, root);
    stack[0].prefix = 0;
    while (depth > 0) {
        const struct json_node *object = stack[depth - 1].object, *name = stack[depth - 1].name;
        size_t prefix = stack[depth - 1].prefix;
        char room[FILE_KEY_MAX];
        struct span part;
        if (!name) {
            depth--;
            continue;
        }
        stack[depth - 1].name = json_after(&r->json, object, name);
        bool fits = json_string_of(&r->json, name, room, sizeof(room), &part);
        ASSERT(fits); /* parse takes no longer names */
        if (prefix + part.size + 2 > sizeof(key))
            return refuse(r, line_of(r, name), "no setting has a name as long as this");
        memcpy(key + prefix, part.bytes, part.size);
        key[prefix + part.size] = 0;
        const struct json_node *value = json_value_of(name);
        if (value->kind != JSON_OBJECT) {
            good &= add_value(r, key, name, value);
            continue;
        }
        if (depth == DEPTH_MAX)
            return refuse(r, line_of(r, name), "no setting lies as deep as this");
        key[prefix + part.size] = '.';
        stack[depth].object = value;
        stack[depth].name = json_first(&r->json, value);
        stack[depth].prefix = prefix + part.size + 1;
        depth++;
    }
    return good;
}

/* ---- reading ---- */

static bool blank(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!strchr(" \t\r\n", text[i]) || !text[i])
            return false;
    return true;
}

static bool parse(struct reading *r, const char *bytes, size_t size, struct json_error *ret_error)
{
    static struct json_node nodes[NODES_MAX];
    struct json_limits limits = {.depth = DEPTH_MAX + 1, .nodes = NODES_MAX, .key = FILE_KEY_MAX};
    r->json = (struct json_text){.nodes = nodes, .nodes_max = NODES_MAX};
    return size > 0 && json_text_read(&r->json, span_of(bytes, size), &limits, ret_error);
}

/* A text that goes wrong at `wrong`, as far as it makes sense before that. */
static void read_before(struct reading *r, char *bytes, size_t wrong)
{
    static char copy[FILE_BYTES_MAX + ROOM_BEHIND];
    struct json_error error;
    for (int last = 1; last >= 0; last--) {
        memcpy(copy, bytes, wrong);
        if (!parse(r, copy, whole_part(copy, wrong, last), &error))
            continue;
        r->bytes = copy;
        (void)walk(r);
        return;
    }
}

static bool read_bytes(struct reading *r, char *bytes, size_t size)
{
    struct json_error error = {0};
    r->bytes = bytes;
    r->first = r->file->count;
    blank_comments(r, bytes, size);
    if (blank(bytes, size))
        return !r->refused;
    if (parse(r, bytes, size, &error))
        return walk(r) && !r->refused;
    size_t wrong = error.at < size ? error.at : size;
    refuse(r, line_at(bytes, wrong), "%s", error.what);
    read_before(r, bytes, wrong);
    return false;
}

static bool read_one(struct file *file, const char *path, char *why, size_t why_size)
{
    static char bytes[FILE_BYTES_MAX + 1];
    struct reading r = {.file = file, .path = path, .why = why, .why_size = why_size};
    struct stat status;
    size_t size = 0;
    ssize_t n = 1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return refuse(&r, 0, "%s", strerror(errno));
    while (size < sizeof(bytes) && n > 0) {
        n = read(fd, bytes + size, sizeof(bytes) - size);
        size += n > 0 ? (size_t)n : 0;
        n = n < 0 && errno == EINTR ? 1 : n;
    }
    int error = errno;
    bool regular = fstat(fd, &status) == 0 && S_ISREG(status.st_mode); /* /dev/null is meant */
    close(fd);
    if (n < 0)
        return refuse(&r, 0, "%s", strerror(error));
    if (regular && blank(bytes, size))
        return refuse(&r, 0, "the file is empty; {} leaves everything at its default");
    if (size > FILE_BYTES_MAX)
        return refuse(&r, 0, "the file has more than %u bytes", FILE_BYTES_MAX);
    const char *kept = keep(file, path, strlen(path));
    if (!kept)
        return refuse(&r, 0, "more than %u bytes of settings before it", FILE_TEXT_MAX);
    ASSERT(file->files_count < FILE_COUNT_MAX); /* see NAMES_MAX */
    r.path = kept;
    file->files[file->files_count++] = r.path;
    return read_bytes(&r, bytes, size);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* conf.d beside the file; without one there is nothing to read. */
static bool read_folder(struct file *file, const char *path, char *why, size_t why_size)
{
    static char names[NAMES_MAX][256];
    char folder[PATH_SIZE], whole[PATH_SIZE + 256];
    char later[PATH_SIZE + 256];
    const char *slash = strrchr(path, '/');
    size_t count = 0;
    bool good = true;
    snprintf(folder, sizeof(folder), "%.*sconf.d", (int)(slash ? slash - path + 1 : 0), path);
    DIR *dir = opendir(folder);
    if (!dir && (errno == ENOENT || errno == ENOTDIR))
        return true;
    if (!dir) {
        snprintf(why, why_size, "%s: %s", folder, strerror(errno));
        return false;
    }
    for (struct dirent *e; (e = readdir(dir));) {
        size_t length = strlen(e->d_name);
        if (e->d_name[0] == '.' || length < 6 || strcmp(e->d_name + length - 5, ".json") != 0)
            continue;
        if (count == NAMES_MAX) {
            closedir(dir);
            snprintf(why, why_size, "%s: more than %d files", folder, NAMES_MAX);
            return false;
        }
        memcpy(names[count++], e->d_name, length + 1);
    }
    closedir(dir);
    qsort(names, count, sizeof(names[0]), by_name);
    for (size_t i = 0; i < count; i++) {
        snprintf(whole, sizeof(whole), "%s/%s", folder, names[i]);
        good &= read_one(file, whole, good ? why : later, good ? why_size : sizeof(later));
    }
    return good;
}

static void empty(struct file *file)
{
    file->count = file->files_count = file->text_used = 0;
}

bool file_read(struct file *file, const char *path, char *ret_why, size_t why_size)
{
    char later[PATH_SIZE + 256]; /* what else is wrong isn't said */
    empty(file);
    if (strlen(path) >= PATH_SIZE - sizeof("conf.d")) {
        snprintf(ret_why, why_size, "%.60s...: a path of a file has at most %zu bytes", path,
                 PATH_SIZE - sizeof("conf.d") - 1);
        return false;
    }
    if (read_one(file, path, ret_why, why_size))
        return read_folder(file, path, ret_why, why_size);
    (void)read_folder(file, path, later, sizeof(later));
    return false;
}

bool file_read_text(struct file *file, const char *name, const char *text, size_t size, char *ret_why,
                    size_t why_size)
{
    static char bytes[FILE_BYTES_MAX];
    struct reading r = {.file = file, .path = name, .why = ret_why, .why_size = why_size};
    empty(file);
    if (size > FILE_BYTES_MAX)
        return refuse(&r, 0, "the file has more than %u bytes", FILE_BYTES_MAX);
    r.path = keep(file, name, strlen(name));
    ASSERT(r.path);
    file->files[file->files_count++] = r.path;
    memcpy(bytes, text, size);
    return read_bytes(&r, bytes, size);
}

/* ---- where it is ---- */

static const char *variable(char *const environment[], const char *name)
{
    size_t length = strlen(name);
    for (; *environment; environment++)
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return *environment + length + 1;
    return NULL;
}

static bool there(const char *path)
{
    return access(path, F_OK) == 0;
}

bool file_default_path(char *const environment[], bool root, char *ret_path, size_t path_size)
{
    const char *home = variable(environment, "HOME"), *xdg = variable(environment, "XDG_CONFIG_HOME");
    if (!root && xdg && xdg[0] == '/') { /* the XDG specification: a relative one is to be ignored */
        snprintf(ret_path, path_size, "%s/coppice/coppice.json", xdg);
        if (there(ret_path))
            return true;
    } else if (!root && home && home[0] == '/') {
        snprintf(ret_path, path_size, "%s/.config/coppice/coppice.json", home);
        if (there(ret_path))
            return true;
    }
    snprintf(ret_path, path_size, "/etc/coppice/coppice.json");
    return there(ret_path);
}

const char *file_kind_name(enum file_kind kind)
{
    static const char *const names[] = {[FILE_TEXT] = "a text",
                                        [FILE_NUMBER] = "a number",
                                        [FILE_FLAG] = "true or false",
                                        [FILE_LIST] = "a list"};
    return names[kind];
}
