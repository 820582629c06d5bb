/* The schema: every table, command and format of a store, as data.
 *
 * The product's own is store_schema (store/schema.c), put together from the lists below; a program with a
 * domain of its own (tests, harnesses) appends rows to copies of them. Numbers of tables are not stored, their
 * names are; codes of commands, events, topics and counters are stored and never given away twice.
 */
#ifndef COPPICE_STORE_SCHEMA_H
#define COPPICE_STORE_SCHEMA_H

#include "store/command.h"
#include "store/record.h"

struct check;
struct txn;

/* X(ID, "name", record) in the order in which check and export walk them. Keys: store/keys.h. */
#define TABLES(X)                                                                                       \
    X(META, "meta", meta)                                 /* format, commit stamp, secret */            \
    X(AUDITS, "audits", audit)                            /* who did what to the server */              \
    X(EVENTS, "events", event)                            /* the event log */                           \
    X(LEDGER, "ledger", ledger)                           /* idempotency */                             \
    X(DUE, "due", due)                                    /* durable timers */                          \
    X(OUTBOX, "outbox", outbox)                           /* committed, not yet delivered */            \
    X(CLAIMS, "claims", claim)                            /* of outbox partitions */                    \
    X(DEAD, "dead", dead)                                 /* given up by the outbox */                  \
    X(COUNTERS, "counters", counter)                      /* kept at write time */                      \
    X(SIGNING_KEYS, "signing_keys", signing_key)          /* of the built-in issuer */                  \
    X(REVOCATIONS, "revocations", revocation)             /* tokens that are refused */                 \
    X(SEEN_TOKENS, "seen_tokens", seen_token)             /* against replays */                         \
    X(CLIENTS, "clients", client)                         /* of the jobs surface */                     \
    X(CLIENT_KEYS, "client_keys", client_keys)            /* which key is active */                     \
    X(API_KEYS, "api_keys", api_key)                      /* hashes of keys */                          \
    X(API_KEY_HASHES, "api_key_hashes", api_key_hash)     /* hash to key */                             \
    X(RATE_WINDOWS, "rate_windows", rate_window)          /* limits that survive a restart */           \
    X(PRINCIPALS, "principals", principal)                /* services and agents that ask for tokens */ \
    X(WEBHOOKS, "webhooks", webhook)                      /* where a client's events go */              \
    X(WEBHOOK_IDS, "webhook_ids", webhook_id)             /* id to client */                            \
    X(JOBS, "jobs", job)                                  /* what changes of a job */                   \
    X(JOB_DEFINITIONS, "job_definitions", job_definition) /* what doesn't */                            \
    X(JOB_QUEUE, "job_queue", job_queue)                  /* which one is next */                       \
    X(CLIENT_JOBS, "client_jobs", client_job)             /* a client's, in order */                    \
    X(REPORTS, "reports", report)                         /* what attempts came to */                   \
    X(PAUSES, "pauses", pause)                            /* what may not be claimed now */             \
    X(FAIRNESS, "fairness", fairness)                     /* whose turn it was */                       \
    X(BULKS, "bulks", bulk)                               /* bulk actions */                            \
    X(SCHEDULES, "schedules", schedule)                   /* what is submitted again and again */       \
    X(DELIVERIES, "deliveries", delivery)                 /* of events to receivers */                  \
    X(DELIVERY_INDEX, "delivery_index", delivery_index)   /* the ways to them */

enum table {
#define X(id, name, record) TABLE_##id,
    TABLES(X)
#undef X
        TABLE_COUNT
};

#define SCHEMA_TABLES_MAX 40u /* LMDB keeps room for as many names */

/* X(name): const struct command_class NAME_class. Codes: 10 outbox, 20 retention, 30 audit; domains from 100 on. */
#define SCHEMA_COMMANDS(X) \
    X(outbox_claim)        \
    X(outbox_mark)         \
    X(outbox_defer)        \
    X(outbox_bury)         \
    X(outbox_revive)       \
    X(retention_sweep)     \
    X(audit_append)        \
    X(signing_key_rotate)  \
    X(signing_key_revoke)  \
    X(signing_key_remove)  \
    X(revocation_put)      \
    X(seen_token_put)      \
    X(client_create)       \
    X(api_key_issue)       \
    X(api_key_revoke)      \
    X(api_key_touch)       \
    X(client_quota_take)   \
    X(rate_window_take)    \
    X(principal_put)       \
    X(principal_remove)    \
    X(webhook_put)         \
    X(webhook_remove)      \
    X(webhook_switch)      \
    X(webhook_rotate)      \
    X(job_submit)          \
    X(job_claim)           \
    X(job_start)           \
    X(job_heartbeat)       \
    X(job_finish)          \
    X(job_cancel)          \
    X(job_retry)           \
    X(job_fire)            \
    X(job_reap)            \
    X(job_pause)           \
    X(job_resume)          \
    X(job_unpark)          \
    X(job_run)             \
    X(job_fairness)        \
    X(job_admit)           \
    X(job_bulk)            \
    X(job_bulk_abort)      \
    X(job_bulk_step)       \
    X(schedule_put)        \
    X(schedule_remove)     \
    X(schedule_switch)     \
    X(schedule_fire)       \
    X(schedule_retime)     \
    X(delivery_relay)      \
    X(delivery_settle)     \
    X(delivery_resend)     \
    X(delivery_astray)

#define X(name) +1
enum { SCHEMA_COMMANDS_COUNT = 0 SCHEMA_COMMANDS(X) };
#undef X

struct schema_table {
    const char *name;
    const struct record_class *record; /* what every value of the table is */
    /* One row, seen by `coppice check`: what else must be true (check_complain) and what the row adds to
     * counters (check_count). NULL: nothing beyond the record itself. */
    void (*check)(struct check *check, struct txn *txn, struct span key, const void *record);
};

#define X(id, name, record) \
    void record##_check(struct check *check, struct txn *txn, struct span key, const void *value);
TABLES(X)
#undef X

/* Rows for the lists of whoever adds a domain: {[TABLE_MINE] = {...}, TABLES(SCHEMA_TABLE_ROW)} and
 * {&mine_class, SCHEMA_COMMANDS(SCHEMA_COMMAND_ROW)}; the headers of the nouns must be included. */
#define SCHEMA_TABLE_ROW(id, text, class) \
    [TABLE_##id] = {.name = text, .record = &class##_record, .check = class##_check},
#define SCHEMA_COMMAND_ROW(name) &name##_class,

/* From format `from` to from + 1: in the transaction in which the store is opened. */
struct schema_migration {
    uint32_t from;
    enum error (*migrate)(struct txn *txn);
};

struct schema {
    const struct schema_table *tables; /* the first TABLE_COUNT are those above */
    uint32_t tables_count;
    uint32_t commands_count;
    const struct command_class *const *commands;
    uint32_t format; /* what this program writes; a store of a higher one is refused */
    uint32_t migrations_count;
    const struct schema_migration *migrations;
};

extern const struct schema store_schema;

/* NULL: no such command. */
const struct command_class *schema_command(const struct schema *schema, uint16_t code);
const struct command_class *schema_command_named(const struct schema *schema, struct span name);

#endif
