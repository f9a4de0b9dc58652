/* A cluster for tests of core/config; see config_world.h. */
#include "unit/core/world/config_world.h"

#include "proto/change.h"
#include "proto/records.h"

json_t *with(json_t *json, const char *member, json_t *value)
{
    json_object_set_new(json, member, value);
    return json;
}

json_t *object_node(const char *uuid)
{
    g_autofree char *name = g_strdup_printf("node%c", uuid[0]);
    g_autofree char *address = g_strdup_printf("10.0.0.%c", uuid[0]);
    return json_make("{s:s,s:s,s:s,s:s}", "uuid", uuid, "name", name, "primary_ip", address,
                     "group", GROUP);
}

json_t *object_web1(void)
{
    return json_make("{s:s,s:s,s:s,s:s,s:i,s:[{s:s,s:i}],s:s,s:s,s:s,s:i,s:s}", "uuid", WEB1,
                     "name", "web1", "admin_state", "up", "disk_template", "mirror", "memory", 128,
                     "disks", "uuid", DISK1, "size", 64, "primary_node", NODE1, "secondary_node",
                     NODE2, "replica", REPLICA1, "generation", 4, "holder", NODE1);
}

json_t *object_db1(void)
{
    return json_make("{s:s,s:s,s:s,s:s,s:i,s:s,s:i}", "uuid", DB1, "name", "db1", "admin_state",
                     "down", "disk_template", "diskless", "memory", 64, "primary_node", NODE1,
                     "generation", 2);
}

json_t *object_replica1(void)
{
    return json_make("{s:s,s:s,s:s,s:i,s:i,s:s}", "uuid", REPLICA1, "instance", WEB1, "node", NODE2,
                     "generation", 4, "sync", 7, "state", "in-sync");
}

struct change *put(const char *kind, const char *key, guint64 version, json_t *object)
{
    return change_make(CHANGE_PUT, kind, key, version, object);
}

struct change *del(const char *kind, const char *key, guint64 version)
{
    return change_make(CHANGE_DELETE, kind, key, version, NULL);
}

GPtrArray *changes_of(struct change *first, ...)
{
    GPtrArray *list = change_list_new();
    va_list rest;
    va_start(rest, first);
    for (struct change *change = first; change; change = va_arg(rest, struct change *))
        g_ptr_array_add(list, change);
    va_end(rest);
    return list;
}

GPtrArray *initial_changes(void)
{
    return changes_of(
        put("cluster", CLUSTER, 1,
            json_make("{s:s,s:s,s:s}", "uuid", CLUSTER, "name", "c1", "master_node", NODE1)),
        put("nodegroup", GROUP, 1, json_make("{s:s,s:s}", "uuid", GROUP, "name", "default")),
        put("node", NODE1, 1, object_node(NODE1)), put("node", NODE2, 1, object_node(NODE2)),
        put("node", NODE3, 1, object_node(NODE3)), put("instance", WEB1, 1, object_web1()),
        put("instance", DB1, 1, object_db1()), put("replica", REPLICA1, 1, object_replica1()),
        NULL);
}

GPtrArray *initial_candidates(void)
{
    static const char *const nodes[] = {NODE1, NODE2, NODE3};
    GPtrArray *all = initial_changes();
    for (guint i = 0; i < G_N_ELEMENTS(nodes); i++)
        g_ptr_array_add(all, put("node", nodes[i], 1,
                                 with(object_node(nodes[i]), "master_candidate", json_true())));
    return all;
}

