/* Requests for work on backups, and their ends: the volume is the partner (SAF-121), and what it
 * has is swapped by the end alone (SAF-53). */
#include <string.h>

#include "core/config/resource.h"
#include "core/wconfd/wconf_private.h"
#include "proto/storage/volume_driver.h"
#include "unit/core/world/storage_world.h"

#define SUM                                                                                        \
    "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce"                             \
    "47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e"

static guint64 generation;
static const char *volume;

static struct resource now_of(const char *key)
{
    g_auto(GStrv) parts = g_strsplit(key, "/", 2);
    int type = enum_parse(&resource_type_words, parts[0]);
    return resource_of(world.wconf->committed, (enum resource_type)type, g_intern_string(parts[1]));
}

static const char *status_of(const char *key)
{
    return now_of(key).status;
}

static char *accept(json_t *args)
{
    return storage_ask(storage_cli, "accept_work", args);
}

static json_t *back_up(const char *name, const char *source)
{
    return json_make("{s:s,s:s,s:s,s:s}", "resource_type", "Backup", "operation", "back-up-volume",
                     "name", name, "source", source);
}

static json_t *restore(const char *what, const char *name)
{
    return json_make("{s:s,s:s,s:s,s:s}", "resource_type", "Backup", "operation", "restore-backup",
                     "resource", "b1", what, name);
}

/* On its way; key of what it makes, valid for ever. */
static const char *asked(json_t *args, const char *type)
{
    g_autofree char *id = env_uuid(storage_cli);
    g_autofree char *key = g_strdup_printf("%s/%s", type, id);
    g_assert_cmpuint(storage_number(accept(with(args, "commit_id", json_string(id))), "serial"), >,
                     0);
    return g_intern_string(key);
}

/* Ends the work of a row with data of what it is made for. */
static char *end_made(const char *key, const char *made, guint64 claim)
{
    g_autofree char *data = volume_data_name(strchr(made, '/') + 1, claim);
    json_t *end = with(storage_end(key, claim), "data", json_string(data));
    if (strcmp(key, made) == 0)
        end = with(with(end, "bytes", json_integer(4096)), "sum", json_string(SUM));
    return storage_end_all(1, generation, json_make("[o]", end));
}

static void reset(const char *type, const char *resource, const char *status)
{
    json_t *args =
        json_make("{s:s,s:s,s:s}", "resource_type", type, "resource", resource, "status", status);
    g_assert_cmpuint(storage_number(storage_ask(storage_cli, "reset_state", args), "serial"), >, 0);
}

static void set_up(void)
{
    storage_set_up(NULL);
    generation = storage_register(1);
    volume = storage_create("data1");
    storage_made(volume, generation);
}

/* With b1, a backup of data1. */
static const char *set_up_made(void)
{
    set_up();
    const char *backup = asked(back_up("b1", "data1"), "Backup");
    assert_says(end_made(backup, backup, storage_take(1, generation, backup)), "passed");
    return backup;
}

static void set_backend(const char *uuid, bool backups, const char *node)
{
    guint64 version = 0;
    config_get(wconf_config(world.wconf), "backend", uuid, &version);
    json_t *object = with(object_backend(uuid), "backups", json_boolean(backups));
    if (node)
        object = with(object, "nodes", json_make("[s]", node));
    g_autofree char *said = job_change(&world, 17, "change_backend",
                                       changes_of(put("backend", uuid, version, object), NULL));
    g_assert_nonnull(strstr(said, "serial"));
}

