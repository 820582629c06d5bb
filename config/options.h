/* Options: what the command line, the environment and the file of settings may say, each in one row.
 *
 * A row makes the flag (--operator-listen), the variable (COPPICE_OPERATOR_LISTEN), the key of the file
 * (operator.listen), the field of struct options, the parser, the checks, the help, the manual and the schema. Flags win
 * over the environment, the environment over the file, the file over the defaults; of each value it is known where it
 * came from. Whatever is not fully understood is refused with a sentence that names the option, the value and what would
 * be right, and the exit status to leave with: 64 for a command line that cannot be meant, 78 for a value that cannot be
 * used.
 *
 * Called by main before anything else exists, and by a reload (config/reload.h) from one actor. Strings are borrowed from
 * argv, the environment and the file's text. Nothing here allocates.
 */
#ifndef COPPICE_CONFIG_OPTIONS_H
#define COPPICE_CONFIG_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/agent_template.h"
#include "http/limiter.h"
#include "runtime/json.h"
#include "store/uuid.h"

#define EXIT_USAGE  64
#define EXIT_NOPERM 77
#define EXIT_CONFIG 78

#define LOG_LEVELS(X)     \
    X(LOG_DEBUG, "debug") \
    X(LOG_INFO, "info")   \
    X(LOG_WARN, "warn")   \
    X(LOG_ERROR, "error")

enum log_level {
#define X(name, text) name,
    LOG_LEVELS(X)
#undef X
        LOG_LEVEL_COUNT
};

struct intensity {
    uint32_t restarts;
    uint64_t period_ns;
};

/* X(ID, "name", "ARGUMENT" or "" when it takes none, prose). A name of two words is a noun and what is done with it. What
 * options a command takes is a bit in the commands column of each option. */
#define COMMANDS(X)                                                                                         \
    X(SERVE, "serve", "", "start the server; it runs until SIGTERM or SIGINT")                              \
    X(TREE, "tree", "", "draw the living tree of a running server")                                         \
    X(TOP, "top", "", "watch the actors of a running server")                                               \
    X(STATS, "stats", "", "print the figures of a running server")                                          \
    X(EVENTS, "events", "",                                                                                 \
      "print what happened in a running server, as far as it is kept; --follow: and what happens")          \
    X(KILL, "kill", "ACTOR", "end an actor of a running server, and say what that did")                     \
    X(CHAOS_LIST, "chaos list", "", "print the scenarios of chaos, and what must hold in each")             \
    X(CHAOS_RUN, "chaos run", "SCENARIO",                                                                   \
      "do a scenario, or all, to a running server, and judge it from outside")                              \
    X(SIM, "sim", "", "run one seed of the simulator: the whole server, and faults at every seam")          \
    X(RELOAD, "reload", "", "have a running server read its settings again")                                \
    X(LOG_LEVEL, "log level", "LEVEL", "change what a running server writes to its log")                    \
    X(CLOCK_ADVANCE, "clock advance", "TIME", "move the clock of a server that is tried out (dev) forward") \
    X(KEYS_LIST, "keys list", "", "print the signing keys and when they are rotated")                       \
    X(KEYS_ROTATE, "keys rotate", "", "make a new signing key now; the old one stays valid for a while")    \
    X(KEYS_REVOKE, "keys revoke", "KID", "declare a signing key invalid, with all that it signed, at once") \
    X(KEYS_BOOTSTRAP, "keys bootstrap", "", "make the first signing key")                                   \
    X(KEYS_HISTORY, "keys history", "", "print the signing keys of the forensic window, newest first")      \
    X(KEYS_ISSUE, "keys issue", "", "give a client that lost its API key a new one")                        \
    X(TOKEN_ISSUE, "token issue", "", "print a new token of the built-in issuer")                           \
    X(TOKEN_REVOKE, "token revoke", "JTI", "declare a token invalid at once")                               \
    X(PAUSE, "pause", "WHAT", "let jobs wait: WHAT is all, a work kind, or a client's id")                  \
    X(RESUME, "resume", "WHAT", "let paused jobs go on: all, a work kind, or a client's id")                \
    X(PAUSES, "pauses", "", "print what is paused")                                                         \
    X(OUTBOX_DEAD, "outbox dead", "", "print what the outbox has given up, and why")                        \
    X(OUTBOX_REVIVE, "outbox revive", "ID", "have a dead row of the outbox handed on after all")            \
    X(REPORT, "report", "", "print all jobs of all clients, and what became of them, newest first")         \
    X(EXPLAIN, "explain", "ID", "say why a job isn't running, or who runs it")                              \
    X(INSPECT_JOB, "inspect job", "ID", "print a job, its lease, and its row as it is stored")              \
    X(INSPECT_CLIENT, "inspect client", "ID", "print a client's row, which never changes")                  \
    X(INSPECT_REPORT, "inspect report", "ID", "print what a job came to, and its earlier attempts")         \
    X(PRINCIPAL_LIST, "principal list", "", "print the services and agents that may ask for tokens")        \
    X(PRINCIPAL_CREATE, "principal create", "NAME",                                                         \
      "let a service or an agent ask for tokens; prints its secret")                                        \
    X(PRINCIPAL_ROTATE, "principal rotate", "NAME", "give it another secret; its tokens end")               \
    X(PRINCIPAL_REVOKE, "principal revoke", "NAME", "take its secret and its tokens away, at once")         \
    X(CONFIG_CHECK, "config check", "", "say whether the settings can be used, and start nothing")          \
    X(CONFIG_SHOW, "config show", "", "print every setting, its value, and where it comes from")            \
    X(CONFIG_SCHEMA, "config schema", "", "print the JSON Schema of the file of settings")                  \
    X(ACL, "acl", "", "print who may do what: every route, its credentials, and roles")                     \
    X(AUDIT_LIST, "audit list", "", "print what was done by operators, newest first")                       \
    X(CONTRACT_CHECK, "contract check", "",                                                                 \
      "compare the contracts with the routes, and with an older version of them")                           \
    X(CONTRACT_SHOW, "contract show", "WHAT",                                                               \
      "print a contract: openapi, asyncapi, jobs, work, ops, errors or events")                             \
    X(TOPOLOGY, "topology", "", "print the declared topology")                                              \
    X(CHECK, "check", "", "look at every page and row of the store and tell what is wrong")                 \
    X(STAT, "stat", "", "print how large the store is, and how many rows each table has")                   \
    X(BACKUP, "backup", "DIR", "copy the store into the new directory DIR while it works")                  \
    X(RESTORE, "restore", "DIR", "bring the backup in DIR back into an empty or missing --store-dir")       \
    X(EXPORT, "export", "", "print every row of the store, --jsonl: as a line of JSON")                     \
    X(REPLAY, "replay", "JOURNAL", "make a store of every batch in the file that --store-record wrote")     \
    X(COMPLETION, "completion", "SHELL", "print what makes bash, zsh or fish complete command lines")       \
    X(MANUAL, "manual", "PAGE", "print a manual page: coppice.1, coppice.json.5, coppice-api.7, coppice.8") \
    X(VERSION, "version", "", "print the version")                                                          \
    X(HELP, "help", "", "print this, or the options of one command")

enum command {
#define X(id, name, argument, prose) COMMAND_##id,
    COMMANDS(X)
#undef X
        COMMAND_COUNT
};

