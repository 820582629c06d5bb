#include "config/topology.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "actors/adapters.h"
#include "actors/bus.h"
#include "actors/deduper.h"
#include "actors/queues.h"
#include "actors/registry.h"
#include "actors/outbound.h"
#include "actors/relay.h"
#include "actors/shard.h"
#include "actors/worker.h"
#include "actors/fetch.h"
#include "config/notify.h"
#include "config/signals.h"
#include "http/api_key_auth.h"
#include "http/keyring.h"
#include "http/listener.h"
#include "http/otlp.h"
#include "runtime/telemetry.h"
#include "store/keeper.h"
#include "store/writer.h"

/* ---- crash policy (section 5 of the contract; the rows of the seed first) ---- */

static const struct topology_failure boot_config = {
    .mode = "Runtime boot config invalid (missing required adapter/plugin/runtime config)",
    .class = "fatal",
    .handling = "Fail fast during startup, return typed config error.",
    .action = "Stop subtree; propagate crash to root startup path.",
    .event = "failure.boot_config",
};

static const struct topology_failure adapter_init = {
    .mode = "Adapter initialization fails in Runtime.init/1",
    .class = "fatal",
    .handling = "Do not retry in-process; require config/operator fix.",
    .action = "Runtime child exits; root restarts per intensity, then fails.",
    .event = "failure.adapter_init",
};

static const struct topology_failure listener_disconnect = {
    .mode = "Channel listener transient disconnect or timeout",
    .class = "recoverable",
    .handling = "Retry with bounded backoff and jitter; keep instance available where possible.",
    .action = "Restart failed child only (:one_for_one).",
    .event = "failure.listener_disconnect",
};

static const struct topology_failure outbound_provider = {
    .mode = "Outbound provider rate-limit / 5xx / timeout",
    .class = "recoverable",
    .handling = "Retry with bounded attempts; preserve idempotency key and classify final disposition.",
    .action = "Restart worker if crashed; do not escalate cross-partition.",
    .event = "failure.outbound_provider",
};

static const struct topology_failure poison_message = {
    .mode = "Poison message / invalid payload in ingest or outbound serialization",
    .class = "degraded",
    .handling = "Quarantine/drop item, emit dead-letter/audit event, continue queue.",
    .action = "Worker remains alive; no subtree restart required.",
    .event = "failure.poison_message",
};

static const struct topology_failure policy_timeout = {
    .mode = "Policy/security module timeout with permissive fallback configured",
    .class = "degraded",
    .handling = "Apply configured fallback (deny or allow_with_flag) and mark for review.",
    .action = "Keep pipeline running; no supervisor escalation.",
    .event = "failure.policy_timeout",
};

static const struct topology_failure restart_exhausted = {
    .mode = "Repeated startup failures exceed domain restart intensity",
    .class = "fatal",
    .handling = "Escalate to domain owner; require manual/operator intervention.",
    .action = "Domain supervisor terminates; root handles according to topology matrix.",
    .event = "failure.restart_exhausted",
};

/* Two modes that the seed's table leaves out, because its platform contains them without saying so. */

static const struct topology_failure actor_fault = {
    .mode = "Actor trap, failed assertion, overrun or quota",
    .class = "recoverable",
    .handling =
        "Contain: release what the actor owned, tell its links and monitors, keep signal and backtrace.",
    .action = "Restart failed child only (one_for_one); its init rebuilds what it kept.",
    .event = "actor.crash",
};

static const struct topology_failure store_commit = {
    .mode = "Failed commit: the disk refused a write or a sync",
    .class = "fatal",
    .handling = "Acknowledge nothing more, say why, end the process; recovery syncs before the first write.",
    .action =
        "The writer abandons the process with status 74; its service manager or guardian starts it again.",
    .event = "store.state",
};

static const struct topology_failure store_full = {
    .mode = "Full disk or full map",
    .class = "degraded",
    .handling = "Refuse what isn't clean-up; reads go on, writes come back by themselves with the space.",
    .action = "Nobody restarts.",
    .event = "store.state",
};

static const struct topology_failure request_crash = {
    .mode = "Crash in the handler of a request",
    .class = "degraded",
    .handling = "Close that connection; the client sees a broken connection and nothing else changes.",
    .action = "Temporary child: not restarted, not counted.",
    .event = "actor.crash",
};

/* ---- SLO baselines (section 6 of the contract) ---- */

static const struct topology_slo ingest_latency = {
    .capability = "Ingest decision latency",
    .sli = "p95 end-to-end ingest latency (ingest_latency_ms)",
    .metric = "ingest_latency_ms",
    .target = "<= 100ms",
    .thresholds = "warn > 75ms; critical > 100ms",
    .event = "ingest.completed",
};

static const struct topology_slo enqueue_latency = {
    .capability = "Outbound enqueue latency",
    .sli = "p95 enqueue latency (outbound_enqueue_ms)",
    .metric = "outbound_enqueue_ms",
    .target = "<= 50ms",
    .thresholds = "warn > 40ms; critical > 50ms",
    .event = "outbound.enqueued",
};

static const struct topology_slo delivery_reliability = {
    .capability = "Outbound delivery reliability",
    .sli = "success ratio over 5m window (delivery_success_ratio)",
    .metric = "delivery_success_ratio",
    .target = ">= 99.5%",
    .thresholds = "warn < 99.7%; critical < 99.5%",
    .event = "outbound.result",
};

static const struct topology_slo reconnect_recovery = {
    .capability = "Instance reconnect recovery",
    .sli = "p95 reconnect time after disconnect (reconnect_mttr_ms)",
    .metric = "reconnect_mttr_ms",
    .target = "<= 60_000ms",
    .thresholds = "warn > 30_000ms; critical > 60_000ms",
    .event = "instance.connected",
};

static const struct topology_slo queue_pressure = {
    .capability = "Queue pressure safety",
    .sli = "queue occupancy ratio (queue_depth / queue_capacity)",
    .metric = "queue_depth / queue_capacity",
    .target = "< 0.70 steady-state",
    .thresholds = "warn >= 0.70; degraded >= 0.85; shed >= 0.95",
    .event = "pressure.transition",
};

