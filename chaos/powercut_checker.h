/* The checker: goes along a recorded log and looks at every state that the disk may have had after a power cut at that point.
 *
 * Each must open and show exactly what some batch that was answered or attempted left. A state may kill whoever looks at it.
 */
#ifndef COPPICE_CHAOS_POWERCUT_CHECKER_H
#define COPPICE_CHAOS_POWERCUT_CHECKER_H

#include <stdint.h>

enum { CHECKER_CONTROL_VIOLATIONS = 3 }; /* then a control has been caught under this seed */

/* The states from this one until before that one, of the kind in cut_here. */
void checker_run(uint64_t from, uint64_t until);

#endif
