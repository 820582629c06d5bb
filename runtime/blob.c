/* A slab is 256 KiB, aligned to its size, so that a blob finds its slab by masking its address. The slab's
 * head has the list of its freed cells; cells never used follow the last one used, so that a fresh slab
 * touches no page early.
 *
 * Per size there is a list of the slabs with room. A full slab is in no list. An empty one goes back to the
 * free slabs, unless it is the only one of its size with room: a blob made and freed in turn moves no slab.
 */
#include "runtime/blob.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/assert.h"

/* With AddressSanitizer, a blob used after its last reference is reported. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BLOB_POISON 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define BLOB_POISON 1
#endif
#ifdef BLOB_POISON
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes)   ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

#define SLAB_BYTES     ((size_t)256 * 1024)
#define CELL_BYTES_MIN 64
#define CLASS_COUNT    42
#define REFERENCES_MAX (1u << 31)

/* A free cell: no references, as a blob's first word says, and the next free one. */
struct cell {
    _Atomic uint32_t references;
    uint32_t unused;
    struct cell *next;
};

struct slab {
    struct slab *next; /* with room, or free */
    struct slab *previous;
    struct cell *free; /* given back */
    uint32_t class;
    uint32_t cell_bytes;
    uint32_t cell_count; /* that fit */
    uint32_t fresh;      /* cells from here on have never been used */
    uint32_t in_use;
};

#define SLAB_HEAD_BYTES 64
STATIC_ASSERT(sizeof(struct slab) <= SLAB_HEAD_BYTES, "cells start on the second cache line");
STATIC_ASSERT(sizeof(struct cell) <= CELL_BYTES_MIN, "a free cell fits into the smallest");
STATIC_ASSERT(offsetof(struct cell, references) == offsetof(struct blob, references),
              "freed is seen as freed");

static struct {
    pthread_mutex_t mutex;
    struct slab *with_room[CLASS_COUNT];
    struct slab *free; /* given back, linked by next */
    unsigned char *base;
    unsigned char *fresh; /* slabs from here on have never been used */
    unsigned char *end;
    void *mapped;
    size_t mapped_bytes;
    size_t slabs_in_use;
    size_t blobs_in_use;
} store = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void store_lock(void)
{
    int error = pthread_mutex_lock(&store.mutex);
    ASSERT(error == 0);
}

static void store_unlock(void)
{
    int error = pthread_mutex_unlock(&store.mutex);
    ASSERT(error == 0);
}

/* Sizes: 4, 5, 6, 7 times 16, then 4, 5, 6, 7 times 32, and so on. */
static uint32_t class_bytes(uint32_t class)
{
    return (4 + class % 4) << (4 + class / 4);
}

static uint32_t class_of(size_t bytes)
{
    if (bytes <= CELL_BYTES_MIN) {
        return 0;
    }
    uint32_t top = 63 - (uint32_t)__builtin_clzl(bytes - 1);
    return (top - 6) * 4 + ((uint32_t)((bytes - 1) >> (top - 2)) & 3) + 1;
}

/* Lists of slabs */

static void with_room_add(struct slab *slab)
{
    struct slab *first = store.with_room[slab->class];
    slab->previous = NULL;
    slab->next = first;
    if (first) {
        first->previous = slab;
    }
    store.with_room[slab->class] = slab;
}

static void with_room_remove(struct slab *slab)
{
    *(slab->previous ? &slab->previous->next : &store.with_room[slab->class]) = slab->next;
    if (slab->next) {
        slab->next->previous = slab->previous;
    }
}

static struct slab *slab_take(uint32_t class)
{
    struct slab *slab = store.free;
    if (slab) {
        store.free = slab->next;
    } else if (store.fresh < store.end) {
        slab = (void *)store.fresh;
        store.fresh += SLAB_BYTES;
    } else {
        return NULL;
    }
    uint32_t cell_bytes = class_bytes(class);
    *slab = (struct slab){
        .class = class,
        .cell_bytes = cell_bytes,
        .cell_count = (uint32_t)(SLAB_BYTES - SLAB_HEAD_BYTES) / cell_bytes,
    };
    with_room_add(slab);
    store.slabs_in_use++;
    return slab;
}

static void slab_give(struct slab *slab)
{
    with_room_remove(slab);
    ASAN_UNPOISON_MEMORY_REGION(slab, SLAB_BYTES);
    slab->next = store.free;
    store.free = slab;
    store.slabs_in_use--;
}

/* Cells */