static const struct topology_slo crash_containment = {
    .capability = "Crash containment",
    .sli = "restart cascade count per incident (cascade_count)",
    .metric = "cascade_count",
    .target = "0 cross-domain cascades",
    .thresholds = "critical >= 1",
    .event = "supervisor.escalation",
};

/* ---- the rows, in start order ---- */

/* Columns that all children of the root's own domain share (first row of the matrix). */
#define UNDER_ROOT                                                                                    \
    .parent = "root", .owner = "root supervisor", .supervisor = "root supervisor", .max_restarts = 3, \
    .max_seconds = 10

const struct topology_row topology_rows[] = {
    {
        .name = "root",
        .parent = "",
        .kind = TOPOLOGY_SUPERVISOR,
        .subsystem = "Root runtime tree (Registry.*, signal bus, dynamic supervisors, Deduper, Runtime)",
        .intent = "Keep global runtime alive; repeated root boot failures are fatal.",
        .owner = "root supervisor",
        .supervisor = "root supervisor",
        .max_restarts = 3,
        .max_seconds = 10,
        .partition_key = "none",
        .scaling_rule = "One per process; nothing hot runs in it.",
        .failures = {&boot_config, &restart_exhausted},
        .slos = {&crash_containment},
        .events = {"supervisor.restart"},
    },
    {
        .name = "process",
        .parent = "root",
        .kind = TOPOLOGY_SUPERVISOR,
        .subsystem = "Process: signals of the system",
        .intent = "Its death delays a signal; the next one is heard.",
        .owner = "process supervisor",
        .supervisor = "process supervisor",
        .max_restarts = 10,
        .max_seconds = 60,
        .partition_key = "none: one process",
        .scaling_rule = "One actor.",
        .failures = {&boot_config, &actor_fault, &restart_exhausted},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"supervisor.restart"},
    },
    {
        .name = SIGNALS_NAME,
        .parent = "process",
        .kind = TOPOLOGY_WORKER,
        .subsystem = "What SIGTERM, SIGHUP and SIGUSR1 ask for",
        .intent = "A second SIGTERM ends the process without it.",
        .owner = "process supervisor",
        .supervisor = "process supervisor",
        .max_restarts = 10,
        .max_seconds = 60,
        .partition_key = "none: one process",
        .scaling_rule = "One actor, fed by a pipe that outlives it.",
        .failures = {&actor_fault},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"actor.exit", "actor.crash"},
        .class = &signals_class,
    },
    {
        .name = "telemetry",
        .parent = "root",
        .kind = TOPOLOGY_SUPERVISOR,
        .subsystem = "Telemetry, log and trace exporters",
        .intent = "A blocked sink or a dead exporter loses lines, never service.",
        .owner = "telemetry supervisor",
        .supervisor = "telemetry supervisor",
        .max_restarts = 15,
        .max_seconds = 60,
        .partition_key = "exporter name",
        .scaling_rule = "One actor per exporter; counters are per scheduler and merged when read.",
        .failures = {&actor_fault, &restart_exhausted},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"supervisor.restart"},
    },
    {
        .name = "telemetry.otlp",
        .parent = "telemetry",
        .kind = TOPOLOGY_WORKER,
        .subsystem = "Trace exporter: OTLP over HTTP",
        .intent = "A collector that is gone costs spans, never a request.",
        .owner = "telemetry supervisor",
        .supervisor = "telemetry supervisor",
        .max_restarts = 15,
        .max_seconds = 60,
        .partition_key = "none: one exporter",
        .scaling_rule =
            "Takes from one bounded ring per scheduler; what does not fit is dropped and counted.",
        .failures = {&actor_fault},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"actor.exit", "actor.crash"},
        .class = &otlp_class,
    },
    {
        .name = "outside",
        .parent = "root",
        .kind = TOPOLOGY_SUPERVISOR,
        .subsystem = "Outside: what goes out by HTTP",
        .intent = "A receiver that hangs or lies costs its own request.",
        .owner = "outside supervisor",
        .supervisor = "outside supervisor",
        .max_restarts = 15,
        .max_seconds = 60,
        .partition_key = "host",
        .scaling_rule = "Bounded at a time, per host and waiting.",
        .failures = {&actor_fault, &restart_exhausted},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"supervisor.restart"},
    },
    {
        .name = FETCH_NAME,
        .parent = "outside",
        .kind = TOPOLOGY_WORKER,
        .subsystem = "HTTP client: key sets, trace exports",
        .intent = "Its death fails what it was at; who asked asks again.",
        .owner = "outside supervisor",
        .supervisor = "outside supervisor",
        .max_restarts = 15,
        .max_seconds = 60,
        .partition_key = "host",
        .scaling_rule =
            "FETCH_MAX requests at a time, FETCH_HOST_MAX of one host, FETCH_TIMED_MAX of webhooks.",
        .failures = {&actor_fault},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"actor.exit", "actor.crash"},
        .class = &fetch_class,
    },
    {
        .name = "store",
        .parent = "root",
        .kind = TOPOLOGY_SUPERVISOR,
        .subsystem = "Store: the writer and its readers",
        .intent = "Nothing acknowledged is lost; an actor that dies releases its read view.",
        .owner = "store supervisor",
        .supervisor = "store supervisor",
        .max_restarts = 3,
        .max_seconds = 10,
        .partition_key = "none: one writer, readers per scheduler",
        .scaling_rule = "Commits carry everything that arrived while the last one was synced.",
        .failures = {&boot_config, &actor_fault, &restart_exhausted},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"supervisor.restart"},
    },
    {
        .name = "store.writer",
        .parent = "store",
        .kind = TOPOLOGY_WORKER,
        .subsystem = "The one place where anything is written",
        .intent = "Its death loses nothing: what was answered is on the disk, the rest is asked again.",
        .owner = "store supervisor",
        .supervisor = "store supervisor",
        .max_restarts = 3,
        .max_seconds = 10,
        .partition_key = "none: one writer",
        .scaling_rule = "One per data directory, on a scheduler of its own.",
        .scheduler = SPAWN_DEDICATED(0),
        .failures = {&store_commit, &store_full, &actor_fault},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"store.commit", "store.state", "actor.exit", "actor.crash"},
        .class = &writer_class,
    },
    {
        .name = "store.keeper",
        .parent = "store",
        .kind = TOPOLOGY_WORKER,
        .subsystem = "Retention, ages of views, gauges and the scrub",
        .intent = "Its death delays cleaning up and nothing else.",
        .owner = "store supervisor",
        .supervisor = "store supervisor",
        .max_restarts = 3,
        .max_seconds = 10,
        .partition_key = "none: one keeper",
        .scaling_rule = "One per data directory; bounded work each second.",
        .failures = {&actor_fault},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"store.damaged", "store.view_expired", "actor.exit", "actor.crash"},
        .class = &keeper_class,
    },
    {
        .name = "registry.rooms",
        UNDER_ROOT,
        .kind = TOPOLOGY_WORKER,
        .subsystem = "Index of living room actors",
        .intent = "Its death delays listings; rooms neither notice nor move.",
        .partition_key = "room_id",
        .scaling_rule = "Reads the runtime's names; finding one room does not pass through it.",
        .failures = {&actor_fault},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"actor.exit", "actor.crash"},
        .class = &registry_class,
        .args = &(const struct registry_args){.prefix = "room:"},
        .args_size = sizeof(struct registry_args),
    },
    {
        .name = "registry.agents",
        UNDER_ROOT,
        .kind = TOPOLOGY_WORKER,
        .subsystem = "Index of living agent workers",
        .intent = "Its death delays listings; agents neither notice nor move.",
        .partition_key = "agent_id",
        .scaling_rule = "Reads the runtime's names; finding one agent does not pass through it.",
        .failures = {&actor_fault},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"actor.exit", "actor.crash"},
        .class = &registry_class,
        .args = &(const struct registry_args){.prefix = "agent:"},
        .args_size = sizeof(struct registry_args),
    },
    {
        .name = "registry.instances",
        UNDER_ROOT,
        .kind = TOPOLOGY_WORKER,
        .subsystem = "Index of living instance actors",
        .intent = "Its death delays listings; instances neither notice nor move.",
        .partition_key = "instance_id",
        .scaling_rule = "Reads the runtime's names; finding one instance does not pass through it.",
        .failures = {&actor_fault},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"actor.exit", "actor.crash"},
        .class = &registry_class,
        .args = &(const struct registry_args){.prefix = "instance:"},
        .args_size = sizeof(struct registry_args),
    },
    {
        .name = "bus",
        UNDER_ROOT,
        .kind = TOPOLOGY_WORKER,
        .subsystem = "Signal bus: in-process topics",
        .intent = "Its death loses what waits in its mailbox; subscriptions outlive it.",
        .partition_key = "topic",
        .scaling_rule =
            "Fan-out only; hot paths send to their partition directly. Subscribers per topic are bounded.",
        .failures = {&actor_fault},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"actor.exit", "actor.crash"},
        .class = &bus_class,
    },
    {
        .name = "scheduler",
        .parent = "root",
        .kind = TOPOLOGY_SUPERVISOR,
        .subsystem = "Scheduler shards: due times, leases, retries",
        .intent = "A shard's crash delays the jobs of that shard only.",
        .owner = "scheduler supervisor",
        .supervisor = "scheduler supervisor",
        .max_restarts = 30,
        .max_seconds = 60,
        .partition_key = "hash(job_id)",
        .scaling_rule = "partition_count >= scheduler thread count",
        .failures = {&actor_fault, &restart_exhausted},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"supervisor.restart"},
    },
    {
        .name = "scheduler:<shard>",
        .parent = "scheduler",
        .kind = TOPOLOGY_WORKER,
        .subsystem = "A shard: what of its jobs is due",
        .intent = "A shard's crash delays the jobs of that shard only.",
        .owner = "scheduler supervisor",
        .supervisor = "scheduler supervisor",
        .max_restarts = 30,
        .max_seconds = 60,
        .partition_key = "hash(job_id)",
        .scaling_rule = "partition_count >= scheduler thread count",
        .failures = {&actor_fault},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"job.transition", "actor.exit", "actor.crash"},
        .partitions = JOB_SHARDS,
        .class = &shard_class,
    },
    {
        .name = QUEUES_NAME,
        .parent = "scheduler",
        .kind = TOPOLOGY_WORKER,
        .subsystem = "Queues: pauses that end, and what comes back from them",
        .intent = "Its death delays the end of a pause; no job waits for it otherwise.",
        .owner = "scheduler supervisor",
        .supervisor = "scheduler supervisor",
        .max_restarts = 30,
        .max_seconds = 60,
        .partition_key = "none: one process",
        .scaling_rule = "One actor; each of its commands is bounded.",
        .failures = {&actor_fault},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"actor.exit", "actor.crash"},
        .class = &queues_class,
    },
    {
        .name = "workers",
        .parent = "root",
        .kind = TOPOLOGY_SUPERVISOR,
        .subsystem = "Workers: claim, run, heartbeat, finish",
        .intent = "A worker's crash ends one attempt; its lease expires and the job goes on.",
        .owner = "worker supervisor",
        .supervisor = "worker supervisor",
        .max_restarts = 30,
        .max_seconds = 60,
        .partition_key = "worker slot",
        .scaling_rule = "Slots are configured; one actor per slot.",
        .failures = {&actor_fault, &restart_exhausted},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"supervisor.restart"},
    },
    {
        .name = "worker:<slot>",
        .parent = "workers",
        .kind = TOPOLOGY_WORKER,
        .subsystem = "A slot: runs one job at a time",
        .intent = "A worker's crash ends one attempt; its lease expires and the job goes on.",
        .owner = "worker supervisor",
        .supervisor = "worker supervisor",
        .max_restarts = 30,
        .max_seconds = 60,
        .partition_key = "worker slot",
        .scaling_rule = "Slots are configured; one actor per slot.",
        .failures = {&actor_fault},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"job.transition", "actor.exit", "actor.crash"},
        .partitions = 1, /* workers.count times workers.max_concurrency */
        .class = &worker_class,
    },
    {
        .name = "runs",
        .parent = "root",
        .kind = TOPOLOGY_DYNAMIC,
        .subsystem = "Runs and projector partitions",
        .intent = "A run's crash is isolated per run_id; its log tells it where it was.",
        .owner = "run supervisor",
        .supervisor = "run supervisor",
        .max_restarts = 20,
        .max_seconds = 60,
        .partition_key = "run_id",
        .scaling_rule = "Dynamic child per active run.",
        .failures = {&actor_fault, &restart_exhausted},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"supervisor.restart"},
    },
    {
        .name = "control",
        .parent = "root",
        .kind = TOPOLOGY_DYNAMIC,
        .subsystem = "Control: policy, approvals and reminders, budgets, kill switches",
        .intent = "A project's control crash blocks no other project and starts nothing unapproved.",
        .owner = "control supervisor",
        .supervisor = "control supervisor",
        .max_restarts = 15,
        .max_seconds = 60,
        .partition_key = "project_id",
        .scaling_rule = "Dynamic child per active project.",
        .failures = {&actor_fault, &policy_timeout, &restart_exhausted},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"supervisor.restart"},
    },
    {
        .name = "rooms",
        .parent = "root",
        .kind = TOPOLOGY_DYNAMIC,
        .subsystem = "Room domain (RoomServer)",
        .intent = "Room crashes are isolated per room_id.",
        .owner = "room supervisor",
        .supervisor = "room supervisor",
        .max_restarts = 20,
        .max_seconds = 60,
        .partition_key = "room_id",
        .scaling_rule = "Dynamic supervisor child per room.",
        .failures = {&actor_fault, &poison_message, &restart_exhausted},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"supervisor.restart"},
    },
    {
        .name = "agents",
        .parent = "root",
        .kind = TOPOLOGY_DYNAMIC,
        .subsystem = "Agent domain (agent workers/runners)",
        .intent = "Agent failures are isolated per agent worker set.",
        .owner = "agent supervisor",
        .supervisor = "agent supervisor",
        .max_restarts = 10,
        .max_seconds = 60,
        .partition_key = "agent_id",
        .scaling_rule = "One worker set per registered agent.",
        .failures = {&actor_fault, &poison_message, &restart_exhausted},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"supervisor.restart"},
    },
    {
        .name = "instances",
        .parent = "root",
        .kind = TOPOLOGY_DYNAMIC,
        .subsystem = "Instance domain (InstanceServer + channel listeners)",
        .intent = "Channel instance crashes are isolated per instance_id.",
        .owner = "instance supervisor",
        .supervisor = "instance supervisor",
        .max_restarts = 6,
        .max_seconds = 30,
        .partition_key = "instance_id",
        .scaling_rule = "Dynamic supervisor child subtree per instance.",
        .failures = {&listener_disconnect, &actor_fault, &restart_exhausted},
        .slos = {&reconnect_recovery, &crash_containment},
        .events = {"supervisor.restart"},
    },
    {
        .name = "instance:<instance_id>",
        .parent = "instances",
        .kind = TOPOLOGY_SUPERVISOR,
        .subsystem = "Per-instance subtree (InstanceServer, listener children)",
        .intent = "Listener/poller failures restart locally before escalations.",
        .owner = "instance subtree supervisor",
        .supervisor = "instance subtree supervisor, started by the instance supervisor",
        .max_restarts = 5,
        .max_seconds = 30,
        .partition_key = "instance_id",
        .scaling_rule =
            "One subtree per channel instance: server, poller, sender, listener as its channel needs.",
        .failures = {&listener_disconnect, &actor_fault, &restart_exhausted},
        .slos = {&reconnect_recovery, &crash_containment},
        .events = {"supervisor.restart"},
    },
    {
        .name = "deduper",
        UNDER_ROOT,
        .kind = TOPOLOGY_WORKER,
        .subsystem = "Duplicate detection of inbound messages",
        .intent = "Its death forgets the window of recent keys and nothing else.",
        .partition_key = "hash(instance_id, message id)",
        .scaling_rule = "One bounded window per process; a key costs 40 bytes.",
        .failures = {&actor_fault},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"actor.exit", "actor.crash"},
        .class = &deduper_class,
    },
    {
        .name = "runtime",
        UNDER_ROOT,
        .kind = TOPOLOGY_WORKER,
        .subsystem = "Adapter set-up and shared runtime state",
        .intent = "An adapter that cannot start stops the process instead of half a service.",
        .partition_key = "adapter name",
        .scaling_rule = "One per process; adapters are set up once at start.",
        .failures = {&boot_config, &adapter_init},
        .slos = {&crash_containment},
        .events = {"actor.exit", "actor.crash"},
        .class = &adapters_class,
    },
    {
        .name = "ingest",
        .parent = "root",
        .kind = TOPOLOGY_DYNAMIC,
        .subsystem = "Ingest policy workers (Story 04+)",
        .intent = "A partition's crash keeps its queue; other partitions go on.",
        .owner = "ingest supervisor",
        .supervisor = "ingest supervisor",
        .max_restarts = 30,
        .max_seconds = 60,
        .partition_key = "hash(instance_id \":\" room_id)",
        .scaling_rule = "partition_count >= scheduler thread count, bounded queue per partition",
        .failures = {&poison_message, &policy_timeout, &actor_fault, &restart_exhausted},
        .slos = {&ingest_latency, &queue_pressure, &crash_containment},
        .events = {"supervisor.restart"},
    },
    {
        .name = "outbound",
        .parent = "root",
        .kind = TOPOLOGY_SUPERVISOR,
        .subsystem = "Outbound gateway domain (Story 03+)",
        .intent = "Partition workers can churn without cross-partition cascades.",
        .owner = "outbound gateway supervisor",
        .supervisor = "outbound gateway supervisor",
        .max_restarts = 30,
        .max_seconds = 60,
        .partition_key = "hash(instance_id \":\" external_room_id)",
        .scaling_rule = "partition_count >= 2 * scheduler thread count",
        .failures = {&outbound_provider, &poison_message, &actor_fault, &restart_exhausted},
        .slos = {&enqueue_latency, &delivery_reliability, &queue_pressure},
        .events = {"supervisor.restart"},
    },
    {
        .name = "webhooks:<partition>",
        .parent = "outbound",
        .kind = TOPOLOGY_WORKER,
        .subsystem = "Attempts of webhooks' and callbacks' deliveries",
        .intent = "A crash repeats what one partition had in its hands; no other receiver notices.",
        .owner = "outbound gateway supervisor",
        .supervisor = "outbound gateway supervisor",
        .max_restarts = 30,
        .max_seconds = 60,
        .partition_key = "hash(receiving host)",
        .scaling_rule =
            "16 partitions of lanes, one lane per host; windows per lane, results settled together.",
        .failures = {&outbound_provider, &poison_message, &actor_fault},
        .slos = {&delivery_reliability, &queue_pressure, &crash_containment},
        .events = {"outbound.result", "actor.exit", "actor.crash"},
        .partitions = DELIVERY_PARTITIONS,
        .class = &outbound_class,
    },
    {
        .name = "sessions",
        .parent = "root",
        .kind = TOPOLOGY_DYNAMIC,
        .subsystem = "Session routing domain (Story 06+)",
        .intent = "Route-partition failures stay local to shard.",
        .owner = "session manager supervisor",
        .supervisor = "session manager supervisor",
        .max_restarts = 15,
        .max_seconds = 60,
        .partition_key = "hash(session_key)",
        .scaling_rule = "partition_count >= 2 * scheduler thread count, a setting of its own",
        .failures = {&actor_fault, &restart_exhausted},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"supervisor.restart"},
    },
    {
        .name = "operations",
        .parent = "root",
        .kind = TOPOLOGY_SUPERVISOR,
        .subsystem = "Operations domain (Story 09+, Story 11+)",
        .intent = "Control-plane and replay failures must not crash ingest/outbound hot path.",
        .owner = "onboarding supervisor / replay supervisor",
        .supervisor = "feature-local supervisors under the root",
        .max_restarts = 10,
        .max_seconds = 60,
        .partition_key = "none: two feature-local supervisors",
        .scaling_rule = "Holds the exhaustion of onboarding and replay away from the root.",
        .failures = {&restart_exhausted},
        .slos = {&crash_containment},
        .events = {"supervisor.restart"},
    },
    {
        .name = "onboarding",
        .parent = "operations",
        .kind = TOPOLOGY_DYNAMIC,
        .subsystem = "Onboarding flows (Story 09+)",
        .intent = "A long-lived or crashed flow blocks no other flow.",
        .owner = "onboarding supervisor",
        .supervisor = "onboarding supervisor",
        .max_restarts = 10,
        .max_seconds = 60,
        .partition_key = "onboarding_id",
        .scaling_rule = "Dynamic child per active flow; optional shard pool for high cardinality.",
        .failures = {&actor_fault, &restart_exhausted},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"supervisor.restart"},
    },
    {
        .name = "replay",
        .parent = "operations",
        .kind = TOPOLOGY_DYNAMIC,
        .subsystem = "Dead-letter replay workers (Story 11+)",
        .intent = "Replay load must not starve live traffic.",
        .owner = "replay supervisor",
        .supervisor = "replay supervisor",
        .max_restarts = 10,
        .max_seconds = 60,
        .partition_key = "hash(dead_letter_id)",
        .scaling_rule = "Replay partitions independent from live ingest/outbound workers.",
        .failures = {&poison_message, &outbound_provider, &actor_fault, &restart_exhausted},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"supervisor.restart"},
    },
    {
        .name = "relay",
        .parent = "root",
        .kind = TOPOLOGY_SUPERVISOR,
        .subsystem = "Outbox relays and notification dispatch",
        .intent = "A relay's crash repeats deliveries of one key range, never reorders or loses them.",
        .owner = "relay supervisor",
        .supervisor = "relay supervisor",
        .max_restarts = 15,
        .max_seconds = 60,
        .partition_key = "outbox key",
        .scaling_rule = "Relays by outbox key range; order is kept per key.",
        .failures = {&outbound_provider, &poison_message, &actor_fault, &restart_exhausted},
        .slos = {&delivery_reliability, &queue_pressure, &crash_containment},
        .events = {"supervisor.restart"},
    },
    {
        .name = "relay:<partition>",
        .parent = "relay",
        .kind = TOPOLOGY_WORKER,
        .subsystem = "Deliveries from one partition of the outbox",
        .intent = "A relay's crash delays one partition; a row becomes its deliveries once all the same.",
        .owner = "relay supervisor",
        .supervisor = "relay supervisor",
        .max_restarts = 15,
        .max_seconds = 60,
        .partition_key = "outbox key",
        .scaling_rule = "One relay per partition of the outbox; commands carry what has come meanwhile.",
        .failures = {&poison_message, &actor_fault},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"actor.exit", "actor.crash"},
        .partitions = OUTBOX_PARTITIONS,
        .class = &relay_class,
    },
    {
        .name = "front",
        .parent = "root",
        .kind = TOPOLOGY_SUPERVISOR,
        .subsystem = "Front: listeners and connections",
        .intent = "A request that crashes its handler closes that connection and nothing else.",
        .owner = "front supervisor",
        .supervisor = "front supervisor",
        .max_restarts = 30,
        .max_seconds = 60,
        .partition_key = "connection",
        .scaling_rule = "One actor per connection.",
        .failures = {&request_crash, &actor_fault, &restart_exhausted},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"supervisor.restart"},
    },
    {
        .name = KEYRING_NAME,
        .parent = "front",
        .kind = TOPOLOGY_WORKER,
        .subsystem = "Keyring: signing keys, key sets, revocations",
        .intent = "Its death stops rotation for a moment; verifying goes on from what is in memory.",
        .owner = "front supervisor",
        .supervisor = "front supervisor",
        .max_restarts = 30,
        .max_seconds = 60,
        .partition_key = "none: one table, replaced whole",
        .scaling_rule = "Readers take no lock; one actor replaces the table.",
        .failures = {&actor_fault},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"actor.exit", "actor.crash"},
        .class = &keyring_class,
    },
    {
        .name = "api_keys",
        .parent = "front",
        .kind = TOPOLOGY_WORKER,
        .subsystem = "API keys: when each was last used",
        .intent = "Its death loses the last use of a minute, never a key.",
        .owner = "front supervisor",
        .supervisor = "front supervisor",
        .max_restarts = 30,
        .max_seconds = 60,
        .partition_key = "none: one actor",
        .scaling_rule = "Written at most once a minute and key; under pressure not at all.",
        .failures = {&actor_fault},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"actor.exit", "actor.crash"},
        .class = &api_key_uses_class,
    },
    {
        .name = TOPOLOGY_OPERATORS,
        .parent = "front",
        .kind = TOPOLOGY_DYNAMIC,
        .subsystem = "Connections of the operator's listener",
        .intent = "A connection's end is its client's business alone.",
        .owner = "operators supervisor",
        .supervisor = "operators supervisor",
        .max_restarts = 30,
        .max_seconds = 60,
        .partition_key = "connection",
        .scaling_rule =
            "Temporary child per connection, up to operator.connections; one more is answered 503.",
        .failures = {&request_crash},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"actor.exit", "actor.crash"},
    },
    {
        .name = "front.operator",
        .parent = "front",
        .kind = TOPOLOGY_WORKER,
        .subsystem = "The operator's listener",
        .intent = "Its death leaves connections alone; newcomers wait in the backlog until it is back.",
        .owner = "front supervisor",
        .supervisor = "front supervisor",
        .max_restarts = 30,
        .max_seconds = 60,
        .partition_key = "listening socket",
        .scaling_rule = "One per listening socket, which the process keeps over restarts.",
        .failures = {&actor_fault},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"actor.exit", "actor.crash"},
        .class = &listener_class,
    },
    {
        .name = TOPOLOGY_CLIENTS,
        .parent = "front",
        .kind = TOPOLOGY_SUPERVISOR,
        .subsystem = "The client port: listeners and connections of each scheduler",
        .intent = "What ends on one scheduler leaves the connections of the others alone.",
        .owner = "clients supervisor",
        .supervisor = "clients supervisor",
        .max_restarts = 30,
        .max_seconds = 60,
        .partition_key = "scheduler",
        .scaling_rule = "One listener per address and scheduler, with a supervisor of connections beside it.",
        .failures = {&request_crash, &actor_fault, &restart_exhausted},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"supervisor.restart"},
    },
    {
        .name = TOPOLOGY_CONNECTIONS ":<scheduler>",
        .parent = TOPOLOGY_CLIENTS,
        .kind = TOPOLOGY_DYNAMIC,
        .subsystem = "Connections of clients on one scheduler",
        .intent = "A connection's end is its client's business alone.",
        .owner = "connection supervisor",
        .supervisor = "connection supervisor",
        .max_restarts = 30,
        .max_seconds = 60,
        .partition_key = "connection",
        .scaling_rule =
            "Temporary child per connection, up to its share of http.connections; one more is answered 503.",
        .failures = {&request_crash},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"actor.exit", "actor.crash"},
    },
    {
        .name = "front.listener:<socket>",
        .parent = TOPOLOGY_CLIENTS,
        .kind = TOPOLOGY_WORKER,
        .subsystem = "A client listener",
        .intent = "Its death leaves connections alone; newcomers wait in the backlog until it is back.",
        .owner = "clients supervisor",
        .supervisor = "clients supervisor",
        .max_restarts = 30,
        .max_seconds = 60,
        .partition_key = "address and scheduler",
        .scaling_rule = "One per listening socket, which the process keeps over restarts.",
        .failures = {&actor_fault},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"actor.exit", "actor.crash"},
        .class = &listener_class,
    },
    {
        .name = "notify",
        .parent = "root",
        .kind = TOPOLOGY_WORKER,
        .subsystem = "Notifications to the service manager",
        .intent = "The last to start: when it runs, everything has. Without its pings the service manager "
                  "starts the process again.",
        .owner = "root supervisor",
        .supervisor = "root supervisor",
        .max_restarts = 3,
        .max_seconds = 10,
        .partition_key = "none: one process",
        .scaling_rule = "One actor, and one that counts on each scheduler.",
        .failures = {&actor_fault},
        .slos = {&queue_pressure, &crash_containment},
        .events = {"actor.exit", "actor.crash"},
        .class = &notify_class,
    },
};

