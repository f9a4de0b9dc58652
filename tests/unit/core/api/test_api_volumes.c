/* Volumes as stock clients of block storage v3 ask for them, over a real wconfd: lists, one, made,
 * changed, deleted, acted on. core/api/volume_volumes.c, volume_acts.c, volume_metadata.c */
#include <string.h>

#include "unit/core/world/api_world.h"
#include "unit/core/world/routes_seen.h"

#define NOBODY "00000000-0000-4000-8000-00000000dead"

static char *path_of(const char *id, const char *rest)
{
    return g_strdup_printf("/volumes/%s%s", id, rest);
}

/* {"ACTION": INNER} at a volume. */
static json_t *act(guint status, const char *id, const char *action, const char *inner)
{
    g_autofree char *path = path_of(id, "/action");
    g_autofree char *body = g_strdup_printf("{\"%s\": %s}", action, inner);
    return api_get(status, "POST", path, body);
}

static json_t *show(const char *id)
{
    g_autofree char *path = path_of(id, "");
    return api_get(200, "GET", path, "");
}

#define volume_says(id, member, expected)                                                          \
    do {                                                                                           \
        json_autoptr shown_ = show(id);                                                            \
        api_says(shown_, "volume." member, expected);                                              \
    } while (0)

static void test_life(void)
{
    api_set_up(NULL);
    api_be("member");
    json_autoptr made =
        api_get(202, "POST", "/volumes",
                "{\"volume\": {\"size\": \"2\", \"name\": \"data9\", \"metadata\": {\"k\": \"v\"}, "
                "\"imageRef\": null, \"volume_type\": null, \"consistencygroup_id\": null}}");
    g_autofree char *id = api_text(made, "volume.id");
    api_says(made, "volume.status", "creating");
    api_says(made, "volume.size", "2");
    api_says(made, "volume.metadata", "{\"k\":\"v\"}");
    api_says(made, "volume.bootable", "false");
    api_says(made, "volume.user_id", "user-of-member");
    api_says(made, "volume.os-vol-tenant-attr:tenant_id", "(absent)");
    g_autofree char *key = config_work_key(RESOURCE_VOLUME, id);
    g_assert_cmpstr(storage_row(key)->request_id, ==, api_header("x-openstack-request-id"));
    api_work();
    api_be("admin");
    json_autoptr shown = show(id);
    api_says(shown, "volume.status", "available");
    api_says(shown, "volume.os-vol-host-attr:host", "node1@dir1#dir1");
    api_says(shown, "volume.os-vol-tenant-attr:tenant_id", PROJECT1);
    api_says(shown, "volume.availability_zone", "nova");
    g_autofree char *link =
        g_strdup_printf("http://api:8774/volume/v3/" PROJECT1 "/volumes/%s", id);
    api_says(shown, "volume.links.0.href", link);
    g_autofree char *path = path_of(id, "");
    json_autoptr renamed = api_get(200, "PUT", path,
                                   "{\"volume\": {\"name\": \"data10\", \"description\": \"d\", "
                                   "\"metadata\": {\"a\": \"\"}}}");
    api_says(renamed, "volume.name", "data10");
    api_says(renamed, "volume.description", "d");
    api_says(renamed, "volume.metadata", "{\"a\":\"\"}");
    json_autoptr same = api_get(200, "PUT", path, "{\"volume\": {\"description\": null}}");
    api_says(same, "volume.description", "d");
    json_autoptr without = api_get(200, "PUT", path, "{\"volume\": {\"name\": \"\"}}");
    api_says(without, "volume.name", "");
    json_decref(api_get(202, "DELETE", path, ""));
    volume_says(id, "status", "deleting");
    api_work();
    g_autofree char *gone = g_strdup_printf("Volume %s could not be found.", id);
    api_refused(404, gone, "GET", path, "");
    api_tear_down();
}

