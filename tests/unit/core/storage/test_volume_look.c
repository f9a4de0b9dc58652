/* What a member shows of its back end to who asks: what is there of resources, and where it differs
 * from the record. Nothing changes, and nobody who asks hangs. */
#include <string.h>

#include "unit/core/world/volume_world.h"

#define GIB (1024 * MIB(1))
#define DATA7 VOLUME1 ".7"
#define STRAY "99999999-0000-4000-8000-000000000001.3"

static struct env *luxid;

static void set_up(GPtrArray *more)
{
    volumes_set_up(more);
    fake_volumes_mark(volumes, DIR1, CLUSTER);
    luxid = fake_process(world.world, NODE1, ROLE_LUXID);
    volumed_start(1);
    volumed_start(2);
    fake_advance(world.world, 20000);
}

/* The answer as text, or "error_name: message". */
static char *ask(const char *node, const char *method, json_t *args)
{
    g_autoptr(GError) error = NULL;
    json_autoptr answer = fake_call(luxid, node, ROLE_VOLUMED, method, args, &error);
    if (!answer)
        return g_strdup_printf("%s: %s", fettle_error_name(error), error->message);
    char *text = json_dumps(answer, JSON_COMPACT | JSON_SORT_KEYS);
    char *copy = g_strdup(text);
    free(text);
    return copy;
}

static char *collect(const char *node, const char *backend)
{
    return ask(node, "collect_stored",
               json_make("{ss s[{ss ss}{ss ss}]}", "backend", backend, "subjects", "resource_type",
                         "Volume", "resource", VOLUME1, "resource_type", "Snapshot", "resource",
                         VOLUME2));
}

static struct change *data1(const char *status, const char *data)
{
    return put(
        "volume", VOLUME1, 1,
        with(with(object_volume1(), "status", json_string(status)), "data", json_string(data)));
}

/* RCV-17, 19 */
static void test_collect(void)
{
    set_up(changes_of(data1("deleting", DATA7), NULL));
    fake_volumes_put(volumes, DIR1, DATA7, 2 * GIB, true);
    fake_volumes_put(volumes, DIR1, VOLUME1 ".5", 17, false);
    fake_volumes_put(volumes, DIR1, STRAY, GIB, true);
    fake_volumes_put_as(volumes, DIR1, RESOURCE_SNAPSHOT, VOLUME2 ".9", GIB, true);
    fake_volumes_lock(volumes, DATA7, true);
    g_autofree char *said = collect(NODE2, DIR1);
    g_assert_nonnull(strstr(said,
                            "{\"bytes\":2147483648,\"half\":false,\"kept\":false,\"name\":\"" DATA7
                            "\",\"open\":true,\"resource_type\":\"Volume\",\"whole\":true}"));
    g_assert_nonnull(strstr(said, "{\"bytes\":17,\"half\":true,\"kept\":false,\"name\":\"" VOLUME1
                                  ".5\",\"open\":false"));
    g_assert_nonnull(strstr(said, "\"name\":\"" VOLUME2 ".9\""));
    g_assert_null(strstr(said, STRAY));
    g_assert_nonnull(strstr(said, "\"silent\":\"\""));
    volumes_tear_down();
}

static void test_refused(void)
{
    set_up(changes_of(data1("deleting", DATA7), NULL));
    assert_says(collect(NODE1, DIR2), "unknown_entity: node1 has no member of back end " DIR2);
    assert_says(collect(NODE1, VOLUME1),
                "unknown_entity: node1 has no member of back end " VOLUME1);
    volumes_tear_down();
    volumes_set_up(changes_of(data1("deleting", DATA7), NULL));
    luxid = fake_process(world.world, NODE1, ROLE_LUXID);
    volumed_start(1); /* there is no marker, and something is on record */
    fake_advance(world.world, 20000);
    assert_says(
        collect(NODE1, DIR1),
        "wrong_state: node1 does not serve back end dir1: dir1: /mnt/a has no marker of back "
        "end " DIR1 "; is it mounted?");
    assert_says(
        ask(NODE1, "compare_stored", json_make("{ss}", "backend", DIR1)),
        "wrong_state: node1 does not serve back end dir1: dir1: /mnt/a has no marker of back "
        "end " DIR1 "; is it mounted?");
    volumes_tear_down();
}

