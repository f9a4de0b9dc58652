/*
 * Records about nodes whose disks fill up, before guests find no room there and when they are full,
 * and about guests that stand still because of it (ARP-68, SAF-27). Nothing follows from the first:
 * what is there may be a person's. See repair_private.h.
 */
#include "core/repair/repair_private.h"
#include "core/report/late.h"
#include "core/report/stop_why.h"

#include <string.h>

#define AUTHOR "watcher/disk"
#define AGAIN_PERCENT 2 /* by so much it has to fall before a warning is over */

/* --- nodes --- */

static guint used_percent(const struct node_report *report)
{
    guint64 total = report->disk_total;
    return (guint)((total - MIN(report->disk_free, total)) * 100 / total);
}

static const char *level_of(guint used, const char *before)
{
    guint warned = *before ? AGAIN_PERCENT : 0;
    guint full = strcmp(before, "Full") == 0 ? AGAIN_PERCENT : 0;
    if (used + full >= LIMIT_DISK_FULL_PERCENT)
        return "Full";
    return used + warned >= LIMIT_DISK_WARN_PERCENT ? "Filling" : "";
}

static struct decision *decide_full(const struct node *node, const char *level, guint used)
{
    bool full = strcmp(level, "Full") == 0;
    struct decision *decision =
        decision_about("node", node->uuid, node->name, AUTHOR, VERDICT_LEAVE, level);
    decision_set(&decision->summary,
                 "%d %% of its disk space and more are used%s. Make room, or move instances to "
                 "other nodes: fettle node evacuate %s.",
                 full ? LIMIT_DISK_FULL_PERCENT : LIMIT_DISK_WARN_PERCENT,
                 full ? "; guests there stand still when there is none left" : "", node->name);
    g_ptr_array_add(decision->evidence, g_strdup_printf("it tells that %u %% are used", used));
    decision_set(&decision->next_check, "in every pass");
    return decision;
}

/* One record for each turn; a node that tells nothing of its disks says nothing new. */
static struct decision *decide_node(const struct watcher *watcher, const struct node *node)
{
    const struct node_report *report = reports_of(watcher->reports, node->uuid);
    const struct decision *latest = watcher_latest(watcher, node->uuid, AUTHOR);
    if (report == NULL || report->disk_total == 0 || late_part_of(report, PART_DISKS) != NULL)
        return NULL;
    const char *before = latest != NULL && latest->verdict == VERDICT_LEAVE ? latest->state : "";
    guint used = used_percent(report);
    const char *level = level_of(used, before);
    if (strcmp(level, before) == 0)
        return NULL;
    if (*level)
        return decide_full(node, level, used);
    struct decision *decision =
        decision_about("node", node->uuid, node->name, AUTHOR, VERDICT_DONE, "Room");
    decision_set(&decision->summary, "There is room on its disks again.");
    return decision;
}

/* --- guests --- */

#define NO_SPACE "No-space"

/* `guest`: NULL: there is none. */
static const char *state_of(const struct guest_report *guest)
{
    if (guest == NULL || guest->io_stop == IO_STOP_NONE)
        return "";
    if (*guest->io_volume)
        return "Volume-no-space";
    return guest->io_stop == IO_STOP_FAILED ? "Disk-failed" : NO_SPACE;
}

static struct decision *decide_stands(const struct watcher *watcher,
                                      const struct instance *instance,
                                      const struct guest_report *guest)
{
    const struct config *config = follow_config(watcher->follow);
    const char *node = config_node_name(config, instance->primary_node);
    g_autofree char *why = stop_why(config, guest, instance->primary_node);
    bool failed = guest->io_stop == IO_STOP_FAILED;
    struct decision *decision = decision_about_instance(
        instance, AUTHOR, failed ? VERDICT_LEAVE : VERDICT_WAIT, state_of(guest));
    decision_set(&decision->summary, "It stands still, because %s.%s", why,
                 failed ? ""
                        : " What it was about to write is held, nothing is lost; it goes on by "
                          "itself when there is room.");
    g_ptr_array_add(decision->evidence,
                    g_strdup_printf("%s tells that its hypervisor has stopped it", node));
    g_ptr_array_add(decision->rejected,
                    g_strdup("a shutdown: it could not end what it is about to write"));
    decision_set(&decision->next_check, "in every pass");
    return decision;
}

