/*
 * `fettle instance console`: a guest's serial line on this terminal (console_line.h). Through a
 * pipe: input is typed, output is copied, and it ends soon after the input has.
 *
 * The terminal is raw meanwhile, so every key is the guest's, Ctrl-C too; it is given back as it
 * was on each way out, signals included.
 */
#include "cli/commands/console_line.h"
#include "cli/commands/display.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "io/output.h"

#define ESCAPE 0x1d /* Ctrl-] */
#define WATCHED 4   /* descriptors */

struct console {
    struct line line;
    bool terminal; /* standard input is one, and raw */
    bool escaped;  /* the last byte typed was Ctrl-] */
    bool input;    /* standard input is open */
    gint64 ended;  /* when it ended, and when something was printed last, in microseconds */
    gint64 printed;
};

/* --- signals: seen only while it waits, so that none comes between a look and a wait --- */

static const int endings[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT};
static volatile sig_atomic_t signalled;
static sigset_t mask_while_waiting;

static void note_signal(int number)
{
    signalled = number;
}

static void catch_signals(void)
{
    struct sigaction note = {.sa_handler = note_signal}, ignore = {.sa_handler = SIG_IGN};
    sigset_t blocked;
    sigemptyset(&blocked);
    for (size_t i = 0; i < G_N_ELEMENTS(endings); i++)
        sigaddset(&blocked, endings[i]);
    sigprocmask(SIG_BLOCK, &blocked, &mask_while_waiting);
    for (size_t i = 0; i < G_N_ELEMENTS(endings); i++) {
        sigdelset(&mask_while_waiting, endings[i]);
        sigaction(endings[i], &note, NULL);
    }
    /* Who sits here is told that his reader is gone; stopped, the terminal would stay raw. */
    sigaction(SIGPIPE, &ignore, NULL);
    sigaction(SIGTSTP, &ignore, NULL);
}

/* Ends the program as the signal would have, so that who sent it sees that. */
static void obey_signal(void)
{
    if (signalled == 0)
        return;
    signal(signalled, SIG_DFL);
    sigprocmask(SIG_SETMASK, &mask_while_waiting, NULL);
    raise(signalled);
}

/* --- the terminal --- */

static void make_raw(struct termios *before)
{
    struct termios raw;
    tcgetattr(STDIN_FILENO, before);
    raw = *before;
    cfmakeraw(&raw);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
}

static void note_on_terminal(const char *text)
{
    fprintf(stderr, "\r\n[%s]\r\n", text);
}

static void note_plainly(const char *text)
{
    fprintf(stderr, "fettle: %s\n", text);
}

static bool take_output(struct console *console, GError **error)
{
    g_autoptr(GError) failure = NULL;
    g_autoptr(GBytes) bytes = line_hear(&console->line, &failure);
    if (failure != NULL) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return false;
    }
    if (bytes == NULL || g_bytes_get_size(bytes) == 0)
        return true;
    console->printed = g_get_monotonic_time();
    return output_write(g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes), error);
}

/* --- what is typed --- */

/* Takes Ctrl-] sequences out of what was typed; true: Ctrl-] q. `out` has room for twice `len`. */
static bool take_escapes(struct console *console, const guint8 *data, gsize len, guint8 *out,
                         gsize *ret_len)
{
    *ret_len = 0;
    for (gsize i = 0; i < len; i++) {
        if (console->escaped && (data[i] == 'q' || data[i] == 'Q'))
            return true;
        if (!console->escaped && data[i] == ESCAPE) {
            console->escaped = true;
            continue;
        }
        /* Ctrl-] twice is one for the guest; before anything else it was meant for it too. */
        if (console->escaped && data[i] != ESCAPE)
            out[(*ret_len)++] = ESCAPE;
        console->escaped = false;
        out[(*ret_len)++] = data[i];
    }
    return false;
}

/* A terminal is always read, or nobody could leave: what has no room is answered by its bell. */
static bool type_terminal(struct console *console, const guint8 *data, gsize len)
{
    guint8 kept[2 * CONSOLE_TYPE_BYTES];
    gsize keep;
    if (take_escapes(console, data, len, kept, &keep))
        return false;
    if (line_has_room(&console->line))
        line_type(&console->line, kept, keep);
    else if (keep > 0)
        fputc('\a', stderr);
    return true;
}

/* False: Ctrl-] q. */
static bool take_input(struct console *console)
{
    guint8 data[CONSOLE_TYPE_BYTES];
    ssize_t got = read(STDIN_FILENO, data, sizeof data);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return true;
    if (got <= 0) {
        console->input = false;
        console->ended = console->printed = g_get_monotonic_time();
        return true;
    }
    if (console->terminal)
        return type_terminal(console, data, (gsize)got);
    line_type(&console->line, data, (gsize)got);
    return true;
}