const size_t topology_count = sizeof(topology_rows) / sizeof(*topology_rows);
STATIC_ASSERT(sizeof(topology_rows) / sizeof(*topology_rows) <= TOPOLOGY_ROWS_MAX,
              "boot has room for every row");

/* ---- rows by name ---- */

const struct topology_row *topology_find(const struct topology_row *rows, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i].name && strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

bool topology_per_key(const struct topology_row *row)
{
    return strchr(row->name, '<') != NULL;
}

/* ---- the review gate ---- */

/* Where the check stands and what it found; the first refusal stays. */
struct check {
    const struct topology_row *rows, *row;
    size_t count, position;
    char *text;
    size_t text_size;
    bool refused;
};

__attribute__((format(printf, 2, 3))) static void refuse(struct check *c, const char *format, ...)
{
    if (c->refused)
        return;
    c->refused = true;
    const char *name = c->row && c->row->name ? c->row->name : "";
    int used = snprintf(c->text, c->text_size, "topology row %zu \"%s\": ", c->position + 1, name);
    if (used < 0 || (size_t)used >= c->text_size)
        return;
    va_list list;
    va_start(list, format);
    vsnprintf(c->text + used, c->text_size - (size_t)used, format, list);
    va_end(list);
}

static bool empty(const char *text)
{
    return !text || !text[0];
}

