/* Who cleans the rows of a service that is dead: members and schedulers, asked or by themselves. */
#include <string.h>

#include "unit/core/world/volume_world.h"

#define MINUTE_MS (60u * 1000)

/* --- the story: node1's service dies with rows in hand --- */

static const struct worker *row_of(const char *uuid)
{
    g_autofree char *key = config_work_key(RESOURCE_VOLUME, uuid);
    return config_get(wconf_config(world.wconf), "worker", key, NULL);
}

/* Takes it, and is killed while its back end hangs; the volume. */
static const char *die_with(struct volumed *process, const char *operation, const char *uuid)
{
    bool creates = strcmp(operation, "create-volume") == 0;
    fake_volumes_hang(volumes, DIR1, true);
    uuid = volume_ask(operation, uuid,
                      creates                                   ? 2
                      : strcmp(operation, "extend-volume") == 0 ? 3
                                                                : 0,
                      creates ? "dir1" : "");
    for (guint i = 0; i < 100 && !row_of(uuid)->service_id; i++)
        fake_advance(world.world, 100);
    g_assert_cmpuint(row_of(uuid)->service_id, ==, volumes_service("node1", DIR1)->id);
    volumed_kill(process);
    fake_volumes_hang(volumes, DIR1, false);
    return uuid;
}

static const char *die_creating(struct volumed *process)
{
    return die_with(process, "create-volume", "");
}

static const struct cleanup *cleanup_of(const char *host, const char *backend)
{
    const struct storage_service *service = volumes_service(host, backend);
    g_autofree char *key = config_cleanup_key(service->id, "", "");
    return config_get(wconf_config(world.wconf), "cleanup", key, NULL);
}

static void assert_cleaned(const char *host, const char *backend, guint cleaned)
{
    const struct cleanup *cleanup = cleanup_of(host, backend);
    g_assert_nonnull(cleanup);
    g_assert_cmpint(cleanup->state, ==, CLEANUP_DONE);
    g_assert_cmpuint(cleanup->cleaned, ==, cleaned);
    g_assert_cmpuint(cleanup->failed, ==, 0);
}

static struct volumed *first, *second;

/* Both members of dir1, and a scheduler of node3 if there is to be one. */
static void set_up(bool scheduler)
{
    volumes_set_up(NULL);
    first = volumed_start(1);
    second = volumed_start(2);
    if (scheduler)
        scheduler_start(3);
    fake_advance(world.world, 30000);
}

static void set_automatic(void)
{
    volumes_set_cluster(json_make("{s:b}", "auto_cleanup_enabled", true));
}

/* --- on request --- */

/* #CLN-28, #CLN-38, #CLN-57 */
static void test_asked(void)
{
    set_up(false);
    fake_pause(second->env); /* so that it is node1 who takes it */
    const char *uuid = die_creating(first);
    fake_resume(second->env);
    fake_advance(world.world, 2 * MINUTE_MS);
    assert_says(volume_said(uuid), "creating 2 GiB, no data");
    assert_says(volumes_ask_cleanup(NULL),
                "cleaning: node1@dir1 by node2@dir1 (1); unavailable: -");
    volumes_work();
    assert_says(volume_said(uuid), "error 2 GiB, no data");
    fake_advance(world.world, 1000);
    assert_cleaned("node1", DIR1, 1);
    g_assert_null(second->ended);
    volumes_assert_clean();
    volumes_tear_down();
}

/* What is deleted or extended is settled by the other one, too. */
static void test_asked_of_others(void)
{
    static const struct {
        const char *operation, *outcome;
    } stories[] = {{"delete-volume", "gone"}, {"extend-volume", "error_extending 2 GiB"}};
    for (guint i = 0; i < G_N_ELEMENTS(stories); i++) {
        set_up(false);
        const char *uuid = volume_ask("create-volume", "", 2, "dir1");
        volumes_work();
        fake_pause(second->env);
        die_with(first, stories[i].operation, uuid);
        fake_resume(second->env);
        fake_advance(world.world, 2 * MINUTE_MS);
        assert_says(volumes_ask_cleanup(NULL),
                    "cleaning: node1@dir1 by node2@dir1 (1); unavailable: -");
        volumes_work();
        assert_says(volume_said(uuid), stories[i].outcome);
        volumes_assert_clean();
        volumes_tear_down();
    }
}

