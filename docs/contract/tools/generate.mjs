// Makes everything under docs/contract/generated from the documents and tables beside it.
//
//     node generate.mjs CONTRACT-FOLDER OUT-FOLDER
//
// The same input gives the same bytes: no dates, no host, members in the order of the documents.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import openapiTS, { astToString } from "openapi-typescript";
import { parse } from "yaml";

const [from, out] = process.argv.slice(2);
if (!from || !out) {
    console.error("generate.mjs: CONTRACT-FOLDER OUT-FOLDER");
    process.exit(64);
}
const here = dirname(fileURLToPath(import.meta.url));
const made = "// Made by `make contract` from docs/contract; do not edit.\n";

const OPENAPI = ["ops", "control", "jobs", "work"];
const METHODS = ["get", "put", "post", "delete", "patch"];

const read = (name) => readFileSync(join(from, name), "utf8");
const write = (name, text) => writeFileSync(join(out, name), text);
const document = (name) => parse(read(name), { strict: true, uniqueKeys: true, version: "1.2" });
const table = (name) => {
    const [head, ...rows] = read(name).trimEnd().split("\n").map((line) => line.split("\t"));
    return rows.map((row) => Object.fromEntries(head.map((key, i) => [key, row[i]])));
};
const capital = (name) => name[0].toUpperCase() + name.slice(1);
const quoted = (text) => JSON.stringify(text);

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });

// --- JSON forms: what the server embeds, serves and compiles ---

const documents = Object.fromEntries(OPENAPI.map((name) => [name, document(`${name}.openapi.yaml`)]));
const events = document("control.asyncapi.yaml");
for (const name of OPENAPI) write(`${name}.openapi.json`, JSON.stringify(documents[name], null, 2) + "\n");
write("control.asyncapi.json", JSON.stringify(events, null, 2) + "\n");

// --- types ---

const types = async (doc) => made + "\n" + astToString(await openapiTS(doc, { silent: true }));

for (const name of OPENAPI) write(`${name}.ts`, await types(documents[name]));

const rows = table("control.events.tsv");
const detailsType = (row) => {
    const [schema, ...path] = row.details.split("/");
    const base = [`components["schemas"][${quoted(schema)}]`]
        .concat(path.filter((part) => part !== "properties").map((part) => `[${quoted(part)}]`))
        .join("");
    const requires = row.requires
        .split(",")
        .filter(Boolean)
        .map((member) => ` & Required<Pick<${base}, ${quoted(member)}>>`);
    const fixed = row.fixed
        .split(",")
        .filter(Boolean)
        .map((pair) => pair.split("="))
        .map(([member, value]) => ` & { ${member}: ${quoted(value)} }`);
    return path.length > 0 ? `NonNullable<${base}>` : base + requires.join("") + fixed.join("");
};
write(
    "events.ts",
    (await types({
        openapi: "3.1.0",
        info: events.info,
        paths: {},
        components: { schemas: events.components.schemas },
    })) +
        `
export type JobEvent = components["schemas"]["JobEventPayload"];
export type SystemEvent = components["schemas"]["SystemEventPayload"];

/** What each event has in its details. */
export interface EventDetails {
${rows.map((row) => `    ${quoted(row.event_name)}: ${detailsType(row)};`).join("\n")}
}
export type EventName = keyof EventDetails;

/** An event by its name: its envelope, and the details that belong to it. */
export type Event<N extends EventName> = Omit<N extends \`job.\${string}\` ? JobEvent : SystemEvent, "event_name" | "details"> & {
    event_name: N;
} & (N extends \`job.\${string}\` ? { details?: EventDetails[N] } : { details: EventDetails[N] });

/** On which channel an event of this name is published. */
export const eventChannels = {
${rows.map((row) => `    ${quoted(row.event_name)}: ${quoted(row.channel)},`).join("\n")}
} as const satisfies Record<EventName, string>;
`,
);

// --- errors: a row of the catalogue per code ---

const control = table("control.errors.tsv").map((row) => ({ ...row, action: "", surface: "control" }));
const jobs = table("jobs.errors.tsv").map((row) => ({
    code: row.code,
    http: row.http_status,
    retryable: String(row.actions.startsWith("Retry")),
    retry_class: "",
    meaning: row.description,
    action: row.actions,
    surface: "jobs",
}));
const own = table("ops.errors.tsv");
const enumOf = (name, list, prose) =>
    `/** ${prose} */\nexport enum ${name} {\n${list.map((row) => `    ${row.code} = ${quoted(row.code)},`).join("\n")}\n}\n`;

write(
    "errors.ts",
    `${made}
${enumOf("ErrorCode", control, "The codes of the control contract.")}
${enumOf("JobsErrorCode", jobs, "The codes of the job contract.")}
${enumOf("OwnErrorCode", own, "Codes of this server beside those: of the operator's surface, and what neither contract has a code for on its own paths.")}
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
${[...control, ...jobs, ...own]
    .map(
        (row) =>
            `    ${row.code}: { status: ${row.http}, retryable: ${row.retryable}, retryClass: ${quoted(row.retry_class)}, ` +
            `title: ${quoted(row.meaning)}, action: ${quoted(row.action)}, surface: ${quoted(row.surface)} },`,
    )
    .join("\n")}
};
${read("tools/errors.ts.in")}`,
);

// --- a client per document ---

const base = (doc) => {
    const url = doc.servers?.[0]?.url ?? "";
    return url.startsWith("/") && url !== "/" ? url : "";
};
const operations = (doc) =>
    Object.entries(doc.paths).flatMap(([path, item]) =>
        METHODS.filter((method) => item[method]).map((method) => ({
            id: item[method].operationId,
            method: method.toUpperCase(),
            path: base(doc) + path,
        })),
    );
write(
    "client.ts",
    `${made}
${OPENAPI.map((name) => `import type { operations as ${capital(name)}Operations } from "./${name}.js";`).join("\n")}
${read("tools/client.ts.in")}
${OPENAPI.map(
    (name) => `
export const ${name}Operations = {
${operations(documents[name])
    .map((o) => `    ${o.id}: { method: ${quoted(o.method)}, path: ${quoted(o.path)} },`)
    .join("\n")}
} as const;
export type ${capital(name)}Client = Client<Pick<${capital(name)}Operations, keyof typeof ${name}Operations>>;
export function ${name}Client(options: ClientOptions): ${capital(name)}Client {
    return client(${name}Operations, options) as ${capital(name)}Client;
}
`,
).join("")}`,
);
