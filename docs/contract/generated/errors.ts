// Made by `make contract` from docs/contract; do not edit.

/** The codes of the control contract. */
export enum ErrorCode {
    AUTH_401_MISSING_TOKEN = "AUTH_401_MISSING_TOKEN",
    AUTH_401_INVALID_TOKEN = "AUTH_401_INVALID_TOKEN",
    AUTH_401_CONNECTOR_INVALID_SIGNATURE = "AUTH_401_CONNECTOR_INVALID_SIGNATURE",
    AUTH_401_CONNECTOR_REPLAY = "AUTH_401_CONNECTOR_REPLAY",
    AUTH_403_SCOPE = "AUTH_403_SCOPE",
    AUTH_403_ROLE = "AUTH_403_ROLE",
    REQ_400_INVALID_SCHEMA = "REQ_400_INVALID_SCHEMA",
    REQ_400_MISSING_FIELD = "REQ_400_MISSING_FIELD",
    REQ_422_INVALID_STATE = "REQ_422_INVALID_STATE",
    CONTRACT_409_VERSION_MISMATCH = "CONTRACT_409_VERSION_MISMATCH",
    JOB_404_NOT_FOUND = "JOB_404_NOT_FOUND",
    JOB_409_LOCKED = "JOB_409_LOCKED",
    JOB_409_IDEMPOTENCY_CONFLICT = "JOB_409_IDEMPOTENCY_CONFLICT",
    JOB_423_WAITING_HUMAN = "JOB_423_WAITING_HUMAN",
    JOB_409_ALREADY_TERMINAL = "JOB_409_ALREADY_TERMINAL",
    JOB_422_NOT_CANCELLABLE = "JOB_422_NOT_CANCELLABLE",
    JOB_422_DELEGATION_DEPTH_EXCEEDED = "JOB_422_DELEGATION_DEPTH_EXCEEDED",
    JOB_503_QUEUE_UNAVAILABLE = "JOB_503_QUEUE_UNAVAILABLE",
    POLICY_403_DENIED = "POLICY_403_DENIED",
    POLICY_409_REQUIRES_APPROVAL = "POLICY_409_REQUIRES_APPROVAL",
    POLICY_503_ENGINE_UNAVAILABLE = "POLICY_503_ENGINE_UNAVAILABLE",
    APPROVAL_409_DECISION_CONFLICT = "APPROVAL_409_DECISION_CONFLICT",
    APPROVAL_403_NOT_APPROVER = "APPROVAL_403_NOT_APPROVER",
    BUDGET_429_LIMIT = "BUDGET_429_LIMIT",
    BUDGET_409_EXCEEDED = "BUDGET_409_EXCEEDED",
    RATE_429_THROTTLED = "RATE_429_THROTTLED",
    DLQ_404_NOT_FOUND = "DLQ_404_NOT_FOUND",
    DLQ_409_ALREADY_REPROCESSED = "DLQ_409_ALREADY_REPROCESSED",
    INFRA_503_DEPENDENCY_DOWN = "INFRA_503_DEPENDENCY_DOWN",
    INTERNAL_500_UNEXPECTED = "INTERNAL_500_UNEXPECTED",
}

