/* See ops_world.h. */
#include "unit/core/world/ops_world_private.h"

#include <string.h>

struct made_fault {
    char *node;
    char *method;
    enum fettle_error code;
    char *message;
    guint count;
};

static void made_fault_free(void *data)
{
    struct made_fault *fault = data;
    g_free(fault->node);
    g_free(fault->method);
    g_free(fault->message);
    g_free(fault);
}

static void change_unref(void *change)
{
    change_free(change);
}

const char *ops_name_of(const struct ops_world *world, const char *node)
{
    return *node ? config_node_name(world->config, node) : "-";
}

void ops_fail(struct ops_world *world, const char *node, const char *method, enum fettle_error code,
              const char *message, guint count)
{
    struct made_fault *fault = g_new(struct made_fault, 1);
    *fault = (struct made_fault){g_strdup(node), g_strdup(method), code, g_strdup(message), count};
    g_ptr_array_add(world->faults, fault);
}

bool ops_faulty(struct ops_world *world, const char *node, const char *method, GError **error)
{
    for (guint i = 0; i < world->faults->len; i++) {
        struct made_fault *fault = world->faults->pdata[i];
        if (!fault->count || strcmp(fault->node, node) || strcmp(fault->method, method))
            continue;
        fault->count--;
        g_set_error_literal(error, FETTLE_ERROR, (int)fault->code, fault->message);
        return true;
    }
    return false;
}

/* --- nodes --- */

static bool listed(const GPtrArray *list, const char *text)
{
    return g_ptr_array_find_with_equal_func((GPtrArray *)list, text, g_str_equal, NULL);
}

/* Those that the records name, unless the node has lost them, and strays. */
static json_t *images_of(const struct ops_world *world, const char *node)
{
    json_t *images = json_array();
    g_autoptr(GPtrArray) all = config_list(world->config, "instance");
    for (guint i = 0; i < all->len && !listed(world->lost, node); i++) {
        const struct instance *instance = all->pdata[i];
        if (!strcmp(instance->primary_node, node) && instance->disks->len)
            json_array_append_new(images, json_string(instance->uuid));
        if (!strcmp(instance->secondary_node, node))
            json_array_append_new(images, json_sprintf("%s %s", instance->uuid, instance->replica));
    }
    for (guint i = 0; i < world->strays->len; i++) {
        const char *stray = world->strays->pdata[i];
        if (g_str_has_prefix(stray, node))
            json_array_append_new(images, json_string(stray + strlen(node) + 1));
    }
    return images;
}

/* The same, with disks. */
static json_t *image_sets_of(const struct ops_world *world, const char *node)
{
    json_autoptr names = images_of(world, node);
    json_t *sets = json_array();
    bool lacks = world->lost_disk && !strcmp(world->lost_disk, node);
    size_t i;
    json_t *name;
    json_array_foreach(names, i, name) {
        g_auto(GStrv) words = g_strsplit(json_string_value(name), " ", 2);
        json_array_append_new(sets,
                              json_make("{ss ss si}", "instance", words[0], "replica",
                                        words[1] ? words[1] : "", "disks", lacks ? 0xfd : 0xff));
    }
    return sets;
}

static json_t *replicas_of(const struct ops_world *world, const char *node)
{
    json_t *list = json_array();
    g_autoptr(GPtrArray) all = config_list(world->config, "replica");
    for (guint i = 0; i < all->len; i++) {
        const struct replica *replica = all->pdata[i];
        if (!strcmp(replica->node, node))
            json_array_append_new(list, json_make("{ss ss sI sb}", "instance", replica->instance,
                                                  "replica", replica->uuid, "generation",
                                                  (json_int_t)replica->generation, "exported",
                                                  (int)!world->export_dead));
    }
    return list;
}

static json_t *sources_of(const char *names)
{
    json_t *list = json_array();
    g_auto(GStrv) words = g_strsplit(names ? names : "", " ", -1);
    for (guint i = 0; words[i]; i++)
        json_array_append_new(list, json_string(words[i]));
    return list;
}

/* To those who know of it. */
static json_t *with_late(const struct ops_world *world, const char *node, json_t *report)
{
    if (g_strcmp0(world->late, node) != 0)
        return report;
    json_t *guest = json_array_get(json_object_get(report, "guests"), 0);
    if (guest) {
        json_object_set_new(guest, "late", json_true());
        json_object_set_new(guest, "age_ms", json_integer(12345));
    }
    json_object_set_new(report, "late",
                        json_make("[{ss si}]", "part", world->late_part, "age_ms", 125000));
    return report;
}

