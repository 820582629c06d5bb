/* The access log: a line per answer, through the same log as everything else. Probes and scrapes at level debug. */
#ifndef COPPICE_CONFIG_ACCESS_H
#define COPPICE_CONFIG_ACCESS_H

#include "http/front.h"

/* Either is a front.log. Credentials that were refused (401, 403) have a line of their own, "auth_failure", with whose they were as
 * far as that is known, and why; never with the credentials. The second one writes nothing but these. */
void access_log(const struct request *q, const struct response *r, uint64_t took_ns);
void access_log_refused(const struct request *q, const struct response *r, uint64_t took_ns);

#endif
