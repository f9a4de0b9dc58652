/* One member: its place, its registration, whose turn it is. See volume_service.h. */
#include "base/log.h"
#include "core/config/restored.h"
#include "core/storage/volume_private.h"
#include "proto/envelope.h"

#define AGAIN_MS 10000                   /* after a place or a registration that was refused */
#define CLEAN_AGAIN_MS (5 * 60 * 1000)   /* after rows that could not be cleaned */
#define SWEEP_PERIOD_MS (60 * 60 * 1000) /* SAF-54 */
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
    g_hash_table_unref(member->busy);
    g_hash_table_unref(member->seen);
    g_free(member->uuid);
    g_free(member->complaint);
    g_free(member);
}

void volume_member_wake(struct volume_member *member)
{
    env_pause_end(&member->pause);
}

const struct config *volume_member_config(const struct volume_member *member)
{
    return follow_config(member->service->follow);
}

void volume_member_complain(struct volume_member *member, const GError *error)
{
    const char *words = error ? error->message : NULL;
    if (task_killed() || g_strcmp0(member->complaint, words) == 0)
        return;
    if (words)
        log_warning("", "%s", words);
    g_free(member->complaint);
    member->complaint = g_strdup(words);
}

static gint64 now_ms(const struct volume_member *member)
{
    return member->service->env->ops->boot_ms(member->service->env);
}

/* --- registration --- */

/* Something of it is on record. */
static bool was_worked_on(const struct config *config, const char *uuid)
{
    g_autoptr(GPtrArray) volumes = config_backend_volumes(config, uuid);
    g_autoptr(GPtrArray) rows = config_backend_work(config, uuid);
    g_autoptr(GPtrArray) snapshots = config_backend_snapshots(config, uuid);
    g_autoptr(GPtrArray) trash = config_backend_trash(config, uuid);
    bool worked = trash->len > 0;
    for (guint i = 0; i < snapshots->len; i++)
        worked = worked || ((struct snapshot *)snapshots->pdata[i])->data[0];
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

static bool open_place(struct volume_member *member, GError **error)
{
    struct volume_driver *driver = member->service->env->volumes;
    record_autoptr(cluster) cluster = cluster_copy(config_cluster(volume_member_config(member)));
    return driver->ops->open(driver, member->backend, cluster, may_mark(member), error);
}

/* Ends the rights of whoever had the name before, and names those whose rows are to be cleaned.
 * Meanwhile it has none itself: a beat of the registration that ends would look as if another
 * process had registered. */
static bool volume_register(struct volume_member *member, GError **error)
{
    const struct config *config = volume_member_config(member);
    const struct env *env = member->service->env;
    g_autofree char *commit_id = env_uuid(env);
    g_autofree char *host = g_strdup(config_node_name(config, env->node_uuid));
    struct register_storage_args args = {.commit_id = commit_id,
                                         .binary = STORAGE_VOLUME,
                                         .host = host,
                                         .backend = member->backend->uuid,
                                         .wire = PROTOCOL_VERSION_MAX,
                                         .version = (char *)FETTLE_VERSION};
    member->generation = 0;
    record_autoptr(registered_storage) answer =
        volume_call(member, NULL, "register_storage", &args, error);
    if (!answer || !follow_wait(member->service->follow, answer->generation, error))
        return false;
    g_free(member->uuid);
    member->uuid = g_strdup(answer->service);
    member->id = answer->id;
    member->generation = answer->generation;
    log_info("", "serves back end %s as %s, generation %" G_GUINT64_FORMAT, member->backend->name,
             host, member->generation);
    return true;
}

static bool join(struct volume_member *member)
{
    g_autoptr(GError) error = NULL;
    bool ok = open_place(member, &error) && volume_register(member, &error);
    volume_member_complain(member, error);
    return ok;
}

/* Who has registered after it shows a higher one. */
bool volume_member_lost(const struct volume_member *member)
{
    const struct storage_service *own =
        member->generation
            ? config_get(volume_member_config(member), "storage_service", member->uuid, NULL)
            : NULL;
    return member->generation && (!own || own->generation < member->generation);
}

/* --- turns --- */

/* Rows of its own on which it does not work are those of its former process, or such whose answer
 * never came. Only a new registration proves that nobody works on them any more. One batch at a
 * time. */
static bool clean(struct volume_member *member)
{
    g_autoptr(GError) error = NULL;
    if (!volume_clean_needed(member, false))
        return true;
    if (now_ms(member) < member->clean_ms)
        return true;
    bool covered = volume_clean_needed(member, true);
    if (!covered && member->working > 0)
        return false;
    /* A place that is away would fail each row: nothing is claimed. */
    if (!open_place(member, &error) || (!covered && !volume_register(member, &error)) ||
        !volume_clean(member, &error)) {
        /* What comes after a batch with failures does not wait for it. */
        covered = !member->generation || volume_clean_needed(member, true);
        member->clean_ms = now_ms(member) + (covered ? AGAIN_MS : CLEAN_AGAIN_MS);
    }
    volume_member_complain(member, error);
    return member->generation > 0;
}

/* How long no row is cleaned. */
static guint clean_rest_ms(const struct volume_member *member)
{
    return (guint)MAX(member->clean_ms - now_ms(member), 0);
}

static void sweep(struct volume_member *member)
{
    if (member->sweeping || now_ms(member) < member->sweep_ms)
        return;
    member->sweeping = true;
    member->sweep_ms = now_ms(member) + SWEEP_PERIOD_MS;
    volume_member_ref(member);
    task_spawn(NULL, volume_sweep_run, member);
}

/* How long it may rest then. */
static guint turn(struct volume_member *member)
{
    if (restored_brake(volume_member_config(member)))
        return IDLE_MS;
    if (volume_member_lost(member))
        member->generation = 0;
    /* What its tasks still do has the rights of the registration before. */
    if (!member->generation && (member->working > 0 || !join(member)))
        return AGAIN_MS;
    if (!clean(member))
        return IDLE_MS;
    sweep(member);
    guint rest_ms = MIN(volume_take(member), IDLE_MS);
    return volume_clean_needed(member, true) ? MIN(rest_ms, clean_rest_ms(member)) : rest_ms;
}

void volume_member_run(void *data)
{
    struct volume_member *member = data;
    bool alive = true;
    while (alive && !member->over) {
        guint rest_ms = turn(member);
        alive = !task_killed() &&
                (member->over || env_pause(member->service->env, &member->pause, rest_ms));
    }
    volume_member_unref(member);
}