static void *cell_take(uint32_t class)
{
    struct slab *slab = store.with_room[class] ? store.with_room[class] : slab_take(class);
    if (!slab) {
        return NULL;
    }
    struct cell *cell = slab->free;
    if (cell) {
        slab->free = cell->next;
    } else {
        cell = (void *)((unsigned char *)slab + SLAB_HEAD_BYTES + (size_t)slab->fresh++ * slab->cell_bytes);
    }
    store.blobs_in_use++;
    if (++slab->in_use == slab->cell_count) {
        with_room_remove(slab);
    }
    return cell;
}

static void cell_give(struct cell *cell)
{
    struct slab *slab = (void *)((uintptr_t)cell & ~(uintptr_t)(SLAB_BYTES - 1));
    ASSERT((unsigned char *)slab >= store.base);
    ASSERT((unsigned char *)slab < store.fresh);
    ASSERT(slab->in_use > 0);
    cell->next = slab->free;
    slab->free = cell;
    store.blobs_in_use--;
    if (slab->in_use-- == slab->cell_count) {
        with_room_add(slab);
    }
    if (slab->in_use == 0 && (slab->next || slab->previous)) {
        slab_give(slab);
    }
}

/* The region */

static int region_map(size_t bytes_max)
{
    if (bytes_max == 0) {
        return -EINVAL;
    }
    if (bytes_max > SIZE_MAX / 2) {
        return -ENOMEM;
    }
    size_t slab_bytes = (bytes_max + SLAB_BYTES - 1) / SLAB_BYTES * SLAB_BYTES;
    size_t mapped_bytes = slab_bytes + SLAB_BYTES; /* room to align */
    void *mapped =
        mmap(NULL, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) {
        return -ENOMEM;
    }
    /* Memory in proportion to the blobs. Where the kernel has no huge pages, this fails. */
    (void)madvise(mapped, mapped_bytes, MADV_NOHUGEPAGE);
    store.mapped = mapped;
    store.mapped_bytes = mapped_bytes;
    store.base = (unsigned char *)mapped + (-(uintptr_t)mapped & (SLAB_BYTES - 1));
    store.fresh = store.base;
    store.end = store.base + slab_bytes;
    return 0;
}

int blob_boot(size_t bytes_max)
{
    store_lock();
    int error = store.mapped ? -EBUSY : region_map(bytes_max);
    store_unlock();
    return error;
}

void blob_shutdown(void)
{
    if (!store.mapped) {
        return;
    }
    ASSERT(store.blobs_in_use == 0);
    ASAN_UNPOISON_MEMORY_REGION(store.mapped, store.mapped_bytes);
    int error = munmap(store.mapped, store.mapped_bytes);
    ASSERT(error == 0);
    memset(store.with_room, 0, sizeof(store.with_room));
    store.free = NULL;
    store.base = store.fresh = store.end = NULL;
    store.mapped = NULL;
    store.slabs_in_use = 0;
}

/* Blobs */

struct blob *blob_create(const void *bytes, size_t length)
{
    if (length > BLOB_BYTES_MAX) {
        return NULL;
    }
    store_lock();
    bool mapped = store.mapped || region_map(BLOB_REGION_DEFAULT) == 0;
    struct blob *blob = mapped ? cell_take(class_of(sizeof(*blob) + length + 1)) : NULL;
    store_unlock();
    if (!blob) {
        return NULL;
    }
    ASAN_UNPOISON_MEMORY_REGION(blob->bytes, length + 1);
    blob->length = (uint32_t)length;
    if (length > 0) {
        memcpy(blob->bytes, bytes, length);
    }
    blob->bytes[length] = 0;
    atomic_store_explicit(&blob->references, 1, memory_order_relaxed);
    return blob;
}

struct blob *blob_ref(struct blob *blob)
{
    if (blob) {
        uint32_t before = atomic_fetch_add_explicit(&blob->references, 1, memory_order_relaxed);
        ASSERT(before > 0);
        ASSERT(before < REFERENCES_MAX);
    }
    return blob;
}

void blob_unref(struct blob *blob)
{
    if (!blob) {
        return;
    }
    /* Release: what this thread read was before. Acquire: the last one frees after all of that. */
    uint32_t before = atomic_fetch_sub_explicit(&blob->references, 1, memory_order_acq_rel);
    ASSERT(before > 0);
    if (before == 1) {
        /* All but the place of the link. */
        size_t link = sizeof(struct cell) - sizeof(*blob);
        size_t used = blob->length + 1u;
        ASAN_POISON_MEMORY_REGION(blob->bytes + link, used > link ? used - link : 0);
        store_lock();
        cell_give((struct cell *)blob);
        store_unlock();
    }
}

size_t blob_count(void)
{
    store_lock();
    size_t count = store.blobs_in_use;
    store_unlock();
    return count;
}

size_t blob_slab_bytes(void)
{
    store_lock();
    size_t bytes = store.slabs_in_use * SLAB_BYTES;
    store_unlock();
    return bytes;
}
