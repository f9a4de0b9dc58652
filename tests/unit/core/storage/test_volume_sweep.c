/*
 * Cleaning what is left of others (CLN-17 to 21), and the sweep (SAF-54): only what the copy proves
 * to be nobody's goes.
 */
#include <string.h>

#include "proto/change.h"
#include "unit/core/world/volume_world.h"

#define OTHER "eeeeeeee-3333-4000-8000-000000000003"
#define SOME 30
#define MADE_MS 30000

static struct change *row(const char *operation, const char *status, guint claim)
{
    json_t *object = with(object_row1(), "operation", json_string(operation));
    with(object, "status", json_string(status));
    with(object, "service_id", json_integer(1));
    with(object, "claim", json_integer(claim));
    return put("worker", ROW1, 1, object);
}

static struct change *volume_in(const char *status, const char *data)
{
    return put(
        "volume", VOLUME1, 1,
        with(with(object_volume1(), "status", json_string(status)), "data", json_string(data)));
}

static struct change *service(void)
{
    return put("storage_service", service_key(NODE1), 1, object_service(NODE1));
}

static void put_data(const char *name)
{
    fake_volumes_put(volumes, DIR1, name, 2 * 1024 * MIB(1), true);
}

/* A service was there: this node's, which has died. The place has its marker. */
static void start_after(GPtrArray *more)
{
    g_ptr_array_add(more, put("counter", "storage-service", 1, json_make("{s:i}", "value", 2)));
    volumes_set_up(more);
    fake_volumes_mark(volumes, DIR1, CLUSTER);
}

static const char *why(void)
{
    return ((const struct volume *)config_get(wconf_config(world.wconf), "volume", VOLUME1, NULL))
        ->status_why;
}

/* CLN-57: what that claim has made goes. */
static void test_drops_what_was_made(void)
{
    start_after(changes_of(service(), volume_in("creating", ""),
                           row("create-volume", "creating", 1), NULL));
    put_data(VOLUME1 ".1");
    volumed_start(1);
    fake_advance(world.world, MADE_MS);
    assert_says(volume_said(VOLUME1), "error 2 GiB, no data");
    g_assert_cmpstr(why(), ==, "the service that worked on it has ended");
    g_assert_false(fake_volumes_has(volumes, VOLUME1 ".1"));
    volumes_tear_down();
}

/* #CLN-17: the resource is something else by now. */
static void test_moved_on(void)
{
    start_after(changes_of(service(), volume_in("available", VOLUME1 ".1"),
                           row("create-volume", "creating", 1), NULL));
    put_data(VOLUME1 ".1");
    volumed_start(1);
    fake_advance(world.world, MADE_MS);
    assert_says(volume_said(VOLUME1), "available 2 GiB");
    volumes_assert_clean();
    volumes_tear_down();
}

/* #CLN-18 */
static void test_gone(void)
{
    start_after(changes_of(service(), row("create-volume", "creating", 1), NULL));
    put_data(VOLUME1 ".1");
    volumed_start(1);
    fake_advance(world.world, MADE_MS);
    assert_says(volume_said(VOLUME1), "gone");
    g_assert_cmpuint(config_count(wconf_config(world.wconf), "worker"), ==, 0);
    volumes_tear_down();
}

static struct change *extending(guint claim)
{
    struct change *change = row("extend-volume", "extending", claim);
    json_object_set_new(change->object, "size", json_integer(3));
    return change;
}

/* The real size decides. */
static void test_looks(void)
{
    for (guint gib = 2; gib <= 3; gib++) {
        start_after(
            changes_of(service(), volume_in("extending", VOLUME1 ".1"), extending(1), NULL));
        fake_volumes_put(volumes, DIR1, VOLUME1 ".1", gib * 1024 * MIB(1), true);
        volumed_start(1);
        fake_advance(world.world, MADE_MS);
        assert_says(volume_said(VOLUME1), gib == 3 ? "available 3 GiB" : "error_extending 2 GiB");
        volumes_tear_down();
    }
}

