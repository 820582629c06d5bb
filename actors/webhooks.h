/* Webhooks: the settings of the domain, and what its actors tell of attempts.
 *
 * The actors are relays (actors/relay.h), which make deliveries of what stands in the outbox, and senders (actors/outbound.h), which
 * make the attempts. All they know stands in the store (store/delivery.h); settings may change while they run, and each of them looks
 * at the newest ones with each attempt.
 */
#ifndef COPPICE_ACTORS_WEBHOOKS_H
#define COPPICE_ACTORS_WEBHOOKS_H

#include "actors/webhook_signature.h"
#include "store/delivery.h"

struct webhooks_settings {
    uint32_t timeout_ms;       /* webhooks.timeout: of one attempt */
    uint32_t retries_max;      /* webhooks.max_retries: attempts beyond the first */
    uint64_t backoff_base_us;  /* webhooks.backoff_base */
    uint64_t backoff_most_us;  /* webhooks.backoff_max */
    uint64_t kept_us;          /* retention.deliveries */
    uint64_t disable_after_us; /* webhooks.disable_after; 0: never */
    bool allow_private;        /* outbound.allow_private */
    uint32_t secret_size;      /* webhooks.signing_secret; 0: there is none */
    uint8_t secret[WEBHOOK_SECRET_BYTES_MAX];
};

/* As the specification has them in brackets; a week, five days. */
extern const struct webhooks_settings webhooks_defaults;
/* Boot and reload; one thread at a time. Takes effect with the next attempt. */
void webhooks_configure(const struct webhooks_settings *settings);
/* Any thread; the caller's copy. */
struct webhooks_settings webhooks_settings(void);

/* ---- what happened, after its commit; from an actor ---- */

struct webhook_told {
    const struct delivery_result *result;
    struct uuid job, webhook; /* webhook all zero: the job's callback */
    const char *host;
    bool made;     /* an attempt was; else it came to an end without one */
    bool disabled; /* with it the webhook */
};
/* Counts it, and writes a line to the log (JOB-411). */
void webhooks_tell(const struct webhook_told *told);

/* Attempts since the process began; any thread. */
struct webhook_figures {
    uint64_t succeeded, failed; /* attempts */
    uint64_t given_up, dropped; /* deliveries */
    uint64_t disabled;          /* webhooks, for their receivers' sake */
};
struct webhook_figures webhooks_figures(void);

#endif
