/* Whose a front end of the API is, and what is opened to that user and to nobody else:
 * api_place.c. */
#include "world.h"

#include "io/api_place.h"
#include "proto/rpc.h"

#include <glib/gstdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define SOMEBODY 4321u

static void assert_is(const char *path, gid_t gid, mode_t mode)
{
    struct stat about;
    g_assert_cmpint(g_stat(path, &about), ==, 0);
    g_assert_cmpuint(about.st_uid, ==, 0);
    g_assert_cmpuint(about.st_gid, ==, gid);
    g_assert_cmpuint(about.st_mode & 0777, ==, mode);
}

/* The node daemon does it whenever it starts. What programs of volume services pass through is
 * theirs, too, whether there is a front end or not. */
static void test_admit(void)
{
    if (geteuid() != 0) {
        g_test_skip("only root gives anything to anybody");
        return;
    }
    struct node_paths *paths = world_new(NODE_A);
    const struct api_owner user = {SOMEBODY, SOMEBODY};
    g_autofree char *socket = node_paths_socket(paths, ROLE_NODED);
    g_autofree char *transfers = g_build_filename(paths->run, "transfers", NULL);
    g_autofree char *var = g_build_filename(paths->var, "api", NULL);
    g_autoptr(GError) error = NULL;
    g_assert_true(g_file_set_contents_full(socket, "", 0, G_FILE_SET_CONTENTS_NONE, 0600, &error));
    g_assert_cmpint(g_mkdir(transfers, 0700), ==, 0);
    g_assert_true(api_place_admit(paths, &error));
    assert_is(socket, 0, 0600);
    assert_is(transfers, 0, 0711);

    g_assert_true(api_place_make(paths, &user, &error));
    g_assert_true(api_place_admit(paths, &error));
    assert_is(socket, SOMEBODY, 0660);
    assert_is(transfers, SOMEBODY, 0711);
    g_assert_cmpint(g_rmdir(transfers), ==, 0);
    g_assert_true(api_place_admit(paths, &error)); /* makes it */
    assert_is(transfers, SOMEBODY, 0711);

    g_assert_cmpint(g_rmdir(var), ==, 0);
    g_assert_true(api_place_admit(paths, &error));
    assert_is(socket, 0, 0600);
    assert_is(transfers, 0, 0711);
    world_remove(paths);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/api place/admit", test_admit);
    return g_test_run();
}
