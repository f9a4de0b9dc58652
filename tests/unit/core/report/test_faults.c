/* What shows of a node only beside the others, and how old things are. core/report/faults.c,
 * ages.c.
 */
#include <string.h>

#include "core/config/ages.h"
#include "core/report/faults.h"
#include "helper/fake_env.h"

#define NODE(n) "00000000-0000-4000-8000-00000000000" n
#define CLUSTER "00000000-0000-4000-8000-0000000000c1"

struct scene {
    struct fake_world *world;
    struct env *env;
    struct config *config;
    struct faults_round *round;
    GPtrArray *reports;
};

static void report_unref(void *report)
{
    node_report_free(report);
}

static void begin(struct scene *scene)
{
    g_autoptr(GError) error = NULL;
    scene->world = fake_world_new();
    scene->env = fake_process(scene->world, NODE("1"), ROLE_WATCHER);
    scene->config = config_new();
    scene->reports = g_ptr_array_new_with_free_func(report_unref);
    record_autoptr(change) change =
        config_put(scene->config, "cluster", CLUSTER,
                   json_make("{ss ss ss}", "uuid", CLUSTER, "name", "c", "master_node", NODE("1")));
    change->version = 1;
    config_apply(scene->config, change, &error);
    g_assert_no_error(error);
    scene->round = faults_round_new(scene->env);
}

static void end(struct scene *scene)
{
    g_ptr_array_unref(scene->reports);
    config_free(scene->config);
    fake_world_free(scene->world);
}

static struct node_report *report(struct scene *scene, const char *node)
{
    json_autoptr json =
        json_make("{ss si si si si sb}", "node", node, "memory_total", 1, "memory_free", 1,
                  "disk_total", 1, "disk_free", 1, "faults_known", 1);
    struct node_report *made = node_report_parse(json, RECORD_STRICT, NULL);
    g_ptr_array_add(scene->reports, made);
    return made;
}

/* A node whose clock is so much ahead answers now. */
static void hear_clock(struct scene *scene, const char *node, gint64 ahead_ms)
{
    struct node_report *made = report(scene, node);
    made->clock_us = (guint64)(scene->env->ops->wall_us(scene->env) + ahead_ms * 1000);
    faults_round_heard(scene->round, made);
}

static void hear_copy(struct scene *scene, const char *node, guint64 serial, guint64 settled)
{
    struct node_report *made = report(scene, node);
    made->copy_history = 1;
    made->copy_serial = serial;
    made->copy_settled = settled;
    faults_round_heard(scene->round, made);
}

/* "1: …\n" for each node that has any; ends the scene. */
static void assert_ends(struct scene *scene, const char *expected)
{
    g_autoptr(GString) all = g_string_new(NULL);
    faults_round_end(scene->round, scene->config);
    for (guint i = 0; i < scene->reports->len; i++) {
        const struct node_report *made = scene->reports->pdata[i];
        g_autofree char *text = faults_text(made);
        if (text)
            g_string_append_printf(all, "%s: %s\n", made->node + 35, text);
    }
    g_assert_cmpstr(all->str, ==, expected);
    end(scene);
}

/* --- clocks --- */

static void test_clocks(void)
{
    struct scene scene;
    begin(&scene);
    hear_clock(&scene, NODE("1"), 0);
    hear_clock(&scene, NODE("2"), 1900);
    hear_clock(&scene, NODE("3"), -5300);
    assert_ends(&scene, "3: has a clock that is 5.3 s behind the others'\n");
}

static void test_years(void)
{
    struct scene scene;
    begin(&scene);
    hear_clock(&scene, NODE("1"), 0);
    hear_clock(&scene, NODE("2"), 3 * 365 * 86400 * G_GINT64_CONSTANT(1000));
    hear_clock(&scene, NODE("3"), 0);
    assert_ends(&scene, "2: has a clock that is 1095 days ahead of the others'\n");
}

/* The asker's own may be the one that is off. */
static void test_masters_clock(void)
{
    struct scene scene;
    begin(&scene);
    hear_clock(&scene, NODE("1"), 0);
    hear_clock(&scene, NODE("2"), 60000);
    hear_clock(&scene, NODE("3"), 60000);
    assert_ends(&scene, "1: has a clock that is 60.0 s behind the others'\n");
}

/* Of two nobody knows which is off: the master's is what the records show. */
static void test_two_clocks(void)
{
    struct scene scene;
    begin(&scene);
    hear_clock(&scene, NODE("1"), 0);
    hear_clock(&scene, NODE("2"), 60000);
    assert_ends(&scene, "2: has a clock that is 60.0 s ahead of the master's\n");
}

