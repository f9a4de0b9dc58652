/* What Ganeti's own clients need to load a cluster, in the shapes that they take. */
#include "unit/core/world/query_world.h"

#include "core/query/query.h"

static const char *names_read; /* ganeti-cluster-info.txt */

static void check_spec(const json_t *spec)
{
    static const char *const keys[] = {"memory-size", "cpu-count", "disk-size",
                                       "disk-count",  "nic-count", "spindle-use"};

    g_assert_cmpuint(json_object_size(spec), ==, G_N_ELEMENTS(keys));
    for (guint i = 0; i < G_N_ELEMENTS(keys); i++)
        g_assert_true(json_is_integer(json_object_get(spec, keys[i])));
}

/* Between least and most in every part. */
static void check_order(const json_t *less, json_t *more)
{
    const char *key;
    json_t *value;

    json_object_foreach(more, key, value) {
        g_assert_cmpint(json_integer_value(json_object_get(less, key)), <=,
                        json_integer_value(value));
    }
}

/* Ganeti 3.0 refuses a policy with a key that it does not know, and one that lacks any. */
static void check_policy(const json_t *policy, enum face face)
{
    static const char *const words[] = {"drbd", "file", "sharedfile", "diskless"};
    guint first = face == FACE_GANETI ? 0 : 1;
    json_t *bounds = json_array_get(json_object_get(policy, "minmax"), 0);
    json_t *least = json_object_get(bounds, "min");
    json_t *most = json_object_get(bounds, "max");
    json_t *common = json_object_get(policy, "std");
    json_t *templates = json_object_get(policy, "disk-templates");

    g_assert_cmpuint(json_object_size(policy), ==, 5);
    g_assert_cmpuint(json_object_size(bounds), ==, 2);
    check_spec(least);
    check_spec(most);
    check_spec(common);
    check_order(least, common);
    check_order(common, most);
    g_assert_true(json_is_real(json_object_get(policy, "vcpu-ratio")));
    g_assert_true(json_is_real(json_object_get(policy, "spindle-ratio")));
    g_assert_cmpuint(json_array_size(templates), ==, G_N_ELEMENTS(words) - first);
    for (guint i = first; i < G_N_ELEMENTS(words); i++)
        g_assert_cmpstr(json_string_value(json_array_get(templates, i - first)), ==, words[i]);
}

static void check_policies(enum face face)
{
    struct queue_world *w = query_world_new();
    fake_set_face(w->world, face);
    g_autoptr(GError) error = NULL;
    json_autoptr info = queue_call(w, "QueryClusterInfo", json_make("[]"), &error);
    json_autoptr groups = NULL;
    json_t *policy = json_object_get(info, "ipolicy");

    g_assert_no_error(error);
    check_policy(policy, face);
    groups = queue_call(w, "QueryGroups", json_make("[[], [s], b]", "ipolicy", 0), &error);
    g_assert_no_error(error);
    g_assert_true(json_equal(json_array_get(json_array_get(groups, 0), 0), policy));
    queue_world_free(w);
}

static void test_policy(void)
{
    check_policies(FACE_OWN);
    check_policies(FACE_GANETI);
}

/* All are mirrored. Filters see what is shown. */
static void test_template(void)
{
    struct queue_world *w = query_world_new();
    query_check(w, "instance", "disk_template", "[\"=\", \"name\", \"web1\"]", "0:\"mirror\"\n");
    query_check(w, "instance", "name", "[\"=\", \"disk_template\", \"drbd\"]", "");
    fake_set_face(w->world, FACE_GANETI);
    query_check(w, "instance", "disk_template", "[\"=\", \"name\", \"web1\"]", "0:\"drbd\"\n");
    query_check(w, "instance", "name disk_template", "[\"=\", \"disk_template\", \"drbd\"]",
                "0:\"web1\" 0:\"drbd\"\n0:\"web10\" 0:\"drbd\"\n0:\"web2\" 0:\"drbd\"\n");
    query_check(w, "instance", "name", "[\"=~\", \"disk_template\", \"^d.*d$\"]",
                "0:\"web1\"\n0:\"web10\"\n0:\"web2\"\n");
    query_check(w, "instance", "name", "[\"=\", \"disk_template\", \"mirror\"]", "");
    g_autoptr(GError) error = NULL;
    json_autoptr old =
        queue_call(w, "QueryInstances",
                   json_make("[[s], [s, s], b]", "web1", "name", "disk_template", 0), &error);
    g_assert_no_error(error);
    json_autoptr expected = json_make("[[s, s]]", "web1", "drbd");
    g_assert_true(json_equal(old, expected));
    queue_world_free(w);
}

