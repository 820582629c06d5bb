/* Who has a store's table of readers, for tests/api/opening_test.sh, which compiles it: while another process makes that
 * table, LMDB waits for its lock, and so does whoever opens the store.
 *
 *     holder DIR/lock.mdb
 *
 * Prints "held", and has it until standard input ends. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    char byte;
    int fd = argc == 2 ? open(argv[1], O_RDWR) : -1;
    if (fd < 0 || fcntl(fd, F_SETLK, &lock) < 0) {
        perror("holder");
        return 1;
    }
    puts("held");
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    return 0;
}