/* The first waits as long as its child may; from then on nobody does. */
static void test_hangs(void)
{
    set_up(changes_of(data1("deleting", DATA7), NULL));
    fake_volumes_hang(volumes, DIR1, true);
    g_free(collect(NODE1, DIR1)); /* who asks waits no longer than the method allows */
    fake_advance(world.world, 60000);
    guint calls = fake_volumes_count_calls(volumes, "find");
    g_autofree char *second = collect(NODE1, DIR1);
    g_assert_nonnull(strstr(second, "calls before this one hang in it\""));
    g_assert_cmpuint(fake_volumes_count_calls(volumes, "find"), ==, calls);
    assert_says(ask(NODE1, "compare_stored", json_make("{ss}", "backend", DIR1)),
                "timeout: dir1: 1 calls before this one hang in it");
    volumes_tear_down();
}

/* What it still does to it has an end to come. */
static void test_busy(void)
{
    set_up(NULL);
    fake_volumes_delay(volumes, 5000);
    const char *uuid = volume_ask("create-volume", "", 2, "dir1");
    fake_advance(world.world, 2500);
    json_t *args = json_make("{ss s[{ss ss}]}", "backend", DIR1, "subjects", "resource_type",
                             "Volume", "resource", uuid);
    g_autofree char *one = ask(NODE1, "collect_stored", json_incref(args));
    g_autofree char *two = ask(NODE2, "collect_stored", args);
    g_assert_true((strstr(one, "its member works on it") != NULL) !=
                  (strstr(two, "its member works on it") != NULL));
    volumes_tear_down();
}

/* Of data on record, made, in the trash, or to be judged nothing is said. */
static void test_compare(void)
{
    static const char other[] = "eeeeeeee-3333-4000-8000-000000000003";
    json_t *short_one = with(with(object_volume1(), "uuid", json_string(other)), "data",
                             json_string("eeeeeeee-3333-4000-8000-000000000003.4"));
    set_up(changes_of(data1("available", DATA7),
                      put("volume", other, 1, with(short_one, "name", json_string("short"))),
                      NULL));
    fake_volumes_put(volumes, DIR1, "eeeeeeee-3333-4000-8000-000000000003.4", GIB, true);
    fake_volumes_put(volumes, DIR1, STRAY, GIB, true);
    g_autofree char *said = ask(NODE1, "compare_stored", json_make("{ss}", "backend", DIR1));
    g_assert_nonnull(strstr(
        said,
        "\"unknown\":[{\"bytes\":1073741824,\"half\":false,\"kept\":false,\"name\":\"" STRAY "\""));
    g_assert_nonnull(strstr(said, "\"name\":\"" DATA7 "\",\"resource\":\"" VOLUME1
                                  "\",\"resource_type\":\"Volume\",\"there\":false}"));
    g_assert_nonnull(strstr(said, "{\"bytes\":1073741824,\"name\":\"eeeeeeee-3333-4000-8000-"
                                  "000000000003.4\",\"resource\":"));
    fake_volumes_put(volumes, DIR1, DATA7, 2 * GIB, true);
    g_autofree char *less = ask(NODE1, "compare_stored", json_make("{ss}", "backend", DIR1));
    g_assert_null(strstr(less, DATA7));
    volumes_tear_down();
}

/* A backup is as long as its record says, however large its volume is. */
static void test_compare_backup(void)
{
    set_up(changes_of(put("backup", BACKUP3, 1, object_backup3()), NULL));
    fake_volumes_put_as(volumes, DIR1, RESOURCE_BACKUP, BACKUP3 ".9", 4096, true);
    g_autofree char *said = ask(NODE1, "compare_stored", json_make("{ss}", "backend", DIR1));
    g_assert_null(strstr(said, BACKUP3));
    for (int more = -1; more <= 1; more += 2) {
        fake_volumes_put(volumes, DIR1, BACKUP3 ".9", (guint64)(4096 + more), true);
        g_autofree char *differs = ask(NODE1, "compare_stored", json_make("{ss}", "backend", DIR1));
        g_assert_nonnull(strstr(differs, "\"name\":\"" BACKUP3 ".9\",\"resource\":"));
    }
    volumes_tear_down();
}

