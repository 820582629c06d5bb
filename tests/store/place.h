/* Places: directories for tests, how they look, and disks of a chosen size. */
#ifndef COPPICE_TESTS_STORE_PLACE_H
#define COPPICE_TESTS_STORE_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLACE_PATH_MAX 256u
#define PLACE_NOBODY   65534u /* a user without rights */

/* A new empty directory, in memory when the machine has room there; removed with all that is in it. */
void place_make(char path[PLACE_PATH_MAX]);
void place_remove(const char *path);
/* DIR/NAME; good until the fourth call after it. */
const char *place_in(const char *dir, const char *name);

/* What lies at path, all of it: names, kinds, rights and owners, of files also the size, the time of change and a hash of
 * the bytes, one line for each, sorted. Two looks are the same text when nothing was touched. Allocated. "" when there is
 * nothing. */
char *place_look(const char *path);

void place_write(const char *path, const void *bytes, size_t size);
/* All of a file; allocated. */
uint8_t *place_read(const char *path, size_t *ret_size);
/* One byte of a file becomes another. */
void place_flip(const char *path, uint64_t offset);

/* Mounts a disk of so many bytes at path, for this process alone: its mounts are its own from now on. False, with a line
 * on standard output that says why: this machine doesn't allow that. */
bool place_mount(const char *path, uint64_t bytes);
/* What is on path can't be written any more, whoever asks. The same conditions. */
bool place_mount_read_only(const char *path);
/* Takes what is left of a disk with a file; returns its bytes. */
uint64_t place_fill(const char *path);

/* Runs the function in a process of its own; its exit status, or -1 - signal. */
int place_apart(int (*run)(void *arg), void *arg);

#endif
