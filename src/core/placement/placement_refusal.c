/* See placement_refusal.h. */
#include "core/placement/placement_refusal.h"

#include "core/config/attachments.h"
#include "core/report/late.h"

#include <string.h>

#include "core/report/faults.h"

static bool is_excluded(const struct node *node, const struct placement_need *need)
{
    bool excluded = false;
    for (guint i = 0; i < G_N_ELEMENTS(need->excluded); i++)
        excluded = excluded || !g_strcmp0(need->excluded[i], node->uuid);
    return excluded;
}

static bool lacks_file(const struct node_report *report, const struct placement_need *need)
{
    bool lacks = false;
    for (guint i = 0; i < G_N_ELEMENTS(need->files); i++)
        lacks = lacks || placement_lacks_file(report, need->files[i]);
    return lacks;
}

/* In the order in which placement_fits() looks. */
void placement_refusal_set(const struct config *config, GError **error, const struct node *node,
                           const struct node_report *report, const struct placement_need *need,
                           const char *sentence)
{
    g_autofree char *unserved =
        need->volumes_of ? attachment_unserved(config, need->volumes_of, node->uuid) : NULL;
    if (is_excluded(node, need))
        fettle_set_error(error, WRONG_INPUT, "%s", sentence);
    else if (node->offline || node->drained)
        fettle_set_error(error, WRONG_STATE, "%s", sentence);
    else if (!report)
        fettle_set_error(error, TEMPORARY, "%s", sentence);
    else if (!need->only_copy && faults_forbids(report, need->disk > 0))
        fettle_set_error(error, ENVIRONMENT, "%s; look at it there: fettle node verify %s",
                         sentence, node->name);
    else if (placement_missing_bridge(report, need->nics))
        fettle_set_error(error, ENVIRONMENT, "%s" PLACEMENT_REFUSAL_NO_BRIDGE, sentence);
    else if (need->shared && *need->shared && late_part_of(report, PART_SHARED))
        fettle_set_error(error, TEMPORARY, "%s; try again when it does", sentence);
    else if (placement_unshared(report, need->shared))
        fettle_set_error(error, ENVIRONMENT, "%s; mount it there", sentence);
    else if (unserved)
        fettle_set_error(error, WRONG_STATE,
                         "%s, where its volumes are; add it there: fettle "
                         "backend modify",
                         sentence);
    else if (lacks_file(report, need))
        fettle_set_error(error, NO_RESOURCES, "%s; put it there", sentence);
    else if (placement_late_disks(report, need))
        fettle_set_error(error, TEMPORARY, "%s", sentence);
    else
        fettle_set_error(error, NO_RESOURCES, "%s" PLACEMENT_REFUSAL_NO_ROOM, sentence);
}
