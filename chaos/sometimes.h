/* Sometimes: what must have happened in a campaign, or it proves nothing about it. Counted where it happens; a campaign in which one
 * of these stays at zero fails. */
#ifndef COPPICE_CHAOS_SOMETIMES_H
#define COPPICE_CHAOS_SOMETIMES_H

/* X(ID, "what has happened") */
#define SOMETIMES_ALL(X)                                                               \
    X(CUT, "the power went")                                                           \
    X(CUT_PENDING, "while writes were on their way to the disk")                       \
    X(CUT_TORN, "and some of them arrived in pieces")                                  \
    X(CUT_IN_OPENING, "while the store was being opened")                              \
    X(DEATH, "the process was killed")                                                 \
    X(MIDWAY, "the process ended between two calls of the disk")                       \
    X(SYNC_FAILED, "a sync or a write through failed")                                 \
    X(ABANDONED, "the server gave up after a failed commit")                           \
    X(EXHAUSTED, "the root ran out of restarts")                                       \
    X(OPEN_REFUSED, "a start was refused for its disk, and the next one was not")      \
    X(GROWN, "the map grew")                                                           \
    X(TIGHT, "the store was full")                                                     \
    X(LEAP_FORWARD, "the wall clock leapt forward")                                    \
    X(LEAP_BACK, "the wall clock leapt back")                                          \
    X(STALL, "nobody ran for a while")                                                 \
    X(KILLED_WRITER, "the writer was killed")                                          \
    X(KILLED_KEEPER, "the keeper was killed")                                          \
    X(KILLED_WORKER, "a worker was killed")                                            \
    X(KILLED_SHARD, "a shard was killed")                                              \
    X(KILLED_SUPERVISOR, "a supervisor was killed")                                    \
    X(KILLED_CONNECTION, "a connection was killed")                                    \
    X(KILLED_LISTENER, "a listener was killed")                                        \
    X(KILLED_RELAY, "a relay was killed")                                              \
    X(KILLED_OUTBOUND, "a sender of webhooks was killed")                              \
    X(SUBMIT_UNKNOWN, "a submit had no answer")                                        \
    X(SUBMIT_WAS_DONE, "and had been done: its key gave the job that was there")       \
    X(SUBMIT_WAS_NOT, "or had not: its key made the job")                              \
    X(SUBMIT_PARALLEL, "two submits with one key were on their way at a time")         \
    X(SUBMIT_OTHERWISE, "a key came with another body, and was refused")               \
    X(SUBMIT_REFUSED, "a submit was refused for now")                                  \
    X(CANCEL_QUEUED, "a job was canceled before anybody had it")                       \
    X(CANCEL_RUNNING, "a job was canceled while it ran")                               \
    X(CANCEL_LATE, "a cancel came after the end")                                      \
    X(CANCEL_UNKNOWN, "a cancel had no answer")                                        \
    X(RETRIED, "a failed job was retried by its client")                               \
    X(RETRIED_BY_ITSELF, "a failed job was retried by the server")                     \
    X(RETRY_REFUSED, "no retry was left")                                              \
    X(DEFERRED, "a deferred job ran")                                                  \
    X(CLAIMED, "a worker outside claimed a job")                                       \
    X(CLAIM_WAITED, "a claim waited for a job, and got one")                           \
    X(CLAIM_UNKNOWN, "a claim had no answer")                                          \
    X(BEAT, "a lease was made longer")                                                 \
    X(BEAT_CANCELED, "a heartbeat learnt of a cancel")                                 \
    X(BEAT_LOST, "a heartbeat came too late")                                          \
    X(REPORTED, "a worker outside reported the end of a job")                          \
    X(REPORT_AGAIN, "the same report came again, and was answered the same")           \
    X(REPORT_OTHER, "another report of a finished job was refused")                    \
    X(REPORT_STALE, "a report with an old token was refused")                          \
    X(REPORT_LATE, "a report behind its lease was refused")                            \
    X(REPORT_UNKNOWN, "a report had no answer")                                        \
    X(RUNNER_LOST, "a job was taken from a worker that was gone")                      \
    X(FAILED_EARLY, "a job was refused its attempt by a crash and retried to success") \
    X(NO_STORE, "a request was told that the store can't be used now")                 \
    X(TOO_LATE, "a request ran out of time")                                           \
    X(TOO_SLOW, "a request took too long to arrive")                                   \
    X(TURNED_AWAY, "a connection could not be accepted")                               \
    X(BROKEN, "a connection broke before its answer")                                  \
    X(HUNG_UP, "a client went before its answer")                                      \
    X(EVENTS_GREW, "the events of a job were read again, and were more")               \
    X(HOOKED, "a webhook was told of an event")                                        \
    X(HOOKED_AGAIN, "and of the same one again")                                       \
    X(HOOK_FAILED, "a webhook's receiver failed")                                      \
    X(HOOK_SILENT, "a webhook's receiver never answered")                              \
    X(HOOK_LOST, "a webhook was told, and its answer got lost with the process")       \
    X(HEALED, "all that was begun came to its end after faults")
enum sometimes {
#define X(id, prose) SOMETIMES_##id,
    SOMETIMES_ALL(X)
#undef X
        SOMETIMES_COUNT
};

#endif
