/* See starter.h. */
#include "io/starter.h"
#include "io/crash.h"
#include "io/loop.h"

#include <errno.h>
#include <glib-unix.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct starter {
    struct starter_events events;
    void *data;
    int fd; /* our end of the channel */
    guint fd_source;
    char line[STARTER_LINE_BYTES + 1];
    size_t line_len;
    bool named;
    bool confirmed;
};

/* --- the channel --- */

static void broken_cb(void *data)
{
    struct starter *starter = data;

    starter->events.broken(starter, starter->confirmed, starter->data);
    g_free(starter);
}

static void break_channel(struct starter *starter)
{
    if (starter->fd < 0)
        return;
    g_clear_handle_id(&starter->fd_source, g_source_remove);
    close(starter->fd);
    starter->fd = -1;
    loop_post(broken_cb, starter);
}

/* "NAME PID START_TICKS"; false if it is anything else. */
static bool take_line(struct starter *starter)
{
    g_auto(GStrv) words = g_strsplit(starter->line, " ", 4);
    guint64 pid, ticks;

    if (g_strv_length(words) != 3 || words[0][0] == '\0' ||
        !g_ascii_string_to_unsigned(words[1], 10, 1, G_MAXINT32, &pid, NULL) ||
        !g_ascii_string_to_unsigned(words[2], 10, 0, G_MAXUINT64, &ticks, NULL))
        return false;
    starter->named = true;
    starter->events.named(starter, words[0], pid, ticks, starter->data);
    return true;
}

static gboolean channel_cb(gint fd, GIOCondition condition, gpointer data)
{
    struct starter *starter = data;
    ssize_t got =
        read(fd, starter->line + starter->line_len, STARTER_LINE_BYTES - starter->line_len);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return G_SOURCE_CONTINUE;
    if (got <= 0 || starter->named) {
        /* The end; or more than one line, which is no starter of ours; or a line that is too long.
         */
        break_channel(starter);
        return G_SOURCE_CONTINUE;
    }
    starter->line_len += (size_t)got;
    starter->line[starter->line_len] = '\0';
    char *end = strchr(starter->line, '\n');
    if (end == NULL)
        return G_SOURCE_CONTINUE;
    *end = '\0';
    if (!take_line(starter))
        break_channel(starter);
    return G_SOURCE_CONTINUE;
}

bool starter_confirm(struct starter *starter)
{
    const char confirmation = STARTER_CONFIRMATION;

    if (starter->fd < 0)
        return false;
    /* It counts as sent before it is: a break from now on says nothing about whether it arrived
     * (LUX-24, 25). */
    starter->confirmed = true;
    crash_point("starter: confirm");
    if (send(starter->fd, &confirmation, 1, MSG_NOSIGNAL) == 1)
        return true;
    starter->confirmed = false;
    break_channel(starter);
    return false;
}

void starter_drop(struct starter *starter)
{
    break_channel(starter);
}

/* --- spawning --- */

char *starter_bin_folder(const char *option)
{
    const char *variable = g_getenv("FETTLE_BINDIR");

    if (option != NULL)
        return g_strdup(option);
    if (variable != NULL && variable[0] != '\0')
        return g_strdup(variable);
    g_autofree char *program = g_file_read_link("/proc/self/exe", NULL);
    return program != NULL ? g_path_get_dirname(program) : g_strdup("/usr/bin");
}

struct starter *starter_spawn(struct nursery *nursery, guint64 job,
                              const struct starter_events *events, void *data, GError **error)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        fettle_set_error(error, ENVIRONMENT, "cannot make a channel: %s", g_strerror(errno));
        return NULL;
    }
    crash_point("starter: spawn");
    bool asked = nursery_ask(nursery, job, ends[1], error);
    close(ends[1]);
    if (!asked) {
        close(ends[0]);
        return NULL;
    }
    struct starter *starter = g_new0(struct starter, 1);
    starter->events = *events;
    starter->data = data;
    starter->fd = ends[0];
    g_unix_set_fd_nonblocking(starter->fd, TRUE, NULL);
    starter->fd_source = g_unix_fd_add(starter->fd, G_IO_IN, channel_cb, starter);
    return starter;
}
