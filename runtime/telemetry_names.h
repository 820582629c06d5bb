/* The names of telemetry, each list once: dimensions, events, histograms, SLO rows, gauges.
 *
 * Names and required dimensions of the contract ST-OCM-000 (SLO events, crash policy) stand here exactly as
 * there; the rest are the runtime's own. A new subsystem adds its rows here, and everything else (enum,
 * validation, counters, metrics) follows. Rows are appended, never reordered: nothing stores their numbers,
 * but people compare outputs.
 */
#ifndef COPPICE_RUNTIME_TELEMETRY_NAMES_H
#define COPPICE_RUNTIME_TELEMETRY_NAMES_H

/* X(id, "name"). At most 64: the required ones of an event are a 64-bit mask. */
#define TELEMETRY_DIMENSIONS(X)         \
    X(COMPONENT, "component")           \
    X(FAILURE_CLASS, "failure_class")   \
    X(REASON, "reason")                 \
    X(BOOT_STAGE, "boot_stage")         \
    X(ADAPTER, "adapter")               \
    X(INSTANCE_ID, "instance_id")       \
    X(ATTEMPT, "attempt")               \
    X(ELAPSED_MS, "elapsed_ms")         \
    X(PARTITION, "partition")           \
    X(PROVIDER_CODE, "provider_code")   \
    X(MESSAGE_ID, "message_id")         \
    X(DISPOSITION, "disposition")       \
    X(POLICY_MODULE, "policy_module")   \
    X(TIMEOUT_MS, "timeout_ms")         \
    X(FALLBACK, "fallback")             \
    X(RESTART_COUNT, "restart_count")   \
    X(WINDOW_S, "window_s")             \
    X(DOMAIN, "domain")                 \
    X(CHANNEL, "channel")               \
    X(OUTCOME, "outcome")               \
    X(OPERATION, "operation")           \
    X(CLASSIFICATION, "classification") \
    X(ATTEMPTS, "attempts")             \
    X(PRESSURE_LEVEL, "pressure_level") \
    X(SOURCE_CHILD, "source_child")     \
    X(CLASS, "class")                   \
    X(PID, "pid")                       \
    X(SIGNAL, "signal")                 \
    X(ADDRESS, "address")               \
    X(SUPERVISOR, "supervisor")         \
    X(CHILD, "child")                   \
    X(SCHEDULER, "scheduler")           \
    X(EVENT, "event")                   \
    X(ROOM_ID, "room_id")               \
    X(AGENT_ID, "agent_id")             \
    X(TRACE_ID, "trace_id")             \
    X(ROUTE, "route")                   \
    X(METHOD, "method")                 \
    X(STATUS, "status")                 \
    X(STAGE, "stage")                   \
    X(LISTENER, "listener")             \
    X(TARGET, "target")                 \
    X(JOB_ID, "job_id")                 \
    X(CLIENT_ID, "client_id")           \
    X(CURRENT_STATE, "current_state")   \
    X(NEXT_STATE, "next_state")         \
    X(BUCKET, "bucket")

/* The three classes of failure there are. */
#define FAILURE_CLASSES(X)                                           \
    X(FATAL, "fatal")             /* crash and surface at once */    \
    X(RECOVERABLE, "recoverable") /* local restart, bounded retry */ \
    X(DEGRADED, "degraded")       /* less quality, still running; nobody needs to die */

/* What a measurement is. The counters of an event count its emissions, whatever the measurement. */
#define TELEMETRY_UNITS(X)                                                                            \
    X(COUNT) /* a plain number; 1 where there is nothing to say */                                    \
    X(NS)    /* a duration in nanoseconds; refused below 0. Shown in ms where the name ends in _ms */ \
    X(PPM)   /* a ratio in millionths, shown as 0.7 */                                                \
    X(YESNO) /* 1 or 0, anything else is refused; the mean is the ratio that the name promises */

/* X(id, "event", "measurement", unit, "counter", label, "known label values", required, "help")
 *
 * counter: coppice_<counter>_total. label: the one required dimension that splits the counter (values beyond
 * TELEMETRY_LABELS_MAX go to "other"); values known now are written with 0 from the start, separated by '|'.
 */
