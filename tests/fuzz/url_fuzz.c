/* Request targets: what is accepted is what a plain second reading of the same bytes gives, and nothing in it can be
 * read in two ways; queries and their values are decoded as another decoder does it. */
#define _GNU_SOURCE /* memmem */
#include "http/url.h"
#include "runtime/assert.h"
#include "runtime/json.h"
#include "tests/fuzz/bytes.h"

#define TARGET_MAX 4096

static int digit(unsigned char c)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)((at - digits) % 16) : -1;
}

/* The plain second reading: decodes everything, once. */
static size_t decode(struct span text, bool plus, char *out)
{
    const unsigned char *in = text.bytes;
    size_t used = 0;
    for (uint32_t i = 0; i < text.size; i++) {
        if (in[i] == '%') {
            out[used++] = (char)(digit(in[i + 1]) * 16 + digit(in[i + 2]));
            i += 2;
        } else {
            out[used++] = plus && in[i] == '+' ? ' ' : (char)in[i];
        }
    }
    return used;
}

static bool holds(struct span text, const char *what, size_t size)
{
    return memmem(text.bytes, text.size, what, size) != NULL;
}

static void check_path(struct span path)
{
    const unsigned char *at = path.bytes;
    char last[3] = "";
    ASSERT(path.size > 0 && at[0] == '/');
    ASSERT(!holds(path, "//", 2) && !holds(path, "/./", 3) && !holds(path, "/../", 4) &&
           !holds(path, "\\", 1));
    if (path.size >= 2)
        memcpy(last, at + path.size - 2, 2);
    ASSERT(strcmp(last, "/.") != 0);
    ASSERT(path.size < 3 || memcmp(at + path.size - 3, "/..", 3) != 0);
    for (uint32_t i = 0; i < path.size; i++) {
        size_t length = at[i] < 0x80 ? 1 : json_utf8_sequence(at + i, path.size - i);
        ASSERT(length > 0 && at[i] >= 0x20 && at[i] != 0x7f);
        ASSERT(at[i] != '%' || i + 2 >= path.size || digit(at[i + 1]) < 0 || digit(at[i + 2]) < 0);
        i += (uint32_t)length - 1;
    }
}

/* Where the path of this target stands, raw. */
static struct span raw_path(struct span target)
{
    const char *begin = target.bytes, *end = begin + target.size;
    if (*begin == '*')
        return span_text("/");
    if (*begin != '/') {
        const char *authority = memmem(begin, target.size, "://", 3);
        ASSERT(authority != NULL);
        begin = authority + 3;
        while (begin < end && *begin != '/' && *begin != '?')
            begin++;
    }
    const char *mark = begin;
    while (mark < end && *mark != '?')
        mark++;
    end = mark;
    return begin < end ? span_of(begin, (size_t)(end - begin)) : span_text("/");
}

static void check_query(struct span query)
{
    char ours[TARGET_MAX], plain[TARGET_MAX];
    struct span name, value;
    size_t size, pieces = 0;
    while (url_query_next(&query, &name, &value)) {
        ASSERT(!holds(name, "=", 1) && !holds(name, "&", 1) && !holds(value, "&", 1));
        if (url_decode(value, ours, sizeof(ours), &size))
            ASSERT(size == decode(value, true, plain) && memcmp(ours, plain, size) == 0);
        ASSERT(++pieces <= TARGET_MAX);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes input = {data, size};
    char room[TARGET_MAX], plain[TARGET_MAX];
    bool options = take(&input) & 1;
    struct span target = span_of(input.at, input.left < TARGET_MAX ? input.left : TARGET_MAX);
    struct url url = {.asterisk = true};
    enum url_result result = url_path(target, options, room, sizeof(room), &url);
    ASSERT(url_result_text(result)[0] || result == URL_OK);
    check_query(target); /* any bytes */
    if (result != URL_OK)
        return 0;
    ASSERT(!url.asterisk || options);
    check_path(url.path);
    struct span raw = raw_path(target);
    ASSERT(url.path.size == decode(raw, false, plain) && memcmp(url.path.bytes, plain, url.path.size) == 0);
    const char *slash = memrchr(raw.bytes, '/', raw.size);
    struct span last = span_of(slash, raw.size - (size_t)(slash - (const char *)raw.bytes));
    ASSERT(!holds(last, "%3a", 3) && !holds(last, "%3A", 3));
    return 0;
}
