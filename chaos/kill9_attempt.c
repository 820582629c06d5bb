#include "chaos/kill9_attempt.h"

#include <inttypes.h>
#include <stdio.h>

const char *attempt_kind_name(uint8_t kind)
{
    static const char *const names[] = {
#define X(id, name) [id] = name,
        ATTEMPTS_KINDS(X)
#undef X
    };
    return names[kind];
}

bool attempt_open(const struct attempt *a)
{
    return atomic_load(&a->stage) != ANSWERED || attempt_open_ended(a->error);
}

bool attempt_on_row(const struct attempt *a)
{
    return a->kind == MARK || a->kind == DEFER || a->kind == BURY;
}

bool attempt_turned_away(enum error e)
{
    return e == ERR_FULL || e == ERR_SHED || e == ERR_UNAVAILABLE || e == ERR_NOPROC || e == ERR_NO_SPACE ||
           e == ERR_MEMORY;
}

bool attempt_open_ended(enum error e)
{
    return e == ERR_TIMEOUT || e == ERR_DOWN || e == ERR_IO;
}

/* ---- parcels ---- */

static void request_send(const struct attempt *a, struct request *r)
{
    if (a->key)
        snprintf(r->key, sizeof(r->key), "k%" PRIu32, a->key);
    r->class = &parcel_send_class;
    r->command.send = (struct parcel_send){.id = names_parcel(a->owner, a->parcel),
                                           .scope = span_text(names_scope(a->owner)),
                                           .key = span_text(r->key),
                                           .digest = names_digest(a->owner, a->parcel, a->variant),
                                           .due_us = a->due_us,
                                           .body = names_body(a->owner, a->parcel, a->size)};
}

static void request_move(const struct attempt *a, struct request *r)
{
    r->class = &parcel_move_class;
    r->command.move = (struct parcel_move){.id = names_parcel(a->owner, a->parcel), .event = a->event};
}

static void request_drop(const struct attempt *a, struct request *r)
{
    r->class = &parcel_drop_class;
    r->command.drop = (struct parcel_drop){.id = names_parcel(a->owner, a->parcel)};
}

static void request_sweep(const struct attempt *a, struct request *r)
{
    r->class = &retention_sweep_class;
    r->command.sweep = (struct retention_sweep){.limit = a->limit, .until_us = a->due_us};
}

/* ---- rows of the outbox ---- */

static void request_claim(const struct attempt *a, struct request *r)
{
    r->class = &outbox_claim_class;
    r->command.claim = (struct outbox_claim_command){.partition = a->partition, .holder = 9};
}

static void request_mark(const struct attempt *a, struct request *r)
{
    r->class = &outbox_mark_class;
    r->command.mark =
        (struct outbox_mark_command){.partition = a->partition, .seq = a->seq, .fence = a->fence};
}

static void request_defer(const struct attempt *a, struct request *r)
{
    r->class = &outbox_defer_class;
    r->command.defer = (struct outbox_defer_command){
        .partition = a->partition, .seq = a->seq, .fence = a->fence, .not_before_us = 5000};
}

static void request_bury(const struct attempt *a, struct request *r)
{
    r->class = &outbox_bury_class;
    r->command.bury = (struct outbox_bury_command){
        .partition = a->partition, .seq = a->seq, .fence = a->fence, .reason = span_text("nobody there")};
}

/* ---- what has a parcel's number ---- */

static void request_use(const struct attempt *a, struct request *r)
{
    r->class = &seen_token_put_class;
    r->command.use = (struct seen_token_put){.issuer = span_text("kill9"),
                                             .jti = names_token(a->owner, a->parcel, r->key),
                                             .digest = names_digest(a->owner, a->parcel, a->variant),
                                             .subject = span_text(names_scope(a->owner)),
                                             .expires_us = ATTEMPT_TOKEN_EXPIRES_US};
}

static void request_enrol(const struct attempt *a, struct request *r)
{
    r->class = &client_create_class;
    r->command.enrol =
        (struct client_create){.id = names_parcel(a->owner, a->parcel), .from = span_text("kill9")};
}

