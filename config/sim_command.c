#define _GNU_SOURCE
#include "config/sim_command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/output.h"

enum { PLACE_MAX = 4096 };

static bool is_number(const char *text)
{
    return *text && strlen(text) <= 19 && strspn(text, "0123456789") == strlen(text);
}

/* Becomes the one at this place in the folder; returns if there is none. */
static void become(const char *folder, const char *name, const struct options *o)
{
    char place[PLACE_MAX + 32];
    const char *arguments[] = {"sim", "--seed", o->seed, "--scenario", o->scenario, NULL};
    snprintf(place, sizeof(place), "%s/%s", folder, name);
    execv(place, (char *const *)(uintptr_t)arguments);
}

int command_sim(const struct options *o)
{
    char folder[PLACE_MAX];
    char why[PLACE_MAX + 160];
    if (!is_number(o->seed))
        return output_complain(EXIT_USAGE, "--seed", "is a whole number");
    ssize_t size = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
    if (size <= 0)
        return output_complain(EXIT_UNAVAILABLE, "sim:", "can't tell where this program lies");
    folder[size] = 0;
    char *last = strrchr(folder, '/');
    *last = 0;
    become(folder, "coppice-sim", o);
    become(folder, "chaos/sim", o);
    snprintf(why, sizeof(why), "there is no simulator beside this program, in %s (%s); 'make sim' builds it",
             folder, strerror(errno));
    return output_complain(EXIT_UNAVAILABLE, "sim:", why);
}
