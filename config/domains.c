#include "config/domains.h"

#include <string.h>

#include "actors/jobs.h"
#include "actors/webhooks.h"
#include "http/client_quota.h"
#include "http/job_request.h"
#include "http/work_kinds.h"

/* Bits of enum job_type. The words have been checked (config/options.c). */
static uint8_t types_of(const char *list)
{
    uint8_t types = 0;
    while (*(list += strspn(list, ", "))) {
        size_t length = strcspn(list, ", ");
        for (unsigned type = 0; type < JOB_TYPE_COUNT; type++)
            if (strlen(job_type_name((uint8_t)type)) == length &&
                memcmp(job_type_name((uint8_t)type), list, length) == 0)
                types |= (uint8_t)(1u << type);
        list += length;
    }
    return types;
}

static void configure_jobs(const struct options *o)
{
    const struct jobs_settings settings = {
        .workers = (uint32_t)o->workers_count,
        .concurrency = (uint32_t)o->workers_max_concurrency,
        .outside = o->workers_outside,
        .poll_us = o->workers_poll_interval / US,
        .lease_us = o->workers_lease_timeout / US,
        .heartbeat_us = o->workers_heartbeat_interval / US,
        .speed_ppm = o->jobs_simulation_speed,
        .should_fail_ppm = (uint32_t)o->jobs_should_fail_probability,
        .runtime_max_ms = (uint32_t)(o->limits_max_runtime / MS),
        .payload_max = (uint32_t)o->limits_max_job_payload,
        .types = types_of(o->jobs_allowed_types),
        .priorities = o->jobs_priorities,
        .queue_max = (uint32_t)o->limits_max_queue_size,
        .active_max = (uint32_t)o->limits_max_active_jobs,
        .active_queues = strcmp(o->limits_active_jobs_policy, "queue") == 0,
        .client_running_max = (uint32_t)o->jobs_client_concurrency,
        .fair = strcmp(o->jobs_fairness, "clients") == 0,
        .retry_max = (uint16_t)o->retry_max,
        .retry_auto = o->retry_auto,
        .backoff_base_us = o->retry_backoff_base / US,
        .backoff_most_us = o->retry_backoff_max / US,
        .kept_us = o->retention_jobs / US,
    };
    jobs_configure(&settings);
    work_kinds_configure(settings.runtime_max_ms);
    job_request_configure(&(struct job_request_settings){.allow_private = o->outbound_allow_private});
}

static void configure_webhooks(const struct options *o)
{
    struct webhooks_settings settings = {
        .timeout_ms = (uint32_t)(o->webhooks_timeout / MS),
        .retries_max = (uint32_t)o->webhooks_max_retries,
        .backoff_base_us = o->webhooks_backoff_base / US,
        .backoff_most_us = o->webhooks_backoff_max / US,
        .kept_us = o->retention_deliveries / US,
        .disable_after_us = o->webhooks_disable_after / US,
        .allow_private = o->outbound_allow_private,
    };
    if (*o->webhooks_signing_secret &&
        !webhook_secret_read(span_text(o->webhooks_signing_secret), settings.secret, &settings.secret_size))
        settings.secret_size = 0; /* it has been checked (config/options.c) */
    webhooks_configure(&settings);
    explicit_bzero(&settings, sizeof(settings));
}

void domains_configure(const struct options *o)
{
    client_quota_configure(&(struct client_quota_settings){.requests = o->limits_client_quota_requests,
                                                           .window_us = o->limits_client_quota_window / US});
    configure_jobs(o);
    configure_webhooks(o);
}
