/* Every noun that the schema's lists name: for whoever puts those lists together (store/schema.h). */
#ifndef COPPICE_STORE_NOUNS_H
#define COPPICE_STORE_NOUNS_H

#include "store/api_key.h"
#include "store/audit.h"
#include "store/client.h"
#include "store/client_quota.h"
#include "store/counter.h"
#include "store/delivery.h"
#include "store/delivery_relay.h"
#include "store/due.h"
#include "store/event.h"
#include "store/job.h"
#include "store/job_bulk.h"
#include "store/job_change.h"
#include "store/job_fire.h"
#include "store/job_lease.h"
#include "store/job_pause.h"
#include "store/job_queue.h"
#include "store/job_schedule.h"
#include "store/job_submit.h"
#include "store/ledger.h"
#include "store/meta.h"
#include "store/outbox.h"
#include "store/principal.h"
#include "store/rate_window.h"
#include "store/retention.h"
#include "store/revocation.h"
#include "store/seen_token.h"
#include "store/signing_key.h"
#include "store/webhook.h"

#endif
