/* The volume services of a node: who they are, and that they live. See volume_service.h. */
#include "core/storage/volume_private.h"

/* All that its copy is for. */
static bool wants(const char *kind)
{
    static const char *const kinds[] = {
        "cluster", "node",    "api_front_end", "backend", "storage_service",
        "worker",  "volume",  "snapshot",      "backup",  "image",
        "trash",   "cleanup", "repair_brake",  "fault",   NULL};
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
        if (!service->beats.over && backend && serves(service, backend)) {
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
    volume_caller_init(&member->caller, service->env, service->follow, STORAGE_VOLUME,
                       backend->uuid);
    member->caller.member = member;
    member->caller.label = g_strdup_printf("back end %s", backend->name);
    g_hash_table_insert(service->members, member->backend->uuid, member);
    volume_member_ref(member);
    task_spawn(service->env->tasks, volume_member_run, member);
}

static void changed_cb(const GPtrArray *changes, void *data)
{
    struct volume_service *service = data;
    g_autoptr(GPtrArray) all = config_list(follow_config(service->follow), "backend");
    drop_members(service);
    for (guint i = 0; i < all->len && !service->beats.over; i++) {
        const struct backend *backend = all->pdata[i];
        if (serves(service, backend) && !g_hash_table_contains(service->members, backend->uuid))
            add_member(service, backend);
    }
}

/* --- beats --- */

static void gather(GPtrArray *callers, void *data)
{
    struct volume_service *service = data;
    struct volume_driver *driver = service->env->volumes;
    GHashTableIter iter;
    void *value;
    g_hash_table_iter_init(&iter, service->members);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct volume_member *member = value;
        member->caller.hanging = driver->ops->hanging(driver, member->backend);
        if (member->caller.generation)
            g_ptr_array_add(callers, &member->caller);
    }
}

static void answered(const struct beat_result *result, void *data)
{
    struct volume_service *service = data;
    GHashTableIter iter;
    void *value;
    g_hash_table_iter_init(&iter, service->members);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct volume_member *member = value;
        if (member->caller.uuid && g_ptr_array_find_with_equal_func(
                                       result->measure, member->caller.uuid, g_str_equal, NULL))
            volume_member_measures(member);
    }
}

static void ended_cb(const GError *error, void *data)
{
    struct volume_service *service = data;
    service->ended(error, service->data);
}

/* --- life --- */

struct volume_service *volume_service_new(const struct env *env,
                                          void (*ended)(const GError *error, void *data),
                                          void *data)
{
    struct volume_service *service = g_new0(struct volume_service, 1);
    service->env = env;
    service->ended = ended;
    service->data = data;
    service->members = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, member_leaves);
    service->receiving = g_hash_table_new(g_str_hash, g_str_equal);
    service->follow = follow_new(env, changed_cb, service);
    follow_from_anywhere(service->follow);
    follow_only(service->follow, wants);
    service->beats = (struct volume_beats){.env = env,
                                           .follow = service->follow,
                                           .who = "the volume services wait",
                                           .gather = gather,
                                           .answered = answered,
                                           .ended = ended_cb,
                                           .data = service};
    return service;
}

void volume_service_start(struct volume_service *service)
{
    task_spawn(service->env->tasks, volume_beats_run, &service->beats);
}

void volume_service_free(struct volume_service *service)
{
    if (!service)
        return;
    service->beats.over = true;
    g_hash_table_unref(service->members);
    g_hash_table_unref(service->receiving);
    follow_free(service->follow);
    g_free(service);
}
