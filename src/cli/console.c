/*
 * `fettle instance console`: a guest's serial line on this terminal, by ConsoleRead long polls on
 * one connection and ConsoleWrite on another. Through a pipe: input is typed, output is copied, and
 * it ends soon after the input has.
 */
#include "cli/cli.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#define ESCAPE 0x1d /* Ctrl-] */

struct console {
    struct cli *type; /* ConsoleWrite */
    struct cli read;  /* ConsoleRead: a connection of its own, as its answers come late */
    const char *name;
    gint64 offset; /* bytes seen; negative: so many before the end */
    bool terminal; /* standard input is one, and raw */
    bool escaped;  /* the last byte typed was Ctrl-] */
    bool input;    /* standard input is open */
    gint64 ended;  /* when it ended, and when something was printed last, in microseconds */
    gint64 printed;
};

static volatile sig_atomic_t signalled;

static void note_signal(int number)
{
    signalled = number;
}

/* --- the terminal --- */

static void make_raw(struct termios *before)
{
    struct termios raw;
    tcgetattr(STDIN_FILENO, before);
    raw = *before;
    cfmakeraw(&raw);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

static bool print_bytes(const guchar *data, size_t len, GError **error)
{
    while (len > 0) {
        ssize_t done = write(STDOUT_FILENO, data, len);
        if (done < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (done < 0) {
            fettle_set_error(error, STORAGE, "standard output: %s", g_strerror(errno));
            return false;
        }
        data += done;
        len -= (size_t)done;
    }
    return true;
}

/* --- from the guest --- */

static bool ask_more(struct console *console, guint wait_ms, GError **error)
{
    return cli_send(&console->read, "ConsoleRead",
                    json_make("[sIi]", console->name, (json_int_t)console->offset, (int)wait_ms),
                    error);
}

static bool take_output(struct console *console, GError **error)
{
    json_autoptr answer = cli_receive(&console->read, error);
    const char *text = json_string_value(json_array_get(answer, 0));
    if (answer == NULL)
        return false;
    if (text == NULL || !json_is_integer(json_array_get(answer, 1))) {
        fettle_set_error(error, PROTOCOL, "ConsoleRead: the answer is no [base64, offset]");
        return false;
    }
    gsize len = 0;
    g_autofree guchar *data = g_base64_decode(text, &len);
    console->offset = json_integer_value(json_array_get(answer, 1));
    if (len > 0)
        console->printed = g_get_monotonic_time();
    return print_bytes(data, len, error);
}

/* --- to the guest --- */

static bool type_bytes(struct console *console, const guchar *data, size_t len, GError **error)
{
    if (len == 0)
        return true;
    g_autofree char *text = g_base64_encode(data, len);
    json_autoptr done =
        cli_call(console->type, "ConsoleWrite", json_make("[ss]", console->name, text), error);
    return done != NULL;
}

/* Takes Ctrl-] sequences out of what was typed; true: Ctrl-] q. */
static bool take_escapes(struct console *console, guchar *data, size_t *len)
{
    size_t kept = 0;
    guchar out[2 * CONSOLE_TYPE_BYTES];
    for (size_t i = 0; i < *len && console->terminal; i++) {
        if (console->escaped && (data[i] == 'q' || data[i] == 'Q'))
            return true;
        if (!console->escaped && data[i] == ESCAPE) {
            console->escaped = true;
            continue;
        }
        /* Ctrl-] twice is one for the guest; before anything else it was meant for it too. */
        if (console->escaped && data[i] != ESCAPE)
            out[kept++] = ESCAPE;
        console->escaped = false;
        out[kept++] = data[i];
    }
    if (console->terminal) {
        memcpy(data, out, kept);
        *len = kept;
    }
    return false;
}

/* False at the end: left, or an error. */
static bool take_input(struct console *console, GError **error)
{
    guchar data[2 * CONSOLE_TYPE_BYTES];
    ssize_t got = read(STDIN_FILENO, data, CONSOLE_TYPE_BYTES);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return true;
    if (got <= 0) {
        console->input = false;
        console->ended = console->printed = g_get_monotonic_time();
        return true;
    }
    size_t len = (size_t)got;
    return !take_escapes(console, data, &len) && type_bytes(console, data, len, error);
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
    return (int)MAX(MIN(quiet, whole), 0);
}

static bool talk(struct console *console, GError **error)
{
    bool asked = false;
    int left;
    while ((left = time_left(console)) != 0 && signalled == 0) {
        if (!asked && !ask_more(console, CONSOLE_WAIT_MS, error))
            return false;
        asked = true;
        struct pollfd watched[] = {{.fd = cli_descriptor(&console->read), .events = POLLIN},
                                   {.fd = STDIN_FILENO, .events = POLLIN}};
        if (poll(watched, console->input ? 2 : 1, left) < 0)
            continue;
        if (watched[0].revents != 0) {
            if (!take_output(console, error))
                return false;
            asked = false;
        }
        if (console->input && watched[1].revents != 0 && !take_input(console, error))
            return *error == NULL;
    }
    return true;
}

static bool talk_raw(struct console *console, GError **error)
{
    struct termios before;
    struct sigaction note = {.sa_handler = note_signal};
    const int numbers[] = {SIGTERM, SIGHUP, SIGINT};
    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++)
        sigaction(numbers[i], &note, NULL);
    if (console->terminal) {
        fprintf(stderr, "Console of %s. Leave it with Ctrl-] and then q.\n", console->name);
        make_raw(&before);
    }
    bool ok = talk(console, error);
    if (console->terminal) {
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
        fprintf(stderr, "\nThe console of %s was left; the guest goes on.\n", console->name);
    }
    return ok;
}

/* What was printed last, as one document. */
static int print_tail(struct console *console, GError **error)
{
    json_autoptr answer =
        cli_call(&console->read, "ConsoleRead",
                 json_make("[sIi]", console->name, (json_int_t)console->offset, 0), error);
    if (answer == NULL)
        return -1;
    json_autoptr object = json_make("{ss sO sO}", "instance", console->name, "data",
                                    json_array_get(answer, 0), "offset", json_array_get(answer, 1));
    cli_print_json(object);
    return 0;
}

static int instance_console(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 1, "instance console NAME", error))
        return -1;
    struct console console = {.type = cli,
                              .read = *cli,
                              .name = argv[0],
                              .offset = -CONSOLE_TAIL_BYTES,
                              .terminal = isatty(STDIN_FILENO) != 0,
                              .input = true};
    console.read.luxi = NULL;
    g_autoptr(GError) failure = NULL;
    int code = cli->json ? print_tail(&console, &failure) : talk_raw(&console, &failure) ? 0 : -1;
    cli_disconnect(&console.read);
    if (code != 0)
        g_propagate_error(error, g_steal_pointer(&failure));
    return code;
}

const struct command console_commands[] = {
    {"instance", "console", "NAME",
     "Use the serial console of an instance; Ctrl-] and then q leaves it. Through a pipe: lines "
     "are typed, output is copied. With --json: what was printed last, in base64.",
     instance_console},
    {0},
};
