#include "chaos/warden.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void warden_begin(struct warden *w)
{
    w->actors_count = w->places_count = w->windows_count = w->born = 0;
    w->returns = w->doubts = w->escalations = w->endings = 0;
    w->starved = false;
    w->finding[0] = 0;
}

__attribute__((format(printf, 2, 3))) static void find(struct warden *w, const char *format, ...)
{
    va_list list;
    if (w->finding[0])
        return;
    va_start(list, format);
    vsnprintf(w->finding, sizeof(w->finding), format, list);
    va_end(list);
}

static struct warden_actor *actor_of(struct warden *w, uint64_t pid)
{
    for (uint32_t i = 0; pid && i < w->actors_count; i++)
        if (w->actors[i].pid == pid)
            return &w->actors[i];
    return NULL;
}

static const char *label(const struct warden_actor *a)
{
    return a->name[0] ? a->name : a->class;
}

/* ---- places ---- */

static struct warden_place *place_of(struct warden *w, uint64_t parent, const char *name)
{
    for (uint32_t i = 0; i < w->places_count; i++)
        if (w->places[i].parent == parent && strcmp(w->places[i].name, name) == 0)
            return &w->places[i];
    return NULL;
}

static void place_empty(struct warden *w, const struct warden_actor *a, uint64_t now)
{
    if (w->places_count == WARDEN_PLACES) {
        find(w, "more than %u places are empty", WARDEN_PLACES);
        return;
    }
    struct warden_place *p = &w->places[w->places_count++];
    p->parent = a->parent;
    p->died = now;
    p->number = a->number;
    p->doubtful = a->doubtful;
    memcpy(p->name, a->name, sizeof(p->name));
}

static void places_forget(struct warden *w, uint64_t parent)
{
    for (uint32_t i = 0; i < w->places_count;)
        if (w->places[i].parent == parent)
            w->places[i] = w->places[--w->places_count];
        else
            i++;
}

/* ---- budgets ---- */

static struct warden_window *window_of(struct warden *w, uint64_t pid)
{
    for (uint32_t i = 0; i < w->windows_count; i++)
        if (w->windows[i].pid == pid)
            return &w->windows[i];
    return NULL;
}

static void window_open(struct warden *w, const struct warden_birth *birth)
{
    if (w->windows_count == WARDEN_SUPERVISORS) {
        find(w, "more than %u supervisors live", WARDEN_SUPERVISORS);
        return;
    }
    struct warden_window *v = &w->windows[w->windows_count++];
    v->pid = birth->pid;
    v->period_ns = birth->period_ns;
    v->intensity = birth->intensity;
    v->count = 0;
}

static void window_close(struct warden *w, uint64_t pid)
{
    struct warden_window *v = window_of(w, pid);
    if (v)
        *v = w->windows[--w->windows_count];
}

static uint32_t restarts_kept(const struct warden_window *v)
{
    return v->count < WARDEN_RESTARTS ? v->count : WARDEN_RESTARTS;
}

static const struct warden_restart *restart_at(const struct warden_window *v, uint32_t back)
{
    return &v->restarts[(v->count - 1 - back) % WARDEN_RESTARTS];
}

/* Granted after the death, used before the birth: when the first one's death and the last one's birth lie in one window, all of its
 * grants do. */
static void judge_budget(struct warden *w, const struct warden_window *v, const struct warden_actor *s)
{
    uint32_t certain = 0;
    uint64_t last = restart_at(v, 0)->born;
    for (uint32_t i = 0; i < restarts_kept(v); i++) {
        const struct warden_restart *r = restart_at(v, i);
        certain += !r->doubtful && last - r->died <= v->period_ns;
    }
    if (certain > v->intensity)
        find(w, "%s has restarted its children %u times within %llu ms, and may %u times (A6)", label(s),
             certain, (unsigned long long)(v->period_ns / 1000000), v->intensity);
}

static uint32_t granted_within(const struct warden_window *v, uint64_t asked)
{
    uint32_t possible = 0;
    for (uint32_t i = 0; i < restarts_kept(v); i++)
        possible += restart_at(v, i)->born + v->period_ns >= asked;
    return possible;
}

/* Whether it may have run out of restarts: one is asked for, and so many may have been granted in the window before. Which of the
 * empty places it was isn't known: while it ends the others, some may die of something else. */
