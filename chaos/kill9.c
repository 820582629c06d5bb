/* kill9: kill -9 of a working store at random instants, and what is left afterwards.
 *
 *     kill9 [--cycles N] [--seed S] [--parents N] [--dir D] [--memory D]
 *
 * A parent starts a process that opens a store and loads it; every attempt is written to shared memory before it
 * is made, and its answer when it came. The parent kills the process: while it opens (or makes) the store, under
 * load, 0.2 to 4 ms after the first answer, or while it closes. A second process then opens the store and
 * compares it with a model that has seen the same attempts and answers:
 *
 *     answered OK     is there, with every byte, its events, outbox rows, ledger row, due entry and counters;
 *                     a token that was used can't come as another one, a client that came and an audit entry are there
 *     refused         has left nothing, and the model refuses it for the same reason
 *     not answered    is wholly there or not at all; sent again with the same key it gives the stored answer in
 *                     the first case and is executed once in the second
 *
 * and the number of rows of each table is what the model says, so there is nothing besides. A store lives through
 * some tens of such cycles; then all of it is compared, `coppice check`'s look at the rows included, and the next
 * one begins with other sizes. Every other life has the real writer and submitters as actors; in the others one
 * thread makes the batches, and all of a batch must be there or nothing.
 *
 * A campaign begins with two controls, stores that answer before the commit or commit a batch in two halves: it fails
 * unless both are found out.
 *
 * Most lives are in memory (--memory, /dev/shm when it is there), one of DISK_SHARE on the disk (--dir).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/actor.h"
#include "runtime/runtime.h"
#include "store/audit.h"
#include "store/client.h"
#include "store/counter.h"
#include "store/event.h"
#include "store/ledger.h"
#include "store/outbox.h"
#include "store/retention.h"
#include "store/seen_token.h"
#include "store/view.h"
#include "store/writer.h"
#include "tests/support/parcel.h"

#define LANES          8u          /* submitters; the last one relays the outbox */
#define RELAY          (LANES - 1) /* marks what the others' commands have put there */
#define CROWD          LANES       /* parcels that all lanes send, with the same key each */
#define PARCELS        256u        /* of a lane, in one life */
#define CROWD_USED     64u
#define ATTEMPTS       600u /* of a lane, in one cycle */
#define STEPS          3u   /* events of a parcel: send, send, deliver */
#define DISK_SHARE     10u
#define LIFE_MAX       60u /* cycles */
#define PARENTS_MAX    16u
#define PATIENCE_MS    60000 /* for a process that says nothing: it hangs */
#define ANSWER_BYTES   32u
#define CONTROL_CYCLES 300u
#define VIOLATIONS_MAX 5u      /* then a parent gives up; each leaves its store */
#define KEY_OTHER      100000u /* keys that no parcel was made with */
#define NOTE_EVERY     32u     /* parcels: the relay sees 16 rows of a partition and takes none of these */

/* ---- chance: the same choices under the same seed (the instant of a kill is the machine's) ---- */

struct chance {
    uint64_t state;
};

