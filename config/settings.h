/* Settings: the options of this process, with the file that some of them come from.
 *
 * Loaded by main, and again by a reload into a second one (config/reload.h). Everything that options borrow lies in the
 * file's text beside them, in argv or in the environment, so that a struct settings is good for as long as it stands.
 */
#ifndef COPPICE_CONFIG_SETTINGS_H
#define COPPICE_CONFIG_SETTINGS_H

#include "config/file.h"
#include "config/options.h"
#include "http/limiter.h"

#define SETTINGS_OVERRIDES_MAX 256u
#define SETTINGS_TEMPLATES_MAX AGENT_TEMPLATES_MAX

struct settings {
    struct options options;
    char path[512]; /* of the file that was read; empty: none */
    struct file file;
    char damage
        [512]; /* what is wrong with the file, for a command that went on without that; empty: nothing is */
    uint32_t overrides_count; /* quotas of single clients */
    struct limiter_override overrides[SETTINGS_OVERRIDES_MAX];
    uint32_t templates_count; /* of agents, whose tokens live shorter */
    struct agent_template templates[SETTINGS_TEMPLATES_MAX];
};

/* The file that --config or COPPICE_CONFIG names, or the default one if it is there, then everything on top. 0, or the exit
 * status and why. A default file that this user may not read is refused where settings of the server count, and left
 * alone by the other commands.
 *
 * A file with something wrong in it is refused where settings of the server count. Commands that ask a running server go on without what is
 * wrong, and `damage` says what it is, so that an operator isn't blind because somebody edits the file; those that change something do so only
 * when the server's address is known from elsewhere than from the defaults, and those that read a store only when its directory is. Blocks for the disk; allocates (a folder is listed). */
int settings_load(struct settings *ret, int argc, char *const argv[], char *const environment[],
                  char *ret_text, size_t text_size);

/* What they say to the limiter; borrows the overrides. */
void settings_limiter(const struct settings *settings, struct limiter_options *ret);

/* Each setting of the server with its value and where that comes from, and those of the file of which there is one per name.
 * source: SOURCE_COUNT for all. started: the file from which come those that need a restart; of a server that was started with
 * it, else `file` itself. */
void settings_write_json(struct json *json, const struct options *options, const struct file *file,
                         const struct file *started, enum source_kind source);
void settings_write_text(struct json_sink *sink, const struct options *options, const struct file *file,
                         enum source_kind source);
/* JSON Schema of the file. */
void settings_write_schema(struct json *json);

#endif
