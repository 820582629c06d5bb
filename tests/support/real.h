/* Runs a test's function inside an actor of a real runtime: threads, descriptors and the machine's clock. */
#ifndef COPPICE_TESTS_SUPPORT_REAL_H
#define COPPICE_TESTS_SUPPORT_REAL_H

#include <stdbool.h>

#include "runtime/runtime.h"

/* As TEST_CHECK, for any thread and any actor: what failed is reported when the runtime has ended. */
#define EXPECT(c) ((c) ? (void)0 : real_failed(#c, __FILE__, __LINE__))
void real_failed(const char *what, const char *file, int line);

/* What failed while body ran, or that it didn't come to its end; "" when all is well. The actor is on scheduler 0, traps
 * exits, and may hold its thread up. */
const char *real_run(uint32_t schedulers, void (*body)(void));
/* How often the runtime's log has this text. */
size_t real_logged(const char *text);

/* REAL(test_name) { ... }: a test whose body runs so, with two schedulers. For files that include acutest.h. */
#define REAL(name)                                     \
    static void name##_body(void);                     \
    static void name(void)                             \
    {                                                  \
        const char *failed = real_run(2, name##_body); \
        TEST_CHECK_(!*failed, "%s", failed);           \
    }                                                  \
    static void name##_body(void)

#endif
