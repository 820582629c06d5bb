/* Of a coverage build alone: what a process has counted is kept when it ends by _exit, as those do in which files are looked at that may be
 * damaged (store/guest.c). Not at a fault's end (runtime/fault.c), where nothing may be written any more. */
#include <sysexits.h>

#ifdef __clang__
int __llvm_profile_write_file(void);
#define DUMP() (void)__llvm_profile_write_file()
#else
void __gcov_dump(void);
#define DUMP() __gcov_dump()
#endif
_Noreturn void __real__exit(int status);
_Noreturn void __wrap__exit(int status);

_Noreturn void __wrap__exit(int status)
{
    if (status != EX_SOFTWARE)
        DUMP();
    __real__exit(status);
}
