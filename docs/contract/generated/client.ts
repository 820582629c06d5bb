// Made by `make contract` from docs/contract; do not edit.

import type { operations as OpsOperations } from "./ops.js";
import type { operations as ControlOperations } from "./control.js";
import type { operations as JobsOperations } from "./jobs.js";
import type { operations as WorkOperations } from "./work.js";
import { ApiError } from "./errors.js";

interface Operation {
    parameters: { query?: object; header?: object; path?: object };
    responses: object;
}

/** What the body of an answer becomes: JSON is read, an event stream is the Response itself, other text is text. */
type Body<A> = A extends { content: infer C }
    ? C extends { "application/json": infer J }
        ? J
        : C extends { "text/event-stream": unknown }
          ? Response
          : string
    : undefined;
type Success<R> = { [S in keyof R]: S extends 200 | 201 | 202 | 204 ? Body<R[S]> : never }[keyof R];

type Sent<O> = O extends { requestBody: { content: { "application/json": infer J } } }
    ? { body: J }
    : O extends { requestBody?: infer B }
      ? { body?: NonNullable<B> extends { content: { "application/json": infer J } } ? J : never }
      : object;
type Given<O extends Operation> = Pick<O["parameters"], Extract<keyof O["parameters"], "path" | "query" | "header">> & Sent<O>;

export interface CallOptions {
    signal?: AbortSignal;
    headers?: Record<string, string>;
}
type Call<O extends Operation> = object extends Given<O>
    ? (input?: Given<O>, options?: CallOptions) => Promise<Success<O["responses"]>>
    : (input: Given<O>, options?: CallOptions) => Promise<Success<O["responses"]>>;

/** One method per operation of a document, named by its operationId. Refusals throw ApiError. */
export type Client<T> = { [K in keyof T]: T[K] extends Operation ? Call<T[K]> : never };

export interface ClientOptions {
    /** Where the server is, without a path: "http://127.0.0.1:8080". */
    baseUrl: string;
    /** An API key or a token; a function is asked before each request. */
    token?: string | (() => string | Promise<string>);
    fetch?: typeof globalThis.fetch;
}

interface Input {
    path?: Record<string, unknown>;
    query?: Record<string, unknown>;
    header?: Record<string, unknown>;
    body?: unknown;
}

function target(base: string, template: string, input: Input): string {
    const path = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(input.path?.[name])));
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(input.query ?? {}))
        if (value !== undefined && value !== null) query.set(name, String(value));
    return base.replace(/\/$/, "") + path + (query.size > 0 ? `?${query}` : "");
}

async function bodyOf(answer: Response): Promise<unknown> {
    const type = answer.headers.get("content-type") ?? "";
    if (type.startsWith("text/event-stream")) return answer;
    if (/^application\/([\w.+-]+\+)?json\b/.test(type)) return answer.json();
    return type ? answer.text() : undefined;
}

function client(operations: Record<string, { method: string; path: string }>, options: ClientOptions): object {
    const send = options.fetch ?? globalThis.fetch;
    const call = (o: { method: string; path: string }) => async (input: Input = {}, extra: CallOptions = {}) => {
        const headers = new Headers(extra.headers);
        for (const [name, value] of Object.entries(input.header ?? {}))
            if (value !== undefined && value !== null) headers.set(name, String(value));
        const token = typeof options.token === "function" ? await options.token() : options.token;
        if (token) headers.set("authorization", `Bearer ${token}`);
        const init: RequestInit = { method: o.method, headers };
        if (input.body !== undefined) {
            headers.set("content-type", "application/json");
            init.body = JSON.stringify(input.body);
        }
        if (extra.signal) init.signal = extra.signal;
        const answer = await send(target(options.baseUrl, o.path, input), init);
        const body = await bodyOf(answer);
        if (answer.ok) return body;
        const wait = Number(answer.headers.get("retry-after") ?? NaN);
        throw new ApiError(answer.status, body, Number.isNaN(wait) ? undefined : wait);
    };
    return Object.fromEntries(Object.entries(operations).map(([id, o]) => [id, call(o)]));
}


