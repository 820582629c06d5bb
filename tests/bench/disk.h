/* The disk's side of a commit: what LMDB asked of the kernel, and the CPU time that waiting for the disk took.
 *
 * A program with disk.c in it has pwrite, writev and fdatasync of its own, which count and call the kernel: LMDB's
 * calls go through them as well. What counts as a sync is fdatasync, and a write of less than a page, which is LMDB's
 * meta page through a descriptor with O_DSYNC.
 */
#ifndef COPPICE_TESTS_BENCH_DISK_H
#define COPPICE_TESTS_BENCH_DISK_H

#include <stdint.h>

struct disk_counts {
    uint64_t writes, bytes; /* all writes, those of the meta page included */
    uint64_t syncs;
    uint64_t sync_cpu_ns; /* of the threads that asked for them, inside the kernel */
};

struct disk_counts disk_counts(void); /* any thread; since the program began */

#endif