/* How a kind of value is kept, and what its limits are counted in: counts in ones, decimals in millionths, durations in ns,
 * sizes in bytes, the period of an intensity in seconds; limits of the others say nothing. The words that a choice can be stand in
 * its unit, "dev|stage|prod". */
#define OPTION_KINDS(X)            \
    X(COUNT, uint64_t)             \
    X(DECIMAL, uint64_t)           \
    X(DURATION, uint64_t)          \
    X(SIZE, uint64_t)              \
    X(FLAG, bool)                  \
    X(TEXT, const char *)          \
    X(CHOICE, const char *)        \
    X(INTENSITY, struct intensity) \
    X(LEVEL, enum log_level)

#define OPTION_KIND_COUNT     uint64_t
#define OPTION_KIND_DECIMAL   uint64_t
#define OPTION_KIND_DURATION  uint64_t
#define OPTION_KIND_SIZE      uint64_t
#define OPTION_KIND_FLAG      bool
#define OPTION_KIND_TEXT      const char *
#define OPTION_KIND_CHOICE    const char *
#define OPTION_KIND_INTENSITY struct intensity
#define OPTION_KIND_LEVEL     enum log_level

enum option_kind {
#define X(name, type) KIND_##name,
    OPTION_KINDS(X)
#undef X
};

/* What else is true of an option. */
enum option_mark {
    MARK_RESTART = 0,     /* a setting of the server; another value counts from its next start on */
    MARK_RELOAD = 1 << 0, /* a setting of the server that a reload applies */
    MARK_CALL = 1 << 1,   /* of one command line: neither a variable nor a key of the file */
    MARK_CLIENT = 1 << 2, /* of commands that talk to a server; none of the server's */
    MARK_SECRET = 1 << 3, /* shown as *** */
    MARK_LIST = 1 << 4,   /* texts with commas between them; the file may also have a list of texts */
};

#define FOR(command) (UINT64_C(1) << COMMAND_##command)
#define FOR_DATA     (FOR(CHECK) | FOR(STAT) | FOR(BACKUP) | FOR(RESTORE) | FOR(EXPORT) | FOR(REPLAY))
#define FOR_KEYS                                                                                      \
    (FOR(KEYS_LIST) | FOR(KEYS_ROTATE) | FOR(KEYS_REVOKE) | FOR(KEYS_BOOTSTRAP) | FOR(KEYS_HISTORY) | \
     FOR(KEYS_ISSUE))
#define FOR_CHANGE                                                                                         \
    (FOR(KILL) | FOR(RELOAD) | FOR(LOG_LEVEL) | FOR(CLOCK_ADVANCE) | FOR(KEYS_ROTATE) | FOR(KEYS_REVOKE) | \
     FOR(KEYS_BOOTSTRAP) | FOR(TOKEN_ISSUE) | FOR(TOKEN_REVOKE) | FOR(PRINCIPAL_CREATE) |                  \
     FOR(PRINCIPAL_ROTATE) | FOR(PRINCIPAL_REVOKE) | FOR(PAUSE) | FOR(RESUME) | FOR(KEYS_ISSUE) |          \
     FOR(OUTBOX_REVIVE))
#define FOR_JOBS (FOR(REPORT) | FOR(EXPLAIN) | FOR(INSPECT_JOB) | FOR(INSPECT_CLIENT) | FOR(INSPECT_REPORT))
/* Those that ask a running server. */
#define FOR_CLIENT                                                                              \
    (FOR_KEYS | FOR_CHANGE | FOR(CHAOS_RUN) | FOR(TREE) | FOR(TOP) | FOR(STATS) | FOR(EVENTS) | \
     FOR(AUDIT_LIST) | FOR(PRINCIPAL_LIST) | FOR(PAUSES) | FOR(OUTBOX_DEAD) | FOR_JOBS)
/* Those that print what a server has, and change nothing. */
#define FOR_SHOWN                                                                                            \
    (FOR(STATS) | FOR(KEYS_LIST) | FOR(KEYS_HISTORY) | FOR(AUDIT_LIST) | FOR(PRINCIPAL_LIST) | FOR(PAUSES) | \
     FOR(OUTBOX_DEAD) | FOR_JOBS)
/* Those that see the settings of the server. */
#define FOR_SERVER (FOR(SERVE) | FOR(CONFIG_CHECK) | FOR(CONFIG_SHOW))
#define FOR_FILE   (FOR_SERVER | FOR_CLIENT | FOR_DATA)

#define US         UINT64_C(1000)
#define MS         UINT64_C(1000000)
#define S          UINT64_C(1000000000)
#define DAY        (86400 * S)
#define MIB        (UINT64_C(1) << 20)
#define WHOLE      UINT64_C(1000000) /* 1 as a decimal */

