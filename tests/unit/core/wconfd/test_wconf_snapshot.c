/* Requests for work on snapshots and by copies: what is read is left alone meanwhile (SAF-120), a
 * partner too (SAF-121), and a volume goes after its snapshots. */
#include <string.h>

#include "core/config/resource.h"
#include "core/wconfd/wconf_private.h"
#include "proto/storage/volume_driver.h"
#include "unit/core/world/storage_world.h"

static guint64 generation;

static struct resource now_of(const char *key)
{
    g_auto(GStrv) parts = g_strsplit(key, "/", 2);
    int type = enum_parse(&resource_type_words, parts[0]);
    const char *uuid = g_intern_string(parts[1]);
    return resource_of(world.wconf->committed, (enum resource_type)type, uuid);
}

static const char *status_of(const char *key)
{
    return now_of(key).status;
}

static json_t *wish(const char *type, const char *operation, const char *resource)
{
    return json_make("{s:s,s:s,s:s}", "resource_type", type, "operation", operation, "resource",
                     resource);
}

static char *accept(json_t *args)
{
    return storage_ask(storage_cli, "accept_work", args);
}

static json_t *copy_of(const char *type, const char *name, const char *source)
{
    const char *operation = strcmp(type, "Volume") ? "create-snapshot" : "create-volume";
    return with(with(wish(type, operation, ""), "name", json_string(name)), "source",
                json_string(source));
}

/* On its way; its key, valid for ever. */
static const char *asked(json_t *args)
{
    g_autofree char *id = env_uuid(storage_cli);
    const char *type = json_string_value(json_object_get(args, "resource_type"));
    g_autofree char *key = g_strdup_printf("%s/%s", type, id);
    g_assert_cmpuint(storage_number(accept(with(args, "commit_id", json_string(id))), "serial"), >,
                     0);
    return g_intern_string(key);
}

/* data1 and its snapshot before, both available. */
static const char *volume, *snapshot;

static void set_up(void)
{
    storage_set_up(NULL);
    generation = storage_register(1);
    volume = storage_create("data1");
    storage_made(volume, generation);
    snapshot = asked(copy_of("Snapshot", "before", "data1"));
}

static void set_up_made(void)
{
    set_up();
    storage_made(snapshot, generation);
}

static char *end_made(const char *key, guint64 claim)
{
    g_autofree char *data = volume_data_name(strchr(key, '/') + 1, claim);
    return storage_end_all(
        1, generation, json_make("[o]", with(storage_end(key, claim), "data", json_string(data))));
}

static void reset(const char *type, const char *resource, const char *status)
{
    json_t *args =
        json_make("{s:s,s:s,s:s}", "resource_type", type, "resource", resource, "status", status);
    g_assert_cmpuint(storage_number(storage_ask(storage_cli, "reset_state", args), "serial"), >, 0);
}

static void test_create(void)
{
    set_up();
    const struct worker *row = storage_row(snapshot);
    struct resource made = now_of(snapshot);
    g_assert_cmpstr(made.status, ==, "creating");
    g_assert_cmpstr(made.name, ==, "before");
    g_assert_cmpstr(made.backend, ==, DIR1);
    g_assert_cmpstr(made.volume, ==, strchr(volume, '/') + 1);
    g_assert_cmpuint(made.size, ==, 2);
    g_assert_cmpint(row->resource_type, ==, RESOURCE_SNAPSHOT);
    g_assert_cmpstr(row->operation, ==, "create-snapshot");
    g_assert_cmpstr(row->source->data, ==, now_of(volume).data);
    g_assert_cmpstr(status_of(volume), ==, "available");
    storage_made(snapshot, generation);
    g_assert_cmpstr(status_of(snapshot), ==, "available");
    g_assert_cmpstr(now_of(snapshot).host, ==, "node1@dir1");
    g_assert_null(storage_row(snapshot));

    const char *copy = asked(copy_of("Volume", "data2", "before"));
    g_assert_cmpuint(now_of(copy).size, ==, 2);
    g_assert_cmpstr(now_of(copy).backend, ==, DIR1);
    storage_made(copy, generation);
    const char *larger = asked(with(copy_of("Volume", "data3", "before"), "size", json_integer(5)));
    g_assert_cmpuint(now_of(larger).size, ==, 5);
    world_tear_down();
}

