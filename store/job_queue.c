#include "store/job_queue.h"

#include "store/check.h"
#include "store/counter.h"
#include "store/job_fairness.h"
#include "store/job_lease.h"
#include "store/store.h"

#define job_queue_FIELD(name, TYPE, limit, since) RECORD_FIELD(job_queue, name, TYPE, limit, since)
RECORD_CLASS(job_queue, JOB_QUEUE_FIELDS, 1);

#define UUID_SIZE           ((uint32_t)sizeof(struct uuid))
#define JOB_ADMIT_LOOK_MAX  64u /* jobs that are damaged, or of the client's own kinds */
#define JOB_ADMIT_WORKS_MAX 8u  /* kinds of the client's own whose workers are woken */

/* What stands in front of rank and place. */
static struct key lane_key(enum job_lane lane, const struct uuid *name, const struct uuid *work)
{
    struct key key;
    key.size = 0;
    key_add_u8(&key, (uint8_t)lane);
    if (name)
        key_add_uuid(&key, name);
    if (work)
        key_add_uuid(&key, work);
    return key;
}

uint8_t job_queue_rank(const struct job *job)
{
    return job->pass ? 0 : (uint8_t)(1 + JOB_PRIORITY_MAX - job->priority);
}

struct key job_queue_key(const struct job *job)
{
    struct key key;
    switch ((enum job_lane)job->lane) {
    case LANE_OUTSIDE:
        key = lane_key(LANE_OUTSIDE, &job->client, &job->work);
        break;
    case LANE_PAUSED_WORK:
        key = lane_key(LANE_PAUSED_WORK, &job->work, NULL);
        break;
    case LANE_PAUSED_CLIENT:
    case LANE_LIMITED:
    case LANE_FAIR:
        key = lane_key(job->lane, &job->client, NULL);
        break;
    default:
        key = lane_key(job->lane, NULL, NULL);
    }
    key_add_u8(&key, job_queue_rank(job));
    key_add_u64(&key, job->place);
    return key;
}

struct key job_queue_order_key(const struct job *job)
{
    struct key key = lane_key(LANE_ORDER, NULL, NULL);
    key_add_u8(&key, job_queue_rank(job));
    key_add_u64(&key, job->place);
    return key;
}

static void wake(struct txn *txn, const struct job *job)
{
    if (job->lane == LANE_SERVER || job->lane == LANE_FAIR)
        txn_wake_one(txn, JOB_TOPIC_QUEUE);
    else if (job->lane == LANE_OUTSIDE)
        txn_wake_part(txn, job_topic_client(&job->client), job_topic_part(&job->client, &job->work),
                      job_topic_part(&job->client, NULL));
}

/* lane:1 name:16 of those that are set aside; without bytes: it isn't. */
static struct key aside_label(uint8_t lane, const struct uuid *client, const struct uuid *work)
{
    struct key label = {.size = 0};
    if (lane < LANE_PAUSED_WORK || lane > LANE_LIMITED)
        return label;
    key_add_u8(&label, lane);
    key_add_uuid(&label, lane == LANE_PAUSED_WORK ? work : client);
    return label;
}

static void count_aside(struct txn *txn, const struct job *job, int64_t delta)
{
    struct key label = aside_label(job->lane, &job->client, &job->work);
    if (label.size > 0)
        counter_add(txn, COUNTER_JOBS_ASIDE, key_span(&label), delta);
}

enum error job_queue_aside(struct txn *txn, enum job_lane lane, const struct uuid *name, int64_t *ret_count)
{
    struct key label = aside_label((uint8_t)lane, name, name);
    ASSERT(label.size > 0);
    return counter_read(txn, COUNTER_JOBS_ASIDE, key_span(&label), ret_count);
}

