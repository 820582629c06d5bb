/* The caller's side of a supervisor: each function is one call, and copies out of the answer. */
#include "runtime/supervisor_calls.h"

#include <string.h>

#define TEXT_MAX 96u /* one more than any id or name may have: what is cut here is refused there */

/* Copies the answer's payload when it is of this type and size; everything else is an error. */
static enum error answer_take(struct message *m, uint32_t type, void *ret, size_t size)
{
    enum error e = ERR_INVALID;
    if (m->type == type && m->size == size) {
        memcpy(ret, m->payload, size);
        e = OK;
    } else if (m->type == ANSWER_ERROR && m->size == sizeof(uint32_t)) {
        uint32_t code;
        memcpy(&code, m->payload, sizeof code);
        e = (enum error)code;
    }
    message_free(m);
    return e;
}

/* Why it went down isn't asked here; the message that says so must not be taken for an answer. */
static enum error call(actor_pid sup, struct message *request, struct message **ret_reply, uint64_t deadline)
{
    struct message *reply = NULL;
    enum error e = actor_call(sup, request, &reply, deadline);
    if (!e)
        *ret_reply = reply;
    else if (reply)
        message_free(reply);
    return e;
}

static struct message *request_with_id(uint32_t type, const char *id)
{
    size_t length = id ? strnlen(id, TEXT_MAX) : 0;
    struct message *m = message_new(type, length + 1);
    if (m) {
        memcpy(m->payload, id ? id : "", length);
        m->payload[length] = 0;
    }
    return m;
}

static enum error call_plain(actor_pid sup, struct message *request, uint64_t deadline)
{
    struct message *reply;
    enum error e = call(sup, request, &reply, deadline);
    return e ? e : answer_take(reply, ANSWER_ERROR, NULL, SIZE_MAX);
}

static enum error call_for_child(actor_pid sup, struct message *request, struct child_result *ret,
                                 uint64_t deadline)
{
    struct message *m;
    enum error e = call(sup, request, &m, deadline);
    if (e)
        return e;
    if (m->type == ANSWER_REFUSED && m->size == sizeof(struct child_refusal)) {
        const struct child_refusal *r = (const struct child_refusal *)(const void *)m->payload;
        e = (enum error)r->error;
        if (ret)
            *ret = (struct child_result){.pid = r->pid, .why = reason_copy(&r->why)};
        message_free(m);
        return e;
    }
    struct child_answer a = {.error = ERR_INVALID};
    e = answer_take(m, ANSWER_CHILD, &a, sizeof a);
    if (e)
        return e;
    if (ret)
        *ret = (struct child_result){.pid = a.pid, .info = a.info};
    return (enum error)a.error;
}

/* ---- children ---- */

static size_t text_size(const char *text)
{
    return text ? strnlen(text, TEXT_MAX) + 1 : 0;
}

static unsigned char *text_put(unsigned char *to, const char *text, size_t size)
{
    if (size) {
        memcpy(to, text, size - 1);
        to[size - 1] = 0;
    }
    return to + size;
}

enum error supervisor_start_child(actor_pid sup, const struct child_spec *spec, struct child_result *ret,
                                  uint64_t deadline)
{
    if (!spec || spec->args_size > ACTOR_ARGS_MAX || (spec->args_size && !spec->args))
        return ERR_BADARG;
    size_t id_size = text_size(spec->id), name_size = text_size(spec->name);
    struct message *m =
        message_new(CALL_START_CHILD, sizeof(struct start_request) + spec->args_size + id_size + name_size);
    if (!m)
        return ERR_MEMORY;
    struct start_request *r = (struct start_request *)(void *)m->payload;
    *r = (struct start_request){.class = spec->class,
                                .shutdown_ms = spec->shutdown_ms,
                                .scheduler = spec->scheduler,
                                .restart = (int32_t)spec->restart,
                                .type = (int32_t)spec->type,
                                .backoff = spec->backoff,
                                .quarantine = spec->quarantine,
                                .args_size = (uint32_t)spec->args_size,
                                .id_size = (uint8_t)id_size,
                                .name_size = (uint8_t)name_size,
                                .significant = spec->significant};
    if (spec->args_size)
        memcpy(r->bytes, spec->args, spec->args_size);
    text_put(text_put(r->bytes + spec->args_size, spec->id, id_size), spec->name, name_size);
    return call_for_child(sup, m, ret, deadline);
}

