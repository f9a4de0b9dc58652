/* etc/apid.conf: what stands there is read, and what is wrong is named with its line. */
#include "io/api_conf.h"

#include <glib/gstdio.h>

#include "proto/records.h"

static char *root;
static struct node_paths *paths;

static void set_up(const char *text)
{
    root = g_dir_make_tmp("fettle-conf-XXXXXX", NULL);
    paths = node_paths_new(root, NULL);
    g_mkdir_with_parents(paths->etc, 0700);
    g_autofree char *path = api_conf_path(paths);
    if (text)
        g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

static void tear_down(void)
{
    g_autofree char *path = api_conf_path(paths);
    g_remove(path);
    g_rmdir(paths->etc);
    g_rmdir(root);
    node_paths_free(paths);
    g_free(root);
}

static void test_written_is_read(void)
{
    set_up(NULL);
    record_autoptr(api_conf) conf = api_conf_new();
    conf->port = 9000;
    text_set(&conf->public_url, "https://api.example.org:9000");
    text_set(&conf->region, "north");
    g_assert_true(api_conf_write(paths, conf, NULL));
    record_autoptr(api_conf) read = api_conf_read(paths, NULL);
    json_autoptr expected = api_conf_to_json(conf);
    json_autoptr got = api_conf_to_json(read);
    g_assert_true(json_equal(expected, got));
    tear_down();
}

static void test_defaults(void)
{
    set_up("\n  # nothing but this \n port=80\n");
    record_autoptr(api_conf) read = api_conf_read(paths, NULL);
    g_assert_cmpuint(read->port, ==, 80);
    g_assert_cmpstr(read->listen, ==, "0.0.0.0");
    g_assert_cmpstr(read->region, ==, "RegionOne");
    tear_down();
}

static void test_refused(void)
{
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"port = 1\nlisten 1\n", ", line 2: \"listen 1\" is no `name = value`"},
        {"#\n\nprot = 1\n", ", line 3: there is no setting \"prot\""},
        {"port = 1\nport = 2\n", ", line 2: port stands in an earlier line already"},
        {"port = 70000\n", ", line 1: port: must be at most 65535"},
        {"port = http\n", ", line 1: port: "},
        {"key = /a\n", ": key: there is no certificate"},
        {"certificate = a.pem\n", ": certificate: a.pem must begin with /"},
        {"public_url = api.example.org\n",
         ": public_url: \"api.example.org\" begins with no http:// or https://"},
        {"region = \xff\n", ": is no UTF-8"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_autoptr(GError) error = NULL;
        set_up(wrong[i].text);
        g_autofree char *path = api_conf_path(paths);
        g_autofree char *says = g_strconcat(path, wrong[i].says, NULL);
        g_assert_null(api_conf_read(paths, &error));
        g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_INPUT);
        if (!g_str_has_prefix(error->message, says))
            g_error("%s", error->message);
        tear_down();
    }
}

static void test_none(void)
{
    g_autoptr(GError) error = NULL;
    set_up(NULL);
    g_assert_null(api_conf_read(paths, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_UNKNOWN_ENTITY);
    g_assert_true(g_str_has_suffix(error->message, "make one with: fettle api init"));
    tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/api_conf/written-is-read", test_written_is_read);
    g_test_add_func("/api_conf/defaults", test_defaults);
    g_test_add_func("/api_conf/refused", test_refused);
    g_test_add_func("/api_conf/none", test_none);
    return g_test_run();
}
