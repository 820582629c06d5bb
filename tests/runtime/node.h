/* For the tests of the core: bodies that run inside an actor, of a simulated node or a real one, with the
 * books balanced behind each of them: what they took from the runtime must be back where it was. */
#ifndef COPPICE_TESTS_RUNTIME_NODE_H
#define COPPICE_TESTS_RUNTIME_NODE_H

#include <stdbool.h>
#include "runtime/sim.h"
#include "tests/support/sanitized.h"

/* As TEST_CHECK, but for any thread: acutest belongs to one. What failed is reported when the node has ended. */
#define EXPECT(c) ((c) ? (void)0 : node_failed(#c, __FILE__, __LINE__))
void node_failed(const char *what, const char *file, int line);

/* ---- simulated ---- */

#define NODE_SEEDS 25 /* or as many as the environment's NODE_SEEDS says */

/* Runs the body as the root under NODE_SEEDS seeds, with 1 to 3 schedulers and several orders, and checks
 * afterwards that it came to its end and that actors, records, timers, messages, chunks, blobs and stacks are
 * as many as before. */
void node_sim(void (*body)(void));
/* The same without looking at the books, once, with these schedulers. */
void node_sim_with(void (*body)(void), const struct sim_options *o);
extern uint64_t node_seed; /* of the run */
extern struct sim *the_sim;

void settle(void);  /* until nobody else can run */
int anywhere(void); /* some scheduler, as the seed says */
uint32_t draw(uint32_t count);

/* ---- real ---- */

/* Runs the body as the root of a real runtime; checks that nothing is left when it has ended. Returns the
 * exit status. */
int node_real(uint32_t schedulers, void (*body)(void));
int node_real_with(const struct runtime_options *o, void (*body)(void));
extern struct runtime *node_runtime;
/* What the runtime logged, the lines one after the other; how often this text is in it. */
size_t node_logged(const char *text);
void node_log(const char *line, size_t size);

/* ---- dolls: actors that run what they are told ---- */

enum { RUN = 1, NOTE, ASK };
struct order {
    void (*run)(void *arg);
    void *arg;
};
enum actor_step doll_handle(void *state,
                            struct message *m); /* RUN runs; ASK is answered with its own bytes */
extern const struct actor_class doll_class, trapper_class;
actor_pid doll(int scheduler); /* not linked */
actor_pid spawn(const struct actor_class *class, int scheduler);
void tell(actor_pid to, void (*run)(void *arg), void *arg);
void note(actor_pid to, uint64_t value); /* a NOTE with this value */

/* The next message of this type, whenever it comes; its payload. */
void *expect(uint32_t type);
bool mail(void); /* is there any? It is thrown away. */
/* Monitors, waits for the end and returns why (without its detail). */
struct reason ended(actor_pid pid);
struct reason down(uint64_t ref); /* the same for a monitor that is there already */

/* ---- children: what ends a process is tried in another one ---- */

struct outcome {
    int exited; /* its exit status, -1 when a signal ended it */
    int signal;
    size_t lines;    /* that it wrote to standard error */
    char text[4096]; /* the beginning of it */
};
/* Runs body in a forked process that exits 0 when it comes back. The body finds the argument in
 * node_argument. */
struct outcome node_child(void (*body)(void), void *argument);
extern void *node_argument;

#endif
