/* Nodes: whether they answer, what they say of themselves, and their copies; see verify_look.h. */
#include "core/report/faults.h"
#include "core/report/late.h"
#include "core/verify/verify_look.h"

#include <string.h>

/* Images that a returned node keeps aside (SAF-19) are no fault; a person should know of them. */
static void note_leftovers(struct look *look, const struct node *node,
                           const struct node_report *report)
{
    for (guint i = 0; i < report->leftovers->len; i++) {
        g_auto(GStrv) words = g_strsplit(report->leftovers->pdata[i], " ", 2);
        const struct instance *instance = config_get(look->config, "instance", words[0], NULL);
        look_note(look,
                  "node %s: keeps images of %s%s aside%s%s; they go when it holds an in-sync "
                  "replica again. If nobody needs them: they are the files var/disks/aside/%s.* "
                  "there",
                  node->name, instance ? "instance " : "an instance that is not on record, ",
                  instance ? instance->name : words[0], words[1] ? ", generation " : "",
                  words[1] ? words[1] : "", words[0]);
    }
}

/* What only shows beside the others' is in there, too (SAF-92, SAF-93). */
static bool find_faults(struct look *look, const struct node *node,
                        const struct node_report *report)
{
    for (guint i = 0; i < report->faults->len; i++) {
        g_autofree char *text = faults_one_text(report->faults->pdata[i]);
        look_problem(look, "node %s: %s", node->name, text);
    }
    return report->faults->len > 0;
}

/* What does not answer there although the node daemon does; whether its disks are of that. */
static bool find_late(struct look *look, const struct node *node, const struct node_report *report)
{
    for (guint i = 0; i < report->late->len; i++) {
        const struct late_part *part = report->late->pdata[i];
        g_autofree char *words = late_part_words(part);
        look_problem(look, "node %s: %s: %s", node->name, part->part, words);
    }
    return late_part_of(report, PART_DISKS) != NULL;
}

/* Before guests find no room: what a person can still do something about. */
static void verify_room(struct look *look, const struct node *node,
                        const struct node_report *report)
{
    guint64 total = report->disk_total, left = report->disk_free;
    guint64 used = (total - MIN(left, total)) * 100 / total;
    bool full = used >= LIMIT_DISK_FULL_PERCENT;
    if (used >= LIMIT_DISK_WARN_PERCENT)
        look_problem(look,
                     "node %s: %" G_GUINT64_FORMAT " %% of its disk space are used "
                     "(%" G_GUINT64_FORMAT " MiB left)%s; make room, or: fettle node evacuate %s",
                     node->name, used, left,
                     full ? ", guests there stand still when there is none left" : "", node->name);
}

static void verify_disks(struct look *look, const struct node *node,
                         const struct node_report *report)
{
    bool late = find_late(look, node, report);
    bool faulty = find_faults(look, node, report);
    if (!faulty && !late && report->disk_total == 0)
        look_problem(look, "node %s: the folder of its disks cannot be read", node->name);
    else if (report->disk_total > 0)
        verify_room(look, node, report);
}

/* No fault of the cluster's, and many hosts have no KVM that works; but guests are slow there. */
static void note_accelerator(struct look *look, const struct node *node, const char *why)
{
    if (*why)
        look_note(look,
                  "node %s: has /dev/kvm, and its guests run without it: %s. If that is how it "
                  "shall be: fettle cluster modify --accelerator tcg",
                  node->name, why);
}

static void verify_silent(struct look *look, const struct node *node)
{
    const char *refusal = reports_refusal(look->reports, node->uuid);
    if (refusal)
        look_problem(look, "node %s: report: its node daemon answers with an error: %s", node->name,
                     refusal);
    else
        look_problem(look, "node %s: does not answer", node->name);
}

static void verify_node(struct look *look, const struct node *node)
{
    const struct node_report *report = reports_of(look->reports, node->uuid);
    if (node->offline) {
        look_problem(look, "node %s: is offline", node->name);
    } else if (!report) {
        verify_silent(look, node);
    } else {
        verify_disks(look, node, report);
        note_leftovers(look, node, report);
        note_accelerator(look, node, report->without_kvm);
    }
}

void verify_nodes(struct look *look)
{
    g_autoptr(GPtrArray) nodes = config_list(look->config, "node");
    for (guint i = 0; i < nodes->len && look_pause(look); i++) {
        const struct node *node = nodes->pdata[i];
        if (look_concerns(look, node->uuid))
            verify_node(look, node);
    }
}

/* --- the master IP: carried by the master's node, on its device, and nowhere else --- */

static void verify_carrier(struct look *look, const struct node *node,
                           const struct node_report *report)
{
    const struct cluster *cluster = look->cluster;
    bool master = g_str_equal(node->uuid, cluster->master_node), carries = false;
    for (guint i = 0; i < report->master_ip->len; i++) {
        const char *on = report->master_ip->pdata[i];
        if (master && g_str_equal(on, cluster->master_netdev))
            carries = true;
        else
            look_problem(look,
                         "node %s: has the master IP %s on %s%s; remove it there: ip address del "
                         "%s/%" G_GUINT64_FORMAT " dev %s",
                         node->name, cluster->master_ip, on,
                         master ? ", which is not its device" : ", and is not the master",
                         cluster->master_ip, cluster->master_netmask, on);
    }
    if (master && !carries)
        look_problem(look,
                     "node %s: is the master and does not carry the master IP %s on %s; the log of "
                     "its fettle-noded says why",
                     node->name, cluster->master_ip, cluster->master_netdev);
}

void verify_master_ip(struct look *look)
{
    g_autoptr(GPtrArray) nodes = config_list(look->config, "node");
    for (guint i = 0; *look->cluster->master_ip && i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        const struct node_report *report = reports_of(look->reports, node->uuid);
        if (report && look_concerns(look, node->uuid))
            verify_carrier(look, node, report);
    }
}
