/* Receiver: where webhooks arrive, outside the server, and what it remembers of them.
 *
 * A request that leaves the server comes here (chaos/world.h), and is answered some time later, or never. Every attempt is judged: a
 * repeat has the same id and the same bytes; of one job and one webhook the first attempts come in the order of the events. What a crash
 * loses is the answer, never the knowledge that it arrived.
 */
#ifndef COPPICE_CHAOS_RECEIVER_H
#define COPPICE_CHAOS_RECEIVER_H

#include "actors/fetch.h"
#include "chaos/dice.h"
#include "store/uuid.h"

struct world;

#define RECEIVER_FLIGHTS  128u
#define RECEIVER_ARRIVALS 1536u

struct receiver {
    struct dice dice;
    uint32_t flights_count, arrivals_count;
    struct arriving {
        actor_pid from;
        struct fetch_answer answer;
        uint64_t at; /* when it is answered */
        uint32_t arrival;
    } flights[RECEIVER_FLIGHTS];
    struct arrival {
        char id[UUID_TEXT_SIZE], job[UUID_TEXT_SIZE];
        uint64_t hash;
        uint32_t attempts, life; /* life: of its first attempt */
        uint8_t hook;            /* whose: the number of the patron */
        uint8_t state;           /* of which the event tells: enum job_state */
        bool taken;              /* it was answered 2xx */
    } arrivals[RECEIVER_ARRIVALS];
};

void receiver_begin(struct receiver *r, uint64_t seed);
/* Answers what is due. False: nothing was. */
bool receiver_step(struct receiver *r, struct world *w);
uint64_t receiver_next(const struct receiver *r);
/* The server has gone: nobody hears the answers. */
void receiver_cut_off(struct receiver *r);
/* Whether whoever has ordered the job was told of this state of it, be it in vain; true also where there was no room to remember. */
bool receiver_was_told(const struct receiver *r, const char *job, uint8_t hook, uint8_t state);
/* To be world_on_fetch's. */
void receiver_take(uint64_t ref, actor_pid from, const struct fetch_request *request);

#endif