char *check_as(GPtrArray *setup, GPtrArray *changes_in, enum invariants_author author)
{
    g_autoptr(GPtrArray) changes = changes_in;
    g_autoptr(GPtrArray) start = initial_changes();
    g_autoptr(GPtrArray) deltas = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) kept = g_ptr_array_new_with_free_func((GDestroyNotify)config_object_unref);
    g_autoptr(GError) error = NULL;
    struct config *config = config_new();
    for (guint i = 0; i < start->len; i++)
        g_assert_true(config_apply(config, start->pdata[i], NULL));
    for (guint i = 0; setup && i < setup->len; i++)
        g_assert_true(config_apply(config, setup->pdata[i], NULL));
    if (setup)
        g_ptr_array_unref(setup);
    for (guint i = 0; i < changes->len; i++) {
        const struct change *change = changes->pdata[i];
        struct config_object *before = config_peek(config, change->kind, change->key);
        struct config_delta *delta = g_new0(struct config_delta, 1);
        if (before) {
            g_ptr_array_add(kept, config_object_ref(before));
            delta->before = config_object_value(before);
        }
        config_apply(config, change, &error);
        g_assert_no_error(error);
        delta->kind = change->kind;
        delta->key = change->key;
        delta->after = config_get(config, change->kind, change->key, NULL);
        g_ptr_array_add(deltas, delta);
    }
    bool ok = invariants_check(config, deltas, author, &error);
    config_free(config);
    return ok ? g_strdup("ok")
              : g_strdup_printf("%s: %s", fettle_error_name(error), error->message);
}

/* --- the world --- */

/* Whoever names a lock file for the first time has it, unless the test says otherwise. */
static void make_livelock(struct config_world *world, const json_t *owner)
{
    const char *livelock = json_string_value(json_object_get(owner, "livelock"));
    if (!livelock || world->own_livelocks || !g_hash_table_add(world->named, g_strdup(livelock)))
        return;
    if (world->wconfd->ops->livelock_probe(world->wconfd, livelock) == LIVELOCK_GONE)
        fake_livelock(world->world, NODE1, livelock, LIVELOCK_ALIVE);
}

static void serve(struct rpc_request *request, void *data)
{
    struct config_world *world = data;
    make_livelock(world, json_object_get(request->args, "owner"));
    wconf_handle(world->wconf, request);
}

static void stepped_down(const GError *reason, void *data)
{
    struct config_world *world = data;
    g_assert_null(world->stepped_down);
    world->stepped_down = g_strdup_printf("%s: %s", fettle_error_name(reason), reason->message);
}

static void wconfd_new(struct config_world *world)
{
    world->wconfd = fake_process(world->world, NODE1, ROLE_WCONFD);
    world->wconfd->engine = fake_engine_base(world->engine);
    world->wconf = wconf_new(world->wconfd);
    wconf_on_step_down(world->wconf, stepped_down, world);
    fake_serve(world->wconfd, serve, world);
}

void config_world_init(struct config_world *world, GPtrArray *objects)
{
    static const char *const nodes[] = {NODE1, NODE2, NODE3};
    *world = (struct config_world){.world = fake_world_new()};
    world->named = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    world->engine = fake_engine_new(5, objects);
    g_ptr_array_unref(objects);
    fake_world_set_master(world->world, NODE1);
    wconfd_new(world);
    world->luxid = fake_process(world->world, NODE1, ROLE_LUXID);
    world->watcher = fake_process(world->world, NODE1, ROLE_WATCHER);
    world->job = fake_process(world->world, NODE1, ROLE_JOB);
    for (guint i = 0; i < 3; i++)
        world->noded[i] = fake_process(world->world, nodes[i], ROLE_NODED);
    fake_script(world->world, NULL, ROLE_NODED, "announce", fake_answer_nothing, NULL);
}

static void start(void *data)
{
    struct config_world *world = data;
    g_autoptr(GError) error = NULL;
    wconf_start(world->wconf, &error);
    g_assert_no_error(error);
}

void config_world_start(struct config_world *world)
{
    fake_run(world->wconfd, start, world);
    fake_settle(world->world);
    world->epoch = fake_engine_epoch(world->engine);
}

void config_world_restart(struct config_world *world)
{
    fake_engine_crash(world->engine);
    fake_kill(world->wconfd);
    wconf_free(world->wconf);
    g_clear_pointer(&world->stepped_down, g_free);
    wconfd_new(world);
}

void config_world_clear(struct config_world *world)
{
    fake_engine_crash(world->engine);
    fake_kill(world->wconfd);
    wconf_free(world->wconf);
    fake_settle(world->world);
    fake_world_free(world->world);
    fake_engine_free(world->engine);
    g_hash_table_unref(world->named);
    g_free(world->stepped_down);
}

/* --- calls --- */

