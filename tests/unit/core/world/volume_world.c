/* Volume services in a small world; see volume_world.h. */
#include "unit/core/world/volume_world.h"

#include <string.h>

#include "proto/change.h"

struct fake_volumes *volumes;
static GPtrArray *processes;
static struct volumed *watched;
static guint steps, stop_at;

static const enum resource_type kinds[] = {RESOURCE_VOLUME, RESOURCE_SNAPSHOT, RESOURCE_BACKUP,
                                           RESOURCE_IMAGE};

static void process_free(void *data)
{
    struct volumed *process = data;
    fake_kill(process->env);
    volume_service_free(process->service);
    volume_scheduler_free(process->scheduler);
    g_free(process->ended);
    g_free(process);
}

static void count_step(const struct env *env)
{
    if (!watched || watched->env != env || fake_paused(env))
        return;
    if (++steps == stop_at)
        fake_pause(env);
}

/* A process that has stopped goes no further: not in the middle of its task either. */
static void step(const struct env *env, void *data)
{
    count_step(env);
    if (fake_paused(env))
        env_sleep(env, 1);
}

/* What a record names is never removed. */
static void goes(const char *name, void *data)
{
    for (guint k = 0; k < G_N_ELEMENTS(kinds); k++) {
        g_autoptr(GPtrArray) all = config_list(wconf_config(world.wconf), resource_kind(kinds[k]));
        for (guint i = 0; i < all->len; i++)
            g_assert_cmpstr(resource_read(kinds[k], all->pdata[i]).data, !=, name);
    }
}

static const struct env *caller(const struct rpc_request *request)
{
    bool own = watched && strcmp(request->from_role, watched->env->role) == 0 &&
               strcmp(request->from_node, watched->env->node_uuid) == 0 &&
               strcmp(request->name, "wait_changes") != 0 && strcmp(request->name, "beat") != 0;
    return own ? watched->env : NULL;
}

static void serve(struct rpc_request *request, void *data)
{
    const struct env *env = caller(request);
    if (env)
        count_step(env);
    if (env && fake_paused(env)) {
        rpc_fail_new(request, FETTLE_ERROR_UNREACHABLE, "it has stopped before");
        return;
    }
    wconf_handle(world.wconf, request);
    if (env)
        count_step(env);
}

void volumes_set_up(GPtrArray *more)
{
    storage_set_up(more);
    for (guint i = 0; i < 3; i++)
        fake_kill(volumed[i]);
    volumes = fake_volumes_new();
    processes = g_ptr_array_new_with_free_func(process_free);
    steps = stop_at = 0;
    watched = NULL;
    fake_volumes_set_step(volumes, step, NULL);
    fake_volumes_set_goes(volumes, goes, NULL);
    fake_serve(world.wconfd, serve, NULL);
}

void volumes_tear_down(void)
{
    g_ptr_array_unref(processes);
    world_tear_down();
    fake_volumes_free(volumes);
}

static void ended(const GError *error, void *data)
{
    struct volumed *process = data;
    g_assert_null(process->ended);
    process->ended = g_strdup(error->message);
}

static struct volumed *process_new(guint node, const char *role)
{
    static const char *const nodes[] = {NODE1, NODE2, NODE3};
    struct volumed *process = g_new0(struct volumed, 1);
    process->env = fake_process(world.world, nodes[node - 1], role);
    g_ptr_array_add(processes, process);
    return process;
}

static void answer(struct rpc_request *request, void *data)
{
    volume_service_handle(((struct volumed *)data)->service, request);
}

struct volumed *volumed_start_as(guint node, const char *host)
{
    struct volumed *process = process_new(node, ROLE_VOLUMED);
    process->env->storage_host = host;
    process->env->volumes = fake_volumes_at(volumes, process->env);
    process->service = volume_service_new(process->env, ended, process);
    fake_serve(process->env, answer, process);
    volume_service_start(process->service);
    fake_advance(world.world, 1);
    return process;
}

struct volumed *volumed_start(guint node)
{
    return volumed_start_as(node, NULL);
}

struct volumed *scheduler_start(guint node)
{
    struct volumed *process = process_new(node, ROLE_SCHEDULER);
    process->scheduler = volume_scheduler_new(process->env, ended, process);
    volume_scheduler_start(process->scheduler);
    fake_advance(world.world, 1);
    return process;
}

void volumed_kill(struct volumed *process)
{
    fake_kill(process->env);
    process->killed = true;
}

void volumed_stop_at(struct volumed *process, guint at)
{
    watched = process;
    steps = 0;
    stop_at = at;
}

bool volumed_stopped(void)
{
    return watched && fake_paused(watched->env);
}

guint volumed_steps(void)
{
    return steps;
}

const char *volume_ask(const char *operation, const char *resource, guint size, const char *backend)
{
    return volume_ask_for(json_make("{s:s,s:s,s:s,s:i,s:s}", "resource_type", "Volume", "operation",
                                    operation, "resource", resource, "size", (int)size, "backend",
                                    backend));
}