#define TELEMETRY_EVENTS(X)                                                                                  \
    X(INGEST_COMPLETED, "ingest.completed", "ingest_latency_ms", NS, "ingest_completed", OUTCOME, "",        \
      HAS(INSTANCE_ID) | HAS(CHANNEL) | HAS(OUTCOME), "Inbound messages on which a decision was committed.") \
    X(OUTBOUND_ENQUEUED, "outbound.enqueued", "outbound_enqueue_ms", NS, "outbound_enqueued", OPERATION, "", \
      HAS(INSTANCE_ID) | HAS(PARTITION) | HAS(OPERATION), "Deliveries accepted by the outbound gateway.")    \
    X(OUTBOUND_RESULT, "outbound.result", "delivery_success_ratio", YESNO, "outbound_results",               \
      CLASSIFICATION, "", HAS(CHANNEL) | HAS(PROVIDER_CODE) | HAS(CLASSIFICATION),                           \
      "Deliveries that came to their final result.")                                                         \
    X(INSTANCE_CONNECTED, "instance.connected", "reconnect_mttr_ms", NS, "instance_connected", REASON, "",   \
      HAS(INSTANCE_ID) | HAS(ATTEMPTS) | HAS(REASON), "Instances that connected or came back.")              \
    X(PRESSURE_TRANSITION, "pressure.transition", "queue_occupancy_ratio", PPM, "pressure_transitions",      \
      PRESSURE_LEVEL, "normal|warn|degraded|shed", HAS(COMPONENT) | HAS(PARTITION) | HAS(PRESSURE_LEVEL),    \
      "Changes of a queue's pressure level, by the level reached.")                                          \
    X(SUPERVISOR_ESCALATION, "supervisor.escalation", "cascade_count", COUNT, "supervisor_escalations",      \
      DOMAIN, "", HAS(DOMAIN) | HAS(SOURCE_CHILD) | HAS(RESTART_COUNT),                                      \
      "Supervisors that ended because their restart budget was used up.")                                    \
    X(FAILURE_BOOT_CONFIG, "failure.boot_config", "count", COUNT, "failures_boot_config", REASON, "",        \
      HAS(COMPONENT) | HAS(FAILURE_CLASS) | HAS(REASON) | HAS(BOOT_STAGE), "Invalid boot configuration.")    \
    X(FAILURE_ADAPTER_INIT, "failure.adapter_init", "count", COUNT, "failures_adapter_init", ADAPTER, "",    \
      HAS(COMPONENT) | HAS(FAILURE_CLASS) | HAS(ADAPTER) | HAS(REASON),                                      \
      "Adapters that failed to initialise.")                                                                 \
    X(FAILURE_LISTENER_DISCONNECT, "failure.listener_disconnect", "count", COUNT,                            \
      "failures_listener_disconnect", COMPONENT, "",                                                         \
      HAS(COMPONENT) | HAS(FAILURE_CLASS) | HAS(INSTANCE_ID) | HAS(ATTEMPT) | HAS(ELAPSED_MS),               \
      "Disconnects and timeouts of channel listeners.")                                                      \
    X(FAILURE_OUTBOUND_PROVIDER, "failure.outbound_provider", "count", COUNT, "failures_outbound_provider",  \
      PROVIDER_CODE, "",                                                                                     \
      HAS(COMPONENT) | HAS(FAILURE_CLASS) | HAS(PARTITION) | HAS(ATTEMPT) | HAS(PROVIDER_CODE),              \
      "Attempts that a provider refused, failed or did not answer.")                                         \
    X(FAILURE_POISON_MESSAGE, "failure.poison_message", "count", COUNT, "failures_poison_message",           \
      DISPOSITION, "",                                                                                       \
      HAS(COMPONENT) | HAS(FAILURE_CLASS) | HAS(MESSAGE_ID) | HAS(REASON) | HAS(DISPOSITION),                \
      "Messages set aside because they could not be decoded or handled.")                                    \
    X(FAILURE_POLICY_TIMEOUT, "failure.policy_timeout", "count", COUNT, "failures_policy_timeout", FALLBACK, \
      "deny|allow_with_flag",                                                                                \
      HAS(COMPONENT) | HAS(FAILURE_CLASS) | HAS(POLICY_MODULE) | HAS(TIMEOUT_MS) | HAS(FALLBACK),            \
      "Policy modules that did not answer in time.")                                                         \
    X(FAILURE_RESTART_EXHAUSTED, "failure.restart_exhausted", "count", COUNT, "failures_restart_exhausted",  \
      DOMAIN, "", HAS(COMPONENT) | HAS(FAILURE_CLASS) | HAS(RESTART_COUNT) | HAS(WINDOW_S) | HAS(DOMAIN),    \
      "Domains whose restart intensity was exceeded.")                                                       \
    X(ACTOR_START, "actor.start", "count", COUNT, "actor_starts", CLASS, "", HAS(CLASS), "Actors started.")  \
    X(ACTOR_EXIT, "actor.exit", "count", COUNT, "actor_exits", REASON,                                       \
      "normal|shutdown|killed|noproc|crash|overrun|quota|bad_return_value|failed_to_start_child|error",      \
      HAS(CLASS) | HAS(REASON), "Actors ended, for whatever reason.")                                        \
    X(ACTOR_CRASH, "actor.crash", "count", COUNT, "actor_crashes", CLASS, "",                                \
      HAS(CLASS) | HAS(PID) | HAS(SIGNAL) | HAS(ADDRESS), "Actors that trapped and were contained.")         \
    X(SUPERVISOR_RESTART, "supervisor.restart", "count", COUNT, "actor_restarts", SUPERVISOR, "",            \
      HAS(SUPERVISOR) | HAS(CHILD) | HAS(REASON) | HAS(RESTART_COUNT),                                       \
      "Children started again by their supervisor.")                                                         \
    X(SUPERVISOR_QUARANTINE, "supervisor.quarantine", "count", COUNT, "supervisor_quarantines", SUPERVISOR,  \
      "", HAS(SUPERVISOR) | HAS(CHILD) | HAS(FAILURE_CLASS) | HAS(REASON),                                   \
      "Children set aside because they kept failing at start.")                                              \
    X(SUPERVISOR_SHUTDOWN_ERROR, "supervisor.shutdown_error", "count", COUNT, "supervisor_shutdown_errors",  \
      SUPERVISOR, "", HAS(SUPERVISOR) | HAS(CHILD) | HAS(REASON),                                            \
      "Children that did not end as asked when they were shut down.")                                        \
    X(MESSAGE_DROPPED, "message.dropped", "count", COUNT, "messages_dropped", REASON, "",                    \
      HAS(REASON) | HAS(CLASS), "Messages that a mailbox did not take or gave up.")                          \
    X(MESSAGE_UNKNOWN, "message.unknown", "count", COUNT, "messages_unknown", CLASS, "", HAS(CLASS),         \
      "Messages of a type that the receiver does not know.")                                                 \
    X(SCHEDULER_PREEMPT, "scheduler.preempt", "slice_ms", NS, "scheduler_preemptions", CLASS, "",            \
      HAS(CLASS), "Handlers switched out because their slice was over.")                                     \
    X(SCHEDULER_OVERRUN, "scheduler.overrun", "slice_ms", NS, "scheduler_overruns", CLASS, "", HAS(CLASS),   \
      "Handlers ended because they computed past their runaway budget.")                                     \
    X(TELEMETRY_REJECTED, "telemetry.rejected", "count", COUNT, "telemetry_rejected", EVENT, "",             \
      HAS(EVENT) | HAS(REASON), "Events refused because they lacked what their contract requires.")          \
    X(SUPERVISOR_START_ERROR, "supervisor.start_error", "count", COUNT, "supervisor_start_errors",           \
      SUPERVISOR, "", HAS(SUPERVISOR) | HAS(CHILD) | HAS(REASON),                                            \
      "Restarts that failed in the child's init.")                                                           \
    X(STORE_COMMIT, "store.commit", "commit_ms", NS, "store_commits", OUTCOME, "ok", HAS(OUTCOME),           \
      "Batches of commands that were committed, or failed.")                                                 \
    X(STORE_STATE, "store.state", "count", COUNT, "store_states", REASON, "open|tight|lost|failed",          \
      HAS(COMPONENT) | HAS(REASON), "Changes of the store's state, by the state reached.")                   \
    X(STORE_DAMAGED, "store.damaged", "count", COUNT, "store_damaged", REASON, "",                           \
      HAS(COMPONENT) | HAS(REASON), "Rows that could not be believed, by their table.")                      \
    X(STORE_VIEW_EXPIRED, "store.view_expired", "count", COUNT, "store_views_expired", COMPONENT, "",        \
      HAS(COMPONENT), "Actors ended because they held a view for too long.")                                 \
    X(HTTP_REQUEST, "http.request", "request_ms", NS, "http_requests", STATUS, "1xx|2xx|3xx|4xx|5xx",        \
      HAS(STATUS), "Requests that were answered, by the class of the answer's status.")                      \
    X(HTTP_REFUSED, "http.refused", "count", COUNT, "http_refused", REASON, "", HAS(REASON),                 \
      "What came to a listener and was no request: refused before it had a route.")                          \
    X(HTTP_THROTTLED, "http.throttled", "count", COUNT, "http_throttled", BUCKET,                            \
      "address|client|register|submit|decision|dlq_list|dlq_reprocess|dlq_bulk|failures|token|subject|"      \
      "register_all|token_all|work|operator_failures",                                                       \
      HAS(BUCKET), "Requests answered 429, by the bucket that had no token left.")                           \
    X(HTTP_CONNECTION, "http.connection", "count", COUNT, "http_connections", OUTCOME,                       \
      "accepted|turned_away|cut_off", HAS(LISTENER) | HAS(OUTCOME),                                          \
      "Connections that were accepted, turned away for want of room, or cut off for being too slow.")        \
    X(HTTP_CROWDED, "http.crowded", "turned_away", COUNT, "http_crowded", REASON,                            \
      "connections|descriptors|memory", HAS(LISTENER) | HAS(REASON),                                         \
      "Whether newcomers were turned away, said each ten seconds, by what there was no room of.")            \
    X(AUTH_REJECTED, "auth.rejected", "count", COUNT, "auth_rejected", STAGE,                                \
      "form|blocklist|signature|claims|replay|store|operator", HAS(STAGE),                                   \
      "Credentials that were refused, by the check they failed.")                                            \
    X(AUTH_SIGNATURE, "auth.signature", "count", COUNT, "auth_signatures", OUTCOME, "good|bad",              \
      HAS(OUTCOME), "Signatures of tokens that were verified; one that is remembered isn't.")                \
    X(CHAOS_VERB, "chaos.verb", "recovery_ms", NS, "chaos_verbs", OPERATION,                                 \
      "kill|suspend|resume|crash|flood", HAS(OPERATION) | HAS(TARGET) | HAS(OUTCOME),                        \
      "What an operator did to an actor on purpose.")                                                        \
    X(JOB_TRANSITION, "job.transition", "count", COUNT, "job_transitions", EVENT,                            \
      "job.created|job.queued|job.assigned|job.running|job.succeeded|job.failed|job.timed_out|job.canceled|" \
      "job.retried|job.requeued",                                                                            \
      HAS(EVENT) | HAS(JOB_ID) | HAS(CLIENT_ID) | HAS(NEXT_STATE), "Changes of jobs' states, by event.")     \
    X(JOB_REFUSED, "job.transition_refused", "count", COUNT, "job_transitions_refused", EVENT,               \
      "job.queued|job.assigned|job.running|job.succeeded|job.failed|job.timed_out|job.canceled|job.retried", \
      HAS(EVENT) | HAS(JOB_ID) | HAS(CURRENT_STATE) | HAS(NEXT_STATE),                                       \
      "Changes of jobs' states that their lifecycle refused, by event.")                                     \
    X(JOB_QUEUE_FULL, "job.queue_full", "count", COUNT, "job_queue_full", CLIENT_ID, "",                     \
      HAS(JOB_ID) | HAS(CLIENT_ID),                                                                          \
      "Deferred jobs that were due while the queue was full, each of them once.")                            \
    X(WORKER_HEARTBEAT, "worker.heartbeat", "count", COUNT, "worker_heartbeats", CLASS, "worker|outside",    \
      HAS(CLASS), "Heartbeats of workers that were taken.")                                                  \
    X(IDEMPOTENCY, "idempotency.looked_up", "count", COUNT, "idempotency", OUTCOME, "hit|new", HAS(OUTCOME), \
      "Submits with an idempotency key, or repeated by their request id: whether the job was there.")

