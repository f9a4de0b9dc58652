/* What tests of stored things share; see storage_world.h. */
#include <string.h>

#include "core/wconfd/wconf_private.h"
#include "proto/change.h"
#include "proto/storage/volume_driver.h"
#include "unit/core/world/storage_world.h"

json_t *object_backend(const char *uuid)
{
    bool first = !strcmp(uuid, DIR1);
    json_t *nodes = first ? json_make("[s,s]", NODE1, NODE2) : json_make("[s]", NODE2);
    return json_make("{s:s,s:s,s:s,s:o,s:s,s:b,s:b}", "uuid", uuid, "name", first ? "dir1" : "dir2",
                     "kind", "dir", "nodes", nodes, "path", first ? "/mnt/a" : "/mnt/b", "backups",
                     first, "images", first);
}

json_t *object_volume1(void)
{
    return json_make("{s:s,s:s,s:i,s:s,s:s,s:s,s:s}", "uuid", VOLUME1, "name", "data1", "size", 2,
                     "status", "available", "backend", DIR1, "host", "node1@dir1", "data",
                     VOLUME1 ".7");
}

json_t *object_snapshot2(void)
{
    return json_make("{s:s,s:s,s:s,s:i,s:s,s:s,s:s}", "uuid", VOLUME2, "name", "before", "volume",
                     VOLUME1, "size", 2, "status", "available", "backend", DIR1, "data",
                     VOLUME2 ".8");
}

json_t *object_backup(const char *uuid, guint64 bytes)
{
    g_autofree char *data = g_strconcat(uuid, ".8", NULL), *sum = g_strnfill(128, 'a');
    return json_make("{s:s,s:s,s:i,s:s,s:s,s:s,s:I,s:s}", "uuid", uuid, "volume", VOLUME1, "size",
                     2, "status", "available", "backend", DIR1, "data", data, "bytes",
                     (json_int_t)bytes, "sum", sum);
}

json_t *object_backup3(void)
{
    json_t *backup = object_backup(BACKUP3, 4096);
    json_object_set_new(backup, "name", json_string("monday"));
    json_object_set_new(backup, "data", json_string(BACKUP3 ".9"));
    return backup;
}

json_t *object_image(const char *uuid, guint64 bytes)
{
    g_autofree char *data = g_strconcat(uuid, ".8", NULL), *sum = g_strnfill(128, 'a');
    g_autofree char *md5 = g_strnfill(32, 'b');
    return json_make("{s:s,s:s,s:s,s:s,s:s,s:s,s:I,s:I,s:s,s:s}", "uuid", uuid, "name", "tick",
                     "status", "active", "backend", DIR1, "data", data, "disk_format", "qcow2",
                     "size", (json_int_t)bytes, "virtual_size", (json_int_t)1536 * MIB(1),
                     "checksum", md5, "os_hash_value", sum);
}

const char *service_key(const char *node)
{
    g_autofree char *host = g_strdup_printf("node%c", node[0]);
    g_autofree char *key = config_storage_service_key(STORAGE_VOLUME, host, DIR1);
    return g_intern_string(key);
}

json_t *object_service(const char *node)
{
    g_autofree char *host = g_strdup_printf("node%c", node[0]);
    return json_make("{s:s,s:i,s:s,s:s,s:s,s:s,s:i}", "uuid", service_key(node), "id",
                     node[0] - '0', "binary", "cinder-volume", "host", host, "backend", DIR1,
                     "node", node, "generation", 1);
}

json_t *object_row1(void)
{
    return json_make("{s:i,s:i,s:i,s:s,s:s,s:s,s:s,s:s}", "id", 9, "created_us", 100, "updated_us",
                     100, "resource_type", "Volume", "resource_id", VOLUME1, "operation",
                     "delete-volume", "status", "deleting", "backend", DIR1);
}

json_t *object_type(const char *spec)
{
    return json_make("{s:s,s:s,s:o}", "uuid", TYPE1, "name", "fast", "extra_specs",
                     spec ? json_make("[s]", spec) : json_array());
}

json_t *object_trash(const char *name)
{
    return json_make("{s:s,s:s}", "backend", DIR1, "name", name);
}

GPtrArray *initial_storage(void)
{
    GPtrArray *all = initial_changes();
    g_ptr_array_add(all, put("backend", DIR1, 1, object_backend(DIR1)));
    g_ptr_array_add(all, put("backend", DIR2, 1, object_backend(DIR2)));
    return all;
}

/* --- calls --- */

struct env *volumed[3];
struct env *schedulers[3];
struct env *storage_cli;

void storage_set_up(GPtrArray *more)
{
    static const char *const nodes[] = {NODE1, NODE2, NODE3};
    GPtrArray *all = initial_storage();
    for (guint i = 0; more && i < more->len; i++) {
        const struct change *change = more->pdata[i];
        g_ptr_array_add(all, put(change->kind, change->key, 1, json_incref(change->object)));
    }
    if (more)
        g_ptr_array_unref(more);
    config_world_init(&world, all);
    config_world_start(&world);
    storage_cli = fake_process(world.world, NODE1, ROLE_CLI);
    for (guint i = 0; i < G_N_ELEMENTS(volumed); i++) {
        volumed[i] = fake_process(world.world, nodes[i], ROLE_VOLUMED);
        schedulers[i] = fake_process(world.world, nodes[i], ROLE_SCHEDULER);
    }
}

void storage_restart(void)
{
    config_world_restart(&world);
    fake_script(world.world, NULL, ROLE_NODED, "announce", fake_answer_nothing, NULL);
    config_world_start(&world);
}

