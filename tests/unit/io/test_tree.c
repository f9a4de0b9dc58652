/* Trees that another user may have had in hand: tree.c. */
#include "world.h"

#include "io/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define USER 64100
#define LEVELS 3000 /* more than there are descriptors */
#define RACES 30
#define PAIRS 50

struct fixture {
    struct node_paths *paths;
    char *tree;
    char *precious; /* a folder with a file in it, elsewhere */
};

static char *below(const char *folder, const char *name)
{
    return g_build_filename(folder, name, NULL);
}

static void put_file(const char *folder, const char *name)
{
    g_autofree char *path = below(folder, name);
    g_assert_true(g_file_set_contents(path, "x", 1, NULL));
}

static void put_folder(const char *folder, const char *name)
{
    g_autofree char *path = below(folder, name);
    g_assert_cmpint(mkdir(path, 0700), ==, 0);
}

static void put_link(const char *to, const char *folder, const char *name)
{
    g_autofree char *path = below(folder, name);
    g_assert_cmpint(symlink(to, path), ==, 0);
}

static bool is_there(const char *folder, const char *name)
{
    g_autofree char *path = below(folder, name);
    struct stat status;
    return lstat(path, &status) == 0;
}

static void set_up(struct fixture *fixture, gconstpointer unused)
{
    fixture->paths = world_new(NODE_A);
    fixture->tree = below(fixture->paths->run, "tree");
    fixture->precious = below(fixture->paths->run, "precious");
    put_folder(fixture->paths->run, "tree");
    put_folder(fixture->paths->run, "precious");
    put_file(fixture->precious, "file");
}

static void tear_down(struct fixture *fixture, gconstpointer unused)
{
    g_assert_true(is_there(fixture->precious, "file"));
    world_remove(fixture->paths);
    g_free(fixture->tree);
    g_free(fixture->precious);
}

static void removed(const struct fixture *fixture)
{
    g_autoptr(GError) error = NULL;
    tree_remove(fixture->tree, &error);
    g_assert_no_error(error);
    g_assert_false(is_there(fixture->paths->run, "tree"));
}

static void give(const char *folder, const char *name)
{
    g_autofree char *path = below(folder, name);
    g_assert_cmpint(lchown(path, USER, USER), ==, 0);
}

/* --- what goes --- */

static void test_kinds(struct fixture *fixture, gconstpointer unused)
{
    g_autofree char *inner = below(fixture->tree, "a");
    g_autofree char *pipe = below(inner, "pipe");
    put_folder(fixture->tree, "a");
    put_folder(inner, "b");
    put_file(inner, "file");
    put_folder(fixture->tree, ".moved-0"); /* names that it would give itself */
    put_file(fixture->tree, ".moved-1");
    put_link(fixture->precious, inner, "link");
    put_link("/nowhere", fixture->tree, "link");
    g_assert_cmpint(mkfifo(pipe, 0600), ==, 0);
    removed(fixture);
    removed(fixture); /* there is none */
    put_link(fixture->precious, fixture->paths->run, "tree");
    removed(fixture);
    put_file(fixture->paths->run, "tree");
    removed(fixture);
}

