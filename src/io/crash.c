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
#define VARIABLE_ONCE "FETTLE_CRASH_ONCE"
#define VARIABLE_SINCE "FETTLE_CRASH_SINCE"

static const char *const variables[] = {VARIABLE_AT, VARIABLE_LOG, VARIABLE_ONCE, VARIABLE_SINCE};

static GMutex lock;
static bool active;
static guint64 passed;
static guint64 end_at;
static char *end_name; /* NULL: it goes by the number */
static int log_fd = -1;
static char *once_file;
static char *since_file; /* NULL: it counts */

static gsize was_read;

static const char *variable(const char *name, const char *suffix)
{
    g_autofree char *whole = g_strconcat(name, suffix, NULL);
    return g_getenv(whole);
}

static void read_variables(const char *suffix)
{
    const char *at = variable(VARIABLE_AT, suffix);
    const char *log = variable(VARIABLE_LOG, suffix);
    once_file = g_strdup(variable(VARIABLE_ONCE, suffix));
    since_file = g_strdup(variable(VARIABLE_SINCE, suffix));
    if (at != NULL && !g_ascii_string_to_unsigned(at, 10, 0, G_MAXUINT64, &end_at, NULL))
        end_name = g_strdup(at);
    if (log != NULL && log[0] != '\0')
        log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    active = end_at != 0 || end_name != NULL || log_fd >= 0;
}

static void read_environment(void)
{
    if (!g_once_init_enter(&was_read))
        return;
    read_variables("");
    g_once_init_leave(&was_read, 1);
}

void crash_become(const char *part)
{
    g_autofree char *suffix = g_strconcat("_", part, NULL);

    read_environment();
    if (log_fd >= 0)
        close(log_fd);
    log_fd = -1;
    g_clear_pointer(&end_name, g_free);
    g_clear_pointer(&once_file, g_free);
    g_clear_pointer(&since_file, g_free);
    end_at = 0;
    passed = 0;
    read_variables(suffix);
}

static bool may_end(void)
{
    if (once_file == NULL)
        return true;
    int fd = open(once_file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Under the lock. */
static bool counts(void)
{
    if (since_file != NULL && access(since_file, F_OK) == 0)
        g_clear_pointer(&since_file, g_free);
    return since_file == NULL;
}

void crash_point(const char *what)
{
    read_environment();
    if (!active)
        return;
    g_mutex_lock(&lock);
    if (!counts()) {
        g_mutex_unlock(&lock);
        return;
    }
    guint64 number = ++passed;
    if (log_fd >= 0) {
        char line[160];
        int len = g_snprintf(line, sizeof line, "%" G_GUINT64_FORMAT " %s\n", number, what);
        /* A lost line only makes a test count fewer points. */
        (void)!write(log_fd, line, MIN((size_t)len, sizeof line - 1));
    }
    bool there = end_name != NULL ? strcmp(what, end_name) == 0 : number == end_at;
    if (there && may_end())
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

    for (size_t i = 0; i < G_N_ELEMENTS(variables); i++)
        environment = g_environ_unsetenv(environment, variables[i]);
    return environment;
}

char **crash_environment_for(const char *child)
{
    char **environment = crash_environment();

    for (size_t i = 0; i < G_N_ELEMENTS(variables); i++) {
        g_autofree char *named = g_strdup_printf("%s_%s", variables[i], child);
        const char *value = g_environ_getenv(environment, named);
        if (value != NULL)
            environment = g_environ_setenv(environment, variables[i], value, TRUE);
    }
    return environment;
}