/** The codes of the job contract. */
export enum JobsErrorCode {
    RFA_REQUEST_MALFORMED = "RFA_REQUEST_MALFORMED",
    RFA_REQUEST_UNSUPPORTED_MEDIA_TYPE = "RFA_REQUEST_UNSUPPORTED_MEDIA_TYPE",
    RFA_REQUEST_METHOD_NOT_ALLOWED = "RFA_REQUEST_METHOD_NOT_ALLOWED",
    RFA_REQUEST_NOT_ACCEPTABLE = "RFA_REQUEST_NOT_ACCEPTABLE",
    RFA_REQUEST_PAYLOAD_TOO_LARGE = "RFA_REQUEST_PAYLOAD_TOO_LARGE",
    RFA_REQUEST_RATE_LIMITED = "RFA_REQUEST_RATE_LIMITED",
    RFA_AUTH_INVALID_CREDENTIALS = "RFA_AUTH_INVALID_CREDENTIALS",
    RFA_AUTH_TOKEN_EXPIRED = "RFA_AUTH_TOKEN_EXPIRED",
    RFA_AUTH_FORBIDDEN = "RFA_AUTH_FORBIDDEN",
    RFA_AUTH_API_KEY_DISABLED = "RFA_AUTH_API_KEY_DISABLED",
    RFA_JOB_VALIDATION_FAILED = "RFA_JOB_VALIDATION_FAILED",
    RFA_JOB_NOT_FOUND = "RFA_JOB_NOT_FOUND",
    RFA_JOB_CONFLICT = "RFA_JOB_CONFLICT",
    RFA_EXEC_QUEUE_FULL = "RFA_EXEC_QUEUE_FULL",
    RFA_EXEC_TIMEOUT = "RFA_EXEC_TIMEOUT",
    RFA_EXEC_IDEMPOTENCY_CONFLICT = "RFA_EXEC_IDEMPOTENCY_CONFLICT",
    RFA_EXEC_WORKER_UNAVAILABLE = "RFA_EXEC_WORKER_UNAVAILABLE",
    RFA_STORAGE_DB_ERROR = "RFA_STORAGE_DB_ERROR",
    RFA_STORAGE_UNAVAILABLE = "RFA_STORAGE_UNAVAILABLE",
    RFA_DEPENDENCY_TIMEOUT = "RFA_DEPENDENCY_TIMEOUT",
    RFA_CONFIG_INVALID = "RFA_CONFIG_INVALID",
    RFA_INTERNAL = "RFA_INTERNAL",
    RFA_REQUEST_ROUTE_NOT_FOUND = "RFA_REQUEST_ROUTE_NOT_FOUND",
    RFA_CLIENT_NOT_FOUND = "RFA_CLIENT_NOT_FOUND",
    RFA_AUTH_API_KEY_NOT_FOUND = "RFA_AUTH_API_KEY_NOT_FOUND",
    RFA_AUTH_API_KEY_CONFLICT = "RFA_AUTH_API_KEY_CONFLICT",
    RFA_JOB_REPORT_NOT_FOUND = "RFA_JOB_REPORT_NOT_FOUND",
    RFA_WEBHOOK_NOT_FOUND = "RFA_WEBHOOK_NOT_FOUND",
    RFA_WEBHOOK_CONFLICT = "RFA_WEBHOOK_CONFLICT",
}

/** Codes of this server beside those: of the operator's surface, and what neither contract has a code for on its own paths. */
export enum OwnErrorCode {
    REQ_404_ROUTE_NOT_FOUND = "REQ_404_ROUTE_NOT_FOUND",
    REQ_405_METHOD_NOT_ALLOWED = "REQ_405_METHOD_NOT_ALLOWED",
    REQ_408_REQUEST_TIMEOUT = "REQ_408_REQUEST_TIMEOUT",
    REQ_414_TARGET_TOO_LONG = "REQ_414_TARGET_TOO_LONG",
    REQ_417_EXPECTATION_FAILED = "REQ_417_EXPECTATION_FAILED",
    REQ_431_HEADER_TOO_LARGE = "REQ_431_HEADER_TOO_LARGE",
    RFA_WEBHOOK_DELIVERY_NOT_FOUND = "RFA_WEBHOOK_DELIVERY_NOT_FOUND",
    RFA_WEBHOOK_DELIVERY_CONFLICT = "RFA_WEBHOOK_DELIVERY_CONFLICT",
    RFA_REQUEST_TIMEOUT = "RFA_REQUEST_TIMEOUT",
    RFA_REQUEST_TARGET_TOO_LONG = "RFA_REQUEST_TARGET_TOO_LONG",
    RFA_REQUEST_EXPECTATION_FAILED = "RFA_REQUEST_EXPECTATION_FAILED",
    RFA_REQUEST_HEADER_TOO_LARGE = "RFA_REQUEST_HEADER_TOO_LARGE",
    OPS_400_MALFORMED = "OPS_400_MALFORMED",
    OPS_400_MISSING_FIELD = "OPS_400_MISSING_FIELD",
    OPS_400_INVALID = "OPS_400_INVALID",
    OPS_401_NO_CREDENTIALS = "OPS_401_NO_CREDENTIALS",
    OPS_401_BAD_CREDENTIALS = "OPS_401_BAD_CREDENTIALS",
    OPS_403_DISABLED_CREDENTIALS = "OPS_403_DISABLED_CREDENTIALS",
    OPS_403_FORBIDDEN = "OPS_403_FORBIDDEN",
    OPS_403_CROSS_SITE = "OPS_403_CROSS_SITE",
    OPS_404_NO_ROUTE = "OPS_404_NO_ROUTE",
    OPS_404_NOT_FOUND = "OPS_404_NOT_FOUND",
    OPS_405_METHOD = "OPS_405_METHOD",
    OPS_406_NOT_ACCEPTABLE = "OPS_406_NOT_ACCEPTABLE",
    OPS_408_REQUEST_TIMEOUT = "OPS_408_REQUEST_TIMEOUT",
    OPS_409_CONFLICT = "OPS_409_CONFLICT",
    OPS_411_LENGTH_REQUIRED = "OPS_411_LENGTH_REQUIRED",
    OPS_413_TOO_LARGE = "OPS_413_TOO_LARGE",
    OPS_414_TARGET_TOO_LONG = "OPS_414_TARGET_TOO_LONG",
    OPS_415_UNSUPPORTED_TYPE = "OPS_415_UNSUPPORTED_TYPE",
    OPS_417_EXPECTATION = "OPS_417_EXPECTATION",
    OPS_421_MISDIRECTED = "OPS_421_MISDIRECTED",
    OPS_429_THROTTLED = "OPS_429_THROTTLED",
    OPS_431_HEADER_TOO_LARGE = "OPS_431_HEADER_TOO_LARGE",
    OPS_500_INTERNAL = "OPS_500_INTERNAL",
    OPS_503_UNAVAILABLE = "OPS_503_UNAVAILABLE",
    OPS_503_OVERLOADED = "OPS_503_OVERLOADED",
    OPS_503_STORE = "OPS_503_STORE",
    OPS_504_TIMEOUT = "OPS_504_TIMEOUT",
    OPS_507_NO_SPACE = "OPS_507_NO_SPACE",
}