static void put(struct txn *txn, struct job *job, enum job_lane lane)
{
    struct job_queue row = {.id = job->id, .client = job->client, .work = job->work};
    ASSERT(job->lane == LANE_NONE && job->priority <= JOB_PRIORITY_MAX);
    job->lane = (uint8_t)lane;
    struct key key = job_queue_key(job), second = job_queue_order_key(job);
    txn_add(txn, TABLE_JOB_QUEUE, key_span(&key), &row);
    if (lane == LANE_FAIR)
        txn_add(txn, TABLE_JOB_QUEUE, key_span(&second), &row);
    count_aside(txn, job, 1);
}

void job_queue_put(struct txn *txn, struct job *job)
{
    enum job_lane lane = job->kind == WORK_KIND_USER      ? LANE_OUTSIDE
                         : !job->pass && fairness_on(txn) ? LANE_FAIR
                                                          : LANE_SERVER;
    put(txn, job, lane);
    wake(txn, job);
}

void job_queue_take(struct txn *txn, struct job *job)
{
    if (job->lane == LANE_NONE)
        return;
    struct key key = job_queue_key(job), second = job_queue_order_key(job);
    if (txn_try_remove(txn, TABLE_JOB_QUEUE, key_span(&key)) == OK)
        count_aside(txn, job, -1); /* one that has gone isn't counted either */
    if (job->lane == LANE_FAIR)
        (void)txn_try_remove(txn, TABLE_JOB_QUEUE, key_span(&second));
    job->lane = LANE_NONE;
}

void job_queue_sort(struct txn *txn, struct job *job)
{
    ASSERT(job->lane == LANE_SERVER);
    job_queue_take(txn, job);
    put(txn, job, LANE_FAIR);
}

void job_queue_move(struct txn *txn, struct job *job, enum job_lane lane)
{
    job_queue_take(txn, job);
    put(txn, job, lane);
}

enum error job_queue_next(struct txn *txn, enum job_lane lane, const struct uuid *name,
                          const struct uuid *work, const struct key *behind, struct job_queue *ret_row,
                          struct key *ret_key)
{
    struct key from = lane_key(lane, name, work);
    uint32_t prefix = from.size;
    ret_key->size = 0;
    if (behind) {
        if (behind->size == KEY_SIZE_MAX)
            return ERR_DAMAGED;
        from = *behind;
        key_add_u8(&from, 0);
    }
    struct scan scan = txn_scan(txn, TABLE_JOB_QUEUE, key_span(&from), prefix, SCAN_UP);
    bool found = scan_next(&scan) && scan_read(&scan, ret_row) == OK;
    if (scan.key.size > prefix) /* also of one that can't be read */
        key_add(ret_key, scan.key.bytes, scan.key.size);
    enum error e = scan_end(&scan);
    return e ? e : found ? OK : ERR_NOT_FOUND;
}

struct job_turn job_queue_turn(const struct key *key)
{
    struct job_turn turn = {
        {0}}; /* a key that is too short isn't one: it is looked at first, and found out */
    if (key->size >= sizeof(turn.bytes))
        memcpy(turn.bytes, key->bytes + key->size - sizeof(turn.bytes), sizeof(turn.bytes));
    return turn;
}

/* A kind of the client's own, and its job that came first. */
struct waiting {
    struct uuid work;
    struct job_turn turn;
};

static bool waits_longer(const struct waiting *a, const struct waiting *b)
{
    return memcmp(&a->turn, &b->turn, sizeof(a->turn)) < 0;
}

/* Into its place among those that wait for longest, of which there is room for one more than are kept; how many there are then. */
static uint32_t note_waiting(struct waiting oldest[JOB_ADMIT_WORKS_MAX + 1], uint32_t count,
                             const struct waiting *one)
{
    uint32_t at = count;
    for (; at > 0 && waits_longer(one, &oldest[at - 1]); at--)
        oldest[at] = oldest[at - 1];
    oldest[at] = *one;
    return count < JOB_ADMIT_WORKS_MAX ? count + 1 : count;
}

/* Who waits for one of the client's own kinds looks again; those first whose job came first, or the same few kinds would have every
 * place. */
