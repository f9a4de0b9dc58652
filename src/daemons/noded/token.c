/* See token.h. */
#include "daemons/noded/token.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/limits.h"
#include "proto/invitation.h"

#define INPUT_BYTES (2 * LIMIT_TOKEN_CHARS) /* with the white space that a terminal has put in */

char **token_hide(int argc, char **argv)
{
    GStrv words = g_new0(char *, (gsize)argc + 1);
    bool begun = false;
    for (int i = 0; i < argc; i++) {
        words[i] = g_strdup(argv[i]);
        begun = begun || g_str_has_prefix(argv[i], INVITATION_MARK);
        if (begun)
            memset(argv[i], '*', strlen(argv[i]));
    }
    return words;
}

/* --- a terminal that does not show what is typed --- */

static struct termios shown;

static void interrupted(int number)
{
    tcsetattr(STDIN_FILENO, TCSANOW, &shown);
    signal(number, SIG_DFL);
    raise(number);
}

static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

static void hide_typing(void)
{
    struct termios hidden = shown;
    for (guint i = 0; i < G_N_ELEMENTS(ends); i++)
        signal(ends[i], interrupted);
    hidden.c_lflag &= ~(tcflag_t)ECHO;
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
    fprintf(stderr, "Token (it is not shown): ");
}

static void show_typing(void)
{
    tcsetattr(STDIN_FILENO, TCSANOW, &shown);
    for (guint i = 0; i < G_N_ELEMENTS(ends); i++)
        signal(ends[i], SIG_DFL);
    fprintf(stderr, "\n");
}

/* --- reading --- */

/* Bytes, of a line or of all there is; at most one more than INPUT_BYTES. */
static size_t read_input(char *into, bool line)
{
    size_t len = 0;
    while (len <= INPUT_BYTES) {
        ssize_t got = read(STDIN_FILENO, into + len, INPUT_BYTES + 1 - len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        len += (size_t)got;
        if (line && memchr(into, '\n', len) != NULL)
            break;
    }
    return len;
}

char *token_read(GError **error)
{
    char text[INPUT_BYTES + 2] = "";
    bool terminal = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &shown) == 0;
    if (terminal)
        hide_typing();
    size_t len = read_input(text, terminal);
    if (terminal)
        show_typing();
    if (len > INPUT_BYTES)
        fettle_set_error(error, WRONG_INPUT, "standard input is too long to be a token");
    else if (*g_strstrip(text) == '\0')
        fettle_set_error(error, WRONG_INPUT,
                         "the token is missing: it is read from standard input; see fettle-noded "
                         "join --help");
    else
        return g_strdup(text);
    return NULL;
}
