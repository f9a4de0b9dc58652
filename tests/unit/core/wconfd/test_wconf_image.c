/* Images: what is on record of them, volumes made of them, and them of volumes (SAF-60, 120, 121).
 */
#include <string.h>

#include "core/config/resource.h"
#include "core/wconfd/wconf_private.h"
#include "proto/storage/volume_driver.h"
#include "unit/core/world/storage_world.h"

#define IMAGE1 "eeeeeeee-4444-4000-8000-000000000004"
#define IMAGE "Image/" IMAGE1

static guint64 generation;
static const char *volume;

static struct resource now_of(const char *key)
{
    g_auto(GStrv) parts = g_strsplit(key, "/", 2);
    int type = enum_parse(&resource_type_words, parts[0]);
    return resource_of(world.wconf->committed, (enum resource_type)type, g_intern_string(parts[1]));
}

static const struct image *image_of(const char *key)
{
    return config_get(world.wconf->committed, "image", strchr(key, '/') + 1, NULL);
}

static char *accept(json_t *args)
{
    return storage_ask(storage_cli, "accept_work", args);
}

static json_t *create(const char *image, guint size)
{
    return json_make("{s:s,s:s,s:s,s:s,s:i,s:s}", "resource_type", "Volume", "operation",
                     "create-volume", "name", "root1", "image", image, "size", size, "backend",
                     "dir1");
}

static json_t *upload(const char *name)
{
    return json_make("{s:s,s:s,s:s,s:s}", "resource_type", "Volume", "operation", "upload-volume",
                     "resource", "data1", "name", name);
}

static json_t *delete_image(const char *name)
{
    return json_make("{s:s,s:s,s:s}", "resource_type", "Image", "operation", "delete-image",
                     "resource", name);
}

/* On its way; key of what it makes, valid for ever. */
static const char *asked(json_t *args, const char *type)
{
    g_autofree char *id = env_uuid(storage_cli);
    g_autofree char *key = g_strdup_printf("%s/%s", type, id);
    g_autofree char *said = accept(with(args, "commit_id", json_string(id)));
    if (!strstr(said, "serial"))
        g_error("%s", said);
    return g_intern_string(key);
}

static json_t *change(json_t *what)
{
    return with(what, "image", json_string("tick"));
}

static char *changed(json_t *what)
{
    return storage_ask(storage_cli, "change_image", change(what));
}

static void reset(const char *type, const char *resource, const char *status, const char *said)
{
    json_t *args =
        json_make("{s:s,s:s,s:s}", "resource_type", type, "resource", resource, "status", status);
    g_autofree char *answer = storage_ask(storage_cli, "reset_state", args);
    g_assert_nonnull(strstr(answer, said));
}

static void set_up(void)
{
    storage_set_up(changes_of(put("image", IMAGE1, 1, object_image(IMAGE1, 4096)), NULL));
    generation = storage_register(1);
    volume = storage_create("data1");
    storage_made(volume, generation);
}

/* The end of an upload, with all that an image is known by. */
static json_t *measured(const char *image, guint64 claim)
{
    g_autofree char *data = volume_data_name(strchr(image, '/') + 1, claim);
    g_autofree char *sum = g_strnfill(128, 'c'), *md5 = g_strnfill(32, 'd');
    json_t *end = with(storage_end(volume, claim), "data", json_string(data));
    end = with(with(end, "bytes", json_integer(8192)), "sum", json_string(sum));
    return with(with(end, "checksum", json_string(md5)), "virtual_size",
                json_integer((json_int_t)2048 * MIB(1)));
}

static char *end(json_t *item)
{
    return storage_end_all(1, generation, json_make("[o]", item));
}

static json_t *without(json_t *object, const char *member)
{
    json_object_del(object, member);
    return object;
}