/* #CLN-21: what fails goes back, to the owner and the time before, and is tried again. */
static void test_gives_back(void)
{
    start_after(changes_of(service(), volume_in("extending", VOLUME1 ".1"), extending(1), NULL));
    fake_volumes_put(volumes, DIR1, VOLUME1 ".1", 3 * 1024 * MIB(1), true);
    fake_volumes_fail(volumes, "look", FETTLE_ERROR_STORAGE, false, 1);
    volumed_start(1);
    fake_advance(world.world, MADE_MS);
    const struct worker *left = config_get(wconf_config(world.wconf), "worker", ROW1, NULL);
    g_assert_cmpuint(left->service_id, ==, 1);
    g_assert_cmpuint(left->updated_us, ==, 100);
    /* Others are served meanwhile. */
    g_assert_nonnull(volume_ask("create-volume", "", 1, "dir1"));
    fake_advance(world.world, MADE_MS);
    g_assert_cmpuint(config_count(wconf_config(world.wconf), "worker"), ==, 1);
    volumes_work();
    assert_says(volume_said(VOLUME1), "available 3 GiB");
    volumes_assert_clean();
    volumes_tear_down();
}

/* The row of node 2's former process, which extends; how often a look at its data fails. */
static struct volumed *start_second(guint failures)
{
    struct change *left = extending(1);
    json_object_set_new(left->object, "service_id", json_integer(2));
    start_after(changes_of(put("storage_service", service_key(NODE2), 1, object_service(NODE2)),
                           volume_in("extending", VOLUME1 ".1"), left, NULL));
    fake_volumes_put(volumes, DIR1, VOLUME1 ".1", 3 * 1024 * MIB(1), true);
    fake_volumes_fail(volumes, "look", FETTLE_ERROR_STORAGE, false, failures);
    return volumed_start(2);
}

static bool losing, lost;

static bool passes(const char *from, const char *to, void *data)
{
    return !lost || strcmp(to, NODE2) != 0;
}

/* The answer to the next registration is lost, and what comes before the next beat. */
static void serve_losing(struct rpc_request *request, void *data)
{
    bool registers = strcmp(request->name, "register_storage") == 0;
    lost = (lost || (losing && registers)) && strcmp(request->name, "beat") != 0;
    losing = losing && !registers;
    wconf_handle(world.wconf, request);
}

/* #SAF-56: to register again, while it lives, is not to be replaced. */
static void test_registers_again(void)
{
    struct volumed *process = start_second(1);
    fake_serve(world.wconfd, serve_losing, NULL);
    fake_set_path(world.world, passes, NULL);
    fake_advance(world.world, MADE_MS);
    losing = true;
    volumes_work();
    g_assert_false(losing);
    assert_says(volume_said(VOLUME1), "available 3 GiB");
    g_assert_null(process->ended);
    volumes_tear_down();
}

/* A place that is away: nothing is claimed, and nothing told, each time anew. */
static void test_cleans_no_place(void)
{
    start_second(1);
    fake_advance(world.world, MADE_MS);
    fake_volumes_unmount(volumes, NODE2, true);
    guint64 before = config_serial(wconf_config(world.wconf));
    fake_advance(world.world, 3 * 3600 * 1000);
    g_assert_cmpuint(config_serial(wconf_config(world.wconf)), ==, before);
    fake_volumes_unmount(volumes, NODE2, false);
    volumes_work();
    assert_says(volume_said(VOLUME1), "available 3 GiB");
    volumes_tear_down();
}

static bool is_creating(const char *uuid)
{
    const struct volume *volume = config_get(wconf_config(world.wconf), "volume", uuid, NULL);
    return volume->status == VOLUME_CREATING;
}