static void wake_outside(struct txn *txn, const struct uuid *client)
{
    struct waiting oldest[JOB_ADMIT_WORKS_MAX + 1];
    struct job_works works;
    uint32_t count = 0;
    int64_t fence = 0;
    (void)counter_read(txn, COUNTER_JOB_FENCE, span_of(NULL, 0), &fence);
    job_works_begin(&works, (uint64_t)fence);
    for (uint32_t i = 0; i < JOB_WAKE_WORKS_MAX && job_works_next(txn, client, &works) == OK; i++) {
        struct waiting one = {.work = works.work, .turn = works.turn};
        count = note_waiting(oldest, count, &one);
    }
    for (uint32_t i = 0; i < count; i++)
        txn_wake_part(txn, job_topic_client(client), job_topic_part(client, &oldest[i].work),
                      job_topic_part(client, NULL));
}

static void bring_back(struct txn *txn, struct job *job, enum job_slot slot)
{
    job_queue_take(txn, job);
    job->slot = (uint8_t)slot;
    job_queue_put(txn, job);
    job_write(txn, job);
}

/* A damaged one is in nobody's way. One of the client's own kinds was set aside by an earlier version. */
void job_queue_admit(struct txn *txn, const struct uuid *client)
{
    struct job_queue row;
    struct job_texts texts;
    struct key key;
    struct job job;
    bool promised = false;
    enum error e = job_queue_next(txn, LANE_LIMITED, client, NULL, NULL, &row, &key);
    for (uint32_t i = 0; !promised && e != ERR_NOT_FOUND && key.size > 0 && i < JOB_ADMIT_LOOK_MAX; i++) {
        struct key behind = key;
        if (!e && job_open(txn, &row.id, &job, &texts) == OK) {
            promised = job.kind != WORK_KIND_USER;
            bring_back(txn, &job, promised ? JOB_SLOT_PROMISED : JOB_NO_SLOT);
        }
        e = job_queue_next(txn, LANE_LIMITED, client, NULL, &behind, &row, &key);
    }
    wake_outside(txn, client);
}

void job_queue_pass_on(struct txn *txn, struct job *job)
{
    bool promised = job->slot == JOB_SLOT_PROMISED;
    job->slot = JOB_NO_SLOT;
    if (promised)
        job_queue_admit(txn, &job->client);
}

enum error job_queue_counted(struct txn *txn, const struct uuid *client, int64_t *ret_count)
{
    return counter_read(txn, COUNTER_JOBS_COUNTED, span_of(client, sizeof(*client)), ret_count);
}

/* The kind behind `after` (NULL: the first). */
static enum error next_work(struct txn *txn, const struct uuid *client, const struct uuid *after,
                            struct job_works *works)
{
    struct key from = lane_key(LANE_OUTSIDE, client, after), key;
    uint32_t prefix = 1 + UUID_SIZE;
    while (after && from.size < prefix + UUID_SIZE + 9) /* behind all rows of that kind */
        key_add_u8(&from, 0xff);
    struct scan scan = txn_scan(txn, TABLE_JOB_QUEUE, key_span(&from), prefix, SCAN_UP);
    (void)scan_next(&scan);
    bool found = scan.key.size >= prefix + UUID_SIZE; /* also of a row that can't be read */
    if (found) {
        key.size = 0;
        key_add(&key, scan.key.bytes, scan.key.size);
        memcpy(&works->work, key.bytes + prefix, UUID_SIZE);
        works->turn = job_queue_turn(&key);
    }
    enum error e = scan_end(&scan);
    return found ? OK : e ? e : ERR_NOT_FOUND;
}

/* Multiples of the golden section fill the circle evenly: no arc is left out for long. Ids of kinds are hashes, so they do as well. */
void job_works_begin(struct job_works *works, uint64_t number)
{
    uint64_t point = number * UINT64_C(0x9e3779b97f4a7c15);
    *works = (struct job_works){.again = false};
    for (uint32_t i = 0; i < sizeof(point); i++)
        works->point.bytes[i] = (uint8_t)(point >> (56 - 8 * i));
    works->work = works->point;
}

