/* Sometimes: what must have happened in a campaign, or it proves nothing about it. Counted where it happens; a campaign in which one
 * of these stays at zero fails. */
#ifndef COPPICE_CHAOS_SOMETIMES_H
#define COPPICE_CHAOS_SOMETIMES_H

/* X(ID, "what has happened") */
#define SOMETIMES_ALL(X)                                                                       \
    X(CUT, "the power went")                                                                   \
    X(CUT_PENDING, "while writes were on their way to the disk")                               \
    X(CUT_TORN, "and some of them arrived in pieces")                                          \
    X(CUT_IN_OPENING, "while the store was being opened")                                      \
    X(DEATH, "the process was killed")                                                         \
    X(MIDWAY, "the process ended between two calls of the disk")                               \
    X(SYNC_FAILED, "a sync or a write through failed")                                         \
    X(NO_ROOM, "the store's file could not grow")                                              \
    X(NO_MEMORY, "the runtime had no memory for a message or a state")                         \
    X(RAN_DRY, "and the process ended, as it had none for what can't be refused")              \
    X(FLOODED, "a mailbox was full")                                                           \
    X(ABANDONED, "the server gave up after a failed commit")                                   \
    X(EXHAUSTED, "the root ran out of restarts")                                               \
    X(OPEN_REFUSED, "a start was refused for its disk, and the next one was not")              \
    X(GROWN, "the map grew")                                                                   \
    X(TIGHT, "the store was full")                                                             \
    X(LEAP_FORWARD, "the wall clock leapt forward")                                            \
    X(LEAP_BACK, "the wall clock leapt back")                                                  \
    X(STALL, "nobody ran for a while")                                                         \
    X(KILLED_WRITER, "the writer was killed")                                                  \
    X(KILLED_KEEPER, "the keeper was killed")                                                  \
    X(KILLED_WORKER, "a worker was killed")                                                    \
    X(KILLED_SHARD, "a shard was killed")                                                      \
    X(KILLED_SUPERVISOR, "a supervisor was killed")                                            \
    X(KILLED_CONNECTION, "a connection was killed")                                            \
    X(KILLED_LISTENER, "a listener was killed")                                                \
    X(KILLED_RELAY, "a relay was killed")                                                      \
    X(KILLED_OUTBOUND, "a sender of webhooks was killed")                                      \
    X(SUBMIT_UNKNOWN, "a submit had no answer")                                                \
    X(SUBMIT_WAS_DONE, "and had been done: its key gave the job that was there")               \
    X(SUBMIT_WAS_NOT, "or had not: its key made the job")                                      \
    X(SUBMIT_PARALLEL, "two submits with one key were on their way at a time")                 \
    X(SUBMIT_OTHERWISE, "a key came with another body, and was refused")                       \
    X(SUBMIT_REFUSED, "a submit was refused for now")                                          \
    X(CANCEL_QUEUED, "a job was canceled before anybody had it")                               \
    X(CANCEL_RUNNING, "a job was canceled while it ran")                                       \
    X(CANCEL_LATE, "a cancel came after the end")                                              \
    X(CANCEL_UNKNOWN, "a cancel had no answer")                                                \
    X(RETRIED, "a failed job was retried by its client")                                       \
    X(RETRIED_BY_ITSELF, "a failed job was retried by the server")                             \
    X(RETRY_REFUSED, "no retry was left")                                                      \
    X(DEFERRED, "a deferred job ran")                                                          \
    X(CLAIMED, "a worker outside claimed a job")                                               \
    X(CLAIM_WAITED, "a claim waited for a job, and got one")                                   \
    X(CLAIM_UNKNOWN, "a claim had no answer")                                                  \
    X(BEAT, "a lease was made longer")                                                         \
    X(BEAT_CANCELED, "a heartbeat learnt of a cancel")                                         \
    X(BEAT_LOST, "a heartbeat came too late")                                                  \
    X(REPORTED, "a worker outside reported the end of a job")                                  \
    X(REPORT_AGAIN, "the same report came again, and was answered the same")                   \
    X(REPORT_OTHER, "another report of a finished job was refused")                            \
    X(REPORT_STALE, "a report with an old token was refused")                                  \
    X(REPORT_LATE, "a report behind its lease was refused")                                    \
    X(REPORT_UNKNOWN, "a report had no answer")                                                \
    X(RUNNER_LOST, "a job was taken from a worker that was gone")                              \
    X(FAILED_EARLY, "a job was refused its attempt by a crash and retried to success")         \
    X(NO_STORE, "a request was told that the store can't be used now")                         \
    X(HIT, "a request ended with the actor that was at it")                                    \
    X(TOO_LATE, "a request ran out of time")                                                   \
    X(TOO_SLOW, "a request took too long to arrive")                                           \
    X(TURNED_AWAY, "a connection could not be accepted")                                       \
    X(BROKEN, "a connection broke before its answer")                                          \
    X(HUNG_UP, "a client went before its answer")                                              \
    X(EVENTS_GREW, "the events of a job were read again, and were more")                       \
    X(HOOKED, "a webhook was told of an event")                                                \
    X(HOOKED_AGAIN, "and of the same one again")                                               \
    X(HOOK_FAILED, "a webhook's receiver failed")                                              \
    X(HOOK_SILENT, "a webhook's receiver never answered")                                      \
    X(HOOK_LOST, "a webhook was told, and its answer got lost with the process")               \
    X(ESCALATED, "a supervisor ran out of restarts, and its own started it again")             \
    X(ORPHANED, "a successor found its name still held by an orphan")                          \
    X(ENDED_IN_ORDER, "a supervisor ended its children, the youngest first")                   \
    X(KILLED_NEWBORN, "an actor was killed in the instant of its birth")                       \
    X(KILLED_TOGETHER, "two actors were killed in one instant")                                \
    X(KILLED_BUSY, "the writer was killed with commands before it")                            \
    X(SYNC_FAILED_ONCE, "a sync failed that would have succeeded when tried again")            \
    X(ROOM_AGAIN, "the store was full, and had room again in the same life")                   \
    X(CUT_AFTER_GROWTH, "the power went right behind the growth of the map")                   \
    X(IDLE_LIFE, "a life ended before anybody had an answer")                                  \
    X(STALL_OVER_LEASE, "nobody ran for longer than a lease that was out")                     \
    X(SAME_KEY, "a key was one client's, and another one's as well")                           \
    X(KEY_OVER_RESTART, "a key gave the job of an earlier life")                               \
    X(STRANGER, "a client asked for the job of another one, and was refused")                  \
    X(HOSTILE, "a request that can't be one was refused, and its connection closed")           \
    X(TRICKLED, "a request came in three pieces or more")                                      \
    X(ASKED_TOGETHER, "two asked about one job at a time")                                     \
    X(CANCEL_RACED, "a cancel and the end of the same job were on their way at a time")        \
    X(CANCEL_WAS_DONE, "a cancel without an answer had been done")                             \
    X(RETRY_WAS_DONE, "a retry without an answer had been done")                               \
    X(CLAIM_WAS_DONE, "a claim without an answer had been done: its job ran, and nobody knew") \
    X(CLAIMED_SEVERAL, "a claim got several jobs")                                             \
    X(CLAIMED_AGAIN, "a job was claimed again when its lease was over")                        \
    X(REPORT_WAS_DONE, "a report without an answer had been done: said again it is a repeat")  \
    X(REPORT_WAS_NOT, "or had not: said again it counted")                                     \
    X(REPORT_AT_END, "a report came in the instant in which its lease was over")               \
    X(BEAT_AT_END, "a heartbeat came in that instant")                                         \
    X(LEASE_OVER_RESTART, "a lease of an earlier life counted")                                \
    X(STALE_OVER_RESTART, "a report with a lease of an earlier life was refused")              \
    X(LAST_ATTEMPT, "a job failed in the last attempt that it had")                            \
    X(DEFERRED_OVER_LEAP, "a deferred job ran after a leap of the wall clock")                 \
    X(DEFERRED_OVER_RESTART, "a deferred job ran in another life than it was ordered in")      \
    X(HOOK_GIVEN_UP, "a webhook was given up, and the next one of its job sent")               \
    X(HOOK_OVER_RESTART, "a webhook was told again by a later life")                           \
    X(DAMAGED, "a row with a bit turned over was told from a lost one")                        \
    X(HEALED, "all that was begun came to its end after faults")
enum sometimes {
#define X(id, prose) SOMETIMES_##id,
    SOMETIMES_ALL(X)
#undef X
        SOMETIMES_COUNT
};

#endif