/* X(event): those that come with each request, or with each batch of them: counted, shown to subscribers, but not kept in the ring, where
 * they would push out everything else within a hundredth of a second. */
#define TELEMETRY_FREQUENT(X) \
    X(HTTP_REQUEST)           \
    X(HTTP_CONNECTION)        \
    X(JOB_TRANSITION)         \
    X(STORE_COMMIT)           \
    X(WORKER_HEARTBEAT)       \
    X(IDEMPOTENCY)

/* X(event, class): the class that the event's failure_class must name; any other value is refused. */
#define TELEMETRY_FAILURES(X)                   \
    X(FAILURE_BOOT_CONFIG, FATAL)               \
    X(FAILURE_ADAPTER_INIT, FATAL)              \
    X(FAILURE_LISTENER_DISCONNECT, RECOVERABLE) \
    X(FAILURE_OUTBOUND_PROVIDER, RECOVERABLE)   \
    X(FAILURE_POISON_MESSAGE, DEGRADED)         \
    X(FAILURE_POLICY_TIMEOUT, DEGRADED)         \
    X(FAILURE_RESTART_EXHAUSTED, FATAL)         \
    X(SUPERVISOR_QUARANTINE, DEGRADED)

/* X(event, "histogram", "help"): coppice_<histogram>_seconds, of events measured in NS. */
#define TELEMETRY_HISTOGRAMS(X)                                                                         \
    X(INGEST_COMPLETED, "ingest_latency", "From the first byte of an inbound message to its decision.") \
    X(OUTBOUND_ENQUEUED, "outbound_enqueue", "From the call into the gateway to the answered commit.")  \
    X(INSTANCE_CONNECTED, "instance_reconnect", "From the disconnect noticed to connected.")            \
    X(SCHEDULER_PREEMPT, "scheduler_slice", "How long a handler had run when it was switched out.")     \
    X(STORE_COMMIT, "store_commit", "A batch: applied, committed and synced.")

