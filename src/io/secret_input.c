/* See secret_input.h. */
#include "io/secret_input.h"

#include <errno.h>
#include <glib.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

static struct termios shown;

static void interrupted(int number)
{
    tcsetattr(STDIN_FILENO, TCSANOW, &shown);
    signal(number, SIG_DFL);
    raise(number);
}

static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

static void hide_typing(const char *prompt)
{
    struct termios hidden = shown;
    for (guint i = 0; i < G_N_ELEMENTS(ends); i++)
        signal(ends[i], interrupted);
    hidden.c_lflag &= ~(tcflag_t)ECHO;
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
    fputs(prompt, stderr);
}

static void show_typing(void)
{
    tcsetattr(STDIN_FILENO, TCSANOW, &shown);
    for (guint i = 0; i < G_N_ELEMENTS(ends); i++)
        signal(ends[i], SIG_DFL);
    fputs("\n", stderr);
}

/* Bytes, of a line or of all there is; at most one more than `limit`. */
static size_t read_input(char *into, size_t limit, bool line)
{
    size_t len = 0;
    while (len <= limit) {
        ssize_t got = read(STDIN_FILENO, into + len, limit + 1 - len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        len += (size_t)got;
        if (line && memchr(into, '\n', len))
            break;
    }
    return len;
}

bool secret_input_is_typed(void)
{
    return isatty(STDIN_FILENO);
}

char *secret_input_read(const char *prompt, size_t limit, const char *what, GError **error)
{
    g_autofree char *text = g_malloc0(limit + 2);
    bool typed = secret_input_is_typed() && tcgetattr(STDIN_FILENO, &shown) == 0;
    if (typed)
        hide_typing(prompt);
    size_t len = read_input(text, limit, typed);
    if (typed)
        show_typing();
    if (len <= limit)
        return g_steal_pointer(&text);
    fettle_set_error(error, WRONG_INPUT, "standard input is too long to be %s", what);
    return NULL;
}