/* #CLN-29: by one that joined in its place; #CLN-32: one member at a time. */
static void test_another_joins(void)
{
    volumes_set_up(NULL);
    first = volumed_start(1);
    fake_advance(world.world, 30000);
    const char *uuid = die_creating(first);
    fake_advance(world.world, 2 * MINUTE_MS);
    volumed_start(2);
    fake_advance(world.world, 1000);
    assert_says(volumes_ask_cleanup(NULL),
                "cleaning: node1@dir1 by node2@dir1 (1); unavailable: -");
    volumes_work();
    assert_says(volume_said(uuid), "error 2 GiB, no data");
    volumes_tear_down();
}

/* #CLN-30: nobody of another back end does it; #CLN-56: the first that comes up does, by a
 * scheduler's word. */
static void test_unavailable(void)
{
    volumes_set_up(NULL);
    first = volumed_start(1);
    fake_advance(world.world, 30000);
    const char *uuid = die_creating(first);
    scheduler_start(3);
    fake_advance(world.world, 2 * MINUTE_MS);
    assert_says(volumes_ask_cleanup(NULL), "cleaning: -; unavailable: node1@dir1");
    fake_advance(world.world, 60 * MINUTE_MS);
    assert_says(volume_said(uuid), "creating 2 GiB, no data");
    volumed_start(2);
    fake_advance(world.world, MINUTE_MS);
    assert_says(volume_said(uuid), "error 2 GiB, no data");
    volumes_tear_down();
}

/* #CLN-27: another node with its name is that service, once it is down. */
static void test_replacement(void)
{
    volumes_set_up(NULL);
    first = volumed_start_as(1, "vol1");
    fake_advance(world.world, 30000);
    volumed_stop_at(first, 3);
    const char *uuid = volume_ask("create-volume", "", 2, "dir1");
    volumes_work();
    volumed_stop_at(NULL, 0);
    volumed_kill(first);
    struct volumed *other = volumed_start_as(2, "vol1");
    fake_advance(world.world, 30000);
    g_assert_cmpstr(volumes_service("vol1", DIR1)->node, ==, NODE1); /* refused: it is up */
    assert_says(volume_said(uuid), "creating 2 GiB, no data");
    volumes_work();
    g_assert_cmpstr(volumes_service("vol1", DIR1)->node, ==, NODE2);
    assert_says(volume_said(uuid), "error 2 GiB, no data");
    g_assert_null(other->ended);
    volumes_tear_down();
}

/* #CLN-31 */
static void test_of_a_scheduler(void)
{
    volumes_set_up(NULL);
    fake_volumes_set_space(volumes, DIR1, 10);
    fake_volumes_set_space(volumes, DIR2, 10);
    volumed_start(1);
    volumed_start(2);
    struct volumed *dies = scheduler_start(1);
    fake_advance(world.world, 30000);
    volumed_stop_at(dies, 2); /* it has taken what it gives up */
    const char *uuid = volume_ask("create-volume", "", 11, "");
    volumes_work();
    g_assert_true(volumed_stopped());
    volumed_stop_at(NULL, 0);
    g_assert_cmpuint(row_of(uuid)->service_id, ==, volumes_service("node1", "")->id);
    volumed_kill(dies);
    scheduler_start(2);
    fake_advance(world.world, 2 * MINUTE_MS);
    assert_says(volumes_ask_cleanup(json_make("{s:s}", "binary", "cinder-scheduler")),
                "cleaning: node1 by node2 (1); unavailable: -");
    volumes_work();
    assert_says(volume_said(uuid), "error 11 GiB, no data");
    volumes_tear_down();
}

/* #CLN-21: what fails goes back to its owner and time, the others are cleaned; the next request
 * cleans it. */
static void test_one_fails(void)
{
    set_up(false);
    const char *uuids[3];
    for (guint i = 0; i < G_N_ELEMENTS(uuids); i++) {
        uuids[i] = volume_ask("create-volume", "", 2, "dir1");
        volumes_work();
    }
    fake_pause(second->env);
    fake_volumes_hang(volumes, DIR1, true);
    for (guint i = 0; i < G_N_ELEMENTS(uuids); i++)
        volume_ask("extend-volume", uuids[i], 3, "");
    fake_advance(world.world, 3000);
    guint64 owner = row_of(uuids[2])->service_id;
    g_assert_cmpuint(owner, ==, volumes_service("node1", DIR1)->id);
    volumed_kill(first);
    fake_volumes_hang(volumes, DIR1, false);
    fake_resume(second->env);
    fake_advance(world.world, 2 * MINUTE_MS);
    fake_volumes_fail(volumes, "look", FETTLE_ERROR_STORAGE, false, 1);
    g_free(volumes_ask_cleanup(NULL));
    fake_advance(world.world, MINUTE_MS);
    g_assert_cmpuint(config_count(wconf_config(world.wconf), "worker"), ==, 1);
    g_assert_cmpint(cleanup_of("node1", DIR1)->state, ==, CLEANUP_DONE);
    g_assert_cmpuint(cleanup_of("node1", DIR1)->failed, ==, 1);
    g_autoptr(GPtrArray) left = config_service_work(wconf_config(world.wconf), owner);
    g_assert_cmpuint(left->len, ==, 1);
    g_free(volumes_ask_cleanup(NULL));
    volumes_work();
    assert_cleaned("node1", DIR1, 1);
    volumes_tear_down();
}

