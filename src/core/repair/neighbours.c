/*
 * Who waits for whom: recovery for a repair that moves the instance, or has its node left
 * (RCV-42), and for a person who wants quiet. See docs/design/recovery.md, "Neighbours".
 */
#include "core/repair/repair_case.h"
#include "core/repair/repair_private.h"

/* A repair of it that is pending, or, with `works`, one of whose jobs is under way. */
static bool has_pending(const struct watcher *watcher, const struct instance *instance, bool works)
{
    bool found = false;
    g_autoptr(GPtrArray) tags =
        config_tags(follow_config(watcher->follow), TAG_INSTANCE, instance->uuid);
    for (guint i = 0; i < tags->len && !found; i++) {
        struct repair_tag tag;
        repair_tag_parse(tags->pdata[i], &tag);
        found |= tag.kind == REPAIR_TAG_PENDING && !works;
        for (guint k = 0; tag.kind == REPAIR_TAG_PENDING && tag.jobs[k] != NULL; k++)
            found |= watcher_job_under_way(watcher, g_ascii_strtoull(tag.jobs[k], NULL, 10));
        repair_tag_clear(&tag);
    }
    return found;
}

/* Between two opcodes of a repair's job nothing is locked. */
bool watcher_repair_under_way(const struct watcher *watcher, const struct instance *instance)
{
    return has_pending(watcher, instance, true);
}

/* A failover goes over the mark of a dead job about power, as its guest is to leave the node. */
static bool is_left_by_repair(struct watcher *watcher, const struct instance *instance)
{
    bool reported = false;
    return repair_case_is_about_power(instance->task_state) && instance->admin_state == ADMIN_UP &&
           watcher_guest_absent(instance, watcher_guest(watcher, instance, &reported)) &&
           reported && watcher_leaves_primary(watcher, instance);
}

char *watcher_keeps_recovery_off(struct watcher *watcher, const struct instance *instance)
{
    if (repair_policy_of(follow_config(watcher->follow), instance, watcher_now(watcher)).kind ==
        REPAIR_POLICY_SUSPENDED)
        return g_strdup("a person has suspended what is done to it by itself");
    if (watcher_repair_under_way(watcher, instance))
        return g_strdup("a repair of it is under way");
    /* Where its node is there a repair waits for the mark, and not the other way about. */
    if (!watcher_node_online(watcher, instance->primary_node) &&
        has_pending(watcher, instance, false))
        return g_strdup("its node is dead, and a repair of it is pending");
    if (is_left_by_repair(watcher, instance))
        return g_strdup("its node is left by a repair");
    return NULL;
}
