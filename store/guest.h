/* A guest: a store looked at by another program than its server, beside it or when none runs.
 *
 * It reads one consistent state at a time and writes nothing. As long as it holds one, pages that are overwritten
 * meanwhile aren't used again and the store's file grows: whoever reads for long renews (guest_renew) when it can.
 *
 * The server may be opening, closing or enlarging the store at the same moment. That passes: opening is tried
 * GUEST_TRIES times, GUEST_PAUSE_NS apart, before it is an error; a map that has grown is followed.
 *
 * LMDB believes its file, so reading a damaged one can end the reader by a signal. guest_apart runs work in a child
 * process and makes its death an error like any other. The child has a lower priority than a server: what an operator
 * looks at may take longer, what is being written may not. What holds no state back does best to call guest_last.
 * Priorities count among the processes of one cgroup. For programs with one thread; all of this blocks.
 */
#ifndef COPPICE_STORE_GUEST_H
#define COPPICE_STORE_GUEST_H

#include <sys/types.h>

#include "store/image.h"
#include "store/meta.h"
#include "store/store.h"

#define GUEST_TRIES    10u
#define GUEST_PAUSE_NS (10 * NS_PER_MS)

struct guest {
    struct store store; /* environment, schema, identity and secret only */
    struct txn txn;
    struct meta_format format; /* of the state that is looked at */
};

/* As environment_open. ERR_MISSING: there is no store. ERR_MEMORY: as many views are open as may be. */
enum error guest_open(const char *dir, const struct schema *schema, struct guest *ret_guest, char *ret_text,
                      size_t text_size);
/* Goes on to the newest state; what was read before is gone. After an error the guest can only be closed. */
enum error guest_renew(struct guest *guest);
/* Every page of the state that is held, without LMDB (image_check): where a tree is damaged rows would only be missing. Goes on
 * to the newest state when the server has committed too often meanwhile. As image_check; ERR_UNAVAILABLE: it always had. */
enum error guest_look(struct guest *guest, struct image_report *ret_report, char *ret_text, size_t text_size);
void guest_close(struct guest *guest);

/* Work of a child: may read and change *shared (which is copied there and back), ends with an error and, unless it is
 * OK, a sentence. */
typedef enum error guest_work(void *shared, char *ret_text, size_t text_size);
/* What the work returned; ERR_DAMAGED when it died of what it read, ERR_SYSTEM when somebody ended it or there is no
 * child. *shared is written back only when the work returned. `what` begins the sentence: "the backup". */
enum error guest_apart(guest_work *work, const char *what, void *shared, size_t size, char *ret_text,
                       size_t text_size);

/* The same in two steps, for children that work at a time. */
struct guest_child {
    pid_t pid;
    struct apart *apart;
    const char *what;
    void *shared; /* borrowed until guest_await, which writes it back */
    size_t size;
};
/* ERR_SYSTEM: there is no child, and nothing to wait for. */
enum error guest_start(guest_work *work, const char *what, void *shared, size_t size,
                       struct guest_child *ret_child, char *ret_text, size_t text_size);
enum error guest_await(struct guest_child *child, char *ret_text, size_t text_size);

/* Whether whoever goes first has done something since this was asked last. */
typedef bool guest_busy(void *arg);
/* Until all of them have ended: after each GUEST_TURN_NS in which somebody was busy they stand still for GUEST_REST_NS.
 * A disk knows no priorities: who reads or writes without a pause takes most of it. */
#define GUEST_TURN_NS (2 * NS_PER_MS)
#define GUEST_REST_NS (6 * NS_PER_MS)
void guest_pace(const struct guest_child *children, size_t count, guest_busy *busy, void *arg);

/* In a child: from here on it has what others leave of the CPUs and of the disk, and gives way at once. On a machine
 * with nothing to spare that is next to nothing: not while a state is held. */
void guest_last(void);

#endif