/* --- what dies, and what comes back --- */

/* #CLN-24: the one that cleans dies at each of its steps; a scheduler asks another one, or the next
 * process of its name goes on. */
static bool cleaner_dies(guint at, bool comes_again)
{
    volumes_set_up(NULL);
    first = volumed_start(1);
    fake_advance(world.world, 30000);
    const char *uuid = die_creating(first);
    second = volumed_start(2);
    scheduler_start(3);
    fake_advance(world.world, 2 * MINUTE_MS);
    volumed_stop_at(second, at);
    g_free(volumes_ask_cleanup(NULL));
    volumes_work();
    bool stopped = volumed_stopped();
    if (stopped) {
        volumed_stop_at(NULL, 0);
        volumed_kill(second);
        if (comes_again)
            volumed_start(2);
        fake_advance(world.world, 2 * MINUTE_MS);
        if (!comes_again) { /* the first is back, and is asked for what the second had claimed */
            volumed_start(1);
            fake_advance(world.world, 1000);
            g_free(volumes_ask_cleanup(NULL));
        }
        volumes_work();
    }
    assert_says(volume_said(uuid), "error 2 GiB, no data");
    volumes_assert_clean();
    volumes_tear_down();
    return stopped;
}

static void test_cleaner_dies(void)
{
    for (guint again = 0; again < 2; again++) {
        guint at = 1;
        while (cleaner_dies(at, again))
            at++;
        g_assert_cmpuint(at, >, 4);
    }
}

/* #CLN-23: the owner was only stopped. It is refused, and harms nothing. */
static void test_owner_goes_on(void)
{
    set_up(false);
    fake_pause(second->env);
    volumed_stop_at(first, 4); /* it is making it */
    const char *uuid = volume_ask("create-volume", "", 2, "dir1");
    volumes_work();
    g_assert_true(volumed_stopped());
    volumed_stop_at(NULL, 0);
    fake_resume(second->env);
    fake_advance(world.world, 2 * MINUTE_MS);
    g_free(volumes_ask_cleanup(NULL));
    volumes_work();
    assert_says(volume_said(uuid), "error 2 GiB, no data");
    fake_resume(first->env);
    fake_advance(world.world, MINUTE_MS);
    assert_says(volume_said(uuid), "error 2 GiB, no data");
    g_assert_null(first->ended);
    volumes_assert_clean();
    volumes_tear_down();
}

/* --- by itself --- */

/* #CLN-46, #CLN-47, #CLN-49: not while it is off; then not before 3 x 60 s since it went down. */
static void test_automatic(void)
{
    set_up(true);
    fake_pause(second->env);
    const char *uuid = die_creating(first);
    fake_resume(second->env);
    fake_advance(world.world, 3 * 60 * MINUTE_MS);
    assert_says(volume_said(uuid), "creating 2 GiB, no data");
    g_assert_null(cleanup_of("node1", DIR1));
    set_automatic();
    fake_advance(world.world, 61 * 1000);
    assert_says(volume_said(uuid), "error 2 GiB, no data");
    volumes_tear_down();
}

static void test_automatic_in_time(void)
{
    set_up(true);
    set_automatic();
    fake_pause(second->env);
    const char *uuid = die_creating(first);
    fake_resume(second->env);
    fake_advance(world.world, 225 * 1000); /* down at 50 to 61, due at 230 or later */
    assert_says(volume_said(uuid), "creating 2 GiB, no data");
    g_assert_null(cleanup_of("node1", DIR1));
    fake_advance(world.world, 80 * 1000);
    assert_says(volume_said(uuid), "error 2 GiB, no data");
    assert_cleaned("node1", DIR1, 1);
    volumes_tear_down();
}