export type AnyErrorCode = ErrorCode | JobsErrorCode | OwnErrorCode;

export interface ErrorRow {
    readonly status: number;
    readonly retryable: boolean;
    readonly retryClass: "none" | "bounded" | "operator" | "";
    readonly title: string;
    readonly action: string;
    readonly surface: "control" | "jobs" | "operator";
}

export const errorCatalogue: Readonly<Record<AnyErrorCode, ErrorRow>> = {
    AUTH_401_MISSING_TOKEN: { status: 401, retryable: false, retryClass: "none", title: "Missing bearer token.", action: "", surface: "control" },
    AUTH_401_INVALID_TOKEN: { status: 401, retryable: false, retryClass: "none", title: "Invalid/expired token.", action: "", surface: "control" },
    AUTH_401_CONNECTOR_INVALID_SIGNATURE: { status: 401, retryable: false, retryClass: "none", title: "Connector/webhook signature verification failed.", action: "", surface: "control" },
    AUTH_401_CONNECTOR_REPLAY: { status: 401, retryable: false, retryClass: "none", title: "Connector/webhook replay check failed.", action: "", surface: "control" },
    AUTH_403_SCOPE: { status: 403, retryable: false, retryClass: "none", title: "Actor not allowed in requested project scope.", action: "", surface: "control" },
    AUTH_403_ROLE: { status: 403, retryable: false, retryClass: "none", title: "Role cannot perform requested action.", action: "", surface: "control" },
    REQ_400_INVALID_SCHEMA: { status: 400, retryable: false, retryClass: "none", title: "Payload does not match schema.", action: "", surface: "control" },
    REQ_400_MISSING_FIELD: { status: 400, retryable: false, retryClass: "none", title: "Required field is missing.", action: "", surface: "control" },
    REQ_422_INVALID_STATE: { status: 422, retryable: false, retryClass: "none", title: "Operation invalid for current job state.", action: "", surface: "control" },
    CONTRACT_409_VERSION_MISMATCH: { status: 409, retryable: false, retryClass: "none", title: "Unsupported schema version or incompatible contract.", action: "", surface: "control" },
    JOB_404_NOT_FOUND: { status: 404, retryable: false, retryClass: "none", title: "Job id does not exist.", action: "", surface: "control" },
    JOB_409_LOCKED: { status: 409, retryable: true, retryClass: "bounded", title: "Resource lock conflict, retry later.", action: "", surface: "control" },
    JOB_409_IDEMPOTENCY_CONFLICT: { status: 409, retryable: false, retryClass: "none", title: "Same idempotency key used with different payload.", action: "", surface: "control" },
    JOB_423_WAITING_HUMAN: { status: 423, retryable: true, retryClass: "bounded", title: "Job paused for human decision.", action: "", surface: "control" },
    JOB_409_ALREADY_TERMINAL: { status: 409, retryable: false, retryClass: "none", title: "Job already in terminal state.", action: "", surface: "control" },
    JOB_422_NOT_CANCELLABLE: { status: 422, retryable: false, retryClass: "none", title: "Job is in a terminal or non-cancellable state.", action: "", surface: "control" },
    JOB_422_DELEGATION_DEPTH_EXCEEDED: { status: 422, retryable: false, retryClass: "none", title: "Delegated job rejected; maximum delegation depth (3) exceeded.", action: "", surface: "control" },
    JOB_503_QUEUE_UNAVAILABLE: { status: 503, retryable: true, retryClass: "bounded", title: "Queue backend unavailable.", action: "", surface: "control" },
    POLICY_403_DENIED: { status: 403, retryable: false, retryClass: "none", title: "Policy engine denied execution.", action: "", surface: "control" },
    POLICY_409_REQUIRES_APPROVAL: { status: 409, retryable: false, retryClass: "operator", title: "Human approval required before execution.", action: "", surface: "control" },
    POLICY_503_ENGINE_UNAVAILABLE: { status: 503, retryable: true, retryClass: "bounded", title: "Policy engine unavailable; Tier A continues on cached policy; Tier B/C jobs are queued until recovery.", action: "", surface: "control" },
    APPROVAL_409_DECISION_CONFLICT: { status: 409, retryable: false, retryClass: "none", title: "Conflicting decision for same job/version.", action: "", surface: "control" },
    APPROVAL_403_NOT_APPROVER: { status: 403, retryable: false, retryClass: "none", title: "Actor is not an allowed approver for this scope/tier.", action: "", surface: "control" },
    BUDGET_429_LIMIT: { status: 429, retryable: true, retryClass: "bounded", title: "Budget threshold reached for active window.", action: "", surface: "control" },
    BUDGET_409_EXCEEDED: { status: 409, retryable: false, retryClass: "none", title: "Job exceeded hard budget and was stopped.", action: "", surface: "control" },
    RATE_429_THROTTLED: { status: 429, retryable: true, retryClass: "bounded", title: "Request rate limit exceeded.", action: "", surface: "control" },
    DLQ_404_NOT_FOUND: { status: 404, retryable: false, retryClass: "none", title: "DLQ item with given event_id does not exist.", action: "", surface: "control" },
    DLQ_409_ALREADY_REPROCESSED: { status: 409, retryable: false, retryClass: "none", title: "DLQ item has already been reprocessed or resolved.", action: "", surface: "control" },
    INFRA_503_DEPENDENCY_DOWN: { status: 503, retryable: true, retryClass: "bounded", title: "Required downstream dependency unavailable.", action: "", surface: "control" },
    INTERNAL_500_UNEXPECTED: { status: 500, retryable: false, retryClass: "operator", title: "Unexpected internal error.", action: "", surface: "control" },
    RFA_REQUEST_MALFORMED: { status: 400, retryable: false, retryClass: "", title: "Malformed request (invalid JSON, missing required fields).", action: "Fix request format; check schema.", surface: "jobs" },
    RFA_REQUEST_UNSUPPORTED_MEDIA_TYPE: { status: 415, retryable: false, retryClass: "", title: "Unsupported Content-Type.", action: "Use application/json.", surface: "jobs" },
    RFA_REQUEST_METHOD_NOT_ALLOWED: { status: 405, retryable: false, retryClass: "", title: "HTTP method not supported on this endpoint.", action: "Use the documented method.", surface: "jobs" },
    RFA_REQUEST_NOT_ACCEPTABLE: { status: 406, retryable: false, retryClass: "", title: "Client Accept header not supported.", action: "Accept application/json.", surface: "jobs" },
    RFA_REQUEST_PAYLOAD_TOO_LARGE: { status: 413, retryable: false, retryClass: "", title: "Request body exceeds size limits.", action: "Reduce payload size.", surface: "jobs" },
    RFA_REQUEST_RATE_LIMITED: { status: 429, retryable: true, retryClass: "", title: "Too many requests.", action: "Retry with backoff; reduce rate.", surface: "jobs" },
    RFA_AUTH_INVALID_CREDENTIALS: { status: 401, retryable: false, retryClass: "", title: "Missing/invalid API key or token.", action: "Provide valid credentials; refresh token.", surface: "jobs" },
    RFA_AUTH_TOKEN_EXPIRED: { status: 401, retryable: false, retryClass: "", title: "Token expired.", action: "Refresh token.", surface: "jobs" },
    RFA_AUTH_FORBIDDEN: { status: 403, retryable: false, retryClass: "", title: "Authenticated but not allowed.", action: "Request access or correct scopes.", surface: "jobs" },
    RFA_AUTH_API_KEY_DISABLED: { status: 403, retryable: false, retryClass: "", title: "API key disabled or revoked.", action: "Use another key.", surface: "jobs" },
    RFA_JOB_VALIDATION_FAILED: { status: 400, retryable: false, retryClass: "", title: "Business rules failed.", action: "Fix field values; retry.", surface: "jobs" },
    RFA_JOB_NOT_FOUND: { status: 404, retryable: false, retryClass: "", title: "Job does not exist.", action: "Verify job ID.", surface: "jobs" },
    RFA_JOB_CONFLICT: { status: 409, retryable: false, retryClass: "", title: "Job already exists or conflicting state.", action: "Use idempotency or handle conflict.", surface: "jobs" },
    RFA_EXEC_QUEUE_FULL: { status: 503, retryable: true, retryClass: "", title: "Execution queue at capacity.", action: "Retry later; lower load.", surface: "jobs" },
    RFA_EXEC_TIMEOUT: { status: 504, retryable: true, retryClass: "", title: "Operation exceeded timeout.", action: "Retry later.", surface: "jobs" },
    RFA_EXEC_IDEMPOTENCY_CONFLICT: { status: 409, retryable: false, retryClass: "", title: "Idempotency key reused with different payload.", action: "Reuse same payload or new key.", surface: "jobs" },
    RFA_EXEC_WORKER_UNAVAILABLE: { status: 503, retryable: true, retryClass: "", title: "No workers available.", action: "Retry later; scale workers.", surface: "jobs" },
    RFA_STORAGE_DB_ERROR: { status: 503, retryable: true, retryClass: "", title: "Database unavailable or query failed.", action: "Retry later.", surface: "jobs" },
    RFA_STORAGE_UNAVAILABLE: { status: 503, retryable: true, retryClass: "", title: "Required dependency unavailable.", action: "Retry later.", surface: "jobs" },
    RFA_DEPENDENCY_TIMEOUT: { status: 504, retryable: true, retryClass: "", title: "Downstream dependency timed out.", action: "Retry later.", surface: "jobs" },
    RFA_CONFIG_INVALID: { status: 503, retryable: false, retryClass: "", title: "Server misconfiguration.", action: "Fix config.", surface: "jobs" },
    RFA_INTERNAL: { status: 500, retryable: true, retryClass: "", title: "Unexpected server error.", action: "Retry later.", surface: "jobs" },
    RFA_REQUEST_ROUTE_NOT_FOUND: { status: 404, retryable: false, retryClass: "", title: "No such path on this API.", action: "Use a documented path.", surface: "jobs" },
    RFA_CLIENT_NOT_FOUND: { status: 404, retryable: false, retryClass: "", title: "Client does not exist.", action: "Verify client ID.", surface: "jobs" },
    RFA_AUTH_API_KEY_NOT_FOUND: { status: 404, retryable: false, retryClass: "", title: "API key does not exist for this client.", action: "Verify key ID.", surface: "jobs" },
    RFA_AUTH_API_KEY_CONFLICT: { status: 409, retryable: false, retryClass: "", title: "Concurrent key change, or no active key to renew.", action: "Read the current key, then repeat.", surface: "jobs" },
    RFA_JOB_REPORT_NOT_FOUND: { status: 404, retryable: false, retryClass: "", title: "Job exists but has no report (not final, or report missing).", action: "Poll the job until it is final.", surface: "jobs" },
    RFA_WEBHOOK_NOT_FOUND: { status: 404, retryable: false, retryClass: "", title: "Webhook does not exist.", action: "Verify webhook ID.", surface: "jobs" },
    RFA_WEBHOOK_CONFLICT: { status: 409, retryable: false, retryClass: "", title: "Same URL and event set already registered by this client.", action: "Use the existing webhook.", surface: "jobs" },
    REQ_404_ROUTE_NOT_FOUND: { status: 404, retryable: false, retryClass: "none", title: "No such path in this contract.", action: "Use a documented path.", surface: "control" },
    REQ_405_METHOD_NOT_ALLOWED: { status: 405, retryable: false, retryClass: "none", title: "This path does not take this method.", action: "Use a method that the Allow header names.", surface: "control" },
    REQ_408_REQUEST_TIMEOUT: { status: 408, retryable: false, retryClass: "none", title: "The request did not arrive in time.", action: "Send it faster.", surface: "control" },
    REQ_414_TARGET_TOO_LONG: { status: 414, retryable: false, retryClass: "none", title: "The request line is too long.", action: "Send a shorter path and query.", surface: "control" },
    REQ_417_EXPECTATION_FAILED: { status: 417, retryable: false, retryClass: "none", title: "The expectation cannot be met.", action: "Send no Expect, or 100-continue.", surface: "control" },
    REQ_431_HEADER_TOO_LARGE: { status: 431, retryable: false, retryClass: "none", title: "The header is too large, or has too many fields.", action: "Send less of it.", surface: "control" },
    RFA_WEBHOOK_DELIVERY_NOT_FOUND: { status: 404, retryable: false, retryClass: "", title: "Delivery does not exist.", action: "Verify delivery ID.", surface: "jobs" },
    RFA_WEBHOOK_DELIVERY_CONFLICT: { status: 409, retryable: false, retryClass: "", title: "Delivery cannot be sent again as it is.", action: "Enable the webhook, or leave it.", surface: "jobs" },
    RFA_REQUEST_TIMEOUT: { status: 408, retryable: true, retryClass: "", title: "The request did not arrive in time.", action: "Retry; send it faster.", surface: "jobs" },
    RFA_REQUEST_TARGET_TOO_LONG: { status: 414, retryable: false, retryClass: "", title: "The request line is too long.", action: "Send a shorter path and query.", surface: "jobs" },
    RFA_REQUEST_EXPECTATION_FAILED: { status: 417, retryable: false, retryClass: "", title: "The expectation cannot be met.", action: "Send no Expect, or 100-continue.", surface: "jobs" },
    RFA_REQUEST_HEADER_TOO_LARGE: { status: 431, retryable: false, retryClass: "", title: "The header is too large, or has too many fields.", action: "Send less of it.", surface: "jobs" },
    OPS_400_MALFORMED: { status: 400, retryable: false, retryClass: "none", title: "The request is not well-formed HTTP or JSON.", action: "Correct what the detail names.", surface: "operator" },
    OPS_400_MISSING_FIELD: { status: 400, retryable: false, retryClass: "none", title: "Something that is required is missing.", action: "Add what the detail names.", surface: "operator" },
    OPS_400_INVALID: { status: 400, retryable: false, retryClass: "none", title: "A value is not one that the contract allows.", action: "Correct what the detail names.", surface: "operator" },
    OPS_401_NO_CREDENTIALS: { status: 401, retryable: false, retryClass: "none", title: "This needs credentials.", action: "Send Authorization: Bearer and a token.", surface: "operator" },
    OPS_401_BAD_CREDENTIALS: { status: 401, retryable: false, retryClass: "none", title: "These credentials are not valid.", action: "Use valid credentials.", surface: "operator" },
    OPS_403_DISABLED_CREDENTIALS: { status: 403, retryable: false, retryClass: "none", title: "These credentials were disabled.", action: "Use other credentials.", surface: "operator" },
    OPS_403_FORBIDDEN: { status: 403, retryable: false, retryClass: "none", title: "These credentials do not allow this.", action: "Ask for the role or the scope.", surface: "operator" },
    OPS_403_CROSS_SITE: { status: 403, retryable: false, retryClass: "none", title: "A page of another site may not change anything here.", action: "Call this from a program, or from this server's own pages.", surface: "operator" },
    OPS_404_NO_ROUTE: { status: 404, retryable: false, retryClass: "none", title: "There is no such path.", action: "Use a documented path.", surface: "operator" },
    OPS_404_NOT_FOUND: { status: 404, retryable: false, retryClass: "none", title: "What the path names does not exist.", action: "Check the name.", surface: "operator" },
    OPS_405_METHOD: { status: 405, retryable: false, retryClass: "none", title: "This path does not take this method.", action: "Use a method that the Allow header names.", surface: "operator" },
    OPS_406_NOT_ACCEPTABLE: { status: 406, retryable: false, retryClass: "none", title: "None of the accepted media types can be had.", action: "Accept the documented media type.", surface: "operator" },
    OPS_408_REQUEST_TIMEOUT: { status: 408, retryable: true, retryClass: "bounded", title: "The request did not arrive in time.", action: "Send it again, faster.", surface: "operator" },
    OPS_409_CONFLICT: { status: 409, retryable: false, retryClass: "none", title: "The state of what the path names does not allow this.", action: "Read the state, then decide.", surface: "operator" },
    OPS_411_LENGTH_REQUIRED: { status: 411, retryable: false, retryClass: "none", title: "The body needs a length.", action: "Send Content-Length, or Transfer-Encoding: chunked.", surface: "operator" },
    OPS_413_TOO_LARGE: { status: 413, retryable: false, retryClass: "none", title: "The body is larger than this path takes.", action: "Send less.", surface: "operator" },
    OPS_414_TARGET_TOO_LONG: { status: 414, retryable: false, retryClass: "none", title: "The request line is too long.", action: "Send a shorter path and query.", surface: "operator" },
    OPS_415_UNSUPPORTED_TYPE: { status: 415, retryable: false, retryClass: "none", title: "The body's media type is not the documented one.", action: "Send application/json.", surface: "operator" },
    OPS_417_EXPECTATION: { status: 417, retryable: false, retryClass: "none", title: "The expectation cannot be met.", action: "Send no Expect, or 100-continue.", surface: "operator" },
    OPS_421_MISDIRECTED: { status: 421, retryable: false, retryClass: "none", title: "This listener does not answer for that host.", action: "Use the address of the listener.", surface: "operator" },
    OPS_429_THROTTLED: { status: 429, retryable: true, retryClass: "bounded", title: "Too many requests.", action: "Wait as long as Retry-After says.", surface: "operator" },
    OPS_431_HEADER_TOO_LARGE: { status: 431, retryable: false, retryClass: "none", title: "The header is too large, or has too many fields.", action: "Send less of it.", surface: "operator" },
    OPS_500_INTERNAL: { status: 500, retryable: false, retryClass: "operator", title: "Something went wrong in the server.", action: "Look for the request id in the log.", surface: "operator" },
    OPS_503_UNAVAILABLE: { status: 503, retryable: true, retryClass: "bounded", title: "The server is starting, draining, or lacks what this needs.", action: "Try again later.", surface: "operator" },
    OPS_503_OVERLOADED: { status: 503, retryable: true, retryClass: "bounded", title: "The server has as much to do as it takes on.", action: "Try again later.", surface: "operator" },
    OPS_503_STORE: { status: 503, retryable: true, retryClass: "bounded", title: "The store could not be read or written.", action: "Try again later; look at /readyz.", surface: "operator" },
    OPS_504_TIMEOUT: { status: 504, retryable: true, retryClass: "bounded", title: "It took longer than allowed.", action: "Try again later.", surface: "operator" },
    OPS_507_NO_SPACE: { status: 507, retryable: true, retryClass: "operator", title: "There is no space left to write to.", action: "Make space, then try again.", surface: "operator" },
};

