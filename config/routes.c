#include "config/routes.h"

#include <string.h>

#include "actors/jobs.h"
#include "config/clock.h"
#include "config/log.h"
#include "config/reload.h"
#include "config/signals.h"
#include "http/audits.h"
#include "http/front.h"
#include "http/json_text.h"

#define RELOAD_ANSWER_MS 5000
#define RELOAD_AUDIT_MS  4000  /* less: a store that hangs doesn't hide what came of it */
#define BODY_MAX         4096u /* a reason of 512 characters, escaped */

static void serve_config(const struct request *q, struct response *r)
{
    const struct settings *settings = reload_settings();
    struct json json;
    (void)q;
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    settings_write_json(&json, &settings->options, &settings->file, &reload_started()->file, SOURCE_COUNT);
    json_sink_text(&r->sink, "\n");
}

/* The member's text, with a 0 behind it; false: there is none, or it is longer. */
static bool member_of(const struct request *q, const char *name, char *text, size_t size)
{
    const struct json_node *root = q->json ? json_root(q->json) : NULL,
                           *node =
                               root && root->kind == JSON_OBJECT ? json_member(q->json, root, name) : NULL;
    struct span value;
    if (!node || node->kind != JSON_STRING || !json_string_of(q->json, node, text, size - 1, &value) ||
        value.size >= size)
        return false;
    memmove(text, value.bytes, value.size);
    text[value.size] = 0;
    return true;
}

static void audit(const struct request *q, const char *verb, const char *target, const char *outcome)
{
    char reason[BODY_MAX];
    bool given = member_of(q, "reason", reason, sizeof(reason));
    (void)audits_note(q, &(struct audits_entry){.verb = verb,
                                                .target = target,
                                                .reason = given ? span_text(reason) : span_of(NULL, 0),
                                                .outcome = outcome});
}

/* Without a report: whether it was done is known when nobody was asked. */
static void refuse_reload(const struct request *q, struct response *r, enum error e)
{
    if (e == ERR_TIMEOUT) {
        response_error(
            r, catalogue_code(SURFACE_OPERATOR, ERROR_KIND_TIMEOUT),
            "the reload has not ended within %d s; it may still be done: the log says what came of "
            "it, and its audit entry where the store takes one",
            RELOAD_ANSWER_MS / 1000);
        return;
    }
    if (e == ERR_DOWN) {
        audit(q, "config.reload", "settings", "unknown");
        response_error(r, catalogue_code(SURFACE_OPERATOR, ERROR_KIND_UNAVAILABLE),
                       "whoever reads the settings has ended meanwhile; they may have been reloaded");
        return;
    }
    response_error(r, catalogue_code(SURFACE_OPERATOR, ERROR_KIND_UNAVAILABLE),
                   "the reload could not be asked for: %s", catalogue_sentence(e));
}

static void serve_reload(const struct request *q, struct response *r)
{
    struct message *answer = NULL, *ask = message_new(SIGNALS_RELOAD, sizeof(struct signals_reload));
    enum error e = ERR_MEMORY;
    struct json json;
    if (ask) {
        signals_reload_fill(message_body(ask, sizeof(struct signals_reload)), q,
                            actor_deadline_ms(RELOAD_AUDIT_MS));
        e = actor_call_name(SIGNALS_NAME, ask, &answer, actor_deadline_ms(RELOAD_ANSWER_MS));
    }
    const struct reload_report *report = e == OK ? message_body(answer, sizeof(*report)) : NULL;
    if (!report) {
        refuse_reload(q, r, e);
        return;
    }
    if (!report->done) {
        response_error(r, ERROR_RFA_CONFIG_INVALID, "everything stays as it was: %s", report->why);
        return;
    }
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    reload_write_json(report, &json);
    json_sink_text(&r->sink, "\n");
}

static void write_log(struct response *r)
{
    struct json json;
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "level", string, log_level_name(log_level_here()));
    JSON_MEMBER(&json, "dropped", uint, log_dropped());
    json_object_end(&json);
    json_sink_text(&r->sink, "\n");
}

static void serve_log(const struct request *q, struct response *r)
{
    (void)q;
    write_log(r);
}

static void serve_level(const struct request *q, struct response *r)
{
    char name[16];
    enum log_level level;
    if (!member_of(q, "level", name, sizeof(name)) || !log_level_of(name, &level)) {
        response_error(r, catalogue_code(SURFACE_OPERATOR, ERROR_KIND_INVALID),
                       "level must be debug, info, warn or error");
        return;
    }
    log_set_level(level);
    audit(q, "log.level", log_level_name(level), "set");
    write_log(r);
}

/* AMB-78: elsewhere than in dev time is what it is. */
static void serve_advance(const struct request *q, struct response *r)
{
    char by[64];
    struct json json;
    uint64_t ns;
    if (strcmp(q->front->environment, "dev") != 0) {
        response_error(r, catalogue_code(SURFACE_OPERATOR, ERROR_KIND_FORBIDDEN),
                       "the clock can be moved in dev only; this is %s", q->front->environment);
        return;
    }
    if (!member_of(q, "by", by, sizeof(by)) || !option_duration(by, &ns)) {
        response_error(r, catalogue_code(SURFACE_OPERATOR, ERROR_KIND_INVALID),
                       "by must be a duration, such as 24h");
        return;
    }
    bool advanced = clock_advance(ns);
    if (advanced)
        jobs_clock_moved();
    audit(q, "clock.advance", by, advanced ? "advanced" : "refused");
    if (!advanced) {
        response_error(r, catalogue_code(SURFACE_OPERATOR, ERROR_KIND_CONFLICT),
                       "the clock can't be moved that far; it is %llu s ahead",
                       (unsigned long long)(clock_ahead() / NS_PER_S));
        return;
    }
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "ahead_seconds", uint, clock_ahead() / NS_PER_S);
    json_object_end(&json);
    json_sink_text(&r->sink, "\n");
}

const struct route config_routes[] = {
    {.method = METHOD_POST,
     .path = "/clock:advance",
     .surface = SURFACE_OPERATOR,
     .auth = AUTH_OPERATOR,
     .body_max = BODY_MAX,
     .changes = true,
     .serve = serve_advance},
    {.method = METHOD_GET,
     .path = "/config",
     .surface = SURFACE_OPERATOR,
     .auth = AUTH_OPERATOR,
     .serve = serve_config},
    {.method = METHOD_POST,
     .path = "/config:reload",
     .surface = SURFACE_OPERATOR,
     .auth = AUTH_OPERATOR,
     .body_max = BODY_MAX,
     .body_optional = true,
     .changes = true,
     .serve = serve_reload},
    {.method = METHOD_GET,
     .path = "/log",
     .surface = SURFACE_OPERATOR,
     .auth = AUTH_OPERATOR,
     .quiet = true,
     .serve = serve_log},
    {.method = METHOD_POST,
     .path = "/log:level",
     .surface = SURFACE_OPERATOR,
     .auth = AUTH_OPERATOR,
     .body_max = BODY_MAX,
     .changes = true,
     .serve = serve_level},
};
const size_t config_routes_count = sizeof(config_routes) / sizeof(*config_routes);
