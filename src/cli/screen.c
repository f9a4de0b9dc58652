/* See screen.h. */
#include "cli/screen.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/foreign.h"

const char screen_plain[] = "\x1b[0m";

static GPtrArray *drawn; /* lines at the bottom, as they were given */

bool screen_live(void)
{
    return isatty(STDOUT_FILENO) && isatty(STDERR_FILENO) && g_getenv("NO_COLOR") == NULL &&
           g_strcmp0(g_getenv("TERM"), "dumb") != 0;
}

void screen_size(int *ret_columns, int *ret_lines)
{
    struct winsize size = {0};
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0;
    *ret_columns = known && size.ws_col > 0 ? size.ws_col : 80;
    *ret_lines = known && size.ws_row > 0 ? size.ws_row : 24;
}

int screen_text_columns(void)
{
    const int usual = 80, least = 40;
    struct winsize size = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return usual;
    return CLAMP(size.ws_col, least, usual);
}

static void erase(void)
{
    for (guint i = 0; drawn != NULL && i < drawn->len; i++)
        fputs(i == 0 ? "\r\x1b[K" : "\x1b[A\x1b[K", stderr);
}

static void show(void)
{
    int columns, rows;
    screen_size(&columns, &rows);
    for (guint i = 0; drawn != NULL && i < drawn->len; i++) {
        /* The last column stays free: a terminal would go on to the next line. */
        g_autofree char *line = g_utf8_substring(
            drawn->pdata[i], 0, MIN(g_utf8_strlen(drawn->pdata[i], -1), (glong)columns - 1));
        fprintf(stderr, "%s%s", i > 0 ? "\n" : "", line);
    }
    fflush(stderr);
}

static bool same(const char *const *lines)
{
    guint i = 0;
    for (; drawn != NULL && i < drawn->len && lines[i] != NULL; i++)
        if (strcmp(drawn->pdata[i], lines[i]) != 0)
            return false;
    return drawn != NULL && i == drawn->len && lines[i] == NULL;
}

void screen_draw(const char *const *lines)
{
    if (!screen_live() || same(lines))
        return;
    screen_clear();
    drawn = g_ptr_array_new_with_free_func(g_free);
    for (; *lines != NULL; lines++)
        g_ptr_array_add(drawn, g_strdup(*lines));
    show();
}

void screen_clear(void)
{
    if (drawn == NULL)
        return;
    erase();
    fflush(stderr);
    g_clear_pointer(&drawn, g_ptr_array_unref);
}

void screen_print(const char *text)
{
    if (drawn != NULL)
        erase();
    g_autofree char *shown = foreign_text(text);
    fprintf(stderr, "%s\n", shown);
    show();
}

const char *screen_colour(const char *word)
{
    static const char *const red[] = {"error",         "failure",   "stale",   "lost", "failed",
                                      "(unavailable)", "(offline)", "offline", "O",    NULL};
    static const char *const yellow[] = {"syncing",  "waiting", "queued",  "pending",
                                         "canceled", "D",       "drained", NULL};
    static const char *const green[] = {"running", "success", "in-sync", "done", NULL};
    if (g_str_has_prefix(word, "ERROR_") || g_strv_contains(red, word))
        return "\x1b[31m";
    if (g_strv_contains(yellow, word))
        return "\x1b[33m";
    return g_strv_contains(green, word) ? "\x1b[32m" : "";
}