/* Fields come with the microversion that has brought them. */
static void test_fields(void)
{
    static const struct {
        guint minor;
        const char *field, *before, *then;
    } rows[] = {{13, "group_id", "(absent)", ""},
                {48, "shared_targets", "(absent)", "false"},
                {61, "cluster_name", "(absent)", "fettle@dir1"},
                {63, "volume_type_id", "(absent)", ""},
                {65, "consumes_quota", "(absent)", "true"}};
    api_set_up(NULL);
    const char *id = api_volume("data9");
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *field = g_strconcat("volume.", rows[i].field, NULL);
        api_at(rows[i].minor - 1);
        json_autoptr before = show(id);
        api_says(before, field, rows[i].before);
        api_at(rows[i].minor);
        json_autoptr then = show(id);
        api_says(then, field, rows[i].then);
    }
    api_at(48);
    volume_says(id, "service_uuid", service_key(NODE1));
    api_tear_down();
}

/* What stands behind "?" of a list, and the names that come, oldest last by themselves. */
static void test_lists(void)
{
    static const struct {
        const char *query, *names;
    } rows[] = {{"", "c b a"},
                {"?sort=name:asc", "a b c"},
                {"?sort_key=name&sort_dir=desc", "c b a"},
                {"?sort=size:asc,name:desc", "c b a"},
                {"?name=b", "b"},
                {"?name=nobody", ""},
                {"?status=available", "c b a"},
                {"?status=null", ""},
                {"?bootable=false&availability_zone=nova", "c b a"},
                {"?metadata=%7B%27k%27%3A+%27b%27%7D", "b"},
                {"?metadata=%7B%7D", "c b a"},
                {"?metadata=%7B", ""},
                {"?limit=2", "c b"},
                {"?limit=2&offset=1", "b a"},
                {"?limit=0", ""},
                {"?unheard_of=7", "c b a"},
                {"?all_tenants=1", "d c b a"}};
    api_set_up(NULL);
    for (const char *name = "abc"; *name; name++) {
        g_autofree char *body = g_strdup_printf(
            "{\"volume\": {\"size\": 1, \"name\": \"%c\", \"metadata\": {\"k\": \"%c\"}}}", *name,
            *name);
        json_decref(api_get(202, "POST", "/volumes", body));
    }
    api_be("other");
    json_decref(api_get(202, "POST", "/volumes", "{\"volume\": {\"size\": 1, \"name\": \"d\"}}"));
    api_work();
    api_be("admin");
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        for (guint detail = 0; detail < 2; detail++) {
            g_autofree char *path =
                g_strdup_printf("/volumes%s%s", detail ? "/detail" : "", rows[i].query);
            json_autoptr json = api_get(200, "GET", path, "");
            g_autoptr(GString) names = g_string_new(NULL);
            size_t at;
            json_t *volume;
            json_array_foreach(json_object_get(json, "volumes"), at, volume)
                g_string_append_printf(names, "%s%s", at ? " " : "",
                                       json_string_value(json_object_get(volume, "name")));
            if (strcmp(names->str, rows[i].names) != 0)
                g_error("%s: %s, not %s", path, names->str, rows[i].names);
        }
    }
    g_autoptr(GString) many = g_string_new("/volumes?");
    for (guint i = 0; i < 64; i++)
        g_string_append_printf(many, "unheard_of%u=1&", i);
    json_decref(api_get(200, "GET", many->str, ""));
    g_string_append(many, "name=b");
    json_autoptr refused = api_get(400, "GET", many->str, "");
    api_says(refused, "badRequest.message", "the query has more than 64 names");
    api_be("member"); /* who is none is not heard */
    json_autoptr own = api_get(200, "GET", "/volumes?all_tenants=1", "");
    api_says(own, "volumes.3", "(absent)");
    api_at(45);
    json_autoptr counted = api_get(200, "GET", "/volumes?limit=1&with_count=True", "");
    api_says(counted, "count", "3");
    api_at(34);
    json_autoptr like = api_get(200, "GET", "/volumes?name~=b", "");
    api_says(like, "volumes.0.name", "b");
    api_says(like, "volumes.1", "(absent)");
    json_autoptr summary = api_get(200, "GET", "/volumes/summary", "");
    api_says(summary, "volume-summary.total_count", "3");
    api_at(36);
    json_autoptr more = api_get(200, "GET", "/volumes/summary", "");
    g_assert_cmpuint(
        json_array_size(json_object_get(
            json_object_get(json_object_get(more, "volume-summary"), "metadata"), "k")),
        ==, 3);
    api_tear_down();
}

