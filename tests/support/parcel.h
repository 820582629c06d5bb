/* Parcels: a small domain that uses every mechanic of the store, for tests, harnesses and figures.
 *
 * parcel.send makes one: a record with a body, an event, an outbox row, a ledger row, a due entry and counters, all in
 * one command. parcel.move takes it along its lifecycle (held -> sent -> delivered | lost; held -> lost), parcel.drop
 * removes a terminal one with its events. parcel_store_schema is the product's schema with these rows.
 */
#ifndef COPPICE_TESTS_SUPPORT_PARCEL_H
#define COPPICE_TESTS_SUPPORT_PARCEL_H

#include "store/batch.h"
#include "store/check.h"
#include "store/lifecycle.h"
#include "store/store.h"

#define TABLE_PARCELS TABLE_COUNT /* key: id */

#define PARCEL_STATES(X)                                 \
    X(PARCEL_HELD, "held", 0)                            \
    X(PARCEL_SENT, "sent", 0)                            \
    X(PARCEL_DELIVERED, "delivered", LIFECYCLE_TERMINAL) \
    X(PARCEL_LOST, "lost", LIFECYCLE_TERMINAL)
enum parcel_state {
#define X(id, name, flags) id,
    PARCEL_STATES(X)
#undef X
        PARCEL_STATE_COUNT
};
#define PARCEL_EVENTS(X)         \
    X(PARCEL_SEND, "send")       \
    X(PARCEL_DELIVER, "deliver") \
    X(PARCEL_LOSE, "lose")
enum parcel_event {
#define X(id, name) id,
    PARCEL_EVENTS(X)
#undef X
        PARCEL_EVENT_COUNT
};
extern const struct lifecycle parcel_lifecycle;

#define PARCEL_BODY_MAX   32768u
#define PARCEL_EVENTS_MAX 3u /* made, sent, delivered or lost */
#define PARCEL_FIELDS(X)                                                                                    \
    X(state, U8, 0, 1)                                                                                      \
    X(at_us, TIME, 0, 1)                                                                                    \
    X(moved_us, TIME, 0, 1)                                                                                 \
    X(due_us, TIME, 0, 1)                                                                                   \
    X(rows, BYTES, PARCEL_EVENTS_MAX * 8, 1) /* of the outbox: the number of each event's, little-endian */ \
    X(body, BYTES, PARCEL_BODY_MAX, 1)
RECORD_STRUCT(parcel, PARCEL_FIELDS);

#define PARCEL_DOMAIN         90u
#define PARCEL_TOPIC          9000u
#define PARCEL_RETENTION_KIND 9000u

/* Answer of send: the id and the state, 17 bytes. ERR_EXISTS: the id is taken. ERR_LIMIT: outbox or ledger is full.
 * Its event is PARCEL_SEND, from no state; that of a move is the event moved by. Their time is the command's, or that
 * of the event before when the clock went back; moved_us is that of the last one. */
#define PARCEL_SEND_FIELDS(X)                                         \
    X(id, UUID, 0, 1)                                                 \
    X(scope, TEXT, 128, 1)                                            \
    X(key, TEXT, 255, 1) /* empty: no ledger row */                   \
    X(digest, DIGEST, 0, 1)                                           \
    X(due_us, TIME, 0, 1) /* 0: none; else retention takes it then */ \
    X(body, BYTES, PARCEL_BODY_MAX, 1)
RECORD_STRUCT(parcel_send, PARCEL_SEND_FIELDS);
/* Answer of move: the new state, 1 byte. ERR_NOT_FOUND, ERR_TRANSITION. */
#define PARCEL_MOVE_FIELDS(X) X(id, UUID, 0, 1) X(event, U8, 0, 1)
RECORD_STRUCT(parcel_move, PARCEL_MOVE_FIELDS);
/* Takes the outbox rows along, waiting or dead, as retention does. ERR_NOT_FOUND, ERR_CONFLICT when it isn't terminal.
 * Cleans up. */
#define PARCEL_DROP_FIELDS(X) X(id, UUID, 0, 1)
RECORD_STRUCT(parcel_drop, PARCEL_DROP_FIELDS);
extern const struct command_class parcel_send_class, parcel_move_class,
    parcel_drop_class; /* codes 9001..9003 */

enum { COUNTER_PARCELS = 9000 }; /* by state, 1 byte */
extern const struct schema parcel_store_schema;
/* Once per process, before a store of it is opened: tells retention of parcels. */
void parcel_install(void);

#endif
