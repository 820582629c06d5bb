/* Script: what the partner of a job does, for each kind: submits, waits, cancels, retries, receives, schedules. */
#ifndef COPPICE_CHAOS_SCRIPT_H
#define COPPICE_CHAOS_SCRIPT_H

#include "chaos/errand.h"

/* Plays a job of the errand's kind from submit to the last judgement, in its strand. caller, stranger, subscribed, dice and
 * asked are set. */
void script_play(struct errand *e);
/* Lets the scripts go on that wait for the end of the run: jobs of a far future. */
void script_end(void);
/* How many wait for that. */
uint32_t script_waiting(void);

#endif
