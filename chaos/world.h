/* World: the whole server in one thread, on a virtual clock, under a seed.
 *
 * It is made as boot makes it: settings from a command line, the fronts, the tree of the topology, the store, and the sockets on which
 * clients connect. Left out are the rows that need what isn't there: signals, the keyring and traces (OpenSSL's own chance), the
 * service manager. What is beneath is simulated: the environment (runtime/sim.h), the disk (chaos/disk.h), and, as the program is
 * linked, some calls of the system and of the product, which go through here (WORLD_CALLS in the Makefile): env_real, so that
 * nobody has another clock; sim_trace_add, for births and deaths, of which the warden is told; fetch_begin, which is where requests to webhooks leave; contracts_create, which takes longer than all
 * the rest of a start, and surface_routes; send, sendmsg and accept4, which fail or do half of
 * what was asked when the faults say so.
 *
 * One world in a process: whoever wants another one forks before the first. Everything blocks on nothing.
 */
#ifndef COPPICE_CHAOS_WORLD_H
#define COPPICE_CHAOS_WORLD_H

#include "actors/fetch.h"
#include "chaos/dice.h"
#include "chaos/warden.h"
#include "runtime/sim.h"
#include "store/store.h"

#define WORLD_PATH_MAX 256u
#define WORLD_ARGS_MAX 40u

/* As a store is opened: small, so that it grows, and is full, within a life. */
struct world_store {
    uint64_t map, map_max, step, reserve, view_age_ns;
    uint32_t ledger_max;
};

struct world_options {
    const char *dir, *store_dir; /* an empty folder for sockets, and where the store is or will be */
    uint64_t seed, start_ns;
    int64_t wall_ns; /* by how much the wall clock is off */
    uint32_t schedulers;
    enum sim_order order;
    struct world_store store;
    const char *args[WORLD_ARGS_MAX]; /* further ones of `coppice serve`; NULL ends them */
    bool loud;                        /* the server's log goes to standard error */
};

/* What the calls around the server do; of 1,000. May be changed at any time. */
struct world_faults {
    struct dice dice;
    uint32_t send_halves, send_waits, accept_fails;
    uint32_t
        memory_after; /* the so-manieth piece from now on that the runtime takes isn't there; 0: all are */
    uint32_t accepts_failed; /* how many did */
    uint32_t memory_failed;
};
extern struct world_faults world_faults;

/* Before the fork: what each world needs and none changes, the compiled contracts and routes. Worlds do without. */
bool world_prepare(char *ret_why, size_t why_size);
/* Before the fork, too: what depends on the command line alone, settings and the tree's declaration, for all worlds that are opened with
 * the same folders, schedulers and arguments. The one before is forgotten. */
bool world_configure(const struct world_options *options, char *ret_why, size_t why_size);
/* NULL: as boot would have refused it; why. *ret_status: of the process. */
struct world *world_open(const struct world_options *options, char *ret_why, size_t why_size);
struct sim *world_sim(struct world *w);
struct store *world_store(struct world *w);
/* One step of anybody who can run now. False: nobody can. */
bool world_step(struct world *w);
/* Nobody can run: the clock goes to the next timer, and to `until` at most. */
void world_wait(struct world *w, uint64_t until);
/* -1 while the process lives. */
int world_exit_status(const struct world *w);
uint64_t world_now(const struct world *w);

/* A client's connection; -1: nobody listens, or the queue is full. Non-blocking. */
int world_connect(struct world *w);
/* As the system has them: for those outside, who do nothing with a connection but by these. */
ssize_t world_real_send(int fd, const void *bytes, size_t size, int flags);
ssize_t world_receive(int fd, void *room, size_t size);
void world_hang_up(int fd);

/* One actor of those that live, other than the root, is killed; its class. NULL: there was none. Takes effect when the world runs. */
#define WORLD_CLASS_MAX 40u
void world_kill_one(struct world *w, uint64_t draw);
/* The same for one that gets messages that nobody knows, until its mailbox takes no more. */
void world_flood_one(struct world *w, uint64_t draw);
/* How many were refused since the last call; 0: it took all that was sent. */
uint32_t world_flooded(struct world *w);
/* Who was killed since the last call; false: nobody. */
struct world_strike {
    char class[WORLD_CLASS_MAX];
    bool newborn;  /* in the instant of its birth */
    bool together; /* in the same instant as the one before */
    bool busy;     /* with messages before it */
};
bool world_struck(struct world *w, struct world_strike *ret);

/* At rest: every place is taken, whoever was killed is dead, and no group keeps one of the dead. For world_finding. */
void world_rest(struct world *w);
/* What is wrong with the tree, or with who is registered in it; "": nothing. To be asked after each step. */
const char *world_finding(struct world *w);
struct warden *world_warden(struct world *w);

/* Where requests leave: called in an actor, its own memory is its own afterwards. */
typedef void world_depart(uint64_t ref, actor_pid from, const struct fetch_request *request);
void world_on_fetch(world_depart *depart);
/* The answer of one that left; body: at most FETCH_BODY_MAX bytes. */
void world_fetched(struct world *w, actor_pid to, const struct fetch_answer *answer);

/* The last lines of its log, oldest first, one at a time by number from 0; NULL: no more. */
const char *world_log(const struct world *w, uint32_t number);

#endif
