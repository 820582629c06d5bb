/* The event log: what happened to a thing, one stream per thing, numbered from 1 without gaps.
 *
 * Appending gives the next number; appending at a number that is there returns what is there when it is the same
 * event (a repeat after a crash or a lost answer), and ERR_CONFLICT when it is another one. The same means
 * everything but the time: a repeat comes later. Events are never changed; a stream goes only whole (retention). The
 * time of an event is never before that of the one before it.
 */
#ifndef COPPICE_STORE_EVENT_H
#define COPPICE_STORE_EVENT_H

#include "store/txn.h"

#define EVENT_DATA_MAX 32768u

/* Key: stream, seq. The name is a domain's own list; numbers are stored. */
#define EVENT_FIELDS(X)                                       \
    X(at_us, TIME, 0, 1)                                      \
    X(domain, U8, 0, 1) /* whose list `name` is from */       \
    X(name, U16, 0, 1)                                        \
    X(from_state, U8, 0, 1) /* of the lifecycle; 255: none */ \
    X(to_state, U8, 0, 1)                                     \
    X(data, BYTES, EVENT_DATA_MAX, 1)
RECORD_STRUCT(event, EVENT_FIELDS);

#define EVENT_NO_STATE 255u

struct key event_key(const struct uuid *stream, uint64_t seq);
/* at: 0 for the next number, or the number it must get. OK and *ret_seq; *ret_repeated (may be NULL) tells whether
 * it was there already. ERR_CONFLICT: another event has the number, or it leaves a gap. The event's time is raised
 * to that of the one before it. Wakes event_topic. Needs the table's scan for itself. */
enum error event_append(struct txn *txn, const struct uuid *stream, uint64_t at, const struct event *event,
                        uint64_t *ret_seq, bool *ret_repeated);
/* The next event, by whoever keeps the number and the time of the stream's last one in a row of its own: nothing is looked for,
 * so a stream whose earlier events are damaged or gone goes on. ERR_DAMAGED: there is one of this number, and nothing is written. */
enum error event_add(struct txn *txn, const struct uuid *stream, uint64_t seq, const struct event *event);
/* The number of the newest event of the stream; 0: there are none. */
enum error event_last(struct txn *txn, const struct uuid *stream, uint64_t *ret_seq);
enum error event_read(struct txn *txn, const struct uuid *stream, uint64_t seq, struct event *ret_event);
/* Removes the whole stream, at most `limit` events of it from its beginning; *ret_left: there are more. A gap or a
 * damaged event among them is ERR_DAMAGED, and nothing goes. */
enum error event_remove_stream(struct txn *txn, const struct uuid *stream, uint32_t limit, bool *ret_left);
/* STORE_TOPIC(TOPIC_EVENTS, the last byte of the id): who waits for events of this stream joins its group, and looks
 * when woken, because other streams share it. */
uint32_t event_topic(const struct uuid *stream);

#endif
