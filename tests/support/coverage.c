/* Of a coverage build alone: what a process has counted is kept when it ends by _exit, as those do in which files are looked at that may be
 * damaged (store/guest.c). Not at a fault's end (runtime/fault.c), where nothing may be written any more. */
#include <sysexits.h>

void __gcov_dump(void);
_Noreturn void __real__exit(int status);
_Noreturn void __wrap__exit(int status);

_Noreturn void __wrap__exit(int status)
{
    if (status != EX_SOFTWARE)
        __gcov_dump();
    __real__exit(status);
}
