/*
 * Probing NBD servers without blocking. See nbd_probe.h.
 */
#include "backend/storage/nbd_probe.h"

#include "backend/storage/nbd_greeting.h"
#include "base/limits.h"
#include "io/crash.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define GREETING_BYTES 18 /* NBDMAGIC, IHAVEOPT, two bytes of flags */

/* Client flags (fixed newstyle, no zeroes) and the option ABORT: leaving in form keeps the server's
 * log quiet. */
static const char leave[] = "\0\0\0\3"
                            "IHAVEOPT"
                            "\0\0\0\2"
                            "\0\0\0\0";

static int probe_connect(const char *address, guint64 port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    g_autofree char *service = g_strdup_printf("%" G_GUINT64_FORMAT, port);
    if (getaddrinfo(address, service, &hints, &found) != 0)
        return -1;
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    crash_point("probe: connect");
    if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) != 0 && errno != EINPROGRESS) {
        close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    return fd;
}

static const struct greeting nbd = {"NBDMAGICIHAVEOPT", GREETING_BYTES, leave, sizeof leave - 1};

bool nbd_probe_at(const char *path, guint timeout_ms)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    g_strlcpy(address.sun_path, path, sizeof address.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    crash_point("probe: connect");
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        fd = -1;
    }
    return nbd_greeting_await(&nbd, &fd, 1, timeout_ms);
}

bool nbd_probe(const struct export_target *target, guint timeout_ms)
{
    int fds[LIMIT_DISKS];
    g_assert(target->disks->len <= LIMIT_DISKS);
    for (guint i = 0; i < target->disks->len; i++)
        fds[i] = probe_connect(target->address,
                               ((const struct export_disk *)target->disks->pdata[i])->port);
    return nbd_greeting_await(&nbd, fds, target->disks->len, timeout_ms);
}