static char *reply_text(struct fake_reply *reply)
{
    char *text = reply->error ? g_strdup_printf("%s: %s", fettle_error_name(reply->error),
                                                reply->error->message)
                              : json_to_text(reply->result);
    fake_reply_clear(reply);
    return text;
}

static char *ask_as(struct config_world *world, const struct env *from, guint job,
                    const char *method, json_t *args)
{
    struct fake_reply *reply = g_new0(struct fake_reply, 1);
    struct stamp stamp = {5, world->epoch};
    fake_call_start_stamped(from, job, stamp, NODE1, ROLE_WCONFD, method, args, reply);
    for (guint i = 0; i < 100000 && !reply->done; i++)
        fake_advance(world->world, i ? 10 : 0);
    g_assert_true(reply->done);
    char *text = reply_text(reply);
    g_free(reply);
    return text;
}

char *ask_wconf(struct config_world *world, const struct env *from, const char *method,
                json_t *args)
{
    return ask_as(world, from, 0, method, args);
}

json_t *owner_json(guint job)
{
    g_autofree char *id = g_strdup_printf("%u", job);
    g_autofree char *livelock = g_strdup_printf("job-%u", job);
    return json_make("{s:s,s:s}", "job", id, "livelock", livelock);
}

/* "x instance/a, s node/n1, r node/n2" */
static json_t *parse_locks(const char *list)
{
    json_t *locks = json_array();
    g_auto(GStrv) parts = g_strsplit(list, ", ", -1);
    for (guint i = 0; parts[i]; i++) {
        const char *mode = parts[i][0] == 'x'   ? "exclusive"
                           : parts[i][0] == 's' ? "shared"
                                                : "release";
        json_array_append_new(locks, json_make("{s:s,s:s}", "name", parts[i] + 2, "mode", mode));
    }
    return locks;
}

char *job_locks(struct config_world *world, guint job, const char *list, bool wait)
{
    g_autofree char *livelock = g_strdup_printf("job-%u", job);
    if (world->wconfd->ops->livelock_probe(world->wconfd, livelock) == LIVELOCK_GONE)
        fake_livelock(world->world, NODE1, livelock, LIVELOCK_ALIVE);
    json_t *args = json_make("{s:o,s:o,s:b}", "owner", owner_json(job), "locks", parse_locks(list),
                             "wait", wait);
    return ask_as(world, world->job, job, "update_locks", args);
}

char *job_commit(struct config_world *world, guint job, GPtrArray *changes)
{
    return job_change(world, job, "commit", changes);
}

static json_t *change_json(const struct config_world *world, guint job, const GPtrArray *changes)
{
    record_autoptr(commit_args) args = commit_args_new();
    g_free(args->commit_id);
    args->commit_id = env_uuid(world->job);
    g_ptr_array_unref(args->changes);
    args->changes = g_ptr_array_ref((GPtrArray *)changes);
    json_t *json = commit_args_to_json(args);
    json_object_set_new(json, "owner", owner_json(job));
    return json;
}

char *job_change(struct config_world *world, guint job, const char *name, GPtrArray *changes_in)
{
    g_autoptr(GPtrArray) changes = changes_in;
    return ask_as(world, world->job, job, name, change_json(world, job, changes));
}

char *job_commit_of(struct config_world *world, guint process, guint job, GPtrArray *changes_in)
{
    g_autoptr(GPtrArray) changes = changes_in;
    return ask_as(world, world->job, process, "commit", change_json(world, job, changes));
}

char *daemon_commit(struct config_world *world, const struct env *from, GPtrArray *changes_in)
{
    g_autoptr(GPtrArray) changes = changes_in;
    g_autofree char *livelock = g_strconcat(from->role, "-1", NULL);
    json_t *args = change_json(world, 0, changes);
    json_object_set_new(args, "owner",
                        json_make("{s:s,s:s}", "job", from->role, "livelock", livelock));
    return ask_as(world, from, 0, "commit", args);
}

void job_change_start(struct config_world *world, guint job, const char *name,
                      const GPtrArray *changes, struct fake_reply *reply)
{
    fake_call_start_stamped(world->job, job, (struct stamp){5, world->epoch}, NODE1, ROLE_WCONFD,
                            name, change_json(world, job, changes), reply);
}
