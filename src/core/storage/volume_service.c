/* The volume services of a node: who they are, and that they live. See volume_service.h. */
#include <string.h>

#include "base/log.h"
#include "core/storage/volume_private.h"

#define REFUSED_PAUSE_MS 5000 /* while this node is none that may ask */
#define LOOK_MS 10000         /* at the interval of beats, which may be changed meanwhile */
#define FIRST_BEAT_MS 1000    /* until there is a copy that says how often */

/* All that its copy is for. */
static bool wants(const char *kind)
{
    static const char *const kinds[] = {"cluster",      "node",   "backend",  "storage_service",
                                        "worker",       "volume", "snapshot", "trash",
                                        "repair_brake", NULL};
    return g_strv_contains(kinds, kind);
}

static bool serves(const struct volume_service *service, const struct backend *backend)
{
    return g_ptr_array_find_with_equal_func(backend->nodes, service->env->node_uuid, g_str_equal,
                                            NULL);
}

static void drop_members(struct volume_service *service)
{
    GHashTableIter iter;
    void *value;
    g_hash_table_iter_init(&iter, service->members);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct volume_member *member = value;
        const struct backend *backend =
            config_get(follow_config(service->follow), "backend", member->backend->uuid, NULL);
        if (!service->over && backend && serves(service, backend)) {
            volume_member_wake(member);
            continue;
        }
        member->over = true;
        volume_member_wake(member);
        g_hash_table_iter_remove(&iter);
    }
}

static void member_leaves(void *member)
{
    volume_member_unref(member);
}

static void add_member(struct volume_service *service, const struct backend *backend)
{
    struct volume_member *member = g_new0(struct volume_member, 1);
    member->service = service;
    member->references = 1;
    member->backend = backend_copy(backend);
    member->busy = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    member->seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_hash_table_insert(service->members, member->backend->uuid, member);
    volume_member_ref(member);
    task_spawn(service->env->tasks, volume_member_run, member);
}

static void changed_cb(const GPtrArray *changes, void *data)
{
    struct volume_service *service = data;
    g_autoptr(GPtrArray) all = config_list(follow_config(service->follow), "backend");
    drop_members(service);
    for (guint i = 0; i < all->len && !service->over; i++) {
        const struct backend *backend = all->pdata[i];
        if (serves(service, backend) && !g_hash_table_contains(service->members, backend->uuid))
            add_member(service, backend);
    }
}

/* --- beats --- */

static struct storage_beat *beat_of(const struct volume_member *member)
{
    struct volume_driver *driver = member->service->env->volumes;
    struct storage_beat *beat = storage_beat_new();
    g_free(beat->service);
    beat->service = g_strdup(member->uuid);
    beat->generation = member->generation;
    beat->hanging = driver->ops->hanging(driver, member->backend);
    return beat;
}

static struct volume_member *member_of(const struct volume_service *service, const char *uuid)
{
    GHashTableIter iter;
    void *value;
    g_hash_table_iter_init(&iter, service->members);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        if (g_strcmp0(((struct volume_member *)value)->uuid, uuid) == 0)
            return value;
    return NULL;
}

/* A back end that was taken off record, or from this node, ends its member alone; else somebody has
 * the name. */
static void judge_over(struct volume_service *service, const struct beat_args *sent,
                       const char *uuid)
{
    for (guint i = 0; i < sent->services->len; i++) {
        const struct storage_beat *beat = sent->services->pdata[i];
        const struct volume_member *member = member_of(service, uuid);
        if (service->over || !member || strcmp(beat->service, uuid) != 0 ||
            beat->generation != member->generation || volume_member_lost(member))
            continue;
        g_autoptr(GError) error = NULL;
        service->over = true;
        fettle_set_error(&error, REFUSED,
                         "the registration at back end %s is over: another process of this name "
                         "has registered after it; this one ends",
                         member->backend->name);
        service->ended(error, service->data);
    }
}

static void beat(struct volume_service *service)
{
    record_autoptr(beat_args) args = beat_args_new();
    GHashTableIter iter;
    void *value;
    g_hash_table_iter_init(&iter, service->members);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        if (((struct volume_member *)value)->generation)
            g_ptr_array_add(args->services, beat_of(value));
    if (!args->services->len)
        return;
    record_autoptr(beat_result) result =
        env_call_record(service->env, NODE_MASTER, ROLE_WCONFD, "beat", args,
                        follow_stamp(service->follow), 0, 0, NULL);
    if (!result || !result->over->len || !follow_refresh(service->follow, NULL))
        return;
    for (guint i = 0; i < result->over->len; i++)
        judge_over(service, args, result->over->pdata[i]);
}

static void beat_task(void *data)
{
    struct volume_service *service = data;
    const struct env *env = service->env;
    bool alive = true;
    gint64 last_ms = 0; /* boot clock */
    while (alive && !service->over) {
        const struct cluster *cluster = config_cluster(follow_config(service->follow));
        gint64 every_ms = cluster ? (gint64)cluster->report_interval * 1000 : FIRST_BEAT_MS;
        gint64 now = env->ops->boot_ms(env);
        if (last_ms == 0 || now >= last_ms + every_ms) {
            last_ms = now;
            beat(service);
        }
        gint64 rest_ms = last_ms + every_ms - env->ops->boot_ms(env);
        alive = env_sleep(env, (guint)CLAMP(rest_ms, 1, LOOK_MS));
    }
}

/* --- life --- */

/* Until there is a first copy. */
static void start_task(void *data)
{
    struct volume_service *service = data;
    for (bool told = false;; told = true) {
        g_autoptr(GError) error = NULL;
        if (follow_start(service->follow, &error) || task_killed())
            break;
        if (!told)
            log_info("", "the volume services wait: %s", error->message);
        if (!env_sleep(service->env, REFUSED_PAUSE_MS))
            return;
    }
    beat_task(service);
}

struct volume_service *volume_service_new(const struct env *env,
                                          void (*ended)(const GError *error, void *data),
                                          void *data)
{
    struct volume_service *service = g_new0(struct volume_service, 1);
    service->env = env;
    service->ended = ended;
    service->data = data;
    service->members = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, member_leaves);
    service->follow = follow_new(env, changed_cb, service);
    follow_from_anywhere(service->follow);
    follow_only(service->follow, wants);
    return service;
}

void volume_service_start(struct volume_service *service)
{
    task_spawn(service->env->tasks, start_task, service);
}

void volume_service_free(struct volume_service *service)
{
    if (!service)
        return;
    service->over = true;
    g_hash_table_unref(service->members);
    follow_free(service->follow);
    g_free(service);
}
