/*
 * What runs on this node when its daemon starts. See rediscover.h.
 */
#include "core/node/rediscover.h"

#include "base/log.h"
#include "core/node/guest.h"
#include "core/node/migration/incoming.h"
#include "core/node/migration/outgoing.h"

/* --- guests --- */

/* A process that was prepared but never told to run: its start was cut off, and nothing of it is
 * worth keeping. */
static bool never_ran(const struct guest *guest, enum guest_state state)
{
    const struct guest_record *record = guest->record;
    return state == GUEST_PREPARED && (record->phase != PHASE_STARTED || record->run);
}

/* A mirror whose target nobody remembers: its replica is given up once the guest is confirmed. */
static void found_mirror(struct guest_record *record, const struct guest_report *found)
{
    export_target_free(record->target);
    record->target = export_target_new();
    text_set(&record->target->replica, found->replica);
    text_set(&record->target->address, "unknown");
    text_set(&record->target->psk, "00000000000000000000000000000000");
    record->attached = false;
}

/* A process that must not run, and one stuck in its disk must not keep the node daemon from
 * starting: whatever needs its images fails as long as it has them. */
static bool end_hopeless(struct node_core *node, const struct guest_report *found)
{
    g_autoptr(GError) error = NULL;
    bool ok = node->hv->ops->kill(node->hv, found->instance, found->generation, &error);
    if (!ok && !task_killed())
        log_error("", "instance %s: generation %" G_GUINT64_FORMAT " could not be ended: %s",
                  found->instance, found->generation, error->message);
    return ok;
}

/* A guest that has moved here and was not told to run yet: its start can be finished. */
static bool is_unfinished(const struct guest *guest, const struct guest_report *found)
{
    const struct guest_record *record = guest->record;
    return *found->migration && found->generation == record->generation &&
           record->phase == PHASE_USED && record->spec &&
           strcmp(record->spec->migration, found->migration) == 0;
}

/* A process that waits for another one's memory, of a generation that was never used here. */
static bool is_incoming(const struct guest *guest, const struct guest_report *found)
{
    const struct guest_record *record = guest->record;
    return *found->migration && found->generation > record->generation &&
           (found->state == GUEST_INCOMING || found->state == GUEST_PREPARED ||
            (record->incoming && strcmp(record->incoming->migration, found->migration) == 0));
}

static bool found_guest(struct node_core *node, const struct guest_report *found, GError **error)
{
    struct guest *guest = guest_get(node, found->instance, error);
    if (!guest)
        return false;
    struct guest_record *record = guest->record;
    guint64 newest = record->generation;
    if (found->generation < newest) {
        log_warning("", "instance %s: generation %" G_GUINT64_FORMAT " still lives, ended",
                    found->instance, found->generation);
        end_hopeless(node, found);
        return !task_killed() || node_killed(error);
    }
    if (is_incoming(guest, found))
        return incoming_found(guest, found, error);
    guest->live = true;
    guest_heard(guest, node->env->ops->boot_ms(node->env), found->state,
                (struct mirror_info){found->mirror, (guint)found->progress});
    guest->shutdown = found->state == GUEST_SHUTDOWN;
    if (is_unfinished(guest, found))
        return true;
    if (never_ran(guest, found->state) && found->generation == newest) {
        guest->live = !end_hopeless(node, found);
        return !task_killed() || node_killed(error);
    }
    if (found->generation == newest && record->phase == PHASE_STARTED)
        return true;
    /* Its file is gone or was never written to the end; what lives is what was used. */
    if (found->generation > newest && *found->replica)
        found_mirror(record, found);
    record->history = epoch_fence_stamp(node->fence).history;
    record->generation = found->generation;
    text_set(&record->boot_id, node->env->boot_id);
    guest_move(guest, PHASE_USED, "found running");
    guest_move(guest, PHASE_STARTED, "found running");
    return guest_save(guest, error);
}

static bool found_guests(struct node_core *node, GError **error)
{
    g_autoptr(GPtrArray) guests = node->hv->ops->rediscover(node->hv, error);
    if (!guests)
        return false;
    for (guint i = 0; i < guests->len; i++)
        if (!found_guest(node, guests->pdata[i], error))
            return false;
    return true;
}

static bool resume_outgoing(struct node_core *node, GError **error)
{
    GHashTableIter iter;
    void *value;
    g_hash_table_iter_init(&iter, node->guests);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        if (!outgoing_resume(value, error))
            return false;
    return true;
}

static bool found_exports(struct node_core *node, GError **error)
{
    g_autoptr(GPtrArray) exports = node->storage->ops->export_rediscover(node->storage, error);
    if (!exports)
        return false;
    for (guint i = 0; i < exports->len; i++) {
        const struct replica_report *found = exports->pdata[i];
        struct guest *guest = guest_lookup(node, found->instance);
        bool ours = guest && strcmp(guest->record->replica, found->replica) == 0 &&
                    guest->record->replica_generation == found->generation;
        if (ours)
            guest->export_live = found->exported;
        else if (!node->storage->ops->export_close(node->storage, found->instance, found->replica,
                                                   error))
            return false;
    }
    return true;
}

bool rediscover(struct node_core *node, GError **error)
{
    return found_guests(node, error) && resume_outgoing(node, error) && found_exports(node, error);
}