static void check_alike(struct queue_world *w, enum face face, bool plain)
{
    const char *call = plain ? "QueryInstances" : "Query";
    fake_set_face(w->world, face);
    g_autoptr(GError) error = NULL;
    json_t *names = json_make("[s, s, s, s, s, s]", "custom_beparams", "name", "beparams",
                              "hvparams", "beparams", "custom_hvparams");
    json_autoptr answer = queue_call(w, call,
                                     plain ? json_make("[[s, s], o, b]", "web1", "web2", names, 0)
                                           : json_make("[s, o, n]", "instance", names),
                                     &error);
    g_assert_no_error(error);
    const json_t *rows = plain ? answer : json_object_get(answer, "data");
    g_assert_cmpuint(json_array_size(rows), >=, 2);
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row) {
        const json_t *cells[6];
        for (size_t n = 0; n < G_N_ELEMENTS(cells); n++)
            cells[n] = plain ? json_array_get(row, n) : json_array_get(json_array_get(row, n), 1);
        g_assert_true(json_is_string(cells[1]));
        g_assert_true(json_equal(cells[0], cells[2]) && json_equal(cells[2], cells[4]));
        g_assert_true(json_equal(cells[3], cells[5]));
        g_assert_true(json_is_integer(json_object_get(cells[4], "maxmem")));
        g_assert_true(json_is_string(json_object_get(cells[5], "kernel_path")));
    }
}

/* Those that show the same, in whatever order and however often they are asked for; each row has
 * its own. */
static void test_alike(void)
{
    struct queue_world *w = query_world_new();
    check_alike(w, FACE_OWN, false);
    check_alike(w, FACE_GANETI, false);
    check_alike(w, FACE_GANETI, true);
    queue_world_free(w);
}

static json_t *templates_of(struct queue_world *w, enum face face)
{
    fake_set_face(w->world, face);
    g_autoptr(GError) error = NULL;
    json_autoptr info = queue_call(w, "QueryClusterInfo", json_make("[]"), &error);
    g_assert_no_error(error);
    return json_incref(json_object_get(info, "enabled_disk_templates"));
}

static void test_enabled_templates(void)
{
    struct queue_world *w = query_world_new();
    json_autoptr own = templates_of(w, FACE_OWN);
    json_autoptr own_wanted = json_make("[s, s, s, s]", "diskless", "mirror", "file", "sharedfile");
    json_autoptr theirs = templates_of(w, FACE_GANETI);
    json_autoptr wanted = json_make("[s, s, s, s]", "diskless", "drbd", "file", "sharedfile");
    g_assert_true(json_equal(own, own_wanted));
    g_assert_true(json_equal(theirs, wanted));
    queue_world_free(w);
}

static char *input_of(struct queue_world *w, enum face face, json_t *id, const char *member)
{
    fake_set_face(w->world, face);
    g_autoptr(GError) error = NULL;
    json_autoptr rows = queue_call(w, "QueryJobs", json_make("[[O], [s]]", id, "ops"), &error);
    g_assert_no_error(error);
    json_t *ops = json_array_get(json_array_get(rows, 0), 0);
    return g_strdup(json_string_value(json_object_get(json_array_get(ops, 0), member)));
}

/* Submitted in their words it is on record in ours, and each sees it in its own. */
static void test_jobs(void)
{
    struct queue_world *w = query_world_new();
    fake_set_face(w->world, FACE_GANETI);
    g_autoptr(GError) error = NULL;
    json_autoptr id = queue_call(w, "SubmitJob",
                                 json_make("[[{ss, ss, ss}]]", "OP_ID", "OP_INSTANCE_CREATE",
                                           "instance_name", "web9", "disk_template", "drbd"),
                                 &error);
    g_assert_no_error(error);
    fake_settle(w->world);
    g_autofree char *ours = input_of(w, FACE_OWN, id, "disk_template");
    g_autofree char *theirs = input_of(w, FACE_GANETI, id, "disk_template");
    g_assert_cmpstr(ours, ==, "mirror");
    g_assert_cmpstr(theirs, ==, "drbd");
    queue_refuse(w, "SubmitJob",
                 json_make("[[{ss, ss, ss}]]", "OP_ID", "OP_INSTANCE_CREATE", "instance_name",
                           "web9", "disk_template", "plain"),
                 FETTLE_ERROR_WRONG_INPUT,
                 "ops[0].disk_template: must be one of diskless, drbd, file, sharedfile");
    queue_submit(w, json_make("{sb}", "dry_run", true));
    query_check(w, "job", "summary", "[\"=\", \"id\", 2]", "0:[\"TEST_DELAY(0)\"]\n");
    queue_world_free(w);
}

