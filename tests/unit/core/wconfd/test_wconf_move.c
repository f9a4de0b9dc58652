/* Requests for moves of volumes to other back ends and types, and their ends: until that nothing
 * but the status says so, and at it back end, data and type change together (SAF-53). */
#include <string.h>

#include "core/config/resource.h"
#include "core/wconfd/wconf_private.h"
#include "proto/change.h"
#include "proto/storage/volume_driver.h"
#include "unit/core/world/storage_world.h"

static guint64 generation; /* of node2's member of dir2 */

static struct resource now(void)
{
    return resource_of(world.wconf->committed, RESOURCE_VOLUME, VOLUME1);
}

static json_t *of_member(void)
{
    g_autofree char *key = config_storage_service_key(STORAGE_VOLUME, "node2", DIR2);
    return json_make("{s:s,s:i}", "service", key, "generation", generation);
}

static void join(void)
{
    generation = storage_number(
        storage_ask(volumed[1], "register_storage",
                    json_make("{s:s,s:s,s:s,s:i,s:s}", "binary", "cinder-volume", "host", "node2",
                              "backend", DIR2, "wire", 1, "version", "0.1")),
        "generation");
}

/* data1 on dir1 of the type that may be on dir1 (`own`; NULL: of none); slow is a type for dir2,
 * and any one for each. */
#define SLOW "ffffffff-2222-4000-8000-000000000002"
#define ANY "ffffffff-3333-4000-8000-000000000003"
static void set_up(bool typed, json_t *more)
{
    GPtrArray *all = change_list_new();
    json_t *volume = object_volume1();
    if (typed)
        volume = with(volume, "volume_type", json_string(TYPE1));
    if (more)
        json_object_update_new(volume, more);
    g_ptr_array_add(all, put("volume", VOLUME1, 1, volume));
    g_ptr_array_add(all, put("volume_type", TYPE1, 1, object_type("volume_backend_name=dir1")));
    g_ptr_array_add(
        all, put("volume_type", SLOW, 1,
                 with(with(object_type("volume_backend_name=dir2"), "uuid", json_string(SLOW)),
                      "name", json_string("slow"))));
    g_ptr_array_add(all, put("volume_type", ANY, 1,
                             with(with(object_type(NULL), "uuid", json_string(ANY)), "name",
                                  json_string("any"))));
    storage_set_up(all);
    join();
}

static char *ask(const char *operation, const char *what, const char *name, bool migrate)
{
    json_t *args = json_make("{s:s,s:s,s:s,s:b}", "resource_type", "Volume", "operation", operation,
                             "resource", "data1", "migrate", migrate);
    if (what)
        json_object_set_new(args, what, json_string(name));
    return storage_ask(storage_cli, "accept_work", args);
}

static char *migrate(const char *backend)
{
    return ask("migrate-volume", "backend", backend, false);
}

static char *retype(const char *type, bool may_move)
{
    return ask("retype-volume", "volume_type", type, may_move);
}

static void accepted(char *said)
{
    g_assert_cmpuint(storage_number(said, "serial"), >, 0);
}

static guint64 taken(void)
{
    return storage_number(
        storage_ask(volumed[1], "take_work", with(of_member(), "key", json_string(ROW1))), "claim");
}

static char *ended(json_t *item)
{
    return storage_verdicts(
        storage_ask(volumed[1], "end_work", with(of_member(), "items", json_make("[o]", item))));
}

static char *ended_well(guint64 claim)
{
    g_autofree char *data = volume_data_name(VOLUME1, claim);
    return ended(with(storage_end(ROW1, claim), "data", json_string(data)));
}

static void test_moves(void)
{
    set_up(false, NULL);
    accepted(migrate("dir2"));
    const struct worker *row = storage_row(ROW1);
    g_assert_cmpstr(row->backend, ==, DIR2);
    g_assert_cmpstr(row->source->data, ==, VOLUME1 ".7");
    g_assert_cmpstr(resource_read_from(wconf_config(world.wconf), row), ==, DIR1);
    g_assert_cmpstr(now().status, ==, "migrating");
    g_assert_cmpstr(now().backend, ==, DIR1);
    g_assert_cmpstr(now().data, ==, VOLUME1 ".7");
    assert_says(migrate("dir2"),
                "wrong_state: volume data1: it is being migrated; wait, or reset its state");
    guint64 claim = taken();
    assert_says(ended(storage_end(ROW1, claim)),
                "refused: data: at the end of migrate-volume volume data1 has some");
    assert_says(ended_well(claim), "passed");
    g_autofree char *data = volume_data_name(VOLUME1, claim);
    g_assert_cmpstr(now().status, ==, "available");
    g_assert_cmpstr(now().backend, ==, DIR2);
    g_assert_cmpstr(now().host, ==, "node2@dir2");
    g_assert_cmpstr(now().data, ==, data);
    g_assert_null(storage_row(ROW1));
    g_autofree char *left = config_trash_key(DIR1, VOLUME1 ".7");
    g_assert_nonnull(config_get(world.wconf->committed, "trash", left, NULL));
    world_tear_down();
}