/* The link of each page leads to the next one, until one is empty. */
static void test_pages(void)
{
    api_set_up(NULL);
    for (guint i = 0; i < 4; i++)
        json_decref(api_get(202, "POST", "/volumes", "{\"volume\": {\"size\": 1}}"));
    g_autofree char *path = g_strdup("/volumes?limit=2&sort=id:asc");
    guint count = 0, pages = 0;
    for (;;) {
        json_autoptr json = api_get(200, "GET", path, "");
        size_t here = json_array_size(json_object_get(json, "volumes"));
        g_autofree char *next = api_text(json, "volumes_links.0.href");
        count += (guint)here;
        pages++;
        if (!here)
            break;
        const char *end = strstr(next, "/volumes?");
        g_assert_nonnull(end);
        g_free(path);
        path = g_strdup(end);
    }
    g_assert_cmpuint(count, ==, 4);
    g_assert_cmpuint(pages, ==, 3);
    api_tear_down();
}

static void test_metadata(void)
{
    api_set_up(NULL);
    const char *id = api_volume("data9");
    g_autofree char *path = path_of(id, "/metadata"), *one = path_of(id, "/metadata/b");
    json_autoptr added = api_get(200, "POST", path, "{\"metadata\": {\"a\": \"1\", \"b\": \"2\"}}");
    api_says(added, "metadata", "{\"a\":\"1\",\"b\":\"2\"}");
    json_autoptr more = api_get(200, "POST", path, "{\"metadata\": {\"a\": \"x\", \"c\": \"3\"}}");
    api_says(more, "metadata", "{\"a\":\"x\",\"b\":\"2\",\"c\":\"3\"}");
    json_autoptr set = api_get(200, "PUT", one, "{\"meta\": {\"b\": \"9\"}}");
    api_says(set, "meta", "{\"b\":\"9\"}");
    json_autoptr shown = api_get(200, "GET", one, "");
    api_says(shown, "meta.b", "9");
    json_decref(api_get(200, "DELETE", one, ""));
    g_autofree char *gone = g_strdup_printf("Volume %s has no metadata with key b.", id);
    api_refused(404, gone, "GET", one, "");
    api_refused(404, gone, "DELETE", one, "");
    api_refused(400, "meta: must be an object with the key of the path, b, and no other", "PUT",
                one, "{\"meta\": {\"c\": \"9\"}}");
    api_refused(400, "metadata.a: must be a text of 255 letters at most", "POST", path,
                "{\"metadata\": {\"a\": 1}}");
    api_refused(400, "metadata.: a key has 1 to 255 letters, none of which is =", "POST", path,
                "{\"metadata\": {\"\": \"1\"}}");
    json_autoptr replaced = api_get(200, "PUT", path, "{\"metadata\": {\"z\": \"0\"}}");
    api_says(replaced, "metadata", "{\"z\":\"0\"}");
    json_autoptr listed = api_get(200, "GET", path, "");
    api_says(listed, "metadata", "{\"z\":\"0\"}");
    json_decref(act(200, id, "os-set_image_metadata", "{\"metadata\": {\"os\": \"linux\"}}"));
    json_autoptr image = act(200, id, "os-show_image_metadata", "null");
    api_says(image, "metadata", "{\"os\":\"linux\"}");
    volume_says(id, "volume_image_metadata", "{\"os\":\"linux\"}");
    json_decref(act(200, id, "os-unset_image_metadata", "{\"key\": \"os\"}"));
    json_decref(act(404, id, "os-unset_image_metadata", "{\"key\": \"os\"}"));
    api_tear_down();
}