/* X(field, "key", kind, commands, min, max, marks, "default", "unit", "prose") */
#define OPTIONS(X)                                                                                           \
    X(config, "config", TEXT, FOR_FILE, 0, 0, MARK_CLIENT, "", "file",                                       \
      "the file of settings, instead of /etc/coppice/coppice.json and conf.d/*.json beside it (or, for a "   \
      "user, $XDG_CONFIG_HOME/coppice/coppice.json)")                                                        \
    X(environment, "environment", CHOICE, FOR_SERVER, 0, 0, MARK_RESTART, "dev", "dev|stage|prod",           \
      "what this server is for; stage and prod are stricter, --env is the same")                             \
    X(schedulers, "schedulers", COUNT, FOR_SERVER, 0, 64, MARK_RESTART, "0", "threads",                      \
      "scheduler threads; 0: one for each CPU this process may use")                                         \
    X(http_listen, "http.listen", TEXT, FOR_SERVER, 0, 0, MARK_RESTART | MARK_LIST, "127.0.0.1:8080",        \
      "addresses", "where clients connect: addresses with ports, or unix:PATH, with commas between them")    \
    X(http_connections, "http.connections", COUNT, FOR_SERVER, 1, 1000000, MARK_RESTART, "16384",            \
      "connections",                                                                                         \
      "clients connected at a time, divided evenly among the schedulers; one more of one is answered 503")   \
    X(http_connections_per_address, "http.connections.per_address", COUNT, FOR_SERVER, 0, 1000000,           \
      MARK_RELOAD, "0", "connections", "of them from one address; 0: any number")                            \
    X(http_head_timeout, "http.head.timeout", DURATION, FOR_SERVER, 100 * MS, 3600 * S, MARK_RELOAD, "10s",  \
      "time", "how long the head of a request may take to arrive")                                           \
    X(http_idle, "http.idle", DURATION, FOR_SERVER, 1 * S, 3600 * S, MARK_RELOAD, "60s", "time",             \
      "how long a connection may stay without a request")                                                    \
    X(http_write_timeout, "http.write.timeout", DURATION, FOR_SERVER, 100 * MS, 3600 * S, MARK_RELOAD,       \
      "10s", "time", "how long a client may take for an answer's next bytes")                                \
    X(http_request_timeout, "http.request.timeout", DURATION, FOR_SERVER, 100 * MS, 3600 * S, MARK_RELOAD,   \
      "10s", "time",                                                                                         \
      "how long a request may take from when it had come to its commit; what is later is not done")          \
    X(http_body_grace, "http.body.grace", DURATION, FOR_SERVER, 0, 3600 * S, MARK_RELOAD, "5s", "time",      \
      "how long a body may take before --http-body-rate counts")                                             \
    X(http_body_rate, "http.body.rate", COUNT, FOR_SERVER, 0, 1000000000, MARK_RELOAD, "512", "bytes",       \
      "a second that a body must come with at least")                                                        \
    X(http_requests_max, "http.requests.max", COUNT, FOR_SERVER, 0, 1000000000, MARK_RELOAD, "0",            \
      "requests", "on one connection; 0: any number")                                                        \
    X(http_streams, "http.streams", COUNT, FOR_SERVER, 0, 1000000, MARK_RELOAD, "256", "streams",            \
      "event streams at a time; one more is answered 503")                                                   \
    X(http_check_answers, "http.check_answers", FLAG, FOR_SERVER, 0, 0, MARK_RESTART, "false", "",           \
      "check answers against the contract, too; a wrong one ends its connection, and is logged")             \
    X(http_access_log, "http.access_log", FLAG, FOR_SERVER, 0, 0, MARK_RESTART, "true", "",                  \
      "a line of the log for each request, probes aside")                                                    \
    X(http_cors_origin, "http.cors.origin", TEXT, FOR_SERVER, 0, 0, MARK_RESTART, "", "origin",              \
      "whose pages may read answers, such as https://app.example.com; none: CORS is off")                    \
    X(api_versions, "api.versions", CHOICE, FOR_SERVER, 0, 0, MARK_RESTART, "v1", "v1",                      \
      "versions of the API that are active in this environment")                                             \
    X(http_csp_script_src, "http.csp.script_src", TEXT, FOR_SERVER, 0, 0, MARK_RESTART | MARK_LIST,          \
      "'self'", "sources",                                                                                   \
      "where scripts of pages may come from, as Content-Security-Policy says; anything but 'self' must be "  \
      "approved")                                                                                            \
    X(http_csp_approved_cdns, "http.csp.approved_cdns", TEXT, FOR_SERVER, 0, 0, MARK_RESTART | MARK_LIST,    \
      "", "origins", "the origins that --http-csp-script-src may name, with commas between them")            \
    X(http_frame_options, "http.frame_options", CHOICE, FOR_SERVER, 0, 0, MARK_RESTART, "DENY",              \
      "DENY|SAMEORIGIN", "whether pages may be embedded; SAMEORIGIN needs an approved use case")             \
    X(frame_embedding_approved_use_case, "frame_embedding.approved_use_case", TEXT, FOR_SERVER, 0, 0,        \
      MARK_RESTART, "", "words", "what embedding was approved for")                                          \
    X(security_contact, "security.contact", TEXT, FOR_SERVER, 0, 0, MARK_RESTART, "", "URI",                 \
      "whom to tell of a weakness, such as mailto:security@example.com; none: there is no security.txt")     \
    X(security_validity, "security.validity", DURATION, FOR_SERVER, 1 * DAY, 365 * DAY, MARK_RESTART,        \
      "180d", "time", "how long security.txt is good for, from the day on which it is asked for")            \
    X(http_shutdown_delay, "http.shutdown_delay", DURATION, FOR_SERVER, 0, 3600 * S, MARK_RELOAD, "0s",      \
      "time", "between SIGTERM, when readiness goes, and the end of accepting, so that balancers notice")    \
    X(http_drain, "http.drain", DURATION, FOR_SERVER, 0, 3600 * S, MARK_RESTART, "25s", "time",              \
      "how long requests may take to end after that")                                                        \
    X(tls_certificate, "tls.certificate", TEXT, FOR_SERVER, 0, 0, MARK_RELOAD, "", "file",                   \
      "certificate chain (PEM) for the clients' listeners; none: no TLS")                                    \
    X(tls_key, "tls.key", TEXT, FOR_SERVER, 0, 0, MARK_RELOAD, "", "file", "its private key (PEM)")          \
    X(tls_client_ca, "tls.client_ca", TEXT, FOR_SERVER, 0, 0, MARK_RELOAD, "", "file",                       \
      "authorities (PEM) that clients' certificates must come from; none: no certificates are asked for")    \
    X(tls_handshake_timeout, "tls.handshake.timeout", DURATION, FOR_SERVER, 100 * MS, 3600 * S, MARK_RELOAD, \
      "10s", "time", "how long a client may take for the handshake")                                         \
    X(tls_terminated_by_proxy, "tls.terminated_by_proxy", FLAG, FOR_SERVER, 0, 0, MARK_RESTART, "false", "", \
      "a trusted proxy in front speaks TLS, so plain HTTP on a public address is meant")                     \
    X(auth_issuer, "auth.issuer", TEXT, FOR_SERVER, 0, 0, MARK_RESTART, "coppice", "name",                   \
      "of the built-in issuer of tokens, as their iss says")                                                 \
    X(auth_audience, "auth.audience", TEXT, FOR_SERVER, 0, 0, MARK_RESTART, "coppice", "name",               \
      "that tokens must be meant for, as their aud says")                                                    \
    X(auth_jwks_file, "auth.jwks.file", TEXT, FOR_SERVER, 0, 0, MARK_RESTART, "", "file",                    \
      "public keys (JWKS) of another issuer")                                                                \
    X(auth_jwks_url, "auth.jwks.url", TEXT, FOR_SERVER, 0, 0, MARK_SECRET, "", "URL",                        \
      "where public keys (JWKS) of another issuer are fetched")                                              \
    X(auth_jwks_issuer, "auth.jwks.issuer", TEXT, FOR_SERVER, 0, 0, MARK_RESTART, "", "name",                \
      "whose keys those are, as the iss of its tokens says")                                                 \
    X(auth_master_key, "auth.master_key", TEXT, FOR_SERVER, 0, 0, MARK_RESTART, "", "file",                  \
      "32 bytes that private keys are sealed with; none: master.key in --store-dir, made when missing")      \
    X(auth_jti_single_use, "auth.jti_single_use", FLAG, FOR_SERVER, 0, 0, MARK_RESTART, "false", "",         \
      "a token is good for one request")                                                                     \
    X(auth_strict_rotation, "auth.strict_rotation", FLAG, FOR_SERVER, 0, 0, MARK_RESTART, "false", "",       \
      "refuse, not only warn about, a --keys-rotation-cadence of 8h or more")                                \
    X(auth_key_lifetime, "auth.key_lifetime", DURATION, FOR_SERVER, 3600 * S, 3650 * DAY, MARK_RESTART,      \
      "90d", "time", "how long a new API key is good for when its request doesn't say")                      \
    X(auth_bootstrap_window, "auth.bootstrap_window", DURATION, FOR_SERVER, 0, 1 * DAY, MARK_RESTART, "10m", \
      "time",                                                                                                \
      "how long after its creation a client may fetch its first key without one; 0: operators issue it")     \
    X(auth_bootstrap, "auth.bootstrap", CHOICE, FOR_SERVER, 0, 0, MARK_RESTART, "window", "window|operator", \
      "who gives a client its first key: itself, within auth.bootstrap_window, or an operator")              \
    X(retention_revoked_keys, "retention.revoked_keys", DURATION, FOR_SERVER, 1 * DAY, 3650 * DAY,           \
      MARK_RESTART, "90d", "time", "how long API keys are kept for audit after their end")                   \
    X(keys_rotation_cadence, "keys.rotation_cadence", DURATION, FOR_SERVER, 3600 * S, 3650 * DAY,            \
      MARK_RESTART, "6h", "time",                                                                            \
      "how often a new signing key takes over; at most 30d in dev, 14d in stage, 7d in prod")                \
    X(keys_overlap, "keys.overlap", DURATION, FOR_SERVER, 0, 3650 * DAY, MARK_RESTART, "8h2m", "time",       \
      "how long the old one stays valid after that; at least 8h, the longest life of a token")               \
    X(keys_revocation_sla, "keys.revocation_sla", DURATION, FOR_SERVER, 1 * S, 1 * DAY, MARK_RESTART, "60s", \
      "time",                                                                                                \
      "within which a revoked key is invalid everywhere: how long others may keep our key set, and we "      \
      "theirs")                                                                                              \
    X(keys_history, "keys.history", DURATION, FOR_SERVER, 90 * DAY, 36500 * DAY, MARK_RESTART, "90d",        \
      "time", "how long keys that were rotated out or revoked stay in the history")                          \
    X(keys_bootstrap_rehearsed, "keys.bootstrap_rehearsed", TEXT, FOR_SERVER, 0, 0, MARK_RESTART, "",        \
      "date", "when making the first signing key was rehearsed (RB-015); a release to prod needs it")        \
    X(timeouts_tier_c_total, "timeouts.tier_c.total", DURATION, FOR_SERVER, 1 * S, 365 * DAY, MARK_RESTART,  \
      "3h3m5s", "time",                                                                                      \
      "how long a job of tier C may take in all; at most 4h, the longest life of an agent's token")          \
    X(limits_requests_per_minute, "limits.requests_per_minute", COUNT, FOR_SERVER, 1, 1000000, MARK_RELOAD,  \
      "600", "requests", "of one client a minute; one more is answered 429")                                 \
    X(limits_address, "limits.address", COUNT, FOR_SERVER, 0, 1000000, MARK_RELOAD, "0", "requests",         \
      "of one address a minute; 0: any number")                                                              \
    X(limits_subject, "limits.subject", COUNT, FOR_SERVER, 1, 1000000, MARK_RELOAD, "600", "requests",       \
      "of one token's subject a minute, where no bucket of its own counts them; one more is answered 429")   \
    X(limits_anonymous_requests_per_minute, "limits.anonymous_requests_per_minute", COUNT, FOR_SERVER, 1,    \
      1000000, MARK_RELOAD, "60", "requests",                                                                \
      "of one address a minute for new clients and first keys, which need no credentials (AMB-J-22)")        \
    X(limits_headers, "limits.headers", CHOICE, FOR_SERVER, 0, 0, MARK_RELOAD, "draft",                      \
      "draft|triple|x-triple",                                                                               \
      "RateLimit and RateLimit-Policy alone, or also RateLimit-Limit, -Remaining and -Reset, or "            \
      "X-RateLimit-Limit and so on, for clients that know those alone")                                      \
    X(limits_client_quota_requests, "limits.client_quota_requests", COUNT, FOR_SERVER, 0, 1000000000,        \
      MARK_RELOAD, "0", "requests",                                                                          \
      "of one client in limits.client_quota_window, which a restart doesn't forget; 0: any number")          \
    X(limits_client_quota_window, "limits.client_quota_window", DURATION, FOR_SERVER, 60 * S, 365 * DAY,     \
      MARK_RELOAD, "1d", "time", "that limits.client_quota_requests are counted in")                         \
    X(limits_max_active_jobs, "limits.max_active_jobs", COUNT, FOR_SERVER, 0, 1000000000, MARK_RELOAD,       \
      "20000", "jobs", "QUEUED, ASSIGNED and RUNNING at a time; 0: any number")                              \
    X(limits_active_jobs_policy, "limits.active_jobs_policy", CHOICE, FOR_SERVER, 0, 0, MARK_RELOAD,         \
      "reject", "reject|queue",                                                                              \
      "above limits.max_active_jobs a submit is refused with 429, or taken while claims are held back")      \
    X(limits_max_queue_size, "limits.max_queue_size", COUNT, FOR_SERVER, 1, 1000000000, MARK_RELOAD,         \
      "10000", "jobs", "QUEUED at a time; one more is refused with 503")                                     \
    X(limits_max_body, "limits.max_body", SIZE, FOR_SERVER, 1024, 1024 * 1024, MARK_RELOAD, "1MiB", "bytes", \
      "of a request's body; more is answered 413")                                                           \
    X(limits_max_job_payload, "limits.max_job_payload", SIZE, FOR_SERVER, 1024, 256 * 1024, MARK_RELOAD,     \
      "256KiB", "bytes", "that a job's payload_size may say")                                                \
    X(limits_max_runtime, "limits.max_runtime", DURATION, FOR_SERVER, 100 * MS, 30 * DAY, MARK_RELOAD, "2m", \
      "time", "that a job may run; longer ones are FAILED with TIMEOUT")                                     \
    X(jobs_allowed_types, "jobs.allowed_types", TEXT, FOR_SERVER, 0, 0, MARK_RELOAD | MARK_LIST,             \
      "EXECUTE,DEFERRED,EMIT_EVENT", "types", "of jobs that may be submitted, with commas between them")     \
    X(jobs_should_fail_probability, "jobs.should_fail_probability", DECIMAL, FOR_SERVER, 0, WHOLE,           \
      MARK_RELOAD, "0.2", "probability", "that a job without a work_kind is one that fails")                 \
    X(jobs_simulation_speed, "jobs.simulation_speed", DECIMAL, FOR_SERVER, 1000, 1000000 * WHOLE,            \
      MARK_RELOAD, "1.0", "factor",                                                                          \
      "by which simulated work is faster than its definition says; stored values stay as they are")          \
    X(jobs_priorities, "jobs.priorities", FLAG, FOR_SERVER, 0, 0, MARK_RELOAD, "false", "",                  \
      "take a priority from 0 to 9 with a submit, of which higher ones run first; off: first in, first out") \
    X(jobs_client_concurrency, "jobs.client_concurrency", COUNT, FOR_SERVER, 0, 1000000, MARK_RELOAD, "0",   \
      "jobs", "of one client that run at a time; 0: any number")                                             \
    X(jobs_fairness, "jobs.fairness", CHOICE, FOR_SERVER, 0, 0, MARK_RELOAD, "fifo", "fifo|clients",         \
      "which job is next: the oldest, whosever it is; or clients take turns, each with its oldest")          \
    X(workers_count, "workers.count", COUNT, FOR_SERVER, 0, 1024, MARK_RESTART, "64", "workers",             \
      "that run the catalogue's jobs; 0: none, jobs stay QUEUED, and the server isn't ready")                \
    X(workers_outside, "workers.outside", FLAG, FOR_SERVER, 0, 0, MARK_RELOAD, "false", "",                  \
      "programs of one's own do the work: also without workers the server is ready")                         \
    X(workers_max_concurrency, "workers.max_concurrency", COUNT, FOR_SERVER, 1, 64, MARK_RESTART, "1",       \
      "jobs", "that a worker runs at a time; with workers.count at most 4000 in all")                        \
    X(workers_poll_interval, "workers.poll_interval", DURATION, FOR_SERVER, 10 * MS, 3600 * S, MARK_RELOAD,  \
      "1s", "time", "after which a worker without a job looks again, even if nobody woke it")                \
    X(workers_lease_timeout, "workers.lease_timeout", DURATION, FOR_SERVER, 100 * MS, 1 * DAY, MARK_RELOAD,  \
      "30s", "time", "for which a worker has a job after a claim or a heartbeat")                            \
    X(workers_heartbeat_interval, "workers.heartbeat_interval", DURATION, FOR_SERVER, 10 * MS, 3600 * S,     \
      MARK_RELOAD, "5s", "time",                                                                             \
      "between the heartbeats of a worker that runs a job; less than workers.lease_timeout")                 \
    X(retry_max, "retry.max", COUNT, FOR_SERVER, 0, 1000, MARK_RELOAD, "3", "retries",                       \
      "of a job that FAILED")                                                                                \
    X(retry_auto, "retry.auto", FLAG, FOR_SERVER, 0, 0, MARK_RELOAD, "false", "",                            \
      "retry jobs whose failure is retryable without being asked to")                                        \
    X(retry_backoff_base, "retry.backoff_base", DURATION, FOR_SERVER, 0, 1 * DAY, MARK_RELOAD, "1s", "time", \
      "that a first retry waits at most, and at least half of; each further one twice as long")              \
    X(retry_backoff_max, "retry.backoff_max", DURATION, FOR_SERVER, 0, 30 * DAY, MARK_RELOAD, "1m", "time",  \
      "that no retry waits longer than")                                                                     \
    X(retention_jobs, "retention.jobs", DURATION, FOR_SERVER, 60 * S, 3650 * DAY, MARK_RELOAD, "30d",        \
      "time", "for which a job, its events and its reports are kept after its end")                          \
    X(webhooks_timeout, "webhooks.timeout", DURATION, FOR_SERVER, 10 * MS, 300 * S, MARK_RELOAD, "5s",       \
      "time", "that a receiver may take for one delivery")                                                   \
    X(webhooks_max_retries, "webhooks.max_retries", COUNT, FOR_SERVER, 0, 100, MARK_RELOAD, "5", "retries",  \
      "of a delivery that failed")                                                                           \
    X(webhooks_backoff_base, "webhooks.backoff_base", DURATION, FOR_SERVER, 0, 1 * DAY, MARK_RELOAD, "1s",   \
      "time",                                                                                                \
      "that a delivery's first retry waits at most, and at least half of; each further one twice as long")   \
    X(webhooks_backoff_max, "webhooks.backoff_max", DURATION, FOR_SERVER, 0, 1 * DAY, MARK_RELOAD, "1m",     \
      "time", "that no retry of a delivery waits longer than")                                               \
    X(webhooks_signing_secret, "webhooks.signing_secret", TEXT, FOR_SERVER, 0, 0, MARK_RELOAD | MARK_SECRET, \
      "", "secret",                                                                                          \
      "that deliveries are signed with unless their webhook has one of its own: whsec_ and base64, or any "  \
      "text; none: they are not signed")                                                                     \
    X(webhooks_disable_after, "webhooks.disable_after", DURATION, FOR_SERVER, 0, 365 * DAY, MARK_RELOAD,     \
      "5d", "time",                                                                                          \
      "after which a webhook is disabled when all its attempts have failed, and at least two deliveries "    \
      "were given up; 0: never")                                                                             \
    X(retention_deliveries, "retention.deliveries", DURATION, FOR_SERVER, 60 * S, 3650 * DAY, MARK_RELOAD,   \
      "7d", "time", "for which a delivery and its attempts are kept after its end")                          \
    X(outbound_allow_private, "outbound.allow_private", FLAG, FOR_SERVER, 0, 0, MARK_RELOAD, "false", "",    \
      "let callbacks and webhooks go to private, loopback and link-local addresses, too")                    \
    X(operator_listen, "operator.listen", TEXT, FOR_SERVER | FOR_CLIENT, 0, 0, MARK_RESTART,                 \
      "127.0.0.1:7070", "address",                                                                           \
      "where operators connect: a loopback address and port (0: any free one), or unix:PATH")                \
    X(operator_token, "operator.token", TEXT, FOR_SERVER | FOR_CLIENT, 0, 0, MARK_RESTART, "", "file",       \
      "that holds the operator's token; none: operator.token in --store-dir, made at the first start")       \
    X(operator_auth, "operator.auth", FLAG, FOR_SERVER, 0, 0, MARK_RESTART, "true", "",                      \
      "ask operators for the token; never on a unix socket, where the file's mode decides")                  \
    X(operator_connections, "operator.connections", COUNT, FOR_SERVER, 1, 4096, MARK_RESTART, "256",         \
      "connections", "operators connected at a time; one more is answered 503")                              \
    X(operator_idle, "operator.idle", DURATION, FOR_SERVER, 1 * S, 3600 * S, MARK_RELOAD, "30s", "time",     \
      "how long an operator's connection may say nothing, and a request may take to arrive")                 \
    X(guardian, "guardian", FLAG, FOR_SERVER, 0, 0, MARK_RESTART, "false", "",                               \
      "watch over the server process and start it again when it ends abnormally")                            \
    X(guardian_intensity, "guardian.intensity", INTENSITY, FOR_SERVER, 1, 3600, MARK_RESTART, "5/60s",       \
      "restarts/seconds",                                                                                    \
      "how often the guardian starts the server again before it gives up with status 70")                    \
    X(slice, "slice", DURATION, FOR_SERVER, 100 * US, 1 * S, MARK_RESTART, "1ms", "time",                    \
      "a handler computing longer is switched out")                                                          \
    X(runaway, "runaway", DURATION, FOR_SERVER, 1 * MS, 3600 * S, MARK_RESTART, "1s", "time",                \
      "a handler computing longer is ended; at least the slice")                                             \
    X(preemption, "preemption", FLAG, FOR_SERVER, 0, 0, MARK_RESTART, "true", "",                            \
      "switch out handlers that compute too long; off for debuggers")                                        \
    X(containment, "containment", FLAG, FOR_SERVER, 0, 0, MARK_RESTART, "true", "",                          \
      "a fault in an actor ends that actor only; off: it ends the process, with a core if enabled")          \
    X(actors_max, "actors.max", COUNT, FOR_SERVER, 1024, 16777214, MARK_RESTART, "4194304", "actors",        \
      "living actors per scheduler")                                                                         \
    X(message_memory, "message.memory", SIZE, FOR_SERVER, 16 * MIB, 1048576 * MIB, MARK_RESTART, "1GiB",     \
      "bytes", "of memory for messages, for each of the 11 sizes of them and for arenas")                    \
    X(adapters, "adapters", TEXT, FOR_SERVER, 0, 0, MARK_RESTART | MARK_LIST, "clock,descriptors", "names",  \
      "adapters that must be ready before the server is; clock, descriptors")                                \
    X(descriptors, "descriptors", COUNT, FOR_SERVER, 64, 1048576, MARK_RESTART, "1024", "descriptors",       \
      "file descriptors that the adapter of that name makes sure of")                                        \
    X(deduper_window, "deduper.window", COUNT, FOR_SERVER, 64, 4194304, MARK_RESTART, "65536", "keys",       \
      "message keys remembered; a new one beyond that pushes the oldest out")                                \
    X(deduper_expiry, "deduper.expiry", DURATION, FOR_SERVER, 1 * S, 7 * DAY, MARK_RESTART, "10m", "time",   \
      "how long a message key is remembered")                                                                \
    X(store_dir, "store.dir", TEXT, FOR_SERVER | FOR_CLIENT | FOR_DATA, 0, 0, MARK_RESTART, "coppice-data",  \
      "directory", "where everything that is kept lies; 'serve', 'restore' and 'replay' make it")            \
    X(store_map, "store.map", SIZE, FOR_SERVER, MIB, 67108864 * MIB, MARK_RESTART, "1GiB", "bytes",          \
      "of address space for the store to begin with; doubled when it is full")                               \
    X(store_map_max, "store.map.max", SIZE, FOR_SERVER, MIB, 67108864 * MIB, MARK_RESTART, "256GiB",         \
      "bytes", "the store never grows beyond; at least --store-map")                                         \
    X(store_step, "store.step", SIZE, FOR_SERVER, MIB / 16, 1024 * MIB, MARK_RESTART, "32MiB", "bytes",      \
      "by which the store's file is allocated ahead of its use")                                             \
    X(store_reserve, "store.reserve", SIZE, FOR_SERVER, MIB, 1024 * MIB, MARK_RESTART, "16MiB", "bytes",     \
      "of the store's file that only clean-up may use")                                                      \
    X(store_ledger, "store.ledger", COUNT, FOR_SERVER, 1024, 268435456, MARK_RESTART, "4194304", "keys",     \
      "idempotency keys alive at one time; 32 bytes of memory each")                                         \
    X(store_audits, "store.audits", COUNT, FOR_SERVER, 1000, 268435456, MARK_RESTART, "8000000", "entries",  \
      "of the audit log, which are kept for 400 days; half a KiB of the store each, with their events")      \
    X(store_view_age, "store.view.age", DURATION, FOR_SERVER, 100 * MS, 3600 * S, MARK_RESTART, "5s",        \
      "time", "an actor that holds a view of the store for longer is ended")                                 \
    X(store_op_timeout, "store.op_timeout", DURATION, FOR_SERVER, 10 * MS, 3600 * S, MARK_RELOAD, "5s",      \
      "time",                                                                                                \
      "that a request waits for the store; what hasn't been begun by then is not done, and it is answered "  \
      "503")                                                                                                 \
    X(store_record, "store.record", TEXT, FOR_SERVER, 0, 0, MARK_RESTART, "", "file",                        \
      "write every batch to this journal, too, for 'coppice replay'")                                        \
    X(log_level, "log.level", LEVEL, FOR_SERVER, 0, 0, MARK_RELOAD, "info", "",                              \
      "the least important lines that are written: debug, info, warn, error")                                \
    X(log_format, "log.format", CHOICE, FOR_SERVER, 0, 0, MARK_RELOAD, "json", "json|text",                  \
      "what a line of the log is: one JSON object, or words for people")                                     \
    X(trace, "trace", FLAG, FOR_SERVER, 0, 0, MARK_RESTART, "true", "",                                      \
      "export spans when the variables OTEL_EXPORTER_OTLP_* say where to")                                   \
    X(clock_offset, "clock.offset", DURATION, FOR_SERVER, 0, 36500 * DAY, MARK_RESTART, "0s", "time",        \
      "by which the server's clock is ahead; in dev only, for trying what takes days")                       \
    X(url, "url", TEXT, FOR_CLIENT, 0, 0, MARK_CLIENT, "", "URL",                                            \
      "where the operator's listener is, instead of --operator-listen: http://HOST:PORT or unix:PATH")       \
    X(token_file, "token.file", TEXT, FOR_CLIENT, 0, 0, MARK_CLIENT, "", "file",                             \
      "the operator's token, instead of --operator-token")                                                   \
    X(color, "color", FLAG, FOR(TREE) | FOR(TOP), 0, 0, MARK_CLIENT, "true", "",                             \
      "colours on a terminal; off as well with NO_COLOR or TERM=dumb")                                       \
    X(release, "release", FLAG, FOR(CONFIG_CHECK), 0, 0, MARK_CALL, "false", "",                             \
      "also refuse what must not be left to defaults in a release")                                          \
    X(effective, "effective", FLAG, FOR(CONFIG_SHOW), 0, 0, MARK_CALL, "false", "",                          \
      "what counts in the end, of flags, environment, file and defaults; it is what is shown anyway")        \
    X(source, "source", CHOICE, FOR(CONFIG_SHOW), 0, 0, MARK_CALL, "", "default|file|environment|flag",      \
      "only settings that come from there")                                                                  \
    X(reason, "reason", TEXT, FOR_CHANGE, 0, 0, MARK_CALL, "", "words", "why, for the audit log")            \
    X(dry_run, "dry.run", FLAG, FOR(KILL), 0, 0, MARK_CALL, "false", "",                                     \
      "do nothing; say what would be hit (-n)")                                                              \
    X(yes, "yes", FLAG,                                                                                      \
      FOR(KILL) | FOR(CHAOS_RUN) | FOR(KEYS_REVOKE) | FOR(TOKEN_REVOKE) | FOR(PRINCIPAL_ROTATE) |            \
          FOR(PRINCIPAL_REVOKE),                                                                             \
      0, 0, MARK_CALL, "false", "", "don't ask; needed where nobody can be asked (-y)")                      \
    X(input, "input", FLAG,                                                                                  \
      FOR(KILL) | FOR(CHAOS_RUN) | FOR(KEYS_REVOKE) | FOR(TOKEN_REVOKE) | FOR(PRINCIPAL_ROTATE) |            \
          FOR(PRINCIPAL_REVOKE),                                                                             \
      0, 0, MARK_CALL, "true", "", "ask where somebody can be asked; off: never, so that --yes is needed")   \
    X(quiet, "quiet", FLAG, FOR_CLIENT, 0, 0, MARK_CALL, "false", "",                                        \
      "say nothing beside the answer but what is wrong (-q)")                                                \
    X(output, "output", CHOICE, FOR_SHOWN, 0, 0, MARK_CALL, "table", "table|wide|json|jsonl",                \
      "how the answer is printed: for people, with long cells cut or whole; as JSON; as JSON with a line "   \
      "for each entry")                                                                                      \
    X(watch, "watch", DURATION, FOR_SHOWN | FOR(TREE), 0, 3600 * S, MARK_CALL, "0s", "time",                 \
      "print it again and again, this much later each time (less than 100 ms is 100 ms), until "             \
      "interrupted; 0: once")                                                                                \
    X(once, "once", FLAG, FOR(TOP), 0, 0, MARK_CALL, "false", "", "print one picture and end")               \
    X(follow, "follow", FLAG, FOR(EVENTS), 0, 0, MARK_CALL, "false", "",                                     \
      "and then those that come, until interrupted (-f)")                                                    \
    X(event, "event", TEXT, FOR(EVENTS), 0, 0, MARK_CALL, "", "name",                                        \
      "only these, such as actor.crash, or a family, such as supervisor.*")                                  \
    X(children, "children", COUNT, FOR(TREE), 1, 200, MARK_CALL, "100", "children",                          \
      "of each supervisor that are drawn, the newest ones")                                                  \
    X(limit, "limit", COUNT,                                                                                 \
      FOR(AUDIT_LIST) | FOR(KEYS_HISTORY) | FOR(PRINCIPAL_LIST) | FOR(PAUSES) | FOR(OUTBOX_DEAD), 1, 1000,   \
      MARK_CALL, "100", "entries", "that are printed")                                                       \
    X(until, "until", TEXT, FOR(PAUSE), 0, 0, MARK_CALL, "", "time",                                         \
      "when the pause ends by itself, such as 2026-11-18T13:00:00Z; without it somebody must resume")        \
    X(severity, "severity", CHOICE, FOR(AUDIT_LIST), 0, 0, MARK_CALL, "", "INFO|SEV3|SEV2|SEV1",             \
      "only entries of this severity")                                                                       \
    X(subject, "subject", TEXT, FOR(TOKEN_ISSUE), 0, 0, MARK_CALL, "", "name", "of a token: its sub")        \
    X(role, "role", CHOICE, FOR(TOKEN_ISSUE) | FOR(PRINCIPAL_CREATE), 0, 0, MARK_CALL, "",                   \
      "owner|infra-approver|approver|operator|submitter|viewer|service|agent",                               \
      "of tokens: what they may do, as 'coppice acl' shows")                                                 \
    X(projects, "projects", TEXT, FOR(TOKEN_ISSUE) | FOR(PRINCIPAL_CREATE), 0, 0, MARK_CALL, "*", "names",   \
      "of tokens: where they are good, with commas between them; *: everywhere")                             \
    X(agent_template, "agent.template", TEXT, FOR(PRINCIPAL_CREATE), 0, 0, MARK_CALL, "", "name",            \
      "of an agent: how long its tokens live at most, as agent_templates says")                              \
    X(tier, "tier", CHOICE, FOR(PRINCIPAL_CREATE), 0, 0, MARK_CALL, "", "A|B|C",                             \
      "of risk, that an agent works at; without it the shortest life of its template counts")                \
    X(replaces, "replaces", TEXT, FOR(TOKEN_ISSUE), 0, 0, MARK_CALL, "", "jti",                              \
      "of a token: the one that ends when it begins")                                                        \
    X(client, "client", TEXT, FOR(KEYS_ISSUE) | FOR(REPORT), 0, 0, MARK_CALL, "", "id",                      \
      "whose API key it is; of a report: whose jobs")                                                        \
    X(state, "state", CHOICE, FOR(REPORT), 0, 0, MARK_CALL, "",                                              \
      "CREATED|QUEUED|ASSIGNED|RUNNING|SUCCEEDED|FAILED|CANCELED", "only jobs in this state")                \
    X(outcome, "outcome", CHOICE, FOR(REPORT), 0, 0, MARK_CALL, "", "SUCCESS|FAILED|CANCELED",               \
      "only jobs that came to this")                                                                         \
    X(lifetime, "lifetime", DURATION, FOR(TOKEN_ISSUE), 1 * S, 8 * 3600 * S, MARK_CALL, "1h", "time",        \
      "of a token; 4h at most for an agent's")                                                               \
    X(base, "base", TEXT, FOR(CONTRACT_CHECK), 0, 0, MARK_CALL, "", "path",                                  \
      "an older version of a contract as JSON, or a folder of them: what changed must be compatible")        \
    X(print_catalogue, "print.catalogue", FLAG, FOR(CONFIG_CHECK), 0, 0, MARK_CALL, "false", "",             \
      "instead of the verdict, when it is good: the work kinds that jobs can have, as a table")              \
    X(strict, "strict", FLAG, FOR(CONTRACT_SHOW), 0, 0, MARK_CALL, "false", "",                              \
      "of asyncapi: such as strict parsers take it")                                                         \
    X(verify, "verify", FLAG, FOR(BACKUP), 0, 0, MARK_CALL, "false", "",                                     \
      "make nothing; read the backup in DIR and prove that it is whole")                                     \
    X(jsonl, "jsonl", FLAG, FOR(EXPORT), 0, 0, MARK_CALL, "false", "",                                       \
      "as JSON lines; must be given, because it is the only form there is so far")                           \
    X(client_url, "client.url", TEXT, FOR(CHAOS_RUN), 0, 0, MARK_CALL, "", "URL",                            \
      "where clients connect, instead of the first address of the server's http.listen: http://HOST:PORT "   \
      "or unix:PATH")                                                                                        \
    X(seed, "seed", TEXT, FOR(CHAOS_RUN) | FOR(SIM), 0, 0, MARK_CALL, "1", "number",                         \
      "from which it is drawn who is hit")                                                                   \
    X(scenario, "scenario", TEXT, FOR(SIM), 0, 0, MARK_CALL, "mixed", "name",                                \
      "which faults there are: mixed, calm, crashes, actors or net")                                         \
    X(full, "full", FLAG, FOR(CHAOS_RUN), 0, 0, MARK_CALL, "false", "",                                      \
      "everybody is hit, not only those that are drawn")                                                     \
    X(rate, "rate", COUNT, FOR(CHAOS_RUN), 1, 1000, MARK_CALL, "40", "requests", "of the load, a second")    \
    X(skip, "skip", TEXT, FOR(CHAOS_RUN), 0, 0, MARK_CALL, "", "names",                                      \
      "of scenarios that all leaves out, with commas between them")                                          \
    X(control, "control", CHOICE, FOR(CHAOS_RUN), 0, 0, MARK_CALL, "",                                       \
      "script|process|contained|returned|answered|served|ready|jobs|bounded",                                \
      "beside the scenario do what this check must notice; 0 is the status when it has")                     \
    X(report_dir, "report.dir", TEXT, FOR(CHAOS_RUN), 0, 0, MARK_CALL, "", "directory",                      \
      "where each report is written, too, as SCENARIO.json and SCENARIO.txt")                                \
    X(json, "json", FLAG,                                                                                    \
      FOR_CLIENT | FOR(CHAOS_LIST) | FOR(CONFIG_CHECK) | FOR(CONFIG_SHOW) | FOR(CONTRACT_CHECK) |            \
          FOR(CONTRACT_SHOW) | FOR(ACL) | FOR(TOPOLOGY) | FOR(VERSION) | (FOR_DATA & ~FOR(EXPORT)),          \
      0, 0, MARK_CALL, "false", "", "print JSON")

