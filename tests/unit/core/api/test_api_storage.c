/* Snapshots, backups, types, services, back ends and quotas as stock clients of block storage v3
 * ask for them, over a real wconfd. core/api/volume_*.c */
#include <string.h>

#include "unit/core/world/api_world.h"
#include "unit/core/world/routes_seen.h"

#define NOBODY "00000000-0000-4000-8000-00000000dead"

static json_t *about(guint status, const char *method, const char *plural, const char *id,
                     const char *rest, const char *body)
{
    g_autofree char *path = g_strdup_printf("/%s/%s%s", plural, id, rest);
    return api_get(status, method, path, body);
}

#define done(...) json_decref(about(__VA_ARGS__))

static char *made(const char *path, const char *wrapper, const char *format, const char *id)
{
    g_autoptr(GString) body = g_string_new(format);
    g_string_replace(body, "ID", id, 0);
    json_autoptr json = api_get(202, "POST", path, body->str);
    g_autofree char *at = g_strconcat(wrapper, ".id", NULL);
    return api_text(json, at);
}

static void test_snapshots(void)
{
    api_set_up(NULL);
    api_at(41);
    const char *volume = api_volume("data9");
    g_autofree char *id =
        made("/snapshots", "snapshot",
             "{\"snapshot\": {\"volume_id\": \"ID\", \"name\": \"s1\", \"description\": null, "
             "\"force\": false, \"metadata\": {\"k\": \"v\"}}}",
             volume);
    api_work();
    json_autoptr shown = about(200, "GET", "snapshots", id, "", "");
    api_says(shown, "snapshot.status", "available");
    api_says(shown, "snapshot.volume_id", volume);
    api_says(shown, "snapshot.metadata", "{\"k\":\"v\"}");
    api_says(shown, "snapshot.user_id", "user-of-admin");
    api_says(shown, "snapshot.os-extended-snapshot-attributes:progress", "100%");
    json_autoptr list = api_get(200, "GET", "/snapshots?volume_id=" NOBODY, "");
    api_says(list, "snapshots", "[]");
    json_autoptr detail = api_get(200, "GET", "/snapshots/detail?name=s1", "");
    api_says(detail, "snapshots.0.os-extended-snapshot-attributes:project_id", PROJECT1);
    json_autoptr renamed =
        about(200, "PUT", "snapshots", id, "", "{\"snapshot\": {\"name\": \"s2\"}}");
    api_says(renamed, "snapshot.name", "s2");
    done(200, "POST", "snapshots", id, "/metadata", "{\"metadata\": {\"a\": \"1\"}}");
    done(200, "PUT", "snapshots", id, "/metadata", "{\"metadata\": {\"a\": \"2\"}}");
    done(200, "PUT", "snapshots", id, "/metadata/b", "{\"meta\": {\"b\": \"3\"}}");
    done(200, "DELETE", "snapshots", id, "/metadata/b", "");
    json_autoptr one = about(200, "GET", "snapshots", id, "/metadata/a", "");
    api_says(one, "meta.a", "2");
    json_autoptr words = about(200, "GET", "snapshots", id, "/metadata", "");
    api_says(words, "metadata", "{\"a\":\"2\"}");
    json_autoptr kept = about(400, "DELETE", "volumes", volume, "", "");
    done(400, "POST", "volumes", volume, "/action", "{\"os-force_delete\": null}");
    json_autoptr still = about(200, "GET", "volumes", volume, "", "");
    api_says(still, "volume.status", "available");
    g_autofree char *of_snapshot =
        made("/volumes", "volume", "{\"volume\": {\"snapshot_id\": \"ID\"}}", id);
    json_autoptr copy = about(200, "GET", "volumes", of_snapshot, "", "");
    api_says(copy, "volume.snapshot_id", id);
    api_says(copy, "volume.size", "1");
    done(400, "POST", "snapshots", id, "/action", "{\"os-force_delete\": null}"); /* it is read */
    json_autoptr read = about(200, "GET", "snapshots", id, "", "");
    api_says(read, "snapshot.status", "available");
    api_work();
    done(202, "POST", "snapshots", id, "/action", "{\"os-reset_status\": {\"status\": \"error\"}}");
    done(400, "POST", "snapshots", id, "/action", "{\"os-reset_status\": {}}");
    done(202, "POST", "snapshots", id, "/action", "{\"os-force_delete\": null}");
    api_work();
    done(404, "GET", "snapshots", id, "", "");
    g_autofree char *other =
        made("/snapshots", "snapshot", "{\"snapshot\": {\"volume_id\": \"ID\"}}", volume);
    api_work();
    done(202, "DELETE", "snapshots", other, "", "");
    api_work();
    done(202, "DELETE", "volumes", volume, "", "");
    api_tear_down();
}

