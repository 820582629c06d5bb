/* A system that has no room for another process, for tests/api/guardian_test.sh, which compiles it and has the program load it
 * (LD_PRELOAD): of a process's own forks the second, and as many behind it as FORKS_FAIL says, fail. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

pid_t fork(void)
{
    static long forks;
    const char *fail = getenv("FORKS_FAIL");
    pid_t (*real)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");
    long n = forks++;
    if (n > 0 && fail && n <= atol(fail)) {
        errno = EAGAIN;
        return -1;
    }
    return real();
}
