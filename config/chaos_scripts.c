#include "config/chaos_scripts.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Their bytes, as read-only data. */
#define EMBED(id, file)                                                          \
    __asm__(".pushsection .rodata\n"                                             \
            "chaos_script_" #id ":\n"                                            \
            ".incbin \"chaos/scripts/" file ".sh\"\n"                            \
            "chaos_script_" #id "_end:\n"                                        \
            ".byte 0\n"                                                          \
            ".popsection\n");                                                    \
    extern const char chaos_script_##id[] __attribute__((visibility("hidden"))); \
    extern const char chaos_script_##id##_end[] __attribute__((visibility("hidden")));

EMBED(common_text, "common")
#define X(id, name) EMBED(id, name)
CHAOS_SCENARIOS(X)
#undef X

static const struct {
    const char *name, *text, *end;
} scripts[] = {
#define X(id, name) {name, chaos_script_##id, chaos_script_##id##_end},
    CHAOS_SCENARIOS(X)
#undef X
};

const char *chaos_script_common(size_t *ret_size)
{
    *ret_size = (uintptr_t)chaos_script_common_text_end - (uintptr_t)chaos_script_common_text;
    return chaos_script_common_text;
}

const char *chaos_scenario_name(enum chaos_scenario which)
{
    return scripts[which].name;
}

enum chaos_scenario chaos_scenario_named(const char *name)
{
    for (int i = 0; i < SCENARIO_COUNT; i++)
        if (strcmp(scripts[i].name, name) == 0)
            return (enum chaos_scenario)i;
    return SCENARIO_COUNT;
}

/* The rest of the line that begins with "# NAME: ". "" when there is none. */
static void head_line(const char *text, const char *name, char *room, size_t size)
{
    char begin[32];
    size_t length = (size_t)snprintf(begin, sizeof(begin), "# %s: ", name);
    room[0] = 0;
    for (const char *line = text; *line == '#'; line += strcspn(line, "\n") + 1)
        if (strncmp(line, begin, length) == 0)
            snprintf(room, size, "%.*s", (int)(strcspn(line, "\n") - length), line + length);
}

bool chaos_script_read(enum chaos_scenario which, struct chaos_script *ret)
{
    static const char *const loads[] = {"served", "refused", "unanswered"};
    char load[32], process[32], receivers[32], runners[32];
    *ret = (struct chaos_script){
        .name = scripts[which].name, .text = scripts[which].text, .end = scripts[which].end};
    head_line(ret->text, "does", ret->does, sizeof(ret->does));
    head_line(ret->text, "holds", ret->holds, sizeof(ret->holds));
    head_line(ret->text, "load", load, sizeof(load));
    head_line(ret->text, "process", process, sizeof(process));
    head_line(ret->text, "receivers", receivers, sizeof(receivers));
    head_line(ret->text, "runners", runners, sizeof(runners));
    ret->runners_die = *runners != 0;
    ret->another_process = strcmp(process, "another") == 0;
    ret->receivers = *receivers != 0;
    for (int i = 0; i < 3; i++)
        if (strcmp(load, loads[i]) == 0) {
            ret->tolerates = (enum chaos_tolerance)i;
            return *ret->does && *ret->holds;
        }
    return false;
}