/* By the id of the snapshot, whatever it is called by now, and however many are called like it. */
static void test_backup_of_snapshot(void)
{
    api_set_up(NULL);
    g_autofree char *volume =
        made("/volumes", "volume", "{\"volume\": {\"size\": 1, \"name\": \"data9\"}}", "");
    api_work();
    static const char same[] = "{\"snapshot\": {\"volume_id\": \"ID\", \"name\": \"same\"}}";
    g_autofree char *first = made("/snapshots", "snapshot", same, volume);
    api_work();
    g_autofree char *second = made("/snapshots", "snapshot", same, volume);
    api_work();
    g_autofree char *body = g_strdup_printf(
        "{\"backup\": {\"volume_id\": \"%s\", \"snapshot_id\": \"%s\"}}", volume, second);
    g_autofree char *id = made("/backups", "backup", body, "");
    api_work();
    json_autoptr shown = about(200, "GET", "backups", id, "", "");
    api_says(shown, "backup.snapshot_id", second);
    g_autofree char *path = g_strconcat("/backups/detail?snapshot_id=", second, NULL);
    json_autoptr found = api_get(200, "GET", path, "");
    api_says(found, "backups.0.id", id);
    json_decref(
        about(200, "PUT", "snapshots", second, "", "{\"snapshot\": {\"name\": \"other\"}}"));
    json_autoptr again = about(200, "GET", "backups", id, "", "");
    api_says(again, "backup.snapshot_id", second);
    api_be("other");
    json_decref(api_get(404, "POST", "/backups", body));
    api_tear_down();
}

