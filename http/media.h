/* Media types: what a body is, and what a client takes (RFC 9110, 8.3 and 12.5.1). From the head of a request alone. */
#ifndef COPPICE_HTTP_MEDIA_H
#define COPPICE_HTTP_MEDIA_H

#include "http/request.h"

/* Of Content-Type: application/json, and in UTF-8, whatever its other parameters. */
bool media_is_json(struct span type);
/* Whether a client of the job contract can take what it would get: JSON (JOB-343). Accept may be there more than once. */
bool media_accepts_json(const struct request *q);
/* Whether Accept names just this type, in any case, and not with q=0: for what nobody gets who takes anything. */
bool media_accepts(const struct request *q, const char *type);

#endif
