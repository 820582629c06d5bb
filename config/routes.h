/* Routes of the operator's listener that concern the settings; boot adds them to the tables of http/surface.h.
 *
 *     GET  /config          every setting with its value and where that comes from
 *     POST /config:reload   as SIGHUP; 200 with what was applied, 503 and why everything stays as it was, or 504: it takes long, and
 *                           may still be done
 *     GET  /log             {"level": "info", "dropped": 0}
 *     POST /log:level       {"level": "debug"}, until the next start or until a reload brings another one
 *     POST /clock:advance   {"by": "24h"}: wall time moves forward (config/clock.h); in dev only, else 403
 *
 * Each POST leaves an audit entry.
 */
#ifndef COPPICE_CONFIG_ROUTES_H
#define COPPICE_CONFIG_ROUTES_H

#include "http/route.h"

extern const struct route config_routes[];
extern const size_t config_routes_count;

#endif
