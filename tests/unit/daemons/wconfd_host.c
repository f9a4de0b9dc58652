/* See wconfd_host.h. */
#include "wconfd_host.h"

#include <glib/gstdio.h>

char *host_path(const struct host *host, const char *name)
{
    return g_build_filename(host->root, name, NULL);
}

void host_write(const struct host *host, const char *name, const char *text)
{
    g_autofree char *path = host_path(host, name);
    g_autofree char *folder = g_path_get_dirname(path);
    g_assert_cmpint(g_mkdir_with_parents(folder, 0755), ==, 0);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

void host_init(struct host *host, bool joined)
{
    *host = (struct host){.root = g_dir_make_tmp("wconfd-XXXXXX", NULL)};
    g_assert_nonnull(host->root);
    if (joined)
        host_write(host, "etc/node.json",
                   "{\"node_uuid\":\"" NODE "\",\"name\":\"node1\",\"cluster_uuid\":\"" CLUSTER
                   "\",\"address\":\"127.0.0.1\"}");
}

void host_clear(struct host *host)
{
    g_autofree char *command = g_strdup_printf("rm -rf '%s'", host->root);
    g_assert_null(host->daemon);
    g_assert_true(g_spawn_command_line_sync(command, NULL, NULL, NULL, NULL));
    g_free(host->root);
}

void host_bootstrap(const struct host *host)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GSubprocess) child =
        g_subprocess_new(G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDERR_SILENCE, &error,
                         g_getenv("FETTLE_WCONFD"), "--root", host->root, "--bootstrap", NULL);
    g_assert_no_error(error);
    g_subprocess_communicate_utf8(child, INIT, NULL, NULL, NULL, &error);
    g_assert_no_error(error);
    g_assert_true(g_subprocess_get_successful(child));
}

bool daemon_is_ready(const struct host *host)
{
    g_autofree char *path = host_path(host, "run/wconfd.ready");
    return g_file_test(path, G_FILE_TEST_EXISTS);
}

void daemon_start(struct host *host)
{
    g_autoptr(GError) error = NULL;
    g_assert_false(daemon_is_ready(host));
    host->daemon = g_subprocess_new(G_SUBPROCESS_FLAGS_STDERR_SILENCE, &error,
                                    g_getenv("FETTLE_WCONFD"), "--root", host->root, NULL);
    g_assert_no_error(error);
    while (!daemon_is_ready(host) && g_subprocess_get_identifier(host->daemon))
        g_usleep(2000);
    g_assert_true(daemon_is_ready(host));
}

int daemon_end(struct host *host, int signal_number)
{
    g_subprocess_send_signal(host->daemon, signal_number);
    g_assert_true(g_subprocess_wait(host->daemon, NULL, NULL));
    int code = g_subprocess_get_if_exited(host->daemon) ? g_subprocess_get_exit_status(host->daemon)
                                                        : g_subprocess_get_term_sig(host->daemon);
    g_clear_object(&host->daemon);
    return code;
}
