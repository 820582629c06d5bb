#include "runtime/supervisor_spec.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/hash.h"
#include "runtime/names.h"
#include "runtime/runtime.h"

#define ID_MAX         (CHILD_TEXT_MAX - 1)
#define NAME_MAX_BYTES (CHILD_TEXT_MAX - 1)
STATIC_ASSERT(NAME_MAX_BYTES <= NAME_BYTES_MAX, "the registry takes every name that a spec may have");

static const char *const strategy_names[] = {
#define X(name, text) [name] = text,
    STRATEGIES(X)
#undef X
};

const char *strategy_name(enum strategy s)
{
    return (unsigned)s < STRATEGY_COUNT ? strategy_names[s] : "unknown";
}

static const char *const state_names[] = {
#define X(name, text) [name] = text,
    CHILD_STATES(X)
#undef X
};

const char *child_state_name(enum child_state s)
{
    return (unsigned)s < CHILD_STATE_COUNT ? state_names[s] : "unknown";
}

/* ---- the sentence ---- */

struct sentence {
    const char *who;
    char *text;
    size_t size;
};

__attribute__((format(printf, 3, 4))) static enum error refuse(const struct sentence *s, enum error e,
                                                               const char *format, ...)
{
    if (!s->text || !s->size)
        return e;
    int used = snprintf(s->text, s->size, "%s: ", s->who);
    if ((size_t)used >= s->size)
        return e;
    va_list args;
    va_start(args, format);
    vsnprintf(s->text + used, s->size - (size_t)used, format, args);
    va_end(args);
    return e;
}

/* ---- one child ---- */

static enum error check_class(const struct sentence *s, const struct actor_class *class)
{
    if (!class)
        return refuse(s, ERR_MISSING_START, "class is missing; it says what to start");
    if (!class->name || !class->handle)
        return refuse(s, ERR_INVALID_START,
                      "class is '%s', which has no %s; it needs a name and a handle function",
                      class->name ? class->name : "", class->name ? "handle function" : "name");
    if (class->state_size > ACTOR_STATE_MAX)
        return refuse(s, ERR_INVALID_START,
                      "class is '%s', whose state_size is %zu; it can be up to %u bytes", class->name,
                      class->state_size, ACTOR_STATE_MAX);
    return OK;
}

static enum error check_texts(const struct sentence *s, const struct child_spec *c, bool id_required)
{
    if (id_required && (!c->id || !c->id[0]))
        return refuse(s, ERR_MISSING_ID, "id is missing; it can be any text of 1 to %u bytes", ID_MAX);
    if (c->id && strnlen(c->id, ID_MAX + 1) > ID_MAX)
        return refuse(s, ERR_LIMIT, "id is '%.20s...', which is too long; it can be up to %u bytes", c->id,
                      ID_MAX);
    if (c->name && (!c->name[0] || strnlen(c->name, NAME_MAX_BYTES + 1) > NAME_MAX_BYTES))
        return refuse(s, ERR_INVALID, "name is '%.20s'; it can be NULL or a text of 1 to %u bytes", c->name,
                      NAME_MAX_BYTES);
    return OK;
}

static enum error check_start(const struct sentence *s, const struct child_spec *c)
{
    enum error e = check_class(s, c->class);
    if (e)
        return e;
    if (c->args_size > ACTOR_ARGS_MAX)
        return refuse(s, ERR_BADARG, "args_size is %zu; it can be up to %u bytes", c->args_size,
                      ACTOR_ARGS_MAX);
    if (!c->args && c->args_size)
        return refuse(s, ERR_BADARG, "args is NULL, but args_size is %zu; it can be 0 then", c->args_size);
    if (c->scheduler < -RUNTIME_SCHEDULERS_MAX || c->scheduler > RUNTIME_SCHEDULERS_MAX)
        return refuse(s, ERR_INVALID,
                      "scheduler is %d; it can be SPAWN_HERE, SPAWN_ON(0..%d) or SPAWN_DEDICATED(n)",
                      c->scheduler, RUNTIME_SCHEDULERS_MAX - 1);
    return OK;
}

static enum error check_patience(const struct sentence *s, const struct child_spec *c)
{
    const struct backoff_spec *b = &c->backoff;
    uint32_t max = b->max_ms ? b->max_ms : PATIENCE_DEFAULT_MS;
    if (b->first_ms > max)
        return refuse(s, ERR_BAD_COMBINATION, "backoff.first_ms is %u; it can be up to max_ms, which is %u",
                      b->first_ms, max);
    if (c->quarantine.failures > QUARANTINE_FAILURES_MAX)
        return refuse(s, ERR_LIMIT, "quarantine.failures is %u; it can be 0 (off) to %u",
                      c->quarantine.failures, QUARANTINE_FAILURES_MAX);
    return OK;
}