static void test_acts(void)
{
    api_set_up(
        changes_of(put("volume_type", TYPE1, 1, object_type("volume_backend_name=dir1")), NULL));
    const char *id = api_volume("data9");
    json_decref(act(202, id, "os-extend", "{\"new_size\": 3}"));
    volume_says(id, "status", "extending");
    api_work();
    volume_says(id, "size", "3");
    json_decref(act(200, id, "os-set_bootable", "{\"bootable\": \"true\"}"));
    volume_says(id, "bootable", "true");
    json_decref(act(202, id, "os-update_readonly_flag", "{\"readonly\": true}"));
    volume_says(id, "metadata.readonly", "True");
    json_decref(act(202, id, "os-retype", "{\"new_type\": \"fast\"}"));
    volume_says(id, "volume_type", "fast");
    json_decref(act(404, id, "os-retype", "{\"new_type\": \"none\"}"));
    json_autoptr upload =
        act(202, id, "os-volume_upload_image",
            "{\"image_name\": \"i1\", \"force\": false, \"disk_format\": \"raw\"}");
    g_autofree char *image = api_text(upload, "os-volume_upload_image.image_id");
    api_says(upload, "os-volume_upload_image.status", "uploading");
    api_work();
    api_be("member");
    g_autofree char *body =
        g_strdup_printf("{\"volume\": {\"imageRef\": \"%s\", \"size\": 3}}", image);
    json_autoptr of_image = api_get(202, "POST", "/volumes", body);
    g_autofree char *other = api_text(of_image, "volume.id");
    api_says(of_image, "volume.bootable", "true");
    volume_says(other, "volume_image_metadata.image_name", "i1");
    json_autoptr forbidden = act(403, id, "os-migrate_volume", "{\"host\": \"node2@dir2#dir2\"}");
    api_be("admin");
    api_work();
    g_autofree char *clone_body =
        g_strdup_printf("{\"volume\": {\"source_volid\": \"%s\", \"size\": 4}}", id);
    json_autoptr cloned = api_get(202, "POST", "/volumes", clone_body);
    api_says(cloned, "volume.source_volid", id);
    api_says(cloned, "volume.bootable", "true");
    api_says(cloned, "volume.volume_type", "fast");
    api_work();
    json_decref(act(400, id, "os-migrate_volume", "{\"host\": \"dir2\"}"));
    json_decref(act(202, other, "os-migrate_volume", "{\"host\": \"node2@dir2#dir2\"}"));
    volume_says(other, "os-vol-mig-status-attr:migstat", "migrating");
    api_tear_down();
}

/* #CLN-64, #CLN-65 */
static void test_statuses(void)
{
    api_set_up(NULL);
    const char *id = api_volume("data9");
    json_decref(act(202, id, "os-extend", "{\"new_size\": 3}"));
    json_decref(act(202, id, "os-reset_status", "{\"status\": \"available\"}"));
    g_autofree char *key = config_work_key(RESOURCE_VOLUME, id);
    g_assert_null(storage_row(key));
    volume_says(id, "status", "available");
    json_decref(act(400, id, "os-reset_status", "{\"status\": \"in-use\"}"));
    json_decref(act(400, id, "os-reset_status", "{}"));
    json_decref(act(202, id, "os-reset_status",
                    "{\"attach_status\": \"detached\", \"migration_status\": \"none\"}"));
    json_decref(act(400, id, "os-reset_status", "{\"attach_status\": \"attached\"}"));
    json_decref(act(202, id, "os-extend", "{\"new_size\": 3}"));
    json_decref(act(202, id, "os-force_delete", "null"));
    volume_says(id, "status", "deleting");
    json_autoptr made = api_get(202, "POST", "/volumes", "{\"volume\": {\"size\": 1}}");
    g_autofree char *empty = api_text(made, "volume.id");
    json_autoptr refused = act(202, empty, "os-reset_status", "{\"status\": \"error\"}");
    g_autofree char *path = path_of(empty, "/action");
    g_autofree char *words =
        g_strdup_printf("volume %s has no data; it can be error or be deleted", empty);
    api_refused(400, words, "POST", path, "{\"os-reset_status\": {\"status\": \"available\"}}");
    api_tear_down();
}