static uint64_t draw64(struct chance *c)
{
    uint64_t z = c->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint32_t draw(struct chance *c, uint32_t below)
{
    return (uint32_t)(draw64(c) % below);
}

/* ---- attempts: in memory that the dead process shares with the living ---- */

#define KINDS(X)                                                                                              \
    X(SEND, "send")                                                                                           \
    X(MOVE, "move")                                                                                           \
    X(DROP, "drop")                                                                                           \
    X(CLAIM, "claim")                                                                                         \
    X(MARK, "mark")                                                                                           \
    X(DEFER, "defer")                                                                                         \
    X(BURY, "bury")                                                                                           \
    X(USE,                                                                                                    \
      "use") /* of a token that has the parcel's number: its first use is written, another one is a replay */ \
    X(ENROL, "enrol") /* of a client that has the parcel's id: once */                                        \
    X(NOTE, "note")   /* an audit entry about the parcel: once */
enum kind {
#define X(id, name) id,
    KINDS(X)
#undef X
};
static const char *const kind_names[] = {
#define X(id, name) name,
    KINDS(X)
#undef X
};

enum stage { UNMADE, MADE, ANSWERED };

struct attempt {
    uint8_t kind, event; /* event: of a move, or which row of a parcel is marked (0..STEPS-1) */
    uint8_t owner;       /* whose parcel: a lane, or CROWD */
    uint8_t variant;     /* of the request, for the digest */
    uint16_t parcel, partition;
    uint32_t size, key; /* key 0: without one */
    uint32_t batch;     /* 0: nobody knows which */
    bool stale;         /* under an older fence */
    uint64_t seq, fence, due_us, at_us;

    _Atomic uint8_t stage; /* enum stage */
    uint8_t error;
    uint8_t answer_size;
    uint8_t answer[ANSWER_BYTES];
};

struct totals {
    _Atomic uint64_t cycles, failed, in_memory, on_disk, opening, load, closing, lives, checked_rows;
    _Atomic uint64_t acknowledged, lost, refused, present, turned_away;
    _Atomic uint64_t unknown, committed, uncommitted, same;
    _Atomic uint64_t batches_cut, made_again, commits;
};

/* ---- the model ---- */

enum { ABSENT, LIVING, DROPPED };
enum { WAITING, GONE, BURIED };

struct parcel_model {
    uint8_t there, state, events, variant;
    uint8_t used;                            /* its token: 1 and the variant; 0: not yet */
    uint8_t enrolled, noted;                 /* its client, its audit entry */
    uint8_t event[STEPS];                    /* its name */
    uint8_t row[STEPS], defers[STEPS];       /* in the outbox */
    bool row_open[STEPS], defer_open[STEPS]; /* a mark of it was not answered */
    uint8_t open_fate[STEPS];
    uint32_t size, key;
    uint64_t due_us, at_us[STEPS]; /* at_us 0: nobody knows */
};

struct key_model {
    bool used;
    uint8_t variant;
    uint16_t parcel;
};

struct lane_model {
    struct chance chance;
    uint32_t parcels; /* made so far */
    struct parcel_model parcel[PARCELS];
    struct key_model key[PARCELS + 1];
};

struct relay_model {
    uint16_t partition;
    uint64_t fence;
    uint32_t count, next;
    struct outbox_row rows[16];
};

/* What a campaign does wrong on purpose before it begins, and must notice: else nothing it says counts. */
enum control {
    CONTROL_NONE,
    CONTROL_EARLY, /* answers before the commit */
    CONTROL_HALF,  /* commits a batch in two halves */
    CONTROL_COUNT
};

struct life {
    enum control control;
    uint64_t number, seed;
    char dir[400];
    bool actors, on_disk, committed; /* committed: a store must be there */
    uint32_t lanes_busy;             /* lanes that submit */
    struct store_options options;
    uint64_t clock_us;
    uint64_t fence[OUTBOX_PARTITIONS];
    uint32_t cycle, cycles;
    struct lane_model lane[LANES + 1];
    struct relay_model relay;
};

struct shared {
    uint32_t count[LANES]; /* attempts of this cycle */
    struct attempt attempts[LANES][ATTEMPTS];
    struct life left; /* the model after the verifier has looked */
    char complaint[512];
};

static struct totals *totals; /* of all parents */
static struct shared *shared; /* of this one */
static struct life life;
static uint8_t pattern[PARCEL_BODY_MAX + 8192];

static struct uuid parcel_id(uint32_t owner, uint32_t index)
{
    struct uuid id;
    memset(&id, 0, sizeof(id));
    id.bytes[0] = 1;
    id.bytes[1] = (uint8_t)(index >> 8);
    id.bytes[2] = (uint8_t)index;
    id.bytes[3] = (uint8_t)owner;
    id.bytes[6] = 0x70;
    id.bytes[8] = 0x80;
    memcpy(id.bytes + 10, &life.number, 6);
    return id;
}

/* Of the audit entry about a parcel. */
static struct uuid note_id(uint32_t owner, uint32_t index)
{
    struct uuid id = parcel_id(owner, index);
    id.bytes[4] = 1;
    return id;
}

/* False: not one of ours. */
static bool parcel_of(const struct uuid *id, uint32_t *ret_owner, uint32_t *ret_index)
{
    uint32_t index = (uint32_t)id->bytes[1] << 8 | id->bytes[2];
    uint32_t owner = id->bytes[3];
    if (owner > CROWD || index >= PARCELS)
        return false;
    struct uuid again = parcel_id(owner, index);
    if (!uuid_equal(id, &again))
        return false;
    *ret_owner = owner;
    *ret_index = index;
    return true;
}

static struct span parcel_body(uint32_t owner, uint32_t index, uint32_t size)
{
    return span_of(pattern + (owner * 977 + index * 31) % 8192, size);
}

static struct digest parcel_digest(const struct attempt *a)
{
    struct digest digest;
    memset(&digest, 0, sizeof(digest));
    digest.bytes[0] = a->variant;
    digest.bytes[1] = a->owner;
    memcpy(digest.bytes + 2, &a->parcel, 2);
    digest.bytes[31] = 7;
    return digest;
}

static const char *scope_text(uint32_t owner)
{
    static const char *const texts[] = {"lane0", "lane1", "lane2", "lane3", "lane4",
                                        "lane5", "lane6", "lane7", "crowd"};
    return texts[owner];
}

struct model_answer {
    enum error error;
    uint32_t size;
    uint8_t bytes[ANSWER_BYTES];
};

static struct model_answer answer_of(enum error e)
{
    return (struct model_answer){.error = e};
}

static struct model_answer answer_sent(const struct attempt *a)
{
    struct model_answer answer = {.error = OK, .size = 17};
    struct uuid id = parcel_id(a->owner, a->parcel);
    memcpy(answer.bytes, id.bytes, 16);
    answer.bytes[16] = PARCEL_HELD;
    return answer;
}

static struct model_answer model_send(struct lane_model *lane, const struct attempt *a)
{
    struct parcel_model *p = &lane->parcel[a->parcel];
    if (a->key && a->key <= PARCELS && lane->key[a->key].used) {
        const struct key_model *k = &lane->key[a->key];
        return k->variant == a->variant && k->parcel == a->parcel ? answer_sent(a)
                                                                  : answer_of(ERR_KEY_REUSED);
    }
    if (p->there == LIVING)
        return answer_of(ERR_EXISTS);
    p->there = LIVING;
    p->state = PARCEL_HELD;
    p->size = a->size;
    p->key = a->key;
    p->variant = a->variant;
    p->due_us = a->due_us;
    p->event[0] = PARCEL_SEND;
    p->at_us[0] = life.actors || a->owner == CROWD ? 0 : a->at_us; /* whose was first? */
    p->events = 1;
    if (a->key && a->key <= PARCELS)
        lane->key[a->key] = (struct key_model){.used = true, .variant = a->variant, .parcel = a->parcel};
    return answer_sent(a);
}

static struct model_answer model_move(struct lane_model *lane, const struct attempt *a)
{
    struct parcel_model *p = &lane->parcel[a->parcel];
    if (p->there != LIVING)
        return answer_of(ERR_NOT_FOUND);
    uint8_t to;
    if (p->state == PARCEL_HELD && a->event == PARCEL_SEND)
        to = PARCEL_SENT;
    else if (p->state == PARCEL_SENT && a->event == PARCEL_DELIVER)
        to = PARCEL_DELIVERED;
    else if ((p->state == PARCEL_HELD || p->state == PARCEL_SENT) && a->event == PARCEL_LOSE)
        to = PARCEL_LOST;
    else
        return answer_of(ERR_TRANSITION);
    p->state = to;
    p->at_us[p->events] = life.actors ? 0 : a->at_us; /* the writer's clock is its own */
    p->event[p->events++] = a->event;
    struct model_answer answer = {.error = OK, .size = 1};
    answer.bytes[0] = to;
    return answer;
}

static struct model_answer model_drop(struct lane_model *lane, const struct attempt *a)
{
    struct parcel_model *p = &lane->parcel[a->parcel];
    if (p->there != LIVING)
        return answer_of(ERR_NOT_FOUND);
    if (p->state != PARCEL_DELIVERED && p->state != PARCEL_LOST)
        return answer_of(ERR_CONFLICT);
    p->there = DROPPED;
    return answer_of(OK);
}

static struct model_answer model_use(struct lane_model *lane, const struct attempt *a)
{
    struct parcel_model *p = &lane->parcel[a->parcel];
    if (p->used != 0 && p->used != a->variant + 1)
        return answer_of(ERR_CONFLICT);
    p->used = (uint8_t)(a->variant + 1);
    return answer_of(OK);
}

/* What comes once, and is answered with its id. */
static struct model_answer model_once(uint8_t *there, struct uuid id)
{
    if (*there)
        return answer_of(ERR_EXISTS);
    *there = true;
    struct model_answer answer = answer_of(OK);
    memcpy(answer.bytes, id.bytes, sizeof(id.bytes));
    answer.size = sizeof(id.bytes);
    return answer;
}

static bool on_row(const struct attempt *a)
{
    return a->kind == MARK || a->kind == DEFER || a->kind == BURY;
}

static struct model_answer model_row(struct lane_model *lane, const struct attempt *a)
{
    struct parcel_model *p = &lane->parcel[a->parcel];
    if (a->stale)
        return answer_of(ERR_FENCED);
    if (p->there == DROPPED || p->row[a->event] != WAITING)
        return answer_of(ERR_NOT_FOUND);
    if (a->kind == DEFER)
        p->defers[a->event]++;
    else
        p->row[a->event] = a->kind == MARK ? GONE : BURIED;
    return answer_of(OK);
}

/* What the store must answer, and what is true afterwards. Claims stand by themselves. */
static struct model_answer model_apply(struct lane_model *lane, const struct attempt *a)
{
    switch ((enum kind)a->kind) {
    case SEND:
        return model_send(lane, a);
    case MOVE:
        return model_move(lane, a);
    case DROP:
        return model_drop(lane, a);
    case CLAIM:
        return answer_of(OK);
    case MARK:
    case DEFER:
    case BURY:
        return model_row(lane, a);
    case USE:
        return model_use(lane, a);
    case ENROL:
        return model_once(&lane->parcel[a->parcel].enrolled, parcel_id(a->owner, a->parcel));
    case NOTE:
        return model_once(&lane->parcel[a->parcel].noted, note_id(a->owner, a->parcel));
    }
    return answer_of(ERR_INVALID);
}

/* Refusals that say nothing about the command: the store had no room for it. */
static bool turned_away(enum error e)
{
    return e == ERR_FULL || e == ERR_SHED || e == ERR_UNAVAILABLE || e == ERR_NOPROC || e == ERR_NO_SPACE ||
           e == ERR_MEMORY;
}

/* Nobody knows whether it was done. */
static bool open_ended(enum error e)
{
    return e == ERR_TIMEOUT || e == ERR_DOWN || e == ERR_IO;
}

/* ---- the process that is killed ---- */

static int signal_fd; /* to the parent: 'o' opening, 'a' the first answer, 'c' closing */
static _Atomic bool any_answer;

static void tell(char what)
{
    if (write(signal_fd, &what, 1) != 1)
        _exit(3); /* the parent has gone */
}

struct request {
    const struct command_class *class;
    char key[16];
    union {
        struct parcel_send send;
        struct parcel_move move;
        struct parcel_drop drop;
        struct outbox_claim_command claim;
        struct outbox_mark_command mark;
        struct outbox_defer_command defer;
        struct outbox_bury_command bury;
        struct seen_token_put use;
        struct client_create enrol;
        struct audit_append note;
    } command;
};

static void request_send(const struct attempt *a, struct request *r)
{
    if (a->key)
        snprintf(r->key, sizeof(r->key), "k%" PRIu32, a->key);
    r->class = &parcel_send_class;
    r->command.send = (struct parcel_send){.id = parcel_id(a->owner, a->parcel),
                                           .scope = span_text(scope_text(a->owner)),
                                           .key = span_text(r->key),
                                           .digest = parcel_digest(a),
                                           .due_us = a->due_us,
                                           .body = parcel_body(a->owner, a->parcel, a->size)};
}

#define TOKEN_EXPIRES_US UINT64_C(4000000000000000)

static struct span token_jti(uint32_t owner, uint32_t index, char text[16])
{
    return span_of(text, (size_t)snprintf(text, 16, "%" PRIu32 "-%" PRIu32, owner, index));
}

static void request_use(const struct attempt *a, struct request *r)
{
    r->class = &seen_token_put_class;
    r->command.use = (struct seen_token_put){.issuer = span_text("kill9"),
                                             .jti = token_jti(a->owner, a->parcel, r->key),
                                             .digest = parcel_digest(a),
                                             .subject = span_text(scope_text(a->owner)),
                                             .expires_us = TOKEN_EXPIRES_US};
}

/* The same attempt always gives the same request. */
static void request_of(const struct attempt *a, struct request *r)
{
    memset(r, 0, sizeof(*r));
    struct uuid id = parcel_id(a->owner, a->parcel);
    switch ((enum kind)a->kind) {
    case SEND:
        request_send(a, r);
        break;
    case MOVE:
        r->class = &parcel_move_class;
        r->command.move = (struct parcel_move){.id = id, .event = a->event};
        break;
    case DROP:
        r->class = &parcel_drop_class;
        r->command.drop = (struct parcel_drop){.id = id};
        break;
    case CLAIM:
        r->class = &outbox_claim_class;
        r->command.claim = (struct outbox_claim_command){.partition = a->partition, .holder = 9};
        break;
    case MARK:
        r->class = &outbox_mark_class;
        r->command.mark =
            (struct outbox_mark_command){.partition = a->partition, .seq = a->seq, .fence = a->fence};
        break;
    case DEFER:
        r->class = &outbox_defer_class;
        r->command.defer = (struct outbox_defer_command){
            .partition = a->partition, .seq = a->seq, .fence = a->fence, .not_before_us = 5000};
        break;
    case BURY:
        r->class = &outbox_bury_class;
        r->command.bury = (struct outbox_bury_command){
            .partition = a->partition, .seq = a->seq, .fence = a->fence, .reason = span_text("nobody there")};
        break;
    case USE:
        request_use(a, r);
        break;
    case ENROL:
        r->class = &client_create_class;
        r->command.enrol = (struct client_create){.id = id, .from = span_text("kill9")};
        break;
    case NOTE:
        r->class = &audit_append_class;
        r->command.note = (struct audit_append){.id = note_id(a->owner, a->parcel),
                                                .who = span_text("kill9"),
                                                .verb = span_text("parcel.note"),
                                                .target = span_text(scope_text(a->owner)),
                                                .details = span_text("{}")};
        break;
    }
}

static uint32_t choose_size(struct chance *c)
{
    uint32_t kind = draw(c, 100);
    return draw(c, kind < 70 ? 300 : kind < 97 ? 5000 : PARCEL_BODY_MAX + 1);
}

static void choose_new(struct lane_model *lane, struct attempt *a)
{
    struct chance *c = &lane->chance;
    a->kind = SEND;
    a->parcel = (uint16_t)lane->parcels++;
    a->key = draw(c, 4) ? a->parcel + 1u : 0;
    a->size = choose_size(c);
    a->due_us = draw(c, 3) ? 0 : 4000000000000000u + draw(c, 1000);
}

/* A parcel that was sent before, in one of three ways: the same request again (answered from the ledger), the
 * same id under another key (exists), or its key for another request (reused). */
static void choose_again(struct lane_model *lane, struct attempt *a)
{
    struct chance *c = &lane->chance;
    const struct parcel_model *p = &lane->parcel[a->parcel];
    a->kind = SEND;
    a->size = p->size;
    a->due_us = p->due_us;
    a->variant = p->variant;
    a->key = p->key;
    if (p->there != LIVING && !p->key)
        a->kind = DROP; /* nothing keeps that id from being made again */
    else if (p->there == LIVING && draw(c, 3) == 0)
        a->key = KEY_OTHER + draw(c, 1000);
    else if (p->key && draw(c, 3) == 0)
        a->variant = 1;
}

static void choose_own(struct lane_model *lane, uint32_t number, struct attempt *a)
{
    struct chance *c = &lane->chance;
    uint32_t kind = draw(c, 100);
    a->owner = (uint8_t)number;
    if (kind < 5) {
        a->kind = SEND;
        a->owner = CROWD;
        a->parcel = (uint16_t)draw(c, CROWD_USED);
        a->key = a->parcel + 1u;
        a->size = 100 + a->parcel;
        return;
    }
    if (lane->parcels < PARCELS && (kind < 50 || lane->parcels == 0)) {
        choose_new(lane, a);
        return;
    }
    a->parcel = (uint16_t)draw(c, lane->parcels);
    if (kind < 60)
        choose_again(lane, a);
    else if (kind < 80)
        a->kind = MOVE;
    else if (kind < 86)
        a->kind = DROP;
    else if (kind < 92)
        a->kind = a->parcel % NOTE_EVERY ? ENROL : NOTE;
    else {
        a->kind = USE;
        a->variant = draw(c, 4) == 0;
    }
    a->event = (uint8_t)draw(c, PARCEL_EVENT_COUNT);
}

/* The relay goes through one partition after the other: claims it, reads some rows, and marks them. */
static void choose_relayed(struct lane_model *lane, struct attempt *a)
{
    struct relay_model *r = &life.relay;
    struct chance *c = &lane->chance;
    while (r->next < r->count) {
        const struct outbox_row *row = &r->rows[r->next];
        uint32_t owner, index;
        if (!parcel_of(&row->row.stream, &owner, &index) || row->row.event < 1 || row->row.event > STEPS) {
            r->next++; /* the verifier complains of it */
            continue;
        }
        uint32_t kind = draw(c, 100);
        a->kind = kind < 80 ? MARK : kind < 92 ? DEFER : BURY;
        a->stale = draw(c, 10) == 0;
        a->fence = r->fence - (a->stale ? 1 : 0);
        a->partition = row->partition;
        a->seq = row->seq;
        a->owner = (uint8_t)owner;
        a->parcel = (uint16_t)index;
        a->event = (uint8_t)(row->row.event - 1);
        r->next += draw(c, 8) ? 1 : 0; /* some are marked twice */
        return;
    }
    r->count = r->next = 0;
    r->partition = (uint16_t)draw(c, OUTBOX_PARTITIONS);
    a->kind = CLAIM;
    a->partition = r->partition;
}

/* The next attempt of a lane, in shared memory from now on; NULL: it has made enough. */
static struct attempt *lane_try(uint32_t number, uint64_t at_us, uint32_t batch)
{
    struct lane_model *lane = &life.lane[number];
    uint32_t at = shared->count[number];
    if (at == ATTEMPTS)
        return NULL;
    struct attempt *a = &shared->attempts[number][at];
    memset(a, 0, sizeof(*a));
    if (number == RELAY)
        choose_relayed(lane, a);
    else
        choose_own(lane, number, a);
    a->at_us = at_us;
    a->batch = batch;
    atomic_store_explicit(&a->stage, MADE, memory_order_release);
    __atomic_store_n(&shared->count[number], at + 1, __ATOMIC_RELEASE);
    return a;
}

/* The answer is in shared memory before anything follows from it. */
static void lane_answered(uint32_t number, struct attempt *a, enum error e, const void *bytes, size_t size)
{
    a->error = (uint8_t)e;
    a->answer_size = (uint8_t)(size > UINT8_MAX ? UINT8_MAX : size);
    if (e == OK && size <= sizeof(a->answer))
        memcpy(a->answer, bytes, size);
    atomic_store_explicit(&a->stage, ANSWERED, memory_order_release);
    if (!atomic_exchange(&any_answer, true))
        tell('a');
    if (turned_away(e) || open_ended(e))
        return;
    if (number != RELAY && a->owner == number)
        (void)model_apply(&life.lane[number], a);
    if (a->kind == CLAIM && e == OK && size == sizeof(life.relay.fence))
        memcpy(&life.relay.fence, bytes, sizeof(life.relay.fence));
}

static void relay_look(struct view *view)
{
    struct relay_model *r = &life.relay;
    if (view && outbox_scan(&view->txn, r->partition, 0, r->rows, 16, &r->count) != OK)
        r->count = 0;
    r->next = 0;
}

/* -- by batches of its own -- */

static struct batch_item items[LANES];
static uint8_t encoded[LANES][COMMAND_SIZE_MAX];

static size_t batch_fill(struct chance *c, uint32_t batch, struct attempt **attempts, uint32_t *lanes)
{
    size_t count = 0;
    for (uint32_t n = 0; n < LANES; n++) {
        if (n >= life.lanes_busy && (n != RELAY || life.control))
            continue;
        if (draw(c, 3) == 0)
            continue;
        life.clock_us += draw(c, 50);
        struct attempt *a = lane_try(n, life.clock_us, batch);
        if (!a)
            continue;
        struct request r;
        request_of(a, &r);
        size_t size = record_encode(r.class->record, &r.command, encoded[count], COMMAND_SIZE_MAX);
        ASSERT(size || r.class->record->count == 0);
        items[count] =
            (struct batch_item){.class = r.class, .at_us = a->at_us, .bytes = span_of(encoded[count], size)};
        attempts[count] = a;
        lanes[count++] = n;
    }
    return count;
}

/* What the store would answer, before it was asked. */
static void answer_early(struct attempt **attempts, const uint32_t *lanes, size_t count)
{
    static struct lane_model scratch;
    for (size_t i = 0; i < count; i++) {
        scratch = life.lane[attempts[i]->owner];
        struct model_answer answer = model_apply(&scratch, attempts[i]);
        lane_answered(lanes[i], attempts[i], answer.error, answer.bytes, answer.size);
    }
}

/* One commit that should be two: whoever is told, is told after both. */
static enum error run_halves(struct store *store, size_t count)
{
    static uint8_t kept[LANES][ANSWER_BYTES];
    size_t half = count / 2;
    enum error e = half ? batch_run(store, items, half) : OK;
    for (size_t i = 0; i < half && e == OK; i++) {
        memcpy(kept[i], items[i].answer.bytes, items[i].answer.size);
        items[i].answer.bytes = kept[i];
    }
    return e ? e : batch_run(store, items + half, count - half);
}

static void load_batches(struct store *store, uint32_t batches)
{
    struct chance c = {.state = draw64(&life.lane[0].chance)};
    for (uint32_t batch = 1; batch <= batches; batch++) {
        struct attempt *attempts[LANES];
        uint32_t lanes[LANES];
        size_t count = batch_fill(&c, batch, attempts, lanes);
        if (count == 0)
            continue;
        if (life.control == CONTROL_EARLY)
            answer_early(attempts, lanes, count);
        enum error all =
            life.control == CONTROL_HALF ? run_halves(store, count) : batch_run(store, items, count);
        for (size_t i = 0; i < count && life.control != CONTROL_EARLY; i++) {
            const struct answer *answer = &items[i].answer;
            lane_answered(lanes[i], attempts[i], all == OK ? answer->error : all, answer->bytes,
                          answer->size);
            if (lanes[i] == RELAY && attempts[i]->kind == CLAIM && all == OK) {
                struct view *view = view_open_outside(store, 1);
                relay_look(view);
                if (view)
                    view_close(view);
            }
        }
        if (all == ERR_IO)
            return;
    }
}

/* -- by actors -- */

static enum actor_step submitter_init(void *state, const void *args, size_t size)
{
    memcpy(state, args, size);
    return ACTOR_PROCEED;
}

static enum actor_step submitter_proceed(void *state)
{
    uint32_t number = *(uint32_t *)state;
    for (;;) {
        struct attempt *a = lane_try(number, 0, 0);
        if (!a)
            return ACTOR_CONTINUE;
        struct request r;
        request_of(a, &r);
        uint8_t bytes[ANSWER_BYTES];
        size_t size = 0;
        enum error e = store_submit(r.class, &r.command, bytes, sizeof(bytes), &size, DEADLINE_NONE);
        lane_answered(number, a, e, bytes, size);
        if (open_ended(e))
            return ACTOR_CONTINUE; /* what is true of its parcels nobody knows before the verifier has looked */
        if (a->kind == CLAIM && e == OK) {
            struct view *view = view_open(store_here());
            relay_look(view);
            if (view)
                view_close(view);
        }
    }
}

static enum actor_step ignore(void *state, struct message *m)
{
    (void)state;
    (void)m;
    return ACTOR_CONTINUE;
}

static const struct actor_class submitter_class = {
    .name = "submitter",
    .state_size = sizeof(uint32_t),
    .init = submitter_init,
    .proceed = submitter_proceed,
    .handle = ignore,
    .stack_size = 1 << 18,
};

static enum actor_step root_init(void *state, const void *args, size_t size)
{
    (void)state;
    (void)args;
    (void)size;
    return ACTOR_PROCEED;
}

static enum actor_step root_proceed(void *state)
{
    (void)state;
    struct start_result writer;
    if (actor_start(&(struct spawn_options){.class = &writer_class,
                                            .name = WRITER_NAME,
                                            .link = true,
                                            .scheduler = SPAWN_ON(runtime_dedicated(0))},
                    &writer, DEADLINE_NONE) != OK)
        return ACTOR_STOP;
    for (uint32_t n = 0; n < LANES; n++)
        if ((n < life.lanes_busy || n == RELAY) &&
            actor_spawn(
                &(struct spawn_options){.class = &submitter_class, .args = &n, .args_size = sizeof(n)},
                NULL) != OK)
            return ACTOR_STOP;
    return ACTOR_CONTINUE;
}

static const struct actor_class root_class = {
    .name = "kill9", .init = root_init, .proceed = root_proceed, .handle = ignore};

static void load_actors(struct store *store)
{
    char text[256];
    struct runtime *rt =
        runtime_create(&(struct runtime_options){.schedulers = 1, .dedicated = 1}, text, sizeof(text));
    if (!rt) {
        fprintf(stderr, "kill9: %s\n", text);
        _exit(4);
    }
    store_install(store);
    if (runtime_spawn(rt, &(struct spawn_options){.class = &root_class}, NULL) != OK)
        _exit(5);
    _exit(100 + runtime_run(rt)); /* it ends only by being killed */
}

/* Until the parent kills it. closing: it makes some batches, then closes the store and ends. */
static void victim(bool closing)
{
    char text[512];
    struct store *store;
    tell('o');
    enum error e = store_open(&life.options, &store, text, sizeof(text));
    if (e != OK) {
        snprintf(shared->complaint, sizeof(shared->complaint), "opening under load: %s: %.400s",
                 error_name(e), text);
        _exit(2);
    }
    if (closing) {
        load_batches(store, 1 + draw(&life.lane[1].chance, 40));
        tell('c');
        store_close(store);
        _exit(0);
    }
    if (life.actors)
        load_actors(store);
    load_batches(store, 1000000);
    for (;;)
        pause(); /* every lane has made enough */
}

/* ---- the process that looks at what is left ---- */

struct row_seen {
    uint32_t count, dead;
    uint16_t attempts, partition;
    uint64_t seq;
};
static struct row_seen rows_seen[CROWD + 1][PARCELS][STEPS];

__attribute__((format(printf, 1, 2))) static bool complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(shared->complaint, sizeof(shared->complaint), format, args);
    va_end(args);
    return false;
}