static void test_create(void)
{
    set_up();
    const char *backup = asked(back_up("b1", "data1"), "Backup");
    const struct worker *row = storage_row(backup);
    g_assert_cmpstr(status_of(backup), ==, "creating");
    g_assert_cmpstr(status_of(volume), ==, "backing-up");
    g_assert_cmpstr(row->partner_id, ==, strchr(volume, '/') + 1);
    g_assert_cmpstr(row->source->data, ==, now_of(volume).data);
    g_assert_cmpstr(row->backend, ==, DIR1);
    g_assert_cmpuint(now_of(backup).size, ==, 2);
    assert_says(accept(json_make("{s:s,s:s,s:s}", "resource_type", "Volume", "operation",
                                 "delete-volume", "resource", "data1")),
                "wrong_state: volume data1 is being worked on by backup b1; wait, or reset that");
    guint64 claim = storage_take(1, generation, backup);
    g_autofree char *data = volume_data_name(strchr(backup, '/') + 1, claim);
    g_autofree char *said = storage_end_all(
        1, generation,
        json_make("[o]", with(storage_end(backup, claim), "data", json_string(data))));
    g_assert_nonnull(strstr(said, "is not known by length and SHA-512"));
    assert_says(end_made(backup, backup, claim), "passed");
    g_assert_cmpstr(status_of(backup), ==, "available");
    g_assert_cmpstr(status_of(volume), ==, "available");
    g_assert_cmpstr(now_of(backup).sum, ==, SUM);
    g_assert_cmpuint(now_of(backup).bytes, ==, 4096);
    g_assert_cmpstr(now_of(backup).volume, ==, strchr(volume, '/') + 1);
    world_tear_down();
}

/* Of a snapshot: the volume is free meanwhile. */
static void test_of_snapshot(void)
{
    set_up();
    json_t *args = json_make("{s:s,s:s,s:s,s:s}", "resource_type", "Snapshot", "operation",
                             "create-snapshot", "name", "before", "source", "data1");
    const char *snapshot = asked(args, "Snapshot");
    storage_made(snapshot, generation);
    const char *backup =
        asked(with(back_up("b1", "data1"), "snapshot", json_string("before")), "Backup");
    g_assert_cmpstr(status_of(volume), ==, "available");
    g_assert_cmpstr(storage_row(backup)->source->data, ==, now_of(snapshot).data);
    g_assert_cmpstr(now_of(backup).snapshot, ==, "before");
    assert_says(accept(json_make("{s:s,s:s,s:s}", "resource_type", "Snapshot", "operation",
                                 "delete-snapshot", "resource", "before")),
                "wrong_state: snapshot before is being read by backup b1; wait, or reset that");
    assert_says(end_made(backup, backup, storage_take(1, generation, backup)), "passed");
    g_assert_cmpstr(status_of(backup), ==, "available");
    storage_made(storage_create("data2"), generation);
    assert_says(accept(with(back_up("b2", "data2"), "snapshot", json_string("before"))),
                "wrong_input: snapshot: before is not one of volume data2");
    world_tear_down();
}