#define SIZE_WORDS(said)                                                                           \
    "Invalid input received: Invalid volume size provided for create request: " said               \
    " (size argument must be an integer (or string representation of an integer) and greater "     \
    "than zero, and not greater than 65536)."

static void test_refusals(void)
{
    static const struct {
        guint status;
        const char *body, *message;
    } rows[] = {
        {400, "{\"volume\": {\"size\": \"1.5\"}}", SIZE_WORDS("\"1.5\"")},
        {400, "{\"volume\": {\"size\": \"\"}}", SIZE_WORDS("\"\"")},
        {400, "{\"volume\": {\"size\": 0}}", SIZE_WORDS("0")},
        {400, "{\"volume\": {\"size\": \"-1\"}}", SIZE_WORDS("\"-1\"")},
        {400, "{\"volume\": {\"size\": 1000000000}}", SIZE_WORDS("1000000000")},
        {400, "{\"volume\": {}}", SIZE_WORDS("None")},
        {400, "{\"volume\": {\"size\": 1, \"colour\": \"red\"}}", "volume.colour: is not known"},
        {404, "{\"volume\": {\"size\": 1, \"volume_type\": \"none\"}}",
         "Volume type none could not be found."},
        {404, "{\"volume\": {\"size\": 1, \"snapshot_id\": \"" NOBODY "\"}}",
         "Snapshot " NOBODY " could not be found."},
        {404, "{\"volume\": {\"size\": 1, \"source_volid\": \"" NOBODY "\"}}",
         "Volume " NOBODY " could not be found."},
        {400, "{\"volume\": {\"size\": 1, \"imageRef\": \"" NOBODY "\"}}",
         "Invalid image identifier or unable to access requested image."},
        {400, "{\"volume\": {\"size\": 1, \"multiattach\": true}}",
         "volume.multiattach: a volume is attached to one instance at most"},
        {400, "{\"volume\": {\"size\": 1, \"availability_zone\": \"moon\"}}",
         "Invalid input received: Availability zone 'moon' is invalid."},
        {400, "{\"volume\": {\"size\": 1, \"metadata\": []}}",
         "volume.metadata: must be an object"},
    };
    api_set_up(
        changes_of(put("volume", VOLUME1, 1,
                       with(with(object_volume1(), "project", json_string(PROJECT1)), "attachments",
                            json_make("[{s:s,s:s,s:i,s:s}]", "uuid", ID_A, "instance", WEB1, "slot",
                                      20, "state", "attached"))),
                   NULL));
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++)
        api_refused(rows[i].status, rows[i].message, "POST", "/volumes", rows[i].body);
    api_refused(400,
                "Invalid volume: Volume status must be available or error or error_restoring or "
                "error_extending or error_managing and must not be migrating, attached, belong to "
                "a group, have snapshots, awaiting a transfer, or be disassociated from snapshots "
                "after volume transfer. (volume data1 is attached to web1; detach it first)",
                "DELETE", "/volumes/" VOLUME1, "");
    api_refused(400, "volume data1 is attached to web1; detach it first", "POST",
                "/volumes/" VOLUME1 "/action",
                "{\"os-reset_status\": {\"attach_status\": \"detached\"}}");
    volume_says(VOLUME1, "status", "in-use");
    volume_says(VOLUME1, "attachments.0.server_id", WEB1);
    api_refused(400, "There is no such action: os-nothing", "POST", "/volumes/" VOLUME1 "/action",
                "{\"os-nothing\": {}}");
    api_refused(400, "limit: \"abc\" is no number from 0 to 2147483647", "GET",
                "/volumes?limit=abc", "");
    api_refused(400, "limit: \"-1\" is no number from 0 to 2147483647", "GET", "/volumes?limit=-1",
                "");
    api_refused(404, "marker " NOBODY ": there is none of that id in this list", "GET",
                "/volumes?marker=" NOBODY, "");
    api_refused(400, "Invalid input received: Sort key supplied is invalid: colour", "GET",
                "/volumes?sort=colour", "");
    api_refused(400, "Invalid input received: Sort key supplied is invalid: colour", "GET",
                "/snapshots?sort=colour", ""); /* though there are none */
    api_refused(400, "created_at: lists are not restricted by times here; sort by created_at",
                "GET", "/volumes?created_at=gt:2026-01-01T00:00:00", "");
    api_refused(400, "updated_at: lists are not restricted by times here; sort by created_at",
                "GET", "/volumes/detail?updated_at=gt:2026-01-01T00:00:00", "");
    api_be("other");
    api_refused(404, "Volume " VOLUME1 " could not be found.", "GET", "/volumes/" VOLUME1, "");
    api_be("reader");
    g_autofree char *reader = api_ask("POST", "/volumes", "{\"volume\": {\"size\": 1}}");
    g_assert_true(g_str_has_prefix(reader, "403 {\"forbidden\":"));
    api_be("");
    g_autofree char *nobody = api_ask("GET", "/volumes", "");
    g_assert_true(g_str_has_prefix(nobody, "401 {\"unauthorized\":"));
    api_tear_down();
}

