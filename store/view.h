/* Views: what readers see, one consistent state each, on the scheduler threads.
 *
 * A view belongs to the actor that opened it and is closed with it, before anybody learns of the death. No view
 * waits for the writer and none makes it wait, except for the moment in which the map grows. While one is open
 * the actor must not wait: it copies what it needs, closes, then waits. An actor that holds one for longer than
 * store_options.view_age_ns is ended, because old views make the file grow: by the keeper, or by the writer that
 * waits for it. Opening a second one while the first is open may wait for the writer, who waits for the first: don't.
 *
 *     struct view *view = view_open(store);            NULL: as many are open as may be, or the store has failed
 *     enum error e = txn_read(&view->txn, TABLE_AUDITS, key, &audit);
 *     ... copy ...
 *     view_close(view);
 *
 * Opening renews one of the scheduler's own read transactions: no lock, no system call, no allocation.
 * Limits: VIEWS_PER_LANE on a scheduler.
 */
#ifndef COPPICE_STORE_VIEW_H
#define COPPICE_STORE_VIEW_H

#include "store/store.h"

#define VIEWS_PER_LANE       32u
#define VIEW_LANES           (64u + 8u) /* one per scheduler; those behind are for plain threads */

#define VIEW_OPEN_TRIES      10000u   /* of a ms each while the map grows, which takes less than one */
#define VIEWS_LOOK_NS        NS_PER_S /* who holds one for too long is told, and at the next look killed */
#define VIEWS_STOP_MARGIN_NS (3 * NS_PER_S) /* beyond the maximum age: two looks, and the end of the actor */

struct view {
    struct txn txn;
    uint64_t opened_at; /* the owner's clock; 0: closed */
    actor_pid owner;
    uint64_t ref; /* of the ownership */
    uint16_t lane;
};

struct view *view_open(struct store *store);
struct view *
view_try(struct store *store); /* without waiting: NULL also while the map grows; from an actor */
/* For plain threads, each with a lane of its own among those behind: 0..7. */
struct view *view_open_outside(struct store *store, uint32_t lane);
void view_close(struct view *view);

/* By the keeper: ends the owners of views older than the limit; returns how many. */
uint32_t views_enforce_age(struct store *store);
/* By the writer: keeps new views from opening and waits until the open ones have gone; false when they didn't
 * within the maximum age (they are let in again), or records are used up. A writer that ends meanwhile lets them in. */
bool views_stop(struct store *store, uint64_t wait_ns);
void views_go_on(struct store *store);

enum error views_create(struct store *store);
void views_destroy(struct store *store);
uint32_t views_count(const struct store *store);

#endif
