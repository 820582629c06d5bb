// Made by `make contract` from docs/contract; do not edit.

export interface paths {
    "/clients": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create a client
         * @description Needs no authentication. The request is empty. The seed lists 500 and 503; 429 is the limit for
         *     unauthenticated calls (extension).
         */
        post: operations["createClient"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/clients/{client_id}/keys": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Client id. */
                client_id: components["parameters"]["ClientId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create an API key
         * @description Without `rotate`, a repeated call returns the metadata of the existing key and `api_key` null.
         *     The first key of a new client may be created without authentication inside the bootstrap
         *     window; later calls need a valid key of the same client.
         */
        post: operations["createApiKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/clients/{client_id}/keys/renew": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Client id. */
                client_id: components["parameters"]["ClientId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Renew the API key */
        post: operations["renewApiKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/clients/{client_id}/keys/revoke": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Client id. */
                client_id: components["parameters"]["ClientId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Revoke an API key */
        post: operations["revokeApiKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the jobs of the calling client with state and outcome */
        get: operations["listJobs"];
        put?: never;
        /**
         * Submit a job
         * @description Answers 202 after the job, its first event and its idempotency record are stored. The body
         *     member `idempotency_key` wins over the header.
         */
        post: operations["submitJob"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs/{job_id}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Job id. */
                job_id: components["parameters"]["JobId"];
            };
            cookie?: never;
        };
        /** Get a job */
        get: operations["getJob"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs/{job_id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Job id. */
                job_id: components["parameters"]["JobId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel a job
         * @description On a final job this changes nothing and returns the current state.
         */
        post: operations["cancelJob"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs/{job_id}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Job id. */
                job_id: components["parameters"]["JobId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Retry a failed job
         * @description On a job that is not FAILED this changes nothing and returns the current state and attempt.
         *     With no retries left the answer is 409.
         */
        post: operations["retryJob"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs/{job_id}/report": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Job id. */
                job_id: components["parameters"]["JobId"];
            };
            cookie?: never;
        };
        /** Get the report of a final job */
        get: operations["getJobReport"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs/{job_id}/events": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Job id. */
                job_id: components["parameters"]["JobId"];
            };
            cookie?: never;
        };
        /** List the events of a job, also before it is final */
        get: operations["listJobEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Register a webhook */
        post: operations["registerWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks/{webhook_id}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Webhook id. */
                webhook_id: components["parameters"]["WebhookId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Unregister a webhook */
        delete: operations["unregisterWebhook"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export interface webhooks {
    jobEvent: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Event sent to each registered webhook that subscribed to its name */
        post: operations["jobEventDelivery"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export interface components {
    schemas: {
        EmptyObject: Record<string, never>;
        IdempotencyKeyValue: string;
        /**
         * Format: date-time
         * @description UTC, RFC 3339, ends with `Z`.
         */
        Timestamp: string;
        /** @enum {string} */
        JobType: "EXECUTE" | "DEFERRED" | "EMIT_EVENT";
        /** @enum {string} */
        JobState: "CREATED" | "QUEUED" | "ASSIGNED" | "RUNNING" | "SUCCEEDED" | "FAILED" | "CANCELED";
        /** @enum {string} */
        JobOutcome: "SUCCESS" | "FAILED" | "CANCELED";
        /** @enum {string} */
        WorkKind: "SUCCESS_FAST" | "SUCCESS_NORMAL" | "SUCCESS_SLOW" | "FAIL_IMMEDIATE" | "FAIL_AFTER_PROGRESS" | "FAIL_AFTER_RETRYABLE" | "RUNS_LONG" | "RUNS_OVER_TIMEOUT" | "CPU_BURST" | "MEMORY_SPIKE" | "IO_HEAVY" | "MANY_SMALL_OUTPUTS" | "LARGE_OUTPUT" | "CANCEL_BEFORE_START" | "CANCEL_DURING_RUN" | "RETRY_ON_FAIL" | "RETRY_LIMIT_REACHED" | "DUPLICATE_SUBMIT_SAME_KEY" | "DUPLICATE_SUBMIT_DIFFERENT_KEY" | "WEBHOOK_SUCCESS" | "WEBHOOK_TIMEOUT" | "WEBHOOK_5XX" | "WEBHOOK_RETRIES_EXHAUSTED" | "WEBHOOK_SLOW_RECEIVER" | "SCHEDULED_ON_TIME" | "SCHEDULED_LATE_RECOVERY" | "SCHEDULED_FAR_FUTURE" | "PAYLOAD_SMALL" | "PAYLOAD_MEDIUM" | "PAYLOAD_LARGE" | "PAYLOAD_INVALID";
        /** @enum {string} */
        EventName: "job.created" | "job.queued" | "job.assigned" | "job.running" | "job.succeeded" | "job.failed" | "job.timed_out" | "job.canceled" | "job.retried" | "job.requeued" | "job.emitted";
        /**
         * @description The last seven are extensions.
         * @enum {string}
         */
        ErrorCode: "RFA_REQUEST_MALFORMED" | "RFA_REQUEST_UNSUPPORTED_MEDIA_TYPE" | "RFA_REQUEST_METHOD_NOT_ALLOWED" | "RFA_REQUEST_NOT_ACCEPTABLE" | "RFA_REQUEST_PAYLOAD_TOO_LARGE" | "RFA_REQUEST_RATE_LIMITED" | "RFA_AUTH_INVALID_CREDENTIALS" | "RFA_AUTH_TOKEN_EXPIRED" | "RFA_AUTH_FORBIDDEN" | "RFA_AUTH_API_KEY_DISABLED" | "RFA_JOB_VALIDATION_FAILED" | "RFA_JOB_NOT_FOUND" | "RFA_JOB_CONFLICT" | "RFA_EXEC_QUEUE_FULL" | "RFA_EXEC_TIMEOUT" | "RFA_EXEC_IDEMPOTENCY_CONFLICT" | "RFA_EXEC_WORKER_UNAVAILABLE" | "RFA_STORAGE_DB_ERROR" | "RFA_STORAGE_UNAVAILABLE" | "RFA_DEPENDENCY_TIMEOUT" | "RFA_CONFIG_INVALID" | "RFA_INTERNAL" | "RFA_REQUEST_ROUTE_NOT_FOUND" | "RFA_CLIENT_NOT_FOUND" | "RFA_AUTH_API_KEY_NOT_FOUND" | "RFA_AUTH_API_KEY_CONFLICT" | "RFA_JOB_REPORT_NOT_FOUND" | "RFA_WEBHOOK_NOT_FOUND" | "RFA_WEBHOOK_CONFLICT";
        /**
         * Format: uri
         * @description Must be https:// or http://.
         */
        HttpUrl: string;
        ClientCreated: {
            /** Format: uuid */
            client_id: string;
        };
        ApiKeyCreateRequest: {
            /** @default false */
            rotate: boolean;
        };
        ApiKeyIssued: {
            /** @description The secret, shown once; null when only metadata of an existing key is returned. */
            api_key: string | null;
            /** Format: uuid */
            key_id: string;
            created_at: components["schemas"]["Timestamp"];
            expires_at: components["schemas"]["Timestamp"];
        };
        ApiKeyRevokeRequest: {
            key_id: string;
        };
        ApiKeyRevoked: {
            /** @constant */
            revoked: true;
        };
        JobSubmitRequest: {
            type: components["schemas"]["JobType"];
            /**
             * @description Required and in the future for DEFERRED; absent or null otherwise. Checked as business rule
             *     (400 `RFA_JOB_VALIDATION_FAILED`).
             */
            execution_at?: components["schemas"]["Timestamp"] | null;
            /** @description Webhook for each state change of this job. */
            callback?: components["schemas"]["HttpUrl"] | null;
            idempotency_key?: components["schemas"]["IdempotencyKeyValue"];
            /** @description Scenario by name; chosen with the request timestamp as seed if absent. */
            work_kind?: components["schemas"]["WorkKind"];
        };
        JobAccepted: {
            /** Format: uuid */
            job_id: string;
            state: components["schemas"]["JobState"];
            created_at: components["schemas"]["Timestamp"];
        };
        JobCancelResult: {
            /** Format: uuid */
            job_id: string;
            state: components["schemas"]["JobState"];
            updated_at: components["schemas"]["Timestamp"];
        };
        JobRetryResult: {
            /** Format: uuid */
            job_id: string;
            state: components["schemas"]["JobState"];
            updated_at: components["schemas"]["Timestamp"];
            attempt: number;
        };
        JobDefinition: {
            work_kind: components["schemas"]["WorkKind"];
            duration_ms: number;
            should_fail: boolean;
            /** @description Bytes. */
            payload_size: number;
        };
        JobFailure: {
            /** @enum {string} */
            reason: "SIMULATED_FAILURE" | "TIMEOUT" | "RUNNER_LOST" | "DEFINITION_MISSING" | "OUTPUT_INVALID" | "REPORT_GENERATION_FAILED" | "RECOVERY_INCOMPLETE";
            reason_code?: components["schemas"]["ErrorCode"] | null;
            retryable: boolean;
        };
        Job: {
            /** Format: uuid */
            job_id: string;
            type: components["schemas"]["JobType"];
            state: components["schemas"]["JobState"];
            /** @description Null until the job is final. */
            outcome: components["schemas"]["JobOutcome"] | null;
            created_at: components["schemas"]["Timestamp"];
            execution_at: components["schemas"]["Timestamp"] | null;
            updated_at: components["schemas"]["Timestamp"];
            attempt: number;
            callback: components["schemas"]["HttpUrl"] | null;
            definition?: components["schemas"]["JobDefinition"];
            failure?: components["schemas"]["JobFailure"];
        };
        JobList: {
            items: components["schemas"]["Job"][];
            next_cursor: string | null;
        };
        /** @description Always carries the scenario. */
        EventPayload: {
            scenario: components["schemas"]["WorkKind"];
            attempt?: number;
            reason?: string;
            reason_code?: components["schemas"]["ErrorCode"];
            retryable?: boolean;
            cause?: string;
            progress?: number;
            outputs?: {
                count: number;
                bytes: number;
            };
            final?: boolean;
            retries_exhausted?: boolean;
        };
        Event: {
            /** Format: uuid */
            event_id: string;
            /** Format: uuid */
            job_id: string;
            event_name: components["schemas"]["EventName"];
            /** @description Null on the first event only. */
            prev_state: components["schemas"]["JobState"] | null;
            next_state: components["schemas"]["JobState"];
            timestamp: components["schemas"]["Timestamp"];
            payload?: components["schemas"]["EventPayload"];
        };
        EventList: {
            items: components["schemas"]["Event"][];
            next_cursor: string | null;
        };
        /** @description The event plus delivery data. For the notification `job.emitted` both states are `SUCCEEDED`. */
        EventDelivery: components["schemas"]["Event"] & {
            /** Format: uuid */
            delivery_id: string;
            delivery_attempt: number;
        };
        JobReport: {
            /** Format: uuid */
            job_id: string;
            outcome: components["schemas"]["JobOutcome"];
            events: components["schemas"]["Event"][];
            /** @description Null only if the job was canceled before it started. */
            started_at: components["schemas"]["Timestamp"] | null;
            finished_at: components["schemas"]["Timestamp"];
            duration_ms: number;
        };
        WebhookRegisterRequest: {
            url: components["schemas"]["HttpUrl"];
            events: (components["schemas"]["EventName"] | "*")[];
        };
        WebhookRegistered: {
            /** Format: uuid */
            webhook_id: string;
            created_at: components["schemas"]["Timestamp"];
        };
        WebhookDeleted: {
            /** @constant */
            deleted: true;
        };
        /** @description Problem Details (RFC 7807, RFC 9457). */
        Problem: {
            /**
             * Format: uri
             * @description URI identifying the error type.
             */
            type: string;
            /** @description Short, human-readable summary. */
            title: string;
            /** @description HTTP status code. */
            status: number;
            /** @description Human-readable explanation. */
            detail: string;
            /** @description Request identifier. */
            instance: string;
            code: components["schemas"]["ErrorCode"];
            /**
             * @description Only with 429 and queue-full 503.
             * @enum {string}
             */
            limit?: "requests_per_minute" | "anonymous" | "quota" | "max_active_jobs" | "max_queue_size";
            /** @description One entry per offending field, only with 400. */
            errors?: {
                field: string;
                message: string;
            }[];
        };
    };
    responses: {
        /** @description 400. `RFA_REQUEST_MALFORMED` or `RFA_JOB_VALIDATION_FAILED`. */
        BadRequest: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "type": "urn:problem:rfa-job-validation-failed",
                 *       "title": "Business rules failed.",
                 *       "status": 400,
                 *       "detail": "execution_at must be in the future",
                 *       "instance": "urn:request:0190f5e2-6b1c-7a53-9f6e-2d1f0a7c4b11",
                 *       "code": "RFA_JOB_VALIDATION_FAILED"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description 401. `RFA_AUTH_INVALID_CREDENTIALS` or `RFA_AUTH_TOKEN_EXPIRED`. */
        Unauthorized: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                "WWW-Authenticate": components["headers"]["WwwAuthenticate"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description 403. `RFA_AUTH_FORBIDDEN` or `RFA_AUTH_API_KEY_DISABLED`. */
        Forbidden: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description 404. `RFA_JOB_NOT_FOUND`, or the extension codes for client, key, report, webhook. */
        NotFound: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description 409. `RFA_JOB_CONFLICT` or `RFA_EXEC_IDEMPOTENCY_CONFLICT`, or the extension codes for keys and webhooks. */
        Conflict: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description 429. `RFA_REQUEST_RATE_LIMITED`; `limit` names the limit. */
        TooManyRequests: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                "Retry-After": components["headers"]["RetryAfter"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description 500. `RFA_INTERNAL`. */
        InternalError: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description 503. `RFA_STORAGE_DB_ERROR`, `RFA_STORAGE_UNAVAILABLE`, `RFA_EXEC_QUEUE_FULL`, `RFA_EXEC_WORKER_UNAVAILABLE` or `RFA_CONFIG_INVALID`. */
        Unavailable: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                "Retry-After": components["headers"]["RetryAfter"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Common statuses of the catalogue (404, 405, 406, 413, 415, 429, 504). */
        CommonError: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
    };
    parameters: {
        /** @description Client id. */
        ClientId: string;
        /** @description Job id. */
        JobId: string;
        /** @description Webhook id. */
        WebhookId: string;
        /** @description Optional on create actions. Same key and same body give the first result. */
        IdempotencyKey: components["schemas"]["IdempotencyKeyValue"];
        /** @description Page size. */
        Limit: number;
        /** @description Opaque position from `next_cursor`. */
        Cursor: string;
    };
    requestBodies: {
        /** @description Empty, or an empty object. */
        Empty: {
            content: {
                "application/json": components["schemas"]["EmptyObject"];
            };
        };
    };
    headers: {
        /** @description Request id, as sent by the caller or made by the server. */
        RequestId: string;
        /** @description Seconds to wait before the next attempt. */
        RetryAfter: number;
        /** @description Always `Bearer`. */
        WwwAuthenticate: string;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    createClient: {
        parameters: {
            query?: never;
            header?: {
                /** @description Optional on create actions. Same key and same body give the first result. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["Empty"];
        responses: {
            /** @description Client created. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ClientCreated"];
                };
            };
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    createApiKey: {
        parameters: {
            query?: never;
            header?: {
                /** @description Optional on create actions. Same key and same body give the first result. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path: {
                /** @description Client id. */
                client_id: components["parameters"]["ClientId"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ApiKeyCreateRequest"];
            };
        };
        responses: {
            /** @description Key created, or metadata of the existing key. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiKeyIssued"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    renewApiKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Client id. */
                client_id: components["parameters"]["ClientId"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["Empty"];
        responses: {
            /** @description New secret with a new expiry; the previous key is disabled. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiKeyIssued"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    revokeApiKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Client id. */
                client_id: components["parameters"]["ClientId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ApiKeyRevokeRequest"];
            };
        };
        responses: {
            /** @description Key revoked. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiKeyRevoked"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    listJobs: {
        parameters: {
            query?: {
                /** @description Only jobs in this state. */
                state?: components["schemas"]["JobState"];
                /** @description Only jobs with this outcome. */
                outcome?: components["schemas"]["JobOutcome"];
                /** @description Only jobs of this type. */
                type?: components["schemas"]["JobType"];
                /** @description Page size. */
                limit?: components["parameters"]["Limit"];
                /** @description Opaque position from `next_cursor`. */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Page of jobs in creation order, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    submitJob: {
        parameters: {
            query?: never;
            header?: {
                /** @description Optional on create actions. Same key and same body give the first result. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["JobSubmitRequest"];
            };
        };
        responses: {
            /** @description Accepted, or the job already created with this idempotency key. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobAccepted"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    getJob: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Job id. */
                job_id: components["parameters"]["JobId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The job. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    cancelJob: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Job id. */
                job_id: components["parameters"]["JobId"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["Empty"];
        responses: {
            /** @description Canceled, or the unchanged final state. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobCancelResult"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    retryJob: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Job id. */
                job_id: components["parameters"]["JobId"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["Empty"];
        responses: {
            /** @description Queued again, or the unchanged state. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobRetryResult"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    getJobReport: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Job id. */
                job_id: components["parameters"]["JobId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The report. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobReport"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    listJobEvents: {
        parameters: {
            query?: {
                /** @description Page size. */
                limit?: components["parameters"]["Limit"];
                /** @description Opaque position from `next_cursor`. */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path: {
                /** @description Job id. */
                job_id: components["parameters"]["JobId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Events in order. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EventList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    registerWebhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description Optional on create actions. Same key and same body give the first result. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookRegisterRequest"];
            };
        };
        responses: {
            /** @description Registered. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookRegistered"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            409: components["responses"]["Conflict"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    unregisterWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Webhook id. */
                webhook_id: components["parameters"]["WebhookId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookDeleted"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    jobEventDelivery: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EventDelivery"];
            };
        };
        responses: {
            /** @description Delivered. Any other status, a timeout or a connection error is retried. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Counted as failure and retried. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
}
