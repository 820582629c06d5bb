// Made by `make contract` from docs/contract; do not edit.

export interface paths {
    "/jobs:submit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
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
            path?: never;
            cookie?: never;
        };
        get: operations["getJob"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs/{job_id}:cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["cancelJob"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs/{job_id}:approve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["approveJob"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs/{job_id}:reject": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["rejectJob"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs/{job_id}:decision": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["decideJob"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/dlq/items": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List DLQ items with optional filters (requires owner or infra-approver role) */
        get: operations["listDlqItems"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/dlq/items/{event_id}:reprocess": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Reprocess a single DLQ item (requires owner or infra-approver role) */
        post: operations["reprocessDlqItem"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/dlq/items:reprocess-bulk": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Bulk reprocess DLQ items (requires owner or infra-approver role; rate-limited and audited) */
        post: operations["bulkReprocessDlqItems"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        RequestMeta: {
            /** @enum {string} */
            schema_version: "v1";
            request_id: string;
            trace_id: string;
            actor_id: string;
            project_id: string;
        };
        JobSubmitRequest: {
            meta: components["schemas"]["RequestMeta"];
            idempotency_key: string;
            intent: string;
            /** @enum {string} */
            risk_tier: "A" | "B" | "C";
            /** Format: uuid */
            parent_job_id?: string | null;
            constraints?: {
                /** @enum {string} */
                data_classification?: "public" | "internal" | "sensitive";
                cost_limit_usd?: number;
                prefer_local?: boolean;
            };
            payload: {
                [key: string]: unknown;
            };
        };
        JobAcceptedResponse: {
            /** Format: uuid */
            job_id: string;
            /** @enum {string} */
            status: "queued";
        };
        JobStatusResponse: {
            /** Format: uuid */
            job_id: string;
            /** @enum {string} */
            status: "queued" | "blocked" | "waiting_human_decision" | "changes_requested" | "deferred" | "running" | "retrying" | "done" | "failed" | "timed_out" | "rejected" | "budget_exceeded" | "cancelled";
            last_error?: string | null;
        };
        DecisionRequest: {
            meta: components["schemas"]["RequestMeta"];
            idempotency_key: string;
            /** @enum {string} */
            decision: "approve" | "reject" | "request_changes" | "defer";
            reason: string;
        };
        CancelRequest: {
            meta: components["schemas"]["RequestMeta"];
            idempotency_key: string;
            reason: string;
        };
        DlqItem: {
            /** Format: uuid */
            event_id: string;
            event_name: string;
            project_id: string;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            original_occurred_at: string;
            retry_count: number;
            last_error_code: string;
        };
        DlqListResponse: {
            items: components["schemas"]["DlqItem"][];
            total_count: number;
            next_cursor?: string | null;
        };
        DlqReprocessRequest: {
            meta: components["schemas"]["RequestMeta"];
            idempotency_key: string;
        };
        DlqBulkReprocessRequest: {
            meta: components["schemas"]["RequestMeta"];
            idempotency_key: string;
            event_ids: string[];
        };
        DlqBulkReprocessResponse: {
            accepted_count: number;
            rejected_count: number;
            /** Format: uuid */
            batch_id: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    submitJob: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["JobSubmitRequest"];
            };
        };
        responses: {
            /** @description Accepted */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobAcceptedResponse"];
                };
            };
        };
    };
    getJob: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                job_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Job status */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobStatusResponse"];
                };
            };
        };
    };
    cancelJob: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                job_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CancelRequest"];
            };
        };
        responses: {
            /** @description Cancel requested */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    approveJob: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                job_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DecisionRequest"];
            };
        };
        responses: {
            /** @description Decision accepted */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    rejectJob: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                job_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DecisionRequest"];
            };
        };
        responses: {
            /** @description Decision accepted */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    decideJob: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                job_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DecisionRequest"];
            };
        };
        responses: {
            /** @description Decision accepted */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    listDlqItems: {
        parameters: {
            query?: {
                event_name?: string;
                project_id?: string;
                max_age_hours?: number;
                limit?: number;
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description DLQ item list */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DlqListResponse"];
                };
            };
        };
    };
    reprocessDlqItem: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                event_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DlqReprocessRequest"];
            };
        };
        responses: {
            /** @description Reprocess accepted */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    bulkReprocessDlqItems: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DlqBulkReprocessRequest"];
            };
        };
        responses: {
            /** @description Bulk reprocess accepted */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DlqBulkReprocessResponse"];
                };
            };
        };
    };
}
