/* What the node daemon leaves for fettle-mond, and tells it. core/node/monitor/. */
#include "helper/node_world.h"

#include "base/limits.h"

#define KEY_1 "0000000000000000000000000000000000000000000000000000000000000001"
#define KEY_2 "0000000000000000000000000000000000000000000000000000000000000002"

static struct {
    const char *key; /* NULL: this master knows no such method */
    guint asked;
} master;

static json_t *give_key(const struct rpc_request *request, const char *to_node, void *data,
                        GError **error)
{
    master.asked++;
    g_assert_cmpstr(request->from_role, ==, ROLE_NODED);
    g_assert_cmpuint(request->stamp.epoch, >, 0);
    if (!master.key)
        fettle_set_error(error, PROTOCOL, "there is no method monitor_key");
    return master.key ? json_make("{ss}", "key", master.key) : NULL;
}

static struct node_world *monitored_world(void)
{
    struct node_world *nw = node_world_new(1);
    master.key = KEY_1;
    master.asked = 0;
    fake_script(nw->world, NODE_M, ROLE_WCONFD, "monitor_key", give_key, NULL);
    nw->monitored = true;
    nw_daemon_kill(nw, &nw->a);
    nw_daemon_start(nw, &nw->a);
    nw_pass(nw, 50);
    return nw;
}

static json_t *file_of(struct node_world *nw, enum file_area area, const char *name)
{
    const char *text = fake_file(nw->world, NODE_A, area, name);
    json_t *json = text ? json_loads(text, 0, NULL) : NULL;
    g_assert_true(!text == !json);
    return json;
}

static json_int_t number(const json_t *object, const char *member)
{
    return json_integer_value(json_object_get(object, member));
}

static const char *text(const json_t *object, const char *member)
{
    return json_string_value(json_object_get(object, member));
}

/* --- figures --- */

static void start_web1(struct node_world *nw)
{
    g_autoptr(GError) error = NULL;
    nw_create(nw, NODE_A, "", 1, &error);
    g_assert_no_error(error);
    g_assert_true(nw_start(nw, &error));
    g_assert_no_error(error);
    nw_pass(nw, STATS_PERIOD_MS);
}

static void test_figures(void)
{
    struct node_world *nw = monitored_world();
    json_autoptr node = file_of(nw, FILE_STATS, "node.stats");
    g_assert_nonnull(node);
    g_assert_cmpint(number(node, "written_us"), >, 0);
    g_assert_null(fake_file(nw->world, NODE_A, FILE_STATS, WEB1 ".stats"));
    start_web1(nw);
    json_autoptr first = file_of(nw, FILE_STATS, WEB1 ".stats");
    g_assert_cmpstr(text(first, "instance"), ==, WEB1);
    g_assert_cmpstr(text(first, "state"), ==, "running");
    g_assert_false(json_is_true(json_object_get(first, "late")));
    const json_t *drive = json_array_get(json_object_get(first, "drives"), 0);
    g_assert_cmpstr(text(drive, "name"), ==, "vd0");
    g_assert_cmpint(number(drive, "read_bytes"), ==, number(first, "generation") * 512);
    nw_pass(nw, 2 * STATS_PERIOD_MS);
    json_autoptr later = file_of(nw, FILE_STATS, WEB1 ".stats");
    g_assert_cmpint(number(later, "written_us"), >, number(first, "written_us"));
    g_autoptr(GError) error = NULL;
    g_assert_true(nw_stop(nw, 1000, &error));
    nw_pass(nw, STATS_PERIOD_MS);
    g_assert_null(fake_file(nw->world, NODE_A, FILE_STATS, WEB1 ".stats"));
    node_world_free(nw);
}

/* One that does not answer is told with what it said last, and holds up nobody. */
static void test_late(void)
{
    struct node_world *nw = monitored_world();
    start_web1(nw);
    json_autoptr well = file_of(nw, FILE_STATS, WEB1 ".stats");
    fake_host_hang(nw->a.host, WEB1, true);
    nw_pass(nw, 3 * STATS_PERIOD_MS);
    json_autoptr late = file_of(nw, FILE_STATS, WEB1 ".stats");
    json_autoptr node = file_of(nw, FILE_STATS, "node.stats");
    g_assert_true(json_is_true(json_object_get(late, "late")));
    g_assert_cmpint(number(late, "heard_age_ms"), >=, STATS_PERIOD_MS);
    g_assert_true(json_equal(json_object_get(late, "drives"), json_object_get(well, "drives")));
    g_assert_cmpint(number(late, "written_us"), >, number(well, "written_us"));
    g_assert_cmpint(number(node, "written_us"), >, number(well, "written_us"));
    fake_host_hang(nw->a.host, WEB1, false);
    nw_pass(nw, 2 * STATS_PERIOD_MS);
    json_autoptr again = file_of(nw, FILE_STATS, WEB1 ".stats");
    g_assert_false(json_is_true(json_object_get(again, "late")));
    node_world_free(nw);
}

