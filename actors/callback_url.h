/* Callback URLs: what a client may give as the place that its events are sent to.
 *
 * Read strictly, so that nobody who reads the URL later (libcurl, a log, the order per receiver) sees another host in it:
 * http or https in small letters, a host name in ASCII or an address in its plain form, perhaps a port from 1 to 65535, a path and
 * a query. Refused: user and password, escapes in the host, a dot at the host's end, addresses written as one number, in octal
 * or in hexadecimal, a fragment, every byte that a URL may not hold as it is, and a percent sign that begins no escape. So whatever
 * is let through is a URI as RFC 3986 and the contract's "format: uri" have it.
 *
 * Unless allow_private is set (outbound.allow_private), an address that isn't a public one (actors/reach.h) and localhost are
 * refused here already. Where another name leads to is looked at when it is connected to, each time: actors/fetch.h.
 *
 * A pure function: no name is resolved, nothing blocks or allocates, any thread may call.
 */
#ifndef COPPICE_ACTORS_CALLBACK_URL_H
#define COPPICE_ACTORS_CALLBACK_URL_H

#include "store/span.h"

#define CALLBACK_URL_MAX 2048u /* bytes, as the contract says */

/* True: it may be kept. False: *ret_why says what is wrong with it, as the end of a sentence about "url" or "callback". */
bool callback_url_check(struct span url, bool allow_private, const char **ret_why);
/* Host and port as they stand in the URL, for logs and for whoever counts per receiver; empty when there is no host. */
struct span callback_url_host(struct span url);

#endif
