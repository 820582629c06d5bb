#include "actors/relay.h"

#include "actors/webhooks.h"
#include "runtime/telemetry.h"
#include "store/delivery_relay.h"
#include "store/view.h"

enum { RELAY_LOOK = 1, PAGE = 128 };

struct relay {
    uint32_t partition;
    uint64_t fence;        /* 0: not claimed */
    uint64_t after;        /* where it has been: the number of a row */
    uint64_t told;         /* up to which row it has told of those that can't be read */
    uint64_t again;        /* when it begins at the front */
    int64_t dead;          /* rows of the partition that are, as far as it knows */
    uint64_t timer, alarm; /* of the next look, and when that is */
};

/* ---- what there is ---- */

struct found {
    uint64_t rows[DELIVERY_RELAY_ROWS_MAX];
    uint32_t count;
    uint64_t behind;  /* all up to here is found, or somebody else's, or can't be read */
    uint32_t damaged; /* rows that can't be read and haven't been told of */
    uint64_t damaged_last;
    bool more;
};

/* A page of rows; false: there are no more, or `found` is full. */
static bool look_through(const struct outbox_row *rows, uint32_t count, struct found *f)
{
    for (uint32_t i = 0; i < count; i++) {
        if (rows[i].error) {
            f->damaged += rows[i].seq > f->damaged_last;
            f->damaged_last = rows[i].seq > f->damaged_last ? rows[i].seq : f->damaged_last;
        } else if (delivery_relays(rows[i].row.topic)) {
            if (f->count == DELIVERY_RELAY_ROWS_MAX) {
                f->more = true;
                return false;
            }
            f->rows[f->count++] = rows[i].seq;
        }
        f->behind = rows[i].seq;
    }
    return count == PAGE;
}

/* An error: nothing was found, and there is no way past it. */
static enum error find(const struct relay *r, struct found *f)
{
    struct outbox_row *rows = actor_alloc(PAGE * sizeof(*rows));
    *f = (struct found){.behind = r->after, .damaged_last = r->told};
    struct view *view = view_open(store_here());
    if (!view)
        return ERR_UNAVAILABLE;
    enum error e = OK;
    uint32_t looked = 0, count = 0;
    bool on = true;
    while (!e && on && looked < RELAY_SCAN_MAX) {
        e = outbox_scan(&view->txn, (uint16_t)r->partition, f->behind, rows, PAGE, &count);
        on = look_through(rows, count, f) && !e;
        looked += PAGE;
    }
    view_close(view);
    f->more = f->more || on || e;
    return f->behind > r->after ? OK : e; /* what stands before it is handed on first */
}

/* A row that can't be read says of nobody whose it is: it stays, once told of, and holds up nobody who stands behind it. */
static void tell_damaged(struct relay *r, const struct found *f)
{
    if (f->damaged > 0)
        TELEMETRY(STORE_DAMAGED, f->damaged, DIM(COMPONENT, "relay"), DIM(REASON, "outbox"));
    r->told = f->damaged_last;
}

/* ---- what is done ---- */

static enum error submit(const struct command_class *class, const void *command, void *ret, size_t room)
{
    size_t size = 0;
    enum error e = store_submit(class, command, ret, room, &size, actor_deadline_ms(RELAY_PATIENCE_MS));
    return e == OK && size != room ? ERR_UNANSWERED : e;
}

static enum error claim(struct relay *r)
{
    const struct outbox_claim_command c = {.partition = (uint16_t)r->partition, .holder = actor_self()};
    r->after = 0;
    return submit(&outbox_claim_class, &c, &r->fence, sizeof(r->fence));
}

/* Each row that was buried, by the id that operators revive it by (TOP-089 to TOP-091). */
static void tell_buried(const struct relay *r, const struct found *f, const struct delivery_relayed *relayed)
{
    char id[OUTBOX_ID_SIZE];
    for (uint32_t i = 0; i < f->count; i++) {
        if (!relayed->errors[i])
            continue;
        outbox_id_format((uint16_t)r->partition, f->rows[i], id);
        TELEMETRY(FAILURE_POISON_MESSAGE, 1, DIM(COMPONENT, "relay"), DIM(FAILURE_CLASS, "degraded"),
                  DIM(MESSAGE_ID, id), DIM(REASON, error_name((enum error)relayed->errors[i])),
                  DIM(DISPOSITION, "dead_letter"));
    }
    if (relayed->buried > 0)
        TELEMETRY(STORE_DAMAGED, relayed->buried, DIM(COMPONENT, "relay"), DIM(REASON, "dead"));
}

