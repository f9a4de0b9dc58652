/* See member_maintenance.h. */
#include "core/member/member_maintenance.h"

#include <string.h>

#include "base/limits.h"
#include "proto/members.h"

static guint64 compaction_due(const struct member_maintenance *upkeep, gint64 now_ms)
{
    if (upkeep->seen <= upkeep->compacted)
        return 0;
    bool late = now_ms - upkeep->compacted_ms >= COMPACT_INTERVAL_MS;
    bool many = upkeep->seen - upkeep->compacted >= COMPACT_REVISIONS;
    return late || many ? upkeep->seen : 0;
}

static bool defragmentation_due(const struct member_maintenance *upkeep,
                                const struct member_status *status, gint64 now_ms)
{
    if (upkeep->defragmented && now_ms - upkeep->defragmented_ms < DEFRAGMENT_INTERVAL_MS)
        return false;
    return status->store_bytes >= DEFRAGMENT_LEAST_BYTES &&
           status->used_bytes < status->store_bytes / 2;
}

static bool is_full(const struct member_status *status)
{
    for (guint i = 0; i < status->alarms->len; i++)
        if (strcmp(status->alarms->pdata[i], ALARM_NOSPACE) == 0)
            return true;
    return false;
}

/* How much of the file is in use is not known until something is written, so both are done; there
 * is always something to be had, as what is in use is a small part of the limit. */
static void make_room(struct member_maintenance *upkeep, const struct member_status *status,
                      gint64 now_ms, struct member_maintenance_due *due)
{
    if (!upkeep->full) {
        upkeep->full = true;
        upkeep->full_ms = now_ms;
        upkeep->tried = upkeep->waits = false;
    }
    due->disarm = status->store_bytes < upkeep->limit / 4 * 3;
    if (due->disarm || (upkeep->tried && now_ms - upkeep->tried_ms < MEMBER_FULL_PAUSE_MS))
        return;
    due->urgent = due->defragment = true;
    due->compact = status->revision;
}

struct member_maintenance_due member_maintenance_look(struct member_maintenance *upkeep,
                                                      const struct member_status *status,
                                                      gint64 now_ms)
{
    struct member_maintenance_due due = {0};
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
    if (is_full(status))
        make_room(upkeep, status, now_ms, &due);
    else
        upkeep->full = false;
    return due;
}

bool member_maintenance_may_defragment(const struct member_maintenance *upkeep, bool urgent,
                                       const struct members_others *others, gint64 now_ms)
{
    if (!urgent)
        return others->silent == 0;
    gint64 waited_ms = now_ms - (upkeep->tried ? upkeep->tried_ms : upkeep->full_ms);
    return (others->silent == 0 && others->full_before == 0) ||
           waited_ms >= (gint64)(others->full_before + 1) * UPKEEP_TURN_S * 1000;
}

void member_maintenance_compacted(struct member_maintenance *upkeep, guint64 revision,
                                  gint64 now_ms)
{
    upkeep->compacted = revision;
    upkeep->compacted_ms = now_ms;
}

void member_maintenance_defragmented(struct member_maintenance *upkeep, gint64 now_ms)
{
    upkeep->defragmented = true;
    upkeep->defragmented_ms = now_ms;
    upkeep->tried = upkeep->full;
    upkeep->tried_ms = now_ms;
    upkeep->waits = false;
}
