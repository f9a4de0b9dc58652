/* Schedulers at work: who they are, and what becomes of rows for which no back end was named. */
#include <string.h>

#include "unit/core/world/volume_world.h"

#define MINUTE_MS (60u * 1000)

static const struct volume *volume_of(const char *uuid)
{
    return config_get(wconf_config(world.wconf), "volume", uuid, NULL);
}

static const char *create(guint size)
{
    return volume_ask("create-volume", "", size, "");
}

static void test_registers(void)
{
    volumes_set_up(NULL);
    struct volumed *first = scheduler_start(1);
    scheduler_start(2);
    fake_advance(world.world, 5 * MINUTE_MS);
    g_assert_cmpint(volumes_service("node1", "")->state, ==, STORAGE_UP);
    g_assert_cmpint(volumes_service("node2", "")->state, ==, STORAGE_UP);
    g_assert_null(volumes_service("node3", ""));
    guint64 generation = volumes_service("node1", "")->generation;
    volumed_kill(first);
    fake_advance(world.world, 2 * MINUTE_MS);
    g_assert_cmpint(volumes_service("node1", "")->state, ==, STORAGE_DOWN);
    scheduler_start(1);
    fake_advance(world.world, 1000);
    g_assert_cmpint(volumes_service("node1", "")->state, ==, STORAGE_UP);
    g_assert_cmpuint(volumes_service("node1", "")->generation, >, generation);
    volumes_tear_down();
}

/* Of two processes of one name the first ends. */
static void test_replaced(void)
{
    volumes_set_up(NULL);
    struct volumed *first = scheduler_start(1);
    fake_advance(world.world, 1000);
    struct volumed *second = scheduler_start(1);
    fake_advance(world.world, 30000);
    g_assert_nonnull(first->ended);
    g_assert_null(second->ended);
    volumes_tear_down();
}

/* What is small goes where most is left, as long as that is so; each row is handed on once. */
static void test_hands_on(void)
{
    volumes_set_up(NULL);
    fake_volumes_set_space(volumes, DIR1, 100);
    fake_volumes_set_space(volumes, DIR2, 60);
    volumed_start(1);
    volumed_start(2);
    scheduler_start(1);
    scheduler_start(2);
    scheduler_start(3);
    fake_advance(world.world, 30000);
    guint64 before = config_serial(wconf_config(world.wconf));
    const char *large = create(50), *small = create(20), *third = create(20);
    volumes_work();
    g_assert_cmpstr(volume_of(large)->backend, ==, DIR1);
    g_assert_cmpstr(volume_of(small)->backend, ==, DIR2);
    g_assert_cmpstr(volume_of(third)->backend, ==, DIR1);
    assert_says(volume_said(third), "available 20 GiB");
    /* #CLN-66: accept, hand-over, take, end. */
    g_assert_cmpuint(storage_writes(before, "worker"), ==, 3 * 4);
    volumes_tear_down();
}

/* What backups take counts, of which nobody tells a scheduler but its copy. */
static void test_backups_count(void)
{
    volumes_set_up(
        changes_of(put("backup", ID_A, 1, object_backup(ID_A, 60 * 1024 * MIB(1))), NULL));
    fake_volumes_mark(volumes, DIR1, CLUSTER);
    fake_volumes_set_space(volumes, DIR1, 100);
    fake_volumes_set_space(volumes, DIR2, 50);
    volumed_start(1);
    volumed_start(2);
    scheduler_start(1);
    fake_advance(world.world, 30000);
    const char *uuid = create(2);
    volumes_work();
    g_assert_cmpstr(volume_of(uuid)->backend, ==, DIR2);
    volumes_tear_down();
}

/* #CLN-25: what waits for members that come back is served when they do, however late. */
static void test_waits(void)
{
    volumes_set_up(NULL);
    scheduler_start(1);
    const char *uuid = create(2);
    fake_advance(world.world, 60 * MINUTE_MS);
    assert_says(volume_said(uuid), "creating 2 GiB, no data");
    volumed_start(1);
    volumes_work();
    assert_says(volume_said(uuid), "available 2 GiB");
    g_assert_cmpstr(volume_of(uuid)->backend, ==, DIR1);
    volumes_tear_down();
}

/* The same with a whole cluster of which nobody was there. */
static void test_waits_for_a_scheduler(void)
{
    volumes_set_up(NULL);
    volumed_start(1);
    const char *uuid = create(2);
    fake_advance(world.world, 60 * MINUTE_MS);
    assert_says(volume_said(uuid), "creating 2 GiB, no data");
    scheduler_start(2);
    volumes_work();
    assert_says(volume_said(uuid), "available 2 GiB");
    volumes_tear_down();
}

static char *ask_for(guint size)
{
    return storage_ask(storage_cli, "accept_work",
                       json_make("{s:s,s:s,s:s,s:i,s:s}", "resource_type", "Volume", "operation",
                                 "create-volume", "name", "data9", "size", size, "backend",
                                 "dir1"));
}

/* Who was refused, and has made room, need not wait until the members look by themselves. */
static void test_refused(void)
{
    volumes_set_up(NULL);
    fake_volumes_set_space(volumes, DIR1, 10);
    volumed_start(1);
    volumed_start(2);
    fake_advance(world.world, 30000);
    guint looked = fake_volumes_count_calls(volumes, "space");
    while (fake_volumes_count_calls(volumes, "space") == looked)
        fake_advance(world.world, 1000);
    fake_advance(world.world, 1000);
    fake_volumes_set_space(volumes, DIR1, 20);
    g_autofree char *refused = ask_for(15);
    g_assert_nonnull(strstr(refused, "back end dir1 holds 10 GiB at most, not 15 GiB"));
    const struct cluster *cluster = config_cluster(wconf_config(world.wconf));
    fake_advance(world.world, (guint)cluster->report_interval * 2000 + 1000);
    storage_number(ask_for(15), "serial");
    volumes_tear_down();
}

