// The generated types and clients in use. `make contract` compiles this with the rest, strictly.

import { controlClient, jobsClient, opsClient, workClient } from "./generated/client.js";
import { ApiError, ErrorCode, JobsErrorCode } from "./generated/errors.js";
import type { Event } from "./generated/events.js";

export async function submitAndWatch(baseUrl: string, key: string): Promise<string> {
    const jobs = jobsClient({ baseUrl, token: key });
    const job = await jobs.submitJob({ body: { type: "EXECUTE", work_kind: "SUCCESS_FAST" } });
    const { items } = await jobs.listJobs({ query: { state: "RUNNING", limit: 10 } });
    try {
        const report = await jobs.getJobReport({ path: { job_id: job.job_id } });
        return `${report.outcome} in ${report.duration_ms} ms, ${items.length} others run`;
    } catch (e) {
        if (e instanceof ApiError && e.is(JobsErrorCode.RFA_JOB_REPORT_NOT_FOUND)) return job.state;
        throw e;
    }
}

export async function slowKinds(baseUrl: string, key: string): Promise<string[]> {
    const { items } = await workClient({ baseUrl, token: key }).listWorkKinds();
    return items.filter((kind) => kind.group === "slow").map((kind) => kind.work_kind);
}

export async function decide(baseUrl: string, token: () => Promise<string>, job_id: string): Promise<void> {
    const control = controlClient({ baseUrl, token });
    const meta = { schema_version: "v1" as const, request_id: "r", trace_id: "t", actor_id: "a", project_id: "p" };
    try {
        await control.decideJob({
            path: { job_id },
            body: { meta, idempotency_key: "k", decision: "approve", reason: "it is fine" },
        });
    } catch (e) {
        if (!(e instanceof ApiError) || !e.is(ErrorCode.APPROVAL_403_NOT_APPROVER)) throw e;
    }
}

export async function ready(baseUrl: string): Promise<boolean> {
    try {
        return (await opsClient({ baseUrl }).getReadiness()).status === "ready";
    } catch (e) {
        if (e instanceof ApiError && e.status === 503) return false;
        throw e;
    }
}

export function wentWrong(event: Event<"agent.provision.failed">): string {
    return `${event.details.failure_reason}; ${event.details.rollback_steps.join(", ")}`;
}

// What the compiler must refuse: each of these lines would be an error of its own without the one above it.
export async function refused(baseUrl: string): Promise<void> {
    const jobs = jobsClient({ baseUrl });
    // @ts-expect-error there is no such type of job
    await jobs.submitJob({ body: { type: "INSTANT" } });
    // @ts-expect-error a job is named in the path
    await jobs.getJob();
    // @ts-expect-error the details of this event have another class
    const details: Event<"hitl.reminder.sent">["details"] = { event_class: "improvement" };
    void details;
}