const char *volume_ask_for(json_t *args)
{
    g_autofree char *operation = g_strdup(json_string_value(json_object_get(args, "operation")));
    g_autofree char *said = storage_ask(storage_cli, "accept_work", args);
    json_t *answer = json_loads(said, 0, NULL);
    if (!answer)
        g_error("%s: %s", operation, said);
    const char *uuid = g_intern_string(json_string_value(json_object_get(answer, "resource")));
    json_decref(answer);
    return uuid;
}

void volumes_set_cluster(json_t *fields)
{
    guint64 version = 0;
    const char *uuid = config_cluster(wconf_config(world.wconf))->uuid;
    config_get(wconf_config(world.wconf), "cluster", uuid, &version);
    json_t *object = cluster_to_json(config_cluster(wconf_config(world.wconf)));
    json_object_update_new(object, fields);
    g_free(job_locks(&world, 17, "x cluster/BGL", false));
    g_autofree char *said = job_change(&world, 17, "change_cluster",
                                       changes_of(put("cluster", uuid, version, object), NULL));
    if (!strstr(said, "serial"))
        g_error("%s", said);
}

static void say_services(GString *text, const char *what, json_t *list)
{
    size_t i;
    json_t *one;
    g_string_append_printf(text, "%s%s:%s", text->len ? "; " : "", what,
                           json_array_size(list) ? "" : " -");
    json_array_foreach(list, i, one) {
        const char *by = json_string_value(json_object_get(one, "by"));
        g_string_append_printf(text, "%s %s", i ? "," : "",
                               json_string_value(json_object_get(one, "host")));
        if (by && *by)
            g_string_append_printf(text, " by %s (%d)", by,
                                   (int)json_integer_value(json_object_get(one, "found")));
    }
}

char *volumes_ask_cleanup(json_t *filters)
{
    g_autofree char *said =
        storage_ask(storage_cli, "request_cleanup", filters ? filters : json_object());
    json_t *answer = json_loads(said, 0, NULL);
    if (!answer)
        return g_steal_pointer(&said);
    GString *text = g_string_new(NULL);
    say_services(text, "cleaning", json_object_get(answer, "cleaning"));
    say_services(text, "unavailable", json_object_get(answer, "unavailable"));
    json_decref(answer);
    return g_string_free(text, FALSE);
}

const struct storage_service *volumes_service(const char *host, const char *backend)
{
    g_autofree char *key =
        config_storage_service_key(*backend ? STORAGE_VOLUME : STORAGE_SCHEDULER, host, backend);
    return config_get(wconf_config(world.wconf), "storage_service", key, NULL);
}

void volumes_die_with(const GPtrArray *uuids)
{
    struct env *env = fake_process(world.world, NODE1, ROLE_VOLUMED);
    guint64 generation = storage_number(
        storage_ask(env, "register_storage",
                    json_make("{s:s,s:s,s:s,s:i,s:s}", "binary", "cinder-volume", "host", "node1",
                              "backend", DIR1, "wire", 1, "version", "0.1")),
        "generation");
    for (guint i = 0; i < uuids->len; i++) {
        g_autofree char *key = config_work_key(RESOURCE_VOLUME, uuids->pdata[i]);
        g_free(
            storage_ask(env, "take_work",
                        json_make("{s:s,s:s,s:i}", "key", key, "service",
                                  volumes_service("node1", DIR1)->uuid, "generation", generation)));
    }
    fake_kill(env);
}

void volumes_work(void)
{
    const guint hour_s = 3600;
    for (guint i = 0; i < hour_s * 10; i++) {
        fake_advance(world.world, 100);
        if (!config_count(wconf_config(world.wconf), "worker") || volumed_stopped())
            return;
    }
    g_assert_not_reached();
}

char *volume_said(const char *uuid)
{
    const struct config *config = wconf_config(world.wconf);
    struct resource resource = resource_read(RESOURCE_VOLUME, NULL);
    for (guint k = 0; k < G_N_ELEMENTS(kinds) && !resource.exists; k++)
        resource = resource_of(config, kinds[k], uuid);
    if (!resource.exists)
        return g_strdup("gone");
    if (*resource.data) {
        g_assert_true(fake_volumes_has(volumes, resource.data));
        g_assert_true(resource_is_full(&resource, fake_volumes_bytes(volumes, resource.data)) ||
                      !strcmp(resource.status, resource_error_status(resource.type)));
    }
    return g_strdup_printf("%s %" G_GUINT64_FORMAT " GiB%s", resource.status, resource.size,
                           *resource.data ? "" : ", no data");
}

static bool is_clean(void)
{
    const struct config *config = wconf_config(world.wconf);
    guint named = 0;
    for (guint k = 0; k < G_N_ELEMENTS(kinds); k++) {
        g_autoptr(GPtrArray) all = config_list(config, resource_kind(kinds[k]));
        for (guint i = 0; i < all->len; i++)
            named += *resource_read(kinds[k], all->pdata[i]).data != '\0';
    }
    return fake_volumes_count(volumes) == named && config_count(config, "trash") == 0 &&
           config_count(config, "worker") == 0;
}

void volumes_assert_clean(void)
{
    for (guint minutes = 0; minutes < 120 && !is_clean(); minutes++)
        fake_advance(world.world, 60 * 1000);
    g_assert_true(is_clean());
}