static void test_bad_requests(void)
{
    set_up_made();
    const struct {
        json_t *args;
        const char *said;
    } cases[] = {
        {back_up("x", "data9"), "unknown_entity: volume \"data9\" does not exist"},
        {with(back_up("x", "data1"), "size", json_integer(2)),
         "wrong_input: size: back-up-volume takes none"},
        {with(back_up("x", "data1"), "target", json_string("data1")),
         "wrong_input: target: back-up-volume takes none"},
        {with(back_up("x", "data1"), "backend", json_string("dir2")),
         "wrong_state: back end dir2 may hold no backups; allow it (fettle backend modify dir2 "
         "--backups yes), or name another one"},
        {with(back_up("x", "data1"), "snapshot", json_string("b1")),
         "unknown_entity: snapshot \"b1\" does not exist"},
        {with(restore("name", "new"), "size", json_integer(1)),
         "wrong_input: size: 1 GiB is smaller than backup b1, which has 2 GiB"},
        {with(restore("target", "data1"), "size", json_integer(5)),
         "wrong_input: size: a volume that there is (data1) keeps its own; that is for a new one"},
        {with(restore("target", "data1"), "source", json_string("data1")),
         "wrong_input: source: restore-backup takes none"},
        {restore("target", "data9"), "unknown_entity: volume \"data9\" does not exist"},
        {with(restore("name", "x"), "resource", json_string("b9")),
         "unknown_entity: backup \"b9\" does not exist"},
        {json_make("{s:s,s:s,s:s,s:s}", "resource_type", "Volume", "operation", "delete-volume",
                   "resource", "data1", "target", "b1"),
         "wrong_input: target: delete-volume takes none"},
        {json_make("{s:s,s:s,s:s,s:i,s:s}", "resource_type", "Volume", "operation", "create-volume",
                   "name", "x", "size", 1, "snapshot", "b1"),
         "wrong_input: snapshot: create-volume takes none"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        assert_says(accept(cases[i].args), cases[i].said);
    /* One that is larger than the volume that is to get it. */
    storage_accept("extend-volume", "data1", 5);
    guint64 claim = storage_take(1, generation, volume);
    assert_says(storage_end_all(
                    1, generation,
                    json_make("[o]", with(storage_end(volume, claim), "size", json_integer(5)))),
                "passed");
    const char *large = asked(back_up("large", "data1"), "Backup");
    assert_says(end_made(large, large, storage_take(1, generation, large)), "passed");
    storage_made(storage_create("data2"), generation);
    assert_says(accept(with(restore("target", "data2"), "resource", json_string("large"))),
                "wrong_input: volume data2 has 2 GiB, and backup large is of 5 GiB; extend it "
                "first, or restore into a new one");
    world_tear_down();
}

/* Which back end holds it. */
static void test_holders(void)
{
    set_up();
    set_backend(DIR1, false, NULL);
    assert_says(accept(back_up("x", "data1")),
                "wrong_state: no back end may hold backups; allow one: fettle backend modify dir1 "
                "--backups yes");
    set_backend(DIR2, true, NULL);
    const char *backup = asked(back_up("b1", "data1"), "Backup");
    g_assert_cmpstr(now_of(backup).backend, ==, DIR2);
    g_assert_cmpstr(storage_row(backup)->backend, ==, DIR2);
    g_assert_cmpstr(resource_read_from(wconf_config(world.wconf), storage_row(backup)), ==, DIR1);
    reset("Backup", "b1", "error");
    g_assert_cmpstr(status_of(volume), ==, "available");
    set_backend(DIR2, true, NODE3);
    assert_says(accept(back_up("x", "data1")),
                "wrong_state: no node serves both back end dir1 and back end dir2");
    world_tear_down();
}

static void test_restore_over(void)
{
    const char *backup = set_up_made();
    g_autofree char *old = g_strdup(now_of(volume).data);
    asked(restore("target", "data1"), "Backup");
    g_assert_cmpstr(status_of(volume), ==, "restoring-backup");
    g_assert_cmpstr(status_of(backup), ==, "restoring");
    guint64 claim = storage_take(1, generation, backup);
    g_autofree char *wrong = end_made(backup, backup, claim);
    g_assert_nonnull(strstr(wrong, "by its claim (SAF-52)"));
    g_autofree char *none =
        storage_end_all(1, generation, json_make("[o]", storage_end(backup, claim)));
    g_assert_nonnull(strstr(none, "data: at the end of restore-backup backup b1 has some"));
    g_assert_cmpstr(now_of(volume).data, ==, old);
    assert_says(end_made(backup, volume, claim), "passed");
    g_autofree char *data = volume_data_name(strchr(volume, '/') + 1, claim);
    g_assert_cmpstr(now_of(volume).data, ==, data);
    g_assert_cmpstr(status_of(volume), ==, "available");
    g_assert_cmpstr(status_of(backup), ==, "available");
    g_assert_cmpstr(now_of(backup).sum, ==, SUM);
    g_autofree char *key = config_trash_key(DIR1, old);
    const struct trash *trash = config_get(world.wconf->committed, "trash", key, NULL);
    g_assert_cmpint(trash->resource_type, ==, RESOURCE_VOLUME);
    world_tear_down();
}

static void test_restore_new(void)
{
    const char *backup = set_up_made();
    const char *made = asked(with(restore("name", "data2"), "size", json_integer(3)), "Volume");
    g_assert_cmpstr(status_of(made), ==, "restoring-backup");
    g_assert_cmpuint(now_of(made).size, ==, 3);
    g_assert_cmpuint(now_of(made).created_us, >, 0);
    g_assert_cmpstr(now_of(made).backend, ==, DIR1);
    assert_says(end_made(backup, made, storage_take(1, generation, backup)), "passed");
    g_assert_cmpstr(status_of(made), ==, "available");
    /* One that fails leaves a record that says why. */
    const char *other = asked(restore("name", "data3"), "Volume");
    guint64 claim = storage_take(1, generation, backup);
    json_t *end = with(with(storage_end(backup, claim), "failed", json_true()), "why",
                       json_string("it is damaged"));
    assert_says(storage_end_all(1, generation, json_make("[o]", end)), "passed");
    g_assert_cmpstr(status_of(other), ==, "error");
    g_assert_cmpstr(now_of(other).status_why, ==, "it is damaged");
    g_assert_cmpstr(status_of(backup), ==, "available");
    g_assert_cmpstr(now_of(backup).status_why, ==, "it is damaged");
    world_tear_down();
}

/* A delete of what nobody has begun takes it off record, and frees the volume. */
static void test_withdrawn(void)
{
    set_up();
    const char *backup = asked(back_up("b1", "data1"), "Backup");
    g_assert_cmpuint(
        storage_number(accept(json_make("{s:s,s:s,s:s}", "resource_type", "Backup", "operation",
                                        "delete-backup", "resource", "b1")),
                       "serial"),
        >, 0);
    g_assert_null(storage_row(backup));
    g_assert_false(now_of(backup).exists);
    g_assert_cmpstr(status_of(volume), ==, "available");
    const char *other = storage_create("data2");
    guint64 claim = storage_take(1, generation, other);
    assert_says(accept(json_make("{s:s,s:s,s:s}", "resource_type", "Volume", "operation",
                                 "delete-volume", "resource", "data2")),
                "wrong_state: volume data2: it is being created; wait, or reset its state");
    g_autofree char *data = volume_data_name(strchr(other, '/') + 1, claim);
    assert_says(storage_end_all(
                    1, generation,
                    json_make("[o]", with(storage_end(other, claim), "data", json_string(data)))),
                "passed");
    world_tear_down();
}

/* The volume is reset in mid-restore, and worked on: the late end changes nothing. */
static void test_reset_meanwhile(void)
{
    const char *backup = set_up_made();
    g_autofree char *old = g_strdup(now_of(volume).data);
    asked(restore("target", "data1"), "Backup");
    guint64 claim = storage_take(1, generation, backup);
    reset("Volume", "data1", "available");
    g_assert_null(storage_row(backup));
    g_assert_cmpstr(status_of(backup), ==, "available");
    storage_accept("extend-volume", "data1", 5);
    g_autofree char *said = end_made(backup, volume, claim);
    g_assert_cmpstr(said, !=, "passed");
    g_assert_cmpstr(now_of(volume).data, ==, old);
    g_assert_cmpstr(status_of(volume), ==, "extending");
    reset("Volume", "data1", "available");
    /* The other way round: who resets the backup frees the volume. */
    asked(restore("target", "data1"), "Backup");
    reset("Backup", "b1", "error");
    g_assert_cmpstr(status_of(volume), ==, "available");
    g_assert_cmpstr(now_of(volume).data, ==, old);
    const char *made = asked(back_up("b2", "data1"), "Backup");
    claim = storage_take(1, generation, made);
    reset("Volume", "data1", "error");
    g_assert_cmpstr(status_of(made), ==, "error");
    g_autofree char *late = end_made(made, made, claim);
    g_assert_cmpstr(late, !=, "passed");
    g_assert_cmpstr(now_of(made).data, ==, "");
    world_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/wconf_backup/create#SAF-121", test_create);
    g_test_add_func("/wconf_backup/of-snapshot#SAF-120", test_of_snapshot);
    g_test_add_func("/wconf_backup/bad-requests", test_bad_requests);
    g_test_add_func("/wconf_backup/holders", test_holders);
    g_test_add_func("/wconf_backup/restore-over#SAF-53", test_restore_over);
    g_test_add_func("/wconf_backup/restore-new#SAF-52", test_restore_new);
    g_test_add_func("/wconf_backup/withdrawn", test_withdrawn);
    g_test_add_func("/wconf_backup/reset-meanwhile#SAF-121,CLN-65", test_reset_meanwhile);
    return g_test_run();
}