static enum error check_rules(const struct sentence *s, const struct child_spec *c,
                              enum auto_shutdown auto_shutdown)
{
    if ((unsigned)c->restart >= RESTART_TYPE_COUNT)
        return refuse(s, ERR_INVALID_RESTART,
                      "restart is %d; it can be permanent (0), transient (1) or temporary (2)",
                      (int)c->restart);
    if (c->shutdown_ms < SHUTDOWN_AT_ONCE)
        return refuse(
            s, ERR_INVALID_SHUTDOWN,
            "shutdown_ms is %lld; it can be milliseconds, SHUTDOWN_DEFAULT (0), SHUTDOWN_INFINITY (-1), "
            "SHUTDOWN_BRUTAL (-2) or SHUTDOWN_AT_ONCE (-3)",
            (long long)c->shutdown_ms);
    if ((unsigned)c->type >= CHILD_TYPE_COUNT)
        return refuse(s, ERR_INVALID_TYPE, "type is %d; it can be worker (0) or supervisor (1)",
                      (int)c->type);
    if (c->significant && c->restart == RESTART_PERMANENT)
        return refuse(s, ERR_BAD_COMBINATION,
                      "significant is true, but restart is permanent; it can be transient or "
                      "temporary then");
    if (c->significant && auto_shutdown == AUTO_SHUTDOWN_NEVER)
        return refuse(s, ERR_BAD_COMBINATION,
                      "significant is true, but the supervisor's auto_shutdown is never; it can "
                      "be any or all then");
    return OK;
}

enum error spec_check_child(const struct child_spec *spec, bool id_required, enum auto_shutdown auto_shutdown,
                            const char *who, char *ret_text, size_t text_size)
{
    const struct sentence s = {who, ret_text, text_size};
    enum error e = check_texts(&s, spec, id_required);
    if (!e)
        e = check_start(&s, spec);
    if (!e)
        e = check_rules(&s, spec, auto_shutdown);
    return e ? e : check_patience(&s, spec);
}

/* ---- lists ---- */

#define IDS_ON_STACK 512u

static bool ids_differ(const struct child_spec *specs, size_t count, uint32_t *slots, size_t mask,
                       size_t *ret_place)
{
    static const struct hash_key key = {.k0 = 0x9ae16a3b2f90404fu, .k1 = 0xc949c7defebb5ac5u};
    for (size_t i = 0; i < count; i++) {
        const char *id = specs[i].id;
        ASSERT(id); /* checked before */
        size_t at = (size_t)hash_bytes(&key, id, strlen(id)) & mask;
        for (; slots[at]; at = (at + 1) & mask)
            if (strcmp(specs[slots[at] - 1].id, id) == 0) {
                *ret_place = i;
                return false;
            }
        slots[at] = (uint32_t)i + 1;
    }
    return true;
}

static enum error check_ids(const struct child_spec *specs, size_t count, const struct sentence *s)
{
    uint32_t few[2 * IDS_ON_STACK] = {0};
    uint32_t *slots = few;
    size_t room = 2 * IDS_ON_STACK, place = 0;
    if (count > IDS_ON_STACK) {
        while (room < 2 * count)
            room *= 2;
        slots = calloc(room, sizeof *slots);
        if (!slots)
            return refuse(s, ERR_MEMORY, "no memory to compare %zu ids", count);
    }
    bool differ = ids_differ(specs, count, slots, room - 1, &place);
    if (slots != few)
        free(slots);
    if (differ)
        return OK;
    return refuse(s, ERR_DUPLICATE_ID,
                  "id of children[%zu] is '%s', as that of an earlier child; each needs its own", place,
                  specs[place].id);
}

enum error supervisor_check_children(const struct child_spec *specs, size_t count,
                                     enum auto_shutdown auto_shutdown, char *ret_text, size_t text_size)
{
    const struct sentence s = {"spec", ret_text, text_size};
    if (count == 0)
        return OK;
    if (!specs)
        return refuse(&s, ERR_BADARG, "children is NULL, but children_count is %zu; it can be 0 then", count);
    if (count > SUPERVISOR_CHILDREN_MAX)
        return refuse(&s, ERR_LIMIT, "children_count is %zu; it can be up to %u", count,
                      SUPERVISOR_CHILDREN_MAX);
    for (size_t i = 0; i < count; i++) {
        char who[64];
        snprintf(who, sizeof who, "children[%zu] '%.32s'", i, specs[i].id ? specs[i].id : "");
        enum error e = spec_check_child(&specs[i], true, auto_shutdown, who, ret_text, text_size);
        if (e)
            return e;
    }
    return check_ids(specs, count, &s);
}

/* ---- the supervisor's own flags ---- */

