/* See patience.h. */
#include "helper/patience.h"

#include "io/loop.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define BUSY_TIMES 8 /* no longer than so many times the plenty */
#define BUSY_PERCENT 50
#define STEP_MS 1000
#define STOP_MS 30000

/* Whether some process had to wait for a processor most of the last ten seconds. */
static bool machine_is_busy(void)
{
    double percent = 100; /* where the kernel does not tell: as if */
    FILE *file = fopen("/proc/pressure/cpu", "re");
    if (file && fscanf(file, "some avg10=%lf", &percent) != 1)
        percent = 100;
    if (file)
        fclose(file);
    return percent > BUSY_PERCENT;
}

bool patience_is_over(gint64 since_ms, guint plenty_ms)
{
    gint64 waited = loop_boot_ms() - since_ms;
    return waited > plenty_ms && (waited > (gint64)plenty_ms * BUSY_TIMES || !machine_is_busy());
}

bool patience_run_until(const bool *done, guint plenty_ms)
{
    gint64 since = loop_boot_ms();
    while (!loop_run_until(done, STEP_MS))
        if (patience_is_over(since, plenty_ms))
            return false;
    return true;
}

static bool all_stand(const char *tasks)
{
    g_autoptr(GDir) threads = g_dir_open(tasks, 0, NULL);
    const char *name;
    while (threads && (name = g_dir_read_name(threads))) {
        g_autofree char *path = g_build_filename(tasks, name, "stat", NULL);
        g_autofree char *text = NULL;
        const char *end;
        if (g_file_get_contents(path, &text, NULL, NULL) && (end = strrchr(text, ')')) &&
            !strchr("TZX", end[2]))
            return false;
    }
    return true;
}

void patience_stop(pid_t pid)
{
    g_autofree char *tasks = g_strdup_printf("/proc/%d/task", (int)pid);
    kill(pid, SIGSTOP);
    for (gint64 since = loop_boot_ms(); !all_stand(tasks); g_usleep(1000))
        g_assert_false(patience_is_over(since, STOP_MS));
}
