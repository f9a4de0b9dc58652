/*
 * See moving.h.
 */
#include "moving.h"

#include "helper/patience.h"
#include "io/process.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WAIT_MS 60000
#define QEMU_WRITES 101 /* byte that QEMU locks in a file to which it may write */

/* --- guests --- */

static void run_command(const char *const *argv)
{
    int status = 0;
    g_autofree char *said = NULL;
    g_autoptr(GError) error = NULL;
    g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_STDOUT_TO_DEV_NULL, NULL,
                 NULL, NULL, &said, &status, &error);
    g_assert_no_error(error);
    if (status != 0)
        g_error("%s: %s", argv[0], said);
}

static void own(const char *path)
{
    g_assert_cmpint(chown(path, WORLD_USER_BEFORE, WORLD_USER_BEFORE), ==, 0);
}

/* Disk 0 boots and counts unless it is to be written by another. */
static char *make_image(const struct world_node *node, const char *name, guint disk,
                        enum disk_format format, bool empty)
{
    g_autofree char *raw = g_strdup_printf("%s/disks/%s.disk%u.raw", node->paths->var, name, disk);
    g_autofree char *qcow2 =
        g_strdup_printf("%s/disks/%s.disk%u.qcow2", node->paths->var, name, disk);
    g_autoptr(GError) error = NULL;
    if (empty && format == FORMAT_QCOW2) {
        const char *create[] = {"qemu-img", "create", "-q", "-f", "qcow2", qcow2, "2M", NULL};
        run_command(create);
        own(qcow2);
        return g_steal_pointer(&qcow2);
    }
    tick_image_write(raw, empty ? "empty" : "tick", 0, 2, &error);
    g_assert_no_error(error);
    if (empty) {
        g_assert_cmpint(truncate(raw, 0), ==, 0);
        g_assert_cmpint(truncate(raw, 2 << 20), ==, 0);
    }
    own(raw);
    if (format == FORMAT_RAW)
        return g_steal_pointer(&raw);
    const char *convert[] = {"qemu-img", "convert", "-q", "-O", "qcow2", raw, qcow2, NULL};
    run_command(convert);
    own(qcow2);
    return g_steal_pointer(&qcow2);
}

static struct instance *make_instance(enum disk_template disk_template, guint disks,
                                      enum disk_format format, guint64 generation)
{
    struct instance *instance = world_instance(disks, generation);
    instance->disk_template = disk_template;
    for (guint i = 0; i < disks; i++)
        ((struct disk *)instance->disks->pdata[i])->format = format;
    return instance;
}

static void start_mirror(struct moving *moving)
{
    const struct hypervisor_ops *ops = moving->a->hypervisor->ops;
    g_autoptr(GError) error = NULL;
    world_create(moving->b, moving->before, MOVING_REPLICA);
    moving->replica = world_export(moving->b, moving->before, MOVING_REPLICA);
    ops->mirror_start(moving->a->hypervisor, moving->before->uuid, moving->before->generation,
                      moving->replica, COPY_EVERYTHING, &error);
    g_assert_no_error(error);
    g_assert_true(world_await_mirror(moving->a, moving->before, MIRROR_READY));
}

static GPtrArray *make_images_a(const struct moving *moving, enum disk_format format)
{
    GPtrArray *images = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < moving->before->disks->len; i++)
        g_ptr_array_add(images, make_image(moving->a, moving->before->uuid, i, format, false));
    return images;
}

static GPtrArray *make_images_b(const struct moving *moving, enum disk_format format)
{
    enum disk_template disk_template = moving->before->disk_template;
    GPtrArray *images = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < moving->before->disks->len; i++)
        g_ptr_array_add(images,
                        disk_template == TEMPLATE_SHAREDFILE ? g_strdup(moving->images_a->pdata[i])
                        : disk_template == TEMPLATE_FILE
                            ? make_image(moving->b, "incoming", i, format, true)
                            : g_strdup_printf("%s/disks/%s.%s.disk%u.raw", moving->b->paths->var,
                                              moving->before->uuid, MOVING_REPLICA, i));
    return images;
}

