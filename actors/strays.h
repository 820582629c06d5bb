/* Strays of a sender: what it does about entries of the due index that lead to no delivery which could be sent by them, such as one that can't
 * be read (store/delivery_astray.h).
 *
 *     noted, a few at a time --> their places are searched for --> delivery.astray --> noted anew, if there are more
 *
 * A search goes through all chains, STRAYS_ROWS in one step. Of those that it has been through for before, which come back each
 * DELIVERY_ASTRAY_US, it knows STRAYS_KNOWN, and doesn't search again nor tell of them. Part of a sender's state; keeps nothing that
 * matters: what is forgotten is found again.
 */
#ifndef COPPICE_ACTORS_STRAYS_H
#define COPPICE_ACTORS_STRAYS_H

#include "store/delivery_astray.h"

#define STRAYS_ROWS  1024u /* about a millisecond; 1,000,000 deliveries are 1,000 steps */
#define STRAYS_KNOWN 256u

enum strays_stage { STRAYS_NOTED, STRAYS_SEARCHED, STRAYS_ASKED };

struct strays { /* zero is an empty one */
    enum strays_stage stage;
    struct delivery_stray list[DELIVERY_STRAYS_MAX];
    uint32_t count;
    struct key from; /* where the search goes on */
    uint64_t ref;    /* of store_ask */
    uint32_t known_count, known_next;
    struct uuid known[STRAYS_KNOWN]; /* the newest ones, in turn */
    uint8_t bytes[DELIVERY_STRAYS_MAX * DELIVERY_STRAY_SIZE];
};

/* When there is no room, or those before are being seen to, a later look finds it again. */
void strays_note(struct strays *s, const struct due_entry *entry);

enum strays_next {
    STRAYS_REST,  /* nothing to do until some are noted */
    STRAYS_SOON,  /* the next step may be now */
    STRAYS_WAITS, /* for the store */
};
/* A step. From an actor, on every look; never waits. */
enum strays_next strays_step(struct strays *s);

#endif