static struct decision *decide_guest(const struct watcher *watcher, const struct instance *instance)
{
    bool reported = false;
    const struct guest_report *guest = watcher_guest(watcher, instance, &reported);
    if (!reported || (guest != NULL && (guest->late || guest->generation != instance->generation)))
        return NULL;
    bool stands = *state_of(guest) != '\0';
    if (!stands && !decisions_open(watcher->decisions, instance->uuid, AUTHOR))
        return NULL;
    const struct decision *latest = watcher_latest(watcher, instance->uuid, AUTHOR);
    const char *before = latest != NULL && latest->verdict != VERDICT_DONE ? latest->state : "";
    if (strcmp(state_of(guest), before) == 0)
        return NULL;
    if (stands)
        return decide_stands(watcher, instance, guest);
    struct decision *decision =
        decision_about_instance(instance, AUTHOR, VERDICT_DONE, guest ? "Goes-on" : "Ended");
    decision_set(&decision->summary, "It does not stand still for lack of room any more.");
    return decision;
}

bool watcher_told_no_room(const struct watcher *watcher, const struct instance *instance)
{
    if (!decisions_open(watcher->decisions, instance->uuid, AUTHOR))
        return false;
    const struct decision *latest = watcher_latest(watcher, instance->uuid, AUTHOR);
    return latest != NULL && strcmp(latest->state, NO_SPACE) == 0 &&
           !watcher_newer_than_reports(watcher, "decision", latest->uuid);
}

bool watcher_node_has_room(const struct node_report *report)
{
    return report->disk_total > 0 && late_part_of(report, PART_DISKS) == NULL &&
           used_percent(report) < LIMIT_DISK_FULL_PERCENT &&
           report->disk_free >= LIMIT_ROOM_LEAST_MIB;
}

/* --- the pass --- */

static void add(const struct watcher *watcher, struct decision *decision, GPtrArray *batch)
{
    if (decision == NULL)
        return;
    GPtrArray *changes = watcher_changes_new();
    watcher_record(watcher, decision, changes);
    watcher_batch_add(batch, changes);
}

static gint by_text(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* UUIDs of instances that stand still, or did by the record; in order, some of them twice. */
static GPtrArray *stopped_instances(const struct watcher *watcher)
{
    GPtrArray *uuids = decisions_open_subjects(watcher->decisions, AUTHOR);
    const GPtrArray *reports = reports_list(watcher->reports);
    for (guint at = 0; at < reports->len; at++) {
        const struct node_report *report = reports->pdata[at];
        for (guint i = 0; i < report->guests->len; i++) {
            const struct guest_report *guest = report->guests->pdata[i];
            if (guest->io_stop != IO_STOP_NONE)
                g_ptr_array_add(uuids, guest->instance);
        }
    }
    g_ptr_array_sort(uuids, by_text);
    return uuids;
}

void watcher_tell_fullness(struct watcher *watcher)
{
    const struct config *config = follow_config(watcher->follow);
    g_autoptr(GPtrArray) batch = watcher_batch_new();
    g_autoptr(GPtrArray) nodes = config_list(config, "node");
    g_autoptr(GPtrArray) stopped = stopped_instances(watcher);
    for (guint i = 0; i < nodes->len; i++)
        add(watcher, decide_node(watcher, nodes->pdata[i]), batch);
    for (guint i = 0; i < stopped->len; i++) {
        const struct instance *instance = config_get(config, "instance", stopped->pdata[i], NULL);
        bool again = i > 0 && strcmp(stopped->pdata[i], stopped->pdata[i - 1]) == 0;
        if (instance != NULL && !again)
            add(watcher, decide_guest(watcher, instance), batch);
    }
    watcher_batch_commit(watcher, batch);
}
