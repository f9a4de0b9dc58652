/*
 * Images on files: created whole or not at all, never overwritten when kept aside, promoted in any
 * number of tries.
 */
#include "world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REPLICA "22222222-2222-4222-8222-222222222222"

static char *disk_path(const struct world_node *node, const char *format, ...) G_GNUC_PRINTF(2, 3);
static char *disk_path(const struct world_node *node, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *name = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    return g_build_filename(node->paths->var, "disks", name, NULL);
}

static gint compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names below var/disks or a folder of it, sorted, in one line. */
static char *listing(const struct world_node *node, const char *sub)
{
    g_autofree char *folder = g_build_filename(node->paths->var, "disks", sub, NULL);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    const char *name;
    while ((name = g_dir_read_name(dir)) != NULL)
        if (strcmp(name, "aside") != 0)
            g_ptr_array_add(names, g_strdup(name));
    g_ptr_array_sort(names, compare_names);
    g_ptr_array_add(names, NULL);
    return g_strjoinv(" ", (char **)names->pdata);
}

static void mark(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    g_assert_cmpint(pwrite(fd, text, strlen(text), 0), ==, (int)strlen(text));
    close(fd);
}

static void assert_mark(const char *path, const char *text)
{
    char found[16] = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(pread(fd, found, strlen(text), 0), ==, (int)strlen(text));
    g_assert_cmpstr(found, ==, text);
    close(fd);
}

#define U "11111111-1111-4111-8111-111111111111"

static void create(void *unused)
{
    struct world_node *node = world_node_new("create");
    const struct storage_ops *ops = node->storage->ops;
    record_autoptr(instance) web1 = world_instance(2, 1);
    g_autoptr(GError) error = NULL;
    struct storage_space space;
    guint64 bytes = 0;
    g_assert_true(ops->source_size(node->storage, "tick", &bytes, &error));
    g_assert_cmpuint(bytes, ==, 1 << 20);
    g_assert_true(ops->space(node->storage, &space, &error));
    g_assert_cmpuint(space.total_mib, >=, space.free_mib);
    g_assert_cmpuint(space.free_mib, >, 0);
    for (guint again = 0; again < 2; again++) {
        world_create(node, web1, "");
        g_autofree char *names = listing(node, "");
        g_assert_cmpstr(names, ==, U ".disk0.raw " U ".disk1.raw");
        for (guint i = 0; i < 2; i++) {
            g_autofree char *path = disk_path(node, U ".disk%u.raw", i);
            struct stat status;
            g_assert_cmpint(stat(path, &status), ==, 0);
            g_assert_cmpint(status.st_size, ==, 2 << 20);
            g_assert_cmpint(status.st_blocks * 512, <, 1 << 20); /* holes stay holes */
            g_assert_cmpuint(status.st_uid, ==, 0);
            g_assert_cmpuint(status.st_gid, ==, 0);
            g_assert_cmpuint(status.st_mode & 0777, ==, 0600);
        }
        g_assert_cmpuint(world_counted(node, web1, ""), ==, 0);
        g_autofree char *first = disk_path(node, U ".disk0.raw");
        mark(first, "used"); /* the second creation starts anew */
    }
    g_autofree char *first = disk_path(node, U ".disk0.raw");
    g_autofree char *source = g_build_filename(node->paths->var, "images", "tick.raw", NULL);
    g_autofree char *made = NULL, *from = NULL;
    gsize made_len = 0, from_len = 0;
    mark(first, "\xfa\x31\xc0\x8e"); /* the boot code's first bytes */
    g_assert_true(g_file_get_contents(first, &made, &made_len, NULL));
    g_assert_true(g_file_get_contents(source, &from, &from_len, NULL));
    g_assert_cmpint(memcmp(made, from, from_len), ==, 0);
    world_node_free(node);
}

