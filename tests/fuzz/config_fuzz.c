/* A file of settings, of any bytes: it is understood or refused with its line and a sentence; what is understood holds no
 * key twice, and options made of it lie within the limits of their rows. */
#include <string.h>

#include "config/settings.h"
#include "runtime/assert.h"
#include "tests/fuzz/bytes.h"

static void check_entries(const struct file *file, size_t size)
{
    ASSERT(file->count <= FILE_ENTRIES_MAX && file->files_count == 1);
    for (uint32_t i = 0; i < file->count; i++) {
        const struct file_entry *e = &file->entries[i];
        ASSERT(strlen(e->key) < FILE_KEY_MAX && e->value && e->line >= 1 && e->line <= size + 1);
        for (uint32_t k = 0; k < i; k++)
            ASSERT(strcmp(file->entries[k].key, e->key) != 0);
    }
}

static void in_range(uint64_t value, uint64_t min, uint64_t max)
{
    ASSERT(value >= min && value <= max);
}

#define CHECK_COUNT(value, min, max)     in_range(value, min, max)
#define CHECK_DURATION(value, min, max)  in_range(value, min, max)
#define CHECK_SIZE(value, min, max)      in_range(value, min, max)
#define CHECK_DECIMAL(value, min, max)   in_range(value, min, max)
#define CHECK_FLAG(value, min, max)      ((void)0)
#define CHECK_TEXT(value, min, max)      ASSERT((value) != NULL)
#define CHECK_CHOICE(value, min, max)    ASSERT((value) != NULL)
#define CHECK_INTENSITY(value, min, max) in_range((value).period_ns, (min)*S, (max)*S)
#define CHECK_LEVEL(value, min, max)     in_range((value), 0, LOG_LEVEL_COUNT - 1)

static void check_options(const struct options *o)
{
#define X(field, key, kind, commands, min, max, ...) \
    if ((commands)&FOR(SERVE))                       \
        CHECK_##kind(o->field, min, max);
    OPTIONS(X)
#undef X
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        char value[OPTION_VALUE_SIZE];
        option_show(&option_table[i], o, value);
        ASSERT(memchr(value, 0, sizeof value));
        ASSERT(option_same(&option_table[i], o, o));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct settings settings;
    char *argv[] = {"coppice", "serve", NULL}, *environment[] = {NULL};
    char why[1024] = "";
    bool sound = file_read_text(&settings.file, "x", (const char *)data, size, why, sizeof why);
    ASSERT(memchr(why, 0, sizeof why));
    if (!sound) {
        ASSERT(why[0]);
        return 0;
    }
    check_entries(&settings.file, size);
    int status = options_parse_with(&settings.file, &settings.options, 2, argv, environment, why, sizeof why);
    ASSERT(status == 0 || status == EXIT_CONFIG);
    ASSERT(memchr(why, 0, sizeof why));
    if (status)
        ASSERT(why[0]);
    else
        check_options(&settings.options);
    return 0;
}