/* field: how the reader calls it, right: what would be right. */
static void need_text(struct check *c, const char *field, const char *value, const char *right)
{
    if (empty(value))
        refuse(c, "%s is empty; it must name %s", field, right);
}

static void check_place(struct check *c)
{
    const struct topology_row *row = c->row;
    if (empty(row->name) || strlen(row->name) >= TOPOLOGY_NAME_MAX) {
        refuse(c, "name is \"%s\"; it must have 1 to %d bytes", row->name ? row->name : "",
               TOPOLOGY_NAME_MAX - 1);
        return;
    }
    if (topology_find(c->rows, c->position, row->name))
        refuse(c, "name is \"%s\", which an earlier row has; each subsystem has one row", row->name);
    if (c->position == 0) {
        if (!empty(row->parent))
            refuse(c, "parent is \"%s\"; the first row is the root and has none", row->parent);
        if (row->kind != TOPOLOGY_SUPERVISOR)
            refuse(c, "kind is %d; the root must be a supervisor (%d)", (int)row->kind, TOPOLOGY_SUPERVISOR);
        return;
    }
    const struct topology_row *parent =
        empty(row->parent) ? NULL : topology_find(c->rows, c->position, row->parent);
    if (!parent)
        refuse(c, "parent is \"%s\"; it must be the name of an earlier row", row->parent ? row->parent : "");
    else if (parent->kind == TOPOLOGY_WORKER)
        refuse(c, "parent is \"%s\", a worker; it must be a supervisor", row->parent);
    else if (parent->kind == TOPOLOGY_DYNAMIC && !topology_per_key(row))
        refuse(c, "parent is \"%s\", whose children come at run time; the name must hold the <key> of one",
               row->parent);
}