static json_t *report(const struct ops_world *world, const char *node)
{
    guint index = (guint)(node[strlen(node) - 1] - '1') % 3;
    json_int_t memory = (json_int_t)world->memory[index], disk = (json_int_t)world->disk[index];
    json_int_t mib = *world->shared[index] ? (json_int_t)world->shared_mib : 0;
    json_t *guests = json_array();
    if (world->guest_node && !strcmp(world->guest_node, node))
        json_array_append_new(
            guests, json_make("{ss sI ss ss si}", "instance", world->guest_instance, "generation",
                              (json_int_t)world->guest_generation, "state", world->guest_state,
                              "mirror", world->guest_mirror ? world->guest_mirror : "none",
                              "io_errors", (int)world->io_errors));
    if (world->guest_name && json_array_size(guests))
        json_object_set_new(json_array_get(guests, 0), "name", json_string(world->guest_name));
    if (world->io_stop && json_array_size(guests))
        json_object_set_new(json_array_get(guests, 0), "io_stop", json_string(world->io_stop));
    if (world->guest_held && json_array_size(guests))
        json_object_set_new(json_array_get(guests, 0), "held", json_string(world->guest_held));
    json_t *told = json_make(
        "{ss sI sI sI sI so so so so s[s] ss ss sI sI so sb}", "node", node, "memory_total", memory,
        "memory_free", memory - (json_int_t)world->memory_used[index], "disk_total", disk,
        "disk_free", world->full[index] ? (json_int_t)0 : disk, "guests", guests, "replicas",
        replicas_of(world, node), "images", images_of(world, node), "image_sets",
        image_sets_of(world, node), "bridges", world->bridges[index], "qemu_version",
        world->qemu[index], "shared", world->shared[index], "shared_total", mib, "shared_free", mib,
        "sources", sources_of(world->sources[index]), "sources_whole",
        world->sources[index] ? 1 : 0);
    if (world->trial[index])
        json_object_set_new(
            told, "faults",
            json_make("[{ss ss sb}]", "kind", "disks", "text", world->trial[index], "fresh", 1));
    return with_late(world, node, told);
}

/* A replica_open that is to keep images aside. */
static bool keeps(const json_t *args)
{
    return json_integer_value(json_object_get(args, "keep")) > 0;
}

static void trace_call(struct ops_world *world, const struct rpc_request *request, const char *node)
{
    const json_t *args = request->args;
    const json_t *instance = json_object_get(args, "instance");
    json_int_t generation = json_integer_value(
        json_object_get(json_is_object(instance) ? instance : args, "generation"));
    g_string_append_printf(world->trace, "%s %s", ops_name_of(world, node), request->name);
    bool anew = generation > 0 || strcmp(request->name, "disks_create");
    if (anew && (json_is_object(instance) || json_object_get(args, "generation")))
        g_string_append_printf(world->trace, " g%" JSON_INTEGER_FORMAT, generation);
    if (json_object_get(args, "target"))
        g_string_append(world->trace, " mirror");
    if (json_is_false(json_object_get(args, "full")))
        g_string_append(world->trace, " no-copy");
    if (json_is_false(json_object_get(args, "run")))
        g_string_append(world->trace, " paused");
    if (keeps(args))
        g_string_append(world->trace, " keep");
    if (json_is_true(json_object_get(args, "promote")))
        g_string_append(world->trace, " promote");
    if (json_is_true(json_object_get(args, "equal")))
        g_string_append(world->trace, " equal");
    if (json_string_length(json_object_get(args, "migration")) > 0 && json_is_object(instance))
        g_string_append(world->trace, " incoming");
    if (json_is_false(json_object_get(args, "live")))
        g_string_append(world->trace, " paused");
    if (json_is_true(json_object_get(args, "since")))
        g_string_append(world->trace, " since");
    if (json_is_true(json_object_get(args, "set_aside")))
        g_string_append(world->trace, " set-aside");
    if (json_string_length(json_object_get(args, "os_type")) > 0)
        g_string_append_printf(world->trace, " %s",
                               json_string_value(json_object_get(args, "os_type")));
    if (!strcmp(request->name, "disk_grow"))
        g_string_append_printf(world->trace, " %" JSON_INTEGER_FORMAT ":%" JSON_INTEGER_FORMAT,
                               json_integer_value(json_object_get(args, "disk")),
                               json_integer_value(json_object_get(args, "size")));
    if (!strcmp(request->name, "disks_renew"))
        g_string_append_printf(world->trace, " %" JSON_INTEGER_FORMAT " of %zu",
                               json_integer_value(json_object_get(args, "first")),
                               json_array_size(json_object_get(args, "disks")));
    if (json_string_length(json_object_get(args, "replica")) > 0 &&
        g_str_has_prefix(request->name, "disk"))
        g_string_append(world->trace, " replica");
    const json_t *asked = json_array_get(json_object_get(args, "subjects"), 0);
    if (asked)
        g_string_append_printf(world->trace, " job %" JSON_INTEGER_FORMAT,
                               json_integer_value(json_object_get(asked, "dead_job")));
    if (json_array_size(json_object_get(args, "volumes")))
        g_string_append_printf(world->trace, " with %zu volume",
                               json_array_size(json_object_get(args, "volumes")));
    const json_t *volume = json_object_get(args, "volume");
    if (volume)
        g_string_append_printf(world->trace, " at %" JSON_INTEGER_FORMAT " %s",
                               json_integer_value(json_object_get(volume, "slot")),
                               json_string_value(json_object_get(volume, "path")));
    g_string_append_c(world->trace, '\n');
}