static bool is_spent(struct warden *w, const struct warden_actor *s)
{
    const struct warden_window *v = window_of(w, s->pid);
    for (uint32_t i = 0; v && i < w->places_count; i++)
        if (w->places[i].parent == s->pid &&
            (granted_within(v, w->places[i].died) >= v->intensity || w->starved))
            return true;
    return false;
}

/* Told to end for so long, by somebody above it that has no restart left or is an orphan, that whoever hasn't is killed. That takes a
 * machine that stood still: each of the product's ends within its time. */
static bool is_overdue(struct warden *w, uint64_t now, const struct warden_actor *a)
{
    const struct warden_actor *above = actor_of(w, a->parent);
    for (uint32_t depth = 0; above && depth < WARDEN_SUPERVISORS;
         depth++, above = actor_of(w, above->parent)) {
        if (above->orphan && now >= above->orphan_since + WARDEN_SHUTDOWN_NS)
            return true;
        for (uint32_t i = 0; i < w->places_count; i++)
            if (w->places[i].parent == above->pid && now >= w->places[i].died + WARDEN_SHUTDOWN_NS &&
                is_spent(w, above))
                return true;
    }
    return false;
}

/* ---- births ---- */

static bool is_held(const struct warden *w, const struct warden_actor *newcomer)
{
    for (uint32_t i = 0; i < w->actors_count; i++)
        if (&w->actors[i] != newcomer && strcmp(w->actors[i].name, newcomer->name) == 0)
            return true;
    return false;
}

static void return_to(struct warden *w, uint64_t now, struct warden_actor *a, const struct warden_actor *s,
                      struct warden_place *p)
{
    struct warden_window *v = window_of(w, s->pid);
    bool doubtful = a->doubtful || p->doubtful;
    a->number = p->number;
    w->returns++;
    w->doubts += doubtful;
    if (v) {
        v->restarts[v->count++ % WARDEN_RESTARTS] =
            (struct warden_restart){.died = p->died, .born = now, .doubtful = doubtful};
        judge_budget(w, v, s);
    }
    *p = w->places[--w->places_count];
}

static void judge_place(struct warden *w, uint64_t now, struct warden_actor *a)
{
    struct warden_actor *s = actor_of(w, a->parent);
    if (!s || !s->supervisor || !a->name[0])
        return;
    for (uint32_t i = 0; i < w->actors_count; i++)
        if (&w->actors[i] != a && w->actors[i].parent == a->parent && strcmp(w->actors[i].name, a->name) == 0)
            find(w, "%s is born under %s, where another one lives (A6)", a->name, label(s));
    if (s->ending)
        find(w, "%s is born under %s, which is ending (A6)", a->name, label(s));
    struct warden_place *p = place_of(w, a->parent, a->name);
    if (p)
        return_to(w, now, a, s, p);
}

void warden_born(struct warden *w, uint64_t now, const struct warden_birth *birth)
{
    if (w->actors_count == WARDEN_ACTORS) {
        find(w, "more than %u actors live", WARDEN_ACTORS);
        return;
    }
    if (actor_of(w, birth->pid))
        find(w, "%s is born with the pid of one that lives (A2)", birth->class);
    struct warden_actor *a = &w->actors[w->actors_count++];
    *a = (struct warden_actor){.pid = birth->pid,
                               .parent = birth->parent,
                               .born = now,
                               .number = ++w->born,
                               .supervisor = birth->supervisor,
                               .dynamic = birth->dynamic};
    snprintf(a->class, sizeof(a->class), "%s", birth->class);
    snprintf(a->name, sizeof(a->name), "%s", birth->name);
    a->doubtful = a->name[0] && is_held(w, a);
    if (birth->supervisor)
        window_open(w, birth);
    judge_place(w, now, a);
}

/* ---- deaths ---- */

static void judge_order(struct warden *w, const struct warden_actor *a, const struct warden_actor *s)
{
    for (uint32_t i = 0; i < w->actors_count; i++) {
        const struct warden_actor *other = &w->actors[i];
        if (other->parent == s->pid && other->number > a->number)
            find(w, "%s ended %s before %s, which is younger (A6)", label(s), label(a), label(other));
    }
}

