/* Whose volumes are, over the API: each act against a volume that is free, reserved, and attached;
 * none takes it off its guest but by a job. core/api/volume_attach.c */
#include <string.h>

#include "unit/core/world/api_world.h"
#include "unit/core/world/routes_seen.h"

static char *submitted; /* the last job's opcode */

static json_t *submit(const struct rpc_request *request, const char *to_node, void *data,
                      GError **error)
{
    g_free(submitted);
    submitted = json_to_text(request->args);
    return json_integer(17);
}

static void set_up(bool attached)
{
    json_t *volume = with(object_volume1(), "project", json_string(PROJECT1));
    json_t *attachments = attached ? json_make("[{s:s,s:s,s:i,s:s}]", "uuid", ID_A, "instance",
                                               WEB1, "slot", 20, "state", "attached")
                                   : json_array();
    api_set_up(
        changes_of(put("volume", VOLUME1, 1, with(volume, "attachments", attachments)), NULL));
    fake_script(world.world, NULL, ROLE_LUXID, "SubmitJob", submit, NULL);
    api_at(44);
}

static void tear_down(void)
{
    api_tear_down();
    g_clear_pointer(&submitted, g_free);
}

static void act(guint status, const char *body)
{
    json_decref(api_get(status, "POST", "/volumes/" VOLUME1 "/action", body));
}

static void assert_status(const char *expected)
{
    json_autoptr shown = api_get(200, "GET", "/volumes/" VOLUME1, "");
    api_says(shown, "volume.status", expected);
}

#define ATTACH "{\"os-attach\": {\"instance_uuid\": \"" WEB1 "\", \"mountpoint\": \"/dev/vdb\"}}"
#define DETACH "{\"os-detach\": {\"attachment_id\": null}}"
#define FORCE_DETACH "{\"os-force_detach\": {\"attachment_id\": \"" ID_A "\"}}"
#define RESET "{\"os-reset_status\": {\"status\": \"available\"}}"

static void test_acts_of_free(void)
{
    set_up(false);
    act(409, "{\"os-begin_detaching\": null}");
    act(409, DETACH);
    act(202, "{\"os-unreserve\": null}");
    assert_status("available");
    act(202, "{\"os-reserve\": null}");
    assert_status("attaching");
    act(400, "{\"os-reserve\": null}");
    act(409, "{\"os-begin_detaching\": null}");
    json_decref(api_get(400, "DELETE", "/volumes/" VOLUME1, ""));
    act(202, "{\"os-unreserve\": null}");
    assert_status("available");
    act(202, "{\"os-reserve\": null}");
    act(202, RESET);
    assert_status("available");
    act(202, "{\"os-reserve\": null}");
    act(202, "{\"os-roll_detaching\": null}");
    assert_status("available");
    act(400, "{\"os-attach\": {\"instance_uuid\": \"" ID_B "\"}}");
    g_assert_null(submitted);
    act(202, "{\"os-reserve\": null}");
    act(202, ATTACH);
    g_assert_nonnull(strstr(submitted, "OP_INSTANCE_ATTACH_VOLUME"));
    g_assert_nonnull(strstr(submitted, WEB1));
    act(202, "{\"os-force_delete\": null}");
    assert_status("deleting");
    tear_down();
}

static void test_acts_of_attached(void)
{
    static const char *const refused[] = {"{\"os-reserve\": null}", RESET,
                                          "{\"os-force_delete\": null}"};
    set_up(true);
    for (guint i = 0; i < G_N_ELEMENTS(refused); i++)
        act(400, refused[i]);
    act(409, ATTACH);
    act(202, "{\"os-unreserve\": null}");
    act(202, "{\"os-begin_detaching\": null}");
    act(202, "{\"os-roll_detaching\": null}");
    g_assert_null(submitted);
    assert_status("in-use");
    act(404, "{\"os-detach\": {\"attachment_id\": \"" ID_B "\"}}");
    act(202, DETACH);
    g_assert_nonnull(strstr(submitted, "OP_INSTANCE_DETACH_VOLUME"));
    g_assert_nonnull(strstr(submitted, WEB1)); /* and off no other guest that gets it meanwhile */
    act(202, FORCE_DETACH);
    assert_status("in-use"); /* until the job has seen it go */
    tear_down();
}

