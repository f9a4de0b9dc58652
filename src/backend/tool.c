/*
 * Running programs to their end. See tool.h. What they say goes into a file in memory, so nothing
 * is left anywhere, whoever dies first.
 */
#include "backend/tool.h"

#include "base/limits.h"
#include "base/task.h"
#include "io/process.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct tool {
    char *name;
    struct process *process;
    int output;
};

static int memory_file(const char *content, GError **error)
{
    int fd = memfd_create("fettle-tool", MFD_CLOEXEC);
    size_t len = content != NULL ? strlen(content) : 0;
    if (fd >= 0 && (len == 0 || pwrite(fd, content, len, 0) == (ssize_t)len))
        return fd;
    fettle_set_error(error, ENVIRONMENT, "cannot make a file in memory: %s", g_strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

/* What we started for a moment does not outlive us, unlike guests. */
static struct process *spawn(const char *const *argv, int output, const int *fds, guint count,
                             GError **error)
{
    g_auto(GStrv) words = process_bound(argv);
    const struct process_options options = {.argv = (const char *const *)words,
                                            .errors_fd = output,
                                            .keep_fds = fds,
                                            .keep_fd_count = count};
    return process_spawn(&options, error);
}

struct tool *tool_start_with(const char *const *argv, const int *fds, guint count, GError **error)
{
    g_autofree char *found = g_find_program_in_path(argv[0]);
    if (found == NULL) {
        fettle_set_error(error, ENVIRONMENT, "the program %s is missing on this node", argv[0]);
        return NULL;
    }
    int output = memory_file(NULL, error);
    struct process *process = output < 0 ? NULL : spawn(argv, output, fds, count, error);
    if (process == NULL) {
        if (output >= 0)
            close(output);
        return NULL;
    }
    struct tool *tool = g_new0(struct tool, 1);
    tool->name = g_strdup(argv[0]);
    tool->process = process;
    tool->output = output;
    return tool;
}

struct tool *tool_start(const char *const *argv, const char *input, GError **error)
{
    int given = input != NULL ? memory_file(input, error) : -1;
    if (input != NULL && given < 0)
        return NULL;
    struct tool *tool = tool_start_with(argv, &given, given >= 0 ? 1 : 0, error);
    if (given >= 0)
        close(given);
    return tool;
}

int tool_text(const char *text, GError **error)
{
    return memory_file(text, error);
}

guint64 tool_pid(const struct tool *tool)
{
    return process_pid(tool->process);
}

void tool_free(struct tool *tool)
{
    if (tool == NULL)
        return;
    process_signal(tool->process, SIGKILL);
    process_free(tool->process);
    close(tool->output);
    g_free(tool->name);
    g_free(tool);
}

bool tool_wait(struct tool *tool, guint timeout_ms)
{
    return process_wait(tool->process, timeout_ms);
}

bool tool_ended(const struct tool *tool)
{
    return process_ended(tool->process);
}

bool tool_kill(struct tool *tool, GError **error)
{
    return process_kill(tool->process, error);
}

int tool_exit_code(const struct tool *tool)
{
    return process_exit_code(tool->process);
}

char *tool_output(const struct tool *tool, gsize max)
{
    struct stat status;
    if (fstat(tool->output, &status) != 0)
        return g_strdup("");
    gsize len = MIN((gsize)status.st_size, max);
    g_autofree char *text = g_malloc0(len + 1);
    ssize_t got = pread(tool->output, text, len, status.st_size - (off_t)len);
    return g_utf8_make_valid(text, MAX(got, 0));
}

char *tool_last_words(const char *output)
{
    g_auto(GStrv) lines = g_strsplit_set(output, "\r\n", -1);
    for (guint i = g_strv_length(lines); i > 0; i--) {
        const char *line = g_strstrip(lines[i - 1]);
        const char *colon = strstr(line, ": ");
        if (line[0] == '\0' || line[0] == '(')
            continue;
        bool named = colon != NULL && memchr(line, ' ', (size_t)(colon - line)) == NULL &&
                     g_ascii_islower(line[0]);
        return g_strdup(named ? colon + 2 : line);
    }
    return g_strdup("no reason given");
}

int tool_run(const char *const *argv, const char *input, guint timeout_ms, char **ret_output,
             GError **error)
{
    int code = -1;
    struct tool *tool = tool_start(argv, input, error);
    if (tool == NULL)
        return -1;
    if (tool_wait(tool, timeout_ms)) {
        code = tool_exit_code(tool);
        if (ret_output != NULL)
            *ret_output = tool_output(tool, LIMIT_TOOL_OUTPUT_BYTES);
    } else if (task_killed()) {
        fettle_set_error(error, KILLED, "the process that waited for %s has ended", argv[0]);
    } else if (tool_kill(tool, error)) {
        fettle_set_error(error, TIMEOUT, "%s did not end within %u ms", argv[0], timeout_ms);
    }
    tool_free(tool);
    return code;
}