export const opsOperations = {
    getEntrance: { method: "GET", path: "/" },
    getHealth: { method: "GET", path: "/healthz" },
    getLiveness: { method: "GET", path: "/livez" },
    getReadiness: { method: "GET", path: "/readyz" },
    getStartup: { method: "GET", path: "/startupz" },
    getMetrics: { method: "GET", path: "/metrics" },
    getStats: { method: "GET", path: "/stats" },
    getTree: { method: "GET", path: "/stats/tree" },
    getActor: { method: "GET", path: "/stats/actors/{pid}" },
    listEvents: { method: "GET", path: "/stats/events" },
    listAudits: { method: "GET", path: "/stats/audits" },
    listChaosReports: { method: "GET", path: "/stats/chaos" },
    getChaosReport: { method: "GET", path: "/stats/chaos/{report}" },
    addChaosReport: { method: "POST", path: "/chaos/reports" },
    floodActor: { method: "POST", path: "/chaos/actors/{target}:flood" },
    killActor: { method: "POST", path: "/chaos/actors/{target}:kill" },
    suspendActor: { method: "POST", path: "/chaos/actors/{target}:suspend" },
    resumeActor: { method: "POST", path: "/chaos/actors/{target}:resume" },
    crashActor: { method: "POST", path: "/chaos/actors/{target}:crash" },
    advanceClock: { method: "POST", path: "/clock:advance" },
    getSettings: { method: "GET", path: "/config" },
    reloadSettings: { method: "POST", path: "/config:reload" },
    getLog: { method: "GET", path: "/log" },
    setLogLevel: { method: "POST", path: "/log:level" },
    getClient: { method: "GET", path: "/clients/{client_id}" },
    issueApiKey: { method: "POST", path: "/clients/{client_id}/keys:issue" },
    revokeApiKey: { method: "POST", path: "/clients/{client_id}/keys:revoke" },
    listSigningKeys: { method: "GET", path: "/keys" },
    listSigningKeyHistory: { method: "GET", path: "/keys/history" },
    bootstrapSigningKey: { method: "POST", path: "/keys:bootstrap" },
    rotateSigningKey: { method: "POST", path: "/keys:rotate" },
    revokeSigningKey: { method: "POST", path: "/keys/{kid}:revoke" },
    issueToken: { method: "POST", path: "/tokens:issue" },
    revokeTokens: { method: "POST", path: "/tokens:revoke" },
    revokeToken: { method: "POST", path: "/tokens/{jti}:revoke" },
    listPrincipals: { method: "GET", path: "/principals" },
    createPrincipal: { method: "POST", path: "/principals" },
    rotatePrincipal: { method: "POST", path: "/principals/{name}:rotate" },
    revokePrincipal: { method: "POST", path: "/principals/{name}:revoke" },
    pauseJobs: { method: "POST", path: "/jobs:pause" },
    resumeJobs: { method: "POST", path: "/jobs:resume" },
    listJobs: { method: "GET", path: "/jobs" },
    getJobRecord: { method: "GET", path: "/jobs/{job_id}/record" },
    getJobReports: { method: "GET", path: "/jobs/{job_id}/report" },
    listJobEvents: { method: "GET", path: "/jobs/{job_id}/events" },
    explainJob: { method: "GET", path: "/jobs/{job_id}:explain" },
    listPauses: { method: "GET", path: "/jobs/pauses" },
    listDeadRows: { method: "GET", path: "/outbox/dead" },
    reviveDeadRow: { method: "POST", path: "/outbox/dead/{id}:revive" },
    runJob: { method: "POST", path: "/jobs/{job_id}:run" },
    bulkJobs: { method: "POST", path: "/jobs:bulk" },
    getOperation: { method: "GET", path: "/operations/{operation_id}" },
    abortOperation: { method: "POST", path: "/operations/{operation_id}:abort" },
    issueAccessToken: { method: "POST", path: "/v1/auth/token" },
    getKeySet: { method: "GET", path: "/.well-known/jwks.json" },
} as const;
export type OpsClient = Client<Pick<OpsOperations, keyof typeof opsOperations>>;
export function opsClient(options: ClientOptions): OpsClient {
    return client(opsOperations, options) as OpsClient;
}

