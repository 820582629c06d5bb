/* Blobs: immutable strings of bytes with a reference count, for what crosses actors and schedulers and is too
 * large or too long-lived for a message: exit reasons, payloads sent to many.
 *
 * A blob is made with one reference. Whoever keeps it takes a reference, whoever is done gives one back; the
 * last one frees it, on whichever thread that is. The bytes never change and are followed by a NUL that does
 * not count.
 *
 * Storage is process-wide: one region of address space, reserved once, cut into slabs of 256 KiB,
 * each for one size. Sizes go in steps of a quarter (64, 80, 96, 112, 128, 160, ... bytes, 9 of them
 * overhead), so that at most a fifth is lost to rounding. An empty slab can serve another size. Memory is
 * touched when first needed and kept for reuse. Nothing calls malloc.
 *
 * Who may call: any thread. blob_create and the last blob_unref take one mutex for some ten
 * nanoseconds and copy outside it; blob_ref and the other blob_unrefs are one atomic instruction. Nothing
 * else waits.
 */
#ifndef COPPICE_RUNTIME_BLOB_H
#define COPPICE_RUNTIME_BLOB_H

#include <stddef.h>
#include <stdint.h>

#define BLOB_BYTES_MAX (64u * 1024)

/* Read it through the functions below. */
struct blob {
    _Atomic uint32_t references;
    uint32_t length;
    char bytes[];
};

/* How much address space blobs may take together, before the first blob; who does not call it has
 * BLOB_REGION_DEFAULT. bytes_max is rounded up to whole slabs; each size in use holds at least one of them,
 * and there are 42 sizes: below 10.5 MiB a rare one may find no room. Returns 0, -EINVAL (0 bytes), -ENOMEM,
 * or -EBUSY when the region is there already. */
#define BLOB_REGION_DEFAULT ((size_t)256 * 1024 * 1024)
int blob_boot(size_t bytes_max);

/* At the very end: no blob may be left. Afterwards blob_boot may be called again. */
void blob_shutdown(void);

/* A copy of the bytes, with one reference. NULL when length is above BLOB_BYTES_MAX, when the region is full
 * or before blob_boot. */
struct blob *blob_create(const void *bytes, size_t length);

/* Adds a reference and returns the blob; the caller must hold one already. NULL is passed through. */
struct blob *blob_ref(struct blob *blob);

/* Gives one reference back. NULL is accepted. */
void blob_unref(struct blob *blob);

static inline const char *blob_bytes(const struct blob *blob)
{
    return blob->bytes;
}

static inline size_t blob_size(const struct blob *blob)
{
    return blob->length;
}

/* Blobs alive, and bytes of the slabs that hold them (their free room included). */
size_t blob_count(void);
size_t blob_slab_bytes(void);

#endif
