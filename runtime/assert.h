/* Assertions that stay on in production.
 *
 * ASSERT(c) states what must be true. In actor code a failed one ends that actor (reason crash, SIGABRT, with file and
 * line); in the runtime itself, in a guarded section or outside any actor it ends the process with one JSON line.
 * Input from outside never reaches an assertion: it is refused with an error.
 */
#ifndef COPPICE_RUNTIME_ASSERT_H
#define COPPICE_RUNTIME_ASSERT_H

#define ASSERT(c)             (__builtin_expect(!!(c), 1) ? (void)0 : assert_failed(#c, __FILE__, __LINE__, __func__))
#define STATIC_ASSERT(c, why) _Static_assert(c, why)

/* Never returns to its caller. Async-signal-safe up to the point where it decides who ends. */
_Noreturn void assert_failed(const char *expression, const char *file, int line, const char *function);

#endif