enum error job_works_next(struct txn *txn, const struct uuid *client, struct job_works *works)
{
    enum error e = next_work(txn, client, &works->work, works);
    if (e == ERR_NOT_FOUND && !works->again) {
        works->again = true;
        e = next_work(txn, client, NULL, works);
    }
    bool over = !e && works->again && memcmp(&works->work, &works->point, UUID_SIZE) > 0;
    return over ? ERR_NOT_FOUND : e;
}

enum error job_queue_next_client(struct txn *txn, enum job_lane lane, const struct uuid *after,
                                 struct uuid *ret_client)
{
    struct key from = lane_key(lane, after, NULL);
    while (after && from.size < 1 + UUID_SIZE + 9) /* behind all rows of that client */
        key_add_u8(&from, 0xff);
    struct scan scan = txn_scan(txn, TABLE_JOB_QUEUE, key_span(&from), 1, SCAN_UP);
    (void)scan_next(&scan);
    bool found = scan.key.size >= 1 + UUID_SIZE; /* also of a row that can't be read */
    if (found)
        memcpy(ret_client, (const uint8_t *)scan.key.bytes + 1, UUID_SIZE);
    enum error e = scan_end(&scan);
    return found ? OK : e ? e : ERR_NOT_FOUND;
}

enum error job_round_next(struct txn *txn, struct job_round *round)
{
    enum error e = ERR_NOT_FOUND;
    if (!round->again)
        e = job_queue_next_client(txn, LANE_FAIR, &round->at, &round->at);
    if (round->again || e == ERR_NOT_FOUND) {
        e = job_queue_next_client(txn, LANE_FAIR, round->again ? &round->at : NULL, &round->at);
        round->again = true;
    }
    bool over = !e && round->again && memcmp(&round->at, &round->last, UUID_SIZE) > 0;
    return over ? ERR_NOT_FOUND : e;
}

enum error job_queue_any_fair(struct txn *txn, bool *ret_any)
{
    struct job_queue row;
    struct key key;
    enum error e = job_queue_next(txn, LANE_ORDER, NULL, NULL, NULL, &row, &key);
    *ret_any = key.size > 0;
    return *ret_any || e == ERR_NOT_FOUND ? OK : e;
}

/* ---- how many are before it ---- */

/* Rows of a lane before this turn, or of what is in it of `name`; adds to *count, which ends at `most`. */
static enum error count_before(struct txn *txn, enum job_lane lane, const struct uuid *name,
                               const struct job_turn *turn, uint32_t most, uint32_t *count)
{
    struct key from = lane_key(lane, name, NULL);
    struct scan scan = txn_scan(txn, TABLE_JOB_QUEUE, key_span(&from), from.size, SCAN_UP);
    while (*count < most && scan_next(&scan)) {
        struct key key = {.size = 0};
        key_add(&key, scan.key.bytes, scan.key.size);
        struct job_turn other = job_queue_turn(&key);
        if (memcmp(&other, turn, sizeof(other)) >= 0)
            break;
        ++*count;
    }
    return scan_end(&scan);
}

/* Up to `most` rows of this client. */
static enum error count_of(struct txn *txn, const struct uuid *client, uint32_t most, uint32_t *count)
{
    struct key from = lane_key(LANE_FAIR, client, NULL);
    struct scan scan = txn_scan(txn, TABLE_JOB_QUEUE, key_span(&from), from.size, SCAN_UP);
    for (uint32_t i = 0; i < most && scan_next(&scan); i++)
        ++*count;
    return scan_end(&scan);
}

