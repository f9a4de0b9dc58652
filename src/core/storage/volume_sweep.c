/*
 * Data that no record names goes, at the start of a member and each hour: what stands in the trash,
 * and what one copy proves to be nobody's (SAF-54). Never by its age.
 */
#include <string.h>

#include "base/log.h"
#include "core/config/restored.h"
#include "core/storage/volume_private.h"

#define AGAIN_MS 5000 /* after one that has failed; twice as long each time */

/* --- which serials this line of commits has made --- */

static gint descending(gconstpointer a, gconstpointer b)
{
    guint64 first = *(const guint64 *)a, second = *(const guint64 *)b;
    return first < second ? 1 : first > second ? -1 : 0;
}

static void add_version(const char *kind, const char *key, guint64 version, const void *value,
                        void *data)
{
    g_array_append_val((GArray *)data, version);
}

/* Where a line leaves another one behind, by a person's failover or a restore, its serial leaps by
 * LIMIT_SERIAL_LEAP at least (engine_leap()). Between two serials of records that are nearer to
 * each other there is no such place. */
static guint64 lowest_proven(const struct config *config)
{
    guint64 floor = config_serial(config);
    g_autoptr(GArray) versions = g_array_new(FALSE, FALSE, sizeof(guint64));
    config_each(config, add_version, versions);
    g_array_sort(versions, descending);
    for (guint i = 0; i < versions->len; i++) {
        guint64 version = g_array_index(versions, guint64, i);
        if (version < floor && floor - version >= LIMIT_SERIAL_LEAP)
            break;
        floor = MIN(floor, version);
    }
    return floor;
}

struct volume_proof volume_proof_of(const struct volume_member *member)
{
    return (struct volume_proof){follow_stamp(member->service->follow),
                                 lowest_proven(volume_member_config(member))};
}

bool volume_proof_holds(const struct volume_member *member, const struct volume_proof *proof)
{
    return !task_killed() && !restored_brake(volume_member_config(member)) &&
           stamp_compare(follow_stamp(member->service->follow), proof->stamp) == 0;
}

bool volume_proof_asked(struct volume_member *member, const struct volume_proof *proof)
{
    return !task_killed() && follow_refresh(member->service->follow, NULL) &&
           volume_proof_holds(member, proof);
}

const struct trash *volume_trash_of(const struct volume_member *member, const char *name)
{
    g_autofree char *key = config_trash_key(member->backend->uuid, name);
    return config_get(volume_member_config(member), "trash", key, NULL);
}

bool volume_is_under_way(const struct config *config, enum resource_type type, const char *uuid,
                         guint64 claim)
{
    g_autofree char *key = config_work_key(type, uuid);
    g_autoptr(GPtrArray) held = config_held_work(config, type, uuid);
    const struct worker *row = config_get(config, "worker", key, NULL);
    bool found = row && (!claim || row->claim == claim);
    for (guint i = 0; i < held->len; i++)
        found = found || !claim || ((const struct worker *)held->pdata[i])->claim == claim;
    return found;
}

bool volume_sweep_may(const struct volume_member *member, const struct volume_proof *proof,
                      enum resource_type type, const char *name, bool *ret_unproven)
{
    g_autofree char *uuid = NULL;
    guint64 claim;
    if (!volume_proof_holds(member, proof))
        return false;
    const struct config *config = volume_member_config(member);
    if (!volume_data_parse(name, &uuid, &claim) || claim > config_serial(config))
        return false;
    struct resource resource = resource_of(config, type, uuid);
    if (strcmp(resource.data, name) == 0 || volume_is_under_way(config, type, uuid, claim) ||
        volume_is_left(config, &resource))
        return false;
    if (ret_unproven)
        *ret_unproven = claim < proof->floor;
    return claim >= proof->floor;
}

/* --- the sweep --- */

static bool remove_one(struct volume_member *member, enum resource_type type, const char *name)
{
    struct volume_driver *driver = member->service->env->volumes;
    g_autoptr(GError) error = NULL;
    bool gone = driver->ops->remove(driver, member->backend, type, name, &error);
    if (gone)
        volume_member_measures(member);
    else if (!task_killed())
        log_warning("", "%s: %s stays although no record names it: %s", member->backend->name, name,
                    error->message);
    member->stayed = member->stayed || !gone;
    return gone;
}