/* CLN-63: more rows than one call claims do not keep new work from its turn. */
static void test_batches(void)
{
    GPtrArray *more = changes_of(service(), NULL);
    for (guint i = 0; i < LIMIT_WORK_ITEMS + 50; i++) {
        g_autofree char *uuid = g_strdup_printf("eeeeeeee-4444-4000-8000-%012u", i);
        g_autofree char *name = g_strdup_printf("many%u", i);
        g_autofree char *data = volume_data_name(uuid, 1);
        g_autofree char *key = config_work_key(RESOURCE_VOLUME, uuid);
        struct change *volume = volume_in("extending", data), *left = extending(1);
        with(with(volume->object, "uuid", json_string(uuid)), "name", json_string(name));
        with(left->object, "resource_id", json_string(uuid));
        with(left->object, "id", json_integer(100 + i));
        g_ptr_array_add(more, put("volume", uuid, 1, json_incref(volume->object)));
        g_ptr_array_add(more, put("worker", key, 1, json_incref(left->object)));
        change_free(volume);
        change_free(left);
    }
    start_after(more);
    fake_volumes_delay(volumes, 1000);
    volumed_start(1);
    const char *uuid = volume_ask("create-volume", "", 1, "dir1");
    for (guint i = 0; i < 3600 && is_creating(uuid); i++)
        fake_advance(world.world, 1000);
    assert_says(volume_said(uuid), "available 1 GiB");
    g_assert_cmpuint(config_count(wconf_config(world.wconf), "worker"), >, 10);
    volumes_work();
    volumes_tear_down();
}

/* --- the sweep --- */

static struct change *trash(const char *name)
{
    g_autofree char *key = config_trash_key(DIR1, name);
    return put("trash", key, 1, object_trash(name));
}

/* Serial 1 is the first that there is here, and 2 what the registration makes. */
static void test_sweeps(void)
{
    start_after(changes_of(volume_in("available", VOLUME1 ".1"), trash(VOLUME2 ".1"), NULL));
    put_data(VOLUME1 ".1"); /* named */
    put_data(VOLUME1 ".2"); /* nobody's */
    put_data(VOLUME2 ".1"); /* trash */
    put_data(OTHER ".1");   /* of nobody */
    put_data(OTHER ".99");  /* of a serial that is still to come */
    volumed_start(1);
    fake_advance(world.world, MADE_MS);
    g_assert_true(fake_volumes_has(volumes, VOLUME1 ".1"));
    g_assert_false(fake_volumes_has(volumes, VOLUME1 ".2"));
    g_assert_false(fake_volumes_has(volumes, VOLUME2 ".1"));
    g_assert_false(fake_volumes_has(volumes, OTHER ".1"));
    g_assert_true(fake_volumes_has(volumes, OTHER ".99"));
    g_assert_cmpuint(config_count(wconf_config(world.wconf), "trash"), ==, 0);
    volumes_tear_down();
}

/* What becomes trash by nobody who works there goes within seconds. */
static void test_discarded(void)
{
    start_after(changes_of(volume_in("available", VOLUME1 ".1"), NULL));
    volumed_start(1);
    fake_advance(world.world, MADE_MS);
    volumes_set_cluster(json_make("{s:s}", "recovery_rectify_unstable", "all"));
    put_data(OTHER ".1");
    g_free(storage_ask(world.watcher, "discard_data",
                       json_make("{s:s,s:s,s:s}", "backend", DIR1, "resource_type", "Volume",
                                 "name", OTHER ".1")));
    g_assert_cmpuint(config_count(wconf_config(world.wconf), "trash"), ==, 1);
    fake_advance(world.world, 30000);
    g_assert_false(fake_volumes_has(volumes, OTHER ".1"));
    g_assert_cmpuint(config_count(wconf_config(world.wconf), "trash"), ==, 0);
    volumes_tear_down();
}

/* However much stays, as copies share its data, all else goes. */
static void test_much_stays(void)
{
    GPtrArray *more = change_list_new();
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < 2 * LIMIT_WORK_ITEMS + SOME; i++) {
        char *name = g_strdup_printf("eeeeeeee-4444-4000-8000-%012u.1", i);
        g_ptr_array_add(names, name);
        g_ptr_array_add(more, trash(name));
    }
    start_after(more);
    for (guint i = 0; i < names->len; i++) {
        put_data(names->pdata[i]);
        fake_volumes_lock(volumes, names->pdata[i], i >= SOME);
    }
    volumed_start(1);
    fake_advance(world.world, MADE_MS);
    g_assert_cmpuint(config_count(wconf_config(world.wconf), "trash"), ==, 2 * LIMIT_WORK_ITEMS);
    volumes_tear_down();
}

