#define _GNU_SOURCE
#include "http/process.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The beginning of a file of /proc, as a text. */
static bool file_read(const char *path, char *room, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, room, size - 1);
    close(fd);
    room[n > 0 ? n : 0] = 0;
    return n > 0;
}

/* Entries of a directory, without the two that every one has. Not opendir, which takes heap. */
static uint64_t entries(const char *path)
{
    struct entry { /* of getdents64 */
        uint64_t inode;
        int64_t offset;
        uint16_t length;
    };
    _Alignas(8) char room[8192];
    uint64_t count = 0;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    for (long n; (n = syscall(SYS_getdents64, fd, room, sizeof(room))) > 0;)
        for (long at = 0; at < n; at += ((const struct entry *)(const void *)(room + at))->length)
            count++;
    close(fd);
    return count >= 3 ? count - 3 : 0; /* and without our own descriptor of it */
}

/* The numbered field of /proc/self/stat, 3 or more; what comes before it may hold anything. */
static uint64_t stat_field(const char *stat, int field)
{
    const char *at = strrchr(stat, ')');
    for (int i = 2; at && i < field; i++) {
        at = strchr(at + 1, ' ');
    }
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

static uint64_t boot_s(void)
{
    char text[16384];
    const char *at = file_read("/proc/stat", text, sizeof(text)) ? strstr(text, "\nbtime ") : NULL;
    return at ? strtoull(at + 7, NULL, 10) : 0;
}

void process_read(struct process_figures *ret)
{
    char text[1024];
    struct rusage usage;
    struct rlimit limit;
    long tick = sysconf(_SC_CLK_TCK), page = sysconf(_SC_PAGESIZE);
    *ret = (struct process_figures){.pid = (uint64_t)getpid()};
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        ret->cpu_us = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
                      (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        ret->max_fds = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
    ret->open_fds = entries("/proc/self/fd");
    if (file_read("/proc/self/stat", text, sizeof(text)) && tick > 0 && page > 0) {
        ret->threads = stat_field(text, 20);
        ret->started_ms = boot_s() * 1000 + stat_field(text, 22) * 1000 / (uint64_t)tick;
        ret->virtual_bytes = stat_field(text, 23);
        ret->resident_bytes = stat_field(text, 24) * (uint64_t)page;
    }
}
