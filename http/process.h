/* The process as the kernel counts it, from /proc/self. No heap, no waiting; any thread. What can't be read is 0. */
#ifndef COPPICE_HTTP_PROCESS_H
#define COPPICE_HTTP_PROCESS_H

#include <stdint.h>

struct process_figures {
    uint64_t cpu_us; /* user and system */
    uint64_t resident_bytes, virtual_bytes;
    uint64_t open_fds, max_fds; /* max: UINT64_MAX without a limit */
    uint64_t threads;
    uint64_t started_ms; /* since 1970 */
    uint64_t pid;
};
void process_read(struct process_figures *ret_figures);

#endif
