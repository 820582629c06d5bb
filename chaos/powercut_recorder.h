/* The recorder: makes a store and works on it while every call to the disk is written down (chaos/disk.h), with syncs that fail
 * and processes that end in between. In a process of its own.
 */
#ifndef COPPICE_CHAOS_POWERCUT_RECORDER_H
#define COPPICE_CHAOS_POWERCUT_RECORDER_H

#include "chaos/powercut_cut.h"
#include "chaos/workload.h"

struct recording {
    struct dice dice;
    struct workload workload;
    struct store_options store_options;
    struct store *store;
    char base[PATH_MAX], dir[PATH_MAX], data[PATH_MAX];
    uint64_t shown, attempted[CUT_ALLOWED_MAX]; /* what the last answer promised; what may be there instead */
    uint32_t attempted_count;
    bool born;
};
extern struct recording *recording; /* whoever checks goes on from it */

/* By the seed in cut_here. False: nothing was recorded, and errno says why. */
bool recorder_run(void);

#endif