struct moving *moving_new(const char *name, enum disk_template disk_template, guint disks,
                          enum disk_format format)
{
    g_autofree char *second = g_strconcat(name, "-2", NULL);
    g_autoptr(GError) error = NULL;
    struct moving *moving = g_new0(struct moving, 1);
    moving->name = g_strdup(name);
    moving->a = world_node_new(name);
    moving->b = world_node_new(second);
    moving->before = make_instance(disk_template, disks, format, 1);
    moving->after = make_instance(disk_template, disks, format, 2);
    moving->images_a = make_images_a(moving, format);
    moving->images_b = make_images_b(moving, format);
    struct guest_spec spec = {
        .instance = moving->before, .images = moving->images_a, .accelerator = ACCEL_TCG};
    moving->a->hypervisor->ops->prepare(moving->a->hypervisor, &spec, &error);
    g_assert_no_error(error);
    if (disk_template == TEMPLATE_MIRROR)
        start_mirror(moving);
    moving->a->hypervisor->ops->run(moving->a->hypervisor, moving->before->uuid,
                                    moving->before->generation, &error);
    g_assert_no_error(error);
    if (disks > 0)
        g_assert_true(world_await_count(moving->a, moving->before, 5));
    return moving;
}

void moving_attach(struct moving *moving)
{
    struct hypervisor *hv = moving->a->hypervisor;
    struct guest_volume *volume = guest_volume_new();
    g_autoptr(GError) error = NULL;
    g_free(volume->volume);
    g_free(volume->attachment);
    g_free(volume->path);
    volume->volume = g_strdup("eeeeeeee-1111-4000-8000-000000000001");
    volume->attachment = g_strdup("ffffffff-0000-4000-8000-000000000001");
    volume->path = g_strdup_printf("%s/%s-volume", world_folder(), moving->name);
    volume->slot = 30;
    g_assert_true(g_file_set_contents(volume->path, "", 0, NULL));
    g_assert_cmpint(truncate(volume->path, 1 << 20), ==, 0);
    moving->volumes = g_ptr_array_new_with_free_func((GDestroyNotify)guest_volume_free);
    g_ptr_array_add(moving->volumes, volume);
    hv->ops->volume_attach(hv, moving->before->uuid, moving->before->generation, volume, &error);
    g_assert_no_error(error);
}

bool moving_volume_locked(const struct moving *moving)
{
    const struct guest_volume *volume = moving->volumes->pdata[0];
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = QEMU_WRITES, .l_len = 1};
    int fd = open(volume->path, O_RDWR | O_CLOEXEC);
    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(fcntl(fd, F_OFD_GETLK, &lock), ==, 0);
    close(fd);
    return lock.l_type != F_UNLCK;
}

void moving_turn(struct moving *moving)
{
    struct world_node *was = moving->a;
    enum disk_format format = ((struct disk *)moving->before->disks->pdata[0])->format;
    g_assert_cmpint(moving->before->disk_template, ==, TEMPLATE_FILE);
    moving->a = moving->b;
    moving->b = was;
    instance_free(moving->before);
    moving->before = moving->after;
    moving->after = make_instance(TEMPLATE_FILE, moving->before->disks->len, format,
                                  moving->before->generation + 1);
    g_ptr_array_unref(moving->images_a);
    moving->images_a = moving->images_b;
    moving->images_b = make_images_b(moving, format);
    g_clear_pointer(&moving->target, migration_target_free);
}

void moving_kill_b(struct moving *moving)
{
    g_autoptr(GError) error = NULL;
    moving->b->hypervisor->ops->kill(moving->b->hypervisor, moving->after->uuid,
                                     moving->after->generation, &error);
    g_assert_no_error(error);
}

void moving_free(struct moving *moving)
{
    g_autoptr(GError) error = NULL;
    moving->a->hypervisor->ops->kill(moving->a->hypervisor, moving->before->uuid,
                                     moving->before->generation, &error);
    g_assert_no_error(error);
    moving_kill_b(moving);
    moving->b->storage->ops->export_close(moving->b->storage, moving->before->uuid, MOVING_REPLICA,
                                          &error);
    g_assert_no_error(error);
    world_node_free(moving->a);
    world_node_free(moving->b);
    instance_free(moving->before);
    instance_free(moving->after);
    g_ptr_array_unref(moving->images_a);
    g_ptr_array_unref(moving->images_b);
    g_clear_pointer(&moving->volumes, g_ptr_array_unref);
    export_target_free(moving->replica);
    migration_target_free(moving->target);
    g_free(moving->name);
    g_free(moving);
}

/* --- steps --- */

