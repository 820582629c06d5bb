#include "http/job_wait.h"

#include "store/event.h"
#include "store/job.h"
#include "store/store.h"
#include "store/view.h"

static bool is_wake(const struct message *m, void *arg)
{
    (void)arg;
    return m->type == STORE_WAKE;
}

enum outcome { OUTCOME_WAITS, OUTCOME_FINAL, OUTCOME_UNREADABLE };

static enum outcome look(const struct uuid *id)
{
    struct job job;
    struct view *view = view_open(store_here());
    enum error e = view ? job_read(&view->txn, id, &job) : ERR_UNAVAILABLE;
    enum outcome outcome = e                            ? OUTCOME_UNREADABLE
                           : job_state_final(job.state) ? OUTCOME_FINAL
                                                        : OUTCOME_WAITS;
    if (view)
        view_close(view);
    return outcome;
}

/* Who listens looks first: it may have ended before. */
static bool listen(struct response *r, const struct uuid *id, uint64_t until)
{
    for (;;) {
        struct message *wake = NULL;
        enum outcome outcome = look(id);
        uint64_t next = actor_now() + JOB_WAIT_LOOK_MS * NS_PER_MS;
        if (outcome != OUTCOME_WAITS || actor_now() >= until)
            return outcome == OUTCOME_FINAL;
        enum error e = response_wait(r, is_wake, NULL, &wake, next < until ? next : until);
        if (wake)
            message_free(wake);
        if (e == ERR_DOWN)
            return false;
    }
}

bool job_wait(struct response *r, const struct uuid *id, uint64_t until)
{
    char group[STORE_GROUP_SIZE];
    struct message *late;
    store_group(event_topic(id), group);
    if (actor_join(group) != OK)
        return false;
    bool final = listen(r, id, until);
    (void)actor_leave(group);
    while ((late = actor_receive_now(is_wake, NULL)) != NULL) /* ends: none is sent to him from here on */
        message_free(late);
    return final;
}