/* More than one sweep takes goes with the next, which comes within seconds. */
static void test_much_goes(void)
{
    GPtrArray *more = change_list_new();
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < LIMIT_WORK_ITEMS + SOME; i++) {
        char *name = g_strdup_printf("eeeeeeee-4444-4000-8000-%012u.1", i);
        g_ptr_array_add(names, name);
        g_ptr_array_add(more, trash(name));
    }
    start_after(more);
    for (guint i = 0; i < names->len; i++)
        put_data(names->pdata[i]);
    volumed_start(1);
    fake_advance(world.world, MADE_MS);
    fake_advance(world.world, 30000);
    g_assert_cmpuint(config_count(wconf_config(world.wconf), "trash"), ==, 0);
    volumes_tear_down();
}

/* A sweep that has failed comes again within seconds, and whoever has made room tells it. */
static void test_again(void)
{
    static const char *const fails[] = {"remove", "list"};
    for (guint i = 0; i < G_N_ELEMENTS(fails); i++) {
        start_after(changes_of(volume_in("available", VOLUME1 ".1"), NULL));
        put_data(VOLUME1 ".1");
        put_data(VOLUME1 ".2");
        fake_volumes_fail(volumes, fails[i], FETTLE_ERROR_STORAGE, false, 3);
        volumed_start(1);
        for (guint s = 0; s < 60 && fake_volumes_has(volumes, VOLUME1 ".2"); s++)
            fake_advance(world.world, 1000);
        g_assert_false(fake_volumes_has(volumes, VOLUME1 ".2"));
        fake_advance(world.world, 1000);
        const GPtrArray *calls = fake_volumes_calls(volumes);
        bool measured = false;
        for (guint at = calls->len; at > 0 && !strstr(calls->pdata[at - 1], " remove "); at--)
            measured = measured || strstr(calls->pdata[at - 1], " space ");
        g_assert_true(measured);
        volumes_tear_down();
    }
}

/* One that fails for ever comes ever more seldom. */
static void test_again_later(void)
{
    start_after(changes_of(volume_in("available", VOLUME1 ".1"), NULL));
    put_data(VOLUME1 ".1");
    put_data(VOLUME1 ".2");
    fake_volumes_lock(volumes, VOLUME1 ".2", true);
    volumed_start(1);
    fake_advance(world.world, 8 * 3600 * 1000);
    guint sweeps = fake_volumes_count_calls(volumes, "list");
    g_assert_cmpuint(sweeps, >, 12);
    g_assert_cmpuint(sweeps, <, 24);
    fake_volumes_lock(volumes, VOLUME1 ".2", false);
    fake_advance(world.world, 3601 * 1000);
    g_assert_false(fake_volumes_has(volumes, VOLUME1 ".2"));
    g_assert_cmpuint(fake_volumes_count_calls(volumes, "list"), ==, sweeps + 1);
    volumes_tear_down();
}

/* What somebody works on under that claim stays, also while its owner is away. */
static void test_leaves_work(void)
{
    struct change *other = put("storage_service", service_key(NODE2), 1, object_service(NODE2));
    struct change *working = row("create-volume", "creating", 1);
    json_object_set_new(working->object, "service_id", json_integer(2));
    start_after(changes_of(service(), other, volume_in("creating", ""), working, NULL));
    put_data(VOLUME1 ".1");
    volumed_start(1);
    fake_advance(world.world, 3 * 3600 * 1000);
    g_assert_true(fake_volumes_has(volumes, VOLUME1 ".1"));
    assert_says(volume_said(VOLUME1), "creating 2 GiB, no data");
    volumes_tear_down();
}

/* #SAF-54: a person has made another node the master, whose serials have leapt. What was made
 * before that may be named by records that were lost. */
