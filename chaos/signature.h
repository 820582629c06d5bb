/* Signature: what `webhook-signature` must be (Standard Webhooks 1.0.0), worked out apart from the server. */
#ifndef COPPICE_CHAOS_SIGNATURE_H
#define COPPICE_CHAOS_SIGNATURE_H

#include "store/span.h"

/* `header`: versions and signatures with blanks between them; one of them must be "v1," and the HMAC of id, timestamp and
 * body under `secret`, which is whsec_ and base64, or any text that is taken as it is. */
bool signature_good(const char *secret, const char *id, const char *timestamp, struct span body,
                    const char *header);

#endif