static GPtrArray *trash_names(const struct volume_member *member)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) all =
        config_backend_trash(volume_member_config(member), member->backend->uuid);
    for (guint i = 0; i < all->len; i++)
        g_ptr_array_add(names, g_strdup(((const struct trash *)all->pdata[i])->name));
    return names;
}

/* As long as some go: what others were made of goes after them, and they may be here, too. */
static void sweep_trash(struct volume_member *member, const struct volume_proof *proof)
{
    g_autoptr(GPtrArray) names = trash_names(member);
    g_autoptr(GPtrArray) removed = g_ptr_array_new();
    for (guint before = 1, after = 0; before != after;) {
        before = removed->len;
        for (guint i = 0; i < names->len && removed->len < LIMIT_WORK_ITEMS; i++) {
            char *name = names->pdata[i];
            if (g_ptr_array_find(removed, name, NULL))
                continue;
            if (!volume_proof_asked(member, proof))
                break;
            const struct trash *trash = volume_trash_of(member, name);
            if (trash && remove_one(member, trash->resource_type, name))
                g_ptr_array_add(removed, name);
        }
        after = removed->len;
    }
    if (!removed->len || task_killed())
        return;
    if (removed->len == LIMIT_WORK_ITEMS)
        member->swept = 0; /* there is more, which is as good as new */
    g_autofree char *commit_id = env_uuid(member->service->env);
    g_autofree char *service = g_strdup(member->caller.uuid); /* it may register meanwhile */
    struct empty_trash_args args = {.commit_id = commit_id,
                                    .service = service,
                                    .generation = member->caller.generation,
                                    .names = removed};
    record_autoptr(commit_result) result =
        volume_call(&member->caller, NULL, "empty_trash", &args, NULL);
}

/* Said when it has become another number. */
static void tell_left(struct volume_member *member, guint left, const char *name)
{
    if (left && left != member->left)
        log_warning(
            "",
            "%s: %u names of data, as %s, stand in no record; they stay, as they may be those "
            "of records that were lost with a master or are later than a backup",
            member->backend->name, left, name);
    member->left = left;
}

/* Each is judged by the copy as it is then: what is nobody's once stays so in one mastership. */
static void sweep_names(struct volume_member *member, const struct volume_proof *proof,
                        const GPtrArray *list)
{
    guint left = 0;
    const char *one = "";
    for (guint i = 0; i < list->len && !task_killed() && !member->over; i++) {
        const struct volume_data *data = list->pdata[i];
        const char *name = data->name;
        bool unproven = false;
        if (volume_sweep_may(member, proof, data->type, name, &unproven)) {
            if (!volume_proof_asked(member, proof))
                return;
            if (volume_sweep_may(member, proof, data->type, name, NULL) &&
                remove_one(member, data->type, name))
                log_info("", "%s: removed %s, which no record names", member->backend->name, name);
        } else if (unproven) {
            left++;
            one = name;
        }
    }
    if (!task_killed() && !member->over)
        tell_left(member, left, one);
}

/* Of a copy that the master has just confirmed. False: there was none, or it is another's by now;
 * or something has stayed. */
static bool sweep(struct volume_member *member, GError **error)
{
    struct volume_driver *driver = member->service->env->volumes;
    if (!follow_refresh(member->service->follow, NULL))
        return false;
    struct volume_proof proof = volume_proof_of(member);
    sweep_trash(member, &proof);
    g_autoptr(GPtrArray) list =
        task_killed() ? NULL : driver->ops->list(driver, member->backend, error);
    if (list)
        sweep_names(member, &proof, list);
    return list && !member->stayed && volume_proof_holds(member, &proof);
}

/* Whoever asks for a sweep meanwhile gets it at once. */
static void plan_next(struct volume_member *member, bool whole)
{
    gint64 now = volume_caller_ms(&member->caller);
    guint pause_ms = member->sweep_pause_ms ? member->sweep_pause_ms * 2 : AGAIN_MS;
    member->sweep_pause_ms = whole ? 0 : MIN(pause_ms, VOLUME_SWEEP_MS);
    if (!whole)
        member->sweep_ms = MIN(member->sweep_ms, now + member->sweep_pause_ms);
    volume_member_wake(member);
}

void volume_sweep_run(void *data)
{
    struct volume_member *member = data;
    g_autoptr(GError) error = NULL;
    member->stayed = false;
    bool whole = task_killed() || sweep(member, &error);
    if (error && !task_killed())
        volume_caller_complain(&member->caller, error);
    member->sweeping = false;
    if (!task_killed())
        plan_next(member, whole);
    volume_member_unref(member);
}
