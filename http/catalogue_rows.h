/* The rows of the error catalogue (http/catalogue.h): those of the contracts word by word, then our own.
 *
 * X(code, status, retryable, "retry class", "title", "action", surface, extension)
 *
 * docs/contract/ has the same rows as tables, for readers and for the generated TypeScript: control.errors.tsv,
 * jobs.errors.tsv (whose rows say nothing of retrying: retryable is what the action says), and ops.errors.tsv for
 * everything that is ours. A test compares. */
#ifndef COPPICE_HTTP_CATALOGUE_ROWS_H
#define COPPICE_HTTP_CATALOGUE_ROWS_H

#define ERROR_CODES(X)                                                                                       \
    X(AUTH_401_MISSING_TOKEN, 401, false, "none", "Missing bearer token.", "", CONTROL, false)               \
    X(AUTH_401_INVALID_TOKEN, 401, false, "none", "Invalid/expired token.", "", CONTROL, false)              \
    X(AUTH_401_CONNECTOR_INVALID_SIGNATURE, 401, false, "none",                                              \
      "Connector/webhook signature verification failed.", "", CONTROL, false)                                \
    X(AUTH_401_CONNECTOR_REPLAY, 401, false, "none", "Connector/webhook replay check failed.", "", CONTROL,  \
      false)                                                                                                 \
    X(AUTH_403_SCOPE, 403, false, "none", "Actor not allowed in requested project scope.", "", CONTROL,      \
      false)                                                                                                 \
    X(AUTH_403_ROLE, 403, false, "none", "Role cannot perform requested action.", "", CONTROL, false)        \
    X(REQ_400_INVALID_SCHEMA, 400, false, "none", "Payload does not match schema.", "", CONTROL, false)      \
    X(REQ_400_MISSING_FIELD, 400, false, "none", "Required field is missing.", "", CONTROL, false)           \
    X(REQ_422_INVALID_STATE, 422, false, "none", "Operation invalid for current job state.", "", CONTROL,    \
      false)                                                                                                 \
    X(CONTRACT_409_VERSION_MISMATCH, 409, false, "none",                                                     \
      "Unsupported schema version or incompatible contract.", "", CONTROL, false)                            \
    X(JOB_404_NOT_FOUND, 404, false, "none", "Job id does not exist.", "", CONTROL, false)                   \
    X(JOB_409_LOCKED, 409, true, "bounded", "Resource lock conflict, retry later.", "", CONTROL, false)      \
    X(JOB_409_IDEMPOTENCY_CONFLICT, 409, false, "none", "Same idempotency key used with different payload.", \
      "", CONTROL, false)                                                                                    \
    X(JOB_423_WAITING_HUMAN, 423, true, "bounded", "Job paused for human decision.", "", CONTROL, false)     \
    X(JOB_409_ALREADY_TERMINAL, 409, false, "none", "Job already in terminal state.", "", CONTROL, false)    \
    X(JOB_422_NOT_CANCELLABLE, 422, false, "none", "Job is in a terminal or non-cancellable state.", "",     \
      CONTROL, false)                                                                                        \
    X(JOB_422_DELEGATION_DEPTH_EXCEEDED, 422, false, "none",                                                 \
      "Delegated job rejected; maximum delegation depth (3) exceeded.", "", CONTROL, false)                  \
    X(JOB_503_QUEUE_UNAVAILABLE, 503, true, "bounded", "Queue backend unavailable.", "", CONTROL, false)     \
    X(POLICY_403_DENIED, 403, false, "none", "Policy engine denied execution.", "", CONTROL, false)          \
    X(POLICY_409_REQUIRES_APPROVAL, 409, false, "operator", "Human approval required before execution.", "", \
      CONTROL, false)                                                                                        \
    X(POLICY_503_ENGINE_UNAVAILABLE, 503, true, "bounded",                                                   \
      "Policy engine unavailable; Tier A continues on cached policy; Tier B/C jobs are queued until "        \
      "recovery.",                                                                                           \
      "", CONTROL, false)                                                                                    \
    X(APPROVAL_409_DECISION_CONFLICT, 409, false, "none", "Conflicting decision for same job/version.", "",  \
      CONTROL, false)                                                                                        \
    X(APPROVAL_403_NOT_APPROVER, 403, false, "none",                                                         \
      "Actor is not an allowed approver for this scope/tier.", "", CONTROL, false)                           \
    X(BUDGET_429_LIMIT, 429, true, "bounded", "Budget threshold reached for active window.", "", CONTROL,    \
      false)                                                                                                 \
    X(BUDGET_409_EXCEEDED, 409, false, "none", "Job exceeded hard budget and was stopped.", "", CONTROL,     \
      false)                                                                                                 \
    X(RATE_429_THROTTLED, 429, true, "bounded", "Request rate limit exceeded.", "", CONTROL, false)          \
    X(DLQ_404_NOT_FOUND, 404, false, "none", "DLQ item with given event_id does not exist.", "", CONTROL,    \
      false)                                                                                                 \
    X(DLQ_409_ALREADY_REPROCESSED, 409, false, "none", "DLQ item has already been reprocessed or resolved.", \
      "", CONTROL, false)                                                                                    \
    X(INFRA_503_DEPENDENCY_DOWN, 503, true, "bounded", "Required downstream dependency unavailable.", "",    \
      CONTROL, false)                                                                                        \
    X(INTERNAL_500_UNEXPECTED, 500, false, "operator", "Unexpected internal error.", "", CONTROL, false)     \
    X(REQ_404_ROUTE_NOT_FOUND, 404, false, "none", "No such path in this contract.",                         \
      "Use a documented path.", CONTROL, true)                                                               \
    X(REQ_405_METHOD_NOT_ALLOWED, 405, false, "none", "This path does not take this method.",                \
      "Use a method that the Allow header names.", CONTROL, true)                                            \
    X(REQ_408_REQUEST_TIMEOUT, 408, false, "none", "The request did not arrive in time.", "Send it faster.", \
      CONTROL, true)                                                                                         \
    X(REQ_414_TARGET_TOO_LONG, 414, false, "none", "The request line is too long.",                          \
      "Send a shorter path and query.", CONTROL, true)                                                       \
    X(REQ_417_EXPECTATION_FAILED, 417, false, "none", "The expectation cannot be met.",                      \
      "Send no Expect, or 100-continue.", CONTROL, true)                                                     \
    X(REQ_431_HEADER_TOO_LARGE, 431, false, "none", "The header is too large, or has too many fields.",      \
      "Send less of it.", CONTROL, true)                                                                     \
    X(RFA_REQUEST_MALFORMED, 400, false, "", "Malformed request (invalid JSON, missing required fields).",   \
      "Fix request format; check schema.", JOBS, false)                                                      \
    X(RFA_REQUEST_UNSUPPORTED_MEDIA_TYPE, 415, false, "", "Unsupported Content-Type.",                       \
      "Use application/json.", JOBS, false)                                                                  \
    X(RFA_REQUEST_METHOD_NOT_ALLOWED, 405, false, "", "HTTP method not supported on this endpoint.",         \
      "Use the documented method.", JOBS, false)                                                             \
    X(RFA_REQUEST_NOT_ACCEPTABLE, 406, false, "", "Client Accept header not supported.",                     \
      "Accept application/json.", JOBS, false)                                                               \
    X(RFA_REQUEST_PAYLOAD_TOO_LARGE, 413, false, "", "Request body exceeds size limits.",                    \
      "Reduce payload size.", JOBS, false)                                                                   \
    X(RFA_REQUEST_RATE_LIMITED, 429, true, "", "Too many requests.", "Retry with backoff; reduce rate.",     \
      JOBS, false)                                                                                           \
    X(RFA_AUTH_INVALID_CREDENTIALS, 401, false, "", "Missing/invalid API key or token.",                     \
      "Provide valid credentials; refresh token.", JOBS, false)                                              \
    X(RFA_AUTH_TOKEN_EXPIRED, 401, false, "", "Token expired.", "Refresh token.", JOBS, false)               \
    X(RFA_AUTH_FORBIDDEN, 403, false, "", "Authenticated but not allowed.",                                  \
      "Request access or correct scopes.", JOBS, false)                                                      \
    X(RFA_AUTH_API_KEY_DISABLED, 403, false, "", "API key disabled or revoked.", "Use another key.", JOBS,   \
      false)                                                                                                 \
    X(RFA_JOB_VALIDATION_FAILED, 400, false, "", "Business rules failed.", "Fix field values; retry.", JOBS, \
      false)                                                                                                 \
    X(RFA_JOB_NOT_FOUND, 404, false, "", "Job does not exist.", "Verify job ID.", JOBS, false)               \
    X(RFA_JOB_CONFLICT, 409, false, "", "Job already exists or conflicting state.",                          \
      "Use idempotency or handle conflict.", JOBS, false)                                                    \
    X(RFA_EXEC_QUEUE_FULL, 503, true, "", "Execution queue at capacity.", "Retry later; lower load.", JOBS,  \
      false)                                                                                                 \
    X(RFA_EXEC_TIMEOUT, 504, true, "", "Operation exceeded timeout.", "Retry later.", JOBS, false)           \
    X(RFA_EXEC_IDEMPOTENCY_CONFLICT, 409, false, "", "Idempotency key reused with different payload.",       \
      "Reuse same payload or new key.", JOBS, false)                                                         \
    X(RFA_EXEC_WORKER_UNAVAILABLE, 503, true, "", "No workers available.", "Retry later; scale workers.",    \
      JOBS, false)                                                                                           \
    X(RFA_STORAGE_DB_ERROR, 503, true, "", "Database unavailable or query failed.", "Retry later.", JOBS,    \
      false)                                                                                                 \
    X(RFA_STORAGE_UNAVAILABLE, 503, true, "", "Required dependency unavailable.", "Retry later.", JOBS,      \
      false)                                                                                                 \
    X(RFA_DEPENDENCY_TIMEOUT, 504, true, "", "Downstream dependency timed out.", "Retry later.", JOBS,       \
      false)                                                                                                 \
    X(RFA_CONFIG_INVALID, 503, false, "", "Server misconfiguration.", "Fix config.", JOBS, false)            \
    X(RFA_INTERNAL, 500, true, "", "Unexpected server error.", "Retry later.", JOBS, false)                  \
    X(RFA_REQUEST_ROUTE_NOT_FOUND, 404, false, "", "No such path on this API.", "Use a documented path.",    \
      JOBS, true)                                                                                            \
    X(RFA_CLIENT_NOT_FOUND, 404, false, "", "Client does not exist.", "Verify client ID.", JOBS, true)       \
    X(RFA_AUTH_API_KEY_NOT_FOUND, 404, false, "", "API key does not exist for this client.",                 \
      "Verify key ID.", JOBS, true)                                                                          \
    X(RFA_AUTH_API_KEY_CONFLICT, 409, false, "", "Concurrent key change, or no active key to renew.",        \
      "Read the current key, then repeat.", JOBS, true)                                                      \
    X(RFA_JOB_REPORT_NOT_FOUND, 404, false, "",                                                              \
      "Job exists but has no report (not final, or report missing).", "Poll the job until it is final.",     \
      JOBS, true)                                                                                            \
    X(RFA_WEBHOOK_NOT_FOUND, 404, false, "", "Webhook does not exist.", "Verify webhook ID.", JOBS, true)    \
    X(RFA_WEBHOOK_CONFLICT, 409, false, "", "Same URL and event set already registered by this client.",     \
      "Use the existing webhook.", JOBS, true)                                                               \
    X(RFA_WEBHOOK_DELIVERY_NOT_FOUND, 404, false, "", "Delivery does not exist.", "Verify delivery ID.",     \
      JOBS, true)                                                                                            \
    X(RFA_WEBHOOK_DELIVERY_CONFLICT, 409, false, "", "Delivery cannot be sent again as it is.",              \
      "Enable the webhook, or leave it.", JOBS, true)                                                        \
    X(RFA_REQUEST_TIMEOUT, 408, true, "", "The request did not arrive in time.", "Retry; send it faster.",   \
      JOBS, true)                                                                                            \
    X(RFA_REQUEST_TARGET_TOO_LONG, 414, false, "", "The request line is too long.",                          \
      "Send a shorter path and query.", JOBS, true)                                                          \
    X(RFA_REQUEST_EXPECTATION_FAILED, 417, false, "", "The expectation cannot be met.",                      \
      "Send no Expect, or 100-continue.", JOBS, true)                                                        \
    X(RFA_REQUEST_HEADER_TOO_LARGE, 431, false, "", "The header is too large, or has too many fields.",      \
      "Send less of it.", JOBS, true)                                                                        \
    X(OPS_400_MALFORMED, 400, false, "none", "The request is not well-formed HTTP or JSON.",                 \
      "Correct what the detail names.", OPERATOR, true)                                                      \
    X(OPS_400_MISSING_FIELD, 400, false, "none", "Something that is required is missing.",                   \
      "Add what the detail names.", OPERATOR, true)                                                          \
    X(OPS_400_INVALID, 400, false, "none", "A value is not one that the contract allows.",                   \
      "Correct what the detail names.", OPERATOR, true)                                                      \
    X(OPS_401_NO_CREDENTIALS, 401, false, "none", "This needs credentials.",                                 \
      "Send Authorization: Bearer and a token.", OPERATOR, true)                                             \
    X(OPS_401_BAD_CREDENTIALS, 401, false, "none", "These credentials are not valid.",                       \
      "Use valid credentials.", OPERATOR, true)                                                              \
    X(OPS_403_DISABLED_CREDENTIALS, 403, false, "none", "These credentials were disabled.",                  \
      "Use other credentials.", OPERATOR, true)                                                              \
    X(OPS_403_FORBIDDEN, 403, false, "none", "These credentials do not allow this.",                         \
      "Ask for the role or the scope.", OPERATOR, true)                                                      \
    X(OPS_403_CROSS_SITE, 403, false, "none", "A page of another site may not change anything here.",        \
      "Call this from a program, or from this server's own pages.", OPERATOR, true)                          \
    X(OPS_404_NO_ROUTE, 404, false, "none", "There is no such path.", "Use a documented path.", OPERATOR,    \
      true)                                                                                                  \
    X(OPS_404_NOT_FOUND, 404, false, "none", "What the path names does not exist.", "Check the name.",       \
      OPERATOR, true)                                                                                        \
    X(OPS_405_METHOD, 405, false, "none", "This path does not take this method.",                            \
      "Use a method that the Allow header names.", OPERATOR, true)                                           \
    X(OPS_406_NOT_ACCEPTABLE, 406, false, "none", "None of the accepted media types can be had.",            \
      "Accept the documented media type.", OPERATOR, true)                                                   \
    X(OPS_408_REQUEST_TIMEOUT, 408, true, "bounded", "The request did not arrive in time.",                  \
      "Send it again, faster.", OPERATOR, true)                                                              \
    X(OPS_409_CONFLICT, 409, false, "none", "The state of what the path names does not allow this.",         \
      "Read the state, then decide.", OPERATOR, true)                                                        \
    X(OPS_411_LENGTH_REQUIRED, 411, false, "none", "The body needs a length.",                               \
      "Send Content-Length, or Transfer-Encoding: chunked.", OPERATOR, true)                                 \
    X(OPS_413_TOO_LARGE, 413, false, "none", "The body is larger than this path takes.", "Send less.",       \
      OPERATOR, true)                                                                                        \
    X(OPS_414_TARGET_TOO_LONG, 414, false, "none", "The request line is too long.",                          \
      "Send a shorter path and query.", OPERATOR, true)                                                      \
    X(OPS_415_UNSUPPORTED_TYPE, 415, false, "none", "The body's media type is not the documented one.",      \
      "Send application/json.", OPERATOR, true)                                                              \
    X(OPS_417_EXPECTATION, 417, false, "none", "The expectation cannot be met.",                             \
      "Send no Expect, or 100-continue.", OPERATOR, true)                                                    \
    X(OPS_421_MISDIRECTED, 421, false, "none", "This listener does not answer for that host.",               \
      "Use the address of the listener.", OPERATOR, true)                                                    \
    X(OPS_429_THROTTLED, 429, true, "bounded", "Too many requests.", "Wait as long as Retry-After says.",    \
      OPERATOR, true)                                                                                        \
    X(OPS_431_HEADER_TOO_LARGE, 431, false, "none", "The header is too large, or has too many fields.",      \
      "Send less of it.", OPERATOR, true)                                                                    \
    X(OPS_500_INTERNAL, 500, false, "operator", "Something went wrong in the server.",                       \
      "Look for the request id in the log.", OPERATOR, true)                                                 \
    X(OPS_503_UNAVAILABLE, 503, true, "bounded",                                                             \
      "The server is starting, draining, or lacks what this needs.", "Try again later.", OPERATOR, true)     \
    X(OPS_503_OVERLOADED, 503, true, "bounded", "The server has as much to do as it takes on.",              \
      "Try again later.", OPERATOR, true)                                                                    \
    X(OPS_503_STORE, 503, true, "bounded", "The store could not be read or written.",                        \
      "Try again later; look at /readyz.", OPERATOR, true)                                                   \
    X(OPS_504_TIMEOUT, 504, true, "bounded", "It took longer than allowed.", "Try again later.", OPERATOR,   \
      true)                                                                                                  \
    X(OPS_507_NO_SPACE, 507, true, "operator", "There is no space left to write to.",                        \
      "Make space, then try again.", OPERATOR, true)

#endif