/* It is active only with data, sizes and sums. */
static void test_upload(void)
{
    static const char *const needed[] = {"bytes", "sum", "checksum", "virtual_size"};
    set_up();
    const char *image = asked(with(upload("copy"), "disk_format", json_string("raw")), "Image");
    g_assert_cmpstr(now_of(image).status, ==, "saving");
    g_assert_cmpstr(now_of(volume).status, ==, "uploading");
    g_assert_cmpint(image_of(image)->disk_format, ==, FORMAT_RAW);
    g_assert_cmpstr(storage_row(volume)->partner_id, ==, strchr(image, '/') + 1);
    g_assert_cmpstr(storage_row(volume)->backend, ==, DIR1);
    assert_says(accept(delete_image("copy")),
                "wrong_state: image copy is being worked on by volume data1; wait, or reset that");
    assert_says(accept(create("copy", 0)), "wrong_state: image copy is saving; create-volume needs "
                                           "active");
    guint64 claim = storage_take(1, generation, volume);
    for (guint i = 0; i < G_N_ELEMENTS(needed); i++) {
        g_autofree char *said = end(without(measured(image, claim), needed[i]));
        g_assert_nonnull(strstr(said, "is not known by sizes and sums (SAF-60)"));
    }
    assert_says(end(measured(image, claim)), "passed");
    g_assert_cmpstr(now_of(image).status, ==, "active");
    g_assert_cmpstr(now_of(volume).status, ==, "available");
    g_assert_cmpuint(image_of(image)->size, ==, 8192);
    g_assert_cmpuint(now_of(image).size, ==, 2);
    g_assert_cmpstr(now_of(image).host, ==, "node1@dir1");
    world_tear_down();
}

/* What failed, and what a person has ended, leaves the image queued and the volume as it was. */
static void test_upload_fails(void)
{
    set_up();
    const char *image = asked(upload("copy"), "Image");
    guint64 claim = storage_take(1, generation, volume);
    json_t *item = with(with(storage_end(volume, claim), "failed", json_true()), "why",
                        json_string("it is full"));
    assert_says(end(item), "passed");
    g_assert_cmpstr(now_of(image).status, ==, "queued");
    g_assert_cmpstr(now_of(image).status_why, ==, "it is full");
    g_assert_cmpstr(now_of(volume).status, ==, "available");
    g_assert_cmpstr(now_of(volume).status_why, ==, "it is full");
    const char *other = asked(upload("other"), "Image");
    claim = storage_take(1, generation, volume);
    reset("Image", "other", "killed", "serial");
    g_assert_null(storage_row(volume));
    g_assert_cmpstr(now_of(volume).status, ==, "available");
    g_autofree char *late = end(measured(other, claim));
    g_assert_cmpstr(late, !=, "passed");
    g_assert_cmpstr(now_of(other).data, ==, "");
    asked(upload("third"), "Image");
    reset("Volume", "data1", "available", "serial");
    g_autofree char *said = accept(delete_image("third"));
    g_assert_nonnull(strstr(said, "serial"));
    reset("Image", "tick", "queued",
          "wrong_state: image tick has data; it can be active or killed, or be deleted");
    reset("Image", "copy", "active",
          "wrong_state: image copy has no data; it can be killed or be deleted");
    reset("Image", "tick", "available",
          "status: an image can be set to queued, active, killed, not to \"available\"");
    world_tear_down();
}