static void check_strategy(struct check *c)
{
    const struct topology_row *row = c->row;
    if ((unsigned)row->strategy >= STRATEGY_COUNT || row->strategy == DYNAMIC)
        refuse(c, "strategy is %d; it must be one_for_one, one_for_all or rest_for_one", (int)row->strategy);
    else if (row->strategy != ONE_FOR_ONE && empty(row->justification))
        refuse(c,
               "strategy is %s and justification is empty; any strategy but one_for_one must be justified "
               "(TOP-070)",
               strategy_name(row->strategy));
    if ((unsigned)row->kind > TOPOLOGY_WORKER)
        refuse(c, "kind is %d; it must be supervisor, dynamic or worker", (int)row->kind);
    else if ((row->kind == TOPOLOGY_WORKER) != (row->class != NULL))
        refuse(c, "class is %s; workers and only workers have one",
               row->class ? row->class->name : "missing");
    if (row->max_restarts == 0 || row->max_restarts > SUPERVISOR_INTENSITY_MAX || row->max_seconds == 0 ||
        row->max_seconds > TOPOLOGY_SECONDS_MAX)
        refuse(c,
               "restart intensity is %u/%us; it must be <n>/<m>s with n from 1 to %d and m from 1 to %d "
               "(TOP-161)",
               row->max_restarts, row->max_seconds, SUPERVISOR_INTENSITY_MAX, TOPOLOGY_SECONDS_MAX);
    const struct topology_row *parent = row->parent ? topology_find(c->rows, c->position, row->parent) : NULL;
    if (parent && row->kind == TOPOLOGY_WORKER &&
        (row->max_restarts != parent->max_restarts || row->max_seconds != parent->max_seconds))
        refuse(c, "restart intensity is %u/%us; a worker has that of its supervisor \"%s\", %u/%us",
               row->max_restarts, row->max_seconds, parent->name, parent->max_restarts, parent->max_seconds);
}

