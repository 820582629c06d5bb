/* The control surface over HTTP: the nine paths of control.openapi.yaml, unprefixed and below /v1 (AMB-01).
 *
 * Everything that stands before the domain is here: roles (AMB-22, AMB-23), limits, the version of the schema before the
 * schema (AMB-06), empty ids, whose request it is (CTL-127) and for which project (CTL-125), in the order of AMB-08. The
 * domain comes later; until then the handlers answer what is true of a server that has no jobs: no id is known, the
 * dead-letter list is empty, a bulk reprocess rejects every id and leaves its audit entry, and a submit is refused with
 * JOB_503_QUEUE_UNAVAILABLE and stores nothing.
 */
#ifndef COPPICE_HTTP_CONTROL_H
#define COPPICE_HTTP_CONTROL_H

#include "http/route.h"

#define CONTROL_BODY_MAX (1u << 20) /* CTL-056 */

/* For the other handlers of this surface: a refusal that names the field, and a member of the body as a text in the
 * request's memory (without bytes when it is none). */
enum error_code control_refuse(struct response *r, enum error_code code, const char *field, const char *what);
struct span control_text(const struct request *q, const char *name);

extern const struct route control_routes[];
extern const size_t control_routes_count;
/* GET /v1/jobs/{job_id} with a JWT: the token_twin of the jobs surface's route (AMB-02), and in no table. */
extern const struct route control_shared_job;

/* route.precheck of all that take a body: the request takes on the ids of meta where its headers have none (CTL-251). A
 * meta.schema_version that is a string and not "v1" is answered CONTRACT_409_VERSION_MISMATCH, whatever else is wrong.
 * Anything else is the schema's business: ERROR_NONE. */
enum error_code control_precheck(struct request *q, struct response *r);

/* After the schema: no id is empty, meta.actor_id is the token's subject, meta.project_id is in its scope unless
 * `any_project`. ERROR_NONE, or what was answered. */
enum error_code control_admit(const struct request *q, struct response *r, bool any_project);

#endif