char *storage_ask(const struct env *from, const char *method, json_t *args)
{
    if (!json_object_get(args, "commit_id") && strcmp(method, "beat") != 0) {
        g_autofree char *id = env_uuid(from);
        json_object_set_new(args, "commit_id", json_string(id));
    }
    return ask_wconf(&world, from, method, args);
}

static json_t *parse(char *said_in)
{
    g_autofree char *said = said_in;
    json_t *json = json_parse_limited(said, strlen(said), MIB(1), NULL);
    if (!json)
        g_error("no answer: %s", said);
    return json;
}

guint64 storage_number(char *said, const char *member)
{
    json_autoptr json = parse(said);
    return (guint64)json_integer_value(json_object_get(json, member));
}

guint64 storage_register(guint node)
{
    g_autofree char *host = g_strdup_printf("node%u", node);
    return storage_number(
        storage_ask(volumed[node - 1], "register_storage",
                    json_make("{s:s,s:s,s:s,s:i,s:s}", "binary", "cinder-volume", "host", host,
                              "backend", DIR1, "wire", 1, "version", "0.1")),
        "generation");
}

const char *scheduler_key(guint node)
{
    g_autofree char *host = g_strdup_printf("node%u", node);
    g_autofree char *key = config_storage_service_key(STORAGE_SCHEDULER, host, "");
    return g_intern_string(key);
}

guint64 storage_register_scheduler(guint node)
{
    g_autofree char *host = g_strdup_printf("node%u", node);
    return storage_number(storage_ask(schedulers[node - 1], "register_storage",
                                      json_make("{s:s,s:s,s:i,s:s}", "binary", "cinder-scheduler",
                                                "host", host, "wire", 1, "version", "0.1")),
                          "generation");
}

json_t *storage_of_scheduler(guint node, guint64 generation)
{
    return json_make("{s:s,s:i}", "service", scheduler_key(node), "generation", generation);
}

void storage_accept(const char *operation, const char *resource, guint size)
{
    json_t *args = json_make("{s:s,s:s,s:s,s:i}", "resource_type", "Volume", "operation", operation,
                             "resource", resource, "size", size);
    g_assert_cmpuint(storage_number(storage_ask(storage_cli, "accept_work", args), "serial"), >, 0);
}

static const char *create_on(const char *backend, const char *name)
{
    g_autofree char *id = env_uuid(storage_cli);
    g_autofree char *key = config_work_key(RESOURCE_VOLUME, id);
    json_t *args =
        json_make("{s:s,s:s,s:s,s:s,s:i,s:s}", "commit_id", id, "resource_type", "Volume",
                  "operation", "create-volume", "name", name, "size", 2, "backend", backend);
    g_assert_cmpuint(storage_number(storage_ask(storage_cli, "accept_work", args), "serial"), >, 0);
    return g_intern_string(key);
}

const char *storage_create(const char *name)
{
    return create_on("dir1", name);
}

const char *storage_create_anywhere(const char *name)
{
    return create_on("", name);
}

static json_t *of_service(guint node, guint64 generation)
{
    static const char *const nodes[] = {NODE1, NODE2, NODE3};
    return json_make("{s:s,s:i}", "service", service_key(nodes[node - 1]), "generation",
                     generation);
}

guint64 storage_take(guint node, guint64 generation, const char *key)
{
    return storage_number(storage_ask(volumed[node - 1], "take_work",
                                      with(of_service(node, generation), "key", json_string(key))),
                          "claim");
}

json_t *storage_end(const char *key, guint64 claim)
{
    return json_make("{s:s,s:i}", "key", key, "claim", claim);
}

char *storage_verdicts(char *said)
{
    if (*said != '{')
        return said;
    GString *text = g_string_new(NULL);
    json_autoptr json = parse(said);
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(json, "items"), i, item) {
        const char *why = json_string_value(json_object_get(item, "why"));
        g_string_append_printf(text, "%s%s%s%s", i ? "; " : "",
                               json_string_value(json_object_get(item, "answer")),
                               why && *why ? ": " : "", why ? why : "");
    }
    return g_string_free(text, FALSE);
}

char *storage_end_all(guint node, guint64 generation, json_t *items)
{
    return storage_verdicts(storage_ask(volumed[node - 1], "end_work",
                                        with(of_service(node, generation), "items", items)));
}

void storage_made(const char *key, guint64 generation)
{
    guint64 claim = storage_take(1, generation, key);
    g_autofree char *data = volume_data_name(strchr(key, '/') + 1, claim);
    g_autofree char *said = storage_end_all(
        1, generation, json_make("[o]", with(storage_end(key, claim), "data", json_string(data))));
    g_assert_cmpstr(said, ==, "passed");
}

const struct config *storage_committed(void)
{
    return world.wconf->committed;
}

const struct volume *storage_volume(const char *key)
{
    return config_get(world.wconf->committed, "volume", strchr(key, '/') + 1, NULL);
}

const struct worker *storage_row(const char *key)
{
    return config_get(world.wconf->committed, "worker", key, NULL);
}

guint storage_writes(guint64 since, const char *kind)
{
    guint count = 0;
    g_autoptr(GPtrArray) changes = change_list_new();
    fake_engine_changes(world.engine, since, changes);
    for (guint i = 0; i < changes->len; i++)
        count += !strcmp(((const struct change *)changes->pdata[i])->kind, kind);
    return count;
}

void storage_set_nodes(const char *backend, const char *node)
{
    guint64 version = 0;
    config_get(world.wconf->committed, "backend", backend, &version);
    json_t *object = with(object_backend(backend), "nodes", json_make("[s]", node));
    g_autofree char *said = job_change(&world, 17, "change_backend",
                                       changes_of(put("backend", backend, version, object), NULL));
    g_assert_nonnull(strstr(said, "serial"));
}