static bool known_class(const char *class)
{
    for (int i = 0; i < FAILURE_CLASS_COUNT; i++)
        if (class && strcmp(class, failure_class_name((enum failure_class)i)) == 0)
            return true;
    return false;
}

/* -1 when telemetry has no event of this name. */
static int event_of(const char *name)
{
    for (int i = 0; i < TELEMETRY_EVENT_COUNT; i++)
        if (name && strcmp(name, telemetry_event_name((enum telemetry_event)i)) == 0)
            return i;
    return -1;
}

static void check_event(struct check *c, const char *of, const char *name)
{
    int event = event_of(name);
    if (empty(name))
        refuse(c, "telemetry event of %s is empty; it must name one (TOP-165)", of);
    else if (event < 0)
        refuse(c, "telemetry event of %s is \"%s\"; it must be one of runtime/telemetry_names.h (TOP-165)",
               of, name);
    else if (telemetry_required((enum telemetry_event)event) == 0)
        refuse(c, "telemetry event \"%s\" requires no dimensions; it must name those it needs (TOP-165)",
               name);
}

static void check_failures(struct check *c)
{
    const struct topology_row *row = c->row;
    if (!row->failures[0])
        refuse(c, "failures are empty; it must name a crash class for each major failure mode (TOP-162)");
    for (size_t i = 0; i < TOPOLOGY_FAILURES_MAX && row->failures[i]; i++) {
        const struct topology_failure *f = row->failures[i];
        if (empty(f->mode))
            refuse(c, "mode of failure %zu is empty; it must say what fails (TOP-162)", i + 1);
        else if (!known_class(f->class))
            refuse(c,
                   "class of failure \"%s\" is \"%s\"; it must be fatal, recoverable or degraded (TOP-162)",
                   f->mode, f->class ? f->class : "");
        need_text(c, "handling of a failure", f->handling, "what is done at once (TOP-162)");
        need_text(c, "supervisor action of a failure", f->action, "what the supervisor does (TOP-162)");
        check_event(c, "a failure", f->event);
    }
}

