/* Jobs whose events are told: clients with webhooks and callbacks, the relays and senders of a simulated node, and a receiver in place of
 * the network that answers as the test says. Within a stage's body (tests/support/stage.h).
 */
#ifndef COPPICE_TESTS_ACTORS_HOOKS_H
#define COPPICE_TESTS_ACTORS_HOOKS_H

#include "actors/outbound.h"
#include "actors/webhooks.h"
#include "tests/support/stage.h"

#define HOOKS_CALLS_MAX 4096u

/* A request that the receiver got. */
struct hooks_call {
    char url[256], headers[768], body[2048];
    char event[32], job[UUID_TEXT_SIZE], delivery[UUID_TEXT_SIZE]; /* as the body says */
    uint64_t attempt, at_ns, timeout_ns;
    bool any_address;
    bool arrived; /* its turn came */
};
extern struct hooks_call hooks_calls[HOOKS_CALLS_MAX];
extern uint32_t hooks_count;

struct hooks_answer {
    int status; /* 0: an error; with ERR_LIMIT it may be there */
    enum error error;
    uint64_t after_ms; /* UINT64_MAX: never, so that the deadline comes first */
    uint32_t retry_after_s;
};
/* What the receiver says to a call; by its number among all calls. NULL: 200 after a millisecond. */
typedef struct hooks_answer hooks_receiver(const struct hooks_call *call);

/* Writer, receiver, relays and senders, with these settings. The first thing of a body. */
void hooks_start(const struct webhooks_settings *settings, hooks_receiver *receiver);
void hooks_receive(hooks_receiver *receiver); /* from now on */
actor_pid hooks_relay(uint32_t partition);    /* that lives now */
actor_pid hooks_outbound(uint32_t partition);
extern bool
    hooks_fetch; /* from the next start on senders ask the actor that is called FETCH_NAME, not the receiver */
void hooks_restart(void); /* ends all relays and senders at once, and starts them again */

struct uuid hooks_client(void);
struct uuid hooks_put(const struct uuid *client, const char *url, uint32_t events);
enum error hooks_remove(const struct uuid *client, const struct uuid *id);
/* A job; its first events are job.created and job.queued. callback "": none. */
struct uuid hooks_job(const struct uuid *client, const char *callback);
/* One more event of it, its last: job.canceled. */
void hooks_cancel(const struct uuid *job);

/* Simulated: until nothing is under way any more, or this much time has passed. */
void hooks_settle(uint64_t ms);
int64_t hooks_counted(uint8_t state); /* deliveries */
/* Of a job to its callback (webhook NULL) or a webhook, by the number of the event; its texts are gone. */
enum error hooks_delivery(const struct uuid *job, const struct uuid *webhook, uint64_t event,
                          struct delivery *ret);
/* How many calls have this event (NULL: any) of this job (NULL: any). */
uint32_t hooks_calls_of(const struct uuid *job, const char *event);

#endif
