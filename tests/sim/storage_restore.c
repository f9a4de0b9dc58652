/*
 * The configuration is restored from a backup in mid-operation (SAF-122): nothing is carried out
 * before a person says `repair continue`, whose job adopts what the nodes have; and that person
 * resets what nobody works on any more (recovery of it is not simulated). See storage_sim.h.
 */
#include "storage_sim.h"

#include <string.h>

#include "core/config/restored.h"
#include "proto/change.h"
#include "proto/engine.h"

#define WALL_US G_GINT64_CONSTANT(1700007200000000) /* later than any clock shows */
#define SOONEST 5u                                  /* faults after the backup */

static void keep_object(const char *kind, const char *key, guint64 version, json_t *object,
                        void *data)
{
    g_ptr_array_add(data, change_make(CHANGE_PUT, kind, key, version, json_incref(object)));
}

static void back_up(struct storage_world *storage, const struct ms_host *master)
{
    struct copy_position at;
    storage->backup = change_list_new();
    model_store_position(master->store, &at);
    model_store_each(master->store, keep_object, storage->backup);
    storage->backup_serial = at.serial;
    storage->backup_log = ms_keep_log(storage->ms);
    ms_tell(storage->ms, "a backup is taken at serial %" G_GUINT64_FORMAT, at.serial);
}

static void load_object(const struct change *change, struct config_loading *loading)
{
    config_load_object(change->kind, change->key, change->version, change->object, loading);
}

/* As `fettle-wconfd --restore` on that host; the stores of the others are gone. */
static void restore(struct storage_world *storage, struct ms_host *host)
{
    struct ms *ms = storage->ms;
    struct config_loading loading = {.config = config_new()};
    for (guint i = 0; i < storage->backup->len; i++)
        load_object(storage->backup->pdata[i], &loading);
    const struct restoring restoring = {.node_uuid = host->uuid,
                                        .now = (guint64)ms_now(ms) / 1000,
                                        .taken = 1,
                                        .record_uuid = "ffffffff-0000-4000-8000-000000000001"};
    g_autoptr(GPtrArray) changes = restored_changes(loading.config, &restoring, NULL);
    guint64 serial = engine_leap(storage->backup_serial, WALL_US + ms_now(ms) * 1000);
    for (guint i = 0; i < ms->hosts_count; i++) {
        struct ms_host *other = &ms->hosts[i];
        ms_pause(other, false);
        ms_kill_wconfd(other);
        other->taken.now = false;
        other->word = false;
        if (other != host)
            model_store_lose(other->store);
    }
    ms->history++;
    model_store_restore(host->store, ms->history, ms->newest_epoch, storage->backup, serial,
                        changes);
    ms_saw_restore(host, storage->backup_log);
    for (guint i = 0; i < ms->hosts_count; i++)
        if (ms->hosts[i].powered)
            ms_restart_wconfd(&ms->hosts[i]);
    config_free(loading.config);
    storage->counts->restored++;
    ms_tell(ms, "host %u is restored to serial %" G_GUINT64_FORMAT ", and is at %" G_GUINT64_FORMAT,
            host->index + 1, storage->backup_serial, serial);
}

static bool is_whole(const struct ms *ms)
{
    for (guint i = 0; i < ms->hosts_count; i++)
        if (!ms->hosts[i].powered || ms->hosts[i].gone || ms->hosts[i].demoted)
            return false;
    return ms->newest_host >= 0 && ms->hosts[ms->newest_host].epoch == ms->newest_epoch;
}

void storage_may_restore(struct storage_world *storage)
{
    struct ms *ms = storage->ms;
    if (storage->restored || !is_whole(ms))
        return;
    struct ms_host *master = &ms->hosts[ms->newest_host];
    if (!storage->backup)
        back_up(storage, master);
    else if (++storage->faults_since > SOONEST || ms_random(ms, 4) == 0) {
        storage->restored = true;
        restore(storage, &ms->hosts[ms_random(ms, ms->hosts_count)]);
    }
}

bool storage_is_held(const struct storage_world *storage)
{
    return restored_brake(storage->truth) != NULL;
}

/* --- what must hold --- */

/* The brake stood before the commit, and after it, or goes with it. */
bool storage_may_hold(const struct config *truth, const struct change *change)
{
    const json_t *status = json_object_get(change->object, "status");
    struct resource old;
    if (!strcmp(change->kind, "cleanup"))
        return change->op == CHANGE_DELETE; /* the master's own look: that one is up again */
    if (!strcmp(change->kind, "worker") || !strcmp(change->kind, "trash"))
        return false;
    if (resource_type_named(change->kind) < 0)
        return true;
    old = resource_of(truth, resource_type_of(change->kind), change->key);
    return change->op == CHANGE_PUT && old.exists &&
           !g_strcmp0(json_string_value(status), old.status) &&
           !g_strcmp0(json_string_value(json_object_get(change->object, "data")), old.data);
}
