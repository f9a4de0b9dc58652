/*
 * Waiting for servers that speak first, without blocking: each socket on the loop. See
 * nbd_greeting.h.
 */
#include "backend/storage/nbd_greeting.h"

#include "base/limits.h"
#include "base/task.h"
#include "io/loop.h"

#include <errno.h>
#include <glib-unix.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct wait;

struct wait_socket {
    struct wait *wait;
    int fd;
    guint source;
    char said[LIMIT_GREETING_BYTES];
    gsize got;
};

struct wait {
    const struct greeting *greeting;
    struct promise over;
    guint timer;
    guint pending; /* sockets that have not greeted yet */
    bool failed;
    guint count;
    struct wait_socket sockets[];
};

static void wait_end(struct wait *wait, bool failed)
{
    wait->failed = wait->failed || failed;
    if (!wait->over.done && (wait->failed || wait->pending == 0))
        promise_complete(&wait->over);
}

static void wait_expired(void *data)
{
    struct wait *wait = data;
    wait->timer = 0;
    wait_end(wait, true);
}

static gboolean wait_readable(gint fd, GIOCondition condition, gpointer data)
{
    struct wait_socket *one = data;
    const struct greeting *greeting = one->wait->greeting;
    ssize_t got = recv(fd, one->said + one->got, greeting->bytes - one->got, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return G_SOURCE_CONTINUE;
    if (got > 0)
        one->got += (gsize)got;
    if (got > 0 && one->got < greeting->bytes)
        return G_SOURCE_CONTINUE;
    one->source = 0;
    one->wait->pending--;
    bool greeted = one->got == greeting->bytes &&
                   memcmp(one->said, greeting->begins, strlen(greeting->begins)) == 0;
    if (greeted && greeting->leave != NULL)
        (void)!send(fd, greeting->leave, greeting->leave_bytes, MSG_NOSIGNAL);
    wait_end(one->wait, !greeted);
    return G_SOURCE_REMOVE;
}

static void wait_free(struct wait *wait)
{
    loop_timer_cancel(wait->timer);
    for (guint i = 0; i < wait->count; i++) {
        if (wait->sockets[i].source != 0)
            g_source_remove(wait->sockets[i].source);
        if (wait->sockets[i].fd >= 0)
            close(wait->sockets[i].fd);
    }
    g_free(wait);
}

bool nbd_greeting_await(const struct greeting *greeting, const int *fds, guint count,
                        guint timeout_ms)
{
    struct wait *wait = g_malloc0(sizeof *wait + count * sizeof wait->sockets[0]);
    g_assert(greeting->bytes <= LIMIT_GREETING_BYTES);
    wait->greeting = greeting;
    wait->count = wait->pending = count;
    wait->timer = loop_timer(timeout_ms, wait_expired, wait);
    for (guint i = 0; i < count; i++) {
        struct wait_socket *one = &wait->sockets[i];
        one->wait = wait;
        one->fd = fds[i];
        if (one->fd >= 0)
            one->source = g_unix_fd_add(one->fd, G_IO_IN | G_IO_HUP | G_IO_ERR, wait_readable, one);
        else
            wait->failed = true;
    }
    wait_end(wait, false);
    bool greeted = promise_wait(&wait->over) && !wait->failed;
    wait_free(wait);
    return greeted;
}