/* NULL: it complained. */
static struct row_seen notes_seen[CROWD + 1][PARCELS];

static struct row_seen *see_row(const struct uuid *stream, uint64_t event)
{
    uint32_t owner, index;
    struct uuid about = *stream;
    about.bytes[4] = 0;
    if (stream->bytes[4] == 1 && event == 1 && parcel_of(&about, &owner, &index))
        return &notes_seen[owner][index];
    if (!parcel_of(stream, &owner, &index) || event < 1 || event > STEPS) {
        complain("a row of the outbox is about something that nobody sent");
        return NULL;
    }
    return &rows_seen[owner][index][event - 1];
}

static bool see_rows(struct txn *txn)
{
    memset(rows_seen, 0, sizeof(rows_seen));
    memset(notes_seen, 0, sizeof(notes_seen));
    struct key first = {.size = 0};
    key_add_u8(&first, 0);
    struct scan scan = txn_scan(txn, TABLE_OUTBOX, key_span(&first), 0, SCAN_UP);
    while (scan_next(&scan)) {
        struct outbox row;
        enum error e = scan_read(&scan, &row);
        if (e != OK)
            return complain("a row of the outbox can't be read: %s", error_name(e));
        struct row_seen *seen = see_row(&row.stream, row.event);
        if (!seen)
            return false;
        seen->count++;
        seen->attempts = row.attempts;
        seen->partition = key_u16(scan.key.bytes);
        seen->seq = key_u64((const uint8_t *)scan.key.bytes + 2);
    }
    enum error e = scan_end(&scan);
    if (e != OK)
        return complain("the outbox can't be read: %s", error_name(e));
    scan = txn_scan(txn, TABLE_DEAD, key_span(&first), 0, SCAN_UP);
    while (scan_next(&scan)) {
        struct dead row;
        e = scan_read(&scan, &row);
        struct row_seen *seen = e == OK ? see_row(&row.stream, row.event) : NULL;
        if (!seen)
            return complain("a dead row can't be read, or is about nothing: %s", error_name(e));
        seen->dead++;
        seen->attempts = row.attempts;
    }
    e = scan_end(&scan);
    return e == OK || complain("the dead rows can't be read: %s", error_name(e));
}