/* What a specification calls a setting, where its own name says the unit and its value is a whole number. As good as the setting's
 * own name: as a flag, as a variable, as a key of the file. X("key", field, ns or bytes that one is) */
#define OTHER_NAMES(X)                                                 \
    X("auth.bootstrap_window_s", auth_bootstrap_window, S)             \
    X("auth.key_ttl_days", auth_key_lifetime, DAY)                     \
    X("http.request_timeout_ms", http_request_timeout, MS)             \
    X("limits.client_quota_window_s", limits_client_quota_window, S)   \
    X("limits.max_body_bytes", limits_max_body, 1)                     \
    X("limits.max_job_payload_bytes", limits_max_job_payload, 1)       \
    X("limits.max_runtime_ms", limits_max_runtime, MS)                 \
    X("retention.deliveries_days", retention_deliveries, DAY)          \
    X("retention.jobs_days", retention_jobs, DAY)                      \
    X("retention.revoked_keys_days", retention_revoked_keys, DAY)      \
    X("retry.backoff_base_ms", retry_backoff_base, MS)                 \
    X("retry.backoff_max_ms", retry_backoff_max, MS)                   \
    X("storage.op_timeout_ms", store_op_timeout, MS)                   \
    X("webhooks.backoff_base_ms", webhooks_backoff_base, MS)           \
    X("webhooks.backoff_max_ms", webhooks_backoff_max, MS)             \
    X("webhooks.timeout_ms", webhooks_timeout, MS)                     \
    X("workers.heartbeat_interval_ms", workers_heartbeat_interval, MS) \
    X("workers.lease_timeout_ms", workers_lease_timeout, MS)           \
    X("workers.poll_interval_ms", workers_poll_interval, MS)

