/* The command line and the environment, cut out of the input at its line ends: any of them is understood or refused with a
 * sentence, and what is understood lies within the limits of its row. */
#include "config/options.h"
#include "config/plan.h"
#include "runtime/assert.h"
#include "tests/fuzz/bytes.h"

enum { WORDS_MAX = 32 };

static void in_range(uint64_t value, uint64_t min, uint64_t max)
{
    ASSERT(value >= min && value <= max);
}

/* What a kind of value has to be; limits of intensities are in seconds. */
#define CHECK_COUNT(value, min, max)     in_range(value, min, max)
#define CHECK_DURATION(value, min, max)  in_range(value, min, max)
#define CHECK_SIZE(value, min, max)      in_range(value, min, max)
#define CHECK_DECIMAL(value, min, max)   in_range(value, min, max)
#define CHECK_FLAG(value, min, max)      ((void)0)
#define CHECK_TEXT(value, min, max)      ASSERT((value) != NULL)
#define CHECK_CHOICE(value, min, max)    ASSERT((value) != NULL)
#define CHECK_INTENSITY(value, min, max) in_range((value).period_ns, (min)*S, (max)*S)
#define CHECK_LEVEL(value, min, max)     in_range((value), 0, LOG_LEVEL_COUNT - 1)

static void check_understood(const struct options *o)
{
    struct adapters_args adapters = {0};
    char why[512];
    ASSERT((unsigned)o->command < COMMAND_COUNT);
    if (o->command != COMMAND_SERVE)
        return;
#define X(field, key, kind, commands, min, max, ...) \
    if ((commands)&FOR(SERVE))                       \
        CHECK_##kind(o->field, min, max);
    OPTIONS(X)
#undef X
    ASSERT(o->runaway >= o->slice);
    if (!plan_adapters(o->adapters, &adapters, why, sizeof why))
        ASSERT(memchr(why, 0, sizeof why) && why[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[4096], why[512];
    char *argv[WORDS_MAX + 2] = {"coppice"}, *environment[WORDS_MAX + 1] = {0};
    int argc = 1;
    size_t variables = 0;
    struct bytes input = {data, size};
    struct options options;
    take_text(&input, sizeof text, text, sizeof text);
    for (char *rest = text, *word; (word = strsep(&rest, "\n"));) {
        if (strncmp(word, "COPPICE_", 8) == 0 && variables < WORDS_MAX)
            environment[variables++] = word;
        else if (argc <= WORDS_MAX)
            argv[argc++] = word;
    }
    int status = options_parse(&options, argc, argv, environment, why, sizeof why);
    ASSERT(status == 0 || status == EXIT_USAGE || status == EXIT_CONFIG);
    if (status)
        ASSERT(memchr(why, 0, sizeof why) && why[0]);
    else
        check_understood(&options);
    return 0;
}
