/* A node full of everything that a schedule can order differently: what its trace hashes to is compared between seeds by
 * sim_test.c, and between compilers and levels of optimisation by tests/sim_hash.sh. */
#ifndef COPPICE_TESTS_RUNTIME_SIM_PROGRAM_H
#define COPPICE_TESTS_RUNTIME_SIM_PROGRAM_H

#include "runtime/sim.h"

uint64_t sim_program_hash(uint64_t seed, enum sim_order order, uint32_t schedulers);

#endif
