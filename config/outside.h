/* Outside: whether what the settings rely on is as they say.
 *
 * Boot, before the store is touched.
 */
#ifndef COPPICE_CONFIG_OUTSIDE_H
#define COPPICE_CONFIG_OUTSIDE_H

#include "config/settings.h"
#include "config/sockets.h"

/* Sockets that the service manager has opened, against the environment (CTL-068). False: a sentence. */
bool outside_sockets(const struct options *options, const struct sockets *sockets, char *ret_text,
                     size_t text_size);

#endif