/* Why a parcel isn't what it should be; empty: it is. */
static char difference[200];

__attribute__((format(printf, 1, 2))) static bool differs(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(difference, sizeof(difference), format, args);
    va_end(args);
    return false;
}

static bool row_is(uint32_t owner, uint32_t index, const struct parcel_model *p, uint32_t i)
{
    const struct row_seen *seen = &rows_seen[owner][index][i];
    if (p->there == DROPPED)
        return (seen->count == 0 && seen->dead == 0) || differs("a row of the outbox is left of it");
    if (i >= p->events)
        return (seen->count == 0 && seen->dead == 0 && p->row[i] == WAITING) ||
               differs("a row of the outbox is there, or was marked, of an event that isn't: %u", i + 1);
    uint8_t row = p->row[i];
    if (p->row_open[i] && row == WAITING && seen->count == 0)
        row = p->open_fate[i];
    if (seen->count != (row == WAITING) || seen->dead != (row == BURIED))
        return differs("event %u is %u times in the outbox and %u times among the dead", i + 1, seen->count,
                       seen->dead);
    if (row == GONE || seen->attempts == p->defers[i])
        return true;
    return (p->defer_open[i] && seen->attempts == p->defers[i] + 1) ||
           differs("event %u: %u attempts for %u", i + 1, seen->attempts, p->defers[i]);
}

static bool event_is(struct txn *txn, const struct uuid *id, const struct parcel *record,
                     const struct parcel_model *p, uint32_t i, uint64_t *before_us)
{
    static const uint8_t to[] = {
        [PARCEL_SEND] = PARCEL_SENT, [PARCEL_DELIVER] = PARCEL_DELIVERED, [PARCEL_LOSE] = PARCEL_LOST};
    struct event event;
    enum error e = event_read(txn, id, i + 1, &event);
    if (e != OK)
        return differs("event %u: %s", i + 1, error_name(e));
    uint8_t state = i ? to[p->event[i]] : PARCEL_HELD;
    if (event.to_state != state)
        return differs("event %u leads to state %u, not %u", i + 1, event.to_state, state);
    if (event.at_us < *before_us)
        return differs("event %u is before the one before it", i + 1);
    if (p->at_us[i] && event.at_us != p->at_us[i])
        return differs("event %u has another time", i + 1);
    if (i == 0 && event.at_us != record->at_us)
        return differs("the record's time isn't the event's");
    if (i + 1 == p->events && event.at_us != record->moved_us)
        return differs("the record moved at another time than the event says");
    *before_us = event.at_us;
    return true;
}

