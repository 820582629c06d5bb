/* coppice sim: a seed of the simulator, from the command line of the product.
 *
 * The simulator is a program of its own, because it is made of the whole server and of what breaks it; this only finds it, beside the
 * program that runs (coppice-sim, or chaos/sim as a build has it), and becomes it. What it prints and ends with is then its own:
 * 0 nothing was found, 1 something was, 64 a command line that can't be meant. 69: there is none.
 */
#ifndef COPPICE_CONFIG_SIM_COMMAND_H
#define COPPICE_CONFIG_SIM_COMMAND_H

#include "config/options.h"

int command_sim(const struct options *o);

#endif
