/* One member: its place, its registration, whose turn it is. See volume_service.h. */
#include "core/config/restored.h"
#include "core/storage/volume_private.h"

#define AGAIN_MS 10000 /* after a place or a registration that was refused */
#define SPACE_PERIOD 6 /* beats */
#define TRASH_MS 10000 /* that nobody sees to is swept then */
#define IDLE_MS (60 * 1000)

void volume_member_ref(struct volume_member *member)
{
    member->references++;
}

void volume_member_unref(struct volume_member *member)
{
    if (--member->references > 0)
        return;
    backend_free(member->backend);
    volume_caller_clear(&member->caller);
    g_free(member);
}

void volume_member_wake(struct volume_member *member)
{
    env_pause_end(&member->caller.pause);
}

void volume_member_measures(struct volume_member *member)
{
    if (task_killed())
        return;
    member->space_ms = 0;
    volume_member_wake(member);
}

const struct config *volume_member_config(const struct volume_member *member)
{
    return follow_config(member->service->follow);
}

/* --- registration --- */

/* Something of it is on record. */
static bool was_worked_on(const struct config *config, const char *uuid)
{
    g_autoptr(GPtrArray) volumes = config_backend_volumes(config, uuid);
    g_autoptr(GPtrArray) rows = config_backend_work(config, uuid);
    g_autoptr(GPtrArray) snapshots = config_backend_snapshots(config, uuid);
    g_autoptr(GPtrArray) backups = config_backend_backups(config, uuid);
    g_autoptr(GPtrArray) images = config_backend_images(config, uuid);
    g_autoptr(GPtrArray) trash = config_backend_trash(config, uuid);
    bool worked = trash->len > 0;
    for (guint i = 0; i < snapshots->len; i++)
        worked = worked || ((struct snapshot *)snapshots->pdata[i])->data[0];
    for (guint i = 0; i < backups->len; i++)
        worked = worked || ((struct backup *)backups->pdata[i])->data[0];
    for (guint i = 0; i < images->len; i++)
        worked = worked || ((struct image *)images->pdata[i])->data[0];
    for (guint i = 0; i < volumes->len; i++)
        worked = worked || ((struct volume *)volumes->pdata[i])->data[0];
    for (guint i = 0; i < rows->len; i++)
        worked = worked || ((struct worker *)rows->pdata[i])->claim;
    return worked;
}

/* The first of its nodes marks the place, as long as no service ever saw it: on every other node,
 * and at any later time, a place without a marker is one that is not mounted. */
static bool may_mark(const struct volume_member *member)
{
    const struct config *config = volume_member_config(member);
    const char *uuid = member->backend->uuid;
    const struct backend *backend = config_get(config, "backend", uuid, NULL);
    bool first = backend && g_str_equal(backend->nodes->pdata[0], member->service->env->node_uuid);
    g_autoptr(GPtrArray) services = config_list(config, "storage_service");
    for (guint i = 0; i < services->len; i++)
        first =
            first && !g_str_equal(((struct storage_service *)services->pdata[i])->backend, uuid);
    return first && !was_worked_on(config, uuid);
}

bool volume_member_open(struct volume_member *member, GError **error)
{
    struct volume_driver *driver = member->service->env->volumes;
    record_autoptr(cluster) cluster = cluster_copy(config_cluster(volume_member_config(member)));
    return driver->ops->open(driver, member->backend, cluster, may_mark(member), error);
}

static bool join(struct volume_member *member)
{
    g_autoptr(GError) error = NULL;
    bool ok = volume_member_open(member, &error) && volume_caller_register(&member->caller, &error);
    volume_caller_complain(&member->caller, error);
    return ok;
}

/* --- turns --- */

/* Trash that no sweep has seen, and that nobody is about to remove: by a person's word, or of what
 * recovery has settled. */
