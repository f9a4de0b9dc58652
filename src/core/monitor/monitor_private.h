/*
 * Inside of fettle-mond's core: what its modules share; see monitor.h.
 *
 *   monitor.c           collectors: when they run, what they told last; settings of the cluster
 *   monitor_paths.c     requests, reports as JSON
 *   monitor_metrics.c   the same as metrics
 *   monitor_cpu.c       cpu-avg-load
 *   monitor_proc.c      host, diskstats, and reading /proc
 *   monitor_stats.c     files of run/stats, as they are
 *   monitor_guests.c    what is taken from those: guests, replicas, relay, volumes, services
 *   monitor_instances.c inst-status-fettle
 */
#pragma once

#include "core/monitor/monitor.h"
#include "proto/monitor/collector_table.h"

/* Codes of a `status`, as Ganeti's tools know them; FAILED: there is no answer at all. */
enum monitor_status {
    MONITOR_OK = 0,
    MONITOR_TEMPORARY = 1, /* it mends itself */
    MONITOR_UNKNOWN = 2,
    MONITOR_BAD = 4,
    MONITOR_FAILED = 8,
};
json_t *monitor_status_json(enum monitor_status code, const char *message);

/* One collector. */
struct collected {
    json_t *data; /* that it told last; NULL: nothing yet */
    bool failed;
    gint64 at_us; /* wall clock: when that run began */
    gint64 at_ms; /* the same by the boot clock */
    bool under_way;
    struct collector_setting setting;
};

struct cpu_window;

struct monitor {
    const struct env *env;
    char *node;
    monitor_ask_fn ask;
    void *data;
    struct collected collected[COLLECTOR_COUNT];
    GPtrArray *waiters;      /* struct env_pause * of tasks that wait for collectors */
    struct env_pause pause;  /* of the task that takes samples … */
    struct env_pause asking; /* … and of the one that asks for settings */
    struct cpu_window *cpu;
    gint64 heard_ms;   /* when a ConfD has answered last, by the boot clock; -1: never */
    GPtrArray *guests; /* struct guest_file *, as they were read last; NULL: never */
    gint64 guests_ms;
    bool ended;
    guint users; /* the owner, and each task */
};

void monitor_hold(struct monitor *monitor);
void monitor_release(struct monitor *monitor);
gint64 monitor_now_ms(const struct monitor *monitor);

/* In a task: begins the collectors whose turn it is, `which` (a bit each) of those that are
 * active, and waits for them, at most MONITOR_WAIT_MS. False: killed. */
bool monitor_refresh(struct monitor *monitor, guint64 which);

/* --- monitor_paths.c, monitor_metrics.c --- */

/* A report, a new reference. */
json_t *monitor_report(const struct monitor *monitor, enum collector_id id);
/* The collectors that metrics are taken from. */
guint64 monitor_metrics_need(void);
char *monitor_metrics(const struct monitor *monitor, const char *accept, const char **ret_type,
                      size_t *ret_len);

/* --- collectors: in a task; NULL with an error: it has failed --- */

typedef json_t *(*collector_fn)(struct monitor *monitor, GError **error);
json_t *monitor_cpu_avg_load(struct monitor *monitor, GError **error);
json_t *monitor_host(struct monitor *monitor, GError **error);
json_t *monitor_inst_status(struct monitor *monitor, GError **error);
json_t *monitor_guests(struct monitor *monitor, GError **error);
json_t *monitor_diskstats(struct monitor *monitor, GError **error);
json_t *monitor_drbd(struct monitor *monitor, GError **error);
json_t *monitor_lv(struct monitor *monitor, GError **error);
json_t *monitor_replicas(struct monitor *monitor, GError **error);
json_t *monitor_relay(struct monitor *monitor, GError **error);
json_t *monitor_volumes(struct monitor *monitor, GError **error);
json_t *monitor_services(struct monitor *monitor, GError **error);

/* --- monitor_cpu.c --- */

struct cpu_window *cpu_window_new(void);
void cpu_window_free(struct cpu_window *window);
/* In a task: another sample. What cannot be read is told by the collector. */
void monitor_cpu_sample(struct monitor *monitor);

/* --- monitor_proc.c --- */

/* In a task: a file of /proc, as lines. */
GStrv monitor_proc_lines(const struct monitor *monitor, const char *name, GError **error);
/* The words of a line; empty ones are none. */
GStrv monitor_words(const char *line);
/* Times of /proc/stat, of one processor or all. */
#define CPU_MODES 8
extern const char *const cpu_modes[CPU_MODES];
/* "cpu3 1 2 …": microseconds by mode. False: it is no such line. */
bool monitor_cpu_line(const char *line, guint64 ret_us[CPU_MODES]);

/* --- monitor_stats.c --- */

/* One file of a guest; `stats` NULL: it cannot be used, because of `why`. */
struct guest_file {
    char *file;
    struct guest_stats *stats;
    char *why;
    gint64 age_ms;
};
/* In a task: of all guests, sorted by file; borrowed until the next wait. NULL: error. */
const GPtrArray *monitor_guest_files(struct monitor *monitor, GError **error);
/* In a task: one file of any other record. `ret_age_ms`: how old it is. */
void *monitor_stats_read(const struct monitor *monitor, const struct record *record,
                         const char *file, gint64 *ret_age_ms, GError **error);
/* How much of a file may be believed by its age; the message is to be freed. */
enum monitor_status monitor_age_status(const char *who, gint64 age_ms, char **ret_message);