/* Its node mirrors to nothing any more, and it is still told that there should be one. */
static void test_lost_replica(void)
{
    struct node_world *nw = monitored_world();
    nw_create_and_start(nw);
    nw_pass(nw, 2 * STATS_PERIOD_MS);
    json_autoptr well = file_of(nw, FILE_STATS, WEB1 ".stats");
    g_assert_cmpstr(text(well, "replica_state"), ==, "in-sync");
    g_assert_cmpstr(text(well, "replica"), ==, nw->web1.replica);
    nw_cut(nw, &nw->b, true);
    nw_until(nw, nw->web1.state == REPLICA_STALE);
    nw_pass(nw, 3 * STATS_PERIOD_MS);
    json_autoptr lost = file_of(nw, FILE_STATS, WEB1 ".stats");
    g_assert_cmpstr(text(lost, "replica"), ==, nw->web1.replica);
    g_assert_cmpstr(text(lost, "replica_state"), ==, "stale");
    g_assert_cmpstr(text(lost, "mirror"), ==, "none");
    node_world_free(nw);
}

/* A disk that takes nothing, and a daemon that is killed in the middle: nothing rests on it. */
static void test_cannot_write(void)
{
    struct node_world *nw = monitored_world();
    fake_fail_files(nw->world, "stats", 3);
    start_web1(nw);
    nw_pass(nw, 3 * STATS_PERIOD_MS);
    g_assert_nonnull(fake_file(nw->world, NODE_A, FILE_STATS, WEB1 ".stats"));
    fake_host_hang(nw->a.host, WEB1, true);
    nw_pass(nw, STATS_PERIOD_MS + 50);
    nw_daemon_kill(nw, &nw->a);
    fake_host_hang(nw->a.host, WEB1, false);
    nw_daemon_start(nw, &nw->a);
    nw_pass(nw, 2 * STATS_PERIOD_MS);
    json_autoptr again = file_of(nw, FILE_STATS, WEB1 ".stats");
    g_assert_false(json_is_true(json_object_get(again, "late")));
    node_world_free(nw);
}

/* --- what it is told --- */

static void assert_told(struct node_world *nw, const char *key)
{
    json_autoptr told = file_of(nw, FILE_MOND, "node.json");
    g_assert_nonnull(told);
    g_assert_cmpstr(text(told, "key"), ==, key);
    g_assert_cmpuint(json_array_size(json_object_get(told, "candidates")), >, 0);
}

/* Of some master, not long ago. */
static void assert_heard(struct node_world *nw)
{
    json_autoptr stats = file_of(nw, FILE_STATS, "node.stats");
    g_assert_cmpint(json_integer_value(json_object_get(stats, "master_heard_ms")), <, 65000);
}

static void test_told(void)
{
    struct node_world *nw = monitored_world();
    assert_told(nw, KEY_1);
    master.key = KEY_2;
    nw_pass(nw, 61000);
    assert_told(nw, KEY_2);
    guint asked = master.asked;
    master.key = NULL; /* a master of the version before */
    nw_pass(nw, 70000);
    g_assert_cmpuint(master.asked, >, asked);
    assert_told(nw, KEY_2);
    assert_heard(nw); /* it was a master all the same */
    nw_daemon_kill(nw, &nw->a);
    nw_power_cut(nw, &nw->a);
    nw_daemon_start(nw, &nw->a);
    nw_pass(nw, 100);
    assert_told(nw, KEY_2); /* with no word of any master */
    node_world_free(nw);
}

/* What is there cannot be used. */
static void test_told_torn(void)
{
    struct node_world *nw = monitored_world();
    nw_daemon_kill(nw, &nw->a);
    fake_file_put(nw->world, NODE_A, FILE_MOND, "node.json", "{\"key\": \"");
    nw_daemon_start(nw, &nw->a);
    nw_pass(nw, 6000);
    assert_told(nw, KEY_1);
    node_world_free(nw);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/monitored/figures#MON-04", test_figures);
    g_test_add_func("/monitored/late#MON-04", test_late);
    g_test_add_func("/monitored/lost-replica#MON-02", test_lost_replica);
    g_test_add_func("/monitored/cannot-write", test_cannot_write);
    g_test_add_func("/monitored/told#MON-04", test_told);
    g_test_add_func("/monitored/told-torn", test_told_torn);
    return g_test_run();
}