static json_t *start_guest(struct ops_world *world, const json_t *args, const char *node)
{
    const json_t *instance = json_object_get(args, "instance");
    for (int i = 1; i <= 3; i++) {
        g_autofree char *uuid = g_strdup_printf("00000000-0000-4000-8000-00000000000%d", i);
        if (!strcmp(uuid, node))
            world->guest_node = i == 1 ? NODE1 : i == 2 ? NODE2 : NODE3;
    }
    g_free(world->guest_instance);
    world->guest_instance = g_strdup(json_string_value(json_object_get(instance, "uuid")));
    world->guest_generation = (guint64)json_integer_value(json_object_get(instance, "generation"));
    world->guest_state = json_is_false(json_object_get(args, "run")) ? "paused" : "running";
    return json_object();
}

/* As the node daemon does at READY: in-sync is on record before it is said. */
static json_t *wait_mirror(struct ops_world *world, const json_t *args)
{
    if (world->mirror_steps) {
        world->mirror_steps--;
        guint progress = world->mirror_steps < 3 ? 90 - world->mirror_steps * 30 : 0;
        return json_make("{ss si}", "state", "syncing", "progress", (int)progress);
    }
    if (world->mirror)
        return json_make("{ss}", "state", world->mirror);
    const struct instance *instance = config_get(
        world->config, "instance", json_string_value(json_object_get(args, "instance")), NULL);
    const struct replica *replica = config_get(world->config, "replica", instance->replica, NULL);
    if (replica && replica->state == REPLICA_SYNCING) {
        record_autoptr(replica) copy = replica_copy(replica);
        copy->state = REPLICA_IN_SYNC;
        copy->sync++;
        ops_put(world, "replica", copy->uuid, replica_to_json(copy));
    }
    return json_make("{ss}", "state", "ready");
}

/* --- migration, as node daemon and master do it between them --- */

static void set_text(json_t *object, const char *field, const char *text)
{
    json_object_set_new(object, field, json_string(text));
}

/* set_migrated: the guest's process has ended here. */
static void record_moved(struct ops_world *world, const struct instance *instance)
{
    json_t *moved = instance_to_json(instance);
    world->guest_node = NULL;
    if (*instance->replica) {
        g_autofree char *old = g_strdup(instance->replica);
        ops_put(world, "replica", instance->migration,
                json_make("{ss ss ss sI si ss}", "uuid", instance->migration, "instance",
                          instance->uuid, "node", instance->primary_node, "generation",
                          (json_int_t)instance->generation + 1, "sync", 1, "state",
                          world->migration_unclean ? "stale" : "syncing"));
        ops_delete_object(world, "replica", old);
        set_text(moved, "replica", instance->migration);
        set_text(moved, "secondary_node", instance->primary_node);
    }
    set_text(moved, "primary_node", instance->migration_node);
    set_text(moved, "holder", instance->migration_node);
    json_object_set_new(moved, "generation", json_integer((json_int_t)instance->generation + 1));
    g_autofree char *uuid = g_strdup(instance->uuid);
    ops_put(world, "instance", uuid, moved);
}

static bool is_moved(const struct instance *instance)
{
    return !strcmp(instance->primary_node, instance->migration_node);
}

