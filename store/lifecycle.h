/* Lifecycles: states, events and the edges between them, as a table; what isn't in the table is refused.
 *
 *     #define PARCEL_STATES(X) X(HELD, "held", 0) X(SENT, "sent", 0) X(LOST, "lost", LIFECYCLE_TERMINAL)
 *     #define PARCEL_EVENTS(X) X(SEND, "send") X(LOSE, "lose")
 *     static const struct lifecycle_edge edges[] = {{PARCEL_HELD, PARCEL_SEND, PARCEL_SENT}, ...};
 *
 * Declared once per kind of thing, and checked by a test of each (lifecycle_check): every name is there and used
 * once, no edge leaves a terminal state, no state and event have two edges, every state but the first is reached.
 * Pure tables: nothing here stores anything. A state is stored as its number; numbers are never given away twice.
 */
#ifndef COPPICE_STORE_LIFECYCLE_H
#define COPPICE_STORE_LIFECYCLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/error.h"

#define LIFECYCLE_TERMINAL   1u
#define LIFECYCLE_STATES_MAX 32u
#define LIFECYCLE_EVENTS_MAX 32u

struct lifecycle_state {
    const char *name;
    uint32_t flags;
};
struct lifecycle_edge {
    uint8_t from, event, to;
};
struct lifecycle {
    const char *name;                     /* "parcel" */
    const struct lifecycle_state *states; /* the first is where a new one stands */
    const char *const *events;
    const struct lifecycle_edge *edges;
    uint32_t states_count, events_count, edges_count;
};

/* OK and the next state, or ERR_TRANSITION (*ret_state untouched), or ERR_DAMAGED when `state` isn't one. */
enum error lifecycle_next(const struct lifecycle *l, uint8_t state, uint8_t event, uint8_t *ret_state);
/* Whether anything may move this state to that one. */
bool lifecycle_allows(const struct lifecycle *l, uint8_t from, uint8_t to);
bool lifecycle_terminal(const struct lifecycle *l, uint8_t state);
const char *lifecycle_state_name(const struct lifecycle *l, uint8_t state); /* NULL: there is none */
const char *lifecycle_event_name(const struct lifecycle *l, uint8_t event);
/* "parcel: 'send' is not possible in state 'lost'; possible: nothing". Numbers that the table
 * doesn't have are shown as they are. Returns the length; what doesn't fit is cut off. */
size_t lifecycle_refusal(const struct lifecycle *l, uint8_t state, uint8_t event, char *text, size_t size);
/* False: the table is wrong, and the sentence says how. */
bool lifecycle_check(const struct lifecycle *l, char *text, size_t size);

#endif