/* One that fails, or is cleaned, is where it was, and says why it did not move. */
static void test_fails(void)
{
    set_up(false, NULL);
    accepted(migrate(""));
    g_assert_cmpstr(storage_row(ROW1)->backend, ==, DIR2); /* the only other one */
    guint64 claim = taken();
    assert_says(ended(with(with(storage_end(ROW1, claim), "failed", json_true()), "why",
                           json_string("it is full"))),
                "passed");
    g_assert_cmpstr(now().status, ==, "available");
    g_assert_cmpstr(now().status_why, ==, "it is full");
    g_assert_cmpstr(now().backend, ==, DIR1);
    g_assert_cmpstr(now().data, ==, VOLUME1 ".7");
    g_assert_cmpuint(config_count(world.wconf->committed, "trash"), ==, 0);
    accepted(migrate("dir2"));
    g_assert_cmpstr(now().status_why, ==, "");
    world_tear_down();
}

/* A person resets it in mid-move: it is where it was, and the late end changes nothing. */
static void test_reset_meanwhile(void)
{
    set_up(false, NULL);
    accepted(migrate("dir2"));
    guint64 claim = taken();
    accepted(storage_ask(storage_cli, "reset_state",
                         json_make("{s:s,s:s,s:s}", "resource_type", "Volume", "resource", "data1",
                                   "status", "available")));
    g_autofree char *late = ended_well(claim);
    g_assert_true(g_str_has_prefix(late, "refused: ") || g_str_has_prefix(late, "look"));
    g_assert_cmpstr(now().backend, ==, DIR1);
    g_assert_cmpstr(now().data, ==, VOLUME1 ".7");
    world_tear_down();
}

static void test_bad_requests(void)
{
    set_up(true, NULL);
    assert_says(migrate("dir1"), "wrong_state: volume data1 is on dir1 already");
    assert_says(migrate("dir9"), "unknown_entity: backend \"dir9\" does not exist");
    assert_says(migrate("dir2"),
                "wrong_input: volume_type: fast, that of volume data1, is not for back end dir2, "
                "by its extra specs; give it another type: fettle volume retype data1 --type TYPE "
                "--migrate");
    assert_says(migrate(""), "wrong_state: volume data1 can be moved nowhere: besides dir1 no back "
                             "end is for type fast and served by a node that serves dir1");
    assert_says(ask("migrate-volume", "volume_type", "slow", false),
                "wrong_input: volume_type: migrate-volume takes none");
    assert_says(ask("migrate-volume", NULL, NULL, true),
                "wrong_input: migrate: migrate-volume takes none");
    assert_says(storage_ask(storage_cli, "accept_work",
                            json_make("{s:s,s:s,s:s,s:b}", "resource_type", "Volume", "operation",
                                      "migrate-volume", "resource", "data1", "force", 1)),
                "wrong_input: force: migrate-volume takes none");
    assert_says(ask("retype-volume", "backend", "dir2", false),
                "wrong_input: backend: retype-volume takes none");
    assert_says(ask("retype-volume", NULL, NULL, false),
                "wrong_input: volume_type: retype-volume needs one");
    assert_says(retype("nine", false), "unknown_entity: volume_type \"nine\" does not exist");
    assert_says(retype("fast", true), "wrong_state: volume data1 has type fast already");
    assert_says(retype("slow", false),
                "wrong_state: volume data1 is on dir1, which type slow is not for, by its extra "
                "specs; let it be moved for that (--migrate)");
    world_tear_down();
    set_up(false, json_make("{s:s}", "status", "error"));
    assert_says(migrate("dir2"),
                "wrong_state: volume data1 is error; migrate-volume needs available");
    world_tear_down();
    set_up(false, NULL);
    storage_set_nodes(DIR2, NODE3);
    assert_says(migrate("dir2"),
                "wrong_state: no node serves both back end dir1 and back end dir2");
    world_tear_down();
}

/* They lie beside their volume. */
static void test_snapshots(void)
{
    GPtrArray *all = change_list_new();
    g_ptr_array_add(all, put("volume", VOLUME1, 1, object_volume1()));
    g_ptr_array_add(all, put("snapshot", VOLUME2, 1, object_snapshot2()));
    storage_set_up(all);
    assert_says(migrate("dir2"),
                "wrong_state: volume data1 has snapshots: before; they stay on dir1, where their "
                "volume has to be: delete them before it is moved, or back it up and restore that "
                "elsewhere");
    world_tear_down();
}

