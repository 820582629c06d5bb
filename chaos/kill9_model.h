/* The model: what must be in a store after what kill9 tried and was answered, without the product's code.
 *
 * Nobody but a lane changes what it owns, and it tries one thing after the other; so a model of each owner by itself is
 * enough, whatever the order between lanes was. Rows of the outbox belong to the relay, which may mark one before the sender
 * hears of its commit; whose the crowd's parcels are decides who was first, but all send the same. What retention takes is
 * the keeper's alone: only its parcels and keys are over while an ordeal lasts.
 *
 * A model is plain memory without pointers: it is copied, and handed from one process to the next.
 */
#ifndef COPPICE_CHAOS_KILL9_MODEL_H
#define COPPICE_CHAOS_KILL9_MODEL_H

#include "chaos/dice.h"
#include "chaos/kill9_attempt.h"

enum { ABSENT, LIVING, DROPPED };
enum { WAITING, GONE, BURIED };

/* A key of a client. Times are 0 where nobody knows them; ticks are the lane's attempts. */
struct api_key_model {
    uint64_t created_us, ended_us, used_us;
    uint64_t created_tick, ended_tick;
    uint8_t there, end; /* end: enum api_key_end */
    uint8_t spent, fleeting;
    uint8_t noted; /* its end, once for each slot */
    uint8_t pad[3];
};

/* What the ledger tells of an issue that had the slot's key. */
struct issue_model {
    uint64_t created_us;
    uint8_t used, variant, slot, spent;
    uint8_t pad[4];
};

struct parcel_model {
    uint8_t there, state, events, variant;
    uint8_t used;                            /* its token: 1 and the variant; 0: not yet */
    uint8_t enrolled, noted;                 /* its client, its audit entry */
    uint8_t active;                          /* of its client: 1 and the slot; 0: no key */
    uint8_t event[STEPS];                    /* its name */
    uint8_t row[STEPS], defers[STEPS];       /* in the outbox */
    bool row_open[STEPS], defer_open[STEPS]; /* a mark of it was not answered */
    uint8_t open_fate[STEPS];
    uint32_t size, key;
    uint32_t issued;               /* keys, ever */
    uint64_t due_us, at_us[STEPS]; /* at_us 0: nobody knows */
    struct api_key_model keys[SLOTS];
    struct issue_model told[SLOTS];
};
bool model_same(const struct parcel_model *a, const struct parcel_model *b);

/* A key in the ledger under which a parcel was sent. */
struct sent_model {
    bool used;
    uint8_t variant;
    uint16_t parcel;
};

struct lane_model {
    struct dice dice;
    uint32_t parcels; /* made so far */
    uint64_t ticks;
    uint64_t retained_us; /* what the calendar has noted; 0: nothing */
    bool retained_open;   /* or nobody knows */
    struct parcel_model parcel[PARCELS];
    struct sent_model key[PARCELS + 1];
};

struct model_answer {
    enum error error;
    bool untimed; /* of an issued key: when it was created, and until when it is good, nobody knows */
    bool
        may_more; /* of a sweep: that there is more may be the ledger's word, too, of rows by another clock that it passes by */
    uint32_t size;
    uint8_t bytes[ATTEMPT_ANSWER_MAX];
};

/* What the store must answer, and what is true afterwards. The same again: what it must answer to a repeat. Claims stand by
 * themselves. */
struct model_answer model_apply(struct lane_model *lane, const struct attempt *a);
struct model_answer model_answer_of(enum error e);
/* What the ledger has for a parcel that was sent. */
struct model_answer model_answer_sent(uint32_t owner, uint32_t index);
/* A key's, as api_key.issue answers; made: it came with the command. */
struct model_answer model_answer_issued(uint32_t owner, uint32_t index, const struct issue_model *issue,
                                        bool made);
bool model_answers(const struct model_answer *expected, const void *bytes, size_t size);

/* How many rows there are in all. */
struct model_rows {
    uint64_t parcels, events, outbox, ledger, due, dead, tokens, clients, audits, keys, keyed;
    uint64_t states[PARCEL_STATE_COUNT];
};
struct model_rows model_rows(const struct lane_model lanes[OWNERS]);

#endif