/* Whoever comes to it first once data is there in that number stays for a minute. */
static void hold(const struct env *env, void *data)
{
    guint *count = data;
    if (!*count || fake_volumes_count(volumes) < *count)
        return;
    *count = 0;
    env_sleep(env, 60 * 1000);
}

static json_t *wish(const char *operation, const char *what, const char *uuid)
{
    return json_make("{s:s,s:s,s:s}", "resource_type", "Backup", "operation", operation, what,
                     uuid);
}

/* What a restore makes is its volume's, under a row of the backup: who makes it is busy with
 * either, and nobody calls it unknown. */
static void test_restoring(void)
{
    set_up(NULL);
    guint count = 0;
    fake_volumes_set_step(volumes, hold, &count);
    const char *volume = volume_ask("create-volume", "", 2, "dir1");
    volumes_work();
    const char *backup = volume_ask_for(wish("back-up-volume", "source", volume));
    volumes_work();
    count = 3;
    volume_ask_for(with(wish("restore-backup", "resource", backup), "target", json_string(volume)));
    fake_advance(world.world, 20000);
    g_assert_cmpuint(fake_volumes_count(volumes), ==, 3);
    for (guint i = 0; i < 2; i++) {
        json_t *args = json_make("{ss s[{ss ss}]}", "backend", DIR1, "subjects", "resource_type",
                                 i ? "Backup" : "Volume", "resource", i ? backup : volume);
        g_autofree char *one = ask(NODE1, "collect_stored", json_incref(args));
        g_autofree char *two = ask(NODE2, "collect_stored", args);
        g_assert_true((strstr(one, "its member works on it") != NULL) !=
                      (strstr(two, "its member works on it") != NULL));
    }
    g_autofree char *said = ask(NODE1, "compare_stored", json_make("{ss}", "backend", DIR1));
    g_assert_nonnull(strstr(said, "\"unknown\":[]"));
    volumes_work();
    assert_says(volume_said(volume), "available 2 GiB");
    volumes_tear_down();
}

static char *check(const char *node)
{
    return ask(
        node, "backend_check",
        json_make("{ss ss si si}", "backend", DIR1, "token", VOLUME2, "place", 0, "nodes", 1));
}

/* Registered or not, as it is why that one is not. */
static void test_check(void)
{
    set_up(NULL);
    fake_volumes_set_space(volumes, DIR1, 3);
    fake_advance(world.world, 600000);
    g_autofree char *well = check(NODE1);
    g_assert_nonnull(strstr(well, "\"free_mib\":3072"));
    g_assert_nonnull(strstr(well, "\"problems\":[]"));
    fake_volumes_unmount(volumes, NODE2, true);
    g_autofree char *away = check(NODE2);
    g_assert_nonnull(strstr(away, "\"problems\":[\"dir1: "));
    g_assert_nonnull(strstr(away, "is it mounted?"));
    fake_volumes_hang(volumes, DIR1, true);
    g_free(check(NODE1));
    fake_advance(world.world, 60000);
    guint calls = fake_volumes_count_calls(volumes, "open");
    g_autofree char *hung = check(NODE1);
    g_assert_nonnull(strstr(hung, "calls before this one hang in it"));
    g_assert_cmpuint(fake_volumes_count_calls(volumes, "open"), ==, calls);
    volumes_tear_down();
    volumes_set_up(changes_of(data1("deleting", DATA7), NULL));
    luxid = fake_process(world.world, NODE1, ROLE_LUXID);
    volumed_start(1); /* there is no marker, and something is on record */
    fake_advance(world.world, 20000);
    g_autofree char *unmarked = check(NODE1);
    g_assert_nonnull(strstr(unmarked, "\"problems\":[\"dir1: /mnt/a has no marker"));
    volumes_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/volume-look/collect#RCV-17,RCV-19,RCV-15", test_collect);
    g_test_add_func("/volume-look/refused#SAF-123", test_refused);
    g_test_add_func("/volume-look/hangs", test_hangs);
    g_test_add_func("/volume-look/busy", test_busy);
    g_test_add_func("/volume-look/compare#RCV-17", test_compare);
    g_test_add_func("/volume-look/compare-backup#RCV-17", test_compare_backup);
    g_test_add_func("/volume-look/check", test_check);
    g_test_add_func("/volume-look/restoring#SAF-121", test_restoring);
    return g_test_run();
}
