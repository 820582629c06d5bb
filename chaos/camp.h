/* Camp: the folder of a campaign, of which nothing is left however the campaign ends.
 *
 * A process of its own, the keeper, waits until the campaign says that it is over, or until every process that has the camp has ended, by
 * itself or by any signal; then it removes the folder with all that is in it. It is deaf to what ends a campaign from outside
 * (SIGINT, SIGTERM, SIGHUP, also those of the whole group), and nobody's child: who waits for any child doesn't meet it. A fork has
 * the camp, too; a program that it becomes has not.
 */
#ifndef COPPICE_CHAOS_CAMP_H
#define COPPICE_CHAOS_CAMP_H

#include <stdbool.h>

struct camp {
    char dir[256];
    int keeper; /* a socket to it */
};

/* A new folder, PARENT/NAME.XXXXXX. False: errno says why, and nothing is there. */
bool camp_begin(struct camp *camp, const char *parent, const char *name);
/* It shows something: it stays. From any process that has the camp. */
void camp_keep(const struct camp *camp);
/* Removes it, unless it is to be kept, and returns when that is done. Whoever else has the camp has no more business there. */
void camp_end(struct camp *camp);

#endif