static void test_attachments(void)
{
    set_up(false);
    json_autoptr made = api_get(200, "POST", "/attachments",
                                "{\"attachment\": {\"volume_uuid\": \"" VOLUME1
                                "\", \"instance_uuid\": \"" WEB1 "\", \"connector\": null}}");
    g_autofree char *id = api_text(made, "attachment.id");
    g_autofree char *path = g_strdup_printf("/attachments/%s", id);
    g_autofree char *action = g_strdup_printf("/attachments/%s/action", id);
    api_says(made, "attachment.status", "reserved");
    assert_status("reserved");
    json_decref(api_get(400, "POST", "/attachments",
                        "{\"attachment\": {\"volume_uuid\": \"" VOLUME1 "\"}}"));
    json_autoptr list = api_get(200, "GET", "/attachments", "");
    api_says(list, "attachments.0.id", id);
    json_autoptr detail = api_get(200, "GET", "/attachments/detail?volume_id=" VOLUME1, "");
    api_says(detail, "attachments.0.instance", WEB1);
    json_autoptr begun = api_get(200, "PUT", path, "{\"attachment\": {\"connector\": {}}}");
    api_says(begun, "attachment.id", id);
    g_assert_nonnull(strstr(submitted, id));
    json_decref(api_get(200, "GET", path, "")); /* reserved until the job has it on record */
    json_autoptr gone = api_get(200, "DELETE", path, "");
    api_says(gone, "attachments", "[]");
    assert_status("available");
    json_decref(api_get(404, "POST", action, "{\"os-complete\": null}"));
    tear_down();
}

static void test_attachment_of_attached(void)
{
    set_up(true);
    json_autoptr shown = api_get(200, "GET", "/attachments/" ID_A, "");
    api_says(shown, "attachment.status", "attached");
    api_says(shown, "attachment.instance", WEB1);
    json_decref(api_get(409, "PUT", "/attachments/" ID_A, "{\"attachment\": {\"connector\": {}}}"));
    json_decref(api_get(204, "POST", "/attachments/" ID_A "/action", "{\"os-complete\": null}"));
    g_assert_null(submitted);
    json_decref(api_get(200, "DELETE", "/attachments/" ID_A, ""));
    g_assert_nonnull(strstr(submitted, "OP_INSTANCE_DETACH_VOLUME"));
    g_assert_nonnull(strstr(submitted, WEB1));
    assert_status("in-use");
    tear_down();
}

/* What one has reserved another one does not give back. */
static void test_reservations_have_names(void)
{
    set_up(false);
    json_autoptr made = api_get(200, "POST", "/attachments",
                                "{\"attachment\": {\"volume_uuid\": \"" VOLUME1 "\"}}");
    g_autofree char *id = api_text(made, "attachment.id");
    g_autofree char *path = g_strconcat("/attachments/", id, NULL);
    act(202, "{\"os-unreserve\": null}");
    act(202, "{\"os-roll_detaching\": null}");
    assert_status("reserved");
    json_decref(api_get(200, "DELETE", path, ""));
    assert_status("available");
    act(202, "{\"os-reserve\": null}");
    json_decref(api_get(404, "DELETE", path, ""));
    assert_status("attaching");
    tear_down();
}

#define GUESTS_ARE_NOBODYS                                                                         \
    "Guests belong to no project in this version; an administrator attaches volumes."

/* A member has no guests: he reserves, and an administrator attaches. */
static void test_members_attach_nothing(void)
{
    set_up(false);
    api_be("member");
    api_refused(403, GUESTS_ARE_NOBODYS, "POST", "/volumes/" VOLUME1 "/action", ATTACH);
    json_autoptr made = api_get(200, "POST", "/attachments",
                                "{\"attachment\": {\"volume_uuid\": \"" VOLUME1
                                "\", \"instance_uuid\": \"" WEB1 "\", \"connector\": {}}}");
    g_autofree char *id = api_text(made, "attachment.id");
    g_autofree char *path = g_strconcat("/attachments/", id, NULL);
    g_autofree char *action = g_strconcat(path, "/action", NULL);
    api_refused(403, GUESTS_ARE_NOBODYS, "PUT", path, "{\"attachment\": {\"connector\": {}}}");
    api_refused(403, GUESTS_ARE_NOBODYS, "POST", action, "{\"os-complete\": null}");
    g_assert_null(submitted);
    api_be("admin");
    json_decref(api_get(204, "POST", action, "{\"os-complete\": null}"));
    g_assert_nonnull(strstr(submitted, WEB1));
    tear_down();
}