/* --- both --- */

/* How long to wait for something to happen; -1: for ever, 0: it is over. */
static int time_left(const struct console *console)
{
    if (console->input)
        return -1;
    gint64 now = g_get_monotonic_time();
    gint64 quiet = CONSOLE_QUIET_MS - (now - console->printed) / 1000;
    gint64 whole = CONSOLE_LEAVE_MS - (now - console->ended) / 1000;
    gint64 typing = CONSOLE_PATIENCE_MS - (now - console->ended) / 1000;
    bool idle = line_is_idle(&console->line);
    return (int)MAX(idle ? MIN(quiet, whole) : typing, 0);
}

static int wait_for_events(const struct console *console, struct pollfd *watched, int left)
{
    int next = line_wait(&console->line);
    int wait = left < 0 ? next : next < 0 ? left : MIN(left, next);
    struct timespec limit = {wait / 1000, (long)(wait % 1000) * 1000000};
    bool listen = console->input && (console->terminal || line_has_room(&console->line));
    line_descriptors(&console->line, &watched[0].fd, &watched[1].fd);
    watched[2].fd = listen ? STDIN_FILENO : -1;
    watched[3].fd = STDOUT_FILENO;
    for (size_t i = 0; i < WATCHED; i++) {
        watched[i].events = i < 3 ? POLLIN : 0; /* of its reader it is told that he is gone */
        watched[i].revents = 0;
    }
    return ppoll(watched, WATCHED, wait < 0 ? NULL : &limit, &mask_while_waiting);
}

/* False with an error: the line is over. */
static bool talk(struct console *console, GError **error)
{
    struct pollfd watched[WATCHED];
    int left;
    while ((left = time_left(console)) != 0 && signalled == 0) {
        if (!line_go(&console->line, error))
            return false;
        if (wait_for_events(console, watched, left) <= 0)
            continue;
        if ((watched[0].revents != 0 && !take_output(console, error)) ||
            (watched[1].revents != 0 && !line_typed(&console->line, error)) ||
            (watched[3].revents != 0 && !output_is_read(error)))
            return false;
        if (watched[2].revents != 0 && !take_input(console))
            return true;
    }
    if (signalled == 0 && !line_is_idle(&console->line)) {
        fettle_set_error(error, TIMEOUT, "%s did not take all that was typed within %u s",
                         console->line.name, CONSOLE_PATIENCE_MS / 1000);
        return false;
    }
    return true;
}

static bool talk_raw(struct console *console, GError **error)
{
    struct termios before;
    catch_signals();
    console->line.patient = console->terminal;
    console->line.note = console->terminal ? note_on_terminal : note_plainly;
    if (console->terminal) {
        fprintf(stderr, "Console of %s. Leave it with Ctrl-] and then q.\n", console->line.name);
        make_raw(&before);
    }
    bool ok = talk(console, error);
    if (console->terminal) {
        tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
        fprintf(stderr, "\nThe console of %s was left; the guest goes on.\n", console->line.name);
    }
    return ok;
}

/* What was printed last, as one document. */
static bool print_tail(struct cli *cli, const char *name, GError **error)
{
    json_autoptr answer =
        cli_call(cli, "ConsoleRead", json_make("[sii]", name, -CONSOLE_TAIL_BYTES, 0), error);
    if (answer == NULL)
        return false;
    json_autoptr object =
        json_make("{ss sO sO sO}", "instance", name, "data", json_array_get(answer, 0), "offset",
                  json_array_get(answer, 1), "node", json_array_get(answer, 2));
    cli_print_json(object);
    return true;
}

static int instance_console(struct cli *cli, int argc, char **argv, GError **error)
{
    bool screen = false;
    if (!cli_take_switch(&argc, argv, "--vnc", &screen, error) ||
        !cli_expect(argc, argv, 1, "instance console [--vnc] NAME", error))
        return -1;
    if (screen)
        return display_print(cli, argv[0], error) ? 0 : -1;
    if (cli->json)
        return print_tail(cli, argv[0], error) ? 0 : -1;
    struct console console = {.terminal = isatty(STDIN_FILENO) != 0, .input = true};
    line_init(&console.line, cli, argv[0], -CONSOLE_TAIL_BYTES);
    bool ok = talk_raw(&console, error);
    line_clear(&console.line);
    obey_signal();
    return ok ? 0 : -1;
}

const struct command console_commands[] = {
    {"instance", "console", "[--vnc] NAME",
     "Use the serial console of an instance, wherever it moves; Ctrl-] and then q leaves it. "
     "Through a pipe: lines are typed, output is copied. With --json: what was printed last, in "
     "base64. With --vnc: where its screen is, and how to get there.",
     instance_console},
    {0},
};
