/* Specs: checked as a whole before anything starts, and copied into what a supervisor keeps.
 *
 * Private to the supervisor. The checks look only; they run anywhere, and take memory from the heap for lists
 * of more than 512 children. Plans are made inside the supervisor's actor.
 */
#ifndef COPPICE_RUNTIME_SUPERVISOR_SPEC_H
#define COPPICE_RUNTIME_SUPERVISOR_SPEC_H

#include "runtime/supervisor_children.h"

#define SPEC_TEXT_MAX 256u
#define QUARANTINE_FAILURES_MAX \
    (RESTART_WINDOW_INLINE + 1) /* their times are kept in the child's own window */

#define INTENSITY_DEFAULT   1
#define PERIOD_DEFAULT_MS   5000
#define SHUTDOWN_WORKER_MS  5000
#define PATIENCE_DEFAULT_MS 60000 /* of backoff and quarantine, where the spec says 0 */

/* One child on its own; `id_required` unless ids mean nothing. The sentence begins with `who`. */
enum error spec_check_child(const struct child_spec *spec, bool id_required, enum auto_shutdown auto_shutdown,
                            const char *who, char *ret_text, size_t text_size);

/* A copy with the defaults filled in, from a checked spec. NULL: no memory. */
struct child_plan *plan_new(struct children *t, const struct child_spec *spec);
void plan_free(struct children *t, struct child_plan *plan);

/* Whether a child may need to remember its troubles. */
static inline bool plan_watchful(const struct child_plan *p)
{
    return p->backoff.first_ms || p->quarantine.failures;
}

#endif