/* Keys of the file of which there is one per name, with a whole number each; no flags, no variables. A part in capitals
 * stands for a name: CLIENT for a client's id, TIER for A, B or C, any other for up to FAMILY_NAME_MAX letters, digits, '-'
 * and '_'. X(ID, "key", min, max, marks, "unit", prose) */
#define FAMILIES(X)                                                                                      \
    X(CLIENT_LIMIT, "limits.clients.CLIENT.requests_per_minute", 1, LIMITER_QUOTA_MAX, MARK_RELOAD,      \
      "requests", "of one client a minute, instead of limits.requests_per_minute")                       \
    X(AGENT_TEMPLATE, "agent_templates.TEMPLATE.max_token_seconds.TIER", 1, AGENT_TOKEN_S, MARK_RESTART, \
      "seconds", "that a token of an agent of this template and tier may live, instead of 14400 (CTL-081)")

enum option_family {
#define X(id, ...) FAMILY_##id,
    FAMILIES(X)
#undef X
        FAMILY_COUNT
};
#define FAMILY_NAME_MAX  64u
#define FAMILY_NAMES_MAX 2u

enum option_position {
#define X(field, ...) OPTION_##field,
    OPTIONS(X)
#undef X
        OPTION_COUNT
};

enum {
#define X(key, ...) +1
    OTHER_COUNT = 0 OTHER_NAMES(X)
#undef X
};

