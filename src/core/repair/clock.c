/*
 * The wall clock of the master's node is set: times on record before and after are not comparable
 * then, so a record says it, and by how much (SAF-93). Nothing else follows: spans go by the boot
 * clock (core/config/ages.h), and records are in the order of their serials. See
 * repair_private.h.
 */
#include "core/repair/repair_private.h"

#define AUTHOR "watcher/clock"

/* "3 days 4 h", "5 s" */
static char *span_text(gint64 ms)
{
    gint64 s = (ms + 500) / 1000;
    if (s >= 86400)
        return g_strdup_printf("%" G_GINT64_FORMAT " days %d h", s / 86400,
                               (int)(s % 86400 / 3600));
    if (s >= 3600)
        return g_strdup_printf("%d h %d min", (int)(s / 3600), (int)(s % 3600 / 60));
    return g_strdup_printf("%d s", (int)s);
}

void watcher_tell_clock(struct watcher *watcher)
{
    gint64 step_ms = ages_step_ms(watcher->ages);
    const struct cluster *cluster = watcher_cluster(watcher);
    if (step_ms == 0 || cluster == NULL)
        return;
    g_autoptr(GPtrArray) changes = watcher_changes_new();
    g_autofree char *span = span_text(ABS(step_ms));
    g_autofree char *before = text_time(watcher_now(watcher) - step_ms / 1000);
    struct decision *decision =
        decision_about("cluster", cluster->uuid, cluster->name, AUTHOR, VERDICT_DONE, "Clock set");
    decision_set(&decision->summary,
                 "The clock of the master's node %s was set %s by %s: it was %s before. Records "
                 "stand in the order in which they were made, whatever time they show.",
                 config_node_name(follow_config(watcher->follow), watcher->env->node_uuid),
                 step_ms > 0 ? "forward" : "back", span, before);
    watcher_record(watcher, decision, changes);
    watcher_commit(watcher, changes);
}
