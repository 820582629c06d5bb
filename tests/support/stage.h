/* A stage: a store, a runtime over it and a body that runs as the root, with the writer and the keeper as the body
 * wants them; simulated on the virtual clock, or real. */
#ifndef COPPICE_TESTS_SUPPORT_STAGE_H
#define COPPICE_TESTS_SUPPORT_STAGE_H

#include "runtime/sim.h"
#include "store/keeper.h"
#include "store/view.h"
#include "store/writer.h"
#include "tests/support/parcel.h"

/* As TEST_CHECK, for any thread and any actor: what failed is reported when the stage has ended. */
#define EXPECT(c) ((c) ? (void)0 : stage_failed(#c, __FILE__, __LINE__))
void stage_failed(const char *what, const char *file, int line);

struct stage {
    bool real;           /* threads and the machine's clock; else simulated */
    uint64_t seed;       /* of the simulation; 0: 1 */
    uint32_t schedulers; /* 0: 2; one more is the writer's */
    uint64_t map, map_max, step, reserve, whole_max, view_age_ns;
    const struct schema *schema; /* NULL: the parcels' */
    const char *dir;             /* a directory that stays; NULL: one of its own, removed afterwards */
    bool unsound;                /* not checked row by row afterwards */
};

/* Opens the store, runs the body, ends writer and keeper, checks that no view is left and that all rows are sound.
 * Returns the runtime's exit status. */
int stage_run(const struct stage *stage, void (*body)(void));
extern struct store *stage_store;
extern char stage_dir[256];

/* ---- by the body and its actors ---- */

actor_pid stage_writer(void); /* starts it; nobody is linked to it */
actor_pid stage_keeper(void);
void stage_settle(void);           /* simulated: until nobody else can run */
void stage_clock_jump(int64_t ns); /* simulated: of the wall clock */

/* An actor that runs this function with this argument, once, and ends. Trappers trap exits. */
actor_pid stage_doll(int scheduler, void (*run)(void *arg), void *arg);
actor_pid stage_trapper(int scheduler, void (*run)(void *arg), void *arg);
struct reason stage_ended(actor_pid pid); /* waits for its end */
void stage_kill(actor_pid pid);           /* and waits */
void stage_note(actor_pid to, uint64_t value);
uint64_t stage_noted(void);            /* the next note, whenever it comes; good in dolls, too */
bool stage_mail(uint32_t *ret_type);   /* takes one message that is there; false: none */
size_t stage_logged(const char *text); /* how often the runtime's log of this stage has it */

/* A parcel with a body of this size; parcels of a number are always the same ones. */
struct uuid stage_id(uint64_t number);
enum error stage_send(uint64_t number, uint32_t body_size);
/* By a view of its own: whether the parcel is there. ERR_UNAVAILABLE: no view. */
enum error stage_find(uint64_t number);

#endif
