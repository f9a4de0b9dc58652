/* See output.h. */
#include "io/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"

static const char *program_name;
static int failure; /* of the first write that failed; nothing is written after it */

/* --- writing --- */

/* SIGPIPE is held back and taken away again: it must not end what is being done. */
static ssize_t write_unkilled(const void *data, size_t len)
{
    sigset_t broken, pending, before;
    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    sigpending(&pending);
    sigprocmask(SIG_BLOCK, &broken, &before);
    ssize_t done = write(STDOUT_FILENO, data, len);
    int code = errno;
    if (done < 0 && code == EPIPE && !sigismember(&pending, SIGPIPE))
        sigtimedwait(&broken, NULL, &(struct timespec){0});
    sigprocmask(SIG_SETMASK, &before, NULL);
    errno = code;
    return done;
}

static bool write_all(const char *data, size_t len)
{
    while (len > 0 && failure == 0) {
        ssize_t done = write_unkilled(data, len);
        if (done < 0 && errno == EAGAIN) {
            struct pollfd room = {.fd = STDOUT_FILENO, .events = POLLOUT};
            poll(&room, 1, -1);
        } else if (done < 0 && errno != EINTR) {
            failure = errno;
        } else if (done > 0) {
            data += done;
            len -= (size_t)done;
        }
    }
    return failure == 0;
}

static ssize_t write_stream(void *cookie, const char *data, size_t len)
{
    return write_all(data, len) ? (ssize_t)len : 0;
}

static bool tell(GError **error)
{
    if (failure == 0)
        return true;
    fettle_set_error(error, OUTPUT, "standard output: %s", g_strerror(failure));
    return false;
}

bool output_flush(GError **error)
{
    fflush(stdout);
    return tell(error);
}

bool output_is_read(GError **error)
{
    struct pollfd reader = {.fd = STDOUT_FILENO};
    if (output_flush(NULL) && poll(&reader, 1, 0) == 1 && (reader.revents & POLLERR) != 0)
        failure = EPIPE;
    return tell(error);
}

bool output_write(const void *data, gsize len, GError **error)
{
    return write_all(data, len) || tell(error);
}

/* --- beginning and end --- */

/* What GLib prints before it ends the program by itself: --help of the daemons. */
static void print_now(const char *text)
{
    g_autoptr(GError) error = NULL;
    fputs(text, stdout);
    if (output_flush(&error))
        return;
    output_end_unread();
    fprintf(stderr, "%s: %s\n", program_name, error->message);
    exit(fettle_error_exit_code(error));
}

/* Each is opened so that its use fails as that of a closed one does. */
static void occupy_closed(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            g_assert(open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) == fd);
}

void output_begin(const char *program)
{
    program_name = program;
    occupy_closed();
    FILE *stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_stream});
    g_assert(stream);
    setvbuf(stream, NULL, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, BUFSIZ);
    stdout = stream;
    g_set_print_handler(print_now);
}

bool output_end(const char *said, GError **error)
{
    if (output_flush(error))
        return true;
    if (said && error) {
        g_autofree char *what = (*error)->message;
        (*error)->message = g_strdup_printf("%s. What is now true: %s", what, said);
    }
    return false;
}

void output_end_unread(void)
{
    struct sigaction action;
    sigset_t broken;
    sigaction(SIGPIPE, NULL, &action);
    if (failure != EPIPE || action.sa_handler != SIG_DFL)
        return;
    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    sigprocmask(SIG_UNBLOCK, &broken, NULL);
    raise(SIGPIPE);
}