/* CLN-09: the row is `creating`, then `downloading`; the image stays while it is read. */
static void test_create(void)
{
    set_up();
    const char *made = asked(create("tick", 0), "Volume");
    g_assert_cmpstr(now_of(made).status, ==, "creating");
    g_assert_cmpuint(now_of(made).size, ==, 2);
    g_assert_cmpstr(storage_row(made)->source->data, ==, IMAGE1 ".8");
    assert_says(accept(delete_image("tick")),
                "wrong_state: image tick is being read by volume root1; wait, or reset that");
    guint64 claim = storage_take(1, generation, made);
    json_t *step = json_make("{s:s,s:i,s:s,s:i,s:s}", "key", made, "claim", claim, "service",
                             service_key(NODE1), "generation", generation, "status", "deleting");
    assert_says(storage_ask(volumed[0], "step_work", json_incref(step)),
                "wrong_input: status: deleting is none of create-volume");
    g_autofree char *said =
        storage_ask(volumed[0], "step_work",
                    with(without(step, "commit_id"), "status", json_string("downloading")));
    g_assert_nonnull(strstr(said, "serial"));
    g_assert_cmpstr(now_of(made).status, ==, "downloading");
    g_assert_cmpstr(storage_row(made)->status, ==, "downloading");
    g_autofree char *data = volume_data_name(strchr(made, '/') + 1, claim);
    assert_says(end(with(storage_end(made, claim), "data", json_string(data))), "passed");
    g_assert_cmpstr(now_of(made).status, ==, "available");
    world_tear_down();
}

/* Another one's data under the name: the copy counts no more (SAF-120). */
static void test_killed_meanwhile(void)
{
    set_up();
    const char *made = asked(create("tick", 0), "Volume");
    guint64 claim = storage_take(1, generation, made);
    reset("Image", "tick", "killed", "serial");
    g_autofree char *data = volume_data_name(strchr(made, '/') + 1, claim);
    assert_says(end(with(storage_end(made, claim), "data", json_string(data))), "passed");
    g_assert_cmpstr(now_of(made).status, ==, "error");
    g_assert_cmpstr(now_of(made).status_why, ==, "image tick is killed since");
    world_tear_down();
}

