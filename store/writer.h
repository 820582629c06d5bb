/* The writer: the actor that changes the store, on a scheduler of its own.
 *
 * It takes every command that has arrived, runs them as one batch, answers each submitter after the commit, wakes
 * those who watch, and looks again. There is nothing to tune: a batch is what came while the last one was being
 * synced, and what those who were just answered send at once: for them it waits, at most for half of what the last
 * commit took and 1 ms, and not at all for one who goes on alone. Its scheduler has nobody else on it, because it
 * stands still during a sync.
 *
 * Its mailbox is the queue: STORE_QUEUE_MAX commands, refused beyond (ERR_FULL); from pressure level degraded on
 * commands of low priority are refused, at shed those of normal priority too (ERR_SHED).
 *
 * A standing command (store_stand) waits here for things of its topic. A batch that offers some takes up as many of those that stand,
 * the newest first, behind the commands that came: each is then a command of this batch like any other, with the time of now.
 *
 * A command that is looked at only when its submitter waits no longer is refused, ERR_TIMEOUT, and has no effect; but one of high
 * priority is done, unless it is one that may stand: a revocation that comes late is better than none, a claim isn't.
 *
 * A commit that fails ends the process with status 74 (EX_IOERR) after one line that says why; nobody is answered.
 */
#ifndef COPPICE_STORE_WRITER_H
#define COPPICE_STORE_WRITER_H

#include "store/standing.h"
#include "store/store.h"

#define WRITER_NAME "store.writer"

/* The message of a command: this head, then the encoded command. The reply: struct writer_reply, then the answer. */
#define WRITER_COMMAND 1u
struct writer_command {
    uint64_t at_us;
    uint16_t code;
    uint8_t unused[2];
    uint32_t
        until_ms; /* low bits of the clock: who asks waits no longer, and what hasn't been begun by then isn't; 0: for ever */
};
/* A cast: this head, then the encoded command, at most STANDING_BYTES_MAX. What becomes of it: STORE_GIVEN (store_stand). */
#define WRITER_STAND 3u
struct writer_stand {
    uint64_t at_us, number;
    uint16_t code;
    uint8_t again; /* only if one stands by this number */
    uint8_t unused[5];
};
#define WRITER_REPLY 2u
struct writer_reply {
    uint32_t error; /* enum error */
    uint32_t unused;
};

extern const struct actor_class writer_class; /* state: the installed store */

#endif