static void test_leap(void)
{
    start_after(change_list_new());
    g_autoptr(GPtrArray) first = changes_of(put("node", NODE3, 0, object_node(NODE3)), NULL);
    config_world_restart(&world);
    fake_engine_lose(world.engine, 1, first);
    config_world_start(&world);
    guint64 leapt = config_serial(wconf_config(world.wconf));
    g_assert_cmpuint(leapt, >, LIMIT_SERIAL_LEAP);
    g_autofree char *fresh = volume_data_name(OTHER, leapt);
    g_autofree char *between = volume_data_name(OTHER, leapt - 1000);
    put_data(OTHER ".1");
    put_data(OTHER ".7");
    put_data(between);
    put_data(fresh);
    volumed_start(1);
    fake_advance(world.world, MADE_MS);
    g_assert_true(fake_volumes_has(volumes, OTHER ".1"));
    g_assert_true(fake_volumes_has(volumes, OTHER ".7"));
    g_assert_true(fake_volumes_has(volumes, between));
    g_assert_false(fake_volumes_has(volumes, fresh));
    /* What stays for that reason is told as such: nothing else will ever remove it. */
    g_autofree char *newer = volume_data_name(OTHER, leapt + 1);
    put_data(newer);
    g_autoptr(GError) error = NULL;
    json_autoptr told = fake_call(fake_process(world.world, NODE1, ROLE_LUXID), NODE1, ROLE_VOLUMED,
                                  "compare_stored", json_make("{ss}", "backend", DIR1), &error);
    g_assert_no_error(error);
    const json_t *unknown = json_object_get(told, "unknown"), *data;
    size_t i;
    g_assert_cmpuint(json_array_size(unknown), ==, 4);
    json_array_foreach(unknown, i, data) {
        bool late = g_str_equal(json_string_value(json_object_get(data, "name")), newer);
        g_assert_true(json_is_true(json_object_get(data, "kept")) != late);
    }
    volumes_tear_down();
}

static struct change *restored(void)
{
    return put("repair_brake", "cluster", 1,
               json_make("{s:i,s:s,s:b}", "since", 1, "why", "restored", "restored", 1));
}

/* #SAF-122: restored, and not yet compared with what there is. */
static void test_restored(void)
{
    start_after(changes_of(restored(), service(), volume_in("deleting", VOLUME1 ".1"),
                           row("delete-volume", "deleting", 1), trash(VOLUME2 ".1"), NULL));
    put_data(VOLUME1 ".1");
    put_data(VOLUME2 ".1");
    put_data(OTHER ".1");
    volumed_start(1);
    fake_advance(world.world, 3 * 3600 * 1000);
    g_assert_cmpuint(fake_volumes_count(volumes), ==, 3);
    assert_says(volume_said(VOLUME1), "deleting 2 GiB");
    volumes_tear_down();
}

/* --- what has changed since a copy was made --- */

/* What the next master has on record, beside what it had at serial 1. */
static void next_master(GPtrArray *objects)
{
    g_autoptr(GPtrArray) all = objects;
    config_world_restart(&world);
    fake_engine_lose(world.engine, 1, all);
    config_world_start(&world);
}

/* #SAF-53: who is cut off does not know that the next master has not what took the name away. */
static void test_cut_off(void)
{
    start_after(changes_of(trash(VOLUME1 ".1"), NULL));
    put_data(VOLUME1 ".1");
    fake_volumes_lock(volumes, VOLUME1 ".1", true);
    volumed_start(2);
    fake_advance(world.world, MADE_MS);
    g_assert_cmpuint(fake_volumes_count_calls(volumes, "remove"), >, 0);
    fake_cut(world.world, NODE2, true);
    fake_volumes_lock(volumes, VOLUME1 ".1", false);
    g_autofree char *key = config_trash_key(DIR1, VOLUME1 ".1");
    next_master(changes_of(volume_in("available", VOLUME1 ".1"), del("trash", key, 1), NULL));
    fake_advance(world.world, 3 * 3600 * 1000);
    g_assert_true(fake_volumes_has(volumes, VOLUME1 ".1"));
    fake_cut(world.world, NODE2, false);
    fake_advance(world.world, 3 * 3600 * 1000);
    assert_says(volume_said(VOLUME1), "available 2 GiB");
    volumes_tear_down();
}

