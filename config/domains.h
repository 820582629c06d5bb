/* Domains: what the settings say to each of them, in its own terms. */
#ifndef COPPICE_CONFIG_DOMAINS_H
#define COPPICE_CONFIG_DOMAINS_H

#include "config/options.h"

/* Boot and each reload; one at a time. What needs a restart has been told apart before: a domain gets what is in the options. */
void domains_configure(const struct options *options);

#endif
