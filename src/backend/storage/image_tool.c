/*
 * Running qemu-img. See image_tool.h.
 */
#include "backend/storage/image_tool.h"

#include "base/limits.h"
#include "base/task.h"
#include "io/loop.h"
#include "io/process.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* What it wrote last; it cannot fill the memory with more than prlimit lets it write. */
static char *read_output(int output)
{
    struct stat status;
    g_autofree char *text = g_malloc0(LIMIT_COMPLAINT_BYTES + 1);
    if (fstat(output, &status) != 0)
        return g_strdup("");
    off_t from = MAX(status.st_size - (off_t)LIMIT_COMPLAINT_BYTES, 0);
    ssize_t len = pread(output, text, LIMIT_COMPLAINT_BYTES, from);
    text[MAX(len, 0)] = '\0';
    return g_utf8_make_valid(text, -1);
}

/* "    (12.34/100%)\r" again and again; the last one counts. Negative: it has said nothing yet. */
static double read_percent(const char *output)
{
    const char *mark = strrchr(output, '(');
    return mark != NULL && strstr(mark, "/100%)") != NULL ? g_ascii_strtod(mark + 1, NULL) : -1;
}

static struct process *start(const struct tool_run *run, int output, GError **error)
{
    g_autoptr(GPtrArray) argv = g_ptr_array_new_with_free_func(g_free);
    const char *fixed[] = {"setpriv",        "--pdeathsig", "KILL",
                           "--no-new-privs", "prlimit",     "--core=0"};
    for (guint i = 0; i < G_N_ELEMENTS(fixed); i++)
        g_ptr_array_add(argv, g_strdup(fixed[i]));
    g_ptr_array_add(argv, g_strdup_printf("--as=%zu", LIMIT_IMAGE_TOOL_BYTES));
    g_ptr_array_add(argv, g_strdup_printf("--cpu=%d", run->writes ? LIMIT_IMAGE_CONVERT_CPU_S
                                                                  : LIMIT_IMAGE_CHECK_CPU_S));
    if (!run->writes)
        g_ptr_array_add(argv, g_strdup_printf("--fsize=%zu", LIMIT_IMAGE_TOOL_OUTPUT_BYTES));
    g_ptr_array_add(argv, g_strdup("qemu-img"));
    for (const char *const *word = run->arguments; *word != NULL; word++)
        g_ptr_array_add(argv, g_strdup(*word));
    g_ptr_array_add(argv, NULL);
    g_autofree char *errors = g_strdup_printf("/proc/self/fd/%d", output);
    const struct process_options options = {.argv = (const char *const *)argv->pdata,
                                            .errors_path = errors};
    return process_spawn(&options, error);
}

/* Whether it ended by itself; otherwise it has been killed. */
static bool await_end(const struct tool_run *run, struct process *process, int output,
                      GError **error)
{
    double last = -1;
    gint64 deadline = loop_boot_ms() + LIMIT_IMAGE_STALL_MS;
    while (!process_wait(process, LIMIT_IMAGE_POLL_MS)) {
        if (task_killed()) {
            process_signal(process, SIGKILL);
            fettle_set_error(error, KILLED, "the process that waited for qemu-img has ended");
            return false;
        }
        g_autofree char *text = read_output(output);
        double percent = read_percent(text);
        if (percent > last) {
            last = percent;
            deadline = loop_boot_ms() + LIMIT_IMAGE_STALL_MS;
            if (run->progress != NULL)
                run->progress(percent, run->data);
        }
        if (loop_boot_ms() >= deadline) {
            if (process_kill(process, error))
                fettle_set_error(error, TIMEOUT, "%s: qemu-img got no further for %u seconds",
                                 run->doing, LIMIT_IMAGE_STALL_MS / 1000);
            return false;
        }
    }
    return true;
}

/* The last line that is no progress, without the program's name. */
static char *last_words(const char *output)
{
    g_auto(GStrv) lines = g_strsplit_set(output, "\r\n", -1);
    for (guint i = g_strv_length(lines); i > 0; i--) {
        char *line = g_strstrip(lines[i - 1]);
        if (line[0] != '\0' && line[0] != '(')
            return g_strdup(g_str_has_prefix(line, "qemu-img: ") ? line + strlen("qemu-img: ")
                                                                 : line);
    }
    return g_strdup("no reason given");
}

static bool judge(const struct tool_run *run, int code, const char *output, GError **error)
{
    if (code == 0 || (code > 0 && (code == run->ok_codes[0] || code == run->ok_codes[1])))
        return true;
    if (code > 128) {
        fettle_set_error(error, LIMIT,
                         "%s: qemu-img was ended by the signal %s; it may use %d seconds of "
                         "processor time and %zu MiB of memory",
                         run->doing, g_strsignal(code - 128),
                         run->writes ? LIMIT_IMAGE_CONVERT_CPU_S : LIMIT_IMAGE_CHECK_CPU_S,
                         LIMIT_IMAGE_TOOL_BYTES / MIB(1));
        return false;
    }
    g_autofree char *words = last_words(output);
    bool full =
        strstr(words, g_strerror(ENOSPC)) != NULL || strstr(words, g_strerror(EDQUOT)) != NULL;
    enum fettle_error kind = full          ? FETTLE_ERROR_NO_RESOURCES
                             : run->writes ? FETTLE_ERROR_STORAGE
                                           : FETTLE_ERROR_CORRUPT;
    g_set_error(error, FETTLE_ERROR, (gint)kind, "%s: %s", run->doing, words);
    return false;
}

bool image_tool_run(const struct tool_run *run, GError **error)
{
    int output = memfd_create("qemu-img", MFD_CLOEXEC);
    if (output < 0) {
        fettle_set_error(error, ENVIRONMENT, "cannot keep what qemu-img says: %s",
                         g_strerror(errno));
        return false;
    }
    struct process *process = start(run, output, error);
    bool ok = process != NULL && await_end(run, process, output, error);
    if (ok) {
        g_autofree char *text = read_output(output);
        ok = judge(run, process_exit_code(process), text, error);
    }
    process_free(process);
    close(output);
    return ok;
}