/* Its supervisor lives: either it was told to end, and then so are all, or it has given up itself. */
static void judge_shutdown(struct warden *w, struct warden_actor *a, struct warden_actor *s)
{
    if (a->supervisor && is_spent(w, a)) { /* also while it is waited for */
        w->escalations++;
        return;
    }
    if (s->dynamic)
        return;
    w->endings += !s->ending;
    s->ending = true;
    judge_order(w, a, s);
}

/* Its supervisor lives, and nobody has struck either. */
static void judge_kill(struct warden *w, uint64_t now, struct warden_actor *a, struct warden_actor *s)
{
    if (!is_overdue(w, now, a)) {
        find(w, "%s was killed by nobody, and its supervisor lives (A6)", label(a));
        return;
    }
    w->endings++;
    s->ending = true;
    judge_order(w, a, s);
}

static void judge_end(struct warden *w, uint64_t now, struct warden_actor *a, enum warden_end end)
{
    struct warden_actor *s = actor_of(w, a->parent);
    bool supervised = s && s->supervisor;
    if (end == WARDEN_FAULT && !a->struck)
        find(w, "%s has crashed, and nobody has struck it", label(a));
    if (end == WARDEN_KILLED && supervised && !a->struck && !s->struck && !s->ending && !s->dynamic)
        judge_kill(w, now, a, s);
    if (end == WARDEN_SHUTDOWN && supervised)
        judge_shutdown(w, a, s);
    if (end == WARDEN_SHUTDOWN && a->supervisor && !a->parent && !is_spent(w, a))
        find(w, "%s has given up with restarts left (A6)", label(a));
}

static void leave_orphans(struct warden *w, uint64_t now, const struct warden_actor *parent)
{
    for (uint32_t i = 0; i < w->actors_count; i++)
        if (w->actors[i].parent == parent->pid && !w->actors[i].orphan) {
            w->actors[i].orphan = true;
            w->actors[i].orphan_since = now;
        }
}

void warden_died(struct warden *w, uint64_t now, uint64_t pid, enum warden_end end)
{
    struct warden_actor *a = actor_of(w, pid);
    if (!a) {
        find(w, "somebody has died who wasn't born (A2)");
        return;
    }
    judge_end(w, now, a, end);
    struct warden_actor *s = actor_of(w, a->parent);
    if (a->supervisor) {
        leave_orphans(w, now, a);
        places_forget(w, a->pid);
        window_close(w, a->pid);
    }
    if (s && s->supervisor && !s->ending && !s->dynamic && a->name[0])
        place_empty(w, a, now);
    *a = w->actors[--w->actors_count];
}

void warden_struck(struct warden *w, uint64_t now, uint64_t pid)
{
    struct warden_actor *a = actor_of(w, pid);
    if (!a || a->struck)
        return;
    a->struck = true;
    a->struck_at = now;
}

bool warden_waits(const struct warden *w, uint64_t now)
{
    for (uint32_t i = 0; i < w->places_count; i++)
        if (now < w->places[i].died + WARDEN_PATIENCE_NS)
            return true;
    for (uint32_t i = 0; i < w->actors_count; i++)
        if (w->actors[i].struck && now < w->actors[i].struck_at + WARDEN_PATIENCE_NS)
            return true;
    return false;
}

bool warden_knows(const struct warden *w, uint64_t pid)
{
    for (uint32_t i = 0; i < w->actors_count; i++)
        if (w->actors[i].pid == pid)
            return true;
    return false;
}

uint64_t warden_age(const struct warden *w, uint64_t pid, uint64_t now)
{
    for (uint32_t i = 0; i < w->actors_count; i++)
        if (w->actors[i].pid == pid)
            return now - w->actors[i].born;
    return 0;
}

void warden_starve(struct warden *w)
{
    w->starved = true;
}

void warden_rest(struct warden *w)
{
    for (uint32_t i = 0; i < w->actors_count; i++)
        if (w->actors[i].struck)
            find(w, "%s was killed, and lives (A7)", label(&w->actors[i]));
    for (uint32_t i = 0; i < w->places_count; i++) {
        const struct warden_actor *s = actor_of(w, w->places[i].parent);
        if (s && !s->ending)
            find(w, "%s hasn't come back under %s (A6)", w->places[i].name, label(s));
    }
}
