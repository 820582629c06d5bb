/* Inbox: where webhooks of one registration or one callback arrive, and how they are answered; all behind one listener of
 * this program's.
 *
 * An attempt is judged as it comes (its shape, its signature, its lane) and then answered as the inbox's manner says.
 */
#ifndef COPPICE_CHAOS_INBOX_H
#define COPPICE_CHAOS_INBOX_H

#include "chaos/caller.h"
#include "chaos/lane.h"

/* X(ID, "what it does") */
#define MANNERS(X)                                                               \
    X(GOOD, "answers 2xx at once")                                               \
    X(HANGING, "lets the job's first attempt run into the timeout")              \
    X(FAILING, "fails each first attempt: 500, 502, 404, a redirect, no answer") \
    X(NEVER, "answers 500, always")                                              \
    X(SLOW, "answers 2xx, slowly")

enum manner {
#define X(id, prose) MANNER_##id,
    MANNERS(X)
#undef X
};

#define EVENTS_ALL (~UINT32_C(0)) /* a bit for each event name */

struct inbox {
    uint32_t number;
    enum manner manner;
    uint32_t events;  /* that it was registered for */
    bool closed;      /* unregistered: no job that begins now may be told of here */
    bool late;        /* nobody listened at first */
    uint32_t counter; /* attempts */
    char url[160];
};

/* Once. */
void inbox_listen(void);
/* At a socket that is bound, besides. */
void inbox_listen_at(int fd);
/* Stops taking deliveries, so that strands can end. */
void inbox_close_all(void);
/* Lives for the rest of the run. */
struct inbox *inbox_make(enum manner manner, uint32_t events);

#endif
