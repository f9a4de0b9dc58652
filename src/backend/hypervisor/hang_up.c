/*
 * See hang_up.h.
 */
#include "backend/hypervisor/hang_up.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool is_peer(int fd, const char *uri)
{
    struct sockaddr_storage peer = {0};
    socklen_t len = sizeof peer;
    char host[NI_MAXHOST], port[NI_MAXSERV];
    if (getpeername(fd, (struct sockaddr *)&peer, &len) != 0 ||
        (peer.ss_family != AF_INET && peer.ss_family != AF_INET6) ||
        getnameinfo((struct sockaddr *)&peer, len, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return false;
    g_autofree char *name =
        g_strdup_printf(peer.ss_family == AF_INET6 ? "tcp:[%s]:%s" : "tcp:%s:%s", host, port);
    return strcmp(name, uri) == 0;
}

/* A connection that is being made does not tell its peer. A mirror's attempt to connect again is
 * hit too; it makes the next one. */
static bool is_connecting(int fd)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof info;
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
           info.tcpi_state == TCP_SYN_SENT;
}

/* Our copy of the descriptor is the same connection. */
static void shut_if_peer(int pidfd, int number, const char *uri)
{
    int fd = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);
    if (fd < 0)
        return;
    if (is_peer(fd, uri) || is_connecting(fd))
        shutdown(fd, SHUT_RDWR);
    close(fd);
}

void hang_up(const struct guest *guest, const char *uri)
{
    if (guest->process == NULL || process_ended(guest->process))
        return;
    g_autofree char *folder =
        g_strdup_printf("/proc/%" G_GUINT64_FORMAT "/fd", process_pid(guest->process));
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)process_pid(guest->process), 0);
    const char *name;
    while (dir != NULL && pidfd >= 0 && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        g_autofree char *what = g_file_read_link(path, NULL);
        if (what != NULL && g_str_has_prefix(what, "socket:"))
            shut_if_peer(pidfd, (int)g_ascii_strtoll(name, NULL, 10), uri);
    }
    if (pidfd >= 0)
        close(pidfd);
}
