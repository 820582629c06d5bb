/* The runtime ends a process that it doesn't trust any more by _exit. In a fuzzer that becomes an abort, which libFuzzer sees:
 * it then keeps the input and prints the stack. */
#include <stdlib.h>

_Noreturn void __wrap__exit(int status);

_Noreturn void __wrap__exit(int status)
{
    (void)status;
    abort();
}