static void test_backups(void)
{
    api_set_up(NULL);
    api_at(56);
    g_autofree char *volume =
        made("/volumes", "volume",
             "{\"volume\": {\"size\": 1, \"name\": \"data9\", \"metadata\": {\"k\": \"v\"}}}", "");
    api_work();
    g_autofree char *id =
        made("/backups", "backup",
             "{\"backup\": {\"volume_id\": \"ID\", \"name\": \"b1\", \"container\": null, "
             "\"incremental\": false, \"force\": false, \"snapshot_id\": null}}",
             volume);
    json_autoptr busy = about(200, "GET", "volumes", volume, "", "");
    api_says(busy, "volume.status", "backing-up");
    api_work();
    json_autoptr shown = about(200, "GET", "backups", id, "", "");
    api_says(shown, "backup.status", "available");
    api_says(shown, "backup.volume_id", volume);
    api_says(shown, "backup.container", "dir1");
    api_says(shown, "backup.is_incremental", "false");
    api_says(shown, "backup.user_id", "user-of-admin");
    json_autoptr list = api_get(200, "GET", "/backups?name=b1", "");
    api_says(list, "backups.0.id", id);
    json_autoptr detail = api_get(200, "GET", "/backups/detail?status=error", "");
    api_says(detail, "backups", "[]");
    json_autoptr renamed = about(200, "PUT", "backups", id, "", "{\"backup\": {\"name\": \"b2\"}}");
    api_says(renamed, "backup.name", "b2");
    json_autoptr restored = about(202, "POST", "backups", id, "/restore",
                                  "{\"restore\": {\"volume_id\": null, \"name\": null}}");
    g_autofree char *copy = api_text(restored, "restore.volume_id");
    api_says(restored, "restore.backup_id", id);
    json_autoptr restoring = about(200, "GET", "volumes", copy, "", "");
    api_says(restoring, "volume.status", "restoring-backup");
    api_says(restoring, "volume.metadata", "{\"k\":\"v\"}");
    api_work();
    g_autofree char *body = g_strdup_printf("{\"restore\": {\"volume_id\": \"%s\"}}", volume);
    json_autoptr over = about(202, "POST", "backups", id, "/restore", body);
    api_says(over, "restore.volume_name", "data9");
    api_work();
    g_autofree char *of_backup =
        made("/volumes", "volume",
             "{\"volume\": {\"backup_id\": \"ID\", \"name\": \"data8\", \"size\": 2, "
             "\"metadata\": {\"a\": \"1\"}}}",
             id);
    json_autoptr made_of = about(200, "GET", "volumes", of_backup, "", "");
    api_says(made_of, "volume.status", "restoring-backup");
    api_says(made_of, "volume.name", "data8");
    api_says(made_of, "volume.size", "2");
    api_says(made_of, "volume.metadata", "{\"a\":\"1\"}");
    api_work();
    json_autoptr whole = about(200, "GET", "volumes", of_backup, "", "");
    api_says(whole, "volume.status", "available");
    g_autofree char *from = g_strdup_printf("{\"volume\": {\"backup_id\": \"%s\"}}", id);
    api_at(46);
    api_refused(400, "volume.backup_id: a volume is made of a backup from 3.47 on", "POST",
                "/volumes", from);
    api_at(56);
    api_be("other");
    json_decref(api_get(404, "POST", "/volumes", from));
    api_be("admin");
    g_autofree char *incremental =
        g_strdup_printf("{\"backup\": {\"volume_id\": \"%s\", \"incremental\": true}}", volume);
    api_refused(400,
                "Invalid backup: No backups available to do an incremental backup; each backup "
                "here is whole.",
                "POST", "/backups", incremental);
    done(202, "POST", "backups", id, "/action", "{\"os-reset_status\": {\"status\": \"error\"}}");
    done(202, "DELETE", "backups", id, "", "");
    done(202, "POST", "backups", id, "/action", "{\"os-force_delete\": null}");
    api_work();
    done(404, "GET", "backups", id, "", "");
    api_tear_down();
}

static void test_types(void)
{
    api_set_up(NULL);
    json_autoptr type = api_get(200, "POST", "/types",
                                "{\"volume_type\": {\"name\": \"fast\", \"description\": null, "
                                "\"os-volume-type-access:is_public\": true, \"extra_specs\": "
                                "{\"volume_backend_name\": \"dir1\"}}}");
    g_autofree char *id = api_text(type, "volume_type.id");
    api_says(type, "volume_type.is_public", "true");
    api_says(type, "volume_type.extra_specs", "{\"volume_backend_name\":\"dir1\"}");
    api_refused(409, "volume type \"fast\" exists already", "POST", "/types",
                "{\"volume_type\": {\"name\": \"fast\"}}");
    json_autoptr updated = about(200, "PUT", "types", id, "",
                                 "{\"volume_type\": {\"name\": \"faster\", \"description\": \"d\", "
                                 "\"is_public\": false}}");
    api_says(updated, "volume_type.name", "faster");
    api_says(updated, "volume_type.is_public", "false");
    api_says(updated, "volume_type.os-volume-type-access:is_public", "(absent)");
    json_autoptr none = api_get(200, "GET", "/types", "");
    api_says(none, "volume_types", "[]");
    json_autoptr all = api_get(200, "GET", "/types?is_public=None", "");
    api_says(all, "volume_types.0.id", id);
    api_be("member");
    done(404, "GET", "types", id, "", "");
    api_be("admin");
    done(202, "POST", "types", id, "/action",
         "{\"addProjectAccess\": {\"project\": \"" PROJECT1 "\"}}");
    done(409, "POST", "types", id, "/action",
         "{\"addProjectAccess\": {\"project\": \"" PROJECT1 "\"}}");
    json_autoptr access = about(200, "GET", "types", id, "/os-volume-type-access", "");
    api_says(access, "volume_type_access.0.project_id", PROJECT1);
    api_be("member");
    json_autoptr seen = about(200, "GET", "types", id, "", "");
    api_says(seen, "volume_type.extra_specs", "(absent)");
    api_be("admin");
    done(202, "POST", "types", id, "/action",
         "{\"removeProjectAccess\": {\"project\": \"" PROJECT1 "\"}}");
    done(404, "POST", "types", id, "/action",
         "{\"removeProjectAccess\": {\"project\": \"" PROJECT1 "\"}}");
    json_autoptr added =
        about(200, "POST", "types", id, "/extra_specs", "{\"extra_specs\": {\"a:b\": \"1\"}}");
    api_says(added, "extra_specs", "{\"a:b\":\"1\"}");
    json_autoptr set = about(200, "PUT", "types", id, "/extra_specs/a:b", "{\"a:b\": \"2\"}");
    api_says(set, "a:b", "2");
    done(400, "PUT", "types", id, "/extra_specs/a:b", "{\"c\": \"2\"}");
    json_autoptr spec = about(200, "GET", "types", id, "/extra_specs/a:b", "");
    api_says(spec, "a:b", "2");
    done(202, "DELETE", "types", id, "/extra_specs/a:b", "");
    done(404, "GET", "types", id, "/extra_specs/a:b", "");
    json_autoptr specs = about(200, "GET", "types", id, "/extra_specs", "");
    api_says(specs, "extra_specs", "{\"volume_backend_name\":\"dir1\"}");
    json_decref(api_get(404, "GET", "/types/default", ""));
    done(200, "PUT", "types", id, "", "{\"volume_type\": {\"is_public\": true}}");
    g_autofree char *volume =
        made("/volumes", "volume", "{\"volume\": {\"size\": 1, \"volume_type\": \"ID\"}}", id);
    json_autoptr in_use = about(400, "DELETE", "types", id, "", "");
    done(202, "DELETE", "volumes", volume, "", ""); /* nobody has begun: it is gone */
    done(202, "DELETE", "types", id, "", "");
    done(404, "GET", "types", id, "", "");
    api_tear_down();
}