/* X(id, "metric", event, kind, warn, critical, "capability")
 *
 * P95: critical and warn when the 95th percentile is above (ns). RATIO: when the ratio is below (ppm). TOTAL:
 * when the sum is at or above (warn 0: there is no such level). Queue pressure, the sixth row of the
 * contract, has levels of its own: runtime/pressure.h.
 */
#define TELEMETRY_SLOS(X)                                                                     \
    X(INGEST_LATENCY, "ingest_latency_ms", INGEST_COMPLETED, P95, 75000000, 100000000,        \
      "Ingest decision latency")                                                              \
    X(OUTBOUND_ENQUEUE, "outbound_enqueue_ms", OUTBOUND_ENQUEUED, P95, 40000000, 50000000,    \
      "Outbound enqueue latency")                                                             \
    X(DELIVERY_SUCCESS, "delivery_success_ratio", OUTBOUND_RESULT, RATIO, 997000, 995000,     \
      "Outbound delivery reliability")                                                        \
    X(RECONNECT_MTTR, "reconnect_mttr_ms", INSTANCE_CONNECTED, P95, 30000000000, 60000000000, \
      "Instance reconnect recovery")                                                          \
    X(CASCADE_COUNT, "cascade_count", SUPERVISOR_ESCALATION, TOTAL, 0, 1, "Crash containment")

