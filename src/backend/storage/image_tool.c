/*
 * Running qemu-img. See image_tool.h.
 */
#include "backend/storage/image_tool.h"

#include "backend/tool.h"
#include "base/limits.h"
#include "base/task.h"
#include "io/loop.h"

#include <errno.h>
#include <string.h>

/* "    (12.34/100%)\r" again and again; the last one counts. Negative: it has said nothing yet. */
static double read_percent(const struct tool *tool)
{
    g_autofree char *output = tool_output(tool, LIMIT_COMPLAINT_BYTES);
    const char *mark = strrchr(output, '(');
    return mark != NULL && strstr(mark, "/100%)") != NULL ? g_ascii_strtod(mark + 1, NULL) : -1;
}

/* Of its up to 64 threads each would take address space for a stack and for a heap of its own, more
 * than all images need. */
void image_tool_limits(GPtrArray *argv)
{
    g_ptr_array_add(argv, g_strdup("env"));
    g_ptr_array_add(argv, g_strdup("MALLOC_ARENA_MAX=1"));
    g_ptr_array_add(argv, g_strdup("prlimit"));
    g_ptr_array_add(argv, g_strdup_printf("--stack=%zu", LIMIT_IMAGE_TOOL_STACK_BYTES));
    g_ptr_array_add(argv, g_strdup("--core=0"));
    g_ptr_array_add(argv, g_strdup_printf("--as=%zu", LIMIT_IMAGE_TOOL_BYTES));
}

static struct tool *start(const struct tool_run *run, GError **error)
{
    g_autoptr(GPtrArray) argv = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *program = g_find_program_in_path("qemu-img");
    if (program == NULL) {
        fettle_set_error(error, ENVIRONMENT,
                         "%s: the program qemu-img is missing on this node; install qemu-utils",
                         run->doing);
        return NULL;
    }
    image_tool_limits(argv);
    g_ptr_array_add(argv, g_strdup_printf("--cpu=%d", run->writes ? LIMIT_IMAGE_CONVERT_CPU_S
                                                                  : LIMIT_IMAGE_CHECK_CPU_S));
    if (!run->writes)
        g_ptr_array_add(argv, g_strdup_printf("--fsize=%zu", LIMIT_IMAGE_TOOL_OUTPUT_BYTES));
    g_ptr_array_add(argv, g_steal_pointer(&program));
    for (const char *const *word = run->arguments; *word != NULL; word++)
        g_ptr_array_add(argv, g_strdup(*word));
    g_ptr_array_add(argv, NULL);
    return tool_start((const char *const *)argv->pdata, NULL, error);
}

/* Whether it ended by itself. */
static bool await_end(const struct tool_run *run, struct tool *tool, GError **error)
{
    double last = -1;
    gint64 deadline = loop_boot_ms() + LIMIT_IMAGE_STALL_MS;
    while (!tool_wait(tool, LIMIT_IMAGE_POLL_MS)) {
        if (task_killed()) {
            fettle_set_error(error, KILLED, "the process that waited for qemu-img has ended");
            return false;
        }
        if (run->canceled != NULL && __atomic_load_n(run->canceled, __ATOMIC_RELAXED)) {
            if (tool_kill(tool, error))
                fettle_set_error(error, CANCELED, "%s: given up; nothing is left", run->doing);
            return false;
        }
        double percent = read_percent(tool);
        if (percent > last) {
            last = percent;
            deadline = loop_boot_ms() + LIMIT_IMAGE_STALL_MS;
            if (run->progress != NULL)
                run->progress(percent, run->data);
        }
        if (loop_boot_ms() >= deadline) {
            if (tool_kill(tool, error))
                fettle_set_error(error, TIMEOUT, "%s: qemu-img got no further for %u seconds",
                                 run->doing, LIMIT_IMAGE_STALL_MS / 1000);
            return false;
        }
    }
    return true;
}

static bool judge(const struct tool_run *run, const struct tool *tool, GError **error)
{
    int code = tool_exit_code(tool);
    if (code == 0 || (code > 0 && code == run->ok_code))
        return true;
    if (code > 128) {
        fettle_set_error(error, LIMIT,
                         "%s: qemu-img was ended by a signal (%s); it may use %d seconds of "
                         "processor time and %zu MiB of memory",
                         run->doing, g_strsignal(code - 128),
                         run->writes ? LIMIT_IMAGE_CONVERT_CPU_S : LIMIT_IMAGE_CHECK_CPU_S,
                         LIMIT_IMAGE_TOOL_BYTES / MIB(1));
        return false;
    }
    g_autofree char *output = tool_output(tool, LIMIT_COMPLAINT_BYTES);
    g_autofree char *words = tool_last_words(output);
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
    struct tool *tool = start(run, error);
    bool ok = tool != NULL && await_end(run, tool, error) && judge(run, tool, error);
    tool_free(tool);
    return ok;
}