static void test_default_type(void)
{
    json_t *cluster = NULL;
    g_autoptr(GPtrArray) all = initial_changes();
    for (guint i = 0; i < all->len; i++) {
        const struct change *change = all->pdata[i];
        if (!strcmp(change->kind, "cluster"))
            cluster = json_deep_copy(change->object);
    }
    const char *key = CLUSTER;
    api_set_up(changes_of(
        put("volume_type", TYPE1, 1, object_type(NULL)),
        put("cluster", key, 1, with(cluster, "default_volume_type", json_string("fast"))), NULL));
    json_autoptr type = api_get(200, "GET", "/types/default", "");
    api_says(type, "volume_type.id", TYPE1);
    api_tear_down();
}

/* A project may have another one. */
static void test_default_types_of_projects(void)
{
    api_set_up(changes_of(put("volume_type", TYPE1, 1, object_type(NULL)), NULL));
    api_at(61);
    json_decref(api_get(404, "GET", "/volume/v3/default-types", ""));
    api_at(62);
    json_autoptr none = api_get(200, "GET", "/volume/v3/default-types", "");
    api_says(none, "default_types", "[]");
    api_refused(404, "Default type for project " PROJECT1 " not found.", "GET",
                "/volume/v3/default-types/" PROJECT1, "");
    api_refused(404, "Volume type slow could not be found.", "PUT",
                "/volume/v3/default-types/" PROJECT1,
                "{\"default_type\": {\"volume_type\": \"slow\"}}");
    api_refused(404, "Project id: 0abc not found.", "PUT", "/volume/v3/default-types/0abc",
                "{\"default_type\": {\"volume_type\": \"fast\"}}");
    json_autoptr set = api_get(200, "PUT", "/volume/v3/default-types/" PROJECT1,
                               "{\"default_type\": {\"volume_type\": \"fast\"}}");
    api_says(set, "default_type.volume_type_id", TYPE1);
    json_decref(api_get(200, "GET", "/volume/v3/default-types/" PROJECT1, ""));
    json_autoptr list = api_get(200, "GET", "/volume/v3/default-types", "");
    api_says(list, "default_types.0.project_id", PROJECT1);
    api_be("member");
    json_decref(api_get(403, "GET", "/volume/v3/default-types", ""));
    json_autoptr type = api_get(200, "GET", "/types/default", "");
    api_says(type, "volume_type.id", TYPE1);
    json_autoptr made = api_get(202, "POST", "/volumes", "{\"volume\": {\"size\": 1}}");
    api_says(made, "volume.volume_type", "fast");
    api_be("other");
    json_decref(api_get(404, "GET", "/types/default", ""));
    api_be("admin");
    json_decref(api_get(204, "DELETE", "/volume/v3/default-types/" PROJECT1, ""));
    json_decref(api_get(404, "GET", "/types/default", ""));
    api_tear_down();
}

