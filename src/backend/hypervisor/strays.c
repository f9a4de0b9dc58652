/*
 * Processes of QEMU that are no guests of ours, by their arguments in /proc (RCV-26). Reading those
 * of a process may hang with it, so that is done in a thread of its own.
 */
#include "backend/hypervisor/qemu_private.h"
#include "base/limits.h"
#include "io/loop.h"

#include <string.h>
#include <sys/stat.h>

/* What one process says of itself. */
struct seen {
    struct stray *stray;
    bool ours; /* it has the mark of this root */
};

struct scan {
    char *run; /* folder of this node daemon, with a slash, escaped as in its marks */
    GPtrArray *seen;
    GError *error;
    struct promise done;
    bool abandoned;
};

static void seen_free(void *data)
{
    struct seen *seen = data;
    stray_free(seen->stray);
    g_free(seen);
}

static void scan_free(struct scan *scan)
{
    g_free(scan->run);
    g_ptr_array_unref(scan->seen);
    g_clear_error(&scan->error);
    g_free(scan);
}

/* --- one process --- */

static bool is_qemu(const char *program)
{
    g_autofree char *name = g_path_get_basename(program);
    return g_str_has_prefix(name, "qemu-system-") || strcmp(name, "qemu-kvm") == 0 ||
           strcmp(name, "kvm") == 0;
}

/* Value of an option in words that end with NULL, written with one dash or two; NULL: none. */
static const char *option(const GPtrArray *words, const char *name)
{
    for (guint i = 0; i + 1 < words->len; i++) {
        const char *word = words->pdata[i];
        if (word[0] == '-' && strcmp(word + (word[1] == '-' ? 2 : 1), name) == 0)
            return words->pdata[i + 1];
    }
    return NULL;
}

/* "web1,debug-threads=on", "guest=web1,…" */
static char *name_of(const char *value)
{
    const char *from = g_str_has_prefix(value, "guest=") ? value + strlen("guest=") : value;
    return g_strndup(from, strcspn(from, ","));
}

/* What we hand to QEMU goes with the path of what it is of (qemu_own_argument(), accel.c), which
 * nobody else writes like that: folder or file below the run folder of a Fettle; NULL: it is
 * none's.
 */
static const char *mark_of(const GPtrArray *words)
{
    const char *value = option(words, "add-fd");
    const char *mark = value && g_str_has_prefix(value, "fd=") ? strstr(value, ",opaque=/") : NULL;
    return mark ? mark + strlen(",opaque=") : NULL;
}

/* In another network namespace, as far as may be seen: it is a container's, or of a lab's other
 * node, and that one tells it. */
static bool is_elsewhere(guint64 pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%" G_GUINT64_FORMAT "/ns/net", pid);
    struct stat its, ours;
    return stat(path, &its) == 0 && stat("/proc/self/ns/net", &ours) == 0 &&
           (its.st_ino != ours.st_ino || its.st_dev != ours.st_dev);
}

/* Started again under the same name it is the same to people. */
static void identify(struct stray *stray, const GPtrArray *words, guint64 start)
{
    const char *uuid = option(words, "uuid"), *name = option(words, "name");
    g_autofree char *known = name ? name_of(name) : NULL;
    bool named = known && *known;
    text_set(&stray->instance, uuid && g_uuid_string_is_valid(uuid) ? uuid : "");
    g_autofree char *program = g_path_get_basename(words->pdata[0]);
    text_set(&stray->name, named ? known : program);
    g_free(stray->identity);
    stray->identity = *stray->instance ? g_strconcat("uuid ", stray->instance, NULL)
                      : named
                          ? g_strconcat("name ", known, NULL)
                          : g_strdup_printf("pid %" G_GUINT64_FORMAT " started %" G_GUINT64_FORMAT,
                                            stray->pid, start);
}

static void look_at(struct scan *scan, guint64 pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%" G_GUINT64_FORMAT "/cmdline", pid);
    g_autofree char *line = NULL;
    gsize len = 0;
    if (!g_file_get_contents(path, &line, &len, NULL) || len == 0 || !is_qemu(line))
        return;
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    for (char *word = line; word < line + len; word += strlen(word) + 1)
        g_ptr_array_add(words, word);
    const char *mark = mark_of(words);
    bool ours = mark && g_str_has_prefix(mark, scan->run);
    guint64 start = process_read_start_ticks(pid);
    if (start == 0 || is_elsewhere(pid) || (mark && !ours))
        return;
    struct seen *seen = g_new0(struct seen, 1);
    *seen = (struct seen){stray_new(), ours};
    seen->stray->pid = pid;
    identify(seen->stray, words, start);
    g_ptr_array_add(scan->seen, seen);
}

/* --- all --- */

static void scan_done(void *data)
{
    struct scan *scan = data;
    if (scan->abandoned)
        scan_free(scan);
    else
        promise_complete(&scan->done);
}

static void *scan_in_thread(void *data)
{
    struct scan *scan = data;
    GDir *proc = g_dir_open("/proc", 0, &scan->error);
    const char *name;
    while (proc && scan->seen->len <= LIMIT_STRAYS + LIMIT_NODE_GUESTS &&
           (name = g_dir_read_name(proc)) != NULL)
        if (g_ascii_isdigit(name[0]))
            look_at(scan, g_ascii_strtoull(name, NULL, 10));
    if (proc)
        g_dir_close(proc);
    loop_post(scan_done, scan);
    return NULL;
}

/* A boot that tries an accelerator has our mark too, and is no machine of anybody's. */
static bool is_known(const struct qemu *qemu, const struct seen *seen)
{
    const char *instance = seen->stray->instance;
    return *instance ? g_hash_table_contains(qemu->guests, instance) ||
                           g_hash_table_contains(qemu->starting, instance)
                     : seen->ours;
}

static GPtrArray *unknown_of(const struct qemu *qemu, struct scan *scan)
{
    GPtrArray *strays = g_ptr_array_new_with_free_func((GDestroyNotify)stray_free);
    for (guint i = 0; i < scan->seen->len && strays->len <= LIMIT_STRAYS; i++) {
        struct seen *seen = scan->seen->pdata[i];
        if (!is_known(qemu, seen))
            g_ptr_array_add(strays, g_steal_pointer(&seen->stray));
    }
    return strays;
}

GPtrArray *qemu_strays(struct hypervisor *hv, GError **error)
{
    struct qemu *qemu = (struct qemu *)hv;
    struct scan *scan = g_new0(struct scan, 1);
    g_autofree char *run = qemu_escape_commas(qemu->paths->run);
    scan->run = g_strconcat(run, "/", NULL);
    scan->seen = g_ptr_array_new_with_free_func(seen_free);
    GThread *thread = g_thread_try_new("processes", scan_in_thread, scan, error);
    if (!thread) {
        scan_free(scan);
        return NULL;
    }
    g_thread_unref(thread);
    if (!promise_wait(&scan->done)) {
        scan->abandoned = true;
        fettle_set_error(error, KILLED, "the process that waited for a look at others has ended");
        return NULL;
    }
    GPtrArray *strays = scan->error ? NULL : unknown_of(qemu, scan);
    if (scan->error)
        fettle_set_error(error, ENVIRONMENT, "%s", scan->error->message);
    scan_free(scan);
    return strays;
}