static void test_waits_for_space(void)
{
    volumes_set_up(NULL);
    fake_volumes_set_space(volumes, DIR1, 10);
    fake_volumes_set_space(volumes, DIR2, 5);
    volumed_start(1);
    volumed_start(2);
    scheduler_start(1);
    fake_advance(world.world, 30000);
    const char *first = create(8);
    volumes_work();
    const char *second = create(7);
    fake_advance(world.world, 10 * MINUTE_MS);
    assert_says(volume_said(second), "creating 7 GiB, no data");
    volume_ask("delete-volume", first, 0, "");
    volumes_work();
    assert_says(volume_said(second), "available 7 GiB");
    volumes_tear_down();
}

/* #CLN-25: what no back end could ever hold ends, and says why; not before service_down_time. */
static void test_never_fits(void)
{
    volumes_set_up(NULL);
    fake_volumes_set_space(volumes, DIR1, 10);
    fake_volumes_set_space(volumes, DIR2, 5);
    volumed_start(1);
    volumed_start(2);
    scheduler_start(1);
    scheduler_start(2);
    fake_advance(world.world, 30000);
    const char *uuid = create(11);
    fake_advance(world.world, 59 * 1000);
    assert_says(volume_said(uuid), "creating 11 GiB, no data");
    fake_advance(world.world, 5000);
    assert_says(volume_said(uuid), "error 11 GiB, no data");
    g_assert_cmpstr(volume_of(uuid)->status_why, ==,
                    "no back end for 11 GiB: dir1 holds 10 GiB at most; dir2 holds 5 GiB at most");
    g_assert_cmpuint(config_count(wconf_config(world.wconf), "worker"), ==, 0);
    volume_ask("delete-volume", uuid, 0, "");
    volumes_work();
    assert_says(volume_said(uuid), "gone");
    volumes_tear_down();
}

/* A disabled service is given nothing new. */
static void test_disabled(void)
{
    volumes_set_up(NULL);
    fake_volumes_set_space(volumes, DIR1, 100);
    fake_volumes_set_space(volumes, DIR2, 60);
    volumed_start(1);
    volumed_start(2);
    scheduler_start(1);
    fake_advance(world.world, 30000);
    const char *const hosts[] = {"node1", "node2"};
    for (guint i = 0; i < G_N_ELEMENTS(hosts); i++)
        g_free(storage_ask(storage_cli, "change_storage_service",
                           json_make("{s:s,s:b}", "service", volumes_service(hosts[i], DIR1)->uuid,
                                     "disabled", true)));
    const char *uuid = create(2);
    volumes_work();
    g_assert_cmpstr(volume_of(uuid)->backend, ==, DIR2);
    volumes_tear_down();
}

/* A scheduler dies at each of its steps while it hands on, or gives up; its next process goes on,
 * and another one, too. #CLN-26, #CLN-31 */
static bool dies_at(guint at, guint size, const char *outcomes)
{
    volumes_set_up(NULL);
    fake_volumes_set_space(volumes, DIR1, 10);
    fake_volumes_set_space(volumes, DIR2, 5);
    volumed_start(1);
    volumed_start(2);
    struct volumed *first = scheduler_start(1);
    fake_advance(world.world, 30000);
    volumed_stop_at(first, at);
    const char *uuid = create(size);
    volumes_work();
    bool stopped = volumed_stopped();
    if (stopped) {
        volumed_stop_at(NULL, 0);
        volumed_kill(first);
        scheduler_start(1);
        volumes_work();
    }
    g_autofree char *said = volume_said(uuid);
    g_autofree char *bars = g_strdup_printf("|%s|", said);
    if (!strstr(outcomes, bars))
        g_error("at step %u: %s", at, said);
    volumes_assert_clean();
    volumes_tear_down();
    return stopped;
}

static void test_dies(void)
{
    guint at = 1, given_up = 1;
    while (dies_at(at, 2, "|available 2 GiB|"))
        at++;
    while (dies_at(given_up, 11, "|error 11 GiB, no data|"))
        given_up++;
    g_assert_cmpuint(at, >, 2);
    g_assert_cmpuint(given_up, >, 4);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/volume-choosing/registers", test_registers);
    g_test_add_func("/volume-choosing/replaced", test_replaced);
    g_test_add_func("/volume-choosing/hands-on#CLN-66", test_hands_on);
    g_test_add_func("/volume-choosing/backups", test_backups_count);
    g_test_add_func("/volume-choosing/waits#CLN-25", test_waits);
    g_test_add_func("/volume-choosing/waits-for-a-scheduler#CLN-25", test_waits_for_a_scheduler);
    g_test_add_func("/volume-choosing/refused#SAF-27", test_refused);
    g_test_add_func("/volume-choosing/waits-for-space", test_waits_for_space);
    g_test_add_func("/volume-choosing/never-fits#CLN-25", test_never_fits);
    g_test_add_func("/volume-choosing/disabled", test_disabled);
    g_test_add_func("/volume-choosing/dies#CLN-26", test_dies);
    return g_test_run();
}