static json_t *end_migration(struct ops_world *world, const struct instance *instance,
                             const char *end)
{
    if (!strcmp(end, "moved") && !is_moved(instance))
        record_moved(world, instance);
    else if (world->migration_window && *instance->replica && strcmp(end, "moved")) {
        g_autofree char *replica = g_strdup(instance->replica);
        ops_set(world, "replica", replica, "sync", json_integer(4));
        ops_set(world, "replica", replica, "state", json_string("stale"));
    }
    return json_make("{ss si ss}", "state", end, "downtime_ms", 87, "why",
                     !strcmp(end, "failed") ? "the connection was lost" : "");
}

static json_t *wait_migration(struct ops_world *world, const json_t *args, bool cancel)
{
    const struct instance *instance = config_get(
        world->config, "instance", json_string_value(json_object_get(args, "instance")), NULL);
    g_assert_cmpstr(json_string_value(json_object_get(args, "migration")), ==, instance->migration);
    if (cancel)
        return end_migration(world, instance,
                             is_moved(instance) || world->migration_late ? "moved" : "canceled");
    if (!world->migration_steps)
        return end_migration(world, instance,
                             world->migration_end ? world->migration_end : "moved");
    world->migration_steps--;
    guint sent = world->migration_steps < 3 ? 300 - 100 * world->migration_steps : 0;
    return json_make("{ss si si}", "state", "copying", "transferred_mib", (int)sent,
                     "remaining_mib", (int)(400 - sent));
}

static json_t *answer_migration(struct ops_world *world, const struct rpc_request *request,
                                const char *node, GError **error)
{
    const char *method = request->name;
    if (!strcmp(method, "incoming_open")) {
        world->incoming = true;
        return json_make("{s:O, s:s, s:i, s:s}", "migration",
                         json_object_get(json_object_get(request->args, "instance"), "migration"),
                         "address", "10.0.0.2", "port", 4000, "psk",
                         "0123456789abcdef0123456789abcdef");
    }
    if (!strcmp(method, "incoming_close")) {
        world->incoming = false;
        if (!g_strcmp0(world->guest_state, "incoming"))
            world->guest_node = NULL;
    } else if (strcmp(method, "migration_start"))
        return wait_migration(world, request->args, !strcmp(method, "migration_cancel"));
    return json_object();
}

/* What a node finds when it is to remove what is half made. */
static json_t *undo_disks(struct ops_world *world, const json_t *args, const char *node)
{
    bool process = !g_strcmp0(world->guest_node, node);
    bool lacks = world->lost_disk && !strcmp(world->lost_disk, node);
    bool whole = !listed(world->lost, node) && !lacks;
    bool stays = process || whole || json_is_true(json_object_get(args, "look"));
    return json_make("{ss sI sb sb}", "state", process ? world->guest_state : "absent",
                     "generation", (json_int_t)world->guest_generation, "whole", (int)whole,
                     "removed", (int)!stays);
}

static json_t *answer_node(const struct rpc_request *request, const char *node, void *data,
                           GError **error)
{
    struct ops_world *world = data;
    const char *method = request->name;
    if (!strcmp(method, "node_report"))
        return ops_faulty(world, node, method, error) ? NULL : report(world, node);
    if (!strcmp(method, "node_alive"))
        return ops_faulty(world, node, method, error) ? NULL : json_object();
    if (strcmp(method, "mirror_wait") && strcmp(method, "image_info") &&
        strcmp(method, "disks_progress") && strcmp(method, "migration_wait"))
        trace_call(world, request, node);
    if (ops_faulty(world, node, method, error))
        return NULL;
    if (strstr(method, "migration_") || strstr(method, "incoming_"))
        return answer_migration(world, request, node, error);
    if (!strcmp(method, "guest_start"))
        return start_guest(world, request->args, node);
    if (!strcmp(method, "mirror_wait"))
        return wait_mirror(world, request->args);
    if (!strcmp(method, "guest_stop")) {
        world->guest_node = NULL;
        return world->sound
                   ? json_make("{sb ss}", "clean", !world->stop_unclean, "sound", world->sound)
                   : json_make("{sb}", "clean", !world->stop_unclean);
    }
    if (!strcmp(method, "replica_leave"))
        return json_make("{s:O, s:b}", "replica", json_object_get(request->args, "replica"),
                         "equal", !world->leave_unequal);
    if (!strcmp(method, "volume_detach"))
        return json_make("{sb}", "gone", !world->keeps_volume);
    if (!strcmp(method, "collect"))
        return json_make("{ss}", "node", node);
    if (!strcmp(method, "disks_undo"))
        return undo_disks(world, request->args, node);
    if (!strcmp(method, "disks_progress"))
        return json_make("{sb si si}", "running", 1, "done_mib", (int)(10 * ++world->looks),
                         "total_mib", 100);
    const char *image = json_string_value(json_object_get(request->args, "os_type"));
    if (!strcmp(method, "image_info") &&
        (!world->image_bytes || (!g_strcmp0(image, world->no_image) &&
                                 (!world->no_image_on || !strcmp(world->no_image_on, node)))))
        fettle_set_error(error, UNKNOWN_ENTITY, "no such file");
    else if (!strcmp(method, "image_info"))
        return json_make("{s:I}", "bytes", (json_int_t)world->image_bytes);
    else if (!strcmp(method, "replica_open"))
        return json_make("{s:O, s:b, s:s, s:s, s:[{s:i, s:s}]}", "replica",
                         json_object_get(request->args, "replica"), "kept",
                         keeps(request->args) && !world->no_keep, "address", "10.0.0.2", "psk",
                         "0123456789abcdef0123456789abcdef", "disks", "port", 4000, "name", "x");
    else
        return json_object();
    return NULL;
}

