/* The command line's way to a running server: one GET over the operator's listener. Blocks; one thread. */
#ifndef COPPICE_CONFIG_CLIENT_H
#define COPPICE_CONFIG_CLIENT_H

#include "http/address.h"
#include "runtime/json.h"

#define CLIENT_TIMEOUT_S 10

/* Body into the sink. The HTTP status, or 0 and why: nobody listens, the answer is cut off or isn't HTTP. */
int client_get(const struct address *address, const char *target, struct json_sink *sink, char *ret_why,
               size_t why_size);

#endif
