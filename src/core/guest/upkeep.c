/* See upkeep.h. */
#include "core/guest/upkeep.h"

static guint64 compaction_due(const struct upkeep *upkeep, gint64 now_ms)
{
    if (upkeep->seen <= upkeep->compacted)
        return 0;
    bool late = now_ms - upkeep->compacted_ms >= COMPACT_INTERVAL_MS;
    bool many = upkeep->seen - upkeep->compacted >= COMPACT_REVISIONS;
    return late || many ? upkeep->seen : 0;
}

static bool defragmentation_due(const struct upkeep *upkeep, const struct member_status *status,
                                gint64 now_ms)
{
    if (upkeep->defragmented && now_ms - upkeep->defragmented_ms < DEFRAGMENT_INTERVAL_MS)
        return false;
    return status->store_bytes >= DEFRAGMENT_LEAST_BYTES &&
           status->used_bytes < status->store_bytes / 2;
}

struct upkeep_due upkeep_look(struct upkeep *upkeep, const struct member_status *status,
                              gint64 now_ms)
{
    struct upkeep_due due = {0};
    if (!status->healthy)
        return due;
    if (status->leads && upkeep->leads) {
        due.compact = compaction_due(upkeep, now_ms);
    } else if (status->leads) {
        /* What the leader before has done is not known; the count begins. */
        upkeep->compacted = status->revision;
        upkeep->compacted_ms = now_ms;
    }
    upkeep->leads = status->leads;
    upkeep->seen = status->revision;
    due.defragment = defragmentation_due(upkeep, status, now_ms);
    return due;
}

void upkeep_compacted(struct upkeep *upkeep, guint64 revision, gint64 now_ms)
{
    upkeep->compacted = revision;
    upkeep->compacted_ms = now_ms;
}

void upkeep_defragmented(struct upkeep *upkeep, gint64 now_ms)
{
    upkeep->defragmented = true;
    upkeep->defragmented_ms = now_ms;
}