/* --- the world --- */

static void put_node(struct ops_world *world, const char *uuid, const char *name, const char *ip)
{
    ops_put(
        world, "node", uuid,
        json_make("{ss ss ss ss}", "uuid", uuid, "name", name, "primary_ip", ip, "group", GROUP));
}

static void script(struct ops_world *world)
{
    static const char *const methods[] = {
        "node_report",      "image_info",    "disks_create",   "disks_remove",    "disks_undo",
        "replica_open",     "replica_close", "guest_start",    "guest_stop",      "guest_reset",
        "mirror_attach",    "mirror_detach", "mirror_wait",    "disk_grow",       "disks_renew",
        "disks_progress",   "incoming_open", "incoming_close", "migration_start", "migration_wait",
        "migration_cancel", "work_cancel",   "node_alive",     "replica_leave",   "collect",
        "volume_attach",    "volume_detach"};
    for (guint i = 0; i < G_N_ELEMENTS(methods); i++)
        fake_script(world->world, NULL, ROLE_NODED, methods[i], answer_node, world);
    ops_script_wconfd(world);
}

struct ops_world *ops_world_new(void)
{
    struct ops_world *world = g_new0(struct ops_world, 1);
    world->world = fake_world_new();
    fake_world_set_master(world->world, NODE1);
    world->env = fake_process(world->world, NODE1, ROLE_JOB);
    world->config = config_new();
    world->history = g_ptr_array_new_with_free_func(change_unref);
    world->trace = g_string_new(NULL);
    world->faults = g_ptr_array_new_with_free_func(made_fault_free);
    world->pending = g_ptr_array_new();
    world->lost = g_ptr_array_new();
    world->strays = g_ptr_array_new_with_free_func(g_free);
    config_set_position(world->config, 1, 0);
    for (guint i = 0; i < 3; i++) {
        world->memory[i] = 4096;
        world->disk[i] = 10000;
        world->bridges[i] = "br0";
        world->qemu[i] = "7.2.22";
        world->shared[i] = SHARED;
    }
    ops_put(world, "cluster", CLUSTER,
            json_make("{ss ss ss}", "uuid", CLUSTER, "name", "c", "master_node", NODE1));
    ops_put(world, "nodegroup", GROUP, json_make("{ss ss}", "uuid", GROUP, "name", "default"));
    put_node(world, NODE1, "node1", "10.0.0.1");
    put_node(world, NODE2, "node2", "10.0.0.2");
    put_node(world, NODE3, "node3", "10.0.0.3");
    fake_livelock(world->world, NODE1, LIVELOCK, LIVELOCK_ALIVE);
    script(world);
    return world;
}

void ops_world_free(struct ops_world *world)
{
    fake_world_free(world->world);
    config_free(world->config);
    g_ptr_array_unref(world->history);
    g_ptr_array_unref(world->faults);
    g_ptr_array_unref(world->pending);
    g_ptr_array_unref(world->lost);
    g_ptr_array_unref(world->strays);
    g_string_free(world->trace, TRUE);
    g_free(world->guest_instance);
    job_free(world->done);
    g_free(world);
}