/** A refusal of the server, in whichever of the two shapes it came. */
export class ApiError extends Error {
    readonly code: AnyErrorCode | undefined;
    readonly status: number;
    readonly retryable: boolean;
    /** Seconds that the server asked to wait. */
    readonly retryAfter: number | undefined;
    readonly requestId: string | undefined;
    /** The body as it came. */
    readonly body: unknown;

    constructor(status: number, body: unknown, retryAfter?: number) {
        const b = (body ?? {}) as { error?: Record<string, unknown> } & Record<string, unknown>;
        const source = b.error ?? b;
        const code = isErrorCode(source["code"]) ? source["code"] : undefined;
        const text = source["message"] ?? source["detail"] ?? (code ? errorCatalogue[code].title : `status ${status}`);
        super(String(text));
        this.name = "ApiError";
        this.code = code;
        this.status = status;
        this.retryable = code ? errorCatalogue[code].retryable : status === 429 || status === 503;
        this.retryAfter = retryAfter;
        const id = source["request_id"] ?? source["instance"];
        this.requestId = typeof id === "string" ? id : undefined;
        this.body = body;
    }

    is(...codes: AnyErrorCode[]): boolean {
        return this.code !== undefined && codes.includes(this.code);
    }
}

export function isErrorCode(value: unknown): value is AnyErrorCode {
    return typeof value === "string" && Object.hasOwn(errorCatalogue, value);
}