static void test_resource_filters(void)
{
    api_set_up(NULL);
    api_at(32);
    json_decref(api_get(404, "GET", "/resource_filters", ""));
    api_at(33);
    json_autoptr all = api_get(200, "GET", "/resource_filters", "");
    api_says(all, "resource_filters.0.resource", "volume");
    json_autoptr one = api_get(200, "GET", "/resource_filters?resource=backup", "");
    api_says(one, "resource_filters.0.filters", "[\"name\",\"status\",\"volume_id\"]");
    api_says(one, "resource_filters.1", "(absent)");
    api_tear_down();
}

static void test_services(void)
{
    api_set_up(NULL);
    api_at(49);
    json_autoptr list = api_get(200, "GET", "/os-services?binary=cinder-volume", "");
    api_says(list, "services.0.host", "node1@dir1");
    api_says(list, "services.0.state", "up");
    api_says(list, "services.0.status", "enabled");
    api_says(list, "services.0.cluster", "fettle@dir1");
    api_says(list, "services.0.backend_state", "up");
    api_says(list, "services.1", "(absent)");
    json_autoptr all = api_get(200, "GET", "/os-services?host=node1", "");
    g_assert_cmpuint(json_array_size(json_object_get(all, "services")), ==, 2);
    json_autoptr off = api_get(200, "PUT", "/os-services/disable",
                               "{\"host\": \"node1@dir1\", \"binary\": \"cinder-volume\"}");
    api_says(off, "status", "disabled");
    json_autoptr why = api_get(
        200, "PUT", "/os-services/disable-log-reason",
        "{\"host\": \"node1@dir1\", \"binary\": \"cinder-volume\", \"disabled_reason\": \"disk\"}");
    api_says(why, "disabled_reason", "disk");
    json_autoptr now = api_get(200, "GET", "/os-services?host=node1@dir1", "");
    api_says(now, "services.0.disabled_reason", "disk");
    json_autoptr on = api_get(200, "PUT", "/os-services/enable",
                              "{\"host\": \"node1@dir1\", \"binary\": \"cinder-volume\"}");
    api_says(on, "disabled", "false");
    api_refused(404, "Service cinder-volume could not be found on host moon.", "PUT",
                "/os-services/enable", "{\"host\": \"moon\", \"binary\": \"cinder-volume\"}");
    api_refused(400, "disabled_reason: must be a text of 1 to 255 letters", "PUT",
                "/os-services/disable-log-reason",
                "{\"host\": \"node1@dir1\", \"binary\": \"cinder-volume\"}");
    json_autoptr pools = api_get(200, "GET", "/scheduler-stats/get_pools", "");
    api_says(pools, "pools.0.name", "node1@dir1#dir1");
    api_says(pools, "pools.0.capabilities", "(absent)");
    json_autoptr detail = api_get(200, "GET", "/scheduler-stats/get_pools?detail=True", "");
    api_says(detail, "pools.0.capabilities.volume_backend_name", "dir1");
    api_says(detail, "pools.0.capabilities.total_capacity_gb", "unknown");
    json_autoptr zones = api_get(200, "GET", "/os-availability-zone", "");
    api_says(zones, "availabilityZoneInfo.0.zoneName", "nova");
    api_be("member");
    json_decref(api_get(403, "GET", "/os-services", ""));
    api_tear_down();
}

