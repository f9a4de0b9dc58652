/*
 * See migration_socket.h.
 */
#include "backend/hypervisor/migration_socket.h"

#include "base/limits.h"
#include "io/crash.h"
#include "io/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DESCRIPTOR "memory"
#define POLL_MS 10

/* A socket that is about to be connected; -1 with errno. */
static int begin(const struct migration *migration)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    g_autofree char *service = g_strdup_printf("%" G_GUINT64_FORMAT, migration->port);
    errno = EADDRNOTAVAIL;
    if (getaddrinfo(migration->address, service, &hints, &found) != 0)
        return -1;
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    crash_point("migrate: connect");
    if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) != 0 && errno != EINPROGRESS) {
        int failure = errno;
        close(fd);
        fd = -1;
        errno = failure;
    }
    freeaddrinfo(found);
    return fd;
}

/* 0 when it stands, EINPROGRESS while it is being made, or why it cannot be. */
static int standing(int fd)
{
    struct pollfd look = {.fd = fd, .events = POLLOUT};
    int failure = 0;
    socklen_t len = sizeof failure;
    if (poll(&look, 1, 0) <= 0)
        return EINPROGRESS;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &len) == 0 ? failure : errno;
}

static int await(const struct guest *guest, int fd)
{
    gint64 deadline = loop_boot_ms() + LIMIT_MIGRATION_CONNECT_MS;
    int failure = standing(fd);
    while (failure == EINPROGRESS && !guest->migration.giving_up) {
        if (loop_boot_ms() >= deadline)
            return ETIMEDOUT;
        if (!loop_sleep(POLL_MS))
            return ECANCELED;
        failure = standing(fd);
    }
    return guest->migration.giving_up ? ECANCELED : failure;
}

bool migration_socket_connect(struct guest *guest, GError **error)
{
    struct migration *migration = &guest->migration;
    int fd = begin(migration);
    int failure = fd < 0 ? errno : await(guest, fd);
    if (failure == 0) {
        migration_socket_let_go(migration);
        migration->socket = fd;
        return true;
    }
    if (fd >= 0)
        close(fd);
    if (failure == ECANCELED)
        fettle_set_error(error, KILLED, "guest %s: its migration is given up", guest->name);
    else
        fettle_set_error(error, UNREACHABLE,
                         "guest %s: the process that waits for its memory on %s, port "
                         "%" G_GUINT64_FORMAT ", cannot be reached: %s",
                         guest->name, migration->address, migration->port, g_strerror(failure));
    return false;
}

/* QEMU lets a socket block that it is handed, and again when the handshake is done. That is a
 * property of the connection, so what is set on our end holds for its own. */
bool migration_socket_begin(struct guest *guest, GError **error)
{
    int fd = guest->migration.socket;
    if (!guest_give_descriptor(guest, "getfd", json_make("{s:s}", "fdname", DESCRIPTOR), fd, error))
        return false;
    if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
        fettle_set_error(error, ENVIRONMENT, "guest %s: the connection for its memory: %s",
                         guest->name, g_strerror(errno));
        return false;
    }
    return guest_command(guest, "migrate", json_make("{s:s}", "uri", "fd:" DESCRIPTOR),
                         LIMIT_QMP_COMMAND_MS, error);
}

void migration_socket_hang_up(const struct guest *guest)
{
    if (guest->migration.socket >= 0)
        shutdown(guest->migration.socket, SHUT_RDWR);
}

/* What is said before QEMU was told to send is of an earlier migration. A cancel keeps what it has.
 */
void migration_socket_note(struct guest *guest, const char *status)
{
    struct migration *migration = &guest->migration;
    if (migration->tasks == 0 && !migration->giving_up && g_strcmp0(status, "setup") != 0)
        migration_socket_let_go(migration);
}

void migration_socket_let_go(struct migration *migration)
{
    if (migration->socket >= 0)
        close(migration->socket);
    migration->socket = -1;
}