/* In each round every client has one turn, so as many go before it of another as of its own. */
static enum error ahead_in_turn(struct txn *txn, const struct job *job, const struct fairness *f,
                                uint32_t most, uint32_t *count)
{
    static const struct job_turn wished = {{1}}; /* those before it are an operator's */
    struct key at = job_queue_key(job);
    struct job_turn turn = job_queue_turn(&at);
    struct job_round round = {.last = f->last, .at = f->last};
    uint32_t own = 0, quota;
    enum error e = count_before(txn, LANE_FAIR, &job->client, &turn, most, &own);
    *count = own;
    if (!e)
        e = count_before(txn, LANE_SERVER, NULL, &wished, most, count);
    quota = own + 1; /* of those whose turn comes before its client's */
    while (!e && *count < most && quota > 0) {
        uint32_t left = most - *count;
        e = job_round_next(txn, &round);
        if (!e && uuid_equal(&round.at, &job->client))
            quota = own;
        else if (!e)
            e = count_of(txn, &round.at, quota < left ? quota : left, count);
    }
    return e == ERR_NOT_FOUND ? OK : e;
}

/* Of what is claimed by the order of creation alone, part of which has two rows. */
static enum error ahead_in_both(struct txn *txn, const struct job *job, uint32_t most, uint32_t *count)
{
    struct key at = job_queue_key(job);
    struct job_turn turn = job_queue_turn(&at);
    enum error e = count_before(txn, LANE_SERVER, NULL, &turn, most, count);
    return e ? e : count_before(txn, LANE_ORDER, NULL, &turn, most, count);
}

static enum error ahead_in_lane(struct txn *txn, const struct job *job, uint32_t most, uint32_t *ret_count)
{
    struct key at = job_queue_key(job);
    struct scan scan = txn_scan(txn, TABLE_JOB_QUEUE, key_span(&at), at.size - 9, SCAN_DOWN);
    uint32_t count = 0;
    while (count <= most && scan_next(&scan)) /* itself is the first */
        count++;
    *ret_count = count ? count - 1 : 0;
    return scan_end(&scan);
}

enum error job_queue_ahead(struct txn *txn, const struct job *job, uint32_t most, uint32_t *ret_count)
{
    struct fairness f;
    enum error e = fairness_read(txn, &f);
    *ret_count = 0;
    if (e == ERR_NOT_FOUND || (job->lane != LANE_SERVER && job->lane != LANE_FAIR))
        return ahead_in_lane(txn, job, most, ret_count);
    if (e || !f.on)
        return ahead_in_both(txn, job, most, ret_count);
    return job->lane == LANE_FAIR ? ahead_in_turn(txn, job, &f, most, ret_count)
                                  : ahead_in_lane(txn, job, most, ret_count);
}

void job_queue_check(struct check *check, struct txn *txn, struct span key, const void *value)
{
    const struct job_queue *row = value;
    char id[UUID_TEXT_SIZE];
    struct job job;
    uint8_t lane = key.size > 0 ? *(const uint8_t *)key.bytes : (uint8_t)LANE_NONE;
    struct key label = aside_label(lane, &row->client, &row->work);
    if (label.size > 0)
        check_count(check, COUNTER_JOBS_ASIDE, key_span(&label), 1);
    uuid_format(&row->id, id);
    enum error e = job_read(txn, &row->id, &job);
    if (e == ERR_NOT_FOUND)
        check_complain(check, "job_queue: job %s isn't there", id);
    if (e)
        return;
    struct key wanted = lane == LANE_ORDER ? job_queue_order_key(&job) : job_queue_key(&job);
    bool there = lane == LANE_ORDER ? job.lane == LANE_FAIR : job.lane != LANE_NONE;
    if (job.state != JOB_QUEUED || !there || !span_equal(key, key_span(&wanted)))
        check_complain(check, "job_queue: job %s, which is %s, stands where it shouldn't", id,
                       job_state_name(job.state));
    if (!uuid_equal(&row->client, &job.client) || !uuid_equal(&row->work, &job.work))
        check_complain(check, "job_queue: job %s is of another client or kind than its row", id);
}