/* X(id, "gauge", "label", "help"): coppice_<gauge>{label="..."}. */
#define TELEMETRY_GAUGES(X)                                                                                \
    X(ACTORS, "actors", "kind", "Living actors.")                                                          \
    X(MAILBOX_MESSAGES, "mailbox_messages", "kind", "Messages waiting in mailboxes.")                      \
    X(MAILBOX_MAX_MESSAGES, "mailbox_max_messages", "kind", "Messages waiting in the fullest mailbox.")    \
    X(PRESSURE_LEVEL, "pressure_level", "component",                                                       \
      "Highest level among a component's queues: 0 normal, 1 warn, 2 degraded, 3 shed.")                   \
    X(PRESSURE_WARN, "pressure_warn_queues", "component", "Queues at pressure level warn.")                \
    X(PRESSURE_DEGRADED, "pressure_degraded_queues", "component", "Queues at pressure level degraded.")    \
    X(PRESSURE_SHED, "pressure_shed_queues", "component", "Queues at pressure level shed.")                \
    X(STORE_BYTES, "store_bytes", "kind", "Bytes of the store: its map, its file, used, free in between.") \
    X(STORE_ROWS, "store_rows", "table", "Rows of the store's tables.")                                    \
    X(DEAD_LETTERS, "dead_letters", "source", "What could not be handed on and waits for an operator.")    \
    X(STORE_READERS, "store_readers", "kind", "Open views, and slots of LMDB's table of readers in use.")  \
    X(STORE_DAMAGED_ROWS, "store_damaged_rows", "table", "Rows that the scrub could not believe.")         \
    X(TRACE_SPANS, "trace_spans", "kind",                                                                  \
      "Spans recorded, dropped because a ring was full, exported, and given up.")

#endif
