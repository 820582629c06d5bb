/* Manifest: what a backup says of itself, in a file beside its data.
 *
 * Members stand in one order, which is the only one that is read: anything else is no manifest of ours.
 */
#ifndef COPPICE_STORE_BACKUP_MANIFEST_H
#define COPPICE_STORE_BACKUP_MANIFEST_H

#include "store/backup.h"
#include "store/saying.h"

#define MANIFEST_FILE     "manifest.json"
#define MANIFEST_SIZE_MAX 4096u
#define MANIFEST_KIND     "coppice backup"
#define MANIFEST_VERSION  1u

/* X(KIND, member, bytes of text) */
#define MANIFEST_MEMBERS(X)             \
    X(TEXT, kind, 16)                   \
    X(NUMBER, manifest, 0)              \
    X(NUMBER, format, 0)                \
    X(TEXT, identity, 37)               \
    X(NUMBER, commit, 0)                \
    X(NUMBER, bytes, 0)                 \
    X(NUMBER, rows, 0)                  \
    X(TEXT, sha256, BACKUP_SHA256_SIZE) \
    X(TEXT, made_at, 32)                \
    X(TEXT, version, 32)

#define MANIFEST_TEXT(member, bytes)   char member[bytes];
#define MANIFEST_NUMBER(member, bytes) uint64_t member;
struct manifest {
#define X(KIND, member, bytes) MANIFEST_##KIND(member, bytes)
    MANIFEST_MEMBERS(X)
#undef X
};

/* As a line of JSON; 0: there is no room. */
size_t manifest_write(const struct manifest *m, char *bytes, size_t room);
/* Of the directory `dir`, open as dir_fd. ERR_MISSING; ERR_DAMAGED: no backup has such a one; ERR_NEWER. */
enum error manifest_read(struct saying *s, const char *dir, int dir_fd, struct manifest *ret_manifest);
/* What a caller is told of it. */
struct backup_report manifest_report(const struct manifest *manifest);

#endif