export const controlOperations = {
    submitJob: { method: "POST", path: "/jobs:submit" },
    getJob: { method: "GET", path: "/jobs/{job_id}" },
    cancelJob: { method: "POST", path: "/jobs/{job_id}:cancel" },
    approveJob: { method: "POST", path: "/jobs/{job_id}:approve" },
    rejectJob: { method: "POST", path: "/jobs/{job_id}:reject" },
    decideJob: { method: "POST", path: "/jobs/{job_id}:decision" },
    listDlqItems: { method: "GET", path: "/dlq/items" },
    reprocessDlqItem: { method: "POST", path: "/dlq/items/{event_id}:reprocess" },
    bulkReprocessDlqItems: { method: "POST", path: "/dlq/items:reprocess-bulk" },
} as const;
export type ControlClient = Client<Pick<ControlOperations, keyof typeof controlOperations>>;
export function controlClient(options: ClientOptions): ControlClient {
    return client(controlOperations, options) as ControlClient;
}

export const jobsOperations = {
    createClient: { method: "POST", path: "/v1/clients" },
    createApiKey: { method: "POST", path: "/v1/clients/{client_id}/keys" },
    renewApiKey: { method: "POST", path: "/v1/clients/{client_id}/keys/renew" },
    revokeApiKey: { method: "POST", path: "/v1/clients/{client_id}/keys/revoke" },
    listJobs: { method: "GET", path: "/v1/jobs" },
    submitJob: { method: "POST", path: "/v1/jobs" },
    getJob: { method: "GET", path: "/v1/jobs/{job_id}" },
    cancelJob: { method: "POST", path: "/v1/jobs/{job_id}/cancel" },
    retryJob: { method: "POST", path: "/v1/jobs/{job_id}/retry" },
    getJobReport: { method: "GET", path: "/v1/jobs/{job_id}/report" },
    listJobEvents: { method: "GET", path: "/v1/jobs/{job_id}/events" },
    registerWebhook: { method: "POST", path: "/v1/webhooks" },
    unregisterWebhook: { method: "DELETE", path: "/v1/webhooks/{webhook_id}" },
} as const;
export type JobsClient = Client<Pick<JobsOperations, keyof typeof jobsOperations>>;
export function jobsClient(options: ClientOptions): JobsClient {
    return client(jobsOperations, options) as JobsClient;
}

export const workOperations = {
    getOwnClient: { method: "GET", path: "/v1/clients/{client_id}" },
    explainJob: { method: "GET", path: "/v1/jobs/{job_id}:explain" },
    submitWork: { method: "POST", path: "/v1/work:submit" },
    listWorkKinds: { method: "GET", path: "/v1/work-kinds" },
    claimWork: { method: "POST", path: "/v1/work:claim" },
    heartbeatWork: { method: "POST", path: "/v1/work:heartbeat" },
    completeWork: { method: "POST", path: "/v1/work:complete" },
    failWork: { method: "POST", path: "/v1/work:fail" },
    bulkJobs: { method: "POST", path: "/v1/jobs:bulk" },
    getOperation: { method: "GET", path: "/v1/operations/{operation_id}" },
    abortOperation: { method: "POST", path: "/v1/operations/{operation_id}:abort" },
    listSchedules: { method: "GET", path: "/v1/schedules" },
    createSchedule: { method: "POST", path: "/v1/schedules" },
    getSchedule: { method: "GET", path: "/v1/schedules/{schedule_id}" },
    deleteSchedule: { method: "DELETE", path: "/v1/schedules/{schedule_id}" },
    runSchedule: { method: "POST", path: "/v1/schedules/{schedule_id}:run" },
    pauseSchedule: { method: "POST", path: "/v1/schedules/{schedule_id}:pause" },
    resumeSchedule: { method: "POST", path: "/v1/schedules/{schedule_id}:resume" },
    listWebhooks: { method: "GET", path: "/v1/webhooks" },
    getWebhook: { method: "GET", path: "/v1/webhooks/{webhook_id}" },
    enableWebhook: { method: "POST", path: "/v1/webhooks/{webhook_id}:enable" },
    disableWebhook: { method: "POST", path: "/v1/webhooks/{webhook_id}:disable" },
    rotateWebhookSecret: { method: "POST", path: "/v1/webhooks/{webhook_id}:rotate" },
    listDeliveries: { method: "GET", path: "/v1/deliveries" },
    getDelivery: { method: "GET", path: "/v1/deliveries/{delivery_id}" },
    resendDelivery: { method: "POST", path: "/v1/deliveries/{delivery_id}:resend" },
} as const;
export type WorkClient = Client<Pick<WorkOperations, keyof typeof workOperations>>;
export function workClient(options: ClientOptions): WorkClient {
    return client(workOperations, options) as WorkClient;
}
