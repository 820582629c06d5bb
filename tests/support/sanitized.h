/* Was this built with a sanitizer? Then every load costs several times as much, so that tests do the same on a smaller scale,
 * and nobody is switched out for computing too long (see runtime_run).
 */
#ifndef COPPICE_TESTS_SUPPORT_SANITIZED_H
#define COPPICE_TESTS_SUPPORT_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#endif