/* When it was changed last; and who asked for work on it last, also when that is over. */
static void test_last_change(void)
{
    api_set_up(NULL);
    const char *id = api_volume("data9");
    json_autoptr made = show(id);
    g_autofree char *before = api_text(made, "volume.updated_at");
    fake_advance(world.world, 5000);
    json_decref(act(202, id, "os-extend", "{\"new_size\": 3}"));
    g_autofree char *request = g_strdup(api_header("x-openstack-request-id"));
    api_work();
    json_autoptr larger = show(id);
    g_autofree char *after = api_text(larger, "volume.updated_at");
    g_assert_cmpstr(before, !=, "");
    g_assert_cmpstr(before, <, after);
    const struct volume *volume = config_get(storage_committed(), "volume", id, NULL);
    g_assert_cmpstr(volume->request_id, ==, request);
    const char *other = api_volume("data8");
    json_autoptr newest = api_get(200, "GET", "/volumes?sort=updated_at:desc", "");
    api_says(newest, "volumes.0.id", other);
    g_autofree char *path = path_of(id, "");
    json_decref(api_get(200, "PUT", path, "{\"volume\": {\"name\": \"new\"}}"));
    json_autoptr now = api_get(200, "GET", "/volumes?sort=updated_at:desc", "");
    api_says(now, "volumes.0.id", id);
    api_tear_down();
}

/* Of what is being done to it the row is replaced, in one commit: either all of that stands or
 * nothing. #CLN-65 */
static void test_force_is_one_commit(void)
{
    api_set_up(NULL);
    const char *id = api_volume("data9");
    g_autofree char *key = config_work_key(RESOURCE_VOLUME, id);
    json_decref(act(202, id, "os-extend", "{\"new_size\": 3}"));
    guint64 claim = api_take(key), row = storage_row(key)->id;
    guint64 serial = config_serial(storage_committed());
    json_decref(act(202, id, "os-force_delete", "null"));
    g_assert_cmpuint(config_serial(storage_committed()), ==, serial + 1);
    g_assert_cmpstr(storage_row(key)->operation, ==, "delete-volume");
    g_assert_cmpuint(storage_row(key)->id, ==, serial + 1);
    g_assert_cmpuint(row, <, serial);
    g_autofree char *late = api_end(with(storage_end(key, claim), "size", json_integer(3)));
    g_assert_true(g_str_has_prefix(late, "refused: "));
    volume_says(id, "status", "deleting");
    json_decref(act(202, id, "os-force_delete", "null")); /* also of its own */
    api_work();
    g_assert_null(config_get(storage_committed(), "volume", id, NULL));
    const char *other = api_volume("data8");
    json_decref(act(202, other, "os-reserve", "null"));
    json_decref(act(202, other, "os-force_delete", "null"));
    api_work();
    g_assert_null(config_get(storage_committed(), "volume", other, NULL));
    api_tear_down();
}

