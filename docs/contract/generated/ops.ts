// Made by `make contract` from docs/contract; do not edit.

export interface paths {
    "/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What this is, and where to go on
         * @description A page for whoever names `text/html` in `Accept`, and no JSON.
         */
        get: operations["getEntrance"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Does the process respond
         * @description A pure self-check; nothing else is asked.
         */
        get: operations["getHealth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/livez": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Another name of /healthz */
        get: operations["getLiveness"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Can requests be served
         * @description A check that is degraded leaves it ready; one that is down does not. Where nobody works on jobs there is one more check, `RFA_EXEC_WORKER_UNAVAILABLE`, which is down.
         */
        get: operations["getReadiness"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/startupz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Has the start ended */
        get: operations["getStartup"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Every metric, for Prometheus
         * @description OpenMetrics when `Accept` asks for it.
         */
        get: operations["getMetrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/stats": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The state of the product in figures */
        get: operations["getStats"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/stats/tree": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What was declared beside what lives */
        get: operations["getTree"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/stats/actors/{pid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One actor */
        get: operations["getActor"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/stats/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Telemetry, as it happens or as it was
         * @description A stream when `Accept` is `text/event-stream`, from `Last-Event-ID` on when that is given.
         */
        get: operations["listEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/stats/audits": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who did what to the server */
        get: operations["listAudits"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/stats/chaos": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What came of scenarios that were run against the server */
        get: operations["listChaosReports"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/stats/chaos/{report}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its number, as the list shows it. */
                report: string;
            };
            cookie?: never;
        };
        /** One chaos report, whole */
        get: operations["getChaosReport"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/chaos/reports": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Keep the report of a scenario
         * @description What `coppice chaos run` does at the end of each. The oldest of 64 goes.
         */
        post: operations["addChaosReport"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/chaos/actors/{target}:flood": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description A pid as `/stats/tree` shows it, a registered name, or a path of the tree: ids from the root down with `>` between
                 *     them. A name with a `/` can't be here; its pid can.
                 */
                target: components["parameters"]["Target"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send an actor messages that it doesn't know */
        post: operations["floodActor"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/chaos/actors/{target}:kill": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description A pid as `/stats/tree` shows it, a registered name, or a path of the tree: ids from the root down with `>` between
                 *     them. A name with a `/` can't be here; its pid can.
                 */
                target: components["parameters"]["Target"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** End an actor */
        post: operations["killActor"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/chaos/actors/{target}:suspend": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description A pid as `/stats/tree` shows it, a registered name, or a path of the tree: ids from the root down with `>` between
                 *     them. A name with a `/` can't be here; its pid can.
                 */
                target: components["parameters"]["Target"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Let an actor's messages wait
         * @description A 409 for those that a stop needs, or the request to resume them: signals, front.operator and front.operators.
         */
        post: operations["suspendActor"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/chaos/actors/{target}:resume": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description A pid as `/stats/tree` shows it, a registered name, or a path of the tree: ids from the root down with `>` between
                 *     them. A name with a `/` can't be here; its pid can.
                 */
                target: components["parameters"]["Target"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Let a suspended actor go on */
        post: operations["resumeActor"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/chaos/actors/{target}:crash": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description A pid as `/stats/tree` shows it, a registered name, or a path of the tree: ids from the root down with `>` between
                 *     them. A name with a `/` can't be here; its pid can.
                 */
                target: components["parameters"]["Target"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Let an actor fail, as a fault of its own would */
        post: operations["crashActor"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/clock:advance": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Move the wall clock of a server in dev forward
         * @description For trying what takes days: keys, tokens, windows, retention, leases and schedules see it at once, time-outs of requests don't. It
         *     can't be moved back; the machine's own clock stays as it is.
         */
        post: operations["advanceClock"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/config": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Every setting, its value, and where it comes from
         * @description Secrets are shown as `***`.
         */
        get: operations["getSettings"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/config:reload": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Read the settings again
         * @description All or nothing; of what changed, some counts from the next start on. A 504 says that it takes long: it may still be done, and its audit entry says what came of it.
         */
        post: operations["reloadSettings"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/log": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What is written to the log */
        get: operations["getLog"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/log:level": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Write more or less to the log */
        post: operations["setLogLevel"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/clients/{client_id}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                client_id: components["parameters"]["ClientId"];
            };
            cookie?: never;
        };
        /** A client and its active key */
        get: operations["getClient"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/clients/{client_id}/keys:issue": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                client_id: components["parameters"]["ClientId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Give a client a new key
         * @description Its old one is disabled. For clients that lost theirs.
         */
        post: operations["issueApiKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/clients/{client_id}/keys:revoke": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                client_id: components["parameters"]["ClientId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Revoke a client's key */
        post: operations["revokeApiKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The signing keys that haven't ended */
        get: operations["listSigningKeys"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/keys/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** All signing keys of the forensic window */
        get: operations["listSigningKeyHistory"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/keys:bootstrap": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Make the first signing key */
        post: operations["bootstrapSigningKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/keys:rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Make a new signing key now
         * @description The old one is verified with until the overlap is over.
         */
        post: operations["rotateSigningKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/keys/{kid}:revoke": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Of a key of the built-in issuer, or of a configured key set. One that a path can't hold (with a slash) goes into the body of `POST /tokens:revoke`. */
                kid: string;
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Declare a signing key invalid, with all that it signed */
        post: operations["revokeSigningKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tokens:issue": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Issue a token
         * @description Also as `POST /tokens`.
         */
        post: operations["issueToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tokens:revoke": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Revoke a token, a key, a session, or all tokens of a subject */
        post: operations["revokeTokens"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tokens/{jti}:revoke": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                jti: string;
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Revoke a token of the built-in issuer */
        post: operations["revokeToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/principals": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Services and agents that may ask for tokens */
        get: operations["listPrincipals"];
        put?: never;
        /** Let a service or an agent ask for tokens */
        post: operations["createPrincipal"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/principals/{name}:rotate": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: components["parameters"]["PrincipalName"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Give a principal another secret
         * @description The old one, and all tokens of the principal, end with it.
         */
        post: operations["rotatePrincipal"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/principals/{name}:revoke": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: components["parameters"]["PrincipalName"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Take a principal's secret and its tokens away */
        post: operations["revokePrincipal"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs:pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Let jobs of a kind, of a client, or all of them wait
         * @description From now on none of them is claimed; what runs goes on, and jobs can be submitted as before. What is paused already has
         *     the new reason and the new end.
         */
        post: operations["pauseJobs"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs:resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Let paused jobs go on
         * @description Each comes back to its old place in the queue; of many, some a little later than others.
         */
        post: operations["resumeJobs"];
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
        /**
         * All jobs of all clients, newest first
         * @description In the order of their ids, or, of one client, of their creation. A page looks at 1024 jobs at most: with a filter
         *     that few pass it may have fewer than its limit, even none, and a `next`.
         */
        get: operations["listJobs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs/{job_id}/record": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                job_id: components["parameters"]["JobId"];
            };
            cookie?: never;
        };
        /** A job, its lease, and its row as it is stored */
        get: operations["getJobRecord"];
        put?: never;
        post?: never;
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
                job_id: components["parameters"]["JobId"];
            };
            cookie?: never;
        };
        /** What the attempts of a job came to */
        get: operations["getJobReports"];
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
                job_id: components["parameters"]["JobId"];
            };
            cookie?: never;
        };
        /** What happened to a job, as its client sees it */
        get: operations["listJobEvents"];
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
                job_id: components["parameters"]["JobId"];
            };
            cookie?: never;
        };
        /**
         * Why a job isn't running, or who runs it
         * @description As the client sees it (`work.openapi.yaml`), and who has paused it.
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
    "/jobs/pauses": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What is paused */
        get: operations["listPauses"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/outbox/dead": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What the outbox has given up
         * @description Events that could not be handed on, because what they tell of is damaged. They wait here until an operator revives them,
         *     or their job goes. A row that can't be read itself is listed, too, with nothing but where it is.
         */
        get: operations["listDeadRows"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/outbox/dead/{id}:revive": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description As the list of dead rows has it. */
                id: components["parameters"]["DeadRowId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Have a dead row handed on after all
         * @description It goes back to where it stood in the outbox, with no attempts, and is tried anew at once. Whoever has its event already gets
         *     no second one. If what it tells of is damaged still, it is given up again.
         */
        post: operations["reviveDeadRow"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs/{job_id}:run": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                job_id: components["parameters"]["JobId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run this job next, whatever is paused
         * @description It goes before all others of its queue, past every pause and its client's limit, without waiting for its backoff.
         */
        post: operations["runJob"];
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
    "/v1/auth/token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * A token for a service's or an agent's secret
         * @description On the clients' listener. As OAuth 2.0 has it (RFC 6749, 4.4), in JSON; the secret is the credential. Its errors
         *     have the shape and the codes of the control contract.
         */
        post: operations["issueAccessToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/.well-known/jwks.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The public keys of the built-in issuer */
        get: operations["getKeySet"];
        put?: never;
        post?: never;
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
        Entrance: {
            name: string;
            version: string;
            summary: string;
            /** @enum {string} */
            listener: "client" | "operator";
            /** @description What one does here first. */
            first: string;
            links: {
                /**
                 * @description As RFC 8631 has them.
                 * @enum {string}
                 */
                rel: "service-desc" | "status" | "related";
                /** @description Relative to this path. */
                href: string;
                title: string;
            }[];
        };
        Health: {
            /** @enum {string} */
            status: "ok" | "error";
            /** Format: date-time */
            timestamp: string;
        };
        Readiness: {
            /** @enum {string} */
            status: "ready" | "not_ready";
            checks: {
                [key: string]: "ok" | "degraded" | "down";
            };
            /** Format: date-time */
            timestamp: string;
        };
        Startup: {
            /** @enum {string} */
            status: "started" | "starting";
            /** Format: date-time */
            timestamp: string;
        };
        Stats: {
            version: string;
            environment: string;
            /** Format: date-time */
            now: string;
            process: components["schemas"]["ProcessFigures"];
            /** @description In the order of their numbers. An actor stays on the one where it was started. */
            schedulers: components["schemas"]["Scheduler"][];
            runtime: {
                [key: string]: number;
            };
            memory: {
                [key: string]: number;
            };
            queues: {
                mailboxes: components["schemas"]["Mailboxes"][];
                complete: boolean;
            };
            /** @description The level of each component. Mailboxes are counted by class of actor, and a class that lives is there also at normal. */
            pressure: {
                [key: string]: "normal" | "warn" | "degraded" | "shed";
            };
            slos: components["schemas"]["Objective"][];
            store: Record<string, never> | null;
            fronts: {
                [key: string]: components["schemas"]["FrontFigures"];
            };
            domains: Record<string, never>;
        };
        Scheduler: {
            scheduler: number;
            /** @description It is for one actor that may stand before a disk. */
            dedicated: boolean;
            /** @description Of its time, how much it didn't sleep. Of the last second or two, or since it last woke or fell asleep. */
            busy_ratio: number;
            /** @description The same since it was made. */
            busy_seconds: number;
            /** @description Actors that could run and wait for their turn. */
            run_queue: number;
            actors: number;
            /** @description Actors in the middle of a handler that waits, or was switched out. Each has a stack. */
            parked: number;
            messages_handled: number;
            /** @description Those that went to another one. */
            messages_remote: number;
            preemptions: number;
            overruns: number;
            turns: number;
            timers: number;
        };
        ProcessFigures: {
            /** Format: date-time */
            started: string;
            pid: number;
            cpu_seconds: number;
            resident_bytes: number;
            open_fds: number;
            max_fds: number | null;
            threads: number;
        };
        Mailboxes: {
            class: string;
            actors: number;
            messages: number;
            arena_bytes: number;
            fullest: {
                pid: components["schemas"]["Pid"];
                depth: number;
                capacity: number;
            } | null;
        };
        /** @description In the unit of its name, over the last five minutes. */
        Objective: {
            name: string;
            value: number;
            /** @description The baseline of the contract. */
            target: number;
            /** @description Beyond this the level is warn; where there is no such level, as critical. */
            warn: number;
            critical: number;
            /** @enum {string} */
            level: "ok" | "warn" | "critical";
            samples: number;
            insufficient: boolean;
        };
        FrontFigures: {
            connections: number;
            streams: number;
            requests: number;
            draining: boolean;
        };
        /** @description Hexadecimal, as `0x10000000004`. */
        Pid: string;
        Tree: {
            contract: string;
            declared: Record<string, never>[];
            missing: string[];
            tree: components["schemas"]["TreeNode"];
        };
        TreeNode: {
            name: string;
            pid: string | null;
            /** @enum {string} */
            type: "supervisor" | "worker";
            class: string;
            state: string;
            restarts: number;
            last_exit: string | null;
            supervisor?: Record<string, never>;
            children?: components["schemas"]["TreeNode"][];
        };
        ActorList: {
            actors: components["schemas"]["ActorLine"][];
            matched: number;
            visited: number;
            /** @description False: there are more than were visited, or a supervisor didn't answer (it is `silent`), and who stands below it is missing here. */
            complete: boolean;
        };
        ActorLine: {
            name: string;
            pid: string | null;
            /** @enum {string} */
            type: "supervisor" | "worker";
            class: string;
            state: string;
            mailbox_depth: number;
            restarts: number;
            restart_budget_left: number | null;
            memory_bytes: number;
            last_exit: string | null;
            supervisor: string | null;
        };
        Actor: {
            pid: components["schemas"]["Pid"];
            name: string | null;
            class: string;
            parent: string | null;
            scheduler: number;
            /** @enum {string} */
            status: "STARTING" | "IDLE" | "READY" | "RUNNING" | "WAITING" | "SUSPENDED";
            waiting_for: string | null;
            mailbox: {
                depth: number;
                capacity: number;
            };
            handled: number;
            links: number;
            monitors: number;
            watchers: number;
            resources: number;
            arena_bytes: number;
            stack_high_water_bytes: number;
            /** @description What its supervisor says of it. */
            child: Record<string, never> | null;
            /** @description What it says itself, when it is one. */
            supervisor: Record<string, never> | null;
        };
        Events: {
            events: components["schemas"]["Event"][];
            /** @description Of all names, between `since` (without it, the start of the process) and `next`, and not kept any more. */
            missed: number;
            next: string;
        };
        Event: {
            /** Format: date-time */
            at: string;
            event: string;
            sequence: string;
            measurement: {
                [key: string]: number;
            };
            dimensions: {
                [key: string]: string;
            };
        };
        Audits: {
            audits: components["schemas"]["Audit"][];
            next: string | null;
        };
        Audit: {
            /** Format: uuid */
            id: string;
            /** Format: date-time */
            at: string;
            who: string;
            verb: string;
            target: string;
            reason: string;
            outcome: string;
            request_id: string;
        };
        ChaosRequest: {
            /** @description Why; kept with the record. Required unless this is a dry run. */
            reason?: string;
            /**
             * @description Change nothing, answer what would happen.
             * @default false
             */
            dry_run: boolean;
        };
        CrashRequest: {
            /** @description Why; kept with the record. Required unless this is a dry run. */
            reason?: string;
            /**
             * @description Change nothing, answer what would happen.
             * @default false
             */
            dry_run: boolean;
            /**
             * @description What it does on its own stack: a write to nowhere, abort(), a division by zero, a loop without end, a recursion without end, or memory without end.
             * @default trap
             * @enum {string}
             */
            how: "trap" | "abort" | "divide" | "loop" | "stack" | "memory";
        };
        FloodRequest: {
            /** @description Why; kept with the record. Required unless this is a dry run. */
            reason?: string;
            /**
             * @description Change nothing, answer what would happen.
             * @default false
             */
            dry_run: boolean;
            /**
             * @description How many, one after the other, without waiting.
             * @default 1
             */
            messages: number;
        };
        ChaosSummary: {
            scenario: string;
            /**
             * @description Whether what must hold did; `unable` when it could not be tried there.
             * @enum {string}
             */
            outcome: "held" | "not_held" | "unable";
            /** @description What must hold. */
            holds: string;
            seed: number;
            full: boolean;
            /** Format: date-time */
            started_at: string;
            took_ms: number;
            died: number;
            restarted: number;
            untouched: number;
            /** @description Those of the dead whose places were still empty at the end. */
            missing: number;
            /** @description Of the load meanwhile. */
            requests: number;
            /** @description Those without an answer and those that failed. */
            failed_requests: number;
            /** @description From the end of the fault until everything was well again; null when it never was. */
            recover_ms: number | null;
        };
        /** @description What a scenario came to, and what each of its checks found. */
        ChaosReport: components["schemas"]["ChaosSummary"] & {
            checks: {
                check: string;
                good: boolean;
                what: string;
            }[];
        };
        ChaosReports: {
            reports: (components["schemas"]["ChaosSummary"] & {
                id: number;
                /** Format: date-time */
                kept_at: string;
            })[];
        };
        Containment: {
            /** @enum {string} */
            verb: "kill" | "crash" | "suspend" | "resume" | "flood";
            target: string;
            reason: string;
            dry_run: boolean;
            /** @description The target, as it was; of a suspension, as it is now. */
            actor: {
                pid: components["schemas"]["Pid"];
                name: string | null;
                class: string;
                status: string;
                mailbox_depth: number;
                links: number;
            };
            /** @enum {string} */
            outcome: "predicted" | "asked" | "ends_process" | "recovered" | "not_recovered" | "gone" | "suspended" | "resumed" | "flooded";
            /** @description Whether all of the tree was compared, and afterwards, too. */
            complete: boolean;
            predicted?: {
                ends: components["schemas"]["PredictedEnd"][];
                count: number;
                untouched: number;
                ends_process: boolean;
            };
            /** @description The restart budget of its supervisor. */
            budget?: {
                supervisor: string;
                /** @enum {string} */
                strategy: "one_for_one" | "one_for_all" | "rest_for_one" | "dynamic";
                restarts: number;
                period_ms: number;
                used_before: number;
                used_after: number | null;
            } | null;
            /** @description How many messages its mailbox took at once, and how many it refused because it was full. */
            flood?: {
                sent: number;
                refused: number;
            };
            end_reason?: string;
            successor?: string | null;
            died?: components["schemas"]["Death"][];
            died_count?: number;
            /** @description Temporary actors that came to their own end while this was done, such as connections whose clients left; not among the dead. */
            ended_meanwhile?: number;
            untouched?: number;
            /** @description Those of the dead who were to come back and have not. */
            missing?: number;
            down_us?: number;
            took_us?: number;
        };
        PredictedEnd: {
            name: string;
            class: string;
            pid: components["schemas"]["Pid"];
            /** @enum {string} */
            cause: "target" | "one_for_all" | "rest_for_one" | "below" | "escalation";
            comes_back: boolean;
        };
        Death: {
            name: string;
            class: string;
            pid: components["schemas"]["Pid"];
            successor: string | null;
            /** @description Whether the prediction had it. */
            expected: boolean;
        };
        Settings: {
            settings: {
                key: string;
                value: string | number | boolean;
                /** @enum {string} */
                source: "default" | "file" | "environment" | "flag";
                /** @description The place in a file, the variable or the flag. */
                at: string | null;
                reloadable: boolean;
            }[];
        };
        Reloaded: {
            /** @constant */
            reloaded: true;
            /** @description Keys that changed and count now. */
            applied: string;
            /** @description Keys that changed and count from the next start on. */
            needs_restart: string;
        };
        Log: {
            /** @enum {string} */
            level: "debug" | "info" | "warn" | "error";
            dropped: number;
        };
        ClockAdvance: {
            /** @description A duration, such as `24h` or `1d12h`. */
            by: string;
            /** @description For the audit entry. */
            reason?: string;
        };
        Clock: {
            /** @description How far it is ahead of the machine's. */
            ahead_seconds: number;
        };
        LogLevel: {
            /** @enum {string} */
            level: "debug" | "info" | "warn" | "error";
            /** @description For the audit entry. */
            reason?: string;
        };
        Client: {
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
        ApiKeyIssued: {
            api_key: string | null;
            /** Format: uuid */
            key_id: string;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            expires_at: string;
        };
        ApiKeyRevoke: {
            key_id: string;
            /** @description For the audit entry. */
            reason?: string;
        };
        ApiKeyRevoked: {
            /** @constant */
            revoked: true;
        };
        Reason: {
            /** @description For the audit entry. */
            reason?: string;
        };
        SigningKey: {
            /** Format: uuid */
            kid: string;
            /** @enum {string} */
            state: "active" | "retiring" | "revoked" | "removed";
            algorithm: string;
            environment: string;
            /** Format: date-time */
            created_at: string;
            created_by: string | null;
            /** Format: date-time */
            rotated_at: string | null;
            /**
             * Format: date-time
             * @description Of a retiring key.
             */
            expires_at: string | null;
            /** Format: date-time */
            ended_at: string | null;
            ended_by: string | null;
            ended_for: string | null;
            jwk: components["schemas"]["PublicKey"];
        };
        /** @description Letters, digits and . _ : @ -; the sub of its tokens. */
        PrincipalName: string;
        /** @enum {string} */
        PrincipalRole: "owner" | "infra-approver" | "approver" | "operator" | "submitter" | "viewer" | "service" | "agent";
        PrincipalProjects: string[];
        PrincipalRequest: {
            name: components["schemas"]["PrincipalName"];
            role: components["schemas"]["PrincipalRole"];
            projects: components["schemas"]["PrincipalProjects"];
            /** @description Of an agent: its tokens live as long as agent_templates says. */
            agent_template?: string;
            /**
             * @description Of an agent: the tier of risk that it works at; left out, the strictest counts.
             * @enum {string}
             */
            tier?: "A" | "B" | "C";
            reason?: string;
        };
        Principal: {
            name: components["schemas"]["PrincipalName"];
            role: components["schemas"]["PrincipalRole"];
            projects: components["schemas"]["PrincipalProjects"];
            agent_template: string | null;
            tier: string | null;
            /** Format: date-time */
            created_at: string;
            created_by: string | null;
            /**
             * Format: date-time
             * @description When its secret was made.
             */
            secret_from: string;
        };
        Principals: {
            principals: components["schemas"]["Principal"][];
            next: string | null;
        };
        PrincipalCreated: {
            name: components["schemas"]["PrincipalName"];
            role: components["schemas"]["PrincipalRole"];
            projects: components["schemas"]["PrincipalProjects"];
            agent_template: string | null;
            tier: string | null;
            /** @description The name. */
            client_id: string;
            client_secret: string;
        };
        PrincipalRotated: {
            name: components["schemas"]["PrincipalName"];
            /** @description The name. */
            client_id: string;
            client_secret: string;
        };
        PrincipalRevoked: {
            name: components["schemas"]["PrincipalName"];
            /** @constant */
            revoked: true;
        };
        /** @description A service's or an agent's secret for a token, as OAuth 2.0 has it (RFC 6749, 4.4), in JSON. */
        AccessTokenRequest: {
            /** @enum {string} */
            grant_type: "client_credentials";
            /** @description The principal's name. */
            client_id: string;
            client_secret: string;
            /** @description Projects with spaces between them, of those that the principal has; left out, all of them. */
            scope?: string;
            /** @description Left out: an hour, or the longest there is. */
            lifetime_seconds?: number;
            /** @description A token of this principal, which ends when the new one begins. */
            replaces?: string;
        };
        AccessToken: {
            access_token: string;
            /** @constant */
            token_type: "Bearer";
            /** @description Seconds. */
            expires_in: number;
            /** @description The projects that it is good for, with spaces between them. */
            scope: string;
        };
        ControlError: {
            error: {
                /** @description A code of the control contract. */
                code: string;
                message: string;
                http_status: number;
                retryable: boolean;
                request_id: string;
                trace_id: string;
                job_id?: string;
                details: Record<string, never>;
            };
        };
        SigningKeys: {
            issuer: string;
            environment: string;
            /** Format: uuid */
            active_kid: string | null;
            /** Format: date-time */
            next_rotation_at: string | null;
            cadence_seconds: number;
            overlap_seconds: number;
            /** @description For how long others may keep our key set, and within which theirs is asked for again. */
            revocation_sla_seconds: number;
            /** @description Since another issuer's keys last came; 0 when there is none. */
            key_set_age_seconds: number;
            /** @description Keys; those of configured key sets included. */
            verified_with: number;
            /** @description Things on the blocklist. */
            revocations: number;
            keys: components["schemas"]["SigningKey"][];
        };
        SigningKeyPage: {
            keys: components["schemas"]["SigningKey"][];
            next: string | null;
        };
        SigningKeyRevoked: {
            kid: string;
            /** @constant */
            state: "revoked";
            /** Format: uuid */
            active_kid: string | null;
        };
        TokenRequest: {
            subject: string;
            /** @enum {string} */
            role: "owner" | "infra-approver" | "approver" | "operator" | "submitter" | "viewer" | "service" | "agent";
            /** @description Their ids, or `*`. */
            projects: string[];
            /** @description 0 or none is an hour. */
            lifetime_seconds?: number;
            session_id?: string;
            audience?: string;
            /** @description The jti of a token that ends with this one's beginning. */
            replaces?: string;
            reason?: string;
        };
        TokenIssued: {
            token: string;
            /** @constant */
            token_type: "Bearer";
            /** Format: uuid */
            kid: string;
            /** Format: uuid */
            jti: string;
            session_id: string;
            /** Format: date-time */
            expires_at: string;
        };
        /** @description One of token, jti, kid, session_id and subject. */
        TokenRevoke: {
            token?: string;
            jti?: string;
            /** @description Of a key, as in `POST /keys/{kid}:revoke`, with all that it signed. */
            kid?: string;
            /** @description Of the jti, the built-in one when there is none; of the kid, any one when there is none. With neither it is refused. */
            issuer?: string;
            session_id?: string;
            /** @description All tokens that were issued up to now. */
            subject?: string;
            reason?: string;
        };
        TokenRevoked: {
            /** @enum {string} */
            revoked: "token" | "key" | "session" | "subject";
            /** @description Of a token, whether one of that id has come here. One that was issued and not used yet has not. */
            seen?: boolean;
            value: string;
        };
        /** @enum {string} */
        BulkAction: "cancel" | "retry";
        /** @description All that is named must be so of a job. An empty one is refused. */
        BulkFilter: {
            /** @description The id of a client; without it, everybody's. */
            client?: string;
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
            reason?: string;
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
        /** @enum {string} */
        JobState: "CREATED" | "QUEUED" | "ASSIGNED" | "RUNNING" | "SUCCEEDED" | "FAILED" | "CANCELED";
        /** @enum {string} */
        JobOutcome: "SUCCESS" | "FAILED" | "CANCELED";
        /** @enum {string} */
        JobType: "EXECUTE" | "DEFERRED" | "EMIT_EVENT";
        Jobs: {
            jobs: components["schemas"]["Job"][];
            next: string | null;
        };
        /** @description As the job API shows it, and whose it is. */
        Job: {
            /** Format: uuid */
            client_id: string;
            /** Format: uuid */
            job_id: string;
            type: components["schemas"]["JobType"];
            state: components["schemas"]["JobState"];
            outcome: components["schemas"]["JobOutcome"] | null;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            execution_at: string | null;
            /** Format: date-time */
            updated_at: string;
            attempt: number;
            callback: string | null;
            /** @description Missing when it is not there. */
            definition?: Record<string, never>;
            /** @description Only of one that is FAILED. */
            failure?: Record<string, never>;
        };
        JobInspected: {
            job: components["schemas"]["Job"];
            /** @description Who has it; the time is the wall clock's. */
            lease: null | {
                owner: string | null;
                /** Format: date-time */
                expires_at: string | null;
                fence: number;
                progress: number;
                stage: string | null;
            };
            /** @description Of the submit. */
            request_id: string | null;
            /** @description Of the submit. */
            traceparent: string | null;
            /** @description As it is stored; docs/store.md says what is what. */
            record: Record<string, never>;
        };
        JobReports: {
            /** Format: uuid */
            job_id: string;
            state: components["schemas"]["JobState"];
            /** @description Null until the job is final. */
            current: null | components["schemas"]["JobAttempt"];
            earlier: components["schemas"]["JobAttempt"][];
        };
        JobAttempt: {
            attempt: number;
            outcome: components["schemas"]["JobOutcome"];
            /** Format: date-time */
            started_at: string | null;
            /** Format: date-time */
            finished_at: string;
            duration_ms: number;
            /** @description How many there were. */
            events: number;
            failure: null | {
                reason: string;
                reason_code: string | null;
                retryable: boolean;
            };
            /** @description Of a worker outside. */
            message?: string;
            /** @description Of a worker outside. */
            result?: unknown;
        };
        JobEvents: {
            items: Record<string, never>[];
            next_cursor: string | null;
        };
        JobExplanation: {
            /** Format: uuid */
            job_id: string;
            state: components["schemas"]["JobState"];
            reason: string;
            sentence: string;
            /** Format: date-time */
            until: string | null;
            ahead: number | null;
            ahead_more: boolean;
            pause: Record<string, never> | null;
            lease: Record<string, never> | null;
            worker: Record<string, never> | null;
        };
        /** @enum {string} */
        PauseScope: "all" | "kind" | "client";
        PauseRequest: {
            scope: components["schemas"]["PauseScope"];
            /** @description With the scope kind; of the catalogue or a user's own. */
            kind?: string;
            /** @description With the scope client, its id. */
            client?: string;
            /**
             * Format: date-time
             * @description When it ends by itself.
             */
            until?: string;
            reason?: string;
        };
        ResumeRequest: {
            scope: components["schemas"]["PauseScope"];
            kind?: string;
            client?: string;
            reason?: string;
        };
        PauseBegun: {
            scope: components["schemas"]["PauseScope"];
            kind: string | null;
            client: string | null;
            /** @constant */
            state: "paused";
            /** Format: date-time */
            since: string;
            /** Format: date-time */
            until: string | null;
        };
        PauseEnded: {
            scope: components["schemas"]["PauseScope"];
            kind: string | null;
            client: string | null;
            /** @enum {string} */
            state: "running" | "resuming";
            /** @description Jobs that are yet to come back. */
            set_aside: number;
        };
        Pause: {
            scope: components["schemas"]["PauseScope"];
            kind: string | null;
            client: string | null;
            /** @enum {string} */
            state: "paused" | "resuming";
            /** Format: date-time */
            since: string;
            /** Format: date-time */
            until: string | null;
            /** @description Jobs that were met and wait beside the queue. */
            set_aside: number;
            by: string | null;
            reason: string | null;
        };
        Pauses: {
            pauses: components["schemas"]["Pause"][];
            next: string | null;
        };
        DeadRow: {
            /** @description Partition and number, such as 3-17; null: its key is none. */
            id: string | null;
            /**
             * @description What it is about.
             * @enum {string|null}
             */
            topic: "audit" | "job" | "job_emitted" | null;
            /** @description What its event happened to. */
            stream: string | null;
            /** @description The same where that is a job. */
            job_id: string | null;
            /** @description The number of its event in the stream. */
            event: number | null;
            /**
             * Format: date-time
             * @description When it was put into the outbox.
             */
            at: string | null;
            /** Format: date-time */
            buried_at: string | null;
            /** @description Why it could not be handed on. */
            reason: string | null;
            attempts: number | null;
            /** @description Why the row itself can't be read; then nothing else is known of it. */
            unreadable: string | null;
        };
        DeadRows: {
            dead: components["schemas"]["DeadRow"][];
            next: string | null;
        };
        DeadRowRevived: {
            id: string;
            /** @constant */
            revived: true;
        };
        JobNext: {
            job_id: string;
            next: boolean;
        };
        PublicKey: {
            /** @enum {string} */
            kty: "RSA" | "EC";
            kid: string;
            alg: string;
            use?: string;
        };
        KeySet: {
            keys: components["schemas"]["PublicKey"][];
        };
        Problem: {
            /** Format: uri */
            type: string;
            title: string;
            status: number;
            detail: string;
            /** @description The request id. */
            instance: string;
            /** @description A code of the catalogue. */
            code: string;
            request_id: string;
            trace_id: string;
            /** @description What to do about it. */
            action?: string;
            field?: string;
            /** @description One entry per defect of the request. */
            errors?: {
                field: string;
                message: string;
                pointer?: string;
            }[];
        };
    };
    responses: {
        /** @description The new key; its private half is in no answer. */
        SigningKey: {
            headers: {
                Location: components["headers"]["Location"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["SigningKey"];
            };
        };
        /** @description From now on it is refused. */
        TokenRevoked: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["TokenRevoked"];
            };
        };
        /** @description What went wrong. */
        Problem: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description What went wrong, as the control contract says it. */
        ControlError: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ControlError"];
            };
        };
        /** @description Who died, who was started again, who was untouched, and how long that took; or, of a dry run, what would be. */
        Containment: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Containment"];
            };
        };
    };
    parameters: {
        PrincipalName: string;
        /**
         * @description A pid as `/stats/tree` shows it, a registered name, or a path of the tree: ids from the root down with `>` between
         *     them. A name with a `/` can't be here; its pid can.
         */
        Target: string;
        OperationId: string;
        /** @description As the list of dead rows has it. */
        DeadRowId: string;
        JobId: string;
        ClientId: string;
    };
    requestBodies: {
        Chaos: {
            content: {
                "application/json": components["schemas"]["ChaosRequest"];
            };
        };
        Reason: {
            content: {
                "application/json": components["schemas"]["Reason"];
            };
        };
    };
    headers: {
        /** @description What was made. Of a key, a token or a principal it is the name, and its verbs go behind it, as in `/keys/{kid}:revoke`. */
        Location: string;
        /** @description `<?...>; rel="next"`: the query of the next page (RFC 8288), with the cursor that the body has. Absent on the last one. */
        Link: string;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    getEntrance: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The product and its addresses. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Entrance"];
                    "text/html": string;
                };
            };
            400: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    getHealth: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It does. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            400: components["responses"]["Problem"];
            /** @description It does, and can't recover from what happened. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getLiveness: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The process responds. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            400: components["responses"]["Problem"];
            /** @description It does, and can't recover from what happened. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getReadiness: {
        parameters: {
            query?: {
                /** @description With our own checks besides the three; on the operator's listener only. */
                verbose?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description They can. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Readiness"];
                };
            };
            400: components["responses"]["Problem"];
            /** @description A dependency is down, or the server is starting or draining. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Readiness"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getStartup: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It has. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Startup"];
                };
            };
            400: components["responses"]["Problem"];
            /** @description The server is starting. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Startup"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getMetrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The text exposition. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                    "application/openmetrics-text": string;
                };
            };
            400: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    getStats: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Schedulers, memory, queues, pressure, objectives beside what is measured, store. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Stats"];
                };
            };
            400: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    getTree: {
        parameters: {
            query?: {
                /** @description Of each supervisor, how many are shown; not of a list. */
                children?: number;
                /** @description A class of actors that isn't shown, as `connection`; its own counts as left out. Not of a list. */
                without?: string;
                format?: "json" | "text" | "dot";
                /** @description A list instead, of those whose name holds this. */
                name?: string;
                /** @description A list instead, of this class of actor. */
                class?: string;
                /** @description A list instead, of those in this state. */
                state?: "any" | "stopped" | "starting" | "running" | "restarting" | "backing_off" | "stopping" | "quarantined" | "suspended" | "silent";
                /** @description Of a list, how many are shown; not together with `n`. */
                limit?: number;
                /** @description A list instead, of those with the most. */
                top?: "tree" | "mailbox" | "restarts" | "memory";
                /** @description How many of them; 10 when nothing is said. */
                n?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The tree, or a list of some of it. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Tree"] | components["schemas"]["ActorList"];
                    "text/plain": string;
                    "text/vnd.graphviz": string;
                };
            };
            400: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    getActor: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Its pid as `/stats/tree` shows it, its registered name, or its path in the tree: ids from the root down with `>`
                 *     between them. A name with a `/` can't be here; its pid can.
                 */
                pid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The actor. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Actor"];
                };
            };
            404: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    listEvents: {
        parameters: {
            query?: {
                /** @description The `next` of an earlier answer, or a `sequence`. One of another process starts at the oldest event kept. */
                since?: string;
                /** @description Only events of this name, or of a family, as `supervisor.*`. */
                event?: string;
                /** @description Of a list; a stream has no end. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description In the order in which they were kept. In a stream each has its `sequence` as its id, and an event `missed` without one says how many were not kept any more. */
            200: {
                headers: {
                    Link: components["headers"]["Link"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Events"];
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    listAudits: {
        parameters: {
            query?: {
                /** @description The `next` of an earlier answer. */
                after?: string;
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Newest first. */
            200: {
                headers: {
                    Link: components["headers"]["Link"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Audits"];
                };
            };
            400: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    listChaosReports: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The newest first; the last 64 are kept. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChaosReports"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getChaosReport: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its number, as the list shows it. */
                report: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description As it was sent. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChaosReport"];
                };
            };
            404: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    addChaosReport: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ChaosReport"];
            };
        };
        responses: {
            /** @description It is kept. */
            201: {
                headers: {
                    Location: components["headers"]["Location"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        id: number;
                    };
                };
            };
            400: components["responses"]["Problem"];
            507: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    floodActor: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description A pid as `/stats/tree` shows it, a registered name, or a path of the tree: ids from the root down with `>` between
                 *     them. A name with a `/` can't be here; its pid can.
                 */
                target: components["parameters"]["Target"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["FloodRequest"];
            };
        };
        responses: {
            200: components["responses"]["Containment"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    killActor: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description A pid as `/stats/tree` shows it, a registered name, or a path of the tree: ids from the root down with `>` between
                 *     them. A name with a `/` can't be here; its pid can.
                 */
                target: components["parameters"]["Target"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["Chaos"];
        responses: {
            200: components["responses"]["Containment"];
            202: components["responses"]["Containment"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    suspendActor: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description A pid as `/stats/tree` shows it, a registered name, or a path of the tree: ids from the root down with `>` between
                 *     them. A name with a `/` can't be here; its pid can.
                 */
                target: components["parameters"]["Target"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["Chaos"];
        responses: {
            200: components["responses"]["Containment"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    resumeActor: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description A pid as `/stats/tree` shows it, a registered name, or a path of the tree: ids from the root down with `>` between
                 *     them. A name with a `/` can't be here; its pid can.
                 */
                target: components["parameters"]["Target"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["Chaos"];
        responses: {
            200: components["responses"]["Containment"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    crashActor: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description A pid as `/stats/tree` shows it, a registered name, or a path of the tree: ids from the root down with `>` between
                 *     them. A name with a `/` can't be here; its pid can.
                 */
                target: components["parameters"]["Target"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CrashRequest"];
            };
        };
        responses: {
            200: components["responses"]["Containment"];
            202: components["responses"]["Containment"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    advanceClock: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ClockAdvance"];
            };
        };
        responses: {
            /** @description From now on. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Clock"];
                };
            };
            400: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    getSettings: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The settings that are in force; what a restart would bring isn't among them. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Settings"];
                };
            };
            400: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    reloadSettings: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["Reason"];
        responses: {
            /** @description They were read, and what could be applied was. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Reloaded"];
                };
            };
            503: components["responses"]["Problem"];
            504: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    getLog: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The level, and how many lines were dropped because nobody took them. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Log"];
                };
            };
            400: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    setLogLevel: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LogLevel"];
            };
        };
        responses: {
            /** @description From now on. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Log"];
                };
            };
            400: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    getClient: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                client_id: components["parameters"]["ClientId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Without the secret, which nobody has. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Client"];
                };
            };
            404: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    issueApiKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                client_id: components["parameters"]["ClientId"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["Reason"];
        responses: {
            /** @description The secret is shown this once. */
            201: {
                headers: {
                    Location: components["headers"]["Location"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiKeyIssued"];
                };
            };
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    revokeApiKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                client_id: components["parameters"]["ClientId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ApiKeyRevoke"];
            };
        };
        responses: {
            /** @description From now on it is refused. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiKeyRevoked"];
                };
            };
            404: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    listSigningKeys: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Newest first, and when the active one is replaced. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SigningKeys"];
                };
            };
            400: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    listSigningKeyHistory: {
        parameters: {
            query?: {
                /** @description The `next` of an earlier answer. */
                after?: string;
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Newest first. */
            200: {
                headers: {
                    Link: components["headers"]["Link"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SigningKeyPage"];
                };
            };
            400: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    bootstrapSigningKey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["Reason"];
        responses: {
            201: components["responses"]["SigningKey"];
            409: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    rotateSigningKey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["Reason"];
        responses: {
            201: components["responses"]["SigningKey"];
            404: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    revokeSigningKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Of a key of the built-in issuer, or of a configured key set. One that a path can't hold (with a slash) goes into the body of `POST /tokens:revoke`. */
                kid: string;
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["Reason"];
        responses: {
            /** @description From now on nothing is verified with it. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SigningKeyRevoked"];
                };
            };
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    issueToken: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TokenRequest"];
            };
        };
        responses: {
            /** @description The token is shown this once. */
            201: {
                headers: {
                    Location: components["headers"]["Location"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenIssued"];
                };
            };
            400: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    revokeTokens: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TokenRevoke"];
            };
        };
        responses: {
            200: components["responses"]["TokenRevoked"];
            400: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    revokeToken: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                jti: string;
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["Reason"];
        responses: {
            200: components["responses"]["TokenRevoked"];
            400: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    listPrincipals: {
        parameters: {
            query?: {
                /** @description The `next` of an earlier answer. */
                after?: string;
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description By name. */
            200: {
                headers: {
                    Link: components["headers"]["Link"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Principals"];
                };
            };
            400: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    createPrincipal: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PrincipalRequest"];
            };
        };
        responses: {
            /** @description The secret is shown this once. */
            201: {
                headers: {
                    Location: components["headers"]["Location"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PrincipalCreated"];
                };
            };
            400: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    rotatePrincipal: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: components["parameters"]["PrincipalName"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["Reason"];
        responses: {
            /** @description The secret is shown this once. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PrincipalRotated"];
                };
            };
            404: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    revokePrincipal: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: components["parameters"]["PrincipalName"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["Reason"];
        responses: {
            /** @description There is no such principal any more, and none of its tokens is taken. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PrincipalRevoked"];
                };
            };
            404: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    pauseJobs: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PauseRequest"];
            };
        };
        responses: {
            /** @description They wait. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PauseBegun"];
                };
            };
            400: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    resumeJobs: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ResumeRequest"];
            };
        };
        responses: {
            /** @description They go on. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PauseEnded"];
                };
            };
            400: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    listJobs: {
        parameters: {
            query?: {
                state?: components["schemas"]["JobState"];
                outcome?: components["schemas"]["JobOutcome"];
                type?: components["schemas"]["JobType"];
                /** @description Only those of this client. */
                client?: string;
                /** @description The `next` of an earlier answer. */
                after?: string;
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of them. */
            200: {
                headers: {
                    Link: components["headers"]["Link"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Jobs"];
                };
            };
            400: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    getJobRecord: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                job_id: components["parameters"]["JobId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The job. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobInspected"];
                };
            };
            404: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    getJobReports: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                job_id: components["parameters"]["JobId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The report that counts, and those before it, newest first. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobReports"];
                };
            };
            404: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    listJobEvents: {
        parameters: {
            query?: {
                /** @description The `next_cursor` of an earlier answer. */
                cursor?: string;
                limit?: number;
            };
            header?: never;
            path: {
                job_id: components["parameters"]["JobId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description In order. */
            200: {
                headers: {
                    Link: components["headers"]["Link"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobEvents"];
                };
            };
            400: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    explainJob: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                job_id: components["parameters"]["JobId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What is so now. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobExplanation"];
                };
            };
            404: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    listPauses: {
        parameters: {
            query?: {
                /** @description The `next` of an earlier answer. */
                after?: string;
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Everything first, then kinds, then clients. */
            200: {
                headers: {
                    Link: components["headers"]["Link"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Pauses"];
                };
            };
            400: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    listDeadRows: {
        parameters: {
            query?: {
                /** @description The `next` of an earlier answer. */
                after?: string;
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description By partition, and in each the oldest first. */
            200: {
                headers: {
                    Link: components["headers"]["Link"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeadRows"];
                };
            };
            400: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    reviveDeadRow: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description As the list of dead rows has it. */
                id: components["parameters"]["DeadRowId"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["Reason"];
        responses: {
            /** @description It waits in the outbox again, and an audit entry says so. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeadRowRevived"];
                };
            };
            400: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    runJob: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                job_id: components["parameters"]["JobId"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["Reason"];
        responses: {
            /** @description It is the next one. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobNext"];
                };
            };
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
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
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
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
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
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
        requestBody?: components["requestBodies"]["Reason"];
        responses: {
            /** @description It has ended. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    issueAccessToken: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AccessTokenRequest"];
            };
        };
        responses: {
            /** @description A new token of the built-in issuer, told this once. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AccessToken"];
                };
            };
            400: components["responses"]["ControlError"];
            401: components["responses"]["ControlError"];
            403: components["responses"]["ControlError"];
            429: components["responses"]["ControlError"];
            default: components["responses"]["ControlError"];
        };
    };
    getKeySet: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description RFC 7517. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KeySet"];
                };
            };
            400: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
}