void moving_open(struct moving *moving)
{
    struct guest_spec spec = {.instance = moving->after,
                              .images = moving->images_b,
                              .volumes = moving->volumes,
                              .accelerator = ACCEL_TCG};
    const struct incoming_spec incoming = {MOVING_MIGRATION, "127.0.0.1",
                                           moving->after->disk_template == TEMPLATE_FILE};
    g_autoptr(GError) error = NULL;
    moving->b->hypervisor->ops->incoming_prepare(moving->b->hypervisor, &spec, &incoming,
                                                 &moving->target, &error);
    g_assert_no_error(error);
    g_assert_cmpint(world_state(moving->b, moving->after), ==, GUEST_INCOMING);
}

static void start_with(struct moving *moving, const struct migration_limits *limits)
{
    g_autoptr(GError) error = NULL;
    moving->a->hypervisor->ops->migrate_start(moving->a->hypervisor, moving->before->uuid,
                                              moving->before->generation, moving->target, limits,
                                              &error);
    g_assert_no_error(error);
}

void moving_start(struct moving *moving, bool live)
{
    const struct migration_limits limits = {1024, 300, live};
    start_with(moving, &limits);
}

void moving_start_slowly(struct moving *moving)
{
    const struct migration_limits limits = {1, 1, true};
    start_with(moving, &limits);
}

enum migration_step moving_step(struct moving *moving, char **ret_why)
{
    struct migration_info info = {0};
    g_autoptr(GError) error = NULL;
    moving->a->hypervisor->ops->migrate_query(moving->a->hypervisor, moving->before->uuid,
                                              moving->before->generation, &info, &error);
    g_assert_no_error(error);
    g_assert_true((info.step == STEP_FAILED) == (info.why != NULL));
    if (ret_why != NULL)
        *ret_why = info.why;
    else
        g_free(info.why);
    return info.step;
}

void moving_await_bytes(struct moving *moving)
{
    struct migration_info info = {0};
    g_autoptr(GError) error = NULL;
    for (guint waited = 0; info.transferred == 0 && waited < WAIT_MS; waited += 5) {
        loop_sleep(5);
        moving->a->hypervisor->ops->migrate_query(moving->a->hypervisor, moving->before->uuid,
                                                  moving->before->generation, &info, &error);
        g_assert_no_error(error);
        g_assert_cmpint(info.step, ==, STEP_COPYING);
    }
    g_assert_cmpuint(info.transferred, >, 0);
}

bool moving_await(struct moving *moving, enum migration_step step)
{
    for (guint waited = 0; waited < WAIT_MS; waited += 5) {
        if (moving_step(moving, NULL) == step)
            return true;
        loop_sleep(5);
    }
    return false;
}

void moving_finish_mirrors(struct moving *moving)
{
    g_autoptr(GError) error = NULL;
    const struct storage_ops *storage = moving->b->storage->ops;
    if (moving->replica == NULL && moving->target->disks == NULL)
        return;
    moving->a->hypervisor->ops->mirror_finish(moving->a->hypervisor, moving->before->uuid,
                                              moving->before->generation, &error);
    g_assert_no_error(error);
    storage->export_close(moving->b->storage, moving->before->uuid, MOVING_REPLICA, &error);
    g_assert_no_error(error);
}

void moving_hand_over(struct moving *moving)
{
    g_autoptr(GError) error = NULL;
    moving_finish_mirrors(moving);
    moving->a->hypervisor->ops->migrate_continue(moving->a->hypervisor, moving->before->uuid,
                                                 moving->before->generation, &error);
    g_assert_no_error(error);
    /* Without a pause, so that what is asked next meets QEMU while it is about to end. */
    gint64 since = loop_boot_ms();
    while (moving_step(moving, NULL) != STEP_DONE)
        g_assert_false(patience_is_over(since, WAIT_MS));
    g_assert_cmpint(world_state(moving->a, moving->before), ==, GUEST_MIGRATED);
}

/* As a promotion does it, under the process. */
static void rename_images(struct moving *moving)
{
    for (guint i = 0; i < moving->images_b->len; i++) {
        char *now = g_strdup_printf("%s/disks/%s.disk%u.raw", moving->b->paths->var,
                                    moving->after->uuid, i);
        g_assert_cmpint(rename(moving->images_b->pdata[i], now), ==, 0);
        g_free(moving->images_b->pdata[i]);
        moving->images_b->pdata[i] = now;
    }
}

