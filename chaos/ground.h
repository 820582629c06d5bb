/* Ground: where the memory of a life lies that its server asks the system for.
 *
 * A server takes some sixty pieces of address space when it starts and more as it goes, of which most is never touched. In a program that
 * is linked with -Wl,--wrap for the calls of GROUND_CALLS (Makefile) they come one behind the other from a range that was mapped before
 * the life was forked: that costs no call, and the system has one mapping to copy and to take down instead of a hundred. It is empty in
 * each process that hasn't written into it, and what is given back is unmapped, so nothing is there twice or any longer than elsewhere.
 */
#ifndef COPPICE_CHAOS_GROUND_H
#define COPPICE_CHAOS_GROUND_H

/* Before the fork. Without it, and where the system refuses so much, each piece is a mapping of its own. */
void ground_lay(void);
/* In a life whose mappings are looked at: from now on they are as in any other process. */
void ground_leave(void);

#endif