static void test_deep(struct fixture *fixture, gconstpointer unused)
{
    int at = open(fixture->tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (guint i = 0; i < LEVELS; i++) {
        g_assert_cmpint(mkdirat(at, "deeper", 0700), ==, 0);
        g_assert_cmpint(mkdirat(at, "beside", 0700), ==, 0);
        int next = openat(at, "deeper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        g_assert_cmpint(next, >=, 0);
        close(at);
        at = next;
    }
    close(at);
    removed(fixture);
}

static void test_mount(struct fixture *fixture, gconstpointer unused)
{
    g_autofree char *mounted = below(fixture->tree, "mounted");
    g_autoptr(GError) error = NULL;
    if (!world_own_mounts()) {
        g_test_skip("no mount namespace can be made here");
        return;
    }
    put_folder(fixture->tree, "mounted");
    g_assert_cmpint(mount("none", mounted, "tmpfs", 0, NULL), ==, 0);
    put_file(mounted, "file");
    g_assert_false(tree_remove(fixture->tree, &error));
    assert_error(&error, STORAGE, "/tree: Invalid cross-device link");
    g_assert_true(is_there(mounted, "file"));
    g_assert_cmpint(umount(mounted), ==, 0);
    removed(fixture);
}

/* --- while its user changes it --- */

static void exchange_pair(const struct fixture *fixture, guint i)
{
    g_autofree char *link = g_strdup_printf("%s/link%u", fixture->tree, i);
    g_autofree char *trap = g_strdup_printf("%s/trap%u", fixture->tree, i);
    if (renameat2(AT_FDCWD, link, AT_FDCWD, trap, RENAME_EXCHANGE) == 0)
        return;
    (void)!symlink(fixture->precious, link);
    mkdir(trap, 0700);
}

_Noreturn static void exchange_for_ever(const struct fixture *fixture)
{
    if (setgid(USER) != 0 || setuid(USER) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        _exit(1);
    for (guint i = 0;; i = (i + 1) % PAIRS)
        exchange_pair(fixture, i);
}

static void await_pairs(const struct fixture *fixture)
{
    g_autofree char *last = g_strdup_printf("trap%u", PAIRS - 1);
    while (!is_there(fixture->tree, last))
        g_usleep(100);
}

/* Names that are a folder and a link out of the tree by turns. */
static void test_race(struct fixture *fixture, gconstpointer unused)
{
    if (geteuid() != 0) {
        g_test_skip("only root can be another user");
        return;
    }
    g_assert_cmpint(chmod(fixture->paths->root, 0711), ==, 0);
    g_assert_cmpint(chmod(fixture->paths->run, 0711), ==, 0);
    pid_t user = fork();
    if (user == 0)
        exchange_for_ever(fixture);
    for (guint i = 0; i < RACES; i++) {
        mkdir(fixture->tree, 0700);
        give(fixture->paths->run, "tree");
        await_pairs(fixture);
        removed(fixture);
        g_assert_true(is_there(fixture->precious, "file"));
    }
    kill(user, SIGKILL);
    g_assert_cmpint(waitpid(user, NULL, 0), ==, user);
}

/* --- taking --- */

static const char *const keep[] = {"state", "pipe", "link", "folder", NULL};

static void assert_ours(const struct fixture *fixture)
{
    struct stat status;
    g_assert_cmpint(lstat(fixture->tree, &status), ==, 0);
    g_assert_cmpuint(status.st_uid, ==, geteuid());
    g_assert_cmpuint(status.st_mode & 07777, ==, 0711);
}

static void take(const struct fixture *fixture)
{
    g_autoptr(GError) error = NULL;
    tree_take(fixture->tree, 0711, keep, &error);
    g_assert_no_error(error);
    assert_ours(fixture);
}

static void test_take(struct fixture *fixture, gconstpointer unused)
{
    g_autofree char *pipe = below(fixture->tree, "pipe");
    put_file(fixture->tree, "other");
    put_folder(fixture->tree, "folder");
    take(fixture); /* it was ours */
    g_assert_true(is_there(fixture->tree, "other") && is_there(fixture->tree, "folder"));
    removed(fixture);
    take(fixture); /* there was none */
    if (geteuid() != 0)
        return;
    put_file(fixture->tree, "other");
    put_file(fixture->tree, "state");
    put_folder(fixture->tree, "folder");
    put_link(fixture->precious, fixture->tree, "link");
    g_assert_cmpint(mkfifo(pipe, 0600), ==, 0);
    give(fixture->paths->run, "tree");
    take(fixture);
    g_assert_true(is_there(fixture->tree, "state"));
    for (guint i = 1; keep[i] != NULL; i++)
        g_assert_false(is_there(fixture->tree, keep[i])); /* no plain files */
    g_assert_false(is_there(fixture->tree, "other"));
}

static void test_take_bad(struct fixture *fixture, gconstpointer unused)
{
    g_autoptr(GError) error = NULL;
    removed(fixture);
    put_link(fixture->precious, fixture->paths->run, "tree");
    g_assert_false(tree_take(fixture->tree, 0711, NULL, &error));
    assert_error(&error, STORAGE, "cannot take the folder");
    removed(fixture);
    put_file(fixture->paths->run, "tree");
    g_assert_false(tree_take(fixture->tree, 0711, NULL, &error));
    assert_error(&error, STORAGE, "/tree: Not a directory");
    g_assert_false(tree_take("/nonexistent/tree", 0711, NULL, &error));
    assert_error(&error, STORAGE,
                 "cannot make folder /nonexistent/tree: No such file or directory");
}

#define ADD(path, fn) g_test_add(path, struct fixture, NULL, set_up, fn, tear_down)

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ADD("/tree/kinds", test_kinds);
    ADD("/tree/deep", test_deep);
    ADD("/tree/mount", test_mount);
    ADD("/tree/race#SAF-104", test_race);
    ADD("/tree/take#SAF-104", test_take);
    ADD("/tree/take-bad", test_take_bad);
    return g_test_run();
}
