/* See unix_socket.h. */
#include "io/net/unix_socket.h"
#include "io/crash.h"

#include <errno.h>
#include <glib-unix.h>
#include <glib/gstdio.h>
#include <pwd.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 1024
#define ACCEPTS_PER_TURN 64

struct unix_listener {
    char *path;
    int fd;
    guint source;
    const struct unix_listener_events *events;
    void *data;
};

static bool address_of(const char *path, struct sockaddr_un *ret_address, GError **error)
{
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (g_strlcpy(ret_address->sun_path, path, sizeof ret_address->sun_path) <
        sizeof ret_address->sun_path)
        return true;
    fettle_set_error(error, WRONG_INPUT, "socket %s: the name is longer than %zu characters", path,
                     sizeof ret_address->sun_path - 1);
    return false;
}

static int connect_to(const char *path, int *ret_errno, GError **error)
{
    struct sockaddr_un address;

    *ret_errno = 0;
    if (!address_of(path, &address, error))
        return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    crash_point("socket: connect");
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    int code = *ret_errno = errno;
    if (fd >= 0)
        close(fd);
    fettle_set_error(error, UNREACHABLE, "cannot connect to %s: %s", path,
                     code == ENOENT || code == ECONNREFUSED ? "nobody listens there"
                                                            : g_strerror(code));
    return -1;
}

int unix_connect(const char *path, GError **error)
{
    int code;
    return connect_to(path, &code, error);
}

/* --- who is there --- */

/* The uid with which the process logged in; kept by the kernel where login programs tell it. */
static bool login_uid(pid_t pid, uid_t *ret_uid)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/loginuid", pid);
    g_autofree char *text = NULL;
    guint64 uid;

    if (!g_file_get_contents(path, &text, NULL, NULL) ||
        !g_ascii_string_to_unsigned(g_strstrip(text), 10, 0, G_MAXUINT32 - 1, &uid, NULL))
        return false;
    *ret_uid = (uid_t)uid;
    return true;
}

static char *account_name(uid_t uid)
{
    FILE *file = fopen("/etc/passwd", "re");
    const struct passwd *entry = NULL;
    char *name = NULL;

    while (file != NULL && name == NULL && (entry = fgetpwent(file)) != NULL)
        if (entry->pw_uid == uid)
            name = g_strdup(entry->pw_name);
    if (file != NULL)
        fclose(file);
    return name != NULL ? name : g_strdup_printf("#%u", uid);
}

char *unix_peer_user(int fd)
{
    struct ucred peer = {0};
    socklen_t len = sizeof peer;
    uid_t uid;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0)
        return NULL;
    return account_name(login_uid(peer.pid, &uid) ? uid : peer.uid);
}

/* --- listening --- */

static void complain(const struct unix_listener *listener, const char *format, ...)
    G_GNUC_PRINTF(2, 3);

static void complain(const struct unix_listener *listener, const char *format, ...)
{
    va_list args;

    if (listener->events->complain == NULL)
        return;
    va_start(args, format);
    g_autofree char *line = g_strdup_vprintf(format, args);
    va_end(args);
    listener->events->complain(line, listener->data);
}

uid_t unix_peer_uid(int fd)
{
    struct ucred peer = {0};
    socklen_t len = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 ? peer.uid : G_MAXUINT32;
}

static bool may_come(const struct unix_listener *listener, int fd)
{
    const struct unix_listener_events *events = listener->events;
    struct ucred peer = {0};
    socklen_t len = sizeof peer;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
        (peer.uid == 0 || peer.uid == geteuid() ||
         (events->may_come && events->may_come(peer.uid, listener->data))))
        return true;
    complain(listener, "%s: user %u, process %d refused: only root and the daemons' user may come",
             listener->path, peer.uid, peer.pid);
    return false;
}

static gboolean accept_cb(gint listening, GIOCondition condition, gpointer data)
{
    struct unix_listener *listener = data;

    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
                complain(listener, "%s: accept: %s", listener->path, g_strerror(errno));
            break;
        }
        if (may_come(listener, fd))
            listener->events->accepted(fd, listener->data);
        else
            close(fd);
    }
    return G_SOURCE_CONTINUE;
}

/* Removes a socket that nobody listens on. */
static bool clear_place(const char *path, GError **error)
{
    struct stat info;

    if (lstat(path, &info) != 0)
        return true;
    if (!S_ISSOCK(info.st_mode)) {
        fettle_set_error(error, STORAGE, "%s exists and is no socket; remove it", path);
        return false;
    }
    int code, fd = connect_to(path, &code, NULL);
    if (code == ECONNREFUSED || code == ENOENT) {
        g_unlink(path);
        return true;
    }
    if (fd >= 0)
        close(fd);
    if (fd >= 0 || code == EAGAIN) /* or so many wait there that no more may */
        fettle_set_error(error, WRONG_STATE, "another process listens on %s", path);
    else
        fettle_set_error(error, STORAGE, "whether somebody listens on %s is not to be told: %s",
                         path, g_strerror(code));
    return false;
}

struct unix_listener *unix_listener_new(const char *path, const struct unix_listener_events *events,
                                        void *data, GError **error)
{
    struct sockaddr_un address;

    if (!address_of(path, &address, error) || !clear_place(path, error))
        return NULL;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    crash_point("socket: bind");
    /* The mode of the descriptor becomes that of the name. */
    if (fd < 0 || fchmod(fd, 0600) != 0 ||
        bind(fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(fd, BACKLOG) != 0) {
        fettle_set_error(error, STORAGE, "cannot listen on %s: %s", path, g_strerror(errno));
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    struct unix_listener *listener = g_new0(struct unix_listener, 1);
    listener->path = g_strdup(path);
    listener->fd = fd;
    listener->events = events;
    listener->data = data;
    listener->source = g_unix_fd_add(fd, G_IO_IN, accept_cb, listener);
    return listener;
}

void unix_listener_free(struct unix_listener *listener)
{
    if (listener == NULL)
        return;
    g_source_remove(listener->source);
    close(listener->fd);
    g_unlink(listener->path);
    g_free(listener->path);
    g_free(listener);
}
