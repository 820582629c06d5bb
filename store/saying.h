/* A saying: where the sentence goes that says why something was refused.
 *
 * Belongs to the caller, who gives room for it; what doesn't fit is cut off.
 */
#ifndef COPPICE_STORE_SAYING_H
#define COPPICE_STORE_SAYING_H

#include <stddef.h>

#include "runtime/error.h"

struct saying {
    char *text;
    size_t size;
};

/* The error that was given. */
__attribute__((format(printf, 3, 4))) enum error saying_refuse(struct saying *s, enum error e,
                                                               const char *format, ...);
/* By errno: `path` can't be `what` ("opened"). */
enum error saying_refuse_system(struct saying *s, const char *path, const char *what);

#endif