/* X(ID, "name"), the least important first. */
#define SOURCES(X)                \
    X(DEFAULT, "default")         \
    X(FILE, "file")               \
    X(ENVIRONMENT, "environment") \
    X(FLAG, "flag")

enum source_kind {
#define X(id, name) SOURCE_##id,
    SOURCES(X)
#undef X
        SOURCE_COUNT
};
const char *source_name(enum source_kind kind);

struct source {
    enum source_kind kind;
    uint32_t line;    /* of the file, from 1 on */
    const char *file; /* borrowed; NULL unless kind is SOURCE_FILE */
};

struct options {
#define X(field, key, kind, ...) OPTION_KIND_##kind field;
    OPTIONS(X)
#undef X
    enum command command;
    const char *argument; /* of a command that takes one; never empty */
    const char *topic;    /* of help: a command's name, or the first word of several; or NULL */
    struct source sources[OPTION_COUNT];
    bool
        call_refused; /* what was refused with EXIT_CONFIG is an option of this call (MARK_CALL), and no setting */
};

/* A row, for those that list them all. */
struct option {
    const char *key;
    enum option_kind kind;
    unsigned marks;
    uint64_t commands;
    uint64_t min, max;
    const char *preset, *unit, *prose;
    size_t offset;
};
extern const struct option option_table[OPTION_COUNT];

