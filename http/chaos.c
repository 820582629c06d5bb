#include "http/chaos.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/supervisor.h"

/* A name wins over a number that somebody is called by. */
static actor_pid pid_of(const char *target)
{
    actor_pid pid = actor_whereis(target);
    char *end;
    if (pid || *target < '0' || *target > '9')
        return pid;
    pid = strtoull(target, &end, 0);
    return *end ? 0 : pid;
}

static bool is_down_of(const struct message *m, void *arg)
{
    const uint64_t *ref = arg;
    return m->type == MESSAGE_DOWN && ((const struct message_down *)(const void *)m->payload)->ref == *ref;
}

/* Who holds its name now. Its supervisor is asked something first: it deals with the death, then answers. */
static actor_pid successor(const struct actor_info *dead)
{
    struct supervisor_info supervisor;
    if (!dead->name[0])
        return 0;
    if (dead->parent)
        (void)supervisor_inspect(dead->parent, &supervisor, actor_deadline_ms(CHAOS_ANSWER_MS));
    return actor_whereis(dead->name);
}

static void write_record(struct response *r, const struct actor_info *dead, const char *reason, actor_pid now,
                         uint64_t took_ns)
{
    struct json json;
    response_begin(r, 200, RESPONSE_JSON);
    json_init(&json, &r->sink);
    json_object_begin(&json);
    json_key(&json, "killed");
    json_object_begin(&json);
    JSON_MEMBER(&json, "pid", hex_string, dead->pid);
    JSON_MEMBER(&json, "name", string, dead->name[0] ? dead->name : NULL);
    JSON_MEMBER(&json, "class", string, dead->class_name);
    JSON_MEMBER(&json, "reason", string, reason);
    json_object_end(&json);
    json_key(&json, "successor");
    if (now && now != dead->pid)
        json_hex_string(&json, now);
    else
        json_null(&json);
    json_key(&json, "took_us");
    json_decimal(&json, (int64_t)took_ns, 3);
    json_object_end(&json);
}

void chaos_kill(const char *target, struct response *response)
{
    struct actor_info victim;
    char reason[REASON_TEXT_MAX];
    actor_pid pid = pid_of(target);
    enum error e = pid ? actor_inspect(pid, &victim, actor_deadline_ms(CHAOS_ANSWER_MS)) : ERR_NOPROC;
    if (pid == actor_self()) {
        response_problem(response, 409, "'%s' is the actor that would have to answer you", target);
        return;
    }
    if (e != OK) {
        response_problem(response, e == ERR_NOPROC ? 404 : 504,
                         "'%s' is %s; it must be the pid or the registered name of a living actor", target,
                         error_name(e));
        return;
    }
    struct env *env =
        env_real(); /* the scheduler's own clock stands still for a turn, and all of this may be one turn */
    uint64_t began = env->now(env), ref = actor_monitor(pid, 0);
    actor_kill(pid);
    struct message *down = actor_receive(is_down_of, &ref, actor_deadline_ms(CHAOS_ANSWER_MS));
    if (!down) {
        actor_demonitor(ref);
        response_problem(response, 504, "'%s' was told to end and has not ended within %d ms", target,
                         CHAOS_ANSWER_MS);
        return;
    }
    reason_format(&((struct message_down *)(void *)down->payload)->reason, reason, sizeof(reason));
    message_free(down);
    actor_pid now = successor(&victim);
    write_record(response, &victim, reason, now, env->now(env) - began);
}
