/*
 * Probing NBD servers without blocking: one socket per disk on the loop. See probe.h.
 */
#include "backend/storage/probe.h"

#include "base/task.h"
#include "io/crash.h"
#include "io/loop.h"

#include <errno.h>
#include <glib-unix.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define GREETING_BYTES 18 /* NBDMAGIC, IHAVEOPT, two bytes of flags */

/* Client flags (fixed newstyle, no zeroes) and the option ABORT: leaving in form keeps the server's
 * log quiet. */
static const char leave[] = "\0\0\0\3"
                            "IHAVEOPT"
                            "\0\0\0\2"
                            "\0\0\0\0";

struct probe;

struct probe_disk {
    struct probe *probe;
    int fd;
    guint source;
    char greeting[GREETING_BYTES];
    gsize got;
};

struct probe {
    struct promise over;
    guint timer;
    guint pending; /* disks that have not greeted yet */
    bool failed;
    guint count;
    struct probe_disk disks[];
};

static void probe_end(struct probe *probe, bool failed)
{
    probe->failed = probe->failed || failed;
    if (!probe->over.done && (probe->failed || probe->pending == 0))
        promise_complete(&probe->over);
}

static void probe_expired(void *data)
{
    struct probe *probe = data;
    probe->timer = 0;
    probe_end(probe, true);
}

static gboolean probe_readable(gint fd, GIOCondition condition, gpointer data)
{
    struct probe_disk *disk = data;
    ssize_t got = recv(fd, disk->greeting + disk->got, GREETING_BYTES - disk->got, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return G_SOURCE_CONTINUE;
    if (got > 0)
        disk->got += (gsize)got;
    if (got > 0 && disk->got < GREETING_BYTES)
        return G_SOURCE_CONTINUE;
    disk->source = 0;
    disk->probe->pending--;
    bool greeted =
        disk->got == GREETING_BYTES && memcmp(disk->greeting, "NBDMAGICIHAVEOPT", 16) == 0;
    if (greeted)
        (void)!send(fd, leave, sizeof leave - 1, MSG_NOSIGNAL);
    probe_end(disk->probe, !greeted);
    return G_SOURCE_REMOVE;
}

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

static void probe_start(struct probe *probe, const struct export_target *target)
{
    for (guint i = 0; i < probe->count; i++) {
        struct probe_disk *disk = &probe->disks[i];
        const struct export_disk *where = target->disks->pdata[i];
        disk->probe = probe;
        disk->fd = probe_connect(target->address, where->port);
        if (disk->fd >= 0)
            disk->source =
                g_unix_fd_add(disk->fd, G_IO_IN | G_IO_HUP | G_IO_ERR, probe_readable, disk);
        else
            probe->failed = true;
    }
    probe_end(probe, false);
}

static void probe_free(struct probe *probe)
{
    loop_timer_cancel(probe->timer);
    for (guint i = 0; i < probe->count; i++) {
        if (probe->disks[i].source != 0)
            g_source_remove(probe->disks[i].source);
        if (probe->disks[i].fd >= 0)
            close(probe->disks[i].fd);
    }
    g_free(probe);
}

bool nbd_probe(const struct export_target *target, guint timeout_ms)
{
    guint count = target->disks->len;
    struct probe *probe = g_malloc0(sizeof *probe + count * sizeof probe->disks[0]);
    probe->count = probe->pending = count;
    probe->timer = loop_timer(timeout_ms, probe_expired, probe);
    probe_start(probe, target);
    bool answered = promise_wait(&probe->over) && !probe->failed;
    probe_free(probe);
    return answered;
}