static void test_no_room(void)
{
    set_up(false, NULL);
    json_t *one =
        with(with(of_member(), "free_mib", json_integer(1500)), "total_mib", json_integer(4096));
    g_free(storage_ask(volumed[1], "beat", json_make("{s:[o]}", "services", one)));
    g_autofree char *said = migrate("dir2");
    g_assert_true(
        g_str_has_prefix(said, "insufficient_resources: back end dir2 has 1 GiB left, not 2 GiB"));
    g_assert_cmpstr(now().status, ==, "available");
    world_tear_down();
}

static void test_retype_on_the_spot(void)
{
    set_up(false, NULL);
    guint64 before = config_serial(world.wconf->committed);
    accepted(retype("fast", false));
    g_assert_cmpstr(now().volume_type, ==, TYPE1);
    g_assert_cmpstr(now().status, ==, "available");
    g_assert_cmpuint(storage_writes(before, "worker"), ==, 0);
    g_assert_cmpuint(config_serial(world.wconf->committed), ==, before + 1);
    world_tear_down();
}

/* It gets the type with its data, and that stays as it is until then. */
static void test_retype_moves(void)
{
    set_up(true, NULL);
    accepted(retype("slow", true));
    g_assert_cmpstr(now().status, ==, "retyping");
    g_assert_cmpstr(now().volume_type, ==, TYPE1);
    g_assert_cmpstr(storage_row(ROW1)->volume_type, ==, SLOW);
    g_assert_cmpstr(storage_row(ROW1)->backend, ==, DIR2);
    assert_says(storage_ask(storage_cli, "change_volume_type",
                            json_make("{s:s,s:[s]}", "volume_type", "slow", "extra_specs",
                                      "volume_backend_name=dir1")),
                "wrong_state: volume type slow: its extra specs stay while a volume has it, as "
                "data1 does; make another type");
    g_autofree char *removed =
        storage_ask(storage_cli, "remove_volume_type", json_make("{s:s}", "volume_type", "slow"));
    g_assert_null(strstr(removed, "serial"));
    assert_says(ended_well(taken()), "passed");
    g_assert_cmpstr(now().status, ==, "available");
    g_assert_cmpstr(now().volume_type, ==, SLOW);
    g_assert_cmpstr(now().backend, ==, DIR2);
    world_tear_down();
}

/* Where several can have it a scheduler chooses: the row is for it, the volume stays. */
static void test_choice(void)
{
    GPtrArray *all = change_list_new();
    g_ptr_array_add(all, put("volume", VOLUME1, 1, object_volume1()));
    json_t *third = with(object_backend(DIR2), "uuid", json_string(BACKUP3));
    json_object_set_new(third, "name", json_string("dir3"));
    json_object_set_new(third, "path", json_string("/mnt/c"));
    g_ptr_array_add(all, put("backend", BACKUP3, 1, third));
    storage_set_up(all);
    guint64 scheduler = storage_register_scheduler(1);
    join();
    accepted(migrate(""));
    g_assert_cmpstr(storage_row(ROW1)->backend, ==, "");
    g_assert_cmpstr(now().backend, ==, DIR1);
    json_t *args = with(storage_of_scheduler(1, scheduler), "key", json_string(ROW1));
    assert_says(storage_ask(schedulers[0], "hand_on",
                            with(json_deep_copy(args), "backend", json_string(DIR1))),
                "wrong_state: volume data1 is on dir1 already");
    accepted(storage_ask(schedulers[0], "hand_on", with(args, "backend", json_string(DIR2))));
    g_assert_cmpstr(storage_row(ROW1)->backend, ==, DIR2);
    g_assert_cmpstr(now().backend, ==, DIR1);
    assert_says(ended_well(taken()), "passed");
    g_assert_cmpstr(now().backend, ==, DIR2);
    world_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/wconf_move/moves#SAF-53", test_moves);
    g_test_add_func("/wconf_move/fails", test_fails);
    g_test_add_func("/wconf_move/reset-meanwhile#CLN-65", test_reset_meanwhile);
    g_test_add_func("/wconf_move/bad-requests", test_bad_requests);
    g_test_add_func("/wconf_move/snapshots", test_snapshots);
    g_test_add_func("/wconf_move/no-room", test_no_room);
    g_test_add_func("/wconf_move/retype-on-the-spot", test_retype_on_the_spot);
    g_test_add_func("/wconf_move/retype-moves", test_retype_moves);
    g_test_add_func("/wconf_move/choice", test_choice);
    return g_test_run();
}