/* #CLN-48: it comes back before that; #CLN-54: and dies again, which is another death. */
static void test_comes_back(void)
{
    set_up(true);
    set_automatic();
    fake_pause(first->env);
    fake_advance(world.world, 3 * MINUTE_MS);
    g_assert_cmpint(volumes_service("node1", DIR1)->state, ==, STORAGE_DOWN);
    fake_resume(first->env);
    fake_advance(world.world, MINUTE_MS);
    g_assert_cmpint(volumes_service("node1", DIR1)->state, ==, STORAGE_UP);
    for (guint death = 0; death < 2; death++) {
        fake_pause(second->env);
        const char *uuid = die_creating(first);
        fake_resume(second->env);
        fake_advance(world.world, 225 * 1000);
        assert_says(volume_said(uuid), "creating 2 GiB, no data");
        fake_advance(world.world, 80 * 1000);
        assert_says(volume_said(uuid), "error 2 GiB, no data");
        first = volumed_start(1);
        fake_advance(world.world, MINUTE_MS);
    }
    volumes_tear_down();
}

/* #CLN-52, #CLN-53, #CLN-55: of several schedulers, one that has just come among them, one request
 * comes on record, and each row is cleaned once. */
static void test_several_schedulers(void)
{
    set_up(true);
    set_automatic();
    scheduler_start(1);
    fake_pause(second->env);
    const char *uuid = die_creating(first);
    fake_resume(second->env);
    guint64 before = config_serial(wconf_config(world.wconf));
    fake_advance(world.world, 6 * MINUTE_MS);
    assert_says(volume_said(uuid), "error 2 GiB, no data");
    guint writes = storage_writes(before, "cleanup");
    scheduler_start(2);
    fake_advance(world.world, 6 * MINUTE_MS);
    /* asked, running, counted, done */
    g_assert_cmpuint(writes, <=, 4);
    g_assert_cmpuint(storage_writes(before, "cleanup"), ==, writes);
    assert_cleaned("node1", DIR1, 1);
    volumes_tear_down();
}

/* #CLN-63: what is new has its turn between the batches. */
static void test_many(void)
{
    const guint many = 600;
    g_autoptr(GPtrArray) uuids = g_ptr_array_new();
    set_up(false);
    fake_pause(second->env);
    fake_volumes_hang(volumes, DIR1, true);
    volumed_kill(first);
    for (guint i = 0; i < many; i++)
        g_ptr_array_add(uuids, (void *)volume_ask("create-volume", "", 1, "dir1"));
    volumes_die_with(uuids);
    fake_volumes_hang(volumes, DIR1, false);
    fake_resume(second->env);
    fake_advance(world.world, 2 * MINUTE_MS);
    fake_volumes_delay(volumes, 100);
    assert_says(volumes_ask_cleanup(NULL),
                "cleaning: node1@dir1 by node2@dir1 (600); unavailable: -");
    const char *new = volume_ask("create-volume", "", 1, "dir1");
    while (row_of(new))
        fake_advance(world.world, 10);
    g_assert_cmpuint(config_count(wconf_config(world.wconf), "worker"), >, 0);
    volumes_work();
    fake_advance(world.world, 1000);
    assert_cleaned("node1", DIR1, many);
    g_assert_cmpuint(fake_volumes_count_calls(volumes, "list"), <, 10); /* one of a batch */
    volumes_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/volume-cleanup/asked#CLN-28,CLN-38", test_asked);
    g_test_add_func("/volume-cleanup/asked-of-others#CLN-20,CLN-32", test_asked_of_others);
    g_test_add_func("/volume-cleanup/another-joins#CLN-29,CLN-32", test_another_joins);
    g_test_add_func("/volume-cleanup/unavailable#CLN-30,CLN-56", test_unavailable);
    g_test_add_func("/volume-cleanup/replacement#CLN-27", test_replacement);
    g_test_add_func("/volume-cleanup/of-a-scheduler#CLN-31", test_of_a_scheduler);
    g_test_add_func("/volume-cleanup/one-fails#CLN-21", test_one_fails);
    g_test_add_func("/volume-cleanup/cleaner-dies#CLN-24", test_cleaner_dies);
    g_test_add_func("/volume-cleanup/owner-goes-on#CLN-23", test_owner_goes_on);
    g_test_add_func("/volume-cleanup/automatic#CLN-46,CLN-49", test_automatic);
    g_test_add_func("/volume-cleanup/automatic-in-time#CLN-47", test_automatic_in_time);
    g_test_add_func("/volume-cleanup/comes-back#CLN-48,CLN-54", test_comes_back);
    g_test_add_func("/volume-cleanup/several-schedulers#CLN-52,CLN-53,CLN-55",
                    test_several_schedulers);
    g_test_add_func("/volume-cleanup/many#CLN-63", test_many);
    return g_test_run();
}