static bool ledger_is(struct txn *txn, uint32_t owner, uint32_t index, uint32_t key,
                      const struct key_model *k)
{
    struct attempt a = {.owner = (uint8_t)owner, .parcel = (uint16_t)index, .variant = k->variant};
    struct digest digest = parcel_digest(&a);
    char text[16];
    snprintf(text, sizeof(text), "k%" PRIu32, key);
    struct ledger row;
    enum error e =
        ledger_find(txn, life.clock_us, span_text(scope_text(owner)), span_text(text), &digest, &row);
    if (!k->used)
        return e == ERR_NOT_FOUND || differs("the ledger knows its key: %s", error_name(e));
    if (e != OK)
        return differs("the ledger: %s", error_name(e));
    struct model_answer answer = answer_sent(&a);
    return span_equal(row.answer, span_of(answer.bytes, answer.size)) ||
           differs("the ledger has another answer");
}

static bool due_is(struct txn *txn, const struct uuid *id, uint64_t due_us)
{
    struct key key = due_key(DUE_RETENTION, RETENTION_SHARD, due_us, id);
    struct due row;
    enum error e = txn_read(txn, TABLE_DUE, key_span(&key), &row);
    return e == OK || differs("its due entry: %s", error_name(e));
}

/* The numbers of its outbox rows, which it keeps, are those under which the rows stand. */
static bool numbers_are(uint32_t owner, uint32_t index, const struct parcel *record,
                        const struct parcel_model *p)
{
    if (record->rows.size != p->events * sizeof(uint64_t))
        return differs("%u bytes of row numbers for %u events", record->rows.size, p->events);
    for (uint32_t i = 0; i < p->events; i++) {
        const struct row_seen *seen = &rows_seen[owner][index][i];
        uint64_t seq;
        memcpy(&seq, (const uint8_t *)record->rows.bytes + i * sizeof(seq), sizeof(seq));
        if (seen->count && seen->seq != seq)
            return differs("the row of event %u is not where the record says", i + 1);
    }
    return true;
}

static bool record_is(struct txn *txn, uint32_t owner, uint32_t index, const struct parcel_model *p)
{
    struct uuid id = parcel_id(owner, index);
    struct key key = key_of_uuid(&id);
    struct parcel record;
    uint64_t last;
    enum error e = txn_read(txn, TABLE_PARCELS, key_span(&key), &record);
    if (p->there != LIVING && e != ERR_NOT_FOUND)
        return differs("the record is there: %s", error_name(e));
    if (p->there == LIVING && e != OK)
        return differs("the record: %s", error_name(e));
    enum error events = event_last(txn, &id, &last);
    if (events != OK || last != (p->there == LIVING ? p->events : 0))
        return differs("%" PRIu64 " events: %s", events == OK ? last : 0, error_name(events));
    if (p->there != LIVING)
        return true;
    if (record.state != p->state || record.due_us != p->due_us ||
        !span_equal(record.body, parcel_body(owner, index, p->size)))
        return differs("the record has other values: state %u for %u, %u bytes for %u", record.state,
                       p->state, record.body.size, p->size);
    uint64_t before_us = 0;
    if (!numbers_are(owner, index, &record, p))
        return false;
    for (uint32_t i = 0; i < p->events; i++)
        if (!event_is(txn, &id, &record, p, i, &before_us))
            return false;
    return p->due_us == 0 || due_is(txn, &id, p->due_us);
}

static bool token_is(struct txn *txn, uint32_t owner, uint32_t index, const struct parcel_model *p)
{
    char text[16];
    struct span jti = token_jti(owner, index, text);
    struct uuid id = seen_token_id(txn->store, span_text("kill9"), jti);
    struct key key = key_of_uuid(&id);
    struct seen_token row;
    enum error e = txn_read(txn, TABLE_SEEN_TOKENS, key_span(&key), &row);
    if (!p->used)
        return e == ERR_NOT_FOUND || differs("its token was used: %s", error_name(e));
    if (e != OK)
        return differs("its token: %s", error_name(e));
    struct attempt a = {
        .owner = (uint8_t)owner, .parcel = (uint16_t)index, .variant = (uint8_t)(p->used - 1)};
    struct digest digest = parcel_digest(&a);
    if (!span_equal(row.jti, jti) || !span_equal(row.subject, span_text(scope_text(owner))) ||
        memcmp(&row.digest, &digest, sizeof(digest)) != 0 || row.expires_us != TOKEN_EXPIRES_US)
        return differs("its token has other values");
    return due_is(txn, &id, TOKEN_EXPIRES_US);
}

static bool client_is(struct txn *txn, uint32_t owner, uint32_t index, const struct parcel_model *p)
{
    struct uuid id = parcel_id(owner, index);
    struct client client;
    enum error e = client_read(txn, &id, &client);
    if (!p->enrolled)
        return e == ERR_NOT_FOUND || differs("its client has come: %s", error_name(e));
    if (e != OK)
        return differs("its client: %s", error_name(e));
    return uuid_equal(&client.id, &id) ? due_is(txn, &id, client.created_us + CLIENT_UNUSED_US)
                                       : differs("its client has another id");
}

static bool note_is(struct txn *txn, uint32_t owner, uint32_t index, const struct parcel_model *p)
{
    struct uuid id = note_id(owner, index);
    struct key key = key_of_uuid(&id);
    struct audit audit;
    struct event event;
    enum error e = txn_read(txn, TABLE_AUDITS, key_span(&key), &audit);
    if (notes_seen[owner][index].count != p->noted)
        return differs("its audit entry has %u rows in the outbox", notes_seen[owner][index].count);
    if (!p->noted)
        return e == ERR_NOT_FOUND || differs("its audit entry: %s", error_name(e));
    if (e != OK || !span_equal(audit.target, span_text(scope_text(owner))))
        return differs("its audit entry: %s", e ? error_name(e) : "it is another one");
    uint64_t due_us = audit.at_us + AUDIT_KEPT_US;
    e = event_read(txn, &id, 1, &event);
    return e == OK ? due_is(txn, &id, due_us) : differs("its audit entry's event: %s", error_name(e));
}

/* Is it as this model says, with everything that belongs to it? */
static bool parcel_is(struct txn *txn, uint32_t owner, uint32_t index, const struct parcel_model *p,
                      const struct key_model *k)
{
    difference[0] = 0;
    if (!record_is(txn, owner, index, p) || !ledger_is(txn, owner, index, index + 1, k) ||
        !token_is(txn, owner, index, p) || !client_is(txn, owner, index, p) || !note_is(txn, owner, index, p))
        return false;
    for (uint32_t i = 0; i < STEPS; i++)
        if (!row_is(owner, index, p, i))
            return false;
    return true;
}

static bool is_open(const struct attempt *a)
{
    return atomic_load(&a->stage) != ANSWERED || open_ended(a->error);
}

/* The open attempt of a lane on parcels (at most one; crowds: one of each lane), or NULL. */
static struct attempt *open_of(uint32_t number)
{
    uint32_t count = shared->count[number];
    struct attempt *a = count ? &shared->attempts[number][count - 1] : NULL;
    return a && is_open(a) ? a : NULL;
}

static bool same_parcel(const struct attempt *a, uint32_t owner, uint32_t parcel)
{
    return a && a->kind != CLAIM && !on_row(a) && a->owner == owner && a->parcel == parcel;
}

static bool open_drop(uint32_t owner, uint32_t parcel)
{
    const struct attempt *a = owner < LANES ? open_of(owner) : NULL;
    return a && a->kind == DROP && same_parcel(a, owner, parcel);
}

static bool answered_right(const struct attempt *a, const struct model_answer *expected)
{
    if (a->kind == CLAIM) { /* the fence goes up */
        uint64_t fence;
        if (a->error != OK || a->answer_size != sizeof(fence))
            return complain("a claim was answered %s", error_name(a->error));
        memcpy(&fence, a->answer, sizeof(fence));
        if (fence <= life.fence[a->partition])
            return complain("partition %u: fence %" PRIu64 " after %" PRIu64, a->partition, fence,
                            life.fence[a->partition]);
        life.fence[a->partition] = fence;
        return true;
    }
    /* Another lane may drop the parcel before or after its row is marked. */
    const struct parcel_model *p = &life.lane[a->owner].parcel[a->parcel];
    if (on_row(a) && a->error == OK && p->there == DROPPED)
        return true;
    if (on_row(a) && a->error == ERR_NOT_FOUND && open_drop(a->owner, a->parcel))
        return true;
    if (a->error != expected->error)
        return complain("%s of parcel %u of lane %u was answered %s instead of %s", kind_names[a->kind],
                        a->parcel, a->owner, error_name(a->error), error_name(expected->error));
    if (a->error == OK &&
        (a->answer_size != expected->size || memcmp(a->answer, expected->bytes, expected->size) != 0))
        return complain("%s of parcel %u of lane %u was answered with other bytes", kind_names[a->kind],
                        a->parcel, a->owner);
    return true;
}

/* The model takes in what was answered. Rows of the outbox may be marked before the sender hears of its commit,
 * and nobody else changes a lane's parcels, so the lanes are independent. */
static bool replay_answered(bool compare)
{
    for (uint32_t n = 0; n < LANES; n++)
        for (uint32_t i = 0; i < shared->count[n]; i++) {
            const struct attempt *a = &shared->attempts[n][i];
            struct lane_model *lane = &life.lane[a->owner];
            if (a->kind == SEND && a->owner == n && a->parcel >= lane->parcels)
                lane->parcels = a->parcel + 1u;
            life.clock_us = a->at_us > life.clock_us ? a->at_us : life.clock_us;
            if (is_open(a) || turned_away(a->error))
                continue;
            struct model_answer expected = model_apply(lane, a);
            if (compare && !answered_right(a, &expected))
                return false;
            if (compare)
                a->error == OK ? totals->acknowledged++ : totals->refused++;
        }
    return true;
}

