/* The file of settings: JSON with comments, read strictly, as a list of keys with their values and lines.
 *
 *     // what this machine is for
 *     { "environment": "prod", "store": { "dir": "/var/lib/coppice" }, "log.level": "warn" }
 *
 * A key is written with dots, in nested objects, or both; what counts is the whole, "store.dir". A list of texts stands for
 * the texts with commas between them, where a setting may be several. Comments go from // to the end of the line or from slash-star to star-slash, and a
 * file may be nothing but them; one with nothing in it at all is refused, because it was cut off. Anything that isn't sound JSON otherwise, a key that stands there twice in one file, or
 * a value that is neither text, number, true, false nor a list of texts is refused with the file and the line. Which keys
 * there are and what their values may be is config/options.h's business.
 *
 * One thread at a time. All memory is inside struct file; nothing is allocated. Reading blocks for as long as the disk
 * takes.
 */
#ifndef COPPICE_CONFIG_FILE_H
#define COPPICE_CONFIG_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FILE_BYTES_MAX   65536u                /* of one file */
#define FILE_ENTRIES_MAX 512u                  /* of all together */
#define FILE_KEY_MAX     96u                   /* bytes of a key with its dots */
#define FILE_COUNT_MAX   32u                   /* files: the one, and those of conf.d */
#define FILE_TEXT_MAX    (4u * FILE_BYTES_MAX) /* keys, values and names of all files */

enum file_kind { FILE_TEXT, FILE_NUMBER, FILE_FLAG, FILE_LIST };

struct file_entry {
    const char *key, *value; /* in struct file's text */
    const char *path;
    uint32_t line;
    enum file_kind kind;
};

struct file {
    uint32_t count, files_count;
    struct file_entry
        entries[FILE_ENTRIES_MAX];     /* in reading order: of two with one key the later one counts */
    const char *files[FILE_COUNT_MAX]; /* that were read */
    uint32_t text_used;
    char text[FILE_TEXT_MAX];
};

/* Empties it, then reads this file and conf.d/[*].json in its folder, by name. False: "PATH:LINE: what is wrong" of the first
 * that is, or why it could not be read; the entries are those that make sense all the same, of a text that breaks off or goes
 * wrong those before that. */
bool file_read(struct file *file, const char *path, char *ret_why, size_t why_size);
/* The same of a text instead of a file; `name` is what it is called. For one file of bytes from anywhere. */
bool file_read_text(struct file *file, const char *name, const char *text, size_t size, char *ret_why,
                    size_t why_size);
/* The file that counts when none is named: /etc/coppice/coppice.json, for other users than root first
 * $XDG_CONFIG_HOME/coppice/coppice.json (or ~/.config/...). False: neither is there. */
bool file_default_path(char *const environment[], bool root, char *ret_path, size_t path_size);

const char *file_kind_name(enum file_kind kind); /* "a text", "a number", "true or false", "a list" */

#endif
