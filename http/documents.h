/* The contracts as clients fetch them: /openapi/{ops,control,jobs,work}.json and .yaml, /asyncapi/events.json and .yaml, and
 * /.well-known/security.txt. With an ETag; If-None-Match is answered 304. /openapi.json and .yaml is one document whose
 * paths refer to those of all OpenAPI ones, /asyncapi.json and .yaml is that of the events. */
#ifndef COPPICE_HTTP_DOCUMENTS_H
#define COPPICE_HTTP_DOCUMENTS_H

#include "http/route.h"

extern const struct route document_routes[];
extern const size_t document_routes_count;

#endif