struct option_other {
    const char *key;
    const struct option *option;
    uint64_t unit;
};
extern const struct option_other option_others[OTHER_COUNT];
const struct option_other *option_other_of(const struct option *o); /* NULL: it has only its own */
/* "a whole number from 1 to 30" */
void option_other_right(const struct option_other *other, char *text, size_t size);

#define OPTION_NAME_SIZE  56u
#define OPTION_VALUE_SIZE 256u /* of a shown value; a longer one is cut */
/* operator.listen -> --operator-listen, and COPPICE_OPERATOR_LISTEN */
void option_flag(const struct option *o, char name[OPTION_NAME_SIZE]);
void option_variable(const struct option *o, char name[OPTION_NAME_SIZE]);
/* Where its value comes from, as the beginning of a sentence: "--operator-listen" (also of a default), "COPPICE_STORE_DIR",
 * "coppice.json:3: tls.key". */
#define OPTION_PLACE_SIZE 640u
void option_place(enum option_position position, const struct options *options, char text[OPTION_PLACE_SIZE]);
/* What would be right, as the end of a sentence that begins "it must be". */
void option_right(const struct option *o, char *text, size_t size);
/* A key of the file. Those of MARK_CALL are none. */
bool option_is_setting(const struct option *o);
/* The value as text, in the form that it could be given in; *** for a secret that is set. */
void option_show(const struct option *o, const struct options *options, char text[OPTION_VALUE_SIZE]);
/* A key of a family, and the names in it, as parts of the key. */
struct option_named {
    enum option_family family;
    struct span names[FAMILY_NAMES_MAX];
};
bool option_named(const char *key, struct option_named *ret);
struct option_family_row {
    const char *key, *unit, *prose;
    uint64_t min, max;
    unsigned marks;
};
extern const struct option_family_row option_families[FAMILY_COUNT];
/* Both hold the same value. */
bool option_same(const struct option *o, const struct options *a, const struct options *b);

