#include "runtime/error.h"

const char *error_name(enum error e)
{
    static const char *const names[] = {
#define X(name, text) [name] = text,
        ERRORS(X)
#undef X
    };
    return (unsigned)e < sizeof names / sizeof *names ? names[e] : "unknown_error";
}