static void test_bad_requests(void)
{
    set_up();
    g_autofree char *said = changed(json_make("{s:b,s:s}", "unique_name", true, "name", "tick"));
    g_assert_nonnull(strstr(said, "nothing to change: image tick is so already"));
    const struct {
        json_t *args;
        const char *said;
    } cases[] = {
        {create("tock", 0), "unknown_entity: image \"tock\" does not exist"},
        {create("tick", 1), "wrong_input: size: 1 GiB is smaller than image tick, which needs "
                            "2 GiB"},
        {with(create("tick", 0), "source", json_string("before")),
         "wrong_input: image: a snapshot or a volume is named already"},
        {with(create("tick", 0), "project", json_string("red")),
         "unknown_entity: image \"tick\" does not exist"},
        {with(upload("x"), "image", json_string("tick")),
         "wrong_input: image: upload-volume takes none"},
        {with(upload("x"), "size", json_integer(1)), "wrong_input: size: upload-volume takes none"},
        {with(upload("x"), "target", json_string("tick")),
         "wrong_input: target: upload-volume takes none"},
        {with(upload("tick"), "unique_name", json_true()),
         "already_exists: an image tick exists already: " IMAGE1 "; choose another name"},
        {with(upload("x"), "backend", json_string("dir2")),
         "wrong_state: back end dir2 may hold no images; allow it (fettle backend modify dir2 "
         "--images yes), or name another one"},
        {with(upload("x"), "resource", json_string("data9")),
         "unknown_entity: volume \"data9\" does not exist"},
        {with(upload("x"), "disk_format", json_string("vmdk")),
         "wrong_input: disk_format: must be one of raw, qcow2"},
        {delete_image("tock"), "unknown_entity: image \"tock\" does not exist"},
        {with(delete_image("tick"), "name", json_string("x")),
         "wrong_input: name: delete-image takes none"},
        {json_make("{s:s,s:s,s:s}", "resource_type", "Image", "operation", "save-image", "resource",
                   "tick"),
         "wrong_state: image tick is active; save-image needs queued"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        assert_says(accept(cases[i].args), cases[i].said);
    world_tear_down();
}

/* Names, whose it is, what is said of it; and never what is guarded. */
static void test_change(void)
{
    set_up();
    const struct {
        json_t *args;
        const char *said;
    } bad[] = {
        {json_make("{s:s}", "visibility", "all"),
         "wrong_input: visibility: must be private, public, shared or community, not \"all\""},
        {json_make("{s:[s]}", "members", "red=maybe"),
         "wrong_input: members: \"maybe\" must be pending, accepted or rejected"},
        {json_make("{s:[s]}", "members", "red"), "wrong_input: members: \"red\" is not KEY=VALUE"},
        {json_make("{s:[s]}", "clear", "uuid"),
         "wrong_input: clear: \"uuid\" is neither name nor description"},
        {json_make("{s:s}", "disk_format", "vmdk"),
         "wrong_input: disk_format: must be raw or qcow2, not \"vmdk\""},
        {json_make("{s:s}", "disk_format", "raw"),
         "wrong_state: disk_format: image tick is active; what its bytes are is said before they "
         "come"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++)
        assert_says(changed(bad[i].args), bad[i].said);
    assert_says(changed(json_make("{s:[s]}", "properties", "os")),
                "wrong_input: properties: \"os\" is not KEY=VALUE");
    g_autofree char *first =
        changed(json_make("{s:s,s:i,s:i,s:[s,s]}", "visibility", "public", "protected", 1,
                          "min_disk", 4, "properties", "os=debian", "arch=x86_64"));
    g_assert_nonnull(strstr(first, "serial"));
    assert_says(accept(delete_image("tick")),
                "wrong_state: image tick is protected; first: fettle image modify tick --protected "
                "no");
    assert_says(accept(create("tick", 3)),
                "wrong_input: size: 3 GiB is smaller than image tick, which needs 4 GiB");
    const char *made = asked(with(create("tick", 0), "project", json_string("red")), "Volume");
    g_assert_cmpuint(now_of(made).size, ==, 4);
    g_autofree char *second =
        changed(json_make("{s:s,s:i,s:[s],s:[s],s:[s],s:[s,s],s:i}", "name", "tock", "protected", 0,
                          "remove_properties", "os", "properties", "empty=", "members",
                          "red=accepted", "add_tags", "a", "b", "min_ram", 64));
    g_assert_nonnull(strstr(second, "serial"));
    const struct image *image = image_of(IMAGE);
    g_assert_cmpstr(image->name, ==, "tock");
    g_assert_cmpuint(image->properties->len, ==, 2);
    g_assert_cmpstr(image->properties->pdata[0], ==, "arch=x86_64");
    g_assert_cmpstr(image->properties->pdata[1], ==, "empty=");
    g_assert_false(image->protected);
    g_assert_cmpuint(image->min_ram, ==, 64);
    g_assert_cmpuint(image->tags->len, ==, 2);
    g_assert_cmpstr(image->members->pdata[0], ==, "red=accepted");
    g_autofree char *third =
        storage_ask(storage_cli, "change_image",
                    json_make("{s:s,s:[s],s:[s],s:[s],s:s,s:i}", "image", "tock", "clear", "name",
                              "remove_tags", "a", "remove_members", "red", "visibility", "shared",
                              "deactivated", 1));
    g_assert_nonnull(strstr(third, "serial"));
    image = image_of(IMAGE);
    g_assert_cmpstr(image->name, ==, "");
    g_assert_cmpuint(image->tags->len, ==, 1);
    g_assert_cmpuint(image->members->len, ==, 0);
    assert_says(accept(create(IMAGE1, 0)),
                "wrong_state: image " IMAGE1 " is deactivated; nobody may read it until it is "
                "reactivated");
    world_tear_down();
}

static json_t *added(const char *name, const char *format)
{
    return json_make("{s:s,s:s}", "name", name, "disk_format", format);
}

/* One that is to get its bytes yet: nothing is made of it, and it goes. */
static void test_add(void)
{
    set_up();
    g_autofree char *id = env_uuid(storage_cli);
    g_autofree char *key = g_strdup_printf("Image/%s", id);
    g_autofree char *said = storage_ask(storage_cli, "add_image",
                                        with(added("new", "raw"), "commit_id", json_string(id)));
    g_assert_nonnull(strstr(said, "serial"));
    g_assert_cmpstr(now_of(key).status, ==, "queued");
    g_assert_cmpstr(now_of(key).backend, ==, DIR1);
    assert_says(accept(create("new", 1)), "wrong_state: image new is queued; create-volume needs "
                                          "active");
    g_autofree char *twice = storage_ask(storage_cli, "add_image",
                                         with(added("new", "raw"), "unique_name", json_true()));
    g_assert_true(g_str_has_prefix(twice, "already_exists: an image new exists already: "));
    g_autofree char *bad = storage_ask(
        storage_cli, "add_image", with(added("x", "raw"), "properties", json_make("[s]", "os")));
    g_assert_nonnull(strstr(bad, "properties: \"os\" is not KEY=VALUE"));
    /* Nobody has begun, so it could be withdrawn; not if it is protected. */
    asked(json_make("{s:s,s:s,s:s}", "resource_type", "Image", "operation", "save-image",
                    "resource", "new"),
          "Image");
    g_free(storage_ask(storage_cli, "change_image",
                       json_make("{s:s,s:i}", "image", "new", "protected", 1)));
    assert_says(accept(delete_image("new")),
                "wrong_state: image new is protected; first: fettle image modify new --protected "
                "no");
    g_free(storage_ask(storage_cli, "change_image",
                       json_make("{s:s,s:i}", "image", "new", "protected", 0)));
    g_free(storage_ask(storage_cli, "reset_state",
                       json_make("{s:s,s:s,s:s}", "resource_type", "Image", "resource", "new",
                                 "status", "killed")));
    asked(delete_image("new"), "Image");
    g_assert_cmpstr(now_of(key).status, ==, "deleting");
    assert_says(end(storage_end(key, storage_take(1, generation, key))), "passed");
    g_assert_null(image_of(key));
    world_tear_down();
}

/* A volume may be elsewhere than its image, where a node serves both; the head has the last word.
 */
static void test_places(void)
{
    set_up();
    guint64 of_scheduler = storage_register_scheduler(1);
    const char *made = asked(with(create("tick", 0), "backend", json_string("")), "Volume");
    g_assert_cmpstr(storage_row(made)->backend, ==, "");
    storage_set_nodes(DIR2, NODE3);
    json_t *handing = with(with(storage_of_scheduler(1, of_scheduler), "key", json_string(made)),
                           "backend", json_string(DIR2));
    assert_says(storage_ask(schedulers[0], "hand_on", handing),
                "wrong_state: no node serves both back end dir1 and back end dir2");
    assert_says(accept(with(create("tick", 0), "backend", json_string("dir2"))),
                "wrong_state: no node serves both back end dir1 and back end dir2");
    const char *only = asked(with(create("tick", 0), "backend", json_string("")), "Volume");
    g_assert_cmpstr(storage_row(only)->backend, ==, DIR1);
    storage_set_nodes(DIR2, NODE2);
    const char *other = asked(with(create("tick", 0), "backend", json_string("dir2")), "Volume");
    g_assert_cmpstr(resource_read_from(wconf_config(world.wconf), storage_row(other)), ==, DIR1);
    world_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/wconf_image/upload#SAF-60,121", test_upload);
    g_test_add_func("/wconf_image/upload-fails#SAF-121,CLN-65", test_upload_fails);
    g_test_add_func("/wconf_image/create#CLN-09,SAF-120", test_create);
    g_test_add_func("/wconf_image/killed-meanwhile#SAF-120", test_killed_meanwhile);
    g_test_add_func("/wconf_image/bad-requests", test_bad_requests);
    g_test_add_func("/wconf_image/change#SAF-50", test_change);
    g_test_add_func("/wconf_image/add", test_add);
    g_test_add_func("/wconf_image/places", test_places);
    return g_test_run();
}
