/* What a client would like of its answer (Prefer, RFC 7240): to hear at once that it was accepted, or to wait until it is done.
 *
 *     Prefer: respond-async              202 at once, which is what happens without it as well
 *     Prefer: wait=10                    the end, when it comes within 10 s; else 202
 *     Prefer: respond-async, wait=10     the same
 *
 * Preference-Applied says what was heeded, with as many seconds as were granted. Preferences that we don't know, or can't read, are
 * passed over, as the RFC has it; of one that is there twice the first counts. Reads the request alone, and doesn't block.
 */
#ifndef COPPICE_HTTP_PREFER_H
#define COPPICE_HTTP_PREFER_H

#include "http/request.h"

#define PREFER_WAIT_MAX_S 30u /* more than that is granted to nobody: proxies in front give up at 60 s */

struct response;

struct prefer {
    bool respond_async, waits;
    uint32_t wait_s; /* as granted; with `waits` */
};
struct prefer prefer_read(const struct request *q);
/* By a handler that heeds it, before the answer begins: Preference-Applied; nothing when nothing was preferred. */
void prefer_applied(const struct prefer *prefer, struct response *r);

#endif
