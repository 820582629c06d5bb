#include "actors/registry.h"

#include <string.h>

#include "runtime/telemetry.h"

enum { REGISTRY_COUNT = 1, REGISTRY_LIST, REGISTRY_COUNTED, REGISTRY_LISTED };

struct registry {
    char prefix[REGISTRY_PREFIX_MAX];
};
STATIC_ASSERT(sizeof(struct registry) <= ACTOR_STATE_INLINE, "a registry costs no more than its actor");

struct list_request {
    char after[REGISTRY_ID_MAX];
    uint32_t count;
};
STATIC_ASSERT(REGISTRY_PAGE_MAX * sizeof(struct registry_entry) <= MESSAGE_PAYLOAD_MAX,
              "a page fits into a message");

/* The page being filled: the smallest ids behind `after` seen so far, in order. */
struct page {
    const char *after;
    struct registry_entry *entries;
    size_t prefix_length, count, count_max;
    uint64_t total;
};

static enum actor_step registry_init(void *state, const void *args, size_t args_size)
{
    struct registry *r = state;
    const struct registry_args *a = args;
    if (args_size != sizeof(*a) || !a->prefix[0] || !memchr(a->prefix, 0, sizeof(a->prefix)))
        actor_refuse(reason_of(REASON_ERROR));
    memcpy(r->prefix, a->prefix, sizeof(r->prefix));
    return ACTOR_CONTINUE;
}

static bool visit(void *context, const char *name, size_t length, actor_pid pid)
{
    struct page *p = context;
    const char *id = name + p->prefix_length;
    size_t id_length = length - p->prefix_length;
    if (id_length == 0 || id_length >= REGISTRY_ID_MAX || memchr(id, '/', id_length))
        return true;
    p->total++;
    if (p->count_max == 0 || strcmp(id, p->after) <= 0)
        return true;
    size_t low = 0, high = p->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(p->entries[middle].id, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == p->count_max)
        return true;
    if (p->count < p->count_max)
        p->count++;
    memmove(&p->entries[low + 1], &p->entries[low], (p->count - 1 - low) * sizeof(*p->entries));
    p->entries[low] = (struct registry_entry){.pid = pid};
    memcpy(p->entries[low].id, id, id_length);
    return true;
}

static void walk(const struct registry *r, struct page *p)
{
    p->prefix_length = strlen(r->prefix);
    actor_each_name(r->prefix, visit, p);
}

static void answer_list(const struct registry *r, struct message *call, const struct list_request *request)
{
    struct message *reply = message_new(REGISTRY_LISTED, request->count * sizeof(struct registry_entry));
    if (!reply)
        return;
    struct page p = {.after = request->after, .entries = (void *)reply->payload, .count_max = request->count};
    walk(r, &p);
    reply->size = (uint32_t)(p.count * sizeof(struct registry_entry)) & 0xffffff;
    actor_reply(call, reply);
}

static enum actor_step registry_handle(void *state, struct message *m)
{
    const struct registry *r = state;
    const struct list_request *request;
    struct page p = {0};
    switch (m->type) {
    case REGISTRY_COUNT:
        walk(r, &p);
        actor_reply_bytes(m, REGISTRY_COUNTED, &p.total, sizeof(p.total));
        return ACTOR_CONTINUE;
    case REGISTRY_LIST:
        request = message_body(m, sizeof(*request));
        if (request && request->count <= REGISTRY_PAGE_MAX &&
            memchr(request->after, 0, sizeof(request->after)))
            answer_list(r, m, request);
        return ACTOR_CONTINUE;
    default:
        TELEMETRY(MESSAGE_UNKNOWN, 1, DIM(CLASS, registry_class.name));
        return ACTOR_CONTINUE;
    }
}

const struct actor_class registry_class = {
    .name = "registry",
    .state_size = sizeof(struct registry),
    .init = registry_init,
    .handle = registry_handle,
};

enum error registry_count(const char *registry, uint64_t *ret_count, uint64_t deadline)
{
    struct message *reply, *request = message_new(REGISTRY_COUNT, 0);
    enum error e = request ? actor_call_name(registry, request, &reply, deadline) : ERR_MEMORY;
    if (e != OK)
        return e;
    memcpy(ret_count, reply->payload, sizeof(*ret_count));
    message_free(reply);
    return OK;
}

enum error registry_list(const char *registry, const char *after, struct registry_entry *entries,
                         size_t count, size_t *ret_stored, uint64_t deadline)
{
    struct list_request body = {.count = (uint32_t)count};
    if (count > REGISTRY_PAGE_MAX || strlen(after) >= sizeof(body.after))
        return ERR_INVALID;
    memcpy(body.after, after, strlen(after));
    struct message *reply, *request = message_of(REGISTRY_LIST, &body, sizeof(body));
    enum error e = request ? actor_call_name(registry, request, &reply, deadline) : ERR_MEMORY;
    if (e != OK)
        return e;
    memcpy(entries, reply->payload, reply->size);
    *ret_stored = reply->size / sizeof(*entries);
    message_free(reply);
    return OK;
}
