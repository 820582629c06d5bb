/* What the operator's listener has beyond the probes and what is public: docs/contract/ops.openapi.yaml. */
#ifndef COPPICE_HTTP_OPERATOR_ROUTES_H
#define COPPICE_HTTP_OPERATOR_ROUTES_H

#include "http/route.h"

#define OPERATOR_BODY_MAX 65536u

extern const struct route operator_routes[];
extern const size_t operator_routes_count;

#endif
