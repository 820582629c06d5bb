// Made by `make contract` from docs/contract; do not edit.

export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        JobEventPayload: {
            /** @enum {string} */
            schema_version: "v1";
            /** Format: uuid */
            event_id: string;
            event_name: string;
            /** Format: date-time */
            occurred_at: string;
            /** Format: uuid */
            job_id: string;
            idempotency_key: string;
            request_id: string;
            trace_id: string;
            actor_id: string;
            project_id: string;
            /** Format: uuid */
            parent_job_id?: string | null;
            delegation_depth?: number;
            status?: string;
            details?: {
                [key: string]: unknown;
            };
        };
        SystemEventPayload: {
            /** @enum {string} */
            schema_version: "v1";
            /** Format: uuid */
            event_id: string;
            event_name: string;
            /** Format: date-time */
            occurred_at: string;
            request_id: string;
            trace_id: string;
            actor_id: string;
            project_id: string;
            details?: components["schemas"]["IngressEventDetails"] | components["schemas"]["AgentProvisionEventDetails"] | components["schemas"]["AgentDeprovisionEventDetails"] | components["schemas"]["AgentMemoryEventDetails"] | components["schemas"]["SchedulerFailureEventDetails"] | components["schemas"]["GenericSystemEventDetails"];
        };
        IngressEventDetails: {
            /** @enum {string} */
            source_channel: "human_chat" | "human_mail" | "human_collaboration" | "developer_platform" | "machine_signal_feed" | "webhook_generic" | "external_app";
            source_system: string;
            source_message_id: string;
            connector_id: string;
            normalization_version: string;
            auth_context: {
                /** @enum {string} */
                auth_mode: "hmac" | "asymmetric_signature" | "mtls";
                /** @enum {string} */
                verification_result: "passed" | "failed";
                key_id?: string;
                /** @enum {string} */
                replay_check: "passed" | "failed";
            };
        } & {
            [key: string]: unknown;
        };
        AgentProvisionEventDetails: {
            agent_template_id: string;
            agent_instance_id: string;
            capability_set: string[];
            change_risk_score: number;
            hitl_required: boolean;
            approver_id?: string;
            deduplication_key?: string;
            failure_reason?: string;
            rollback_steps?: string[];
        } & {
            [key: string]: unknown;
        };
        AgentDeprovisionEventDetails: {
            agent_instance_id: string;
            reason: string;
            /** @enum {string} */
            result: "requested" | "completed" | "failed";
            approver_id?: string;
        } & {
            [key: string]: unknown;
        };
        AgentMemoryEventDetails: {
            agent_instance_id: string;
            /** @enum {string} */
            memory_scope: "job" | "project" | "global";
            memory_record_id: string;
            /** @enum {string} */
            mutation_type: "write" | "delete" | "correction";
            /** @enum {string} */
            classification: "public" | "internal" | "sensitive";
            /** @enum {string} */
            result: "applied" | "rejected";
            rejection_reason?: string;
        } & {
            [key: string]: unknown;
        };
        SchedulerFailureEventDetails: ({
            /** @enum {string} */
            failure_class: "retry_exhausted" | "misfire_bounds_exceeded" | "dependency_not_met" | "internal_error";
            failure_reason?: string;
            misfire_window?: {
                /** Format: date-time */
                start_at: string;
                /** Format: date-time */
                end_at: string;
            };
        } & {
            [key: string]: unknown;
        }) & unknown;
        GenericSystemEventDetails: {
            event_class: string;
        } & {
            [key: string]: unknown;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;

export type JobEvent = components["schemas"]["JobEventPayload"];
export type SystemEvent = components["schemas"]["SystemEventPayload"];

/** What each event has in its details. */
export interface EventDetails {
    "job.queued": NonNullable<components["schemas"]["JobEventPayload"]["details"]>;
    "job.blocked": NonNullable<components["schemas"]["JobEventPayload"]["details"]>;
    "job.waiting_human_decision": NonNullable<components["schemas"]["JobEventPayload"]["details"]>;
    "job.running": NonNullable<components["schemas"]["JobEventPayload"]["details"]>;
    "job.retrying": NonNullable<components["schemas"]["JobEventPayload"]["details"]>;
    "job.done": NonNullable<components["schemas"]["JobEventPayload"]["details"]>;
    "job.failed": NonNullable<components["schemas"]["JobEventPayload"]["details"]>;
    "job.rejected": NonNullable<components["schemas"]["JobEventPayload"]["details"]>;
    "job.timed_out": NonNullable<components["schemas"]["JobEventPayload"]["details"]>;
    "job.budget_exceeded": NonNullable<components["schemas"]["JobEventPayload"]["details"]>;
    "job.changes_requested": NonNullable<components["schemas"]["JobEventPayload"]["details"]>;
    "job.deferred": NonNullable<components["schemas"]["JobEventPayload"]["details"]>;
    "job.cancelled": NonNullable<components["schemas"]["JobEventPayload"]["details"]>;
    "ingress.message.received": components["schemas"]["IngressEventDetails"];
    "ingress.message.normalized": components["schemas"]["IngressEventDetails"];
    "ingress.message.rejected": components["schemas"]["IngressEventDetails"];
    "ingress.identity.mapping_failed": components["schemas"]["IngressEventDetails"];
    "ingress.rate_limited": components["schemas"]["IngressEventDetails"];
    "ingress.policy_blocked": components["schemas"]["IngressEventDetails"];
    "improvement.review.scheduled": components["schemas"]["GenericSystemEventDetails"] & { event_class: "improvement" };
    "improvement.input.snapshot_created": components["schemas"]["GenericSystemEventDetails"] & { event_class: "improvement" };
    "improvement.analysis.completed": components["schemas"]["GenericSystemEventDetails"] & { event_class: "improvement" };
    "improvement.plan.proposed": components["schemas"]["GenericSystemEventDetails"] & { event_class: "improvement" };
    "improvement.plan.approved": components["schemas"]["GenericSystemEventDetails"] & { event_class: "improvement" };
    "improvement.plan.rejected": components["schemas"]["GenericSystemEventDetails"] & { event_class: "improvement" };
    "improvement.change.applied": components["schemas"]["GenericSystemEventDetails"] & { event_class: "improvement" };
    "improvement.change.validated": components["schemas"]["GenericSystemEventDetails"] & { event_class: "improvement" };
    "improvement.change.rolled_back": components["schemas"]["GenericSystemEventDetails"] & { event_class: "improvement" };
    "improvement.report.published": components["schemas"]["GenericSystemEventDetails"] & { event_class: "improvement" };
    "improvement.incident.triage_scheduled": components["schemas"]["GenericSystemEventDetails"] & { event_class: "improvement" };
    "improvement.routing.review_scheduled": components["schemas"]["GenericSystemEventDetails"] & { event_class: "improvement" };
    "improvement.rollout.window_checked": components["schemas"]["GenericSystemEventDetails"] & { event_class: "improvement" };
    "improvement.scheduler.failed": components["schemas"]["SchedulerFailureEventDetails"];
    "documentation.snapshot.scheduled": components["schemas"]["GenericSystemEventDetails"] & { event_class: "documentation" };
    "documentation.snapshot.generated": components["schemas"]["GenericSystemEventDetails"] & { event_class: "documentation" };
    "documentation.validation.passed": components["schemas"]["GenericSystemEventDetails"] & { event_class: "documentation" };
    "documentation.validation.failed": components["schemas"]["GenericSystemEventDetails"] & { event_class: "documentation" };
    "documentation.publish.candidate_scheduled": components["schemas"]["GenericSystemEventDetails"] & { event_class: "documentation" };
    "documentation.publish.candidate_created": components["schemas"]["GenericSystemEventDetails"] & { event_class: "documentation" };
    "documentation.published": components["schemas"]["GenericSystemEventDetails"] & { event_class: "documentation" };
    "agent.provision.requested": components["schemas"]["AgentProvisionEventDetails"] & Required<Pick<components["schemas"]["AgentProvisionEventDetails"], "deduplication_key">>;
    "agent.provision.approved": components["schemas"]["AgentProvisionEventDetails"];
    "agent.provision.rejected": components["schemas"]["AgentProvisionEventDetails"];
    "agent.provision.started": components["schemas"]["AgentProvisionEventDetails"];
    "agent.provision.validated": components["schemas"]["AgentProvisionEventDetails"];
    "agent.provision.completed": components["schemas"]["AgentProvisionEventDetails"];
    "agent.provision.failed": components["schemas"]["AgentProvisionEventDetails"] & Required<Pick<components["schemas"]["AgentProvisionEventDetails"], "failure_reason">> & Required<Pick<components["schemas"]["AgentProvisionEventDetails"], "rollback_steps">>;
    "agent.provision.rolled_back": components["schemas"]["AgentProvisionEventDetails"] & Required<Pick<components["schemas"]["AgentProvisionEventDetails"], "rollback_steps">>;
    "agent.deprovision.requested": components["schemas"]["AgentDeprovisionEventDetails"] & { result: "requested" };
    "agent.deprovision.completed": components["schemas"]["AgentDeprovisionEventDetails"] & { result: "completed" };
    "agent.deprovision.failed": components["schemas"]["AgentDeprovisionEventDetails"] & { result: "failed" };
    "agent.memory.write.applied": components["schemas"]["AgentMemoryEventDetails"] & { mutation_type: "write" } & { result: "applied" };
    "agent.memory.write.rejected": components["schemas"]["AgentMemoryEventDetails"] & Required<Pick<components["schemas"]["AgentMemoryEventDetails"], "rejection_reason">> & { mutation_type: "write" } & { result: "rejected" };
    "agent.memory.delete.applied": components["schemas"]["AgentMemoryEventDetails"] & { mutation_type: "delete" } & { result: "applied" };
    "agent.memory.delete.rejected": components["schemas"]["AgentMemoryEventDetails"] & Required<Pick<components["schemas"]["AgentMemoryEventDetails"], "rejection_reason">> & { mutation_type: "delete" } & { result: "rejected" };
    "agent.memory.correction.applied": components["schemas"]["AgentMemoryEventDetails"] & { mutation_type: "correction" } & { result: "applied" };
    "agent.memory.correction.rejected": components["schemas"]["AgentMemoryEventDetails"] & Required<Pick<components["schemas"]["AgentMemoryEventDetails"], "rejection_reason">> & { mutation_type: "correction" } & { result: "rejected" };
    "scheduler.job.dispatch_failed": components["schemas"]["SchedulerFailureEventDetails"];
    "scheduler.leader.elected": components["schemas"]["GenericSystemEventDetails"] & { event_class: "scheduler" };
    "scheduler.leader.lost": components["schemas"]["GenericSystemEventDetails"] & { event_class: "scheduler" };
    "budget.anomaly.scan_completed": components["schemas"]["GenericSystemEventDetails"] & { event_class: "operations" };
    "budget.reconciliation.completed": components["schemas"]["GenericSystemEventDetails"] & { event_class: "operations" };
    "security.review.deep_scheduled": components["schemas"]["GenericSystemEventDetails"] & { event_class: "operations" };
    "drill.restore.scheduled": components["schemas"]["GenericSystemEventDetails"] & { event_class: "operations" };
    "operations.killswitch.activated": components["schemas"]["GenericSystemEventDetails"] & { event_class: "operations" };
    "operations.killswitch.deactivated": components["schemas"]["GenericSystemEventDetails"] & { event_class: "operations" };
    "operations.runbook.staleness_check_scheduled": components["schemas"]["GenericSystemEventDetails"] & { event_class: "operations" };
    "hitl.reminder.sent": components["schemas"]["GenericSystemEventDetails"] & { event_class: "operations" };
    "hitl.reminder.escalated": components["schemas"]["GenericSystemEventDetails"] & { event_class: "operations" };
    "service.shutdown.initiated": components["schemas"]["GenericSystemEventDetails"] & { event_class: "operations" };
    "service.shutdown.completed": components["schemas"]["GenericSystemEventDetails"] & { event_class: "operations" };
    "operations.feature_flag.activated": components["schemas"]["GenericSystemEventDetails"] & { event_class: "operations" };
    "operations.feature_flag.deprecated": components["schemas"]["GenericSystemEventDetails"] & { event_class: "operations" };
    "operations.feature_flag.removed": components["schemas"]["GenericSystemEventDetails"] & { event_class: "operations" };
    "operations.feature_flag.expired": components["schemas"]["GenericSystemEventDetails"] & { event_class: "operations" };
}
export type EventName = keyof EventDetails;

/** An event by its name: its envelope, and the details that belong to it. */
export type Event<N extends EventName> = Omit<N extends `job.${string}` ? JobEvent : SystemEvent, "event_name" | "details"> & {
    event_name: N;
} & (N extends `job.${string}` ? { details?: EventDetails[N] } : { details: EventDetails[N] });

/** On which channel an event of this name is published. */
export const eventChannels = {
    "job.queued": "job.queued",
    "job.blocked": "job.blocked",
    "job.waiting_human_decision": "job.waiting_human_decision",
    "job.running": "job.running",
    "job.retrying": "job.retrying",
    "job.done": "job.done",
    "job.failed": "job.failed",
    "job.rejected": "job.rejected",
    "job.timed_out": "job.timed_out",
    "job.budget_exceeded": "job.budget_exceeded",
    "job.changes_requested": "job.changes_requested",
    "job.deferred": "job.deferred",
    "job.cancelled": "job.cancelled",
    "ingress.message.received": "ingress.events",
    "ingress.message.normalized": "ingress.events",
    "ingress.message.rejected": "ingress.events",
    "ingress.identity.mapping_failed": "ingress.events",
    "ingress.rate_limited": "ingress.events",
    "ingress.policy_blocked": "ingress.events",
    "improvement.review.scheduled": "improvement.events",
    "improvement.input.snapshot_created": "improvement.events",
    "improvement.analysis.completed": "improvement.events",
    "improvement.plan.proposed": "improvement.events",
    "improvement.plan.approved": "improvement.events",
    "improvement.plan.rejected": "improvement.events",
    "improvement.change.applied": "improvement.events",
    "improvement.change.validated": "improvement.events",
    "improvement.change.rolled_back": "improvement.events",
    "improvement.report.published": "improvement.events",
    "improvement.incident.triage_scheduled": "improvement.events",
    "improvement.routing.review_scheduled": "improvement.events",
    "improvement.rollout.window_checked": "improvement.events",
    "improvement.scheduler.failed": "improvement.events",
    "documentation.snapshot.scheduled": "documentation.events",
    "documentation.snapshot.generated": "documentation.events",
    "documentation.validation.passed": "documentation.events",
    "documentation.validation.failed": "documentation.events",
    "documentation.publish.candidate_scheduled": "documentation.events",
    "documentation.publish.candidate_created": "documentation.events",
    "documentation.published": "documentation.events",
    "agent.provision.requested": "agent.lifecycle.events",
    "agent.provision.approved": "agent.lifecycle.events",
    "agent.provision.rejected": "agent.lifecycle.events",
    "agent.provision.started": "agent.lifecycle.events",
    "agent.provision.validated": "agent.lifecycle.events",
    "agent.provision.completed": "agent.lifecycle.events",
    "agent.provision.failed": "agent.lifecycle.events",
    "agent.provision.rolled_back": "agent.lifecycle.events",
    "agent.deprovision.requested": "agent.lifecycle.events",
    "agent.deprovision.completed": "agent.lifecycle.events",
    "agent.deprovision.failed": "agent.lifecycle.events",
    "agent.memory.write.applied": "agent.memory.events",
    "agent.memory.write.rejected": "agent.memory.events",
    "agent.memory.delete.applied": "agent.memory.events",
    "agent.memory.delete.rejected": "agent.memory.events",
    "agent.memory.correction.applied": "agent.memory.events",
    "agent.memory.correction.rejected": "agent.memory.events",
    "scheduler.job.dispatch_failed": "operations.events",
    "scheduler.leader.elected": "operations.events",
    "scheduler.leader.lost": "operations.events",
    "budget.anomaly.scan_completed": "operations.events",
    "budget.reconciliation.completed": "operations.events",
    "security.review.deep_scheduled": "operations.events",
    "drill.restore.scheduled": "operations.events",
    "operations.killswitch.activated": "operations.events",
    "operations.killswitch.deactivated": "operations.events",
    "operations.runbook.staleness_check_scheduled": "operations.events",
    "hitl.reminder.sent": "operations.events",
    "hitl.reminder.escalated": "operations.events",
    "service.shutdown.initiated": "operations.events",
    "service.shutdown.completed": "operations.events",
    "operations.feature_flag.activated": "operations.events",
    "operations.feature_flag.deprecated": "operations.events",
    "operations.feature_flag.removed": "operations.events",
    "operations.feature_flag.expired": "operations.events",
} as const satisfies Record<EventName, string>;