/* `force` in the query, of a volume with a snapshot that somebody makes who never ends. #CLN-65 */
static void test_force_with_snapshots(void)
{
    api_set_up(NULL);
    api_at(23);
    const char *id = api_volume("data9");
    json_autoptr asked =
        json_make("{s:{s:s, s:s, s:b}}", "snapshot", "volume_id", id, "name", "s1", "force", 1);
    g_autofree char *body = json_dumps(asked, 0);
    json_autoptr made = api_get(202, "POST", "/snapshots", body);
    g_autofree char *snapshot = api_text(made, "snapshot.id");
    g_autofree char *key = config_work_key(RESOURCE_SNAPSHOT, snapshot);
    guint64 claim = api_take(key);
    g_autofree char *forced = path_of(id, "?force=true"),
                    *all = path_of(id, "?cascade=true&force=true");
    json_decref(api_get(400, "DELETE", forced, ""));
    json_decref(api_get(202, "DELETE", all, ""));
    g_assert_cmpstr(storage_row(key)->operation, ==, "delete-snapshot");
    g_autofree char *late = api_end(storage_end(key, claim));
    g_assert_true(g_str_has_prefix(late, "refused: "));
    api_work();
    g_assert_null(config_get(storage_committed(), "volume", id, NULL));
    g_assert_cmpuint(config_count(storage_committed(), "snapshot"), ==, 0);
    api_tear_down();
}

/* Where things are is for administrators. */
static void test_hosts_are_hidden(void)
{
    json_t *attachments = json_make("[{s:s,s:s,s:i,s:s}]", "uuid", ID_A, "instance", WEB1, "slot",
                                    20, "state", "attached");
    json_t *volume = with(with(object_volume1(), "project", json_string(PROJECT1)), "host",
                          json_string("node1@dir1"));
    api_set_up(
        changes_of(put("volume", VOLUME1, 1, with(volume, "attachments", attachments)), NULL));
    volume_says(VOLUME1, "attachments.0.host_name", "node1");
    json_autoptr elsewhere = api_get(200, "GET", "/volumes?host=nowhere", "");
    api_says(elsewhere, "volumes", "[]");
    api_be("member");
    volume_says(VOLUME1, "attachments.0.host_name", "");
    volume_says(VOLUME1, "os-vol-host-attr:host", "(absent)");
    json_autoptr all = api_get(200, "GET", "/volumes?host=nowhere", "");
    api_says(all, "volumes.0.id", VOLUME1);
    api_refused(400, "Invalid input received: Sort key supplied is invalid: host", "GET",
                "/volumes?sort=host", "");
    api_tear_down();
}

/* From 3.67 on the project of the token need not stand in the path. */
static void test_paths_without_a_project(void)
{
    api_set_up(NULL);
    const char *id = api_volume("data9");
    g_autofree char *path = g_strconcat("/volume/v3/volumes/", id, NULL);
    g_autofree char *action = g_strconcat(path, "/action", NULL);
    api_at(66);
    json_decref(api_get(404, "GET", path, ""));
    api_at(67);
    json_autoptr shown = api_get(200, "GET", path, "");
    api_says(shown, "volume.id", id);
    json_autoptr list = api_get(200, "GET", "/volume/v3/volumes/detail?limit=1", "");
    api_says(list, "volumes.0.id", id);
    g_autofree char *next =
        g_strconcat("http://api:8774/volume/v3/volumes/detail?limit=1&marker=", id, NULL);
    api_says(list, "volumes_links.0.href", next);
    json_decref(api_get(202, "POST", action, "{\"os-extend\": {\"new_size\": 3}}"));
    json_decref(api_get(200, "GET", "/volumes", ""));
    json_decref(api_get(404, "GET", "/volume/v3/nothing", ""));
    api_be("other");
    json_decref(api_get(404, "GET", path, ""));
    api_refused(400, "Malformed request url", "GET", "/volume/v3/" PROJECT1 "/volumes", "");
    api_tear_down();
}

static json_t *ends(const struct rpc_request *request, const char *node, void *data, GError **error)
{
    fettle_set_error(error, KILLED, "the calling process ends");
    return NULL;
}

