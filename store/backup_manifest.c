#include "store/backup_manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "runtime/json.h"
#include "store/uuid.h"

#define WRITE_TEXT(json, m, member)   JSON_MEMBER(json, #member, string, (m)->member)
#define WRITE_NUMBER(json, m, member) JSON_MEMBER(json, #member, uint, (m)->member)
size_t manifest_write(const struct manifest *m, char *bytes, size_t room)
{
    struct json_sink sink;
    struct json json;
    json_sink_init(&sink, bytes, room, NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
#define X(KIND, member, bytes) WRITE_##KIND(&json, m, member);
    MANIFEST_MEMBERS(X)
#undef X
    json_object_end(&json);
    return json_end_line(&json) == JSON_OK ? sink.length : 0;
}

static void skip_blanks(const char **at)
{
    *at += strspn(*at, " \t\r\n");
}

static bool take(const char **at, char c)
{
    skip_blanks(at);
    if (**at != c)
        return false;
    ++*at;
    return true;
}

static bool take_text(const char **at, char *ret_text, size_t size)
{
    if (!take(at, '"'))
        return false;
    size_t length = strcspn(*at, "\"\\");
    if ((*at)[length] != '"' || length >= size)
        return false;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)(*at)[i] < 0x20 || (unsigned char)(*at)[i] > 0x7e)
            return false;
    memcpy(ret_text, *at, length);
    ret_text[length] = 0;
    *at += length + 1;
    return true;
}

static bool take_number(const char **at, uint64_t *ret_number)
{
    uint64_t number = 0;
    skip_blanks(at);
    if (**at < '0' || **at > '9' || (**at == '0' && (*at)[1] >= '0' && (*at)[1] <= '9'))
        return false;
    for (; **at >= '0' && **at <= '9'; ++*at)
        if (__builtin_mul_overflow(number, 10u, &number) ||
            __builtin_add_overflow(number, (uint64_t)(**at - '0'), &number))
            return false;
    *ret_number = number;
    return true;
}

static bool take_name(const char **at, const char *name, bool first)
{
    char found[16];
    return (first || take(at, ',')) && take_text(at, found, sizeof(found)) && strcmp(found, name) == 0 &&
           take(at, ':');
}

#define READ_TEXT(at, m, member)   take_text(at, (m)->member, sizeof((m)->member))
#define READ_NUMBER(at, m, member) take_number(at, &(m)->member)
static bool manifest_parse(const char *at, struct manifest *m)
{
    bool first = true;
    if (!take(&at, '{'))
        return false;
#define X(KIND, member, bytes)                                           \
    if (!take_name(&at, #member, first) || !READ_##KIND(&at, m, member)) \
        return false;                                                    \
    first = false;
    MANIFEST_MEMBERS(X)
#undef X
    if (!take(&at, '}'))
        return false;
    skip_blanks(&at);
    return *at == 0;
}

static bool manifest_sound(const struct manifest *m)
{
    struct uuid identity;
    return strcmp(m->kind, MANIFEST_KIND) == 0 && uuid_parse(m->identity, strlen(m->identity), &identity) &&
           strlen(m->sha256) == BACKUP_SHA256_SIZE - 1 &&
           strspn(m->sha256, "0123456789abcdef") == BACKUP_SHA256_SIZE - 1 && m->commit > 0 && m->bytes > 0;
}

enum error manifest_read(struct saying *s, const char *dir, int dir_fd, struct manifest *ret_manifest)
{
    char bytes[MANIFEST_SIZE_MAX + 1];
    int fd = openat(dir_fd, MANIFEST_FILE, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return saying_refuse(s, ERR_MISSING,
                             "'%s' holds no " MANIFEST_FILE ": it is not a backup, or not a whole one", dir);
    if (fd < 0)
        return saying_refuse_system(s, dir, "verified: " MANIFEST_FILE);
    ssize_t size = pread(fd, bytes, sizeof(bytes), 0);
    close(fd);
    if (size < 0)
        return saying_refuse_system(s, dir, "verified: " MANIFEST_FILE);
    bytes[size < (ssize_t)sizeof(bytes) ? size : 0] = 0;
    memset(ret_manifest, 0, sizeof(*ret_manifest));
    if (strlen(bytes) != (size_t)size || !manifest_parse(bytes, ret_manifest) ||
        !manifest_sound(ret_manifest))
        return saying_refuse(s, ERR_DAMAGED, "'%s' holds a " MANIFEST_FILE " that no backup has", dir);
    if (ret_manifest->manifest > MANIFEST_VERSION)
        return saying_refuse(s, ERR_NEWER, "'%s' is a backup that a newer program made (%s)", dir,
                             ret_manifest->version);
    return OK;
}

struct backup_report manifest_report(const struct manifest *manifest)
{
    struct backup_report report = {
        .bytes = manifest->bytes, .commit = manifest->commit, .rows = manifest->rows};
    memcpy(report.sha256, manifest->sha256, sizeof(report.sha256));
    return report;
}
