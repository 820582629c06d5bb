/* Runs a test's function inside an actor of a simulated node, where it may spawn, call, sleep and be linked
 * as any actor. Time is the virtual clock and moves only when nobody can run, so inside_settle is a barrier
 * behind all that goes on. */
#ifndef COPPICE_TESTS_SUPPORT_INSIDE_H
#define COPPICE_TESTS_SUPPORT_INSIDE_H

#include <stdbool.h>

#include "runtime/actor.h"

#define INSIDE_SEEDS 5 /* the body runs once under each */

/* True when body came to its end each time: nothing in it crashed, was killed or waits for ever. */
bool inside(void (*body)(void));
void inside_settle(void);

/* INSIDE(test_name) { ... }: a test whose body runs so. For files that include acutest.h. */
#define INSIDE(name)                     \
    static void name##_body(void);       \
    static void name(void)               \
    {                                    \
        TEST_CHECK(inside(name##_body)); \
    }                                    \
    static void name##_body(void)

#endif
