/* A look at an image as the server has it: opened, every row read by its key and every table from end to end, and written to.
 *
 * What is allowed is in the head of chaos/damage.c; anything else is a violation of the campaign. In a child: an image may
 * kill whoever reads it.
 */
#ifndef COPPICE_CHAOS_DAMAGE_LOOK_H
#define COPPICE_CHAOS_DAMAGE_LOOK_H

#include "chaos/damage_campaign.h"

/* The image was placed. */
enum outcome look_served(const struct image *image);
/* As a program would read it that has nothing but LMDB and the checksums of values. */
enum outcome look_blindly(void);

#endif