static void check_slos(struct check *c)
{
    const struct topology_row *row = c->row;
    if (!row->slos[0])
        refuse(c, "SLOs are empty; it must name at least one with target and thresholds (TOP-164)");
    for (size_t i = 0; i < TOPOLOGY_SLOS_MAX && row->slos[i]; i++) {
        const struct topology_slo *s = row->slos[i];
        need_text(c, "capability of an SLO", s->capability, "what is measured (TOP-164)");
        need_text(c, "SLI of an SLO", s->sli, "the indicator (TOP-164)");
        need_text(c, "metric of an SLO", s->metric, "the metric behind the indicator (TOP-164)");
        need_text(c, "target of an SLO", s->target, "the baseline target (TOP-164)");
        need_text(c, "thresholds of an SLO", s->thresholds, "the pressure thresholds (TOP-164)");
        check_event(c, "an SLO", s->event);
    }
}

static void check_events(struct check *c)
{
    const struct topology_row *row = c->row;
    if (!row->events[0])
        refuse(c, "telemetry events are empty; it must name at least one with its dimensions (TOP-165)");
    for (size_t i = 0; i < TOPOLOGY_EVENTS_MAX && row->events[i]; i++)
        check_event(c, "the row", row->events[i]);
}

enum error topology_check(const struct topology_row *rows, size_t count, char *ret_text, size_t text_size)
{
    struct check c = {.rows = rows, .count = count, .text = ret_text, .text_size = text_size};
    if (count == 0 || count > TOPOLOGY_ROWS_MAX)
        refuse(&c, "the table has %zu rows; it must have 1 to %d, the root first", count, TOPOLOGY_ROWS_MAX);
    for (; c.position < count && !c.refused; c.position += !c.refused) {
        c.row = &rows[c.position];
        check_place(&c);
        need_text(&c, "subsystem", c.row->subsystem, "what the subsystem is");
        need_text(&c, "intent", c.row->intent, "what a crash in this domain must not do");
        need_text(&c, "owner", c.row->owner, "the process that owns the subsystem (TOP-160)");
        need_text(&c, "supervisor", c.row->supervisor, "the supervisor (TOP-160)");
        check_strategy(&c);
        check_failures(&c);
        need_text(&c, "partition_key", c.row->partition_key,
                  "the partition or shard key of the hot path (TOP-163)");
        need_text(&c, "scaling_rule", c.row->scaling_rule, "how the hot path scales (TOP-163)");
        check_slos(&c);
        check_events(&c);
    }
    return c.refused ? ERR_INVALID : OK;
}

