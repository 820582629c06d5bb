#define _GNU_SOURCE
#include "chaos/ground.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };

#define GROUND_BYTES (UINT64_C(1) << 37) /* of addresses: a life takes one or two of the 128 GB */

static struct {
    char *at, *end;
} ground;

extern void *__real_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
extern int __real_madvise(void *at, size_t size, int advice);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
int __wrap_madvise(void *at, size_t size, int advice);

void ground_lay(void)
{
    void *at = __real_mmap(NULL, GROUND_BYTES, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return;
    ground.at = at;
    ground.end = ground.at + GROUND_BYTES;
}

void ground_leave(void)
{
    ground.at = ground.end = NULL;
}

void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    size_t whole = (size + PAGE - 1) / PAGE * PAGE;
    bool plain = !at && (flags & MAP_PRIVATE) && (flags & MAP_ANONYMOUS) &&
                 !(flags & ~(MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK)) &&
                 protection == (PROT_READ | PROT_WRITE);
    if (!plain || size == 0 || whole < size || whole > (size_t)(ground.end - ground.at))
        return __real_mmap(at, size, protection, flags, fd, offset);
    at = ground.at;
    ground.at += whole;
    return at;
}

/* Nobody has asked for huge pages there, and each such wish would make a mapping of its own. */
int __wrap_madvise(void *at, size_t size, int advice)
{
    return advice == MADV_NOHUGEPAGE && ground.at ? 0 : __real_madvise(at, size, advice);
}
