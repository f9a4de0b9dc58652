/*
 * Users of guests (backend/guest_users.h), and what their processes are handed
 * (backend/unprivileged.h).
 */
#include "backend/guest_users.h"
#include "backend/unprivileged.h"
#include "io/process.h"
#include "world.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST 1234500000
#define COUNT 3

static struct guest_users *pool(guint64 qemu_uid)
{
    record_autoptr(node_config) config = node_config_new();
    config->guest_user_first = FIRST;
    config->guest_users = COUNT;
    config->qemu_uid = qemu_uid;
    return guest_users_new(config);
}

static struct process *process_of(guint32 uid)
{
    g_autoptr(GPtrArray) argv = g_ptr_array_new_with_free_func(g_free);
    unprivileged_words(argv, uid, NULL);
    g_ptr_array_add(argv, g_strdup("sleep"));
    g_ptr_array_add(argv, g_strdup("100"));
    g_ptr_array_add(argv, NULL);
    const struct process_options options = {.argv = (const char *const *)argv->pdata};
    struct process *process = process_spawn(&options, NULL);
    guint32 its = 0;
    while (!process_user(process, &its) || its != uid) /* setpriv is not there yet */
        loop_sleep(5);
    return process;
}

static void each_its_own(void *unused)
{
    struct guest_users *users = pool(0);
    guint32 taken[COUNT];
    guint used = 0;
    for (guint i = 0; i < COUNT; i++) {
        taken[i] = guest_users_take(users);
        g_assert_cmpuint(taken[i], >=, FIRST);
        g_assert_cmpuint(taken[i], <, FIRST + COUNT);
        for (guint before = 0; before < i; before++)
            g_assert_cmpuint(taken[i], !=, taken[before]);
    }
    g_assert_cmpuint(guest_users_count(users, &used), ==, COUNT);
    g_assert_cmpuint(used, ==, COUNT);
    /* A full pool stops nothing that is there. */
    g_assert_cmpuint(guest_users_take(users), ==, FIRST + COUNT);
    guest_users_give_back(users, FIRST + COUNT);
    guest_users_give_back(users, 0);
    g_assert_cmpuint(guest_users_take(users), ==, FIRST + COUNT);
    guest_users_give_back(users, taken[1]);
    g_assert_cmpuint(guest_users_take(users), ==, taken[1]);
    guest_users_unref(users);
}

static void assert_group(const char *device, int mode, const char *expected)
{
    g_autoptr(GPtrArray) argv = g_ptr_array_new_with_free_func(g_free);
    g_assert_cmpint(chmod(device, (mode_t)mode), ==, 0);
    unprivileged_words(argv, FIRST, device);
    g_assert_cmpuint(argv->len, ==, 5);
    g_assert_cmpstr(argv->pdata[3], ==, expected);
}

/* Of a device that is open to a group a guest is a member, and of no other. */
static void group_of_a_device(void *unused)
{
    g_autofree char *device = g_build_filename(world_folder(), "kvm", NULL);
    g_autoptr(GPtrArray) none = g_ptr_array_new();
    g_assert_true(g_file_set_contents(device, "", 0, NULL));
    g_assert_cmpint(chown(device, 0, 104), ==, 0);
    assert_group(device, 0660, "--groups=104");
    assert_group(device, 0600, "--clear-groups");
    assert_group(device, 0640, "--clear-groups");
    assert_group(device, 0666, "--clear-groups");
    unprivileged_words(none, 0, device);
    g_assert_cmpuint(none->len, ==, 0);
}

/* A process that lives on has its user to itself, whether it is known here or not. */
static void while_it_lives(void *unused)
{
    struct guest_users *users = pool(0);
    guint32 uid = guest_users_take(users);
    struct process *process = process_of(uid);
    guest_users_give_back(users, uid);
    for (guint i = 1; i < COUNT; i++)
        g_assert_cmpuint(guest_users_take(users), !=, uid);
    g_assert_cmpuint(guest_users_take(users), ==, FIRST + COUNT);
    guest_users_unref(users);

    users =
        pool(64100); /* of another node daemon, with a person's word for the one that is shared */
    guint used = 0;
    guest_users_count(users, &used);
    g_assert_cmpuint(used, ==, 1);
    for (guint i = 1; i < COUNT; i++)
        g_assert_cmpuint(guest_users_take(users), !=, uid);
    g_assert_cmpuint(guest_users_take(users), ==, 64100);
    g_assert_cmpuint(guest_users_shared(users), ==, 64100);
    g_assert_true(process_kill(process, NULL));
    process_free(process);
    g_assert_cmpuint(guest_users_take(users), ==, uid);
    guest_users_unref(users);
}

