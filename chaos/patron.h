/* Patrons: the clients outside, and what they know.
 *
 * Each one speaks HTTP over one connection, has one request under way, and remembers of every job what it was answered: that is the
 * reference. A request ends as answered, as refused or as unknown; after unknown both are right, and nothing else. What was answered
 * once holds for ever: across kills, crashes and power cuts, as no client has a word for "the answer was wrong".
 *
 * Two patrons may be one client, with one key: then the same job is asked about, and the same submit sent, by both at a time. What a
 * request may be answered is judged by what was known when it was sent.
 */
#ifndef COPPICE_CHAOS_PATRON_H
#define COPPICE_CHAOS_PATRON_H

#include "chaos/dice.h"
#include "store/job.h"

#define PATRON_REQUEST_MAX 1400u
#define PATRON_ANSWER_MAX  98304u
#define PATRON_CLAIM_MAX   4u
#define ORDER_EVENTS_MAX   64u

/* What is known of a job's state at some time: later is never less. */
struct sight {
    uint16_t attempt; /* 0: nothing is known */
    uint8_t state;    /* enum job_state */
    bool canceled;    /* a cancel was answered so; of which attempt it doesn't say */
};

/* A job, as its client has ordered it. */
struct order {
    char id[UUID_TEXT_SIZE]; /* once it is known */
    uint32_t number;         /* of all that were ordered */
    uint32_t key;            /* of its client's: clients have the same keys */
    uint32_t life, leaps;    /* when it was ordered */
    uint8_t client;          /* the patron that is its client's first one */
    uint8_t kind;            /* place in the patron's table of kinds */
    bool outside;            /* a kind that workers outside run */
    bool deferred, tried, known, refused;
    bool unknown; /* a submit had no answer */
    bool cancel_tried;
    bool cancel_unknown; /* one had no answer */
    bool retry_unknown;  /* one had no answer, or one that says nothing */
    uint64_t due_ms;     /* deferred: when, by the calendar */
    struct sight sight;
    uint64_t seen_at; /* when it was looked at last */
    /* the newest lease that somebody outside was given */
    struct lease {
        char token[24];
        uint16_t attempt;
        uint32_t life;
        uint64_t at_least, at_most; /* until when, by the clock outside */
        bool ended;                 /* somebody has reported, canceled, or may have */
        bool beaten;                /* a heartbeat is under way, or had no answer: it may last for longer */
    } lease;
    /* the report that was taken, of which attempt */
    struct told {
        char token[24];
        uint16_t attempt;
        uint8_t state;
    } told;
    uint32_t events;
    uint64_t events_hash[ORDER_EVENTS_MAX];
    uint16_t report_attempt;
    uint64_t report_hash;
};

enum patron_stage {
    PATRON_IDLE,
    PATRON_SENDING,
    PATRON_WAITING,
};

/* X(ID): what a patron asks for. */
#define DEEDS(X) \
    X(NOTHING)   \
    X(REGISTER)  \
    X(KEY)       \
    X(HOOK)      \
    X(SUBMIT)    \
    X(OTHERWISE) \
    X(STRANGER)  \
    X(HOSTILE)   \
    X(LOOK)      \
    X(EVENTS)    \
    X(REPORT)    \
    X(CANCEL)    \
    X(RETRY)     \
    X(CLAIM)     \
    X(BEAT)      \
    X(COMPLETE)  \
    X(FAIL)
enum deed {
#define X(id) DEED_##id,
    DEEDS(X)
#undef X
        DEED_COUNT
};

struct patron {
    uint8_t number, client; /* client: the first patron of the same client */
    bool registered, hooked;
    uint32_t keys; /* that its client has used */
    char client_id[UUID_TEXT_SIZE], key[80];
    int fd; /* -1: not connected */
    enum patron_stage stage;
    enum deed deed;
    struct dice dice;
    uint64_t next;    /* when it does something again */
    uint64_t sent;    /* when its request went out */
    uint64_t until;   /* it waits no longer */
    uint64_t hang_at; /* it goes by then; 0: it doesn't */
    struct order *order;
    /* as it was when the request was sent */
    struct sight floor;
    struct lease lease; /* with which it reports or beats */
    struct told told;
    uint16_t newest; /* attempt of the newest lease */
    uint32_t lease_ms, wait_ms, events_floor;
    char held[24]; /* the token of its last report: for saying it again */
    struct order *held_order;
    uint16_t held_attempt;
    bool held_unknown; /* it had no answer */
    bool crowded;      /* its last submit found the queue full */
    struct order *aim; /* it waits for the end of this one's lease */
    uint32_t pieces;   /* in which its request went out */
    uint32_t request_size, request_sent, answer_size;
    char request[PATRON_REQUEST_MAX];
    char answer[PATRON_ANSWER_MAX + 1];
};

/* Its part of the beginning: it isn't anybody yet. */
void patron_begin(struct patron *p, uint8_t number, uint64_t seed);
/* It does something, if it can. False: there was nothing to do. */
bool patron_step(struct patron *p);
/* When it would like to be asked again; UINT64_MAX: only something from outside can change anything. */
uint64_t patron_next(const struct patron *p);
/* The server has gone, with all connections. */
void patron_cut_off(struct patron *p);
/* Everybody has what he needs to begin. */
bool patrons_ready(void);
/* Nothing is left to be done. */
bool patrons_rest(void);
/* All that was ordered is over, and is forgotten. */
void patrons_forget(void);
/* What isn't at rest, for people. */
void patrons_tell(char *text, size_t size);

#endif