/* ---- for readers ---- */

static void write_event(struct json *json, const char *name)
{
    int event = event_of(name);
    ASSERT(event >= 0);
    uint64_t required = telemetry_required((enum telemetry_event)event);
    json_object_begin(json);
    JSON_MEMBER(json, "name", string, name);
    json_key(json, "dimensions");
    json_array_begin(json);
    for (unsigned d = 0; d < TELEMETRY_DIMENSION_COUNT; d++)
        if (required >> d & 1)
            json_string(json, telemetry_dimension_name((enum telemetry_dimension)d));
    json_array_end(json);
    json_object_end(json);
}

static void write_failure(struct json *json, const struct topology_failure *f)
{
    json_object_begin(json);
    JSON_MEMBER(json, "mode", string, f->mode);
    JSON_MEMBER(json, "class", string, f->class);
    JSON_MEMBER(json, "handling", string, f->handling);
    JSON_MEMBER(json, "action", string, f->action);
    json_key(json, "event");
    write_event(json, f->event);
    json_object_end(json);
}

static void write_slo(struct json *json, const struct topology_slo *s)
{
    json_object_begin(json);
    JSON_MEMBER(json, "capability", string, s->capability);
    JSON_MEMBER(json, "sli", string, s->sli);
    JSON_MEMBER(json, "metric", string, s->metric);
    JSON_MEMBER(json, "target", string, s->target);
    JSON_MEMBER(json, "thresholds", string, s->thresholds);
    json_key(json, "event");
    write_event(json, s->event);
    json_object_end(json);
}

static const char *kind_name(enum topology_kind kind)
{
    static const char *const names[] = {[TOPOLOGY_SUPERVISOR] = "supervisor",
                                        [TOPOLOGY_DYNAMIC] = "dynamic supervisor",
                                        [TOPOLOGY_WORKER] = "worker"};
    return names[kind];
}

static void intensity_text(const struct topology_row *row, char *text, size_t size)
{
    snprintf(text, size, "%u/%us", row->max_restarts, row->max_seconds);
}

void topology_write_row(struct json *json, const struct topology_row *row)
{
    char intensity[32];
    intensity_text(row, intensity, sizeof(intensity));
    json_object_begin(json);
    JSON_MEMBER(json, "name", string, row->name);
    JSON_MEMBER(json, "parent", string, row->parent[0] ? row->parent : NULL);
    JSON_MEMBER(json, "kind", string, kind_name(row->kind));
    JSON_MEMBER(json, "subsystem", string, row->subsystem);
    JSON_MEMBER(json, "intent", string, row->intent);
    JSON_MEMBER(json, "owner", string, row->owner);
    JSON_MEMBER(json, "supervisor", string, row->supervisor);
    JSON_MEMBER(json, "strategy", string, strategy_name(row->strategy));
    JSON_MEMBER(json, "justification", string, row->justification);
    JSON_MEMBER(json, "intensity", string, intensity);
    JSON_MEMBER(json, "max_restarts", uint, row->max_restarts);
    JSON_MEMBER(json, "max_seconds", uint, row->max_seconds);
    JSON_MEMBER(json, "partition_key", string, row->partition_key);
    JSON_MEMBER(json, "scaling_rule", string, row->scaling_rule);
    json_key(json, "failures");
    json_array_begin(json);
    for (size_t i = 0; i < TOPOLOGY_FAILURES_MAX && row->failures[i]; i++)
        write_failure(json, row->failures[i]);
    json_array_end(json);
    json_key(json, "slos");
    json_array_begin(json);
    for (size_t i = 0; i < TOPOLOGY_SLOS_MAX && row->slos[i]; i++)
        write_slo(json, row->slos[i]);
    json_array_end(json);
    json_key(json, "events");
    json_array_begin(json);
    for (size_t i = 0; i < TOPOLOGY_EVENTS_MAX && row->events[i]; i++)
        write_event(json, row->events[i]);
    json_array_end(json);
    json_object_end(json);
}

void topology_write_json(struct json *json, const struct topology_row *rows, size_t count)
{
    json_object_begin(json);
    JSON_MEMBER(json, "contract", string, TOPOLOGY_CONTRACT);
    json_key(json, "rows");
    json_array_begin(json);
    for (size_t i = 0; i < count; i++)
        topology_write_row(json, &rows[i]);
    json_array_end(json);
    json_object_end(json);
}

static size_t depth_of(const struct topology_row *rows, size_t count, const struct topology_row *row)
{
    size_t depth = 0;
    while (row && row->parent[0]) {
        row = topology_find(rows, count, row->parent);
        depth++;
    }
    return depth;
}

void topology_write_text(struct json_sink *sink, const struct topology_row *rows, size_t count)
{
    char line[512], intensity[32];
    snprintf(line, sizeof(line), "%-28s %-12s %-9s %-42s %s\n", "NAME", "STRATEGY", "INTENSITY",
             "PARTITION KEY", "SUBSYSTEM");
    json_sink_text(sink, line);
    for (size_t i = 0; i < count; i++) {
        const struct topology_row *row = &rows[i];
        size_t indent = 2 * depth_of(rows, count, row);
        intensity_text(row, intensity, sizeof(intensity));
        snprintf(line, sizeof(line), "%*s%-*s %-12s %-9s %-42s %s\n", (int)indent, "", (int)(28 - indent),
                 row->name, strategy_name(row->strategy), intensity, row->partition_key, row->subsystem);
        json_sink_text(sink, line);
    }
}
