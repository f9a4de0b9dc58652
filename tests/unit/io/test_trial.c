/* Whether a folder's disk works: trial.c. */
#include "world.h"

#include "base/limits.h"
#include "base/task.h"
#include "io/trial.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#define DISK_BYTES (4 * HEALTH_ROOM_BYTES)

static void take_room(const char *path, size_t bytes)
{
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    g_assert_cmpint(posix_fallocate(fd, 0, (off_t)bytes), ==, 0);
    close(fd);
}

/* A block or two are free in most that is full: files of others end or are written anew. */
static void full(void *unused)
{
    g_autofree char *folder = g_dir_make_tmp("fettle-trial-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "rest", NULL);
    g_autofree char *size = g_strdup_printf("size=%zu", DISK_BYTES);
    g_autoptr(GError) error = NULL;
    g_assert_cmpint(mount("tmpfs", folder, "tmpfs", 0, size), ==, 0);
    g_assert_true(trial_write(folder, &error));
    g_assert_no_error(error);
    take_room(path, DISK_BYTES - HEALTH_ROOM_BYTES);
    g_assert_true(trial_write(folder, &error));
    g_assert_no_error(error);
    take_room(path, DISK_BYTES - HEALTH_ROOM_BYTES + 4096);
    g_assert_false(trial_write(folder, &error));
    assert_error(&error, NO_RESOURCES, ": No space left on device");
    g_assert_cmpint(g_unlink(path), ==, 0);
    g_assert_true(trial_write(folder, &error)); /* and nothing was left of the others */
    g_assert_no_error(error);
    umount2(folder, MNT_DETACH);
    g_rmdir(folder);
}

static void test_full(void)
{
    if (!world_own_mounts()) {
        g_test_skip("no mount namespace can be made here");
        return;
    }
    world_in_task(full);
}

static void gone(void *unused)
{
    g_autoptr(GError) error = NULL;
    g_assert_false(trial_write("/nowhere/at/all", &error));
    assert_error(&error, STORAGE, "/nowhere/at/all: No such file or directory");
}

static void test_gone(void)
{
    world_in_task(gone);
}

/* A daemon without what a trial takes has not tried the disk. */
static void without_descriptors(void *unused)
{
    g_autofree char *folder = g_dir_make_tmp("fettle-trial-XXXXXX", NULL);
    g_autoptr(GError) error = NULL;
    int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct rlimit before, none;
    close(next);
    g_assert_cmpint(getrlimit(RLIMIT_NOFILE, &before), ==, 0);
    none = (struct rlimit){(rlim_t)next, before.rlim_max};
    g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &none), ==, 0);
    bool well = trial_write(folder, &error);
    g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &before), ==, 0);
    g_assert_false(well);
    assert_error(&error, TEMPORARY, ": Too many open files");
    g_assert_true(trial_write(folder, &error));
    g_assert_no_error(error);
    g_rmdir(folder);
}

static void test_without_descriptors(void)
{
    world_in_task(without_descriptors);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/trial/full-but-for-a-block#SAF-92", test_full);
    g_test_add_func("/trial/no-folder", test_gone);
    g_test_add_func("/trial/no-descriptors#SAF-92", test_without_descriptors);
    return g_test_run();
}
