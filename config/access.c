#include "config/access.h"

#include "config/log.h"

void access_log(const struct request *q, const struct response *r, uint64_t took_ns)
{
    char trace[TRACE_ID_TEXT + 1], span[TRACE_SPAN_TEXT + 1], id[TRACE_REQUEST_MAX + 1], path[257], who[129];
    enum log_level level = q->route && q->route->quiet ? LOG_DEBUG : LOG_INFO;
    if (level < log_level_here())
        return;
    trace_write_id(&q->trace, trace);
    trace_write_span(&q->trace, span);
    memcpy(id, q->trace.request_id, q->trace.request_id_length);
    id[q->trace.request_id_length] = 0;
    size_t path_size = q->path.size < sizeof(path) ? q->path.size : sizeof(path) - 1;
    size_t who_size = q->identity.subject.size < sizeof(who) ? q->identity.subject.size : sizeof(who) - 1;
    if (path_size)
        memcpy(path, q->path.bytes, path_size);
    path[path_size] = 0;
    if (who_size)
        memcpy(who, q->identity.subject.bytes, who_size);
    who[who_size] = 0;
    LOG(level, "http", "request", {"method", method_name(q->method), 0}, {"path", path, 0},
        {"status", NULL, r->status}, {"bytes", NULL, (int64_t)r->sent_bytes},
        {"took_us", NULL, (int64_t)(took_ns / NS_PER_US)},
        {"listener", q->front ? ((const struct front *)q->front)->name : "", 0}, {"who", who, 0},
        {"request_id", id, 0}, {"trace_id", trace, 0}, {"span_id", span, 0},
        {"code", r->error == ERROR_NONE ? "" : catalogue_row(r->error)->code, 0});
}