static void check_rule(struct queue_world *w, enum face face, const char *expected)
{
    fake_set_face(w->world, face);
    g_autoptr(GError) error = NULL;
    json_autoptr rows = queue_call(w, "QueryFilters", json_make("[[], [s]]", "predicates"), &error);
    g_assert_no_error(error);
    json_autoptr wanted =
        json_make("[[[[s, [s, s, s]]]]]", "opcode", "=", "disk_template", expected);
    g_assert_true(json_equal(rows, wanted));
}

/* Rules compare with what is on record. */
static void test_rules(void)
{
    struct queue_world *w = query_world_new();
    fake_set_face(w->world, FACE_GANETI);
    g_autoptr(GError) error = NULL;
    json_autoptr uuid = queue_call(w, "ReplaceFilter",
                                   json_make("[n, i, [[s, [s, s, s]]], s, []]", 5, "opcode", "=",
                                             "disk_template", "drbd", "PAUSE"),
                                   &error);
    g_assert_no_error(error);
    fake_settle(w->world);
    check_rule(w, FACE_OWN, "mirror");
    check_rule(w, FACE_GANETI, "drbd");
    queue_world_free(w);
}

static void test_placement(void)
{
    struct queue_world *w = query_world_new();

    query_check(w, "group", "alloc_policy custom_ipolicy ndp/spindle_count ndp/cpu_speed", NULL,
                "0:\"preferred\" 0:{} 0:1 0:1.0\n");
    query_check(w, "node", "cnos ndp/spindle_count ndp/cpu_speed sptotal spfree",
                "[\"=\", \"name\", \"node1\"]", "0:0 0:1 0:1.0 0:0 0:0\n");
    queue_world_free(w);
}

static void test_hypervisor(void)
{
    struct queue_world *w = query_world_new();
    json_autoptr cluster = json_deep_copy(store_get(w->store, "cluster", CLUSTER));

    json_object_set_new(cluster, "migration_downtime_ms", json_integer(450));
    store_put(w->store, "cluster", CLUSTER, json_steal(&cluster));
    fake_settle(w->world);
    query_check(w, "instance", "hv/disk_type hv/nic_type hv/serial_console hv/migration_downtime",
                "[\"=\", \"name\", \"web1\"]",
                "0:\"paravirtual\" 0:\"paravirtual\" 0:true 0:450\n");
    queue_world_free(w);
}

/* Clients end at the first member that is missing. */
static void test_cluster_info(void)
{
    struct queue_world *w = query_world_new();
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;
    json_autoptr info = queue_call(w, "QueryClusterInfo", json_make("[]"), &error);
    g_assert_no_error(error);
    g_assert_true(g_file_get_contents(names_read, &text, NULL, NULL));
    g_auto(GStrv) names = g_strsplit(text, "\n", -1);
    for (guint i = 0; names[i]; i++)
        if (*names[i] && *names[i] != '#' && !json_object_get(info, names[i]))
            g_error("QueryClusterInfo has no member %s", names[i]);
    json_autoptr expected =
        json_make("{s{sI, sI, sI, sI, sb, sb, sI}}", "default", "memory", (json_int_t)128, "maxmem",
                  (json_int_t)128, "minmem", (json_int_t)128, "vcpus", (json_int_t)1,
                  "auto_balance", 1, "always_failover", 0, "spindle_use", (json_int_t)1);
    g_assert_true(json_equal(json_object_get(info, "beparams"), expected));
    json_t *kvm = json_object_get(json_object_get(info, "hvparams"), "kvm");
    g_assert_true(json_is_true(json_object_get(kvm, "acpi")));
    g_assert_cmpstr(json_string_value(json_object_get(kvm, "kernel_path")), ==, "");
    g_assert_true(json_equal(json_object_get(info, "max_tracked_jobs"),
                             json_object_get(info, "max_running_jobs")));
    g_assert_null(json_object_get(info, "master_node"));
    g_assert_true(json_is_integer(json_object_get(info, "jobs_newest")));
    queue_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_assert_cmpint(argc, ==, 2);
    names_read = argv[1];
    g_test_add_func("/query/cluster-info-has-what-ganetis-clients-read#LUX-03", test_cluster_info);
    g_test_add_func("/query/limits-as-ganetis-clients-take-them#LUX-03", test_policy);
    g_test_add_func("/query/template-in-the-words-of-the-face#LUX-03", test_template);
    g_test_add_func("/query/fields-that-show-the-same", test_alike);
    g_test_add_func("/query/enabled-templates-in-the-words-of-the-face#LUX-03",
                    test_enabled_templates);
    g_test_add_func("/query/jobs-in-the-words-of-the-face#LUX-03", test_jobs);
    g_test_add_func("/query/rules-in-the-words-of-the-face#LUX-03", test_rules);
    g_test_add_func("/query/what-ganetis-clients-place-by#LUX-03", test_placement);
    g_test_add_func("/query/parameters-of-the-hypervisor#LUX-03", test_hypervisor);
    return g_test_run();
}
