/* The scheduler of volumes: its copy, through masters and their deaths. core/storage/ */
#include "core/storage/volume_scheduler.h"

#include <string.h>

#include "proto/records.h"
#include "unit/core/world/config_world.h"

static struct config_world world;
static struct env *env;
static struct volume_scheduler *scheduler;

/* On another node than the master. */
static void set_up(void)
{
    config_world_init(&world, initial_changes());
    env = fake_process(world.world, NODE2, ROLE_SCHEDULER);
    scheduler = volume_scheduler_new(env, NULL, NULL);
    volume_scheduler_start(scheduler);
}

static void tear_down(void)
{
    fake_kill(env);
    volume_scheduler_free(scheduler);
    config_world_clear(&world);
}

static guint64 serial(void)
{
    return config_serial(volume_scheduler_config(scheduler));
}

static void commit_tag(const char *tag)
{
    g_autofree char *key = g_strdup_printf("instance/" WEB1 "/%s", tag);
    json_t *object = json_make("{s:s,s:s,s:s}", "kind", "instance", "object", WEB1, "tag", tag);
    g_free(job_commit(&world, 17, changes_of(put("tag", key, 0, object), NULL)));
}

static void test_follows_the_master(void)
{
    set_up();
    fake_advance(world.world, 30000); /* there is no master for long */
    g_assert_cmpuint(serial(), ==, 0);
    config_world_start(&world);
    fake_advance(world.world, 1000);
    g_assert_cmpuint(serial(), ==, config_serial(wconf_config(world.wconf)));
    commit_tag("a");
    fake_advance(world.world, 1000);
    g_assert_cmpuint(serial(), ==, config_serial(wconf_config(world.wconf)));
    tear_down();
}

static void test_goes_on_after_a_restart(void)
{
    set_up();
    config_world_start(&world);
    fake_advance(world.world, 1000);
    fake_kill(world.wconfd);
    fake_advance(world.world, 60000);
    config_world_restart(&world);
    config_world_start(&world);
    commit_tag("b");
    fake_advance(world.world, 1000);
    g_assert_cmpuint(serial(), ==, config_serial(wconf_config(world.wconf)));
    tear_down();
}

/* Who is no candidate any more is refused, and asks on until it is one again. */
static json_t *refused(const struct rpc_request *request, const char *to_node, void *data,
                       GError **error)
{
    ++*(guint *)data;
    fettle_set_error(error, PERMISSION, "node \"node2\" is no master candidate");
    return NULL;
}

static void test_waits_while_it_is_refused(void)
{
    guint asked = 0;
    set_up();
    config_world_start(&world);
    fake_script(world.world, NULL, ROLE_WCONFD, "wait_changes", refused, &asked);
    fake_advance(world.world, 60000);
    g_assert_cmpuint(asked, >, 1);
    g_assert_cmpuint(asked, <, 20);
    fake_script(world.world, NULL, ROLE_WCONFD, "wait_changes", NULL, NULL);
    fake_advance(world.world, 10000);
    g_assert_cmpuint(serial(), >, 0);
    /* The same when it has a copy already. */
    asked = 0;
    fake_script(world.world, NULL, ROLE_WCONFD, "wait_changes", refused, &asked);
    fake_advance(world.world, 120000);
    g_assert_cmpuint(asked, >, 1);
    g_assert_cmpuint(asked, <, 40);
    tear_down();
}

static void test_ends_before_a_first_copy(void)
{
    set_up();
    fake_advance(world.world, 5000);
    tear_down();
}

static void test_its_methods(void)
{
    size_t count;
    const struct method *table = method_table(&count);
    for (size_t i = 0; i < count; i++)
        if (method_allows(&table[i], ROLE_SCHEDULER)) {
            g_assert_cmpstr(table[i].server, ==, ROLE_WCONFD);
            g_assert_true(table[i].fence == METHOD_FENCED || !strcmp(table[i].name, "snapshot") ||
                          !strcmp(table[i].name, "wait_changes"));
            if (table[i].place == PLACE_BY_ROLE)
                g_assert_cmpint(method_place_of(&table[i], ROLE_SCHEDULER), ==, PLACE_CANDIDATE);
        }
    g_assert_true(method_allows(method_find(ROLE_WCONFD, "snapshot"), ROLE_SCHEDULER));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/volume_scheduler/follows-the-master", test_follows_the_master);
    g_test_add_func("/volume_scheduler/goes-on-after-a-restart", test_goes_on_after_a_restart);
    g_test_add_func("/volume_scheduler/waits-while-it-is-refused", test_waits_while_it_is_refused);
    g_test_add_func("/volume_scheduler/ends-before-a-first-copy", test_ends_before_a_first_copy);
    g_test_add_func("/volume_scheduler/reads-and-what-is-fenced", test_its_methods);
    return g_test_run();
}