static void request_note(const struct attempt *a, struct request *r)
{
    r->class = &audit_append_class;
    r->command.note = (struct audit_append){.id = names_note(a->owner, a->parcel),
                                            .who = span_text("kill9"),
                                            .verb = span_text("parcel.note"),
                                            .target = span_text(names_scope(a->owner)),
                                            .details = span_text("{}")};
}

/* ---- keys of its client ---- */

struct span attempt_issue_key(uint32_t slot, char text[NAMES_SIZE])
{
    return span_of(text, (size_t)snprintf(text, NAMES_SIZE, "i%" PRIu32, slot));
}

struct span attempt_issue_scope(const struct uuid *client, char text[ATTEMPT_SCOPE_SIZE])
{
    char id[UUID_TEXT_SIZE];
    uuid_format(client, id);
    return span_of(text, (size_t)snprintf(text, ATTEMPT_SCOPE_SIZE, "api_key.issue/%s", id));
}

static struct uuid caller_of(const struct attempt *a)
{
    return a->caller ? names_api_key(a->owner, a->parcel, a->caller - 1u) : (struct uuid){{0}};
}

static void request_issue(const struct attempt *a, struct request *r)
{
    r->class = &api_key_issue_class;
    r->command.issue = (struct api_key_issue){.client = names_parcel(a->owner, a->parcel),
                                              .id = names_api_key(a->owner, a->parcel, a->slot),
                                              .hash = names_api_key_hash(a->owner, a->parcel, a->slot),
                                              .verb = a->verb,
                                              .caller = caller_of(a),
                                              .window_us = CLIENT_UNUSED_US,
                                              .ttl_us = a->spent ? 0 : ATTEMPT_KEY_TTL_US,
                                              .kept_us = a->fleeting ? 0 : ATTEMPT_KEY_KEPT_US,
                                              .by = span_text(names_scope(a->owner)),
                                              .digest = names_digest(a->owner, a->parcel, a->variant)};
    if (a->key)
        r->command.issue.key = attempt_issue_key(a->slot, r->key);
}

static void request_revoke(const struct attempt *a, struct request *r)
{
    r->class = &api_key_revoke_class;
    r->command.revoke = (struct api_key_revoke){.client = names_parcel(a->owner, a->parcel),
                                                .id = names_api_key(a->owner, a->parcel, a->slot),
                                                .caller = caller_of(a),
                                                .by = span_text(names_scope(a->owner)),
                                                .kept_us = a->fleeting ? 0 : ATTEMPT_KEY_KEPT_US};
    if (a->noted)
        r->command.revoke.audit = names_api_key_note(a->owner, a->parcel, a->slot);
}

static void request_touch(const struct attempt *a, struct request *r)
{
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        struct uuid id = names_api_key(a->owner, a->parcel, slot);
        uint8_t *use = r->uses + slot * (size_t)API_KEY_TOUCH_SIZE;
        memcpy(use, &id, sizeof(id));
        memcpy(use + sizeof(id), &a->due_us, sizeof(a->due_us));
    }
    r->class = &api_key_touch_class;
    r->command.touch = (struct api_key_touch){.uses = span_of(r->uses, sizeof(r->uses))};
}

void attempt_request(const struct attempt *a, struct request *ret_request)
{
    static void (*const requests[])(const struct attempt *, struct request *) = {
        [SEND] = request_send,   [MOVE] = request_move,   [DROP] = request_drop,   [CLAIM] = request_claim,
        [MARK] = request_mark,   [DEFER] = request_defer, [BURY] = request_bury,   [USE] = request_use,
        [ENROL] = request_enrol, [NOTE] = request_note,   [ISSUE] = request_issue, [REVOKE] = request_revoke,
        [TOUCH] = request_touch, [SWEEP] = request_sweep,
    };
    memset(ret_request, 0, sizeof(*ret_request));
    requests[a->kind](a, ret_request);
}
