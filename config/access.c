#include "config/access.h"

#include <stdio.h>
#include <string.h>

#include "config/log.h"

enum { PEER_TEXT = 40, SECRET_MIN = 12 /* characters behind its prefix: fewer are no secret */ };

/* As it is counted: of IPv6 the first half. */
static void write_peer(struct span address, char text[PEER_TEXT])
{
    const uint8_t *at = address.bytes;
    text[0] = 0;
    if (address.size == 4)
        snprintf(text, PEER_TEXT, "%u.%u.%u.%u", at[0], at[1], at[2], at[3]);
    else if (address.size == 8)
        snprintf(text, PEER_TEXT, "%x:%x:%x:%x::/64", at[0] << 8 | at[1], at[2] << 8 | at[3],
                 at[4] << 8 | at[5], at[6] << 8 | at[7]);
}

static bool in_secret(char c, bool dots)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-' || (dots && c == '.');
}

/* What has the form of one of our keys ("cop_...") or of a JWT ("eyJ..."), wherever somebody has put it by mistake. */
static void mask_credentials(char *text)
{
    char *out = text;
    for (const char *at = text; *at;) {
        bool key = strncmp(at, "cop_", 4) == 0, token = strncmp(at, "eyJ", 3) == 0;
        size_t prefix = key ? 4 : 3, length = prefix;
        while ((key || token) && in_secret(at[length], token))
            length++;
        if (length < prefix + SECRET_MIN) {
            *out++ = *at++;
            continue;
        }
        memcpy(out, at, prefix);
        memcpy(out + prefix, "***", 3);
        out += prefix + 3;
        at += length;
    }
    *out = 0;
}

struct fields {
    struct log_field list[20];
    size_t count;
};

static void add(struct fields *f, const char *name, const char *text, int64_t number)
{
    ASSERT(f->count < sizeof(f->list) / sizeof(*f->list));
    f->list[f->count++] = (struct log_field){name, text, number};
}

/* What not every request has: whose job it is about (JOB-404 to JOB-406), and what was wrong (JOB-408). */
static void add_others(struct fields *f, const struct request *q, const struct response *r, const char *who)
{
    if (q->route && q->route->action)
        add(f, "action", q->route->action, 0);
    if (q->identity.kind == IDENTITY_CLIENT)
        add(f, "client_id", who, 0);
    if (r->job_id[0])
        add(f, "job_id", r->job_id, 0);
    if (r->error == ERROR_NONE)
        return;
    add(f, "error_code", catalogue_row(r->error)->code, 0);
    add(f, "error_message", catalogue_row(r->error)->title, 0);
}

static void request_id_of(const struct request *q, char id[TRACE_REQUEST_MAX + 1])
{
    memcpy(id, q->trace.request_id, q->trace.request_id_length);
    id[q->trace.request_id_length] = 0;
    mask_credentials(id);
}

/* Whose credentials they were is known of a key that was good once, or is good for something else. */
void access_log_refused(const struct request *q, const struct response *r, uint64_t took_ns)
{
    static const struct uuid nobody = {{0}};
    char client[UUID_TEXT_SIZE], id[TRACE_REQUEST_MAX + 1], peer[PEER_TEXT];
    (void)took_ns;
    if ((r->status != 401 && r->status != 403) || r->error == ERROR_NONE)
        return;
    uuid_format(&q->identity.client, client);
    request_id_of(q, id);
    write_peer(q->address, peer);
    LOG(LOG_WARN, "http", "auth_failure",
        {"client_id", uuid_equal(&q->identity.client, &nobody) ? log_null : client, 0},
        {"reason", catalogue_row(r->error)->code, 0}, {"status", NULL, r->status},
        {"action", q->route && q->route->action ? q->route->action : log_null, 0}, {"peer", peer, 0},
        {"request_id", id, 0});
}

void access_log(const struct request *q, const struct response *r, uint64_t took_ns)
{
    char trace[TRACE_ID_TEXT + 1], span[TRACE_SPAN_TEXT + 1], id[TRACE_REQUEST_MAX + 1], path[257], who[129],
        peer[PEER_TEXT];
    struct fields f = {.count = 0};
    enum log_level level = q->route && q->route->quiet ? LOG_DEBUG : LOG_INFO;
    access_log_refused(q, r, took_ns);
    if (level < log_level_here())
        return;
    trace_write_id(&q->trace, trace);
    trace_write_span(&q->trace, span);
    request_id_of(q, id);
    size_t path_size = q->path.size < sizeof(path) ? q->path.size : sizeof(path) - 1;
    size_t who_size = q->identity.subject.size < sizeof(who) ? q->identity.subject.size : sizeof(who) - 1;
    if (path_size)
        memcpy(path, q->path.bytes, path_size);
    path[path_size] = 0;
    if (who_size)
        memcpy(who, q->identity.subject.bytes, who_size);
    who[who_size] = 0;
    mask_credentials(path);
    write_peer(q->address, peer);
    add(&f, "method", method_name(q->method), 0);
    add(&f, "path", path, 0);
    add(&f, "status", NULL, r->status);
    add(&f, "bytes", NULL, (int64_t)r->sent_bytes);
    add(&f, "took_us", NULL, (int64_t)(took_ns / NS_PER_US));
    add(&f, "listener", q->front ? ((const struct front *)q->front)->name : "", 0);
    add(&f, "who", who, 0);
    add(&f, "peer", peer, 0);
    add(&f, "request_id", id, 0);
    add(&f, "trace_id", trace, 0);
    add(&f, "span_id", span, 0);
    add_others(&f, q, r, who);
    log_write(level, "http", "request", f.list, f.count);
}
