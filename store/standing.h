/* Standing commands: those that found nothing to do and wait in the writer until there is something.
 *
 * Each is the copy of a command and of who wants to hear of it. The one that came last is the first to be taken: whoever
 * was at work a moment ago is still warm. One whose actor has ended is dropped when it is met, and all of those when
 * there is no room for another one.
 *
 * Only the writer's: no locks, no clock, no waiting. Finding one by its name looks at all that stand; everything else takes the
 * same time however many there are. Room for them comes from the running actor's arena, STANDING_PAGE at a time and 208 bytes each,
 * 832 KiB at most; it stays for the next ones.
 */
#ifndef COPPICE_STORE_STANDING_H
#define COPPICE_STORE_STANDING_H

#include "runtime/actor.h"
#include "store/command.h"

#define STANDING_MAX       4096u /* one for each actor that may have one: workers (actors/jobs.h) */
#define STANDING_PAGE      64u
#define STANDING_BYTES_MAX 160u /* of an encoded command */

struct stand {
    struct stand *next, *previous; /* while it stands; next: while it is free */
    actor_pid who;
    uint64_t number; /* what its actor calls it */
    const struct command_class *class;
    uint32_t size;
    bool stands;
    uint8_t bytes[STANDING_BYTES_MAX];
};

struct standing {
    struct stand *page, *free; /* the page that was taken last */
    struct stand ends;         /* of the ring of those that stand: next is the newest, previous the oldest */
    uint32_t used, count;
};

void standing_init(struct standing *s);
/* One that doesn't stand yet; NULL: there is no room. */
struct stand *standing_new(struct standing *s);
/* Never one that stands. */
void standing_free(struct standing *s, struct stand *stand);
/* From here on it stands. */
void standing_put(struct standing *s, struct stand *stand);
/* The newest whose actor lives stands no more; NULL: none does. */
struct stand *standing_take(struct standing *s);
/* This one stands no more; NULL: it didn't. */
struct stand *standing_find(struct standing *s, actor_pid who, uint64_t number);
/* Looks at the `most` oldest ones, and drops those whose actors have ended. Those that live say so again and again, and are newer
 * then; so it is the dead that are found here. */
void standing_tidy(struct standing *s, uint32_t most);

#endif
