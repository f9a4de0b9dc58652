/*
 * Loaded before the C library of a process under test (LD_PRELOAD): each fdatasync() that has
 * succeeded adds a byte to the file $SYNC_COUNT.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int fdatasync(int fd)
{
    const char *path = getenv("SYNC_COUNT");
    long done = syscall(SYS_fdatasync, fd);
    if (done != 0 || path == NULL)
        return (int)done;
    int count = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (count >= 0) {
        (void)!write(count, "s", 1);
        close(count);
    }
    return 0;
}
