// A worker in Node with the generated client: takes jobs of kind x.echo and gives back what they were given.
//
//     npx -p typescript tsc --outDir out --module nodenext --target es2022 ../contract/generated/client.ts
//     COPPICE_CLIENT_URL=http://127.0.0.1:8080 COPPICE_KEY=cop_... COPPICE_CLIENT=./out/client.js node worker.mjs [how many jobs]
const end = (status, why) => (console.error(why), process.exit(status));
const client = process.env.COPPICE_CLIENT ?? "./client.js";
const { workClient } = await import(client).catch((error) =>
    end(64, error.code === "ERR_MODULE_NOT_FOUND" ? `${client} isn't there: the line with tsc at the top makes it` : String(error)));
if (!process.env.COPPICE_KEY) end(64, "COPPICE_KEY must be an API key, such as cop_...");

const work = workClient({ baseUrl: process.env.COPPICE_CLIENT_URL ?? "http://127.0.0.1:8080", token: process.env.COPPICE_KEY });
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
let left = Number(process.argv[2] ?? 0);

async function run(job) {
    const lease = { job_id: job.job_id, lease_token: job.lease_token };
    const beat = setInterval(async () => {
        try {
            const { cancel_requested } = await work.heartbeatWork({ body: { ...lease, stage: "echoing" } });
            if (cancel_requested) clearInterval(beat);
        } catch (error) { // 409: the lease is somebody else's by now; anything else may be over by the next one
            if (error.status === 409) clearInterval(beat);
        }
    }, 10_000);
    try {
        return await work.completeWork({ body: { ...lease, result: { echo: job.payload } } });
    } catch (error) {
        return await work.failWork({ body: { ...lease, message: String(error), retryable: true, retry_after_ms: 1000 } });
    } finally {
        clearInterval(beat);
    }
}

for (;;) {
    try {
        const { jobs } = await work.claimWork({ body: { kinds: ["x.echo"], max: 8, wait_ms: 20_000, worker: "node" } });
        for (const done of await Promise.all(jobs.map(run))) console.log(JSON.stringify(done));
        if (left > 0 && (left -= jobs.length) <= 0) break;
    } catch (error) {
        if (error.status === 401 || error.status === 403) end(1, String(error)); // no time makes the key a valid one
        console.error(String(error));
        await pause(1000);
    }
}