static void test_bad_requests(void)
{
    set_up_made();
    const struct {
        json_t *args;
        const char *said;
    } cases[] = {
        {copy_of("Snapshot", "x", "data9"), "unknown_entity: volume \"data9\" does not exist"},
        {copy_of("Snapshot", "x", ""), "unknown_entity: volume \"\" does not exist"},
        {with(copy_of("Snapshot", "x", "data1"), "size", json_integer(2)),
         "wrong_input: size: create-snapshot takes none"},
        {with(copy_of("Snapshot", "x", "data1"), "backend", json_string("dir2")),
         "wrong_input: backend: volume data1 is on dir1, and what is made of it too"},
        {copy_of("Volume", "x", "data1"), "unknown_entity: snapshot \"data1\" does not exist"},
        {with(copy_of("Volume", "x", "before"), "size", json_integer(1)),
         "wrong_input: size: 1 GiB is smaller than snapshot before, which has 2 GiB"},
        {with(copy_of("Volume", "x", "before"), "backend", json_string("dir2")),
         "wrong_input: backend: snapshot before is on dir1, and what is made of it too"},
        {with(copy_of("Volume", "x", "before"), "cascade", json_true()),
         "wrong_input: cascade: create-volume takes none"},
        {with(wish("Volume", "extend-volume", "data1"), "cascade", json_true()),
         "wrong_input: extend: 0 GiB is not larger than 2 GiB"},
        {with(wish("Snapshot", "delete-snapshot", "before"), "cascade", json_true()),
         "wrong_input: cascade: delete-snapshot takes none"},
        {with(wish("Snapshot", "delete-snapshot", "before"), "source", json_string("x")),
         "wrong_input: source: delete-snapshot takes none"},
        {wish("Snapshot", "extend-volume", "before"),
         "wrong_input: operation: there is no \"extend-volume\" of a Snapshot; there is "
         "create-snapshot, delete-snapshot"},
        {wish("Volume", "delete-volume", "data1"),
         "wrong_state: volume data1 has snapshots: before; delete them before it, or with it "
         "(--cascade)"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        assert_says(accept(cases[i].args), cases[i].said);
    assert_says(storage_ask(storage_cli, "reset_state",
                            json_make("{s:s,s:s,s:s}", "resource_type", "Snapshot", "resource",
                                      "before", "status", "error_extending")),
                "wrong_input: status: a snapshot can be set to available, error, error_deleting, "
                "not to \"error_extending\"");
    world_tear_down();
}

/* What is being read stays as it is, and what is being done away with is not read. */
static void test_held(void)
{
    set_up();
    assert_says(accept(with(wish("Volume", "delete-volume", "data1"), "cascade", json_true())),
                "wrong_state: volume data1 is being read by snapshot before; wait, or reset that");
    assert_says(accept(with(wish("Volume", "extend-volume", "data1"), "size", json_integer(5))),
                "wrong_state: volume data1 is being read by snapshot before; wait, or reset that");
    assert_says(accept(copy_of("Volume", "data2", "before")),
                "wrong_state: snapshot before: it is being created; wait, or reset its state");
    /* Two may read it at once. */
    const char *other = asked(copy_of("Snapshot", "other", "data1"));
    storage_made(snapshot, generation);
    storage_made(other, generation);
    asked(copy_of("Volume", "data2", "before"));
    assert_says(accept(wish("Snapshot", "delete-snapshot", "before")),
                "wrong_state: snapshot before is being read by volume data2; wait, or reset that");
    assert_says(accept(with(wish("Volume", "delete-volume", "data1"), "cascade", json_true())),
                "wrong_state: snapshot before is being read by volume data2; wait, or reset that");
    reset("Volume", "data2", "error");
    storage_accept("extend-volume", "data1", 5);
    assert_says(accept(copy_of("Snapshot", "x", "data1")),
                "wrong_state: volume data1: it is being extended; wait, or reset its state");
    reset("Volume", "data1", "error");
    assert_says(accept(copy_of("Snapshot", "x", "data1")),
                "wrong_state: volume data1 is error; create-snapshot needs available");
    world_tear_down();
}

/* SAF-120: its source is another one at the end, or is none any more. */
static void test_written_meanwhile(void)
{
    set_up();
    guint64 claim = storage_take(1, generation, snapshot);
    reset("Volume", "data1", "error");
    assert_says(end_made(snapshot, claim), "passed");
    g_assert_cmpstr(status_of(snapshot), ==, "error");
    g_assert_cmpstr(now_of(snapshot).status_why, ==, "volume data1 is error since");
    g_assert_cmpstr(now_of(snapshot).data, ==, "");
    world_tear_down();

    storage_set_up(changes_of(
        put("volume", VOLUME1, 1, object_volume1()),
        put("snapshot", VOLUME2, 1,
            with(with(object_snapshot2(), "status", json_string("creating")), "data",
                 json_string(""))),
        put("worker", "Snapshot/" VOLUME2, 1,
            json_make("{s:i,s:s,s:s,s:s,s:s,s:s,s:{s:s,s:s,s:s}}", "id", 1, "resource_type",
                      "Snapshot", "resource_id", VOLUME2, "operation", "create-snapshot", "status",
                      "creating", "backend", DIR1, "source", "resource_type", "Volume",
                      "resource_id", VOLUME1, "data", VOLUME1 ".6")),
        NULL));
    generation = storage_register(1);
    claim = storage_take(1, generation, "Snapshot/" VOLUME2);
    assert_says(end_made("Snapshot/" VOLUME2, claim), "passed");
    g_assert_cmpstr(status_of("Snapshot/" VOLUME2), ==, "error");
    g_assert_cmpstr(now_of("Snapshot/" VOLUME2).status_why, ==,
                    "volume data1 was written meanwhile");
    world_tear_down();
}

/* CLN-01, 60: all that is issued is on record at once, each by a row of its own. */
static void test_cascade(void)
{
    set_up_made();
    const char *other = asked(copy_of("Snapshot", "after", "data1"));
    storage_made(other, generation);
    asked(copy_of("Snapshot", "new", "data1"));
    assert_says(accept(wish("Volume", "delete-volume", "data1")),
                "wrong_state: volume data1 is being read by snapshot new; wait, or reset that");
    reset("Snapshot", "new", "error");
    assert_says(accept(wish("Volume", "delete-volume", "data1")),
                "wrong_state: volume data1 has snapshots: before and 2 more; delete them before "
                "it, or with it (--cascade)");
    storage_accept("extend-volume", "data1", 5);
    reset("Volume", "data1", "available");
    asked(wish("Snapshot", "delete-snapshot", "after"));
    json_t *args = with(with(wish("Volume", "delete-volume", "data1"), "cascade", json_true()),
                        "commit_id", json_string(ID_B));
    g_autofree char *first = accept(json_deep_copy(args));
    g_assert_nonnull(strstr(first, strchr(volume, '/') + 1));
    g_assert_cmpuint(config_count(world.wconf->committed, "worker"), ==, 4);
    g_assert_cmpstr(status_of(volume), ==, "deleting");
    g_assert_cmpstr(status_of(snapshot), ==, "deleting");
    g_assert_cmpstr(storage_row(snapshot)->operation, ==, "delete-snapshot");
    g_assert_cmpuint(storage_row(snapshot)->updated_us, !=, storage_row(volume)->updated_us);
    assert_says(accept(args), first);
    /* It cannot go before they have gone. */
    guint64 claim = storage_take(1, generation, volume);
    g_assert_cmpuint(
        storage_number(
            storage_ask(volumed[0], "step_work",
                        json_make("{s:s,s:i,s:s,s:i,s:b}", "key", volume, "claim", claim, "service",
                                  service_key(NODE1), "generation", generation, "unname", 1)),
            "serial"),
        >, 0);
    g_autofree char *said =
        storage_end_all(1, generation, json_make("[o]", storage_end(volume, claim)));
    g_assert_nonnull(strstr(said, "cannot be deleted, snapshot"));
    world_tear_down();
}

/* CLN-65: what is stuck on its snapshots ends with the same commit as what is stuck on itself. */
static void test_forced_cascade(void)
{
    set_up_made();
    const char *stuck = asked(copy_of("Snapshot", "stuck", "data1"));
    const char *going = asked(copy_of("Snapshot", "going", "data1"));
    storage_made(going, generation);
    guint64 late = storage_take(1, generation, stuck);
    asked(wish("Snapshot", "delete-snapshot", "going"));
    guint64 deletes = storage_take(1, generation, going);
    asked(copy_of("Volume", "data2", "before"));
    json_t *args = with(with(wish("Volume", "delete-volume", "data1"), "cascade", json_true()),
                        "force", json_true());
    assert_says(accept(json_deep_copy(args)),
                "wrong_state: snapshot before is being read by volume data2; wait, or reset that");
    assert_says(accept(with(wish("Volume", "delete-volume", "data1"), "force", json_true())),
                "wrong_state: volume data1 is being read by snapshot stuck; wait, or reset that");
    reset("Volume", "data2", "error");
    json_t *copy = with(wish("Volume", "create-volume", ""), "name", json_string("data3"));
    const char *reader = asked(with(copy, "volume", json_string("data1")));
    assert_says(accept(json_deep_copy(args)),
                "wrong_state: volume data1 is being read by volume data3; wait, or reset that");
    storage_made(reader, generation);
    asked(args);
    const char *const all[] = {volume, snapshot, stuck, going};
    for (guint i = 0; i < G_N_ELEMENTS(all); i++) {
        g_assert_cmpstr(status_of(all[i]), ==, "deleting");
        g_assert_cmpuint(storage_row(all[i])->service_id, ==, 0);
        g_assert_cmpuint(storage_row(all[i])->id, ==, storage_row(volume)->id);
    }
    g_autofree char *made = end_made(stuck, late);
    g_autofree char *gone =
        storage_end_all(1, generation, json_make("[o]", storage_end(going, deletes)));
    g_assert_nonnull(strstr(made, "claim"));
    g_assert_nonnull(strstr(gone, "claim"));
    g_assert_cmpstr(status_of(stuck), ==, "deleting");
    world_tear_down();
}

#define PARTNER_ROW                                                                                \
    put("worker", "Snapshot/" VOLUME2, 1,                                                          \
        json_make("{s:i,s:s,s:s,s:s,s:s,s:s,s:s,s:s}", "id", 1, "resource_type", "Snapshot",       \
                  "resource_id", VOLUME2, "operation", "delete-snapshot", "status", "deleting",    \
                  "backend", DIR1, "partner_type", "Volume", "partner_id", VOLUME1))

/* SAF-121 */
static void test_partner(void)
{
    storage_set_up(changes_of(
        put("volume", VOLUME1, 1, object_volume1()),
        put("snapshot", VOLUME2, 1, with(object_snapshot2(), "status", json_string("deleting"))),
        PARTNER_ROW, NULL));
    assert_says(accept(with(wish("Volume", "extend-volume", "data1"), "size", json_integer(5))),
                "wrong_state: volume data1 is being worked on by snapshot before; wait, or reset "
                "that");
    reset("Volume", "data1", "available");
    g_assert_null(storage_row("Snapshot/" VOLUME2));
    g_assert_cmpstr(status_of("Snapshot/" VOLUME2), ==, "error_deleting");
    storage_accept("extend-volume", "data1", 5);
    world_tear_down();
}

static void test_change(void)
{
    set_up_made();
    json_t *args = json_make("{s:s,s:s,s:s}", "snapshot", "before", "name", "first", "description",
                             "of monday");
    g_assert_cmpuint(storage_number(storage_ask(storage_cli, "change_snapshot", args), "serial"), >,
                     0);
    g_assert_cmpstr(now_of(snapshot).name, ==, "first");
    g_assert_cmpstr(now_of(snapshot).description, ==, "of monday");
    assert_says(storage_ask(storage_cli, "change_snapshot",
                            json_make("{s:s,s:s}", "snapshot", "before", "name", "x")),
                "unknown_entity: snapshot \"before\" does not exist");
    world_tear_down();
}

/* One volume has so many at most. */
static void test_limit(void)
{
    set_up();
    for (guint i = 1; i < LIMIT_VOLUME_SNAPSHOTS; i++)
        asked(copy_of("Snapshot", "x", "data1"));
    assert_says(accept(copy_of("Snapshot", "x", "data1")),
                "insufficient_resources: volume data1 has 256 snapshots, and can have no more");
    world_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/wconf_snapshot/create#CLN-01", test_create);
    g_test_add_func("/wconf_snapshot/bad-requests", test_bad_requests);
    g_test_add_func("/wconf_snapshot/held#SAF-120", test_held);
    g_test_add_func("/wconf_snapshot/written-meanwhile#SAF-120", test_written_meanwhile);
    g_test_add_func("/wconf_snapshot/cascade#CLN-01,CLN-60", test_cascade);
    g_test_add_func("/wconf_snapshot/forced-cascade#CLN-65,SAF-120", test_forced_cascade);
    g_test_add_func("/wconf_snapshot/partner#SAF-121,CLN-65", test_partner);
    g_test_add_func("/wconf_snapshot/change", test_change);
    g_test_add_func("/wconf_snapshot/limit", test_limit);
    return g_test_run();
}
