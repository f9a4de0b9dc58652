/* Guests and images on nodes that the record knows nothing of; see verify_look.h. */
#include "core/report/late.h"
#include "core/verify/verify_look.h"

#include <string.h>

/* Also of one that was removed while nodes were asked: what they told of it is older than that. */
static bool on_record(const struct look *look, const char *uuid)
{
    return config_get(look->config, "instance", uuid, NULL) ||
           config_get(look->config, "removed", uuid, NULL);
}

/* After a restore, say. Nobody ends it by himself: what it writes is nowhere else. */
static void find_stray(struct look *look, const struct node *node, const struct guest_report *guest)
{
    look_problem(look,
                 "node %s: runs a guest that is not on record: %s%s%s (guest=%s in the command "
                 "line of its QEMU). No command reaches it. To keep what it has, shut it down from "
                 "inside, and make an instance of its images, var/disks/%s.* there; to end it, "
                 "kill that process (docs/guide/backup.md)",
                 node->name, *guest->name ? guest->name : "instance ", *guest->name ? ", " : "",
                 guest->instance, *guest->name ? guest->name : "…", guest->instance);
}

static bool is_its_node(const struct instance *instance, const char *node)
{
    return g_str_equal(instance->primary_node, node) ||
           g_str_equal(instance->secondary_node, node) ||
           (*instance->migration && g_str_equal(instance->migration_node, node));
}

static void verify_guest(struct look *look, const struct node *node,
                         const struct guest_report *guest)
{
    const struct instance *instance = config_get(look->config, "instance", guest->instance, NULL);
    if (!instance && !on_record(look, guest->instance))
        find_stray(look, node, guest);
    else if (instance && !is_its_node(instance, node->uuid))
        look_problem(look,
                     "instance %s: its guest of generation %" G_GUINT64_FORMAT
                     " is %s on node %s, which has nothing to do with it",
                     instance->name, guest->generation,
                     enum_word(&guest_state_words, (int)guest->state), node->name);
}

/* Space that nothing gives back. */
static void note_images(struct look *look, const struct node *node,
                        const struct node_report *report)
{
    bool late = late_part_of(report, PART_DISKS) != NULL;
    for (guint i = 0; !late && i < report->image_sets->len && look_pause(look); i++) {
        const struct image_set *set = report->image_sets->pdata[i];
        if (!on_record(look, set->instance))
            look_note(look,
                      "node %s: has images of an instance that is not on record, %s: %s"
                      "var/disks/%s.*",
                      node->name, set->instance, *set->replica ? "those of a replica, " : "",
                      set->instance);
    }
}

void verify_strays(struct look *look)
{
    g_autoptr(GPtrArray) nodes = config_list(look->config, "node");
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        const struct node_report *report = reports_of(look->reports, node->uuid);
        if (!report || !look_concerns(look, node->uuid))
            continue;
        for (guint k = 0; k < report->guests->len && look_pause(look); k++)
            verify_guest(look, node, report->guests->pdata[k]);
        note_images(look, node, report);
    }
}
