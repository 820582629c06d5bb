#include "actors/strays.h"

#include "runtime/telemetry.h"
#include "store/view.h"

static bool is_known(const struct strays *s, const struct uuid *id)
{
    for (uint32_t i = 0; i < s->known_count; i++)
        if (uuid_equal(&s->known[i], id))
            return true;
    return false;
}

void strays_note(struct strays *s, const struct due_entry *entry)
{
    if (s->stage != STRAYS_NOTED || s->count == DELIVERY_STRAYS_MAX)
        return;
    for (uint32_t i = 0; i < s->count; i++)
        if (uuid_equal(&s->list[i].id, &entry->id) && s->list[i].due_us == entry->due_us)
            return;
    s->list[s->count++] =
        (struct delivery_stray){.id = entry->id, .lane = entry->shard, .due_us = entry->due_us};
}

/* ---- the search ---- */

static bool all_are_found(const struct strays *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (!s->list[i].placed && !is_known(s, &s->list[i].id))
            return false;
    return true;
}

/* A part of it. STRAYS_REST: it is over; what can't be found is put off all the same. */
static enum strays_next search(struct strays *s)
{
    if (all_are_found(s))
        return STRAYS_REST;
    struct view *view = view_open(store_here());
    if (!view)
        return STRAYS_WAITS;
    enum error e = delivery_find_places(&view->txn, &s->from, STRAYS_ROWS, s->list, s->count);
    view_close(view);
    return e ? STRAYS_REST : STRAYS_SOON;
}

/* ---- the command ---- */

static bool ask(struct strays *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        size_t size = record_encode(&delivery_stray_record, &s->list[i], s->bytes + i * DELIVERY_STRAY_SIZE,
                                    DELIVERY_STRAY_SIZE);
        ASSERT(size == DELIVERY_STRAY_SIZE);
    }
    const struct delivery_astray c = {.steady_us = store_steady_us(store_here()),
                                      .strays = span_of(s->bytes, s->count * DELIVERY_STRAY_SIZE)};
    return store_ask(&delivery_astray_class, &c, &s->ref) == OK;
}

/* A warning in the log, too (config/log.h). */
static void tell(const struct uuid *id)
{
    char text[UUID_TEXT_SIZE];
    uuid_format(id, text);
    TELEMETRY(FAILURE_POISON_MESSAGE, 1, DIM(COMPONENT, "outbound"), DIM(FAILURE_CLASS, "degraded"),
              DIM(MESSAGE_ID, text), DIM(REASON, "damaged"), DIM(DISPOSITION, "put_off"));
    TELEMETRY(STORE_DAMAGED, 1, DIM(COMPONENT, "outbound"), DIM(REASON, "deliveries"));
}

/* One that can't be read stays, and check tells of it; here it is told of once. */
static void learn(struct strays *s, const uint8_t *found)
{
    for (uint32_t i = 0; i < s->count; i++) {
        if (found[i] != DELIVERY_UNREADABLE || is_known(s, &s->list[i].id))
            continue;
        s->known[s->known_next] = s->list[i].id;
        s->known_next = (s->known_next + 1) % STRAYS_KNOWN;
        s->known_count += s->known_count < STRAYS_KNOWN;
        tell(&s->list[i].id);
    }
}

static void begin_anew(struct strays *s)
{
    s->stage = STRAYS_NOTED;
    s->count = 0;
}

static enum strays_next hear(struct strays *s)
{
    uint8_t found[DELIVERY_STRAYS_MAX];
    size_t size = 0;
    enum error e = store_hear(s->ref, found, sizeof(found), &size, actor_now());
    if (e == ERR_TIMEOUT)
        return STRAYS_WAITS;
    bool done = e == OK && size == s->count;
    if (done)
        learn(s, found);
    begin_anew(s);
    return done ? STRAYS_SOON : STRAYS_REST; /* there may be more of them; or they are found again */
}

enum strays_next strays_step(struct strays *s)
{
    if (s->stage == STRAYS_ASKED)
        return hear(s);
    if (s->count == 0)
        return STRAYS_REST;
    if (s->stage == STRAYS_NOTED)
        s->from.size = 0;
    s->stage = STRAYS_SEARCHED;
    enum strays_next next = search(s);
    if (next != STRAYS_REST)
        return next;
    if (!ask(s)) {
        begin_anew(s);
        return STRAYS_REST;
    }
    s->stage = STRAYS_ASKED;
    return STRAYS_WAITS;
}
