#include "config/reload.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "config/certificate.h"
#include "config/log.h"
#include "config/notify.h"
#include "config/outside.h"
#include "http/catalogue.h"
#include "http/timestamp.h"
#include "http/tls.h"
#include "runtime/actor.h"

enum { SLOTS = 2 };

static struct {
    const struct settings *started; /* what is in force where a restart is needed */
    int argc;
    char *const *argv;
    char *const *environment;
    uint32_t next;                /* slot of the next reload */
    struct settings slots[SLOTS]; /* the last and the one before: somebody may still be reading that */
    void (*apply)(void *context, const struct settings *settings);
    void *context;
} state;

static _Atomic(const struct settings *) current;

void reload_install(const struct settings *settings, int argc, char *const argv[], char *const environment[])
{
    state.started = settings;
    state.argc = argc;
    state.argv = argv;
    state.environment = environment;
    state.apply = NULL;
    atomic_store(&current, settings);
}

void reload_on_apply(void (*apply)(void *context, const struct settings *settings), void *context)
{
    state.context = context;
    state.apply = apply;
}

const struct settings *reload_settings(void)
{
    return atomic_load(&current);
}

const struct settings *reload_started(void)
{
    return state.started;
}

/* ---- what has changed ---- */

static void note(char *keys, size_t size, const char *key)
{
    size_t used = strlen(keys);
    if (used + strlen(key) + 3 <= size)
        snprintf(keys + used, size - used, "%s%s", used ? ", " : "", key);
}

/* TLS is there or not from the start on: listeners know. What a certificate is may change. */
static bool tls_switched(const struct options *a, const struct options *b)
{
    return !*a->tls_certificate != !*b->tls_certificate;
}

/* switched: TLS is to be there from the next start on, or is to be no more. */
static bool needs_restart(const struct option *o, bool switched)
{
    bool tls = o->offset == offsetof(struct options, tls_certificate) ||
               o->offset == offsetof(struct options, tls_key);
    return !(o->marks & MARK_RELOAD) || (tls && switched);
}

static bool overrides_same(const struct settings *a, const struct settings *b)
{
    return a->overrides_count == b->overrides_count &&
           memcmp(a->overrides, b->overrides, a->overrides_count * sizeof(a->overrides[0])) == 0;
}

static bool templates_same(const struct settings *a, const struct settings *b)
{
    return a->templates_count == b->templates_count &&
           memcmp(a->templates, b->templates, a->templates_count * sizeof(a->templates[0])) == 0;
}

/* The file has the same name and is another one. */
static void note_certificate(const struct tls_context *tls, struct reload_report *r)
{
    char until[TIMESTAMP_SIZE], text[64];
    int64_t until_s = tls_context_validity(tls).until_s;
    timestamp_format(until_s > 0 ? (uint64_t)until_s * NS_PER_S : 0, until);
    snprintf(text, sizeof(text), "tls.certificate (until %s)", until);
    r->applied++;
    note(r->applied_keys, sizeof(r->applied_keys), text);
}

static void compare(const struct settings *before, const struct settings *next, struct reload_report *r)
{
    bool switched = tls_switched(&state.started->options, &next->options);
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *o = &option_table[i];
        if (!option_is_setting(o) || o->marks & MARK_CLIENT)
            continue;
        if (needs_restart(o, switched)) {
            if (option_same(o, &state.started->options, &next->options))
                continue;
            r->restart++;
            note(r->restart_keys, sizeof(r->restart_keys), o->key);
        } else if (!option_same(o, &before->options, &next->options)) {
            r->applied++;
            note(r->applied_keys, sizeof(r->applied_keys), o->key);
        }
    }
    if (!overrides_same(before, next)) {
        r->applied++;
        note(r->applied_keys, sizeof(r->applied_keys), "limits.clients");
    }
    if (!templates_same(state.started, next)) {
        r->restart++;
        note(r->restart_keys, sizeof(r->restart_keys), "agent_templates");
    }
}

/* What isn't in force isn't what the server runs with: whoever asks for its settings is told those that are. */
static void keep_started(struct settings *next)
{
    const struct settings *started = state.started;
    bool switched = tls_switched(&started->options, &next->options);
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (option_is_setting(&option_table[i]) && needs_restart(&option_table[i], switched))
            option_copy(&option_table[i], &next->options, &started->options);
    next->templates_count = started->templates_count;
    memcpy(next->templates, started->templates, started->templates_count * sizeof(started->templates[0]));
}

/* ---- all or nothing ---- */

/* True: *ret_context is the new one, or NULL when there is none to be installed. */
static bool prepare(const struct options *o, struct tls_context **ret_context, char *why, size_t why_size)
{
    *ret_context = NULL;
    bool switched = tls_switched(&state.started->options, o);
    if (!outside_check(o, state.environment, switched ? NULL : ret_context, why, why_size))
        return false;
    if (!*ret_context)
        return true;
    struct tls_validity validity = tls_context_validity(*ret_context);
    if (certificate_may_follow(validity, o->tls_certificate, why, why_size)) {
        certificate_warn(validity, o->tls_certificate);
        return true;
    }
    tls_context_release(*ret_context);
    return false;
}

static void apply(const struct settings *before, const struct settings *next, struct tls_context *tls)
{
    const struct options *o = &next->options;
    if (o->log_level != before->options.log_level) /* otherwise the one that an operator has set stays */
        log_set_level(o->log_level);
    log_set_text(strcmp(o->log_format, "text") == 0);
    if (state.apply)
        state.apply(state.context, next);
    if (tls)
        tls_context_install(tls);
    atomic_store(&current, next);
}

void reload_now(struct reload_report *ret)
{
    const struct settings *before = atomic_load(&current);
    struct settings *next = &state.slots[state.next];
    struct tls_context *tls = NULL;
    *ret = (struct reload_report){0};
    ASSERT(before);
    actor_guard_begin(); /* a folder is listed, which takes memory from the heap */
    int status = settings_load(next, state.argc, state.argv, state.environment, ret->why, sizeof(ret->why));
    actor_guard_end();
    if (status != 0 || !prepare(&next->options, &tls, ret->why, sizeof(ret->why)))
        return;
    compare(before, next, ret);
    if (tls && tls_context_differs(tls))
        note_certificate(tls, ret);
    keep_started(next);
    apply(before, next, tls);
    state.next = (state.next + 1) % SLOTS;
    ret->done = true;
}

/* ---- the report ---- */

void reload_tell(const struct reload_report *r)
{
    if (!r->done)
        LOG(LOG_ERROR, "reload", "the settings can't be used; everything stays as it was", {"err", r->why, 0},
            {"error_code", catalogue_row(ERROR_RFA_CONFIG_INVALID)->code, 0});
    else if (r->restart)
        LOG(LOG_WARN, "reload", "settings reloaded; some need a restart", {"applied", r->applied_keys, 0},
            {"needs_restart", r->restart_keys, 0});
    else
        LOG(LOG_INFO, "reload", "settings reloaded", {"applied", r->applied_keys, 0});
}

void reload_write_json(const struct reload_report *r, struct json *json)
{
    json_object_begin(json);
    JSON_MEMBER(json, "reloaded", bool, r->done);
    if (r->done) {
        JSON_MEMBER(json, "applied", string, r->applied_keys);
        JSON_MEMBER(json, "needs_restart", string, r->restart_keys);
    } else {
        JSON_MEMBER(json, "err", string, r->why);
    }
    json_object_end(json);
}