enum error supervisor_start_dynamic(actor_pid sup, const void *args, size_t args_size, const char *name,
                                    struct child_result *ret, uint64_t deadline)
{
    if (args_size > ACTOR_ARGS_MAX || (args_size && !args))
        return ERR_BADARG;
    size_t name_size = text_size(name);
    struct message *m =
        message_new(CALL_START_DYNAMIC, sizeof(struct start_dynamic_request) + args_size + name_size);
    if (!m)
        return ERR_MEMORY;
    struct start_dynamic_request *r = (struct start_dynamic_request *)(void *)m->payload;
    r->args_size = (uint32_t)args_size;
    r->name_size = (uint32_t)name_size;
    if (args_size)
        memcpy(r->bytes, args, args_size);
    text_put(r->bytes + args_size, name, name_size);
    return call_for_child(sup, m, ret, deadline);
}

enum error supervisor_terminate_child(actor_pid sup, const char *id, uint64_t deadline)
{
    return call_plain(sup, request_with_id(CALL_TERMINATE_CHILD, id), deadline);
}

enum error supervisor_terminate_pid(actor_pid sup, actor_pid child, uint64_t deadline)
{
    return call_plain(sup, message_of(CALL_TERMINATE_PID, &child, sizeof child), deadline);
}

enum error supervisor_restart_child(actor_pid sup, const char *id, struct child_result *ret,
                                    uint64_t deadline)
{
    return call_for_child(sup, request_with_id(CALL_RESTART_CHILD, id), ret, deadline);
}

enum error supervisor_delete_child(actor_pid sup, const char *id, uint64_t deadline)
{
    return call_plain(sup, request_with_id(CALL_DELETE_CHILD, id), deadline);
}

enum error supervisor_resume_child(actor_pid sup, const char *id, uint64_t deadline)
{
    return call_plain(sup, request_with_id(CALL_RESUME_CHILD, id), deadline);
}

enum error supervisor_resume_pid(actor_pid sup, actor_pid last, uint64_t deadline)
{
    return call_plain(sup, message_of(CALL_RESUME_PID, &last, sizeof last), deadline);
}

/* ---- looking ---- */

/* One message's worth. */
static enum error which_part(actor_pid sup, size_t first, size_t wanted, struct child_info *infos,
                             size_t *ret_stored, size_t *ret_total, uint64_t deadline)
{
    struct which_request r = {.first = first, .count = (uint32_t)(wanted < WHICH_MAX ? wanted : WHICH_MAX)};
    struct message *m;
    enum error e = call(sup, message_of(CALL_WHICH_CHILDREN, &r, sizeof r), &m, deadline);
    if (e)
        return e;
    if (m->type != ANSWER_CHILDREN || m->size < sizeof(struct which_answer))
        return answer_take(m, ANSWER_ERROR, NULL, SIZE_MAX);
    const struct which_answer *a = (const struct which_answer *)(const void *)m->payload;
    size_t bytes = m->size - sizeof *a;
    ASSERT(bytes <= r.count * sizeof *infos);
    if (bytes)
        memcpy(infos, a->infos, bytes);
    *ret_stored = bytes / sizeof *infos;
    *ret_total = a->total;
    message_free(m);
    return OK;
}

enum error supervisor_which_children(actor_pid sup, size_t first, struct child_info *infos, size_t count,
                                     size_t *ret_stored, size_t *ret_total, uint64_t deadline)
{
    size_t stored = 0, total = 0, part = 0;
    do {
        enum error e =
            which_part(sup, first + stored, count - stored, infos + stored, &part, &total, deadline);
        if (e)
            return e;
        stored += part;
    } while (part && stored < count);
    if (ret_stored)
        *ret_stored = stored;
    if (ret_total)
        *ret_total = total;
    return OK;
}

enum error supervisor_which_child(actor_pid sup, const char *id, struct child_info *ret, uint64_t deadline)
{
    struct message *m;
    enum error e = call(sup, request_with_id(CALL_WHICH_CHILD, id), &m, deadline);
    return e ? e : answer_take(m, ANSWER_INFO, ret, sizeof *ret);
}

enum error supervisor_count_children(actor_pid sup, struct child_counts *ret, uint64_t deadline)
{
    struct message *m;
    enum error e = call(sup, message_new(CALL_COUNT_CHILDREN, 0), &m, deadline);
    return e ? e : answer_take(m, ANSWER_COUNTS, ret, sizeof *ret);
}

enum error supervisor_inspect(actor_pid sup, struct supervisor_info *ret, uint64_t deadline)
{
    struct message *m;
    enum error e = call(sup, message_new(CALL_INSPECT, 0), &m, deadline);
    return e ? e : answer_take(m, ANSWER_INSPECT, ret, sizeof *ret);
}

/* ---- the supervisor itself ---- */

enum error supervisor_stop(actor_pid sup, struct reason why, uint64_t deadline)
{
    return actor_stop(sup, why, NULL, deadline);
}