static enum error hand_on(struct relay *r, const struct found *f)
{
    struct delivery_relayed relayed;
    const struct delivery_relay c = {.partition = (uint16_t)r->partition,
                                     .fence = r->fence,
                                     .steady_us = store_steady_us(store_here()),
                                     .kept_us = webhooks_settings().kept_us,
                                     .rows = span_of(f->rows, f->count * sizeof(f->rows[0]))};
    enum error e = submit(&delivery_relay_class, &c, &relayed, sizeof(relayed));
    if (!e) {
        tell_buried(r, f, &relayed);
        r->dead += relayed.buried;
    }
    if (e == ERR_FENCED)
        r->fence = 0; /* somebody else is at it; whoever claims last goes on */
    return e;
}

/* Whether there are fewer dead ones than it knows of: one that came back stands where it stood, which may be behind us. */
static bool has_revived(struct relay *r)
{
    int64_t before = r->dead;
    struct view *view = view_open(store_here());
    if (!view)
        return false;
    if (outbox_dead_count(&view->txn, (uint16_t)r->partition, &r->dead) != OK)
        r->dead = before;
    view_close(view);
    return r->dead < before;
}

/* ---- the actor ---- */

static void sleep_until(struct relay *r, uint64_t deadline)
{
    if (r->timer)
        (void)actor_timer_cancel(r->timer, NULL);
    r->alarm = deadline;
    r->timer = actor_timer(deadline, RELAY_LOOK, deadline);
}

static void look(struct relay *r)
{
    struct arena_mark mark = actor_arena_mark();
    struct found f = {.more = true};
    if (has_revived(r) || actor_now() >= r->again) {
        r->after = 0;
        r->again = actor_deadline_ms(RELAY_AGAIN_MS);
    }
    enum error e = r->fence ? OK : claim(r);
    for (uint32_t round = 0; !e && f.more && round < RELAY_ROUNDS_MAX; round++) {
        e = find(r, &f);
        if (!e)
            tell_damaged(r, &f);
        if (!e && f.count > 0)
            e = hand_on(r, &f);
        if (!e)
            r->after = f.behind;
        actor_arena_reset(mark);
    }
    if (e)
        sleep_until(r, actor_deadline_ms(RELAY_TROUBLE_MS));
    else
        sleep_until(r, f.more ? actor_now() : actor_deadline_ms(RELAY_LOOK_MS));
}

static enum actor_step relay_init(void *state, const void *args, size_t args_size)
{
    struct relay *r = state;
    char group[STORE_GROUP_SIZE];
    ASSERT(args_size == sizeof(r->partition));
    memcpy(&r->partition, args, sizeof(r->partition));
    if (!store_here() || r->partition >= OUTBOX_PARTITIONS)
        actor_refuse(reason_error(ERR_UNAVAILABLE));
    store_group(STORE_TOPIC(TOPIC_OUTBOX, r->partition), group);
    if (actor_join(group) != OK)
        actor_refuse(reason_error(ERR_LIMIT));
    sleep_until(r, actor_now()); /* not here: the tree must not wait for the disk */
    return ACTOR_CONTINUE;
}

static enum actor_step relay_handle(void *state, struct message *m)
{
    struct relay *r = state;
    const uint64_t *alarm;
    switch (m->type) {
    case RELAY_LOOK:
        alarm = message_body(m, sizeof(*alarm));
        if (!alarm || *alarm != r->alarm)
            break; /* one that was set before it was set anew */
        r->timer = 0;
        look(r);
        break;
    case STORE_WAKE:
        sleep_until(r, actor_now()); /* many at once are one look */
        break;
    default:
        actor_unknown(m);
    }
    return ACTOR_CONTINUE;
}

const struct actor_class relay_class = {
    .name = "relay",
    .state_size = sizeof(struct relay),
    .init = relay_init,
    .handle = relay_handle,
    .mailbox_capacity = 64,
    .mailbox_policy = MAILBOX_DROP_OLDEST,
};
