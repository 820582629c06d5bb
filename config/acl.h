/* acl: who may do what, from the tables of routes: every route of every listener with its credentials, roles and limit.
 * Needs no server. */
#ifndef COPPICE_CONFIG_ACL_H
#define COPPICE_CONFIG_ACL_H

#include "config/options.h"
#include "http/route.h"

/* The buckets of a route: "client", "client/register" where `register` counts who shows no key, "register+register_all" when
 * another counts all who ask for it together; "none". */
#define ACL_LIMITS_SIZE 64
void acl_limits(const struct route *route, char ret_text[ACL_LIMITS_SIZE]);
int command_acl(const struct options *o);

#endif