/* The value, and where it comes from. */
void option_copy(const struct option *o, struct options *to, const struct options *from);

const char *command_name(enum command command);
const char *command_argument(enum command command);
const char *command_prose(enum command command);

struct file; /* config/file.h */

/* 0, or the exit status to leave with and why. `environment` is NULL-terminated, as environ. No file is looked at. */
int options_parse(struct options *ret_options, int argc, char *const argv[], char *const environment[],
                  char *ret_text, size_t text_size);
/* The same with what was read from files (NULL: nothing). */
int options_parse_with(const struct file *file, struct options *ret_options, int argc, char *const argv[],
                       char *const environment[], char *ret_text, size_t text_size);
/* The same, but an entry of the file that can't be used is left out. The first of them is told in `complaint`, unless something
 * stands there already. */
int options_parse_forgiving(const struct file *file, struct options *ret_options, int argc,
                            char *const argv[], char *const environment[], char *ret_text, size_t text_size,
                            char *complaint, size_t complaint_size);
/* Of what is known without the file: command, config, topic; what the values mean together isn't looked at. */
int options_peek(struct options *ret_options, int argc, char *const argv[], char *const environment[],
                 char *ret_text, size_t text_size);
/* CTL-068: plain HTTP reaches other machines in dev only, or behind a proxy that is trusted. False: a sentence about what is
 * called `name` and listens at `where`. */
bool options_plain_allowed(const struct options *options, const char *name, const char *where, char *ret_text,
                           size_t text_size);
/* What is allowed and still probably wrong: a sentence each. */
void options_warn(const struct options *options, void (*each)(void *context, const char *sentence),
                  void *context);

/* What the command of this name does and takes; of all that begin with this word; the overview when topic is NULL. */
void options_write_help(struct json_sink *sink, const char *topic);

const char *log_level_name(enum log_level level);
/* 1h30m, in ns; the whole text or nothing. */
bool option_duration(const char *text, uint64_t *ret_ns);
bool log_level_of(const char *name, enum log_level *ret_level);

#endif
