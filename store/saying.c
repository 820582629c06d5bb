#include "store/saying.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "store/directory.h"

enum error saying_refuse(struct saying *s, enum error e, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(s->text, s->size, format, list);
    va_end(list);
    return e;
}

enum error saying_refuse_system(struct saying *s, const char *path, const char *what)
{
    return directory_refuse(errno, path, what, s->text, s->size);
}