static void open_marks(bool set)
{
    for (uint32_t i = 0; i < shared->count[RELAY]; i++) {
        const struct attempt *a = &shared->attempts[RELAY][i];
        struct parcel_model *p = &life.lane[a->owner].parcel[a->parcel];
        if (!is_open(a) || !on_row(a) || a->stale)
            continue;
        if (a->kind == DEFER)
            p->defer_open[a->event] = set;
        else
            p->row_open[a->event] = set;
        p->open_fate[a->event] = a->kind == MARK ? GONE : BURIED;
    }
}

static bool mismatch(const struct attempt *a, bool open)
{
    bool refused = !open && a->error != OK;
    if (refused)
        totals->present++;
    else
        totals->lost++;
    return complain("parcel %u of lane %u after %s, %s: %s", a->parcel, a->owner, kind_names[a->kind],
                    open      ? "never answered, is neither as before nor as after it"
                    : refused ? "refused, is not as before"
                              : "answered, is not as after it",
                    difference);
}

/* What an open attempt came to, for the counts and for the batch it was in. */
enum outcome { OUTCOME_NONE, OUTCOME_SAME, OUTCOME_BEFORE, OUTCOME_AFTER };
static enum outcome outcomes[LANES];

/* Member by member: what lies between them is nobody's. */
static bool same_model(const struct parcel_model *a, const struct parcel_model *b)
{
#define SAME(member) (memcmp(&a->member, &b->member, sizeof(a->member)) == 0)
    return SAME(there) && SAME(state) && SAME(events) && SAME(variant) && SAME(used) && SAME(enrolled) &&
           SAME(noted) && SAME(event) && SAME(row) && SAME(defers) && SAME(row_open) && SAME(defer_open) &&
           SAME(open_fate) && SAME(size) && SAME(key) && SAME(due_us) && SAME(at_us);
#undef SAME
}

/* Compares a parcel that attempts of this cycle were about; `open` is the one without an answer. */
static bool judge(struct txn *txn, uint32_t number, const struct attempt *last, const struct attempt *open)
{
    const struct lane_model *lane = &life.lane[last->owner];
    const struct parcel_model *p = &lane->parcel[last->parcel];
    const struct key_model *k = &lane->key[last->parcel + 1];
    if (!open)
        return parcel_is(txn, last->owner, last->parcel, p, k) || mismatch(last, false);
    static struct lane_model after;
    after = *lane;
    struct model_answer expected = model_apply(&after, open);
    bool before_it = parcel_is(txn, last->owner, last->parcel, p, k);
    if (expected.error != OK || same_model(&after.parcel[last->parcel], p))
        outcomes[number] = OUTCOME_SAME;
    else if (before_it)
        outcomes[number] = OUTCOME_BEFORE;
    else if (parcel_is(txn, last->owner, last->parcel, &after.parcel[last->parcel],
                       &after.key[last->parcel + 1]))
        outcomes[number] = OUTCOME_AFTER;
    else
        return mismatch(open, true);
    return outcomes[number] != OUTCOME_SAME || before_it || mismatch(open, true);
}

/* Whose open attempt is about this parcel; LANES: nobody's. The crowd's are sent by many lanes: any open send of one
 * may have made it, and the first stands for all. */
static uint32_t open_about(uint32_t owner, uint32_t parcel)
{
    for (uint32_t n = 0; n < RELAY; n++)
        if (same_parcel(open_of(n), owner, parcel))
            return n;
    return LANES;
}

static bool judge_touched(struct txn *txn)
{
    for (uint32_t n = 0; n < LANES; n++)
        for (uint32_t i = 0; i < shared->count[n]; i++) {
            const struct attempt *a = &shared->attempts[n][i];
            if (a->kind == CLAIM)
                continue;
            uint32_t about = open_about(a->owner, a->parcel);
            if (!judge(txn, about, a, about < LANES ? open_of(about) : NULL))
                return false;
        }
    return true;
}

/* Rows whose mark nobody answered. */
static void judge_marks(void)
{
    const struct attempt *a = open_of(RELAY);
    if (!a || !on_row(a))
        return;
    const struct parcel_model *p = &life.lane[a->owner].parcel[a->parcel];
    const struct row_seen *seen = &rows_seen[a->owner][a->parcel][a->event];
    if (a->stale || p->there == DROPPED || p->row[a->event] != WAITING)
        outcomes[RELAY] = OUTCOME_SAME; /* it is refused; the relay read the row before it went */
    else if (a->kind == DEFER)
        outcomes[RELAY] = seen->attempts == p->defers[a->event] ? OUTCOME_BEFORE : OUTCOME_AFTER;
    else
        outcomes[RELAY] = seen->count ? OUTCOME_BEFORE : OUTCOME_AFTER;
}

static bool judge_claims(struct txn *txn)
{
    for (uint16_t partition = 0; partition < OUTBOX_PARTITIONS; partition++) {
        struct key key = {.size = 0};
        key_add_u16(&key, partition);
        struct claim claim = {.fence = 0};
        enum error e = txn_read(txn, TABLE_CLAIMS, key_span(&key), &claim);
        const struct attempt *a = open_of(RELAY);
        uint64_t fence = life.fence[partition];
        bool open = a && a->kind == CLAIM && a->partition == partition;
        if (e != OK && e != ERR_NOT_FOUND)
            return complain("the claim of partition %u: %s", partition, error_name(e));
        if (claim.fence != fence && !(open && claim.fence > fence))
            return complain("the fence of partition %u is %" PRIu64 " instead of %" PRIu64, partition,
                            claim.fence, fence);
        if (open)
            outcomes[RELAY] = claim.fence == fence ? OUTCOME_BEFORE : OUTCOME_AFTER;
        life.fence[partition] = claim.fence;
    }
    return true;
}

/* Those of one batch share one commit. */
static bool judge_batch(void)
{
    bool before = false, after = false;
    for (uint32_t n = 0; n < LANES; n++) {
        const struct attempt *a = open_of(n);
        if (!a)
            continue;
        totals->unknown++;
        enum outcome o = outcomes[n];
        o == OUTCOME_AFTER    ? totals->committed++
        : o == OUTCOME_BEFORE ? totals->uncommitted++
                              : totals->same++;
        if (a->batch == 0 || a->owner == CROWD)
            continue;
        before = before || o == OUTCOME_BEFORE;
        after = after || o == OUTCOME_AFTER;
    }
    if (before && after) {
        totals->batches_cut++;
        return complain("half of a batch is there");
    }
    return true;
}

/* The same again: with a key it is answered as it was or would have been; without one, what was done is refused. */
static bool send_again(struct store *store, uint32_t number)
{
    struct attempt *a = open_of(number);
    if (!a)
        return true;
    struct request r;
    struct answer answer = {.error = OK};
    request_of(a, &r);
    uint64_t at_us = life.actors ? life.clock_us : a->at_us;
    enum error e = batch_one(store, r.class, at_us, &r.command, &answer);
    struct lane_model *lane = &life.lane[a->owner];
    struct model_answer expected = model_apply(lane, a);
    if (outcomes[number] == OUTCOME_AFTER && expected.error == OK && !(a->kind == SEND && a->key)) {
        if (a->kind == SEND || a->kind == ENROL || a->kind == NOTE)
            expected = answer_of(ERR_EXISTS);
        else if (a->kind == MOVE)
            expected = answer_of(ERR_TRANSITION);
        else if (a->kind != CLAIM && a->kind != DEFER && a->kind != USE) /* a token may be used again */
            expected = answer_of(ERR_NOT_FOUND);
        else if (a->kind == DEFER)
            lane->parcel[a->parcel].defers[a->event]++; /* counts each time */
    }
    if (a->kind == CLAIM) {
        life.fence[a->partition]++;
        return e == OK || complain("a claim, sent again, was answered %s", error_name(e));
    }
    totals->made_again++;
    if (e != expected.error)
        return complain("%s of parcel %u of lane %u (%s), sent again, was answered %s instead of %s",
                        kind_names[a->kind], a->parcel, a->owner,
                        outcomes[number] == OUTCOME_AFTER ? "it was there" : "it was not there",
                        error_name(e), error_name(expected.error));
    return e != OK ||
           (answer.size == expected.size && memcmp(answer.bytes, expected.bytes, expected.size) == 0) ||
           complain("%s of parcel %u of lane %u, sent again, was answered with other bytes",
                    kind_names[a->kind], a->parcel, a->owner);
}

struct expected_rows {
    uint64_t parcels, events, outbox, ledger, due, dead, tokens, clients, audits, states[PARCEL_STATE_COUNT];
};