/* #SAF-122: the brake comes while a name is on its way out; none goes after it. */
static void test_restored_meanwhile(void)
{
    static const char *const names[] = {VOLUME1 ".1", VOLUME2 ".1", OTHER ".1"};
    for (guint in_trash = 0; in_trash < 2; in_trash++) {
        GPtrArray *more = change_list_new();
        for (guint i = 0; in_trash && i < G_N_ELEMENTS(names); i++)
            g_ptr_array_add(more, trash(names[i]));
        start_after(more);
        for (guint i = 0; i < G_N_ELEMENTS(names); i++)
            put_data(names[i]);
        fake_volumes_delay(volumes, 5000);
        volumed_start(1);
        for (guint i = 0; i < 60 && !fake_volumes_count_calls(volumes, "remove"); i++)
            fake_advance(world.world, 1000);
        g_assert_cmpuint(fake_volumes_count(volumes), ==, 3);
        next_master(changes_of(restored(), NULL));
        fake_advance(world.world, 3 * 3600 * 1000);
        g_assert_cmpuint(fake_volumes_count_calls(volumes, "remove"), ==, 1);
        g_assert_cmpuint(fake_volumes_count(volumes), ==, 2);
        volumes_tear_down();
    }
}

/* The same while a volume is deleted: what a delete names is trash, and that has become older. */
static void test_delete_restored_meanwhile(void)
{
    start_after(changes_of(volume_in("deleting", ""), row("delete-volume", "deleting", 1),
                           service(), trash(VOLUME1 ".1"), trash(VOLUME1 ".2"), NULL));
    put_data(VOLUME1 ".1");
    put_data(VOLUME1 ".2");
    fake_volumes_delay(volumes, 5000);
    volumed_start(1);
    for (guint i = 0; i < 60 && !fake_volumes_count_calls(volumes, "remove"); i++)
        fake_advance(world.world, 1000);
    g_assert_cmpuint(fake_volumes_count(volumes), ==, 2);
    next_master(changes_of(restored(), NULL));
    fake_advance(world.world, 3 * 3600 * 1000);
    g_assert_cmpuint(fake_volumes_count(volumes), ==, 1);
    volumes_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/volume-sweep/drops-what-was-made#CLN-57", test_drops_what_was_made);
    g_test_add_func("/volume-sweep/discarded", test_discarded);
    g_test_add_func("/volume-sweep/moved-on#CLN-17", test_moved_on);
    g_test_add_func("/volume-sweep/gone#CLN-18", test_gone);
    g_test_add_func("/volume-sweep/looks", test_looks);
    g_test_add_func("/volume-sweep/gives-back#CLN-21", test_gives_back);
    g_test_add_func("/volume-sweep/registers-again#SAF-56", test_registers_again);
    g_test_add_func("/volume-sweep/cleans-no-place#CLN-21", test_cleans_no_place);
    g_test_add_func("/volume-sweep/batches#CLN-63", test_batches);
    g_test_add_func("/volume-sweep/sweeps#SAF-54", test_sweeps);
    g_test_add_func("/volume-sweep/much-stays#SAF-53", test_much_stays);
    g_test_add_func("/volume-sweep/much-goes#SAF-53", test_much_goes);
    g_test_add_func("/volume-sweep/again#SAF-54", test_again);
    g_test_add_func("/volume-sweep/again-later#SAF-54", test_again_later);
    g_test_add_func("/volume-sweep/leaves-work#SAF-54", test_leaves_work);
    g_test_add_func("/volume-sweep/leap#SAF-54", test_leap);
    g_test_add_func("/volume-sweep/restored#SAF-122", test_restored);
    g_test_add_func("/volume-sweep/cut-off#SAF-53", test_cut_off);
    g_test_add_func("/volume-sweep/restored-meanwhile#SAF-122", test_restored_meanwhile);
    g_test_add_func("/volume-sweep/delete-restored-meanwhile#SAF-122",
                    test_delete_restored_meanwhile);
    return g_test_run();
}
