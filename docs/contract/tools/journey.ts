// What a client does first, by the generated code and against a server that runs: .ci/contract compiles it and starts both.
//
//     node journey.js http://CLIENTS http://OPERATORS OPERATOR_TOKEN
//
// Says each step that is as it should be, and ends with 1 at the first that isn't.

import { controlClient, jobsClient, opsClient, workClient } from "../generated/client.js";
import { ApiError, ErrorCode, JobsErrorCode } from "../generated/errors.js";
import type { AnyErrorCode } from "../generated/errors.js";

declare const process: { argv: string[]; exitCode?: number };
declare const console: { log(text: string): void; error(text: unknown): void };

function expect(what: string, holds: boolean): void {
    if (!holds) throw new Error(`not so: ${what}`);
    console.log(`ok ${what}`);
}

/** A call that is to be refused with this status and code. */
async function refused(what: string, status: number, code: AnyErrorCode, call: () => Promise<unknown>): Promise<void> {
    try {
        await call();
    } catch (e) {
        if (!(e instanceof ApiError)) throw e;
        expect(`${what}: ${e.status} ${e.code}`, e.status === status && e.is(code) && e.requestId !== undefined);
        return;
    }
    throw new Error(`${what}: it wasn't refused`);
}

/** 1,200 looks, 50 ms apart: a minute for what takes a second. */
async function ended(state: () => Promise<string>): Promise<string> {
    for (let i = 0; i < 1200; i++) {
        const now = await state();
        if (now === "SUCCEEDED" || now === "FAILED" || now === "CANCELED") return now;
        await new Promise((go) => setTimeout(go, 50));
    }
    throw new Error("the job doesn't end");
}

async function asClient(baseUrl: string): Promise<void> {
    const nobody = jobsClient({ baseUrl });
    const { client_id } = await nobody.createClient();
    const issued = await nobody.createApiKey({ path: { client_id } });
    expect("a client and its key are made", typeof issued.api_key === "string");
    const token = issued.api_key as string;
    const jobs = jobsClient({ baseUrl, token });
    const own = await workClient({ baseUrl, token }).getOwnClient({ path: { client_id } });
    expect("the client is told of its key", own.key?.key_id === issued.key_id);

    const job = await jobs.submitJob({ body: { type: "EXECUTE", work_kind: "SUCCESS_FAST" } });
    const path = { job_id: job.job_id };
    expect("a job is taken", job.state === "QUEUED");
    expect("it succeeds", (await ended(async () => (await jobs.getJob({ path })).state)) === "SUCCEEDED");
    const report = await jobs.getJobReport({ path });
    expect("its report is there", report.job_id === job.job_id && report.outcome === "SUCCESS");
    expect("with when it began and ended", report.started_at !== null && report.started_at <= report.finished_at);

    let cursor: string | undefined;
    let events = 0;
    do {
        const page = await jobs.listJobEvents({ path, query: { limit: 2, ...(cursor ? { cursor } : {}) } });
        events += page.items.length;
        cursor = page.next_cursor ?? undefined;
    } while (cursor);
    expect("its events come page by page", events === report.events.length && events > 2);

    const kinds = await workClient({ baseUrl, token }).listWorkKinds();
    expect("its kind of work is in the catalogue", kinds.items.some((kind) => kind.work_kind === "SUCCESS_FAST"));
    await refused("a job of no type that there is", 400, JobsErrorCode.RFA_JOB_VALIDATION_FAILED, () =>
        jobs.submitJob({ body: { type: "INSTANT" } as never }));
    await refused("a client without a key", 401, JobsErrorCode.RFA_AUTH_INVALID_CREDENTIALS, () => nobody.listJobs());
    await refused("a report of a job that isn't there", 404, JobsErrorCode.RFA_JOB_NOT_FOUND, () =>
        jobs.getJobReport({ path: { job_id: "00000000-0000-4000-8000-000000000000" } }));
    await refused("the control surface without a token", 401, ErrorCode.AUTH_401_MISSING_TOKEN, () =>
        controlClient({ baseUrl }).listDlqItems());
}

async function asOperator(baseUrl: string, token: string): Promise<void> {
    const ops = opsClient({ baseUrl, token });
    expect("the server is ready", (await ops.getReadiness()).status === "ready");
    const stats = await ops.getStats();
    expect("each scheduler has figures", stats.schedulers.every((s) => s.busy_ratio >= 0 && s.busy_ratio <= 1));
    expect("pressure is told of", stats.pressure["store.writer"] === "normal");
}

const [clients, operators, operatorToken] = process.argv.slice(2);
if (!clients || !operators || !operatorToken) throw new Error("journey URL URL TOKEN");
try {
    await asClient(clients);
    await asOperator(operators, operatorToken);
} catch (e) {
    console.error(e);
    process.exitCode = 1;
}
