/* Seeds that have found something once, shrunk; `make sim` runs them first. docs/reliability.md says what each was. */
#ifndef COPPICE_CHAOS_SIM_SEEDS_H
#define COPPICE_CHAOS_SIM_SEEDS_H

#include "chaos/saga.h"

static const struct sim_seed {
    uint64_t seed;
    enum scenario scenario;
    uint32_t without, steps; /* faults that are off; steps of the safety phase, 0: as drawn */
} sim_seeds[] = {
    /* a claim that waited for longer than http.request.timeout was told 504 instead of no jobs */
    {1, SCENARIO_CALM, 0, 0},
    /* a slot of a client's limit was promised to a job outside for which nobody came, and its other jobs waited for ever */
    {1193, SCENARIO_MIXED,
     1u << FAULT_CUTS | 1u << FAULT_DEATHS | 1u << FAULT_MIDWAY | 1u << FAULT_SYNCS | 1u << FAULT_HANGUPS |
         1u << FAULT_RECEIVERS,
     7050},
    /* a relay that was flooded lost its timer, and a webhook was never sent */
    {17047, SCENARIO_ACTORS, 0, 0},
};

#endif