/* A master that ends while it waits for what it has asked others for does not know of it. */
static void test_master_that_ends(void)
{
    api_set_up(NULL);
    fake_script(world.world, NULL, ROLE_WCONFD, "accept_work", ends, NULL);
    api_refused(504, "the calling process ends", "POST", "/volumes", "{\"volume\": {\"size\": 1}}");
    fake_script(world.world, NULL, ROLE_WCONFD, "accept_work", NULL, NULL);
    api_tear_down();
}

/* A page goes on behind its marker, also if that does not fit any more. */
static void test_marker_that_fits_no_more(void)
{
    api_set_up(NULL);
    const char *first = api_volume("b1"), *second = api_volume("b2");
    g_autofree char *path = path_of(second, "");
    g_autofree char *next = g_strdup_printf("/volumes?name~=b&with_count=1&marker=%s", second);
    json_decref(api_get(200, "PUT", path, "{\"volume\": {\"name\": \"other\"}}"));
    api_at(45);
    json_autoptr page = api_get(200, "GET", next, "");
    api_says(page, "volumes.0.id", first);
    api_says(page, "volumes.1", "(absent)");
    api_says(page, "count", "1");
    api_tear_down();
}

static void test_all_routes(void)
{
    static const char *const routes[] = {
        "volumes_",        "volume_create", "volume_show",  "volume_update",       "volume_delete",
        "volume_metadata", "volume_extend", "volume_reset", "volume_force_delete", "volume_retype",
        "volume_migrate",  "volume_upload", "volume_set",   "volume_unset",        NULL};
    routes_seen_assert(routes);
}

/* What was accepted is never refused, and never shown as it was before. */
static void test_without_news(void)
{
    api_set_up(NULL);
    const char *id = api_volume("data9");
    g_autofree char *path = path_of(id, "");
    api_deafen(true);
    g_autofree char *made = api_ask("POST", "/volumes", "{\"volume\": {\"size\": 1}}");
    g_assert_true(g_str_has_prefix(made, "504 "));
    g_assert_nonnull(strstr(made, "is accepted, and not to be seen here yet; look for it before"));
    g_autofree char *shown = api_ask("GET", path, "");
    g_assert_true(g_str_has_prefix(shown, "503 "));
    api_deafen(false);
    json_autoptr all = api_get(200, "GET", "/volumes", "");
    g_assert_cmpuint(json_array_size(json_object_get(all, "volumes")), ==, 2);
    api_deafen(true);
    g_autofree char *renamed = api_ask("PUT", path, "{\"volume\": {\"name\": \"data8\"}}");
    g_assert_true(g_str_has_prefix(renamed, "504 "));
    g_assert_nonnull(strstr(renamed, "it is on record, and not to be seen here yet"));
    api_deafen(false);
    volume_says(id, "name", "data8");
    api_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/api_volumes/life", test_life);
    g_test_add_func("/api_volumes/fields", test_fields);
    g_test_add_func("/api_volumes/lists", test_lists);
    g_test_add_func("/api_volumes/pages", test_pages);
    g_test_add_func("/api_volumes/metadata", test_metadata);
    g_test_add_func("/api_volumes/acts", test_acts);
    g_test_add_func("/api_volumes/statuses#CLN-64,CLN-65", test_statuses);
    g_test_add_func("/api_volumes/without-news", test_without_news);
    g_test_add_func("/api_volumes/refusals", test_refusals);
    g_test_add_func("/api_volumes/last-change", test_last_change);
    g_test_add_func("/api_volumes/force-is-one-commit#CLN-65", test_force_is_one_commit);
    g_test_add_func("/api_volumes/force-with-snapshots#CLN-65", test_force_with_snapshots);
    g_test_add_func("/api_volumes/hosts-are-hidden", test_hosts_are_hidden);
    g_test_add_func("/api_volumes/paths-without-a-project", test_paths_without_a_project);
    g_test_add_func("/api-volumes/master-that-ends", test_master_that_ends);
    g_test_add_func("/api_volumes/marker-that-fits-no-more", test_marker_that_fits_no_more);
    g_test_add_func("/api_volumes/all_routes", test_all_routes);
    return g_test_run();
}