void moving_take(struct moving *moving)
{
    const struct hypervisor_ops *ops = moving->b->hypervisor->ops;
    g_autoptr(GError) error = NULL;
    g_assert_cmpint(world_state(moving->a, moving->before), ==, GUEST_MIGRATED);
    moving->a->hypervisor->ops->kill(moving->a->hypervisor, moving->before->uuid,
                                     moving->before->generation, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(moving->a->exited, ==, 1);
    if (moving->after->disk_template != TEMPLATE_SHAREDFILE)
        rename_images(moving);
    ops->incoming_finish(moving->b->hypervisor, moving->after->uuid, moving->after->generation,
                         MOVING_MIGRATION, &error);
    g_assert_no_error(error);
    g_assert_cmpint(world_state(moving->b, moving->after), ==, GUEST_PREPARED);
    ops->run(moving->b->hypervisor, moving->after->uuid, moving->after->generation, &error);
    g_assert_no_error(error);
    g_assert_cmpint(world_state(moving->b, moving->after), ==, GUEST_RUNNING);
}

void moving_cancel(struct moving *moving)
{
    g_autoptr(GError) error = NULL;
    gint64 start = loop_boot_ms();
    moving->a->hypervisor->ops->migrate_cancel(moving->a->hypervisor, moving->before->uuid,
                                               moving->before->generation, &error);
    g_assert_no_error(error);
    g_test_message("cancelled in %d ms", (int)(loop_boot_ms() - start));
    g_assert_cmpint(moving_step(moving, NULL), ==, STEP_NONE);
}

struct guest_report *moving_restart(struct moving *moving, bool a)
{
    struct world_node **node = a ? &moving->a : &moving->b;
    g_autofree char *name = a ? g_strdup(moving->name) : g_strconcat(moving->name, "-2", NULL);
    g_autoptr(GError) error = NULL;
    world_node_free(*node); /* its connections are gone, as if it had died */
    *node = world_node_new(name);
    g_autoptr(GPtrArray) exports =
        (*node)->storage->ops->export_rediscover((*node)->storage, &error);
    g_assert_no_error(error);
    g_autoptr(GPtrArray) found = (*node)->hypervisor->ops->rediscover((*node)->hypervisor, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(found->len, ==, 1);
    return guest_report_copy(found->pdata[0]);
}

/* --- what must hold --- */

/* The first count in a console that is printed as a whole line; 0 if there is none. The line in the
 * middle of which the guest moved is split between the two consoles. */
static guint32 first_printed(const struct world_node *node, const struct instance *instance)
{
    g_autofree char *path = g_strdup_printf("%s/guests/%s-%s.console", node->paths->log,
                                            instance->name, instance->uuid);
    g_autofree char *text = NULL;
    guint32 count = 0;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    const char *line = strchr(text, '\n');
    if (line == NULL || sscanf(line + 1, "COUNT %u\r\n", &count) != 1)
        return 0;
    return count;
}

static guint32 read_count(const struct moving *moving, const char *image)
{
    guint32 count = 0;
    g_autoptr(GError) error = NULL;
    g_autofree char *raw = g_strdup_printf("%s/read.raw", moving->b->paths->var);
    if (((struct disk *)moving->after->disks->pdata[0])->format == FORMAT_QCOW2) {
        const char *argv[] = {"qemu-img", "convert", "-U", "-O", "raw", image, raw, NULL};
        run_command(argv);
        image = raw;
    }
    tick_read_state(image, &count, &error);
    g_assert_no_error(error);
    return count;
}

void moving_check_whole(struct moving *moving)
{
    guint32 left = world_printed(moving->a, moving->before);
    g_assert_cmpuint(read_count(moving, moving->images_b->pdata[0]), >=, left);
    g_assert_true(world_await_count(moving->b, moving->after, left + 5));
    guint32 first = first_printed(moving->b, moving->after);
    g_test_message("printed up to %u on the one node, from %u on the other", left, first);
    g_assert_cmpuint(first, >, left);
    g_assert_cmpuint(first, <=, left + 2);
    g_assert_cmpuint(world_printed(moving->a, moving->before), ==, left);
    guint32 printed = world_printed(moving->b, moving->after); /* first: the guest counts on */
    g_assert_cmpuint(read_count(moving, moving->images_b->pdata[0]), >=, printed);
}

void moving_check_stayed(struct moving *moving)
{
    g_assert_cmpint(world_state(moving->a, moving->before), ==, GUEST_RUNNING);
    g_assert_cmpint(world_state(moving->b, moving->after), !=, GUEST_RUNNING);
    g_assert_cmpuint(moving->a->exited, ==, 0);
    g_assert_true(
        world_await_count(moving->a, moving->before, world_printed(moving->a, moving->before) + 5));
    g_assert_cmpuint(world_printed(moving->b, moving->after), ==, 0);
}