static struct expected_rows rows_expected(void)
{
    struct expected_rows rows;
    memset(&rows, 0, sizeof(rows));
    for (uint32_t owner = 0; owner <= CROWD; owner++)
        for (uint32_t i = 0; i < PARCELS; i++) {
            const struct parcel_model *p = &life.lane[owner].parcel[i];
            rows.ledger += life.lane[owner].key[i + 1].used;
            rows.tokens += p->used != 0;
            rows.due += p->used != 0;
            rows.due += p->enrolled != 0;
            rows.clients += p->enrolled != 0;
            rows.audits += p->noted != 0;
            rows.due += p->noted != 0;
            rows.events += p->noted != 0;
            rows.outbox += p->noted != 0;
            if (p->there != LIVING)
                continue;
            for (uint32_t j = 0; j < p->events; j++) {
                rows.outbox += p->row[j] == WAITING;
                rows.dead += p->row[j] == BURIED;
            }
            rows.parcels++;
            rows.events += p->events;
            rows.due += p->due_us != 0;
            rows.states[p->state]++;
        }
    return rows;
}

static bool count_is(const char *what, uint64_t count, uint64_t expected)
{
    return count == expected || complain("%" PRIu64 " %s instead of %" PRIu64
                                         ": something is there that nobody was told of, or half of it",
                                         count, what, expected);
}

/* Nothing beside what the model knows. */
static bool judge_counts(struct txn *txn)
{
    struct expected_rows rows = rows_expected();
    if (!count_is("parcels", txn_rows(txn, TABLE_PARCELS), rows.parcels) ||
        !count_is("events", txn_rows(txn, TABLE_EVENTS), rows.events) ||
        !count_is("rows in the outbox", txn_rows(txn, TABLE_OUTBOX), rows.outbox) ||
        !count_is("rows of the ledger", txn_rows(txn, TABLE_LEDGER), rows.ledger) ||
        !count_is("due entries", txn_rows(txn, TABLE_DUE), rows.due) ||
        !count_is("dead rows", txn_rows(txn, TABLE_DEAD), rows.dead) ||
        !count_is("used tokens", txn_rows(txn, TABLE_SEEN_TOKENS), rows.tokens) ||
        !count_is("audit entries", txn_rows(txn, TABLE_AUDITS), rows.audits) ||
        !count_is("clients", txn_rows(txn, TABLE_CLIENTS), rows.clients))
        return false;
    for (unsigned i = 0; i < PARCEL_STATE_COUNT; i++) {
        uint8_t state = (uint8_t)i;
        int64_t value = 0;
        enum error e = counter_read(txn, COUNTER_PARCELS, span_of(&state, 1), &value);
        if (e != OK || value != (int64_t)rows.states[state])
            return complain("the counter of parcels in state %u is %" PRId64 " instead of %" PRIu64 " (%s)",
                            state, value, rows.states[state], error_name(e));
    }
    return true;
}

static void tell_finding(void *context, const char *finding)
{
    (void)context;
    complain("check: %s", finding);
}

static bool judge_everything(struct store *store, struct txn *txn)
{
    if (!see_rows(txn))
        return false;
    for (uint32_t owner = 0; owner <= CROWD; owner++)
        for (uint32_t i = 0; i < PARCELS; i++) {
            const struct lane_model *lane = &life.lane[owner];
            if (!parcel_is(txn, owner, i, &lane->parcel[i], &lane->key[i + 1]))
                return complain("at the end, parcel %u of lane %u: %s", i, owner, difference);
        }
    struct check_report report;
    enum error e = check_rows(txn, store->schema, tell_finding, NULL, &report);
    if (e != OK)
        return complain("check: %s", error_name(e));
    totals->checked_rows += report.rows;
    return report.findings == 0;
}

static bool judge_left(struct txn *txn)
{
    memset(outcomes, 0, sizeof(outcomes));
    if (!replay_answered(true) || !see_rows(txn))
        return false;
    open_marks(true);
    if (!judge_touched(txn))
        return false;
    judge_marks();
    open_marks(false);
    return judge_claims(txn) && judge_batch();
}

/* The rest of its life is judged with what sending again came to. */
static bool verify_open(struct store *store, bool last)
{
    struct view *view = view_open_outside(store, 0);
    if (!view)
        return complain("no view could be opened");
    bool good = judge_left(&view->txn);
    view_close(view);
    for (uint32_t n = 0; good && n < LANES; n++)
        good = send_again(store, n);
    if (!good)
        return false;
    view = view_open_outside(store, 0);
    if (!view)
        return complain("no view could be opened the second time");
    good = judge_counts(&view->txn);
    if (good)
        good = see_rows(&view->txn);
    for (uint32_t n = 0; good && n < LANES; n++) {
        const struct attempt *a = open_of(n);
        if (a && a->kind != CLAIM)
            good = judge(&view->txn, n, a, NULL);
    }
    if (good && last)
        good = judge_everything(store, &view->txn);
    view_close(view);
    return good;
}

/* ---- the parent ---- */

static struct {
    uint64_t cycles, seed, parents;
    const char *dir, *memory;
} options = {.cycles = 10000, .seed = 1, .parents = 2, .dir = "build/kill9", .memory = "/dev/shm"};

static struct chance parent_chance;
static uint64_t opening_ns = 2000000; /* how long opening takes on this machine, about */

static uint64_t now_ns(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
    struct timespec ts = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
    while (nanosleep(&ts, &ts) != 0 && errno == EINTR)
        ;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static void remove_tree(const char *dir)
{
    (void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static pid_t fork_child(void)
{
    pid_t parent = getpid();
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        perror("kill9: fork");
        exit(71);
    }
    if (pid == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent))
        _exit(6);
    return pid;
}

/* What is different from life to life: sizes at which a map must grow often and files must be allocated anew, how
 * many lanes, who makes the batches, and where. */
static void life_begin(uint32_t parent, enum control control)
{
    static uint64_t number;
    memset(&life, 0, sizeof(life));
    life.number = ++number;
    life.seed = draw64(&parent_chance);
    struct chance c = {.state = life.seed};
    life.on_disk = draw(&c, DISK_SHARE) == 0;
    life.control = control;
    life.actors = !control && draw(&c, 2);
    life.lanes_busy = control ? LANES - 1 : 1 + draw(&c, LANES - 1);
    life.cycles = 1 + draw(&c, LIFE_MAX);
    snprintf(life.dir, sizeof(life.dir), "%s/kill9-%d-%u-%" PRIu64,
             life.on_disk ? options.dir : options.memory, (int)getppid(), parent, life.number);
    static const uint64_t maps[] = {4 << 20, 5 << 20, 8 << 20, 64 << 20};
    static const uint64_t steps[] = {64 << 10, 256 << 10, 1 << 20, 4 << 20};
    life.options = (struct store_options){
        .environment = {.dir = life.dir,
                        .map = maps[draw(&c, 4)],
                        .map_max = 1 << 30,
                        .step = steps[draw(&c, 4)],
                        .reserve = 64 << 10},
        .schema = &parcel_store_schema,
        .ledger_max = 1 << 14,
    };
    life.clock_us = now_ns(CLOCK_REALTIME) / NS_PER_US;
    remove_tree(life.dir);
    totals->lives++;
}

enum when { WHEN_OPENING, WHEN_LOADED, WHEN_CLOSING };

static void cycle_begin(void)
{
    for (uint32_t n = 0; n < LANES; n++)
        life.lane[n].chance.state = draw64(&parent_chance);
    memset(&life.relay, 0, sizeof(life.relay));
    memset(shared->count, 0, sizeof(shared->count));
    shared->complaint[0] = 0;
    if (life.actors)
        life.clock_us = now_ns(CLOCK_REALTIME) / NS_PER_US;
    life.options.environment.must_exist = life.committed;
}

/* Waits until the victim says `what`; false: it has ended, or says nothing any more. */
static bool hear(int fd, char what)
{
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int ready = poll(&p, 1, PATIENCE_MS);
        char said;
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return complain("the process under load hangs");
        if (read(fd, &said, 1) != 1)
            return false;
        if (said == what)
            return true;
    }
}

static void wait_for_the_instant(int fd, enum when when)
{
    if (!hear(fd, 'o'))
        return;
    uint64_t began = now_ns(CLOCK_MONOTONIC);
    if (when == WHEN_OPENING) {
        sleep_ns(draw64(&parent_chance) % (opening_ns + opening_ns / 4));
        return;
    }
    if (!hear(fd, 'a'))
        return;
    opening_ns = (opening_ns * 7 + (now_ns(CLOCK_MONOTONIC) - began)) / 8;
    if (when == WHEN_LOADED)
        sleep_ns(200000 + draw64(&parent_chance) % 3800000);
    else if (hear(fd, 'c'))
        sleep_ns(draw64(&parent_chance) % 400000);
}

