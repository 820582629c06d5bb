// Made by `make contract` from docs/contract; do not edit.

export interface paths {
    "/clients/{client_id}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                client_id: string;
            };
            cookie?: never;
        };
        /**
         * The client itself and its active key
         * @description The `Location` of a new client, and of a new key.
         */
        get: operations["getOwnClient"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs/{job_id}:explain": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                job_id: string;
            };
            cookie?: never;
        };
        /**
         * Say why a job isn't running, or who runs it
         * @description One sentence for people, and the same for programs: a `reason`, until when it holds where that is known, how many
         *     jobs are before it (counted up to 1000), the pause that is in its way, its lease; and the actor of the server
         *     that has it, which is null when nobody of the server has.
         */
        get: operations["explainJob"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/work:submit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Submit a job of a kind of one's own
         * @description A job that only workers of this client run (`/work:claim`). For everything else it is a job as any other: the
         *     job API shows, cancels and retries it, and tells of it; where its contract has a work kind of the catalogue,
         *     such a job has the name of its own, its report has the worker's `result` or `message` as members beside the
         *     others, and `failure.reason` may be `WORKER_FAILURE`. Its type is `DEFERRED` with an `execution_at`, else
         *     `EXECUTE`. An idempotency key, of the body or else of the header `Idempotency-Key`, is one for this path and
         *     `/jobs` together.
         *
         *     Who would rather wait says so with `Prefer: wait=N` (RFC 7240), here and at `/jobs` of the job API: the answer
         *     is 200 with the job as soon as it is final, and 202 when it isn't after N seconds, of which at most 30 are granted.
         *     `Prefer: respond-async` is 202 at once, as without it. `Preference-Applied` says what was heeded.
         */
        post: operations["submitWork"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/work-kinds": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the work kinds that a job can be submitted with
         * @description The whole catalogue, in its order. A job whose submit names no kind gets one that is drawn, with the job's
         *     `created_at` in Unix milliseconds as the first state of SplitMix64, so that anybody can draw it again:
         *
         *         state = state + 0x9e3779b97f4a7c15                     (all of it modulo 2^64)
         *         z = state
         *         z = (z xor z >> 30) * 0xbf58476d1ce4e5b9
         *         z = (z xor z >> 27) * 0x94d049bb133111eb
         *         number = z xor z >> 31
         *
         *     The first number modulo 1,000,000 is below the server's probability of failure in millionths: the pool is the
         *     kinds of the group `failure`, else those of `success` and `slow`, in the catalogue's order. Kinds with more
         *     payload than the server's limit are left out. The second number modulo how many are left is the place in the
         *     pool, from 0.
         */
        get: operations["listWorkKinds"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/work:claim": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Take jobs that wait for a worker of this client
         * @description Jobs of kinds `x.*`, of this client alone, the oldest first. When no kinds are named and jobs of more than 1,024
         *     kinds wait, each is the oldest of 1,024 of them, which are other ones each time: every kind has its turn. Each
         *     comes with a lease: until it is over nobody else gets the job, and a heartbeat makes it longer. When there is none, the answer waits for up to `wait_ms`.
         */
        post: operations["claimWork"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/work:heartbeat": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Say that a job is still being worked on
         * @description Gives another lease, from now. A job that was canceled is answered with `cancel_requested`, and its worker may stop.
         */
        post: operations["heartbeatWork"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/work:complete": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Say that a job is done
         * @description SUCCEEDED. The same again gets the same answer; anything else from who has lost the lease is 409.
         */
        post: operations["completeWork"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/work:fail": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Say that a job could not be done
         * @description FAILED; with `retryable` and `retry_after_ms` it is queued again after that time, while retries are left.
         */
        post: operations["failWork"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs:bulk": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel or retry every job that a filter matches
         * @description A task in the background, of the jobs that are there now. It goes on after a restart. A dry run changes nothing and says
         *     how many jobs it would be, and shows some of them.
         */
        post: operations["bulkJobs"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operations/{operation_id}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                operation_id: components["parameters"]["OperationId"];
            };
            cookie?: never;
        };
        /**
         * How far a bulk action is, and what came of it
         * @description Kept for a day beyond its end.
         */
        get: operations["getOperation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operations/{operation_id}:abort": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                operation_id: components["parameters"]["OperationId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * End a bulk action
         * @description What it has changed stays so. One that has ended is answered as it is.
         */
        post: operations["abortOperation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/schedules": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the client's schedules */
        get: operations["listSchedules"];
        put?: never;
        /**
         * Submit a job again and again
         * @description At each time of the expression, in UTC, a job of this client is submitted, as `POST /v1/jobs` would. A time may be left out,
         *     by the policies below or because there was no room; the schedule says so.
         *
         *     The same `Idempotency-Key` with the same body within a day makes no second one: the answer is the first one as it is by
         *     then, with `Idempotent-Replayed: true`; 404 if it has been removed.
         */
        post: operations["createSchedule"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/schedules/{schedule_id}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                schedule_id: components["parameters"]["ScheduleId"];
            };
            cookie?: never;
        };
        /** A schedule, its next times, and what became of the last ones */
        get: operations["getSchedule"];
        put?: never;
        post?: never;
        /**
         * End a schedule
         * @description Its jobs stay as they are.
         */
        delete: operations["deleteSchedule"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/schedules/{schedule_id}:run": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                schedule_id: components["parameters"]["ScheduleId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Submit a job of it now
         * @description Whatever its state and its policies say.
         */
        post: operations["runSchedule"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/schedules/{schedule_id}:pause": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                schedule_id: components["parameters"]["ScheduleId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Let a schedule rest
         * @description What comes meanwhile is left out.
         */
        post: operations["pauseSchedule"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/schedules/{schedule_id}:resume": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                schedule_id: components["parameters"]["ScheduleId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Let a schedule go on
         * @description With the next time that comes.
         */
        post: operations["resumeSchedule"];
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
        /**
         * List the webhooks of this client
         * @description All of them, the oldest first; there are at most 32.
         */
        get: operations["listWebhooks"];
        put?: never;
        post?: never;
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
                webhook_id: components["parameters"]["WebhookId"];
            };
            cookie?: never;
        };
        /**
         * Show a webhook
         * @description Where it goes, what it is told of, and whether it works.
         */
        get: operations["getWebhook"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks/{webhook_id}:enable": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhook_id: components["parameters"]["WebhookId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Have a webhook told of events again
         * @description What happened while it was disabled isn't told of. One that is active stays as it is.
         */
        post: operations["enableWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks/{webhook_id}:disable": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhook_id: components["parameters"]["WebhookId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Have a webhook told of nothing for now
         * @description Deliveries that are on their way to it fail; they can be sent again when it is enabled.
         */
        post: operations["disableWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks/{webhook_id}:rotate": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhook_id: components["parameters"]["WebhookId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Give a webhook a secret of its own, or the next one
         * @description Its deliveries are signed with it from now on, and for a day with the one before it, or the server's, as well. It is shown in this answer alone.
         */
        post: operations["rotateWebhookSecret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List what is on its way to callbacks and webhooks, and what became of it
         * @description Newest first; those of one job by receiver, in the order of its events. A page may have fewer items than its limit, or none, and a cursor.
         */
        get: operations["listDeliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/deliveries/{delivery_id}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                delivery_id: components["parameters"]["DeliveryId"];
            };
            cookie?: never;
        };
        /**
         * Show a delivery with its newest attempts
         * @description Kept for a week beyond its end, unless the server's settings say otherwise.
         */
        get: operations["getDelivery"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/deliveries/{delivery_id}:resend": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                delivery_id: components["parameters"]["DeliveryId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a delivery once more
         * @description One that failed or was delivered begins anew, with the same id and all its retries; one that waits for its next attempt is due now; one that waits for an earlier event of its job goes on waiting.
         */
        post: operations["resendDelivery"];
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
        OwnClient: {
            client: {
                /** Format: uuid */
                client_id: string;
                /** Format: date-time */
                created_at: string | null;
            };
            key: {
                /** Format: uuid */
                key_id: string;
                /** Format: date-time */
                created_at: string | null;
                /** Format: date-time */
                expires_at: string | null;
                /** Format: date-time */
                last_used_at: string | null;
                created_by: string;
            } | null;
            keys_issued: number;
            keys_kept: number;
        };
        JobExplanation: {
            /** Format: uuid */
            job_id: string;
            /** @enum {string} */
            state: "CREATED" | "QUEUED" | "ASSIGNED" | "RUNNING" | "SUCCEEDED" | "FAILED" | "CANCELED";
            /**
             * @description `final`: it has come to its end. `running`, `assigned`: a worker has it. `scheduled`: its time hasn't come.
             *     `queue_full`: it has, and there is no room in the queue. `backoff`: it was retried. `paused`: everything,
             *     its kind or its client is. `client_limit`: its client has as many running as it may. `outside`: only the
             *     client's own workers run it. `no_workers`: there are none. `active_limit`: as many jobs are active as may be.
             *     `pressure`: the store has as much to do as it takes on. `queued`: others are before it, or all workers have
             *     something to do.
             * @enum {string}
             */
            reason: "final" | "running" | "assigned" | "scheduled" | "queue_full" | "backoff" | "paused" | "client_limit" | "outside" | "no_workers" | "active_limit" | "pressure" | "queued";
            sentence: string;
            /**
             * Format: date-time
             * @description When the reason ends by itself; null when that isn't known.
             */
            until: string | null;
            /** @description Jobs before it in its queue; null when it stands in none. */
            ahead: number | null;
            /** @description There are more than `ahead`. */
            ahead_more: boolean;
            /** @description What keeps it from being claimed. */
            pause: null | {
                /** @enum {string} */
                scope: "all" | "kind" | "client";
                /** Format: date-time */
                since: string | null;
                /**
                 * Format: date-time
                 * @description null: until it is resumed.
                 */
                until: string | null;
                reason: string | null;
            };
            /** @description Who has it, and until when. */
            lease: null | {
                owner: string | null;
                /** Format: date-time */
                expires_at: string | null;
                progress: number;
                stage: string | null;
            };
            /** @description The actor of the server that has it. */
            worker: null | {
                pid: string;
                name: string;
                /** @description RUNNING, WAITING, ... */
                status: string;
                waiting_for: string | null;
                mailbox: {
                    depth: number;
                    capacity: number;
                };
                /** @description How often it was started again. */
                restarts: number | null;
            };
        };
        WorkSubmitRequest: {
            /** @description `x.` and 1 to 64 characters of `a-z`, `0-9`, `.`, `_`, `-`. */
            work_kind: string;
            /** @description Any JSON, up to 32 KiB; the worker gets it as it is. */
            payload?: unknown;
            /**
             * Format: date-time
             * @description When it is queued; as in the job API.
             */
            execution_at?: string | null;
            /**
             * Format: uri
             * @description Told of each change of its state; as in the job API.
             */
            callback?: string | null;
            idempotency_key?: string;
            /** @description Higher ones first; only where the server's settings allow it. */
            priority?: number;
        };
        WorkAccepted: {
            /** Format: uuid */
            job_id: string;
            /** @enum {string} */
            state: "CREATED" | "QUEUED" | "ASSIGNED" | "RUNNING" | "SUCCEEDED" | "FAILED" | "CANCELED";
            /** Format: date-time */
            created_at: string;
        };
        ClaimRequest: {
            /** @description Only jobs of these kinds; absent or empty, of all. */
            kinds?: string[];
            /** @default 1 */
            max: number;
            /** @default 0 */
            wait_ms: number;
            /** @description How long the lease is; 30000 unless the server's settings say otherwise. */
            lease_ms?: number;
            /** @description A name for people who look, who see its first 64 bytes. */
            worker?: string;
        };
        ClaimedList: {
            jobs: components["schemas"]["Claimed"][];
        };
        Claimed: {
            /** Format: uuid */
            job_id: string;
            /** @description What every word about this job must bear. */
            lease_token: string;
            /** Format: date-time */
            lease_expires_at: string;
            attempt: number;
            work_kind: string;
            /** Format: date-time */
            created_at: string | null;
            /** @description Of the submit (W3C). */
            traceparent: string | null;
            /** @description As it was submitted. */
            payload: unknown;
        };
        HeartbeatRequest: {
            job_id: string;
            lease_token: string;
            lease_ms?: number;
            progress?: number;
            /** @description What it is about, for people, who see its first 128 bytes. */
            stage?: string;
        };
        Heartbeat: {
            /** Format: date-time */
            lease_expires_at: string | null;
            cancel_requested: boolean;
        };
        CompleteRequest: {
            job_id: string;
            lease_token: string;
            /** @description Any JSON, up to 16 KiB; it is kept with the report. */
            result?: unknown;
        };
        FailRequest: {
            job_id: string;
            lease_token: string;
            /** @default false */
            retryable: boolean;
            retry_after_ms?: number;
            /** @description Why, for people, who see its first 512 bytes. */
            message?: string;
        };
        Finished: {
            /** Format: uuid */
            job_id: string;
            /** @enum {string} */
            state: "SUCCEEDED" | "FAILED";
            attempt: number;
            will_retry: boolean;
        };
        /** @enum {string} */
        BulkAction: "cancel" | "retry";
        /** @description All that is named must be so of a job. An empty one is refused. */
        BulkFilter: {
            states?: ("CREATED" | "QUEUED" | "ASSIGNED" | "RUNNING" | "SUCCEEDED" | "FAILED" | "CANCELED")[];
            /** @enum {string} */
            type?: "EXECUTE" | "DEFERRED" | "EMIT_EVENT";
            work_kind?: string;
            /**
             * Format: date-time
             * @description Then or later.
             */
            created_after?: string;
            /** Format: date-time */
            created_before?: string;
        };
        BulkRequest: {
            action: components["schemas"]["BulkAction"];
            filter: components["schemas"]["BulkFilter"];
            /**
             * @description Change nothing; say what would be changed.
             * @default false
             */
            dry_run: boolean;
        };
        BulkPreview: {
            action: components["schemas"]["BulkAction"];
            dry_run: boolean;
            /** @description Jobs that would be changed now. */
            count: number;
            /** @description Jobs that match and are in no state for it. */
            unchanged: number;
            /** @description False: there are more jobs than were looked at, and the counts are the least. */
            complete: boolean;
            /** @description Some of those that would be changed. */
            sample: string[];
        };
        Operation: {
            operation_id: string;
            action: components["schemas"]["BulkAction"];
            /** @enum {string} */
            state: "running" | "done" | "aborted";
            /** @description As it is applied. */
            filter: Record<string, never>;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            finished_at: string | null;
            /** @description How far it is among the jobs, not in time. */
            progress: number;
            matched: number;
            changed: number;
            /** @description Jobs that matched and were in no state for it when it came to them. */
            unchanged: number;
        };
        ScheduleRequest: {
            /**
             * @description Minute, hour, day of the month, month, day of the week, in UTC: lists, ranges and steps, names of months and days. When both
             *     days are restricted, either is enough.
             */
            cron: string;
            name?: string;
            /** @description Of the catalogue, or one of `x.`; without it, drawn for each job. */
            work_kind?: string;
            /** @description Any JSON up to 4,096 bytes, for a kind of `x.`. */
            payload?: unknown;
            /**
             * @description When the job before it has not ended.
             * @default skip
             * @enum {string}
             */
            overlap: "skip" | "allow" | "cancel_old";
            /**
             * @description When it comes more than `grace_s` late; `run_all` makes up for the last day. `overlap` holds for what is made up for, too, so that
             *     `run_all` needs `overlap` to be `allow`; with `skip` it submits the first and leaves out those that come before it has ended.
             * @default skip
             * @enum {string}
             */
            missed: "skip" | "run_once" | "run_all";
            /** @default 60 */
            grace_s: number;
        };
        ScheduleRun: {
            /** Format: date-time */
            at: string;
            /** @enum {string} */
            outcome: "submitted" | "by_hand" | "overlap" | "missed" | "full" | "refused";
            job_id: string | null;
        };
        Schedule: {
            schedule_id: string;
            name: string | null;
            cron: string;
            work_kind: string | null;
            /** @enum {string} */
            state: "active" | "paused";
            /** @enum {string} */
            overlap: "skip" | "allow" | "cancel_old";
            /** @enum {string} */
            missed: "skip" | "run_once" | "run_all";
            grace_s: number;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            last_run_at: string | null;
            last_job_id: string | null;
            submitted: number;
            skipped: number;
            next_runs: string[];
            /** @description What became of the last times, newest first. */
            history?: components["schemas"]["ScheduleRun"][];
        };
        ScheduleDeleted: {
            /** @constant */
            deleted: true;
        };
        ScheduleList: {
            items: components["schemas"]["Schedule"][];
        };
        WebhookList: {
            items: components["schemas"]["Webhook"][];
        };
        Webhook: {
            /** Format: uuid */
            webhook_id: string;
            url: string;
            /** @description Names of events, or `*` alone. */
            events: string[];
            /** @enum {string} */
            state: "active" | "disabled";
            /**
             * @description Why it is disabled: `client`: it was asked for. `gone`: its receiver has answered 410. `failing`: every
             *     attempt has failed for as long as the server's settings allow, and at least two deliveries were given up.
             * @enum {string|null}
             */
            reason: "client" | "gone" | "failing" | null;
            /** Format: date-time */
            created_at: string | null;
            /**
             * Format: date-time
             * @description When its state was changed.
             */
            changed_at: string | null;
            /**
             * Format: date-time
             * @description The first failed attempt since one that was not.
             */
            failing_since: string | null;
            /**
             * Format: date-time
             * @description When its own secret was made; null: it has none.
             */
            secret_at: string | null;
        };
        WebhookSecret: {
            /** Format: uuid */
            webhook_id: string;
            /** @description `whsec_` and base64, as Standard Webhooks has them. */
            secret: string;
            /** @description How long the one before it signs as well. */
            overlap_seconds: number;
        };
        DeliveryList: {
            items: components["schemas"]["Delivery"][];
            next_cursor: string | null;
        };
        Delivery: {
            /**
             * Format: uuid
             * @description The header `webhook-id` and the member `delivery_id` of every attempt.
             */
            delivery_id: string;
            /** Format: uuid */
            job_id: string;
            /**
             * Format: uuid
             * @description null: it goes to the callback of the job.
             */
            webhook_id: string | null;
            /** @description null: the event has gone. */
            event_name: string | null;
            /**
             * @description `failed` can be sent again; `dropped` was not sent, because its webhook or its job is gone.
             * @enum {string}
             */
            state: "pending" | "delivered" | "failed" | "dropped";
            url_host: string;
            attempts: number;
            /**
             * @description Of the newest attempt, or why there is none. `status`: an answer that isn't 2xx. `timeout`: no whole answer in
             *     time. `unreachable`: not resolved, not connected, or no HTTP. `address`: one that may not be reached.
             *     `answer`: longer than may be. `url`: one that can't be meant. `disabled`, `removed`: the webhook is, or was.
             *     `job_gone`: so is the job. `backlog`: too many of the client's were pending. `too_large`: the event is.
             *     `stopped`: the sender ended meanwhile. `damaged`: what it is made of can't be read; it can be sent again
             *     after a restore.
             * @enum {string|null}
             */
            error: "status" | "timeout" | "unreachable" | "address" | "answer" | "url" | "disabled" | "removed" | "job_gone" | "backlog" | "too_large" | "stopped" | "damaged" | null;
            /** @description Of the catalogue, where it has one: `RFA_DEPENDENCY_TIMEOUT`. */
            error_code: string | null;
            /** Format: date-time */
            created_at: string | null;
            /** Format: date-time */
            next_attempt_at: string | null;
            /** @description An earlier event of the job has not come through to this receiver. */
            waits_for_earlier: boolean;
            /** Format: date-time */
            finished_at: string | null;
            /**
             * Format: date-time
             * @description When it is forgotten.
             */
            expires_at: string | null;
        };
        DeliveryDetail: components["schemas"]["Delivery"] & {
            /** @description The newest attempts, the oldest of them first. */
            history: components["schemas"]["DeliveryAttempt"][];
        };
        DeliveryAttempt: {
            attempt: number;
            /** Format: date-time */
            at: string | null;
            took_ms: number;
            http_status: number | null;
            /** @description As in `Delivery`; null: it was delivered. */
            error: string | null;
            error_code: string | null;
        };
        WorkKindList: {
            items: components["schemas"]["WorkKindRow"][];
        };
        WorkKindRow: {
            /** @description The name that a submit gives, and that the job's definition has. */
            work_kind: string;
            /** @description Of its simulated work. That of `RUNS_OVER_TIMEOUT` follows from the server's runtime limit. */
            duration_ms: number;
            should_fail: boolean;
            /** @description Bytes. */
            payload_size: number;
            /** @description A final state, and what leads to it; `REJECTED` is a submit that is refused with 400. */
            expected_outcome: string;
            /** @description May be empty. */
            note: string;
            /**
             * @description Which kinds may be drawn, and as what; those of `named` never are.
             * @enum {string}
             */
            group: "named" | "success" | "slow" | "failure";
            /**
             * @description Which attempts fail.
             * @enum {string}
             */
            fails_on: "none" | "first" | "every";
            /** @description What `failure.retryable` says when the simulated work fails; of a timeout or a lost worker it is always true. */
            retryable: boolean;
            /** @description How far the work has come when it fails; null where nothing is said of it. */
            progress: number | null;
            /** @description How many outputs its success leaves; together they have `payload_size` bytes. */
            outputs: number;
        };
        /** @description Problem Details (RFC 9457), as the job API has them. */
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
            /** @description A code of the catalogue, with the prefix `RFA_`. */
            code: string;
            /** @description Which limit; only with 429 and 503. */
            limit?: string;
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
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description 404. `RFA_JOB_NOT_FOUND`, of operations and schedules too. */
        NotFound: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description 409. `RFA_JOB_CONFLICT`; the lease is lost. */
        Conflict: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
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
        /** @description 503. `RFA_STORAGE_DB_ERROR` or `RFA_STORAGE_UNAVAILABLE`. */
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
        /** @description Common statuses of the catalogue (400, 404, 405, 406, 413, 415, 429, 504). */
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
        WebhookId: string;
        DeliveryId: string;
        ScheduleId: string;
        OperationId: string;
    };
    requestBodies: never;
    headers: {
        /** @description Where what was made is. */
        Location: string;
        /** @description `<?...>; rel="next"`: the query of the next page (RFC 8288), with the cursor that the body has. Absent on the last one. */
        Link: string;
        /** @description What of `Prefer` was heeded, such as `wait=10`; absent when nothing was. */
        PreferenceApplied: string;
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
    getOwnClient: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                client_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Without the secret, which nobody has. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OwnClient"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    explainJob: {
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
            /** @description What is so now. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobExplanation"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    submitWork: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
                /** @description Such as `respond-async` or `wait=10`. What isn't known there is passed over. */
                Prefer?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WorkSubmitRequest"];
            };
        };
        responses: {
            /** @description The job, as the job API shows it, which has come to its end while the client preferred to wait. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    Location: components["headers"]["Location"];
                    "Preference-Applied": components["headers"]["PreferenceApplied"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkAccepted"];
                };
            };
            /** @description Accepted, or the job that was already created with this idempotency key. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Preference-Applied": components["headers"]["PreferenceApplied"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkAccepted"];
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
    listWorkKinds: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The catalogue. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkKindList"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    claimWork: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ClaimRequest"];
            };
        };
        responses: {
            /** @description The jobs, which are RUNNING now; none when none came in time. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ClaimedList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    heartbeatWork: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["HeartbeatRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Heartbeat"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    completeWork: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CompleteRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Finished"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    failWork: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["FailRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Finished"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    bulkJobs: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BulkRequest"];
            };
        };
        responses: {
            /** @description A dry run. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BulkPreview"];
                };
            };
            /** @description It has begun; `Location` is the operation. */
            202: {
                headers: {
                    Location: components["headers"]["Location"];
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    getOperation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                operation_id: components["parameters"]["OperationId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description As it is now. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    abortOperation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                operation_id: components["parameters"]["OperationId"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": Record<string, never>;
            };
        };
        responses: {
            /** @description It has ended. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    listSchedules: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Oldest first; without what became of their last times. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ScheduleList"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    createSchedule: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ScheduleRequest"];
            };
        };
        responses: {
            /** @description It has begun; `Location` is the schedule. */
            201: {
                headers: {
                    Location: components["headers"]["Location"];
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Schedule"];
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
    getSchedule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                schedule_id: components["parameters"]["ScheduleId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description As it is now. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Schedule"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    deleteSchedule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                schedule_id: components["parameters"]["ScheduleId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is gone. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ScheduleDeleted"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    runSchedule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                schedule_id: components["parameters"]["ScheduleId"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": Record<string, never>;
            };
        };
        responses: {
            /** @description The job is `last_job_id`, also when others were submitted at the same time. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Schedule"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    pauseSchedule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                schedule_id: components["parameters"]["ScheduleId"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": Record<string, never>;
            };
        };
        responses: {
            /** @description It rests. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Schedule"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    resumeSchedule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                schedule_id: components["parameters"]["ScheduleId"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": Record<string, never>;
            };
        };
        responses: {
            /** @description It goes on. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Schedule"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    listWebhooks: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All of them. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookList"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    getWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhook_id: components["parameters"]["WebhookId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description As it is now. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    enableWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhook_id: components["parameters"]["WebhookId"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": Record<string, never>;
            };
        };
        responses: {
            /** @description As it is now. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    disableWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhook_id: components["parameters"]["WebhookId"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": Record<string, never>;
            };
        };
        responses: {
            /** @description As it is now. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    rotateWebhookSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhook_id: components["parameters"]["WebhookId"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": Record<string, never>;
            };
        };
        responses: {
            /** @description The secret, once. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookSecret"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    listDeliveries: {
        parameters: {
            query?: {
                /** @description Only those that go there. */
                webhook_id?: string;
                /** @description Only those of this job. */
                job_id?: string;
                state?: "pending" | "delivered" | "failed" | "dropped";
                limit?: number;
                /** @description Opaque position from `next_cursor`. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page. */
            200: {
                headers: {
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryList"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    getDelivery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                delivery_id: components["parameters"]["DeliveryId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description As it is now. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryDetail"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
    resendDelivery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                delivery_id: components["parameters"]["DeliveryId"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": Record<string, never>;
            };
        };
        responses: {
            /** @description As it is now. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryDetail"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["CommonError"];
        };
    };
}
