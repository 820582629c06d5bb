/* Life: one process of the server, from its start on what an earlier one has left to its end, and what it leaves.
 *
 * It runs in a process of its own, which is forked before anything of it exists; so an end is an end: nothing that was in memory is
 * there in the next life. Around the world it drives patrons and receiver, lets faults happen, and looks at the store; where the power
 * goes, what is left is any state that the disk may have (chaos/platter.h), and where the process is killed, what the system had in its
 * cache.
 */
#ifndef COPPICE_CHAOS_LIFE_H
#define COPPICE_CHAOS_LIFE_H

#include "chaos/saga.h"

/* What its process has written to standard error, in the seed's folder. */
#define LIFE_LAST_WORDS "words"

/* Before the first life of a seed: what all of them have in common. */
bool life_prepare(void);
/* In a process that was forked for it; ends that with an enum ending as its status. */
_Noreturn void life_run(void);
/* After one whose process ended by itself: its files, as the system has them, are what the next one begins with. */
bool life_salvage(void);
/* Somebody had an answer. */
void life_note_answer(void);
/* Of this process. */
struct world *life_world(void);
/* Removes the folder, and all below it. */
void life_clean(const char *dir);

#endif
