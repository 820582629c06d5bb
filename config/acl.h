/* acl: who may do what, from the tables of routes: every route of every listener with its credentials, roles and limit.
 * Needs no server. */
#ifndef COPPICE_CONFIG_ACL_H
#define COPPICE_CONFIG_ACL_H

#include "config/options.h"

int command_acl(const struct options *o);

#endif
