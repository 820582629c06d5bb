#include "http/commit.h"

#include <stdatomic.h>

#include "http/front.h"

/* A command that was refused by its own rules was served well; these weren't. */
static bool failed(enum error e)
{
    switch (e) {
    case ERR_TIMEOUT:
    case ERR_DOWN:
    case ERR_NOPROC:
    case ERR_FULL:
    case ERR_SHED:
    case ERR_UNANSWERED:
    case ERR_MEMORY:
    case ERR_NO_SPACE:
    case ERR_UNAVAILABLE:
    case ERR_IO:
    case ERR_DAMAGED:
    case ERR_NEWER:
        return true;
    default:
        return false;
    }
}

uint64_t commit_deadline(const struct request *q)
{
    const struct front_limits *limits =
        q->front ? atomic_load_explicit(&q->front->limits, memory_order_acquire) : NULL;
    uint64_t allowed = limits && limits->request_ns ? limits->request_ns : COMMIT_REQUEST_NS;
    return (q->began_ns ? q->began_ns : actor_now()) + allowed;
}

/* How long the store may take; a request that has less time left has that. */
static uint64_t store_deadline(const struct request *q, uint64_t began)
{
    const struct front_limits *limits =
        q->front ? atomic_load_explicit(&q->front->limits, memory_order_acquire) : NULL;
    return limits && limits->store_ns ? began + limits->store_ns : DEADLINE_NONE;
}

static _Atomic uint64_t commits, failures, reads, reads_failed;

struct commit_figures commit_figures(void)
{
    return (struct commit_figures){atomic_load(&commits), atomic_load(&failures), atomic_load(&reads),
                                   atomic_load(&reads_failed)};
}

void commit_note_read(enum error e)
{
    atomic_fetch_add_explicit(&reads, 1, memory_order_relaxed);
    if (failed(e))
        atomic_fetch_add_explicit(&reads_failed, 1, memory_order_relaxed);
}

enum error commit_submit(const struct request *q, const struct command_class *class, const void *command,
                         void *ret_bytes, size_t room, size_t *ret_size, uint64_t deadline)
{
    uint64_t began = actor_now(), patience = store_deadline(q, began);
    enum error e =
        store_submit(class, command, ret_bytes, room, ret_size, patience < deadline ? patience : deadline);
    if (e == ERR_TIMEOUT && patience < deadline)
        e = ERR_UNAVAILABLE; /* it is the store that is late, not the request */
    atomic_fetch_add_explicit(&commits, 1, memory_order_relaxed);
    if (failed(e))
        atomic_fetch_add_explicit(&failures, 1, memory_order_relaxed);
    if (!trace_exporting())
        return e;
    struct trace trace;
    trace_child(&trace, &q->trace);
    trace_record(&(struct trace_span){
        .trace = &trace,
        .kind = TRACE_CLIENT,
        .status = failed(e) ? TRACE_ERROR : TRACE_UNSET,
        .name = "store.commit",
        .began_ns = began,
        .ended_ns = actor_now(),
        .attributes = {{.key = "db.system.name", .text = "lmdb"},
                       {.key = "db.operation.name", .text = class->name},
                       {.key = e ? "error.type" : NULL, .text = error_name(e)}},
    });
    return e;
}