/* True: it was killed, or had closed its store properly. */
static bool run_victim(enum when when)
{
    int fds[2];
    if (pipe(fds) != 0) {
        perror("kill9: pipe");
        exit(71);
    }
    pid_t pid = fork_child();
    if (pid == 0) {
        close(fds[0]);
        signal_fd = fds[1];
        victim(when == WHEN_CLOSING);
    }
    close(fds[1]);
    wait_for_the_instant(fds[0], when);
    kill(pid, SIGKILL);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    close(fds[0]);
    if (shared->complaint[0])
        return false;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return true;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && when == WHEN_CLOSING)
        return true;
    return complain("the process under load ended by itself: %s %d",
                    WIFSIGNALED(status) ? "signal" : "status",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static void verify(bool last)
{
    char text[512];
    struct store *store;
    if (life.actors)
        life.clock_us = now_ns(CLOCK_REALTIME) / NS_PER_US;
    enum error e = store_open(&life.options, &store, text, sizeof(text));
    if (e != OK) {
        complain("opening afterwards: %s: %.400s", error_name(e), text);
        _exit(1);
    }
    e = store_load(store);
    if (e != OK) {
        complain("reading the ledger: %s", error_name(e));
        _exit(1);
    }
    bool good = verify_open(store, last);
    store_close(store);
    life.committed = true;
    shared->left = life;
    _exit(good ? 0 : 1);
}

static bool run_verifier(bool last)
{
    pid_t pid = fork_child();
    if (pid == 0) {
        alarm(PATIENCE_MS / 1000);
        verify(last);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        life = shared->left;
        return true;
    }
    if (WIFEXITED(status) && shared->complaint[0])
        return false;
    return complain("the process that looks ended by %s %d", WIFSIGNALED(status) ? "signal" : "status",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static void cycle_counts(enum when when)
{
    totals->cycles++;
    if (life.on_disk)
        totals->on_disk++;
    else
        totals->in_memory++;
    if (when == WHEN_OPENING)
        totals->opening++;
    else if (when == WHEN_LOADED)
        totals->load++;
    else
        totals->closing++;
}

static bool cycle(uint32_t parent, uint64_t parent_seed, bool last)
{
    uint32_t kind = draw(&parent_chance, 100);
    enum when when = kind < 15 ? WHEN_OPENING : kind < 95 ? WHEN_LOADED : WHEN_CLOSING;
    cycle_begin();
    cycle_counts(when);
    if (run_victim(when) && run_verifier(last))
        return true;
    totals->failed++;
    if (life.control)
        return false;
    for (uint32_t n = 0; n < LANES; n++) {
        const struct attempt *a = open_of(n);
        if (a)
            fprintf(stderr, "kill9:   lane %u had no answer to its %s of parcel %u of lane %u (batch %u)\n",
                    n, kind_names[a->kind], a->parcel, a->owner, a->batch);
    }
    fprintf(stderr,
            "kill9: VIOLATION: %s\n"
            "kill9:   parent %u with seed %" PRIu64 ", life %" PRIu64
            " (%s, %s, %u lanes), its cycle %u, killed %s\n"
            "kill9:   what is left is kept in %s; the same choices again, at other instants: kill9 --seed "
            "%" PRIu64 " --parents %" PRIu64 " --cycles %" PRIu64 "\n",
            shared->complaint, parent, parent_seed, life.number, life.on_disk ? "disk" : "memory",
            life.actors ? "actors" : "batches", life.lanes_busy, life.cycle,
            when == WHEN_OPENING  ? "while opening"
            : when == WHEN_LOADED ? "under load"
                                  : "while closing",
            life.dir, options.seed, options.parents, options.cycles);
    return false;
}

/* Runs lives until so many cycles are done, or there were VIOLATIONS_MAX violations; one is enough of a control.
 * Returns the number of violations. */
static uint64_t run_lives(uint32_t parent, uint64_t seed, uint64_t cycles, enum control control)
{
    uint64_t violations = 0;
    parent_chance.state = seed;
    while (cycles && violations < (control ? 1 : VIOLATIONS_MAX)) {
        bool good = true, last = false;
        life_begin(parent, control);
        while (good && !last) {
            life.cycle++;
            cycles--;
            last = life.cycle == life.cycles || cycles == 0;
            good = cycle(parent, seed, last);
        }
        violations += !good;
        if (good || control)
            remove_tree(life.dir);
    }
    return violations;
}

static void *shared_memory(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("kill9: mmap");
        exit(71);
    }
    return memory;
}

/* In a process of its own. */
static void parent_begin(void)
{
    struct chance c = {.state = 42};
    shared = shared_memory(sizeof(*shared));
    for (size_t i = 0; i < sizeof(pattern); i++)
        pattern[i] = (uint8_t)draw64(&c);
    parcel_install();
}

/* How many cycles it took until the store that does this wrong was found out; 0: it wasn't. */
static uint64_t control_run(enum control control)
{
    struct totals *of_all = totals;
    totals = shared_memory(sizeof(*totals));
    pid_t pid = fork_child();
    if (pid == 0) {
        parent_begin();
        exit(run_lives(PARENTS_MAX + control, options.seed, CONTROL_CYCLES, control) ? 0 : 1);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    uint64_t cycles = WIFEXITED(status) && WEXITSTATUS(status) == 0 ? totals->cycles : 0;
    munmap(totals, sizeof(*totals));
    totals = of_all;
    return cycles;
}

static void usage(void)
{
    fprintf(stderr, "kill9 [--cycles N] [--seed S] [--parents 1..%u] [--dir D] [--memory D]\n", PARENTS_MAX);
    exit(64);
}

static uint64_t number_of(const char *text)
{
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno || *end || !*text || *text == '-')
        usage();
    return value;
}

static void read_options(int argc, char **argv)
{
    if (argc % 2 == 0)
        usage();
    for (int i = 1; i < argc; i += 2) {
        if (strcmp(argv[i], "--cycles") == 0)
            options.cycles = number_of(argv[i + 1]);
        else if (strcmp(argv[i], "--seed") == 0)
            options.seed = number_of(argv[i + 1]);
        else if (strcmp(argv[i], "--parents") == 0)
            options.parents = number_of(argv[i + 1]);
        else if (strcmp(argv[i], "--dir") == 0)
            options.dir = argv[i + 1];
        else if (strcmp(argv[i], "--memory") == 0)
            options.memory = argv[i + 1];
        else
            usage();
    }
    if (options.parents < 1 || options.parents > PARENTS_MAX || options.cycles < options.parents ||
        strlen(options.dir) > 300 || strlen(options.memory) > 300)
        usage();
    if (mkdir(options.dir, 0777) != 0 && errno != EEXIST) {
        perror(options.dir);
        exit(73);
    }
    if (access(options.memory, W_OK) != 0)
        options.memory = options.dir;
}

static int report(uint64_t began, bool controls)
{
    double seconds = (double)(now_ns(CLOCK_MONOTONIC) - began) / 1e9;
    const struct totals *t = totals;
    printf("kill9: seed %" PRIu64 ", %.1f s, %.0f cycles/s\n", options.seed, seconds,
           (double)t->cycles / seconds);
    printf("cycles           %" PRIu64 " (%" PRIu64 " in memory, %" PRIu64
           " on disk; killed while opening %" PRIu64 ", under load %" PRIu64 ", while closing %" PRIu64
           "), %" PRIu64 " stores\n",
           t->cycles, t->in_memory, t->on_disk, t->opening, t->load, t->closing, t->lives);
    printf("acknowledged     %" PRIu64 "\n", t->acknowledged);
    printf("lost             %" PRIu64 "\n", t->lost);
    printf("refused          %" PRIu64 "\n", t->refused);
    printf("refused present  %" PRIu64 "\n", t->present);
    printf("unknown outcomes %" PRIu64 " (committed %" PRIu64 ", not committed %" PRIu64
           ", changed nothing either way %" PRIu64 "); sent again %" PRIu64 "\n",
           t->unknown, t->committed, t->uncommitted, t->same, t->made_again);
    printf("rows checked at the end of lives %" PRIu64 ", batches cut in two %" PRIu64 "\n", t->checked_rows,
           t->batches_cut);
    uint64_t passed = t->cycles - t->failed;
    uint64_t missing = options.cycles - t->cycles;
    printf("%" PRIu64 " passed, %" PRIu64 " failed\n", passed, t->failed + missing);
    return t->failed + missing || !controls ? 1 : 0;
}

static bool run_controls(void)
{
    static const char *const names[] = {
        [CONTROL_EARLY] = "an answer before the commit", [CONTROL_HALF] = "a batch in two halves"};
    bool all = true;
    for (enum control control = CONTROL_EARLY; control < CONTROL_COUNT; control++) {
        uint64_t cycles = control_run(control);
        if (cycles)
            printf("control          %s: found in cycle %" PRIu64 "\n", names[control], cycles);
        else
            printf("control          %s: NOT FOUND in %u cycles; this campaign proves nothing\n",
                   names[control], CONTROL_CYCLES);
        all = all && cycles;
    }
    return all;
}

int main(int argc, char **argv)
{
    read_options(argc, argv);
    totals = shared_memory(sizeof(*totals));
    uint64_t began = now_ns(CLOCK_MONOTONIC);
    bool controls = run_controls();
    for (uint32_t n = 0; n < options.parents; n++)
        if (fork_child() == 0) {
            parent_begin();
            (void)run_lives(n, options.seed * 1000 + n,
                            options.cycles / options.parents + (n < options.cycles % options.parents),
                            CONTROL_NONE);
            exit(0);
        }
    while (wait(NULL) > 0 || errno == EINTR)
        ;
    (void)rmdir(options.dir); /* when nothing was kept */
    return report(began, controls);
}