static bool has_new_trash(const struct volume_member *member)
{
    const struct config *config = volume_member_config(member);
    g_autoptr(GPtrArray) all = config_backend_trash(config, member->backend->uuid);
    bool found = false;
    for (guint i = 0; i < all->len && !found; i++) {
        const struct trash *trash = all->pdata[i];
        g_autofree char *key = config_trash_key(trash->backend, trash->name), *uuid = NULL;
        guint64 version = 0, claim;
        config_get(config, "trash", key, &version);
        found = version > member->swept && volume_data_parse(trash->name, &uuid, &claim) &&
                !volume_is_under_way(config, trash->resource_type, uuid, 0);
    }
    return found;
}

/* Whoever works here removes by himself what he has put there, mostly before that is over. */
static gint64 next_sweep(struct volume_member *member, gint64 now)
{
    if (member->sweeping || !has_new_trash(member))
        member->trash_ms = 0;
    else if (!member->trash_ms)
        member->trash_ms = now + TRASH_MS;
    return member->trash_ms ? MIN(member->sweep_ms, member->trash_ms) : member->sweep_ms;
}

/* How long none is due. */
static guint sweep(struct volume_member *member)
{
    gint64 now = volume_caller_ms(&member->caller);
    gint64 due = next_sweep(member, now);
    if (member->sweeping || now < due)
        return member->sweeping ? IDLE_MS : (guint)MIN(due - now, IDLE_MS);
    member->sweeping = true;
    member->swept = config_serial(volume_member_config(member));
    member->sweep_ms = now + VOLUME_SWEEP_MS;
    volume_member_ref(member);
    task_spawn(NULL, volume_sweep_run, member);
    return IDLE_MS;
}

/* The last one that was known stands as long as the place does not answer. */
static void measure_task(void *data)
{
    struct volume_member *member = data;
    struct volume_driver *driver = member->service->env->volumes;
    guint64 free_mib = 0, total_mib = 0;
    gint64 began_ms = volume_caller_ms(&member->caller);
    bool told =
        !task_killed() && driver->ops->space(driver, member->backend, &free_mib, &total_mib, NULL);
    if (told && !task_killed() && !member->over) {
        member->service->beats.now |=
            !member->caller.total_mib || free_mib > member->caller.free_mib;
        member->caller.free_mib = free_mib;
        member->caller.total_mib = total_mib;
        member->caller.measured_ms = began_ms;
    }
    member->measuring = false;
    volume_member_unref(member);
}

/* What its beats say of the space of its back end; none is held up by that. */
static void measure(struct volume_member *member)
{
    struct volume_driver *driver = member->service->env->volumes;
    const struct cluster *cluster = config_cluster(volume_member_config(member));
    gint64 now = volume_caller_ms(&member->caller);
    if (member->measuring || now < member->space_ms ||
        driver->ops->hanging(driver, member->backend) > 0)
        return;
    member->measuring = true;
    member->space_ms = now + (gint64)cluster->report_interval * SPACE_PERIOD * 1000;
    volume_member_ref(member);
    task_spawn(NULL, measure_task, member);
}

/* How long it may rest then. */
static guint turn(struct volume_member *member)
{
    struct volume_caller *caller = &member->caller;
    if (restored_brake(volume_member_config(member)))
        return IDLE_MS;
    if (volume_caller_lost(caller))
        caller->generation = 0;
    /* What its tasks still do has the rights of the registration before. */
    if (!caller->generation && (caller->working > 0 || !join(member) || task_killed()))
        return AGAIN_MS;
    if (!volume_clean_own(caller) || task_killed())
        return IDLE_MS;
    guint sweep_ms = sweep(member);
    measure(member);
    guint take_ms = volume_take(member);
    guint own_ms = volume_clean_own_rest(caller);
    guint asked_ms = volume_clean_asked(caller);
    return MIN(MIN(take_ms, sweep_ms), MIN(own_ms, asked_ms));
}

void volume_member_run(void *data)
{
    struct volume_member *member = data;
    bool alive = true;
    while (alive && !member->over) {
        guint rest_ms = turn(member);
        alive = !task_killed() &&
                (member->over || env_pause(member->service->env, &member->caller.pause, rest_ms));
    }
    volume_member_unref(member);
}
