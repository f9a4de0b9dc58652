/* What /proc says of the node: the collectors host and diskstats, and reading it for others; see
 * monitor.h. */
#include "core/monitor/monitor_private.h"

#include <string.h>

#define TICK_US 10000 /* the kernel tells processor times in hundredths of a second */
#define KIB_BYTES 1024

const char *const cpu_modes[CPU_MODES] = {"user",   "nice", "system",  "idle",
                                          "iowait", "irq",  "softirq", "steal"};

/* --- reading --- */

static char *read_proc(const struct monitor *monitor, const char *name, GError **error)
{
    const struct env *env = monitor->env;
    size_t len = 0;
    return env->ops->file_read(env, FILE_PROC, name, LIMIT_PROC_BYTES, &len, error);
}

GStrv monitor_proc_lines(const struct monitor *monitor, const char *name, GError **error)
{
    g_autofree char *text = read_proc(monitor, name, error);
    return text ? g_strsplit(text, "\n", -1) : NULL;
}

GStrv monitor_words(const char *line)
{
    g_auto(GStrv) words = g_strsplit_set(line, " \t", -1);
    GPtrArray *plain = g_ptr_array_new();
    for (char **word = words; *word; word++)
        if (**word)
            g_ptr_array_add(plain, g_strdup(*word));
    g_ptr_array_add(plain, NULL);
    return (GStrv)g_ptr_array_free(plain, FALSE);
}

static bool read_number(const char *word, guint64 *ret_number)
{
    return g_ascii_string_to_unsigned(word, 10, 0, RECORD_NUMBER_MAX, ret_number, NULL);
}

bool monitor_cpu_line(const char *line, guint64 ret_us[CPU_MODES])
{
    if (!g_str_has_prefix(line, "cpu"))
        return false;
    g_auto(GStrv) words = monitor_words(line);
    if (g_strv_length(words) <= CPU_MODES)
        return false;
    for (guint i = 0; i < CPU_MODES; i++) {
        guint64 ticks;
        if (!read_number(words[1 + i], &ticks))
            return false;
        ret_us[i] = ticks * TICK_US;
    }
    return true;
}

/* --- host --- */

static bool add_cpu(const struct monitor *monitor, json_t *data, GError **error)
{
    g_auto(GStrv) lines = monitor_proc_lines(monitor, "stat", error);
    guint64 us[CPU_MODES];
    guint cpus = 0;
    if (!lines)
        return false;
    if (!lines[0] || !monitor_cpu_line(lines[0], us)) {
        fettle_set_error(error, ENVIRONMENT, "/proc/stat does not begin with the processors");
        return false;
    }
    json_t *modes = json_array();
    for (guint i = 0; i < CPU_MODES; i++)
        json_array_append_new(modes,
                              json_make("{ss sI}", "mode", cpu_modes[i], "us", (json_int_t)us[i]));
    for (char **line = lines + 1; *line && g_str_has_prefix(*line, "cpu"); line++)
        cpus++;
    json_object_set_new(data, "cpu", modes);
    json_object_set_new(data, "cpus", json_integer(cpus));
    return true;
}

/* "0.52 0.58 0.59 3/602 12345" */
static bool add_load(const struct monitor *monitor, json_t *data, GError **error)
{
    static const char *const names[] = {"load1", "load5", "load15"};
    g_autofree char *text = read_proc(monitor, "loadavg", error);
    g_auto(GStrv) words = text ? monitor_words(text) : NULL;
    if (!text)
        return false;
    if (g_strv_length(words) < G_N_ELEMENTS(names)) {
        fettle_set_error(error, ENVIRONMENT, "/proc/loadavg has no three numbers");
        return false;
    }
    for (guint i = 0; i < G_N_ELEMENTS(names); i++)
        json_object_set_new(data, names[i], json_real(g_ascii_strtod(words[i], NULL)));
    return true;
}

