/* Warden: the supervisor of reference. From what was born and what died, and by nothing else, it says what must become of the tree.
 *
 * A pure function of events: it calls nobody, reads no clock and knows none of the supervisors' own states; of each it knows what it
 * was declared as. Whoever runs the tree tells it of every birth and death, in order, and whom somebody outside has struck. What it
 * finds is the first sentence of warden_finding (A6, A3):
 *
 *     returns      of a place under a supervisor that lives, each death is followed by a birth; two never stand in one place
 *     budget       more restarts than declared within the closed window end the supervisor, and nothing else does
 *     order        a supervisor that ends its children ends the youngest first, and none is born under it any more
 *     containment  nobody is killed whom nobody has struck and whose parent lives; nobody crashes by itself; who is struck dies
 *
 * One place is one name under one incarnation of a supervisor; children without a name, such as connections, are temporary. Only
 * one_for_one and dynamic are known here, as there are no others in the product's tree.
 *
 * Times of restarts are known by their ends only: the death before the supervisor heard of it, the birth after it was granted. So a
 * window is judged where both ends say the same.
 */
#ifndef COPPICE_CHAOS_WARDEN_H
#define COPPICE_CHAOS_WARDEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WARDEN_ACTORS      4096u /* as many as the simulated runtime has room for */
#define WARDEN_PLACES      512u
#define WARDEN_SUPERVISORS 128u
#define WARDEN_RESTARTS    64u /* of a supervisor, the newest; more than any intensity of the tree */
#define WARDEN_NAME        48u
#define WARDEN_SHUTDOWN_NS UINT64_C(1000000000) /* whoever is told to end has longer than that */

struct warden_birth {
    uint64_t pid, parent;
    const char *class, *name; /* name: "" for none */
    bool supervisor, dynamic; /* dynamic: its children have no order, and needn't come back */
    uint32_t intensity;
    uint64_t period_ns;
};

/* How an actor ended, as far as it matters here. */
enum warden_end { WARDEN_NORMAL, WARDEN_SHUTDOWN, WARDEN_KILLED, WARDEN_FAULT };

struct warden {
    uint32_t actors_count, places_count, windows_count, born;
    struct warden_actor {
        uint64_t pid, parent, born, struck_at, orphan_since;
        uint32_t number; /* of its place, in the order in which places were first taken */
        bool supervisor, dynamic, ending, struck, orphan; /* orphan: its supervisor has died */
        bool
            doubtful; /* its name was still another's when it was born: then a second try follows within the same grant */
        char class[WARDEN_NAME], name[WARDEN_NAME];
    } actors[WARDEN_ACTORS];
    struct warden_place { /* one that is empty */
        uint64_t parent, died;
        uint32_t number;
        bool doubtful; /* of whom it was */
        char name[WARDEN_NAME];
    } places[WARDEN_PLACES];
    struct warden_window { /* of a supervisor */
        uint64_t pid, period_ns;
        uint32_t intensity, count;
        struct warden_restart {
            uint64_t died, born;
            bool doubtful; /* it may share a grant with another one */
        } restarts[WARDEN_RESTARTS];
    } windows[WARDEN_SUPERVISORS];
    uint32_t returns, doubts, escalations,
        endings; /* births in empty places; doubtful ones; supervisors that gave up, that ended others */
    bool starved;
    char finding[300];
};

void warden_begin(struct warden *w);
void warden_born(struct warden *w, uint64_t now, const struct warden_birth *birth);
void warden_died(struct warden *w, uint64_t now, uint64_t pid, enum warden_end end);
void warden_struck(struct warden *w, uint64_t now, uint64_t pid);
/* From now on a start may fail before anybody is born, for want of memory: what that cost of a budget isn't known. */
void warden_starve(struct warden *w);
/* Whether somebody is about to come back or to die, and has had less than WARDEN_PATIENCE_NS for it: then it isn't at rest yet. */
#define WARDEN_PATIENCE_NS UINT64_C(60000000000)
bool warden_waits(const struct warden *w, uint64_t now);
/* At rest: no place is empty, and nobody lives who was struck. */
void warden_rest(struct warden *w);
bool warden_knows(const struct warden *w, uint64_t pid); /* it lives */
uint64_t warden_age(const struct warden *w, uint64_t pid, uint64_t now);
/* "": all is as it must be. */
static inline const char *warden_finding(const struct warden *w)
{
    return w->finding;
}

#endif
