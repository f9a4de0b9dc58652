/* See crash.h. */
#include "io/crash.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define VARIABLE_AT "FETTLE_CRASH_AT"
#define VARIABLE_LOG "FETTLE_CRASH_LOG"

static GMutex lock;
static bool active;
static guint64 passed;
static guint64 end_at;
static int log_fd = -1;

static void read_environment(void)
{
    static gsize once = 0;

    if (!g_once_init_enter(&once))
        return;
    const char *at = g_getenv(VARIABLE_AT);
    const char *log = g_getenv(VARIABLE_LOG);
    if (at != NULL)
        end_at = g_ascii_strtoull(at, NULL, 10);
    if (log != NULL && log[0] != '\0')
        log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    active = end_at != 0 || log_fd >= 0;
    g_once_init_leave(&once, 1);
}

void crash_point(const char *what)
{
    read_environment();
    if (!active)
        return;
    g_mutex_lock(&lock);
    guint64 number = ++passed;
    if (log_fd >= 0) {
        char line[160];
        int len = g_snprintf(line, sizeof line, "%" G_GUINT64_FORMAT " %s\n", number, what);
        /* A lost line only makes a test count fewer points. */
        (void)!write(log_fd, line, MIN((size_t)len, sizeof line - 1));
    }
    if (number == end_at)
        raise(SIGKILL);
    g_mutex_unlock(&lock);
}

guint64 crash_count(void)
{
    g_mutex_lock(&lock);
    guint64 count = passed;
    g_mutex_unlock(&lock);
    return count;
}

char **crash_environment(void)
{
    char **environment = g_get_environ();
    environment = g_environ_unsetenv(environment, VARIABLE_AT);
    return g_environ_unsetenv(environment, VARIABLE_LOG);
}