/* "MemTotal:       16316412 kB" */
static bool add_memory(const struct monitor *monitor, json_t *data, GError **error)
{
    static const char *const rows[][2] = {{"MemTotal:", "memory_bytes"},
                                          {"MemAvailable:", "available_bytes"},
                                          {"SwapTotal:", "swap_bytes"},
                                          {"SwapFree:", "swap_free_bytes"}};
    g_auto(GStrv) lines = monitor_proc_lines(monitor, "meminfo", error);
    if (!lines)
        return false;
    for (char **line = lines; *line; line++)
        for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
            guint64 kib;
            if (!g_str_has_prefix(*line, rows[i][0]))
                continue;
            g_auto(GStrv) words = monitor_words(*line);
            if (g_strv_length(words) >= 2 && read_number(words[1], &kib))
                json_object_set_new(data, rows[i][1], json_integer((json_int_t)kib * KIB_BYTES));
        }
    if (json_object_get(data, "memory_bytes"))
        return true;
    fettle_set_error(error, ENVIRONMENT, "/proc/meminfo does not tell how much memory there is");
    return false;
}

static bool add_uptime(const struct monitor *monitor, json_t *data, GError **error)
{
    g_autofree char *text = read_proc(monitor, "uptime", error);
    if (!text)
        return false;
    double seconds = g_ascii_strtod(text, NULL);
    json_object_set_new(data, "uptime_us", json_integer((json_int_t)(seconds * G_USEC_PER_SEC)));
    return true;
}

json_t *monitor_host(struct monitor *monitor, GError **error)
{
    json_autoptr data = json_object();
    if (!add_cpu(monitor, data, error) || !add_load(monitor, data, error) ||
        !add_memory(monitor, data, error) || !add_uptime(monitor, data, error))
        return NULL;
    return json_steal(&data);
}

/* --- diskstats --- */

#define DISK_NUMBERS 11 /* behind major, minor and name, as Ganeti has them */

static json_t *disk_of(char *const *words)
{
    static const char *const names[DISK_NUMBERS] = {
        "readsNum",   "mergedReads", "secRead", "timeRead", "writes",   "mergedWrites",
        "secWritten", "timeWrite",   "ios",     "timeIO",   "wIOmillis"};
    guint64 numbers[2 + DISK_NUMBERS], sum = 0;
    for (guint i = 0; i < G_N_ELEMENTS(numbers); i++)
        if (!read_number(words[i < 2 ? i : i + 1], &numbers[i]))
            return NULL;
    for (guint i = 0; i < DISK_NUMBERS; i++)
        sum |= numbers[2 + i];
    if (!sum)
        return NULL;
    json_t *disk = json_make("{sI sI ss}", "major", (json_int_t)numbers[0], "minor",
                             (json_int_t)numbers[1], "name", words[2]);
    for (guint i = 0; i < DISK_NUMBERS; i++)
        json_object_set_new(disk, names[i], json_integer((json_int_t)numbers[2 + i]));
    return disk;
}

/* Those that have never done anything, as unused loop devices, are left out. */
json_t *monitor_diskstats(struct monitor *monitor, GError **error)
{
    g_auto(GStrv) lines = monitor_proc_lines(monitor, "diskstats", error);
    if (!lines)
        return NULL;
    json_t *list = json_array();
    for (char **line = lines; *line; line++) {
        g_auto(GStrv) words = monitor_words(*line);
        json_t *disk = g_strv_length(words) >= 3 + DISK_NUMBERS ? disk_of(words) : NULL;
        if (disk)
            json_array_append_new(list, disk);
    }
    return list;
}

/* --- what Fettle has none of --- */

json_t *monitor_drbd(struct monitor *monitor, GError **error)
{
    return json_make("{s[] so}", "device", "status",
                     monitor_status_json(MONITOR_OK, "none here: QEMU keeps the replicas"));
}

json_t *monitor_lv(struct monitor *monitor, GError **error)
{
    return json_array();
}
