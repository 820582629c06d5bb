/* The entrance: GET / of each listener tells whoever opens its address what this is, and where to go on.
 *
 * JSON, and a page without scripts or styles for whoever names text/html among what he accepts and no JSON, as a browser does. All
 * addresses are relative to it, so that they are right behind a proxy with a prefix, too. It says no more than the documents and
 * probes that it names, which need no credentials either; while the store is being opened it is there already.
 */
#ifndef COPPICE_HTTP_ENTRANCE_H
#define COPPICE_HTTP_ENTRANCE_H

#include "http/route.h"

extern const struct route entrance_routes[];
extern const size_t entrance_routes_count;

#endif
