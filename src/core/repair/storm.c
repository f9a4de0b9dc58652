/* See storm.h. */
#include "core/repair/storm.h"

#include "core/repair/policy.h"

static gint64 lost_since(const struct node *node, storm_loss loss, const void *data,
                         const char **ret_how)
{
    *ret_how = "is offline";
    return node->offline ? MAX((gint64)node->offline_since, 1) : loss(node, data, ret_how);
}

/* Nodes that were lost earlier are no part of the whole: what is left of the cluster counts. */
void storm_find(struct storm *storm, const struct config *config, gint64 now, gint64 forgiven,
                storm_loss loss, const void *data)
{
    gint64 horizon = MAX(now - (gint64)config_cluster(config)->repair_storm_window_s, forgiven);
    g_autoptr(GPtrArray) nodes = config_list(config, "node");
    *storm = (struct storm){.uuids = g_ptr_array_new_with_free_func(g_free),
                            .texts = g_ptr_array_new_with_free_func(g_free)};
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        const char *how = NULL;
        gint64 since = lost_since(node, loss, data, &how);
        if (since != 0 && since <= horizon)
            continue;
        storm->total++;
        if (since == 0)
            continue;
        g_autofree char *when = repair_time_text(since);
        storm->lost++;
        g_ptr_array_add(storm->uuids, g_strdup(node->uuid));
        g_ptr_array_add(storm->texts, g_strdup_printf("%s %s since %s", node->name, how, when));
    }
}

void storm_clear(struct storm *storm)
{
    g_ptr_array_unref(storm->uuids);
    g_ptr_array_unref(storm->texts);
}

gint64 storm_forgiven(const struct decision *latest)
{
    return latest == NULL || latest->verdict != VERDICT_DONE
               ? 0
               : (gint64)(latest->at_us / (guint64)G_USEC_PER_SEC);
}

bool storm_pulls(const struct storm *storm, const struct cluster *cluster)
{
    return storm->lost * 100 > storm->total * cluster->repair_storm_percent;
}

char *storm_text(const struct storm *storm, const struct cluster *cluster)
{
    return g_strdup_printf("%u of %u nodes were lost within %" G_GUINT64_FORMAT
                           " s, more than %" G_GUINT64_FORMAT " %%.",
                           storm->lost, storm->total, cluster->repair_storm_window_s,
                           cluster->repair_storm_percent);
}