static void assert_readable(int fd, const char *content)
{
    g_autofree char *output = g_build_filename(world_folder(), "output", NULL);
    g_autofree char *said = NULL;
    g_autoptr(GPtrArray) argv = g_ptr_array_new_with_free_func(g_free);
    unprivileged_words(argv, FIRST, NULL);
    g_ptr_array_add(argv, g_strdup("cat"));
    g_ptr_array_add(argv, g_strdup("/proc/self/fd/3"));
    g_ptr_array_add(argv, NULL);
    const struct process_options options = {.argv = (const char *const *)argv->pdata,
                                            .errors_path = output,
                                            .keep_fds = &fd,
                                            .keep_fd_count = 1};
    struct process *process = process_spawn(&options, NULL);
    g_assert_true(process_wait(process, 60000));
    process_free(process);
    g_assert_true(g_file_get_contents(output, &said, NULL, NULL));
    g_assert_cmpstr(said, ==, content);
    unlink(output);
}

/* What only root may read can be read, and not be written, by whom it is handed to. */
static void readable(void *unused)
{
    g_autofree char *path = g_build_filename(world_folder(), "kernel", NULL);
    g_autoptr(GError) error = NULL;
    g_assert_true(g_file_set_contents(path, "the kernel", -1, NULL));
    static const int modes[] = {0600, 0644};
    for (guint i = 0; i < G_N_ELEMENTS(modes); i++) {
        g_assert_cmpint(chmod(path, (mode_t)modes[i]), ==, 0);
        int fd = unprivileged_read(path, 60000, &error);
        g_assert_no_error(error);
        assert_readable(fd, "the kernel");
        g_assert_cmpint(write(fd, "x", 1), ==, -1);
        close(fd);
    }
}

static void hanging(void *unused)
{
    g_autofree char *pipe = g_build_filename(world_folder(), "hanging", NULL);
    g_autoptr(GError) error = NULL;
    g_assert_cmpint(mkfifo(pipe, 0600), ==, 0);
    g_assert_cmpint(unprivileged_read(pipe, 100, &error), ==, -1);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_TIMEOUT);
    g_autofree char *expected = g_strdup_printf(
        "%s was not opened in 100 ms: its disk or its server does not answer", pipe);
    g_assert_cmpstr(error->message, ==, expected);
    close(open(pipe, O_WRONLY)); /* the thread goes on, to nobody */
    loop_sleep(50);
}

static void ours(void *unused)
{
    g_autofree char *image = g_build_filename(world_folder(), "before.raw", NULL);
    g_autoptr(GPtrArray) one = g_ptr_array_new();
    g_autoptr(GError) error = NULL;
    struct stat status;
    g_ptr_array_add(one, image);
    g_assert_true(g_file_set_contents(image, "x", 1, NULL));
    g_assert_cmpint(chown(image, WORLD_USER_BEFORE, WORLD_USER_BEFORE), ==, 0);
    for (guint ours = 0; ours < 2; ours++) {
        g_autoptr(GArray) fds = unprivileged_open(one, O_RDWR, ours == 1, 60000, &error);
        g_assert_no_error(error);
        g_assert_cmpuint(fds->len, ==, 1);
        g_assert_cmpint(stat(image, &status), ==, 0);
        g_assert_cmpuint(status.st_uid, ==, ours == 1 ? 0 : WORLD_USER_BEFORE);
    }
    g_assert_cmpuint(status.st_mode & 0777, ==, 0600);
    g_ptr_array_add(one, (char *)"/nowhere");
    g_assert_null(unprivileged_open(one, O_RDWR, true, 60000, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_STORAGE);
    g_assert_cmpstr(error->message, ==, "cannot open /nowhere: No such file or directory");
}

static void add_tests(void)
{
    world_test("/guest-users/each-its-own#SAF-106", each_its_own);
    world_test("/guest-users/while-a-process-lives#SAF-106", while_it_lives);
    world_test("/guest-users/group-of-a-device#SAF-105", group_of_a_device);
    world_test("/guest-users/what-only-root-may-read#SAF-105", readable);
    world_test("/guest-users/what-does-not-open", hanging);
    world_test("/guest-users/what-a-version-before-made#SAF-105", ours);
}

int main(int argc, char **argv)
{
    return world_tests(argc, argv, add_tests);
}