static void test_quotas(void)
{
    api_set_up(NULL);
    json_autoptr each = api_get(200, "GET", "/os-quota-sets/" PROJECT1 "/defaults", "");
    api_says(each, "quota_set.volumes", "10");
    json_autoptr set = api_get(200, "PUT", "/os-quota-sets/" PROJECT1,
                               "{\"quota_set\": {\"volumes\": 1, \"gigabytes\": \"3\", "
                               "\"per_volume_gigabytes\": 2, \"backups\": 0}}");
    api_says(set, "quota_set.volumes", "1");
    api_says(set, "quota_set.gigabytes", "3");
    api_says(set, "quota_set.snapshots", "10");
    api_be("member");
    api_refused(413,
                "VolumeSizeExceedsLimit: Requested volume size 3G is larger than maximum allowed "
                "limit 2G.",
                "POST", "/volumes", "{\"volume\": {\"size\": 3}}");
    const char *id = api_volume("data9");
    g_autofree char *over = api_ask("POST", "/volumes", "{\"volume\": {\"size\": 1}}");
    g_assert_true(g_str_has_prefix(over, "413 {\"overLimit\":"));
    api_refused(413,
                "VolumeLimitExceeded: Maximum number of volumes allowed (1) exceeded for quota "
                "'volumes'.",
                "POST", "/volumes", "{\"volume\": {\"size\": 1}}");
    g_autofree char *backup = g_strdup_printf("{\"backup\": {\"volume_id\": \"%s\"}}", id);
    api_refused(413,
                "BackupLimitExceeded: Maximum number of backups allowed (0) exceeded for quota "
                "'backups'.",
                "POST", "/backups", backup);
    json_autoptr usage = api_get(200, "GET", "/os-quota-sets/" PROJECT1 "?usage=True", "");
    api_says(usage, "quota_set.volumes.in_use", "1");
    api_says(usage, "quota_set.volumes.limit", "1");
    api_says(usage, "quota_set.id", PROJECT1);
    json_autoptr limits = api_get(200, "GET", "/limits", "");
    api_says(limits, "limits.absolute.totalVolumesUsed", "1");
    api_says(limits, "limits.absolute.maxTotalVolumeGigabytes", "3");
    json_decref(api_get(403, "GET", "/os-quota-sets/" PROJECT2, ""));
    json_decref(
        api_get(403, "PUT", "/os-quota-sets/" PROJECT1, "{\"quota_set\": {\"volumes\": 9}}"));
    api_be("admin");
    api_refused(400, "volumes: must be an integer from -1 to 2147483647", "PUT",
                "/os-quota-sets/" PROJECT1, "{\"quota_set\": {\"volumes\": \"many\"}}");
    json_decref(api_get(200, "DELETE", "/os-quota-sets/" PROJECT1, ""));
    json_autoptr class = api_get(200, "PUT", "/os-quota-class-sets/default",
                                 "{\"quota_class_set\": {\"volumes\": 7}}");
    api_says(class, "quota_class_set.volumes", "7");
    json_autoptr shown = api_get(200, "GET", "/os-quota-class-sets/default", "");
    api_says(shown, "quota_class_set.id", "default");
    json_decref(api_get(404, "GET", "/os-quota-class-sets/other", ""));
    json_autoptr now = api_get(200, "GET", "/os-quota-sets/" PROJECT1, "");
    api_says(now, "quota_set.volumes", "7");
    api_tear_down();
}

static void test_all_routes(void)
{
    static const char *const routes[] = {
        "snapshot", "backup", "type",         "service",          "pools", "zones",
        "limits",   "quota",  "default_type", "resource_filters", NULL};
    routes_seen_assert(routes);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/api_storage/snapshots", test_snapshots);
    g_test_add_func("/api_storage/backups", test_backups);
    g_test_add_func("/api_storage/backups-of-snapshot", test_backup_of_snapshot);
    g_test_add_func("/api_storage/types", test_types);
    g_test_add_func("/api_storage/default-type", test_default_type);
    g_test_add_func("/api_storage/default-types-of-projects", test_default_types_of_projects);
    g_test_add_func("/api_storage/resource-filters", test_resource_filters);
    g_test_add_func("/api_storage/services", test_services);
    g_test_add_func("/api_storage/quotas", test_quotas);
    g_test_add_func("/api_storage/all-routes", test_all_routes);
    return g_test_run();
}
