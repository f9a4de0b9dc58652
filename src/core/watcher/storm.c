/* See storm.h. */
#include "core/watcher/storm.h"

#include "base/text.h"

static gint64 age_s(const struct storm_view *view, const char *what, const char *uuid,
                    guint64 at_us)
{
    g_autofree char *key = g_strdup_printf("%s/%s", what, uuid);
    gint64 us = view->ages != NULL ? ages_us(view->ages, key, at_us)
                                   : view->now * G_USEC_PER_SEC - (gint64)at_us;
    return MAX(us, 0) / G_USEC_PER_SEC;
}

static gint64 lost_for(const struct storm_view *view, const struct node *node, const char **ret_how)
{
    *ret_how = "is offline";
    return node->offline ? age_s(view, "offline", node->uuid, node->offline_since * G_USEC_PER_SEC)
                         : view->loss(node, view->data, ret_how);
}

/* By the order of the changes if both are on record (a forecast is not), else by time. */
static bool is_forgiven(const struct storm_view *view, const struct node *node, gint64 lost_s)
{
    const struct decision *latest = view->latest;
    guint64 lost = 0, said = 0;
    if (latest == NULL || latest->verdict != VERDICT_DONE)
        return false;
    config_get(view->config, "node", node->uuid, &lost);
    config_get(view->config, "decision", latest->uuid, &said);
    return (view->ages != NULL && node->offline && lost < said) ||
           lost_s >= age_s(view, "forgiven", latest->uuid, latest->at_us);
}

/* Nodes that were lost earlier are no part of the whole: what is left of the cluster counts. */
void storm_find(struct storm *storm, const struct storm_view *view)
{
    gint64 window_s = (gint64)config_cluster(view->config)->repair_storm_window_s;
    g_autoptr(GPtrArray) nodes = config_list(view->config, "node");
    *storm = (struct storm){.uuids = g_ptr_array_new_with_free_func(g_free),
                            .texts = g_ptr_array_new_with_free_func(g_free)};
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        const char *how = NULL;
        gint64 lost_s = lost_for(view, node, &how);
        if (lost_s >= 0 && (lost_s >= window_s || is_forgiven(view, node, lost_s)))
            continue;
        storm->total++;
        if (lost_s < 0)
            continue;
        g_autofree char *when = text_time(view->now - lost_s);
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