void ops_put_web(struct ops_world *world, const char *replica_state, bool running)
{
    bool clean = !running && replica_state && !strcmp(replica_state, "in-sync");
    ops_put(world, "instance", WEB,
            json_make("{ss ss ss ss si s[{ss si}] ss ss ss si ss sb}", "uuid", WEB, "name", "web1",
                      "admin_state", running ? "up" : "down", "disk_template", "mirror", "memory",
                      512, "disks", "uuid", "00000000-0000-4000-8000-0000000000e1", "size", 1000,
                      "primary_node", NODE1, "secondary_node", replica_state ? NODE2 : "",
                      "replica", replica_state ? REPLICA : "", "generation", 1, "holder",
                      running ? NODE1 : "", "clean", (int)clean));
    if (replica_state)
        ops_put(world, "replica", REPLICA,
                json_make("{ss ss ss si si ss}", "uuid", REPLICA, "instance", WEB, "node", NODE2,
                          "generation", 1, "sync", 3, "state", replica_state));
    if (!running)
        return;
    world->guest_node = NODE1;
    world->guest_generation = 1;
    world->guest_state = "running";
    g_free(world->guest_instance);
    world->guest_instance = g_strdup(WEB);
}

void ops_add_disk(struct ops_world *world)
{
    json_t *web = config_object_json(world->config, "instance", WEB);
    json_array_append_new(
        json_object_get(web, "disks"),
        json_make("{ss si}", "uuid", "00000000-0000-4000-8000-0000000000e2", "size", 1000));
    ops_put(world, "instance", WEB, web);
}

const struct instance *ops_web(const struct ops_world *world)
{
    return config_get(world->config, "instance", WEB, NULL);
}

void ops_node_offline(struct ops_world *world, const char *node)
{
    ops_set(world, "node", node, "offline", json_true());
    fake_cut(world->world, node, true);
}

/* --- running --- */

void ops_submit(struct ops_world *world, json_t *opcodes)
{
    json_t *ops = json_array();
    size_t i;
    json_t *opcode;
    json_array_foreach(opcodes, i, opcode)
        json_array_append_new(ops, json_make("{s:O, s:s}", "input", opcode, "status", "queued"));
    json_decref(opcodes);
    json_t *job = json_make("{s:i, s:o, s:s, s:b, s:i, s:i}", "id", JOB, "ops", ops, "status",
                            "waiting", "started", 1, "history", 1, "epoch", 5);
    g_autofree char *text = json_to_text(job);
    fake_file_put(world->world, NODE1, FILE_QUEUE, "job-17", text);
    ops_put(world, "job", "17", job);
}

static void run_task(void *data)
{
    struct ops_world *world = data;
    g_autoptr(GError) error = NULL;
    runner_run(world->env, JOB, LIVELOCK, &error);
    g_assert_no_error(error);
}

static const char *result_text(struct ops_world *world)
{
    static char *text;
    g_free(text);
    const struct job_op *op = world->done->ops->pdata[0];
    text = op->result ? json_dumps(op->result, JSON_ENCODE_ANY) : strdup("null");
    char *copy = g_strdup(text);
    free(text);
    text = copy;
    return text;
}

const char *ops_run(struct ops_world *world, json_t *opcodes)
{
    ops_submit(world, opcodes);
    fake_run(world->env, run_task, world);
    json_autoptr file = json_loads(fake_file(world->world, NODE1, FILE_QUEUE, "job-17"), 0, NULL);
    job_free(world->done);
    world->done = job_parse(file, RECORD_KEEP, NULL);
    g_assert_nonnull(world->done);
    return result_text(world);
}

const char *ops_run_one(struct ops_world *world, json_t *opcode)
{
    return ops_run(world, json_make("[o]", opcode));
}

char *ops_log(const struct ops_world *world, guint op)
{
    const struct job_op *row = world->done->ops->pdata[op];
    GString *lines = g_string_new(NULL);
    size_t i;
    json_t *entry;
    json_array_foreach(row->log, i, entry) {
        const json_t *message = json_array_get(entry, 3);
        if (json_is_string(message))
            g_string_append_printf(lines, "%s\n", json_string_value(message));
        else
            g_string_append_printf(lines, "%s: %d of %d %s\n",
                                   json_string_value(json_object_get(message, "what")),
                                   (int)json_integer_value(json_object_get(message, "done")),
                                   (int)json_integer_value(json_object_get(message, "total")),
                                   json_string_value(json_object_get(message, "unit")));
    }
    return g_string_free(lines, FALSE);
}

void ops_expect(struct ops_world *world, const char *trace)
{
    g_assert_cmpstr(world->trace->str, ==, trace);
    g_string_truncate(world->trace, 0);
}
