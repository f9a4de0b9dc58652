/* See udp.h. */
#include "io/net/udp.h"
#include "base/error.h"
#include "base/limits.h"

#include <arpa/inet.h>
#include <errno.h>
#include <glib-unix.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct udp_server {
    int fd;
    guint watch;
    guint port;
    size_t max_bytes;
    char *buffer;
    char *(*answer)(const char *from, const char *data, size_t len, size_t *ret_len, void *user);
    void *user;
};

union place {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
};

static bool place_of(const char *address, guint port, union place *ret_place, socklen_t *ret_len,
                     GError **error)
{
    union place place = {0};
    if (inet_pton(AF_INET, address, &place.four.sin_addr) == 1) {
        place.four.sin_family = AF_INET;
        place.four.sin_port = htons((guint16)port);
        *ret_len = sizeof place.four;
    } else if (inet_pton(AF_INET6, address, &place.six.sin6_addr) == 1) {
        place.six.sin6_family = AF_INET6;
        place.six.sin6_port = htons((guint16)port);
        *ret_len = sizeof place.six;
    } else {
        fettle_set_error(error, WRONG_INPUT, "\"%s\" is no IP address", address);
        return false;
    }
    *ret_place = place;
    return true;
}

static int open_socket(const union place *place)
{
    return socket(place->any.sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* --- answering --- */

static void answer_one(struct udp_server *server, size_t len, const union place *peer,
                       socklen_t peer_len)
{
    size_t reply_len = 0;
    char from[INET6_ADDRSTRLEN] = "";
    bool six = peer->any.sa_family == AF_INET6;
    inet_ntop(peer->any.sa_family,
              six ? (const void *)&peer->six.sin6_addr : (const void *)&peer->four.sin_addr, from,
              sizeof from);
    g_autofree char *reply = server->answer(from, server->buffer, len, &reply_len, server->user);
    /* What does not get away is lost, as a datagram may be. */
    if (reply)
        (void)!sendto(server->fd, reply, reply_len, MSG_NOSIGNAL, &peer->any, peer_len);
}

static gboolean readable_cb(gint fd, GIOCondition condition, gpointer data)
{
    struct udp_server *server = data;
    for (guint i = 0; i < LIMIT_CONFD_BATCH; i++) {
        union place peer;
        socklen_t peer_len = sizeof peer;
        ssize_t len =
            recvfrom(fd, server->buffer, server->max_bytes, MSG_TRUNC, &peer.any, &peer_len);
        if (len >= 0)
            answer_one(server, (size_t)len, &peer, peer_len);
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            break;
    }
    return G_SOURCE_CONTINUE;
}

static guint port_of(int fd)
{
    union place own;
    socklen_t len = sizeof own;
    if (getsockname(fd, &own.any, &len) != 0)
        return 0;
    return ntohs(own.any.sa_family == AF_INET ? own.four.sin_port : own.six.sin6_port);
}

struct udp_server *udp_server_new(const struct udp_options *options, GError **error)
{
    union place place;
    socklen_t len;
    const int yes = 1;
    if (!place_of(options->address, options->port, &place, &len, error))
        return NULL;
    int fd = open_socket(&place);
    bool six = place.any.sa_family == AF_INET6;
    /* The address may come later than the daemon: at boot, or with another interface. */
    if (fd < 0 ||
        setsockopt(fd, six ? IPPROTO_IPV6 : IPPROTO_IP, six ? IPV6_FREEBIND : IP_FREEBIND, &yes,
                   sizeof yes) != 0 ||
        bind(fd, &place.any, len) != 0) {
        fettle_set_error(error, ENVIRONMENT, "cannot take datagrams at %s port %u: %s",
                         options->address, options->port, g_strerror(errno));
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    struct udp_server *server = g_new0(struct udp_server, 1);
    server->fd = fd;
    server->port = port_of(fd);
    server->max_bytes = options->max_bytes;
    server->buffer = g_malloc(options->max_bytes);
    server->answer = options->answer;
    server->user = options->user;
    server->watch = g_unix_fd_add(fd, G_IO_IN, readable_cb, server);
    return server;
}

void udp_server_free(struct udp_server *server)
{
    if (!server)
        return;
    g_source_remove(server->watch);
    close(server->fd);
    g_free(server->buffer);
    g_free(server);
}

guint udp_server_port(const struct udp_server *server)
{
    return server->port;
}

/* --- asking --- */

/* Of another family than the peer it is of no use, and the host chooses. */
static bool bind_from(int fd, const char *from, const union place *peer)
{
    union place own;
    socklen_t len;
    if (!place_of(from, 0, &own, &len, NULL) || own.any.sa_family != peer->any.sa_family)
        return true;
    return bind(fd, &own.any, len) == 0;
}

int udp_dial_from(const char *from, const char *address, guint port, GError **error)
{
    union place place;
    socklen_t len;
    if (!place_of(address, port, &place, &len, error))
        return -1;
    int fd = open_socket(&place);
    if (fd >= 0 && (!from || bind_from(fd, from, &place)) && connect(fd, &place.any, len) == 0)
        return fd;
    fettle_set_error(error, UNREACHABLE, "%s port %u: %s", address, port, g_strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

int udp_dial(const char *address, guint port, GError **error)
{
    return udp_dial_from(NULL, address, port, error);
}