/* An answer that was under way for long may be old, or not: nobody is blamed for that. */
static void test_slow_answer(void)
{
    struct scene scene;
    begin(&scene);
    hear_clock(&scene, NODE("1"), 0);
    hear_clock(&scene, NODE("2"), 0);
    fake_advance(scene.world, 10000);
    hear_clock(&scene, NODE("3"), -9000);
    hear_clock(&scene, NODE("4"), -30000);
    assert_ends(&scene, "4: has a clock that is 25.0 s behind the others'\n");
}

/* What an older version does not tell is no fault. */
static void test_untold(void)
{
    struct scene scene;
    begin(&scene);
    hear_clock(&scene, NODE("1"), 0);
    faults_round_heard(scene.round, report(&scene, NODE("2")));
    assert_ends(&scene, "");
}

/* --- copies --- */

static void test_copy_lags(void)
{
    struct scene scene;
    begin(&scene);
    hear_copy(&scene, NODE("1"), 110, 100);
    hear_copy(&scene, NODE("2"), 105, 100);
    hear_copy(&scene, NODE("3"), 99, 99);
    assert_ends(&scene, "3: has a copy of the configuration that lags behind the others'\n");
}

/* What came a moment ago is on its way. */
static void test_copy_is_under_way(void)
{
    struct scene scene;
    begin(&scene);
    hear_copy(&scene, NODE("1"), 110, 100);
    hear_copy(&scene, NODE("2"), 100, 100);
    hear_copy(&scene, NODE("3"), 0, 0); /* is no candidate */
    assert_ends(&scene, "");
}

static void test_all_copies_lag(void)
{
    struct scene scene;
    begin(&scene);
    hear_copy(&scene, NODE("1"), 110, 100);
    hear_copy(&scene, NODE("2"), 99, 99);
    hear_copy(&scene, NODE("3"), 99, 99);
    assert_ends(&scene, "1: gives its changes to no other candidate: all their copies of the "
                        "configuration lag behind\n");
}

/* --- ages --- */

#define YEARS_MS (3 * 365 * 86400 * G_GINT64_CONSTANT(1000))

static void test_ages(void)
{
    struct fake_world *world = fake_world_new();
    struct env *env = fake_process(world, NODE("1"), ROLE_WATCHER);
    struct ages *ages = ages_new(env);
    guint64 now_us = (guint64)env->ops->wall_us(env);
    g_assert_cmpint(ages_us(ages, "past", now_us - 5000000), ==, 5000000);
    g_assert_cmpint(ages_us(ages, "future", now_us + 5000000), ==, 0);
    fake_set_clock(world, NODE("1"), -YEARS_MS);
    fake_advance(world, 1000);
    g_assert_cmpint(ages_us(ages, "past", now_us - 5000000), ==, 6000000);
    g_assert_cmpint(ages_us(ages, "future", now_us + 5000000), ==, 1000000);
    fake_set_clock(world, NODE("1"), YEARS_MS);
    g_assert_cmpint(ages_us(ages, "past", now_us - 5000000), ==, 6000000);
    /* Another date under that name is another thing. */
    g_assert_cmpint(ages_us(ages, "past", (guint64)env->ops->wall_us(env)), ==, 0);
    ages_free(ages);
    fake_world_free(world);
}

static void test_steps(void)
{
    struct fake_world *world = fake_world_new();
    struct env *env = fake_process(world, NODE("1"), ROLE_WATCHER);
    struct ages *ages = ages_new(env);
    g_assert_cmpint(ages_step_ms(ages), ==, 0);
    fake_advance(world, 5000);
    fake_set_clock(world, NODE("1"), 1999);
    g_assert_cmpint(ages_step_ms(ages), ==, 0);
    fake_set_clock(world, NODE("1"), -YEARS_MS);
    g_assert_cmpint(ages_step_ms(ages), ==, -YEARS_MS);
    g_assert_cmpint(ages_step_ms(ages), ==, 0);
    ages_free(ages);
    fake_world_free(world);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/faults/clocks#SAF-92,SAF-93", test_clocks);
    g_test_add_func("/faults/clock-years-off#SAF-93", test_years);
    g_test_add_func("/faults/clock-of-the-master#SAF-93", test_masters_clock);
    g_test_add_func("/faults/two-clocks#SAF-93", test_two_clocks);
    g_test_add_func("/faults/slow-answer#SAF-93", test_slow_answer);
    g_test_add_func("/faults/not-told#SAF-92", test_untold);
    g_test_add_func("/faults/copy-lags#SAF-92", test_copy_lags);
    g_test_add_func("/faults/copy-under-way#SAF-92", test_copy_is_under_way);
    g_test_add_func("/faults/all-copies-lag#SAF-92", test_all_copies_lag);
    g_test_add_func("/ages/set#SAF-93", test_ages);
    g_test_add_func("/ages/steps#SAF-93", test_steps);
    return g_test_run();
}
