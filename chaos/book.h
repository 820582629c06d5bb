/* Book: every job that the server has accepted, in some 80 bytes, and what must be so of all of them together.
 *
 * A page of it is opened by the 202; a second one for the same id is a repeat or a fault, as the caller knows.
 */
#ifndef COPPICE_CHAOS_BOOK_H
#define COPPICE_CHAOS_BOOK_H

#include "chaos/caller.h"
#include "store/uuid.h"

struct entry {
    struct uuid id;
    uint32_t caller;
    uint8_t asked, kind, state; /* enum kind: asked for, defined; enum state: last seen */
    bool drawn_known, listed;
    bool at_once;                     /* it was never to wait for a time */
    bool settled;                     /* nothing more is to come of it */
    bool given_up;                    /* it was not followed to its end, as a check has said */
    uint64_t created_ms, assigned_ms; /* first; 0: never seen */
};

/* A new entry, or NULL: it is there, and *ret_there is it. Entries stay where they are. */
struct entry *book_add(const struct uuid *id, struct entry **ret_there);
struct entry *book_find(const struct uuid *id);
uint64_t book_count(void);
uint64_t book_count_of(int asked, int state); /* state -1: any */

/* Lists all of the caller's jobs, page by page, and compares. */
void book_judge_list(struct caller *caller);
/* The order of first assignments, and what was drawn at the same instant. */
void book_judge_order(void);

#endif
