/* The access log: a line per answer, through the same log as everything else. Probes and scrapes at level debug. */
#ifndef COPPICE_CONFIG_ACCESS_H
#define COPPICE_CONFIG_ACCESS_H

#include "http/front.h"

/* front.log */
void access_log(const struct request *q, const struct response *r, uint64_t took_ns);

#endif