static void assert_refused(struct world_node *node, const struct instance *instance,
                           const char *replica, const char *os_type, enum fettle_error code,
                           const char *message)
{
    g_autoptr(GError) error = NULL;
    g_assert_false(node->storage->ops->create(node->storage, instance->uuid, replica,
                                              instance->disk_template, instance->disks, os_type,
                                              &error));
    g_assert_cmpstr(error->message, ==, message);
    g_assert_error(error, FETTLE_ERROR, (gint)code);
    g_autofree char *names = listing(node, "");
    g_assert_cmpstr(names, ==, "");
}

static void bad_creations(void *unused)
{
    struct world_node *node = world_node_new("bad");
    record_autoptr(instance) web1 = world_instance(2, 1);
    g_autofree char *big = g_build_filename(node->paths->var, "images", "big", NULL);
    g_autofree char *not_there =
        g_strdup_printf("image \"gone\" is not in %s/images", node->paths->var);
    int fd = open(big, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    g_assert_cmpint(ftruncate(fd, (4 << 20) + 1), ==, 0);
    close(fd);
    assert_refused(node, web1, "", "big", FETTLE_ERROR_WRONG_INPUT,
                   "image \"big\" is 5 MiB, disk 0 only 2 MiB");
    assert_refused(node, web1, "", "gone", FETTLE_ERROR_UNKNOWN_ENTITY, not_there);
    assert_refused(
        node, web1, "", "../images/big", FETTLE_ERROR_WRONG_INPUT,
        "image \"../images/big\": a name without slashes that begins with no dot is needed");
    assert_refused(node, web1, "", "..", FETTLE_ERROR_WRONG_INPUT,
                   "image \"..\": a name without slashes that begins with no dot is needed");
    assert_refused(node, web1, "x/y", "", FETTLE_ERROR_WRONG_INPUT,
                   "images of \"" U "\", replica \"x/y\": both are named by UUIDs");
    g_free(web1->uuid);
    web1->uuid = g_strdup("../../etc");
    assert_refused(node, web1, "", "", FETTLE_ERROR_WRONG_INPUT,
                   "images of \"../../etc\", replica \"\": both are named by UUIDs");
    world_node_free(node);
}

static void full_disk(void *unused)
{
    struct world_node *node = world_node_new("full");
    record_autoptr(instance) web1 = world_instance(2, 1);
    g_autoptr(GError) error = NULL;
    g_autofree char *source = g_build_filename(node->paths->var, "images", "dense", NULL);
    g_autofree char *data = g_malloc(1 << 20);
    memset(data, 7, 1 << 20);
    g_assert_true(g_file_set_contents(source, data, 1 << 20, NULL));
    world_limit_disks(node, 512);
    g_autofree char *expected =
        g_strdup_printf("cannot copy %s to %s/disks/" U ".disk0.raw.new: %s", source,
                        node->paths->var, g_strerror(ENOSPC));
    assert_refused(node, web1, "", "dense", FETTLE_ERROR_NO_RESOURCES, expected);
    /* What was there before a failed creation is still there after it. */
    world_create(node, web1, "");
    g_assert_false(node->storage->ops->create(node->storage, web1->uuid, "", web1->disk_template,
                                              web1->disks, "dense", &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_NO_RESOURCES);
    g_autofree char *names = listing(node, "");
    g_assert_cmpstr(names, ==, U ".disk0.raw " U ".disk1.raw");
    world_node_free(node);
}

static void sweep(void *unused)
{
    struct world_node *node = world_node_new("sweep");
    g_autofree char *left = disk_path(node, U ".disk0.raw.new");
    g_assert_true(g_file_set_contents(left, "half", -1, NULL));
    world_node_free(node);
    node = world_node_new("sweep");
    g_autofree char *names = listing(node, "");
    g_assert_cmpstr(names, ==, "");
    world_node_free(node);
}

/* --- promotion --- */

static void make_both(struct world_node *node, const struct instance *web1)
{
    world_create(node, web1, "");
    world_create(node, web1, REPLICA);
    for (guint i = 0; i < 2; i++) {
        g_autofree char *primary = disk_path(node, U ".disk%u.raw", i);
        g_autofree char *replica = disk_path(node, U "." REPLICA ".disk%u.raw", i);
        mark(primary, "old");
        mark(replica, "new");
    }
}

static void assert_promoted(struct world_node *node)
{
    g_autofree char *names = listing(node, "");
    g_autofree char *aside = listing(node, "aside");
    g_assert_cmpstr(names, ==, U ".disk0.raw " U ".disk1.raw");
    g_assert_cmpstr(aside, ==, U ".g6.disk0.raw " U ".g6.disk1.raw");
    for (guint i = 0; i < 2; i++) {
        g_autofree char *primary = disk_path(node, U ".disk%u.raw", i);
        g_autofree char *old = disk_path(node, "aside/" U ".g6.disk%u.raw", i);
        assert_mark(primary, "new");
        assert_mark(old, "old");
    }
}

static void promote(void *unused)
{
    struct world_node *node = world_node_new("promote");
    const struct storage_ops *ops = node->storage->ops;
    record_autoptr(instance) web1 = world_instance(2, 1);
    g_autoptr(GError) error = NULL;
    make_both(node, web1);
    for (guint again = 0; again < 3; again++) {
        ops->promote(node->storage, U, REPLICA, 6, &error);
        g_assert_no_error(error);
        assert_promoted(node);
    }
    g_assert_true(ops->remove(node->storage, U, "", &error));
    g_assert_false(ops->promote(node->storage, U, REPLICA, 6, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_UNKNOWN_ENTITY);
    g_clear_error(&error);
    g_assert_false(ops->promote(node->storage, U, "", 6, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_INPUT);
    world_node_free(node);
}

/* A death after each rename of a promotion: the repetition ends in the same state. */
static void promote_halfway(void *unused)
{
    static const char *const renames[][2] = {
        {U ".disk1.raw", "aside/" U ".g6.disk1.raw"},
        {U "." REPLICA ".disk1.raw", U ".disk1.raw"},
        {U ".disk0.raw", "aside/" U ".g6.disk0.raw"},
        {U "." REPLICA ".disk0.raw", U ".disk0.raw"},
    };
    for (guint done = 0; done <= G_N_ELEMENTS(renames); done++) {
        g_autofree char *name = g_strdup_printf("half%u", done);
        struct world_node *node = world_node_new(name);
        record_autoptr(instance) web1 = world_instance(2, 1);
        g_autoptr(GError) error = NULL;
        make_both(node, web1);
        for (guint i = 0; i < done; i++) {
            g_autofree char *from = disk_path(node, "%s", renames[i][0]);
            g_autofree char *to = disk_path(node, "%s", renames[i][1]);
            g_assert_cmpint(rename(from, to), ==, 0);
        }
        node->storage->ops->promote(node->storage, U, REPLICA, 6, &error);
        g_assert_no_error(error);
        assert_promoted(node);
        world_node_free(node);
    }
}

/* --- keeping aside, listing, removing --- */

/* "INSTANCE REPLICA DISKS; …" of a list of sets, which is freed. */
static char *joined(GPtrArray *list)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < list->len; i++) {
        const struct image_set *set = list->pdata[i];
        g_string_append_printf(text, "%s%s %s %" G_GUINT64_FORMAT, i > 0 ? "; " : "", set->instance,
                               set->replica[0] != '\0' ? set->replica : "-", set->disks);
    }
    g_ptr_array_unref(list);
    return g_string_free(text, FALSE);
}

/* Somebody removes one file of three; what is left is told disk by disk. */
static void lacking(void *unused)
{
    struct world_node *node = world_node_new("lacking");
    const struct storage_ops *ops = node->storage->ops;
    record_autoptr(instance) web1 = world_instance(3, 1);
    g_autofree char *path =
        g_build_filename(node->paths->var, "disks", U "." REPLICA ".disk1.raw", NULL);
    g_autoptr(GError) error = NULL;
    world_create(node, web1, "");
    world_create(node, web1, REPLICA);
    g_autofree char *all = joined(ops->list(node->storage, false, &error));
    g_assert_cmpstr(all, ==, U " - 7; " U " " REPLICA " 7");
    g_assert_cmpint(unlink(path), ==, 0);
    g_autofree char *left = joined(ops->list(node->storage, false, &error));
    g_assert_cmpstr(left, ==, U " - 7; " U " " REPLICA " 5");
    struct export_target *target = NULL;
    g_assert_false(ops->export_open(node->storage, 1, U, REPLICA, 1, web1->disks, "127.0.0.1", true,
                                    &target, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_UNKNOWN_ENTITY);
    g_assert_null(target);
    world_node_free(node);
}

static void aside(void *unused)
{
    struct world_node *node = world_node_new("aside");
    const struct storage_ops *ops = node->storage->ops;
    record_autoptr(instance) web1 = world_instance(1, 1);
    g_autoptr(GError) error = NULL;
    world_create(node, web1, "");
    world_create(node, web1, REPLICA);
    g_autofree char *all = joined(ops->list(node->storage, false, &error));
    g_assert_cmpstr(all, ==, U " - 1; " U " " REPLICA " 1");
    g_assert_true(ops->set_aside(node->storage, U, "", 3, &error));
    g_assert_true(ops->set_aside(node->storage, U, "", 3, &error)); /* nothing is there any more */
    g_assert_true(ops->set_aside(node->storage, U, REPLICA, 3, &error));
    world_create(node, web1, "");
    g_assert_true(
        ops->set_aside(node->storage, U, "", 3, &error)); /* the same name again: both are kept */
    g_assert_no_error(error);
    g_autofree char *names = listing(node, "aside");
    g_assert_cmpstr(names, ==,
                    U "." REPLICA ".g3.disk0.raw " U ".g3-1.disk0.raw " U ".g3.disk0.raw");
    g_autofree char *kept = joined(ops->list(node->storage, true, &error));
    g_assert_cmpstr(kept, ==, U " - 1; " U " " REPLICA " 1");
    g_autofree char *none = joined(ops->list(node->storage, false, &error));
    g_assert_cmpstr(none, ==, "");
    g_assert_null(ops->files(node->storage, U, "", 1, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_UNKNOWN_ENTITY);
    g_autofree char *missing =
        g_strdup_printf("disk 0 of instance " U " has no image in %s/disks, nor in %s/shared",
                        node->paths->var, node->paths->var);
    g_assert_cmpstr(error->message, ==, missing);
    g_clear_error(&error);
    g_assert_true(ops->sync(node->storage, U, "", &error));
    g_assert_true(ops->remove_aside(node->storage, U, &error));
    g_assert_true(ops->remove_aside(node->storage, U, &error));
    g_assert_true(ops->remove(node->storage, U, REPLICA, &error));
    g_assert_no_error(error);
    g_autofree char *left = listing(node, "aside");
    g_assert_cmpstr(left, ==, "");
    world_node_free(node);
}

struct making {
    struct world_node *node;
    struct instance *instance;
    const char *source;
    GError *error;
    bool made, over;
};

static void make(void *data)
{
    struct making *making = data;
    struct storage *storage = making->node->storage;
    making->made = storage->ops->create(storage, U, "", making->instance->disk_template,
                                        making->instance->disks, making->source, &making->error);
    making->over = true;
}

/* Starts to make it, gives it up when it is under way, lets `meanwhile` (may be NULL) appear, and
 * expects what was there before, and nothing else. */
static void expect_given_up(struct world_node *node, struct instance *web1, const char *source,
                            const char *meanwhile)
{
    const struct storage_ops *ops = node->storage->ops;
    g_autofree char *image = disk_path(node, U ".disk0.raw");
    struct making making = {.node = node, .instance = web1, .source = source};
    guint64 done, total;
    task_spawn(NULL, make, &making);
    while (!making.over && !ops->progress(node->storage, U, &done, &total))
        loop_sleep(1);
    ops->give_up(node->storage, U);
    if (meanwhile)
        g_file_set_contents(meanwhile, "", -1, NULL);
    while (!making.over)
        loop_sleep(1);
    g_assert_error(making.error, FETTLE_ERROR, FETTLE_ERROR_CANCELED);
    g_assert_false(making.made);
    g_clear_error(&making.error);
    g_autofree char *names = listing(node, "");
    g_assert_cmpstr(names, ==, U ".disk0.raw");
    assert_mark(image, "old");
    g_assert_false(ops->progress(node->storage, U, &done, &total));
}

/* While we copy its content, while qemu-img does, which never ends here, and before all gets its
 * name. */
static void given_up(void *unused)
{
    struct world_node *node = world_node_new("givenup");
    record_autoptr(instance) web1 = world_instance(1, 1);
    struct disk *disk = web1->disks->pdata[0];
    g_autofree char *image = disk_path(node, U ".disk0.raw");
    g_autofree char *go = g_build_filename(node->paths->var, "go", NULL);
    g_autofree char *real = g_find_program_in_path("qemu-img");
    g_autofree char *path = g_strdup(g_getenv("PATH"));
    g_autofree char *programs = g_strdup_printf("%s:%s", node->paths->var, path);
    g_free(world_shell("cd %s/images && dd if=/dev/urandom of=some.raw bs=1M count=96 status=none "
                       "&& qemu-img convert -c -f raw -O qcow2 some.raw packed.qcow2 && "
                       "cat > ../qemu-img <<'END' && chmod 755 ../qemu-img\n"
                       "#!/bin/sh\n"
                       "[ \"$1\" != convert ] || exec sleep 100000\n"
                       "while [ \"$1\" = create ] && [ ! -e %s ]; do sleep 0.01; done\n"
                       "exec %s \"$@\"\nEND",
                       node->paths->var, go, real));
    world_create(node, web1, "");
    mark(image, "old");
    disk->size = 100;
    node->storage->ops->give_up(node->storage, U); /* without one nothing happens */
    expect_given_up(node, web1, "some", NULL);
    g_setenv("PATH", programs, TRUE);
    expect_given_up(node, web1, "packed", NULL);
    disk->format = FORMAT_QCOW2;
    web1->disk_template = TEMPLATE_FILE;
    expect_given_up(node, web1, "", go);
    g_setenv("PATH", path, TRUE);
    world_node_free(node);
}

/* There, and to be read: past what the kernel remembers, so what cannot be read is no file here. */
static void check(void *unused)
{
    struct world_node *node = world_node_new("check");
    const struct storage_ops *ops = node->storage->ops;
    record_autoptr(instance) web1 = world_instance(2, 1);
    g_autoptr(GError) error = NULL;
    make_both(node, web1);
    g_assert_true(ops->check(node->storage, U, "", 2, &error));
    g_assert_true(ops->check(node->storage, U, REPLICA, 2, &error));
    g_assert_no_error(error);
    g_autofree char *path = disk_path(node, U ".disk1.raw");
    g_assert_cmpint(unlink(path), ==, 0);
    g_assert_false(ops->check(node->storage, U, "", 2, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_UNKNOWN_ENTITY);
    g_clear_error(&error);
    g_assert_cmpint(symlink("/proc/self/mem", path), ==, 0);
    g_assert_false(ops->check(node->storage, U, "", 2, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_STORAGE);
    g_autofree char *message = g_strdup_printf("cannot read %s: Invalid argument", path);
    g_assert_cmpstr(error->message, ==, message);
}

static void add_tests(void)
{
    world_test("/images/create", create);
    world_test("/images/bad-creations-leave-nothing", bad_creations);
    world_test("/images/full-disk-leaves-nothing", full_disk);
    world_test("/images/leftovers-are-swept", sweep);
    world_test("/images/given-up-leaves-nothing#LUX-08", given_up);
    world_test("/images/promote-is-idempotent#SAF-16,SAF-20", promote);
    world_test("/images/promote-after-death-halfway#SAF-16", promote_halfway);
    world_test("/images/aside-is-never-overwritten#SAF-19", aside);
    world_test("/images/check#SAF-24", check);
    world_test("/images/list-says-which-disks#ARP-70", lacking);
}

int main(int argc, char **argv)
{
    return world_tests(argc, argv, add_tests);
}