/* Guests are held to it; so it changes while none has it, and says how it is attached. */
static void test_readonly(void)
{
    set_up(false);
    act(202, "{\"os-update_readonly_flag\": {\"readonly\": true}}");
    json_autoptr shown = api_get(200, "GET", "/volumes/" VOLUME1, "");
    api_says(shown, "volume.metadata.readonly", "True");
    json_decref(api_get(200, "PUT", "/volumes/" VOLUME1 "/metadata",
                        "{\"metadata\": {\"readonly\": \"False\"}}"));
    json_autoptr still = api_get(200, "GET", "/volumes/" VOLUME1, "");
    api_says(still, "volume.metadata.readonly", "True");
    const struct volume *volume = config_get(storage_committed(), "volume", VOLUME1, NULL);
    g_assert_true(volume->readonly);
    api_refused(400,
                "Invalid attachment mode 'rw' for volume " VOLUME1
                ", which is only read; its flag says so: os-update_readonly_flag.",
                "POST", "/volumes/" VOLUME1 "/action",
                "{\"os-attach\": {\"instance_uuid\": \"" WEB1 "\", \"mode\": \"rw\"}}");
    json_autoptr made =
        api_get(200, "POST", "/attachments",
                "{\"attachment\": {\"volume_uuid\": \"" VOLUME1 "\", \"mode\": \"ro\"}}");
    api_says(made, "attachment.attach_mode", "ro");
    act(400, "{\"os-update_readonly_flag\": {\"readonly\": false}}");
    act(202, RESET);
    act(202, "{\"os-update_readonly_flag\": {\"readonly\": false}}");
    json_autoptr now = api_get(200, "GET", "/volumes/" VOLUME1, "");
    api_says(now, "volume.metadata.readonly", "False");
    tear_down();
    set_up(true);
    api_refused(400, "volume data1 is attached to web1; detach it first", "POST",
                "/volumes/" VOLUME1 "/action",
                "{\"os-update_readonly_flag\": {\"readonly\": true}}");
    tear_down();
}

/* QEMU tells no guest that what it only reads has grown. */
static void test_readonly_does_not_grow(void)
{
    json_t *volume =
        with(with(object_volume1(), "project", json_string(PROJECT1)), "readonly", json_true());
    json_t *attachments = json_make("[{s:s,s:s,s:i,s:s}]", "uuid", ID_A, "instance", WEB1, "slot",
                                    20, "state", "attached");
    api_set_up(
        changes_of(put("volume", VOLUME1, 1, with(volume, "attachments", attachments)), NULL));
    api_at(42);
    api_refused(400, "volume data1 is attached to web1; detach it first", "POST",
                "/volumes/" VOLUME1 "/action", "{\"os-extend\": {\"new_size\": 30}}");
    api_tear_down();
}

static void test_all_routes(void)
{
    static const char *const routes[] = {"attachment",    "volume_reserve",      "volume_unreserve",
                                         "volume_begin",  "volume_roll",         "volume_attach",
                                         "volume_detach", "volume_force_detach", NULL};
    routes_seen_assert(routes);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/api_attach/acts-of-free", test_acts_of_free);
    g_test_add_func("/api_attach/acts-of-attached", test_acts_of_attached);
    g_test_add_func("/api_attach/attachments", test_attachments);
    g_test_add_func("/api_attach/attachment-of-attached", test_attachment_of_attached);
    g_test_add_func("/api_attach/reservations-have-names", test_reservations_have_names);
    g_test_add_func("/api_attach/members-attach-nothing", test_members_attach_nothing);
    g_test_add_func("/api_attach/readonly", test_readonly);
    g_test_add_func("/api_attach/readonly-does-not-grow", test_readonly_does_not_grow);
    g_test_add_func("/api_attach/all-routes", test_all_routes);
    return g_test_run();
}
