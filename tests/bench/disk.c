#define _GNU_SOURCE
#include "tests/bench/disk.h"
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096

static _Atomic uint64_t writes, bytes, syncs, sync_cpu_ns;

static uint64_t thread_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void wrote(ssize_t size)
{
    writes++;
    bytes += size > 0 ? (uint64_t)size : 0;
}

static void synced(uint64_t began)
{
    syncs++;
    sync_cpu_ns += thread_cpu_ns() - began;
}

ssize_t pwrite(int fd, const void *from, size_t size, off_t at)
{
    uint64_t began = size < PAGE ? thread_cpu_ns() : 0;
    ssize_t n = syscall(SYS_pwrite64, fd, from, size, at);
    if (size < PAGE)
        synced(began);
    wrote(n);
    return n;
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    ssize_t n = syscall(SYS_writev, fd, parts, count);
    wrote(n);
    return n;
}

int fdatasync(int fd)
{
    uint64_t began = thread_cpu_ns();
    int result = (int)syscall(SYS_fdatasync, fd);
    synced(began);
    return result;
}

struct disk_counts disk_counts(void)
{
    return (struct disk_counts){.writes = writes, .bytes = bytes, .syncs = syncs, .sync_cpu_ns = sync_cpu_ns};
}