static enum error check_flags(const struct sentence *s, const struct supervisor_spec *p)
{
    if ((unsigned)p->strategy >= STRATEGY_COUNT)
        return refuse(
            s, ERR_INVALID_STRATEGY,
            "strategy is %d; it can be one_for_one (0), one_for_all (1), rest_for_one (2) or dynamic (3)",
            (int)p->strategy);
    if (p->intensity < 0 || p->intensity > SUPERVISOR_INTENSITY_MAX)
        return refuse(s, ERR_INVALID_INTENSITY, "intensity is %d; it can be 0 to %d", (int)p->intensity,
                      SUPERVISOR_INTENSITY_MAX);
    if (p->period_ms < 0 || (p->period_ms == 0 && p->intensity != 0))
        return refuse(
            s, ERR_INVALID_PERIOD,
            "period_ms is %lld; it can be 1 or more (or 0 together with intensity 0: 1 restart in 5 s)",
            (long long)p->period_ms);
    if ((unsigned)p->auto_shutdown >= AUTO_SHUTDOWN_COUNT)
        return refuse(s, ERR_INVALID_FLAGS, "auto_shutdown is %d; it can be never (0), any (1) or all (2)",
                      (int)p->auto_shutdown);
    if (p->strategy == DYNAMIC && p->auto_shutdown != AUTO_SHUTDOWN_NEVER)
        return refuse(s, ERR_BAD_COMBINATION,
                      "auto_shutdown is %s, but strategy is dynamic; it can be never then",
                      p->auto_shutdown == AUTO_SHUTDOWN_ANY ? "any" : "all");
    return OK;
}

static enum error check_name(const struct sentence *s, const struct supervisor_spec *p)
{
    if (p->name && strnlen(p->name, NAME_MAX_BYTES + 1) > NAME_MAX_BYTES)
        return refuse(s, ERR_INVALID_FLAGS, "name is '%.20s...', which is too long; it can be up to %u bytes",
                      p->name, NAME_MAX_BYTES);
    if (p->register_name && (!p->name || !p->name[0]))
        return refuse(s, ERR_INVALID_FLAGS,
                      "register_name is true, but name is empty; it can be 1 to %u bytes", NAME_MAX_BYTES);
    return OK;
}

static enum error check_dynamic(const struct sentence *s, const struct supervisor_spec *p)
{
    if (p->children || p->children_count)
        return refuse(s, ERR_INVALID_FLAGS,
                      "children are given, but strategy is dynamic; there can be a template");
    if (p->max_children > SUPERVISOR_CHILDREN_MAX)
        return refuse(s, ERR_INVALID_FLAGS, "max_children is %u; it can be up to %u", p->max_children,
                      SUPERVISOR_CHILDREN_MAX);
    if (!p->template)
        return OK;
    return spec_check_child(p->template, false, p->auto_shutdown, "template", s->text, s->size);
}

enum error supervisor_check(const struct supervisor_spec *spec, char *ret_text, size_t text_size)
{
    const struct sentence s = {"supervisor", ret_text, text_size};
    if (!spec)
        return refuse(&s, ERR_INVALID_FLAGS, "spec is NULL; it can be a struct supervisor_spec");
    enum error e = check_flags(&s, spec);
    if (!e)
        e = check_name(&s, spec);
    if (e)
        return e;
    if (spec->strategy == DYNAMIC)
        return check_dynamic(&s, spec);
    if (spec->template)
        return refuse(&s, ERR_INVALID_FLAGS, "template is given, but strategy is %s; it can be dynamic then",
                      strategy_name(spec->strategy));
    return supervisor_check_children(spec->children, spec->children_count, spec->auto_shutdown, ret_text,
                                     text_size);
}

/* ---- plans ---- */

static int64_t shutdown_of(const struct child_spec *spec)
{
    if (spec->shutdown_ms != SHUTDOWN_DEFAULT)
        return spec->shutdown_ms;
    return spec->type == CHILD_SUPERVISOR ? SHUTDOWN_INFINITY : SHUTDOWN_WORKER_MS;
}

static void or_default(uint32_t *ms)
{
    if (!*ms)
        *ms = PATIENCE_DEFAULT_MS;
}

static size_t size_of(size_t id_size, size_t name_size)
{
    return sizeof(struct child_plan) + id_size + name_size;
}

struct child_plan *plan_new(struct children *t, const struct child_spec *spec)
{
    size_t id_size = spec->id && spec->id[0] ? strlen(spec->id) + 1 : 0;
    size_t name_size = spec->name ? strlen(spec->name) + 1 : 0;
    struct child_plan *p = children_block(t, size_of(id_size, name_size));
    if (!p)
        return NULL;
    *p = (struct child_plan){.class = spec->class,
                             .shutdown_ms = shutdown_of(spec),
                             .scheduler = spec->scheduler,
                             .restart = (uint8_t)spec->restart,
                             .type = (uint8_t)spec->type,
                             .significant = spec->significant,
                             .id_size = (uint8_t)id_size,
                             .name_size = (uint8_t)name_size,
                             .backoff = spec->backoff,
                             .quarantine = spec->quarantine};
    or_default(&p->backoff.max_ms);
    or_default(&p->backoff.reset_ms);
    or_default(&p->quarantine.window_ms);
    or_default(&p->quarantine.retry_ms);
    if (id_size)
        memcpy(p->text, spec->id, id_size);
    if (name_size)
        memcpy(p->text + id_size, spec->name, name_size);
    return p;
}

void plan_free(struct children *t, struct child_plan *plan)
{
    children_block_free(t, plan, size_of(plan->id_size, plan->name_size));
}
