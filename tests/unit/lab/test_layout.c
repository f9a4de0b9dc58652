/*
 * Names, paths and the description file of a lab; needs no root.
 */
#include "base/error.h"
#include "lab/layout.h"
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

static const char *const COMMAND[] = {"daemon", "--flag", NULL};

static void test_names(void)
{
    layout_autoptr layout = layout_new("/var/tmp/x", 2);
    layout_autoptr other = layout_new("/var/tmp/y", 2);
    g_autofree char *root = layout_root(layout, 2);
    g_autofree char *netns = layout_netns(layout, 2);
    g_autofree char *address = layout_address(layout, 2);
    g_assert_cmpstr(root, ==, "/var/tmp/x/node2");
    g_assert_cmpstr(address, ==, "10.99.0.2");
    g_assert_true(g_str_has_prefix(netns, layout->prefix));
    g_assert_cmpstr(layout->prefix, !=, other->prefix);
    g_assert_cmpuint(layout_node_number("node2"), ==, 2);
    static const char *const wrong[] = {"node", "node0", "node02", "node33", "node2x", "n2", ""};
    for (guint i = 0; i < G_N_ELEMENTS(wrong); i++)
        g_assert_cmpuint(layout_node_number(wrong[i]), ==, 0);
}

static void test_resolve(void)
{
    g_autofree char *folder = g_dir_make_tmp("fl-XXXXXX", NULL);
    g_autofree char *way = g_build_filename(folder, "way", NULL);
    g_autofree char *through = g_build_filename(way, "lab", NULL);
    g_autofree char *straight = g_build_filename(folder, "lab", NULL);
    g_assert_cmpint(symlink(folder, way), ==, 0);
    g_autofree char *one = layout_resolve(through, NULL);
    g_autofree char *two = layout_resolve(straight, NULL);
    g_assert_cmpstr(one, ==, two); /* two names of one folder are one lab */
    g_unlink(way);
    g_rmdir(folder);
}

static struct layout *saved(const char *dir)
{
    struct layout *layout = layout_new(dir, 2);
    layout->root_mib = 32;
    layout->disks_mib = 64;
    layout->made_dir = true;
    layout_add_daemon(layout, "noded", COMMAND, false);
    layout_add_daemon(layout, "wconfd", COMMAND, true);
    g_assert_true(layout_save(layout, NULL));
    return layout;
}

static void test_description(void)
{
    g_autofree char *dir = g_dir_make_tmp("fl-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "lab.json", NULL);
    g_autofree char *lock = g_build_filename(dir, "lab.lock", NULL);
    g_autoptr(GError) error = NULL;
    g_assert_null(layout_load(dir, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_UNKNOWN_ENTITY);
    g_clear_error(&error);

    layout_autoptr written = saved(dir);
    g_assert_false(layout_save(written, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_ALREADY_EXISTS);
    g_clear_error(&error);
    layout_autoptr read = layout_load(dir, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(read->prefix, ==, written->prefix);
    g_assert_cmpuint(read->nodes, ==, 2);
    g_assert_cmpuint(read->disks_mib, ==, 64);
    g_assert_true(read->made_dir);
    g_assert_cmpstr(g_ptr_array_index(read->node_uuids, 1), ==,
                    g_ptr_array_index(written->node_uuids, 1));
    const struct layout_daemon *daemon = g_ptr_array_index(read->daemons, 1);
    g_assert_cmpstr(daemon->command[1], ==, "--flag");
    g_assert_true(daemon->master_only);
    g_assert_cmpint(g_unlink(lock), ==, 0);
    g_assert_cmpint(g_unlink(path), ==, 0);
    g_rmdir(dir);
}

static void test_damaged(void)
{
    static const char *const texts[] = {
        "",
        "{\"version\":1",
        "[]",
        "{\"version\":2,\"nodes\":1,\"root_mib\":1,\"disks_mib\":1,\"made_dir\":true,"
        "\"identity\":true,\"cluster_uuid\":\"c\",\"node_uuids\":[\"u\"],\"daemons\":[]}",
        "{\"version\":1,\"nodes\":1000,\"root_mib\":1,\"disks_mib\":1,\"made_dir\":true,"
        "\"identity\":true,\"cluster_uuid\":\"c\",\"node_uuids\":[\"u\"],\"daemons\":[]}",
        "{\"version\":1,\"nodes\":2,\"root_mib\":1,\"disks_mib\":1,\"made_dir\":true,"
        "\"identity\":true,\"cluster_uuid\":\"c\",\"node_uuids\":[\"u\"],\"daemons\":[]}",
        "{\"version\":1,\"nodes\":1,\"root_mib\":1,\"disks_mib\":1,\"made_dir\":true,"
        "\"identity\":true,\"cluster_uuid\":\"c\",\"node_uuids\":[7],\"daemons\":[]}",
        "{\"version\":1,\"nodes\":1,\"root_mib\":1,\"disks_mib\":1,\"made_dir\":true,"
        "\"identity\":true,\"cluster_uuid\":\"c\",\"node_uuids\":[\"u\"],\"daemons\":[{}]}",
        "{\"version\":1,\"nodes\":1,\"root_mib\":1,\"disks_mib\":1,\"made_dir\":true,"
        "\"identity\":true,\"cluster_uuid\":\"c\",\"node_uuids\":[\"u\"],"
        "\"daemons\":[{\"name\":\"d\",\"command\":[],\"master_only\":false}]}",
    };
    g_autofree char *dir = g_dir_make_tmp("fl-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "lab.json", NULL);
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_true(g_file_set_contents(path, texts[i], -1, NULL));
        g_assert_null(layout_load(dir, &error));
        g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_CORRUPT);
        g_assert_nonnull(strstr(error->message, "lab.json is damaged; `fettle lab down --dir"));
    }
    g_unlink(path);
    g_rmdir(dir);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/lab/layout/names", test_names);
    g_test_add_func("/lab/layout/resolve", test_resolve);
    g_test_add_func("/lab/layout/description", test_description);
    g_test_add_func("/lab/layout/damaged", test_damaged);
    return g_test_run();
}
